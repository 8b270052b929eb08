// SPDX-License-Identifier: MIT
// C reference: quantisation of activations. The text is kernel/quantize_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define QUANTIZE_I8 quantize_i8_c
#define QUANTIZE_I8_STATIC quantize_i8_static_c
#define QUANTIZE_I16 quantize_i16_c
#define QUANTIZE_I16_STATIC quantize_i16_static_c
#define ROUND_BF16 round_bf16_c
#include "kernel/quantize_tmpl.h"

void dgm_quantize_init_c(dgm_kernels *k)
{
    k->quantize_name = "quantize_c";
    k->quantize_i8 = quantize_i8_c;
    k->quantize_i8_static = quantize_i8_static_c;
    k->quantize_i16 = quantize_i16_c;
    k->quantize_i16_static = quantize_i16_static_c;
    k->round_bf16 = round_bf16_c;
}
