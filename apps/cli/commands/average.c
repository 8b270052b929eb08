// SPDX-License-Identifier: MIT
// `dragoman average`: one model from several checkpoints of it.
#include <stdio.h>
#include <string.h>

#include "commands/commands.h"
#include "dragoman/tools.h"
#include "io/files.h"
#include "io/lineio.h"
#include "translate/setup.h"

typedef struct average_options {
    const char *output, *type, *weights;
    int quiet;
} average_options;

#define AT(field) offsetof(average_options, field)

static const option options[] = {
    {"output", 'o', OPTION_TEXT, "FILE", AT(output), 0, 0, NULL, "model file to write", NULL, NULL},
    {"weights", 0, OPTION_TEXT, "W,W,...", AT(weights), 0, 0, NULL,
     "weights of the models, in their order (default: equal)", NULL, NULL},
    {"type", 0, OPTION_CHOICE, "TYPE", AT(type), 0, 0, "f32|f16|bf16|i16|i8",
     "storage of the weight matrices (default: as in the first model)", NULL, NULL},
    {"quiet", 'q', OPTION_FLAG, NULL, AT(quiet), 0, 0, NULL, "no notes", NULL, NULL},
    {0},
};

static int run(const command *self, int argc, char **argv)
{
    average_options o = {0};
    words rest;
    int code = options_parse(self, argc, argv, &o, &rest);
    if (code >= 0) return code;
    if (!o.output) return fail_usage(self, "average requires --output FILE");
    if (rest.count < 2) return fail_usage(self, "average takes two or more models");
    if (rest.count > DGM_AVERAGE_MAX)
        return fail_usage(self, "average takes at most %d models, not %d", DGM_AVERAGE_MAX,
                          rest.count);
    file_list files = {0};
    files_read_words(&files, &rest, 0);
    files_write(&files, "--output", o.output);
    code = files_check(self, &files);
    if (code >= 0) return code;
    double weights[DGM_AVERAGE_MAX];
    dgm_average_options a = {.size = sizeof a, .type = o.type};
    if (o.weights) {
        code = options_weights(self, o.weights, weights, rest.count);
        if (code >= 0) return code;
        a.weights = weights;
    }
    dgm_average_report report = {.size = sizeof report};
    dgm_error error;
    const dgm_status st =
        dgm_average(rest.items, (size_t)rest.count, o.output, &a, &report, &error);
    if (st != DGM_OK) return fail(exit_code(st), "%s", error.text);
    if (!o.quiet)
        fprintf(stderr, "%d models, %llu tensors, %.2f million parameters\n", rest.count,
                (unsigned long long)report.tensors, (double)report.parameters / 1e6);
    if (!o.quiet && report.dropped_scales)
        warn("%llu static scales of activations were left out: make them anew with 'dragoman "
             "quantize --calibrate'",
             (unsigned long long)report.dropped_scales);
    return EXIT_FINE;
}

const command command_average = {
    .name = "average",
    .summary = "average the weights of checkpoints of one model",
    .usage = "MODEL MODEL... -o MODEL [options]",
    .description =
        "Writes a model whose weights are the mean of those of the models given, which must be "
        "checkpoints of one model: the same architecture, vocabularies and shapes. Everything "
        "else is the first model's. Average checkpoints as they were trained (f32); integer "
        "weights can be averaged, but are rounded twice.",
    .example = "dragoman average step-90000.gguf step-95000.gguf step-100000.gguf -o model.gguf",
    .options = options,
    .run = run,
};
