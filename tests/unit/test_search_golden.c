// SPDX-License-Identifier: MIT
// All finishing policies against tests/data/search/policies.txt, which
// tests/oracle/search_policies.py made from a second statement of them (and, for huggingface, from
// transformers' own generate). The score tables are drawn from the seed of each line, as the script
// draws them.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { MAX_VOCAB = 16, MAX_POSITIONS = 12 };

typedef struct golden {
    int finish, first; // dgm_finish, and K of first:K
    int seed, vocab, beam, max_length, nbest;
    float penalty;
    toy_answer answer; // tokens and scores
} golden;

static void parse_list(char *text, toy_answer *a)
{
    char *outer = NULL, *inner = NULL;
    for (char *item = strtok_r(text, "|", &outer); item; item = strtok_r(NULL, "|", &outer)) {
        toy_hypothesis *h = &a->h[a->count++];
        h->score = strtof(strtok_r(item, " \n", &inner), NULL);
        for (char *t = strtok_r(NULL, " \n", &inner); t; t = strtok_r(NULL, " \n", &inner))
            h->tokens[h->count++] = atoi(t);
    }
}

static bool parse(char *line, golden *g)
{
    char policy[32];
    int used = 0;
    memset(g, 0, sizeof *g);
    if (sscanf(line, "%31s %d %d %d %f %d %d :%n", policy, &g->seed, &g->vocab, &g->beam,
               &g->penalty, &g->max_length, &g->nbest, &used) != 7 ||
        used == 0)
        return false;
    if (!dgm_finish_parse(policy, &g->finish, &g->first)) fail_msg("no policy '%s'", policy);
    parse_list(line + used, &g->answer);
    return true;
}

static void open_tables(toy *m, const golden *g)
{
    float last[MAX_VOCAB * MAX_VOCAB], time[MAX_POSITIONS * MAX_VOCAB];
    const int positions = g->max_length + 2;
    assert_true(g->vocab <= MAX_VOCAB && positions <= MAX_POSITIONS);
    dgm_rng rng = {(uint64_t)g->seed};
    for (int i = 0; i < g->vocab * g->vocab; i++) last[i] = (float)(5 * dgm_rng_unit(&rng) - 2.5);
    for (int i = 0; i < positions * g->vocab; i++) time[i] = (float)(3 * dgm_rng_unit(&rng) - 1.5);
    for (int t = 0; t < positions; t++) time[t * g->vocab + TOY_EOS] += 0.7f * (float)t - 1.5f;
    const toy_spec spec = {
        .vocab = g->vocab, .positions = positions, .heads = 1, .last = last, .time = time};
    toy_open(m, &spec);
}

static void check(const golden *g, int line)
{
    toy m;
    open_tables(&m, g);
    dgm_search_config c = toy_config(g->beam, (dgm_finish)g->finish);
    c.first = g->first;
    c.nbest = g->nbest;
    c.length_penalty = g->penalty;
    c.max_length = g->max_length;
    const toy_answer a = toy_translate(&m, &c);
    if (a.count != g->answer.count)
        fail_msg("line %d: %d hypotheses, not %d", line, a.count, g->answer.count);
    for (int i = 0; i < a.count; i++) {
        const toy_hypothesis *h = &a.h[i], *want = &g->answer.h[i];
        if (h->count != want->count || memcmp(h->tokens, want->tokens, sizeof h->tokens) != 0 ||
            fabsf(h->score - want->score) > 5e-5f)
            fail_msg("line %d: hypothesis %d differs: %d tokens at %g, not %d at %g", line, i,
                     h->count, (double)h->score, want->count, (double)want->score);
    }
    toy_close(&m);
}

static void test_golden(void **state)
{
    (void)state;
    FILE *f = fopen("tests/data/search/policies.txt", "r");
    assert_non_null(f);
    char *line = NULL;
    size_t room = 0;
    int lines = 0;
    golden g;
    while (getline(&line, &room, f) > 0) {
        if (!parse(line, &g)) fail_msg("line %d cannot be read", lines + 1);
        check(&g, ++lines);
    }
    assert_true(lines >= 300);
    free(line);
    fclose(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_golden)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
