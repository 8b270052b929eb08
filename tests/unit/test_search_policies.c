// SPDX-License-Identifier: MIT
// The finishing policies on chains small enough to follow by hand: two words a and b, and the
// probability of the next token given the last one.
//
//   MIXED    start: end .1 a .6 b .3     a: end .5 a .15 b .35     b: end .2 a .28 b .52
//   SURE     start: end .1 a .5 b .4     a: end .9 a .06 b .04     b: end .8 a .12 b .08
//   EARLY    start: end .3 a .6 b .1     a, b as in MIXED
//   LATE     start: end .1 a .2 b .7     a, b as in MIXED
//
// MIXED at beam 2, probabilities of whole hypotheses; [x] ends:
//   step 1   a .6   b .3
//   step 2   [a] .30   ab .21   bb .156   aa .09   ba .084   [b] .06
//   step 3   from ab: abb .1092  aba .0588  [ab] .042;   from bb: bbb .08112  bba .0437  [bb] .0312
//   step 4   from abb: .0568 .0306 [abb] .02184;  from bbb: .0422 .0227 [bbb] .016224;
//            from aba: [aba] .0294  .0206  .0088
// refill, margin and huggingface keep ab and bb after step 2, shrink and mask ab alone; mask then
// refills with abb and aba.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { VOCAB = 5, A = 2, B = 3, POSITIONS = 8 };

typedef enum chain { MIXED, SURE, EARLY, LATE } chain;

typedef struct row {
    double end, a, b;
} row;

static const row chains[][3] = {
    [MIXED] = {{.1, .6, .3}, {.5, .15, .35}, {.2, .28, .52}},
    [SURE] = {{.1, .5, .4}, {.9, .06, .04}, {.8, .12, .08}},
    [EARLY] = {{.3, .6, .1}, {.5, .15, .35}, {.2, .28, .52}},
    [LATE] = {{.1, .2, .7}, {.5, .15, .35}, {.2, .28, .52}},
};

static void open_chain(toy *m, chain which)
{
    float last[VOCAB * VOCAB], time[POSITIONS * VOCAB] = {0};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = -30;
    for (int i = 0; i < 3; i++) {
        static const int context[] = {VOCAB - 1, A, B};
        float *to = last + context[i] * VOCAB;
        to[TOY_EOS] = (float)log(chains[which][i].end);
        to[A] = (float)log(chains[which][i].a);
        to[B] = (float)log(chains[which][i].b);
    }
    const toy_spec spec = {
        .vocab = VOCAB, .positions = POSITIONS, .heads = 1, .last = last, .time = time};
    toy_open(m, &spec);
}

typedef struct wanted {
    const char *text; // NULL: end of the list
    double probability;
    bool finished;
} wanted;

typedef struct policy_case {
    const char *what;
    chain chain;
    dgm_finish finish;
    float penalty, number; // number: the margin, or K of first:K
    int beam, nbest, max_length, steps;
    wanted list[5];
} policy_case;

static const policy_case cases[] = {
    {"refill cuts off what is alive at the maximum length", MIXED, DGM_FINISH_REFILL, 0, 0, 2, 2, 3,
     4, {{"a", .30, true}, {"abb", .02184, false}}},
    {"refill stops at two finished", SURE, DGM_FINISH_REFILL, 1, 0, 2, 2, 6, 2,
     {{"a", .45, true}, {"b", .32, true}}},
    {"refill stops although a live one is better", EARLY, DGM_FINISH_REFILL, 1, 0, 2, 2, 4, 2,
     {{"a", .30, true}, {"", .30, true}}},
    {"shrink goes on with one", MIXED, DGM_FINISH_SHRINK, 0, 0, 2, 2, 3, 4,
     {{"a", .30, true}, {"abb", .02184, false}}},
    {"shrink ends with an empty beam", EARLY, DGM_FINISH_SHRINK, 1, 0, 2, 2, 4, 2,
     {{"a", .30, true}, {"", .30, true}}},
    {"mask fills the list from the second store", MIXED, DGM_FINISH_MASK, 0, 0, 2, 2, 3, 4,
     {{"a", .30, true}, {"", .1, false}}},
    {"mask stops when nothing lives", SURE, DGM_FINISH_MASK, 1, 0, 2, 2, 6, 2,
     {{"a", .45, true}, {"b", .32, true}}},
    {"mask searches to the maximum length", EARLY, DGM_FINISH_MASK, 1, 0, 2, 2, 4, 5,
     {{"a", .30, true}, {"", .30, true}}},
    {"mask without a finished one: b, bb, bbb live; ends seen: .1 .14 .0728 .0379", LATE,
     DGM_FINISH_MASK, 0, 0, 1, 1, 3, 4, {{"b", .14, false}}},
    {"greedy takes the end at the maximum length", LATE, DGM_FINISH_REFILL, 0, 0, 1, 1, 2, 3,
     {{"bb", .0728, false}}},
    {"margin stops 1.01 ahead: ln(.30 / .1092)", MIXED, DGM_FINISH_MARGIN, 0, 1.0f, 2, 1, 6, 3,
     {{"a", .30, true}}},
    {"margin 1.02 goes on", MIXED, DGM_FINISH_MARGIN, 0, 1.02f, 2, 1, 3, 4, {{"a", .30, true}}},
    {"margin waits for the second best", MIXED, DGM_FINISH_MARGIN, 0, 1.0f, 2, 2, 3, 4,
     {{"a", .30, true}, {"abb", .02184, false}}},
    {"huggingface forces the end for nothing", MIXED, DGM_FINISH_HUGGINGFACE, 0, 0, 2, 2, 3, 3,
     {{"a", .30, true}, {"abb", .1092, false}}},
    {"huggingface, normalised: the forced end wins", MIXED, DGM_FINISH_HUGGINGFACE, 1, 0, 2, 2, 3,
     3, {{"abb", .1092, false}, {"a", .30, true}}},
    {"huggingface stops at a full store", SURE, DGM_FINISH_HUGGINGFACE, 1, 0, 2, 2, 6, 2,
     {{"a", .45, true}, {"b", .32, true}}},
    {"huggingface goes on while a live one is better", EARLY, DGM_FINISH_HUGGINGFACE, 1, 0, 2, 2, 4,
     4, {{"abbb", .056784, false}, {"a", .30, true}}},
    {"huggingface-cut, not normalised: as with the forced end", MIXED, DGM_FINISH_HUGGINGFACE_CUT, 0, 0, 2,
     2, 3, 3, {{"a", .30, true}, {"abb", .1092, false}}},
    {"huggingface-cut divides by three words: -.738 against -.602 of a", MIXED, DGM_FINISH_HUGGINGFACE_CUT, 1,
     0, 2, 2, 3, 3, {{"a", .30, true}, {"abb", .1092, false}}},
    {"huggingface-early stops at a full store before the maximum length", SURE, DGM_FINISH_HUGGINGFACE_EARLY,
     1, 0, 2, 2, 6, 2, {{"a", .45, true}, {"b", .32, true}}},
    {"huggingface-early stops although a live one is better", EARLY, DGM_FINISH_HUGGINGFACE_EARLY, 1, 0, 2,
     2, 4, 2, {{"a", .30, true}, {"", .30, true}}},
    {"huggingface-early forces the end for nothing", MIXED, DGM_FINISH_HUGGINGFACE_EARLY, 1, 0, 2, 2, 3, 3,
     {{"abb", .1092, false}, {"a", .30, true}}},
    {"huggingface-early forces nothing in the step that fills the store", EARLY,
     DGM_FINISH_HUGGINGFACE_EARLY, 1, 0, 2, 2, 2, 2, {{"a", .30, true}, {"", .30, true}}},
    {"huggingface-early-cut: the store is filled in the step that cuts off, and ab (-.780) beats '' (-1.204)",
     EARLY, DGM_FINISH_HUGGINGFACE_EARLY_CUT, 1, 0, 2, 2, 2, 2, {{"a", .30, true}, {"ab", .21, false}}},
    {"huggingface-never: as huggingface where a live one is better", EARLY, DGM_FINISH_HUGGINGFACE_NEVER, 1, 0, 2, 2,
     4, 4, {{"abbb", .056784, false}, {"a", .30, true}}},
    {"huggingface-never goes on where huggingface stops: ba would be ln(.048) / 7 at the maximum length", SURE,
     DGM_FINISH_HUGGINGFACE_NEVER, 1, 0, 2, 2, 6, 3, {{"a", .45, true}, {"b", .32, true}}},
    {"huggingface-never-cut divides by one word less, which is enough", SURE, DGM_FINISH_HUGGINGFACE_NEVER_CUT, 1, 0,
     2, 2, 6, 3, {{"a", .45, true}, {"b", .32, true}}},
    {"huggingface-never, not normalised: as huggingface", SURE, DGM_FINISH_HUGGINGFACE_NEVER, 0, 0, 2, 2, 6, 2,
     {{"a", .45, true}, {"b", .32, true}}},
    {"marian cuts off what is alive at the maximum length, without an end", MIXED, DGM_FINISH_MARIAN, 0, 0, 2, 2, 3,
     3, {{"a", .30, true}, {"abb", .1092, false}}},
    {"marian divides by three words: -.738 against -.602 of a", MIXED, DGM_FINISH_MARIAN, 1, 0, 2, 2, 3, 3,
     {{"a", .30, true}, {"abb", .1092, false}}},
    {"marian ends with an empty beam", EARLY, DGM_FINISH_MARIAN, 1, 0, 2, 2, 4, 2,
     {{"a", .30, true}, {"", .30, true}}},
    {"ctranslate2: '' has no share of the first step; cut off abbb is ln(.08112) / 4", EARLY, DGM_FINISH_CTRANSLATE2, 1,
     0, 2, 2, 4, 4, {{"a", .6 / .7 * .5, true}, {"abbb", .08112, false}}},
    {"ctranslate2, not normalised: over when nothing that lives is better", EARLY, DGM_FINISH_CTRANSLATE2, 0, 0, 2, 1,
     4, 2, {{"a", .6 / .7 * .5, true}}},
    {"first stops at one although refill waits for two", MIXED, DGM_FINISH_FIRST, 0, 0, 2, 1, 6, 2,
     {{"a", .30, true}}},
    {"first:2 waits for two", MIXED, DGM_FINISH_FIRST, 0, 2, 2, 1, 3, 4, {{"a", .30, true}}},
    {"first stops at the size of the list", MIXED, DGM_FINISH_FIRST, 0, 0, 2, 2, 3, 4,
     {{"a", .30, true}, {"abb", .02184, false}}},
    {"first:1 waits for a list of two", MIXED, DGM_FINISH_FIRST, 0, 1, 2, 2, 3, 4,
     {{"a", .30, true}, {"abb", .02184, false}}},
    {"first stops at the empty translation", EARLY, DGM_FINISH_FIRST, 1, 0, 2, 1, 4, 1,
     {{"", .30, true}}},
    {"first makes its last step whole: the better of two", SURE, DGM_FINISH_FIRST, 1, 0, 2, 1, 6, 2,
     {{"a", .45, true}}},
    {"first:3 goes on with a beam of two", SURE, DGM_FINISH_FIRST, 1, 3, 2, 2, 6, 3,
     {{"a", .45, true}, {"b", .32, true}}},
    {"first cuts off what is alive at the maximum length", LATE, DGM_FINISH_FIRST, 0, 0, 1, 1, 2, 3,
     {{"bb", .0728, false}}},
};

static void check_list(const policy_case *c, const toy_answer *a)
{
    int count = 0;
    while (c->list[count].text) count++;
    if (a->count != count) fail_msg("%s: %d hypotheses, not %d", c->what, a->count, count);
    if (a->steps != c->steps) fail_msg("%s: %d steps, not %d", c->what, a->steps, c->steps);
    for (int i = 0; i < count; i++) {
        const toy_hypothesis *h = &a->h[i];
        char text[TOY_TOKENS + 1] = {0};
        for (int j = 0; j < h->count; j++) text[j] = (char)('a' + h->tokens[j] - A);
        const double sum = log(c->list[i].probability);
        const bool ends = h->finished || !toy_endless((int)c->finish);
        const double score = sum / pow(h->count + (ends ? 1 : 0), c->penalty);
        if (strcmp(text, c->list[i].text) != 0 || h->finished != c->list[i].finished ||
            fabs(h->sum - sum) > 1e-4 || fabs(h->score - score) > 1e-4)
            fail_msg("%s: %d is '%s' %g (%g) %d, not '%s' %g (%g) %d", c->what, i, text,
                     (double)h->sum, (double)h->score, h->finished, c->list[i].text, sum, score,
                     c->list[i].finished);
    }
}

static void test_by_hand(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const policy_case *c = &cases[i];
        toy m;
        open_chain(&m, c->chain);
        dgm_search_config config = toy_config(c->beam, c->finish);
        config.nbest = c->nbest;
        config.length_penalty = c->penalty;
        config.margin = c->number;
        config.first = (int)c->number;
        config.max_length = c->max_length;
        const toy_answer a = toy_translate(&m, &config);
        check_list(c, &a);
        toy_close(&m);
    }
}

// What CTranslate2 does beside a plain search: forced tokens cost nothing but length, the end symbol that the minimum
// length denies has no share, and behind a prefix only the best candidate may end.
static const struct ctranslate2_case {
    policy_case c;
    int32_t prefix; // 0: none
    int min_length;
} by_ctranslate2[] = {
    {{"the prefix costs nothing, and counts: ln(.5) / 2", MIXED, DGM_FINISH_CTRANSLATE2, 1, 0, 2, 2, 4, 4,
      {{"a", .5, true}, {"abbb", .35 * .52 * .52, false}}}, A, 0},
    {{"behind it an end of rank 2 is lost, with its place: [b] would be .2", MIXED, DGM_FINISH_CTRANSLATE2, 0, 0, 3, 3,
      3, 3,
      {{"bbb", .52 * .52, false}, {"bba", .52 * .28, false}, {"ba", .28 * .5, true}}}, B, 0},
    {{"greedy search likewise", MIXED, DGM_FINISH_CTRANSLATE2, 1, 0, 1, 1, 3, 3, {{"bbb", .52 * .52, false}}}, B, 0},
    {{"two finished are enough", SURE, DGM_FINISH_CTRANSLATE2, 1, 0, 2, 2, 6, 2,
      {{"a", .5, true}, {"b", .4 / .9 * .8, true}}}, 0, 0},
    {{"patience waits for a third", SURE, DGM_FINISH_CTRANSLATE2, 1, 3, 2, 2, 6, 3,
      {{"a", .5, true}, {"b", .4 / .9 * .8, true}}}, 0, 0},
    {{"no candidate of a step that was its best has ended: the search goes on", LATE, DGM_FINISH_CTRANSLATE2, 0, 0, 3,
      2, 6, 6,
      {{"b", .7 / .9 * .2, true}, {"ba", .7 / .9 * .28 * .5, true}}}, 0, 0},
    {{"below the minimum length words have all: .5 / .9, .06 / .1", SURE, DGM_FINISH_CTRANSLATE2, 1, 0, 2, 2, 6, 3,
      {{"aa", .5 / .9 * .6 * .9, true}, {"ba", .4 / .9 * .6 * .9, true}}}, 0, 2},
};

static void test_ctranslate2(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof by_ctranslate2 / sizeof *by_ctranslate2; i++) {
        const struct ctranslate2_case *t = &by_ctranslate2[i];
        toy m;
        open_chain(&m, t->c.chain);
        dgm_search_config config = toy_config(t->c.beam, t->c.finish);
        config.search = "auto";
        config.nbest = t->c.nbest;
        config.length_penalty = t->c.penalty;
        config.first = (int)t->c.number;
        config.max_length = t->c.max_length;
        config.min_length = t->min_length;
        toy_search s;
        toy_answer a;
        const toy *model = &m;
        toy_search_open(&s, &config, &model, 1, NULL);
        const dgm_search_request r = {
            .source = {toy_source, 4}, .prefix = &t->prefix, .prefix_count = t->prefix ? 1 : 0};
        toy_run(&s, &r, 1, &a);
        toy_search_close(&s);
        check_list(&t->c, &a);
        toy_close(&m);
    }
}

// A vocabulary smaller than the beam: rank pads its lists, and padding is never a hypothesis.
static void test_small_vocabulary(void **state)
{
    (void)state;
    toy m;
    open_chain(&m, MIXED);
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        dgm_search_config config = toy_config(20, (dgm_finish)finish);
        config.nbest = 20;
        config.max_length = 4;
        const toy_answer a = toy_translate(&m, &config);
        assert_true(a.count > 1);
        for (int i = 0; i < a.count; i++) {
            assert_true(a.h[i].sum > -100);
            if (i > 0) assert_true(a.h[i].score <= a.h[i - 1].score || !a.h[i].finished);
            for (int t = 0; t < a.h[i].count; t++)
                assert_in_range(a.h[i].tokens[t], A, B);
            for (int j = 0; j < i; j++)
                assert_false(a.h[j].count == a.h[i].count &&
                             memcmp(a.h[j].tokens, a.h[i].tokens, sizeof a.h[i].tokens) == 0);
        }
    }
    toy_close(&m);
}

// Equal scores: the lower row first, then the lower token.
static void test_ties(void **state)
{
    (void)state;
    float last[VOCAB * VOCAB], time[POSITIONS * VOCAB] = {0};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = i % VOCAB == A || i % VOCAB == B ? 0 : -30;
    for (int p = 2; p < POSITIONS; p++) time[p * VOCAB + TOY_EOS] = 60; // two words, then the end
    const toy_spec spec = {
        .vocab = VOCAB, .positions = POSITIONS, .heads = 1, .last = last, .time = time};
    toy m;
    toy_open(&m, &spec);
    dgm_search_config config = toy_config(4, DGM_FINISH_REFILL);
    config.nbest = 4;
    const toy_answer a = toy_translate(&m, &config);
    assert_int_equal(a.count, 4);
    static const int32_t order[4][2] = {{A, A}, {A, B}, {B, A}, {B, B}};
    for (int i = 0; i < 4; i++) {
        assert_int_equal(a.h[i].count, 2);
        assert_memory_equal(a.h[i].tokens, order[i], sizeof order[i]);
        assert_true(a.h[i].score == a.h[0].score);
    }
    toy_close(&m);
}

// Marian's word penalty: subtracted from finished hypotheses, penalty * length.
static void test_penalties(void **state)
{
    (void)state;
    toy m;
    open_chain(&m, SURE);
    dgm_search_config config = toy_config(3, DGM_FINISH_REFILL);
    config.nbest = 3;
    config.length_penalty = 0.6f;
    config.word_penalty = 0.25f;
    const toy_answer a = toy_translate(&m, &config);
    for (int i = 0; i < a.count; i++) {
        const double n = a.h[i].count + 1;
        assert_true(fabs(a.h[i].score - (a.h[i].sum - 0.25 * n) / pow(n, 0.6f)) < 1e-5);
    }
    assert_true(dgm_length_normalise(-6, 4, 1) == -1.5f);
    assert_true(dgm_length_normalise(-6, 4, 0) == -6);
    assert_true(dgm_length_normalise(-6, 4, 0.5f) == -3);
    toy_close(&m);
}

// A model that always wants to end: no shorter than the minimum, under every policy; a sentence's
// own limit goes before the minimum.
static void test_minimum_length(void **state)
{
    (void)state;
    float last[VOCAB * VOCAB], time[16 * VOCAB] = {0};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = i % VOCAB == TOY_EOS ? 0 : -4;
    const toy_spec spec = {.vocab = VOCAB, .positions = 16, .heads = 1, .last = last, .time = time};
    toy m;
    toy_open(&m, &spec);
    for (int beam = 1; beam <= 3; beam++)
        for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
            dgm_search_config config = toy_config(beam, (dgm_finish)finish);
            config.search = "auto";
            config.max_length = 9;
            toy_answer a = toy_translate(&m, &config);
            assert_int_equal(a.h[0].count, finish == DGM_FINISH_CTRANSLATE2); // which gives nothing empty
            config.min_length = 5;
            a = toy_translate(&m, &config);
            assert_true(a.h[0].count >= 5 && a.h[0].finished);
            config.min_length = 9;
            a = toy_translate(&m, &config);
            assert_int_equal(a.h[0].count, 9);
            config.max_length = 4;
            a = toy_translate(&m, &config);
            assert_int_equal(a.h[0].count, 4);
        }
    toy_close(&m);
}

static void test_length_factor(void **state)
{
    (void)state;
    float last[VOCAB * VOCAB], time[16 * VOCAB] = {0};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = i % VOCAB == A ? 0 : -8; // a a a a ...
    const toy_spec spec = {.vocab = VOCAB, .positions = 16, .heads = 1, .last = last, .time = time};
    toy m;
    toy_open(&m, &spec);
    dgm_search_config config = toy_config(1, DGM_FINISH_REFILL);
    config.max_length = 30; // the model has 16 positions: the start and 15 tokens
    toy_answer a = toy_translate(&m, &config);
    assert_int_equal(a.h[0].count, 15);
    assert_false(a.h[0].finished);
    config.max_length_factor = 0.5f; // 0.5 * 4 + 10
    a = toy_translate(&m, &config);
    assert_int_equal(a.h[0].count, 12);
    config.max_length = 7;
    for (int greedy = 0; greedy < 2; greedy++) {
        config.search = greedy ? "greedy" : "beam";
        config.finish = DGM_FINISH_REFILL;
        a = toy_translate(&m, &config);
        assert_int_equal(a.h[0].count, 7);
        assert_true(fabs(a.h[0].sum + 8) < 0.1); // the model's score of the end
        config.finish = DGM_FINISH_HUGGINGFACE;
        a = toy_translate(&m, &config);
        assert_int_equal(a.h[0].count, 7);
        assert_true(fabs(a.h[0].sum) < 0.1); // forced, for nothing
    }
    toy_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_by_hand),   cmocka_unit_test(test_ctranslate2),
        cmocka_unit_test(test_small_vocabulary),
        cmocka_unit_test(test_ties),      cmocka_unit_test(test_penalties),
        cmocka_unit_test(test_minimum_length),
        cmocka_unit_test(test_length_factor),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
