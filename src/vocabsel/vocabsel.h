// SPDX-License-Identifier: MIT
// Output-vocabulary selection: which tokens a sentence may produce at a step.
//
// One dgm_vocabsel per worker. A sentence is known by its number among the active ones of the
// search, 0 .. sentences - 1. `admit` prepares what depends on the source, `select` answers for one
// step, `leave` forgets. A NULL answer means the whole vocabulary. EOS is always in the list.
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
    int clusters; // which of the sets that the selection was opened with: its direction's
} dgm_vocabsel_sentence;

// All but select may be NULL: nothing to do, or to add.
typedef struct dgm_vocabsel_ops {
    const char *name;
    bool whole; // every sentence gets the whole vocabulary, in every step: nobody need ask
    // Candidates change with the hidden vectors. Rows that only score a path found before (under
    // other vectors, perhaps) then get the whole vocabulary.
    bool by_step;
    dgm_status (*admit)(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *sentence,
                        dgm_error *err);
    // Sees the vectors of all rows of a step that will be ranked, before the first select: what has
    // to be computed with them is computed for all sentences at once.
    void (*look)(dgm_vocabsel *v, dgm_mat hidden);
    // hidden: the sentence's rows of this step, row `first` and those behind it of what look saw.
    // Valid until the next look.
    const dgm_candidates *(*select)(dgm_vocabsel *v, int active, int first, dgm_mat hidden);
    // Further candidates of one row, behind the token it ends with (negative: none yet), valid
    // until it is asked for the same row of a generation again; NULL: none.
    const dgm_candidates *(*more)(dgm_vocabsel *v, int active, int row, int32_t last);
    // How many candidates the last selection of the sentence has, exactly. NULL: what it says.
    int (*size)(dgm_vocabsel *v, int active);
    void (*leave)(dgm_vocabsel *v, int active);
    void (*close)(dgm_vocabsel *v);
} dgm_vocabsel_ops;

struct dgm_vocabsel {
    const dgm_vocabsel_ops *ops;
    void *data;
    int part; // of an ensemble: whose hidden vectors look and select want
};

static inline dgm_status dgm_vocabsel_admit(dgm_vocabsel *v, int active,
                                            const dgm_vocabsel_sentence *sentence, dgm_error *err)
{
    return v->ops->admit ? v->ops->admit(v, active, sentence, err) : DGM_OK;
}

static inline void dgm_vocabsel_look(dgm_vocabsel *v, dgm_mat hidden)
{
    if (v->ops->look) v->ops->look(v, hidden);
}

static inline void dgm_vocabsel_leave(dgm_vocabsel *v, int active)
{
    if (v->ops->leave) v->ops->leave(v, active);
}

static inline void dgm_vocabsel_close(dgm_vocabsel *v) // accepts one that was never opened
{
    if (v->ops && v->ops->close) v->ops->close(v);
}

// The whole vocabulary, always.
void dgm_vocabsel_all(dgm_vocabsel *v);

// Bounds of a selection: sentences at once, longest source in tokens (frame included), most tokens
// that a sentence may need.
typedef struct dgm_vocabsel_limits {
    int sentences, max_source, max_needed;
    int rows; // of a generation; 0: nobody will ask for more candidates of a row
    bool evidence; // sentences may come with evidence or lattices: lists of any length up to the vocabulary
    bool ids;       // somebody looks at the ids of candidates: they are never joint (dgm_joint)
    bool no_source; // tokens of the source are no candidates by themselves
} dgm_vocabsel_limits;

// The shortlist of a model file (docs/internals/FORMAT.md, section 2.6), which must outlive v. Allocates here
// and never again; ops->close frees. DGM_ERR_UNSUPPORTED when the file has no shortlist.
dgm_status dgm_vocabsel_lexical_open(dgm_vocabsel *v, const dgm_gguf *file,
                                     const dgm_vocabsel_limits *limits, dgm_error *err);

// From now on the candidates of a sentence come with their columns of the output layers out[0 ..
// count), the parts of rank in their order, gathered when the sentence enters. Memory is x's arena,
// dgm_vocabsel_lexical_bytes of it for every layer. Lists longer than the device likes to gather
// (dgm_backend_props.gather_max) are not: a sentence of hundreds of words has most of the
// vocabulary as candidates anyway.
dgm_status dgm_vocabsel_lexical_gather(dgm_vocabsel *v, dgm_exec *x, const dgm_linear *const *out,
                                       int count, dgm_error *err);
dgm_bytes dgm_vocabsel_lexical_bytes(const dgm_backend *b, const dgm_linear *out, int sentences);

// ---- clusters ---------------------------------------------------------------------------------

// The centroids of a model file (docs/internals/FORMAT.md, section 2.7), ready for a device; shared by all
// workers. The file must outlive it. source, target: language codes that choose the block, "" if
// unknown. width: of the model's hidden vectors. DGM_ERR_UNSUPPORTED when the file has no clusters.
typedef struct dgm_cluster_set dgm_cluster_set;

dgm_status dgm_cluster_set_open(dgm_cluster_set **s, dgm_backend *b, const dgm_gguf *file,
                                const char *source, const char *target, int width, dgm_error *err);
// The set of one block, whatever its languages are.
dgm_status dgm_cluster_set_open_block(dgm_cluster_set **s, dgm_backend *b, const dgm_gguf *file,
                                      int block, int width, dgm_error *err);
void dgm_cluster_set_close(dgm_cluster_set **s); // sets NULL; accepts NULL inside
int dgm_cluster_set_count(const dgm_cluster_set *s);
size_t dgm_cluster_set_bytes(const dgm_cluster_set *s); // of the packed centroids, and lists that the device keeps
// The tokens of one centroid as bits [(targets + 63) / 64], added to what is set.
void dgm_cluster_set_mark(const dgm_cluster_set *s, int centroid, uint64_t *bits);

typedef enum dgm_cluster_mode {
    DGM_CLUSTER_ALONE = 0,
    DGM_CLUSTER_UNION,    // with the lexical shortlist
    DGM_CLUSTER_INTERSECT // what both allow
} dgm_cluster_mode;

// The union of the lists of the centroids nearest to a sentence's rows, at every step. sets [count],
// of one file: a sentence says whose centroids it wants, so that a batch may mix directions. lexical:
// the file with the shortlist, for the modes that want one. sets and files must outlive v; the file
// of the sets names the end symbol and what is never chosen. Allocates here and never again.
dgm_status dgm_vocabsel_cluster_open(dgm_vocabsel *v, dgm_cluster_set *const *sets, int count,
                                     dgm_exec *x, dgm_cluster_mode mode, const dgm_gguf *lexical,
                                     const dgm_vocabsel_limits *limits, dgm_error *err);
// Adds a bit for every centroid that was used so far, those of a set behind those of the sets before
// it: bits [(centroids of all sets + 63) / 64].
void dgm_vocabsel_cluster_used(const dgm_vocabsel *v, uint64_t *bits);

#endif
