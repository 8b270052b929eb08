// SPDX-License-Identifier: MIT
// gemm_bf16_amx.c on tiles in software.
#include "checkkernel/soft/soft_tiles.h"

#define dgm_gemm_bf16_init_amx ck_soft_gemm_bf16
#include "kernel/x86/gemm_bf16_amx.c"
