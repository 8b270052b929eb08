// SPDX-License-Identifier: MIT
// What a model's clusters give for a text: `dragoman cluster --measure` behind its command line.
#include "base/mem.h"
#include "base/sized.h"
#include "engine/engine_private.h"
#include "format/idlists.h"
#include "tools/cluster_private.h"

typedef struct gauge {
    const dgm_clusters_view *view;
    dgm_cluster_measure *m;
    uint64_t inside, tokens; // best tokens in the lists, sizes of these
} gauge;

static void count_hits(dgm_cluster_work *w, size_t count, void *cookie)
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

static dgm_status measure_view(dgm_cluster_work *w, gauge *g, dgm_error *err)
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
    DGM_TRY(dgm_cluster_walk(w, v->count, 1, count_hits, g, err));
    m->lines = w->record.lines;
    m->vectors = w->record.records;
    m->centroids = v->count;
    for (size_t c = 0; c < count; c++) m->used += m->hits[c] > 0;
    if (!m->vectors) return DGM_OK;
    m->share = (double)g->tokens / (double)m->vectors / (double)v->targets;
    m->recall = (double)g->inside / (double)m->vectors;
    return DGM_OK;
}

static dgm_status measure_file(dgm_cluster_work *w, const dgm_gguf *file, const char *model,
                               const char *text, gauge *g, dgm_error *err)
{
    DGM_FAIL_IF(dgm_clusters_blocks(file) == 0, err, DGM_ERR_UNSUPPORTED,
                "%s: the model has no clusters (make them with 'dragoman cluster')", model);
    DGM_TRY(dgm_cluster_record(w, model, text, err));
    const int block = dgm_cluster_find(w, file);
    DGM_FAIL_IF(
        block < 0, err, DGM_ERR_UNSUPPORTED,
        "%s: the model has no clusters for '%s' to '%s' (make them with 'dragoman cluster')", model,
        w->record.source, w->record.target);
    dgm_clusters_view view = {0};
    DGM_TRY(dgm_clusters_view_open(&view, file, block, err));
    g->view = &view;
    dgm_status st = dgm_cluster_work_open(w, err);
    if (st == DGM_OK) st = measure_view(w, g, err);
    g->view = NULL;
    dgm_clusters_view_close(&view);
    return st;
}

static dgm_status test_text(dgm_cluster_work *w, const char *model, const char *text, gauge *g,
                            dgm_error *err)
{
    dgm_gguf *file = NULL;
    DGM_TRY(dgm_modelfile_open(&file, model, err));
    const dgm_status st = measure_file(w, file, model, text, g, err);
    dgm_gguf_close(&file);
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
    DGM_TRY(dgm_cluster_check(options ? &o : NULL, err));
    o.best = 1;
    if (!o.vectors) o.record_best = 1;
    o.lines = 0;
    dgm_cluster_work w = {.o = &o};
    gauge g = {.m = &m};
    const dgm_status st = test_text(&w, model, text, &g, err);
    dgm_cluster_work_close(&w);
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
