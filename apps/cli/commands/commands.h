// SPDX-License-Identifier: MIT
// The subcommands, one file each, and a few helpers they share.
#ifndef DGM_APPS_CLI_COMMANDS_COMMANDS_H
#define DGM_APPS_CLI_COMMANDS_COMMANDS_H

#include <stdint.h>

#include "options.h"

extern const command command_translate, command_inspect, command_eval, command_score, command_bench,
    command_models, command_import, command_tokenize, command_align, command_shortlist,
    command_cluster, command_quantize, command_mbr, command_lm, command_phrase, command_mert,
    command_lattice, command_average, command_shrink, command_features, command_devices,
    command_help;

uint64_t peak_rss(void); // bytes

#endif
