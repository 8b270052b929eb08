// SPDX-License-Identifier: MIT
// The machine's ceilings; see ceilings.h.
#define _GNU_SOURCE
#include "ceilings.h"

#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernel/cpu.h"

const char *const ceiling_names[CEILING_PEAKS] = {"f32", "i16", "i8", "bf16"};

enum { TURNS = 7 };
static const double turn = 4e-3; // seconds

static double time_of(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

double wall_time(void)
{
    return time_of(CLOCK_MONOTONIC);
}

double process_time(void)
{
    return time_of(CLOCK_PROCESS_CPUTIME_ID);
}

// A turn of work; returns what was done in it.
typedef double (*work_fn)(const void *data, size_t size);

// Best rate of several turns: how much is done in a second.
static double best_rate(work_fn work, const void *data, size_t size)
{
    double best = 0;
    const int calls = size ? 1 + (int)(((size_t)2 << 20) / size) : 32; // per look at the clock
    for (int i = 0; i < TURNS; i++) {
        work(data, size); // into the cache
        double done = 0, start = time_of(CLOCK_THREAD_CPUTIME_ID), now = start;
        while (now - start < turn) {
            for (int k = 0; k < calls; k++) done += work(data, size);
            now = time_of(CLOCK_THREAD_CPUTIME_ID);
        }
        if (done / (now - start) > best) best = done / (now - start);
    }
    return best;
}

// 4 KiB of random numbers, of all types at once: small floats (0.001 to 0.002), whose halves are bf16 and integers.
static const void *random_numbers(void)
{
    static uint32_t numbers[1024] __attribute__((aligned(64)));
    uint32_t random = 1;
    for (int i = 0; i < 1024; i++) {
        random = random * 1664525u + 1013904223u;
        numbers[i] = 0x3a800000u | (random >> 9 & 0x7fffffu);
    }
    return numbers;
}

#if defined(__x86_64__)

enum { STEPS = 2000 };

// STEPS rounds of one instruction on each of 12 accumulators: enough to hide a latency of 5 with
// two a cycle. `next` is an expression in the accumulator a.
#define ONE(vector, next, r)                                                                       \
    {                                                                                              \
        vector a = r;                                                                              \
        r = next;                                                                                  \
        __asm__ volatile("" : "+v"(r));                                                            \
    }
#define STREAM(name, isa, vector, next, per_instruction)                                           \
    __attribute__((target(isa))) static double name(const void *data, size_t size)                 \
    {                                                                                              \
        (void)size;                                                                                \
        vector x, y;                                                                               \
        memcpy(&x, data, sizeof x);                                                                \
        memcpy(&y, (const char *)data + sizeof x, sizeof y);                                       \
        vector r0 = x, r1 = x, r2 = x, r3 = x, r4 = x, r5 = x, r6 = x, r7 = x, r8 = x, r9 = x;     \
        vector r10 = x, r11 = x;                                                                   \
        for (int s = 0; s < STEPS; s++) {                                                          \
            ONE(vector, next, r0)                                                                  \
            ONE(vector, next, r1)                                                                  \
            ONE(vector, next, r2) ONE(vector, next, r3) ONE(vector, next, r4)                      \
                ONE(vector, next, r5) ONE(vector, next, r6) ONE(vector, next, r7)                  \
                    ONE(vector, next, r8) ONE(vector, next, r9) ONE(vector, next, r10)             \
                        ONE(vector, next, r11)                                                     \
        }                                                                                          \
        return (double)STEPS * 12 * (per_instruction);                                             \
    }

STREAM(f32_avx2, "avx2,fma", __m256, _mm256_fmadd_ps(x, y, a), 8)
STREAM(f32_avx512, "avx512f", __m512, _mm512_fmadd_ps(x, y, a), 16)
STREAM(bf16_avx512, "avx512f,avx512bf16", __m512, _mm512_dpbf16_ps(a, (__m512bh)x, (__m512bh)y), 32)
STREAM(i16_vnni, "avx512vnni", __m512i, _mm512_dpwssd_epi32(a, x, y), 32)
STREAM(i8_vnni, "avx512vnni", __m512i, _mm512_dpbusd_epi32(a, x, y), 64)
// A product that does not depend on the accumulator would be made only once.
STREAM(i16_avx2, "avx2", __m256i, _mm256_add_epi32(_mm256_madd_epi16(x, a), a), 16)
STREAM(i16_avx512, "avx512bw", __m512i, _mm512_add_epi32(_mm512_madd_epi16(x, a), a), 32)

// Without VNNI bytes are multiplied in pairs and widened: three instructions for one.
#define WIDEN_256(x, y, a)                                                                         \
    _mm256_add_epi32(_mm256_madd_epi16(_mm256_maddubs_epi16(x, y), _mm256_set1_epi16(1)), a)
#define WIDEN_512(x, y, a)                                                                         \
    _mm512_add_epi32(_mm512_madd_epi16(_mm512_maddubs_epi16(x, y), _mm512_set1_epi16(1)), a)
STREAM(i8_avx2, "avx2", __m256i, WIDEN_256(x, a, a), 32)
STREAM(i8_avx512, "avx512bw", __m512i, WIDEN_512(x, a, a), 64)

#define READ(name, isa, vector)                                                                    \
    __attribute__((target(isa))) static double name(const void *data, size_t size)                 \
    {                                                                                              \
        const vector *p = data;                                                                    \
        size_t n = size / sizeof *p;                                                               \
        vector a = p[0], b = a, c = a, d = a;                                                      \
        for (size_t i = 0; i + 8 <= n; i += 8) {                                                   \
            a ^= p[i] ^ p[i + 4];                                                                  \
            b ^= p[i + 1] ^ p[i + 5];                                                              \
            c ^= p[i + 2] ^ p[i + 6];                                                              \
            d ^= p[i + 3] ^ p[i + 7];                                                              \
        }                                                                                          \
        a ^= b ^ c ^ d;                                                                            \
        __asm__ volatile("" : : "v"(a));                                                           \
        return (double)size;                                                                       \
    }

#define WRITE(name, isa, vector)                                                                   \
    __attribute__((target(isa))) static double name(const void *data, size_t size)                 \
    {                                                                                              \
        vector *p = (vector *)(uintptr_t)data, x = {1};                                            \
        for (size_t i = 0; i < size / sizeof *p; i++) {                                            \
            p[i] = x;                                                                              \
            __asm__ volatile("" : "+v"(x) : : "memory");                                           \
        }                                                                                          \
        return (double)size;                                                                       \
    }

typedef uint64_t v32 __attribute__((vector_size(32)));
typedef uint64_t v64 __attribute__((vector_size(64)));
READ(read_avx2, "avx2", v32)
READ(read_avx512, "avx512f", v64)
WRITE(write_avx2, "avx2", v32)
WRITE(write_avx512, "avx512f", v64)

// ---- tiles --------------------------------------------------------------------------------------

// What ldtilecfg reads.
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes_per_row[16];
    uint8_t rows[16];
} tile_config;

#define TILES __attribute__((target("amx-tile,amx-int8,amx-bf16")))

TILES static void tiles_begin(void)
{
    tile_config c = {.palette = 1};
    for (int i = 0; i < 8; i++) {
        c.bytes_per_row[i] = 64;
        c.rows[i] = 16;
    }
    __asm__ volatile("" : : "r"(&c) : "memory");
    _tile_loadconfig(&c);
}

// 16 x 16 sums of 64 bytes (or 32 halves) of k each, in four tiles.
#define TILE_STREAM(name, multiply, per_instruction)                                               \
    TILES static double name(const void *data, size_t size)                                        \
    {                                                                                              \
        (void)size;                                                                                \
        tiles_begin();                                                                             \
        _tile_loadd(4, data, 64);                                                                  \
        _tile_loadd(5, (const char *)data + 1024, 64);                                             \
        _tile_loadd(6, (const char *)data + 2048, 64);                                             \
        _tile_loadd(7, (const char *)data + 3072, 64);                                             \
        for (int s = 0; s < STEPS / 16; s++) {                                                     \
            multiply(0, 4, 6);                                                                     \
            multiply(1, 4, 7);                                                                     \
            multiply(2, 5, 6);                                                                     \
            multiply(3, 5, 7);                                                                     \
        }                                                                                          \
        _tile_release();                                                                           \
        return (double)(STEPS / 16) * 4 * (per_instruction);                                       \
    }
TILE_STREAM(i8_amx, _tile_dpbusd, 16 * 16 * 64)
TILE_STREAM(bf16_amx, _tile_dpbf16ps, 16 * 16 * 32)

// Tiles of a packed matrix: rows of 64 bytes, 256 apart.
TILES static double read_tiles(const void *data, size_t size)
{
    tiles_begin();
    for (const char *p = data, *end = p + size; p < end; p += 4096) {
        _tile_loadd(4, p, 256);
        _tile_loadd(5, p + 64, 256);
        _tile_loadd(6, p + 128, 256);
        _tile_loadd(7, p + 192, 256);
    }
    _tile_release();
    return (double)size;
}

double ceilings_tile_turn(bool bf16)
{
    static const void *numbers;
    if (!numbers) numbers = random_numbers();
    return bf16 ? bf16_amx(numbers, 0) : i8_amx(numbers, 0);
}

typedef struct level {
    const char *name;
    work_fn streams[CEILING_PEAKS];
    const char *instructions[CEILING_PEAKS];
    work_fn read, write;
} level;

static const level levels[] = {
    {"avx2",
     {f32_avx2, i16_avx2, i8_avx2},
     {"vfmadd ymm", "vpmaddwd ymm", "vpmaddubsw ymm"},
     read_avx2,
     write_avx2},
    {"avx512",
     {f32_avx512, i16_avx512, i8_avx512},
     {"vfmadd zmm", "vpmaddwd zmm", "vpmaddubsw zmm"},
     read_avx512,
     write_avx512},
    {"vnni",
     {f32_avx512, i16_vnni, i8_vnni, bf16_avx512},
     {"vfmadd zmm", "vpdpwssd zmm", "vpdpbusd zmm", "vdpbf16ps zmm"},
     read_avx512,
     write_avx512},
    {"amx",
     {NULL, NULL, i8_amx, bf16_amx},
     {"", "", "tdpbusd", "tdpbf16ps"},
     read_avx512,
     write_avx512},
};
enum { LEVELS = sizeof levels / sizeof *levels };
#else
typedef struct level {
    const char *name;
    work_fn streams[CEILING_PEAKS];
    const char *instructions[CEILING_PEAKS];
    work_fn read, write;
} level;
static const level levels[] = {{"", {NULL}, {NULL}, NULL, NULL}};
enum { LEVELS = 0 };

static double read_tiles(const void *data, size_t size)
{
    (void)data;
    return (double)size;
}

double ceilings_tile_turn(bool bf16)
{
    (void)bf16;
    return 0;
}
#endif

// Plain C, for what is not in the table.
static double read_plain(const void *data, size_t size)
{
    const uint64_t *p = data;
    uint64_t a = 0;
    for (size_t i = 0; i < size / sizeof *p; i++) a ^= p[i];
    __asm__ volatile("" : : "r"(a));
    return (double)size;
}

static double write_plain(const void *data, size_t size)
{
    memset((void *)(uintptr_t)data, 1, size);
    __asm__ volatile("" : : : "memory");
    return (double)size;
}

// What a level's instructions for bf16 need: not every CPU of the level has them.
static unsigned bf16_flag(const level *l)
{
    return strcmp(l->name, "amx") == 0 ? DGM_CPU_AMX_BF16 : DGM_CPU_AVX512_BF16;
}

// The fastest stream of each kind at the level or below: some narrower instructions are faster.
static void measure_peaks(ceilings *c, const level *l)
{
    const void *seeds = random_numbers();
    for (int i = 0; i < CEILING_PEAKS; i++) {
        c->instruction[i] = "not measured";
        for (const level *k = levels; l && k <= l; k++) {
            if (!k->streams[i] || (i == CEILING_BF16 && !(dgm_cpu_detect() & bf16_flag(k)))) continue;
            const double rate = best_rate(k->streams[i], seeds, 0);
            if (rate < 1.02 * c->peak[i]) continue;
            c->peak[i] = rate;
            c->instruction[i] = k->instructions[i];
        }
    }
}

void ceilings_measure(ceilings *c, const char *name)
{
    const level *l = NULL;
    memset(c, 0, sizeof *c);
    for (int i = 0; i < LEVELS; i++)
        if (strcmp(levels[i].name, name) == 0) l = &levels[i];
    measure_peaks(c, l);
    const size_t most = (size_t)16384 << (CEILING_SIZES - 1), huge = (size_t)2 << 20;
    char *buffer = aligned_alloc(huge, most);
    if (!buffer) {
        fprintf(stderr, "ceilings: out of memory\n");
        exit(1);
    }
    madvise(buffer, most, MADV_HUGEPAGE);
    memset(buffer, 1, most);
    for (int i = 0; i < CEILING_SIZES; i++) {
        const size_t size = (size_t)16384 << i;
        c->size[i] = size;
        c->read[i] = best_rate(l ? l->read : read_plain, buffer, size);
        if (strcmp(name, "amx") == 0) c->tiles[i] = best_rate(read_tiles, buffer, size);
        if (c->tiles[i] > c->read[i]) c->read[i] = c->tiles[i];
        c->write[i] = best_rate(l ? l->write : write_plain, buffer, size);
    }
    free(buffer);
}

double ceilings_read(const ceilings *c, double bytes)
{
    if (bytes <= (double)c->size[0]) return c->read[0];
    for (int i = 1; i < CEILING_SIZES; i++) {
        if (bytes > (double)c->size[i]) continue;
        double at = log2(bytes / (double)c->size[i - 1]);
        return c->read[i - 1] + at * (c->read[i] - c->read[i - 1]);
    }
    return c->read[CEILING_SIZES - 1];
}
