// SPDX-License-Identifier: MIT
// Clusters of all directions of a mixed text in one run.
//
// Lines are sorted by direction as they are read (directions.c), and each direction's are translated and
// learnt from by themselves, with one translator for all: vectors, chunks and clusters are those of a run with
// these lines alone. Of a direction only its block stays in memory; the model is written once, in the end.
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "engine/engine_private.h"
#include "tools/cluster_private.h"

enum { PATH = 4096 };

typedef struct many {
    const dgm_cluster_options *o;
    dgm_translator *t;
    dgm_text_directions d;
    dgm_gguf *file;
    dgm_cluster_work *works; // [d.block_count]
} many;

static const char *name_of(const char *language)
{
    return language[0] ? language : "any";
}

// Tells the caller which direction the work is at.
typedef struct teller {
    const dgm_progress *to;
    const dgm_direction *block;
} teller;

static int tell(void *cookie, const char *stage, double share)
{
    const teller *x = cookie;
    char named[192];
    snprintf(named, sizeof named, "%s %.64s to %.64s", stage, name_of(x->block->source),
             name_of(x->block->target));
    return x->to->tick(x->to->cookie, named, share);
}

static dgm_status name_vectors(const char *vectors, const dgm_direction *block, char path[PATH],
                               dgm_error *err)
{
    const int n = snprintf(path, PATH, "%s.%s-%s", vectors, name_of(block->source),
                           name_of(block->target));
    DGM_FAIL_IF(n < 0 || n >= PATH, err, DGM_ERR_ARGUMENT,
                "the name of the file of vectors is too long: '%.80s...'", vectors);
    return DGM_OK;
}

static dgm_status learn_direction(many *m, int block, dgm_error *err)
{
    dgm_cluster_work *w = &m->works[block];
    const dgm_direction *languages = &m->d.blocks[block];
    teller to = {&m->o->progress, languages};
    dgm_cluster_options own = *m->o;
    char path[PATH];
    if (own.progress.tick) own.progress = (dgm_progress){tell, &to};
    if (own.vectors) {
        DGM_TRY(name_vectors(own.vectors, languages, path, err));
        own.vectors = path;
    }
    const dgm_record_text text = {own.text, &m->d, block};
    w->o = &own;
    w->file = m->file;
    dgm_status st = dgm_record_make(&w->record, m->t, &text, own.vectors, &own, err);
    if (st == DGM_OK) st = dgm_cluster_learn(w, err);
    w->o = m->o;
    if (st != DGM_OK && st != DGM_ERR_MEMORY && st != DGM_ERR_CANCELLED)
        dgm_error_prefix(err, "%s to %s", name_of(languages->source), name_of(languages->target));
    return st;
}

static dgm_status learn_all(many *m, const char *model, const char *directions, dgm_error *err)
{
    const dgm_cluster_options *o = m->o;
    const bool any[2] = {o->source && !o->source[0], o->target && !o->target[0]};
    DGM_TRY(dgm_record_open(&m->t, model, true, o, err));
    DGM_TRY(dgm_text_directions_read(&m->d, m->t, directions, o->text, o->lines, any, err));
    DGM_FAIL_IF(m->d.block_count == 0, err, DGM_ERR_TEXT, "%s: there is no line to learn from",
                o->text);
    DGM_TRY(dgm_modelfile_open(&m->file, model, err));
    m->works = dgm_calloc((size_t)m->d.block_count, sizeof *m->works);
    if (!m->works) return dgm_no_memory(err);
    for (int i = 0; i < m->d.block_count; i++) DGM_TRY(learn_direction(m, i, err));
    return DGM_OK;
}

static dgm_status report_all(const many *m, dgm_cluster_reports **out, dgm_error *err)
{
    const size_t count = (size_t)m->d.block_count;
    dgm_cluster_reports *r =
        dgm_malloc(sizeof *r + count * (sizeof(dgm_cluster_report) + sizeof(dgm_cluster_report *)));
    if (!r) return dgm_no_memory(err);
    dgm_cluster_report *each = (dgm_cluster_report *)(void *)(r + 1);
    const dgm_cluster_report **items = (const dgm_cluster_report **)(void *)(each + count);
    for (size_t i = 0; i < count; i++) {
        each[i] = m->works[i].report;
        each[i].size = sizeof each[i];
        items[i] = &each[i];
    }
    *r = (dgm_cluster_reports){.size = sizeof *r, .count = count, .items = items};
    *out = r;
    return DGM_OK;
}

static void close_all(many *m)
{
    for (int i = 0; m->works && i < m->d.block_count; i++) dgm_cluster_work_close(&m->works[i]);
    dgm_free(m->works);
    dgm_gguf_close(&m->file);
    dgm_text_directions_free(&m->d);
    dgm_close(&m->t);
}

dgm_status dgm_cluster_make_directions(const char *model, const char *output,
                                       const char *directions, const dgm_cluster_options *options,
                                       dgm_cluster_reports **reports, dgm_error *err)
{
    dgm_cluster_options own;
    if (reports) *reports = NULL;
    dgm_cluster_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_cluster_options", "dgm_cluster_default",
                           err));
    DGM_TRY(dgm_cluster_check(options ? &own : NULL, err));
    DGM_FAIL_IF(!own.text || !directions || own.remove, err, DGM_ERR_ARGUMENT,
                "clusters of many directions need a text and the directions of its lines");
    DGM_TRY(dgm_cluster_output(output, err));
    many m = {.o = &own};
    dgm_status st = learn_all(&m, model, directions, err);
    if (st == DGM_OK) st = dgm_cluster_store(m.works, m.d.block_count, m.file, output, err);
    if (st == DGM_OK && reports) st = report_all(&m, reports, err);
    close_all(&m);
    return st;
}

void dgm_cluster_reports_free(dgm_cluster_reports **reports)
{
    if (!reports) return;
    dgm_free(*reports);
    *reports = NULL;
}
