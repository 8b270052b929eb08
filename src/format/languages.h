// SPDX-License-Identifier: MIT
// The languages of a model (docs/internals/FORMAT.md, 2.1): which directions it translates, and which tokens tell
// it the direction of a sentence.
//
// A multilingual model is told by tokens before the source, before the target, or both; each side's
// list says whose language they name. Who asks for a direction names languages; unknown, missing and
// ambiguous names are errors that say what there is. A bilingual model is the case of one direction
// without tokens.
#ifndef DGM_FORMAT_LANGUAGES_H
#define DGM_FORMAT_LANGUAGES_H

#include "format/modelfile.h"

enum { DGM_TAGS_MAX = 2 };

typedef struct dgm_languages {
    int count[2];       // languages of each side (dgm_side); 0: the file does not say
    char **code[2];     // as written in the file, e.g. "de", "deu_Latn"
    int32_t *token[2];  // of each language; NULL: the side has none
    bool *pairs;        // [sources, targets] which are offered; NULL: all but a language into itself
    dgm_side tag[2][DGM_TAGS_MAX]; // [side of the text]: whose language each token before it names
    int tags[2];        // how many
    bool last;          // the source's stand behind its end symbol instead
    int first[2];       // the direction when none is asked for; -1: none is
} dgm_languages;

// Reads and checks the keys; vocabularies: sizes, which tokens must be below. A file without any
// languages gives an empty struct.
dgm_status dgm_languages_read(const dgm_gguf *g, const int vocabulary[2], dgm_languages *out,
                              dgm_error *err);
void dgm_languages_free(dgm_languages *l); // accepts a zeroed struct

bool dgm_languages_offers(const dgm_languages *l, int source, int target);
size_t dgm_languages_directions(const dgm_languages *l); // how many it offers

// The direction that names mean; NULL or "": not said. A name is a code of the file in any case, "-"
// or "_" between its parts; its first part alone; the letters of ISO 639-1 for those of 639-3 and back; one
// with a region that the file does not tell apart ("en-US"); or the language's English or native name.
dgm_status dgm_languages_choose(const dgm_languages *l, const char *source, const char *target,
                                int direction[2], dgm_error *err);

// Tokens of a direction on one side, up to DGM_TAGS_MAX; returns how many.
int dgm_languages_tokens(const dgm_languages *l, dgm_side side, const int direction[2],
                         int32_t *out);

// Decoding defaults of one direction, where the file has some of its own (docs/internals/FORMAT.md, 2.3): replaces
// what is said in *io, which holds the file's for all directions.
typedef struct dgm_direction_spec {
    float length_penalty, word_penalty, max_length_factor;
    const char *shortlist; // what `--shortlist` takes; NULL: not said. Of the file
} dgm_direction_spec;

dgm_status dgm_languages_defaults(const dgm_gguf *g, const dgm_languages *l, const int direction[2],
                                  dgm_direction_spec *io, dgm_error *err);

// language_names.c: does `name` mean `code`? 0: no, 1: a part of it, 2: exactly.
int dgm_language_matches(const char *name, const char *code);
// "German" for "de" or "deu_Latn"; NULL: not known. Static memory.
const char *dgm_language_english(const char *code, size_t *size);

#endif
