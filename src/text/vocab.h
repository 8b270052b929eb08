// SPDX-License-Identifier: MIT
// A vocabulary: text to token ids and back. Built from the metadata of a model file
// (docs/internals/FORMAT.md, section 2.2), used by engine/ and by the tools.
//
//   sentencepiece   text -> pieces (spm.h) -> map -> ids    (Marian numbers pieces anew)
//   words           text -> Moses tokeniser or split at spaces -> ids  (tokenize.h)
//   bpe             text -> words -> merged symbols -> ids             (subwords.h)
//
// Ids that the SentencePiece model does not hold (<pad>, language tokens) have a spelling in
// `extra`: they are found by dgm_vocab_id, never come out of dgm_vocab_encode and decode to
// nothing. eos, pad and bos decode to nothing too; encode never adds eos: the engine does.
//
// An open vocabulary is never changed: any number of threads may use it at once.
#ifndef DGM_TEXT_VOCAB_H
#define DGM_TEXT_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"
#include "text/subwords.h"
#include "text/unicode.h"

#define DGM_VOCAB_MAX (1 << 24) // ids

typedef enum dgm_vocab_kind {
    DGM_VOCAB_SENTENCEPIECE = 1,
    DGM_VOCAB_WORDS = 2,
    DGM_VOCAB_BPE = 3,
} dgm_vocab_kind;

typedef enum dgm_vocab_tokenizer {
    DGM_TOKENIZER_NONE = 0,  // words stand between spaces, text is words joined by one space
    DGM_TOKENIZER_MOSES = 1, // tokenize.h with the rules of `language`
    DGM_TOKENIZER_SACREMOSES = 2, // sacremoses.h: text is rewritten, as models of other systems want it
    DGM_TOKENIZER_CONSERVATIVE = 3, // opennmt.h, bpe in the styles joiner and spacer
    DGM_TOKENIZER_AGGRESSIVE = 4,
} dgm_vocab_tokenizer;

// Everything is borrowed for the call to open only.
typedef struct dgm_vocab_source {
    dgm_vocab_kind kind;
    int32_t size;    // number of ids; 0: as many as pieces or words
    const void *spm; // sentencepiece: the serialised model
    size_t spm_size;
    const int32_t *map;    // [map_count] id of piece i, -1 = not in the vocabulary; NULL: i
    size_t map_count;      // must be the number of pieces
    const dgm_text *extra; // [extra_count] spellings of the ids size - extra_count .. size - 1
    size_t extra_count;
    const dgm_text *words; // words, bpe: [word_count] spelling of id i
    size_t word_count;
    dgm_vocab_tokenizer tokenizer;
    dgm_text language; // words, bpe: code such as "de"; empty or unknown: generic rules
    unsigned moses_options;      // of sacremoses: dgm_moses_option
    const dgm_bpe_options *bpe;  // bpe: all but tokeniser and language, which stand here
    const int32_t *control;      // bpe: [control_count] ids that stand for no text beside eos, pad and bos
    size_t control_count;
    int32_t eos, unk, pad, bos; // ids; -1 = none. unk is required
    bool drop_unk;              // the unknown id decodes to nothing
} dgm_vocab_source;

typedef struct dgm_vocab dgm_vocab;

// A byte range of a text.
typedef struct dgm_span {
    uint32_t begin, end;
} dgm_span;

// A growing list of tokens. Start with all zero; a call appends nothing but replaces the content;
// capacity is kept for the next call.
typedef struct dgm_tokens {
    int32_t *ids;    // [count]
    dgm_span *spans; // [count] where the token stands in the text
    size_t count;
    size_t ids_cap, spans_cap;
} dgm_tokens;

void dgm_tokens_free(dgm_tokens *t); // accepts NULL and all zero; ready for use again

// The message does not name the file: the caller prefixes it. *vocab is NULL on failure.
dgm_status dgm_vocab_open(dgm_vocab **vocab, const dgm_vocab_source *source, dgm_error *err);
void dgm_vocab_close(dgm_vocab **vocab); // sets *vocab to NULL; accepts NULL and NULL inside

dgm_vocab_kind dgm_vocab_get_kind(const dgm_vocab *v);
// Is text what it takes, or words that a tokeniser set apart already?
bool dgm_vocab_takes_text(const dgm_vocab *v);
int32_t dgm_vocab_size(const dgm_vocab *v);
int32_t dgm_vocab_eos(const dgm_vocab *v); // these four: -1 = none
int32_t dgm_vocab_unk(const dgm_vocab *v);
int32_t dgm_vocab_pad(const dgm_vocab *v);
int32_t dgm_vocab_bos(const dgm_vocab *v);

// Text to ids without eos. Invalid UTF-8 is read as U+FFFD. The span of a token is the part of
// `text` it stands for, the space before it not counted; tokens without any text (an added space
// mark) have an empty span. Text is at most 2^31 - 1 bytes.
dgm_status dgm_vocab_encode(const dgm_vocab *v, dgm_text text, dgm_tokens *out, dgm_error *err);

// Ids to text, appended to out. spans (NULL or [count]): the part of the appended text that each
// id made, counted from its beginning. The unknown id decodes to what SentencePiece writes
// (" \u2047 ") or to the word stored for it, or to nothing (drop_unk). An id outside the
// vocabulary is an error.
// dgm_vocab_decode_spelled: spelled (NULL or [count], word and bpe vocabularies only): where its data is
// not NULL, that is written in place of the vocabulary's spelling.
dgm_status dgm_vocab_decode_spelled(const dgm_vocab *v, const int32_t *ids, const dgm_text *spelled,
                                    size_t count, dgm_writer *out, dgm_span *spans, dgm_error *err);
// How many of the first ids make a text that, but for its last word, is the beginning of any text whose
// ids begin so: where a quotation mark stands depends on those behind it.
size_t dgm_vocab_settled(const dgm_vocab *v, const int32_t *ids, size_t count);
dgm_status dgm_vocab_decode(const dgm_vocab *v, const int32_t *ids, size_t count, dgm_writer *out,
                            dgm_span *spans, dgm_error *err);

// Spelling of an id in the vocabulary ("\u2581the", "</s>"); empty for ids without one or out of
// range. Valid as long as the vocabulary.
dgm_text dgm_vocab_piece(const dgm_vocab *v, int32_t id);
// Id of a spelling; -1 when there is none.
int32_t dgm_vocab_id(const dgm_vocab *v, dgm_text piece);
bool dgm_vocab_is_unknown(const dgm_vocab *v, int32_t id);
// eos, pad, bos, extra and SentencePiece control tokens: nothing of the text.
bool dgm_vocab_is_control(const dgm_vocab *v, int32_t id);
// Does this token begin a word (its piece starts with the space mark; every word of `words`)? Of bpe,
// where only the token before could tell (@@): yes.
bool dgm_vocab_begins_word(const dgm_vocab *v, int32_t id);
// What a token of a bpe vocabulary writes wherever it stands, for surface.h; *inside: it continues a word.
void dgm_vocab_surface(const dgm_vocab *v, int32_t id, dgm_writer *out, bool *inside);

// How usual a token is: the score of its SentencePiece model, higher for what is more frequent; 0 for
// ids that have none.
float dgm_vocab_score(const dgm_vocab *v, int32_t id);

// The ways of OPUS-MT and MADLAD-400 to name the target language: ">>deu<< text", "<2de> text". When text
// begins so and the spelling is a token, gives its id and the number of bytes to skip; otherwise -1 and 0.
int32_t dgm_vocab_language_prefix(const dgm_vocab *v, dgm_text text, size_t *skip);

#endif
