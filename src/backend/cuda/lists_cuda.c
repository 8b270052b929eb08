// SPDX-License-Identifier: MIT
// CUDA backend: lists of candidates that stay on the device, and those that are made there for a step (lists.cu).
//
// A sentence's list is the union of what the device keeps of its rows' centroids; the lists of a chunk of rows lie one
// behind the other in a pool, and where it pays so does the union of them all, of which every row of weights is read
// once. How long they get only the device knows: places are by the most that they can have.
#include <string.h>

#include "backend/cuda/cuda_private.h"

enum { POOL = 4 << 20 }; // tokens of the lists of a chunk of rows, where one has not more

// ---- gathered columns: the list alone -------------------------------------------------------------

dgm_bytes cuda_gathered_bytes(const dgm_backend *b, const dgm_linear *w, int capacity, int count)
{
    (void)b;
    (void)w;
    const size_t n = (size_t)count;
    return (dgm_bytes){
        .host = n * dgm_arena_cost(sizeof(dgm_gathered)),
        .device = n * dgm_arena_cost((size_t)capacity * sizeof(int32_t))};
}

dgm_gathered *cuda_gathered_open(dgm_exec *x, const dgm_linear *w, int capacity)
{
    (void)w;
    dgm_gathered *g = dgm_arena_alloc(&x->host, sizeof *g);
    int32_t *ids = DGM_ARENA_ARRAY(&x->device, int32_t, (size_t)capacity);
    if (!g || !ids) return NULL;
    *g = (dgm_gathered){.ops = &cuda_ops, .ids = ids, .capacity = capacity};
    return g;
}

void cuda_gather_columns(dgm_exec *x, dgm_gathered *g, const int32_t *ids, int count)
{
    g->count = count;
    const cuda_part part = {ids, (size_t)count * sizeof *ids};
    cuda_send_parts(x, g->ids, &part, 1);
}

// ---- lists of a step ------------------------------------------------------------------------------

static int words_of(int vocabulary)
{
    return (vocabulary + 63) / 64 * 2;
}

static size_t place_of(int tokens)
{
    return ((size_t)tokens + CUDA_LIST_SPARE + 31) / 32 * 32;
}

static size_t pool_of(int rows, int vocabulary)
{
    const size_t all = (size_t)rows * place_of(vocabulary), one = place_of(vocabulary), most = one > POOL ? one : POOL;
    return all < most ? all : most;
}

dgm_bytes cuda_joined_bytes(int rows, int vocabulary)
{
    const size_t lists = (size_t)rows + 1, words = (size_t)words_of(vocabulary);
    return (dgm_bytes){
        .host = dgm_arena_cost(lists * sizeof(cuda_joint)) + dgm_arena_cost(lists * sizeof(void *)),
        .device = dgm_arena_cost(lists * words * sizeof(uint32_t)) + dgm_arena_cost(lists * sizeof(int32_t)) +
                  dgm_arena_cost(lists * (size_t)cuda_list_tiles((int)words) * sizeof(int32_t)) +
                  dgm_arena_cost((pool_of(rows, vocabulary) + place_of(vocabulary)) * sizeof(int32_t))};
}

cuda_joined cuda_open_joined(dgm_exec *x, int rows, int vocabulary)
{
    const size_t lists = (size_t)rows + 1, words = (size_t)words_of(vocabulary);
    cuda_joined j = {.vocabulary = vocabulary, .words = (int)words, .room = pool_of(rows, vocabulary)};
    j.of = DGM_ARENA_ARRAY(&x->host, const dgm_candidates *, lists);
    j.lists = DGM_ARENA_ARRAY(&x->host, cuda_joint, lists);
    j.bits = DGM_ARENA_ARRAY(&x->device, uint32_t, lists *words);
    j.found = DGM_ARENA_ARRAY(&x->device, int32_t, lists);
    j.counts = DGM_ARENA_ARRAY(&x->device, int32_t, lists *(size_t)cuda_list_tiles((int)words));
    j.ids = DGM_ARENA_ARRAY(&x->device, int32_t, j.room + place_of(vocabulary));
    return j;
}

void cuda_clear_joined(cuda_joined *j)
{
    j->count = 0;
    j->used = 0;
}

static int find(const cuda_joined *j, const dgm_candidates *c)
{
    for (int i = j->count - 1; i >= 0; i--)
        if (j->of[i] == c) return i;
    return -1;
}

static int most_of(const cuda_joined *j, const dgm_candidates *c)
{
    return c->count < j->vocabulary ? c->count : j->vocabulary;
}

bool cuda_joined_fits(const cuda_joined *j, const dgm_candidates *c)
{
    return find(j, c) >= 0 || j->used + place_of(most_of(j, c)) <= j->room;
}

// A list of the next number whose tokens begin `at` in the pool.
static cuda_joint *place_list(cuda_joined *j, int number, size_t at)
{
    cuda_joint *list = &j->lists[number];
    *list = (cuda_joint){.bits = j->bits + (size_t)number * (size_t)j->words,
                         .ids = j->ids + at,
                         .found = j->found + number};
    return list;
}

const cuda_joint *cuda_join(cuda_joined *j, const dgm_candidates *c)
{
    int i = find(j, c);
    if (i >= 0) return &j->lists[i];
    i = j->count++;
    j->of[i] = c;
    cuda_joint *list = place_list(j, i, j->used);
    list->map_count = c->joint->which_count;
    list->add_count = c->joint->add_count;
    j->used += place_of(most_of(j, c));
    return list;
}

// The same place in the host's memory.
static void *on_host(dgm_exec *x, const void *place)
{
    const cuda_ring *r = &cuda_own(x)->ring;
    return r->host + ((const char *)place - r->device);
}

// Bitmaps and further tokens of all lists, one behind the other.
static bool send_parts(dgm_exec *x, cuda_joined *j, cuda_joint *all)
{
    for (int i = 0; i < j->count; i++) {
        all->map_count += j->lists[i].map_count;
        all->add_count += j->lists[i].add_count;
    }
    const uint32_t **maps = cuda_room(x, (size_t)all->map_count * sizeof *maps);
    int32_t *add = cuda_room(x, (size_t)all->add_count * sizeof *add);
    if (!maps || !add) return false;
    all->maps = maps;
    all->add = add;
    for (int i = 0; i < j->count; i++) {
        const dgm_joint *from = j->of[i]->joint;
        cuda_joint *list = &j->lists[i];
        const uint32_t **to = on_host(x, maps);
        for (int k = 0; k < from->which_count; k++)
            to[k] = from->centroids->lists + (size_t)from->which[k] * (size_t)from->centroids->list_words;
        if (from->add_count) memcpy(on_host(x, add), from->add, (size_t)from->add_count * sizeof *add);
        list->maps = maps;
        list->add = add;
        maps += from->which_count;
        add += from->add_count;
    }
    return true;
}

const cuda_joint *cuda_make_joined(dgm_exec *x, cuda_joined *j, bool together, int *most)
{
    cuda_joint *all = place_list(j, j->count, j->room);
    size_t sum = 0;
    for (int i = 0; i < j->count; i++) sum += (size_t)most_of(j, j->of[i]);
    *most = sum < (size_t)j->vocabulary ? (int)sum : j->vocabulary;
    if (!send_parts(x, j, all)) return NULL;
    const int count = j->count + (together && j->count > 1);
    const cuda_joint *sent = CUDA_SEND(x, cuda_joint, j->lists, count);
    if (!sent) return NULL;
    cuda_run_join(cuda_tape_of(x), sent, count, j->words, j->counts);
    return &j->lists[count - 1];
}
