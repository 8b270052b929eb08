// SPDX-License-Identifier: MIT
// CUDA backend: attention, and the memory of source sentences.
//
// A block of a source's memory is 16 rows [keys of all heads, values of all heads]; the blocks of a
// sentence follow each other, so that they are rows as any others to the kernel.
#include <string.h>

#include "backend/cuda/cuda_private.h"

// ---- paths --------------------------------------------------------------------------------------

// first, length and entries, or groups where there are none, lie one behind the other, and are sent together.
dgm_bytes cuda_paths_bytes(const dgm_backend *b, int rows, size_t entry_count)
{
    (void)b;
    const size_t numbers = (size_t)rows * sizeof(int32_t), size = sizeof(int32_t);
    const size_t more = entry_count > (size_t)rows ? entry_count : (size_t)rows + 1;
    return (dgm_bytes){.host = dgm_arena_cost(sizeof(dgm_paths)) + dgm_arena_cost(numbers) +
                               dgm_arena_cost(numbers + size),
                       .device = dgm_arena_cost(2 * numbers + more * size)};
}

// Where groups of neighbours with the same keys begin, and where the last one ends; returns how many there are.
static int find_groups(int rows, const int32_t *first, const int32_t *length, int32_t *groups)
{
    int count = 0;
    for (int i = 0; i < rows; i++) {
        const bool same = i > 0 && first[i] == first[i - 1] && length[i] == length[i - 1];
        if (!same || i - groups[count - 1] == CUDA_GROUP) groups[count++] = i;
    }
    groups[count] = rows;
    return count;
}

// Whether most rows share their first key with the one before: counted in parts.
typedef struct nearness {
    int rows, parts;
    const int32_t *first, *length, *entries;
    int *same; // [parts]
} nearness;

static void count_same(const void *arg, int part)
{
    const nearness *n = arg;
    const int32_t *first = n->first, *length = n->length, *entries = n->entries;
    const int begin = dgm_team_cut(n->rows, part, n->parts), end = dgm_team_cut(n->rows, part + 1, n->parts);
    int same = 0;
    for (int i = begin > 0 ? begin : 1; i < end; i++) {
        if (length[i] == 0 || length[i - 1] == 0) continue;
        same += entries ? entries[first[i]] == entries[first[i - 1]] : first[i] == first[i - 1];
    }
    n->same[part] = same;
}

static bool are_near(dgm_team *team, int rows, const int32_t *first, const int32_t *length, const int32_t *entries)
{
    enum { ROW_TIME = 3 }; // nanoseconds
    int counts[DGM_TEAM_PARTS], same = 0;
    const int parts = dgm_team_parts(team, (double)rows * ROW_TIME, DGM_TEAM_PARTS);
    const nearness n = {rows, parts, first, length, entries, counts};
    dgm_team_run(team, count_same, &n, parts);
    for (int i = 0; i < parts; i++) same += counts[i];
    return 2 * same >= rows;
}

const dgm_paths *cuda_paths(dgm_exec *x, int rows, const int32_t *first, const int32_t *length,
                            const int32_t *entries, int entry_count)
{
    const size_t n = (size_t)rows, size = sizeof(int32_t);
    dgm_paths *p = dgm_arena_alloc(&x->host, sizeof *p);
    int32_t *lengths = DGM_ARENA_ARRAY(&x->host, int32_t, n);
    int32_t *groups = entries ? NULL : DGM_ARENA_ARRAY(&x->host, int32_t, n + 1);
    const int count = entries ? rows : find_groups(rows, first, length, groups);
    const size_t more = entries ? (size_t)entry_count : (size_t)count + 1;
    int32_t *there = DGM_ARENA_ARRAY(&x->device, int32_t, 2 * n + more);
    memcpy(lengths, length, n * size);
    *p = (dgm_paths){.ops = &cuda_ops,
                     .first = there,
                     .length = there + n,
                     .entries = entries ? there + 2 * n : NULL,
                     .groups = entries ? NULL : there + 2 * n,
                     .rows = rows,
                     .group_count = count,
                     .near = are_near(x->team, rows, first, length, entries),
                     .host_length = lengths};
    const cuda_part parts[] = {{first, n * size}, {length, n * size}, {entries ? entries : groups, more * size}};
    cuda_send_parts(x, there, parts, 3);
    return p;
}

// ---- attention ----------------------------------------------------------------------------------

dgm_bytes cuda_attend_bytes(const dgm_backend *b, int heads, int keys)
{
    (void)b;
    (void)heads;
    (void)keys;
    return (dgm_bytes){0};
}

// Weights wait in memory of the device until the worker is waited for.
static void want_weights(dgm_exec *x, const cuda_attention *a, const dgm_paths *p,
                         const dgm_align_list *align)
{
    cuda_exec_own *o = x->own;
    for (int from = 0, n; from < align->count; from += n) {
        size_t room = o->weights_size - o->weights_used, used = 0;
        n = 0;
        while (from + n < align->count && o->wanted_count + n < o->wanted_room) {
            const int row = align->row[from + n], keys = p->host_length[row];
            if (used + (size_t)keys > room) break;
            o->starts[n] = (int32_t)(o->weights_used + used);
            o->wanted[o->wanted_count + n] =
                (cuda_wanted){align->to[from + n], o->starts[n], keys};
            used += (size_t)keys;
            n++;
        }
        if (n == 0) { // full: what is there is delivered now
            if (o->wanted_count == 0) {
                x->failed = dgm_fail(&x->why, DGM_ERR_MEMORY,
                                     "device %s: a sentence is too long for alignments",
                                     x->backend->props.name);
                return;
            }
            cuda_wait(x, "waiting for alignments");
            continue;
        }
        cuda_begin(x);
        const int32_t *rows = CUDA_SEND(x, int32_t, align->row + from, n);
        const int32_t *at = CUDA_SEND(x, int32_t, o->starts, n);
        if (!rows || !at) return;
        cuda_run_weights(cuda_tape_of(x), a, rows, at, n, align->head, o->device_weights);
        o->wanted_count += n;
        o->weights_used += used;
    }
}

static void run(dgm_exec *x, const cuda_attention *a, const dgm_paths *p, const dgm_align_list *align)
{
    cuda_run_attend(cuda_tape_of(x), a);
    if (align) want_weights(x, a, p, align);
}

static cuda_attention args_of(dgm_mat out, dgm_mat q, const dgm_paths *p)
{
    return (cuda_attention){.out = cuda_view(out),
                         .q = cuda_view(q),
                         .heads = 1,
                         .scale = 1,
                         .first = p->first,
                         .length = p->length,
                         .entries = p->entries,
                         .unit = 1,
                         .groups = p->groups,
                         .group_count = p->group_count,
                         .near = p->near};
}

// Whether f32 keys and values count as the halves that caches of such a model have. bf16 has a range that these lack.
static bool counts_as_halves(dgm_precision p)
{
    return p != DGM_PRECISION_F32 && p != DGM_PRECISION_BF16;
}

// Queries, keys and values are read as halves where whoever made them can leave such beside them; where not, the kernel
// rounds in the same way.
static void use_halves(dgm_exec *x, cuda_attention *a, dgm_mat k, dgm_mat v)
{
    cuda_tape *t = cuda_tape_of(x);
    const cuda_halves q = cuda_tape_halves(t, a->q, 0), keys = cuda_tape_halves(t, cuda_view(k), 0);
    const cuda_halves values = cuda_tape_halves(t, cuda_view(v), 0);
    if (((uintptr_t)q.data | (uintptr_t)keys.data | (uintptr_t)values.data) % 16) return;
    a->q_halves = q;
    if (!keys.data || !values.data) return;
    a->half = 1;
    a->k = keys.data;
    a->v = values.data;
    a->k_stride = keys.stride;
    a->v_stride = values.stride;
}

void cuda_attend(dgm_exec *x, dgm_mat out, dgm_mat q, dgm_mat k, dgm_mat v, const dgm_heads *heads,
                 const dgm_paths *p, const dgm_align_list *align)
{
    cuda_attention a = args_of(out, q, p);
    a.k = k.data;
    a.v = v.data;
    a.k_stride = k.stride;
    a.v_stride = v.stride;
    a.half = k.elem == sizeof(uint16_t);
    a.heads = heads->count;
    a.dk = heads->dk;
    a.dv = heads->dv;
    a.scale = heads->scale;
    a.bias = heads->bias ? heads->bias->data : NULL;
    a.reach = heads->reach;
    a.round = !a.half && counts_as_halves(heads->precision);
    cuda_attention rounded = a;
    if (a.round && cuda_tiles_fit(&a)) use_halves(x, &rounded, k, v);
    cuda_run_attend(cuda_tape_of(x), &rounded);
    if (align) want_weights(x, &a, p, align);
}

void cuda_attend_add(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w, dgm_mat k, dgm_mat v,
                     const dgm_paths *p, const dgm_align_list *align)
{
    cuda_attention a = args_of(out, q, p);
    a.k = k.data;
    a.v = v.data;
    a.k_stride = k.stride;
    a.v_stride = v.stride;
    a.dk = q.cols;
    a.dv = out.cols;
    a.additive = w->data;
    run(x, &a, p, align);
}

// ---- blocks -------------------------------------------------------------------------------------

// Halves of kv as the product before leaves them, which are then all that it writes: kv is read here only.
static cuda_halves take_halves(dgm_exec *x, dgm_mat kv)
{
    const cuda_halves h = cuda_tape_halves(cuda_tape_of(x), cuda_view(kv), 0);
    cuda_product *p = cuda_last_product(cuda_tape_of(x), 0);
    if (h.data && p && p->c == kv.data && p->halves.data == h.data && p->m == kv.rows && p->n == kv.cols) p->c = NULL;
    return h;
}

void cuda_blocks_put(dgm_exec *x, const dgm_blocks *memories, int layers, dgm_mat kv,
                     const dgm_block_span *spans, int count)
{
    _Static_assert(sizeof(dgm_block_span) == sizeof(cuda_span), "the same three numbers");
    cuda_begin(x);
    const cuda_span *sent = cuda_send(x, spans, (size_t)count * sizeof *spans);
    if (!sent) return;
    cuda_put put = {.half = memories->elem == sizeof(uint16_t),
                    .width = memories->heads * (memories->dk + memories->dv),
                    .unit = DGM_BLOCK_POSITIONS};
    const cuda_halves h = put.half ? take_halves(x, kv) : (cuda_halves){0};
    put.rounded = h.data != NULL;
    put.stride = h.data ? h.stride : kv.stride;
    for (int l = 0; l < layers; l += put.layers) {
        const size_t col = (size_t)l * (size_t)put.width;
        put.layers = layers - l < CUDA_LAYERS ? layers - l : CUDA_LAYERS;
        put.kv = h.data ? (const void *)((const uint16_t *)h.data + col) : (const float *)kv.data + col;
        for (int i = 0; i < put.layers; i++) put.memory[i] = memories[l + i].data;
        cuda_run_put(cuda_tape_of(x), &put, sent, count);
    }
}

void cuda_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *b, float scale,
                        const dgm_paths *p, const dgm_align_list *align)
{
    cuda_attention a = args_of(out, q, p);
    const size_t values = (size_t)b->heads * (size_t)b->dk * (size_t)b->elem;
    a.k = b->data;
    a.v = (const char *)b->data + values;
    a.k_stride = a.v_stride = b->heads * (b->dk + b->dv);
    a.half = b->elem == sizeof(uint16_t);
    a.heads = b->heads;
    a.dk = b->dk;
    a.dv = b->dv;
    a.scale = scale;
    a.unit = DGM_BLOCK_POSITIONS;
    run(x, &a, p, align);
}
