// SPDX-License-Identifier: MIT
// A device of another version of the program: it must be refused before anything of it is called.
#include <stdlib.h>

#include "backend/backend_ops.h"

__attribute__((visibility("default"))) const dgm_device_driver *dragoman_device(void);

static bool probe(int index, dgm_backend_props *out)
{
    (void)index;
    (void)out;
    abort();
}

static dgm_status open_device(dgm_backend **b, const char *unit, dgm_error *err)
{
    (void)b;
    (void)unit;
    (void)err;
    abort();
}

const dgm_device_driver *dragoman_device(void)
{
    static const dgm_device_driver driver = {.interface = DGM_DEVICE_INTERFACE + 1,
                                             .ops_size = sizeof(dgm_backend_ops),
                                             .name = "stale",
                                             .probe = probe,
                                             .open = open_device};
    return &driver;
}
