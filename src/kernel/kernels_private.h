// SPDX-License-Identifier: MIT
// Private to src/kernel: one init function per family and ISA. Each overwrites its family's
// pointers in the table; kernels.c calls them upward along the ISA ladder.
#ifndef DGM_KERNEL_KERNELS_PRIVATE_H
#define DGM_KERNEL_KERNELS_PRIVATE_H

#include "kernel/kernels.h"

extern const float dgm_tanh_table[514];

void dgm_gemm_f32_init_c(dgm_kernels *k);
void dgm_gemm_i8_init_c(dgm_kernels *k);
void dgm_gemm_i16_init_c(dgm_kernels *k);
void dgm_gemm_bf16_init_c(dgm_kernels *k);
void dgm_quantize_init_c(dgm_kernels *k);
void dgm_rows_init_c(dgm_kernels *k);
void dgm_attend_init_c(dgm_kernels *k);
void dgm_attend_f16_init_c(dgm_kernels *k);
void dgm_gates_init_c(dgm_kernels *k);
void dgm_tables_init_c(dgm_kernels *k);
void dgm_topk_init_c(dgm_kernels *k);
void dgm_dots_init_c(dgm_kernels *k);

#if defined(__x86_64__)
void dgm_gemm_f32_init_avx2(dgm_kernels *k);
void dgm_gemm_i8_init_avx2(dgm_kernels *k);
void dgm_gemm_i16_init_avx2(dgm_kernels *k);
void dgm_gemm_bf16_init_avx2(dgm_kernels *k);
void dgm_quantize_init_avx2(dgm_kernels *k);
void dgm_rows_init_avx2(dgm_kernels *k);
void dgm_attend_init_avx2(dgm_kernels *k);
void dgm_attend_f16_init_avx2(dgm_kernels *k);
void dgm_gates_init_avx2(dgm_kernels *k);
void dgm_tables_init_avx2(dgm_kernels *k);
void dgm_topk_init_avx2(dgm_kernels *k);
void dgm_dots_init_avx2(dgm_kernels *k);

void dgm_gemm_f32_init_avx512(dgm_kernels *k);
void dgm_gemm_i8_init_avx512(dgm_kernels *k);
void dgm_pack_i8_init_avx512(dgm_kernels *k); // the product's packing
void dgm_gemm_i16_init_avx512(dgm_kernels *k);
void dgm_gemm_bf16_init_avx512(dgm_kernels *k);
void dgm_quantize_init_avx512(dgm_kernels *k);
void dgm_rows_init_avx512(dgm_kernels *k);
void dgm_attend_init_avx512(dgm_kernels *k);
void dgm_attend_f16_init_avx512(dgm_kernels *k);
void dgm_gates_init_avx512(dgm_kernels *k);
void dgm_tables_init_avx512(dgm_kernels *k);
void dgm_topk_init_avx512(dgm_kernels *k);
void dgm_dots_init_avx512(dgm_kernels *k);

void dgm_gemm_i8_init_vnni(dgm_kernels *k);
void dgm_gemm_i16_init_vnni(dgm_kernels *k);
void dgm_dots_init_vnni(dgm_kernels *k);
// The AMX version leaves few rows to this one.
void dgm_gemm_i8_run_vnni(const dgm_gemm_i8_args *g);

void dgm_gemm_bf16_init_avx512bf16(dgm_kernels *k);

void dgm_gemm_i8_init_amx(dgm_kernels *k);
void dgm_gemm_bf16_init_amx(dgm_kernels *k);
#endif

#if defined(__aarch64__)
void dgm_gemm_f32_init_neon(dgm_kernels *k);
void dgm_gemm_i8_init_neon(dgm_kernels *k);
void dgm_gemm_i16_init_neon(dgm_kernels *k);
void dgm_gemm_bf16_init_neon(dgm_kernels *k);
void dgm_quantize_init_neon(dgm_kernels *k);
void dgm_rows_init_neon(dgm_kernels *k);
void dgm_attend_init_neon(dgm_kernels *k);
void dgm_attend_f16_init_neon(dgm_kernels *k);
void dgm_gates_init_neon(dgm_kernels *k);
void dgm_tables_init_neon(dgm_kernels *k);
void dgm_topk_init_neon(dgm_kernels *k);
void dgm_dots_init_neon(dgm_kernels *k);

void dgm_gemm_i8_init_dotprod(dgm_kernels *k);
// The version with matrix products leaves an odd row to this one.
void dgm_gemm_i8_run_dotprod(const dgm_gemm_i8_args *g);

void dgm_gemm_i8_init_i8mm(dgm_kernels *k);
#endif

#endif
