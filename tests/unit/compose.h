// SPDX-License-Identifier: MIT
// Features together, in every order of writing, against all sentences there are: a table model over three words has few
// enough to score each by the rules as they are written down. A beam with room for all of them finds the best; a narrow
// one, and every other search, never breaks what was demanded, and what it finds has the score that the rules give it.
// For the tests that say which of them, try_order; define _GNU_SOURCE first.
#ifndef DGM_TESTS_UNIT_COMPOSE_H
#define DGM_TESTS_UNIT_COMPOSE_H

#include "unit/compose_rules.h"

// ---- searches ----------------------------------------------------------------------------------

typedef struct setting {
    const char *name, *search;
    int beam;
    bool exact, wide;
    dgm_cube_key key;
} setting;

static const setting searches[] = {
    {"a beam for all", "beam", ALL, false, true, DGM_CUBE_TOKEN},
    {"cubes for all", "cube", ALL, true, true, DGM_CUBE_NONE},
    {"greedy", "greedy", 1, false, false, DGM_CUBE_TOKEN},
    {"beam 2", "beam", 2, false, false, DGM_CUBE_TOKEN},
    {"accelerated", "cube", 3, false, false, DGM_CUBE_TOKEN},
    {"naive", "cube", 3, true, false, DGM_CUBE_TOKEN},
    {"naive, by state", "cube", 3, true, false, DGM_CUBE_STATE},
    {"accelerated, by state", "cube", 3, false, false, DGM_CUBE_STATE},
    {"sample", "sample", 3, false, false, DGM_CUBE_TOKEN},
};

static void add_beside(dgm_search_config *c, const setting *x, const problem *p)
{
    const bool competes = strcmp(x->search, "greedy") != 0 && strcmp(x->search, "sample") != 0;
    if (p->beside == MINIMUM) c->min_length = SHORTEST;
    if (p->beside == ROWS) c->max_rows = 2;
    if (p->beside == DIVERSITY && competes) c->diversity = 0.7f;
    if (p->beside == PRUNING && competes && !x->wide) c->beam_width = 0.3f;
    if (p->beside == UNIGRAMS && p->kinds & NO_REPEAT) c->no_repeat = 1;
    c->alignment = p->beside == COVERAGE;
    c->coverage = p->beside == COVERAGE ? coverage : 0.0f;
}

static dgm_search_config config_of(const setting *x, const problem *p, int hidden)
{
    dgm_search_config c = toy_config(x->beam, x->wide ? DGM_FINISH_MARGIN : DGM_FINISH_REFILL);
    c.margin = 1e9f; // a wide beam never stops before it has them all
    c.search = x->search;
    c.cube_exact = x->exact && !p->pairs;
    c.double_exact = x->exact && p->pairs;
    c.pairs = p->pairs && strcmp(x->search, "sample") == 0;
    c.cube_key = x->key;
    c.cube_distance = x->key == DGM_CUBE_STATE ? 0.2f : 0.0f;
    c.hidden = x->key == DGM_CUBE_STATE || p->lists == OF_STEP ? hidden : 0; // whose vectors somebody looks at
    c.rescore = strcmp(x->search, "cube") == 0 && !x->exact;
    c.max_length = LONGEST;
    if (!x->wide) c.nbest = c.beam; // all that a narrow one finds is to be as it should
    if (p->kinds & NO_REPEAT) c.no_repeat = 2;
    if (p->kinds & REPETITION) c.repetition = repetition;
    c.sentences = 1;
    add_beside(&c, x, p);
    return c;
}

// ---- lists of words ----------------------------------------------------------------------------

// A selection as a shortlist or clusters make it. Of a problem it knows only the lists themselves: what a sentence
// needs besides, it must be told by the search.
typedef struct selection {
    const problem *p;
    unsigned brought;
    dgm_mat seen; // of a step: all its vectors
    int32_t ids[MOST], more_ids[ALL][MOST];
    dgm_candidates list, more[ALL];
} selection;

static int list_bits(unsigned bits, int32_t *ids)
{
    int n = 0;
    for (int32_t w = 0; w < vocab; w++)
        if (bits & bit_of(w)) ids[n++] = w;
    return n;
}

static dgm_status admit_lists(dgm_vocabsel *v, int active, const dgm_vocabsel_sentence *s, dgm_error *err)
{
    selection *x = v->data;
    (void)active, (void)err;
    x->brought = bit_of(x->p->end_token) | bit_of(TOY_UNK) | bits_of(s->needed, s->needed_count) |
                 bits_of(s->evidence, s->evidence_count) | bits_of(s->allowed, s->allowed_count);
    x->brought &= ~(bit_of(vocab - 1) | (x->p->pairs ? bit_of(TOY_EOS) : 0)); // what is never chosen
    return DGM_OK;
}

static void look_at_step(dgm_vocabsel *v, dgm_mat hidden)
{
    selection *x = v->data;
    x->seen = hidden;
}

// A model of tables: the place is the largest number behind those of the word before it.
static int place_of(dgm_mat hidden)
{
    const float *h = hidden.data;
    int best = 0;
    for (int i = 1; i < POSITIONS; i++)
        if (h[vocab + i] > h[vocab + best]) best = i;
    return best;
}

static const dgm_candidates *select_lists(dgm_vocabsel *v, int active, int first, dgm_mat hidden)
{
    selection *x = v->data;
    (void)active;
    const int each = x->p->pairs ? 2 : 1;
    const bool by_step = x->p->lists == OF_STEP;
    const int step = by_step ? place_of(hidden) / each : 0;
    for (int i = 0; i < hidden.rows && by_step; i++) { // rows of a step are of one place, and were looked at
        assert_ptr_equal(dgm_mat_rows(hidden, i, 1).data, dgm_mat_rows(x->seen, first + i, 1).data);
        assert_int_equal(place_of(dgm_mat_rows(hidden, i, 1)) / each, step);
    }
    const unsigned bits = x->p->own[step] | x->brought;
    x->list = (dgm_candidates){.ids = x->ids, .count = list_bits(bits, x->ids)};
    return &x->list;
}

// Those of a row that the list has not.
static const dgm_candidates *more_lists(dgm_vocabsel *v, int active, int row, int32_t before)
{
    selection *x = v->data;
    (void)active;
    assert_true(row >= 0 && row < ALL);
    const unsigned bits = before < 0 ? 0 : x->p->next[before] & ~(x->p->own[0] | x->brought);
    x->more[row] = (dgm_candidates){.ids = x->more_ids[row], .count = list_bits(bits, x->more_ids[row])};
    return bits ? &x->more[row] : NULL;
}

static const dgm_vocabsel_ops list_ops = {
    .name = "list", .admit = admit_lists, .select = select_lists, .more = more_lists};
static const dgm_vocabsel_ops step_ops = {
    .name = "step", .by_step = true, .admit = admit_lists, .look = look_at_step, .select = select_lists};

static void run(const toy *const *models, const dgm_search_config *c, const problem *p, toy_answer *a)
{
    toy_search t = {.parts = p->beside == ENSEMBLE ? MODELS : 1};
    const toy *m = models[0];
    dgm_error err = {{0}};
    dgm_scorer scorers[2];
    dgm_search_part parts[MODELS];
    const dgm_limits l = dgm_search_limits(c, dgm_model_describe(m->model));
    dgm_bytes bytes =
        dgm_bytes_add(toy_bytes(c, models, t.parts), dgm_score_lmbr_bytes(m->backend, c->sentences, vocab));
    bytes.host += dgm_score_walk_bytes(c->sentences);
    assert_int_equal(dgm_exec_open(m->backend, bytes, &t.exec, &err), DGM_OK);
    for (int i = 0; i < t.parts; i++) {
        assert_int_equal(dgm_state_open(models[i]->model, t.exec, &l, &t.states[i], &err), DGM_OK);
        parts[i] = (dgm_search_part){t.states[i], 1.0f / (float)t.parts};
    }
    assert_int_equal(dgm_score_lmbr(&scorers[0], t.exec, c->sentences, vocab, &err), DGM_OK);
    assert_int_equal(dgm_score_walk(&scorers[1], dgm_exec_host(t.exec), c->sentences, &err), DGM_OK);
    static selection chosen;
    chosen = (selection){.p = p};
    dgm_vocabsel selects = {.ops = p->lists == OF_STEP ? &step_ops : &list_ops, .data = &chosen};
    dgm_vocabsel *v = p->lists == WHOLE ? NULL : &selects;
    if (dgm_search_open(&t.search, t.exec, c, parts, t.parts, v, scorers, 2, &err) != DGM_OK)
        fail_msg("%s", err.text);
    const bool given = p->begin.count && !p->right && !(p->pairs && p->walk); // else a constraint or the lattice has it
    const dgm_search_request r = {.source = {source, SOURCE},
                                  .prefix = given ? p->begin.ids : NULL,
                                  .prefix_count = given ? p->begin.count : 0,
                                  .constraint = p->constraint,
                                  .constraint_right = p->constraint ? p->constraint_right : NULL,
                                  .walk = p->walk,
                                  .lmbr = p->rows};
    toy_run(&t, &r, 1, a);
    if (p->beside == COVERAGE) { // what another sentence left behind does not count
        static toy_answer again;
        const dgm_search_request other = {.source = {source + 1, SOURCE - 1}};
        toy_run(&t, &other, 1, &again);
        toy_run(&t, &r, 1, &again);
        assert_memory_equal(again.h, a->h, (size_t)a->count * sizeof *a->h);
    }
    toy_search_close(&t);
}

// Draws of what some translation meets, and those that meet it. There is hardly any room, so that not all do.
static int drawn, drawn_whole;
enum { DRAWN_WHOLE = 80 }; // of a hundred

// The score of what a search found: those that walk a path once more do it with the whole vocabulary where lists go by
// hidden vectors.
static double score_found(problem *p, const words *w, const setting *x)
{
    if (!(score_of(p, w) > -INFINITY)) return -INFINITY;
    p->rescored = p->lists == OF_STEP && strcmp(x->search, "cube") == 0 && !x->exact;
    const double sum = score_of(p, w);
    p->rescored = false;
    return sum;
}

static bool all_listed(const problem *p, const words *read)
{
    const words w = p->right ? turn(read) : *read;
    return (p->pairs ? pairs_sum(p, &w) : model_sum(p, &w)) > -INFINITY;
}

static void check(const toy_answer *a, problem *p, const setting *x, double best, const char *what)
{
    // What is demanded comes before what repeats itself: then only demands are sure to be met.
    // A lattice holds them, and what is written first, be it beginning or end, needs no automaton where it is all.
    const bool automaton = p->constraint && !(p->right && dgm_constraint_end_alone(p->constraint));
    const bool wins = automaton && p->kinds & NO_REPEAT && !p->pairs;
    const bool draws = strcmp(x->search, "sample") == 0 && p->kinds & CONSTRAINTS && best > -INFINITY;
    drawn += draws ? x->beam : 0;
    for (int n = 0; n < a->count; n++) {
        const toy_hypothesis *h = &a->h[n];
        drawn_whole += draws && h->sum > -INFINITY;
        words w = {.count = h->count};
        if (!(h->sum > -INFINITY)) {
            // No beam is too narrow for a path of a lattice, or where nothing is demanded.
            const bool path = p->kinds & LATTICE ? !(p->kinds & NO_REPEAT) : !(p->kinds & CONSTRAINTS);
            if ((x->wide || path) && best > -INFINITY && !wins) fail_msg("%s: nothing was found", what);
            continue;
        }
        memcpy(w.ids, h->tokens, (size_t)h->count * sizeof *w.ids);
        if (!meets(p, &w)) fail_msg("%s: a demand is not met", what);
        if (!all_listed(p, &w)) fail_msg("%s: a word that is no candidate", what);
        const double sum = score_found(p, &w, x);
        // Pairs may be written in several ways, of which the rules' sum is the best.
        const double off = p->pairs ? fmax((double)h->sum - sum, 0.0) : fabs(sum - (double)h->sum);
        if (!wins && off > 1e-3) fail_msg("%s: sum %g, not %g", what, (double)h->sum, sum);
    }
    if (x->wide && !wins && best > -INFINITY && fabs(best - (double)a->h[0].score) > 1e-3)
        fail_msg("%s: %g found, %g is best", what, (double)a->h[0].score, best);
}

static const setting of_pairs[] = {
    {"a beam for all", "double", ALL, false, true, DGM_CUBE_TOKEN},
    {"beam 2", "double", 2, false, false, DGM_CUBE_TOKEN},
    {"beam 5", "double", 5, false, false, DGM_CUBE_TOKEN},
    {"exact", "double", 5, true, false, DGM_CUBE_TOKEN},
    {"sample", "sample", 3, false, false, DGM_CUBE_TOKEN},
};

static void open_table(toy *m, int which, const char *order, const char *pairs, dgm_rng *rng)
{
    for (int i = 0; i < vocab * vocab; i++) last[which][i] = 6.0f * (float)dgm_rng_unit(rng) - 3.0f;
    for (int i = 0; i < POSITIONS * vocab; i++) table_time[which][i] = (float)dgm_rng_unit(rng);
    const toy_spec spec = {.vocab = vocab,
                           .positions = POSITIONS,
                           .heads = 1,
                           .last = last[which],
                           .time = table_time[which],
                           .order = order,
                           .pairs = pairs};
    toy_open(m, &spec);
}

static void try_order(const trial *x)
{
    const uint64_t apart = (uint64_t)x->demands * 7919 + (uint64_t)x->lists * 104729;
    dgm_rng rng = {x->seed * 131 + (uint64_t)x->beside * 977 + apart};
    const char *way = x->pairs ? x->pairs : x->order ? x->order : "l2r";
    toy m[MODELS];
    const toy *models[MODELS] = {&m[0], &m[1]};
    vocab = x->pairs ? MOST : MOST - 1;
    for (int i = 0; i < MODELS; i++) open_table(&m[i], i, x->order, x->pairs, &rng);
    for (int kinds = 0; kinds < KINDS; kinds++) {
        problem p;
        static toy_answer a;
        if (x->demands != MIXED && !(kinds & CONSTRAINTS)) continue;
        ask(&p, kinds, x, &rng);
        const double best = best_of_all(&p);
        const setting *list = x->pairs ? of_pairs : searches;
        const size_t count = x->pairs ? sizeof of_pairs / sizeof *of_pairs : sizeof searches / sizeof *searches;
        const bool skip = kinds & LATTICE && !p.walk;
        for (size_t i = 0; i < count && !skip; i++) {
            char what[128];
            const int hidden = dgm_model_describe(m[0].model)->hidden * (x->beside == ENSEMBLE ? MODELS : 1);
            const dgm_search_config c = config_of(&list[i], &p, hidden);
            snprintf(what, sizeof what, "%s%s, %s, kinds %d, beside %d, demands %d, lists %d, seed %d",
                     x->pairs ? "pairs " : "", way, list[i].name, kinds, (int)x->beside, (int)x->demands,
                     (int)x->lists, (int)x->seed);
            run(models, &c, &p, &a);
            check(&a, &p, &list[i], best, what);
        }
        if (kinds & LATTICE && kinds & CONSTRAINTS && !p.walk) assert_true(best == -INFINITY);
        forget(&p);
    }
    for (int i = 0; i < MODELS; i++) toy_close(&m[i]);
}

static void check_draws(void)
{
    if (100 * drawn_whole < DRAWN_WHOLE * drawn) fail_msg("%d of %d draws met their demands", drawn_whole, drawn);
    drawn = drawn_whole = 0;
}

#endif
