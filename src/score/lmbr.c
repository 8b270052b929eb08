// SPDX-License-Identifier: MIT
// From posteriors to rows: the automaton of lmbr.h.
//
//   1. children of a trie node side by side, by token: a counting sort by parent, then each
//      family by itself
//   2. states: nodes of up to three tokens that have children, shorter ones first
//   3. fail(h w) = goto(fail(h), w); it is a state, as every suffix of an n-gram is an n-gram
//   4. row(s) = theta[n] P of the children of s, added to row(fail(s)); both ascend, so does the
//      result. State 0 has the dense row and adds nothing to the rows of others.
//
// A row repeats what its suffixes have (a few hundred states of a few dozen words): one look per
// ranked row instead of three.
#include "score/lmbr.h"

#include <math.h>
#include <string.h>

#include "base/lower_bound.h"
#include "base/mem.h"
#include "base/sort.h"

void dgm_lmbr_thetas(double p, double r, double t, int order, float theta[1 + DGM_LMBR_ORDER])
{
    theta[0] = (float)(-1.0 / t);
    for (int n = 1; n <= DGM_LMBR_ORDER; n++)
        theta[n] = n > order ? 0.0f : (float)(1.0 / (order * t * p * pow(r, n - 1)));
}

typedef struct compiler {
    const dgm_posteriors *p;
    dgm_lmbr_rows *r;
    uint32_t *first; // [nodes + 1]: children of node i are child[first[i]] .. child[first[i + 1])
    uint32_t *child; // [nodes]
    int32_t *state;  // [nodes] state of a node, -1: none
    uint32_t *node;  // [states]
    size_t ids_cap, values_cap, count; // entries of all rows
    // for the sort of one family
    uint32_t *order, *copy; // [nodes]
    int longest; // n-gram that earns anything: others are as if they had not been seen
} compiler;

static uint32_t node_count(const compiler *c)
{
    return c->p->count ? (uint32_t)c->p->count : 1;
}

// ---- families ----------------------------------------------------------------------------------

typedef struct family {
    const dgm_posterior *nodes;
    const uint32_t *members;
} family;

static int by_token(const void *context, uint32_t a, uint32_t b)
{
    const family *f = context;
    const int32_t x = f->nodes[f->members[a]].token, y = f->nodes[f->members[b]].token;
    return x < y ? -1 : x > y;
}

static void sort_family(compiler *c, uint32_t *members, uint32_t count)
{
    enum { SMALL = 32 };
    const dgm_posterior *nodes = c->p->nodes;
    if (count <= SMALL) {
        for (uint32_t i = 1; i < count; i++) {
            const uint32_t node = members[i];
            uint32_t at = i;
            DGM_INSERT(members, at, node, nodes[members[at - 1]].token > nodes[node].token);
        }
        return;
    }
    memcpy(c->copy, members, count * sizeof *members);
    const family f = {nodes, c->copy};
    dgm_sort_indices(c->order, count, by_token, &f);
    for (uint32_t i = 0; i < count; i++) members[i] = c->copy[c->order[i]];
}

static void make_families(compiler *c)
{
    const uint32_t n = node_count(c);
    const dgm_posterior *nodes = c->p->nodes;
    for (uint32_t i = 1; i < n; i++)
        if (nodes[i].length <= c->longest) c->first[nodes[i].parent + 1]++;
    for (uint32_t i = 0; i < n; i++) c->first[i + 1] += c->first[i];
    memcpy(c->order, c->first, n * sizeof *c->order);
    for (uint32_t i = 1; i < n; i++)
        if (nodes[i].length <= c->longest) c->child[c->order[nodes[i].parent]++] = i;
    for (uint32_t i = 0; i < n; i++)
        sort_family(c, c->child + c->first[i], c->first[i + 1] - c->first[i]);
}

// ---- states ------------------------------------------------------------------------------------

static void make_states(compiler *c)
{
    const uint32_t n = node_count(c);
    int32_t count = 1;
    for (uint32_t i = 0; i < n; i++) c->state[i] = -1;
    c->state[0] = 0;
    c->node[0] = 0;
    for (int length = 1; length < c->longest; length++)
        for (uint32_t i = 1; i < n; i++) {
            if (c->p->nodes[i].length != length || c->first[i] == c->first[i + 1]) continue;
            c->state[i] = count;
            c->node[count++] = i;
        }
    c->r->states = count;
}

// Position of a token in an ascending list, or -1.
static int32_t find(const int32_t *ids, int32_t begin, int32_t end, int32_t token)
{
    const int at = dgm_find_id(ids + begin, end - begin, token);
    return at < 0 ? -1 : begin + at;
}

// Successors of every state, and the next shorter suffix of those: shorter states come first, so
// theirs are known.
static dgm_status link_states(compiler *c, dgm_error *err)
{
    dgm_lmbr_rows *r = c->r;
    const size_t states = (size_t)r->states;
    r->next_at = dgm_calloc(states + 1, sizeof *r->next_at);
    r->next_ids = dgm_calloc(states, sizeof *r->next_ids);
    r->next = dgm_calloc(states, sizeof *r->next);
    r->fail = dgm_calloc(states, sizeof *r->fail);
    if (!r->next_at || !r->next_ids || !r->next || !r->fail) return dgm_no_memory(err);
    int32_t count = 0;
    for (int32_t s = 0; s < r->states; s++) {
        const uint32_t node = c->node[s];
        r->next_at[s] = count;
        for (uint32_t i = c->first[node]; i < c->first[node + 1]; i++) {
            const int32_t to = c->state[c->child[i]];
            if (to < 0) continue;
            r->next_ids[count] = c->p->nodes[c->child[i]].token;
            r->next[count++] = to;
        }
    }
    r->next_at[r->states] = count;
    for (int32_t s = 1; s < r->states; s++) {
        const dgm_posterior *n = &c->p->nodes[c->node[s]];
        r->fail[s] = n->length == 1 ? 0 : dgm_lmbr_next(r, r->fail[c->state[n->parent]], n->token);
    }
    return DGM_OK;
}

// ---- rows --------------------------------------------------------------------------------------

static dgm_status put(compiler *c, int32_t token, float value, dgm_error *err)
{
    dgm_lmbr_rows *r = c->r;
    DGM_FAIL_IF(c->count >= INT32_MAX / 2, err, DGM_ERR_TEXT,
                "the evidence of one line has too many n-grams");
    DGM_TRY(dgm_grow(&r->ids, &c->ids_cap, c->count + 1, sizeof *r->ids, err));
    DGM_TRY(dgm_grow(&r->values, &c->values_cap, c->count + 1, sizeof *r->values, err));
    r->ids[c->count] = token;
    r->values[c->count++] = value;
    return DGM_OK;
}

static dgm_status make_row(compiler *c, int32_t s, dgm_error *err)
{
    const dgm_lmbr_rows *r = c->r;
    const uint32_t node = c->node[s], end = c->first[node + 1];
    const double theta = (double)r->weights.theta[c->p->nodes[node].length + 1];
    uint32_t i = c->first[node];
    // The suffix' row: none where that is the dense one.
    int32_t k = r->fail[s] ? r->at[r->fail[s]] : 0;
    const int32_t last = r->fail[s] ? r->at[r->fail[s] + 1] : 0;
    while (i < end || k < last) {
        const int32_t own = i < end ? c->p->nodes[c->child[i]].token : INT32_MAX;
        const int32_t other = k < last ? r->ids[k] : INT32_MAX;
        double value = 0;
        if (own <= other) value += theta * c->p->nodes[c->child[i++]].p;
        if (other <= own) value += (double)r->values[k++];
        DGM_TRY(put(c, own < other ? own : other, (float)value, err));
    }
    return DGM_OK;
}

static dgm_status make_rows(compiler *c, dgm_error *err)
{
    dgm_lmbr_rows *r = c->r;
    r->at = dgm_calloc((size_t)r->states + 1, sizeof *r->at);
    if (!r->at) return dgm_no_memory(err);
    for (int32_t s = 0; s < r->states && c->p->count; s++) {
        DGM_TRY(make_row(c, s, err));
        r->at[s + 1] = (int32_t)c->count;
    }
    return DGM_OK;
}

dgm_status dgm_lmbr_compile(dgm_lmbr_rows **rows, const dgm_posteriors *p,
                            const dgm_lmbr_weights *weights, dgm_error *err)
{
    compiler c = {.p = p};
    const size_t n = node_count(&c);
    *rows = c.r = dgm_calloc(1, sizeof *c.r);
    c.first = dgm_calloc(n + 1, sizeof *c.first);
    c.child = dgm_calloc(n, sizeof *c.child);
    c.state = dgm_calloc(n, sizeof *c.state);
    c.node = dgm_calloc(n, sizeof *c.node);
    c.order = dgm_calloc(n, sizeof *c.order);
    c.copy = dgm_calloc(n, sizeof *c.copy);
    dgm_status st = DGM_OK;
    if (!c.r || !c.first || !c.child || !c.state || !c.node || !c.order || !c.copy)
        st = dgm_no_memory(err);
    if (st == DGM_OK) {
        c.r->weights = *weights;
        for (int k = 1; k <= DGM_LMBR_ORDER; k++)
            if (weights->theta[k] != 0.0f) c.longest = k;
        make_families(&c);
        make_states(&c);
        st = link_states(&c, err);
    }
    if (st == DGM_OK) st = make_rows(&c, err);
    dgm_free(c.first);
    dgm_free(c.child);
    dgm_free(c.state);
    dgm_free(c.node);
    dgm_free(c.order);
    dgm_free(c.copy);
    if (st != DGM_OK) dgm_lmbr_free(rows);
    return st;
}

void dgm_lmbr_free(dgm_lmbr_rows **rows)
{
    dgm_lmbr_rows *r = *rows;
    if (!r) return;
    dgm_free(r->at);
    dgm_free(r->ids);
    dgm_free(r->values);
    dgm_free(r->next_at);
    dgm_free(r->next_ids);
    dgm_free(r->next);
    dgm_free(r->fail);
    dgm_free(r);
    *rows = NULL;
}

int32_t dgm_lmbr_next(const dgm_lmbr_rows *r, int32_t state, int32_t token)
{
    for (;; state = r->fail[state]) {
        const int32_t at = find(r->next_ids, r->next_at[state], r->next_at[state + 1], token);
        if (at >= 0) return r->next[at];
        if (state == 0) return 0;
    }
}

float dgm_lmbr_gain(const dgm_lmbr_rows *r, int32_t state, int32_t token)
{
    const int32_t word = find(r->ids, r->at[0], r->at[1], token);
    float gain = word >= 0 ? r->values[word] : 0.0f;
    if (state == 0) return gain;
    const int32_t more = find(r->ids, r->at[state], r->at[state + 1], token);
    return more >= 0 ? gain + r->values[more] : gain;
}
