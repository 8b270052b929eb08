// SPDX-License-Identifier: MIT
// LMBR as a scorer: the state of a hypothesis is a state of its sentence's rows (lmbr.h).
//
// The rows come with the sentence and are the caller's. Here is one dense row per place, [places,
// vocabulary], which holds the unigrams of the sentence inside: filled when it enters, set to zero
// again at the same words when it leaves. A sentence without rows is scored by the model alone.
#include "base/arena.h"
#include "score/score.h"

typedef struct place {
    const dgm_lmbr_rows *rows; // NULL: none
    float *dense;              // [vocabulary]
} place;

typedef struct lmbr {
    place *places;
    int vocabulary;
} lmbr;

static dgm_status admit(dgm_scorer *s, int at, const dgm_score_sentence *sentence, int32_t *state,
                        dgm_error *err)
{
    const lmbr *x = s->data;
    place *p = &x->places[at];
    const dgm_lmbr_rows *rows = sentence->lmbr;
    *state = 0;
    if (!rows) return DGM_OK;
    for (int32_t i = rows->at[0]; i < rows->at[1]; i++)
        DGM_FAIL_IF(rows->ids[i] < 0 || rows->ids[i] >= x->vocabulary, err, DGM_ERR_ARGUMENT,
                    "token %d of the evidence is not in the vocabulary of %d", (int)rows->ids[i],
                    x->vocabulary);
    for (int32_t i = rows->at[0]; i < rows->at[1]; i++) p->dense[rows->ids[i]] = rows->values[i];
    p->rows = rows;
    return DGM_OK;
}

static void terms(dgm_scorer *s, int at, int32_t state, dgm_terms *t)
{
    const place *p = &((const lmbr *)s->data)->places[at];
    const dgm_lmbr_rows *r = p->rows;
    if (!r) return;
    t->lambda *= r->weights.lambda;
    t->constant += r->weights.theta[0];
    t->table = p->dense;
    if (state == 0) return; // its additions are the dense row
    t->row_ids = r->ids + r->at[state];
    t->row_values = r->values + r->at[state];
    t->row_count = r->at[state + 1] - r->at[state];
}

static int32_t advance(dgm_scorer *s, int at, int32_t state, int32_t token)
{
    const dgm_lmbr_rows *r = ((const lmbr *)s->data)->places[at].rows;
    return r ? dgm_lmbr_next(r, state, token) : 0;
}

static void leave(dgm_scorer *s, int at)
{
    place *p = &((const lmbr *)s->data)->places[at];
    for (int32_t i = 0; p->rows && i < p->rows->at[1]; i++) p->dense[p->rows->ids[i]] = 0.0f;
    p->rows = NULL;
}

static const dgm_scorer_ops ops = {.name = "lmbr",
                                   .admit = admit,
                                   .terms = terms,
                                   .advance = advance,
                                   .leave = leave};

size_t dgm_score_lmbr_bytes(int places, int vocabulary)
{
    return dgm_arena_cost(sizeof(lmbr)) + dgm_arena_cost((size_t)places * sizeof(place)) +
           dgm_arena_cost((size_t)places * (size_t)vocabulary * sizeof(float));
}

dgm_status dgm_score_lmbr(dgm_scorer *s, dgm_arena *arena, int places, int vocabulary,
                          dgm_error *err)
{
    const size_t cells = (size_t)places * (size_t)vocabulary;
    lmbr *x = DGM_ARENA_ARRAY(arena, lmbr, 1);
    place *p = DGM_ARENA_ARRAY(arena, place, (size_t)places);
    float *dense = DGM_ARENA_ARRAY(arena, float, cells);
    if (!x || !p || !dense)
        return dgm_fail(err, DGM_ERR_MEMORY,
                        "the workspace is too small for the posteriors of %d sentences", places);
    for (size_t i = 0; i < cells; i++) dense[i] = 0.0f;
    for (int i = 0; i < places; i++) p[i] = (place){NULL, dense + (size_t)i * (size_t)vocabulary};
    *x = (lmbr){p, vocabulary};
    *s = (dgm_scorer){.ops = &ops, .data = x};
    return DGM_OK;
}
