// SPDX-License-Identifier: MIT
// The search of pairs: folding, the choice of pairs, and whole searches against plain copies of the
// same rules.
//
// The reference below knows nothing of trees, rows or lists: it feeds every hypothesis from its
// first pair on, writes down all pairs there are, sorts them, and applies the rule. With a beam
// that prunes nothing the result is that of enumerating every sentence.
#define _GNU_SOURCE
#include "unit/search_toy.h"

#include "engine/engine_private.h"
#include "fixture.h"
#include "search/double_private.h"

// ---- folding ------------------------------------------------------------------------------------

static void test_folding(void **state)
{
    (void)state;
    enum { LONGEST = 200, EOD = 7 };
    int32_t words[LONGEST], tokens[LONGEST + 2], places[LONGEST + 2];
    for (int i = 0; i < LONGEST; i++) words[i] = 1000 + i;
    for (int order = 0; order < 3; order++)
        for (int n = 0; n <= LONGEST; n++) {
            const int pairs = n / 2 + 1;
            int ends = 0;
            for (int i = 0; i < 2 * pairs; i++) {
                const int word = dgm_fold_at((dgm_order)order, n, i / 2, i % 2);
                tokens[i] = word < n ? words[word] : EOD;
            }
            for (int i = 0; i < 2 * pairs; i++) ends += tokens[i] == EOD;
            assert_int_equal(ends, n % 2 ? 1 : 2);
            assert_int_equal(tokens[2 * pairs - 1], EOD); // and the left one is a word, or EOD too
            assert_int_equal(tokens[2 * pairs - 2] == EOD, n % 2 == 0);
            assert_int_equal(dgm_double_unfold((dgm_order)order, tokens, pairs, EOD, places), n);
            for (int i = 0; i < n; i++) assert_int_equal(tokens[places[i]], words[i]);
        }
}

// (EOD, x), which no training sentence has: x stays in the middle, or goes.
static void test_unfold_odd(void **state)
{
    (void)state;
    const int32_t tokens[] = {1, 5, 9, 3};
    int32_t places[4];
    assert_int_equal(dgm_double_unfold(DGM_ORDER_BIDIRECTIONAL, tokens, 2, 9, places), 3);
    assert_int_equal(tokens[places[0]] * 100 + tokens[places[1]] * 10 + tokens[places[2]], 135);
    assert_int_equal(dgm_double_unfold(DGM_ORDER_L2R, tokens, 2, 9, places), 2);
    assert_int_equal(tokens[places[0]] * 10 + tokens[places[1]], 15);
    assert_int_equal(dgm_double_unfold(DGM_ORDER_R2L, tokens, 2, 9, places), 2);
    assert_int_equal(tokens[places[0]] * 10 + tokens[places[1]], 51);
    assert_int_equal(dgm_double_unfold(DGM_ORDER_L2R, NULL, 0, 9, places), 0);
}

// ---- choosing pairs -----------------------------------------------------------------------------

enum { ROWS = 6, K = 18, WIDTH = 6, ALL = ROWS * K * K };

static int by_score(const void *a, const void *b)
{
    const dgm_pair *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    if (x->row != y->row) return x->row - y->row;
    if (x->left != y->left) return x->left - y->left;
    return x->right - y->right;
}

// Every pair of rows first .. first + rows - 1 whose left word is allowed.
static int all_pairs(const dgm_pair_lists *l, bool (*may)(const dgm_pair_lists *, int, int),
                     dgm_pair *out)
{
    int n = 0;
    for (int r = l->first; r < l->first + l->rows; r++)
        for (int i = 0; i < l->k; i++)
            for (int j = 0; j < l->k; j++) {
                dgm_pair p = {.row = r, .left = i, .right = j};
                p.left_score = dgm_pair_at(l, r, 0, i);
                p.score = p.left_score + dgm_pair_at(l, r, 1, j);
                if (p.score > -INFINITY && (!may || may(l, r, i))) out[n++] = p;
            }
    qsort(out, (size_t)n, sizeof *out, by_score);
    return n;
}

// Is (row, i) among the best 2 WIDTH left words? Counts those before it.
static bool among_lefts(const dgm_pair_lists *l, int row, int i)
{
    int before = 0;
    const float mine = dgm_pair_at(l, row, 0, i);
    for (int r = l->first; r < l->first + l->rows; r++)
        for (int k = 0; k < l->k; k++) {
            const float other = dgm_pair_at(l, r, 0, k);
            before += other > mine || (other == mine && (r < row || (r == row && k < i)));
        }
    return before < 2 * WIDTH;
}

static int falling(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x > y ? -1 : x < y;
}

static void same_pairs(const dgm_pair *got, int count, const dgm_pair *want, int all)
{
    assert_int_equal(count, all < 3 * WIDTH ? all : 3 * WIDTH);
    for (int i = 0; i < count; i++) {
        assert_int_equal(got[i].row, want[i].row);
        assert_int_equal(got[i].left, want[i].left);
        assert_int_equal(got[i].right, want[i].right);
        assert_true(got[i].score == want[i].score && got[i].left_score == want[i].left_score);
    }
}

static void test_choice_of_pairs(void **state)
{
    (void)state;
    static float score[2 * (ROWS + 1) * K];
    static dgm_pair want[ALL], found[3 * WIDTH], lefts[2 * WIDTH], heap[4 * WIDTH];
    int at[2 * WIDTH], differ = 0;
    dgm_rng rng = {77};
    for (int round = 0; round < 400; round++) {
        const int rows = 1 + round % ROWS, real = 1 + (int)(dgm_rng_unit(&rng) * K);
        for (int list = 0; list < 2 * (ROWS + 1); list++) {
            float *s = score + list * K;
            for (int i = 0; i < K; i++) {
                s[i] = (float)(-4 * dgm_rng_unit(&rng));
                if (round % 3 == 0) s[i] = roundf(s[i] * 2) / 2; // many equals
                if (i >= real) s[i] = -INFINITY;
            }
            qsort(s, K, sizeof *s, falling);
        }
        const dgm_pair_lists l = {score, K, round % 2, rows};
        int all = all_pairs(&l, NULL, want);
        const dgm_pair best = want[all < 3 * WIDTH ? all - 1 : 3 * WIDTH - 1];
        same_pairs(found, dgm_double_exact(&l, WIDTH, heap, found), want, all);
        all = all_pairs(&l, among_lefts, want);
        same_pairs(found, dgm_double_topk(&l, WIDTH, lefts, found, at), want, all);
        differ += want[all < 3 * WIDTH ? all - 1 : 3 * WIDTH - 1].score != best.score;
    }
    assert_true(differ > 20); // the two are not the same rule
}

// ---- whole searches -----------------------------------------------------------------------------

enum { LONGEST = 8, LIVE = 256, SOURCE = 3 };
static const int32_t source_ids[SOURCE] = {2, 3, TOY_EOS};

typedef struct path {
    int32_t tokens[LONGEST + 2]; // pairs, flat
    int pairs;
    float sum;
} path;

typedef struct whole {
    int32_t words[LONGEST + 2];
    int count;
    float sum, score;
} whole;

typedef struct oracle {
    const toy *m;
    dgm_exec *exec;
    dgm_state *state;
    int32_t slot;
    const dgm_model_info *info;
} oracle;

static void oracle_open(oracle *o, const toy *m)
{
    dgm_error err = {{0}};
    const dgm_limits l = {.slots = 1, .rows = 1, .source = SOURCE, .target = LONGEST};
    const dgm_source source = {source_ids, SOURCE};
    *o = (oracle){.m = m, .info = dgm_model_describe(m->model)};
    const dgm_bytes bytes = dgm_bytes_add(dgm_state_bytes(m->model, &l), dgm_bytes_both(1 << 16));
    assert_int_equal(dgm_exec_open(m->backend, bytes, &o->exec, &err), DGM_OK);
    assert_int_equal(dgm_state_open(m->model, o->exec, &l, &o->state, &err), DGM_OK);
    assert_int_equal(dgm_encode(o->state, 1, &source, &o->slot, &err), DGM_OK);
}

static void oracle_close(oracle *o)
{
    dgm_state_close(&o->state);
    dgm_exec_close(&o->exec);
}

// Log-probabilities of what may follow a path: left and right, [vocabulary] each.
static void distribution(oracle *o, const path *p, float *log_p)
{
    dgm_error err = {{0}};
    int32_t row, next;
    const int vocab = o->m->vocab;
    dgm_step_result out = {.rows = &next};
    assert_int_equal(dgm_start(o->state, 1, &o->slot, &row, &err), DGM_OK);
    for (int t = 0; t <= p->pairs; t++) {
        const dgm_step_row step = {row,
                                   {t ? p->tokens[2 * t - 2] : o->info->start,
                                    t ? p->tokens[2 * t - 1] : o->info->start_second}};
        assert_int_equal(dgm_step(o->state, 1, &step, &out, &err), DGM_OK);
        row = next;
    }
    const dgm_mark mark = dgm_exec_mark(o->exec);
    dgm_mat y = dgm_exec_mat(o->exec, 2, vocab);
    dgm_op_linear(o->exec, y, out.hidden, dgm_model_output(o->m->model), DGM_ACT_NONE, NULL);
    dgm_op_read(o->exec, log_p, y);
    dgm_exec_reset(o->exec, mark);
    dgm_retain(o->state, 0, NULL);
    for (int side = 0; side < 2; side++) {
        double z = 0;
        for (int v = 0; v < vocab; v++) z += exp((double)log_p[side * vocab + v]);
        for (int v = 0; v < vocab; v++) {
            float *x = &log_p[side * vocab + v];
            *x = (float)(*x - log(z));
            if (v == TOY_EOS || v == TOY_UNK || v == vocab - 1) *x = -INFINITY;
        }
    }
}

static whole close_path(const oracle *o, const path *p, int32_t left, int32_t right, float sum)
{
    path q = *p;
    int32_t places[LONGEST + 4];
    q.tokens[2 * q.pairs] = left;
    q.tokens[2 * q.pairs + 1] = right;
    whole w = {.sum = sum};
    w.count = dgm_double_unfold(o->info->order, q.tokens, q.pairs + 1, o->info->eos, places);
    for (int i = 0; i < w.count; i++) w.words[i] = q.tokens[places[i]];
    w.score = sum / (float)(w.count + 1);
    return w;
}

static int by_final(const void *a, const void *b)
{
    const whole *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score;
}

typedef struct scored {
    int hypo;
    int32_t left, right;
    float left_score, score;
} scored;

static int by_pair(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->score > y->score ? -1 : x->score < y->score;
}

static int by_left(const void *a, const void *b)
{
    const scored *x = a, *y = b;
    return x->left_score > y->left_score ? -1 : x->left_score < y->left_score;
}

static path live[LIVE], next_live[LIVE];
static scored lefts_all[LIVE * 16], pairs_all[LIVE * 16 * 16];
static whole done[LIVE * 64];

// Is the sentence done, by its policy? live: `count` that would go on.
static bool over(const dgm_search_config *c, int count, int finished)
{
    const int width = c->beam;
    float best = -INFINITY;
    for (int j = 0; j < count; j++)
        if (live[j].sum > best) best = live[j].sum;
    if (c->finish == DGM_FINISH_MARGIN) {
        float sum = -INFINITY;
        for (int i = 0; i < finished; i++)
            if (done[i].sum > sum) sum = done[i].sum;
        return finished >= c->nbest && sum - best >= c->margin;
    }
    if (c->finish == DGM_FINISH_FIRST)
        return finished >= (c->first > c->nbest ? c->first : c->nbest);
    if (finished < width) return false;
    const bool never = c->finish == DGM_FINISH_HUGGINGFACE_NEVER || c->finish == DGM_FINISH_HUGGINGFACE_NEVER_CUT;
    if (c->finish != DGM_FINISH_HUGGINGFACE && c->finish != DGM_FINISH_HUGGINGFACE_CUT && !never) return true;
    qsort(done, (size_t)finished, sizeof *done, by_final);
    const int longest = c->max_length + (c->finish == DGM_FINISH_HUGGINGFACE_NEVER);
    return best / (float)(never ? longest : 2 * live[0].pairs) <= done[width - 1].score;
}

// One generation of the reference; returns how many live on.
static int generation(oracle *o, int count, const dgm_search_config *config, int *finished)
{
    const int vocab = o->m->vocab, width = config->beam, max_length = config->max_length;
    const bool exact = config->double_exact;
    const bool shrinks = config->finish == DGM_FINISH_SHRINK || config->finish == DGM_FINISH_MARIAN;
    const int places = shrinks ? width - *finished : INT32_MAX;
    const int32_t eod = o->info->eos;
    static float log_p[LIVE][64];
    int lefts = 0, pairs = 0, kept = 0;
    for (int j = 0; j < count; j++) {
        distribution(o, &live[j], log_p[j]);
        for (int v = 0; v < vocab; v++)
            if (log_p[j][v] > -INFINITY)
                lefts_all[lefts++] =
                    (scored){.hypo = j, .left = v, .left_score = live[j].sum + log_p[j][v]};
    }
    qsort(lefts_all, (size_t)lefts, sizeof *lefts_all, by_left);
    if (!exact && lefts > 2 * width) lefts = 2 * width;
    for (int i = 0; i < lefts; i++)
        for (int v = 0; v < vocab; v++) {
            const float right = log_p[lefts_all[i].hypo][vocab + v];
            if (!(right > -INFINITY)) continue;
            pairs_all[pairs] = lefts_all[i];
            pairs_all[pairs].right = v;
            pairs_all[pairs++].score = lefts_all[i].left_score + right;
        }
    qsort(pairs_all, (size_t)pairs, sizeof *pairs_all, by_pair);
    if (pairs > 3 * width) pairs = 3 * width;
    const bool closing = 2 * live[0].pairs + 2 > max_length;
    bool ended[LIVE] = {false};
    for (int i = 0, seen = 0; i < pairs; i++) {
        const scored *c = &pairs_all[i];
        if (c->left == eod || c->right == eod) {
            const whole w = close_path(o, &live[c->hypo], c->left, c->right, c->score);
            if (w.count > max_length) continue;
            if (seen == places) break;
            if (seen++ >= width) continue;
            ended[c->hypo] = true;
            done[(*finished)++] = w;
            continue;
        }
        if (seen++ == places) break;
        if (closing || kept == width) continue;
        path p = live[c->hypo];
        p.tokens[2 * p.pairs] = c->left;
        p.tokens[2 * p.pairs++ + 1] = c->right;
        p.sum = c->score;
        next_live[kept++] = p;
    }
    for (int j = 0; closing && j < count; j++) {
        if (ended[j]) continue;
        const float end = live[j].sum + log_p[j][vocab + eod];
        whole best = close_path(o, &live[j], eod, eod, end + log_p[j][eod]);
        for (int v = 0; v < vocab && 2 * live[j].pairs < max_length; v++) {
            const whole w = close_path(o, &live[j], v, eod, end + log_p[j][v]);
            if (v != eod && w.score > best.score) best = w;
        }
        done[(*finished)++] = best;
    }
    memcpy(live, next_live, (size_t)kept * sizeof *live);
    const bool full = kept > 0 && 2 * live[0].pairs + 2 > max_length, endless = toy_endless((int)config->finish);
    if (kept == 0 || (!(full && endless) && over(config, kept, *finished))) return 0;
    if (!toy_forces_end((int)config->finish) || !full) return kept;
    for (int j = 0; j < kept; j++) { // the end is forced, for nothing, or there is none
        whole *w = &done[(*finished)++];
        *w = close_path(o, &live[j], eod, eod, live[j].sum);
        if (endless) w->score = w->sum / (float)w->count;
    }
    return 0;
}

// The rule, plainly: finished hypotheses best first into `done`, their number.
static int reference(oracle *o, const dgm_search_config *c)
{
    int finished = 0, count = 1;
    live[0] = (path){0};
    while (count > 0) count = generation(o, count, c, &finished);
    qsort(done, (size_t)finished, sizeof *done, by_final);
    return finished;
}

// Every sentence there is, with each of its ways to end.
static int enumerate(oracle *o, const path *p, int max_length, int count)
{
    const int vocab = o->m->vocab;
    const int32_t eod = o->info->eos;
    float log_p[64];
    distribution(o, p, log_p);
    for (int l = 0; l < vocab; l++)
        for (int r = 0; r < vocab; r++) {
            const float sum = p->sum + log_p[l] + log_p[vocab + r];
            if (!(sum > -INFINITY)) continue;
            if (l == eod || r == eod) {
                const whole w = close_path(o, p, l, r, sum);
                if (w.count <= max_length) done[count++] = w;
                continue;
            }
            path q = *p;
            q.tokens[2 * q.pairs] = l;
            q.tokens[2 * q.pairs++ + 1] = r;
            q.sum = sum;
            if (2 * q.pairs <= max_length) count = enumerate(o, &q, max_length, count);
        }
    return count;
}

static void compare(const toy *m, const dgm_search_config *c, int expected, const char *what)
{
    toy_search t;
    static toy_answer a;
    const dgm_search_request r = {.source = {source_ids, SOURCE}};
    toy_search_open(&t, c, &m, 1, NULL);
    toy_run(&t, &r, 1, &a);
    toy_search_close(&t);
    const int want = expected < c->nbest ? expected : c->nbest;
    if (a.count != want) fail_msg("%s: %d results, expected %d", what, a.count, want);
    for (int i = 0; i < want; i++) {
        const toy_hypothesis *h = &a.h[i];
        if (fabsf(h->score - done[i].score) > 1e-4f || fabsf(h->sum - done[i].sum) > 1e-3f)
            fail_msg("%s: result %d scores %f, expected %f", what, i, (double)h->score,
                     (double)done[i].score);
        float sum = 0;
        for (int k = 0; k <= h->count; k++) sum += h->words[k];
        assert_true(fabsf(sum - h->sum) < 1e-4f);
        const bool near_tie = (i > 0 && done[i - 1].score - done[i].score < 1e-5f) ||
                              (i + 1 < expected && done[i].score - done[i + 1].score < 1e-5f);
        if (!near_tie) {
            assert_int_equal(h->count, done[i].count);
            assert_memory_equal(h->tokens, done[i].words, (size_t)h->count * sizeof(int32_t));
        }
    }
}

static dgm_search_config pairs_config(int beam, int max_length)
{
    dgm_search_config c = toy_config(beam, DGM_FINISH_REFILL);
    c.search = "double";
    c.max_length = max_length;
    c.nbest = beam < TOY_NBEST ? beam : TOY_NBEST;
    c.word_scores = true;
    c.sentences = 2;
    return c;
}

static void test_against_copy(void **state)
{
    (void)state;
    for (int round = 0; round < 24; round++) {
        toy m;
        oracle o;
        char what[64];
        const toy_spec spec = {.vocab = 9,
                               .positions = 16,
                               .width = 8,
                               .heads = 2,
                               .seed = 100 + (uint64_t)round,
                               .gain = 1.2f,
                               .pairs = dgm_order_names[round % 3]};
        toy_open(&m, &spec);
        oracle_open(&o, &m);
        for (int beam = 1; beam <= 7; beam += 3) {
            dgm_search_config c = pairs_config(beam, 3 + round % 5);
            static const dgm_finish policies[] = {DGM_FINISH_REFILL, DGM_FINISH_SHRINK,
                                                  DGM_FINISH_MARGIN, DGM_FINISH_HUGGINGFACE,
                                                  DGM_FINISH_HUGGINGFACE_CUT,
                                                  DGM_FINISH_HUGGINGFACE_EARLY,
                                                  DGM_FINISH_HUGGINGFACE_EARLY_CUT,
                                                  DGM_FINISH_HUGGINGFACE_NEVER,
                                                  DGM_FINISH_HUGGINGFACE_NEVER_CUT,
                                                  DGM_FINISH_MARIAN,
                                                  DGM_FINISH_FIRST,  DGM_FINISH_FIRST,
                                                  DGM_FINISH_FIRST};
            c.double_exact = round % 2;
            const int list = c.nbest;
            for (int p = 0; p < 13; p++) {
                c.finish = policies[p];
                c.first = p == 11 ? 2 : p == 12 ? beam + 1 : 0;
                c.nbest = p < 10 ? list : 1; // first: 1, 2, and one more than the beam
                c.margin = 0.5f;
                snprintf(what, sizeof what, "seed %d, beam %d, policy %d", round, beam, p);
                compare(&m, &c, reference(&o, &c), what);
            }
        }
        oracle_close(&o);
        toy_close(&m);
    }
}

static void test_against_everything(void **state)
{
    (void)state;
    for (int round = 0; round < 6; round++) {
        toy m;
        oracle o;
        const toy_spec spec = {.vocab = 6, // two words
                               .positions = 16,
                               .width = 8,
                               .heads = 2,
                               .seed = 900 + (uint64_t)round,
                               .gain = 1.2f,
                               .pairs = dgm_order_names[round % 3]};
        toy_open(&m, &spec);
        oracle_open(&o, &m);
        dgm_search_config c = pairs_config(200, 5);
        c.double_exact = round % 2;
        const path nothing = {0};
        const int count = enumerate(&o, &nothing, c.max_length, 0);
        assert_true(count < 200 && count > 60); // the beam holds them all
        qsort(done, (size_t)count, sizeof *done, by_final);
        compare(&m, &c, count, "everything");
        oracle_close(&o);
        toy_close(&m);
    }
}

// ---- the rest -----------------------------------------------------------------------------------

static toy_answer first[FIXTURE_SENTENCES], second[FIXTURE_SENTENCES];

static void run_fixture(const fixture *f, const dgm_search_config *c, const dgm_search_request *r,
                        toy_answer *a)
{
    const toy m = {.backend = f->backend, .model = f->model, .vocab = f->vocabulary},
              *models[] = {&m};
    toy_search t;
    toy_search_open(&t, c, models, 1, NULL);
    const uint64_t before = dgm_mem_allocations();
    toy_run(&t, r, f->count, a);
    assert_int_equal(dgm_mem_allocations(), before);
    toy_search_close(&t);
}

// A forced beginning is there in every result, in any company.
static void test_prefix(void **state)
{
    (void)state;
    static const char *const names[] = {"double-bidirectional", "double-l2r", "double-ssru"};
    for (int n = 0; n < 3; n++) {
        fixture f;
        dgm_search_request r[FIXTURE_SENTENCES];
        fixture_open(&f, names[n], NULL);
        dgm_search_config c = pairs_config(4, 14);
        c.max_source = TOY_SOURCE;
        for (int length = 1; length <= 7; length += 3) {
            static const int32_t words[] = {5, 9, 4, 4, 17, 8, 1};
            for (int k = 0; k < f.count; k++)
                r[k] = (dgm_search_request){
                    .source = {f.sentence[k].source, f.sentence[k].source_count},
                    .prefix = words,
                    .prefix_count = length};
            run_fixture(&f, &c, r, first);
            c.sentences = 1;
            run_fixture(&f, &c, r, second);
            c.sentences = 2;
            for (int k = 0; k < f.count; k++) {
                assert_memory_equal(first[k].h, second[k].h,
                                    (size_t)first[k].count * sizeof *first[k].h);
                for (int i = 0; i < first[k].count; i++) {
                    assert_true(first[k].h[i].count >= length);
                    assert_memory_equal(first[k].h[i].tokens, words,
                                        (size_t)length * sizeof *words);
                }
            }
        }
        fixture_close(&f);
    }
}

// A forced end, alone and with a forced beginning.
static void test_suffix(void **state)
{
    (void)state;
    static const char *const names[] = {"double-bidirectional", "double-r2l", "transformer-r2l"};
    static const int32_t begin[] = {5, 9}, end[] = {4, 17, 8};
    for (int n = 0; n < 3; n++) {
        fixture f;
        dgm_error err = {{0}};
        dgm_vocab *vocab = NULL;
        dgm_surfaces *surfaces = NULL;
        dgm_constraint *c = NULL;
        fixture_open(&f, names[n], NULL);
        const dgm_pattern pattern = {.kind = DGM_PATTERN_SUFFIX, .tokens = end, .count = 3};
        // All three share one vocabulary for both sides.
        assert_int_equal(dgm_vocabulary_load(f.file, DGM_SOURCE, &vocab, NULL, &err), DGM_OK);
        assert_int_equal(dgm_surfaces_open(&surfaces, vocab, &err), DGM_OK);
        assert_int_equal(dgm_constraint_compile(&c, surfaces, &pattern, 1, 0, &err), DGM_OK);
        dgm_search_config config = pairs_config(4, 12);
        config.max_source = TOY_SOURCE;
        if (n == 2) config.search = "beam";
        const int both = n == 0 ? 2 : 0;
        dgm_search_request r[FIXTURE_SENTENCES];
        for (int k = 0; k < f.count; k++)
            r[k] =
                (dgm_search_request){.source = {f.sentence[k].source, f.sentence[k].source_count},
                                     .prefix = begin,
                                     .prefix_count = both,
                                     .constraint = c};
        run_fixture(&f, &config, r, first);
        for (int k = 0; k < f.count; k++)
            for (int i = 0; i < first[k].count; i++) {
                const toy_hypothesis *h = &first[k].h[i];
                assert_true(h->count >= 3 + (both ? 2 : 0));
                assert_memory_equal(h->tokens + h->count - 3, end, sizeof end);
                assert_memory_equal(h->tokens, begin, (size_t)both * sizeof *begin);
            }
        dgm_constraint_free(&c);
        dgm_surfaces_close(&surfaces);
        dgm_vocab_close(&vocab);
        fixture_close(&f);
    }
}

// Lengths: no result is shorter or longer than it may be.
static void test_lengths(void **state)
{
    (void)state;
    fixture f;
    dgm_search_request r[FIXTURE_SENTENCES];
    fixture_open(&f, "double-bidirectional", NULL);
    for (int k = 0; k < f.count; k++)
        r[k] = (dgm_search_request){.source = {f.sentence[k].source, f.sentence[k].source_count}};
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++)
        for (int length = 1; length <= 9; length++) {
            dgm_search_config c = pairs_config(3, length);
            c.max_source = TOY_SOURCE;
            c.finish = (dgm_finish)finish;
            c.min_length = length;
            run_fixture(&f, &c, r, first);
            for (int k = 0; k < f.count; k++)
                for (int i = 0; i < first[k].count; i++) {
                    const toy_hypothesis *h = &first[k].h[i];
                    if (h->score > -INFINITY && !toy_forces_end(finish))
                        assert_int_equal(h->count, length);
                    assert_true(h->count <= length);
                }
        }
    fixture_close(&f);
}

static dgm_status try_open(const char *name, const char *search, dgm_error *err)
{
    toy m;
    char file[128];
    snprintf(file, sizeof file, "tests/data/models/%s.gguf", name);
    toy_load(&m, file);
    dgm_search_config c = toy_config(1, DGM_FINISH_REFILL);
    c.search = search;
    c.iterations = 2;
    const dgm_limits l = dgm_search_limits(&c, dgm_model_describe(m.model));
    dgm_exec *exec = NULL;
    dgm_state *state = NULL;
    dgm_search *s = NULL;
    assert_int_equal(dgm_exec_open(m.backend,
                                   dgm_bytes_add(dgm_state_bytes(m.model, &l), dgm_bytes_both(1 << 20)),
                                   &exec, err),
                     DGM_OK);
    assert_int_equal(dgm_state_open(m.model, exec, &l, &state, err), DGM_OK);
    const dgm_search_part part = {state, 1.0f};
    const dgm_status st = dgm_search_open(&s, exec, &c, &part, 1, NULL, NULL, 0, err);
    dgm_search_close(&s);
    dgm_state_close(&state);
    dgm_exec_close(&exec);
    toy_close(&m);
    return st;
}

static void test_refusals(void **state)
{
    (void)state;
    dgm_error err = {{0}};
    static const char *const wrong[][2] = {
        {"double-l2r", "greedy"},      {"double-l2r", "beam"},
        {"double-l2r", "cube"},        {"cmlm-pre", "sample"},
        {"cmlm-pre", "beam"},          {"cmlm-pre", "cube"},
        {"cmlm-pre", "double"},        {"double-l2r", "mask-predict"},
        {"transformer-aan", "double"}, {"transformer-aan", "mask-predict"}};
    for (int i = 0; i < 10; i++) {
        assert_int_equal(try_open(wrong[i][0], wrong[i][1], &err), DGM_ERR_UNSUPPORTED);
        assert_true(strlen(err.text) > 20);
    }
    assert_int_equal(try_open("double-l2r", "double", &err), DGM_OK);
    assert_int_equal(try_open("cmlm-pre", "mask-predict", &err), DGM_OK);
    assert_int_equal(try_open("transformer-r2l", "beam", &err), DGM_OK);
}

// ---- sampling ----------------------------------------------------------------------------------

enum { DRAWN_VOCAB = 7, DRAWS = 64, SEEDS = 60 };

// Weights of the tokens of one side in the first step, whose logits are last[start, ...] + time[place, ...].
static void shares_of(const float *last, const float *time, int start, int place, double *share)
{
    for (int v = 0; v < DRAWN_VOCAB; v++)
        share[v] = exp((double)last[start * DRAWN_VOCAB + v] + (double)time[place * DRAWN_VOCAB + v]);
    // Never chosen: the two starts; denied: the unknown word, and an end that may not come yet.
    share[TOY_EOS] = share[TOY_UNK] = share[DRAWN_VOCAB - 1] = share[DRAWN_VOCAB - 2] = 0;
}

// Pairs come as often as the model says: the first and the second word, or the first and the last, of many draws.
static void try_sampling(const char *order, bool cool)
{
    enum { POSITIONS = 12 };
    float last[DRAWN_VOCAB * DRAWN_VOCAB], time[POSITIONS * DRAWN_VOCAB];
    dgm_rng rng = {91};
    toy m;
    long seen[DRAWN_VOCAB][DRAWN_VOCAB] = {{0}}, all = 0;
    for (int i = 0; i < DRAWN_VOCAB * DRAWN_VOCAB; i++) last[i] = 2.0f * (float)dgm_rng_unit(&rng);
    for (int i = 0; i < POSITIONS * DRAWN_VOCAB; i++) time[i] = (float)dgm_rng_unit(&rng);
    const toy_spec spec = {.vocab = DRAWN_VOCAB,
                           .positions = POSITIONS,
                           .heads = 1,
                           .last = last,
                           .time = time,
                           .pairs = order};
    toy_open(&m, &spec);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        dgm_search_config c = toy_config(DRAWS, DGM_FINISH_REFILL);
        c.search = "sample";
        c.pairs = true;
        c.nbest = DRAWS;
        c.seed = seed;
        c.min_length = 3; // so that all begin with a whole pair
        c.temperature = cool ? 0.5f : 0.0f;
        static toy_answer a;
        a = toy_translate(&m, &c);
        assert_int_equal(a.count, DRAWS);
        for (int i = 0; i < a.count; i++, all++) {
            const toy_hypothesis *h = &a.h[i];
            const bool both = strcmp(order, "bidirectional") == 0, right = strcmp(order, "r2l") == 0;
            assert_true(h->count >= 3);
            const int32_t one = right ? h->tokens[h->count - 1] : h->tokens[0];
            const int32_t two = both    ? h->tokens[h->count - 1]
                                : right ? h->tokens[h->count - 2]
                                        : h->tokens[1];
            seen[one][two]++;
        }
    }
    double left[DRAWN_VOCAB], right[DRAWN_VOCAB], zl = 0, zr = 0;
    shares_of(last, time, DRAWN_VOCAB - 1, 0, left);
    shares_of(last, time, TOY_EOS, 1, right);
    for (int v = 0; v < DRAWN_VOCAB; v++) {
        left[v] = pow(left[v], cool ? 2.0 : 1.0);
        right[v] = pow(right[v], cool ? 2.0 : 1.0);
        zl += left[v];
        zr += right[v];
    }
    for (int i = 0; i < DRAWN_VOCAB; i++)
        for (int k = 0; k < DRAWN_VOCAB; k++) {
            const double share = left[i] / zl * right[k] / zr, off = sqrt(share * (1 - share) / (double)all);
            if (fabs((double)seen[i][k] / (double)all - share) > 4.5 * off + 1e-9)
                fail_msg("%s: (%d, %d) %ld of %ld times, its share is %g", order, i, k, seen[i][k], all, share);
        }
    toy_close(&m);
}

static void test_sampling(void **state)
{
    (void)state;
    for (int cool = 0; cool < 2; cool++) {
        try_sampling("l2r", cool);
        try_sampling("r2l", cool);
        try_sampling("bidirectional", cool);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_folding),
        cmocka_unit_test(test_unfold_odd),
        cmocka_unit_test(test_choice_of_pairs),
        cmocka_unit_test(test_against_copy),
        cmocka_unit_test(test_against_everything),
        cmocka_unit_test(test_prefix),
        cmocka_unit_test(test_suffix),
        cmocka_unit_test(test_lengths),
        cmocka_unit_test(test_sampling),
        cmocka_unit_test(test_refusals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
