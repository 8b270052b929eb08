// SPDX-License-Identifier: MIT
// The trivial vocabulary selection: every token, at every step.
#include "vocabsel/vocabsel.h"

#include <stddef.h>

static const dgm_candidates *select_all(dgm_vocabsel *v, int active, int first, dgm_mat hidden)
{
    (void)v, (void)active, (void)first, (void)hidden;
    return NULL;
}

static const dgm_vocabsel_ops ops = {.name = "all", .whole = true, .select = select_all};

void dgm_vocabsel_all(dgm_vocabsel *v)
{
    *v = (dgm_vocabsel){.ops = &ops, .data = NULL};
}
