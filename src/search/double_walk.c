// SPDX-License-Identifier: MIT
// Pairs inside a lattice (score/walk.h).
//
// In one direction a pair is two arcs behind each other. From both ends a hypothesis stands at two places:
//
//     start --l1--> o --l2--> node ... set of nodes { a, b } --r2--> o --r1--> end
//
//   node   behind the left words; there is one, as a node has one arc per token
//   set    the nodes from which the right words lead to an end. For a word r the nodes before the set are those with an
//          arc of r into it: each has one such arc, so none is found twice
//
// The halves can still be joined while a path leads from the node to one of the set. Which pairs (l, r) leave one is
// found for all of a hypothesis with one look at the nodes between: from the last to the first, each is marked with
// the right words before whose arc it stands, and with the marks of the nodes behind it. (l, r) may be said where the
// node behind l has r's mark.
//
// The lattice's scores: of the left words and, of the right words, the best of the set, while the halves grow; those of
// the path when the sentence closes.
//
// Lists are the model's best, so the best left words and the best right words need not go together. A pair that does
// (`sure`) is watched besides: a hypothesis is never stuck, however narrow the beam. Where few words may follow, all
// of them are watched.
#include "search/double_private.h"

#include <math.h>

#include "base/sort.h"

// ---- where a hypothesis stands -----------------------------------------------------------------

static int32_t behind(const dgm_walk *w, int32_t node, int32_t token, float *sum)
{
    const int32_t at = node < 0 ? -1 : dgm_walk_find(w, node, token);
    if (at < 0) return -1;
    *sum += dgm_walk_add(w, at);
    return w->next[at];
}

// The nodes before those of set `now` by a word, into the other one; their number.
static int step_back(const dgm_walk *w, int now, int count, int32_t word)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const int32_t node = w->set[now][i];
        for (int32_t k = w->back_first[node]; k < w->back_first[node + 1]; k++) {
            const int32_t at = w->back[k];
            if (w->ids[at] != word) continue;
            w->set[!now][found] = w->from[at];
            w->sum[!now][found++] = w->sum[now][i] + dgm_walk_add(w, at);
        }
    }
    return found;
}

dgm_pair_place dgm_pair_stand(const dgm_walk *w, const dgm_pair_said *x)
{
    dgm_pair_place p = {.w = w};
    for (int i = 0; i < x->lefts; i++) p.node = behind(w, p.node, x->left[i], &p.left);
    if (!x->both) return p;
    for (int i = 0; i < w->end_count; i++) {
        w->set[0][i] = w->from[w->ends[i]];
        w->sum[0][i] = dgm_walk_add(w, w->ends[i]);
    }
    p.members = w->end_count;
    for (int i = 0; i < x->rights; i++) {
        p.members = step_back(w, p.set, p.members, x->right[i]);
        p.set = !p.set;
    }
    if (x->rights > 0) p.right = -INFINITY; // ends count with the first right word
    for (int i = 0; x->rights > 0 && i < p.members; i++) p.right = fmaxf(p.right, w->sum[p.set][i]);
    return p;
}

bool dgm_pair_follow(const dgm_walk *w, int32_t *node, int32_t token, float *add)
{
    *node = behind(w, *node, token, add);
    return *node >= 0;
}

bool dgm_pair_leave(const dgm_walk *w, int32_t node, int32_t eos, float *add)
{
    const int32_t at = node < 0 ? -1 : dgm_walk_find(w, node, eos);
    if (at >= 0) *add += dgm_walk_add(w, at);
    return at >= 0;
}

// ---- before rank -------------------------------------------------------------------------------

enum { REACHES = 1, MEMBER = 2 };

static int32_t first_word(const dgm_walk *w, int32_t node)
{
    int32_t at = w->first[node];
    if (at < w->first[node + 1] && w->next[at] < 0) at++; // the end symbol
    return at < w->first[node + 1] ? at : -1;
}

// Marks the nodes from which the set can be reached; the last node that is marked.
static int32_t mark_way(const dgm_pair_place *p)
{
    const dgm_walk *w = p->w;
    int32_t last = -1;
    for (int i = 0; i < p->members; i++)
        if (w->set[p->set][i] > last) last = w->set[p->set][i];
    for (int32_t n = p->node; n <= last; n++) w->mark[n] = 0;
    for (int i = 0; i < p->members; i++)
        if (w->set[p->set][i] >= p->node) w->mark[w->set[p->set][i]] = REACHES | MEMBER;
    for (int32_t n = last; n >= p->node; n--)
        for (int32_t i = w->first[n]; i < w->first[n + 1]; i++)
            if (w->next[i] >= 0 && w->next[i] <= last) w->mark[n] |= w->mark[w->next[i]] & REACHES;
    return last;
}

// The first and the last word of a way from the node to the set.
static void sure_way(const dgm_pair_place *p, int32_t sure[2])
{
    const dgm_walk *w = p->w;
    const int32_t last = mark_way(p);
    int32_t node = p->node;
    for (int words = 0;; words++) {
        int32_t on = -1;
        if (words > 0 && w->mark[node] & MEMBER) return;
        for (int32_t i = w->first[node]; on < 0 && i < w->first[node + 1]; i++)
            if (w->next[i] >= 0 && w->next[i] <= last && w->mark[w->next[i]] & REACHES) on = i;
        if (on < 0) return; // it can only close
        sure[words > 0] = w->ids[on];
        node = w->next[on];
    }
}

// Right words that may come, of all pairs; at most DGM_PAIR_WAYS of them, ascending.
static int list_rights(const dgm_pair_place *p, bool both, int32_t *list)
{
    const dgm_walk *w = p->w;
    int count = 0;
    for (int i = 0; both && i < p->members; i++)
        for (int32_t k = w->back_first[w->set[p->set][i]]; k < w->back_first[w->set[p->set][i] + 1]; k++)
            if (count < DGM_PAIR_WAYS) count = dgm_insert_id(list, count, w->ids[w->back[k]]);
    for (int32_t i = w->first[p->node]; !both && i < w->first[p->node + 1]; i++) {
        const int32_t next = w->next[i];
        for (int32_t k = next < 0 ? 0 : w->first[next]; next >= 0 && k < w->first[next + 1]; k++)
            if (count < DGM_PAIR_WAYS) count = dgm_insert_id(list, count, w->ids[k]);
    }
    return count;
}

void dgm_pair_ways(dgm_search *s, const dgm_pair_place *p, int row)
{
    const bool both = s->info[0]->order == DGM_ORDER_BIDIRECTIONAL;
    const dgm_walk *w = p->w;
    int32_t *list = s->pairs->ways + (size_t)row * DGM_PAIR_WAYS, *sure = s->pairs->sure + 2 * (size_t)row;
    sure[0] = sure[1] = -1;
    dgm_terms *left = &s->rows.terms[2 * row], *right = left + 1;
    dgm_terms_allow(left, w->ids + w->first[p->node], w->first[p->node + 1] - w->first[p->node]);
    dgm_terms_allow(right, list, list_rights(p, both, list));
    if (both) {
        sure_way(p, sure);
        return;
    }
    const int32_t on = first_word(w, p->node);
    if (on < 0) return;
    sure[0] = w->ids[on];
    sure[1] = w->ids[w->first[w->next[on]]];
}

int dgm_pair_watch(const dgm_search *s, int vector, int32_t *tokens)
{
    const dgm_terms *t = &s->rows.terms[vector];
    if (t->allow_count > DGM_OFFERS) {
        tokens[0] = s->pairs->sure[vector];
        return 1;
    }
    for (int i = 0; i < t->allow_count; i++) tokens[i] = t->allow[i];
    return t->allow_count;
}

// ---- after rank --------------------------------------------------------------------------------

// Which of the right words an arc into the set may be; -1: none.
static int number_of(const dgm_pair_rights *r, int32_t token)
{
    for (int i = 0; i < r->count; i++)
        if (r->tokens[i] == token) return i;
    return -1;
}

void dgm_pair_join(const dgm_pair_place *p, dgm_pair_rights *r)
{
    const dgm_walk *w = p->w;
    r->last = -1;
    for (int i = 0; i < r->count; i++) r->best[i] = -INFINITY;
    for (int i = 0; i < p->members; i++)
        for (int32_t k = w->back_first[w->set[p->set][i]]; k < w->back_first[w->set[p->set][i] + 1]; k++)
            if (w->from[w->back[k]] > r->last) r->last = w->from[w->back[k]];
    for (int32_t n = p->node; n <= r->last; n++) w->mark[n] = 0;
    for (int i = 0; i < p->members; i++)
        for (int32_t k = w->back_first[w->set[p->set][i]]; k < w->back_first[w->set[p->set][i] + 1]; k++) {
            const int32_t at = w->back[k];
            const int which = number_of(r, w->ids[at]);
            if (which < 0) continue;
            r->best[which] = fmaxf(r->best[which], w->sum[p->set][i] + dgm_walk_add(w, at));
            if (w->from[at] >= p->node) w->mark[w->from[at]] |= (uint64_t)1 << which;
        }
    for (int32_t n = r->last; n > p->node; n--)
        for (int32_t i = w->first[n]; i < w->first[n + 1]; i++)
            if (w->next[i] >= 0 && w->next[i] <= r->last) w->mark[n] |= w->mark[w->next[i]];
}

bool dgm_pair_joins(const dgm_pair_place *p, const dgm_pair_rights *r, int32_t node, int which)
{
    return node >= 0 && node <= r->last && p->w->mark[node] >> which & 1;
}
