// SPDX-License-Identifier: MIT
// Which function answers what: one table (route_table.c). A row is an endpoint; documents and logs read it, too.
#ifndef DGM_SERVER_ROUTE_H
#define DGM_SERVER_ROUTE_H

#include "server/request.h"

// How errors look that are found before a handler runs (404, 405, 413, 429, ...), and by dgm_answer_error.
typedef enum dgm_api {
    DGM_API_LIBRE = 0, // {"error": "..."}; 404, 405 and 401 are small HTML pages, as Flask's
    DGM_API_V1,        // {"error": "...", "code": "..."}
    DGM_API_DEEPL,     // {"message": "..."}
    DGM_API_PAGE       // HTML
} dgm_api;

enum {
    DGM_ROUTE_KEY = 1,     // an API key where keys are required
    DGM_ROUTE_LIMITED = 2, // counts against the limits of requests
    DGM_ROUTE_FILE = 4,    // its body may be as large as a file
    DGM_ROUTE_METRICS = 8, // only with options.metrics
    DGM_ROUTE_WEB = 16     // not with options.disable_web_ui
};

struct dgm_route {
    const char *method;  // "GET", "POST", "PUT", "PATCH", "DELETE"; GET stands for HEAD, too
    // "/translate"; "/v2/document/*/result": one "*", for what is not empty and has no slash; "/download_file/**": at
    // the end, for anything that is not empty
    const char *pattern;
    dgm_api api;
    unsigned flags;
    void (*handle)(dgm_request *q);
    const char *summary; // one line, for documents
};

// Row `index`, from 0; NULL behind the last.
const dgm_route *dgm_route_at(size_t index);
// The row for a method and a path. NULL: *allowed says which methods the path has ("GET, POST"), "" where there is no
// such path; *api whose it is. rest: what stands for "*", up to a slash, or for "**".
const dgm_route *dgm_route_find(const char *method, const char *path, const char **rest, char *allowed,
                                size_t allowed_size, dgm_api *api);

// Handlers by file, in the order of the table.
void dgm_libre_translate(dgm_request *q);
void dgm_libre_detect(dgm_request *q);
void dgm_libre_languages(dgm_request *q);
void dgm_libre_settings(dgm_request *q);
void dgm_libre_suggest(dgm_request *q);
void dgm_libre_health(dgm_request *q);
void dgm_libre_spec(dgm_request *q);
void dgm_libre_translate_file(dgm_request *q);
void dgm_libre_download_file(dgm_request *q);
void dgm_v1_translate(dgm_request *q);
void dgm_v1_bulk(dgm_request *q);
void dgm_v1_detect(dgm_request *q);
void dgm_v1_languages(dgm_request *q);
void dgm_v1_models(dgm_request *q);
void dgm_v1_settings(dgm_request *q);
void dgm_v1_stats(dgm_request *q);
void dgm_v1_document(dgm_request *q);
void dgm_v1_openapi(dgm_request *q);
void dgm_metrics_answer(dgm_request *q);
void dgm_page_get(dgm_request *q);
void dgm_page_post(dgm_request *q);
void dgm_page_status_get(dgm_request *q);
void dgm_deepl_translate(dgm_request *q);
void dgm_deepl_languages(dgm_request *q);
void dgm_deepl_usage(dgm_request *q);
void dgm_deepl_upload(dgm_request *q);
void dgm_deepl_document_status(dgm_request *q);
void dgm_deepl_document_result(dgm_request *q);
void dgm_deepl_glossary_pairs(dgm_request *q);
void dgm_deepl_glossary_list(dgm_request *q);
void dgm_deepl_glossary_create(dgm_request *q);
void dgm_deepl_glossary_get(dgm_request *q);
void dgm_deepl_glossary_patch(dgm_request *q);
void dgm_deepl_glossary_delete(dgm_request *q);
void dgm_deepl_glossary_entries(dgm_request *q);
void dgm_deepl_dictionary_entries(dgm_request *q);
void dgm_deepl_dictionary_put(dgm_request *q);
void dgm_deepl_dictionary_delete(dgm_request *q);

// page.c: an error as the page shows it, with what was typed; of a request whose route is the page's.
void dgm_page_refuse(dgm_request *q, int status, const char *text);

#endif
