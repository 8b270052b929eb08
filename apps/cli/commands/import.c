// SPDX-License-Identifier: MIT
// `dragoman import` and `dragoman export`: model files of other programs' models, and the way back.
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/interrupt.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

typedef struct import_options {
    const char *output, *check, *against;
    int quiet, stats, beam;
    dgm_import_options lib;
} import_options;

#define AT(field) offsetof(import_options, field)

static const option import_table[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL, "model file to write", NULL, NULL},
    {"type", 0, OPTION_CHOICE, "TYPE", AT(lib.type), 0, 0, "f32|f16|bf16|i16|i8",
     "storage of the weights (default: as in the input)", NULL, NULL},
    {"source", 's', OPTION_TEXT, "LANG", AT(lib.source_language), 0, 0, NULL,
     "language the model reads, e.g. en (default: what the model says)", NULL, NULL},
    {"target", 't', OPTION_TEXT, "LANG", AT(lib.target_language), 0, 0, NULL,
     "language the model writes (default: what the model says); of many: the default one", NULL,
     NULL},
    {"source-prefix", 0, OPTION_TEXT, "TOKEN", AT(lib.source_prefix), 0, 0, NULL,
     "token put before every sentence, e.g. >>deu<<: the model then has that one direction", NULL,
     NULL},
    {"source-spm", 0, OPTION_TEXT, "FILE", AT(lib.source_spm), 0, 0, NULL,
     "SentencePiece model of a model that comes without one (default: what lies beside it)", NULL,
     NULL},
    {"target-spm", 0, OPTION_TEXT, "FILE", AT(lib.target_spm), 0, 0, NULL,
     "the same of the target (default: the source's)", NULL, NULL},
    {"bpe", 0, OPTION_TEXT, "FILE", AT(lib.bpe), 0, 0, NULL,
     "codes of subword-nmt, in place of SentencePiece", NULL, NULL},
    {"config", 0, OPTION_TEXT, "FILE", AT(lib.config), 0, 0, NULL,
     "settings of a model of Marian or Nematus (default: those beside it)", NULL, NULL},
    {"vocabs", 0, OPTION_TEXT, "FILE,FILE", AT(lib.vocabs), 0, 0, NULL,
     "vocabularies of a model of Marian or Nematus, one for both sides or two (default: what its settings name)", NULL,
     NULL},
    CARD_OPTIONS("name of the model (default: the folder's)"),
    {"check", 0, OPTION_TEXT, "TEXT", AT(check), 0, 0, NULL,
     "then translate this text in f32, each line as it is, and print the translations or, with --against, compare; "
     "without -o: with the model in PATH, which may be a model file",
     NULL, NULL},
    {"against", 0, OPTION_TEXT, "FILE", AT(against), 0, 0, NULL,
     "--check: what the model's own program made of the text, line by line; exit status 3 where lines differ", NULL,
     NULL},
    {"beam", 'b', OPTION_COUNT, "N", AT(beam), 1, 512, NULL, "--check: beam (default: the model's)", NULL, NULL},
    {"stats", 0, OPTION_FLAG, NULL, AT(stats), 0, 0, NULL,
     "print size, time, time per GB and peak memory on standard error (a terminal shows them anyhow)", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no notes", NULL,
     NULL},
    {0},
};

static void note(void *cookie, const char *text)
{
    (void)cookie;
    inform("%s", text);
}

static void print_stats(const char *output, double took)
{
    struct stat st;
    struct rusage used;
    const double gb = stat(output, &st) == 0 ? 1e-9 * (double)st.st_size : 0;
    getrusage(RUSAGE_SELF, &used);
    inform("%.1f MB in %.2f s, %.2f s per GB, peak memory %.0f MiB with mapped files", 1e3 * gb,
           took, gb > 0 ? took / gb : 0.0, (double)used.ru_maxrss / 1024);
}

static void print_line(void *cookie, const char *text)
{
    writer_text(cookie, text);
    writer_text(cookie, "\n");
}

static void print_report(line_writer *w, const dgm_check_report *r)
{
    writer_format(w, "%llu of %llu lines are alike (%.1f %%)\n", (unsigned long long)r->same,
                  (unsigned long long)r->lines, r->lines ? 100.0 * (double)r->same / (double)r->lines : 100.0);
    for (size_t i = 0; i < r->count; i++) {
        writer_format(w, "line %llu\n  source ", (unsigned long long)r->items[i]->line);
        print_line(w, r->items[i]->source);
        writer_text(w, "  ours   ");
        print_line(w, r->items[i]->ours);
        writer_text(w, "  theirs ");
        print_line(w, r->items[i]->theirs);
    }
}

static int check(const import_options *o, const char *model)
{
    progress bar;
    dgm_error error;
    dgm_check_report *report = NULL;
    dgm_check_options c;
    line_writer *w = writer_open(NULL);
    dgm_check_default(&c);
    c.beam = o->beam;
    c.source_language = o->lib.source_language;
    c.target_language = o->lib.target_language;
    if (!o->against) c.write = print_line;
    c.write_cookie = w;
    progress_start(&bar, !o->quiet);
    c.progress = (dgm_progress){progress_tick, &bar};
    const dgm_status st = dgm_import_check(model, o->check, o->against, &c, &report, &error);
    progress_end(&bar);
    if (interrupted) end_by_signal(interrupted);
    int code = st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
    if (st == DGM_OK && o->against) print_report(w, report);
    if (st == DGM_OK && (report->failed || (o->against && report->same < report->lines))) code = EXIT_LINES;
    dgm_check_report_free(&report);
    return writer_close(w) ? code : EXIT_RUNTIME;
}

static int import(const char *format, const char *path, import_options *o)
{
    progress bar;
    dgm_error error;
    progress_start(&bar, !o->quiet);
    o->lib.progress = (dgm_progress){progress_tick, &bar};
    if (!o->quiet) o->lib.note = note;
    interrupt_catch(); // so that no part of a file stays behind
    const double start = seconds();
    const dgm_status st = dgm_import(format, path, o->output, &o->lib, &error);
    progress_end(&bar);
    if (interrupted) end_by_signal(interrupted);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (o->stats || bar.kind == PROGRESS_BAR) print_stats(o->output, seconds() - start);
    return o->check ? check(o, o->output) : EXIT_FINE;
}

// Without a file to write: of a model that is there already, ours or one that translate -m would take.
static int check_alone(const import_options *o, const char *name)
{
    char *path = NULL;
    int code = model_path(name, &path);
    if (code < 0) code = check(o, path);
    dgm_string_free(&path);
    return code;
}

// Found missing before the import, which may take minutes, not after it.
static const char *missing_text(const import_options *o)
{
    if (o->check && access(o->check, R_OK) != 0) return o->check;
    return o->against && access(o->against, R_OK) != 0 ? o->against : NULL;
}

static int run_import(const command *self, int argc, char **argv)
{
    import_options o = {0};
    dgm_import_default(&o.lib);
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count < 1 || rest.count > 2)
        return fail_usage(self, "import takes a path, or a format and a path");
    const char *path = rest.items[rest.count - 1];
    const bool alone = !o.output && o.check && rest.count == 1;
    if (!o.output && !alone) return fail_usage(self, "import requires --output FILE");
    if (o.against && !o.check) return fail_usage(self, "--against requires --check TEXT");
    if (o.beam && !o.check) return fail_usage(self, "--beam requires --check TEXT");
    const char *missing = missing_text(&o);
    if (missing) return fail(EXIT_RUNTIME, "cannot open '%s': %s", missing, strerror(errno));
    if (alone) return check_alone(&o, path);
    file_list files = {0};
    files_read(&files, "--card", o.lib.card_file);
    files_read(&files, "--source-spm", o.lib.source_spm);
    files_read(&files, "--target-spm", o.lib.target_spm);
    files_read(&files, "--bpe", o.lib.bpe);
    files_read(&files, "--config", o.lib.config);
    files_read(&files, "--check", o.check);
    files_read(&files, "--against", o.against);
    files_write(&files, "--output", o.output); // before a folder that may fill the list
    files_read(&files, "the model", path);
    files_read_folder(&files, "a file of the folder", path, ".gguf");
    code = files_check(self, &files);
    return code >= 0 ? code : import(rest.count == 2 ? rest.items[0] : "auto", path, &o);
}

const command command_import = {
    .name = "import",
    .summary = "make a model file of another program's model",
    .usage = "[FORMAT] PATH -o FILE [options]",
    .description =
        "Reads a model of another program, a folder or a file, and writes it as a Dragoman model file. Without a "
        "format, or with auto, it is recognised by its files. 'dragoman translate -m PATH' imports by itself, into "
        "XDG_CACHE_HOME/dragoman or ~/.cache/dragoman.\n\n"
        "Formats: huggingface, ctranslate2, argos, marian, opus-mt, bergamot, nematus, fairseq, opennmt-py. "
        "docs/manual/IMPORT.md says what is read of each.",
    .example = "dragoman import opus-mt-en-de -o en-de.gguf --type i8\n"
               "dragoman import ctranslate2 folder -o en-de.gguf --source-spm source.spm --target-spm target.spm\n"
               "dragoman import folder -o en-de.gguf --check news.en --against news.de\n"
               "dragoman import --check news.en en-de.gguf --against news.de",
    .options = import_table,
    .run = run_import,
};

// ---- export -----------------------------------------------------------------------------------

typedef struct export_options {
    const char *output;
    int quiet;
} export_options;

static const option export_table[] = {
    {"output", 'o', OPTION_TEXT, "FOLDER", offsetof(export_options, output), 0, 0, NULL,
     "folder to write; it must not be there, or be empty", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, offsetof(export_options, quiet), 0, 0, NULL, "no progress bar and no notes", NULL,
     NULL},
    {0},
};

static int run_export(const command *self, int argc, char **argv)
{
    export_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count != 2) return fail_usage(self, "export takes a format and a model");
    if (!o.output) return fail_usage(self, "export requires --output FOLDER");
    char *path = NULL;
    code = model_path(rest.items[1], &path);
    if (code >= 0) return code;
    progress bar;
    dgm_error error;
    dgm_export_options lib;
    dgm_export_default(&lib);
    progress_start(&bar, !o.quiet);
    lib.progress = (dgm_progress){progress_tick, &bar};
    if (!o.quiet) lib.note = note;
    interrupt_catch();
    const dgm_status st = dgm_export(rest.items[0], path, o.output, &lib, &error);
    progress_end(&bar);
    dgm_string_free(&path);
    if (interrupted) end_by_signal(interrupted);
    return st == DGM_OK ? EXIT_FINE : fail(exit_code(st), "%s", error.text);
}

const command command_export = {
    .name = "export",
    .summary = "write a model as a folder of another program",
    .usage = "FORMAT MODEL -o FOLDER",
    .description =
        "Writes a Transformer as a folder of Hugging Face transformers (huggingface: MarianMT, M2M100, NLLB, mBART) or "
        "of CTranslate2 (ctranslate2), with its vocabulary and SentencePiece models. Weights keep their bits where the "
        "other program has their type: imported again they are the same. What it cannot hold is refused with a "
        "sentence that says what that is.",
    .example = "dragoman export ctranslate2 en-de.gguf -o en-de-ct2\n"
               "dragoman export huggingface en-de.gguf -o en-de-hf",
    .options = export_table,
    .run = run_export,
};
