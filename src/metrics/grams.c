// SPDX-License-Identifier: MIT
// N-grams of texts, counted for the metrics; see metrics_private.h.
//
// They are counted exactly, without comparing texts: a text becomes a row of units (word numbers or
// code points), and an n-gram is a node of a tree, child(node of its first n - 1 units, last unit).
// The children of all nodes live in one open hash table keyed by (parent, unit); a node's number is
// its slot. The hypothesis fills the table, references only look things up, since an n-gram that
// the hypothesis lacks can match nothing, nor can a longer one that begins with it.
//
//     slot: key parent<<32|unit, generation (old ones count as free), hyp, best, now, stamp
//
// hyp = count in the hypothesis, now = count in the reference at hand (valid when stamp is its
// number), best = largest count in any reference (BLEU clips there).
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "metrics/metrics_private.h"

#define NO_UNIT UINT32_MAX // a word that the hypothesis does not have
#define NO_NODE 0u         // the root; real nodes are slot + 1

struct dgm_gram {
    uint64_t key;
    uint32_t generation;
    uint32_t hyp, best, now, stamp;
};

struct dgm_word_slot {
    dgm_text word;
    uint32_t generation, unit;
};

typedef struct dgm_gram gram;
typedef struct dgm_word_slot word_slot;

// ---- tables --------------------------------------------------------------------------------

// Room for `need` entries at half load. Content need not survive.
static dgm_status reserve_table(void *table, size_t *cap, size_t need, size_t elem, dgm_error *err)
{
    size_t want = 64;
    while (want < need * 2) want *= 2;
    if (want <= *cap) return DGM_OK;
    void *fresh = dgm_calloc(want, elem);
    if (!fresh) return dgm_no_memory(err);
    void *old;
    memcpy(&old, table, sizeof old);
    dgm_free(old);
    memcpy(table, &fresh, sizeof fresh);
    *cap = want;
    return DGM_OK;
}

void dgm_grams_clear(dgm_metric *m)
{
    if (++m->generation == 0) { // wrapped: old generations would look new
        if (m->grams) memset(m->grams, 0, m->gram_cap * sizeof *m->grams);
        if (m->words) memset(m->words, 0, m->word_cap * sizeof *m->words);
        m->generation = 1;
    }
    m->next_unit = 0;
    m->stamp = 0;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

// Node of the n-gram that extends `parent` by `unit`; NO_NODE when it is absent and not added.
static uint32_t child(dgm_metric *m, uint32_t parent, uint32_t unit, bool add)
{
    uint64_t key = (uint64_t)parent << 32 | unit;
    size_t mask = m->gram_cap - 1;
    for (size_t at = mix(key) & mask;; at = (at + 1) & mask) {
        gram *g = &m->grams[at];
        if (g->generation != m->generation) {
            if (!add) return NO_NODE;
            *g = (gram){.key = key, .generation = m->generation};
            return (uint32_t)at + 1;
        }
        if (g->key == key) return (uint32_t)at + 1;
    }
}

static uint32_t unit_of_word(dgm_metric *m, dgm_text word, bool add)
{
    const uint64_t h = dgm_hash_bytes(DGM_HASH_START, word.data, word.size);
    size_t mask = m->word_cap - 1;
    for (size_t at = mix(h) & mask;; at = (at + 1) & mask) {
        word_slot *w = &m->words[at];
        if (w->generation != m->generation) {
            if (!add) return NO_UNIT;
            *w = (word_slot){word, m->generation, m->next_unit++};
            return w->unit;
        }
        if (dgm_text_equal(w->word, word)) return w->unit;
    }
}

dgm_status dgm_grams_add(dgm_metric *m, int order, dgm_error *err)
{
    const dgm_units *u = &m->hyp;
    DGM_TRY(
        reserve_table(&m->grams, &m->gram_cap, u->count * (size_t)order + 1, sizeof(gram), err));
    for (size_t i = 0; i < u->count; i++) {
        uint32_t node = NO_NODE;
        for (int n = 0; n < order && i + (size_t)n < u->count; n++) {
            node = child(m, node, u->items[i + (size_t)n], true);
            m->grams[node - 1].hyp++;
        }
    }
    return DGM_OK;
}

void dgm_grams_match(dgm_metric *m, int order, bool clip_best, int64_t *matches)
{
    const dgm_units *u = &m->ref;
    m->stamp++;
    for (size_t i = 0; i < u->count; i++) {
        uint32_t node = NO_NODE;
        for (int n = 0; n < order && i + (size_t)n < u->count; n++) {
            uint32_t unit = u->items[i + (size_t)n];
            if (unit == NO_UNIT) break;
            node = child(m, node, unit, false);
            if (node == NO_NODE) break;
            gram *g = &m->grams[node - 1];
            if (g->stamp != m->stamp) {
                g->stamp = m->stamp;
                g->now = 0;
            }
            g->now++;
            if (g->now <= g->hyp && (!clip_best || g->now > g->best)) matches[n]++;
            if (g->now > g->best) g->best = g->now;
        }
    }
}

// ---- text to units -------------------------------------------------------------------------

dgm_text dgm_metric_view(const dgm_writer *w)
{
    return (dgm_text){w->data ? (const char *)w->data : "", w->size};
}

dgm_status dgm_metric_clean(dgm_metric *m, dgm_text line, dgm_text *out, dgm_error *err)
{
    m->clean.size = m->lower.size = 0;
    *out = line;
    if (!dgm_utf8_valid(line)) {
        DGM_TRY(dgm_utf8_repair(line, &m->clean, NULL, err));
        *out = dgm_metric_view(&m->clean);
    }
    if (m->o.lowercase) {
        DGM_TRY(dgm_utf8_lower(*out, &m->lower, err));
        *out = dgm_metric_view(&m->lower);
    }
    return DGM_OK;
}

dgm_status dgm_units_push(dgm_units *u, uint32_t unit, dgm_error *err)
{
    DGM_TRY(dgm_grow(&u->items, &u->cap, u->count + 1, sizeof *u->items, err));
    u->items[u->count++] = unit;
    return DGM_OK;
}

dgm_status dgm_units_words(dgm_metric *m, dgm_text text, bool is_hyp, dgm_word_split split,
                           dgm_units *u, dgm_error *err)
{
    u->count = 0;
    dgm_text word;
    if (is_hyp) {
        size_t words = 0;
        for (dgm_text rest = text; dgm_next_word(&rest, &word);) words++;
        size_t need = words * (split ? 2 : 1) + 1;
        DGM_TRY(reserve_table(&m->words, &m->word_cap, need, sizeof(word_slot), err));
    }
    while (dgm_next_word(&text, &word)) {
        dgm_text parts[2];
        int count = 1;
        parts[0] = word;
        if (split) count = split(word, parts);
        for (int i = 0; i < count; i++)
            DGM_TRY(dgm_units_push(u, unit_of_word(m, parts[i], is_hyp), err));
    }
    return DGM_OK;
}
