// SPDX-License-Identifier: MIT
// The offline tools: which models there are, import, quantisation, evaluation, word alignment. Paths come as bytes
// (os.fsencode). Long work gives the GIL away and ends when a signal comes (py_tick).
#include "py_dragoman.h"

#include <stdlib.h>

// What the library said while the GIL was free, one line after the other.
typedef struct collected {
    char *text;
    size_t size;
    bool failed;
} collected;

static int collect(void *cookie, const char *text, size_t size)
{
    collected *c = cookie;
    char *more = realloc(c->text, c->size + size + 1);
    if (!more) {
        c->failed = true;
        return 1;
    }
    memcpy(more + c->size, text, size);
    more[c->size + size] = 0;
    c->text = more;
    c->size += size;
    return 0;
}

static void collect_line(void *cookie, const char *text)
{
    if (!collect(cookie, text, strlen(text))) collect(cookie, "\n", 1);
}

static PyObject *collected_text(collected *c)
{
    PyObject *text = c->failed ? PyErr_NoMemory() : PyUnicode_DecodeUTF8(c->text ? c->text : "", (Py_ssize_t)c->size, "replace");
    free(c->text);
    c->text = NULL;
    return text;
}

// A path as bytes, or None, which is NULL. False after an exception.
static bool maybe_path(PyObject *object, const char **path)
{
    char *bytes = NULL;
    if (object != Py_None && PyBytes_AsStringAndSize(object, &bytes, NULL)) return false;
    *path = bytes;
    return true;
}

static PyObject *callable_or_null(PyObject *object)
{
    return object == Py_None ? NULL : object;
}

// ---- devices ----------------------------------------------------------------------------------------

// Those that can be used.
static PyObject *devices(PyObject *module, PyObject *args)
{
    enum { ROOM = 64 };
    (void)module;
    (void)args;
    dgm_device_info *found = PyMem_Calloc(ROOM, sizeof *found);
    if (!found) return PyErr_NoMemory();
    size_t count;
    Py_BEGIN_ALLOW_THREADS
    count = dgm_devices(found, ROOM);
    Py_END_ALLOW_THREADS
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && i < count && i < ROOM; i++) {
        if (found[i].problem[0]) continue;
        PyObject *row = Py_BuildValue("(ss)", found[i].name, found[i].precisions);
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    PyMem_Free(found);
    return list;
}

// ---- models -----------------------------------------------------------------------------------------

static PyObject *find_models(PyObject *module, PyObject *args)
{
    dgm_model_list *list = NULL;
    dgm_error error;
    dgm_status st;
    (void)module;
    (void)args;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_models_find(&list, &error);
    Py_END_ALLOW_THREADS
    if (st != DGM_OK) return py_raise(st, error.text);
    PyObject *out = PyList_New((Py_ssize_t)list->count);
    for (size_t i = 0; out && i < list->count; i++) {
        const dgm_model_entry *e = list->items[i];
        PyObject *one = Py_BuildValue("(NsssKKzi)", PyUnicode_DecodeFSDefault(e->path), e->name, e->source, e->target,
                                      (unsigned long long)e->bytes, (unsigned long long)e->parameters, e->problem,
                                      e->is_default);
        if (!one || PyList_SetItem(out, (Py_ssize_t)i, one)) Py_CLEAR(out);
    }
    dgm_models_free(&list);
    return out;
}

static PyObject *choose_model(PyObject *module, PyObject *args)
{
    const char *source = NULL, *target = NULL;
    char *path = NULL;
    dgm_error error;
    (void)module;
    if (!PyArg_ParseTuple(args, "zz", &source, &target)) return NULL;
    const dgm_status st = dgm_models_choose(source, target, &path, &error);
    PyObject *out = st == DGM_OK ? PyUnicode_DecodeFSDefault(path) : py_raise(st, error.text);
    dgm_string_free(&path);
    return out;
}

static PyObject *inspect(PyObject *module, PyObject *args)
{
    const char *path;
    char *text = NULL;
    dgm_error error;
    dgm_inspect_options options;
    (void)module;
    dgm_inspect_default(&options);
    options.json = 1;
    if (!PyArg_ParseTuple(args, "y", &path)) return NULL;
    const dgm_status st = dgm_inspect(path, &options, &text, &error);
    PyObject *out = st == DGM_OK ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : py_raise(st, error.text);
    dgm_string_free(&text);
    return out;
}

// ---- import and quantisation ------------------------------------------------------------------------

static PyObject *import_model(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"path",        "output",  "format", "type",    "source_language", "target_language",
                            "source_prefix", "name",  "description", "license", "author",   "url",
                            "card_file",   "source_spm", "target_spm", "bpe", "config",      "vocabs",
                            "progress",    NULL};
    const char *path, *output, *format = NULL;
    PyObject *progress = Py_None;
    dgm_import_options o;
    dgm_error error;
    dgm_status st;
    (void)module;
    dgm_import_default(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yy|zzzzzzzzzzzzzzzzO", names, &path, &output, &format, &o.type,
                                     &o.source_language, &o.target_language, &o.source_prefix, &o.name, &o.description,
                                     &o.license, &o.author, &o.url, &o.card_file, &o.source_spm, &o.target_spm, &o.bpe,
                                     &o.config, &o.vocabs, &progress))
        return NULL;
    py_ticker ticker = {callable_or_null(progress), false};
    collected notes = {0};
    o.progress = (dgm_progress){py_tick, &ticker};
    o.note = collect_line;
    o.note_cookie = &notes;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_import(format, path, output, &o, &error);
    Py_END_ALLOW_THREADS
    PyObject *out = collected_text(&notes);
    if (st == DGM_OK && !ticker.failed) return out;
    Py_XDECREF(out);
    return py_raise(st, error.text);
}

static PyObject *quantize_report(dgm_quantize_report *r)
{
    return Py_BuildValue("{s:n,s:n,s:K,s:K,s:d,s:K}", "converted", (Py_ssize_t)r->converted, "kept", (Py_ssize_t)r->kept,
                         "bytes_before", (unsigned long long)r->bytes_before, "bytes_after",
                         (unsigned long long)r->bytes_after, "relative_error", r->relative_error, "lines",
                         (unsigned long long)r->lines);
}

static PyObject *quantize(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"model", "output", "type", "keep", "precision", "calibrate", "saturate", "threads", "progress",
                             "packed", NULL};
    const char *model, *path = NULL;
    PyObject *output, *keep, *progress = Py_None;
    dgm_quantize_options o;
    dgm_quantize_report *report = NULL;
    dgm_error error;
    dgm_status st;
    (void)module;
    dgm_quantize_default(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yOsO!|zzdiOz", names, &model, &output, &o.type, &PyTuple_Type, &keep,
                                     &o.precision, &o.calibrate, &o.saturate, &o.threads, &progress, &o.packed) ||
        !maybe_path(output, &path))
        return NULL;
    o.keep_count = (size_t)PyTuple_Size(keep);
    const char **patterns = PyMem_Calloc(o.keep_count + 1, sizeof *patterns);
    if (!patterns) return PyErr_NoMemory();
    bool good = true;
    for (size_t i = 0; good && i < o.keep_count; i++)
        good = (patterns[i] = py_text(PyTuple_GetItem(keep, (Py_ssize_t)i), "keep", (Py_ssize_t)i, NULL)) != NULL;
    if (!good) {
        PyMem_Free(patterns);
        return NULL;
    }
    py_ticker ticker = {callable_or_null(progress), false};
    o.keep = patterns;
    o.progress = (dgm_progress){py_tick, &ticker};
    Py_BEGIN_ALLOW_THREADS
    st = dgm_quantize(model, path, &o, &report, &error);
    Py_END_ALLOW_THREADS
    PyMem_Free(patterns);
    PyObject *out = st == DGM_OK && !ticker.failed ? quantize_report(report) : py_raise(st, error.text);
    dgm_quantize_report_free(&report);
    return out;
}

// ---- evaluation -------------------------------------------------------------------------------------

// Lines of a tuple of str; PyMem_Free releases them. NULL after an exception.
static dgm_line *lines_of(PyObject *tuple, const char *what)
{
    const Py_ssize_t count = PyTuple_Check(tuple) ? PyTuple_Size(tuple) : 0;
    dgm_line *lines = PyMem_Calloc((size_t)count + 1, sizeof *lines);
    if (!lines) PyErr_NoMemory();
    for (Py_ssize_t i = 0; lines && i < count; i++)
        if (!(lines[i].data = py_text(PyTuple_GetItem(tuple, i), what, i, &lines[i].size))) {
            PyMem_Free(lines);
            lines = NULL;
        }
    return lines;
}

static PyObject *evaluate_lines(const dgm_eval_options *o, const dgm_line *system, const dgm_line *const *refs,
                                size_t ref_count, size_t lines)
{
    dgm_eval_score score = {.size = sizeof score};
    dgm_error error;
    dgm_status st;
    char name[64], signature[256];
    double *sentences = PyMem_Calloc(lines + 1, sizeof *sentences);
    if (!sentences) return PyErr_NoMemory();
    Py_BEGIN_ALLOW_THREADS
    st = dgm_evaluate(o, &system, 1, refs, ref_count, lines, &score, sentences, &error);
    if (st == DGM_OK) st = dgm_eval_describe(o, ref_count, name, sizeof name, signature, sizeof signature, &error);
    Py_END_ALLOW_THREADS
    PyObject *each = st == DGM_OK ? PyList_New((Py_ssize_t)lines) : py_raise(st, error.text);
    for (size_t i = 0; each && i < lines; i++) {
        PyObject *one = PyFloat_FromDouble(sentences[i]);
        if (!one || PyList_SetItem(each, (Py_ssize_t)i, one)) Py_CLEAR(each);
    }
    PyMem_Free(sentences);
    if (!each) return NULL;
    return Py_BuildValue("(dssddN)", score.score, name, signature, score.mean, score.half, each);
}

static PyObject *evaluate(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"hypotheses", "references", "metric", "tokenize", "smooth", "smooth_value", "lowercase",
                            "max_order", "char_order", "word_order", "beta", "samples", "seed", NULL};
    PyObject *hypotheses, *references;
    unsigned long long seed = 12345;
    dgm_eval_options o;
    (void)module;
    dgm_eval_default(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|szzdpiiidiK", names, &PyTuple_Type, &hypotheses, &PyTuple_Type,
                                     &references, &o.metric, &o.tokenize, &o.smooth, &o.smooth_value, &o.lowercase,
                                     &o.max_order, &o.char_order, &o.word_order, &o.beta, &o.samples, &seed))
        return NULL;
    o.seed = seed;
    const Py_ssize_t count = PyTuple_Size(references);
    dgm_line *system = lines_of(hypotheses, "hypothesis");
    dgm_line **refs = PyMem_Calloc((size_t)count + 1, sizeof *refs);
    bool good = system && refs;
    if (system && !refs) PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++) good = (refs[i] = lines_of(PyTuple_GetItem(references, i), "reference"));
    PyObject *out = good ? evaluate_lines(&o, system, (const dgm_line *const *)refs, (size_t)count,
                                          (size_t)PyTuple_Size(hypotheses))
                         : NULL;
    for (Py_ssize_t i = 0; refs && i < count; i++) PyMem_Free(refs[i]);
    PyMem_Free(refs);
    PyMem_Free(system);
    return out;
}

// ---- word alignment ---------------------------------------------------------------------------------

static PyObject *align(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"source", "target", "model", "iterations", "threads", "symmetrize", "subwords", "progress", NULL};
    const char *source, *target;
    PyObject *progress = Py_None;
    dgm_align_options o;
    dgm_error error;
    dgm_status st;
    (void)module;
    dgm_align_default(&o);
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "yy|iiizzO", names, &source, &target, &o.model, &o.iterations, &o.threads,
                                     &o.symmetrize, &o.subwords, &progress))
        return NULL;
    py_ticker ticker = {callable_or_null(progress), false};
    collected text = {0};
    o.progress = (dgm_progress){py_tick, &ticker};
    o.write = collect;
    o.write_cookie = &text;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_align(source, target, NULL, &o, NULL, &error);
    Py_END_ALLOW_THREADS
    PyObject *out = collected_text(&text);
    if (st == DGM_OK && !ticker.failed) return out;
    Py_XDECREF(out);
    return py_raise(st, error.text);
}

PyMethodDef py_tool_methods[] = {
    {"devices", devices, METH_NOARGS, "devices() -> list of (name, precisions)"},
    {"find_models", find_models, METH_NOARGS, "find_models() -> list of tuples"},
    {"choose_model", choose_model, METH_VARARGS, "choose_model(source, target) -> path"},
    {"inspect", inspect, METH_VARARGS, "inspect(path) -> JSON text"},
    PY_METHOD("import_model", import_model, "import_model(path, output, ...) -> notes, one a line"),
    PY_METHOD("quantize", quantize, "quantize(model, output, type, keep, ...) -> dict"),
    PY_METHOD("evaluate", evaluate, "evaluate(hypotheses, references, ...) -> tuple"),
    PY_METHOD("align", align, "align(source, target, ...) -> Pharaoh text"),
    {NULL, NULL, 0, NULL},
};
