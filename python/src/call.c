/* python: a call of a kernel, from its arguments to its result. */
#include "python/src/private.h"

static bool begin(Call *call, PyObject *self) {
    call->kernel = (Kernel *)self;
    call->state = call->kernel->state;
    call->unit = call->kernel->unit;
    for (int i = 0; i < call->unit->count; i++) call->created[i] = NULL;
    return unit_renew(call->unit);
}

static void end(Call *call) {
    tensors_release(call);
    for (int i = 0; i < call->unit->count; i++) Py_XDECREF(call->created[i]);
}

PyObject *call_kernel(PyObject *self, PyObject *const *args, size_t count, PyObject *names) {
    Call call;
    PyObject *result = NULL;
    if (!begin(&call, self) || !bind_arguments(&call, args, count, names)) return NULL;
    /* a launch compares the extents itself; for a run they follow from the arrays */
    if (tensors_read(&call) &&
        ((call.device >= 0 && call.extent_count == 0 && !outputs_missing(&call)) ||
         (outputs_infer(&call) && outputs_create(&call))) &&
        (call.device < 0 ? emulate(&call, false, NULL) : launch(&call)))
        result = outputs_result(&call);
    end(&call);
    return result;
}

PyObject *call_record(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Call call;
    PyObject *made = NULL;
    if (!begin(&call, self) || !bind_arguments(&call, args, (size_t)count, names)) return NULL;
    bool fine = tensors_read(&call) && outputs_infer(&call) && outputs_create(&call);
    if (fine && call.device < 0)
        made = emulate(&call, false, NULL) ? Py_NewRef(Py_None) : NULL;
    else if (fine && launch(&call))
        made = launch_recorded(&call);
    if (made != NULL) made = Py_BuildValue("(NN)", outputs_result(&call), made);
    end(&call);
    return made;
}

PyObject *call_verify(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Call call;
    PyObject *verdict = NULL;
    if (!begin(&call, self) || !bind_arguments(&call, args, (size_t)count, names)) return NULL;
    if (tensors_read(&call) && call.device >= 0)
        PyErr_Format(PyExc_ValueError,
                     "%s.verify() compares a run on the emulator with `ensures`: pass arrays of "
                     "the host",
                     call.unit->name);
    else if (PyErr_Occurred() == NULL && outputs_infer(&call) && outputs_create(&call))
        emulate(&call, true, &verdict);
    end(&call);
    return verdict;
}

static bool put(PyObject *dict, const char *name, PyObject *value) {
    bool fine = value != NULL && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return fine;
}

/* The statics that tensors have decided */
static PyObject *decided(const Call *call) {
    PyObject *dict = PyDict_New();
    const Unit *base = call->kernel->unit;
    PipecStatic fact = {.size = sizeof fact};
    bool fine = dict != NULL;
    const char *name;
    for (size_t i = 0;
         call->unit != base && (name = pipec_program_decided(base->program, i, NULL, NULL)) != NULL;
         i++)
        for (size_t k = 0; fine && pipec_program_static(call->unit->program, k, &fact); k++)
            if (strcmp(fact.name, name) == 0)
                fine = put(dict, name,
                           fact.is_type ? PyUnicode_FromString(fact.text)
                                        : PyLong_FromLongLong(fact.value.integer));
    if (!fine) Py_CLEAR(dict);
    return dict;
}

/* By parameter the strides of a tensor in elements, or None: it has no gaps */
static PyObject *strides(const Call *call) {
    PyObject *all = PyTuple_New(call->unit->count);
    for (int i = 0; all != NULL && i < call->unit->count; i++) {
        const PipecArgument *argument = &call->arguments[i];
        int rank = call->unit->parameters[i].fact.rank;
        PyObject *one = argument->strided ? PyTuple_New(rank) : Py_NewRef(Py_None);
        for (int axis = 0; one != NULL && argument->strided && axis < rank; axis++)
            PyTuple_SetItem(one, axis, PyLong_FromLongLong(argument->strides[axis]));
        if (one == NULL || PyErr_Occurred() != NULL || PyTuple_SetItem(all, i, one) != 0)
            Py_CLEAR(all);
    }
    return all;
}

/* By the names of the parameters the scalars, by the formulas of extents their values; the device;
 * the statics that the tensors have decided; and strides: what tuning and choices need of a call */
PyObject *call_values(PyObject *self, PyObject *const *args, Py_ssize_t count, PyObject *names) {
    Call call;
    PyObject *dict = PyDict_New();
    bool fine = dict != NULL && begin(&call, self);
    if (!fine || !bind_arguments(&call, args, (size_t)count, names)) {
        Py_XDECREF(dict);
        return NULL;
    }
    fine = tensors_read(&call) && outputs_infer(&call);
    for (int i = 0; fine && i < call.unit->count; i++) {
        const Parameter *parameter = &call.unit->parameters[i];
        const PipecArgument *argument = &call.arguments[i];
        bool is_u64 = parameter->type.code == DL_UINT && parameter->type.bits == 64;
        unsigned long long bits = (unsigned long long)argument->integer;
        if (!parameter->fact.is_tensor)
            fine = put(dict, parameter->fact.name,
                       parameter->is_float ? PyFloat_FromDouble(argument->number)
                       : is_u64            ? PyLong_FromUnsignedLongLong(bits)
                                           : PyLong_FromLongLong(argument->integer));
    }
    PipecValue extents[EXTENTS_ALL];
    size_t found = fine ? call_extents(&call, extents) : 0;
    for (size_t i = 0; fine && i < found; i++)
        fine = put(dict, extents[i].name, PyLong_FromLongLong(extents[i].integer));
    PyObject *statics = fine ? decided(&call) : NULL;
    PyObject *gaps = statics != NULL ? strides(&call) : NULL;
    end(&call);
    if (gaps != NULL) return Py_BuildValue("(NiNN)", dict, call.device, statics, gaps);
    Py_XDECREF(statics);
    Py_DECREF(dict);
    return NULL;
}
