// SPDX-License-Identifier: MIT
// bench/gemm, narrow types: u8 x i8, i16 and bf16 against f32, oneDNN's integers and the machine's
// bounds.
//
// One cell is C[m, n] = A[m, k] . W^T with weights packed once and rows quantised before. Ours has
// its whole epilogue (a scale per row and per column, bias). The f32 rivals are plain products:
// sgemm of OpenBLAS and oneDNN (both layouts of W) and oneDNN's matmul with pre-packed weights. The
// integer rival is oneDNN's u8s8 matmul, pre-packed, with a scale per column and bias; it needs no
// zero point here, which is less work than ours; where there is no VNNI it saturates and is left
// out.
//
// The bound of a cell is the lower of two rates, timed in turn with the contenders: a stream of the
// multiply instruction on independent registers or tiles, and the time of bytes: packed W and A at the speed
// of a loop that reads the packed matrix, C at that of one that writes it. Columns:
//     gops   ours       bound  of the cell     share  gops / bound
//     f32    time of the fastest f32 rival / ours     own  time of our packed f32 / ours
//     onednn time of oneDNN u8s8 / ours
// each ratio the median over rounds with its quartiles. `ok` says whether a cell has what it must
// have: for 2 to 8 rows with f32 weights beyond L2, a ratio of 5 (i16: 2.5) or 85 % of the bound;
// elsewhere 80 % of the bound (65 % where its two terms lie within 2x); never slower than 0.98 of
// oneDNN u8s8.
#define _GNU_SOURCE
#include <math.h>
#include <unistd.h>

#include "base/clock.h"
#include "gemm_int.h"
#include "rivals.h"

// ---- a cell ----------------------------------------------------------------------------------

enum { OURS, OWN, F32_FIRST, F32_LAST = F32_FIRST + 4, U8S8, READ, WRITE, STREAM, CONTENDERS };

static const struct contender {
    const char *name;
    void (*run)(cell *c);
    unsigned rival; // its bit; 0: none
} contenders[CONTENDERS] = {
    [OURS] = {"ours", gemm_int_ours},
    [OWN] = {"own_f32", gemm_int_own_f32},
    [F32_FIRST] = {"openblas_nt", gemm_int_openblas_nt, 1u << RIVAL_OPENBLAS},
    {"openblas_nn", gemm_int_openblas_nn, 1u << RIVAL_OPENBLAS},
    {"onednn_nt", gemm_int_onednn_nt, 1u << RIVAL_ONEDNN},
    {"onednn_nn", gemm_int_onednn_nn, 1u << RIVAL_ONEDNN},
    [F32_LAST] = {"onednn_packed", gemm_int_onednn_packed, 1u << RIVAL_ONEDNN},
    [U8S8] = {"onednn_u8s8", gemm_int_onednn_u8s8, 1u << RIVAL_ONEDNN_INT},
    [READ] = {"read", gemm_int_read},
    [WRITE] = {"write", gemm_int_write},
    [STREAM] = {"stream", gemm_int_stream},
};

typedef struct result {
    double gops, bound, peak, byte_bound;
    double f32[3], own[3], onednn[3]; // quartiles
    int rival;                        // the fastest in f32; 0: none can run
    bool ok;
} result;

// Without VNNI oneDNN's u8s8 saturates at 16 bits: it computes something else.
static bool has_integer_rival(const cell *c)
{
    const char *name = c->kernels->gemm_i8.name;
    return c->is_i8 && !(contenders[U8S8].rival & gemm_rivals_gone) && (strstr(name, "vnni") || strstr(name, "amx"));
}

static const char *rival_name(const result *r)
{
    return r->rival ? contenders[r->rival].name : "none";
}

static bool takes_part(const cell *c, int i)
{
    if (contenders[i].rival & gemm_rivals_gone) return false;
    if (i == U8S8) return has_integer_rival(c);
    return i != STREAM || gemm_int_has_stream(c);
}

static float widened(uint16_t x)
{
    const uint32_t bits = (uint32_t)x << 16;
    float y;
    memcpy(&y, &bits, sizeof y);
    return y;
}

// Against sums in double: of the f32 numbers, or of the quantised ones with the epilogue.
static void verify(cell *c, int i)
{
    dgm_rng rng = {1};
    if (i >= READ) return;
    for (int t = 0; t < 100; t++) {
        const size_t r = dgm_rng_below(&rng, (uint64_t)c->m),
                     j = dgm_rng_below(&rng, (uint64_t)c->n);
        const size_t k = (size_t)c->k, depth = (size_t)dgm_gemm_i8_depth(c->k);
        const size_t wide = (size_t)(c->is_bf16 ? dgm_gemm_bf16_depth(c->k) : dgm_gemm_i16_depth(c->k));
        const bool ints = i == OURS || i == U8S8;
        const int zero = i == U8S8 ? 0 : 128;
        double sum = 0, size = 1e-30;
        for (size_t x = 0; x < k; x++) {
            const double p =
                !ints      ? (double)c->a[r * k + x] * c->weights[0].w[j * k + x]
                : c->is_i8 ? (double)(((uint8_t *)c->q)[r * depth + x] - zero) *
                                 ((int8_t *)c->wq)[j * k + x]
                : c->is_bf16 ? (double)widened(((uint16_t *)c->q)[r * wide + x]) *
                                   (double)widened(((uint16_t *)c->wq)[j * k + x])
                             : (double)((int16_t *)c->q)[r * wide + x] * ((int16_t *)c->wq)[j * k + x];
            sum += p;
            size += fabs(p);
        }
        const double scale = !ints || c->is_bf16 ? 1 : (i == U8S8 ? 1 : c->a_scale[r]) * c->w_scale[j];
        const double want = sum * scale + (ints ? c->bias[j] : 0);
        const double error = fabs(c->c[r * (size_t)c->n + j] - want);
        if (error <= 1e-5 * (size * scale + fabs(want))) continue;
        fprintf(stderr, "gemm: %s is wrong: m %d k %d n %d: %g, expected %g\n", contenders[i].name,
                c->m, c->k, c->n, (double)c->c[r * (size_t)c->n + j], want);
        exit(1);
    }
}

static void time_rounds(cell *c, const options *o, double times[CONTENDERS][MAX_ROUNDS])
{
    int calls[CONTENDERS];
    c->copy = 0;
    for (int i = 0; i < CONTENDERS; i++) {
        if (!takes_part(c, i)) continue;
        memset(c->c, 0xff, (size_t)c->m * (size_t)c->n * sizeof(float));
        contenders[i].run(c);
        verify(c, i);
        double best = 1e9;
        for (int j = 0; j < 3; j++) {
            const double start = cpu_time();
            contenders[i].run(c);
            const double used = cpu_time() - start;
            if (used < best) best = used;
        }
        calls[i] = best < o->turn ? (int)(o->turn / (best + 1e-9)) + 1 : 1;
    }
    for (int round = 0; round < o->rounds; round++)
        for (int s = 0; s < CONTENDERS; s++) {
            const int i = (s + round) % CONTENDERS;
            if (!takes_part(c, i)) continue;
            c->copy = round % c->copies;
            contenders[i].run(c); // brings its own weights into the cache
            const double start = cpu_time();
            for (int j = 0; j < calls[i]; j++) contenders[i].run(c);
            times[i][round] = (cpu_time() - start) / calls[i];
        }
}

static double median(const double *x, int n)
{
    double copy[MAX_ROUNDS];
    memcpy(copy, x, (size_t)n * sizeof *x);
    return quantile(copy, n, 0.5);
}

// Quartiles of other / ours, round by round.
static void ratios(double out[3], const double *other, const double *ours, int n)
{
    double x[MAX_ROUNDS];
    for (int i = 0; i < n; i++) x[i] = other[i] / ours[i];
    for (int i = 0; i < 3; i++) out[i] = quantile(x, n, 0.25 * (i + 1));
}

static bool is_ok(const cell *c, const result *r)
{
    const long l2 = sysconf(_SC_LEVEL2_CACHE_SIZE);
    const double share = r->gops / r->bound;
    const bool beyond = 4.0 * c->k * c->n > (l2 > 0 ? (double)l2 : 1048576.0);
    const bool close = r->peak < 2 * r->byte_bound && r->byte_bound < 2 * r->peak;
    if (has_integer_rival(c) && r->onednn[1] < 0.98) return false;
    if (beyond && c->m >= 2 && c->m <= 8) return r->f32[1] >= (c->is_i8 ? 5 : 2.5) || share >= 0.85;
    return share >= (close ? 0.65 : 0.80);
}

static result measure(cell *c, const options *o)
{
    static double times[CONTENDERS][MAX_ROUNDS];
    result r = {.rival = 0};
    time_rounds(c, o, times);
    const int n = o->rounds;
    const double ops = 2.0 * c->m * c->k * c->n;
    for (int i = F32_FIRST; i <= F32_LAST; i++)
        if (takes_part(c, i) && (!r.rival || median(times[i], n) < median(times[r.rival], n))) r.rival = i;
    if (r.rival) ratios(r.f32, times[r.rival], times[OURS], n);
    ratios(r.own, times[OWN], times[OURS], n);
    if (has_integer_rival(c)) ratios(r.onednn, times[U8S8], times[OURS], n);
    const double rows = (double)c->m * c->k * (c->is_i8 ? 1 : 2) / (double)c->packed_size;
    r.gops = 1e-9 * ops / median(times[OURS], n);
    r.byte_bound = 1e-9 * ops / ((1 + rows) * median(times[READ], n) + median(times[WRITE], n));
    r.peak = gemm_int_has_stream(c) ? 1e-9 * c->stream_ops / median(times[STREAM], n) : INFINITY;
    r.bound = r.peak < r.byte_bound ? r.peak : r.byte_bound;
    r.ok = is_ok(c, &r);
    return r;
}

static result one_cell(cell *c, const options *o)
{
    const bool floats = takes_part(c, F32_LAST), ints = takes_part(c, U8S8);
    if (floats) gemm_int_make_matmul(c, &c->f32, false);
    if (ints) gemm_int_make_matmul(c, &c->u8s8, true);
    const result r = measure(c, o);
    if (floats) gemm_int_free_matmul(c, &c->f32);
    if (ints) gemm_int_free_matmul(c, &c->u8s8);
    return r;
}

// ---- output ----------------------------------------------------------------------------------

void gemm_int_csv_head(FILE *csv)
{
    fprintf(csv, "type,m,k,n,gops,bound,peak,byte_bound,ratio_f32,f32_q1,f32_q3,rival,"
                 "ratio_own_f32,ratio_onednn,onednn_q1,onednn_q3,ok\n");
}

static void print_json(const char *type, const cell *c, const result *r)
{
    printf("{\"type\": \"%s\", \"m\": %d, \"k\": %d, \"n\": %d, \"gops\": %.2f, \"bound\": %.2f, "
           "\"ratio_f32\": %.4f, \"ratio_onednn\": ",
           type, c->m, c->k, c->n, r->gops, r->bound, r->f32[1]);
    if (has_integer_rival(c))
        printf("%.4f, \"ratio_onednn_q1\": %.4f, \"ratio_onednn_q3\": %.4f, ", r->onednn[1],
               r->onednn[0], r->onednn[2]);
    else
        printf("null, ");
    printf("\"ratio_f32_q1\": %.4f, \"ratio_f32_q3\": %.4f, \"ratio_own_f32\": %.4f, \"peak\": ",
           r->f32[0], r->f32[2], r->own[1]);
    if (isinf(r->peak))
        printf("null, ");
    else
        printf("%.2f, ", r->peak);
    printf("\"byte_bound\": %.2f, \"rival\": \"%s\", \"ok\": %s}\n", r->byte_bound,
           rival_name(r), r->ok ? "true" : "false");
}

static void print_cell(const char *type, const cell *c, const result *r, const options *o,
                       FILE *csv)
{
    char onednn[64] = "-", median_only[32] = "";
    if (has_integer_rival(c)) {
        snprintf(onednn, sizeof onednn, "%.3f [%.3f %.3f]", r->onednn[1], r->onednn[0],
                 r->onednn[2]);
        snprintf(median_only, sizeof median_only, "%.4f", r->onednn[1]);
    }
    if (o->json)
        print_json(type, c, r);
    else
        printf("%-5s %3d %5d %6d %7.1f %7.1f %5.2f  %6.2f [%.2f %.2f] %-13s %5.2f  %-19s  %s\n",
               type, c->m, c->k, c->n, r->gops, r->bound, r->gops / r->bound, r->f32[1], r->f32[0],
               r->f32[2], rival_name(r), r->own[1], onednn, r->ok ? "ok" : "--");
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%d,%d,%d,%.2f,%.2f,%.2f,%.2f,%.4f,%.4f,%.4f,%s,%.4f,%s,%.4f,%.4f,%d\n",
                type, c->m, c->k, c->n, r->gops, r->bound, r->peak, r->byte_bound, r->f32[1],
                r->f32[0], r->f32[2], rival_name(r), r->own[1], median_only,
                r->onednn[0], r->onednn[2], r->ok);
}

bool gemm_int_run(const char *type, const options *o, const dgm_kernels *k, FILE *csv)
{
    bool all = true;
    cell c = {.kernels = k, .is_i8 = strcmp(type, "u8i8") == 0, .is_bf16 = strcmp(type, "bf16") == 0};
    gemm_int_open_rivals(&c);
    if (!o->json)
        printf("%-5s %3s %5s %6s %7s %7s %5s  %6s %-11s %-13s %5s  %5s %-13s  ok\n", "type", "m",
               "k", "n", "gops", "bound", "share", "f32", "[quartiles]", "fastest f32", "own",
               "u8s8", "[quartiles]");
    for (int s = 0; s < SIZES_KN; s++) {
        char name[32];
        c.k = sizes_kn[s][0], c.n = sizes_kn[s][1], c.m = 64;
        snprintf(name, sizeof name, "%dx%d", c.k, c.n);
        if (o->kn && strcmp(o->kn, name) != 0) continue;
        gemm_int_make_data(&c);
        for (int i = 0; i < SIZES_M; i++) {
            c.m = sizes_m[i];
            if (!is_wanted(o->m, c.m)) continue;
            if (o->quick && c.m != 1 && c.m != 8 && c.m != 64) continue;
            const result r = one_cell(&c, o);
            print_cell(type, &c, &r, o, csv);
            all = all && r.ok;
        }
        gemm_int_free_data(&c);
    }
    gemm_int_close_rivals(&c);
    return all;
}
