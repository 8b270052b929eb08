// SPDX-License-Identifier: MIT
// gemm_i8_amx.c on tiles in software.
#include "checkkernel/soft/soft_tiles.h"

unsigned ck_soft_products_i8(void);

#define dgm_gemm_i8_init_amx ck_soft_gemm_i8
#include "kernel/x86/gemm_i8_amx.c"

unsigned ck_soft_products_i8(void)
{
    return soft_products;
}
