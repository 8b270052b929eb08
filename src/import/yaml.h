// SPDX-License-Identifier: MIT
// YAML by libyaml, as a tree of jansson: settings and vocabularies of Marian.
//
// The first document is read. Keys are strings however they are quoted. Plain values that look like a number,
// true, false or null become that; everything else is a string. Aliases, keys that are no scalars, keys that
// stand twice in one mapping and nesting deeper than 64 are refused, all with line and column.
#ifndef DGM_IMPORT_YAML_H
#define DGM_IMPORT_YAML_H

#include "base/json.h"

// At most 128 MiB. An empty document gives null. The caller releases *out with json_decref.
dgm_status dgm_yaml_parse(json_t **out, const void *data, size_t size, dgm_error *err);
dgm_status dgm_yaml_read(json_t **out, const char *path, dgm_error *err); // messages name the path

#endif
