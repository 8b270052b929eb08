// SPDX-License-Identifier: MIT
// `dragoman cluster`: learns and measures the clusters of a model's hidden vectors.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

typedef struct cluster_options {
    const char *model, *output, *input, *vectors, *measure, *precision, *source, *target, *sizes;
    const char *from, *device, *directions;
    float least;
    int lines, centroids, best, near, record_best, iterations, sample, seed, beam, threads, remove, quiet;
    int any_source;
} cluster_options;

#define AT(field) offsetof(cluster_options, field)

static const option options[] = {
    {"model", 'm', OPTION_TEXT, "FILE", AT(model), 0, 0, NULL, "model file that gets the clusters",
     NULL, NULL},
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL,
     "write the model with its clusters to FILE, which may be the model itself", NULL, NULL},
    {"input", 'i', OPTION_TEXT, "FILE", AT(input), 0, 0, NULL,
     "source text that the model translates, also gzip; 100,000 lines are a start", NULL, NULL},
    {"lines", 0, OPTION_COUNT, "N", AT(lines), 1, 2147483647, NULL,
     "take the first N lines of it (default: all)", NULL, NULL},
    {"vectors", 0, OPTION_TEXT, "FILE", AT(vectors), 0, 0, NULL,
     "record hidden vectors to FILE and keep it: a run that was interrupted goes on from there, "
     "and other clusters are learnt from it without translating again (default: a scratch file)",
     NULL, NULL},
    {"centroids", 0, OPTION_COUNT, "N", AT(centroids), 1, 65536, NULL,
     "number of clusters (default 600)", NULL, NULL},
    {"best", 0, OPTION_COUNT, "K", AT(best), 1, 64, NULL,
     "best tokens of each vector that join the list of its cluster (default 16; 1 gives the "
     "shortest lists)",
     NULL, NULL},
    {"near", 0, OPTION_COUNT, "N", AT(near), 1, 8, NULL,
     "nearest centroids whose lists they join, the further ones with less weight (default 6; 1 is "
     "the published method)",
     NULL, NULL},
    {"least", 0, OPTION_REAL, "W", AT(least), 0, 1, NULL,
     "leave tokens out of a list that weigh less than W per vector of the cluster (default "
     "0.00001; 0 keeps all)",
     NULL, NULL},
    {"from", 0, OPTION_TEXT, "FILE", AT(from), 0, 0, NULL,
     "keep the centroids of a model that has --centroids of them and make only the lists", NULL,
     NULL},
    {"record-best", 0, OPTION_COUNT, "K", AT(record_best), 1, 64, NULL,
     "best tokens that --vectors records (default 16, at least --best)", NULL, NULL},
    {"iterations", 0, OPTION_COUNT, "N", AT(iterations), 0, 10000, NULL,
     "of k-means (default 20)", NULL, NULL},
    {"sample", 0, OPTION_COUNT, "N", AT(sample), 1, 1000000000, NULL,
     "vectors that k-means sees (default 256 per cluster); lists come from all of them", NULL,
     NULL},
    {"seed", 0, OPTION_COUNT, "N", AT(seed), 0, 2147483647, NULL,
     "of the start of k-means (default 1)", NULL, NULL},
    {"beam", 'b', OPTION_COUNT, "N", AT(beam), 1, 256, NULL,
     "hypotheses while translating; the vectors of all of them are recorded (default 1)", NULL,
     NULL},
    {"precision", 0, OPTION_CHOICE, "NAME", AT(precision), 0, 0, "f32|i16|i8|f16|bf16",
     "of the products while translating (default: the model's)", NULL, NULL},
    {"device", 0, OPTION_TEXT, "NAME", AT(device), 0, 0, NULL,
     "where to translate and to learn: cpu[:LEVEL], cuda[:NUMBER] or auto (default cpu)", NULL, NULL},
    {"source", 's', OPTION_TEXT, "LANG", AT(source), 0, 0, NULL,
     "source language that is translated and that the clusters are for (default: the model's)", NULL,
     NULL},
    {"target", 't', OPTION_TEXT, "LANG", AT(target), 0, 0, NULL,
     "target language that is translated to and that the clusters are for (default: the model's)",
     NULL, NULL},
    {"any-source", 0, OPTION_FLAG, NULL, AT(any_source), 0, 0, NULL,
     "clusters for the target language, whatever the source", NULL, NULL},
    {"directions", 0, OPTION_TEXT, "FILE", AT(directions), 0, 0, NULL,
     "the direction of every line of the text, 'SOURCE TARGET', 'TARGET' or nothing a line, as translate "
     "reads it: clusters of all of them, one block each, in one run",
     NULL, NULL},
    {"measure", 0, OPTION_TEXT, "FILE", AT(measure), 0, 0, NULL,
     "print for a source text how large the lists are and how many of the best tokens they hold; "
     "without --output, --vectors keeps this text's",
     NULL, NULL},
    {"sizes", 0, OPTION_TEXT, "FILE", AT(sizes), 0, 0, NULL,
     "with --measure: write CENTROID TAB HITS TAB TOKENS for every cluster", NULL, NULL},
    {"remove", 0, OPTION_FLAG, NULL, AT(remove), 0, 0, NULL, "write the model without clusters",
     NULL, NULL},
    {"threads", 'j', OPTION_COUNT, "{N,all}", AT(threads), 0, 1024, "all",
     "worker threads, all, or 0: one per core (default 1)", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no report and no progress", NULL,
     NULL},
    {NULL, 0, OPTION_FLAG, NULL, 0, 0, 0, NULL, NULL, NULL, NULL}};

static dgm_cluster_options settings(const cluster_options *o, progress *bar)
{
    dgm_cluster_options c;
    dgm_cluster_default(&c);
    c.text = o->input;
    c.lines = (uint64_t)o->lines;
    c.vectors = o->vectors;
    c.centroids = o->centroids;
    c.best = o->best;
    c.near = o->near;
    c.least = (double)o->least;
    c.from = o->from;
    c.record_best = o->record_best > o->best ? o->record_best : o->best;
    c.iterations = o->iterations;
    c.sample = (uint64_t)o->sample;
    c.seed = (uint64_t)o->seed;
    c.beam = o->beam;
    c.precision = o->precision;
    c.device = o->device;
    c.source = o->any_source ? "" : o->source;
    c.target = o->target;
    c.threads = o->threads;
    c.remove = o->remove;
    c.progress = (dgm_progress){progress_tick, bar};
    return c;
}

static void print_report(const dgm_cluster_report *r)
{
    fprintf(stderr,
            "%llu vectors of %llu lines, k-means on %llu: mean squared distance %.4g, at first "
            "%.4g\n",
            (unsigned long long)r->vectors, (unsigned long long)r->lines,
            (unsigned long long)r->sample, r->loss, r->first_loss);
    fprintf(stderr,
            "%d centroids (%d empty), lists of %.2f %% of %d tokens on average (%.2f to %.2f), "
            "%llu bytes\n",
            r->centroids, r->empty, 100 * r->share, r->targets, 100 * r->least, 100 * r->most,
            (unsigned long long)r->bytes);
}

static int make(const cluster_options *o)
{
    progress bar;
    const dgm_cluster_options c = settings(o, &bar);
    dgm_cluster_report r = {.size = sizeof r};
    dgm_error error;
    progress_start(&bar, !o->quiet && !o->remove);
    const dgm_status st = dgm_cluster_make(o->model, o->output, &c, &r, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (!o->quiet && !o->remove) print_report(&r);
    return EXIT_FINE;
}

static int make_directions(const cluster_options *o)
{
    progress bar;
    const dgm_cluster_options c = settings(o, &bar);
    dgm_cluster_reports *r = NULL;
    dgm_error error;
    progress_start(&bar, !o->quiet);
    const dgm_status st =
        dgm_cluster_make_directions(o->model, o->output, o->directions, &c, &r, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    for (size_t i = 0; i < r->count && !o->quiet; i++) {
        const dgm_cluster_report *one = r->items[i];
        fprintf(stderr, "%s to %s: ", one->source[0] ? one->source : "any", one->target);
        print_report(one);
    }
    dgm_cluster_reports_free(&r);
    return EXIT_FINE;
}

static int write_sizes(const char *path, const dgm_cluster_measure *m)
{
    line_writer *w = writer_open(path);
    if (!w) return EXIT_RUNTIME;
    for (int i = 0; i < m->centroids; i++)
        writer_format(w, "%d\t%llu\t%lu\n", i, (unsigned long long)m->hits[i],
                      (unsigned long)m->sizes[i]);
    return writer_close(w) ? EXIT_FINE : EXIT_RUNTIME;
}

static int measure(const cluster_options *o, const char *model)
{
    progress bar;
    dgm_cluster_options c = settings(o, &bar);
    if (o->output) c.vectors = NULL; // they are of the other text
    dgm_cluster_measure m = {.size = sizeof m};
    dgm_error error;
    progress_start(&bar, !o->quiet);
    const dgm_status st = dgm_cluster_test(model, o->measure, &c, &m, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    printf("lines %llu, vectors %llu, %d of %d centroids used\n", (unsigned long long)m.lines,
           (unsigned long long)m.vectors, m.used, m.centroids);
    printf("lists of %.3f %% of the vocabulary, recall %.3f %% of best tokens\n", 100 * m.share,
           100 * m.recall);
    const int code = o->sizes ? write_sizes(o->sizes, &m) : EXIT_FINE;
    dgm_cluster_free(&m);
    return code;
}

static int run(const command *self, int argc, char **argv)
{
    dgm_cluster_options c;
    dgm_cluster_default(&c);
    cluster_options o = {.centroids = c.centroids,
                         .best = c.best,
                         .near = c.near,
                         .least = (float)c.least,
                         .record_best = c.record_best,
                         .iterations = c.iterations,
                         .seed = (int)c.seed,
                         .beam = c.beam,
                         .threads = c.threads};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (!o.model) return fail_usage(self, "cluster requires --model FILE");
    if (rest.count > 1 || (rest.count && o.input))
        return fail_usage(self, "cluster takes one text file");
    if (rest.count) o.input = rest.items[0];
    if (!o.output && !o.measure)
        return fail_usage(self, "cluster requires --output FILE or --measure FILE");
    if (o.output && !o.input && !o.remove)
        return fail_usage(self, "--output requires a text file to learn clusters from");
    if (o.sizes && !o.measure) return fail_usage(self, "--sizes requires --measure FILE");
    if (o.any_source && o.source)
        return fail_usage(self, "--source and --any-source cannot be combined");
    if (o.directions && (!o.output || o.remove))
        return fail_usage(self, "--directions requires --output FILE and a text");
    if (o.directions && o.measure)
        return fail_usage(self, "--directions and --measure cannot be combined: measure one direction "
                                "at a time, with --source and --target");
    file_list files = {0};
    files_read(&files, "the text", o.input);
    files_read(&files, "--directions", o.directions);
    files_read(&files, "--measure", o.measure);
    files_replace(&files, "--output", o.output, "--model", o.model);
    files_write(&files, "--vectors", o.vectors);
    files_write(&files, "--sizes", o.sizes);
    code = files_check(self, &files);
    if (code >= 0) return code;
    code = o.directions ? make_directions(&o) : o.output ? make(&o) : EXIT_FINE;
    if (code > 0) return code;
    return o.measure ? measure(&o, o.output ? o.output : o.model) : EXIT_FINE;
}

const command command_cluster = {
    .name = "cluster",
    .summary = "give a model clusters of its hidden vectors",
    .usage = "-m MODEL -o OUTPUT [options] TEXT",
    .description =
        "Clusters say which target tokens a decoder may produce next by the vector that it is "
        "about to multiply with the output layer: the model translates a text, its vectors are recorded "
        "with the best tokens, k-means finds centroids, and the tokens of all vectors nearest to a "
        "centroid become its list. translate --shortlist cluster then computes only the tokens "
        "listed at the nearest centroids.",
    .example = "dragoman cluster -m en-de.gguf -o clustered.gguf --lines 100000 corpus.en.gz\n"
               "dragoman cluster -m en-de.gguf -o k1.gguf --vectors v.bin --best 1 corpus.en.gz\n"
               "dragoman cluster -m m2m.gguf -o clustered.gguf --directions mixed.dir mixed.txt\n"
               "dragoman cluster -m clustered.gguf --measure dev.en",
    .options = options,
    .run = run,
};
