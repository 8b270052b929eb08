// SPDX-License-Identifier: MIT
// Private to our own API: what a request asks for, and its answer as JSON.
#ifndef DGM_SERVER_V1_PRIVATE_H
#define DGM_SERVER_V1_PRIVATE_H

#include "server/json_out.h"
#include "server/server_private.h"

typedef struct dgm_v1_wish {
    dgm_request *request;
    dgm_task_text *texts;
    size_t count;
    const char *source, *target, *model; // as they were given; target NULL: the first model's
    bool html, sentences, alignment, word_scores, stream;
    int64_t alternatives, timeout_ms, settle;
    dgm_task_setting *settings;
    size_t setting_count;
    const dgm_pool_listing *listing;
    const char *from, *to; // codes
    bool detected;
    double confidence;
    // of /v1/bulk
    const json_t **ids; // [count] NULL where there is none
    size_t next;        // text of the next group
    size_t group;
} dgm_v1_wish;

// Fills it from the JSON object of a request. False: it was answered.
dgm_v1_wish *dgm_v1_wish_new(dgm_request *q);
bool dgm_v1_read(dgm_request *q, dgm_v1_wish *w);
// Terms of an array of objects (NULL: none) become a book of the request.
dgm_status dgm_v1_read_terms(dgm_request *q, const json_t *v, dgm_error *err);
// Languages, by detection where the source is "auto"; limits of characters and texts. False: it was answered.
bool dgm_v1_languages_of(dgm_request *q, dgm_v1_wish *w);
dgm_task_spec dgm_v1_spec(const dgm_v1_wish *w);

// v1_answer.c: the members of an answer, into an object that is open.
void dgm_v1_put_answer(dgm_json_out *j, const dgm_v1_wish *w, const dgm_task_view *view);
void dgm_v1_put_detected(dgm_json_out *j, const dgm_v1_wish *w);
const char *dgm_v1_code(dgm_status status); // "argument", ...

// v1_lists.c: the object of /v1/stats.
void dgm_v1_put_stats(dgm_server *s, dgm_json_out *j);

// v1_document.c: texts that are HTML
void dgm_v1_pages(dgm_request *q, dgm_v1_wish *w);

// v1_stream.c
void dgm_v1_stream(dgm_request *q, dgm_v1_wish *w);
bool dgm_v1_wants_events(const dgm_request *q); // by its header Accept
void dgm_v1_begin_events(dgm_request *q);
void dgm_v1_put_event(dgm_request *q, const char *name, dgm_json_out *j); // j: its data, which is taken over
void dgm_v1_put_error_event(dgm_request *q, dgm_status st, const dgm_error *err);

#endif
