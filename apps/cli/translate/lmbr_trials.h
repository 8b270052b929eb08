// SPDX-License-Identifier: MIT
// `translate --lmbr-tune --resume`: the trials that were made, in OUTPUT.trials until tuning is done.
//
//     dragoman trials 1 CHECK                    CRC-32 of what they depend on
//     LAMBDA SCALE P R BLEU CHECK                one line per trial; CRC-32 of the line before it
#ifndef DGM_APPS_CLI_TRANSLATE_LMBR_TRIALS_H
#define DGM_APPS_CLI_TRANSLATE_LMBR_TRIALS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "dragoman/tools.h"

typedef struct trial_file {
    char *path;
    FILE *file; // NULL: nothing is written
    dgm_lmbr_trial *known;
    size_t count, cap;
} trial_file;

// Is there one of a run that was interrupted?
bool trials_left(const char *output);
// Begins one beside the output; resume: goes on with the one that is there. False after a message.
bool trials_open(trial_file *t, const char *output, uint32_t check, bool resume);
bool trials_add(trial_file *t, const dgm_lmbr_trial *trial); // false after a message
void trials_close(trial_file *t, bool done);                 // done: the file is removed

#endif
