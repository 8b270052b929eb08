// SPDX-License-Identifier: MIT
// JSON as it is written: objects and arrays opened and closed in order, commas put by itself, text escaped as JSON
// wants it and otherwise UTF-8 as it is.
//
//     dgm_json_out j = {0};
//     dgm_out_object(&j, NULL);
//     dgm_out_text(&j, "translatedText", text, size);
//     dgm_out_end(&j);                       {"translatedText":"..."}
//     dgm_answer_json(q, 200, &j);           with a line feed behind it
//
// key NULL: an element of an array, or the whole. Failed allocations show in the writer, once.
#ifndef DGM_SERVER_JSON_OUT_H
#define DGM_SERVER_JSON_OUT_H

#include "server/request.h"

enum { DGM_OUT_DEPTH = 32 };

typedef struct dgm_json_out {
    dgm_writer w;
    int depth;
    bool more[DGM_OUT_DEPTH]; // something stands there already
    bool array[DGM_OUT_DEPTH];
} dgm_json_out;

void dgm_out_object(dgm_json_out *j, const char *key);
void dgm_out_array(dgm_json_out *j, const char *key);
void dgm_out_end(dgm_json_out *j);
void dgm_out_text(dgm_json_out *j, const char *key, const char *text, size_t size);
void dgm_out_string(dgm_json_out *j, const char *key, const char *text); // NULL: null
void dgm_out_integer(dgm_json_out *j, const char *key, int64_t value);
void dgm_out_real(dgm_json_out *j, const char *key, double value); // as short as reads back; what is not finite: null
void dgm_out_float(dgm_json_out *j, const char *key, double value);   // the same with ".0" behind whole numbers
void dgm_out_raw(dgm_json_out *j, const char *key, const char *json); // JSON as it is
void dgm_out_bool(dgm_json_out *j, const char *key, bool value);

void dgm_answer_json(dgm_request *q, int status, dgm_json_out *j);
// Text with its quotes, into any writer.
void dgm_json_escape(dgm_writer *w, const char *text, size_t size);

#endif
