// SPDX-License-Identifier: MIT
// What only a compiler of CUDA understands: instructions of the machine. Everything else is C++,
// so that tests/plugins/softcuda can run it where there is no GPU, with a file of its own in place of this one.
#ifndef DGM_BACKEND_CUDA_PTX_CUH
#define DGM_BACKEND_CUDA_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <stdint.h>

#include "backend/cuda/launch.cuh"

#define CUDA_LAUNCH(kernel, grid, block, shared, tape, ...) \
    cuda_launch(tape, kernel, grid, block, shared, __VA_ARGS__)
// Shared memory whose size the launch gives.
#define CUDA_DYNAMIC_SHARED(type, name) extern __shared__ type name[]

// c += a b on tensor cores, by a whole warp: a [16, 16] by rows, b [16, 8] by columns, c [16, 8] of f32; who
// holds what is in the manual of PTX, "matrix fragments for mma.m16n8k16".
static __device__ __forceinline__ void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#else
    for (int h = 0; h < 2; h++)
        asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, "
                     "{%4,%5}, {%6}, {%0,%1,%2,%3};"
                     : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                     : "r"(a[2 * h]), "r"(a[2 * h + 1]), "r"(b[h]));
#endif
}

static __device__ __forceinline__ void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
#if __CUDA_ARCH__ >= 800 // older devices do not offer bf16
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

#endif
