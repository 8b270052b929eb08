// SPDX-License-Identifier: MIT
// The words w0, w1, ... as a vocabulary, for tests of searches that take constraints. Include search_toy.h first.
#ifndef DGM_TESTS_UNIT_TOY_WORDS_H
#define DGM_TESTS_UNIT_TOY_WORDS_H

#include "text/surface.h"

enum { TOY_WORDS = 32 };

static dgm_surfaces *surfaces;
static dgm_vocab *vocabulary;

static inline int toy_words_open(int count)
{
    static char spelling[TOY_WORDS][16];
    dgm_text words[TOY_WORDS];
    dgm_error err;
    for (int i = 0; i < count; i++) {
        snprintf(spelling[i], sizeof spelling[i], "w%d", i);
        words[i] = dgm_text_of(spelling[i]);
    }
    const dgm_vocab_source s = {.kind = DGM_VOCAB_WORDS,
                                .size = count,
                                .words = words,
                                .word_count = (size_t)count,
                                .eos = TOY_EOS,
                                .unk = TOY_UNK,
                                .pad = -1,
                                .bos = -1};
    if (dgm_vocab_open(&vocabulary, &s, &err) != DGM_OK) return 1;
    return dgm_surfaces_open(&surfaces, vocabulary, &err) != DGM_OK;
}

static inline int toy_words_close(void **state)
{
    (void)state;
    dgm_surfaces_close(&surfaces);
    dgm_vocab_close(&vocabulary);
    return 0;
}

#endif
