// SPDX-License-Identifier: MIT
// The subcommands, one file each, and a few helpers they share.
#ifndef DGM_APPS_CLI_COMMANDS_COMMANDS_H
#define DGM_APPS_CLI_COMMANDS_COMMANDS_H

#include <stdint.h>

#include "options.h"

extern const command command_translate, command_inspect, command_eval, command_score, command_bench,
    command_models, command_import, command_export, command_tokenize, command_align, command_shortlist,
    command_cluster, command_quantize, command_mbr, command_lm, command_phrase, command_mert,
    command_lattice, command_average, command_shrink, command_features, command_devices, command_detect,
    command_serve, command_tune, command_help;

uint64_t peak_rss(void); // bytes

// Rows of a table of options: what a model file says about the model. AT(lib.name) and so on must be
// the library's options of the command.
#define CARD_OPTIONS(name_help)                                                                    \
    {"name", 0, OPTION_TEXT, "TEXT", AT(lib.name), 0, 0, NULL, name_help, NULL, NULL},             \
        {"description", 0, OPTION_TEXT, "TEXT", AT(lib.description), 0, 0, NULL,                   \
         "one line for the model card", NULL, NULL},                                               \
        {"license", 0, OPTION_TEXT, "TEXT", AT(lib.license), 0, 0, NULL, "licence of the weights", \
         "licence", NULL},                                                                         \
        {"author", 0, OPTION_TEXT, "TEXT", AT(lib.author), 0, 0, NULL, "who made the model", NULL, \
         NULL},                                                                                    \
        {"url", 0, OPTION_TEXT, "TEXT", AT(lib.url), 0, 0, NULL, "where the model came from",      \
         NULL, NULL},                                                                              \
    {                                                                                              \
        "card", 0, OPTION_TEXT, "FILE", AT(lib.card_file), 0, 0, NULL,                             \
            "model card in Markdown, stored in the model", NULL, NULL                              \
    }

#endif
