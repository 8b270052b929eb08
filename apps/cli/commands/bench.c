// SPDX-License-Identifier: MIT
// `dragoman bench`: translates a file several times and prints speed, latency and memory.
//
// Throughput: all lines in one call, repeated; the median over the repetitions is reported with
// the fastest and slowest. Latency: one line per call, one thread's view; percentiles over all
// lines of all repetitions. The first, uncounted pass warms caches up.
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands/commands.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct bench_options {
    engine_options engine;
    const char *input, *output;
    int repeat, latency, cold, json, csv, lines;
} bench_options;

#define AT(field) offsetof(bench_options, field)

static const option options[] = {
    MODEL_OPTIONS(bench_options, engine),
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "text to translate, also gzip (default: standard input)", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write the translations of the last pass", NULL, NULL},
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

typedef struct measure {
    double load;
    double *times; // of repetitions, or of single lines with --latency
    size_t count;
    uint64_t lines, source_tokens, target_tokens; // of one pass
    double total;                                 // of all counted passes
    int passes;
    size_t failed;       // lines of the last pass
    line_writer *output; // translations go here, or NULL
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
    for (size_t i = 0; m->output && i < r->count; i++) {
        writer_text(m->output, dgm_result_text(r->items[i]));
        writer_put(m->output, "\n", 1);
    }
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

// The kernels' names hold commas and spaces but no quotes.
static void print_all(const bench_options *o, dgm_translator *t, const measure *m)
{
    const dgm_translator_info *i = dgm_describe(t);
    dgm_counters c;
    dgm_count(t, &c);
    double pass = o->latency ? m->total / m->passes : percentile(m, 50);
    double rss = (double)peak_rss() / 1048576;
    double per_line = o->latency ? 1000 : 1; // ms of a line, s of a pass
    const char *unit = o->latency ? "ms" : "s";
    double p50 = percentile(m, 50) * per_line, p95 = percentile(m, 95) * per_line,
           p99 = percentile(m, 99) * per_line;
    double tokens = (double)m->target_tokens / pass, lines = (double)m->lines / pass;
    if (o->json) {
        printf("{\"version\":\"%s\",\"device\":\"%s\",\"precision\":\"%s\",\"mode\":\"%s\","
               "\"beam\":%d,\"batch\":%d,\"threads\":%d,\"lines\":%llu,\"source_tokens\":%llu,"
               "\"target_tokens\":%llu,\"load_s\":%.4f,\"pass_s\":%.4f,\"tokens_per_s\":%.1f,"
               "\"lines_per_s\":%.2f,\"p50_%s\":%.3f,\"p95_%s\":%.3f,\"p99_%s\":%.3f,"
               "\"peak_rss_mib\":%.1f}\n",
               dgm_version(), i->device, i->precision, o->latency ? "latency" : "throughput",
               (int)i->beam, (int)i->batch, (int)i->threads, (unsigned long long)m->lines,
               (unsigned long long)m->source_tokens, (unsigned long long)m->target_tokens, m->load,
               pass, tokens, lines, unit, p50, unit, p95, unit, p99, rss);
        return;
    }
    if (o->csv) {
        printf("version,device,precision,mode,beam,batch,threads,lines,source_tokens,"
               "target_tokens,load_s,pass_s,tokens_per_s,lines_per_s,p50_%s,p95_%s,p99_%s,"
               "peak_rss_mib\n",
               unit, unit, unit);
        printf("%s,\"%s\",%s,%s,%d,%d,%d,%llu,%llu,%llu,%.4f,%.4f,%.1f,%.2f,%.3f,%.3f,%.3f,%.1f\n",
               dgm_version(), i->device, i->precision, o->latency ? "latency" : "throughput",
               (int)i->beam, (int)i->batch, (int)i->threads, (unsigned long long)m->lines,
               (unsigned long long)m->source_tokens, (unsigned long long)m->target_tokens, m->load,
               pass, tokens, lines, p50, p95, p99, rss);
        return;
    }
    printf("dragoman    %s, %s, %s\n", dgm_version(), i->precision, i->device);
    printf("search      %s, beam %d, finish %s, batch %d (%lld tokens), threads %d\n", i->search,
           (int)i->beam, i->finish, (int)i->batch, (long long)i->batch_tokens, (int)i->threads);
    printf("text        %llu lines, %llu source tokens, %llu target tokens, %d passes\n",
           (unsigned long long)m->lines, (unsigned long long)m->source_tokens,
           (unsigned long long)m->target_tokens, m->passes);
    printf("load        %.3f s\n", m->load);
    printf("speed       %.1f tokens/s, %.2f sentences/s\n", tokens, lines);
    printf("%s %.3f / %.3f / %.3f %s (p50 / p95 / p99), fastest %.3f, slowest %.3f\n",
           o->latency ? "latency    " : "pass       ", p50, p95, p99, unit, m->times[0] * per_line,
           m->times[m->count - 1] * per_line);
    printf("steps       %llu, %.2f rows each\n", (unsigned long long)c.steps,
           c.steps ? (double)c.rows / (double)c.steps : 0.0);
    printf("memory      %.1f MiB weights, %.1f MiB workspace, %.1f MiB peak RSS\n",
           (double)i->packed_bytes / 1048576, (double)c.arena_peak / 1048576, rss);
}

static int measure_all(const bench_options *o, const dgm_input *lines, size_t count,
                       dgm_translator *t, measure *m)
{
    if (o->lines && (size_t)o->lines < count) count = (size_t)o->lines;
    if (count == 0) return fail(EXIT_RUNTIME, "there is nothing to translate: the input is empty");
    m->lines = count;
    m->passes = o->repeat;
    m->times = need(calloc((size_t)o->repeat * (o->latency ? count : 1), sizeof *m->times));
    bool fine = o->cold || one_pass(o, t, lines, count, m, false);
    for (int i = 0; fine && i < o->repeat; i++) {
        if (o->output && i == o->repeat - 1) {
            m->output = writer_open(o->output);
            if (!m->output) return EXIT_RUNTIME;
        }
        fine = one_pass(o, t, lines, count, m, true);
    }
    if (m->output && !writer_close(m->output)) return EXIT_RUNTIME;
    if (!fine) return EXIT_RUNTIME;
    qsort(m->times, m->count, sizeof *m->times, by_value);
    print_all(o, t, m);
    if (!m->failed) return EXIT_FINE;
    return fail(EXIT_LINES, "%zu of %zu lines could not be translated", m->failed, count);
}

static int run(const command *self, int argc, char **argv)
{
    bench_options o = {.repeat = 3};
    words rest;
    engine_options_default(&o.engine);
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (rest.count) return fail_usage(self, "bench reads --input, not '%s'", rest.items[0]);
    if (o.json && o.csv) return fail_usage(self, "--json and --csv cannot be combined");
    file_list files = {0};
    files_read(&files, "--input", o.input);
    files_write(&files, "--output", o.output);
    if (o.output) code = engine_files(&o.engine, &files);
    if (code < 0) code = files_check(self, &files);
    if (code >= 0) return code;
    dgm_translator *t = NULL;
    text_file f = {0};
    measure m = {0};
    if (!text_file_read(&f, o.input)) return EXIT_RUNTIME;
    double start = seconds();
    code = engine_open(&o.engine, &t);
    m.load = seconds() - start;
    dgm_input *inputs = need(calloc(f.count + 1, sizeof *inputs));
    for (size_t i = 0; i < f.count; i++)
        inputs[i] = (dgm_input){
            .size = sizeof(dgm_input), .text = f.lines[i].data, .text_size = f.lines[i].size};
    if (code < 0) code = measure_all(&o, inputs, f.count, t, &m);
    dgm_close(&t);
    free(inputs);
    text_file_free(&f);
    free(m.times);
    return code;
}

const command command_bench = {
    .name = "bench",
    .summary = "measure speed, latency and memory",
    .usage = "-i FILE [-m MODEL]... [options]",
    .description =
        "Translates a file several times after one pass to warm up and prints output tokens and "
        "sentences per second, percentiles of the time, memory and the chosen kernels. Times are "
        "of this machine at this moment: compare them only with others of the same run.",
    .example = "dragoman bench -i news.en -b 4 --batch 32\n"
               "dragoman bench -i news.en --latency --batch 1 --csv",
    .options = options,
    .settings = SETTINGS_PLAIN,
    .settings_at = AT(engine.set),
    .run = run,
};
