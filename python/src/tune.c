/* python: tuning, which measures the choices of a kernel's statics on a GPU. */
#include "python/src/private.h"

static const char *const ends[] = {[PIPEC_TRIAL_MEASURED] = "measured",
                                   [PIPEC_TRIAL_UNFIT] = "unfit",
                                   [PIPEC_TRIAL_WRONG] = "wrong"};

static PyObject *numbers(const PipecTrial *trial) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < trial->number_count; i++) {
        const PipecValue *value = &trial->numbers[i];
        PyObject *number = value->is_float ? PyFloat_FromDouble(value->number)
                                           : PyLong_FromLongLong(value->integer);
        if (number == NULL || PyDict_SetItemString(dict, value->name, number) != 0) Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *trials(const PipecTune *tuned) {
    PyObject *list = PyList_New(0);
    PipecTrial trial = {.size = sizeof trial};
    for (size_t i = 0; list != NULL && pipec_tune_trial(tuned, i, &trial); i++) {
        PyObject *one = Py_BuildValue("(Nsddz)", numbers(&trial), ends[trial.end], trial.seconds,
                                      trial.spread, trial.remark);
        if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* tune(path, kernel, values as texts, device, rounds) -> [(statics, end, seconds, spread, remark)],
 * the fastest first */
PyObject *tune(PyObject *module, PyObject *args) {
    PipecTuneOptions options = {.size = sizeof options};
    const char *path, *values[2 * PARAMETERS_MOST];
    PyObject *texts, *list = NULL;
    if (!PyArg_ParseTuple(args, "ssOii", &path, &options.kernel, &texts, &options.device,
                          &options.rounds))
        return NULL;
    options.device += 1; /* 0 is the first capable one */
    options.values = values;
    options.value_count = (size_t)PyTuple_Size(texts);
    if (options.value_count > sizeof values / sizeof *values)
        return PyErr_Format(PyExc_ValueError, "more than %zu values",
                            sizeof values / sizeof *values);
    for (size_t i = 0; i < options.value_count; i++)
        if ((values[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(texts, (Py_ssize_t)i), NULL)) ==
            NULL)
            return NULL;
    PipecTune *tuned;
    Py_BEGIN_ALLOW_THREADS;
    tuned = pipec_tune_file(path, &options);
    Py_END_ALLOW_THREADS;
    if (tuned == NULL) return PyErr_NoMemory();
    if (pipec_tune_status(tuned) != PIPEC_FINE)
        error_raise(PyModule_GetState(module), pipec_tune_status(tuned),
                    pipec_tune_diagnostics(tuned));
    else
        list = trials(tuned);
    pipec_tune_free(tuned);
    return list;
}
