// SPDX-License-Identifier: MIT
// Choosing among the pairs that the rules allow (double_rules.c).
//
// The best pairs of every hypothesis go to the finishing policy, or, with constraints, the best of every bank to
// banks.c. Sampling takes them all (sample_pairs.c).
#include "search/double_table.h"

#include <math.h>

#include "base/sort.h"

typedef dgm_pair_ground ground;
typedef dgm_pair_word word;
typedef dgm_pair_table table;

int dgm_pair_most(const dgm_search *s)
{
    return 3 * s->width + DGM_OFFERS + DGM_PAIR_SHELVES;
}

size_t dgm_pair_table_bytes(void)
{
    return sizeof(table);
}

// ---- pairs of a hypothesis ---------------------------------------------------------------------

// The best pairs of a hypothesis that are kept, of each bank its own; without constraints there is one.
typedef struct shelf {
    dgm_candidate *items; // [shelves * room]
    int *counts;
    int shelves, room;
    int32_t state; // of constraints, of the last pair that was put, and its bank
    int bank;
} shelf;

static shelf open_shelf(const dgm_search *s, const dgm_active *p)
{
    dgm_pairs *d = s->pairs;
    shelf x = {.items = d->kept, .counts = d->kept_count, .shelves = 1, .room = d->most};
    if (p->constraint) x.shelves += dgm_constraint_banks(p->constraint); // the first is that of ends
    if (x.shelves > DGM_PAIR_SHELVES) x.shelves = DGM_PAIR_SHELVES;
    // No more than the beam is wide live on; of a bank more than that, as some may still lack more than others.
    const int drawn = 2 * p->width;
    x.room = d->most / x.shelves;
    if (p->constraint && x.room > drawn) x.room = drawn;
    x.state = DGM_PAIR_UNKNOWN;
    for (int i = 0; i < x.shelves; i++) x.counts[i] = 0;
    return x;
}

static void put(const dgm_search *s, const dgm_active *p, shelf *x, const dgm_candidate *c)
{
    int which = 0;
    if (p->constraint && !dgm_candidate_ends(s, c)) {
        if (x->state != c->state) x->bank = dgm_constraint_bank(p->constraint, c->state);
        x->state = c->state;
        which = 1 + x->bank;
    }
    if (which >= x->shelves) which = x->shelves - 1;
    dgm_candidate *items = x->items + (size_t)which * (size_t)x->room;
    const int room = p->constraint && which == 0 && p->width < x->room ? p->width : x->room; // of ends the first count
    int at = x->counts[which];
    if (at == room && !(c->score > items[at - 1].score)) return;
    if (at == room)
        at--;
    else
        x->counts[which]++;
    DGM_INSERT(items, at, *c, c->score > items[at - 1].score);
}

static void note_end(const dgm_search *s, const dgm_active *p, const dgm_candidate *c)
{
    dgm_candidate *best = &p->hand->ends[c->row - p->first_row];
    if (best->score > -INFINITY && dgm_final_score(p, best->score, dgm_whole_length(s, p, best) + 1) >=
                                       dgm_final_score(p, c->score, dgm_whole_length(s, p, c) + 1))
        return;
    *best = *c;
}

// The best word of a list but the end, and the end, by what the model thinks of them: is the end ahead?
static bool end_leads(const dgm_search *s, const word *words, int count)
{
    float end = -INFINITY, other = -INFINITY;
    for (int i = 0; i < count; i++) {
        float *best = words[i].token == s->eos ? &end : &other;
        if (words[i].value > *best) *best = words[i].value;
    }
    return end >= other && end > -INFINITY;
}

// Where the model would end, a sentence that lacks something must go on with that, and whatever else is said of one
// that is whole is chatter, as in other searches (banks.c). What is missing; 0: nothing, or it need not come now.
static int must_complete(table *t)
{
    const ground *g = t->g;
    const dgm_active *p = g->p;
    t->chatter = false;
    if (!p->constraint || g->s->pairs->roomy) return 0;
    if (!end_leads(g->s, t->left, t->lefts) && !end_leads(g->s, t->right, t->rights)) return 0;
    t->chatter = g->both ? dgm_pair_closes_from(t, g->state) : dgm_constraint_may_end(p->constraint, g->state);
    const int32_t met = g->both ? dgm_constraint_join(p->constraint, 0, p->constraint_right, g->state_right) : 0;
    return t->chatter ? 0 : dgm_constraint_missing(p->constraint, g->state | met);
}

// Has the hypothesis just about the room for what it lacks? Then pairs that leave less than that must not push others
// off the shelf.
static bool is_tight(const table *t)
{
    const dgm_active *p = t->g->p;
    const dgm_constraint *c = p->constraint;
    if (!c || t->g->s->pairs->roomy || !dgm_banks_short(p)) return false;
    int lacks = dgm_pair_missing(t->g->s, p, t->g->hypo);
    const bool pending = dgm_constraint_pending(c, t->g->state) ||
                         (t->g->both && dgm_constraint_pending(p->constraint_right, t->g->state_right));
    if (pending) lacks = dgm_constraint_missing(c, dgm_constraint_start(c)); // or it may
    return lacks > 0 && p->max_length - p->tokens <= 2 * lacks + 3;
}

// Pairs of the table onto the shelf, or only those behind which less is missing than before, or none that is hopeless;
// how many.
static int put_pairs(table *t, shelf *kept, int missing, bool tight)
{
    const ground *g = t->g;
    const dgm_search *s = g->s;
    const dgm_active *p = g->p;
    int count = 0;
    for (int i = 0; i < t->lefts; i++)
        for (int k = 0; k < t->rights && t->left[i].may; k++) {
            if (!missing && !tight && (t->left[i].rank + 1) * (t->right[k].rank + 1) > kept->room) continue;
            dgm_candidate c;
            if (!dgm_pair_make(t, i, k, &c)) continue;
            const bool ends = dgm_candidate_ends(s, &c);
            if (!ends && missing && dgm_constraint_missing(p->constraint, c.state) >= missing) continue;
            if (!ends && tight && dgm_banks_hopeless(s, p, &c)) continue;
            c.chatter = t->chatter && !ends;
            if (ends) note_end(s, p, &c);
            put(s, p, kept, &c);
            count++;
        }
    return count;
}

static void look_at(const dgm_search *s, const dgm_active *p, int row, shelf *kept)
{
    table *t = s->pairs->table;
    dgm_pair_lay_table(t, s, p, row);
    const int missing = must_complete(t);
    const bool tight = is_tight(t);
    if (tight && put_pairs(t, kept, 0, true) > 0) return;
    if (missing == 0 || put_pairs(t, kept, missing, false) == 0) put_pairs(t, kept, 0, false);
}

// Of the words that the model likes best only the first count, and an end that is none of these only where a lattice
// leads to it or nothing else can be said any more.
static bool drawn(const table *t, const word *x, int at, int best, int most)
{
    if (at < best) return at < most;
    return x->token != t->g->s->eos || t->g->p->walk || dgm_active_full(t->g->s, t->g->p);
}

void dgm_pair_each(dgm_search *s, const dgm_active *p, int row, int lefts, int rights, dgm_pair_taker take,
                   void *cookie)
{
    table *t = s->pairs->table;
    dgm_pair_lay_table(t, s, p, row);
    for (int i = 0; i < t->lefts; i++)
        for (int k = 0; k < t->rights && t->left[i].may; k++) {
            dgm_candidate c;
            if (drawn(t, &t->left[i], i, t->left_best, lefts) && drawn(t, &t->right[k], k, t->right_best, rights) &&
                dgm_pair_make(t, i, k, &c))
                take(cookie, &c);
        }
}

// ---- all of a sentence -------------------------------------------------------------------------

static bool next_ruled(dgm_merge *m, dgm_candidate *c)
{
    const dgm_pairs *d = m->s->pairs;
    if (m->at == d->ruled_count) return false;
    *c = d->ruled[m->at++];
    return true;
}

static float key_of(const dgm_search *s, const dgm_candidate *c)
{
    return c->score - s->config.diversity * (float)c->column;
}

// Words of a vector that have a score, no more than `most` of them.
static int count_words(const dgm_search *s, int vector, int most)
{
    const float *score = s->rows.score + (size_t)vector * (size_t)s->k;
    int count = 0;
    while (count < s->k && count < most && score[count] > -INFINITY) count++;
    return count;
}

// Are there places for all pairs of the sentence? Then nothing needs to give way.
static bool has_room(const dgm_search *s, const dgm_active *p)
{
    int pairs = 0;
    for (int j = 0; j < p->row_count && pairs <= p->width; j++) {
        const int vector = 2 * (p->first_row + j);
        pairs += count_words(s, vector, p->width + 1) * count_words(s, vector + 1, p->width + 1);
    }
    return pairs <= p->width;
}

dgm_merge dgm_pair_rules(dgm_search *s, const dgm_active *p)
{
    dgm_pairs *d = s->pairs;
    d->ruled_count = 0;
    d->roomy = p->constraint && has_room(s, p);
    for (int j = 0; j < p->row_count; j++) {
        const int row = p->first_row + j;
        p->hand->ends[j] = (dgm_candidate){
            .hypo = s->rows.hypo[row], .row = row, .token = s->eos, .second = s->eos, .score = -INFINITY};
        shelf kept = open_shelf(s, p);
        look_at(s, p, row, &kept);
        for (int i = 0; i < kept.shelves; i++)
            for (int k = 0; k < kept.counts[i]; k++) {
                dgm_candidate c = kept.items[i * kept.room + k];
                c.column = k;
                int at = d->ruled_count++; // banks look at all, in whatever order
                DGM_INSERT(d->ruled, at, c, !p->constraint && key_of(s, &c) > key_of(s, &d->ruled[at - 1]));
            }
    }
    return (dgm_merge){.next = next_ruled, .s = s, .p = p};
}
