// SPDX-License-Identifier: MIT
// Mask-predict with constraints: of all words that may stand at the masked places, the best that meet them.
//
// An iteration knows for every masked place on its own what may stand there and how probable that is. So the most
// probable sentence of a length that the automaton of the constraints (constraint.h) accepts is the best path through
//
//     place      0         1         2                 a state: where the automaton stands behind the words so far
//     states   [start] -> [a] ---> [a b, term met]     an arc:  a word that may stand there, at its log-probability
//                     \-> [x] -/
//
// and is found place by place (Viterbi): the best way to each state, at most DGM_MASK_STATES of them. What may stand
// at a masked place: its best words, those that the constraints name, and the word that stood there before; elsewhere
// the word that stands there. The first words of a forced beginning have their places to themselves.
//
// States that cannot say the rest in the places that are left are dropped. In the first iteration all places are free,
// so the others can; afterwards the words that stood there are a way that meets everything, and it is always kept.
//
// In a lattice (score/walk.h; constraints and a forced beginning are part of it) a state is a node, and an arc one of
// the lattice's: the words are the best path of that length, with the lattice's own scores. A word that rank did not
// look at counts as very improbable, so that a path is found in any case. Nothing is fixed: masked words are chosen
// anew as everywhere.
//
// Rules against repetition need to know the way to a state, not the state alone: then none of two ways to the same one
// gives way, the best DGM_MASK_STATES are followed (a beam), and a word counts as said where it stands further left.
#include "search/mask_private.h"

#include <math.h>
#include <string.h>

#include "base/lower_bound.h"
#include "base/sort.h"

// A word that the model was not asked about: of more named words than can be watched.
static const float unheard = -50.0f;

bool dgm_mask_demands(const dgm_search *s, const dgm_active *p)
{
    return p->constraint || p->prefix_count > 0 || p->walk || s->history.path;
}

int dgm_mask_best(const dgm_search *s, const dgm_active *p)
{
    return p->walk || s->history.path ? DGM_MASK_MOST : DGM_MASK_BEST;
}

static int32_t start_of(const dgm_active *p)
{
    return p->constraint ? dgm_constraint_start(p->constraint) : 0; // or the first node
}

// The state behind a word; what the lattice adds for it is added. *broken: it may not stand there.
static int32_t advance(const dgm_active *p, int32_t state, int32_t token, float *add, bool *broken)
{
    *broken = false;
    if (p->constraint) return dgm_constraint_advance(p->constraint, state, token, broken);
    if (!p->walk) return 0;
    const int32_t at = dgm_walk_find(p->walk, state, token);
    *broken = at < 0;
    if (at >= 0) *add += dgm_walk_add(p->walk, at);
    return at < 0 ? state : p->walk->next[at];
}

// Can all that is missing be said in the places that are left?
static bool completes(const dgm_active *p, int32_t state, int left)
{
    if (p->walk) return dgm_walk_ends_in(p->walk, state, left);
    return !p->constraint || dgm_constraint_missing(p->constraint, state) <= left;
}

int dgm_mask_shortest(const dgm_search *s, const dgm_active *p)
{
    int least = s->config.min_length < p->max_length ? s->config.min_length : p->max_length;
    int32_t state = start_of(p);
    bool broken;
    float add = 0.0f;
    for (int i = 0; i < p->prefix_count; i++) state = advance(p, state, p->prefix[i], &add, &broken);
    const int need = p->prefix_count + (p->constraint ? dgm_constraint_missing(p->constraint, state) : 0);
    return need > least ? need : least;
}

// ---- before rank -------------------------------------------------------------------------------

// Words of a lattice that may stand at a place of a sentence of this length: all, or the first of those that do.
static int list_walk(const dgm_walk *w, int length, int place, int32_t *list, int most)
{
    int count = 0;
    if (w->token_count <= most) {
        memcpy(list, w->tokens, (size_t)w->token_count * sizeof *list);
        return w->token_count;
    }
    for (int32_t n = 0; n < w->node_count && count < most; n++) {
        if (!dgm_walk_comes_in(w, n, place)) continue;
        for (int32_t i = w->first[n]; i < w->first[n + 1] && count < most; i++)
            if (w->next[i] >= 0 && dgm_walk_ends_in(w, w->next[i], length - place - 1))
                count = dgm_insert_id(list, count, w->ids[i]);
    }
    return count;
}

// The words to watch at a place: what stood there, what a forced beginning has there, what the constraints name or the
// lattice has.
static int list_watch(const dgm_active *p, const dgm_filled *c, int place, int32_t *list)
{
    int count = 0, named = 0;
    const int32_t *tokens = p->constraint ? dgm_constraint_tokens(p->constraint, &named) : NULL;
    list[count++] = c->before[place];
    list[count++] = place < p->prefix_count ? p->prefix[place] : DGM_NO_TOKEN;
    for (int i = 0; i < named && count < DGM_MASK_WATCH; i++) list[count++] = tokens[i];
    if (p->walk) count += list_walk(p->walk, c->length, place, list + count, DGM_MASK_WATCH - count);
    return count;
}

int dgm_mask_watch(dgm_search *s, const int32_t *active, int count)
{
    dgm_masks *m = s->masks;
    int32_t list[DGM_MASK_WATCH];
    int most = 0;
    for (int i = 0; i < count; i++)
        for (int j = 0; j < m->targets[i].wanted_count; j++) {
            const dgm_active *p = &s->active[active[i]];
            const int own = dgm_mask_demands(s, p) ? list_watch(p, m->owner[i], m->targets[i].wanted[j], list) : 0;
            if (own > most) most = own;
        }
    for (int i = 0, row = 0; i < count; i++)
        for (int j = 0; j < m->targets[i].wanted_count; j++, row++) {
            const dgm_active *p = &s->active[active[i]];
            int own = dgm_mask_demands(s, p) ? list_watch(p, m->owner[i], m->targets[i].wanted[j], list) : 0;
            for (int k = 0; k < most; k++) m->watch[row * most + k] = k < own ? list[k] : DGM_NO_TOKEN;
        }
    return most;
}

// ---- one place ---------------------------------------------------------------------------------

// What may stand at a place, with log-probabilities; ascending in a lattice.
typedef struct choices {
    int32_t tokens[DGM_MASK_MOST + DGM_CONSTRAINT_SUBWORDS + DGM_MASK_WATCH + 2];
    float values[DGM_MASK_MOST + DGM_CONSTRAINT_SUBWORDS + DGM_MASK_WATCH + 2];
    int count;
    bool sorted;
} choices;

static void add_choice(choices *c, int32_t token, float value)
{
    if (token < 0 || !(value > -INFINITY)) return;
    for (int i = 0; i < c->count; i++)
        if (c->tokens[i] == token) return;
    int at = c->count++;
    for (; c->sorted && at > 0 && c->tokens[at - 1] > token; at--) {
        c->tokens[at] = c->tokens[at - 1];
        c->values[at] = c->values[at - 1];
    }
    c->tokens[at] = token;
    c->values[at] = value;
}

// What may stand at a wanted place, `row` of the call's.
static void list_choices(const dgm_search *s, const dgm_active *p, const dgm_mask_call *call, int row, int place,
                         choices *out)
{
    const dgm_masks *m = s->masks;
    const int32_t *watch = m->watch + (size_t)row * (size_t)call->watched;
    const float *score = m->watch_score + (size_t)row * (size_t)call->watched;
    int named = 0;
    if (place < p->prefix_count) {
        add_choice(out, p->prefix[place], score[1] > unheard ? score[1] : unheard);
        return;
    }
    const int best = call->k < dgm_mask_best(s, p) ? call->k : dgm_mask_best(s, p);
    for (int i = 0; i < best; i++) add_choice(out, m->token[row * call->k + i], m->score[row * call->k + i]);
    for (int i = 0; i < call->watched; i++) add_choice(out, watch[i], score[i]);
    const int32_t *tokens = p->constraint ? dgm_constraint_tokens(p->constraint, &named) : NULL;
    for (int i = DGM_MASK_WATCH - 2; i < named; i++) add_choice(out, tokens[i], unheard);
}

// The worst way to a place that may give way to another; -1: there is none.
static int worst_of(const dgm_mask_state *states, int count)
{
    int worst = -1;
    for (int i = 0; i < count; i++)
        if (!states[i].kept && (worst < 0 || states[i].sum < states[worst].sum)) worst = i;
    return worst;
}

// One more way to a place; states[count] of it are there.
static int add_state(dgm_mask_state *states, int count, const dgm_mask_state *x)
{
    for (int i = 0; i < count; i++) {
        if (states[i].state != x->state) continue;
        const bool kept = states[i].kept || x->kept;
        if (x->sum > states[i].sum) states[i] = *x;
        states[i].kept = kept;
        return count;
    }
    if (count < DGM_MASK_STATES) {
        states[count] = *x;
        return count + 1;
    }
    const int worst = worst_of(states, count);
    if (x->kept || x->sum > states[worst].sum) states[worst] = *x;
    return count;
}

// ---- all places --------------------------------------------------------------------------------

typedef struct filling {
    const dgm_search *s;
    const dgm_active *p;
    const dgm_filled *c;
    int count;      // states at the place that was reached
    int worst;      // of these, where they are all that there is room for, and no two give way to each other
    bool wanted;    // its words are chosen anew
    // of the way to a state, where rules against repetition want to know it
    int32_t *said, *denied; // ascending
    int said_count, denied_count;
    bool read; // they are known
} filling;

static dgm_mask_state *states_at(const filling *f, int place)
{
    return f->s->masks->states + (size_t)place * DGM_MASK_STATES;
}

// The words on the way to state i of a place, and those that would complete an n-gram of it.
static void read_way(filling *f, int place, int i)
{
    const dgm_history *h = &f->s->history;
    if (!h->path || f->read) return;
    f->read = true;
    f->said = h->compared;
    f->denied = h->compared + f->s->config.max_length;
    for (int at = place; at > 0; i = states_at(f, at--)[i].back) h->path[at - 1] = states_at(f, at)[i].token;
    f->said_count = dgm_history_said(h->path, place, f->said);
    const int n = f->s->config.no_repeat;
    f->denied_count = n ? dgm_history_denied(h->path, place, n, f->denied, 0) : 0;
}

// The same where ways to one state do not give way to each other: the worst of all does.
static void add_way(filling *f, dgm_mask_state *states, const dgm_mask_state *x)
{
    if (f->count < DGM_MASK_STATES)
        states[f->count++] = *x;
    else if (x->kept || x->sum > states[f->worst].sum)
        states[f->worst] = *x;
    else
        return;
    if (f->count == DGM_MASK_STATES) f->worst = worst_of(states, f->count);
}

// Is a word the next of a term that is lacking? What is demanded comes before what repeats itself, as in any search.
static bool is_demanded(const dgm_active *p, int32_t state, int32_t token)
{
    int32_t tokens[DGM_OFFERS];
    int subwords[DGM_OFFERS];
    const int count = p->constraint ? dgm_constraint_offers(p->constraint, state, tokens, subwords, DGM_OFFERS) : 0;
    for (int i = 0; i < count; i++)
        if (tokens[i] == token) return true;
    return false;
}

// State i of a place goes on with a word.
static void take(filling *f, int place, int i, int32_t token, float value)
{
    const dgm_active *p = f->p;
    const bool apart = f->s->history.path != NULL;
    const dgm_mask_state *now = &states_at(f, place)[i];
    bool broken;
    const bool kept = now->kept && token == f->c->before[place];
    // Without a lattice nothing is gained by a word but its log-probability.
    if (apart && !kept && !p->walk && f->count == DGM_MASK_STATES && dgm_history_cost(f->s) <= 0.0f &&
        now->sum + value <= states_at(f, place + 1)[f->worst].sum)
        return;
    dgm_mask_state x = {.token = token, .value = value, .sum = now->sum + value, .back = i, .kept = kept};
    x.state = advance(p, now->state, token, &x.sum, &broken);
    // A forced beginning may repeat itself.
    read_way(f, place, i);
    if (apart && place >= p->prefix_count && dgm_holds_id(f->denied, f->denied_count, token) &&
        !is_demanded(p, now->state, token))
        return;
    if (apart && dgm_holds_id(f->said, f->said_count, token)) x.sum += dgm_history_cost(f->s);
    if (broken || (!x.kept && !completes(p, x.state, f->c->length - place - 1))) return;
    if (apart)
        add_way(f, states_at(f, place + 1), &x);
    else
        f->count = add_state(states_at(f, place + 1), f->count, &x);
}

// The arcs of a lattice that leave a state.
static void take_arcs(filling *f, int place, int i, const choices *from)
{
    const dgm_walk *w = f->p->walk;
    const int32_t node = states_at(f, place)[i].state;
    for (int32_t k = w->first[node]; k < w->first[node + 1]; k++) {
        const int at = dgm_find_id(from->tokens, from->count, w->ids[k]);
        if (w->next[k] < 0 || (at < 0 && !f->wanted)) continue;
        take(f, place, i, w->ids[k], at < 0 ? unheard : from->values[at]);
    }
}

// Best first: what comes later then hardly ever finds a place.
static void sort_states(dgm_mask_state *states, int count)
{
    for (int i = 1; i < count; i++) {
        const dgm_mask_state x = states[i];
        int at = i;
        DGM_INSERT(states, at, x, x.sum > states[at - 1].sum);
    }
}

static void pass(filling *f, int place, const choices *from)
{
    const int before = f->count;
    f->count = 0;
    if (f->s->history.path) sort_states(states_at(f, place), before);
    for (int i = 0; i < before; i++) {
        f->read = false;
        if (f->p->walk)
            take_arcs(f, place, i, from);
        else
            for (int k = 0; k < from->count; k++) take(f, place, i, from->tokens[k], from->values[k]);
    }
}

// The best way to a state in which the sentence may end; -1: there is none.
static int best_end(const filling *f)
{
    const dgm_active *p = f->p;
    const dgm_mask_state *end = states_at(f, f->c->length);
    float best_sum = -INFINITY;
    int best = -1;
    for (int i = 0; i < f->count; i++) {
        float sum = end[i].sum;
        if (p->constraint && !dgm_constraint_may_end(p->constraint, end[i].state)) continue;
        if (p->walk) {
            const int32_t at = dgm_walk_find(p->walk, end[i].state, f->s->eos);
            if (at < 0) continue;
            sum += dgm_walk_add(p->walk, at);
        }
        if (best < 0 || sum > best_sum) {
            best = i;
            best_sum = sum;
        }
    }
    return best;
}

// Words that a place would not have had by itself are demanded: they stay.
static bool stays(const dgm_active *p, int32_t token, int32_t own)
{
    return (p->constraint || p->prefix_count > 0) && token != own;
}

bool dgm_mask_fill(dgm_search *s, const dgm_active *p, dgm_filled *c, const dgm_mask_call *call)
{
    const dgm_masks *m = s->masks;
    const dgm_refine_target *t = call->target;
    filling f = {.s = s, .p = p, .c = c, .count = 1};
    static const dgm_mask_state nothing = {0};
    m->states[0] = nothing;
    m->states[0].state = start_of(p);
    m->states[0].kept = c->before[0] != DGM_NO_TOKEN;
    for (int place = 0, at = 0; place < c->length; place++) {
        choices *from = m->choices;
        from->count = 0;
        from->sorted = p->walk != NULL;
        f.wanted = at < t->wanted_count && t->wanted[at] == place;
        if (f.wanted)
            list_choices(s, p, call, call->row + at++, place, from);
        else
            add_choice(from, c->words[place], c->values[place]);
        pass(&f, place, from);
    }
    int at = best_end(&f);
    if (at < 0) return false;
    for (int place = c->length - 1, row = call->row + t->wanted_count - 1; place >= 0; place--) {
        const dgm_mask_state *x = &states_at(&f, place + 1)[at];
        const bool wanted = row >= call->row && t->wanted[row - call->row] == place;
        if (wanted) c->fixed[place] = stays(p, x->token, m->token[row * call->k]);
        row -= wanted;
        c->words[place] = x->token;
        c->values[place] = x->value;
        at = x->back;
    }
    return true;
}

size_t dgm_mask_choices_bytes(void)
{
    return sizeof(choices);
}
