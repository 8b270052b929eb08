// SPDX-License-Identifier: MIT
// Hash table of pairs; see pairmap.h. Linear probing, at most half full.
#include "base/pairmap.h"

#include <string.h>

#include "base/mem.h"

void dgm_pairmap_free(dgm_pairmap *m)
{
    dgm_free(m->key);
    dgm_free(m->value);
    dgm_free(m->used);
    *m = (dgm_pairmap){0};
}

static size_t slot_of(const dgm_pairmap *m, uint64_t key)
{
    uint64_t h = key * 0x9e3779b97f4a7c15u;
    h ^= h >> 32;
    size_t mask = m->slots - 1, i = (size_t)(h * 0x9e3779b97f4a7c15u >> 20) & mask;
    while (m->used[i] && m->key[i] != key) i = (i + 1) & mask;
    return i;
}

static dgm_status widen(dgm_pairmap *m, dgm_error *err)
{
    if ((m->count + 1) * 2 <= m->slots) return DGM_OK;
    dgm_pairmap wide = {.slots = m->slots ? m->slots * 2 : 1024, .count = m->count};
    wide.key = dgm_malloc(wide.slots * sizeof *wide.key);
    wide.value = dgm_malloc(wide.slots * sizeof *wide.value);
    wide.used = dgm_calloc(wide.slots, 1);
    if (!wide.key || !wide.value || !wide.used) {
        dgm_pairmap_free(&wide);
        return dgm_no_memory(err);
    }
    for (size_t i = 0; i < m->slots; i++) {
        if (!m->used[i]) continue;
        size_t to = slot_of(&wide, m->key[i]);
        wide.used[to] = 1;
        wide.key[to] = m->key[i];
        wide.value[to] = m->value[i];
    }
    dgm_pairmap_free(m);
    *m = wide;
    return DGM_OK;
}

dgm_status dgm_pairmap_at(dgm_pairmap *m, uint64_t key, uint32_t fresh, uint32_t **value,
                          dgm_error *err)
{
    DGM_TRY(widen(m, err));
    size_t i = slot_of(m, key);
    if (!m->used[i]) {
        m->used[i] = 1;
        m->key[i] = key;
        m->value[i] = fresh;
        m->count++;
    }
    *value = &m->value[i];
    return DGM_OK;
}

const uint32_t *dgm_pairmap_find(const dgm_pairmap *m, uint64_t key)
{
    if (m->slots == 0) return NULL;
    size_t i = slot_of(m, key);
    return m->used[i] ? &m->value[i] : NULL;
}
