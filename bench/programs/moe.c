// SPDX-License-Identifier: MIT
// bench/moe [--width D] [--ffn F] [--experts E] [--layers N] [--top K] [--steps S] [--folder DIR]: what a
// mixture of experts costs beside a dense model of equal active size.
//
// Writes two random i8 models (one encoder and N decoder layers; experts in all of them, or in none),
// steps both in turn and reports medians: a decoder step at beams 1 and 5; the encoder on a sentence
// of 30 tokens against the bound of the bytes read at the speed of this machine's memory: with the
// decoder's keys and values, which are made with it, without them, and its mixture alone (gate, sorting,
// products); resident memory without the workspace against dense part
// + experts touched, and how many experts that were. Random gates spread rows evenly: the worst case
// for memory. The whole encoder cannot reach the bound: 30 rows through its dense matrices, and those
// of the decoder's keys and values, are bound by arithmetic. Parts are told apart by the shapes of their
// products, so N must not be F / 2 D.
//
// Output: a table, and CSV lines beginning with "csv," (what, value). Timed on one thread.
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/meter.h"
#include "backend/ops.h"
#include "base/clock.h"
#include "base/mem.h"
#include "model/model.h"

enum { VOCABULARY = 256, SENTENCE = 30, MOST_STEPS = 4000 };

typedef struct shape {
    int d, f, experts, layers, top, steps;
    const char *folder;
} shape;

static void check(dgm_status st, const dgm_error *err)
{
    if (st == DGM_OK) return;
    fprintf(stderr, "bench/moe: %s\n", err->text);
    exit(1);
}

// ---- models -----------------------------------------------------------------------------------

static dgm_status noise_i8(void *arg, void *out, size_t bytes, dgm_error *err)
{
    uint64_t x = 88172645463325252ull + (uint64_t)(uintptr_t)arg * 7919u;
    (void)err;
    for (size_t i = 0; i < bytes; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        ((int8_t *)out)[i] = (int8_t)((int)(x >> 40) % 127);
    }
    return DGM_OK;
}

static dgm_status noise_f32(void *arg, void *out, size_t bytes, dgm_error *err)
{
    uint64_t x = 88172645463325252ull + (uint64_t)(uintptr_t)arg * 104729u;
    (void)err;
    for (size_t i = 0; i < bytes / sizeof(float); i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        ((float *)out)[i] = (float)((int)(x >> 40) % 1000 - 500) / 2000.0f;
    }
    return DGM_OK;
}

static dgm_status constant(void *arg, void *out, size_t bytes, dgm_error *err)
{
    float v = *(const float *)arg;
    (void)err;
    for (size_t i = 0; i < bytes / sizeof(float); i++) ((float *)out)[i] = v;
    return DGM_OK;
}

static uintptr_t seed;

static void matrix(dgm_gguf_writer *w, const char *name, int rows, int cols)
{
    static float scale = 1.0f / 4096;
    char companion[160];
    const int dims[2] = {rows, cols};
    dgm_gguf_add_produced(w, name, DGM_TYPE_I8, 2, dims, noise_i8, (void *)++seed);
    snprintf(companion, sizeof companion, "%s.scale", name);
    dgm_gguf_add_produced(w, companion, DGM_TYPE_F32, 1, &rows, constant, &scale);
}

static void norm(dgm_gguf_writer *w, const char *name, int d)
{
    static float one = 1;
    dgm_gguf_add_produced(w, name, DGM_TYPE_F32, 1, &d, constant, &one);
}

static void layer(dgm_gguf_writer *w, const char *p, const shape *s, bool decoder, bool moe)
{
    static const char *const parts[] = {"self.q", "self.k", "self.v", "self.o",
                                        "cross.q", "cross.k", "cross.v", "cross.o"};
    char name[128];
    for (int i = 0; i < (decoder ? 8 : 4); i++) {
        snprintf(name, sizeof name, "%s.%s.weight", p, parts[i]);
        matrix(w, name, s->d, s->d);
    }
    for (int i = 0; i < (decoder ? 3 : 2); i++) {
        static const char *const norms[] = {"self", "ffn", "cross"};
        snprintf(name, sizeof name, "%s.%s.norm.weight", p, norms[i]);
        norm(w, name, s->d);
    }
    for (int i = 0; i < (moe ? s->experts : 1); i++) {
        char part[64];
        if (moe) snprintf(part, sizeof part, "moe.%d", i);
        else snprintf(part, sizeof part, "ffn");
        snprintf(name, sizeof name, "%s.%s.in.weight", p, part);
        matrix(w, name, s->f, s->d);
        snprintf(name, sizeof name, "%s.%s.out.weight", p, part);
        matrix(w, name, s->d, s->f);
    }
    if (!moe) return;
    const int gate[2] = {s->experts, s->d};
    snprintf(name, sizeof name, "%s.moe.gate.weight", p);
    dgm_gguf_add_produced(w, name, DGM_TYPE_F32, 2, gate, noise_f32, (void *)++seed);
}

static void write_model(const shape *s, bool moe, const char *path)
{
    dgm_gguf_writer *w = NULL;
    dgm_error err = {{0}};
    static char words[VOCABULARY][8];
    const char *list[VOCABULARY];
    char name[32];
    check(dgm_gguf_writer_open(&w, &err), &err);
    for (int i = 0; i < VOCABULARY; i++) {
        snprintf(words[i], sizeof words[i], "w%d", i);
        list[i] = words[i];
    }
    const char *k = "dragoman.transformer.";
    const struct { const char *key; int value; } numbers[] = {
        {"d_model", s->d}, {"heads", s->d / 64}, {"ffn", s->f},
        {"encoder_layers", 1}, {"decoder_layers", s->layers}};
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", "transformer");
    dgm_gguf_set_string(w, "dragoman.source.vocab.kind", "words");
    dgm_gguf_set_u32(w, "dragoman.source.vocab.size", VOCABULARY);
    dgm_gguf_set_strings(w, "dragoman.source.vocab.words", list, VOCABULARY);
    dgm_gguf_set_string(w, "dragoman.source.vocab.tokenizer", "none");
    dgm_gguf_set_i32(w, "dragoman.source.eos", 0);
    dgm_gguf_set_i32(w, "dragoman.source.unk", 1);
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
        char key[64];
        snprintf(key, sizeof key, "%s%s", k, numbers[i].key);
        dgm_gguf_set_u32(w, key, (uint32_t)numbers[i].value);
    }
    dgm_gguf_set_string(w, "dragoman.transformer.norm", "pre");
    dgm_gguf_set_string(w, "dragoman.transformer.activation", "relu");
    dgm_gguf_set_string(w, "dragoman.transformer.positions", "sinusoid");
    if (moe) {
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.experts", (uint32_t)s->experts);
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.top", (uint32_t)s->top);
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.encoder_every", 1);
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.decoder_every", 1);
    }
    seed = 0;
    matrix(w, "src.embed", VOCABULARY, s->d);
    layer(w, "enc.0", s, false, moe);
    for (int i = 0; i < s->layers; i++) {
        snprintf(name, sizeof name, "dec.%d", i);
        layer(w, name, s, true, moe);
    }
    norm(w, "enc.norm.weight", s->d);
    norm(w, "dec.norm.weight", s->d);
    check(dgm_gguf_write(w, path, &err), &err);
    dgm_gguf_writer_close(&w);
}

// ---- measuring --------------------------------------------------------------------------------

typedef struct side {
    dgm_gguf *file;
    dgm_backend *backend;
    dgm_model *model;
    dgm_exec *exec;
    dgm_state *state;
    dgm_bytes workspace;
    int32_t slot, rows[8];
    double times[MOST_STEPS];
} side;

static void open_side(side *m, const char *path)
{
    dgm_error err = {{0}};
    const dgm_limits limits = {.slots = 2, .rows = 8, .source = SENTENCE, .target = 256};
    check(dgm_gguf_open(&m->file, path, &err), &err);
    check(dgm_backend_open(&m->backend, "cpu", getenv("DRAGOMAN_CPU"), &err), &err);
    check(dgm_model_load(&m->model, m->backend, m->file, DGM_PRECISION_I8, &err), &err);
    m->workspace = dgm_state_bytes(m->model, &limits);
    check(dgm_exec_open(m->backend, m->workspace, &m->exec, &err), &err);
    check(dgm_state_open(m->model, m->exec, &limits, &m->state, &err), &err);
}

static void close_side(side *m)
{
    dgm_state_close(&m->state);
    dgm_exec_close(&m->exec);
    dgm_model_free(&m->model);
    dgm_backend_close(&m->backend);
    dgm_gguf_close(&m->file);
}

static unsigned random_token(unsigned *x)
{
    *x = *x * 1664525u + 1013904223u;
    return 2 + (*x >> 8) % (VOCABULARY - 2);
}

static double encode(side *m, unsigned *x)
{
    int32_t ids[SENTENCE];
    dgm_error err = {{0}};
    for (int i = 0; i < SENTENCE; i++) ids[i] = (int32_t)random_token(x);
    const dgm_source source = {ids, SENTENCE};
    double begin = dgm_thread_time();
    check(dgm_encode(m->state, 1, &source, &m->slot, &err), &err);
    return dgm_thread_time() - begin;
}

static void leave(side *m)
{
    dgm_retain(m->state, 0, NULL);
    dgm_release(m->state, 1, &m->slot);
}

static double one_step(side *m, int beam, bool first, unsigned *x)
{
    dgm_step_row steps[8];
    dgm_error err = {{0}};
    int32_t next[8];
    for (int i = 0; i < beam; i++)
        steps[i] = (dgm_step_row){m->rows[first ? 0 : i], {(int32_t)random_token(x), DGM_NO_TOKEN}};
    dgm_step_result out = {.rows = next};
    double begin = dgm_thread_time();
    check(dgm_step(m->state, beam, steps, &out, &err), &err);
    double time = dgm_thread_time() - begin;
    memcpy(m->rows, next, sizeof next);
    dgm_retain(m->state, beam, m->rows);
    return time;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double median(double *values, int n)
{
    qsort(values, (size_t)n, sizeof *values, compare);
    return values[n / 2];
}

// Both sides in turn, sentences of 20 steps.
static void time_steps(side *dense, side *moe, int beam, int steps)
{
    unsigned x = 5, y = 5;
    side *const sides[2] = {dense, moe};
    for (int done = 0; done < steps; done += 20)
        for (int k = 0; k < 2; k++) {
            side *m = sides[k];
            unsigned *seed_of = k ? &y : &x;
            dgm_error err = {{0}};
            encode(m, seed_of);
            check(dgm_start(m->state, 1, &m->slot, m->rows, &err), &err);
            for (int i = 0; i < 20; i++) m->times[done + i] = one_step(m, beam, i == 0, seed_of);
            leave(m);
        }
    double a = median(dense->times, steps), b = median(moe->times, steps);
    printf("decoder step, beam %d: dense %.3f ms, experts %.3f ms, ratio %.3f\n", beam, a * 1e3, b * 1e3, b / a);
    printf("csv,step_beam%d_dense_ms,%.4f\ncsv,step_beam%d_moe_ms,%.4f\ncsv,step_beam%d_ratio,%.4f\n", beam,
           a * 1e3, beam, b * 1e3, beam, b / a);
}

// Bytes a second that one thread reads from memory.
static double read_speed(void)
{
    enum { BYTES = 512 << 20 };
    uint64_t *block = dgm_pages_reserve(BYTES), sum = 0;
    double best = 0;
    if (!block) exit(1);
    memset(block, 1, BYTES);
    for (int round = 0; round < 5; round++) {
        double begin = dgm_thread_time();
        for (size_t i = 0; i < BYTES / 8; i += 8)
            sum += block[i] ^ block[i + 1] ^ block[i + 2] ^ block[i + 3] ^ block[i + 4] ^ block[i + 5] ^
                   block[i + 6] ^ block[i + 7];
        double speed = BYTES / (dgm_thread_time() - begin);
        if (speed > best) best = speed;
    }
    if (sum == 42) puts("");
    dgm_pages_release(block, BYTES);
    return best;
}

static double resident(void)
{
    long pages = 0, whole;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%ld %ld", &whole, &pages) != 2) pages = 0;
    if (f) fclose(f);
    return (double)pages * (double)sysconf(_SC_PAGESIZE);
}

// Seconds of the parts of an encoder.
typedef struct parts {
    double experts, gate, dense, rest; // products of experts; gate, rounding, rows moved; other products
    double keys;                       // of which of the decoder's keys and values
    double bytes, key_bytes;           // of experts; of keys and values
} parts;

static parts count_parts(const shape *s, const dgm_meter *meter)
{
    parts p = {0};
    for (int r = 0; r < meter->count; r++) {
        const dgm_meter_row *row = &meter->rows[r];
        bool linear = row->work == DGM_WORK_LINEAR;
        bool own = linear && ((row->n == s->f && row->k == s->d) || (row->n == s->d && row->k == s->f));
        if (own) p.bytes += (double)row->weight_bytes;
        if (linear && row->n == 2 * s->layers * s->d) {
            p.keys += row->seconds;
            p.key_bytes += (double)row->weight_bytes;
        }
        if (own) p.experts += row->seconds;
        else if (linear) p.dense += row->seconds;
        else if (row->work == DGM_WORK_QUANTIZE || row->work == DGM_WORK_ROWS) p.gate += row->seconds;
        else p.rest += row->seconds;
    }
    return p;
}

static void time_encoder(side *moe, const shape *s, double speed)
{
    enum { TIMES = 40 };
    double times[TIMES], shares[TIMES], bytes = 0;
    parts sum = {0};
    unsigned x = 9;
    for (int i = 0; i < TIMES; i++) {
        dgm_meter meter = {.count = 0};
        dgm_exec_meter(moe->exec, &meter);
        encode(moe, &x);
        dgm_exec_meter(moe->exec, NULL);
        for (int r = 0; r < meter.count; r++) bytes += (double)meter.rows[r].weight_bytes / TIMES;
        leave(moe);
        meter = (dgm_meter){.count = 0};
        x -= 77;
        dgm_exec_meter(moe->exec, &meter); // again: its experts are packed now
        encode(moe, &x);
        dgm_exec_meter(moe->exec, NULL);
        leave(moe);
        const parts p = count_parts(s, &meter);
        shares[i] = p.bytes / speed / (p.experts + p.gate);
        sum.experts += p.experts / TIMES, sum.gate += p.gate / TIMES, sum.dense += p.dense / TIMES;
        sum.rest += p.rest / TIMES, sum.bytes += p.bytes / TIMES;
        sum.keys += p.keys / TIMES, sum.key_bytes += p.key_bytes / TIMES;
        x -= 77;
        times[i] = encode(moe, &x);
        leave(moe);
    }
    double t = median(times, TIMES), bound = bytes / speed;
    printf("encoder, %d tokens: %.2f ms; %.1f MiB of weights at %.1f GB/s are %.2f ms: %.0f %% of the bound's speed\n",
           SENTENCE, t * 1e3, bytes / (1 << 20), speed / 1e9, bound * 1e3, 100 * bound / t);
    printf("csv,encoder_ms,%.4f\ncsv,encoder_bound_ms,%.4f\ncsv,encoder_share,%.4f\n", t * 1e3, bound * 1e3, bound / t);
    double alone = (bytes - sum.key_bytes) / speed / (t - sum.keys);
    printf("without the decoder's keys and values: %.2f ms, %.0f %%\ncsv,encoder_alone_share,%.4f\n",
           (t - sum.keys) * 1e3, 100 * alone, alone);
    double share = median(shares, TIMES);
    printf("its mixture: %.1f MiB of weights, %.0f %% of the bound's speed\n", sum.bytes / (1 << 20), 100 * share);
    printf("products of experts %.2f ms (their bytes %.2f), gate and rows %.2f, dense products %.2f, rest %.2f\n",
           sum.experts * 1e3, sum.bytes / speed * 1e3, sum.gate * 1e3, sum.dense * 1e3, sum.rest * 1e3);
    printf("csv,mixture_share,%.4f\n", share);
}

static int number(const char *text)
{
    int n = atoi(text);
    if (n < 1 || n > 1 << 20) {
        fprintf(stderr, "bench/moe: '%s' is not a number from 1 to 1048576\n", text);
        exit(2);
    }
    return n;
}

int main(int argc, char **argv)
{
    shape s = {1024, 4096, 32, 3, 1, 400, "/tmp"};
    for (int i = 1; i + 1 < argc; i += 2) {
        const struct { const char *name; int *to; } options[] = {
            {"--width", &s.d}, {"--ffn", &s.f}, {"--experts", &s.experts}, {"--layers", &s.layers},
            {"--top", &s.top}, {"--steps", &s.steps}};
        for (size_t k = 0; k < 6; k++)
            if (strcmp(argv[i], options[k].name) == 0) *options[k].to = number(argv[i + 1]);
        if (strcmp(argv[i], "--folder") == 0) s.folder = argv[i + 1];
    }
    if (2 * s.layers * s.d == s.f) {
        fprintf(stderr, "bench/moe: keys and values of %d layers have the shape of an expert: take another number\n",
                s.layers);
        return 2;
    }
    s.steps = s.steps > MOST_STEPS ? MOST_STEPS : (s.steps + 19) / 20 * 20;
    char paths[2][512], kernels[512];
    static side dense, moe;
    for (int k = 0; k < 2; k++) {
        snprintf(paths[k], sizeof paths[k], "%s/dragoman-bench-moe-%d-%ld.gguf", s.folder, k, (long)getpid());
        write_model(&s, k == 1, paths[k]);
    }
    double speed = read_speed(), before = resident();
    open_side(&moe, paths[1]);
    double loaded = resident();
    printf("width %d, ffn %d, %d experts, top %d, 1+%d layers; %s\n", s.d, s.f, s.experts, s.top, s.layers,
           dgm_backend_describe(moe.backend, kernels, sizeof kernels));
    time_encoder(&moe, &s, speed);
    dgm_experts_use use;
    dgm_model_experts(moe.model, &use);
    double now = resident(), workspace = (double)(moe.workspace.host + moe.workspace.device);
    double dense_part = (double)dgm_model_describe(moe.model)->packed_bytes;
    printf("experts touched by 80 sentences' encoder: %d of %d, %.1f MiB of %.1f\n", use.packed, use.experts,
           (double)use.bytes / (1 << 20), (double)use.largest / (1 << 20));
    double needed = dense_part + (double)use.bytes, ratio = (now - before - workspace) / needed;
    printf("memory: %.1f MiB loaded without any, %.1f after, of these %.1f workspace; (dense part + experts touched) "
           "%.1f, ratio without the workspace %.3f\n",
           (loaded - before) / (1 << 20), (now - before) / (1 << 20), workspace / (1 << 20), needed / (1 << 20), ratio);
    printf("csv,experts_touched,%d\ncsv,memory_ratio,%.4f\n", use.packed, ratio);
    open_side(&dense, paths[0]);
    time_steps(&dense, &moe, 1, s.steps);
    time_steps(&dense, &moe, 5, s.steps);
    close_side(&dense);
    close_side(&moe);
    unlink(paths[0]);
    unlink(paths[1]);
    return 0;
}
