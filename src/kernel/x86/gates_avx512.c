// SPDX-License-Identifier: MIT
// AVX-512: GRU, LSTM and SSRU gates. The text is kernel/gates_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"

#define GRU_F32 gru_f32_avx512
#define LSTM_F32 lstm_f32_avx512
#define SSRU_F32 ssru_f32_avx512
#include "kernel/gates_tmpl.h"

void dgm_gates_init_avx512(dgm_kernels *k)
{
    k->gates_name = "gates_avx512";
    k->gru_f32 = gru_f32_avx512;
    k->lstm_f32 = lstm_f32_avx512;
    k->ssru_f32 = ssru_f32_avx512;
}
