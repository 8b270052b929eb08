// SPDX-License-Identifier: MIT
// AVX2: quantisation of activations. The text is kernel/quantize_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"

#define QUANTIZE_I8 quantize_i8_avx2
#define QUANTIZE_I8_STATIC quantize_i8_static_avx2
#define QUANTIZE_I16 quantize_i16_avx2
#define QUANTIZE_I16_STATIC quantize_i16_static_avx2
#define ROUND_BF16 round_bf16_avx2
#include "kernel/quantize_tmpl.h"

void dgm_quantize_init_avx2(dgm_kernels *k)
{
    k->quantize_name = "quantize_avx2";
    k->quantize_i8 = quantize_i8_avx2;
    k->quantize_i8_static = quantize_i8_static_avx2;
    k->quantize_i16 = quantize_i16_avx2;
    k->quantize_i16_static = quantize_i16_static_avx2;
    k->round_bf16 = round_bf16_avx2;
}
