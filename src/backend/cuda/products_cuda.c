// SPDX-License-Identifier: MIT
// CUDA backend: products with layers.
#include "backend/cuda/cuda_private.h"

int cuda_prepare_most(const dgm_linear *w)
{
    const size_t row = (size_t)w->stride + sizeof(float);
    return (int)((CUDA_SCRATCH - 4096) / row);
}

// Tells whoever watches the largest |x| of each row.
static void show_inputs(dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    float largest[256];
    const size_t mark = dgm_arena_mark(&x->device);
    float *found = DGM_ARENA_ARRAY(&x->device, float, 256);
    for (int at = 0; at < in.rows; at += 256) {
        const int n = in.rows - at < 256 ? in.rows - at : 256;
        cuda_run_largest(cuda_tape_of(x), found, cuda_view(dgm_mat_rows(in, at, n)));
        if (!cuda_fetch(x, largest, found, (size_t)n * sizeof *largest)) break;
        x->observer->inputs(x->observer->cookie, w, largest, n);
    }
    dgm_arena_reset(&x->device, mark);
}

cuda_product cuda_prepare(dgm_exec *x, const dgm_linear *w, dgm_mat in)
{
    cuda_product p = {.type = w->type,
                      .a = in.data,
                      .lda = in.stride,
                      .w = w->data,
                      .ldw = w->stride,
                      .w_scale = w->scales,
                      .bias = w->bias,
                      .m = in.rows,
                      .n = w->rows,
                      .k = w->cols,
                      .tensor = x->backend->capability >= 80,
                      .warp_groups = CUDA_HAS_GROUPS && x->backend->capability == 90,
                      .processors = x->backend->processors,
                      .shared = x->backend->shared,
                      .aligned = in.stride % 4 == 0 && (uintptr_t)in.data % 16 == 0};
    if (x->observer && x->observer->inputs) show_inputs(x, w, in);
    if (w->type == CUDA_F32) return p;
    if (w->type != CUDA_I8) {
        in.cols = w->cols;
        const cuda_halves h = w->cols % 32 == 0 ? cuda_tape_halves(cuda_tape_of(x), cuda_view(in), w->type == CUDA_BF16)
                                                : (cuda_halves){0};
        if (!h.data) return p;
        p.rounded = 1;
        p.a = h.data;
        p.lda = h.stride;
        return p;
    }
    const int depth = w->stride;
    int8_t *q = dgm_arena_array(&x->device, (size_t)in.rows, (size_t)depth);
    float *scale = DGM_ARENA_ARRAY(&x->device, float, (size_t)in.rows);
    in.cols = w->cols;
    cuda_run_quantize(cuda_tape_of(x), q, depth, scale, cuda_view(in), w->input_scale);
    p.aligned = 1;
    p.a = q;
    p.lda = depth;
    p.a_scale = scale;
    return p;
}

void cuda_linear(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *w, dgm_act act,
                 const dgm_mat *residual)
{
    const int most = cuda_prepare_most(w);
    for (int at = 0; at < in.rows; at += most) {
        const int n = in.rows - at < most ? in.rows - at : most;
        const size_t mark = dgm_arena_mark(&x->device);
        cuda_product p = cuda_prepare(x, w, dgm_mat_rows(in, at, n));
        p.act = (int)act;
        p.c = dgm_mat_rows(y, at, n).data;
        p.ldc = y.stride;
        if (residual) {
            p.residual = dgm_mat_rows(*residual, at, n).data;
            p.ldr = residual->stride;
        }
        cuda_run_product(cuda_tape_of(x), &p);
        dgm_arena_reset(&x->device, mark);
    }
}

void cuda_feed_forward(dgm_exec *x, dgm_mat y, dgm_mat in, const dgm_linear *v, dgm_act act,
                       dgm_mat inner, const dgm_linear *w, const dgm_mat *residual)
{
    cuda_linear(x, inner, in, v, act, NULL);
    cuda_linear(x, y, inner, w, DGM_ACT_NONE, residual);
    // Of `inner` nobody reads more than the second product did: where that were halves, they are all that is written.
    const cuda_product *second = cuda_last_product(cuda_tape_of(x), 0);
    cuda_product *first = cuda_last_product(cuda_tape_of(x), 1);
    if (first && second && second->rounded && second->a == first->halves.data && second->m == first->m)
        first->c = NULL;
}
