// SPDX-License-Identifier: MIT
// AVX2: GRU, LSTM and SSRU gates. The text is kernel/gates_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"

#define GRU_F32 gru_f32_avx2
#define LSTM_F32 lstm_f32_avx2
#define SSRU_F32 ssru_f32_avx2
#include "kernel/gates_tmpl.h"

void dgm_gates_init_avx2(dgm_kernels *k)
{
    k->gates_name = "gates_avx2";
    k->gru_f32 = gru_f32_avx2;
    k->lstm_f32 = lstm_f32_avx2;
    k->ssru_f32 = ssru_f32_avx2;
}
