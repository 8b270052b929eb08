// SPDX-License-Identifier: MIT
// BLEU as sacreBLEU computes it: counts of a segment, score of a sum; see metrics.h.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "metrics/metrics_private.h"

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

dgm_status dgm_bleu_check(const dgm_metric_options *o, dgm_error *err)
{
    DGM_FAIL_IF(o->max_order < 1 || o->max_order > DGM_BLEU_ORDER_MAX, err, DGM_ERR_ARGUMENT,
                "BLEU order must be 1 to %d, not %d", DGM_BLEU_ORDER_MAX, o->max_order);
    DGM_FAIL_IF((unsigned)o->tokenizer > DGM_BLEU_NONE || (unsigned)o->smooth > DGM_SMOOTH_NONE,
                err, DGM_ERR_ARGUMENT, "unknown BLEU tokenizer or smoothing");
    return DGM_OK;
}

int dgm_bleu_width(const dgm_metric_options *o)
{
    return 2 + 2 * o->max_order;
}

dgm_status dgm_bleu_row(dgm_metric *m, dgm_text hyp, const dgm_text *refs, size_t ref_count,
                        int64_t *row, dgm_error *err)
{
    int order = m->o.max_order;
    dgm_text text;
    dgm_grams_clear(m);
    DGM_TRY(dgm_metric_clean(m, hyp, &text, err));
    DGM_TRY(dgm_bleu_tokenize_raw(m->o.tokenizer, text, &m->hyp_text, &m->b, err));
    DGM_TRY(dgm_units_words(m, dgm_metric_view(&m->hyp_text), true, NULL, &m->hyp, err));
    DGM_TRY(dgm_grams_add(m, order, err));
    int64_t length = (int64_t)m->hyp.count, closest = -1;
    for (size_t r = 0; r < ref_count; r++) {
        if (!refs[r].data) continue;
        DGM_TRY(dgm_metric_clean(m, refs[r], &text, err));
        DGM_TRY(dgm_bleu_tokenize_raw(m->o.tokenizer, text, &m->a, &m->b, err));
        DGM_TRY(dgm_units_words(m, dgm_metric_view(&m->a), false, NULL, &m->ref, err));
        dgm_grams_match(m, order, true, row + 2);
        int64_t ref_length = (int64_t)m->ref.count;
        int64_t far = closest < 0 ? INT64_MAX : llabs(length - closest);
        int64_t gap = llabs(length - ref_length);
        if (gap < far || (gap == far && ref_length < closest)) closest = ref_length;
    }
    row[0] = length;
    row[1] = closest;
    for (int n = 1; n <= order; n++) row[1 + order + n] = dgm_gram_count(m->hyp.count, n);
    return DGM_OK;
}

void dgm_bleu_score(const dgm_metric_options *o, const int64_t *sum, dgm_metric_score *out)
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
