// SPDX-License-Identifier: MIT
// Paired bootstrap resampling over rows of counts, and the names of metrics; see metrics.h.
//
// The test is sacreBLEU's (and Moses'): segments are drawn with replacement, the same draw for both
// systems; the differences |system - baseline| of all samples, moved to mean zero, tell how often
// a difference at least as large as the observed one comes by chance:
//
//     p = (1 + #{ d_i - mean(d) > |observed| }) / (1 + samples)
//
// and 1 for two systems that never differ. The half of the 95 % interval is half the distance
// between the 2.5 % and 97.5 % quantiles.
#include <math.h>
#include <stdio.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sort.h"
#include "metrics/metrics_private.h"

static int compare_scores(const void *scores, uint32_t a, uint32_t b)
{
    double x = ((const double *)scores)[a], y = ((const double *)scores)[b];
    return (x > y) - (x < y);
}

static double mean_of(const double *values, int count)
{
    double sum = 0;
    for (int i = 0; i < count; i++) sum += values[i];
    return sum / count;
}

// order [count] is scratch.
static void interval(const double *scores, int count, uint32_t *order, double *mean, double *half)
{
    *mean = mean_of(scores, count);
    dgm_sort_indices(order, (size_t)count, compare_scores, scores);
    int low = count / 40;
    *half = 0.5 * (scores[order[count - low - 1]] - scores[order[low]]);
}

static void add_row(int64_t *sum, const int64_t *rows, size_t i, int width)
{
    const int64_t *row = rows + i * (size_t)width;
    for (int k = 0; k < width; k++) sum[k] += row[k];
}

static double score_of(const dgm_metric *m, const int64_t *sum)
{
    dgm_metric_score s;
    dgm_metric_score_of(m, sum, &s);
    return s.score;
}

// Scores of every sample: own [samples], other [samples] when base is given.
static void draw_samples(const dgm_metric *m, const int64_t *rows, const int64_t *base,
                         size_t count, int samples, uint64_t seed, double *own, double *other)
{
    int width = dgm_metric_width(m);
    dgm_rng rng = {seed};
    for (int s = 0; s < samples; s++) {
        int64_t sum[DGM_METRIC_WIDTH_MAX] = {0}, base_sum[DGM_METRIC_WIDTH_MAX] = {0};
        for (size_t i = 0; i < count; i++) {
            size_t pick = (size_t)dgm_rng_below(&rng, count);
            add_row(sum, rows, pick, width);
            if (base) add_row(base_sum, base, pick, width);
        }
        own[s] = score_of(m, sum);
        if (base) other[s] = score_of(m, base_sum);
    }
}

static void judge(const double *own, const double *other, int samples, dgm_bootstrap *out,
                  double *differences)
{
    int wins = 0, beyond = 0;
    double observed = fabs(out->score - out->base_score);
    for (int s = 0; s < samples; s++) {
        differences[s] = fabs(own[s] - other[s]);
        wins += own[s] > other[s];
    }
    double mean = mean_of(differences, samples);
    if (mean == 0) { // the same output: the formula would call that significant
        out->wins = 0;
        return;
    }
    for (int s = 0; s < samples; s++) beyond += differences[s] - mean > observed;
    out->p = (beyond + 1.0) / (samples + 1.0);
    out->wins = (double)wins / samples;
}

dgm_status dgm_metric_bootstrap(const dgm_metric *m, const int64_t *rows, const int64_t *base,
                                size_t count, int samples, uint64_t seed, dgm_bootstrap *out,
                                dgm_error *err)
{
    *out = (dgm_bootstrap){.p = 1};
    DGM_FAIL_IF(count == 0, err, DGM_ERR_ARGUMENT, "nothing to resample: no segments");
    DGM_FAIL_IF(samples < 1 || samples > 10000000, err, DGM_ERR_ARGUMENT,
                "number of bootstrap samples must be 1 to 10000000");
    double *own = dgm_malloc((size_t)samples * sizeof *own);
    double *other = dgm_malloc((size_t)samples * sizeof *other);
    double *differences = dgm_malloc((size_t)samples * sizeof *differences);
    uint32_t *order = dgm_malloc((size_t)samples * sizeof *order);
    dgm_status st = own && other && differences && order ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        int64_t sum[DGM_METRIC_WIDTH_MAX];
        dgm_metric_sum(m, rows, count, sum);
        out->score = score_of(m, sum);
        if (base) {
            dgm_metric_sum(m, base, count, sum);
            out->base_score = score_of(m, sum);
        }
        draw_samples(m, rows, base, count, samples, seed, own, other);
        if (base) judge(own, other, samples, out, differences);
        interval(own, samples, order, &out->mean, &out->half);
        if (base) interval(other, samples, order, &out->base_mean, &out->base_half);
    }
    dgm_free(own);
    dgm_free(other);
    dgm_free(differences);
    dgm_free(order);
    return st;
}

dgm_status dgm_metric_compare(const dgm_metric *m, const int64_t *rows, const int64_t *base, size_t count, int samples,
                              uint64_t seed, double budget, dgm_metric_loss *out, dgm_error *err)
{
    int64_t sum[DGM_METRIC_WIDTH_MAX], base_sum[DGM_METRIC_WIDTH_MAX];
    double *own = dgm_malloc((size_t)samples * 2 * sizeof *own), *other = own ? own + samples : NULL;
    uint32_t *order = dgm_malloc((size_t)samples * sizeof *order);
    const dgm_status st = own && order ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        dgm_metric_sum(m, rows, count, sum);
        dgm_metric_sum(m, base, count, base_sum);
        *out = (dgm_metric_loss){.loss = score_of(m, base_sum) - score_of(m, sum)};
        draw_samples(m, rows, base, count, samples, seed, own, other);
        int within = 0;
        for (int s = 0; s < samples; s++) {
            own[s] = other[s] - own[s];
            within += own[s] <= budget;
        }
        dgm_sort_indices(order, (size_t)samples, compare_scores, own);
        out->low = own[order[samples / 40]];
        out->high = own[order[samples - samples / 40 - 1]];
        out->within = (double)within / samples;
    }
    dgm_free(own);
    dgm_free(order);
    return st;
}

void dgm_metric_name(const dgm_metric *m, char *out, size_t size)
{
    const dgm_metric_options *o = dgm_metric_get_options(m);
    if (o->kind == DGM_METRIC_BLEU)
        snprintf(out, size, "BLEU");
    else
        snprintf(out, size, "chrF%g%.*s", o->beta, o->word_order, "++++");
}

void dgm_metric_signature(const dgm_metric *m, size_t ref_count, char *out, size_t size)
{
    const dgm_metric_options *o = dgm_metric_get_options(m);
    char refs[24], smooth[40];
    if (ref_count)
        snprintf(refs, sizeof refs, "%zu", ref_count);
    else
        snprintf(refs, sizeof refs, "var");
    const char *letters = o->lowercase ? "lc" : "mixed";
    if (o->kind == DGM_METRIC_CHRF) {
        snprintf(out, size, "nrefs:%s|case:%s|eff:yes|nc:%d|nw:%d|space:%s", refs, letters,
                 o->char_order, o->word_order, o->whitespace ? "yes" : "no");
        return;
    }
    snprintf(smooth, sizeof smooth, "%s", dgm_bleu_smooth_name(o->smooth));
    if (o->smooth == DGM_SMOOTH_FLOOR || o->smooth == DGM_SMOOTH_ADD_K) {
        double value = o->smooth_value;
        if (value < 0) value = o->smooth == DGM_SMOOTH_FLOOR ? 0.1 : 1;
        snprintf(smooth, sizeof smooth, "%s[%.2f]", dgm_bleu_smooth_name(o->smooth), value);
    }
    snprintf(out, size, "nrefs:%s|case:%s|eff:%s|tok:%s|smooth:%s", refs, letters,
             o->effective_order ? "yes" : "no", dgm_bleu_tokenizer_name(o->tokenizer), smooth);
}
