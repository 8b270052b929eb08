// SPDX-License-Identifier: MIT
// Private to tools/route*.c: routes, their translators and jobs.
//
//     way     from one language to the target: a step, or two
//     leg     a translator: a model file, for first steps or for last ones
//
//     lines --detect--> ways --group--> jobs of first legs --wait--> jobs of second legs --compose--> results
#ifndef DGM_TOOLS_ROUTE_PRIVATE_H
#define DGM_TOOLS_ROUTE_PRIVATE_H

#include "dragoman/tools.h"
#include "engine/engine_private.h"

typedef struct dgm_route_leg {
    const char *path; // of the plan; NULL: the caller's translator
    bool first;       // the first of two steps
    dgm_translator *t;
} dgm_route_leg;

typedef struct dgm_route_way {
    const dgm_route_entry *entry; // NULL: the caller's translator
    int first, second;            // legs; second -1: there is one step
    // Said with every line where a model of several directions is used for several of them.
    dgm_direction direction[2];
    bool directed[2];
} dgm_route_way;

struct dgm_route {
    dgm_route_list *plan; // NULL: of a translator
    dgm_route_leg *legs;
    int leg_count;
    dgm_route_way *ways;
    size_t way_count;
    const char **among; // sources of the ways and the target: what a line may be in; NULL: nothing is to be found out
    size_t among_count;
    int pivot_nbest, nbest;
};

// The lines of a job that go one way.
typedef struct dgm_route_group {
    size_t *lines; // [count] their numbers in the job
    size_t count;
    char **prefixes;    // [count] of the last step of two; NULL: none has one
    int64_t *deadlines; // [count] likewise
    dgm_job *job;       // the step at work; NULL: nothing is
    dgm_results *first; // what the first of two steps made
    dgm_results *last;
    bool second; // the last of two steps has begun
} dgm_route_group;

struct dgm_route_job {
    dgm_route *route;
    dgm_job *plain; // the only job of a route of one way; the rest is empty then
    dgm_results_box *box;
    size_t count, stayed; // lines; those that are in the target language already
    dgm_route_group *groups; // [ways]
    double begin;
    dgm_status status; // of second steps that could not begin; dgm_route_wait says why
    dgm_error error;
};

// route_result.c: results of a job's own, all empty; count of them.
dgm_status dgm_route_box(size_t count, dgm_results_box **box, dgm_error *err);
// A line that stays as it is.
dgm_status dgm_route_copy(dgm_text text, dgm_result *out, dgm_error *err);
// Moves a result of another box.
void dgm_route_move(dgm_results *from, size_t index, dgm_result *out);
// The result of two steps: item `line` of the first, items at .. at + its translations - 1 of the second.
dgm_status dgm_route_compose(dgm_results *first, size_t line, dgm_results *second, size_t at, int nbest,
                             dgm_result *out, dgm_error *err);

#endif
