// SPDX-License-Identifier: MIT
// Scores of pairs of texts from n-grams counted once; see pairwise.h.
//
// An n-gram is a node of a trie over units, found in a hash table by (parent, unit) and numbered in
// order of appearance. A text is its list of (node, count) by rising node. Words become units by
// the same trie: a word's number is the node of its bytes, below a root of their own.
#include "metrics/pairwise.h"

#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "metrics/metrics_private.h"

enum { ROOT = 0, WORDS = 1, FIRST = 2 }; // nodes: of n-grams, of spellings

typedef struct gram {
    uint32_t parent, unit;
    uint32_t order; // units; 0: part of a spelling
} gram;

typedef struct tally {
    uint32_t gram, count;
} tally;

typedef struct entry {
    size_t first, count; // its tallies
    size_t units;
} entry;

struct dgm_pairwise {
    dgm_metric *metric;
    dgm_metric_options o;
    int order;
    gram *grams; // [gram_count]
    uint32_t *table;
    size_t gram_count, gram_cap, table_size;
    tally *tallies;
    entry *texts;
    size_t tally_count, tally_cap, text_count, text_cap;
    // of one text
    dgm_writer clean, tokens, scratch;
    uint32_t *units, *found, *sorted; // [unit_count], [found_count] nodes
    size_t unit_count, unit_cap, found_count, found_cap, sorted_cap;
};

void dgm_pairwise_close(dgm_pairwise **at)
{
    dgm_pairwise *p = *at;
    if (!p) return;
    dgm_metric_close(&p->metric);
    dgm_free(p->grams);
    dgm_free(p->table);
    dgm_free(p->tallies);
    dgm_free(p->texts);
    dgm_writer_free(&p->clean);
    dgm_writer_free(&p->tokens);
    dgm_writer_free(&p->scratch);
    dgm_free(p->units);
    dgm_free(p->found);
    dgm_free(p->sorted);
    dgm_free(p);
    *at = NULL;
}

dgm_status dgm_pairwise_open(dgm_pairwise **at, const dgm_metric_options *o, dgm_error *err)
{
    *at = NULL;
    DGM_FAIL_IF(o->kind == DGM_METRIC_CHRF && o->word_order, err, DGM_ERR_UNSUPPORTED,
                "pairs of texts are compared by the characters of chrF alone");
    dgm_pairwise *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    p->o = *o;
    p->order = o->kind == DGM_METRIC_BLEU ? o->max_order : o->char_order;
    p->gram_count = FIRST;
    const dgm_status st = dgm_metric_open(&p->metric, o, err);
    if (st != DGM_OK)
        dgm_pairwise_close(&p);
    else
        *at = p;
    return st;
}

void dgm_pairwise_clear(dgm_pairwise *p)
{
    p->text_count = p->tally_count = 0;
    p->gram_count = FIRST;
    if (p->table) memset(p->table, 0, p->table_size * sizeof *p->table);
}

// ---- n-grams -----------------------------------------------------------------------------------

static size_t slot_of(const dgm_pairwise *p, uint32_t parent, uint32_t unit)
{
    uint64_t h = ((uint64_t)parent << 32 | unit) * 0x9E3779B97F4A7C15u;
    size_t at = (size_t)(h >> 31) & (p->table_size - 1);
    for (;; at = (at + 1) & (p->table_size - 1)) {
        const uint32_t node = p->table[at];
        if (node == 0 || (p->grams[node].parent == parent && p->grams[node].unit == unit))
            return at;
    }
}

static dgm_status grow_table(dgm_pairwise *p, dgm_error *err)
{
    const size_t size = p->table_size ? p->table_size * 2 : 4096;
    uint32_t *table = dgm_calloc(size, sizeof *table);
    if (!table) return dgm_no_memory(err);
    dgm_free(p->table);
    p->table = table;
    p->table_size = size;
    for (size_t i = FIRST; i < p->gram_count; i++)
        table[slot_of(p, p->grams[i].parent, p->grams[i].unit)] = (uint32_t)i;
    return DGM_OK;
}

static dgm_status child(dgm_pairwise *p, uint32_t parent, uint32_t unit, uint32_t order,
                        uint32_t *node, dgm_error *err)
{
    if (p->table_size < 2 * (p->gram_count + 1)) DGM_TRY(grow_table(p, err));
    const size_t at = slot_of(p, parent, unit);
    if (p->table[at] == 0) {
        DGM_FAIL_IF(p->gram_count >= UINT32_MAX / 2, err, DGM_ERR_TEXT, "too many n-grams");
        DGM_TRY(dgm_grow(&p->grams, &p->gram_cap, p->gram_count + 1, sizeof *p->grams, err));
        p->grams[p->gram_count] = (gram){parent, unit, order};
        p->table[at] = (uint32_t)p->gram_count++;
    }
    *node = p->table[at];
    return DGM_OK;
}

// ---- units -------------------------------------------------------------------------------------

static dgm_status push(uint32_t **list, size_t *count, size_t *cap, uint32_t v, dgm_error *err)
{
    DGM_TRY(dgm_grow(list, cap, *count + 1, sizeof **list, err));
    (*list)[(*count)++] = v;
    return DGM_OK;
}

static dgm_text view(const dgm_writer *w)
{
    return (dgm_text){w->data ? (const char *)w->data : "", w->size};
}

// Valid UTF-8 in lower case, if that is asked for.
static dgm_status clean_text(dgm_pairwise *p, dgm_text text, dgm_text *out, dgm_error *err)
{
    p->clean.size = p->scratch.size = 0;
    DGM_TRY(dgm_utf8_repair(text, &p->clean, NULL, err));
    *out = view(&p->clean);
    if (!p->o.lowercase) return DGM_OK;
    DGM_TRY(dgm_utf8_lower(*out, &p->scratch, err));
    p->clean.size = 0;
    dgm_write_bytes(&p->clean, p->scratch.data, p->scratch.size);
    *out = view(&p->clean);
    return p->clean.failed ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status word_units(dgm_pairwise *p, dgm_text text, dgm_error *err)
{
    DGM_TRY(dgm_bleu_tokenize_raw(p->o.tokenizer, text, &p->tokens, &p->scratch, err));
    dgm_text rest = view(&p->tokens), word;
    while (dgm_next_word(&rest, &word)) {
        uint32_t node = WORDS;
        for (size_t i = 0; i < word.size; i++)
            DGM_TRY(child(p, node, (unsigned char)word.data[i], 0, &node, err));
        DGM_TRY(push(&p->units, &p->unit_count, &p->unit_cap, node, err));
    }
    return DGM_OK;
}

static dgm_status char_units(dgm_pairwise *p, dgm_text text, dgm_error *err)
{
    for (size_t at = 0; at < text.size;) {
        uint32_t code;
        at += dgm_utf8_next(text.data + at, text.size - at, &code);
        if (p->o.whitespace || !dgm_char_is_space(code))
            DGM_TRY(push(&p->units, &p->unit_count, &p->unit_cap, code, err));
    }
    return DGM_OK;
}

static int by_node(const void *context, uint32_t a, uint32_t b)
{
    const uint32_t *nodes = context;
    return nodes[a] < nodes[b] ? -1 : nodes[a] > nodes[b];
}

static dgm_status count_grams(dgm_pairwise *p, dgm_error *err)
{
    p->found_count = 0;
    for (size_t i = 0; i < p->unit_count; i++) {
        uint32_t node = ROOT;
        for (int n = 1; n <= p->order && i + (size_t)n <= p->unit_count; n++) {
            DGM_TRY(child(p, node, p->units[i + (size_t)n - 1], (uint32_t)n, &node, err));
            DGM_TRY(push(&p->found, &p->found_count, &p->found_cap, node, err));
        }
    }
    const size_t count = p->found_count;
    DGM_TRY(dgm_grow(&p->sorted, &p->sorted_cap, count + 1, sizeof *p->sorted, err));
    DGM_TRY(dgm_grow(&p->tallies, &p->tally_cap, p->tally_count + count + 1, sizeof *p->tallies,
                     err));
    dgm_sort_indices(p->sorted, count, by_node, p->found);
    for (size_t i = 0; i < count; i++) {
        const uint32_t node = p->found[p->sorted[i]];
        if (i == 0 || p->tallies[p->tally_count - 1].gram != node)
            p->tallies[p->tally_count++] = (tally){node, 0};
        p->tallies[p->tally_count - 1].count++;
    }
    return DGM_OK;
}

dgm_status dgm_pairwise_add(dgm_pairwise *p, dgm_text text, dgm_error *err)
{
    const size_t first = p->tally_count;
    p->unit_count = 0;
    DGM_TRY(clean_text(p, text, &text, err));
    if (p->o.kind == DGM_METRIC_BLEU)
        DGM_TRY(word_units(p, text, err));
    else
        DGM_TRY(char_units(p, text, err));
    DGM_TRY(dgm_grow(&p->texts, &p->text_cap, p->text_count + 1, sizeof *p->texts, err));
    DGM_TRY(count_grams(p, err));
    p->texts[p->text_count++] = (entry){first, p->tally_count - first, p->unit_count};
    return DGM_OK;
}

// ---- pairs -------------------------------------------------------------------------------------

static int64_t gram_count(size_t units, int n)
{
    return units >= (size_t)n ? (int64_t)(units - (size_t)n + 1) : 0;
}

// The metric's row of one direction.
static double score_of(const dgm_pairwise *p, const entry *hyp, const entry *ref,
                       const int64_t *matches)
{
    int64_t row[DGM_METRIC_WIDTH_MAX] = {0};
    dgm_metric_score score;
    if (p->o.kind == DGM_METRIC_BLEU) {
        row[0] = (int64_t)hyp->units;
        row[1] = (int64_t)ref->units;
    }
    for (int n = 1; n <= p->order; n++) {
        if (p->o.kind == DGM_METRIC_BLEU) {
            row[1 + n] = matches[n];
            row[1 + p->order + n] = gram_count(hyp->units, n);
            continue;
        }
        const int64_t count = gram_count(ref->units, n);
        row[3 * (n - 1)] = count ? gram_count(hyp->units, n) : 0;
        row[3 * (n - 1) + 1] = count;
        row[3 * (n - 1) + 2] = matches[n];
    }
    dgm_metric_score_of(p->metric, row, &score);
    return score.score;
}

void dgm_pairwise_score(const dgm_pairwise *p, size_t a, size_t b, double *of_a, double *of_b)
{
    const entry *x = &p->texts[a], *y = &p->texts[b];
    const tally *i = p->tallies + x->first, *k = p->tallies + y->first;
    const tally *i_end = i + x->count, *k_end = k + y->count;
    int64_t matches[DGM_CHRF_CHAR_ORDER_MAX + 1] = {0};
    while (i < i_end && k < k_end) {
        if (i->gram == k->gram) {
            matches[p->grams[i->gram].order] += i->count < k->count ? i->count : k->count;
            i++;
            k++;
        } else if (i->gram < k->gram) {
            i++;
        } else {
            k++;
        }
    }
    *of_a = score_of(p, x, y, matches);
    *of_b = score_of(p, y, x, matches);
}
