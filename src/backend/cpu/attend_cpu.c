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

// One call, of which every part takes some heads of all rows. Weights of head h are at weights + h * stride(longest):
// parts are at different rows at the same time.
typedef struct attention {
    const dgm_kernels *kernels;
    dgm_mat out, q, k, v;
    const dgm_heads *heads;
    const dgm_blocks *blocks; // instead of k and v
    float scale;              // with blocks
    const dgm_paths *p;
    const dgm_align_list *align;
    float *weights;
    int all, stride, parts; // heads; of the longest row; parts
} attention;

// Which heads a part has, and where they begin.
typedef struct some_heads {
    int first, count;
    size_t key, value; // in a row of keys, of values and of the output
} some_heads;

static some_heads heads_of(const attention *a, int part, int dk, int dv)
{
    const int first = a->all * part / a->parts, end = a->all * (part + 1) / a->parts;
    return (some_heads){first, end - first, (size_t)first * (size_t)dk, (size_t)first * (size_t)dv};
}

static float *weights_of(const attention *a, const some_heads *h, int query)
{
    return a->weights + (size_t)(query * a->all + h->first) * (size_t)a->stride;
}

static void attend_part(const void *arg, int part)
{
    const attention *a = arg;
    const dgm_paths *p = a->p;
    const dgm_heads *heads = a->heads;
    const some_heads h = heads_of(a, part, heads->dk, heads->dv);
    const dgm_mat k = dgm_mat_cols(a->k, (int)h.key, 0), v = dgm_mat_cols(a->v, (int)h.value, 0);
    wanted w = {a->align, heads->count, 0};
    dgm_attend_args args = {.stride = (size_t)k.stride, .heads = h.count, .dk = heads->dk,
                            .dv = heads->dv, .scale = heads->scale,
                            .bias_stride = heads->bias ? (size_t)heads->bias->cols : 0};
    for (int i = 0; i < a->q.rows; i += args.queries) {
        args.queries = take_group(p, i, a->q.rows, &args.shared);
        args.k = p->entries ? k.data : dgm_mat_rows(k, p->first[i], 1).data;
        args.v = p->entries ? v.data : dgm_mat_rows(v, p->first[i], 1).data;
        const int next = i + args.queries;
        const bool more = next < a->q.rows && p->entries;
        args.next = more ? p->entries + p->first[next] : NULL;
        args.next_n = more ? p->length[next] : 0;
        for (int r = 0; r < args.queries; r++) {
            args.out[r] = cpu_row(a->out, i + r) + h.value;
            args.q[r] = cpu_row(a->q, i + r) + h.key;
            args.index[r] = p->entries ? p->entries + p->first[i + r] : NULL;
            args.n[r] = p->length[i + r];
            args.weights[r] = weights_of(a, &h, r);
            if (heads->bias) args.bias[r] = bias_of(heads, p, i + r) + (size_t)h.first * args.bias_stride;
        }
        if (k.elem == sizeof(uint16_t))
            a->kernels->attend_f16(&args);
        else
            a->kernels->attend_f32(&args);
        for (int r = 0; a->align && r < args.queries; r++)
            hand_over(&w, i + r, args.weights[r], args.n[r]);
    }
}

// Scratch for the weights, and parts by the keys that are read, of `width` numbers each. Alignments are made of the
// weights of all heads together.
static void share_attention(dgm_exec *x, attention *a, int width, dgm_team_fn run)
{
    enum { SPEED = 10 }; // multiply-adds a nanosecond
    size_t mark = dgm_arena_mark(&x->device);
    a->kernels = &x->backend->k;
    a->stride = dgm_attend_stride(longest_path(a->p, a->q.rows));
    a->weights = dgm_arena_array(&x->device, (size_t)(DGM_ATTEND_QUERIES * a->all) * (size_t)a->stride, sizeof(float));
    a->parts = 1;
    if (a->all > 1 && !a->align && !x->meter) {
        double keys = 0;
        for (int i = 0; i < a->q.rows; i++) keys += a->p->length[i];
        a->parts = dgm_team_parts(x->team, keys * width / SPEED, a->all);
    }
    dgm_team_run(x->team, run, a, a->parts);
    dgm_arena_reset(&x->device, mark);
}

void cpu_attend(dgm_exec *x, dgm_mat out, dgm_mat q, dgm_mat k, dgm_mat v, const dgm_heads *heads,
                const dgm_paths *p, const dgm_align_list *align)
{
    double begin = cpu_begin(x);
    attention a = {.out = out, .q = q, .k = k, .v = v, .heads = heads, .p = p, .align = align, .all = heads->count};
    share_attention(x, &a, q.cols + out.cols, attend_part);
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

// 4 x 4 halves, from rows `width` apart to rows of DGM_BLOCK_KEYS, transposed in whole words.
static void transpose_4(uint16_t *to, const uint16_t *from, int width)
{
    const uint64_t low = 0x0000ffff0000ffff, half = 0x00000000ffffffff;
    uint64_t r[4], s[4];
    for (int j = 0; j < 4; j++) memcpy(&r[j], from + j * width, sizeof r[j]);
    for (int j = 0; j < 4; j += 2) {
        s[j] = (r[j] & low) | (r[j + 1] & low) << 16;
        s[j + 1] = (r[j] >> 16 & low) | (r[j + 1] & ~low);
    }
    for (int j = 0; j < 2; j++) {
        r[j] = (s[j] & half) | s[j + 2] << 32;
        r[j + 2] = s[j] >> 32 | (s[j + 2] & ~half);
    }
    for (int d = 0; d < 4; d++) memcpy(to + d * DGM_BLOCK_KEYS, &r[d], sizeof r[d]);
}

// The rows are rounded into `half` [16, keys + values] first.
static void put_f16(uint16_t *to, const dgm_blocks *b, dgm_mat kv, const dgm_kernels *k,
                    uint16_t *half)
{
    int keys = b->heads * b->dk, width = keys + b->heads * b->dv;
    memset(half, 0, b->block * sizeof *half);
    for (int j = 0; j < kv.rows; j++) k->half_f32(half + j * width, cpu_row(kv, j), width);
    int d = 0;
    for (; d + 4 <= keys; d += 4, to += 4 * DGM_BLOCK_KEYS)
        for (int j = 0; j < DGM_BLOCK_KEYS; j += 4) transpose_4(to + j, half + j * width + d, width);
    for (; d < keys; d++)
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

// Element `at` of a block.
static const void *block_data(const dgm_blocks *b, int block, size_t at)
{
    return (const char *)b->data + ((size_t)block * b->block + at) * (size_t)b->elem;
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

static void attend_blocks_part(const void *arg, int part)
{
    const attention *a = arg;
    const dgm_blocks *b = a->blocks;
    const dgm_paths *p = a->p;
    const some_heads h = heads_of(a, part, b->dk, b->dv);
    const size_t key = h.key * DGM_BLOCK_KEYS, keys = (size_t)b->heads * (size_t)b->dk * DGM_BLOCK_KEYS;
    wanted w = {a->align, b->heads, 0};
    for (int i = 0, n; i < a->q.rows; i += n) {
        n = same_source(p, i, a->q.rows);
        dgm_attend_blocks_args args = {.queries = n,
                                       .blocks = block_data(b, p->first[i], key),
                                       .block = b->block,
                                       .values = keys - key + h.value * DGM_BLOCK_KEYS,
                                       .n = p->length[i],
                                       .heads = h.count,
                                       .dk = b->dk,
                                       .dv = b->dv,
                                       .scale = a->scale};
        if (i + n < a->q.rows) {
            args.next = block_data(b, p->first[i + n], key);
            args.next_n = p->length[i + n];
        }
        for (int r = 0; r < n; r++) {
            args.out[r] = cpu_row(a->out, i + r) + h.value;
            args.q[r] = cpu_row(a->q, i + r) + h.key;
            args.weights[r] = weights_of(a, &h, r);
        }
        if (b->elem == sizeof(uint16_t))
            a->kernels->attend_blocks_f16(&args);
        else
            a->kernels->attend_blocks_f32(&args);
        for (int r = 0; a->align && r < n; r++) hand_over(&w, i + r, args.weights[r], args.n);
    }
}

void cpu_attend_blocks(dgm_exec *x, dgm_mat out, dgm_mat q, const dgm_blocks *b, float scale,
                       const dgm_paths *p, const dgm_align_list *align)
{
    double begin = cpu_begin(x);
    attention a = {.out = out, .q = q, .blocks = b, .scale = scale, .p = p, .align = align, .all = b->heads};
    share_attention(x, &a, b->heads * (b->dk + b->dv), attend_blocks_part);
    if (x->meter) count_blocks(x, p, q, b, begin);
}
