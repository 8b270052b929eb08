// SPDX-License-Identifier: MIT
// Evaluation of translations: the public face of metrics/metrics.h.
//
// Every system is turned into rows of counts once; corpus scores, sentence scores and bootstrap
// samples are sums of these rows.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"
#include "metrics/metrics.h"

void dgm_eval_init(dgm_eval_options *out, size_t size)
{
    dgm_eval_options own, *const o = &own;
    memset(o, 0, sizeof *o);
    o->metric = "bleu";
    o->smooth_value = -1;
    o->max_order = 4;
    o->char_order = 6;
    o->beta = 2;
    o->seed = 12345;
    dgm_sized_give(out, size, &own, sizeof own);
}

static dgm_status translate_options(const dgm_eval_options *o, dgm_metric_options *m,
                                    dgm_error *err)
{
    const char *metric = o->metric ? o->metric : "bleu";
    bool bleu = strcmp(metric, "bleu") == 0, plus = strcmp(metric, "chrf++") == 0;
    DGM_FAIL_IF(!bleu && !plus && strcmp(metric, "chrf") != 0, err, DGM_ERR_ARGUMENT,
                "unknown metric '%s': known are bleu, chrf, chrf++", metric);
    dgm_metric_options_default(m, bleu ? DGM_METRIC_BLEU : DGM_METRIC_CHRF);
    m->lowercase = o->lowercase != 0;
    DGM_FAIL_IF(o->tokenize && !dgm_bleu_tokenizer_of(o->tokenize, &m->tokenizer), err,
                DGM_ERR_ARGUMENT, "unknown tokeniser '%s': known are 13a, intl, char, zh, none",
                o->tokenize);
    DGM_FAIL_IF(o->smooth && !dgm_bleu_smooth_of(o->smooth, &m->smooth), err, DGM_ERR_ARGUMENT,
                "unknown smoothing '%s': known are exp, floor, add-k, none", o->smooth);
    m->smooth_value = o->smooth_value;
    DGM_FAIL_IF(o->max_order < 1 || o->max_order > DGM_BLEU_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "the n-gram order of BLEU must be between 1 and %d, not %d", DGM_BLEU_ORDER_MAX,
                o->max_order);
    DGM_FAIL_IF(o->char_order < 1 || o->char_order > DGM_CHRF_CHAR_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "the character order of chrF must be between 1 and %d, not %d",
                DGM_CHRF_CHAR_ORDER_MAX, o->char_order);
    DGM_FAIL_IF(o->word_order < 0 || o->word_order > DGM_CHRF_WORD_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "the word order of chrF must be between 0 and %d, not %d", DGM_CHRF_WORD_ORDER_MAX,
                o->word_order);
    DGM_FAIL_IF(!(o->beta > 0 && o->beta <= 100), err, DGM_ERR_ARGUMENT,
                "beta of chrF must be above 0 and at most 100, not %g", o->beta);
    m->max_order = o->max_order;
    m->char_order = o->char_order;
    m->word_order = plus && o->word_order == 0 ? 2 : o->word_order;
    m->beta = o->beta;
    return DGM_OK;
}

// A copy of the lines as the text layer's views; lines that end in \r lose it.
static dgm_text *views(const dgm_line *lines, size_t count)
{
    dgm_text *out = dgm_malloc((count ? count : 1) * sizeof *out);
    for (size_t i = 0; out && i < count; i++)
        out[i] = (dgm_text){lines[i].data ? lines[i].data : "", lines[i].size};
    return out;
}

typedef struct evaluation {
    dgm_metric *metric;   // corpus scores
    dgm_metric *sentence; // sentence scores: BLEU with effective order
    dgm_text **refs;
    size_t ref_count, lines, width;
    int64_t *base, *rows; // [lines, width] of the first and of the current system
} evaluation;

static void close_evaluation(evaluation *e)
{
    dgm_metric_close(&e->metric);
    dgm_metric_close(&e->sentence);
    for (size_t r = 0; e->refs && r < e->ref_count; r++) dgm_free(e->refs[r]);
    dgm_free(e->refs);
    dgm_free(e->base);
    dgm_free(e->rows);
}

static dgm_status open_evaluation(evaluation *e, const dgm_eval_options *o,
                                  const dgm_line *const *refs, size_t ref_count, size_t lines,
                                  bool sentences, dgm_error *err)
{
    dgm_metric_options m;
    DGM_TRY(translate_options(o, &m, err));
    DGM_TRY(dgm_metric_open(&e->metric, &m, err));
    m.effective_order = true;
    if (sentences) DGM_TRY(dgm_metric_open(&e->sentence, &m, err));
    e->lines = lines;
    e->width = (size_t)dgm_metric_width(e->metric);
    e->refs = dgm_calloc(ref_count, sizeof *e->refs);
    e->base = dgm_calloc(lines, e->width * sizeof *e->base);
    e->rows = dgm_calloc(lines, e->width * sizeof *e->rows);
    if (!e->refs || !e->base || !e->rows) return dgm_no_memory(err);
    e->ref_count = ref_count;
    for (size_t r = 0; r < ref_count; r++)
        if (!(e->refs[r] = views(refs[r], lines))) return dgm_no_memory(err);
    return DGM_OK;
}

static dgm_status score_system(evaluation *e, const dgm_eval_options *o, const dgm_line *system,
                               bool first, dgm_eval_score *out, double *sentences, dgm_error *err)
{
    dgm_text *hyps = views(system, e->lines);
    if (!hyps) return dgm_no_memory(err);
    int64_t *rows = first ? e->base : e->rows;
    dgm_status st = dgm_metric_corpus(e->metric, hyps, e->lines, (const dgm_text *const *)e->refs,
                                      e->ref_count, rows, err);
    dgm_free(hyps);
    DGM_TRY(st);
    int64_t sum[DGM_METRIC_WIDTH_MAX];
    dgm_metric_score score;
    dgm_metric_sum(e->metric, rows, e->lines, sum);
    dgm_metric_score_of(e->metric, sum, &score);
    *out = (dgm_eval_score){0};
    out->score = score.score;
    out->brevity = score.brevity;
    memcpy(out->precisions, score.precisions, sizeof out->precisions);
    out->hyp_length = score.hyp_length;
    out->ref_length = score.ref_length;
    for (size_t i = 0; sentences && i < e->lines; i++) {
        dgm_metric_score_of(e->sentence, rows + i * e->width, &score);
        sentences[i] = score.score;
    }
    if (o->samples < 1) return DGM_OK;
    dgm_bootstrap b;
    DGM_TRY(dgm_metric_bootstrap(e->metric, rows, first ? NULL : e->base, e->lines, o->samples,
                                 o->seed, &b, err));
    out->mean = b.mean;
    out->half = b.half;
    out->p = first ? 1 : b.p;
    out->wins = first ? 0 : b.wins;
    if (first) return DGM_OK;
    dgm_metric_loss loss;
    DGM_TRY(dgm_metric_compare(e->metric, rows, e->base, e->lines, o->samples, o->seed, 0, &loss, err));
    out->difference = -loss.loss;
    out->difference_low = -loss.high;
    out->difference_high = -loss.low;
    return DGM_OK;
}

// The scores lie as far apart as the first one says.
static dgm_status check_scores(const dgm_eval_score *scores, size_t count, size_t *stride,
                               dgm_error *err)
{
    *stride = 0;
    if (!scores || count == 0) return DGM_OK;
    DGM_TRY(dgm_sized_room(scores, "dgm_eval_score", err));
    *stride = scores->size;
    for (size_t i = 1; i < count; i++) {
        size_t size;
        memcpy(&size, (const char *)scores + i * *stride, sizeof size);
        DGM_FAIL_IF(size != *stride, err, DGM_ERR_ARGUMENT,
                    "dgm_eval_score.size of system %zu is %zu, of the first one %zu: they must be "
                    "the same",
                    i + 1, size, *stride);
    }
    return DGM_OK;
}

dgm_status dgm_evaluate(const dgm_eval_options *given, const dgm_line *const *systems,
                        size_t system_count, const dgm_line *const *refs, size_t ref_count,
                        size_t lines, dgm_eval_score *scores, double *sentences, dgm_error *err)
{
    dgm_eval_options own;
    dgm_eval_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_eval_options", "dgm_eval_default", err));
    const dgm_eval_options *options = &own;
    size_t stride;
    DGM_TRY(check_scores(scores, system_count, &stride, err));
    DGM_FAIL_IF(ref_count < 1, err, DGM_ERR_ARGUMENT, "there is no reference");
    DGM_FAIL_IF(lines < 1, err, DGM_ERR_TEXT, "there is nothing to score: the files are empty");
    DGM_FAIL_IF(options->samples < 0 || options->samples > 1000000, err, DGM_ERR_ARGUMENT,
                "the number of samples must be between 0 and 1000000, not %d", options->samples);
    evaluation e = {0};
    dgm_status st = open_evaluation(&e, options, refs, ref_count, lines, sentences != NULL, err);
    for (size_t s = 0; st == DGM_OK && s < system_count; s++) {
        dgm_eval_score score;
        st = score_system(&e, options, systems[s], s == 0, &score,
                          sentences ? sentences + s * lines : NULL, err);
        if (st == DGM_OK && scores)
            dgm_sized_give((char *)scores + s * stride, stride, &score, sizeof score);
    }
    close_evaluation(&e);
    return st;
}

dgm_status dgm_eval_describe(const dgm_eval_options *given, size_t ref_count, char *name,
                             size_t name_size, char *signature, size_t signature_size,
                             dgm_error *err)
{
    dgm_eval_options own;
    dgm_eval_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_eval_options", "dgm_eval_default", err));
    const dgm_eval_options *options = &own;
    dgm_metric_options m;
    dgm_metric *metric = NULL;
    char text[256];
    DGM_TRY(translate_options(options, &m, err));
    DGM_TRY(dgm_metric_open(&metric, &m, err));
    if (name) dgm_metric_name(metric, name, name_size);
    dgm_metric_signature(metric, ref_count, text, sizeof text);
    if (signature) snprintf(signature, signature_size, "%s|version:dragoman-%s", text, DGM_VERSION);
    dgm_metric_close(&metric);
    return DGM_OK;
}
