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
    if (head >= 0) {
        memcpy(to, weights + (size_t)head * (size_t)n, (size_t)n * sizeof(float));
        return;
    }
    for (int j = 0; j < n; j++) {
        float sum = 0;
        for (int h = 0; h < heads; h++) sum += weights[(size_t)h * (size_t)n + (size_t)j];
        to[j] = sum / (float)heads;
    }
}

static int longest_row(const dgm_attend *a, int rows)
{
    int n = 1;
    for (int i = 0; i < rows; i++)
        if (a->rows[i].n > n) n = a->rows[i].n;
    return n;
}

// Keys and values that the rows read, each of `width` numbers a row.
static void count_attention(dgm_exec *x, const dgm_attend *a, dgm_mat q, dgm_mat out, double begin)
{
    uint64_t keys = 0, width = (uint64_t)q.cols + (uint64_t)out.cols;
    for (int i = 0; i < q.rows; i++) keys += (uint64_t)a->rows[i].n;
    uint64_t elem = a->elem == sizeof(uint16_t) ? sizeof(uint16_t) : sizeof(float);
    bool path = q.rows > 0 && a->rows[0].index;
    dgm_meter_row what = {.work = path ? DGM_WORK_ATTEND_PATH : DGM_WORK_ATTEND,
                          .rows = (uint64_t)q.rows,
                          .madds = keys * width,
                          .other_bytes = keys * width * elem + (uint64_t)q.rows * width * sizeof(float)};
    cpu_count(x, &what, begin);
}

// How many of two rows' keys are the same from the first on; 0 if they lie in different places.
static int common_keys(const dgm_attend_row *a, const dgm_attend_row *b)
{
    int n = a->n < b->n ? a->n : b->n, j = 0;
    if (a->k != b->k || !a->index != !b->index) return 0;
    if (!a->index) return n;
    while (j < n && a->index[j] == b->index[j]) j++;
    return j;
}

// Rows from `first` on that are worth computing together: they share half of the first one's keys.
static int take_group(const dgm_attend_row *rows, int first, int end, int *shared)
{
    int n = 1, common = rows[first].n;
    while (n < DGM_ATTEND_QUERIES && first + n < end) {
        int keys = common_keys(&rows[first], &rows[first + n]);
        if (2 * keys < rows[first].n) break;
        common = keys < common ? keys : common;
        n++;
    }
    *shared = n > 1 ? common : 0;
    return n;
}

dgm_bytes cpu_attend_bytes(const dgm_backend *b, int heads, int keys)
{
    (void)b;
    size_t weights = (size_t)heads * (size_t)keys * DGM_ATTEND_QUERIES;
    return (dgm_bytes){.device = dgm_arena_cost(weights * sizeof(float))};
}

void cpu_attend(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_attend *a)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    size_t room = (size_t)a->heads * (size_t)longest_row(a, q.rows);
    float *weights = dgm_arena_array(&x->device, DGM_ATTEND_QUERIES * room, sizeof(float));
    dgm_attend_args args = {
        .stride = (size_t)a->stride, .heads = a->heads, .dk = a->dk, .dv = a->dv, .scale = a->scale};
    for (int i = 0; i < q.rows; i += args.queries) {
        args.queries = take_group(a->rows, i, q.rows, &args.shared);
        args.k = a->rows[i].k;
        args.v = a->rows[i].v;
        const dgm_attend_row *next = &a->rows[i + args.queries];
        bool more = i + args.queries < q.rows && next->index;
        args.next = more ? next->index : NULL;
        args.next_n = more ? next->n : 0;
        for (int r = 0; r < args.queries; r++) {
            args.out[r] = cpu_row(out, i + r);
            args.q[r] = cpu_row(q, i + r);
            args.index[r] = a->rows[i + r].index;
            args.n[r] = a->rows[i + r].n;
            args.weights[r] = weights + (size_t)r * room;
        }
        if (a->elem == sizeof(uint16_t))
            x->backend->k.attend_f16(&args);
        else
            x->backend->k.attend_f32(&args);
        for (int r = 0; a->align && r < args.queries; r++)
            if (a->align[i + r])
                copy_alignment(a->align[i + r], args.weights[r], a->heads, args.n[r], a->align_head);
    }
    dgm_arena_reset(&x->device, mark);
    if (x->meter) count_attention(x, a, q, out, begin);
}

void cpu_attend_add(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_vector *w,
                       const dgm_attend *a)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    float *weights = dgm_arena_array(&x->device, (size_t)longest_row(a, q.rows), sizeof(float));
    for (int i = 0; i < q.rows; i++) {
        const dgm_attend_row *row = &a->rows[i];
        dgm_attend_add_args args = {
            .out = cpu_row(out, i),
            .q = cpu_row(q, i),
            .w = w->data,
            .k = row->k,
            .v = row->v,
            .n = row->n,
            .da = q.cols,
            .dv = out.cols,
            .weights = weights,
        };
        x->backend->k.attend_add_f32(&args);
        if (a->align && a->align[i]) copy_alignment(a->align[i], weights, 1, row->n, 0);
    }
    dgm_arena_reset(&x->device, mark);
    if (x->meter) count_attention(x, a, q, out, begin);
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

void cpu_blocks_put(dgm_exec *x, const dgm_blocks *blocks, int first, dgm_mat kv)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    uint16_t *half = dgm_arena_array(&x->device, blocks->block, sizeof *half);
    for (int at = 0; at < kv.rows; at += DGM_BLOCK_KEYS) {
        int n = kv.rows - at < DGM_BLOCK_KEYS ? kv.rows - at : DGM_BLOCK_KEYS;
        dgm_mat rows = dgm_mat_rows(kv, at, n);
        size_t begin_at = (size_t)(first + at / DGM_BLOCK_KEYS) * blocks->block;
        if (blocks->elem == sizeof(uint16_t))
            put_f16((uint16_t *)blocks->data + begin_at, blocks, rows, &x->backend->k, half);
        else
            put_f32((float *)blocks->data + begin_at, blocks, rows);
    }
    dgm_arena_reset(&x->device, mark);
    cpu_moved(x, begin, DGM_WORK_ROWS, kv, 1);
}

static const void *block_data(const dgm_blocks *b, int block)
{
    return (const char *)b->data + (size_t)block * b->block * (size_t)b->elem;
}

// Rows from `first` on with one source, as many as a kernel takes.
static int same_source(const dgm_source_row *rows, int first, int end)
{
    int n = 1;
    while (n < DGM_ATTEND_QUERIES && first + n < end && rows[first + n].first == rows[first].first &&
           rows[first + n].n == rows[first].n)
        n++;
    return n;
}

static void count_blocks(dgm_exec *x, const dgm_source_row *rows, dgm_mat q, const dgm_blocks *b,
                         double begin)
{
    uint64_t keys = 0, read = 0, width = (uint64_t)b->heads * (uint64_t)(b->dk + b->dv);
    for (int i = 0, n; i < q.rows; i += n) {
        n = same_source(rows, i, q.rows);
        keys += (uint64_t)n * (uint64_t)rows[i].n;
        read += (uint64_t)rows[i].n;
    }
    dgm_meter_row what = {.work = DGM_WORK_ATTEND,
                          .rows = (uint64_t)q.rows,
                          .madds = keys * width,
                          .other_bytes = read * width * (uint64_t)b->elem +
                                         (uint64_t)q.rows * width * sizeof(float)};
    cpu_count(x, &what, begin);
}

void cpu_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *b,
                          const dgm_source_row *rows, float scale, float *const *align,
                          int align_head)
{
    double begin = cpu_begin(x);
    size_t mark = dgm_arena_mark(&x->device);
    int longest = 1;
    for (int i = 0; i < q.rows; i++) longest = rows[i].n > longest ? rows[i].n : longest;
    size_t room = (size_t)b->heads * (size_t)longest;
    float *weights = dgm_arena_array(&x->device, DGM_ATTEND_QUERIES * room, sizeof(float));
    for (int i = 0, n; i < q.rows; i += n) {
        n = same_source(rows, i, q.rows);
        dgm_attend_blocks_args args = {.queries = n,
                                       .blocks = block_data(b, rows[i].first),
                                       .block = b->block,
                                       .n = rows[i].n,
                                       .heads = b->heads,
                                       .dk = b->dk,
                                       .dv = b->dv,
                                       .scale = scale};
        if (i + n < q.rows) {
            args.next = block_data(b, rows[i + n].first);
            args.next_n = rows[i + n].n;
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
        for (int r = 0; align && r < n; r++)
            if (align[i + r])
                copy_alignment(align[i + r], args.weights[r], b->heads, args.n, align_head);
    }
    dgm_arena_reset(&x->device, mark);
    if (x->meter) count_blocks(x, rows, q, b, begin);
}
