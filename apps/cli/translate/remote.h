// SPDX-License-Identifier: MIT
// `dragoman translate --server`: lines go to a server instead of a model of this machine.
#ifndef DGM_APPS_CLI_TRANSLATE_REMOTE_H
#define DGM_APPS_CLI_TRANSLATE_REMOTE_H

#include "translate/translate_lines.h"

// Translates the whole input; returns the exit code. What only a local model can do is refused.
int remote_translate(const command *self, translate_options *o);

#endif
