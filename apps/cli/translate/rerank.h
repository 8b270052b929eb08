// SPDX-License-Identifier: MIT
// `translate --rerank MODEL:WEIGHT`: other models' opinions on what the search found.
#ifndef DGM_APPS_CLI_TRANSLATE_RERANK_H
#define DGM_APPS_CLI_TRANSLATE_RERANK_H

#include <stdbool.h>

#include "dragoman/tools.h"
#include "translate/setup.h"

typedef struct reranker reranker; // NULL: nothing is re-ranked

// The models of the list, with threads and precision of the engine's options. Sets *r to NULL for
// an empty list. Returns -1, or the exit code after a message.
// many: lines have several directions.
int rerank_open(const option_list *models, const engine_options *e, const dgm_translator *search, bool many,
                reranker **r);
// The models, as the library takes them.
const dgm_reranker *rerank_list(const reranker *r, size_t *count);
void rerank_close(reranker **r);
// Adds the models to a list of files, and their identities (setup.h) to a text; either may be NULL.
// Returns -1, or the exit code after a message.
int rerank_files(const option_list *models, file_list *f, char *text, size_t size);
// Translations that the search must bring for a choice; 0: the options do not say.
int rerank_candidates(const engine_options *e, int nbest);

// The source lines of a window, kept until its results come; NULL without a re-ranker.
typedef struct rerank_sources rerank_sources;
rerank_sources *rerank_keep(const reranker *r, const dgm_input *inputs, size_t count);
// Sorts the results by the models' weighted opinions, keeps the best `nbest` of each line, and
// frees the sources. False after a message.
bool rerank_apply(const reranker *r, rerank_sources *sources, dgm_results *results, int nbest);

#endif
