// SPDX-License-Identifier: MIT The pieces of a text by a model of merges (BPE): of all neighbours that make a piece
// the one with the best score is joined, the first of equal ones, until none is left. Candidates wait in a heap; one
// whose neighbours have changed since is passed over.
//
// Pieces that are not to be used are taken apart again: into what they were put together from when a pair that makes
// them was seen last, anywhere in the text, as the library does it.
#include "base/heap.h"
#include "base/mem.h"
#include "text/spm_private.h"

typedef struct symbol {
    int32_t before, behind; // neighbours; -1: none
    uint32_t begin, size;   // size 0: joined to the one before
    bool whole;             // a user-defined symbol, never joined
} symbol;

typedef struct candidate {
    float score;
    int32_t left, right;
    uint32_t size; // of both, when it was found
} candidate;

typedef struct merging {
    const dgm_spm *spm;
    const char *text;
    size_t size;
    symbol *symbols;
    size_t count, symbols_cap;
    candidate *heap;
    size_t waiting, heap_cap;
    uint32_t
        *left_size; // [pieces] of unused ones: bytes of the left part; NULL: the model has none
    uint32_t *ends; // [size] where parts of an unused piece end, in reverse
    dgm_error *err;
} merging;

static inline bool is_ahead(candidate a, candidate b)
{
    return a.score > b.score || (a.score == b.score && a.left < b.left);
}

static dgm_status push_candidate(merging *m, candidate c)
{
    DGM_TRY(dgm_grow(&m->heap, &m->heap_cap, m->waiting + 1, sizeof *m->heap, m->err));
    DGM_HEAP_UP(m->heap, m->waiting, c, is_ahead);
    m->waiting++;
    return DGM_OK;
}

static candidate pop_candidate(merging *m)
{
    const candidate best = m->heap[0], last = m->heap[--m->waiting];
    DGM_HEAP_DOWN(m->heap, m->waiting, 0, last, is_ahead);
    return best;
}

// The neighbours become a candidate if together they are a piece.
static dgm_status consider(merging *m, int32_t left, int32_t right)
{
    if (left < 0 || right < 0 || m->symbols[left].whole || m->symbols[right].whole) return DGM_OK;
    const symbol *s = &m->symbols[left];
    const uint32_t size = s->size + m->symbols[right].size;
    if (size > m->spm->longest) return DGM_OK;
    uint64_t hash = SPM_HASH_FIRST;
    for (uint32_t i = 0; i < size; i++) hash = dgm_spm_hash(hash, m->text[s->begin + i]);
    const int32_t id = dgm_spm_ordinary(m->spm, &m->spm->index, hash, m->text + s->begin, size);
    if (id < 0) return DGM_OK;
    if (m->spm->pieces[id].type == SPM_UNUSED) m->left_size[id] = s->size;
    return push_candidate(m, (candidate){m->spm->pieces[id].score, left, right, size});
}

static dgm_status split_characters(merging *m)
{
    for (size_t at = 0; at < m->size;) {
        const size_t user = dgm_spm_user_prefix(m->spm, m->text + at, m->size - at);
        const size_t n = user ? user : dgm_spm_step(m->text + at, m->size - at);
        DGM_TRY(dgm_grow(&m->symbols, &m->symbols_cap, m->count + 1, sizeof *m->symbols, m->err));
        m->symbols[m->count] = (symbol){(int32_t)m->count - 1, (int32_t)m->count + 1, (uint32_t)at,
                                        (uint32_t)n, user > 0};
        m->count++;
        at += n;
    }
    m->symbols[m->count - 1].behind = -1;
    return DGM_OK;
}

static dgm_status join(merging *m, const candidate *c)
{
    symbol *left = &m->symbols[c->left], *right = &m->symbols[c->right];
    if (!left->size || !right->size || left->size + right->size != c->size)
        return DGM_OK; // they have changed
    left->size = c->size;
    left->behind = right->behind;
    if (right->behind >= 0) m->symbols[right->behind].before = c->left;
    right->size = 0;
    DGM_TRY(consider(m, left->before, c->left));
    return consider(m, c->left, left->behind);
}

// The piece from begin to end, or what an unused one is made of.
static dgm_status push_piece(merging *m, uint32_t begin, uint32_t end, dgm_spm_parts *parts)
{
    size_t open = 0;
    for (;;) {
        const int32_t found = dgm_spm_find(m->spm, m->text + begin, end - begin),
                      id = found < 0 ? m->spm->unk : found;
        if (m->spm->pieces[id].type == SPM_UNUSED && m->left_size[id]) {
            m->ends[open++] = end;
            end = begin + m->left_size[id];
            continue;
        }
        DGM_TRY(dgm_spm_push(parts, end, id, m->err));
        if (!open) return DGM_OK;
        begin = end;
        end = m->ends[--open];
    }
}

static dgm_status merge_all(merging *m, dgm_spm_parts *parts)
{
    DGM_TRY(split_characters(m));
    for (size_t i = 1; i < m->count; i++) DGM_TRY(consider(m, (int32_t)i - 1, (int32_t)i));
    while (m->waiting) {
        const candidate best = pop_candidate(m);
        DGM_TRY(join(m, &best));
    }
    for (int32_t i = 0; i >= 0; i = m->symbols[i].behind) {
        const symbol *s = &m->symbols[i];
        DGM_TRY(push_piece(m, s->begin, s->begin + s->size, parts));
    }
    return DGM_OK;
}

dgm_status dgm_spm_bpe(const dgm_spm *spm, const char *text, size_t size, dgm_spm_parts *parts,
                       dgm_error *err)
{
    merging m = {.spm = spm, .text = text, .size = size, .err = err};
    dgm_status st = DGM_OK;
    if (spm->has_unused) {
        m.left_size = dgm_calloc((size_t)spm->count, sizeof *m.left_size);
        m.ends = dgm_malloc(size * sizeof *m.ends);
        if (!m.left_size || !m.ends) st = dgm_no_memory(err);
    }
    if (st == DGM_OK) st = merge_all(&m, parts);
    dgm_free(m.symbols);
    dgm_free(m.heap);
    dgm_free(m.left_size);
    dgm_free(m.ends);
    return st;
}
