// SPDX-License-Identifier: MIT
// Building the automaton of constraint.h: a trie of the patterns' bytes, fail links breadth first,
// flags gathered along them, and for forbidden texts the tokens that would complete one.
//
// The text of a pattern is what its tokens write, without the space in front. A pattern whose text
// begins inside a word hangs below BEGIN, others below ROOT. A character outside of words after
// which nothing longer matches leads to BEGIN, so a fail link behind such a character that would go
// to ROOT goes to BEGIN.
//
// From the right everything is turned round: tokens, their bytes, and which end of a text needs the end of a word:
//
//     "▁Haus" from the left   BEGIN --H--a--u--s--> [term, if the word ends here]
//             from the right  BEGIN --s--u--a--H--> [the same] --(space)--> end of its only subword
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "constraint/constraint_private.h"

static dgm_status new_node(dgm_constraint *c, int16_t byte, int32_t *out, dgm_error *err)
{
    DGM_TRY(dgm_grow(&c->nodes, &c->node_cap, c->node_count + 1, sizeof *c->nodes, err));
    c->nodes[c->node_count] = (trie_node){
        .child = -1, .sibling = -1, .fail = ROOT, .first_end = -1, .first_stage = -1, .byte = byte};
    *out = (int32_t)c->node_count++;
    return DGM_OK;
}

static dgm_status child_of(dgm_constraint *c, int32_t parent, uint8_t byte, int32_t *out,
                           dgm_error *err)
{
    for (int32_t k = c->nodes[parent].child; k >= 0; k = c->nodes[k].sibling)
        if (c->nodes[k].byte == byte) {
            *out = k;
            return DGM_OK;
        }
    DGM_TRY(new_node(c, byte, out, err));
    c->nodes[*out].depth = c->nodes[parent].depth + 1;
    c->nodes[*out].sibling = c->nodes[parent].child;
    c->nodes[parent].child = *out;
    return DGM_OK;
}

static dgm_status add_stage(dgm_constraint *c, int32_t at, const dgm_pattern *p, int done,
                            dgm_error *err)
{
    const int term = p->kind == DGM_PATTERN_TERM ? p->term : -1;
    DGM_TRY(dgm_grow(&c->stages, &c->stage_cap, c->stage_count + 1, sizeof *c->stages, err));
    c->stages[c->stage_count] = (stage){.term = term,
                                        .done = done,
                                        .left = p->count - done,
                                        .token = done < p->count ? p->tokens[done] : -1,
                                        .subword = c->subword_count + done,
                                        .next = c->nodes[at].first_stage};
    c->nodes[at].first_stage = (int)c->stage_count++;
    return DGM_OK;
}

static bool is_last(const dgm_constraint *c, const dgm_pattern *p)
{
    return p->kind == (c->from_right ? DGM_PATTERN_PREFIX : DGM_PATTERN_SUFFIX);
}

// slot: of a term, the bit that an occurrence sets.
static dgm_status add_slot(dgm_constraint *c, int32_t at, const dgm_pattern *p, int slot, bool bounded,
                           dgm_error *err)
{
    for (int e = c->nodes[at].first_end; e >= 0; e = c->ends[e].next)
        if (c->ends[e].kind == p->kind && c->ends[e].term == slot) return DGM_OK;
    DGM_TRY(dgm_grow(&c->ends, &c->end_cap, c->end_count + 1, sizeof *c->ends, err));
    c->ends[c->end_count] = (end){.kind = p->kind, .term = slot, .owner = p->term, .bounded = bounded, .next = -1};
    int *last = &c->nodes[at].first_end; // in the order of the terms
    while (*last >= 0) last = &c->ends[*last].next;
    *last = (int)c->end_count++;
    return DGM_OK;
}

static dgm_status add_end(dgm_constraint *c, int32_t at, const dgm_pattern *p, bool bounded,
                          dgm_error *err)
{
    DGM_TRY(add_slot(c, at, p, p->term, bounded, err));
    for (int i = 0; p->kind == DGM_PATTERN_TERM && i < c->more[p->term].count; i++)
        DGM_TRY(add_slot(c, at, p, c->more[p->term].first + i, bounded, err));
    unsigned flag = ENDS_SUFFIX;
    if (p->kind == DGM_PATTERN_TERM) flag = bounded ? HAS_BOUNDED : HAS_OPEN;
    if (p->kind == DGM_PATTERN_FORBID) flag = bounded ? BANS_BOUNDED : BANS_OPEN;
    c->nodes[at].flags |= (uint16_t)flag;
    return DGM_OK;
}

// A pattern's text in the order of reading.
typedef struct spelling {
    dgm_writer text;  // as it is written
    dgm_writer bytes; // as it is read
    dgm_writer marks; // of each byte: INSIDE or OUTSIDE of words where it completes a character, else NOTHING
    size_t first, last; // the text without the space in front of it: bytes first .. last - 1
    bool begins, ends;  // inside a word, as it is written
} spelling;

enum { NOTHING = 0, INSIDE, OUTSIDE };

static void spelling_free(spelling *s)
{
    dgm_writer_free(&s->text);
    dgm_writer_free(&s->bytes);
    dgm_writer_free(&s->marks);
}

static void mark_characters(const dgm_constraint *c, spelling *s)
{
    const char *text = (const char *)s->text.data;
    const size_t size = s->text.size;
    for (size_t i = 0; i < size; i++) dgm_write_u8(&s->marks, NOTHING);
    for (size_t i = 0, n; !s->marks.failed && i < size; i += n) {
        uint32_t code = 0;
        n = dgm_utf8_next(text + i, size - i, &code);
        if (code == 0xFFFD && n < 3) continue;
        s->marks.data[c->from_right ? size - 1 - i : i + n - 1] = dgm_char_in_word(code) ? INSIDE : OUTSIDE;
    }
}

// p's tokens are in the order of reading.
static dgm_status spell(const dgm_constraint *c, const dgm_pattern *p, spelling *s, dgm_error *err)
{
    s->text.size = s->bytes.size = s->marks.size = 0;
    for (int i = 0; i < p->count; i++) {
        const dgm_text t = dgm_surface(c->surfaces, p->tokens[c->from_right ? p->count - 1 - i : i]);
        dgm_write_bytes(&s->text, t.data, t.size);
    }
    const size_t size = s->text.size;
    for (size_t i = 0; i < size && !s->text.failed; i++)
        dgm_write_u8(&s->bytes, s->text.data[c->from_right ? size - 1 - i : i]);
    mark_characters(c, s);
    if (s->text.failed || s->bytes.failed || s->marks.failed) return dgm_no_memory(err);
    size_t spaces = 0;
    while (spaces < size && s->text.data[spaces] == ' ') spaces++;
    DGM_FAIL_IF(spaces == size, err, DGM_ERR_TEXT, "a constraint without text");
    const dgm_text words = {(const char *)s->text.data + spaces, size - spaces};
    s->begins = dgm_text_begins_in_word(words);
    s->ends = dgm_text_ends_in_word(words);
    s->first = c->from_right ? 0 : spaces;
    s->last = c->from_right ? size - spaces : size;
    return DGM_OK;
}

// Where the reading of a pattern begins: behind a character outside of words, or anywhere.
static int32_t start_of(const dgm_constraint *c, const dgm_pattern *p, const spelling *s)
{
    const bool open = p->open || p->kind == DGM_PATTERN_PREFIX;
    return (c->from_right ? s->ends && !open : s->begins) ? BEGIN : ROOT;
}

// Does its other side need the end of a word?
static bool is_bounded(const dgm_constraint *c, const dgm_pattern *p, const spelling *s)
{
    if (is_last(c, p)) return false;
    return c->from_right ? s->begins : s->ends && !p->open;
}

// Subwords of a pattern that were passed on its path.
typedef struct progress {
    size_t done, end; // end: of the next one, among the pattern's bytes
} progress;

// Adds bytes first .. last - 1 below a node; *at becomes their end. NULL: they are no stages.
static dgm_status add_path(dgm_constraint *c, const dgm_pattern *p, const spelling *s, size_t first, size_t last,
                           progress *passed, int32_t *at, dgm_error *err)
{
    for (size_t i = first; i < last; i++) {
        DGM_TRY(child_of(c, *at, s->bytes.data[i], at, err));
        if (s->marks.data[i] != NOTHING) c->nodes[*at].opens = s->marks.data[i] == OUTSIDE;
        while (passed && passed->done < (size_t)p->count && i + 1 >= passed->end) {
            passed->done++;
            if (i + 1 == passed->end) DGM_TRY(add_stage(c, *at, p, (int)passed->done, err));
            if (passed->done < (size_t)p->count)
                passed->end += dgm_surface(c->surfaces, p->tokens[passed->done]).size;
        }
    }
    return DGM_OK;
}

static dgm_status add_pattern(dgm_constraint *c, const dgm_pattern *p, spelling *s, dgm_error *err)
{
    DGM_TRY(spell(c, p, s, err));
    const bool forced = p->kind != DGM_PATTERN_FORBID;
    progress passed = {0, dgm_surface(c->surfaces, p->tokens[0]).size};
    // A first subword that is a space alone is no stage of the text without it: it has a path of its
    // own, whose nodes fail to those of the text.
    const bool apart = s->first > 0 && passed.end <= s->first;
    int32_t at = ROOT, end_at = start_of(c, p, s);
    if (forced && apart) DGM_TRY(add_path(c, p, s, 0, s->bytes.size, &passed, &at, err));
    progress *own = forced && !apart ? &passed : NULL;
    DGM_TRY(add_path(c, p, s, s->first, s->last, own, &end_at, err));
    DGM_TRY(add_end(c, end_at, p, is_bounded(c, p, s), err));
    if (!own || s->last == s->bytes.size) return DGM_OK;
    DGM_TRY(add_path(c, p, s, s->last, s->bytes.size, own, &end_at, err)); // the space, read last
    return is_last(c, p) ? add_end(c, end_at, p, false, err) : DGM_OK;
}

// Breadth first: a node's fail link is shorter than the node, so it is finished before. Returns the
// order in `order` [node_count].
static void link_nodes(dgm_constraint *c, int32_t *order)
{
    for (int root = ROOT; root <= BEGIN; root++)
        for (int32_t k = c->nodes[root].child; k >= 0; k = c->nodes[k].sibling) c->begins[c->nodes[k].byte] = true;
    size_t head = 0, count = 0;
    order[count++] = ROOT;
    order[count++] = BEGIN;
    while (head < count) {
        const int32_t at = order[head++];
        for (int32_t k = c->nodes[at].child; k >= 0; k = c->nodes[k].sibling) {
            trie_node *n = &c->nodes[k];
            n->fail = at == ROOT ? ROOT : dgm_constraint_go(c, c->nodes[at].fail, (uint8_t)n->byte);
            if (n->opens && n->fail == ROOT) n->fail = BEGIN;
            n->flags |= c->nodes[n->fail].flags;
            order[count++] = k;
        }
    }
}

// ---- forbidden texts ---------------------------------------------------------------------------

typedef struct ban {
    int32_t node, token;
} ban;

typedef struct bans {
    ban *items;
    size_t count, cap;
} bans;

static bool breaks(const dgm_constraint *c, int32_t at, int32_t token)
{
    uint32_t mask = 0;
    unsigned wrong = 0;
    dgm_constraint_read(c, at, &mask, dgm_surface(c->surfaces, token), &wrong, NULL);
    return wrong & FORBIDDEN;
}

static dgm_status ban_token(bans *b, int32_t at, int32_t token, dgm_error *err)
{
    DGM_TRY(dgm_grow(&b->items, &b->cap, b->count + 1, sizeof *b->items, err));
    b->items[b->count++] = (ban){at, token};
    return DGM_OK;
}

// Does a token's text begin with these bytes, in the order of reading?
static bool begins_with(const dgm_constraint *c, dgm_text t, const uint8_t *bytes, size_t count)
{
    if (t.size < count) return false;
    for (size_t i = 0; i < count; i++)
        if ((uint8_t)t.data[c->from_right ? t.size - 1 - i : i] != bytes[i]) return false;
    return true;
}

// Tokens that complete the pattern from one of the nodes on its path. From the other nodes only
// those can that hold all of it.
static dgm_status find_bans(const dgm_constraint *c, const dgm_pattern *p, spelling *s, bans *b, dgm_error *err)
{
    DGM_TRY(spell(c, p, s, err));
    int32_t at = start_of(c, p, s);
    for (size_t d = s->first; d < s->last; d++) {
        for (int32_t t = 0; t < c->surfaces->count; t++)
            if (begins_with(c, dgm_surface(c->surfaces, t), s->bytes.data + d, s->last - d) && breaks(c, at, t))
                DGM_TRY(ban_token(b, at, t, err));
        at = dgm_constraint_go(c, at, s->bytes.data[d]);
    }
    for (int32_t t = 0; t < c->surfaces->count; t++) {
        const dgm_text x = dgm_surface(c->surfaces, t);
        if (x.size > s->last - s->first && memchr(x.data, s->bytes.data[s->first], x.size) && breaks(c, ROOT, t))
            DGM_TRY(ban_token(b, ROOT, t, err));
    }
    return DGM_OK;
}

// The list of a node is its own and that of its fail link, ascending. Nodes without any of their
// own share the link's.
static dgm_status list_bans(dgm_constraint *c, const bans *b, const int32_t *order, dgm_error *err)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const int32_t at = order[i];
        trie_node *n = &c->nodes[at];
        const trie_node *link = &c->nodes[n->fail];
        size_t own = 0;
        for (size_t k = 0; k < b->count; k++) own += b->items[k].node == at;
        n->deny = link->deny;
        n->deny_count = link->deny_count;
        if (own == 0) continue;
        const size_t room = own + (size_t)link->deny_count, begin = c->denied_count;
        DGM_TRY(dgm_grow(&c->denied, &c->denied_cap, begin + room, sizeof *c->denied, err));
        int32_t *list = c->denied + begin;
        int count = 0;
        if (at != ROOT && link->deny_count > 0) {
            memcpy(list, c->denied + link->deny, (size_t)link->deny_count * sizeof *list);
            count = link->deny_count;
        }
        for (size_t k = 0; k < b->count; k++) {
            if (b->items[k].node != at) continue;
            count = dgm_insert_id(list, count, b->items[k].token);
        }
        n->deny = (int)begin;
        n->deny_count = count;
        c->denied_count = begin + (size_t)count;
    }
    return DGM_OK;
}

// ---- limits ------------------------------------------------------------------------------------

// Bits for the occurrences that limits leave to terms beyond the one that each needs.
static void count_slots(dgm_constraint *c, const dgm_pattern *patterns, int count)
{
    c->slots = c->terms;
    for (int i = 0; i < count; i++) {
        const dgm_pattern *p = &patterns[i];
        if (p->kind != DGM_PATTERN_TERM || c->limited >> p->term & 1) continue;
        if (p->most <= 0 || p->most > DGM_CONSTRAINT_BITS) continue;
        c->limited |= (uint32_t)1 << p->term;
        c->more[p->term] = (term_slots){c->slots, p->most - 1};
        c->slots += p->most - 1;
    }
}

// Terms whose text ends at a node, not at one of its fail links.
static uint32_t terms_at(const dgm_constraint *c, int32_t node)
{
    uint32_t terms = 0;
    for (int e = c->nodes[node].first_end; e >= 0; e = c->ends[e].next)
        if (c->ends[e].kind == DGM_PATTERN_TERM) terms |= (uint32_t)1 << c->ends[e].owner;
    return terms;
}

// The terms whose bits are set.
static uint32_t owners_of(const dgm_constraint *c, uint32_t mask)
{
    uint32_t owners = mask & c->all;
    for (int t = 0; t < c->terms; t++)
        for (int i = 0; i < c->more[t].count; i++)
            if (mask >> (c->more[t].first + i) & 1) owners |= (uint32_t)1 << t;
    return owners;
}

// Terms that stand inside of a pattern's text, or in another of their own.
static dgm_status find_inside(const dgm_constraint *c, const dgm_pattern *p, spelling *s, uint32_t *inside,
                              dgm_error *err)
{
    uint32_t mask = 0, own = 0;
    unsigned wrong = 0;
    DGM_TRY(spell(c, p, s, err));
    const size_t spaces = c->from_right ? s->text.size - s->last : s->first;
    const dgm_text text = {(const char *)s->text.data + spaces, s->text.size - spaces};
    const int32_t node = dgm_constraint_read(c, BEGIN, &mask, text, &wrong, inside);
    mask = dgm_constraint_met(c, node, mask, inside);
    // An end that is no text of the automaton leads to what it ends with.
    const uint32_t ends = c->nodes[node].depth == (int32_t)(s->last - s->first) ? terms_at(c, node) : 0;
    *inside |= owners_of(c, mask) & ~ends;
    for (int bit = 0; bit < c->slots; bit++) // an occurrence sets one
        if (mask >> bit & 1 && owners_of(c, (uint32_t)1 << bit) & ends) own++;
    if (own > 1) *inside |= ends;
    return DGM_OK;
}

static bool shares_text(const dgm_constraint *c, int term)
{
    for (size_t i = 0; i < c->node_count; i++) {
        const uint32_t terms = terms_at(c, (int32_t)i);
        if (terms >> term & 1 && terms & (terms - 1)) return true;
    }
    return false;
}

static dgm_status set_limits(dgm_constraint *c, const dgm_pattern *patterns, int count, spelling *s, dgm_error *err)
{
    uint32_t inside = 0;
    if (!c->limited) return DGM_OK;
    if (c->slots + c->node_bits > DGM_CONSTRAINT_BITS) {
        c->limited = 0;
        c->slots = c->terms;
        return DGM_OK;
    }
    for (int i = 0; i < count; i++)
        if (patterns[i].kind != DGM_PATTERN_FORBID) DGM_TRY(find_inside(c, &patterns[i], s, &inside, err));
    c->limited &= ~inside;
    for (int i = 0; i < count; i++) {
        const dgm_pattern *p = &patterns[i];
        if (p->kind == DGM_PATTERN_TERM && c->more[p->term].count == 0 && !shares_text(c, p->term))
            c->once |= (uint32_t)1 << p->term;
    }
    c->once &= c->limited;
    return DGM_OK;
}

// ---- the whole ---------------------------------------------------------------------------------

static dgm_status add_tokens(dgm_constraint *c, const dgm_pattern *p, dgm_error *err)
{
    if (p->kind == DGM_PATTERN_FORBID) return DGM_OK;
    for (int i = 0; i < p->count; i++) {
        DGM_TRY(dgm_grow(&c->tokens, &c->token_cap, (size_t)c->token_count + 1, sizeof *c->tokens,
                         err));
        c->token_count = dgm_insert_id(c->tokens, c->token_count, p->tokens[i]);
    }
    return DGM_OK;
}

static dgm_status count_subwords(dgm_constraint *c, const dgm_pattern *p, dgm_error *err)
{
    if (p->kind == DGM_PATTERN_FORBID) return DGM_OK;
    const bool term = p->kind == DGM_PATTERN_TERM;
    DGM_TRY(dgm_grow(&c->firsts, &c->first_cap, (size_t)c->first_count + 1, sizeof *c->firsts,
                     err));
    c->firsts[c->first_count++] = (first_subword){
        .term = term ? p->term : -1, .token = p->tokens[0], .subword = c->subword_count, .count = p->count};
    c->subword_count += p->count;
    int *subwords = term ? &c->subwords[p->term] : &c->suffix_subwords;
    if (*subwords == 0 || p->count < *subwords) *subwords = p->count;
    return DGM_OK;
}

// The tokens of a suffix, for who begins at the end. p's tokens are in the order of reading.
static dgm_status keep_end(dgm_constraint *c, const dgm_pattern *p, dgm_error *err)
{
    c->end = dgm_malloc((size_t)p->count * sizeof *c->end);
    if (!c->end) return dgm_no_memory(err);
    c->end_subwords = p->count;
    for (int i = 0; i < p->count; i++) c->end[i] = p->tokens[c->from_right ? i : p->count - 1 - i];
    return DGM_OK;
}

static dgm_status add_all(dgm_constraint *c, const dgm_pattern *patterns, int count, spelling *s, dgm_error *err)
{
    for (int i = 0; i < count; i++) {
        const dgm_pattern *p = &patterns[i];
        if (p->kind == DGM_PATTERN_SUFFIX && c->endless) continue;
        DGM_TRY(add_tokens(c, p, err));
        if (p->kind == DGM_PATTERN_SUFFIX && !c->end) DGM_TRY(keep_end(c, p, err));
        if (p->kind == DGM_PATTERN_SUFFIX && c->from_right) continue;
        DGM_TRY(add_pattern(c, p, s, err));
        DGM_TRY(count_subwords(c, p, err));
    }
    c->end_alone = count == 1 && patterns[0].kind == DGM_PATTERN_SUFFIX && !c->endless;
    return DGM_OK;
}

static dgm_status build(dgm_constraint *c, const dgm_pattern *patterns, int count, spelling *s,
                        bans *b, dgm_error *err)
{
    int32_t made;
    DGM_TRY(new_node(c, -1, &made, err)); // ROOT
    DGM_TRY(new_node(c, -1, &made, err)); // BEGIN
    count_slots(c, patterns, count);
    DGM_TRY(add_all(c, patterns, count, s, err));
    DGM_FAIL_IF(c->subword_count > DGM_CONSTRAINT_SUBWORDS || c->token_count > DGM_CONSTRAINT_SUBWORDS, err,
                DGM_ERR_UNSUPPORTED, "more than %d subwords in the constraints of one sentence",
                DGM_CONSTRAINT_SUBWORDS);
    while ((size_t)1 << c->node_bits < c->node_count) c->node_bits++;
    DGM_FAIL_IF(c->terms + c->node_bits > DGM_CONSTRAINT_BITS, err, DGM_ERR_UNSUPPORTED,
                "too many constraints in one sentence: %d terms", c->terms);
    for (int t = 0; t < c->terms; t++)
        DGM_FAIL_IF(c->subwords[t] == 0, err, DGM_ERR_ARGUMENT, "term %d has no text", t);
    c->all = (uint32_t)(((uint64_t)1 << c->terms) - 1);
    int32_t *order = dgm_malloc(c->node_count * sizeof *order);
    if (!order) return dgm_no_memory(err);
    link_nodes(c, order);
    dgm_status st = set_limits(c, patterns, count, s, err);
    for (int i = 0; i < count && st == DGM_OK; i++)
        if (patterns[i].kind == DGM_PATTERN_FORBID) st = find_bans(c, &patterns[i], s, b, err);
    if (st == DGM_OK) st = list_bans(c, b, order, err);
    dgm_free(order);
    return st;
}

// endless: without its end, which somebody else sees to.
static dgm_status compile(dgm_constraint **out, const dgm_surfaces *surfaces, const dgm_pattern *patterns,
                          int count, int terms, bool from_right, bool endless, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(terms > DGM_CONSTRAINT_BITS - 1, err, DGM_ERR_UNSUPPORTED,
                "too many constraints in one sentence: %d terms", terms);
    dgm_constraint *c = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->surfaces = surfaces;
    c->terms = terms;
    c->from_right = from_right;
    c->endless = endless;
    c->subwords = dgm_calloc((size_t)terms + 1, sizeof *c->subwords);
    c->more = dgm_calloc((size_t)terms + 1, sizeof *c->more);
    spelling s = {0};
    bans b = {0};
    dgm_status st = c->subwords && c->more ? build(c, patterns, count, &s, &b, err) : dgm_no_memory(err);
    spelling_free(&s);
    dgm_free(b.items);
    if (st != DGM_OK) dgm_constraint_free(&c);
    *out = c;
    return st;
}

dgm_status dgm_constraint_compile(dgm_constraint **out, const dgm_surfaces *surfaces,
                                  const dgm_pattern *patterns, int count, int terms, dgm_error *err)
{
    return compile(out, surfaces, patterns, count, terms, false, false, err);
}

// Patterns with their tokens turned round, in one block.
static dgm_pattern *turn(const dgm_pattern *patterns, int count)
{
    size_t tokens = 0;
    for (int i = 0; i < count; i++) tokens += (size_t)patterns[i].count;
    dgm_pattern *turned = dgm_malloc((size_t)(count + 1) * sizeof *turned + tokens * sizeof(int32_t));
    int32_t *at = turned ? (int32_t *)(turned + count + 1) : NULL;
    for (int i = 0; turned && i < count; i++) {
        turned[i] = patterns[i];
        turned[i].tokens = at;
        for (int k = patterns[i].count - 1; k >= 0; k--) *at++ = patterns[i].tokens[k];
    }
    return turned;
}

dgm_status dgm_constraint_compile_right(dgm_constraint **out, const dgm_surfaces *surfaces,
                                        const dgm_pattern *patterns, int count, int terms, dgm_error *err)
{
    *out = NULL;
    dgm_pattern *turned = turn(patterns, count);
    if (!turned) return dgm_no_memory(err);
    const dgm_status st = compile(out, surfaces, turned, count, terms, true, false, err);
    dgm_free(turned);
    return st;
}

dgm_status dgm_constraint_compile_both(dgm_constraint **left, dgm_constraint **right, const dgm_surfaces *surfaces,
                                       const dgm_pattern *patterns, int count, int terms, dgm_error *err)
{
    *right = NULL;
    if (count == 1 && patterns[0].kind == DGM_PATTERN_SUFFIX)
        return compile(left, surfaces, patterns, count, terms, false, false, err);
    DGM_TRY(compile(left, surfaces, patterns, count, terms, false, true, err));
    const dgm_status st = dgm_constraint_compile_right(right, surfaces, patterns, count, terms, err);
    if (st != DGM_OK) dgm_constraint_free(left);
    return st;
}

void dgm_constraint_free(dgm_constraint **at)
{
    if (!at || !*at) return;
    dgm_constraint *c = *at;
    *at = NULL;
    dgm_free(c->subwords);
    dgm_free(c->more);
    dgm_free(c->end);
    dgm_free(c->nodes);
    dgm_free(c->ends);
    dgm_free(c->stages);
    dgm_free(c->firsts);
    dgm_free(c->denied);
    dgm_free(c->tokens);
    dgm_free(c);
}
