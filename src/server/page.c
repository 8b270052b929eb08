// SPDX-License-Identifier: MIT
// The page at /: its languages and limits filled in, and translations for browsers that run no scripts (a form that
// comes back with its answer). What scripts do is in src/server/page.
#include <stdio.h>
#include <string.h>

#include "dragoman/document.h"
#include "server/page_private.h"
#include "server/v1_private.h"

// What the page shows; of GET only languages.
typedef struct view {
    dgm_server *server;
    const dgm_pool_listing *listing;
    const char *source, *target; // codes, or "auto"
    const char *text, *result;   // NULL: none
    size_t text_size, result_size;
    const char *detected; // name of a language
    const char *error;
    const char *key; // that was given
} view;

// ---- fields ---------------------------------------------------------------------------------------

static void put_base(dgm_writer *w, void *user)
{
    dgm_page_put_base(w, ((view *)user)->server);
}

static void put_title(dgm_writer *w, void *user)
{
    dgm_page_put_title(w, ((view *)user)->server);
}

static void put_option(dgm_writer *w, const char *code, const char *name, bool chosen)
{
    dgm_write_text(w, "<option value=\"");
    dgm_page_put_string(w, code);
    dgm_write_text(w, chosen ? "\" selected>" : "\">");
    dgm_page_put_string(w, name);
    dgm_write_text(w, "</option>\n");
}

static void put_sources(dgm_writer *w, void *user)
{
    const view *v = user;
    put_option(w, "auto", "Detect language", strcmp(v->source, "auto") == 0);
    for (size_t i = 0; v->listing && i < v->listing->count; i++) {
        const dgm_pool_language *l = &v->listing->items[i];
        if (l->source) put_option(w, l->code, l->name, strcmp(l->code, v->source) == 0);
    }
}

// A language that some other one is translated into.
static bool is_target(const dgm_pool_listing *listing, const char *code)
{
    for (size_t i = 0; i < listing->count; i++) {
        const dgm_pool_language *l = &listing->items[i];
        if (l->source && strcmp(l->code, code) != 0 && dgm_pool_offers(l, code)) return true;
    }
    return false;
}

static void put_targets(dgm_writer *w, void *user)
{
    const view *v = user;
    for (size_t i = 0; v->listing && i < v->listing->count; i++) {
        const dgm_pool_language *l = &v->listing->items[i];
        if (is_target(v->listing, l->code))
            put_option(w, l->code, l->name, strcmp(l->code, v->target) == 0);
    }
}

static void put_text(dgm_writer *w, void *user)
{
    const view *v = user;
    dgm_write_u8(w, '\n'); // the first one in a textarea is dropped
    if (v->text) dgm_page_put(w, v->text, v->text_size);
}

static void put_result(dgm_writer *w, void *user)
{
    const view *v = user;
    if (v->result) dgm_page_put(w, v->result, v->result_size);
}

static void put_target(dgm_writer *w, void *user)
{
    dgm_page_put_string(w, ((view *)user)->target);
}

static void put_notice(dgm_writer *w, void *user)
{
    const view *v = user;
    if (!v->detected) return;
    dgm_write_text(w, "Translated from ");
    dgm_page_put_string(w, v->detected);
}

static void put_error(dgm_writer *w, void *user)
{
    dgm_page_put_string(w, ((view *)user)->error);
}

static void put_limit(dgm_writer *w, void *user)
{
    dgm_write_format(w, "%d", (int)((view *)user)->server->options.char_limit);
}

static void put_delay(dgm_writer *w, void *user)
{
    dgm_write_format(w, "%d", (int)((view *)user)->server->options.frontend_timeout);
}

static void put_no_keys(dgm_writer *w, void *user)
{
    if (!((view *)user)->server->keys) dgm_write_text(w, " hidden");
}

static void put_key_needed(dgm_writer *w, void *user)
{
    if (((view *)user)->server->options.require_api_key) dgm_write_text(w, " open");
}

static void put_key(dgm_writer *w, void *user)
{
    dgm_page_put_string(w, ((view *)user)->key);
}

static void put_key_link(dgm_writer *w, void *user)
{
    const char *link = ((view *)user)->server->options.get_api_key_link;
    if (!link || (strncmp(link, "https://", 8) != 0 && strncmp(link, "http://", 7) != 0)) return;
    dgm_write_text(w, "<a href=\"");
    dgm_page_put_string(w, link);
    dgm_write_text(w, "\" rel=\"noreferrer\">Get a key</a>");
}

static void put_no_files(dgm_writer *w, void *user)
{
    if (((view *)user)->server->options.disable_files_translation) dgm_write_text(w, " hidden");
}

// ".txt,.md": what a file dialog offers.
static void put_endings(dgm_writer *w, void *user)
{
    (void)user;
    bool more = false;
    for (size_t i = 0; dgm_document_format_at(i); i++)
        for (const char *p = dgm_document_format_at(i)->endings; *p; more = true) {
            const size_t n = strcspn(p, " ");
            dgm_write_text(w, more ? ",." : ".");
            dgm_page_put(w, p, n);
            p += n + (p[n] == ' ');
        }
}

static void put_file_size(dgm_writer *w, void *user)
{
    dgm_write_format(w, "%lld", (long long)((view *)user)->server->options.file_bytes);
}

static void put_version(dgm_writer *w, void *user)
{
    (void)user;
    dgm_page_put_string(w, dgm_version());
}

static const dgm_page_field fields[] = {
    {"base", put_base},
    {"title", put_title},
    {"sources", put_sources},
    {"targets", put_targets},
    {"text", put_text},
    {"result", put_result},
    {"target", put_target},
    {"notice", put_notice},
    {"error", put_error},
    {"limit", put_limit},
    {"delay", put_delay},
    {"no-keys", put_no_keys},
    {"key-needed", put_key_needed},
    {"key", put_key},
    {"key-link", put_key_link},
    {"no-files", put_no_files},
    {"endings", put_endings},
    {"file-size", put_file_size},
    {"version", put_version},
};

static void answer(dgm_request *q, int status, view *v)
{
    const dgm_server_options *o = &q->server->options;
    const dgm_pool_listing *listing = dgm_pool_list(q->server);
    const dgm_page page = {DGM_PAGE_TRANSLATE, dgm_page_translate, dgm_page_translate_size, fields,
                           sizeof fields / sizeof fields[0], strcmp(q->route->method, "GET") == 0};
    v->server = q->server;
    v->listing = listing;
    const dgm_pool_language *source =
        dgm_pool_find(listing, v->source ? v->source : o->frontend_language_source);
    const dgm_pool_language *target =
        dgm_pool_find(listing, v->target ? v->target : o->frontend_language_target);
    v->source = source ? source->code : "auto";
    v->target = target ? target->code : listing && listing->target ? listing->target : "";
    dgm_page_answer(q, status, &page, v);
    dgm_pool_release(&listing);
}

// ---- GET / ----------------------------------------------------------------------------------------

void dgm_page_get(dgm_request *q)
{
    view v = {0};
    answer(q, 200, &v);
}

// ---- POST / ---------------------------------------------------------------------------------------

// What the form had, to be shown again.
static view view_of(dgm_request *q)
{
    view v = {.source = dgm_fields_find(&q->form, "source", NULL),
              .target = dgm_fields_find(&q->form, "target", NULL),
              .key = dgm_fields_find(&q->form, "api_key", NULL)};
    v.text = dgm_fields_find(&q->form, "q", &v.text_size);
    return v;
}

void dgm_page_refuse(dgm_request *q, int status, const char *text)
{
    view v = view_of(q);
    v.error = text;
    answer(q, status, &v);
}

static void show(dgm_request *q, const dgm_v1_wish *w, const char *result, size_t size)
{
    view v = view_of(q);
    const dgm_pool_language *from = w->detected ? dgm_pool_find(w->listing, w->from) : NULL;
    v.result = result;
    v.result_size = size;
    v.detected = from ? from->name : NULL;
    answer(q, 200, &v);
}

static void translated(dgm_task *task, void *user)
{
    dgm_v1_wish *w = user;
    dgm_request *q = w->request;
    const dgm_task_view *seen = dgm_task_look(task);
    if (seen->status != DGM_OK)
        dgm_answer_failure(q, seen->status, &seen->error);
    else if (seen->results[0].status != DGM_OK)
        dgm_answer_error(q, 400, "%s", seen->results[0].message);
    else
        show(q, w, seen->results[0].translations[0], seen->results[0].sizes[0]);
    dgm_task_free(&task);
}

// Browsers end lines of forms with CR LF.
static void take_returns(char *text, size_t *size)
{
    size_t n = 0;
    for (size_t i = 0; i < *size; i++)
        if (text[i] != '\r' || i + 1 == *size || text[i + 1] != '\n') text[n++] = text[i];
    text[n] = 0;
    *size = n;
}

void dgm_page_post(dgm_request *q)
{
    dgm_error err;
    size_t size = 0;
    const char *given = dgm_fields_find(&q->form, "q", &size);
    dgm_v1_wish *w = dgm_v1_wish_new(q);
    if (!w) return;
    char *text = dgm_request_copy(q, given ? given : "", size);
    w->texts = text ? dgm_request_memory(q, sizeof *w->texts) : NULL;
    if (!w->texts) {
        dgm_answer_error(q, 500, "out of memory");
        return;
    }
    take_returns(text, &size);
    w->texts[0] = (dgm_task_text){.text = text, .size = size};
    w->count = 1;
    w->source = dgm_fields_find(&q->form, "source", NULL);
    w->target = dgm_fields_find(&q->form, "target", NULL);
    if (!dgm_v1_languages_of(q, w)) return;
    if (size == 0 || strcmp(w->from, w->to) == 0) {
        show(q, w, text, size);
        return;
    }
    dgm_task_spec spec = dgm_v1_spec(w);
    spec.done = translated;
    const dgm_status st = dgm_task_start(q->server, q, &spec, &err);
    if (st != DGM_OK) dgm_answer_failure(q, st, &err);
}
