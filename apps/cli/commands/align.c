// SPDX-License-Identifier: MIT
// `dragoman align`: word alignment of a parallel text, both directions and symmetrised.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "io/sink.h"
#include "translate/setup.h"

typedef struct align_options {
    option_list input;
    const char *output, *symmetrize, *subwords, *lex_s2t, *lex_t2s, *gold;
    int model, iterations, threads, max_length, keep_tension, quiet, stats;
    float p0, alpha, tension;
} align_options;

#define AT(field) offsetof(align_options, field)

static const option options[] = {
    {"input", 'i', OPTION_LIST, "FILE", AT(input), 0, 0, NULL,
     "source and target text, line by line, also gzip: --input SOURCE TARGET", NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write to FILE, compressed if its name ends in .gz (default: standard output)", NULL, NULL},
    {"subwords", 'm', OPTION_TEXT, "MODEL", AT(subwords), 0, 0, NULL,
     "align the tokens of this model file instead of the words between spaces", "model-file", NULL},
    {"model", 0, OPTION_COUNT, "1|2", AT(model), 1, 2, NULL,
     "1: IBM model 1; 2: the model 2 of fast_align, which prefers the diagonal (default 2)", NULL,
     NULL},
    {"symmetrize", 0, OPTION_CHOICE, "NAME", AT(symmetrize), 0, 0,
     "forward|backward|intersect|union|grow-diag|grow-diag-final|grow-diag-final-and",
     "how the two directions become one; forward and backward keep one of them (default "
     "grow-diag-final-and)",
     "symmetrise", NULL},
    {"lex-s2t", 0, OPTION_TEXT, "FILE", AT(lex_s2t), 0, 0, NULL,
     "write p(target | source) as lines of TARGET SOURCE PROBABILITY", NULL, NULL},
    {"lex-t2s", 0, OPTION_TEXT, "FILE", AT(lex_t2s), 0, 0, NULL,
     "write p(source | target) as lines of SOURCE TARGET PROBABILITY", NULL, NULL},
    {"gold", 0, OPTION_TEXT, "FILE", AT(gold), 0, 0, NULL,
     "links made by hand for the last lines of the text, sure i-j and possible i?j: print the "
     "error rate",
     NULL, NULL},
    ALIGN_OPTIONS(align_options),
    {"alpha", 0, OPTION_REAL, "X", AT(alpha), 0, 1000000, NULL,
     "prior of variational Bayes; 0: maximum likelihood (default 0.01)", NULL, NULL},
    {"p0", 0, OPTION_REAL, "X", AT(p0), 0, 0.99, NULL,
     "probability that a word comes from no word, model 2 (default 0.08)", NULL, NULL},
    {"tension", 0, OPTION_REAL, "X", AT(tension), 0.1, 30, NULL,
     "pull towards the diagonal at the start, model 2 (default 4)", NULL, NULL},
    {"keep-tension", 0, OPTION_FLAG, NULL, AT(keep_tension), 0, 0, NULL,
     "do not optimise the tension", NULL, NULL},
    {"stats", 0, OPTION_FLAG, NULL, AT(stats), 0, 0, NULL,
     "print counts, the objective of every round, time and memory on standard error", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no warnings",
     NULL, NULL},
    {0},
};

// In variational Bayes the first value belongs to no posterior and is not printed.
static void print_stats(const dgm_align_report *r, bool bayes, double start)
{
    static const char *const names[] = {"forward", "backward"};
    fprintf(stderr, "lines %llu, pairs %llu, empty %llu, too long %llu\n",
            (unsigned long long)r->lines, (unsigned long long)r->pairs,
            (unsigned long long)r->empty, (unsigned long long)r->too_long);
    fprintf(stderr, "tokens %llu and %llu, types %llu and %llu, table entries %llu\n",
            (unsigned long long)r->source_tokens, (unsigned long long)r->target_tokens,
            (unsigned long long)r->source_types, (unsigned long long)r->target_types,
            (unsigned long long)r->entries);
    for (int d = 0; d < 2; d++) {
        double tokens = (double)(d ? r->source_tokens : r->target_tokens);
        fprintf(stderr, "%s: objective per token", names[d]);
        for (int i = bayes; i < r->iterations; i++)
            fprintf(stderr, " %.4f", r->objective[d][i] / tokens);
        fprintf(stderr, ", tension %.3f\n", r->tension[d]);
    }
    fprintf(stderr, "links %llu, %.1f s, peak memory %.0f MiB\n", (unsigned long long)r->links,
            seconds() - start, (double)peak_rss() / (1 << 20));
}

static int work(const align_options *o, const char *source, const char *target)
{
    dgm_align_options a;
    dgm_align_default(&a);
    a.model = o->model;
    a.iterations = o->iterations;
    a.threads = o->threads;
    a.max_length = o->max_length;
    if (o->symmetrize) a.symmetrize = o->symmetrize;
    a.p0 = (double)o->p0;
    a.alpha = (double)o->alpha;
    a.tension = (double)o->tension;
    a.keep_tension = o->keep_tension;
    a.subwords = o->subwords;
    a.lex_s2t = o->lex_s2t;
    a.lex_t2s = o->lex_t2s;
    a.gold = o->gold;
    progress bar;
    a.progress = (dgm_progress){progress_tick, &bar};
    text_sink sink;
    if (!sink_open(&sink, o->output)) return EXIT_RUNTIME;
    a.write = sink_put;
    a.write_cookie = sink.out;
    double start = seconds();
    dgm_align_report report = {.size = sizeof report};
    dgm_error error;
    progress_start(&bar, !o->quiet);
    dgm_status st = dgm_align(source, target, sink.file, &a, &report, &error);
    progress_end(&bar);
    const int code = sink_close(&sink, st, &error);
    if (code != EXIT_FINE) return code;
    if (report.too_long && !o->quiet)
        warn("%llu of %llu pairs are longer than %d tokens and were left out",
             (unsigned long long)report.too_long, (unsigned long long)report.lines, o->max_length);
    if (o->stats) print_stats(&report, o->alpha > 0, start);
    if (report.has_gold)
        fprintf(stderr, "alignment error rate %.2f %%, precision %.2f %%, recall %.2f %%\n",
                100 * report.error_rate, 100 * report.precision, 100 * report.recall);
    return EXIT_FINE;
}

static int run(const command *self, int argc, char **argv)
{
    align_options o = {.model = 2, .iterations = 5, .max_length = 200};
    o.p0 = 0.08f;
    o.alpha = 0.01f;
    o.tension = 4;
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (o.input.count + rest.count != 2)
        return fail_usage(self, "expected two files, the source and the target text");
    const char *files[2];
    int n = 0;
    for (int i = 0; i < o.input.count; i++) files[n++] = o.input.items[i];
    for (int i = 0; i < rest.count; i++) files[n++] = rest.items[i];
    file_list all = {0};
    files_read(&all, "the source text", files[0]);
    files_read(&all, "the target text", files[1]);
    files_read(&all, "--subwords", o.subwords);
    files_read(&all, "--gold", o.gold);
    files_write(&all, "--output", o.output);
    files_write(&all, "--lex-s2t", o.lex_s2t);
    files_write(&all, "--lex-t2s", o.lex_t2s);
    code = files_check(self, &all);
    return code >= 0 ? code : work(&o, files[0], files[1]);
}

const command command_align = {
    .name = "align",
    .summary = "align the words of a parallel text",
    .usage = "[options] SOURCE TARGET",
    .description =
        "Finds which words of two texts translate each other, line by line. Both texts are "
        "trained on and aligned in one run: IBM model 1, or model 2 with the parametrisation of "
        "fast_align (variational Bayes, optimised tension), in both directions, then "
        "symmetrised.\n\n"
        "Words are what spaces separate (tokenise first), or the tokens of a model (--subwords). "
        "The output has one line for every line, links as source-target positions from 0.",
    .example = "dragoman align corpus.en corpus.de -o corpus.align --lex-s2t lex.s2t.gz\n"
               "dragoman align -m models/en-de.gguf corpus.en.gz corpus.de.gz > corpus.align",
    .options = options,
    .run = run,
};
