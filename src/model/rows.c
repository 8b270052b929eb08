// SPDX-License-Identifier: MIT
// The pool of decoder rows; see model_private.h.
//
// A row is a node with a pointer to its parent. Freed rows go on a stack, so that the storage
// behind a row number is reused while it is still in cache. Rows that nobody holds live on while a
// held row descends from them, if the architecture needs its ancestors (key/value paths).
//
// A path is that of the parent and one entry more. The parent was made by the call before, in nearly every search, so
// its path is copied from there; else it is found by going from parent to parent.
#include <string.h>

#include "model/model_private.h"

enum { MANY = 8 }; // rows in use that are such a part of all are many

size_t dgm_row_pool_bytes(int capacity)
{
    size_t n = (size_t)capacity;
    return dgm_arena_cost(n * sizeof(dgm_row_node)) + 2 * dgm_arena_cost(n * sizeof(int32_t));
}

dgm_status dgm_row_pool_open(dgm_row_pool *p, dgm_arena *a, int capacity, bool keep_ancestors,
                             dgm_error *err)
{
    p->nodes = DGM_ARENA_ARRAY(a, dgm_row_node, (size_t)capacity);
    p->free_list = DGM_ARENA_ARRAY(a, int32_t, (size_t)capacity);
    p->held = DGM_ARENA_ARRAY(a, int32_t, (size_t)capacity);
    DGM_FAIL_IF(!p->nodes || !p->free_list || !p->held, err, DGM_ERR_MEMORY,
                "the worker's memory is too small for %d rows", capacity);
    p->capacity = capacity;
    p->keep_ancestors = keep_ancestors;
    dgm_row_pool_clear(p);
    return DGM_OK;
}

void dgm_row_pool_clear(dgm_row_pool *p)
{
    p->held_count = 0;
    p->free_count = p->capacity;
    for (int i = 0; i < p->capacity; i++) p->free_list[i] = p->capacity - 1 - i;
}

int32_t dgm_row_pool_take(dgm_row_pool *p, int32_t parent, int32_t slot)
{
    if (p->free_count == 0) return -1;
    int32_t row = p->free_list[--p->free_count];
    int32_t position = parent < 0 ? 0 : p->nodes[parent].position + 1;
    p->nodes[row] = (dgm_row_node){.parent = parent, .slot = slot, .position = position, .refs = 1};
    if (parent >= 0 && p->keep_ancestors) p->nodes[parent].refs++;
    p->held[p->held_count++] = row;
    return row;
}

// Takes one reference away; frees the row and climbs while rows become free.
static void drop(dgm_row_pool *p, int32_t row)
{
    while (row >= 0 && --p->nodes[row].refs == 0) {
        p->free_list[p->free_count++] = row;
        row = p->keep_ancestors ? p->nodes[row].parent : -1;
    }
}

void dgm_row_pool_retain(dgm_row_pool *p, int count, const int32_t *rows)
{
    if (count == 0 && p->free_count < p->capacity / MANY * (MANY - 1)) {
        dgm_row_pool_clear(p); // faster than going through many paths
        return;
    }
    for (int i = 0; i < count; i++) p->nodes[rows[i]].keep = true;
    int kept = 0;
    for (int i = 0; i < p->held_count; i++) {
        int32_t row = p->held[i];
        if (p->nodes[row].keep) {
            p->nodes[row].keep = false;
            p->held[kept++] = row;
        } else {
            drop(p, row);
        }
    }
    p->held_count = kept;
}

// ---- paths ----------------------------------------------------------------------------------------

size_t dgm_row_pool_paths_bytes(size_t entries)
{
    return 2 * dgm_arena_cost(entries * sizeof(int32_t));
}

bool dgm_row_pool_paths_open(dgm_row_pool *p, dgm_arena *a, size_t entries)
{
    for (int i = 0; i < 2; i++) p->paths[i] = DGM_ARENA_ARRAY(a, int32_t, entries);
    return p->paths[0] && p->paths[1];
}

// The last `tokens` of a path's entries are the row's own.
static void own_entries(int32_t *end, int32_t row, int tokens)
{
    for (int k = 0; k < tokens; k++) end[k - tokens] = row * tokens + k;
}

static void walk_path(const dgm_row_pool *p, int32_t row, int tokens, int32_t *path)
{
    for (int i = p->nodes[row].position; i > 0; i--, row = p->nodes[row].parent)
        own_entries(path + (size_t)i * (size_t)tokens, row, tokens);
}

typedef struct copying {
    dgm_row_pool *pool;
    uint32_t before, call;
    int count, tokens, parts;
    const int32_t *rows, *first, *length;
} copying;

static void copy_paths(const void *arg, int part)
{
    const copying *c = arg;
    const dgm_row_pool *p = c->pool;
    const int32_t *old = p->paths[c->before % 2];
    int32_t *paths = p->paths[c->call % 2];
    const int end = dgm_team_cut(c->count, part + 1, c->parts);
    for (int i = dgm_team_cut(c->count, part, c->parts); i < end; i++) {
        dgm_row_node *node = &p->nodes[c->rows[i]];
        const dgm_row_node *parent = &p->nodes[node->parent];
        const int at = c->first[i], n = c->length[i];
        if (parent->path_call == c->before && c->before) {
            memcpy(paths + at, old + parent->path_at, (size_t)(n - c->tokens) * sizeof *paths);
            own_entries(paths + at + n, c->rows[i], c->tokens);
        } else {
            walk_path(p, c->rows[i], c->tokens, paths + at);
        }
        node->path_at = at;
        node->path_call = c->call;
    }
}

const int32_t *dgm_row_pool_paths(dgm_row_pool *p, dgm_team *team, int count, const int32_t *rows, int tokens,
                                  int32_t *first, int32_t *length)
{
    enum { MOST = 32, ROW_TIME = 8, ENTRIES = 16 }; // nanoseconds of a row, and entries that take another one
    const uint32_t before = p->path_calls, call = before + 1 ? before + 1 : 1; // never 0
    int32_t at = 0;
    for (int i = 0; i < count; i++) {
        first[i] = at;
        length[i] = p->nodes[rows[i]].position * tokens;
        at += length[i];
    }
    const int parts = dgm_team_parts(team, (double)count * ROW_TIME + (double)at / ENTRIES, MOST);
    const copying c = {p, before, call, count, tokens, parts, rows, first, length};
    dgm_team_run(team, copy_paths, &c, parts);
    p->path_calls = call;
    return p->paths[call % 2];
}
