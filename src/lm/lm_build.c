// SPDX-License-Identifier: MIT
// Builds the bytes of a language model (lm.h, lm.c) from the n-grams of every order, sorted by
// their words. Called by the ARPA reader.
//
// One pass per order: its n-grams run beside those of the order below, which are their contexts, in
// the same order; a node's `begin` is known when its first child comes. Quantised numbers are the
// means of 2^bits groups with equally many values, and a number becomes the nearest mean.
#include <math.h>
#include <string.h>

#include "base/bytes.h"
#include "base/lower_bound.h"
#include "base/mem.h"
#include "base/words.h"
#include "lm/lm_layout.h"
#include "base/extsort.h"

typedef struct builder {
    const dgm_words *words;
    dgm_extsort *const *grams; // [n]: n words, log10 p, backoff (float bits)
    int order, bits;
    dgm_lm_level level[DGM_LM_ORDER_MAX + 1];
    uint64_t nodes_at[DGM_LM_ORDER_MAX + 1]; // in the bytes
    float *table[DGM_LM_ORDER_MAX + 1][2];   // probabilities, backoffs
    dgm_writer out;
} builder;

static uint32_t bits_for(uint64_t largest)
{
    uint32_t n = 1;
    while (n < 32 && largest >> n) n++;
    return n;
}

static float float_of(uint32_t bits)
{
    float f;
    memcpy(&f, &bits, sizeof f);
    return f;
}

// ---- quantising -------------------------------------------------------------------------------

// Float bits in the order of the numbers, and back.
static uint32_t ordered(uint32_t bits)
{
    return bits >> 31 ? ~bits : bits | 0x80000000u;
}

static uint32_t disordered(uint32_t key)
{
    return key >> 31 ? key & 0x7fffffffu : ~key;
}

// The means of groups of the sorted values; neighbours may be equal.
static dgm_status fill_table(float *table, uint32_t size, dgm_extsort *values, uint64_t count,
                             dgm_error *err)
{
    const uint32_t *v;
    uint64_t done = 0;
    float last = 0;
    DGM_TRY(dgm_extsort_rewind(values, err));
    for (uint32_t b = 0; b < size; b++) {
        uint64_t end = count * (b + 1) / size, first = done;
        double sum = 0;
        for (; done < end; done++) {
            DGM_TRY(dgm_extsort_next(values, &v, err));
            sum += (double)float_of(disordered(*v));
        }
        if (done > first) last = (float)(sum / (double)(done - first));
        table[b] = last;
    }
    // Groups without a value, at the beginning: as the first that has one.
    if (count < size && count > 0)
        for (uint32_t b = 0; b < size && count * (b + 1) / size == 0; b++)
            table[b] = table[(size + count - 1) / count - 1];
    return DGM_OK;
}

static dgm_status make_table(builder *b, int n, int which, dgm_error *err)
{
    uint32_t size = 1u << b->bits;
    float *table = dgm_calloc(size, sizeof *table);
    if (!table) return dgm_no_memory(err);
    b->table[n][which] = table;
    dgm_extsort *values = NULL;
    dgm_extsort_options o = {.keys = 1, .width = 1, .memory = SIZE_MAX / 4};
    DGM_TRY(dgm_extsort_open(&values, &o, err));
    dgm_status st = dgm_extsort_rewind(b->grams[n], err);
    for (const uint32_t *record = NULL; st == DGM_OK;) {
        st = dgm_extsort_next(b->grams[n], &record, err);
        if (st != DGM_OK || !record) break;
        uint32_t key = ordered(record[n + which]);
        st = dgm_extsort_push(values, &key, err);
    }
    if (st == DGM_OK) st = fill_table(table, size, values, b->level[n].count, err);
    dgm_extsort_close(&values);
    return st;
}

static uint32_t nearest(const float *table, uint32_t size, float v)
{
    uint32_t at;
    DGM_LOWER_BOUND(uint32_t, at, 0, size, table[at] < v);
    if (at == size) return size - 1;
    if (at > 0 && v - table[at - 1] < table[at] - v) at--;
    return at;
}

// ---- nodes ------------------------------------------------------------------------------------

static void put_bits(uint8_t *data, uint64_t at, uint32_t n, uint32_t value)
{
    if (n == 0) return;
    uint64_t v;
    memcpy(&v, data + (at >> 3), sizeof v);
    v |= (uint64_t)value << (at & 7);
    memcpy(data + (at >> 3), &v, sizeof v);
}

static uint32_t coded(const builder *b, int n, int which, uint32_t number)
{
    const float *table = b->table[n][which];
    return table ? nearest(table, 1u << b->bits, float_of(number)) : number;
}

static void put_node(builder *b, int n, uint64_t i, const uint32_t *record)
{
    const dgm_lm_level *l = &b->level[n];
    uint8_t *nodes = b->out.data + b->nodes_at[n];
    uint64_t at = i * dgm_lm_node_bits(l);
    put_bits(nodes, at, l->word_bits, record[n - 1]);
    at += l->word_bits;
    put_bits(nodes, at, l->prob_bits, coded(b, n, 0, record[n]));
    at += l->prob_bits;
    if (l->backoff_bits) put_bits(nodes, at, l->backoff_bits, coded(b, n, 1, record[n + 1]));
}

static void put_begin(builder *b, int n, uint64_t i, uint64_t begin)
{
    const dgm_lm_level *l = &b->level[n];
    uint64_t at = i * dgm_lm_node_bits(l) + l->word_bits + l->prob_bits + l->backoff_bits;
    put_bits(b->out.data + b->nodes_at[n], at, l->begin_bits, (uint32_t)begin);
}

static dgm_status fail_gram(const builder *b, int n, const uint32_t *record, const char *what,
                            dgm_error *err)
{
    dgm_writer text = {0};
    for (int k = 0; k < n; k++) {
        dgm_text s = dgm_words_spell(b->words, record[k]);
        dgm_write_format(&text, "%s%.*s", k ? " " : "", (int)s.size, s.data);
    }
    dgm_write_u8(&text, 0);
    dgm_status st = text.failed ? dgm_no_memory(err)
                                : dgm_fail(err, DGM_ERR_FORMAT, "the %d-gram '%.200s' %s", n,
                                           (const char *)text.data, what);
    dgm_writer_free(&text);
    return st;
}

static dgm_status fill_level(builder *b, int n, dgm_error *err)
{
    const uint32_t *record, *context = NULL;
    uint32_t last[DGM_LM_ORDER_MAX];
    uint64_t i = 0, contexts = 0; // contexts whose begin is known
    DGM_TRY(dgm_extsort_rewind(b->grams[n], err));
    if (n > 1) DGM_TRY(dgm_extsort_rewind(b->grams[n - 1], err));
    for (;; i++) {
        DGM_TRY(dgm_extsort_next(b->grams[n], &record, err));
        if (!record) break;
        if (i > 0 && dgm_extsort_compare(last, record, n) == 0)
            return fail_gram(b, n, record, "is there twice", err);
        memcpy(last, record, (size_t)n * sizeof *last);
        put_node(b, n, i, record);
        while (n > 1 && (!context || dgm_extsort_compare(context, record, n - 1) < 0)) {
            DGM_TRY(dgm_extsort_next(b->grams[n - 1], &context, err));
            if (!context) break;
            put_begin(b, n - 1, contexts++, i);
        }
        if (n > 1 && (!context || dgm_extsort_compare(context, record, n - 1) != 0))
            return fail_gram(b, n, record, "has a context that is not in the model", err);
    }
    while (n > 1 && contexts <= b->level[n - 1].count) put_begin(b, n - 1, contexts++, i);
    return DGM_OK;
}

// ---- the whole --------------------------------------------------------------------------------

static void write_header(builder *b)
{
    dgm_writer *w = &b->out;
    dgm_write_bytes(w, dgm_lm_magic, sizeof dgm_lm_magic);
    dgm_write_u32(w, (uint32_t)b->order);
    dgm_write_u32(w, (uint32_t)b->bits);
    dgm_write_u32(w, (uint32_t)b->words->count);
    static const char *const special[] = {"<unk>", "<s>", "</s>"};
    for (int i = 0; i < 3; i++)
        dgm_write_u32(w, (uint32_t)dgm_words_find(b->words, dgm_text_of(special[i])));
    dgm_write_u64(w, dgm_spellings_slots(b->words));
    dgm_write_u64(w, b->words->byte_count);
    for (int n = 1; n <= b->order; n++) {
        const dgm_lm_level *l = &b->level[n];
        dgm_write_u64(w, l->count);
        dgm_write_u32(w, l->word_bits);
        dgm_write_u32(w, l->prob_bits);
        dgm_write_u32(w, l->backoff_bits);
        dgm_write_u32(w, l->begin_bits);
    }
}

static dgm_status write_levels(builder *b, dgm_error *err)
{
    for (int n = 1; n <= b->order; n++) {
        for (int which = 0; which < 2; which++) {
            if (!b->table[n][which]) continue;
            dgm_section_begin(&b->out);
            dgm_write_bytes(&b->out, b->table[n][which], sizeof(float) << b->bits);
        }
        dgm_section_begin(&b->out);
        b->nodes_at[n] = b->out.size;
        dgm_write_zeros(&b->out, dgm_lm_level_bytes(&b->level[n]));
    }
    if (b->out.failed) return dgm_no_memory(err);
    for (int n = 1; n <= b->order; n++) DGM_TRY(fill_level(b, n, err));
    return DGM_OK;
}

static dgm_status build(builder *b, const uint64_t *counts, dgm_error *err)
{
    for (int n = 1; n <= b->order; n++) {
        DGM_FAIL_IF(counts[n] >= DGM_LM_NONE, err, DGM_ERR_UNSUPPORTED,
                    "more than 2^32 n-grams of order %d", n);
        uint32_t bits = b->bits && n > 1 ? (uint32_t)b->bits : 32;
        b->level[n] = (dgm_lm_level){
            .count = counts[n],
            .word_bits = n > 1 ? bits_for(b->words->count - 1) : 0,
            .prob_bits = bits,
            .backoff_bits = n < b->order ? bits : 0,
            .begin_bits = n < b->order ? bits_for(counts[n + 1]) : 0,
        };
        if (b->bits && n > 1) DGM_TRY(make_table(b, n, 0, err));
        if (b->bits && n > 1 && n < b->order) DGM_TRY(make_table(b, n, 1, err));
    }
    write_header(b);
    DGM_TRY(write_levels(b, err));
    return dgm_spellings_write(b->words, NULL, &b->out, err);
}

dgm_status dgm_lm_build(dgm_lm **lm, const dgm_words *words, dgm_extsort *const *grams, int order,
                        const uint64_t *counts, int bits, dgm_error *err)
{
    *lm = NULL;
    builder b = {.words = words, .grams = grams, .order = order, .bits = bits};
    dgm_status st = build(&b, counts, err);
    for (int n = 0; n <= order; n++)
        for (int which = 0; which < 2; which++) dgm_free(b.table[n][which]);
    if (st == DGM_OK) st = dgm_lm_open_bytes(lm, b.out.data, b.out.size, err);
    if (st == DGM_OK)
        (*lm)->bytes.owned = b.out.data;
    else
        dgm_writer_free(&b.out);
    return st;
}
