// SPDX-License-Identifier: MIT
// Which row of the table a request means; see route.h.
#include "server/route.h"

#include <string.h>

// Does the pattern mean the path? rest: what "*" stands for.
static bool fits(const char *pattern, const char *path, const char **rest)
{
    const size_t n = strcspn(pattern, "*");
    *rest = "";
    if (!pattern[n]) return strcmp(pattern, path) == 0;
    if (strncmp(pattern, path, n) != 0) return false;
    *rest = path + n;
    const size_t part = strcspn(*rest, "/");
    return pattern[n + 1] == '*' ? **rest != 0 : part && strcmp(pattern + n + 1, *rest + part) == 0;
}

static void allow(char *allowed, size_t size, const char *method)
{
    const size_t used = strlen(allowed);
    if (strstr(allowed, method) || used + strlen(method) + 3 > size) return;
    if (used) strcat(allowed, ", ");
    strcat(allowed, method);
}

// Whose errors a path that nobody knows gets.
static dgm_api api_of(const char *path)
{
    const bool version = path[0] == '/' && path[1] == 'v' && path[2] && (path[3] == '/' || !path[3]);
    if (version && path[2] == '1') return DGM_API_V1;
    return version && (path[2] == '2' || path[2] == '3') ? DGM_API_DEEPL : DGM_API_LIBRE;
}

const dgm_route *dgm_route_find(const char *method, const char *path, const char **rest, char *allowed,
                                size_t allowed_size, dgm_api *api)
{
    const bool head = strcmp(method, "HEAD") == 0;
    allowed[0] = 0;
    *api = api_of(path);
    for (size_t i = 0; dgm_route_at(i); i++) {
        const dgm_route *r = dgm_route_at(i);
        if (!fits(r->pattern, path, rest)) continue;
        if (strcmp(r->method, head ? "GET" : method) == 0) return r;
        *api = r->api;
        allow(allowed, allowed_size, r->method);
        if (strcmp(r->method, "GET") == 0) allow(allowed, allowed_size, "HEAD");
    }
    if (allowed[0]) allow(allowed, allowed_size, "OPTIONS");
    *rest = "";
    return NULL;
}
