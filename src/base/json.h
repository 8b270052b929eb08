// SPDX-License-Identifier: MIT
// JSON through jansson, with its memory routed through base/mem.h (counted, can be made to fail)
// and with checked look-ups in objects, in the manner of format/gguf.h.
//
// Limits: jansson refuses nesting deeper than 2048, invalid UTF-8 and NUL in strings; we refuse
// duplicate keys too.
#ifndef DGM_BASE_JSON_H
#define DGM_BASE_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

// Routes jansson's allocations; called by the functions below. Call it yourself before building
// values with jansson directly. Cheap after the first time, thread-safe.
void dgm_json_init(void);

// An object or array of at most 128 MiB of text. The caller releases it with json_decref.
dgm_status dgm_json_parse(json_t **out, const void *data, size_t size, dgm_error *err);
// The same from a file; messages name the path.
dgm_status dgm_json_read(json_t **out, const char *path, dgm_error *err);

// As text that ends with NUL, to be freed with dgm_free; NULL: no memory, or value NULL. Flags are those of jansson.
char *dgm_json_text(const json_t *value, size_t flags);

// Values of an object. Absent or null: *out keeps its value and the result is DGM_OK; callers that
// need the key test dgm_json_has first. Wrong type or out of range: DGM_ERR_FORMAT, key named.
bool dgm_json_has(const json_t *object, const char *key);
dgm_status dgm_json_int(const json_t *object, const char *key, int64_t min, int64_t max,
                        int64_t *out, dgm_error *err);
dgm_status dgm_json_real(const json_t *object, const char *key, double min, double max, double *out,
                         dgm_error *err);
dgm_status dgm_json_bool(const json_t *object, const char *key, bool *out, dgm_error *err);
dgm_status dgm_json_string(const json_t *object, const char *key, const char **out, dgm_error *err);

#endif
