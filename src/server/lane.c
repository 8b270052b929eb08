// SPDX-License-Identifier: MIT
// A lane: a translator, and a thread that hands sentences of many tasks to it, by turns (turns.h).
//
//     add: tasks -> turns --thread: while the budget lasts--> dgm_submit_watched --line callback--> segment done
//
// The budget of tokens in flight keeps the engine's batches full and its own queue empty: what waits, waits here,
// where it
// takes turns. While several tasks are there, or were a moment ago, each of them has a smaller part of the budget: a
// long
// document would otherwise fill batches whose steps take so long that nobody else is answered soon.
#define _GNU_SOURCE
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/mem.h"
#include "dragoman/settings.h"
#include "server/server_private.h"

enum {
    CROWDED_SECONDS = 5,   // how long a task is kept to its part after another one was there
    CROWDED_TOKENS = 1024, // that part, times the beam, for each thread of the engine
    LEAST_BUDGET = 256,
    TICK_MS = 200, // how often deadlines of what waits are looked at
};

// ---- loading --------------------------------------------------------------------------------------

// The bytes of the model, read once for all lanes: a mapped file would end the process when somebody writes a
// shorter one
// over it.
static dgm_status read_model(dgm_pool_model *m, dgm_error *err)
{
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&m->lock);
    if (!m->data) st = dgm_pool_read(m, err);
    pthread_mutex_unlock(&m->lock);
    return st;
}

static dgm_status load(dgm_lane *lane, dgm_translator **t, dgm_error *err)
{
    dgm_settings settings = lane->server->settings;
    settings.direction_later = 1;
    char *words = dgm_strdup(lane->key);
    if (!words) return dgm_no_memory(err);
    dgm_status st = dgm_lane_settings(words, &settings, err);
    if (st == DGM_OK) st = read_model(lane->model, err);
    if (st == DGM_OK) st = dgm_open_memory(t, lane->model->data, lane->model->size, &settings, err);
    dgm_free(words);
    if (st != DGM_OK) dgm_error_prefix(err, "model '%s'", lane->model->name);
    return st;
}

dgm_status dgm_lane_settings(char *key, dgm_settings *settings, dgm_error *err)
{
    char *rest = NULL;
    for (char *word = strtok_r(key, "\n", &rest); word; word = strtok_r(NULL, "\n", &rest)) {
        char *value = strchr(word, '=');
        if (!value) continue;
        *value = 0;
        DGM_TRY(dgm_settings_set(settings, word, value + 1, err));
    }
    return DGM_OK;
}

// ---- tasks of a lane ------------------------------------------------------------------------------

static void link_task(dgm_lane *lane, dgm_task *task)
{
    task->before = NULL;
    task->after = lane->tasks;
    if (lane->tasks) lane->tasks->before = task;
    lane->tasks = task;
}

static void unlink_task(dgm_lane *lane, dgm_task *task)
{
    if (task->before)
        task->before->after = task->after;
    else
        lane->tasks = task->after;
    if (task->after) task->after->before = task->before;
}

// Goes on to a handler thread when nothing of it is left here; lock held.
static void post_if_done(dgm_lane *lane, dgm_task *task)
{
    if (task->left || task->submitting || task->posted) return;
    task->posted = true;
    dgm_turns_remove(&lane->turns, &task->turn);
    unlink_task(lane, task);
    lane->requests++;
    dgm_handlers_post(lane->server->handlers, &task->work, dgm_task_leg_done, task);
}

// Sentences that were not handed over will not be; lock held.
static void drop_waiting(dgm_lane *lane, dgm_task *task, dgm_status why, const dgm_error *err)
{
    if (task->failure == DGM_OK) {
        task->failure = why;
        if (err) task->error = *err;
    }
    task->left -= task->turn.count - task->turn.taken;
    dgm_turns_remove(&lane->turns, &task->turn);
    task->turn.taken = task->turn.count;
}

static void cancel_task(dgm_lane *lane, dgm_task *task)
{
    static const dgm_error gone = {"the request was given up"};
    task->cancelled = true;
    drop_waiting(lane, task, DGM_ERR_CANCELLED, &gone);
    for (dgm_task_job *j = task->legs[task->leg].jobs; j; j = j->next)
        if (j->job) dgm_cancel(j->job);
    post_if_done(lane, task);
}

void dgm_lane_cancel(dgm_lane *lane, dgm_task *task)
{
    pthread_mutex_lock(&lane->lock);
    if (!task->posted) cancel_task(lane, task);
    pthread_mutex_unlock(&lane->lock);
}

void dgm_lane_add(dgm_lane *lane, dgm_task *task)
{
    const dgm_task_leg *leg = &task->legs[task->leg];
    pthread_mutex_lock(&lane->lock);
    task->turn = (dgm_turn_task){.costs = leg->costs, .count = leg->segment_count};
    task->left = leg->segment_count;
    task->posted = false;
    link_task(lane, task);
    dgm_error err;
    dgm_status st = DGM_OK;
    if (lane->state == DGM_LANE_FAILED)
        drop_waiting(lane, task, DGM_ERR_IO, &lane->error);
    else if (task->left)
        st = dgm_turns_add(&lane->turns, task->client, &task->turn, &err);
    if (st != DGM_OK) drop_waiting(lane, task, st, &err);
    const double now = dgm_now();
    if (lane->turns.tasks > 1) lane->crowded = now;
    if (lane->oldest == 0) lane->oldest = now;
    if (task->request && atomic_load(&task->request->gone)) // before it was here
        cancel_task(lane, task);
    else
        post_if_done(lane, task);
    pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&lane->lock);
}

// ---- what the engine says -------------------------------------------------------------------------

static void on_line(void *user, size_t index, const dgm_result *result)
{
    dgm_task_job *job = user;
    dgm_task *task = job->task;
    dgm_task_leg *leg = &task->legs[task->leg];
    dgm_lane *lane = leg->lane;
    const size_t at = job->first + index;
    leg->segments[at].result = result;
    if (task->spec.partial && result->status == DGM_OK && result->count)
        dgm_task_tell(task, at, result->translations[0]->text, result->translations[0]->text_size, true);
    pthread_mutex_lock(&lane->lock);
    lane->in_flight -= leg->costs[at];
    task->turn.in_flight -= leg->costs[at];
    lane->running--;
    lane->sentences++;
    task->left--;
    post_if_done(lane, task);
    if (lane->turns.waiting) pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&lane->lock);
}

static void on_partial(void *user, size_t index, const char *text, size_t size)
{
    dgm_task_job *job = user;
    dgm_task_tell(job->task, job->first + index, text, size, false);
}

// ---- handing over ---------------------------------------------------------------------------------

// Fills inputs with the segments of a job.
static void fill_inputs(const dgm_task_job *job, dgm_input *inputs, const dgm_direction *direction)
{
    const dgm_task *task = job->task;
    const dgm_task_leg *leg = &task->legs[task->leg];
    const int64_t left = task->deadline > 0 ? (int64_t)((task->deadline - dgm_now()) * 1000) : 0;
    for (size_t i = 0; i < job->count; i++) {
        const dgm_segment *s = &leg->segments[job->first + i];
        const dgm_task_text *text = &leg->texts[s->text];
        inputs[i] = (dgm_input){.size = sizeof inputs[i],
                                .text = text->text + s->begin,
                                .text_size = s->end - s->begin,
                                .prefix = text->prefix,
                                .prefix_size = text->prefix_size,
                                .constraints = leg->demands ? leg->demands[job->first + i] : NULL,
                                .direction = direction,
                                .deadline_ms = task->deadline > 0 ? (left > 1 ? left : 1) : 0};
        if (inputs[i].constraints) inputs[i].constraints_size = strlen(inputs[i].constraints);
    }
}

// Not with the lock held; the task is kept by task->submitting.
static dgm_status submit(dgm_lane *lane, dgm_task_job *job, dgm_error *err)
{
    const dgm_task *task = job->task;
    const dgm_task_leg *leg = &task->legs[task->leg];
    const dgm_direction direction = {leg->source, leg->target};
    const bool several = dgm_directions(lane->t, 0, NULL) > 1;
    dgm_input *inputs = dgm_calloc(job->count, sizeof *inputs);
    if (!inputs) return dgm_no_memory(err);
    fill_inputs(job, inputs, several ? &direction : NULL);
    const dgm_watch watch = {.size = sizeof watch,
                             .user = job,
                             .line = on_line,
                             .partial = task->spec.partial ? on_partial : NULL,
                             .settle = task->spec.settle};
    const dgm_status st = dgm_submit_watched(lane->t, inputs, job->count, &watch, &job->job, err);
    dgm_free(inputs);
    return st;
}

// A job could not be made: its sentences fail. Lock held.
static void fail_job(dgm_lane *lane, dgm_task_job *job, dgm_status st, const dgm_error *err)
{
    dgm_task *task = job->task;
    for (size_t i = 0; i < job->count; i++) {
        const uint32_t cost = task->legs[task->leg].costs[job->first + i];
        lane->in_flight -= cost;
        task->turn.in_flight -= cost;
    }
    lane->running -= job->count;
    task->left -= job->count;
    drop_waiting(lane, task, st, err);
}

// One job for every task that has sentences in this round; lock held before and after.
static void submit_round(dgm_lane *lane, dgm_task_job *round)
{
    for (dgm_task_job *job = round, *next; job; job = next) {
        dgm_task *task = job->task;
        dgm_task_leg *leg = &task->legs[task->leg];
        next = job->next;
        dgm_error err;
        pthread_mutex_unlock(&lane->lock);
        const dgm_status st = submit(lane, job, &err);
        pthread_mutex_lock(&lane->lock);
        job->next = leg->jobs;
        leg->jobs = job;
        if (st != DGM_OK) fail_job(lane, job, st, &err);
        if (task->cancelled && job->job) dgm_cancel(job->job);
        task->submitting--;
        post_if_done(lane, task);
    }
}

// Sentences by turns while the budget lasts, in jobs of one task each; lock held.
static dgm_task_job *take_round(dgm_lane *lane, double now)
{
    const bool crowded = lane->turns.tasks > 1 || now - lane->crowded < CROWDED_SECONDS;
    const dgm_translator_info *info = dgm_describe(lane->t);
    const int64_t part = (int64_t)CROWDED_TOKENS * info->threads / (info->beam > 0 ? info->beam : 1);
    const int64_t most = crowded && part < lane->budget ? part : lane->budget;
    dgm_task_job *round = NULL;
    while (lane->in_flight < lane->budget) {
        dgm_turn_task *turn = dgm_turns_next(&lane->turns, most);
        if (!turn) break;
        dgm_task *task = (dgm_task *)(void *)((char *)turn - offsetof(dgm_task, turn));
        dgm_task_job *job = round;
        while (job && job->task != task) job = job->next;
        if (!job) {
            job = dgm_calloc(1, sizeof *job);
            if (!job) {
                turn->in_flight -= turn->costs[turn->taken - 1];
                task->left--;
                drop_waiting(lane, task, DGM_ERR_MEMORY, NULL);
                post_if_done(lane, task);
                continue;
            }
            *job = (dgm_task_job){.next = round, .task = task, .first = turn->taken - 1};
            round = job;
            task->submitting++;
            if (task->taken_at == 0) task->taken_at = now;
        }
        job->count++;
        lane->in_flight += turn->costs[turn->taken - 1];
        lane->running++;
    }
    if (lane->turns.waiting == 0) lane->oldest = 0;
    return round;
}

// Tasks whose time is over while they wait; lock held.
static void expire(dgm_lane *lane, double now)
{
    static const dgm_error late = {"the request took too long"};
    for (dgm_task *task = lane->tasks, *next; task; task = next) {
        next = task->after;
        if (task->deadline == 0 || task->deadline > now || task->turn.taken == task->turn.count) continue;
        drop_waiting(lane, task, DGM_ERR_CANCELLED, &late);
        post_if_done(lane, task);
    }
}

static void fail_all(dgm_lane *lane, dgm_status st)
{
    for (dgm_task *task = lane->tasks, *next; task; task = next) {
        next = task->after;
        drop_waiting(lane, task, st, &lane->error);
        post_if_done(lane, task);
    }
}

// ---- the thread -----------------------------------------------------------------------------------

static void wait_until(dgm_lane *lane, double seconds)
{
    struct timespec until;
    clock_gettime(CLOCK_MONOTONIC, &until);
    const int64_t ns = until.tv_nsec + (int64_t)(seconds * 1e9);
    until.tv_sec += (time_t)(ns / 1000000000);
    until.tv_nsec = (long)(ns % 1000000000);
    pthread_cond_timedwait(&lane->wake, &lane->lock, &until);
}

// How long to hold sentences back so that others can join them: 0 where the engine has nothing else to do.
static double hold(const dgm_lane *lane, double now)
{
    const double until = lane->oldest + lane->server->options.max_wait / 1000.0;
    return lane->running && lane->oldest > 0 && until > now ? until - now : 0;
}

static void serve(dgm_lane *lane)
{
    while (!lane->quit || lane->tasks) {
        double now = dgm_now();
        expire(lane, now);
        if (!lane->turns.waiting) {
            lane->oldest = 0;
            if (lane->quit && !lane->tasks) break;
            pthread_cond_wait(&lane->wake, &lane->lock);
            continue;
        }
        const double held = hold(lane, now);
        if (held > 0) {
            wait_until(lane, held);
            continue;
        }
        dgm_task_job *round = take_round(lane, now);
        if (round)
            submit_round(lane, round);
        else
            wait_until(lane, TICK_MS / 1000.0); // until sentences are done
    }
}

static void *lane_main(void *arg)
{
    dgm_lane *lane = arg;
    dgm_translator *t = NULL;
    dgm_error err;
    const double begin = dgm_now();
    const dgm_status st = load(lane, &t, &err);
    if (st == DGM_OK)
        dgm_server_note(lane->server, "model '%s' loaded in %.2f s", lane->model->name, dgm_now() - begin);
    else
        dgm_server_note(lane->server, "%s", err.text);
    pthread_mutex_lock(&lane->lock);
    if (st == DGM_OK) {
        const dgm_translator_info *info = dgm_describe(t);
        const int64_t budget = info->batch_tokens / (info->beam > 0 ? info->beam : 1) * info->threads;
        lane->t = t;
        lane->budget = budget > LEAST_BUDGET ? budget : LEAST_BUDGET;
        lane->state = DGM_LANE_READY;
        serve(lane);
    } else {
        lane->error = err;
        lane->state = DGM_LANE_FAILED;
        fail_all(lane, st);
    }
    pthread_mutex_unlock(&lane->lock);
    return NULL;
}

dgm_status dgm_lane_open(dgm_server *s, dgm_pool_model *m, const char *key, dgm_lane **out, dgm_error *err)
{
    *out = NULL;
    dgm_lane *lane = dgm_calloc(1, sizeof *lane);
    if (!lane) return dgm_no_memory(err);
    lane->server = s;
    lane->model = m;
    lane->key = dgm_strdup(key);
    pthread_condattr_t how;
    pthread_condattr_init(&how);
    pthread_condattr_setclock(&how, CLOCK_MONOTONIC);
    pthread_mutex_init(&lane->lock, NULL);
    pthread_cond_init(&lane->wake, &how);
    pthread_condattr_destroy(&how);
    if (lane->key && pthread_create(&lane->thread, NULL, lane_main, lane) == 0) {
        *out = lane;
        return DGM_OK;
    }
    pthread_cond_destroy(&lane->wake);
    pthread_mutex_destroy(&lane->lock);
    dgm_free(lane->key);
    dgm_free(lane);
    return dgm_no_memory(err);
}

void dgm_lane_close(dgm_lane *lane)
{
    pthread_mutex_lock(&lane->lock);
    lane->quit = true;
    pthread_cond_signal(&lane->wake);
    pthread_mutex_unlock(&lane->lock);
    pthread_join(lane->thread, NULL);
    dgm_close(&lane->t);
    dgm_turns_free(&lane->turns);
    pthread_cond_destroy(&lane->wake);
    pthread_mutex_destroy(&lane->lock);
    dgm_free(lane->key);
    dgm_free(lane);
}

uint64_t dgm_lane_bytes(dgm_lane *lane)
{
    uint64_t bytes = 0;
    pthread_mutex_lock(&lane->lock);
    if (lane->t) {
        dgm_counters c;
        dgm_count(lane->t, &c);
        bytes = lane->model->bytes + dgm_describe(lane->t)->packed_bytes + c.arena_peak;
    }
    pthread_mutex_unlock(&lane->lock);
    return bytes;
}
