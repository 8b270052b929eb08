// SPDX-License-Identifier: MIT
// JSON reading; see json.h. Used by the importers and whatever else reads or writes JSON.
//
// jansson reports some failed allocations as syntax errors, so the allocation hook remembers them
// per thread and the result is corrected.
#include "base/json.h"

#include <math.h>
#include <pthread.h>

#include "base/mapfile.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)256 << 20)

static _Thread_local bool allocation_failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *json_allocate(size_t size)
{
    void *ptr = dgm_malloc(size);
    if (!ptr) allocation_failed = true;
    return ptr;
}

static void route(void)
{
    json_set_alloc_funcs(json_allocate, dgm_free);
}

void dgm_json_init(void)
{
    pthread_once(&once, route);
}

dgm_status dgm_json_parse(json_t **out, const void *data, size_t size, dgm_error *err)
{
    dgm_json_init();
    *out = NULL;
    allocation_failed = false;
    json_error_t error;
    json_t *value = json_loadb(size ? data : "", size, JSON_REJECT_DUPLICATES, &error);
    if (!value) {
        if (allocation_failed) return dgm_no_memory(err);
        return dgm_fail(err, DGM_ERR_FORMAT, "not valid JSON (line %d: %s)", error.line,
                        error.text);
    }
    *out = value;
    return DGM_OK;
}

dgm_status dgm_json_read(json_t **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    dgm_status st;
    if (f.size > FILE_MAX)
        st = dgm_fail(err, DGM_ERR_FORMAT, "larger than 256 MiB");
    else
        st = dgm_json_parse(out, f.data, f.size, err);
    dgm_mapfile_close(&f);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    return st;
}

bool dgm_json_has(const json_t *object, const char *key)
{
    const json_t *v = json_object_get(object, key);
    return v && !json_is_null(v);
}

static dgm_status wrong_type(const char *key, const char *expected, dgm_error *err)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "\"%s\" is not %s", key, expected);
}

dgm_status dgm_json_int(const json_t *object, const char *key, int64_t min, int64_t max,
                        int64_t *out, dgm_error *err)
{
    if (!dgm_json_has(object, key)) return DGM_OK;
    const json_t *v = json_object_get(object, key);
    if (!json_is_integer(v)) return wrong_type(key, "an integer", err);
    int64_t n = json_integer_value(v);
    DGM_FAIL_IF(n < min || n > max, err, DGM_ERR_FORMAT, "\"%s\" is %lld, expected %lld to %lld",
                key, (long long)n, (long long)min, (long long)max);
    *out = n;
    return DGM_OK;
}

dgm_status dgm_json_real(const json_t *object, const char *key, double min, double max, double *out,
                         dgm_error *err)
{
    if (!dgm_json_has(object, key)) return DGM_OK;
    const json_t *v = json_object_get(object, key);
    if (!json_is_number(v)) return wrong_type(key, "a number", err);
    double x = json_number_value(v);
    DGM_FAIL_IF(!isfinite(x) || x < min || x > max, err, DGM_ERR_FORMAT,
                "\"%s\" is %g, expected %g to %g", key, x, min, max);
    *out = x;
    return DGM_OK;
}

dgm_status dgm_json_bool(const json_t *object, const char *key, bool *out, dgm_error *err)
{
    if (!dgm_json_has(object, key)) return DGM_OK;
    const json_t *v = json_object_get(object, key);
    if (!json_is_boolean(v)) return wrong_type(key, "true or false", err);
    *out = json_is_true(v);
    return DGM_OK;
}

dgm_status dgm_json_string(const json_t *object, const char *key, const char **out, dgm_error *err)
{
    if (!dgm_json_has(object, key)) return DGM_OK;
    const json_t *v = json_object_get(object, key);
    if (!json_is_string(v)) return wrong_type(key, "a string", err);
    *out = json_string_value(v);
    return DGM_OK;
}
