// SPDX-License-Identifier: MIT
// Job: lines under way. Who waits for one gives the GIL away and looks for signals every now and then, so that Ctrl-C
// ends it. What a watched job says comes from threads of the library, which never touch Python: they leave the newest
// beginning of the translation in the job and wake whoever waits by a file descriptor (an eventfd).
#include "py_dragoman.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

PyObject *py_job_type;

enum { SIGNALS_MS = 50 }; // how long Ctrl-C may take

typedef struct py_job {
    PyObject_HEAD
    py_engine *engine; // one of its users until the job is ended
    dgm_job *job;      // NULL: it is ended
    size_t count;
    Py_ssize_t waiting; // calls that look at `job` without the GIL
    // Of a watched job:
    int fd; // -1: it is not watched
    pthread_mutex_t lock;
    char *beginning; // of the first line's translation; NULL: nothing new
    bool told;       // nothing more will be said
} py_job;

// ---- in threads of the library ----------------------------------------------------------------------

static void wake(py_job *j)
{
    const uint64_t one = 1;
    ssize_t n;
    do n = write(j->fd, &one, sizeof one);
    while (n < 0 && errno == EINTR);
}

static void on_partial(void *user, size_t index, const char *text, size_t size)
{
    py_job *j = user;
    if (index > 0) return;
    char *copy = malloc(size + 1);
    if (!copy) return; // the next one says more
    memcpy(copy, text, size + 1);
    pthread_mutex_lock(&j->lock);
    free(j->beginning);
    j->beginning = copy;
    pthread_mutex_unlock(&j->lock);
    wake(j);
}

// The library counts a line as done after it was told: what counts for who waits is that all were told.
static void on_progress(void *user, size_t done, size_t all)
{
    py_job *j = user;
    if (done < all) return;
    pthread_mutex_lock(&j->lock);
    j->told = true;
    pthread_mutex_unlock(&j->lock);
    wake(j);
}

// ---- life -------------------------------------------------------------------------------------------

// Waits for the end of the job, which soon comes where it was given up, and counts its user out.
static dgm_status end_job(py_job *j, dgm_results **results, dgm_error *error)
{
    dgm_job *job = j->job;
    dgm_status st;
    j->job = NULL;
    Py_BEGIN_ALLOW_THREADS
    st = dgm_wait(&job, results, error);
    Py_END_ALLOW_THREADS
    py_engine_leave(j->engine);
    return st;
}

static bool same_process(const py_job *j)
{
    return j->engine->pid == getpid();
}

static void job_dealloc(PyObject *self)
{
    py_job *j = (py_job *)self;
    PyTypeObject *type = Py_TYPE(self);
    if (j->job && same_process(j)) { // of another process: its threads will never end it
        PyObject *kind, *value, *trace;
        dgm_results *results = NULL;
        PyErr_Fetch(&kind, &value, &trace);
        dgm_cancel(j->job);
        end_job(j, &results, NULL);
        dgm_results_free(&results);
        PyErr_Restore(kind, value, trace);
    }
    if (j->fd >= 0) {
        close(j->fd);
        pthread_mutex_destroy(&j->lock);
    }
    free(j->beginning);
    Py_XDECREF((PyObject *)j->engine);
    PyObject_Free(self);
    Py_DECREF(type);
}

static dgm_status submit(py_job *j, const dgm_input *inputs, bool watched, dgm_error *error)
{
    dgm_status st;
    const dgm_watch watch = {.size = sizeof watch, .user = j, .progress = on_progress, .partial = on_partial};
    Py_BEGIN_ALLOW_THREADS
    st = dgm_submit_watched(j->engine->t, inputs, j->count, watched ? &watch : NULL, &j->job, error);
    Py_END_ALLOW_THREADS
    return st;
}

PyObject *py_job_submit(py_engine *e, const dgm_input *inputs, size_t count, bool watched)
{
    dgm_error error;
    if (!py_engine_enter(e)) return NULL;
    py_job *j = PyObject_New(py_job, (PyTypeObject *)py_job_type);
    if (!j) {
        py_engine_leave(e);
        return NULL;
    }
    Py_INCREF((PyObject *)e);
    j->engine = e;
    j->job = NULL;
    j->count = count;
    j->waiting = 0;
    j->beginning = NULL;
    j->told = count == 0;
    j->fd = watched ? eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK) : -1;
    if (j->fd >= 0) pthread_mutex_init(&j->lock, NULL);
    if (watched && j->fd < 0) {
        PyErr_SetFromErrno(PyExc_OSError);
    } else {
        const dgm_status st = submit(j, inputs, watched, &error);
        if (st == DGM_OK) return (PyObject *)j;
        py_raise(st, error.text);
    }
    py_engine_leave(e);
    Py_DECREF((PyObject *)j);
    return NULL;
}

// ---- methods ----------------------------------------------------------------------------------------

static bool is_open(const py_job *j)
{
    if (!same_process(j)) PyErr_SetString(py_fork_error, "the job belongs to the process that this one was forked from");
    else if (!j->job) PyErr_SetString(py_closed_error, "the results of the job were taken already");
    else return true;
    return false;
}

// -1 without a limit. False after an exception.
static bool milliseconds(PyObject *args, long long *ms)
{
    PyObject *timeout = Py_None;
    if (!PyArg_ParseTuple(args, "|O", &timeout)) return false;
    *ms = -1;
    if (timeout == Py_None) return true;
    const double seconds = PyFloat_AsDouble(timeout);
    if (PyErr_Occurred()) return false;
    *ms = seconds <= 0 ? 0 : seconds > 1e9 ? -1 : (long long)(seconds * 1e3 + 0.5);
    return true;
}

// Waits in slices for `ms` milliseconds at most (-1: as long as it takes). 1: all lines are done; 0: not yet;
// -1: an exception, and the job was given up.
static int wait_in_slices(py_job *j, long long ms)
{
    while (is_open(j)) { // another thread may have ended it meanwhile
        const int slice = ms >= 0 && ms < SIGNALS_MS ? (int)ms : SIGNALS_MS;
        int done;
        j->waiting++;
        Py_BEGIN_ALLOW_THREADS
        done = dgm_wait_for(j->job, slice);
        Py_END_ALLOW_THREADS
        j->waiting--;
        if (PyErr_CheckSignals()) {
            if (j->job) dgm_cancel(j->job);
            return -1;
        }
        if (done) return 1;
        if (ms >= 0 && (ms -= slice) <= 0) return 0;
    }
    return -1;
}

static PyObject *job_wait(PyObject *self, PyObject *args)
{
    py_job *j = (py_job *)self;
    long long ms;
    if (!is_open(j) || !milliseconds(args, &ms)) return NULL;
    const int done = wait_in_slices(j, ms);
    return done < 0 ? NULL : PyBool_FromLong(done);
}

static PyObject *job_results(PyObject *self, PyObject *args)
{
    (void)args;
    py_job *j = (py_job *)self;
    if (!is_open(j) || wait_in_slices(j, -1) < 0) return NULL;
    if (!is_open(j)) return NULL; // another thread was faster
    if (j->waiting) {
        PyErr_SetString(PyExc_RuntimeError, "another thread waits for the job");
        return NULL;
    }
    dgm_results *results = NULL;
    dgm_error error;
    const dgm_status st = end_job(j, &results, &error);
    return st == DGM_OK ? py_results(results) : py_raise(st, error.text);
}

static PyObject *job_cancel(PyObject *self, PyObject *args)
{
    (void)args;
    py_job *j = (py_job *)self;
    if (j->job && same_process(j)) dgm_cancel(j->job);
    Py_INCREF(Py_None);
    return Py_None;
}

static PyObject *job_fileno(PyObject *self, PyObject *args)
{
    (void)args;
    return PyLong_FromLong(((py_job *)self)->fd);
}

static PyObject *take_beginning(py_job *j, bool *told)
{
    pthread_mutex_lock(&j->lock);
    char *text = j->beginning;
    j->beginning = NULL;
    *told = j->told;
    pthread_mutex_unlock(&j->lock);
    if (!text) {
        Py_INCREF(Py_None);
        return Py_None;
    }
    PyObject *out = PyUnicode_DecodeUTF8(text, (Py_ssize_t)strlen(text), "replace");
    free(text);
    return out;
}

// (newest beginning or None, was everything said?), when there is news.
static PyObject *job_poll(PyObject *self, PyObject *args)
{
    py_job *j = (py_job *)self;
    long long ms;
    uint64_t events = 0;
    if (!is_open(j) || !milliseconds(args, &ms)) return NULL;
    if (j->fd < 0) {
        PyErr_SetString(PyExc_ValueError, "the job is not watched");
        return NULL;
    }
    int news = 0;
    for (long long waited = 0; !news && (ms < 0 || waited <= ms); waited += SIGNALS_MS) {
        struct pollfd p = {.fd = j->fd, .events = POLLIN};
        const int slice = ms >= 0 && ms - waited < SIGNALS_MS ? (int)(ms - waited) : SIGNALS_MS;
        j->waiting++;
        Py_BEGIN_ALLOW_THREADS
        news = poll(&p, 1, slice);
        Py_END_ALLOW_THREADS
        j->waiting--;
        if (PyErr_CheckSignals()) {
            if (j->job) dgm_cancel(j->job);
            return NULL;
        }
        if (news < 0) news = 0; // a signal that nobody minds
    }
    if (news && read(j->fd, &events, sizeof events) < 0) events = 0;
    bool told = false;
    PyObject *beginning = take_beginning(j, &told);
    return Py_BuildValue("(Ni)", beginning, (int)told);
}

static PyObject *job_done(PyObject *self, PyObject *args)
{
    (void)args;
    py_job *j = (py_job *)self;
    return PyLong_FromSize_t(j->job && same_process(j) ? dgm_job_done(j->job) : j->count);
}

static PyMethodDef job_methods[] = {
    {"wait", job_wait, METH_VARARGS, "wait(seconds=None) -> are all lines done?"},
    {"results", job_results, METH_NOARGS, "results() -> a tuple for every line; ends the job"},
    {"cancel", job_cancel, METH_NOARGS, "cancel(): gives the lines up that are not done"},
    {"done", job_done, METH_NOARGS, "done() -> how many lines are"},
    {"fileno", job_fileno, METH_NOARGS, "fileno() -> of a watched job, readable when there is news; else -1"},
    {"poll", job_poll, METH_VARARGS, "poll(seconds=None) -> (beginning of the first line's translation, was all said?)"},
    {NULL, NULL, 0, NULL},
};

static PyType_Slot job_slots[] = {
    {Py_tp_dealloc, job_dealloc},
    {Py_tp_methods, job_methods},
    {Py_tp_doc, "Lines under way."},
    {0, NULL},
};
PyType_Spec py_job_spec = {"dragoman._dragoman.Job", sizeof(py_job), 0,
                           Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION, job_slots};
