/* python: tuning, which measures the choices of a kernel's statics on a GPU. */
#include "python/src/private.h"

static const char *const ends[] = {[PIPEC_TRIAL_MEASURED] = "measured",
                                   [PIPEC_TRIAL_UNFIT] = "unfit",
                                   [PIPEC_TRIAL_WRONG] = "wrong"};

static PyObject *values(const PipecValue *from, size_t count) {
    PyObject *dict = PyDict_New();
    for (size_t i = 0; dict != NULL && i < count; i++) {
        PyObject *number = from[i].is_float ? PyFloat_FromDouble(from[i].number)
                                            : PyLong_FromLongLong(from[i].integer);
        if (number == NULL || PyDict_SetItemString(dict, from[i].name, number) != 0) Py_CLEAR(dict);
        Py_XDECREF(number);
    }
    return dict;
}

static PyObject *trials(const PipecTune *tuned) {
    PyObject *list = PyList_New(0);
    PipecTrial trial = {.size = sizeof trial};
    for (size_t i = 0; list != NULL && pipec_tune_trial(tuned, i, &trial); i++) {
        PyObject *one = Py_BuildValue("(Nsddz)", values(trial.numbers, trial.number_count),
                                      ends[trial.end], trial.seconds, trial.spread, trial.remark);
        if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

/* A tuple of texts, at most VALUES_MOST */
#define VALUES_MOST (2 * PARAMETERS_MOST)
static bool read_values(PyObject *texts, const char **out, size_t *count) {
    *count = (size_t)PyTuple_Size(texts);
    if (*count > VALUES_MOST)
        return PyErr_Format(PyExc_ValueError, "more than %d values", VALUES_MOST) != NULL;
    for (size_t i = 0; i < *count; i++)
        if ((out[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(texts, (Py_ssize_t)i), NULL)) == NULL)
            return false;
    return true;
}

/* tune(path, kernel, values as texts, device, rounds) -> [(statics, end, seconds, spread, remark)],
 * the fastest first */
PyObject *tune(PyObject *module, PyObject *args) {
    PipecTuneOptions options = {.size = sizeof options};
    const char *path, *words[VALUES_MOST];
    PyObject *texts, *list = NULL;
    if (!PyArg_ParseTuple(args, "ssOii", &path, &options.kernel, &texts, &options.device,
                          &options.rounds) ||
        !read_values(texts, words, &options.value_count))
        return NULL;
    if (!driver_use(PyModule_GetState(module), options.kernel != NULL ? options.kernel : path))
        return NULL;
    options.device += 1; /* 0 is the first capable one */
    options.values = words;
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

/* _tuned(values as texts, device) -> the statics that tuning has chosen, or None */
PyObject *kernel_tuned(PyObject *self, PyObject *args) {
    Unit *unit = ((const Kernel *)self)->unit;
    PipecRunOptions options = {.size = sizeof options};
    PipecChoice choice = {.size = sizeof choice};
    const char *words[VALUES_MOST];
    PyObject *texts, *chosen;
    int device;
    if (!PyArg_ParseTuple(args, "Oi", &texts, &device) ||
        !read_values(texts, words, &options.value_count) || !unit_renew(unit) ||
        !driver_use(unit->state, unit->name))
        return NULL;
    options.values = words;
    PipecProgram *tuned;
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(unit->lock, WAIT_LOCK);
    tuned = pipec_program_tuned(unit->program, &options, device + 1, &choice);
    Py_END_ALLOW_THREADS;
    chosen = tuned != NULL ? values(choice.numbers, choice.number_count) : Py_NewRef(Py_None);
    PyThread_release_lock(unit->lock);
    pipec_program_free(tuned);
    return chosen;
}
