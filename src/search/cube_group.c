// SPDX-License-Identifier: MIT
// Sub-cubes: which live hypotheses of a sentence are taken to be alike.
//
//   key token   the same last word (the paper's)
//   key state   the same last word, and hidden vectors whose distance, as a share of their mean
//               length, is below eps; all parts of an ensemble count together
//   key none    none are: beam search
//
// In any case the scorers' states are equal: cells of a column then differ by a constant only, and
// the grid stays monotone whatever scorers add. Hypotheses with the same row are alike without a
// look at numbers: under accelerated pruning they share a leader's state for good.
//
// Hypotheses come in beam order, so the first of a sub-cube is its best, and joins are decided by
// the leader alone: the result does not depend on anything outside the sentence.
#include "search/cube_private.h"

static int32_t last_token(const dgm_place *p, int hypo)
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

// |a - b|^2 < eps^2 (|a|^2 + |b|^2) / 2 for the hidden vectors behind two hypotheses.
static bool close_states(const dgm_search *s, const dgm_beam *b, int a, int c)
{
    const int one = b->origins[a], two = b->origins[c];
    if (one == two) return true;
    double apart = 0, length = 0;
    const float *block = s->cubes->hidden;
    for (int part = 0; part < s->part_count; part++) {
        const size_t n = (size_t)s->info[part]->hidden;
        const float *x = block + (size_t)one * n, *y = block + (size_t)two * n;
        for (size_t i = 0; i < n; i++) {
            const double d = (double)x[i] - (double)y[i];
            apart += d * d;
            length += (double)x[i] * (double)x[i] + (double)y[i] * (double)y[i];
        }
        block += (size_t)s->capacity * n;
    }
    const double eps = (double)s->config.cube_distance;
    return apart < eps * eps * length / 2;
}

static bool alike(const dgm_search *s, const dgm_place *p, int leader, int hypo)
{
    return last_token(p, leader) == last_token(p, hypo) && same_states(s, &p->now, leader, hypo) &&
           (s->config.cube_key != DGM_CUBE_STATE || close_states(s, &p->now, leader, hypo));
}

int dgm_cube_group(dgm_search *s, int place, bool apart)
{
    const dgm_place *p = &s->places[place];
    dgm_cubes *c = s->cubes;
    const size_t at = (size_t)place * (size_t)s->width;
    int32_t *leader = c->leader + at, *below = c->below + at;
    bool *leads = c->leads + at;
    int cubes = 0;
    apart |= s->config.cube_key == DGM_CUBE_NONE;
    for (int j = 0; j < p->now.count; j++) {
        int last = -1; // of the sub-cube that j joins
        for (int i = 0; i < j && !apart && last < 0; i++)
            if (leads[i] && alike(s, p, i, j)) last = i;
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

void dgm_cube_remember(dgm_search *s, int first, int count)
{
    float *block = s->cubes->hidden;
    if (!block) return;
    for (int part = 0; part < s->part_count; part++) {
        const size_t n = (size_t)s->info[part]->hidden;
        dgm_op_read(s->exec, block + (size_t)first * n,
                    dgm_mat_rows(s->rows.hidden[part], 0, count));
        block += (size_t)s->capacity * n;
    }
}
