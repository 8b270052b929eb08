// SPDX-License-Identifier: MIT
// What JSON values look like, in words that people write into tables and programs read:
//
//     string  string+ (not empty)  integer  integer(0,64)  number(0,1)  boolean  null  any  binary (a file)
//     'text'|'html'      one of these          [string]         an array       [string;1,50]  of 1 to 50
//     {name:string,score?:number}   an object, "?": may be missing    {*:any}   one with any names
//     #Name              a shape with a name   string|[string]  either
//
// One description serves both: requests are checked by it, and the OpenAPI document is made of it.
#ifndef DGM_SERVER_SHAPE_H
#define DGM_SERVER_SHAPE_H

#include "server/json_out.h"

// Does the value look so?
bool dgm_shape_fits(const char *shape, const json_t *value);
// As JSON Schema.
void dgm_shape_put(dgm_json_out *j, const char *key, const char *shape);
// The same with a description.
void dgm_shape_put_about(dgm_json_out *j, const char *key, const char *shape, const char *about);

// Shapes with names; NULL behind the last.
typedef struct dgm_named_shape {
    const char *name, *shape;
} dgm_named_shape;
const dgm_named_shape *dgm_named_shape_at(size_t index);

#endif
