// SPDX-License-Identifier: MIT
// Phrase tables: the file's layout, look-ups; see phrase_table.h.
//
//   "DGMPT\0\1\0"  bits features max_length has_links sources options matrices 0 (u32 each)
//   source_words target_words (u64), per side: words (u64) bytes slot_count (u64 each)
//   then, each at a multiple of 8 bytes: per side at, slots, spellings; source_at, source_word,
//   option_at, word_at, target_word, length, links, matrix, codebook, score
#include "phrase/phrase_table.h"

#include <string.h>

#include "base/bytes.h"
#include "base/lower_bound.h"
#include "base/mem.h"
#include "lm/lm.h"
#include "phrase/phrase_layout.h"

// ---- words ------------------------------------------------------------------------------------

dgm_text dgm_phrase_table_spell(const dgm_phrase_table *t, int side, uint32_t word)
{
    const dgm_table_words *w = &t->words[side];
    if (word >= w->count) return (dgm_text){"", 0};
    uint64_t begin = w->at[word], end = w->at[word + 1];
    if (end > w->bytes || begin > end) return (dgm_text){"", 0}; // a damaged file
    return (dgm_text){w->spellings + begin, (size_t)(end - begin)};
}

uint32_t dgm_phrase_table_word(const dgm_phrase_table *t, int side, dgm_text word)
{
    const dgm_table_words *w = &t->words[side];
    uint64_t mask = w->slot_count - 1, i = dgm_lm_hash(word) & mask;
    for (uint64_t tries = 0; tries <= mask && w->slots[i] != 0; tries++, i = (i + 1) & mask) {
        uint32_t n = w->slots[i] - 1;
        if (n < w->count && dgm_text_equal(dgm_phrase_table_spell(t, side, n), word)) return n;
    }
    return DGM_TABLE_NO_WORD;
}

// ---- phrases ----------------------------------------------------------------------------------

// Negative, zero, positive: source k comes before, with, behind the phrase.
static int compare_source(const dgm_phrase_table *t, uint32_t k, const uint32_t *words, int length)
{
    uint32_t begin = t->source_at[k], end = t->source_at[k + 1];
    if (end > t->source_words) end = (uint32_t)t->source_words; // a damaged file
    int i = 0;
    for (; i < length && begin < end; i++, begin++) {
        uint32_t w = t->source_word[begin];
        if (w != words[i]) return w < words[i] ? -1 : 1;
    }
    return begin < end ? 1 : i < length ? -1 : 0;
}

uint32_t dgm_phrase_table_find(const dgm_phrase_table *t, const uint32_t *words, int length,
                               uint32_t *first, uint64_t *word_at)
{
    *first = 0;
    *word_at = 0;
    if (length < 1 || length > t->max_length) return 0;
    uint32_t at;
    DGM_LOWER_BOUND(uint32_t, at, 0, t->sources, compare_source(t, at, words, length) < 0);
    if (at == t->sources || compare_source(t, at, words, length) != 0) return 0;
    uint32_t begin = t->option_at[at], end = t->option_at[at + 1];
    if (end > t->options) end = t->options;
    *first = begin;
    *word_at = t->word_at[at];
    return begin < end ? end - begin : 0;
}

static float score_at(const dgm_phrase_table *t, uint32_t i, int k)
{
    size_t at = (size_t)i * (size_t)t->features + (size_t)k;
    if (t->bits == 0) return ((const float *)t->score)[at];
    uint32_t code =
        t->bits == 8 ? ((const uint8_t *)t->score)[at] : ((const uint16_t *)t->score)[at];
    return t->codebook[((size_t)k << t->bits) + code];
}

void dgm_phrase_table_option(const dgm_phrase_table *t, uint32_t i, uint64_t *word_at,
                             dgm_table_option *out)
{
    int length = t->length[i];
    if (length > DGM_PHRASE_LENGTH_MAX) length = DGM_PHRASE_LENGTH_MAX;
    if (*word_at > t->target_words || t->target_words - *word_at < (uint64_t)length) length = 0;
    out->target = length ? t->target_word + *word_at : t->target_word;
    out->length = length;
    *word_at += (uint64_t)length;
    out->links = t->links[i] < t->matrices ? t->matrix[t->links[i]] : 0;
    for (int k = 0; k < DGM_TABLE_FEATURES; k++)
        out->score[k] = k < t->features ? score_at(t, i, k) : 1.0f / 3;
}

// ---- files ------------------------------------------------------------------------------------

static const void *section(dgm_reader *r, uint64_t count, uint64_t size)
{
    uint64_t bytes;
    size_t pad = (8 - r->pos % 8) % 8;
    if (pad && !dgm_read_bytes(r, pad)) return NULL;
    if (!dgm_mul_size(count, size, &bytes)) r->bad = true;
    return r->bad ? NULL : dgm_read_bytes(r, bytes);
}

static dgm_status read_header(dgm_phrase_table *t, dgm_reader *r, dgm_error *err)
{
    const void *magic = dgm_read_bytes(r, sizeof dgm_phrase_magic);
    DGM_FAIL_IF(!magic || memcmp(magic, dgm_phrase_magic, sizeof dgm_phrase_magic) != 0, err,
                DGM_ERR_FORMAT, "not a phrase table of this version");
    uint32_t bits = dgm_read_u32(r), features = dgm_read_u32(r), longest = dgm_read_u32(r);
    t->has_links = dgm_read_u32(r) != 0;
    t->sources = dgm_read_u32(r);
    t->options = dgm_read_u32(r);
    t->matrices = dgm_read_u32(r);
    dgm_read_u32(r);
    t->source_words = dgm_read_u64(r);
    t->target_words = dgm_read_u64(r);
    bool bad = false;
    for (int s = 0; s < 2; s++) {
        dgm_table_words *w = &t->words[s];
        uint64_t count = dgm_read_u64(r);
        w->bytes = dgm_read_u64(r);
        w->slot_count = dgm_read_u64(r);
        w->count = (uint32_t)count;
        bad = bad || count >= UINT32_MAX || w->slot_count == 0 ||
              (w->slot_count & (w->slot_count - 1)) != 0;
    }
    DGM_FAIL_IF(r->bad || bad || (bits != 0 && bits != 8 && bits != 16) ||
                    (features != DGM_PHRASE_SCORES && features != DGM_TABLE_FEATURES) ||
                    longest > DGM_PHRASE_LENGTH_MAX || t->sources == UINT32_MAX,
                err, DGM_ERR_FORMAT, "the header is damaged");
    t->bits = (int)bits;
    t->features = (int)features;
    t->max_length = (int)longest;
    return DGM_OK;
}

static dgm_status read_layout(dgm_phrase_table *t, const void *data, size_t size, dgm_error *err)
{
    dgm_reader r = dgm_reader_over(data, size);
    DGM_TRY(read_header(t, &r, err));
    for (int s = 0; s < 2; s++) {
        dgm_table_words *w = &t->words[s];
        w->at = section(&r, (uint64_t)w->count + 1, sizeof *w->at);
        w->slots = section(&r, w->slot_count, sizeof *w->slots);
        w->spellings = section(&r, w->bytes, 1);
    }
    uint64_t ends = (uint64_t)t->sources + 1;
    t->source_at = section(&r, ends, sizeof *t->source_at);
    t->source_word = section(&r, t->source_words, sizeof *t->source_word);
    t->option_at = section(&r, ends, sizeof *t->option_at);
    t->word_at = section(&r, ends, sizeof *t->word_at);
    t->target_word = section(&r, t->target_words, sizeof *t->target_word);
    t->length = section(&r, t->options, 1);
    t->links = section(&r, t->options, sizeof *t->links);
    t->matrix = section(&r, t->matrices, sizeof *t->matrix);
    if (t->bits) t->codebook = section(&r, (uint64_t)t->features << t->bits, sizeof *t->codebook);
    t->score = section(&r, (uint64_t)t->options * (uint64_t)t->features,
                       t->bits ? (uint64_t)t->bits / 8 : sizeof(float));
    DGM_FAIL_IF(r.bad, err, DGM_ERR_FORMAT, "the file is shorter than its header says");
    t->data = data;
    t->size = size;
    return DGM_OK;
}

dgm_status dgm_phrase_table_open_bytes(dgm_phrase_table **out, const void *data, size_t size,
                                       dgm_error *err)
{
    *out = NULL;
    dgm_phrase_table *t = dgm_calloc(1, sizeof *t);
    if (!t) return dgm_no_memory(err);
    dgm_status st = read_layout(t, data, size, err);
    if (st != DGM_OK) dgm_phrase_table_close(&t);
    *out = t;
    return st;
}

dgm_status dgm_phrase_table_open(dgm_phrase_table **out, const char *path, const char *reordering,
                                 dgm_error *err)
{
    *out = NULL;
    dgm_mapfile file;
    DGM_TRY(dgm_mapfile_open(&file, path, err));
    bool compact = file.size >= 5 && memcmp(file.data, dgm_phrase_magic, 5) == 0;
    if (!compact) {
        dgm_mapfile_close(&file);
        DGM_FAIL_IF(dgm_file_is_special(path), err, DGM_ERR_IO,
                    "%s is no file: only compact tables are read through a pipe", path);
        return dgm_phrase_table_read(out, path, reordering, 0, err);
    }
    dgm_status st = DGM_OK;
    if (reordering)
        st = dgm_fail(err, DGM_ERR_ARGUMENT,
                      "a compact table has its orientations inside: no "
                      "reordering table goes with it");
    if (st == DGM_OK) st = dgm_phrase_table_open_bytes(out, file.data, file.size, err);
    if (st == DGM_OK) {
        (*out)->file = file;
    } else {
        dgm_mapfile_close(&file);
        dgm_error_prefix(err, "%s", path);
    }
    return st;
}

void dgm_phrase_table_close(dgm_phrase_table **p)
{
    dgm_phrase_table *t = *p;
    if (!t) return;
    dgm_free(t->owned);
    dgm_mapfile_close(&t->file);
    dgm_free(t);
    *p = NULL;
}

dgm_status dgm_phrase_table_save(const dgm_phrase_table *t, const char *path, dgm_error *err)
{
    return dgm_file_write(path, t->data, t->size, err);
}
