// SPDX-License-Identifier: MIT
// Documents (include/dragoman/document.h), and which language a text is in.
#include "py_dragoman.h"

#include <stdlib.h>

// ---- documents --------------------------------------------------------------------------------------

// What a document is written to, while the GIL is free.
typedef struct output {
    char *data;
    size_t size, cap;
} output;

static int put(void *cookie, const char *data, size_t size)
{
    output *o = cookie;
    if (o->size + size > o->cap) {
        const size_t cap = 2 * (o->size + size);
        char *more = realloc(o->data, cap);
        if (!more) return 1;
        o->data = more;
        o->cap = cap;
    }
    memcpy(o->data + o->size, data, size);
    o->size += size;
    return 0;
}

static dgm_status translate_all(py_engine *e, dgm_document *d, dgm_document_work *work, output *out, dgm_error *error)
{
    dgm_status st;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_document_translate(d, e->t, work, error);
    if (st == DGM_OK) st = dgm_document_write(d, put, out, error);
    Py_END_ALLOW_THREADS
    return st;
}

// (bytes, {format, lines, places, failed, notice})
static PyObject *document_result(const dgm_document *d, const output *out, const dgm_document_work *work)
{
    const dgm_document_info *i = dgm_document_describe(d);
    return Py_BuildValue("(y#{s:s,s:n,s:n,s:K,s:z})", out->data ? out->data : "", (Py_ssize_t)out->size, "format", i->format,
                         "lines", (Py_ssize_t)i->lines, "places", (Py_ssize_t)i->places, "failed",
                         (unsigned long long)work->failed, "notice", i->notice);
}

static PyObject *translate_document(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"engine", "data", "name", "format", "columns", "all", "width", "no_memory", "progress",
                            "output", NULL};
    PyObject *engine, *progress = Py_None;
    const char *data, *name = NULL;
    Py_ssize_t size;
    dgm_document_options o;
    (void)module;
    dgm_document_options_default(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!y#|zzzpipOz", names, (PyTypeObject *)py_engine_type, &engine, &data, &size,
                                     &name, &o.format, &o.columns, &o.all, &o.width, &o.no_memory, &progress, &o.output))
        return NULL;
    py_engine *e = (py_engine *)engine;
    if (!py_engine_enter(e)) return NULL;
    py_ticker ticker = {progress == Py_None ? NULL : progress, false};
    dgm_document_work work = {.size = sizeof work, .progress = {py_tick, &ticker}};
    dgm_document *d = NULL;
    dgm_error error;
    output out = {0};
    o.source_language = dgm_describe(e->t)->source_language;
    o.target_language = dgm_describe(e->t)->target_language;
    dgm_status st = dgm_document_open(&d, data, (size_t)size, name, &o, &error);
    if (st == DGM_OK) st = translate_all(e, d, &work, &out, &error);
    PyObject *result = st == DGM_OK && !ticker.failed ? document_result(d, &out, &work) : py_raise(st, error.text);
    dgm_document_close(&d);
    free(out.data);
    py_engine_leave(e);
    return result;
}

// ---- languages --------------------------------------------------------------------------------------

static PyObject *detect(PyObject *module, PyObject *args)
{
    enum { MOST = 64 };
    PyObject *object;
    const char *among = NULL;
    int most = 0;
    size_t size = 0, count = 0;
    dgm_detected found[MOST];
    dgm_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "Ozi", &object, &among, &most)) return NULL;
    const char *text = py_text(object, "text", -1, &size);
    if (!text) return NULL;
    if (most < 1 || most > MOST) return py_raise(DGM_ERR_ARGUMENT, "most must be 1 to 64");
    const dgm_status st = dgm_detect(text, size, among, found, (size_t)most, &count, &error);
    if (st != DGM_OK) return py_raise(st, error.text);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        PyObject *one = Py_BuildValue("(sf)", found[i].language, found[i].confidence);
        if (!one || PyList_SetItem(list, (Py_ssize_t)i, one)) Py_CLEAR(list);
    }
    return list;
}

PyMethodDef py_file_methods[] = {
    PY_METHOD("translate_document", translate_document, "translate_document(engine, data, name, ...) -> (bytes, dict)"),
    {"detect", detect, METH_VARARGS, "detect(text, among, most) -> list of (language, confidence)"},
    {NULL, NULL, 0, NULL},
};
