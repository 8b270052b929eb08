// SPDX-License-Identifier: MIT
// Cube pruning: the walk over cells against a sorted list and against the paper's Figure 2, and the
// search on toy models.
//
// Where nothing is alike (key none, key state:0) it is beam search, bit for bit. On a table model a
// row depends on its last word and position only, so that followers are exactly like their leader:
// both forms must then find what beam search finds, with fewer rows. The naive form's scores are
// the model's own in any case: forcing its outputs gives the same numbers.
#define _GNU_SOURCE
#include "unit/search_toy.h"

#include "search/cube_private.h"

enum { VOCAB = 9, POSITIONS = 12, SENTENCES = 7, NBEST = 6 };

// ---- the walk -----------------------------------------------------------------------------------

// Costs of the paper's figure are negated: scores are sums of log-probabilities.
static void test_figure_2(void **state)
{
    (void)state;
    static const float scores[2][3] = {{-6.2f, -8.6f, -10.6f}, {-7.3f, -7.7f, -9.8f}};
    static const float sums[] = {-6.1f, -6.5f, -7.0f, -7.3f};
    static const int32_t line[] = {0, 1, 1, 1}, below[] = {-1, 2, 3, -1};
    static const bool leads[] = {true, true, false, false};
    static const struct {
        float score;
        int hypo, column, heap; // cells left in the heap
    } want[] = {{-6.2f, 0, 0, 2}, {-7.3f, 1, 0, 3}, {-7.7f, 1, 1, 4}, {-7.8f, 2, 0, 4}};
    float behind[4];
    int32_t pushed[4];
    dgm_cube_cell heap[DGM_CUBE_HEAP(4, 4)], cell;
    for (int j = 0; j < 4; j++) behind[j] = sums[j] - sums[j == 0 ? 0 : 1];
    dgm_cube_walk w = {.count = 4,
                       .k = 3,
                       .scores = scores[0],
                       .line = line,
                       .below = below,
                       .leads = leads,
                       .behind = behind,
                       .pushed = pushed,
                       .heap = heap};
    dgm_cube_walk_start(&w);
    assert_int_equal(w.size, 2);
    for (int i = 0; i < 4; i++) {
        assert_true(dgm_cube_walk_pop(&w, &cell));
        assert_true(fabsf(cell.score - want[i].score) < 1e-5f);
        assert_int_equal(cell.hypo, want[i].hypo);
        assert_int_equal(cell.column, want[i].column);
        assert_int_equal(w.size, want[i].heap);
    }
    // (e) of the figure: 8.1 was pushed by 7.8, and 8.2 was not pushed a second time.
    static const float rest[] = {-8.1f, -8.2f, -8.5f, -8.6f, -9.8f, -10.3f, -10.6f};
    for (int i = 0; i < 7; i++) {
        assert_true(dgm_cube_walk_pop(&w, &cell));
        assert_true(fabsf(cell.score - rest[i]) < 1e-5f);
    }
    assert_true(dgm_cube_walk_pop(&w, &cell)); // 7.3 + 3.3
    assert_true(fabsf(cell.score + 10.6f) < 1e-5f);
    assert_false(dgm_cube_walk_pop(&w, &cell));
}

typedef struct grid {
    int count, rows, k;
    float scores[24 * 16], behind[24], sums[24];
    int32_t line[24], below[24], pushed[24];
    bool leads[24];
} grid;

static int falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x > y ? -1 : x < y;
}

// Random sub-cubes, with many equal numbers and rows that end early.
static void random_grid(grid *g, dgm_rng *rng)
{
    int last[24];
    *g = (grid){.count = 1 + (int)(dgm_rng_unit(rng) * 20), .k = 1 + (int)(dgm_rng_unit(rng) * 14)};
    for (int j = 0; j < g->count; j++) g->sums[j] = -(float)(int)(dgm_rng_unit(rng) * 6);
    qsort(g->sums, (size_t)g->count, sizeof *g->sums, falling);
    for (int j = 0; j < g->count; j++) {
        const int cube = (int)(dgm_rng_unit(rng) * (g->rows + 1));
        g->below[j] = -1;
        g->leads[j] = cube == g->rows;
        g->line[j] = cube;
        if (!g->leads[j]) g->below[last[cube]] = j;
        last[cube] = j;
        if (!g->leads[j]) {
            int leader = 0;
            while (g->line[leader] != cube) leader++;
            g->behind[j] = g->sums[j] - g->sums[leader];
            continue;
        }
        float *row = g->scores + cube * g->k;
        for (int c = 0; c < g->k; c++) row[c] = g->sums[j] - (float)(int)(dgm_rng_unit(rng) * 5);
        qsort(row, (size_t)g->k, sizeof *row, falling);
        const int end = 1 + (int)(dgm_rng_unit(rng) * g->k * 1.5);
        for (int c = end; c < g->k; c++) row[c] = -INFINITY;
        g->rows++;
    }
}

// All cells come, each once, in falling order; no more were ever pushed than popping asks for.
static void test_walk_against_sorting(void **state)
{
    (void)state;
    dgm_rng rng = {77};
    for (int round = 0; round < 2000; round++) {
        grid g;
        random_grid(&g, &rng);
        float all[24 * 16];
        int total = 0, popped = 0;
        bool seen[24][16] = {{false}};
        for (int j = 0; j < g.count; j++)
            for (int c = 0; c < g.k; c++)
                if (g.scores[g.line[j] * g.k + c] > -INFINITY)
                    all[total++] = g.scores[g.line[j] * g.k + c] + g.behind[j];
        qsort(all, (size_t)total, sizeof *all, falling);
        dgm_cube_cell heap[DGM_CUBE_HEAP(24, 24 * 16)], cell, previous = {0};
        dgm_cube_walk w = {.count = g.count,
                           .k = g.k,
                           .scores = g.scores,
                           .line = g.line,
                           .below = g.below,
                           .leads = g.leads,
                           .behind = g.behind,
                           .pushed = g.pushed,
                           .heap = heap};
        dgm_cube_walk_start(&w);
        for (; dgm_cube_walk_pop(&w, &cell); popped++, previous = cell) {
            assert_true(popped < total);
            assert_true(cell.score == all[popped]);
            assert_false(seen[cell.hypo][cell.column]);
            seen[cell.hypo][cell.column] = true;
            // Ties: the better hypothesis, then the word further left; among cells that were there.
            if (popped > 0 && cell.score == previous.score && cell.hypo == previous.hypo)
                assert_true(cell.column > previous.column);
            assert_true(w.size <= DGM_CUBE_HEAP(g.rows, popped + 1));
        }
        assert_int_equal(popped, total);
    }
}

// ---- searches -----------------------------------------------------------------------------------

static toy_answer first[SENTENCES], second[SENTENCES];

static void random_model(toy *m, uint64_t seed)
{
    const toy_spec spec = {.vocab = VOCAB,
                           .positions = POSITIONS,
                           .width = 16,
                           .heads = 2,
                           .seed = seed,
                           .gain = 0.9f};
    toy_open(m, &spec);
}

// Words follow each other by chance, and sentences get likelier to end.
static void table_model(toy *m, uint64_t seed)
{
    static float last[VOCAB * VOCAB], time[POSITIONS * VOCAB];
    dgm_rng rng = {seed};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = (float)(2 * dgm_rng_unit(&rng) - 1);
    for (int i = 0; i < POSITIONS * VOCAB; i++) time[i] = (float)(dgm_rng_unit(&rng) - 0.5);
    for (int p = 0; p < POSITIONS; p++) time[p * VOCAB + TOY_EOS] += 0.4f * (float)p - 2.0f;
    const toy_spec spec = {
        .vocab = VOCAB, .positions = POSITIONS, .heads = 2, .last = last, .time = time};
    toy_open(m, &spec);
}

static const int32_t sources[SENTENCES][6] = {
    {2, 3, 2, TOY_EOS},    {4, TOY_EOS}, {5, 6, 7, 3, 2, TOY_EOS}, {3, 3, TOY_EOS},
    {7, 2, 5, 4, TOY_EOS}, {6, TOY_EOS}, {2, 4, 6, TOY_EOS}};
static const int source_counts[SENTENCES] = {4, 2, 6, 3, 5, 2, 4};

static void make_requests(dgm_search_request *r)
{
    for (int i = 0; i < SENTENCES; i++)
        r[i] = (dgm_search_request){.source = {sources[i], source_counts[i]}};
}

static dgm_search_config cube_config(int beam, dgm_finish finish)
{
    dgm_search_config c = toy_config(beam, finish);
    c.nbest = beam < NBEST ? beam : NBEST;
    c.max_length = 8;
    c.word_scores = c.alignment = true;
    return c;
}

static dgm_search_stats run(const toy *const *models, int parts, const dgm_search_config *c,
                            dgm_vocabsel *vocabsel, toy_answer *a)
{
    toy_search t;
    dgm_search_request r[SENTENCES];
    dgm_search_config full = *c;
    full.hidden = 0;
    for (int i = 0; i < parts; i++) full.hidden += dgm_model_describe(models[i]->model)->hidden;
    make_requests(r);
    toy_search_open(&t, &full, models, parts, vocabsel);
    toy_run(&t, r, SENTENCES, a);
    const dgm_search_stats stats = *dgm_search_counts(t.search);
    toy_search_close(&t);
    return stats;
}

static void same_bits(const char *what)
{
    for (int i = 0; i < SENTENCES; i++)
        if (first[i].count != second[i].count || first[i].steps != second[i].steps ||
            memcmp(first[i].h, second[i].h, (size_t)first[i].count * sizeof *first[i].h) != 0)
            fail_msg("%s: sentence %d differs", what, i);
}

static void check_alone(const toy *const *models, int parts, dgm_search_config c,
                        dgm_vocabsel *vocabsel)
{
    char what[80];
    const dgm_search_stats plain = run(models, parts, &c, vocabsel, first);
    c.search = "cube";
    for (int exact = 0; exact < 2; exact++) {
        for (int key = DGM_CUBE_NONE; key <= DGM_CUBE_STATE; key++) {
            c.cube_exact = exact;
            c.cube_key = (dgm_cube_key)key;
            c.cube_distance = 0;
            const dgm_search_stats stats = run(models, parts, &c, vocabsel, second);
            snprintf(what, sizeof what, "finish %d, beam %d, softmax %d, %s, key %d", c.finish,
                     c.beam, c.normalise, exact ? "naive" : "accelerated", key);
            same_bits(what);
            assert_int_equal(stats.rows, plain.rows);
            assert_int_equal(stats.live, plain.live);
            assert_int_equal(stats.leads, stats.live);
            assert_int_equal(stats.exact, 0);
            assert_int_equal(stats.dots, plain.dots);
        }
    }
}

static void test_alone_is_beam(void **state)
{
    (void)state;
    toy m[2];
    random_model(&m[0], 3);
    random_model(&m[1], 8);
    const toy *models[] = {&m[0], &m[1]};
    for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
        for (int beam = 1; beam <= 7; beam += 3) {
            for (int normalise = 0; normalise < 2; normalise++) {
                dgm_search_config c = cube_config(beam, (dgm_finish)finish);
                c.normalise = normalise;
                check_alone(models, 1, c, NULL);
                c.mix = beam == 4 ? DGM_MIX_ARITHMETIC : DGM_MIX_LOG_LINEAR;
                check_alone(models, 2, c, NULL);
            }
        }
    }
    toy_close(&m[0]);
    toy_close(&m[1]);
}

static const int32_t some_words[] = {TOY_EOS, 3, 4, 6, 7};
static const dgm_candidates some = {.ids = some_words, .count = 5};

static dgm_status some_admit(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *sentence,
                             dgm_error *err)
{
    (void)v, (void)active, (void)sentence, (void)err;
    return DGM_OK;
}

// Every other sentence has a list.
static const dgm_candidates *some_select(dgm_vocabsel *v, int active, int row, dgm_mat hidden)
{
    (void)row;
    (void)v;
    assert_true(hidden.rows >= 1);
    return active % 2 ? &some : NULL;
}

static void some_leave(dgm_vocabsel *v, int active)
{
    (void)v, (void)active;
}

static const dgm_vocabsel_ops some_ops = {
    .name = "some", .admit = some_admit, .select = some_select, .leave = some_leave};

// One word after another, at the model's own scores.
static void force(const toy *const *models, int parts, const dgm_search_config *like,
                  dgm_vocabsel *vocabsel, int sentence, const toy_hypothesis *h, toy_answer *a)
{
    dgm_search_config c = cube_config(1, DGM_FINISH_REFILL);
    c.search = "auto";
    c.normalise = like->normalise;
    c.mix = like->mix;
    c.max_length = h->count > 0 ? h->count : 1;
    c.sentences = 1;
    toy_search t;
    const dgm_search_request r = {.source = {sources[sentence], source_counts[sentence]},
                                  .prefix = h->tokens,
                                  .prefix_count = h->count};
    toy_search_open(&t, &c, models, parts, vocabsel);
    toy_run(&t, &r, 1, a);
    toy_search_close(&t);
}

static void check_exact(const toy *const *models, int parts, const dgm_search_config *c,
                        dgm_vocabsel *vocabsel)
{
    const int lead = dgm_model_describe(models[0]->model)->target_prefix_count;
    const dgm_search_stats stats = run(models, parts, c, vocabsel, first);
    assert_true(stats.leads < stats.live);
    assert_true(c->cube_exact ? stats.exact > 0 : stats.rescored > 0);
    for (int i = 0; i < SENTENCES; i++) {
        for (int n = 0; n < first[i].count; n++) {
            const toy_hypothesis *h = &first[i].h[n];
            if (h->count == 0) continue; // a beam of one would rather go on
            force(models, parts, c, vocabsel, i, h, second);
            const toy_hypothesis *f = &second[0].h[0];
            assert_int_equal(f->count, h->count);
            assert_memory_equal(f->words, h->words, (size_t)h->count * sizeof *h->words);
            assert_memory_equal(f->align, h->align,
                                (size_t)(h->count * source_counts[i]) * sizeof *h->align);
            if (!h->finished && toy_forces_end((int)c->finish)) continue;
            const int counted = h->count + 1 + (toy_counts_lead((int)c->finish) ? lead : 0);
            assert_true(f->sum == h->sum);
            assert_true(h->score == dgm_length_normalise(h->sum, counted, c->length_penalty));
        }
    }
}

// Naive cube pruning: scores, word scores and alignments are those of exact re-scoring.
static void test_naive_is_exact(void **state)
{
    (void)state;
    for (uint64_t seed = 11; seed < 15; seed++) {
        toy m[2];
        random_model(&m[0], seed);
        random_model(&m[1], seed + 50);
        const toy *models[] = {&m[0], &m[1]};
        for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
            if (finish == DGM_FINISH_MASK) continue; // its second store keeps ends of any step
            for (int normalise = 0; normalise < 2; normalise++) {
                dgm_search_config c = cube_config(5, (dgm_finish)finish);
                c.search = "cube";
                c.cube_exact = true;
                c.normalise = normalise;
                check_exact(models, 1, &c, NULL);
                c.cube_key = DGM_CUBE_STATE;
                c.cube_distance = 0.5f;
                run(models, 1, &c, NULL, first);
                c.cube_key = DGM_CUBE_TOKEN;
                c.mix = finish % 2 ? DGM_MIX_ARITHMETIC : DGM_MIX_LOG_LINEAR;
                check_exact(models, 2, &c, NULL);
            }
        }
        toy_close(&m[0]);
        toy_close(&m[1]);
    }
}

// Accelerated: so are they where results are scored again, and the list is in their order. What the
// search found is the same as without.
static void test_rescored_is_exact(void **state)
{
    (void)state;
    toy_spec spec = {.vocab = VOCAB, .positions = POSITIONS, .width = 16, .heads = 2, .seed = 61};
    spec.gain = 0.9f;
    for (int prefix = 0; prefix < 2; prefix++) { // the model's own first tokens
        toy m[2];
        spec.prefix[0] = 5;
        spec.prefix[1] = 3;
        spec.prefix_count = 2 * prefix;
        toy_open(&m[0], &spec);
        spec.seed++;
        toy_open(&m[1], &spec);
        const toy *models[] = {&m[0], &m[1]};
        for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
            for (int kind = 0; kind < 4; kind++) {
                dgm_search_config c = cube_config(5, (dgm_finish)finish);
                c.search = "cube";
                c.rescore = true;
                c.normalise = kind & 1;
                c.nbest = kind & 2 ? 5 : 1;
                c.first = 3; // with fewer, sentences end before hypotheses are alike
                check_exact(models, 1, &c, NULL);
                check_exact(models, 2, &c, NULL);
                for (int i = 0; i < SENTENCES; i++)
                    for (int n = 1; n < first[i].count; n++)
                        assert_true(first[i].h[n].score <= first[i].h[n - 1].score);
                c.rescore = false;
                run(models, 2, &c, NULL, second);
                for (int i = 0; i < SENTENCES && c.nbest == 1; i++) {
                    assert_int_equal(first[i].h[0].count, second[i].h[0].count);
                    assert_memory_equal(first[i].h[0].tokens, second[i].h[0].tokens,
                                        sizeof first[i].h[0].tokens);
                }
            }
        }
        toy_close(&m[0]);
        toy_close(&m[1]);
    }
}

// With a shortlist the columns are the leader's; exact scores are normalised over the same list.
static void test_shortlist(void **state)
{
    (void)state;
    dgm_vocabsel all_some = {.ops = &some_ops};
    toy m;
    random_model(&m, 21);
    const toy *models[] = {&m};
    for (int normalise = 0; normalise < 2; normalise++) {
        dgm_search_config c = cube_config(4, DGM_FINISH_SHRINK);
        c.normalise = normalise;
        check_alone(models, 1, c, &all_some);
        c.search = "cube";
        for (int exact = 0; exact < 2; exact++) {
            c.cube_exact = exact;
            c.sentences = 4;
            run(models, 1, &c, &all_some, first);
            for (int i = 1; i < 4; i += 2) // those that have odd numbers
                for (int n = 0; n < first[i].count; n++)
                    for (int k = 0; k < first[i].h[n].count; k++)
                        assert_true(first[i].h[n].tokens[k] == 3 || first[i].h[n].tokens[k] == 4 ||
                                    first[i].h[n].tokens[k] == 6 || first[i].h[n].tokens[k] == 7);
        }
    }
    toy_close(&m);
}

// A model without memory: followers are like their leaders, so nothing is lost by merging.
static void test_table_model(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        toy m;
        table_model(&m, seed);
        const toy *models[] = {&m};
        for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
            dgm_search_config c = cube_config(6, (dgm_finish)finish);
            c.length_penalty = 0.6f;
            const dgm_search_stats plain = run(models, 1, &c, NULL, first);
            c.search = "cube";
            for (int exact = 0; exact < 2; exact++) {
                c.cube_exact = exact;
                const dgm_search_stats stats = run(models, 1, &c, NULL, second);
                assert_true(stats.leads < stats.live);
                assert_int_equal(stats.live, plain.live);
                if (!exact) assert_true(stats.rows == stats.leads);
                for (int i = 0; i < SENTENCES; i++) {
                    assert_int_equal(first[i].count, second[i].count);
                    for (int n = 0; n < first[i].count; n++) {
                        const toy_hypothesis *a = &first[i].h[n], *b = &second[i].h[n];
                        // The naive form knows the ends of its leaders only.
                        if (exact && finish == DGM_FINISH_MASK && !a->finished) continue;
                        assert_int_equal(a->count, b->count);
                        assert_memory_equal(a->tokens, b->tokens, sizeof a->tokens);
                        assert_true(fabsf(a->sum - b->sum) < 2e-5f);
                        assert_int_equal(a->finished, b->finished);
                        for (int k = 0; k < a->count * source_counts[i]; k++)
                            assert_true(fabsf(a->align[k] - b->align[k]) < 1e-5f);
                    }
                }
            }
        }
        toy_close(&m);
    }
}

// The wider the key, the fewer the rows; a distance that holds for all is the key token.
static void test_state_key(void **state)
{
    (void)state;
    toy m;
    random_model(&m, 31);
    const toy *models[] = {&m};
    dgm_search_config c = cube_config(6, DGM_FINISH_SHRINK);
    c.search = "cube";
    c.cube_key = DGM_CUBE_TOKEN;
    run(models, 1, &c, NULL, first);
    c.cube_key = DGM_CUBE_STATE;
    c.cube_distance = 1e6f;
    run(models, 1, &c, NULL, second);
    same_bits("a distance beyond all");
    c.cube_distance = 0.3f;
    const dgm_search_stats some_of = run(models, 1, &c, NULL, second);
    assert_true(some_of.leads < some_of.live);
    toy_close(&m);
}

// Sentences that come and go, one by one or many at once.
static void test_batches(void **state)
{
    (void)state;
    toy m[2];
    random_model(&m[0], 41);
    random_model(&m[1], 42);
    const toy *models[] = {&m[0], &m[1]};
    for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
        for (int kind = 0; kind < 8; kind++) {
            dgm_search_config c = cube_config(5, (dgm_finish)finish);
            c.search = "cube";
            c.cube_exact = kind & 1;
            c.rescore = !c.cube_exact;
            c.normalise = kind & 2;
            c.cube_key = kind & 4 ? DGM_CUBE_STATE : DGM_CUBE_TOKEN;
            c.cube_distance = 0.4f;
            c.sentences = 1;
            run(models, 2, &c, NULL, first);
            for (c.sentences = 2; c.sentences <= SENTENCES; c.sentences += 5) {
                run(models, 2, &c, NULL, second);
                same_bits("several at once");
            }
        }
    }
    toy_close(&m[0]);
    toy_close(&m[1]);
}

// Thrown out at any step, also while results are scored again, and admitted anew: the same bits.
static void test_evict(void **state)
{
    (void)state;
    toy m;
    random_model(&m, 71);
    const toy *models[] = {&m};
    for (int exact = 0; exact < 2; exact++) {
        dgm_search_config c = cube_config(5, DGM_FINISH_SHRINK);
        c.search = "cube";
        c.cube_exact = exact;
        c.rescore = !exact;
        run(models, 1, &c, NULL, first);
        for (int when = 1; when < 18; when++) {
            toy_search t;
            dgm_error err = {{0}};
            dgm_search_request r[SENTENCES];
            make_requests(r);
            r[0].id = 0;
            toy_search_open(&t, &c, models, 1, NULL);
            memset(second, 0, sizeof second);
            assert_int_equal(dgm_search_admit(t.search, r, 1, &err), DGM_OK);
            for (int i = 0; i < when; i++)
                assert_int_equal(dgm_search_advance(t.search, toy_sink, second, &err), DGM_OK);
            dgm_search_evict(t.search, 0);
            assert_int_equal(dgm_search_active(t.search), 0);
            toy_run(&t, r, SENTENCES, second);
            same_bits("after an eviction");
            toy_search_close(&t);
        }
    }
    toy_close(&m);
}

static void test_prefix_and_allocations(void **state)
{
    (void)state;
    static const int32_t prefix[] = {5, 5, 3};
    toy m;
    random_model(&m, 51);
    const toy *models[] = {&m};
    for (int exact = 0; exact < 2; exact++) {
        dgm_search_config c = cube_config(5, DGM_FINISH_SHRINK);
        c.search = "cube";
        c.cube_exact = exact;
        c.rescore = !exact;
        toy_search t;
        dgm_search_request r[SENTENCES];
        make_requests(r);
        for (int i = 0; i < SENTENCES; i += 2) {
            r[i].prefix = prefix;
            r[i].prefix_count = 3;
        }
        toy_search_open(&t, &c, models, 1, NULL);
        const uint64_t before = dgm_mem_allocations();
        toy_run(&t, r, SENTENCES, first);
        assert_int_equal(dgm_mem_allocations(), before);
        toy_search_close(&t);
        for (int i = 0; i < SENTENCES; i += 2)
            for (int n = 0; n < first[i].count; n++)
                assert_memory_equal(first[i].h[n].tokens, prefix, sizeof prefix);
    }
    toy_close(&m);
}

static void test_bad_settings(void **state)
{
    (void)state;
    dgm_search_config c = cube_config(4, DGM_FINISH_SHRINK);
    c.search = "cube";
    dgm_backend *b = NULL;
    assert_int_equal(dgm_backend_open(&b, "cpu", NULL, NULL), DGM_OK);
    assert_true(dgm_search_bytes(b, &c, 1, VOCAB).host > 0);
    c.cube_key = (dgm_cube_key)7;
    assert_int_equal(dgm_search_bytes(b, &c, 1, VOCAB).host, 0);
    c.cube_key = DGM_CUBE_STATE;
    assert_int_equal(dgm_search_bytes(b, &c, 1, VOCAB).host, 0); // no width
    c.hidden = 16;
    c.cube_distance = NAN;
    assert_int_equal(dgm_search_bytes(b, &c, 1, VOCAB).host, 0);
    c.cube_distance = 0.1f;
    assert_true(dgm_search_bytes(b, &c, 1, VOCAB).device > 0);
    assert_true(dgm_search_bytes(b, &c, 1, VOCAB).host > 0);
    c.rescore = true;
    assert_true(dgm_search_bytes(b, &c, 1, VOCAB).host > 0);
    c.search = "beam";
    assert_int_equal(dgm_search_bytes(b, &c, 1, VOCAB).host, 0);
    dgm_backend_close(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_figure_2),
        cmocka_unit_test(test_walk_against_sorting),
        cmocka_unit_test(test_alone_is_beam),
        cmocka_unit_test(test_naive_is_exact),
        cmocka_unit_test(test_rescored_is_exact),
        cmocka_unit_test(test_shortlist),
        cmocka_unit_test(test_table_model),
        cmocka_unit_test(test_state_key),
        cmocka_unit_test(test_batches),
        cmocka_unit_test(test_evict),
        cmocka_unit_test(test_prefix_and_allocations),
        cmocka_unit_test(test_bad_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
