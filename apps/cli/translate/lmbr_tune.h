// SPDX-License-Identifier: MIT
// `translate --lmbr-tune`: finds p, r, scale and lambda for the input and writes them to the output.
#ifndef DGM_APPS_CLI_TRANSLATE_LMBR_TUNE_H
#define DGM_APPS_CLI_TRANSLATE_LMBR_TUNE_H

#include "commands/commands.h"
#include "translate/translate_lines.h"

int lmbr_tune(const command *self, const translate_options *o); // returns the exit code

#endif
