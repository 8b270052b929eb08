// SPDX-License-Identifier: MIT
// `dragoman translate`: lines in, translations out, in order.
//
// Lines are read into windows; a window is one job of the library, which sorts its pieces by
// length. While workers decode one window, the next is read, and the oldest is written as soon as
// it is done. When no input is waiting, what is there is translated and written at once, so that
// the program can be talked to through a pipe or a terminal.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "directions.h"
#include "dragoman/tools.h"
#include "journal.h"
#include "lattices.h"
#include "lineio.h"
#include "lmbr.h"
#include "present.h"
#include "rerank.h"
#include "setup.h"
#include "stats.h"

enum { JOBS_MAX = 64 };

typedef struct translate_options {
    engine_options engine;
    lmbr_options lmbr;
    presentation show;
    const char *input, *output, *prefix, *failures, *lattice, *constraints, *directions;
    option_list terms, rerank;
    int align_layer, align_head;
    const char *stats;
    int window, quiet, resume;
} translate_options;

#define AT(field) offsetof(translate_options, field)

static const option options[] = {
    MODEL_OPTIONS(translate_options, engine),
    SEARCH_OPTIONS(translate_options, engine),
    LMBR_OPTIONS(translate_options, lmbr),
    {"nbest", 0, OPTION_COUNT, "N", AT(show.nbest), 1, 256, NULL,
     "print the N best translations of every line, one per line of output: "
     "LINE ||| text ||| F0= sum ||| score, lines counted from 0",
     "n-best", NULL},
    {"scores", 0, OPTION_FLAG, NULL, AT(show.scores), 0, 0, NULL,
     "print the score behind every translation", NULL, NULL},
    {"word-scores", 0, OPTION_FLAG, NULL, AT(show.word_scores), 0, 0, NULL,
     "print the log-probability of every token and of the end symbol", NULL, NULL},
    {"alignment", 0, OPTION_MAYBE, "words|tokens", AT(show.alignment), 0, 0, "words|tokens",
     "print word alignments, source-target in Pharaoh format, between words (default) or between "
     "the model's tokens",
     NULL, "words"},
    {"align-layer", 0, OPTION_COUNT, "N", AT(align_layer), -1024, 1023, NULL,
     "decoder layer that alignments are read from; negative: from the end (default: the model's)",
     NULL, NULL},
    {"align-head", 0, OPTION_COUNT, "N", AT(align_head), -1, 4095, NULL,
     "head of attention that alignments are read from; -1: the mean of all (default: the model's)",
     NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(show.json), 0, 0, NULL,
     "print one JSON object per line of input", NULL, NULL},
    {"stats", 0, OPTION_MAYBE, "counts|time", AT(stats), 0, 0, "counts|time",
     "print counts, speed and memory on standard error at the end; time: also where the time went "
     "(measuring it takes some)",
     NULL, "counts"},
    {"prefix", 0, OPTION_TEXT, "FILE", AT(prefix), 0, 0, NULL,
     "file with the beginning that each translation must have, one line per line of input; an "
     "empty line forces nothing",
     "force-decode", NULL},
    {"lattice", 0, OPTION_TEXT, "FILE", AT(lattice), 0, 0, NULL,
     "file with one lattice per line of input, also gzip: a translation is one of its paths. "
     "Shortlists are off unless --shortlist asks for one",
     NULL, NULL},
    {"lattice-weight", 0, OPTION_REAL, "X", AT(engine.decoding.lattice_weight), -1e6, 1e6, NULL,
     "--lattice: add X times a path's own score to the models' (default 0: the lattice only says "
     "what is allowed)",
     NULL, NULL},
    {"constraints", 0, OPTION_TEXT, "FILE", AT(constraints), 0, 0, NULL,
     "file with what each translation must and must not hold, one line per line of input, entries "
     "between tabs: 'SOURCE => TARGET | VARIANT' a term, 'WORDS' forced, '! WORDS' forbidden, "
     "'^ WORDS' its beginning, '$ WORDS' its end (docs/CONSTRAINTS.md)",
     NULL, NULL},
    {"directions", 0, OPTION_TEXT, "FILE", AT(directions), 0, 0, NULL,
     "multilingual models: file with the languages of each line, 'SOURCE TARGET' or 'TARGET', one "
     "line per line of input; what it leaves out is --source and --target",
     NULL, NULL},
    {"terms", 0, OPTION_LIST, "FILE", AT(terms), 0, 0, NULL,
     "glossary for every line: where a source term stands, one of its targets must stand in the "
     "translation, as written; TSV, .csv or .tbx, also gzip; may be given several times",
     "glossary", NULL},
    {"rerank", 0, OPTION_LIST, "MODEL[:WEIGHT]", AT(rerank), 0, 0, NULL,
     "choose among all hypotheses of the beam by their score plus WEIGHT times the score that "
     "MODEL gives them, e.g. one that writes from right to left (default weight 1); it may have "
     "another vocabulary; may be given several times; needs --beam",
     NULL, NULL},
    {"keep", 0, OPTION_TEXT, "REGEX", AT(engine.decoding.keep), 0, 0, NULL,
     "what this POSIX extended regular expression finds in a line must come through as written, "
     "e.g. '\\{[0-9]+\\}|[0-9]+' for placeholders and numbers",
     NULL, NULL},
    {"window", 0, OPTION_COUNT, "N", AT(window), 1, 1000000, NULL,
     "lines that are sorted by length together (default 2048)", "maxi-batch", NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "read from FILE, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output). While the job "
     "runs, FILE.progress says how far it has come",
     NULL, NULL},
    {"resume", 0, OPTION_FLAG, NULL, AT(resume), 0, 0, NULL,
     "go on with a job that was interrupted, with the same input, model and options; what --output "
     "has is kept",
     NULL, NULL},
    {"failures", 0, OPTION_TEXT, "FILE", AT(failures), 0, 0, NULL,
     "write the number of every line that could not be translated and the reason to FILE, instead "
     "of messages on standard error",
     NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no warnings",
     NULL, NULL},
    {0},
};

// One window on its way.
typedef struct window {
    dgm_job *job;
    size_t lines, bytes;
    uint32_t input; // checksum of the input up to its end
    rerank_sources *sources; // NULL: nothing is re-ranked
} window;

// A file whose lines go with those of the input.
typedef struct companion {
    const char *what; // "prefix"
    line_reader *in;  // NULL: there is none
    bool ended;
    size_t *sizes; // of the window's lines
} companion;

enum { COMPANIONS = 3 };

typedef struct session {
    const translate_options *o;
    dgm_translator *t;
    reranker *rerank;
    line_reader *in;
    companion with[COMPANIONS]; // prefixes, constraints, directions
    direction_window directions;
    evidence_window evidence;
    lattice_window lattices;
    dgm_lmbr weights; // of the evidence
    line_writer *out, *report; // report: NULL without --failures
    journal *journal;          // NULL: the output is not a file
    progress bar;
    // The window being filled: each line and its companions behind each other.
    char *text;
    size_t text_used, text_cap;
    size_t *sizes;
    size_t pending, lines_cap;
    window jobs[JOBS_MAX]; // a ring
    int first, count;
    size_t in_flight, in_flight_bytes;
    size_t window_bytes;            // a window with more text is full
    uint64_t read, written, failed; // lines; with those of the interrupted job
    uint32_t input;                 // CRC-32 of the lines read
    bool warned, broken, input_failed, malformed;
    bool cut; // the evidence ended before the input or is wrong: what comes behind is left out
    double load, start;
} session;

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

static void put_result(session *s, const dgm_result *r)
{
    uint64_t number = s->written++;
    unsigned long long shown = (unsigned long long)number + 1; // people count from 1
    if (r->flags & DGM_LINE_REPAIRED && !s->warned && !s->o->quiet) {
        progress_end(&s->bar);
        warn("line %llu is not valid UTF-8: invalid bytes were replaced by U+FFFD (later lines are "
             "not reported)",
             shown);
        s->warned = true;
    }
    if (r->status != DGM_OK) report_failure(s, shown, r->message);
    if (r->notice) report_notice(s, shown, r);
    present_result(&s->o->show, s->out, number, r);
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
    if (!s->journal) return;
    journal_mark m = {.lines = s->written, .input = input, .failed = s->failed};
    if (!writer_sync(s->out) || (s->report && !writer_sync(s->report))) return;
    m.bytes = writer_bytes(s->out, &m.output);
    if (s->report) m.failures = writer_bytes(s->report, &m.reasons);
    if (!journal_record(s->journal, &m)) s->broken = true;
}

// ---- jobs -------------------------------------------------------------------------------------

// Lines that are done, as a share of the input: what was read is known, what is left is guessed
// from the bytes.
static void show_progress(session *s, uint64_t done)
{
    double read = reader_share(s->in), lines = (double)s->read;
    dgm_counters c;
    if (!s->bar.on) return;
    dgm_count(s->t, &c);
    s->bar.tokens = c.target_tokens;
    progress_show(&s->bar, done, read < 0 || lines == 0 ? -1 : read * (double)done / lines);
}

// Waits for the oldest job and writes its lines.
static void collect(session *s)
{
    window *w = &s->jobs[s->first];
    while (s->bar.on && dgm_job_done(w->job) < w->lines) {
        show_progress(s, s->written + dgm_job_done(w->job));
        progress_nap();
    }
    dgm_results *results = NULL;
    dgm_error error;
    if (dgm_wait(&w->job, &results, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        s->broken = true;
    }
    if (results && !rerank_apply(s->rerank, w->sources, results, s->o->show.nbest)) s->broken = true;
    for (size_t i = 0; results && i < results->count; i++) put_result(s, &results->items[i]);
    dgm_results_free(&results);
    if (!s->broken) mark_window(s, w->input);
    s->in_flight -= w->lines;
    s->in_flight_bytes -= w->bytes;
    s->first = (s->first + 1) % JOBS_MAX;
    s->count--;
    show_progress(s, s->written);
    if (writer_failed(s->out) || (s->report && writer_failed(s->report)))
        s->broken = true; // nobody will see the rest
}

// Hands the window that was filled to the workers.
static void submit(session *s)
{
    dgm_input *inputs = need(calloc(s->pending, sizeof *inputs));
    const char *at = s->text;
    directions_begin(&s->directions, s->pending, s->text_used);
    for (size_t i = 0; i < s->pending; i++) {
        inputs[i].text = at;
        inputs[i].size = s->sizes[i];
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
    evidence_attach(&s->evidence, inputs, s->pending);
    lattices_attach(&s->lattices, inputs, s->pending);
    if (s->count == JOBS_MAX) collect(s);
    window *w = &s->jobs[(s->first + s->count) % JOBS_MAX];
    dgm_error error;
    if (dgm_submit(s->t, inputs, s->pending, &w->job, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        s->broken = true;
    } else {
        w->lines = s->pending;
        w->bytes = s->text_used + s->evidence.text_used + s->lattices.text_used;
        s->in_flight_bytes += w->bytes;
        w->input = s->input;
        w->sources = rerank_keep(s->rerank, inputs, s->pending);
        s->in_flight += s->pending;
        s->count++;
    }
    free(inputs);
    s->pending = s->text_used = 0;
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
static void next_of(session *s, companion *c, char **line, size_t *size)
{
    *size = 0;
    if (!c->in || c->ended || reader_next(c->in, line, size)) return;
    if (!reader_failed(c->in))
        fail(EXIT_RUNTIME,
             "the %s file has fewer lines than the input: the rest is translated without", c->what);
    s->input_failed = c->ended = true;
    *size = 0;
}

static void sum_line(session *s, const char *line, size_t size)
{
    s->input = checksum(checksum(s->input, line, size), "\n", 1);
}

// One more line of input (and its companions) for the window. False at the end.
static bool read_one(session *s)
{
    char *line = NULL;
    size_t size = 0;
    if (!reader_next(s->in, &line, &size)) return false;
    if (!evidence_add(&s->evidence, s->read, &s->input)) return !(s->cut = true);
    if (!lattices_add(&s->lattices, &s->input)) return !(s->cut = true);
    if (s->pending == s->lines_cap) {
        s->lines_cap = s->lines_cap ? s->lines_cap * 2 : 256;
        s->sizes = need(realloc(s->sizes, s->lines_cap * sizeof *s->sizes));
        for (companion *c = s->with; c < s->with + COMPANIONS; c++)
            c->sizes = need(realloc(c->sizes, s->lines_cap * sizeof *c->sizes));
    }
    s->sizes[s->pending] = size;
    append(s, line, size);
    sum_line(s, line, size);
    for (companion *c = s->with; c < s->with + COMPANIONS; c++) {
        next_of(s, c, &line, &size);
        c->sizes[s->pending] = size;
        append(s, line, size);
        if (c->in || c == s->with) sum_line(s, line, size);
    }
    s->pending++;
    s->read++;
    return true;
}

// Lines of the interrupted job, which were read then. False after a message if they were others.
static bool skip_lines(session *s, const journal_mark *m)
{
    char *line = NULL;
    size_t size = 0;
    while (s->read < m->lines && reader_next(s->in, &line, &size)) {
        if (!evidence_add(&s->evidence, s->read, &s->input)) return false;
        evidence_skip(&s->evidence);
        if (!lattices_add(&s->lattices, &s->input)) return false;
        lattices_skip(&s->lattices);
        sum_line(s, line, size);
        for (companion *c = s->with; c < s->with + COMPANIONS; c++) {
            next_of(s, c, &line, &size);
            if (c->in || c == s->with) sum_line(s, line, size);
        }
        s->read++;
    }
    if (reader_failed(s->in)) return false;
    if (s->read == m->lines && s->input == m->input) return true;
    fail(EXIT_RUNTIME,
         "cannot resume '%s': the input is not that of the interrupted job, whose first %llu lines "
         "were others",
         s->o->output, (unsigned long long)m->lines);
    return false;
}

static void translate_all(session *s)
{
    const uint64_t most = (uint64_t)s->o->window;
    bool more = true;
    while (!s->broken && (more || s->pending || s->count)) {
        bool idle = !more || !reader_ready(s->in);
        bool full = (s->pending && s->read % most == 0) ||
                    s->text_used + s->evidence.text_used + s->lattices.text_used >=
                        s->window_bytes;
        if (s->pending && (full || idle)) submit(s);
        // Two windows at work keep the batches full; a third would only take memory.
        else if (s->count &&
                 (idle || s->in_flight >= 2 * most || s->in_flight_bytes >= 2 * s->window_bytes))
            collect(s);
        else if (more)
            more = read_one(s);
    }
    while (s->count) collect(s);
}

// Lines of a companion that no line of input asked for: most likely it is another text's.
static void check_rest(session *s, companion *c)
{
    char *line = NULL;
    size_t size = 0;
    if (!c->in || c->ended || s->broken || reader_failed(s->in)) return;
    if (reader_next(c->in, &line, &size) && !s->o->quiet)
        warn("the %s file has more lines than the input: the rest is not used", c->what);
    s->input_failed = s->input_failed || reader_failed(c->in);
}

static void print_evidence(const dgm_counters *c)
{
    if (c->evidence_lines == 0) return;
    const double lines = (double)c->evidence_lines;
    fprintf(stderr, "evidence    %llu lines, %.1f rows and %.1f values each, made in %.3f s\n",
            (unsigned long long)c->evidence_lines, (double)c->evidence_rows / lines,
            (double)c->evidence_values / lines, c->evidence_seconds);
}

static bool timed(const translate_options *o)
{
    return o->stats && strcmp(o->stats, "time") == 0;
}

static double percent(uint64_t part, uint64_t whole)
{
    return whole ? 100.0 * (double)part / (double)whole : 0.0;
}

// What the techniques of recurrent models saved; nothing for other models.
static void print_techniques(const dgm_translator *t)
{
    dgm_techniques n;
    dgm_techniques_count(t, &n);
    if (n.early_stops)
        fprintf(stderr, "early stop  %llu sentences\n", (unsigned long long)n.early_stops);
    if (n.rows == 0) return;
    fprintf(stderr,
            "states      %llu distinct of %llu (%.1f %%); %llu products for %llu rows, %s\n",
            (unsigned long long)n.distinct, (unsigned long long)n.rows, percent(n.distinct, n.rows),
            (unsigned long long)n.state_products, (unsigned long long)n.state_rows,
            n.merging ? "merged" : "not merged");
    fprintf(stderr,
            "precompute  %.1f %% of %llu source words, %.1f %% of %llu target words; "
            "%d + %d words, %.1f MiB\n",
            percent(n.source_found, n.source_words), (unsigned long long)n.source_words,
            percent(n.target_found, n.target_words), (unsigned long long)n.target_words,
            (int)n.table_words[0], (int)n.table_words[1], (double)n.table_bytes / 1048576);
    fprintf(stderr, "attention   %llu rows multiplied for contexts, %s\n",
            (unsigned long long)n.context_products,
            n.plain_attention ? "one by one" : "once per source position");
    fprintf(stderr, "activations %llu values by %s\n", (unsigned long long)n.activation_values,
            n.activations);
}

static void print_stats(const session *s)
{
    dgm_counters c;
    const dgm_translator_info *i = dgm_describe(s->t);
    double took = seconds() - s->start;
    dgm_count(s->t, &c);
    fprintf(stderr, "device      %s\n", i->device);
    fprintf(stderr, "search      %s, beam %d, finish %s, batch %d (%lld tokens), threads %d\n",
            i->search, (int)i->beam, i->finish, (int)i->batch, (long long)i->batch_tokens,
            (int)i->threads);
    fprintf(stderr, "lines       %llu (%llu sentences, %llu failed)\n", (unsigned long long)c.lines,
            (unsigned long long)c.sentences, (unsigned long long)s->failed);
    fprintf(stderr, "tokens      %llu in, %llu out\n", (unsigned long long)c.source_tokens,
            (unsigned long long)c.target_tokens);
    fprintf(stderr, "steps       %llu, %.2f rows each\n", (unsigned long long)c.steps,
            c.steps ? (double)c.rows / (double)c.steps : 0.0);
    if (c.restarts)
        fprintf(stderr, "restarts    %llu sentences, for want of workspace\n",
                (unsigned long long)c.restarts);
    stats_search(&c);
    fprintf(stderr, "shortlist   %s, %.1f candidates per sentence", i->shortlist,
            c.sentences ? (double)c.candidates / (double)c.sentences : 0.0);
    if (c.more) fprintf(stderr, " and %.1f per row", (double)c.more / (double)c.rank_rows);
    fprintf(stderr, "\n");
    if (c.centroids)
        fprintf(stderr, "clusters    %llu of %llu centroids used, %.1f candidates per row\n",
                (unsigned long long)c.centroids_used, (unsigned long long)c.centroids,
                c.rank_rows ? (double)c.dots / (double)c.rank_rows : 0.0);
    print_evidence(&c);
    print_techniques(s->t);
    fprintf(stderr, "time        %.3f s to load, %.3f s to translate\n", s->load, took);
    fprintf(stderr, "speed       %.1f lines/s, %.1f output tokens/s\n", (double)c.lines / took,
            (double)c.target_tokens / took);
    fprintf(stderr, "memory      %.1f MiB weights, %.1f MiB workspace, %.1f MiB peak RSS\n",
            (double)i->packed_bytes / 1048576, (double)c.arena_peak / 1048576,
            (double)peak_rss() / 1048576);
    if (timed(s->o)) stats_times(s->t);
}

// Of --workspace an eighth is for text: three windows at a time, of which every byte takes about
// eight (tokens, positions, results). Without it 8 MiB of text make a window full.
static size_t text_share(const engine_options *e)
{
    return e->workspace ? (size_t)e->workspace / (8 * 3 * 8) : (size_t)8 << 20;
}

static void close_session(session *s)
{
    dgm_close(&s->t);
    rerank_close(&s->rerank);
    reader_close(s->in);
    evidence_free(&s->evidence);
    lattices_free(&s->lattices);
    directions_free(&s->directions);
    for (companion *c = s->with; c < s->with + COMPANIONS; c++) {
        reader_close(c->in);
        free(c->sizes);
    }
    free(s->text);
    free(s->sizes);
}

static translate_options usual_options(void)
{
    translate_options o = {.show = {.nbest = 1},
                           .window = 2048,
                           .align_layer = DGM_ALIGN_MODEL,
                           .align_head = DGM_ALIGN_MODEL};
    engine_options_default(&o.engine);
    lmbr_options_default(&o.lmbr);
    return o;
}

// What the bytes of the output depend on goes into the journal's description: every option but
// those that say where to compute and where to read and write.
static void describe_options(session *s, const command *self)
{
    static const char *const others[] = {"model",  "weights", "source", "target",    "cpu",
                                         "batch",  "threads", "stats",  "workspace", "batch-tokens",
                                         "prefix", "input",   "output", "resume",    "failures",
                                         "quiet",  "lattice", "constraints", "directions",
                                         NULL};
    translate_options standard = usual_options();
    for (const option *o = self->options; o->name; o++) {
        int skip = 0;
        char value[256], usual[256];
        while (others[skip] && strcmp(others[skip], o->name) != 0) skip++;
        if (others[skip] || strncmp(o->name, "lmbr", 4) == 0) continue;
        if (strcmp(o->name, "window") == 0 && !names_gz(s->o->output)) continue;
        char name[64];
        snprintf(name, sizeof name, "--%s", o->name);
        option_value(o, s->o, value, sizeof value);
        option_value(o, &standard, usual, sizeof usual);
        if (strcmp(value, usual) == 0) value[0] = 0;
        journal_describe(s->journal, name, value);
    }
}

static bool describe_job(session *s, const command *self)
{
    char models[512];
    const dgm_translator_info *i = dgm_describe(s->t);
    if (engine_identity(&s->o->engine, models, sizeof models) >= 0) return false;
    journal_describe(s->journal, "version", dgm_version());
    journal_describe(s->journal, "model", models);
    // f32 is the one precision whose sums depend on the instruction set.
    if (strcmp(i->precision, "f32") == 0) journal_describe(s->journal, "kernels", i->device);
    char weights[256] = "";
    if (s->evidence.file) lmbr_describe(&s->weights, weights, sizeof weights);
    journal_describe(s->journal, "--lmbr", weights);
    journal_describe(s->journal, "--prefix", s->with[0].in ? "given" : "");
    journal_describe(s->journal, "--constraints", s->with[1].in ? "given" : "");
    journal_describe(s->journal, "--directions", s->with[2].in ? "given" : "");
    bool many = dgm_directions(s->t, 0, NULL) > 1;
    journal_describe(s->journal, "--source", many ? dgm_describe(s->t)->source_language : "");
    journal_describe(s->journal, "--target", many ? dgm_describe(s->t)->target_language : "");
    journal_describe(s->journal, "--lattice", s->lattices.file ? "given" : "");
    journal_describe(s->journal, "--failures", s->o->failures ? "given" : "");
    describe_options(s, self);
    return true;
}

// Output to a file, with a journal; the input is read up to where the output ends.
static bool open_job(session *s, const command *self)
{
    const translate_options *o = s->o;
    journal_mark m = {0};
    s->journal = journal_open(o->output);
    if (!writer_possible(o->output) || !describe_job(s, self)) return false;
    if (!(o->resume ? journal_resume(s->journal, o->failures, &m) : journal_begin(s->journal)))
        return false;
    s->written = m.lines;
    s->failed = m.failed;
    if (!skip_lines(s, &m)) return false;
    s->bar.begin = reader_share(s->in);
    s->bar.before = m.lines;
    s->out = writer_open_at(o->output, m.bytes, m.output);
    if (o->failures) s->report = writer_open_at(o->failures, m.failures, m.reasons);
    return s->out && (!o->failures || s->report);
}

static bool open_files(session *s, const command *self)
{
    const translate_options *o = s->o;
    s->in = reader_open(o->input);
    const char *const names[COMPANIONS] = {o->prefix, o->constraints, o->directions};
    static const char *const what[COMPANIONS] = {"prefix", "constraints", "directions"};
    if (!s->in) return false;
    for (int i = 0; i < COMPANIONS; i++) {
        s->with[i].what = what[i];
        if (names[i]) s->with[i].in = reader_open(names[i]);
        if (names[i] && !s->with[i].in) return false;
    }
    if (o->lmbr.file && !(s->evidence.file = lmbr_open(&o->lmbr))) return false;
    if (o->lattice && !(s->lattices.file = lattices_open(o->lattice))) return false;
    progress_start(&s->bar, !o->quiet);
    if (is_file_name(o->output)) return open_job(s, self);
    s->out = writer_open(o->output);
    if (s->out && o->failures) s->report = writer_open(o->failures);
    return s->out && (!o->failures || s->report);
}

// Reads, translates and writes everything; returns the exit code.
static int translate_files(session *s, const command *self)
{
    const translate_options *o = s->o;
    bool fine = open_files(s, self), done = fine;
    if (fine) {
        s->start = seconds();
        translate_all(s);
        progress_end(&s->bar);
        for (int i = 0; i < COMPANIONS; i++) check_rest(s, &s->with[i]);
        bool whole = !s->broken && !s->cut && !reader_failed(s->in);
        if (whole && !evidence_complete(&s->evidence, s->read)) s->input_failed = true;
        if (whole && !lattices_complete(&s->lattices, s->o->quiet)) s->input_failed = true;
        done = whole;
        fine = done && !s->input_failed;
    }
    bool closed = writer_close(s->out);
    closed = writer_close(s->report) && closed;
    journal_close(s->journal, done && closed);
    if (done && o->stats) print_stats(s);
    if (!fine || !closed) return EXIT_RUNTIME;
    if (s->failed && o->failures && !o->quiet)
        warn("%llu line%s could not be translated: see '%s'", (unsigned long long)s->failed,
             s->failed == 1 ? "" : "s", o->failures);
    return s->failed || s->malformed ? EXIT_LINES : EXIT_FINE;
}

static int check_files(const command *self, const translate_options *o)
{
    const char *const in[] = {o->input,     o->prefix,  o->lmbr.file,  o->lmbr.settings,
                              o->lmbr.tune, o->lattice, o->constraints, o->directions};
    const char *const out[] = {o->output, o->failures};
    static const char *const in_names[] = {"input",     "prefix",  "lmbr",       "lmbr-settings",
                                           "lmbr-tune", "lattice", "constraints", "directions"};
    static const char *const out_names[] = {"output", "failures"};
    for (int i = 0; i < 8; i++)
        for (int k = 0; k < 2; k++)
            if (same_file(in[i], out[k]))
                return fail_usage(self, "--%s is the same file as --%s", out_names[k], in_names[i]);
    if (o->failures && o->output &&
        (same_file(o->failures, o->output) || strcmp(o->failures, o->output) == 0))
        return fail_usage(self, "--failures is the same file as --output");
    if (o->resume && !is_file_name(o->output))
        return fail_usage(self, "--resume goes on with a file: it needs --output FILE");
    return -1;
}

static int run(const command *self, int argc, char **argv)
{
    translate_options o = usual_options();
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count)
        return fail_usage(self, "translate reads standard input or --input, not '%s'",
                          rest.items[0]);
    code = check_files(self, &o);
    if (code >= 0) return code;
    if (o.rerank.count && !rerank_candidates(&o.engine, o.show.nbest))
        return fail_usage(self, "--rerank chooses among the hypotheses of a beam: give --beam");
    session *s = need(calloc(1, sizeof *s));
    const char *terms[LIST_MAX + 1] = {0}; // NULL behind the last
    for (int i = 0; i < o.terms.count; i++) terms[i] = o.terms.items[i];
    if (o.terms.count) o.engine.decoding.terms = terms;
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.nbest = o.show.nbest;
    if (o.rerank.count) settings.nbest = rerank_candidates(&o.engine, o.show.nbest);
    settings.token_scores = o.show.word_scores;
    const presentation *show = &o.show;
    settings.exact_scores = show->scores || show->word_scores || show->json || show->nbest > 1 ||
                            show->alignment != NULL || o.rerank.count;
    settings.align_layer = o.align_layer;
    settings.align_head = o.align_head;
    if (o.show.alignment)
        settings.alignment =
            strcmp(o.show.alignment, "tokens") == 0 ? DGM_ALIGN_TOKENS : DGM_ALIGN_WORDS;
    code = lmbr_weights(&o.lmbr, &s->weights, &o.engine.length_penalty);
    if (o.lmbr.file) settings.lmbr = &s->weights;
    if (code < 0 && o.lmbr.tune)
        code = lmbr_tune(&o.lmbr, &o.engine, &settings, o.input, o.output, o.quiet);
    if (code >= 0) {
        free(s);
        return code;
    }
    o.engine.decoding.lattices = o.lattice != NULL;
    o.engine.directions = o.directions != NULL;
    s->o = &o;
    s->window_bytes = text_share(&o.engine);
    s->start = seconds();
    code = engine_open(&o.engine, &settings, &s->t);
    if (code < 0) code = rerank_open(&o.rerank, &o.engine, &s->rerank);
    s->load = seconds() - s->start;
    if (code < 0 && timed(&o)) stats_watch(s->t);
    if (code < 0) code = translate_files(s, self);
    close_session(s);
    free(s);
    return code;
}

const command command_translate = {
    .name = "translate",
    .summary = "translate text, one line each",
    .usage = "[-m MODEL]... [options] < input > output",
    .description =
        "Reads lines of UTF-8 text and writes their translations, one line each and in order; an "
        "empty line stays empty. Without options the default model translates standard input to "
        "standard output.\n\n"
        "A translation does not depend on the lines around it, on --batch or on --threads. A line "
        "that cannot be translated becomes an empty line and a message on standard error (or an "
        "entry of --failures), and the exit status is 3; all other lines are translated.\n\n"
        "A job with --output that was interrupted, by whatever, is continued by the same command "
        "with --resume: no line that was written is lost, and at most one window is translated "
        "again. The file is the same in the end, byte for byte.",
    .example = "echo 'Good morning.' | dragoman translate\n"
               "dragoman translate -m models/en-de.gguf --threads 2 -i news.en.gz -o news.de.gz\n"
               "dragoman translate -i corpus.en.gz -o corpus.de.gz --failures bad.tsv --resume\n"
               "dragoman translate --nbest 4 --json < questions.txt",
    .options = options,
    .run = run,
};
