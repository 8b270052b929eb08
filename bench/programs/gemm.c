// SPDX-License-Identifier: MIT
// bench/gemm: our packed products against the sgemm of OpenBLAS and oneDNN, one
// thread.
//
//     build/bench/gemm [--quick] [--csv FILE] [--json] [--cpu LEVEL] [--m LIST]
//     [--kn KxN]
//                      [--type NAME] [--rounds N]
//
// One cell is C[m, n] = A[m, k] . W^T with m rows of activations and a weight
// matrix as a model stores it. Ours runs on W packed once; a rival gets W as
// [n, k] (NT) and as [k, n] (NN), and its better layout counts. All contenders
// of a cell take turns, each turn long enough to be timed (about 2 ms, same
// number of calls in every round); the ratio of a round is rival's time / our
// time against the rival with the lowest median, the table shows its median and
// quartiles. Time is CPU time of the thread, so that other programs on the
// machine disturb less. Matrices below 8 MiB exist in several copies and each
// round uses the next one: where a copy happens to lie in physical memory
// decides up to 10 % when the matrix is as large as L2. Every contender's
// result is compared with a sum in double precision first.
//
// This is the table of f32; gemm_int.c has those of the integer types and of bf16, with
// their bounds. A CSV file has one table after the other, each below its own
// line of names.
#define _GNU_SOURCE
#include <cblas.h>
#include <math.h>
#include <oneapi/dnnl/dnnl.h>
#include <unistd.h>

#include "base/clock.h"
#include "gemm.h"
#include "rivals.h"

enum { MAX_CONTENDERS = 6 };

typedef struct cell {
    int m, k, n;
    const dgm_kernels *kernels;
    float *a;         // [m, k]
    float *c;         // [m, n]
    int copies, copy; // how many there are, and the one in use
    struct weights {
        float *w;     // [n, k]
        float *wt;    // [k, n]
        void *packed; // W, packed by our kernels
    } weights[MAX_COPIES];
} cell;

typedef struct contender {
    const char *name;
    void (*run)(cell *c);
    unsigned rival; // its bit; 0: ours
} contender;

unsigned gemm_rivals_gone;

typedef struct type {
    const char *name;
    void (*prepare)(cell *c);       // packs the copy in use
    contender list[MAX_CONTENDERS]; // the first one is ours
} type;

// ---- f32
// -----------------------------------------------------------------------------------

static void f32_prepare(cell *c)
{
    const struct weights *w = &c->weights[c->copy];
    c->kernels->gemm_f32.pack(w->packed, w->w, c->n, c->k, c->k);
}

static void f32_ours(cell *c)
{
    const dgm_gemm_f32_args args = {.c = c->c,
                                    .a = c->a,
                                    .packed = c->weights[c->copy].packed,
                                    .m = c->m,
                                    .n = c->n,
                                    .k = c->k,
                                    .n_begin = 0,
                                    .n_end = c->n,
                                    .lda = c->k,
                                    .ldc = c->n,
                                    .ldr = c->n,
                                    .act = DGM_ACT_NONE};
    c->kernels->gemm_f32.run(&args);
}

static void f32_openblas_nt(cell *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, c->m, c->n, c->k, 1.0f, c->a, c->k,
                c->weights[c->copy].w, c->k, 0.0f, c->c, c->n);
}

static void f32_openblas_nn(cell *c)
{
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, c->m, c->n, c->k, 1.0f, c->a, c->k,
                c->weights[c->copy].wt, c->n, 0.0f, c->c, c->n);
}

static void f32_onednn_nt(cell *c)
{
    dnnl_sgemm('N', 'T', c->m, c->n, c->k, 1.0f, c->a, c->k, c->weights[c->copy].w, c->k, 0.0f,
               c->c, c->n);
}

static void f32_onednn_nn(cell *c)
{
    dnnl_sgemm('N', 'N', c->m, c->n, c->k, 1.0f, c->a, c->k, c->weights[c->copy].wt, c->n, 0.0f,
               c->c, c->n);
}

static const type types[] = {
    {"f32",
     f32_prepare,
     {{"ours", f32_ours, 0},
      {"openblas_nt", f32_openblas_nt, 1u << RIVAL_OPENBLAS},
      {"openblas_nn", f32_openblas_nn, 1u << RIVAL_OPENBLAS},
      {"onednn_nt", f32_onednn_nt, 1u << RIVAL_ONEDNN},
      {"onednn_nn", f32_onednn_nn, 1u << RIVAL_ONEDNN}}},
};

// ---- measuring
// -----------------------------------------------------------------------------

typedef struct result {
    double gflops[MAX_CONTENDERS]; // by median time; 0 of a rival that cannot run
    double ratio[3];               // lower quartile, median, upper quartile
    int rival;                     // the fastest one; 0: none can run
} result;

// Largest difference to sums in double, as a share of the sum of absolute
// products; checks up to 200 elements.
static double worst_error(const cell *c)
{
    dgm_rng rng = {1};
    double worst = 0;
    for (int t = 0; t < 200; t++) {
        const size_t r = dgm_rng_below(&rng, (uint64_t)c->m),
                     j = dgm_rng_below(&rng, (uint64_t)c->n);
        double sum = 0, size = 1e-30;
        for (size_t i = 0; i < (size_t)c->k; i++) {
            const double p =
                (double)c->a[r * (size_t)c->k + i] * c->weights[0].w[j * (size_t)c->k + i];
            sum += p;
            size += fabs(p);
        }
        const double e = fabs(c->c[r * (size_t)c->n + j] - sum) / size;
        if (e > worst) worst = e;
    }
    return worst;
}

static void fill(cell *c)
{
    dgm_rng rng = {2};
    for (size_t i = 0; i < (size_t)c->m * (size_t)c->k; i++)
        c->a[i] = (float)(dgm_rng_unit(&rng) - 0.5);
    for (size_t j = 0; j < (size_t)c->n; j++)
        for (size_t i = 0; i < (size_t)c->k; i++) {
            const float x = (float)(dgm_rng_unit(&rng) - 0.5);
            for (int q = 0; q < c->copies; q++) {
                c->weights[q].w[j * (size_t)c->k + i] = x;
                c->weights[q].wt[i * (size_t)c->n + j] = x;
            }
        }
}

static int count_contenders(const type *t)
{
    int n = 0;
    while (n < MAX_CONTENDERS && t->list[n].run) n++;
    return n;
}

static bool takes_part(const contender *one)
{
    return !(one->rival & gemm_rivals_gone);
}

// Seconds per call of each contender in each round.
static void time_rounds(const type *t, cell *c, const options *o, int contenders,
                        double times[MAX_CONTENDERS][MAX_ROUNDS])
{
    int calls[MAX_CONTENDERS];
    c->copy = 0;
    for (int i = 0; i < contenders; i++) {
        for (int round = 0; round < o->rounds; round++) times[i][round] = INFINITY;
        if (!takes_part(&t->list[i])) continue;
        memset(c->c, 0xff, (size_t)c->m * (size_t)c->n * sizeof(float));
        t->list[i].run(c);
        const double e = worst_error(c);
        if (!(e < 1e-5)) {
            fprintf(stderr, "gemm: %s is wrong: m %d k %d n %d error %g\n", t->list[i].name, c->m,
                    c->k, c->n, e);
            exit(1);
        }
        double best = 1e9;
        for (int j = 0; j < 3; j++) {
            const double start = cpu_time();
            t->list[i].run(c);
            const double used = cpu_time() - start;
            if (used < best) best = used;
        }
        calls[i] = best < o->turn ? (int)(o->turn / (best + 1e-9)) + 1 : 1;
    }
    for (int round = 0; round < o->rounds; round++)
        for (int s = 0; s < contenders; s++) {
            const int i = (s + round) % contenders;
            if (!takes_part(&t->list[i])) continue;
            c->copy = round % c->copies;
            t->list[i].run(c); // brings its own weights into the cache
            const double start = cpu_time();
            for (int j = 0; j < calls[i]; j++) t->list[i].run(c);
            times[i][round] = (cpu_time() - start) / calls[i];
        }
}

static result measure(const type *t, cell *c, const options *o)
{
    static double times[MAX_CONTENDERS][MAX_ROUNDS], scratch[MAX_ROUNDS];
    const int contenders = count_contenders(t);
    result r = {.rival = 0};
    for (c->copy = 0; c->copy < c->copies; c->copy++) t->prepare(c);
    time_rounds(t, c, o, contenders, times);
    double best = INFINITY;
    for (int i = 0; i < contenders; i++) {
        memcpy(scratch, times[i], sizeof scratch);
        const double median = quantile(scratch, o->rounds, 0.5);
        r.gflops[i] = 2e-9 * c->m * c->k * c->n / median;
        if (i > 0 && median < best) {
            best = median;
            r.rival = i;
        }
    }
    for (int i = 0; i < o->rounds; i++) scratch[i] = times[r.rival][i] / times[0][i];
    for (int i = 0; i < 3 && r.rival; i++) r.ratio[i] = quantile(scratch, o->rounds, 0.25 * (i + 1));
    return r;
}

// ---- output
// --------------------------------------------------------------------------------

static void cpu_model(char *text, size_t size)
{
    char line[256];
    snprintf(text, size, "unknown");
    FILE *f = fopen("/proc/cpuinfo", "r");
    if (f == NULL) return;
    while (fgets(line, sizeof line, f)) {
        if (strncmp(line, "model name", 10) != 0) continue;
        const char *colon = strchr(line, ':');
        if (colon) snprintf(text, size, "%.*s", (int)strcspn(colon + 2, "\n"), colon + 2);
        break;
    }
    fclose(f);
}

// The checkout that the program is run in.
static void commit_id(char *text, size_t size)
{
    FILE *f = popen("git rev-parse --short HEAD 2>/dev/null", "r");
    snprintf(text, size, "unknown");
    if (f == NULL) return;
    if (fgets(text, (int)size, f) == NULL) snprintf(text, size, "unknown");
    text[strcspn(text, "\n")] = '\0';
    pclose(f);
}

static void describe(FILE *f, const char *prefix, const dgm_kernels *k)
{
    char text[256];
    const dnnl_version_t *v = dnnl_version();
    cpu_model(text, sizeof text);
    fprintf(f, "%scpu: %s\n", prefix, text);
    fprintf(f, "%skernels: %s\n", prefix, dgm_kernels_describe(k, text, sizeof text));
    commit_id(text, sizeof text);
    fprintf(f, "%sdragoman: %s, commit %s\n", prefix, DGM_VERSION, text);
    const char *limit = getenv("ONEDNN_MAX_CPU_ISA");
    fprintf(f, "%srivals: %s [%s]; oneDNN %d.%d.%d%s%s; one thread each\n", prefix,
            openblas_get_config(), openblas_get_corename(), v->major, v->minor, v->patch,
            limit ? " at most " : "", limit ? limit : "");
}

static void print_row(const options *o, const type *t, const cell *c, const result *r, FILE *csv)
{
    const int contenders = count_contenders(t);
    const char *rival = r->rival ? t->list[r->rival].name : "none";
    if (o->json) {
        printf("{\"type\": \"%s\", \"m\": %d, \"k\": %d, \"n\": %d, \"gops\": %.2f, "
               "\"rival\": \"%s\", \"rival_gops\": %.2f, \"ratio\": %.4f, "
               "\"ratio_q1\": %.4f, "
               "\"ratio_q3\": %.4f}\n",
               t->name, c->m, c->k, c->n, r->gflops[0], rival, r->rival ? r->gflops[r->rival] : 0,
               r->ratio[1], r->ratio[0], r->ratio[2]);
    } else {
        printf("%-5s %3d %5d %6d", t->name, c->m, c->k, c->n);
        for (int i = 0; i < contenders; i++) printf(" %11.1f", r->gflops[i]);
        printf("  %6.3f [%.3f %.3f] %s\n", r->ratio[1], r->ratio[0], r->ratio[2], rival);
    }
    fflush(stdout);
    if (csv)
        fprintf(csv, "%s,%d,%d,%d,%.2f,%s,%.2f,%.4f,%.4f,%.4f\n", t->name, c->m, c->k, c->n,
                r->gflops[0], rival, r->rival ? r->gflops[r->rival] : 0, r->ratio[1], r->ratio[0], r->ratio[2]);
}

static double run_type(const type *t, const options *o, const dgm_kernels *k, FILE *csv)
{
    double lowest = 1e9;
    if (!o->json) {
        printf("%-5s %3s %5s %6s", "type", "m", "k", "n");
        for (int i = 0; i < count_contenders(t); i++) printf(" %11s", t->list[i].name);
        printf("  ratio [quartiles] faster rival\n");
    }
    for (size_t s = 0; s < sizeof sizes_kn / sizeof sizes_kn[0]; s++) {
        char name[32];
        cell c = {.m = 64, .k = sizes_kn[s][0], .n = sizes_kn[s][1], .kernels = k};
        snprintf(name, sizeof name, "%dx%d", c.k, c.n);
        if (o->kn && strcmp(o->kn, name) != 0) continue;
        const size_t weights = (size_t)c.k * (size_t)(c.n + DGM_GEMM_COLUMNS) * sizeof(float);
        c.copies = weights < ((size_t)8 << 20) ? MAX_COPIES : 1;
        c.a = allocate((size_t)c.m * (size_t)c.k * sizeof(float));
        c.c = allocate((size_t)c.m * (size_t)c.n * sizeof(float));
        for (int i = 0; i < c.copies; i++)
            c.weights[i] =
                (struct weights){allocate(weights), allocate(weights), allocate(weights)};
        fill(&c);
        for (size_t i = 0; i < sizeof sizes_m / sizeof sizes_m[0]; i++) {
            if (!is_wanted(o->m, sizes_m[i])) continue;
            if (o->quick && sizes_m[i] != 1 && sizes_m[i] != 8 && sizes_m[i] != 64) continue;
            c.m = sizes_m[i];
            const result r = measure(t, &c, o);
            print_row(o, t, &c, &r, csv);
            if (r.rival && r.ratio[1] < lowest) lowest = r.ratio[1];
        }
        free(c.a);
        free(c.c);
        for (int i = 0; i < c.copies; i++) {
            free(c.weights[i].w);
            free(c.weights[i].wt);
            free(c.weights[i].packed);
        }
    }
    return lowest;
}

static void usage(int status)
{
    fprintf(status ? stderr : stdout,
            "usage: gemm [--quick] [--csv FILE] [--json] [--cpu LEVEL] [--m 1,8] "
            "[--kn 512x512]\n"
            "            [--type f32|u8i8|i16|bf16] [--rounds N]\n"
            "example: gemm --csv bench/results/gemm.csv\n");
    exit(status);
}

static options parse(int argc, char **argv)
{
    options o = {.rounds = 0, .turn = 2e-3};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--help") == 0)
            usage(0);
        else if (strcmp(argv[i], "--quick") == 0)
            o.quick = true;
        else if (strcmp(argv[i], "--json") == 0)
            o.json = true;
        else if (value == NULL)
            usage(2);
        else if (strcmp(argv[i], "--csv") == 0)
            o.csv = argv[++i];
        else if (strcmp(argv[i], "--cpu") == 0)
            o.cpu = argv[++i];
        else if (strcmp(argv[i], "--m") == 0)
            o.m = argv[++i];
        else if (strcmp(argv[i], "--kn") == 0)
            o.kn = argv[++i];
        else if (strcmp(argv[i], "--type") == 0)
            o.type = argv[++i];
        else if (strcmp(argv[i], "--rounds") == 0)
            o.rounds = atoi(argv[++i]);
        else
            usage(2);
    }
    if (o.rounds <= 0) o.rounds = o.quick ? 5 : 21;
    if (o.rounds > MAX_ROUNDS) o.rounds = MAX_ROUNDS;
    return o;
}

static void run_f32(const options *o, const dgm_kernels *k, FILE *csv)
{
    double lowest = 1e9;
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        if (o->type && strcmp(o->type, types[i].name) != 0) continue;
        if (csv) fprintf(csv, "type,m,k,n,gops,rival,rival_gops,ratio,ratio_q1,ratio_q3\n");
        const double low = run_type(&types[i], o, k, csv);
        if (low < lowest) lowest = low;
    }
    if (!o->json && lowest < 1e9) printf("lowest median ratio: %.3f\n", lowest);
}

static void run_narrow(const options *o, const dgm_kernels *k, FILE *csv)
{
    static const char *const names[] = {"u8i8", "i16", "bf16"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        if (o->type && strcmp(o->type, names[i]) != 0) continue;
        if (csv) gemm_int_csv_head(csv);
        const bool ok = gemm_int_run(names[i], o, k, csv);
        if (!o->json) printf("%s: %s\n", names[i], ok ? "every cell ok" : "see the cells with --");
    }
}

static void small_openblas(void)
{
    static float a[64], w[64], c[64];
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, 8, 8, 8, 1.0f, a, 8, w, 8, 0.0f, c, 8);
}

int main(int argc, char **argv)
{
    const options o = parse(argc, argv);
    const char *cpu = o.cpu ? o.cpu : getenv("DRAGOMAN_CPU");
    unsigned flags;
    dgm_error err;
    dgm_kernels k;
    rival_probes probes = {small_openblas, gemm_int_rival_f32, gemm_int_rival};
    gemm_rivals_gone = rivals_start(cpu, argv, openblas_get_corename(), probes);
    openblas_set_num_threads(1);
    if (dgm_cpu_limit(cpu, &flags, &err) != DGM_OK) {
        fprintf(stderr, "gemm: %s\n", err.text);
        return 2;
    }
    dgm_kernels_init(&k, flags);
    FILE *csv = NULL;
    if (o.csv && (csv = fopen(o.csv, "w")) == NULL) {
        fprintf(stderr, "gemm: cannot write '%s'\n", o.csv);
        return 1;
    }
    describe(o.json ? stderr : stdout, "", &k);
    if (csv) describe(csv, "# ", &k);
    run_f32(&o, &k, csv);
    run_narrow(&o, &k, csv);
    if (csv) fclose(csv);
    return 0;
}
