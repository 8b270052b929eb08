// SPDX-License-Identifier: MIT
// Prefix forcing as a scorer: state = number of forced tokens behind the hypothesis.
//
// While tokens are left, a row may only take the next one; its score is the model's, as nothing is
// added. Afterwards the hypothesis is free. A forced token is the user's word, so it may also be
// one that is denied otherwise (the unknown word).
#include "score/score.h"

#include "base/arena.h"

typedef struct prefix_sentence {
    const int32_t *tokens; // borrowed from the request
    int count;
} prefix_sentence;

static dgm_status admit(dgm_scorer *s, int active, const dgm_score_sentence *sentence,
                        int32_t *state, dgm_error *err)
{
    (void)err;
    prefix_sentence *p = (prefix_sentence *)s->data + active;
    p->tokens = sentence->prefix;
    p->count = sentence->prefix_count;
    *state = 0;
    return DGM_OK;
}

static void terms(dgm_scorer *s, int active, int32_t state, dgm_terms *t)
{
    const prefix_sentence *p = (const prefix_sentence *)s->data + active;
    if (state >= p->count) return;
    dgm_terms_allow(t, &p->tokens[state], 1);
    t->deny_count = 0;
}

static int32_t advance(dgm_scorer *s, int active, int32_t state, int32_t token)
{
    (void)token;
    const prefix_sentence *p = (const prefix_sentence *)s->data + active;
    return state < p->count ? state + 1 : state;
}

static void leave(dgm_scorer *s, int active)
{
    ((prefix_sentence *)s->data)[active] = (prefix_sentence){0};
}

static const dgm_scorer_ops ops = {.name = "prefix",
                                   .admit = admit,
                                   .terms = terms,
                                   .advance = advance,
                                   .leave = leave};

size_t dgm_score_prefix_bytes(int sentences)
{
    return dgm_arena_cost((size_t)sentences * sizeof(prefix_sentence));
}

dgm_status dgm_score_prefix(dgm_scorer *s, dgm_arena *arena, int sentences, dgm_error *err)
{
    prefix_sentence *p = DGM_ARENA_ARRAY(arena, prefix_sentence, (size_t)sentences);
    if (!p)
        return dgm_fail(err, DGM_ERR_MEMORY, "the workspace is too small for %d sentences",
                        sentences);
    for (int i = 0; i < sentences; i++) p[i] = (prefix_sentence){0};
    *s = (dgm_scorer){.ops = &ops, .data = p};
    return DGM_OK;
}
