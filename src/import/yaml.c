// SPDX-License-Identifier: MIT
// YAML to jansson; see yaml.h. libyaml's events are put together with a stack of our own, so that nesting in
// the text is no recursion here.
#include "import/yaml.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "base/mapfile.h"
#include "base/mem.h"

enum { DEPTH_MAX = 64, SIZE_MAX_BYTES = 128 << 20 };

typedef struct level {
    json_t *node; // owned by the level above, or by the tree
    char *key;    // of a mapping, between key and value; dgm_free
} level;

typedef struct tree {
    json_t *root;
    level levels[DEPTH_MAX];
    int depth;
} tree;

static dgm_status at(const yaml_event_t *e, dgm_error *err, const char *what)
{
    return dgm_fail(err, DGM_ERR_FORMAT, "line %zu, column %zu: %s", e->start_mark.line + 1,
                    e->start_mark.column + 1, what);
}

// ---- scalars -----------------------------------------------------------------------------------

static bool looks_like_number(const char *s)
{
    if (*s == '-' || *s == '+') s++;
    if (*s == '.') s++;
    if (*s < '0' || *s > '9') return false;
    return s[strspn(s, "0123456789.eE+-")] == 0;
}

static json_t *plain_scalar(const char *s, size_t size)
{
    if (size == 0 || strcmp(s, "~") == 0 || strcmp(s, "null") == 0) return json_null();
    if (strcmp(s, "true") == 0) return json_true();
    if (strcmp(s, "false") == 0) return json_false();
    if (looks_like_number(s)) {
        char *end;
        errno = 0;
        const long long whole = strtoll(s, &end, 10);
        if (*end == 0 && errno == 0) return json_integer(whole);
        const double real = strtod(s, &end);
        if (*end == 0 && isfinite(real)) return json_real(real);
    }
    return json_stringn(s, size);
}

static dgm_status make_scalar(const yaml_event_t *e, json_t **out, dgm_error *err)
{
    const char *s = (const char *)e->data.scalar.value;
    const size_t size = e->data.scalar.length;
    if (strlen(s) != size) return at(e, err, "a NUL in a value");
    const bool plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE && !e->data.scalar.tag;
    *out = plain ? plain_scalar(s, size) : json_stringn(s, size);
    return *out ? DGM_OK : dgm_no_memory(err);
}

// ---- the tree ----------------------------------------------------------------------------------

static level *top(tree *t)
{
    return t->depth > 0 ? &t->levels[t->depth - 1] : NULL;
}

// Puts a finished scalar or a new, empty container to its place; node is stolen.
static dgm_status place(tree *t, const yaml_event_t *e, json_t *node, dgm_error *err)
{
    level *l = top(t);
    int failed = 0;
    if (!l) {
        t->root = node;
    } else if (json_is_array(l->node)) {
        failed = json_array_append_new(l->node, node);
    } else if (!l->key) {
        json_decref(node);
        return at(e, err, "a key that is no plain word");
    } else {
        failed = json_object_set_new(l->node, l->key, node);
        dgm_free(l->key);
        l->key = NULL;
    }
    return failed ? dgm_no_memory(err) : DGM_OK;
}

static dgm_status take_key(level *l, const yaml_event_t *e, dgm_error *err)
{
    const char *s = (const char *)e->data.scalar.value;
    if (strlen(s) != e->data.scalar.length) return at(e, err, "a NUL in a key");
    if (json_object_get(l->node, s)) return at(e, err, "this key is there twice");
    l->key = dgm_strdup(s);
    return l->key ? DGM_OK : dgm_no_memory(err);
}

static dgm_status take_scalar(tree *t, const yaml_event_t *e, dgm_error *err)
{
    level *l = top(t);
    if (l && json_is_object(l->node) && !l->key) return take_key(l, e, err);
    json_t *node = NULL;
    DGM_TRY(make_scalar(e, &node, err));
    return place(t, e, node, err);
}

static dgm_status open_level(tree *t, const yaml_event_t *e, json_t *node, dgm_error *err)
{
    if (!node) return dgm_no_memory(err);
    if (t->depth == DEPTH_MAX) {
        json_decref(node);
        return at(e, err, "nested too deeply");
    }
    DGM_TRY(place(t, e, node, err));
    t->levels[t->depth++] = (level){.node = node};
    return DGM_OK;
}

static dgm_status take_event(tree *t, const yaml_event_t *e, dgm_error *err)
{
    switch (e->type) {
    case YAML_SCALAR_EVENT:
        return take_scalar(t, e, err);
    case YAML_SEQUENCE_START_EVENT:
        return open_level(t, e, json_array(), err);
    case YAML_MAPPING_START_EVENT:
        return open_level(t, e, json_object(), err);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        t->depth--;
        return DGM_OK;
    case YAML_ALIAS_EVENT:
        return at(e, err, "aliases are not read");
    default:
        return DGM_OK;
    }
}

static dgm_status parse_error(const yaml_parser_t *p, dgm_error *err)
{
    if (p->error == YAML_MEMORY_ERROR) return dgm_no_memory(err);
    if (p->error == YAML_READER_ERROR)
        return dgm_fail(err, DGM_ERR_FORMAT, "byte %zu: %s", p->problem_offset, p->problem);
    return dgm_fail(err, DGM_ERR_FORMAT, "line %zu, column %zu: %s", p->problem_mark.line + 1,
                    p->problem_mark.column + 1, p->problem ? p->problem : "not YAML");
}

// Events up to the end of the first document.
static dgm_status take_events(tree *t, yaml_parser_t *p, dgm_error *err)
{
    for (;;) {
        yaml_event_t e;
        if (!yaml_parser_parse(p, &e)) return parse_error(p, err);
        const yaml_event_type_t type = e.type;
        const dgm_status st = take_event(t, &e, err);
        yaml_event_delete(&e);
        if (st != DGM_OK) return st;
        if (type == YAML_DOCUMENT_END_EVENT || type == YAML_STREAM_END_EVENT) return DGM_OK;
    }
}

dgm_status dgm_yaml_parse(json_t **out, const void *data, size_t size, dgm_error *err)
{
    *out = NULL;
    dgm_json_init();
    DGM_FAIL_IF(size > SIZE_MAX_BYTES, err, DGM_ERR_FORMAT, "more than %d MiB of YAML",
                SIZE_MAX_BYTES >> 20);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) return dgm_no_memory(err);
    yaml_parser_set_encoding(&parser, YAML_UTF8_ENCODING);
    yaml_parser_set_input_string(&parser, size ? data : (const void *)"", size);
    tree *t = dgm_calloc(1, sizeof *t);
    const dgm_status st = t ? take_events(t, &parser, err) : dgm_no_memory(err);
    yaml_parser_delete(&parser);
    if (t) {
        for (int i = 0; i < DEPTH_MAX; i++) dgm_free(t->levels[i].key);
        *out = t->root;
        dgm_free(t);
    }
    if (st == DGM_OK && !*out) *out = json_null();
    if (st == DGM_OK) return DGM_OK;
    json_decref(*out);
    *out = NULL;
    return st;
}

dgm_status dgm_yaml_read(json_t **out, const char *path, dgm_error *err)
{
    dgm_mapfile f;
    *out = NULL;
    DGM_TRY(dgm_mapfile_open(&f, path, err));
    const dgm_status st = dgm_yaml_parse(out, f.data, f.size, err);
    dgm_mapfile_close(&f);
    if (st != DGM_OK && st != DGM_ERR_MEMORY) dgm_error_prefix(err, "'%s'", path);
    return st;
}
