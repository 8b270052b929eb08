// SPDX-License-Identifier: MIT
// `dragoman devices`: what this machine can compute on.
#include "dragoman/devices.h"

#include <stdio.h>

#include "backend/device.h"
#include "base/sized.h"

static void fill(dgm_device_info *d, const dgm_backend_props *p, const char *problem)
{
    *d = (dgm_device_info){.memory = p->memory, .memory_free = p->memory_free};
    snprintf(d->name, sizeof d->name, "%s", p->name);
    snprintf(d->title, sizeof d->title, "%s", p->title);
    snprintf(d->problem, sizeof d->problem, "%s", problem);
    dgm_precision_list(p->precisions, d->precisions, sizeof d->precisions);
}

size_t dgm_devices_sized(dgm_device_info *devices, size_t room, size_t size)
{
    size_t count = 0;
    dgm_backend_props props;
    dgm_error why;
    bool broken;
    for (; dgm_backend_probe((int)count, &props, &broken, &why); count++) {
        if (count >= room) continue;
        dgm_device_info own;
        fill(&own, &props, broken ? why.text : "");
        dgm_sized_give((char *)devices + count * size, size, &own, sizeof own);
    }
    return count;
}
