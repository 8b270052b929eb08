// SPDX-License-Identifier: MIT
// What a search adds to model scores, as data for rank (dgm_terms), not as callbacks inside it.
//
// A scorer keeps one int32 of state per hypothesis (an automaton state, a position in a prefix) and
// whatever it needs per sentence (by its number, as in vocabsel.h). Per step and row the search calls
// `terms` with a zeroed dgm_terms (base and lambda set), ranks, and `advance`s the state by the
// token chosen. The scorers of a search are asked in their order; each may narrow what the ones
// before it left (deny holds the unknown word already unless that is allowed). `finish` may change
// the score of a completed hypothesis. A row without any allowed token dies.
#ifndef DGM_SCORE_SCORE_H
#define DGM_SCORE_SCORE_H

#include "model/model.h"
#include "score/lmbr.h"
#include "score/walk.h"

typedef struct dgm_scorer dgm_scorer;

// What a scorer may want to know about a sentence when it enters.
typedef struct dgm_score_sentence {
    const int32_t *source;
    int source_count;
    const int32_t *prefix; // forced first target tokens
    int prefix_count;
    const dgm_lmbr_rows *lmbr; // of its evidence, for as long as it is inside; NULL: it has none
    const dgm_walk *walk;      // its lattice, likewise
    const struct dgm_constraint *constraint; // NULL: none
} dgm_score_sentence;

// NULL: it has nothing to do there, and a state stays as it is. Memory is the caller's or the
// arena's: there is nothing to close.
typedef struct dgm_scorer_ops {
    const char *name;
    dgm_status (*admit)(dgm_scorer *s, int active, const dgm_score_sentence *sentence,
                        int32_t *state, dgm_error *err); // state of the empty hypothesis
    // Arrays it points terms at live until the next call of terms for the same sentence and row.
    void (*terms)(dgm_scorer *s, int active, int32_t state, dgm_terms *terms);
    int32_t (*advance)(dgm_scorer *s, int active, int32_t state, int32_t token);
    float (*finish)(dgm_scorer *s, int active, int32_t state, float score);
    void (*leave)(dgm_scorer *s, int active);
} dgm_scorer_ops;

struct dgm_scorer {
    const dgm_scorer_ops *ops;
    void *data;
};

enum { DGM_SCORERS_MAX = 4 };

static inline void dgm_scorer_terms(dgm_scorer *s, int active, int32_t state, dgm_terms *terms)
{
    if (s->ops->terms) s->ops->terms(s, active, state, terms);
}

static inline int32_t dgm_scorer_advance(dgm_scorer *s, int active, int32_t state, int32_t token)
{
    return s->ops->advance ? s->ops->advance(s, active, state, token) : state;
}

static inline float dgm_scorer_finish(dgm_scorer *s, int active, int32_t state, float score)
{
    return s->ops->finish ? s->ops->finish(s, active, state, score) : score;
}

static inline void dgm_scorer_leave(dgm_scorer *s, int active)
{
    if (s->ops->leave) s->ops->leave(s, active);
}

// Prefix forcing: a hypothesis follows the sentence's forced tokens, each at its model score, and
// is free afterwards. A forced token may be one that is otherwise denied (the unknown word). Every
// search has one, as its last scorer. Memory: dgm_score_prefix_bytes from the arena.
size_t dgm_score_prefix_bytes(int sentences);
dgm_status dgm_score_prefix(dgm_scorer *s, dgm_arena *arena, int sentences, dgm_error *err);

// LMBR: rows of n-gram posteriors, made of a sentence's evidence (lmbr.h). Memory:
// dgm_score_lmbr_bytes of the worker, most of it a dense row for every sentence on the device.
dgm_bytes dgm_score_lmbr_bytes(const dgm_backend *b, int sentences, int vocabulary);
dgm_status dgm_score_lmbr(dgm_scorer *s, dgm_exec *exec, int sentences, int vocabulary,
                          dgm_error *err);

// Lattices (walk.h): a hypothesis follows a path of its sentence's lattice. Narrows what may come
// next, and adds its scores. Memory: dgm_score_walk_bytes from the arena.
size_t dgm_score_walk_bytes(int sentences);
dgm_status dgm_score_walk(dgm_scorer *s, dgm_arena *arena, int sentences, dgm_error *err);

// Constraints: follows the sentence's automaton (constraint.h). Every search has one, before prefix
// forcing. Memory: dgm_score_constraint_bytes from the arena.
size_t dgm_score_constraint_bytes(int sentences);
dgm_status dgm_score_constraint(dgm_scorer *s, dgm_arena *arena, int sentences, dgm_error *err);

// Length normalisation of a finished hypothesis: sum / length^penalty, where length counts the real
// tokens and one end symbol.
float dgm_length_normalise(float sum, int length, float penalty);

#endif
