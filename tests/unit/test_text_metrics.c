// SPDX-License-Identifier: MIT
// BLEU and chrF against sacreBLEU's own numbers (tests/data/text/metrics.json, made by
// tests/oracle/make_metrics.py), sentence scores, tokenisers, paired bootstrap, edge cases, and
// survival of every allocation failure.
#include "unit/packed.h"
#include "unit/text_data.h"

#include <jansson.h>
#include <math.h>

#include "metrics/metrics.h"

#define TOLERANCE 1e-6

static json_t *golden;

static const char *string_at(const json_t *o, const char *key)
{
    const char *text = json_string_value(json_object_get(o, key));
    assert_non_null(text);
    return text;
}

static double number_at(const json_t *o, const char *key)
{
    const json_t *v = json_object_get(o, key);
    assert_true(json_is_number(v));
    return json_number_value(v);
}

static dgm_text text_value(const json_t *v)
{
    assert_true(json_is_string(v));
    return (dgm_text){json_string_value(v), json_string_length(v)};
}

// The files of one set.
typedef struct files {
    text_lines hyp, refs[4];
    const dgm_text *ref_lists[4];
    size_t ref_count;
} files;

static files open_set(const char *name)
{
    const json_t *set = json_object_get(json_object_get(golden, "sets"), name);
    const json_t *refs = json_object_get(set, "refs");
    files f = {.hyp = text_lines_open(string_at(set, "hyp")), .ref_count = json_array_size(refs)};
    assert_in_range(f.ref_count, 1, 4);
    for (size_t i = 0; i < f.ref_count; i++) {
        f.refs[i] = text_lines_open(json_string_value(json_array_get(refs, i)));
        f.ref_lists[i] = f.refs[i].lines;
        assert_int_equal(f.refs[i].count, f.hyp.count);
    }
    return f;
}

static void close_set(files *f)
{
    text_lines_close(&f->hyp);
    for (size_t i = 0; i < f->ref_count; i++) text_lines_close(&f->refs[i]);
}

static dgm_metric_options options_of(const json_t *c)
{
    bool bleu = strcmp(string_at(c, "metric"), "bleu") == 0;
    const json_t *from = json_object_get(c, "options"), *v;
    dgm_metric_options o;
    dgm_metric_options_default(&o, bleu ? DGM_METRIC_BLEU : DGM_METRIC_CHRF);
    o.lowercase = json_is_true(json_object_get(from, "lowercase"));
    o.effective_order = json_is_true(json_object_get(from, "effective_order"));
    o.whitespace = json_is_true(json_object_get(from, "whitespace"));
    if ((v = json_object_get(from, "tokenize")))
        assert_true(dgm_bleu_tokenizer_of(json_string_value(v), &o.tokenizer));
    if ((v = json_object_get(from, "smooth_method")))
        assert_true(dgm_bleu_smooth_of(json_string_value(v), &o.smooth));
    if ((v = json_object_get(from, "smooth_value")) && json_is_number(v))
        o.smooth_value = json_number_value(v);
    if ((v = json_object_get(from, "max_ngram_order"))) o.max_order = (int)json_integer_value(v);
    if ((v = json_object_get(from, "char_order"))) o.char_order = (int)json_integer_value(v);
    if ((v = json_object_get(from, "word_order"))) o.word_order = (int)json_integer_value(v);
    if ((v = json_object_get(from, "beta"))) o.beta = json_number_value(v);
    return o;
}

static int64_t *rows_of(dgm_metric *m, const files *f)
{
    dgm_error err;
    int64_t *rows = dgm_calloc(f->hyp.count, (size_t)dgm_metric_width(m) * sizeof *rows);
    assert_non_null(rows);
    if (dgm_metric_corpus(m, f->hyp.lines, f->hyp.count, f->ref_lists, f->ref_count, rows, &err))
        fail_msg("%s", err.text);
    return rows;
}

static void check_near(const json_t *c, const char *what, double got, double want)
{
    if (fabs(got - want) <= TOLERANCE) return;
    char *text = json_dumps(c, JSON_COMPACT);
    fail_msg("%s is %.9f, sacreBLEU says %.9f: %s", what, got, want, text);
}

static void test_corpus_scores(void **state)
{
    (void)state;
    const json_t *c;
    size_t i;
    json_array_foreach(json_object_get(golden, "corpus"), i, c)
    {
        files f = open_set(string_at(c, "set"));
        dgm_metric_options o = options_of(c);
        dgm_metric *m;
        dgm_error err;
        assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_OK);
        int64_t *rows = rows_of(m, &f), sum[DGM_METRIC_WIDTH_MAX];
        dgm_metric_score score;
        dgm_metric_sum(m, rows, f.hyp.count, sum);
        dgm_metric_score_of(m, sum, &score);
        check_near(c, "score", score.score, number_at(c, "score"));
        char text[128];
        dgm_metric_signature(m, f.ref_count, text, sizeof text);
        assert_string_equal(text, string_at(c, "signature"));
        dgm_metric_name(m, text, sizeof text);
        if (o.kind == DGM_METRIC_BLEU) {
            assert_string_equal(text, "BLEU");
            check_near(c, "brevity", score.brevity, number_at(c, "brevity"));
            assert_int_equal(score.hyp_length, (int64_t)number_at(c, "hyp_length"));
            assert_int_equal(score.ref_length, (int64_t)number_at(c, "ref_length"));
            const json_t *p = json_object_get(c, "precisions");
            for (int n = 0; n < o.max_order; n++)
                check_near(c, "precision", score.precisions[n],
                           json_number_value(json_array_get(p, (size_t)n)));
        } else {
            assert_string_equal(text, string_at(c, "name"));
        }
        dgm_free(rows);
        dgm_metric_close(&m);
        close_set(&f);
    }
    assert_true(i > 200);
}

static void check_sentences(const json_t *c, const char *key, dgm_metric_options *o)
{
    files f = open_set(string_at(c, "set"));
    const json_t *scores = json_object_get(c, key);
    dgm_metric *m;
    dgm_error err;
    assert_int_equal(dgm_metric_open(&m, o, &err), DGM_OK);
    int64_t *rows = rows_of(m, &f);
    for (size_t i = 0; i < json_array_size(scores); i++) {
        dgm_metric_score score;
        dgm_metric_score_of(m, rows + i * (size_t)dgm_metric_width(m), &score);
        double want = json_number_value(json_array_get(scores, i));
        if (fabs(score.score - want) > TOLERANCE)
            fail_msg("%s of %s line %zu is %.9f, sacreBLEU says %.9f", key, string_at(c, "set"),
                     i + 1, score.score, want);
    }
    dgm_free(rows);
    dgm_metric_close(&m);
    close_set(&f);
}

static void test_sentence_scores(void **state)
{
    (void)state;
    const json_t *c;
    size_t i;
    json_array_foreach(json_object_get(golden, "sentences"), i, c)
    {
        dgm_metric_options o;
        dgm_metric_options_default(&o, DGM_METRIC_BLEU);
        o.effective_order = true;
        check_sentences(c, "bleu", &o);
        dgm_metric_options_default(&o, DGM_METRIC_CHRF);
        check_sentences(c, "chrf", &o);
        o.word_order = 2;
        check_sentences(c, "chrf++", &o);
    }
}

static void test_tokenizers(void **state)
{
    (void)state;
    const json_t *all = json_object_get(golden, "tokenized");
    const json_t *lines = json_object_get(all, "lines");
    for (int t = DGM_BLEU_13A; t <= DGM_BLEU_NONE; t++) {
        const char *name = dgm_bleu_tokenizer_name((dgm_bleu_tokenizer)t);
        const json_t *want = json_object_get(all, name);
        for (size_t i = 0; i < json_array_size(lines); i++) {
            dgm_writer out = {0};
            dgm_error err;
            assert_int_equal(dgm_bleu_tokenize((dgm_bleu_tokenizer)t,
                                               text_value(json_array_get(lines, i)), &out, &err),
                             DGM_OK);
            assert_text_equal(text_of_writer(&out), text_value(json_array_get(want, i)));
            dgm_writer_free(&out);
        }
    }
}

static void test_lower_case(void **state)
{
    (void)state;
    const json_t *all = json_object_get(golden, "lowered");
    const json_t *lines = json_object_get(all, "lines"), *want = json_object_get(all, "lower");
    for (size_t i = 0; i < json_array_size(lines); i++) {
        dgm_writer out = {0};
        assert_int_equal(dgm_utf8_lower(text_value(json_array_get(lines, i)), &out, NULL), DGM_OK);
        assert_text_equal(text_of_writer(&out), text_value(json_array_get(want, i)));
        dgm_writer_free(&out);
    }
}

static void check_bootstrap(dgm_metric_kind kind, const char *name)
{
    static const char *const systems[] = {"base1.de", "base.de", "tiny.de"};
    const json_t *want = json_object_get(json_object_get(golden, "bootstrap"), name);
    text_lines ref = text_lines_open("news.de");
    const dgm_text *refs[1] = {ref.lines};
    dgm_metric_options o;
    dgm_metric_options_default(&o, kind);
    dgm_metric *m;
    assert_int_equal(dgm_metric_open(&m, &o, NULL), DGM_OK);
    size_t width = (size_t)dgm_metric_width(m);
    int64_t *rows[3];
    for (int s = 0; s < 3; s++) {
        text_lines hyp = text_lines_open(systems[s]);
        rows[s] = dgm_calloc(ref.count, width * sizeof *rows[s]);
        assert_int_equal(dgm_metric_corpus(m, hyp.lines, hyp.count, refs, 1, rows[s], NULL),
                         DGM_OK);
        text_lines_close(&hyp);
    }
    for (int s = 1; s < 3; s++) {
        const json_t *c = json_array_get(want, (size_t)s);
        dgm_bootstrap b, again;
        assert_int_equal(
            dgm_metric_bootstrap(m, rows[s], rows[0], ref.count, 1000, 12345, &b, NULL), DGM_OK);
        assert_int_equal(
            dgm_metric_bootstrap(m, rows[s], rows[0], ref.count, 1000, 12345, &again, NULL),
            DGM_OK);
        assert_memory_equal(&b, &again, sizeof b);
        // Other random numbers than numpy's: the same up to the noise of 1,000 samples.
        assert_true(fabs(b.score - number_at(c, "score")) < TOLERANCE);
        assert_true(fabs(b.mean - number_at(c, "mean")) < 0.15);
        assert_true(fabs(b.half - number_at(c, "half")) < 0.25);
        assert_true(fabs(b.p - number_at(c, "p")) < 0.06);
        assert_true(s == 1 || b.p < 0.01);
        assert_true(s == 1 || b.wins < 0.01);
    }
    // A system against itself.
    dgm_bootstrap same;
    assert_int_equal(dgm_metric_bootstrap(m, rows[1], rows[1], ref.count, 200, 1, &same, NULL),
                     DGM_OK);
    assert_true(same.wins == 0 && same.p == 1);
    assert_int_equal(dgm_metric_bootstrap(m, rows[1], NULL, ref.count, 200, 1, &same, NULL),
                     DGM_OK);
    assert_true(same.p == 1 && same.base_score == 0 && same.half > 0);
    assert_int_equal(dgm_metric_bootstrap(m, rows[1], NULL, 0, 200, 1, &same, NULL),
                     DGM_ERR_ARGUMENT);
    for (int s = 0; s < 3; s++) dgm_free(rows[s]);
    dgm_metric_close(&m);
    text_lines_close(&ref);
}

static void test_bootstrap(void **state)
{
    (void)state;
    check_bootstrap(DGM_METRIC_BLEU, "BLEU");
    check_bootstrap(DGM_METRIC_CHRF, "chrF2");
}

static void test_missing_references(void **state)
{
    (void)state;
    dgm_metric_options o;
    dgm_metric *m;
    dgm_error err;
    int64_t one[DGM_METRIC_WIDTH_MAX], two[DGM_METRIC_WIDTH_MAX];
    dgm_text hyp = dgm_text_of("the cat sat on the mat");
    for (int kind = DGM_METRIC_BLEU; kind <= DGM_METRIC_CHRF; kind++) {
        dgm_metric_options_default(&o, (dgm_metric_kind)kind);
        assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_OK);
        dgm_text refs[6] = {{NULL, 0}, dgm_text_of("a cat sat on mats"),
                            {NULL, 0}, {NULL, 0},
                            {NULL, 0}, {NULL, 0}};
        assert_int_equal(dgm_metric_segment(m, hyp, refs, 6, one, &err), DGM_OK);
        assert_int_equal(dgm_metric_segment(m, hyp, refs + 1, 1, two, &err), DGM_OK);
        assert_memory_equal(one, two, (size_t)dgm_metric_width(m) * sizeof *one);
        assert_int_equal(dgm_metric_segment(m, hyp, refs, 1, one, &err), DGM_ERR_ARGUMENT);
        assert_string_equal(err.text, "segment has no reference");
        // Invalid UTF-8 counts as U+FFFD.
        dgm_text bad = {"a \xFF b", 5}, good = {"a \xEF\xBF\xBD b", 7};
        assert_int_equal(dgm_metric_segment(m, bad, &good, 1, one, &err), DGM_OK);
        assert_int_equal(dgm_metric_segment(m, good, &good, 1, two, &err), DGM_OK);
        assert_memory_equal(one, two, (size_t)dgm_metric_width(m) * sizeof *one);
        dgm_metric_close(&m);
        dgm_metric_close(&m);
    }
}

static void test_bad_options(void **state)
{
    (void)state;
    dgm_metric_options o;
    dgm_metric *m;
    dgm_error err;
    dgm_metric_options_default(&o, DGM_METRIC_BLEU);
    o.max_order = 9;
    assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_ERR_ARGUMENT);
    assert_null(m);
    dgm_metric_options_default(&o, DGM_METRIC_CHRF);
    o.word_order = -1;
    assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_ERR_ARGUMENT);
    dgm_metric_options_default(&o, DGM_METRIC_CHRF);
    o.beta = NAN;
    assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_ERR_ARGUMENT);
    o.kind = (dgm_metric_kind)7;
    assert_int_equal(dgm_metric_open(&m, &o, &err), DGM_ERR_ARGUMENT);
    dgm_bleu_tokenizer t;
    assert_false(dgm_bleu_tokenizer_of("14a", &t));
}

// A whole scoring with the n-th allocation failing, for every n.
static dgm_status score_all(dgm_metric_kind kind, dgm_bleu_tokenizer tokenizer)
{
    dgm_text refs[6];
    for (int i = 0; i < 6; i++)
        refs[i] = dgm_text_of("Das ist, \xC3\x84h, 1.5-mal besser & sch\xC3\xB6ner.");
    dgm_text hyp = {"Das \xFF ist 1.5 mal \xE4\xB8\xAD besser.", 27};
    dgm_metric_options o;
    dgm_metric_options_default(&o, kind);
    o.tokenizer = tokenizer;
    o.lowercase = true;
    o.word_order = 2;
    dgm_metric *m;
    int64_t row[DGM_METRIC_WIDTH_MAX];
    dgm_bootstrap b;
    dgm_error err;
    DGM_TRY(dgm_metric_open(&m, &o, &err));
    dgm_status st = dgm_metric_segment(m, hyp, refs, 6, row, &err);
    if (st == DGM_OK) st = dgm_metric_bootstrap(m, row, row, 1, 10, 1, &b, &err);
    // A metric that met a failure works again.
    if (st != DGM_OK && dgm_metric_segment(m, hyp, refs, 6, row, &err) != DGM_OK) st = DGM_ERR_IO;
    dgm_metric_close(&m);
    return st;
}

static void test_allocation_failures(void **state)
{
    (void)state;
    uint64_t live = dgm_mem_live();
    for (int kind = DGM_METRIC_BLEU; kind <= DGM_METRIC_CHRF; kind++)
        for (int t = DGM_BLEU_13A; t <= DGM_BLEU_NONE; t++) {
            uint64_t n = 1;
            for (; n < 1000; n++) {
                dgm_mem_inject(n, 1);
                dgm_status st = score_all((dgm_metric_kind)kind, (dgm_bleu_tokenizer)t);
                dgm_mem_inject(0, 0);
                assert_int_equal(dgm_mem_live(), live);
                if (st == DGM_OK) break;
                assert_int_equal(st, DGM_ERR_MEMORY);
            }
            assert_in_range(n, 5, 200);
        }
}

static int open_golden(void **state)
{
    (void)state;
    dgm_mapfile f = packed_file("tests/data/text/metrics.json");
    golden = json_loadb((const char *)f.data, f.size, 0, NULL);
    dgm_mapfile_close(&f);
    return golden ? 0 : -1;
}

static int close_golden(void **state)
{
    (void)state;
    json_decref(golden);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokenizers),    cmocka_unit_test(test_lower_case),
        cmocka_unit_test(test_corpus_scores), cmocka_unit_test(test_sentence_scores),
        cmocka_unit_test(test_bootstrap),     cmocka_unit_test(test_missing_references),
        cmocka_unit_test(test_bad_options),   cmocka_unit_test(test_allocation_failures),
    };
    return cmocka_run_group_tests(tests, open_golden, close_golden);
}
