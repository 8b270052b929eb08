// SPDX-License-Identifier: MIT
// The settings of dgm_decoding: ranges, and how they go with the rest.
//
// All are off in a struct of zeros, so a missing struct is one of zeros. What cannot be had
// together is refused with a sentence: here where the caller's settings alone say so, in search/
// where it follows from the search itself.
#include <string.h>

#include "engine/engine_private.h"

static const dgm_decoding none;

static const dgm_decoding *decoding_of(const dgm_settings *s)
{
    return s->decoding ? s->decoding : &none;
}

static dgm_status check_sampling(const dgm_settings *s, const dgm_decoding *d, dgm_error *err)
{
    const bool sample = s->search && strcmp(s->search, "sample") == 0;
    DGM_FAIL_IF(!sample && (d->temperature != 0 || d->top_p != 0 || d->top_k || d->seed), err,
                DGM_ERR_ARGUMENT, "%s is a setting of the search 'sample'",
                d->top_k              ? "top-k"
                : d->top_p != 0       ? "top-p"
                : d->temperature != 0 ? "the temperature"
                                      : "the seed");
    DGM_FAIL_IF(sample && s->beam && s->beam != s->nbest, err, DGM_ERR_ARGUMENT,
                "sampling has no beam: it draws as many translations as the n-best size says");
    DGM_FAIL_IF(!(d->temperature >= 0.0f && d->temperature <= 1e6f), err, DGM_ERR_ARGUMENT,
                "the temperature must be between 0 and 1e+06, not %g", (double)d->temperature);
    DGM_FAIL_IF(!(d->top_p >= 0.0f && d->top_p <= 1.0f), err, DGM_ERR_ARGUMENT,
                "top-p must be between 0 and 1, not %g", (double)d->top_p);
    DGM_FAIL_IF(d->top_k < 0 || d->top_k > DGM_SAMPLE_MOST, err, DGM_ERR_ARGUMENT,
                "top-k must be between 0 and %d, not %d", DGM_SAMPLE_MOST, (int)d->top_k);
    return DGM_OK;
}

dgm_status dgm_decoding_check(const dgm_settings *s, dgm_error *err)
{
    const dgm_decoding *d = decoding_of(s);
    DGM_FAIL_IF(!(d->beam_width >= 0.0f && d->beam_width <= 1.0f), err, DGM_ERR_ARGUMENT,
                "the beam width must be between 0 and 1, not %g", (double)d->beam_width);
    DGM_FAIL_IF(!(d->repetition_penalty >= 0.0f && d->repetition_penalty <= 1e6f), err,
                DGM_ERR_ARGUMENT, "the repetition penalty must be between 0 and 1e+06, not %g",
                (double)d->repetition_penalty);
    DGM_FAIL_IF(d->no_repeat_ngram < 0 || d->no_repeat_ngram > 65536, err, DGM_ERR_ARGUMENT,
                "the n-grams that come once must have 0 to 65536 tokens, not %d",
                (int)d->no_repeat_ngram);
    DGM_FAIL_IF(!(d->diversity >= 0.0f && d->diversity <= 1e6f), err, DGM_ERR_ARGUMENT,
                "the diversity must be between 0 and 1e+06, not %g", (double)d->diversity);
    DGM_FAIL_IF(!(d->coverage_penalty >= 0.0f && d->coverage_penalty <= 1e6f), err,
                DGM_ERR_ARGUMENT, "the coverage penalty must be between 0 and 1e+06, not %g",
                (double)d->coverage_penalty);
    DGM_FAIL_IF(d->max_rows < 0, err, DGM_ERR_ARGUMENT,
                "rows at once must be 0 or more, not %d", (int)d->max_rows);
    return check_sampling(s, d, err);
}

void dgm_decoding_resolve(dgm_translator *t, const dgm_settings *s)
{
    const dgm_decoding *d = decoding_of(s);
    t->config.beam_width = d->beam_width;
    t->config.max_rows = d->max_rows;
    t->config.repetition = d->repetition_penalty;
    t->config.no_repeat = d->no_repeat_ngram;
    t->config.diversity = d->diversity;
    t->config.coverage = d->coverage_penalty;
    t->config.alignment |= d->coverage_penalty > 0.0f;
    t->config.temperature = d->temperature;
    t->config.top_p = d->top_p;
    t->config.top_k = d->top_k;
    t->config.seed = d->seed;
    t->lattices = d->lattices != 0;
    t->lattice_weight = d->lattice_weight;
}
