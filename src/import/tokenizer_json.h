// SPDX-License-Identifier: MIT
// tokenizer.json of Hugging Face tokenizers as a vocabulary of a model file under construction.
//
//   Unigram   becomes a SentencePiece model: pieces, scores, compiled character map, bytes
//   BPE       becomes a `bpe` vocabulary: byte-level, metaspace, or with "</w>" at the end of words
//
// What has no counterpart (other models, normalizers, pre-tokenizers) is refused by its name.
#ifndef DGM_IMPORT_TOKENIZER_JSON_H
#define DGM_IMPORT_TOKENIZER_JSON_H

#include "base/json.h"
#include "format/gguf.h"
#include "format/modelfile.h"

enum { DGM_TOKENIZER_AROUND = 8 };

typedef struct dgm_tokenizer_info {
    int size;                              // ids
    int eos, unk, pad, bos;                // </s>, <unk>, <pad>, <s> or their likes; -1: none
    int32_t before[DGM_TOKENIZER_AROUND]; // ids that its post-processor puts around a text
    int32_t behind[DGM_TOKENIZER_AROUND];
    int before_count, behind_count;
} dgm_tokenizer_info;

// Sets dragoman.SIDE.vocab.* and the ids eos, unk, pad and bos that it knows; the caller may set them anew.
// size: ids of the model, at least the tokenizer's; 0: as many. info may be NULL. Messages name the key,
// not the file.
dgm_status dgm_vocab_from_tokenizer_json(dgm_gguf_writer *w, dgm_side side, const json_t *json, int size,
                                         dgm_tokenizer_info *info, dgm_error *err);

#endif
