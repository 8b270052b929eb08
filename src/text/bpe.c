// SPDX-License-Identifier: MIT
// Merging of byte-pair encoding; see bpe.h.
//
// Symbols are numbered spellings; a table leads from a pair of numbers to its rank, and two arrays from
// the rank to the pair and to the merged symbol. The pieces of a word are a doubly linked list in an
// array: a merge takes the right one out, so a pair on the heap is stale when a symbol has changed.
#include "text/bpe.h"

#include <string.h>

#include "base/heap.h"
#include "base/mem.h"
#include "base/pairmap.h"
#include "base/words.h"

typedef struct merge {
    uint32_t left, right, result;
} merge;

struct dgm_bpe {
    dgm_words symbols;
    dgm_pairmap ranks; // of pairs of symbols
    merge *merges;     // [merge_count] by rank
    size_t merge_count;
    uint32_t *made; // [symbols] rank of the first merge that makes it, or NONE
    bool by_rounds;
};

enum { NONE = UINT32_MAX };

// ---- open -----------------------------------------------------------------------------------

static dgm_status add_merge(dgm_bpe *b, dgm_text line, dgm_writer *joined, dgm_error *err)
{
    const char *blank = line.size ? memchr(line.data, ' ', line.size) : NULL;
    const size_t size = blank ? (size_t)(blank - line.data) : 0;
    const dgm_text left = {line.data, size};
    const dgm_text right = {line.data + size + 1, blank ? line.size - size - 1 : 0};
    DGM_FAIL_IF(left.size == 0 || right.size == 0 || memchr(right.data, ' ', right.size), err, DGM_ERR_FORMAT,
                "merge %zu is no pair of symbols with one space between them", b->merge_count + 1);
    merge m;
    DGM_TRY(dgm_words_add(&b->symbols, left, &m.left, err));
    DGM_TRY(dgm_words_add(&b->symbols, right, &m.right, err));
    joined->size = 0;
    dgm_write_bytes(joined, left.data, left.size);
    dgm_write_bytes(joined, right.data, right.size);
    if (joined->failed) return dgm_no_memory(err);
    DGM_TRY(dgm_words_add(&b->symbols, (dgm_text){(const char *)joined->data, joined->size}, &m.result, err));
    uint32_t *rank; // a pair that comes again keeps its first rank
    DGM_TRY(dgm_pairmap_at(&b->ranks, dgm_pairmap_key(m.left, m.right), (uint32_t)b->merge_count, &rank, err));
    b->merges[b->merge_count++] = m;
    return DGM_OK;
}

static dgm_status open_merges(dgm_bpe *b, const dgm_text *merges, size_t count, dgm_writer *joined,
                              dgm_error *err)
{
    b->merges = dgm_calloc(count ? count : 1, sizeof *b->merges);
    if (!b->merges) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) DGM_TRY(add_merge(b, merges[i], joined, err));
    b->made = dgm_malloc((b->symbols.count + 1) * sizeof *b->made);
    if (!b->made) return dgm_no_memory(err);
    for (size_t i = 0; i < b->symbols.count; i++) b->made[i] = NONE;
    for (size_t i = count; i-- > 0;) b->made[b->merges[i].result] = (uint32_t)i;
    return DGM_OK;
}

dgm_status dgm_bpe_open(dgm_bpe **bpe, const dgm_text *merges, size_t count, bool by_rounds,
                        dgm_error *err)
{
    *bpe = NULL;
    DGM_FAIL_IF(count > DGM_BPE_MERGES_MAX, err, DGM_ERR_FORMAT, "%zu merges; at most %d are possible", count,
                DGM_BPE_MERGES_MAX);
    dgm_bpe *b = dgm_calloc(1, sizeof *b);
    if (!b) return dgm_no_memory(err);
    b->by_rounds = by_rounds;
    dgm_writer joined = {0};
    const dgm_status st = open_merges(b, merges, count, &joined, err);
    dgm_writer_free(&joined);
    if (st != DGM_OK) dgm_bpe_close(&b);
    *bpe = b;
    return st;
}

void dgm_bpe_close(dgm_bpe **bpe)
{
    if (!bpe || !*bpe) return;
    dgm_words_free(&(*bpe)->symbols);
    dgm_pairmap_free(&(*bpe)->ranks);
    dgm_free((*bpe)->merges);
    dgm_free((*bpe)->made);
    dgm_free(*bpe);
    *bpe = NULL;
}

// ---- words ----------------------------------------------------------------------------------

void dgm_bpe_word_free(dgm_bpe_word *w)
{
    dgm_writer_free(&w->text);
    dgm_free(w->pieces);
    dgm_free(w->heap);
    dgm_free(w->fresh);
    *w = (dgm_bpe_word){0};
}

void dgm_bpe_word_clear(dgm_bpe_word *w)
{
    w->text.size = 0;
    w->count = 0;
}

dgm_status dgm_bpe_word_add(dgm_bpe_word *w, const void *bytes, size_t size, uint32_t from, uint32_t to,
                            dgm_error *err)
{
    DGM_FAIL_IF(w->text.size + size > INT32_MAX, err, DGM_ERR_TEXT, "word is longer than 2 GiB");
    const uint32_t begin = (uint32_t)w->text.size;
    dgm_write_bytes(&w->text, bytes, size);
    if (w->text.failed) return dgm_no_memory(err);
    DGM_TRY(dgm_grow(&w->pieces, &w->cap, w->count + 1, sizeof *w->pieces, err));
    w->pieces[w->count++] =
        (dgm_bpe_piece){.begin = begin, .end = (uint32_t)w->text.size, .from = from, .to = to};
    return DGM_OK;
}

dgm_text dgm_bpe_spell(const dgm_bpe *bpe, int32_t symbol)
{
    return dgm_words_spell(&bpe->symbols, (uint32_t)symbol);
}

bool dgm_bpe_parts(const dgm_bpe *bpe, int32_t symbol, int32_t *left, int32_t *right)
{
    if (symbol < 0 || bpe->made[symbol] == NONE) return false;
    const merge *m = &bpe->merges[bpe->made[symbol]];
    *left = (int32_t)m->left;
    *right = (int32_t)m->right;
    return true;
}

// ---- merging --------------------------------------------------------------------------------

#define AHEAD(x, y) ((x).rank < (y).rank || ((x).rank == (y).rank && (x).at < (y).at))

typedef struct merging {
    const dgm_bpe *b;
    dgm_bpe_word *w;
    size_t heap_count, fresh_count;
} merging;

// A pair that can be merged joins the heap, or, while a round lasts, those that wait for its end. Both have
// room for two pairs a piece: every merge makes at most two.
static void offer(merging *m, int32_t at, bool wait)
{
    const dgm_bpe_piece *p = m->w->pieces;
    if (at < 0 || p[at].next < 0) return;
    const int32_t left = p[at].symbol, right = p[p[at].next].symbol;
    if (left < 0 || right < 0) return;
    const uint32_t *rank =
        dgm_pairmap_find(&m->b->ranks, dgm_pairmap_key((uint32_t)left, (uint32_t)right));
    if (!rank) return;
    const dgm_bpe_pair pair = {*rank, (uint32_t)at, left, right};
    if (wait) {
        m->w->fresh[m->fresh_count++] = pair;
        return;
    }
    DGM_HEAP_UP(m->w->heap, m->heap_count, pair, AHEAD);
    m->heap_count++;
}

static void apply(merging *m, const dgm_bpe_pair *pair)
{
    dgm_bpe_piece *p = m->w->pieces, *left = &p[pair->at];
    if (left->symbol != pair->left || left->next < 0 || p[left->next].symbol != pair->right) return;
    dgm_bpe_piece *right = &p[left->next];
    left->symbol = (int32_t)m->b->merges[pair->rank].result;
    left->end = right->end;
    left->to = right->to;
    left->next = right->next;
    right->symbol = -1; // pairs that begin here are stale
    if (left->next >= 0) p[left->next].before = (int32_t)pair->at;
    offer(m, left->before, m->b->by_rounds);
    offer(m, (int32_t)pair->at, m->b->by_rounds);
}

static void run(merging *m)
{
    uint32_t round = NONE;
    while (m->heap_count > 0 || m->fresh_count > 0) {
        if (m->fresh_count > 0 && (m->heap_count == 0 || m->w->heap[0].rank != round)) {
            for (size_t i = 0; i < m->fresh_count; i++) {
                DGM_HEAP_UP(m->w->heap, m->heap_count, m->w->fresh[i], AHEAD);
                m->heap_count++;
            }
            m->fresh_count = 0;
        }
        const dgm_bpe_pair top = m->w->heap[0], last = m->w->heap[--m->heap_count];
        DGM_HEAP_DOWN(m->w->heap, m->heap_count, 0, last, AHEAD);
        round = top.rank;
        apply(m, &top);
    }
}

dgm_status dgm_bpe_merge(const dgm_bpe *bpe, dgm_bpe_word *w, dgm_error *err)
{
    merging m = {.b = bpe, .w = w};
    const size_t n = w->count;
    for (size_t i = 0; i < n; i++) {
        dgm_bpe_piece *p = &w->pieces[i];
        p->symbol = (int32_t)dgm_words_find(
            &bpe->symbols, (dgm_text){(const char *)w->text.data + p->begin, p->end - p->begin});
        p->before = (int32_t)i - 1;
        p->next = i + 1 < n ? (int32_t)i + 1 : -1;
    }
    if (n < 2) return DGM_OK;
    DGM_TRY(dgm_grow(&w->heap, &w->heap_cap, 3 * n, sizeof *w->heap, err));
    DGM_TRY(dgm_grow(&w->fresh, &w->fresh_cap, 2 * n, sizeof *w->fresh, err));
    for (size_t i = 0; i + 1 < n; i++) offer(&m, (int32_t)i, false);
    run(&m);
    size_t count = 0;
    for (int32_t i = 0, next; i >= 0; i = next) { // what is left moves together, never to the right
        next = w->pieces[i].next;
        w->pieces[count++] = w->pieces[i];
    }
    w->count = count;
    return DGM_OK;
}
