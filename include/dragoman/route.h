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

// ---- files for one direction --------------------------------------------------------------------

// Of "en-de=FILE", a file for lines from English to German, as dgm_settings.terms and phrase_system have them, the path
// alone; of "FILE" the text itself.
DGM_API const char *dgm_directed_path(const char *text);
// Items of "en-de=FILE,fr-de=FILE", one a call: the next one from *list on, which moves. *item: NULL behind the last;
// dgm_string_free.
DGM_API dgm_status dgm_directed_item(const char **list, char **item, dgm_error *error);

// ---- translating ------------------------------------------------------------------------------

typedef struct dgm_route_options {
    size_t size;
    // Languages by any name. source "auto": that of every line (dgm_detect, among those that can be translated), and
    // what is in the target language already stays as it is. target NULL, with "auto" only: the default model's.
    const char *source, *target;
    const char *model; // path of the one model to use, for both steps; NULL: those of dgm_models_find
    // Through a third language: so many translations of the first model are translated by the second, 1 to 64, and the
    // best of all is the one with the highest sum of both scores. 0: 1.
    int32_t pivot_nbest;
    const dgm_settings *settings; // of all models; source, target and direction_later are not looked at. NULL: defaults
    // In place of `model`: several, each step is that of all of them that translate its direction, together. Paths as
    // in dgm_open_ensemble; one that has no part in any step is an error.
    const dgm_member *members;
    size_t member_count;
    // 1, with models alone: every line says its direction (dgm_input.direction), and goes through a third language
    // where the models do not have it; what it leaves out is source and target, which may be NULL. With source "auto"
    // the language of a line that says none, or "auto", is found out. Default 0.
    int32_t direction_later;
} dgm_route_options;

DGM_API void dgm_route_init(dgm_route_options *options, size_t size);
static inline void dgm_route_default(dgm_route_options *options)
{
    dgm_route_init(options, sizeof *options);
}

// Which routes these options mean, without loading anything: one, or with "auto" one for every language that can be
// translated. DGM_ERR_UNSUPPORTED where there is none. With direction_later: all through a third language, or none.
DGM_API dgm_status dgm_route_plan(const dgm_route_options *options, dgm_route_list **list, dgm_error *error);

typedef struct dgm_route dgm_route;

// Loads the models of dgm_route_plan, each file once for each step. Links of tokens cannot go through two models and
// are refused here.
//
// What a translation must hold concerns the last of two steps: its prefix, constraints, evidence, lattice, and what
// settings.phrase_system says, which reads the text in the third language. Where a term (of settings.terms, or
// "SOURCE => TARGET" of a line) stands in the line itself, its target is forced into the translation; the first step is
// free. settings.keep holds in both.
DGM_API dgm_status dgm_route_open(dgm_route **route, const dgm_route_options *options, dgm_error *error);
// A route of one translator, which stays the caller's and is closed after it: for programs that have both.
DGM_API dgm_status dgm_route_of(dgm_route **route, dgm_translator *translator, dgm_error *error);
DGM_API void dgm_route_close(dgm_route **route); // after every job was waited for
// Its translators, from 0, the one that writes the translations first; NULL behind the last.
DGM_API dgm_translator *dgm_route_translator(const dgm_route *route, size_t index);

// As dgm_submit, dgm_job_done, dgm_job_share and dgm_wait (dragoman.h). Of two steps the second begins for all lines of
// a job when the first is done, at the next call for that job: two jobs in flight keep both models at work.
// dgm_input.direction is not looked at unless direction_later is 1. Scores of two steps are the sum of both; links are
// those of the first and the second, one behind the other; dgm_translation.pivot is the text between them.
// dgm_result.language is what was found.
typedef struct dgm_route_job dgm_route_job;
DGM_API dgm_status dgm_route_submit(dgm_route *route, const dgm_input *inputs, size_t count, dgm_route_job **job,
                                    dgm_error *error);
DGM_API size_t dgm_route_done(dgm_route_job *job);
DGM_API double dgm_route_share(dgm_route_job *job);
// As dgm_wait_for: 1 when all lines are done, or dgm_route_wait has something to say.
DGM_API int dgm_route_wait_for(dgm_route_job *job, int64_t milliseconds);
DGM_API void dgm_route_cancel(dgm_route_job **job); // instead of dgm_route_wait: ends a job without results
DGM_API dgm_status dgm_route_wait(dgm_route_job **job, dgm_results **results, dgm_error *error);
DGM_API dgm_status dgm_route_translate(dgm_route *route, const dgm_input *inputs, size_t count, dgm_results **results,
                                       dgm_error *error);

struct dgm_lmbr_tune_options; // evidence.h
// dgm_lmbr_set for all steps that read evidence.
DGM_API dgm_status dgm_route_lmbr_set(dgm_route *route, const dgm_lmbr *lmbr, dgm_error *error);
// dgm_lmbr_tune of a route: of two steps the weights are those of the last one, and BLEU is that of what it writes; of
// several directions they are the same for all. Phrase-based systems are asked in every trial, except for a route of
// one translator.
DGM_API dgm_status dgm_lmbr_tune_route(dgm_route *route, const dgm_input *inputs, const dgm_line *references,
                                       size_t count, const struct dgm_lmbr_tune_options *options, dgm_lmbr *weights,
                                       double *bleu, dgm_error *error);

#ifdef __cplusplus
}
#endif
#endif
