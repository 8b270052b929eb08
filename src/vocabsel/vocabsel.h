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

// What is known of a sentence when it comes in.
typedef struct dgm_vocabsel_sentence {
    const int32_t *source; // as the encoder reads it, frame included
    int source_count;
    const int32_t *needed; // target tokens that must be candidates (a forced prefix), in any order
    int needed_count;
    const int32_t *evidence; // further ones, as many as there are
    int evidence_count;
    const int32_t *allowed; // the tokens of its lattice, likewise
    int allowed_count;
} dgm_vocabsel_sentence;

typedef struct dgm_vocabsel_ops {
    const char *name;
    dgm_status (*admit)(dgm_vocabsel *v, int place, const dgm_vocabsel_sentence *sentence,
                        dgm_error *err);
    // hidden: the sentence's rows of this step.
    const dgm_candidates *(*select)(dgm_vocabsel *v, int place, dgm_mat hidden);
    // Further candidates of one row, behind the token it ends with (negative: none yet), valid
    // until it is asked for the same row of a generation again; NULL: none. The function may be
    // NULL.
    const dgm_candidates *(*more)(dgm_vocabsel *v, int place, int row, int32_t last);
    void (*leave)(dgm_vocabsel *v, int place);
    void (*close)(dgm_vocabsel *v);
} dgm_vocabsel_ops;

struct dgm_vocabsel {
    const dgm_vocabsel_ops *ops;
    void *data;
};

// The whole vocabulary, always.
void dgm_vocabsel_all(dgm_vocabsel *v);

// Bounds of a selection: sentences at once, longest source in tokens (frame included), most tokens
// that a sentence may need.
typedef struct dgm_vocabsel_limits {
    int places, max_source, max_needed;
    int rows; // of a generation; 0: nobody will ask for more candidates of a row
    bool evidence; // sentences may come with evidence or lattices: lists of any length up to the vocabulary
} dgm_vocabsel_limits;

// The shortlist of a model file (docs/FORMAT.md, section 2.6), which must outlive v. Allocates here
// and never again; ops->close frees. DGM_ERR_UNSUPPORTED when the file has no shortlist.
dgm_status dgm_vocabsel_lexical_open(dgm_vocabsel *v, const dgm_gguf *file,
                                     const dgm_vocabsel_limits *limits, dgm_error *err);

// From now on the candidates of a sentence come with their columns of the output layers out[0 ..
// count), the parts of rank in their order, gathered when the sentence enters. Memory is x's arena,
// dgm_vocabsel_lexical_bytes of it for every layer. Lists of more than DGM_GATHER_MAX tokens are
// not gathered: a sentence of hundreds of words has most of the vocabulary as candidates anyway.
enum { DGM_GATHER_MAX = 2048 };
dgm_status dgm_vocabsel_lexical_gather(dgm_vocabsel *v, dgm_exec *x, const dgm_linear *const *out,
                                       int count, dgm_error *err);
size_t dgm_vocabsel_lexical_bytes(const dgm_backend *b, const dgm_linear *out, int places);

#endif
