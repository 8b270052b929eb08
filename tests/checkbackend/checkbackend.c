// SPDX-License-Identifier: MIT
// checkbackend: every function of one device against the same function of another.
//
//     checkbackend A B [--seed N] [--only PATTERN]      devices as --device names them
//     checkbackend --levels                             cpu:c against every level of this machine
//     checkbackend A --team N                           A alone against A with N helpers: equal bits throughout
//
// The last line is "N passed, M failed"; the exit status is 1 if something failed.
#define _GNU_SOURCE
#include <fnmatch.h>
#include <math.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "checkbackend/checkbackend.h"
#include "format/quantize.h"

// Functions that one check covers together.
#define check_close check_device
#define check_properties check_device
#define check_describe check_device
#define check_static_scales check_linear
#define check_activations check_gates
#define check_linear_load check_weights
#define check_linear_free check_weights
#define check_linear_rows check_weights
#define check_linear_cols check_weights
#define check_linear_bytes check_weights
#define check_linear_by_rows check_rank
#define check_linear_tensor check_weights
#define check_embedding_load check_embed
#define check_embedding_free check_embed
#define check_vector_from check_norm
#define check_vector_free check_norm
#define check_experts_load check_experts
#define check_experts_free check_experts
#define check_experts_count check_experts
#define check_experts_bytes check_experts
#define check_exec_open check_memory
#define check_exec_close check_memory
#define check_busy check_clock
#define check_mat check_memory
#define check_mat_bytes check_memory
#define check_cache check_memory
#define check_cache_bytes check_memory
#define check_blocks check_memory
#define check_blocks_bytes check_memory
#define check_add check_sums
#define check_add_vector check_sums
#define check_maxout check_sums
#define check_scale check_sums
#define check_zero check_copies
#define check_gather check_copies
#define check_scatter check_copies
#define check_read check_copies
#define check_write check_copies
#define check_attend_bytes check_attend
#define check_blocks_put check_attend_blocks
#define check_paths check_attend
#define check_paths_bytes check_attend
#define check_sync check_attend
#define check_copy check_copies
#define check_zero_rows check_copies
#define check_gru check_gates
#define check_lstm check_gates
#define check_ssru check_gates
#define check_gated_sum check_gates
#define check_gated check_sums
#define check_rms_norm check_norm
#define check_gathered_open check_gathered
#define check_gathered_bytes check_gathered
#define check_gather_columns check_gathered
#define check_rank_bytes check_rank
#define check_set check_rank
#define check_centroids_load check_closest
#define check_centroids_free check_closest
#define check_centroids_bytes check_closest
#define check_closest_bytes check_closest
#define check_rank_more_bytes check_gathered
#define check_centroids_lists check_joint
#define check_rank_joint_bytes check_joint
#define check_variants check_device

// One row per function of the table: one without a check does not compile.
#define CHECK(result, name, parameters) {#name, check_##name},
static const struct row {
    const char *name;
    void (*check)(cb *c);
} rows[] = {DGM_BACKEND_OPS(CHECK)};

enum { ROWS = sizeof rows / sizeof rows[0] };
_Static_assert(ROWS == sizeof(dgm_backend_ops) / sizeof(void (*)(void)),
               "a check for every function of a device");

// ---- rounds -------------------------------------------------------------------------------------

enum { SCRATCH = 512 << 20, BLOCKS = 1024 };

static void *blocks[BLOCKS];
static int block_count;

static void *take(size_t bytes)
{
    void *p = block_count < BLOCKS ? malloc(bytes + 1) : NULL;
    if (!p) {
        fprintf(stderr, "checkbackend: out of memory\n");
        exit(1);
    }
    return blocks[block_count++] = p;
}

static void give_back(void)
{
    while (block_count > 0) free(blocks[--block_count]);
}

void cb_begin(cb *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->where, sizeof c->where, fmt, args);
    va_end(args);
    give_back();
    CB_BOTH(c, s)
    {
        s->count = 0;
        dgm_exec_reset(s->x, (dgm_mark){0, 0});
    }
}

void cb_fail(cb *c, const char *fmt, ...)
{
    if (!c->failed) { // the first of a check only
        va_list args;
        printf("FAIL %s (%s): ", c->what, c->where);
        va_start(args, fmt);
        vprintf(fmt, args);
        va_end(args);
        printf("\n");
    }
    c->failed = true;
}

int cb_below(cb *c, int n)
{
    return (int)dgm_rng_below(&c->rng, (uint64_t)n);
}

int cb_between(cb *c, int low, int high)
{
    return low + cb_below(c, high - low + 1);
}

float *cb_floats(cb *c, size_t n, float size)
{
    float *x = take(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = size * (float)(2 * dgm_rng_unit(&c->rng) - 1);
    return x;
}

int32_t *cb_ints(cb *c, size_t n, int below)
{
    int32_t *x = take(n * sizeof *x);
    for (size_t i = 0; i < n; i++) x[i] = cb_below(c, below);
    return x;
}

dgm_mat cb_put(cb_side *s, const float *numbers, int r, int cols)
{
    dgm_mat m = dgm_exec_mat(s->x, r, cols);
    dgm_op_write(s->x, m, numbers);
    return m;
}

dgm_mat cb_room(cb_side *s, int r, int cols)
{
    float *other = take((size_t)r * (size_t)cols * sizeof *other);
    for (size_t i = 0; i < (size_t)r * (size_t)cols; i++) other[i] = -77.0f;
    return cb_put(s, other, r, cols);
}

void cb_keep_floats(cb *c, cb_side *s, const float *numbers, size_t n)
{
    (void)c;
    if (s->count + n > s->room) {
        s->room = 2 * (s->count + n);
        s->kept = realloc(s->kept, s->room * sizeof *s->kept);
        if (!s->kept) exit(1);
    }
    memcpy(s->kept + s->count, numbers, n * sizeof *numbers);
    s->count += n;
}

void cb_keep(cb *c, cb_side *s, dgm_mat m)
{
    const size_t n = (size_t)m.rows * (size_t)m.cols;
    float *numbers = take(n * sizeof *numbers);
    dgm_op_read(s->x, numbers, m);
    cb_keep_floats(c, s, numbers, n);
}

static bool same_bits(float a, float b)
{
    return memcmp(&a, &b, sizeof a) == 0 || (isnan(a) && isnan(b));
}

void cb_same_row(cb *c, cb_side *s, dgm_mat among, dgm_mat alone)
{
    const size_t n = (size_t)among.cols;
    float *a = take(n * sizeof *a), *b = take(n * sizeof *b);
    dgm_op_read(s->x, a, among);
    dgm_op_read(s->x, b, alone);
    for (size_t i = 0; i < n; i++)
        if (!same_bits(a[i], b[i]))
            cb_fail(c, "side %d: column %zu of a row is %.9g among others and %.9g alone",
                    (int)(s - c->sides), i, (double)a[i], (double)b[i]);
}

void cb_compare(cb *c, cb_class of, double bound)
{
    const cb_side *a = &c->sides[0], *b = &c->sides[1];
    dgm_error err;
    CB_BOTH(c, s) if (dgm_exec_status(s->x, &err) != DGM_OK) cb_fail(c, "%s", err.text);
    if (a->count != b->count) cb_fail(c, "%zu and %zu numbers", a->count, b->count);
    const bool exact = of == CB_EXACT || (of == CB_ROUNDED && c->one_kind) || c->team;
    double size = 1;
    for (size_t i = 0; i < a->count; i++)
        if (isfinite(a->kept[i])) size = fmax(size, fabs((double)a->kept[i]));
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        const float x = a->kept[i], y = b->kept[i];
        const double difference = fabs((double)x - (double)y);
        if (same_bits(x, y) || (!exact && difference <= bound * size)) continue;
        cb_fail(c, "number %zu is %.9g and %.9g; allowed %.3g", i, (double)x, (double)y,
                exact ? 0.0 : bound * size);
        return;
    }
}

// Rounding of one step of the sum, and of the inputs where they are stored in fewer bits.
double cb_product_bound(dgm_precision p, int k)
{
    const double unit = p == DGM_PRECISION_BF16 ? 1.0 / 128 : p == DGM_PRECISION_F16 ? 1.0 / 1024 : 0;
    return ldexp(4 + sqrt(k), -22) + 2 * unit + unit * sqrt(k);
}

dgm_precision cb_side_precision(const cb_side *s, dgm_precision p)
{
    return dgm_backend_properties(s->backend)->precisions & 1u << p ? p : DGM_PRECISION_F32;
}

cb_class cb_product_class(dgm_precision p)
{
    return p == DGM_PRECISION_I8 || p == DGM_PRECISION_I16 ? CB_ROUNDED : CB_PRODUCT;
}

// ---- weights ------------------------------------------------------------------------------------

void cb_matrix(cb *c, cb_tensor *out, dgm_tensor_type type, int r, int cols)
{
    const size_t n = (size_t)r * (size_t)cols;
    float *x = cb_floats(c, n, 1);
    *out = (cb_tensor){.t = {.name = "w", .type = DGM_TYPE_F32, .n_dims = 2, .shape = {r, cols},
                             .rows = r, .cols = cols, .data = x, .bytes = n * sizeof *x}};
    if (type != DGM_TYPE_I8) return;
    int8_t *q = take(n);
    float *scales = take((size_t)r * sizeof *scales);
    dgm_quantize_i8(x, r, cols, q, scales);
    out->scale = (dgm_tensor){.name = "w.scale", .type = DGM_TYPE_F32, .n_dims = 1, .shape = {r},
                              .rows = 1, .cols = r, .data = scales,
                              .bytes = (size_t)r * sizeof *scales};
    out->t.type = DGM_TYPE_I8;
    out->t.data = q;
    out->t.bytes = n;
    out->t.scale = &out->scale;
}

void cb_load(cb *c, cb_side *s, const dgm_linear_part *parts, int count, dgm_precision p,
             dgm_linear **out)
{
    dgm_error err;
    if (dgm_linear_load(s->backend, parts, count, cb_side_precision(s, p), out, &err) == DGM_OK) return;
    cb_fail(c, "%s", err.text);
    fprintf(stderr, "checkbackend: %s: %s\n", c->what, err.text);
    exit(1);
}

dgm_vector *cb_vector(cb *c, cb_side *s, const float *numbers, int r, int cols)
{
    dgm_vector *v = NULL;
    dgm_error err;
    if (dgm_vector_from(s->backend, numbers, r, cols, &v, &err) == DGM_OK) return v;
    fprintf(stderr, "checkbackend: %s: %s\n", c->what, err.text);
    exit(1);
}

// ---- running ------------------------------------------------------------------------------------

static bool seen_before(int row)
{
    for (int i = 0; i < row; i++)
        if (rows[i].check == rows[row].check) return true;
    return false;
}

// Whether the pattern names a function that the row's check covers.
static bool named(const char *pattern, int row)
{
    for (int i = 0; i < ROWS; i++)
        if (rows[i].check == rows[row].check && fnmatch(pattern, rows[i].name, 0) == 0) return true;
    return false;
}

// How many functions the row's check covers.
static int covers(int row)
{
    int n = 0;
    for (int i = 0; i < ROWS; i++) n += rows[i].check == rows[row].check;
    return n;
}

static void open_side(cb_side *s, const char *name)
{
    dgm_error err;
    if (dgm_backend_open(&s->backend, name, NULL, &err) == DGM_OK &&
        dgm_exec_open(s->backend, dgm_bytes_both(SCRATCH), &s->x, &err) == DGM_OK)
        return;
    fprintf(stderr, "checkbackend: %s\n", err.text);
    exit(2);
}

// ---- a team ---------------------------------------------------------------------------------------

typedef struct helpers {
    pthread_t threads[DGM_TEAM_HELPERS];
    int count;
    dgm_team *team;
    atomic_uint alarm;
} helpers;

static void *help(void *arg)
{
    helpers *h = arg;
    while (atomic_load(&h->alarm) == 0) dgm_team_help(h->team, &h->alarm, 0, dgm_team_patience);
    return NULL;
}

static void start_team(helpers *h, dgm_team *team, int count)
{
    dgm_team_least(0);
    h->team = team;
    while (h->count < count && pthread_create(&h->threads[h->count], NULL, help, h) == 0) h->count++;
    if (h->count == count) return;
    fprintf(stderr, "checkbackend: cannot start thread %d of %d\n", h->count + 1, count);
    exit(2);
}

static void stop_team(helpers *h)
{
    atomic_store(&h->alarm, 1);
    while (h->count > 0) pthread_join(h->threads[--h->count], NULL);
}

// team: helpers of the second side's worker.
static void compare_devices(const char *a, const char *b, uint64_t seed, const char *only, int team,
                            int *passed, int *failed)
{
    cb c = {.team = team > 0};
    helpers h = {.count = 0};
    open_side(&c.sides[0], a);
    open_side(&c.sides[1], b);
    if (team) start_team(&h, dgm_exec_team(c.sides[1].x), team);
    const dgm_backend_props *of[2];
    for (int i = 0; i < 2; i++) of[i] = dgm_backend_properties(c.sides[i].backend);
    const size_t kind = strcspn(of[0]->name, ":");
    c.one_kind = kind == strcspn(of[1]->name, ":") && strncmp(of[0]->name, of[1]->name, kind) == 0;
    const unsigned halves = 1u << DGM_PRECISION_F16 | 1u << DGM_PRECISION_BF16;
    c.precisions = (of[0]->precisions & of[1]->precisions) | (of[1]->precisions & halves);
    for (int i = 0; i < ROWS; i++) {
        if (seen_before(i) || (only && !named(only, i))) continue;
        c.what = rows[i].name;
        c.failed = false;
        c.rng = (dgm_rng){seed};
        cb_begin(&c, "start");
        rows[i].check(&c);
        *(c.failed ? failed : passed) += covers(i);
        if (c.failed) printf("     %s against %s, --seed %llu\n", b, a, (unsigned long long)seed);
    }
    give_back();
    stop_team(&h);
    if (team && !only && dgm_team_taken(h.team) == 0) {
        printf("FAIL: nobody helped\n");
        ++*failed;
    }
    CB_BOTH(&c, s)
    {
        dgm_exec_close(&s->x);
        dgm_backend_close(&s->backend);
        free(s->kept);
    }
    printf("%s and %s: %d functions\n", a, b, ROWS);
}

int main(int argc, char **argv)
{
    static const char *const levels[] = {"avx2", "avx512", "vnni", "amx", "neon", "dotprod", "i8mm"};
    const char *names[2] = {NULL, NULL}, *only = NULL;
    uint64_t seed = 1;
    int count = 0, passed = 0, failed = 0, team = 0;
    bool walk = false;
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--seed") == 0 && i + 1 < argc)
            seed = strtoull(argv[++i], NULL, 10);
        else if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            only = argv[++i];
        else if (strcmp(argv[i], "--team") == 0 && i + 1 < argc)
            team = atoi(argv[++i]);
        else if (strcmp(argv[i], "--levels") == 0)
            walk = true;
        else if (count < 2)
            names[count++] = argv[i];
    }
    if (team && count == 1) names[count++] = names[0];
    if ((!walk && count < 2) || team < 0 || team > DGM_TEAM_HELPERS) {
        fprintf(stderr, "usage: checkbackend A B [--seed N] [--only PATTERN] | --levels | A --team N\n");
        return 2;
    }
    if (!walk) compare_devices(names[0], names[1], seed, only, team, &passed, &failed);
    for (size_t i = 0; walk && i < sizeof levels / sizeof *levels; i++) {
        char name[32];
        dgm_backend *b = NULL;
        snprintf(name, sizeof name, "cpu:%s", levels[i]);
        if (dgm_backend_open(&b, name, NULL, NULL) != DGM_OK) continue; // not this machine
        dgm_backend_close(&b);
        compare_devices("cpu:c", name, seed, only, 0, &passed, &failed);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed ? 1 : 0;
}
