// SPDX-License-Identifier: MIT
// Headlines without a final mark: "Refugees arrive in Weimar The first of them reached the town on Tuesday."
//
// Nothing but the wording tells such a boundary. Each place in front of a capital is judged by what speaks
// for it and against it (the word, those around it, what stands before); bench/programs/headlines.c learns how
// much each of these counts from news, whose headlines stand on lines of their own.
#ifndef DGM_TEXT_HEADLINES_H
#define DGM_TEXT_HEADLINES_H

#include "text/tokenize.h"
#include "text/unicode.h"

// Where the sentence behind a headline begins in text, which holds no other sentence boundary and no white
// space at its ends; 0: there is no headline. Always 0 for languages without word lists.
size_t dgm_headline_end(dgm_text text, dgm_language lang);

// ---- for bench/programs/headlines.c --------------------------------------------------------------------

enum { DGM_HEADLINE_SIGNS_MAX = 26, DGM_HEADLINE_PLACES_MAX = 36 };

// A place that is judged: where it is, and the signs found there, as columns of the table of points.
typedef struct dgm_headline_place {
    size_t at;
    unsigned char signs[DGM_HEADLINE_SIGNS_MAX];
    int count, points;
} dgm_headline_place;

// All places of a text, DGM_HEADLINE_PLACES_MAX at most; returns how many.
int dgm_headline_places(dgm_text text, dgm_language lang, dgm_headline_place places[]);

#endif
