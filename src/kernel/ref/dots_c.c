// SPDX-License-Identifier: MIT
// C reference: a few outputs of a layer from weights that lie by rows.
//
// The text of f32 and bf16 is kernel/dots_tmpl.h on plain-C vectors (ref/vec_c.h). Integer sums are exact, so
// their order is free and every version has the same bits; a weight of -128 counts as -127, as
// packing takes it.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define DOTS_F32 dots_f32_c
#define DOTS_BF16 dots_bf16_c
#include "kernel/dots_tmpl.h"

static void dots_i8_c(const dgm_dots_args *g)
{
    for (int i = 0; i < g->count; i++) {
        const int8_t *w = (const int8_t *)g->w + (size_t)g->ids[i] * (size_t)g->k;
        for (int r = 0; r < g->m; r++) {
            const uint8_t *a = (const uint8_t *)g->a + (size_t)r * (size_t)g->lda;
            int32_t sum = 0;
            for (int j = 0; j < g->k; j++) sum += (a[j] - 128) * (w[j] < -127 ? -127 : w[j]);
            dots_finish(g, r, i, 1, &sum);
        }
    }
}

static void dots_i16_c(const dgm_dots_args *g)
{
    for (int i = 0; i < g->count; i++) {
        const int16_t *w = (const int16_t *)g->w + (size_t)g->ids[i] * (size_t)g->k;
        for (int r = 0; r < g->m; r++) {
            const int16_t *a = (const int16_t *)g->a + (size_t)r * (size_t)g->lda;
            int32_t sum = 0;
            for (int j = 0; j < g->k; j++) sum += a[j] * w[j];
            dots_finish(g, r, i, 1, &sum);
        }
    }
}

void dgm_dots_init_c(dgm_kernels *k)
{
    k->dots_f32 = dots_f32_c;
    k->dots_bf16 = dots_bf16_c;
    k->dots_i8 = dots_i8_c;
    k->dots_i16 = dots_i16_c;
}
