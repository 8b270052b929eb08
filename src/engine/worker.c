// SPDX-License-Identifier: MIT
// Workers: threads that decode pieces from the queue, each with its own memory and search over the
// shared weights.
//
//     lock; take pieces while the budget lasts (budget.c); unlock
//     admit them (one encoder batch), advance every sentence by one step
//     sink: copy hypotheses out; with a line's last piece, hand it to the text threads
//
// Memory is sized and reserved when the worker is opened. A step allocates nothing; a finished sentence its result.
//
// A worker without a sentence helps one that has some (helpers.c).
#include <math.h>
#include <sched.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/threads.h"
#include "engine/worker_private.h"

dgm_bytes dgm_worker_bytes(const dgm_translator *t)
{
    const dgm_model_info *info = dgm_model_describe(t->members[0].model);
    const int vocabulary = info->target_vocab, vectors = t->limits.rows * info->tokens_per_step;
    dgm_bytes bytes = dgm_bytes_both(1 << 19);
    for (int i = 0; i < t->member_count; i++)
        bytes = dgm_bytes_add(bytes, dgm_state_bytes(t->members[i].model, &t->limits));
    bytes = dgm_bytes_add(
        bytes, dgm_search_bytes(t->backend, &t->config, t->member_count, vocabulary));
    if (t->evidence)
        bytes = dgm_bytes_add(bytes, dgm_score_lmbr_bytes(t->backend, t->batch, vocabulary));
    if (t->lattices) bytes.host += dgm_score_walk_bytes(t->batch);
    bytes = dgm_bytes_add(bytes, dgm_restrict_bytes(t));
    return dgm_bytes_add(bytes,
                         dgm_rank_bytes(t->backend, vectors, t->member_count, vocabulary));
}

static uint64_t touched(const dgm_worker *w)
{
    const dgm_bytes peak = dgm_exec_peak(w->exec);
    return peak.host + peak.device;
}

// What is added to the models' scores, in the order in which rows are asked.
static dgm_status choose_scorers(dgm_worker *w, dgm_error *err)
{
    const dgm_translator *t = w->home;
    const int vocabulary = dgm_model_describe(t->members[0].model)->target_vocab;
    if (t->lattices)
        DGM_TRY(dgm_score_walk(&w->scorers[w->scorer_count++], dgm_exec_host(w->exec), t->batch, err));
    if (t->evidence)
        DGM_TRY(dgm_score_lmbr(&w->scorers[w->scorer_count++], w->exec, t->batch, vocabulary, err));
    return DGM_OK;
}

static dgm_status open_worker(dgm_worker *w, dgm_translator *t, dgm_error *err)
{
    const dgm_translator *home = w->home = dgm_home(t, (int)(w - t->workers));
    w->t = t;
    w->bytes = dgm_worker_bytes(home);
    size_t batch = (size_t)home->batch;
    w->taken = dgm_calloc(batch, sizeof(dgm_piece_state *));
    w->inside = dgm_calloc(batch, sizeof(dgm_piece_state *));
    w->back = dgm_calloc(2 * batch, sizeof(dgm_piece_state *));
    w->requests = dgm_calloc(batch, sizeof *w->requests);
    if (!w->taken || !w->inside || !w->back || !w->requests) return dgm_no_memory(err);
    const size_t centroids = dgm_restrict_centroids(t);
    if (centroids) w->centroids = dgm_calloc(centroids / 64 + 1, sizeof *w->centroids);
    if (centroids && !w->centroids) return dgm_no_memory(err);
    DGM_TRY(dgm_exec_open(home->backend, w->bytes, &w->exec, err));
    if (t->time_devices) DGM_TRY(dgm_exec_clock(w->exec, err));
    dgm_search_part parts[DGM_PARTS_MAX];
    for (int i = 0; i < t->member_count; i++) {
        DGM_TRY(dgm_state_open(home->members[i].model, w->exec, &home->limits, &w->states[i], err));
        parts[i] = (dgm_search_part){w->states[i], t->members[i].weight};
    }
    DGM_TRY(dgm_restrict_open(home, w->exec, &w->vocabsel, err));
    DGM_TRY(choose_scorers(w, err));
    return dgm_search_open(&w->search, w->exec, &home->config, parts, t->member_count, &w->vocabsel,
                           w->scorers, w->scorer_count, err);
}

static void close_worker(dgm_worker *w)
{
    dgm_search_close(&w->search);
    for (int i = DGM_PARTS_MAX - 1; i >= 0; i--)
        if (w->states[i]) dgm_state_close(&w->states[i]);
    dgm_vocabsel_close(&w->vocabsel);
    dgm_exec_close(&w->exec);
    dgm_free(w->taken);
    dgm_free(w->inside);
    dgm_free(w->back);
    dgm_free(w->requests);
    dgm_free(w->meter);
    dgm_free(w->centroids);
}

// ---- results ----------------------------------------------------------------------------------

// Adds the time since the last call to the worker's; lock held.
static void clock_work(dgm_worker *w)
{
    if (!w->meter) return;
    double now = dgm_thread_time();
    if (w->since >= 0) w->busy += now - w->since;
    w->since = now;
}

// Totals of the search and of all models; lock held.
static void take_counts(dgm_worker *w)
{
    w->stats = *dgm_search_counts(w->search);
    if (w->centroids) dgm_vocabsel_cluster_used(&w->vocabsel, w->centroids);
    memset(&w->counts, 0, sizeof w->counts);
    for (int i = 0; i < w->t->member_count; i++) {
        dgm_model_counts n;
        dgm_state_counts(w->states[i], &n);
        dgm_model_counts_add(&w->counts, &n);
    }
}

// A piece is decoded or has failed: hands its line over when it was the last one.
static void finish_piece(dgm_worker *w, dgm_piece_state *piece)
{
    dgm_translator *t = w->t;
    dgm_line_state *line = piece->line;
    pthread_mutex_lock(&t->lock);
    w->source_tokens += (uint64_t)piece->count;
    line->job->worked += (double)(dgm_piece_work(piece) - piece->worked);
    piece->decoded = piece->status == DGM_OK;
    if (--line->left == 0) {
        clock_work(w); // whoever waits for the line may ask for these
        take_counts(w);
        w->peak = touched(w);
        w->restarts_seen = w->restarts;
        dgm_text_take(t, line);
    }
    pthread_mutex_unlock(&t->lock);
}

static void leave(dgm_worker *w, const dgm_piece_state *piece)
{
    int i = 0;
    while (i < w->inside_count && w->inside[i] != piece) i++;
    if (i == w->inside_count) return;
    w->inside_count--;
    w->full = false;
    memmove(&w->inside[i], &w->inside[i + 1], (size_t)(w->inside_count - i) * sizeof *w->inside);
    w->inside_cost -= dgm_piece_cost(w->t, piece);
}

// Pieces that were taken from the queue and are not inside: they come first at the next admission,
// the one put back last before the others.
static void put_back(dgm_worker *w, dgm_piece_state *piece)
{
    w->back[w->back_count++] = piece;
}

static bool begins_word(const void *vocab, int32_t token)
{
    return dgm_vocab_begins_word(vocab, token);
}

// Tells what the hypotheses of every sentence agree on by now. Their last word is whole where each of them goes on with
// a new one, whichever that is.
static void say_shared(dgm_worker *w)
{
    for (int i = 0; i < w->inside_count; i++) {
        dgm_piece_state *piece = w->inside[i];
        const int32_t *tokens;
        if (!dgm_line_streams(piece->line) || !dgm_piece_streams(piece)) continue;
        const uint64_t id = (uint64_t)(uintptr_t)piece;
        const int count = dgm_search_shared(w->search, id, &tokens);
        if (count < piece->shared || count == 0 || (count == piece->shared && piece->whole)) continue;
        const bool whole = dgm_search_goes_on(w->search, id, count, begins_word, piece->line->job->translator->target);
        if (count == piece->shared && !whole) continue;
        if (!dgm_text_say(piece, tokens, count, whole)) continue;
        sched_yield(); // whoever was told passes it on now, where all cores translate
        piece->shared = count;
        piece->whole = whole;
    }
}

// Of a piece with terms in the source: does it need another of its attempts (dgm_piece_state)?
static bool try_again(dgm_piece_state *piece, const dgm_search_result *r)
{
    const bool found = r->hypotheses[0].sum > -INFINITY;
    if (piece->unforced) {
        piece->unforced = false;
        return !found || !dgm_piece_within(piece, r);
    }
    if (!piece->loose || !found || dgm_piece_within(piece, r)) return false;
    dgm_piece_loosen(piece, false);
    piece->unforced = piece->with_terms.count > 0;
    return true;
}

static void on_result(void *cookie, const dgm_search_result *r)
{
    dgm_worker *w = cookie;
    dgm_piece_state *piece = (dgm_piece_state *)(uintptr_t)r->id;
    leave(w, piece);
    const dgm_hypothesis *best = &r->hypotheses[0];
    piece->missed = piece->late && !best->finished && (best->count == 0 || !(best->sum > -INFINITY));
    if (piece->missed) {
        finish_piece(w, piece);
        return;
    }
    if (piece->as_written && !piece->late && !dgm_piece_meets(piece, best)) {
        dgm_piece_lift(piece, best->tokens, best->count);
        dgm_piece_exchange(piece); // it lacks a term: once more with the terms in the source
        put_back(w, piece);
        return;
    }
    if (piece->as_written && piece->glance && !piece->late) {
        piece->glance = false; // the model says them: now in earnest
        put_back(w, piece);
        return;
    }
    if (!piece->as_written && !piece->late && !piece->relaxed && try_again(piece, r)) {
        put_back(w, piece);
        return;
    }
    if (piece->constraint && !piece->loose && dgm_constraint_limited(piece->constraint) && !(best->sum > -INFINITY)) {
        dgm_piece_lift(piece, NULL, 0); // nothing has every term as often as it may: once more without that
        put_back(w, piece);
        return;
    }
    if (piece->constraint && !piece->relaxed && !(best->sum > -INFINITY)) {
        piece->relaxed = true; // nothing meets them: once more without
        if (piece->with_terms.count) dgm_piece_exchange(piece);
        put_back(w, piece);
        return;
    }
    piece->status = dgm_piece_take(piece, r); // at least one: a search always answers
    if (piece->status == DGM_OK && piece->line->careful) dgm_piece_cut(piece);
    if (piece->status == DGM_OK && piece->line->pieces.count > 1 && dgm_line_streams(piece->line))
        dgm_text_say(piece, NULL, 0, true);
    finish_piece(w, piece);
}

static void fail_piece(dgm_worker *w, dgm_piece_state *piece, dgm_status st, const dgm_error *why)
{
    piece->status = st;
    if (st != DGM_ERR_MEMORY) piece->error = dgm_strdup(why->text);
    finish_piece(w, piece);
}

// ---- the loop ---------------------------------------------------------------------------------

static dgm_search_request request_of(const dgm_piece_state *piece)
{
    const dgm_job *job = piece->line->job;
    const bool glance = piece->as_written && piece->glance;
    return (dgm_search_request){
        .source = {job->encoded.tokens + piece->ids_at, piece->count},
        .prefix = piece->prefix_count ? job->encoded.tokens + piece->prefix_at : NULL,
        .prefix_count = piece->prefix_count,
        .lead = piece->lead ? job->encoded.tokens + piece->lead_at : NULL,
        .lengths = piece->line->other ? &piece->line->lengths : NULL,
        .clusters = piece->line->clusters,
        .lmbr = piece->line->lmbr,
        .walk = piece->line->walk,
        .constraint = piece->relaxed || piece->as_written || piece->unforced ? NULL : piece->constraint,
        .constraint_right = piece->relaxed || piece->as_written || piece->unforced ? NULL : piece->constraint_right,
        .width = glance ? job->translator->config.beam / 2 : 0,
        .glance = glance,
        .settle = job->streamed ? job->watch.settle : 0,
        .id = (uint64_t)(uintptr_t)piece,
    };
}

static void enter(dgm_worker *w, dgm_piece_state *piece)
{
    w->inside[w->inside_count++] = piece;
    w->inside_cost += dgm_piece_cost(w->t, piece);
}

// Large pages pay off from some sentences on, at once or one after the other.
static void count_entered(dgm_worker *w, int count)
{
    enum { MANY = 16 };
    if (w->entered >= MANY) return;
    w->entered += count;
    if (w->entered >= MANY) dgm_exec_large(w->exec);
}

// Admits w->taken[0 .. count), or as many as there is room for. If the batch is refused, one by
// one, so that only the culprit fails.
static void admit(dgm_worker *w, int count)
{
    dgm_error error;
    count_entered(w, count);
    for (int i = 0; i < count; i++) w->requests[i] = request_of(w->taken[i]);
    int fit = dgm_search_fits(w->search, w->requests, count);
    if (fit == 0 && w->inside_count == 0) fit = 1; // and it will say why it cannot enter
    while (count > fit) put_back(w, w->taken[--count]);
    if (count == 0) return;
    if (dgm_search_admit(w->search, w->requests, count, &error) == DGM_OK) {
        for (int i = 0; i < count; i++) enter(w, w->taken[i]);
        return;
    }
    for (int i = 0; i < count; i++) {
        dgm_status st = dgm_search_admit(w->search, &w->requests[i], 1, &error);
        if (st == DGM_OK)
            enter(w, w->taken[i]);
        else
            fail_piece(w, w->taken[i], st, &error);
    }
}

// The step needs more of the past than there is memory for: the sentences that came last wait until
// others are done, and begin again. Their results do not depend on it.
static void make_room(dgm_worker *w)
{
    while (w->inside_count > 1 && !dgm_search_step_fits(w->search)) {
        dgm_piece_state *piece = w->inside[w->inside_count - 1];
        leave(w, piece);
        dgm_search_evict(w->search, (uint64_t)(uintptr_t)piece);
        put_back(w, piece);
        w->restarts++;
        w->full = true;
    }
}

static void advance(dgm_worker *w)
{
    dgm_error error;
    make_room(w);
    dgm_status st = dgm_search_advance(w->search, on_result, w, &error);
    if (st == DGM_OK) return;
    // The device or the search is in an unknown state: what was inside is lost, the rest goes on.
    dgm_search_clear(w->search);
    for (int i = 0; i < w->t->member_count; i++) dgm_state_clear(w->states[i]);
    w->inside_cost = 0;
    while (w->inside_count) fail_piece(w, w->inside[--w->inside_count], st, &error);
}

// Pieces that wait here and are not to be decoded any more go; lock held.
static void sweep_back(dgm_worker *w, double now)
{
    int kept = 0;
    for (int i = 0; i < w->back_count; i++) {
        dgm_piece_state *piece = w->back[i];
        if (dgm_job_is_cancelled(piece->line->job))
            dgm_piece_drop(w->t, piece);
        else if (dgm_piece_is_late(piece, now))
            dgm_piece_miss(w->t, piece);
        else
            w->back[kept++] = piece;
    }
    w->back_count = kept;
}

// Sentences of jobs that were given up since the last look, likewise.
static void drop_cancelled(dgm_worker *w)
{
    dgm_translator *t = w->t;
    if (w->cancels == t->cancels) return;
    w->cancels = t->cancels;
    for (int i = w->inside_count - 1; i >= 0; i--) {
        dgm_piece_state *piece = w->inside[i];
        if (!dgm_job_is_cancelled(piece->line->job)) continue;
        leave(w, piece);
        dgm_search_evict(w->search, (uint64_t)(uintptr_t)piece);
        dgm_piece_drop(t, piece);
    }
    sweep_back(w, 0);
    dgm_text_wake(t);
}

// Sentences whose lines' deadlines have passed end as they are, unless they only end by themselves.
static void stop_late(dgm_worker *w, double now)
{
    for (int i = w->inside_count - 1; i >= 0; i--) {
        dgm_piece_state *piece = w->inside[i];
        if (!dgm_piece_is_late(piece, now)) continue;
        piece->late = true;
        if (!dgm_search_stop(w->search, (uint64_t)(uintptr_t)piece, on_result, w)) piece->late = false;
    }
}

// Fills w->taken with the pieces to admit now and returns their number; lock held. A worker that is busy waits until
// a quarter of its budget or of its sentences is free, so that encoder batches do not shrink to one sentence.
static size_t take(dgm_worker *w)
{
    dgm_translator *t = w->t;
    size_t room = (size_t)dgm_search_free(w->search), n = 0;
    int64_t tokens = w->home->batch_tokens - w->inside_cost;
    bool idle = w->inside_count == 0;
    if (room == 0 || (w->full && !idle) || (t->queued == 0 && w->back_count == 0)) return 0;
    bool enough = tokens * 4 >= w->home->batch_tokens && room * 4 >= (size_t)w->home->batch;
    if (!idle && !enough && t->queued + (size_t)w->back_count > room) return 0;
    while (n < room && w->back_count) {
        dgm_piece_state *piece = w->back[w->back_count - 1];
        tokens -= dgm_piece_cost(t, piece);
        if (tokens < 0 && !(idle && n == 0)) return n;
        w->taken[n++] = piece;
        w->back_count--;
    }
    if (n < room && t->queued)
        n += dgm_queue_take(t, w->taken + n, room - n, tokens, idle && n == 0);
    return n;
}

// One more step of every sentence inside: their jobs have come further. About as many steps as the source has
// tokens; where it takes more, the rest is counted at the end. Lock held.
static void count_work(dgm_worker *w)
{
    for (int i = 0; i < w->inside_count; i++) {
        dgm_piece_state *piece = w->inside[i];
        const float work = dgm_piece_work(piece), step = work / (float)(piece->count + 1);
        if (piece->worked + step > work) continue;
        piece->worked += step;
        piece->line->job->worked += (double)step;
    }
}

// ---- waiting ----------------------------------------------------------------------------------

void dgm_workers_wake(dgm_translator *t)
{
    atomic_fetch_add(&t->alarm, 1);
    pthread_cond_broadcast(&t->wake);
}

static bool has_nothing(const dgm_worker *w)
{
    return w->t->queued == 0 && w->inside_count == 0 && w->back_count == 0;
}

// Until there are pieces, or all end. Lock held before and after.
static void wait_for_pieces(dgm_worker *w)
{
    dgm_translator *t = w->t;
    bool rested = true; // somebody called since it last helped
    w->leads = false;
    while (!t->quit && has_nothing(w)) dgm_helpers_wait(t, &t->alarm, &rested);
}

static void *worker_main(void *arg)
{
    dgm_worker *w = arg;
    dgm_translator *t = w->t;
    pthread_mutex_lock(&t->lock);
    for (;;) {
        drop_cancelled(w);
        wait_for_pieces(w);
        if (has_nothing(w)) break;
        const double now = t->timed ? dgm_now() : 0; // 0: before any deadline
        if (t->timed) {
            sweep_back(w, now);
            dgm_queue_expire(t, now);
        }
        size_t count = take(w);
        const bool streams = t->streams > 0;
        dgm_helpers_call(w);
        if (w->meter) w->since = dgm_thread_time();
        pthread_mutex_unlock(&t->lock);
        if (count) admit(w, (int)count);
        if (now > 0) stop_late(w, now);
        if (w->inside_count) advance(w);
        if (streams) say_shared(w);
        pthread_mutex_lock(&t->lock);
        count_work(w);
        dgm_text_wake(t);
        clock_work(w);
        take_counts(w);
        w->peak = touched(w);
    }
    pthread_mutex_unlock(&t->lock);
    return NULL;
}

dgm_status dgm_workers_start(dgm_translator *t, dgm_error *err)
{
    if (pthread_mutex_init(&t->lock, NULL) != 0) return dgm_no_memory(err);
    if (pthread_cond_init(&t->wake, NULL) != 0) {
        pthread_mutex_destroy(&t->lock);
        return dgm_no_memory(err);
    }
    t->lock_ready = true;
    t->cores = dgm_cpu_count();
    DGM_TRY(dgm_text_start(t, err));
    t->workers = dgm_calloc((size_t)t->threads, sizeof *t->workers);
    if (!t->workers) return dgm_no_memory(err);
    for (int i = 0; i < t->threads; i++) DGM_TRY(open_worker(&t->workers[i], t, err));
    for (int i = 0; i < t->threads; i++) {
        if (pthread_create(&t->workers[i].thread, NULL, worker_main, &t->workers[i]) != 0)
            return dgm_fail(err, DGM_ERR_MEMORY, "cannot start thread %d of %d", i + 1, t->threads);
        t->started++;
    }
    return dgm_helpers_start(t, err);
}

void dgm_workers_stop(dgm_translator *t)
{
    if (t->lock_ready) {
        pthread_mutex_lock(&t->lock);
        t->quit = true;
        atomic_store(&t->over, 1);
        dgm_workers_wake(t);
        pthread_mutex_unlock(&t->lock);
    }
    for (int i = 0; i < t->started; i++) pthread_join(t->workers[i].thread, NULL);
    dgm_helpers_stop(t);
    dgm_text_stop(t);
    for (int i = 0; t->workers && i < t->threads; i++) close_worker(&t->workers[i]);
    dgm_free(t->workers);
    t->workers = NULL;
    if (t->lock_ready) {
        pthread_cond_destroy(&t->wake);
        pthread_mutex_destroy(&t->lock);
    }
}
