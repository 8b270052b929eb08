// SPDX-License-Identifier: MIT
// LibreTranslate's API: texts. Messages, status codes and the shape of answers are those of LibreTranslate 1.9 (Flask's
// JSON: keys by name, a line feed at the end), since clients compare them.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/mem.h"
#include "server/json_out.h"
#include "server/libre_private.h"
#include "server/papers.h"
#include "server/usage.h"

// ---- reading --------------------------------------------------------------------------------------

// "\n".join(q.splitlines()): breaks of any kind become line feeds, the last one goes.
static char *join_lines(dgm_request *q, const char *text, size_t size, size_t *out)
{
    char *own = dgm_request_copy(q, text, size);
    size_t n = 0;
    if (!own) return NULL;
    for (size_t i = 0; i < size; i++) {
        char c = text[i];
        if (c == '\r' && i + 1 < size && text[i + 1] == '\n') continue;
        if (c == '\r' || c == '\v' || c == '\f') c = '\n';
        own[n++] = c;
    }
    if (n && own[n - 1] == '\n') n--;
    own[n] = 0;
    *out = n;
    return own;
}

static dgm_task_text text_of(const json_t *v)
{
    return (dgm_task_text){.text = json_string_value(v), .size = json_string_length(v)};
}

// The texts of "q". False: it was answered.
static bool read_texts(dgm_request *q, dgm_libre_wish *w)
{
    const json_t *v = q->json ? json_object_get(q->json, "q") : NULL;
    const size_t count = json_is_array(v) ? json_array_size(v) : 1;
    dgm_task_text *texts = dgm_request_memory(q, (count + 1) * sizeof *texts);
    if (!texts) {
        dgm_answer_error(q, 500, "out of memory");
        return false;
    }
    w->texts = texts;
    w->count = count;
    w->batch = json_is_array(v);
    bool fine = w->batch ? count > 0 : true;
    for (size_t i = 0; w->batch && i < count && fine; i++) {
        const json_t *one = json_array_get(v, i);
        fine = json_is_string(one);
        if (fine) texts[i] = text_of(one);
    }
    if (!w->batch) {
        size_t size = 0;
        const char *text = dgm_request_text(q, "q", &size, NULL);
        if (text && !q->json) text = join_lines(q, text, size, &size);
        fine = text && size;
        texts[0] = (dgm_task_text){.text = text, .size = size};
    }
    if (!fine) dgm_answer_error(q, 400, "Invalid request: missing q parameter");
    return fine;
}

bool dgm_libre_language(dgm_request *q, const char *name, const char **out)
{
    *out = dgm_request_text(q, name, NULL, NULL);
    if (*out && (*out)[0]) return true;
    dgm_answer_error(q, 400, "Invalid request: missing %s parameter", name);
    return false;
}

// Without its fraction; one that no answer has so many alternatives as is a large one.
static long whole_number(double n)
{
    const long most = 1000000;
    return n < 0 ? 0 : n < (double)most ? (long)n : most;
}

// int() of Python, of JSON numbers and of texts.
static bool read_alternatives(dgm_request *q, long *out)
{
    const json_t *v = q->json ? json_object_get(q->json, "alternatives") : NULL;
    const char *text = v ? json_string_value(v) : q->json ? NULL : dgm_request_text(q, "alternatives", NULL, NULL);
    char *end = NULL;
    *out = 0;
    if (v && json_is_number(v)) *out = whole_number(json_number_value(v));
    if (text) *out = strtol(text, &end, 10);
    if ((text && (end == text || *end)) || (v && !text && !json_is_number(v) && !json_is_null(v))) {
        dgm_answer_error(q, 400, "Invalid request: alternatives parameter is not a number");
        return false;
    }
    const long most = q->server->options.alternatives_limit;
    if (*out < 0) *out = 0;
    if (most >= 0 && *out > most) {
        dgm_answer_error(q, 400, "Invalid request: alternatives parameter must be <= %ld", most);
        return false;
    }
    if (*out > DGM_LIBRE_ALTERNATIVES) *out = DGM_LIBRE_ALTERNATIVES;
    return true;
}

static size_t characters(const dgm_task_text *texts, size_t count)
{
    size_t n = 0;
    for (size_t i = 0; i < count; i++) n += dgm_task_text_characters(&texts[i]);
    return n;
}

static bool check_size(dgm_request *q, const dgm_libre_wish *w)
{
    const dgm_server_options *o = &q->server->options;
    const int64_t most = q->key && q->key->char_limit >= 0 ? q->key->char_limit : o->char_limit;
    static const char text[] = "Invalid request: request (%lld) exceeds text limit (%lld)";
    q->texts = w->count;
    q->characters = characters(w->texts, w->count);
    if (w->batch && o->batch_limit >= 0 && w->count > (size_t)o->batch_limit) {
        dgm_answer_error(q, 400, text, (long long)w->count, (long long)o->batch_limit);
        return false;
    }
    if (most < 0 || (int64_t)q->characters <= most) return dgm_request_bill(q);
    dgm_answer_error(q, 400, text, (long long)q->characters, (long long)most);
    return false;
}

// ---- languages ------------------------------------------------------------------------------------

// One detection over all texts.
static bool detect(dgm_request *q, dgm_libre_wish *w)
{
    dgm_error err;
    dgm_writer all = {0};
    dgm_pool_detected found[1];
    size_t count = 0;
    for (size_t i = 0; i < w->count; i++) {
        dgm_write_bytes(&all, w->texts[i].text, w->texts[i].size);
        dgm_write_u8(&all, '\n');
    }
    const dgm_status st = all.failed
                              ? DGM_ERR_MEMORY
                              : dgm_pool_detect(w->listing, (const char *)all.data, all.size, found, 1, &count, &err);
    dgm_writer_free(&all);
    if (st == DGM_ERR_UNSUPPORTED) {
        dgm_answer_error(q, 400, "auto is not supported");
        return false;
    }
    if (st != DGM_OK) {
        dgm_answer_error(q, 500, "%s", st == DGM_ERR_MEMORY ? "out of memory" : err.text);
        return false;
    }
    w->detected = true;
    w->confidence = count ? found[0].confidence : 0;
    w->from = dgm_pool_find(w->listing, count ? found[0].code : "en");
    return true;
}

bool dgm_libre_pair(dgm_request *q, dgm_libre_wish *w)
{
    w->listing = dgm_pool_list(q->server);
    if (strcmp(w->source, "auto") == 0) {
        if (!detect(q, w)) return false;
    } else {
        w->from = dgm_pool_find(w->listing, w->source);
    }
    w->to = dgm_pool_find(w->listing, w->target);
    if (!w->from || !w->to) {
        dgm_answer_error(q, 400, "%.100s is not supported", w->from ? w->target : w->source);
        return false;
    }
    q->source = w->from->code;
    q->target = w->to->code;
    return true;
}

bool dgm_libre_offered(dgm_request *q, const dgm_libre_wish *w)
{
    if (dgm_pool_offers(w->from, w->to->code)) return true;
    dgm_answer_error(q, 400, "%s (%s) is not available as a target language from %s (%s)", w->to->name, w->to->code,
                     w->from->name, w->from->code);
    return false;
}

// ---- /translate -----------------------------------------------------------------------------------

static void put_detected(dgm_json_out *j, const char *key, const dgm_libre_wish *w)
{
    dgm_out_object(j, key);
    dgm_out_float(j, "confidence", (double)(int)(w->confidence * 100 + 0.5));
    dgm_out_string(j, "language", w->from->code);
    dgm_out_end(j);
}

static void put_alternatives(dgm_json_out *j, const char *key, const dgm_task_result *r)
{
    dgm_out_array(j, key);
    for (size_t k = 1; r && k < r->count; k++) dgm_out_text(j, NULL, r->translations[k], r->sizes[k]);
    dgm_out_end(j);
}

// view NULL: the texts stay as they are.
static void answer_texts(dgm_request *q, const dgm_libre_wish *w, const dgm_task_view *view)
{
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    if (w->alternatives > 0) {
        if (w->batch) dgm_out_array(&j, "alternatives");
        for (size_t i = 0; i < w->count; i++)
            put_alternatives(&j, w->batch ? NULL : "alternatives", view ? &view->results[i] : NULL);
        if (w->batch) dgm_out_end(&j);
    }
    if (w->detected && w->batch) {
        dgm_out_array(&j, "detectedLanguage");
        for (size_t i = 0; i < w->count; i++) put_detected(&j, NULL, w);
        dgm_out_end(&j);
    } else if (w->detected) {
        put_detected(&j, "detectedLanguage", w);
    }
    if (w->batch) dgm_out_array(&j, "translatedText");
    for (size_t i = 0; i < w->count; i++) {
        const char *key = w->batch ? NULL : "translatedText";
        if (view)
            dgm_out_text(&j, key, view->results[i].translations[0], view->results[i].sizes[0]);
        else
            dgm_out_text(&j, key, w->texts[i].text, w->texts[i].size);
    }
    if (w->batch) dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}

static void free_wish(void *user)
{
    dgm_libre_wish *w = user; // its memory is the request's
    dgm_pool_release(&w->listing);
}

dgm_libre_wish *dgm_libre_wish_new(dgm_request *q)
{
    dgm_libre_wish *w = dgm_request_memory(q, sizeof *w);
    if (!w) {
        dgm_answer_error(q, 500, "out of memory");
        return NULL;
    }
    w->request = q;
    q->user = w;
    q->user_free = free_wish;
    return w;
}

static void translated(dgm_task *task, void *user)
{
    dgm_libre_wish *w = user;
    const dgm_task_view *view = dgm_task_look(task);
    if (!dgm_answer_task_failure(w->request, view)) answer_texts(w->request, w, view);
    dgm_task_free(&task);
}

// Pages and parts of them; "alternatives" are always empty then.
static void pages_written(void *user, dgm_status st, const dgm_error *err, dgm_writer *outputs, size_t count)
{
    dgm_libre_wish *w = user;
    dgm_request *q = w->request;
    if (st != DGM_OK) {
        dgm_answer_failure(q, st, err);
        return;
    }
    dgm_task_text *texts = dgm_request_memory(q, (count + 1) * sizeof *texts);
    for (size_t i = 0; i < count; i++) {
        if (texts) texts[i] = (dgm_task_text){.text = (const char *)outputs[i].data, .size = outputs[i].size};
    }
    w->texts = texts;
    if (texts)
        answer_texts(q, w, NULL);
    else
        dgm_answer_error(q, 500, "out of memory");
    for (size_t i = 0; i < count; i++) dgm_writer_free(&outputs[i]);
}

static void start_pages(dgm_request *q, dgm_libre_wish *w)
{
    dgm_error err;
    const dgm_papers_spec spec = {.texts = w->texts,
                                  .count = w->count,
                                  .format = "html",
                                  .utf8 = true,
                                  .source = w->from->code,
                                  .target = w->to->code,
                                  .done = pages_written,
                                  .user = w};
    const dgm_status st = dgm_papers_start(q, &spec, NULL, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}

static void start(dgm_request *q, dgm_libre_wish *w)
{
    dgm_error err;
    const dgm_task_spec spec = {.source = w->from->code,
                                .target = w->to->code,
                                .texts = w->texts,
                                .count = w->count,
                                .nbest = (int)w->alternatives + 1,
                                .done = translated,
                                .user = w};
    const dgm_status st = dgm_task_start(q->server, q, &spec, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}

void dgm_libre_translate(dgm_request *q)
{
    dgm_libre_wish *w = dgm_libre_wish_new(q);
    if (!w || !read_texts(q, w) || !dgm_libre_language(q, "source", &w->source) ||
        !dgm_libre_language(q, "target", &w->target) || !read_alternatives(q, &w->alternatives) ||
        !check_size(q, w) || !dgm_libre_pair(q, w))
        return;
    bool wrong = false;
    const char *format = dgm_request_text(q, "format", NULL, &wrong);
    if (wrong) format = "that";
    if (!format || !format[0]) format = "text";
    w->html = strcmp(format, "html") == 0;
    if (!w->html && strcmp(format, "text") != 0) {
        dgm_answer_error(q, 400, "%.60s format is not supported", format);
        return;
    }
    if (!dgm_libre_offered(q, w)) return;
    if (strcmp(w->from->code, w->to->code) == 0)
        answer_texts(q, w, NULL);
    else if (w->html)
        start_pages(q, w);
    else
        start(q, w);
}

// ---- /detect --------------------------------------------------------------------------------------

void dgm_libre_detect(dgm_request *q)
{
    enum { MOST = 3 };
    dgm_libre_wish *w = dgm_libre_wish_new(q);
    if (!w || !read_texts(q, w)) return;
    q->texts = w->count;
    q->characters = characters(w->texts, w->count);
    w->listing = dgm_pool_list(q->server);
    dgm_json_out j = {0};
    dgm_error err;
    bool any = false;
    dgm_out_array(&j, NULL);
    for (size_t i = 0; i < w->count; i++) {
        dgm_pool_detected found[MOST];
        size_t count = 0;
        if (dgm_pool_detect(w->listing, w->texts[i].text, w->texts[i].size, found, MOST, &count, &err) != DGM_OK) {
            dgm_writer_free(&j.w);
            dgm_answer_error(q, 500, "%s", err.text);
            return;
        }
        for (size_t k = 0; k < count; k++) {
            if (k > 0 && found[k].confidence < 0.005) continue; // it would be 0
            any = true;
            dgm_out_object(&j, NULL);
            dgm_out_float(&j, "confidence", (double)(int)(found[k].confidence * 100 + 0.5));
            dgm_out_string(&j, "language", found[k].code);
            dgm_out_end(&j);
        }
    }
    if (!any) {
        dgm_out_object(&j, NULL);
        dgm_out_float(&j, "confidence", 0);
        dgm_out_string(&j, "language", "en");
        dgm_out_end(&j);
    }
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}
