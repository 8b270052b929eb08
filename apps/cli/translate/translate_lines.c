// SPDX-License-Identifier: MIT
// The lines of `dragoman translate`: in, to the workers and out, in order.
//
// Lines are read into windows; a window is one job of the library, which sorts its pieces by
// length. While workers decode one window, the next is read, and the oldest is written as soon as
// it is done. When no input is waiting, what is there is translated and written at once, so that
// the program can be talked to through a pipe or a terminal. A pipe that always has more to read begins with
// small windows, each twice as long as the one before: its first translations do not wait for two thousand
// lines, and workers have enough to do.
#include <stdlib.h>
#include <string.h>

#include "io/interrupt.h"
#include "translate/documents.h"
#include "translate/job.h"
#include "translate/translate_lines.h"

// ---- output -----------------------------------------------------------------------------------

static void report_failure(session *s, unsigned long long line, const char *message)
{
    s->failed++;
    if (s->report) {
        writer_format(s->report, "%llu\t", line);
        writer_text(s->report, message);
        writer_put(s->report, "\n", 1);
        return;
    }
    progress_end(&s->bar);
    fail(EXIT_LINES, "line %llu: %s", line, message);
}

// Constraints that could not be met; the line is translated all the same.
static void report_notice(session *s, unsigned long long line, const dgm_result *r)
{
    s->malformed = s->malformed || r->flags & DGM_LINE_MALFORMED;
    if (s->report) {
        writer_format(s->report, "%llu\t", line);
        writer_text(s->report, r->notice);
        writer_put(s->report, "\n", 1);
    } else if (!s->o->quiet) {
        progress_end(&s->bar);
        warn("line %llu: %s", line, r->notice);
    }
}

static void put_result(session *s, const dgm_result *r, bool crlf)
{
    uint64_t number = s->written++;
    if (number == 0 && s->plain && reader_marked(s->in)) writer_text(s->out, "\xef\xbb\xbf");
    unsigned long long shown = (unsigned long long)number + 1; // people count from 1
    if (r->flags & DGM_LINE_REPAIRED && !s->warned && !s->o->quiet) {
        progress_end(&s->bar);
        warn("line %llu is not valid UTF-8: invalid bytes were replaced by U+FFFD (later lines are "
             "not reported); text of another kind is read with --encoding",
             shown);
        s->warned = true;
    }
    if (r->status != DGM_OK) report_failure(s, shown, r->message);
    if (r->notice) report_notice(s, shown, r);
    if (s->dump) lmbr_write(s->dump, number, r);
    if (s->document) document_take(s, number, r);
    else present_result(&s->o->show, s->out, number, r, crlf);
}

// The lines up to the end of a window are written: makes sure that they stay, and says so. Members
// of a gzip file end where as many windows of full length do, so that its bytes are the same
// however often the job was interrupted.
static void mark_window(session *s, uint32_t input)
{
    bool whole = s->written % (uint64_t)s->o->window == 0;
    if (writer_is_gz(s->out) && !whole) return;
    writer_cut(s->out);
    if (s->report) writer_cut(s->report);
    if (s->dump) writer_cut(s->dump);
    if (!s->journal) return;
    journal_mark m = {.lines = s->written, .input = input, .failed = s->failed};
    if (!writer_sync(s->out) || (s->report && !writer_sync(s->report)) || (s->dump && !writer_sync(s->dump)))
        return;
    m.bytes = writer_bytes(s->out, &m.output);
    if (s->report) m.failures = writer_bytes(s->report, &m.reasons);
    if (s->dump) m.dumped = writer_bytes(s->dump, &m.dump);
    if (!journal_record(s->journal, &m)) s->broken = true;
}

// ---- jobs -------------------------------------------------------------------------------------

// Lines that are finished, of how many, and the share of the work that they are. What is left of the
// input is guessed from what was read of it; jobs know how far they are themselves.
progress_state progress_of(session *s)
{
    progress_state now = {.lines = s->written, .failed = s->failed, .total = -1, .share = -1};
    double done = (double)s->source_done;
    const double read = s->ended ? 1 : reader_share(s->in);
    for (int i = 0; i < s->count; i++) {
        const window *w = &s->jobs[(s->first + i) % JOBS_MAX];
        now.lines += dgm_route_done(w->job);
        done += dgm_route_share(w->job) * (double)w->source;
    }
    if (read > 0) {
        now.total = (double)s->read / read;
        now.share = s->source_read ? read * done / (double)s->source_read : read;
    }
    dgm_counters c;
    dgm_count(s->t, &c);
    now.tokens = c.target_tokens;
    return now;
}

static void show_progress(session *s)
{
    if (s->bar.kind == PROGRESS_OFF) return;
    const progress_state now = progress_of(s);
    progress_report(&s->bar, &now);
}

// A large window takes its time: shows how it gets on, and gives up at once when interrupted. Small ones
// come from somebody who waits for the answer.
static bool watch(session *s, const window *w)
{
    enum { LARGE = 64 };
    if (s->bar.kind == PROGRESS_OFF && !s->journal) return true;
    while (w->lines >= LARGE && !interrupted && dgm_route_done(w->job) < w->lines) {
        show_progress(s);
        progress_nap();
    }
    return !interrupted;
}

// Waits for the oldest job and writes its lines.
static void collect(session *s)
{
    window *w = &s->jobs[s->first];
    if (!watch(s, w)) return;
    dgm_results *results = NULL;
    dgm_error error;
    if (dgm_route_wait(&w->job, &results, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        s->broken = true;
    }
    if (results && !rerank_apply(s->rerank, w->sources, results, s->o->show.nbest))
        s->broken = true;
    interrupt_hold(true);
    for (size_t i = 0; results && !s->broken && i < results->count; i++)
        put_result(s, results->items[i], w->crlf && w->crlf[i]);
    free(w->crlf);
    w->crlf = NULL;
    dgm_results_free(&results);
    if (!s->broken) mark_window(s, w->input);
    interrupt_hold(false);
    s->source_done += w->source;
    s->in_flight -= w->lines;
    s->in_flight_bytes -= w->bytes;
    s->first = (s->first + 1) % JOBS_MAX;
    s->count--;
    show_progress(s);
    if (writer_failed(s->out) || (s->report && writer_failed(s->report)) ||
        (s->dump && writer_failed(s->dump)))
        s->broken = true; // nobody will see the rest
}

// Of a line whose constraints are most likely a glossary's; once.
static void warn_of_terms(session *s, const dgm_input *inputs)
{
    for (size_t i = 0; i < s->pending && !s->warned_terms && !s->o->quiet; i++) {
        const dgm_input *in = &inputs[i];
        if (!dgm_constraints_like_terms(in->constraints, in->constraints_size, in->text, in->text_size))
            continue;
        s->warned_terms = true;
        warn("--constraints: '%.*s' looks like a row of a glossary, both of whose columns are forced "
             "into the translation: a glossary is given with --terms",
             (int)(in->constraints_size < 60 ? in->constraints_size : 60), in->constraints);
    }
}

// Hands the window that was filled to the workers.
static void submit(session *s)
{
    dgm_input *inputs = need(calloc(s->pending, sizeof *inputs));
    const char *at = s->text;
    directions_begin(&s->directions, s->pending, s->text_used);
    for (size_t i = 0; i < s->pending; i++) {
        dgm_input_default(&inputs[i]);
        inputs[i].text = at;
        inputs[i].text_size = s->sizes[i];
        at += s->sizes[i];
        inputs[i].prefix = s->with[0].sizes[i] ? at : NULL;
        inputs[i].prefix_size = s->with[0].sizes[i];
        at += s->with[0].sizes[i];
        inputs[i].constraints = s->with[1].sizes[i] ? at : NULL;
        inputs[i].constraints_size = s->with[1].sizes[i];
        at += s->with[1].sizes[i];
        directions_add(&s->directions, i, at, s->with[2].sizes[i], &inputs[i]);
        at += s->with[2].sizes[i];
    }
    warn_of_terms(s, inputs);
    evidence_attach(&s->evidence, inputs, s->pending);
    lattices_attach(&s->lattices, inputs, s->pending);
    window *w = &s->jobs[(s->first + s->count) % JOBS_MAX];
    dgm_error error;
    if (dgm_route_submit(s->route, inputs, s->pending, &w->job, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        s->broken = true;
    } else {
        w->lines = s->pending;
        w->source = s->source;
        w->bytes = s->text_used + s->evidence.text_used + s->lattices.text_used;
        s->in_flight_bytes += w->bytes;
        w->input = s->input;
        w->sources = rerank_keep(s->rerank, inputs, s->pending);
        w->crlf = NULL;
        if (s->any_crlf && s->plain) w->crlf = memcpy(need(malloc(s->pending)), s->crlf, s->pending);
        s->in_flight += s->pending;
        s->count++;
    }
    free(inputs);
    s->pending = s->text_used = 0;
    s->any_crlf = false;
    s->source = 0;
    evidence_skip(&s->evidence);
    lattices_skip(&s->lattices);
}

static void append(session *s, const char *data, size_t size)
{
    if (s->text_used + size + 1 > s->text_cap) {
        s->text_cap = (s->text_used + size + 1) * 2;
        s->text = need(realloc(s->text, s->text_cap));
    }
    memcpy(s->text + s->text_used, data, size);
    s->text_used += size;
}

// The next line of a companion; nothing where there is none.
static void next_of(session *s, companion *c, const char **line, size_t *size)
{
    *size = 0;
    if (!c->in || c->ended || reader_next(c->in, line, size)) return;
    if (!reader_failed(c->in))
        fail(EXIT_RUNTIME,
             "the %s file has fewer lines than the input: the rest is translated without", c->what);
    s->input_failed = c->ended = true;
    *size = 0;
}

// The line as it stood in its file.
static void sum_line(session *s, const line_reader *in, const char *line, size_t size)
{
    s->input = checksum(s->input, line, size);
    s->input = in && reader_crlf(in) ? checksum(s->input, "\r\n", 2) : checksum(s->input, "\n", 1);
}

// One more line of input (and its companions) for the window. False at the end.
static bool read_one(session *s)
{
    const char *line = NULL;
    size_t size = 0;
    if (!reader_next(s->in, &line, &size)) return false;
    if (!evidence_add(&s->evidence, s->read, &s->input)) return !(s->cut = true);
    if (!lattices_add(&s->lattices, &s->input)) return !(s->cut = true);
    if (s->pending == s->lines_cap) {
        s->lines_cap = s->lines_cap ? s->lines_cap * 2 : 256;
        s->sizes = need(realloc(s->sizes, s->lines_cap * sizeof *s->sizes));
        s->crlf = need(realloc(s->crlf, s->lines_cap * sizeof *s->crlf));
        for (companion *c = s->with; c < s->with + COMPANIONS; c++)
            c->sizes = need(realloc(c->sizes, s->lines_cap * sizeof *c->sizes));
    }
    s->sizes[s->pending] = size;
    s->crlf[s->pending] = reader_crlf(s->in);
    s->any_crlf |= s->crlf[s->pending];
    append(s, line, size);
    s->source += size + 1;
    s->source_read += size + 1;
    sum_line(s, s->in, line, size);
    for (companion *c = s->with; c < s->with + COMPANIONS; c++) {
        next_of(s, c, &line, &size);
        c->sizes[s->pending] = size;
        append(s, line, size);
        if (c->in || c == s->with) sum_line(s, c->in, line, size);
    }
    s->pending++;
    s->read++;
    return true;
}

// Lines of the interrupted job, which were read then. False after a message if they were others.
bool skip_lines(session *s, const journal_mark *m)
{
    const char *line = NULL;
    size_t size = 0;
    while (s->read < m->lines && reader_next(s->in, &line, &size)) {
        if (!evidence_add(&s->evidence, s->read, &s->input)) return false;
        evidence_skip(&s->evidence);
        if (!lattices_add(&s->lattices, &s->input)) return false;
        lattices_skip(&s->lattices);
        s->source_read += size + 1;
        sum_line(s, s->in, line, size);
        for (companion *c = s->with; c < s->with + COMPANIONS; c++) {
            next_of(s, c, &line, &size);
            if (c->in || c == s->with) sum_line(s, c->in, line, size);
        }
        s->read++;
    }
    s->source_done = s->source_read;
    if (reader_failed(s->in)) return false;
    if (s->read == m->lines && s->input == m->input) return true;
    fail(EXIT_RUNTIME,
         "cannot resume '%s': '%s' is not the input of the interrupted job, whose first %llu lines "
         "were others",
         s->o->output, reader_name(s->in), (unsigned long long)m->lines);
    return false;
}

// Of lines, those of whole windows of the file too: members of a gzip file end there (mark_window).
static bool window_is_full(const session *s)
{
    return s->pending >= s->window_lines || (s->pending && s->read % (uint64_t)s->o->window == 0) ||
           s->text_used + s->evidence.text_used + s->lattices.text_used >= s->window_bytes;
}

static void grow_window(session *s)
{
    const uint64_t most = (uint64_t)s->o->window;
    s->window_lines = s->window_lines < most / 2 ? s->window_lines * 2 : most;
}

// Two windows at work keep the batches of few threads full, and a third would only take memory. Of the oldest a few
// lines are left most of the time, so that many threads need more: twice what they hold at once, for one batch to be
// decoded while the next is read and encoded.
static uint64_t windows_at_work(const session *s)
{
    const dgm_translator_info *i = dgm_describe(s->t);
    return 2 + 2 * (uint64_t)i->threads * (uint64_t)i->batch / (uint64_t)s->o->window;
}

static bool enough_at_work(const session *s)
{
    const uint64_t windows = windows_at_work(s);
    return s->count == JOBS_MAX || s->in_flight >= windows * (uint64_t)s->o->window ||
           s->in_flight_bytes >= windows * s->window_bytes;
}

static bool oldest_is_done(const session *s)
{
    const window *w = &s->jobs[s->first];
    return dgm_route_done(w->job) == w->lines;
}

void translate_all(session *s)
{
    enum { FIRST = 32 }; // lines of a pipe
    const uint64_t most = (uint64_t)s->o->window;
    bool more = true;
    s->window_lines = most < FIRST || input_is_files(s->o) ? most : FIRST;
    while (!s->broken && !interrupted && (more || s->pending || s->count)) {
        bool idle = !more || !reader_ready(s->in);
        if (s->pending && s->count < JOBS_MAX && (window_is_full(s) || idle)) {
            submit(s);
            grow_window(s);
        } else if (s->count && (idle || enough_at_work(s) || oldest_is_done(s))) {
            collect(s);
        } else if (more) {
            s->ended = !(more = read_one(s));
        }
    }
    // Nobody waits for the rest of what is interrupted, or reads it.
    while (s->count && !interrupted && !output_closed()) collect(s);
}

// Lines of a companion that no line of input asked for: most likely it is another text's.
void check_rest(session *s, companion *c)
{
    const char *line = NULL;
    size_t size = 0;
    if (!c->in || c->ended || s->broken || reader_failed(s->in)) return;
    const bool more = reader_next(c->in, &line, &size);
    if (more && s->document) {
        fail(EXIT_RUNTIME, "the %s file has more lines than the document (--list-lines prints them)", c->what);
        s->input_failed = true;
    } else if (more && !s->o->quiet)
        warn("the %s file has more lines than the input: the rest is not used", c->what);
    s->input_failed = s->input_failed || reader_failed(c->in);
}
