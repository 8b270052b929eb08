// SPDX-License-Identifier: MIT
// Builds a phrase table's bytes from rows in any order; see phrase_table.h. Callers: the reader of
// text (phrase_text.c) and the counter's tool.
//
// Rows are kept as they come, words numbered by first appearance. At the end words are sorted by
// their bytes and sources by their words, so that the same rows make the same bytes.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/lower_bound.h"
#include "base/mem.h"
#include "base/sort.h"
#include "base/pairmap.h"
#include "phrase/phrase_layout.h"
#include "phrase/phrase_table.h"

typedef struct stored_row {
    uint32_t source, target; // phrases
    uint32_t matrix;
    float score[DGM_TABLE_FEATURES];
} stored_row;

struct dgm_phrase_builder {
    dgm_words words[2];   // spellings
    dgm_words phrases[2]; // "spelled" as the bytes of their words' numbers
    dgm_pairmap known;    // (source, target) -> row
    dgm_pairmap matrices; // links -> number
    stored_row *rows;
    size_t count, cap;
    bool oriented, linked;
    int longest;
    // While finishing.
    uint32_t *rank[2];  // [words] number by spelling
    uint32_t *order[2]; // [words] the other way
    uint32_t *sources;  // [source phrases] sorted
    uint32_t *row_at;   // [source phrases + 1] in row_order, by phrase
    uint32_t *row_order;
    uint64_t *matrix;      // [matrices] by first appearance
    uint32_t *matrix_rank; // [matrices] number by value
    uint32_t *matrix_order;
    dgm_writer out;
};

dgm_status dgm_phrase_builder_open(dgm_phrase_builder **b, dgm_error *err)
{
    *b = dgm_calloc(1, sizeof **b);
    return *b ? DGM_OK : dgm_no_memory(err);
}

static void free_orders(dgm_phrase_builder *b)
{
    for (int s = 0; s < 2; s++) {
        dgm_free(b->rank[s]);
        dgm_free(b->order[s]);
        b->rank[s] = b->order[s] = NULL;
    }
    dgm_free(b->sources);
    dgm_free(b->row_at);
    dgm_free(b->row_order);
    dgm_free(b->matrix);
    dgm_free(b->matrix_rank);
    dgm_free(b->matrix_order);
    b->sources = b->row_at = b->row_order = b->matrix_rank = b->matrix_order = NULL;
    b->matrix = NULL;
}

void dgm_phrase_builder_close(dgm_phrase_builder **p)
{
    dgm_phrase_builder *b = *p;
    if (!b) return;
    for (int s = 0; s < 2; s++) {
        dgm_words_free(&b->words[s]);
        dgm_words_free(&b->phrases[s]);
    }
    dgm_pairmap_free(&b->known);
    dgm_pairmap_free(&b->matrices);
    dgm_free(b->rows);
    free_orders(b);
    dgm_writer_free(&b->out);
    dgm_free(b);
    *p = NULL;
}

dgm_status dgm_phrase_builder_word(dgm_phrase_builder *b, int side, dgm_text word, uint32_t *number,
                                   dgm_error *err)
{
    return dgm_words_add(&b->words[side], word, number, err);
}

static dgm_text as_text(const uint32_t *words, int length)
{
    return (dgm_text){(const char *)words, (size_t)length * sizeof *words};
}

dgm_status dgm_phrase_builder_row(dgm_phrase_builder *b, const dgm_phrase_row *r, bool oriented,
                                  dgm_error *err)
{
    DGM_FAIL_IF(r->source_length < 1 || r->source_length > DGM_PHRASE_LENGTH_MAX, err,
                DGM_ERR_FORMAT, "a source phrase of %d words; between 1 and %d can be read",
                r->source_length, DGM_PHRASE_LENGTH_MAX);
    DGM_FAIL_IF(r->target_length < 1 || r->target_length > DGM_PHRASE_LENGTH_MAX, err,
                DGM_ERR_FORMAT, "a target phrase of %d words; between 1 and %d can be read",
                r->target_length, DGM_PHRASE_LENGTH_MAX);
    DGM_FAIL_IF(b->count >= UINT32_MAX - 1, err, DGM_ERR_UNSUPPORTED,
                "more than 2^32 phrase pairs");
    stored_row x = {0};
    uint32_t *known, *matrix;
    DGM_TRY(dgm_words_add(&b->phrases[0], as_text(r->source, r->source_length), &x.source, err));
    DGM_TRY(dgm_words_add(&b->phrases[1], as_text(r->target, r->target_length), &x.target, err));
    size_t before = b->known.count;
    DGM_TRY(dgm_pairmap_at(&b->known, dgm_pairmap_key(x.source, x.target), (uint32_t)b->count,
                           &known, err));
    DGM_FAIL_IF(b->known.count == before, err, DGM_ERR_FORMAT, "this phrase pair is there twice");
    DGM_TRY(dgm_pairmap_at(&b->matrices, r->links, (uint32_t)b->matrices.count, &matrix, err));
    x.matrix = *matrix;
    for (int k = 0; k < DGM_PHRASE_SCORES; k++) x.score[k] = r->score[k];
    for (int k = 0; k < DGM_PHRASE_ORIENTATIONS; k++)
        x.score[DGM_PHRASE_SCORES + k] = oriented ? r->orientation[k] : 1.0f / 3;
    DGM_TRY(dgm_grow(&b->rows, &b->cap, b->count + 1, sizeof *b->rows, err));
    b->rows[b->count++] = x;
    b->oriented = b->oriented || oriented;
    b->linked = b->linked || r->links != 0;
    if (r->source_length > b->longest) b->longest = r->source_length;
    return DGM_OK;
}

dgm_status dgm_phrase_builder_orient(dgm_phrase_builder *b, const dgm_phrase_row *r, dgm_error *err)
{
    (void)err;
    b->oriented = true;
    int64_t s = dgm_words_find(&b->phrases[0], as_text(r->source, r->source_length));
    int64_t t = dgm_words_find(&b->phrases[1], as_text(r->target, r->target_length));
    if (s < 0 || t < 0) return DGM_OK;
    const uint32_t *row = dgm_pairmap_find(&b->known, dgm_pairmap_key((uint32_t)s, (uint32_t)t));
    for (int k = 0; row && k < DGM_PHRASE_ORIENTATIONS; k++)
        b->rows[*row].score[DGM_PHRASE_SCORES + k] = r->orientation[k];
    return DGM_OK;
}

// ---- orders -----------------------------------------------------------------------------------

static int by_spelling(const void *context, uint32_t a, uint32_t b)
{
    dgm_text x = dgm_words_spell(context, a), y = dgm_words_spell(context, b);
    size_t n = x.size < y.size ? x.size : y.size;
    int c = n ? memcmp(x.data, y.data, n) : 0;
    return c ? c : x.size < y.size ? -1 : x.size > y.size;
}

static uint32_t phrase_word(const dgm_phrase_builder *b, int side, uint32_t phrase, size_t i)
{
    uint32_t word;
    memcpy(&word, dgm_words_spell(&b->phrases[side], phrase).data + i * sizeof word, sizeof word);
    return b->rank[side][word];
}

static size_t phrase_length(const dgm_phrase_builder *b, int side, uint32_t phrase)
{
    return dgm_words_spell(&b->phrases[side], phrase).size / sizeof(uint32_t);
}

static int by_words(const void *context, uint32_t x, uint32_t y)
{
    const dgm_phrase_builder *b = context;
    size_t n = phrase_length(b, 0, x), m = phrase_length(b, 0, y);
    for (size_t i = 0; i < n && i < m; i++) {
        uint32_t p = phrase_word(b, 0, x, i), q = phrase_word(b, 0, y, i);
        if (p != q) return p < q ? -1 : 1;
    }
    return n < m ? -1 : n > m;
}

static int by_links(const void *context, uint32_t x, uint32_t y)
{
    const uint64_t *matrix = context;
    return matrix[x] < matrix[y] ? -1 : matrix[x] > matrix[y];
}

static dgm_status order_matrices(dgm_phrase_builder *b, dgm_error *err)
{
    size_t n = b->matrices.count;
    b->matrix = dgm_calloc(n + 1, sizeof *b->matrix);
    b->matrix_rank = dgm_malloc((n + 1) * sizeof(uint32_t));
    b->matrix_order = dgm_malloc((n + 1) * sizeof(uint32_t));
    if (!b->matrix || !b->matrix_rank || !b->matrix_order) return dgm_no_memory(err);
    for (size_t i = 0; i < b->matrices.slots; i++)
        if (b->matrices.used[i]) b->matrix[b->matrices.value[i]] = b->matrices.key[i];
    dgm_sort_indices(b->matrix_order, n, by_links, b->matrix);
    for (size_t i = 0; i < n; i++) b->matrix_rank[b->matrix_order[i]] = (uint32_t)i;
    return DGM_OK;
}

static dgm_status make_orders(dgm_phrase_builder *b, dgm_error *err)
{
    for (int s = 0; s < 2; s++) {
        size_t n = b->words[s].count;
        b->order[s] = dgm_malloc((n + 1) * sizeof(uint32_t));
        b->rank[s] = dgm_malloc((n + 1) * sizeof(uint32_t));
        if (!b->order[s] || !b->rank[s]) return dgm_no_memory(err);
        dgm_sort_indices(b->order[s], n, by_spelling, &b->words[s]);
        for (size_t i = 0; i < n; i++) b->rank[s][b->order[s][i]] = (uint32_t)i;
    }
    size_t sources = b->phrases[0].count;
    b->sources = dgm_malloc((sources + 1) * sizeof(uint32_t));
    b->row_at = dgm_calloc(sources + 2, sizeof(uint32_t));
    b->row_order = dgm_malloc((b->count + 1) * sizeof(uint32_t));
    if (!b->sources || !b->row_at || !b->row_order) return dgm_no_memory(err);
    dgm_sort_indices(b->sources, sources, by_words, b);
    // Rows by source, stable: counting sort.
    for (size_t i = 0; i < b->count; i++) b->row_at[b->rows[i].source + 2]++;
    for (size_t k = 2; k <= sources + 1; k++) b->row_at[k] += b->row_at[k - 1];
    for (size_t i = 0; i < b->count; i++)
        b->row_order[b->row_at[b->rows[i].source + 1]++] = (uint32_t)i;
    return order_matrices(b, err);
}

// ---- codebooks --------------------------------------------------------------------------------

static int by_value(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

// Values of equally large groups of the sorted values: their geometric means, as probabilities are
// used as logarithms.
static dgm_status make_codebook(const dgm_phrase_builder *b, int k, float *book, uint32_t size,
                                dgm_error *err)
{
    float *v = dgm_malloc((b->count + 1) * sizeof *v);
    if (!v) return dgm_no_memory(err);
    for (size_t i = 0; i < b->count; i++) v[i] = b->rows[i].score[k];
    qsort(v, b->count, sizeof *v, by_value);
    size_t distinct = 0;
    for (size_t i = 0; i < b->count; i++)
        if (i == 0 || v[i] != v[i - 1]) distinct++;
    if (distinct <= size) { // nothing is lost
        size_t n = 0;
        for (size_t i = 0; i < b->count; i++)
            if (i == 0 || v[i] != v[i - 1]) book[n++] = v[i];
        for (; n < size; n++) book[n] = n ? book[n - 1] : 1;
    } else {
        for (uint32_t g = 0; g < size; g++) {
            size_t first = b->count * g / size, end = b->count * (g + 1) / size;
            double sum = 0;
            for (size_t i = first; i < end; i++) sum += log((double)v[i]);
            book[g] = (float)exp(sum / (double)(end - first));
        }
    }
    dgm_free(v);
    return DGM_OK;
}

// The entry that is nearest by ratio.
static uint32_t nearest(const float *book, uint32_t size, float v)
{
    uint32_t at;
    DGM_LOWER_BOUND(uint32_t, at, 0, size, book[at] < v);
    if (at == size) return size - 1;
    if (at > 0 && (double)v * (double)v < (double)book[at] * (double)book[at - 1]) at--;
    return at;
}

static dgm_status write_scores(dgm_phrase_builder *b, int bits, int features, dgm_error *err)
{
    dgm_writer *w = &b->out;
    uint32_t size = 1u << bits;
    float *book = NULL;
    if (bits) {
        book = dgm_malloc((size_t)features * size * sizeof *book);
        dgm_status st = book ? DGM_OK : dgm_no_memory(err);
        for (int k = 0; st == DGM_OK && k < features; k++)
            st = make_codebook(b, k, book + (size_t)k * size, size, err);
        if (st != DGM_OK) {
            dgm_free(book);
            return st;
        }
        dgm_write_bytes(w, book, (size_t)features * size * sizeof *book);
        dgm_section_begin(w);
    }
    for (size_t s = 0; s < b->phrases[0].count; s++) {
        uint32_t source = b->sources[s];
        for (uint32_t i = b->row_at[source]; i < b->row_at[source + 1]; i++)
            for (int k = 0; k < features; k++) {
                float v = b->rows[b->row_order[i]].score[k];
                uint32_t code = bits ? nearest(book + (size_t)k * size, size, v) : 0;
                if (bits == 0)
                    dgm_write_f32(w, v);
                else if (bits == 8)
                    dgm_write_u8(w, (uint8_t)code);
                else
                    dgm_write_u16(w, (uint16_t)code);
            }
    }
    dgm_free(book);
    return DGM_OK;
}

// ---- bytes ------------------------------------------------------------------------------------

// The sums before every source and behind the last: which 0 words of sources, 1 options, 2 words
// of targets.
static void write_ends(dgm_phrase_builder *b, int which)
{
    uint64_t sum = 0;
    dgm_section_begin(&b->out);
    for (size_t s = 0; s <= b->phrases[0].count; s++) {
        if (which == 2)
            dgm_write_u64(&b->out, sum);
        else
            dgm_write_u32(&b->out, (uint32_t)sum);
        if (s == b->phrases[0].count) break;
        uint32_t source = b->sources[s], begin = b->row_at[source], end = b->row_at[source + 1];
        if (which == 0) sum += phrase_length(b, 0, source);
        if (which == 1) sum += end - begin;
        for (uint32_t i = begin; which == 2 && i < end; i++)
            sum += phrase_length(b, 1, b->rows[b->row_order[i]].target);
    }
}

static void write_phrase(dgm_phrase_builder *b, int side, uint32_t phrase)
{
    for (size_t i = 0; i < phrase_length(b, side, phrase); i++)
        dgm_write_u32(&b->out, phrase_word(b, side, phrase, i));
}

// One number of every option in the table's order: which 0 target words, 1 length, 2 matrix.
static void write_options(dgm_phrase_builder *b, int which)
{
    dgm_section_begin(&b->out);
    for (size_t s = 0; s < b->phrases[0].count; s++) {
        uint32_t source = b->sources[s];
        for (uint32_t i = b->row_at[source]; i < b->row_at[source + 1]; i++) {
            const stored_row *r = &b->rows[b->row_order[i]];
            if (which == 0) write_phrase(b, 1, r->target);
            if (which == 1) dgm_write_u8(&b->out, (uint8_t)phrase_length(b, 1, r->target));
            if (which == 2) dgm_write_u32(&b->out, b->matrix_rank[r->matrix]);
        }
    }
}

static void write_matrices(dgm_phrase_builder *b)
{
    dgm_section_begin(&b->out);
    for (size_t i = 0; i < b->matrices.count; i++)
        dgm_write_u64(&b->out, b->matrix[b->matrix_order[i]]);
}

static void write_header(dgm_phrase_builder *b, int bits, int features)
{
    uint64_t words[2] = {0, 0};
    for (uint32_t s = 0; s < b->phrases[0].count; s++) words[0] += phrase_length(b, 0, s);
    for (size_t i = 0; i < b->count; i++) words[1] += phrase_length(b, 1, b->rows[i].target);
    dgm_writer *w = &b->out;
    dgm_write_bytes(w, dgm_phrase_magic, sizeof dgm_phrase_magic);
    dgm_write_u32(w, (uint32_t)bits);
    dgm_write_u32(w, (uint32_t)features);
    dgm_write_u32(w, (uint32_t)b->longest);
    dgm_write_u32(w, b->linked);
    dgm_write_u32(w, (uint32_t)b->phrases[0].count);
    dgm_write_u32(w, (uint32_t)b->count);
    dgm_write_u32(w, (uint32_t)b->matrices.count);
    dgm_write_u32(w, 0);
    dgm_write_u64(w, words[0]);
    dgm_write_u64(w, words[1]);
    for (int s = 0; s < 2; s++) {
        dgm_write_u64(w, b->words[s].count);
        dgm_write_u64(w, b->words[s].byte_count);
        dgm_write_u64(w, dgm_spellings_slots(&b->words[s]));
    }
}

static dgm_status write_table(dgm_phrase_builder *b, int bits, dgm_error *err)
{
    int features = b->oriented ? DGM_TABLE_FEATURES : DGM_PHRASE_SCORES;
    DGM_TRY(make_orders(b, err));
    write_header(b, bits, features);
    for (int s = 0; s < 2; s++)
        DGM_TRY(dgm_spellings_write(&b->words[s], b->order[s], &b->out, err));
    write_ends(b, 0);
    dgm_section_begin(&b->out);
    for (size_t s = 0; s < b->phrases[0].count; s++) write_phrase(b, 0, b->sources[s]);
    write_ends(b, 1);
    write_ends(b, 2);
    for (int which = 0; which < 3; which++) write_options(b, which);
    write_matrices(b);
    dgm_section_begin(&b->out);
    DGM_TRY(write_scores(b, bits, features, err));
    return b->out.failed ? dgm_no_memory(err) : DGM_OK;
}

dgm_status dgm_phrase_builder_finish(dgm_phrase_builder *b, int bits, dgm_phrase_table **t,
                                     dgm_error *err)
{
    *t = NULL;
    DGM_FAIL_IF(bits != 0 && bits != 8 && bits != 16, err, DGM_ERR_ARGUMENT,
                "numbers of a table have 8 or 16 bits, or 0 to be kept, not %d", bits);
    b->out.size = 0;
    dgm_status st = write_table(b, bits, err);
    free_orders(b);
    if (st == DGM_OK) st = dgm_phrase_table_open_bytes(t, b->out.data, b->out.size, err);
    if (st != DGM_OK) return st;
    (*t)->bytes.owned = b->out.data;
    b->out = (dgm_writer){0};
    return DGM_OK;
}
