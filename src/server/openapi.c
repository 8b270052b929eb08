// SPDX-License-Identifier: MIT
// /v1/openapi.json: every endpoint as OpenAPI 3.1, made of the routes, the table of fields and answers, the languages
// of the models and the settings of requests, so that it says what this server does.
#include <stdio.h>
#include <string.h>

#include "dragoman/common.h"
#include "dragoman/settings.h"
#include "server/api_table.h"
#include "server/server_private.h"
#include "server/shape.h"

typedef struct maker {
    dgm_json_out j;
    dgm_server *server;
    const dgm_pool_listing *languages;
} maker;

// ---- fields ---------------------------------------------------------------------------------------

// Values that only this server knows: codes of its languages.
static void put_codes(maker *m, const char *key, const dgm_api_field *f, bool source)
{
    dgm_json_out *j = &m->j;
    dgm_out_object(j, key);
    dgm_out_string(j, "description", f->about);
    dgm_out_string(j, "type", "string");
    dgm_out_array(j, "examples");
    for (size_t i = 0; m->languages && i < m->languages->count; i++)
        if (!source || m->languages->items[i].source) dgm_out_string(j, NULL, m->languages->items[i].code);
    dgm_out_end(j);
    if (strchr(f->shape, '+')) dgm_out_integer(j, "minLength", 1);
    dgm_out_end(j);
}

static void put_setting(dgm_json_out *j, const dgm_setting *s)
{
    dgm_out_object(j, s->name);
    dgm_out_string(j, "description", s->help);
    switch (s->kind) {
    case DGM_SETTING_FLAG:
        dgm_out_string(j, "type", "boolean");
        break;
    case DGM_SETTING_INT:
    case DGM_SETTING_FLOAT:
        dgm_out_string(j, "type", s->kind == DGM_SETTING_INT ? "integer" : "number");
        dgm_out_real(j, "minimum", s->min);
        dgm_out_real(j, "maximum", s->max);
        break;
    case DGM_SETTING_CHOICE:
        dgm_out_array(j, "enum");
        for (const char *p = s->values; p && *p;) {
            const size_t n = strcspn(p, "|");
            dgm_out_text(j, NULL, p, n);
            p += n + (p[n] == '|');
        }
        dgm_out_end(j);
        break;
    default:
        dgm_out_array(j, "type");
        dgm_out_string(j, NULL, "string");
        dgm_out_string(j, NULL, "number");
        dgm_out_end(j);
    }
    dgm_out_end(j);
}

static void put_settings(dgm_json_out *j, const char *key, const char *about)
{
    dgm_out_object(j, key);
    dgm_out_string(j, "description", about);
    dgm_out_array(j, "type");
    dgm_out_string(j, NULL, "object");
    dgm_out_string(j, NULL, "null");
    dgm_out_end(j);
    dgm_out_object(j, "properties");
    for (size_t i = 0; dgm_setting_at(i); i++)
        if (dgm_pool_may_set(dgm_setting_at(i))) put_setting(j, dgm_setting_at(i));
    dgm_out_end(j);
    dgm_out_bool(j, "additionalProperties", false);
    dgm_out_end(j);
}

// Of a form, where a field comes once and is text.
static void put_plain(maker *m, const char *key, const dgm_api_field *f)
{
    char shape[128];
    const char *list = strstr(f->shape, "|[");
    snprintf(shape, sizeof shape, "%.*s", list ? (int)(list - f->shape) : (int)strlen(f->shape), f->shape);
    dgm_shape_put_about(&m->j, key, shape, f->about);
}

static void put_field(maker *m, const char *key, const dgm_api_field *f)
{
    const bool source = strncmp(f->name, "source", 6) == 0, target = strncmp(f->name, "target", 6) == 0;
    if (strcmp(f->name, "settings") == 0)
        put_settings(&m->j, key, f->about);
    else if ((source || target) && !strchr(f->shape, '|'))
        put_codes(m, key, f, source);
    else
        dgm_shape_put_about(&m->j, key, f->shape, f->about);
}

static void put_body(maker *m, const char *type, const dgm_route *route, const dgm_api_row *row)
{
    dgm_json_out *j = &m->j;
    bool needed = false;
    dgm_out_object(j, type);
    dgm_out_object(j, "schema");
    dgm_out_string(j, "type", "object");
    dgm_out_object(j, "properties");
    for (const dgm_api_field *f = row->fields; f->name; f++) {
        if (f->query) continue;
        if (route->api == DGM_API_LIBRE && strstr(type, "urlencoded") && strstr(f->shape, "|["))
            put_plain(m, f->name, f);
        else
            put_field(m, f->name, f);
        needed = needed || f->required;
    }
    dgm_out_end(j);
    if (needed) dgm_out_array(j, "required");
    for (const dgm_api_field *f = row->fields; f->name; f++)
        if (f->required && !f->query) dgm_out_string(j, NULL, f->name);
    if (needed) dgm_out_end(j);
    if (row->closed) dgm_out_bool(j, "additionalProperties", false);
    dgm_out_end(j);
    dgm_out_end(j);
}

static void put_bodies(maker *m, const dgm_route *route, const dgm_api_row *row)
{
    static const struct {
        unsigned flag;
        const char *type;
    } types[] = {{DGM_TAKES_JSON, "application/json"},
                 {DGM_TAKES_FORM, "application/x-www-form-urlencoded"},
                 {DGM_TAKES_MULTIPART, "multipart/form-data"},
                 {DGM_TAKES_JSON_LINES, "application/x-ndjson"}};
    dgm_json_out *j = &m->j;
    bool needed = false; // lines may be none
    for (const dgm_api_field *f = row->fields; f->name && !(row->takes & DGM_TAKES_JSON_LINES); f++)
        needed = needed || (f->required && !f->query);
    dgm_out_object(j, "requestBody");
    dgm_out_bool(j, "required", needed);
    dgm_out_object(j, "content");
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++)
        if (row->takes & types[i].flag) put_body(m, types[i].type, route, row);
    dgm_out_end(j);
    dgm_out_end(j);
}

static void put_parameter(maker *m, const char *name, const char *place, const dgm_api_field *f)
{
    dgm_json_out *j = &m->j;
    dgm_out_object(j, NULL);
    dgm_out_string(j, "name", name);
    dgm_out_string(j, "in", place);
    dgm_out_bool(j, "required", !f || f->required);
    if (f)
        put_field(m, "schema", f);
    else
        dgm_shape_put(j, "schema", "string+");
    dgm_out_end(j);
}

// ---- answers --------------------------------------------------------------------------------------

static const char *error_shape(dgm_api api)
{
    return api == DGM_API_DEEPL ? "#ErrorDeepL" : api == DGM_API_V1 ? "#ErrorV1" : "#Error";
}

// types: with commas between them; the first one has the shape.
static void put_content(dgm_json_out *j, const char *types, const char *shape)
{
    char type[64];
    dgm_out_object(j, "content");
    for (const char *p = types; *p; shape = NULL) {
        const size_t n = strcspn(p, ",");
        snprintf(type, sizeof type, "%.*s", (int)n, p);
        dgm_out_object(j, type);
        if (shape) dgm_shape_put(j, "schema", shape);
        dgm_out_end(j);
        p += n + (p[n] == ',');
    }
    dgm_out_end(j);
}

static void put_error(dgm_json_out *j, const dgm_route *route, int status, const char *about)
{
    char code[16];
    // Those are pages in LibreTranslate, and so they are here.
    const bool page = route->api == DGM_API_PAGE || (route->api == DGM_API_LIBRE && (status == 404 || status == 413));
    snprintf(code, sizeof code, "%d", status);
    dgm_out_object(j, code);
    dgm_out_string(j, "description", about);
    put_content(j, page ? "text/html" : "application/json", page ? NULL : error_shape(route->api));
    dgm_out_end(j);
}

// Which errors an endpoint has, by what it is.
static void put_errors(dgm_json_out *j, const dgm_route *route, const dgm_api_row *row)
{
    const bool keyed = route->flags & DGM_ROUTE_KEY, limited = route->flags & DGM_ROUTE_LIMITED;
    const bool body = row && row->takes & ~(unsigned)DGM_TAKES_QUERY, deepl = route->api == DGM_API_DEEPL;
    const bool v1 = route->api == DGM_API_V1, own = row && row->errors[0];
    const struct {
        bool there;
        int status;
        const char *about;
    } all[] = {
        {true, 400, "The request is wrong"},
        {keyed && v1, 401, "A key is needed"},
        {keyed || limited, 403, "The key is unknown or needed, or it is not done here"},
        {own, 404, "It is not there"},
        {true, 413, "It is too large"},
        {(v1 && body) || (deepl && own), 415, "Its type is not one that is read or written"},
        {keyed || limited, 429, "Too many requests, or the key's quota is used up"},
        {deepl && keyed, 456, "The key's quota is used up"},
        {true, 500, "Something failed here"},
        {true, 503, "Not now"},
    };
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        if (all[i].there) put_error(j, route, all[i].status, all[i].about);
}

static void name_of(const dgm_route *route, char *out, size_t size)
{
    snprintf(out, size, "%s%s", route->method, route->pattern);
    for (char *p = out; *p; p++) *p = strchr("/*.-", *p) ? '_' : *p >= 'A' && *p <= 'Z' ? (char)(*p | 32) : *p;
}

// "$response.body#/document_id"
static void put_member(dgm_json_out *j, const char *name)
{
    char value[96];
    snprintf(value, sizeof value, "$response.body#/%s", name);
    dgm_out_string(j, name, value);
}

// Fields of another endpoint that the answer of this one has, in its body or behind "?".
static void put_known(dgm_json_out *j, const dgm_api_row *row, const dgm_api_row *other, bool query)
{
    for (const dgm_api_field *f = other->fields; f && f->name; f++)
        if (strstr(row->answer, f->name) && query == (other->takes == DGM_TAKES_QUERY || f->query))
            put_member(j, f->name);
}

// What was made here, and where it can be asked for: "/v2/document" and "/v2/document/*/result".
static void put_links(dgm_json_out *j, const dgm_route *route, const dgm_api_row *row)
{
    const size_t n = strlen(route->pattern);
    char name[128];
    dgm_out_object(j, "links");
    for (size_t i = 0; dgm_route_at(i); i++) {
        const dgm_route *r = dgm_route_at(i);
        const dgm_api_row *other = dgm_api_row_of(r);
        if (strncmp(r->pattern, route->pattern, n) != 0 || strncmp(r->pattern + n, "/*", 2) != 0 || !other) continue;
        name_of(r, name, sizeof name);
        dgm_out_object(j, name);
        dgm_out_string(j, "operationId", name);
        dgm_out_object(j, "parameters");
        put_member(j, other->path);
        put_known(j, row, other, true);
        dgm_out_end(j);
        if (other->fields && other->takes != DGM_TAKES_QUERY) {
            dgm_out_object(j, "requestBody");
            put_known(j, row, other, false);
            dgm_out_end(j);
        }
        dgm_out_end(j);
    }
    dgm_out_end(j);
}

static void put_answers(dgm_json_out *j, const dgm_route *route, const dgm_api_row *row)
{
    char code[16];
    const char *type = row ? row->type : route->api == DGM_API_PAGE ? "text/html" : "application/json";
    snprintf(code, sizeof code, "%d", row ? row->status : 200);
    dgm_out_object(j, "responses");
    dgm_out_object(j, code);
    dgm_out_string(j, "description", route->summary);
    if (type) put_content(j, type, row ? row->answer : NULL);
    if (row && row->answer && strcmp(route->method, "POST") == 0) put_links(j, route, row);
    dgm_out_end(j);
    put_errors(j, route, row);
    dgm_out_end(j);
}

// ---- endpoints ------------------------------------------------------------------------------------

static void put_security(maker *m, const dgm_route *route)
{
    dgm_json_out *j = &m->j;
    if (!(route->flags & DGM_ROUTE_KEY)) return;
    dgm_out_array(j, "security");
    dgm_out_object(j, NULL);
    dgm_out_array(j, route->api == DGM_API_DEEPL ? "deepl" : "bearer");
    dgm_out_end(j);
    dgm_out_end(j);
    if (!m->server->options.require_api_key) {
        dgm_out_object(j, NULL);
        dgm_out_end(j);
    }
    dgm_out_end(j);
}

static void put_operation(maker *m, const dgm_route *route)
{
    static const char *const tags[] = {"LibreTranslate", "Dragoman", "DeepL", "pages"};
    const dgm_api_row *row = dgm_api_row_of(route);
    dgm_json_out *j = &m->j;
    char method[8], id[128];
    snprintf(method, sizeof method, "%s", route->method);
    for (char *p = method; *p; p++) *p |= 32;
    name_of(route, id, sizeof id);
    dgm_out_object(j, method);
    dgm_out_string(j, "operationId", id);
    dgm_out_string(j, "summary", route->summary);
    dgm_out_array(j, "tags");
    dgm_out_string(j, NULL, tags[route->api]);
    dgm_out_end(j);
    put_security(m, route);
    dgm_out_array(j, "parameters");
    if (row && row->path) put_parameter(m, row->path, "path", NULL);
    const bool query = row && row->takes == DGM_TAKES_QUERY;
    for (const dgm_api_field *f = row ? row->fields : NULL; f && f->name; f++)
        if (query || f->query) put_parameter(m, f->name, "query", f);
    dgm_out_end(j);
    if (row && row->fields && !query) put_bodies(m, route, row);
    put_answers(j, route, row);
    dgm_out_end(j);
}

// "/v2/document/{document_id}/result"
static void path_of(const dgm_route *route, char *out, size_t size)
{
    const dgm_api_row *row = dgm_api_row_of(route);
    const size_t n = strcspn(route->pattern, "*");
    const char *behind = route->pattern + n;
    while (*behind == '*') behind++;
    if (route->pattern[n])
        snprintf(out, size, "%.*s{%s}%s", (int)n, route->pattern, row && row->path ? row->path : "rest", behind);
    else
        snprintf(out, size, "%s", route->pattern);
}

static bool is_first(size_t index)
{
    for (size_t i = 0; i < index; i++)
        if (strcmp(dgm_route_at(i)->pattern, dgm_route_at(index)->pattern) == 0) return false;
    return true;
}

static void put_paths(maker *m)
{
    char path[128];
    dgm_out_object(&m->j, "paths");
    for (size_t i = 0; dgm_route_at(i); i++) {
        if (!is_first(i) || !dgm_server_offers(m->server, dgm_route_at(i))) continue;
        path_of(dgm_route_at(i), path, sizeof path);
        dgm_out_object(&m->j, path);
        for (size_t k = i; dgm_route_at(k); k++)
            if (strcmp(dgm_route_at(i)->pattern, dgm_route_at(k)->pattern) == 0) put_operation(m, dgm_route_at(k));
        dgm_out_end(&m->j);
    }
    dgm_out_end(&m->j);
}

static void put_components(dgm_json_out *j)
{
    dgm_out_object(j, "components");
    dgm_out_object(j, "schemas");
    for (size_t i = 0; dgm_named_shape_at(i); i++)
        dgm_shape_put(j, dgm_named_shape_at(i)->name, dgm_named_shape_at(i)->shape);
    dgm_out_end(j);
    dgm_out_object(j, "securitySchemes");
    dgm_out_object(j, "bearer");
    dgm_out_string(j, "type", "http");
    dgm_out_string(j, "scheme", "bearer");
    dgm_out_end(j);
    dgm_out_object(j, "deepl");
    dgm_out_string(j, "type", "apiKey");
    dgm_out_string(j, "in", "header");
    dgm_out_string(j, "name", "Authorization");
    dgm_out_string(j, "description", "DeepL-Auth-Key KEY");
    dgm_out_end(j);
    dgm_out_end(j);
    dgm_out_end(j);
}

void dgm_v1_openapi(dgm_request *q)
{
    const char *prefix = q->server->options.url_prefix;
    maker m = {.server = q->server, .languages = dgm_pool_list(q->server)};
    dgm_out_object(&m.j, NULL);
    dgm_out_string(&m.j, "openapi", "3.1.0");
    dgm_out_object(&m.j, "info");
    dgm_out_string(&m.j, "title", "Dragoman");
    dgm_out_string(&m.j, "version", dgm_version());
    dgm_out_string(&m.j, "description",
                   "A translation service: LibreTranslate's API, DeepL's API (/v2, /v3) and one of its own (/v1).");
    dgm_out_end(&m.j);
    dgm_out_array(&m.j, "servers");
    dgm_out_object(&m.j, NULL);
    dgm_out_string(&m.j, "url", prefix && prefix[0] ? prefix : "/");
    dgm_out_end(&m.j);
    dgm_out_end(&m.j);
    put_paths(&m);
    put_components(&m.j);
    dgm_out_end(&m.j);
    dgm_pool_release(&m.languages);
    dgm_answer_json(q, 200, &m.j);
}
