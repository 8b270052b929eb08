// SPDX-License-Identifier: MIT
// Keys of a model of words w0, w1, ...: what a file must have for its shortlist or its clusters to
// be read. No weights.
#ifndef DGM_TESTS_WORDS_MODEL_H
#define DGM_TESTS_WORDS_MODEL_H

#include <stdio.h>

#include "format/gguf.h"

enum { WORDS_MODEL_MAX = 256 };

// eos 0, unk 1. third: another spelling of word 3, NULL: none.
static inline void words_model_put(dgm_gguf_writer *w, int size, const char *third)
{
    static char text[WORDS_MODEL_MAX][16];
    const char *words[WORDS_MODEL_MAX];
    for (int i = 0; i < size; i++) {
        snprintf(text[i], sizeof text[i], "w%d", i);
        words[i] = text[i];
    }
    if (third) words[3] = third;
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", "transformer");
    dgm_gguf_set_string(w, "dragoman.source.vocab.kind", "words");
    dgm_gguf_set_u32(w, "dragoman.source.vocab.size", (uint32_t)size);
    dgm_gguf_set_strings(w, "dragoman.source.vocab.words", words, (size_t)size);
    dgm_gguf_set_string(w, "dragoman.source.vocab.tokenizer", "none");
    dgm_gguf_set_i32(w, "dragoman.source.eos", 0);
    dgm_gguf_set_i32(w, "dragoman.source.unk", 1);
}

// The last word is never chosen.
static inline void words_model_never_last(dgm_gguf_writer *w, int size)
{
    const int32_t never = size - 1;
    dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, &never, 1);
}

#endif
