// SPDX-License-Identifier: MIT
// Tasks: from a handler's wishes to lanes and back; see task.h.
#include "server/task.h"

#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/server_private.h"

struct dgm_task_block {
    struct dgm_task_block *next;
    max_align_t data[];
};

void *dgm_task_memory(dgm_task *task, size_t size)
{
    struct dgm_task_block *b = dgm_calloc(1, sizeof *b + size);
    if (!b) return NULL;
    b->next = task->blocks;
    task->blocks = b;
    return b->data;
}

// ---- making one -----------------------------------------------------------------------------------

static const char *copy_text(dgm_task *task, const char *text, size_t size)
{
    if (!text) return NULL;
    char *own = dgm_task_memory(task, size + 1);
    if (own && size) memcpy(own, text, size);
    return own;
}

static dgm_status copy_texts(dgm_task *task, const dgm_task_spec *spec, dgm_error *err)
{
    dgm_task_text *texts = dgm_task_memory(task, (spec->count + 1) * sizeof *texts);
    if (!texts) return dgm_no_memory(err);
    for (size_t i = 0; i < spec->count; i++) {
        const dgm_task_text *from = &spec->texts[i];
        texts[i] = *from;
        texts[i].text = copy_text(task, from->text, from->size);
        texts[i].prefix = copy_text(task, from->prefix, from->prefix_size);
        texts[i].constraints = copy_text(task, from->constraints, from->constraints_size);
        if (!texts[i].text || (from->prefix && !texts[i].prefix) || (from->constraints && !texts[i].constraints))
            return dgm_no_memory(err);
    }
    task->spec.texts = task->legs[0].texts = texts;
    return DGM_OK;
}

static dgm_status hold_books(dgm_task *task, const dgm_task_spec *spec, dgm_error *err)
{
    dgm_termbook **books = dgm_task_memory(task, (spec->book_count + 1) * sizeof *books);
    task->spec.book_count = 0;
    if (!books) return dgm_no_memory(err);
    for (size_t i = 0; i < spec->book_count; i++) books[i] = dgm_termbook_hold(spec->books[i]);
    task->spec.books = task->books = books;
    task->spec.book_count = spec->book_count;
    return DGM_OK;
}

static dgm_status fill(dgm_task *task, const dgm_task_spec *spec, dgm_error *err)
{
    const dgm_server *s = task->server;
    task->spec = *spec;
    task->begin = dgm_now();
    const double limit = spec->timeout_ms > 0 ? (double)spec->timeout_ms / 1000 : s->options.request_seconds;
    if (limit > 0) task->deadline = task->begin + limit;
    task->client = dgm_strdup(task->request ? task->request->client : "");
    task->results = dgm_task_memory(task, (spec->count + 1) * sizeof *task->results);
    if (!task->client || !task->results) return dgm_no_memory(err);
    DGM_TRY(copy_texts(task, spec, err));
    DGM_TRY(hold_books(task, spec, err));
    DGM_TRY(dgm_pool_take(task->server, spec, &task->way, err));
    // Lists that only this call has.
    task->spec.settings = NULL;
    task->spec.model = NULL;
    dgm_task_leg *leg = &task->legs[0];
    leg->lane = task->way.first;
    leg->source = task->spec.source = task->way.source;
    task->spec.target = task->way.target;
    leg->target = task->way.second ? task->way.pivot : task->way.target;
    task->view = (dgm_task_view){.results = task->results,
                                 .count = spec->count,
                                 .model = (task->way.second ? task->way.second : task->way.first)->model->name,
                                 .source = task->way.source,
                                 .target = task->way.target,
                                 .pivot = task->way.second ? task->way.pivot : NULL};
    return dgm_task_cut(task, leg, err);
}

dgm_status dgm_task_start(dgm_server *server, dgm_request *q, const dgm_task_spec *spec, dgm_error *err)
{
    dgm_task *task = dgm_calloc(1, sizeof *task);
    if (!task) return dgm_no_memory(err);
    task->server = server;
    task->request = q;
    task->posted = true; // it is in no lane yet
    pthread_mutex_init(&task->telling, NULL);
    dgm_status st = fill(task, spec, err);
    if (st != DGM_OK) {
        dgm_task_free(&task);
        return st;
    }
    if (q) {
        pthread_mutex_lock(&q->lock);
        q->task = task;
        pthread_mutex_unlock(&q->lock);
    }
    dgm_lane_add(task->legs[0].lane, task); // from now on it may be done at any time
    return DGM_OK;
}

// ---- while it runs --------------------------------------------------------------------------------

void dgm_task_tell(dgm_task *task, size_t segment, const char *text, size_t size, bool whole)
{
    if (!task->spec.partial || (task->way.second && task->leg == 0)) return;
    const dgm_task_leg *leg = &task->legs[task->leg];
    const dgm_segment *s = &leg->segments[segment];
    const dgm_task_text *t = &leg->texts[s->text];
    const bool last = segment + 1 == leg->segment_count || s[1].text != s->text;
    size_t first = segment;
    while (first > 0 && leg->segments[first - 1].text == s->text) first--;
    dgm_task_told told = {.text = s->text,
                          .segment = segment - first,
                          .begin = text,
                          .size = size,
                          .whole = whole,
                          .source = task->leg == 0 ? t->text + s->begin : NULL,
                          .source_size = s->end - s->begin,
                          .gap = t->text + s->end,
                          .gap_size = (last ? t->size : s[1].begin) - s->end,
                          .segments = leg->segment_count};
    pthread_mutex_lock(&task->telling);
    task->told += whole;
    told.done = task->told;
    task->spec.partial(task->spec.user, &told);
    pthread_mutex_unlock(&task->telling);
}

void dgm_task_cancel(dgm_task *task)
{
    dgm_lane_cancel(task->legs[task->leg].lane, task);
}

// ---- when it is done ------------------------------------------------------------------------------

static void end_jobs(dgm_task *task, dgm_task_leg *leg)
{
    for (dgm_task_job *j = leg->jobs; j; j = j->next) {
        if (!j->job || dgm_wait(&j->job, &j->results, NULL) != DGM_OK) continue;
        task->view.source_tokens += j->results->source_tokens;
        task->view.target_tokens += j->results->target_tokens;
    }
}

// The translations of the first leg are the texts of the second.
static dgm_status begin_second(dgm_task *task, dgm_error *err)
{
    dgm_task_leg *leg = &task->legs[1];
    dgm_task_text *texts = dgm_task_memory(task, (task->spec.count + 1) * sizeof *texts);
    if (!texts) return dgm_no_memory(err);
    for (size_t i = 0; i < task->spec.count; i++) {
        const dgm_task_result *r = &task->results[i];
        if (r->status != DGM_OK) return dgm_fail(err, r->status, "%s", r->message);
        texts[i] = (dgm_task_text){.text = r->translations[0], .size = r->sizes[0]};
    }
    leg->texts = texts;
    leg->lane = task->way.second;
    leg->source = task->way.second_source;
    leg->target = task->way.target;
    return dgm_task_cut(task, leg, err);
}

static void finish(dgm_task *task, dgm_status st)
{
    if (st != DGM_OK) {
        task->view.status = st;
        task->view.error = task->error;
    }
    task->view.seconds = dgm_now() - task->begin;
    task->view.queued = task->taken_at > 0 ? task->taken_at - task->begin : task->view.seconds;
    if (task->request) {
        pthread_mutex_lock(&task->request->lock);
        task->request->task = NULL;
        pthread_mutex_unlock(&task->request->lock);
    }
    dgm_meters_task(task->server->meters, &task->view);
    task->spec.done(task, task->spec.user);
}

void dgm_task_leg_done(void *arg)
{
    dgm_task *task = arg;
    dgm_task_leg *leg = &task->legs[task->leg];
    end_jobs(task, leg);
    dgm_status st = task->failure;
    if (st == DGM_OK) st = dgm_task_join(task, leg, &task->error);
    if (st == DGM_OK && task->way.second && task->leg == 0) {
        st = begin_second(task, &task->error);
        if (st == DGM_OK) {
            // Whoever gives the task up from now on means the second leg.
            if (task->request) pthread_mutex_lock(&task->request->lock);
            task->leg = 1;
            if (task->request) pthread_mutex_unlock(&task->request->lock);
            dgm_lane_add(task->legs[1].lane, task);
            return;
        }
    }
    finish(task, st);
}

const dgm_task_view *dgm_task_look(const dgm_task *task)
{
    return &task->view;
}

bool dgm_answer_task_failure(dgm_request *q, const dgm_task_view *view)
{
    if (view->status != DGM_OK) {
        dgm_answer_failure(q, view->status, &view->error);
        return true;
    }
    for (size_t i = 0; i < view->count; i++)
        if (view->results[i].status != DGM_OK) {
            dgm_answer_error(q, view->results[i].status == DGM_ERR_CANCELLED ? 503 : 500, "%s",
                             view->results[i].message);
            return true;
        }
    return false;
}

void dgm_task_free(dgm_task **at)
{
    dgm_task *task = at ? *at : NULL;
    if (!task) return;
    *at = NULL;
    for (int i = 0; i < 2; i++)
        for (dgm_task_job *j = task->legs[i].jobs, *next; j; j = next) {
            next = j->next;
            dgm_results_free(&j->results);
            dgm_free(j);
        }
    for (size_t i = 0; task->books && i < task->spec.book_count; i++) dgm_termbook_drop(&task->books[i]);
    dgm_pool_give(task->way.first);
    dgm_pool_give(task->way.second);
    for (struct dgm_task_block *b = task->blocks, *next; b; b = next) {
        next = b->next;
        dgm_free(b);
    }
    dgm_free(task->client);
    pthread_mutex_destroy(&task->telling);
    dgm_free(task);
}
