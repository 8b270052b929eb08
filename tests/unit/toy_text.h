// SPDX-License-Identifier: MIT
// Random sentences for the tests that search many at once, some of which have a prefix; and a configuration for them.
#ifndef DGM_TESTS_UNIT_TOY_TEXT_H
#define DGM_TESTS_UNIT_TOY_TEXT_H

#include "unit/search_toy.h"

enum { TOY_TEXT_VOCAB = 20, TOY_TEXT_MOST = 40, TOY_TEXT_LONGEST = 8 };

typedef struct toy_text {
    int32_t ids[TOY_TEXT_MOST][TOY_TEXT_LONGEST];
    int32_t prefix[TOY_TEXT_MOST][2];
    dgm_search_request requests[TOY_TEXT_MOST];
} toy_text;

static void toy_text_make(toy_text *t, int sentences, uint64_t seed)
{
    dgm_rng rng = {seed};
    for (int i = 0; i < sentences; i++) {
        const int count = 1 + (int)dgm_rng_below(&rng, TOY_TEXT_LONGEST);
        for (int j = 0; j < count; j++)
            t->ids[i][j] = j + 1 == count ? TOY_EOS : 2 + (int32_t)dgm_rng_below(&rng, TOY_TEXT_VOCAB - 3);
        t->prefix[i][0] = 2 + i % 7;
        t->prefix[i][1] = 3;
        t->requests[i] = (dgm_search_request){
            .source = {t->ids[i], count}, .prefix = t->prefix[i], .prefix_count = i % 5 == 0 ? 1 + i % 2 : 0};
    }
}

static dgm_search_config toy_text_config(int beam, dgm_finish finish, int sentences)
{
    dgm_search_config c = toy_config(beam, finish);
    c.nbest = beam < 3 ? beam : 3;
    c.sentences = sentences;
    c.max_length = 20;
    c.max_length_factor = 1.5f;
    c.word_scores = c.alignment = true;
    return c;
}

#endif
