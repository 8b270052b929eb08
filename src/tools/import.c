// SPDX-License-Identifier: MIT
// `dragoman import`: the public door to the importers of format/; see dragoman/tools.h.
#include "dragoman/tools.h"

#include "import/import.h"
#include "text/spm_shim.h"

static dgm_status opens(const void *model, size_t size, dgm_error *err)
{
    dgm_spm *spm = NULL;
    const dgm_status st = dgm_spm_open(&spm, model, size, err);
    dgm_spm_close(&spm);
    return st;
}

dgm_status dgm_import(const char *format, const char *dir, const char *output,
                      const dgm_import_options *options, dgm_error *err)
{
    DGM_FAIL_IF(!format || !dir || !output, err, DGM_ERR_ARGUMENT,
                "import needs a format, a folder and an output file");
    return dgm_import_run(format, dir, output, options, opens, err);
}

const dgm_import_format *dgm_import_format_at(size_t i)
{
    for (size_t n = 0; dgm_importers[n].run; n++)
        if (n == i) return &dgm_importers[n].info;
    return NULL;
}
