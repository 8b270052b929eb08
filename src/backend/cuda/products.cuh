// SPDX-License-Identifier: MIT
// What kernels of products share: where a block works, and what becomes of a sum.
#ifndef DGM_BACKEND_CUDA_PRODUCTS_CUH
#define DGM_BACKEND_CUDA_PRODUCTS_CUH

#include "backend/cuda/device_math.cuh"
#include "backend/cuda/kernels_cuda.h"

// Where a block works: rows row .. row + rows - 1 of the product, columns from col on.
struct place {
    int row, rows, col;
    const char *w; // of its group
    const float *bias, *scale;
};

// Of tiles of `high` rows and `wide` columns; those of rows are counted group by group. False: there are fewer.
template <int high, int wide> static __device__ bool find_place(const cuda_product &p, int elem, place *out)
{
    int tile = blockIdx.y, begin = 0, end = p.m, group = 0;
    for (; group < p.groups; group++) {
        begin = p.first[group];
        end = p.first[group + 1];
        const int tiles = (end - begin + high - 1) / high;
        if (tile < tiles) break;
        tile -= tiles;
    }
    if (p.groups && group == p.groups) return false;
    if (p.n_found && (int)(blockIdx.x * wide) >= *p.n_found) return false;
    out->row = begin + tile * high;
    out->rows = end - out->row < high ? end - out->row : high;
    out->col = blockIdx.x * wide;
    out->w = (const char *)p.w + (size_t)group * p.w_group * elem;
    out->bias = p.bias ? p.bias + (size_t)group * p.bias_group : nullptr;
    out->scale = p.w_scale ? p.w_scale + (size_t)group * p.bias_group : nullptr;
    return out->rows > 0;
}

static __device__ int a_row(const cuda_product &p, int row)
{
    return p.a_rows ? p.a_rows[row] : row;
}

static __device__ int w_row(const cuda_product &p, int col)
{
    return p.w_rows ? p.w_rows[col] : col;
}

// A launch of tiles that cover the product.
static inline dim3 tiles_of(const cuda_product *p, int high, int wide)
{
    return dim3((unsigned)((p->n + wide - 1) / wide), (unsigned)((p->m + high - 1) / high + p->groups));
}

// tensor.cu
void cuda_run_tensor(cuda_tape *tape, const cuda_product *p);

#endif
