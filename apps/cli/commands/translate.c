// SPDX-License-Identifier: MIT
// `dragoman translate`: lines in, translations out, in order.
//
// Options, files and the journal of a job are here; translate_lines.c moves the lines.
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/interrupt.h"
#include "translate/documents.h"
#include "translate/job.h"
#include "translate/lmbr_tune.h"
#include "translate/remote.h"
#include "translate/stats.h"
#include "translate/translate_lines.h"

#define AT(field) offsetof(translate_options, field)

enum {
    COMMON_FILE = OPTION_FILES | OPTION_COMMON,
    COMMON_CONSTRAINT = OPTION_CONSTRAINTS | OPTION_COMMON
};

static const option options[] = {
    {"input", 'i', OPTION_TEXT | OPTION_FILES | OPTION_EVERYDAY(4), "FILE", AT(input), 0, 0, NULL,
     "read from FILE, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT | OPTION_FILES | OPTION_EVERYDAY(5), "FILE", AT(output), 0, 0, NULL,
     "write to FILE, also .gz (default: standard output); while the job runs, FILE.progress says "
     "how "
     "far it has come",
     "out", NULL},
    {"text", 0, OPTION_LIST | OPTION_FILES | OPTION_EVERYDAY(6), "TEXT", AT(text), 0, 0, NULL,
     "translate TEXT; may be given several times", NULL, NULL},
    ENCODING_OPTION(translate_options, OPTION_FILES | OPTION_OUTPUT),
    {"format", 0, OPTION_TEXT | OPTION_FILES | OPTION_COMMON | OPTION_OUTPUT, "NAME", AT(format), 0, 0, NULL,
     "kind of document that the input is; html, md, po, ...; txt: lines of text (default: what the name's ending says; "
     "docs/manual/DOCUMENTS.md)",
     NULL, NULL},
    {"column", 0, OPTION_TEXT | OPTION_FILES | OPTION_OUTPUT, "LIST", AT(document.columns), 0, 0, NULL,
     "csv, tsv: columns to translate, by number from 1 (2,4-6) or by the names in the first row", NULL, NULL},
    {"all", 0, OPTION_FLAG | OPTION_FILES | OPTION_OUTPUT, NULL, AT(document.all), 0, 0, NULL,
     "po, xliff: also entries that have a translation; without it those that are empty or fuzzy", NULL, NULL},
    {"width", 0, OPTION_COUNT | OPTION_FILES | OPTION_OUTPUT, "N", AT(document.width), 8, 1000, NULL,
     "srt, vtt: longest line of a subtitle (default: that of the file, at least 32)", NULL, NULL},
    {"list-lines", 0, OPTION_FLAG | OPTION_FILES, NULL, AT(list_lines), 0, 0, NULL,
     "documents: do not translate, but print the lines, one each: those that --prefix, --constraints, --directions, "
     "--lattice and --lmbr go with",
     NULL, NULL},
    {"no-memory", 0, OPTION_FLAG | OPTION_FILES, NULL, AT(document.no_memory), 0, 0, NULL,
     "documents: translate lines that come again, again; the output is the same", NULL, NULL},
    {"tmx", 0, OPTION_TEXT | OPTION_FILES | OPTION_OUTPUT, "FILE", AT(tmx), 0, 0, NULL,
     "documents: take translations of lines that this translation memory (TMX) knows from it", NULL, NULL},
    {"tmx-out", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(tmx_out), 0, 0, NULL,
     "documents: write lines and their translations to FILE as TMX, with what --tmx has; may be the same file", NULL,
     NULL},
    {"resume", 0, OPTION_FLAG | OPTION_FILES | OPTION_EVERYDAY(13), NULL, AT(resume), 0, 0, NULL,
     "go on with a job that was interrupted; with the same input, model and options: what --output "
     "has is kept. A job that is complete stays as it is",
     NULL, NULL},
    {"overwrite", 0, OPTION_FLAG | OPTION_FILES, NULL, AT(overwrite), 0, 0, NULL,
     "begin anew where --output has an interrupted job; without it or --resume such a job is left "
     "alone, with a message",
     NULL, NULL},
    {"failures", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(failures), 0, 0, NULL,
     "write the number of every line that could not be translated and the reason to FILE, instead "
     "of messages on standard error",
     NULL, NULL},
    {"scores", 0, OPTION_FLAG | COMMON_FILE | OPTION_OUTPUT, NULL, AT(show.scores), 0, 0, NULL,
     "print the score behind every translation", "return-scores|with-score", NULL},
    {"json", 0, OPTION_FLAG | OPTION_FILES | OPTION_EVERYDAY(11) | OPTION_OUTPUT, NULL, AT(show.json), 0, 0, NULL,
     "print one JSON object per line of input; lines counted from 0, as with --nbest", NULL, NULL},
    {"stats", 0, OPTION_MAYBE | OPTION_FILES, "KIND", AT(stats), 0, 0,
     "counts|time|json|json-time",
     "print counts, speed and memory on standard error at the end; time: also where the time went "
     "(measuring it takes some); json, json-time: as one JSON object (docs/manual/STATISTICS.md)",
     NULL, "counts"},
    {"progress", 0, OPTION_TEXT | OPTION_FILES | OPTION_EVERYDAY(14),
     "{auto,bar,log,json,off}[:SECONDS]", AT(progress), 0, 0, NULL,
     "how progress is shown on standard error; log: a line a minute; json: an object a second; "
     "auto: a bar on a terminal unless lines are typed or printed there, else a log; SECONDS: how "
     "often (docs/manual/JOBS.md)",
     NULL, NULL},
    {"quiet", 'q', OPTION_FLAG | OPTION_FILES | OPTION_EVERYDAY(15), NULL, AT(quiet), 0, 0, NULL,
     "no progress and no warnings", "quiet-translation", NULL},
    MODEL_OPTIONS(translate_options, engine),
    {"server", 0, OPTION_TEXT | OPTION_MODEL, "URL", AT(server), 0, 0, NULL,
     "let a server translate ('dragoman serve'); http://HOST:PORT or unix:PATH", NULL, NULL},
    {"api-key", 0, OPTION_TEXT | OPTION_MODEL, "KEY", AT(api_key), 0, 0, NULL, "--server: API key", NULL, NULL},
    {"pivot-nbest", 0, OPTION_COUNT | OPTION_MODEL | OPTION_OUTPUT, "N", AT(engine.pivot_nbest), 1, 64, NULL,
     "where no model has the direction and two are used one behind the other: translate N translations of the first, "
     "and choose by the scores of both (default 1)",
     NULL, NULL},
    {"directions", 0, OPTION_TEXT | OPTION_MODEL, "FILE", AT(directions), 0, 0, NULL,
     "multilingual models: file with the languages of each line, 'SOURCE TARGET' or 'TARGET', one "
     "line per line of input; what it leaves out is --source and --target; with --source auto it is found out",
     NULL, NULL},
    {"prefix", 0, OPTION_TEXT | COMMON_CONSTRAINT, "FILE", AT(prefix), 0, 0, NULL,
     "file with the beginning that each translation must have; one line per line of input, an "
     "empty "
     "line forces nothing",
     "force-decode|target-prefix", NULL},
    {"constraints", 0, OPTION_TEXT | COMMON_CONSTRAINT, "FILE", AT(constraints), 0, 0, NULL,
     "file with what each translation must and must not hold; one line per line of input, entries "
     "between tabs: 'SOURCE => TARGET | VARIANT' a term, 'WORDS' forced, '! WORDS' forbidden, "
     "'^ WORDS' its beginning, '$ WORDS' its end (docs/manual/CONSTRAINTS.md)",
     NULL, NULL},
    {"lattice", 0, OPTION_TEXT | OPTION_EVIDENCE, "FILE", AT(lattice), 0, 0, NULL,
     "file with one lattice per line of input; a translation is one of its paths; also gzip. "
     "Shortlists are off unless --shortlist asks for one",
     NULL, NULL},
    LMBR_OPTIONS(translate_options, lmbr),
    {"rerank", 0, OPTION_LIST | OPTION_EVIDENCE | OPTION_OUTPUT, "MODEL[:WEIGHT]", AT(rerank), 0, 0,
     NULL,
     "choose among all hypotheses of the beam by another model, too; by their score plus WEIGHT "
     "times "
     "the score that MODEL gives them, e.g. one that writes from right to left (default weight 1); "
     "it "
     "may have another vocabulary; may be given several times; en-de=MODEL: for lines of that direction; needs --beam",
     NULL, NULL},
    {"window", 0, OPTION_COUNT | OPTION_SPEED | OPTION_OUTPUT, "N", AT(window), 1, 1000000, NULL,
     "lines that are sorted by length together (default 2048)", "maxi-batch", NULL},
    {0},
};

static bool timed(const translate_options *o)
{
    return o->stats && (strcmp(o->stats, "time") == 0 || strcmp(o->stats, "json-time") == 0);
}

// Of every translator, the one that wrote the translations first.
static void print_stats(const session *s)
{
    const double took = seconds() - s->start;
    dgm_translator *t;
    for (size_t i = 0; (t = dgm_route_translator(s->route, i)) != NULL; i++) {
        if (strncmp(s->o->stats, "json", 4) == 0) {
            stats_json(t, s->failed, s->load, took);
            continue;
        }
        stats_run(t, s->failed, s->load, took);
        if (timed(s->o)) stats_times(t);
    }
}

// Of --workspace an eighth is for text: three windows at a time, of which every byte takes about
// eight (tokens, positions, results). Without it 8 MiB of text make a window full.
static size_t text_share(const engine_options *e)
{
    const int64_t workspace = e->set.settings.workspace;
    return workspace ? (size_t)workspace / (8 * 3 * 8) : (size_t)8 << 20;
}

static void close_session(session *s)
{
    dgm_route_close(&s->route);
    if (s->owned) dgm_close(&s->t);
    rerank_close(&s->rerank);
    reader_close(s->in);
    dgm_document_close(&s->document);
    dgm_memory_close(&s->memory);
    evidence_free(&s->evidence);
    lattices_free(&s->lattices);
    directions_free(&s->directions);
    for (companion *c = s->with; c < s->with + COMPANIONS; c++) {
        reader_close(c->in);
        free(c->sizes);
    }
    free(s->text);
    free(s->sizes);
    free(s->crlf);
}

static translate_options usual_options(void)
{
    translate_options o = {.window = 2048};
    dgm_document_options_default(&o.document);
    engine_options_default(&o.engine);
    return o;
}

// What the bytes of the output depend on goes into the journal's description: every option that is
// marked so, and differs from its default. Lines end a gzip file's members by windows.
static void describe_options(session *s, const command *self)
{
    const translate_options standard = usual_options();
    option o;
    for (size_t at = 0; option_next(self, &at, &o);) {
        if (!(o.kind & OPTION_OUTPUT)) continue;
        if (strcmp(o.name, "window") == 0 && !names_gz(s->o->output)) continue;
        char name[64];
        char *value = option_value(self, &o, s->o), *usual = option_value(self, &o, &standard);
        snprintf(name, sizeof name, "--%s", o.name);
        journal_describe(s->journal, name, strcmp(value, usual) == 0 ? "" : value, NULL);
        free(value);
        free(usual);
    }
}

// Files that every line depends on; those that go with the lines are part of the input.
static bool describe_contents(session *s)
{
    const translate_options *o = s->o;
    char rerankers[64 * LIST_MAX] = "", terms[64 * LIST_MAX] = "", dictionary[64] = "";
    char system[64 * 6] = "", models[512] = "", glossaries[512] = "";
    int code = rerank_files(&o->rerank, NULL, rerankers, sizeof rerankers);
    const dgm_settings *set = &o->engine.set.settings;
    for (int i = 0; code < 0 && i < DGM_TERMS_MAX && set->terms[i]; i++)
        if (is_file_name(dgm_directed_path(set->terms[i]))) { // a pipe has no second reading
            names_add(set->terms[i], glossaries, sizeof glossaries);
            code = file_identity(dgm_directed_path(set->terms[i]), 1, terms, sizeof terms);
        }
    if (code < 0 && is_file_name(set->dictionary))
        code = file_identity(set->dictionary, 1, dictionary, sizeof dictionary);
    if (code < 0) code = system_identity(set->phrase_system, system, sizeof system);
    for (int i = 0; i < o->rerank.count; i++) names_add(o->rerank.items[i], models, sizeof models);
    journal_describe(s->journal, "content of --evidence", system, set->phrase_system);
    journal_describe(s->journal, "content of --rerank", rerankers, models);
    journal_describe(s->journal, "content of --terms", terms, glossaries);
    journal_describe(s->journal, "content of --dictionary", dictionary, set->dictionary);
    return code < 0;
}

static bool describe_job(session *s, const command *self)
{
    char models[512], names[512];
    const dgm_translator_info *i = dgm_describe(s->t);
    if (engine_identity(&s->o->engine, models, sizeof models, names, sizeof names) >= 0) return false;
    journal_describe(s->journal, "version", dgm_version(), NULL);
    journal_describe(s->journal, "model", models, names);
    // f32 is the one precision whose sums depend on the instruction set; other devices round their way.
    if (strcmp(i->precision, "f32") == 0 || strncmp(i->device, "cpu ", 4) != 0)
        journal_describe(s->journal, "kernels", i->device, NULL);
    char weights[256] = "";
    if (s->evidence.file || s->o->engine.set.settings.phrase_system)
        lmbr_describe(&s->o->engine.set.settings.lmbr, weights, sizeof weights);
    journal_describe(s->journal, "--lmbr", weights, NULL);
    journal_describe(s->journal, "--prefix", s->with[0].in ? "given" : "", NULL);
    journal_describe(s->journal, "--constraints", s->with[1].in ? "given" : "", NULL);
    journal_describe(s->journal, "--directions", s->with[2].in ? "given" : "", NULL);
    bool many = dgm_directions(s->t, 0, NULL) > 1;
    journal_describe(s->journal, "--source", many ? dgm_describe(s->t)->source_language : "", NULL);
    journal_describe(s->journal, "--target", many ? dgm_describe(s->t)->target_language : "", NULL);
    const dgm_settings *set = &s->o->engine.set.settings;
    const bool routed = !s->owned;
    journal_describe(s->journal, "route from", routed && set->source ? set->source : "", NULL);
    journal_describe(s->journal, "route to", routed && set->target ? set->target : "", NULL);
    journal_describe(s->journal, "--lattice", s->lattices.file ? "given" : "", NULL);
    journal_describe(s->journal, "--failures", s->o->failures ? "given" : "", NULL);
    journal_describe(s->journal, "--lmbr-dump", s->o->lmbr.dump ? "given" : "", NULL);
    describe_options(s, self);
    if (!describe_contents(s)) return false;
    job_describe_input(s->journal, s->o);
    return true;
}

// Output to a file, with a journal; the input is read up to where the output ends.
static bool open_job(session *s, const command *self)
{
    const translate_options *o = s->o;
    journal_mark m = {0};
    s->journal = journal_open(o->output);
    if (!writer_possible(o->output) || !describe_job(s, self)) return false;
    if (!(o->resume ? journal_resume(s->journal, o->failures, o->lmbr.dump, &m) : journal_begin(s->journal)))
        return false;
    s->written = m.lines;
    s->failed = m.failed;
    if (!skip_lines(s, &m)) return false;
    if (s->document && m.lines && !document_resume(s, m.lines)) return false;
    const double share = reader_share(s->in);
    s->bar.begin = share > 0 ? share : 0;
    s->bar.before = m.lines;
    s->out = writer_open_at(o->output, m.bytes, m.output);
    if (o->failures) s->report = writer_open_at(o->failures, m.failures, m.reasons);
    if (o->lmbr.dump) s->dump = writer_open_at(o->lmbr.dump, m.dumped, m.dump);
    return s->out && (!o->failures || s->report) && (!o->lmbr.dump || s->dump);
}

static bool open_files(session *s, const command *self)
{
    const translate_options *o = s->o;
    s->in = s->document ? document_lines(s->document) : open_input(o);
    const char *const names[COMPANIONS] = {o->prefix, o->constraints, o->directions};
    static const char *const what[COMPANIONS] = {"prefix", "constraints", "directions"};
    if (!s->in) return false;
    input_warn(o);
    for (int i = 0; i < COMPANIONS; i++) {
        s->with[i].what = what[i];
        if (names[i]) s->with[i].in = reader_open(names[i]);
        if (names[i] && !s->with[i].in) return false;
    }
    if (o->lmbr.file && !(s->evidence.file = lmbr_open(&o->lmbr))) return false;
    if (o->lattice && !(s->lattices.file = lattices_open(o->lattice))) return false;
    progress_choose(&s->bar, o->progress, is_conversation(o), o->quiet);
    if (input_is_typed(o) && !o->quiet)
        fprintf(stderr, "dragoman: reading from the terminal: type lines to translate, Ctrl-D ends\n");
    if (is_file_name(o->output)) return open_job(s, self);
    if (o->lmbr.dump && !(s->dump = writer_open(o->lmbr.dump))) return false;
    s->out = writer_open(o->output);
    if (s->out && o->failures) s->report = writer_open(o->failures);
    return s->out && (!o->failures || s->report);
}

// Translates the lines. False: not all of them, for whatever reason.
static bool translate_lines(session *s)
{
    if (s->journal) interrupt_catch();
    reader_stop(s->in, &interrupted);
    s->start = seconds();
    translate_all(s);
    progress_end(&s->bar);
    if (interrupted || output_closed()) return false;
    for (int i = 0; i < COMPANIONS; i++) check_rest(s, &s->with[i]);
    if (s->broken || s->cut || reader_failed(s->in)) return false;
    if (!evidence_complete(&s->evidence, s->read)) s->input_failed = true;
    if (!lattices_complete(&s->lattices, s->o->quiet)) s->input_failed = true;
    return true;
}

// What is said at the end: of a job always, else where progress was seen. A program that is interrupted
// or that nobody listens to ends here, without waiting for its workers.
static void say_end(session *s, bool job, bool done)
{
    const progress_state now = {
        .lines = s->written, .failed = s->failed, .total = done ? (double)s->written : -1, .share = done ? 1 : -1};
    if (s->bar.kind == PROGRESS_JSON || (done && (job || s->bar.said)))
        progress_close(&s->bar, &now, done ? "complete" : interrupted ? "interrupted" : "failed");
    if (interrupted && !done) {
        if (job) job_how_to_continue(s->o, s->written);
        end_by_signal(interrupted);
    }
    if (output_closed()) end_by_signal(SIGPIPE);
}

// Reads, translates and writes everything; returns the exit code.
static int translate_files(session *s, const command *self)
{
    const translate_options *o = s->o;
    const bool ready = open_files(s, self), done = ready && translate_lines(s) && (!s->document || document_finish(s));
    const bool job = s->journal != NULL;
    bool closed = writer_close(s->out);
    closed = writer_close(s->report) && closed;
    closed = writer_close(s->dump) && closed;
    journal_close(s->journal, done && closed);
    if (done && o->stats) print_stats(s);
    if (!o->quiet) lmbr_warn(s->t, &o->engine.set);
    if (ready) say_end(s, job, done && closed);
    if (!done || s->input_failed || !closed) return EXIT_RUNTIME;
    if (s->failed && o->failures && !o->quiet)
        warn("%llu line%s could not be translated: see '%s'", (unsigned long long)s->failed,
             s->failed == 1 ? "" : "s", o->failures);
    return s->failed || s->malformed ? EXIT_LINES : EXIT_FINE;
}

static int list_system(void *cookie, const char *path)
{
    file_list *f = cookie;
    const int before = f->count;
    files_read_system(f, "--evidence", "a file of --evidence", path);
    if (f->count > before) f->items[before].path = NULL; // it goes with its item of the list
    return -1;
}

// The journal is written beside the output (journal.h).
static int check_files(const command *self, const translate_options *o)
{
    file_list files = {0};
    char *beside = NULL;
    if (is_file_name(o->output)) {
        const size_t room = strlen(o->output) + sizeof ".progress";
        beside = need(malloc(room));
        snprintf(beside, room, "%s.progress", o->output);
    }
    files_read(&files, "--input", o->input);
    files_read_words(&files, &o->files, 0);
    files_read(&files, "--prefix", o->prefix);
    files_read(&files, "--lmbr", o->lmbr.file);
    files_read(&files, "--lmbr-settings", o->lmbr.settings);
    files_read(&files, "--lmbr-tune", o->lmbr.tune);
    each_system(o->engine.set.settings.phrase_system, list_system, &files);
    files_read(&files, "--lattice", o->lattice);
    files_read(&files, "--constraints", o->constraints);
    files_read(&files, "--directions", o->directions);
    for (int i = 0; i < DGM_TERMS_MAX; i++)
        files_read(&files, "--terms", dgm_directed_path(o->engine.set.settings.terms[i]));
    files_write(&files, "--output", o->output);
    files_write(&files, "the journal of --output", beside);
    files_write(&files, "--failures", o->failures);
    files_write(&files, "--lmbr-dump", o->lmbr.dump);
    int code = rerank_files(&o->rerank, &files, NULL, 0);
    if (code < 0) code = files_check(self, &files);
    if (code < 0 && (o->output || o->failures)) code = engine_files(&o->engine, &files);
    if (code < 0) code = files_check(self, &files);
    free(beside);
    if (code >= 0) return code;
    return -1;
}

// What is read: one of FILE..., --input and --text; and what goes with a job alone.
static int check_input(const command *self, translate_options *o)
{
    const words *f = &o->files;
    progress bar;
    for (int i = 0; i < f->count; i++) {
        const size_t n = strlen(f->items[i]);
        if (n > 5 && strcmp(f->items[i] + n - 5, ".gguf") == 0)
            return fail_usage(self, "'%s' is a model, not a text: give it with -m", f->items[i]);
    }
    if (f->count && o->input)
        return fail_usage(self, "--input and '%s' cannot be combined", f->items[0]);
    if (o->text.count && (o->input || f->count))
        return fail_usage(self, "--text and %s%s%s cannot be combined", f->count ? "'" : "",
                          f->count ? f->items[0] : "--input", f->count ? "'" : "");
    if (o->text.count && o->resume) return fail_usage(self, "--text and --resume cannot be combined");
    if (o->resume && o->overwrite)
        return fail_usage(self, "--resume and --overwrite cannot be combined");
    if ((o->resume || o->overwrite) && !is_file_name(o->output))
        return fail_usage(self, "--%s requires --output FILE", o->resume ? "resume" : "overwrite");
    if (o->lmbr.tune && (o->text.count || f->count > 1))
        return fail_usage(self, "--lmbr-tune reads one file, of --input");
    if (!progress_choose(&bar, o->progress, false, false))
        return fail_usage(self,
                          "--progress must be one of auto, bar, log, json, off, alone or with "
                          ":SECONDS, not '%s'",
                          o->progress);
    if (f->count == 1) {
        o->input = f->items[0];
        o->files.count = 0;
    }
    return -1;
}

// What the library cannot know before files are opened: it is asked whether all of it goes together.
static int check_features(const command *self, const translate_options *o)
{
    const struct {
        const char *name;
        bool given;
    } features[] = {{"lmbr", o->lmbr.file || o->engine.set.settings.phrase_system},
                    {"evidence", o->engine.set.settings.phrase_system},
                    {"lmbr-thetas", settings_given(&o->engine.set, "lmbr-thetas")},
                    {"lmbr-tune", o->lmbr.tune},
                    {"lmbr-dump", o->lmbr.dump},
                    {"prefix", o->prefix},
                    {"constraints", (o->lmbr.tune || o->format) && o->constraints}, // else lines say what they want
                    {"directions", o->directions},
                    {"terms", o->engine.set.settings.terms[0]},
                    {"lattice", o->lattice},
                    {"rerank", o->rerank.count},
                    {"format", o->format},
                    {"resume", o->resume}};
    enum { MOST = sizeof features / sizeof *features };
    const char *names[MOST];
    dgm_feature_query q = {.size = sizeof q, .features = names, .models = DGM_MODELS_ANY};
    dgm_error error;
    for (size_t i = 0; i < MOST; i++)
        if (features[i].given) names[q.count++] = features[i].name;
    if (dgm_features_check(&q, NULL, &error) == DGM_OK) return -1;
    return fail_usage(self, "%s", error.text);
}

// Do lines have several directions?
static bool has_directions(const translate_options *o)
{
    return o->directions || is_auto(&o->engine);
}

// A route is known when the models are; what comes with lines must fit it, too.
static int check_route(const translate_options *o, const session *s)
{
    const char *names[10];
    dgm_feature_query q = {.size = sizeof q, .features = names, .models = DGM_MODELS_ANY};
    dgm_error error;
    if (s->owned) return -1;
    names[q.count++] = is_auto(&o->engine) ? "source-auto" : "pivot";
    if (o->format) names[q.count++] = "format";
    if (o->directions) names[q.count++] = "directions";
    if (o->rerank.count) names[q.count++] = "rerank";
    return dgm_features_check(&q, NULL, &error) == DGM_OK ? -1 : fail(EXIT_USAGE, "%s", error.text);
}

// Settings and options that follow from each other.
static void settle(translate_options *o)
{
    dgm_settings *s = &o->engine.set.settings;
    presentation *show = &o->show;
    show->nbest = s->nbest;
    show->word_scores = s->token_scores;
    show->alignment = s->alignment != DGM_ALIGN_NONE;
    if (o->format && !settings_given(&o->engine.set, "alignment")) s->alignment = DGM_ALIGN_WORDS; // tags follow words
    s->exact_scores = show->scores || show->word_scores || show->json || show->nbest > 1 ||
                      show->alignment || o->rerank.count;
    if (o->rerank.count) s->nbest = rerank_candidates(&o->engine, show->nbest);
    s->lattices = o->lattice != NULL;
    s->direction_later = o->directions != NULL;
    s->count_unions = o->stats && !timed(o); // counting costs time
    s->time_devices = o->stats != NULL;
    // A corpus takes what the machine has, or as many threads as keep its device busy; who talks to us gets answers
    // by one. Memory that was measured out is not divided unasked.
    if (!settings_given(&o->engine.set, "threads") && !s->workspace && input_is_files(o)) s->threads = 0;
}

static int translate(const command *self, translate_options *o)
{
    int code = -1;
    if (o->api_key && !o->server) code = fail_usage(self, "--api-key requires --server URL");
    if (code < 0) code = check_files(self, o);
    if (code < 0 && o->server) code = remote_translate(self, o);
    if (code < 0) code = document_check(self, o);
    if (code < 0) code = check_input(self, o);
    if (code < 0) code = check_features(self, o);
    if (code >= 0) return code;
    if (o->rerank.count && !rerank_candidates(&o->engine, o->engine.set.settings.nbest))
        return fail_usage(self, "--rerank requires --beam N");
    code = lmbr_weights(&o->lmbr, &o->engine.set);
    if (code < 0) settle(o);
    if (code < 0 && o->lmbr.tune) code = lmbr_tune(self, o);
    if (code < 0) code = job_check(o);
    if (code >= 0) return code;
    session *s = need(calloc(1, sizeof *s));
    s->o = o;
    s->window_bytes = text_share(&o->engine);
    s->document = o->format ? document_load(o) : NULL;
    if (o->format && (!s->document || !document_fits(s))) code = EXIT_RUNTIME;
    if (code < 0 && o->list_lines && !o->tmx) code = document_list(s);
    s->plain = !o->format && !o->engine.set.settings.raw && !o->show.json && o->show.nbest == 1;
    s->start = seconds();
    if (code < 0) code = engine_open_route(&o->engine, &s->route, &s->t, &s->owned);
    if (code < 0) code = check_route(o, s);
    dgm_error error;
    const dgm_status st = code < 0 && o->prefix ? dgm_translator_check(s->t, "prefix", &error) : DGM_OK;
    if (st != DGM_OK) code = fail(exit_code(st), "%s", error.text);
    if (code < 0 && s->document && !document_recall(s)) code = EXIT_RUNTIME;
    if (code < 0 && o->list_lines) code = document_list(s);
    if (code < 0) code = rerank_open(&o->rerank, &o->engine, s->t, has_directions(o), &s->rerank);
    s->load = seconds() - s->start;
    if (code < 0 && timed(o)) stats_watch(s->t);
    if (code < 0) code = translate_files(s, self);
    close_session(s);
    free(s);
    return code;
}

static int run(const command *self, int argc, char **argv)
{
    translate_options o = usual_options();
    int code = options_parse(self, argc, argv, &o, &o.files);
    o.argc = argc;
    o.argv = argv;
    reader_encoding(o.encoding);
    if (code < 0) code = translate(self, &o);
    free(o.document_lines);
    return code;
}

const command command_translate = {
    .name = "translate",
    .summary = "translate text, one line each",
    .usage = "[-m MODEL]... [options] [FILE...]",
    .description =
        "Reads lines of UTF-8 text (--encoding: others) and writes their translations in UTF-8, one line each "
        "and in order; an empty line stays empty. The lines are those of FILE..., of --text or of standard input. "
        "Without options the default model translates them to standard output.\n\n"
        "A translation does not depend on the lines around it, on --batch or on --threads. A line "
        "that cannot be translated becomes an empty line and a message on standard error (or an "
        "entry of --failures), and the exit status is 3; all other lines are translated.\n\n"
        "A job with --output that was interrupted, by whatever, is continued by the same command "
        "with --resume: no line that was written is lost, and at most two windows are translated "
        "again. The file is the same in the end, byte for byte. Until then the output is left alone "
        "unless --overwrite says otherwise.\n\n"
        "Without --threads files are translated by all cores, pipes and the terminal by one.",
    .example = "dragoman translate --text 'Good morning.'\n"
               "dragoman translate -m models/en-de.gguf chapter1.txt chapter2.txt > book.de\n"
               "dragoman translate -i corpus.en.gz -o corpus.de.gz --failures bad.tsv --resume",
    .options = options,
    .settings = SETTINGS_ALL,
    .settings_at = AT(engine.set),
    .everyday = true,
    .run = run,
};
