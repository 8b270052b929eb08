// SPDX-License-Identifier: MIT
// Jobs and the queue between callers and workers.
//
// The queue is a list of jobs in order of submission; a job hands out its pieces longest first, so
// that the sentences that share a step are of similar length and the last ones to finish are short.
// Workers take pieces whenever they have room (continuous batching), also from the next job while
// the last sentences of the one before are still being decoded.
#define _POSIX_C_SOURCE 200809L
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "engine/engine_private.h"

// Longest first: a counting sort by source length, stable.
dgm_status dgm_job_sort(dgm_job *job, dgm_error *err)
{
    const dgm_piece_state *pieces = job->encoded.pieces;
    const size_t count = job->encoded.piece_count;
    if (count == 0) return DGM_OK;
    int longest = 0; // copies have no tokens, and come last
    for (size_t i = 0; i < count; i++)
        if (pieces[i].count > longest) longest = pieces[i].count;
    size_t *start = dgm_calloc((size_t)longest + 2, sizeof *start);
    job->order = dgm_malloc(count * sizeof *job->order);
    if (!start || !job->order) {
        dgm_free(start);
        return dgm_no_memory(err);
    }
    for (size_t i = 0; i < count; i++) start[longest - pieces[i].count + 1]++;
    for (int k = 1; k <= longest; k++) start[k] += start[k - 1];
    for (size_t i = 0; i < count; i++) job->order[start[longest - pieces[i].count]++] = (uint32_t)i;
    dgm_free(start);
    job->order_count = count;
    while (job->order_count && pieces[job->order[job->order_count - 1]].copied) job->order_count--;
    return DGM_OK;
}

void dgm_job_free(dgm_job *job)
{
    if (!job) return;
    for (size_t i = 0; job->lines && i < job->line_count; i++) {
        dgm_free(job->lines[i].text);
        dgm_free(job->lines[i].message);
        dgm_free(job->lines[i].notice);
        dgm_writer_free(&job->lines[i].said);
        dgm_pieces_free(&job->lines[i].pieces);
        dgm_lmbr_free(&job->lines[i].lmbr);
        dgm_free(job->lines[i].ngrams);
        dgm_walk_free(&job->lines[i].walk);
    }
    dgm_encoded_free(&job->encoded);
    dgm_free(job->lines);
    dgm_free(job->order);
    if (job->done_ready) pthread_cond_destroy(&job->done);
    if (job->telling_ready) pthread_mutex_destroy(&job->telling);
    if (job->box) {
        dgm_results *r = &job->box->pub;
        dgm_results_free(&r);
    }
    dgm_free(job);
}

// The time of waits that end by themselves does not jump when the machine's date is set.
static bool init_done(pthread_cond_t *done)
{
    pthread_condattr_t how;
    if (pthread_condattr_init(&how) != 0) return false;
    const bool made = pthread_condattr_setclock(&how, CLOCK_MONOTONIC) == 0 &&
                      pthread_cond_init(done, &how) == 0;
    pthread_condattr_destroy(&how);
    return made;
}

static dgm_status new_job(dgm_translator *t, size_t count, dgm_job **out, dgm_error *err)
{
    dgm_job *job = dgm_calloc(1, sizeof *job);
    if (!job) return dgm_no_memory(err);
    *out = job;
    job->translator = t;
    job->begin = dgm_now();
    job->line_count = count;
    job->done_ready = init_done(&job->done);
    job->telling_ready = pthread_mutex_init(&job->telling, NULL) == 0;
    if (!job->done_ready || !job->telling_ready) return dgm_no_memory(err);
    job->lines = dgm_calloc(count ? count : 1, sizeof *job->lines);
    job->box = dgm_calloc(1, sizeof *job->box);
    if (!job->lines || !job->box) return dgm_no_memory(err);
    dgm_results_box *box = job->box;
    box->items = dgm_calloc(count ? count : 1, sizeof *box->items);
    box->list = dgm_calloc(count ? count : 1, sizeof *box->list);
    if (!box->items || !box->list) return dgm_no_memory(err);
    box->pub.size = sizeof box->pub;
    box->pub.items = box->list;
    box->pub.count = count;
    for (size_t i = 0; i < count; i++) {
        box->items[i].size = sizeof box->items[i];
        box->items[i].message = "";
        box->list[i] = &box->items[i];
    }
    return DGM_OK;
}

// Lines that need no decoding (empty, or wrong) get their results here, unless somebody watches, who
// hears of them from a text thread as of all others.
static void finish_trivial(dgm_job *job)
{
    dgm_scratch scratch = {0};
    for (size_t i = 0; i < job->line_count; i++) {
        if (job->lines[i].left == 0 && !job->watch.size)
            dgm_line_assemble(&job->lines[i], &scratch, &job->box->items[i]);
        else
            job->left++;
    }
    dgm_scratch_free(&scratch);
}

// The earlier one of two deadlines, 0 being none.
static void earliest(double *a, double b)
{
    if (b > 0 && (*a == 0 || b < *a)) *a = b;
}

// Deadlines of a job that enters the queue; lock held.
static void time_job(dgm_translator *t, dgm_job *job)
{
    for (size_t i = 0; i < job->line_count; i++)
        if (job->lines[i].left) earliest(&job->deadline, job->lines[i].deadline);
    job->timed = job->deadline > 0;
    t->timed += job->timed;
}

// A prepared job's lines and pieces go where they are taken from; lock held.
static void enqueue(dgm_translator *t, dgm_job *job)
{
    for (size_t i = 0; job->watch.size && i < job->line_count; i++)
        if (job->lines[i].left == 0) dgm_text_take(t, &job->lines[i]);
    dgm_text_wake(t);
    if (job->order_count == 0) return;
    time_job(t, job);
    t->streams += job->streamed;
    if (t->last)
        t->last->next = job;
    else
        t->first = job;
    t->last = job;
    t->queued += job->order_count;
    dgm_workers_wake(t);
}

dgm_status dgm_submit(dgm_translator *t, const dgm_input *inputs, size_t count, dgm_job **out,
                      dgm_error *err)
{
    return dgm_submit_watched(t, inputs, count, NULL, out, err);
}

dgm_status dgm_submit_watched(dgm_translator *t, const dgm_input *inputs, size_t count,
                              const dgm_watch *watch, dgm_job **out, dgm_error *err)
{
    DGM_FAIL_IF(!out, err, DGM_ERR_ARGUMENT, "there is no place for the job: NULL");
    *out = NULL;
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT, "there is no translator: NULL");
    DGM_FAIL_IF(!inputs && count, err, DGM_ERR_ARGUMENT, "there are no lines: NULL");
    DGM_FAIL_IF(count > UINT32_MAX / 2, err, DGM_ERR_ARGUMENT, "too many lines in one call");
    double begin = t->profiling ? dgm_thread_time() : 0;
    dgm_job *job = NULL;
    dgm_status st = new_job(t, count, &job, err);
    if (st == DGM_OK)
        st = dgm_sized_take(&job->watch, sizeof job->watch, watch, "dgm_watch", NULL, err);
    if (st == DGM_OK && (job->watch.settle < 0 || job->watch.settle > 1000))
        st = dgm_fail(err, DGM_ERR_ARGUMENT, "dgm_watch.settle must be 0 to 1000, not %d", (int)job->watch.settle);
    if (st == DGM_OK) st = dgm_job_prepare(job, inputs, err);
    if (st != DGM_OK) {
        dgm_job_free(job);
        return st;
    }
    job->streamed = job->watch.partial && job->order_count && !t->replace_unknown;
    if (job->streamed) dgm_text_guard(job);
    finish_trivial(job);
    for (size_t i = 0; i < job->encoded.piece_count; i++)
        job->work += (double)dgm_piece_work(&job->encoded.pieces[i]);
    *out = job; // before anybody can be told of it
    pthread_mutex_lock(&t->lock);
    for (size_t i = 0; i < count; i++)
        if (!job->watch.size && job->lines[i].left == 0) dgm_line_count(t, &job->lines[i]);
    if (t->profiling) t->text_seconds += dgm_thread_time() - begin;
    enqueue(t, job);
    pthread_mutex_unlock(&t->lock);
    return DGM_OK;
}

dgm_status dgm_submit_again(dgm_line_state *line, const dgm_input *inputs, size_t count, dgm_job **out,
                            bool *queued, dgm_error *err)
{
    dgm_translator *t = line->job->translator;
    *queued = false;
    DGM_TRY(new_job(t, count, out, err));
    dgm_job *job = *out;
    job->parent = line;
    DGM_TRY(dgm_job_prepare(job, inputs, err));
    for (size_t i = 0; i < count; i++) {
        job->left += job->lines[i].left > 0;
        job->lines[i].deadline = line->deadline;
    }
    pthread_mutex_lock(&t->lock);
    if (job->left && !t->quit && !line->job->cancelled) { // the line waits for it: before all others
        *queued = true;
        time_job(t, job);
        job->next = t->first;
        t->first = job;
        if (!t->last) t->last = job;
        t->queued += job->order_count;
        dgm_workers_wake(t);
    }
    pthread_mutex_unlock(&t->lock);
    return DGM_OK;
}

size_t dgm_queue_take(dgm_translator *t, dgm_piece_state **out, size_t room, int64_t tokens,
                      bool any)
{
    // A fair share: a small job is spread over all workers instead of filling one of them.
    size_t share = (t->queued + (size_t)t->threads - 1) / (size_t)t->threads;
    if (room > share) room = share;
    size_t n = 0;
    while (n < room && t->first) {
        dgm_job *job = t->first;
        dgm_piece_state *piece = &job->encoded.pieces[job->order[job->taken]];
        tokens -= dgm_piece_cost(t, piece);
        if (tokens < 0 && !(any && n == 0)) break;
        out[n++] = piece;
        job->taken++;
        t->queued--;
        if (job->taken == job->order_count) {
            t->first = job->next;
            job->next = NULL;
            if (!t->first) t->last = NULL;
        }
    }
    return n;
}

// ---- waiting and giving up ----------------------------------------------------------------------

size_t dgm_job_done(const dgm_job *job)
{
    if (!job) return 0;
    dgm_translator *t = job->translator;
    pthread_mutex_lock(&t->lock);
    size_t done = job->line_count - job->left;
    pthread_mutex_unlock(&t->lock);
    return done;
}

double dgm_job_share(const dgm_job *job)
{
    dgm_translator *t = job->translator;
    pthread_mutex_lock(&t->lock);
    const double share = job->left ? job->worked / job->work : 1;
    pthread_mutex_unlock(&t->lock);
    return share < 1 ? share : 1; // sums round
}

int dgm_wait_for(dgm_job *job, int64_t milliseconds)
{
    if (!job) return DGM_ERR_ARGUMENT;
    const int64_t longest = (int64_t)1000 * 3600 * 24 * 3650; // beyond that the sum might not fit
    dgm_translator *t = job->translator;
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    if (milliseconds > longest) milliseconds = longest;
    if (milliseconds > 0) {
        until.tv_sec += (time_t)(milliseconds / 1000);
        until.tv_nsec += (long)(milliseconds % 1000) * 1000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
    }
    pthread_mutex_lock(&t->lock);
    int late = milliseconds == 0;
    while (job->left && !late)
        late = milliseconds < 0 ? pthread_cond_wait(&job->done, &t->lock)
                                : pthread_cond_timedwait(&job->done, &t->lock, &until);
    const int done = job->left == 0;
    pthread_mutex_unlock(&t->lock);
    return done;
}

void dgm_piece_drop(dgm_translator *t, dgm_piece_state *piece)
{
    piece->status = DGM_ERR_CANCELLED;
    if (--piece->line->left == 0) dgm_text_take(t, piece->line);
}

// Out of the queue, where it is in it; lock held.
static void unlink_job(dgm_translator *t, dgm_job *job)
{
    dgm_job *before = NULL, *at = t->first;
    while (at && at != job) {
        before = at;
        at = at->next;
    }
    if (!at) return;
    if (before)
        before->next = job->next;
    else
        t->first = job->next;
    if (t->last == job) t->last = before;
    job->next = NULL;
}

void dgm_piece_miss(dgm_translator *t, dgm_piece_state *piece)
{
    dgm_line_state *line = piece->line;
    piece->late = piece->missed = piece->decoded = true;
    line->job->worked += (double)(dgm_piece_work(piece) - piece->worked);
    if (--line->left == 0) dgm_text_take(t, line);
}

// The pieces that stay keep their order and move to the end.
static void expire_job(dgm_translator *t, dgm_job *job, double now)
{
    size_t to = job->order_count;
    job->deadline = 0;
    for (size_t i = to; i-- > job->taken;) {
        dgm_piece_state *piece = &job->encoded.pieces[job->order[i]];
        if (dgm_piece_is_late(piece, now)) {
            dgm_piece_miss(t, piece);
            t->queued--;
            continue;
        }
        earliest(&job->deadline, piece->line->deadline);
        job->order[--to] = job->order[i];
    }
    job->taken = to;
    if (to == job->order_count) unlink_job(t, job);
}

void dgm_queue_expire(dgm_translator *t, double now)
{
    for (dgm_job *job = t->first, *next; job; job = next) {
        next = job->next;
        if (job->deadline > 0 && job->deadline <= now) expire_job(t, job, now);
    }
}

void dgm_cancel(dgm_job *job)
{
    if (!job) return;
    dgm_translator *t = job->translator;
    pthread_mutex_lock(&t->lock);
    if (!job->cancelled && job->left) {
        job->cancelled = true;
        t->cancels++;
        t->queued -= job->order_count - job->taken;
        while (job->taken < job->order_count)
            dgm_piece_drop(t, &job->encoded.pieces[job->order[job->taken++]]);
        unlink_job(t, job);
        dgm_text_wake(t);
    }
    pthread_mutex_unlock(&t->lock);
}

dgm_status dgm_wait(dgm_job **job_at, dgm_results **results, dgm_error *err)
{
    DGM_FAIL_IF(!results, err, DGM_ERR_ARGUMENT, "there is no place for the results: NULL");
    *results = NULL;
    DGM_FAIL_IF(!job_at || !*job_at, err, DGM_ERR_ARGUMENT, "there is no job to wait for");
    dgm_job *job = *job_at;
    dgm_wait_for(job, -1);

    dgm_results *r = &job->box->pub;
    for (size_t i = 0; i < r->count; i++) {
        const dgm_result *line = r->items[i];
        r->failed += line->status != DGM_OK;
        r->source_tokens += line->source_tokens;
        r->target_tokens += job->lines[i].target_tokens;
    }
    *results = r;
    job->box = NULL;
    *job_at = NULL;
    dgm_job_free(job);
    return DGM_OK;
}
