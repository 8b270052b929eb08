// SPDX-License-Identifier: MIT
// The trivial vocabulary selection: every token, at every step.
#include "vocabsel/vocabsel.h"

static dgm_status admit(dgm_vocabsel *v, int place, const dgm_vocabsel_sentence *sentence,
                        dgm_error *err)
{
    (void)v, (void)place, (void)sentence, (void)err;
    return DGM_OK;
}

static const dgm_candidates *select_all(dgm_vocabsel *v, int place, int first, dgm_mat hidden)
{
    (void)v, (void)place, (void)first, (void)hidden;
    return NULL;
}

static void leave(dgm_vocabsel *v, int place)
{
    (void)v, (void)place;
}

static void close_all(dgm_vocabsel *v)
{
    v->data = NULL;
}

static const dgm_vocabsel_ops ops = {
    .name = "all", .admit = admit, .select = select_all, .leave = leave, .close = close_all};

void dgm_vocabsel_all(dgm_vocabsel *v)
{
    *v = (dgm_vocabsel){.ops = &ops, .data = NULL};
}
