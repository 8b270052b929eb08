// SPDX-License-Identifier: MIT
// Output-vocabulary selection: which tokens a sentence may produce at a step.
//
// One dgm_vocabsel per worker. A sentence is known by a small number that the search chooses
// (its place, 0 .. capacity - 1). `admit` prepares what depends on the source, `select` answers for
// one step, `leave` forgets. A NULL answer means the whole vocabulary. EOS is always in the list.
// Selection is per sentence, never per batch, so that output does not depend on neighbours.
#ifndef DGM_VOCABSEL_VOCABSEL_H
#define DGM_VOCABSEL_VOCABSEL_H

#include "model/model.h"

typedef struct dgm_vocabsel dgm_vocabsel;

typedef struct dgm_vocabsel_ops {
    const char *name;
    dgm_status (*admit)(dgm_vocabsel *v, int place, const int32_t *source, int count,
                        dgm_error *err);
    // hidden: the sentence's rows of this step.
    const dgm_candidates *(*select)(dgm_vocabsel *v, int place, dgm_mat hidden);
    void (*leave)(dgm_vocabsel *v, int place);
    void (*close)(dgm_vocabsel *v);
} dgm_vocabsel_ops;

struct dgm_vocabsel {
    const dgm_vocabsel_ops *ops;
    void *data;
};

// The whole vocabulary, always.
void dgm_vocabsel_all(dgm_vocabsel *v);

// The shortlist of a model file (docs/FORMAT.md, section 2.6), which must outlive v. places: how
// many sentences at once; max_source: longest source in tokens, frame included. Allocates here and
// never again; ops->close frees. DGM_ERR_UNSUPPORTED when the file has no shortlist.
dgm_status dgm_vocabsel_lexical_open(dgm_vocabsel *v, const dgm_gguf *file, int places,
                                     int max_source, dgm_error *err);

#endif
