// SPDX-License-Identifier: MIT
// Sub-cubes: which live hypotheses of a sentence are taken to be alike.
//
//   key token   the same last word (the paper's)
//   key state   the same last word, and hidden vectors whose distance, as a share of their mean
//               length, is below eps; all parts of an ensemble count together
//   key none    none are: beam search
//
// In any case the scorers' states are equal, and so is what rules about repetition deny and punish
// (history.c): cells of a column then differ by a constant only, and the grid stays monotone whatever
// is added. Hypotheses with the same row are alike without a look at numbers: under accelerated
// pruning they share a leader's state for good.
//
// Hypotheses come in beam order, so the first of a sub-cube is its best, and joins are decided by
// the leader alone: the result does not depend on anything outside the sentence.
#include "search/cube_private.h"

static int32_t last_token(const dgm_active *p, int hypo)
{
    return p->nodes[p->now.live[hypo].node].token;
}

static bool same_states(const dgm_search *s, const dgm_beam *b, int a, int c)
{
    const int n = s->scorer_count;
    for (int i = 0; i < n; i++)
        if (b->states[a * n + i] != b->states[c * n + i]) return false;
    return true;
}

// What can be alike: the same last word and states of scorers.
static bool comparable(const dgm_search *s, const dgm_active *p, int a, int b)
{
    return last_token(p, a) == last_token(p, b) && same_states(s, &p->now, a, b);
}

// ---- key state ----------------------------------------------------------------------------------

void dgm_cube_forget(dgm_search *s)
{
    s->cubes->pairs = s->cubes->asked = 0;
}

void dgm_cube_ask(dgm_search *s, int active)
{
    const dgm_active *p = &s->active[active];
    dgm_cubes *c = s->cubes;
    for (int j = 0; j < p->now.count; j++)
        for (int i = 0; i < j; i++) {
            if (!comparable(s, p, i, j)) continue;
            c->one[c->pairs] = p->now.origins[i];
            c->two[c->pairs++] = p->now.origins[j];
        }
}

void dgm_cube_measure(dgm_search *s)
{
    const dgm_cubes *c = s->cubes;
    if (c->pairs) dgm_op_distances(s->exec, s->hidden, c->one, c->two, c->pairs, c->distance);
}

// |a - b|^2 < eps^2 (|a|^2 + |b|^2) / 2 for the hidden vectors of the next pair.
static bool next_is_close(dgm_search *s)
{
    dgm_cubes *c = s->cubes;
    const int at = c->asked++;
    const double eps = (double)s->config.cube_distance;
    const dgm_distance *d = &c->distance[at];
    return c->one[at] == c->two[at] || d->apart < eps * eps * d->length / 2;
}

// ---- sub-cubes ----------------------------------------------------------------------------------

// Pairs are asked for in the order of dgm_cube_ask, whether the answer is needed or not.
static bool alike(dgm_search *s, const dgm_active *p, int a, int b)
{
    return comparable(s, p, a, b) && (s->config.cube_key != DGM_CUBE_STATE || next_is_close(s)) &&
           dgm_history_alike(s, p, a, b);
}

int dgm_cube_group(dgm_search *s, int active, bool apart)
{
    const dgm_active *p = &s->active[active];
    dgm_cubes *c = s->cubes;
    const size_t at = (size_t)active * (size_t)s->width;
    int32_t *leader = c->leader + at, *below = c->below + at;
    bool *leads = c->leads + at;
    int cubes = 0;
    apart |= s->config.cube_key == DGM_CUBE_NONE;
    for (int j = 0; j < p->now.count; j++) {
        int last = -1; // of the sub-cube that j joins
        const bool every = s->config.cube_key == DGM_CUBE_STATE;
        for (int i = 0; i < j && !apart && (every || last < 0); i++)
            if ((every || leads[i]) && alike(s, p, i, j) && leads[i] && last < 0) last = i;
        leads[j] = last < 0;
        leader[j] = leads[j] ? j : last;
        below[j] = -1;
        c->behind[at + (size_t)j] = p->now.live[j].score - p->now.live[leader[j]].score;
        cubes += leads[j];
        if (leads[j]) continue;
        while (below[last] >= 0) last = below[last];
        below[last] = j;
    }
    return cubes;
}
