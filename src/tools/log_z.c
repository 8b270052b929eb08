// SPDX-License-Identifier: MIT
// `dragoman inspect --log-z`: the softmax sums of a model along forced translations.
//
// Self-normalised training adds alpha (log Z)^2 to the loss of every word, so that raw numbers of
// the output layer can be taken for log-probabilities. How well that went is seen here: forced
// decoding (pairs.c) gives log Z of every target token; their moments and quantiles are the report.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"

enum { WINDOW = 4096 };

typedef struct values {
    float *items;
    size_t count, cap;
} values;

static dgm_status add_pairs(dgm_translator *t, const dgm_pair *pairs, size_t count, values *v,
                            dgm_log_z *out, dgm_error *err)
{
    dgm_pair_scores *scores = NULL;
    DGM_TRY(dgm_score_pairs(t, pairs, count, &scores, err));
    dgm_status st = DGM_OK;
    for (size_t i = 0; st == DGM_OK && i < count; i++) {
        const dgm_pair_score *s = scores->items[i];
        if (s->status != DGM_OK) {
            out->failed++;
            continue;
        }
        st = dgm_grow(&v->items, &v->cap, v->count + s->token_count, sizeof *v->items, err);
        if (st != DGM_OK) break;
        memcpy(v->items + v->count, s->log_z, s->token_count * sizeof *v->items);
        v->count += s->token_count;
        out->lines++;
    }
    dgm_pair_scores_free(&scores);
    return st;
}

// The lines' own translations in place of references.
static dgm_status add_translated(dgm_translator *t, dgm_pair *pairs, size_t count, values *v,
                                 dgm_log_z *out, dgm_error *err)
{
    dgm_input *inputs = dgm_calloc(count, sizeof *inputs);
    if (!inputs) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        inputs[i].size = sizeof inputs[i];
        inputs[i].text = pairs[i].source.data;
        inputs[i].text_size = pairs[i].source.size;
    }
    dgm_results *results = NULL;
    dgm_status st = dgm_translate_inputs(t, inputs, count, &results, err);
    dgm_free(inputs);
    DGM_TRY(st);
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        const char *text = dgm_result_text(results->items[i]);
        if (results->items[i]->status == DGM_OK)
            pairs[kept++] = (dgm_pair){pairs[i].source, {text, strlen(text)}};
        else
            out->failed++;
    }
    st = add_pairs(t, pairs, kept, v, out, err);
    dgm_results_free(&results);
    return st;
}

static int rising(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

static void summarise(const values *v, dgm_log_z *out)
{
    static const double shares[9] = {0, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 1};
    const double n = (double)v->count;
    double sum = 0, absolute = 0, square = 0;
    for (size_t i = 0; i < v->count; i++) {
        sum += (double)v->items[i];
        absolute += fabs((double)v->items[i]);
    }
    out->tokens = v->count;
    out->mean = sum / n;
    out->mean_absolute = absolute / n;
    for (size_t i = 0; i < v->count; i++) {
        const double d = (double)v->items[i] - out->mean;
        square += d * d;
    }
    out->deviation = sqrt(square / n);
    qsort(v->items, v->count, sizeof *v->items, rising);
    for (int i = 0; i < 9; i++)
        out->quantiles[i] = (double)v->items[(size_t)(shares[i] * (n - 1) + 0.5)];
}

dgm_status dgm_log_z_measure(dgm_translator *t, const dgm_line *sources, const dgm_line *targets,
                             size_t count, dgm_log_z *given, dgm_error *err)
{
    DGM_TRY(dgm_sized_room(given, "dgm_log_z", err));
    dgm_log_z own = {0}, *const out = &own;
    dgm_sized_fill(given, &own, sizeof own);
    DGM_FAIL_IF(!t || !t->config.normalise, err, DGM_ERR_ARGUMENT,
                "log Z is the sum of a softmax: it must not be switched off");
    dgm_pair *pairs = dgm_calloc(WINDOW, sizeof *pairs);
    if (!pairs) return dgm_no_memory(err);
    values v = {0};
    dgm_status st = DGM_OK;
    for (size_t first = 0; st == DGM_OK && first < count; first += WINDOW) {
        const size_t n = count - first < WINDOW ? count - first : WINDOW;
        for (size_t i = 0; i < n; i++) {
            pairs[i].source = sources[first + i];
            if (targets) pairs[i].target = targets[first + i];
        }
        st = targets ? add_pairs(t, pairs, n, &v, out, err)
                     : add_translated(t, pairs, n, &v, out, err);
    }
    if (st == DGM_OK && v.count == 0)
        st = dgm_fail(err, DGM_ERR_TEXT, "there is no line to measure log Z on");
    if (st == DGM_OK) summarise(&v, out);
    dgm_sized_fill(given, &own, sizeof own);
    dgm_free(v.items);
    dgm_free(pairs);
    return st;
}
