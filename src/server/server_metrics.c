// SPDX-License-Identifier: MIT
// Numbers of a server, and /metrics; see server_metrics.h.
#include "server/server_metrics.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "server/server_private.h"

enum { ROWS_MAX = 256, RECENT = 1024, BOUNDS = 10 };

static const double bounds[BOUNDS] = {0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10};

// Requests of one endpoint and status.
typedef struct row {
    const char *mark;
    int status;
    uint64_t count, buckets[BOUNDS];
    double seconds;
} row;

struct dgm_meters {
    pthread_mutex_t lock;
    row rows[ROWS_MAX];
    size_t count;
    dgm_server_counters sums;
    float latency[RECENT], token[RECENT]; // milliseconds; the last ones
    uint64_t tasks;
};

dgm_status dgm_meters_open(dgm_meters **out, dgm_error *err)
{
    *out = dgm_calloc(1, sizeof **out);
    if (!*out) return dgm_no_memory(err);
    pthread_mutex_init(&(*out)->lock, NULL);
    return DGM_OK;
}

void dgm_meters_close(dgm_meters **at)
{
    if (!*at) return;
    pthread_mutex_destroy(&(*at)->lock);
    dgm_free(*at);
    *at = NULL;
}

static row *find(dgm_meters *m, const char *mark, int status)
{
    for (size_t i = 0; i < m->count; i++)
        if (m->rows[i].status == status && strcmp(m->rows[i].mark, mark) == 0) return &m->rows[i];
    if (m->count == ROWS_MAX) return &m->rows[ROWS_MAX - 1];
    m->rows[m->count] = (row){.mark = mark, .status = status};
    return &m->rows[m->count++];
}

void dgm_meters_request(dgm_meters *m, const dgm_request *q, double seconds)
{
    const bool gone = atomic_load(&q->gone);
    pthread_mutex_lock(&m->lock);
    row *r = find(m, q->route ? q->route->pattern : "other", gone ? 499 : q->status);
    r->count++;
    r->seconds += seconds;
    for (int i = 0; i < BOUNDS; i++) r->buckets[i] += seconds <= bounds[i];
    m->sums.requests++;
    m->sums.gone += gone;
    m->sums.refused += !gone && q->status >= 400 && q->status < 500;
    m->sums.failed += !gone && q->status >= 500;
    pthread_mutex_unlock(&m->lock);
}

void dgm_meters_task(dgm_meters *m, const dgm_task_view *v)
{
    pthread_mutex_lock(&m->lock);
    m->sums.texts += v->count;
    m->sums.sentences += v->sentences;
    m->sums.characters += v->characters;
    m->sums.source_tokens += v->source_tokens;
    m->sums.target_tokens += v->target_tokens;
    if (v->status == DGM_OK && v->sentences) {
        const size_t at = m->tasks++ % RECENT;
        m->latency[at] = (float)(v->seconds * 1000);
        m->token[at] = v->target_tokens ? m->latency[at] / (float)v->target_tokens : m->latency[at];
    }
    pthread_mutex_unlock(&m->lock);
}

void dgm_meters_count(dgm_meters *m, dgm_server_counters *c)
{
    pthread_mutex_lock(&m->lock);
    const size_t size = c->size;
    *c = m->sums;
    c->size = size;
    pthread_mutex_unlock(&m->lock);
}

static int by_value(const void *a, const void *b)
{
    const float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

double dgm_meters_latency(dgm_meters *m, double share, bool by_token)
{
    float sorted[RECENT];
    pthread_mutex_lock(&m->lock);
    const size_t n = m->tasks < RECENT ? (size_t)m->tasks : RECENT;
    memcpy(sorted, by_token ? m->token : m->latency, n * sizeof *sorted);
    pthread_mutex_unlock(&m->lock);
    if (n == 0) return 0;
    qsort(sorted, n, sizeof *sorted, by_value);
    const size_t at = (size_t)(share * (double)n);
    return (double)sorted[at < n ? at : n - 1];
}

// ---- /metrics -------------------------------------------------------------------------------------

static void put_number(dgm_writer *w, const char *name, const char *kind, const char *help, double value)
{
    dgm_write_format(w, "# HELP %s %s\n# TYPE %s %s\n%s %.17g\n", name, help, name, kind, name, value);
}

static void put_requests(dgm_writer *w, dgm_meters *m)
{
    static const char name[] = "dragoman_request_seconds";
    dgm_write_text(w, "# HELP libretranslate_http_request_duration_seconds Multiprocess metric\n"
                      "# TYPE libretranslate_http_request_duration_seconds summary\n");
    pthread_mutex_lock(&m->lock);
    for (size_t i = 0; i < m->count; i++) {
        const row *r = &m->rows[i];
        for (int sum = 0; sum < 2; sum++)
            dgm_write_format(w,
                             "libretranslate_http_request_duration_seconds_%s{api_key=\"\",endpoint=\"%s\","
                             "request_ip=\"\",status=\"%d\"} %.17g\n",
                             sum ? "sum" : "count", r->mark, r->status, sum ? r->seconds : (double)r->count);
    }
    dgm_write_format(w, "# HELP %s Time to answer, by endpoint and status\n# TYPE %s histogram\n", name, name);
    for (size_t i = 0; i < m->count; i++) {
        const row *r = &m->rows[i];
        for (int b = 0; b <= BOUNDS; b++) {
            char bound[32] = "+Inf";
            if (b < BOUNDS) snprintf(bound, sizeof bound, "%g", bounds[b]);
            dgm_write_format(w, "%s_bucket{endpoint=\"%s\",status=\"%d\",le=\"%s\"} %llu\n", name, r->mark, r->status,
                             bound, (unsigned long long)(b < BOUNDS ? r->buckets[b] : r->count));
        }
        dgm_write_format(
            w, "%s_sum{endpoint=\"%s\",status=\"%d\"} %.17g\n%s_count{endpoint=\"%s\",status=\"%d\"} %llu\n", name,
            r->mark, r->status, r->seconds, name, r->mark, r->status, (unsigned long long)r->count);
    }
    pthread_mutex_unlock(&m->lock);
}

static void put_counters(dgm_writer *w, dgm_server *s)
{
    dgm_server_counters c = {.size = sizeof c};
    dgm_server_count(s, &c);
    dgm_write_format(w,
                     "# HELP libretranslate_http_requests_in_flight Multiprocess metric\n"
                     "# TYPE libretranslate_http_requests_in_flight gauge\n"
                     "libretranslate_http_requests_in_flight{api_key=\"\",endpoint=\"\",request_ip=\"\"} %llu\n",
                     (unsigned long long)c.now.requests);
    const struct {
        const char *name, *kind, *help;
        uint64_t value;
    } rows[] = {
        {"dragoman_requests_total", "counter", "Requests answered", c.requests},
        {"dragoman_requests_refused_total", "counter", "Requests answered with 4xx", c.refused},
        {"dragoman_requests_failed_total", "counter", "Requests answered with 5xx", c.failed},
        {"dragoman_requests_gone_total", "counter", "Requests whose clients went away", c.gone},
        {"dragoman_texts_total", "counter", "Texts translated", c.texts},
        {"dragoman_sentences_total", "counter", "Sentences translated", c.sentences},
        {"dragoman_characters_total", "counter", "Characters translated", c.characters},
        {"dragoman_source_tokens_total", "counter", "Tokens read", c.source_tokens},
        {"dragoman_target_tokens_total", "counter", "Tokens written", c.target_tokens},
        {"dragoman_steps_total", "counter", "Decoder steps", c.steps},
        {"dragoman_rows_total", "counter", "Hypotheses in decoder steps", c.rows},
        {"dragoman_loads_total", "counter", "Translators opened", c.loads},
        {"dragoman_reloads_total", "counter", "Models replaced", c.reloads},
        {"dragoman_evictions_total", "counter", "Translators closed to save memory", c.evictions},
        {"dragoman_connections", "gauge", "Open connections", c.now.connections},
        {"dragoman_requests_in_flight", "gauge", "Requests being answered", c.now.requests},
        {"dragoman_queued_sentences", "gauge", "Sentences that wait", c.now.queued},
        {"dragoman_running_sentences", "gauge", "Sentences being translated", c.now.running},
        {"dragoman_models", "gauge", "Models", c.now.models},
        {"dragoman_translators", "gauge", "Translators that are loaded", c.now.translators},
        {"dragoman_memory_bytes", "gauge", "Memory of translators", c.now.bytes},
    };
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        put_number(w, rows[i].name, rows[i].kind, rows[i].help, (double)rows[i].value);
    put_number(w, "dragoman_uptime_seconds", "gauge", "Since the start", dgm_now() - s->begin);
}

void dgm_metrics_answer(dgm_request *q)
{
    const char *token = q->server->options.metrics_auth_token, *given = dgm_request_header(q, "Authorization");
    if (token && token[0] && (!given || strncmp(given, "Bearer ", 7) != 0 || strcmp(given + 7, token) != 0)) {
        dgm_answer_error(q, 401, "Unauthorized");
        return;
    }
    dgm_writer w = {0};
    put_requests(&w, q->server->meters);
    put_counters(&w, q->server);
    dgm_answer_writer(q, 200, "text/plain; version=0.0.4; charset=utf-8", &w);
}
