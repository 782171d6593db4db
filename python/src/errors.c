/* python: diagnostics of the library as exceptions (pipec/_errors.py). */
#include "python/src/private.h"

static PyObject *texts(const char *const *items, size_t count) {
    PyObject *list = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *text = PyUnicode_FromString(items[i]);
        if (text == NULL || PyTuple_SetItem(list, (Py_ssize_t)i, text) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *labels(const PipecDiagnostics *diagnostics, size_t index) {
    const PipecDiagnostic *diagnostic = pipec_diagnostics_get(diagnostics, index);
    PyObject *list = PyTuple_New((Py_ssize_t)diagnostic->label_count);
    for (size_t i = 0; list != NULL && i < diagnostic->label_count; i++) {
        const PipecLabel *from = &diagnostic->labels[i];
        PyObject *label =
            Py_BuildValue("(IIIIss)", from->line, from->column, from->end_line, from->end_column,
                          from->text, pipec_diagnostics_file(diagnostics, index, i));
        if (label == NULL || PyTuple_SetItem(list, (Py_ssize_t)i, label) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *item(const PipecDiagnostics *diagnostics, size_t index) {
    const PipecDiagnostic *diagnostic = pipec_diagnostics_get(diagnostics, index);
    static const char *const severities[] = {[PIPEC_ERROR] = "error",
                                             [PIPEC_WARNING] = "warning",
                                             [PIPEC_NOTE] = "note",
                                             [PIPEC_UNDECIDED] = "incomplete"};
    PyObject *places = labels(diagnostics, index);
    PyObject *notes = texts(diagnostic->notes, diagnostic->note_count);
    PyObject *helps = texts(diagnostic->helps, diagnostic->help_count);
    PyObject *out = NULL;
    if (places != NULL && notes != NULL && helps != NULL)
        out = Py_BuildValue("(sssOOO)", diagnostic->code, severities[diagnostic->severity],
                            diagnostic->message, places, notes, helps);
    Py_XDECREF(places);
    Py_XDECREF(notes);
    Py_XDECREF(helps);
    return out;
}

PyObject *error_items(const PipecDiagnostics *diagnostics) {
    size_t count = diagnostics != NULL ? pipec_diagnostics_count(diagnostics) : 0;
    PyObject *list = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; list != NULL && i < count; i++) {
        PyObject *one = item(diagnostics, i);
        if (one == NULL || PyTuple_SetItem(list, (Py_ssize_t)i, one) != 0) Py_CLEAR(list);
    }
    return list;
}

static PyObject *raise_error(const State *state, PipecStatus status,
                             const PipecDiagnostics *diagnostics, bool acceptable) {
    PyObject *items = error_items(diagnostics);
    if (items == NULL) return NULL;
    PyObject *error = PyObject_CallFunction(
        state->make_error, "issOO", (int)status,
        diagnostics != NULL ? pipec_diagnostics_text(diagnostics) : "out of memory",
        diagnostics != NULL ? pipec_diagnostics_coloured(diagnostics) : "out of memory", items,
        acceptable ? Py_True : Py_False);
    Py_DECREF(items);
    if (error != NULL) PyErr_SetObject((PyObject *)Py_TYPE(error), error);
    Py_XDECREF(error);
    return NULL;
}

PyObject *error_raise(const State *state, PipecStatus status, const PipecDiagnostics *diagnostics) {
    return raise_error(state, status, diagnostics, false);
}

PyObject *error_unaccepted(const State *state, const PipecProgram *program) {
    PipecStatus status = pipec_program_status(program);
    bool has_kernel = pipec_program_ptx(program, NULL) != NULL;
    return raise_error(state, status, pipec_program_diagnostics(program),
                       status == PIPEC_INCOMPLETE && has_kernel);
}
