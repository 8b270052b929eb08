// SPDX-License-Identifier: MIT
// What the files of subwords.h share.
#ifndef DGM_TEXT_SUBWORDS_PRIVATE_H
#define DGM_TEXT_SUBWORDS_PRIVATE_H

#include <stdatomic.h>

#include "text/bpe.h"
#include "text/normalize.h"
#include "text/subwords.h"

#define DGM_SPACE_MARK 0x2581u // ▁

struct dgm_subwords {
    dgm_bpe_style style;
    const dgm_spelling_list *spellings;
    int32_t unk;
    bool end_apart, restricted, prefix_space, space_always, whole_text, byte_fallback, fuse_unknown, whole_words, moses;
    dgm_moses_rules rules;
    dgm_opennmt_mode opennmt;
    dgm_bpe *bpe;
    dgm_normalizer *normalizer; // NULL: none
    dgm_spelling_list protect;
    char *separator;
    size_t separator_size;
    _Atomic unsigned char *whole; // [spellings] is the token how its own word is encoded? 0 unknown
    int32_t bytes[256];           // ids of <0x00> ..., -1 = none
    uint32_t letters[256];        // GPT-2's letter of a byte
};

// GPT-2's letters for bytes, both ways.
uint32_t dgm_byte_letter(unsigned char byte);
int dgm_letter_byte(uint32_t code); // -1: none
// "<0xE2>": the byte, or -1.
int dgm_byte_token(dgm_text token);

// Appends the ranges of GPT-2's words: contractions, and runs of letters, numbers and others with
// one space before them.
dgm_status dgm_split_gpt2(const dgm_glyphs *line, dgm_ranges *words, dgm_error *err);

#endif
