// SPDX-License-Identifier: MIT
// Constrained searches over table models (search_toy.h): every search and policy meets what is
// asked, batches do not matter, sentences without constraints are untouched, what cannot be met
// gives no hypothesis, and nothing is allocated while decoding.
#define _GNU_SOURCE
#include "unit/search_toy.h"

#include "toy_words.h"

enum { VOCAB = 12, POSITIONS = 16, LONGEST = 12, START = VOCAB - 1, SEEDS = 12, SENTENCES = 6 };

static float last[VOCAB * VOCAB], table_time[POSITIONS * VOCAB];

static int set_up(void **state)
{
    (void)state;
    return toy_words_open(VOCAB);
}

static void fill_tables(uint64_t seed)
{
    dgm_rng rng = {seed};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = 8.0f * (float)dgm_rng_unit(&rng) - 4.0f;
    for (int i = 0; i < POSITIONS * VOCAB; i++) table_time[i] = (float)dgm_rng_unit(&rng);
}

static void open_filled(toy *m)
{
    const toy_spec spec = {
        .vocab = VOCAB, .positions = POSITIONS, .heads = 1, .last = last, .time = table_time};
    toy_open(m, &spec);
}

static void open_tables(toy *m, uint64_t seed)
{
    fill_tables(seed);
    open_filled(m);
}

// What one sentence is asked for: terms of one to three words, a forbidden pair, an end.
typedef struct asked {
    int32_t terms[3][3], ban[2], end[2];
    int counts[3], term_count, end_count;
    dgm_constraint *constraint;
} asked;

static void ask(asked *a, dgm_rng *rng)
{
    dgm_pattern p[5];
    int count = 0;
    *a = (asked){.term_count = 1 + (int)(dgm_rng_next(rng) % 3)};
    for (int t = 0; t < a->term_count; t++) {
        a->counts[t] = 1 + (int)(dgm_rng_next(rng) % 3);
        for (int i = 0; i < a->counts[t]; i++)
            a->terms[t][i] = 2 + (int32_t)(dgm_rng_next(rng) % 5);
        p[count++] = (dgm_pattern){.term = t, .tokens = a->terms[t], .count = a->counts[t]};
    }
    for (int i = 0; i < 2; i++) a->ban[i] = 7 + (int32_t)(dgm_rng_next(rng) % 4); // not in terms
    p[count++] = (dgm_pattern){.kind = DGM_PATTERN_FORBID, .tokens = a->ban, .count = 2};
    if (dgm_rng_next(rng) % 3 == 0) {
        a->end_count = 1 + (int)(dgm_rng_next(rng) % 2);
        for (int i = 0; i < a->end_count; i++) a->end[i] = 2 + (int32_t)(dgm_rng_next(rng) % 5);
        p[count++] =
            (dgm_pattern){.kind = DGM_PATTERN_SUFFIX, .tokens = a->end, .count = a->end_count};
    }
    dgm_error err;
    if (dgm_constraint_compile(&a->constraint, surfaces, p, count, a->term_count, &err) != DGM_OK)
        fail_msg("%s", err.text);
}

static int stands(const toy_hypothesis *h, const int32_t *words, int count)
{
    int found = 0;
    for (int i = 0; i + count <= h->count; i++)
        found += memcmp(h->tokens + i, words, (size_t)count * sizeof *words) == 0;
    return found;
}

static void check_met(const asked *a, const toy_hypothesis *h, const char *what)
{
    if (!(h->sum > -INFINITY)) fail_msg("%s: no hypothesis", what);
    for (int t = 0; t < a->term_count; t++)
        if (!stands(h, a->terms[t], a->counts[t])) fail_msg("%s: term %d is missing", what, t);
    if (stands(h, a->ban, 2)) fail_msg("%s: a forbidden pair", what);
    if (a->end_count && memcmp(h->tokens + h->count - a->end_count, a->end,
                               (size_t)a->end_count * sizeof *a->end) != 0)
        fail_msg("%s: another end", what);
}

// Sums are the model's own, whatever was forced.
static void check_sum(const toy_hypothesis *h, bool forced_end, const char *what)
{
    double sum = 0;
    for (int i = 0; i <= h->count; i++) {
        if (i == h->count && forced_end && !h->finished) break;
        const int u = i ? h->tokens[i - 1] : START, v = i < h->count ? h->tokens[i] : TOY_EOS;
        double z = 0;
        for (int k = 0; k < VOCAB; k++)
            z += exp((double)last[u * VOCAB + k] + (double)table_time[i * VOCAB + k]);
        sum += (double)last[u * VOCAB + v] + (double)table_time[i * VOCAB + v] - log(z);
    }
    if (fabs(sum - (double)h->sum) > 1e-3) fail_msg("%s: sum %g, not %g", what, (double)h->sum, sum);
}

static void run(const toy *m, const dgm_search_config *c, const asked *a, int count, int step,
                toy_answer *out)
{
    toy_search t;
    dgm_search_request r[SENTENCES];
    for (int k = 0; k < count; k++)
        r[k] = (dgm_search_request){.source = {toy_source, 4},
                                    .constraint = k % step == 0 ? a[k].constraint : NULL};
    toy_search_open(&t, c, &m, 1, NULL);
    toy_run(&t, r, count, out);
    toy_search_close(&t);
}

static toy_answer one[SENTENCES], many[SENTENCES], mixed[SENTENCES], plain[SENTENCES];

static bool same(const toy_answer *x, const toy_answer *y)
{
    return x->count == y->count && memcmp(x->h, y->h, (size_t)x->count * sizeof *x->h) == 0;
}

static void every_search_meets_them(void **state)
{
    (void)state;
    static const struct {
        const char *name, *search;
        int beam;
        bool exact;
    } searches[] = {{"greedy", "greedy", 1, false},
                    {"beam 2", "beam", 2, false},
                    {"beam 5", "beam", 5, false},
                    {"accelerated", "cube", 4, false},
                    {"naive", "cube", 4, true},
                    {"sample", "sample", 3, false}};
    asked a[SENTENCES];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        toy m;
        dgm_rng rng = {seed * 77};
        open_tables(&m, seed);
        for (int k = 0; k < SENTENCES; k++) ask(&a[k], &rng);
        for (size_t i = 0; i < sizeof searches / sizeof *searches; i++)
            for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
                char what[64];
                dgm_search_config c = toy_config(searches[i].beam, (dgm_finish)finish);
                snprintf(what, sizeof what, "%s, policy %d, seed %d", searches[i].name, finish,
                         (int)seed);
                c.search = searches[i].search;
                c.cube_exact = searches[i].exact;
                if (strcmp(c.search, "sample") == 0) c.nbest = c.beam;
                c.max_length = LONGEST;
                c.sentences = 1;
                run(&m, &c, a, SENTENCES, 1, one);
                c.sentences = 3;
                run(&m, &c, a, SENTENCES, 1, many);
                run(&m, &c, a, SENTENCES, 2, mixed);
                run(&m, &c, a, SENTENCES, SENTENCES + 1, plain); // the first one has it, still
                for (int k = 0; k < SENTENCES; k++) {
                    for (int n = 0; n < one[k].count; n++) check_met(&a[k], &one[k].h[n], what);
                    if (strcmp(c.search, "cube") != 0 || c.cube_exact)
                        check_sum(&one[k].h[0], toy_forces_end(finish), what);
                    if (!same(&one[k], &many[k])) fail_msg("%s: the batch matters", what);
                    if (!same(&mixed[k], k % 2 ? &plain[k] : &one[k]))
                        fail_msg("%s: neighbours matter", what);
                }
            }
        for (int k = 0; k < SENTENCES; k++) dgm_constraint_free(&a[k].constraint);
        toy_close(&m);
    }
}

static void with_other_settings(void **state)
{
    (void)state;
    toy m;
    asked a[SENTENCES];
    dgm_rng rng = {5};
    open_tables(&m, 5);
    for (int k = 0; k < SENTENCES; k++) ask(&a[k], &rng);
    for (int i = 0; i < 5; i++) {
        dgm_search_config c = toy_config(4, DGM_FINISH_REFILL);
        c.max_length = LONGEST;
        if (i == 0) c.beam_width = 0.01f;
        if (i == 1) c.no_repeat = 2;
        if (i == 2) c.repetition = 3.0f;
        if (i == 3) c.diversity = 0.5f;
        if (i == 4) c.nbest = 4;
        run(&m, &c, a, SENTENCES, 1, one);
        for (int k = 0; k < SENTENCES; k++)
            for (int n = 0; n < one[k].count; n++) check_met(&a[k], &one[k].h[n], "with settings");
    }
    for (int k = 0; k < SENTENCES; k++) dgm_constraint_free(&a[k].constraint);
    toy_close(&m);
}

// ---- when a sentence is over ---------------------------------------------------------------------

// Of equal beams, the first translation is the same however many are asked for. (first:K is not among
// the policies: K is the size of the list.)
static void the_first_does_not_depend_on_the_list(void **state)
{
    (void)state;
    asked a[SENTENCES];
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        toy m;
        dgm_rng rng = {seed * 31};
        open_tables(&m, seed);
        for (int k = 0; k < SENTENCES; k++) ask(&a[k], &rng);
        for (int finish = 0; finish < DGM_FINISH_FIRST; finish++)
            for (int penalty = -1; penalty <= 1; penalty++) {
                dgm_search_config c = toy_config(4, (dgm_finish)finish);
                c.max_length = LONGEST;
                c.length_penalty = (float)penalty;
                run(&m, &c, a, SENTENCES, 1, one);
                for (c.nbest = 2; c.nbest <= c.beam; c.nbest++) {
                    run(&m, &c, a, SENTENCES, 1, many);
                    for (int k = 0; k < SENTENCES; k++)
                        if (memcmp(&one[k].h[0], &many[k].h[0], sizeof one[k].h[0]) != 0)
                            fail_msg("policy %d, penalty %d, seed %d: %g alone, %g as the first of %d",
                                     finish, penalty, (int)seed, (double)one[k].h[0].score,
                                     (double)many[k].h[0].score, c.nbest);
                }
            }
        for (int k = 0; k < SENTENCES; k++) dgm_constraint_free(&a[k].constraint);
        toy_close(&m);
    }
}

// Sentences of two words, all of them: the best that holds "w2 w3" and nothing else but w2 and w3.
enum { SHORTEST = 2, TWO_WORDS = 5 };

static double best_of_all(toy_hypothesis *best)
{
    double found = -INFINITY;
    for (int count = SHORTEST; count <= TWO_WORDS; count++)
        for (int bits = 0; bits < 1 << count; bits++) {
            static const int32_t pair[] = {2, 3};
            toy_hypothesis h = {.count = count};
            double sum = 0;
            for (int i = 0; i < count; i++) h.tokens[i] = 2 + (bits >> i & 1);
            if (!stands(&h, pair, 2)) continue;
            for (int i = 0; i <= count; i++) {
                const int u = i ? h.tokens[i - 1] : START, v = i < count ? h.tokens[i] : TOY_EOS;
                double z = 0;
                for (int k = 0; k < VOCAB; k++)
                    z += exp((double)last[u * VOCAB + k] + (double)table_time[i * VOCAB + k]);
                sum += (double)last[u * VOCAB + v] + (double)table_time[i * VOCAB + v] - log(z);
            }
            if (sum / (count + 1) <= found) continue;
            found = sum / (count + 1);
            *best = h;
        }
    return found;
}

// "w2 w3" is dear, ends cheaply, and may go on: at a price, and then for next to nothing, so that the
// longest sentence is the best by its length. While the price has just been paid it is behind.
static void fill_tempting(uint64_t seed)
{
    dgm_rng rng = {seed};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = 0.2f * (float)dgm_rng_unit(&rng);
    for (int i = 0; i < POSITIONS * VOCAB; i++) table_time[i] = 0.0f;
    for (int u = 0; u < VOCAB; u++) last[u * VOCAB + TOY_EOS] = -6.0f;
    for (int v = 2; v <= 3; v++) {
        last[START * VOCAB + v] += v == 2 ? 1.0f : -6.0f;
        last[2 * VOCAB + v] += v == 3 ? 1.0f : -6.0f;
        last[3 * VOCAB + v] += 6.0f;
        table_time[2 * VOCAB + v] = -6.0f;
    }
    last[START * VOCAB + 4] = last[2 * VOCAB + 4] = last[3 * VOCAB + TOY_EOS] = 6.0f;
    table_time[3 * VOCAB + TOY_EOS] = table_time[4 * VOCAB + TOY_EOS] = -8.0f;
}

// A beam with room for every sentence there is must find the best of them: it may not stop because
// those that live are behind at their present length.
static void a_beam_for_all_finds_the_best(void **state)
{
    (void)state;
    static const int32_t pair[] = {2, 3};
    static const dgm_finish policies[] = {DGM_FINISH_MARGIN, DGM_FINISH_MASK, DGM_FINISH_REFILL};
    dgm_pattern p[VOCAB] = {{.tokens = pair, .count = 2}};
    int32_t others[VOCAB];
    int count = 1;
    for (int32_t v = 1; v < START; v++) {
        others[v] = v;
        if (v != 2 && v != 3)
            p[count++] = (dgm_pattern){.kind = DGM_PATTERN_FORBID, .tokens = &others[v], .count = 1};
    }
    asked a = {0};
    dgm_error err;
    assert_int_equal(dgm_constraint_compile(&a.constraint, surfaces, p, count, 1, &err), DGM_OK);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        toy m;
        toy_hypothesis best = {0};
        fill_tempting(seed);
        open_filled(&m);
        const double score = best_of_all(&best);
        for (size_t i = 0; i < sizeof policies / sizeof *policies; i++) {
            dgm_search_config c = toy_config(1 << (TWO_WORDS + 2), policies[i]);
            c.max_length = TWO_WORDS;
            run(&m, &c, &a, 1, 1, one);
            if (fabs((double)one[0].h[0].score - score) > 1e-4)
                fail_msg("policy %d, seed %d: %g found, %g is best", (int)policies[i], (int)seed,
                         (double)one[0].h[0].score, score);
            assert_int_equal(one[0].h[0].count, TWO_WORDS);
            assert_memory_equal(one[0].h[0].tokens, best.tokens, sizeof best.tokens);
        }
        toy_close(&m);
    }
    dgm_constraint_free(&a.constraint);
}

static void impossible_ones_give_nothing(void **state)
{
    (void)state;
    toy m;
    open_tables(&m, 3);
    static const int32_t words[] = {2, 3, 4, 5, 6, 2, 3};
    const dgm_pattern p = {.tokens = words, .count = 7};
    asked a = {0};
    dgm_error err;
    assert_int_equal(dgm_constraint_compile(&a.constraint, surfaces, &p, 1, 1, &err), DGM_OK);
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        dgm_search_config c = toy_config(3, (dgm_finish)finish);
        c.max_length = 6;
        run(&m, &c, &a, 1, 1, one);
        assert_int_equal(one[0].count, 1);
        assert_true(one[0].h[0].sum == -INFINITY);
        c.max_length = 7;
        run(&m, &c, &a, 1, 1, one);
        assert_int_equal(stands(&one[0].h[0], words, 7), 1);
    }
    dgm_constraint_free(&a.constraint);
    toy_close(&m);
}

static void nothing_is_allocated(void **state)
{
    (void)state;
    toy m;
    asked a;
    dgm_rng rng = {9};
    open_tables(&m, 9);
    ask(&a, &rng);
    toy_search t;
    const toy *model = &m;
    dgm_search_config c = toy_config(4, DGM_FINISH_REFILL);
    c.max_length = LONGEST;
    toy_search_open(&t, &c, &model, 1, NULL);
    const dgm_search_request r = {.source = {toy_source, 4}, .constraint = a.constraint};
    const uint64_t before = dgm_mem_allocations();
    toy_run(&t, &r, 1, one);
    assert_int_equal(dgm_mem_allocations(), before);
    toy_search_close(&t);
    dgm_constraint_free(&a.constraint);
    toy_close(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_search_meets_them),
        cmocka_unit_test(with_other_settings),
        cmocka_unit_test(the_first_does_not_depend_on_the_list),
        cmocka_unit_test(a_beam_for_all_finds_the_best),
        cmocka_unit_test(impossible_ones_give_nothing),
        cmocka_unit_test(nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, set_up, toy_words_close);
}
