// SPDX-License-Identifier: MIT
// Metrics of translations: what BLEU (bleu.c) and chrF (chrf.c) have in common; see metrics.h.
#include "metrics/metrics.h"

#include <string.h>

#include "base/mem.h"
#include "metrics/metrics_private.h"

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

static dgm_status check_options(const dgm_metric_options *o, dgm_error *err)
{
    DGM_FAIL_IF(o->kind != DGM_METRIC_BLEU && o->kind != DGM_METRIC_CHRF, err, DGM_ERR_ARGUMENT,
                "unknown metric");
    return o->kind == DGM_METRIC_BLEU ? dgm_bleu_check(o, err) : dgm_chrf_check(o, err);
}

dgm_status dgm_metric_open(dgm_metric **m, const dgm_metric_options *o, dgm_error *err)
{
    *m = NULL;
    DGM_TRY(check_options(o, err));
    dgm_metric *fresh = dgm_calloc(1, sizeof *fresh);
    if (!fresh) return dgm_no_memory(err);
    fresh->o = *o;
    fresh->width = o->kind == DGM_METRIC_BLEU ? dgm_bleu_width(o) : dgm_chrf_width(o);
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
    return m->o.kind == DGM_METRIC_BLEU ? dgm_bleu_row(m, hyp, refs, ref_count, row, err)
                                        : dgm_chrf_row(m, hyp, refs, ref_count, row, err);
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

void dgm_metric_score_of(const dgm_metric *m, const int64_t *sum, dgm_metric_score *out)
{
    *out = (dgm_metric_score){0};
    if (m->o.kind == DGM_METRIC_BLEU)
        dgm_bleu_score(&m->o, sum, out);
    else
        out->score = dgm_chrf_score(&m->o, sum);
}
