// SPDX-License-Identifier: MIT
// `dragoman cluster` behind its command line: clusters of a model's hidden vectors.
//
//     text --translate, whole vocabulary--> vectors and best tokens of every step    (record.c)
//          --evenly spread sample--> k-means                                         (kmeans.c)
//          --every vector, the nearest centroids as stored--> lists of best tokens   (cluster_lists.c)
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
// Memory: the sample, what the lists need, and a block of the file of vectors. Clusters of many directions
// are learnt one direction after the other (cluster_directions.c).
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/outfile.h"
#include "base/sized.h"
#include "engine/engine_private.h"
#include "format/rewrite.h"
#include "tools/cluster_private.h"

enum { PER_CENTROID = 256, ITERATIONS_MAX = 10000 };

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

dgm_status dgm_cluster_check(const dgm_cluster_options *o, dgm_error *err)
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
    DGM_FAIL_IF(o->near < 1 || o->near > DGM_CLUSTER_NEAR_MAX, err, DGM_ERR_ARGUMENT,
                "a vector counts for 1 to %d centroids, not %d", DGM_CLUSTER_NEAR_MAX, o->near);
    DGM_FAIL_IF(!(o->least >= 0 && o->least < 1), err, DGM_ERR_ARGUMENT,
                "the least weight must be at least 0 and below 1, not %g", o->least);
    DGM_FAIL_IF(o->iterations < 0 || o->iterations > ITERATIONS_MAX, err, DGM_ERR_ARGUMENT,
                "the number of iterations must be between 0 and %d, not %d", ITERATIONS_MAX,
                o->iterations);
    DGM_FAIL_IF(o->threads < 0 || o->threads > 1024, err, DGM_ERR_ARGUMENT,
                "the number of threads must be between 0 and 1024, not %d", o->threads);
    return DGM_OK;
}

void dgm_cluster_work_settle(dgm_cluster_work *w)
{
    dgm_record_close(&w->record);
    dgm_pool_close(&w->pool);
    dgm_backend_close(&w->backend);
    dgm_free(w->sample);
    dgm_free(w->centroids);
    dgm_free(w->bits);
    dgm_free(w->hits);
    dgm_free(w->weights);
    dgm_free(w->vectors);
    dgm_free(w->predictions);
    dgm_free(w->found);
    w->sample = w->vectors = NULL;
    w->centroids = w->weights = NULL;
    w->bits = w->hits = NULL;
    w->predictions = w->found = NULL;
}

void dgm_cluster_work_close(dgm_cluster_work *w)
{
    dgm_cluster_work_settle(w);
    dgm_free(w->halves);
    dgm_free(w->out.at);
    dgm_free(w->out.ids);
}

dgm_status dgm_cluster_work_open(dgm_cluster_work *w, dgm_error *err)
{
    const int threads = w->o->threads ? w->o->threads : dgm_cpu_count();
    DGM_TRY(dgm_pool_open(&w->pool, threads, err));
    DGM_TRY(dgm_backend_open(&w->backend, w->record.device, NULL, err));
    w->k = (dgm_kmeans){.backend = w->backend,
                        .pool = w->pool,
                        .width = w->record.width,
                        .iterations = w->o->iterations,
                        .seed = w->o->seed};
    w->vectors = dgm_malloc(DGM_CLUSTER_BLOCK * (size_t)w->record.width * sizeof *w->vectors);
    w->predictions = dgm_malloc(DGM_CLUSTER_BLOCK * (size_t)w->record.best * sizeof *w->predictions);
    w->found = dgm_malloc(DGM_CLUSTER_BLOCK * DGM_CLUSTER_NEAR_MAX * sizeof *w->found);
    return w->vectors && w->predictions && w->found ? DGM_OK : dgm_no_memory(err);
}

// ---- languages ----------------------------------------------------------------------------------

// The languages that the block is for: "" where the options say any, else the codes of what was
// translated; of a model that does not say its languages, what the options say.
static const char *language(const char *asked, const char *translated)
{
    return asked && (!asked[0] || !translated[0]) ? asked : translated;
}

int dgm_cluster_find(const dgm_cluster_work *w, const dgm_gguf *g)
{
    return dgm_clusters_find(g, language(w->o->source, w->record.source),
                             language(w->o->target, w->record.target));
}

// ---- k-means ------------------------------------------------------------------------------------

static int tick(void *cookie, double share)
{
    const dgm_cluster_work *w = cookie;
    const dgm_progress *p = &w->o->progress;
    return p->tick ? p->tick(p->cookie, "clustering", share) : 0;
}

// Vectors number floor(i * all / wanted).
static dgm_status take_sample(dgm_cluster_work *w, dgm_error *err)
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
        DGM_TRY(dgm_record_next(&w->record, DGM_CLUSTER_BLOCK, w->vectors, w->predictions, &n, err));
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

static dgm_status learn(dgm_cluster_work *w, dgm_error *err)
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
static dgm_status borrow(dgm_cluster_work *w, const char *path, dgm_error *err)
{
    dgm_gguf *g = NULL;
    dgm_clusters_view v = {0};
    DGM_TRY(dgm_modelfile_open(&g, path, err));
    const int block = dgm_cluster_find(w, g);
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

dgm_status dgm_cluster_walk(dgm_cluster_work *w, int centroids, int near, dgm_cluster_taker take,
                            void *cookie, dgm_error *err)
{
    dgm_nearest *nearest = NULL;
    dgm_kmeans_lanes *lanes = NULL;
    dgm_status st =
        dgm_nearest_open(&nearest, w->backend, w->centroids, centroids, w->record.width, err);
    if (st == DGM_OK) st = dgm_kmeans_lanes_open(&lanes, &w->k, centroids, near, err);
    if (st == DGM_OK) st = dgm_record_rewind(&w->record, err);
    for (size_t n = 1; st == DGM_OK && n;) {
        st = dgm_record_next(&w->record, DGM_CLUSTER_BLOCK, w->vectors, w->predictions, &n, err);
        if (st != DGM_OK) break;
        if (n) dgm_kmeans_find(lanes, nearest, w->vectors, n, w->found, NULL);
        take(w, n, cookie);
    }
    dgm_kmeans_lanes_close(&lanes);
    dgm_nearest_close(&nearest);
    return st;
}

// ---- one block ----------------------------------------------------------------------------------

dgm_status dgm_cluster_learn(dgm_cluster_work *w, dgm_error *err)
{
    const dgm_cluster_options *o = w->o;
    dgm_cluster_report *r = &w->report;
    DGM_TRY(dgm_cluster_work_open(w, err));
    DGM_TRY(o->from ? borrow(w, o->from, err) : learn(w, err));
    DGM_TRY(dgm_cluster_lists(w, err));
    snprintf(w->source, sizeof w->source, "%s", w->record.source);
    snprintf(w->target, sizeof w->target, "%s", w->record.target);
    w->out.source = language(o->source, w->source);
    w->out.target = language(o->target, w->target);
    w->out.count = o->centroids;
    w->out.width = w->record.width;
    w->out.best = o->best;
    w->out.centroids = w->halves;
    snprintf(r->source, sizeof r->source, "%s", w->out.source);
    snprintf(r->target, sizeof r->target, "%s", w->out.target);
    dgm_cluster_work_settle(w);
    return DGM_OK;
}

// ---- files --------------------------------------------------------------------------------------

static dgm_status write_blocks(const dgm_gguf *file, const char *path, const dgm_clusters *const *c,
                               int count, dgm_error *err)
{
    dgm_gguf_writer *out = NULL;
    DGM_TRY(dgm_rewrite_open(&out, file, NULL, err));
    return dgm_rewrite_finish(&out, path, dgm_clusters_store(c, count, file, out, err), err);
}

static dgm_status count_bytes(dgm_cluster_work *w, const dgm_gguf *written, dgm_error *err)
{
    dgm_clusters_view v = {0};
    const int block = dgm_clusters_find(written, w->out.source, w->out.target);
    DGM_TRY(dgm_clusters_view_open(&v, written, block, err));
    w->report.bytes = v.centroids->bytes + v.at[v.count];
    dgm_clusters_view_close(&v);
    return DGM_OK;
}

dgm_status dgm_cluster_store(dgm_cluster_work *works, int count, const dgm_gguf *file,
                             const char *output, dgm_error *err)
{
    const dgm_clusters **blocks = dgm_malloc((size_t)count * sizeof(dgm_clusters *));
    if (!blocks) return dgm_no_memory(err);
    for (int i = 0; i < count; i++) blocks[i] = &works[i].out;
    dgm_gguf *written = NULL;
    dgm_status st = write_blocks(file, output, blocks, count, err);
    if (st == DGM_OK) st = dgm_gguf_open(&written, output, err);
    for (int i = 0; st == DGM_OK && i < count; i++) st = count_bytes(&works[i], written, err);
    dgm_gguf_close(&written);
    dgm_free(blocks);
    return st;
}

dgm_status dgm_cluster_output(const char *output, dgm_error *err)
{
    DGM_FAIL_IF(!output, err, DGM_ERR_ARGUMENT, "no output file is given");
    return dgm_outfile_probe(output, err);
}

dgm_status dgm_cluster_record(dgm_cluster_work *w, const char *model, const char *text,
                              dgm_error *err)
{
    dgm_translator *t = NULL;
    DGM_TRY(dgm_record_open(&t, model, false, w->o, err));
    const dgm_record_text whole = {.path = text};
    const dgm_status st = dgm_record_make(&w->record, t, &whole, w->o->vectors, w->o, err);
    dgm_close(&t);
    return st;
}

static dgm_status make(dgm_cluster_work *w, const char *model, const char *output, dgm_error *err)
{
    DGM_FAIL_IF(!w->o->text && !w->o->remove, err, DGM_ERR_ARGUMENT,
                "a text to learn clusters from is missing");
    dgm_gguf *file = NULL;
    if (!w->o->remove) DGM_TRY(dgm_cluster_record(w, model, w->o->text, err));
    DGM_TRY(dgm_modelfile_open(&file, model, err));
    w->file = file;
    dgm_status st = DGM_OK;
    if (w->o->remove) {
        st = write_blocks(file, output, NULL, 0, err);
    } else {
        st = dgm_cluster_learn(w, err);
        if (st == DGM_OK) st = dgm_cluster_store(w, 1, file, output, err);
    }
    dgm_gguf_close(&file);
    return st;
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
    DGM_TRY(dgm_cluster_check(options ? &own : NULL, err));
    DGM_TRY(dgm_cluster_output(output, err));
    dgm_cluster_work w = {.o = &own};
    dgm_status st = make(&w, model, output, err);
    if (st == DGM_OK) dgm_sized_fill(report, &w.report, sizeof w.report);
    dgm_cluster_work_close(&w);
    return st;
}
