// SPDX-License-Identifier: MIT
// N-gram models: perplexities against tests/oracle/make_lm.py, sums of probabilities, sorted runs in
// memory and on disk, ARPA there and back, compact files whole and damaged, quantised numbers,
// what is said about bad input, allocation failures.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "lm/lm.h"
#include "base/extsort.h"
#include "scratch.h"

#define TEXT "tests/data/translate/newstest2014-1000.en"
#define GOLDEN "tests/data/lm/perplexity.txt"
enum { LINES = 1000, HELD_OUT = 200 };

static void expect_same(const char *a, const char *b)
{
    dgm_mapfile x, y;
    assert_int_equal(dgm_mapfile_open(&x, a, NULL), DGM_OK);
    assert_int_equal(dgm_mapfile_open(&y, b, NULL), DGM_OK);
    assert_int_equal(x.size, y.size);
    assert_memory_equal(x.data, y.data, x.size);
    dgm_mapfile_close(&x);
    dgm_mapfile_close(&y);
}

// Splits the text into "train" and "test" of the folder.
static void put_corpus(void)
{
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, TEXT, NULL), DGM_OK);
    const uint8_t *at = f.data;
    for (int i = 0; i < LINES - HELD_OUT; i++)
        at = (const uint8_t *)memchr(at, '\n', (size_t)(f.data + f.size - at)) + 1;
    size_t n = (size_t)(at - f.data);
    assert_int_equal(dgm_file_write(in_folder("train"), f.data, n, NULL), DGM_OK);
    assert_int_equal(dgm_file_write(in_folder("test"), at, f.size - n, NULL), DGM_OK);
    dgm_mapfile_close(&f);
}

static void train(const char *text, const char *arpa, int order, uint64_t memory,
                  dgm_ngram_report *report)
{
    dgm_ngram_options o;
    dgm_error err = {""};
    dgm_ngram_default(&o);
    o.order = order;
    o.discount_fallback = 1;
    if (memory) o.memory = memory;
    if (dgm_ngram_train(&text, 1, arpa, &o, report, &err) != DGM_OK) fail_msg("%s", err.text);
}

static dgm_ngram_score score_file(const char *model, const char *text)
{
    dgm_ngram *lm;
    dgm_error err = {""};
    dgm_mapfile f;
    dgm_ngram_score s = {.size = sizeof s};
    if (dgm_ngram_open(&lm, model, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_mapfile_open(&f, text, NULL), DGM_OK);
    const char *at = (const char *)f.data, *end = at + f.size;
    while (at < end) {
        const char *stop = memchr(at, '\n', (size_t)(end - at));
        dgm_line line = {at, (size_t)((stop ? stop : end) - at)};
        assert_int_equal(dgm_ngram_line(lm, line, &s, NULL, NULL, &err), DGM_OK);
        at = stop ? stop + 1 : end;
    }
    dgm_mapfile_close(&f);
    dgm_ngram_close(&lm);
    return s;
}

// ---- against the oracle -----------------------------------------------------------------------

static void check_golden(const char *line, const char *arpa)
{
    dgm_ngram_options o;
    dgm_ngram_report r = {.size = sizeof r};
    dgm_error err = {""};
    int n = 0;
    char *at;
    dgm_ngram_default(&o);
    o.order = (int)strtol(line, &at, 10);
    do o.prune[n++] = strtoull(at + 1, &at, 10);
    while (*at == ',');
    const char *text = in_folder("train");
    if (dgm_ngram_train(&text, 1, arpa, &o, &r, &err) != DGM_OK) fail_msg("%s", err.text);
    for (n = 1; n <= o.order; n++) assert_int_equal(r.kept[n], strtoull(at, &at, 10));
    at += 2; // " |"
    dgm_ngram_score s = score_file(arpa, in_folder("test"));
    assert_int_equal(s.tokens, strtoull(at, &at, 10));
    assert_int_equal(s.unknown, strtoull(at, &at, 10));
    double all = strtod(at, &at), known = strtod(at, &at);
    assert_true(fabs(dgm_ngram_perplexity(&s, 0) - all) < 1e-3);
    assert_true(fabs(dgm_ngram_perplexity(&s, 1) - known) < 1e-3);
    at += 2;
    for (n = 1; n <= o.order; n++)
        for (int i = 1; i <= 3; i++) assert_true(fabs(r.discount[n][i] - strtod(at, &at)) < 1e-8);
}

static void test_golden(void **state)
{
    (void)state;
    FILE *f = fopen(GOLDEN, "r");
    char line[1024];
    int count = 0;
    assert_non_null(f);
    for (; fgets(line, sizeof line, f); count++) check_golden(line, in_folder("golden.arpa"));
    fclose(f);
    assert_int_equal(count, 7);
}

// ---- sums -------------------------------------------------------------------------------------

static double sum_behind(const dgm_lm *lm, const dgm_lm_state *s)
{
    double sum = 0;
    for (uint32_t w = 0; w < lm->words; w++)
        if (w != lm->bos) sum += pow(10, dgm_lm_step(lm, s, w, NULL, NULL));
    return sum;
}

// Sums behind every `every`-th node of the orders that are contexts. Returns how many.
static int check_sums(const dgm_lm *lm, uint64_t every)
{
    int done = 0;
    dgm_lm_state s;
    dgm_lm_empty(&s);
    assert_true(fabs(sum_behind(lm, &s) - 1) < 1e-4);
    uint32_t(*path)[DGM_LM_ORDER_MAX] = NULL; // words of the nodes of the order at hand
    uint64_t count = lm->words;
    path = calloc(count, sizeof *path);
    for (uint32_t w = 0; w < lm->words; w++) path[w][0] = w;
    for (int n = 1; n < lm->order; n++) {
        for (uint64_t i = 0; i < count; i += every, done++) {
            dgm_lm_empty(&s);
            for (int k = 0; k < n; k++) dgm_lm_step(lm, &s, path[i][k], &s, NULL);
            assert_true(fabs(sum_behind(lm, &s) - 1) < 1e-4);
        }
        uint32_t(*next)[DGM_LM_ORDER_MAX] = calloc(lm->level[n + 1].count + 1, sizeof *next);
        for (uint64_t i = 0; i < count; i++) {
            uint64_t begin, end;
            dgm_lm_children(lm, n, i, &begin, &end);
            for (uint64_t c = begin; c < end; c++) {
                memcpy(next[c], path[i], sizeof *next);
                next[c][n] = dgm_lm_node_word(lm, n + 1, c);
            }
        }
        free(path);
        path = next;
        count = lm->level[n + 1].count;
    }
    free(path);
    return done;
}

// A model whose sums are not 1: the short cut finds the same as adding up all words. Its contexts
// are so few that every one is drawn.
static void test_sums_that_are_wrong(void **state)
{
    (void)state;
    static const char *const words[] = {"<s>", "a", "b", "<s> a", "a b"};
    const char *path =
        put_text("wrong", "\\data\\\nngram 1=5\nngram 2=4\nngram 3=2\n\n\\1-grams:\n-1\t<unk>\n"
                     "-99\t<s>\t-0.1\n-0.7\t</s>\n-0.4\ta\t-0.3\n-0.6\tb\t-0.2\n\n"
                     "\\2-grams:\n-0.3\t<s> a\t-0.5\n-0.2\ta b\t-0.6\n-0.5\ta </s>\n"
                     "-0.1\tb a\n\n\\3-grams:\n-0.15\t<s> a b\n-0.25\ta b a\n\n\\end\\\n");
    dgm_lm *lm;
    assert_int_equal(dgm_lm_open(&lm, path, NULL), DGM_OK);
    dgm_lm_state s;
    dgm_lm_empty(&s);
    double worst = fabs(sum_behind(lm, &s) - 1);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        char text[32];
        strcpy(text, words[i]);
        dgm_lm_empty(&s);
        for (char *w = strtok(text, " "); w; w = strtok(NULL, " "))
            dgm_lm_step(lm, &s, strcmp(w, "<s>") ? dgm_lm_word(lm, dgm_text_of(w)) : lm->bos, &s,
                        NULL);
        double off = fabs(sum_behind(lm, &s) - 1);
        if (off > worst) worst = off;
    }
    assert_true(worst > 0.1);
    assert_true(fabs(dgm_lm_check(lm, 400, 1, NULL) - worst) < 1e-6);
    dgm_lm_close(&lm);
}

static void test_sums(void **state)
{
    (void)state;
    dgm_lm *lm;
    const char *arpa = in_folder("sums.arpa");
    train(put_text("small", "a b a c a b\nb a\n\na a b c d a b\n<unk> b a c\nd\n"), arpa, 4, 0, NULL);
    assert_int_equal(dgm_lm_open(&lm, arpa, NULL), DGM_OK);
    assert_true(check_sums(lm, 1) > 30);
    assert_true(dgm_lm_check(lm, 500, 1, NULL) < 1e-4); // the same by contexts alone
    dgm_lm_close(&lm);
    train(in_folder("train"), arpa, 5, 0, NULL);
    assert_int_equal(dgm_lm_open(&lm, arpa, NULL), DGM_OK);
    assert_true(check_sums(lm, 48) >= 1000);
    double mean;
    assert_true(dgm_lm_check(lm, 1000, 2, &mean) < 1e-4 && mean < 1e-5);
    dgm_lm_close(&lm);
}

// ---- sorting ----------------------------------------------------------------------------------

static void test_runs(void **state)
{
    (void)state;
    dgm_error err = {""};
    uint64_t total[2] = {0, 0};
    dgm_extsort *r[2];
    for (int disk = 0; disk < 2; disk++) {
        dgm_extsort_options o = {.keys = 2, .width = 4, .memory = disk ? 1 : 1 << 24, .sum = true};
        assert_int_equal(dgm_extsort_open(&r[disk], &o, &err), DGM_OK);
        uint32_t x = 1;
        for (int i = 0; i < 50000; i++) {
            x = x * 1664525u + 1013904223u;
            uint32_t record[4] = {x >> 26, x >> 9 & 0x1000ff, 0, 0};
            dgm_extsort_put_u64(record + 2, x & 3);
            total[disk] += x & 3;
            assert_int_equal(dgm_extsort_push(r[disk], record, &err), DGM_OK);
        }
        assert_int_equal(dgm_extsort_rewind(r[disk], &err), DGM_OK);
    }
    assert_true(dgm_extsort_spilled(r[0]) == 0 && dgm_extsort_spilled(r[1]) > 0);
    for (int round = 0; round < 2; round++) {
        uint32_t last[4] = {0};
        uint64_t sum = 0;
        for (int i = 0;; i++) {
            const uint32_t *a, *b;
            assert_int_equal(dgm_extsort_next(r[0], &a, &err), DGM_OK);
            assert_int_equal(dgm_extsort_next(r[1], &b, &err), DGM_OK);
            assert_true(!a == !b);
            if (!a) break;
            assert_memory_equal(a, b, 16);
            assert_true(i == 0 || dgm_extsort_compare(last, a, 2) < 0);
            memcpy(last, a, 16);
            sum += dgm_extsort_u64(a + 2);
        }
        assert_int_equal(sum, total[0]);
        for (int disk = 0; disk < 2; disk++)
            assert_int_equal(dgm_extsort_rewind(r[disk], &err), DGM_OK);
    }
    dgm_extsort_close(&r[0]);
    dgm_extsort_close(&r[1]);
    dgm_extsort_options bad = {.keys = 1, .width = 1, .memory = 1, .folder = "/nonexistent"};
    assert_int_equal(dgm_extsort_open(&r[0], &bad, &err), DGM_OK);
    dgm_status st = DGM_OK;
    for (uint32_t i = 0; st == DGM_OK && i < 100000; i++) st = dgm_extsort_push(r[0], &i, &err);
    assert_int_equal(st, DGM_ERR_IO);
    dgm_extsort_close(&r[0]);
}

static void test_disk(void **state)
{
    (void)state;
    dgm_ngram_report r = {.size = sizeof r};
    const char *a = in_folder("mem.arpa"), *b = in_folder("disk.arpa");
    train(in_folder("train"), a, 5, 0, &r);
    assert_int_equal(r.spilled, 0);
    train(in_folder("train"), b, 5, 1 << 20, &r);
    assert_true(r.spilled > 1 << 20);
    expect_same(a, b);
    train(in_folder("train"), b, 5, 1, &r);
    expect_same(a, b);
}

// ---- files ------------------------------------------------------------------------------------

static void test_files(void **state)
{
    (void)state;
    dgm_error err = {""};
    const char *arpa = in_folder("f.arpa"), *gz = in_folder("f.arpa.gz"), *lm = in_folder("f.lm");
    const char *again = in_folder("again.arpa");
    train(in_folder("train"), arpa, 4, 0, NULL);
    train(in_folder("train"), gz, 4, 0, NULL);
    assert_int_equal(dgm_ngram_convert(arpa, again, 0, &err), DGM_OK);
    expect_same(arpa, again);
    assert_int_equal(dgm_ngram_convert(gz, lm, 0, &err), DGM_OK);
    assert_int_equal(dgm_ngram_convert(lm, again, 0, &err), DGM_OK);
    expect_same(arpa, again);
    dgm_ngram_score a = score_file(arpa, in_folder("test")), b = score_file(lm, in_folder("test"));
    assert_memory_equal(&a, &b, sizeof a);
    assert_int_equal(dgm_ngram_convert(arpa, lm, 8, &err), DGM_OK);
    b = score_file(lm, in_folder("test"));
    double exact = dgm_ngram_perplexity(&a, 0), rounded = dgm_ngram_perplexity(&b, 0);
    assert_true(exact != rounded && fabs(rounded / exact - 1) < 0.02);
    assert_int_equal(dgm_ngram_convert(arpa, lm, 16, &err), DGM_OK);
    b = score_file(lm, in_folder("test"));
    assert_true(fabs(dgm_ngram_perplexity(&b, 0) / exact - 1) < 1e-4);
    assert_int_equal(dgm_ngram_convert(arpa, lm, 17, &err), DGM_ERR_ARGUMENT);
}

// Every length, and flipped bytes: an error or numbers, never a crash.
static void test_damage(void **state)
{
    (void)state;
    dgm_error err = {""};
    const char *arpa = in_folder("d.arpa"), *path = in_folder("d.lm");
    train(put_text("small", "a b a c a b\nb a\n\na a b c d a b\nb a c\nd\n"), arpa, 3, 0, NULL);
    assert_int_equal(dgm_ngram_convert(arpa, path, 3, &err), DGM_OK);
    dgm_mapfile f;
    assert_int_equal(dgm_mapfile_open(&f, path, NULL), DGM_OK);
    for (size_t n = 0; n < f.size; n++) {
        uint8_t *copy = dgm_malloc(f.size);
        memcpy(copy, f.data, f.size);
        dgm_lm *lm = NULL;
        assert_int_equal(dgm_lm_open_bytes(&lm, copy, n, &err), DGM_ERR_FORMAT);
        assert_null(lm);
        copy[n] ^= (uint8_t)(1u << n % 8);
        if (n % 3 == 0) copy[n] = 0xff;
        if (dgm_lm_open_bytes(&lm, copy, f.size, &err) == DGM_OK) {
            dgm_lm_state s;
            dgm_lm_begin(lm, &s);
            for (int i = 0; i < 40; i++) {
                char word[2] = {(char)('a' + i % 7 % 5), 0};
                dgm_lm_step(lm, &s, dgm_lm_word(lm, dgm_text_of(word)), &s, NULL);
            }
            dgm_lm_close(&lm);
        }
        dgm_free(copy);
    }
    dgm_mapfile_close(&f);
}

static dgm_status read_text(const char *text, dgm_error *err)
{
    dgm_lm *lm = NULL;
    dgm_status st = dgm_lm_open(&lm, put_text("bad.arpa", text), err);
    dgm_lm_close(&lm);
    return st;
}

static void test_bad_arpa(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "",
        "hello\n",
        "\\data\\\n",
        "\\data\\\n\\end\\\n",
        "\\data\\\nngram 1=1\n\n\\1-grams:\n-1\ta\n",
        "\\data\\\nngram 1=2\n\n\\1-grams:\n-1\ta\n\\end\\\n",
        "\\data\\\nngram 2=1\n",
        "\\data\\\nngram 1=x\n",
        "\\data\\\nngram 1=1\n\\2-grams:\n",
        "\\data\\\nngram 1=1\n\\1-grams:\nnan\ta\n\\end\\\n",
        "\\data\\\nngram 1=1\n\\1-grams:\n1\ta\n\\end\\\n",
        "\\data\\\nngram 1=1\n\\1-grams:\n-1\n\\end\\\n",
        "\\data\\\nngram 1=1\n\\1-grams:\n-1\ta b c\n\\end\\\n",
        "\\data\\\nngram 1=2\n\\1-grams:\n-1\ta\n-1\ta\n\\end\\\n",
        "\\data\\\nngram 1=1\nngram 2=1\n\\1-grams:\n-1\ta\n\\2-grams:\n-1\ta b\n\\end\\\n",
        "\\data\\\nngram 1=1\nngram 2=2\n\\1-grams:\n-1\ta\n\\2-grams:\n-1\ta a\n-1\ta "
        "a\n\\end\\\n",
        "\\data\\\nngram 1=1\nngram 2=0\nngram 3=1\n\\1-grams:\n-1\ta\n\\2-grams:\n\\3-grams:\n"
        "-1\ta a a\n\\end\\\n",
    };
    dgm_error err = {""};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(read_text(bad[i], &err), DGM_ERR_FORMAT);
        assert_non_null(strstr(err.text, "bad.arpa"));
        assert_null(strchr(err.text, '\n'));
    }
    assert_int_equal(read_text("\\data\\\nngram 1=1\nngram 2=1\nngram 3=1\nngram 4=1\nngram 5=1\n"
                               "ngram 6=1\n",
                               &err),
                     DGM_ERR_UNSUPPORTED);
    // In any order, with spaces, without <unk>; what is behind the end does not count.
    assert_int_equal(
        read_text("made by hand\n\\data\\\r\nngram 1=3\nngram 2=2\n\\1-grams:\n-1 </s>\n"
                  "-99 <s> -0.3\n-0.5 a -0.2\n\\2-grams:\n-0.1 a </s>\n-0.4 <s> a\n"
                  "\\end\\\nmore\n",
                  &err),
        DGM_OK);
}

static void test_by_hand(void **state)
{
    (void)state;
    dgm_ngram *lm;
    dgm_error err = {""};
    dgm_ngram_score s = {.size = sizeof s};
    const char *path = put_text("hand.arpa", "\\data\\\nngram 1=4\nngram 2=2\n\\1-grams:\n-1 </s>\n"
                                        "-99 <s> -0.3\n-0.5 a -0.2\n-2 <unk>\n\\2-grams:\n"
                                        "-0.125 a </s>\n-0.25 <s> a\n\\end\\\n");
    assert_int_equal(dgm_ngram_open(&lm, path, NULL, &err), DGM_OK);
    assert_int_equal(dgm_ngram_line(lm, (dgm_line){" a\ta ", 5}, &s, NULL, NULL, &err), DGM_OK);
    assert_true(fabs(s.log10 - (-0.25 - 0.2 - 0.5 - 0.125)) < 1e-6 && s.tokens == 3);
    s = (dgm_ngram_score){.size = sizeof s};
    assert_int_equal(dgm_ngram_line(lm, (dgm_line){"b <s>", 5}, &s, NULL, NULL, &err), DGM_OK);
    assert_true(fabs(s.log10 - (-0.3 - 2 - 2 - 1)) < 1e-6 && s.unknown == 2);
    assert_true(fabs(dgm_ngram_perplexity(&s, 1) - 10) < 1e-4);
    s = (dgm_ngram_score){.size = sizeof s};
    assert_int_equal(dgm_ngram_line(lm, (dgm_line){"", 0}, &s, NULL, NULL, &err), DGM_OK);
    assert_true(s.empty == 1 && s.tokens == 0 && dgm_ngram_perplexity(&s, 0) == 0);
    assert_int_equal(dgm_ngram_line(lm, (dgm_line){"\xff", 1}, &s, NULL, NULL, &err), DGM_ERR_TEXT);
    dgm_ngram_close(&lm);
}

// ---- training on odd text ---------------------------------------------------------------------

static void test_bad_training(void **state)
{
    (void)state;
    dgm_ngram_options o;
    dgm_ngram_report r = {.size = sizeof r};
    dgm_error err = {""};
    const char *out = in_folder("odd.arpa"), *text = put_text("tiny", "a b\n\nc\n");
    dgm_ngram_default(&o);
    assert_int_equal(dgm_ngram_train(&text, 1, out, &o, NULL, &err), DGM_ERR_TEXT);
    assert_non_null(strstr(err.text, "--discount-fallback"));
    assert_false(dgm_file_exists(out));
    o.discount_fallback = 1;
    assert_int_equal(dgm_ngram_train(&text, 1, out, &o, &r, &err), DGM_OK);
    // <s> a b </s> is the longest: no 5-grams, one 4-gram
    assert_true(r.empty == 1 && r.tokens == 3 && r.kept[5] == 0 && r.kept[4] == 1);
    dgm_lm *lm;
    assert_int_equal(dgm_lm_open(&lm, out, &err), DGM_OK);
    check_sums(lm, 1);
    dgm_lm_close(&lm);
    o.prune[1] = 2;
    assert_int_equal(dgm_ngram_train(&text, 1, out, &o, NULL, &err), DGM_ERR_ARGUMENT);
    o.prune[0] = 1;
    assert_int_equal(dgm_ngram_train(&text, 1, out, &o, NULL, &err), DGM_ERR_ARGUMENT);
    dgm_ngram_default(&o);
    o.order = 6;
    assert_int_equal(dgm_ngram_train(&text, 1, out, &o, NULL, &err), DGM_ERR_ARGUMENT);
    o.order = 2;
    static const char *const bad[] = {"", "\n\n", "a <s> b\n", "a\n\n</s>\n", "\xff\n"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        text = put_text("odd", bad[i]);
        assert_int_equal(dgm_ngram_train(&text, 1, out, &o, NULL, &err), DGM_ERR_TEXT);
    }
    assert_int_equal(dgm_ngram_train(&text, 0, out, &o, NULL, &err), DGM_ERR_ARGUMENT);
}

static void test_subwords(void **state)
{
    (void)state;
    dgm_ngram_options o;
    dgm_ngram *lm;
    dgm_error err = {""};
    dgm_ngram_score s = {.size = sizeof s};
    const char *model = "tests/data/models/transformer-pieces.gguf", *arpa = in_folder("sub.arpa");
    const char *text = in_folder("train");
    dgm_ngram_default(&o);
    o.order = 3;
    o.subwords = model;
    o.discount_fallback = 1;
    if (dgm_ngram_train(&text, 1, arpa, &o, NULL, &err) != DGM_OK) fail_msg("%s", err.text);
    assert_int_equal(dgm_ngram_open(&lm, arpa, model, &err), DGM_OK);
    assert_int_equal(dgm_ngram_line(lm, (dgm_line){"The house", 9}, &s, NULL, NULL, &err), DGM_OK);
    assert_true(s.tokens > 3 && s.unknown == 0 && s.log10 < 0);
    dgm_ngram_close(&lm);
}

static void test_memory(void **state)
{
    (void)state;
    char arpa[128], lm[128];
    snprintf(arpa, sizeof arpa, "%s/oom.arpa", folder);
    snprintf(lm, sizeof lm, "%s/oom.lm", folder);
    const char *text = put_text("small", "a b a c a b\nb a\n\na a b c d a b\nb a c\nd\n");
    dgm_ngram_options o;
    dgm_ngram_default(&o);
    o.order = 3;
    o.discount_fallback = 1;
    for (int tool = 0; tool < 2; tool++) {
        dgm_status st = DGM_ERR_MEMORY;
        uint64_t live = dgm_mem_live();
        for (uint64_t n = 1; st != DGM_OK; n++) {
            dgm_error err;
            dgm_mem_inject(n, 1);
            st = tool ? dgm_ngram_convert(arpa, lm, 4, &err)
                      : dgm_ngram_train(&text, 1, arpa, &o, NULL, &err);
            dgm_mem_inject(0, 0);
            assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
            assert_int_equal(dgm_mem_live(), live);
        }
    }
}

int main(void)
{
    if (!scratch_open()) return 1;
    put_corpus();
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_golden),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_sums_that_are_wrong),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_disk),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_bad_arpa),
        cmocka_unit_test(test_by_hand),
        cmocka_unit_test(test_bad_training),
        cmocka_unit_test(test_subwords),
        cmocka_unit_test(test_memory),
    };
    return scratch_close(cmocka_run_group_tests(tests, NULL, NULL));
}
