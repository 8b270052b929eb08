// SPDX-License-Identifier: MIT
// dragoman._dragoman: the public C API for Python, with the limited API of Python 3.11 (abi3). Nothing is computed here:
// arguments go to the library, results come back, the GIL is free while the library works. What people see is the
// package around it (python/dragoman).
//
//   py_module.c   the module, its exceptions, the table of settings
//   py_engine.c   Engine: a translator; submit, score, tokens
//   py_job.c      Job: lines under way; wait, cancel, what is said while they are translated
//   py_results.c  results as tuples, and Array: numbers of the library as buffers, without a copy
//   py_tools.c    models, import, quantize, evaluate, align
//   py_files.c    documents, languages of texts
#ifndef DGM_PYTHON_PY_DRAGOMAN_H
#define DGM_PYTHON_PY_DRAGOMAN_H

#define PY_SSIZE_T_CLEAN
#define Py_LIMITED_API 0x030B0000
#include <Python.h>
#include <stdbool.h>
#include <string.h>
#include <sys/types.h>

#include "dragoman/settings.h"
#include "dragoman/tools.h"

// ---- py_module.c: exceptions ----------------------------------------------------------------------

extern PyObject *py_closed_error, *py_fork_error;
// Raises the exception of a status with the library's sentence. NULL, so that it can be returned.
PyObject *py_raise(dgm_status status, const char *text);

// A method of a table; its arguments are a tuple and a dictionary.
#define PY_METHOD(name_, function_, doc_)                                                                             \
    {name_, (PyCFunction)(void (*)(void))(function_), METH_VARARGS | METH_KEYWORDS, (doc_)}

// str to UTF-8 that lives as long as the object; NULL after a TypeError that names it ("text 3").
const char *py_text(PyObject *object, const char *what, Py_ssize_t index, size_t *size);
// Long work of a tool: a function pointer for dgm_progress, which stops it when a signal comes (Ctrl-C). Calls the
// Python function `cookie->callable` (may be NULL) with stage and share.
typedef struct py_ticker {
    PyObject *callable;
    bool failed; // an exception is set
} py_ticker;
int py_tick(void *cookie, const char *stage, double share);

// ---- py_engine.c ------------------------------------------------------------------------------------

typedef struct py_engine {
    PyObject_HEAD
    dgm_translator *t;
    pid_t pid;        // whose threads the workers are
    Py_ssize_t users; // calls and jobs under way, guarded by the GIL
    bool closed;      // nobody may begin; the last user closes the translator
} py_engine;

extern PyObject *py_engine_type;
extern PyType_Spec py_engine_spec;
PyObject *py_open(PyObject *module, PyObject *args, PyObject *kwargs);
// Counts a user in; false after an exception where it is closed or belongs to another process.
bool py_engine_enter(py_engine *e);
void py_engine_leave(py_engine *e);

// ---- py_job.c ---------------------------------------------------------------------------------------

extern PyObject *py_job_type;
extern PyType_Spec py_job_spec;
// Hands lines to the workers; watched: the job says what it knows as it goes (Job.fileno, Job.poll).
PyObject *py_job_submit(py_engine *e, const dgm_input *inputs, size_t count, bool watched);

// ---- py_results.c -----------------------------------------------------------------------------------

extern PyObject *py_array_type;
extern PyType_Spec py_array_spec;
PyObject *py_results(dgm_results *results);         // takes it over
PyObject *py_pair_scores(dgm_pair_scores *scores);  // takes it over
PyObject *py_tokens(const char *const *tokens, size_t count);

// ---- py_tools.c, py_files.c -------------------------------------------------------------------------

extern PyMethodDef py_tool_methods[], py_file_methods[];

#endif
