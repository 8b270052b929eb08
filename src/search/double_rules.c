// SPDX-License-Identifier: MIT
// Pairs with rules: constraints, evidence, repetition and diversity, where what a word earns or may be
// depends on the words around it.
//
// The models score the two words of a pair apart; the rules know both. So for every hypothesis all pairs of its best
// left and right words are looked at, 32 of each side, and those that constraints name besides:
//
//   score of (l, r) = sum so far + lambda (log P(l) + log P(r)) + what the rules add for l, and for r beside l
//
// Pairs in one direction are two words behind each other: a rule sees l, then r behind it.
//
//   both ends    l1 l2 l .. r r2 r1      left words follow the rules from the left, right words from the right:
//
//   constraints  an automaton for each half (constraint.h); a term is met where either has it. When the sentence
//                closes, the whole of it goes through the one from the left: what crosses the middle counts there
//   evidence     n-grams inside a half as it grows, those across the middle and the end's when the sentence closes
//   repetition   n-grams of both halves, and across the middle when it closes; a word counts as said in either half
//
// In a lattice both words are on a path of it (double_walk.c).
//
// What a rule says of a left word alone, or of a right one from both ends, is asked once for the word and not for each
// of its pairs; what it says of a word behind another, once for each state that the other leaves.
//
// double_choose.c chooses among the pairs.
#include "search/double_table.h"

#include <math.h>
#include <string.h>

typedef dgm_pair_ground ground;
typedef dgm_pair_word word;
typedef dgm_pair_table table;

bool dgm_pair_ruled(const dgm_search *s, const dgm_active *p)
{
    return p->constraint || p->lmbr || p->walk || s->history.path || s->config.diversity > 0.0f;
}

// ---- a hypothesis ------------------------------------------------------------------------------

// What a word of evidence earns whose n-grams are those that begin with it: `behind` it stand words, then the end.
static float earns_backwards(const ground *g, int32_t token, const int32_t *written, int count)
{
    const dgm_lmbr_rows *r = g->p->lmbr;
    float sum = r->weights.theta[0] + dgm_lmbr_gain(r, 0, token);
    int32_t with = dgm_lmbr_next(r, 0, token), without = 0;
    for (int n = 1; n < DGM_LMBR_ORDER && n <= count + 1; n++) {
        const int32_t next = n <= count ? written[count - n] : g->s->eos;
        sum += dgm_lmbr_gain(r, with, next) - dgm_lmbr_gain(r, without, next);
        with = dgm_lmbr_next(r, with, next);
        without = dgm_lmbr_next(r, without, next);
    }
    return sum;
}

static float earns(const ground *g, int32_t *state, int32_t token)
{
    const dgm_lmbr_rows *r = g->p->lmbr;
    const float sum = r->weights.theta[0] + dgm_lmbr_gain(r, *state, token);
    *state = dgm_lmbr_next(r, *state, token);
    return sum;
}

static void read_words(ground *g)
{
    const dgm_active *p = g->p;
    const int pairs = p->tokens / 2;
    int32_t node = p->now.live[g->hypo].node;
    g->lefts = g->both ? pairs : 2 * pairs;
    g->rights = g->both ? pairs : 0;
    for (int i = pairs - 1; i >= 0; i--) {
        const dgm_node *right = &p->nodes[node], *left = &p->nodes[right->parent];
        g->left[g->both ? i : 2 * i] = left->token;
        *(g->both ? &g->right[i] : &g->left[2 * i + 1]) = right->token;
        node = left->parent;
    }
}

static ground stand(const dgm_search *s, const dgm_active *p, int hypo)
{
    const size_t longest = (size_t)s->config.max_length + 4;
    ground g = {.s = s,
                .p = p,
                .hypo = hypo,
                .both = s->info[0]->order == DGM_ORDER_BIDIRECTIONAL,
                .left = s->pairs->said,
                .right = s->pairs->said + longest,
                .state = p->now.states[hypo * s->scorer_count + s->scorer_count - 2],
                .state_right = p->now.live[hypo].state_right,
                .base = p->now.live[hypo].score,
                .lambda = p->lmbr ? p->lmbr->weights.lambda : 1.0f};
    read_words(&g);
    for (int i = 0; p->lmbr && i < g.lefts; i++) g.earned += earns(&g, &g.lmbr, g.left[i]);
    for (int i = 0; p->lmbr && i < g.rights; i++) g.earned += earns_backwards(&g, g.right[i], g.right, i);
    if (p->walk) {
        const dgm_pair_said said = {g.left, g.lefts, g.right, g.rights, g.both};
        g.place = dgm_pair_stand(p->walk, &said);
    }
    return g;
}

void dgm_pair_follow_lattice(dgm_search *s, const dgm_active *p, int row)
{
    const ground g = stand(s, p, s->rows.hypo[row]);
    dgm_pair_ways(s, &g.place, row);
}

// ---- words -------------------------------------------------------------------------------------

static bool same(const int32_t *a, const int32_t *b, int n)
{
    return memcmp(a, b, (size_t)n * sizeof *a) == 0;
}

// Does the last n-gram of some words stand there before?
static bool repeats(const int32_t *words, int count, int n)
{
    for (int i = 0; n > 0 && i + n < count; i++)
        if (same(words + i, words + count - n, n)) return true;
    return false;
}

static bool holds(const int32_t *words, int count, int32_t token)
{
    for (int i = 0; i < count; i++)
        if (words[i] == token) return true;
    return false;
}

static bool punishes(const ground *g)
{
    return g->s->config.repetition > 0.0f;
}

static float punishment(const ground *g, bool said)
{
    return said && punishes(g) ? -logf(g->s->config.repetition) : 0.0f;
}

static bool said_before(const ground *g, int32_t token)
{
    return punishes(g) && (holds(g->left, g->lefts, token) || holds(g->right, g->rights, token));
}

// Words of one side: the best, the end, and those that constraints name or a lattice has.
static int list_words(const dgm_search *s, const dgm_active *p, int vector, float base, word *words, int *best)
{
    const dgm_rows *r = &s->rows;
    const dgm_banks *b = &s->banks;
    const size_t first = (size_t)vector * (size_t)s->k;
    dgm_terms limits = r->terms[vector];
    const bool forced = limits.allow_count == 1 && !p->walk;
    int count = 0;
    if (p->walk) dgm_terms_allow(&limits, NULL, 0); // what is watched comes from it; ends are judged later
    for (int i = 0; i < s->k && i < DGM_PAIR_GRID && r->score[first + (size_t)i] > -INFINITY; i++)
        words[count++] = (word){.token = r->token[first + (size_t)i],
                                .value = r->score[first + (size_t)i] - base,
                                .forced = forced};
    *best = count;
    const bool watches = b->watched > 1;
    for (int i = 0; i < (watches ? 1 + b->offers[vector / 2] : 1); i++) {
        const size_t at = (size_t)vector * (size_t)(watches ? b->watched : 1) + (size_t)i;
        const int32_t token = watches ? b->watch[at] : r->watch[at];
        const float value = (watches ? b->watch_score[at] : r->watch_score[at]) - base;
        bool known = token < 0 || !(value > -INFINITY) || !dgm_pair_may_say(&limits, token);
        for (int k = 0; k < count && !known; k++) known = words[k].token == token;
        if (!known) words[count++] = (word){.token = token, .value = value, .forced = forced};
    }
    return count;
}

// ---- rules of one word -------------------------------------------------------------------------

// The left word of a pair, or the first of two behind each other.
static void say_left(const ground *g, word *l)
{
    const dgm_active *p = g->p;
    bool broken = false;
    l->state = g->state;
    l->lmbr = g->lmbr;
    l->node = g->place.node;
    l->may = true;
    if (l->token == g->s->eos) return;
    l->said = said_before(g, l->token);
    l->add = punishment(g, l->said);
    g->left[g->lefts] = l->token;
    if (!g->both && !l->forced) l->may = !repeats(g->left, g->lefts + 1, g->s->config.no_repeat);
    if (p->lmbr) l->add += earns(g, &l->lmbr, l->token);
    if (p->constraint) l->state = dgm_constraint_advance(p->constraint, g->state, l->token, &broken);
    if (p->constraint_right)
        broken |= dgm_constraint_clashes(p->constraint, l->state, p->constraint_right, g->state_right);
    if (p->walk && !dgm_pair_follow(p->walk, &l->node, l->token, &l->add)) broken = true;
    l->may &= !broken;
}

// The right word of a pair from both ends.
static void say_right(const ground *g, word *r)
{
    const dgm_active *p = g->p;
    bool broken = false;
    r->state = g->state_right;
    r->may = true;
    r->said = said_before(g, r->token);
    if (r->token == g->s->eos || !g->both) return;
    if (p->lmbr) r->add = earns_backwards(g, r->token, g->right, g->rights);
    if (p->constraint_right) {
        r->state = dgm_constraint_advance(p->constraint_right, g->state_right, r->token, &broken);
        r->met = dgm_constraint_join(p->constraint, 0, p->constraint_right, r->state);
        broken |= dgm_constraint_clashes(p->constraint, g->state, p->constraint_right, r->state);
    }
    r->may = !broken;
}

// Where the models alone score words, a pair of a bank is behind all pairs of the bank whose words are both better. So
// with r right words that bring nothing new before it, and l left words of its bank, (l + 1) (r + 1) - 1 pairs are
// ahead of it, and what the policy will not draw need not be looked at.
static void rank_words(table *t)
{
    const ground *g = t->g;
    const dgm_active *p = g->p;
    int before[DGM_PAIR_SHELVES] = {0}, nothing_new = 0;
    if (!p->constraint_right || p->lmbr || g->s->history.path) return;
    const int32_t met = dgm_constraint_join(p->constraint, 0, p->constraint_right, g->state_right);
    for (int i = 0; i < t->lefts && i < t->left_best; i++) {
        word *l = &t->left[i];
        if (l->token == g->s->eos || !l->may) continue;
        const int bank = dgm_constraint_bank(p->constraint, l->state | met);
        if (bank < DGM_PAIR_SHELVES) l->rank = before[bank]++;
    }
    for (int k = 0; k < t->rights && k < t->right_best; k++) {
        word *r = &t->right[k];
        if (r->token != g->s->eos && r->may && r->met == met) r->rank = nothing_new++;
    }
}

// Right words and the lattice: which can be joined with which left words, and what their arcs add.
static void join_rights(table *t)
{
    const ground *g = t->g;
    dgm_pair_rights *j = &t->joins;
    j->count = 0;
    if (!g->p->walk || !g->both) return;
    for (int k = 0; k < t->rights; k++) {
        t->right[k].node = -1; // its number among those that are joined
        if (t->right[k].token == g->s->eos || j->count == DGM_PAIR_JOINED) continue;
        t->right[k].node = j->count;
        j->tokens[j->count++] = t->right[k].token;
    }
    dgm_pair_join(&g->place, j);
    for (int k = 0; k < t->rights; k++)
        if (t->right[k].node >= 0) t->right[k].add += j->best[t->right[k].node] - g->place.right;
}

void dgm_pair_lay_table(table *t, const dgm_search *s, const dgm_active *p, int row)
{
    t->ground = stand(s, p, s->rows.hypo[row]);
    t->ground.row = row;
    const ground *g = t->g = &t->ground;
    t->lefts = list_words(s, p, 2 * row, g->base, t->left, &t->left_best);
    t->rights = list_words(s, p, 2 * row + 1, 0.0f, t->right, &t->right_best);
    t->closed_count = 0;
    for (int i = 0; i < t->lefts; i++) {
        word *l = &t->left[i];
        say_left(g, l);
        for (l->alike = 0; t->left[l->alike].state != l->state;) l->alike++;
        for (int k = 0; k < t->rights && g->p->constraint && l->alike == i; k++) t->behind[i][k] = DGM_PAIR_UNKNOWN;
    }
    for (int k = 0; k < t->rights; k++) say_right(g, &t->right[k]);
    join_rights(t);
    rank_words(t);
}

// ---- rules of a pair ---------------------------------------------------------------------------

// The second word of two behind each other.
static bool say_second(table *t, const word *l, int k, dgm_candidate *c, float *add)
{
    const ground *g = t->g;
    const dgm_active *p = g->p;
    const word *r = &t->right[k];
    const int n = g->s->config.no_repeat;
    int32_t lmbr = l->lmbr, node = l->node;
    *add += punishment(g, r->said || (punishes(g) && r->token == l->token));
    if (n > 0 && !r->forced) {
        g->left[g->lefts] = l->token;
        g->left[g->lefts + 1] = r->token;
        if (repeats(g->left, g->lefts + 2, n)) return false;
    }
    if (p->lmbr) *add += earns(g, &lmbr, r->token);
    if (p->walk && !dgm_pair_follow(p->walk, &node, r->token, add)) return false;
    if (!p->constraint) return true;
    int32_t *state = &t->behind[l->alike][k];
    if (*state == DGM_PAIR_UNKNOWN) {
        bool broken;
        *state = dgm_constraint_advance(p->constraint, l->state, r->token, &broken);
        if (broken) *state = DGM_PAIR_BROKEN;
    }
    c->state = *state;
    return *state != DGM_PAIR_BROKEN;
}

// A sentence that ends behind the left word, or before it.
static bool end(const ground *g, const word *l, float *add)
{
    const int32_t eos = g->s->eos;
    int32_t lmbr = l->lmbr;
    if (g->p->lmbr) *add += earns(g, &lmbr, eos);
    if (g->p->walk && !dgm_pair_leave(g->p->walk, l->node, eos, add)) return false;
    return !g->p->constraint || dgm_constraint_may_end(g->p->constraint, l->state);
}

static bool judge_behind(table *t, const word *l, int k, dgm_candidate *c, float *add)
{
    const ground *g = t->g;
    *add = l->add;
    c->first += *add;
    if (dgm_candidate_ends(g->s, c)) {
        // A word behind the end is dropped; in a lattice it would be a word of no path.
        if (g->p->walk && l->token == g->s->eos && c->second != g->s->eos) return false;
        return end(g, l, add);
    }
    return say_second(t, l, k, c, add);
}

// The whole sentence that a pair closes, from its beginning.
static int close_words(const ground *g, const dgm_candidate *c, int32_t *whole)
{
    int n = g->lefts;
    memcpy(whole, g->left, (size_t)n * sizeof *whole);
    if (c->token != g->s->eos) whole[n++] = c->token;
    if (c->second != g->s->eos) whole[n++] = c->second;
    for (int i = g->rights - 1; i >= 0; i--) whole[n++] = g->right[i];
    return n;
}

bool dgm_pair_closes_from(table *t, int32_t state)
{
    const ground *g = t->g;
    const dgm_constraint *c = g->p->constraint;
    for (int i = 0; i < t->closed_count; i++)
        if (t->closed[i] == state) return t->closes[i];
    int32_t now = state;
    bool broken = false;
    for (int i = g->rights - 1; i >= 0 && !broken; i--) now = dgm_constraint_advance(c, now, g->right[i], &broken);
    t->closed[t->closed_count] = state;
    t->closes[t->closed_count] = !broken && dgm_constraint_may_end(c, now);
    return t->closes[t->closed_count++];
}

// (l, EOD), (EOD, r) or (EOD, EOD): the state behind the word in the middle.
static bool closes(table *t, const word *l, const word *r)
{
    const ground *g = t->g;
    int32_t state = l->state;
    bool broken = false;
    // What the right half lacks with the word would have to begin in the left half.
    if (r->token != g->s->eos && dgm_constraint_lacks(g->p->constraint, g->state | r->met)) return false;
    if (r->token != g->s->eos) state = dgm_constraint_advance(g->p->constraint, g->state, r->token, &broken);
    return !broken && dgm_pair_closes_from(t, state);
}

// Does an n-gram stand twice in a whole sentence, but for a forced beginning and end, which may repeat themselves?
static bool repeats_closed(const ground *g, const int32_t *whole, int count)
{
    const int n = g->s->config.no_repeat, ahead = g->p->prefix_count - n, behind = count - g->p->behind_count;
    for (int b = 1; n > 0 && b + n <= count; b++)
        for (int a = 0; a < b; a++) {
            const bool forced = (a <= ahead || a >= behind) && (b <= ahead || b >= behind);
            if (!forced && same(whole + a, whole + b, n)) return true;
        }
    return false;
}

static bool judge_close(table *t, const word *l, const word *r, const dgm_candidate *c, float *add)
{
    const ground *g = t->g;
    const int32_t eos = g->s->eos;
    int32_t *whole = g->s->pairs->whole;
    if (g->p->constraint && !closes(t, l, r)) return false;
    const int count = close_words(g, c, whole);
    if (c->token != eos) *add += punishment(g, l->said);
    if (c->second != eos)
        *add += punishment(g, r->said || (punishes(g) && c->token != eos && c->second == c->token));
    if (repeats_closed(g, whole, count)) return false;
    int32_t lmbr = 0;
    for (int i = 0; g->p->lmbr && i <= count; i++) *add += earns(g, &lmbr, i < count ? whole[i] : eos);
    *add -= g->earned;
    if (!g->p->walk) return true;
    const float path = dgm_walk_sentence(g->p->walk, whole, count, eos, NULL);
    *add += path - (g->place.left + g->place.right);
    return path > -INFINITY;
}

// Does an n-gram stand in words that were written from the right?
static bool stands_right(const int32_t *written, int count, const int32_t *gram, int n)
{
    for (int i = 0; i + n <= count; i++) {
        int k = 0;
        while (k < n && written[i + n - 1 - k] == gram[k]) k++;
        if (k == n) return true;
    }
    return false;
}

// Would the pair bring an n-gram that is there, in its own half or in the other?
static bool repeats_across(const ground *g, const word *l, const word *r)
{
    const int n = g->s->config.no_repeat, lefts = g->lefts + 1, rights = g->rights + 1;
    if (n == 0 || lefts < n) return false;
    g->left[g->lefts] = l->token;
    g->right[g->rights] = r->token;
    const int32_t *left = g->left + lefts - n, *right = g->right + rights - n;
    if (!l->forced && (repeats(g->left, lefts, n) || stands_right(g->right, rights, left, n))) return true;
    if (r->forced) return false;
    int32_t *gram = g->s->pairs->whole; // the right one in the order of reading
    for (int i = 0; i < n; i++) gram[i] = right[n - 1 - i];
    for (int i = 0; i + n <= lefts; i++)
        if (same(g->left + i, gram, n)) return true;
    return repeats(g->right, rights, n);
}

static bool judge_apart(const table *t, const word *l, const word *r, dgm_candidate *c, float *add)
{
    const ground *g = t->g;
    const dgm_active *p = g->p;
    if (repeats_across(g, l, r)) return false;
    if (p->walk && (r->node < 0 || !dgm_pair_joins(&g->place, &t->joins, l->node, r->node))) return false;
    *add = l->add;
    c->first += *add;
    *add += punishment(g, r->said || (punishes(g) && l->token == r->token));
    *add += r->add;
    if (!p->constraint) return true;
    if (dgm_constraint_clashes(p->constraint, l->state, p->constraint_right, r->state)) return false;
    c->state = l->state | r->met;
    c->state_right = r->state;
    return true;
}

// c has the models' scores; false: a rule forbids the pair.
static bool judge(table *t, int i, int k, dgm_candidate *c)
{
    const ground *g = t->g;
    const word *l = &t->left[i], *r = &t->right[k];
    const bool ends = dgm_candidate_ends(g->s, c);
    float add = 0.0f;
    bool may;
    if (g->both && !ends && !r->may) return false;
    if (!g->both)
        may = judge_behind(t, l, k, c, &add);
    else if (ends)
        may = judge_close(t, l, r, c, &add);
    else
        may = judge_apart(t, l, r, c, &add);
    c->score += add;
    return may && c->score > -INFINITY;
}

bool dgm_pair_make(table *t, int i, int k, dgm_candidate *c)
{
    const ground *g = t->g;
    *c = (dgm_candidate){.hypo = g->hypo, .row = g->row, .token = t->left[i].token, .second = t->right[k].token};
    c->first = g->base + g->lambda * t->left[i].value;
    c->score = c->first + g->lambda * t->right[k].value;
    if (dgm_candidate_ends(g->s, c) && !dgm_pair_may_end(g->s, g->p, c)) return false;
    return judge(t, i, k, c);
}

// ---- a live hypothesis -------------------------------------------------------------------------

int32_t dgm_pair_state(const dgm_search *s, const dgm_active *p, int hypo)
{
    const int32_t state = p->now.states[hypo * s->scorer_count + s->scorer_count - 2];
    return dgm_constraint_join(p->constraint, state, p->constraint_right, p->now.live[hypo].state_right);
}

int dgm_pair_missing(const dgm_search *s, const dgm_active *p, int hypo)
{
    if (!p->constraint) return 0;
    const int32_t state = p->constraint_right ? dgm_pair_state(s, p, hypo)
                                              : p->now.states[hypo * s->scorer_count + s->scorer_count - 2];
    return dgm_constraint_missing(p->constraint, state);
}

bool dgm_pair_complete(const dgm_search *s, const dgm_active *p, int hypo)
{
    const ground g = stand(s, p, hypo);
    const dgm_candidate nothing = {.token = s->eos, .second = s->eos};
    int32_t *whole = s->pairs->whole;
    const int count = close_words(&g, &nothing, whole);
    if (p->walk) return dgm_walk_sentence(p->walk, whole, count, s->eos, NULL) > -INFINITY;
    if (!g.both) return dgm_constraint_may_end(p->constraint, g.state);
    return dgm_constraint_meets(p->constraint, whole, count, true);
}
