// SPDX-License-Identifier: MIT
// Checks of norms: bits against the C reference, which walks over one row at a time here; the reference against
// formulas in double precision; bytes and sums against the kernels that make them alone.
#include <math.h>
#include <string.h>

#include "checkkernel/checkkernel.h"

enum { X, Y, WANT, GAMMA, BETA, ADD, Q, Q_WANT, SCALE };
enum { MOST_ROWS = 9, GAP = 3 }; // two times four rows and one; floats between rows

typedef struct norm_case {
    int n, rows;
    ck_kind kind;
    bool rms, in_place;
    float given;
    dgm_norm_args a;
} norm_case;

static float *rows_of(ck *c, int slot, const norm_case *t, ck_kind kind)
{
    const size_t floats = (size_t)t->rows * (size_t)(t->n + GAP) - GAP;
    float *x = ck_floats(c, slot, floats);
    ck_fill(c, x, floats, kind);
    return x;
}

static void set_up(ck *c, norm_case *t)
{
    const size_t n = (size_t)t->n, depth = (size_t)dgm_gemm_i8_depth(t->n);
    float *gamma = ck_floats(c, GAMMA, n), *beta = ck_floats(c, BETA, n);
    ck_fill(c, gamma, n, CK_UNIT);
    ck_fill(c, beta, n, CK_UNIT);
    t->a = (dgm_norm_args){.x = rows_of(c, X, t, t->kind),
                           .y = rows_of(c, Y, t, CK_UNIT),
                           .gamma = gamma,
                           .beta = !t->rms && ck_below(c, 3) ? beta : NULL,
                           .add = ck_below(c, 2) ? rows_of(c, ADD, t, CK_UNIT) : NULL,
                           .q = ck_below(c, 4) ? ck_bytes(c, Q, depth * (size_t)t->rows, 1) : NULL,
                           .scale = ck_floats(c, SCALE, (size_t)t->rows),
                           .given_scale = t->given,
                           .rows = t->rows,
                           .n = t->n,
                           .ldy = t->n + GAP,
                           .ldx = t->n + GAP,
                           .ld_add = t->n + GAP,
                           .ldq = (int)depth,
                           .eps = 1e-5f,
                           .rms = t->rms};
    if (t->in_place) {
        memcpy(t->a.y, t->a.x, ((size_t)t->rows * (n + GAP) - GAP) * sizeof(float));
        t->a.x = t->a.y;
    }
}

// Row r: by the reference, alone, without bytes; then its bytes.
static bool check_row(ck *c, const norm_case *t, const float *x, int r)
{
    const size_t n = (size_t)t->n, at = (size_t)r * (n + GAP), depth = (size_t)dgm_gemm_i8_depth(t->n);
    float *want = ck_floats(c, WANT, n), scale = t->given;
    dgm_norm_args one = t->a;
    one.x = x;
    one.y = want;
    one.add = NULL;
    one.q = NULL;
    one.rows = 1;
    memcpy(want, x, n * sizeof *want);
    if (t->a.add) c->ref->add_f32(want, x, t->a.add + at, t->n);
    one.x = want;
    c->ref->norm_rows(&one);
    if (!ck_same(c, "y", t->a.y + at, want, n)) return false;
    if (!t->a.q) return true;
    uint8_t *q = ck_bytes(c, Q_WANT, depth, 1);
    if (t->given > 0)
        c->ref->quantize_i8_static(q, want, t->n, t->given);
    else
        c->ref->quantize_i8(q, &scale, want, t->n);
    if (!ck_same(c, "scale", &t->a.scale[r], &scale, 1)) return false;
    for (size_t i = 0; i < depth; i++)
        if (t->a.q[(size_t)r * depth + i] != q[i])
            return ck_fail(c, "row %d: q[%zu] is %d, expected %d", r, i, t->a.q[(size_t)r * depth + i], q[i]);
    return true;
}

// The formula, for rows of ordinary numbers.
static void oracle(ck *c, const norm_case *t, const float *x, int r)
{
    const size_t at = (size_t)r * (size_t)(t->n + GAP);
    const float *y = t->a.y + at, *add = t->a.add ? t->a.add + at : NULL;
    double mean = 0, squares = 0;
    for (int i = 0; i < t->n && !t->rms; i++) mean += (double)(x[i] + (add ? add[i] : 0.0f)) / t->n;
    for (int i = 0; i < t->n; i++) {
        const double d = (double)(x[i] + (add ? add[i] : 0.0f)) - mean;
        squares += d * d / t->n;
    }
    for (int i = 0; i < t->n && !c->failed; i++) {
        const double d = (double)(x[i] + (add ? add[i] : 0.0f)) - mean;
        const double want = d / sqrt(squares + 1e-5) * t->a.gamma[i] + (t->a.beta ? t->a.beta[i] : 0);
        ck_near(c, "y", y[i], want, 2e-5, 1e-5);
    }
}

static void run_case(ck *c, norm_case *t)
{
    static float before[MOST_ROWS * 8192]; // the longest of ck_sizes is shorter
    ck_begin(c, "n %d, %d rows, data kind %d, %s%s, scale %g", t->n, t->rows, t->kind, t->rms ? "rms" : "layer",
             t->in_place ? " in place" : "", (double)t->given);
    set_up(c, t);
    const size_t n = (size_t)t->n;
    for (size_t r = 0; r < (size_t)t->rows; r++)
        memcpy(before + r * n, t->a.x + r * (n + GAP), n * sizeof *before);
    c->now->norm_rows(&t->a);
    for (int r = 0; r < t->rows && !c->failed; r++) {
        const float *x = before + (size_t)r * n;
        if (!check_row(c, t, x, r)) return;
        if (c->is_reference && (t->kind == CK_UNIT || t->kind == CK_WIDE)) oracle(c, t, x, r);
    }
    if (!c->failed) ck_guards(c);
}

void check_norm_rows(ck *c)
{
    static const float given[] = {0.0f, 0.01f, 0.0f, 0.001f};
    for (int s = 0; ck_sizes[s] && !c->failed; s++)
        for (int kind = 0; kind < CK_KINDS && !c->failed; kind++)
            for (int how = 0; how < 4 && !c->failed; how++) {
                norm_case t = {.n = ck_sizes[s],
                               .rows = 1 + ck_below(c, MOST_ROWS),
                               .kind = (ck_kind)kind,
                               .rms = how & 1,
                               .in_place = how & 2,
                               .given = given[ck_below(c, 4)]};
                run_case(c, &t);
            }
    ck_begin(c, "benchmark");
    dgm_norm_args a = {.x = ck_aligned(c, X, 8 * 528),
                       .y = ck_aligned(c, Y, 8 * 528),
                       .gamma = ck_aligned(c, GAMMA, 512),
                       .beta = ck_aligned(c, BETA, 512),
                       .scale = ck_aligned(c, SCALE, 8),
                       .rows = 8,
                       .n = 512,
                       .ldy = 528,
                       .ldx = 528,
                       .ldq = 576,
                       .eps = 1e-5f};
    for (ck_bench_begin(c, "8 rows, n = 512"); ck_bench_next(c);) c->now->norm_rows(&a);
    a.q = ck_bytes(c, Q, 8 * 576, 64);
    for (ck_bench_begin(c, "8 rows, n = 512, bytes"); ck_bench_next(c);) c->now->norm_rows(&a);
    a.rms = true;
    for (ck_bench_begin(c, "8 rows, n = 512, rms, bytes"); ck_bench_next(c);) c->now->norm_rows(&a);
}
