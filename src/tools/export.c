// SPDX-License-Identifier: MIT
// `dragoman export`: the public side of the exporters in export/; see dragoman/models.h.
#include "base/sized.h"
#include "dragoman/tools.h"

#include "export/export.h"

void dgm_export_init(dgm_export_options *out, size_t size)
{
    const dgm_export_options own = {0};
    dgm_sized_give(out, size, &own, sizeof own);
}

dgm_status dgm_export(const char *format, const char *model, const char *folder, const dgm_export_options *options,
                      dgm_error *err)
{
    DGM_FAIL_IF(!format || !model || !folder, err, DGM_ERR_ARGUMENT, "export needs a format, a model and a folder");
    dgm_export_options own;
    dgm_export_default(&own);
    DGM_TRY(dgm_sized_take(&own, sizeof own, options, "dgm_export_options", "dgm_export_default", err));
    return dgm_export_run(format, model, folder, &own, err);
}

const dgm_import_format *dgm_export_format_at(size_t i)
{
    for (size_t n = 0; dgm_exporters[n].run; n++)
        if (n == i) return &dgm_exporters[n].info;
    return NULL;
}
