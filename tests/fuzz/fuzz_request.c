// SPDX-License-Identifier: MIT
// Fuzz target: requests to the server. The first byte chooses the endpoint and the type of the body, the second
// whether the
// rest is a path and a query instead; the rest is the body. The server has no models, so that every handler reads
// what it is
// given and answers at once.
#define _GNU_SOURCE
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "server/form.h"
#include "server/server_private.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static dgm_server *server;

static void open_server(void)
{
    static char folder[] = "/tmp/dragoman-fuzz-XXXXXX";
    dgm_server_options o;
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
    q->path = strchr(route->pattern, '*') ? "/download_file/x" : route->pattern;
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
    else
        ask(dgm_route_at(data[0] % rows), types[data[1] % 4], data + 2, size - 2);
    return 0;
}
