// SPDX-License-Identifier: MIT
// `dragoman quantize`: a model file with its weights in another type, and what that costs.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

typedef struct quantize_options {
    const char *output, *type, *precision, *calibrate, *packed;
    option_list keep;
    int report, json, threads, quiet;
    float saturate;
    dgm_quantize_options lib; // the model card's fields
} quantize_options;

#define AT(field) offsetof(quantize_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "model file to write; without it only the report is made", NULL, NULL},
    {"type", 0, OPTION_CHOICE, "TYPE", AT(type), 0, 0, "f32|f16|bf16|i16|i8",
     "storage of the weight matrices: i8 has a scale per output row, i16 is fixed point per "
     "matrix; vectors stay f32",
     NULL, NULL},
    {"keep", 0, OPTION_LIST, "PATTERN", AT(keep), 0, 0, NULL,
     "leave the matrices with such names as they are, e.g. 'dec.*' or src.embed", NULL, NULL},
    {"precision", 0, OPTION_CHOICE, "NAME", AT(precision), 0, 0, "f32|i16|i8|none",
     "precision of products that the model recommends; none: leave it open (default: what fits "
     "the type)",
     NULL, NULL},
    {"report", 0, OPTION_FLAG, NULL, AT(report), 0, 0, NULL,
     "print the error of every matrix, and with --calibrate the inputs of every product", NULL,
     NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), 0, 0, NULL, "print the report as a JSON object", NULL,
     NULL},
    {"calibrate", 0, OPTION_TEXT, "TEXT", AT(calibrate), 0, 0, NULL,
     "translate this text (also gzip) in f32 and store static scales of the activations", NULL,
     NULL},
    {"saturate", 0, OPTION_REAL, "X", AT(saturate), 0, 0.5, NULL,
     "share of the input rows that a static scale may clip (default 0.001)", NULL, NULL},
    {"packed", 0, OPTION_TEXT, "LEVEL", AT(packed), 0, 0, NULL,
     "store layers of type i8 as CPUs of this level (avx2, avx512, vnni, amx, neon, ...) read them, too: programs "
     "start faster and share the memory",
     NULL, NULL},
    {"threads", 0, OPTION_COUNT, "{N,all}", AT(threads), 0, 1024, "all",
     "threads of the calibration; all, or 0: one per core (default 1). The result does not depend on it",
     NULL, NULL},
    CARD_OPTIONS("new name of the model (this and what follows: default as in the input)"),
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no notes", NULL,
     NULL},
    {0},
};

// ---- report -------------------------------------------------------------------------------------

static void put_name(line_writer *w, const char *key, const char *text)
{
    writer_format(w, "\"%s\":", key);
    writer_json(w, text, strlen(text));
}

static void put_number(line_writer *w, const char *key, double v)
{
    writer_format(w, ",\"%s\":", key);
    writer_real(w, v);
}

static void print_json(line_writer *w, const dgm_quantize_report *r)
{
    writer_text(w, "{\"tensors\":[");
    for (size_t i = 0; i < r->tensor_count; i++) {
        const dgm_quantize_tensor *t = r->tensors[i];
        writer_text(w, i ? ",{" : "{");
        put_name(w, "name", t->name);
        writer_format(w, ",\"from\":\"%s\",\"to\":\"%s\",\"rows\":%d,\"cols\":%d", t->from, t->to,
                      (int)t->rows, (int)t->cols);
        put_number(w, "largest", t->largest);
        put_number(w, "max_error", t->max_error);
        put_number(w, "relative_error", t->relative_error);
        writer_format(w, ",\"saturated\":%llu,\"vanished\":%llu,\"through_f32\":%s}",
                      (unsigned long long)t->saturated, (unsigned long long)t->vanished,
                      t->through_f32 ? "true" : "false");
    }
    writer_text(w, "],\"inputs\":[");
    for (size_t i = 0; i < r->input_count; i++) {
        const dgm_quantize_input *t = r->inputs[i];
        writer_text(w, i ? ",{" : "{");
        put_name(w, "name", t->name);
        writer_format(w, ",\"rows\":%llu", (unsigned long long)t->rows);
        put_number(w, "scale", t->scale);
        put_number(w, "mean", t->mean);
        put_number(w, "deviation", t->deviation);
        put_number(w, "median", t->median);
        put_number(w, "q90", t->q90);
        put_number(w, "q99", t->q99);
        put_number(w, "q999", t->q999);
        put_number(w, "max", t->max);
        put_number(w, "clipped", t->clipped);
        writer_text(w, "}");
    }
    writer_format(w, "],\"converted\":%zu,\"kept\":%zu,\"through_f32\":%zu", r->converted, r->kept,
                  r->through_f32);
    writer_format(w, ",\"bytes_before\":%llu,\"bytes_after\":%llu",
                  (unsigned long long)r->bytes_before, (unsigned long long)r->bytes_after);
    put_number(w, "relative_error", r->relative_error);
    writer_format(w, ",\"lines\":%llu,\"source_tokens\":%llu,\"target_tokens\":%llu}\n",
                  (unsigned long long)r->lines, (unsigned long long)r->source_tokens,
                  (unsigned long long)r->target_tokens);
}

static void print_tensors(line_writer *w, const dgm_quantize_report *r)
{
    writer_format(w, "%-28s %-12s %13s %10s %10s %10s %6s %8s\n", "matrix", "type", "shape",
                  "max |w|", "max error", "rms error", "clipped", "to zero");
    for (size_t i = 0; i < r->tensor_count; i++) {
        const dgm_quantize_tensor *t = r->tensors[i];
        char type[32], shape[32];
        if (strcmp(t->from, t->to) == 0)
            snprintf(type, sizeof type, "%s, kept", t->from);
        else
            snprintf(type, sizeof type, "%s -> %s", t->from, t->to);
        snprintf(shape, sizeof shape, "%dx%d", (int)t->rows, (int)t->cols);
        writer_format(w, "%-28s %-12s %13s %10.4g %10.3g %9.4f%% %7llu %8llu\n", t->name, type,
                      shape, t->largest, t->max_error, 100 * t->relative_error,
                      (unsigned long long)t->saturated, (unsigned long long)t->vanished);
    }
}

static void print_inputs(line_writer *w, const dgm_quantize_report *r)
{
    if (!r->input_count) return;
    writer_format(w,
                  "\ncalibration: %llu lines, %llu source tokens, %llu target tokens\n"
                  "%-28s %9s %10s %9s %9s %9s %9s %9s %9s %8s\n",
                  (unsigned long long)r->lines, (unsigned long long)r->source_tokens,
                  (unsigned long long)r->target_tokens, "max |x| of the input of", "rows", "scale",
                  "mean", "deviation", "median", "99 %", "99.9 %", "max", "clipped");
    for (size_t i = 0; i < r->input_count; i++) {
        const dgm_quantize_input *t = r->inputs[i];
        writer_format(w, "%-28s %9llu %10.4g %9.4g %9.3g %9.4g %9.4g %9.4g %9.4g %7.3f%%\n",
                      t->name, (unsigned long long)t->rows, t->scale, t->mean, t->deviation,
                      t->median, t->q99, t->q999, t->max, 100 * t->clipped);
    }
}

static int print_report(const quantize_options *o, const dgm_quantize_report *r)
{
    line_writer *w = writer_open(NULL);
    if (!w) return EXIT_RUNTIME;
    if (o->json) {
        print_json(w, r);
    } else {
        if (o->report || !o->output) {
            print_tensors(w, r);
            print_inputs(w, r);
            writer_text(w, "\n");
        }
        writer_format(w,
                      "%zu matrices converted, %zu kept; weights %.2f -> %.2f MiB; rms error "
                      "%.4f %% of the weights\n",
                      r->converted, r->kept, (double)r->bytes_before / 1048576,
                      (double)r->bytes_after / 1048576, 100 * r->relative_error);
    }
    return writer_close(w) ? EXIT_FINE : EXIT_RUNTIME;
}

// ---- command ------------------------------------------------------------------------------------

static int work(const quantize_options *o, const char *model)
{
    dgm_quantize_options q = o->lib;
    progress bar;
    q.type = o->type;
    q.precision = o->precision;
    q.keep = o->keep.items;
    q.keep_count = (size_t)o->keep.count;
    q.calibrate = o->calibrate;
    q.packed = o->packed;
    q.saturate = (double)o->saturate;
    q.threads = o->threads;
    q.progress = (dgm_progress){progress_tick, &bar};
    dgm_quantize_report *report = NULL;
    dgm_error error;
    progress_start(&bar, !o->quiet && o->calibrate);
    dgm_status st = dgm_quantize(model, o->output, &q, &report, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (report->through_f32 && !o->quiet)
        warn("%zu matrices were integers of another kind: they went through f32 and were rounded "
             "a second time",
             report->through_f32);
    int code = o->quiet && !o->report && !o->json ? EXIT_FINE : print_report(o, report);
    dgm_quantize_report_free(&report);
    return code;
}

static int run(const command *self, int argc, char **argv)
{
    quantize_options o = {.threads = 1};
    dgm_quantize_default(&o.lib);
    o.saturate = (float)o.lib.saturate;
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count != 1) return fail_usage(self, "quantize takes one model file");
    if (!o.type) return fail_usage(self, "quantize requires --type f32, f16, bf16, i16 or i8");
    if (o.packed && !o.output) return fail_usage(self, "--packed requires --output FILE");
    if (!o.calibrate && o.saturate != (float)o.lib.saturate)
        return fail_usage(self, "--saturate requires --calibrate FILE");
    file_list files = {0};
    files_read(&files, "--calibrate", o.calibrate);
    files_read(&files, "--card", o.lib.card_file);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    return code >= 0 ? code : work(&o, rest.items[0]);
}

const command command_quantize = {
    .name = "quantize",
    .summary = "store the weights of a model in another type",
    .usage = "MODEL -o FILE --type TYPE [options]",
    .description =
        "Writes a model file with its weight matrices as f32, f16, bf16, i16 or i8. Vocabulary, "
        "shortlist, settings and vectors are copied. The report says per matrix how far the new "
        "values are from the old ones: the largest error, and the root of the mean squared error "
        "as a share of the root mean square of the weights.\n\n"
        "With --calibrate a text is translated in f32 and the largest |x| of every row that "
        "enters a product is recorded; the model then holds a static scale for the input of every "
        "weight, which a program may use instead of each row's own.",
    .example = "dragoman quantize en-de.gguf -o en-de.i8.gguf --type i8 --report\n"
               "dragoman quantize en-de.gguf -o en-de.i8.gguf --type i8 --calibrate news.en\n"
               "dragoman quantize en-de.i8.gguf --type i16 --json | jq .relative_error",
    .options = options,
    .run = run,
};
