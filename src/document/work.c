// SPDX-License-Identifier: MIT
// A whole document through a translator or a route: its lines in windows, two of them at work, so that batches stay
// full.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "dragoman/document.h"

enum { WINDOW = 2048, JOBS = 2 };
static const size_t WINDOW_BYTES = (size_t)8 << 20;

typedef struct window {
    dgm_route_job *job;
    size_t first, count;
} window;

typedef struct work {
    dgm_document *document;
    dgm_route *route;
    dgm_document_work report;
    size_t lines, next; // all of them, and the first that was not submitted
    window jobs[JOBS];
    int count; // of jobs, the oldest first
} work;

// A line and what goes with it; elements of the caller's array may be smaller or larger than ours.
static dgm_status take_input(const work *w, size_t line, dgm_input *in, dgm_error *err)
{
    const dgm_input *all = w->report.inputs;
    dgm_input_default(in);
    if (all) {
        const void *at = (const char *)all + line * all->size;
        DGM_TRY(dgm_sized_take(in, sizeof *in, at, "dgm_input", "dgm_input_default", err));
        in->size = sizeof *in;
        in->tokens = NULL;
        in->token_count = 0;
    }
    in->text = dgm_document_line(w->document, line, &in->text_size);
    return DGM_OK;
}

static dgm_status submit(work *w, dgm_error *err)
{
    dgm_input *inputs = dgm_calloc(WINDOW, sizeof *inputs);
    window *job = &w->jobs[w->count];
    size_t bytes = 0;
    if (!inputs) return dgm_no_memory(err);
    *job = (window){.first = w->next};
    dgm_status st = DGM_OK;
    while (st == DGM_OK && w->next < w->lines && job->count < WINDOW && bytes < WINDOW_BYTES) {
        dgm_input *in = &inputs[job->count++];
        st = take_input(w, w->next++, in, err);
        bytes += in->text_size;
    }
    if (st == DGM_OK) st = dgm_route_submit(w->route, inputs, job->count, &job->job, err);
    dgm_free(inputs);
    w->count += st == DGM_OK;
    return st;
}

static dgm_status put_results(work *w, const window *job, const dgm_results *results, dgm_error *err)
{
    for (size_t i = 0; i < results->count; i++) {
        const dgm_result *r = results->items[i];
        if (r->status != DGM_OK || !r->count) {
            w->report.failed++;
            continue;
        }
        const dgm_translation *t = r->translations[0];
        DGM_TRY(dgm_document_put(w->document, job->first + i, t->text, t->text_size, t->links, t->link_count, err));
    }
    return DGM_OK;
}

static bool is_stopped(work *w)
{
    const dgm_progress *p = &w->report.progress;
    const window *job = &w->jobs[0];
    const double done = (double)job->first + dgm_route_share(job->job) * (double)job->count;
    return p->tick && p->tick(p->cookie, "translating", w->lines ? done / (double)w->lines : 1) != 0;
}

static dgm_status collect(work *w, dgm_error *err)
{
    window job = w->jobs[0];
    dgm_results *results = NULL;
    while (w->report.progress.tick && dgm_route_wait_for(job.job, 100) == 0)
        if (is_stopped(w)) return dgm_fail(err, DGM_ERR_CANCELLED, "translating the document was stopped");
    dgm_status st = dgm_route_wait(&job.job, &results, err);
    memmove(w->jobs, w->jobs + 1, (size_t)--w->count * sizeof *w->jobs);
    if (st == DGM_OK) st = put_results(w, &job, results, err);
    dgm_results_free(&results);
    return st;
}

dgm_status dgm_document_translate_route(dgm_document *document, dgm_route *route, dgm_document_work *report,
                                        dgm_error *err)
{
    DGM_FAIL_IF(!document || !route, err, DGM_ERR_ARGUMENT,
                "dgm_document_translate_route needs a document and a route");
    work w = {.document = document, .route = route, .report = {.size = sizeof w.report}};
    DGM_TRY(dgm_sized_take(&w.report, sizeof w.report, report, "dgm_document_work", NULL, err));
    w.report.failed = 0;
    w.lines = dgm_document_describe(document)->lines;
    const dgm_input *with = w.report.inputs;
    DGM_FAIL_IF(with && (w.report.input_count != w.lines || with->size < sizeof with->size), err,
                DGM_ERR_ARGUMENT, "dgm_document_work has %zu inputs for %zu lines of the document",
                w.report.input_count, w.lines);
    dgm_status st = DGM_OK;
    while (st == DGM_OK && (w.next < w.lines || w.count))
        st = w.next < w.lines && w.count < JOBS ? submit(&w, err) : collect(&w, err);
    for (int i = 0; i < w.count; i++) dgm_route_cancel(&w.jobs[i].job);
    if (report) report->failed = w.report.failed;
    return st;
}

dgm_status dgm_document_translate(dgm_document *document, dgm_translator *translator, dgm_document_work *report,
                                  dgm_error *err)
{
    dgm_route *route = NULL;
    DGM_FAIL_IF(!document || !translator, err, DGM_ERR_ARGUMENT,
                "dgm_document_translate needs a document and a translator");
    DGM_TRY(dgm_route_of(&route, translator, err));
    const dgm_status st = dgm_document_translate_route(document, route, report, err);
    dgm_route_close(&route);
    return st;
}
