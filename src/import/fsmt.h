// SPDX-License-Identifier: MIT
// FSMT folders, called by huggingface.c.
#ifndef DGM_IMPORT_FSMT_H
#define DGM_IMPORT_FSMT_H

#include "import/import.h"

dgm_status dgm_import_fsmt(dgm_import_job *job, dgm_error *err);

#endif
