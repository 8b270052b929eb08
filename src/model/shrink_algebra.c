// SPDX-License-Identifier: MIT
// Dense linear algebra for shrinking: inverses by Cholesky's factors, and the best product of low
// rank in place of a product of two layers.
//
//   P = X Y^T, X [rows, d], Y [other, d], d the width between two linear layers. With the factors
//   X^T X = L L^T and Y^T Y = M M^T the singular values of P are those of the small matrix
//   S = L^T M [d, d], and X' = X L^-T U_k, Y' = Y M^-T V_k s_k is the best P of rank k.
//
// S = U s V^T comes from one-sided Jacobi rotations: simple, accurate, O(d^3) a sweep. A little is
// added to the diagonals, so that layers with fewer independent columns than d have factors, too.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "model/rnn_net.h"

enum { SWEEPS = 30 };

// a = L L^T, L in the lower half. False: not positive.
static bool factor(double *a, int n)
{
    for (int j = 0; j < n; j++) {
        double *row_j = a + (size_t)j * (size_t)n;
        double sum = row_j[j];
        for (int k = 0; k < j; k++) sum -= row_j[k] * row_j[k];
        if (!(sum > 0)) return false;
        const double diagonal = row_j[j] = sqrt(sum);
        for (int i = j + 1; i < n; i++) {
            double *row_i = a + (size_t)i * (size_t)n;
            double s = row_i[j];
            for (int k = 0; k < j; k++) s -= row_i[k] * row_j[k];
            row_i[j] = s / diagonal;
        }
    }
    return true;
}

// Lower triangle becomes its inverse, row by row; row [n] is scratch.
static void invert_lower(double *l, int n, double *row)
{
    for (int i = 0; i < n; i++) {
        double *mine = l + (size_t)i * (size_t)n;
        for (int j = 0; j < i; j++) row[j] = 0;
        for (int k = 0; k < i; k++) {
            const double *above = l + (size_t)k * (size_t)n, v = mine[k];
            for (int j = 0; j <= k; j++) row[j] -= v * above[j];
        }
        const double inverse = 1.0 / mine[i];
        for (int j = 0; j < i; j++) mine[j] = row[j] * inverse;
        mine[i] = inverse;
    }
}

bool dgm_algebra_invert(double *a, double *out, int n)
{
    const size_t width = (size_t)n;
    if (!factor(a, n)) return false;
    invert_lower(a, n, out);
    // A^-1 = L^-T L^-1: the sum of the outer products of the rows of L^-1.
    memset(out, 0, width * width * sizeof *out);
    for (int k = 0; k < n; k++) {
        const double *row = a + (size_t)k * width;
        for (int i = 0; i <= k; i++) {
            double *to = out + (size_t)i * width;
            for (int j = 0; j <= i; j++) to[j] += row[i] * row[j];
        }
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j < i; j++)
            out[(size_t)j * width + (size_t)i] = out[(size_t)i * width + (size_t)j];
    return true;
}

// g [d, d] = x^T x with a little on the diagonal.
static void gram(const float *x, int rows, int d, double *g)
{
    memset(g, 0, (size_t)d * (size_t)d * sizeof *g);
    for (int r = 0; r < rows; r++) {
        const float *row = x + (size_t)r * (size_t)d;
        for (int i = 0; i < d; i++) {
            const double v = (double)row[i];
            double *to = g + (size_t)i * (size_t)d;
            for (int j = 0; j <= i; j++) to[j] += v * (double)row[j];
        }
    }
    double trace = 0;
    for (int i = 0; i < d; i++) trace += g[(size_t)i * (size_t)d + (size_t)i];
    for (int i = 0; i < d; i++) g[(size_t)i * (size_t)d + (size_t)i] += 1e-10 * trace / d + 1e-30;
}

// Columns of s and v (both stored column by column, [d][d]) are rotated until those of s are
// orthogonal: s = U diag, v = V.
static void rotate(double *s, double *v, int d)
{
    for (int i = 0; i < d; i++)
        for (int j = 0; j < d; j++) v[(size_t)i * (size_t)d + (size_t)j] = i == j;
    for (int sweep = 0; sweep < SWEEPS; sweep++) {
        bool any = false;
        for (int p = 0; p < d; p++)
            for (int q = p + 1; q < d; q++) {
                double *x = s + (size_t)p * (size_t)d, *y = s + (size_t)q * (size_t)d;
                double a = 0, b = 0, c = 0;
                for (int i = 0; i < d; i++) a += x[i] * x[i], b += y[i] * y[i], c += x[i] * y[i];
                if (fabs(c) <= 1e-12 * sqrt(a * b) || c == 0) continue;
                any = true;
                const double t = (b - a) / (2 * c);
                const double tan = (t >= 0 ? 1 : -1) / (fabs(t) + sqrt(1 + t * t));
                const double cos = 1 / sqrt(1 + tan * tan), sin = cos * tan;
                double *vx = v + (size_t)p * (size_t)d, *vy = v + (size_t)q * (size_t)d;
                for (int i = 0; i < d; i++) {
                    const double xi = x[i], vi = vx[i];
                    x[i] = cos * xi - sin * y[i];
                    y[i] = sin * xi + cos * y[i];
                    vx[i] = cos * vi - sin * vy[i];
                    vy[i] = sin * vi + cos * vy[i];
                }
            }
        if (!any) return;
    }
}

// out [rows, k] = x [rows, d] L^-T [d, d] (columns `order` of u, each times its scale).
static void project(const float *x, int rows, int d, const double *inverse, const double *u,
                    const int *order, const double *scale, int k, double *basis, float *out)
{
    const size_t width = (size_t)k;
    memset(basis, 0, (size_t)d * width * sizeof *basis);
    double *sum = basis + (size_t)d * width; // [k]
    for (int j = 0; j < d; j++) {
        for (int c = 0; c < k; c++) sum[c] = u[(size_t)order[c] * (size_t)d + (size_t)j] * scale[c];
        for (int i = 0; i <= j; i++) { // L^-T[i, j] = L^-1[j, i]
            const double v = inverse[(size_t)j * (size_t)d + (size_t)i];
            double *to = basis + (size_t)i * width;
            for (int c = 0; c < k; c++) to[c] += v * sum[c];
        }
    }
    for (int r = 0; r < rows; r++) {
        const float *row = x + (size_t)r * (size_t)d;
        for (int c = 0; c < k; c++) sum[c] = 0;
        for (int i = 0; i < d; i++) {
            const double v = (double)row[i], *from = basis + (size_t)i * width;
            for (int c = 0; c < k; c++) sum[c] += v * from[c];
        }
        for (int c = 0; c < k; c++) out[(size_t)r * width + (size_t)c] = (float)sum[c];
    }
}

// Columns of s by falling norm; norms become lengths and columns unit vectors.
static void order_columns(double *s, int d, int *order, double *length)
{
    for (int i = 0; i < d; i++) {
        double sum = 0;
        for (int j = 0; j < d; j++)
            sum += s[(size_t)i * (size_t)d + (size_t)j] * s[(size_t)i * (size_t)d + (size_t)j];
        length[i] = sqrt(sum);
        for (int j = 0; length[i] > 0 && j < d; j++)
            s[(size_t)i * (size_t)d + (size_t)j] /= length[i];
        int at = i;
        for (; at > 0 && length[order[at - 1]] < length[i]; at--) order[at] = order[at - 1];
        order[at] = i;
    }
}

typedef struct reduction {
    double *left, *right; // [d, d] factors, then their inverses
    double *s, *v, *basis;
    int *order;
    double *length, *scale;
} reduction;

static dgm_status reduce(const float *left, int rows, const float *right, int other, int d, int k,
                         float *new_left, float *new_right, reduction *w, dgm_error *err)
{
    const size_t n = (size_t)d;
    gram(left, rows, d, w->left);
    gram(right, other, d, w->right);
    DGM_FAIL_IF(!factor(w->left, d) || !factor(w->right, d), err, DGM_ERR_FORMAT,
                "weights that are not finite numbers");
    // Column q of S = L^T M: S[p, q] = sum over i of L[i, p] M[i, q], both lower triangles.
    memset(w->s, 0, n * n * sizeof *w->s);
    for (int i = 0; i < d; i++)
        for (int q = 0; q <= i; q++) {
            const double v = w->right[(size_t)i * n + (size_t)q], *row = w->left + (size_t)i * n;
            double *to = w->s + (size_t)q * n;
            for (int p = 0; p <= i; p++) to[p] += v * row[p];
        }
    rotate(w->s, w->v, d);
    order_columns(w->s, d, w->order, w->length);
    invert_lower(w->left, d, w->basis);
    invert_lower(w->right, d, w->basis);
    for (int c = 0; c < k; c++) w->scale[c] = 1.0;
    project(left, rows, d, w->left, w->s, w->order, w->scale, k, w->basis, new_left);
    for (int c = 0; c < k; c++) w->scale[c] = w->length[w->order[c]];
    project(right, other, d, w->right, w->v, w->order, w->scale, k, w->basis, new_right);
    return DGM_OK;
}

dgm_status dgm_algebra_reduce(const float *left, int rows, const float *right, int other, int d,
                              int k, float *new_left, float *new_right, dgm_error *err)
{
    const size_t square = (size_t)d * (size_t)d;
    reduction w = {.left = dgm_malloc(square * sizeof(double)),
                   .right = dgm_malloc(square * sizeof(double)),
                   .s = dgm_malloc(square * sizeof(double)),
                   .v = dgm_malloc(square * sizeof(double)),
                   .basis = dgm_malloc(((size_t)d + 1) * (size_t)k * sizeof(double) +
                                       (size_t)d * sizeof(double)),
                   .order = dgm_malloc((size_t)d * sizeof(int)),
                   .length = dgm_malloc((size_t)d * sizeof(double)),
                   .scale = dgm_malloc((size_t)k * sizeof(double))};
    const bool fine = w.left && w.right && w.s && w.v && w.basis && w.order && w.length && w.scale;
    const dgm_status st = fine
                              ? reduce(left, rows, right, other, d, k, new_left, new_right, &w, err)
                              : dgm_no_memory(err);
    void *const all[] = {w.left, w.right, w.s, w.v, w.basis, w.order, w.length, w.scale};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) dgm_free(all[i]);
    return st;
}
