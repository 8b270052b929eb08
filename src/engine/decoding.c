// SPDX-License-Identifier: MIT
// The settings of dgm_decoding: ranges, and how they go with the rest.
//
// All are off in a struct of zeros, so a missing struct is one of zeros. What cannot be had
// together is refused with a sentence: here where the caller's settings alone say so, in search/
// where it follows from the search itself.
#include <math.h>

#include "engine/engine_int.h"

static const dgm_decoding none;

static const dgm_decoding *decoding_of(const dgm_settings *s)
{
    return s->decoding ? s->decoding : &none;
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
    return DGM_OK;
}

void dgm_decoding_resolve(dgm_translator *t, const dgm_settings *s)
{
    const dgm_decoding *d = decoding_of(s);
    t->config.beam_width = d->beam_width;
    t->config.repetition = d->repetition_penalty;
    t->config.no_repeat = d->no_repeat_ngram;
    t->config.diversity = d->diversity;
}
