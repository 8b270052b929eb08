// SPDX-License-Identifier: MIT
// Constrained sentences: what their rows may say next, and who gets the places of the beam.
//
// Without help a hypothesis that takes a term's first subword against the model's will falls out of
// the beam at once. So (dynamic beam allocation, Post and Vilar, 2018)
//
//   1. every row also offers the next subwords of the terms it lacks, watched by rank, whether they
//      are among its k best or not
//   2. candidates are sorted into banks by what they have: terms met, and whether one is under
//      way. A bank's best candidate has a place, unless one with more is better, too
//   3. the other places, and all where there are more banks than places, go to the best of all,
//      each compared as if it had already paid for the subwords it lacks. What a subword costs is
//      learnt from the offers: the least it has cost in this sentence so far
//   4. the end symbol counts only where everything is met, and by its rank, never by its bank.
//      Where the model would end a sentence that lacks something, only that may follow, unless there
//      are places for all
//   5. a candidate that could not say the rest before the maximum length is dropped, unless there are
//      places for all: so a hypothesis that meets everything always exists where the length allows one
//
// Post and Vilar count subwords, not terms: with a beam of 4 and terms of many subwords there are more
// banks than places, and a term begun anew always looks better than one half said. Learnt costs
// make the two equal, and a beam of 4 enough.
//
//     pool    all rows x (k best + offers)         key = score - debt; bank
//     order   what the finishing policy draws:     places of the beam | further ones, for refilling
//
// To a search this is a filter of the candidates that it merges: all of them go into the pool, the
// policy draws from `order` instead. Which hypotheses finish and when a sentence is done stays its
// business (finish.c). Sentences without constraints pass through.
#include "search/search_private.h"

#include <math.h>
#include <string.h>

#include "base/heap.h"
#include "base/lower_bound.h"
#include "base/sort.h"

// What subwords are taken to cost, in nats, before the model was asked (it soon is, so the numbers
// matter little): the first of a term, the others. And what share of the difference a first subword's
// expected cost rises by when it would cost more than that now: places pass by.
// Found on newstest2014 with terms of the references (tests/system/terms); BLEU 21.6 to 21.8 between 0.01
// and 0.04, 18 to 19 at 0 and 0.1 where 0.02 has 19.5 (first 100 lines).
static const float first_cost = 4.0f, later_cost = 1.0f, passing = 0.02f;
// A forced subword stands where the model would have said something else, which is still to come. In a
// beam those who wait have places of their own; greedy search, which has one, charges this for each.
static const float displaced = 0.5f;

void dgm_banks_lay_out(dgm_carve *c, dgm_search *s)
{
    const size_t rows = (size_t)s->capacity, width = (size_t)s->width, vectors = rows * (size_t)s->vectors;
    // Of pairs the best of each row are kept (double_rules.c).
    const size_t each = s->vectors > 1 ? (size_t)dgm_pair_most(s) : (size_t)(s->k + DGM_OFFERS + 1);
    dgm_banks *b = &s->banks;
    // Before ours a row's list has two tokens at most, or those of its history.
    b->deny_room = DGM_BANK_DENY + DGM_OFFERS + 1 + (s->config.no_repeat > 0 ? s->config.max_length + 2 : 2);
    b->offers = DGM_CARVE(c, int32_t, rows);
    b->watch = DGM_CARVE(c, int32_t, vectors * (1 + DGM_OFFERS));
    b->watch_score = DGM_CARVE(c, float, vectors *(1 + DGM_OFFERS));
    b->deny = DGM_CARVE(c, int32_t, rows * (size_t)b->deny_room);
    b->pool = DGM_CARVE(c, dgm_bank_entry, width *each);
    b->heap = DGM_CARVE(c, int32_t, width * each);
    b->order = DGM_CARVE(c, dgm_candidate, 3 * width + 2);
    b->best = DGM_CARVE(c, int32_t, DGM_CONSTRAINT_SUBWORDS);
    b->needed = DGM_CARVE(c, int32_t, (size_t)s->config.max_length + DGM_CONSTRAINT_SUBWORDS);
    b->subwords = DGM_CARVE(c, int, rows *DGM_OFFERS);
    b->costs = DGM_CARVE(c, float, (size_t)s->config.sentences *DGM_CONSTRAINT_SUBWORDS);
}

static float *costs_of(const dgm_search *s, const dgm_active *p)
{
    return s->banks.costs + (size_t)(p - s->active) * DGM_CONSTRAINT_SUBWORDS;
}

void dgm_banks_enter(dgm_search *s, int active)
{
    const dgm_active *p = &s->active[active];
    float *cost = costs_of(s, p);
    s->banks.constrained++;
    // Negative: nobody has seen the subword's cost yet.
    for (int i = 0; i < dgm_constraint_subwords(p->constraint); i++)
        cost[i] = dgm_constraint_subword_first(p->constraint, i) ? -first_cost : -later_cost;
}

static float debt_of(const dgm_search *s, const dgm_active *p, int32_t state)
{
    return dgm_constraint_debt(p->constraint, state, costs_of(s, p));
}

static int32_t state_of(const dgm_search *s, const dgm_active *p, int hypo)
{
    if (p->constraint_right) return dgm_pair_state(s, p, hypo);
    return p->now.states[hypo * s->scorer_count + s->scorer_count - 2];
}

bool dgm_hypo_complete(const dgm_search *s, const dgm_active *p, int hypo)
{
    if (p->constraint_right || (p->walk && s->pairs)) return dgm_pair_complete(s, p, hypo);
    return !p->constraint || dgm_constraint_may_end(p->constraint, state_of(s, p, hypo));
}

int dgm_hypo_bank(const dgm_search *s, const dgm_active *p, int hypo)
{
    return p->constraint ? dgm_constraint_bank(p->constraint, state_of(s, p, hypo)) : 0;
}

float dgm_hypo_debt(const dgm_search *s, const dgm_active *p, int hypo)
{
    return p->constraint ? debt_of(s, p, state_of(s, p, hypo)) : 0.0f;
}

// ---- rows --------------------------------------------------------------------------------------

// Does a model that writes from the right have to begin the word that it is in before anything that is lacking?
static bool is_amid(const dgm_constraint *c, int32_t state)
{
    return dgm_constraint_glued(c, state) && !dgm_constraint_under_way(c, state);
}

void dgm_banks_terms(dgm_search *s, int row, dgm_terms *t)
{
    const dgm_active *p = &s->active[s->rows.active[row]];
    if (!p->constraint) return;
    const int32_t state = state_of(s, p, s->rows.hypo[row]);
    const int32_t *deny = NULL;
    int denied = 0;
    dgm_constraint_limits(p->constraint, state, &t->allow, &t->allow_count, &deny, &denied);
    // With few tokens to go what is lacking cannot wait for the model to begin a word.
    if (!t->allow && is_amid(p->constraint, state) &&
        p->max_length - p->tokens <= dgm_constraint_missing(p->constraint, state) + 2)
        t->allow = dgm_constraint_beginnings(p->constraint, &t->allow_count);
    t->allow_name = dgm_constraint_list_name(p->constraint, t->allow);
    const bool closed = !dgm_constraint_may_end(p->constraint, state);
    // Where every token is a candidate, those that say a term too often are left out later, and only they.
    int32_t spent[DGM_OFFERS];
    const bool narrow = s->k < s->info[0]->target_vocab && !s->pairs;
    const int spents = narrow ? dgm_constraint_spent(p->constraint, state, spent, DGM_OFFERS) : 0;
    if (denied == 0 && spents == 0 && !closed) return;
    int32_t *list = s->banks.deny + (size_t)row * (size_t)s->banks.deny_room;
    int count = t->deny_count;
    if (count > 0) memcpy(list, t->deny, (size_t)count * sizeof *list);
    for (int i = 0; i < denied && i < DGM_BANK_DENY; i++) count = dgm_insert_id(list, count, deny[i]);
    for (int i = 0; i < spents; i++) count = dgm_insert_id(list, count, spent[i]);
    if (closed) count = dgm_insert_id(list, count, s->eos);
    t->deny = list;
    t->deny_count = count;
}

static bool searches(const dgm_active *p)
{
    return p->constraint && p->again_count == 0;
}

// Pairs may say a subword on either side, and the second behind the first: both watch all that constraints name, or
// what their lattice has.
static int pair_tokens(const dgm_search *s, int vector, int32_t *tokens)
{
    const dgm_active *p = &s->active[s->rows.active[vector / s->vectors]];
    int count = 0;
    if (p->walk) return dgm_pair_watch(s, vector, tokens);
    const int32_t *named = p->constraint ? dgm_constraint_tokens(p->constraint, &count) : NULL;
    if (count > DGM_OFFERS) count = DGM_OFFERS;
    for (int i = 0; i < count; i++) tokens[i] = named[i];
    return count;
}

static int watch_pairs(dgm_search *s)
{
    dgm_banks *b = &s->banks;
    const dgm_rows *r = &s->rows;
    int32_t tokens[DGM_OFFERS];
    int most = 0;
    for (int i = 0; i < r->ranked; i++) b->offers[i] = 0;
    for (int i = 0; i < r->ranked * s->vectors; i++) {
        const int count = pair_tokens(s, i, tokens);
        if (count > b->offers[i / s->vectors]) b->offers[i / s->vectors] = count;
        if (count > most) most = count;
    }
    b->watched = 1 + most;
    for (int i = 0; i < r->ranked * s->vectors; i++) {
        int32_t *to = b->watch + (size_t)i * (size_t)b->watched;
        const int count = pair_tokens(s, i, tokens);
        to[0] = r->watch[i];
        for (int k = 0; k < most; k++) to[1 + k] = k < count ? tokens[k] : -1;
    }
    return b->watched;
}

int dgm_banks_watch(dgm_search *s)
{
    dgm_banks *b = &s->banks;
    const dgm_rows *r = &s->rows;
    b->watched = 1;
    if (s->pairs) return watch_pairs(s);
    if (b->constrained == 0) return 1;
    int most = 0;
    for (int i = 0; i < r->ranked; i++) {
        const dgm_active *p = &s->active[r->active[i]];
        int32_t *tokens = b->watch + (size_t)i * (1 + DGM_OFFERS) + 1;
        int *subwords = b->subwords + (size_t)i * DGM_OFFERS, count = 0, kept = 0;
        if (searches(p))
            count = dgm_constraint_offers(p->constraint, state_of(s, p, r->hypo[i]), tokens,
                                          subwords, DGM_OFFERS);
        for (int k = 0; k < count; k++) {
            if (r->terms[i].allow &&
                !dgm_holds_id(r->terms[i].allow, r->terms[i].allow_count, tokens[k]))
                continue;
            tokens[kept] = tokens[k];
            subwords[kept++] = subwords[k];
        }
        b->offers[i] = kept;
        if (kept > most) most = kept;
    }
    b->watched = 1 + most;
    for (int i = 0; i < r->ranked; i++) { // to the width that is needed
        const int32_t *from = b->watch + (size_t)i * (1 + DGM_OFFERS) + 1;
        int32_t *to = b->watch + (size_t)i * (size_t)b->watched;
        const int count = b->offers[i];
        to[0] = -1;
        memmove(to + 1, from, (size_t)count * sizeof *to);
        to[0] = r->watch[i];
        for (int k = count; k < most; k++) to[1 + k] = -1;
    }
    return b->watched;
}

// What a subword costs behind one row: the least so far is what it is expected to cost elsewhere.
static void learn(dgm_search *s, int row, int subword, float score)
{
    enum { MOST = 20 }; // a word that the model excludes says nothing about other places
    const dgm_active *p = &s->active[s->rows.active[row]];
    float *cost = &costs_of(s, p)[subword];
    const float seen = s->rows.terms[row].base - score;
    if (!(seen < MOST)) return;
    if (*cost < 0.0f || seen < *cost)
        *cost = seen > 0.0f ? seen : 0.0f;
    else if (dgm_constraint_subword_first(p->constraint, subword))
        *cost += passing * (seen - *cost);
}

void dgm_banks_read(dgm_search *s)
{
    const dgm_banks *b = &s->banks;
    for (int i = 0; i < s->rows.ranked * s->vectors; i++) {
        const float *score = b->watch_score + (size_t)i * (size_t)b->watched;
        s->rows.watch_score[i] = score[0];
        for (int k = 0; !s->pairs && k < b->offers[i]; k++)
            learn(s, i, b->subwords[(size_t)i * DGM_OFFERS + (size_t)k], score[1 + k]);
    }
}

int dgm_banks_offers(const dgm_search *s, int row)
{
    return s->banks.watched > 1 ? s->banks.offers[row] : 0;
}

int32_t dgm_banks_offered(const dgm_search *s, int row, int i, float *score)
{
    const size_t at = (size_t)row * (size_t)s->banks.watched + 1 + (size_t)i;
    *score = s->banks.watch_score[at];
    return s->banks.watch[at];
}

int dgm_banks_offer(const dgm_search *s, int row, int32_t token)
{
    float score;
    for (int i = 0; i < dgm_banks_offers(s, row); i++)
        if (dgm_banks_offered(s, row, i, &score) == token) return i;
    return -1;
}

bool dgm_banks_completes(const dgm_search *s, const dgm_active *p, int hypo, int32_t token)
{
    const int32_t before = state_of(s, p, hypo);
    if (token == s->eos) return dgm_constraint_may_end(p->constraint, before);
    bool broken;
    const int32_t state = dgm_constraint_advance(p->constraint, before, token, &broken);
    return !broken && dgm_constraint_missing(p->constraint, state) <= p->max_length - p->tokens - 1;
}

// ---- candidates --------------------------------------------------------------------------------

// Tokens that a hypothesis needs at least for what it lacks behind a candidate. A term that pairs say on one side takes
// a pair for each of its subwords.
static int tokens_missing(const dgm_search *s, const dgm_active *p, const dgm_candidate *c, int32_t state, int missing)
{
    const dgm_constraint *x = p->constraint, *right = p->constraint_right;
    if (!right) return missing + (missing > 0 && is_amid(x, state));
    const bool ample = 2 * missing + 2 <= p->max_length - p->tokens - s->vectors;
    if (ample) return missing > 0 ? 2 * missing - 1 : 0;
    const bool pending = dgm_constraint_pending(right, c->state_right);
    const int other = dgm_constraint_missing(right, dgm_constraint_join(right, c->state_right, x, state));
    const bool glued = dgm_constraint_glued(right, c->state_right);
    if (missing > 0) return other < missing ? 2 * other - 1 : 2 * missing - 1 + glued;
    return pending || (glued && dgm_constraint_pending(x, state));
}

bool dgm_banks_short(const dgm_active *p)
{
    const int all = dgm_constraint_missing(p->constraint, dgm_constraint_start(p->constraint));
    return p->max_length - p->tokens <= 2 * all + 3;
}

bool dgm_banks_hopeless(const dgm_search *s, const dgm_active *p, const dgm_candidate *c)
{
    const int missing = dgm_constraint_missing(p->constraint, c->state);
    return tokens_missing(s, p, c, c->state, missing) > p->max_length - p->tokens - s->vectors;
}

// NULL: it cannot live, or end.
static dgm_bank_entry *add(dgm_search *s, const dgm_active *p, const dgm_candidate *c)
{
    dgm_banks *b = &s->banks;
    const dgm_constraint *x = p->constraint;
    if (!(c->score > -INFINITY)) return NULL;
    dgm_bank_entry e = {.c = *c, .key = c->score - s->config.diversity * (float)c->column};
    if (dgm_candidate_ends(s, c)) {
        if (!s->pairs && !dgm_constraint_may_end(x, state_of(s, p, c->hypo))) return NULL; // pairs are judged already
        e.bank = -1;
    } else {
        bool broken = false;
        const int32_t state =
            s->pairs ? c->state : dgm_constraint_advance(x, state_of(s, p, c->hypo), c->token, &broken);
        if (broken) return NULL;
        if (b->asked_count == 0 || b->asked != state) {
            b->asked = state;
            b->missing = dgm_constraint_missing(x, state);
            b->bank = dgm_constraint_bank(x, state);
            b->debt = debt_of(s, p, state);
        }
        b->asked_count++;
        e.missing = tokens_missing(s, p, c, state, b->missing);
        e.bank = b->bank;
        e.key -= b->debt;
        const int waits = p->constraint_right && b->missing > 0 ? 2 * b->missing - 1 : b->missing;
        if (s->width == 1) e.key += displaced * (float)waits;
    }
    b->pool[b->pool_count] = e;
    return &b->pool[b->pool_count++];
}

// Where the model would end the sentence, whatever else it says is chatter.
static bool would_end(const dgm_search *s, int row)
{
    const dgm_rows *r = &s->rows;
    const size_t first = (size_t)row * (size_t)s->k;
    const float top = r->score[first + (r->token[first] == s->eos && s->k > 1)];
    return r->watch_score[row] >= top;
}

// And what is missing has to come now.
static bool only_offers(const dgm_search *s, const dgm_active *p, int hypo, int row)
{
    const dgm_banks *b = &s->banks;
    return b->watched > 1 && b->offers[row] > 0 && !b->roomy && !dgm_hypo_complete(s, p, hypo) &&
           would_end(s, row);
}

// Are there places for everything that the hypotheses' rows have to say? Then nothing needs to give way.
static bool has_room(const dgm_search *s, const dgm_active *p, const int32_t *lines)
{
    int said = 0;
    for (int j = 0; j < p->now.count && said <= p->width; j++) said += s->k + dgm_banks_offers(s, lines[j]);
    return said <= p->width;
}

static void add_ranked(dgm_search *s, const dgm_active *p, const dgm_candidate *c)
{
    if (only_offers(s, p, c->hypo, c->row)) return;
    dgm_bank_entry *e = add(s, p, c);
    if (e && c->token != s->eos)
        e->chatter = dgm_hypo_complete(s, p, c->hypo) && would_end(s, c->row);
}

// What a row offers beside its best.
static void add_offers(dgm_search *s, const dgm_active *p, int hypo, int row, float behind)
{
    const dgm_banks *b = &s->banks;
    const int32_t *best = s->rows.token + (size_t)row * (size_t)s->k;
    const bool alone = only_offers(s, p, hypo, row);
    for (int i = 0; b->watched > 1 && i < b->offers[row]; i++) {
        const size_t at = (size_t)row * (size_t)b->watched + 1 + (size_t)i;
        const dgm_candidate c = {.hypo = hypo,
                                 .row = row,
                                 .column = s->k,
                                 .token = b->watch[at],
                                 .score = b->watch_score[at] + behind};
        bool known = false;
        for (int n = 0; n < s->k && !known && !alone; n++) known = best[n] == c.token;
        if (!known) add(s, p, &c);
    }
}

// The last chance to end: what has to come last has come, and there is no room for it to come once more.
static void add_end(dgm_search *s, const dgm_active *p, int hypo, int row, float behind)
{
    const int32_t *best = s->rows.token + (size_t)row * (size_t)s->k;
    const int again = dgm_constraint_missing(p->constraint, dgm_constraint_start(p->constraint));
    if (s->rows.watch[row] != s->eos || !dgm_constraint_closes(p->constraint) || !dgm_hypo_complete(s, p, hypo)) return;
    if (p->max_length - p->tokens > again || dgm_active_early(s, p)) return;
    for (int n = 0; n < s->k; n++)
        if (best[n] == s->eos) return;
    const dgm_candidate c = {.hypo = hypo, .row = row, .column = s->k, .token = s->eos,
                             .score = s->rows.watch_score[row] + behind};
    add(s, p, &c);
}

// ---- places ------------------------------------------------------------------------------------

// Ties: the better hypothesis, then the lower token, as everywhere.
static bool before(const dgm_bank_entry *a, const dgm_bank_entry *b)
{
    if (a->key != b->key) return a->key > b->key;
    if (a->c.hypo != b->c.hypo) return a->c.hypo < b->c.hypo;
    if (a->c.token != b->c.token) return a->c.token < b->c.token;
    return a->c.second < b->c.second;
}

#define BEFORE(x, y) before(&pool[x], &pool[y])

static void sift(const dgm_bank_entry *pool, int32_t *heap, int count, int at)
{
    const int32_t moved = heap[at];
    DGM_HEAP_DOWN(heap, count, at, moved, BEFORE);
}

// Candidates that cannot say what is missing in the tokens that are left go, unless all would. (Where terms overlap,
// fewer tokens may do: so none goes while there are places for all.)
static void drop_hopeless(dgm_search *s, const dgm_active *p)
{
    dgm_banks *b = &s->banks;
    const int left = p->max_length - p->tokens - s->vectors;
    int kept = 0;
    for (int i = 0; i < b->pool_count; i++) kept += b->pool[i].missing <= left;
    if (kept == 0 || kept == b->pool_count) return;
    kept = 0;
    for (int i = 0; i < b->pool_count; i++)
        if (b->pool[i].missing <= left) b->pool[kept++] = b->pool[i];
    b->pool_count = kept;
}

// Marks the best candidate of the `places` best banks; returns how many there are.
static int reserve(dgm_search *s, const dgm_active *p, int places)
{
    dgm_banks *b = &s->banks;
    const int banks = dgm_constraint_banks(p->constraint);
    int count = 0;
    for (int i = 0; i < banks; i++) b->best[i] = -1;
    for (int i = 0; i < b->pool_count; i++) {
        const dgm_bank_entry *e = &b->pool[i];
        if (e->bank < 0 || e->chatter) continue;
        if (b->best[e->bank] < 0 || before(e, &b->pool[b->best[e->bank]])) b->best[e->bank] = i;
    }
    for (int i = banks - 1, above = -1; i >= 0; i--) {
        if (b->best[i] < 0) continue;
        if (above >= 0 && before(&b->pool[above], &b->pool[b->best[i]]))
            b->best[i] = -1; // has less and is worse
        else
            above = b->best[i];
    }
    for (; count < places; count++) {
        int at = -1;
        for (int i = 0; i < banks; i++)
            if (b->best[i] >= 0 && (at < 0 || before(&b->pool[b->best[i]], &b->pool[b->best[at]])))
                at = i;
        if (at < 0) break;
        b->pool[b->best[at]].reserved = true;
        b->best[at] = -1;
    }
    return count;
}

static void choose(dgm_search *s, const dgm_active *p, int places)
{
    dgm_banks *b = &s->banks;
    if (b->pool_count > places) drop_hopeless(s, p);
    int reserved = reserve(s, p, places), taken = 0, later = 0;
    // Places come first in `order`, what was passed over for them behind, at most `more` of it.
    const int more = 2 * s->width + 1;
    int count = b->pool_count;
    for (int i = 0; i < count; i++) b->heap[i] = i;
    for (int i = count / 2 - 1; i >= 0; i--) sift(b->pool, b->heap, count, i);
    while (count > 0 && (taken < places || later < more)) {
        const dgm_bank_entry *e = &b->pool[b->heap[0]];
        b->heap[0] = b->heap[--count];
        if (count > 0) sift(b->pool, b->heap, count, 0);
        if (e->reserved || (taken < places && taken + reserved < places)) {
            reserved -= e->reserved;
            b->order[taken++] = e->c;
        } else if (later < more) {
            b->order[places + later++] = e->c;
        }
    }
    memmove(b->order + taken, b->order + places, (size_t)later * sizeof *b->order);
    b->order_count = taken + later;
}

static bool next_chosen(dgm_merge *m, dgm_candidate *c)
{
    const dgm_banks *b = &m->s->banks;
    if (m->at == b->order_count) return false;
    *c = b->order[m->at++];
    return true;
}

dgm_merge dgm_banks_filter(dgm_search *s, const dgm_active *p, dgm_merge *m)
{
    if (!p->constraint) return *m;
    dgm_bank_entry *e;
    dgm_candidate c;
    s->banks.pool_count = s->banks.asked_count = 0;
    s->banks.roomy = m->lines && has_room(s, p, m->lines);
    while (dgm_merge_next(m, &c)) {
        if (m->lines)
            add_ranked(s, p, &c);
        else if ((e = add(s, p, &c)))
            e->chatter = c.chatter;
    }
    for (int j = 0; m->lines && j < p->now.count; j++) {
        add_offers(s, p, j, m->lines[j], m->behind ? m->behind[j] : 0.0f);
        add_end(s, p, j, m->lines[j], m->behind ? m->behind[j] : 0.0f);
    }
    choose(s, p, s->finish->places ? s->finish->places(s, p) : p->width);
    return (dgm_merge){.next = next_chosen, .s = s, .p = p};
}
