// SPDX-License-Identifier: MIT
// Building the automaton of constraint.h: a trie of the patterns' bytes, fail links breadth first,
// flags gathered along them, and for forbidden texts the tokens that would complete one.
//
// The text of a pattern is what its tokens write, without the space in front. A pattern whose text
// begins inside a word hangs below BEGIN, others below ROOT. A character outside of words after
// which nothing longer matches leads to BEGIN, so a fail link behind such a character that would go
// to ROOT goes to BEGIN.
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

static dgm_status add_end(dgm_constraint *c, int32_t at, const dgm_pattern *p, bool bounded,
                          dgm_error *err)
{
    for (int e = c->nodes[at].first_end; e >= 0; e = c->ends[e].next)
        if (c->ends[e].kind == p->kind && c->ends[e].term == p->term) return DGM_OK;
    DGM_TRY(dgm_grow(&c->ends, &c->end_cap, c->end_count + 1, sizeof *c->ends, err));
    c->ends[c->end_count] = (end){.kind = p->kind, .term = p->term, .bounded = bounded, .next = -1};
    int *last = &c->nodes[at].first_end; // in the order of the terms
    while (*last >= 0) last = &c->ends[*last].next;
    *last = (int)c->end_count++;
    unsigned flag = ENDS_SUFFIX;
    if (p->kind == DGM_PATTERN_TERM) flag = bounded ? HAS_BOUNDED : HAS_OPEN;
    if (p->kind == DGM_PATTERN_FORBID) flag = bounded ? BANS_BOUNDED : BANS_OPEN;
    c->nodes[at].flags |= (uint16_t)flag;
    return DGM_OK;
}

// The pattern's whole text, and where each of its subwords ends in it.
static void spell(const dgm_constraint *c, const dgm_pattern *p, dgm_writer *w)
{
    for (int i = 0; i < p->count; i++) {
        const dgm_text s = dgm_surface(c->surfaces, p->tokens[i]);
        dgm_write_bytes(w, s.data, s.size);
    }
}

static dgm_text text_of(const dgm_writer *w)
{
    dgm_text t = {(const char *)w->data, w->size};
    while (t.size > 0 && t.data[0] == ' ') t.data++, t.size--;
    return t;
}

// Marks the end of a character in the trie.
static void mark_character(dgm_constraint *c, int32_t at, dgm_text text, size_t begin, size_t size)
{
    uint32_t code = 0;
    if (dgm_utf8_next(text.data + begin, size, &code) == size && !(code == 0xFFFD && size < 3))
        c->nodes[at].opens = !dgm_char_in_word(code);
}

// Adds the text below a node; *last: its end. `skipped` bytes of the pattern's subwords come before
// it. staged: the ends of subwords become stages.
static dgm_status add_path(dgm_constraint *c, const dgm_pattern *p, dgm_text text, size_t skipped,
                           bool staged, int32_t *last, dgm_error *err)
{
    size_t subword_end = dgm_surface(c->surfaces, p->tokens[0]).size;
    int32_t at = *last;
    for (size_t i = 0, done = 0; i < text.size;) {
        uint32_t code = 0;
        const size_t n = dgm_utf8_next(text.data + i, text.size - i, &code);
        for (size_t k = 0; k < n; k++) {
            const size_t here = i + k + 1 + skipped;
            DGM_TRY(child_of(c, at, (uint8_t)text.data[i + k], &at, err));
            if (k + 1 == n) mark_character(c, at, text, i, n);
            while (staged && done < (size_t)p->count && here >= subword_end) {
                done++;
                if (here == subword_end) DGM_TRY(add_stage(c, at, p, (int)done, err));
                if (done < (size_t)p->count)
                    subword_end += dgm_surface(c->surfaces, p->tokens[done]).size;
            }
        }
        i += n;
    }
    *last = at;
    return DGM_OK;
}

static dgm_status add_pattern(dgm_constraint *c, const dgm_pattern *p, dgm_writer *w,
                              dgm_error *err)
{
    w->size = 0;
    spell(c, p, w);
    if (w->failed) return dgm_no_memory(err);
    const dgm_text text = text_of(w), whole = {(const char *)w->data, w->size};
    DGM_FAIL_IF(text.size == 0, err, DGM_ERR_TEXT, "a constraint without text");
    const bool forced = p->kind != DGM_PATTERN_FORBID;
    // A first subword that is a space alone is no stage of the text without it: it has a path of its
    // own, whose nodes fail to those of the text.
    const size_t skipped = whole.size - text.size;
    const bool apart = skipped > 0 && dgm_surface(c->surfaces, p->tokens[0]).size <= skipped;
    int32_t at = ROOT, end_at = dgm_text_begins_in_word(text) ? BEGIN : ROOT;
    if (forced && apart) DGM_TRY(add_path(c, p, whole, 0, true, &at, err));
    DGM_TRY(add_path(c, p, text, skipped, forced && !apart, &end_at, err));
    const bool bounded = !p->open && p->kind != DGM_PATTERN_SUFFIX && dgm_text_ends_in_word(text);
    return add_end(c, end_at, p, bounded, err);
}

// Breadth first: a node's fail link is shorter than the node, so it is finished before. Returns the
// order in `order` [node_count].
static void link_nodes(dgm_constraint *c, int32_t *order)
{
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
    bool broken = false;
    dgm_constraint_read(c, at, &mask, dgm_surface(c->surfaces, token), &broken);
    return broken;
}

static dgm_status ban_token(bans *b, int32_t at, int32_t token, dgm_error *err)
{
    DGM_TRY(dgm_grow(&b->items, &b->cap, b->count + 1, sizeof *b->items, err));
    b->items[b->count++] = (ban){at, token};
    return DGM_OK;
}

// Tokens that complete the pattern from one of the nodes on its path. From the other nodes only
// those can that hold all of it.
static dgm_status find_bans(const dgm_constraint *c, const dgm_pattern *p, dgm_writer *w, bans *b,
                            dgm_error *err)
{
    w->size = 0;
    spell(c, p, w);
    if (w->failed) return dgm_no_memory(err);
    const dgm_text text = text_of(w);
    int32_t at = dgm_text_begins_in_word(text) ? BEGIN : ROOT;
    for (size_t d = 0; d < text.size; d++) {
        const size_t rest = text.size - d;
        for (int32_t t = 0; t < c->surfaces->count; t++) {
            const dgm_text s = dgm_surface(c->surfaces, t);
            if (s.size < rest || s.data[0] != text.data[d] || memcmp(s.data, text.data + d, rest))
                continue;
            if (breaks(c, at, t)) DGM_TRY(ban_token(b, at, t, err));
        }
        at = dgm_constraint_go(c, at, (uint8_t)text.data[d]);
    }
    for (int32_t t = 0; t < c->surfaces->count; t++) {
        const dgm_text s = dgm_surface(c->surfaces, t);
        if (s.size > text.size && memchr(s.data, text.data[0], s.size) && breaks(c, ROOT, t))
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

static dgm_status build(dgm_constraint *c, const dgm_pattern *patterns, int count, dgm_writer *w,
                        bans *b, dgm_error *err)
{
    int32_t made;
    DGM_TRY(new_node(c, -1, &made, err)); // ROOT
    DGM_TRY(new_node(c, -1, &made, err)); // BEGIN
    for (int i = 0; i < count; i++) {
        DGM_TRY(add_pattern(c, &patterns[i], w, err));
        DGM_TRY(add_tokens(c, &patterns[i], err));
        DGM_TRY(count_subwords(c, &patterns[i], err));
    }
    if (count == 1 && patterns[0].kind == DGM_PATTERN_SUFFIX) {
        const int n = patterns[0].count;
        c->backwards = dgm_malloc((size_t)n * sizeof *c->backwards);
        if (!c->backwards) return dgm_no_memory(err);
        for (int i = 0; i < n; i++) c->backwards[i] = patterns[0].tokens[n - 1 - i];
    }
    DGM_FAIL_IF(c->subword_count > DGM_CONSTRAINT_SUBWORDS, err, DGM_ERR_UNSUPPORTED,
                "more than %d subwords in the constraints of one sentence", DGM_CONSTRAINT_SUBWORDS);
    while ((size_t)1 << c->node_bits < c->node_count) c->node_bits++;
    DGM_FAIL_IF(c->terms + c->node_bits > DGM_CONSTRAINT_BITS, err, DGM_ERR_UNSUPPORTED,
                "too many constraints in one sentence: %d terms", c->terms);
    for (int t = 0; t < c->terms; t++)
        DGM_FAIL_IF(c->subwords[t] == 0, err, DGM_ERR_ARGUMENT, "term %d has no text", t);
    c->all = (uint32_t)(((uint64_t)1 << c->terms) - 1);
    int32_t *order = dgm_malloc(c->node_count * sizeof *order);
    if (!order) return dgm_no_memory(err);
    link_nodes(c, order);
    dgm_status st = DGM_OK;
    for (int i = 0; i < count && st == DGM_OK; i++)
        if (patterns[i].kind == DGM_PATTERN_FORBID) st = find_bans(c, &patterns[i], w, b, err);
    if (st == DGM_OK) st = list_bans(c, b, order, err);
    dgm_free(order);
    return st;
}

dgm_status dgm_constraint_compile(dgm_constraint **out, const dgm_surfaces *surfaces,
                                  const dgm_pattern *patterns, int count, int terms, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(terms > DGM_CONSTRAINT_BITS - 1, err, DGM_ERR_UNSUPPORTED,
                "too many constraints in one sentence: %d terms", terms);
    dgm_constraint *c = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->surfaces = surfaces;
    c->terms = terms;
    c->subwords = dgm_calloc((size_t)terms + 1, sizeof *c->subwords);
    dgm_writer w = {0};
    bans b = {0};
    dgm_status st = c->subwords ? build(c, patterns, count, &w, &b, err) : dgm_no_memory(err);
    dgm_writer_free(&w);
    dgm_free(b.items);
    if (st != DGM_OK) dgm_constraint_free(&c);
    *out = c;
    return st;
}

void dgm_constraint_free(dgm_constraint **at)
{
    if (!at || !*at) return;
    dgm_constraint *c = *at;
    *at = NULL;
    dgm_free(c->subwords);
    dgm_free(c->backwards);
    dgm_free(c->nodes);
    dgm_free(c->ends);
    dgm_free(c->stages);
    dgm_free(c->firsts);
    dgm_free(c->denied);
    dgm_free(c->tokens);
    dgm_free(c);
}
