// SPDX-License-Identifier: MIT
// `dragoman import`: the public door to the importers of format/; see dragoman/tools.h.
#include "dragoman/tools.h"

#include "format/import.h"

dgm_status dgm_import(const char *format, const char *dir, const char *output,
                      const dgm_import_options *options, dgm_error *err)
{
    DGM_FAIL_IF(!format || !dir || !output, err, DGM_ERR_ARGUMENT,
                "import needs a format, a folder and an output file");
    return dgm_import_run(format, dir, output, options, err);
}

const dgm_import_format *dgm_import_format_at(size_t i)
{
    for (size_t n = 0; dgm_importers[n].run; n++)
        if (n == i) return &dgm_importers[n].info;
    return NULL;
}
