// SPDX-License-Identifier: MIT
// Constraints as a scorer: the state of a hypothesis is that of the sentence's automaton
// (constraint.h). What they allow and offer is no term of a row alone, so the search asks the
// automaton itself (search/banks.c); nothing is added to scores.
#include "base/arena.h"
#include "constraint/constraint.h"
#include "score/score.h"

static dgm_status admit(dgm_scorer *s, int active, const dgm_score_sentence *sentence,
                        int32_t *state, dgm_error *err)
{
    (void)err;
    ((const dgm_constraint **)s->data)[active] = sentence->constraint;
    *state = sentence->constraint ? dgm_constraint_start(sentence->constraint) : 0;
    return DGM_OK;
}

static int32_t advance(dgm_scorer *s, int active, int32_t state, int32_t token)
{
    const dgm_constraint *c = ((const dgm_constraint **)s->data)[active];
    bool broken;
    return c ? dgm_constraint_advance(c, state, token, &broken) : 0;
}

static void leave(dgm_scorer *s, int active)
{
    ((const dgm_constraint **)s->data)[active] = NULL;
}

static const dgm_scorer_ops ops = {.name = "constraint",
                                   .admit = admit,
                                   .advance = advance,
                                   .leave = leave};

size_t dgm_score_constraint_bytes(int sentences)
{
    return dgm_arena_cost((size_t)sentences * sizeof(dgm_constraint *));
}

dgm_status dgm_score_constraint(dgm_scorer *s, dgm_arena *arena, int sentences, dgm_error *err)
{
    const dgm_constraint **c = DGM_ARENA_ARRAY(arena, const dgm_constraint *, (size_t)sentences);
    if (!c)
        return dgm_fail(err, DGM_ERR_MEMORY, "the workspace is too small for %d sentences",
                        sentences);
    for (int i = 0; i < sentences; i++) c[i] = NULL;
    *s = (dgm_scorer){.ops = &ops, .data = (void *)c};
    return DGM_OK;
}
