// SPDX-License-Identifier: MIT
// Algorithm 1 of Iglesias et al. (2018) against policy `mask`.
//
// The copy here is the paper's: one matrix of B rows and V columns per sentence, the best B cells of
// it at every step, cells with the end symbol stored and masked out, and a second stack that has
// the end score of every live row at every step, for sentences of which none made the best B. Its
// probabilities are teacher-forced steps of single rows. The search makes them for three sentences
// at once, with masked rows left out. Recurrent models and Transformers; a maximum length that cuts
// every row still gives a translation.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { WIDEST = 6, COLUMNS = 64, SENTENCES = 5 };

static const int32_t sources[SENTENCES][6] = {
    {5, 9, 12, 7, TOY_EOS}, {3, TOY_EOS}, {8, 8, 21, TOY_EOS}, {30, 4, 17, 6, 11, TOY_EOS},
    {14, 2, TOY_EOS}};
static const int lengths[SENTENCES] = {5, 2, 4, 6, 3};

typedef struct row {
    int32_t tokens[TOY_TOKENS];
    int count;
    float sum, score;
} row;

typedef struct copy {
    const toy *m;
    dgm_exec *exec;
    dgm_state *state;
    int32_t slot;
} copy;

static void copy_open(copy *c, const toy *m, int sentence)
{
    const dgm_limits limits = {.slots = 1, .rows = 2, .source = 8, .target = TOY_TOKENS};
    const dgm_source source = {sources[sentence], lengths[sentence]};
    dgm_error err = {{0}};
    const dgm_bytes bytes = dgm_bytes_add(dgm_state_bytes(m->model, &limits),
                                          dgm_rank_bytes(m->backend, 1, 1, m->vocab));
    *c = (copy){.m = m};
    assert_int_equal(dgm_exec_open(m->backend, bytes, &c->exec, &err), DGM_OK);
    assert_int_equal(dgm_state_open(m->model, c->exec, &limits, &c->state, &err), DGM_OK);
    assert_int_equal(dgm_encode(c->state, 1, &source, &c->slot, &err), DGM_OK);
}

static void copy_close(copy *c)
{
    dgm_state_close(&c->state);
    dgm_exec_close(&c->exec);
}

// Sums of all continuations of a row, the whole past fed again.
static void fill_row(copy *c, const row *r, float *sums)
{
    const dgm_model_info *info = dgm_model_describe(c->m->model);
    int32_t at, token[COLUMNS];
    float best[COLUMNS];
    dgm_error err = {{0}};
    dgm_step_result out;
    assert_int_equal(dgm_start(c->state, 1, &c->slot, &at, &err), DGM_OK);
    for (int i = 0; i <= r->count; i++) {
        const dgm_step_row step = {
            .parent = at, .token = {i ? r->tokens[i - 1] : info->start, DGM_NO_TOKEN}};
        int32_t next;
        out = (dgm_step_result){.rows = &next};
        if (dgm_step(c->state, 1, &step, &out, &err) != DGM_OK) fail_msg("%s", err.text);
        at = next;
        dgm_retain(c->state, 1, &at);
    }
    const dgm_rank_part part = {dgm_model_output(c->m->model), out.hidden, 1.0f};
    const dgm_terms terms = {.base = r->sum, .lambda = 1};
    const dgm_rank rank = {.parts = &part,
                           .part_count = 1,
                           .normalise = true,
                           .rows = 1,
                           .k = c->m->vocab,
                           .terms = &terms,
                           .never = info->never,
                           .never_count = info->never_count,
                           .score = best,
                           .token = token};
    dgm_op_rank(c->exec, &rank);
    dgm_retain(c->state, 0, NULL);
    for (int v = 0; v < c->m->vocab; v++) sums[v] = -INFINITY;
    for (int i = 0; i < c->m->vocab; i++)
        if (token[i] >= 0 && token[i] != info->unk) sums[token[i]] = best[i];
}

static void keep_best(row *best, bool *any, const row *r, float sum)
{
    row e = *r;
    e.sum = sum;
    e.score = sum / (float)(r->count + 1);
    if (!*any || e.score > best->score) *best = e;
    *any = true;
}

// The paper's algorithm for one sentence; *survived: an end was among the best B.
static row algorithm1(copy *c, int beam, int longest, bool *survived)
{
    static float p[WIDEST][COLUMNS];
    row q[WIDEST] = {{.count = 0}}, next[WIDEST], finished = {0}, stack = {0};
    int live = 1; // the first step has one row, or the beam would hold copies of one word
    bool any = false, stacked = false;
    for (int t = 0; t <= longest && live > 0; t++) {
        int kept = 0;
        for (int i = 0; i < live; i++) fill_row(c, &q[i], p[i]);
        for (int i = 0; i < live; i++)
            if (p[i][TOY_EOS] > -INFINITY) keep_best(&stack, &stacked, &q[i], p[i][TOY_EOS]);
        for (int n = 0; n < beam; n++) { // TopB over the whole matrix
            int bi = -1, bv = 0;
            for (int i = 0; i < live; i++)
                for (int v = 0; v < c->m->vocab; v++)
                    if (p[i][v] > -INFINITY && (bi < 0 || p[i][v] > p[bi][bv])) bi = i, bv = v;
            if (bi < 0) break;
            if (bv == TOY_EOS) {
                keep_best(&finished, &any, &q[bi], p[bi][bv]); // and masked: never a row again
            } else {
                next[kept] = q[bi];
                next[kept].tokens[next[kept].count++] = bv;
                next[kept++].sum = p[bi][bv];
            }
            p[bi][bv] = -INFINITY;
        }
        memcpy(q, next, sizeof q);
        live = kept;
    }
    *survived = any;
    assert_true(any || stacked);
    return any ? finished : stack;
}

static void check_model(const char *path, int *cut)
{
    toy m;
    toy_load(&m, path);
    assert_true(m.vocab <= COLUMNS);
    for (int beam = 1; beam <= WIDEST; beam++)
        for (int longest = 1; longest <= 9; longest += 2) {
            toy_search t;
            toy_answer a[SENTENCES];
            dgm_search_request r[SENTENCES];
            const toy *model = &m;
            dgm_search_config config = toy_config(beam, DGM_FINISH_MASK);
            config.max_length = longest;
            config.sentences = 3;
            toy_search_open(&t, &config, &model, 1, NULL);
            for (int k = 0; k < SENTENCES; k++)
                r[k] = (dgm_search_request){.source = {sources[k], lengths[k]}};
            toy_run(&t, r, SENTENCES, a);
            toy_search_close(&t);
            for (int k = 0; k < SENTENCES; k++) {
                copy c;
                bool survived;
                copy_open(&c, &m, k);
                const row want = algorithm1(&c, beam, longest, &survived);
                copy_close(&c);
                const toy_hypothesis *h = &a[k].h[0];
                *cut += !survived;
                if (h->count != want.count || h->finished != survived ||
                    memcmp(h->tokens, want.tokens, (size_t)h->count * sizeof *h->tokens) != 0 ||
                    fabsf(h->score - want.score) > 1e-4f)
                    fail_msg("%s, beam %d, length %d: sentence %d has score %g, not %g", path, beam,
                             longest, k, (double)h->score, (double)want.score);
            }
        }
    toy_close(&m);
}

static void as_the_paper_says(void **state)
{
    (void)state;
    static const char *const models[] = {
        "rnn-bahdanau", "rnn-conditional", "rnn-devlin", "transformer-pre-learned",
        "transformer-post-sinusoid"};
    int cut = 0;
    for (size_t i = 0; i < sizeof models / sizeof *models; i++) {
        char path[128];
        snprintf(path, sizeof path, "tests/data/models/%s.gguf", models[i]);
        check_model(path, &cut);
    }
    assert_true(cut > 20); // sentences that only the second stack could answer
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(as_the_paper_says)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
