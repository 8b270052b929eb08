// SPDX-License-Identifier: MIT
// NEON: GRU, LSTM and SSRU gates. The text is kernel/gates_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define GRU_F32 gru_f32_neon
#define LSTM_F32 lstm_f32_neon
#define SSRU_F32 ssru_f32_neon
#include "kernel/gates_tmpl.h"

void dgm_gates_init_neon(dgm_kernels *k)
{
    k->gates_name = "gates_neon";
    k->gru_f32 = gru_f32_neon;
    k->lstm_f32 = lstm_f32_neon;
    k->ssru_f32 = ssru_f32_neon;
}
