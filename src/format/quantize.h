// SPDX-License-Identifier: MIT
// From f32 to the integer storage types of docs/internals/FORMAT.md, section 1.1.
//
//     i8   per row:    scale[r] = max|w[r, :]| / 127 (1 for a row of zeros), q = rint(w / scale[r])
//     i16  per tensor: scale = 2^-b with the largest b that keeps max|w| in range, q = rint(w /
//     scale)
//
// rint is round to nearest, ties to even; q never leaves [-127, 127] and [-32767, 32767].
// Input must be finite: false is returned otherwise, and the output is then undefined.
#ifndef DGM_FORMAT_QUANTIZE_H
#define DGM_FORMAT_QUANTIZE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

// w [rows, cols] -> q [rows, cols], scale [rows]
bool dgm_quantize_i8(const float *w, int rows, int cols, int8_t *q, float *scale);
// w [rows, cols] -> q [rows, cols], one scale, a power of two. max_bits limits b (15 is usual for
// weights in [-1, 1]; pass 30 for no limit).
bool dgm_quantize_i16(const float *w, int rows, int cols, int max_bits, int16_t *q, float *scale);
// The two halves of that, for matrices that come in parts: b for the largest |w|, and values with a given b.
int dgm_quantize_i16_bits(float largest, int max_bits);
void dgm_quantize_i16_by(const float *w, size_t n, int bits, int16_t *q);

#endif
