// SPDX-License-Identifier: MIT
// LibreTranslate's API as Swagger 2.0, as its own /spec says it: made of a table of endpoints and their fields.
#include <string.h>

#include "server/json_out.h"
#include "server/libre_private.h"

// "name|type|r|description": r where it is required, f where it is of a form with a file.
typedef struct endpoint {
    const char *path, *method, *tag, *summary;
    const char *fields[8];
    const char *answer; // what 200 means
} endpoint;

#define KEY "api_key|string||API key"

static const endpoint table[] = {
    {"/languages", "get", "translate", "Retrieve list of supported languages", {NULL}, "List of languages"},
    {"/translate",
     "post",
     "translate",
     "Translate text from a language to another",
     {"q|string|r|Text(s) to translate", "source|string|r|Source language code or \"auto\" for auto detection",
      "target|string|r|Target language code", "format|string||Format of source text: text or html",
      "alternatives|integer||Preferred number of alternative translations", KEY},
     "Translated text"},
    {"/detect",
     "post",
     "translate",
     "Detect the language of a single text",
     {"q|string|r|Text to detect", KEY},
     "Detections"},
    {"/translate_file",
     "post",
     "translate",
     "Translate file from a language to another",
     {"file|file|r|File to translate", "source|string|r|Source language code", "target|string|r|Target language code",
      KEY},
     "Translated file"},
    {"/suggest",
     "post",
     "feedback",
     "Submit a suggestion to improve a translation",
     {"q|string|r|Original text", "s|string|r|Suggested translation", "source|string|r|Language of original text",
      "target|string|r|Language of suggested translation"},
     "Success"},
    {"/frontend/settings", "get", "frontend", "Retrieve frontend specific settings", {NULL}, "Frontend settings"},
    {"/health", "get", "health", "Check the health of the server", {NULL}, "OK"},
};

// The next part of a field, up to "|".
static size_t part(const char **at, const char **text)
{
    const size_t n = strcspn(*at, "|");
    *text = *at;
    *at += n + ((*at)[n] == '|');
    return n;
}

static void put_field(dgm_json_out *j, const char *field)
{
    const char *name, *type, *required, *about;
    const char *at = field;
    const size_t name_size = part(&at, &name), type_size = part(&at, &type), needed = part(&at, &required);
    const size_t about_size = part(&at, &about);
    dgm_out_object(j, NULL);
    dgm_out_string(j, "in", "formData");
    dgm_out_text(j, "name", name, name_size);
    dgm_out_text(j, "type", type, type_size);
    dgm_out_bool(j, "required", needed > 0);
    dgm_out_text(j, "description", about, about_size);
    dgm_out_end(j);
}

static void put_answers(dgm_json_out *j, const endpoint *e)
{
    static const char *const codes[][2] = {
        {"400", "Invalid request"}, {"403", "Banned"}, {"429", "Slow down"}, {"500", "Server error"}};
    dgm_out_object(j, "responses");
    dgm_out_object(j, "200");
    dgm_out_string(j, "description", e->answer);
    dgm_out_end(j);
    for (size_t i = 0; e->fields[0] && i < sizeof codes / sizeof codes[0]; i++) {
        dgm_out_object(j, codes[i][0]);
        dgm_out_string(j, "description", codes[i][1]);
        dgm_out_end(j);
    }
    dgm_out_end(j);
}

static void put_endpoint(dgm_json_out *j, const endpoint *e)
{
    dgm_out_object(j, e->path);
    dgm_out_object(j, e->method);
    dgm_out_string(j, "summary", e->summary);
    dgm_out_array(j, "tags");
    dgm_out_string(j, NULL, e->tag);
    dgm_out_end(j);
    if (e->fields[0]) {
        dgm_out_array(j, "parameters");
        for (size_t i = 0; i < 8 && e->fields[i]; i++) put_field(j, e->fields[i]);
        dgm_out_end(j);
    }
    put_answers(j, e);
    dgm_out_end(j);
    dgm_out_end(j);
}

void dgm_libre_spec(dgm_request *q)
{
    const char *prefix = q->server->options.url_prefix;
    dgm_json_out j = {0};
    dgm_out_object(&j, NULL);
    dgm_out_string(&j, "basePath", prefix && prefix[0] ? prefix : "/");
    dgm_out_object(&j, "info");
    dgm_out_object(&j, "license");
    dgm_out_string(&j, "name", "MIT");
    dgm_out_end(&j);
    dgm_out_string(&j, "title", "LibreTranslate");
    dgm_out_string(&j, "version", "1.9.6");
    dgm_out_end(&j);
    dgm_out_object(&j, "paths");
    for (size_t i = 0; i < sizeof table / sizeof table[0]; i++) put_endpoint(&j, &table[i]);
    dgm_out_end(&j);
    dgm_out_string(&j, "swagger", "2.0");
    dgm_out_end(&j);
    dgm_answer_json(q, 200, &j);
}
