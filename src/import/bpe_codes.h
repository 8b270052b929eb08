// SPDX-License-Identifier: MIT
// Files of byte-pair encodings beside a model, and the keys of a `bpe` vocabulary (docs/internals/FORMAT.md,
// section 2.2) in a model file under construction.
//
//   codes   subword-nmt: "#version: 0.2", then "left right" a line, first learnt first; without a
//           version it is 0.1, unless its symbols say that it cannot be. fastBPE: "left right count" a line
//   dict    fairseq: "token count" a line, behind <s> <pad> </s> <unk>
//
// Everything that was read belongs to the object; messages name file and line.
#ifndef DGM_IMPORT_BPE_CODES_H
#define DGM_IMPORT_BPE_CODES_H

#include "base/bytes.h"
#include "format/gguf.h"
#include "format/modelfile.h"

// Lines of text, each ended by NUL.
typedef struct dgm_string_list {
    const char **items; // [count] into storage
    size_t count, cap;
    char *storage;
} dgm_string_list;

void dgm_string_list_free(dgm_string_list *l); // accepts all zero

typedef struct dgm_bpe_codes {
    dgm_string_list merges; // "left right"
    bool end_apart;         // version 0.1: the end of a word is a symbol of its own
} dgm_bpe_codes;

dgm_status dgm_bpe_codes_read(dgm_bpe_codes *c, const char *path, dgm_error *err);
// The same from memory; messages name the line alone.
dgm_status dgm_bpe_codes_parse(dgm_bpe_codes *c, dgm_text text, dgm_error *err);
void dgm_bpe_codes_free(dgm_bpe_codes *c); // accepts all zero

// tokens: <s> 0, <pad> 1, </s> 2, <unk> 3, then the file's.
dgm_status dgm_fairseq_dict_read(dgm_string_list *tokens, const char *path, dgm_error *err);
dgm_status dgm_fairseq_dict_parse(dgm_string_list *tokens, dgm_text text, dgm_error *err);

// A vocabulary to be written. All zero but for the first lines is a good beginning: words between spaces.
typedef struct dgm_bpe_keys {
    const char *const *tokens; // [size] spelling of each id
    int size;
    int eos, unk, pad, bos; // -1: none; unk and eos are required
    dgm_spec_bpe_style style;
    unsigned flags; // dgm_spec_bpe_flag
    const char *const *merges;
    size_t merge_count;
    const char *separator;   // NULL: the style's own
    const char *const *protect; // glossary
    size_t protect_count;
    const char *const *normalizer;
    size_t normalizer_count;
    const void *charsmap;
    size_t charsmap_size;
    const int32_t *control; // ids that stand for no text beside eos, pad, bos
    size_t control_count;
    dgm_spec_tokenizer tokenizer;
    unsigned moses;       // bits of dgm_moses_flag_names
    const char *language; // of sacremoses; NULL: none
} dgm_bpe_keys;

// Sets dragoman.SIDE.vocab.* and the ids. Values are copied.
void dgm_bpe_keys_set(dgm_gguf_writer *w, dgm_side side, const dgm_bpe_keys *k);

// FSMT and others spell tokens the other way round, "low" inside a word and "er</w>" at its end. Gives
// the list in subword-nmt's spelling ("low@@", "er"); special [size]: tokens to be left as they are.
dgm_status dgm_bpe_respell(dgm_string_list *out, const char *const *tokens, const bool *special, int size,
                           dgm_error *err);

#endif
