// SPDX-License-Identifier: MIT
// LibreTranslate's API: files.
#include "server/json_out.h"
#include "server/libre_private.h"

dgm_status dgm_files_open(struct dgm_files **files, dgm_error *err)
{
    (void)err;
    *files = NULL;
    return DGM_OK;
}

void dgm_files_close(struct dgm_files **files)
{
    *files = NULL;
}

void dgm_files_expire(struct dgm_files *files, double now)
{
    (void)files, (void)now;
}

void dgm_libre_endings(dgm_json_out *j)
{
    (void)j;
}
