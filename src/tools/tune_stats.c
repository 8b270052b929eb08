// SPDX-License-Identifier: MIT
// Decisions of a tuning run, from numbers alone: speeds with intervals out of interleaved measurements, who is dropped,
// who goes on, the front, the choice. Nothing here runs a model or reads a clock.
#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "base/sort.h"
#include "tools/tune_private.h"

// ---- speed -------------------------------------------------------------------------------------

// Alternating means of a table with two ways and holes. Occasions add up to nothing.
typedef struct fit {
    const dgm_tune_timing *t;
    size_t count;
    int trials, occasions;
    double *of_trial, *of_occasion; // effects
    double *sum;                    // scratch, [max(trials, occasions)]
    uint32_t *seen_trial, *seen_occasion;
} fit;

// What is left of the measurements becomes the effect of one side; returns the largest change.
static double sweep(fit *f, bool occasions)
{
    const int n = occasions ? f->occasions : f->trials;
    double *own = occasions ? f->of_occasion : f->of_trial, largest = 0;
    const double *other = occasions ? f->of_trial : f->of_occasion;
    const uint32_t *seen = occasions ? f->seen_occasion : f->seen_trial;
    memset(f->sum, 0, (size_t)n * sizeof *f->sum);
    for (size_t i = 0; i < f->count; i++) {
        const dgm_tune_timing *m = &f->t[i];
        f->sum[occasions ? m->occasion : m->trial] += m->log_time - other[occasions ? m->trial : m->occasion];
    }
    for (int i = 0; i < n; i++) {
        if (!seen[i]) continue;
        const double next = f->sum[i] / seen[i];
        largest = fmax(largest, fabs(next - own[i]));
        own[i] = next;
    }
    return largest;
}

static void centre(fit *f)
{
    double sum = 0;
    for (size_t i = 0; i < f->count; i++) sum += f->of_occasion[f->t[i].occasion];
    const double mean = f->count ? sum / (double)f->count : 0;
    for (int i = 0; i < f->occasions; i++) f->of_occasion[i] -= mean;
    for (int i = 0; i < f->trials; i++)
        if (f->seen_trial[i]) f->of_trial[i] += mean;
}

// Noise of one measurement. Few measurements say little of it: four of 3 % are added to them.
static double noise_of(const fit *f)
{
    static const double usual = 0.03, weight = 4;
    double squares = usual * usual * weight, parameters = -1;
    for (int i = 0; i < f->trials; i++) parameters += f->seen_trial[i] > 0;
    for (int i = 0; i < f->occasions; i++) parameters += f->seen_occasion[i] > 0;
    for (size_t i = 0; i < f->count; i++) {
        const dgm_tune_timing *m = &f->t[i];
        const double rest = m->log_time - f->of_trial[m->trial] - f->of_occasion[m->occasion];
        squares += rest * rest;
    }
    return sqrt(squares / (fmax((double)f->count - parameters, 0) + weight));
}

dgm_status dgm_tune_fit(const dgm_tune_timing *t, size_t count, int trials, int occasions, double *mean, double *half,
                        double *noise, dgm_error *err)
{
    enum { SWEEPS = 500 };
    const size_t most = (size_t)(trials > occasions ? trials : occasions) + 1;
    fit f = {.t = t, .count = count, .trials = trials, .occasions = occasions, .of_trial = mean};
    f.of_occasion = dgm_calloc(most * 2, sizeof(double));
    f.seen_trial = dgm_calloc(most * 2, sizeof(uint32_t));
    const bool fine = f.of_occasion && f.seen_trial;
    if (fine) {
        f.sum = f.of_occasion + most;
        f.seen_occasion = f.seen_trial + most;
        memset(mean, 0, (size_t)trials * sizeof *mean);
        for (size_t i = 0; i < count; i++) {
            f.seen_trial[t[i].trial]++;
            f.seen_occasion[t[i].occasion]++;
        }
        double change = 1;
        for (int i = 0; i < SWEEPS && change > 1e-10; i++) change = fmax(sweep(&f, false), sweep(&f, true));
        centre(&f);
        *noise = noise_of(&f);
        for (int i = 0; i < trials; i++) half[i] = f.seen_trial[i] ? 1.96 * *noise / sqrt(f.seen_trial[i]) : 0;
    }
    dgm_free(f.of_occasion);
    dgm_free(f.seen_trial);
    return fine ? DGM_OK : dgm_no_memory(err);
}

// ---- who goes on -------------------------------------------------------------------------------

const char *dgm_tune_state_text(dgm_tune_state s)
{
    static const char *const texts[] = {
        [DGM_TUNE_RACING] = "in the race to the end",
        [DGM_TUNE_OVER] = "over the budget",
        [DGM_TUNE_SLOWER] = "slower than one within the budget",
        [DGM_TUNE_BEATEN] = "slower and worse than another",
        [DGM_TUNE_HALVED] = "others promised more",
        [DGM_TUNE_NO_TIME] = "no time for more lines",
        [DGM_TUNE_MEMORY] = "needs too much memory",
        [DGM_TUNE_VARIANT] = "the same translations",
        [DGM_TUNE_AGAINST] = "given",
    };
    return texts[s];
}

// Share of samples within the budget below which a part of the text is enough to give a setting up. Intervals of few
// lines are too narrow, and with dozens of settings one in forty is no rare event.
#define HOPELESS 0.005

static bool surely_faster(const dgm_tune_view *a, const dgm_tune_view *b)
{
    return a->speed - b->speed > sqrt(a->half * a->half + b->half * b->half);
}

void dgm_tune_drop(const dgm_tune_view *v, size_t count, size_t lines, double budget, double sure, size_t careful,
                   dgm_tune_state *state)
{
    for (size_t i = 0; i < count; i++) {
        if (i == careful || state[i] != DGM_TUNE_RACING) continue;
        if (v[i].lines == lines ? v[i].low > budget : v[i].within < HOPELESS) state[i] = DGM_TUNE_OVER;
    }
    for (size_t i = 0; i < count; i++) {
        if (i == careful || state[i] != DGM_TUNE_RACING) continue;
        for (size_t k = 0; k < count && state[i] == DGM_TUNE_RACING; k++) {
            // Nobody is beaten by what was seen on fewer lines.
            if (k == i || state[k] != DGM_TUNE_RACING || v[k].lines < v[i].lines) continue;
            if (!surely_faster(&v[k], &v[i])) continue;
            // Of many that are fast some are lucky on few lines: nobody goes because of them.
            if (v[k].lines == lines && v[k].within >= sure)
                state[i] = DGM_TUNE_SLOWER;
            else if (v[k].high < v[i].low)
                state[i] = DGM_TUNE_BEATEN;
        }
    }
}

// What a trial promises: the logarithm of its gain, as far as it is likely to be within the budget.
static double promise(const dgm_tune_view *v, const dgm_tune_view *careful)
{
    const double gain = v->speed - careful->speed;
    return gain > 0 ? gain * v->within : gain;
}

typedef struct ranking {
    const dgm_tune_view *v;
    const dgm_tune_state *state;
    size_t careful;
} ranking;

static int by_promise(const void *context, uint32_t a, uint32_t b)
{
    const ranking *r = context;
    const bool x = r->state[a] == DGM_TUNE_RACING && a != r->careful;
    const bool y = r->state[b] == DGM_TUNE_RACING && b != r->careful;
    if (x != y) return x ? -1 : 1;
    const double p = promise(&r->v[a], &r->v[r->careful]), q = promise(&r->v[b], &r->v[r->careful]);
    if (p != q) return p > q ? -1 : 1;
    return a < b ? -1 : a > b;
}

size_t dgm_tune_rank(const dgm_tune_view *v, const dgm_tune_state *state, size_t count, size_t careful, uint32_t *order)
{
    const ranking r = {v, state, careful};
    size_t racing = 0;
    dgm_sort_indices(order, count, by_promise, &r);
    for (size_t i = 0; i < count; i++) racing += state[i] == DGM_TUNE_RACING && i != careful;
    return racing;
}

void dgm_tune_front(const dgm_tune_view *v, size_t count, size_t lines, bool *front)
{
    for (size_t i = 0; i < count; i++) {
        front[i] = v[i].lines >= lines;
        for (size_t k = 0; k < count && front[i]; k++) {
            if (k == i || v[k].lines < lines) continue;
            const bool no_worse = v[k].speed >= v[i].speed && v[k].loss <= v[i].loss;
            const bool better = v[k].speed > v[i].speed || v[k].loss < v[i].loss || k < i;
            if (no_worse && better) front[i] = false;
        }
    }
}

size_t dgm_tune_choose(const dgm_tune_view *v, size_t count, size_t lines, double sure)
{
    static const double equal = 0.01; // speeds nearer than this are taken for the same
    size_t fastest = SIZE_MAX, best = SIZE_MAX;
    for (size_t i = 0; i < count; i++) {
        if (v[i].lines < lines || v[i].within < sure) continue;
        if (fastest == SIZE_MAX || v[i].speed > v[fastest].speed) fastest = i;
    }
    for (size_t i = 0; i < count && fastest != SIZE_MAX; i++) {
        if (v[i].lines < lines || v[i].within < sure) continue;
        if (v[fastest].speed - v[i].speed > fmin(equal, v[i].half)) continue;
        if (best == SIZE_MAX || v[i].loss < v[best].loss) best = i;
    }
    return best;
}

double dgm_tune_lines_for(const dgm_tune_view *v, double budget, double sure)
{
    const double spread = (v->high - v->low) / (2 * 1.96);
    if (!(v->loss < budget) || !(spread > 0)) return INFINITY;
    double low = 0, high = 6; // how many spreads away the budget has to be
    for (int i = 0; i < 60; i++) {
        const double middle = (low + high) / 2;
        *(erfc(-middle / sqrt(2)) / 2 < sure ? &low : &high) = middle;
    }
    const double have = (budget - v->loss) / spread;
    return (double)v->lines * (low / have) * (low / have);
}

int dgm_tune_rungs(size_t lines, size_t *rungs)
{
    enum { LEAST = 40, MOST = 32 };
    int count = 1;
    size_t size = lines;
    while (size / 2 >= LEAST && count < MOST) {
        size = (size + 1) / 2;
        count++;
    }
    for (int i = count - 1, k = 0; i >= 0; i--, k++) {
        rungs[i] = lines >> k;
        if (k && (lines & (((size_t)1 << k) - 1))) rungs[i]++;
    }
    return count;
}
