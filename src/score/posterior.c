// SPDX-License-Identifier: MIT
// Posteriors of n-grams in a trie; see posterior.h.
//
// Children are found in one hash table over (parent, token), which is never more than half full.
// A translation of n tokens touches at most 4 n nodes (of order 4); each is counted once, because a node
// remembers the number of the translation that touched it last.
#include "score/posterior.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

void dgm_posteriors_clear(dgm_posteriors *p)
{
    p->count = 0;
    p->translations = 0;
    if (p->table) memset(p->table, 0, p->table_size * sizeof *p->table);
}

void dgm_posteriors_free(dgm_posteriors *p)
{
    dgm_free(p->nodes);
    dgm_free(p->table);
    *p = (dgm_posteriors){0};
}

static size_t slot_of(const dgm_posteriors *p, uint32_t parent, int32_t token)
{
    uint64_t h = ((uint64_t)parent << 32 | (uint32_t)token) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(h >> 29) & (p->table_size - 1);
    for (;; at = (at + 1) & (p->table_size - 1)) {
        const uint32_t node = p->table[at];
        if (node == 0) return at;
        if (p->nodes[node].parent == (int32_t)parent && p->nodes[node].token == token) return at;
    }
}

uint32_t dgm_posteriors_child(const dgm_posteriors *p, uint32_t parent, int32_t token)
{
    return p->table_size ? p->table[slot_of(p, parent, token)] : 0;
}

static dgm_status grow_table(dgm_posteriors *p, dgm_error *err)
{
    const size_t size = p->table_size ? p->table_size * 2 : 1024;
    uint32_t *table = dgm_calloc(size, sizeof *table);
    if (!table) return dgm_no_memory(err);
    dgm_free(p->table);
    p->table = table;
    p->table_size = size;
    for (size_t i = 1; i < p->count; i++)
        table[slot_of(p, (uint32_t)p->nodes[i].parent, p->nodes[i].token)] = (uint32_t)i;
    return DGM_OK;
}

static dgm_status prepare(dgm_posteriors *p, size_t more, dgm_error *err)
{
    DGM_FAIL_IF(p->count + more + 1 > INT32_MAX / 2, err, DGM_ERR_TEXT,
                "the evidence of one line has too many n-grams");
    DGM_TRY(dgm_grow(&p->nodes, &p->cap, p->count + more + 1, sizeof *p->nodes, err));
    if (p->count == 0) p->nodes[p->count++] = (dgm_posterior){.parent = -1, .token = -1};
    while (p->table_size < 2 * (p->count + more)) DGM_TRY(grow_table(p, err));
    return DGM_OK;
}

// There is room for it.
static uint32_t child(dgm_posteriors *p, uint32_t parent, int32_t token)
{
    const size_t at = slot_of(p, parent, token);
    if (p->table[at]) return p->table[at];
    const uint32_t node = (uint32_t)p->count++;
    p->nodes[node] = (dgm_posterior){
        .parent = (int32_t)parent, .token = token, .length = p->nodes[parent].length + 1};
    return p->table[at] = node;
}

dgm_status dgm_posteriors_add(dgm_posteriors *p, const int32_t *tokens, size_t count, double weight,
                              dgm_error *err)
{
    DGM_FAIL_IF(count > INT32_MAX / 16, err, DGM_ERR_TEXT,
                "a translation of %zu tokens; at most %d are allowed", count, INT32_MAX / 16);
    const size_t order = (size_t)dgm_posteriors_order(p);
    DGM_TRY(prepare(p, count * order, err));
    const uint32_t mark = ++p->translations;
    for (size_t i = 0; i < count; i++) {
        uint32_t node = 0;
        for (size_t n = 0; n < order && i + n < count; n++) {
            node = child(p, node, tokens[i + n]);
            if (p->nodes[node].seen == mark) continue;
            p->nodes[node].seen = mark;
            p->nodes[node].p += weight;
        }
    }
    return DGM_OK;
}

dgm_status dgm_posteriors_node(dgm_posteriors *p, const int32_t *tokens, int count, uint32_t *node,
                               dgm_error *err)
{
    DGM_FAIL_IF(count < 1 || count > DGM_LMBR_ORDER, err, DGM_ERR_ARGUMENT,
                "an n-gram of %d tokens; it must have 1 to %d", count, DGM_LMBR_ORDER);
    DGM_TRY(prepare(p, DGM_LMBR_ORDER, err));
    *node = 0;
    for (int i = 0; i < count; i++) *node = child(p, *node, tokens[i]);
    return DGM_OK;
}

double dgm_posteriors_get(const dgm_posteriors *p, const int32_t *tokens, int count)
{
    uint32_t node = 0;
    for (int i = 0; i < count; i++) {
        node = dgm_posteriors_child(p, node, tokens[i]);
        if (node == 0) return 0;
    }
    return count > 0 ? p->nodes[node].p : 0;
}

void dgm_evidence_weights(double *scores, size_t count, double scale)
{
    double best = -INFINITY, sum = 0;
    for (size_t i = 0; i < count; i++) best = fmax(best, scale * scores[i]);
    for (size_t i = 0; i < count; i++) sum += scores[i] = exp(scale * scores[i] - best);
    for (size_t i = 0; i < count; i++) scores[i] /= sum;
}
