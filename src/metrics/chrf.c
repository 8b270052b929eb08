// SPDX-License-Identifier: MIT
// chrF as sacreBLEU computes it: counts of a segment, score of a sum; see metrics.h.
#include <string.h>

#include "base/mem.h"
#include "metrics/metrics_private.h"

dgm_status dgm_chrf_check(const dgm_metric_options *o, dgm_error *err)
{
    DGM_FAIL_IF(o->char_order < 1 || o->char_order > DGM_CHRF_CHAR_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "chrF character order must be 1 to %d, not %d", DGM_CHRF_CHAR_ORDER_MAX,
                o->char_order);
    DGM_FAIL_IF(o->word_order < 0 || o->word_order > DGM_CHRF_WORD_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "chrF word order must be 0 to %d, not %d", DGM_CHRF_WORD_ORDER_MAX, o->word_order);
    DGM_FAIL_IF(!(o->beta > 0) || o->beta > 1e6, err, DGM_ERR_ARGUMENT,
                "chrF beta must be positive and at most 1e6, not %g", o->beta);
    return DGM_OK;
}

int dgm_chrf_width(const dgm_metric_options *o)
{
    return 3 * (o->char_order + o->word_order);
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

static dgm_status char_units(dgm_text text, bool whitespace, dgm_units *u, dgm_error *err)
{
    u->count = 0;
    for (size_t pos = 0; pos < text.size;) {
        uint32_t code;
        pos += dgm_utf8_next(text.data + pos, text.size - pos, &code);
        if (whitespace || !dgm_char_is_space(code)) DGM_TRY(dgm_units_push(u, code, err));
    }
    return DGM_OK;
}

double dgm_chrf_score(const dgm_metric_options *o, const int64_t *row)
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
        int64_t ref = dgm_gram_count(m->ref.count, n + 1);
        row[3 * n] = ref ? dgm_gram_count(m->hyp.count, n + 1) : 0;
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
    dgm_grams_clear(m);
    DGM_TRY(dgm_metric_clean(m, hyp, &text, err));
    if (words) {
        m->hyp_text.size = 0;
        dgm_write_bytes(&m->hyp_text, text.data, text.size);
        if (m->hyp_text.failed) return dgm_no_memory(err);
        DGM_TRY(dgm_units_words(m, dgm_metric_view(&m->hyp_text), true, split_word, &m->hyp, err));
    } else {
        DGM_TRY(char_units(text, m->o.whitespace, &m->hyp, err));
    }
    DGM_TRY(dgm_grams_add(m, order, err));
    for (size_t r = 0; r < ref_count; r++) {
        if (!refs[r].data) continue;
        int64_t matches[DGM_CHRF_CHAR_ORDER_MAX] = {0};
        DGM_TRY(dgm_metric_clean(m, refs[r], &text, err));
        if (words)
            DGM_TRY(dgm_units_words(m, text, false, split_word, &m->ref, err));
        else
            DGM_TRY(char_units(text, m->o.whitespace, &m->ref, err));
        dgm_grams_match(m, order, false, matches);
        chrf_triples(m, order, matches, rows + r * (size_t)m->width + first);
    }
    return DGM_OK;
}

dgm_status dgm_chrf_row(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
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
        double score = refs[r].data ? dgm_chrf_score(&m->o, candidate) : -1;
        if (score > best) {
            best = score;
            memcpy(row, candidate, (size_t)m->width * sizeof *row);
        }
    }
    if (rows != few) dgm_free(rows);
    return st;
}
