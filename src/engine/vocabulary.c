// SPDX-License-Identifier: MIT
// Vocabularies of a model file: the format layer's description becomes the text layer's object.
//
// The two layers do not know each other's types; this file is the bridge. It also tells whether
// the members of an ensemble speak of the same tokens.
#include <string.h>

#include "base/mem.h"
#include "engine/engine_private.h"
#include "format/modelfile.h"

// Views of a string array; *out belongs to the caller.
static dgm_status collect(dgm_gguf_strings strings, dgm_text **out, size_t *count, dgm_error *err)
{
    *out = NULL;
    *count = 0;
    if (strings.count == 0) return DGM_OK;
    dgm_text *list = dgm_calloc((size_t)strings.count, sizeof *list);
    if (!list) return dgm_no_memory(err);
    size_t n = 0;
    for (dgm_gguf_text s; dgm_gguf_strings_next(&strings, &s);)
        list[n++] = (dgm_text){s.data, s.size};
    *out = list;
    *count = n;
    return DGM_OK;
}

dgm_status dgm_vocabulary_load(const dgm_gguf *file, dgm_side side, dgm_vocab **vocab, bool *shared,
                               dgm_error *err)
{
    *vocab = NULL;
    dgm_vocab_spec spec = {0};
    DGM_TRY(dgm_modelfile_vocab(file, side, &spec, err));
    if (shared) {
        *shared = spec.shared;
        if (spec.shared) return DGM_OK;
    }
    dgm_text *words = NULL, *extra = NULL;
    dgm_vocab_source v = {
        .kind = spec.kind == DGM_SPEC_WORDS ? DGM_VOCAB_WORDS : DGM_VOCAB_SENTENCEPIECE,
        .size = spec.size,
        .spm = spec.model,
        .spm_size = spec.model_size,
        .map = spec.map,
        .map_count = spec.map_count,
        .tokenizer =
            spec.tokenizer == DGM_SPEC_TOKENIZER_MOSES ? DGM_TOKENIZER_MOSES : DGM_TOKENIZER_NONE,
        .language = dgm_text_of(spec.language),
        .eos = spec.eos,
        .unk = spec.unk,
        .pad = spec.pad,
        .bos = spec.bos,
        .drop_unk = spec.drop_unk,
    };
    dgm_status st = collect(spec.words, &words, &v.word_count, err);
    if (st == DGM_OK) st = collect(spec.extra, &extra, &v.extra_count, err);
    v.words = words;
    v.extra = extra;
    if (st == DGM_OK) st = dgm_vocab_open(vocab, &v, err);
    dgm_free(words);
    dgm_free(extra);
    if (st != DGM_OK && st != DGM_ERR_MEMORY)
        dgm_error_prefix(err, "%s vocabulary", side == DGM_SOURCE ? "source" : "target");
    return st;
}

dgm_status dgm_vocabulary_same(const dgm_vocab *a, const dgm_vocab *b, const char *what,
                               dgm_error *err)
{
    int32_t size = dgm_vocab_size(a);
    DGM_FAIL_IF(size != dgm_vocab_size(b), err, DGM_ERR_UNSUPPORTED,
                "its %s vocabulary has %d tokens, the first model's %d: the models of an ensemble "
                "must share their vocabularies",
                what, (int)dgm_vocab_size(b), (int)size);
    DGM_FAIL_IF(dgm_vocab_eos(a) != dgm_vocab_eos(b), err, DGM_ERR_UNSUPPORTED,
                "its %s end symbol is token %d, the first model's %d: the models of an ensemble "
                "must share their vocabularies",
                what, (int)dgm_vocab_eos(b), (int)dgm_vocab_eos(a));
    for (int32_t i = 0; i < size; i++)
        DGM_FAIL_IF(!dgm_text_equal(dgm_vocab_piece(a, i), dgm_vocab_piece(b, i)), err,
                    DGM_ERR_UNSUPPORTED,
                    "token %d of its %s vocabulary differs from the first model's: the models of "
                    "an ensemble must share their vocabularies",
                    (int)i, what);
    return DGM_OK;
}
