// SPDX-License-Identifier: MIT
// Projection onto the tokens of the nearest clusters against the whole vocabulary, and models with
// random weights for timing; bench/vocab-clusters calls both.
//
//     clusters projection VOCABULARY WIDTH CENTROIDS SHARE PRECISION SENTENCES BEAM SECONDS [DEVICE]
//     clusters model FILE VOCABULARY WIDTH FFN ENCODER DECODER HEADS TYPE CENTROIDS SHARE [EXPERTS]
//
// DEVICE (default: the CPU, of which the thread's own time counts) is a name such as cuda. EXPERTS (default 0) stand
// in every second layer of both sides, one of them for a row.
//
// Random weights have no clusters: lists are drawn instead, so that a list holds SHARE of the
// vocabulary on average. Token i is in a list with probability min(1, a / (i + 1)^0.8): frequent
// tokens are in many lists, as in real ones, so what the sentences of a batch want overlaps.
// Vectors lie near centroids drawn at random. Both sides of a comparison run in turn.
//
// projection prints: share of the lists, share of the union over the batch, microseconds per step
// of both, their ratio, and what reading bytes alone allows, 1 / (union + centroid bytes / layer
// bytes); medians over the rounds.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backend/ops.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mem.h"
#include "format/clusters.h"
#include "format/modelfile.h"
#include "vocabsel/vocabsel.h"

enum { ROUNDS_MAX = 8192 };

static void die(const char *what, const dgm_error *err)
{
    fprintf(stderr, "clusters: %s%s%s\n", what, err ? ": " : "", err ? err->text : "");
    exit(1);
}

static void check(dgm_status st, const dgm_error *err)
{
    if (st != DGM_OK) die("failed", err);
}

// ---- drawn clusters ----------------------------------------------------------------------------

// The factor a for which the probabilities have the mean `share`.
static double find_factor(int vocabulary, double share)
{
    double low = 0, high = pow((double)vocabulary, 0.8);
    for (int i = 0; i < 60; i++) {
        const double a = (low + high) / 2;
        double sum = 0;
        for (int t = 0; t < vocabulary; t++) sum += fmin(1, a / pow(t + 1, 0.8));
        if (sum / vocabulary < share)
            low = a;
        else
            high = a;
    }
    return high;
}

static dgm_clusters draw_clusters(int vocabulary, int width, int count, double share)
{
    dgm_clusters c = {.source = "", .target = "", .count = count, .width = width,
                      .targets = vocabulary, .best = 1};
    dgm_rng rng = {7};
    const double a = find_factor(vocabulary, share);
    float *p = malloc((size_t)vocabulary * sizeof *p);
    c.centroids = malloc((size_t)count * (size_t)width * sizeof *c.centroids);
    c.at = calloc((size_t)count + 1, sizeof *c.at);
    c.ids = malloc((size_t)((double)count * vocabulary * fmin(1, 1.5 * share + 0.05)) *
                   sizeof *c.ids);
    if (!p || !c.centroids || !c.at || !c.ids) die("out of memory", NULL);
    for (int t = 0; t < vocabulary; t++) p[t] = (float)fmin(1, a / pow(t + 1, 0.8));
    for (size_t i = 0; i < (size_t)count * (size_t)width; i++)
        c.centroids[i] = dgm_float_to_half((float)(2 * dgm_rng_unit(&rng) - 1));
    uint64_t n = 0;
    for (int i = 0; i < count; i++) {
        for (int t = 0; t < vocabulary; t++)
            if (dgm_rng_unit(&rng) < (double)p[t]) c.ids[n++] = t;
        c.at[i + 1] = n;
    }
    free(p);
    return c;
}

// ---- models ------------------------------------------------------------------------------------

static void put_vocabulary(dgm_gguf_writer *w, int size)
{
    char *text = malloc((size_t)size * 12);
    const char **words = malloc((size_t)size * sizeof *words);
    if (!text || !words) die("out of memory", NULL);
    for (int i = 0; i < size; i++) {
        snprintf(text + (size_t)i * 12, 12, "w%d", i);
        words[i] = text + (size_t)i * 12;
    }
    dgm_gguf_set_string(w, "general.architecture", "dragoman");
    dgm_gguf_set_u32(w, "dragoman.format_version", 1);
    dgm_gguf_set_string(w, "dragoman.architecture", "transformer");
    dgm_gguf_set_string(w, "dragoman.source.vocab.kind", "words");
    dgm_gguf_set_u32(w, "dragoman.source.vocab.size", (uint32_t)size);
    dgm_gguf_set_strings(w, "dragoman.source.vocab.words", words, (size_t)size);
    dgm_gguf_set_string(w, "dragoman.source.vocab.tokenizer", "none");
    dgm_gguf_set_i32(w, "dragoman.source.eos", 0);
    dgm_gguf_set_i32(w, "dragoman.source.unk", 1);
    free(text);
    free(words);
}

static void add_clusters(const char *path, const dgm_clusters *c)
{
    dgm_error err;
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    check(dgm_modelfile_open(&g, path, &err), &err);
    check(dgm_gguf_writer_open(&w, &err), &err);
    dgm_gguf_set_copies(w, g);
    check(dgm_clusters_store(&c, 1, g, w, &err), &err);
    check(dgm_gguf_write(w, path, &err), &err);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
}

typedef struct filler {
    int type; // dgm_tensor_type
    float scale;
} filler;

// Numbers of about the size of a trained layer's, from a cheap generator: gigabytes of them.
static dgm_status produce(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)err;
    const filler *f = arg;
    uint64_t s = 0x9e3779b97f4a7c15u ^ bytes;
    if (f->type == DGM_TYPE_I8) {
        int8_t *q = out;
        for (size_t i = 0; i < bytes; i++) {
            s = s * 6364136223846793005u + 1442695040888963407u;
            q[i] = (int8_t)((int)(s >> 33) % 255 - 127);
        }
        return DGM_OK;
    }
    float *x = out;
    for (size_t i = 0; i < bytes / sizeof *x; i++) {
        s = s * 6364136223846793005u + 1442695040888963407u;
        x[i] = f->scale * ((float)(uint32_t)(s >> 40) / (float)(1 << 23) - 1);
    }
    return DGM_OK;
}

static dgm_status produce_same(void *arg, void *out, size_t bytes, dgm_error *err)
{
    (void)err;
    float *x = out;
    for (size_t i = 0; i < bytes / sizeof *x; i++) x[i] = *(const float *)arg;
    return DGM_OK;
}

static filler whole;        // matrices
static float row_scale, one = 1, zero; // scales of i8 rows, norms

static void put_matrix(dgm_gguf_writer *w, const char *prefix, int layer, const char *name,
                       int rows, int cols)
{
    char full[96];
    const int shape[2] = {rows, cols}, n[1] = {rows};
    if (layer < 0)
        snprintf(full, sizeof full, "%s", name);
    else
        snprintf(full, sizeof full, "%s.%d.%s.weight", prefix, layer, name);
    dgm_gguf_add_produced(w, full, (dgm_tensor_type)whole.type, 2, shape, produce, &whole);
    if (whole.type != DGM_TYPE_I8) return;
    strcat(full, ".scale");
    dgm_gguf_add_produced(w, full, DGM_TYPE_F32, 1, n, produce_same, &row_scale);
}

static void put_norm(dgm_gguf_writer *w, const char *prefix, int layer, const char *name, int width)
{
    char full[96];
    const int shape[1] = {width};
    char at[16] = "";
    if (layer >= 0) snprintf(at, sizeof at, "%d.", layer);
    snprintf(full, sizeof full, "%s.%s%s.weight", prefix, at, name);
    dgm_gguf_add_produced(w, full, DGM_TYPE_F32, 1, shape, produce_same, &one);
    snprintf(full, sizeof full, "%s.%s%s.bias", prefix, at, name);
    dgm_gguf_add_produced(w, full, DGM_TYPE_F32, 1, shape, produce_same, &zero);
}

// The feed-forward networks of a layer: one, or a gate and as many as there are experts.
static void put_feed_forward(dgm_gguf_writer *w, const char *prefix, int layer, int width, int ffn,
                             int experts)
{
    static filler gate = {DGM_TYPE_F32, 1};
    char name[64];
    const int shape[2] = {experts, width};
    if (!experts) {
        put_matrix(w, prefix, layer, "ffn.in", ffn, width);
        put_matrix(w, prefix, layer, "ffn.out", width, ffn);
        return;
    }
    snprintf(name, sizeof name, "%s.%d.moe.gate.weight", prefix, layer);
    dgm_gguf_add_produced(w, name, DGM_TYPE_F32, 2, shape, produce, &gate);
    for (int j = 0; j < experts; j++) {
        snprintf(name, sizeof name, "moe.%d.in", j);
        put_matrix(w, prefix, layer, name, ffn, width);
        snprintf(name, sizeof name, "moe.%d.out", j);
        put_matrix(w, prefix, layer, name, width, ffn);
    }
}

static void put_layers(dgm_gguf_writer *w, const char *prefix, int layers, int width, int ffn,
                       int experts)
{
    static const char *const attention[] = {"self.q", "self.k", "self.v", "self.o"};
    static const char *const cross[] = {"cross.q", "cross.k", "cross.v", "cross.o"};
    const bool decoder = prefix[0] == 'd';
    for (int l = 0; l < layers; l++) {
        for (int i = 0; i < 4; i++) put_matrix(w, prefix, l, attention[i], width, width);
        for (int i = 0; decoder && i < 4; i++) put_matrix(w, prefix, l, cross[i], width, width);
        put_norm(w, prefix, l, "self.norm", width);
        if (decoder) put_norm(w, prefix, l, "cross.norm", width);
        put_feed_forward(w, prefix, l, width, ffn, l % 2 ? experts : 0);
        put_norm(w, prefix, l, "ffn.norm", width);
    }
    put_norm(w, prefix, -1, "norm", width);
}

static int write_model(char **a, int experts)
{
    const char *path = a[0];
    const int vocabulary = atoi(a[1]), width = atoi(a[2]), ffn = atoi(a[3]);
    whole.type = strcmp(a[7], "i8") == 0 ? DGM_TYPE_I8 : DGM_TYPE_F32;
    whole.scale = 1.7f / sqrtf((float)width);
    row_scale = whole.scale / 127;
    dgm_error err;
    dgm_gguf_writer *w = NULL;
    check(dgm_gguf_writer_open(&w, &err), &err);
    put_vocabulary(w, vocabulary);
    const struct {
        const char *key;
        int value;
    } numbers[] = {{"d_model", width}, {"ffn", ffn}, {"encoder_layers", atoi(a[4])},
                   {"decoder_layers", atoi(a[5])}, {"heads", atoi(a[6])}};
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        char key[64];
        snprintf(key, sizeof key, "dragoman.transformer.%s", numbers[i].key);
        dgm_gguf_set_u32(w, key, (uint32_t)numbers[i].value);
    }
    if (experts) {
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.experts", (uint32_t)experts);
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.encoder_every", 2);
        dgm_gguf_set_u32(w, "dragoman.transformer.moe.decoder_every", 2);
    }
    dgm_gguf_set_string(w, "dragoman.transformer.norm", "pre");
    dgm_gguf_set_string(w, "dragoman.transformer.activation", "relu");
    dgm_gguf_set_string(w, "dragoman.transformer.positions", "sinusoid");
    dgm_gguf_set_string(w, "dragoman.decode.precision", a[7]);
    put_matrix(w, "", -1, "src.embed", vocabulary, width);
    put_layers(w, "enc", atoi(a[4]), width, ffn, experts);
    put_layers(w, "dec", atoi(a[5]), width, ffn, experts);
    check(dgm_gguf_write(w, path, &err), &err);
    dgm_gguf_writer_close(&w);
    const dgm_clusters c = draw_clusters(vocabulary, width, atoi(a[8]), atof(a[9]));
    add_clusters(path, &c);
    return 0;
}

// ---- projection --------------------------------------------------------------------------------

typedef struct bench {
    int vocabulary, width, sentences, beam, rows;
    dgm_backend *backend;
    dgm_exec *exec;
    dgm_linear *out;
    dgm_cluster_set *set;
    dgm_vocabsel words;
    dgm_mat hidden;
    dgm_rank_part part;
    dgm_rank rank;
    const dgm_candidates **lists; // [rows]
} bench;

static const char *device; // NULL: the CPU

static double now(void)
{
    return device ? dgm_now() : dgm_thread_time();
}

static int by_value(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

// The output layer, rows of its own precision as a model file has them.
static dgm_tensor layer_tensor(int vocabulary, int width, dgm_precision precision)
{
    static dgm_tensor scale;
    whole = (filler){precision == DGM_PRECISION_I8 ? DGM_TYPE_I8 : DGM_TYPE_F32, 0.05f};
    const size_t n = (size_t)vocabulary * (size_t)width;
    const size_t bytes = n * (precision == DGM_PRECISION_I8 ? 1 : sizeof(float));
    void *data = dgm_malloc(bytes);
    float *scales = dgm_malloc((size_t)vocabulary * sizeof *scales);
    if (!data || !scales) die("out of memory", NULL);
    produce(&whole, data, bytes, NULL);
    for (int i = 0; i < vocabulary; i++) scales[i] = 0.05f / 127;
    scale = (dgm_tensor){.name = "out.scale", .type = DGM_TYPE_F32, .n_dims = 1, .rows = 1,
                         .cols = vocabulary, .data = scales};
    return (dgm_tensor){.name = "out", .type = whole.type, .n_dims = 2, .rows = vocabulary,
                        .cols = width, .data = data, .bytes = bytes,
                        .scale = precision == DGM_PRECISION_I8 ? &scale : NULL};
}

static void open_bench(bench *b, const char *path, const dgm_tensor *t, dgm_precision precision,
                       dgm_gguf **file)
{
    dgm_error err;
    check(dgm_backend_open(&b->backend, device ? device : "cpu", device ? NULL : getenv("DRAGOMAN_CPU"), &err), &err);
    const dgm_linear_part part = {.weight = t};
    check(dgm_linear_load(b->backend, &part, 1, precision, &b->out, &err), &err);
    check(dgm_linear_by_rows(b->backend, b->out, &err), &err);
    check(dgm_modelfile_open(file, path, &err), &err);
    check(dgm_cluster_set_open(&b->set, b->backend, *file, "", "", b->width, &err), &err);
    dgm_bytes bytes = dgm_rank_bytes(b->backend, b->rows, 1, b->vocabulary);
    bytes = dgm_bytes_add(
        bytes, dgm_rank_bytes(b->backend, b->rows, 1, dgm_cluster_set_count(b->set)));
    bytes = dgm_bytes_add(bytes, dgm_closest_bytes(b->backend, b->rows, dgm_cluster_set_count(b->set)));
    bytes = dgm_bytes_add(bytes, dgm_rank_joint_bytes(b->backend, b->rows, b->vocabulary));
    bytes = dgm_bytes_add(bytes, dgm_bytes_both(1 << 22));
    bytes.device += dgm_exec_mat_bytes(b->backend, b->rows, b->width);
    check(dgm_exec_open(b->backend, bytes, &b->exec, &err), &err);
    const dgm_vocabsel_limits limits = {
        .sentences = b->sentences, .max_source = 4, .max_needed = 0, .rows = b->rows};
    check(dgm_vocabsel_cluster_open(&b->words, &b->set, 1, b->exec, DGM_CLUSTER_ALONE, NULL, &limits,
                                    &err),
          &err);
    const int32_t source[1] = {0};
    const dgm_vocabsel_sentence s = {.source = source, .source_count = 1};
    for (int i = 0; i < b->sentences; i++)
        check(b->words.ops->admit(&b->words, i, &s, &err), &err);
    b->hidden = dgm_exec_mat(b->exec, b->rows, b->width);
    const size_t rows = (size_t)b->rows, k = (size_t)b->beam + 1;
    dgm_terms *terms = calloc(rows, sizeof *terms);
    for (size_t i = 0; i < rows; i++) terms[i].lambda = 1;
    b->lists = calloc(rows, sizeof *b->lists);
    b->part = (dgm_rank_part){b->out, b->hidden, 1};
    b->rank = (dgm_rank){.parts = &b->part, .part_count = 1, .normalise = true, .rows = b->rows,
                         .k = b->beam + 1, .terms = terms,
                         .score = calloc(rows * k, sizeof(float)),
                         .token = calloc(rows * k, sizeof(int32_t)),
                         .sizes = calloc(rows, sizeof(int32_t))};
}

// Vectors near centroids drawn at random: every step has its own lists.
static void next_step(bench *b, const uint16_t *centroids, dgm_rng *rng)
{
    float *rows = malloc((size_t)b->rows * (size_t)b->width * sizeof *rows);
    if (!rows) exit(1);
    for (int r = 0; r < b->rows; r++) {
        const size_t c = dgm_rng_below(rng, (uint64_t)dgm_cluster_set_count(b->set));
        float *h = rows + (size_t)r * (size_t)b->width;
        for (int j = 0; j < b->width; j++)
            h[j] = dgm_half_to_float(centroids[c * (size_t)b->width + (size_t)j]) +
                   0.1f * (float)(dgm_rng_unit(rng) - 0.5);
    }
    dgm_op_write(b->exec, b->hidden, rows);
    dgm_exec_sync(b->exec);
    free(rows);
}

static double step_whole(bench *b)
{
    const double begin = now();
    b->rank.candidates = NULL;
    dgm_op_rank(b->exec, &b->rank);
    return now() - begin;
}

static double step_clusters(bench *b)
{
    const double begin = now();
    b->words.ops->look(&b->words, b->hidden);
    for (int i = 0; i < b->sentences; i++) {
        const dgm_candidates *list = b->words.ops->select(
            &b->words, i, i * b->beam, dgm_mat_rows(b->hidden, i * b->beam, b->beam));
        for (int r = 0; r < b->beam; r++) b->lists[i * b->beam + r] = list;
    }
    b->rank.candidates = b->lists;
    dgm_op_rank(b->exec, &b->rank);
    return now() - begin;
}

// Steps of one kind in a row, as a decoder makes them: the two kinds read different copies of the
// weights, and in turn by turn each would find the cache full of the other's. The first third warms it.
static int turn(bench *b, const uint16_t *centroids, dgm_rng *rng, double (*step)(bench *),
                double *times, int room)
{
    enum { STEPS = 120, WARM = STEPS / 3 };
    int n = 0;
    const double begin = dgm_now();
    for (int i = 0; i < STEPS && n < room && (n < 2 || dgm_now() - begin < 0.5); i++) {
        next_step(b, centroids, rng);
        const double time = step(b);
        if (i >= WARM || dgm_now() - begin > 0.2) times[n++] = time;
    }
    return n;
}

// Shares of the vocabulary: of a sentence's list, of the union over the sentences.
static void count_shares(const bench *b, double *list, double *all)
{
    const size_t words = ((size_t)b->vocabulary + 63) / 64;
    uint64_t *seen = calloc(words, sizeof *seen), sum = 0, joint = 0;
    if (!seen) die("out of memory", NULL);
    for (int i = 0; i < b->sentences; i++) {
        const dgm_candidates *c = b->lists[i * b->beam];
        sum += (uint64_t)b->rank.sizes[i * b->beam];
        const int32_t *ids = c->joint ? c->joint->add : c->ids;
        for (int k = 0; k < (c->joint ? c->joint->add_count : c->count); k++)
            seen[ids[k] >> 6] |= (uint64_t)1 << (ids[k] & 63);
        for (int k = 0; c->joint && k < c->joint->which_count; k++)
            dgm_cluster_set_mark(b->set, c->joint->which[k], seen);
    }
    for (size_t w = 0; w < words; w++) joint += (uint64_t)__builtin_popcountll(seen[w]);
    *list = (double)sum / b->sentences / b->vocabulary;
    *all = (double)joint / b->vocabulary;
    free(seen);
}

static int project(char **a)
{
    bench b = {.vocabulary = atoi(a[0]), .width = atoi(a[1]), .sentences = atoi(a[5]),
               .beam = atoi(a[6])};
    b.rows = b.sentences * b.beam;
    const int centroids = atoi(a[2]);
    const dgm_precision precision = strcmp(a[4], "i8") == 0    ? DGM_PRECISION_I8
                                    : strcmp(a[4], "i16") == 0 ? DGM_PRECISION_I16
                                    : strcmp(a[4], "f16") == 0 ? DGM_PRECISION_F16
                                                               : DGM_PRECISION_F32;
    char path[64];
    snprintf(path, sizeof path, "/tmp/bench-clusters-%d.gguf", (int)getpid());
    dgm_gguf_writer *w = NULL;
    dgm_error err;
    check(dgm_gguf_writer_open(&w, &err), &err);
    put_vocabulary(w, b.vocabulary);
    check(dgm_gguf_write(w, path, &err), &err);
    dgm_gguf_writer_close(&w);
    const dgm_clusters c = draw_clusters(b.vocabulary, b.width, centroids, atof(a[3]));
    add_clusters(path, &c);
    const dgm_tensor t = layer_tensor(b.vocabulary, b.width, precision);
    dgm_gguf *file = NULL;
    open_bench(&b, path, &t, precision, &file);
    unlink(path);
    static double whole_time[ROUNDS_MAX], some_time[ROUNDS_MAX];
    double lists = 0, unions = 0;
    int n = 0, m = 0, counted = 0;
    dgm_rng rng = {5};
    const double begin = dgm_now(), seconds = atof(a[7]);
    while (n < ROUNDS_MAX && m < ROUNDS_MAX && (n < 5 || dgm_now() - begin < seconds)) {
        n += turn(&b, c.centroids, &rng, step_whole, whole_time + n, ROUNDS_MAX - n);
        m += turn(&b, c.centroids, &rng, step_clusters, some_time + m, ROUNDS_MAX - m);
        double list = 0, all = 0;
        count_shares(&b, &list, &all);
        lists += list;
        unions += all;
        counted++;
    }
    qsort(whole_time, (size_t)n, sizeof *whole_time, by_value);
    qsort(some_time, (size_t)m, sizeof *some_time, by_value);
    const double full = whole_time[n / 2], some = some_time[m / 2];
    const double bytes = (double)centroids * 4 /
                         (b.vocabulary * (precision == DGM_PRECISION_I8    ? 1.0
                                          : precision == DGM_PRECISION_F32 ? 4.0
                                                                           : 2.0));
    check(dgm_exec_status(b.exec, &err), &err);
    printf("%.4f %.4f %.1f %.1f %.2f %.2f\n", lists / counted, unions / counted, full * 1e6, some * 1e6,
           full / some, 1 / (unions / counted + bytes));
    dgm_gguf_close(&file);
    return 0;
}

int main(int argc, char **argv)
{
    if ((argc == 10 || argc == 11) && strcmp(argv[1], "projection") == 0) {
        device = argc == 11 ? argv[10] : NULL;
        return project(argv + 2);
    }
    if ((argc == 12 || argc == 13) && strcmp(argv[1], "model") == 0)
        return write_model(argv + 2, argc == 13 ? atoi(argv[12]) : 0);
    fprintf(stderr,
            "usage: clusters projection VOCABULARY WIDTH CENTROIDS SHARE PRECISION SENTENCES BEAM "
            "SECONDS [DEVICE]\n       clusters model FILE VOCABULARY WIDTH FFN ENCODER DECODER HEADS TYPE "
            "CENTROIDS SHARE [EXPERTS]\n");
    return 2;
}
