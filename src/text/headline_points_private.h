// SPDX-License-Identifier: MIT
// Signs of a headline's end and what each counts, in tenths of log-odds; a sum above 0 is an end.
// bench/programs/headlines.c learns the points; it read the news test sets of WMT of 2008 to 2013, 2015,
// 2016, 2018 and 2020 in English and German, of 2008 to 2012 in French and Spanish.
#ifndef DGM_TEXT_HEADLINE_POINTS_PRIVATE_H
#define DGM_TEXT_HEADLINE_POINTS_PRIVATE_H

enum {
    SIGN_ALWAYS,
    SIGN_WORD, // kind of the word x shape of the next x of the one behind it
    SIGN_BEFORE = SIGN_WORD + 5 * 3 * 3,      // kind of the word x what stands before it
    SIGN_LETTER_BEFORE = SIGN_BEFORE + 5 * 4, // a single letter or digit
    SIGN_QUOTE_BEFORE,                        // a closing quote
    SIGN_BRACKET_BEFORE,                      // a closing bracket
    SIGN_COMMA,                               // a comma behind the word
    SIGN_ENDING,                              // no opener, but it ends like a word that is no name
    SIGN_VERB_BEHIND_NAME,                    // "is", "has" behind a word that is no opener
    SIGN_VERB_BEHIND,                         // behind another
    SIGN_LENGTH,                              // words so far: 1 to 3, 4 to 7, ..., from 32
    SIGN_REST = SIGN_LENGTH + 9,              // words left: 4 to 7, 8 to 11, from 12
    SIGN_HAS_ARTICLE = SIGN_REST + 3,         // the words so far have an article,
    SIGN_HAS_VERB,                            // "is", "has",
    SIGN_HAS_COLON,                           //
    SIGN_HAS_COMMA,                           //
    SIGN_OPENED,                              // begin like a sentence,
    SIGN_LOWER,                               // in lower case,
    SIGN_TITLE,                               // have nothing but capitals and function words,
    SIGN_IN_QUOTES,                           // open a quote
    SIGN_REPEATS_FIRST,                       // the word is the first of all again,
    SIGN_REPEATS,                             // was there before,
    SIGN_REPEATS_TWO,                         // with the word behind it
    SIGN_REPEATS_IN_NAME,                     // behind another capital
    SIGN_SHARES, // words so far that come again behind the place: 0, 1, 2, more
    SIGNS = SIGN_SHARES + 4
};

enum { NAMES_HAVE_CAPITALS, NOUNS_HAVE_CAPITALS };

static const signed char sign_points[2][SIGNS] = {
    [NAMES_HAVE_CAPITALS] =
        {
            -1, 26,  16, -1,  0,   3,   -6,  5,   0,   0,   31, 7,   5,   -4, -22, 0,   12,
            -2, 0,   23, 4,   4,   -6,  -17, 0,   7,   0,   0,  -11, -5,  -2, -2,  -14, 4,
            -2, -2,  0,  2,   -8,  -4,  -5,  -6,  -10, -10, -9, -1,  19,  17, -8,  15,  25,
            10, -17, 10, 23,  1,   -10, 2,   -12, -14, 0,   -9, -13, -27, 2,  -14, 1,   15,
            12, -15, 12, -1,  1,   -3,  5,   8,   6,   -1,  -8, -4,  -5,  1,  -5,  0,   4,
            -4, -3,  7,  -11, -10, 3,   -7,  -22, 8,   4,   12, 7,   -15, -4, 5,   12,
        },
    [NOUNS_HAVE_CAPITALS] =
        {
            2,  5,  18, 2,   15,  10,  0,  0,   1,   0,   12, 17,  5,   11, 0,   -1, 1,
            3,  0,  1,  6,   2,   8,   1,  0,   0,   0,   0,  -15, -10, -1, -7,  -7, 3,
            -2, 1,  0,  -13, -15, -14, -6, -5,  -8,  -10, -5, -2,  22,  26, -2,  6,  22,
            25, -4, 4,  5,   9,   0,   4,  -15, -18, 0,   -5, -30, -22, 7,  -33, -5, 16,
            7,  -9, 15, 7,   4,   -4,  7,  6,   7,   3,   -6, -6,  -1,  -5, -4,  2,  4,
            -7, -3, 8,  -9,  -12, 0,   -3, -17, 16,  9,   8,  -1,  -13, -3, 7,   12,
        },
};

#endif
