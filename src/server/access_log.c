// SPDX-License-Identifier: MIT
// The access log; see access_log.h.
#define _GNU_SOURCE
#include "server/access_log.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "server/json_out.h"
#include "server/route.h"

struct dgm_access_log {
    pthread_mutex_t lock;
    char *path;
    int fd;
    bool texts;
};

static int open_file(const char *path)
{
    return strcmp(path, "-") == 0 ? STDERR_FILENO : open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0640);
}

dgm_status dgm_access_log_open(dgm_access_log **out, const char *path, bool texts, dgm_error *err)
{
    *out = NULL;
    dgm_access_log *log = dgm_calloc(1, sizeof *log);
    if (!log) return dgm_no_memory(err);
    pthread_mutex_init(&log->lock, NULL);
    log->texts = texts;
    log->path = dgm_strdup(path);
    log->fd = open_file(path);
    dgm_status st = log->path ? DGM_OK : dgm_no_memory(err);
    if (log->fd < 0) st = dgm_fail(err, DGM_ERR_IO, "--log '%s': %s", path, strerror(errno));
    if (st != DGM_OK)
        dgm_access_log_close(&log);
    else
        *out = log;
    return st;
}

void dgm_access_log_close(dgm_access_log **at)
{
    dgm_access_log *log = *at;
    if (!log) return;
    *at = NULL;
    if (log->fd > STDERR_FILENO) close(log->fd);
    dgm_free(log->path);
    pthread_mutex_destroy(&log->lock);
    dgm_free(log);
}

void dgm_access_log_reopen(dgm_access_log *log)
{
    pthread_mutex_lock(&log->lock);
    const int fd = open_file(log->path);
    if (fd >= 0 && log->fd > STDERR_FILENO) close(log->fd);
    if (fd >= 0) log->fd = fd;
    pthread_mutex_unlock(&log->lock);
}

static void put_time(dgm_json_out *j)
{
    struct timespec now;
    struct tm parts;
    char text[40], day[24];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &parts);
    strftime(day, sizeof day, "%Y-%m-%dT%H:%M:%S", &parts);
    snprintf(text, sizeof text, "%s.%03dZ", day, (int)(now.tv_nsec / 1000000));
    dgm_out_string(j, "time", text);
}

static void put_texts(dgm_json_out *j, const dgm_request *q)
{
    const char *name = q->route && q->route->api == DGM_API_DEEPL ? "text" : "q";
    if (q->json) {
        const json_t *v = json_object_get(q->json, name);
        if (json_is_string(v)) dgm_out_text(j, "q", json_string_value(v), json_string_length(v));
        size_t i;
        json_t *one;
        if (!json_is_array(v)) return;
        dgm_out_array(j, "q");
        json_array_foreach(v, i, one) if (json_is_string(one))
            dgm_out_text(j, NULL, json_string_value(one), json_string_length(one));
        dgm_out_end(j);
        return;
    }
    size_t size = 0;
    const char *text = dgm_request_text(q, name, &size, NULL);
    if (text) dgm_out_text(j, "q", text, size);
}

void dgm_access_log_put(dgm_access_log *log, const dgm_request *q, double seconds)
{
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    put_time(&j);
    dgm_out_string(&j, "client", q->address);
    if (q->key) dgm_out_string(&j, "key", q->key->name);
    dgm_out_string(&j, "method", q->method);
    dgm_out_string(&j, "path", q->path);
    dgm_out_integer(&j, "status", atomic_load(&q->gone) ? 499 : q->status);
    dgm_out_integer(&j, "bytes_in", (int64_t)q->body_size);
    dgm_out_integer(&j, "bytes_out", (int64_t)q->out.size);
    dgm_out_real(&j, "ms", (double)(int64_t)(seconds * 1e6) / 1000);
    if (q->texts) {
        dgm_out_integer(&j, "texts", (int64_t)q->texts);
        dgm_out_integer(&j, "characters", (int64_t)q->characters);
        if (q->source) dgm_out_string(&j, "source", q->source);
        if (q->target) dgm_out_string(&j, "target", q->target);
    }
    if (q->reason[0]) dgm_out_string(&j, "error", q->reason);
    if (log->texts) put_texts(&j, q);
    dgm_out_end(&j);
    dgm_write_u8(&j.w, '\n');
    pthread_mutex_lock(&log->lock);
    // In one call, so that lines of several processes do not mix; a full disk must not stop the service.
    if (!j.w.failed && write(log->fd, j.w.data, j.w.size) < 0) errno = 0;
    pthread_mutex_unlock(&log->lock);
    dgm_writer_free(&j.w);
}
