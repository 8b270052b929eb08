// SPDX-License-Identifier: MIT
// The words of the n-gram and phrase tools (text/wording.h), whose subwords a model file has.
#ifndef DGM_TOOLS_SPLITTER_H
#define DGM_TOOLS_SPLITTER_H

#include "format/gguf.h"
#include "format/modelfile.h"
#include "text/wording.h"

typedef struct dgm_splitter {
    dgm_gguf *file;
    dgm_vocab *vocab; // NULL: there are no subwords
    dgm_wording wording;
} dgm_splitter;

// subwords NULL: words between blanks. side: whose subwords.
dgm_status dgm_splitter_open(dgm_splitter *s, const char *subwords, dgm_side side, dgm_error *err);
void dgm_splitter_close(dgm_splitter *s); // accepts all zero

#endif
