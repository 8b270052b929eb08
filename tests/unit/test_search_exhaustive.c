// SPDX-License-Identifier: MIT
// Beam search against the list of all translations.
//
// A vocabulary of three words and at most three of them in a row make 40 translations. They are
// scored here one by one, with teacher-forced steps and a rank that keeps everything; a beam that
// is wider than the list must return it in order, under every policy. The same list tells whether
// prefixes, ensembles, scorers and vocabulary selection do what they should.
#define _GNU_SOURCE
#include "unit/search_toy.h"

enum { VOCAB = 6, WORDS = 3, LONGEST = 3, ALL = 40, WIDE = 160, SPARE = VOCAB - 1 };

// ---- the list of all translations ---------------------------------------------------------------

typedef struct listed {
    int32_t tokens[LONGEST + 4];
    int count;
    float sum, score;
    float words[LONGEST + 5];
    float align[(LONGEST + 5) * 4]; // with the end symbol's
} listed;

typedef struct walk {
    const toy *const *models;
    int parts;
    dgm_mix mix;
    dgm_exec *exec;
    dgm_state *states[DGM_PARTS_MAX];
    const dgm_candidates *candidates;
    bool force_end, endless, allow_unk;
    float penalty;
    int longest;
    int lead; // of the model's first tokens, those that count
    listed list[ALL * 8];
    int count;
} walk;

static void walk_rank(walk *w, const dgm_mat *hidden, float base, float *score)
{
    float best[VOCAB];
    int32_t token[VOCAB];
    dgm_rank_part parts[DGM_PARTS_MAX];
    for (int i = 0; i < w->parts; i++)
        parts[i] = (dgm_rank_part){dgm_model_output(w->models[i]->model), hidden[i],
                                   1.0f / (float)w->parts};
    const dgm_terms terms = {.base = base, .lambda = 1};
    const dgm_rank rank = {.parts = parts,
                           .part_count = w->parts,
                           .mix = w->mix,
                           .normalise = true,
                           .rows = 1,
                           .k = VOCAB,
                           .candidates = w->candidates ? &w->candidates : NULL,
                           .terms = &terms,
                           .score = best,
                           .token = token};
    dgm_op_rank(w->exec, &rank);
    for (int v = 0; v < VOCAB; v++) score[v] = -INFINITY;
    for (int i = 0; i < VOCAB; i++)
        if (token[i] >= 0) score[token[i]] = best[i];
}

static void walk_feed(walk *w, const int32_t *rows, int32_t token, int32_t *next, float *align,
                      dgm_mat *hidden)
{
    dgm_error err = {{0}};
    for (int i = 0; i < w->parts; i++) {
        const dgm_step_row step = {.parent = rows[i], .token = {token, DGM_NO_TOKEN}};
        float *const weights[1] = {align};
        dgm_step_result out = {.rows = &next[i], .align = i == 0 ? weights : NULL};
        if (dgm_step(w->states[i], 1, &step, &out, &err) != DGM_OK) fail_msg("%s", err.text);
        hidden[i] = out.hidden;
    }
}

static void walk_from(walk *w, const int32_t *rows, int32_t token, listed *path)
{
    int32_t next[DGM_PARTS_MAX];
    dgm_mat hidden[DGM_PARTS_MAX];
    float score[VOCAB];
    const float base = path->sum;
    walk_feed(w, rows, token, next, path->align + path->count * 4, hidden);
    walk_rank(w, hidden, base, score);
    listed *done = &w->list[w->count++];
    assert_true(w->count <= ALL * 8);
    *done = *path;
    done->sum = w->force_end && path->count == w->longest ? base : score[TOY_EOS];
    done->words[path->count] = done->sum - base;
    const bool ends = !w->endless || path->count < w->longest;
    done->score = dgm_length_normalise(done->sum, path->count + w->lead + (ends ? 1 : 0), w->penalty);
    if (path->count == w->longest) return;
    for (int v = w->allow_unk ? TOY_UNK : TOY_UNK + 1; v < SPARE; v++) {
        if (score[v] == -INFINITY) continue;
        path->tokens[path->count] = v;
        path->words[path->count++] = score[v] - base;
        path->sum = score[v];
        walk_from(w, next, v, path);
        path->count--;
        path->sum = base;
    }
}

static int by_score(const void *a, const void *b)
{
    const float x = ((const listed *)a)->score, y = ((const listed *)b)->score;
    return x > y ? -1 : x < y;
}

// All translations of toy_source, best first.
static void walk_all(walk *w)
{
    const dgm_limits limits = {.slots = 1, .rows = ALL * 8, .source = 8, .target = LONGEST + 8};
    dgm_error err = {{0}};
    dgm_bytes bytes = dgm_rank_bytes(w->models[0]->backend, 1, w->parts, VOCAB);
    for (int i = 0; i < w->parts; i++)
        bytes = dgm_bytes_add(bytes, dgm_state_bytes(w->models[i]->model, &limits));
    assert_int_equal(dgm_exec_open(w->models[0]->backend, bytes, &w->exec, &err), DGM_OK);
    const dgm_source source = {toy_source, 4};
    int32_t rows[DGM_PARTS_MAX];
    int32_t token = SPARE;
    const dgm_model_info *info = dgm_model_describe(w->models[0]->model);
    for (int i = 0; i < w->parts; i++) {
        int32_t slot;
        if (dgm_state_open(w->models[i]->model, w->exec, &limits, &w->states[i], &err) != DGM_OK)
            fail_msg("%s", err.text);
        assert_int_equal(dgm_encode(w->states[i], 1, &source, &slot, &err), DGM_OK);
        assert_int_equal(dgm_start(w->states[i], 1, &slot, &rows[i], &err), DGM_OK);
    }
    for (int i = 0; i < info->target_prefix_count; i++) { // the model's own first tokens
        dgm_mat hidden[DGM_PARTS_MAX];
        walk_feed(w, rows, token, rows, NULL, hidden);
        token = info->target_prefix[i];
    }
    listed path = {.count = 0};
    w->count = 0;
    walk_from(w, rows, token, &path);
    qsort(w->list, (size_t)w->count, sizeof *w->list, by_score);
    dgm_exec_close(&w->exec);
}

static void open_random(toy *m, uint64_t seed)
{
    const toy_spec spec = {
        .vocab = VOCAB, .positions = 12, .width = 16, .heads = 2, .seed = seed, .gain = 0.9f};
    toy_open(m, &spec);
}

static walk *new_walk(const toy *const *models, int parts)
{
    walk *w = dgm_calloc(1, sizeof *w);
    assert_non_null(w);
    w->models = models;
    w->parts = parts;
    w->penalty = 1;
    w->longest = LONGEST;
    return w;
}

static dgm_search_config wide_config(dgm_finish finish)
{
    dgm_search_config c = toy_config(WIDE, finish);
    c.nbest = ALL;
    c.max_length = LONGEST;
    c.sentences = 1;
    c.margin = 1e30f;
    c.word_scores = c.alignment = true;
    return c;
}

// Rounding of a sum: rank adds its parts in another order than the list.
static const float close_enough = 2e-5f;

static void compare_hypothesis(const toy_hypothesis *h, const listed *l)
{
    assert_int_equal(h->count, l->count);
    assert_memory_equal(h->tokens, l->tokens, (size_t)l->count * sizeof *l->tokens);
    assert_true(fabsf(h->sum - l->sum) < close_enough * 4);
    assert_true(fabsf(h->score - l->score) < close_enough * 4);
    for (int t = 0; t <= l->count; t++) assert_true(fabsf(h->words[t] - l->words[t]) < 1e-4f);
    for (int i = 0; i < l->count * 4; i++) assert_true(fabsf(h->align[i] - l->align[i]) < 1e-5f);
}

// Every translation is there once, at its score, and the list falls. (Scores within rounding of
// each other may change places, so lists are matched by tokens.)
static void compare_list(const toy_answer *a, const walk *w)
{
    assert_int_equal(a->count, w->count);
    for (int i = 0; i < w->count; i++) {
        const listed *l = &w->list[i];
        int at = 0;
        while (at < a->count &&
               (a->h[at].count != l->count ||
                memcmp(a->h[at].tokens, l->tokens, (size_t)l->count * sizeof *l->tokens) != 0))
            at++;
        assert_true(at < a->count);
        compare_hypothesis(&a->h[at], l);
        assert_true(at == i || fabsf(l->score - w->list[at].score) < close_enough);
        if (i > 0) assert_true(a->h[i].score <= a->h[i - 1].score);
    }
}

static bool starts_with(const listed *l, const int32_t *prefix, int count)
{
    return l->count >= count && (count == 0 || memcmp(l->tokens, prefix, (size_t)count * sizeof *prefix) == 0);
}

// The list as CTranslate2 has it behind forced tokens, which cost nothing: what ends there at once is none of it,
// unless the end is the best that could follow.
static void behind_prefix(walk *w, const int32_t *prefix, int count)
{
    float best = -INFINITY;
    int kept = 0;
    for (int i = 0; i < w->count; i++)
        if (w->list[i].count > count && starts_with(&w->list[i], prefix, count) &&
            w->list[i].words[count] > best)
            best = w->list[i].words[count];
    for (int i = 0; i < w->count; i++) {
        listed l = w->list[i];
        if (!starts_with(&l, prefix, count) || (l.count == count && l.words[count] < best)) continue;
        for (int t = 0; t < count; t++) {
            l.sum -= l.words[t];
            l.words[t] = 0;
        }
        const bool ends = !w->endless || l.count < w->longest;
        l.score = dgm_length_normalise(l.sum, l.count + w->lead + (ends ? 1 : 0), w->penalty);
        w->list[kept++] = l;
    }
    w->count = kept;
    qsort(w->list, (size_t)kept, sizeof *w->list, by_score);
}

// ---- tests ------------------------------------------------------------------------------------

static void test_every_policy(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 6; seed++) {
        toy m;
        open_random(&m, seed);
        const toy *models[] = {&m};
        walk *w = new_walk(models, 1);
        for (int finish = 0; finish < TOY_FINISH_ALIKE; finish++) {
            dgm_search_config c = wide_config((dgm_finish)finish);
            c.length_penalty = w->penalty = (float)(seed % 3) * 0.5f;
            w->force_end = toy_forces_end(finish);
            w->endless = toy_endless(finish);
            walk_all(w);
            assert_int_equal(w->count, ALL);
            const toy_answer a = toy_translate(&m, &c);
            compare_list(&a, w);
        }
        dgm_free(w);
        toy_close(&m);
    }
}

// The margin is a bound on raw sums: whatever it stops at, the best translation is found.
static void test_margin_is_exact_on_sums(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 12; seed++) {
        toy m;
        open_random(&m, seed);
        const toy *models[] = {&m};
        walk *w = new_walk(models, 1);
        w->penalty = 0;
        walk_all(w);
        dgm_search_config c = wide_config(DGM_FINISH_MARGIN);
        c.length_penalty = 0;
        c.nbest = 1;
        c.margin = 0;
        const toy_answer a = toy_translate(&m, &c);
        compare_hypothesis(&a.h[0], &w->list[0]);
        dgm_free(w);
        toy_close(&m);
    }
}

// Forced tokens score what the model gives them, under the policy of CTranslate2 nothing; the rest is searched freely.
static void test_prefix(void **state)
{
    (void)state;
    static const int32_t prefixes[][LONGEST] = {{3}, {4, 2}, {TOY_UNK, 3}, {2, 2, 4}};
    static const int counts[] = {1, 2, 2, 3};
    toy m;
    open_random(&m, 5);
    const toy *models[] = {&m};
    walk *w = new_walk(models, 1);
    for (int i = 0; i < 4; i++) {
        for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
            w->allow_unk = prefixes[i][0] == TOY_UNK;
            w->force_end = toy_forces_end(finish);
            w->endless = toy_endless(finish);
            walk_all(w);
            if (finish == DGM_FINISH_CTRANSLATE2) behind_prefix(w, prefixes[i], counts[i]);
            dgm_search_config c = wide_config((dgm_finish)finish);
            toy_search t;
            toy_answer a;
            toy_search_open(&t, &c, models, 1, NULL);
            const dgm_search_request r = {
                .source = {toy_source, 4}, .prefix = prefixes[i], .prefix_count = counts[i]};
            toy_run(&t, &r, 1, &a);
            int at = 0;
            for (int j = 0; j < w->count && at < a.count; j++) {
                if (!starts_with(&w->list[j], prefixes[i], counts[i])) continue;
                // Behind a forced unknown word the search is not allowed another one.
                bool again = false;
                for (int k = counts[i]; k < w->list[j].count; k++)
                    again |= w->list[j].tokens[k] == TOY_UNK;
                if (!again) compare_hypothesis(&a.h[at++], &w->list[j]);
            }
            assert_int_equal(at, a.count);
            toy_search_close(&t);
        }
    }
    dgm_free(w);
    toy_close(&m);
}

// Tokens that the model wants before every sentence are fed, not scored and not shown. Their number counts as
// length under the policies of transformers, and of CTranslate2, for which they are forced tokens.
static void test_model_prefix(void **state)
{
    (void)state;
    toy_spec spec = {.vocab = VOCAB,
                     .positions = 12,
                     .width = 16,
                     .heads = 2,
                     .seed = 9,
                     .gain = 0.9f,
                     .prefix = {4, 2},
                     .prefix_count = 2};
    toy m;
    toy_open(&m, &spec);
    const toy *models[] = {&m};
    walk *w = new_walk(models, 1);
    for (int finish = 0; finish < DGM_FINISH_COUNT; finish++) {
        w->force_end = toy_forces_end(finish);
        w->endless = toy_endless(finish);
        w->lead = toy_counts_lead(finish) ? spec.prefix_count : 0;
        walk_all(w);
        if (finish == DGM_FINISH_CTRANSLATE2) behind_prefix(w, NULL, 0);
        const dgm_search_config c = wide_config((dgm_finish)finish);
        const toy_answer a = toy_translate(&m, &c);
        compare_list(&a, w);
    }
    dgm_free(w);
    toy_close(&m);
}

// A model with itself is the model; two different ones are their mean, in both mixes.
static void test_ensembles(void **state)
{
    (void)state;
    toy m[2];
    open_random(&m[0], 3);
    open_random(&m[1], 4);
    const toy *twice[] = {&m[0], &m[0], &m[0]}, *both[] = {&m[0], &m[1]};
    dgm_search_config c = wide_config(DGM_FINISH_REFILL);
    const toy_answer alone = toy_translate(&m[0], &c);
    for (int mix = 0; mix < DGM_MIX_COUNT; mix++) {
        c.mix = (dgm_mix)mix;
        toy_search t;
        toy_answer a;
        const dgm_search_request r = {.source = {toy_source, 4}};
        for (int parts = 2; parts <= 3; parts++) {
            toy_search_open(&t, &c, twice, parts, NULL);
            toy_run(&t, &r, 1, &a);
            toy_search_close(&t);
            for (int i = 0; i < a.count; i++) {
                assert_int_equal(a.h[i].count, alone.h[i].count);
                assert_memory_equal(a.h[i].tokens, alone.h[i].tokens, sizeof a.h[i].tokens);
                assert_true(fabsf(a.h[i].sum - alone.h[i].sum) < 1e-5f);
            }
        }
        toy_search_open(&t, &c, both, 2, NULL);
        toy_run(&t, &r, 1, &a);
        toy_search_close(&t);
        walk *w = new_walk(both, 2);
        w->mix = (dgm_mix)mix;
        walk_all(w);
        compare_list(&a, w);
        dgm_free(w);
    }
    toy_close(&m[0]);
    toy_close(&m[1]);
}

// ---- scorers and selections of our own ----------------------------------------------------------

static const int32_t two_words[] = {TOY_EOS, 2, 4};
static const dgm_candidates subset = {.ids = two_words, .count = 3};
static int inside; // sentences admitted and not left

static dgm_status subset_admit(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *sentence,
                               dgm_error *err)
{
    (void)v, (void)active, (void)sentence, (void)err;
    inside++;
    return DGM_OK;
}

static const dgm_candidates *subset_select(dgm_vocabsel *v, int active, int first, dgm_mat hidden)
{
    (void)first;
    (void)v, (void)active;
    assert_true(hidden.rows >= 1);
    return &subset;
}

static void subset_leave(dgm_vocabsel *v, int active)
{
    (void)v, (void)active;
    inside--;
}

static void test_selection(void **state)
{
    (void)state;
    const dgm_vocabsel_ops ops = {
        .name = "subset", .admit = subset_admit, .select = subset_select, .leave = subset_leave};
    dgm_vocabsel vocabsel = {.ops = &ops};
    toy m;
    open_random(&m, 8);
    const toy *models[] = {&m};
    walk *w = new_walk(models, 1);
    w->candidates = &subset;
    walk_all(w);
    assert_int_equal(w->count, 1 + 2 + 4 + 8);
    const dgm_search_config c = wide_config(DGM_FINISH_SHRINK);
    toy_search t;
    toy_answer a;
    toy_search_open(&t, &c, models, 1, &vocabsel);
    const dgm_search_request r = {.source = {toy_source, 4}};
    toy_run(&t, &r, 1, &a);
    compare_list(&a, w);
    toy_search_close(&t);
    assert_int_equal(inside, 0);
    dgm_free(w);
    toy_close(&m);
}

// State: how often word 3 was used. Every use earns 0.5, a finished hypothesis 2 per use more.
static dgm_status bonus_admit(dgm_scorer *s, int active, const dgm_score_sentence *sentence,
                              int32_t *state, dgm_error *err)
{
    (void)s, (void)active, (void)err;
    assert_int_equal(sentence->source_count, 4);
    *state = 0;
    return DGM_OK;
}

static void bonus_terms(dgm_scorer *s, int active, int32_t state, dgm_terms *t)
{
    (void)s, (void)active, (void)state;
    static const int32_t ids[] = {3};
    static const float values[] = {0.5f};
    dgm_terms_add(t, ids, values, 1);
}

static int32_t bonus_advance(dgm_scorer *s, int active, int32_t state, int32_t token)
{
    (void)s, (void)active;
    return state + (token == 3);
}

static float bonus_finish(dgm_scorer *s, int active, int32_t state, float score)
{
    (void)s, (void)active;
    return score + 2.0f * (float)state;
}

static void test_scorer(void **state)
{
    (void)state;
    const dgm_scorer_ops ops = {.name = "bonus",
                                .admit = bonus_admit,
                                .terms = bonus_terms,
                                .advance = bonus_advance,
                                .finish = bonus_finish};
    dgm_scorer scorer = {.ops = &ops};
    toy m;
    open_random(&m, 2);
    const toy *models[] = {&m};
    walk *w = new_walk(models, 1);
    walk_all(w);
    for (int i = 0; i < w->count; i++) {
        listed *l = &w->list[i];
        int uses = 0;
        for (int t = 0; t < l->count; t++) uses += l->tokens[t] == 3;
        l->sum += 0.5f * (float)uses;
        l->score = dgm_length_normalise(l->sum + 2.0f * (float)uses, l->count + 1, 1);
        for (int t = 0; t < l->count; t++) l->words[t] += l->tokens[t] == 3 ? 0.5f : 0;
    }
    qsort(w->list, (size_t)w->count, sizeof *w->list, by_score);
    const dgm_search_config c = wide_config(DGM_FINISH_MASK);
    toy_search t;
    toy_answer a;
    toy_search_open(&t, &c, models, 1, NULL);
    dgm_search_close(&t.search); // again, with the scorer
    dgm_exec_close(&t.exec);
    dgm_error err = {{0}};
    assert_int_equal(dgm_exec_open(m.backend, toy_bytes(&c, models, 1), &t.exec, &err), DGM_OK);
    const dgm_limits l = dgm_search_limits(&c, dgm_model_describe(m.model));
    assert_int_equal(dgm_state_open(m.model, t.exec, &l, &t.states[0], &err), DGM_OK);
    const dgm_search_part part = {t.states[0], 1};
    assert_int_equal(dgm_search_open(&t.search, t.exec, &c, &part, 1, NULL, &scorer, 1, &err),
                     DGM_OK);
    const dgm_search_request r = {.source = {toy_source, 4}};
    toy_run(&t, &r, 1, &a);
    compare_list(&a, w);
    toy_search_close(&t);
    dgm_free(w);
    toy_close(&m);
}

// ---- rules about repetition ---------------------------------------------------------------------

static bool repeats(const listed *l, int n)
{
    for (int i = 0; i + n <= l->count; i++)
        for (int j = i + 1; j + n <= l->count; j++)
            if (memcmp(l->tokens + i, l->tokens + j, (size_t)n * sizeof *l->tokens) == 0) return true;
    return false;
}

// The list under the rules: what repeats n-grams goes, a token said before costs ln X.
static void apply_rules(walk *w, int no_repeat, float repetition)
{
    int kept = 0;
    for (int i = 0; i < w->count; i++) {
        listed l = w->list[i];
        if (no_repeat && repeats(&l, no_repeat)) continue;
        for (int t = 0; t < l.count && repetition > 0.0f; t++) {
            bool said = false;
            for (int k = 0; k < t; k++) said |= l.tokens[k] == l.tokens[t];
            if (!said) continue;
            l.words[t] -= logf(repetition);
            l.sum -= logf(repetition);
        }
        l.score = dgm_length_normalise(l.sum, l.count + 1, w->penalty);
        w->list[kept++] = l;
    }
    w->count = kept;
    qsort(w->list, (size_t)w->count, sizeof *w->list, by_score);
}

// Cube pruning shares rows between hypotheses, but never between those that the rules tell apart.
static void test_repetition(void **state)
{
    (void)state;
    static const struct {
        const char *search;
        bool exact, rescore;
        dgm_cube_key key;
    } searches[] = {{"beam", false, false, DGM_CUBE_TOKEN},
                    {"cube", false, false, DGM_CUBE_NONE},
                    {"cube", true, false, DGM_CUBE_TOKEN},
                    {"cube", false, true, DGM_CUBE_TOKEN},
                    {"cube", true, false, DGM_CUBE_STATE}};
    static const struct {
        int no_repeat;
        float repetition;
    } rules[] = {{1, 0.0f}, {2, 0.0f}, {0, 3.0f}, {2, 0.25f}};
    for (uint64_t seed = 1; seed <= 4; seed++) {
        toy m;
        open_random(&m, seed);
        const toy *models[] = {&m};
        walk *w = new_walk(models, 1);
        for (int i = 0; i < 4 * 5; i++) {
            const int rule = i % 4, how = i / 4;
            walk_all(w);
            apply_rules(w, rules[rule].no_repeat, rules[rule].repetition);
            assert_true(rules[rule].no_repeat == 0 || w->count < ALL);
            dgm_search_config c = wide_config(DGM_FINISH_REFILL);
            c.search = searches[how].search;
            c.cube_exact = searches[how].exact;
            c.rescore = searches[how].rescore;
            c.cube_key = searches[how].key;
            c.cube_distance = 0.5f;
            c.hidden = 16;
            c.no_repeat = rules[rule].no_repeat;
            c.repetition = rules[rule].repetition;
            const toy_answer a = toy_translate(&m, &c);
            compare_list(&a, w);
        }
        dgm_free(w);
        toy_close(&m);
    }
}

// ---- a selection by hidden vectors, in parts of a step -------------------------------------------

// Word 2 for a row whose first number is negative, word 4 for others; of all rows of a sentence.
typedef struct looker {
    toy_search *t;
    float *seen;
    int width, rows;
    dgm_candidates list;
    int32_t ids[3];
} looker;

static void looker_look(dgm_vocabsel *v, dgm_mat hidden)
{
    looker *l = v->data;
    l->rows = hidden.rows;
    l->width = hidden.cols;
    dgm_op_read(l->t->exec, l->seen, hidden);
}

static const dgm_candidates *looker_select(dgm_vocabsel *v, int place, int first, dgm_mat hidden)
{
    (void)place;
    looker *l = v->data;
    bool found[2] = {false, false};
    assert_true(first + hidden.rows <= l->rows);
    for (int i = first; i < first + hidden.rows; i++) found[l->seen[i * l->width] >= 0.0f] = true;
    int count = 0;
    l->ids[count++] = TOY_EOS;
    if (found[0]) l->ids[count++] = 2;
    if (found[1]) l->ids[count++] = 4;
    l->list = (dgm_candidates){.ids = l->ids, .count = count};
    return &l->list;
}

static void test_selection_in_parts(void **state)
{
    (void)state;
    const dgm_vocabsel_ops ops = {.name = "looker",
                                  .by_step = true,
                                  .admit = subset_admit,
                                  .look = looker_look,
                                  .select = looker_select,
                                  .leave = subset_leave};
    toy m[2];
    open_random(&m[0], 3);
    open_random(&m[1], 4);
    const toy *models[] = {&m[0], &m[1]};
    for (int run = 0; run < 8; run++) {
        const int parts = 1 + run % 2;
        toy_answer whole = {0};
        for (int most = 0; most <= 5; most++) {
            dgm_search_config c = wide_config(DGM_FINISH_REFILL);
            c.search = run < 2 ? "beam" : "cube";
            c.cube_exact = run >= 4;
            c.cube_key = run >= 6 ? DGM_CUBE_STATE : DGM_CUBE_TOKEN;
            c.cube_distance = 0.5f;
            c.beam = 12;
            c.nbest = 12;
            c.hidden = 16 * parts;
            c.max_rows = most;
            toy_search t;
            toy_answer a;
            looker l = {.t = &t, .seen = dgm_calloc(12 * 16, sizeof(float))};
            assert_non_null(l.seen);
            dgm_vocabsel vocabsel = {.ops = &ops, .data = &l, .part = parts - 1};
            toy_search_open(&t, &c, models, parts, &vocabsel);
            const dgm_search_request r = {.source = {toy_source, 4}};
            toy_run(&t, &r, 1, &a);
            a.steps = 0;
            if (most == 0) whole = a;
            assert_memory_equal(&a, &whole, sizeof a);
            toy_search_close(&t);
            dgm_free(l.seen);
        }
    }
    toy_close(&m[0]);
    toy_close(&m[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_policy), cmocka_unit_test(test_margin_is_exact_on_sums),
        cmocka_unit_test(test_prefix),       cmocka_unit_test(test_model_prefix),
        cmocka_unit_test(test_ensembles),    cmocka_unit_test(test_selection),
        cmocka_unit_test(test_scorer),       cmocka_unit_test(test_repetition),
        cmocka_unit_test(test_selection_in_parts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
