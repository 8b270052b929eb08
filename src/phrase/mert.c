// SPDX-License-Identifier: MIT
// Minimum error rate training: lines through the space of weights, and the search over them; see
// mert.h.
#include "phrase/mert_private.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define FAR 1.0     // a step into an interval without end
#define NARROW 1e-9 // intervals shorter than this are not looked at
#define GAIN 1e-6   // a step that gains less is not taken
enum { CYCLES_MAX = 30 };

static double score_of(const dgm_mert_set *s, const int64_t *sum)
{
    dgm_metric_score out;
    dgm_metric_score_of(s->metric, sum, &out);
    return out.score;
}

static void add_row(const dgm_mert_set *s, const int32_t *row, int sign, int64_t *sum)
{
    for (int i = 0; i < s->width; i++) sum[i] += sign * (int64_t)row[i];
}

static const int32_t *best_of_list(const dgm_mert_set *s, const dgm_mert_offer *h,
                                   const double *weights)
{
    size_t best = 0;
    double most = -INFINITY;
    for (size_t k = 0; k < h->count; k++) {
        double v = dgm_mert_dot(h->feature + k * (size_t)s->features, weights, s->features);
        if (v > most) {
            most = v;
            best = k;
        }
    }
    return h->row + best * (size_t)s->width;
}

dgm_status dgm_mert_set_score(const dgm_mert_set *s, const double *weights, double *score,
                              dgm_error *err)
{
    int64_t sum[DGM_METRIC_WIDTH_MAX] = {0};
    int32_t row[DGM_METRIC_WIDTH_MAX];
    for (size_t i = 0; i < s->sentences; i++) {
        const dgm_mert_offer *h = &s->offers[i];
        if (h->end_count) {
            DGM_TRY(dgm_mert_best_path(s, i, weights, row, err));
            add_row(s, row, 1, sum);
        } else if (h->count) {
            add_row(s, best_of_list(s, h, weights), 1, sum);
        }
    }
    *score = score_of(s, sum);
    return DGM_OK;
}

// ---- a line -----------------------------------------------------------------------------------

static void scratch_free(dgm_mert_scratch *x)
{
    dgm_free(x->value);
    dgm_free(x->slope);
    dgm_free(x->crossings);
    dgm_free(x->rows);
    dgm_free(x->rays);
    dgm_free(x->merged[0]);
    dgm_free(x->merged[1]);
    dgm_free(x->first);
    dgm_free(x->words);
}

static int by_place(const void *a, const void *b)
{
    const dgm_mert_crossing *x = a, *y = b;
    if (x->at != y->at) return x->at < y->at ? -1 : 1;
    if (x->sentence != y->sentence) return x->sentence < y->sentence ? -1 : 1;
    return x->before < y->before ? -1 : x->before > y->before;
}

// Hypotheses of a list, arcs of a graph.
static size_t parts_of(const dgm_mert_offer *h)
{
    return h->end_count ? h->edge_count : h->count;
}

// Values under weights, once for all lines that start from them.
static dgm_status set_values(const dgm_mert_set *s, const double *w, dgm_mert_scratch *x,
                             dgm_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < s->sentences; i++) {
        const dgm_mert_offer *h = &s->offers[i];
        size_t parts = parts_of(h);
        DGM_TRY(dgm_grow(&x->value, &x->value_cap, n + parts, sizeof *x->value, err));
        for (size_t k = 0; k < parts; k++)
            x->value[n++] = dgm_mert_dot(h->feature + k * (size_t)s->features, w, s->features);
    }
    return DGM_OK;
}

// What becomes of a sentence along the line: the first segment counts on the far left, the others
// begin at crossings.
typedef struct sentence_segments {
    const dgm_mert_set *s;
    dgm_mert_scratch *x;
    int64_t *sum;
    uint32_t sentence;
    bool begun;
} sentence_segments;

static dgm_status add_segment(void *cookie, double from, const int32_t *row, dgm_error *err)
{
    sentence_segments *p = cookie;
    dgm_mert_scratch *x = p->x;
    size_t width = (size_t)p->s->width, n = x->row_count;
    DGM_TRY(dgm_grow(&x->rows, &x->rows_cap, (n + 1) * width, sizeof *x->rows, err));
    memcpy(x->rows + n * width, row, width * sizeof *row);
    x->row_count++;
    if (!p->begun) {
        p->begun = true;
        add_row(p->s, row, 1, p->sum);
        return DGM_OK;
    }
    DGM_TRY(dgm_grow(&x->crossings, &x->crossing_cap, x->count + 1, sizeof *x->crossings, err));
    x->crossings[x->count++] =
        (dgm_mert_crossing){from, p->sentence, (uint32_t)n - 1, (uint32_t)n};
    return DGM_OK;
}

// The best at the left end of what is looked at; ties: the one that falls slowest.
static size_t leftmost(const double *value, const double *slope, size_t count, double low)
{
    size_t best = 0;
    for (size_t k = 1; k < count; k++) {
        double a = value[k] + low * slope[k], b = value[best] + low * slope[best];
        if (a > b || (a == b && slope[k] > slope[best])) best = k;
    }
    return best;
}

// Walks along the upper envelope from the left: the next best hypothesis is the steeper one that
// crosses first. A list has few of them, so this beats sorting all by slope.
static dgm_status walk(sentence_segments *p, const dgm_mert_offer *h, const double *value,
                       dgm_error *err)
{
    const double *slope = p->x->slope;
    size_t from = leftmost(value, slope, h->count, p->x->low), width = (size_t)p->s->width;
    double at = p->x->low;
    for (;;) {
        size_t next = from;
        DGM_TRY(add_segment(p, at, h->row + from * width, err));
        at = p->x->high;
        for (size_t k = 0; k < h->count; k++) {
            double steeper = slope[k] - slope[from];
            if (!(steeper > 0)) continue;
            double here = (value[from] - value[k]) / steeper;
            if (here < at || (here == at && next != from && slope[k] > slope[next])) {
                at = here;
                next = k;
            }
        }
        if (next == from) return DGM_OK;
        from = next;
    }
}

// The crossings of all sentences; sum: counts of what is best on the far left. axis: the only
// feature that changes, or -1 and a direction.
static dgm_status collect(const dgm_mert_set *s, const double *d, int axis, dgm_mert_scratch *x,
                          int64_t *sum, dgm_error *err)
{
    const double *value = x->value;
    x->count = x->row_count = 0;
    for (size_t i = 0; i < s->sentences; i++) {
        const dgm_mert_offer *h = &s->offers[i];
        size_t parts = parts_of(h);
        if (!parts) continue;
        sentence_segments p = {.s = s, .x = x, .sum = sum, .sentence = (uint32_t)i};
        if (h->end_count) {
            DGM_TRY(dgm_mert_envelope(s, i, value, d, axis, x, add_segment, &p, err));
        } else {
            DGM_TRY(dgm_grow(&x->slope, &x->slope_cap, parts, sizeof *x->slope, err));
            for (size_t k = 0; k < parts; k++) {
                const float *f = h->feature + k * (size_t)s->features;
                x->slope[k] = axis >= 0 ? (double)f[axis] : dgm_mert_dot(f, d, s->features);
            }
            DGM_TRY(walk(&p, h, value, err));
        }
        value += parts;
    }
    if (x->count) qsort(x->crossings, x->count, sizeof *x->crossings, by_place);
    return DGM_OK;
}

// Values, and how far to look, must be set.
static dgm_status search_line(const dgm_mert_set *s, const double *d, int axis, dgm_mert_scratch *x,
                              double *step, double *score, dgm_error *err)
{
    int64_t sum[DGM_METRIC_WIDTH_MAX] = {0};
    DGM_TRY(collect(s, d, axis, x, sum, err));
    *score = -1;
    *step = 0;
    for (size_t i = 0; i <= x->count; i++) {
        double left = i ? x->crossings[i - 1].at : x->low;
        double right = i < x->count ? x->crossings[i].at : x->high;
        if (i) {
            const dgm_mert_crossing *c = &x->crossings[i - 1];
            add_row(s, x->rows + c->before * (size_t)s->width, -1, sum);
            add_row(s, x->rows + c->after * (size_t)s->width, 1, sum);
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
    dgm_mert_scratch x = {.low = -DGM_MERT_REACH, .high = DGM_MERT_REACH};
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

// How far weights w + step d, made to add up to 1, are from the given ones.
static double distance(const search_state *x, const double *w, double step, const double *d)
{
    double there[DGM_MERT_FEATURES_MAX], sum = 0;
    for (int k = 0; k < x->s->features; k++) there[k] = w[k] + step * d[k];
    normalise(x->s, x->p, there);
    for (int k = 0; k < x->s->features; k++) sum += fabs(there[k] - x->given[k]);
    return sum;
}

// The longest step, forwards or backwards, that stays within the radius; w lies inside.
static double reach(const search_state *x, const double *w, const double *d, double most)
{
    if (!(x->p->radius > 0) || distance(x, w, most, d) <= x->p->radius) return most;
    double inside = 0, outside = most;
    for (int i = 0; i < 40; i++) {
        double middle = (inside + outside) / 2;
        *(distance(x, w, middle, d) <= x->p->radius ? &inside : &outside) = middle;
    }
    return inside;
}

// Lines may leave the radius and come back, so steps are asked again.
static bool is_near(const search_state *x, const double *w)
{
    const double none[DGM_MERT_FEATURES_MAX] = {0};
    return !(x->p->radius > 0) || distance(x, w, 0, none) <= x->p->radius * (1 + 1e-9);
}

static void start_weights(const search_state *x, int item, uint64_t *random, double *w)
{
    double d[DGM_MERT_FEATURES_MAX] = {0};
    memcpy(w, x->given, (size_t)x->s->features * sizeof *w);
    for (int k = 0; item > 0 && k < x->s->features; k++) {
        if (is_fixed(x->p, k)) continue;
        bool negative = !x->p->negative || x->p->negative[k] || x->p->radius > 0;
        double *at = x->p->radius > 0 ? &d[k] : &w[k];
        *at = negative ? 2 * uniform(random) - 1 : uniform(random);
    }
    if (item > 0 && x->p->radius > 0) {
        double step = uniform(random) * reach(x, w, d, DGM_MERT_REACH);
        for (int k = 0; k < x->s->features; k++) w[k] += step * d[k];
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
    dgm_mert_scratch scratch = {0};
    int axis[DGM_MERT_FEATURES_MAX], axes = 0;
    for (int k = 0; k < x->s->features; k++)
        if (!is_fixed(x->p, k)) axis[axes++] = k;
    DGM_TRY(dgm_mert_set_score(x->s, a->weights, &a->score, err));
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
            scratch.low = reach(x, a->weights, d, -DGM_MERT_REACH);
            scratch.high = reach(x, a->weights, d, DGM_MERT_REACH);
            st = search_line(x->s, d, n < axes ? axis[n] : -1, &scratch, &step, &score, err);
            if (st != DGM_OK || !(score > a->score + GAIN)) continue;
            double moved[DGM_MERT_FEATURES_MAX];
            for (int k = 0; k < x->s->features; k++) moved[k] = a->weights[k] + step * d[k];
            normalise(x->s, x->p, moved);
            // The sum of counts was exact, the scores of the hypotheses are rounded: look again.
            double real;
            st = dgm_mert_set_score(x->s, moved, &real, err);
            if (st == DGM_OK && real > a->score && is_near(x, moved)) {
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
    double given[DGM_MERT_FEATURES_MAX];
    memcpy(given, weights, (size_t)s->features * sizeof *given);
    normalise(s, p, given);
    search_state x = {.s = s, .p = p, .given = given};
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
