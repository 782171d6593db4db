/* python: programs become units, from their source or from what `pipec build` has written. */
#include "python/src/private.h"

/* ---- units ----------------------------------------------------------------------------------- */

/* Waits for launches of the kernels that have not ended */
static void unload(const Unit *unit) {
    Py_BEGIN_ALLOW_THREADS;
    for (int i = 0; i < DEVICES_MOST; i++) pipec_kernel_free(unit->loaded[i]);
    Py_END_ALLOW_THREADS;
}

/* What was made before a fork stays: the kernels are those of the parent's GPU context, and the
 * program may be in use by a thread of the parent. */
static void unit_release(const Unit *unit) {
    if (unit->forks != unit->state->forks) return;
    unload(unit);
    if (!unit->is_other) pipec_program_free(unit->program);
}

void unit_drop(Unit *unit) {
    if (unit == NULL || --unit->users > 0) return;
    while (unit->others != NULL) { /* before the program, which owns theirs */
        Unit *other = unit->others;
        unit->others = other->next;
        unit_drop(other);
    }
    unit_release(unit);
    Py_XDECREF(unit->origin);
    for (int i = 0; i < unit->count; i++) Py_XDECREF(unit->parameters[i].name);
    if (unit->lock != NULL) PyThread_free_lock(unit->lock);
    PyMem_Free(unit);
}

static bool read_parameter(Unit *unit, const PipecParameter *fact) {
    Parameter *parameter = &unit->parameters[unit->count];
    parameter->fact = *fact;
    if (!type_of(fact->type, &parameter->type)) {
        PyErr_Format(PyExc_NotImplementedError, "%s: `%s` has the type %s", unit->name, fact->name,
                     fact->type);
        return false;
    }
    parameter->is_float = !fact->is_tensor && parameter->type.code == DL_FLOAT;
    parameter->name = PyUnicode_InternFromString(fact->name);
    if (!fact->is_tensor || fact->mode != PIPEC_OUT)
        unit->positions[unit->position_count++] = unit->count;
    unit->count++;
    return parameter->name != NULL;
}

/* The tables of a program that was accepted */
static bool unit_fill(Unit *unit) {
    PipecParameter fact = {.size = sizeof fact};
    unit->name = pipec_program_compiled(unit->program);
    unit->decides = pipec_program_decided(unit->program, 0, NULL, NULL) != NULL;
    unit->lock = PyThread_allocate_lock();
    if (unit->lock == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; pipec_program_parameter(unit->program, i, &fact); i++) {
        if (i == PARAMETERS_MOST) {
            PyErr_Format(PyExc_NotImplementedError, "%s has more than %d parameters", unit->name,
                         PARAMETERS_MOST);
            return false;
        }
        if (!read_parameter(unit, &fact)) return false;
    }
    return true;
}

Unit *unit_other(Unit *unit, PipecProgram *program) {
    for (Unit *other = unit->others; other != NULL; other = other->next)
        if (other->program == program) return other;
    Unit *other = PyMem_Calloc(1, sizeof *other);
    if (other == NULL) return (void)PyErr_NoMemory(), NULL;
    *other = (Unit){.users = 1,
                    .program = program,
                    .state = unit->state,
                    .forks = unit->forks,
                    .is_other = true};
    if (!unit_fill(other)) {
        unit_drop(other);
        return NULL;
    }
    other->next = unit->others;
    return unit->others = other;
}

/* ---- compilation ----------------------------------------------------------------------------- */

bool read_texts(PyObject *tuple, const char ***out, size_t *count) {
    *count = (size_t)PyTuple_Size(tuple);
    *out = PyMem_Malloc((*count + 1) * sizeof **out);
    if (*out == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < *count; i++) {
        (*out)[i] = PyUnicode_AsUTF8AndSize(PyTuple_GetItem(tuple, (Py_ssize_t)i), NULL);
        if ((*out)[i] == NULL) return false;
    }
    return true;
}

/* False, with an exception: it was not accepted, and is freed */
static bool is_accepted(const State *state, PipecProgram *program) {
    if (program == NULL) return PyErr_NoMemory() != NULL;
    if (pipec_program_status(program) == PIPEC_FINE) return true;
    error_unaccepted(state, program);
    pipec_program_free(program);
    return false;
}

static PyObject *finish(PyObject *module, PyTypeObject *type, PipecProgram *program,
                        PyObject *origin, int from) {
    State *state = PyModule_GetState(module);
    if (!is_accepted(state, program)) return NULL;
    Unit *unit = PyMem_Calloc(1, sizeof *unit);
    if (unit == NULL) {
        pipec_program_free(program);
        return PyErr_NoMemory();
    }
    unit->users = 1;
    unit->program = program;
    unit->state = state;
    unit->forks = state->forks;
    unit->origin = Py_NewRef(origin);
    unit->from = from;
    PyObject *kernel = unit_fill(unit) ? kernel_new(module, type, unit) : NULL;
    if (kernel == NULL) unit_drop(unit);
    return kernel;
}

bool read_files(PyObject *tuple, PipecFile **out, size_t *count) {
    *out = NULL, *count = 0;
    if (tuple == Py_None) return true;
    Py_ssize_t length = PyTuple_Size(tuple);
    *out = length >= 0 ? PyMem_Calloc((size_t)length + 1, sizeof **out) : NULL;
    if (*out == NULL) return length < 0 ? false : PyErr_NoMemory() != NULL;
    for (; *count < (size_t)length; ++*count) {
        PyObject *pair = PyTuple_GetItem(tuple, (Py_ssize_t)*count);
        Py_ssize_t bytes;
        PipecFile *file = &(*out)[*count];
        if (!PyArg_ParseTuple(pair, "ss#", &file->name, &file->text, &bytes)) return false;
        file->length = (size_t)bytes;
    }
    return true;
}

/* The files that a program included: they are not read again. False, and an exception: no memory */
static bool files_of(const PipecProgram *program, PipecFile **out, size_t *count) {
    PipecFile file;
    for (*count = 0; pipec_program_file(program, *count + 1, &file);) ++*count;
    *out = PyMem_Calloc(*count + 1, sizeof **out);
    if (*out == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < *count; i++) (void)pipec_program_file(program, i + 1, &(*out)[i]);
    return true;
}

/* What the arguments of kernel_compile describe; *type: the first. `before`: the same, compiled
 * before, or NULL. NULL and an exception, or no memory */
static PipecProgram *compile(PyObject *args, PyObject **type, const PipecProgram *before) {
    PyObject *values, *denied, *accepted, *given;
    PipecFile *files = NULL;
    PipecProgram *program = NULL;
    const char *text;
    Py_ssize_t length;
    int watchdog, untuned, invariant;
    Py_ssize_t loaded_most;
    PipecOptions options = {.size = sizeof options, .any_variant = true};
    if (!PyArg_ParseTuple(args, "Os#szOOzOppndzpOz", type, &text, &length, &options.name,
                          &options.folder, &given, &values, &options.kernel, &denied, &watchdog,
                          &untuned, &loaded_most, &options.patience, &options.choices, &invariant,
                          &accepted, &options.target))
        return NULL;
    const char **value_texts = NULL, **denied_texts = NULL, **accepted_texts = NULL;
    if ((before != NULL ? files_of(before, &files, &options.file_count)
                        : read_files(given, &files, &options.file_count)) &&
        read_texts(values, &value_texts, &options.value_count) &&
        read_texts(denied, &denied_texts, &options.denied_count) &&
        read_texts(accepted, &accepted_texts, &options.accepted_count)) {
        options.files = files;
        options.values = value_texts;
        options.denied = denied_texts;
        options.accepted = accepted_texts;
        options.watchdog = watchdog != 0;
        options.untuned = untuned != 0;
        options.invariant = invariant != 0;
        options.loaded_most = (size_t)loaded_most;
        Py_BEGIN_ALLOW_THREADS;
        program = pipec_compile(text, (size_t)length, &options);
        Py_END_ALLOW_THREADS;
    }
    PyMem_Free(files);
    PyMem_Free(value_texts);
    PyMem_Free(denied_texts);
    PyMem_Free(accepted_texts);
    return program;
}

/* The same for kernel_load_image */
static PipecProgram *read_image(PyObject *args, PyObject **type) {
    const char *manifest, *image;
    Py_ssize_t manifest_length, length;
    PipecProgram *program;
    PipecOptions options = {.size = sizeof options};
    if (!PyArg_ParseTuple(args, "Oy#y#s", type, &manifest, &manifest_length, &image, &length,
                          &options.name))
        return NULL;
    Py_BEGIN_ALLOW_THREADS;
    program =
        pipec_program_from(manifest, (size_t)manifest_length, image, (size_t)length, &options);
    Py_END_ALLOW_THREADS;
    return program;
}

/* The same for kernel_load_bundle */
static PipecProgram *read_bundle(PyObject *args, PyObject **type) {
    const char *folder;
    Py_ssize_t loaded_most;
    PipecProgram *program;
    PipecOptions options = {.size = sizeof options};
    if (!PyArg_ParseTuple(args, "Osndz", type, &folder, &loaded_most, &options.patience,
                          &options.target))
        return NULL;
    options.loaded_most = (size_t)loaded_most;
    Py_BEGIN_ALLOW_THREADS;
    program = pipec_program_from_bundle(folder, &options);
    Py_END_ALLOW_THREADS;
    return program;
}

/* compile(type, text, name, folder of its includes or None, included files as (name, text) or None:
 * those of the folder, statics as texts, kernel or None, denied codes, watchdog, untuned, most
 * that are loaded, patience, file of choices or None, invariant, accepted codes, target or None) */
PyObject *kernel_compile(PyObject *module, PyObject *args) {
    PyObject *type;
    PipecProgram *program = compile(args, &type, NULL);
    if (program == NULL && PyErr_Occurred() != NULL) return NULL;
    return finish(module, (PyTypeObject *)type, program, args, FROM_SOURCE);
}

/* load_image(type, manifest, PTX or cubin, name) */
PyObject *kernel_load_image(PyObject *module, PyObject *args) {
    PyObject *type;
    PipecProgram *program = read_image(args, &type);
    if (program == NULL && PyErr_Occurred() != NULL) return NULL;
    return finish(module, (PyTypeObject *)type, program, args, FROM_IMAGE);
}

/* load_bundle(type, folder, most that are loaded, patience, target or None) */
PyObject *kernel_load_bundle(PyObject *module, PyObject *args) {
    PyObject *type;
    PipecProgram *program = read_bundle(args, &type);
    if (program == NULL && PyErr_Occurred() != NULL) return NULL;
    return finish(module, (PyTypeObject *)type, program, args, FROM_BUNDLE);
}

/* ---- after a fork ---------------------------------------------------------------------------- */

/* The lock is free, so no thread was using the program, or held by one that may not exist. What is
 * given up is not freed: texts of it are still used, and so is all of it if the handler of a signal
 * forked during a run. */
bool unit_renew(Unit *unit) {
    PyObject *type;
    if (unit->forks == unit->state->forks) return true;
    PyThread_type_lock lock = unit->lock;
    bool is_free = PyThread_acquire_lock(lock, NOWAIT_LOCK) != 0;
    if (is_free) {
        PyThread_release_lock(lock);
    } else {
        PipecProgram *program = unit->from == FROM_SOURCE
                                    ? compile(unit->origin, &type, unit->program)
                                : unit->from == FROM_IMAGE ? read_image(unit->origin, &type)
                                                           : read_bundle(unit->origin, &type);
        if (program == NULL && PyErr_Occurred() != NULL) return false;
        if (!is_accepted(unit->state, program)) return false;
        lock = PyThread_allocate_lock();
        if (lock == NULL) return PyErr_NoMemory() != NULL;
        unit->program = program;
        unit->lock = lock;
    }
    memset(unit->loaded, 0, sizeof unit->loaded);
    unit->others = NULL; /* given up as well */
    unit->forks = unit->state->forks;
    return true;
}
