// SPDX-License-Identifier: MIT
// How a translated line is printed: plain, n-best list in the format of Moses and Marian, with
// scores and alignments, or JSON.
#ifndef DGM_APPS_CLI_TRANSLATE_PRESENT_H
#define DGM_APPS_CLI_TRANSLATE_PRESENT_H

#include <stdint.h>

#include "dragoman/dragoman.h"
#include "io/lineio.h"

typedef struct presentation {
    int nbest, scores, word_scores, json, alignment;
} presentation;

// number: of the line, from 0. A line that failed is printed as an empty translation. crlf: plain translations
// end with "\r\n".
void present_result(const presentation *p, line_writer *w, uint64_t number, const dgm_result *r, bool crlf);

#endif
