// SPDX-License-Identifier: MIT
// Stands in for src/backend/cuda/ptx.cuh where there is no GPU: instructions of a whole warp
// with the layout of their operands as NVIDIA's manual of PTX has it (m16n8k16, fragments by lane).
#ifndef SOFTCUDA_PTX_CUH
#define SOFTCUDA_PTX_CUH

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "backend/cuda/launch.cuh"

#define CUDA_LAUNCH(kernel, grid, block, shared, tape, ...) \
    (softcuda_register(#kernel, kernel), cuda_launch(tape, kernel, grid, block, shared, __VA_ARGS__))
#define CUDA_NOINLINE
#define CUDA_UNROLL
#define CUDA_UNROLL_4
#define CUDA_IN_ORDER
#define CUDA_DYNAMIC_SHARED(type, name) type *name = (type *)softcuda_dynamic_shared()

struct softcuda_mma {
    float c[4];
    uint32_t a[4], b[2];
};

inline float softcuda_half_of(uint32_t pair, int which)
{
    return __half2float({(uint16_t)(pair >> 16 * which)});
}

inline float softcuda_bfloat_of(uint32_t pair, int which)
{
    return __bfloat162float({(uint16_t)(pair >> 16 * which)});
}

template <float (*number)(uint32_t, int)> void softcuda_multiply(const char *all, char *results)
{
    float a[16][16], b[16][8];
    softcuda_mma lanes[32];
    for (int lane = 0; lane < 32; lane++) {
        softcuda_mma &m = lanes[lane];
        memcpy(&m, all + 64 * lane, sizeof m);
        const int group = lane >> 2, in_group = lane % 4;
        for (int i = 0; i < 8; i++) {
            const int row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
            const int col = in_group * 2 + (i & 1) + (i >= 4 ? 8 : 0);
            a[row][col] = number(m.a[i / 2], i % 2);
        }
        for (int i = 0; i < 4; i++)
            b[in_group * 2 + (i & 1) + (i >= 2 ? 8 : 0)][group] = number(m.b[i / 2], i % 2);
    }
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            const int row = (lane >> 2) + (i >= 2 ? 8 : 0), col = lane % 4 * 2 + (i & 1);
            double sum = lanes[lane].c[i];
            for (int k = 0; k < 16; k++) sum += (double)a[row][k] * (double)b[k][col];
            ((float *)(results + 64 * lane))[i] = (float)sum;
        }
}

template <float (*number)(uint32_t, int)>
void softcuda_mma_run(float c[4], const uint32_t a[4], const uint32_t b[2], int line)
{
    softcuda_mma m;
    memcpy(m.c, c, sizeof m.c);
    memcpy(m.a, a, sizeof m.a);
    memcpy(m.b, b, sizeof m.b);
    softcuda_together(&m, sizeof m, softcuda_multiply<number>, c, 4 * sizeof *c, "mma", line);
}

inline void mma_f16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    softcuda_mma_run<softcuda_half_of>(c, a, b, __LINE__);
}

struct softcuda_mma_i8 {
    int c[4];
    uint32_t a[4], b[2];
};

inline void softcuda_multiply_i8(const char *all, char *results)
{
    int8_t a[16][32], b[32][8];
    softcuda_mma_i8 lanes[32];
    for (int lane = 0; lane < 32; lane++) {
        softcuda_mma_i8 &m = lanes[lane];
        memcpy(&m, all + 64 * lane, sizeof m);
        const int group = lane >> 2, in_group = lane % 4;
        for (int i = 0; i < 16; i++) {
            const int row = i < 4 || (i >= 8 && i < 12) ? group : group + 8;
            const int col = in_group * 4 + (i & 3) + (i >= 8 ? 16 : 0);
            a[row][col] = (int8_t)(m.a[i / 4] >> 8 * (i % 4));
        }
        for (int i = 0; i < 8; i++)
            b[in_group * 4 + (i & 3) + (i >= 4 ? 16 : 0)][group] = (int8_t)(m.b[i / 4] >> 8 * (i % 4));
    }
    for (int lane = 0; lane < 32; lane++)
        for (int i = 0; i < 4; i++) {
            const int row = (lane >> 2) + (i >= 2 ? 8 : 0), col = lane % 4 * 2 + (i & 1);
            int sum = lanes[lane].c[i];
            for (int k = 0; k < 32; k++) sum += a[row][k] * b[k][col];
            ((int *)(results + 64 * lane))[i] = sum;
        }
}

inline void mma_i8(int c[4], const uint32_t a[4], const uint32_t b[2])
{
    softcuda_mma_i8 m;
    memcpy(m.c, c, sizeof m.c);
    memcpy(m.a, a, sizeof m.a);
    memcpy(m.b, b, sizeof m.b);
    softcuda_together(&m, sizeof m, softcuda_multiply_i8, c, 4 * sizeof *c, "mma", __LINE__);
}

// ---- groups of four warps: every lane makes its numbers, at once

#define CUDA_CONSTANT
enum { BOX_BYTES = 128 };

// Where byte `at` of a row of a box is, whose rows follow each other.
inline const char *softcuda_in_box(const char *first, int row, int at)
{
    const uintptr_t place = (uintptr_t)first + (uintptr_t)(row * BOX_BYTES + at);
    return (const char *)(place ^ (place >> 7 & 7) << 4);
}

struct shared_matrix {
    const char *first;
    uint16_t at(int row, int k) const
    {
        uint16_t x;
        memcpy(&x, softcuda_in_box(first, row, 2 * k), sizeof x);
        return x;
    }
};

inline shared_matrix make_shared_matrix(const void *first)
{
    return {(const char *)first};
}

template <int columns, float (*number)(uint32_t, int)>
void softcuda_group_mma(float *c, shared_matrix a, shared_matrix b, bool more)
{
    const int lane = (int)softcuda_now.thread.x % 32, warp = (int)softcuda_now.thread.x / 32 % 4;
    for (int i = 0; i < columns / 2; i++) {
        const int row = 16 * warp + lane / 4 + (i % 4 >= 2 ? 8 : 0), col = i / 4 * 8 + lane % 4 * 2 + i % 2;
        double sum = more ? c[i] : 0;
        for (int k = 0; k < 16; k++) sum += (double)number(a.at(row, k), 0) * (double)number(b.at(col, k), 0);
        c[i] = (float)sum;
    }
}

template <int columns> void group_mma_f16(float *c, shared_matrix a, shared_matrix b, bool more)
{
    softcuda_group_mma<columns, softcuda_half_of>(c, a, b, more);
}

template <int columns> void group_mma_bf16(float *c, shared_matrix a, shared_matrix b, bool more)
{
    softcuda_group_mma<columns, softcuda_bfloat_of>(c, a, b, more);
}

inline void begin_group_mma()
{
}

inline void commit_group_mma()
{
}

template <int others> void wait_group_mma()
{
}

template <int count> void more_registers()
{
}

template <int count> void fewer_registers()
{
}

// ---- barriers in shared memory

struct softcuda_barrier_state {
    uint16_t count, missing; // threads
    uint16_t boxes;          // of 128 bytes that have to come: arrivals of bytes are at once
    uint16_t rounds;
};

inline void barrier_open(uint64_t *b, int count)
{
    const softcuda_barrier_state s = {(uint16_t)count, (uint16_t)count, 0, 0};
    memcpy(b, &s, sizeof s);
}

inline void softcuda_arrive(uint64_t *b, int threads, int bytes)
{
    softcuda_barrier_state s;
    memcpy(&s, b, sizeof s);
    if (threads > s.missing) softcuda_stop("more threads than the barrier is for");
    s.missing = (uint16_t)(s.missing - threads);
    s.boxes = (uint16_t)(s.boxes + bytes / BOX_BYTES);
    if (s.missing == 0 && s.boxes == 0) {
        s.missing = s.count;
        s.rounds++;
        softcuda_changed();
    }
    memcpy(b, &s, sizeof s);
}

inline void barrier_arrive(uint64_t *b)
{
    softcuda_arrive(b, 1, 0);
}

inline void barrier_expect(uint64_t *b, int bytes)
{
    softcuda_arrive(b, 1, bytes);
}

inline void show_barriers()
{
}

inline void barrier_wait(uint64_t *b, int parity)
{
    for (;;) {
        softcuda_barrier_state s;
        memcpy(&s, b, sizeof s);
        if (s.rounds % 2 != parity) return;
        softcuda_pause();
    }
}

inline char *align_shared(void *p, uint32_t to)
{
    return (char *)p + (to - (uintptr_t)p % to) % to;
}

// ---- boxes

struct tensor_map {
    const char *data;
    int rows, cols, stride, high;
};

inline bool make_tensor_map(tensor_map *map, const void *data, int rows, int cols, int stride, int high, int)
{
    *map = {(const char *)data, rows, cols, stride, high};
    return (uintptr_t)data % 16 == 0 && stride % 8 == 0;
}

inline void bring_box(void *to, const tensor_map *map, int col, int row, uint64_t *there)
{
    if ((uintptr_t)to % 1024) softcuda_stop("a box that does not begin at a multiple of 1024");
    for (int r = 0; r < map->high; r++)
        for (int k = 0; k < BOX_BYTES / 2; k++) {
            const int at = col * (BOX_BYTES / 2) + k;
            uint16_t x = 0;
            if (row + r < map->rows && at < map->cols)
                memcpy(&x, map->data + ((size_t)(row + r) * map->stride + at) * sizeof x, sizeof x);
            memcpy((char *)softcuda_in_box((const char *)to, r, 2 * k), &x, sizeof x);
        }
    softcuda_arrive(there, 0, -map->high * BOX_BYTES);
}

inline uint32_t pack_f16(float a, float b)
{
    const __half2 h = __floats2half2_rn(fminf(fmaxf(a, -65504.0f), 65504.0f), fminf(fmaxf(b, -65504.0f), 65504.0f));
    uint32_t pair;
    memcpy(&pair, &h, sizeof pair);
    return pair;
}

inline void next_may_start()
{
}

inline void wait_for_others()
{
    softcuda_wait_for_others();
}

inline uint2 load_stream(const uint2 *from)
{
    return *from;
}

inline void begin_kernel()
{
    next_may_start();
    wait_for_others();
}

inline void copy_async_16(void *to, const void *from, int valid)
{
    softcuda_copy_later(to, from, 16, valid);
}

inline void copy_async_4(void *to, const void *from, int valid)
{
    softcuda_copy_later(to, from, 4, valid);
}

inline void copy_async_commit()
{
    softcuda_copies_commit();
}

template <int others> void copy_async_wait()
{
    softcuda_copies_wait(others);
}

inline void mma_bf16(float c[4], const uint32_t a[4], const uint32_t b[2])
{
    softcuda_mma_run<softcuda_bfloat_of>(c, a, b, __LINE__);
}

#endif
