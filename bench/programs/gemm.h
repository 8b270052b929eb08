// SPDX-License-Identifier: MIT
// What the parts of bench/gemm share: the cells, timing, quantiles, memory.
//
// gemm.c has the program and the f32 table, gemm_int*.c the tables of integers and bf16.
#ifndef DGM_BENCH_PROGRAMS_GEMM_H
#define DGM_BENCH_PROGRAMS_GEMM_H

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

#include "kernel/kernels.h"

enum { MAX_ROUNDS = 101, MAX_COPIES = 7 };

static const int sizes_m[] = {1, 2, 4, 6, 8, 16, 32, 64};
static const int sizes_kn[][2] = {{512, 512},   {512, 2048}, {2048, 512},
                                  {1024, 1024}, {256, 1536}, {512, 32000}};
enum {
    SIZES_M = sizeof sizes_m / sizeof sizes_m[0],
    SIZES_KN = sizeof sizes_kn / sizeof sizes_kn[0]
};

typedef struct options {
    const char *csv, *cpu, *m, *kn, *type;
    bool json, quick;
    int rounds;
    double turn; // seconds
} options;

// The types "u8i8", "i16" and "bf16"; true if every cell has what it must have.
bool gemm_int_run(const char *type, const options *o, const dgm_kernels *k, FILE *csv);
void gemm_int_csv_head(FILE *csv);
// One small product by oneDNN's matmul of floats, and of u8 x s8.
void gemm_int_rival_f32(void);
void gemm_int_rival(void);
// Rivals that cannot run here, a bit each (rivals.h).
extern unsigned gemm_rivals_gone;

static inline double cpu_time(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static inline int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The quantile q of n numbers; sorts them.
static inline double quantile(double *x, int n, double q)
{
    qsort(x, (size_t)n, sizeof *x, by_value);
    const double at = q * (n - 1);
    const int i = (int)at;
    return i + 1 < n ? x[i] + (at - i) * (x[i + 1] - x[i]) : x[i];
}

// Huge pages, the same for every contender.
static inline void *allocate(size_t bytes)
{
    const size_t huge = (size_t)2 << 20;
    void *p = aligned_alloc(huge, (bytes + huge - 1) / huge * huge);
    if (p == NULL) {
        fprintf(stderr, "gemm: out of memory\n");
        exit(1);
    }
    madvise(p, (bytes + huge - 1) / huge * huge, MADV_HUGEPAGE);
    return p;
}

// A comma-separated list, NULL for everything.
static inline bool is_wanted(const char *list, int value)
{
    if (list == NULL) return true;
    while (*list) {
        char *end;
        if (strtol(list, &end, 10) == value) return true;
        if (end == list) return false;
        list = *end == ',' ? end + 1 : end;
    }
    return false;
}

#endif
