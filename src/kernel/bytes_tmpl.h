// SPDX-License-Identifier: MIT
// A row as bytes for gemm_i8, over a 16-lane vector: shared by quantize_tmpl.h and norm_tmpl.h.
//
// Included after a vec_<isa>.h. Storing rounds to nearest even on every ISA. The order of the bounds makes a NaN the
// lower one.
#ifndef DGM_KERNEL_BYTES_TMPL_H
#define DGM_KERNEL_BYTES_TMPL_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

static inline vf quantize_scale(vf x, vf factor, vf low, vf high)
{
    return vf_min(vf_max(vf_mul(x, factor), low), high);
}

static inline void quantize_bytes(uint8_t *q, const float *x, int n, float by)
{
    const vf factor = vf_set(by), low = vf_set(-127.0f), high = vf_set(127.0f);
    int i = 0;
    for (; n - i >= 64; i += 64)
        vf_store_u8_4(q + i, quantize_scale(vf_load(x + i), factor, low, high),
                      quantize_scale(vf_load(x + i + 16), factor, low, high),
                      quantize_scale(vf_load(x + i + 32), factor, low, high),
                      quantize_scale(vf_load(x + i + 48), factor, low, high));
    for (; n - i >= 16; i += 16)
        vf_store_u8(q + i, quantize_scale(vf_load(x + i), factor, low, high));
    if (i < n) {
        vf_store_u8(q + i, quantize_scale(vf_load_n(x + i, n - i), factor, low, high));
        i += 16;
    }
    const int depth = dgm_gemm_i8_depth(n);
    if (i < depth) memset(q + i, 128, (size_t)(depth - i));
}

// By the row's own scale, which its largest |x| decides; too small a one counts as zero.
static inline void quantize_by_range(uint8_t *q, float *scale, const float *x, int n, float range)
{
    const bool zero = !(range >= 1e-30f);
    *scale = zero ? 1.0f : range / 127.0f;
    quantize_bytes(q, x, n, zero ? 0.0f : 127.0f / range);
}

#endif
