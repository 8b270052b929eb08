// SPDX-License-Identifier: MIT
#include "py_dragoman.h"

PyObject *py_closed_error, *py_fork_error;

enum { STATUSES = 9 };
static PyObject *errors[STATUSES]; // by -status; [0] is the base of all

// Name, the built-in exception that it also is, what it means. In the order of dgm_status.
static const struct {
    const char *name, *doc;
} error_names[STATUSES] = {
    {"dragoman.Error", "Base of all errors of Dragoman; its text is the library's sentence."},
    {"dragoman.ArgumentError", "A setting or argument is out of range or makes no sense."},
    {"dragoman.OutOfMemoryError", "An allocation failed."},
    {"dragoman.FileError", "A file cannot be opened, read or written."},
    {"dragoman.FormatError", "A file is damaged or not what it claims to be."},
    {"dragoman.VersionError", "A model file is newer than this library."},
    {"dragoman.UnsupportedError", "Valid, but this library or model cannot do it."},
    {"dragoman.TextError", "The text is not valid: too long, not what was promised."},
    {"dragoman.CancelledError", "Stopped on request of the caller, or by a deadline."},
};

PyObject *py_raise(dgm_status status, const char *text)
{
    const int i = -(int)status;
    if (PyErr_Occurred()) return NULL;
    PyObject *message = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    if (message) PyErr_SetObject(errors[i > 0 && i < STATUSES ? i : 0], message);
    Py_XDECREF(message);
    return NULL;
}

const char *py_text(PyObject *object, const char *what, Py_ssize_t index, size_t *size)
{
    if (!PyUnicode_Check(object)) {
        PyObject *type = PyType_GetName(Py_TYPE(object));
        if (index < 0)
            PyErr_Format(PyExc_TypeError, "%s must be str, not %U", what, type);
        else
            PyErr_Format(PyExc_TypeError, "%s %zd must be str, not %U", what, index, type);
        Py_XDECREF(type);
        return NULL;
    }
    Py_ssize_t bytes = 0;
    const char *text = PyUnicode_AsUTF8AndSize(object, &bytes);
    if (text && size) *size = (size_t)bytes;
    return text;
}

int py_tick(void *cookie, const char *stage, double share)
{
    py_ticker *t = cookie;
    PyGILState_STATE gil = PyGILState_Ensure();
    if (PyErr_CheckSignals()) t->failed = true;
    if (!t->failed && t->callable) {
        PyObject *r = PyObject_CallFunction(t->callable, "sd", stage ? stage : "", share);
        t->failed = !r;
        Py_XDECREF(r);
    }
    PyGILState_Release(gil);
    return t->failed;
}

// ---- settings ---------------------------------------------------------------------------------------

static PyObject *one_setting(const dgm_setting *s)
{
    static const char *const kinds[] = {"flag", "int", "int", "size", "float", "floats", "str", "choice", "list"};
    return Py_BuildValue("{s:s,s:s,s:s,s:s,s:s,s:d,s:d,s:d,s:z,s:z,s:s,s:O,s:O}", "name", s->name, "title", s->title,
                         "kind", kinds[s->kind], "group", dgm_setting_group_name(s->group), "value",
                         s->value ? s->value : "", "min", s->min, "max", s->max, "default", s->standard, "values",
                         s->values, "synonyms", s->synonyms, "help", s->help, "weights",
                         s->flags & DGM_SETTING_WEIGHTS ? Py_True : Py_False, "option",
                         s->flags & DGM_SETTING_NO_OPTION ? Py_False : Py_True);
}

static PyObject *settings(PyObject *module, PyObject *args)
{
    (void)module;
    (void)args;
    PyObject *list = PyList_New(0);
    for (size_t i = 0; list && dgm_setting_at(i); i++) {
        PyObject *row = one_setting(dgm_setting_at(i));
        if (!row || PyList_Append(list, row)) Py_CLEAR(list);
        Py_XDECREF(row);
    }
    return list;
}

static PyObject *setting(PyObject *module, PyObject *name)
{
    (void)module;
    const char *text = py_text(name, "the name of a setting", -1, NULL);
    if (!text) return NULL;
    const dgm_setting *s = dgm_setting_find(text);
    if (s) return one_setting(s);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyMethodDef methods[] = {
    PY_METHOD("open", py_open, "open(members, settings, lender=None) -> Engine"),
    {"settings", settings, METH_NOARGS, "settings() -> list of the rows of the table of settings"},
    {"setting", setting, METH_O, "setting(name) -> its row, or None"},
    {NULL, NULL, 0, NULL},
};

// ---- module -----------------------------------------------------------------------------------------

static PyObject *new_error(PyObject *module, const char *name, const char *doc, PyObject *base, PyObject *also)
{
    PyObject *bases = also ? PyTuple_Pack(2, base, also) : base ? PyTuple_Pack(1, base) : NULL;
    if (base && !bases) return NULL;
    PyObject *error = PyErr_NewExceptionWithDoc(name, doc, bases, NULL);
    Py_XDECREF(bases);
    if (error && PyModule_AddObjectRef(module, strchr(name, '.') + 1, error)) Py_CLEAR(error);
    return error;
}

static bool add_errors(PyObject *module)
{
    PyObject *const also[STATUSES] = {NULL,          PyExc_ValueError,          PyExc_MemoryError, PyExc_OSError, PyExc_ValueError,
                                      PyExc_ValueError, NULL, PyExc_ValueError,  NULL};
    for (int i = 0; i < STATUSES; i++)
        if (!(errors[i] = new_error(module, error_names[i].name, error_names[i].doc, errors[0], also[i]))) return false;
    py_closed_error = new_error(module, "dragoman.ClosedError", "The translator is closed.", errors[0], PyExc_ValueError);
    py_fork_error = new_error(module, "dragoman.ForkError",
                              "The translator was opened before the process forked: its threads are not here.", errors[0],
                              PyExc_RuntimeError);
    return py_closed_error && py_fork_error;
}

static PyModuleDef definition = {
    .m_base = PyModuleDef_HEAD_INIT,
    .m_name = "dragoman._dragoman",
    .m_doc = "Dragoman's C library: what the package dragoman is made of. Not for programs.",
    .m_size = -1,
    .m_methods = methods,
};

PyMODINIT_FUNC PyInit__dragoman(void);
PyMODINIT_FUNC PyInit__dragoman(void)
{
    PyObject *module = PyModule_Create(&definition);
    if (!module) return NULL;
    py_engine_type = PyType_FromSpec(&py_engine_spec);
    py_job_type = PyType_FromSpec(&py_job_spec);
    py_array_type = PyType_FromSpec(&py_array_spec);
    if (!py_engine_type || !py_job_type || !py_array_type || !add_errors(module) ||
        PyModule_AddFunctions(module, py_tool_methods) || PyModule_AddFunctions(module, py_file_methods) ||
        PyModule_AddObjectRef(module, "Engine", py_engine_type) || PyModule_AddObjectRef(module, "Job", py_job_type) ||
        PyModule_AddObjectRef(module, "Array", py_array_type) ||
        PyModule_AddStringConstant(module, "version", dgm_version()))
        Py_CLEAR(module);
    return module;
}
