// SPDX-License-Identifier: MIT
// What some ways of writing want to know of a walk beside the tokens that leave a node (walk.h): from both ends the
// arcs that lead to one, for whole sentences how many tokens lie between it and an end.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "score/walk.h"

// ---- both ends ---------------------------------------------------------------------------------

// Arcs by the node that they lead to: counted, then put in their places.
static void sort_back(dgm_walk *w)
{
    const int32_t all = w->first[w->node_count];
    memset(w->back_first, 0, ((size_t)w->node_count + 1) * sizeof *w->back_first);
    for (int32_t i = 0; i < all; i++)
        if (w->next[i] >= 0) w->back_first[w->next[i] + 1]++;
    for (int32_t n = 0; n < w->node_count; n++) {
        w->back_first[n + 1] += w->back_first[n];
        for (int32_t i = w->first[n]; i < w->first[n + 1]; i++) w->from[i] = n;
    }
    int32_t *at = w->set[0]; // how many of a node are in place
    memset(at, 0, (size_t)w->node_count * sizeof *at);
    for (int32_t i = 0; i < all; i++)
        if (w->next[i] >= 0)
            w->back[w->back_first[w->next[i]] + at[w->next[i]]++] = i;
        else
            w->ends[w->end_count++] = i;
}

dgm_status dgm_walk_look_back(dgm_walk *w, dgm_error *err)
{
    const size_t nodes = (size_t)w->node_count, entries = (size_t)w->first[w->node_count] + 1;
    bool all = (w->back_first = dgm_malloc((nodes + 1) * sizeof *w->back_first)) != NULL;
    all &= (w->back = dgm_malloc(entries * sizeof *w->back)) != NULL;
    all &= (w->from = dgm_malloc(entries * sizeof *w->from)) != NULL;
    all &= (w->ends = dgm_malloc(nodes * sizeof *w->ends)) != NULL;
    all &= (w->mark = dgm_malloc(nodes * sizeof *w->mark)) != NULL;
    for (int i = 0; i < 2; i++) {
        all &= (w->set[i] = dgm_malloc(nodes * sizeof *w->set[i])) != NULL;
        all &= (w->sum[i] = dgm_malloc(nodes * sizeof *w->sum[i])) != NULL;
    }
    if (!all) return dgm_no_memory(err);
    sort_back(w);
    return DGM_OK;
}

// ---- whole sentences ---------------------------------------------------------------------------

// Lengths of other paths, each one token longer.
static void add_longer(uint64_t *own, const uint64_t *other, size_t words)
{
    for (size_t k = words; k-- > 0;) own[k] |= other[k] << 1 | (k > 0 ? other[k - 1] >> 63 : 0);
}

dgm_status dgm_walk_measure(dgm_walk *w, dgm_error *err)
{
    const size_t words = (size_t)w->longest / 64 + 1, nodes = (size_t)w->node_count;
    w->length_words = (int)words;
    w->lengths = dgm_calloc(nodes * words, sizeof *w->lengths);
    w->depths = dgm_calloc(nodes * words, sizeof *w->depths);
    if (!w->lengths || !w->depths) return dgm_no_memory(err);
    w->depths[0] = 1;
    for (size_t n = 0; n < nodes; n++) // arcs lead to higher numbers
        for (int32_t i = w->first[n]; i < w->first[n + 1]; i++)
            if (w->next[i] >= 0) add_longer(w->depths + (size_t)w->next[i] * words, w->depths + n * words, words);
    for (size_t n = nodes; n-- > 0;)
        for (int32_t i = w->first[n]; i < w->first[n + 1]; i++) {
            if (w->next[i] < 0)
                w->lengths[n * words] |= 1;
            else
                add_longer(w->lengths + n * words, w->lengths + (size_t)w->next[i] * words, words);
        }
    return DGM_OK;
}

static bool has(const dgm_walk *w, const uint64_t *bits, int32_t node, int count)
{
    if (count < 0 || count > w->longest) return false;
    return bits[(size_t)node * (size_t)w->length_words + (size_t)(count / 64)] >> (count % 64) & 1;
}

bool dgm_walk_ends_in(const dgm_walk *w, int32_t node, int count)
{
    return has(w, w->lengths, node, count);
}

bool dgm_walk_comes_in(const dgm_walk *w, int32_t node, int count)
{
    return has(w, w->depths, node, count);
}

// ---- sentences ---------------------------------------------------------------------------------

float dgm_walk_sentence(const dgm_walk *w, const int32_t *tokens, int count, int32_t eos, float *adds)
{
    float sum = 0.0f;
    int32_t node = 0;
    for (int i = 0; i <= count; i++) {
        const int32_t at = dgm_walk_find(w, node, i < count ? tokens[i] : eos);
        if (at < 0 || (i < count && w->next[at] < 0)) return -INFINITY;
        if (adds) adds[i] = dgm_walk_add(w, at);
        sum += dgm_walk_add(w, at);
        node = w->next[at];
    }
    return sum;
}
