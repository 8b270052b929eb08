// SPDX-License-Identifier: MIT
// Mask-predict against a PyTorch copy of the same rule (training/dragoman_training/cmlm.py), and
// against itself in other company. With constraints: one iteration against all sentences that its choices can make,
// several never break what is demanded. In a lattice, with constraints and rules against repetition beside it: the same
// against all sentences of its words. Evidence ranks by the formula; alignments, ensembles, pruning and shortest
// lengths are what they are elsewhere. Of listed words alone, with a beginning, an end or more demanded: again the best
// of all sentences.
#define _GNU_SOURCE
#include "unit/lattice_toy.h"

#include "engine/engine_private.h"
#include "search/mask_private.h"

enum { LINES = 500, WORDS = 32 };

typedef struct line {
    int32_t words[WORDS];
    int count;
} line;

static line sources[LINES], expected[LINES];
static toy_answer answers[LINES], others[LINES];

// Lines of a table in which -1 ends each.
static int read_lines(const dgm_gguf *g, const char *name, line *out)
{
    const int32_t *values = NULL;
    int count = 0, n = 0;
    dgm_error err = {{0}};
    if (dgm_gguf_table(g, name, -1, -1, INT32_MAX, DGM_REQUIRED, &values, &count, &err) != DGM_OK)
        fail_msg("%s", err.text);
    memset(out, 0, LINES * sizeof *out);
    for (int i = 0; i < count; i++) {
        if (values[i] < 0) {
            n++;
            continue;
        }
        assert_true(n < LINES && out[n].count < WORDS);
        out[n].words[out[n].count++] = values[i];
    }
    return n;
}

static void translate(const toy *m, int lines, int iterations, int lengths, int sentences,
                      toy_answer *a)
{
    toy_search t;
    static dgm_search_request r[LINES];
    dgm_search_config c = toy_config(lengths, DGM_FINISH_REFILL);
    c.search = "mask-predict";
    c.iterations = iterations;
    c.nbest = lengths;
    c.word_scores = true;
    c.max_length = WORDS - 1;
    c.sentences = sentences;
    c.refine_tokens = sentences > 1 ? 512 : 0; // many targets a call, or the longest one
    for (int i = 0; i < lines; i++)
        r[i] = (dgm_search_request){.source = {sources[i].words, sources[i].count}};
    toy_search_open(&t, &c, &m, 1, NULL);
    const uint64_t before = dgm_mem_allocations();
    toy_run(&t, r, lines, a);
    assert_int_equal(dgm_mem_allocations(), before);
    toy_search_close(&t);
}

static void check_model(const char *name)
{
    static const int settings[][2] = {{1, 1}, {4, 1}, {10, 1}, {4, 3}};
    toy m;
    dgm_gguf *dump = NULL;
    dgm_error err = {{0}};
    char path[128];
    snprintf(path, sizeof path, "tests/data/models/%s.gguf", name);
    toy_load(&m, path);
    snprintf(path, sizeof path, "tests/data/models/%s.cmlm.gguf", name);
    if (dgm_gguf_open(&dump, path, &err) != DGM_OK) fail_msg("%s", err.text);
    const int lines = read_lines(dump, "lines.source", sources);
    assert_true(lines >= 20);
    for (int k = 0; k < 4; k++) {
        const int iterations = settings[k][0], lengths = settings[k][1];
        char table[32];
        snprintf(table, sizeof table, "lines.%d.%d", iterations, lengths);
        assert_int_equal(read_lines(dump, table, expected), lines);
        translate(&m, lines, iterations, lengths, 1, answers);
        int same = 0;
        for (int i = 0; i < lines; i++) {
            const toy_hypothesis *h = &answers[i].h[0];
            same += h->count == expected[i].count &&
                    memcmp(h->tokens, expected[i].words, (size_t)h->count * sizeof(int32_t)) == 0;
            assert_int_equal(answers[i].count, lengths);
            float sum = 0;
            for (int j = 0; j < h->count; j++) sum += h->words[j];
            assert_true(fabsf(sum - h->sum) < 1e-4f);
            assert_true(fabsf(h->score - sum / (float)h->count) < 1e-5f);
        }
        if (same < (lines * 99 + 99) / 100)
            fail_msg("%s, T = %d, l = %d: %d of %d lines are PyTorch's", name, iterations, lengths,
                     same, lines);
        print_message("%s: T = %2d, l = %d: %d of %d lines as PyTorch\n", name, iterations, lengths,
                      same, lines);
        translate(&m, lines, iterations, lengths, 9, others);
        for (int i = 0; i < lines; i++)
            assert_memory_equal(answers[i].h, others[i].h,
                                (size_t)answers[i].count * sizeof *answers[i].h);
    }
    dgm_gguf_close(&dump);
    toy_close(&m);
}

static void test_against_torch(void **state)
{
    (void)state;
    check_model("cmlm-post");
    check_model("cmlm-pre");
    check_model("cmlm-pieces");
}

// ---- with other features -----------------------------------------------------------------------

enum { PLACES = 4, MOST_VOCAB = 512 };

typedef struct ground {
    toy m;
    dgm_vocab *vocab;
    dgm_surfaces *surfaces;
    int lines;
} ground;

static void ground_open(ground *g)
{
    dgm_gguf *dump = NULL;
    dgm_error err = {{0}};
    toy_load(&g->m, "tests/data/models/cmlm-pre.gguf");
    assert_int_equal(dgm_gguf_open(&dump, "tests/data/models/cmlm-pre.cmlm.gguf", &err), DGM_OK);
    g->lines = read_lines(dump, "lines.source", sources);
    if (g->lines > 20) g->lines = 20;
    dgm_gguf_close(&dump);
    assert_int_equal(dgm_vocabulary_load(g->m.file, DGM_TARGET, &g->vocab, NULL, &err), DGM_OK);
    assert_int_equal(dgm_surfaces_open(&g->surfaces, g->vocab, &err), DGM_OK);
    assert_true(g->m.vocab <= MOST_VOCAB);
}

static void ground_close(ground *g)
{
    dgm_surfaces_close(&g->surfaces);
    dgm_vocab_close(&g->vocab);
    toy_close(&g->m);
}

static dgm_search_config config_of(int iterations, int lengths, int longest)
{
    dgm_search_config c = toy_config(lengths, DGM_FINISH_REFILL);
    c.search = "mask-predict";
    c.iterations = iterations;
    c.nbest = lengths;
    c.word_scores = true;
    c.max_length = longest;
    c.sentences = 1;
    c.max_source = TOY_SOURCE;
    return c;
}

static toy_answer ask_of(const ground *g, const dgm_search_config *c, const dgm_search_request *r, int parts,
                         dgm_vocabsel *vocabsel)
{
    const toy *models[] = {&g->m, &g->m};
    toy_search t;
    toy_answer a;
    toy_search_open(&t, c, models, parts, vocabsel);
    toy_run(&t, r, 1, &a);
    toy_search_close(&t);
    return a;
}

static toy_answer ask(const ground *g, const dgm_search_config *c, const dgm_search_request *r, int parts)
{
    return ask_of(g, c, r, parts, NULL);
}

typedef struct demand {
    int32_t term[2], ban[2], begin, end;
    int term_count, begin_count, end_count;
    dgm_constraint *c;
} demand;

// Words that are no control tokens.
static int32_t draw_word(const ground *g, dgm_rng *rng)
{
    for (;;) {
        const int32_t w = (int32_t)(dgm_rng_next(rng) % (uint64_t)g->m.vocab);
        const dgm_model_info *info = dgm_model_describe(g->m.model);
        bool usable = w != info->eos && w != info->unk && w != info->mask && !dgm_vocab_is_control(g->vocab, w);
        for (int i = 0; i < info->never_count; i++) usable &= info->never[i] != w;
        if (usable) return w;
    }
}

static void draw_demand(const ground *g, dgm_rng *rng, demand *d)
{
    dgm_error err;
    *d = (demand){.term_count = 1 + (int)(dgm_rng_next(rng) % 2), .begin_count = (int)(dgm_rng_next(rng) % 2)};
    for (int i = 0; i < 2; i++) {
        d->term[i] = draw_word(g, rng);
        d->ban[i] = draw_word(g, rng);
    }
    d->begin = draw_word(g, rng);
    const dgm_pattern p[] = {{.tokens = d->term, .count = d->term_count},
                             {.kind = DGM_PATTERN_FORBID, .tokens = d->ban, .count = 1}};
    if (dgm_constraint_compile(&d->c, g->surfaces, p, 2, 1, &err) != DGM_OK) fail_msg("%s", err.text);
}

static bool has_it(const demand *d, const int32_t *words, int count)
{
    bool term = false, ban = false;
    for (int i = 0; i < count; i++) {
        ban |= words[i] == d->ban[0];
        term |= i + d->term_count <= count && memcmp(words + i, d->term, (size_t)d->term_count * sizeof *words) == 0;
    }
    if (d->end_count && words[count - 1] != d->end) return false;
    return term && !ban && (d->begin_count == 0 || words[0] == d->begin);
}

// What the model says of every word at every place of `count` masks; list: of these words, NULL: of all.
static void all_scores(const ground *g, int which, int count, const dgm_candidates *list,
                       float score[PLACES][MOST_VOCAB])
{
    dgm_error err = {{0}};
    dgm_exec *x = NULL;
    dgm_state *state = NULL;
    const dgm_search_config c = config_of(1, 1, PLACES);
    const dgm_model_info *info = dgm_model_describe(g->m.model);
    const dgm_limits l = dgm_search_limits(&c, info);
    const toy *models[] = {&g->m};
    assert_int_equal(dgm_exec_open(g->m.backend, toy_bytes(&c, models, 1), &x, &err), DGM_OK);
    assert_int_equal(dgm_state_open(g->m.model, x, &l, &state, &err), DGM_OK);
    const dgm_source source = {sources[which].words, sources[which].count};
    int32_t slot, ids[PLACES], wanted[PLACES], token[PLACES];
    static int32_t watch[PLACES * MOST_VOCAB];
    static float watched[PLACES * MOST_VOCAB];
    float top[PLACES];
    dgm_terms terms[PLACES];
    const dgm_candidates *lists[PLACES];
    dgm_mat hidden;
    assert_int_equal(dgm_encode(state, 1, &source, &slot, &err), DGM_OK);
    for (int i = 0; i < count; i++) {
        ids[i] = info->mask;
        wanted[i] = i;
        lists[i] = list;
        terms[i] = (dgm_terms){.lambda = 1};
        for (int w = 0; w < g->m.vocab; w++) watch[i * g->m.vocab + w] = w;
    }
    const dgm_refine_target t = {.slot = slot, .ids = ids, .count = count, .wanted = wanted, .wanted_count = count};
    assert_int_equal(dgm_refine(state, 1, &t, &hidden, &err), DGM_OK);
    const dgm_rank_part part = {dgm_model_output(g->m.model), hidden, 1.0f};
    dgm_op_rank(x, &(dgm_rank){.parts = &part,
                               .part_count = 1,
                               .normalise = true,
                               .rows = count,
                               .candidates = list ? lists : NULL,
                               .terms = terms,
                               .k = 1,
                               .score = top,
                               .token = token,
                               .watch_count = g->m.vocab,
                               .watch = watch,
                               .watch_score = watched});
    assert_int_equal(dgm_exec_status(x, &err), DGM_OK);
    for (int i = 0; i < count; i++) memcpy(score[i], watched + i * g->m.vocab, (size_t)g->m.vocab * sizeof(float));
    dgm_state_close(&state);
    dgm_exec_close(&x);
}

// Words that may be chosen: the best that are allowed at all, and those that are named.
static int list_words(const ground *g, const demand *d, const float *score, int32_t *list)
{
    const dgm_model_info *info = dgm_model_describe(g->m.model);
    int count = 0;
    while (count < DGM_MASK_BEST) {
        int best = -1;
        for (int w = 0; w < g->m.vocab; w++) {
            bool taken = w == info->eos || w == info->unk;
            for (int i = 0; i < info->never_count; i++) taken |= info->never[i] == w;
            for (int i = 0; i < count; i++) taken |= list[i] == w;
            taken |= !(score[w] > -INFINITY);
            if (!taken && (best < 0 || score[w] > score[best])) best = w;
        }
        if (best < 0) break; // of a short list
        list[count++] = best;
    }
    for (int i = 0; i < d->term_count; i++) list[count++] = d->term[i];
    if (d->begin_count) list[count++] = d->begin;
    if (d->end_count) list[count++] = d->end;
    return count;
}

static double best_of_all(const ground *g, const demand *d, int which, int count, const dgm_candidates *listed)
{
    static float score[PLACES][MOST_VOCAB];
    int32_t list[PLACES][DGM_MASK_BEST + 5];
    int counts[PLACES], total = 1;
    double best = -INFINITY;
    all_scores(g, which, count, listed, score);
    for (int i = 0; i < count; i++) total *= counts[i] = list_words(g, d, score[i], list[i]);
    for (int k = 0; k < total; k++) {
        int32_t words[PLACES];
        double sum = 0;
        for (int i = 0, rest = k; i < count; rest /= counts[i++]) {
            words[i] = list[i][rest % counts[i]];
            sum += (double)score[i][words[i]];
        }
        if (has_it(d, words, count) && sum > best) best = sum;
    }
    return best;
}

static void test_demands(void **state)
{
    (void)state;
    ground g = {0};
    dgm_rng rng = {17};
    ground_open(&g);
    for (int n = 0; n < 60; n++) {
        demand d;
        const int which = n % g.lines;
        draw_demand(&g, &rng, &d);
        const dgm_search_request r = {.source = {sources[which].words, sources[which].count},
                                      .prefix = d.begin_count ? &d.begin : NULL,
                                      .prefix_count = d.begin_count,
                                      .constraint = d.c};
        dgm_search_config c = config_of(1, 3, PLACES);
        toy_answer a = ask(&g, &c, &r, 1);
        const bool impossible = d.begin_count && d.begin == d.ban[0]; // or the term is forbidden
        for (int i = 0; i < a.count; i++) {
            const toy_hypothesis *h = &a.h[i];
            if (!(h->sum > -INFINITY)) {
                assert_true(impossible || d.term[0] == d.ban[0] || d.term[1] == d.ban[0]);
                continue;
            }
            assert_true(has_it(&d, h->tokens, h->count));
            const double best = best_of_all(&g, &d, which, h->count, NULL);
            if (fabs(best - (double)h->sum) > 1e-3)
                fail_msg("demand %d, %d words: %g found, %g is best", n, h->count, (double)h->sum, best);
        }
        c = config_of(5, 3, WORDS - 1);
        a = ask(&g, &c, &r, 1);
        for (int i = 0; i < a.count; i++)
            if (a.h[i].sum > -INFINITY) assert_true(has_it(&d, a.h[i].tokens, a.h[i].count));
        dgm_constraint_free(&d.c);
    }
    ground_close(&g);
}

// ---- of listed words ---------------------------------------------------------------------------

// SIDES: nothing, a beginning, an end, both; and a term and what is forbidden.
enum { LISTED = 6, LISTS = 2, SIDES = 5 };

// A selection as a shortlist makes it, or clusters, which have another list for every iteration. What a sentence
// needs besides it must be told.
typedef struct listing {
    int lists;
    int32_t own[LISTS][LISTED], eos;
    int asked;
    bool brought[MOST_VOCAB], ever[MOST_VOCAB];
    int32_t ids[MOST_VOCAB];
    dgm_candidates list;
} listing;

static dgm_status admit_listing(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *s, dgm_error *err)
{
    listing *x = v->data;
    (void)active, (void)err;
    memset(x->brought, 0, sizeof x->brought);
    x->asked = 0;
    x->brought[x->eos] = true;
    for (int i = 0; i < s->needed_count; i++) x->brought[s->needed[i]] = true;
    return DGM_OK;
}

static const dgm_candidates *select_listing(dgm_vocabsel *v, int active, int first, dgm_mat hidden)
{
    listing *x = v->data;
    const int32_t *own = x->own[x->asked++ % x->lists];
    (void)active, (void)first, (void)hidden;
    x->list = (dgm_candidates){.ids = x->ids};
    for (int32_t w = 0; w < MOST_VOCAB; w++) {
        bool in = x->brought[w];
        for (int i = 0; i < LISTED; i++) in |= own[i] == w;
        if (in) x->ids[x->list.count++] = w;
        x->ever[w] |= in;
    }
    return &x->list;
}

static void draw_listing(const ground *g, dgm_rng *rng, int lists, listing *x)
{
    *x = (listing){.lists = lists, .eos = dgm_model_describe(g->m.model)->eos};
    for (int l = 0; l < lists; l++)
        for (int i = 0; i < LISTED; i++) x->own[l][i] = draw_word(g, rng);
}

static void draw_sides(const ground *g, dgm_rng *rng, int sides, demand *d)
{
    dgm_error err;
    *d = (demand){.ban = {-1, -1}, .begin_count = sides & 1, .end_count = sides >> 1};
    d->begin = draw_word(g, rng);
    d->end = draw_word(g, rng);
    const dgm_pattern p = {.kind = DGM_PATTERN_SUFFIX, .tokens = &d->end, .count = 1};
    if (d->end_count) assert_int_equal(dgm_constraint_compile(&d->c, g->surfaces, &p, 1, 0, &err), DGM_OK);
}

// One iteration makes the best of all sentences of a length; several use listed words alone and keep what is demanded.
static void try_listed(const ground *g, const demand *d, int which, listing *x, int iterations)
{
    static const dgm_vocabsel_ops whole = {.name = "list", .admit = admit_listing, .select = select_listing};
    static const dgm_vocabsel_ops by_step = {
        .name = "step", .by_step = true, .admit = admit_listing, .select = select_listing};
    dgm_vocabsel v = {.ops = x->lists > 1 ? &by_step : &whole, .data = x};
    const dgm_search_request r = {.source = {sources[which].words, sources[which].count},
                                  .prefix = d->begin_count ? &d->begin : NULL,
                                  .prefix_count = d->begin_count,
                                  .constraint = d->c};
    dgm_search_config c = config_of(iterations, 3, PLACES);
    if (x->lists > 1) c.refine_tokens = 3 * PLACES; // all lengths in one call: a list for each iteration
    memset(x->ever, 0, sizeof x->ever);
    const toy_answer a = ask_of(g, &c, &r, 1, &v);
    for (int i = 0; i < a.count; i++) {
        const toy_hypothesis *h = &a.h[i];
        if (!(h->sum > -INFINITY)) {
            assert_true(d->ban[0] >= 0); // else there is nothing that cannot be met
            continue;
        }
        for (int k = 0; k < h->count; k++) assert_true(x->ever[h->tokens[k]]);
        assert_true(has_it(d, h->tokens, h->count));
        const double best = iterations == 1 ? best_of_all(g, d, which, h->count, &x->list) : (double)h->sum;
        if (fabs(best - (double)h->sum) > 1e-3)
            fail_msg("line %d, %d words: %g found, %g is best", which, h->count, (double)h->sum, best);
    }
}

static void test_listed(void **state)
{
    (void)state;
    ground g = {0};
    dgm_rng rng = {29};
    ground_open(&g);
    for (int n = 0; n < 12 * SIDES; n++) {
        demand d;
        static listing x;
        if (n % SIDES < SIDES - 1)
            draw_sides(&g, &rng, n % SIDES, &d);
        else
            draw_demand(&g, &rng, &d);
        for (int lists = 1; lists <= LISTS; lists++) {
            draw_listing(&g, &rng, lists, &x);
            try_listed(&g, &d, n % g.lines, &x, 1);
            try_listed(&g, &d, n % g.lines, &x, 5);
        }
        dgm_constraint_free(&d.c);
    }
    ground_close(&g);
}

// ---- in a lattice ------------------------------------------------------------------------------

enum { LATTICE_WORDS = 3, NO_REPEAT = 1, REPETITION = 2, DEMANDS = 4, RULES = 8 };

typedef struct maze {
    int rules;
    int32_t words[LATTICE_WORDS];
    dgm_lattice *l;
    dgm_walk *walk; // NULL: nothing meets the demands
    int32_t term;
} maze;

static const float lattice_weight = 0.5f, repetition = 1.7f;

static void draw_maze(const ground *g, dgm_rng *rng, int rules, maze *z)
{
    dgm_constraint *c = NULL;
    dgm_lattice *one = NULL, *some = NULL;
    dgm_error err;
    *z = (maze){.rules = rules};
    for (int i = 0; i < LATTICE_WORDS; i++)
        do z->words[i] = draw_word(g, rng);
        while ((i > 0 && z->words[i] == z->words[i - 1]) || (i > 1 && z->words[i] == z->words[0]));
    z->term = z->words[dgm_rng_next(rng) % LATTICE_WORDS];
    z->l = lattice_toy(rng, PLACES + 1, z->words, LATTICE_WORDS, 4);
    const dgm_pattern p = {.tokens = &z->term, .count = 1};
    if (rules & DEMANDS) assert_int_equal(dgm_constraint_compile(&c, g->surfaces, &p, 1, 1, &err), DGM_OK);
    assert_int_equal(dgm_lattice_determine(z->l, true, 1000, &one, &err), DGM_OK);
    assert_int_equal(dgm_walk_limit(one, c, NULL, 0, 1000, &some, &err), DGM_OK);
    const int32_t eos = dgm_model_describe(g->m.model)->eos;
    assert_int_equal(dgm_walk_make(&z->walk, some, eos, lattice_weight, &err), DGM_OK);
    assert_int_equal(dgm_walk_measure(z->walk, &err), DGM_OK);
    dgm_lattice_close(&one);
    dgm_lattice_close(&some);
    dgm_constraint_free(&c);
}

// What the rules add to the sum of a sentence; -inf: they forbid it.
static double judge(const maze *z, const int32_t *words, int count)
{
    double add = (double)lattice_weight * lattice_toy_score(z->l, words, count);
    bool has = false;
    for (int i = 0; i < count; i++) {
        bool said = false, again = false;
        has |= words[i] == z->term;
        for (int k = 0; k < i; k++) {
            said |= words[k] == words[i];
            again |= k > 0 && words[k] == words[i] && words[k - 1] == words[i - 1];
        }
        if (z->rules & REPETITION && said) add -= log((double)repetition);
        if (z->rules & NO_REPEAT && again) return -INFINITY;
    }
    return z->rules & DEMANDS && !has ? -INFINITY : add;
}

static double best_path(const ground *g, const maze *z, int which, int count)
{
    static float score[PLACES][MOST_VOCAB];
    double best = -INFINITY;
    int total = 1;
    all_scores(g, which, count, NULL, score);
    for (int i = 0; i < count; i++) total *= LATTICE_WORDS;
    for (int k = 0; k < total; k++) {
        int32_t words[PLACES];
        double sum = 0;
        for (int i = 0, rest = k; i < count; i++, rest /= LATTICE_WORDS) {
            words[i] = z->words[rest % LATTICE_WORDS];
            sum += (double)score[i][words[i]];
        }
        best = fmax(best, sum + judge(z, words, count));
    }
    return best;
}

// Two words or more: what comes back has the model's sum, word by word, and the lattice's.
static void check_path(const ground *g, const maze *z, int which, const toy_hypothesis *h, bool once)
{
    assert_true(judge(z, h->tokens, h->count) > -(double)INFINITY);
    float sum = 0;
    for (int i = 0; i <= h->count; i++) sum += h->words[i];
    assert_true(fabsf(sum - h->sum) < 1e-3f);
    const double best = once ? best_path(g, z, which, h->count) : 0;
    if (once && fabs(best - (double)h->sum) > 1e-3)
        fail_msg("line %d, rules %d, %d words: %g found, %g is best", which, z->rules, h->count, (double)h->sum, best);
}

static void test_lattices(void **state)
{
    (void)state;
    ground g = {0};
    dgm_rng rng = {23};
    ground_open(&g);
    for (int n = 0; n < 8 * RULES; n++) {
        maze z;
        const int which = n % g.lines;
        draw_maze(&g, &rng, n % RULES, &z);
        for (int iterations = 1; iterations <= 6; iterations += 5) {
            dgm_search_config c = config_of(iterations, PLACES, PLACES);
            c.no_repeat = z.rules & NO_REPEAT ? 2 : 0;
            c.repetition = z.rules & REPETITION ? repetition : 0.0f;
            const dgm_search_request r = {.source = {sources[which].words, sources[which].count}, .walk = z.walk};
            const toy_answer a = ask(&g, &c, &r, 1);
            int lengths = 0;
            for (int k = 1; k <= PLACES; k++)
                lengths += dgm_walk_ends_in(z.walk, 0, k) && best_path(&g, &z, which, k) > -(double)INFINITY;
            if (lengths > 0) assert_int_equal(a.count, lengths); // of each a translation
            for (int i = 0; i < a.count && lengths > 0; i++) check_path(&g, &z, which, &a.h[i], iterations == 1);
        }
        dgm_lattice_close(&z.l);
        dgm_walk_free(&z.walk);
    }
    ground_close(&g);
}

// Without a lattice: no n-gram twice, and every word that comes again pays.
static void test_repetition(void **state)
{
    (void)state;
    ground g = {0};
    ground_open(&g);
    for (int which = 0; which < g.lines; which++)
        for (int n = 1; n <= 3; n++) {
            dgm_search_config c = config_of(4, 3, 12);
            c.no_repeat = n;
            const dgm_search_request r = {.source = {sources[which].words, sources[which].count}};
            const toy_answer a = ask(&g, &c, &r, 1);
            for (int i = 0; i < a.count; i++) {
                const toy_hypothesis *h = &a.h[i];
                assert_true(h->sum > -INFINITY);
                for (int x = 0; x + n <= h->count; x++)
                    for (int y = x + 1; y + n <= h->count; y++)
                        assert_true(memcmp(h->tokens + x, h->tokens + y, (size_t)n * sizeof *h->tokens) != 0);
            }
        }
    ground_close(&g);
}

// Two members that are the same model say what one says; the shortest length holds; a narrow beam leaves the best.
static void test_settings(void **state)
{
    (void)state;
    ground g = {0};
    ground_open(&g);
    for (int which = 0; which < g.lines; which++) {
        const dgm_search_request r = {.source = {sources[which].words, sources[which].count}};
        dgm_search_config c = config_of(4, 3, 12);
        const toy_answer one = ask(&g, &c, &r, 1), two = ask(&g, &c, &r, 2);
        assert_int_equal(one.count, two.count);
        for (int i = 0; i < one.count; i++) {
            assert_memory_equal(one.h[i].tokens, two.h[i].tokens, sizeof one.h[i].tokens);
            assert_true(fabsf(one.h[i].sum - two.h[i].sum) < 1e-3f);
        }
        c.beam_width = 0.9f;
        const toy_answer narrow = ask(&g, &c, &r, 1);
        assert_true(narrow.count >= 1 && narrow.count <= one.count);
        c.beam_width = 0.0f;
        c.min_length = 9;
        const toy_answer longer = ask(&g, &c, &r, 1);
        for (int i = 0; i < longer.count; i++) assert_true(longer.h[i].count >= 9);
        c.min_length = 0;
        c.alignment = true;
        const toy_answer aligned = ask(&g, &c, &r, 1);
        assert_memory_equal(aligned.h[0].tokens, one.h[0].tokens, sizeof one.h[0].tokens);
        for (int i = 0; i < aligned.h[0].count; i++) {
            float sum = 0;
            for (int j = 0; j < sources[which].count; j++) sum += aligned.h[0].align[i * sources[which].count + j];
            assert_true(fabsf(sum - 1.0f) < 1e-3f);
        }
    }
    ground_close(&g);
}

// Candidates are what they are without evidence; their sums follow the formula.
static void test_evidence(void **state)
{
    (void)state;
    static const dgm_lmbr_weights weights = {.theta = {-0.2f, 0.3f, 0.5f, 0.8f, 1.2f}, .lambda = 0.6f};
    ground g = {0};
    ground_open(&g);
    for (int which = 0; which < g.lines; which++) {
        const int32_t eos = dgm_model_describe(g.m.model)->eos;
        dgm_search_request r = {.source = {sources[which].words, sources[which].count}};
        const dgm_search_config c = config_of(4, 3, 12);
        const toy_answer plain = ask(&g, &c, &r, 1);
        dgm_posteriors p = {0};
        dgm_lmbr_rows *rows = NULL;
        dgm_error err;
        int32_t said[WORDS + 1];
        for (int i = 0; i < plain.count; i++) {
            memcpy(said, plain.h[i].tokens, (size_t)plain.h[i].count * sizeof *said);
            said[plain.h[i].count] = eos;
            const size_t n = (size_t)plain.h[i].count + 1;
            assert_int_equal(dgm_posteriors_add(&p, said, n, 1.0 / plain.count, &err), DGM_OK);
        }
        assert_int_equal(dgm_lmbr_compile(&rows, &p, &weights, &err), DGM_OK);
        r.lmbr = rows;
        const toy_answer ranked = ask(&g, &c, &r, 1);
        for (int i = 0; i < ranked.count; i++) {
            const toy_hypothesis *h = &ranked.h[i];
            double sum = 0;
            for (int j = 0; j < h->count; j++) sum += (double)weights.lambda * (double)h->words[j];
            memcpy(said, h->tokens, (size_t)h->count * sizeof *said);
            said[h->count] = eos;
            for (int j = 0; j <= h->count; j++) {
                sum += (double)weights.theta[0];
                for (int n = 1; n <= DGM_LMBR_ORDER && n <= j + 1; n++)
                    sum += (double)weights.theta[n] * dgm_posteriors_get(&p, said + j + 1 - n, n);
            }
            assert_true(fabs(sum - (double)h->sum) < 1e-3);
            if (i > 0) assert_true(h->score <= ranked.h[i - 1].score);
        }
        dgm_lmbr_free(&rows);
        dgm_posteriors_free(&p);
    }
    ground_close(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_torch), cmocka_unit_test(test_demands),
                                       cmocka_unit_test(test_listed),
                                       cmocka_unit_test(test_lattices), cmocka_unit_test(test_repetition),
                                       cmocka_unit_test(test_settings), cmocka_unit_test(test_evidence)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
