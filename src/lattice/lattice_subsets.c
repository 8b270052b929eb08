// SPDX-License-Identifier: MIT
// A lattice of tokens in which every token leaves a node at most once, so that a search's place in
// it is one node: the subset construction with scores.
//
// A new node is a set of old nodes, each with what it is behind the best of them after the tokens
// that lead there:
//
//     set  | members first .. first + count - 1 |      member  | old node | behind (<= 0) |
//
// An arc's score is the best of its group, the rest stays behind: the best path of every token
// sequence keeps its score (the others are lost, they say the same). Sets with the same members are
// one node. Lattices are acyclic, so it ends; how many nodes there may be is the caller's choice.
#include <math.h>
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/sort.h"
#include "lattice/lattice.h"

typedef struct member {
    int32_t node, token; // token: of the arc that leads there, while members are collected
    double behind;
} member;

typedef struct set {
    size_t first, count;
    uint64_t hash;
} set;

typedef struct subsets {
    const dgm_lattice *l;
    dgm_lattice *out;
    bool scored;
    member *members;
    size_t member_count, member_cap;
    set *sets; // of node i of out
    size_t set_cap;
    uint32_t *slots; // hash table: set + 1
    size_t slot_count;
    member *fresh;
    size_t fresh_count, fresh_cap;
    uint32_t *order;
    size_t order_cap;
} subsets;

static uint64_t hash_of(const member *m, size_t count)
{
    uint64_t h = DGM_HASH_START;
    for (size_t i = 0; i < count; i++) {
        uint64_t bits;
        memcpy(&bits, &m[i].behind, sizeof bits);
        h = dgm_hash_number(h, (uint64_t)m[i].node);
        h = dgm_hash_number(h, bits);
        h ^= h >> 29;
    }
    return h;
}

static bool same(const subsets *s, const set *a, const set *b)
{
    if (a->hash != b->hash || a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        const member *x = &s->members[a->first + i], *y = &s->members[b->first + i];
        if (x->node != y->node || x->behind != y->behind) return false;
    }
    return true;
}

static dgm_status grow_slots(subsets *s, dgm_error *err)
{
    if (((size_t)s->out->node_count + 1) * 2 <= s->slot_count) return DGM_OK;
    const size_t count = s->slot_count ? 2 * s->slot_count : 256;
    uint32_t *slots = dgm_calloc(count, sizeof *slots);
    if (!slots) return dgm_no_memory(err);
    for (int32_t n = 0; n < s->out->node_count; n++) {
        size_t at = s->sets[n].hash & (count - 1);
        while (slots[at]) at = (at + 1) & (count - 1);
        slots[at] = (uint32_t)n + 1;
    }
    dgm_free(s->slots);
    s->slots = slots;
    s->slot_count = count;
    return DGM_OK;
}

// The node of the set that the last `count` members form; a known set gives them back.
static dgm_status node_of(subsets *s, size_t count, size_t most, int32_t *node, dgm_error *err)
{
    set fresh = {.first = s->member_count - count, .count = count};
    fresh.hash = hash_of(s->members + fresh.first, count);
    DGM_TRY(grow_slots(s, err));
    size_t at = fresh.hash & (s->slot_count - 1);
    for (; s->slots[at]; at = (at + 1) & (s->slot_count - 1)) {
        if (!same(s, &s->sets[s->slots[at] - 1], &fresh)) continue;
        s->member_count = fresh.first;
        *node = (int32_t)s->slots[at] - 1;
        return DGM_OK;
    }
    DGM_FAIL_IF((size_t)s->out->node_count >= most, err, DGM_ERR_UNSUPPORTED,
                "the lattice is too ambiguous: more than %zu nodes with one arc per token", most);
    DGM_TRY(dgm_grow(&s->sets, &s->set_cap, (size_t)s->out->node_count + 1, sizeof *s->sets, err));
    DGM_TRY(dgm_lattice_add_node(s->out, 0, node, err));
    s->sets[*node] = fresh;
    s->slots[at] = (uint32_t)*node + 1;
    float end = -INFINITY;
    for (size_t i = fresh.first; i < s->member_count; i++) {
        const member *m = &s->members[i];
        const float e = s->l->ends[m->node];
        if (e == -INFINITY) continue;
        const float score = s->scored ? (float)(m->behind + (double)e) : 0.0f;
        if (score > end) end = score;
    }
    s->out->ends[*node] = end;
    return DGM_OK;
}

static int by_token(const void *context, uint32_t a, uint32_t b)
{
    const member *x = &((const subsets *)context)->fresh[a];
    const member *y = &((const subsets *)context)->fresh[b];
    if (x->token != y->token) return x->token < y->token ? -1 : 1;
    if (x->node != y->node) return x->node < y->node ? -1 : 1;
    if (x->behind != y->behind) return x->behind > y->behind ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Where the members of a set lead.
static dgm_status collect(subsets *s, const set *from, dgm_error *err)
{
    const dgm_lattice *l = s->l;
    s->fresh_count = 0;
    for (size_t i = from->first; i < from->first + from->count; i++) {
        const member m = s->members[i];
        const size_t arcs = l->first[m.node + 1] - l->first[m.node];
        DGM_TRY(dgm_grow(&s->fresh, &s->fresh_cap, s->fresh_count + arcs, sizeof *s->fresh, err));
        for (size_t k = l->first[m.node]; k < l->first[m.node + 1]; k++)
            s->fresh[s->fresh_count++] =
                (member){.node = l->arcs[k].to,
                         .token = l->arcs[k].word,
                         .behind = s->scored ? m.behind + (double)l->arcs[k].score : 0.0};
    }
    DGM_TRY(dgm_grow(&s->order, &s->order_cap, s->fresh_count + 1, sizeof *s->order, err));
    dgm_sort_indices(s->order, s->fresh_count, by_token, s);
    return DGM_OK;
}

// One arc of node `from`: fresh[order[at ..)] of one token. Returns where the next token begins.
static dgm_status add_arc(subsets *s, int32_t from, size_t *at, size_t most, dgm_error *err)
{
    const int32_t token = s->fresh[s->order[*at]].token;
    const size_t first = s->member_count;
    double best = -INFINITY;
    int32_t last = -1;
    for (; *at < s->fresh_count && s->fresh[s->order[*at]].token == token; ++*at) {
        const member *m = &s->fresh[s->order[*at]];
        if (m->node == last) continue; // a worse way to the same node
        DGM_TRY(
            dgm_grow(&s->members, &s->member_cap, s->member_count + 1, sizeof *s->members, err));
        s->members[s->member_count++] = *m;
        last = m->node;
        if (m->behind > best) best = m->behind;
    }
    for (size_t i = first; i < s->member_count; i++) s->members[i].behind -= best;
    dgm_lattice_arc a = {.from = from, .word = token, .score = (float)best};
    DGM_TRY(node_of(s, s->member_count - first, most, &a.to, err));
    return dgm_lattice_add_arc(s->out, &a, err);
}

static dgm_status determine(subsets *s, size_t most, dgm_error *err)
{
    int32_t start;
    DGM_TRY(dgm_grow(&s->members, &s->member_cap, 1, sizeof *s->members, err));
    s->members[s->member_count++] = (member){.node = 0};
    DGM_TRY(node_of(s, 1, most, &start, err));
    for (int32_t n = 0; n < s->out->node_count; n++) {
        const set from = s->sets[n];
        DGM_TRY(collect(s, &from, err));
        for (size_t at = 0; at < s->fresh_count;) DGM_TRY(add_arc(s, n, &at, most, err));
    }
    return dgm_lattice_seal(s->out, false, err);
}

dgm_status dgm_lattice_determine(const dgm_lattice *subwords, bool scored, size_t most_nodes,
                                 dgm_lattice **out, dgm_error *err)
{
    subsets s = {.l = subwords, .scored = scored};
    *out = NULL;
    dgm_status st = dgm_lattice_open(&s.out, err);
    if (st == DGM_OK && subwords->name && !(s.out->name = dgm_strdup(subwords->name)))
        st = dgm_no_memory(err);
    if (st == DGM_OK) st = determine(&s, most_nodes, err);
    dgm_free(s.members);
    dgm_free(s.sets);
    dgm_free(s.slots);
    dgm_free(s.fresh);
    dgm_free(s.order);
    if (st != DGM_OK)
        dgm_lattice_close(&s.out);
    else
        *out = s.out;
    return st;
}
