// SPDX-License-Identifier: MIT
// Lexical tables: counting links, text in and out; see lexicon.h. Entries are collected as 64-bit
// keys and sorted (radix, 11 bits a pass), which needs no hash table and gives the rows at once.
#include "align/lexicon.h"

#include <stdio.h>
#include <string.h>

#include "base/bytes.h"
#include "base/fields.h"
#include "base/mem.h"
#include "base/number.h"
#include "base/sort.h"

void dgm_lexicon_close(dgm_lexicon **lex)
{
    dgm_lexicon *l = *lex;
    if (!l) return;
    dgm_free(l->at);
    dgm_free(l->entry);
    dgm_words_free(&l->source);
    dgm_words_free(&l->target);
    dgm_free(l);
    *lex = NULL;
}

// ---- sorting ----------------------------------------------------------------------------------

enum { DIGIT = 11, RADIX = 1 << DIGIT };

// Sorts keys below 2^bits; other: scratch of the same size. The result is in *key (the two may
// have been exchanged).
static void radix_sort(uint64_t **key, uint64_t **other, size_t count, int bits)
{
    for (int shift = 0; shift < bits; shift += DIGIT) {
        size_t at[RADIX + 1] = {0};
        const uint64_t *from = *key;
        uint64_t *to = *other;
        for (size_t i = 0; i < count; i++) at[((from[i] >> shift) & (RADIX - 1)) + 1]++;
        for (int d = 0; d < RADIX; d++) at[d + 1] += at[d];
        for (size_t i = 0; i < count; i++) to[at[(from[i] >> shift) & (RADIX - 1)]++] = from[i];
        uint64_t *swap = *key;
        *key = *other;
        *other = swap;
    }
}

static int bits_of(uint64_t largest)
{
    int bits = 0;
    for (; largest; largest >>= 1) bits++;
    return bits;
}

static int by_probability(const void *context, uint32_t a, uint32_t b)
{
    const dgm_lexicon_entry *row = context;
    if (row[a].prob != row[b].prob) return row[a].prob > row[b].prob ? -1 : 1;
    return row[a].target < row[b].target ? -1 : row[a].target > row[b].target;
}

// Puts the entries of every row in order. Rows are sorted through indices, hence the copy.
static dgm_status order_rows(dgm_lexicon *l, dgm_error *err)
{
    size_t widest = 0;
    for (uint32_t s = 0; s <= l->sources; s++)
        if (l->at[s + 1] - l->at[s] > widest) widest = l->at[s + 1] - l->at[s];
    uint32_t *index = dgm_malloc(widest * sizeof *index);
    dgm_lexicon_entry *copy = dgm_malloc(widest * sizeof *copy);
    if (!index || !copy) {
        dgm_free(index);
        dgm_free(copy);
        return dgm_no_memory(err);
    }
    for (uint32_t s = 0; s <= l->sources; s++) {
        dgm_lexicon_entry *row = l->entry + l->at[s];
        size_t n = l->at[s + 1] - l->at[s];
        if (n < 2) continue;
        memcpy(copy, row, n * sizeof *copy);
        dgm_sort_indices(index, n, by_probability, copy);
        for (size_t k = 0; k < n; k++) row[k] = copy[index[k]];
    }
    dgm_free(index);
    dgm_free(copy);
    return DGM_OK;
}

// ---- counting ---------------------------------------------------------------------------------

dgm_status dgm_link_counts_add(dgm_link_counts *c, uint32_t source, uint32_t target, dgm_error *err)
{
    DGM_TRY(dgm_grow(&c->key, &c->cap, c->count + 1, sizeof *c->key, err));
    c->key[c->count++] = (uint64_t)source * ((uint64_t)c->targets + 1) + target;
    return DGM_OK;
}

void dgm_link_counts_free(dgm_link_counts *c)
{
    dgm_free(c->key);
    *c = (dgm_link_counts){0};
}

// Room for rows and entries; on failure *lex is NULL.
static dgm_status make_lexicon(dgm_lexicon **lex, uint32_t sources, uint32_t targets,
                               size_t entries, dgm_error *err)
{
    dgm_lexicon *l = dgm_calloc(1, sizeof *l);
    *lex = l;
    if (!l) return dgm_no_memory(err);
    l->sources = sources;
    l->targets = targets;
    l->at = dgm_calloc((size_t)sources + 2, sizeof *l->at);
    l->entry = dgm_malloc(entries * sizeof *l->entry);
    if (l->at && l->entry) return DGM_OK;
    dgm_lexicon_close(lex);
    return dgm_no_memory(err);
}

// Fills the rows from sorted keys source * (targets + 1) + target.
static void fill_rows(dgm_lexicon *l, const uint64_t *key, size_t count)
{
    uint64_t wide = (uint64_t)l->targets + 1, n = 0;
    for (size_t i = 0; i < count;) {
        uint64_t s = key[i] / wide, first = n, end = (s + 1) * wide;
        size_t begin = i;
        while (i < count && key[i] < end) {
            size_t same = i;
            while (i < count && key[i] == key[same]) i++;
            l->entry[n++] = (dgm_lexicon_entry){(uint32_t)(key[same] % wide), (float)(i - same)};
        }
        for (uint64_t k = first; k < n; k++)
            l->entry[k].prob = (float)((double)l->entry[k].prob / (double)(i - begin));
        l->at[s + 1] = n;
    }
    for (uint32_t s = 0; s <= l->sources; s++)
        if (l->at[s + 1] < l->at[s]) l->at[s + 1] = l->at[s]; // words without any link
}

dgm_status dgm_lexicon_count(dgm_lexicon **lex, dgm_link_counts *c, bool reverse, dgm_error *err)
{
    *lex = NULL;
    uint64_t *other = dgm_malloc(c->count * sizeof *other);
    if (!other) return dgm_no_memory(err);
    uint64_t wide = (uint64_t)c->targets + 1, high = (uint64_t)c->sources + 1;
    uint64_t *key = c->key, *const before = key;
    if (reverse)
        for (size_t i = 0; i < c->count; i++) key[i] = key[i] % wide * high + key[i] / wide;
    radix_sort(&key, &other, c->count, bits_of(wide * high));
    size_t entries = 0;
    for (size_t i = 0; i < c->count; i++) entries += i == 0 || key[i] != key[i - 1];
    dgm_status st = make_lexicon(lex, reverse ? c->targets : c->sources,
                                 reverse ? c->sources : c->targets, entries, err);
    if (st == DGM_OK) {
        fill_rows(*lex, key, c->count);
        st = order_rows(*lex, err);
    }
    if (reverse) // back to the order that dgm_link_counts_add uses
        for (size_t i = 0; i < c->count; i++) key[i] = key[i] % high * wide + key[i] / high;
    c->key = key;
    if (key != before) c->cap = c->count;
    dgm_free(other);
    if (st != DGM_OK) dgm_lexicon_close(lex);
    return st;
}

// ---- writing ----------------------------------------------------------------------------------

static bool spelled_null(dgm_text t)
{
    return t.size == 4 && memcmp(t.data, "NULL", 4) == 0;
}

dgm_status dgm_lexicon_write(const dgm_lexicon *l, dgm_lexicon_spell spell, const void *context,
                             const char *path, dgm_error *err)
{
    static const dgm_text null = {"NULL", 4};
    dgm_textout *out = NULL;
    DGM_TRY(dgm_textout_open(&out, path, err));
    for (uint32_t s = 0; s <= l->sources; s++) {
        dgm_text source = s == l->sources ? null : spell(context, false, s);
        if (s < l->sources && spelled_null(source)) continue;
        for (uint64_t k = l->at[s]; k < l->at[s + 1]; k++) {
            uint32_t t = l->entry[k].target;
            dgm_text target = t == l->targets ? null : spell(context, true, t);
            if (t < l->targets && spelled_null(target)) continue;
            char number[40];
            int n = snprintf(number, sizeof number, " %.7g\n", (double)l->entry[k].prob);
            dgm_textout_write(out, target.data, target.size);
            dgm_textout_write(out, " ", 1);
            dgm_textout_write(out, source.data, source.size);
            dgm_textout_write(out, number, (size_t)n);
        }
    }
    return dgm_textout_commit(&out, err);
}

// ---- reading ----------------------------------------------------------------------------------

typedef struct entry_list {
    uint64_t *key; // source << 32 | target
    float *prob;
    size_t count, key_cap, prob_cap;
} entry_list;

static bool parse_probability(dgm_text t, float *out)
{
    double v;
    if (!dgm_number_f64(t, &v) || !(v >= 0 && v <= 1.0001)) return false;
    *out = (float)v;
    return true;
}

// One line of a table.
static dgm_status read_entry(dgm_lexicon *l, entry_list *e, dgm_text line, dgm_error *err)
{
    DGM_FAIL_IF(!dgm_utf8_valid(line), err, DGM_ERR_TEXT, "invalid UTF-8");
    const dgm_text target = dgm_field_next(&line), source = dgm_field_next(&line);
    const dgm_text number = dgm_field_next(&line);
    if (target.size == 0) return DGM_OK; // an empty line
    DGM_FAIL_IF(number.size == 0 || dgm_field_next(&line).size, err, DGM_ERR_FORMAT,
                "not 'TARGET SOURCE PROBABILITY'");
    float prob = 0;
    DGM_FAIL_IF(!parse_probability(number, &prob), err, DGM_ERR_FORMAT,
                "'%.*s' is not a probability", DGM_SHOWN(number));
    if (spelled_null(source) || spelled_null(target)) return DGM_OK;
    uint32_t s, t;
    DGM_TRY(dgm_words_add(&l->source, source, &s, err));
    DGM_TRY(dgm_words_add(&l->target, target, &t, err));
    DGM_TRY(dgm_grow(&e->key, &e->key_cap, e->count + 1, sizeof *e->key, err));
    DGM_TRY(dgm_grow(&e->prob, &e->prob_cap, e->count + 1, sizeof *e->prob, err));
    e->key[e->count] = (uint64_t)s << 32 | t;
    e->prob[e->count++] = prob;
    return DGM_OK;
}

// Earlier entries first among equals, so that the last one wins.
static int by_key(const void *context, uint32_t a, uint32_t b)
{
    const uint64_t *key = context;
    if (key[a] != key[b]) return key[a] < key[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Rows from the list of entries.
static dgm_status build_rows(dgm_lexicon *l, const entry_list *e, dgm_error *err)
{
    DGM_FAIL_IF(e->count > UINT32_MAX, err, DGM_ERR_UNSUPPORTED, "more than 2^32 entries");
    l->sources = (uint32_t)l->source.count;
    l->targets = (uint32_t)l->target.count;
    l->at = dgm_calloc((size_t)l->sources + 2, sizeof *l->at);
    l->entry = dgm_malloc(e->count * sizeof *l->entry);
    uint32_t *order = dgm_malloc(e->count * sizeof *order);
    if (!l->at || !l->entry || !order) {
        dgm_free(order);
        return dgm_no_memory(err);
    }
    dgm_sort_indices(order, e->count, by_key, e->key);
    uint64_t n = 0;
    for (size_t i = 0; i < e->count; i++) {
        uint32_t k = order[i];
        bool again = i > 0 && e->key[k] == e->key[order[i - 1]];
        if (again) n--;
        l->entry[n++] = (dgm_lexicon_entry){(uint32_t)e->key[k], e->prob[k]};
        l->at[(e->key[k] >> 32) + 1] = n;
    }
    for (uint32_t s = 0; s <= l->sources; s++)
        if (l->at[s + 1] < l->at[s]) l->at[s + 1] = l->at[s];
    dgm_free(order);
    return order_rows(l, err);
}

// What is being read: the table and its entries so far.
typedef struct reading {
    dgm_lexicon *lex;
    entry_list entries;
} reading;

static dgm_status take_line(void *cookie, dgm_text line, dgm_error *err)
{
    reading *r = cookie;
    return read_entry(r->lex, &r->entries, line, err);
}

static dgm_status begin_read(reading *r, dgm_error *err)
{
    *r = (reading){.lex = dgm_calloc(1, sizeof *r->lex)};
    return r->lex ? DGM_OK : dgm_no_memory(err);
}

static dgm_status finish_read(reading *r, dgm_status st, dgm_lexicon **lex, dgm_error *err)
{
    if (st == DGM_OK) st = build_rows(r->lex, &r->entries, err);
    dgm_free(r->entries.key);
    dgm_free(r->entries.prob);
    if (st != DGM_OK) dgm_lexicon_close(&r->lex);
    *lex = r->lex;
    return st;
}

dgm_status dgm_lexicon_parse(dgm_lexicon **lex, const char *text, size_t size, dgm_error *err)
{
    reading r;
    dgm_text rest = {text, size};
    dgm_status st = begin_read(&r, err);
    for (unsigned long long number = 1; st == DGM_OK && rest.size; number++) {
        st = take_line(&r, dgm_line_cut(&rest), err);
        if (st == DGM_ERR_FORMAT || st == DGM_ERR_TEXT) dgm_error_prefix(err, "line %llu", number);
    }
    return finish_read(&r, st, lex, err);
}

dgm_status dgm_lexicon_read(dgm_lexicon **lex, const char *path, dgm_error *err)
{
    reading r;
    dgm_status st = begin_read(&r, err);
    if (st == DGM_OK) st = dgm_lines_each(path, take_line, &r, err);
    return finish_read(&r, st, lex, err);
}
