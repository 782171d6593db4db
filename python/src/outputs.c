/* python: outputs that a call does not give: their extents follow from the other arguments, and
 * their memory comes from the library of the first tensor, or from NumPy. */
#include "python/src/private.h"

#define ERROR_BYTES 512

/* ---- memory ---------------------------------------------------------------------------------- */

/* May be called without the GIL: keeps the text */
static void allocation_failed(void *error, const char *kind, const char *message) {
    snprintf(error, ERROR_BYTES, "%s: %s", kind, message);
}

/* by the C functions of the first tensor's library */
static PyObject *allocate(Call *call, int index) {
    const DLExchange *exchange = call->adapter.exchange;
    const Parameter *parameter = &call->unit->parameters[index];
    PipecArgument *argument = &call->arguments[index];
    DLTensor like = {
        .device = {call->device < 0 ? DL_CPU : DL_CUDA, call->device < 0 ? 0 : call->device},
        .rank = parameter->fact.rank,
        .type = parameter->type,
        .extents = argument->extents};
    DLVersioned *made = NULL;
    void *object = NULL;
    char error[ERROR_BYTES] = "no memory";
    if (exchange->allocate(&like, &made, error, allocation_failed) != 0) {
        if (PyErr_Occurred() == NULL)
            PyErr_Format(PyExc_RuntimeError, "%s: `%s` cannot be allocated: %s", call->unit->name,
                         parameter->fact.name, error);
        return NULL;
    }
    call->tensors[index].data = (char *)made->tensor.data + made->tensor.offset;
    argument->pointer = (uintptr_t)call->tensors[index].data;
    argument->strided = false;
    return exchange->object_of(made, &object) == 0 ? object : NULL;
}

/* pipec._arrays.empty(shape, type, bits, like) */
static PyObject *empty(Call *call, int index) {
    const PipecParameter *fact = &call->unit->parameters[index].fact;
    PyObject *shape = PyTuple_New(fact->rank), *made = NULL;
    for (int axis = 0; shape != NULL && axis < fact->rank; axis++) {
        PyObject *extent = PyLong_FromLongLong(call->arguments[index].extents[axis]);
        if (extent == NULL || PyTuple_SetItem(shape, axis, extent) != 0) Py_CLEAR(shape);
    }
    if (shape != NULL)
        made = PyObject_CallFunction(call->state->empty, "OsOO", shape, fact->type,
                                     call->bits ? Py_True : Py_False,
                                     call->device < 0 ? Py_None : call->objects[call->first]);
    Py_XDECREF(shape);
    return made;
}

static bool create(Call *call, int index) {
    bool exchange = call->first >= 0 && call->adapter.how == BY_EXCHANGE;
    PyObject *made = exchange ? allocate(call, index) : empty(call, index);
    if (made == NULL) return false;
    call->created[index] = made;
    call->objects[index] = made;
    return exchange || tensor_read(call, index);
}

static bool is_output(const Call *call, int index) {
    const PipecParameter *fact = &call->unit->parameters[index].fact;
    return fact->is_tensor && fact->mode == PIPEC_OUT;
}

/* ---- extents --------------------------------------------------------------------------------- */

bool outputs_infer(Call *call) {
    PipecDiagnostics *diagnostics = NULL;
    PipecStatus status = pipec_program_infer(
        call->unit->program, call->arguments, sizeof *call->arguments, (size_t)call->unit->count,
        call->given, call->extents, call->extent_count, &diagnostics);
    if (status != PIPEC_FINE) error_raise(call->state, status, diagnostics);
    pipec_diagnostics_free(diagnostics);
    return status == PIPEC_FINE;
}

size_t call_extents(const Call *call, PipecValue *extents) {
    return pipec_program_extents(call->unit->program, call->arguments, sizeof *call->arguments,
                                 (size_t)call->unit->count, extents, EXTENTS_ALL);
}

/* ---- outputs --------------------------------------------------------------------------------- */

bool outputs_create(Call *call) {
    for (int i = 0; i < call->unit->count; i++)
        if (is_output(call, i) && call->objects[i] == NULL && !create(call, i)) return false;
    return true;
}

bool outputs_missing(const Call *call) {
    for (int i = 0; i < call->unit->count; i++)
        if (is_output(call, i) && call->objects[i] == NULL) return true;
    return false;
}

/* One output, a tuple of several, or None */
PyObject *outputs_result(const Call *call) {
    PyObject *outputs[PARAMETERS_MOST], *tuple;
    Py_ssize_t count = 0;
    for (int i = 0; i < call->unit->count; i++)
        if (is_output(call, i)) outputs[count++] = call->objects[i];
    if (count == 0) return Py_NewRef(Py_None);
    if (count == 1) return Py_NewRef(outputs[0]);
    tuple = PyTuple_New(count);
    for (Py_ssize_t i = 0; tuple != NULL && i < count; i++)
        PyTuple_SetItem(tuple, i, Py_NewRef(outputs[i]));
    return tuple;
}
