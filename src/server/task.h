// SPDX-License-Identifier: MIT
// Tasks: texts that are translated for a request, through the fair queue (lane.h).
//
//     texts --lines, sentences--> segments --lane: turns by client, request and tokens--> engine
//           <--joined, with the white space between them-- results
//
// A handler fills a dgm_task_spec, calls dgm_task_start and returns. `done` is called once, on a handler thread,
// whatever
// happens; it reads the task, answers the request and frees the task.
#ifndef DGM_SERVER_TASK_H
#define DGM_SERVER_TASK_H

#include "server/request.h"

typedef struct dgm_task_text {
    const char *text; // UTF-8, any number of lines
    size_t size;
    const char *prefix; // of a text that is one sentence; NULL: none
    size_t prefix_size;
    const char *constraints; // as dgm_input.constraints, for every sentence; NULL: none
    size_t constraints_size;
} dgm_task_text;

typedef struct dgm_task_setting {
    const char *name, *value; // by the table of dragoman/settings.h
} dgm_task_setting;

// What is told while it runs: the translation of a segment begins so (words that were told are never taken back), and
// is this when `whole`. Texts last as long as the call; `begin` ends with NUL.
typedef struct dgm_task_told {
    size_t text, segment; // which text, which segment of it
    const char *begin;
    size_t size;
    bool whole;
    const char *source, *gap; // the segment, and the white space behind it; source NULL: it is in a language between
    size_t source_size, gap_size;
    size_t done, segments; // of the task: whole ones, this one included, and all of them
} dgm_task_told;

// From threads of the library, of a task never two at once.
typedef void (*dgm_task_partial)(void *user, const dgm_task_told *told);

typedef struct dgm_task_spec {
    const char *source, *target; // languages by any name that models know; not "auto" (dgm_pool_detect first)
    const char *model;           // name of one of the models; NULL: whichever translates so
    const dgm_task_text *texts;  // copied
    size_t count;
    int nbest;      // translations of each text; 0: 1
    bool sentences; // segments are single sentences, also where the engine would cut a line by itself
    bool whole;     // segments are whole lines, however long
    bool alignment, token_scores;
    const dgm_task_setting *settings; // of this request alone
    size_t setting_count;
    dgm_termbook *const *books; // glossaries; where several of them have a source, the first one counts
    size_t book_count;
    int64_t timeout_ms; // 0: options.request_seconds
    void (*done)(dgm_task *task, void *user);
    dgm_task_partial partial; // NULL: nobody listens
    int settle;               // as of dgm_watch
    void *user;
} dgm_task_spec;

// A line or sentence of a text. The white space behind it is text[end .. begin of the next).
typedef struct dgm_segment {
    size_t text;              // which
    size_t begin, end;        // bytes of the source
    size_t at, size;          // of its translation in the text's first translation
    const dgm_result *result; // of the engine; NULL: nothing to translate, it stays
} dgm_segment;

typedef struct dgm_task_result {
    dgm_status status; // of this text
    const char *message;
    char *const *translations; // [count] whole texts, best first; different ones
    const size_t *sizes;
    size_t count;
    const dgm_segment *segments; // in order
    size_t segment_count;
    uint32_t flags; // of all segments: DGM_LINE_...
} dgm_task_result;

// What `done` may look at. Strings live as long as the task.
typedef struct dgm_task_view {
    dgm_status status; // DGM_OK: results are there, though texts may have failed
    dgm_error error;
    const dgm_task_result *results; // [count], in the order of the texts
    size_t count;
    // that were used, as the model writes them; pivot: NULL, or the language between
    const char *model, *source, *target;
    const char *pivot;
    uint64_t characters, sentences, source_tokens, target_tokens;
    double queued, seconds; // until its first sentence was begun; until its last one was done
} dgm_task_view;

// q: whose task it is: cancelled when its client goes away, `client` takes turns; NULL: nobody's. On failure `done`
// is not
// called.
dgm_status dgm_task_start(dgm_server *server, dgm_request *q, const dgm_task_spec *spec, dgm_error *err);
const dgm_task_view *dgm_task_look(const dgm_task *task);
void dgm_task_cancel(dgm_task *task); // `done` still comes, soon, with DGM_ERR_CANCELLED
void dgm_task_free(dgm_task **task);  // in `done`; accepts NULL inside
// Answers a request whose task failed, or one of its texts did. False: all is well.
bool dgm_answer_task_failure(dgm_request *q, const dgm_task_view *view);
uint64_t dgm_task_text_characters(const dgm_task_text *text);

#endif
