// SPDX-License-Identifier: MIT
// Fills the table of kernels: the C reference first, then upward along the ISA ladder.
//
// A level may leave a family out: the pointer of the level below stays. Products have a table of their own
// (kernel/variants.c), by shape and rows, too. ISA words end here and there.
#include "kernel/kernels.h"

#include <string.h>

#include "kernel/kernels_private.h"
#include "kernel/variants.h"

// Every pointer of the table has its line in kernels.inc (and so its check).
#define DGM_KERNEL(field, family) +1
enum {
    KERNELS = 0
#include "kernel/kernels.inc"
};
#undef DGM_KERNEL
_Static_assert(offsetof(dgm_kernels, quantize_name) ==
                   sizeof(dgm_gemm_f32_ops) + sizeof(dgm_gemm_i8_ops) + sizeof(dgm_gemm_i16_ops) +
                       sizeof(dgm_gemm_bf16_ops) + (KERNELS - 4) * sizeof(void (*)(void)),
               "kernels.inc and struct dgm_kernels differ");

#if defined(__x86_64__)
static void init_x86(dgm_kernels *k, unsigned flags)
{
    if (!(flags & DGM_CPU_AVX2)) return;
    dgm_quantize_init_avx2(k);
    dgm_rows_init_avx2(k);
    dgm_attend_init_avx2(k);
    dgm_attend_f16_init_avx2(k);
    dgm_gates_init_avx2(k);
    dgm_tables_init_avx2(k);
    dgm_topk_init_avx2(k);
    dgm_dots_init_avx2(k);

    if (!(flags & DGM_CPU_AVX512)) return;
    dgm_pack_i8_init_avx512(k);
    dgm_quantize_init_avx512(k);
    dgm_rows_init_avx512(k);
    dgm_attend_init_avx512(k);
    dgm_attend_f16_init_avx512(k);
    dgm_gates_init_avx512(k);
    dgm_tables_init_avx512(k);
    dgm_topk_init_avx512(k);
    dgm_dots_init_avx512(k);

    if (!(flags & DGM_CPU_AVX512_VNNI)) return;
    dgm_dots_init_vnni(k);
}
#endif

#if defined(__aarch64__)
static void init_arm(dgm_kernels *k, unsigned flags)
{
    if (!(flags & DGM_CPU_NEON)) return;
    dgm_quantize_init_neon(k);
    dgm_rows_init_neon(k);
    dgm_attend_init_neon(k);
    dgm_attend_f16_init_neon(k);
    dgm_gates_init_neon(k);
    dgm_tables_init_neon(k);
    dgm_topk_init_neon(k);
    dgm_dots_init_neon(k);
}
#endif

void dgm_kernels_init(dgm_kernels *k, unsigned flags)
{
    memset(k, 0, sizeof *k);
    dgm_variants_init(k, flags);
    dgm_quantize_init_c(k);
    dgm_rows_init_c(k);
    dgm_attend_init_c(k);
    dgm_attend_f16_init_c(k);
    dgm_gates_init_c(k);
    dgm_tables_init_c(k);
    dgm_topk_init_c(k);
    dgm_dots_init_c(k);
#if defined(__x86_64__)
    init_x86(k, flags);
#elif defined(__aarch64__)
    init_arm(k, flags);
#else
    (void)flags;
#endif
}

void dgm_kernels_use_tables(dgm_kernels *k)
{
    k->act_f32 = k->act_table_f32;
    k->gru_f32 = k->gru_table_f32;
    k->lstm_f32 = k->lstm_table_f32;
    k->ssru_f32 = k->ssru_table_f32;
    k->gates_name = "gates_table";
}

const char *dgm_kernels_describe(const dgm_kernels *k, char *buffer, size_t size)
{
    const char *const names[] = {k->gemm_f32.name,  k->gemm_i8.name,  k->gemm_i16.name,
                                 k->gemm_bf16.name, k->quantize_name, k->rows_name,
                                 k->attend_name,    k->gates_name,    k->topk_name};
    size_t used = 0;
    if (size == 0) return buffer;
    buffer[0] = '\0';
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        const size_t length = strlen(names[i]), gap = used > 0;
        if (used + gap + length + 1 > size) break;
        if (gap) buffer[used++] = ' ';
        memcpy(buffer + used, names[i], length + 1);
        used += length;
    }
    return buffer;
}
