// SPDX-License-Identifier: MIT
// `dragoman translate`: lines in, translations out, in order.
//
// Options, files and the journal of a job are here; translate_lines.c moves the lines.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "translate/stats.h"
#include "translate/translate_lines.h"

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
     "'^ WORDS' its beginning, '$ WORDS' its end (docs/manual/CONSTRAINTS.md)",
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

static bool timed(const translate_options *o)
{
    return o->stats && strcmp(o->stats, "time") == 0;
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
    static const char *const others[] = {"model",  "weights", "source", "target",    "cpu", "device",
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

// Files that every line depends on; those that go with the lines are part of the input.
static bool describe_contents(session *s)
{
    const translate_options *o = s->o;
    char judges[64 * LIST_MAX] = "", terms[64 * LIST_MAX] = "", dictionary[64] = "";
    int code = rerank_files(&o->rerank, NULL, judges, sizeof judges);
    for (int i = 0; code < 0 && i < o->terms.count; i++) // a pipe has no second reading
        if (is_file_name(o->terms.items[i]))
            code = file_identity(o->terms.items[i], 1, terms, sizeof terms);
    if (code < 0 && is_file_name(o->engine.dictionary))
        code = file_identity(o->engine.dictionary, 1, dictionary, sizeof dictionary);
    journal_describe(s->journal, "content of --rerank", judges);
    journal_describe(s->journal, "content of --terms", terms);
    journal_describe(s->journal, "content of --dictionary", dictionary);
    return code < 0;
}

static bool describe_job(session *s, const command *self)
{
    char models[512];
    const dgm_translator_info *i = dgm_describe(s->t);
    if (engine_identity(&s->o->engine, models, sizeof models) >= 0) return false;
    journal_describe(s->journal, "version", dgm_version());
    journal_describe(s->journal, "model", models);
    // f32 is the one precision whose sums depend on the instruction set; other devices round their way.
    if (strcmp(i->precision, "f32") == 0 || strncmp(i->device, "cpu ", 4) != 0)
        journal_describe(s->journal, "kernels", i->device);
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
    return describe_contents(s);
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
    if (done && o->stats) {
        stats_run(s->t, s->failed, s->load, seconds() - s->start);
        if (timed(o)) stats_times(s->t);
    }
    if (!fine || !closed) return EXIT_RUNTIME;
    if (s->failed && o->failures && !o->quiet)
        warn("%llu line%s could not be translated: see '%s'", (unsigned long long)s->failed,
             s->failed == 1 ? "" : "s", o->failures);
    return s->failed || s->malformed ? EXIT_LINES : EXIT_FINE;
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
    files_read(&files, "--prefix", o->prefix);
    files_read(&files, "--lmbr", o->lmbr.file);
    files_read(&files, "--lmbr-settings", o->lmbr.settings);
    files_read(&files, "--lmbr-tune", o->lmbr.tune);
    files_read(&files, "--lattice", o->lattice);
    files_read(&files, "--constraints", o->constraints);
    files_read(&files, "--directions", o->directions);
    files_read_list(&files, "--terms", &o->terms);
    files_write(&files, "--output", o->output);
    files_write(&files, "the journal of --output", beside);
    files_write(&files, "--failures", o->failures);
    int code = rerank_files(&o->rerank, &files, NULL, 0);
    if (code < 0) code = files_check(self, &files);
    if (code < 0 && (o->output || o->failures)) code = engine_files(&o->engine, &files);
    if (code < 0) code = files_check(self, &files);
    free(beside);
    if (code >= 0) return code;
    const struct {
        const char *name;
        bool given;
    } untuned[] = {{"prefix", o->prefix},         {"constraints", o->constraints},
                   {"directions", o->directions}, {"lattice", o->lattice},
                   {"rerank", o->rerank.count},   {"resume", o->resume}};
    for (size_t i = 0; o->lmbr.tune && i < sizeof untuned / sizeof *untuned; i++)
        if (untuned[i].given)
            return fail_usage(self, "--lmbr-tune does not go with --%s", untuned[i].name);
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
    if (o.rerank.count && o.directions)
        return fail_usage(self, "--rerank judges all lines in one direction: it does not go with "
                                "--directions");
    session *s = need(calloc(1, sizeof *s));
    for (int i = 0; i < o.terms.count; i++) o.engine.decoding.terms[i] = o.terms.items[i];
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
    settings.evidence = o.lmbr.file != NULL;
    settings.lmbr = s->weights;
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
    if (code < 0) code = rerank_open(&o.rerank, &o.engine, s->t, &s->rerank);
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
