/* python: tuning, which measures variants and values of a kernel's statics on a GPU. */
#include "python/src/private.h"

static const char *const ends[] = {
    [PIPEC_TRIAL_MEASURED] = "measured", [PIPEC_TRIAL_UNFIT] = "unfit",
    [PIPEC_TRIAL_WRONG] = "wrong",       [PIPEC_TRIAL_SLOW] = "slow",
    [PIPEC_TRIAL_LEFT] = "left",         [PIPEC_TRIAL_ENDLESS] = "endless",
    [PIPEC_TRIAL_UNPROVED] = "unproved"};

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
        PyObject *one =
            Py_BuildValue("(sNsddz)", trial.kernel, values(trial.numbers, trial.number_count),
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

/* The steps of tuning, which works without the GIL */
typedef struct Steps {
    PyThreadState *thread;
    PyObject
        *next; /* function of what is done, and how many steps are and will be: does it go on? */
    bool raised;
} Steps;

static bool next_step(void *data, const char *what, size_t done, size_t of) {
    Steps *it = data;
    PyEval_RestoreThread(it->thread);
    PyObject *answer =
        PyObject_CallFunction(it->next, "snn", what, (Py_ssize_t)done, (Py_ssize_t)of);
    it->raised = answer == NULL || PyErr_CheckSignals() != 0;
    bool goes_on = !it->raised && answer == Py_True;
    Py_XDECREF(answer);
    it->thread = PyEval_SaveThread();
    return goes_on;
}

/* The candidates, or NULL and an exception */
static PyObject *tune_file(State *state, const char *path, PipecTuneOptions *options,
                           PyObject *next) {
    Steps steps = {.next = next};
    PyObject *list = NULL;
    options->next = next_step;
    options->progress_data = &steps;
    steps.thread = PyEval_SaveThread();
    PipecTune *tuned = pipec_tune_file(path, options);
    PyEval_RestoreThread(steps.thread);
    if (tuned == NULL && !steps.raised) return PyErr_NoMemory();
    if (!steps.raised && pipec_tune_status(tuned) != PIPEC_FINE)
        error_raise(state, pipec_tune_status(tuned), pipec_tune_diagnostics(tuned));
    else if (!steps.raised)
        list = trials(tuned);
    pipec_tune_free(tuned);
    return list;
}

/* tune(path, included files as (name, text), kernel, values as texts, device, rounds, candidates,
 * near, accepted codes, seconds of a launch, function of the steps, target or None) -> [(kernel,
 * statics, end, seconds, spread, remark)], the fastest first */
PyObject *tune(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    PipecTuneOptions options = {.size = sizeof options};
    const char *path, *words[VALUES_MOST], **accepted = NULL;
    PyObject *texts, *codes, *next, *given, *list = NULL;
    PipecFile *files = NULL;
    Py_ssize_t candidates;
    int near;
    if (!PyArg_ParseTuple(args, "sOsOiinpOdOz", &path, &given, &options.kernel, &texts,
                          &options.device, &options.rounds, &candidates, &near, &codes,
                          &options.limit, &next, &options.target) ||
        !read_values(texts, words, &options.value_count) ||
        !driver_use(state, options.kernel != NULL ? options.kernel : path))
        return NULL;
    options.device += 1; /* 0 is the first capable one */
    options.values = words;
    options.candidates = candidates < 0 ? SIZE_MAX : (size_t)candidates;
    options.near = near != 0;
    if (read_texts(codes, &accepted, &options.accepted_count) &&
        read_files(given, &files, &options.file_count)) {
        options.files = files;
        options.accepted = accepted;
        list = tune_file(state, path, &options, next);
    }
    PyMem_Free(files);
    PyMem_Free(accepted);
    return list;
}

/* By parameter None, or the strides of a tensor */
static bool read_strides(PyObject *all, PipecArgument *out, size_t count) {
    if ((size_t)PyTuple_Size(all) != count)
        return PyErr_Format(PyExc_ValueError, "not as many strides as parameters") != NULL;
    for (size_t i = 0; i < count; i++) {
        PyObject *one = PyTuple_GetItem(all, (Py_ssize_t)i);
        out[i] = (PipecArgument){.strided = one != Py_None};
        for (int axis = 0; one != Py_None && axis < PyTuple_Size(one); axis++)
            out[i].strides[axis] = PyLong_AsLongLong(PyTuple_GetItem(one, axis));
    }
    return PyErr_Occurred() == NULL;
}

/* _choose(values as texts, strides of tensors, device, -1: the emulator) -> (kernel, statics,
 * predicted seconds or None, what takes longest or None, machine or None, is tuned, candidates,
 * file or None), or None: there is no choice */
PyObject *kernel_choose(PyObject *self, PyObject *args) {
    Unit *unit = ((const Kernel *)self)->unit;
    PipecRunOptions options = {.size = sizeof options};
    PipecChooseOptions how = {.size = sizeof how};
    PipecChoice choice = {.size = sizeof choice};
    const char *words[VALUES_MOST];
    PipecArgument arguments[PARAMETERS_MOST];
    PyObject *texts, *strides, *result = NULL;
    options.arguments = arguments;
    options.argument_size = sizeof *arguments;
    options.argument_count = (size_t)unit->count;
    if (!PyArg_ParseTuple(args, "OO!i", &texts, &PyTuple_Type, &strides, &how.device) ||
        !read_values(texts, words, &options.value_count) ||
        !read_strides(strides, arguments, options.argument_count) || !unit_renew(unit) ||
        (how.device >= 0 && !driver_use(unit->state, unit->name)))
        return NULL;
    if (how.device < 0) how.machine = PIPEC_MACHINE;
    how.device += 1;
    options.values = words;
    PipecProgram *chosen;
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(unit->lock, WAIT_LOCK);
    chosen = pipec_program_chosen(unit->program, &options, &how, &choice);
    Py_END_ALLOW_THREADS;
    const PipecDiagnostics *said = pipec_program_diagnostics(unit->program);
    if (chosen == NULL && pipec_diagnostics_errors(said) > 0)
        error_raise(unit->state, PIPEC_UNUSABLE, said);
    else if (choice.kernel == NULL)
        result = Py_NewRef(Py_None);
    else
        result = Py_BuildValue("(sNdzzNnz)", choice.kernel,
                               values(choice.numbers, choice.number_count), choice.predicted,
                               choice.limit, choice.machine, PyBool_FromLong(choice.device != NULL),
                               (Py_ssize_t)choice.candidates, choice.fixed);
    PyThread_release_lock(unit->lock);
    pipec_program_free(chosen);
    return result;
}

/* _tuned(values as texts, device) -> (kernel, statics) that tuning has chosen, or None */
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
    /* NULL also means that it has chosen the program itself */
    chosen = choice.extents != NULL
                 ? Py_BuildValue("(sN)", choice.kernel, values(choice.numbers, choice.number_count))
                 : Py_NewRef(Py_None);
    PyThread_release_lock(unit->lock);
    pipec_program_free(tuned);
    return chosen;
}
