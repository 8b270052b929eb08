// SPDX-License-Identifier: MIT
// Mask-predict against a PyTorch copy of the same rule (training/dragoman_training/cmlm.py), and
// against itself in other company.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { LINES = 500, WORDS = 32 };

typedef struct line {
    int32_t words[WORDS];
    int count;
} line;

static line sources[LINES], expected[LINES];
static toy_answer answers[LINES], others[LINES];

// Lines of a table in which -1 ends each.
static int read_lines(const dgm_gguf *g, const char *name, line *out)
{
    const int32_t *values = NULL;
    int count = 0, n = 0;
    dgm_error err = {{0}};
    if (dgm_gguf_table(g, name, -1, -1, INT32_MAX, DGM_REQUIRED, &values, &count, &err) != DGM_OK)
        fail_msg("%s", err.text);
    memset(out, 0, LINES * sizeof *out);
    for (int i = 0; i < count; i++) {
        if (values[i] < 0) {
            n++;
            continue;
        }
        assert_true(n < LINES && out[n].count < WORDS);
        out[n].words[out[n].count++] = values[i];
    }
    return n;
}

static void translate(const toy *m, int lines, int iterations, int lengths, int sentences,
                      toy_answer *a)
{
    toy_search t;
    static dgm_search_request r[LINES];
    dgm_search_config c = toy_config(lengths, DGM_FINISH_REFILL);
    c.search = "mask-predict";
    c.iterations = iterations;
    c.nbest = lengths;
    c.word_scores = true;
    c.max_length = WORDS - 1;
    c.sentences = sentences;
    c.refine_tokens = sentences > 1 ? 512 : 0; // many targets a call, or the longest one
    for (int i = 0; i < lines; i++)
        r[i] = (dgm_search_request){.source = {sources[i].words, sources[i].count}};
    toy_search_open(&t, &c, &m, 1, NULL);
    const uint64_t before = dgm_mem_allocations();
    toy_run(&t, r, lines, a);
    assert_int_equal(dgm_mem_allocations(), before);
    toy_search_close(&t);
}

static void check_model(const char *name)
{
    static const int settings[][2] = {{1, 1}, {4, 1}, {10, 1}, {4, 3}};
    toy m;
    dgm_gguf *dump = NULL;
    dgm_error err = {{0}};
    char path[128];
    snprintf(path, sizeof path, "tests/data/models/%s.gguf", name);
    toy_load(&m, path);
    snprintf(path, sizeof path, "tests/data/models/%s.cmlm.gguf", name);
    if (dgm_gguf_open(&dump, path, &err) != DGM_OK) fail_msg("%s", err.text);
    const int lines = read_lines(dump, "lines.source", sources);
    assert_true(lines >= 20);
    for (int k = 0; k < 4; k++) {
        const int iterations = settings[k][0], lengths = settings[k][1];
        char table[32];
        snprintf(table, sizeof table, "lines.%d.%d", iterations, lengths);
        assert_int_equal(read_lines(dump, table, expected), lines);
        translate(&m, lines, iterations, lengths, 1, answers);
        int same = 0;
        for (int i = 0; i < lines; i++) {
            const toy_hypothesis *h = &answers[i].h[0];
            same += h->count == expected[i].count &&
                    memcmp(h->tokens, expected[i].words, (size_t)h->count * sizeof(int32_t)) == 0;
            assert_int_equal(answers[i].count, lengths);
            float sum = 0;
            for (int j = 0; j < h->count; j++) sum += h->words[j];
            assert_true(fabsf(sum - h->sum) < 1e-4f);
            assert_true(fabsf(h->score - sum / (float)h->count) < 1e-5f);
        }
        if (same < (lines * 99 + 99) / 100)
            fail_msg("%s, T = %d, l = %d: %d of %d lines are PyTorch's", name, iterations, lengths,
                     same, lines);
        print_message("%s: T = %2d, l = %d: %d of %d lines as PyTorch\n", name, iterations, lengths,
                      same, lines);
        translate(&m, lines, iterations, lengths, 9, others);
        for (int i = 0; i < lines; i++)
            assert_memory_equal(answers[i].h, others[i].h,
                                (size_t)answers[i].count * sizeof *answers[i].h);
    }
    dgm_gguf_close(&dump);
    toy_close(&m);
}

static void test_against_torch(void **state)
{
    (void)state;
    check_model("cmlm-post");
    check_model("cmlm-pre");
    check_model("cmlm-pieces");
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_torch)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
