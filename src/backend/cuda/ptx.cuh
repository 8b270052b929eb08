// SPDX-License-Identifier: MIT
// What only a compiler of CUDA understands: instructions of the machine. Everything else is C++,
// so that tests/plugins/softcuda can run it where there is no GPU, with a file of its own in place of this one.
#ifndef DGM_BACKEND_CUDA_PTX_CUH
#define DGM_BACKEND_CUDA_PTX_CUH

#include <cuda.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime_api.h>
#include <stdint.h>

#include "backend/cuda/launch.cuh"

#define CUDA_LAUNCH(kernel, grid, block, shared, tape, ...) \
    cuda_launch(tape, kernel, grid, block, shared, __VA_ARGS__)
#define CUDA_NOINLINE __noinline__
// Before loops over arrays that are to live in registers.
#define CUDA_UNROLL _Pragma("unroll")
#define CUDA_UNROLL_4 _Pragma("unroll 4")
// Nothing is read before that is read behind it: registers would not do.
#define CUDA_IN_ORDER asm volatile("" ::: "memory")
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

// ---- groups of four warps -------------------------------------------------------------------------
// Devices of capability 9.0, of code that was made for them alone: c += a b by four neighbouring warps, a [64, 16] and
// b [columns, 16] of halves in shared memory, as bring_box lays them out. Lane (g, q) of warp w has of c what it has of mma's:
// rows 16 w + g and + 8, columns 8 j + 2 q and the next in c[4 j ..]. It goes on by itself: c is not to be looked at
// before somebody waited.
#if defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define CUDA_GROUPS 1
#endif
#define CUDA_CONSTANT __grid_constant__ // arguments that have an address

enum { BOX_BYTES = 128 }; // of a row of a box: 64 halves

struct shared_matrix {
    uint64_t bits;
};

// From the 16 halves of its first row on.
static __device__ __forceinline__ shared_matrix make_shared_matrix(const void *first)
{
    const uint64_t at = (uint32_t)__cvta_generic_to_shared(first) >> 4, eight_rows = 8 * BOX_BYTES >> 4;
    return {at | 1ull << 16 | eight_rows << 32 | 1ull << 62};
}

#define CUDA_C8(i) "+f"(c[i]), "+f"(c[i + 1]), "+f"(c[i + 2]), "+f"(c[i + 3]), "+f"(c[i + 4]), "+f"(c[i + 5]), \
                   "+f"(c[i + 6]), "+f"(c[i + 7])
#define CUDA_C32(i) CUDA_C8(i), CUDA_C8(i + 8), CUDA_C8(i + 16), CUDA_C8(i + 24)
#define CUDA_NAMES_32 "{%0, %1, %2, %3, %4, %5, %6, %7, %8, %9, %10, %11, %12, %13, %14, %15, %16, %17, %18, %19, %20, %21, " \
                      "%22, %23, %24, %25, %26, %27, %28, %29, %30, %31"
#define CUDA_NAMES_64 CUDA_NAMES_32 ", %32, %33, %34, %35, %36, %37, %38, %39, %40, %41, %42, %43, %44, %45, %46, %47, %48, " \
                      "%49, %50, %51, %52, %53, %54, %55, %56, %57, %58, %59, %60, %61, %62, %63"
#if CUDA_GROUPS
#define CUDA_GROUP_64(type) \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %34, 0; wgmma.mma_async.sync.aligned.m64n64k16.f32." type "." type " " \
                 CUDA_NAMES_32 "}, %32, %33, p, 1, 1, 0, 0;}" : CUDA_C32(0) : "l"(a.bits), "l"(b.bits), "r"((uint32_t)more))
#define CUDA_GROUP_128(type) \
    asm volatile("{.reg .pred p; setp.ne.u32 p, %66, 0; wgmma.mma_async.sync.aligned.m64n128k16.f32." type "." type " " \
                 CUDA_NAMES_64 "}, %64, %65, p, 1, 1, 0, 0;}" : CUDA_C32(0), CUDA_C32(32) : "l"(a.bits), "l"(b.bits), \
                 "r"((uint32_t)more))
#else
#define CUDA_GROUP_64(type)
#define CUDA_GROUP_128(type)
#endif

// columns: 64 or 128, of b's rows and of c. more: c = a b alone where that is false.
template <int columns>
static __device__ __forceinline__ void group_mma_f16(float *c, shared_matrix a, shared_matrix b, bool more)
{
    if constexpr (columns == 64)
        CUDA_GROUP_64("f16");
    else
        CUDA_GROUP_128("f16");
}

template <int columns>
static __device__ __forceinline__ void group_mma_bf16(float *c, shared_matrix a, shared_matrix b, bool more)
{
    if constexpr (columns == 64)
        CUDA_GROUP_64("bf16");
    else
        CUDA_GROUP_128("bf16");
}

// Before the first, and after c was changed.
static __device__ __forceinline__ void begin_group_mma()
{
#if CUDA_GROUPS
    asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
#endif
}

static __device__ __forceinline__ void commit_group_mma()
{
#if CUDA_GROUPS
    asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
#endif
}

// For all but the last `others` that were committed.
template <int others> static __device__ __forceinline__ void wait_group_mma()
{
#if CUDA_GROUPS
    asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(others) : "memory");
#endif
}

// By all warps of a group: so many registers from here on.
template <int count> static __device__ __forceinline__ void more_registers()
{
#if CUDA_GROUPS
    asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(count));
#endif
}

template <int count> static __device__ __forceinline__ void fewer_registers()
{
#if CUDA_GROUPS
    asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(count));
#endif
}

// ---- the rest -------------------------------------------------------------------------------------

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

// Of memory that nobody writes while the kernel runs and that is read once.
static __device__ __forceinline__ uint2 load_stream(const uint2 *from)
{
    uint2 x;
    asm volatile("ld.global.nc.L1::no_allocate.v2.u32 {%0, %1}, [%2];" : "=r"(x.x), "=r"(x.y) : "l"(from));
    return x;
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

// ---- barriers in shared memory: `count` threads arrive, then its next round begins ------------------

static __device__ __forceinline__ uint32_t shared_address(const void *p)
{
    return (uint32_t)__cvta_generic_to_shared(p);
}

static __device__ __forceinline__ void barrier_open(uint64_t *b, int count)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("mbarrier.init.shared.b64 [%0], %1;" ::"r"(shared_address(b)), "r"(count) : "memory");
#endif
}

static __device__ __forceinline__ void barrier_arrive(uint64_t *b)
{
#if __CUDA_ARCH__ >= 800
    asm volatile("{.reg .b64 state; mbarrier.arrive.shared.b64 state, [%0];}" ::"r"(shared_address(b)) : "memory");
#endif
}

// Arrives, and so many bytes have to come before the round ends.
static __device__ __forceinline__ void barrier_expect(uint64_t *b, int bytes)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .b64 state; mbarrier.arrive.expect_tx.shared.b64 state, [%0], %1;}" ::"r"(shared_address(b)),
                 "r"(bytes)
                 : "memory");
#endif
}

// Barriers that this thread opened are there for copies, too.
static __device__ __forceinline__ void show_barriers()
{
#if __CUDA_ARCH__ >= 900
    asm volatile("fence.mbarrier_init.release.cluster; fence.proxy.async.shared::cta;" ::: "memory");
#endif
}

// For the end of a round: the first has parity 0.
static __device__ __forceinline__ void barrier_wait(uint64_t *b, int parity)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("{.reg .pred done;\n"
                 "again%=: mbarrier.try_wait.parity.shared.b64 done, [%0], %1;\n"
                 "@!done bra again%=;}" ::"r"(shared_address(b)),
                 "r"(parity)
                 : "memory");
#endif
}

static __device__ __forceinline__ char *align_shared(void *p, uint32_t to)
{
    return (char *)p + (to - shared_address(p) % to) % to;
}

// ---- boxes: rows of 64 halves that one instruction copies ------------------------------------------
// In shared memory the 16 bytes `i` of row r of a box are at i ^ r % 8, so that groups of warps read all banks.

typedef CUtensorMap tensor_map;

// Of a matrix of halves with rows of `cols`, `stride` apart: boxes have `high` rows, and zeros where the matrix ends.
static inline bool make_tensor_map(tensor_map *map, const void *data, int rows, int cols, int stride, int high, int bf16)
{
    typedef CUresult encode_map(CUtensorMap *, CUtensorMapDataType, cuuint32_t, void *, const cuuint64_t *, const cuuint64_t *,
                                const cuuint32_t *, const cuuint32_t *, CUtensorMapInterleave, CUtensorMapSwizzle,
                                CUtensorMapL2promotion, CUtensorMapFloatOOBfill);
    static encode_map *const encode = [] {
        void *f = nullptr;
        cudaDriverEntryPointQueryResult found;
        const cudaError_t e = cudaGetDriverEntryPointByVersion("cuTensorMapEncodeTiled", &f, 12000, cudaEnableDefault, &found);
        return e == cudaSuccess && found == cudaDriverEntryPointSuccess ? (encode_map *)f : nullptr;
    }();
    const cuuint64_t size[2] = {(cuuint64_t)cols, (cuuint64_t)rows}, strides[1] = {(cuuint64_t)stride * 2};
    const cuuint32_t box[2] = {BOX_BYTES / 2, (cuuint32_t)high}, steps[2] = {1, 1};
    return encode && (uintptr_t)data % 16 == 0 && strides[0] % 16 == 0 &&
           encode(map, bf16 ? CU_TENSOR_MAP_DATA_TYPE_BFLOAT16 : CU_TENSOR_MAP_DATA_TYPE_FLOAT16, 2, (void *)data, size,
                  strides, box, steps, CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_SWIZZLE_128B,
                  CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE) == CUDA_SUCCESS;
}

// Box `col` of the rows from `row` on; the barrier gets to know when its bytes are there.
static __device__ __forceinline__ void bring_box(void *to, const tensor_map *map, int col, int row, uint64_t *there)
{
#if __CUDA_ARCH__ >= 900
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];"
                 ::"r"(shared_address(to)), "l"(map), "r"(col * (BOX_BYTES / 2)), "r"(row), "r"(shared_address(there))
                 : "memory");
#endif
}

template <int others> static __device__ __forceinline__ void copy_async_wait()
{
#if __CUDA_ARCH__ >= 800
    asm volatile("cp.async.wait_group %0;" ::"n"(others) : "memory");
#endif
}

#endif
