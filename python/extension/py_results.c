// SPDX-License-Identifier: MIT
// Results as tuples. Numbers of tokens and links stay where the library put them: an Array is a buffer over them and
// keeps the results alive, so that numpy sees them without a copy.
#include "py_dragoman.h"

// ---- Array ------------------------------------------------------------------------------------------

PyObject *py_array_type;

typedef struct py_array {
    PyObject_HEAD
    PyObject *owner; // a capsule that frees what data points into
    const void *data;
    const char *format; // "f" or "i"
    int dimensions;
    Py_ssize_t shape[2], strides[2];
} py_array;

static const char owner_name[] = "dragoman results";

static PyObject *make_array(PyObject *owner, const void *data, const char *format, size_t rows, int columns)
{
    enum { ITEM = 4 }; // float and int32_t
    PyTypeObject *type = (PyTypeObject *)py_array_type;
    py_array *a = PyObject_New(py_array, type);
    if (!a) return NULL;
    static const char nothing[ITEM] = "";
    Py_INCREF(owner);
    a->owner = owner;
    a->data = data ? data : nothing;
    a->format = format;
    a->dimensions = columns ? 2 : 1;
    a->shape[0] = (Py_ssize_t)rows;
    a->shape[1] = columns;
    a->strides[0] = columns ? (Py_ssize_t)columns * ITEM : ITEM;
    a->strides[1] = ITEM;
    return (PyObject *)a;
}

static void array_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    Py_XDECREF(((py_array *)self)->owner);
    PyObject_Free(self);
    Py_DECREF(type);
}

static int array_buffer(PyObject *self, Py_buffer *view, int flags)
{
    py_array *a = (py_array *)self;
    if (flags & PyBUF_WRITABLE) {
        PyErr_SetString(PyExc_BufferError, "results are read-only");
        return -1;
    }
    Py_INCREF(self);
    *view = (Py_buffer){
        .obj = self,
        .buf = (void *)(uintptr_t)a->data,
        .len = a->shape[0] * a->strides[0],
        .itemsize = a->strides[1],
        .readonly = 1,
        .ndim = a->dimensions,
        .format = flags & PyBUF_FORMAT ? (char *)(uintptr_t)a->format : NULL,
        .shape = flags & PyBUF_ND ? a->shape : NULL,
        .strides = (flags & PyBUF_STRIDES) == PyBUF_STRIDES ? a->strides : NULL,
    };
    return 0;
}

static Py_ssize_t array_length(PyObject *self)
{
    return ((py_array *)self)->shape[0];
}

static PyType_Slot array_slots[] = {
    {Py_tp_dealloc, array_dealloc},
    {Py_bf_getbuffer, array_buffer},
    {Py_sq_length, array_length},
    {Py_tp_doc, "Numbers of a result, as a buffer: memoryview(array), numpy.asarray(array)."},
    {0, NULL},
};
PyType_Spec py_array_spec = {"dragoman._dragoman.Array", sizeof(py_array), 0,
                             Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, array_slots};

// ---- translations -----------------------------------------------------------------------------------

static PyObject *text_of(const char *text, size_t size)
{
    return PyUnicode_DecodeUTF8(text ? text : "", text ? (Py_ssize_t)size : 0, "replace");
}

static PyObject *maybe_text(const char *text)
{
    if (text) return text_of(text, strlen(text));
    Py_INCREF(Py_None);
    return Py_None;
}

PyObject *py_tokens(const char *const *tokens, size_t count)
{
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *token = text_of(tokens[i], strlen(tokens[i]));
        if (!token || PyList_SetItem(list, (Py_ssize_t)i, token)) Py_CLEAR(list);
    }
    return list;
}

// What was not asked for is None.
static PyObject *tokens_or_none(const dgm_translation *t)
{
    return t->tokens ? py_tokens(t->tokens, t->token_count) : maybe_text(NULL);
}

static PyObject *array_or_none(PyObject *owner, const void *data, const char *format, size_t rows, int columns)
{
    return data ? make_array(owner, data, format, rows, columns) : maybe_text(NULL);
}

// (text, score, sum, finished, approximate, tokens, token scores, links)
static PyObject *one_translation(const dgm_translation *t, PyObject *owner)
{
    return Py_BuildValue("(NffiiNNN)", text_of(t->text, t->text_size), t->score, t->sum, t->finished, t->approximate,
                         tokens_or_none(t), array_or_none(owner, t->token_scores, "f", t->token_count, 0),
                         array_or_none(owner, t->links, "i", t->link_count, 2));
}

static PyObject *translations_of(const dgm_result *r, PyObject *owner)
{
    PyObject *tuple = PyTuple_New((Py_ssize_t)r->count);
    for (size_t i = 0; tuple && i < r->count; i++) {
        PyObject *one = one_translation(r->translations[i], owner);
        if (!one || PyTuple_SetItem(tuple, (Py_ssize_t)i, one)) Py_CLEAR(tuple);
    }
    return tuple;
}

// (status, message, flags, source tokens, notice, translations)
static PyObject *one_result(const dgm_result *r, PyObject *owner)
{
    return Py_BuildValue("(iNIKNN)", (int)r->status, maybe_text(r->message), (unsigned)r->flags,
                         (unsigned long long)r->source_tokens, maybe_text(r->notice), translations_of(r, owner));
}

static void free_results(PyObject *capsule)
{
    dgm_results *results = PyCapsule_GetPointer(capsule, owner_name);
    dgm_results_free(&results);
}

PyObject *py_results(dgm_results *results)
{
    PyObject *owner = PyCapsule_New(results, owner_name, free_results);
    if (!owner) {
        dgm_results_free(&results);
        return NULL;
    }
    PyObject *list = PyList_New((Py_ssize_t)results->count);
    for (size_t i = 0; list && i < results->count; i++) {
        PyObject *one = one_result(results->items[i], owner);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one)) Py_CLEAR(list);
    }
    Py_DECREF(owner);
    return list;
}

// ---- scores of given translations -------------------------------------------------------------------

static void free_scores(PyObject *capsule)
{
    dgm_pair_scores *scores = PyCapsule_GetPointer(capsule, owner_name);
    dgm_pair_scores_free(&scores);
}

// (status, message, score, sum, tokens, token scores)
static PyObject *one_score(const dgm_pair_score *s, PyObject *owner)
{
    return Py_BuildValue("(iNffNN)", (int)s->status, maybe_text(s->message), s->score, s->sum,
                         py_tokens(s->tokens, s->token_count),
                         make_array(owner, s->token_scores, "f", s->token_count, 0));
}

PyObject *py_pair_scores(dgm_pair_scores *scores)
{
    PyObject *owner = PyCapsule_New(scores, owner_name, free_scores);
    if (!owner) {
        dgm_pair_scores_free(&scores);
        return NULL;
    }
    PyObject *list = PyList_New((Py_ssize_t)scores->count);
    for (size_t i = 0; list && i < scores->count; i++) {
        PyObject *one = one_score(scores->items[i], owner);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one)) Py_CLEAR(list);
    }
    Py_DECREF(owner);
    return list;
}
