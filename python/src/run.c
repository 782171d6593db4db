/* python: a run on the data of the file's `example`, as `pipec run`: its arrays are those of the
 * library, filled by it. The results are copied out. */
#include "python/src/private.h"

typedef struct Run {
    const Unit *unit;
    PipecRunOptions options;
    bool on_gpu;
    Watch watch;
    PipecProgram *chosen;         /* for the extents; NULL: that of the unit */
    const PipecDiagnostics *said; /* of the last step; NULL: memory ran out */
    PipecRun *run;
    PipecStatus status;
} Run;

/* Without the GIL. The lock of the unit is held. */
static void execute(Run *it) {
    PipecProgram *program = it->unit->program;
    PipecChooseOptions how = {.size = sizeof how, .machine = it->on_gpu ? NULL : PIPEC_MACHINE};
    PipecExecuteOptions where = {.size = sizeof where,
                                 .where = it->on_gpu ? PIPEC_ON_GPU : PIPEC_ON_EMULATOR,
                                 .progress = watch,
                                 .progress_data = &it->watch};
    it->chosen = pipec_program_chosen(program, &it->options, &how, NULL);
    it->said = pipec_program_diagnostics(program);
    it->status = PIPEC_UNUSABLE;
    if (it->chosen == NULL && pipec_diagnostics_errors(it->said) > 0) return;
    it->run = pipec_run_new(it->chosen != NULL ? it->chosen : program, &it->options);
    it->said = it->run != NULL ? pipec_run_diagnostics(it->run) : NULL;
    if (it->run == NULL) return;
    it->status = pipec_run_status(it->run);
    if (it->status == PIPEC_FINE) it->status = pipec_run_execute(it->run, &where);
    if (it->status == PIPEC_FINE) {
        PipecVerifyOptions watched = {
            .size = sizeof watched, .progress = watch_signals, .progress_data = &it->watch};
        pipec_run_verify_with(it->run, &watched);
        it->status = pipec_run_status(it->run);
    }
    it->said = pipec_run_diagnostics(it->run);
}

/* (name, type in Pipe, extents, bytes) */
static PyObject *array_of(const PipecArray *array) {
    PyObject *extents = PyTuple_New(array->rank);
    for (int axis = 0; extents != NULL && axis < array->rank; axis++) {
        PyObject *extent = PyLong_FromLongLong(array->extents[axis]);
        if (extent == NULL || PyTuple_SetItem(extents, axis, extent) != 0) Py_CLEAR(extents);
    }
    if (extents == NULL) return NULL;
    return Py_BuildValue("(ssNN)", array->name, array->type, extents,
                         PyByteArray_FromStringAndSize(array->data, (Py_ssize_t)array->bytes));
}

static PyObject *arrays_of(const PipecRun *run) {
    PyObject *list = PyList_New(0);
    PipecArray array = {.size = sizeof array};
    for (size_t i = 0; list != NULL && pipec_run_array(run, i, &array); i++) {
        PyObject *one = array_of(&array);
        if (one == NULL || PyList_Append(list, one) != 0) Py_CLEAR(list);
        Py_XDECREF(one);
    }
    return list;
}

static PyObject *result_of(const Run *it) {
    const PipecRunInfo *info = pipec_run_info(it->run);
    return Py_BuildValue("(ssNds)", pipec_run_verdict(it->run), pipec_run_arguments(it->run),
                         arrays_of(it->run), info->seconds, info->device);
}

static PyObject *run(Kernel *kernel, Run *it) {
    PyThread_type_lock lock = kernel->unit->lock;
    PyObject *result = NULL;
    watch_begin(&it->watch, kernel);
    PyThread_acquire_lock(lock, WAIT_LOCK);
    execute(it);
    PyThread_release_lock(lock);
    watch_end(&it->watch);
    if (!it->watch.raised && it->status == PIPEC_FINE)
        result = result_of(it);
    else if (!it->watch.raised)
        error_raise(kernel->state, it->status, it->said);
    pipec_run_free(it->run);
    pipec_program_free(it->chosen);
    return result;
}

/* _run(values as texts, fills as texts, seed, on a GPU) -> (verdict, arguments as a text, arrays,
 * seconds, device) */
PyObject *kernel_run(PyObject *self, PyObject *args) {
    Kernel *kernel = (Kernel *)self;
    Run it = {.unit = kernel->unit, .options = {.size = sizeof it.options}};
    const char **values = NULL, **fills = NULL;
    PyObject *value_texts, *fill_texts, *result = NULL;
    unsigned long long seed;
    int on_gpu;
    if (!PyArg_ParseTuple(args, "OOKp", &value_texts, &fill_texts, &seed, &on_gpu) ||
        !unit_renew(kernel->unit) || (on_gpu && !driver_use(kernel->state, kernel->unit->name)))
        return NULL;
    it.on_gpu = on_gpu != 0;
    it.options.seed = seed;
    if (read_texts(value_texts, &values, &it.options.value_count) &&
        read_texts(fill_texts, &fills, &it.options.fill_count)) {
        it.options.values = values;
        it.options.fills = fills;
        result = run(kernel, &it);
    }
    PyMem_Free(values);
    PyMem_Free(fills);
    return result;
}
