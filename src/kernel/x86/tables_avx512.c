// SPDX-License-Identifier: MIT
// AVX-512: activations and gates by look-up table. The text is kernel/table_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx512.h"

#define ACT_TABLE_F32 act_table_f32_avx512
#define GRU_F32 gru_table_f32_avx512
#define LSTM_F32 lstm_table_f32_avx512
#define SSRU_F32 ssru_table_f32_avx512
#include "kernel/table_tmpl.h"

void dgm_tables_init_avx512(dgm_kernels *k)
{
    k->act_table_f32 = act_table_f32_avx512;
    k->gru_table_f32 = gru_table_f32_avx512;
    k->lstm_table_f32 = lstm_table_f32_avx512;
    k->ssru_table_f32 = ssru_table_f32_avx512;
}
