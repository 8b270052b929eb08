// SPDX-License-Identifier: MIT
// Fuzz target: requests to the server. The first byte chooses the endpoint and the type of the body, the second
// whether the rest is a path and a query or a glossary instead; the rest is the body. The server has no models, so
// that every handler reads what it is given and answers at once.
// Parsers: src/server/form.c src/server/request.c src/server/route.c src/server/dictionary.c src/server/libre.c
// Parsers: src/server/deepl_fields.c src/server/deepl_glossaries.c src/server/v1.c src/server/page.c
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/form.h"
#include "server/glossary_store.h"
#include "server/server_private.h"
#include "mutate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

// By the type of the body: JSON, a form, parts with a boundary, lines.
static size_t mutate(uint8_t *data, size_t size, size_t max, uint32_t *r)
{
    static const char *const between[] = {"", "&", "--B", "\n"};
    if (size < 3 || fuzz_below(r, 12) == 0) return LLVMFuzzerMutate(data, size, max);
    const int type = data[1] % 4;
    if (type == 0 || (type == 3 && fuzz_below(r, 2))) return 2 + fuzz_json(data + 2, size - 2, max - 2, r);
    return 2 + fuzz_fields(data + 2, size - 2, max - 2, between[type], r);
}
FUZZ_MUTATOR(mutate)

static dgm_server *server;

static void open_server(void)
{
    static char folder[64];
    dgm_server_options o;
    snprintf(folder, sizeof folder, "%s/dragoman-fuzz-XXXXXX", fuzz_scratch());
    dgm_server_default(&o);
    o.port = -1;
    o.handlers = 1;
    o.reload_seconds = 0;
    o.models_dir = mkdtemp(folder);
    if (!o.models_dir || dgm_server_open(&server, &o, NULL) != DGM_OK) abort();
}

static void ask(const dgm_route *route, const char *type, const uint8_t *data, size_t size)
{
    dgm_request *q = dgm_request_new(server);
    if (!q) return;
    q->method = route->method;
    char path[128];
    const size_t star = strcspn(route->pattern, "*");
    const char *behind = route->pattern + star;
    while (*behind == '*') behind++;
    snprintf(path, sizeof path, "%.*s%s%s", (int)star, route->pattern, route->pattern[star] ? "x" : "", behind);
    q->path = path;
    q->address = "192.0.2.1";
    dgm_field_add(q, &q->headers, "Content-Type", type, strlen(type));
    q->body = dgm_malloc(size + 1);
    if (q->body) {
        if (size) memcpy(q->body, data, size);
        q->body[size] = 0;
        q->body_size = size;
        if (dgm_server_admit(q)) dgm_server_dispatch(q);
    }
    if (q->status == 0 && !q->streams) abort(); // every request has an answer
    dgm_request_free(q);
}

static void read_path(const uint8_t *data, size_t size)
{
    char path[512];
    dgm_request *q = dgm_request_new(server);
    const size_t n = size < sizeof path - 1 ? size : sizeof path - 1;
    memcpy(path, data, n);
    path[n] = 0;
    if (q) (void)dgm_form_urlencoded(q, path, strlen(path), &q->query, NULL);
    (void)dgm_path_decode(path);
    dgm_request_free(q);
}

// Entries of a glossary, as they are read once their languages are known: into one dictionary and out again.
static void read_glossary(const uint8_t *data, size_t size, bool csv)
{
    dgm_dictionary d = {.source = ""}, again = {.source = ""};
    dgm_writer w = {0};
    if (dgm_dictionary_read(&d, (const char *)data, size, csv, NULL) == DGM_OK) {
        dgm_dictionary_write(&d, &w);
        if (dgm_dictionary_read(&again, (const char *)w.data, w.size, false, NULL) != DGM_OK ||
            again.sources.count != d.sources.count)
            abort();
    }
    dgm_dictionary_free(&d);
    dgm_dictionary_free(&again);
    dgm_writer_free(&w);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const types[] = {"application/json", "application/x-www-form-urlencoded",
                                        "multipart/form-data; boundary=B", "application/x-ndjson"};
    size_t rows = 0;
    if (!server) open_server();
    if (size < 2) return 0;
    while (dgm_route_at(rows)) rows++;
    if (data[1] == 'p')
        read_path(data + 2, size - 2);
    else if (data[1] == 'g' || data[1] == 'G')
        read_glossary(data + 2, size - 2, data[1] == 'g');
    else
        ask(dgm_route_at(data[0] % rows), types[data[1] % 4], data + 2, size - 2);
    return 0;
}
