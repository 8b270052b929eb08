// SPDX-License-Identifier: MIT
// N-gram models: the file's layout, look-ups; see lm.h.
//
//   "DGMLM\0\1\0"  order bits words unk bos eos (u32 each)  slot_count spelling_bytes (u64 each)
//   per order: count (u64) word_bits prob_bits backoff_bits begin_bits (u32 each)
//   then, each at a multiple of 8 bytes: tables and nodes of every order (tables of 2^bits floats
//   where a field is quantised; one node more than there are, for the last `begin`; 8 bytes of
//   zeros), spell_at, slots, spellings
#include "lm/lm.h"

#include <string.h>

#include "base/bytes.h"
#include "base/lower_bound.h"
#include "base/mem.h"
#include "lm/lm_layout.h"

// ---- nodes ------------------------------------------------------------------------------------

// n bits (at most 32) from bit `at` on. Eight bytes can be read wherever a node begins.
static inline uint32_t get_bits(const uint8_t *data, uint64_t at, uint32_t n)
{
    uint64_t v;
    memcpy(&v, data + (at >> 3), sizeof v);
    return (uint32_t)(v >> (at & 7) & (((uint64_t)1 << n) - 1));
}

static inline uint64_t node_at(const dgm_lm_level *l, uint64_t i)
{
    return i * dgm_lm_node_bits(l);
}

static inline float number(const dgm_lm_level *l, uint64_t at, uint32_t bits, const float *table)
{
    uint32_t v = get_bits(l->nodes, at, bits);
    if (table) return table[v];
    float f;
    memcpy(&f, &v, sizeof f);
    return f;
}

float dgm_lm_prob(const dgm_lm *lm, int n, uint64_t i)
{
    const dgm_lm_level *l = &lm->level[n];
    return number(l, node_at(l, i) + l->word_bits, l->prob_bits, l->prob_table);
}

float dgm_lm_backoff(const dgm_lm *lm, int n, uint64_t i)
{
    const dgm_lm_level *l = &lm->level[n];
    uint64_t at = node_at(l, i) + l->word_bits + l->prob_bits;
    return number(l, at, l->backoff_bits, l->backoff_table);
}

uint32_t dgm_lm_node_word(const dgm_lm *lm, int n, uint64_t i)
{
    const dgm_lm_level *l = &lm->level[n];
    return n == 1 ? (uint32_t)i : get_bits(l->nodes, node_at(l, i), l->word_bits);
}

void dgm_lm_children(const dgm_lm *lm, int n, uint64_t i, uint64_t *begin, uint64_t *end)
{
    const dgm_lm_level *l = &lm->level[n];
    uint64_t at = node_at(l, i) + l->word_bits + l->prob_bits + l->backoff_bits;
    *begin = get_bits(l->nodes, at, l->begin_bits);
    *end = get_bits(l->nodes, at + dgm_lm_node_bits(l), l->begin_bits);
    if (*end > lm->level[n + 1].count) *end = lm->level[n + 1].count; // a damaged file
    if (*begin > *end) *begin = *end;
}

// The child of node i of order n with this word, or DGM_LM_NONE.
static uint32_t find_child(const dgm_lm *lm, int n, uint32_t i, uint32_t word)
{
    uint64_t begin, end;
    dgm_lm_children(lm, n, i, &begin, &end);
    uint64_t at;
    DGM_LOWER_BOUND(uint64_t, at, begin, end, dgm_lm_node_word(lm, n + 1, at) < word);
    return at < end && dgm_lm_node_word(lm, n + 1, at) == word ? (uint32_t)at : DGM_LM_NONE;
}

// ---- asking -----------------------------------------------------------------------------------

void dgm_lm_empty(dgm_lm_state *state)
{
    *state = (dgm_lm_state){0};
}

void dgm_lm_begin(const dgm_lm *lm, dgm_lm_state *state)
{
    dgm_lm_empty(state);
    if (lm->order == 1) return;
    state->length = 1;
    state->node[0] = lm->bos;
}

double dgm_lm_step(const dgm_lm *lm, const dgm_lm_state *state, uint32_t word, dgm_lm_state *next,
                   int *matched)
{
    dgm_lm_state out = {0};
    if (word >= lm->words) word = lm->unk;
    double backoff = 0, result = 0;
    int found = 0;
    for (int k = state->length; k > 0; k--) {
        uint32_t context = state->node[k - 1], child = DGM_LM_NONE;
        if (context != DGM_LM_NONE) {
            child = find_child(lm, k, context, word);
            if (child != DGM_LM_NONE && !found) {
                found = k + 1;
                result = backoff + (double)dgm_lm_prob(lm, k + 1, child);
            }
            if (!found) backoff += (double)dgm_lm_backoff(lm, k, context);
        }
        if (k < lm->order - 1) out.node[k] = child;
    }
    if (!found) {
        found = 1;
        result = backoff + (double)dgm_lm_prob(lm, 1, word);
    }
    if (lm->order > 1) {
        out.node[0] = word;
        out.length = state->length + 1 < lm->order ? state->length + 1 : lm->order - 1;
        while (out.length > 1 && out.node[out.length - 1] == DGM_LM_NONE) out.length--;
    }
    if (next) *next = out;
    if (matched) *matched = found;
    return result;
}

// ---- words ------------------------------------------------------------------------------------

dgm_text dgm_lm_spell(const dgm_lm *lm, uint32_t word)
{
    return dgm_spellings_get(&lm->spellings, word);
}

uint32_t dgm_lm_word(const dgm_lm *lm, dgm_text word)
{
    const uint32_t w = dgm_spellings_find(&lm->spellings, word);
    return w == DGM_NO_SPELLING || w == lm->bos || w == lm->eos ? lm->unk : w;
}

// ---- files ------------------------------------------------------------------------------------

static dgm_status read_levels(dgm_lm *lm, dgm_reader *r, dgm_error *err)
{
    for (int n = 1; n <= lm->order; n++) {
        dgm_lm_level *l = &lm->level[n];
        l->count = dgm_read_u64(r);
        l->word_bits = dgm_read_u32(r);
        l->prob_bits = dgm_read_u32(r);
        l->backoff_bits = dgm_read_u32(r);
        l->begin_bits = dgm_read_u32(r);
        uint32_t number_bits = lm->bits && n > 1 ? (uint32_t)lm->bits : 32;
        bool top = n == lm->order;
        DGM_FAIL_IF(r->bad || l->count >= DGM_LM_NONE || l->word_bits > 32 ||
                        l->prob_bits != number_bits || l->backoff_bits != (top ? 0 : number_bits) ||
                        l->begin_bits > 32 ||
                        (n == 1 ? l->word_bits != 0 || l->count != lm->words : l->word_bits == 0),
                    err, DGM_ERR_FORMAT, "the header of order %d is damaged", n);
    }
    for (int n = 1; n <= lm->order; n++) {
        dgm_lm_level *l = &lm->level[n];
        if (lm->bits && n > 1) {
            l->prob_table = dgm_section(r, (uint64_t)1 << lm->bits, sizeof(float));
            if (n < lm->order)
                l->backoff_table = dgm_section(r, (uint64_t)1 << lm->bits, sizeof(float));
        }
        l->nodes = dgm_section(r, dgm_lm_level_bytes(l), 1);
    }
    return DGM_OK;
}

static dgm_status read_layout(void *object, dgm_error *err)
{
    dgm_lm *lm = object;
    dgm_reader r;
    dgm_spellings *s = &lm->spellings;
    DGM_TRY(dgm_compact_begin(&lm->bytes, dgm_lm_magic, "language model", &r, err));
    uint32_t order = dgm_read_u32(&r), bits = dgm_read_u32(&r);
    lm->words = s->count = dgm_read_u32(&r);
    lm->unk = dgm_read_u32(&r);
    lm->bos = dgm_read_u32(&r);
    lm->eos = dgm_read_u32(&r);
    s->slot_count = dgm_read_u64(&r);
    s->bytes = dgm_read_u64(&r);
    DGM_FAIL_IF(r.bad || order < 1 || order > DGM_LM_ORDER_MAX || bits > DGM_LM_BITS_MAX ||
                    lm->unk >= lm->words || lm->bos >= lm->words || lm->eos >= lm->words ||
                    !dgm_spellings_fit(s),
                err, DGM_ERR_FORMAT, "the header is damaged");
    lm->order = (int)order;
    lm->bits = (int)bits;
    DGM_TRY(read_levels(lm, &r, err));
    dgm_spellings_read(s, &r);
    return dgm_compact_end(&r, err);
}

dgm_status dgm_lm_open_bytes(dgm_lm **out, const void *data, size_t size, dgm_error *err)
{
    return dgm_compact_read(out, sizeof **out, &(dgm_compact){.data = data, .size = size},
                            read_layout, err);
}

dgm_status dgm_lm_open(dgm_lm **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_compact bytes;
    bool compact;
    DGM_TRY(dgm_compact_map(&bytes, path, dgm_lm_magic, "models", &compact, err));
    if (!compact) return dgm_lm_read_arpa(out, path, 0, err);
    const dgm_status st = dgm_compact_read(out, sizeof **out, &bytes, read_layout, err);
    if (st != DGM_OK) {
        dgm_compact_close(&bytes);
        dgm_error_prefix(err, "%s", path);
    }
    return st;
}

void dgm_lm_close(dgm_lm **p)
{
    if (!*p) return;
    dgm_compact_close(&(*p)->bytes);
    dgm_free(*p);
    *p = NULL;
}

dgm_status dgm_lm_save(const dgm_lm *lm, const char *path, dgm_error *err)
{
    return dgm_compact_save(&lm->bytes, path, err);
}
