// SPDX-License-Identifier: MIT
// Is a text language at all? What is not passes through a translation as it is: punctuation, numbers,
// addresses, placeholders, symbols, code.
#ifndef DGM_TEXT_LANGUAGE_LIKE_H
#define DGM_TEXT_LANGUAGE_LIKE_H

#include "text/unicode.h"

// False where no word of the text (what stands between white space) is a word of a language: each is
// without letters, or a URL, an e-mail address, a path, a file name, a placeholder, a number with
// letters, an identifier or a single letter; or where the whole looks like a line of code.
bool dgm_is_language(dgm_text text);

// Of single words: a file's name with a known extension; hexadecimal digits and dashes, several of
// them digits ("550e8400-e29b-...").
bool dgm_is_file_name(dgm_text word);
bool dgm_is_hexadecimal(dgm_text word);

#endif
