// SPDX-License-Identifier: MIT
// Translations that are told while they are made: server-sent events, and JSON lines in groups.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "server/v1_private.h"

// ---- server-sent events ---------------------------------------------------------------------------

void dgm_v1_put_event(dgm_request *q, const char *name, dgm_json_out *j)
{
    dgm_writer w = {0};
    dgm_write_format(&w, "event: %s\ndata: ", name);
    dgm_write_bytes(&w, j->w.data, j->w.size);
    dgm_write_text(&w, "\n\n");
    if (!w.failed && !j->w.failed) dgm_stream_put(q, w.data, w.size);
    dgm_writer_free(&w);
    dgm_writer_free(&j->w);
}

// Whole words that will not change, and whole sentences.
static void on_words(void *user, const dgm_task_told *told)
{
    dgm_v1_wish *w = user;
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_integer(&j, "text", (int64_t)told->text);
    dgm_out_integer(&j, "sentence", (int64_t)told->segment);
    if (told->whole && told->source) dgm_out_text(&j, "source", told->source, told->source_size);
    dgm_out_text(&j, told->whole ? "translation" : "begin", told->begin, told->size);
    if (told->whole) dgm_out_text(&j, "gap", told->gap, told->gap_size);
    dgm_out_end(&j);
    dgm_v1_put_event(w->request, told->whole ? "sentence" : "words", &j);
}

void dgm_v1_put_error_event(dgm_request *q, dgm_status st, const dgm_error *err)
{
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "error", err->text[0] ? err->text : dgm_status_name(st));
    dgm_out_string(&j, "code", dgm_v1_code(st));
    dgm_out_end(&j);
    dgm_v1_put_event(q, "error", &j);
}

static void on_done(dgm_task *task, void *user)
{
    dgm_v1_wish *w = user;
    dgm_request *q = w->request;
    const dgm_task_view *view = dgm_task_look(task);
    if (view->status != DGM_OK) {
        dgm_v1_put_error_event(q, view->status, &view->error);
    } else {
        dgm_json_out j = {0};
        dgm_out_object(&j, NULL);
        dgm_v1_put_answer(&j, w, view);
        dgm_out_end(&j);
        dgm_v1_put_event(q, "done", &j);
    }
    dgm_task_free(&task);
    dgm_stream_end(q);
}

bool dgm_v1_wants_events(const dgm_request *q)
{
    const char *accept = dgm_request_header(q, "Accept");
    return accept && strstr(accept, "text/event-stream");
}

void dgm_v1_begin_events(dgm_request *q)
{
    dgm_answer_header(q, "Cache-Control", "no-cache");
    dgm_answer_header(q, "X-Accel-Buffering", "no"); // nginx hands events on as they come
    dgm_stream_begin(q, 200, "text/event-stream");
}

// A sentence that may be translated again, to save a number or a name that it lost, cannot be told before: in
// streams this
// is off unless the request asks for it ("no-protect": false). False: no memory.
static bool leave_unprotected(dgm_request *q, dgm_v1_wish *w)
{
    static const char name[] = "no-protect";
    dgm_task_setting *list = dgm_request_memory(q, (w->setting_count + 1) * sizeof *list);
    if (!list) return false;
    bool given = false;
    for (size_t i = 0; i < w->setting_count; i++) {
        list[i] = w->settings[i];
        given = given || strcmp(list[i].name, name) == 0;
    }
    w->settings = list;
    if (!given) list[w->setting_count++] = (dgm_task_setting){name, "1"};
    return true;
}

void dgm_v1_stream(dgm_request *q, dgm_v1_wish *w)
{
    dgm_error err;
    if (!leave_unprotected(q, w)) {
        dgm_answer_error(q, 500, "out of memory");
        return;
    }
    dgm_task_spec spec = dgm_v1_spec(w);
    spec.sentences = true; // what is told belongs to a sentence
    spec.done = on_done;
    spec.partial = on_words;
    dgm_v1_begin_events(q);
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "source", w->from);
    dgm_out_string(&j, "target", w->to);
    dgm_v1_put_detected(&j, w);
    dgm_out_integer(&j, "texts", (int64_t)w->count);
    dgm_out_end(&j);
    dgm_v1_put_event(q, "begin", &j);
    const dgm_status st = dgm_task_start(q->server, q, &spec, &err);
    if (st == DGM_OK) return;
    dgm_v1_put_error_event(q, st, &err);
    dgm_stream_end(q);
}

// ---- JSON lines -----------------------------------------------------------------------------------

enum { GROUP = 256, LINES_MOST = 1000000 };

static void put_line(dgm_request *q, dgm_json_out *j)
{
    static const char none[] = "{\"error\":\"out of memory\"}\n"; // so that every line has its answer
    dgm_write_u8(&j->w, '\n');
    if (j->w.failed)
        dgm_stream_put(q, none, sizeof none - 1);
    else
        dgm_stream_put(q, j->w.data, j->w.size);
    dgm_writer_free(&j->w);
}

static void put_id(dgm_json_out *j, const dgm_v1_wish *w, size_t i)
{
    dgm_out_object(j, NULL);
    if (!w->ids[i]) return;
    char *text = dgm_json_text(w->ids[i], JSON_COMPACT | JSON_ENCODE_ANY);
    if (text) dgm_out_raw(j, "id", text);
    j->w.failed = j->w.failed || !text;
    dgm_free(text);
}

static void put_failure(dgm_v1_wish *w, size_t i, const char *why)
{
    dgm_json_out j = {0};
    put_id(&j, w, i);
    dgm_out_string(&j, "error", why);
    dgm_out_end(&j);
    put_line(w->request, &j);
}

static void put_result(dgm_v1_wish *w, size_t i, const dgm_task_result *r)
{
    if (r->status != DGM_OK) {
        put_failure(w, i, r->message);
        return;
    }
    dgm_json_out j = {0};
    put_id(&j, w, i);
    dgm_out_text(&j, "text", r->translations[0], r->sizes[0]);
    if (w->alternatives) {
        dgm_out_array(&j, "alternatives");
        for (size_t k = 1; k < r->count; k++) dgm_out_text(&j, NULL, r->translations[k], r->sizes[k]);
        dgm_out_end(&j);
    }
    dgm_out_end(&j);
    put_line(w->request, &j);
}

static void next_group(dgm_v1_wish *w);

static void on_group(dgm_task *task, void *user)
{
    dgm_v1_wish *w = user;
    const dgm_task_view *view = dgm_task_look(task);
    for (size_t i = 0; i < w->group; i++) {
        if (view->status == DGM_OK)
            put_result(w, w->next + i, &view->results[i]);
        else
            put_failure(w, w->next + i, view->error.text);
    }
    dgm_task_free(&task);
    w->next += w->group;
    next_group(w);
}

// Groups one behind the other: a long list holds no more than one of them in memory at a time.
static void next_group(dgm_v1_wish *w)
{
    dgm_request *q = w->request;
    dgm_error err;
    while (w->next < w->count && !atomic_load(&q->gone)) {
        w->group = w->count - w->next < GROUP ? w->count - w->next : GROUP;
        dgm_task_spec spec = dgm_v1_spec(w);
        spec.texts = w->texts + w->next;
        spec.count = w->group;
        spec.done = on_group;
        if (dgm_task_start(q->server, q, &spec, &err) == DGM_OK) return;
        for (size_t i = 0; i < w->group; i++) put_failure(w, w->next + i, err.text);
        w->next += w->group;
    }
    dgm_stream_end(q);
}

static dgm_status read_line(dgm_request *q, dgm_v1_wish *w, const char *line, size_t size, dgm_error *err)
{
    dgm_error why;
    json_t *object = NULL;
    const dgm_status st = dgm_json_parse(&object, line, size, &why);
    const json_t *text = object ? json_object_get(object, "q") : NULL;
    const bool fine = st == DGM_OK && json_is_object(object) && json_is_string(text);
    // Its values are copied: the line's own object goes.
    const json_t *id = fine ? json_object_get(object, "id") : NULL;
    const size_t n = fine ? json_string_length(text) : 0;
    const char *own = fine ? dgm_request_copy(q, json_string_value(text), n) : NULL;
    if (own) {
        w->texts[w->count] = (dgm_task_text){.text = own, .size = n};
        w->ids[w->count] = id ? json_incref((json_t *)(uintptr_t)id) : NULL;
        w->count++;
    }
    json_decref(object);
    if (st == DGM_ERR_MEMORY || (fine && !own)) return dgm_no_memory(err);
    DGM_FAIL_IF(!fine, err, DGM_ERR_FORMAT, "line %zu is no JSON object with a string \"q\"", w->count + 1);
    return DGM_OK;
}

static void free_bulk(void *user)
{
    dgm_v1_wish *w = user;
    for (size_t i = 0; i < w->count; i++) json_decref((json_t *)(uintptr_t)w->ids[i]);
    dgm_pool_release(&w->listing);
}

static dgm_status read_lines(dgm_request *q, dgm_v1_wish *w, dgm_error *err)
{
    size_t lines = 1;
    for (size_t i = 0; i < q->body_size; i++) lines += q->body[i] == '\n';
    DGM_FAIL_IF(lines > LINES_MOST, err, DGM_ERR_ARGUMENT, "there are more than %d lines", LINES_MOST);
    w->texts = dgm_request_memory(q, (lines + 1) * sizeof *w->texts);
    w->ids = dgm_request_memory(q, (lines + 1) * sizeof *w->ids);
    if (!w->texts || !w->ids) return dgm_fail(err, DGM_ERR_MEMORY, "out of memory");
    for (size_t at = 0; at < q->body_size;) {
        const char *end = memchr(q->body + at, '\n', q->body_size - at);
        const size_t n = end ? (size_t)(end - q->body) - at : q->body_size - at;
        if (n > 1 || (n == 1 && q->body[at] != '\r')) DGM_TRY(read_line(q, w, q->body + at, n, err));
        at += n + 1;
    }
    return DGM_OK;
}

void dgm_v1_bulk(dgm_request *q)
{
    dgm_error err;
    dgm_v1_wish *w = dgm_v1_wish_new(q);
    if (!w) return;
    q->user_free = free_bulk;
    const char *alternatives = dgm_fields_find(&q->query, "alternatives", NULL);
    w->source = dgm_fields_find(&q->query, "source", NULL);
    w->target = dgm_fields_find(&q->query, "target", NULL);
    w->model = dgm_fields_find(&q->query, "model", NULL);
    dgm_status st =
        alternatives ? dgm_number_integer("alternatives", alternatives, 0, 63, &w->alternatives, &err) : DGM_OK;
    if (st == DGM_OK) st = read_lines(q, w, &err);
    if (st != DGM_OK) {
        dgm_answer_failure(q, st, &err);
        return;
    }
    if (!dgm_v1_languages_of(q, w)) return;
    dgm_stream_begin(q, 200, "application/x-ndjson");
    next_group(w);
}
