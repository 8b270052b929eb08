// SPDX-License-Identifier: MIT
// Dragoman tools: from language to language with the models that are there, through a third language where it takes
// one, from a language that is found out for every line. Conventions as in tools.h.
#ifndef DRAGOMAN_ROUTE_H
#define DRAGOMAN_ROUTE_H

#include "dragoman/common.h"

#ifdef __cplusplus
extern "C" {
#endif

// ---- which there are --------------------------------------------------------------------------

typedef struct dgm_route_entry {
    size_t size;
    const char *source, *target; // as the models write them
    const char *pivot;           // the language between them; NULL: one model translates directly
    const char *first, *second;  // paths of the models; second NULL: there is one
} dgm_route_entry;

typedef struct dgm_route_list {
    size_t size;
    const dgm_route_entry *const *items; // direct ones first
    size_t count;
} dgm_route_list;

// Every direction that the models of dgm_models_find translate, and those that take two of them. Of several models
// for a direction it is the one of dgm_models_choose; of several languages between two, English, or the first that the
// models with the fewest languages have.
DGM_API dgm_status dgm_routes_find(dgm_route_list **list, dgm_error *error);
DGM_API void dgm_routes_free(dgm_route_list **list);

#ifdef __cplusplus
}
#endif
#endif
