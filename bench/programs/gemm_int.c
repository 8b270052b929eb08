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
#include <cblas.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <unistd.h>

#include "base/clock.h"
#include "ceilings.h"
#include "gemm.h"

typedef struct packed {
    float *w, *wt; // [n, k], [k, n]
    void *own_f32; // packed by our f32 kernels
    void *ints;    // packed by our integer kernels
} packed;

typedef struct cell {
    int m, k, n;
    bool is_i8, is_bf16; // neither: i16
    const dgm_kernels *kernels;
    float *a, *c;    // [m, k], [m, n]
    void *q;         // quantised or rounded rows
    float *a_scale;  // [m]
    void *wq;        // [n, k] quantised weights
    float *w_scale;  // [n]; i16: all the same
    float *bias;     // [n]
    float *dnn_bias; // bias / scale: oneDNN scales after adding
    int copies, copy;
    packed weights[MAX_COPIES];
    size_t packed_size;
    double stream_ops; // of one call of the instruction stream
    dnnl_engine_t engine;
    dnnl_stream_t stream;
    struct matmul {
        dnnl_primitive_desc_t desc;
        dnnl_primitive_t primitive;
        dnnl_memory_t a, c, bias, w[MAX_COPIES]; // made once: only execution is timed
        void *data[MAX_COPIES];                  // of w
    } f32, u8s8;
} cell;

// ---- our side --------------------------------------------------------------------------------

static void run_ours(cell *c)
{
    if (c->is_i8) {
        const dgm_gemm_i8_args args = {.c = c->c,
                                       .a = c->q,
                                       .a_scale = c->a_scale,
                                       .packed = c->weights[c->copy].ints,
                                       .w_scale = c->w_scale,
                                       .bias = c->bias,
                                       .m = c->m,
                                       .n = c->n,
                                       .k = c->k,
                                       .n_end = c->n,
                                       .lda = dgm_gemm_i8_depth(c->k),
                                       .ldc = c->n};
        c->kernels->gemm_i8.run(&args);
    } else if (c->is_bf16) {
        const dgm_gemm_bf16_args args = {.c = c->c,
                                         .a = c->q,
                                         .packed = c->weights[c->copy].ints,
                                         .bias = c->bias,
                                         .m = c->m,
                                         .n = c->n,
                                         .k = c->k,
                                         .n_end = c->n,
                                         .lda = dgm_gemm_bf16_depth(c->k),
                                         .ldc = c->n};
        c->kernels->gemm_bf16.run(&args);
    } else {
        const dgm_gemm_i16_args args = {.c = c->c,
                                        .a = c->q,
                                        .a_scale = c->a_scale,
                                        .packed = c->weights[c->copy].ints,
                                        .w_scale = c->w_scale[0],
                                        .bias = c->bias,
                                        .m = c->m,
                                        .n = c->n,
                                        .k = c->k,
                                        .n_end = c->n,
                                        .lda = dgm_gemm_i16_depth(c->k),
                                        .ldc = c->n};
        c->kernels->gemm_i16.run(&args);
    }
}

static void run_own_f32(cell *c)
{
    const dgm_gemm_f32_args args = {.c = c->c,
                                    .a = c->a,
                                    .packed = c->weights[c->copy].own_f32,
                                    .m = c->m,
                                    .n = c->n,
                                    .k = c->k,
                                    .n_end = c->n,
                                    .lda = c->k,
                                    .ldc = c->n};
    c->kernels->gemm_f32.run(&args);
}

// ---- rivals ----------------------------------------------------------------------------------

static void run_openblas_nt(cell *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, c->m, c->n, c->k, 1.0f, c->a, c->k,
                c->weights[c->copy].w, c->k, 0.0f, c->c, c->n);
}

static void run_openblas_nn(cell *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, c->m, c->n, c->k, 1.0f, c->a, c->k,
                c->weights[c->copy].wt, c->n, 0.0f, c->c, c->n);
}

static void run_onednn_nt(cell *c)
{
    dnnl_sgemm('N', 'T', c->m, c->n, c->k, 1.0f, c->a, c->k, c->weights[c->copy].w, c->k, 0.0f,
               c->c, c->n);
}

static void run_onednn_nn(cell *c)
{
    dnnl_sgemm('N', 'N', c->m, c->n, c->k, 1.0f, c->a, c->k, c->weights[c->copy].wt, c->n, 0.0f,
               c->c, c->n);
}

static void need(dnnl_status_t status, const char *what)
{
    if (status == dnnl_success) return;
    fprintf(stderr, "gemm: oneDNN: %s failed (%d)\n", what, (int)status);
    exit(1);
}

static dnnl_memory_t wrap(cell *c, const dnnl_memory_desc_t *desc, void *data)
{
    dnnl_memory_t m;
    need(dnnl_memory_create(&m, desc, c->engine, data), "memory");
    return m;
}

static dnnl_memory_desc_t matrix(int rows, int cols, dnnl_data_type_t type, dnnl_format_tag_t tag)
{
    const dnnl_dims_t dims = {rows, cols};
    dnnl_memory_desc_t d;
    need(dnnl_memory_desc_init_by_tag(&d, 2, dims, type, tag), "descriptor");
    return d;
}

// Weights [n, k] into the primitive's own layout.
static void reorder(cell *c, struct matmul *p, int copy, const void *w, bool ints)
{
    const dnnl_memory_desc_t *to = dnnl_primitive_desc_query_md(p->desc, dnnl_query_weights_md, 0);
    const dnnl_memory_desc_t from = matrix(c->k, c->n, ints ? dnnl_s8 : dnnl_f32, dnnl_ba);
    p->data[copy] = allocate(dnnl_memory_desc_get_size(to) + 64);
    p->w[copy] = wrap(c, to, p->data[copy]);
    dnnl_memory_t source = wrap(c, &from, (void *)(uintptr_t)w);
    dnnl_primitive_desc_t desc;
    dnnl_primitive_t primitive;
    need(dnnl_reorder_primitive_desc_create(&desc, &from, c->engine, to, c->engine, NULL),
         "reorder");
    need(dnnl_primitive_create(&primitive, desc), "reorder");
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, p->w[copy]}};
    need(dnnl_primitive_execute(primitive, c->stream, 2, args), "reorder");
    need(dnnl_stream_wait(c->stream), "reorder");
    dnnl_primitive_destroy(primitive);
    dnnl_primitive_desc_destroy(desc);
    dnnl_memory_destroy(source);
}

// The primitive for m rows; weights in the layout it likes best.
static void make_matmul(cell *c, struct matmul *p, bool ints)
{
    const dnnl_data_type_t in = ints ? dnnl_u8 : dnnl_f32, wt = ints ? dnnl_s8 : dnnl_f32;
    const dnnl_memory_desc_t a = matrix(c->m, c->k, in, dnnl_ab);
    const dnnl_memory_desc_t w = matrix(c->k, c->n, wt, dnnl_format_tag_any);
    const dnnl_memory_desc_t y = matrix(c->m, c->n, dnnl_f32, dnnl_ab);
    const dnnl_memory_desc_t b = matrix(1, c->n, dnnl_f32, dnnl_ab);
    dnnl_matmul_desc_t desc;
    dnnl_primitive_attr_t attr;
    need(dnnl_primitive_attr_create(&attr), "attributes");
    if (ints) need(dnnl_primitive_attr_set_output_scales(attr, c->n, 1 << 1, c->w_scale), "scales");
    need(dnnl_matmul_desc_init(&desc, &a, &w, ints ? &b : NULL, &y), "matmul");
    need(dnnl_primitive_desc_create(&p->desc, &desc, attr, c->engine, NULL), "primitive");
    need(dnnl_primitive_create(&p->primitive, p->desc), "primitive");
    dnnl_primitive_attr_destroy(attr);
    p->a = wrap(c, &a, ints ? c->q : (void *)c->a);
    p->c = wrap(c, &y, c->c);
    p->bias = ints ? wrap(c, &b, c->dnn_bias) : NULL;
    for (int q = 0; q < c->copies; q++) reorder(c, p, q, ints ? c->wq : c->weights[q].w, ints);
}

static void free_matmul(const cell *c, struct matmul *p)
{
    for (int q = 0; q < c->copies; q++) {
        dnnl_memory_destroy(p->w[q]);
        free(p->data[q]);
    }
    dnnl_memory_destroy(p->a);
    dnnl_memory_destroy(p->c);
    if (p->bias) dnnl_memory_destroy(p->bias);
    dnnl_primitive_destroy(p->primitive);
    dnnl_primitive_desc_destroy(p->desc);
}

static void execute(cell *c, const struct matmul *p)
{
    const dnnl_exec_arg_t args[] = {{DNNL_ARG_SRC, p->a},
                                    {DNNL_ARG_WEIGHTS, p->w[c->copy]},
                                    {DNNL_ARG_DST, p->c},
                                    {DNNL_ARG_BIAS, p->bias}};
    need(dnnl_primitive_execute(p->primitive, c->stream, p->bias ? 4 : 3, args), "matmul");
}

static void run_onednn_packed(cell *c)
{
    execute(c, &c->f32);
}

static void run_onednn_u8s8(cell *c)
{
    execute(c, &c->u8s8);
}

// ---- bounds ----------------------------------------------------------------------------------

// Reads the packed matrix.
static void run_read(cell *c)
{
    const char *p = c->weights[c->copy].ints, *const end = p + c->packed_size;
#if defined(__x86_64__)
    if (strstr(c->kernels->gemm_f32.name, "avx512")) {
        for (; p < end; p += 256)
            __asm__ volatile("vmovdqa64 (%0), %%zmm0\n\tvmovdqa64 64(%0), %%zmm1\n\t"
                             "vmovdqa64 128(%0), %%zmm2\n\tvmovdqa64 192(%0), %%zmm3"
                             :
                             : "r"(p)
                             : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
        __asm__ volatile("vzeroupper" ::: "memory");
        return;
    }
    if (strstr(c->kernels->gemm_f32.name, "avx2")) {
        for (; p < end; p += 128)
            __asm__ volatile("vmovdqa (%0), %%ymm0\n\tvmovdqa 32(%0), %%ymm1\n\t"
                             "vmovdqa 64(%0), %%ymm2\n\tvmovdqa 96(%0), %%ymm3"
                             :
                             : "r"(p)
                             : "xmm0", "xmm1", "xmm2", "xmm3", "memory");
        __asm__ volatile("vzeroupper" ::: "memory");
        return;
    }
#endif
    uint64_t sum = 0;
    for (; p < end; p += 64) {
        uint64_t x[8];
        memcpy(x, p, sizeof x);
        for (int i = 0; i < 8; i++) sum += x[i];
    }
    __asm__ volatile("" : : "r"(sum));
}

enum { STREAM_STEPS = 4000, STREAM_WIDTH = 14 };

#if defined(__x86_64__)
#define EACH(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13)
#define STREAM_CLOBBERS                                                                            \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10",       \
        "xmm11", "xmm12", "xmm13", "xmm14", "xmm15"
#define DPBUSD(i) "vpdpbusd %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define DPWSSD(i) "vpdpwssd %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define DPBF16(i) "vdpbf16ps %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define FMA_512(i) "vfmadd231ps %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define FMA_256(i) "vfmadd231ps %%ymm14, %%ymm15, %%ymm" #i "\n\t"
#define MADD_512(i) "vpmaddwd %%zmm14, %%zmm15, %%zmm" #i "\n\t"
#define MADD_256(i) "vpmaddwd %%ymm14, %%ymm15, %%ymm" #i "\n\t"

// The kernels of the cell's type.
static const char *kernels_name(const cell *c)
{
    return c->is_i8     ? c->kernels->gemm_i8.name
           : c->is_bf16 ? c->kernels->gemm_bf16.name
                        : c->kernels->gemm_i16.name;
}

// bf16: vdpbf16ps, or the multiply-adds of f32 that the widened numbers take.
static void run_stream_bf16(cell *c, const char *name)
{
    const bool zmm = strstr(name, "avx512"), pairs = strstr(name, "bf16_avx512bf16");
    for (int i = 0; i < STREAM_STEPS; i++) {
        if (pairs)
            __asm__ volatile(EACH(DPBF16) : : : STREAM_CLOBBERS);
        else if (zmm)
            __asm__ volatile(EACH(FMA_512) : : : STREAM_CLOBBERS);
        else
            __asm__ volatile(EACH(FMA_256) : : : STREAM_CLOBBERS);
    }
    __asm__ volatile("vzeroupper" ::: "memory");
    c->stream_ops = (double)STREAM_STEPS * STREAM_WIDTH * (pairs ? 64 : zmm ? 32 : 16);
}

// One multiply instruction on 14 independent registers: vpdpbusd, vpdpwssd, or vpmaddwd, which
// bounds what has no VNNI (two of them, or as slow ones, for 64 products of bytes). With tiles: theirs.
static void run_stream(cell *c)
{
    const char *name = kernels_name(c);
    if (strstr(name, "amx")) {
        c->stream_ops = 2 * ceilings_tile_turn(c->is_bf16);
        return;
    }
    if (c->is_bf16) {
        run_stream_bf16(c, name);
        return;
    }
    const bool zmm = strstr(name, "avx512"), vnni = strstr(name, "vnni");
    for (int i = 0; i < STREAM_STEPS; i++) {
        if (vnni && c->is_i8)
            __asm__ volatile(EACH(DPBUSD) : : : STREAM_CLOBBERS);
        else if (vnni)
            __asm__ volatile(EACH(DPWSSD) : : : STREAM_CLOBBERS);
        else if (zmm)
            __asm__ volatile(EACH(MADD_512) : : : STREAM_CLOBBERS);
        else
            __asm__ volatile(EACH(MADD_256) : : : STREAM_CLOBBERS);
    }
    __asm__ volatile("vzeroupper" ::: "memory");
    c->stream_ops = (double)STREAM_STEPS * STREAM_WIDTH *
                    (vnni && c->is_i8 ? 128
                     : zmm || vnni    ? 64
                                      : 32);
}

static bool has_stream(const cell *c)
{
    const char *name = kernels_name(c);
    return strstr(name, "vnni") || strstr(name, "avx") || strstr(name, "amx");
}
#else
static void run_stream(cell *c)
{
    c->stream_ops = 0;
}

static bool has_stream(const cell *c)
{
    (void)c;
    return false;
}
#endif

// ---- a cell ----------------------------------------------------------------------------------

// Writes the result.
static void run_write(cell *c)
{
    memset(c->c, 0, (size_t)c->m * (size_t)c->n * sizeof(float));
}

enum { OURS, OWN, F32_FIRST, F32_LAST = F32_FIRST + 4, U8S8, READ, WRITE, STREAM, CONTENDERS };

static const struct contender {
    const char *name;
    void (*run)(cell *c);
} contenders[CONTENDERS] = {
    [OURS] = {"ours", run_ours},
    [OWN] = {"own_f32", run_own_f32},
    [F32_FIRST] = {"openblas_nt", run_openblas_nt},
    {"openblas_nn", run_openblas_nn},
    {"onednn_nt", run_onednn_nt},
    {"onednn_nn", run_onednn_nn},
    [F32_LAST] = {"onednn_packed", run_onednn_packed},
    [U8S8] = {"onednn_u8s8", run_onednn_u8s8},
    [READ] = {"read", run_read},
    [WRITE] = {"write", run_write},
    [STREAM] = {"stream", run_stream},
};

typedef struct result {
    double gops, bound, peak, byte_bound;
    double f32[3], own[3], onednn[3]; // quartiles
    int rival;
    bool ok;
} result;

// Without VNNI oneDNN's u8s8 saturates at 16 bits: it computes something else.
static bool has_integer_rival(const cell *c)
{
    const char *name = c->kernels->gemm_i8.name;
    return c->is_i8 && (strstr(name, "vnni") || strstr(name, "amx"));
}

static bool takes_part(const cell *c, int i)
{
    if (i == U8S8) return has_integer_rival(c);
    return i != STREAM || has_stream(c);
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
    result r = {.rival = F32_FIRST};
    time_rounds(c, o, times);
    const int n = o->rounds;
    const double ops = 2.0 * c->m * c->k * c->n;
    for (int i = F32_FIRST; i <= F32_LAST; i++)
        if (median(times[i], n) < median(times[r.rival], n)) r.rival = i;
    ratios(r.f32, times[r.rival], times[OURS], n);
    ratios(r.own, times[OWN], times[OURS], n);
    if (has_integer_rival(c)) ratios(r.onednn, times[U8S8], times[OURS], n);
    const double rows = (double)c->m * c->k * (c->is_i8 ? 1 : 2) / (double)c->packed_size;
    r.gops = 1e-9 * ops / median(times[OURS], n);
    r.byte_bound = 1e-9 * ops / ((1 + rows) * median(times[READ], n) + median(times[WRITE], n));
    r.peak = has_stream(c) ? 1e-9 * c->stream_ops / median(times[STREAM], n) : INFINITY;
    r.bound = r.peak < r.byte_bound ? r.peak : r.byte_bound;
    r.ok = is_ok(c, &r);
    return r;
}

// ---- data ------------------------------------------------------------------------------------

static void round_all(cell *c)
{
    const size_t k = (size_t)c->k, depth = (size_t)dgm_gemm_bf16_depth(c->k);
    uint16_t *row = allocate(depth * sizeof *row);
    for (size_t j = 0; j < (size_t)c->n; j++) {
        c->kernels->round_bf16(row, c->weights[0].w + j * k, c->k);
        memcpy((uint16_t *)c->wq + j * k, row, k * sizeof *row);
        c->bias[j] = 0.01f * (float)(j % 100);
    }
    free(row);
    for (int i = 0; i < c->copies; i++) {
        c->kernels->gemm_bf16.pack(c->weights[i].ints, c->wq, NULL, c->n, c->k, c->k);
        c->kernels->gemm_f32.pack(c->weights[i].own_f32, c->weights[i].w, c->n, c->k, c->k);
    }
    for (size_t r = 0; r < (size_t)c->m; r++)
        c->kernels->round_bf16((uint16_t *)c->q + r * depth, c->a + r * k, c->k);
}

static void quantise(cell *c)
{
    const int depth = c->is_i8 ? dgm_gemm_i8_depth(c->k) : dgm_gemm_i16_depth(c->k);
    int limit = 0;
    for (size_t j = 0; j < (size_t)c->n; j++) {
        c->w_scale[j] = c->is_i8 ? 0.5f / 127 : 0.5f / 4096;
        for (size_t i = 0; i < (size_t)c->k; i++) {
            const size_t at = j * (size_t)c->k + i;
            const long q = lrintf(c->weights[0].w[at] / c->w_scale[j]);
            if (c->is_i8)
                ((int8_t *)c->wq)[at] = (int8_t)q;
            else
                ((int16_t *)c->wq)[at] = (int16_t)q;
        }
        c->bias[j] = 0.01f * (float)(j % 100);
        c->dnn_bias[j] = c->bias[j] / c->w_scale[j];
    }
    for (int i = 0; i < c->copies; i++) {
        if (c->is_i8)
            c->kernels->gemm_i8.pack(c->weights[i].ints, c->wq, NULL, c->n, c->k, c->k);
        else
            limit = c->kernels->gemm_i16.pack(c->weights[i].ints, c->wq, NULL, c->n, c->k, c->k);
        c->kernels->gemm_f32.pack(c->weights[i].own_f32, c->weights[i].w, c->n, c->k, c->k);
    }
    for (int r = 0; r < c->m; r++) {
        const float *row = c->a + (size_t)r * (size_t)c->k;
        const size_t at = (size_t)r * (size_t)depth;
        if (c->is_i8)
            c->kernels->quantize_i8((uint8_t *)c->q + at, c->a_scale + r, row, c->k);
        else
            c->kernels->quantize_i16((int16_t *)c->q + at, c->a_scale + r, row, c->k, limit);
    }
}

static void make_data(cell *c)
{
    dgm_rng rng = {2};
    const size_t count = (size_t)c->k * (size_t)(c->n + DGM_GEMM_COLUMNS);
    c->copies = count * sizeof(float) < ((size_t)8 << 20) ? MAX_COPIES : 1;
    c->packed_size = c->is_i8     ? c->kernels->gemm_i8.packed_size(c->n, c->k)
                     : c->is_bf16 ? c->kernels->gemm_bf16.packed_size(c->n, c->k)
                                  : c->kernels->gemm_i16.packed_size(c->n, c->k);
    c->a = allocate((size_t)c->m * (size_t)c->k * sizeof(float));
    c->q = allocate((size_t)c->m * (size_t)(c->k + 64) * 2);
    c->a_scale = allocate((size_t)c->m * sizeof(float));
    c->c = allocate((size_t)c->m * (size_t)c->n * sizeof(float));
    c->w_scale = allocate((size_t)c->n * sizeof(float));
    c->bias = allocate((size_t)c->n * sizeof(float));
    c->dnn_bias = allocate((size_t)c->n * sizeof(float));
    c->wq = allocate(count * 2);
    for (size_t i = 0; i < (size_t)c->m * (size_t)c->k; i++)
        c->a[i] = (float)(dgm_rng_unit(&rng) - 0.5);
    for (int q = 0; q < c->copies; q++)
        c->weights[q] = (packed){.w = allocate(count * sizeof(float)),
                                 .wt = allocate(count * sizeof(float)),
                                 .own_f32 = allocate(count * sizeof(float)),
                                 .ints = allocate(c->packed_size)};
    for (size_t j = 0; j < (size_t)c->n; j++)
        for (size_t i = 0; i < (size_t)c->k; i++) {
            const float x = (float)(dgm_rng_unit(&rng) - 0.5);
            for (int q = 0; q < c->copies; q++) {
                c->weights[q].w[j * (size_t)c->k + i] = x;
                c->weights[q].wt[i * (size_t)c->n + j] = x;
            }
        }
    if (c->is_bf16)
        round_all(c);
    else
        quantise(c);
}

static void free_data(cell *c)
{
    void *const all[] = {c->a, c->q, c->a_scale, c->c, c->w_scale, c->bias, c->dnn_bias, c->wq};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++) free(all[i]);
    for (int q = 0; q < c->copies; q++) {
        free(c->weights[q].w);
        free(c->weights[q].wt);
        free(c->weights[q].own_f32);
        free(c->weights[q].ints);
    }
}

static result one_cell(cell *c, const options *o)
{
    make_matmul(c, &c->f32, false);
    if (c->is_i8) make_matmul(c, &c->u8s8, true);
    const result r = measure(c, o);
    free_matmul(c, &c->f32);
    if (c->is_i8) free_matmul(c, &c->u8s8);
    return r;
}

void gemm_int_rival(void)
{
    static uint8_t q[64 * 64];
    static int8_t wq[64 * 64];
    static float y[64 * 64], scale[64], bias[64];
    cell c = {.m = 64, .k = 64, .n = 64, .copies = 1};
    c.q = q, c.wq = wq, c.c = y, c.w_scale = scale, c.dnn_bias = bias;
    need(dnnl_engine_create(&c.engine, dnnl_cpu, 0), "engine");
    need(dnnl_stream_create(&c.stream, c.engine, dnnl_stream_default_flags), "stream");
    make_matmul(&c, &c.u8s8, true);
    execute(&c, &c.u8s8);
    need(dnnl_stream_wait(c.stream), "matmul");
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
           contenders[r->rival].name, r->ok ? "true" : "false");
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
               r->f32[2], contenders[r->rival].name, r->own[1], onednn, r->ok ? "ok" : "--");
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%d,%d,%d,%.2f,%.2f,%.2f,%.2f,%.4f,%.4f,%.4f,%s,%.4f,%s,%.4f,%.4f,%d\n",
                type, c->m, c->k, c->n, r->gops, r->bound, r->peak, r->byte_bound, r->f32[1],
                r->f32[0], r->f32[2], contenders[r->rival].name, r->own[1], median_only,
                r->onednn[0], r->onednn[2], r->ok);
}

bool gemm_int_run(const char *type, const options *o, const dgm_kernels *k, FILE *csv)
{
    bool all = true;
    cell c = {.kernels = k, .is_i8 = strcmp(type, "u8i8") == 0, .is_bf16 = strcmp(type, "bf16") == 0};
    need(dnnl_engine_create(&c.engine, dnnl_cpu, 0), "engine");
    need(dnnl_stream_create(&c.stream, c.engine, dnnl_stream_default_flags), "stream");
    if (!o->json)
        printf("%-5s %3s %5s %6s %7s %7s %5s  %6s %-11s %-13s %5s  %5s %-13s  ok\n", "type", "m",
               "k", "n", "gops", "bound", "share", "f32", "[quartiles]", "fastest f32", "own",
               "u8s8", "[quartiles]");
    for (int s = 0; s < SIZES_KN; s++) {
        char name[32];
        c.k = sizes_kn[s][0], c.n = sizes_kn[s][1], c.m = 64;
        snprintf(name, sizeof name, "%dx%d", c.k, c.n);
        if (o->kn && strcmp(o->kn, name) != 0) continue;
        make_data(&c);
        for (int i = 0; i < SIZES_M; i++) {
            c.m = sizes_m[i];
            if (!is_wanted(o->m, c.m)) continue;
            if (o->quick && c.m != 1 && c.m != 8 && c.m != 64) continue;
            const result r = one_cell(&c, o);
            print_cell(type, &c, &r, o, csv);
            all = all && r.ok;
        }
        free_data(&c);
    }
    dnnl_stream_destroy(c.stream);
    dnnl_engine_destroy(c.engine);
    return all;
}
