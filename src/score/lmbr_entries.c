// SPDX-License-Identifier: MIT
// The matrix of LMBR for people to read: every n-gram of the evidence, how probable it is, and what
// the search earns by it. A row of the matrix is a history, all tokens of the n-gram but the last; what
// the row holds beside these entries it has from its suffixes, which are entries of theirs.
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "score/lmbr.h"

static int compare(const void *context, uint32_t a, uint32_t b)
{
    const dgm_lmbr_entry *all = context, *x = &all[a], *y = &all[b];
    if (x->length != y->length) return x->length < y->length ? -1 : 1;
    if (x->p != y->p) return x->p > y->p ? -1 : 1;
    for (int i = 0; i < x->length; i++)
        if (x->tokens[i] != y->tokens[i]) return x->tokens[i] < y->tokens[i] ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Entry i is node i + 1 of the trie; what comes before a node's last token is an earlier node.
static void fill(const dgm_posteriors *p, const dgm_lmbr_rows *r, dgm_lmbr_entry *all)
{
    for (size_t i = 1; i < p->count; i++) {
        const dgm_posterior *n = &p->nodes[i];
        dgm_lmbr_entry *e = &all[i - 1];
        int32_t state = 0;
        *e = (dgm_lmbr_entry){.length = n->length, .p = n->p};
        if (n->parent > 0) *e = all[n->parent - 1], e->length = n->length, e->p = n->p;
        e->tokens[n->length - 1] = n->token;
        for (int k = 0; k + 1 < n->length; k++) state = dgm_lmbr_next(r, state, e->tokens[k]);
        e->gain = dgm_lmbr_gain(r, state, n->token);
    }
}

dgm_status dgm_lmbr_entries(const dgm_posteriors *p, const dgm_lmbr_rows *r,
                            dgm_lmbr_entry **entries, size_t *count, dgm_error *err)
{
    const size_t n = p->count ? p->count - 1 : 0;
    dgm_lmbr_entry *all = dgm_malloc((n + 1) * sizeof *all);
    uint32_t *order = dgm_malloc((n + 1) * sizeof *order);
    *entries = dgm_malloc((n + 1) * sizeof **entries);
    *count = 0;
    const dgm_status st = all && order && *entries ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        fill(p, r, all);
        dgm_sort_indices(order, n, compare, all);
        for (size_t i = 0; i < n; i++) (*entries)[i] = all[order[i]];
        *count = n;
    } else {
        dgm_free(*entries);
        *entries = NULL;
    }
    dgm_free(all);
    dgm_free(order);
    return st;
}
