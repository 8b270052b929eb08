// SPDX-License-Identifier: MIT
// CUDA backend: centroids, and mixtures of experts.
//
// All experts lie one behind the other in the device's memory, so that one launch multiplies the rows
// of all of them (groups of cuda_product): which rows are whose is known on the device alone.
#include <string.h>

#include "backend/cuda/cuda_private.h"
#include "base/mem.h"

// ---- centroids ----------------------------------------------------------------------------------

dgm_status cuda_centroids_load(dgm_backend *b, const dgm_tensor *centroids, dgm_centroids **out,
                               dgm_error *err)
{
    *out = NULL;
    DGM_TRY(cuda_status(cuda_use(b), "opening it", err));
    dgm_centroids *c = dgm_calloc(1, sizeof *c);
    float *row = dgm_malloc((size_t)centroids->cols * sizeof *row);
    float *half = dgm_malloc((size_t)centroids->rows * sizeof *half);
    dgm_status st = c && row && half ? DGM_OK : dgm_no_memory(err);
    for (int i = 0; st == DGM_OK && i < centroids->rows; i++) {
        double sum = 0;
        dgm_tensor_row_f32(centroids, i, row);
        for (int j = 0; j < centroids->cols; j++) sum += (double)row[j] * (double)row[j];
        half[i] = (float)(sum / 2);
    }
    if (st == DGM_OK) {
        *c = (dgm_centroids){.ops = &cuda_ops, .count = centroids->rows, .width = centroids->cols};
        st = cuda_upload(b, &c->rows, centroids->data, centroids->bytes, err);
    }
    if (st == DGM_OK)
        st = cuda_upload(b, (void **)&c->half_square, half, (size_t)c->count * sizeof *half, err);
    dgm_free(row);
    dgm_free(half);
    if (st != DGM_OK)
        cuda_centroids_free(b, &c);
    else
        *out = c;
    return st;
}

void cuda_centroids_free(dgm_backend *b, dgm_centroids **c)
{
    (void)b;
    if (!*c) return;
    cudaFree((*c)->rows);
    cudaFree((*c)->half_square);
    cudaFree((*c)->lists);
    dgm_free(*c);
    *c = NULL;
}

size_t cuda_centroids_bytes(const dgm_centroids *c)
{
    return (size_t)c->count * ((size_t)c->width * sizeof(uint16_t) + sizeof(float) +
                               (size_t)c->list_words * sizeof(uint32_t));
}

// Bitmaps: a list of one token in 32 or more takes less than by ids, and a union is a word's work.
dgm_status cuda_centroids_lists(dgm_backend *b, dgm_centroids *c, const uint64_t *bits, int vocabulary, dgm_error *err)
{
    const size_t words = ((size_t)vocabulary + 63) / 64;
    DGM_TRY(cuda_status(cuda_use(b), "opening it", err));
    DGM_TRY(cuda_upload(b, (void **)&c->lists, bits, (size_t)c->count * words * sizeof *bits, err));
    c->list_words = (int)(2 * words); // the lower half of a word comes first
    return DGM_OK;
}

dgm_bytes cuda_closest_bytes(const dgm_backend *b, int rows, int centroids)
{
    (void)b;
    return (dgm_bytes){.device = dgm_arena_cost((size_t)rows * sizeof(int32_t)) +
                                 dgm_arena_cost(cuda_closest_scratch(rows, centroids))};
}

void cuda_closest(dgm_exec *x, const dgm_centroids *c, dgm_mat rows, int32_t *found)
{
    const size_t mark = dgm_arena_mark(&x->device), n = (size_t)rows.rows;
    int32_t *numbers = DGM_ARENA_ARRAY(&x->device, int32_t, n);
    void *scratch = dgm_arena_alloc(&x->device, cuda_closest_scratch(rows.rows, c->count));
    memset(found, 0, n * sizeof *found);
    cuda_run_closest(cuda_tape_of(x), cuda_view(rows), c->rows, c->half_square, c->count, scratch, numbers);
    cuda_fetch(x, found, numbers, n * sizeof *found);
    dgm_arena_reset(&x->device, mark);
}

// ---- experts: loading ---------------------------------------------------------------------------

enum { IN = 0, OUT = 1, LAYERS = 2 };

struct dgm_experts {
    const dgm_backend_ops *ops;
    int count;
    dgm_linear layer[LAYERS]; // of the first expert; the others follow, `stride` elements apart
    size_t group[LAYERS];
    bool bias[LAYERS];
};

static const dgm_linear_part *part_of(const dgm_expert_part *p, int layer)
{
    return layer == IN ? &p->in : &p->out;
}

static dgm_status check_shapes(const dgm_expert_part *parts, int count, dgm_error *err)
{
    for (int i = 0; i < count; i++) {
        const dgm_tensor *in = parts[i].in.weight, *out = parts[i].out.weight;
        DGM_FAIL_IF(in->rows != out->cols || in->cols != out->rows ||
                        in->rows != parts[0].in.weight->rows || in->cols != parts[0].in.weight->cols,
                    err, DGM_ERR_FORMAT, "the shape of tensor '%s' does not fit the other experts'",
                    in->name);
    }
    return DGM_OK;
}

// One layer of all experts as if it were one of many rows.
static dgm_status load_layer(dgm_backend *b, dgm_experts *e, const dgm_expert_part *parts, int layer,
                             dgm_precision precision, dgm_error *err)
{
    dgm_linear_part *all = dgm_malloc((size_t)e->count * sizeof *all);
    if (!all) return dgm_no_memory(err);
    for (int i = 0; i < e->count; i++) {
        all[i] = *part_of(&parts[i], layer);
        e->bias[layer] = e->bias[layer] || all[i].bias;
    }
    dgm_linear *l = NULL;
    const dgm_status st = cuda_linear_load(b, all, e->count, precision, &l, err);
    dgm_free(all);
    if (st != DGM_OK) return st;
    e->layer[layer] = *l;
    dgm_free(l); // what it owns is the mixture's now
    e->layer[layer].rows /= e->count;
    e->group[layer] = (size_t)e->layer[layer].rows * (size_t)e->layer[layer].stride;
    return DGM_OK;
}

dgm_status cuda_experts_load(dgm_backend *b, const dgm_gguf *file, const dgm_expert_part *parts,
                             int count, dgm_precision precision, dgm_experts **out, dgm_error *err)
{
    *out = NULL;
    DGM_TRY(check_shapes(parts, count, err));
    dgm_experts *e = dgm_calloc(1, sizeof *e);
    if (!e) return dgm_no_memory(err);
    e->ops = &cuda_ops;
    e->count = count;
    dgm_status st = load_layer(b, e, parts, IN, precision, err);
    if (st == DGM_OK) st = load_layer(b, e, parts, OUT, precision, err);
    for (int i = 0; file && i < count; i++)
        for (int l = 0; l < LAYERS; l++)
            dgm_gguf_forget_tensor(file, part_of(&parts[i], l)->weight);
    if (st != DGM_OK)
        cuda_experts_free(b, &e);
    else
        *out = e;
    return st;
}

void cuda_experts_free(dgm_backend *b, dgm_experts **e)
{
    (void)b;
    if (!*e) return;
    for (int l = 0; l < LAYERS; l++) {
        cudaFree((*e)->layer[l].data);
        cudaFree((*e)->layer[l].bias);
        cudaFree((*e)->layer[l].scales);
        dgm_free((*e)->layer[l].tensors);
    }
    dgm_free(*e);
    *e = NULL;
}

void cuda_experts_count(const dgm_experts *e, dgm_experts_use *add)
{
    uint64_t bytes = 0;
    for (int l = 0; l < LAYERS; l++) bytes += cuda_linear_bytes(&e->layer[l]);
    add->experts += e->count;
    add->packed += e->count;
    add->bytes += bytes;
    add->largest += bytes;
}

// ---- experts: the operation ---------------------------------------------------------------------

enum { MOST = 2 };

dgm_bytes cuda_experts_bytes(const dgm_backend *b, int rows, int width, int experts)
{
    const size_t places = (size_t)rows * MOST;
    return (dgm_bytes){.device = 4 * dgm_arena_cost(places * sizeof(int32_t)) +
                                 dgm_arena_cost(((size_t)experts + 1) * sizeof(int32_t)) +
                                 cuda_mat_bytes(b, (int)places, width)};
}

// Rows of `in` by a_rows (or all in their order) with every expert's layer.
static void multiply(dgm_exec *x, const dgm_experts *e, int layer, dgm_mat in, const int32_t *a_rows,
                     dgm_mat y, int places, dgm_act act, const int32_t *first)
{
    const dgm_linear *l = &e->layer[layer];
    cuda_product p = cuda_prepare(x, l, in);
    p.a_rows = a_rows;
    p.m = places;
    p.act = (int)act;
    p.c = y.data;
    p.ldc = y.stride;
    p.first = first;
    p.groups = e->count;
    p.w_group = e->group[layer];
    p.bias_group = l->rows;
    cuda_run_product(cuda_tape_of(x), &p);
}

void cuda_experts(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_experts *e, const dgm_mixture *how,
                  dgm_mat inner)
{
    const dgm_linear *first = &e->layer[IN], *second = &e->layer[OUT];
    const size_t row = (size_t)first->rows * sizeof(float) + (size_t)first->stride +
                       (size_t)second->stride + 1024;
    const int most = (int)(CUDA_SCRATCH / (row * (size_t)how->top));
    (void)inner; // of so many rows as `in` has: with two experts a row there are twice as many
    for (int at = 0; at < in.rows; at += most) {
        const int n = in.rows - at < most ? in.rows - at : most, places = n * how->top;
        const size_t mark = dgm_arena_mark(&x->device);
        const dgm_mat from = dgm_mat_rows(in, at, n);
        cuda_routing r = {DGM_ARENA_ARRAY(&x->device, int32_t, (size_t)places),
                          DGM_ARENA_ARRAY(&x->device, float, (size_t)places),
                          DGM_ARENA_ARRAY(&x->device, int32_t, (size_t)e->count + 1),
                          DGM_ARENA_ARRAY(&x->device, int32_t, (size_t)places),
                          DGM_ARENA_ARRAY(&x->device, int32_t, (size_t)places)};
        const dgm_mat result = cuda_mat(x, places, y.cols), middle = cuda_mat(x, places, first->rows);
        cuda_run_route(cuda_tape_of(x), cuda_view(from), how->gate->data,
                       how->gate_bias ? how->gate_bias->data : NULL, e->count, how->top,
                       how->normalise, how->scale, r);
        multiply(x, e, IN, from, r.order, middle, places, how->act, r.first);
        multiply(x, e, OUT, middle, NULL, result, places, DGM_ACT_NONE, r.first);
        cuda_run_combine(cuda_tape_of(x), cuda_view(dgm_mat_rows(y, at, n)), cuda_view(result),
                         how->top, r);
        dgm_arena_reset(&x->device, mark);
    }
}
