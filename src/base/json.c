// SPDX-License-Identifier: MIT
// JSON reading; see json.h. Used by the importers and whatever else reads or writes JSON.
//
// jansson's parser does not survive a failed allocation (2.14 follows a null pointer). So while it
// parses, a failed allocation is served from pages reserved beforehand, enough for any document of
// that size, and the failure is reported after it has returned. The pages cost address space only.
#include "base/json.h"

#include <math.h>
#include <pthread.h>
#include <string.h>

#include "base/mapfile.h"
#include "base/mem.h"

#define FILE_MAX ((size_t)128 << 20)
// jansson's most for a byte of text is an empty object in three bytes: 200 bytes in two blocks.
#define RESERVE_PER_BYTE 256
#define RESERVE_MIN 65536

static _Thread_local struct {
    uint8_t *base;
    size_t size, used;
    bool hit; // an allocation failed
} reserve;

static pthread_once_t once = PTHREAD_ONCE_INIT;

static void *json_allocate(size_t size)
{
    void *ptr = dgm_malloc(size);
    if (ptr) return ptr;
    reserve.hit = true;
    size_t need = (size + 63) / 64 * 64;
    if (!reserve.base || need > reserve.size - reserve.used) return NULL;
    ptr = reserve.base + reserve.used;
    reserve.used += need;
    return ptr;
}

static void json_release(void *ptr)
{
    uintptr_t at = (uintptr_t)ptr, base = (uintptr_t)reserve.base;
    if (reserve.base && at >= base && at < base + reserve.size) return;
    dgm_free(ptr);
}

static void route(void)
{
    json_set_alloc_funcs(json_allocate, json_release);
    json_object_seed(0); // else the first object does it, and several threads may have one
}

void dgm_json_init(void)
{
    pthread_once(&once, route);
}

dgm_status dgm_json_parse(json_t **out, const void *data, size_t size, dgm_error *err)
{
    dgm_json_init();
    *out = NULL;
    if (size >= 3 && memcmp(data, "\xef\xbb\xbf", 3) == 0) { // the mark that editors of Windows put first
        data = (const char *)data + 3;
        size -= 3;
    }
    DGM_FAIL_IF(size > FILE_MAX, err, DGM_ERR_FORMAT, "more than 128 MiB of JSON");
    memset(&reserve, 0, sizeof reserve);
    reserve.size = size * RESERVE_PER_BYTE + RESERVE_MIN;
    reserve.base = dgm_pages_reserve(reserve.size);
    if (!reserve.base) return dgm_no_memory(err);
    json_error_t error;
    json_t *value = json_loadb(size ? data : "", size, JSON_REJECT_DUPLICATES, &error);
    bool failed = reserve.hit;
    if (failed) {
        json_decref(value);
        value = NULL;
    }
    dgm_pages_release(reserve.base, reserve.size);
    memset(&reserve, 0, sizeof reserve);
    if (failed) return dgm_no_memory(err);
    DGM_FAIL_IF(!value, err, DGM_ERR_FORMAT, "not valid JSON (line %d: %s)", error.line,
                error.text);
    *out = value;
    return DGM_OK;
}

dgm_status dgm_json_read(json_t **out, const char *path, dgm_error *err)
{
    *out = NULL;
    dgm_mapfile f;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    dgm_status st = dgm_json_parse(out, f.data, f.size, err);
    dgm_mapfile_close(&f);
    if (st != DGM_OK) dgm_error_prefix(err, "'%s'", path);
    return st;
}

// json_dumps would go on after a key for which its buffer could not grow, and give a text without it. Here
// the size is counted first.
char *dgm_json_text(const json_t *value, size_t flags)
{
    const size_t size = value ? json_dumpb(value, NULL, 0, flags) : 0;
    char *text = size ? dgm_malloc(size + 1) : NULL;
    if (!text) return NULL;
    if (json_dumpb(value, text, size, flags) != size) {
        dgm_free(text);
        return NULL;
    }
    text[size] = 0;
    return text;
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
