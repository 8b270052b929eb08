// SPDX-License-Identifier: MIT
// What goes wrong around the engine: every allocation fails once, and a model file has one bit
// flipped, ten thousand times. The library must come back with a status, keep nothing, and never
// crash; AddressSanitizer watches in the ASAN=1 build.
#define _GNU_SOURCE
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/dragoman.h"
#include "dragoman/tools.h"

#define MODEL "tests/data/models/transformer-pieces.gguf"
#define OTHER "tests/data/models/rnn-bahdanau-pieces.gguf"

static void small(dgm_settings *s)
{
    dgm_settings_default(s);
    s->beam = 2;
    s->nbest = 2;
    s->batch = 2;
    s->max_length = 4;
    s->max_source = 24;
    s->alignment = DGM_ALIGN_WORDS;
    s->token_scores = 1;
}

// Everything that allocates: a short line, a line in pieces, a bad one, an empty one.
static dgm_status translate_all(dgm_translator *t, dgm_error *error)
{
    const char *texts[] = {"Good morning.", "The house is small. The house is small. Good morning.",
                           "bad \xff byte", ""};
    dgm_results *r = NULL;
    dgm_status st = dgm_translate(t, texts, 4, &r, error);
    if (st == DGM_OK) {
        assert_int_equal(r->count, 4);
        for (size_t i = 0; i < r->count; i++) {
            const dgm_result *line = r->items[i];
            if (line->status == DGM_OK) continue;
            assert_int_equal(line->status, DGM_ERR_MEMORY);
            assert_string_equal(line->message, "out of memory");
            st = DGM_ERR_MEMORY;
        }
    }
    dgm_results_free(&r);
    return st;
}

static dgm_status whole_life(dgm_error *error)
{
    dgm_settings s;
    dgm_translator *t = NULL;
    const dgm_member members[] = {{MODEL, 2}, {OTHER, 1}};
    small(&s);
    dgm_status st = dgm_open_ensemble(&t, members, 2, &s, error);
    if (st != DGM_OK) {
        assert_null(t);
        return st;
    }
    st = translate_all(t, error);
    dgm_pair pair = {{"Good morning.", 13}, {"haus", 4}};
    dgm_pair_scores *scores = NULL;
    dgm_status scored = dgm_score_pairs(t, &pair, 1, &scores, error);
    dgm_pair_scores_free(&scores);
    dgm_close(&t);
    return st != DGM_OK ? st : scored;
}

// Fails allocation 1, 2, 3, ... of fn until it succeeds without having been disturbed.
static void fail_each(dgm_status (*fn)(dgm_error *), int at_least)
{
    dgm_error error;
    assert_int_equal(fn(&error), DGM_OK); // warms up what stays allocated for good
    uint64_t live = dgm_mem_live();
    int failures = 0;
    for (uint64_t n = 1;; n++) {
        uint64_t before = dgm_mem_allocations();
        error.text[0] = 0;
        dgm_mem_inject(n, 1);
        dgm_status st = fn(&error);
        dgm_mem_inject(0, 0);
        assert_int_equal(dgm_mem_live(), live);
        if (dgm_mem_allocations() - before < n) {
            assert_int_equal(st, DGM_OK);
            break;
        }
        if (st != DGM_OK) assert_int_equal(st, DGM_ERR_MEMORY);
        failures += st != DGM_OK;
    }
    assert_true(failures >= at_least);
}

static void test_every_allocation_fails(void **state)
{
    (void)state;
    fail_each(whole_life, 100);
}

static dgm_status tools_life(dgm_error *error)
{
    dgm_inspect_options options = {.size = sizeof options, .tensors = 1};
    char *text = NULL;
    dgm_status st = dgm_inspect(MODEL, &options, &text, error);
    dgm_string_free(&text);
    if (st != DGM_OK) return st;
    dgm_line hyp[] = {{"Good morning.", 13}, {"small house", 11}};
    dgm_line ref[] = {{"Good evening.", 13}, {"a small house", 13}};
    const dgm_line *systems[] = {hyp, ref}, *refs[] = {ref};
    dgm_eval_options eval;
    dgm_eval_score scores[2] = {{.size = sizeof scores[0]}, {.size = sizeof scores[1]}};
    double sentences[4];
    dgm_eval_default(&eval);
    eval.samples = 10;
    st = dgm_evaluate(&eval, systems, 2, refs, 1, 2, scores, sentences, error);
    if (st != DGM_OK) return st;
    dgm_model_list *list = NULL;
    st = dgm_models_find(&list, error);
    dgm_models_free(&list);
    return st;
}

static void test_every_allocation_of_tools_fails(void **state)
{
    (void)state;
    fail_each(tools_life, 10);
}

// What is returned in lists: scored lattices, a profile, a report on matrices.
static dgm_status lists_life(dgm_error *error)
{
    const char *text = "lattice\n0 1 -0.5 a\n0 1 -1 the\n1 2 -0.5 house\n2 0\n";
    const dgm_lattice_text lattices[] = {{.text = text, .size = strlen(text)},
                                         {.text = "lattice", .size = 7}};
    const dgm_line sources[] = {{"Good morning.", 13}, {"Good evening.", 13}};
    dgm_settings s;
    dgm_translator *t = NULL;
    dgm_scored_lines *lines = NULL;
    dgm_profile *profile = NULL;
    dgm_quantize_report *report = NULL;
    dgm_quantize_options quantize;
    dgm_quantize_default(&quantize);
    quantize.type = "i8";
    small(&s);
    dgm_status st = dgm_open(&t, MODEL, &s, error);
    if (st == DGM_OK) st = dgm_score_lattices(t, sources, lattices, 2, 5, 1, &lines, error);
    if (st == DGM_OK) assert_true(lines->items[0]->count == 2 && lines->failed == 1);
    if (st == DGM_OK) st = dgm_profile_start(t, error);
    if (st == DGM_OK) st = dgm_profile_read(t, &profile, error);
    if (st == DGM_OK) st = dgm_quantize(MODEL, NULL, &quantize, &report, error);
    dgm_scored_lines_free(&lines);
    dgm_profile_free(&profile);
    dgm_quantize_report_free(&report);
    dgm_close(&t);
    return st;
}

static void test_every_allocation_of_lists_fails(void **state)
{
    (void)state;
    fail_each(lists_life, 50);
}

// ---- bit flips --------------------------------------------------------------------------------

// Half of the flips hit the first part of the file, where counts, names and metadata are.
static size_t choose_bit(dgm_rng *rng, size_t size)
{
    size_t head = size / 5;
    return (size_t)dgm_rng_below(rng, 2) ? (size_t)dgm_rng_below(rng, head * 8)
                                         : (size_t)dgm_rng_below(rng, size * 8);
}

static void test_bit_flips(void **state)
{
    (void)state;
    enum { FLIPS = 10000 };
    char path[] = "/tmp/dragoman-flip-XXXXXX";
    int copy = mkstemp(path);
    assert_true(copy >= 0);
    int source = open(MODEL, O_RDONLY);
    assert_true(source >= 0);
    off_t end = lseek(source, 0, SEEK_END);
    assert_true(end > 0);
    size_t size = (size_t)end;
    uint8_t *data = malloc(size);
    assert_int_equal(pread(source, data, size, 0), (ssize_t)size);
    assert_int_equal(pwrite(copy, data, size, 0), (ssize_t)size);
    close(source);
    dgm_rng rng = {20260101};
    dgm_settings s;
    small(&s);
    s.threads = 1;
    int opened = 0, refused = 0;
    uint64_t live = dgm_mem_live();
    for (int i = 0; i < FLIPS; i++) {
        size_t bit = choose_bit(&rng, size);
        uint8_t byte = data[bit / 8] ^ (uint8_t)(1 << bit % 8);
        assert_int_equal(pwrite(copy, &byte, 1, (off_t)(bit / 8)), 1);
        dgm_translator *t = NULL;
        dgm_error error = {{0}};
        dgm_status st = dgm_open(&t, path, &s, &error);
        if (st == DGM_OK) {
            const char *text = "Good morning.";
            dgm_results *r = NULL;
            assert_int_equal(dgm_translate(t, &text, 1, &r, &error), DGM_OK);
            dgm_results_free(&r);
            opened++;
        } else {
            assert_true(error.text[0] != 0);
            assert_null(strchr(error.text, '\n'));
            refused++;
        }
        dgm_close(&t);
        assert_int_equal(dgm_mem_live(), live);
        assert_int_equal(pwrite(copy, &data[bit / 8], 1, (off_t)(bit / 8)), 1);
    }
    print_message("%d flips: %d opened, %d refused\n", FLIPS, opened, refused);
    assert_true(opened > 1000 && refused > 1000);
    close(copy);
    unlink(path);
    free(data);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_allocation_fails),
        cmocka_unit_test(test_every_allocation_of_tools_fails),
        cmocka_unit_test(test_every_allocation_of_lists_fails),
        cmocka_unit_test(test_bit_flips),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
