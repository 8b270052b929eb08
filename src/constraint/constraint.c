// SPDX-License-Identifier: MIT
// The automaton of a sentence's constraints: following it. constraint_build.c makes it.
//
// Reading a character means: if it ends a word, whatever was complete but for the word's end is
// met now; then the bytes move the node; then whatever needs no word's end is met. Behind a
// character outside of words, where nothing longer matches, the node is "a word begins".
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "constraint/constraint_private.h"

static int32_t at_of(const dgm_constraint *c, int32_t state)
{
    return (int32_t)((uint32_t)state & (((uint32_t)1 << c->node_bits) - 1));
}

static uint32_t mask_of(const dgm_constraint *c, int32_t state)
{
    return (uint32_t)state >> c->node_bits;
}

static int32_t state_of(const dgm_constraint *c, uint32_t mask, int32_t node)
{
    return (int32_t)(mask << c->node_bits | (uint32_t)node);
}

// An occurrence meets one of the terms that the text stands for: the first that is not met yet, or else it is one of
// those that their limits leave. If it is neither, *over gets the terms, unless one of them has no limit.
static uint32_t credit_text(const dgm_constraint *c, uint32_t mask, int32_t node, bool bounded, uint32_t *over)
{
    uint32_t terms = 0;
    int left = -1;
    for (int e = c->nodes[node].first_end; e >= 0; e = c->ends[e].next) {
        const end *x = &c->ends[e];
        if (x->kind != DGM_PATTERN_TERM || x->bounded != bounded) continue;
        terms |= (uint32_t)1 << x->owner;
        if (x->term >= c->slots || mask >> x->term & 1) continue;
        if (x->term < c->terms) return mask | (uint32_t)1 << x->term;
        if (left < 0) left = x->term;
    }
    if (left >= 0) return mask | (uint32_t)1 << left;
    if ((terms & c->limited) == terms) *over |= terms;
    return mask;
}

static uint32_t credit(const dgm_constraint *c, uint32_t mask, int32_t node, bool bounded, uint32_t *over)
{
    for (; node != ROOT; node = c->nodes[node].fail) {
        if (!(c->nodes[node].flags & (bounded ? HAS_BOUNDED : HAS_OPEN))) break;
        mask = credit_text(c, mask, node, bounded, over);
    }
    return mask;
}

int32_t dgm_constraint_go(const dgm_constraint *c, int32_t node, uint8_t byte)
{
    for (;; node = c->nodes[node].fail) {
        for (int32_t k = c->nodes[node].child; k >= 0; k = c->nodes[k].sibling)
            if (c->nodes[k].byte == byte) return k;
        if (node == ROOT) return ROOT;
    }
}

int32_t dgm_constraint_start(const dgm_constraint *c)
{
    return state_of(c, 0, BEGIN);
}

// Can nothing of any pattern begin in a text? Then all that is left of it, where nothing matched before, is whether a
// word may begin behind it. Only of a text that ends with ASCII this is seen at once.
static bool passes(const dgm_constraint *c, int32_t node, dgm_text text, int32_t *out)
{
    if (node > BEGIN || text.size == 0) return false;
    const uint8_t last = (uint8_t)text.data[c->from_right ? 0 : text.size - 1];
    if (last >= 0x80) return false;
    for (size_t i = 0; i < text.size; i++)
        if (c->begins[(uint8_t)text.data[i]]) return false;
    *out = dgm_char_in_word(last) ? ROOT : BEGIN;
    return true;
}

int32_t dgm_constraint_read(const dgm_constraint *c, int32_t node, uint32_t *mask, dgm_text text, unsigned *wrong,
                            uint32_t *over)
{
    uint32_t excess = 0;
    if (passes(c, node, text, &node)) return node;
    for (size_t done = 0, n; done < text.size; done += n) {
        const size_t left = text.size - done;
        size_t first = c->from_right ? left - 1 : done; // of the character
        uint32_t code = (uint8_t)text.data[first];
        n = 1;
        if (code >= 0x80) {
            if (c->from_right) first = dgm_utf8_prev(text.data, left);
            n = dgm_utf8_next(text.data + first, c->from_right ? left - first : left, &code);
        }
        // A byte of a character that other tokens complete counts as part of a word.
        const bool inside = code == 0xFFFD ? n < 3 : dgm_char_in_word(code);
        const unsigned before = c->nodes[node].flags;
        if (!inside && before & HAS_BOUNDED) *mask = credit(c, *mask, node, true, &excess);
        if (!inside && before & BANS_BOUNDED) *wrong |= FORBIDDEN;
        for (size_t k = 0; k < n; k++)
            node = dgm_constraint_go(c, node,
                                     (uint8_t)text.data[c->from_right ? first + n - 1 - k : first + k]);
        if (!inside && node == ROOT) node = BEGIN;
        if (c->nodes[node].flags & HAS_OPEN) *mask = credit(c, *mask, node, false, &excess);
        if (c->nodes[node].flags & BANS_OPEN) *wrong |= FORBIDDEN;
    }
    if (excess) *wrong |= TOO_OFTEN;
    if (over) *over |= excess;
    return node;
}

int32_t dgm_constraint_advance(const dgm_constraint *c, int32_t state, int32_t token, bool *broken)
{
    uint32_t mask = mask_of(c, state);
    unsigned wrong = 0;
    const int32_t node =
        dgm_constraint_read(c, at_of(c, state), &mask, dgm_surface(c->surfaces, token), &wrong, NULL);
    *broken = wrong & FORBIDDEN || (wrong && !c->loose);
    return state_of(c, mask, node);
}

uint32_t dgm_constraint_met(const dgm_constraint *c, int32_t node, uint32_t mask, uint32_t *over)
{
    return c->nodes[node].flags & HAS_BOUNDED ? credit(c, mask, node, true, over) : mask;
}

// Terms met if the sentence or the word ended here.
static uint32_t met(const dgm_constraint *c, int32_t state)
{
    uint32_t over = 0;
    return dgm_constraint_met(c, at_of(c, state), mask_of(c, state), &over) & c->all;
}

// Would a term be said too often if the word ended here?
static bool exceeds(const dgm_constraint *c, int32_t state)
{
    uint32_t over = 0;
    if (c->limited) dgm_constraint_met(c, at_of(c, state), mask_of(c, state), &over);
    return over != 0;
}

int32_t dgm_constraint_join(const dgm_constraint *c, int32_t state, const dgm_constraint *right, int32_t other)
{
    return state_of(c, mask_of(c, state) | met(right, other), at_of(c, state));
}

bool dgm_constraint_clashes(const dgm_constraint *c, int32_t state, const dgm_constraint *right, int32_t other)
{
    return !c->loose && (mask_of(c, state) & mask_of(right, other) & c->once) != 0;
}

bool dgm_constraint_lacks(const dgm_constraint *c, int32_t state)
{
    return (mask_of(c, state) & c->all) != c->all && at_of(c, state) <= BEGIN;
}

static bool is_whole(const dgm_constraint *c, int32_t state)
{
    const unsigned flags = c->nodes[at_of(c, state)].flags;
    return met(c, state) == c->all && !(flags & BANS_BOUNDED) &&
           (c->suffix_subwords == 0 || flags & ENDS_SUFFIX);
}

bool dgm_constraint_may_end(const dgm_constraint *c, int32_t state)
{
    return is_whole(c, state) && (c->loose || !exceeds(c, state));
}

// The step that is furthest along a pattern of an unmet term (or of the suffix, when all are met);
// NULL: none is under way.
static const stage *under_way(const dgm_constraint *c, int32_t state, uint32_t have)
{
    const stage *best = NULL;
    for (int32_t n = at_of(c, state); n != ROOT; n = c->nodes[n].fail) {
        for (int e = c->nodes[n].first_stage; e >= 0; e = c->stages[e].next) {
            const stage *x = &c->stages[e];
            const bool open = x->term < 0 ? have == c->all : !(have >> x->term & 1);
            if (!open || x->done == 0) continue;
            if (!best || x->left < best->left) best = x;
        }
    }
    return best;
}

int dgm_constraint_missing(const dgm_constraint *c, int32_t state)
{
    const uint32_t have = met(c, state);
    const stage *now = under_way(c, state, have);
    int missing = c->suffix_subwords;
    if (have == c->all && c->nodes[at_of(c, state)].flags & ENDS_SUFFIX) return 0;
    for (int t = 0; t < c->terms; t++) missing += have >> t & 1 ? 0 : c->subwords[t];
    if (now) {
        const int whole = now->term < 0 ? c->suffix_subwords : c->subwords[now->term];
        if (now->left < whole) missing -= whole - now->left;
    }
    return missing;
}

bool dgm_constraint_glued(const dgm_constraint *c, int32_t state)
{
    int32_t node = at_of(c, state);
    while (node > BEGIN) node = c->nodes[node].fail;
    return c->from_right && node == ROOT;
}

bool dgm_constraint_under_way(const dgm_constraint *c, int32_t state)
{
    return under_way(c, state, met(c, state)) != NULL;
}

bool dgm_constraint_pending(const dgm_constraint *c, int32_t state)
{
    return met(c, state) != (mask_of(c, state) & c->all);
}

const int32_t *dgm_constraint_beginnings(const dgm_constraint *c, int *count)
{
    *count = c->surfaces->break_count;
    return c->surfaces->breaks;
}

int dgm_constraint_banks(const dgm_constraint *c)
{
    return 2 * (c->terms + (c->suffix_subwords > 0)) + 1;
}

int dgm_constraint_bank(const dgm_constraint *c, int32_t state)
{
    const uint32_t have = met(c, state);
    int bank = 0;
    for (int t = 0; t < c->terms; t++) bank += 2 * (int)(have >> t & 1);
    if (c->suffix_subwords && have == c->all && c->nodes[at_of(c, state)].flags & ENDS_SUFFIX)
        return bank + 2;
    return under_way(c, state, have) ? bank + 1 : bank;
}

int dgm_constraint_subwords(const dgm_constraint *c)
{
    return c->subword_count;
}

bool dgm_constraint_subword_first(const dgm_constraint *c, int i)
{
    for (int k = 0; k < c->first_count; k++)
        if (c->firsts[k].subword == i) return true;
    return false;
}

static float sum_costs(const float *cost, int first, int count)
{
    float sum = 0.0f;
    for (int i = 0; i < count; i++) sum += fabsf(cost[first + i]);
    return sum;
}

// Costs are taken without their sign (search/banks.c marks estimates by it).
// Of an unmet term the cheapest pattern counts, of the one under way what is left of its pattern.
float dgm_constraint_debt(const dgm_constraint *c, int32_t state, const float *cost)
{
    const uint32_t have = met(c, state);
    if (have == c->all && c->suffix_subwords == 0) return 0.0f;
    const stage *now = under_way(c, state, have);
    float debt = 0.0f;
    for (int t = c->suffix_subwords ? -1 : 0; t < c->terms; t++) {
        if (t >= 0 && have >> t & 1) continue;
        if (t < 0 && have == c->all && c->nodes[at_of(c, state)].flags & ENDS_SUFFIX) continue;
        float least = -1.0f;
        if (now && now->term == t) least = sum_costs(cost, now->subword, now->left);
        for (int i = 0; i < c->first_count && !(now && now->term == t); i++) {
            if (c->firsts[i].term != t) continue;
            const float sum = sum_costs(cost, c->firsts[i].subword, c->firsts[i].count);
            if (least < 0.0f || sum < least) least = sum;
        }
        if (least > 0.0f) debt += least;
    }
    return debt;
}

typedef struct offers {
    int32_t *tokens;
    int *subwords;
    int count, most;
} offers;

static void add_offer(offers *o, int32_t token, int subword)
{
    for (int i = 0; i < o->count; i++)
        if (o->tokens[i] == token) return;
    if (o->count == o->most) return;
    o->tokens[o->count] = token;
    o->subwords[o->count++] = subword;
}

int dgm_constraint_offers(const dgm_constraint *c, int32_t state, int32_t *tokens, int *subwords,
                          int most)
{
    const uint32_t have = met(c, state);
    offers o = {.tokens = tokens, .subwords = subwords, .most = most};
    if (under_way(c, state, have)) {
        for (int32_t n = at_of(c, state); n != ROOT; n = c->nodes[n].fail)
            for (int e = c->nodes[n].first_stage; e >= 0; e = c->stages[e].next) {
                const stage *x = &c->stages[e];
                const bool open = x->term < 0 ? have == c->all : !(have >> x->term & 1);
                if (open && x->done > 0 && x->token >= 0) add_offer(&o, x->token, x->subword);
            }
        // Behind a term that was just said only what breaks the word may come: perhaps none of
        // these.
        if (o.count > 0 && have == (mask_of(c, state) & c->all)) return o.count;
    }
    for (int i = 0; i < c->first_count; i++) {
        const first_subword *f = &c->firsts[i];
        if (f->term < 0 ? have == c->all : !(have >> f->term & 1))
            add_offer(&o, f->token, f->subword);
    }
    return o.count;
}

void dgm_constraint_limits(const dgm_constraint *c, int32_t state, const int32_t **allow,
                           int *allow_count, const int32_t **deny, int *deny_count)
{
    const trie_node *n = &c->nodes[at_of(c, state)];
    *allow = NULL;
    *allow_count = 0;
    *deny = n->deny_count ? c->denied + n->deny : NULL;
    *deny_count = n->deny_count;
    const dgm_surfaces *s = c->surfaces;
    if (n->flags & BANS_BOUNDED || (!c->loose && exceeds(c, state))) {
        *allow = c->from_right ? s->right_continues : s->continues;
        *allow_count = c->from_right ? s->right_continue_count : s->continue_count;
    } else if (n->flags & HAS_BOUNDED && met(c, state) != (mask_of(c, state) & c->all)) {
        *allow = c->from_right ? s->right_breaks : s->breaks;
        *allow_count = c->from_right ? s->right_break_count : s->break_count;
    }
}

static int add_spent(const dgm_constraint *c, int32_t state, int32_t token, int32_t *tokens, int count)
{
    bool broken;
    for (int i = 0; i < count; i++)
        if (tokens[i] == token) return count;
    dgm_constraint_advance(c, state, token, &broken);
    if (!broken) return count;
    tokens[count] = token;
    return count + 1;
}

int dgm_constraint_spent(const dgm_constraint *c, int32_t state, int32_t *tokens, int most)
{
    int count = 0;
    const uint32_t said = met(c, state) & c->limited;
    if (!said || c->loose) return 0;
    for (int32_t n = at_of(c, state); n != ROOT; n = c->nodes[n].fail)
        for (int e = c->nodes[n].first_stage; e >= 0 && count < most; e = c->stages[e].next) {
            const stage *x = &c->stages[e];
            if (x->term >= 0 && said >> x->term & 1 && x->done > 0 && x->left == 1)
                count = add_spent(c, state, x->token, tokens, count);
        }
    for (int i = 0; i < c->first_count && count < most; i++) {
        const first_subword *f = &c->firsts[i];
        if (f->term >= 0 && said >> f->term & 1 && f->count == 1)
            count = add_spent(c, state, f->token, tokens, count);
    }
    return count;
}

uint64_t dgm_constraint_list_name(const dgm_constraint *c, const int32_t *allow)
{
    const dgm_surfaces *s = c->surfaces;
    const int32_t *const lists[] = {s->breaks, s->continues, s->right_breaks, s->right_continues};
    for (uint64_t i = 0; allow && i < sizeof lists / sizeof *lists; i++)
        if (allow == lists[i]) return s->name + i;
    return 0;
}

const int32_t *dgm_constraint_tokens(const dgm_constraint *c, int *count)
{
    *count = c->token_count;
    return c->tokens;
}

const int32_t *dgm_constraint_end(const dgm_constraint *c, int *count)
{
    *count = c->end_subwords;
    return c->end;
}

bool dgm_constraint_end_alone(const dgm_constraint *c)
{
    return c->end_alone;
}

bool dgm_constraint_from_right(const dgm_constraint *c)
{
    return c->from_right;
}

bool dgm_constraint_meets(const dgm_constraint *c, const int32_t *tokens, int count, bool limits)
{
    int32_t node = BEGIN;
    uint32_t mask = 0;
    unsigned wrong = 0;
    for (int i = 0; i < count; i++)
        node = dgm_constraint_read(c, node, &mask, dgm_surface(c->surfaces, tokens[c->from_right ? count - 1 - i : i]),
                                   &wrong, NULL);
    const int32_t state = state_of(c, mask, node);
    if (wrong & FORBIDDEN || !is_whole(c, state) || (limits && (wrong || exceeds(c, state)))) return false;
    for (int i = 0; c->from_right && i < c->end_subwords; i++)
        if (i >= count || tokens[count - 1 - i] != c->end[i]) return false;
    return true;
}

void dgm_constraint_lift(dgm_constraint *c, const int32_t *tokens, int count)
{
    int32_t node = BEGIN;
    uint32_t mask = 0, over = tokens ? 0 : c->all;
    unsigned wrong = 0;
    for (int i = 0; tokens && i < count; i++)
        node = dgm_constraint_read(c, node, &mask, dgm_surface(c->surfaces, tokens[c->from_right ? count - 1 - i : i]),
                                   &wrong, &over);
    dgm_constraint_met(c, node, mask, &over);
    c->limited &= ~over;
    c->once &= ~over;
}

void dgm_constraint_loosen(dgm_constraint *c, bool loose)
{
    c->loose = loose;
}

bool dgm_constraint_limited(const dgm_constraint *c)
{
    return c->limited != 0;
}

bool dgm_constraint_closes(const dgm_constraint *c)
{
    return c->suffix_subwords > 0;
}

bool dgm_constraint_forces(const dgm_constraint *c)
{
    return c->terms > 0 || c->suffix_subwords > 0 || c->end_subwords > 0;
}
