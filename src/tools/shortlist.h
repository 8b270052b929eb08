// SPDX-License-Identifier: MIT
// Private to the shortlist tool: what its two files share. shortlist.c makes, converts and
// writes lists; shortlist_text.c reads texts, counts on them and measures a list.
#ifndef DGM_TOOLS_SHORTLIST_H
#define DGM_TOOLS_SHORTLIST_H

#include "dragoman/tools.h"
#include "format/modelfile.h"
#include "format/shortlist.h"
#include "align/lexicon.h"
#include "text/vocab.h"

// The model, and a lexical table whose words have ids in it.
typedef struct dgm_shortlist_work {
    const dgm_shortlist_options *o;
    dgm_gguf *file;
    dgm_vocab *vocab[2]; // [1] NULL: shared
    dgm_vocab_spec spec[2];
    dgm_lexicon *lex;
    int32_t *row_of;    // [source vocabulary] row of the table, -1: none
    int32_t *target_id; // [table's targets] -1: none
    dgm_shortlist *list;
    double threshold; // the caller's, or what was found for his number of candidates
    dgm_shortlist_report report;
} dgm_shortlist_work;

static inline const dgm_vocab *dgm_shortlist_target(const dgm_shortlist_work *w)
{
    return w->vocab[1] ? w->vocab[1] : w->vocab[0];
}

// shortlist.c
dgm_status dgm_shortlist_work_open(dgm_shortlist_work *w, const char *path, dgm_error *err);
void dgm_shortlist_work_close(dgm_shortlist_work *w);
// The best entries of a table row, most probable first; kept [best] are positions in lex->entry.
int dgm_shortlist_best(const dgm_shortlist_work *w, int32_t row, uint64_t *kept);

// shortlist_text.c
// The most frequent tokens of the caller's target text, not yet sorted; appends to frequent.
dgm_status dgm_shortlist_frequent(const dgm_shortlist_work *w, int32_t *frequent, int *count,
                                  dgm_error *err);
// Gives w->list the continuations that the caller's target text shows.
dgm_status dgm_shortlist_next(const dgm_shortlist_work *w, dgm_error *err);
// Sets w->threshold so that the caller's text has his number of candidates.
dgm_status dgm_shortlist_tune(dgm_shortlist_work *w, const int32_t *frequent, int count,
                              dgm_error *err);

#endif
