// SPDX-License-Identifier: MIT
// `dragoman mbr` behind its command line: minimum Bayes risk over an n-best list.
//
// Of a line's translations the one with the highest expected score against all of them is chosen,
//
//     gain(e) = sum over e' of P(e') score(e; reference e'),   P = softmax of scale * score
//
// which is quadratic in the size of the list; the n-grams of each are counted once (pairwise.h).
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "score/posterior.h"
#include "metrics/pairwise.h"

struct dgm_mbr {
    dgm_pairwise *pairs;
    double scale;
    double *weights, *gains;
    size_t weights_cap, gains_cap;
};

void dgm_mbr_init(dgm_mbr_options *out, size_t size)
{
    dgm_mbr_options own, *const o = &own;
    *o = (dgm_mbr_options){.utility = "bleu", .scale = 1};
    dgm_sized_give(out, size, &own, sizeof own);
}

void dgm_mbr_close(dgm_mbr **at)
{
    if (!at || !*at) return;
    dgm_mbr *m = *at;
    *at = NULL;
    dgm_pairwise_close(&m->pairs);
    dgm_free(m->weights);
    dgm_free(m->gains);
    dgm_free(m);
}

dgm_status dgm_mbr_open(dgm_mbr **at, const dgm_mbr_options *given, dgm_error *err)
{
    dgm_metric_options o;
    *at = NULL;
    dgm_mbr_options own;
    dgm_mbr_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_mbr_options", "dgm_mbr_default", err));
    const dgm_mbr_options *options = &own;
    const char *utility = options->utility ? options->utility : "bleu";
    const bool bleu = strcmp(utility, "bleu") == 0;
    DGM_FAIL_IF(!bleu && strcmp(utility, "chrf") != 0, err, DGM_ERR_ARGUMENT,
                "unknown utility '%s': known are bleu, chrf", utility);
    DGM_FAIL_IF(!(options->scale >= 0 && options->scale <= 1e6), err, DGM_ERR_ARGUMENT,
                "the scale must be between 0 and 1e+06, not %g", options->scale);
    dgm_metric_options_default(&o, bleu ? DGM_METRIC_BLEU : DGM_METRIC_CHRF);
    o.effective_order = true; // of sentences
    if (options->tokenize)
        DGM_FAIL_IF(!dgm_bleu_tokenizer_of(options->tokenize, &o.tokenizer), err, DGM_ERR_ARGUMENT,
                    "unknown tokeniser '%s'", options->tokenize);
    dgm_mbr *m = dgm_calloc(1, sizeof *m);
    if (!m) return dgm_no_memory(err);
    m->scale = options->scale;
    const dgm_status st = dgm_pairwise_open(&m->pairs, &o, err);
    if (st != DGM_OK)
        dgm_mbr_close(&m);
    else
        *at = m;
    return st;
}

dgm_status dgm_mbr_choose(dgm_mbr *m, const dgm_evidence *given, size_t *best, const double **gains,
                          dgm_error *err)
{
    dgm_evidence own = {0}, *const list = &own;
    DGM_TRY(dgm_sized_take(&own, sizeof own, given, "dgm_evidence", "dgm_evidence_default", err));
    const size_t n = list->count;
    DGM_FAIL_IF(n == 0, err, DGM_ERR_ARGUMENT, "there is no translation to choose");
    DGM_TRY(dgm_grow(&m->weights, &m->weights_cap, n, sizeof *m->weights, err));
    DGM_TRY(dgm_grow(&m->gains, &m->gains_cap, n, sizeof *m->gains, err));
    dgm_pairwise_clear(m->pairs);
    for (size_t i = 0; i < n; i++) {
        const dgm_evidence_candidate *g = &list->candidates[i];
        DGM_FAIL_IF(!isfinite(g->score), err, DGM_ERR_TEXT,
                    "the score of translation %zu is not a finite number", i + 1);
        DGM_TRY(dgm_pairwise_add(m->pairs, (dgm_text){g->text, g->size}, err));
        m->weights[i] = g->score;
        m->gains[i] = 0;
    }
    dgm_evidence_weights(m->weights, n, m->scale);
    for (size_t i = 0; i < n; i++)
        for (size_t k = i; k < n; k++) {
            double a, b;
            dgm_pairwise_score(m->pairs, i, k, &a, &b);
            m->gains[i] += m->weights[k] * a;
            if (k != i) m->gains[k] += m->weights[i] * b;
        }
    *best = 0;
    for (size_t i = 1; i < n; i++)
        if (m->gains[i] > m->gains[*best]) *best = i; // equal ones: the first
    if (gains) *gains = m->gains;
    return DGM_OK;
}
