// SPDX-License-Identifier: MIT
// Phrase pairs of a sentence pair; see extract.h.
//
// For every source span the linked target words have a least and a greatest position; between them
// every link must come back into the source span, which low/high of each target word tell. What is
// left is to widen the target span over words without links. So a sentence costs about
// m * max_length * max_length steps, whatever its alignment.
#include "phrase/extract.h"

#include <string.h>

#include "base/mem.h"

enum { NONE = -1 };

struct dgm_extractor {
    int max_length, m, n;
    uint8_t *cell; // [m * n] linked?
    size_t cell_cap;
    int *source_low, *source_high; // [m] linked target positions; NONE without links
    int *target_low, *target_high; // [n] linked source positions
    size_t source_cap[2], target_cap[2];
    dgm_phrase_span *span;
    size_t span_count, span_cap;
};

dgm_status dgm_extractor_open(dgm_extractor **out, int max_length, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(max_length < 1 || max_length > DGM_PHRASE_LENGTH_MAX, err, DGM_ERR_ARGUMENT,
                "the longest phrase must have between 1 and %d words, not %d",
                DGM_PHRASE_LENGTH_MAX, max_length);
    dgm_extractor *x = dgm_calloc(1, sizeof *x);
    if (!x) return dgm_no_memory(err);
    x->max_length = max_length;
    *out = x;
    return DGM_OK;
}

void dgm_extractor_close(dgm_extractor **out)
{
    dgm_extractor *x = *out;
    if (!x) return;
    dgm_free(x->cell);
    dgm_free(x->source_low);
    dgm_free(x->source_high);
    dgm_free(x->target_low);
    dgm_free(x->target_high);
    dgm_free(x->span);
    dgm_free(x);
    *out = NULL;
}

static dgm_status prepare(dgm_extractor *x, const dgm_align_link *links, size_t count,
                          dgm_error *err)
{
    size_t m = (size_t)x->m, n = (size_t)x->n;
    DGM_TRY(dgm_grow(&x->cell, &x->cell_cap, m * n + 1, 1, err));
    DGM_TRY(dgm_grow(&x->source_low, &x->source_cap[0], m + 1, sizeof(int), err));
    DGM_TRY(dgm_grow(&x->source_high, &x->source_cap[1], m + 1, sizeof(int), err));
    DGM_TRY(dgm_grow(&x->target_low, &x->target_cap[0], n + 1, sizeof(int), err));
    DGM_TRY(dgm_grow(&x->target_high, &x->target_cap[1], n + 1, sizeof(int), err));
    memset(x->cell, 0, m * n);
    for (size_t i = 0; i < m; i++) x->source_low[i] = x->source_high[i] = NONE;
    for (size_t j = 0; j < n; j++) x->target_low[j] = x->target_high[j] = NONE;
    for (size_t k = 0; k < count; k++) {
        int i = links[k].source, j = links[k].target;
        DGM_FAIL_IF(i >= x->m || j >= x->n, err, DGM_ERR_TEXT,
                    "link %d-%d lies outside a pair of %d and %d words", i, j, x->m, x->n);
        x->cell[(size_t)i * n + (size_t)j] = 1;
        if (x->source_low[i] == NONE || j < x->source_low[i]) x->source_low[i] = j;
        if (j > x->source_high[i]) x->source_high[i] = j;
        if (x->target_low[j] == NONE || i < x->target_low[j]) x->target_low[j] = i;
        if (i > x->target_high[j]) x->target_high[j] = i;
    }
    return DGM_OK;
}

// The sentence's beginning and end are linked with each other, what else is outside is not.
static bool linked(const dgm_extractor *x, int i, int j)
{
    if (i == -1 && j == -1) return true;
    if (i == x->m && j == x->n) return true;
    if (i < 0 || j < 0 || i >= x->m || j >= x->n) return false;
    return x->cell[(size_t)i * (size_t)x->n + (size_t)j] != 0;
}

static uint8_t orientation(bool monotone, bool swapped)
{
    if (monotone != swapped) return monotone ? DGM_MONOTONE : DGM_SWAPPED;
    return DGM_DISCONTINUOUS;
}

static dgm_status emit(dgm_extractor *x, int i1, int i2, int j1, int j2, dgm_error *err)
{
    DGM_TRY(dgm_grow(&x->span, &x->span_cap, x->span_count + 1, sizeof *x->span, err));
    uint64_t links = 0;
    for (int i = i1; i <= i2; i++)
        for (int j = j1; j <= j2; j++)
            if (linked(x, i, j)) links |= DGM_PHRASE_LINK(i - i1, j - j1);
    x->span[x->span_count++] = (dgm_phrase_span){
        .source = (uint16_t)i1,
        .source_length = (uint16_t)(i2 - i1 + 1),
        .target = (uint16_t)j1,
        .target_length = (uint16_t)(j2 - j1 + 1),
        .previous = orientation(linked(x, i1 - 1, j1 - 1), linked(x, i2 + 1, j1 - 1)),
        .next = orientation(linked(x, i2 + 1, j2 + 1), linked(x, i1 - 1, j2 + 1)),
        .links = links,
    };
    return DGM_OK;
}

// Target words j1 .. j2 are what the source span i1 .. i2 is linked with: the pairs they make.
static dgm_status widen(dgm_extractor *x, int i1, int i2, int j1, int j2, dgm_error *err)
{
    int most = x->max_length;
    if (j2 - j1 >= most) return DGM_OK;
    for (int j = j1; j <= j2; j++)
        if (x->target_low[j] != NONE && (x->target_low[j] < i1 || x->target_high[j] > i2))
            return DGM_OK;
    int first = j1;
    while (first > 0 && x->target_low[first - 1] == NONE && j2 - first + 1 < most) first--;
    for (int from = first; from <= j1; from++)
        for (int to = j2; to < x->n && to - from < most; to++) {
            if (to > j2 && x->target_low[to] != NONE) break;
            DGM_TRY(emit(x, i1, i2, from, to, err));
        }
    return DGM_OK;
}

dgm_status dgm_extract(dgm_extractor *x, const dgm_align_link *links, size_t count, int m, int n,
                       const dgm_phrase_span **spans, size_t *span_count, dgm_error *err)
{
    *spans = NULL;
    *span_count = 0;
    DGM_FAIL_IF(m < 0 || n < 0 || m > UINT16_MAX || n > UINT16_MAX, err, DGM_ERR_ARGUMENT,
                "a sentence of %d words; at most %d are allowed", m > n ? m : n, UINT16_MAX);
    x->m = m;
    x->n = n;
    x->span_count = 0;
    DGM_TRY(prepare(x, links, count, err));
    for (int i1 = 0; i1 < m; i1++) {
        int low = NONE, high = NONE;
        for (int i2 = i1; i2 < m && i2 - i1 < x->max_length; i2++) {
            if (x->source_low[i2] != NONE) {
                if (low == NONE || x->source_low[i2] < low) low = x->source_low[i2];
                if (x->source_high[i2] > high) high = x->source_high[i2];
            }
            if (low != NONE) DGM_TRY(widen(x, i1, i2, low, high, err));
        }
    }
    *spans = x->span;
    *span_count = x->span_count;
    return DGM_OK;
}
