// SPDX-License-Identifier: MIT
// Private to tools/route*.c: routes, their translators and jobs.
//
//     way     from one language to the target: a step, or two
//     leg     a translator: a model file or several, for first steps or for last ones
//     kept    what the last of two steps needs of a line
//
//     lines --detect--> ways --group--> jobs of first legs --wait--> jobs of second legs --compose--> results
//                                |                                     ^
//                                +-------------- kept -----------------+
#ifndef DGM_TOOLS_ROUTE_PRIVATE_H
#define DGM_TOOLS_ROUTE_PRIVATE_H

#include "constraint/glossary.h"
#include "dragoman/tools.h"
#include "engine/engine_private.h"

typedef enum dgm_route_step {
    DGM_STEP_ONLY,
    DGM_STEP_FIRST,
    DGM_STEP_LAST // as the only one, unless a glossary is read: its terms are those of the line, not of what this reads
} dgm_route_step;

typedef struct dgm_route_leg {
    dgm_member members[DGM_PARTS_MAX]; // paths are those of the plan or the caller's options
    size_t member_count;               // 0: the caller's translator
    dgm_route_step step;
    dgm_translator *t;
} dgm_route_leg;

typedef struct dgm_route_way {
    const dgm_route_entry *entry; // NULL: the caller's translator, or lines have their own directions
    int first, second;            // legs; second -1: there is one step
    dgm_glossary *glossary;       // of two steps: settings.terms; NULL: none
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
    bool direction_later; // the first way is that of all directions which the models have
    char *source, *target; // of lines that do not say theirs; NULL: not known
    bool detect;           // the source is found out where a line does not say it
};

// Of a line, whose caller may free it by the time the first step is done: what the last one must write.
typedef struct dgm_route_kept {
    dgm_input in; // without text; it points to what is below, which `block` and `demands` hold
    dgm_evidence evidence;
    dgm_lattice_text lattice;
    void *block;
    char *demands, *notice; // notice: terms that are not in the line; NULL: none
    uint32_t flags;
} dgm_route_kept;

// The lines of a job that go one way.
typedef struct dgm_route_group {
    size_t *lines; // [count] their numbers in the job
    size_t count;
    dgm_route_kept *kept; // [count] where there are two steps
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
    dgm_direction *said;     // [count] where lines say their directions, with what was found
    double begin;
    dgm_status status; // of second steps that could not begin; dgm_route_wait says why
    dgm_error error;
};

// What lines into a language may be in: all that the route translates into it, and it.
typedef struct dgm_route_sources {
    char target[64]; // as a line names it; "": any
    const char **among;
    size_t count;
    const char *into; // the target as the models write it, also the last of `among`; NULL: any
} dgm_route_sources;

// route_detect.c: every target that lines of a job name, once. Free also what failed.
typedef struct dgm_route_detector {
    dgm_route_sources *items;
    size_t count, cap;
} dgm_route_detector;
void dgm_route_detector_free(dgm_route_detector *d);
// The language of a text among these; NULL: nothing is known, as of one without letters.
dgm_status dgm_route_language(dgm_text text, const char *const *among, size_t count, const char **language,
                              dgm_error *err);
// Fills d->source of a line that does not say it; *same: it is in the target language already.
dgm_status dgm_route_detect(const dgm_route *r, dgm_route_detector *known, dgm_text text, dgm_direction *d,
                            const char **language, bool *same, dgm_error *err);

// routes.c: does a model file translate in this direction, by its languages' codes?
dgm_status dgm_route_offers(const char *path, const char *source, const char *target, bool *offers, dgm_error *err);
// route_kept.c: takes what belongs to the last of two steps out of a line. Free also what failed.
dgm_status dgm_route_keep(const dgm_route_way *way, dgm_input *in, dgm_route_kept *out, dgm_error *err);
void dgm_route_kept_free(dgm_route_kept *kept);

// route_result.c: results of a job's own, all empty; count of them.
dgm_status dgm_route_box(size_t count, dgm_results_box **box, dgm_error *err);
// A line that stays as it is.
dgm_status dgm_route_copy(dgm_text text, dgm_result *out, dgm_error *err);
// Moves a result of another box.
void dgm_route_move(dgm_results *from, size_t index, dgm_result *out);
// The result of two steps: item `line` of the first, items at .. at + its translations - 1 of the second.
dgm_status dgm_route_compose(dgm_results *first, size_t line, dgm_results *second, size_t at,
                             const dgm_route_kept *kept, int nbest, dgm_result *out, dgm_error *err);

#endif
