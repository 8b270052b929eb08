// SPDX-License-Identifier: MIT
// Parallel text; see bitext.h. Lines are appended in order, dgm_bitext_finish renumbers the words
// and sorts the pairs (counting sort by target length, then by source length: stable, linear).
#include "align/bitext.h"

#include <string.h>

#include "base/mem.h"
#include "base/sort.h"

// ---- pairs ------------------------------------------------------------------------------------

dgm_status dgm_bitext_open(dgm_bitext **out, int max_length, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(max_length < 1 || max_length > DGM_BITEXT_LENGTH_MAX, err, DGM_ERR_ARGUMENT,
                "the longest sentence must be between 1 and %d tokens, not %d",
                DGM_BITEXT_LENGTH_MAX, max_length);
    dgm_bitext *b = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    b->max_length = max_length;
    *out = b;
    return DGM_OK;
}

void dgm_bitext_close(dgm_bitext **out)
{
    dgm_bitext *b = *out;
    if (!b) return;
    for (int s = 0; s < 2; s++) {
        dgm_bitext_side *d = &b->side[s];
        dgm_free(d->token);
        dgm_free(d->start);
        dgm_free(d->name);
        dgm_free(d->freq);
        dgm_words_free(&d->words);
    }
    dgm_free(b->line);
    dgm_free(b->pair);
    dgm_free(b->group);
    dgm_free(b);
    *out = NULL;
}

// Room for one more pair with these lengths; *keep says whether it counts as one.
static dgm_status begin_pair(dgm_bitext *b, const size_t length[2], bool *keep, dgm_error *err)
{
    *keep = false;
    DGM_FAIL_IF(b->lines >= UINT32_MAX - 1, err, DGM_ERR_UNSUPPORTED, "more than 2^32 lines");
    size_t max = (size_t)b->max_length;
    if (length[0] == 0 || length[1] == 0) {
        b->empty++;
    } else if (length[0] > max || length[1] > max) {
        b->too_long++;
    } else {
        DGM_TRY(dgm_grow(&b->line, &b->line_cap, (size_t)b->pairs + 1, sizeof *b->line, err));
        for (int s = 0; s < 2; s++) {
            dgm_bitext_side *d = &b->side[s];
            DGM_FAIL_IF(d->token_count > UINT32_MAX - length[s], err, DGM_ERR_UNSUPPORTED,
                        "more than 2^32 tokens");
            DGM_TRY(
                dgm_grow(&d->start, &d->start_cap, (size_t)b->pairs + 2, sizeof *d->start, err));
            DGM_TRY(dgm_grow(&d->token, &d->token_cap, d->token_count + length[s], sizeof *d->token,
                             err));
            d->start[b->pairs] = d->token_count;
            d->start[b->pairs + 1] = d->token_count + length[s];
        }
        b->line[b->pairs] = b->lines;
        *keep = true;
    }
    b->lines++;
    return DGM_OK;
}

static bool next_word(dgm_text t, size_t *at, dgm_text *word)
{
    size_t i = *at;
    while (i < t.size && (t.data[i] == ' ' || t.data[i] == '\t')) i++;
    size_t begin = i;
    while (i < t.size && t.data[i] != ' ' && t.data[i] != '\t') i++;
    *at = i;
    *word = (dgm_text){t.data + begin, i - begin};
    return i > begin;
}

dgm_status dgm_bitext_add_words(dgm_bitext *b, dgm_text source, dgm_text target, dgm_error *err)
{
    const dgm_text text[2] = {source, target};
    size_t length[2] = {0, 0};
    dgm_text word;
    for (int s = 0; s < 2; s++)
        for (size_t at = 0; next_word(text[s], &at, &word);) length[s]++;
    bool keep = false;
    DGM_TRY(begin_pair(b, length, &keep, err));
    if (!keep) return DGM_OK;
    for (int s = 0; s < 2; s++) {
        dgm_bitext_side *d = &b->side[s];
        for (size_t at = 0; next_word(text[s], &at, &word);)
            DGM_TRY(dgm_words_add(&d->words, word, &d->token[d->token_count++], err));
    }
    b->pairs++;
    return DGM_OK;
}

dgm_status dgm_bitext_add_ids(dgm_bitext *b, const int32_t *source, size_t source_count,
                              const int32_t *target, size_t target_count, dgm_error *err)
{
    const int32_t *ids[2] = {source, target};
    const size_t length[2] = {source_count, target_count};
    for (int s = 0; s < 2; s++)
        for (size_t i = 0; i < length[s]; i++)
            DGM_FAIL_IF(ids[s][i] < 0, err, DGM_ERR_ARGUMENT, "token id %d is negative",
                        (int)ids[s][i]);
    bool keep = false;
    DGM_TRY(begin_pair(b, length, &keep, err));
    if (!keep) return DGM_OK;
    for (int s = 0; s < 2; s++) {
        dgm_bitext_side *d = &b->side[s];
        for (size_t i = 0; i < length[s]; i++) d->token[d->token_count++] = (uint32_t)ids[s][i];
    }
    b->pairs++;
    return DGM_OK;
}

// ---- finish -----------------------------------------------------------------------------------

static int by_frequency(const void *context, uint32_t a, uint32_t b)
{
    const uint64_t *freq = context;
    if (freq[a] != freq[b]) return freq[a] > freq[b] ? -1 : 1;
    return a < b ? -1 : a > b;
}

// Words numbered by falling frequency; words that never occur in a kept pair get no number.
static dgm_status renumber(dgm_bitext_side *d, dgm_error *err)
{
    uint32_t top = 0;
    for (size_t i = 0; i < d->token_count; i++)
        if (d->token[i] >= top) top = d->token[i] + 1;
    uint64_t *freq = dgm_calloc(top, sizeof *freq);
    uint32_t *order = dgm_malloc((size_t)top * sizeof *order);
    uint32_t *fresh = dgm_malloc((size_t)top * sizeof *fresh);
    dgm_status st = freq && order && fresh ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        for (size_t i = 0; i < d->token_count; i++) freq[d->token[i]]++;
        dgm_sort_indices(order, top, by_frequency, freq);
        uint32_t types = 0;
        while (types < top && freq[order[types]] > 0) types++;
        for (uint32_t i = 0; i < top; i++) fresh[order[i]] = i;
        d->name = dgm_malloc((size_t)types * sizeof *d->name);
        d->freq = dgm_malloc((size_t)types * sizeof *d->freq);
        if (!d->name || !d->freq) {
            st = dgm_no_memory(err);
        } else {
            for (uint32_t i = 0; i < types; i++) {
                d->name[i] = order[i];
                d->freq[i] = freq[order[i]];
            }
            for (size_t i = 0; i < d->token_count; i++) d->token[i] = fresh[d->token[i]];
            d->types = types;
        }
    }
    dgm_free(freq);
    dgm_free(order);
    dgm_free(fresh);
    return st;
}

static uint32_t length_of(const dgm_bitext *b, int side, uint32_t pair)
{
    return (uint32_t)(b->side[side].start[pair + 1] - b->side[side].start[pair]);
}

// order := the pairs of `from`, stably sorted by their length of one side.
static void sort_by_length(const dgm_bitext *b, int side, const uint32_t *from, uint32_t *order)
{
    size_t at[DGM_BITEXT_LENGTH_MAX + 2] = {0};
    for (uint32_t p = 0; p < b->pairs; p++) at[length_of(b, side, p) + 1]++;
    for (int i = 1; i <= DGM_BITEXT_LENGTH_MAX + 1; i++) at[i] += at[i - 1];
    for (uint32_t k = 0; k < b->pairs; k++) {
        uint32_t p = from ? from[k] : k;
        order[at[length_of(b, side, p)]++] = p;
    }
}

// Tokens of one side in the new order of pairs.
static dgm_status reorder(dgm_bitext *b, int side, const uint32_t *order, dgm_error *err)
{
    dgm_bitext_side *d = &b->side[side];
    uint32_t *token = dgm_malloc(d->token_count * sizeof *token);
    uint64_t *start = dgm_malloc(((size_t)b->pairs + 1) * sizeof *start);
    if (!token || !start) {
        dgm_free(token);
        dgm_free(start);
        return dgm_no_memory(err);
    }
    size_t at = 0;
    for (uint32_t k = 0; k < b->pairs; k++) {
        size_t n = length_of(b, side, order[k]);
        memcpy(token + at, d->token + d->start[order[k]], n * sizeof *token);
        start[k] = at;
        at += n;
    }
    start[b->pairs] = at;
    dgm_free(d->token);
    dgm_free(d->start);
    d->token = token;
    d->start = start;
    d->token_cap = d->token_count;
    d->start_cap = (size_t)b->pairs + 1;
    return DGM_OK;
}

static dgm_status find_groups(dgm_bitext *b, dgm_error *err)
{
    size_t cap = 0;
    for (uint32_t p = 0; p < b->pairs; p++) {
        uint32_t m = length_of(b, 0, p), n = length_of(b, 1, p);
        dgm_bitext_group *last = b->groups ? &b->group[b->groups - 1] : NULL;
        if (!last || last->length[0] != m || last->length[1] != n) {
            DGM_TRY(dgm_grow(&b->group, &cap, (size_t)b->groups + 1, sizeof *b->group, err));
            last = &b->group[b->groups++];
            *last = (dgm_bitext_group){.first = p, .length = {(uint16_t)m, (uint16_t)n}};
        }
        last->count++;
    }
    return DGM_OK;
}

static dgm_status sort_pairs(dgm_bitext *b, uint32_t *first, uint32_t *order, dgm_error *err)
{
    sort_by_length(b, 1, NULL, first);
    sort_by_length(b, 0, first, order);
    for (uint32_t k = 0; k < b->pairs; k++) first[k] = b->line[order[k]];
    memcpy(b->line, first, (size_t)b->pairs * sizeof *first);
    // Both sides are sorted by lengths that the other's reordering does not touch.
    DGM_TRY(reorder(b, 0, order, err));
    DGM_TRY(reorder(b, 1, order, err));
    return find_groups(b, err);
}

dgm_status dgm_bitext_finish(dgm_bitext *b, dgm_error *err)
{
    DGM_FAIL_IF(
        b->pairs == 0, err, DGM_ERR_TEXT,
        "no sentence pair to work with: of %u lines %u are empty and %u longer than %d tokens",
        b->lines, b->empty, b->too_long, b->max_length);
    for (int s = 0; s < 2; s++) DGM_TRY(renumber(&b->side[s], err));
    uint32_t *first = dgm_malloc((size_t)b->pairs * sizeof *first);
    uint32_t *order = dgm_malloc((size_t)b->pairs * sizeof *order);
    b->pair = dgm_malloc((size_t)b->lines * sizeof *b->pair);
    dgm_status st = first && order && b->pair ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) st = sort_pairs(b, first, order, err);
    dgm_free(first);
    dgm_free(order);
    DGM_TRY(st);
    for (uint32_t i = 0; i < b->lines; i++) b->pair[i] = DGM_BITEXT_NO_PAIR;
    for (uint32_t p = 0; p < b->pairs; p++) b->pair[b->line[p]] = p;
    return DGM_OK;
}
