// SPDX-License-Identifier: MIT
// LMBR as a scorer: the state of a hypothesis is a state of its sentence's rows (lmbr.h).
//
// The rows come with the sentence and are the caller's. Here is one dense row per sentence, [sentences,
// vocabulary], on the device, which holds the unigrams of the sentence inside: filled when it enters,
// set to zero again at the same words when it leaves. A sentence without rows is scored by the model alone.
#include "base/arena.h"
#include "score/score.h"

typedef struct lmbr {
    dgm_exec *exec;
    const dgm_lmbr_rows **rows; // [sentences]; NULL: none
    dgm_mat dense;              // [sentences, vocabulary]
} lmbr;

static dgm_status admit(dgm_scorer *s, int at, const dgm_score_sentence *sentence, int32_t *state,
                        dgm_error *err)
{
    const lmbr *x = s->data;
    const dgm_lmbr_rows *rows = sentence->lmbr;
    const int vocabulary = x->dense.cols;
    *state = 0;
    if (!rows) return DGM_OK;
    for (int32_t i = rows->at[0]; i < rows->at[1]; i++)
        DGM_FAIL_IF(rows->ids[i] < 0 || rows->ids[i] >= vocabulary, err, DGM_ERR_ARGUMENT,
                    "token %d of the evidence is not in the vocabulary of %d", (int)rows->ids[i],
                    vocabulary);
    dgm_op_set(x->exec, x->dense, at, rows->ids, rows->values, rows->at[1]);
    x->rows[at] = rows;
    return DGM_OK;
}

static void terms(dgm_scorer *s, int at, int32_t state, dgm_terms *t)
{
    const lmbr *x = s->data;
    const dgm_lmbr_rows *r = x->rows[at];
    if (!r) return;
    t->lambda *= r->weights.lambda;
    t->constant += r->weights.theta[0];
    t->table = dgm_mat_rows(x->dense, at, 1).data;
    if (state == 0) return; // its additions are the dense row
    const int32_t first = r->at[state];
    dgm_terms_add(t, r->ids + first, r->values + first, r->at[state + 1] - first);
}

static int32_t advance(dgm_scorer *s, int at, int32_t state, int32_t token)
{
    const dgm_lmbr_rows *r = ((const lmbr *)s->data)->rows[at];
    return r ? dgm_lmbr_next(r, state, token) : 0;
}

static void leave(dgm_scorer *s, int at)
{
    const lmbr *x = s->data;
    const dgm_lmbr_rows *r = x->rows[at];
    if (r) dgm_op_set(x->exec, x->dense, at, r->ids, NULL, r->at[1]);
    x->rows[at] = NULL;
}

static const dgm_scorer_ops ops = {.name = "lmbr",
                                   .admit = admit,
                                   .terms = terms,
                                   .advance = advance,
                                   .leave = leave};

dgm_bytes dgm_score_lmbr_bytes(const dgm_backend *b, int sentences, int vocabulary)
{
    return (dgm_bytes){.host = dgm_arena_cost(sizeof(lmbr)) +
                               dgm_arena_cost((size_t)sentences * sizeof(dgm_lmbr_rows *)),
                       .device = dgm_exec_mat_bytes(b, sentences, vocabulary)};
}

dgm_status dgm_score_lmbr(dgm_scorer *s, dgm_exec *exec, int sentences, int vocabulary,
                          dgm_error *err)
{
    dgm_arena *arena = dgm_exec_host(exec);
    lmbr *x = DGM_ARENA_ARRAY(arena, lmbr, 1);
    const dgm_lmbr_rows **rows = DGM_ARENA_ARRAY(arena, const dgm_lmbr_rows *, (size_t)sentences);
    const dgm_mat dense = dgm_tables_open(exec, sentences, vocabulary);
    if (!x || !rows || !dense.data)
        return dgm_fail(err, DGM_ERR_MEMORY,
                        "the workspace is too small for the posteriors of %d sentences", sentences);
    for (int i = 0; i < sentences; i++) rows[i] = NULL;
    *x = (lmbr){exec, rows, dense};
    *s = (dgm_scorer){.ops = &ops, .data = x};
    return DGM_OK;
}
