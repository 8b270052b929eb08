// SPDX-License-Identifier: MIT
// Decoding inside lattices through the public functions: one sentence comes back with the score that
// forced decoding gives it, an n-best list's best under the model, and on random lattices the n-best
// list is that of brute force over all paths, for recurrent models, Transformers and ensembles,
// every finishing policy, with and without the lattice's own scores.
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/tools.h"
#include "lattice/lattice.h"
#include "score/score.h"

#define TRANSFORMER "tests/data/models/transformer-pieces.gguf"
#define RECURRENT "tests/data/models/rnn-bahdanau-pieces.gguf"

#define TEN "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a "

enum { PATHS = 200, TEXT = 4096, LATTICES = 24 };

typedef struct path {
    char text[256];
    double score; // the lattice's
    double total; // what it is ranked by
    char tokens[512]; // of the text, each behind a line break
} path;

typedef struct paths {
    path items[PATHS];
    size_t count;
} paths;

static dgm_translator *open_search(const char *model, const char *second, const char *search,
                                   const char *finish, int beam, float weight)
{
    dgm_translator *t = NULL;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.precision = "f32";
    s.search = search;
    s.exact_scores = 1;
    s.finish = finish;
    s.beam = s.nbest = beam;
    s.length_penalty = 0.6f;
    s.max_length = 100;
    s.lattices = 1;
    s.lattice_weight = weight;
    const dgm_member members[2] = {{model, 0}, {second, 0}};
    if (dgm_open_ensemble(&t, members, second ? 2 : 1, &s, &error) != DGM_OK)
        fail_msg("%s", error.text);
    return t;
}

static dgm_translator *open_with(const char *model, const char *second, const char *finish,
                                 int beam, float weight)
{
    return open_search(model, second, NULL, finish, beam, weight);
}

// ---- brute force -------------------------------------------------------------------------------

static bool take(void *cookie, const dgm_lattice_path *p)
{
    paths *out = cookie;
    dgm_writer w = {0};
    path *to = &out->items[out->count++];
    assert_int_equal(dgm_lattice_spell(p->lattice, p->arcs, p->count, &w, NULL), DGM_OK);
    assert_true(w.size < sizeof to->text);
    if (w.size) memcpy(to->text, w.data, w.size);
    to->text[w.size] = 0;
    to->score = p->score;
    dgm_writer_free(&w);
    return true;
}

static void join_tokens(const dgm_pair_score *p, char *out, size_t size)
{
    size_t used = 0;
    out[0] = 0;
    for (size_t i = 0; i + 1 < p->token_count; i++) // without the end symbol
        used += (size_t)snprintf(out + used, size - used, "\n%s", p->tokens[i]);
    used += (size_t)snprintf(out + used, size - used, "\n");
    assert_true(used < size);
}

static int by_total(const void *a, const void *b)
{
    const double x = ((const path *)a)->total, y = ((const path *)b)->total;
    return x > y ? -1 : x < y;
}

// Every text of the lattice with the model's own score of it, best first.
static void brute_force(dgm_translator *t, const char *source, const char *lattice, float weight,
                        paths *out)
{
    dgm_lattice *l = NULL;
    dgm_pair pairs[PATHS];
    dgm_pair_scores *scores = NULL;
    dgm_error error;
    out->count = 0;
    if (dgm_lattice_parse(&l, (dgm_text){lattice, strlen(lattice)}, 1, NULL, &error) != DGM_OK)
        fail_msg("%s", error.text);
    assert_int_equal(dgm_lattice_nbest(l, PATHS, true, take, out, NULL), DGM_OK);
    assert_true(out->count < PATHS);
    dgm_lattice_close(&l);
    for (size_t i = 0; i < out->count; i++)
        pairs[i] =
            (dgm_pair){{source, strlen(source)}, {out->items[i].text, strlen(out->items[i].text)}};
    if (dgm_score_pairs(t, pairs, out->count, &scores, &error) != DGM_OK)
        fail_msg("%s", error.text);
    assert_int_equal(scores->failed, 0);
    for (size_t i = 0; i < out->count; i++) {
        const dgm_pair_score *p = scores->items[i];
        const float sum = p->sum + weight * (float)out->items[i].score;
        out->items[i].total = (double)dgm_length_normalise(sum, (int)p->token_count, 0.6f);
        join_tokens(p, out->items[i].tokens, sizeof out->items[i].tokens);
    }
    dgm_pair_scores_free(&scores);
    qsort(out->items, out->count, sizeof out->items[0], by_total);
}

static void compare(const paths *want, const dgm_result *got)
{
    if (got->status != DGM_OK) fail_msg("%s", got->message);
    assert_int_equal(want->count, got->count);
    for (size_t i = 0; i < got->count; i++) {
        const double score = (double)got->translations[i]->score;
        assert_float_equal(want->items[i].total, score, 1e-4);
        const bool tied = (i > 0 && want->items[i - 1].total - score < 1e-4) ||
                          (i + 1 < got->count && score - want->items[i + 1].total < 1e-4);
        if (!tied) assert_string_equal(want->items[i].text, got->translations[i]->text);
    }
}

// A lattice of at most 100 paths or so, as text.
static void random_text(dgm_rng *rng, char *out)
{
    static const char *const words[] = {"house", "good", "morning", "the", "x", "Good morning",
                                        "~.",    "(~",   "12",      "a",   "a", "~s"};
    size_t at = (size_t)sprintf(out, "lattice\n");
    const int nodes = 2 + (int)dgm_rng_below(rng, 4);
    for (int i = 0; i < nodes; i++) {
        const uint64_t arcs = 1 + dgm_rng_below(rng, 3);
        for (uint64_t k = 0; k < arcs; k++)
            at += (size_t)sprintf(out + at, "%d %d %.3f %s\n", i,
                                  k == 0 ? i + 1
                                         : i + 1 + (int)dgm_rng_below(rng, (uint64_t)(nodes - i)),
                                  -3.0 * dgm_rng_unit(rng), words[dgm_rng_below(rng, 12)]);
        if (i > 0 && dgm_rng_below(rng, 3) == 0) at += (size_t)sprintf(out + at, "%d -0.5\n", i);
    }
    sprintf(out + at, "%d 0\n", nodes);
    assert_true(strlen(out) < TEXT);
}

// The first word of the path in the middle, as a prefix; what does not begin so leaves the list.
static void force_prefix(dgm_translator *t, const char *source, paths *want, char *prefix,
                         size_t size)
{
    const char *text = want->items[want->count / 2].text;
    snprintf(prefix, size, "%.*s", (int)strcspn(text, " "), text);
    const dgm_pair pair = {{source, strlen(source)}, {prefix, strlen(prefix)}};
    dgm_pair_scores *scores = NULL;
    char tokens[512];
    size_t kept = 0;
    assert_int_equal(dgm_score_pairs(t, &pair, 1, &scores, NULL), DGM_OK);
    join_tokens(scores->items[0], tokens, sizeof tokens);
    dgm_pair_scores_free(&scores);
    for (size_t i = 0; i < want->count; i++)
        if (strncmp(want->items[i].tokens, tokens, strlen(tokens)) == 0)
            want->items[kept++] = want->items[i];
    want->count = kept;
}

// Beginnings of translations are forced, too.
static void check_prefixes(const char *model, const char *search, float weight, uint64_t seed)
{
    static const char source[] = "The house is good.";
    char text[TEXT], prefix[256];
    size_t fewer = 0;
    dgm_rng rng = {seed};
    dgm_translator *t = open_search(model, NULL, search, "refill", PATHS, weight);
    for (int i = 0; i < LATTICES; i++) {
        paths want;
        random_text(&rng, text);
        brute_force(t, source, text, weight, &want);
        const size_t all = want.count;
        force_prefix(t, source, &want, prefix, sizeof prefix);
        fewer += want.count < all;
        const dgm_lattice_text l = {.text = text, .size = strlen(text)};
        const dgm_input input = {.size = sizeof(dgm_input),
                                 .text = source,
                                 .text_size = strlen(source),
                                 .prefix = prefix,
                                 .prefix_size = strlen(prefix),
                                 .lattice = &l};
        dgm_results *r = NULL;
        assert_int_equal(dgm_translate_inputs(t, &input, 1, &r, NULL), DGM_OK);
        assert_true(want.count > 0);
        compare(&want, r->items[0]);
        dgm_results_free(&r);
    }
    assert_true(fewer > LATTICES / 3);
    dgm_close(&t);
}

static void prefixes(void **state)
{
    (void)state;
    check_prefixes(TRANSFORMER, "beam", 0.0f, 5);
    check_prefixes(TRANSFORMER, "beam", 0.7f, 6);
    check_prefixes(RECURRENT, "cube", 0.7f, 7);
}

static void check_random(const char *model, const char *second, const char *search,
                         const char *finish, float weight, uint64_t seed)
{
    static char texts[LATTICES][TEXT];
    static const char *const sources[3] = {"Good morning.", "The house house is good.", "x"};
    dgm_input inputs[LATTICES] = {{0}};
    dgm_lattice_text lattices[LATTICES] = {{0}};
    dgm_rng rng = {seed};
    dgm_translator *t = open_search(model, second, search, finish, PATHS, weight);
    for (int i = 0; i < LATTICES; i++) {
        random_text(&rng, texts[i]);
        lattices[i] = (dgm_lattice_text){.text = texts[i], .size = strlen(texts[i])};
        inputs[i] = (dgm_input){.size = sizeof(dgm_input),
                                .text = sources[i % 3],
                                .text_size = strlen(sources[i % 3]),
                                .lattice = &lattices[i]};
    }
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate_inputs(t, inputs, LATTICES, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    for (int i = 0; i < LATTICES; i++) {
        paths want;
        brute_force(t, inputs[i].text, texts[i], weight, &want);
        compare(&want, r->items[i]);
    }
    dgm_results_free(&r);
    dgm_close(&t);
}

static void random_lattices(void **state)
{
    (void)state;
    static const char *const policies[] = {"margin", "shrink", "mask", "refill"};
    for (int i = 0; i < 4; i++) {
        check_random(TRANSFORMER, NULL, NULL, policies[i], 0.0f, 10 + (uint64_t)i);
        check_random(RECURRENT, NULL, NULL, policies[i], 0.0f, 20 + (uint64_t)i);
    }
    check_random(TRANSFORMER, NULL, NULL, "huggingface", 0.0f, 3);
    check_random(TRANSFORMER, NULL, NULL, "margin", 0.7f, 1);
    check_random(RECURRENT, RECURRENT, NULL, "margin", -1.5f, 2);
    check_random(TRANSFORMER, NULL, "cube", "refill", 0.7f, 31);
    check_random(RECURRENT, TRANSFORMER, "cube", "shrink", 0.0f, 32);
}

// ---- a sentence, a list ------------------------------------------------------------------------

static dgm_results *translate(dgm_translator *t, const char *text, const char *lattice)
{
    dgm_lattice_text l = {.text = lattice, .size = lattice ? strlen(lattice) : 0};
    dgm_input input = {.size = sizeof(dgm_input),
                       .text = text,
                       .text_size = strlen(text),
                       .lattice = lattice ? &l : NULL};
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate_inputs(t, &input, 1, &r, &error) != DGM_OK) fail_msg("%s", error.text);
    return r;
}

static void one_sentence(void **state)
{
    (void)state;
    static const char *const policies[] = {"margin", "shrink", "mask", "refill", "huggingface"};
    static const char lattice[] = "lattice\n0 1 0 House\n1 2 -4 Morning\n2 3 0 (~\n3 4 0 good\n"
                                  "4 5 0 ~).\n5 0\n";
    static const char said[] = "House Morning (good).";
    for (int i = 0; i < 5; i++) {
        for (int beam = 1; beam <= 4; beam += 3) {
            dgm_translator *t = open_with(TRANSFORMER, NULL, policies[i], beam, 0.0f);
            const dgm_pair pair = {{"Good morning.", 13}, {said, strlen(said)}};
            dgm_pair_scores *scores = NULL;
            assert_int_equal(dgm_score_pairs(t, &pair, 1, &scores, NULL), DGM_OK);
            dgm_results *r = translate(t, "Good morning.", lattice);
            assert_int_equal(r->items[0]->status, DGM_OK);
            assert_int_equal(r->items[0]->count, 1);
            assert_string_equal(dgm_result_text(r->items[0]), said);
            assert_float_equal(r->items[0]->translations[0]->sum, scores->items[0]->sum, 1e-4);
            assert_int_equal(r->items[0]->translations[0]->finished, 1);
            dgm_pair_scores_free(&scores);
            dgm_results_free(&r);
            dgm_close(&t);
        }
    }
}

// The list of a beam search as a lattice: a beam as wide as the list finds the best one again.
static void nbest_list(void **state)
{
    (void)state;
    enum { N = 12 };
    dgm_translator *t = open_with(RECURRENT, NULL, "refill", N, 0.0f);
    dgm_results *free_list = translate(t, "The house house is good.", NULL);
    const dgm_result *f = free_list->items[0];
    char text[TEXT] = "lattice\n";
    for (size_t i = 0; i < f->count; i++)
        sprintf(text + strlen(text), "0 1 0 %s\n", f->translations[i]->text);
    strcat(text, "1 0\n");
    dgm_results *r = translate(t, "The house house is good.", text);
    paths want;
    brute_force(t, "The house house is good.", text, 0.0f, &want);
    compare(&want, r->items[0]);
    dgm_results_free(&r);
    dgm_results_free(&free_list);
    dgm_close(&t);
}

// A line without a lattice is translated as ever, whoever stands beside it.
static void beside(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_translator *plain = NULL;
    dgm_settings_default(&s);
    s.precision = "f32";
    s.finish = "margin";
    s.beam = s.nbest = 4;
    s.length_penalty = 0.6f;
    s.max_length = 100;
    s.shortlist = "all";
    assert_int_equal(dgm_open(&plain, TRANSFORMER, &s, NULL), DGM_OK);
    dgm_results *want = translate(plain, "House house house.", NULL), *got = NULL;
    dgm_translator *t = open_with(TRANSFORMER, NULL, "margin", 4, 0.5f);
    const dgm_lattice_text l = {.text = "lattice\n0 1 0 a\n1 0\n", .size = 20};
    const dgm_input inputs[3] = {
        {.size = sizeof(dgm_input), .text = "x", .text_size = 1, .lattice = &l},
        {.size = sizeof(dgm_input), .text = "House house house.", .text_size = 18},
        {.size = sizeof(dgm_input), .text = "", .text_size = 0, .lattice = &l}};
    assert_int_equal(dgm_translate_inputs(t, inputs, 3, &got, NULL), DGM_OK);
    assert_string_equal(dgm_result_text(got->items[0]), "a");
    assert_string_equal(dgm_result_text(got->items[2]), ""); // an empty line stays one
    assert_int_equal(got->items[1]->count, want->items[0]->count);
    for (size_t i = 0; i < want->items[0]->count; i++) {
        assert_string_equal(got->items[1]->translations[i]->text,
                            want->items[0]->translations[i]->text);
        assert_true(got->items[1]->translations[i]->sum == want->items[0]->translations[i]->sum);
    }
    dgm_results_free(&want);
    dgm_results_free(&got);
    dgm_close(&plain);
    dgm_close(&t);
}

// ---- what is refused ---------------------------------------------------------------------------

static void refused_lines(void **state)
{
    (void)state;
    dgm_translator *t = open_with(TRANSFORMER, NULL, NULL, 2, 0.0f);
    static const struct {
        const char *lattice, *prefix, *message;
    } cases[] = {
        {"lattice\n0 1 0 a\n1 0 0 b\n1 0\n", NULL, "lattice: line 3: this arc lies on a cycle"},
        {"lattice\n0 1 0 a\n0 2 0 b\n1 0\n", NULL,
         "lattice: line 3: a dead end: no path leads from this node to an end"},
        {"lattice\n0 1 0 a\n1 0\n", "b", "lattice: no path begins with the forced prefix"},
        {"lattice\n0 1 0 " TEN TEN TEN
         "a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a a\n"
         "1 0\n",
         NULL,
         "lattice: the longest path of the lattice has 156 tokens, the maximum length is 100"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const dgm_lattice_text l = {.text = cases[i].lattice, .size = strlen(cases[i].lattice)};
        const dgm_input inputs[2] = {{.size = sizeof(dgm_input),
                                      .text = "Good morning.",
                                      .text_size = 13,
                                      .lattice = &l,
                                      .prefix = cases[i].prefix,
                                      .prefix_size = cases[i].prefix ? 1 : 0},
                                     {.size = sizeof(dgm_input), .text = "House.", .text_size = 6}};
        dgm_results *r = NULL;
        assert_int_equal(dgm_translate_inputs(t, inputs, 2, &r, NULL), DGM_OK);
        assert_int_not_equal(r->items[0]->status, DGM_OK);
        assert_string_equal(r->items[0]->message, cases[i].message);
        assert_int_equal(r->items[1]->status, DGM_OK); // the neighbour is not touched
        dgm_results_free(&r);
    }
    dgm_close(&t);
}

// What the only path of a lattice scores with these two.
static float one_score(float weight, float repetition)
{
    static const char lattice[] = "lattice\n0 1 -1.5 House\n1 2 -0.25 House\n2 0\n";
    dgm_translator *t = NULL;
    dgm_settings s;
    dgm_error error;
    dgm_settings_default(&s);
    s.precision = "f32";
    s.beam = 2;
    s.lattices = 1;
    s.lattice_weight = weight;
    s.repetition_penalty = repetition;
    if (dgm_open(&t, TRANSFORMER, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    dgm_results *r = translate(t, "Good morning.", lattice);
    assert_int_equal(r->items[0]->status, DGM_OK);
    assert_string_equal(dgm_result_text(r->items[0]), "House House");
    const float sum = r->items[0]->translations[0]->sum;
    dgm_results_free(&r);
    dgm_close(&t);
    return sum;
}

// Scores of a lattice and a repetition penalty are added up, each as if it were alone.
static void repetition(void **state)
{
    (void)state;
    const float plain = one_score(0, 0), weighted = one_score(2, 0), punished = one_score(0, 1.5f);
    assert_float_equal(weighted - plain, 2 * -1.75, 1e-4);
    assert_true(punished - plain < -0.4f); // at least one token came again: ln 1.5
    assert_float_equal(one_score(2, 1.5f), plain + (weighted - plain) + (punished - plain), 1e-4);
}

// Where no path has what a line is asked for besides, it says so.
static void nothing_is_found(void **state)
{
    (void)state;
    dgm_settings s;
    dgm_error error;
    dgm_translator *t = NULL;
    dgm_settings_default(&s);
    s.lattices = 1;
    s.min_length = 8;
    if (dgm_open(&t, TRANSFORMER, &s, &error) != DGM_OK) fail_msg("%s", error.text);
    dgm_results *r = translate(t, "Good morning.", "lattice\n0 1 0 House\n1 0\n");
    assert_int_equal(r->items[0]->status, DGM_OK);
    assert_string_equal(dgm_result_text(r->items[0]), "");
    assert_true(r->items[0]->flags & DGM_LINE_UNMET);
    assert_non_null(strstr(r->items[0]->notice, "no translation"));
    dgm_results_free(&r);
    dgm_close(&t);
}

static void refused_settings(void **state)
{
    (void)state;
    static const struct {
        const char *search;
        int lattices;
        float weight, penalty;
        const char *message;
    } cases[] = {
        {NULL, 0, 1, 0, "lattice-weight requires lattice"},
        {NULL, 1, NAN, 0, "lattice weight must be -1e+06 to 1e+06, not nan"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dgm_translator *t = NULL;
        dgm_settings s;
        dgm_error error;
        dgm_settings_default(&s);
        s.search = cases[i].search;
        s.lattices = cases[i].lattices;
        s.lattice_weight = cases[i].weight;
        s.repetition_penalty = cases[i].penalty;
        assert_int_equal(dgm_open(&t, TRANSFORMER, &s, &error), DGM_ERR_ARGUMENT);
        assert_string_equal(error.text, cases[i].message);
    }
    dgm_translator *t = NULL;
    assert_int_equal(dgm_open(&t, TRANSFORMER, NULL, NULL), DGM_OK);
    dgm_results *r = translate(t, "x", "lattice\n0 1 0 a\n1 0\n");
    assert_int_equal(r->items[0]->status, DGM_ERR_ARGUMENT);
    dgm_results_free(&r);
    dgm_close(&t);
}

static void memory(void **state)
{
    (void)state;
    dgm_translator *t = open_with(TRANSFORMER, NULL, NULL, 2, 1.0f);
    const dgm_lattice_text l = {.text = "lattice\n0 1 0 a\n0 1 0 b c\n1 0\n", .size = 30};
    const dgm_input input = {
        .size = sizeof(dgm_input), .text = "Good morning.", .text_size = 13, .lattice = &l};
    dgm_results *first = NULL; // a worker keeps its buffers
    assert_int_equal(dgm_translate_inputs(t, &input, 1, &first, NULL), DGM_OK);
    dgm_results_free(&first);
    const uint64_t live = dgm_mem_live();
    for (uint64_t n = 1, fine = 0; !fine; n++) {
        dgm_results *r = NULL;
        dgm_mem_inject(n, 1);
        const dgm_status st = dgm_translate_inputs(t, &input, 1, &r, NULL);
        dgm_mem_inject(0, 0);
        fine = st == DGM_OK && r->items[0]->status == DGM_OK;
        assert_true(st == DGM_OK || st == DGM_ERR_MEMORY);
        dgm_results_free(&r);
        assert_int_equal(dgm_mem_live(), live);
    }
    dgm_close(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_sentence),    cmocka_unit_test(nbest_list),
        cmocka_unit_test(random_lattices), cmocka_unit_test(beside),
        cmocka_unit_test(prefixes),
        cmocka_unit_test(refused_lines),   cmocka_unit_test(refused_settings),
        cmocka_unit_test(memory),          cmocka_unit_test(repetition),
        cmocka_unit_test(nothing_is_found),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
