// SPDX-License-Identifier: MIT
// Settings of the search that are off by default: ranges, and how they go with the rest. What cannot
// be had together is refused with a sentence: here where the caller's settings alone say so, in search/
// where it follows from the search itself.
#include <string.h>

#include "engine/engine_private.h"

static dgm_status check_sampling(const dgm_settings *s, dgm_error *err)
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
    DGM_FAIL_IF(!(s->temperature >= 0.0f && s->temperature <= 1e6f), err, DGM_ERR_ARGUMENT,
                "the temperature must be between 0 and 1e+06, not %g", (double)s->temperature);
    DGM_FAIL_IF(!(s->top_p >= 0.0f && s->top_p <= 1.0f), err, DGM_ERR_ARGUMENT,
                "top-p must be between 0 and 1, not %g", (double)s->top_p);
    DGM_FAIL_IF(s->top_k < 0 || s->top_k > DGM_SAMPLE_MOST, err, DGM_ERR_ARGUMENT,
                "top-k must be between 0 and %d, not %d", DGM_SAMPLE_MOST, (int)s->top_k);
    return DGM_OK;
}

dgm_status dgm_decoding_check(const dgm_settings *s, dgm_error *err)
{
    DGM_FAIL_IF(!(s->beam_width >= 0.0f && s->beam_width <= 1.0f), err, DGM_ERR_ARGUMENT,
                "the beam width must be between 0 and 1, not %g", (double)s->beam_width);
    DGM_FAIL_IF(!(s->repetition_penalty >= 0.0f && s->repetition_penalty <= 1e6f), err,
                DGM_ERR_ARGUMENT, "the repetition penalty must be between 0 and 1e+06, not %g",
                (double)s->repetition_penalty);
    DGM_FAIL_IF(s->no_repeat_ngram < 0 || s->no_repeat_ngram > 65536, err, DGM_ERR_ARGUMENT,
                "the n-grams that come once must have 0 to 65536 tokens, not %d",
                (int)s->no_repeat_ngram);
    DGM_FAIL_IF(!(s->diversity >= 0.0f && s->diversity <= 1e6f), err, DGM_ERR_ARGUMENT,
                "the diversity must be between 0 and 1e+06, not %g", (double)s->diversity);
    DGM_FAIL_IF(!(s->coverage_penalty >= 0.0f && s->coverage_penalty <= 1e6f), err,
                DGM_ERR_ARGUMENT, "the coverage penalty must be between 0 and 1e+06, not %g",
                (double)s->coverage_penalty);
    DGM_FAIL_IF(s->max_rows < 0, err, DGM_ERR_ARGUMENT, "rows at once must be 0 or more, not %d",
                (int)s->max_rows);
    return check_sampling(s, err);
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
