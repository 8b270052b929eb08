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

dgm_status dgm_device(const char *device, char *buffer, size_t size, dgm_error *err)
{
    dgm_backend *b = NULL;
    DGM_TRY(dgm_device_open(&b, device, NULL, 0, err));
    dgm_backend_describe(b, buffer, size);
    dgm_backend_close(&b);
    return DGM_OK;
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
