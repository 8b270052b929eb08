// SPDX-License-Identifier: MIT
// Directions of a multilingual model through the public functions: a batch that mixes them gives what
// separate translators give, byte for byte, with clusters of each direction too; defaults of a direction,
// unknown, missing and ambiguous languages.
//
// The model is a random one of tests/data/models with three languages put into its metadata, tokens
// before the source and before the target.
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"
#include "format/clusters.h"
#include "format/gguf.h"

static char path[] = "/tmp/dragoman-direction-XXXXXX";
static const char *const codes[] = {"xx", "yy", "zz"};
static const char *texts[4]; // of the fixture

static float own_penalty;     // of xx to yy; 0: none
static const char *own_words; // of xx to yy: its kind of shortlist; NULL: none

// Writes the model; `plain`: without a default direction.
static void write_model(bool with_default, bool last)
{
    static const int32_t tokens[] = {2, 3, 5};
    static const char *const both[] = {"source", "target"}, *const target[] = {"target"};
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    dgm_error err = {{0}};
    if (dgm_gguf_open(&g, "tests/data/models/transformer-offset-prefix.gguf", &err) != DGM_OK)
        fail_msg("%s", err.text);
    assert_int_equal(dgm_gguf_writer_open(&w, &err), DGM_OK);
    dgm_gguf_set_strings(w, "dragoman.languages.source", codes, 3);
    dgm_gguf_set_strings(w, "dragoman.languages.target", codes, 3);
    dgm_gguf_set_array(w, "dragoman.languages.source_tokens", DGM_META_I32, tokens, 3);
    dgm_gguf_set_array(w, "dragoman.languages.target_tokens", DGM_META_I32, tokens, 3);
    dgm_gguf_set_strings(w, "dragoman.source.tags", both, 2);
    dgm_gguf_set_strings(w, "dragoman.target.tags", target, 1);
    if (last) dgm_gguf_set_bool(w, "dragoman.source.tags_last", true);
    if (with_default) dgm_gguf_set_string(w, "dragoman.languages.default", "yy zz");
    if (own_penalty != 0)
        dgm_gguf_set_f32(w, "dragoman.directions.xx.yy.length_penalty", own_penalty);
    if (own_words) dgm_gguf_set_string(w, "dragoman.directions.xx.yy.shortlist", own_words);
    dgm_gguf_set_copies(w, g);
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    if (dgm_gguf_write(w, path, &err) != DGM_OK) fail_msg("%s", err.text);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
}

// The model of write_model again with a length penalty for xx to yy.
static void write_own(float penalty)
{
    own_penalty = penalty;
    write_model(true, false);
    own_penalty = 0;
}

static int set_up(void **state)
{
    (void)state;
    static char kept[4][256];
    dgm_gguf *dump = NULL;
    dgm_error err = {{0}};
    int fd = mkstemp(path);
    if (fd < 0) return -1;
    close(fd);
    if (dgm_gguf_open(&dump, "tests/data/models/transformer-offset-prefix.fixture.gguf", &err))
        return -1;
    for (int i = 0, k = 0; k < 4 && i < 8; i++) {
        char key[32];
        const char *text = NULL;
        snprintf(key, sizeof key, "fixture.%d.text", i);
        if (dgm_gguf_get_string(dump, key, DGM_OPTIONAL, &text, &err) || !text) continue;
        snprintf(kept[k], sizeof kept[k], "%s", text);
        texts[k] = kept[k];
        k++;
    }
    dgm_gguf_close(&dump);
    return texts[3] ? 0 : -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(path);
    return 0;
}

// How translators are opened, unless a test says otherwise.
static struct {
    const char *precision, *shortlist;
    int beam, threads;
} how = {"f32", NULL, 3, 1};

static const dgm_direction each; // lines say theirs

static dgm_status open_with(dgm_translator **t, const dgm_direction *d, dgm_error *err)
{
    dgm_settings s;
    dgm_settings_default(&s);
    s.precision = how.precision;
    s.shortlist = how.shortlist;
    s.beam = how.beam;
    s.threads = how.threads;
    s.source = d ? d->source : NULL;
    s.target = d ? d->target : NULL;
    s.direction_later = d == &each;
    return dgm_open(t, path, &s, err);
}

// Every text in every direction: 4 x 6 lines, alone and together.
static void check_mixed(void)
{
    enum { LINES = 24 };
    static char alone[LINES][512];
    dgm_direction list[LINES];
    dgm_input inputs[LINES];
    dgm_error err = {{0}};
    int n = 0, distinct = 0;
    memset(list, 0, sizeof list);
    memset(inputs, 0, sizeof inputs);
    for (int s = 0; s < 3; s++)
        for (int d = 0; d < 3; d++) {
            if (s == d) continue;
            dgm_direction way = {.source = codes[s], .target = codes[d]};
            dgm_translator *t = NULL;
            dgm_results *r = NULL;
            if (open_with(&t, &way, &err) != DGM_OK) fail_msg("%s", err.text);
            assert_string_equal(dgm_describe(t)->source_language, codes[s]);
            assert_string_equal(dgm_describe(t)->target_language, codes[d]);
            assert_int_equal(dgm_translate(t, texts, 4, &r, &err), DGM_OK);
            for (int i = 0; i < 4; i++, n++) {
                assert_int_equal(r->items[i]->status, DGM_OK);
                snprintf(alone[n], sizeof alone[n], "%s %.9g", dgm_result_text(r->items[i]),
                         (double)r->items[i]->translations[0]->sum);
                list[n] = way;
                inputs[n] = (dgm_input){
                    .size = sizeof(dgm_input), .text = texts[i], .text_size = strlen(texts[i])};
                inputs[n].direction = &list[n];
            }
            dgm_results_free(&r);
            dgm_close(&t);
        }
    for (int i = 4; i < n; i++) distinct += strcmp(alone[i], alone[i % 4]) != 0;
    assert_true(distinct >= 16); // the tokens matter
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    if (open_with(&t, &each, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate_inputs(t, inputs, LINES, &r, &err), DGM_OK);
    for (int i = 0; i < LINES; i++) {
        char mixed[512];
        snprintf(mixed, sizeof mixed, "%s %.9g", dgm_result_text(r->items[i]),
                 (double)r->items[i]->translations[0]->sum);
        assert_string_equal(mixed, alone[i]);
    }
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_mixed(void **state)
{
    (void)state;
    write_model(false, false);
    check_mixed();
    write_model(true, true); // source tokens behind the end symbol
    check_mixed();
}

static void test_choices(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_error err = {{0}};
    dgm_direction d = {0};
    write_model(true, false);
    assert_int_equal(open_with(&t, NULL, &err), DGM_OK); // the default
    assert_string_equal(dgm_describe(t)->source_language, "yy");
    assert_string_equal(dgm_describe(t)->target_language, "zz");
    assert_int_equal(dgm_directions(t, 3, &d), 6);
    assert_string_equal(d.source, "yy");
    assert_string_equal(d.target, "zz");
    // a line that fails does not touch the others
    dgm_direction bad = {.source = "yy", .target = "qq"}, same = {.target = "yy"};
    dgm_input inputs[3] = {
        {.size = sizeof(dgm_input), .text = texts[0], .text_size = strlen(texts[0])},
        {.size = sizeof(dgm_input),
         .text = texts[0],
         .text_size = strlen(texts[0]),
         .direction = &bad},
        {.size = sizeof(dgm_input),
         .text = texts[0],
         .text_size = strlen(texts[0]),
         .direction = &same}};
    dgm_results *r = NULL;
    assert_int_equal(dgm_translate_inputs(t, inputs, 3, &r, &err), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    assert_int_equal(r->items[1]->status, DGM_ERR_ARGUMENT);
    assert_string_equal(r->items[1]->message,
                        "the model does not translate to 'qq': it has xx, yy, zz");
    assert_int_equal(r->items[2]->status, DGM_ERR_ARGUMENT);
    assert_string_equal(
        r->items[2]->message,
        "the model does not translate from yy to yy: from yy it translates to xx, zz");
    dgm_results_free(&r);
    dgm_close(&t);

    write_model(false, false);
    assert_int_equal(open_with(&t, NULL, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "the model has 6 directions, say which, source and target: "
                                     "xx yy, xx zz, yy xx, yy zz, zz xx, zz yy"));
    dgm_direction half = {.source = "zz"};
    assert_int_equal(open_with(&t, &half, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "from zz the model translates to xx, yy: say which"));
}

// Length penalties of one direction: with -s/-t, in mixed batches, and replaced by the caller's.
static char best[2][512];

static void best_of(const dgm_direction *way, float penalty, const dgm_input *input, char *out)
{
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_settings s;
    dgm_error err = {{0}};
    dgm_settings_default(&s);
    s.precision = "f32";
    s.beam = 4;
    s.length_penalty = penalty;
    s.source = way->source;
    s.target = way->target;
    if (dgm_open(&t, path, &s, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate_inputs(t, input, 1, &r, &err), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    snprintf(out, sizeof best[0], "%s %.9g", dgm_result_text(r->items[0]),
             (double)r->items[0]->translations[0]->score);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void test_defaults(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    dgm_direction xy = {.source = "xx", .target = "yy"}, yz = {.source = "yy", .target = "zz"};
    write_model(true, false);
    write_own(-2.0f);
    for (int i = 0; i < 4; i++) {
        dgm_input plain = {.size = sizeof(dgm_input),
                           .text = texts[i],
                           .text_size = strlen(texts[i])},
                  other = plain;
        other.direction = &xy;
        best_of(&xy, DGM_FROM_MODEL, &plain, best[0]);
        best_of(&xy, -2.0f, &plain, best[1]);
        assert_string_equal(best[0], best[1]);
        best_of(&yz, DGM_FROM_MODEL, &other, best[1]); // a line in a batch of another direction
        assert_string_equal(best[0], best[1]);
        best_of(&xy, 1.0f, &plain, best[0]); // what the caller says counts, for such a line too
        best_of(&yz, 1.0f, &other, best[1]);
        assert_string_equal(best[0], best[1]);
        best_of(&yz, DGM_FROM_MODEL, &plain, best[0]); // without its own: the file's for all
        best_of(&yz, 1.0f, &plain, best[1]);
        assert_string_equal(best[0], best[1]);
    }
    dgm_translator *t = NULL;
    assert_int_equal(open_with(&t, &xy, &err), DGM_OK);
    assert_true(dgm_describe(t)->length_penalty == -2.0f);
    dgm_close(&t);
    write_own(-20.0f);
    assert_int_equal(open_with(&t, &xy, &err), DGM_ERR_FORMAT);
    assert_non_null(strstr(err.text, "dragoman.directions.xx.yy.length_penalty"));
    assert_int_equal(open_with(&t, &yz, &err), DGM_OK);
    dgm_close(&t);
}

// The kind of shortlist of one direction: chosen by -s/-t, replaced by the caller's.
static void test_own_words(void **state)
{
    (void)state;
    dgm_translator *t = NULL;
    dgm_error err = {{0}};
    dgm_direction xy = {.source = "xx", .target = "yy"}, yz = {.source = "yy", .target = "zz"};
    own_words = "cluster";
    write_model(true, false);
    assert_int_equal(open_with(&t, &xy, &err), DGM_ERR_UNSUPPORTED); // it is asked for, and is not there
    assert_non_null(strstr(err.text, "the model has no clusters"));
    assert_int_equal(open_with(&t, &yz, &err), DGM_OK);
    assert_string_equal(dgm_describe(t)->shortlist, "all");
    dgm_close(&t);
    how.shortlist = "all";
    assert_int_equal(open_with(&t, &xy, &err), DGM_OK);
    assert_string_equal(dgm_describe(t)->shortlist, "all");
    dgm_close(&t);
    how.shortlist = NULL;
    own_words = "most";
    write_model(true, false);
    assert_int_equal(open_with(&t, &xy, &err), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "most"));
    assert_int_equal(open_with(&t, &yz, &err), DGM_OK);
    dgm_close(&t);
    own_words = NULL;
}

// Clusters for a direction, learnt from what the model translates that way.
static void add_clusters(const char *source, const char *target)
{
    char text[] = "/tmp/dragoman-direction-text-XXXXXX";
    dgm_cluster_options o;
    dgm_error err = {{0}};
    int fd = mkstemp(text);
    assert_true(fd >= 0);
    FILE *f = fdopen(fd, "w");
    for (int i = 0; i < 40; i++) fprintf(f, "%s\n", texts[i % 4]);
    fclose(f);
    dgm_cluster_default(&o);
    o.text = text;
    o.centroids = 5;
    o.best = o.record_best = 3;
    o.source = source;
    o.target = target;
    o.precision = "f32";
    if (dgm_cluster_make(path, path, &o, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    unlink(text);
}

static void check_blocks(const char *const (*expected)[2], int count)
{
    dgm_gguf *g = NULL;
    assert_int_equal(dgm_gguf_open(&g, path, NULL), DGM_OK);
    assert_int_equal(dgm_clusters_blocks(g), count);
    for (int i = 0; i < count; i++) {
        dgm_clusters_view v;
        assert_int_equal(dgm_clusters_view_open(&v, g, i, NULL), DGM_OK);
        assert_string_equal(v.source, expected[i][0]);
        assert_string_equal(v.target, expected[i][1]);
        dgm_clusters_view_close(&v);
    }
    dgm_gguf_close(&g);
}

static void test_clusters(void **state)
{
    (void)state;
    static const char *const blocks[][2] = {{"xx", "yy"}, {"xx", "zz"}, {"yy", "xx"},
                                            {"yy", "zz"}, {"zz", "xx"}, {"zz", "yy"}};
    write_model(true, false);
    for (int i = 0; i < 6; i++) add_clusters(blocks[i][0], blocks[i][1]);
    check_blocks(blocks, 6);
    static const char *const kinds[] = {"f32", "i8"};
    how.shortlist = "cluster";
    for (int i = 0; i < 4; i++) {
        how.precision = kinds[i % 2];
        how.beam = i < 2 ? 1 : 3;
        how.threads = 1 + i % 3;
        check_mixed();
    }
    how.shortlist = NULL;
    how.precision = "f32";
    how.beam = 3;
    how.threads = 1;
}

// Clusters of one direction, the only ones of the file, are no clusters of another.
static void test_clusters_lone(void **state)
{
    (void)state;
    dgm_direction xy = {.source = "xx", .target = "yy"}, yx = {.source = "yy", .target = "xx"};
    const dgm_direction *const ways[] = {&xy, &yx};
    dgm_input inputs[2];
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_error err = {{0}};
    write_model(true, false);
    add_clusters("xx", "yy");
    for (int i = 0; i < 2; i++)
        inputs[i] = (dgm_input){.size = sizeof(dgm_input),
                                .text = texts[i],
                                .text_size = strlen(texts[i]),
                                .direction = ways[i]};
    how.shortlist = "cluster";
    assert_int_equal(open_with(&t, &yx, &err), DGM_ERR_UNSUPPORTED);
    assert_non_null(strstr(err.text, "the model has no clusters for 'yy' to 'xx'"));
    assert_int_equal(open_with(&t, &xy, &err), DGM_OK);
    dgm_close(&t);
    if (open_with(&t, &each, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate_inputs(t, inputs, 2, &r, &err), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_OK);
    assert_int_equal(r->items[1]->status, DGM_ERR_UNSUPPORTED);
    dgm_results_free(&r);
    dgm_close(&t);
    how.shortlist = NULL;
    assert_int_equal(open_with(&t, &yx, &err), DGM_OK); // nobody asks for them
    dgm_close(&t);
}

// A block for a target serves every source; a direction without clusters fails by itself.
static void test_clusters_missing(void **state)
{
    (void)state;
    static const char *const blocks[][2] = {{"xx", "yy"}, {"", "zz"}};
    dgm_direction xy = {.source = "xx", .target = "yy"}, yx = {.source = "yy", .target = "xx"},
                  xz = {.source = "xx", .target = "zz"};
    const dgm_direction *const ways[] = {&xy, &yx, &xz, NULL};
    dgm_input inputs[4];
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_error err = {{0}};
    write_model(true, false); // the default is yy zz
    add_clusters("xx", "yy");
    add_clusters("", "zz");
    check_blocks(blocks, 2);
    memset(inputs, 0, sizeof inputs);
    for (int i = 0; i < 4; i++)
        inputs[i] = (dgm_input){.size = sizeof(dgm_input),
                                .text = texts[i],
                                .text_size = strlen(texts[i]),
                                .direction = ways[i]};
    how.shortlist = "cluster";
    if (open_with(&t, &each, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate_inputs(t, inputs, 4, &r, &err), DGM_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(r->items[i]->status, i == 1 ? DGM_ERR_UNSUPPORTED : DGM_OK);
    assert_string_equal(r->items[1]->message,
                        "the model has no clusters for 'yy' to 'xx' (make them "
                        "with 'dragoman cluster')");
    dgm_results_free(&r);
    dgm_close(&t);
    // A translator of one direction has its clusters alone.
    if (open_with(&t, &xy, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_translate_inputs(t, inputs, 4, &r, &err), DGM_OK);
    for (int i = 0; i < 4; i++)
        assert_int_equal(r->items[i]->status, i == 1 || i == 2 ? DGM_ERR_UNSUPPORTED : DGM_OK);
    assert_string_equal(
        r->items[2]->message,
        "clusters are those of xx to yy: translate other directions by themselves or "
        "without clusters");
    dgm_results_free(&r);
    dgm_close(&t);
    assert_int_equal(open_with(&t, &yx, &err), DGM_ERR_UNSUPPORTED);
    how.shortlist = NULL;
}

// ---- clusters of all directions in one run -----------------------------------------------------

enum { MIXED = 90 };

static char mixed_text[80], mixed_ways[80], split_text[80], whole[80];

// The i-th line's direction; the first three say what the order of the blocks is.
static dgm_direction way_of(int i)
{
    static const char *const ways[][2] = {{"yy", "zz"}, {"xx", "yy"}, {"zz", "yy"}};
    const int k = i < 3 ? i : (i * i + i / 7) % 3;
    return (dgm_direction){ways[k][0], ways[k][1]};
}

static void write_text(const char *file, const dgm_direction *only)
{
    FILE *f = fopen(file, "w");
    assert_non_null(f);
    for (int i = 0; i < MIXED; i++) {
        const dgm_direction d = way_of(i);
        if (!only || (strcmp(d.source, only->source) == 0 && strcmp(d.target, only->target) == 0))
            fprintf(f, "%s\n", texts[(i + i / 5) % 4]);
    }
    fclose(f);
}

// yy zz is the model's default: nothing needs to be said; a target alone will do where it means one.
static void write_ways(int lines, const char *instead)
{
    FILE *f = fopen(mixed_ways, "w");
    assert_non_null(f);
    for (int i = 0; i < lines; i++) {
        const dgm_direction d = way_of(i);
        if (instead && i == lines / 2) fprintf(f, "%s\n", instead);
        else if (strcmp(d.target, "zz") == 0) fputs(i % 2 ? "\n" : " zz \n", f);
        else fprintf(f, "%s%s%s\n", d.source, i % 2 ? "\t" : "  ", d.target);
    }
    fclose(f);
}

static dgm_cluster_options mixed_options(const char *text)
{
    dgm_cluster_options o;
    dgm_cluster_default(&o);
    o.text = text;
    o.centroids = 4;
    o.best = o.record_best = 3;
    return o;
}

static void assert_same_file(const char *a, const char *b)
{
    FILE *f = fopen(a, "rb"), *g = fopen(b, "rb");
    assert_true(f && g);
    int x, y;
    long at = 0;
    do {
        x = getc(f);
        y = getc(g);
        if (x != y) fail_msg("%s and %s differ at byte %ld", a, b, at);
        at++;
    } while (x != EOF);
    fclose(f);
    fclose(g);
}

static void name_mixed(void)
{
    snprintf(mixed_text, sizeof mixed_text, "%s.text", path);
    snprintf(mixed_ways, sizeof mixed_ways, "%s.ways", path);
    snprintf(split_text, sizeof split_text, "%s.split", path);
    snprintf(whole, sizeof whole, "%s.whole", path);
    write_text(mixed_text, NULL);
    write_ways(MIXED, NULL);
}

static int seen_stages;

static int count_stages(void *cookie, const char *stage, double share)
{
    (void)share;
    seen_stages += strstr(stage, " xx to yy") != NULL;
    return *(int *)cookie && strcmp(stage, "clustering zz to yy") == 0;
}

// One run gives the bytes of a run for each direction, in the order in which the text has them; the
// second time, where one block is there, one is replaced and one new, too.
static void test_clusters_directions(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    name_mixed();
    write_model(true, false);
    for (int threads = 1; threads <= 2; threads++) {
        dgm_cluster_options o = mixed_options(mixed_text);
        dgm_cluster_reports *r = NULL;
        int stop = 0;
        o.threads = threads;
        o.progress = (dgm_progress){count_stages, &stop};
        if (dgm_cluster_make_directions(path, whole, mixed_ways, &o, &r, &err) != DGM_OK)
            fail_msg("%s", err.text);
        assert_int_equal(r->count, 3);
        assert_true(seen_stages > 0);
        for (int i = 0; i < 3; i++) {
            const dgm_direction d = way_of(i);
            dgm_cluster_report one = {.size = sizeof one};
            dgm_cluster_options each_way = mixed_options(split_text);
            each_way.source = d.source;
            each_way.target = d.target;
            write_text(split_text, &d);
            if (dgm_cluster_make(path, path, &each_way, &one, &err) != DGM_OK)
                fail_msg("%s", err.text);
            assert_string_equal(r->items[i]->source, d.source);
            assert_string_equal(r->items[i]->target, d.target);
            assert_int_equal(r->items[i]->lines, one.lines);
            assert_int_equal(r->items[i]->vectors, one.vectors);
            assert_int_equal(r->items[i]->bytes, one.bytes);
            assert_true(r->items[i]->loss == one.loss && r->items[i]->share == one.share);
        }
        assert_same_file(path, whole);
        dgm_cluster_reports_free(&r);
        dgm_cluster_reports_free(&r);
        write_model(true, false); // for the second time: other clusters, two of these directions
        add_clusters("zz", "yy");
        add_clusters("xx", "zz");
        add_clusters("yy", "zz");
    }
    int stop = 1;
    dgm_cluster_options o = mixed_options(mixed_text);
    o.progress = (dgm_progress){count_stages, &stop};
    assert_int_equal(dgm_cluster_make_directions(path, whole, mixed_ways, &o, NULL, &err),
                     DGM_ERR_CANCELLED);
}

// Blocks for targets, from lines of any source; and recorded vectors, a file for each.
static void test_clusters_targets(void **state)
{
    (void)state;
    static const char *const blocks[][2] = {{"", "zz"}, {"", "yy"}};
    dgm_error err = {{0}};
    name_mixed();
    write_model(true, false);
    dgm_cluster_options o = mixed_options(mixed_text);
    char vectors[80], file[2][100];
    snprintf(vectors, sizeof vectors, "%s.vectors", path);
    for (int i = 0; i < 2; i++) snprintf(file[i], sizeof file[i], "%s.any-%s", vectors, blocks[i][1]);
    o.source = "";
    o.vectors = vectors;
    for (int again = 0; again < 2; again++) {
        dgm_cluster_reports *r = NULL;
        if (dgm_cluster_make_directions(path, again ? whole : path, mixed_ways, &o, &r, &err))
            fail_msg("%s", err.text);
        assert_int_equal(r->items[0]->lines + r->items[1]->lines, MIXED);
        dgm_cluster_reports_free(&r);
    }
    check_blocks(blocks, 2);
    assert_same_file(path, whole);
    write_ways(MIXED, "xx zz"); // other lines: not those of the file
    assert_int_equal(dgm_cluster_make_directions(path, whole, mixed_ways, &o, NULL, &err),
                     DGM_ERR_ARGUMENT);
    assert_non_null(strstr(err.text, "was begun with another model"));
    for (int i = 0; i < 2; i++) assert_int_equal(unlink(file[i]), 0);
}

static void refuse_directions(const char *model, const dgm_cluster_options *o, dgm_status status,
                              const char *words)
{
    dgm_error err = {{0}};
    dgm_cluster_reports *r = NULL;
    const dgm_status st = dgm_cluster_make_directions(model, whole, mixed_ways, o, &r, &err);
    if (st != status || !strstr(err.text, words)) fail_msg("%d: '%s', not '%s'", st, err.text, words);
    assert_null(r);
}

// A model that does not say its languages.
static void write_silent(void)
{
    dgm_gguf *g = NULL;
    dgm_gguf_writer *w = NULL;
    assert_int_equal(dgm_gguf_open(&g, "tests/data/models/transformer-offset-prefix.gguf", NULL), DGM_OK);
    assert_int_equal(dgm_gguf_writer_open(&w, NULL), DGM_OK);
    dgm_gguf_set_copies(w, g);
    dgm_gguf_unset(w, "dragoman.languages.source");
    dgm_gguf_unset(w, "dragoman.languages.target");
    for (int i = 0; i < dgm_gguf_tensor_count(g); i++) {
        const dgm_tensor *t = dgm_gguf_tensor(g, i);
        dgm_gguf_add_tensor(w, t->name, (dgm_tensor_type)t->type, t->n_dims, t->shape, t->data);
    }
    assert_int_equal(dgm_gguf_write(w, path, NULL), DGM_OK);
    dgm_gguf_writer_close(&w);
    dgm_gguf_close(&g);
}

static void test_directions_refused(void **state)
{
    (void)state;
    name_mixed();
    write_model(true, false);
    dgm_cluster_options o = mixed_options(mixed_text);
    refuse_directions(path, NULL, DGM_ERR_ARGUMENT, "options");
    write_ways(MIXED, "xx qq");
    refuse_directions(path, &o, DGM_ERR_ARGUMENT, ".ways:46: ");
    refuse_directions(path, &o, DGM_ERR_ARGUMENT, "'qq'");
    write_ways(MIXED, "xx yy zz");
    refuse_directions(path, &o, DGM_ERR_ARGUMENT, "'xx yy zz'");
    write_ways(MIXED - 1, NULL);
    refuse_directions(path, &o, DGM_ERR_TEXT, "fewer lines");
    o.lines = MIXED - 1; // of the text no more is looked at
    dgm_error err = {{0}};
    if (dgm_cluster_make_directions(path, whole, mixed_ways, &o, NULL, &err)) fail_msg("%s", err.text);
    o.lines = 0;
    write_ways(MIXED + 1, NULL);
    refuse_directions(path, &o, DGM_ERR_TEXT, "more lines");
    write_ways(MIXED, NULL);
    write_silent();
    refuse_directions(path, &o, DGM_ERR_UNSUPPORTED, "does not say its languages");
    write_model(true, false);
    o.centroids = 5000;
    refuse_directions(path, &o, DGM_ERR_TEXT, "yy to zz: the text gives");
    o = mixed_options(mixed_text);
    for (uint64_t fail = 1;; fail += 1 + fail / 6) {
        const uint64_t live = dgm_mem_live();
        dgm_cluster_reports *r = NULL;
        dgm_mem_inject(fail, 1);
        const dgm_status st = dgm_cluster_make_directions(path, whole, mixed_ways, &o, &r, NULL);
        dgm_mem_inject(0, 0);
        dgm_cluster_reports_free(&r);
        assert_int_equal(dgm_mem_live(), live);
        if (st == DGM_OK) break;
    }
    unlink(mixed_text);
    unlink(mixed_ways);
    unlink(split_text);
    unlink(whole);
}

// ---- ensembles ---------------------------------------------------------------------------------

// The text of the first line in one direction by two models, NULL where they do not open; with
// clusters. later: the direction is the line's.
static char *translate_two(const char *first, const char *second, const dgm_direction *d, bool later)
{
    static char text[512];
    dgm_settings s;
    dgm_settings_default(&s);
    s.precision = "f32";
    s.shortlist = "cluster";
    s.source = later ? NULL : d->source;
    s.target = later ? NULL : d->target;
    s.direction_later = later;
    const dgm_member members[2] = {{first, 0}, {second, 0}};
    dgm_translator *t = NULL;
    dgm_results *r = NULL;
    dgm_error err;
    if (dgm_open_ensemble(&t, members, 2, &s, &err) != DGM_OK) return NULL;
    const dgm_input input = {.size = sizeof(dgm_input),
                             .text = texts[0],
                             .text_size = strlen(texts[0]),
                             .direction = later ? d : NULL};
    assert_int_equal(dgm_translate_inputs(t, &input, 1, &r, &err), DGM_OK);
    snprintf(text, sizeof text, "%d %s %.9g", r->items[0]->status, dgm_result_text(r->items[0]),
             r->items[0]->count ? (double)r->items[0]->translations[0]->score : 0.0);
    dgm_results_free(&r);
    dgm_close(&t);
    return text;
}

// Of an ensemble the first member that has clusters of the direction, not the first with any.
static void test_clusters_ensemble(void **state)
{
    (void)state;
    char plain[80], one[80];
    dgm_direction xy = {.source = "xx", .target = "yy"}, yx = {.source = "yy", .target = "xx"},
                  zx = {.source = "zz", .target = "xx"};
    snprintf(plain, sizeof plain, "%s.plain", path);
    snprintf(one, sizeof one, "%s.one", path);
    write_model(false, false);
    assert_int_equal(rename(path, plain), 0);
    write_model(false, false);
    add_clusters("xx", "yy");
    assert_int_equal(rename(path, one), 0);
    write_model(false, false);
    add_clusters("yy", "xx");
    add_clusters("zz", "yy");
    for (int later = 0; later < 2; later++) {
        char alone[512];
        snprintf(alone, sizeof alone, "%s", translate_two(plain, path, &yx, later));
        assert_memory_equal(alone, "0 ", 2);
        assert_string_equal(translate_two(one, path, &yx, later), alone);
        assert_string_equal(translate_two(path, one, &yx, later), alone);
    }
    char alone[512];
    snprintf(alone, sizeof alone, "%s", translate_two(plain, one, &xy, false));
    assert_string_equal(translate_two(one, path, &xy, false), alone);
    assert_null(translate_two(one, path, &zx, false)); // neither has them
    unlink(plain);
    unlink(one);
}

// Models of opposite directions are no ensemble, whatever their vocabularies.
static void test_ensemble_directions(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    dgm_translator *t = NULL;
    const dgm_member opposite[] = {{"models/en-de.gguf", 0}, {"models/de-en.gguf", 0}};
    const dgm_member same[] = {{"models/de-en.gguf", 0}, {"models/de-en.gguf", 0}};
    assert_int_equal(dgm_open_ensemble(&t, opposite, 2, NULL, &err), DGM_ERR_ARGUMENT);
    assert_string_equal(err.text, "models/de-en.gguf translates from de to en, the first model from en to de: the "
                                  "models of an ensemble must translate in the same direction");
    assert_null(t);
    assert_int_equal(dgm_open_ensemble(&t, same, 2, NULL, &err), DGM_OK);
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_mixed),
        cmocka_unit_test(test_choices),
        cmocka_unit_test(test_defaults),
        cmocka_unit_test(test_own_words),
        cmocka_unit_test(test_clusters),
        cmocka_unit_test(test_clusters_lone),
        cmocka_unit_test(test_clusters_missing),
        cmocka_unit_test(test_clusters_ensemble),
        cmocka_unit_test(test_clusters_directions),
        cmocka_unit_test(test_clusters_targets),
        cmocka_unit_test(test_directions_refused),
        cmocka_unit_test(test_ensemble_directions),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
