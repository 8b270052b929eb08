// SPDX-License-Identifier: MIT
// C reference: GRU, LSTM and SSRU gates.
//
// The text is kernel/gates_tmpl.h, on plain-C vectors (ref/vec_c.h);
// it is the contract that every other version meets bit by bit.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define GRU_F32 gru_f32_c
#define LSTM_F32 lstm_f32_c
#define SSRU_F32 ssru_f32_c
#include "kernel/gates_tmpl.h"

void dgm_gates_init_c(dgm_kernels *k)
{
    k->gates_name = "gates_c";
    k->gru_f32 = gru_f32_c;
    k->lstm_f32 = lstm_f32_c;
    k->ssru_f32 = ssru_f32_c;
}
