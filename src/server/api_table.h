// SPDX-License-Identifier: MIT
// What the endpoints take and give, one row each beside their row of the routes: the fields of bodies and queries, and
// the answer. Requests are checked by it, and /v1/openapi.json is made of it.
#ifndef DGM_SERVER_API_TABLE_H
#define DGM_SERVER_API_TABLE_H

#include "server/route.h"

enum {
    DGM_TAKES_JSON = 1,
    DGM_TAKES_FORM = 2,       // application/x-www-form-urlencoded
    DGM_TAKES_MULTIPART = 4,  // multipart/form-data
    DGM_TAKES_QUERY = 8,      // behind "?"
    DGM_TAKES_JSON_LINES = 16 // application/x-ndjson, each line with these fields
};

typedef struct dgm_api_field {
    const char *name;
    const char *shape; // shape.h
    bool required;
    bool query; // always behind "?", whatever the body is
    const char *about;
} dgm_api_field;

typedef struct dgm_api_row {
    const char *method, *pattern; // of the route
    unsigned takes;
    bool closed;                 // fields with other names are refused
    const dgm_api_field *fields; // ends with a row without a name; NULL: none
    const char *path;            // what "*" of the pattern means; NULL: there is none
    int status;                  // of an answer without error
    const char *type;            // of it, several with commas between them; NULL: there is no body
    const char *answer;          // its shape, where the first of them is JSON
    const char *errors;          // status of errors that are its own, beside those of every endpoint: "403 404"
} dgm_api_row;

// Row `index`, from 0; NULL behind the last.
const dgm_api_row *dgm_api_row_at(size_t index);
const dgm_api_row *dgm_api_row_of(const dgm_route *route); // NULL: it has none

// Is `name` a field of the row?
const dgm_api_field *dgm_api_field_of(const dgm_api_row *row, const char *name);

#endif
