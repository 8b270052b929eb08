// SPDX-License-Identifier: MIT
// What the tools fill for programs that were compiled against smaller or larger structs than the
// library's, and what they return: every struct says its size, elements of lists are pointers.
#define _GNU_SOURCE // mkdtemp, setenv
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "dragoman/tools.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define RNN "tests/data/models/rnn-bahdanau-pieces.gguf"
enum { POISON = 0xa5, ROOM = 4096, MORE = 24 };

static char folder[] = "/tmp/dgm-abi-XXXXXX";
static char names[8][64];
static dgm_translator *translator;
static const dgm_line lines[2] = {{"a small house", 13}, {"a house", 7}};
static const dgm_line other[2] = {{"a small mouse", 13}, {"the house", 9}};
static const dgm_line *const systems[2] = {lines, other};
enum { SOURCE, TARGET, LINKS, LATTICE, ARPA, TABLE, MEAN, SPARE };

static const char *write_file(int which, const char *text)
{
    FILE *f = fopen(names[which], "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
    return names[which];
}

static int setup(void **state)
{
    (void)state;
    static const char *const ends[8] = {"source",  "target",    "links",     "lattice",
                                        "lm.arpa", "table.txt", "mean.gguf", "spare"};
    if (!mkdtemp(folder)) return -1;
    for (int i = 0; i < 8; i++) snprintf(names[i], sizeof names[i], "%s/%s", folder, ends[i]);
    write_file(SOURCE, "a small house\na house\n");
    write_file(TARGET, "ein kleines haus\nein haus\n");
    write_file(LINKS, "0-0 1-1 2-2\n0-0 1-1\n");
    write_file(LATTICE, "lattice\n0 1 -0.5 a\n0 1 -1 the\n1 2 -0.5 house\n2 0\n");
    return dgm_open(&translator, MODEL, NULL, NULL) == DGM_OK ? 0 : -1;
}

static int teardown(void **state)
{
    (void)state;
    dgm_close(&translator);
    for (int i = 0; i < 8; i++) unlink(names[i]);
    return rmdir(folder);
}

// ---- structs that a caller hands over -----------------------------------------------------------

static dgm_status fill_average(void *report, dgm_error *error)
{
    const char *const models[2] = {MODEL, MODEL};
    return dgm_average(models, 2, names[MEAN], NULL, report, error);
}

static dgm_status fill_lattice(void *report, dgm_error *error)
{
    const char *const files[1] = {names[LATTICE]};
    return dgm_lattice_run(files, 1, names[SPARE], NULL, report, error);
}

static dgm_status fill_ngram(void *report, dgm_error *error)
{
    const char *const texts[1] = {names[TARGET]};
    dgm_ngram_options o;
    dgm_ngram_default(&o);
    o.order = 2;
    o.discount_fallback = 1;
    return dgm_ngram_train(texts, 1, names[ARPA], &o, report, error);
}

static dgm_status fill_phrase(void *report, dgm_error *error)
{
    return dgm_phrase_extract(names[SOURCE], names[TARGET], names[LINKS], names[TABLE], NULL,
                              report, error);
}

static dgm_status fill_eval(void *score, dgm_error *error)
{
    dgm_eval_options o;
    dgm_eval_default(&o);
    return dgm_evaluate(&o, systems + 1, 1, systems, 1, 2, score, NULL, error);
}

static dgm_status fill_log_z(void *out, dgm_error *error)
{
    return dgm_log_z_measure(translator, lines, other, 2, out, error);
}

static dgm_status fill_align(void *report, dgm_error *error)
{
    return dgm_align(names[SOURCE], names[TARGET], names[SPARE], NULL, report, error);
}

static dgm_status fill_shrink(void *report, dgm_error *error)
{
    const char *const models[1] = {RNN};
    return dgm_shrink_ensemble(models, 1, names[MEAN], NULL, report, error);
}

static dgm_status fill_clusters(void *report, dgm_error *error)
{
    dgm_cluster_options o;
    dgm_cluster_default(&o);
    o.text = names[SOURCE];
    o.centroids = 1;
    return dgm_cluster_make(MODEL, names[MEAN], &o, report, error);
}

static dgm_status fill_shortlist(void *report, dgm_error *error)
{
    dgm_shortlist_options o;
    dgm_shortlist_default(&o);
    o.source = names[SOURCE];
    o.target = names[TARGET];
    return dgm_shortlist_make(MODEL, names[MEAN], &o, report, error);
}

static dgm_status test_shortlist(void *measure, dgm_error *error)
{
    const dgm_status st = fill_shortlist(NULL, error);
    if (st != DGM_OK) return st;
    return dgm_shortlist_test(names[MEAN], names[SOURCE], names[TARGET], measure, error);
}

typedef struct kind {
    const char *type;
    size_t size;
    size_t cut;   // where an older struct could have ended
    size_t whole; // bytes without holes between fields, whose values nobody sets
    dgm_status (*fill)(void *report, dgm_error *error);
} kind;

#define KIND(type, field, fill)                                                                    \
    {                                                                                              \
#type, sizeof(type), offsetof(type, field), sizeof(type), fill                             \
    }
#define HOLED(type, field, hole, fill)                                                             \
    {                                                                                              \
#type, sizeof(type), offsetof(type, field), offsetof(type, hole), fill                     \
    }
static const kind kinds[] = {
    HOLED(dgm_align_report, entries, iterations, fill_align),
    KIND(dgm_average_report, dropped_scales, fill_average),
    HOLED(dgm_cluster_report, sample, empty, fill_clusters),
    KIND(dgm_eval_score, precisions, fill_eval),
    KIND(dgm_lattice_report, arcs, fill_lattice),
    KIND(dgm_log_z, mean, fill_log_z),
    KIND(dgm_ngram_report, discount, fill_ngram),
    KIND(dgm_phrase_report, extracted, fill_phrase),
    KIND(dgm_shortlist_report, unknown, fill_shortlist),
    KIND(dgm_shortlist_measure, recall, test_shortlist),
    HOLED(dgm_shrink_report, unfolded, unfolded, fill_shrink),
};

typedef union buffer {
    unsigned char bytes[ROOM];
    size_t size;
    double align;
} buffer;

static bool all_are(const unsigned char *bytes, size_t count, unsigned char value)
{
    for (size_t i = 0; i < count; i++)
        if (bytes[i] != value) return false;
    return true;
}

// Bytes of a caller's struct that says `size`, filled; what lies behind them belongs to somebody else.
static void fill_sized(const kind *k, buffer *b, size_t size)
{
    dgm_error error = {{0}};
    assert_true(k->size + MORE <= ROOM);
    memset(b, POISON, sizeof *b);
    b->size = size;
    if (k->fill(b, &error) != DGM_OK) fail_msg("%s: %s", k->type, error.text);
    assert_int_equal(b->size, size);
    if (!all_are(b->bytes + size, ROOM - size, POISON)) fail_msg("%s: too much", k->type);
}

static void other_sizes(void **state)
{
    (void)state;
    static buffer exact, small, large;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++) {
        const kind *k = &kinds[i];
        const size_t head = sizeof(size_t);
        fill_sized(k, &exact, k->size);
        fill_sized(k, &small, k->cut);
        fill_sized(k, &large, k->size + MORE);
        assert_false(all_are(exact.bytes + head, k->size - head, POISON));
        assert_memory_equal(small.bytes + head, exact.bytes + head, k->cut - head);
        assert_memory_equal(large.bytes + head, exact.bytes + head, k->whole - head);
        assert_true(all_are(large.bytes + k->size, MORE, 0));
    }
}

static void expect_refusal(const char *type, size_t size, dgm_status st, const dgm_error *error)
{
    char words[128];
    snprintf(words, sizeof words, "%s.size is %zu%s", type, size,
             size ? ", which no version" : ": set");
    assert_int_equal(st, DGM_ERR_ARGUMENT);
    if (!strstr(error->text, words)) fail_msg("'%s' does not say '%s'", error->text, words);
}

// Nothing is done then, and nothing written.
static void no_size(void **state)
{
    (void)state;
    static const size_t sizes[] = {0, 3, (size_t)-1};
    static buffer b;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        for (size_t n = 0; n < sizeof sizes / sizeof *sizes; n++) {
            dgm_error error = {{0}};
            memset(&b, POISON, sizeof b);
            b.size = sizes[n];
            expect_refusal(kinds[i].type, sizes[n], kinds[i].fill(&b, &error), &error);
            assert_true(all_are(b.bytes + sizeof b.size, ROOM - sizeof b.size, POISON));
        }
}

static void not_wanted(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds; i++)
        assert_int_equal(kinds[i].fill(NULL, NULL), DGM_OK);
}

// Its lists are allocated: a struct that cannot hold them does not get them.
static void clusters(void **state)
{
    (void)state;
    struct {
        dgm_cluster_measure known;
        uint64_t more;
    } m;
    dgm_error error = {{0}};
    assert_int_equal(fill_clusters(NULL, NULL), DGM_OK);
    dgm_cluster_options o;
    dgm_cluster_default(&o);
    const size_t sizes[] = {offsetof(dgm_cluster_measure, recall),
                            offsetof(dgm_cluster_measure, sizes), sizeof m.known, sizeof m};
    for (size_t i = 0; i < 4; i++) {
        memset(&m, POISON, sizeof m);
        m.known.size = sizes[i];
        assert_int_equal(dgm_cluster_test(names[MEAN], names[SOURCE], &o, &m.known, &error),
                         DGM_OK);
        assert_true(all_are((unsigned char *)&m + sizes[i], sizeof m - sizes[i], POISON));
        if (i == 1) assert_null(m.known.hits);
        if (i >= 2) {
            assert_int_equal(m.known.lines, 2);
            assert_true(m.known.vectors > 0 && m.known.hits[0] == m.known.vectors);
        }
        if (i == 3) assert_int_equal(m.more, 0);
        dgm_cluster_free(&m.known);
        assert_int_equal(m.known.size, sizes[i]);
        if (i >= 2) assert_null(m.known.hits);
    }
    m.known.size = 0;
    expect_refusal("dgm_cluster_measure", 0,
                   dgm_cluster_test(names[MEAN], names[SOURCE], &o, &m.known, &error), &error);
}

// Elements of an array lie as far apart as the first one says.
static void arrays(void **state)
{
    (void)state;
    dgm_error error;
    dgm_eval_options o;
    dgm_eval_default(&o);
    o.max_order = 2; // the lines are short
    dgm_eval_score want[2] = {{.size = sizeof want[0]}, {.size = sizeof want[1]}};
    assert_int_equal(dgm_evaluate(&o, systems, 2, systems, 1, 2, want, NULL, &error), DGM_OK);
    assert_true(want[0].score > 99.9 && want[1].score < 99);
    struct {
        dgm_eval_score known;
        double more;
    } large[2] = {{{.size = sizeof large[0]}, 1}, {{.size = sizeof large[1]}, 1}};
    struct {
        size_t size;
        double score, mean;
    } small[3] = {{.size = sizeof small[0]}, {.size = sizeof small[0]}, {.size = 77}};
    assert_int_equal(dgm_evaluate(&o, systems, 2, systems, 1, 2, &large[0].known, NULL, &error),
                     DGM_OK);
    assert_int_equal(
        dgm_evaluate(&o, systems, 2, systems, 1, 2, (dgm_eval_score *)(void *)small, NULL, &error),
        DGM_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(large[i].known.score == want[i].score && small[i].score == want[i].score);
        assert_int_equal(large[i].known.ref_length, want[i].ref_length);
        assert_true(large[i].more == 0);
    }
    assert_int_equal(small[2].size, 77);
    want[1].size = 0;
    assert_int_equal(dgm_evaluate(&o, systems, 2, systems, 1, 2, want, NULL, &error),
                     DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_eval_score.size of system 2 is 0"));

    dgm_device_info devices[2];
    struct {
        dgm_device_info known;
        uint64_t more;
    } wide[2];
    struct {
        size_t size;
        char name[64];
    } narrow[2];
    memset(wide, POISON, sizeof wide);
    memset(narrow, POISON, sizeof narrow);
    const size_t count = dgm_devices(devices, 2);
    assert_true(count >= 1);
    assert_int_equal(devices[0].size, sizeof devices[0]);
    dgm_devices_sized(&wide[0].known, 2, sizeof wide[0]);
    dgm_devices_sized((dgm_device_info *)(void *)narrow, 1, sizeof narrow[0]);
    for (size_t i = 0; i < count && i < 2; i++) {
        assert_string_equal(wide[i].known.name, devices[i].name);
        assert_int_equal(wide[i].known.memory, devices[i].memory);
        assert_int_equal(wide[i].more, 0);
    }
    assert_string_equal(narrow[0].name, devices[0].name);
    assert_true(all_are((unsigned char *)&narrow[1], sizeof narrow[1], POISON));
}

// ---- counters and tables ------------------------------------------------------------------------

static void counters(void **state)
{
    (void)state;
    dgm_optimisations n;
    struct {
        dgm_optimisations known;
        uint64_t more;
    } large = {.more = 1};
    struct {
        size_t size;
        uint64_t rows, distinct, behind;
    } small = {.behind = 7};
    const char *const text[] = {"a house"};
    dgm_results *r = NULL;
    dgm_translator *t = NULL;
    assert_int_equal(dgm_open(&t, RNN, NULL, NULL), DGM_OK);
    assert_int_equal(dgm_translate(t, text, 1, &r, NULL), DGM_OK);
    dgm_results_free(&r);
    dgm_optimisations_count(t, &n);
    dgm_optimisations_count_sized(t, &large.known, sizeof large);
    dgm_optimisations_count_sized(t, (dgm_optimisations *)(void *)&small, 3 * sizeof(uint64_t));
    dgm_close(&t);
    assert_true(n.size == sizeof n && n.rows > 0);
    assert_true(large.known.size == sizeof large && large.known.rows == n.rows && large.more == 0);
    assert_string_equal(large.known.activations, n.activations);
    assert_true(small.rows == n.rows && small.distinct == n.distinct && small.behind == 7);
}

static void features(void **state)
{
    (void)state;
    dgm_error error;
    dgm_feature_info f;
    struct {
        dgm_feature_info known;
        const char *more;
    } large = {.more = "x"};
    struct {
        size_t size;
        const char *name, *behind;
    } small = {.behind = "x"};
    dgm_features(0, &f);
    dgm_features_sized(0, &large.known, sizeof large);
    dgm_features_sized(0, (dgm_feature_info *)(void *)&small, 2 * sizeof(size_t));
    assert_int_equal(f.size, sizeof f);
    assert_string_equal(large.known.name, f.name);
    assert_null(large.more);
    assert_string_equal(small.name, f.name);
    assert_string_equal(small.behind, "x");

    const char *const both[] = {"no-repeat-ngram", "nothing"};
    struct {
        dgm_feature_query known;
        const char *more;
    } q = {.known = {.size = sizeof q, .features = both, .count = 1, .models = DGM_MODELS_ANY}};
    assert_int_equal(dgm_features_check(&q.known, NULL, &error), DGM_OK);
    q.more = "x";
    assert_int_equal(dgm_features_check(&q.known, NULL, &error), DGM_ERR_ARGUMENT);
    assert_non_null(strstr(error.text, "dgm_feature_query has a field set"));
    q.known.search = "deep"; // an older struct has none
    q.known.size = offsetof(dgm_feature_query, search);
    assert_int_equal(dgm_features_check(&q.known, NULL, &error), DGM_OK);
    q.known.count = 2;
    assert_int_equal(dgm_features_check(&q.known, NULL, &error), DGM_ERR_ARGUMENT);
    q.known.size = 0;
    expect_refusal("dgm_feature_query", 0, dgm_features_check(&q.known, NULL, &error), &error);
}

// ---- language models and phrases ----------------------------------------------------------------

static int take_word(void *cookie, const dgm_ngram_word *w)
{
    assert_int_equal(w->size, sizeof *w);
    ++*(int *)cookie;
    return 0;
}

// A score is read and written.
static void scores_of_lines(void **state)
{
    (void)state;
    dgm_ngram *lm = NULL;
    dgm_error error;
    int words = 0;
    assert_int_equal(fill_ngram(NULL, NULL), DGM_OK);
    assert_int_equal(dgm_ngram_open(&lm, names[ARPA], NULL, NULL), DGM_OK);
    const dgm_line line = {"ein haus", 8};
    dgm_ngram_score s = {.size = sizeof s};
    struct {
        dgm_ngram_score known;
        uint64_t more;
    } large = {.known = {.size = sizeof large}};
    struct {
        size_t size;
        uint64_t lines, empty, tokens, behind;
    } small = {.size = 4 * sizeof(uint64_t), .behind = 7};
    for (int i = 1; i <= 2; i++) {
        assert_int_equal(dgm_ngram_line(lm, line, &s, take_word, &words, &error), DGM_OK);
        assert_int_equal(dgm_ngram_line(lm, line, &large.known, NULL, NULL, &error), DGM_OK);
        assert_int_equal(
            dgm_ngram_line(lm, line, (dgm_ngram_score *)(void *)&small, NULL, NULL, &error),
            DGM_OK);
        assert_true(s.lines == (uint64_t)i && s.tokens == 3 * (uint64_t)i && words == 3 * i);
        assert_true(large.known.log10 == s.log10 && large.known.size == sizeof large &&
                    large.more == 0);
        assert_true(small.lines == s.lines && small.tokens == s.tokens && small.behind == 7);
    }
    assert_true(dgm_ngram_perplexity(&s, 0) > 1);
    assert_true(dgm_ngram_perplexity(&large.known, 0) == dgm_ngram_perplexity(&s, 0));
    s.size = 0;
    expect_refusal("dgm_ngram_score", 0, dgm_ngram_line(lm, line, &s, NULL, NULL, &error), &error);
    assert_true(dgm_ngram_perplexity(&s, 0) == 0);
    dgm_ngram_close(&lm);
}

static int take_result(void *cookie, const dgm_phrasal_result *r)
{
    assert_int_equal(r->size, sizeof *r);
    for (size_t i = 0; i < r->count; i++) assert_int_equal(r->items[i]->size, sizeof *r->items[i]);
    *(size_t *)cookie += r->count;
    return 0;
}

static void phrases(void **state)
{
    (void)state;
    dgm_phrasal *p = NULL;
    dgm_phrasal_options o;
    dgm_error error;
    size_t items = 0;
    assert_int_equal(fill_ngram(NULL, NULL), DGM_OK);
    assert_int_equal(fill_phrase(NULL, NULL), DGM_OK);
    dgm_phrasal_default(&o);
    o.table = names[TABLE];
    o.lm = names[ARPA];
    o.nbest = 3;
    if (dgm_phrasal_open(&p, &o, &error) != DGM_OK) fail_msg("%s", error.text);
    assert_int_equal(dgm_phrasal_translate(p, lines, 2, 0, take_result, &items, &error), DGM_OK);
    assert_true(items > 2);
    dgm_phrasal_stats n;
    struct {
        dgm_phrasal_stats known;
        uint64_t more;
    } large = {.more = 1};
    struct {
        size_t size;
        uint64_t lines, behind;
    } small = {.behind = 7};
    dgm_phrasal_count(p, &n);
    dgm_phrasal_count_sized(p, &large.known, sizeof large);
    dgm_phrasal_count_sized(p, (dgm_phrasal_stats *)(void *)&small, 2 * sizeof(uint64_t));
    dgm_phrasal_close(&p);
    assert_true(n.size == sizeof n && n.lines == 2 && n.hypotheses > 0);
    assert_true(large.known.hypotheses == n.hypotheses && large.more == 0);
    assert_true(small.lines == 2 && small.behind == 7);
}

// ---- what the library returns -------------------------------------------------------------------

static void returned_scores(void **state)
{
    (void)state;
    const dgm_pair pairs[2] = {{lines[0], other[0]}, {lines[1], other[1]}};
    dgm_pair_scores *scores = NULL;
    assert_int_equal(dgm_score_pairs(translator, pairs, 2, &scores, NULL), DGM_OK);
    assert_true(scores->size == sizeof *scores && scores->count == 2);
    for (int i = 0; i < 2; i++) assert_int_equal(scores->items[i]->size, sizeof(dgm_pair_score));
    dgm_pair_scores_free(&scores);

    const char *text = "lattice\n0 1 -0.5 a\n0 1 -1 the\n1 2 -0.5 house\n2 0\n";
    const dgm_lattice_text lattice = {.text = text, .size = strlen(text)};
    dgm_scored_lines *scored = NULL;
    assert_int_equal(dgm_score_lattices(translator, lines, &lattice, 1, 5, 0, &scored, NULL),
                     DGM_OK);
    assert_true(scored->size == sizeof *scored && scored->count == 1);
    assert_true(scored->items[0]->size == sizeof(dgm_scored_line) && scored->items[0]->count == 2);
    const dgm_scored_path *const *paths = scored->items[0]->paths;
    for (int i = 0; i < 2; i++) assert_int_equal(paths[i]->size, sizeof *paths[i]);
    assert_true(paths[0]->score >= paths[1]->score);
    dgm_scored_lines_free(&scored);
}

static void returned_reports(void **state)
{
    (void)state;
    dgm_quantize_report *report = NULL;
    dgm_quantize_options o;
    dgm_quantize_default(&o);
    o.type = "i8";
    o.calibrate = names[SOURCE];
    assert_int_equal(dgm_quantize(MODEL, NULL, &o, &report, NULL), DGM_OK);
    assert_true(report->size == sizeof *report && report->tensor_count && report->input_count);
    for (size_t i = 0; i < report->tensor_count; i++)
        assert_true(report->tensors[i]->size == sizeof(dgm_quantize_tensor) &&
                    report->tensors[i]->name);
    for (size_t i = 0; i < report->input_count; i++)
        assert_true(report->inputs[i]->size == sizeof(dgm_quantize_input) &&
                    report->inputs[i]->name);
    dgm_quantize_report_free(&report);

    const char *const text[] = {"a house"};
    dgm_results *r = NULL;
    dgm_profile *profile = NULL;
    assert_int_equal(dgm_profile_start(translator, NULL), DGM_OK);
    assert_int_equal(dgm_translate(translator, text, 1, &r, NULL), DGM_OK);
    assert_int_equal(dgm_profile_read(translator, &profile, NULL), DGM_OK);
    dgm_profile_stop(translator);
    dgm_results_free(&r);
    assert_true(profile->size == sizeof *profile && profile->count > 0);
    for (size_t i = 0; i < profile->count; i++)
        assert_int_equal(profile->rows[i]->size, sizeof(dgm_profile_row));
    dgm_profile_free(&profile);
}

static void returned_lists(void **state)
{
    (void)state;
    dgm_model_list *list = NULL;
    setenv("DRAGOMAN_MODEL", MODEL, 1);
    assert_int_equal(dgm_models_find(&list, NULL), DGM_OK);
    unsetenv("DRAGOMAN_MODEL");
    assert_true(list->size == sizeof *list && list->count >= 1);
    for (size_t i = 0; i < list->count; i++)
        assert_int_equal(list->items[i]->size, sizeof(dgm_model_entry));
    assert_true(list->items[0]->is_default);
    dgm_models_free(&list);
    for (size_t i = 0; dgm_import_format_at(i); i++)
        assert_int_equal(dgm_import_format_at(i)->size, sizeof(dgm_import_format));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_sizes),      cmocka_unit_test(no_size),
        cmocka_unit_test(not_wanted),       cmocka_unit_test(clusters),
        cmocka_unit_test(arrays),           cmocka_unit_test(counters),
        cmocka_unit_test(features),         cmocka_unit_test(scores_of_lines),
        cmocka_unit_test(phrases),          cmocka_unit_test(returned_scores),
        cmocka_unit_test(returned_reports), cmocka_unit_test(returned_lists),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
