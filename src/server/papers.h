// SPDX-License-Identifier: MIT
// Documents of a request: opened, their lines translated as one task, written again (dragoman/document.h).
#ifndef DGM_SERVER_PAPERS_H
#define DGM_SERVER_PAPERS_H

#include "dragoman/document.h"
#include "server/task.h"

// What becomes of it. DGM_OK: outputs[count], which are the callee's to free; else why. Called once, on a handler
// thread.
typedef void (*dgm_papers_done)(void *user, dgm_status status, const dgm_error *err, dgm_writer *outputs,
                                size_t count);

typedef struct dgm_papers_spec {
    const dgm_task_text *texts; // the documents, any bytes
    size_t count;
    // They are UTF-8, whatever they say of themselves, and so is what becomes of them.
    bool utf8;
    const char *name, *format, *columns; // as dgm_document_open and its options take them; NULL: not said
    const char *ignore_tags, *splitting_tags, *inline_tags; // of XML, as dgm_document_options has them; NULL: none
    bool no_outline;
    const char *source, *target; // codes of the pool
    const char *model;           // as dgm_task_spec has it
    dgm_termbook *const *books;  // as dgm_task_spec has them, and the settings
    size_t book_count;
    const dgm_task_setting *settings;
    size_t setting_count;
    int64_t timeout_ms; // 0: options.request_seconds
    bool bill;          // its characters become the request's, and are taken from the quota of its key (usage.h)
    dgm_papers_done done;
    // How many lines of all are translated; from threads of the library, never two at once. NULL: nobody asks.
    void (*progress)(void *user, size_t lines, size_t all);
    void *user;
} dgm_papers_spec;

// On failure `done` is not called, nor where the quota did not suffice and the request was answered. *format: of the
// first document, static memory; NULL: not wanted.
dgm_status dgm_papers_start(dgm_request *q, const dgm_papers_spec *spec, const char **format, dgm_error *err);
// Some of the text of the first document, to detect its language by; languages of the spec are not looked at.
dgm_status dgm_papers_sample(const dgm_papers_spec *spec, dgm_writer *out, dgm_error *err);

#endif
