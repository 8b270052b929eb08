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
#define CUDA_NOINLINE __noinline__
// Before loops over arrays that are to live in registers.
#define CUDA_UNROLL _Pragma("unroll")
#define CUDA_UNROLL_4 _Pragma("unroll 4")
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

// The same of 8-bit integers: a [16, 32], b [32, 8], exact.
static __device__ __forceinline__ void mma_i8(int c[4], const uint32_t a[4], const uint32_t b[2])
{
#if __CUDA_ARCH__ >= 800 // older devices multiply without
    asm volatile("mma.sync.aligned.m16n8k32.row.col.s32.s8.s8.s32 {%0,%1,%2,%3}, "
                 "{%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
                 : "+r"(c[0]), "+r"(c[1]), "+r"(c[2]), "+r"(c[3])
                 : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
#endif
}

// Two numbers as halves, the first below; what is too large becomes the largest.
static __device__ __forceinline__ uint32_t pack_f16(float a, float b)
{
#if __CUDA_ARCH__ >= 800
    uint32_t pair;
    asm("cvt.rn.satfinite.f16x2.f32 %0, %1, %2;" : "=r"(pair) : "f"(b), "f"(a));
    return pair;
#else
    const __half2 h = __floats2half2_rn(fminf(fmaxf(a, -65504.0f), 65504.0f), fminf(fmaxf(b, -65504.0f), 65504.0f));
    return *(const uint32_t *)&h;
#endif
}

// Where the device can, a kernel starts while the one before still runs (tape_cuda.c), and does what needs none of its
// results. Every thread of every kernel calls both: the first as soon as it likes; the second before it reads or
// writes what other kernels do, and before it ends.
static __device__ __forceinline__ void next_may_start()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.launch_dependents;");
#endif
}

static __device__ __forceinline__ void wait_for_others()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("griddepcontrol.wait;" ::: "memory");
#endif
}

// For kernels that have nothing to do before.
static __device__ __forceinline__ void begin_kernel()
{
    next_may_start();
    wait_for_others();
}

// Copies into shared memory that go on while the thread computes: `valid` bytes of `from`, then zeros; `from` is an
// address of global memory even where none are. They come in groups; waiting is for all but the last `others`
// groups, and for this thread's copies alone.
static __device__ __forceinline__ void copy_async_16(void *to, const void *from, int valid)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(at), "l"(from), "r"(valid)
                 : "memory");
#else
    for (int i = 0; i < 4; i++) ((uint32_t *)to)[i] = 4 * i < valid ? ((const uint32_t *)from)[i] : 0;
#endif
}

static __device__ __forceinline__ void copy_async_4(void *to, const void *from, int valid)
{
#if __CUDA_ARCH__ >= 800
    const uint32_t at = (uint32_t)__cvta_generic_to_shared(to);
    asm volatile("cp.async.ca.shared.global [%0], [%1], 4, %2;" ::"r"(at), "l"(from), "r"(valid)
                 : "memory");
#else
    *(uint32_t *)to = valid ? *(const uint32_t *)from : 0;
#endif
}

static __device__ __forceinline__ void copy_async_commit()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

template <int others> static __device__ __forceinline__ void copy_async_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(others) : "memory");
#endif
}

#endif
