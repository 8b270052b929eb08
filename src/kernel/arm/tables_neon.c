// SPDX-License-Identifier: MIT
// NEON: activations and gates by look-up table. The text is kernel/table_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/arm/vec_neon.h"

#define ACT_TABLE_F32 act_table_f32_neon
#define GRU_F32 gru_table_f32_neon
#define LSTM_F32 lstm_table_f32_neon
#define SSRU_F32 ssru_table_f32_neon
#include "kernel/table_tmpl.h"

void dgm_tables_init_neon(dgm_kernels *k)
{
    k->act_table_f32 = act_table_f32_neon;
    k->gru_table_f32 = gru_table_f32_neon;
    k->lstm_table_f32 = lstm_table_f32_neon;
    k->ssru_table_f32 = ssru_table_f32_neon;
}
