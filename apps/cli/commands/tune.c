// SPDX-License-Identifier: MIT
// `dragoman tune`: the fastest settings for a text within a budget of quality.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/interrupt.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

typedef struct tune_options {
    option_list models, references;
    const char *input, *output, *metric, *aim, *time, *allow, *corpus, *corpus_target, *learned, *record, *replay;
    const char *json, *svg, *html, *against;
    float budget, sure;
    int64_t memory;
    int complete, resume, explain, quiet;
    setting_values set;
} tune_options;

#define AT(field) offsetof(tune_options, field)

static const option options[] = {
    {"model", 'm', OPTION_LIST, "MODEL", AT(models), 0, 0, NULL,
     "model to tune, as translate takes it; given several times, the best of them is found; A+B is an ensemble",
     "models", NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "text to tune on, also gzip; some hundred lines at least", NULL, NULL},
    {"reference", 'r', OPTION_LIST, "FILE", AT(references), 0, 0, NULL,
     "its translation, line by line; may be given several times; without any, quality is agreement with the most "
     "careful "
     "settings",
     "ref", NULL},
    {"budget", 0, OPTION_REAL, "X", AT(budget), 0, 100, NULL,
     "points of BLEU or chrF that may be lost (default 0.2); against the most careful settings", NULL, NULL},
    {"sure", 0, OPTION_REAL, "PERCENT", AT(sure), 1, 99.9, NULL,
     "how sure it must be that the choice is within the budget (default 80); share of bootstrap samples", NULL, NULL},
    {"metric", 0, OPTION_CHOICE | OPTION_FILES, "NAME", AT(metric), 0, 0, "bleu|chrf",
     "what quality is measured by (default bleu, without references chrf)", NULL, NULL},
    {"for", 0, OPTION_CHOICE, "AIM", AT(aim), 0, 0, "throughput|latency",
     "what is to be fast; the whole text (default), or a single line", NULL, NULL},
    {"time", 0, OPTION_TEXT, "TIME", AT(time), 0, 0, NULL, "time that it may take, e.g. 90s, 10m, 2h (default 10m)",
     NULL, NULL},
    {"memory", 0, OPTION_SIZE | OPTION_FILES, "SIZE", AT(memory), 0, 1e15, NULL,
     "leave out settings that need more for weights and work, e.g. 200M (default: none)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write the chosen model with the chosen settings as its defaults", NULL, NULL},
    {"html", 0, OPTION_TEXT, "FILE", AT(html), 0, 0, NULL, "write a page with the figure and everything that was tried",
     NULL, NULL},
    {"svg", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(svg), 0, 0, NULL, "write the figure", NULL, NULL},
    {"json", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(json), 0, 0, NULL,
     "write everything as JSON; -: to standard output instead of the table", NULL, NULL},
    {"explain", 0, OPTION_FLAG, NULL, AT(explain), 0, 0, NULL,
     "say why each optimisation paid or did not, with numbers", NULL, NULL},
    {"allow", 0, OPTION_TEXT | OPTION_FILES, "LIST", AT(allow), 0, 0, NULL,
     "also learn: shortlist, cluster, calibrate (models in --learned), length, lmbr; separated by commas", NULL, NULL},
    {"corpus", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(corpus), 0, 0, NULL, "--allow: source text to learn from",
     NULL, NULL},
    {"corpus-target", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(corpus_target), 0, 0, NULL,
     "--allow shortlist: its translation; without both the model's own list is cut", NULL, NULL},
    {"learned", 0, OPTION_TEXT | OPTION_FILES, "FOLDER", AT(learned), 0, 0, NULL,
     "--allow: folder for the models that are made", NULL, NULL},
    {"timings", 0, OPTION_TEXT, "FILE", AT(record), 0, 0, NULL, "record everything that is measured in FILE", "record",
     NULL},
    {"resume", 0, OPTION_FLAG | OPTION_FILES, NULL, AT(resume), 0, 0, NULL,
     "go on with --timings of a run that was stopped", NULL, NULL},
    {"replay", 0, OPTION_TEXT, "FILE", AT(replay), 0, 0, NULL,
     "take the measurements from FILE; a record of --timings: the same answer, without running a model", NULL, NULL},
    {"against", 0, OPTION_TEXT | OPTION_FILES, "FILE", AT(against), 0, 0, NULL,
     "settings to compare the choice with when it is made, options of translate a line", NULL, NULL},
    {"complete", 0, OPTION_FLAG | OPTION_FILES, NULL, AT(complete), 0, 0, NULL,
     "try every combination on the whole text, whatever time it takes; for comparisons", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress; only the answer", NULL, NULL},
    {0},
};

// ---- progress -----------------------------------------------------------------------------------

typedef struct display {
    progress bar;
    char stage[128];
} display;

static int tick(void *cookie, const char *stage, double share)
{
    display *d = cookie;
    if (stage) snprintf(d->stage, sizeof d->stage, "%s", stage);
    progress_tick(&d->bar, d->stage, share);
    return interrupted;
}

static void show_front(void *cookie, const char *text)
{
    display *d = cookie;
    progress_end(&d->bar);
    fputs(text, stderr);
}

// ---- what is written ----------------------------------------------------------------------------

static int write_text(const dgm_tune_report *r, const char *kind, const char *path)
{
    char *text = NULL;
    dgm_error error;
    const dgm_status st = dgm_tune_write(r, kind, &text, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    line_writer *w = writer_open(path);
    if (w) writer_text(w, text);
    if (w && strcmp(kind, "json") == 0) writer_text(w, "\n");
    dgm_string_free(&text);
    return w && writer_close(w) ? EXIT_FINE : EXIT_RUNTIME;
}

static int write_all(const tune_options *o, const dgm_tune_report *r)
{
    const bool json_out = o->json && strcmp(o->json, "-") == 0;
    const struct {
        const char *kind, *path;
        bool wanted;
    } texts[] = {{"svg", o->svg, o->svg != NULL},
                 {"html", o->html, o->html != NULL},
                 {"json", o->json, o->json != NULL},
                 {"explain", NULL, o->explain && !json_out},
                 {"table", NULL, !json_out}};
    dgm_error error;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        const int code = texts[i].wanted ? write_text(r, texts[i].kind, texts[i].path) : EXIT_FINE;
        if (code != EXIT_FINE) return code;
        if (i == 3 && texts[i].wanted) puts("");
    }
    const dgm_status st = o->output ? dgm_tune_store(r, o->output, &error) : DGM_OK;
    return st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
}

// ---- command ------------------------------------------------------------------------------------

static int work(const tune_options *o, dgm_tune_options *lib)
{
    display d = {.stage = "loading"};
    dgm_tune_report *report = NULL;
    dgm_error error;
    lib->progress = (dgm_progress){tick, &d};
    if (!o->quiet) {
        lib->front = show_front;
        lib->front_cookie = &d;
    }
    interrupt_catch();
    progress_start(&d.bar, !o->quiet);
    const dgm_status st = dgm_tune(lib, &report, &error);
    progress_end(&d.bar);
    if (interrupted) {
        if (o->record) inform("stopped; the same command with --resume goes on");
        dgm_tune_report_free(&report);
        end_by_signal(interrupted);
    }
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    const int code = write_all(o, report);
    dgm_tune_report_free(&report);
    return code;
}

static int check_files(const command *self, const tune_options *o)
{
    file_list files = {0};
    files_read(&files, "--input", o->input);
    files_read_list(&files, "--reference", &o->references);
    files_read(&files, "--corpus", o->corpus);
    files_read(&files, "--corpus-target", o->corpus_target);
    files_read(&files, "--against", o->against);
    files_read(&files, "--replay", o->replay);
    for (int i = 0; i < o->models.count; i++) files_read(&files, "--model", o->models.items[i]);
    files_write(&files, "--output", o->output);
    files_write(&files, "--timings", o->record);
    files_write(&files, "--svg", o->svg);
    files_write(&files, "--html", o->html);
    files_write(&files, "--json", o->json);
    return files_check(self, &files);
}

static int check(const command *self, const tune_options *o)
{
    if (!o->input && !o->replay) return fail_usage(self, "tune requires --input FILE, or --replay FILE");
    if (o->resume && !o->record) return fail_usage(self, "--resume requires --timings FILE");
    if (o->record && o->replay) return fail_usage(self, "--timings and --replay cannot be combined");
    if (o->corpus_target && !o->corpus) return fail_usage(self, "--corpus-target requires --corpus FILE");
    return check_files(self, o);
}

// Not as a float has it.
static double as_written(float value)
{
    return (double)(int64_t)((double)value * 1e6 + 0.5) / 1e6;
}

static int run(const command *self, int argc, char **argv)
{
    tune_options o = {.budget = 0.2f};
    words rest;
    dgm_tune_options lib;
    dgm_error error;
    dgm_tune_default(&lib);
    settings_default(&o.set);
    o.budget = (float)lib.budget;
    o.sure = (float)(100 * lib.sure);
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count)
        return fail_usage(self, "tune takes no words: give the text with --input FILE, not '%s'", rest.items[0]);
    code = check(self, &o);
    if (code >= 0) return code;
    if (o.time && dgm_tune_duration("--time", o.time, &lib.seconds, &error) != DGM_OK)
        return fail(EXIT_USAGE, "%s", error.text);
    lib.models = o.models.items;
    lib.model_count = (size_t)o.models.count;
    lib.input = o.input;
    lib.references = o.references.items;
    lib.reference_count = (size_t)o.references.count;
    lib.metric = o.metric;
    lib.budget = as_written(o.budget);
    lib.sure = as_written(o.sure) / 100;
    lib.latency = o.aim && strcmp(o.aim, "latency") == 0;
    lib.memory = o.memory;
    lib.complete = o.complete;
    lib.allow = o.allow;
    lib.corpus = o.corpus;
    lib.corpus_target = o.corpus_target;
    lib.learned = o.learned;
    lib.against = o.against;
    lib.record = o.record;
    lib.resume = o.resume;
    lib.replay = o.replay;
    // --seed is that of the tuning: nothing is drawn while translating.
    if (settings_given(&o.set, "seed")) lib.seed = o.set.settings.seed;
    o.set.settings.seed = 0;
    if (settings_given(&o.set, "threads")) lib.threads = o.set.settings.threads;
    lib.settings = &o.set.settings;
    return work(&o, &lib);
}

const command command_tune = {
    .name = "tune",
    .summary = "find the fastest settings within a budget of quality",
    .usage = "-m MODEL... -i FILE [-r FILE] [options]",
    .description =
        "Tries settings on growing parts of a text and prints those that translate it fastest while they lose no more "
        "than "
        "--budget against the most careful ones, as a command line.\n\n"
        "Most careful are exact products, the whole vocabulary and a beam of four or more. Losses are compared line by "
        "line with "
        "bootstrap samples, speeds in turns; both come with 95 % intervals. Of threads and batches, which change no "
        "translation, only the speed counts.\n\n"
        "Settings that are given are held and not searched; --threads is how many there may be (default: all cores, "
        "with --for "
        "latency 1); --seed is that of the order of lines and samples. Manual: docs/manual/TUNE.md.",
    .example = "dragoman tune -m en-de.gguf -i dev.en -r dev.de --budget 0.2 -o tuned.gguf --html tuned.html\n"
               "dragoman tune -m teacher.gguf -m student.gguf -i dev.en --for latency --timings dev.jsonl\n"
               "dragoman tune --replay dev.jsonl --explain",
    .options = options,
    .settings = SETTINGS_ALL,
    .settings_at = AT(set),
    .run = run,
};
