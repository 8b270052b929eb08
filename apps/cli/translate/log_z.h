// SPDX-License-Identifier: MIT
// `dragoman inspect --log-z` (log_z.c).
#ifndef DGM_APPS_CLI_TRANSLATE_LOG_Z_H
#define DGM_APPS_CLI_TRANSLATE_LOG_Z_H

// model NULL: the default one. references NULL: the model's own translations are forced.
// Returns an exit code.
int inspect_log_z(const char *model, const char *source, const char *references, int json);

#endif
