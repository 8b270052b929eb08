// SPDX-License-Identifier: MIT
// Evidence through the public functions: weights of nothing change nothing, not a bit, at every
// precision, search and shortlist; one translation however it is batched; a list and the lattice of
// the same paths say the same; words of the evidence become candidates; refusals; counts; every
// allocation failing.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "dragoman/tools.h"
#include "engine.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define OTHER "tests/data/models/rnn-bahdanau-pieces.gguf"

static char folder[] = "/tmp/dgm-lmbr-XXXXXX";
static char listed[64], table[64];

static const char *const texts[] = {"The house is small.", "Good morning.", "house",
                                    "The small house is good, the morning is small.",
                                    "Is the house good?",  "small small small"};
enum { TEXTS = sizeof texts / sizeof *texts, CANDIDATES = 4 };

static const dgm_evidence_candidate candidates[CANDIDATES] = {{"das haus ist klein .", 20, -1.0},
                                                              {"das haus ist gut", 16, -1.5},
                                                              {"ein haus zum quaken", 19, -2.0},
                                                              {"", 0, -6.0}};
static const dgm_evidence evidence = {
    .size = sizeof(dgm_evidence), .candidates = candidates, .count = CANDIDATES};

// A list for MODEL, so that there is a shortlist to speak of.
static int set_up(void **state)
{
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(listed, sizeof listed, "%s/listed.gguf", folder);
    snprintf(table, sizeof table, "%s/lex", folder);
    if (!put_letters(table)) return -1;
    dgm_shortlist_options o;
    dgm_shortlist_default(&o);
    o.lexicon = table;
    o.frequent = 0;
    dgm_error error;
    if (dgm_shortlist_make(MODEL, listed, &o, NULL, &error) == DGM_OK) return 0;
    print_error("%s\n", error.text);
    return -1;
}

static int tear_down(void **state)
{
    (void)state;
    unlink(listed);
    unlink(table);
    return rmdir(folder);
}

// All translations of all lines with their scores, in one string. e NULL: no evidence; of every
// third line there is none in any case.
static char *translate(dgm_translator *t, const dgm_evidence *e)
{
    static char out[65536];
    dgm_input inputs[TEXTS] = {0};
    dgm_results *r = NULL;
    dgm_error error;
    size_t used = 0;
    for (int i = 0; i < TEXTS; i++)
        inputs[i] = (dgm_input){.size = sizeof(dgm_input),
                                .text = texts[i],
                                .text_size = strlen(texts[i]),
                                .evidence = i % 3 == 2 ? NULL : e};
    if (dgm_translate_inputs(t, inputs, TEXTS, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    for (size_t i = 0; i < r->count; i++) {
        assert_int_equal(r->items[i]->status, DGM_OK);
        for (size_t k = 0; k < r->items[i]->count; k++)
            used += (size_t)snprintf(out + used, sizeof out - used, "%zu %s %a\n", i,
                                     r->items[i]->translations[k]->text,
                                     (double)r->items[i]->translations[k]->sum);
    }
    dgm_results_free(&r);
    return strdup(out);
}

static void check_same(const dgm_settings *s, const char *path, const dgm_lmbr *w,
                       const dgm_evidence *e, bool same)
{
    dgm_settings with = *s;
    dgm_translator *t = open_with(s, path);
    char *plain = translate(t, NULL);
    dgm_close(&t);
    with.evidence = 1;
    with.lmbr = *w;
    t = open_with(&with, path);
    char *steered = translate(t, e);
    dgm_close(&t);
    if (same)
        assert_string_equal(plain, steered);
    else
        assert_string_not_equal(plain, steered);
    free(plain);
    free(steered);
}

static void test_nothing_changes_nothing(void **state)
{
    (void)state;
    static const char *const precisions[] = {"f32", "i16", "i8", "bf16"};
    static const char *const searches[] = {"greedy", "beam", "cube"};
    dgm_lmbr nothing = {.use_thetas = 1, .lambda = 1, .scale = 1}, something;
    dgm_lmbr_default(&something);
    for (int p = 0; p < 4; p++)
        for (int k = 0; k < 3; k++) {
            dgm_settings s;
            dgm_settings_default(&s);
            s.raw = 1; // as lines with evidence are
            s.precision = precisions[p];
            s.search = searches[k];
            s.nbest = k ? 3 : 1;
            s.max_length = 12;
            check_same(&s, MODEL, &nothing, &evidence, true);
            check_same(&s, listed, &nothing, &evidence, true);
            check_same(&s, MODEL, &something, &evidence, false);
            check_same(&s, MODEL, &something, NULL, true); // nobody has any
        }
}

static char *run(dgm_settings *s, const char *const *paths, int count, const dgm_evidence *e)
{
    dgm_member members[2] = {{paths[0], 0}, {count > 1 ? paths[1] : NULL, 0}};
    dgm_translator *t = NULL;
    dgm_error error;
    if (dgm_open_ensemble(&t, members, (size_t)count, s, &error) != DGM_OK)
        fail_msg("%s", error.text);
    char *all = translate(t, e);
    dgm_close(&t);
    return all;
}

static void test_batches(void **state)
{
    (void)state;
    const char *paths[][2] = {{MODEL, OTHER}, {listed, OTHER}};
    dgm_lmbr w;
    dgm_lmbr_default(&w);
    for (int k = 0; k < 8; k++) {
        char *first = NULL;
        for (int batch = 1; batch <= 7; batch += 3)
            for (int threads = 1; threads <= 2; threads++) {
                dgm_settings s;
                dgm_settings_default(&s);
                s.evidence = 1;
                s.lmbr = w;
                s.search = k & 1 ? "cube" : "beam";
                s.nbest = 4;
                s.batch = batch;
                s.threads = threads;
                s.max_length = 12;
                char *all = run(&s, paths[k >> 1 & 1], 1 + (k >> 2), &evidence);
                if (first) assert_string_equal(first, all);
                if (first)
                    free(all);
                else
                    first = all;
            }
        free(first);
    }
}

static void test_cube_key_none(void **state)
{
    (void)state;
    const char *paths[] = {listed, OTHER};
    dgm_lmbr w;
    dgm_settings s;
    dgm_lmbr_default(&w);
    dgm_settings_default(&s);
    s.evidence = 1;
    s.lmbr = w;
    s.nbest = 4;
    s.max_length = 12;
    for (int members = 1; members <= 2; members++) {
        s.search = "beam";
        s.cube_key = NULL;
        char *beam = run(&s, paths, members, &evidence);
        s.search = "cube";
        s.cube_key = "none";
        char *cube = run(&s, paths, members, &evidence);
        assert_string_equal(beam, cube);
        free(beam);
        free(cube);
    }
}

// The same four translations as paths.
static void test_lattice(void **state)
{
    (void)state;
    static const char lattice[] = "lattice\n0 1 -0.5 das haus ist\n1 9 -0.5 klein ~.\n1 9 -1 gut\n"
                                  "0 9 -2 ein haus zum quaken\n0 -6\n9 0\n";
    static const dgm_evidence_candidate same[] = {{"das haus ist klein.", 19, -1.0},
                                                  {"das haus ist gut", 16, -1.5},
                                                  {"ein haus zum quaken", 19, -2.0},
                                                  {"", 0, -6.0}};
    const dgm_evidence list = {.size = sizeof(dgm_evidence), .candidates = same, .count = 4};
    dgm_evidence paths = {
        .size = sizeof(dgm_evidence), .lattice = lattice, .lattice_size = sizeof lattice - 1};
    dgm_lmbr w;
    dgm_settings s;
    dgm_lmbr_default(&w);
    dgm_settings_default(&s);
    s.evidence = 1;
    s.lmbr = w;
    s.max_length = 12;
    dgm_translator *t = open_with(&s, MODEL);
    char *a = translate(t, &list), *b = translate(t, &paths);
    assert_string_equal(a, b);
    free(a);
    free(b);
    dgm_input in = {.size = sizeof(dgm_input), .text = "house", .text_size = 5, .evidence = &paths};
    dgm_results *r = NULL;
    paths.lattice = "lattice\n0 x\n";
    paths.lattice_size = 12;
    assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_ERR_FORMAT);
    assert_non_null(strstr(r->items[0]->message, "lattice of the evidence"));
    dgm_results_free(&r);
    dgm_close(&t);
}

// A lattice beyond the limit is halved until it fits: what is left is evidence, and it is counted.
static void test_limit(void **state)
{
    (void)state;
    static const char lattice[] = "lattice\n0 1 -0.5 das haus\n0 1 -4 ein\n0 1 -5 in\n1 0\n",
                      best[] = "lattice\n0 1 -0.5 das haus\n1 0\n";
    const dgm_evidence whole = {
        .size = sizeof(dgm_evidence), .lattice = lattice, .lattice_size = sizeof lattice - 1};
    const dgm_evidence part = {
        .size = sizeof(dgm_evidence), .lattice = best, .lattice_size = sizeof best - 1};
    dgm_settings s;
    dgm_counters c;
    dgm_settings_default(&s);
    assert_int_equal(s.lmbr_limit, 1 << 22);
    s.evidence = 1;
    s.max_length = 12;
    dgm_translator *t = open_with(&s, MODEL);
    char *all = translate(t, &whole), *want = translate(t, &part);
    dgm_count(t, &c);
    assert_true(c.evidence_lines > 0);
    assert_int_equal(c.evidence_pruned, 0);
    assert_string_not_equal(all, want);
    dgm_close(&t);
    bool same = false;
    for (s.lmbr_limit = 12; s.lmbr_limit > 1 && !same; s.lmbr_limit--) {
        t = open_with(&s, MODEL);
        char *got = translate(t, &whole);
        dgm_count(t, &c);
        same = strcmp(got, want) == 0;
        if (strcmp(got, all) != 0) assert_true(c.evidence_pruned > 0);
        free(got);
        dgm_close(&t);
    }
    assert_true(same); // the best path alone
    free(all);
    free(want);
}

// The source's letters do not lead to these pieces: they are candidates by the evidence alone.
static void test_candidates(void **state)
{
    (void)state;
    static const dgm_evidence_candidate word = {"zum", 3, 0};
    const dgm_evidence e = {.size = sizeof(dgm_evidence), .candidates = &word, .count = 1};
    dgm_lmbr w = {.lambda = 0.01f, .use_thetas = 1, .thetas = {-1, 2, 4, 8, 16}, .scale = 1};
    dgm_settings s;
    dgm_settings_default(&s);
    s.evidence = 1;
    s.lmbr = w;
    s.max_length = 12;
    dgm_translator *t = open_with(&s, listed);
    dgm_input in = {.size = sizeof(dgm_input), .text = "in", .text_size = 2};
    dgm_results *r = NULL;
    dgm_counters c, before;
    assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, NULL), DGM_OK);
    assert_null(strstr(dgm_result_text(r->items[0]), "zum"));
    dgm_results_free(&r);
    dgm_count(t, &before);
    in.evidence = &e;
    assert_int_equal(dgm_translate_inputs(t, &in, 1, &r, NULL), DGM_OK);
    assert_string_equal(dgm_result_text(r->items[0]), "zum");
    dgm_results_free(&r);
    dgm_count(t, &c);
    assert_true(c.candidates > 2 * before.candidates);
    assert_int_equal(c.evidence_lines, 1);
    assert_true(c.evidence_rows > 1 && c.evidence_rows < 30);
    assert_true(c.evidence_values >= c.evidence_rows && c.evidence_seconds > 0);
    dgm_close(&t);
}

static void test_set(void **state)
{
    (void)state;
    dgm_lmbr w, other;
    dgm_settings s;
    dgm_error error;
    dgm_lmbr_default(&w);
    other = w;
    other.lambda = 4;
    dgm_settings_default(&s);
    s.max_length = 12;
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_lmbr_set(t, &w, &error), DGM_ERR_ARGUMENT);
    dgm_close(&t);
    s.evidence = 1;
    s.lmbr = other;
    t = open_with(&s, MODEL);
    char *want = translate(t, &evidence);
    dgm_close(&t);
    s.evidence = 1;
    s.lmbr = w;
    t = open_with(&s, MODEL);
    char *first = translate(t, &evidence);
    assert_string_not_equal(first, want);
    assert_int_equal(dgm_lmbr_set(t, &other, &error), DGM_OK);
    char *second = translate(t, &evidence);
    assert_string_equal(second, want);
    free(first);
    free(second);
    free(want);
    dgm_close(&t);
}

// N-grams beyond the order count for nothing, and the others share what all would earn.
static void test_order(void **state)
{
    (void)state;
    static const char lattice[] = "lattice\n0 1 -0.5 das haus ist\n1 9 -0.5 klein ~.\n1 9 -1 gut\n9 0\n";
    const dgm_evidence paths = {
        .size = sizeof(dgm_evidence), .lattice = lattice, .lattice_size = sizeof lattice - 1};
    const dgm_evidence *const both[] = {&evidence, &paths};
    char *before[2] = {NULL, NULL};
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_error error;
    dgm_settings_default(&s);
    assert_int_equal(s.lmbr_order, 4);
    s.evidence = 1;
    s.max_length = 12;
    for (int order = 1; order <= 4; order++)
        for (int k = 0; k < 2; k++) {
            const double t0 = (double)s.lmbr.t, p = (double)s.lmbr.p, r = (double)s.lmbr.r;
            dgm_settings by_hand = s;
            s.lmbr_order = order;
            t = open_with(&s, MODEL);
            char *got = translate(t, both[k]);
            dgm_close(&t);
            by_hand.lmbr_order = 4;
            by_hand.lmbr.use_thetas = 1;
            for (int n = 0; n <= 4; n++)
                by_hand.lmbr.thetas[n] =
                    n == 0      ? (float)(-1 / t0)
                    : n > order ? 0.0f
                                : (float)(1 / (order * t0 * p * pow(r, n - 1)));
            t = open_with(&by_hand, MODEL);
            char *want = translate(t, both[k]);
            dgm_close(&t);
            assert_string_equal(got, want);
            by_hand.lmbr_order = order; // of given thetas, too, the longer ones are left out
            for (int n = order + 1; n <= 4; n++) by_hand.lmbr.thetas[n] = 5;
            t = open_with(&by_hand, MODEL);
            char *cut = translate(t, both[k]);
            dgm_close(&t);
            assert_string_equal(cut, want);
            if (before[k]) assert_string_not_equal(got, before[k]);
            free(before[k]);
            before[k] = got;
            free(want);
            free(cut);
        }
    free(before[0]);
    free(before[1]);
    s.lmbr_order = 5;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
    assert_string_equal(error.text, "order of LMBR must be 1 to 4, not 5");
}

// The n-grams of a line's evidence in its result; nothing of lines without.
static void test_ngrams(void **state)
{
    (void)state;
    static const dgm_evidence_candidate two[] = {{"haus", 4, 0}, {"zum haus", 8, 0}};
    const dgm_evidence e = {.size = sizeof(dgm_evidence), .candidates = two, .count = 2};
    const dgm_input in[] = {{.size = sizeof(dgm_input), .text = "house", .text_size = 5, .evidence = &e},
                            {.size = sizeof(dgm_input), .text = "house", .text_size = 5}};
    dgm_settings s;
    dgm_results *r = NULL;
    dgm_settings_default(&s);
    s.evidence = 1;
    s.max_length = 6;
    s.lmbr_ngrams = 1;
    s.lmbr = (dgm_lmbr){.lambda = 1, .scale = 1, .use_thetas = 1, .thetas = {-1, 1, 10, 100, 1000}};
    dgm_translator *t = open_with(&s, MODEL);
    assert_int_equal(dgm_translate_inputs(t, in, 2, &r, NULL), DGM_OK);
    const dgm_result *line = r->items[0];
    assert_null(r->items[1]->ngrams);
    assert_int_equal(r->items[1]->ngram_count, 0);
    assert_true(line->ngram_count > 4);
    double longest = 0;
    for (size_t i = 0; i < line->ngram_count; i++) {
        const dgm_evidence_ngram *n = &line->ngrams[i];
        int spaces = 0;
        for (const char *c = n->tokens; *c; c++) spaces += *c == ' ';
        assert_int_equal(n->length, spaces + 1);
        assert_true(n->posterior == 0.5 || n->posterior == 1.0);
        // The longest n-gram with this end, and all the shorter ones.
        assert_true(n->gain >= n->posterior * pow(10, n->length - 1));
        if (strcmp(n->tokens, "</s>") == 0) assert_true(n->posterior == 1 && n->gain == 1);
        if (n->gain > longest) longest = n->gain;
        if (i) assert_true(line->ngrams[i - 1].length <= n->length);
    }
    assert_true(longest > 500);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void refused(const dgm_lmbr *w, const char *word)
{
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.evidence = 1;
    s.lmbr = *w;
    assert_int_equal(dgm_open(&t, MODEL, &s, &error), DGM_ERR_ARGUMENT);
    assert_null(t);
    if (!strstr(error.text, word)) fail_msg("'%s' has no '%s'", error.text, word);
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_lmbr w;
    dgm_lmbr_default(&w);
    w.p = 0;
    refused(&w, "p of LMBR");
    dgm_lmbr_default(&w);
    w.lambda = -1;
    refused(&w, "lambda");
    dgm_lmbr_default(&w);
    w.scale = NAN;
    refused(&w, "scale");
    dgm_lmbr_default(&w);
    w.r = 1e-5f;
    refused(&w, "theta");
    w = (dgm_lmbr){.use_thetas = 1, .thetas = {0, INFINITY}};
    refused(&w, "thetas of LMBR must be -1e+06 to 1e+06, not inf");

    static const dgm_evidence_candidate bad = {"haus", 4, INFINITY};
    const dgm_evidence wrong = {.size = sizeof(dgm_evidence), .candidates = &bad, .count = 1};
    const dgm_evidence two = {.size = sizeof(dgm_evidence),
                              .candidates = candidates,
                              .count = 1,
                              .lattice = "0",
                              .lattice_size = 1};
    const dgm_evidence none = {.size = sizeof(dgm_evidence)};
    const dgm_input in[] = {
        {.size = sizeof(dgm_input), .text = "a", .text_size = 1, .evidence = &wrong},
        {.size = sizeof(dgm_input), .text = "a", .text_size = 1, .evidence = &two},
        {.size = sizeof(dgm_input), .text = "a", .text_size = 1, .evidence = &none}};
    dgm_settings s;
    dgm_results *r = NULL;
    dgm_settings_default(&s);
    dgm_translator *t = open_with(&s, MODEL); // without LMBR
    assert_int_equal(dgm_translate_inputs(t, in, 1, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_ERR_ARGUMENT);
    dgm_results_free(&r);
    dgm_close(&t);
    dgm_lmbr_default(&w);
    s.evidence = 1;
    s.lmbr = w;
    t = open_with(&s, MODEL);
    assert_int_equal(dgm_translate_inputs(t, in, 3, &r, NULL), DGM_OK);
    assert_int_equal(r->items[0]->status, DGM_ERR_TEXT);
    assert_int_equal(r->items[1]->status, DGM_ERR_ARGUMENT);
    assert_int_equal(r->items[2]->status, DGM_OK);
    dgm_results_free(&r);
    dgm_close(&t);
}

// Whatever allocation fails: the call or the line fails, out of memory, and nothing is lost.
static void test_out_of_memory(void **state)
{
    (void)state;
    static const char lattice[] = "lattice\n0 1 -0.5 das haus\n0 1 -1 ein\n1 0\n";
    const dgm_evidence paths = {
        .size = sizeof(dgm_evidence), .lattice = lattice, .lattice_size = sizeof lattice - 1};
    const dgm_input in[] = {
        {.size = sizeof(dgm_input), .text = "house", .text_size = 5, .evidence = &evidence},
        {.size = sizeof(dgm_input), .text = "small", .text_size = 5, .evidence = &paths}};
    dgm_lmbr w;
    dgm_settings s;
    dgm_lmbr_default(&w);
    dgm_settings_default(&s);
    s.evidence = 1;
    s.lmbr = w;
    s.lmbr_ngrams = 1;
    s.max_length = 6;
    dgm_translator *t = open_with(&s, MODEL);
    bool done = false;
    dgm_results *warm = NULL; // buffers that the worker keeps
    assert_int_equal(dgm_translate_inputs(t, in, 2, &warm, NULL), DGM_OK);
    dgm_results_free(&warm);
    for (uint64_t n = 1; !done; n++) {
        const uint64_t before = dgm_mem_live();
        dgm_results *r = NULL;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_translate_inputs(t, in, 2, &r, NULL);
        dgm_mem_inject(0, 0);
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        done = st == DGM_OK && r->failed == 0;
        for (size_t i = 0; st == DGM_OK && i < 2; i++)
            assert_true(r->items[i]->status == DGM_OK || r->items[i]->status == DGM_ERR_MEMORY);
        dgm_results_free(&r);
        assert_int_equal(dgm_mem_live(), before);
        assert_true(n < 2000);
    }
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_nothing_changes_nothing),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_cube_key_none),
        cmocka_unit_test(test_lattice),
        cmocka_unit_test(test_limit),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_ngrams),
        cmocka_unit_test(test_candidates),
        cmocka_unit_test(test_set),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_out_of_memory),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
