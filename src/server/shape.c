// SPDX-License-Identifier: MIT
// Shapes of JSON values; see shape.h. A shape is constant text of ours: it is well-formed.
#include "server/shape.h"

#include <stdlib.h>
#include <string.h>

// Behind the first choice of a union: at "|", at what ends the union, or at the end.
static const char *behind(const char *p)
{
    int depth = 0;
    bool quoted = false;
    for (; *p; p++) {
        if (*p == '\'') quoted = !quoted;
        if (quoted) continue;
        if (depth == 0 && strchr("|,;]}", *p)) return p;
        if (strchr("[{(", *p)) depth++;
        if (strchr("]})", *p)) depth--;
    }
    return p;
}

static bool begins(const char *shape, const char *word, const char **rest)
{
    const size_t n = strlen(word);
    if (strncmp(shape, word, n) != 0) return false;
    *rest = shape + n;
    return true;
}

// "(0,64)" behind a word, or ";1,50" in an array; false: there is none.
static bool limits(const char *p, double *least, double *most)
{
    char *end;
    if (*p != '(' && *p != ';') return false;
    *least = strtod(p + 1, &end);
    *most = strtod(end + 1, &end);
    return true;
}

static const char *named(const char *name)
{
    const size_t n = (size_t)(behind(name) - name);
    for (size_t i = 0; dgm_named_shape_at(i); i++) {
        const dgm_named_shape *s = dgm_named_shape_at(i);
        if (strlen(s->name) == n && strncmp(s->name, name, n) == 0) return s->shape;
    }
    return "any";
}

// ---- checking -------------------------------------------------------------------------------------

static bool fits_array(const char *shape, const json_t *value)
{
    double least, most;
    if (!json_is_array(value)) return false;
    const char *end = shape;
    while (*(end = behind(end)) == '|') end++;
    const double count = (double)json_array_size(value);
    if (limits(end, &least, &most) && (count < least || count > most)) return false;
    for (size_t i = 0; i < json_array_size(value); i++)
        if (!dgm_shape_fits(shape, json_array_get(value, i))) return false;
    return true;
}

// The next member of an object's shape: its name, and its shape as the result; NULL: there are no more.
static const char *member(const char **at, char *name, size_t size, bool *required)
{
    const char *p = *at;
    if (*p == ',') p++;
    if (*p == '}' || !*p) return NULL;
    const size_t n = strcspn(p, "?:");
    *required = p[n] == ':' && *p != '*';
    if (n < size) memcpy(name, p, n);
    name[n < size ? n : 0] = 0;
    p += n;
    while (*p == '?' || *p == ':') p++;
    const char *end = p;
    while (*(end = behind(end)) == '|') end++;
    *at = end;
    return p;
}

static bool fits_object(const char *shape, const json_t *value)
{
    char name[64];
    bool required;
    if (!json_is_object(value)) return false;
    for (const char *part; (part = member(&shape, name, sizeof name, &required));) {
        const json_t *v = json_object_get(value, name);
        if (v ? !dgm_shape_fits(part, v) : required) return false;
    }
    return true;
}

static bool is_number(const json_t *value, bool whole)
{
    if (!whole) return json_is_number(value);
    return json_is_integer(value) ||
           (json_is_real(value) && json_real_value(value) == (double)(int64_t)json_real_value(value));
}

static bool fits_one(const char *shape, const json_t *value)
{
    const char *rest;
    double least, most;
    if (*shape == '[') return fits_array(shape + 1, value);
    if (*shape == '{') return fits_object(shape + 1, value);
    if (*shape == '#') return dgm_shape_fits(named(shape + 1), value);
    if (*shape == '\'') {
        const size_t n = strcspn(shape + 1, "'");
        return json_is_string(value) && json_string_length(value) == n &&
               strncmp(json_string_value(value), shape + 1, n) == 0;
    }
    if (begins(shape, "string", &rest)) return json_is_string(value) && (*rest != '+' || json_string_length(value));
    if (begins(shape, "boolean", &rest)) return json_is_boolean(value);
    if (begins(shape, "null", &rest)) return json_is_null(value);
    const bool whole = begins(shape, "integer", &rest);
    if (!whole && !begins(shape, "number", &rest)) return begins(shape, "any", &rest);
    if (!is_number(value, whole)) return false;
    return !limits(rest, &least, &most) || (json_number_value(value) >= least && json_number_value(value) <= most);
}

bool dgm_shape_fits(const char *shape, const json_t *value)
{
    for (;; shape++) {
        if (fits_one(shape, value)) return true;
        shape = behind(shape);
        if (*shape != '|') return false;
    }
}

// ---- JSON Schema ----------------------------------------------------------------------------------

static void put_limits(dgm_json_out *j, const char *p, const char *least_name, const char *most_name)
{
    double least, most;
    if (!limits(p, &least, &most)) return;
    dgm_out_real(j, least_name, least);
    dgm_out_real(j, most_name, most);
}

static void put_object(dgm_json_out *j, const char *shape)
{
    char name[64];
    bool required, any = false;
    dgm_out_string(j, "type", "object");
    dgm_out_object(j, "properties");
    const char *at = shape;
    for (const char *part; (part = member(&at, name, sizeof name, &required));) {
        any = any || required;
        if (strcmp(name, "*") != 0) dgm_shape_put(j, name, part);
    }
    dgm_out_end(j);
    if (!any) return;
    dgm_out_array(j, "required");
    for (at = shape; member(&at, name, sizeof name, &required);)
        if (required) dgm_out_string(j, NULL, name);
    dgm_out_end(j);
}

static void put_array(dgm_json_out *j, const char *shape)
{
    const char *end = shape;
    while (*(end = behind(end)) == '|') end++;
    dgm_out_string(j, "type", "array");
    dgm_shape_put(j, "items", shape);
    put_limits(j, end, "minItems", "maxItems");
}

static void put_reference(dgm_json_out *j, const char *name)
{
    char path[96] = "#/components/schemas/";
    const size_t n = (size_t)(behind(name) - name), used = strlen(path);
    if (used + n < sizeof path) memcpy(path + used, name, n);
    dgm_out_string(j, "$ref", path);
}

static void put_one(dgm_json_out *j, const char *shape)
{
    const char *rest;
    if (*shape == '[') {
        put_array(j, shape + 1);
    } else if (*shape == '{') {
        put_object(j, shape + 1);
    } else if (*shape == '#') {
        put_reference(j, shape + 1);
    } else if (begins(shape, "string", &rest)) {
        dgm_out_string(j, "type", "string");
        if (*rest == '+') dgm_out_integer(j, "minLength", 1);
    } else if (begins(shape, "binary", &rest)) {
        dgm_out_string(j, "type", "string");
        dgm_out_string(j, "format", "binary");
    } else if (begins(shape, "boolean", &rest)) {
        dgm_out_string(j, "type", "boolean");
    } else if (begins(shape, "null", &rest)) {
        dgm_out_string(j, "type", "null");
    } else if (begins(shape, "integer", &rest) || begins(shape, "number", &rest)) {
        dgm_out_string(j, "type", *shape == 'i' ? "integer" : "number");
        put_limits(j, rest, "minimum", "maximum");
    }
}

// Words alone are an enumeration; other choices stand side by side.
static bool is_words(const char *shape)
{
    for (;; shape++) {
        if (*shape != '\'') return false;
        shape = behind(shape);
        if (*shape != '|') return true;
    }
}

static void put_inside(dgm_json_out *j, const char *shape)
{
    const char *end = behind(shape);
    if (is_words(shape)) {
        dgm_out_array(j, "enum");
        for (;; shape = end + 1) {
            end = behind(shape);
            dgm_out_text(j, NULL, shape + 1, (size_t)(end - shape) - 2);
            if (*end != '|') break;
        }
        dgm_out_end(j);
        return;
    }
    if (*end != '|') {
        put_one(j, shape);
        return;
    }
    dgm_out_array(j, "anyOf");
    for (;; shape = end + 1) {
        end = behind(shape);
        dgm_out_object(j, NULL);
        if (*shape == '\'') {
            dgm_out_array(j, "enum");
            dgm_out_text(j, NULL, shape + 1, (size_t)(end - shape) - 2);
            dgm_out_end(j);
        } else {
            put_one(j, shape);
        }
        dgm_out_end(j);
        if (*end != '|') break;
    }
    dgm_out_end(j);
}

void dgm_shape_put_about(dgm_json_out *j, const char *key, const char *shape, const char *about)
{
    dgm_out_object(j, key);
    if (about) dgm_out_string(j, "description", about);
    put_inside(j, shape);
    dgm_out_end(j);
}

void dgm_shape_put(dgm_json_out *j, const char *key, const char *shape)
{
    dgm_shape_put_about(j, key, shape, NULL);
}
