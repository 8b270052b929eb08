// SPDX-License-Identifier: MIT
// Features together, in every order of writing, against all sentences there are: a table model over three words has few
// enough to score each by the rules as they are written down. A beam with room for all of them finds the best; a narrow
// one, and every other search, never breaks what was demanded, and what it finds has the score that the rules give it.
// For the tests that say which of them, try_order; define _GNU_SOURCE first.
#ifndef DGM_TESTS_UNIT_COMPOSE_H
#define DGM_TESTS_UNIT_COMPOSE_H

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

// ---- the rules ---------------------------------------------------------------------------------

// How often a term may be said: as often as it and another of the same words may together, 0: any number. Where another
// demand holds its words, they may be said besides.
static int limit_of(const problem *p, int term)
{
    const words *own = &p->terms[term];
    int sum = 0;
    if (p->begin.count && occurrences(&p->begin, own)) return 0;
    if (p->end.count && !same_words(&p->end, own) && occurrences(&p->end, own)) return 0;
    for (int t = 0; t < p->term_count; t++) {
        if (same_words(&p->terms[t], own)) {
            if (!p->most[t]) return 0;
            sum += p->most[t];
        } else if (occurrences(&p->terms[t], own)) {
            return 0;
        }
    }
    return sum;
}

static bool meets(const problem *p, const words *w)
{
    if (!(p->kinds & CONSTRAINTS)) return true;
    for (int t = 0; t < p->term_count; t++) {
        int wanted = 1;
        for (int k = 0; k < t; k++) wanted += same_words(&p->terms[k], &p->terms[t]);
        const int said = occurrences(w, &p->terms[t]), most = limit_of(p, t);
        if (said < wanted || (most && said > most)) return false;
    }
    if (p->ban.count && occurrences(w, &p->ban)) return false;
    return stands_at(w, &p->begin, 0) && stands_at(w, &p->end, w->count - p->end.count);
}

// Share of the evidence that holds the n-gram; all in the order of writing.
static double posterior(const problem *p, const words *gram)
{
    static const double shares[] = {0.5, 0.3, 0.2};
    double sum = 0;
    for (int i = 0; i < 3; i++) {
        words w = p->right ? turn(&p->evidence[i]) : p->evidence[i];
        w.ids[w.count++] = p->end_token;
        if (occurrences(&w, gram)) sum += shares[i];
    }
    return sum;
}

// Is an n-gram forced on the model, word by word, by a beginning or an end? That may repeat itself.
static bool is_forced(const problem *p, const words *read, int at, int n)
{
    if (!(p->kinds & CONSTRAINTS)) return false;
    if (p->kinds & LATTICE && (p->pairs || p->right)) return false; // they are the lattice's matter
    return (!p->right && at + n <= p->begin.count) || ((p->right || p->both) && at >= read->count - p->end.count);
}

static bool repeats_itself(const problem *p, const words *read)
{
    const int n = p->beside == UNIGRAMS ? 1 : 2;
    for (int b = 1; b + n <= read->count; b++)
        for (int a = 0; a < b; a++)
            if (memcmp(read->ids + a, read->ids + b, (size_t)n * sizeof *read->ids) == 0 &&
                !(is_forced(p, read, a, n) && is_forced(p, read, b, n)))
                return true;
    return false;
}

// What the word at `at` of a sentence with its end adds to the sum.
static double rule(const problem *p, const words *w, int at)
{
    double add = 0;
    bool said = false;
    for (int i = 0; i < at; i++) said |= w->ids[i] == w->ids[at];
    if (p->kinds & REPETITION && said) add -= log((double)repetition);
    if (!(p->kinds & LMBR)) return add;
    add += (double)weights.theta[0];
    for (int n = 1; n <= DGM_LMBR_ORDER && n <= at + 1; n++) {
        words gram = {.count = n};
        memcpy(gram.ids, w->ids + at + 1 - n, (size_t)n * sizeof *gram.ids);
        add += (double)weights.theta[n] * posterior(p, &gram);
    }
    return add;
}

// The words that may stand at a place, in the order of writing.
static unsigned candidates_of(const problem *p, int before, int place)
{
    if (p->lists == WHOLE || p->rescored) return ~0u;
    return p->own[p->pairs ? place / 2 : place] | p->needed | p->next[before];
}

static double log_share_of(const problem *p, int model, int before, int place, int word)
{
    const unsigned candidates = candidates_of(p, before, place);
    const float *row = last[model] + before * vocab, *now = table_time[model] + place * vocab;
    double z = 0;
    for (int k = 0; k < vocab; k++)
        if (candidates & bit_of(k)) z += exp((double)row[k] + (double)now[k]);
    if (!(candidates & bit_of(word))) return -INFINITY;
    return (double)row[word] + (double)now[word] - log(z);
}

static double log_share(const problem *p, int before, int place, int word)
{
    const double first = log_share_of(p, 0, before, place, word);
    return p->beside == ENSEMBLE ? (first + log_share_of(p, 1, before, place, word)) / MODELS : first;
}

// What the model says of a sentence, in the order of writing.
static double model_sum(const problem *p, const words *w)
{
    double sum = 0;
    for (int i = 0; i <= w->count; i++)
        sum += log_share(p, i ? w->ids[i - 1] : vocab - 1, i, i < w->count ? w->ids[i] : TOY_EOS);
    return sum;
}

// The same of a pair behind another.
static double pair_sum(const problem *p, const int32_t *before, int pair, int32_t left, int32_t right)
{
    return log_share(p, before[0], 2 * pair, left) + log_share(p, before[1], 2 * pair + 1, right);
}

// Of words in pairs, the best of all ways to write them: what a pair with an end says besides is free in one direction,
// unless there is a lattice, and from both ends the word in the middle may stand on either side.
static double pairs_sum(const problem *p, const words *w)
{
    const int32_t end = p->end_token;
    double best = -(double)INFINITY;
    for (int way = 0; way < 2; way++) {
        int32_t before[2] = {vocab - 1, TOY_EOS};
        const int n = w->count, lefts = p->both ? (way ? n / 2 : (n + 1) / 2) : n, rights = n - lefts;
        double sum = 0;
        const bool forced = p->both && !(p->kinds & LATTICE); // else they are the lattice's matter
        if (forced && (lefts < p->begin.count || rights < p->end.count)) continue;
        for (int t = 0; t < n / 2; t++) {
            const int32_t left = p->both ? w->ids[t] : w->ids[2 * t];
            const int32_t right = p->both ? w->ids[n - 1 - t] : w->ids[2 * t + 1];
            sum += pair_sum(p, before, t, left, right);
            before[0] = left;
            before[1] = right;
        }
        if (n % 2) {
            const int32_t word = p->both ? w->ids[n / 2] : w->ids[n - 1];
            if (way && !p->both) continue;
            best = fmax(best, sum + pair_sum(p, before, n / 2, way ? end : word, way ? word : end));
            continue;
        }
        best = fmax(best, sum + pair_sum(p, before, n / 2, end, end));
        for (int32_t x = FIRST; x < FIRST + WORDS && !p->both && !(p->kinds & LATTICE); x++)
            best = fmax(best, sum + pair_sum(p, before, n / 2, end, x));
    }
    return best;
}

// The sum of a whole sentence; -inf: something forbids it.
static double score_of(const problem *p, const words *read)
{
    words w = p->right ? turn(read) : *read;
    if (!meets(p, read) || (p->beside == MINIMUM && read->count < SHORTEST)) return -INFINITY;
    if (p->kinds & NO_REPEAT && repeats_itself(p, read)) return -INFINITY;
    double sum = (p->kinds & LMBR ? (double)weights.lambda : 1.0) * (p->pairs ? pairs_sum(p, &w) : model_sum(p, &w));
    if (p->kinds & LATTICE) sum += (double)lattice_weight * lattice_toy_score(p->lattice, read->ids, read->count);
    w.ids[w.count++] = p->end_token;
    for (int i = 0; i < w.count; i++) sum += rule(p, &w, i);
    return sum;
}

// Of so many words: a model of tables looks at all source tokens alike, in every step, with both words of a pair.
static double covered(const problem *p, int count)
{
    const int looks = p->pairs ? 2 * (count / 2 + 1) : count + 1;
    return p->beside == COVERAGE ? (double)coverage * SOURCE * log(fmin(1.0, (double)looks / SOURCE)) : 0.0;
}

static double best_of_all(const problem *p)
{
    double best = -INFINITY;
    for (int n = 0, many = 1; n <= LONGEST; n++, many *= WORDS)
        for (int k = 0; k < many; k++) {
            words w = {.count = n};
            for (int i = 0, rest = k; i < n; i++, rest /= WORDS) w.ids[i] = FIRST + rest % WORDS;
            best = fmax(best, score_of(p, &w) / (n + 1) + covered(p, n));
        }
    return best;
}

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
