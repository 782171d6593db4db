/* python: what a run on the emulator does now and then, while it has given up the GIL: it handles
 * signals, such as that of Ctrl-C, shows the progress and ends a run that takes too long. */
#include "python/src/private.h"

#include <time.h>

#define EVERY 0.1 /* seconds */

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

void watch_begin(Watch *watch, const Kernel *kernel) {
    double begun = now();
    *watch = (Watch){.kernel = kernel, .begun = begun, .last = begun};
    watch->thread = PyEval_SaveThread();
}

/* pipec._progress.emulating(name, part, seconds) -> is a line shown; part -1: removes it */
static bool draw(Watch *it, double part, double seconds) {
    PyObject *module = PyImport_ImportModule("pipec._progress");
    PyObject *answer = module == NULL ? NULL
                                      : PyObject_CallMethod(module, "emulating", "sdd",
                                                            it->kernel->unit->name, part, seconds);
    it->shown = answer == Py_True;
    Py_XDECREF(module);
    Py_XDECREF(answer);
    return answer != NULL;
}

static bool too_long(const Watch *it, double part) {
    char text[200];
    snprintf(
        text, sizeof text,
        "the emulated call takes longer than %g s, with %.0f %% done: pass smaller tensors, or "
        "allow more seconds",
        it->kernel->seconds, 100 * part);
    PyErr_Format(PyExc_TimeoutError, "%s: %s", it->kernel->unit->name, text);
    return false;
}

static bool report(Watch *it, double part, double seconds) {
    PyObject *progress = it->kernel->progress, *answer;
    if (PyErr_CheckSignals() != 0) return false;
    if (it->kernel->seconds > 0 && seconds > it->kernel->seconds) return too_long(it, part);
    if (progress == Py_False) return true;
    if (progress == NULL || progress == Py_None) return draw(it, part, seconds);
    answer = PyObject_CallFunction(progress, "dd", part, seconds);
    Py_XDECREF(answer);
    return answer != NULL;
}

bool watch(void *data, const PipecProgress *progress) {
    Watch *it = data;
    double time = now();
    if (time - it->last < EVERY) return true;
    PyEval_RestoreThread(it->thread);
    it->raised = !report(it, progress->part, time - it->begun);
    it->thread = PyEval_SaveThread();
    it->last = now();
    return !it->raised;
}

bool watch_signals(void *data, const PipecProgress *progress) {
    Watch *it = data;
    (void)progress;
    PyEval_RestoreThread(it->thread);
    it->raised = PyErr_CheckSignals() != 0;
    it->thread = PyEval_SaveThread();
    return !it->raised;
}

void watch_end(Watch *watch) {
    PyObject *type, *error, *trace;
    PyEval_RestoreThread(watch->thread);
    if (!watch->shown) return;
    PyErr_Fetch(&type, &error, &trace);
    if (!draw(watch, -1, 0)) PyErr_Clear();
    PyErr_Restore(type, error, trace);
}
