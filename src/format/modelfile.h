// SPDX-License-Identifier: MIT
// A translation model in a GGUF file (docs/internals/FORMAT.md, section 2): the keys that every architecture
// shares. Architecture keys and weights are read by model/ through gguf.h.
//
// Everything returned is a view that lives as long as the dgm_gguf.
#ifndef DGM_FORMAT_MODELFILE_H
#define DGM_FORMAT_MODELFILE_H

#include "base/precision.h"
#include "format/gguf.h"

#define DGM_FORMAT_VERSION 1
#define DGM_SPEC_VOCAB_MAX (1 << 24)

// Opens a file and checks that it is a Dragoman model this program can read: general.architecture,
// dragoman.format_version (newer: DGM_ERR_VERSION), dragoman.architecture present.
dgm_status dgm_modelfile_open(dgm_gguf **g, const char *path, dgm_error *err);
// The same checks on a file that is open already.
dgm_status dgm_modelfile_check(const dgm_gguf *g, dgm_error *err);
// "transformer", "rnn": the value of dragoman.architecture of a checked file.
const char *dgm_modelfile_architecture(const dgm_gguf *g);

typedef enum dgm_side { DGM_SOURCE = 0, DGM_TARGET = 1 } dgm_side;

typedef struct dgm_key_name {
    char text[64];
} dgm_key_name;

dgm_key_name dgm_side_key(dgm_side side, const char *rest); // "dragoman.source.REST"

typedef enum dgm_spec_kind {
    DGM_SPEC_SENTENCEPIECE = 0,
    DGM_SPEC_WORDS = 1,
    DGM_SPEC_BPE = 2
} dgm_spec_kind;

extern const char *const dgm_vocab_kind_names[]; // in that order; NULL-terminated

typedef enum dgm_spec_tokenizer {
    DGM_SPEC_TOKENIZER_NONE = 0, // text is split at spaces
    DGM_SPEC_TOKENIZER_MOSES = 1,
    DGM_SPEC_TOKENIZER_SACREMOSES = 2,
    DGM_SPEC_TOKENIZER_CONSERVATIVE = 3,
    DGM_SPEC_TOKENIZER_AGGRESSIVE = 4
} dgm_spec_tokenizer;

extern const char *const dgm_tokenizer_names[]; // in that order; NULL-terminated

// Of `vocab.moses` and `vocab.bpe.flags`: bit i is name i. NULL-terminated.
extern const char *const dgm_moses_flag_names[]; // aggressive, escape, punctuation, unicode
extern const char *const dgm_bpe_flag_names[];   // see dgm_spec_bpe_flag
typedef enum dgm_spec_bpe_flag {
    DGM_SPEC_BPE_END_APART = 1,
    DGM_SPEC_BPE_RESTRICTED = 2,
    DGM_SPEC_BPE_PREFIX_SPACE = 4,
    DGM_SPEC_BPE_WHOLE_TEXT = 8,
    DGM_SPEC_BPE_BYTE_FALLBACK = 16,
    DGM_SPEC_BPE_FUSE_UNKNOWN = 32,
    DGM_SPEC_BPE_WHOLE_WORDS = 64,
    DGM_SPEC_BPE_SPACE_ALWAYS = 128
} dgm_spec_bpe_flag;
extern const char *const dgm_bpe_style_names[]; // subword-nmt, byte-level, metaspace, joiner, spacer
typedef enum dgm_spec_bpe_style {
    DGM_SPEC_BPE_SUBWORD_NMT = 0,
    DGM_SPEC_BPE_BYTE_LEVEL = 1,
    DGM_SPEC_BPE_METASPACE = 2,
    DGM_SPEC_BPE_JOINER = 3,
    DGM_SPEC_BPE_SPACER = 4
} dgm_spec_bpe_style;

// kind `bpe`
typedef struct dgm_bpe_spec {
    dgm_spec_bpe_style style;
    unsigned flags; // dgm_spec_bpe_flag
    dgm_gguf_strings merges, protect, normalizer;
    const char *separator; // "" if absent
    const uint8_t *charsmap;
    size_t charsmap_size;
    const int32_t *control; // ids that stand for no text
    size_t control_count;
} dgm_bpe_spec;

// Section 2.2 for one side. All ids are in [0, size), lists too; absent ids are -1.
typedef struct dgm_vocab_spec {
    bool shared; // target only: the file has no target vocabulary, this is the source's
    dgm_spec_kind kind;
    int size;
    const uint8_t *model; // sentencepiece: the serialised model
    size_t model_size;
    const int32_t *map; // sentencepiece: id of piece i, or -1; NULL = identity
    size_t map_count;
    dgm_gguf_strings words; // words, bpe: spelling of each id, `size` of them
    dgm_spec_tokenizer tokenizer;
    unsigned moses; // of sacremoses: bits of dgm_moses_flag_names
    dgm_bpe_spec bpe;
    const char *language;    // of the tokeniser's rules; "" if absent
    dgm_gguf_strings extra;  // spellings of the last extra.count ids
    const int32_t *frequent; // most frequent ids first; NULL: the ids are in that order
    size_t frequent_count;
    int eos, unk, pad, bos;
    bool drop_unk;         // dragoman.decode.drop_unk: the unknown token is not written
    const int32_t *prefix; // ids put before every sentence
    size_t prefix_count;
    bool append_eos;      // source
    int start;            // target: first decoder input, -1 = the architecture's own
    int eod, mask;        // target: end of a decoder of pairs; masked word of a cmlm; or -1
    int order;            // index into dgm_order_names; a source's is l2r or r2l
    const int32_t *never; // target: ids that are never chosen
    size_t never_count;
} dgm_vocab_spec;

// Order of dragoman.target.order; NULL-terminated.
extern const char *const dgm_order_names[]; // l2r, r2l, bidirectional

dgm_status dgm_modelfile_vocab(const dgm_gguf *g, dgm_side side, dgm_vocab_spec *out,
                               dgm_error *err);
// The token of the target that ends a sentence: EOD of a decoder of pairs, else EOS; -1: none, a
// masked language model is told the length.
int dgm_modelfile_end(const dgm_vocab_spec *target);

// Order of dragoman.decode.finish; NULL-terminated.
extern const char *const dgm_finish_names[]; // as dgm_finish of search/search.h

enum { DGM_FIRST_MAX = 256 }; // of "first:K" and "ctranslate2:K"

// One of these names, or "first:K" or "ctranslate2:K" with K of 1 to DGM_FIRST_MAX. *first: K, 0 where there is none.
// On false both keep their values.
bool dgm_finish_parse(const char *text, int *finish, int *first);

typedef struct dgm_finish_text {
    char text[32];
} dgm_finish_text;

dgm_finish_text dgm_finish_write(int finish, int first); // what dgm_finish_parse reads

// Section 2.3 with the defaults filled in.
typedef struct dgm_decode_spec {
    int beam;
    int finish;       // index into dgm_finish_names
    int finish_first; // K of "first:K" or "ctranslate2:K"; 0: none given
    int precision; // dgm_precision; -1 = the file does not say
    float length_penalty, word_penalty;
    int max_length;
    float max_length_factor;
    int max_source;
    bool allow_unk;
    int align_layer, align_head;
    bool self_normalised;
    bool paragraphs; // trained on several sentences at once
} dgm_decode_spec;

dgm_status dgm_modelfile_decode(const dgm_gguf *g, dgm_decode_spec *out, dgm_error *err);

#endif
