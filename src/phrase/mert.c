// SPDX-License-Identifier: MIT
// Minimum error rate training; see mert.h.
#include "phrase/mert.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define REACH 20.0  // steps are not longer; weights add up to about 1
#define FAR 1.0     // a step into an interval without end
#define NARROW 1e-9 // intervals shorter than this are not looked at
#define GAIN 1e-6   // a step that gains less is not taken
enum { CYCLES_MAX = 30 };

typedef struct hyps {
    float *feature; // [count][features]
    int32_t *row;   // [count][width]
    size_t count, feature_cap, row_cap;
    uint32_t *slot; // [slots] 0 = free, else hypothesis + 1
    size_t slots;
} hyps;

struct dgm_mert_set {
    hyps *lists; // [sentences]
    size_t sentences;
    int features, width;
    const dgm_metric *metric;
};

dgm_status dgm_mert_set_open(dgm_mert_set **out, size_t sentences, int features,
                             const dgm_metric *metric, dgm_error *err)
{
    *out = NULL;
    DGM_FAIL_IF(features < 1 || features > DGM_MERT_FEATURES_MAX, err, DGM_ERR_ARGUMENT,
                "between 1 and %d features can be tuned, not %d", DGM_MERT_FEATURES_MAX, features);
    dgm_mert_set *s = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    s->lists = dgm_calloc(sentences + 1, sizeof *s->lists);
    s->sentences = sentences;
    s->features = features;
    s->width = dgm_metric_width(metric);
    s->metric = metric;
    dgm_status st = s->lists ? DGM_OK : dgm_no_memory(err);
    if (st != DGM_OK) dgm_mert_set_close(&s);
    *out = s;
    return st;
}

void dgm_mert_set_close(dgm_mert_set **out)
{
    dgm_mert_set *s = *out;
    if (!s) return;
    for (size_t i = 0; s->lists && i < s->sentences; i++) {
        dgm_free(s->lists[i].feature);
        dgm_free(s->lists[i].row);
        dgm_free(s->lists[i].slot);
    }
    dgm_free(s->lists);
    dgm_free(s);
    *out = NULL;
}

// ---- lists ------------------------------------------------------------------------------------

static size_t slot_of(const dgm_mert_set *s, const hyps *h, const float *feature,
                      const int32_t *row)
{
    size_t f = (size_t)s->features * sizeof *feature, w = (size_t)s->width * sizeof *row;
    uint64_t v = 0xcbf29ce484222325u;
    for (size_t i = 0; i < f; i++) v = (v ^ ((const uint8_t *)feature)[i]) * 0x100000001b3u;
    size_t mask = h->slots - 1, i = (size_t)(v ^ v >> 29) & mask;
    for (; h->slot[i]; i = (i + 1) & mask) {
        size_t k = h->slot[i] - 1;
        if (memcmp(h->feature + k * (size_t)s->features, feature, f) == 0 &&
            memcmp(h->row + k * (size_t)s->width, row, w) == 0)
            break;
    }
    return i;
}

static dgm_status widen(const dgm_mert_set *s, hyps *h, dgm_error *err)
{
    if ((h->count + 1) * 2 <= h->slots) return DGM_OK;
    size_t slots = h->slots ? h->slots * 2 : 64;
    uint32_t *slot = dgm_calloc(slots, sizeof *slot);
    if (!slot) return dgm_no_memory(err);
    dgm_free(h->slot);
    h->slot = slot;
    h->slots = slots;
    for (size_t k = 0; k < h->count; k++)
        slot[slot_of(s, h, h->feature + k * (size_t)s->features, h->row + k * (size_t)s->width)] =
            (uint32_t)k + 1;
    return DGM_OK;
}

dgm_status dgm_mert_set_add(dgm_mert_set *s, size_t sentence, const double *features,
                            const int64_t *row, dgm_error *err)
{
    hyps *h = &s->lists[sentence];
    size_t f = (size_t)s->features, w = (size_t)s->width;
    DGM_TRY(widen(s, h, err));
    DGM_TRY(dgm_grow(&h->feature, &h->feature_cap, (h->count + 1) * f, sizeof *h->feature, err));
    DGM_TRY(dgm_grow(&h->row, &h->row_cap, (h->count + 1) * w, sizeof *h->row, err));
    float *feature = h->feature + h->count * f;
    int32_t *counts = h->row + h->count * w;
    for (size_t k = 0; k < f; k++) feature[k] = (float)features[k] + 0.0f; // no -0
    for (size_t k = 0; k < w; k++) counts[k] = (int32_t)row[k];
    size_t i = slot_of(s, h, feature, counts);
    if (!h->slot[i]) h->slot[i] = (uint32_t)++h->count;
    return DGM_OK;
}

uint64_t dgm_mert_set_count(const dgm_mert_set *s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s->sentences; i++) n += s->lists[i].count;
    return n;
}

static double dot(const float *f, const double *w, int n)
{
    double sum = 0;
    for (int k = 0; k < n; k++) sum += (double)f[k] * w[k];
    return sum;
}

static void add_row(const dgm_mert_set *s, const hyps *h, size_t k, int sign, int64_t *sum)
{
    const int32_t *row = h->row + k * (size_t)s->width;
    for (int i = 0; i < s->width; i++) sum[i] += sign * (int64_t)row[i];
}

static double score_of(const dgm_mert_set *s, const int64_t *sum)
{
    dgm_metric_score out;
    dgm_metric_score_of(s->metric, sum, &out);
    return out.score;
}

double dgm_mert_set_score(const dgm_mert_set *s, const double *weights)
{
    int64_t sum[DGM_METRIC_WIDTH_MAX] = {0};
    for (size_t i = 0; i < s->sentences; i++) {
        const hyps *h = &s->lists[i];
        size_t best = 0;
        double most = -INFINITY;
        for (size_t k = 0; k < h->count; k++) {
            double v = dot(h->feature + k * (size_t)s->features, weights, s->features);
            if (v > most) {
                most = v;
                best = k;
            }
        }
        if (h->count) add_row(s, h, best, 1, sum);
    }
    return score_of(s, sum);
}

// ---- a line -----------------------------------------------------------------------------------

typedef struct crossing {
    double at;
    uint32_t sentence, before, after;
} crossing;

typedef struct line_scratch {
    double *value; // of all hypotheses under the weights, sentence by sentence
    double *slope; // of one sentence's, along the direction
    crossing *crossings;
    size_t value_cap, slope_cap, crossing_cap, count;
} line_scratch;

static void scratch_free(line_scratch *x)
{
    dgm_free(x->value);
    dgm_free(x->slope);
    dgm_free(x->crossings);
}

static int by_place(const void *a, const void *b)
{
    const crossing *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (x->sentence != y->sentence) return x->sentence < y->sentence ? -1 : 1;
    return x->before < y->before ? -1 : x->before > y->before;
}

// Values under weights, once for all lines that start from them.
static dgm_status set_values(const dgm_mert_set *s, const double *w, line_scratch *x,
                             dgm_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->sentences; i++) {
        const hyps *h = &s->lists[i];
        DGM_TRY(dgm_grow(&x->value, &x->value_cap, n + h->count, sizeof *x->value, err));
        for (size_t k = 0; k < h->count; k++)
            x->value[n++] = dot(h->feature + k * (size_t)s->features, w, s->features);
    }
    return DGM_OK;
}

// The best at the left end of what is looked at; ties: the one that falls slowest.
static size_t leftmost(const double *value, const double *slope, size_t count)
{
    size_t best = 0;
    for (size_t k = 1; k < count; k++) {
        double a = value[k] - REACH * slope[k], b = value[best] - REACH * slope[best];
        if (a > b || (a == b && slope[k] > slope[best])) best = k;
    }
    return best;
}

// Walks along the upper envelope from the left: the next best hypothesis is the steeper one that
// crosses first. A list has few of them, so this beats sorting all by slope.
static dgm_status walk(line_scratch *x, const double *value, size_t count, uint32_t sentence,
                       size_t from, dgm_error *err)
{
    const double *slope = x->slope;
    for (;;) {
        size_t next = from;
        double nearest = REACH;
        for (size_t k = 0; k < count; k++) {
            double steeper = slope[k] - slope[from];
            if (!(steeper > 0)) continue;
            double at = (value[from] - value[k]) / steeper;
            if (at < nearest || (at == nearest && next != from && slope[k] > slope[next])) {
                nearest = at;
                next = k;
            }
        }
        if (next == from) return DGM_OK;
        DGM_TRY(dgm_grow(&x->crossings, &x->crossing_cap, x->count + 1, sizeof *x->crossings, err));
        x->crossings[x->count++] = (crossing){nearest, sentence, (uint32_t)from, (uint32_t)next};
        from = next;
    }
}

// The crossings of all sentences; sum: counts of what is best on the far left. axis: the only
// feature that changes, or -1 and a direction.
static dgm_status collect(const dgm_mert_set *s, const double *d, int axis, line_scratch *x,
                          int64_t *sum, dgm_error *err)
{
    const double *value = x->value;
    x->count = 0;
    for (size_t i = 0; i < s->sentences; i++) {
        const hyps *h = &s->lists[i];
        if (!h->count) continue;
        DGM_TRY(dgm_grow(&x->slope, &x->slope_cap, h->count, sizeof *x->slope, err));
        for (size_t k = 0; k < h->count; k++) {
            const float *f = h->feature + k * (size_t)s->features;
            x->slope[k] = axis >= 0 ? (double)f[axis] : dot(f, d, s->features);
        }
        size_t first = leftmost(value, x->slope, h->count);
        add_row(s, h, first, 1, sum);
        DGM_TRY(walk(x, value, h->count, (uint32_t)i, first, err));
        value += h->count;
    }
    qsort(x->crossings, x->count, sizeof *x->crossings, by_place);
    return DGM_OK;
}

// Values must be set.
static dgm_status search_line(const dgm_mert_set *s, const double *d, int axis, line_scratch *x,
                              double *step, double *score, dgm_error *err)
{
    int64_t sum[DGM_METRIC_WIDTH_MAX] = {0};
    DGM_TRY(collect(s, d, axis, x, sum, err));
    *score = -1;
    *step = 0;
    for (size_t i = 0; i <= x->count; i++) {
        double left = i ? x->crossings[i - 1].at : -REACH;
        double right = i < x->count ? x->crossings[i].at : REACH;
        if (i) {
            const crossing *c = &x->crossings[i - 1];
            add_row(s, &s->lists[c->sentence], c->before, -1, sum);
            add_row(s, &s->lists[c->sentence], c->after, 1, sum);
        }
        if (!(right - left > NARROW)) continue;
        double v = score_of(s, sum);
        double middle = x->count == 0   ? 0
                        : i == 0        ? fmax(right - FAR, (left + right) / 2)
                        : i == x->count ? fmin(left + FAR, (left + right) / 2)
                                        : (left + right) / 2;
        // Of equal ones the interval nearest to where we are.
        if (v > *score + GAIN || (v > *score - GAIN && fabs(middle) < fabs(*step))) {
            if (v > *score) *score = v;
            *step = middle;
        }
    }
    return DGM_OK;
}

dgm_status dgm_mert_line(const dgm_mert_set *s, const double *weights, const double *direction,
                         double *step, double *score, dgm_error *err)
{
    line_scratch x = {0};
    dgm_status st = set_values(s, weights, &x, err);
    if (st == DGM_OK) st = search_line(s, direction, -1, &x, step, score, err);
    scratch_free(&x);
    return st;
}

// ---- search -----------------------------------------------------------------------------------

// Small, fast, good enough for directions (splitmix64).
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15u);
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

static double uniform(uint64_t *state)
{
    return (double)(next_random(state) >> 11) / 9007199254740992.0;
}

typedef struct attempt {
    double weights[DGM_MERT_FEATURES_MAX];
    double score;
    dgm_status status;
    dgm_error error;
} attempt;

typedef struct search_state {
    const dgm_mert_set *s;
    const dgm_mert_params *p;
    const double *given;
    attempt *attempts;
} search_state;

static bool is_fixed(const dgm_mert_params *p, int k)
{
    return p->fixed && p->fixed[k];
}

// Absolute values of what is tuned add up to 1: the scale says nothing about the best hypotheses.
static void normalise(const dgm_mert_set *s, const dgm_mert_params *p, double *w)
{
    double sum = 0;
    for (int k = 0; k < s->features; k++)
        if (!is_fixed(p, k)) sum += fabs(w[k]);
    for (int k = 0; k < s->features && sum > 0; k++)
        if (!is_fixed(p, k)) w[k] /= sum;
}

static void start_weights(const search_state *x, int item, uint64_t *random, double *w)
{
    memcpy(w, x->given, (size_t)x->s->features * sizeof *w);
    for (int k = 0; item > 0 && k < x->s->features; k++) {
        if (is_fixed(x->p, k)) continue;
        bool negative = !x->p->negative || x->p->negative[k];
        w[k] = negative ? 2 * uniform(random) - 1 : uniform(random);
    }
    normalise(x->s, x->p, w);
}

// The axes come first, then random directions, new ones in every cycle.
static void direction_of(const search_state *x, int number, int axes, const int *axis,
                         uint64_t *random, double *d)
{
    memset(d, 0, (size_t)x->s->features * sizeof *d);
    if (number < axes) {
        d[axis[number]] = 1;
        return;
    }
    for (int k = 0; k < axes; k++) d[axis[k]] = 2 * uniform(random) - 1;
}

static dgm_status climb(const search_state *x, attempt *a, uint64_t *random, dgm_error *err)
{
    line_scratch scratch = {0};
    int axis[DGM_MERT_FEATURES_MAX], axes = 0;
    for (int k = 0; k < x->s->features; k++)
        if (!is_fixed(x->p, k)) axis[axes++] = k;
    a->score = dgm_mert_set_score(x->s, a->weights);
    dgm_status st = set_values(x->s, a->weights, &scratch, err);
    bool gained = true;
    for (int cycle = 0; st == DGM_OK && gained && cycle < CYCLES_MAX; cycle++) {
        double before = a->score;
        for (int k = axes - 1; k > 0; k--) { // axes in another order every time
            int other = (int)(next_random(random) % (uint64_t)(k + 1)), t = axis[k];
            axis[k] = axis[other];
            axis[other] = t;
        }
        for (int n = 0; st == DGM_OK && n < axes + x->p->directions; n++) {
            double d[DGM_MERT_FEATURES_MAX], step, score;
            direction_of(x, n, axes, axis, random, d);
            st = search_line(x->s, d, n < axes ? axis[n] : -1, &scratch, &step, &score, err);
            if (st != DGM_OK || !(score > a->score + GAIN)) continue;
            double moved[DGM_MERT_FEATURES_MAX];
            for (int k = 0; k < x->s->features; k++) moved[k] = a->weights[k] + step * d[k];
            normalise(x->s, x->p, moved);
            // The sum of counts was exact, the scores of the hypotheses are rounded: look again.
            double real = dgm_mert_set_score(x->s, moved);
            if (real > a->score) {
                memcpy(a->weights, moved, (size_t)x->s->features * sizeof *moved);
                a->score = real;
                st = set_values(x->s, a->weights, &scratch, err);
            }
        }
        gained = a->score > before + 0.005; // hundredths of a BLEU are not worth a cycle
    }
    scratch_free(&scratch);
    return st;
}

static void attempt_item(void *arg, int worker, int item)
{
    search_state *x = arg;
    attempt *a = &x->attempts[item];
    uint64_t random = x->p->seed * 1000003u + (uint64_t)item;
    (void)worker;
    start_weights(x, item, &random, a->weights);
    a->status = climb(x, a, &random, &a->error);
}

dgm_status dgm_mert_search(const dgm_mert_set *s, const dgm_mert_params *p, double *weights,
                           double *score, dgm_error *err)
{
    int count = p->restarts + 1;
    search_state x = {.s = s, .p = p, .given = weights};
    x.attempts = dgm_calloc((size_t)count, sizeof *x.attempts);
    if (!x.attempts) return dgm_no_memory(err);
    if (p->pool)
        dgm_pool_run(p->pool, attempt_item, &x, count);
    else
        for (int i = 0; i < count; i++) attempt_item(&x, 0, i);
    dgm_status st = DGM_OK;
    int best = 0;
    for (int i = 0; st == DGM_OK && i < count; i++) {
        if (x.attempts[i].status != DGM_OK) {
            st = dgm_fail(err, x.attempts[i].status, "%s", x.attempts[i].error.text);
        } else if (x.attempts[i].score > x.attempts[best].score) {
            best = i;
        }
    }
    if (st == DGM_OK) {
        memcpy(weights, x.attempts[best].weights, (size_t)s->features * sizeof *weights);
        *score = x.attempts[best].score;
    }
    dgm_free(x.attempts);
    return st;
}
