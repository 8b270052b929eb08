// SPDX-License-Identifier: MIT
// Clusters: storage in a model file, one block per direction, refusal of what does not fit, damage
// of every byte; the nearest centroid and the candidates against brute force; properties of k-means.
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "backend/ops.h"
#include "base/bytes.h"
#include "base/clock.h"
#include "base/mapfile.h"
#include "base/mem.h"
#include "format/clusters.h"
#include "format/idlists.h"
#include "format/modelfile.h"
#include "format/shortlist.h"
#include "tools/kmeans.h"
#include "vocabsel/vocabsel.h"
#include "words_model.h"

enum { SIZE = 200, COUNT = 7, WIDTH = 24 };

static char path[64];

// Models of one word a step end a sentence with EOS, those of pairs with EOD; masked ones have no end.
typedef enum model_kind { SINGLE, PAIRS, MASKED } model_kind;
enum { EOD = 5 };
static model_kind kind = SINGLE;

// A model file with word vocabularies of SIZE tokens; eos 0, unk 1, pad last (never chosen), and
// one tensor that stands for the weights.
static void put_model(dgm_gguf_writer *w, const char *third)
{
    static const float weights[4] = {1, 2, 3, 4};
    const int shape[1] = {4};
    words_model_put(w, SIZE, third);
    words_model_never_last(w, SIZE);
    static const int32_t never[2] = {0, SIZE - 1};
    if (kind != SINGLE) dgm_gguf_set_array(w, "dragoman.target.never", DGM_META_I32, never, 2);
    if (kind == PAIRS) dgm_gguf_set_i32(w, "dragoman.target.eod", EOD);
    if (kind == MASKED) dgm_gguf_set_i32(w, "dragoman.target.mask", SIZE - 1);
    dgm_gguf_add_tensor(w, "weights", DGM_TYPE_F32, 1, shape, weights);
}

static dgm_gguf_writer *new_writer(void)
{
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    return w;
}

static void write_file(dgm_gguf_writer *w)
{
    assert_int_equal(dgm_gguf_write(w, path, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
}

static dgm_gguf *open_file(void)
{
    dgm_gguf *g = NULL;
    dgm_error err;
    assert_int_equal(dgm_modelfile_open(&g, path, &err), DGM_OK);
    return g;
}

// Random centroids; list c holds every (c + 2)-th token from 2 on. Static storage.
static dgm_clusters sample(const char *source, const char *target, uint64_t seed)
{
    static uint16_t centroids[COUNT * WIDTH];
    static uint64_t at[COUNT + 1];
    static int32_t ids[COUNT * SIZE];
    dgm_rng rng = {seed};
    for (int i = 0; i < COUNT * WIDTH; i++)
        centroids[i] = dgm_float_to_half((float)(2 * dgm_rng_unit(&rng) - 1));
    uint64_t n = 0;
    for (int c = 0; c < COUNT; c++) {
        for (int id = 2; id < SIZE; id += c + 2) ids[n++] = id;
        at[c + 1] = n;
    }
    return (dgm_clusters){.source = source,
                          .target = target,
                          .count = COUNT,
                          .width = WIDTH,
                          .targets = SIZE,
                          .best = 3,
                          .centroids = centroids,
                          .at = at,
                          .ids = ids};
}

// Adds a block to the file (NULL: takes all out).
static void store(const dgm_clusters *c)
{
    dgm_gguf *g = open_file();
    dgm_gguf_writer *w = new_writer();
    dgm_gguf_set_copies(w, g);
    assert_int_equal(dgm_clusters_store(&c, c ? 1 : 0, g, w, NULL), DGM_OK);
    write_file(w);
    dgm_gguf_close(&g);
}

static void write_model(bool clusters)
{
    dgm_gguf_writer *w = new_writer();
    put_model(w, NULL);
    write_file(w);
    const dgm_clusters c = sample("en", "de", 1);
    if (clusters) store(&c);
}

static void expect_block(const dgm_gguf *g, int block, const dgm_clusters *c)
{
    dgm_clusters_view v;
    int32_t row[SIZE];
    assert_int_equal(dgm_clusters_view_open(&v, g, block, NULL), DGM_OK);
    assert_string_equal(v.source, c->source);
    assert_string_equal(v.target, c->target);
    assert_int_equal(v.count, COUNT);
    assert_int_equal(v.width, WIDTH);
    assert_int_equal(v.best, 3);
    assert_int_equal(v.entries, c->at[COUNT]);
    assert_memory_equal(v.centroids->data, c->centroids, COUNT * WIDTH * sizeof *c->centroids);
    for (int i = 0; i < COUNT; i++) {
        const int n = dgm_idlists_decode(v.lists + v.at[i], row);
        assert_int_equal(n, c->at[i + 1] - c->at[i]);
        assert_true(n <= v.longest);
        assert_memory_equal(row, c->ids + c->at[i], (size_t)n * sizeof *row);
    }
    dgm_clusters_view_close(&v);
}

static void test_round_trip(void **state)
{
    (void)state;
    write_model(true);
    dgm_gguf *g = open_file();
    const dgm_clusters first = sample("en", "de", 1);
    expect_block(g, 0, &first);
    assert_int_equal(dgm_clusters_blocks(g), 1);
    // One block serves its own direction, and where the languages are not said.
    assert_int_equal(dgm_clusters_find(g, "en", "de"), 0);
    assert_int_equal(dgm_clusters_find(g, "", ""), 0);
    assert_int_equal(dgm_clusters_find(g, "", "de"), 0);
    assert_int_equal(dgm_clusters_find(g, "de", "en"), -1);
    assert_int_equal(dgm_clusters_find(g, "en", "fr"), -1);
    assert_int_equal(dgm_clusters_find(g, "es", "de"), -1);
    assert_int_equal(dgm_clusters_find(g, "", "fr"), -1);
    assert_non_null(dgm_gguf_find_tensor(g, "weights"));
    dgm_gguf_close(&g);
}

static void test_directions(void **state)
{
    (void)state;
    write_model(true);
    const dgm_clusters any = sample("", "de", 2);
    store(&any);
    const dgm_clusters again = sample("en", "de", 3); // replaces block 0
    store(&again);
    const dgm_clusters french = sample("en", "fr", 4);
    store(&french);
    dgm_gguf *g = open_file();
    assert_int_equal(dgm_clusters_blocks(g), 3);
    const dgm_clusters c = sample("en", "de", 3);
    expect_block(g, 0, &c);
    assert_int_equal(dgm_clusters_find(g, "en", "de"), 0);
    assert_int_equal(dgm_clusters_find(g, "es", "de"), 1);
    assert_int_equal(dgm_clusters_find(g, "en", "fr"), 2);
    assert_int_equal(dgm_clusters_find(g, "es", "fr"), -1);
    dgm_gguf_close(&g);
    store(NULL);
    g = open_file();
    assert_int_equal(dgm_clusters_blocks(g), 0);
    assert_null(dgm_gguf_find_tensor(g, "clusters.0.centroids"));
    assert_null(dgm_gguf_find_tensor(g, "clusters.2.centroids"));
    assert_null(dgm_gguf_find(g, "dragoman.clusters.1.lists"));
    assert_non_null(dgm_gguf_find_tensor(g, "weights"));
    dgm_gguf_close(&g);
}

// Several at once are what they are one after the other.
static void test_many(void **state)
{
    (void)state;
    static const char *const languages[][2] = {{"en", "fr"}, {"en", "de"}, {"", "de"}};
    uint16_t centroids[3][COUNT * WIDTH];
    dgm_clusters blocks[3];
    for (int i = 0; i < 3; i++) {
        blocks[i] = sample(languages[i][0], languages[i][1], (uint64_t)i + 4);
        memcpy(centroids[i], blocks[i].centroids, sizeof centroids[i]);
        blocks[i].centroids = centroids[i];
    }
    const dgm_clusters *const all[] = {&blocks[0], &blocks[1], &blocks[2]};
    write_model(true); // with one of en de
    dgm_gguf *g = open_file();
    dgm_gguf_writer *w = new_writer();
    dgm_gguf_set_copies(w, g);
    assert_int_equal(dgm_clusters_store(all, 3, g, w, NULL), DGM_OK);
    write_file(w);
    dgm_gguf_close(&g);
    dgm_mapfile together = {0}, one = {0};
    assert_int_equal(dgm_mapfile_open(&together, path, NULL), DGM_OK);
    uint8_t *kept = malloc(together.size);
    const size_t size = together.size;
    memcpy(kept, together.data, size);
    dgm_mapfile_close(&together);
    write_model(true);
    for (int i = 0; i < 3; i++) store(&blocks[i]);
    assert_int_equal(dgm_mapfile_open(&one, path, NULL), DGM_OK);
    assert_int_equal(one.size, size);
    assert_memory_equal(one.data, kept, size);
    dgm_mapfile_close(&one);
    free(kept);
    g = open_file();
    for (int i = 0; i < 3; i++)
        expect_block(g, dgm_clusters_find(g, blocks[i].source, blocks[i].target), &blocks[i]);
    assert_int_equal(dgm_clusters_blocks(g), 3);
    dgm_gguf_close(&g);
}

// ---- refusals ----------------------------------------------------------------------------------

typedef struct refusal {
    const char *what, *expected;
    void (*change)(dgm_gguf_writer *w);
} refusal;

static void newer(dgm_gguf_writer *w)
{
    dgm_gguf_set_u32(w, "dragoman.clusters.version", 2);
}

static void no_blocks(dgm_gguf_writer *w)
{
    dgm_gguf_unset(w, "dragoman.clusters.blocks");
}

static void more_centroids(dgm_gguf_writer *w)
{
    dgm_gguf_set_u32(w, "dragoman.clusters.0.count", COUNT + 1);
}

static void wider(dgm_gguf_writer *w)
{
    dgm_gguf_set_u32(w, "dragoman.clusters.0.width", WIDTH + 1);
}

static void other_size(dgm_gguf_writer *w)
{
    dgm_gguf_set_u32(w, "dragoman.clusters.0.targets", SIZE + 1);
}

static void other_hash(dgm_gguf_writer *w)
{
    dgm_gguf_set_string(w, "dragoman.clusters.0.vocabulary", "0123456789abcdef");
}

static void other_words(dgm_gguf_writer *w)
{
    const char *words[SIZE];
    static char text[SIZE][16];
    for (int i = 0; i < SIZE; i++) {
        snprintf(text[i], sizeof text[i], "x%d", i);
        words[i] = text[i];
    }
    dgm_gguf_set_strings(w, "dragoman.source.vocab.words", words, SIZE);
}

static void no_lists(dgm_gguf_writer *w)
{
    dgm_gguf_unset(w, "dragoman.clusters.0.lists");
}

static void short_lists(dgm_gguf_writer *w)
{
    const uint8_t data[] = {1, 5, 1, 5};
    dgm_gguf_set_array(w, "dragoman.clusters.0.lists", DGM_META_U8, data, sizeof data);
}

static void high_ids(dgm_gguf_writer *w)
{
    const uint8_t data[] = {1, 0xc8, 1, 0, 0, 0, 0, 0, 0}; // id 200
    dgm_gguf_set_array(w, "dragoman.clusters.0.lists", DGM_META_U8, data, sizeof data);
}

static void more_bytes(dgm_gguf_writer *w)
{
    const uint8_t data[] = {0, 0, 0, 0, 0, 0, 0, 0};
    dgm_gguf_set_array(w, "dragoman.clusters.0.lists", DGM_META_U8, data, sizeof data);
}

static void test_refusals(void **state)
{
    (void)state;
    static const refusal table[] = {
        {"version", "newer than this program", newer},
        {"blocks", "dragoman.clusters.blocks", no_blocks},
        {"count", "clusters.0.centroids", more_centroids},
        {"width", "clusters.0.centroids", wider},
        {"targets", "for a vocabulary of 201 tokens, the model has 200", other_size},
        {"hash", "made for other vocabularies", other_hash},
        {"words", "made for other vocabularies", other_words},
        {"lists", "dragoman.clusters.0.lists", no_lists},
        {"short", "the list of centroid 2 is damaged", short_lists},
        {"high", "the list of centroid 0 is damaged", high_ids},
        {"bytes", "1 bytes after the last list", more_bytes}};
    for (size_t i = 0; i < sizeof table / sizeof *table; i++) {
        write_model(true);
        dgm_gguf *g = open_file();
        dgm_gguf_writer *w = new_writer();
        dgm_gguf_set_copies(w, g);
        table[i].change(w);
        for (int t = 0; t < dgm_gguf_tensor_count(g); t++) {
            const dgm_tensor *x = dgm_gguf_tensor(g, t);
            dgm_gguf_add_tensor(w, x->name, (dgm_tensor_type)x->type, x->n_dims, x->shape, x->data);
        }
        write_file(w);
        dgm_gguf_close(&g);
        g = open_file();
        dgm_clusters_view v;
        dgm_error err;
        assert_true(dgm_clusters_view_open(&v, g, 0, &err) != DGM_OK);
        if (!strstr(err.text, table[i].expected)) fail_msg("%s: '%s'", table[i].what, err.text);
        dgm_gguf_close(&g);
    }
    // Centroids that are no numbers.
    write_model(false);
    dgm_clusters c = sample("", "", 5);
    c.centroids[3] = 0x7e00;
    store(&c);
    dgm_gguf *g = open_file();
    dgm_clusters_view v;
    dgm_error err;
    assert_int_equal(dgm_clusters_view_open(&v, g, 0, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "not finite"));
    // A file without clusters, and one whose vectors have another size.
    dgm_gguf_close(&g);
    write_model(false);
    g = open_file();
    dgm_backend *b = NULL;
    dgm_cluster_set *set = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, NULL), DGM_OK);
    assert_int_equal(dgm_cluster_set_open(&set, b, g, "en", "de", WIDTH, &err),
                     DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "dragoman cluster"));
    dgm_gguf_close(&g);
    write_model(true);
    g = open_file();
    assert_int_equal(dgm_cluster_set_open(&set, b, g, "de", "en", WIDTH, &err),
                     DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "no clusters for 'de' to 'en'"));
    assert_int_equal(dgm_cluster_set_open(&set, b, g, "en", "de", WIDTH + 8, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "have 24 numbers, the model's hidden vectors 32"));
    assert_null(set);
    dgm_gguf_close(&g);
    dgm_backend_close(&b);
}

// Every byte of the lists changed: accepted or refused, never out of bounds.
static void test_damage(void **state)
{
    (void)state;
    write_model(true);
    dgm_gguf *g = open_file();
    dgm_clusters_view v;
    assert_int_equal(dgm_clusters_view_open(&v, g, 0, NULL), DGM_OK);
    const size_t size = v.at[COUNT];
    uint8_t *data = malloc(size);
    uint32_t at[COUNT + 1];
    int32_t row[SIZE];
    for (size_t i = 0; i < size; i++)
        for (int change = 1; change < 256; change <<= 1) {
            memcpy(data, v.lists, size);
            data[i] ^= (uint8_t)change;
            const dgm_idlists lists = {"lists", "centroid", data, size, COUNT, SIZE, SIZE};
            int longest = 0;
            if (dgm_idlists_index(&lists, at, &longest, NULL) != DGM_OK) continue;
            for (int c = 0; c < COUNT; c++) {
                const int n = dgm_idlists_decode(data + at[c], row);
                assert_true(n <= longest && n <= SIZE);
                for (int k = 0; k < n; k++)
                    assert_true(row[k] >= 0 && row[k] < SIZE && (!k || row[k] > row[k - 1]));
            }
        }
    free(data);
    dgm_clusters_view_close(&v);
    dgm_gguf_close(&g);
}

// ---- candidates --------------------------------------------------------------------------------

static int brute_nearest(const uint16_t *centroids, const float *h)
{
    int best = 0;
    double least = INFINITY;
    for (int c = 0; c < COUNT; c++) {
        double d = 0;
        for (int j = 0; j < WIDTH; j++) {
            const double x = (double)dgm_half_to_float(centroids[c * WIDTH + j]);
            d += (x - (double)h[j]) * (x - (double)h[j]);
        }
        if (d < least) least = d, best = c;
    }
    return best;
}

static void put_shortlist(void)
{
    dgm_gguf *g = open_file();
    dgm_shortlist *l = NULL;
    assert_int_equal(dgm_shortlist_open(&l, SIZE, SIZE, SIZE, 0, NULL), DGM_OK);
    for (int s = 0; s < SIZE; s++) {
        l->ids[s] = (s * 3) % SIZE;
        l->at[s + 1] = (uint64_t)s + 1;
    }
    dgm_gguf_writer *w = new_writer();
    dgm_gguf_set_copies(w, g);
    assert_int_equal(dgm_shortlist_store(l, g, w, NULL), DGM_OK);
    for (int t = 0; t < dgm_gguf_tensor_count(g); t++) {
        const dgm_tensor *x = dgm_gguf_tensor(g, t);
        dgm_gguf_add_tensor(w, x->name, (dgm_tensor_type)x->type, x->n_dims, x->shape, x->data);
    }
    write_file(w);
    dgm_gguf_close(&g);
    dgm_shortlist_close(&l);
}

static void expect_candidates(const dgm_candidates *got, const dgm_clusters *c, const float *h,
                              int rows, dgm_cluster_mode mode)
{
    bool want[SIZE] = {false};
    for (int r = 0; r < rows; r++) {
        const int near = brute_nearest(c->centroids, h + r * WIDTH);
        for (uint64_t k = c->at[near]; k < c->at[near + 1]; k++) want[c->ids[k]] = true;
    }
    static const int32_t lexical[3] = {12, 27, 0}; // what source tokens 4, 9 and 0 become
    for (int id = 0; id < SIZE; id++) {
        bool in = false;
        for (int i = 0; i < 3; i++) in |= lexical[i] == id;
        in |= id == 0 || id == 1 || id == 77 || (kind == PAIRS && id == EOD); // always, and needed
        if (mode == DGM_CLUSTER_UNION) want[id] |= in;
        if (mode == DGM_CLUSTER_INTERSECT) want[id] &= in;
    }
    want[0] = want[1] = want[77] = true;
    if (mode != DGM_CLUSTER_INTERSECT) want[4] = want[9] = true; // the source's own: one vocabulary
    if (kind == PAIRS) want[EOD] = true;
    want[0] = kind == SINGLE;
    want[SIZE - 1] = false; // never
    int n = 0;
    for (int id = 0; id < SIZE; id++) {
        if (!want[id]) continue;
        assert_true(n < got->count);
        assert_int_equal(got->ids[n++], id);
    }
    assert_int_equal(n, got->count);
    assert_null(got->gathered);
}

static void check_candidates(void)
{
    write_model(true);
    put_shortlist();
    dgm_gguf *g = open_file();
    dgm_backend *b = NULL;
    dgm_exec *x = NULL;
    dgm_cluster_set *set = NULL;
    const dgm_clusters c = sample("en", "de", 1);
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, NULL), DGM_OK);
    assert_int_equal(dgm_exec_open(b, dgm_bytes_both(16 << 20), &x, NULL), DGM_OK);
    assert_int_equal(dgm_cluster_set_open(&set, b, g, "en", "de", WIDTH, NULL), DGM_OK);
    enum { SENTENCES = 3, ROWS = 12 };
    const dgm_vocabsel_limits limits = {
        .sentences = SENTENCES, .max_source = 8, .max_needed = 2, .rows = ROWS};
    const int32_t source[] = {4, 9, 0}, needed[] = {77};
    const dgm_vocabsel_sentence s = {
        .source = source, .source_count = 3, .needed = needed, .needed_count = 1};
    const dgm_mat hidden = dgm_exec_mat(x, ROWS, WIDTH);
    float h[ROWS * WIDTH];
    dgm_rng rng = {9};
    for (int mode = 0; mode < 3; mode++) {
        dgm_vocabsel v;
        assert_int_equal(dgm_vocabsel_cluster_open(&v, &set, 1, x, (dgm_cluster_mode)mode, g, &limits,
                                                   NULL),
                         DGM_OK);
        for (int p = 0; p < SENTENCES; p++) assert_int_equal(v.ops->admit(&v, p, &s, NULL), DGM_OK);
        const uint64_t before = dgm_mem_allocations();
        for (int trial = 0; trial < 50; trial++) {
            for (int i = 0; i < ROWS * WIDTH; i++) h[i] = (float)(2 * dgm_rng_unit(&rng) - 1);
            dgm_op_write(x, hidden, h);
            v.ops->look(&v, hidden);
            const dgm_candidates *all[SENTENCES];
            const int first[SENTENCES + 1] = {0, 1, 5, ROWS};
            for (int p = 0; p < SENTENCES; p++) // in any order
                all[SENTENCES - 1 - p] =
                    v.ops->select(&v, SENTENCES - 1 - p, first[SENTENCES - 1 - p],
                                  dgm_mat_rows(hidden, first[SENTENCES - 1 - p],
                                               first[SENTENCES - p] - first[SENTENCES - 1 - p]));
            for (int p = 0; p < SENTENCES; p++)
                expect_candidates(all[p], &c, h + first[p] * WIDTH,
                                  first[p + 1] - first[p], (dgm_cluster_mode)mode);
        }
        assert_int_equal(dgm_mem_allocations(), before);
        uint64_t used = 0;
        dgm_vocabsel_cluster_used(&v, &used);
        assert_true(used > 0 && used < 1u << COUNT);
        for (int p = 0; p < SENTENCES; p++) v.ops->leave(&v, p);
        v.ops->close(&v);
    }
    dgm_cluster_set_close(&set);
    dgm_exec_close(&x);
    dgm_backend_close(&b);
    dgm_gguf_close(&g);
}

static void test_candidates(void **state)
{
    (void)state;
    check_candidates();
}

// What ends a sentence of another kind of model is no candidate.
static void test_ends(void **state)
{
    (void)state;
    for (kind = PAIRS; kind <= MASKED; kind++) check_candidates();
    kind = SINGLE;
}

// ---- k-means -----------------------------------------------------------------------------------

enum { POINTS = 900, DIMENSIONS = 20, GROUPS = 6 };

// GROUPS clouds of points, far apart.
static uint16_t *clouds(double spread)
{
    uint16_t *v = malloc(POINTS * DIMENSIONS * sizeof *v);
    dgm_rng rng = {3};
    for (int i = 0; i < POINTS; i++)
        for (int j = 0; j < DIMENSIONS; j++)
            v[i * DIMENSIONS + j] = dgm_float_to_half(
                (float)((i % GROUPS == j ? 10 : 0) + spread * (dgm_rng_unit(&rng) - 0.5)));
    return v;
}

static void run_kmeans(const uint16_t *v, int centroids, int threads, uint64_t seed, float *out,
                       double *loss)
{
    dgm_kmeans k = {.vectors = v,
                    .count = POINTS,
                    .width = DIMENSIONS,
                    .centroids = centroids,
                    .iterations = 20,
                    .seed = seed};
    assert_int_equal(dgm_backend_open(&k.backend, "cpu", NULL, NULL), DGM_OK);
    assert_int_equal(dgm_pool_open(&k.pool, threads, NULL), DGM_OK);
    dgm_error err;
    if (dgm_kmeans_run(&k, out, loss, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_pool_close(&k.pool);
    dgm_backend_close(&k.backend);
}

static void test_kmeans(void **state)
{
    (void)state;
    float one[40 * DIMENSIONS], many[40 * DIMENSIONS];
    double loss[21], again[21];
    uint16_t *v = clouds(1);
    // Clouds are found: k-means++ starts in each of them.
    run_kmeans(v, GROUPS, 1, 1, one, loss);
    assert_true(loss[20] < DIMENSIONS / 12.0 * 1.2);
    for (int c = 0; c < GROUPS; c++) {
        int found = 0;
        for (int g = 0; g < GROUPS; g++)
            found += fabsf(one[c * DIMENSIONS + g] - 10) < 0.2f;
        assert_int_equal(found, 1);
    }
    // Never worse, whatever the number of centroids; threads change nothing, seeds do.
    for (int seed = 1; seed <= 3; seed++) {
        run_kmeans(v, 40, 1, (uint64_t)seed, one, loss);
        run_kmeans(v, 40, 3, (uint64_t)seed, many, again);
        assert_memory_equal(one, many, sizeof one);
        assert_memory_equal(loss, again, sizeof loss);
        for (int i = 1; i <= 20; i++) assert_true(loss[i] <= loss[i - 1] * (1 + 1e-6));
        assert_true(loss[20] < loss[0]);
    }
    run_kmeans(v, 40, 1, 1, many, again);
    assert_memory_not_equal(one, many, sizeof one);
    free(v);
    // Equal points: more centroids than places. Nothing breaks, the distance is 0.
    v = clouds(0);
    run_kmeans(v, 40, 2, 1, one, loss);
    assert_true(loss[20] == 0);
    free(v);
    dgm_error err;
    const dgm_kmeans few = {.count = 3, .width = 4, .centroids = 5};
    assert_int_equal(dgm_kmeans_run(&few, one, NULL, &err), DGM_ERR_ARGUMENT);
}

static void test_memory(void **state)
{
    (void)state;
    write_model(true);
    dgm_gguf *g = open_file();
    for (uint64_t fail = 1;; fail++) {
        dgm_backend *b = NULL;
        dgm_cluster_set *set = NULL;
        dgm_exec *x = NULL;
        dgm_vocabsel v = {0};
        const uint64_t live = dgm_mem_live();
        const dgm_vocabsel_limits limits = {
            .sentences = 2, .max_source = 4, .max_needed = 1, .rows = 4};
        dgm_mem_inject(fail, 1);
        dgm_status st = dgm_backend_open(&b, "cpu", NULL, NULL);
        if (st == DGM_OK) st = dgm_exec_open(b, dgm_bytes_both(1 << 20), &x, NULL);
        if (st == DGM_OK) st = dgm_cluster_set_open(&set, b, g, "en", "de", WIDTH, NULL);
        if (st == DGM_OK)
            st = dgm_vocabsel_cluster_open(&v, &set, 1, x, DGM_CLUSTER_ALONE, NULL, &limits, NULL);
        dgm_mem_inject(0, 0);
        if (v.data) v.ops->close(&v);
        dgm_cluster_set_close(&set);
        dgm_exec_close(&x);
        dgm_backend_close(&b);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
        assert_int_equal(st, DGM_ERR_MEMORY);
    }
    dgm_gguf_close(&g);
}

static int set_up(void **state)
{
    (void)state;
    snprintf(path, sizeof path, "/tmp/dgm-clusters-%d.gguf", (int)getpid());
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip), cmocka_unit_test(test_directions), cmocka_unit_test(test_many),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_damage),
        cmocka_unit_test(test_candidates), cmocka_unit_test(test_ends),
        cmocka_unit_test(test_kmeans),     cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
