// SPDX-License-Identifier: MIT
// checkkernel: walks the ISA levels with the normal init function and runs every kernel's check.
//
//     checkkernel [--seed N] [--function PATTERN] [--bench] [--list]
//
// A kernel whose pointer is the one of the level below has been checked and is skipped. The last
// line is "N passed, M failed"; the exit status is 1 if something failed.
#define _GNU_SOURCE
#include <fnmatch.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "checkkernel/checkkernel.h"

// A gemm record counts as its run function.
static const struct row {
    const char *name, *family;
    void (*check)(ck *c);
    size_t offset; // of the pointer in the table
} rows[] = {
#define DGM_KERNEL(field, family) {#field, #family, check_##field, offsetof(dgm_kernels, field)},
#include "kernel/kernels.inc"
#undef DGM_KERNEL
};

enum { ROWS = sizeof rows / sizeof rows[0], GUARD = 256, SLOT_BYTES = 24 << 20 };

const int ck_sizes[] = {1,   2,   3,   4,   5,   6,   7,    8,    9,    10, 11, 12, 13, 14, 15,
                        16,  17,  18,  19,  20,  21,  22,   23,   24,   25, 26, 27, 28, 29, 30,
                        31,  32,  33,  34,  35,  36,  37,   38,   39,   40, 41, 42, 43, 44, 45,
                        46,  47,  48,  49,  50,  51,  52,   53,   54,   55, 56, 57, 58, 59, 60,
                        61,  62,  63,  64,  65,  66,  67,   68,   69,   70, 79, 80, 81, 96, 97,
                        127, 128, 129, 255, 256, 512, 1000, 2048, 4099, 0};

// ---- memory --------------------------------------------------------------------------------

static struct slot {
    unsigned char *base;  // SLOT_BYTES, then a page without access
    unsigned char *block; // taken block, NULL if none
    size_t size;
    size_t after; // guard bytes behind it
} slots[CK_SLOTS];

static void make_slots(void)
{
    const size_t page = (size_t)sysconf(_SC_PAGESIZE);
    for (int i = 0; i < CK_SLOTS; i++) {
        unsigned char *p = mmap(NULL, SLOT_BYTES + page, PROT_READ | PROT_WRITE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED || mprotect(p + SLOT_BYTES, page, PROT_NONE) != 0) {
            fprintf(stderr, "checkkernel: out of memory\n");
            exit(1);
        }
        slots[i].base = p;
    }
}

void ck_begin(ck *c, const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vsnprintf(c->where, sizeof c->where, fmt, args);
    va_end(args);
    for (int i = 0; i < CK_SLOTS; i++) slots[i].block = NULL;
}

void *ck_bytes(ck *c, int slot, size_t n, size_t align)
{
    struct slot *s = &slots[slot];
    if (n + 2 * GUARD + 64 > SLOT_BYTES) {
        fprintf(stderr, "checkkernel: %s: block of %zu bytes\n", c->where, n);
        exit(1);
    }
    // Either flush with the forbidden page (as far as alignment allows) or a little before it.
    size_t back = dgm_rng_below(&c->rng, 2) ? 0 : GUARD;
    uintptr_t at = (uintptr_t)s->base + SLOT_BYTES - n - back;
    s->block = (unsigned char *)(at & ~(uintptr_t)(align - 1));
    s->size = n;
    s->after = (size_t)(s->base + SLOT_BYTES - (s->block + n));
    memset(s->block - GUARD, 0xa5, GUARD + n + s->after);
    return s->block;
}

float *ck_floats(ck *c, int slot, size_t n)
{
    return ck_bytes(c, slot, n * sizeof(float), sizeof(float));
}

bool ck_guards(ck *c)
{
    for (int i = 0; i < CK_SLOTS; i++) {
        const struct slot *s = &slots[i];
        if (s->block == NULL) continue;
        for (size_t j = 1; j <= GUARD; j++)
            if (s->block[-(ptrdiff_t)j] != 0xa5)
                return ck_fail(c, "wrote %zu bytes before block %d", j, i);
        for (size_t j = 0; j < s->after; j++)
            if (s->block[s->size + j] != 0xa5)
                return ck_fail(c, "wrote %zu bytes behind block %d", j, i);
    }
    return true;
}

// ---- data and comparison -------------------------------------------------------------------

int ck_below(ck *c, int n)
{
    return (int)dgm_rng_below(&c->rng, (uint64_t)n);
}

float ck_uniform(ck *c, float low, float high)
{
    return low + (high - low) * (float)dgm_rng_unit(&c->rng);
}

static float special(ck *c)
{
    static const float values[] = {-INFINITY, INFINITY, NAN,   0.0f,    -0.0f,    3e38f,
                                   -3e38f,    1e-40f,   1e-3f, -1e-45f, 88.7229f, -87.4f};
    return values[ck_below(c, (int)(sizeof values / sizeof values[0]))];
}

void ck_fill(ck *c, float *x, size_t n, ck_kind kind)
{
    for (size_t i = 0; i < n; i++) {
        float v = ck_uniform(c, -1.0f, 1.0f);
        switch (kind) {
        case CK_WIDE:
            v *= 40.0f;
            break;
        case CK_DENORMAL:
            v *= ck_below(c, 4) ? 1e-39f : 0.0f;
            break;
        case CK_SPECIAL:
            if (ck_below(c, 8) == 0) v = special(c);
            break;
        case CK_MASKED:
            v = ck_below(c, 3) ? 10.0f * v : -INFINITY;
            break;
        case CK_UNIT:
        case CK_KINDS:
            break;
        }
        x[i] = v;
    }
}

float *ck_aligned(ck *c, int slot, size_t n)
{
    // Away from the forbidden page: a masked load that reaches into it is a slow microcode path.
    float *x = ck_bytes(c, slot, (n + 64) * sizeof(float), 64);
    ck_fill(c, x, n, CK_UNIT);
    return x;
}

bool ck_fail(ck *c, const char *fmt, ...)
{
    if (!c->failed) {
        va_list args;
        printf("FAIL %s_%s (%s): ", c->kernel, c->isa, c->where);
        va_start(args, fmt);
        vprintf(fmt, args);
        va_end(args);
        printf("\n");
    }
    c->failed = true;
    return false;
}

bool ck_same(ck *c, const char *what, const float *got, const float *want, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint32_t a, b;
        memcpy(&a, &got[i], 4);
        memcpy(&b, &want[i], 4);
        if (a != b && !(isnan(got[i]) && isnan(want[i])))
            return ck_fail(c, "%s[%zu] is %.9g (0x%08x), expected %.9g (0x%08x)", what, i,
                           (double)got[i], (unsigned)a, (double)want[i], (unsigned)b);
    }
    return true;
}

bool ck_same_weights(ck *c, const float *got, const float *want, int heads, int n)
{
    for (int h = 0; h < heads; h++) {
        const int at = h * dgm_attend_stride(n);
        if (!ck_same(c, "weights", got + at, want + at, (size_t)n)) return false;
    }
    return true;
}

bool ck_same_int(ck *c, const char *what, const int32_t *got, const int32_t *want, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (got[i] != want[i])
            return ck_fail(c, "%s[%zu] is %d, expected %d", what, i, (int)got[i], (int)want[i]);
    return true;
}

bool ck_near(ck *c, const char *what, double got, double want, double absolute, double relative)
{
    if ((isnan(got) && isnan(want)) || got == want) return true;
    if (fabs(got - want) <= absolute + relative * fabs(want)) return true;
    return ck_fail(c, "%s is %.9g, expected %.9g, difference %.3g", what, got, want, got - want);
}

// ---- benchmark -----------------------------------------------------------------------------

// Batches of growing length until one takes two milliseconds, then the fastest of five.
static struct {
    const char *label;
    int calls, left, batches;
    double start, best;
} timer;

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void ck_bench_begin(ck *c, const char *label)
{
    (void)c;
    timer.label = label;
    timer.calls = timer.left = 1;
    timer.batches = 0;
    timer.best = 1e9;
    timer.start = cpu_seconds();
}

bool ck_bench_next(ck *c)
{
    if (!c->bench || c->failed) return false;
    if (timer.left-- > 0) return true;
    const double used = cpu_seconds() - timer.start;
    if (used < 2e-3 && timer.batches == 0) {
        timer.calls *= 2;
    } else {
        if (used / timer.calls < timer.best) timer.best = used / timer.calls;
        if (++timer.batches == 5) {
            printf("     %-16s %-8s %-28s %12.1f ns\n", c->kernel, c->isa, timer.label,
                   1e9 * timer.best);
            return false;
        }
    }
    timer.left = timer.calls - 1;
    timer.start = cpu_seconds();
    return true;
}

// ---- running -------------------------------------------------------------------------------

static sigjmp_buf crash;
static volatile sig_atomic_t crash_signal;

static void on_signal(int number)
{
    crash_signal = number;
    siglongjmp(crash, 1);
}

static void catch_signals(void)
{
    static const int numbers[] = {SIGSEGV, SIGBUS, SIGILL, SIGFPE};
    struct sigaction action = {.sa_handler = on_signal};
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sigaction(numbers[i], &action, NULL);
}

// The pointer that decides whether two tables have the same kernel.
static void (*pointer_of(const dgm_kernels *k, const struct row *r))(void)
{
    void (*f)(void);
    if (strcmp(r->name, "gemm_f32") == 0) return (void (*)(void))k->gemm_f32.run;
    if (strcmp(r->name, "gemm_i8") == 0) return (void (*)(void))k->gemm_i8.run;
    if (strcmp(r->name, "gemm_i16") == 0) return (void (*)(void))k->gemm_i16.run;
    if (strcmp(r->name, "gemm_bf16") == 0) return (void (*)(void))k->gemm_bf16.run;
    memcpy(&f, (const char *)k + r->offset, sizeof f);
    return f;
}

typedef struct options {
    uint64_t seed;
    const char *pattern;
    bool bench, list;
} options;

static bool is_wanted(const struct row *r, const char *isa, const char *pattern)
{
    char name[96];
    snprintf(name, sizeof name, "%s_%s", r->name, isa);
    return pattern == NULL || fnmatch(pattern, r->name, 0) == 0 || fnmatch(pattern, name, 0) == 0;
}

// True if the kernel passed.
static bool check_row(const struct row *r, ck *c, const options *o)
{
    c->kernel = r->name;
    c->failed = false;
    c->bench = o->bench;
    c->rng.state = o->seed;
    snprintf(c->where, sizeof c->where, "before the first call");
    if (sigsetjmp(crash, 1) == 0)
        r->check(c);
    else
        ck_fail(c, "%s", strsignal(crash_signal));
    if (c->failed)
        printf("     again with: checkkernel --seed %llu --function %s_%s\n",
               (unsigned long long)o->seed, c->kernel, c->isa);
    return !c->failed;
}

static options parse(int argc, char **argv)
{
    options o = {.seed = 1};
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        if (strcmp(argv[i], "--bench") == 0) {
            o.bench = true;
        } else if (strcmp(argv[i], "--list") == 0) {
            o.list = true;
        } else if (value && strcmp(argv[i], "--seed") == 0) {
            o.seed = strtoull(argv[++i], NULL, 10);
        } else if (value && (strcmp(argv[i], "--function") == 0 || strcmp(argv[i], "-f") == 0)) {
            o.pattern = argv[++i];
        } else {
            const bool help = strcmp(argv[i], "--help") == 0;
            fprintf(help ? stdout : stderr,
                    "usage: checkkernel [--seed N] [--function PATTERN] [--bench] [--list]\n"
                    "example: checkkernel --bench --function 'softmax_*'\n");
            exit(help ? 0 : 2);
        }
    }
    return o;
}

#if defined(__x86_64__)
// The sources of AMX on tiles in software (soft/), with the rest of the level below.
static void use_soft_tiles(dgm_kernels *k)
{
    ck_soft_gemm_i8(k);
    ck_soft_gemm_bf16(k);
}
#endif

int main(int argc, char **argv)
{
    enum { VNNI = DGM_CPU_AVX2 | DGM_CPU_AVX512 | DGM_CPU_AVX512_VNNI };
    static const struct {
        const char *name;
        unsigned flags;
        void (*more)(dgm_kernels *k); // NULL: nothing
    } levels[] = {{"c", DGM_CPU_C, NULL},
                  {"avx2", DGM_CPU_AVX2, NULL},
                  {"avx512", DGM_CPU_AVX2 | DGM_CPU_AVX512, NULL},
                  {"vnni", VNNI, NULL},
#if defined(__x86_64__)
                  {"soft-amx", VNNI, use_soft_tiles},
#endif
                  {"avx512bf16", VNNI | DGM_CPU_AVX512_BF16, NULL},
                  {"amx", VNNI | DGM_CPU_AMX_INT8, NULL},
                  {"amx-bf16", VNNI | DGM_CPU_AMX_INT8 | DGM_CPU_AMX_BF16, NULL},
                  {"neon", DGM_CPU_NEON, NULL},
                  {"dotprod", DGM_CPU_NEON | DGM_CPU_DOTPROD, NULL},
                  {"i8mm", DGM_CPU_NEON | DGM_CPU_DOTPROD | DGM_CPU_I8MM, NULL}};
    const options o = parse(argc, argv);
    const unsigned have = dgm_cpu_detect();
    dgm_kernels ref, below, now;
    char text[256], tried[128] = "";
    int passed = 0, failed = 0;
    setvbuf(stdout, NULL, _IOLBF, 0);
    make_slots();
    catch_signals();
    dgm_kernels_init(&ref, DGM_CPU_C);
    for (size_t l = 0; l < sizeof levels / sizeof levels[0]; l++) {
        if ((have & levels[l].flags) != levels[l].flags) continue;
        dgm_kernels_init(&now, levels[l].flags);
        if (levels[l].more) levels[l].more(&now);
        int checked = 0;
        for (int i = 0; i < ROWS; i++) {
            if (l > 0 && pointer_of(&now, &rows[i]) == pointer_of(&below, &rows[i])) continue;
            if (!is_wanted(&rows[i], levels[l].name, o.pattern)) continue;
            checked++;
            if (o.list) {
                printf("%s_%s\n", rows[i].name, levels[l].name);
                continue;
            }
            ck c = {.ref = &ref, .now = &now, .isa = levels[l].name, .is_reference = l == 0};
            if (check_row(&rows[i], &c, &o))
                passed++;
            else
                failed++;
        }
        if (checked && !o.list) {
            snprintf(tried + strlen(tried), sizeof tried - strlen(tried), " %s", levels[l].name);
            printf("%s: %d kernels checked (%s)\n", levels[l].name, checked,
                   dgm_kernels_describe(&now, text, sizeof text));
        }
        if (!levels[l].more) below = now;
    }
    if (o.list) return 0;
    printf("ISA levels tried:%s; seed %llu\n", tried, (unsigned long long)o.seed);
    printf("%d passed, %d failed\n", passed, failed);
    return failed > 0;
}
