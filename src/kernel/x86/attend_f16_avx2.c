// SPDX-License-Identifier: MIT
// AVX2: attention over half-precision keys and values. The text is kernel/attend_tmpl.h.
#include "kernel/kernels_private.h"
#include "kernel/x86/vec_avx2.h"

#define ATTEND_HALF
#define ATTEND attend_f16_avx2
#include "kernel/attend_tmpl.h"
#define ATTEND_BLOCKS attend_blocks_f16_avx2
#include "kernel/attend_blocks_tmpl.h"

static void half_f32_avx2(uint16_t *y, const float *x, int n)
{
    int i = 0;
    for (; i + 16 <= n; i += 16) vf_store_f16(y + i, vf_load(x + i));
    if (i < n) vf_store_f16_n(y + i, vf_load_n(x + i, n - i), n - i);
}

void dgm_attend_f16_init_avx2(dgm_kernels *k)
{
    k->attend_f16 = attend_f16_avx2;
    k->attend_blocks_f16 = attend_blocks_f16_avx2;
    k->half_f32 = half_f32_avx2;
}
