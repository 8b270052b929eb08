// SPDX-License-Identifier: MIT
// Private to the importer of T5 and its relatives: settings, and the importer for the table of families.
#ifndef DGM_IMPORT_T5_H
#define DGM_IMPORT_T5_H

#include "import/import.h"
#include "import/marian_config.h"

typedef struct dgm_t5_config {
    dgm_marian_config c; // what it shares with the others
    int head_width, buckets, distance;
    double eps;
    bool gated;
    bool scaled; // the decoder's output is multiplied by 1 / sqrt(d_model)
} dgm_t5_config;

// t5_config.c: config.json and, or NULL, generation_config.json. Messages name the key.
dgm_status dgm_t5_config_read(dgm_t5_config *out, const json_t *config, const json_t *generation,
                              dgm_error *err);

dgm_status dgm_import_t5(dgm_import_job *job, dgm_error *err);

#endif
