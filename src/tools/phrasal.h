// SPDX-License-Identifier: MIT
// Inside of dgm_phrasal, for the tool that tunes its weights (mert.c): the loaded models, one
// decoder per thread, and decoding with a callback in the worker that did it.
#ifndef DGM_TOOLS_PHRASAL_H
#define DGM_TOOLS_PHRASAL_H

#include "base/threads.h"
#include "dragoman/tools.h"
#include "phrase/phrase_system.h"
#include "tools/splitter.h"

struct dgm_phrasal {
    dgm_phrasal_options o;
    dgm_splitter split[2];
    dgm_phrase_system *system;
    dgm_pool *pool;
    dgm_phrase_worker **workers; // [threads]
    int threads;
    uint64_t lines, words;
};

// In the thread that decoded a line; may be called at once for several lines, by different workers
// (below `threads`), whose decoders can give their graphs.
typedef dgm_status (*dgm_phrasal_each)(void *cookie, int worker, size_t line,
                                       const dgm_pb_translation *list, int count, dgm_error *err);
dgm_status dgm_phrasal_run(dgm_phrasal *p, const dgm_line *lines, size_t count,
                           dgm_phrasal_each each, void *cookie, dgm_error *err);
// Words of a translation as the user wants to see them, appended.
dgm_status dgm_phrasal_text(const dgm_phrasal *p, const dgm_text *words, int count, dgm_writer *out,
                            dgm_error *err);

#endif
