// SPDX-License-Identifier: MIT
// Dense linear algebra for shrinking: inverses by Cholesky's factors, and the best product of low
// rank in place of a product of two layers.
//
//   P = X Y^T, X [rows, d], Y [other, d], d the width between two linear layers. With the factors
//   X^T X = L L^T and Y^T Y = M M^T the singular values of P are those of the small matrix
//   S = L^T M [d, d], and X' = X L^-T U_k, Y' = Y M^-T V_k s_k is the best P of rank k.
//
// V are the eigenvectors of S^T S (Householder's reflections to a tridiagonal matrix, then QL steps
// with implicit shifts: a few d^3 in all), and U_k s_k = S V_k: the product is as exact as V.
// Squaring loses singular values below 1e-8 of the largest, which weights in floats cannot tell
// from nothing. A little is added to the diagonals, so that layers with fewer independent columns
// than d have factors, too.
//
// Rows of tables of words are weighted by how often words are seen, so that the error is small
// where it matters (weights D change the factor L, not the form of X'). No text is needed for that:
// ids follow falling frequency, which Zipf's law knows, 1 / (rank + 100).
//
// Tables have tens of thousands of rows: sums over them go by blocks of rows and tiles of columns
// that stay in the cache, and a tile's length is a constant, so that compilers make vectors of it.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "shrink/rnn_net.h"

enum { TILE = 64, BLOCK = 32, STEPS_MAX = 60, ZIPF = 100 };
#define TINY 1e-8 // singular values below this share of the largest are none

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

double dgm_algebra_dot(const float *x, const float *y, int n)
{
    enum { LANES = 8 };
    double sum[LANES] = {0}, all = 0;
    int i = 0;
    for (; i + LANES <= n; i += LANES)
        for (int k = 0; k < LANES; k++) sum[k] += (double)x[i + k] * (double)y[i + k];
    for (; i < n; i++) all += (double)x[i] * (double)y[i];
    for (int k = 0; k < LANES; k++) all += sum[k];
    return all;
}

// ---- sums over the rows of a table -------------------------------------------------------------

// g [d, d] += x^T x of a block of rows, each times its weight; the lower half and what else its
// tiles hold.
static void gram_block(const float *x, const double *weight, int rows, int d, double *g)
{
    for (int i = 0; i < d; i++)
        for (int begin = 0; begin <= i; begin += TILE) {
            double *to = g + (size_t)i * (size_t)d + begin;
            const int wide = d - begin < TILE ? d - begin : TILE;
            for (int r = 0; r < rows; r++) {
                const float *row = x + (size_t)r * (size_t)d;
                const double v = weight[r] * (double)row[i];
                if (wide == TILE)
                    for (int c = 0; c < TILE; c++) to[c] += v * (double)row[begin + c];
                else
                    for (int c = 0; c < wide; c++) to[c] += v * (double)row[begin + c];
            }
        }
}

// g [d, d] = x^T x with a little on the diagonal. words: row r is a word's, the r-th most frequent,
// and counts as often as it is seen.
static void gram(const float *x, int rows, int d, bool words, double *g)
{
    memset(g, 0, (size_t)d * (size_t)d * sizeof *g);
    for (int r = 0; r < rows; r += BLOCK) {
        double weight[BLOCK];
        for (int k = 0; k < BLOCK; k++) weight[k] = words ? 1.0 / (r + k + ZIPF) : 1.0;
        gram_block(x + (size_t)r * (size_t)d, weight, rows - r < BLOCK ? rows - r : BLOCK, d, g);
    }
    double trace = 0;
    for (int i = 0; i < d; i++) trace += g[(size_t)i * (size_t)d + (size_t)i];
    for (int i = 0; i < d; i++) g[(size_t)i * (size_t)d + (size_t)i] += 1e-10 * trace / d + 1e-30;
}

// Columns begin .. begin + TILE - 1 of out [rows, k] = x [rows, d] basis [d, k], a block of rows.
static void project_block(const float *x, int rows, int d, const double *basis, int k, int begin,
                          float *out)
{
    double sum[BLOCK][TILE];
    const int wide = k - begin < TILE ? k - begin : TILE;
    memset(sum, 0, sizeof sum);
    for (int i = 0; i < d; i++) {
        const double *from = basis + (size_t)i * (size_t)k + begin;
        for (int r = 0; r < rows; r++) {
            const double v = (double)x[(size_t)r * (size_t)d + (size_t)i];
            if (wide == TILE)
                for (int c = 0; c < TILE; c++) sum[r][c] += v * from[c];
            else
                for (int c = 0; c < wide; c++) sum[r][c] += v * from[c];
        }
    }
    for (int r = 0; r < rows; r++)
        for (int c = 0; c < wide; c++)
            out[(size_t)r * (size_t)k + (size_t)(begin + c)] = (float)sum[r][c];
}

// out [rows, k] = x [rows, d] L^-T [d, d] u^T, u [k, d]. basis [d, k] and column [k] are scratch.
static void project(const float *x, int rows, int d, const double *inverse, const double *u, int k,
                    double *basis, double *column, float *out)
{
    const size_t width = (size_t)k;
    memset(basis, 0, (size_t)d * width * sizeof *basis);
    for (int j = 0; j < d; j++) {
        for (int c = 0; c < k; c++) column[c] = u[(size_t)c * (size_t)d + (size_t)j];
        for (int i = 0; i <= j; i++) { // L^-T[i, j] = L^-1[j, i]
            const double v = inverse[(size_t)j * (size_t)d + (size_t)i];
            double *to = basis + (size_t)i * width;
            for (int c = 0; c < k; c++) to[c] += v * column[c];
        }
    }
    for (int begin = 0; begin < k; begin += TILE)
        for (int r = 0; r < rows; r += BLOCK) {
            const int some = rows - r < BLOCK ? rows - r : BLOCK;
            project_block(x + (size_t)r * (size_t)d, some, d, basis, k, begin,
                          out + (size_t)r * width);
        }
}

// ---- eigenvectors ------------------------------------------------------------------------------

// One reflection: the vector x [i] (what is left of a row) becomes (0, .., 0, *edge). Columns 0 ..
// i - 1 of the matrix, the rows of w, are reflected from both sides; y [i] is scratch. Row i of w
// gets the vector. Returns half its square, by which reflections are divided.
static double reflect(double *w, int n, int i, double *x, double *y, double scale, double *edge)
{
    double half = 0, along = 0;
    for (int k = 0; k < i; k++) {
        x[k] /= scale;
        half += x[k] * x[k];
        y[k] = 0;
    }
    const double last = x[i - 1], length = last > 0 ? -sqrt(half) : sqrt(half);
    *edge = scale * length;
    half -= last * length;
    x[i - 1] = last - length;
    for (int j = 0; j < i; j++) { // y = A x / half
        const double *column = w + (size_t)j * (size_t)n, v = x[j];
        double sum = y[j] + column[j] * v;
        for (int k = j + 1; k < i; k++) {
            sum += column[k] * x[k];
            y[k] += column[k] * v;
        }
        y[j] = sum;
        w[(size_t)i * (size_t)n + (size_t)j] = v;
    }
    for (int j = 0; j < i; j++) {
        y[j] /= half;
        along += y[j] * x[j];
    }
    for (int j = 0; j < i; j++) y[j] -= along / (2 * half) * x[j];
    for (int j = 0; j < i; j++) {
        double *column = w + (size_t)j * (size_t)n;
        for (int k = j; k < i; k++) column[k] -= x[j] * y[k] + y[j] * x[k];
        x[j] = column[i - 1];
        column[i] = 0;
    }
    return half;
}

// w [n, n], symmetric, becomes the vectors, one a row, in which it is tridiagonal: diagonal d [n],
// beside it e [n], e[i] between i - 1 and i.
static void tridiagonal(double *w, int n, double *d, double *e)
{
    const size_t width = (size_t)n;
    for (int j = 0; j < n; j++) d[j] = w[(size_t)j * width + width - 1];
    for (int i = n - 1; i > 0; i--) {
        double scale = 0, half = 0;
        for (int k = 0; k < i; k++) scale += fabs(d[k]);
        if (scale > 0) {
            half = reflect(w, n, i, d, e, scale, &e[i]);
        } else {
            e[i] = d[i - 1];
            for (int j = 0; j < i; j++) {
                d[j] = w[(size_t)j * width + (size_t)i - 1];
                w[(size_t)j * width + (size_t)i] = w[(size_t)i * width + (size_t)j] = 0;
            }
        }
        d[i] = half;
    }
    for (int i = 0; i + 1 < n; i++) { // the reflections, multiplied
        double *next = w + (size_t)(i + 1) * width;
        w[(size_t)i * width + width - 1] = w[(size_t)i * width + (size_t)i];
        w[(size_t)i * width + (size_t)i] = 1;
        const double half = d[i + 1];
        for (int j = 0; half != 0 && j <= i; j++) {
            double *column = w + (size_t)j * width, sum = 0;
            for (int k = 0; k <= i; k++) sum += next[k] * column[k];
            for (int k = 0; k <= i; k++) column[k] -= sum * (next[k] / half);
        }
        for (int k = 0; k <= i; k++) next[k] = 0;
    }
    for (int j = 0; j < n; j++) {
        d[j] = w[(size_t)j * width + width - 1];
        w[(size_t)j * width + width - 1] = j == n - 1;
    }
    e[0] = 0;
}

static void rotate_rows(double *x, double *y, int n, double c, double s)
{
    for (int k = 0; k < n; k++) {
        const double v = y[k];
        y[k] = s * x[k] + c * v;
        x[k] = c * x[k] - s * v;
    }
}

// One QL step on rows l .. m with the shift of the first 2 x 2 corner; e[i] is between i and i + 1.
static void ql_step(double *w, int n, double *d, double *e, int l, int m)
{
    const double p = (d[l + 1] - d[l]) / (2 * e[l]);
    double g = d[m] - d[l] + e[l] / (p + copysign(hypot(p, 1), p));
    double s = 1, c = 1, carried = 0;
    for (int i = m - 1; i >= l; i--) {
        const double f = s * e[i], b = c * e[i], r = hypot(f, g);
        e[i + 1] = r;
        if (r == 0) { // the matrix falls apart here
            d[i + 1] -= carried;
            e[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - carried;
        const double t = (d[i] - g) * s + 2 * c * b;
        carried = s * t;
        d[i + 1] = g + carried;
        g = c * t - b;
        rotate_rows(w + (size_t)i * (size_t)n, w + (size_t)(i + 1) * (size_t)n, n, c, s);
    }
    d[l] -= carried;
    e[l] = g;
    e[m] = 0;
}

// w [n, n], symmetric, becomes its eigenvectors, one a row, with values d [n]; e [n] is scratch.
static void eigen(double *w, int n, double *d, double *e)
{
    tridiagonal(w, n, d, e);
    double most = 0;
    for (int i = 0; i < n; i++) most = fmax(most, fabs(d[i]));
    for (int i = 1; i < n; i++) e[i - 1] = e[i];
    e[n - 1] = 0;
    for (int l = 0; l < n; l++)
        for (int step = 0; step < STEPS_MAX; step++) {
            int m = l;
            while (m + 1 < n && fabs(e[m]) > 1e-16 * (fabs(d[m]) + fabs(d[m + 1]) + most / 8)) m++;
            if (m == l) break;
            ql_step(w, n, d, e, l, m);
        }
}

// ---- two layers --------------------------------------------------------------------------------

typedef struct reduction {
    double *left, *right; // [d, d] factors, then their inverses
    double *s, *v;        // [d, d] S by columns, its right vectors by rows
    double *u, *basis;    // [k, d] and [d, k]
    double *value, *off;  // [d]
    int *order;           // [d] by falling value
} reduction;

// Column q of S = L^T M: S[p, q] = sum over i of L[i, p] M[i, q], both lower triangles; then S^T S.
static void multiply(reduction *w, int d)
{
    const size_t n = (size_t)d;
    memset(w->s, 0, n * n * sizeof *w->s);
    for (int i = 0; i < d; i++)
        for (int q = 0; q <= i; q++) {
            const double v = w->right[(size_t)i * n + (size_t)q], *row = w->left + (size_t)i * n;
            double *to = w->s + (size_t)q * n;
            for (int p = 0; p <= i; p++) to[p] += v * row[p];
        }
    for (int p = 0; p < d; p++)
        for (int q = 0; q <= p; q++) {
            const double *x = w->s + (size_t)p * n, *y = w->s + (size_t)q * n;
            double sum[4] = {0, 0, 0, 0};
            int i = 0;
            for (; i + 4 <= d; i += 4)
                for (int j = 0; j < 4; j++) sum[j] += x[i + j] * y[i + j];
            for (; i < d; i++) sum[0] += x[i] * y[i];
            w->v[(size_t)p * n + (size_t)q] = w->v[(size_t)q * n + (size_t)p] =
                sum[0] + sum[1] + sum[2] + sum[3];
        }
}

// u [k, d]: the left vectors S v / s, or the right ones times s. Where s is nothing, so are they.
static void take_vectors(reduction *w, int d, int k, bool left)
{
    const size_t n = (size_t)d;
    const double most = sqrt(fmax(w->value[w->order[0]], 0));
    memset(w->u, 0, (size_t)k * n * sizeof *w->u);
    for (int c = 0; c < k; c++) {
        const double s = sqrt(fmax(w->value[w->order[c]], 0)), *v = w->v + (size_t)w->order[c] * n;
        double *to = w->u + (size_t)c * n;
        if (!(s > TINY * most)) continue;
        if (!left) {
            for (int j = 0; j < d; j++) to[j] = v[j] * s;
            continue;
        }
        for (int q = 0; q < d; q++) {
            const double x = v[q] / s, *column = w->s + (size_t)q * n;
            for (int p = 0; p < d; p++) to[p] += x * column[p];
        }
    }
}

static dgm_status reduce(const float *left, int rows, const float *right, int other, int d, int k,
                         float *new_left, float *new_right, reduction *w, dgm_error *err)
{
    gram(left, rows, d, true, w->left);
    gram(right, other, d, false, w->right);
    DGM_FAIL_IF(!factor(w->left, d) || !factor(w->right, d), err, DGM_ERR_FORMAT,
                "weights that are not finite numbers");
    multiply(w, d);
    eigen(w->v, d, w->value, w->off);
    for (int i = 0; i < d; i++) {
        int at = i;
        DGM_INSERT(w->order, at, i, w->value[w->order[at - 1]] < w->value[i]);
    }
    invert_lower(w->left, d, w->off);
    invert_lower(w->right, d, w->off);
    take_vectors(w, d, k, true);
    project(left, rows, d, w->left, w->u, k, w->basis, w->off, new_left);
    take_vectors(w, d, k, false);
    project(right, other, d, w->right, w->u, k, w->basis, w->off, new_right);
    return DGM_OK;
}

dgm_status dgm_algebra_reduce(const float *left, int rows, const float *right, int other, int d,
                              int k, float *new_left, float *new_right, dgm_error *err)
{
    const size_t n = (size_t)d, some = n * (size_t)k;
    reduction w = {.left = dgm_malloc(n * n * sizeof(double)),
                   .right = dgm_malloc(n * n * sizeof(double)),
                   .s = dgm_malloc(n * n * sizeof(double)),
                   .v = dgm_malloc(n * n * sizeof(double)),
                   .u = dgm_malloc(some * sizeof(double)),
                   .basis = dgm_malloc(some * sizeof(double)),
                   .value = dgm_malloc(n * sizeof(double)),
                   .off = dgm_malloc(n * sizeof(double)),
                   .order = dgm_malloc(n * sizeof(int))};
    const bool fine =
        w.left && w.right && w.s && w.v && w.u && w.basis && w.value && w.off && w.order;
    const dgm_status st = fine
                              ? reduce(left, rows, right, other, d, k, new_left, new_right, &w, err)
                              : dgm_no_memory(err);
    void *const all[] = {w.left, w.right, w.s, w.v, w.u, w.basis, w.value, w.off, w.order};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) dgm_free(all[i]);
    return st;
}
