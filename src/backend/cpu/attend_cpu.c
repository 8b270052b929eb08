// SPDX-License-Identifier: MIT
// CPU backend: attention, and the memory of source sentences.
//
// A block of a source's memory (kernel/attend_blocks_tmpl.h) holds its keys transposed and its values
// head by head: it is read at every step of a sentence and written once. Query rows that look at the
// same source, as the rows of a beam do, share one walk over it.
#include <string.h>

#include "backend/cpu/cpu_private.h"

_Static_assert((int)DGM_BLOCK_POSITIONS == (int)DGM_BLOCK_KEYS, "the kernels' blocks");

// Weights of one head, or their mean, for the caller's alignment.
static void copy_alignment(float *to, const float *weights, int heads, int n, int head)
{
    const int stride = dgm_attend_stride(n);
    if (head >= 0) {
        memcpy(to, weights + head * stride, (size_t)n * sizeof(float));
        return;
    }
    for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int h = 0; h < heads; h++) sum += weights[h * stride + j];
        to[j] = sum / (float)heads;
    }
}

static int longest_path(const dgm_paths *p, int rows)
{
    int n = 1;
    for (int i = 0; i < rows; i++)
        if (p->length[i] > n) n = p->length[i];
    return n;
}

// The next alignment that is wanted, for rows that are asked in ascending order.
typedef struct wanted {
    const dgm_align_list *align; // NULL: nobody wants any
    int heads, at;
} wanted;

static void hand_over(wanted *w, int row, const float *weights, int n)
{
    const dgm_align_list *a = w->align;
    while (a && w->at < a->count && a->row[w->at] == row)
        copy_alignment(a->to[w->at++], weights, w->heads, n, a->head);
}

// Keys and values that the rows read, each of `width` numbers a row.
static void count_attention(dgm_exec *x, const dgm_paths *p, int elem, dgm_mat q, dgm_mat out,
                            double begin)
{
    uint64_t keys = 0, width = (uint64_t)q.cols + (uint64_t)out.cols;
    for (int i = 0; i < q.rows; i++) keys += (uint64_t)p->length[i];
    dgm_meter_row what = {.work = p->entries ? DGM_WORK_ATTEND_PATH : DGM_WORK_ATTEND,
                          .rows = (uint64_t)q.rows,
                          .madds = keys * width,
                          .other_bytes = keys * width * (uint64_t)elem +
                                         (uint64_t)q.rows * width * sizeof(float)};
    cpu_count(x, &what, begin);
}

// ---- paths --------------------------------------------------------------------------------------

dgm_bytes cpu_paths_bytes(const dgm_backend *b, int rows, size_t entry_count)
{
    (void)b;
    return (dgm_bytes){.device = dgm_arena_cost(sizeof(dgm_paths)) +
                                 2 * dgm_arena_cost((size_t)rows * sizeof(int32_t)) +
                                 dgm_arena_cost(entry_count * sizeof(int32_t))};
}

static const int32_t *keep(dgm_exec *x, const int32_t *from, int count)
{
    int32_t *to = DGM_ARENA_ARRAY(&x->device, int32_t, (size_t)count);
    memcpy(to, from, (size_t)count * sizeof *to);
    return to;
}

const dgm_paths *cpu_paths(dgm_exec *x, int rows, const int32_t *first, const int32_t *length,
                           const int32_t *entries, int entry_count)
{
    dgm_paths *p = dgm_arena_alloc(&x->device, sizeof *p);
    *p = (dgm_paths){&cpu_ops, keep(x, first, rows), keep(x, length, rows),
                     entries ? keep(x, entries, entry_count) : NULL};
    return p;
}

// How many of two rows' keys are the same from the first on; 0 if they lie in different places.
static int common_keys(const dgm_paths *p, int a, int b)
{
    int n = p->length[a] < p->length[b] ? p->length[a] : p->length[b], j = 0;
    if (p->first[a] == p->first[b]) return n;
    if (!p->entries) return 0;
    const int32_t *one = p->entries + p->first[a], *other = p->entries + p->first[b];
    while (j < n && one[j] == other[j]) j++;
    return j;
}

// Rows from `first` on that are worth computing together: they share half of the first one's keys.
static int take_group(const dgm_paths *p, int first, int end, int *shared)
{
    int n = 1, common = p->length[first];
    while (n < DGM_ATTEND_QUERIES && first + n < end) {
        int keys = common_keys(p, first, first + n);
        if (2 * keys < p->length[first]) break;
        common = keys < common ? keys : common;
        n++;
    }
    *shared = n > 1 ? common : 0;
    return n;
}

// ---- rows ---------------------------------------------------------------------------------------

dgm_bytes cpu_attend_bytes(const dgm_backend *b, int heads, int keys)
{
    (void)b;
    size_t weights = (size_t)heads * (size_t)dgm_attend_stride(keys) * DGM_ATTEND_QUERIES;
    return (dgm_bytes){.device = dgm_arena_cost(weights * sizeof(float))};
}

// The bias of query i against the first key of its path, head 0.
static const float *bias_of(const dgm_heads *heads, const dgm_paths *p, int i)
{
    const int place = p->entries ? p->length[i] - 1 : i - p->first[i];
    return heads->bias->data + (heads->reach - 1 - place);
}

void cpu_attend(dgm_exec *x, dgm_mat out, dgm_mat q, dgm_mat k, dgm_mat v, const dgm_heads *heads,
                const dgm_paths *p, const dgm_align_list *align)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    size_t room = (size_t)(heads->count * dgm_attend_stride(longest_path(p, q.rows)));
    float *weights = dgm_arena_array(&x->device, DGM_ATTEND_QUERIES * room, sizeof(float));
    wanted w = {align, heads->count, 0};
    dgm_attend_args args = {.stride = (size_t)k.stride, .heads = heads->count, .dk = heads->dk,
                            .dv = heads->dv, .scale = heads->scale,
                            .bias_stride = heads->bias ? (size_t)heads->bias->cols : 0};
    for (int i = 0; i < q.rows; i += args.queries) {
        args.queries = take_group(p, i, q.rows, &args.shared);
        args.k = p->entries ? k.data : dgm_mat_rows(k, p->first[i], 1).data;
        args.v = p->entries ? v.data : dgm_mat_rows(v, p->first[i], 1).data;
        const int next = i + args.queries;
        const bool more = next < q.rows && p->entries;
        args.next = more ? p->entries + p->first[next] : NULL;
        args.next_n = more ? p->length[next] : 0;
        for (int r = 0; r < args.queries; r++) {
            args.out[r] = cpu_row(out, i + r);
            args.q[r] = cpu_row(q, i + r);
            args.index[r] = p->entries ? p->entries + p->first[i + r] : NULL;
            args.n[r] = p->length[i + r];
            args.weights[r] = weights + (size_t)r * room;
            if (heads->bias) args.bias[r] = bias_of(heads, p, i + r);
        }
        if (k.elem == sizeof(uint16_t))
            x->backend->k.attend_f16(&args);
        else
            x->backend->k.attend_f32(&args);
        for (int r = 0; align && r < args.queries; r++)
            hand_over(&w, i + r, args.weights[r], args.n[r]);
    }
    dgm_arena_reset(&x->device, mark);
    if (x->meter) count_attention(x, p, k.elem, q, out, begin);
}

void cpu_attend_add(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w, dgm_mat k, dgm_mat v,
                    const dgm_paths *p, const dgm_align_list *align)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    float *weights =
        dgm_arena_array(&x->device, (size_t)longest_path(p, q.rows), sizeof(float));
    wanted want = {align, 1, 0};
    for (int i = 0; i < q.rows; i++) {
        dgm_attend_add_args args = {
            .out = cpu_row(out, i),
            .q = cpu_row(q, i),
            .w = w->data,
            .k = cpu_row(k, p->first[i]),
            .v = cpu_row(v, p->first[i]),
            .n = p->length[i],
            .da = q.cols,
            .dv = out.cols,
            .weights = weights,
        };
        x->backend->k.attend_add_f32(&args);
        hand_over(&want, i, weights, args.n);
    }
    dgm_arena_reset(&x->device, mark);
    if (x->meter) count_attention(x, p, sizeof(float), q, out, begin);
}

// ---- blocks -----------------------------------------------------------------------------------

static size_t block_elements(int heads, int dk, int dv)
{
    return (size_t)heads * (size_t)(dk + dv) * DGM_BLOCK_KEYS;
}

size_t cpu_blocks_bytes(const dgm_backend *b, int count, int heads, int dk, int dv,
                             dgm_precision precision)
{
    (void)b;
    size_t bytes = block_elements(heads, dk, dv) * (size_t)cpu_cache_elem(precision);
    return dgm_arena_cost((size_t)count * bytes);
}

dgm_blocks cpu_blocks(dgm_exec *x, int count, int heads, int dk, int dv,
                           dgm_precision precision)
{
    dgm_blocks b = {NULL, block_elements(heads, dk, dv), cpu_cache_elem(precision), heads, dk, dv};
    b.data = dgm_arena_array(&x->device, (size_t)count * b.block, (size_t)b.elem);
    return b;
}

static void put_f32(float *to, const dgm_blocks *b, dgm_mat kv)
{
    int keys = b->heads * b->dk;
    memset(to, 0, b->block * sizeof(float));
    for (int j = 0; j < kv.rows; j++) {
        const float *row = cpu_row(kv, j);
        for (int d = 0; d < keys; d++) to[d * DGM_BLOCK_KEYS + j] = row[d];
        float *values = to + keys * DGM_BLOCK_KEYS + j * b->dv;
        for (int h = 0; h < b->heads; h++)
            memcpy(values + h * b->dv * DGM_BLOCK_KEYS, row + keys + h * b->dv,
                   (size_t)b->dv * sizeof(float));
    }
}

// The rows are rounded into `half` [16, keys + values] first.
static void put_f16(uint16_t *to, const dgm_blocks *b, dgm_mat kv, const dgm_kernels *k,
                    uint16_t *half)
{
    int keys = b->heads * b->dk, width = keys + b->heads * b->dv;
    memset(half, 0, b->block * sizeof *half);
    for (int j = 0; j < kv.rows; j++) k->half_f32(half + j * width, cpu_row(kv, j), width);
    for (int d = 0; d < keys; d++)
        for (int j = 0; j < DGM_BLOCK_KEYS; j++) *to++ = half[j * width + d];
    for (int h = 0; h < b->heads; h++)
        for (int j = 0; j < DGM_BLOCK_KEYS; j++, to += b->dv)
            memcpy(to, half + j * width + keys + h * b->dv, (size_t)b->dv * sizeof *to);
}

// One span of one memory.
static void put_span(dgm_exec *x, const dgm_blocks *b, dgm_mat kv, int first, uint16_t *half)
{
    for (int at = 0; at < kv.rows; at += DGM_BLOCK_KEYS) {
        int n = kv.rows - at < DGM_BLOCK_KEYS ? kv.rows - at : DGM_BLOCK_KEYS;
        dgm_mat rows = dgm_mat_rows(kv, at, n);
        size_t begin_at = (size_t)(first + at / DGM_BLOCK_KEYS) * b->block;
        if (b->elem == sizeof(uint16_t))
            put_f16((uint16_t *)b->data + begin_at, b, rows, &x->backend->k, half);
        else
            put_f32((float *)b->data + begin_at, b, rows);
    }
}

void cpu_blocks_put(dgm_exec *x, const dgm_blocks *memories, int layers, dgm_mat kv,
                    const dgm_block_span *spans, int count)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    const dgm_blocks *b = memories;
    const int width = b->heads * (b->dk + b->dv);
    uint16_t *half = dgm_arena_array(&x->device, b->block, sizeof *half);
    for (int i = 0; i < count; i++) {
        dgm_mat own = dgm_mat_rows(kv, spans[i].row, spans[i].rows);
        for (int l = 0; l < layers; l++)
            put_span(x, &memories[l], dgm_mat_cols(own, l * width, width), spans[i].first, half);
    }
    dgm_arena_reset(&x->device, mark);
    cpu_moved(x, begin, DGM_WORK_ROWS, kv, 1);
}

static const void *block_data(const dgm_blocks *b, int block)
{
    return (const char *)b->data + (size_t)block * b->block * (size_t)b->elem;
}

// Rows from `first` on with one source, as many as a kernel takes.
static int same_source(const dgm_paths *p, int first, int end)
{
    int n = 1;
    while (n < DGM_ATTEND_QUERIES && first + n < end && p->first[first + n] == p->first[first] &&
           p->length[first + n] == p->length[first])
        n++;
    return n;
}

static void count_blocks(dgm_exec *x, const dgm_paths *p, dgm_mat q, const dgm_blocks *b,
                         double begin)
{
    uint64_t keys = 0, read = 0, width = (uint64_t)b->heads * (uint64_t)(b->dk + b->dv);
    for (int i = 0, n; i < q.rows; i += n) {
        n = same_source(p, i, q.rows);
        keys += (uint64_t)n * (uint64_t)p->length[i];
        read += (uint64_t)p->length[i];
    }
    dgm_meter_row what = {.work = DGM_WORK_ATTEND,
                          .rows = (uint64_t)q.rows,
                          .madds = keys * width,
                          .other_bytes = read * width * (uint64_t)b->elem +
                                         (uint64_t)q.rows * width * sizeof(float)};
    cpu_count(x, &what, begin);
}

void cpu_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *b, float scale,
                       const dgm_paths *p, const dgm_align_list *align)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    size_t room = (size_t)(b->heads * dgm_attend_stride(longest_path(p, q.rows)));
    float *weights = dgm_arena_array(&x->device, DGM_ATTEND_QUERIES * room, sizeof(float));
    wanted w = {align, b->heads, 0};
    for (int i = 0, n; i < q.rows; i += n) {
        n = same_source(p, i, q.rows);
        dgm_attend_blocks_args args = {.queries = n,
                                       .blocks = block_data(b, p->first[i]),
                                       .block = b->block,
                                       .n = p->length[i],
                                       .heads = b->heads,
                                       .dk = b->dk,
                                       .dv = b->dv,
                                       .scale = scale};
        if (i + n < q.rows) {
            args.next = block_data(b, p->first[i + n]);
            args.next_n = p->length[i + n];
        }
        for (int r = 0; r < n; r++) {
            args.out[r] = cpu_row(out, i + r);
            args.q[r] = cpu_row(q, i + r);
            args.weights[r] = weights + (size_t)r * room;
        }
        if (b->elem == sizeof(uint16_t))
            x->backend->k.attend_blocks_f16(&args);
        else
            x->backend->k.attend_blocks_f32(&args);
        for (int r = 0; align && r < n; r++) hand_over(&w, i + r, args.weights[r], args.n);
    }
    dgm_arena_reset(&x->device, mark);
    if (x->meter) count_blocks(x, p, q, b, begin);
}
