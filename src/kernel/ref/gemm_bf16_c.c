// SPDX-License-Identifier: MIT
// C reference of the packed bf16 product, and the packing that all ISAs share.
//
// Contract: kernel/gemm_bf16.h; layout and epilogue: kernel/gemm_int_tmpl.h. Each sum is one chain over i = 0 .. k-1,
// starting at 0. A product of two bf16 numbers has 16 bits and is exact in f32: a product and a sum give the bits of a
// fused operation, which the versions that widen use.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"
#include "kernel/gemm_int_tmpl.h"

static size_t gemm_bf16_packed_size_c(int n, int k)
{
    return int_panels(n) * bf16_panel_size(k);
}

static void gemm_bf16_pack_c(void *packed, const uint16_t *w, const int32_t *rows, int n, int k, int ldw)
{
    char *panel = packed;
    for (int j = 0; j < n; j += PANEL, panel += bf16_panel_size(k))
        pairs_pack_panel(panel, w, rows, j, n - j < PANEL ? n - j : PANEL, k, ldw);
}

// sums[0..64) of one row a [depth] with a panel.
static void block(int32_t sums[PANEL], const uint16_t *a, const uint16_t *w, int depth)
{
    float s[PANEL] = {0}, even[PANEL], odd[PANEL];
    for (int i = 0; i < depth; i += 2, a += 2, w += 2 * PANEL) {
        const float first = dgm_bf16_to_float(a[0]), second = dgm_bf16_to_float(a[1]);
        // A pair is taken as one number of 32 bits, the even one in its lower half: loops of plain vectors.
        uint32_t pairs[PANEL], lower[PANEL], upper[PANEL];
        memcpy(pairs, w, sizeof pairs);
        for (int j = 0; j < PANEL; j++) lower[j] = pairs[j] << 16;
        for (int j = 0; j < PANEL; j++) upper[j] = pairs[j] & 0xffff0000u;
        memcpy(even, lower, sizeof even);
        memcpy(odd, upper, sizeof odd);
        for (int j = 0; j < PANEL; j++) s[j] = s[j] + first * even[j] + second * odd[j];
    }
    memcpy(sums, s, sizeof s);
}

static void gemm_bf16_run_c(const dgm_gemm_bf16_args *g)
{
    const int_out out = bf16_out(g);
    int32_t sums[PANEL];
    for (int j = g->n_begin; j < g->n_end; j += PANEL)
        for (int r = 0; r < g->m; r++) {
            block(sums, g->a + (size_t)r * (size_t)g->lda, bf16_panel(g, j), dgm_gemm_bf16_depth(g->k));
            int_finish(&out, sums, r, 1, j, PANEL);
        }
}

void dgm_gemm_bf16_init_c(dgm_kernels *k)
{
    k->gemm_bf16 = (dgm_gemm_bf16_ops){.name = "gemm_bf16_c",
                                       .packed_size = gemm_bf16_packed_size_c,
                                       .pack = gemm_bf16_pack_c,
                                       .run = gemm_bf16_run_c};
}
