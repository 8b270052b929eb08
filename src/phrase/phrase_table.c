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
#include "phrase/phrase_layout.h"

// ---- words ------------------------------------------------------------------------------------

dgm_text dgm_phrase_table_spell(const dgm_phrase_table *t, int side, uint32_t word)
{
    return dgm_spellings_get(&t->words[side], word);
}

uint32_t dgm_phrase_table_word(const dgm_phrase_table *t, int side, dgm_text word)
{
    return dgm_spellings_find(&t->words[side], word);
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

static dgm_status read_header(dgm_phrase_table *t, dgm_reader *r, dgm_error *err)
{
    DGM_TRY(dgm_compact_begin(&t->bytes, dgm_phrase_magic, "phrase table", r, err));
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
        dgm_spellings *w = &t->words[s];
        uint64_t count = dgm_read_u64(r);
        w->bytes = dgm_read_u64(r);
        w->slot_count = dgm_read_u64(r);
        w->count = (uint32_t)count;
        bad = bad || count >= UINT32_MAX || !dgm_spellings_fit(w);
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

static dgm_status read_layout(void *object, dgm_error *err)
{
    dgm_phrase_table *t = object;
    dgm_reader r;
    DGM_TRY(read_header(t, &r, err));
    for (int s = 0; s < 2; s++) dgm_spellings_read(&t->words[s], &r);
    uint64_t ends = (uint64_t)t->sources + 1;
    t->source_at = dgm_section(&r, ends, sizeof *t->source_at);
    t->source_word = dgm_section(&r, t->source_words, sizeof *t->source_word);
    t->option_at = dgm_section(&r, ends, sizeof *t->option_at);
    t->word_at = dgm_section(&r, ends, sizeof *t->word_at);
    t->target_word = dgm_section(&r, t->target_words, sizeof *t->target_word);
    t->length = dgm_section(&r, t->options, 1);
    t->links = dgm_section(&r, t->options, sizeof *t->links);
    t->matrix = dgm_section(&r, t->matrices, sizeof *t->matrix);
    if (t->bits)
        t->codebook = dgm_section(&r, (uint64_t)t->features << t->bits, sizeof *t->codebook);
    t->score = dgm_section(&r, (uint64_t)t->options * (uint64_t)t->features,
                           t->bits ? (uint64_t)t->bits / 8 : sizeof(float));
    return dgm_compact_end(&r, err);
}

dgm_status dgm_phrase_table_open_bytes(dgm_phrase_table **out, const void *data, size_t size,
                                       dgm_error *err)
{
    return dgm_compact_read(out, sizeof **out, &(dgm_compact){.data = data, .size = size},
                            read_layout, err);
}

dgm_status dgm_phrase_table_open(dgm_phrase_table **out, const char *path, const char *reordering,
                                 dgm_error *err)
{
    *out = NULL;
    dgm_compact bytes;
    bool compact;
    DGM_TRY(dgm_compact_map(&bytes, path, dgm_phrase_magic, "tables", &compact, err));
    if (!compact) return dgm_phrase_table_read(out, path, reordering, 0, err);
    const dgm_status st =
        reordering ? dgm_fail(err, DGM_ERR_ARGUMENT,
                              "a compact table has its orientations inside: no reordering table "
                              "goes with it")
                   : dgm_compact_read(out, sizeof **out, &bytes, read_layout, err);
    if (st != DGM_OK) {
        dgm_compact_close(&bytes);
        dgm_error_prefix(err, "%s", path);
    }
    return st;
}

void dgm_phrase_table_close(dgm_phrase_table **p)
{
    if (!*p) return;
    dgm_compact_close(&(*p)->bytes);
    dgm_free(*p);
    *p = NULL;
}

dgm_status dgm_phrase_table_save(const dgm_phrase_table *t, const char *path, dgm_error *err)
{
    return dgm_compact_save(&t->bytes, path, err);
}
