// SPDX-License-Identifier: MIT
// AMX tiles in software: gemm_i8_amx.c and gemm_bf16_amx.c are compiled against these instead of the intrinsics, so
// that their loops are checked on CPUs without AMX. Instructions as Intel's manual describes them: a load or store
// touches as many rows as the tile is configured for; tdpbf16ps keeps sums of the even and of the odd numbers, rounds
// every step to nearest even and takes denormal numbers for zeros.
#ifndef DGM_TESTS_CHECKKERNEL_SOFT_SOFT_TILES_H
#define DGM_TESTS_CHECKKERNEL_SOFT_SOFT_TILES_H

#include <immintrin.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

#include "base/bytes.h"

static struct soft_tile {
    uint8_t rows, data[16][64];
} soft_tiles[8];

static unsigned soft_products; // configurations: one a product

static inline void soft_configure(const void *config)
{
    soft_products++;
    const uint8_t *bytes = config;
    for (int i = 0; i < 8; i++) soft_tiles[i].rows = bytes[48 + i];
}

static inline void soft_load(int t, const void *from, size_t stride)
{
    for (int r = 0; r < soft_tiles[t].rows; r++)
        memcpy(soft_tiles[t].data[r], (const char *)from + (size_t)r * stride, 64);
}

static inline void soft_store(int t, void *to, size_t stride)
{
    for (int r = 0; r < soft_tiles[t].rows; r++) memcpy((char *)to + (size_t)r * stride, soft_tiles[t].data[r], 64);
}

static inline void soft_dot_bytes(int sum, int a, int w)
{
    for (int r = 0; r < soft_tiles[sum].rows; r++)
        for (int n = 0; n < 16; n++) {
            uint32_t s;
            memcpy(&s, soft_tiles[sum].data[r] + 4 * n, sizeof s);
            for (int k = 0; k < 64; k++)
                s += (uint32_t)(soft_tiles[a].data[r][k] * (int8_t)soft_tiles[w].data[k / 4][4 * n + k % 4]);
            memcpy(soft_tiles[sum].data[r] + 4 * n, &s, sizeof s);
        }
}

static inline float soft_flush(float x)
{
    return fpclassify(x) == FP_SUBNORMAL ? copysignf(0, x) : x;
}

static inline float soft_bf16(const uint8_t *at)
{
    uint16_t bits;
    memcpy(&bits, at, sizeof bits);
    return soft_flush(dgm_bf16_to_float(bits));
}

static inline void soft_dot_bf16(int sum, int a, int w)
{
    for (int r = 0; r < soft_tiles[sum].rows; r++)
        for (int n = 0; n < 16; n++) {
            float s, part[2] = {0, 0};
            for (int k = 0; k < 32; k++)
                part[k % 2] = soft_flush(fmaf(soft_bf16(soft_tiles[a].data[r] + 2 * k),
                                              soft_bf16(soft_tiles[w].data[k / 2] + 4 * n + 2 * (k % 2)), part[k % 2]));
            memcpy(&s, soft_tiles[sum].data[r] + 4 * n, sizeof s);
            s = soft_flush(s + soft_flush(part[0] + part[1]));
            memcpy(soft_tiles[sum].data[r] + 4 * n, &s, sizeof s);
        }
}

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_loadd
#undef _tile_stream_loadd
#undef _tile_stored
#undef _tile_zero
#undef _tile_dpbusd
#undef _tile_dpbf16ps
#define _tile_loadconfig(config) soft_configure(config)
#define _tile_release() memset(soft_tiles, 0xa5, sizeof soft_tiles)
#define _tile_loadd(t, from, stride) soft_load(t, from, stride)
#define _tile_stream_loadd(t, from, stride) soft_load(t, from, stride)
#define _tile_stored(t, to, stride) soft_store(t, to, stride)
#define _tile_zero(t) memset(soft_tiles[t].data, 0, sizeof soft_tiles[t].data)
#define _tile_dpbusd(sum, a, w) soft_dot_bytes(sum, a, w)
#define _tile_dpbf16ps(sum, a, w) soft_dot_bf16(sum, a, w)

#endif
