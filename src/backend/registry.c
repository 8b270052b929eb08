// SPDX-License-Identifier: MIT
// The devices this program knows, and those it finds as shared objects.
//
// A name is KIND[:UNIT]. A kind that is built in has its driver in the table; every other one is a
// shared object (base/plugin.h), opened when it is asked for.
#define _GNU_SOURCE // PATH_MAX
#include <ctype.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backend/backend_ops.h"
#include "base/plugin.h"

typedef struct device_row {
    const char *name;
    const dgm_device_driver *driver; // NULL: a shared object
} device_row;

// In the order in which they are listed.
static const device_row rows[] = {
    {"cpu", &dgm_cpu_driver},
    {"cuda", NULL},
};

enum { ROWS = sizeof rows / sizeof rows[0] };

static dgm_status load_plugin(const char *kind, const char *path, const dgm_device_driver **out,
                              dgm_error *err)
{
    void *symbol = NULL;
    DGM_TRY(dgm_plugin_load(path, DGM_DEVICE_ENTRY, "device", kind, &symbol, err));
    dgm_device_entry entry;
    memcpy(&entry, &symbol, sizeof entry); // ISO C has no cast from an object to a function
    const dgm_device_driver *d = entry();
    DGM_FAIL_IF(!d, err, DGM_ERR_UNSUPPORTED, "device %s: %s gave no table of operations", kind,
                path);
    DGM_FAIL_IF(d->interface != DGM_DEVICE_INTERFACE || d->ops_size != sizeof(dgm_backend_ops), err,
                DGM_ERR_UNSUPPORTED,
                "device %s: %s is of another version of dragoman (its interface is %u with %u "
                "bytes, this is %d with %zu)",
                kind, path, (unsigned)d->interface, (unsigned)d->ops_size, DGM_DEVICE_INTERFACE,
                sizeof(dgm_backend_ops));
    *out = d;
    return DGM_OK;
}

// ---- names --------------------------------------------------------------------------------------

static const device_row *find_row(const char *kind)
{
    for (int i = 0; i < ROWS; i++)
        if (strcmp(rows[i].name, kind) == 0) return &rows[i];
    return NULL;
}

// Kinds are words: nothing that could lead to another folder.
static bool is_kind(const char *kind)
{
    for (const char *c = kind; *c; c++)
        if (!islower((unsigned char)*c) && !isdigit((unsigned char)*c)) return false;
    return kind[0] != '\0';
}

// "KIND:UNIT" -> both; *unit points into name, NULL: none.
static dgm_status split_name(const char *name, char kind[DGM_DEVICE_NAME], const char **unit,
                             dgm_error *err)
{
    size_t n = strcspn(name, ":");
    snprintf(kind, DGM_DEVICE_NAME, "%.*s", (int)n, name);
    const bool ends = name[n] == ':' && !name[n + 1];
    DGM_FAIL_IF(n >= DGM_DEVICE_NAME || !is_kind(kind) || ends, err, DGM_ERR_ARGUMENT,
                "unknown device '%s': it must be auto, cpu[:LEVEL] or cuda[:NUMBER]", name);
    *unit = name[n] == ':' ? name + n + 1 : NULL;
    return DGM_OK;
}

static dgm_status find_driver(const char *kind, const dgm_device_driver **out, dgm_error *err)
{
    const device_row *row = find_row(kind);
    char path[PATH_MAX];
    if (row && row->driver) {
        *out = row->driver;
        return DGM_OK;
    }
    if (dgm_plugin_find(kind, path, sizeof path)) return load_plugin(kind, path, out, err);
    DGM_FAIL_IF(!row, err, DGM_ERR_UNSUPPORTED,
                "unknown device '%s': it must be auto, cpu[:LEVEL] or cuda[:NUMBER]", kind);
    return dgm_fail(err, DGM_ERR_UNSUPPORTED,
                    "device %s is not installed: there is no libdragoman-%s.so %s", kind, kind,
                    dgm_plugin_where());
}

dgm_status dgm_backend_open(dgm_backend **out, const char *name, const char *unit, dgm_error *err)
{
    *out = NULL;
    char kind[DGM_DEVICE_NAME];
    const char *named = NULL;
    const dgm_device_driver *driver = NULL;
    DGM_TRY(split_name(name, kind, &named, err));
    DGM_FAIL_IF(named && unit && strcmp(named, unit) != 0, err, DGM_ERR_ARGUMENT,
                "device '%s' names a level or number already, so '%s' cannot be given too", name,
                unit);
    DGM_TRY(find_driver(kind, &driver, err));
    return driver->open(out, named ? named : unit, err);
}

// ---- what there is ------------------------------------------------------------------------------

// Opening it says why a device cannot be used. unit: which one, or NULL.
static void explain(const dgm_device_driver *d, const char *unit, dgm_error *why)
{
    dgm_backend *none = NULL;
    if (d->open(&none, unit, why) == DGM_OK) dgm_backend_close(&none);
}

bool dgm_backend_probe(int index, dgm_backend_props *props, bool *broken, dgm_error *why)
{
    memset(props, 0, sizeof *props);
    *broken = false;
    for (int i = 0; i < ROWS; i++) {
        const dgm_device_driver *d = rows[i].driver;
        char path[PATH_MAX];
        if (!d && !dgm_plugin_find(rows[i].name, path, sizeof path)) continue;
        if (!d && load_plugin(rows[i].name, path, &d, why) != DGM_OK) {
            if (index-- > 0) continue;
            snprintf(props->name, sizeof props->name, "%s", rows[i].name);
            *broken = true;
            return true;
        }
        int n = 0;
        for (; d->probe(n, props); n++) {
            if (index-- > 0) continue;
            *broken = props->precisions == 0;
            const char *colon = strchr(props->name, ':');
            if (*broken) explain(d, colon ? colon + 1 : NULL, why);
            return true;
        }
        if (n > 0 || index-- > 0) continue;
        explain(d, NULL, why); // it is installed, and there is nothing that it can use
        snprintf(props->name, sizeof props->name, "%s", rows[i].name);
        *broken = true;
        return true;
    }
    return false;
}

// Name of the first device beside the CPU with `need` bytes free, and those that its workers take in any case; else the
// CPU's.
static void choose(uint64_t need, char name[DGM_DEVICE_NAME])
{
    dgm_backend_props p;
    bool broken;
    for (int i = 0; dgm_backend_probe(i, &p, &broken, NULL); i++) {
        if (broken || strncmp(p.name, "cpu", 3) == 0 || p.memory_free < need) continue;
        if (p.memory_free - need < p.worker_bytes * (uint64_t)(p.workers > 1 ? p.workers : 1)) continue;
        snprintf(name, DGM_DEVICE_NAME, "%s", p.name);
        return;
    }
    snprintf(name, DGM_DEVICE_NAME, "cpu");
}

dgm_status dgm_device_open(dgm_backend **b, const char *device, const char *level, uint64_t need,
                           dgm_error *err)
{
    char chosen[DGM_DEVICE_NAME];
    const char *name = device && device[0] ? device : "cpu";
    if (strcmp(name, "auto") == 0) {
        choose(need, chosen);
        name = chosen;
    }
    const bool cpu = strncmp(name, "cpu", 3) == 0;
    if (cpu && !level && !strchr(name, ':')) level = getenv("DRAGOMAN_CPU");
    if (!cpu || (level && !level[0])) level = NULL;
    return dgm_backend_open(b, name, level, err);
}
