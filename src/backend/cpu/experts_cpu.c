// SPDX-License-Identifier: MIT
// CPU backend: mixtures of experts. Loading, packing on first use, and the operation.
//
// A large mixture holds far more weights than a text needs: of 128 experts in a layer a sentence
// asks for a few dozen. So loading checks shapes and reserves address space alone,
//
//     | expert 0: in W, scales, bias; out W, scales, bias | expert 1 ... |     pages touched = memory
//
// every expert beginning on a page of its own: on a large one where it fills some, so that it is read
// without many look-ups and its neighbour is not paid for. The first row that is sent to an expert packs it, by
// the worker it belongs to; `ready` is set with release order behind the last written byte, and
// workers that want the same expert meanwhile wait for its lock. Packing takes its two buffers from
// the worker's arena, where products keep their quantised rows, so decoding allocates nothing.
//
// The gate is f32 whatever the precision, by the dot product that has the same bits on every CPU:
// which expert a row gets must not depend on the machine. Rows are sorted by expert (stable), each
// expert multiplies its rows at once, and a row adds up its one or two results in the order of
// their numbers: what it gets depends on that row alone.
#include <float.h>
#include <math.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "backend/cpu/cpu_private.h"
#include "base/mem.h"

enum { PAGE = 4096, LINE = 64 };

typedef struct expert {
    dgm_linear layer[2]; // in, out; their memory is the mixture's
    dgm_linear_part part[2];
    const dgm_tensor *tensors[2][2]; // NULL-terminated lists of one
    atomic_bool ready;
    pthread_mutex_t lock;
} expert;

struct dgm_experts {
    const dgm_backend_ops *ops;
    const dgm_gguf *file;
    expert *list; // [count]
    int count, open; // locks that exist
    char *space;
    size_t bytes, each, stride; // of the space, of one expert in it, and from one to the next
};

// ---- loading ----------------------------------------------------------------------------------

static size_t lines(size_t bytes)
{
    return (bytes + LINE - 1) / LINE * LINE;
}

static size_t layer_bytes(const dgm_linear *l, bool bias)
{
    size_t vectors = (l->precision == DGM_PRECISION_I8) + (bias ? 1 : 0);
    return lines(l->packed_bytes) + vectors * lines((size_t)l->rows * sizeof(float));
}

static char *place_layer(dgm_linear *l, bool bias, char *at)
{
    l->packed = at;
    at += lines(l->packed_bytes);
    if (l->precision == DGM_PRECISION_I8) {
        l->scales = (float *)(void *)at;
        at += lines((size_t)l->rows * sizeof(float));
    }
    if (bias) {
        l->bias = (float *)(void *)at;
        at += lines((size_t)l->rows * sizeof(float));
    }
    return at;
}

static void describe_expert(const dgm_backend *b, expert *x, const dgm_expert_part *part,
                            dgm_precision precision)
{
    x->part[0] = part->in;
    x->part[1] = part->out;
    for (int i = 0; i < 2; i++) {
        dgm_linear *l = &x->layer[i];
        x->tensors[i][0] = x->part[i].weight;
        l->ops = &cpu_ops;
        l->precision = precision;
        l->cold = true;
        l->rows = x->part[i].weight->rows;
        l->cols = x->part[i].weight->cols;
        l->packed_bytes = cpu_packed_size(b, precision, l->rows, l->cols);
        l->tensors = x->tensors[i];
        if (b->static_scales) l->stored_scale = x->part[i].input_scale;
    }
}

static dgm_status load(dgm_backend *b, dgm_experts *e, const dgm_expert_part *parts, int count,
                       dgm_precision precision, dgm_error *err)
{
    e->list = dgm_calloc((size_t)count, sizeof *e->list);
    if (!e->list) return dgm_no_memory(err);
    e->count = count;
    for (int i = 0; i < count; i++) {
        expert *x = &e->list[i];
        describe_expert(b, x, &parts[i], precision);
        const dgm_linear *in = &x->layer[0], *out = &x->layer[1], *first = e->list[0].layer;
        DGM_FAIL_IF(in->rows != out->cols || in->cols != out->rows || in->rows != first->rows ||
                        in->cols != first->cols || in->rows > CPU_MAX_WIDTH,
                    err, DGM_ERR_FORMAT, "the shape of tensor '%s' does not fit the other experts'",
                    parts[i].in.weight->name);
        size_t need = layer_bytes(in, parts[i].in.bias) + layer_bytes(out, parts[i].out.bias);
        if (need > e->each) e->each = (need + PAGE - 1) / PAGE * PAGE; // of the largest
        if (pthread_mutex_init(&x->lock, NULL) != 0) return dgm_no_memory(err);
        e->open++;
    }
    DGM_FAIL_IF(e->each > SIZE_MAX / 4 / (size_t)count, err, DGM_ERR_MEMORY, "out of memory");
    bool large = e->each >= DGM_PAGES_LARGE;
    size_t unit = large ? DGM_PAGES_LARGE : PAGE;
    e->stride = (e->each + unit - 1) / unit * unit;
    e->bytes = e->stride * (size_t)count + unit;
    e->space = dgm_pages_reserve_sparse(e->bytes);
    if (!e->space) return dgm_no_memory(err);
    char *first = (char *)(((uintptr_t)e->space + unit - 1) / unit * unit);
    for (int i = 0; i < count; i++) {
        char *at = first + (size_t)i * e->stride;
        if (large) dgm_pages_large(at, e->each);
        for (int j = 0; j < 2; j++)
            at = place_layer(&e->list[i].layer[j], e->list[i].part[j].bias != NULL, at);
    }
    return DGM_OK;
}

dgm_status cpu_experts_load(dgm_backend *b, const dgm_gguf *file, const dgm_expert_part *parts,
                            int count, dgm_precision precision, dgm_experts **out, dgm_error *err)
{
    *out = NULL;
    dgm_experts *e = dgm_calloc(1, sizeof *e);
    if (!e) return dgm_no_memory(err);
    e->ops = &cpu_ops;
    e->file = file;
    dgm_status st = load(b, e, parts, count, precision, err);
    if (st != DGM_OK)
        cpu_experts_free(b, &e);
    else
        *out = e;
    for (int i = 0; *out && i < 2 * count; i++) cpu_count_layer(b, &e->list[i / 2].layer[i % 2], true);
    return st;
}

void cpu_experts_free(dgm_backend *b, dgm_experts **experts)
{
    dgm_experts *e = *experts;
    if (!e) return;
    for (int i = 0; e->list && i < 2 * e->count; i++) cpu_count_layer(b, &e->list[i / 2].layer[i % 2], false);
    for (int i = 0; i < e->open; i++) pthread_mutex_destroy(&e->list[i].lock);
    dgm_pages_release(e->space, e->bytes);
    dgm_free(e->list);
    dgm_free(e);
    *experts = NULL;
}

void cpu_experts_count(const dgm_experts *e, dgm_experts_use *add)
{
    add->experts += e->count;
    add->largest += e->each * (size_t)e->count;
    for (int i = 0; i < e->count; i++) {
        if (!atomic_load_explicit(&e->list[i].ready, memory_order_relaxed)) continue;
        add->packed++;
        add->bytes += e->each;
    }
}

// ---- packing on first use ---------------------------------------------------------------------

static dgm_status pack_expert(dgm_exec *x, const dgm_experts *e, expert *it, dgm_error *err)
{
    for (int i = 0; i < 2; i++) {
        dgm_linear *l = &it->layer[i];
        size_t mark = dgm_arena_mark(&x->device), elements = cpu_panel_elements(l->cols);
        cpu_panel panel = {DGM_ARENA_ARRAY(&x->device, float, elements),
                           DGM_ARENA_ARRAY(&x->device, int16_t, elements)};
        dgm_status st = panel.real && panel.quantised ? DGM_OK : dgm_no_memory(err);
        if (st == DGM_OK) st = cpu_pack_layer(x->backend, l, &it->part[i], 1, &panel, err);
        dgm_arena_reset(&x->device, mark);
        if (e->file) dgm_gguf_forget_tensor(e->file, it->part[i].weight);
        if (st != DGM_OK) return st;
    }
    return DGM_OK;
}

// The expert's layers, packed. False: they cannot be, and the worker's status says why.
static bool ready_expert(dgm_exec *x, const dgm_experts *e, int number)
{
    expert *it = &e->list[number];
    if (atomic_load_explicit(&it->ready, memory_order_acquire)) return true;
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&it->lock);
    if (!atomic_load_explicit(&it->ready, memory_order_relaxed)) {
        st = pack_expert(x, e, it, &x->why);
        if (st == DGM_OK) atomic_store_explicit(&it->ready, true, memory_order_release);
    }
    pthread_mutex_unlock(&it->lock);
    if (st != DGM_OK) x->failed = st;
    return st == DGM_OK;
}

// ---- the operation ----------------------------------------------------------------------------

enum { MOST = 2 }; // experts of a row

// Who goes where: place p of the sorted list is row order[p] with weight share[p]; expert j owns
// the places first[j] .. first[j + 1] - 1.
typedef struct routing {
    int32_t *chosen; // [rows, top]
    float *weight;   // [rows, top]
    int32_t *first;  // [experts + 1]
    int32_t *order;  // [rows * top]
    float *share;    // [rows * top]
} routing;

dgm_bytes cpu_experts_bytes(const dgm_backend *b, int rows, int width, int experts)
{
    size_t places = (size_t)rows * MOST;
    return (dgm_bytes){
        .device = 2 * dgm_arena_cost(places * sizeof(int32_t)) +
                  2 * dgm_arena_cost(places * sizeof(float)) +
                  2 * dgm_arena_cost(((size_t)experts + 1) * sizeof(int32_t)) +
                  dgm_arena_cost((size_t)experts * sizeof(float)) + 2 * cpu_mat_bytes(b, rows, width)};
}

// One row's choice. Ties go to the lower number; a gate of NaN chooses the first experts.
static void choose(const dgm_exec *x, const float *row, const dgm_mixture *how, int experts,
                   float *logits, int32_t *chosen, float *weight)
{
    const dgm_kernels *k = &x->backend->k;
    int d = how->gate->cols;
    for (int j = 0; j < experts; j++) {
        logits[j] = k->dot_f32(row, how->gate->data + (size_t)j * (size_t)d, d);
        if (how->gate_bias) logits[j] += how->gate_bias->data[j];
    }
    for (int t = 0; t < how->top; t++) {
        int best = -1;
        for (int j = 0; j < experts; j++) {
            if (t > 0 && j == chosen[0]) continue;
            if (best < 0 || logits[j] > logits[best]) best = j;
        }
        chosen[t] = best;
    }
    k->softmax_f32(logits, experts);
    float sum = 0;
    for (int t = 0; t < how->top; t++) sum += weight[t] = logits[chosen[t]];
    if (how->normalise)
        for (int t = 0; t < how->top; t++) weight[t] /= fmaxf(sum, FLT_EPSILON);
    for (int t = 0; t < how->top; t++) weight[t] *= how->scale;
}

static routing route(dgm_exec *x, dgm_mat in, const dgm_mixture *how, int experts)
{
    double begin = cpu_begin(x);
    dgm_arena *a = &x->device;
    int top = how->top;
    size_t places = (size_t)in.rows * (size_t)top;
    routing r = {DGM_ARENA_ARRAY(a, int32_t, places), DGM_ARENA_ARRAY(a, float, places),
                 DGM_ARENA_ARRAY(a, int32_t, (size_t)experts + 1),
                 DGM_ARENA_ARRAY(a, int32_t, places), DGM_ARENA_ARRAY(a, float, places)};
    int32_t *next = DGM_ARENA_ARRAY(a, int32_t, (size_t)experts + 1);
    float *logits = DGM_ARENA_ARRAY(a, float, (size_t)experts);
    memset(r.first, 0, ((size_t)experts + 1) * sizeof(int32_t));
    for (int i = 0; i < in.rows; i++) {
        choose(x, cpu_row(in, i), how, experts, logits, r.chosen + i * top, r.weight + i * top);
        for (int t = 0; t < top; t++) r.first[r.chosen[i * top + t] + 1]++;
    }
    for (int j = 0; j < experts; j++) r.first[j + 1] += r.first[j];
    memcpy(next, r.first, ((size_t)experts + 1) * sizeof(int32_t));
    for (int i = 0; i < in.rows; i++)
        for (int t = 0; t < top; t++) {
            int place = next[r.chosen[i * top + t]]++;
            r.order[place] = i;
            r.share[place] = r.weight[i * top + t];
        }
    cpu_moved(x, begin, DGM_WORK_ROWS, in, 1);
    return r;
}

void cpu_experts(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_experts *e, const dgm_mixture *how,
                    dgm_mat inner)
{
    size_t mark = dgm_arena_mark(&x->device);
    routing r = route(x, in, how, e->count);
    dgm_mat rows = cpu_mat(x, in.rows, in.cols), result = cpu_mat(x, in.rows, y.cols);
    inner = dgm_mat_cols(inner, 0, e->list[0].layer[0].rows);
    cpu_zero(x, y);
    for (int j = 0; j < e->count; j++) {
        int first = r.first[j], m = r.first[j + 1] - first;
        if (m == 0 || !ready_expert(x, e, j)) continue;
        const dgm_linear *layer = e->list[j].layer;
        dgm_mat from = in; // all rows, in their own order
        if (m < in.rows) {
            from = dgm_mat_rows(rows, 0, m);
            cpu_gather(x, from, in, r.order + first);
        }
        dgm_mat to = dgm_mat_rows(result, 0, m);
        cpu_feed_forward(x, to, from, &layer[0], how->act, dgm_mat_rows(inner, 0, m), &layer[1],
                            NULL);
        double begin = cpu_begin(x);
        for (int p = 0; p < m; p++)
            x->backend->k.axpy_f32(cpu_row(y, r.order[first + p]), cpu_row(to, p), y.cols,
                                   r.share[first + p]);
        cpu_moved(x, begin, DGM_WORK_ROWS, to, 2);
    }
    dgm_arena_reset(&x->device, mark);
}
