// SPDX-License-Identifier: MIT
// The toy model of compose.h and what its sentences are asked for, drawn from a seed: demands, lattices, evidence,
// lists of words.
#ifndef DGM_TESTS_UNIT_COMPOSE_ASKED_H
#define DGM_TESTS_UNIT_COMPOSE_ASKED_H

#include "unit/lattice_toy.h"

#include "toy_words.h"

enum { MOST = 7, FIRST = 2, WORDS = 3, POSITIONS = 8, LONGEST = 4, ALL = 256, SEEDS = 4 };

// Words are tokens 2 to 4; behind them comes, of models of pairs, their end, and the start.
static int vocab = MOST;
// What each model says of a word behind another and at a place.
enum { MODELS = 2 };
static float last[MODELS][MOST * MOST], table_time[MODELS][POSITIONS * MOST];

static int set_up(void **state)
{
    (void)state;
    return toy_words_open(MOST);
}

// ---- what a sentence is asked for --------------------------------------------------------------

enum { CONSTRAINTS = 1, LATTICE = 2, LMBR = 4, NO_REPEAT = 8, REPETITION = 16, KINDS = 32 };

// And beside all of these one setting more: that of NO_REPEAT is its length.
typedef enum setting_beside {
    NOTHING,
    MINIMUM,
    ENSEMBLE,
    COVERAGE,
    DIVERSITY,
    ROWS,
    PRUNING,
    UNIGRAMS,
    BESIDES
} setting_beside;

// What constraints demand.
typedef enum demands {
    MIXED, // terms, what is forbidden, now and then a beginning or an end
    BEGINNING,
    ENDING,
    BOTH_SIDES
} demands;

// Which words may be chosen.
typedef enum lists {
    WHOLE,       // any
    OF_SENTENCE, // those of a list
    CONTINUED,   // and those that may go on behind the last one, where one is written at a time
    OF_STEP      // those of a list for every step, by the hidden vectors
} lists;

// What a test tries in all sets of kinds.
typedef struct trial {
    const char *order, *pairs; // of the models; NULL: left to right, one word a step
    uint64_t seed;
    setting_beside beside;
    demands demands;
    lists lists;
} trial;

static const dgm_lmbr_weights weights = {.theta = {-0.2f, 0.3f, 0.5f, 0.8f, 1.2f}, .lambda = 0.6f};
static const float lattice_weight = 0.5f, repetition = 1.7f, coverage = 0.4f;
enum { SHORTEST = 3, SOURCE = 8 }; // odd: a pair with an end may be long enough where another is not
static const int32_t source[SOURCE] = {2, 3, 2, 4, 3, 2, 4, TOY_EOS}; // longer than any translation: none covers it

typedef struct words {
    int32_t ids[LONGEST + 1];
    int count;
} words;

typedef struct problem {
    int kinds;
    setting_beside beside;
    bool right;        // the model writes the last word first,
    const char *pairs; // or so in pairs; NULL: one word a step
    bool both;         // from both ends
    int32_t end_token;
    words terms[2], ban, begin, end;
    int term_count, most[2]; // how often a term may be said; 0: any number
    dgm_lattice *lattice; // in the order of reading
    words evidence[3];
    lists lists;
    unsigned own[POSITIONS], next[MOST]; // a bit for every word: of a step; behind a word
    unsigned needed;                     // of all steps
    bool rescored;                       // with lists that hidden vectors choose: now by the whole vocabulary
    // made of these
    dgm_constraint *constraint, *constraint_right;
    dgm_walk *walk;
    dgm_lmbr_rows *rows;
    dgm_lattice *limited;
} problem;

static words draw_words(dgm_rng *rng, int least, int most)
{
    words w = {.count = least + (int)(dgm_rng_next(rng) % (uint64_t)(most - least + 1))};
    for (int i = 0; i < w.count; i++) w.ids[i] = FIRST + (int32_t)(dgm_rng_next(rng) % WORDS);
    return w;
}

static words turn(const words *w)
{
    words t = {.count = w->count};
    for (int i = 0; i < w->count; i++) t.ids[i] = w->ids[w->count - 1 - i];
    return t;
}

static bool stands_at(const words *w, const words *part, int at)
{
    return at >= 0 && at + part->count <= w->count &&
           memcmp(w->ids + at, part->ids, (size_t)part->count * sizeof *w->ids) == 0;
}

static int occurrences(const words *w, const words *part)
{
    int found = 0;
    for (int i = 0; i < w->count; i++) found += stands_at(w, part, i);
    return found;
}

static bool same_words(const words *a, const words *b)
{
    return a->count == b->count && stands_at(a, b, 0);
}

// From both ends: as the engine does it, in two automata, unless a lattice holds them.
static void make_constraint(problem *p)
{
    const bool apart = p->both && !(p->kinds & LATTICE), right = p->right && !(p->kinds & LATTICE);
    dgm_pattern patterns[5];
    int count = 0;
    dgm_error err;
    for (int t = 0; t < p->term_count; t++)
        patterns[count++] = (dgm_pattern){
            .term = t, .tokens = p->terms[t].ids, .count = p->terms[t].count, .most = p->most[t]};
    if (p->ban.count)
        patterns[count++] = (dgm_pattern){.kind = DGM_PATTERN_FORBID, .tokens = p->ban.ids, .count = p->ban.count};
    if (p->end.count)
        patterns[count++] = (dgm_pattern){.kind = DGM_PATTERN_SUFFIX, .tokens = p->end.ids, .count = p->end.count};
    if (p->begin.count && right)
        patterns[count++] = (dgm_pattern){.kind = DGM_PATTERN_PREFIX, .tokens = p->begin.ids, .count = p->begin.count};
    if (count == 0) return;
    dgm_status st;
    if (apart)
        st = dgm_constraint_compile_both(&p->constraint, &p->constraint_right, surfaces, patterns, count, p->term_count,
                                         &err);
    else
        st = (right ? dgm_constraint_compile_right : dgm_constraint_compile)(&p->constraint, surfaces, patterns, count,
                                                                             p->term_count, &err);
    if (st != DGM_OK) fail_msg("%s", err.text);
}

// As the engine does it: constraints become part of the lattice, which is turned for who writes the last word first.
static void make_walk(problem *p)
{
    dgm_lattice *one = NULL, *turned = NULL;
    dgm_error err;
    assert_int_equal(dgm_lattice_determine(p->lattice, true, 1000, &one, &err), DGM_OK);
    assert_int_equal(dgm_walk_limit(one, p->kinds & CONSTRAINTS ? p->constraint : NULL, p->begin.ids, p->begin.count,
                                    1000, &p->limited, &err), DGM_OK);
    dgm_lattice_close(&one);
    dgm_constraint_free(&p->constraint);
    if (!p->limited) return;
    if (p->right) {
        assert_int_equal(dgm_lattice_reverse(p->limited, &turned, &err), DGM_OK);
        dgm_lattice_close(&p->limited);
        assert_int_equal(dgm_lattice_determine(turned, true, 1000, &p->limited, &err), DGM_OK);
        dgm_lattice_close(&turned);
    }
    assert_int_equal(dgm_walk_make(&p->walk, p->limited, p->end_token, lattice_weight, &err), DGM_OK);
    if (p->both) assert_int_equal(dgm_walk_look_back(p->walk, &err), DGM_OK);
}

static void make_rows(problem *p)
{
    static const double shares[] = {0.5, 0.3, 0.2};
    dgm_posteriors posteriors = {0};
    dgm_error err;
    for (int i = 0; i < 3; i++) {
        words w = p->right ? turn(&p->evidence[i]) : p->evidence[i];
        w.ids[w.count++] = p->end_token;
        assert_int_equal(dgm_posteriors_add(&posteriors, w.ids, (size_t)w.count, shares[i], &err), DGM_OK);
    }
    assert_int_equal(dgm_lmbr_compile(&p->rows, &posteriors, &weights, &err), DGM_OK);
    dgm_posteriors_free(&posteriors);
}

static unsigned bit_of(int32_t word)
{
    return 1u << word;
}

static unsigned bits_of(const int32_t *ids, int count)
{
    unsigned bits = 0;
    for (int i = 0; i < count; i++) bits |= bit_of(ids[i]);
    return bits;
}

// Lists of at least one word, with what a sentence cannot do without: its end, and what is asked of it.
static void draw_lists(problem *p, lists kind, dgm_rng *rng)
{
    const unsigned all = bit_of(FIRST) | bit_of(FIRST + 1) | bit_of(FIRST + 2);
    unsigned needed = bit_of(p->end_token) | bit_of(TOY_UNK) | bits_of(p->begin.ids, p->begin.count);
    if (!(p->kinds & LATTICE)) {
        for (int t = 0; t < p->term_count; t++) needed |= bits_of(p->terms[t].ids, p->terms[t].count);
        needed |= bits_of(p->end.ids, p->end.count);
    }
    if (p->walk) needed |= bits_of(p->walk->tokens, p->walk->token_count);
    for (int i = 0; i < 3 && p->kinds & LMBR; i++) needed |= bits_of(p->evidence[i].ids, p->evidence[i].count);
    p->lists = kind;
    p->needed = needed;
    for (int i = 0; i < POSITIONS; i++) {
        p->own[i] = bit_of(FIRST + (int32_t)(dgm_rng_next(rng) % WORDS));
        if (dgm_rng_next(rng) % 3 == 0) p->own[i] = all & ~p->own[i];
        if (kind != OF_STEP) p->own[i] = p->own[0];
    }
    for (int w = FIRST; w < FIRST + WORDS && kind == CONTINUED && !p->pairs; w++)
        p->next[w] = dgm_rng_next(rng) % 2 ? bit_of(FIRST + (int32_t)(dgm_rng_next(rng) % WORDS)) : 0;
}

static void draw_demands(problem *p, demands what, dgm_rng *rng)
{
    if (what == BEGINNING || what == BOTH_SIDES) p->begin = draw_words(rng, 1, 2);
    if (what == ENDING || what == BOTH_SIDES) p->end = draw_words(rng, 1, 2);
    make_constraint(p);
}

static void ask(problem *p, int kinds, const trial *x, dgm_rng *rng)
{
    const char *way = x->pairs ? x->pairs : x->order;
    *p = (problem){.kinds = kinds,
                   .beside = x->beside,
                   .right = way && strcmp(way, "r2l") == 0,
                   .pairs = x->pairs,
                   .both = way && strcmp(way, "bidirectional") == 0,
                   .end_token = x->pairs ? vocab - 2 : TOY_EOS};
    if (kinds & CONSTRAINTS && x->demands != MIXED) {
        draw_demands(p, x->demands, rng);
    } else if (kinds & CONSTRAINTS) {
        p->term_count = 1 + (int)(dgm_rng_next(rng) % 2);
        for (int t = 0; t < p->term_count; t++) p->terms[t] = draw_words(rng, 1, 2);
        p->ban = draw_words(rng, 2, 2);
        if (dgm_rng_next(rng) % 3 == 0) p->end = draw_words(rng, 1, 2);
        if (dgm_rng_next(rng) % 3 == 0) p->begin = draw_words(rng, 1, 2);
        for (int t = 0; t < p->term_count; t++) // as the engine does it, which forces a beginning without a constraint
            p->most[t] = occurrences(&p->begin, &p->terms[t]) ? 0 : (int)(dgm_rng_next(rng) % 3);
        make_constraint(p);
    }
    static const int32_t said[] = {FIRST, FIRST + 1, FIRST + 2};
    if (kinds & LATTICE) p->lattice = lattice_toy(rng, 5, said, WORDS, 3);
    if (kinds & LATTICE) make_walk(p);
    for (int i = 0; i < 3; i++) p->evidence[i] = draw_words(rng, 2, LONGEST - 1);
    if (kinds & LMBR) make_rows(p);
    if (x->lists != WHOLE) draw_lists(p, x->lists, rng);
}

static void forget(problem *p)
{
    dgm_constraint_free(&p->constraint);
    dgm_constraint_free(&p->constraint_right);
    dgm_walk_free(&p->walk);
    dgm_lmbr_free(&p->rows);
    dgm_lattice_close(&p->lattice);
    dgm_lattice_close(&p->limited);
}

#endif
