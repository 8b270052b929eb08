// SPDX-License-Identifier: MIT
// Settings of the search that are off by default: how they go with the rest. What cannot
// be had together is refused with a sentence: here where the caller's settings alone say so, in search/
// where it follows from the search itself.
#include <string.h>

#include "engine/engine_private.h"

dgm_status dgm_decoding_check(const dgm_settings *s, dgm_error *err)
{
    const bool sample = s->search && strcmp(s->search, "sample") == 0;
    DGM_FAIL_IF(!sample && (s->temperature != 0 || s->top_p != 0 || s->top_k || s->seed), err,
                DGM_ERR_ARGUMENT, "%s is a setting of the search 'sample'",
                s->top_k              ? "top-k"
                : s->top_p != 0       ? "top-p"
                : s->temperature != 0 ? "the temperature"
                                      : "the seed");
    DGM_FAIL_IF(sample && s->beam && s->beam != s->nbest, err, DGM_ERR_ARGUMENT,
                "sampling has no beam: it draws as many translations as the n-best size says");
    return DGM_OK;
}

void dgm_decoding_resolve(dgm_translator *t, const dgm_settings *s)
{
    t->config.beam_width = s->beam_width;
    t->config.max_rows = s->max_rows;
    t->config.repetition = s->repetition_penalty;
    t->config.no_repeat = s->no_repeat_ngram;
    t->config.diversity = s->diversity;
    t->config.coverage = s->coverage_penalty;
    t->config.alignment |= s->coverage_penalty > 0.0f;
    t->config.temperature = s->temperature;
    t->config.top_p = s->top_p;
    t->config.top_k = s->top_k;
    t->config.seed = s->seed;
    t->lattices = s->lattices != 0;
    t->lattice_weight = s->lattice_weight;
}
