// SPDX-License-Identifier: MIT
// BLEU and chrF counts and scores; see metrics.h.
//
// N-grams are counted exactly, without comparing texts: a text becomes a row of units (word numbers
// or code points), and an n-gram is a node of a tree, child(node of its first n - 1 units, last
// unit). The children of all nodes live in one open hash table keyed by (parent, unit); a node's
// number is its slot. The hypothesis fills the table, references only look things up, since an
// n-gram that the hypothesis lacks can match nothing, nor can a longer one that begins with it.
//
//     slot: key parent<<32|unit, generation (old ones count as free), hyp, best, now, stamp
//
// hyp = count in the hypothesis, now = count in the reference at hand (valid when stamp is its
// number), best = largest count in any reference (BLEU clips there).
#include "metrics/metrics.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "metrics/metrics_private.h"

#define NO_UNIT UINT32_MAX // a word that the hypothesis does not have
#define NO_NODE 0u         // the root; real nodes are slot + 1

typedef struct gram {
    uint64_t key;
    uint32_t generation;
    uint32_t hyp, best, now, stamp;
} gram;

typedef struct word_slot {
    dgm_text word;
    uint32_t generation, unit;
} word_slot;

typedef struct units {
    uint32_t *items;
    size_t count, cap;
} units;

struct dgm_metric {
    dgm_metric_options o;
    int width;
    gram *grams;
    size_t gram_cap; // power of two
    word_slot *words;
    size_t word_cap; // power of two
    uint32_t generation, stamp, next_unit;
    units hyp, ref;
    dgm_writer clean, lower, a, b; // text of the line at hand, step by step
    dgm_writer hyp_text;           // words of the hypothesis stay here while refs are read
};

void dgm_metric_options_default(dgm_metric_options *o, dgm_metric_kind kind)
{
    *o = (dgm_metric_options){.kind = kind,
                              .tokenizer = DGM_BLEU_13A,
                              .smooth = DGM_SMOOTH_EXP,
                              .smooth_value = -1,
                              .max_order = 4,
                              .char_order = 6,
                              .word_order = 0,
                              .beta = 2};
}

static const char *const tokenizer_names[] = {"13a", "intl", "char", "zh", "none"};
static const char *const smooth_names[] = {"exp", "floor", "add-k", "none"};

static int name_index(const char *const *names, int count, const char *name)
{
    for (int i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0) return i;
    return -1;
}

bool dgm_bleu_tokenizer_of(const char *name, dgm_bleu_tokenizer *out)
{
    int i = name_index(tokenizer_names, 5, name);
    if (i >= 0) *out = (dgm_bleu_tokenizer)i;
    return i >= 0;
}

const char *dgm_bleu_tokenizer_name(dgm_bleu_tokenizer t)
{
    return (unsigned)t < 5 ? tokenizer_names[t] : "?";
}

bool dgm_bleu_smooth_of(const char *name, dgm_bleu_smooth *out)
{
    int i = name_index(smooth_names, 4, name);
    if (i >= 0) *out = (dgm_bleu_smooth)i;
    return i >= 0;
}

const char *dgm_bleu_smooth_name(dgm_bleu_smooth s)
{
    return (unsigned)s < 4 ? smooth_names[s] : "?";
}

static dgm_status check_options(const dgm_metric_options *o, dgm_error *err)
{
    if (o->kind == DGM_METRIC_BLEU) {
        DGM_FAIL_IF(o->max_order < 1 || o->max_order > DGM_BLEU_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                    "BLEU order must be 1 to %d", DGM_BLEU_ORDER_MAX);
        DGM_FAIL_IF((unsigned)o->tokenizer > DGM_BLEU_NONE || (unsigned)o->smooth > DGM_SMOOTH_NONE,
                    err, DGM_ERR_ARGUMENT, "unknown BLEU tokenizer or smoothing");
        return DGM_OK;
    }
    DGM_FAIL_IF(o->kind != DGM_METRIC_CHRF, err, DGM_ERR_ARGUMENT, "unknown metric");
    DGM_FAIL_IF(o->char_order < 1 || o->char_order > DGM_CHRF_CHAR_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "chrF character order must be 1 to %d", DGM_CHRF_CHAR_ORDER_MAX);
    DGM_FAIL_IF(o->word_order < 0 || o->word_order > DGM_CHRF_WORD_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "chrF word order must be 0 to %d", DGM_CHRF_WORD_ORDER_MAX);
    DGM_FAIL_IF(!(o->beta > 0) || o->beta > 1e6, err, DGM_ERR_ARGUMENT,
                "chrF beta must be positive");
    return DGM_OK;
}

dgm_status dgm_metric_open(dgm_metric **m, const dgm_metric_options *o, dgm_error *err)
{
    *m = NULL;
    DGM_TRY(check_options(o, err));
    dgm_metric *fresh = dgm_calloc(1, sizeof *fresh);
    if (!fresh) return dgm_no_memory(err);
    fresh->o = *o;
    fresh->width =
        o->kind == DGM_METRIC_BLEU ? 2 + 2 * o->max_order : 3 * (o->char_order + o->word_order);
    *m = fresh;
    return DGM_OK;
}

void dgm_metric_close(dgm_metric **m)
{
    if (!m || !*m) return;
    dgm_metric *x = *m;
    dgm_free(x->grams);
    dgm_free(x->words);
    dgm_free(x->hyp.items);
    dgm_free(x->ref.items);
    dgm_writer_free(&x->clean);
    dgm_writer_free(&x->lower);
    dgm_writer_free(&x->a);
    dgm_writer_free(&x->b);
    dgm_writer_free(&x->hyp_text);
    dgm_free(x);
    *m = NULL;
}

const dgm_metric_options *dgm_metric_get_options(const dgm_metric *m)
{
    return &m->o;
}

int dgm_metric_width(const dgm_metric *m)
{
    return m->width;
}

// ---- tables --------------------------------------------------------------------------------

// Room for `need` entries at half load. Content need not survive.
static dgm_status reserve_table(void *table, size_t *cap, size_t need, size_t elem, dgm_error *err)
{
    size_t want = 64;
    while (want < need * 2) want *= 2;
    if (want <= *cap) return DGM_OK;
    void *fresh = dgm_calloc(want, elem);
    if (!fresh) return dgm_no_memory(err);
    void *old;
    memcpy(&old, table, sizeof old);
    dgm_free(old);
    memcpy(table, &fresh, sizeof fresh);
    *cap = want;
    return DGM_OK;
}

// Forgets all entries of both tables at once.
static void new_generation(dgm_metric *m)
{
    if (++m->generation == 0) { // wrapped: old generations would look new
        if (m->grams) memset(m->grams, 0, m->gram_cap * sizeof *m->grams);
        if (m->words) memset(m->words, 0, m->word_cap * sizeof *m->words);
        m->generation = 1;
    }
    m->next_unit = 0;
    m->stamp = 0;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * 0xBF58476D1CE4E5B9u;
    x = (x ^ x >> 27) * 0x94D049BB133111EBu;
    return x ^ x >> 31;
}

// Node of the n-gram that extends `parent` by `unit`; NO_NODE when it is absent and not added.
static uint32_t child(dgm_metric *m, uint32_t parent, uint32_t unit, bool add)
{
    uint64_t key = (uint64_t)parent << 32 | unit;
    size_t mask = m->gram_cap - 1;
    for (size_t at = mix(key) & mask;; at = (at + 1) & mask) {
        gram *g = &m->grams[at];
        if (g->generation != m->generation) {
            if (!add) return NO_NODE;
            *g = (gram){.key = key, .generation = m->generation};
            return (uint32_t)at + 1;
        }
        if (g->key == key) return (uint32_t)at + 1;
    }
}

static uint32_t unit_of_word(dgm_metric *m, dgm_text word, bool add)
{
    uint64_t h = 14695981039346656037u;
    for (size_t i = 0; i < word.size; i++) h = (h ^ (unsigned char)word.data[i]) * 1099511628211u;
    size_t mask = m->word_cap - 1;
    for (size_t at = mix(h) & mask;; at = (at + 1) & mask) {
        word_slot *w = &m->words[at];
        if (w->generation != m->generation) {
            if (!add) return NO_UNIT;
            *w = (word_slot){word, m->generation, m->next_unit++};
            return w->unit;
        }
        if (dgm_text_equal(w->word, word)) return w->unit;
    }
}

// Puts the n-grams of the hypothesis into the (empty) table.
static dgm_status add_hyp(dgm_metric *m, int order, dgm_error *err)
{
    const units *u = &m->hyp;
    DGM_TRY(
        reserve_table(&m->grams, &m->gram_cap, u->count * (size_t)order + 1, sizeof(gram), err));
    for (size_t i = 0; i < u->count; i++) {
        uint32_t node = NO_NODE;
        for (int n = 0; n < order && i + (size_t)n < u->count; n++) {
            node = child(m, node, u->items[i + (size_t)n], true);
            m->grams[node - 1].hyp++;
        }
    }
    return DGM_OK;
}

// Counts matches of the reference at hand: matches[n] [order]. clip_best counts only what no
// earlier reference matched already (BLEU: the largest count over references).
static void match_ref(dgm_metric *m, int order, bool clip_best, int64_t *matches)
{
    const units *u = &m->ref;
    m->stamp++;
    for (size_t i = 0; i < u->count; i++) {
        uint32_t node = NO_NODE;
        for (int n = 0; n < order && i + (size_t)n < u->count; n++) {
            uint32_t unit = u->items[i + (size_t)n];
            if (unit == NO_UNIT) break;
            node = child(m, node, unit, false);
            if (node == NO_NODE) break;
            gram *g = &m->grams[node - 1];
            if (g->stamp != m->stamp) {
                g->stamp = m->stamp;
                g->now = 0;
            }
            g->now++;
            if (g->now <= g->hyp && (!clip_best || g->now > g->best)) matches[n]++;
            if (g->now > g->best) g->best = g->now;
        }
    }
}

// ---- text to units -------------------------------------------------------------------------

static dgm_text view(const dgm_writer *w)
{
    return (dgm_text){w->data ? (const char *)w->data : "", w->size};
}

// Valid UTF-8, lower-cased if asked for; borrowed until the next call.
static dgm_status clean_line(dgm_metric *m, dgm_text line, dgm_text *out, dgm_error *err)
{
    m->clean.size = m->lower.size = 0;
    *out = line;
    if (!dgm_utf8_valid(line)) {
        DGM_TRY(dgm_utf8_repair(line, &m->clean, NULL, err));
        *out = view(&m->clean);
    }
    if (m->o.lowercase) {
        DGM_TRY(dgm_utf8_lower(*out, &m->lower, err));
        *out = view(&m->lower);
    }
    return DGM_OK;
}

static dgm_status push_unit(units *u, uint32_t unit, dgm_error *err)
{
    DGM_TRY(dgm_grow(&u->items, &u->cap, u->count + 1, sizeof *u->items, err));
    u->items[u->count++] = unit;
    return DGM_OK;
}

// chrF's words: one punctuation mark is split off the end, or else off the beginning.
static int split_word(dgm_text word, dgm_text parts[2])
{
    static const char marks[] = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~";
    parts[0] = word;
    if (dgm_utf8_count(word) == 1) return 1;
    if (strchr(marks, word.data[word.size - 1])) {
        parts[0].size--;
        parts[1] = (dgm_text){word.data + word.size - 1, 1};
        return 2;
    }
    if (strchr(marks, word.data[0])) {
        parts[0].size = 1;
        parts[1] = (dgm_text){word.data + 1, word.size - 1};
        return 2;
    }
    return 1;
}

// Words of `text` as units. is_hyp: new words get numbers; the text must outlive the segment.
static dgm_status word_units(dgm_metric *m, dgm_text text, bool is_hyp, bool split, units *u,
                             dgm_error *err)
{
    u->count = 0;
    dgm_text word;
    if (is_hyp) {
        size_t words = 0;
        for (dgm_text rest = text; dgm_next_word(&rest, &word);) words++;
        size_t need = words * (split ? 2 : 1) + 1;
        DGM_TRY(reserve_table(&m->words, &m->word_cap, need, sizeof(word_slot), err));
    }
    while (dgm_next_word(&text, &word)) {
        dgm_text parts[2];
        int count = 1;
        parts[0] = word;
        if (split) count = split_word(word, parts);
        for (int i = 0; i < count; i++)
            DGM_TRY(push_unit(u, unit_of_word(m, parts[i], is_hyp), err));
    }
    return DGM_OK;
}

static dgm_status char_units(dgm_text text, bool whitespace, units *u, dgm_error *err)
{
    u->count = 0;
    for (size_t pos = 0; pos < text.size;) {
        uint32_t code;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        if (whitespace || !dgm_char_is_space(code)) DGM_TRY(push_unit(u, code, err));
    }
    return DGM_OK;
}

// ---- rows ----------------------------------------------------------------------------------

static int64_t gram_count(size_t units_count, int n)
{
    return units_count >= (size_t)n ? (int64_t)(units_count - (size_t)n + 1) : 0;
}

static dgm_status bleu_row(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                           int64_t *row, dgm_error *err)
{
    int order = m->o.max_order;
    dgm_text text;
    new_generation(m);
    DGM_TRY(clean_line(m, hyp, &text, err));
    DGM_TRY(dgm_bleu_tokenize_raw(m->o.tokenizer, text, &m->hyp_text, &m->b, err));
    DGM_TRY(word_units(m, view(&m->hyp_text), true, false, &m->hyp, err));
    DGM_TRY(add_hyp(m, order, err));
    int64_t length = (int64_t)m->hyp.count, closest = -1;
    for (size_t r = 0; r < ref_count; r++) {
        if (!refs[r].data) continue;
        DGM_TRY(clean_line(m, refs[r], &text, err));
        DGM_TRY(dgm_bleu_tokenize_raw(m->o.tokenizer, text, &m->a, &m->b, err));
        DGM_TRY(word_units(m, view(&m->a), false, false, &m->ref, err));
        match_ref(m, order, true, row + 2);
        int64_t ref_length = (int64_t)m->ref.count;
        int64_t far = closest < 0 ? INT64_MAX : llabs(length - closest);
        int64_t gap = llabs(length - ref_length);
        if (gap < far || (gap == far && ref_length < closest)) closest = ref_length;
    }
    row[0] = length;
    row[1] = closest;
    for (int n = 1; n <= order; n++) row[1 + order + n] = gram_count(m->hyp.count, n);
    return DGM_OK;
}

static double chrf_score(const dgm_metric_options *o, const int64_t *row)
{
    double precision = 0, recall = 0, factor = o->beta * o->beta;
    int used = 0;
    for (int i = 0; i < o->char_order + o->word_order; i++) {
        const int64_t hyp = row[3 * i], ref = row[3 * i + 1], match = row[3 * i + 2];
        if (hyp <= 0 || ref <= 0) continue;
        precision += (double)match / (double)hyp;
        recall += (double)match / (double)ref;
        used++;
    }
    if (used == 0 || precision + recall == 0) return 0;
    precision /= used;
    recall /= used;
    return 100 * ((1 + factor) * precision * recall / (factor * precision + recall));
}

// Fills the triples of `order` orders from the units at hand; matches must be there already.
static void chrf_triples(const dgm_metric *m, int order, const int64_t *matches, int64_t *row)
{
    for (int n = 0; n < order; n++) {
        int64_t ref = gram_count(m->ref.count, n + 1);
        row[3 * n] = ref ? gram_count(m->hyp.count, n + 1) : 0;
        row[3 * n + 1] = ref;
        row[3 * n + 2] = matches[n];
    }
}

// Triples of one kind of unit (characters or words) for every reference: rows [refs][width], at
// column `first`.
static dgm_status chrf_pass(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                            bool words, int64_t *rows, dgm_error *err)
{
    int order = words ? m->o.word_order : m->o.char_order;
    int first = words ? 3 * m->o.char_order : 0;
    dgm_text text;
    new_generation(m);
    DGM_TRY(clean_line(m, hyp, &text, err));
    if (words) {
        m->hyp_text.size = 0;
        dgm_write_bytes(&m->hyp_text, text.data, text.size);
        if (m->hyp_text.failed) return dgm_no_memory(err);
        DGM_TRY(word_units(m, view(&m->hyp_text), true, true, &m->hyp, err));
    } else {
        DGM_TRY(char_units(text, m->o.whitespace, &m->hyp, err));
    }
    DGM_TRY(add_hyp(m, order, err));
    for (size_t r = 0; r < ref_count; r++) {
        if (!refs[r].data) continue;
        int64_t matches[DGM_CHRF_CHAR_ORDER_MAX] = {0};
        DGM_TRY(clean_line(m, refs[r], &text, err));
        if (words)
            DGM_TRY(word_units(m, text, false, true, &m->ref, err));
        else
            DGM_TRY(char_units(text, m->o.whitespace, &m->ref, err));
        match_ref(m, order, false, matches);
        chrf_triples(m, order, matches, rows + r * (size_t)m->width + first);
    }
    return DGM_OK;
}

static dgm_status chrf_row(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                           int64_t *row, dgm_error *err)
{
    int64_t few[4 * DGM_METRIC_WIDTH_MAX] = {0}, *rows = few;
    if (ref_count > 4) rows = dgm_calloc(ref_count, (size_t)m->width * sizeof *rows);
    if (!rows) return dgm_no_memory(err);
    dgm_status st = chrf_pass(m, hyp, refs, ref_count, false, rows, err);
    if (st == DGM_OK && m->o.word_order) st = chrf_pass(m, hyp, refs, ref_count, true, rows, err);
    double best = -1;
    for (size_t r = 0; st == DGM_OK && r < ref_count; r++) {
        const int64_t *candidate = rows + r * (size_t)m->width;
        double score = refs[r].data ? chrf_score(&m->o, candidate) : -1;
        if (score > best) {
            best = score;
            memcpy(row, candidate, (size_t)m->width * sizeof *row);
        }
    }
    if (rows != few) dgm_free(rows);
    return st;
}

dgm_status dgm_metric_segment(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                              int64_t *row, dgm_error *err)
{
    bool any = false;
    for (size_t r = 0; r < ref_count; r++) any |= refs[r].data != NULL;
    DGM_FAIL_IF(!any, err, DGM_ERR_ARGUMENT, "segment has no reference");
    // Keeps node numbers within 32 bits (16 Mi characters, 12 orders, half-full table).
    DGM_FAIL_IF(hyp.size > 1u << 24, err, DGM_ERR_TEXT, "segment is longer than 16 MiB");
    memset(row, 0, (size_t)m->width * sizeof *row);
    // After an allocation failure the buffers are usable again once emptied.
    m->clean.failed = m->lower.failed = m->a.failed = m->b.failed = m->hyp_text.failed = false;
    return m->o.kind == DGM_METRIC_BLEU ? bleu_row(m, hyp, refs, ref_count, row, err)
                                        : chrf_row(m, hyp, refs, ref_count, row, err);
}

dgm_status dgm_metric_corpus(dgm_metric *m, const dgm_text *hyps, size_t count,
                             const dgm_text *const *refs, size_t ref_count, int64_t *rows,
                             dgm_error *err)
{
    dgm_text few[8], *line = few;
    if (ref_count > 8) line = dgm_malloc(ref_count * sizeof *line);
    if (!line) return dgm_no_memory(err);
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        for (size_t r = 0; r < ref_count; r++) line[r] = refs[r][i];
        st = dgm_metric_segment(m, hyps[i], line, ref_count, rows + i * (size_t)m->width, err);
        if (st != DGM_OK) dgm_error_prefix(err, "line %zu", i + 1);
    }
    if (line != few) dgm_free(line);
    return st;
}

void dgm_metric_sum(const dgm_metric *m, const int64_t *rows, size_t count, int64_t *sum)
{
    memset(sum, 0, (size_t)m->width * sizeof *sum);
    for (size_t i = 0; i < count; i++)
        for (int k = 0; k < m->width; k++) sum[k] += rows[i * (size_t)m->width + (size_t)k];
}

// ---- scores --------------------------------------------------------------------------------

static void bleu_score(const dgm_metric_options *o, const int64_t *sum, dgm_metric_score *out)
{
    int order = o->max_order, used = order;
    double smooth = o->smooth_value, halved = 1, logs = 0;
    bool any = false;
    if (smooth < 0) smooth = o->smooth == DGM_SMOOTH_FLOOR ? 0.1 : 1;
    out->hyp_length = sum[0];
    out->ref_length = sum[1];
    out->brevity = 1;
    if (sum[0] < sum[1]) out->brevity = sum[0] ? exp(1 - (double)sum[1] / (double)sum[0]) : 0;
    for (int n = 0; n < order; n++) any |= sum[2 + n] != 0;
    if (!any) return;
    for (int n = 0; n < order; n++) {
        double match = (double)sum[2 + n], total = (double)sum[2 + order + n];
        if (o->smooth == DGM_SMOOTH_ADD_K && n > 0) {
            match += smooth;
            total += smooth;
        }
        if (total == 0) break;
        if (o->effective_order) used = n + 1;
        if (match != 0)
            out->precisions[n] = 100 * match / total;
        else if (o->smooth == DGM_SMOOTH_EXP)
            out->precisions[n] = 100 / ((halved *= 2) * total);
        else if (o->smooth == DGM_SMOOTH_FLOOR)
            out->precisions[n] = 100 * smooth / total;
    }
    for (int n = 0; n < used; n++) {
        if (out->precisions[n] == 0) return; // log 0: the score is 0
        logs += log(out->precisions[n]);
    }
    out->score = out->brevity * exp(logs / used);
}

void dgm_metric_score_of(const dgm_metric *m, const int64_t *sum, dgm_metric_score *out)
{
    *out = (dgm_metric_score){0};
    if (m->o.kind == DGM_METRIC_BLEU)
        bleu_score(&m->o, sum, out);
    else
        out->score = chrf_score(&m->o, sum);
}
