// SPDX-License-Identifier: MIT
// Packed bf16 product for AMX (tdpbf16ps); the loops are in kernel/x86/gemm_amx_tmpl.h.
//
// One row is multiplied in tiles, too: vdpbf16ps adds in another order, and a row's result would depend on how many
// rows there are.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

#define AMX_DOT(sum, a, w) _tile_dpbf16ps(sum, a, w)
enum { AMX_REAL = 1 };

#include "kernel/x86/gemm_amx_tmpl.h"

static void gemm_bf16_run_amx(const dgm_gemm_bf16_args *g)
{
    if (g->m <= 0) return;
    tile_product p;
    p.a = (const char *)g->a;
    p.packed = g->packed;
    p.lda = (size_t)g->lda * sizeof(uint16_t);
    p.panel_size = bf16_panel_size(g->k);
    p.m = g->m;
    p.out = bf16_out(g);
    p.steps = dgm_gemm_bf16_depth(g->k) / 32;
    p.cold = g->cold;
    amx_run(&p);
}

void dgm_gemm_bf16_init_amx(dgm_kernels *k)
{
    k->gemm_bf16.name = "gemm_bf16_amx";
    k->gemm_bf16.run = gemm_bf16_run_amx;
}
