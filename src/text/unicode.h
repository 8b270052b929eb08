// SPDX-License-Identifier: MIT
// UTF-8 and Unicode for the rest of text/: checking and repairing text from outside, code points,
// character classes, case, NFC. Properties come from utf8proc (Unicode 15).
//
// A dgm_text is a view: bytes that somebody else owns, not terminated by NUL. Output goes to a
// dgm_writer (base/bytes.h); set its size to 0 to use it again.
#ifndef DGM_TEXT_UNICODE_H
#define DGM_TEXT_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/bytes.h"
#include "base/status.h"

dgm_text dgm_text_trim(dgm_text t); // without white space at both ends

// ---- UTF-8 ---------------------------------------------------------------------------------
// Strict: no overlong forms, no surrogates, nothing above U+10FFFF.
bool dgm_utf8_valid(dgm_text t);
// Offset of the first byte that does not belong to a valid sequence; t.size when all are valid.
size_t dgm_utf8_first_bad(dgm_text t);

// Reads one code point from s[0..n), n > 0; returns its length in bytes. An invalid sequence gives
// U+FFFD and the length of its longest valid beginning (at least 1), the way Python and browsers
// replace.
size_t dgm_utf8_next(const char *s, size_t n, uint32_t *code);
// Start of the code point that ends before position pos of valid text, pos > 0.
size_t dgm_utf8_prev(const char *s, size_t pos);
size_t dgm_utf8_put(uint32_t code, char out[4]); // returns the length
size_t dgm_utf8_count(dgm_text t);               // code points

// Appends t to out with every invalid sequence replaced by U+FFFD. replaced (may be NULL): how
// many.
dgm_status dgm_utf8_repair(dgm_text t, dgm_writer *out, size_t *replaced, dgm_error *err);
// Line breaks, also of typewriters, and NUL: what no line holds.
bool dgm_is_break(char c);
// A line as translators want it: valid UTF-8 in one line; breaks become spaces. Appends to out;
// *repaired says whether anything was invalid.
dgm_status dgm_line_clean(dgm_text in, dgm_writer *out, bool *repaired, dgm_error *err);
// Appends the canonical composition (NFC) of valid UTF-8.
dgm_status dgm_utf8_nfc(dgm_text t, dgm_writer *out, dgm_error *err);
// Appends the text in lower case, special cases included (final sigma, capital I with dot): what
// Python's str.lower() gives.
dgm_status dgm_utf8_lower(dgm_text t, dgm_writer *out, dgm_error *err);

// ---- classes -------------------------------------------------------------------------------
enum {
    DGM_CHAR_LETTER = 1,      // general category L
    DGM_CHAR_MARK = 2,        // M
    DGM_CHAR_NUMBER = 4,      // N
    DGM_CHAR_PUNCT = 8,       // P
    DGM_CHAR_SYMBOL = 16,     // S
    DGM_CHAR_SPACE = 32,      // white space in Python's sense (str.isspace)
    DGM_CHAR_CONTROL = 64,    // Cc, Cf, Cs, Co, Cn
    DGM_CHAR_UPPER = 128,     // Lu, Lt
    DGM_CHAR_LOWER = 256,     // Ll
    DGM_CHAR_SPACELESS = 512, // written without spaces: Han, kana, bopomofo, Thai, Lao, Khmer,
                              // Burmese, CJK and full-width punctuation
};
unsigned dgm_char_class(uint32_t code); // the flags above, combined
bool dgm_char_is_space(uint32_t code);
bool dgm_char_is_digit(uint32_t code);    // general category Nd
bool dgm_char_is_currency(uint32_t code); // Sc
uint32_t dgm_char_lower(uint32_t code); // one to one mappings
uint32_t dgm_char_upper(uint32_t code);
// The characters that a compatibility form stands for (full-width letters, ligatures), or itself. Returns
// how many of them; one that has more than `most` stands for itself.
size_t dgm_char_plain(uint32_t code, uint32_t *out, size_t most);
// May text be cut between these two without tearing a character apart (combining marks, joined
// emoji, Hangul syllables, flags)?
bool dgm_char_break_between(uint32_t left, uint32_t right);

#endif
