// SPDX-License-Identifier: MIT
// The small public functions: one-call translation, results, names, counters; and what workers have done, for those
// who count or watch.
#include <stdint.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/sized.h"
#include "engine/worker_private.h"

const char *dgm_version(void)
{
    return DGM_VERSION;
}

const char *dgm_status_name(dgm_status status)
{
    static const char *const names[] = {
        "ok",          "invalid argument", "out of memory",
        "i/o error",   "invalid file",     "model is newer than this program",
        "unsupported", "invalid text",     "cancelled",
    };
    int i = -(int)status;
    return i >= 0 && i < (int)(sizeof names / sizeof names[0]) ? names[i] : "unknown status";
}

dgm_status dgm_translate_inputs(dgm_translator *t, const dgm_input *inputs, size_t count,
                                dgm_results **results, dgm_error *err)
{
    DGM_FAIL_IF(!results, err, DGM_ERR_ARGUMENT, "there is no place for the results: NULL");
    *results = NULL;
    dgm_job *job = NULL;
    DGM_TRY(dgm_submit(t, inputs, count, &job, err));
    return dgm_wait(&job, results, err);
}

dgm_status dgm_translate(dgm_translator *t, const char *const *texts, size_t count,
                         dgm_results **results, dgm_error *err)
{
    DGM_FAIL_IF(!results, err, DGM_ERR_ARGUMENT, "there is no place for the results: NULL");
    *results = NULL;
    DGM_FAIL_IF(!t, err, DGM_ERR_ARGUMENT, "there is no translator: NULL");
    DGM_FAIL_IF(!texts && count, err, DGM_ERR_ARGUMENT, "there are no texts: NULL");
    dgm_input *inputs = dgm_calloc(count ? count : 1, sizeof *inputs);
    if (!inputs) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        inputs[i].size = sizeof inputs[i];
        inputs[i].text = texts[i] ? texts[i] : "";
        inputs[i].text_size = strlen(inputs[i].text);
    }
    dgm_status st = dgm_translate_inputs(t, inputs, count, results, err);
    dgm_free(inputs);
    return st;
}

const char *dgm_result_text(const dgm_result *result)
{
    return result && result->count ? result->translations[0]->text : "";
}

const dgm_result *dgm_results_item(const dgm_results *results, size_t index)
{
    return results && index < results->count ? results->items[index] : NULL;
}

void dgm_translation_free(const dgm_translation *t)
{
    dgm_free((void *)(uintptr_t)t->text);
    dgm_free((void *)(uintptr_t)t->tokens);
    dgm_free((void *)(uintptr_t)t->links);
    dgm_free((void *)(uintptr_t)t->pivot);
}

void dgm_translations_free(dgm_result *r)
{
    for (size_t k = 0; k < r->count; k++) dgm_translation_free(r->translations[k]);
    dgm_free((void *)(uintptr_t)r->translations);
    r->translations = NULL;
    r->count = 0;
}

void dgm_results_free(dgm_results **results)
{
    if (!results || !*results) return;
    // pub is the first member: see dgm_results_box.
    dgm_results_box *box = (dgm_results_box *)(void *)*results;
    *results = NULL;
    for (size_t i = 0; box->items && i < box->pub.count; i++) {
        dgm_result *r = &box->items[i];
        dgm_translations_free(r);
        dgm_free((void *)(uintptr_t)r->notice);
        dgm_free((void *)(uintptr_t)r->ngrams);
        if (r->message && r->message[0] && r->message != dgm_memory_message)
            dgm_free((void *)(uintptr_t)r->message);
    }
    dgm_free(box->list);
    dgm_free(box->items);
    dgm_free(box);
}

void dgm_input_init(dgm_input *input, size_t size)
{
    const dgm_input own = {0};
    if (input) dgm_sized_give(input, size, &own, sizeof own);
}

void dgm_evidence_init(dgm_evidence *evidence, size_t size)
{
    const dgm_evidence own = {0};
    if (evidence) dgm_sized_give(evidence, size, &own, sizeof own);
}

static void count_devices(const dgm_translator *t, dgm_counters *c)
{
    for (int i = 0; t->time_devices && i < t->devices; i++) {
        const double busy = dgm_backend_busy(dgm_home(t, i)->backend);
        if (busy < 0) continue;
        c->devices++;
        c->device_seconds += busy;
    }
}

void dgm_count_sized(const dgm_translator *t, dgm_counters *out, size_t size)
{
    dgm_counters own = {0}, *const counters = &own;
    dgm_translator *mine = (dgm_translator *)(uintptr_t)t; // the lock is not part of the value
    if (!out) return;
    if (!t) {
        dgm_sized_give(out, size, &own, sizeof own);
        return;
    }
    pthread_mutex_lock(&mine->lock);
    counters->lines = t->lines;
    counters->copied = t->copied;
    counters->repeated = t->repeated;
    counters->mended = t->mended;
    counters->evidence_lines = t->evidence_lines;
    counters->evidence_rows = t->evidence_rows;
    counters->evidence_values = t->evidence_values;
    counters->evidence_pruned = t->evidence_pruned;
    counters->evidence_seconds = t->evidence_seconds;
    counters->evidence_decoded = t->evidence_decoded;
    counters->evidence_decode_seconds = t->evidence_decode_seconds;
    dgm_workers_count(t, counters);
    count_devices(t, counters);
    pthread_mutex_unlock(&mine->lock);
    dgm_sized_give(out, size, &own, sizeof own);
}

// ---- workers ----------------------------------------------------------------------------------

// Centroids that any worker used.
static uint64_t count_centroids(const dgm_translator *t)
{
    uint64_t used = 0;
    for (size_t i = 0; i < (dgm_restrict_centroids(t) + 63) / 64; i++) {
        uint64_t bits = 0;
        for (int k = 0; k < t->threads; k++) bits |= t->workers[k].centroids[i];
        for (; bits; bits &= bits - 1) used++;
    }
    return used;
}

void dgm_workers_count(const dgm_translator *t, dgm_counters *c)
{
    c->centroids = dgm_restrict_centroids(t);
    c->centroids_used = count_centroids(t);
    for (int i = 0; i < t->threads; i++) {
        const dgm_worker *w = &t->workers[i];
        c->sentences += w->stats.sentences;
        c->target_tokens += w->stats.tokens;
        c->steps += w->stats.steps;
        c->rows += w->stats.rows;
        c->rank_rows += w->stats.rank_rows;
        c->dots += w->stats.dots;
        c->live += w->stats.live;
        c->leads += w->stats.leads;
        c->exact += w->stats.exact;
        c->pops += w->stats.pops;
        c->heaps += w->stats.heaps;
        if (w->stats.heap_peak > c->heap_peak) c->heap_peak = w->stats.heap_peak;
        c->restarts += w->restarts_seen;
        c->candidates += w->stats.candidates;
        c->more += w->stats.more;
        c->unions += w->stats.unions;
        c->union_tokens += w->stats.union_tokens;
        c->selections += w->stats.selections;
        c->selection_tokens += w->stats.selection_tokens;
        c->source_tokens += w->source_tokens;
        c->arena_bytes += w->bytes.host + w->bytes.device;
        c->arena_peak += w->peak;
    }
}

void dgm_workers_optimisations(const dgm_translator *t, dgm_model_counts *sum, uint64_t *early)
{
    for (int i = 0; i < t->threads; i++) {
        dgm_model_counts_add(sum, &t->workers[i].counts);
        *early += t->workers[i].stats.early;
    }
}

uint64_t dgm_workers_shared(const dgm_translator *t)
{
    uint64_t parts = 0;
    for (int i = 0; i < t->threads; i++) {
        const dgm_team *team = dgm_exec_team(t->workers[i].exec);
        if (team) parts += dgm_team_taken(team);
    }
    return parts;
}

// ---- watching ---------------------------------------------------------------------------------

dgm_status dgm_workers_meter(dgm_translator *t, bool on, dgm_error *err)
{
    dgm_status st = DGM_OK;
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < t->threads && st == DGM_OK; i++) {
        dgm_worker *w = &t->workers[i];
        dgm_exec_meter(w->exec, NULL);
        dgm_free(w->meter);
        w->meter = on ? dgm_calloc(1, sizeof *w->meter) : NULL;
        if (on && !w->meter) st = dgm_no_memory(err);
        w->busy = 0;
        w->since = -1; // it may still be on its way to sleep after the last job
        dgm_exec_meter(w->exec, w->meter);
    }
    t->profiling = on && st == DGM_OK;
    t->profile_begin = dgm_now();
    t->text_seconds = 0;
    pthread_mutex_unlock(&t->lock);
    return st;
}

void dgm_workers_read(dgm_translator *t, dgm_meter *sum, double *busy)
{
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < t->threads; i++) {
        const dgm_worker *w = &t->workers[i];
        if (!w->meter) continue;
        dgm_meter_add(sum, w->meter);
        *busy += w->busy;
    }
    pthread_mutex_unlock(&t->lock);
}

void dgm_workers_observe(dgm_translator *t, const dgm_observer *observer)
{
    pthread_mutex_lock(&t->lock);
    for (int i = 0; i < t->threads; i++) dgm_exec_observe(t->workers[i].exec, observer);
    pthread_mutex_unlock(&t->lock);
}
