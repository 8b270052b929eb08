// SPDX-License-Identifier: MIT
// Five rules in all sets, with one setting more, by every search in every order of writing (compose.h); and beams in
// lattices of more words than a row looks at.
#define _GNU_SOURCE
#include "unit/compose.h"

static void try_all(const char *order, const char *pairs)
{
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int b = NOTHING; b < BESIDES; b++)
            try_order(&(trial){.order = order, .pairs = pairs, .seed = seed, .beside = (setting_beside)b});
    check_draws();
}

static void from_left_to_right(void **state)
{
    (void)state;
    try_all(NULL, NULL);
}

static void from_right_to_left(void **state)
{
    (void)state;
    try_all("r2l", NULL);
}

static void pairs_from_left_to_right(void **state)
{
    (void)state;
    try_all(NULL, "l2r");
}

static void pairs_from_right_to_left(void **state)
{
    (void)state;
    try_all(NULL, "r2l");
}

static void pairs_from_both_ends(void **state)
{
    (void)state;
    try_all(NULL, "bidirectional");
}

// ---- more words than a row looks at ------------------------------------------------------------

enum { MANY = 60, MANY_WORDS = MANY - 4 };

// Paths of `links` pairs of words: any word, then the only one that goes with it.
static dgm_lattice *make_chain(int links, dgm_rng *rng)
{
    dgm_lattice *l = NULL;
    dgm_error err;
    int32_t from, to, between;
    assert_int_equal(dgm_lattice_open(&l, &err), DGM_OK);
    assert_int_equal(dgm_lattice_add_node(l, 0, &from, &err), DGM_OK);
    for (int k = 0; k < links; k++, from = to) {
        const int32_t turned = (int32_t)(dgm_rng_next(rng) % MANY_WORDS);
        assert_int_equal(dgm_lattice_add_node(l, 0, &to, &err), DGM_OK);
        for (int32_t w = 0; w < MANY_WORDS; w++) {
            assert_int_equal(dgm_lattice_add_node(l, 0, &between, &err), DGM_OK);
            const dgm_lattice_arc one = {.from = from, .to = between, .word = FIRST + w};
            const dgm_lattice_arc two = {
                .from = between, .to = to, .word = FIRST + (w + turned) % MANY_WORDS, .score = -0.1f};
            assert_int_equal(dgm_lattice_add_arc(l, &one, &err), DGM_OK);
            assert_int_equal(dgm_lattice_add_arc(l, &two, &err), DGM_OK);
        }
    }
    dgm_lattice_add_end(l, from, -0.5f);
    assert_int_equal(dgm_lattice_seal(l, true, &err), DGM_OK);
    return l;
}

// Where the best left words and the best right words do not go together, a narrow beam finds a path all the same.
static void try_many(const char *pairs, int beam, uint64_t seed)
{
    dgm_rng rng = {seed * 977};
    toy m;
    static toy_answer a;
    dgm_error err;
    problem p = {.pairs = pairs};
    const toy_spec spec = {
        .vocab = MANY, .positions = 12, .width = 16, .heads = 2, .seed = seed, .gain = 2.0f, .pairs = pairs};
    vocab = MANY;
    toy_open(&m, &spec);
    dgm_lattice *l = make_chain(1 + (int)(seed % 2), &rng);
    assert_int_equal(dgm_walk_make(&p.walk, l, MANY - 2, 0.3f, &err), DGM_OK); // in the order of writing
    assert_int_equal(dgm_walk_look_back(p.walk, &err), DGM_OK);
    dgm_search_config c = toy_config(beam, DGM_FINISH_REFILL);
    c.search = "double";
    c.max_length = LONGEST;
    c.sentences = 1;
    run((const toy *const[]){&m}, &c, &p, &a);
    assert_true(a.h[0].sum > -INFINITY);
    words w = {.count = a.h[0].count};
    assert_true(w.count <= LONGEST);
    memcpy(w.ids, a.h[0].tokens, (size_t)w.count * sizeof *w.ids);
    if (strcmp(pairs, "r2l") == 0) w = turn(&w);
    assert_true(dgm_walk_sentence(p.walk, w.ids, w.count, MANY - 2, NULL) > -INFINITY);
    dgm_lattice_close(&l);
    dgm_walk_free(&p.walk);
    toy_close(&m);
}

static void narrow_beams_in_wide_lattices(void **state)
{
    (void)state;
    static const char *const orders[] = {"l2r", "r2l", "bidirectional"};
    for (int order = 0; order < 3; order++)
        for (uint64_t seed = 1; seed <= 3 * SEEDS; seed++)
            for (int beam = 1; beam <= 2; beam++) try_many(orders[order], beam, seed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(from_left_to_right),       cmocka_unit_test(from_right_to_left),
        cmocka_unit_test(pairs_from_left_to_right), cmocka_unit_test(pairs_from_right_to_left),
        cmocka_unit_test(pairs_from_both_ends),     cmocka_unit_test(narrow_beams_in_wide_lattices),
    };
    return cmocka_run_group_tests(tests, set_up, toy_words_close);
}
