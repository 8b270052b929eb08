// SPDX-License-Identifier: MIT
// What the files of vocab.h share: the object, and lists of tokens.
#ifndef DGM_TEXT_VOCAB_PRIVATE_H
#define DGM_TEXT_VOCAB_PRIVATE_H

#include "text/spellings.h"
#include "text/spm.h"
#include "text/subwords.h"
#include "text/tokenize.h"
#include "text/vocab.h"

struct dgm_vocab {
    dgm_vocab_kind kind;
    int32_t size, eos, unk, pad, bos;
    bool drop_unk;
    dgm_spm *spm;
    int32_t *to_id;    // [pieces]
    int32_t *to_piece; // [size]
    dgm_spelling_list words; // of every id; sentencepiece: the extra tokens from id `extra_first` on
    int32_t extra_first;
    dgm_vocab_tokenizer tokenizer;
    dgm_language language;
    dgm_subwords *subwords; // bpe, and words by sacremoses
    bool *control;          // bpe: [size]
};

dgm_status dgm_tokens_push(dgm_tokens *t, int32_t id, dgm_span span, dgm_error *err);
// Does id i of a text to be decoded write nothing? One whose text comes from elsewhere always writes it.
bool dgm_vocab_left_out(const dgm_vocab *v, int32_t id, const dgm_text *spelled, size_t i);

// vocab_subwords.c: the kinds that subwords.h serves.
dgm_status dgm_vocab_encode_subwords(const dgm_vocab *v, dgm_text text, dgm_tokens *out, dgm_error *err);
dgm_status dgm_vocab_decode_subwords(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                                     size_t count, dgm_writer *out, dgm_span *spans, dgm_error *err);
size_t dgm_vocab_settled_subwords(const dgm_vocab *v, const int32_t *ids, size_t count);

#endif
