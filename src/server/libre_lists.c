// SPDX-License-Identifier: MIT
// LibreTranslate's API: languages, settings of a page, suggestions, health.
#define _GNU_SOURCE
#include <string.h>
#include <unistd.h>

#include "server/json_out.h"
#include "server/libre_private.h"

void dgm_libre_health(dgm_request *q)
{
    static const char text[] = "{\"status\":\"ok\"}\n";
    dgm_answer(q, 200, "application/json", text, sizeof text - 1);
}

void dgm_libre_languages(dgm_request *q)
{
    const dgm_pool_listing *list = dgm_pool_list(q->server);
    dgm_json_out j = {0};
    dgm_out_array(&j, NULL);
    for (size_t i = 0; list && i < list->count; i++) {
        const dgm_pool_language *l = &list->items[i];
        dgm_out_object(&j, NULL);
        dgm_out_string(&j, "code", l->code);
        dgm_out_string(&j, "name", l->name);
        dgm_out_array(&j, "targets");
        for (size_t k = 0; k < l->target_count; k++) dgm_out_string(&j, NULL, l->targets[k]);
        dgm_out_end(&j);
        dgm_out_end(&j);
    }
    dgm_out_end(&j);
    dgm_pool_release(&list);
    dgm_answer_json(q, 200, &j);
}

static void put_language(dgm_json_out *j, const char *key, const char *code, const char *name)
{
    dgm_out_object(j, key);
    dgm_out_string(j, "code", code);
    dgm_out_string(j, "name", name);
    dgm_out_end(j);
}

void dgm_libre_settings(dgm_request *q)
{
    const dgm_server_options *o = &q->server->options;
    const dgm_pool_listing *list = dgm_pool_list(q->server);
    const dgm_pool_language *source = dgm_pool_find(list, o->frontend_language_source);
    const dgm_pool_language *target = dgm_pool_find(list, o->frontend_language_target);
    if (!target && list) target = dgm_pool_find(list, list->target);
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_bool(&j, "apiKeys", q->server->keys != NULL);
    dgm_out_integer(&j, "charLimit", o->char_limit);
    dgm_out_bool(&j, "filesTranslation", !o->disable_files_translation);
    dgm_out_integer(&j, "frontendTimeout", o->frontend_timeout);
    dgm_out_bool(&j, "keyRequired", o->require_api_key != 0);
    dgm_out_object(&j, "language");
    put_language(&j, "source", source ? source->code : "auto", source ? source->name : "Auto Detect");
    put_language(&j, "target", target ? target->code : "en", target ? target->name : "English");
    dgm_out_end(&j);
    dgm_out_bool(&j, "suggestions", o->suggestions != 0);
    dgm_out_array(&j, "supportedFilesFormat");
    if (!o->disable_files_translation) dgm_libre_endings(&j);
    dgm_out_end(&j);
    dgm_out_end(&j);
    dgm_pool_release(&list);
    dgm_answer_json(q, 200, &j);
}

// One JSON object a line, in one write.
static bool keep(int fd, dgm_json_out *j)
{
    return !j->w.failed && write(fd, j->w.data, j->w.size) == (ssize_t)j->w.size;
}

void dgm_libre_suggest(dgm_request *q)
{
    static const char *const names[] = {"q", "s", "source", "target"};
    static const char done[] = "{\"success\":true}\n";
    if (!q->server->options.suggestions) {
        dgm_answer_error(q, 403, "Suggestions are disabled on this server.");
        return;
    }
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) {
        size_t size = 0;
        const char *text = dgm_request_text(q, names[i], &size, NULL);
        if (!text || !size) {
            dgm_writer_free(&j.w);
            dgm_answer_error(q, 400, "Invalid request: missing %s parameter", names[i]);
            return;
        }
        dgm_out_text(&j, names[i], text, size);
    }
    dgm_out_end(&j);
    dgm_write_u8(&j.w, '\n');
    if (keep(q->server->suggestions, &j))
        dgm_answer(q, 200, "application/json", done, sizeof done - 1);
    else
        dgm_answer_error(q, 500, "the suggestion could not be kept");
    dgm_writer_free(&j.w);
}
