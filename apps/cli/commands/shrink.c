// SPDX-License-Identifier: MIT
// `dragoman shrink`: an ensemble of recurrent models as one network, made smaller without data.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "io/progress.h"
#include "translate/setup.h"

typedef struct shrink_options {
    const char *output, *weights, *name;
    float size, units, embeddings, readout;
    int quiet;
} shrink_options;

#define AT(field) offsetof(shrink_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL, "model file to write", NULL, NULL},
    {"size", 0, OPTION_REAL, "X", AT(size), 0.000001, 1000, NULL,
     "parameters of the new network as a share of those of all models together, e.g. 0.78 "
     "(default: the models are only made one network)",
     NULL, NULL},
    {"units", 0, OPTION_REAL, "X", AT(units), 0.000001, 1, NULL,
     "share of the units of encoder, decoder and attention that stay (default: all, or as --size "
     "needs it)",
     NULL, NULL},
    {"embeddings", 0, OPTION_REAL, "X", AT(embeddings), 0.000001, 1, NULL,
     "share of the embeddings' columns that stay, of all models together (default: likewise)", NULL,
     NULL},
    {"readout", 0, OPTION_REAL, "X", AT(readout), 0.000001, 1, NULL,
     "share of the read-out's units that stay (default: likewise)", NULL, NULL},
    {"weights", 0, OPTION_TEXT, "W,W,...", AT(weights), 0, 0, NULL,
     "weights of the models in the mixture, in their order (default: equal)", NULL, NULL},
    {"name", 0, OPTION_TEXT, "TEXT", AT(name), 0, 0, NULL,
     "name of the new model (default: the first one's)", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no progress bar and no table", NULL,
     NULL},
    {0},
};

static void print_widths(const char *name, const dgm_shrink_widths *w, uint64_t members)
{
    fprintf(stderr, "%-10s %9llu %7.1f %% %6d %8d %7d %10d %8d\n", name,
            (unsigned long long)w->parameters, 100.0 * (double)w->parameters / (double)members,
            w->embed, w->encoder, w->hidden, w->attention, w->readout);
}

static void print_report(const dgm_shrink_report *r, int count)
{
    fprintf(stderr, "%d model%s with %llu parameters together\n", count, count == 1 ? "" : "s",
            (unsigned long long)r->members);
    fprintf(stderr, "           parameters     size  embed  encoder  hidden  attention  readout\n");
    print_widths("unfolded", &r->unfolded, r->members);
    print_widths("shrunk", &r->shrunk, r->members);
}

static int run(const command *self, int argc, char **argv)
{
    shrink_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (!o.output) return fail_usage(self, "shrink requires --output FILE");
    if (rest.count < 1 || rest.count > DGM_SHRINK_MAX)
        return fail_usage(self, "shrink takes 1 to %d models", DGM_SHRINK_MAX);
    file_list files = {0};
    files_read_words(&files, &rest, 0);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    if (code >= 0) return code;
    double weights[DGM_SHRINK_MAX];
    progress bar;
    dgm_shrink_options s = {.size = sizeof s,
                            .share = (double)o.size,
                            .name = o.name,
                            .units = (double)o.units,
                            .embeddings = (double)o.embeddings,
                            .readout = (double)o.readout};
    if (o.weights) {
        code = options_weights(self, o.weights, weights, rest.count);
        if (code >= 0) return code;
        s.weights = weights;
    }
    progress_start(&bar, !o.quiet);
    s.progress = (dgm_progress){progress_tick, &bar};
    dgm_shrink_report report = {.size = sizeof report};
    dgm_error error;
    const dgm_status st =
        dgm_shrink_ensemble(rest.items, (size_t)rest.count, o.output, &s, &report, &error);
    progress_end(&bar);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (!o.quiet) print_report(&report, rest.count);
    return EXIT_FINE;
}

const command command_shrink = {
    .name = "shrink",
    .summary = "make an ensemble of recurrent models one smaller network",
    .usage = "MODEL... -o MODEL [options]",
    .description =
        "Puts recurrent models (GRU, decoder 'bahdanau', the same vocabularies) side by side in "
        "one network whose distribution is the log-linear mixture of theirs, then removes neurons "
        "that others can stand in for, and ranks of linear layers, without any data, until the "
        "network has the size or the widths asked for: widths that are given stay as they are, the "
        "others are chosen for --size. The result is an ordinary model file in f32 (see "
        "'dragoman quantize').",
    .example = "dragoman shrink a.gguf b.gguf c.gguf --size 0.78 -o small.gguf",
    .options = options,
    .run = run,
};
