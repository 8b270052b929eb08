// SPDX-License-Identifier: MIT
// CUDA backend: how layers of 8 bits are multiplied. One way for each layer, by the kind of GPU and the layer's shape:
// never by timing, and never by the number of rows, on which results must not depend.
//
// In integers (CUDA_I8): rows are rounded to 8 bits by a kernel of their own, products are exact and a CPU's to the
// bit, a weight takes one byte. As halves (CUDA_F16): the same 8-bit weights times their scales, rounded to f16 when
// they are loaded, rows as in f16: two bytes a weight, numbers that differ from a CPU's in the third digit, and no
// rounding of rows.
//
// Capability 9.0: one H200, 2026-11-16, torch._int_mm and torch.mm (cuBLAS 13) in graphs, eight sets of weights,
// best of many, in microseconds in int8 / in f16:
//
//     inputs x outputs     32 rows       128 rows       512 rows        2048 rows
//     512 x 512         3.80 / 2.98    3.87 / 3.12    3.95 / 3.44      4.85 / 4.24
//     512 x 2048        3.69 / 3.05    3.82 / 3.26    4.90 / 4.22     11.19 / 8.92
//     2048 x 512        6.62 / 5.01    6.64 / 5.19    6.72 / 6.06      9.00 / 8.10
//     512 x 32000       7.79 / 10.54  12.61 / 12.78  38.72 / 31.29   138.67 / 111.05
//
// and a kernel that rounds the rows comes on top. A layer has one way for all numbers of rows: integers win for the
// output layer below some hundred rows, by 3 microseconds of a step, and lose 28 with 2,048. So it is
// halves for every shape that was measured, and down to 256, which was not: there the kernel on top should weigh more.
// The kernels of this folder were not measured against each other. Other kinds of GPU were not measured at all:
// integers, which are exact.
#include "backend/cuda/cuda_private.h"

typedef struct way {
    int from, to;        // compute capability
    int outputs, inputs; // at least
    cuda_type type;
} way;

// The first that fits.
static const way ways[] = {
    {90, 90, 256, 256, CUDA_F16},
    {0, INT32_MAX, 0, 0, CUDA_I8},
};

cuda_type cuda_way(int capability, dgm_precision precision, int outputs, int inputs)
{
    if (precision != DGM_PRECISION_I8) return cuda_type_of(precision);
    const way *w = ways;
    while (capability < w->from || capability > w->to || outputs < w->outputs || inputs < w->inputs) w++;
    return w->type;
}
