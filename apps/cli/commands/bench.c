// SPDX-License-Identifier: MIT
// `dragoman bench`: translates a file several times and prints speed, latency and memory.
//
// Throughput: all lines in one call, repeated; the median over the repetitions is reported with
// the fastest and slowest. Latency: one line per call, one thread's view; percentiles over all
// lines of all repetitions. The first, uncounted pass warms caches up. Quality: of the translations of
// the last pass, by the same functions as `dragoman eval`.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct bench_options {
    engine_options engine;
    const char *input, *output, *reference;
    int repeat, latency, cold, json, csv, lines;
} bench_options;

#define AT(field) offsetof(bench_options, field)

static const option options[] = {
    MODEL_OPTIONS(bench_options, engine),
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "text to translate, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write the translations of the last pass", NULL, NULL},
    {"reference", 0, OPTION_TEXT, "FILE", AT(reference), 0, 0, NULL,
     "also print BLEU and chrF of what was translated, against FILE", "ref", NULL},
    {"lines", 0, OPTION_COUNT, "N", AT(lines), 1, 100000000, NULL, "use the first N lines only",
     NULL, NULL},
    {"repeat", 'r', OPTION_COUNT, "N", AT(repeat), 1, 1000, NULL, "counted repetitions (default 3)",
     NULL, NULL},
    {"cold", 0, OPTION_FLAG, NULL, AT(cold), 0, 0, NULL, "count the first pass too", NULL, NULL},
    {"latency", 0, OPTION_FLAG, NULL, AT(latency), 0, 0, NULL,
     "translate one line at a time and print percentiles of the time it takes", NULL, NULL},
    {"json", 0, OPTION_FLAG, NULL, AT(json), 0, 0, NULL, "print a JSON object", NULL, NULL},
    {"csv", 0, OPTION_FLAG, NULL, AT(csv), 0, 0, NULL, "print a CSV table", NULL, NULL},
    {0},
};

typedef struct quality {
    bool known;
    double bleu, chrf;
} quality;

typedef struct measure {
    double load;
    double *times; // of repetitions, or of single lines with --latency
    size_t count;
    uint64_t lines, source_tokens, target_tokens; // of one pass
    double total;                                 // of all counted passes
    int passes;
    size_t failed;      // lines of the last pass
    dgm_results **kept; // of the calls of the last pass, NULL: nobody wants them
    size_t kept_count;
    quality quality;
} measure;

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

static double percentile(const measure *m, double p)
{
    if (m->count == 0) return 0;
    size_t i = (size_t)ceil(p / 100 * (double)m->count);
    return m->times[i ? i - 1 : 0];
}

// ---- passes -------------------------------------------------------------------------------------

static bool one_call(dgm_translator *t, const dgm_input *lines, size_t count, measure *m)
{
    dgm_results *r = NULL;
    dgm_error error;
    if (dgm_translate_inputs(t, lines, count, &r, &error) != DGM_OK) {
        fail(EXIT_RUNTIME, "%s", error.text);
        return false;
    }
    m->source_tokens += r->source_tokens;
    m->target_tokens += r->target_tokens;
    m->failed += r->failed;
    if (m->kept)
        m->kept[m->kept_count++] = r;
    else
        dgm_results_free(&r);
    return true;
}

static bool one_pass(const bench_options *o, dgm_translator *t, const dgm_input *lines,
                     size_t count, measure *m, bool counted)
{
    double start = seconds();
    m->source_tokens = m->target_tokens = m->failed = 0;
    if (!o->latency) {
        if (!one_call(t, lines, count, m)) return false;
        if (counted) m->times[m->count++] = seconds() - start;
    }
    for (size_t i = 0; o->latency && i < count; i++) {
        double begin = seconds();
        if (!one_call(t, &lines[i], 1, m)) return false;
        if (counted) m->times[m->count++] = seconds() - begin;
    }
    if (counted) m->total += seconds() - start;
    return true;
}

// The translations of the last pass as lines; the caller's to free, the texts are the results'.
static dgm_line *translations(const measure *m)
{
    dgm_line *lines = need(calloc((size_t)m->lines + 1, sizeof *lines));
    size_t n = 0;
    for (size_t k = 0; k < m->kept_count; k++)
        for (size_t i = 0; i < m->kept[k]->count; i++) {
            const char *text = dgm_result_text(m->kept[k]->items[i]);
            lines[n++] = (dgm_line){text, strlen(text)};
        }
    return lines;
}

static bool write_lines(const char *path, const dgm_line *lines, uint64_t count)
{
    line_writer *w = writer_open(path);
    for (uint64_t i = 0; w && i < count; i++) {
        writer_put(w, lines[i].data, lines[i].size);
        writer_put(w, "\n", 1);
    }
    return w && writer_close(w);
}

static int evaluate(const dgm_line *lines, const dgm_line *reference, measure *m)
{
    const struct {
        const char *metric;
        double *score;
    } wanted[] = {{"bleu", &m->quality.bleu}, {"chrf", &m->quality.chrf}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) {
        dgm_eval_options e;
        dgm_eval_score score = {.size = sizeof score};
        dgm_error error;
        dgm_eval_default(&e);
        e.metric = wanted[i].metric;
        const dgm_status st =
            dgm_evaluate(&e, &lines, 1, &reference, 1, (size_t)m->lines, &score, NULL, &error);
        if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
        *wanted[i].score = score.score;
    }
    m->quality.known = true;
    return -1;
}

// ---- what is printed ----------------------------------------------------------------------------

typedef struct figures {
    double pass, rss, tokens, lines; // a pass in s, MiB, tokens and lines a second
    double p50, p95, p99;            // ms of a line, s of a pass
    const char *unit, *mode;
} figures;

static figures figures_of(const bench_options *o, const measure *m)
{
    const double pass = o->latency ? m->total / m->passes : percentile(m, 50);
    const double unit = o->latency ? 1000 : 1;
    return (figures){.pass = pass,
                     .rss = (double)peak_rss() / 1048576,
                     .tokens = (double)m->target_tokens / pass,
                     .lines = (double)m->lines / pass,
                     .p50 = percentile(m, 50) * unit,
                     .p95 = percentile(m, 95) * unit,
                     .p99 = percentile(m, 99) * unit,
                     .unit = o->latency ? "ms" : "s",
                     .mode = o->latency ? "latency" : "throughput"};
}

// The kernels' names hold commas and spaces but no quotes.
static void print_json(const dgm_translator_info *i, const measure *m, const figures *f)
{
    printf("{\"version\":\"%s\",\"device\":\"%s\",\"precision\":\"%s\",\"mode\":\"%s\","
           "\"beam\":%d,\"batch\":%d,\"threads\":%d,\"lines\":%llu,\"source_tokens\":%llu,"
           "\"target_tokens\":%llu,\"load_s\":%.4f,\"pass_s\":%.4f,\"tokens_per_s\":%.1f,"
           "\"lines_per_s\":%.2f,\"p50_%s\":%.3f,\"p95_%s\":%.3f,\"p99_%s\":%.3f,"
           "\"peak_rss_mib\":%.1f",
           dgm_version(), i->device, i->precision, f->mode, (int)i->beam, (int)i->batch,
           (int)i->threads, (unsigned long long)m->lines, (unsigned long long)m->source_tokens,
           (unsigned long long)m->target_tokens, m->load, f->pass, f->tokens, f->lines, f->unit,
           f->p50, f->unit, f->p95, f->unit, f->p99, f->rss);
    if (m->quality.known)
        printf(",\"bleu\":%.4f,\"chrf\":%.4f", m->quality.bleu, m->quality.chrf);
    printf("}\n");
}

static void print_csv(const dgm_translator_info *i, const measure *m, const figures *f)
{
    printf("version,device,precision,mode,beam,batch,threads,lines,source_tokens,"
           "target_tokens,load_s,pass_s,tokens_per_s,lines_per_s,p50_%s,p95_%s,p99_%s,"
           "peak_rss_mib%s\n",
           f->unit, f->unit, f->unit, m->quality.known ? ",bleu,chrf" : "");
    printf("%s,\"%s\",%s,%s,%d,%d,%d,%llu,%llu,%llu,%.4f,%.4f,%.1f,%.2f,%.3f,%.3f,%.3f,%.1f",
           dgm_version(), i->device, i->precision, f->mode, (int)i->beam, (int)i->batch,
           (int)i->threads, (unsigned long long)m->lines, (unsigned long long)m->source_tokens,
           (unsigned long long)m->target_tokens, m->load, f->pass, f->tokens, f->lines, f->p50,
           f->p95, f->p99, f->rss);
    if (m->quality.known) printf(",%.2f,%.2f", m->quality.bleu, m->quality.chrf);
    printf("\n");
}

static void print_text(dgm_translator *t, const measure *m, const figures *f)
{
    const dgm_translator_info *i = dgm_describe(t);
    dgm_counters c;
    dgm_count(t, &c);
    const bool latency = strcmp(f->mode, "latency") == 0;
    const double unit = latency ? 1000 : 1;
    printf("dragoman    %s, %s, %s\n", dgm_version(), i->precision, i->device);
    printf("search      %s, beam %d, finish %s, batch %d (%lld tokens), threads %d\n", i->search,
           (int)i->beam, i->finish, (int)i->batch, (long long)i->batch_tokens, (int)i->threads);
    printf("text        %llu lines, %llu source tokens, %llu target tokens, %d passes\n",
           (unsigned long long)m->lines, (unsigned long long)m->source_tokens,
           (unsigned long long)m->target_tokens, m->passes);
    printf("load        %.3f s\n", m->load);
    printf("speed       %.1f tokens/s, %.2f sentences/s\n", f->tokens, f->lines);
    printf("%s %.3f / %.3f / %.3f %s (p50 / p95 / p99), fastest %.3f, slowest %.3f\n",
           latency ? "latency    " : "pass       ", f->p50, f->p95, f->p99, f->unit,
           m->times[0] * unit, m->times[m->count - 1] * unit);
    if (m->quality.known)
        printf("quality     BLEU %.2f, chrF %.2f\n", m->quality.bleu, m->quality.chrf);
    printf("steps       %llu, %.2f rows each\n", (unsigned long long)c.steps,
           c.steps ? (double)c.rows / (double)c.steps : 0.0);
    printf("memory      %.1f MiB weights, %.1f MiB workspace, %.1f MiB peak RSS\n",
           (double)i->packed_bytes / 1048576, (double)c.arena_peak / 1048576, f->rss);
}

static void print_all(const bench_options *o, dgm_translator *t, const measure *m)
{
    const figures f = figures_of(o, m);
    if (o->json)
        print_json(dgm_describe(t), m, &f);
    else if (o->csv)
        print_csv(dgm_describe(t), m, &f);
    else
        print_text(t, m, &f);
}

// ---- the command --------------------------------------------------------------------------------

// What was timed: written, compared with the reference.
static int use_results(const bench_options *o, const text_file *reference, measure *m)
{
    if (!m->kept) return -1;
    dgm_line *lines = translations(m);
    int code = -1;
    if (o->output && !write_lines(o->output, lines, m->lines)) code = EXIT_RUNTIME;
    if (code < 0 && o->reference) code = evaluate(lines, reference->lines, m);
    free(lines);
    return code;
}

static int measure_all(const bench_options *o, const dgm_input *lines, const text_file *reference,
                       dgm_translator *t, measure *m)
{
    const size_t count = (size_t)m->lines;
    m->passes = o->repeat;
    m->times = need(calloc((size_t)o->repeat * (o->latency ? count : 1), sizeof *m->times));
    bool fine = o->cold || one_pass(o, t, lines, count, m, false);
    for (int i = 0; fine && i < o->repeat; i++) {
        if (i == o->repeat - 1 && (o->output || o->reference))
            m->kept = need(calloc(o->latency ? count : 1, sizeof(dgm_results *)));
        fine = one_pass(o, t, lines, count, m, true);
    }
    int code = fine ? use_results(o, reference, m) : EXIT_RUNTIME;
    for (size_t i = 0; i < m->kept_count; i++) dgm_results_free(&m->kept[i]);
    free(m->kept);
    m->kept = NULL;
    if (code >= 0) return code;
    qsort(m->times, m->count, sizeof *m->times, by_value);
    print_all(o, t, m);
    if (!m->failed) return EXIT_FINE;
    return fail(EXIT_LINES, "%zu of %zu lines could not be translated", m->failed, count);
}

// How many lines are translated: all, or the first ones; the reference has to have them, too.
static int count_lines(const bench_options *o, const text_file *text, const text_file *reference,
                       uint64_t *count)
{
    const char *input = o->input ? o->input : "standard input";
    *count = o->lines && (size_t)o->lines < text->count ? (size_t)o->lines : text->count;
    if (*count == 0)
        return fail(EXIT_RUNTIME, "there is nothing to translate: the input is empty");
    if (o->reference && reference->count != text->count && reference->count != *count)
        return fail(EXIT_RUNTIME, "'%s' has %zu lines, --reference '%s' has %zu", input, text->count,
                    o->reference, reference->count);
    return -1;
}

static int run_files(const bench_options *o, const text_file *text, const text_file *reference)
{
    dgm_translator *t = NULL;
    measure m = {0};
    int code = count_lines(o, text, reference, &m.lines);
    if (code >= 0) return code;
    double start = seconds();
    code = engine_open(&o->engine, &t);
    m.load = seconds() - start;
    dgm_input *inputs = need(calloc(text->count, sizeof *inputs));
    for (size_t i = 0; i < text->count; i++)
        inputs[i] = (dgm_input){.size = sizeof(dgm_input),
                                .text = text->lines[i].data,
                                .text_size = text->lines[i].size};
    if (code < 0) code = measure_all(o, inputs, reference, t, &m);
    dgm_close(&t);
    free(inputs);
    free(m.times);
    return code;
}

// A file without --input, as translate takes it; passes are over one text.
static int one_input(const command *self, const words *rest, bench_options *o)
{
    if (rest->count > 1 || (rest->count && o->input))
        return fail_usage(self, "bench takes one file, not '%s' and '%s'", o->input ? o->input : rest->items[0],
                          rest->items[o->input ? 0 : 1]);
    if (rest->count) o->input = rest->items[0];
    return -1;
}

static int run(const command *self, int argc, char **argv)
{
    bench_options o = {.repeat = 3};
    words rest;
    engine_options_default(&o.engine);
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    code = one_input(self, &rest, &o);
    if (code >= 0) return code;
    if (o.json && o.csv) return fail_usage(self, "--json and --csv cannot be combined");
    file_list files = {0};
    files_read(&files, "--input", o.input);
    files_read(&files, "--reference", o.reference);
    files_write(&files, "--output", o.output);
    if (o.output) code = engine_files(&o.engine, &files);
    if (code < 0) code = files_check(self, &files);
    if (code >= 0) return code;
    text_file text = {0}, reference = {0};
    if (!text_file_read(&text, o.input)) return EXIT_RUNTIME;
    code = o.reference && !text_file_read(&reference, o.reference) ? EXIT_RUNTIME
                                                                   : run_files(&o, &text, &reference);
    text_file_free(&text);
    text_file_free(&reference);
    return code;
}

const command command_bench = {
    .name = "bench",
    .summary = "measure speed, latency, memory and quality",
    .usage = "[FILE] [-m MODEL]... [options]",
    .description =
        "Translates a file several times after one pass to warm up and prints output tokens and "
        "sentences per second, percentiles of the time, memory and the chosen kernels; with "
        "--reference BLEU and chrF, too, as 'dragoman eval' gives them. Times are of this machine at "
        "this moment: compare them only with others of the same run.",
    .example = "dragoman bench news.en --reference news.de -b 4\n"
               "dragoman bench news.en -b 4 --batch 32\n"
               "dragoman bench -i news.en --latency --batch 1 --csv",
    .options = options,
    .settings = SETTINGS_PLAIN,
    .settings_at = AT(engine.set),
    .run = run,
};
