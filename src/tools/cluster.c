// SPDX-License-Identifier: MIT
// `dragoman cluster` behind its command line: clusters of a model's hidden vectors.
//
//     text --translate, whole vocabulary--> vectors and best tokens of every step    (record.c)
//          --evenly spread sample--> k-means                                         (kmeans.c)
//          --every vector, the centroids as stored that are nearest to it--> lists of best tokens
//          --> model file                                                            (clusters.c)
//
// Lists come from all vectors, not from the sample: rare words would be lost. Centroids are rounded
// to half precision first, so that a vector is counted where the decoder will look.
//
// As published a list is the union of the best K tokens of all vectors nearest to the centroid
// (near 1, least 0). A rare word then is in few lists, and a vector that falls on the other side of
// a border misses it. So a vector also counts, by less, for the next centroids, and by less for its
// lower ranks; what weighs next to nothing for the number of vectors that a centroid has is left
// out. For lists of the same length that halves the misses (docs/results/CLUSTERS.md).
//
//     weight of t at c = sum over vectors v, c the j-th nearest of v, t the r-th best of v:
//                        nearness[j] * 2 / (r * r + 1);   t is listed where it is > least * hits(c)
//
// Memory: the sample, a bit per centroid and token, a block of the file of vectors, and the weights
// of as many tokens as fit in WEIGHTS bytes: larger vocabularies take several walks.
#include <stdio.h>
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"
#include "base/outfile.h"
#include "base/sized.h"
#include "base/textfile.h"
#include "engine/engine_private.h"
#include "tools/record.h"
#include "format/clusters.h"
#include "format/idlists.h"
#include "format/rewrite.h"
#include "tools/kmeans.h"

enum { BLOCK = 8192, PER_CENTROID = 256, ITERATIONS_MAX = 10000, NEAR_MAX = 8, WEIGHTS = 1 << 28 };

static const float nearness[NEAR_MAX] = {1, 0.5f, 0.25f, 0.15f, 0.1f, 0.07f, 0.05f, 0.04f};

typedef struct work {
    const dgm_cluster_options *o;
    dgm_record record;
    dgm_gguf *file;
    dgm_backend *backend;
    dgm_pool *pool;
    dgm_kmeans k;
    uint16_t *sample; // [k.count, width]
    float *centroids; // [centroids, width], as stored
    uint16_t *halves; // the same
    uint64_t *bits;   // [centroids, words]
    size_t words;
    uint64_t *hits; // [centroids]
    float *weights; // [centroids, window]: of the tokens from `first` on
    int first, window;
    // a block of the file
    uint16_t *vectors;
    int32_t *predictions, *found;
    dgm_clusters out;
    dgm_cluster_report report;
} work;

void dgm_cluster_init(dgm_cluster_options *out, size_t size)
{
    dgm_cluster_options own, *const o = &own;
    *o = (dgm_cluster_options){.centroids = 600,
                               .best = 16,
                               .near = 6,
                               .least = 1e-5,
                               .record_best = 16,
                               .iterations = 20,
                               .seed = 1,
                               .beam = 1,
                               .threads = 1};
    dgm_sized_give(out, size, &own, sizeof own);
}

static dgm_status check_options(const dgm_cluster_options *o, dgm_error *err)
{
    DGM_FAIL_IF(!o, err, DGM_ERR_ARGUMENT, "cluster: options are missing");
    DGM_FAIL_IF(o->centroids < 1 || o->centroids > DGM_CLUSTERS_MAX, err, DGM_ERR_ARGUMENT,
                "the number of centroids must be between 1 and %d, not %d", DGM_CLUSTERS_MAX,
                o->centroids);
    DGM_FAIL_IF(o->best < 1 || o->best > o->record_best, err, DGM_ERR_ARGUMENT,
                "the best tokens that join a list must be between 1 and the %d recorded ones, not "
                "%d",
                o->record_best, o->best);
    DGM_FAIL_IF(o->record_best > DGM_CLUSTERS_BEST_MAX, err, DGM_ERR_ARGUMENT,
                "at most %d tokens of a vector are recorded, not %d", DGM_CLUSTERS_BEST_MAX,
                o->record_best);
    DGM_FAIL_IF(o->near < 1 || o->near > NEAR_MAX, err, DGM_ERR_ARGUMENT,
                "a vector counts for 1 to %d centroids, not %d", NEAR_MAX, o->near);
    DGM_FAIL_IF(!(o->least >= 0 && o->least < 1), err, DGM_ERR_ARGUMENT,
                "the least weight must be at least 0 and below 1, not %g", o->least);
    DGM_FAIL_IF(o->iterations < 0 || o->iterations > ITERATIONS_MAX, err, DGM_ERR_ARGUMENT,
                "the number of iterations must be between 0 and %d, not %d", ITERATIONS_MAX,
                o->iterations);
    DGM_FAIL_IF(o->threads < 0 || o->threads > 1024, err, DGM_ERR_ARGUMENT,
                "the number of threads must be between 0 and 1024, not %d", o->threads);
    return DGM_OK;
}

static void work_close(work *w)
{
    dgm_record_close(&w->record);
    dgm_gguf_close(&w->file);
    dgm_pool_close(&w->pool);
    dgm_backend_close(&w->backend);
    dgm_free(w->sample);
    dgm_free(w->centroids);
    dgm_free(w->halves);
    dgm_free(w->bits);
    dgm_free(w->hits);
    dgm_free(w->weights);
    dgm_free(w->vectors);
    dgm_free(w->predictions);
    dgm_free(w->found);
    dgm_free(w->out.at);
    dgm_free(w->out.ids);
}

static dgm_status open_devices(work *w, dgm_error *err)
{
    const int threads = w->o->threads ? w->o->threads : dgm_cpu_count();
    DGM_TRY(dgm_pool_open(&w->pool, threads, err));
    DGM_TRY(dgm_backend_open(&w->backend, w->record.device, NULL, err));
    w->k = (dgm_kmeans){.backend = w->backend,
                        .pool = w->pool,
                        .width = w->record.width,
                        .iterations = w->o->iterations,
                        .seed = w->o->seed};
    w->vectors = dgm_malloc(BLOCK * (size_t)w->record.width * sizeof *w->vectors);
    w->predictions = dgm_malloc(BLOCK * (size_t)w->record.best * sizeof *w->predictions);
    w->found = dgm_malloc(BLOCK * NEAR_MAX * sizeof *w->found);
    return w->vectors && w->predictions && w->found ? DGM_OK : dgm_no_memory(err);
}

// ---- languages ----------------------------------------------------------------------------------

// The languages that the block is for: "" where the options say any, else the codes of what was
// translated; of a model that does not say its languages, what the options say.
static const char *language(const char *asked, const char *translated)
{
    return asked && (!asked[0] || !translated[0]) ? asked : translated;
}

static int find_block(const work *w, const dgm_gguf *g)
{
    return dgm_clusters_find(g, language(w->o->source, w->record.source),
                             language(w->o->target, w->record.target));
}

// ---- k-means ------------------------------------------------------------------------------------

static int tick(void *cookie, double share)
{
    const work *w = cookie;
    const dgm_progress *p = &w->o->progress;
    return p->tick ? p->tick(p->cookie, "clustering", share) : 0;
}

// Vectors number floor(i * all / wanted).
static dgm_status take_sample(work *w, dgm_error *err)
{
    const dgm_cluster_options *o = w->o;
    const uint64_t all = w->record.records, width = (uint64_t)w->record.width;
    DGM_FAIL_IF(all < (uint64_t)o->centroids, err, DGM_ERR_TEXT,
                "the text gives %llu vectors, too few for %d centroids", (unsigned long long)all,
                o->centroids);
    uint64_t wanted = o->sample ? o->sample : (uint64_t)o->centroids * PER_CENTROID;
    if (wanted < (uint64_t)o->centroids) wanted = (uint64_t)o->centroids;
    if (wanted > all) wanted = all;
    DGM_FAIL_IF(wanted > INT32_MAX / 2, err, DGM_ERR_ARGUMENT,
                "a sample of %llu vectors is too large", (unsigned long long)wanted);
    w->sample = dgm_malloc(wanted * width * sizeof *w->sample);
    if (!w->sample) return dgm_no_memory(err);
    DGM_TRY(dgm_record_rewind(&w->record, err));
    uint64_t seen = 0, taken = 0;
    for (size_t n = 1; n && taken < wanted; seen += n) {
        DGM_TRY(dgm_record_next(&w->record, BLOCK, w->vectors, w->predictions, &n, err));
        for (uint64_t at;
             taken < wanted &&
             (at = (uint64_t)((double)taken * (double)all / (double)wanted)) < seen + n;
             taken++)
            memcpy(w->sample + taken * width, w->vectors + (at - seen) * width,
                   width * sizeof *w->sample);
    }
    w->k.vectors = w->sample;
    w->k.count = taken;
    w->k.centroids = o->centroids;
    w->k.tick = tick;
    w->k.cookie = w;
    w->report.sample = taken;
    return DGM_OK;
}

static dgm_status learn(work *w, dgm_error *err)
{
    const size_t size = (size_t)w->o->centroids * (size_t)w->record.width;
    double *loss = dgm_calloc((size_t)w->o->iterations + 1, sizeof *loss);
    w->centroids = dgm_malloc(size * sizeof *w->centroids);
    w->halves = dgm_malloc(size * sizeof *w->halves);
    dgm_status st = loss && w->centroids && w->halves ? take_sample(w, err) : dgm_no_memory(err);
    if (st == DGM_OK) st = dgm_kmeans_run(&w->k, w->centroids, loss, err);
    if (st == DGM_OK) {
        w->report.first_loss = loss[0];
        w->report.loss = loss[w->o->iterations];
        for (size_t i = 0; i < size; i++) {
            w->halves[i] = dgm_float_to_half(w->centroids[i]);
            w->centroids[i] = dgm_half_to_float(w->halves[i]);
        }
    }
    dgm_free(loss);
    dgm_free(w->sample);
    w->sample = NULL;
    return st;
}

// The centroids of a model that has clusters, in place of k-means.
static dgm_status borrow(work *w, const char *path, dgm_error *err)
{
    dgm_gguf *g = NULL;
    dgm_clusters_view v = {0};
    DGM_TRY(dgm_modelfile_open(&g, path, err));
    const int block = find_block(w, g);
    dgm_status st = block < 0
                        ? dgm_fail(err, DGM_ERR_UNSUPPORTED, "%s: the model has no clusters", path)
                        : dgm_clusters_view_open(&v, g, block, err);
    if (st == DGM_OK && (v.width != w->record.width || v.count != w->o->centroids))
        st = dgm_fail(err, DGM_ERR_ARGUMENT, "%s: %d centroids of %d numbers, not %d of %d", path,
                      v.count, v.width, w->o->centroids, w->record.width);
    if (st == DGM_OK) {
        const size_t size = (size_t)v.count * (size_t)v.width;
        w->centroids = dgm_malloc(size * sizeof *w->centroids);
        w->halves = dgm_malloc(size * sizeof *w->halves);
        if (!w->centroids || !w->halves) st = dgm_no_memory(err);
    }
    if (st == DGM_OK) {
        dgm_tensor_to_f32(v.centroids, w->centroids);
        memcpy(w->halves, v.centroids->data, v.centroids->bytes);
    }
    dgm_clusters_view_close(&v);
    dgm_gguf_close(&g);
    return st;
}

// ---- every vector -------------------------------------------------------------------------------

// What becomes of a block whose nearest centroids are in w->found.
typedef void (*taker)(work *w, size_t count, void *cookie);

static dgm_status walk(work *w, int centroids, int near, taker take, void *cookie, dgm_error *err)
{
    dgm_nearest *nearest = NULL;
    dgm_kmeans_lanes *lanes = NULL;
    dgm_status st =
        dgm_nearest_open(&nearest, w->backend, w->centroids, centroids, w->record.width, err);
    if (st == DGM_OK) st = dgm_kmeans_lanes_open(&lanes, &w->k, centroids, near, err);
    if (st == DGM_OK) st = dgm_record_rewind(&w->record, err);
    for (size_t n = 1; st == DGM_OK && n;) {
        st = dgm_record_next(&w->record, BLOCK, w->vectors, w->predictions, &n, err);
        if (st != DGM_OK) break;
        if (n) dgm_kmeans_find(lanes, nearest, w->vectors, n, w->found, NULL);
        take(w, n, cookie);
    }
    dgm_kmeans_lanes_close(&lanes);
    dgm_nearest_close(&nearest);
    return st;
}

static void weigh(work *w, size_t count, void *cookie)
{
    (void)cookie;
    const size_t best = (size_t)w->record.best, near = (size_t)w->o->near;
    for (size_t i = 0; i < count; i++) {
        const int32_t *found = w->found + i * near, *ids = w->predictions + i * best;
        if (w->first == 0) w->hits[found[0]]++;
        for (size_t j = 0; j < near && found[j] >= 0; j++) {
            float *weights = w->weights + (size_t)found[j] * (size_t)w->window;
            for (int r = 0; r < w->o->best; r++) {
                const int32_t id = ids[r] - w->first;
                if (ids[r] >= w->first && id < w->window)
                    weights[id] += nearness[j] * 2 / (float)((r + 1) * (r + 1) + 1);
            }
        }
    }
}

// Bits of the window's tokens that weigh enough.
static void choose(work *w)
{
    for (int c = 0; c < w->o->centroids; c++) {
        const float *weights = w->weights + (size_t)c * (size_t)w->window;
        const float least = (float)(w->o->least * (double)w->hits[c]);
        uint64_t *bits = w->bits + (size_t)c * w->words;
        for (int i = 0; i < w->window && w->first + i < w->out.targets; i++)
            if (weights[i] > least)
                bits[(w->first + i) >> 6] |= (uint64_t)1 << ((w->first + i) & 63);
    }
}

static dgm_status weigh_all(work *w, dgm_error *err)
{
    const size_t centroids = (size_t)w->o->centroids;
    const size_t room = WEIGHTS / (centroids * sizeof *w->weights);
    w->window = room < (size_t)w->out.targets ? (int)room : w->out.targets;
    w->weights = dgm_malloc(centroids * (size_t)w->window * sizeof *w->weights);
    if (!w->weights) return dgm_no_memory(err);
    for (w->first = 0; w->first < w->out.targets; w->first += w->window) {
        memset(w->weights, 0, centroids * (size_t)w->window * sizeof *w->weights);
        DGM_TRY(walk(w, w->o->centroids, w->o->near, weigh, NULL, err));
        choose(w);
    }
    return DGM_OK;
}

// The bits as lists; what ends a sentence is in all of them.
static dgm_status write_lists(work *w, const dgm_vocab_spec *target, dgm_error *err)
{
    const int end = dgm_modelfile_end(target);
    uint64_t entries = 0, n = 0;
    for (int c = 0; c < w->o->centroids; c++) {
        uint64_t *bits = w->bits + (size_t)c * w->words;
        if (end >= 0) bits[end >> 6] |= (uint64_t)1 << (end & 63);
        for (size_t i = 0; i < w->words; i++) entries += (uint64_t)__builtin_popcountll(bits[i]);
    }
    w->out.ids = dgm_malloc(entries * sizeof *w->out.ids);
    if (!w->out.ids) return dgm_no_memory(err);
    for (int c = 0; c < w->o->centroids; c++) {
        for (size_t i = 0; i < w->words; i++)
            for (uint64_t left = w->bits[(size_t)c * w->words + i]; left; left &= left - 1)
                w->out.ids[n++] = (int32_t)(i * 64) + __builtin_ctzll(left);
        w->out.at[c + 1] = n;
    }
    return DGM_OK;
}

static dgm_status make_lists(work *w, dgm_error *err)
{
    const size_t centroids = (size_t)w->o->centroids;
    dgm_vocab_spec target = {0};
    DGM_TRY(dgm_modelfile_vocab(w->file, DGM_TARGET, &target, err));
    w->out.targets = target.size;
    w->words = ((size_t)target.size + 63) / 64;
    w->bits = dgm_calloc(centroids * w->words, sizeof *w->bits);
    w->hits = dgm_calloc(centroids, sizeof *w->hits);
    w->out.at = dgm_calloc(centroids + 1, sizeof *w->out.at);
    if (!w->bits || !w->hits || !w->out.at) return dgm_no_memory(err);
    DGM_TRY(weigh_all(w, err));
    return write_lists(w, &target, err);
}

static void summarise(work *w)
{
    dgm_cluster_report *r = &w->report;
    const double targets = (double)w->out.targets;
    double sum = 0;
    r->lines = w->record.lines;
    r->vectors = w->record.records;
    r->centroids = w->o->centroids;
    r->targets = w->out.targets;
    r->least = 1;
    for (int c = 0; c < w->o->centroids; c++) {
        const double share = (double)(w->out.at[c + 1] - w->out.at[c]) / targets;
        sum += share * (double)w->hits[c];
        r->empty += w->hits[c] == 0;
        if (share < r->least) r->least = share;
        if (share > r->most) r->most = share;
    }
    r->share = r->vectors ? sum / (double)r->vectors : 0;
}

// ---- files --------------------------------------------------------------------------------------

static dgm_status write_model(work *w, const char *path, const dgm_clusters *c, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    DGM_TRY(dgm_rewrite_open(&out, w->file, NULL, err));
    return dgm_rewrite_finish(&out, path, dgm_clusters_store(c, w->file, out, err), err);
}

static dgm_status store(work *w, const char *output, dgm_error *err)
{
    w->out.source = language(w->o->source, w->record.source);
    w->out.target = language(w->o->target, w->record.target);
    w->out.count = w->o->centroids;
    w->out.width = w->record.width;
    w->out.best = w->o->best;
    w->out.centroids = w->halves;
    DGM_TRY(write_model(w, output, &w->out, err));
    dgm_gguf *written = NULL;
    dgm_clusters_view v = {0};
    dgm_status st = dgm_gguf_open(&written, output, err);
    const int block = st == DGM_OK ? dgm_clusters_find(written, w->out.source, w->out.target) : 0;
    if (st == DGM_OK) st = dgm_clusters_view_open(&v, written, block, err);
    if (st == DGM_OK) w->report.bytes = v.centroids->bytes + v.at[v.count];
    dgm_clusters_view_close(&v);
    dgm_gguf_close(&written);
    return st;
}

static dgm_status check_output(const char *output, dgm_error *err)
{
    DGM_FAIL_IF(!output, err, DGM_ERR_ARGUMENT, "no output file is given");
    return dgm_outfile_probe(output, err);
}

static dgm_status make(work *w, const char *model, const char *output, dgm_error *err)
{
    const dgm_cluster_options *o = w->o;
    if (o->remove) {
        DGM_TRY(dgm_modelfile_open(&w->file, model, err));
        return write_model(w, output, NULL, err);
    }
    DGM_FAIL_IF(!o->text, err, DGM_ERR_ARGUMENT, "a text to learn clusters from is missing");
    DGM_TRY(dgm_record_text(&w->record, model, o->text, o->vectors, o, err));
    DGM_TRY(dgm_modelfile_open(&w->file, model, err));
    DGM_TRY(open_devices(w, err));
    DGM_TRY(o->from ? borrow(w, o->from, err) : learn(w, err));
    DGM_TRY(make_lists(w, err));
    summarise(w);
    return store(w, output, err);
}

dgm_status dgm_cluster_make(const char *model, const char *output,
                            const dgm_cluster_options *options, dgm_cluster_report *report,
                            dgm_error *err)
{
    dgm_cluster_options own;
    dgm_cluster_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_cluster_options", "dgm_cluster_default",
                           err));
    DGM_TRY(dgm_sized_room(report, "dgm_cluster_report", err));
    DGM_TRY(check_options(options ? &own : NULL, err));
    DGM_TRY(check_output(output, err));
    work w = {.o = &own};
    dgm_status st = make(&w, model, output, err);
    if (st == DGM_OK) dgm_sized_fill(report, &w.report, sizeof w.report);
    work_close(&w);
    return st;
}

// ---- measuring ----------------------------------------------------------------------------------

typedef struct gauge {
    const dgm_clusters_view *view;
    dgm_cluster_measure *m;
    uint64_t inside, tokens; // best tokens in the lists, sizes of these
} gauge;

static void count_hits(work *w, size_t count, void *cookie)
{
    gauge *g = cookie;
    for (size_t i = 0; i < count; i++) {
        const int32_t id = w->predictions[i * (size_t)w->record.best];
        const uint64_t *bits = w->bits + (size_t)w->found[i] * w->words;
        g->m->hits[w->found[i]]++;
        g->tokens += g->m->sizes[w->found[i]];
        g->inside += id >= 0 && bits[id >> 6] >> (id & 63) & 1;
    }
}

static dgm_status measure_view(work *w, gauge *g, dgm_error *err)
{
    const dgm_clusters_view *v = g->view;
    dgm_cluster_measure *m = g->m;
    const size_t count = (size_t)v->count;
    DGM_FAIL_IF(v->width != w->record.width, err, DGM_ERR_FORMAT,
                "the centroids have %d numbers, the model's hidden vectors %d", v->width,
                w->record.width);
    w->words = ((size_t)v->targets + 63) / 64;
    w->bits = dgm_calloc(count * w->words, sizeof *w->bits);
    w->centroids = dgm_malloc(count * (size_t)v->width * sizeof *w->centroids);
    m->hits = dgm_calloc(count, sizeof *m->hits);
    m->sizes = dgm_calloc(count, sizeof *m->sizes);
    if (!w->bits || !w->centroids || !m->hits || !m->sizes) return dgm_no_memory(err);
    dgm_tensor_to_f32(v->centroids, w->centroids);
    for (size_t c = 0; c < count; c++) {
        dgm_idlists_mark(v->lists + v->at[c], w->bits + c * w->words);
        m->sizes[c] = (uint32_t)dgm_idlists_length(v->lists + v->at[c]);
    }
    DGM_TRY(walk(w, v->count, 1, count_hits, g, err));
    m->lines = w->record.lines;
    m->vectors = w->record.records;
    m->centroids = v->count;
    for (size_t c = 0; c < count; c++) m->used += m->hits[c] > 0;
    if (!m->vectors) return DGM_OK;
    m->share = (double)g->tokens / (double)m->vectors / (double)v->targets;
    m->recall = (double)g->inside / (double)m->vectors;
    return DGM_OK;
}

static dgm_status test_text(work *w, const char *model, const char *text, gauge *g, dgm_error *err)
{
    DGM_TRY(dgm_modelfile_open(&w->file, model, err));
    DGM_FAIL_IF(dgm_clusters_blocks(w->file) == 0, err, DGM_ERR_UNSUPPORTED,
                "%s: the model has no clusters (make them with 'dragoman cluster')", model);
    DGM_TRY(dgm_record_text(&w->record, model, text, w->o->vectors, w->o, err));
    const int block = find_block(w, w->file);
    DGM_FAIL_IF(
        block < 0, err, DGM_ERR_UNSUPPORTED,
        "%s: the model has no clusters for '%s' to '%s' (make them with 'dragoman cluster')", model,
        w->record.source, w->record.target);
    dgm_clusters_view view = {0};
    DGM_TRY(dgm_clusters_view_open(&view, w->file, block, err));
    g->view = &view;
    dgm_status st = open_devices(w, err);
    if (st == DGM_OK) st = measure_view(w, g, err);
    dgm_clusters_view_close(&view);
    return st;
}

// A caller's struct that ends before them cannot hold the lists.
#define LISTS_END (offsetof(dgm_cluster_measure, sizes) + sizeof(uint32_t *))

// Those of `m`, which the caller's struct then has no more.
static void free_lists(dgm_cluster_measure *m, dgm_cluster_measure *given)
{
    dgm_free(m->hits);
    dgm_free(m->sizes);
    *m = (dgm_cluster_measure){0};
    dgm_sized_fill(given, m, sizeof *m);
}

dgm_status dgm_cluster_test(const char *model, const char *text, const dgm_cluster_options *options,
                            dgm_cluster_measure *measure, dgm_error *err)
{
    DGM_TRY(dgm_sized_room(measure, "dgm_cluster_measure", err));
    dgm_cluster_measure m = {0};
    dgm_sized_fill(measure, &m, sizeof m);
    dgm_cluster_options o;
    dgm_cluster_default(&o);
    DGM_TRY(
        dgm_sized_take(&o, sizeof o, options, "dgm_cluster_options", "dgm_cluster_default", err));
    DGM_TRY(check_options(options ? &o : NULL, err));
    o.best = 1;
    if (!o.vectors) o.record_best = 1;
    o.lines = 0;
    work w = {.o = &o};
    gauge g = {.m = &m};
    const dgm_status st = test_text(&w, model, text, &g, err);
    work_close(&w);
    if (st == DGM_OK) dgm_sized_fill(measure, &m, sizeof m);
    if (st != DGM_OK || !measure || measure->size < LISTS_END) free_lists(&m, measure);
    return st;
}

void dgm_cluster_free(dgm_cluster_measure *measure)
{
    dgm_cluster_measure m = {0};
    if (dgm_sized_take(&m, sizeof m, measure, "dgm_cluster_measure", NULL, NULL) == DGM_OK)
        free_lists(&m, measure);
}
