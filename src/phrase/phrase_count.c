// SPDX-License-Identifier: MIT
// Counting and scoring of phrase pairs; see phrase_count.h.
//
//   text      tokens of a side; a phrase is where it stood first, its length
//   phrases   hash table over that: number <-> (position, length)
//   runs      occurrence = (source phrase, target phrase, links | orientations), sorted by the two
//   matrices  links of an occurrence are a number, too: few come often
#include "phrase/phrase_count.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "base/extsort.h"
#include "base/pairmap.h"

#define NULL_WORD UINT32_MAX
#define MATRIX_BITS 28 // of an occurrence's third word; two orientations of 2 bits above

typedef struct phrases {
    uint32_t *at;    // [count] position in the text
    uint8_t *length; // [count]
    uint32_t *freq;  // [count]
    uint8_t *wanted; // [count], or NULL: all
    size_t count, at_cap, length_cap, freq_cap;
    uint32_t *slot; // [slots] 0 = free, else phrase + 1
    size_t slots;
} phrases;

typedef struct text_side {
    dgm_words words;
    uint32_t *token;
    size_t count, cap, begin; // begin: of the pair being read
    uint32_t *linked;         // [words] links of a word, NULL's counted as one
    size_t linked_cap;
    uint64_t null_linked; // words without a link
    phrases phrases;
} text_side;

// A source phrase's translations while they pass by.
typedef struct candidate {
    uint32_t target, matrix, count;
    uint32_t turn[DGM_PHRASE_ORIENTATIONS];
} candidate;

struct dgm_phrase_counter {
    dgm_phrase_params p;
    dgm_extractor *extractor;
    text_side side[2];
    dgm_pairmap links;    // (source word, target word) -> times linked
    dgm_pairmap matrices; // links of a phrase pair -> number
    uint64_t *matrix;     // [matrices.count]
    size_t matrix_cap;
    dgm_extsort *runs;
    candidate *found;
    uint32_t *order;
    size_t found_count, found_cap, order_cap;
    dgm_phrase_totals totals;
};

dgm_status dgm_phrase_counter_open(dgm_phrase_counter **out, const dgm_phrase_params *p,
                                   dgm_error *err)
{
    *out = NULL;
    dgm_phrase_counter *c = dgm_calloc(1, sizeof *c);
    if (!c) return dgm_no_memory(err);
    c->p = *p;
    dgm_extsort_options o = {.keys = 2, .width = 3, .memory = p->memory, .folder = p->folder};
    dgm_status st = dgm_extractor_open(&c->extractor, p->max_length, err);
    if (st == DGM_OK) st = dgm_extsort_open(&c->runs, &o, err);
    if (st != DGM_OK) dgm_phrase_counter_close(&c);
    *out = c;
    return st;
}

void dgm_phrase_counter_close(dgm_phrase_counter **out)
{
    dgm_phrase_counter *c = *out;
    if (!c) return;
    for (int s = 0; s < 2; s++) {
        text_side *d = &c->side[s];
        dgm_words_free(&d->words);
        dgm_free(d->token);
        dgm_free(d->linked);
        dgm_free(d->phrases.at);
        dgm_free(d->phrases.length);
        dgm_free(d->phrases.freq);
        dgm_free(d->phrases.wanted);
        dgm_free(d->phrases.slot);
    }
    dgm_extractor_close(&c->extractor);
    dgm_pairmap_free(&c->links);
    dgm_pairmap_free(&c->matrices);
    dgm_free(c->matrix);
    dgm_extsort_close(&c->runs);
    dgm_free(c->found);
    dgm_free(c->order);
    dgm_free(c);
    *out = NULL;
}

dgm_text dgm_phrase_counter_spell(const dgm_phrase_counter *c, int side, uint32_t word)
{
    return dgm_words_spell(&c->side[side].words, word);
}

// ---- phrases ----------------------------------------------------------------------------------

static size_t phrase_slot(const text_side *d, const uint32_t *words, uint8_t length)
{
    const phrases *x = &d->phrases;
    uint64_t h = length;
    for (int i = 0; i < length; i++) {
        h = (h ^ words[i]) * 0x9e3779b97f4a7c15u;
        h ^= h >> 29;
    }
    size_t mask = x->slots - 1, i = (size_t)(h ^ h >> 32) & mask;
    for (; x->slot[i]; i = (i + 1) & mask) {
        uint32_t k = x->slot[i] - 1;
        if (x->length[k] == length &&
            memcmp(d->token + x->at[k], words, length * sizeof *words) == 0)
            break;
    }
    return i;
}

static dgm_status widen_slots(text_side *d, dgm_error *err)
{
    phrases *x = &d->phrases;
    if ((x->count + 1) * 3 <= x->slots * 2) return DGM_OK;
    size_t slots = x->slots ? x->slots * 2 : 4096;
    uint32_t *slot = dgm_calloc(slots, sizeof *slot);
    if (!slot) return dgm_no_memory(err);
    dgm_free(x->slot);
    x->slot = slot;
    x->slots = slots;
    for (size_t k = 0; k < x->count; k++)
        slot[phrase_slot(d, d->token + x->at[k], x->length[k])] = (uint32_t)k + 1;
    return DGM_OK;
}

// The number of the phrase that stands in the text at a position; counts it.
static dgm_status number_phrase(text_side *d, size_t at, uint8_t length, uint32_t *number,
                                dgm_error *err)
{
    phrases *x = &d->phrases;
    DGM_TRY(widen_slots(d, err));
    size_t i = phrase_slot(d, d->token + at, length);
    if (!x->slot[i]) {
        DGM_FAIL_IF(x->count >= UINT32_MAX - 1, err, DGM_ERR_UNSUPPORTED, "more than 2^32 phrases");
        DGM_TRY(dgm_grow(&x->at, &x->at_cap, x->count + 1, sizeof *x->at, err));
        DGM_TRY(dgm_grow(&x->length, &x->length_cap, x->count + 1, 1, err));
        DGM_TRY(dgm_grow(&x->freq, &x->freq_cap, x->count + 1, sizeof *x->freq, err));
        x->at[x->count] = (uint32_t)at;
        x->length[x->count] = length;
        x->freq[x->count] = 0;
        x->slot[i] = (uint32_t)++x->count;
    }
    *number = x->slot[i] - 1;
    x->freq[*number]++;
    return DGM_OK;
}

// ---- pairs ------------------------------------------------------------------------------------

dgm_status dgm_phrase_counter_word(dgm_phrase_counter *c, int side, dgm_text word, dgm_error *err)
{
    text_side *d = &c->side[side];
    DGM_FAIL_IF(d->count >= UINT32_MAX - 1, err, DGM_ERR_UNSUPPORTED, "more than 2^32 tokens");
    DGM_TRY(dgm_grow(&d->token, &d->cap, d->count + 1, sizeof *d->token, err));
    return dgm_words_add(&d->words, word, &d->token[d->count++], err);
}

static dgm_status count_link(dgm_phrase_counter *c, uint32_t s, uint32_t t, dgm_error *err)
{
    uint32_t *n;
    DGM_TRY(dgm_pairmap_at(&c->links, dgm_pairmap_key(s, t), 0, &n, err));
    ++*n;
    if (s == NULL_WORD)
        c->side[0].null_linked++;
    else
        c->side[0].linked[s]++;
    if (t == NULL_WORD)
        c->side[1].null_linked++;
    else
        c->side[1].linked[t]++;
    return DGM_OK;
}

static dgm_status room_for_words(text_side *d, dgm_error *err)
{
    size_t before = d->linked_cap;
    DGM_TRY(dgm_grow(&d->linked, &d->linked_cap, d->words.count + 1, sizeof *d->linked, err));
    if (d->linked_cap > before)
        memset(d->linked + before, 0, (d->linked_cap - before) * sizeof *d->linked);
    return DGM_OK;
}

// Links of words, and NULL's of words without any.
static dgm_status count_links(dgm_phrase_counter *c, const dgm_align_link *links, size_t count,
                              const int length[2], dgm_error *err)
{
    const text_side *a = &c->side[0], *b = &c->side[1];
    for (int s = 0; s < 2; s++) DGM_TRY(room_for_words(&c->side[s], err));
    for (size_t k = 0; k < count; k++)
        DGM_TRY(count_link(c, a->token[a->begin + links[k].source],
                           b->token[b->begin + links[k].target], err));
    for (int s = 0; s < 2; s++)
        for (int i = 0; i < length[s]; i++) {
            bool has = false;
            for (size_t k = 0; k < count && !has; k++)
                has = (s ? links[k].target : links[k].source) == i;
            if (has) continue;
            uint32_t word = c->side[s].token[c->side[s].begin + (size_t)i];
            DGM_TRY(count_link(c, s ? NULL_WORD : word, s ? word : NULL_WORD, err));
        }
    return DGM_OK;
}

static dgm_status push_span(dgm_phrase_counter *c, const dgm_phrase_span *x, dgm_error *err)
{
    uint32_t record[3], *matrix;
    DGM_TRY(number_phrase(&c->side[0], c->side[0].begin + x->source, (uint8_t)x->source_length,
                          &record[0], err));
    DGM_TRY(number_phrase(&c->side[1], c->side[1].begin + x->target, (uint8_t)x->target_length,
                          &record[1], err));
    size_t known = c->matrices.count;
    DGM_TRY(dgm_pairmap_at(&c->matrices, x->links, (uint32_t)known, &matrix, err));
    if (c->matrices.count > known) {
        DGM_FAIL_IF(known >> MATRIX_BITS, err, DGM_ERR_UNSUPPORTED, "more than 2^%d alignments",
                    MATRIX_BITS);
        DGM_TRY(dgm_grow(&c->matrix, &c->matrix_cap, known + 1, sizeof *c->matrix, err));
        c->matrix[known] = x->links;
    }
    record[2] =
        *matrix | (uint32_t)x->previous << MATRIX_BITS | (uint32_t)x->next << (MATRIX_BITS + 2);
    c->totals.extracted++;
    return dgm_extsort_push(c->runs, record, err);
}

dgm_status dgm_phrase_counter_pair(dgm_phrase_counter *c, const dgm_align_link *links, size_t count,
                                   dgm_error *err)
{
    int length[2];
    for (int s = 0; s < 2; s++) length[s] = (int)(c->side[s].count - c->side[s].begin);
    const dgm_phrase_span *spans;
    size_t n;
    DGM_TRY(dgm_extract(c->extractor, links, count, length[0], length[1], &spans, &n, err));
    DGM_TRY(count_links(c, links, count, length, err));
    for (size_t i = 0; i < n; i++) DGM_TRY(push_span(c, &spans[i], err));
    for (int s = 0; s < 2; s++) c->side[s].begin = c->side[s].count;
    c->totals.pairs++;
    return DGM_OK;
}

dgm_status dgm_phrase_counter_want(dgm_phrase_counter *c, const dgm_text *words, size_t count,
                                   dgm_error *err)
{
    text_side *d = &c->side[0];
    phrases *x = &d->phrases;
    if (!x->wanted) {
        x->wanted = dgm_calloc(x->count + 1, 1);
        if (!x->wanted) return dgm_no_memory(err);
    }
    for (size_t i = 0; i < count && x->slots; i++) {
        uint32_t key[DGM_PHRASE_LENGTH_MAX];
        for (size_t k = 0; k < (size_t)c->p.max_length && i + k < count; k++) {
            int64_t word = dgm_words_find(&d->words, words[i + k]);
            if (word < 0) break;
            key[k] = (uint32_t)word;
            uint32_t number = x->slot[phrase_slot(d, key, (uint8_t)(k + 1))];
            if (number) x->wanted[number - 1] = 1;
        }
    }
    return DGM_OK;
}

// ---- scores -----------------------------------------------------------------------------------

// w(word of side `to` | word of the other side).
static double word_probability(const dgm_phrase_counter *c, int to, uint32_t word, uint32_t given)
{
    uint64_t key = to ? dgm_pairmap_key(given, word) : dgm_pairmap_key(word, given);
    const uint32_t *n = dgm_pairmap_find(&c->links, key);
    if (!n) return 0;
    const text_side *d = &c->side[1 - to];
    return (double)*n / (double)(given == NULL_WORD ? d->null_linked : d->linked[given]);
}

// lex(side `to` | the other side) of a row with its links.
static float lexical_weight(const dgm_phrase_counter *c, const dgm_phrase_row *r, int to)
{
    const uint32_t *words = to ? r->target : r->source, *given = to ? r->source : r->target;
    int n = to ? r->target_length : r->source_length, m = to ? r->source_length : r->target_length;
    double product = 1;
    for (int j = 0; j < n; j++) {
        double sum = 0;
        int links = 0;
        for (int i = 0; i < m; i++) {
            uint64_t bit = to ? DGM_PHRASE_LINK(i, j) : DGM_PHRASE_LINK(j, i);
            if (!(r->links & bit)) continue;
            sum += word_probability(c, to, words[j], given[i]);
            links++;
        }
        product *= links ? sum / links : word_probability(c, to, words[j], NULL_WORD);
    }
    // A float's smallest normal number: what is written is never 0, whose logarithm is nothing.
    return product < 1e-37 ? 1e-37f : (float)product;
}

static void fill_row(const dgm_phrase_counter *c, uint32_t source, const candidate *x,
                     dgm_phrase_row *r)
{
    const phrases *a = &c->side[0].phrases, *b = &c->side[1].phrases;
    *r = (dgm_phrase_row){
        .source = c->side[0].token + a->at[source],
        .target = c->side[1].token + b->at[x->target],
        .source_length = a->length[source],
        .target_length = b->length[x->target],
        .links = c->matrix[x->matrix],
        .source_count = a->freq[source],
        .target_count = b->freq[x->target],
        .count = x->count,
    };
    r->score[0] = (float)((double)r->count / (double)r->target_count);
    r->score[1] = lexical_weight(c, r, 0);
    r->score[2] = (float)((double)r->count / (double)r->source_count);
    r->score[3] = lexical_weight(c, r, 1);
    for (int k = 0; k < DGM_PHRASE_ORIENTATIONS; k++)
        r->orientation[k] = (float)((x->turn[k] + 0.5) / ((double)x->count + 1.5));
}

// By falling count; ties in the order of the text.
static int by_count(const void *context, uint32_t a, uint32_t b)
{
    const candidate *x = context;
    if (x[a].count != x[b].count) return x[a].count > x[b].count ? -1 : 1;
    return x[a].target < x[b].target ? -1 : x[a].target > x[b].target;
}

static dgm_status emit_source(dgm_phrase_counter *c, uint32_t source, dgm_phrase_taker take,
                              void *cookie, dgm_error *err)
{
    const phrases *a = &c->side[0].phrases;
    c->totals.distinct += c->found_count;
    if (a->wanted && !a->wanted[source]) return DGM_OK;
    DGM_TRY(dgm_grow(&c->order, &c->order_cap, c->found_count, sizeof *c->order, err));
    dgm_sort_indices(c->order, c->found_count, by_count, c->found);
    size_t limit = c->p.limit && c->p.limit < c->found_count ? c->p.limit : c->found_count;
    for (size_t k = 0; k < limit; k++) {
        const candidate *x = &c->found[c->order[k]];
        if (x->count <= c->p.prune && a->length[source] > 1) continue;
        dgm_phrase_row row;
        fill_row(c, source, x, &row);
        c->totals.kept++;
        DGM_TRY(take(cookie, &row, err));
    }
    return DGM_OK;
}

// Occurrences of one phrase pair: their sum, and the matrix that came most often.
typedef struct tally {
    uint32_t matrix[64], count[64]; // more different ones than these are not looked at
    int kinds;
} tally;

static void add_occurrence(candidate *x, tally *t, uint32_t word)
{
    uint32_t matrix = word & ((1u << MATRIX_BITS) - 1);
    x->count++;
    x->turn[word >> MATRIX_BITS & 3]++;
    x->turn[3 + (word >> (MATRIX_BITS + 2) & 3)]++;
    int k = 0;
    while (k < t->kinds && t->matrix[k] != matrix) k++;
    if (k == 64) return;
    if (k == t->kinds) {
        t->matrix[k] = matrix;
        t->count[t->kinds++] = 0;
    }
    t->count[k]++;
}

static uint32_t best_matrix(const dgm_phrase_counter *c, const tally *t)
{
    int best = 0;
    for (int k = 1; k < t->kinds; k++)
        if (t->count[k] > t->count[best] ||
            (t->count[k] == t->count[best] && c->matrix[t->matrix[k]] < c->matrix[t->matrix[best]]))
            best = k;
    return t->matrix[best];
}

dgm_status dgm_phrase_counter_rows(dgm_phrase_counter *c, dgm_phrase_taker take, void *cookie,
                                   dgm_error *err)
{
    DGM_TRY(dgm_extsort_rewind(c->runs, err));
    c->totals.distinct = c->totals.kept = 0;
    uint32_t source = 0;
    tally t = {0};
    c->found_count = 0;
    for (const uint32_t *record;;) {
        DGM_TRY(dgm_extsort_next(c->runs, &record, err));
        candidate *last = c->found_count ? &c->found[c->found_count - 1] : NULL;
        bool same = record && last && record[0] == source;
        if (last && (!same || record[1] != last->target)) last->matrix = best_matrix(c, &t);
        if (last && !same) {
            DGM_TRY(emit_source(c, source, take, cookie, err));
            c->found_count = 0;
        }
        if (!record) return DGM_OK;
        if (!same || record[1] != last->target) {
            DGM_TRY(dgm_grow(&c->found, &c->found_cap, c->found_count + 1, sizeof *c->found, err));
            c->found[c->found_count++] = (candidate){.target = record[1]};
            source = record[0];
            t.kinds = 0;
        }
        add_occurrence(&c->found[c->found_count - 1], &t, record[2]);
    }
}

dgm_phrase_totals dgm_phrase_counter_totals(const dgm_phrase_counter *c)
{
    dgm_phrase_totals t = c->totals;
    for (int s = 0; s < 2; s++) {
        t.tokens[s] = c->side[s].count;
        t.types[s] = c->side[s].words.count;
        t.phrases[s] = c->side[s].phrases.count;
    }
    t.spilled = dgm_extsort_spilled(c->runs);
    return t;
}
