// SPDX-License-Identifier: MIT
// A device as a shared object: the CPU under another name, with a copy of its table.
#include <stdio.h>

#include "backend/backend_ops.h"

__attribute__((visibility("default"))) const dgm_device_driver *dragoman_device(void);

static const dgm_backend_ops *cpu; // its own functions, linked into this object
static dgm_backend_ops table;
static dgm_backend_props props;

static const dgm_backend_props *properties(const dgm_backend *b)
{
    (void)b;
    return &props;
}

static bool probe(int index, dgm_backend_props *out)
{
    if (!dgm_cpu_driver.probe(index, out)) return false;
    snprintf(out->name, sizeof out->name, "echo");
    return true;
}

static dgm_status open_device(dgm_backend **b, const char *unit, dgm_error *err)
{
    DGM_TRY(dgm_cpu_driver.open(b, unit, err));
    cpu = *(const dgm_backend_ops **)*b;
    table = *cpu;
    table.properties = properties;
    probe(0, &props);
    *(const dgm_backend_ops **)*b = &table;
    return DGM_OK;
}

const dgm_device_driver *dragoman_device(void)
{
    static const dgm_device_driver driver = {.interface = DGM_DEVICE_INTERFACE,
                                             .ops_size = sizeof(dgm_backend_ops),
                                             .name = "echo",
                                             .probe = probe,
                                             .open = open_device};
    return &driver;
}
