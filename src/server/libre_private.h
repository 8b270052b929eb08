// SPDX-License-Identifier: MIT
// Private to LibreTranslate's API: what a request asks for.
#ifndef DGM_SERVER_LIBRE_PRIVATE_H
#define DGM_SERVER_LIBRE_PRIVATE_H

#include "server/json_out.h"
#include "server/server_private.h"

enum { DGM_LIBRE_ALTERNATIVES = 31 };

typedef struct dgm_libre_wish {
    dgm_request *request;
    const dgm_task_text *texts;
    size_t count;
    bool batch, html;
    const char *source, *target; // as they were given
    long alternatives;
    const dgm_pool_listing *listing;
    const dgm_pool_language *from, *to;
    bool detected;
    double confidence;
} dgm_libre_wish;

// The request's; released with it. NULL: it was answered.
dgm_libre_wish *dgm_libre_wish_new(dgm_request *q);
// Fills from and to, by detection where source is "auto"; is it offered? False: it was answered.
bool dgm_libre_pair(dgm_request *q, dgm_libre_wish *w);
bool dgm_libre_offered(dgm_request *q, const dgm_libre_wish *w);
bool dgm_libre_language(dgm_request *q, const char *name, const char **out);

// libre_files.c: the endings of files that can be translated, ".txt" and so on, as elements of an array.
void dgm_libre_endings(dgm_json_out *j);

#endif
