// SPDX-License-Identifier: MIT
// DeepL's API: fields of requests, from JSON, forms and queries alike.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "server/api_table.h"
#include "server/deepl_private.h"
#include "server/shape.h"

static void refuse(dgm_request *q, const char *name)
{
    dgm_answer_error(q, 400, "Value for '%.60s' not supported.", name);
}

// A value of a form as JSON would have it: of a field that takes no texts, a number or a word.
static bool fits_form(const char *shape, const char *value, size_t size, bool *lost)
{
    json_t *text = json_stringn(value, size);
    bool fine = text && dgm_shape_fits(shape, text);
    char *end = NULL;
    const long number = strtol(value, &end, 10);
    json_t *v = fine || end == value || *end ? NULL : json_integer(number);
    if (v) fine = dgm_shape_fits(shape, v);
    *lost = *lost || !text;
    json_decref(text);
    json_decref(v);
    return fine;
}

static bool check_field(dgm_request *q, const dgm_api_field *f)
{
    const json_t *v = q->json ? json_object_get(q->json, f->name) : NULL;
    bool there = v != NULL, fine = !v || dgm_shape_fits(f->shape, v), lost = false;
    for (int list = 0; !q->json && list < 2; list++) {
        const dgm_field_list *fields = list ? &q->form : &q->query;
        for (size_t i = 0; i < fields->count; i++) {
            if (strcmp(fields->items[i].name, f->name) != 0) continue;
            there = true;
            fine = fine && fits_form(f->shape, fields->items[i].value, fields->items[i].size, &lost);
        }
    }
    if (lost)
        dgm_answer_error(q, 500, "out of memory");
    else if (f->required && !there && strcmp(f->shape, "binary") != 0)
        dgm_answer_error(q, 400, "Parameter '%s' not specified.", f->name);
    else if (there && !fine)
        refuse(q, f->name);
    else
        return true;
    return false;
}

bool dgm_deepl_check(dgm_request *q)
{
    const dgm_api_row *row = dgm_api_row_of(q->route);
    for (const dgm_api_field *f = row ? row->fields : NULL; f && f->name; f++)
        if (!check_field(q, f)) return false;
    return true;
}

const char *dgm_deepl_needed(dgm_request *q, const char *name)
{
    const char *text = dgm_request_text(q, name, NULL, NULL);
    if (text && text[0]) return text;
    if (text)
        refuse(q, name);
    else
        dgm_answer_error(q, 400, "Parameter '%s' not specified.", name);
    return NULL;
}

const char *dgm_deepl_word(dgm_request *q, const char *name)
{
    const json_t *v = q->json ? json_object_get(q->json, name) : NULL;
    if (json_is_integer(v)) return json_integer_value(v) ? "1" : "0";
    if (json_is_boolean(v)) return json_is_true(v) ? "1" : "0";
    return dgm_request_text(q, name, NULL, NULL);
}

bool dgm_deepl_flag(dgm_request *q, const char *name, bool standard)
{
    const char *word = dgm_deepl_word(q, name);
    return word ? strcmp(word, "1") == 0 || strcmp(word, "true") == 0 : standard;
}

// ---- several texts --------------------------------------------------------------------------------

typedef struct texts {
    dgm_request *request;
    dgm_task_text *items;
    size_t count, cap;
    bool parted, failed;
} texts;

static void add(texts *t, const char *text, size_t size)
{
    if (t->count == t->cap) {
        const size_t cap = t->cap ? 2 * t->cap : 16;
        dgm_task_text *more = dgm_request_memory(t->request, (cap + 1) * sizeof *more);
        t->failed = t->failed || !more;
        if (!more) return;
        if (t->count) memcpy(more, t->items, t->count * sizeof *more);
        t->items = more;
        t->cap = cap;
    }
    t->items[t->count++] = (dgm_task_text){.text = text, .size = size};
}

static void add_parts(texts *t, const char *text, size_t size)
{
    for (size_t at = 0; t->parted && at <= size;) {
        const char *comma = memchr(text + at, ',', size - at);
        const size_t n = comma ? (size_t)(comma - text) - at : size - at;
        char *own = n ? dgm_request_copy(t->request, text + at, n) : NULL;
        t->failed = t->failed || (n && !own);
        if (own) add(t, own, n);
        at += n + 1;
    }
    if (!t->parted) add(t, text, size);
}

dgm_task_text *dgm_deepl_texts(dgm_request *q, const char *name, bool parted, size_t *count)
{
    texts t = {.request = q, .parted = parted};
    const json_t *v = q->json ? json_object_get(q->json, name) : NULL;
    for (size_t i = 0; json_is_array(v) && i < json_array_size(v); i++) {
        const json_t *one = json_array_get(v, i);
        add_parts(&t, json_string_value(one), json_string_length(one));
    }
    if (json_is_string(v)) add_parts(&t, json_string_value(v), json_string_length(v));
    for (int list = 0; !q->json && list < 2; list++) {
        const dgm_field_list *fields = list ? &q->form : &q->query;
        for (size_t i = 0; i < fields->count; i++)
            if (strcmp(fields->items[i].name, name) == 0)
                add_parts(&t, fields->items[i].value, fields->items[i].size);
    }
    *count = t.count;
    if (!t.failed && !t.items) t.items = dgm_request_memory(q, sizeof *t.items);
    if (!t.failed && t.items) return t.items;
    dgm_answer_error(q, 500, "out of memory");
    return NULL;
}

// ---- what is not done here ------------------------------------------------------------------------

bool dgm_deepl_manners(dgm_request *q)
{
    static const char *const others[] = {"style_id", "translation_memory_id", "custom_instructions"};
    const char *formality = dgm_request_text(q, "formality", NULL, NULL);
    if (formality && (strcmp(formality, "more") == 0 || strcmp(formality, "less") == 0)) {
        dgm_answer_error(q, 400, "'formality' is not supported for given 'target_lang'.");
        return false;
    }
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        const bool there = q->json ? json_object_get(q->json, others[i]) != NULL
                                   : dgm_request_text(q, others[i], NULL, NULL) != NULL;
        if (!there) continue;
        dgm_answer_error(q, 400, "'%s' is not supported by this server.", others[i]);
        return false;
    }
    return true;
}

void dgm_deepl_not_found(dgm_request *q)
{
    dgm_answer_error(q, 404, "Not found");
}
