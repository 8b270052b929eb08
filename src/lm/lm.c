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

uint32_t dgm_lm_hash(dgm_text t)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t i = 0; i < t.size; i++) h = (h ^ (uint8_t)t.data[i]) * 0x100000001b3u;
    return (uint32_t)(h ^ h >> 32);
}

dgm_text dgm_lm_spell(const dgm_lm *lm, uint32_t word)
{
    if (word >= lm->words) return (dgm_text){"", 0};
    uint64_t begin = lm->spell_at[word], end = lm->spell_at[word + 1];
    if (end > lm->spelling_bytes || begin > end) return (dgm_text){"", 0}; // a damaged file
    return (dgm_text){lm->spellings + begin, end - begin};
}

uint32_t dgm_lm_word(const dgm_lm *lm, dgm_text word)
{
    uint64_t mask = lm->slot_count - 1, i = dgm_lm_hash(word) & mask;
    for (uint64_t tries = 0; tries <= mask && lm->slots[i] != 0; tries++, i = (i + 1) & mask) {
        uint32_t w = lm->slots[i] - 1;
        if (!dgm_text_equal(dgm_lm_spell(lm, w), word)) continue;
        return w >= lm->words || w == lm->bos || w == lm->eos ? lm->unk : w;
    }
    return lm->unk;
}

// ---- files ------------------------------------------------------------------------------------

// Room for `size` bytes at the next multiple of 8; NULL when they do not fit.
static const void *section(dgm_reader *r, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    size_t pad = (8 - r->pos % 8) % 8;
    if (!dgm_read_bytes(r, pad) && pad) return NULL;
    if (!dgm_mul_size(count, size, &bytes)) r->bad = true;
    return r->bad ? NULL : dgm_read_bytes(r, bytes);
}

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
                        l->prob_bits != number_bits ||
                        l->backoff_bits != (top ? 0 : number_bits) || l->begin_bits > 32 ||
                        (n == 1 ? l->word_bits != 0 || l->count != lm->words : l->word_bits == 0),
                    err, DGM_ERR_FORMAT, "the header of order %d is damaged", n);
    }
    for (int n = 1; n <= lm->order; n++) {
        dgm_lm_level *l = &lm->level[n];
        if (lm->bits && n > 1) {
            l->prob_table = section(r, (uint64_t)1 << lm->bits, sizeof(float));
            if (n < lm->order)
                l->backoff_table = section(r, (uint64_t)1 << lm->bits, sizeof(float));
        }
        l->nodes = section(r, dgm_lm_level_bytes(l), 1);
    }
    return DGM_OK;
}

static dgm_status read_layout(dgm_lm *lm, const void *data, size_t size, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(data, size);
    const void *magic = dgm_read_bytes(&r, sizeof dgm_lm_magic);
    DGM_FAIL_IF(!magic || memcmp(magic, dgm_lm_magic, sizeof dgm_lm_magic) != 0, err,
                DGM_ERR_FORMAT, "not a language model of this version");
    uint32_t order = dgm_read_u32(&r), bits = dgm_read_u32(&r);
    lm->words = dgm_read_u32(&r);
    lm->unk = dgm_read_u32(&r);
    lm->bos = dgm_read_u32(&r);
    lm->eos = dgm_read_u32(&r);
    lm->slot_count = dgm_read_u64(&r);
    lm->spelling_bytes = dgm_read_u64(&r);
    DGM_FAIL_IF(r.bad || order < 1 || order > DGM_LM_ORDER_MAX || bits > DGM_LM_BITS_MAX ||
                    lm->unk >= lm->words || lm->bos >= lm->words || lm->eos >= lm->words ||
                    lm->slot_count == 0 || (lm->slot_count & (lm->slot_count - 1)) != 0,
                err, DGM_ERR_FORMAT, "the header is damaged");
    lm->order = (int)order;
    lm->bits = (int)bits;
    DGM_TRY(read_levels(lm, &r, err));
    lm->spell_at = section(&r, (uint64_t)lm->words + 1, sizeof *lm->spell_at);
    lm->slots = section(&r, lm->slot_count, sizeof *lm->slots);
    lm->spellings = section(&r, lm->spelling_bytes, 1);
    DGM_FAIL_IF(r.bad, err, DGM_ERR_FORMAT, "the file is shorter than its header says");
    lm->data = data;
    lm->size = size;
    return DGM_OK;
}

dgm_status dgm_lm_open_bytes(dgm_lm **out, const void *data, size_t size, dgm_error *err)
{
    *out = NULL;
    dgm_lm *lm = dgm_calloc(1, sizeof *lm);
    if (!lm) return dgm_no_memory(err);
    dgm_status st = read_layout(lm, data, size, err);
    if (st != DGM_OK) dgm_lm_close(&lm);
    *out = lm;
    return st;
}

dgm_status dgm_lm_open(dgm_lm **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_mapfile file;
    DGM_TRY(dgm_mapfile_open(&file, path, err));
    bool compact = file.size >= 5 && memcmp(file.data, dgm_lm_magic, 5) == 0;
    if (!compact) {
        dgm_mapfile_close(&file);
        DGM_FAIL_IF(dgm_file_is_special(path), err, DGM_ERR_IO,
                    "%s is no file: only compact models are read through a pipe", path);
        return dgm_lm_read_arpa(out, path, 0, err);
    }
    dgm_status st = dgm_lm_open_bytes(out, file.data, file.size, err);
    if (st == DGM_OK) {
        (*out)->file = file;
    } else {
        dgm_mapfile_close(&file);
        dgm_error_prefix(err, "%s", path);
    }
    return st;
}

void dgm_lm_close(dgm_lm **p)
{
    dgm_lm *lm = *p;
    if (!lm) return;
    dgm_free(lm->owned);
    dgm_mapfile_close(&lm->file);
    dgm_free(lm);
    *p = NULL;
}

dgm_status dgm_lm_save(const dgm_lm *lm, const char *path, dgm_error *err)
{
    return dgm_file_write(path, lm->data, lm->size, err);
}
