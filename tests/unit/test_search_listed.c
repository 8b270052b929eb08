// SPDX-License-Identifier: MIT
// Every search in every order of writing (compose.h) where not all words may be chosen: of a list for the sentence, of
// this and what may go on behind the last word, of a list for every step. And where only a beginning, an end or both
// are demanded. Each with the other rules in all sets, and one setting more.
#define _GNU_SOURCE
#include "unit/compose.h"

static const struct {
    const char *order, *pairs;
} ways[] = {{NULL, NULL}, {"r2l", NULL}, {NULL, "l2r"}, {NULL, "r2l"}, {NULL, "bidirectional"}};

enum { WORD_WAYS = 2, WAYS = sizeof ways / sizeof *ways, LIST_SEEDS = 1, SIDE_SEEDS = 1 };

static void try_ways(demands what, lists kind, int seeds)
{
    for (int way = 0; way < (kind == CONTINUED ? WORD_WAYS : WAYS); way++)
        for (int seed = 1; seed <= seeds; seed++)
            for (int b = NOTHING; b < BESIDES; b++)
                try_order(&(trial){.order = ways[way].order,
                                   .pairs = ways[way].pairs,
                                   .seed = (uint64_t)seed,
                                   .beside = (setting_beside)b,
                                   .demands = what,
                                   .lists = kind});
    check_draws();
}

static void words_of_a_list(void **state)
{
    (void)state;
    try_ways(MIXED, OF_SENTENCE, LIST_SEEDS);
}

static void words_that_go_on(void **state)
{
    (void)state;
    try_ways(MIXED, CONTINUED, LIST_SEEDS);
}

static void words_of_a_step(void **state)
{
    (void)state;
    try_ways(MIXED, OF_STEP, LIST_SEEDS);
}

static void beginnings(void **state)
{
    (void)state;
    try_ways(BEGINNING, WHOLE, SIDE_SEEDS);
    try_ways(BEGINNING, OF_STEP, SIDE_SEEDS);
}

static void ends(void **state)
{
    (void)state;
    try_ways(ENDING, WHOLE, SIDE_SEEDS);
    try_ways(ENDING, OF_STEP, SIDE_SEEDS);
}

static void beginnings_and_ends(void **state)
{
    (void)state;
    try_ways(BOTH_SIDES, WHOLE, SIDE_SEEDS);
    try_ways(BOTH_SIDES, OF_STEP, SIDE_SEEDS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_of_a_list), cmocka_unit_test(words_that_go_on), cmocka_unit_test(words_of_a_step),
        cmocka_unit_test(beginnings),      cmocka_unit_test(ends),             cmocka_unit_test(beginnings_and_ends),
    };
    return cmocka_run_group_tests(tests, set_up, toy_words_close);
}
