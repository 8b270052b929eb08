// SPDX-License-Identifier: MIT
// Engine: a translator of the library. Calls count themselves in, so that closing one never takes it away from a call
// that is under way in another thread. A process that was forked has the memory of a translator but not its threads: it
// is told so, and never closes it.
#include "py_dragoman.h"

#include <stdlib.h>
#include <unistd.h>

PyObject *py_engine_type;

// ---- life -------------------------------------------------------------------------------------------

bool py_engine_enter(py_engine *e)
{
    if (e->closed) {
        PyErr_SetString(py_closed_error, "the translator is closed");
        return false;
    }
    if (e->pid != getpid()) {
        PyErr_SetString(py_fork_error, "the translator was opened before this process was forked: open one here, or start "
                                       "processes with the method \"spawn\"");
        return false;
    }
    e->users++;
    return true;
}

static void close_now(py_engine *e)
{
    dgm_translator *t = e->t;
    e->t = NULL;
    if (!t || e->pid != getpid()) return;
    Py_BEGIN_ALLOW_THREADS
    dgm_close(&t);
    Py_END_ALLOW_THREADS
}

void py_engine_leave(py_engine *e)
{
    e->users--;
    if (e->closed && e->users == 0) close_now(e);
}

static void engine_dealloc(PyObject *self)
{
    PyTypeObject *type = Py_TYPE(self);
    close_now((py_engine *)self);
    PyObject_Free(self);
    Py_DECREF(type);
}

static PyObject *engine_close(PyObject *self, PyObject *args)
{
    (void)args;
    py_engine *e = (py_engine *)self;
    e->closed = true;
    if (e->users == 0) close_now(e);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *engine_closed(PyObject *self, void *closure)
{
    (void)closure;
    return PyBool_FromLong(((py_engine *)self)->closed);
}

// settings: a tuple of pairs (name, text or None).
static bool take_settings(PyObject *pairs, dgm_settings *s)
{
    dgm_settings_default(s);
    const Py_ssize_t count = PyTuple_Size(pairs);
    for (Py_ssize_t i = 0; i < count; i++) {
        const char *name = NULL, *value = NULL;
        dgm_error error;
        if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, i), "sz", &name, &value)) return false;
        const dgm_status st = dgm_settings_set(s, name, value, &error);
        if (st != DGM_OK) {
            py_raise(st, error.text);
            return false;
        }
    }
    return count >= 0;
}

// members: a tuple of pairs (path as bytes or None, weight).
static bool take_members(PyObject *pairs, dgm_member *members, Py_ssize_t count)
{
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *path;
        char *bytes = NULL;
        if (!PyArg_ParseTuple(PyTuple_GetItem(pairs, i), "Of", &path, &members[i].weight)) return false;
        if (path != Py_None && PyBytes_AsStringAndSize(path, &bytes, NULL)) return false;
        members[i].path = bytes;
    }
    return true;
}

PyObject *py_open(PyObject *module, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"members", "settings", "lender", NULL};
    PyObject *pairs, *options, *like = Py_None;
    (void)module;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!O!|O", names, &PyTuple_Type, &pairs, &PyTuple_Type, &options, &like))
        return NULL;
    py_engine *lender = like == Py_None ? NULL : (py_engine *)like;
    if (lender && Py_TYPE(like) != (PyTypeObject *)py_engine_type) {
        PyErr_SetString(PyExc_TypeError, "lender must be an Engine");
        return NULL;
    }
    dgm_settings settings;
    dgm_error error;
    dgm_status st;
    dgm_translator *t = NULL;
    const Py_ssize_t count = PyTuple_Size(pairs);
    dgm_member *members = PyMem_Calloc((size_t)count + 1, sizeof *members);
    if (!members) return PyErr_NoMemory();
    if (!take_members(pairs, members, count) || !take_settings(options, &settings) || (lender && !py_engine_enter(lender))) {
        PyMem_Free(members);
        return NULL;
    }
    Py_BEGIN_ALLOW_THREADS
    st = lender ? dgm_open_like(&t, lender->t, &settings, &error)
                : dgm_open_ensemble(&t, members, (size_t)count, &settings, &error);
    Py_END_ALLOW_THREADS
    if (lender) py_engine_leave(lender);
    PyMem_Free(members);
    if (st != DGM_OK) return py_raise(st, error.text);
    py_engine *e = PyObject_New(py_engine, (PyTypeObject *)py_engine_type);
    if (!e) {
        dgm_close(&t);
        return NULL;
    }
    e->t = t;
    e->pid = getpid();
    e->users = 0;
    e->closed = false;
    return (PyObject *)e;
}

// ---- lines ------------------------------------------------------------------------------------------

// What comes with the lines beside their texts: tuples as long as that of the texts, or NULL.
typedef struct companions {
    PyObject *prefixes, *constraints, *directions, *tokens, *prefix_tokens;
} companions;

// Arrays of tokens of all lines, side by side.
typedef struct token_store {
    const char **items;
    size_t used, cap;
} token_store;

// Tokens of element `index` of a tuple that may be missing: a tuple of str, or None. *first is where they begin in the
// store, which may still move; *count -1: there are none. False after an exception.
static bool store_tokens(token_store *s, PyObject *tuple, Py_ssize_t index, size_t *first, Py_ssize_t *count)
{
    PyObject *line = tuple ? PyTuple_GetItem(tuple, index) : Py_None;
    *first = s->used;
    *count = -1;
    if (line == Py_None) return true;
    if (!line || !PyTuple_Check(line)) {
        PyErr_Format(PyExc_TypeError, "the tokens of line %zd must be a tuple of str", index);
        return false;
    }
    *count = PyTuple_Size(line);
    const size_t need = s->used + (size_t)*count + 1;
    if (need > s->cap) {
        const size_t cap = need > 2 * s->cap ? need : 2 * s->cap;
        const char **more = PyMem_Realloc(s->items, cap * sizeof *more);
        if (!more) return PyErr_NoMemory() != NULL;
        s->items = more;
        s->cap = cap;
    }
    for (Py_ssize_t i = 0; i < *count; i++)
        if (!(s->items[s->used++] = py_text(PyTuple_GetItem(line, i), "token", i, NULL))) return false;
    return true;
}

// Text of element `index` of a tuple that may be missing, as may be its text. False after an exception.
static bool maybe_text(PyObject *tuple, Py_ssize_t index, const char *what, const char **text, size_t *size)
{
    PyObject *item = tuple ? PyTuple_GetItem(tuple, index) : Py_None;
    if (item == Py_None) return true;
    *text = item ? py_text(item, what, index, size) : NULL;
    return *text != NULL;
}

static bool take_direction(PyObject *tuple, Py_ssize_t index, dgm_direction *direction, dgm_input *input)
{
    PyObject *item = tuple ? PyTuple_GetItem(tuple, index) : Py_None;
    if (item == Py_None) return true;
    if (!item || !PyArg_ParseTuple(item, "zz", &direction->source, &direction->target)) return false;
    input->direction = direction;
    return true;
}

static bool take_inputs(PyObject *texts, const companions *with, long long deadline, dgm_input *inputs,
                        dgm_direction *directions)
{
    const Py_ssize_t count = PyTuple_Size(texts);
    for (Py_ssize_t i = 0; i < count; i++) {
        dgm_input *in = &inputs[i];
        dgm_input_default(in);
        in->text = py_text(PyTuple_GetItem(texts, i), "text", i, &in->text_size);
        in->deadline_ms = deadline;
        if (!in->text || !maybe_text(with->prefixes, i, "prefix", &in->prefix, &in->prefix_size) ||
            !maybe_text(with->constraints, i, "constraints", &in->constraints, &in->constraints_size) ||
            !take_direction(with->directions, i, &directions[i], in))
            return false;
    }
    return true;
}

// A tuple as long as the texts, or None, which becomes NULL.
static bool check_companion(PyObject **tuple, Py_ssize_t count, const char *what)
{
    if (*tuple == Py_None) *tuple = NULL;
    if (!*tuple) return true;
    if (PyTuple_Check(*tuple) && PyTuple_Size(*tuple) == count) return true;
    PyErr_Format(PyExc_ValueError, "there must be as many %s as texts, %zd", what, count);
    return false;
}

// The lines' tokens, in the place of texts. The store is the caller's to free.
static bool take_tokens(const companions *with, Py_ssize_t count, dgm_input *inputs, token_store *store)
{
    size_t first;
    Py_ssize_t n;
    if (!with->tokens) return true;
    for (Py_ssize_t i = 0; i < count; i++) { // places first: the store moves while it grows
        if (!store_tokens(store, with->tokens, i, &first, &n)) return false;
        inputs[i].token_count = n < 0 ? 0 : (size_t)n;
        if (!store_tokens(store, with->prefix_tokens, i, &first, &n)) return false;
        inputs[i].prefix_token_count = n < 0 ? 0 : (size_t)n;
    }
    const char *const *at = store->items;
    for (Py_ssize_t i = 0; at && i < count; i++) {
        inputs[i].tokens = at;
        at += inputs[i].token_count;
        inputs[i].prefix_tokens = inputs[i].prefix_token_count ? at : NULL;
        at += inputs[i].prefix_token_count;
    }
    return true;
}

static PyObject *engine_submit(PyObject *self, PyObject *args, PyObject *kwargs)
{
    static char *names[] = {"texts", "prefixes", "constraints", "directions", "deadline_ms", "watched", "tokens",
                            "prefix_tokens", NULL};
    PyObject *texts;
    companions with = {0};
    token_store store = {0};
    long long deadline = 0;
    int watched = 0;
    if (!PyArg_ParseTupleAndKeywords(args, kwargs, "O!|OOOLpOO", names, &PyTuple_Type, &texts, &with.prefixes,
                                     &with.constraints, &with.directions, &deadline, &watched, &with.tokens,
                                     &with.prefix_tokens))
        return NULL;
    const Py_ssize_t count = PyTuple_Size(texts);
    if (!check_companion(&with.prefixes, count, "prefixes") || !check_companion(&with.constraints, count, "constraints") ||
        !check_companion(&with.directions, count, "directions") || !check_companion(&with.tokens, count, "tokens") ||
        !check_companion(&with.prefix_tokens, count, "prefix tokens"))
        return NULL;
    dgm_input *inputs = PyMem_Calloc((size_t)count + 1, sizeof *inputs);
    dgm_direction *directions = PyMem_Calloc((size_t)count + 1, sizeof *directions);
    PyObject *job = NULL;
    if (!inputs || !directions)
        PyErr_NoMemory();
    else if (take_inputs(texts, &with, deadline, inputs, directions) && take_tokens(&with, count, inputs, &store))
        job = py_job_submit((py_engine *)self, inputs, (size_t)count, watched != 0);
    PyMem_Free(store.items);
    PyMem_Free(directions);
    PyMem_Free(inputs);
    return job;
}

// ---- scores and tokens ------------------------------------------------------------------------------

static bool take_pairs(PyObject *list, dgm_pair *pairs)
{
    const Py_ssize_t count = PyTuple_Size(list);
    for (Py_ssize_t i = 0; i < count; i++) {
        PyObject *source, *target;
        dgm_pair *p = &pairs[i];
        if (!PyArg_ParseTuple(PyTuple_GetItem(list, i), "OO", &source, &target) ||
            !(p->source.data = py_text(source, "source", i, &p->source.size)) ||
            !(p->target.data = py_text(target, "target", i, &p->target.size)))
            return false;
    }
    return true;
}

static PyObject *score_pairs(py_engine *e, const dgm_pair *pairs, size_t count)
{
    dgm_pair_scores *scores = NULL;
    dgm_error error;
    dgm_status st;
    if (!py_engine_enter(e)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_score_pairs(e->t, pairs, count, &scores, &error);
    Py_END_ALLOW_THREADS
    py_engine_leave(e);
    return st == DGM_OK ? py_pair_scores(scores) : py_raise(st, error.text);
}

static PyObject *engine_score(PyObject *self, PyObject *args)
{
    PyObject *list;
    if (!PyArg_ParseTuple(args, "O!", &PyTuple_Type, &list)) return NULL;
    const Py_ssize_t count = PyTuple_Size(list);
    dgm_pair *pairs = PyMem_Calloc((size_t)count + 1, sizeof *pairs);
    if (!pairs) return PyErr_NoMemory();
    PyObject *scores = take_pairs(list, pairs) ? score_pairs((py_engine *)self, pairs, (size_t)count) : NULL;
    PyMem_Free(pairs);
    return scores;
}

static PyObject *score_tokens(py_engine *e, const dgm_token_pair *pairs, size_t count)
{
    dgm_pair_scores *scores = NULL;
    dgm_error error;
    dgm_status st;
    if (!py_engine_enter(e)) return NULL;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_score_token_pairs(e->t, pairs, count, &scores, &error);
    Py_END_ALLOW_THREADS
    py_engine_leave(e);
    return st == DGM_OK ? py_pair_scores(scores) : py_raise(st, error.text);
}

// Two tuples of tuples of tokens.
static PyObject *engine_score_tokens(PyObject *self, PyObject *args)
{
    PyObject *sides[2];
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &sides[0], &PyTuple_Type, &sides[1])) return NULL;
    const Py_ssize_t count = PyTuple_Size(sides[0]);
    if (!check_companion(&sides[1], count, "targets")) return NULL;
    token_store store = {0};
    size_t first;
    Py_ssize_t n[2];
    dgm_token_pair *pairs = PyMem_Calloc((size_t)count + 1, sizeof *pairs);
    bool good = pairs || PyErr_NoMemory();
    for (Py_ssize_t i = 0; good && i < count; i++) {
        good = store_tokens(&store, sides[0], i, &first, &n[0]) && store_tokens(&store, sides[1], i, &first, &n[1]);
        pairs[i].source_count = good && n[0] > 0 ? (size_t)n[0] : 0;
        pairs[i].target_count = good && n[1] > 0 ? (size_t)n[1] : 0;
    }
    const char *const *at = store.items;
    for (Py_ssize_t i = 0; good && at && i < count; i++) {
        pairs[i].source = at;
        pairs[i].target = at + pairs[i].source_count;
        at = pairs[i].target + pairs[i].target_count;
    }
    PyObject *scores = good ? score_tokens((py_engine *)self, pairs, (size_t)count) : NULL;
    PyMem_Free(store.items);
    PyMem_Free(pairs);
    return scores;
}

static PyObject *engine_tokens(PyObject *self, PyObject *args)
{
    py_engine *e = (py_engine *)self;
    PyObject *object;
    int target = 0;
    size_t size = 0;
    dgm_error error;
    dgm_token_list *list = NULL;
    if (!PyArg_ParseTuple(args, "O|p", &object, &target)) return NULL;
    const char *text = py_text(object, "text", -1, &size);
    if (!text || !py_engine_enter(e)) return NULL;
    const dgm_status st = dgm_text_tokens(e->t, target, text, size, &list, &error);
    PyObject *tokens = st == DGM_OK ? py_tokens(list->items, list->count) : py_raise(st, error.text);
    dgm_token_list_free(&list);
    py_engine_leave(e);
    return tokens;
}

static PyObject *join_tokens(py_engine *e, int target, const char *const *tokens, size_t count)
{
    char *text = NULL;
    dgm_error error;
    if (!py_engine_enter(e)) return NULL;
    const dgm_status st = dgm_tokens_text(e->t, target, tokens, count, &text, &error);
    PyObject *out = st == DGM_OK ? PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace") : py_raise(st, error.text);
    dgm_string_free(&text);
    py_engine_leave(e);
    return out;
}

static PyObject *engine_text(PyObject *self, PyObject *args)
{
    PyObject *list;
    int target = 1;
    if (!PyArg_ParseTuple(args, "O!|p", &PyTuple_Type, &list, &target)) return NULL;
    const Py_ssize_t count = PyTuple_Size(list);
    const char **tokens = PyMem_Calloc((size_t)count + 1, sizeof *tokens);
    if (!tokens) return PyErr_NoMemory();
    bool good = true;
    for (Py_ssize_t i = 0; good && i < count; i++)
        good = (tokens[i] = py_text(PyTuple_GetItem(list, i), "token", i, NULL)) != NULL;
    PyObject *text = good ? join_tokens((py_engine *)self, target, tokens, (size_t)count) : NULL;
    PyMem_Free(tokens);
    return text;
}

// ---- what it is -------------------------------------------------------------------------------------

static PyObject *engine_info(PyObject *self, PyObject *args)
{
    py_engine *e = (py_engine *)self;
    (void)args;
    if (!py_engine_enter(e)) return NULL;
    const dgm_translator_info *i = dgm_describe(e->t);
    PyObject *info = Py_BuildValue(
        "{s:s,s:s,s:s,s:s,s:s,s:K,s:K,s:i,s:i,s:i,s:i,s:i,s:i,s:i,s:s,s:s,s:s,s:f,s:s,s:i,s:i,s:i}", "name", i->name, "architecture",
        i->architecture, "source", i->source_language, "target", i->target_language, "device", i->device, "parameters",
        (unsigned long long)i->parameters, "bytes", (unsigned long long)i->packed_bytes, "models", i->models, "threads",
        i->threads, "batch", i->batch, "beam", i->beam, "nbest", i->nbest, "max_length", i->max_length, "max_source",
        i->max_source, "finish", i->finish, "precision", i->precision, "search", i->search, "length_penalty",
        i->length_penalty, "shortlist", i->shortlist, "vocabulary", i->vocabulary, "lead",
        i->lead, "longest", i->longest);
    py_engine_leave(e);
    return info;
}

static PyObject *engine_directions(PyObject *self, PyObject *args)
{
    py_engine *e = (py_engine *)self;
    (void)args;
    if (!py_engine_enter(e)) return NULL;
    const size_t count = dgm_directions(e->t, 0, NULL);
    PyObject *list = PyList_New((Py_ssize_t)count);
    for (size_t i = 0; list && i < count; i++) {
        dgm_direction d = {NULL, NULL};
        dgm_directions(e->t, i, &d);
        PyObject *pair = Py_BuildValue("(ss)", d.source ? d.source : "", d.target ? d.target : "");
        if (!pair || PyList_SetItem(list, (Py_ssize_t)i, pair)) Py_CLEAR(list);
    }
    py_engine_leave(e);
    return list;
}

static PyObject *engine_counters(PyObject *self, PyObject *args)
{
    py_engine *e = (py_engine *)self;
    dgm_counters c;
    (void)args;
    if (!py_engine_enter(e)) return NULL;
    dgm_count(e->t, &c);
    py_engine_leave(e);
    return Py_BuildValue("{s:K,s:K,s:K,s:K}", "lines", (unsigned long long)c.lines, "sentences",
                         (unsigned long long)c.sentences, "source_tokens", (unsigned long long)c.source_tokens,
                         "target_tokens", (unsigned long long)c.target_tokens);
}

static PyMethodDef engine_methods[] = {
    PY_METHOD("submit", engine_submit, "submit(texts, prefixes, constraints, directions, deadline_ms, watched) -> Job"),
    {"score", engine_score, METH_VARARGS, "score(pairs) -> a tuple for every pair"},
    {"score_tokens", engine_score_tokens, METH_VARARGS, "score_tokens(sources, targets) -> as score"},
    {"tokens", engine_tokens, METH_VARARGS, "tokens(text, target=False) -> list of str"},
    {"text", engine_text, METH_VARARGS, "text(tokens, target=True) -> str"},
    {"info", engine_info, METH_NOARGS, "info() -> dict"},
    {"directions", engine_directions, METH_NOARGS, "directions() -> list of pairs"},
    {"counters", engine_counters, METH_NOARGS, "counters() -> dict"},
    {"close", engine_close, METH_NOARGS, "close(): when all that is under way is done"},
    {NULL, NULL, 0, NULL},
};

static PyGetSetDef engine_getset[] = {
    {"closed", engine_closed, NULL, "Was it closed?", NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot engine_slots[] = {
    {Py_tp_dealloc, engine_dealloc},
    {Py_tp_methods, engine_methods},
    {Py_tp_getset, engine_getset},
    {Py_tp_doc, "A translator of the C library."},
    {0, NULL},
};
PyType_Spec py_engine_spec = {"dragoman._dragoman.Engine", sizeof(py_engine), 0,
                              Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, engine_slots};
