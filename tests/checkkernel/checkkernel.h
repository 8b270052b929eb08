// SPDX-License-Identifier: MIT
// Harness of checkkernel: one binary that holds every kernel of every ISA against the C reference.
//
// A family's file (check_rows.c, ...) defines void check_<field>(ck *c) for each line of
// kernel/kernels.inc; the harness calls it once per ISA with c->ref (the C table) and c->now (the
// table of this ISA). Memory comes from ck_take: every block ends at a page that cannot be touched
// (over-reads fault) or is followed by guard bytes, in turn, and has guard bytes before it. Signals
// are caught and attributed. Every number derives from the seed that a failure prints.
#ifndef DGM_TESTS_CHECKKERNEL_CHECKKERNEL_H
#define DGM_TESTS_CHECKKERNEL_CHECKKERNEL_H

#include <stdbool.h>
#include <stdint.h>

#include "base/clock.h"
#include "kernel/kernels.h"

typedef struct ck {
    const dgm_kernels *ref; // the C reference
    const dgm_kernels *now; // what is being checked
    const char *kernel, *isa;
    bool is_reference; // this level is "c": the oracles in double precision run here
    dgm_rng rng;
    char where[128]; // sizes of the call under way, for messages
    bool failed;
    bool bench;
} ck;

// One per kernel of the table; a missing one is a link error.
#define DGM_KERNEL(field, family) void check_##field(ck *c);
#include "kernel/kernels.inc"
#undef DGM_KERNEL

// soft/: the products of AMX on tiles in software.
void ck_soft_gemm_i8(dgm_kernels *k);
void ck_soft_gemm_bf16(dgm_kernels *k);
// How many products of bytes these tiles have made so far.
unsigned ck_soft_products_i8(void);

// What random rows look like.
typedef enum ck_kind {
    CK_UNIT,     // [-1, 1]
    CK_WIDE,     // [-40, 40]
    CK_DENORMAL, // denormals and zeros of both signs
    CK_SPECIAL,  // ordinary numbers with -inf, +inf, NaN, +-0, huge and tiny ones among them
    CK_MASKED,   // ordinary numbers and -inf
    CK_KINDS
} ck_kind;

// Sizes that every row kernel runs: 1 .. 70 and some large ones. Ends with 0.
extern const int ck_sizes[];

// A block of n floats (or bytes) for this iteration; slot 0 .. CK_SLOTS - 1. Its content is
// 0xa5 bytes. ck_guards looks at the surroundings of every block taken since ck_begin.
enum { CK_SLOTS = 12 };
void ck_begin(ck *c, const char *fmt, ...) DGM_PRINTF(2, 3); // what runs now; forgets all blocks
float *ck_floats(ck *c, int slot, size_t n);
void *ck_bytes(ck *c, int slot, size_t n, size_t align);
bool ck_guards(ck *c);
// For benchmarks: n floats in [-1, 1], 64-byte aligned as an arena gives them.
float *ck_aligned(ck *c, int slot, size_t n);

void ck_fill(ck *c, float *x, size_t n, ck_kind kind);
int ck_below(ck *c, int n);
float ck_uniform(ck *c, float low, float high);

// Reports (the first failure of a kernel only) and marks it; always returns false.
bool ck_fail(ck *c, const char *fmt, ...) DGM_PRINTF(2, 3);

// Bit by bit; any NaN equals any NaN.
bool ck_same(ck *c, const char *what, const float *got, const float *want, size_t n);
// Attention weights: n of every dgm_attend_stride(n) floats.
bool ck_same_weights(ck *c, const float *got, const float *want, int heads, int n);
bool ck_same_int(ck *c, const char *what, const int32_t *got, const int32_t *want, size_t n);
// |got - want| <= absolute + relative * |want|; both NaN or both the same infinity pass.
bool ck_near(ck *c, const char *what, double got, double want, double absolute, double relative);

// for (ck_bench_begin(c, "n = 512"); ck_bench_next(c);) call(); prints nanoseconds per call when
// benchmarks were asked for and runs nothing otherwise.
void ck_bench_begin(ck *c, const char *label);
bool ck_bench_next(ck *c);

#endif
