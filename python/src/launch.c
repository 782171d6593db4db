/* python: a call with tensors of a GPU: loads the kernel on their device at the first call, and
 * launches on the current stream of their library. */
#include "python/src/private.h"

PipecKernel *kernel_on(Kernel *kernel, int device) {
    Unit *unit = kernel->unit;
    PipecDiagnostics *diagnostics = NULL;
    PipecKernel *loaded = NULL;
    PipecStatus status;
    if (device < 0 || device >= DEVICES_MOST)
        return PyErr_Format(PyExc_ValueError, "%s: there is no device %d", unit->name, device),
               NULL;
    if (!unit_renew(unit)) return NULL;
    if (unit->loaded[device] != NULL) return unit->loaded[device];
    if (!driver_use(kernel->state, unit->name)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(unit->lock, WAIT_LOCK);
    status = pipec_kernel_load(unit->program, device, &loaded, &diagnostics);
    PyThread_release_lock(unit->lock);
    Py_END_ALLOW_THREADS;
    if (status != PIPEC_FINE) error_raise(kernel->state, status, diagnostics);
    pipec_diagnostics_free(diagnostics);
    if (status != PIPEC_FINE) return NULL;
    if (unit->loaded[device] != NULL) /* another thread was faster: it is the same kernel */
        pipec_kernel_free(loaded);
    else
        unit->loaded[device] = loaded;
    return unit->loaded[device];
}

/* The stream of the call, and of the producers of its tensors: the one that was asked for, or the
 * current one of the library of the first tensor, or that of `object` */
bool find_stream(Call *call, PyObject *object, void **stream) {
    if (!call->stream_known && call->kernel->on_stream) {
        call->stream = call->kernel->stream;
    } else if (!call->stream_known && call->first >= 0 && call->adapter.how == BY_EXCHANGE) {
        if (call->adapter.exchange->current_stream(DL_CUDA, call->device, &call->stream) != 0)
            return false;
    } else if (!call->stream_known) {
        PyObject *number = PyObject_CallFunctionObjArgs(call->state->current_stream, object, NULL);
        if (number == NULL) return false;
        call->stream = PyLong_AsVoidPtr(number);
        Py_DECREF(number);
        if (PyErr_Occurred() != NULL) return false;
    }
    call->stream_known = true;
    *stream = call->stream;
    return true;
}

/* Arrays of JAX are used by streams that know nothing of the launch: waits for its end. */
static bool wait_for(const Call *call) {
    int error;
    Py_BEGIN_ALLOW_THREADS;
    error = device_wait(call->device);
    Py_END_ALLOW_THREADS;
    if (error != 0)
        PyErr_Format(PyExc_RuntimeError, "%s on GPU %d ended with CUDA error %d", call->unit->name,
                     call->device, error);
    return error == 0;
}

/* False: the warning is an exception */
static bool warn(const PipecDiagnostics *diagnostics) {
    PyObject *module = PyImport_ImportModule("pipec._errors"), *kind = NULL;
    if (module != NULL) kind = PyObject_GetAttrString(module, "CompileWarning");
    Py_XDECREF(module);
    bool fine = kind != NULL && PyErr_WarnEx(kind, pipec_diagnostics_text(diagnostics), 1) == 0;
    Py_XDECREF(kind);
    return fine;
}

bool launch_on(Kernel *kernel, int device, void *stream, const PipecArgument *arguments,
               size_t count) {
    PipecKernel *loaded = kernel_on(kernel, device);
    PipecDiagnostics *diagnostics = NULL;
    PipecLaunch how = {.size = sizeof how,
                       .argument_size = sizeof(PipecArgument),
                       .arguments = arguments,
                       .count = count,
                       .stream = stream,
                       .multiprocessors = kernel->multiprocessors,
                       .programmatic = kernel->programmatic,
                       .ordered = kernel->ordered};
    if (loaded == NULL) return false;
    PipecStatus status = pipec_kernel_launch(loaded, &how, &diagnostics);
    bool fine = status == PIPEC_FINE;
    if (!fine)
        error_raise(kernel->state, status, diagnostics);
    else if (diagnostics != NULL)
        fine = warn(diagnostics);
    if (diagnostics != NULL) pipec_diagnostics_free(diagnostics);
    return fine;
}

bool launch(Call *call) {
    void *stream;
    return kernel_on(call->kernel, call->device) != NULL &&
           find_stream(call, call->objects[call->first], &stream) &&
           launch_on(call->kernel, call->device, stream, call->arguments,
                     (size_t)call->unit->count) &&
           (!call->adapter.immutable || wait_for(call));
}
