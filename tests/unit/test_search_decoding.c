// SPDX-License-Identifier: MIT
// Settings of decoding against a second beam search, written here over plain tables.
//
// A table model's log-probabilities are known (search_toy.h), so the whole search can be done again
// by listing and sorting all continuations of all hypotheses: beam-width pruning, penalties and
// bans of repetition, diversity, under policy shrink. Tables are random and peaked, so that
// hypotheses like to repeat themselves. What a setting does is also checked for itself: no n-gram
// comes twice, a wide diversity gives one greedy translation per first word. Samples are counted
// and compared with the probabilities of all translations, coverage with attention step by step.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { VOCAB = 8, POSITIONS = 10, LONGEST = 8, START = VOCAB - 1, WIDEST = 6, SEEDS = 30 };

static float last[VOCAB * VOCAB], table_time[POSITIONS * VOCAB];

static void open_tables(toy *m, uint64_t seed)
{
    dgm_rng rng = {seed};
    for (int i = 0; i < VOCAB * VOCAB; i++) last[i] = 6.0f * (float)dgm_rng_unit(&rng) - 3.0f;
    for (int i = 0; i < POSITIONS * VOCAB; i++) table_time[i] = (float)dgm_rng_unit(&rng);
    for (int u = 0; u < VOCAB; u++) last[u * VOCAB + TOY_EOS] -= 1.5f;
    const toy_spec spec = {
        .vocab = VOCAB, .positions = POSITIONS, .heads = 1, .last = last, .time = table_time};
    toy_open(m, &spec);
}

// ---- the second search --------------------------------------------------------------------------

typedef struct path {
    int32_t tokens[LONGEST + 1];
    int count;
    double sum, key, score;
    bool finished;
} path;

static bool said(const path *p, int32_t token)
{
    for (int i = 0; i < p->count; i++)
        if (p->tokens[i] == token) return true;
    return false;
}

// Would this token end an n-gram that the path holds?
static bool repeats(const path *p, int n, int32_t token)
{
    path q = *p;
    if (n == 0 || token == TOY_EOS) return false;
    q.tokens[q.count++] = token;
    for (int i = 0; i + n < q.count; i++)
        if (memcmp(q.tokens + i, q.tokens + q.count - n, (size_t)n * sizeof *q.tokens) == 0)
            return true;
    return false;
}

static int by_key(const void *a, const void *b)
{
    const path *x = a, *y = b;
    return x->key < y->key ? 1 : x->key > y->key ? -1 : 0;
}

static int by_score(const void *a, const void *b)
{
    const path *x = a, *y = b;
    return x->score < y->score ? 1 : x->score > y->score ? -1 : 0;
}

// All continuations of a path, best first, keys lowered by rank.
static int continuations(const dgm_search_config *c, const path *p, path *out)
{
    const int u = p->count ? p->tokens[p->count - 1] : START;
    double z = 0;
    for (int v = 0; v < VOCAB; v++)
        z += exp((double)last[u * VOCAB + v] + (double)table_time[p->count * VOCAB + v]);
    int count = 0;
    for (int v = 0; v < START; v++) {
        if (v == TOY_UNK || repeats(p, c->no_repeat, v)) continue;
        if (v == TOY_EOS && p->count < c->min_length) continue;
        path *q = &out[count++];
        *q = *p;
        q->tokens[q->count++] = v;
        q->sum += (double)last[u * VOCAB + v] + (double)table_time[p->count * VOCAB + v] - log(z);
        if (c->repetition > 0 && said(p, v)) q->sum -= log((double)c->repetition);
        q->key = q->sum;
    }
    qsort(out, (size_t)count, sizeof *out, by_key);
    for (int i = 0; i < count; i++) out[i].key -= (double)c->diversity * i;
    return count;
}

static void finish(path *done, int *count, path p, bool finished)
{
    p.count--; // the end symbol
    p.finished = finished;
    p.score = p.sum / (p.count + 1);
    done[(*count)++] = p;
}

static int prune(const dgm_search_config *c, path *live, int count)
{
    double best = -INFINITY;
    int kept = 0;
    for (int i = 0; i < count; i++) best = fmax(best, live[i].sum);
    for (int i = 0; i < count; i++)
        if (c->beam_width == 0 || live[i].sum >= best + log((double)c->beam_width))
            live[kept++] = live[i];
    return kept;
}

static int second_search(const dgm_search_config *c, path *done)
{
    path live[WIDEST] = {{.count = 0}}, next[WIDEST], all[WIDEST * VOCAB];
    int count = 1, ended = 0;
    for (int length = 0; count > 0 && ended < c->beam; length++) {
        int total = 0, kept = 0;
        for (int i = 0; i < count; i++) total += continuations(c, &live[i], all + total);
        qsort(all, (size_t)total, sizeof *all, by_key);
        const int places = c->beam - ended;
        for (int i = 0; i < total; i++) {
            const bool end = all[i].tokens[length] == TOY_EOS;
            if (i < places && !end) next[kept++] = all[i];
            // At the maximum length every hypothesis ends, drawn or not.
            if (end && (i < places || length == c->max_length))
                finish(done, &ended, all[i], i < places);
        }
        if (length == c->max_length) break;
        count = prune(c, next, kept);
        memcpy(live, next, sizeof live);
    }
    qsort(done, (size_t)ended, sizeof *done, by_score);
    return ended < c->beam ? ended : c->beam;
}

static void same_list(const char *what, const toy_answer *a, const path *want, int count)
{
    if (a->count != count) fail_msg("%s: %d translations, not %d", what, a->count, count);
    for (int i = 0; i < count; i++) {
        const toy_hypothesis *h = &a->h[i];
        if (h->count != want[i].count ||
            memcmp(h->tokens, want[i].tokens, (size_t)h->count * sizeof *h->tokens) != 0 ||
            fabs((double)h->score - want[i].score) > 1e-4 || h->finished != want[i].finished)
            fail_msg("%s: translation %d differs (%g, not %g)", what, i, (double)h->score,
                     want[i].score);
    }
}

static dgm_search_config config_of(int beam)
{
    dgm_search_config c = toy_config(beam, DGM_FINISH_SHRINK);
    c.nbest = beam;
    c.max_length = LONGEST;
    return c;
}

static void as_the_second_search(void **state)
{
    (void)state;
    static const struct {
        const char *what;
        float width, repetition, diversity;
        int no_repeat, min_length;
    } cases[] = {
        {"plain", 0, 0, 0, 0, 0},           {"width", 0.4f, 0, 0, 0, 0},
        {"narrow", 0.7f, 0, 0, 0, 0},       {"repetition", 0, 4.0f, 0, 0, 0},
        {"reward", 0, 0.5f, 0, 0, 0},       {"no word twice", 0, 0, 0, 1, 0},
        {"no pair twice", 0, 0, 0, 2, 3},   {"no triple twice", 0, 0, 0, 3, 0},
        {"diversity", 0, 0, 0.7f, 0, 0},    {"diverse and narrow", 0.2f, 0, 0.4f, 0, 0},
        {"all", 0.05f, 1.5f, 0.3f, 2, 2},
    };
    path want[2 * WIDEST];
    int changed[11] = {0};
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        toy m;
        open_tables(&m, seed);
        const int beam = 2 + (int)(seed % (WIDEST - 1));
        toy_answer plain = {0};
        for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
            dgm_search_config c = config_of(beam);
            c.beam_width = cases[i].width;
            c.repetition = cases[i].repetition;
            c.diversity = cases[i].diversity;
            c.no_repeat = cases[i].no_repeat;
            c.min_length = cases[i].min_length;
            const toy_answer a = toy_translate(&m, &c);
            same_list(cases[i].what, &a, want, second_search(&c, want));
            if (i == 0) plain = a;
            changed[i] += memcmp(&a, &plain, sizeof a) != 0;
        }
        toy_close(&m);
    }
    for (int i = 1; i < 11; i++)
        if (changed[i] < 3) fail_msg("%s changed %d lists only", cases[i].what, changed[i]);
}

static void no_ngram_twice(void **state)
{
    (void)state;
    static const dgm_finish policies[] = {DGM_FINISH_MARGIN, DGM_FINISH_SHRINK, DGM_FINISH_MASK,
                                          DGM_FINISH_REFILL, DGM_FINISH_HUGGINGFACE,
                                          DGM_FINISH_FIRST};
    int repeated = 0;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        toy m;
        open_tables(&m, seed);
        for (int run = 0; run < 6 * 4; run++) {
            const int n = run % 4;
            dgm_search_config c = config_of(n == 1 ? 1 : 4);
            c.search = "auto";
            c.finish = policies[run / 4];
            c.no_repeat = n;
            c.min_length = n == 1 ? 4 : LONGEST;
            const toy_answer a = toy_translate(&m, &c);
            for (int k = 0; k < a.count; k++) {
                path p = {.count = 0};
                for (int i = 0; i < a.h[k].count; i++) {
                    if (n) assert_false(repeats(&p, n, a.h[k].tokens[i]));
                    repeated += repeats(&p, 2, a.h[k].tokens[i]);
                    p.tokens[p.count++] = a.h[k].tokens[i];
                }
            }
        }
        toy_close(&m);
    }
    assert_true(repeated > 100); // without the ban they do
}

// A very wide penalty leaves every hypothesis its best continuation: greedy search from each of the
// best first words.
static void one_translation_per_first_word(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        toy m;
        open_tables(&m, seed);
        dgm_search_config c = config_of(3), g = config_of(1);
        c.diversity = 1e6f;
        c.min_length = g.min_length = 1;
        g.search = "greedy";
        const toy_answer a = toy_translate(&m, &c);
        assert_int_equal(a.count, 3);
        for (int i = 0; i < a.count; i++) {
            toy_search t;
            toy_answer b;
            const toy *models[] = {&m};
            toy_search_open(&t, &g, models, 1, NULL);
            const dgm_search_request r = {
                .source = {toy_source, 4}, .prefix = a.h[i].tokens, .prefix_count = 1};
            toy_run(&t, &r, 1, &b);
            toy_search_close(&t);
            assert_int_equal(a.h[i].count, b.h[0].count);
            assert_memory_equal(a.h[i].tokens, b.h[0].tokens, sizeof b.h[0].tokens);
            for (int j = 0; j < i; j++) assert_true(a.h[j].tokens[0] != a.h[i].tokens[0]);
        }
        toy_close(&m);
    }
}

// Forced words are the user's: they may repeat, and what follows counts them.
static void prefixes_win(void **state)
{
    (void)state;
    static const int32_t prefix[] = {3, 3, 3};
    toy m;
    open_tables(&m, 5);
    dgm_search_config c = config_of(3);
    c.no_repeat = 1;
    c.repetition = 3.0f;
    toy_search t;
    toy_answer a;
    const toy *models[] = {&m};
    toy_search_open(&t, &c, models, 1, NULL);
    const dgm_search_request r = {.source = {toy_source, 4}, .prefix = prefix, .prefix_count = 3};
    toy_run(&t, &r, 1, &a);
    toy_search_close(&t);
    for (int i = 0; i < a.count; i++) {
        assert_true(a.h[i].count >= 3);
        assert_memory_equal(a.h[i].tokens, prefix, sizeof prefix);
        for (int k = 3; k < a.h[i].count; k++) assert_true(a.h[i].tokens[k] != 3);
    }
    toy_close(&m);
}

// ---- sentences together, ensembles, cube ----------------------------------------------------

static void open_random(toy *m, uint64_t seed)
{
    const toy_spec spec = {.vocab = 24, .positions = 20, .width = 16, .heads = 2, .seed = seed,
                           .gain = 0.9f};
    toy_open(m, &spec);
}

enum { SENTENCES = 9 };
static int32_t sources[SENTENCES][6];
static dgm_search_request requests[SENTENCES];

static void make_requests(void)
{
    dgm_rng rng = {77};
    for (int i = 0; i < SENTENCES; i++) {
        const int n = 2 + i % 4;
        for (int k = 0; k < n; k++) sources[i][k] = 2 + (int32_t)dgm_rng_below(&rng, 20);
        sources[i][n] = TOY_EOS;
        requests[i] = (dgm_search_request){.source = {sources[i], n + 1}};
    }
}

static toy_answer alone[SENTENCES], batch[SENTENCES];

static void run_batch(const dgm_search_config *c, const toy *const *models, int parts,
                      int sentences, toy_answer *a)
{
    toy_search t;
    dgm_search_config with = *c;
    with.sentences = sentences;
    toy_search_open(&t, &with, models, parts, NULL);
    toy_run(&t, requests, SENTENCES, a);
    toy_search_close(&t);
}

// c: 1 sentence at once against 2, 4 and 9, one model and two.
static void check_batches(const dgm_search_config *c)
{
    toy m[2];
    open_random(&m[0], 21);
    open_random(&m[1], 22);
    const toy *models[] = {&m[0], &m[1]};
    make_requests();
    for (int parts = 1; parts <= 2; parts++) {
        run_batch(c, models, parts, 1, alone);
        for (int sentences = 2; sentences <= 9; sentences += sentences == 4 ? 5 : 2) {
            run_batch(c, models, parts, sentences, batch);
            assert_memory_equal(alone, batch, sizeof alone);
            dgm_search_config few = *c;
            for (few.max_rows = 1; few.max_rows < 8; few.max_rows += 2) { // one row, three ...
                run_batch(&few, models, parts, sentences, batch);
                assert_memory_equal(alone, batch, sizeof alone);
            }
        }
    }
    toy_close(&m[0]);
    toy_close(&m[1]);
}

static void batches_do_not_matter(void **state)
{
    (void)state;
    dgm_search_config c = config_of(4);
    c.max_length = 16;
    c.beam_width = 0.2f;
    c.repetition = 2.0f;
    c.diversity = 0.1f;
    c.no_repeat = 2;
    c.word_scores = true;
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        c.finish = (dgm_finish)finish;
        check_batches(&c);
    }
}

static void cube_with_a_key_of_none(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 23);
    const toy *models[] = {&m};
    make_requests();
    for (int naive = 0; naive < 2; naive++) {
        dgm_search_config c = config_of(4);
        c.max_length = 16;
        c.beam_width = 0.3f;
        c.repetition = 1.7f;
        c.no_repeat = 2;
        run_batch(&c, models, 1, 3, alone);
        c.search = "cube";
        c.cube_exact = naive;
        c.cube_key = DGM_CUBE_NONE;
        run_batch(&c, models, 1, 3, batch);
        for (int i = 0; i < SENTENCES; i++) batch[i].steps = alone[i].steps;
        assert_memory_equal(alone, batch, sizeof alone);
    }
    toy_close(&m);
}

static void pruning_saves_rows(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 24);
    const toy *models[] = {&m};
    make_requests();
    static const char *const names[] = {"beam", "cube"};
    for (int i = 0; i < 2; i++) {
        uint64_t rows[2];
        for (int on = 0; on < 2; on++) {
            dgm_search_config c = config_of(6);
            toy_search t;
            c.search = names[i];
            c.beam_width = on ? 0.5f : 0.0f;
            toy_search_open(&t, &c, models, 1, NULL);
            toy_run(&t, requests, SENTENCES, alone);
            rows[on] = dgm_search_counts(t.search)->live;
            toy_search_close(&t);
        }
        assert_true(rows[1] < rows[0]);
    }
    toy_close(&m);
}

// ---- sampling -----------------------------------------------------------------------------------

typedef struct outcome {
    path path;
    double probability;
    int seen;
} outcome;

enum { OUTCOMES = 64, DRAWS = 64, SEED_COUNT = 150 };

// What each token is drawn with: the list of continuations, cut and cooled.
static int distribution(const dgm_search_config *c, const path *p, path *out, double *share)
{
    const double cool = c->temperature > 0 ? 1 / (double)c->temperature : 1;
    int count = continuations(c, p, out), kept = 0;
    double all = 0, sum = 0;
    if (c->top_k && count > c->top_k) count = c->top_k;
    for (int i = 0; i < count; i++) all += share[i] = exp((out[i].sum - p->sum) * cool);
    while (kept < count && (c->top_p == 0 || sum < (double)c->top_p * all)) sum += share[kept++];
    for (int i = 0; i < kept; i++) share[i] /= sum;
    return kept;
}

static void list_outcomes(const dgm_search_config *c, const path *p, double probability,
                          outcome *list, int *count)
{
    path next[VOCAB];
    double share[VOCAB];
    if (p->count == c->max_length) { // it ends here, whatever is drawn
        assert_true(*count < OUTCOMES);
        list[(*count)++] = (outcome){.path = *p, .probability = probability};
        return;
    }
    const int n = distribution(c, p, next, share);
    for (int i = 0; i < n; i++) {
        if (next[i].tokens[p->count] != TOY_EOS) {
            list_outcomes(c, &next[i], probability * share[i], list, count);
            continue;
        }
        assert_true(*count < OUTCOMES);
        list[(*count)++] = (outcome){.path = *p, .probability = probability * share[i]};
    }
}

static void count_draws(const toy_answer *a, outcome *list, int count)
{
    assert_int_equal(a->count, DRAWS);
    for (int i = 0; i < a->count; i++) {
        int at = 0;
        while (at < count &&
               (list[at].path.count != a->h[i].count ||
                memcmp(list[at].path.tokens, a->h[i].tokens,
                       (size_t)a->h[i].count * sizeof *a->h[i].tokens) != 0))
            at++;
        if (at == count) fail_msg("a translation was drawn that has no probability");
        list[at].seen++;
    }
}

// Every translation comes as often as it should, within 4.5 standard deviations.
static void drawn_by_probability(void **state)
{
    (void)state;
    static const struct {
        float temperature, top_p, repetition;
        int top_k;
    } cases[] = {{0, 0, 0, 0}, {0.5f, 0, 0, 0}, {2, 0, 0, 3}, {0, 0.7f, 0, 0}, {1.5f, 0.9f, 3, 4}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        toy m;
        outcome list[OUTCOMES];
        int count = 0;
        const path empty = {.count = 0};
        open_tables(&m, 40 + i);
        dgm_search_config c = config_of(DRAWS);
        c.search = "sample";
        c.max_length = 2;
        c.temperature = cases[i].temperature;
        c.top_p = cases[i].top_p;
        c.top_k = cases[i].top_k;
        c.repetition = cases[i].repetition;
        list_outcomes(&c, &empty, 1, list, &count);
        for (uint64_t seed = 0; seed < SEED_COUNT; seed++) {
            c.seed = seed;
            const toy_answer a = toy_translate(&m, &c);
            count_draws(&a, list, count);
        }
        const double n = (double)DRAWS * SEED_COUNT;
        for (int k = 0; k < count; k++) {
            const double p = list[k].probability, off = fabs(list[k].seen - n * p);
            if (off > 4.5 * sqrt(n * p * (1 - p)) + 1)
                fail_msg("case %zu: drawn %d times, not %.1f", i, list[k].seen, n * p);
        }
        toy_close(&m);
    }
}

// The best token of every step is greedy search; scores are the model's at any temperature.
static void one_token_is_greedy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 5; seed++) {
        toy m;
        open_tables(&m, seed);
        dgm_search_config c = config_of(1), g = config_of(1);
        c.search = "sample";
        c.seed = seed;
        c.top_k = 1;
        c.temperature = 3;
        c.word_scores = g.word_scores = true;
        g.search = "greedy";
        toy_answer a = toy_translate(&m, &c), b = toy_translate(&m, &g);
        assert_memory_equal(&a.h[0], &b.h[0], sizeof a.h[0]);
        c.top_k = 0;
        c.top_p = 1e-6f;
        a = toy_translate(&m, &c);
        assert_memory_equal(&a.h[0], &b.h[0], sizeof a.h[0]);
        toy_close(&m);
    }
}

static void draws_do_not_depend_on_the_rest(void **state)
{
    (void)state;
    dgm_search_config c = config_of(4);
    c.search = "sample";
    c.max_length = 16;
    c.seed = 9;
    c.temperature = 1.2f;
    c.no_repeat = 2;
    c.word_scores = true;
    check_batches(&c);
    toy m;
    open_random(&m, 21);
    const toy *models[] = {&m};
    run_batch(&c, models, 1, 3, alone);
    // The other way round.
    for (int i = 0; i < SENTENCES / 2; i++) {
        const dgm_search_request r = requests[i];
        requests[i] = requests[SENTENCES - 1 - i];
        requests[SENTENCES - 1 - i] = r;
    }
    run_batch(&c, models, 1, 2, batch);
    for (int i = 0; i < SENTENCES; i++)
        assert_memory_equal(&alone[i], &batch[SENTENCES - 1 - i], sizeof alone[i]);
    // Fewer draws are some of the same.
    c.beam = c.nbest = 2;
    run_batch(&c, models, 1, 3, alone);
    for (int i = 0; i < SENTENCES; i++)
        for (int k = 0; k < 2; k++) {
            bool found = false;
            for (int j = 0; j < 4; j++)
                found |= memcmp(&alone[i].h[k], &batch[i].h[j], sizeof alone[i].h[k]) == 0;
            assert_true(found);
        }
    // Another seed, other translations.
    int same = 0;
    c.seed = 10;
    run_batch(&c, models, 1, 3, batch);
    for (int i = 0; i < SENTENCES; i++)
        same += memcmp(alone[i].h, batch[i].h, 2 * sizeof alone[i].h[0]) == 0;
    assert_true(same < SENTENCES / 2);
    toy_close(&m);
}

// ---- coverage -----------------------------------------------------------------------------------

// Attention of all steps of a translation, its end included, step by step.
static double coverage_of(const toy *m, const dgm_search_request *r, const toy_hypothesis *h)
{
    dgm_error err = {{0}};
    dgm_exec *x;
    dgm_state *s;
    int32_t slot, row;
    float weights[TOY_SOURCE];
    double seen[TOY_SOURCE] = {0}, total = 0;
    const dgm_limits limits = {.slots = 1, .rows = 4, .source = 8, .target = 20};
    const dgm_bytes bytes =
        dgm_bytes_add(dgm_state_bytes(m->model, &limits), dgm_bytes_both(1 << 20));
    assert_int_equal(dgm_exec_open(m->backend, bytes, &x, &err), DGM_OK);
    assert_int_equal(dgm_state_open(m->model, x, &limits, &s, &err), DGM_OK);
    assert_int_equal(dgm_encode(s, 1, &r->source, &slot, &err), DGM_OK);
    assert_int_equal(dgm_start(s, 1, &slot, &row, &err), DGM_OK);
    for (int t = 0; t <= h->count; t++) {
        const dgm_step_row step = {
            .parent = row,
            .token = {t ? h->tokens[t - 1] : dgm_model_describe(m->model)->start, DGM_NO_TOKEN}};
        float *const align[1] = {weights};
        dgm_step_result out = {.rows = &row, .align = align};
        assert_int_equal(dgm_step(s, 1, &step, &out, &err), DGM_OK);
        dgm_exec_sync(x);
        dgm_retain(s, 1, &row);
        for (int i = 0; i < r->source.count; i++) seen[i] += (double)weights[i];
    }
    for (int i = 0; i < r->source.count; i++) total += log(fmin(1, fmax(seen[i], 1e-6)));
    dgm_state_close(&s);
    dgm_exec_close(&x);
    return total;
}

// A beam wider than the list of all translations: plain scores plus coverage, sorted, are what the
// search must return.
static void coverage_ranks(void **state)
{
    (void)state;
    enum { ALL = 40 };
    int moved = 0;
    for (uint64_t seed = 1; seed <= 8; seed++) {
        toy m;
        const toy_spec spec = {
            .vocab = 6, .positions = 12, .width = 8, .heads = 2, .seed = seed, .gain = 1.5f};
        toy_open(&m, &spec);
        dgm_search_config c = config_of(60);
        c.finish = DGM_FINISH_REFILL;
        c.max_length = 3;
        c.alignment = true;
        const dgm_search_request r = {.source = {toy_source, 4}};
        const toy_answer plain = toy_translate(&m, &c);
        assert_int_equal(plain.count, ALL);
        c.coverage = 0.4f;
        const toy_answer a = toy_translate(&m, &c);
        assert_int_equal(a.count, ALL);
        double score[ALL];
        for (int i = 0; i < ALL; i++)
            score[i] = (double)plain.h[i].score + 0.4 * coverage_of(&m, &r, &plain.h[i]);
        for (int i = 0; i < ALL; i++) {
            int best = 0;
            for (int k = 1; k < ALL; k++)
                if (score[k] > score[best]) best = k;
            assert_true(fabs((double)a.h[i].score - score[best]) < 1e-4);
            assert_int_equal(a.h[i].count, plain.h[best].count);
            assert_memory_equal(a.h[i].tokens, plain.h[best].tokens, sizeof a.h[i].tokens);
            moved += best != i;
            score[best] = -INFINITY;
        }
        toy_close(&m);
    }
    assert_true(moved > 20);
}

// Scores of every policy and search are sums of the two parts.
static void coverage_of_every_search(void **state)
{
    (void)state;
    toy m;
    open_random(&m, 31);
    const toy *models[] = {&m};
    make_requests();
    for (int run = 0; run < 4 * DGM_FINISH_COUNT; run++) {
        dgm_search_config c = config_of(4);
        c.finish = (dgm_finish)(run % DGM_FINISH_COUNT);
        static const char *const names[] = {"beam", "cube", "cube", "sample"};
        c.search = names[run / DGM_FINISH_COUNT];
        c.cube_exact = run / DGM_FINISH_COUNT == 1;
        c.rescore = run / DGM_FINISH_COUNT == 2;
        c.alignment = true;
        c.coverage = 0.3f;
        run_batch(&c, models, 1, 1, alone);
        run_batch(&c, models, 1, 4, batch);
        assert_memory_equal(alone, batch, sizeof alone);
        for (int i = 0; i < SENTENCES; i++)
            for (int k = 0; k < alone[i].count; k++) {
                const toy_hypothesis *h = &alone[i].h[k];
                toy_hypothesis seen = *h;
                // A forced end has no step of its own.
                seen.count -= !h->finished && toy_forces_end((int)c.finish);
                const int counted = h->count + (h->finished || !toy_endless((int)c.finish));
                const double want = (double)h->sum / counted +
                                    0.3 * coverage_of(&m, &requests[i], &seen);
                if (fabs((double)h->score - want) > 1e-3)
                    fail_msg("%s, policy %d: %g, not %g", c.search, run % DGM_FINISH_COUNT,
                             (double)h->score, want);
            }
    }
    toy_close(&m);
}

// ---- what is refused -----------------------------------------------------------------

static void refused(dgm_search_config c, const char *message)
{
    dgm_error err = {{0}};
    dgm_search *s = NULL;
    assert_int_equal(dgm_search_open(&s, NULL, &c, NULL, 1, NULL, NULL, 0, &err), DGM_ERR_ARGUMENT);
    assert_memory_equal(err.text, message, strlen(message)); // reasons are the table's (features.h)
    assert_int_equal(dgm_search_bytes(NULL, &c, 1, 8).host, 0);
}

static void senseless_settings(void **state)
{
    (void)state;
    dgm_search_config c = config_of(4);
    c.beam_width = 1.5f;
    refused(c, "beam width is 1.5; it must be 0 to 1");
    c.beam_width = NAN;
    refused(c, "beam width is nan; it must be 0 to 1");
    c = config_of(1);
    c.search = "greedy";
    c.beam_width = 0.5f;
    refused(c, "beam-width cannot be combined with search greedy: ");
    c.beam_width = 0;
    c.diversity = 1;
    refused(c, "diversity cannot be combined with search greedy: ");
    c = config_of(4);
    c.diversity = -1;
    refused(c, "diversity is -1; it must be 0 or more");
    c = config_of(4);
    c.no_repeat = -2;
    refused(c, "no-repeat n-gram size must be 0 or more, not -2");
    c = config_of(4);
    c.repetition = -2;
    refused(c, "repetition penalty is -2; it must be a positive number, or 0: none");
    c = config_of(4);
    c.coverage = 1;
    refused(c, "a coverage penalty needs attention weights: alignment must be on");
    c.coverage = -1;
    refused(c, "coverage penalty is -1; it must be 0 or more");
    c = config_of(4);
    c.top_k = 5;
    refused(c, "top-k cannot be combined with search beam: ");
    c.search = "sample";
    c.beam_width = 0.1f;
    refused(c, "beam-width cannot be combined with search sample: ");
    c.beam_width = 0;
    c.top_k = 1025;
    refused(c, "top-k is 1025; it must be 0 to 1024");
    c.top_k = 0;
    c.top_p = 1.5f;
    refused(c, "top-p is 1.5; it must be 0 to 1");
    c.top_p = 0;
    c.temperature = -1;
    refused(c, "temperature is -1; it must be a positive number, or 0: 1");
    c.temperature = 0;
    c.nbest = 2;
    refused(c, "beam cannot be combined with search sample: ");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(as_the_second_search),
        cmocka_unit_test(no_ngram_twice),
        cmocka_unit_test(one_translation_per_first_word),
        cmocka_unit_test(prefixes_win),
        cmocka_unit_test(batches_do_not_matter),
        cmocka_unit_test(cube_with_a_key_of_none),
        cmocka_unit_test(pruning_saves_rows),
        cmocka_unit_test(drawn_by_probability),
        cmocka_unit_test(one_token_is_greedy),
        cmocka_unit_test(draws_do_not_depend_on_the_rest),
        cmocka_unit_test(coverage_ranks),
        cmocka_unit_test(coverage_of_every_search),
        cmocka_unit_test(senseless_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
