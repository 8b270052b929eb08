// SPDX-License-Identifier: MIT
// CUDA backend: attention, and the memory of source sentences.
//
// A block of a source's memory is 16 rows [keys of all heads, values of all heads]; the blocks of a
// sentence follow each other, so that they are rows as any others to the kernel.
#include <string.h>

#include "backend/cuda/cuda_private.h"

// ---- paths --------------------------------------------------------------------------------------

// first, length and entries lie one behind the other, and are sent together.
dgm_bytes cuda_paths_bytes(const dgm_backend *b, int rows, size_t entry_count)
{
    (void)b;
    const size_t numbers = (size_t)rows * sizeof(int32_t);
    return (dgm_bytes){.host = dgm_arena_cost(sizeof(dgm_paths)) + dgm_arena_cost(numbers),
                       .device = dgm_arena_cost(2 * numbers + entry_count * sizeof(int32_t))};
}

const dgm_paths *cuda_paths(dgm_exec *x, int rows, const int32_t *first, const int32_t *length,
                            const int32_t *entries, int entry_count)
{
    const size_t n = (size_t)rows, more = entries ? (size_t)entry_count : 0, size = sizeof(int32_t);
    dgm_paths *p = dgm_arena_alloc(&x->host, sizeof *p);
    int32_t *lengths = DGM_ARENA_ARRAY(&x->host, int32_t, n);
    int32_t *there = DGM_ARENA_ARRAY(&x->device, int32_t, 2 * n + more);
    memcpy(lengths, length, n * size);
    *p = (dgm_paths){.ops = &cuda_ops,
                     .first = there,
                     .length = there + n,
                     .entries = entries ? there + 2 * n : NULL,
                     .rows = rows,
                     .host_length = lengths};
    const cuda_part parts[] = {{first, n * size}, {length, n * size}, {entries, more * size}};
    cuda_send_parts(x, there, parts, entries ? 3 : 2);
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
                         .unit = 1};
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
    run(x, &a, p, align);
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

void cuda_blocks_put(dgm_exec *x, const dgm_blocks *memories, int layers, dgm_mat kv,
                     const dgm_block_span *spans, int count)
{
    _Static_assert(sizeof(dgm_block_span) == sizeof(cuda_span), "the same three numbers");
    cuda_begin(x);
    const cuda_span *sent = cuda_send(x, spans, (size_t)count * sizeof *spans);
    const int width = memories->heads * (memories->dk + memories->dv);
    if (!sent) return;
    for (int l = 0; l < layers; l++)
        cuda_run_put(cuda_tape_of(x), memories[l].data, memories[l].elem == sizeof(uint16_t), width,
                     DGM_BLOCK_POSITIONS, cuda_view(dgm_mat_cols(kv, l * width, width)), sent, count);
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
