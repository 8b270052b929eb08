// SPDX-License-Identifier: MIT
// `dragoman import`: the public side of the importers in import/; see dragoman/tools.h.
#include "base/sized.h"
#include "dragoman/tools.h"

#include "format/foreign.h"
#include "import/import.h"
#include "text/spm.h"

static dgm_status opens(const void *model, size_t size, dgm_error *err)
{
    dgm_spm *spm = NULL;
    const dgm_status st = dgm_spm_open(&spm, model, size, err);
    dgm_spm_close(&spm);
    return st;
}

void dgm_import_init(dgm_import_options *out, size_t size)
{
    const dgm_import_options own = {0};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_import(const char *format, const char *path, const char *output,
                      const dgm_import_options *options, dgm_error *err)
{
    DGM_FAIL_IF(!path || !output, err, DGM_ERR_ARGUMENT, "import needs a folder and an output file");
    dgm_import_options own;
    dgm_import_default(&own);
    DGM_TRY(
        dgm_sized_take(&own, sizeof own, options, "dgm_import_options", "dgm_import_default", err));
    return dgm_import_run(format, path, output, &own, opens, err);
}

const char *dgm_import_recognise(const char *path, const char **what)
{
    const dgm_foreign kind = path ? dgm_foreign_kind(path) : DGM_FOREIGN_NONE;
    if (what) *what = dgm_foreign_what(kind);
    const dgm_importer *importer = dgm_importer_named(dgm_foreign_importer(kind));
    return importer ? importer->info.name : NULL;
}

const dgm_import_format *dgm_import_format_at(size_t i)
{
    for (size_t n = 0; dgm_importers[n].run; n++)
        if (n == i) return &dgm_importers[n].info;
    return NULL;
}
