// SPDX-License-Identifier: MIT
// Our own API: what there is, and how it is doing.
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "dragoman/settings.h"
#include "server/v1_private.h"

void dgm_v1_languages(dgm_request *q)
{
    const dgm_pool_listing *list = dgm_pool_list(q->server);
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "languages");
    for (size_t i = 0; list && i < list->count; i++) {
        const dgm_pool_language *l = &list->items[i];
        dgm_out_object(&j, NULL);
        dgm_out_string(&j, "code", l->code);
        dgm_out_string(&j, "name", l->name);
        dgm_out_array(&j, "targets");
        for (size_t k = 0; k < l->target_count; k++)
            if (strcmp(l->targets[k], l->code) != 0) dgm_out_string(&j, NULL, l->targets[k]);
        dgm_out_end(&j);
        dgm_out_end(&j);
    }
    dgm_out_end(&j);
    dgm_out_string(&j, "source", list ? list->source : NULL);
    dgm_out_string(&j, "target", list ? list->target : NULL);
    dgm_out_end(&j);
    dgm_pool_release(&list);
    dgm_answer_json(q, 200, &j);
}

// Each code once.
static void put_codes(dgm_json_out *j, const char *key, char *const *codes, size_t count)
{
    dgm_out_array(j, key);
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < i && strcmp(codes[k], codes[i]) != 0) k++;
        if (k == i) dgm_out_string(j, NULL, codes[i]);
    }
    dgm_out_end(j);
}

static void put_model(const dgm_pool_model *m, bool loaded, void *cookie)
{
    dgm_json_out *j = cookie;
    const bool first = !j->more[j->depth - 1];
    dgm_out_object(j, NULL);
    dgm_out_string(j, "name", m->name);
    put_codes(j, "source", m->sources, m->directions);
    put_codes(j, "target", m->targets, m->directions);
    dgm_out_integer(j, "bytes", (int64_t)m->bytes);
    dgm_out_integer(j, "parameters", (int64_t)m->parameters);
    dgm_out_bool(j, "loaded", loaded);
    dgm_out_bool(j, "default", first);
    dgm_out_end(j);
}

void dgm_v1_models(dgm_request *q)
{
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "models");
    dgm_pool_each_model(q->server, put_model, &j);
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

static const char *kind_name(dgm_setting_kind kind)
{
    static const char *const names[] = {"boolean", "integer", "integer", "size",   "number",
                                        "numbers", "string",  "choice",  "strings"};
    return (size_t)kind < sizeof names / sizeof names[0] ? names[kind] : "string";
}

static void put_setting(dgm_json_out *j, const dgm_setting *s)
{
    char value[128] = "";
    dgm_settings usual;
    dgm_settings_default(&usual);
    if (dgm_settings_get(&usual, s->name, value, sizeof value, NULL) == DGM_ERR_MEMORY) j->w.failed = true;
    dgm_out_object(j, NULL);
    dgm_out_string(j, "name", s->name);
    dgm_out_string(j, "kind", kind_name(s->kind));
    if (s->kind == DGM_SETTING_INT || s->kind == DGM_SETTING_FLOAT) {
        dgm_out_real(j, "min", s->min);
        dgm_out_real(j, "max", s->max);
    }
    if (s->kind == DGM_SETTING_CHOICE && s->values) {
        dgm_out_array(j, "values");
        for (const char *p = s->values; *p;) {
            const size_t n = strcspn(p, "|");
            dgm_out_text(j, NULL, p, n);
            p += n + (p[n] == '|');
        }
        dgm_out_end(j);
    }
    dgm_out_string(j, "default", value[0] ? value : NULL);
    dgm_out_string(j, "help", s->help);
    dgm_out_end(j);
}

void dgm_v1_settings(dgm_request *q)
{
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "settings");
    for (size_t i = 0; dgm_setting_at(i); i++)
        if (dgm_pool_may_set(dgm_setting_at(i))) put_setting(&j, dgm_setting_at(i));
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

// ---- detection ------------------------------------------------------------------------------------

static bool put_detections(dgm_request *q, dgm_json_out *j, const dgm_v1_wish *w)
{
    enum { MOST = 3 };
    dgm_error err;
    for (size_t i = 0; i < w->count; i++) {
        dgm_pool_detected found[MOST];
        size_t count = 0;
        const dgm_status st =
            dgm_pool_detect(w->listing, w->texts[i].text, w->texts[i].size, found, MOST, &count, &err);
        if (st != DGM_OK) {
            dgm_answer_failure(q, st, &err);
            return false;
        }
        dgm_out_array(j, NULL);
        for (size_t k = 0; k < count; k++) {
            dgm_out_object(j, NULL);
            dgm_out_string(j, "language", found[k].code);
            dgm_out_real(j, "confidence", found[k].confidence);
            dgm_out_end(j);
        }
        dgm_out_end(j);
    }
    return true;
}

void dgm_v1_detect(dgm_request *q)
{
    dgm_json_out j = {0};
    dgm_v1_wish *w = dgm_v1_wish_new(q);
    if (!w || !dgm_v1_read(q, w)) return;
    w->listing = dgm_pool_list(q->server);
    q->texts = w->count;
    dgm_out_object(&j, NULL);
    dgm_out_array(&j, "detections");
    if (!put_detections(q, &j, w)) {
        dgm_writer_free(&j.w);
        return;
    }
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

// ---- numbers --------------------------------------------------------------------------------------

// Memory and threads of the process, as Linux says.
static void read_process(int64_t *rss, int64_t *threads)
{
    char line[256];
    long long value;
    FILE *f = fopen("/proc/self/status", "re");
    *rss = *threads = 0;
    while (f && fgets(line, sizeof line, f)) {
        if (sscanf(line, "VmRSS: %lld", &value) == 1) *rss = value * 1024;
        if (sscanf(line, "Threads: %lld", &value) == 1) *threads = value;
    }
    if (f) fclose(f);
}

static void put_lane(dgm_lane *lane, void *cookie)
{
    dgm_json_out *j = cookie;
    const uint64_t bytes = dgm_lane_bytes(lane);
    char settings[512];
    snprintf(settings, sizeof settings, "%s", lane->key);
    for (char *p = settings; *p; p++)
        if (*p == '\n') *p = ' ';
    pthread_mutex_lock(&lane->lock);
    dgm_counters c = {.size = sizeof c};
    if (lane->t) dgm_count(lane->t, &c);
    dgm_out_object(j, NULL);
    dgm_out_string(j, "name", lane->model->name);
    dgm_out_string(j, "settings", settings);
    dgm_out_bool(j, "loaded", lane->state == DGM_LANE_READY);
    dgm_out_integer(j, "bytes", (int64_t)bytes);
    dgm_out_integer(j, "requests", (int64_t)lane->requests);
    dgm_out_integer(j, "sentences", (int64_t)lane->sentences);
    dgm_out_integer(j, "target_tokens", (int64_t)c.target_tokens);
    dgm_out_integer(j, "steps", (int64_t)c.steps);
    dgm_out_integer(j, "rows", (int64_t)c.rows);
    dgm_out_integer(j, "queued", (int64_t)lane->turns.waiting);
    dgm_out_integer(j, "running", (int64_t)lane->running);
    dgm_out_integer(j, "clients", (int64_t)lane->turns.clients);
    dgm_out_end(j);
    pthread_mutex_unlock(&lane->lock);
}

static void count_clients(dgm_lane *lane, void *cookie)
{
    int64_t *clients = cookie;
    pthread_mutex_lock(&lane->lock);
    *clients += (int64_t)lane->turns.clients;
    pthread_mutex_unlock(&lane->lock);
}

static void put_counters(dgm_json_out *j, const dgm_server_counters *c)
{
    const struct {
        const char *name;
        uint64_t value;
    } rows[] = {{"requests", c->requests},
                {"refused", c->refused},
                {"failed", c->failed},
                {"gone", c->gone},
                {"texts", c->texts},
                {"sentences", c->sentences},
                {"characters", c->characters},
                {"source_tokens", c->source_tokens},
                {"target_tokens", c->target_tokens},
                {"steps", c->steps},
                {"rows", c->rows},
                {"loads", c->loads},
                {"reloads", c->reloads},
                {"evictions", c->evictions},
                {"connections", c->now.connections},
                {"in_flight", c->now.requests},
                {"memory_bytes", c->now.bytes}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        dgm_out_integer(j, rows[i].name, (int64_t)rows[i].value);
}

static void put_latency(dgm_json_out *j, dgm_meters *m, const char *key, bool by_token)
{
    dgm_out_object(j, key);
    dgm_out_real(j, "p50", dgm_meters_latency(m, 0.5, by_token));
    dgm_out_real(j, "p90", dgm_meters_latency(m, 0.9, by_token));
    dgm_out_real(j, "p95", dgm_meters_latency(m, 0.95, by_token));
    dgm_out_real(j, "p99", dgm_meters_latency(m, 0.99, by_token));
    dgm_out_end(j);
}

void dgm_v1_put_stats(dgm_server *s, dgm_json_out *j)
{
    dgm_server_counters c = {.size = sizeof c};
    int64_t rss, threads, clients = 0;
    dgm_server_count(s, &c);
    read_process(&rss, &threads);
    dgm_pool_each(s, count_clients, &clients);
    dgm_out_object(j, NULL);
    dgm_out_string(j, "version", dgm_version());
    dgm_out_real(j, "uptime_s", (double)(int64_t)((dgm_now() - s->begin) * 1000) / 1000);
    put_counters(j, &c);
    dgm_out_real(j, "batch_fill", c.steps ? (double)c.rows / (double)c.steps : 0);
    put_latency(j, s->meters, "latency_ms", false);
    put_latency(j, s->meters, "token_ms", true);
    dgm_out_object(j, "queue");
    dgm_out_integer(j, "queued", (int64_t)c.now.queued);
    dgm_out_integer(j, "running", (int64_t)c.now.running);
    dgm_out_integer(j, "clients", clients);
    dgm_out_end(j);
    dgm_out_integer(j, "rss_bytes", rss);
    dgm_out_integer(j, "threads", threads);
    dgm_out_array(j, "models");
    dgm_pool_each(s, put_lane, j);
    dgm_out_end(j);
    dgm_out_end(j);
}

void dgm_v1_stats(dgm_request *q)
{
    dgm_json_out j = {0};
    dgm_v1_put_stats(q->server, &j);
    dgm_answer_json(q, 200, &j);
}
