// SPDX-License-Identifier: MIT
// Packed u8 x i8 product for AMX (tdpbusd); the loops are in kernel/x86/gemm_amx_tmpl.h.
//
// A few rows are left to VNNI: for how many, by shape, says the table of variants. Sums are exact in both.
#include <immintrin.h>

#include "kernel/kernels_private.h"
#include "kernel/variants.h"
#include "kernel/x86/vec_avx512.h"
#include "kernel/gemm_int_tmpl.h"

#define AMX_DOT(sum, a, w) _tile_dpbusd(sum, a, w)
enum { AMX_REAL = 0 };

#include "kernel/x86/gemm_amx_tmpl.h"

static void gemm_i8_run_amx(const dgm_gemm_i8_args *g)
{
    if (g->m < dgm_variant_tile_rows(g->n, g->k)) {
        dgm_gemm_i8_run_vnni(g);
        return;
    }
    tile_product p;
    p.a = (const char *)g->a;
    p.packed = g->packed;
    p.lda = (size_t)g->lda;
    p.panel_size = i8_panel_size(g->k);
    p.m = g->m;
    p.out = i8_out(g);
    p.steps = dgm_gemm_i8_depth(g->k) / 64;
    p.cold = g->cold;
    amx_run(&p);
}

void dgm_gemm_i8_init_amx(dgm_kernels *k)
{
    k->gemm_i8.name = "gemm_i8_amx";
    k->gemm_i8.run = gemm_i8_run_amx;
}
