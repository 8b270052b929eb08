// SPDX-License-Identifier: MIT
// Which language is a text in? Two classifiers:
//
//   CLD2     (cld2_shim.h) knows some 80 languages and all scripts, from a sentence on
//   points   tell English, German, French, Spanish and Italian apart, from a word on: logistic regression
//            over hashed n-grams of letters (language_points_private.h)
//
// Where a text is in one of the five by CLD2, or is too short for it, or can only be in one of them, the points
// decide; elsewhere CLD2 does. docs/manual/LANGUAGES.md has the figures.
#ifndef DGM_TEXT_DETECT_H
#define DGM_TEXT_DETECT_H

#include "text/unicode.h"

enum { DGM_DETECT_CODE = 16, DGM_DETECT_MOST = 8 };

typedef struct dgm_language_candidate {
    char code[DGM_DETECT_CODE]; // "de", "zh-Hant"
    float confidence;           // 0 to 1
} dgm_language_candidate;

// Fills `candidates`, the most probable first, and returns how many, at most DGM_DETECT_MOST. among (NULL: any)
// has the codes that may come out, in the form that they have there; they are compared by their first part ("pt" for
// "pt-BR"). 0: the text has no letters, or none of these languages is probable. Valid UTF-8; of a long text the
// beginning is read.
size_t dgm_detect_language(dgm_text text, const char *const *among, size_t among_count,
                           dgm_language_candidate *candidates);

#endif
