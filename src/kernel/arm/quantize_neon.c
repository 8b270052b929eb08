// SPDX-License-Identifier: MIT
// NEON: quantisation of activations. The text is kernel/quantize_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define QUANTIZE_I8 quantize_i8_neon
#define QUANTIZE_I8_STATIC quantize_i8_static_neon
#define QUANTIZE_I16 quantize_i16_neon
#define QUANTIZE_I16_STATIC quantize_i16_static_neon
#define ROUND_BF16 round_bf16_neon
#include "kernel/quantize_tmpl.h"

void dgm_quantize_init_neon(dgm_kernels *k)
{
    k->quantize_name = "quantize_neon";
    k->quantize_i8 = quantize_i8_neon;
    k->quantize_i8_static = quantize_i8_static_neon;
    k->quantize_i16 = quantize_i16_neon;
    k->quantize_i16_static = quantize_i16_static_neon;
    k->round_bf16 = round_bf16_neon;
}
