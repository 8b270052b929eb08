// SPDX-License-Identifier: MIT
// `dragoman phrase translate` behind its command line: models, threads, texts around the decoder
// (phrase/phrase_decode.h). Lines are independent, so results do not depend on the threads.
#include <string.h>

#include "base/mem.h"
#include "base/sized.h"
#include "tools/phrasal.h"

static dgm_status open_models(dgm_phrasal *p, dgm_error *err)
{
    DGM_TRY(dgm_splitter_open(&p->split[0], p->o.subwords, DGM_SOURCE, err));
    DGM_TRY(dgm_splitter_open(&p->split[1], p->o.subwords, DGM_TARGET, err));
    const dgm_vocab *const subwords[2] = {p->split[0].vocab, p->split[1].vocab};
    return dgm_phrase_system_open(&p->system, &p->o, subwords, err);
}

static dgm_status open_threads(dgm_phrasal *p, dgm_error *err)
{
    p->threads = p->o.threads ? p->o.threads : dgm_cpu_count();
    DGM_TRY(dgm_pool_open(&p->pool, p->threads, err));
    p->workers = dgm_calloc((size_t)p->threads, sizeof *p->workers);
    if (!p->workers) return dgm_no_memory(err);
    for (int i = 0; i < p->threads; i++)
        DGM_TRY(dgm_phrase_worker_open(&p->workers[i], p->system, err));
    return DGM_OK;
}

dgm_status dgm_phrasal_open(dgm_phrasal **out, const dgm_phrasal_options *options, dgm_error *err)
{
    *out = NULL;
    dgm_phrasal_options own;
    dgm_phrasal_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_phrasal_options", "dgm_phrasal_default",
                           err));
    dgm_phrasal *p = dgm_calloc(1, sizeof *p);
    if (!p) return dgm_no_memory(err);
    p->o = own;
    dgm_status st = open_models(p, err);
    if (st == DGM_OK) st = open_threads(p, err);
    if (st != DGM_OK) dgm_phrasal_close(&p);
    *out = p;
    return st;
}

void dgm_phrasal_close(dgm_phrasal **out)
{
    dgm_phrasal *p = *out;
    if (!p) return;
    for (int i = 0; p->workers && i < p->threads; i++) dgm_phrase_worker_close(&p->workers[i]);
    dgm_free(p->workers);
    dgm_pool_close(&p->pool);
    dgm_phrase_system_close(&p->system);
    dgm_splitter_close(&p->split[0]);
    dgm_splitter_close(&p->split[1]);
    dgm_free(p);
    *out = NULL;
}

void dgm_phrasal_count_sized(const dgm_phrasal *p, dgm_phrasal_stats *stats, size_t size)
{
    dgm_phrasal_stats own, *const s = &own;
    *s = (dgm_phrasal_stats){.lines = p->lines, .words = p->words};
    for (int i = 0; i < p->threads; i++) {
        const dgm_pb_stats *d = dgm_pb_decoder_stats(p->workers[i]->decoder);
        s->unknown += d->unknown;
        s->hypotheses += d->hypotheses;
        s->evaluated += d->evaluated;
        s->recombined += d->recombined;
        s->edges += d->edges;
    }
    dgm_sized_give(stats, size, &own, sizeof own);
}

// ---- decoding ---------------------------------------------------------------------------------

typedef struct run_state {
    dgm_phrasal *p;
    const dgm_line *lines;
    dgm_phrasal_each each;
    void *cookie;
    dgm_status *status; // [count]
    dgm_error *error;   // [threads]: of the first line that failed in a thread
    uint64_t *words;    // [threads]
    bool *failed;       // [threads]
} run_state;

static dgm_status decode_line(run_state *r, int worker, size_t i, dgm_error *err)
{
    const dgm_pb_translation *list;
    int count = 0;
    dgm_phrase_worker *w = r->p->workers[worker];
    const dgm_text line = {r->lines[i].data, r->lines[i].size};
    dgm_status st = dgm_phrase_worker_decode(w, line, &list, &count, err);
    if (st == DGM_OK) st = r->each(r->cookie, worker, i, list, count, err);
    r->words[worker] += w->count;
    return st;
}

static void decode_item(void *arg, int worker, int item)
{
    run_state *r = arg;
    dgm_error err;
    dgm_status st = decode_line(r, worker, (size_t)item, &err);
    r->status[item] = st;
    if (st == DGM_OK || r->failed[worker]) return;
    r->failed[worker] = true;
    r->error[worker] = err;
}

dgm_status dgm_phrasal_run(dgm_phrasal *p, const dgm_line *lines, size_t count,
                           dgm_phrasal_each each, void *cookie, dgm_error *err)
{
    run_state r = {.p = p, .lines = lines, .each = each, .cookie = cookie};
    size_t threads = (size_t)p->threads;
    r.status = dgm_calloc(count + 1, sizeof *r.status);
    r.error = dgm_calloc(threads, sizeof *r.error);
    r.words = dgm_calloc(threads, sizeof *r.words);
    r.failed = dgm_calloc(threads, sizeof *r.failed);
    dgm_status st = r.status && r.error && r.words && r.failed ? DGM_OK : dgm_no_memory(err);
    if (st == DGM_OK) {
        dgm_pool_run(p->pool, decode_item, &r, (int)count);
        p->lines += count;
        for (size_t t = 0; t < threads; t++) {
            p->words += r.words[t];
            if (!r.failed[t] || st != DGM_OK) continue;
            size_t i = 0; // the first line that failed, for the code; any thread's message
            while (i < count && r.status[i] == DGM_OK) i++;
            st = dgm_fail(err, r.status[i], "line %zu: %s", i + 1, r.error[t].text);
        }
    }
    dgm_free(r.status);
    dgm_free(r.error);
    dgm_free(r.words);
    dgm_free(r.failed);
    return st;
}

// ---- texts ------------------------------------------------------------------------------------

dgm_status dgm_phrasal_text(const dgm_phrasal *p, const dgm_text *words, int count, dgm_writer *out,
                            dgm_error *err)
{
    return dgm_wording_join(&p->system->wording[1], words, (size_t)count, out, err);
}

// A line's result, built by the worker: offsets into one buffer until all is written.
typedef struct line_result {
    dgm_writer bytes;
    dgm_phrasal_item *items;
    const dgm_phrasal_item **list; // the items
    size_t count;
    size_t lattice_at, lattice_size;
} line_result;

typedef struct translation_job {
    dgm_phrasal *p;
    line_result *results;
    uint64_t first;
} translation_job;

static void write_links(const dgm_pb_translation *t, dgm_writer *w)
{
    bool first = true;
    for (int s = 0; s < t->segment_count; s++) {
        const dgm_pb_segment *g = &t->segments[s];
        for (int i = g->begin; i < g->end && i - g->begin < DGM_PHRASE_LENGTH_MAX; i++)
            for (int j = 0; j < g->count; j++)
                if (g->links & DGM_PHRASE_LINK(i - g->begin, j)) {
                    dgm_write_format(w, "%s%d-%d", first ? "" : " ", i, g->from + j);
                    first = false;
                }
    }
}

// The bytes written since `begin`, as an offset.
static dgm_line since(const dgm_writer *w, size_t begin)
{
    return (dgm_line){(const char *)(uintptr_t)begin, w->size - begin};
}

static dgm_status write_lattice(dgm_phrase_worker *w, uint64_t number, line_result *r, dgm_error *err)
{
    dgm_lattice *l = NULL;
    DGM_TRY(dgm_phrase_worker_lattice(w, &l, err));
    dgm_writer name = {0};
    dgm_write_format(&name, "%llu", (unsigned long long)number);
    dgm_free(l->name);
    l->name = dgm_writer_take(&name, NULL);
    r->lattice_at = r->bytes.size;
    const dgm_status st =
        l->name ? dgm_lattice_write(l, DGM_LATTICE_NATIVE, &r->bytes, err) : dgm_no_memory(err);
    r->lattice_size = r->bytes.size - r->lattice_at;
    dgm_lattice_close(&l);
    return st;
}

static dgm_status keep_line(void *cookie, int worker, size_t line, const dgm_pb_translation *list,
                            int count, dgm_error *err)
{
    translation_job *job = cookie;
    dgm_phrasal *p = job->p;
    line_result *r = &job->results[line];
    r->items = dgm_calloc((size_t)count, sizeof *r->items);
    r->list = dgm_calloc((size_t)count, sizeof *r->list);
    if (!r->items || !r->list) return dgm_no_memory(err);
    for (int i = 0; i < count; i++) {
        dgm_phrasal_item *item = &r->items[r->count];
        r->list[r->count++] = item;
        item->size = sizeof *item;
        size_t at = r->bytes.size;
        DGM_TRY(dgm_phrasal_text(p, list[i].words, list[i].count, &r->bytes, err));
        item->text = since(&r->bytes, at);
        at = r->bytes.size;
        dgm_pb_features_write(list[i].features, &r->bytes);
        item->features = since(&r->bytes, at);
        at = r->bytes.size;
        if (p->o.alignment) write_links(&list[i], &r->bytes);
        item->links = since(&r->bytes, at);
        item->score = list[i].score;
    }
    if (p->o.lattice) DGM_TRY(write_lattice(p->workers[worker], job->first + line, r, err));
    return r->bytes.failed ? dgm_no_memory(err) : DGM_OK;
}

static void settle(line_result *r, dgm_line *line)
{
    line->data = (const char *)r->bytes.data + (uintptr_t)line->data;
}

static dgm_status hand_over(line_result *r, int (*take)(void *, const dgm_phrasal_result *),
                            void *cookie, dgm_error *err)
{
    for (size_t i = 0; i < r->count; i++) {
        settle(r, &r->items[i].text);
        settle(r, &r->items[i].features);
        settle(r, &r->items[i].links);
    }
    dgm_phrasal_result out = {.size = sizeof out, .items = r->list, .count = r->count};
    out.lattice = (dgm_line){(const char *)r->bytes.data + r->lattice_at, r->lattice_size};
    DGM_FAIL_IF(take(cookie, &out) != 0, err, DGM_ERR_CANCELLED, "stopped on request");
    return DGM_OK;
}

dgm_status dgm_phrasal_translate(dgm_phrasal *p, const dgm_line *lines, size_t count,
                                 uint64_t first, int (*take)(void *, const dgm_phrasal_result *),
                                 void *cookie, dgm_error *err)
{
    translation_job job = {.p = p, .first = first};
    job.results = dgm_calloc(count + 1, sizeof *job.results);
    if (!job.results) return dgm_no_memory(err);
    dgm_status st = dgm_phrasal_run(p, lines, count, keep_line, &job, err);
    for (size_t i = 0; i < count; i++) {
        line_result *r = &job.results[i];
        if (st == DGM_OK) st = hand_over(r, take, cookie, err);
        dgm_writer_free(&r->bytes);
        dgm_free(r->items);
        dgm_free(r->list);
    }
    dgm_free(job.results);
    return st;
}
