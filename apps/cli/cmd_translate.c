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
#include "dragoman/tools.h"
#include "lineio.h"
#include "setup.h"
#include "stats.h"

enum { JOBS_MAX = 64 };

typedef struct translate_options {
    engine_options engine;
    const char *input, *output, *prefix, *alignment;
    int align_layer, align_head;
    const char *stats;
    int nbest, scores, word_scores, json, window, quiet;
} translate_options;

#define AT(field) offsetof(translate_options, field)

static const option options[] = {
    MODEL_OPTIONS(translate_options, engine),
    SEARCH_OPTIONS(translate_options, engine),
    {"nbest", 0, OPTION_COUNT, "N", AT(nbest), 1, 256, NULL,
     "print the N best translations of every line, one per line of output: "
     "LINE ||| text ||| F0= sum ||| score, lines counted from 0",
     "n-best", NULL},
    {"scores", 0, OPTION_FLAG, NULL, AT(scores), 0, 0, NULL,
     "print the score behind every translation", NULL, NULL},
    {"word-scores", 0, OPTION_FLAG, NULL, AT(word_scores), 0, 0, NULL,
     "print the log-probability of every token and of the end symbol", NULL, NULL},
    {"alignment", 0, OPTION_MAYBE, "words|tokens", AT(alignment), 0, 0, "words|tokens",
     "print word alignments, source-target in Pharaoh format, between words (default) or between "
     "the model's tokens",
     NULL, "words"},
    {"align-layer", 0, OPTION_COUNT, "N", AT(align_layer), -1024, 1023, NULL,
     "decoder layer that alignments are read from; negative: from the end (default: the model's)",
     NULL, NULL},
    {"align-head", 0, OPTION_COUNT, "N", AT(align_head), -1, 4095, NULL,
     "head of attention that alignments are read from; -1: the mean of all (default: the model's)",
     NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), 0, 0, NULL, "print one JSON object per line of input",
     NULL, NULL},
    {"stats", 0, OPTION_MAYBE, "counts|time", AT(stats), 0, 0, "counts|time",
     "print counts, speed and memory on standard error at the end; time: also where the time went "
     "(measuring it takes some)",
     NULL, "counts"},
    {"prefix", 0, OPTION_TEXT, "FILE", AT(prefix), 0, 0, NULL,
     "file with the beginning that each translation must have, one line per line of input; an "
     "empty line forces nothing",
     "force-decode", NULL},
    {"window", 0, OPTION_COUNT, "N", AT(window), 1, 1000000, NULL,
     "lines that are sorted by length together (default 2048)", "maxi-batch", NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "read from FILE, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no warnings",
     NULL, NULL},
    {0},
};

// One window on its way.
typedef struct window {
    dgm_job *job;
    size_t lines;
} window;

typedef struct session {
    const translate_options *o;
    dgm_translator *t;
    line_reader *in, *prefix;
    line_writer *out;
    progress bar;
    // The window being filled: text and prefix of each line behind each other.
    char *text;
    size_t text_used, text_cap;
    size_t *sizes, *prefix_sizes;
    size_t pending, lines_cap;
    window jobs[JOBS_MAX]; // a ring
    int first, count;
    size_t in_flight;
    uint64_t written, failed;
    bool warned, broken, input_failed, prefix_ended;
    double load, start;
} session;

// ---- output -----------------------------------------------------------------------------------

static void put_links(line_writer *w, const dgm_translation *x)
{
    for (size_t i = 0; i < x->link_count; i++)
        writer_format(w, "%s%d-%d", i ? " " : "", (int)x->links[i].source, (int)x->links[i].target);
}

static void put_plain(const session *s, line_writer *w, uint64_t number, const dgm_translation *x)
{
    const translate_options *o = s->o;
    if (o->nbest > 1) writer_format(w, "%llu ||| ", (unsigned long long)number);
    writer_put(w, x->text, x->size);
    if (o->alignment) {
        writer_text(w, " ||| ");
        put_links(w, x);
    }
    if (o->word_scores) {
        writer_text(w, " ||| WordScores=");
        for (size_t i = 0; i < x->token_count; i++)
            writer_format(w, " %.4f", (double)x->token_scores[i]);
    }
    const char *mark = x->approximate ? "~" : "";
    if (o->nbest > 1) writer_format(w, " ||| F0= %s%.4f", mark, (double)x->sum);
    if (o->nbest > 1 || o->scores) writer_format(w, " ||| %s%.4f", mark, (double)x->score);
    writer_put(w, "\n", 1);
}

static void put_translation_json(const session *s, line_writer *w, const dgm_translation *x)
{
    writer_text(w, "\"text\":");
    writer_json(w, x->text, x->size);
    writer_text(w, ",\"score\":");
    writer_real(w, (double)x->score);
    writer_text(w, ",\"sum\":");
    writer_real(w, (double)x->sum);
    if (x->approximate) writer_text(w, ",\"approximate\":true");
    if (s->o->word_scores) {
        writer_text(w, ",\"tokens\":[");
        for (size_t i = 0; i < x->token_count; i++) {
            if (i) writer_put(w, ",", 1);
            writer_json(w, x->tokens[i], strlen(x->tokens[i]));
        }
        writer_text(w, "],\"token_scores\":[");
        for (size_t i = 0; i < x->token_count; i++) {
            if (i) writer_put(w, ",", 1);
            writer_real(w, (double)x->token_scores[i]);
        }
        writer_text(w, "]");
    }
    if (s->o->alignment) {
        writer_text(w, ",\"alignment\":[");
        for (size_t i = 0; i < x->link_count; i++)
            writer_format(w, "%s[%d,%d]", i ? "," : "", (int)x->links[i].source,
                          (int)x->links[i].target);
        writer_text(w, "]");
    }
}

static void put_json(const session *s, line_writer *w, uint64_t number, const dgm_result *r)
{
    static const struct {
        uint32_t flag;
        const char *name;
    } flags[] = {{DGM_LINE_REPAIRED, "repaired"},
                 {DGM_LINE_SPLIT, "split"},
                 {DGM_LINE_CROPPED, "cropped"},
                 {DGM_LINE_TRUNCATED, "truncated"}};
    writer_format(w, "{\"line\":%llu,", (unsigned long long)number);
    if (r->status != DGM_OK) {
        writer_text(w, "\"text\":\"\",\"error\":");
        writer_json(w, r->message, strlen(r->message));
    } else {
        put_translation_json(s, w, &r->translations[0]);
    }
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        if (r->flags & flags[i].flag) writer_format(w, ",\"%s\":true", flags[i].name);
    if (r->status == DGM_OK && s->o->nbest > 1) {
        writer_text(w, ",\"nbest\":[");
        for (size_t k = 0; k < r->count; k++) {
            writer_text(w, k ? ",{" : "{");
            put_translation_json(s, w, &r->translations[k]);
            writer_text(w, "}");
        }
        writer_text(w, "]");
    }
    writer_text(w, "}\n");
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
    if (r->status != DGM_OK) {
        progress_end(&s->bar);
        fail(EXIT_RUNTIME, "line %llu: %s", shown, r->message);
        s->failed++;
    }
    if (s->o->json) {
        put_json(s, s->out, number + 1, r);
        return;
    }
    static const dgm_translation empty = {.text = ""};
    if (r->count == 0) put_plain(s, s->out, number, &empty);
    for (size_t k = 0; k < r->count; k++) put_plain(s, s->out, number, &r->translations[k]);
}

// ---- jobs -------------------------------------------------------------------------------------

// Lines that are done, as a share of the input: what was read is known, what is left is guessed
// from the bytes.
static void show_progress(session *s, uint64_t done)
{
    double read = reader_share(s->in), lines = (double)(s->written + s->in_flight + s->pending);
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
    for (size_t i = 0; results && i < results->count; i++) put_result(s, &results->items[i]);
    dgm_results_free(&results);
    writer_flush(s->out);
    s->in_flight -= w->lines;
    s->first = (s->first + 1) % JOBS_MAX;
    s->count--;
    show_progress(s, s->written);
    if (writer_failed(s->out)) s->broken = true; // nobody will see the rest
}

// Hands the window that was filled to the workers.
static void submit(session *s)
{
    dgm_input *inputs = need(calloc(s->pending, sizeof *inputs));
    const char *at = s->text;
    for (size_t i = 0; i < s->pending; i++) {
        inputs[i].text = at;
        inputs[i].size = s->sizes[i];
        at += s->sizes[i];
        inputs[i].prefix = s->prefix_sizes[i] ? at : NULL;
        inputs[i].prefix_size = s->prefix_sizes[i];
        at += s->prefix_sizes[i];
    }
    if (s->count == JOBS_MAX) collect(s);
    window *w = &s->jobs[(s->first + s->count) % JOBS_MAX];
    dgm_error error;
    if (dgm_submit(s->t, inputs, s->pending, &w->job, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        s->broken = true;
    } else {
        w->lines = s->pending;
        s->in_flight += s->pending;
        s->count++;
    }
    free(inputs);
    s->pending = s->text_used = 0;
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

// One more line of input (and its prefix) for the window. False at the end.
static bool read_one(session *s)
{
    char *line = NULL;
    size_t size = 0;
    if (!reader_next(s->in, &line, &size)) return false;
    if (s->pending == s->lines_cap) {
        s->lines_cap = s->lines_cap ? s->lines_cap * 2 : 256;
        s->sizes = need(realloc(s->sizes, s->lines_cap * sizeof *s->sizes));
        s->prefix_sizes = need(realloc(s->prefix_sizes, s->lines_cap * sizeof *s->prefix_sizes));
    }
    s->sizes[s->pending] = size;
    append(s, line, size);
    size = 0;
    if (s->prefix && !s->prefix_ended && !reader_next(s->prefix, &line, &size)) {
        if (!reader_failed(s->prefix))
            fail(EXIT_RUNTIME, "the prefix file has fewer lines than the input: the rest is "
                               "translated without");
        s->input_failed = s->prefix_ended = true;
        size = 0;
    }
    s->prefix_sizes[s->pending] = size;
    append(s, line, size);
    s->pending++;
    return true;
}

static void translate_all(session *s)
{
    size_t most = (size_t)s->o->window;
    bool more = true;
    while (!s->broken && (more || s->pending || s->count)) {
        bool idle = !more || !reader_ready(s->in);
        if (s->pending && (s->pending >= most || idle)) submit(s);
        // Two windows at work keep the batches full; a third would only take memory.
        else if (s->count && (idle || s->in_flight >= 2 * most))
            collect(s);
        else if (more)
            more = read_one(s);
    }
    while (s->count) collect(s);
}

// Lines of the prefix file that no line of input asked for: most likely it is another text's.
static void check_prefix_rest(session *s)
{
    char *line = NULL;
    size_t size = 0;
    if (!s->prefix || s->prefix_ended || s->broken || reader_failed(s->in)) return;
    if (reader_next(s->prefix, &line, &size) && !s->o->quiet)
        warn("the prefix file has more lines than the input: the rest is not used");
    s->input_failed = s->input_failed || reader_failed(s->prefix);
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
    fprintf(stderr, "states      %llu distinct of %llu (%.1f %%); %llu products for %llu rows, %s\n",
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
    fprintf(stderr, "search      %s, beam %d, finish %s, batch %d (%lld tokens), threads %d\n", i->search,
            (int)i->beam, i->finish, (int)i->batch, (long long)i->batch_tokens, (int)i->threads);
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
    fprintf(stderr, "shortlist   %s, %.1f candidates per sentence\n", i->shortlist,
            c.sentences ? (double)c.candidates / (double)c.sentences : 0.0);
    print_techniques(s->t);
    fprintf(stderr, "time        %.3f s to load, %.3f s to translate\n", s->load, took);
    fprintf(stderr, "speed       %.1f lines/s, %.1f output tokens/s\n", (double)c.lines / took,
            (double)c.target_tokens / took);
    fprintf(stderr, "memory      %.1f MiB weights, %.1f MiB workspace, %.1f MiB peak RSS\n",
            (double)i->packed_bytes / 1048576, (double)c.arena_peak / 1048576,
            (double)peak_rss() / 1048576);
    if (timed(s->o)) stats_times(s->t);
}

static void close_session(session *s)
{
    dgm_close(&s->t);
    reader_close(s->in);
    reader_close(s->prefix);
    free(s->text);
    free(s->sizes);
    free(s->prefix_sizes);
}

static int run(const command *self, int argc, char **argv)
{
    translate_options o = {
        .nbest = 1, .window = 2048, .align_layer = DGM_ALIGN_MODEL, .align_head = DGM_ALIGN_MODEL};
    words rest;
    engine_options_default(&o.engine);
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count)
        return fail_usage(self, "translate reads standard input or --input, not '%s'",
                          rest.items[0]);
    if (same_file(o.input, o.output))
        return fail_usage(self, "--output is the same file as --input");
    session *s = need(calloc(1, sizeof *s));
    dgm_settings settings;
    dgm_settings_default(&settings);
    settings.nbest = o.nbest;
    settings.token_scores = o.word_scores;
    settings.exact_scores = o.scores || o.word_scores || o.json || o.nbest > 1 || o.alignment;
    settings.align_layer = o.align_layer;
    settings.align_head = o.align_head;
    if (o.alignment)
        settings.alignment =
            strcmp(o.alignment, "tokens") == 0 ? DGM_ALIGN_TOKENS : DGM_ALIGN_WORDS;
    s->o = &o;
    s->start = seconds();
    code = engine_open(&o.engine, &settings, &s->t);
    s->load = seconds() - s->start;
    if (code < 0 && timed(&o)) stats_watch(s->t);
    if (code < 0) {
        code = EXIT_RUNTIME;
        s->in = reader_open(o.input);
        if (s->in && o.prefix) s->prefix = reader_open(o.prefix);
        if (s->in && (!o.prefix || s->prefix)) s->out = writer_open(o.output);
    }
    if (s->out) {
        progress_start(&s->bar, !o.quiet);
        s->start = seconds();
        translate_all(s);
        progress_end(&s->bar);
        check_prefix_rest(s);
        bool fine = !s->broken && !s->input_failed && !reader_failed(s->in) && s->failed == 0;
        fine = writer_close(s->out) && fine;
        if (o.stats) print_stats(s);
        code = fine ? EXIT_FINE : EXIT_RUNTIME;
    }
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
        "that cannot be translated becomes an empty line and a message on standard error, and the "
        "exit status is 1; all other lines are translated.",
    .example = "echo 'Good morning.' | dragoman translate\n"
               "dragoman translate -m models/en-de.gguf --threads 2 -i news.en.gz -o news.de.gz\n"
               "dragoman translate --nbest 4 --json < questions.txt",
    .options = options,
    .run = run,
};
