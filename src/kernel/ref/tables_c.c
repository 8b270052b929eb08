// SPDX-License-Identifier: MIT
// C reference: activations and gates by look-up table. The text is kernel/table_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/ref/vec_c.h"

#define ACT_TABLE_F32 act_table_f32_c
#define GRU_F32 gru_table_f32_c
#define LSTM_F32 lstm_table_f32_c
#define SSRU_F32 ssru_table_f32_c
#include "kernel/table_tmpl.h"

void dgm_tables_init_c(dgm_kernels *k)
{
    k->act_table_f32 = act_table_f32_c;
    k->gru_table_f32 = gru_table_f32_c;
    k->lstm_table_f32 = lstm_table_f32_c;
    k->ssru_table_f32 = ssru_table_f32_c;
}
