// SPDX-License-Identifier: MIT
// The page at /status: the numbers of /v1/stats as tables, which scripts keep up to date and add charts to.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "server/page_private.h"
#include "server/v1_private.h"

typedef struct view {
    dgm_server *server;
    const json_t *stats;
} view;

typedef enum unit { COUNT, RATIO, SECONDS, MILLISECONDS, BYTES } unit;
// As scripts know them (status.js formats in the same way).
static const char *const unit_names[] = {"count", "ratio", "s", "ms", "bytes"};

static const struct {
    const char *label, *path; // members of /v1/stats
    unit unit;
} rows[] = {
    {"Running for", "uptime_s", SECONDS},
    {"Requests answered", "requests", COUNT},
    {"of them refused (4xx)", "refused", COUNT},
    {"of them failed (5xx)", "failed", COUNT},
    {"Requests given up by their clients", "gone", COUNT},
    {"Requests in flight", "in_flight", COUNT},
    {"Connections", "connections", COUNT},
    {"Texts translated", "texts", COUNT},
    {"Sentences translated", "sentences", COUNT},
    {"Characters translated", "characters", COUNT},
    {"Tokens read", "source_tokens", COUNT},
    {"Tokens written", "target_tokens", COUNT},
    {"Hypotheses in a step, on average", "batch_fill", RATIO},
    {"Sentences that wait", "queue.queued", COUNT},
    {"Sentences being translated", "queue.running", COUNT},
    {"Time of a translation, median", "latency_ms.p50", MILLISECONDS},
    {"90 of 100 within", "latency_ms.p90", MILLISECONDS},
    {"99 of 100 within", "latency_ms.p99", MILLISECONDS},
    {"Time for a token of it, median", "token_ms.p50", MILLISECONDS},
    {"Memory of the process", "rss_bytes", BYTES},
    {"Memory of translators", "memory_bytes", BYTES},
    {"Threads", "threads", COUNT},
    {"Models loaded", "loads", COUNT},
    {"Models replaced", "reloads", COUNT},
    {"Models closed for memory", "evictions", COUNT},
};

// Columns of the table of models, behind their names and settings.
static const struct {
    const char *label, *key;
    unit unit;
} columns[] = {
    {"Requests", "requests", COUNT},
    {"Sentences", "sentences", COUNT},
    {"Tokens written", "target_tokens", COUNT},
    {"Waiting", "queued", COUNT},
    {"Running", "running", COUNT},
    {"Memory", "bytes", BYTES},
};

// ---- values ---------------------------------------------------------------------------------------

// 1234567 as "1,234,567".
static void put_count(dgm_writer *w, double value)
{
    char digits[32];
    const int n = snprintf(digits, sizeof digits, "%.0f", value);
    for (int i = 0; i < n; i++) {
        if (i && (n - i) % 3 == 0 && digits[i - 1] != '-') dgm_write_u8(w, ',');
        dgm_write_u8(w, (uint8_t)digits[i]);
    }
}

static void put_value(dgm_writer *w, double value, unit u)
{
    if (u == COUNT)
        put_count(w, value);
    else if (u == RATIO)
        dgm_write_format(w, "%.1f", value);
    else if (u == MILLISECONDS)
        dgm_write_format(w, value < 10 ? "%.1f ms" : "%.0f ms", value);
    else if (u == BYTES)
        dgm_write_format(w, "%.0f MiB", value / 1048576);
    else
        dgm_write_format(w, "%d d %02d:%02d:%02d", (int)(value / 86400), (int)(value / 3600) % 24,
                         (int)(value / 60) % 60, (int)value % 60);
}

// "latency_ms.p50" of the object.
static double value_at(const json_t *object, const char *path)
{
    char name[64];
    for (const char *p = path; object && *p;) {
        const size_t n = strcspn(p, ".");
        snprintf(name, sizeof name, "%.*s", (int)n, p);
        object = json_object_get(object, name);
        p += n + (p[n] == '.');
    }
    return json_number_value(object);
}

static void put_cell(dgm_writer *w, const json_t *object, const char *path, unit u)
{
    dgm_write_format(w, "<td data-key=\"%s\" data-unit=\"%s\">", path, unit_names[u]);
    put_value(w, value_at(object, path), u);
    dgm_write_text(w, "</td>");
}

// ---- fields ---------------------------------------------------------------------------------------

static void put_base(dgm_writer *w, void *user)
{
    dgm_page_put_base(w, ((view *)user)->server);
}

static void put_title(dgm_writer *w, void *user)
{
    dgm_page_put_title(w, ((view *)user)->server);
}

static void put_version(dgm_writer *w, void *user)
{
    (void)user;
    dgm_page_put_string(w, dgm_version());
}

static void put_numbers(dgm_writer *w, void *user)
{
    const view *v = user;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        dgm_write_format(w, "<tr><th scope=\"row\">%s</th>", rows[i].label);
        put_cell(w, v->stats, rows[i].path, rows[i].unit);
        dgm_write_text(w, "</tr>\n");
    }
}

static void put_columns(dgm_writer *w, void *user)
{
    (void)user;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        dgm_write_format(w, "<th scope=\"col\" data-key=\"%s\" data-unit=\"%s\">%s</th>",
                         columns[i].key, unit_names[columns[i].unit], columns[i].label);
}

static void put_models(dgm_writer *w, void *user)
{
    const view *v = user;
    const json_t *models = json_object_get(v->stats, "models");
    for (size_t i = 0; i < json_array_size(models); i++) {
        const json_t *m = json_array_get(models, i);
        const char *settings = json_string_value(json_object_get(m, "settings"));
        dgm_write_text(w, "<tr><th scope=\"row\">");
        dgm_page_put_string(w, json_string_value(json_object_get(m, "name")));
        dgm_write_text(w, " <span class=\"muted\">");
        dgm_page_put_string(w, settings);
        dgm_write_text(w, "</span></th>");
        for (size_t k = 0; k < sizeof columns / sizeof columns[0]; k++)
            put_cell(w, m, columns[k].key, columns[k].unit);
        dgm_write_text(w, "</tr>\n");
    }
}

static const dgm_page_field fields[] = {
    {"base", put_base},       {"title", put_title},     {"version", put_version},
    {"numbers", put_numbers}, {"columns", put_columns}, {"models", put_models},
};

void dgm_page_status_get(dgm_request *q)
{
    const dgm_page page = {DGM_PAGE_STATUS, dgm_page_status, dgm_page_status_size, fields,
                           sizeof fields / sizeof fields[0], false};
    dgm_json_out j = {0};
    json_t *stats = NULL;
    dgm_error err;
    dgm_v1_put_stats(q->server, &j);
    const dgm_status st = j.w.failed
                              ? dgm_no_memory(&err)
                              : dgm_json_parse(&stats, (const char *)j.w.data, j.w.size, &err);
    dgm_writer_free(&j.w);
    view v = {.server = q->server, .stats = stats};
    if (st == DGM_OK)
        dgm_page_answer(q, 200, &page, &v);
    else
        dgm_answer(q, 500, "text/plain", "out of memory\n", 14);
    json_decref(stats);
}
