// SPDX-License-Identifier: MIT
// What a compiler of CUDA knows without being told, for a compiler that does not: included before every .cu
// file. Threads of a block are fibers (softcuda.cc), so that barriers and warps work as on a GPU.
#ifndef DGM_TESTS_PLUGINS_SOFTCUDA_SOFTCUDA_H
#define DGM_TESTS_PLUGINS_SOFTCUDA_SOFTCUDA_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include <functional>
#include <tuple>

#include "cuda_runtime_api.h"

#define __device__
#define __host__
#define __global__
#define __forceinline__ inline
#define __launch_bounds__(...)
// One block runs at a time; all of these variables hold rubbish when it begins.
#define __shared__ static __attribute__((section("softcuda_shared")))

struct alignas(16) uint4 {
    unsigned x, y, z, w;
};

struct alignas(16) float4 {
    float x, y, z, w;
};

struct alignas(8) float2 {
    float x, y;
};

struct alignas(8) uint2 {
    unsigned x, y;
};

// ---- the thread that runs -------------------------------------------------------------------------

struct softcuda_thread {
    dim3 thread, block;
};

extern softcuda_thread softcuda_now;
extern dim3 softcuda_block_size, softcuda_grid_size;

#define threadIdx (softcuda_now.thread)
#define blockIdx (softcuda_now.block)
#define blockDim (softcuda_block_size)
#define gridDim (softcuda_grid_size)

enum { SOFTCUDA_THREADS = 1024, SOFTCUDA_DYNAMIC = 227 << 10 };

long softcuda_setting(const char *name, long otherwise); // a number of the environment
void softcuda_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
void softcuda_stop(const char *why); // does not return
void softcuda_run(const char *name, dim3 grid, dim3 block, size_t shared, const std::function<void()> &f);
void softcuda_barrier(const char *file, int line);
// Others run before this thread goes on; one of them has to change a barrier in shared memory.
void softcuda_pause();
void softcuda_changed();
// Waits for all lanes of the warp; `mine` of lane i is then at the address that is returned + 64 i.
const char *softcuda_meet(const void *mine, size_t bytes, const char *file, int line);
// As that; the last lane to come calls work(all, results), and the caller gets its 64 bytes of results.
void softcuda_together(const void *mine, size_t bytes, void (*work)(const char *all, char *results),
                       void *result, size_t result_bytes, const char *file, int line);
void *softcuda_dynamic_shared();
// idle.cc: what takes the place of a kernel on a device that computes nothing.
std::function<void()> softcuda_idle(const char *name, void **arguments);
// Copies of a thread that come late: a copy is made when its group is waited for.
void softcuda_copy_later(void *to, const void *from, int bytes, int valid);
void softcuda_copies_commit();
void softcuda_copies_wait(int others);
void softcuda_wait_for_others();

#define __syncthreads() softcuda_barrier(__FILE__, __LINE__)
#define __syncwarp() ((void)softcuda_meet(nullptr, 0, __FILE__, __LINE__))

template <typename T>
T softcuda_shuffle(unsigned mask, T x, unsigned lane, const char *file, int line)
{
    if (mask != ~0u) softcuda_stop("a shuffle of part of a warp");
    const char *all = softcuda_meet(&x, sizeof x, file, line);
    T y;
    memcpy(&y, all + 64 * (lane % 32), sizeof y);
    return y;
}

inline unsigned softcuda_ballot(unsigned mask, int vote, const char *file, int line)
{
    if (mask != ~0u) softcuda_stop("a vote of part of a warp");
    const char *all = softcuda_meet(&vote, sizeof vote, file, line);
    unsigned votes = 0;
    for (int i = 0; i < 32; i++) {
        int v;
        memcpy(&v, all + 64 * i, sizeof v);
        votes |= (unsigned)(v != 0) << i;
    }
    return votes;
}

inline unsigned softcuda_lane()
{
    return softcuda_now.thread.x % 32; // blocks of one dimension: launches see to it
}

#define __shfl_sync(mask, x, lane) softcuda_shuffle(mask, x, lane, __FILE__, __LINE__)
#define __shfl_xor_sync(mask, x, n) \
    softcuda_shuffle(mask, x, softcuda_lane() ^ (unsigned)(n), __FILE__, __LINE__)
#define __shfl_down_sync(mask, x, n)                                                                \
    softcuda_shuffle(mask, x, softcuda_lane() + (unsigned)(n) < 32 ? softcuda_lane() + (unsigned)(n) \
                                                                   : softcuda_lane(),               \
                     __FILE__, __LINE__)
#define __ballot_sync(mask, vote) softcuda_ballot(mask, vote, __FILE__, __LINE__)
#define __any_sync(mask, vote) (softcuda_ballot(mask, vote, __FILE__, __LINE__) != 0)
#define __all_sync(mask, vote) (softcuda_ballot(mask, vote, __FILE__, __LINE__) == ~0u)

template <typename T> T atomicAdd(T *at, T x)
{
    const T old = *at;
    *at = old + x;
    return old;
}

template <typename T> T atomicMax(T *at, T x)
{
    const T old = *at;
    if (x > old) *at = x;
    return old;
}

inline unsigned atomicOr(unsigned *at, unsigned x)
{
    const unsigned old = *at;
    *at = old | x;
    return old;
}

inline int __popc(unsigned x)
{
    return __builtin_popcount(x);
}

// ---- arithmetic -----------------------------------------------------------------------------------

inline float __fmul_rn(float a, float b)
{
    return a * b;
}

inline float __fadd_rn(float a, float b)
{
    return a + b;
}

inline float __fdiv_rn(float a, float b)
{
    return a / b;
}

inline float __expf(float x)
{
    return expf(x);
}

inline float __fdividef(float a, float b)
{
    return a / b;
}

inline float __fmaf_rn(float a, float b, float c)
{
    return fmaf(a, b, c);
}

inline int __float2int_rn(float x)
{
    return (int)lrintf(x);
}

inline unsigned __float_as_uint(float x)
{
    unsigned u;
    memcpy(&u, &x, sizeof u);
    return u;
}

inline float __uint_as_float(unsigned u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}

inline int __dp4a(int a, int b, int sum)
{
    for (int i = 0; i < 32; i += 8)
        sum += (int)(int8_t)((unsigned)a >> i) * (int)(int8_t)((unsigned)b >> i);
    return sum;
}

// ---- kernels --------------------------------------------------------------------------------------

// A call of the kernel with copies of the arguments that are at these addresses.
typedef std::function<std::function<void()>(void **arguments)> softcuda_caller;
void softcuda_know(const char *name, const void *kernel, size_t argument_bytes, const softcuda_caller &caller);

template <typename... P, size_t... I>
std::function<void()> softcuda_call(void (*kernel)(P...), void **arguments, std::index_sequence<I...>)
{
    const std::tuple<P...> own(*(P *)arguments[I]...);
    return [kernel, own] { std::apply(kernel, own); };
}

// The runtime is given kernels as addresses: their types have to be known before.
template <typename... P> void softcuda_register(const char *name, void (*kernel)(P...))
{
    softcuda_know(name, (const void *)kernel, sizeof(std::tuple<P...>), [kernel](void **arguments) {
        return softcuda_call(kernel, arguments, std::make_index_sequence<sizeof...(P)>());
    });
}

#endif
