// SPDX-License-Identifier: MIT
// Text before and after translation.
#ifndef DRAGOMAN_TEXT_H
#define DRAGOMAN_TEXT_H

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// Where a sentence stands in a text: bytes from begin to end, without white space at either end.
typedef struct dgm_sentence {
    size_t begin, end;
} dgm_sentence;

// Finds the sentences of a text of any length, which may have line breaks; an empty line ends a
// sentence. Knows abbreviations, ordinals, numbers, initials, quotes and brackets of en, de, fr, es
// and it (`language`: a code such as "de" or "de-AT"; NULL or another one: what holds everywhere), and
// the stops of other scripts. This is what settings.split does with a line.
DGM_API dgm_status dgm_sentences(const char *text, size_t size, const char *language,
                                 dgm_sentence **sentences, size_t *count, dgm_error *error);
DGM_API void dgm_sentences_free(dgm_sentence **sentences);

// A whole text in another encoding, in UTF-8, without a byte order mark; DGM_ERR_TEXT, with the line, where bytes
// stand for nothing. *out ends with NUL; dgm_string_free releases it. dgm_lines_open_as reads files so.
DGM_API dgm_status dgm_decode(const char *text, size_t size, dgm_encoding encoding, char **out,
                              size_t *out_size, dgm_error *error);

// A language that a text may be in.
typedef struct dgm_detected {
    char language[16]; // a code such as "de" or "zh-Hant", as `among` has it
    float confidence;  // 0 to 1
} dgm_detected;

// Which language is a text in? Fills up to `most` of `found`, the most probable first; *count is 0 where the text
// has no letters, or none of the languages is probable. among: codes between commas, "en,de,pt-BR", of which it is one
// (dgm_models_languages: all that models are there for); NULL or "": any of the 80 that CLD2 knows. Sentences are
// recognised in all of them, a few words best among few languages (docs/manual/LANGUAGES.md).
DGM_API dgm_status dgm_detect(const char *text, size_t size, const char *among, dgm_detected *found,
                              size_t most, size_t *count, dgm_error *error);

// Text as models have seen it, valid UTF-8 of any length: what looks the same and is written in other bytes.
// Letters and their marks are composed (NFC), full-width letters and ligatures become plain ones, soft
// hyphens, zero-width characters and control characters are left out (docs/manual/TEXT.md says which). A
// translator does this with every line unless settings.raw is set. Released as above.
DGM_API dgm_status dgm_tidy(const char *text, size_t size, char **tidy, size_t *tidy_size,
                            dgm_error *error);

// A sentence in capitals, or a headline in Title Case, in ordinary case, as the translator's model gets it;
// names and acronyms keep their capitals as far as its vocabulary knows them. Other text comes back as it is, and
// so does all text where the vocabulary is no SentencePiece model. As long as before; released as above.
DGM_API dgm_status dgm_ordinary_case(const dgm_translator *translator, const char *text, size_t size,
                                     char **ordinary, size_t *ordinary_size, dgm_error *error);

// The tokens that a translator's model makes of a text, as its vocabulary spells them: of the source side, or of
// the target side where `target` is not 0. What the model gets besides (end symbol, languages) is not among them.
typedef struct dgm_token_list {
    size_t size;
    const char *const *items; // each ends with NUL
    size_t count;
} dgm_token_list;

DGM_API dgm_status dgm_text_tokens(const dgm_translator *translator, int target, const char *text, size_t size,
                                   dgm_token_list **tokens, dgm_error *error);
DGM_API void dgm_token_list_free(dgm_token_list **tokens);
// And back: tokens as text, symbols that stand for none left out. One that the vocabulary does not have is its
// unknown word. dgm_string_free releases it.
DGM_API dgm_status dgm_tokens_text(const dgm_translator *translator, int target, const char *const *tokens,
                                   size_t count, char **text, dgm_error *error);

// What a translation must not damage, in a sentence: settings.protect.
typedef enum dgm_protected_kind {
    DGM_PROTECTED_NUMBER = 0,      // above 12, or with decimals
    DGM_PROTECTED_PRICE = 1,       // a number with the sign of a currency
    DGM_PROTECTED_TIME = 2,        // of the day
    DGM_PROTECTED_DATE = 3,        // in digits
    DGM_PROTECTED_ADDRESS = 4,     // e-mail addresses, URLs, names of hosts and accounts
    DGM_PROTECTED_PLACEHOLDER = 5, // {name} {{x}} ${x} %s %1$s %(name)s <tag> &nbsp;
    DGM_PROTECTED_CODE = 6,        // identifiers, paths, file names, versions, telephone numbers
    DGM_PROTECTED_NAME = 7         // of people, with letters that are rare in the source language
} dgm_protected_kind;

// Where it stands: bytes from begin to end.
typedef struct dgm_protected {
    size_t begin, end;
    int32_t kind; // dgm_protected_kind
} dgm_protected;

// Finds what is to be protected in a sentence that is translated from `source` to `target` (codes such
// as "de" or "de-AT"; NULL or "": unknown). Numbers, prices, times and dates are found where
// both languages are known to write them; addresses, placeholders and code always.
DGM_API dgm_status dgm_protected_find(const char *text, size_t size, const char *source,
                                      const char *target, dgm_protected **found, size_t *count,
                                      dgm_error *error);
DGM_API void dgm_protected_free(dgm_protected **found);

// Which of these does a translation hold, in a form that the target language has for it? "1,299.99" may
// have become "1.299,99", "4:30 p.m." "16.30 Uhr"; addresses, placeholders and code stay to the
// byte. kept (NULL or [count]) gets 1 or 0 for each; returns how many are kept.
DGM_API size_t dgm_protected_check(const char *text, size_t size, const dgm_protected *found,
                                   size_t count, const char *source, const char *target,
                                   const char *translation, size_t translation_size,
                                   unsigned char *kept);

// Writes one of them in the target language: at most `room` bytes with the final NUL. Returns how many
// bytes there are without it, also where they do not fit; 0 without memory.
DGM_API size_t dgm_protected_write(const char *text, size_t size, const dgm_protected *one,
                                   const char *source, const char *target, char *out, size_t room);

// Does this line of constraints (dgm_input.constraints) look like a row of a glossary, which would be a
// mistake: two entries without any mark, the first of which stands in the text to translate? 1 or 0.
DGM_API int dgm_constraints_like_terms(const char *constraints, size_t constraints_size,
                                       const char *text, size_t text_size);

#ifdef __cplusplus
}
#endif
#endif
