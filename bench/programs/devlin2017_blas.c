// SPDX-License-Identifier: MIT
// sgemm of OpenBLAS and oneDNN in the place of our f32 kernel: the baseline of bench/devlin2017.
//
// The kernel table of a backend gets another gemm_f32: "packed" weights are then W [n, k] as they
// are stored, which is what a BLAS takes. After a model is loaded, every weight matrix also exists
// as [k, n], and both libraries are timed in both layouts at several numbers of rows: a product is
// made by the fastest. Candidate columns, which change with every sentence, have one layout, and
// the faster library for it. Bias, activation and residual are added by our own vector kernels.
#define _GNU_SOURCE
#include <cblas.h>
#include <oneapi/dnnl/dnnl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "backend/cpu/cpu_private.h"
#include "base/clock.h"
#include "devlin2017.h"
#include "rivals.h"

enum { OPENBLAS_NT, OPENBLAS_NN, ONEDNN_NT, ONEDNN_NN, WAYS };
enum { LAYERS = 128, SIZES = 6 };

static const char *const names[WAYS] = {"openblas_nt", "openblas_nn", "onednn_nt", "onednn_nn"};
static const int rival_of[WAYS] = {RIVAL_OPENBLAS, RIVAL_OPENBLAS, RIVAL_ONEDNN, RIVAL_ONEDNN};
static const int rows_of[SIZES] = {1, 2, 4, 6, 16, 64};

typedef struct layer {
    const float *w; // [n, k]
    float *wt;      // [k, n]
    int n, k;
    int best[SIZES];
} layer;

static struct {
    layer layers[LAYERS];
    int count;
    int gathered[SIZES]; // ways without [k, n]
    unsigned gone;       // rivals that cannot run
    dgm_kernels plain;   // for bias and activations
} blas;

static void multiply(int way, const layer *l, const float *w, int n, int m, const float *a, int lda,
                     float *c, int ldc)
{
    const int k = l->k;
    switch (way) {
    case OPENBLAS_NT:
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, m, n, k, 1.0f, a, lda, w, k, 0.0f, c,
                    ldc);
        break;
    case OPENBLAS_NN:
        cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0f, a, lda,
                    l->wt + (w - l->w) / k, l->n, 0.0f, c, ldc);
        break;
    case ONEDNN_NT:
        dnnl_sgemm('N', 'T', m, n, k, 1.0f, a, lda, w, k, 0.0f, c, ldc);
        break;
    default:
        dnnl_sgemm('N', 'N', m, n, k, 1.0f, a, lda, l->wt + (w - l->w) / k, l->n, 0.0f, c, ldc);
    }
}

static int size_index(int m)
{
    int i = 0;
    while (i + 1 < SIZES && rows_of[i] < m) i++;
    return i;
}

static void run_sgemm(const dgm_gemm_f32_args *p)
{
    const int n = p->n_end - p->n_begin, size = size_index(p->m);
    const float *w = (const float *)p->packed + (size_t)p->n_begin * (size_t)p->k;
    layer loose = {.w = p->packed, .n = p->n, .k = p->k};
    const layer *l = NULL;
    for (int i = 0; i < blas.count && !l; i++)
        if (blas.layers[i].w == p->packed && blas.layers[i].n == p->n) l = &blas.layers[i];
    multiply(l ? l->best[size] : blas.gathered[size], l ? l : &loose, w, n, p->m, p->a, p->lda,
             p->c, p->ldc);
    for (int r = 0; r < p->m; r++) {
        float *c = p->c + (size_t)r * (size_t)p->ldc;
        if (p->bias) blas.plain.add_f32(c, c, p->bias + p->n_begin, n);
        if (p->act != DGM_ACT_NONE) blas.plain.act_f32(c, c, n, p->act);
        if (p->residual) blas.plain.add_f32(c, c, p->residual + (size_t)r * (size_t)p->ldr, n);
    }
}

static size_t plain_size(int n, int k)
{
    return ((size_t)n * (size_t)k * sizeof(float) + 63) / 64 * 64;
}

// Panels are packed one behind the other: whole rows, so that the matrix comes out as [n, k].
static void plain_pack(void *packed, const float *w, int n, int k, int ldw)
{
    for (int i = 0; i < n; i++)
        memcpy((float *)packed + (size_t)i * (size_t)k, w + (size_t)i * (size_t)ldw,
               (size_t)k * sizeof(float));
}

void blas_install(dgm_backend *b)
{
    static const dgm_gemm_f32_ops sgemm = {"sgemm", plain_size, plain_pack, run_sgemm};
    blas.plain = b->k;
    b->k.gemm_f32 = sgemm;
    openblas_set_num_threads(1);
    const bool onednn = !(blas.gone & 1u << RIVAL_ONEDNN);
    for (int i = 0; i < SIZES; i++) blas.gathered[i] = onednn ? ONEDNN_NT : OPENBLAS_NT;
}

// ---- choosing ---------------------------------------------------------------------------------

static float *take(size_t floats)
{
    float *p = aligned_alloc(64, (floats * sizeof(float) + 63) / 64 * 64);
    if (!p) abort();
    madvise(p, floats * sizeof(float), MADV_HUGEPAGE);
    return p;
}

// Weights of a decoder's step are more than a cache holds: what is timed must not be in it either.
static void empty_caches(void)
{
    enum { BYTES = 96 << 20 };
    static unsigned char *room;
    if (!room) room = (unsigned char *)take(BYTES / sizeof(float));
    for (size_t i = 0; i < BYTES; i += 64) room[i]++;
}

// The fastest of the ways that are allowed, at m rows.
static int fastest(const layer *l, int m, bool turned, float *a, float *c)
{
    double best_time = 0;
    int best = -1;
    for (int way = 0; way < WAYS; way++) {
        if (!turned && (way == OPENBLAS_NN || way == ONEDNN_NN)) continue;
        if (blas.gone & 1u << rival_of[way]) continue;
        double time = 1e9;
        for (int turn = 0; turn < 5; turn++) {
            empty_caches();
            double begin = dgm_thread_time();
            multiply(way, l, l->w, l->n, m, a, l->k, c, l->n);
            double took = dgm_thread_time() - begin;
            if (turn > 0 && took < time) time = took;
        }
        if (best < 0 || time < best_time) {
            best = way;
            best_time = time;
        }
    }
    return best;
}

static void learn_layer(const dgm_linear *w)
{
    if (blas.count == LAYERS) return;
    layer *l = &blas.layers[blas.count++];
    *l = (layer){.w = w->packed, .n = w->rows, .k = w->cols};
    l->wt = take((size_t)l->n * (size_t)l->k);
    for (int i = 0; i < l->n; i++)
        for (int j = 0; j < l->k; j++)
            l->wt[(size_t)j * (size_t)l->n + (size_t)i] =
                l->w[(size_t)i * (size_t)l->k + (size_t)j];
    const int most = rows_of[SIZES - 1];
    float *a = take((size_t)most * (size_t)l->k), *c = take((size_t)most * (size_t)l->n);
    for (size_t i = 0; i < (size_t)most * (size_t)l->k; i++) a[i] = (float)(i % 17) * 0.05f - 0.4f;
    for (int i = 0; i < SIZES; i++) l->best[i] = fastest(l, rows_of[i], true, a, c);
    free(a);
    free(c);
}

// Candidate columns: about 512 of the output layer.
static void learn_gathered(const dgm_linear *out)
{
    layer l = {.w = out->packed, .n = out->rows < 512 ? out->rows : 512, .k = out->cols};
    const int most = rows_of[SIZES - 1];
    float *a = take((size_t)most * (size_t)l.k), *c = take((size_t)most * (size_t)l.n);
    memset(a, 0, (size_t)most * (size_t)l.k * sizeof(float));
    for (int i = 0; i < SIZES; i++) blas.gathered[i] = fastest(&l, rows_of[i], false, a, c);
    free(a);
    free(c);
}

void blas_learn(const dgm_model *m)
{
    model_each_layer(m, learn_layer);
    learn_gathered(dgm_model_output(m));
}

const char *blas_choices(char *buffer, size_t size)
{
    int count[WAYS] = {0};
    size_t used = 0;
    for (int i = 0; i < blas.count; i++)
        for (int k = 0; k < SIZES; k++) count[blas.layers[i].best[k]]++;
    buffer[0] = 0;
    for (int i = 0; i < WAYS; i++)
        if (count[i] && used + 40 < size)
            used += (size_t)snprintf(buffer + used, size - used, "%s%s %d", used ? "; " : "",
                                     names[i], count[i]);
    return buffer;
}

const char *blas_core(void)
{
    return openblas_get_corename();
}

enum { SMALL = 8 };
static float small_a[SMALL * SMALL], small_w[SMALL * SMALL], small_c[SMALL * SMALL];

void blas_try_openblas(void)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, SMALL, SMALL, SMALL, 1.0f, small_a, SMALL,
                small_w, SMALL, 0.0f, small_c, SMALL);
}

void blas_try_onednn(void)
{
    dnnl_sgemm('N', 'T', SMALL, SMALL, SMALL, 1.0f, small_a, SMALL, small_w, SMALL, 0.0f, small_c,
               SMALL);
}

void blas_leave_out(unsigned rivals)
{
    blas.gone = rivals;
}
