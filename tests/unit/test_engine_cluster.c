// SPDX-License-Identifier: MIT
// Clusters through the public API: learning them (the same bytes with one thread or many, in one go
// or interrupted), translating with them alone and with a lexical list (one translation however it
// is batched, at every precision and search, in ensembles), lists of everything against the whole
// vocabulary, and the refusals.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "format/clusters.h"
#include "format/idlists.h"
#include "format/modelfile.h"
#include "engine.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define OTHER "tests/data/models/rnn-bahdanau-pieces.gguf"

static char folder[] = "/tmp/dgm-cluster-XXXXXX";
static char clustered[64], listed[64], full[64], corpus[64], vectors[64], spare[64];

static const char *const texts[] = {"The house is small.",
                                    "Good morning.",
                                    "The small house is good, the morning is small.",
                                    "house",
                                    "Is the house good? Good morning, small house.",
                                    "small small small",
                                    "the"};
enum { TEXTS = sizeof texts / sizeof *texts, CENTROIDS = 12 };

static dgm_cluster_options options(void)
{
    dgm_cluster_options o;
    dgm_cluster_default(&o);
    o.text = corpus;
    o.centroids = CENTROIDS;
    o.best = 4;
    return o;
}

static void make(const char *model, const char *output, const dgm_cluster_options *o,
                 dgm_cluster_report *r)
{
    dgm_error error;
    if (dgm_cluster_make(model, output, o, r, &error) != DGM_OK) fail_msg("%s", error.text);
}

// The model with a block whose lists hold the whole vocabulary.
static void make_full(void)
{
    dgm_gguf *g = NULL;
    dgm_clusters_view v;
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_modelfile_open(&g, clustered, NULL), DGM_OK);
    assert_int_equal(dgm_clusters_view_open(&v, g, 0, NULL), DGM_OK);
    uint64_t at[CENTROIDS + 1] = {0};
    int32_t *ids = malloc((size_t)v.targets * CENTROIDS * sizeof *ids);
    uint16_t *centroids = malloc(v.centroids->bytes);
    memcpy(centroids, v.centroids->data, v.centroids->bytes);
    for (int c = 0; c < CENTROIDS; c++) {
        for (int i = 0; i < v.targets; i++) ids[c * v.targets + i] = i;
        at[c + 1] = at[c] + (uint64_t)v.targets;
    }
    const dgm_clusters all = {.source = v.source,
                              .target = v.target,
                              .count = CENTROIDS,
                              .width = v.width,
                              .targets = v.targets,
                              .best = 1,
                              .centroids = centroids,
                              .at = at,
                              .ids = ids};
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    assert_int_equal(dgm_clusters_store(&(const dgm_clusters *){&all}, 1, g, w, NULL), DGM_OK);
    assert_int_equal(dgm_gguf_write(w, full, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_clusters_view_close(&v);
    dgm_gguf_close(&g);
    free(ids);
    free(centroids);
}

static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(clustered, sizeof clustered, "%s/clustered.gguf", folder);
    snprintf(listed, sizeof listed, "%s/listed.gguf", folder);
    snprintf(full, sizeof full, "%s/full.gguf", folder);
    snprintf(corpus, sizeof corpus, "%s/text", folder);
    snprintf(vectors, sizeof vectors, "%s/vectors", folder);
    snprintf(spare, sizeof spare, "%s/spare.gguf", folder);
    FILE *f = fopen(corpus, "w");
    if (!f) return -1;
    for (int i = 0; i < 700; i++)
        fprintf(f, "the house is small and good morning %c%c %d\n", 'a' + i % 26, 'z' - i % 20, i);
    fclose(f);
    dgm_cluster_options o = options();
    make(MODEL, clustered, &o, NULL);
    char table[64];
    snprintf(table, sizeof table, "%s/lex", folder);
    if (!put_letters(table)) return -1;
    dgm_shortlist_options s;
    dgm_shortlist_default(&s);
    s.lexicon = table;
    s.frequent = 12;
    s.frequent_text = corpus;
    s.next = 0.01;
    if (dgm_shortlist_make(clustered, listed, &s, NULL, NULL) != DGM_OK) return -1;
    unlink(table);
    make_full();
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(clustered);
    unlink(listed);
    unlink(full);
    unlink(corpus);
    unlink(vectors);
    unlink(spare);
    return rmdir(folder);
}

// ---- learning ----------------------------------------------------------------------------------

static void assert_same_file(const char *a, const char *b)
{
    dgm_mapfile x = {0}, y = {0};
    assert_int_equal(dgm_mapfile_open(&x, a, NULL), DGM_OK);
    assert_int_equal(dgm_mapfile_open(&y, b, NULL), DGM_OK);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    dgm_mapfile_close(&x);
    dgm_mapfile_close(&y);
}

static int stop_at(void *cookie, const char *stage, double share)
{
    (void)stage, (void)share;
    return --*(int *)cookie == 0;
}

static void test_learning(void **state)
{
    (void)state;
    dgm_cluster_options o = options();
    dgm_cluster_report r = {.size = sizeof r};
    o.threads = 3;
    make(MODEL, spare, &o, &r);
    assert_same_file(clustered, spare);
    assert_int_equal(r.lines, 700);
    assert_true(r.vectors > 700 && r.sample <= r.vectors && r.sample >= CENTROIDS);
    assert_true(r.loss < r.first_loss);
    assert_int_equal(r.centroids, CENTROIDS);
    assert_true(r.least > 0 && r.least <= r.share && r.share <= r.most && r.most <= 1);
    // Interrupted after the first chunk, with half a chunk behind it, and continued.
    int left = 1;
    dgm_error error;
    o.threads = 1;
    o.vectors = vectors;
    o.progress = (dgm_progress){stop_at, &left};
    unlink(spare);
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_CANCELLED);
    assert_int_equal(access(spare, F_OK), -1);
    FILE *f = fopen(vectors, "a");
    assert_non_null(f);
    const uint32_t head[2] = {256, 1000};
    fwrite(head, sizeof head, 1, f);
    fclose(f);
    o.progress = (dgm_progress){0};
    make(MODEL, spare, &o, &r);
    assert_same_file(clustered, spare);
    assert_int_equal(r.lines, 700);
    // From the same vectors without translating: other lists.
    o.best = 1;
    dgm_cluster_report one = {.size = sizeof one};
    make(MODEL, spare, &o, &one);
    assert_true(one.share < r.share && one.vectors == r.vectors);
    // Vectors of something else are not mixed in.
    o.beam = 2;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "was begun with another model"));
    o.beam = 1;
    o.vectors = corpus;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_FORMAT);
    o.vectors = NULL;
    o.centroids = 60000;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_TEXT);
    o.centroids = 0;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_ARGUMENT);
}

static uint64_t listed_in(const char *path, uint64_t *shared, const char *other)
{
    dgm_gguf *g = NULL, *h = NULL;
    dgm_clusters_view v, u;
    assert_int_equal(dgm_modelfile_open(&g, path, NULL), DGM_OK);
    assert_int_equal(dgm_modelfile_open(&h, other, NULL), DGM_OK);
    assert_int_equal(dgm_clusters_view_open(&v, g, 0, NULL), DGM_OK);
    assert_int_equal(dgm_clusters_view_open(&u, h, 0, NULL), DGM_OK);
    assert_memory_equal(v.centroids->data, u.centroids->data, v.centroids->bytes);
    uint64_t mine[8], theirs[8], n = 0;
    *shared = 0;
    for (int c = 0; c < v.count; c++) {
        memset(mine, 0, sizeof mine);
        memset(theirs, 0, sizeof theirs);
        dgm_idlists_mark(v.lists + v.at[c], mine);
        dgm_idlists_mark(u.lists + u.at[c], theirs);
        for (int i = 0; i < 8; i++) {
            n += (uint64_t)__builtin_popcountll(mine[i]);
            *shared += (uint64_t)__builtin_popcountll(mine[i] & theirs[i]);
        }
    }
    dgm_clusters_view_close(&v);
    dgm_clusters_view_close(&u);
    dgm_gguf_close(&g);
    dgm_gguf_close(&h);
    return n;
}

// Lists made anew for the same centroids: those of the published method are part of those that
// count neighbours, a least weight takes tokens away, and the file's centroids stay as they are.
static void test_lists(void **state)
{
    (void)state;
    dgm_cluster_options o = options();
    dgm_error error;
    char near[64];
    snprintf(near, sizeof near, "%s/near.gguf", folder);
    uint64_t shared;
    o.from = clustered;
    const int default_near = o.near;
    const double default_least = o.least;
    o.near = 1;
    o.least = 0;
    make(MODEL, spare, &o, NULL);
    o.near = 3;
    make(MODEL, near, &o, NULL);
    const uint64_t few = listed_in(spare, &shared, near);
    assert_int_equal(shared, few);
    assert_true(listed_in(near, &shared, spare) > few);
    o.near = default_near;
    o.least = default_least;
    make(MODEL, spare, &o, NULL);
    assert_same_file(spare, clustered); // the same as k-means gave, with the same lists
    o.least = 0.3;
    make(MODEL, spare, &o, NULL);
    const uint64_t heavy = listed_in(spare, &shared, near);
    assert_true(shared == heavy && heavy < few);
    unlink(near);
    o.centroids = CENTROIDS + 1;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "12 centroids"));
    o.centroids = CENTROIDS;
    o.from = MODEL;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_UNSUPPORTED);
    o.from = NULL;
    o.near = 9;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_ARGUMENT);
    o.near = 1;
    o.least = 1;
    assert_int_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_ERR_ARGUMENT);
}

static void test_measure(void **state)
{
    (void)state;
    dgm_cluster_options o = options();
    dgm_cluster_measure m = {.size = sizeof m};
    dgm_error error;
    // The text that the lists were learnt from: all its best tokens are in them.
    assert_int_equal(dgm_cluster_test(clustered, corpus, &o, &m, &error), DGM_OK);
    assert_int_equal(m.lines, 700);
    assert_true(m.recall == 1.0 && m.share > 0 && m.share < 1);
    uint64_t hits = 0;
    for (int i = 0; i < m.centroids; i++) hits += m.hits[i];
    assert_int_equal(hits, m.vectors);
    dgm_cluster_free(&m);
    assert_int_equal(dgm_cluster_test(MODEL, corpus, &o, &m, &error), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "dragoman cluster"));
    o.remove = 1;
    make(clustered, spare, &o, NULL);
    assert_int_equal(dgm_cluster_test(spare, corpus, &o, &m, &error), DGM_ERR_UNSUPPORTED);
}

// ---- translating -------------------------------------------------------------------------------

// All translations of all lines, with their scores if asked for, in one string.
static char *translate_all(dgm_translator *t, bool scores)
{
    return translate_texts(t, texts, TEXTS, scores);
}

static char *translate_with(const char *path, const dgm_settings *s, bool scores)
{
    dgm_translator *t = open_with(s, path);
    char *out = translate_all(t, scores);
    dgm_close(&t);
    return out;
}

// Lists that hold everything give what the whole vocabulary gives: integers bit for bit, f32 up to
// the order of its sums.
static void test_full_lists(void **state)
{
    (void)state;
    static const char *const precisions[] = {"f32", "i16", "i8", "bf16"};
    for (int p = 0; p < 4; p++)
        for (int beam = 1; beam <= 4; beam += 3) {
            dgm_settings s;
            dgm_settings_default(&s);
            s.precision = precisions[p];
            s.beam = beam;
            s.shortlist = "all";
            char *all = translate_with(full, &s, p > 0);
            s.shortlist = "cluster";
            char *listed_all = translate_with(full, &s, p > 0);
            assert_string_equal(all, listed_all);
            free(all);
            free(listed_all);
        }
}

static void test_invariance(void **state)
{
    (void)state;
    static const char *const modes[] = {"cluster", "union", "intersect"};
    static const char *const precisions[] = {"f32", "i16", "i8", "bf16"};
    static const char *const searches[] = {"greedy", "beam", "cube"};
    for (int m = 0; m < 3; m++)
        for (int p = 0; p < 4; p++)
            for (int q = 0; q < 3; q++) {
                dgm_settings s;
                dgm_settings_default(&s);
                s.shortlist = modes[m];
                s.precision = precisions[p];
                s.search = searches[q];
                s.beam = q ? 4 : 1;
                s.nbest = q ? 2 : 1;
                s.batch = 1;
                char *alone = translate_with(listed, &s, true);
                s.batch = 5;
                s.threads = 2;
                char *together = translate_with(listed, &s, true);
                assert_string_equal(alone, together);
                free(alone);
                free(together);
            }
}

static void test_counts(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    double candidates[5];
    static const char *const modes[] = {"all", "lexical", "cluster", "union", "intersect"};
    for (int m = 0; m < 5; m++) {
        s.shortlist = modes[m];
        dgm_translator *t = open_with(&s, listed);
        assert_string_equal(dgm_describe(t)->shortlist, modes[m]);
        free(translate_all(t, false));
        dgm_counters c;
        dgm_count(t, &c);
        candidates[m] = (double)c.candidates / (double)c.sentences;
        assert_int_equal(c.centroids, m > 1 ? CENTROIDS : 0);
        assert_true(c.centroids_used <= c.centroids && (m < 2 || c.centroids_used > 0));
        dgm_close(&t);
    }
    assert_true(candidates[0] == 305);
    assert_true(candidates[2] < 305 && candidates[3] >= candidates[2]);
    assert_true(candidates[3] >= candidates[1]);
    assert_true(candidates[4] <= candidates[1] && candidates[4] <= candidates[2]);
}

// The tokens of the source are candidates beside what the list or the clusters say, unless they are
// switched off. None of the lists knows those of "ZQ".
static void test_source_tokens(void **state)
{
    (void)state;
    static const char *const modes[] = {"lexical", "cluster", "union", "intersect"};
    for (int m = 0; m < 4; m++) {
        uint64_t candidates[3];
        for (int off = 0; off < 3; off++) {
            dgm_settings s;
            dgm_settings_default(&s);
            s.shortlist = modes[m];
            s.source_tokens = off == 2 ? "off" : off ? "on" : NULL;
            dgm_translator *t = open_with(&s, listed);
            const char *const line[] = {"ZQ QZ the house"};
            free(translate_texts(t, line, 1, false));
            dgm_counters c;
            dgm_count(t, &c);
            candidates[off] = c.candidates;
            dgm_close(&t);
        }
        assert_int_equal(candidates[0], candidates[1]);
        assert_true(m == 3 ? candidates[2] <= candidates[1] : candidates[2] < candidates[1]);
    }
    dgm_settings s;
    dgm_settings_default(&s);
    s.source_tokens = "off";
    dgm_translator *t = NULL;
    dgm_error error;
    assert_int_equal(dgm_open(&t, listed, &s, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "source-tokens-off requires shortlist"));
}

static dgm_counters count_unions(const char *path, const char *shortlist, int batch, int beam)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.shortlist = shortlist;
    s.batch = batch;
    s.beam = beam;
    s.count_unions = 1;
    dgm_translator *t = open_with(&s, path);
    assert_int_equal(dgm_describe(t)->vocabulary, 305);
    free(translate_all(t, false));
    dgm_counters c;
    dgm_count(t, &c);
    dgm_close(&t);
    return c;
}

// Of a sentence alone the union is its own list; of several it is larger than the mean list and
// smaller than all of them; lists of everything give the vocabulary.
static void test_unions(void **state)
{
    (void)state;
    for (int beam = 1; beam <= 3; beam += 2) {
        const dgm_counters alone = count_unions(clustered, "cluster", 1, beam);
        const dgm_counters batch = count_unions(clustered, "cluster", TEXTS, beam);
        assert_true(alone.unions > 0 && alone.unions == alone.selections);
        assert_int_equal(alone.union_tokens, alone.selection_tokens);
        assert_int_equal(batch.selections, alone.selections); // sentences x steps
        assert_int_equal(batch.selection_tokens, alone.selection_tokens);
        assert_true(batch.unions < batch.selections);
        assert_true(batch.union_tokens < batch.selection_tokens);
        assert_true(batch.union_tokens * batch.selections > batch.selection_tokens * batch.unions);
        const dgm_counters all = count_unions(full, "cluster", TEXTS, beam);
        assert_int_equal(all.union_tokens * all.selections, all.selection_tokens * all.unions);
        assert_int_equal(count_unions(clustered, "all", TEXTS, beam).unions, 0);
    }
    dgm_settings s;
    dgm_settings_default(&s);
    s.shortlist = "cluster";
    dgm_translator *t = open_with(&s, clustered);
    free(translate_all(t, false));
    dgm_counters c;
    dgm_count(t, &c);
    assert_int_equal(c.unions, 0); // nobody asked
    dgm_close(&t);
}

// An ensemble takes the clusters of whichever member has them, and that member's vectors.
static void test_ensemble(void **state)
{
    (void)state;
    for (int arithmetic = 0; arithmetic < 2; arithmetic++)
        for (int order = 0; order < 2; order++) {
            const dgm_member members[2] = {{order ? OTHER : clustered, 0},
                                           {order ? clustered : OTHER, 0}};
            char *seen[2];
            for (int batch = 0; batch < 2; batch++) {
                dgm_settings s;
                dgm_settings_default(&s);
                s.shortlist = "cluster";
                s.beam = 3;
                s.batch = batch ? 4 : 1;
                s.mix = arithmetic ? "arithmetic" : "log-linear";
                dgm_translator *t = NULL;
                dgm_error error;
                if (dgm_open_ensemble(&t, members, 2, &s, &error) != DGM_OK)
                    fail_msg("%s", error.text);
                seen[batch] = translate_all(t, true);
                dgm_close(&t);
            }
            assert_string_equal(seen[0], seen[1]);
            free(seen[0]);
            free(seen[1]);
        }
}

// What a forced prefix needs is a candidate, whatever the clusters say; exact scores of accelerated
// pruning are finite.
static void test_needed(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.shortlist = "intersect";
    dgm_translator *t = open_with(&s, listed);
    dgm_input in = {.size = sizeof(dgm_input),
                    .text = "The house is small.",
                    .text_size = 19,
                    .prefix = "zq",
                    .prefix_size = 2};
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    assert_non_null(strstr(dgm_result_text(r->items[0]), "zq"));
    dgm_results_free(&r);
    dgm_close(&t);
    s.shortlist = "cluster";
    s.search = "cube";
    s.beam = 6;
    s.exact_scores = 1;
    t = open_with(&s, listed);
    assert_int_equal(dgm_translate(t, texts, TEXTS, &r, NULL), DGM_OK);
    for (size_t i = 0; i < r->count; i++) assert_true(r->items[i]->translations[0]->sum > -1e6f);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    dgm_error error;
    dgm_translator *t = NULL;
    s.shortlist = "cluster";
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "dragoman cluster"));
    s.shortlist = "union"; // clusters alone are not enough
    assert_int_equal(dgm_open(&t, clustered, &s, &error), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(error.text, "dragoman shortlist"));
    s.shortlist = "some";
    assert_int_equal(dgm_open(&t, clustered, &s, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "intersect"));
    dgm_cluster_options o = options();
    o.device = "abacus";
    assert_int_not_equal(dgm_cluster_make(MODEL, spare, &o, NULL, &error), DGM_OK);
    assert_non_null(strstr(error.text, "abacus"));
    char described[256];
    assert_int_not_equal(dgm_device("abacus", described, sizeof described, &error), DGM_OK);
    assert_non_null(strstr(error.text, "abacus"));
    assert_int_equal(dgm_device("cpu:c", described, sizeof described, &error), DGM_OK);
    assert_non_null(strstr(described, "cpu c: "));
}

// A quantised model keeps its clusters; its rows are read from the file.
static void test_quantized(void **state)
{
    (void)state;
    dgm_quantize_options o;
    dgm_quantize_default(&o);
    o.type = "i8";
    dgm_error error;
    if (dgm_quantize(full, spare, &o, NULL, &error) != DGM_OK) fail_msg("%s", error.text);
    dgm_settings s;
    dgm_settings_default(&s);
    s.shortlist = "cluster";
    char *rows = translate_with(spare, &s, true);
    s.shortlist = "all";
    char *whole = translate_with(spare, &s, true);
    assert_string_equal(rows, whole);
    free(rows);
    free(whole);
}

static void test_memory(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_settings_default(&s);
    s.shortlist = "union";
    s.batch = 2;
    for (uint64_t fail = 1;; fail += 1 + fail / 8) {
        dgm_translator *t = NULL;
        const uint64_t live = dgm_mem_live();
        dgm_mem_inject(fail, 1);
        const dgm_status st = dgm_open(&t, listed, &s, NULL);
        dgm_mem_inject(0, 0);
        dgm_close(&t);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_learning), cmocka_unit_test(test_lists),   cmocka_unit_test(test_measure),
        cmocka_unit_test(test_full_lists), cmocka_unit_test(test_invariance),
        cmocka_unit_test(test_counts),     cmocka_unit_test(test_source_tokens),
        cmocka_unit_test(test_unions),     cmocka_unit_test(test_ensemble),
        cmocka_unit_test(test_needed),     cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_quantized),  cmocka_unit_test(test_memory)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
