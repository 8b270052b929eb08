// SPDX-License-Identifier: MIT
// Constraints as a scorer: the state of a hypothesis is that of the sentence's automaton
// (constraint.h). What they allow and offer is no term of a row alone, so the search asks the
// automaton itself (search/banks.c); nothing is added to scores.
#include "base/arena.h"
#include "constraint/constraint.h"
#include "score/score.h"

static dgm_status admit(dgm_scorer *s, int place, const dgm_score_sentence *sentence,
                        int32_t *state, dgm_error *err)
{
    (void)err;
    ((const dgm_constraint **)s->data)[place] = sentence->constraint;
    *state = sentence->constraint ? dgm_constraint_start(sentence->constraint) : 0;
    return DGM_OK;
}

static int32_t advance(dgm_scorer *s, int place, int32_t state, int32_t token)
{
    const dgm_constraint *c = ((const dgm_constraint **)s->data)[place];
    bool broken;
    return c ? dgm_constraint_advance(c, state, token, &broken) : 0;
}

static void leave(dgm_scorer *s, int place)
{
    ((const dgm_constraint **)s->data)[place] = NULL;
}

static const dgm_scorer_ops ops = {.name = "constraint",
                                   .admit = admit,
                                   .advance = advance,
                                   .leave = leave};

size_t dgm_score_constraint_bytes(int places)
{
    return dgm_arena_cost((size_t)places * sizeof(dgm_constraint *));
}

dgm_status dgm_score_constraint(dgm_scorer *s, dgm_arena *arena, int places, dgm_error *err)
{
    const dgm_constraint **c = DGM_ARENA_ARRAY(arena, const dgm_constraint *, (size_t)places);
    if (!c)
        return dgm_fail(err, DGM_ERR_MEMORY, "the workspace is too small for %d sentences", places);
    for (int i = 0; i < places; i++) c[i] = NULL;
    *s = (dgm_scorer){.ops = &ops, .data = (void *)c};
    return DGM_OK;
}
