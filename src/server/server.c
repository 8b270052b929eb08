// SPDX-License-Identifier: MIT
// A server: opened, run, stopped; and the way of a request through routes, keys and limits to its handler.
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/glossary_store.h"
#include "server/server_private.h"
#include "server/usage.h"

void dgm_server_note(dgm_server *s, const char *fmt, ...)
{
    char text[768];
    va_list args;
    if (!s->options.note) return;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    s->options.note(s->options.note_cookie, text);
}

// ---- the way of a request -------------------------------------------------------------------------

int64_t dgm_server_body_limit(const dgm_server *s, const dgm_route *route)
{
    return route && route->flags & DGM_ROUTE_FILE ? s->options.file_bytes : s->options.request_bytes;
}

static void put_cors(dgm_request *q)
{
    const char *origin = q->server->options.cors;
    if (!origin || !origin[0]) return;
    dgm_answer_header(q, "Access-Control-Allow-Origin", origin);
    dgm_answer_header(q, "Access-Control-Allow-Headers", "Authorization, Content-Type");
    dgm_answer_header(q, "Access-Control-Expose-Headers", "Authorization");
    dgm_answer_header(q, "Access-Control-Allow-Methods", "GET, POST");
    dgm_answer_header(q, "Access-Control-Allow-Credentials", "true");
    dgm_answer_header(q, "Access-Control-Max-Age", "1728000");
}

// "203.0.113.7" of "203.0.113.7, 10.0.0.1".
static const char *forwarded(dgm_request *q)
{
    const char *list = q->server->options.trust_forwarded_for ? dgm_request_header(q, "X-Forwarded-For") : NULL;
    if (!list) return NULL;
    while (*list == ' ') list++;
    const size_t n = strcspn(list, ", ");
    return n && n < 64 ? dgm_request_copy(q, list, n) : NULL;
}

bool dgm_server_offers(const dgm_server *s, const dgm_route *route)
{
    if (route->flags & DGM_ROUTE_METRICS && !s->options.metrics) return false;
    return !(route->flags & DGM_ROUTE_WEB) || !s->options.disable_web_ui;
}

bool dgm_server_admit(dgm_request *q)
{
    dgm_server *s = q->server;
    char allowed[64];
    dgm_api api = DGM_API_LIBRE;
    const char *other = forwarded(q);
    if (other) q->address = other;
    q->client = q->address;
    put_cors(q);
    q->route = dgm_route_find(q->method, q->path, &q->rest, allowed, sizeof allowed, &api);
    if (q->route && !dgm_server_offers(s, q->route)) {
        q->route = NULL;
        allowed[0] = 0;
    }
    if (q->route) {
        q->route_mark = q->route->pattern;
        if (q->rest[0] && !strstr(q->route->pattern, "**"))
            q->rest = dgm_request_copy(q, q->rest, strcspn(q->rest, "/"));
        if (q->rest) return true;
        dgm_answer_error(q, 500, "out of memory");
        return false;
    }
    q->fallback = (int)api;
    if (allowed[0]) dgm_answer_header(q, "Allow", allowed);
    if (allowed[0] && strcmp(q->method, "OPTIONS") == 0)
        dgm_answer(q, 200, "text/html; charset=utf-8", "", 0);
    else if (allowed[0])
        dgm_answer_error(q, 405, "The method is not allowed for the requested URL.");
    else
        dgm_answer_error(q, 404,
                         "The requested URL was not found on the server. If you entered the URL manually please "
                         "check your spelling and try again.");
    return false;
}

// The key of a request: in the body, form or query, or in a header; NULL: none.
static const char *given_key(dgm_request *q)
{
    static const char *const schemes[] = {"Bearer ", "DeepL-Auth-Key "};
    const char *key = dgm_request_text(q, q->route->api == DGM_API_DEEPL ? "auth_key" : "api_key", NULL, NULL);
    const char *header = dgm_request_header(q, "Authorization");
    for (size_t i = 0; i < sizeof schemes / sizeof schemes[0] && !key && header; i++)
        if (strncmp(header, schemes[i], strlen(schemes[i])) == 0) key = header + strlen(schemes[i]);
    return key && key[0] ? key : NULL;
}

// False: it was answered.
static bool check_key(dgm_request *q)
{
    dgm_server *s = q->server;
    const char *given = s->keys ? given_key(q) : NULL;
    const bool deepl = q->route->api == DGM_API_DEEPL;
    if (given) {
        dgm_key *key = dgm_request_memory(q, sizeof *key);
        if (!key || !dgm_keys_find(s->keys, given, key)) {
            dgm_answer_error(q, 403, "Invalid API key");
            return false;
        }
        q->key = key;
        q->client = key->key;
        return true;
    }
    if (!s->options.require_api_key || !(q->route->flags & DGM_ROUTE_KEY)) return true;
    const char *link = s->options.get_api_key_link;
    const int status = q->route->api == DGM_API_LIBRE ? 400 : deepl ? 403 : 401;
    if (link && link[0])
        dgm_answer_error(q, status, "Visit %s to get an API key", link);
    else
        dgm_answer_error(q, status, "Please contact the server operator to get an API key");
    return false;
}

static bool check_rate(dgm_request *q)
{
    const dgm_server_options *o = &q->server->options;
    char which[64];
    if (!(q->route->flags & DGM_ROUTE_LIMITED)) return true;
    int64_t cost = 1;
    if (q->route->flags & DGM_ROUTE_FILE && o->char_limit > 0) cost = (int64_t)q->body_size / o->char_limit;
    const dgm_rate_limits limits = {q->key && q->key->req_limit >= 0 ? q->key->req_limit : o->req_limit,
                                    o->hourly_req_limit, o->daily_req_limit, o->req_flood_threshold};
    switch (
        dgm_rates_take(q->server->rates, q->client, cost > 1 ? cost : 1, &limits, dgm_now(), which, sizeof which)) {
    case DGM_RATE_FINE:
        return true;
    case DGM_RATE_BANNED:
        dgm_answer_error(q, 403, "Too many request limits violations");
        return false;
    default:
        dgm_answer_error(q, 429, "Slowdown: %s", which);
        return false;
    }
}

// What Flask says of a body that it cannot read; other APIs say what is wrong.
static void refuse_body(dgm_request *q, dgm_status st, const dgm_error *err)
{
    static const char flask[] = "The browser (or proxy) sent a request that this server could not understand.";
    const bool object = strcmp(err->text, "Invalid JSON format") == 0;
    if (st == DGM_ERR_MEMORY)
        dgm_answer_failure(q, st, err);
    else
        dgm_answer_error(q, 400, "%s", q->route->api == DGM_API_LIBRE && !object ? flask : err->text);
}

void dgm_server_dispatch(dgm_request *q)
{
    dgm_error err;
    const dgm_status st = dgm_request_read(q, &err);
    if (st != DGM_OK) {
        refuse_body(q, st, &err);
        return;
    }
    if (check_key(q) && check_rate(q)) q->route->handle(q);
}

static void run_dispatch(void *arg)
{
    dgm_server_dispatch(arg);
}

void dgm_server_handle(dgm_request *q)
{
    if (dgm_server_admit(q)) dgm_handlers_post(q->server->handlers, &q->work, run_dispatch, q);
}

void dgm_server_answered(dgm_request *q)
{
    dgm_server *s = q->server;
    const double seconds = dgm_now() - q->begin;
    dgm_meters_request(s->meters, q, seconds);
    if (s->log) dgm_access_log_put(s->log, q, seconds);
}

// ---- the clock ------------------------------------------------------------------------------------

static void reload(dgm_server *s)
{
    dgm_error err;
    bool changed = false;
    dgm_pool_look(s, true);
    if (s->log && s->options.sandbox == DGM_SANDBOX_OFF) dgm_access_log_reopen(s->log);
    if (!s->keys) return;
    if (dgm_keys_reload(s->keys, &changed, &err) != DGM_OK)
        dgm_server_note(s, "the keys stay as they were: %s", err.text);
    else if (changed)
        dgm_server_note(s, "%zu keys", dgm_keys_count(s->keys));
}

// Signals, changed files, clients that are slow or gone, memory: whatever happens by itself.
static void *clock_main(void *arg)
{
    dgm_server *s = arg;
    enum { TICK_MS = 100 };
    double looked = dgm_now(), expired = looked;
    int reloads = 0;
    for (;;) {
        struct pollfd p = {.fd = s->pipe[0], .events = POLLIN};
        char bytes[64];
        if (poll(&p, 1, TICK_MS) > 0 && read(s->pipe[0], bytes, sizeof bytes) < 0) errno = 0;
        pthread_mutex_lock(&s->lock);
        const bool quit = s->quit;
        if (atomic_load(&s->stops)) pthread_cond_broadcast(&s->idle);
        pthread_mutex_unlock(&s->lock);
        if (quit) return NULL;
        const double now = dgm_now();
        if (s->http) dgm_http_tick(s->http);
        if (atomic_load(&s->reloads) != reloads) {
            reloads = atomic_load(&s->reloads);
            reload(s);
        } else if (s->options.reload_seconds > 0 && now - looked >= s->options.reload_seconds) {
            looked = now;
            dgm_pool_look(s, false);
            if (s->keys) (void)dgm_keys_reload(s->keys, NULL, NULL);
        }
        dgm_pool_sweep(s);
        if (now - expired < 60) continue;
        expired = now;
        dgm_rates_expire(s->rates, now);
        dgm_files_expire(s->files, now);
        dgm_deepl_documents_expire(s->documents, now);
    }
}

// ---- life -----------------------------------------------------------------------------------------

static dgm_status open_suggestions(dgm_server *s, dgm_error *err)
{
    const char *path = s->options.suggestions_file;
    s->suggestions = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
    DGM_FAIL_IF(s->suggestions < 0, err, DGM_ERR_IO, "cannot write '%s': %s", path, strerror(errno));
    return DGM_OK;
}

static dgm_status open_parts(dgm_server *s, dgm_error *err)
{
    DGM_FAIL_IF(pipe2(s->pipe, O_CLOEXEC | O_NONBLOCK) != 0, err, DGM_ERR_IO, "cannot make a pipe: %s",
                strerror(errno));
    DGM_TRY(dgm_meters_open(&s->meters, err));
    DGM_TRY(dgm_rates_open(&s->rates, err));
    DGM_TRY(dgm_usage_open(&s->usage, err));
    DGM_TRY(dgm_glossaries_open(&s->glossaries, err));
    DGM_TRY(dgm_deepl_documents_open(&s->documents, err));
    DGM_TRY(dgm_files_open(&s->files, err));
    if (s->options.api_keys) DGM_TRY(dgm_keys_open(&s->keys, s->options.api_keys, err));
    if (s->options.log) DGM_TRY(dgm_access_log_open(&s->log, s->options.log, s->options.log_texts != 0, err));
    if (s->options.suggestions) DGM_TRY(open_suggestions(s, err));
    DGM_TRY(dgm_pool_models_open(s, err));
    if (s->options.port >= 0 || s->options.socket || s->options.listen_fd >= 0)
        DGM_TRY(dgm_http_open(s, &s->http, err));
    // Everything that is written to is open. Threads inherit what this one may do.
    DGM_TRY(dgm_server_confine_files(s, err));
    DGM_TRY(dgm_handlers_open(&s->handlers, s->options.handlers, err));
    DGM_TRY(dgm_pool_models_warm(s, err));
    if (s->http) DGM_TRY(dgm_http_start(s->http, err));
    s->clock_runs = pthread_create(&s->clock, NULL, clock_main, s) == 0;
    return s->clock_runs ? dgm_server_confine_calls(s, err) : dgm_no_memory(err);
}

dgm_status dgm_server_open(dgm_server **out, const dgm_server_options *options, dgm_error *err)
{
    DGM_FAIL_IF(!out, err, DGM_ERR_ARGUMENT, "there is no place for the server: NULL");
    *out = NULL;
    dgm_server *s = dgm_calloc(1, sizeof *s);
    if (!s) return dgm_no_memory(err);
    s->pipe[0] = s->pipe[1] = s->suggestions = -1;
    s->begin = dgm_now();
    dgm_pages_open(s);
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->idle, NULL);
    dgm_status st = dgm_server_take_options(s, options, err);
    if (st == DGM_OK) st = open_parts(s, err);
    if (st != DGM_OK)
        dgm_server_close(&s);
    else
        *out = s;
    return st;
}

static void wake_clock(dgm_server *s)
{
    const int saved = errno; // this may be a signal handler
    if (write(s->pipe[1], "!", 1) < 0) errno = saved;
    errno = saved;
}

void dgm_server_stop(dgm_server *s)
{
    if (!s) return;
    atomic_fetch_add(&s->stops, 1);
    wake_clock(s);
}

void dgm_server_reload(dgm_server *s)
{
    if (!s) return;
    atomic_fetch_add(&s->reloads, 1);
    wake_clock(s);
}

void dgm_server_run(dgm_server *s)
{
    if (!s) return;
    pthread_mutex_lock(&s->lock);
    while (!atomic_load(&s->stops)) pthread_cond_wait(&s->idle, &s->lock);
    s->closing = true;
    pthread_mutex_unlock(&s->lock);
    if (s->http) dgm_http_quiesce(s->http);
    pthread_mutex_lock(&s->lock);
    while (s->in_flight && atomic_load(&s->stops) < 2) pthread_cond_wait(&s->idle, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

void dgm_server_close(dgm_server **at)
{
    dgm_server *s = at ? *at : NULL;
    if (!s) return;
    *at = NULL;
    if (s->http) dgm_http_quiesce(s->http);
    if (s->clock_runs) { // it looks at connections: before they go
        pthread_mutex_lock(&s->lock);
        s->quit = true;
        pthread_mutex_unlock(&s->lock);
        wake_clock(s);
        pthread_join(s->clock, NULL);
    }
    dgm_http_close(&s->http); // gives up what is in flight and waits for it
    dgm_deepl_documents_stop(s->documents); // the same for documents, which nobody's connection waits for
    dgm_handlers_close(&s->handlers);
    dgm_pool_models_close(s);
    dgm_files_close(&s->files);
    dgm_deepl_documents_close(&s->documents);
    dgm_glossaries_close(&s->glossaries);
    dgm_keys_close(&s->keys);
    dgm_access_log_close(&s->log);
    dgm_usage_close(&s->usage);
    dgm_rates_close(&s->rates);
    dgm_meters_close(&s->meters);
    for (int i = 0; i < 2; i++)
        if (s->pipe[i] >= 0) close(s->pipe[i]);
    if (s->suggestions >= 0) close(s->suggestions);
    for (size_t i = 0; i < s->string_count; i++) dgm_free(s->strings[i]);
    dgm_free(s->strings);
    pthread_cond_destroy(&s->idle);
    pthread_mutex_destroy(&s->lock);
    dgm_free(s);
}

const char *dgm_server_url(const dgm_server *s)
{
    return s ? s->url : "";
}

void dgm_server_count(const dgm_server *server, dgm_server_counters *c)
{
    dgm_server *s = (dgm_server *)(uintptr_t)server; // locks are not part of the value
    if (!s || !c) return;
    dgm_server_counters own = {.size = c->size};
    dgm_meters_count(s->meters, &own);
    dgm_pool_count(s, &own);
    own.now.connections = s->http ? dgm_http_connections(s->http) : 0;
    pthread_mutex_lock(&s->lock);
    own.now.requests = s->in_flight;
    pthread_mutex_unlock(&s->lock);
    memcpy(c, &own, c->size < sizeof own ? c->size : sizeof own);
}
