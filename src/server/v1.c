// SPDX-License-Identifier: MIT
// Our own API: /v1/translate. Fields and answers are described in docs/internals/SERVER.md.
#include <stdio.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "dragoman/settings.h"
#include "server/api_table.h"
#include "server/usage.h"
#include "server/v1_private.h"

enum { ALTERNATIVES_MOST = 63 };

// ---- reading --------------------------------------------------------------------------------------

// Names are those of the table of fields.
static dgm_status check_names(const dgm_request *q, dgm_error *err)
{
    const dgm_api_row *row = dgm_api_row_of(q->route);
    const char *key;
    json_t *value;
    json_object_foreach(q->json, key, value)
    {
        DGM_FAIL_IF(!dgm_api_field_of(row, key), err, DGM_ERR_ARGUMENT, "\"%.60s\" is no field of this request", key);
    }
    return DGM_OK;
}

// A string, or an array of `count` strings (0: as many as there are), into fields of texts.
static dgm_status each_text(const json_t *v, const char *name, size_t count, dgm_text *out, dgm_error *err)
{
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_is_array(v) ? json_array_get(v, i) : v;
        DGM_FAIL_IF(!json_is_string(one), err, DGM_ERR_ARGUMENT,
                    "\"%s\" must be a string, or an array of as many strings as \"q\"", name);
        out[i] = (dgm_text){json_string_value(one), json_string_length(one)};
    }
    DGM_FAIL_IF(json_is_array(v) && json_array_size(v) != count, err, DGM_ERR_ARGUMENT,
                "\"%s\" must have as many strings as \"q\": %zu, not %zu", name, count, json_array_size(v));
    return DGM_OK;
}

static dgm_status read_texts(dgm_request *q, dgm_v1_wish *w, dgm_error *err)
{
    const json_t *v = json_object_get(q->json, "q");
    const char *const extra[] = {"prefix", "constraints"};
    DGM_FAIL_IF(!json_is_string(v) && !json_is_array(v), err, DGM_ERR_ARGUMENT,
                "\"q\" must be a string or an array of strings");
    w->count = json_is_array(v) ? json_array_size(v) : 1;
    w->texts = dgm_request_memory(q, (w->count + 1) * sizeof *w->texts);
    dgm_text *list = dgm_request_memory(q, (w->count + 1) * sizeof *list);
    if (!w->texts || !list) return dgm_no_memory(err);
    DGM_TRY(each_text(v, "q", w->count, list, err));
    for (size_t i = 0; i < w->count; i++) w->texts[i] = (dgm_task_text){.text = list[i].data, .size = list[i].size};
    for (int k = 0; k < 2; k++) {
        const json_t *more = json_object_get(q->json, extra[k]);
        if (!more || json_is_null(more)) continue;
        DGM_FAIL_IF(w->html, err, DGM_ERR_ARGUMENT, "\"format\": \"html\" does not go with \"%s\"", extra[k]);
        DGM_TRY(each_text(more, extra[k], w->count, list, err));
        for (size_t i = 0; i < w->count; i++) {
            if (k == 0 && list[i].size) w->texts[i].prefix = list[i].data, w->texts[i].prefix_size = list[i].size;
            if (k == 1 && list[i].size)
                w->texts[i].constraints = list[i].data, w->texts[i].constraints_size = list[i].size;
        }
    }
    return DGM_OK;
}

dgm_status dgm_v1_read_terms(dgm_request *q, const json_t *v, dgm_error *err)
{
    if (!v || json_is_null(v)) return DGM_OK;
    DGM_FAIL_IF(!json_is_array(v) || json_array_size(v) > 10000, err, DGM_ERR_ARGUMENT,
                "\"terms\" must be an array of at most 10000 objects");
    const size_t count = json_array_size(v);
    dgm_term *terms = count ? dgm_request_memory(q, count * sizeof *terms) : NULL;
    if (count == 0) return DGM_OK;
    if (!terms) return dgm_no_memory(err);
    for (size_t i = 0; i < count; i++) {
        const json_t *one = json_array_get(v, i);
        terms[i].source = json_string_value(json_object_get(one, "source"));
        terms[i].target = json_string_value(json_object_get(one, "target"));
        DGM_FAIL_IF(!terms[i].source || !terms[i].target || !terms[i].source[0] || !terms[i].target[0], err,
                    DGM_ERR_ARGUMENT, "a term has a \"source\" and a \"target\", neither empty");
    }
    dgm_termbook *book = NULL;
    DGM_TRY(dgm_termbook_make(&book, terms, count, err));
    return dgm_request_book(q, book) ? DGM_OK : dgm_no_memory(err);
}

// A value of a setting as text: 4, 0.6, true, "lexical".
static const char *value_text(dgm_request *q, const json_t *v)
{
    char number[40];
    if (json_is_string(v)) return json_string_value(v);
    if (json_is_boolean(v)) return json_is_true(v) ? "1" : "0";
    if (json_is_integer(v))
        snprintf(number, sizeof number, "%lld", (long long)json_integer_value(v));
    else if (json_is_real(v))
        snprintf(number, sizeof number, "%.17g", json_real_value(v));
    else
        return NULL;
    return dgm_request_copy(q, number, strlen(number));
}

// Before anything is answered: a stream that has begun could say it only as an event.
static dgm_status check_setting(dgm_settings *trial, const char *name, const char *value, dgm_error *err)
{
    const dgm_setting *row = dgm_setting_find(name);
    DGM_FAIL_IF(!row || !dgm_pool_may_set(row), err, DGM_ERR_ARGUMENT,
                "settings: '%.60s' is none that a request may set (GET /v1/settings lists them)", name);
    return dgm_settings_set(trial, row->name, value, err);
}

static dgm_status read_settings(dgm_request *q, dgm_v1_wish *w, dgm_error *err)
{
    dgm_settings trial;
    json_t *v = json_object_get(q->json, "settings");
    if (!v || json_is_null(v)) return DGM_OK;
    DGM_FAIL_IF(!json_is_object(v), err, DGM_ERR_ARGUMENT, "\"settings\" must be an object");
    w->settings = dgm_request_memory(q, (json_object_size(v) + 1) * sizeof *w->settings);
    if (!w->settings) return dgm_no_memory(err);
    const char *key;
    json_t *value;
    dgm_settings_default(&trial);
    json_object_foreach(v, key, value)
    {
        const char *text = value_text(q, value);
        if (!text && json_is_number(value)) return dgm_no_memory(err);
        DGM_FAIL_IF(!text, err, DGM_ERR_ARGUMENT, "settings: '%.60s' must be a number, a string, true or false", key);
        DGM_TRY(check_setting(&trial, key, text, err));
        w->settings[w->setting_count++] = (dgm_task_setting){key, text};
    }
    return DGM_OK;
}

static dgm_status read_plain(dgm_request *q, dgm_v1_wish *w, dgm_error *err)
{
    const char *format = "text";
    DGM_TRY(dgm_json_string(q->json, "source", &w->source, err));
    DGM_TRY(dgm_json_string(q->json, "target", &w->target, err));
    DGM_TRY(dgm_json_string(q->json, "model", &w->model, err));
    DGM_TRY(dgm_json_string(q->json, "format", &format, err));
    DGM_TRY(dgm_json_int(q->json, "alternatives", 0, ALTERNATIVES_MOST, &w->alternatives, err));
    DGM_TRY(dgm_json_int(q->json, "timeout_ms", 1, 86400000, &w->timeout_ms, err));
    DGM_TRY(dgm_json_bool(q->json, "sentences", &w->sentences, err));
    DGM_TRY(dgm_json_bool(q->json, "alignment", &w->alignment, err));
    DGM_TRY(dgm_json_bool(q->json, "word_scores", &w->word_scores, err));
    DGM_TRY(dgm_json_bool(q->json, "stream", &w->stream, err));
    DGM_TRY(dgm_json_int(q->json, "settle", 0, 1000, &w->settle, err));
    w->html = strcmp(format, "html") == 0;
    DGM_FAIL_IF(!w->html && strcmp(format, "text") != 0, err, DGM_ERR_ARGUMENT,
                "\"format\" must be \"text\" or \"html\", not \"%.40s\"", format);
    const int64_t most = q->server->options.alternatives_limit;
    DGM_FAIL_IF(most >= 0 && w->alternatives > most, err, DGM_ERR_ARGUMENT, "\"alternatives\" must be 0 to %lld",
                (long long)most);
    w->sentences = w->sentences || w->alignment || w->word_scores;
    DGM_FAIL_IF(w->html && (w->sentences || w->stream || w->alternatives), err, DGM_ERR_ARGUMENT,
                "\"format\": \"html\" goes with neither \"sentences\" nor \"stream\" nor \"alternatives\"");
    return DGM_OK;
}

static void free_wish(void *user)
{
    dgm_v1_wish *w = user; // its memory is the request's
    dgm_pool_release(&w->listing);
}

dgm_v1_wish *dgm_v1_wish_new(dgm_request *q)
{
    dgm_v1_wish *w = dgm_request_memory(q, sizeof *w);
    if (!w) {
        dgm_answer_error(q, 500, "out of memory");
        return NULL;
    }
    w->request = q;
    q->user = w;
    q->user_free = free_wish;
    return w;
}

bool dgm_v1_read(dgm_request *q, dgm_v1_wish *w)
{
    dgm_error err;
    dgm_status st = DGM_OK;
    if (!q->json) {
        dgm_answer_error(q, 415, "the body must be a JSON object, with Content-Type: application/json");
        return false;
    }
    st = check_names(q, &err);
    if (st == DGM_OK) st = read_plain(q, w, &err);
    if (st == DGM_OK) st = read_texts(q, w, &err);
    if (st == DGM_OK) st = dgm_v1_read_terms(q, json_object_get(q->json, "terms"), &err);
    if (st == DGM_OK) st = read_settings(q, w, &err);
    if (st == DGM_OK && dgm_v1_wants_events(q)) w->stream = true;
    if (st != DGM_OK) dgm_answer_failure(q, st, &err); // from here on it is nobody's
    return st == DGM_OK;
}

// ---- limits and languages -------------------------------------------------------------------------

static bool check_size(dgm_request *q, const dgm_v1_wish *w)
{
    const dgm_server_options *o = &q->server->options;
    const int64_t most = q->key && q->key->char_limit >= 0 ? q->key->char_limit : o->char_limit;
    q->texts = w->count;
    for (size_t i = 0; i < w->count; i++)
        q->characters += dgm_task_text_characters(&w->texts[i]);
    if (o->batch_limit >= 0 && w->count > (size_t)o->batch_limit) {
        dgm_answer_error(q, 413, "%zu texts are more than %lld, the limit", w->count, (long long)o->batch_limit);
        return false;
    }
    if (most < 0 || (int64_t)q->characters <= most) return dgm_request_bill(q);
    dgm_answer_error(q, 413, "%zu characters are more than %lld, the limit", q->characters, (long long)most);
    return false;
}

static dgm_status detect(dgm_v1_wish *w, dgm_error *err)
{
    enum { ENOUGH = 4096 }; // bytes
    dgm_pool_detected found[1];
    dgm_writer all = {0};
    size_t count = 0;
    for (size_t i = 0; i < w->count && all.size < ENOUGH; i++) {
        dgm_write_bytes(&all, w->texts[i].text, w->texts[i].size);
        dgm_write_u8(&all, '\n');
    }
    const dgm_status st = all.failed
                              ? dgm_no_memory(err)
                              : dgm_pool_detect(w->listing, (const char *)all.data, all.size, found, 1, &count, err);
    dgm_writer_free(&all);
    if (st != DGM_OK) return st;
    w->detected = true;
    w->confidence = count ? found[0].confidence : 0;
    const dgm_pool_language *l = dgm_pool_find(w->listing, count ? found[0].code : w->listing->source);
    w->from = l ? l->code : w->listing->source;
    return DGM_OK;
}

bool dgm_v1_languages_of(dgm_request *q, dgm_v1_wish *w)
{
    dgm_error err;
    if (!check_size(q, w)) return false;
    if (!w->listing) w->listing = dgm_pool_list(q->server); // what was detected lies in the one that is there
    if (!w->listing || !w->listing->count) {
        dgm_answer_error(q, 503, "there is no model");
        return false;
    }
    const dgm_pool_language *to = dgm_pool_find(w->listing, w->target ? w->target : w->listing->target);
    const dgm_pool_language *from = w->source ? dgm_pool_find(w->listing, w->source) : NULL;
    const bool unknown = w->source && strcmp(w->source, "auto") != 0 && !from;
    if (unknown || !to) {
        dgm_answer_error(q, 400, "\"%s\": there is no language \"%.60s\" (GET /v1/languages lists them)",
                         unknown ? "source" : "target", unknown ? w->source : w->target);
        return false;
    }
    const dgm_status st = from ? DGM_OK : detect(w, &err);
    if (st != DGM_OK) {
        dgm_answer_failure(q, st, &err);
        return false;
    }
    if (from) w->from = from->code;
    w->to = to->code;
    q->source = w->from;
    q->target = w->to;
    return true;
}

// ---- answering ------------------------------------------------------------------------------------

static void translated(dgm_task *task, void *user)
{
    dgm_v1_wish *w = user;
    const dgm_task_view *view = dgm_task_look(task);
    if (view->status != DGM_OK) {
        dgm_answer_failure(w->request, view->status, &view->error);
    } else {
        dgm_json_out j = {0};
        dgm_out_object(&j, NULL);
        dgm_v1_put_answer(&j, w, view);
        dgm_out_end(&j);
        dgm_answer_json(w->request, 200, &j);
    }
    dgm_task_free(&task);
}

dgm_task_spec dgm_v1_spec(const dgm_v1_wish *w)
{
    return (dgm_task_spec){.source = w->from,
                           .target = w->to,
                           .model = w->model,
                           .texts = w->texts,
                           .count = w->count,
                           .nbest = (int)w->alternatives + 1,
                           .sentences = w->sentences,
                           .alignment = w->alignment,
                           .token_scores = w->word_scores,
                           .settings = w->settings,
                           .setting_count = w->setting_count,
                           .books = w->request->books,
                           .book_count = w->request->book_count,
                           .timeout_ms = w->timeout_ms,
                           .settle = (int)w->settle,
                           .done = translated,
                           .user = (void *)(uintptr_t)w};
}

void dgm_v1_translate(dgm_request *q)
{
    dgm_error err;
    dgm_v1_wish *w = dgm_v1_wish_new(q);
    if (!w || !dgm_v1_read(q, w) || !dgm_v1_languages_of(q, w)) return;
    if (w->stream) {
        dgm_v1_stream(q, w);
        return;
    }
    if (w->html) {
        dgm_v1_pages(q, w);
        return;
    }
    const dgm_task_spec spec = dgm_v1_spec(w);
    const dgm_status st = dgm_task_start(q->server, q, &spec, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}
