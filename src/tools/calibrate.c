// SPDX-License-Identifier: MIT
// Static scales of activations from a text; see calibrate.h.
//
// The observer is called by worker threads, one call per product: a lock guards the histograms.
// Counts do not depend on the order of the calls, and neither do the sums, which are kept as
// integers in units of 2^-20; so the number of threads does not change the result.
#include "tools/calibrate.h"

#include <math.h>
#include <string.h>

#include "backend/ops.h"
#include "base/mem.h"
#include "engine/engine_private.h"
#include "tools/chunks.h"

enum { BINS_PER_OCTAVE = 32, LOWEST = -20, OCTAVES = 40, BINS = BINS_PER_OCTAVE * OCTAVES };
static const double unit = 1 << 20; // of the sums

typedef struct layer {
    const dgm_linear *linear;
    uint64_t rows, bins[BINS];
    double sum, squares; // whole numbers: of max |x| * unit, and of its square / unit
    float max;
} layer;

typedef struct watch {
    pthread_mutex_t lock;
    layer **layers;
    size_t count, cap;
    bool failed; // out of memory
} watch;

static int bin_of(float v)
{
    if (!(v > 0)) return 0;
    int b = (int)floor((log2((double)v) - LOWEST) * BINS_PER_OCTAVE);
    return b < 0 ? 0 : b >= BINS ? BINS - 1 : b;
}

static layer *find_layer(watch *w, const dgm_linear *linear)
{
    for (size_t i = 0; i < w->count; i++)
        if (w->layers[i]->linear == linear) return w->layers[i];
    if (dgm_grow(&w->layers, &w->cap, w->count + 1, sizeof *w->layers, NULL) != DGM_OK) return NULL;
    layer *l = dgm_calloc(1, sizeof *l);
    if (!l) return NULL;
    l->linear = linear;
    w->layers[w->count++] = l;
    return l;
}

static void look(void *cookie, const dgm_linear *linear, const float *largest, int rows)
{
    watch *w = cookie;
    pthread_mutex_lock(&w->lock);
    layer *l = find_layer(w, linear);
    if (!l) w->failed = true;
    for (int i = 0; l && i < rows; i++) {
        if (!isfinite(largest[i])) continue;
        double v = rint((double)largest[i] * unit);
        l->bins[bin_of(largest[i])]++;
        l->rows++;
        l->sum += v;
        l->squares += rint(v * v / unit);
        if (largest[i] > l->max) l->max = largest[i];
    }
    pthread_mutex_unlock(&w->lock);
}

// ---- from histograms to scales ------------------------------------------------------------------

// Upper end of the bin that holds the quantile; never above the maximum.
static double quantile(const layer *l, double q)
{
    uint64_t want = (uint64_t)ceil(q * (double)l->rows), seen = 0;
    if (want < 1) want = 1;
    int b = 0;
    for (; b < BINS - 1; b++) {
        seen += l->bins[b];
        if (seen >= want) break;
    }
    double v = exp2((double)(b + 1) / BINS_PER_OCTAVE + LOWEST);
    return fmin(v, (double)l->max);
}

static double clipped_share(const layer *l, double limit)
{
    uint64_t above = 0;
    for (int b = bin_of((float)limit) + 1; b < BINS; b++) above += l->bins[b];
    return (double)above / (double)l->rows;
}

static dgm_quantize_input describe(const layer *l, double saturate)
{
    double n = (double)l->rows, mean = l->sum / unit / n;
    double variance = l->squares / unit / n - mean * mean;
    dgm_quantize_input in = {
        .size = sizeof in,
        .rows = l->rows,
        .mean = mean,
        .deviation = variance > 0 ? sqrt(variance) : 0,
        .median = quantile(l, 0.5),
        .q90 = quantile(l, 0.9),
        .q99 = quantile(l, 0.99),
        .q999 = quantile(l, 0.999),
        .max = (double)l->max,
    };
    double limit = quantile(l, 1 - saturate);
    in.clipped = clipped_share(l, limit);
    in.scale = limit > 1e-6 ? limit / 127 : 1; // a layer that only ever saw zeros
    return in;
}

// The entry of a weight, a new one if it has none yet.
static dgm_quantize_input *entry(dgm_calibration *c, const char *name)
{
    for (size_t i = 0; i < c->count; i++)
        if (strcmp(c->inputs[i].name, name) == 0) return &c->inputs[i];
    return &c->inputs[c->count];
}

static dgm_status add_entry(dgm_calibration *c, const char *weight, dgm_quantize_input in,
                            dgm_error *err)
{
    dgm_quantize_input *to = entry(c, weight);
    const size_t at = (size_t)(to - c->inputs);
    if (at < c->count && to->scale >= in.scale) return DGM_OK;
    in.name = at < c->count ? to->name : dgm_strdup(weight);
    if (!in.name) return dgm_no_memory(err);
    *to = in;
    const float values[DGM_INPUT_SCALE_SIZE] = {
        (float)in.scale, (float)in.mean, (float)in.deviation, (float)in.median,
        (float)in.q90,   (float)in.q99,  (float)in.q999,      (float)in.max};
    memcpy(c->values[at], values, sizeof values);
    if (at == c->count) c->count++;
    return DGM_OK;
}

// One entry per weight: the parts of a layer, which see the same input, get the same numbers. A weight
// that was cut into several products, each for other columns, gets those of the largest scale.
static dgm_status collect(dgm_calibration *c, const watch *w, double saturate, dgm_error *err)
{
    size_t n = 0;
    for (size_t i = 0; i < w->count; i++)
        for (int p = 0; dgm_linear_tensor(w->layers[i]->linear, p); p++) n++;
    c->inputs = dgm_calloc(n ? n : 1, sizeof *c->inputs);
    c->values = dgm_calloc(n ? n : 1, sizeof *c->values);
    if (!c->inputs || !c->values) return dgm_no_memory(err);
    for (size_t i = 0; i < w->count; i++) {
        const layer *l = w->layers[i];
        if (l->rows == 0) continue;
        const dgm_quantize_input in = describe(l, saturate);
        const dgm_tensor *t;
        for (int p = 0; (t = dgm_linear_tensor(l->linear, p)) != NULL; p++)
            DGM_TRY(add_entry(c, t->name, in, err));
    }
    return DGM_OK;
}

// ---- the text -----------------------------------------------------------------------------------

static dgm_status count_results(void *cookie, const dgm_results *r, dgm_error *err)
{
    dgm_calibration *c = cookie;
    (void)err;
    c->lines += r->count;
    c->source_tokens += r->source_tokens;
    c->target_tokens += r->target_tokens;
    return DGM_OK;
}

static dgm_status watch_text(dgm_translator *t, watch *w, const dgm_quantize_options *o,
                             dgm_calibration *c, dgm_error *err)
{
    const dgm_chunks chunks = {.text = o->calibrate,
                               .done = count_results,
                               .cookie = c,
                               .stage = "calibrating",
                               .progress = o->progress};
    const dgm_observer observer = {.inputs = look, .cookie = w};
    dgm_workers_observe(t, &observer);
    const dgm_status st = dgm_chunks_translate(&chunks, t, err);
    dgm_workers_observe(t, NULL);
    DGM_TRY(st);
    if (w->failed) return dgm_no_memory(err);
    DGM_FAIL_IF(c->source_tokens == 0, err, DGM_ERR_TEXT, "'%s' has no text to calibrate with",
                o->calibrate);
    return collect(c, w, o->saturate, err);
}

dgm_status dgm_calibrate(dgm_calibration *c, const char *model, const dgm_quantize_options *o,
                         dgm_error *err)
{
    *c = (dgm_calibration){0};
    watch w = {0};
    if (pthread_mutex_init(&w.lock, NULL) != 0) return dgm_no_memory(err);
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.raw = 1;
    settings.precision = "f32";
    settings.threads = o->threads;
    dgm_translator *t = NULL;
    dgm_status st = dgm_open(&t, model, &settings, err);
    if (st == DGM_OK) st = watch_text(t, &w, o, c, err);
    dgm_close(&t);
    for (size_t i = 0; i < w.count; i++) dgm_free(w.layers[i]);
    dgm_free(w.layers);
    pthread_mutex_destroy(&w.lock);
    if (st != DGM_OK) dgm_calibration_free(c);
    return st;
}

void dgm_calibration_free(dgm_calibration *c)
{
    for (size_t i = 0; c->inputs && i < c->count; i++)
        dgm_free((void *)(uintptr_t)c->inputs[i].name);
    dgm_free(c->inputs);
    dgm_free(c->values);
    *c = (dgm_calibration){0};
}
