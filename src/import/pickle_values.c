// SPDX-License-Identifier: MIT
// What is in the values of a pickle; see pickle.h.
#include <string.h>

#include "import/pickle.h"

size_t dgm_py_count(const dgm_py *v)
{
    return v && (v->kind == DGM_PY_LIST || v->kind == DGM_PY_TUPLE) ? v->as.list.count : 0;
}

const dgm_py *dgm_py_item(const dgm_py *v, size_t i)
{
    return i < dgm_py_count(v) ? v->as.list.items[i] : NULL;
}

bool dgm_py_is_text(const dgm_py *v, const char *text)
{
    return v && v->kind == DGM_PY_TEXT && v->as.text.size == strlen(text) &&
           memcmp(v->as.text.data, text, v->as.text.size) == 0;
}

// An object's attributes. With slots its state is a pair of two dictionaries.
static const dgm_py *attributes(const dgm_py *v)
{
    const dgm_py *state = v->as.object.state;
    if (state && state->kind == DGM_PY_TUPLE)
        for (size_t i = 0; i < 2; i++) {
            const dgm_py *part = dgm_py_item(state, i);
            if (part && part->kind == DGM_PY_DICT) return part;
        }
    return state;
}

// The value under a key of a plain dictionary.
static const dgm_py *in_dict(const dgm_py *dict, const char *key)
{
    if (!dict || dict->kind != DGM_PY_DICT) return NULL;
    for (size_t i = 0; i + 1 < dict->as.list.count; i += 2)
        if (dgm_py_is_text(dict->as.list.items[i], key)) return dict->as.list.items[i + 1];
    return NULL;
}

// The dictionary or list of pairs that holds a value's entries.
static const dgm_py *entries(const dgm_py *v)
{
    if (!v) return NULL;
    if (v->kind != DGM_PY_OBJECT) return v->kind == DGM_PY_DICT ? v : NULL;
    switch (v->as.object.name->role) {
    case DGM_PY_MAPPING:
        // Python 2 wrote an OrderedDict as a list of pairs.
        return v->as.object.items ? v->as.object.items : dgm_py_item(v->as.object.args, 0);
    case DGM_PY_CONTAINER: {
        const dgm_py *content = in_dict(attributes(v), "_content");
        return content && content->kind == DGM_PY_DICT ? content : NULL;
    }
    default:
        return attributes(v);
    }
}

static const dgm_py *unwrap(const dgm_py *v)
{
    if (v && v->kind == DGM_PY_OBJECT && v->as.object.name->role == DGM_PY_NODE)
        return in_dict(attributes(v), "_val");
    return v;
}

size_t dgm_py_pairs(const dgm_py *v)
{
    const dgm_py *e = entries(v);
    if (!e) return 0;
    return e->kind == DGM_PY_DICT ? e->as.list.count / 2 : dgm_py_count(e);
}

bool dgm_py_pair(const dgm_py *v, size_t i, const dgm_py **key, const dgm_py **value)
{
    const dgm_py *e = entries(v);
    if (i >= dgm_py_pairs(v)) return false;
    if (e->kind == DGM_PY_DICT) {
        *key = e->as.list.items[2 * i];
        *value = unwrap(e->as.list.items[2 * i + 1]);
    } else {
        *key = dgm_py_item(dgm_py_item(e, i), 0);
        *value = dgm_py_item(dgm_py_item(e, i), 1);
    }
    return *key && *value;
}

const dgm_py *dgm_py_get(const dgm_py *v, const char *key)
{
    const dgm_py *k, *value;
    for (size_t i = 0; i < dgm_py_pairs(v); i++)
        if (dgm_py_pair(v, i, &k, &value) && dgm_py_is_text(k, key))
            return value->kind == DGM_PY_NONE ? NULL : value;
    return NULL;
}

dgm_status dgm_py_int(const dgm_py *v, const char *key, int64_t min, int64_t max, int64_t *out,
                      dgm_error *err)
{
    const dgm_py *x = dgm_py_get(v, key);
    if (!x) return DGM_OK;
    DGM_FAIL_IF(x->kind != DGM_PY_INT, err, DGM_ERR_FORMAT, "\"%s\" is not an integer", key);
    DGM_FAIL_IF(x->as.integer < min || x->as.integer > max, err, DGM_ERR_FORMAT,
                "\"%s\" is %lld, expected %lld to %lld", key, (long long)x->as.integer,
                (long long)min, (long long)max);
    *out = x->as.integer;
    return DGM_OK;
}

dgm_status dgm_py_bool(const dgm_py *v, const char *key, bool *out, dgm_error *err)
{
    const dgm_py *x = dgm_py_get(v, key);
    if (!x) return DGM_OK;
    DGM_FAIL_IF(x->kind != DGM_PY_BOOL && x->kind != DGM_PY_INT, err, DGM_ERR_FORMAT,
                "\"%s\" is neither true nor false", key);
    *out = x->as.integer != 0;
    return DGM_OK;
}

dgm_status dgm_py_string(const dgm_py *v, const char *key, dgm_text *out, dgm_error *err)
{
    const dgm_py *x = dgm_py_get(v, key);
    if (!x) return DGM_OK;
    DGM_FAIL_IF(x->kind != DGM_PY_TEXT, err, DGM_ERR_FORMAT, "\"%s\" is not a text", key);
    *out = x->as.text;
    return DGM_OK;
}
