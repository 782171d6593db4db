/* python: tensors of other libraries, read without copies: PyTorch and others by DLPack's C
 * functions, host arrays by the buffer protocol, all else by `__dlpack__`. */
#include "python/src/private.h"

#include <stdarg.h>

bool tensor_wrong(const Call *call, int index, PyObject *exception, const char *format, ...) {
    va_list list;
    PyErr_Clear();
    va_start(list, format);
    PyObject *text = PyUnicode_FromFormatV(format, list);
    va_end(list);
    if (text == NULL) return false;
    PyErr_Format(exception, "%s: `%s` %U", call->unit->name,
                 call->unit->parameters[index].fact.name, text);
    Py_DECREF(text);
    return false;
}

static void tensor_release(Tensor *tensor) {
    if (tensor->buffer != NULL) {
        PyBuffer_Release(tensor->buffer);
        PyMem_Free(tensor->buffer);
    }
    if (tensor->managed != NULL && tensor->managed->release != NULL)
        tensor->managed->release(tensor->managed);
    if (tensor->versioned != NULL && tensor->versioned->release != NULL)
        tensor->versioned->release(tensor->versioned);
    tensor->buffer = NULL;
    tensor->managed = NULL;
    tensor->versioned = NULL;
}

/* ---- how a type is read ---------------------------------------------------------------------- */

static const DLExchange *exchange_of(PyObject *capsule) {
    const DLExchange *exchange = PyCapsule_GetPointer(capsule, "dlpack_exchange_api");
    while (exchange != NULL && exchange->version.major > DLPACK_MAJOR)
        exchange = exchange->previous;
    return exchange != NULL && exchange->version.major == DLPACK_MAJOR ? exchange : NULL;
}

/* The C function of a method without arguments; NULL: it has none. Called directly, a method costs
 * less. */
static PyCFunction function_of(PyObject *object, PyObject *method) {
    PyObject *name = PyObject_GetAttrString(method, "__name__");
    PyObject *bound = name != NULL ? PyObject_GetAttr(object, name) : NULL;
    bool simple = bound != NULL && Py_IS_TYPE(bound, &PyCFunction_Type) &&
                  PyCFunction_GetFlags(bound) == METH_NOARGS;
    PyCFunction function = simple ? PyCFunction_GetFunction(bound) : NULL;
    Py_XDECREF(name);
    Py_XDECREF(bound);
    return function;
}

/* What only tensors of PyTorch have: a method and an attribute's descriptor, or None */
static bool adapter_flags(Adapter *adapter, PyObject *object, PyObject *negative,
                          PyObject *gradient) {
    if (negative == Py_None) return true;
    adapter->is_negative = negative;
    adapter->requires_grad = gradient;
    adapter->is_negative_c = function_of(object, negative);
    adapter->get_requires_grad = (descrgetfunc)PyType_GetSlot(Py_TYPE(gradient), Py_tp_descr_get);
    if (adapter->get_requires_grad == NULL && PyErr_Occurred() == NULL)
        PyErr_Format(PyExc_TypeError, "%R is no attribute of tensors", gradient);
    return PyErr_Occurred() == NULL;
}

/* pipec._arrays.describe(object, kernel, parameter): capsule of the C functions or None, whether it
 * is a buffer, the two of adapter_flags, whether it is immutable, and whether it may be on a GPU.
 * False: an exception */
static bool adapter_describe(Adapter *adapter, PyObject *object, PyObject *facts) {
    PyObject *capsule, *negative, *gradient;
    int buffer, immutable, anywhere;
    if (!PyArg_ParseTuple(facts, "OpOOpp", &capsule, &buffer, &negative, &gradient, &immutable,
                          &anywhere) ||
        !adapter_flags(adapter, object, negative, gradient))
        return false;
    if (capsule != Py_None) adapter->exchange = exchange_of(capsule);
    if (PyErr_Occurred() != NULL) return false;
    adapter->how = adapter->exchange != NULL ? BY_EXCHANGE
                   : !buffer                 ? BY_DLPACK
                   : anywhere                ? BY_DEVICE
                                             : BY_BUFFER;
    adapter->immutable = immutable != 0;
    return true;
}

static const Adapter *adapter_new(State *state, PyObject *object, const char *kernel,
                                  const char *parameter) {
    Adapter made = {.type = (PyObject *)Py_TYPE(object)};
    PyObject *facts = PyObject_CallFunction(state->describe, "Oss", object, kernel, parameter);
    if (facts == NULL || !adapter_describe(&made, object, facts)) {
        Py_XDECREF(facts);
        return NULL;
    }
    Py_INCREF(made.type);
    Py_XINCREF(made.is_negative);
    Py_XINCREF(made.requires_grad);
    Py_DECREF(facts);
    Adapter *adapter = &state->adapters[state->next_adapter];
    Adapter last = *adapter;
    state->next_adapter = (state->next_adapter + 1) % ADAPTERS;
    *adapter = made;
    Py_XDECREF(last.type); /* may run Python, which finds the new adapter */
    Py_XDECREF(last.is_negative);
    Py_XDECREF(last.requires_grad);
    return adapter;
}

const Adapter *adapter_find(State *state, PyObject *object, const char *kernel,
                            const char *parameter) {
    const PyObject *type = (PyObject *)Py_TYPE(object);
    for (int i = 0; i < ADAPTERS; i++)
        if (state->adapters[i].type == type) return &state->adapters[i];
    return adapter_new(state, object, kernel, parameter);
}

static const Adapter *adapter_of(const Call *call, int index) {
    PyObject *object = call->objects[index];
    if (call->first >= 0 && call->adapter.type == (PyObject *)Py_TYPE(object))
        return &call->adapter;
    return adapter_find(call->state, object, call->unit->name,
                        call->unit->parameters[index].fact.name);
}

/* ---- DLPack ---------------------------------------------------------------------------------- */

/* C order without gaps, as strides in elements */
static void contiguous_strides(PipecArgument *argument, int rank) {
    int64_t stride = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        argument->strides[axis] = stride;
        stride *= argument->extents[axis];
    }
}

/* The extents of a tensor. An empty axis counts as one element, so that no product of some extents
 * overflows later. */
static bool take_extents(Call *call, int index, const DLTensor *from) {
    int64_t bytes = 8; /* of the widest type */
    if (from->rank > 0 && from->extents == NULL)
        return tensor_wrong(call, index, PyExc_BufferError,
                            "is exported with %d axes, but without their extents (DLPack's shape "
                            "is null)",
                            (int)from->rank);
    for (int axis = 0; axis < from->rank; axis++) {
        int64_t extent = from->extents[axis];
        if (extent < 0)
            return tensor_wrong(call, index, PyExc_BufferError,
                                "is exported with %lld elements along axis %d", (long long)extent,
                                axis);
        if (__builtin_mul_overflow(bytes, extent > 0 ? extent : 1, &bytes))
            return tensor_wrong(call, index, PyExc_BufferError,
                                "is exported with more elements than memory can hold");
        call->arguments[index].extents[axis] = extent;
    }
    return true;
}

/* The address of the first element: *data. The offset is in bytes. */
static bool take_address(Call *call, int index, const DLTensor *from) {
    uintptr_t address = (uintptr_t)from->data;
    if (from->data != NULL && __builtin_add_overflow(address, from->offset, &address))
        return tensor_wrong(call, index, PyExc_BufferError,
                            "is exported with an offset beyond all memory (DLPack's byte_offset "
                            "is %llu)",
                            (unsigned long long)from->offset);
    call->tensors[index].data = from->data != NULL ? (char *)from->data + from->offset : NULL;
    return true;
}

/* Where the tensor is. -1 stands for the host in a call, so an id of a GPU is checked here. */
static bool take_device(Call *call, int index, DLDevice from) {
    bool on_host = from.type == DL_CPU || from.type == DL_CUDA_HOST;
    call->tensors[index].device = on_host ? -1 : from.id;
    if (!on_host && from.type != DL_CUDA && from.type != DL_CUDA_MANAGED)
        return tensor_wrong(call, index, PyExc_ValueError,
                            "is neither on the host nor on a CUDA device (DLPack's device type %d)",
                            (int)from.type);
    return on_host || from.id >= 0 ||
           tensor_wrong(call, index, PyExc_ValueError, "is on GPU %d, which cannot be",
                        (int)from.id);
}

/* Reads what a producer says of its tensor, and believes nothing that can be checked. */
static bool take(Call *call, int index, const DLTensor *from) {
    Tensor *tensor = &call->tensors[index];
    PipecArgument *argument = &call->arguments[index];
    tensor->type = from->type;
    tensor->rank = from->rank;
    if (!take_device(call, index, from->device) || !take_address(call, index, from)) return false;
    if (from->rank < 0 || from->rank > PIPEC_MAX_RANK) return true; /* is refused for its rank */
    if (!take_extents(call, index, from)) return false;
    if (from->strides == NULL) {
        contiguous_strides(argument, tensor->rank);
        return true;
    }
    for (int axis = 0; axis < tensor->rank; axis++) argument->strides[axis] = from->strides[axis];
    return true;
}

bool tensor_is_negative(const Adapter *adapter, PyObject *object, bool *negative) {
    PyObject *answer = adapter->is_negative_c != NULL
                           ? adapter->is_negative_c(object, NULL)
                           : PyObject_CallFunctionObjArgs(adapter->is_negative, object, NULL);
    if (answer == NULL) return false;
    *negative = answer == Py_True;
    Py_DECREF(answer);
    return true;
}

static bool negative_bit(Call *call, int index, const Adapter *adapter) {
    bool negative;
    if (!tensor_is_negative(adapter, call->objects[index], &negative)) return false;
    if (!negative) return true;
    return tensor_wrong(call, index, PyExc_ValueError,
                        "has the negative bit set, so its memory has the elements with the other "
                        "sign: pass x.resolve_neg()");
}

bool gradient_mode(State *state, bool *on) {
    if (state->grad_enabled == NULL) {
        PyObject *torch = PyImport_ImportModule("torch");
        if (torch == NULL) return false;
        state->grad_enabled = PyObject_GetAttrString(torch, "is_grad_enabled");
        Py_DECREF(torch);
        if (state->grad_enabled == NULL) return false;
    }
    PyObject *answer = PyObject_CallNoArgs(state->grad_enabled);
    if (answer == NULL) return false;
    *on = answer == Py_True;
    Py_DECREF(answer);
    return true;
}

bool tensor_needs_gradient(const Adapter *adapter, PyObject *object, bool *needed) {
    PyObject *answer = adapter->get_requires_grad(adapter->requires_grad, object, adapter->type);
    if (answer == NULL) return false;
    *needed = answer == Py_True;
    Py_DECREF(answer);
    return true;
}

/* PyTorch: autograd cannot see into the kernel */
static bool without_gradient(Call *call, int index, const Adapter *adapter) {
    bool needed, on = false;
    if (!tensor_needs_gradient(adapter, call->objects[index], &needed)) return false;
    if (!needed) return true;
    if (!gradient_mode(call->state, &on)) return false;
    if (!on) return true;
    return tensor_wrong(call, index, PyExc_ValueError,
                        "requires a gradient, which a call of a kernel does not record: pass "
                        "x.detach(), call it under torch.no_grad(), or make an operator with a "
                        "backward: pipec.torch.operator(name, kernel, backward=..)");
}

static bool read_by_exchange(Call *call, int index, const Adapter *adapter) {
    DLTensor seen;
    DLVersioned *managed = NULL;
    const DLExchange *exchange = adapter->exchange;
    PyObject *object = call->objects[index];
    if (adapter->is_negative != NULL &&
        (!negative_bit(call, index, adapter) || !without_gradient(call, index, adapter)))
        return false;
    if (exchange->tensor_of != NULL)
        return exchange->tensor_of(object, &seen) == 0 && take(call, index, &seen);
    if (exchange->managed_of(object, &managed) != 0) return false;
    call->tensors[index].versioned = managed;
    call->holds = true;
    call->tensors[index].read_only = (managed->flags & (DL_READ_ONLY | DL_COPIED)) != 0;
    return take(call, index, &managed->tensor);
}

/* ---- `__dlpack__` ---------------------------------------------------------------------------- */

/* Takes the tensor out of a capsule, which then no longer owns it */
static bool read_capsule(Call *call, int index, PyObject *capsule) {
    Tensor *tensor = &call->tensors[index];
    if (PyCapsule_IsValid(capsule, "dltensor_versioned")) {
        DLVersioned *it = PyCapsule_GetPointer(capsule, "dltensor_versioned");
        if (PyCapsule_SetName(capsule, "used_dltensor_versioned") != 0) return false;
        tensor->versioned = it;
        call->holds = true;
        if (it->version.major != DLPACK_MAJOR) /* then only the version and its release are known */
            return tensor_wrong(call, index, PyExc_BufferError,
                                "is exported as version %u of DLPack, not %d",
                                (unsigned)it->version.major, DLPACK_MAJOR);
        tensor->read_only = (it->flags & (DL_READ_ONLY | DL_COPIED)) != 0;
        return take(call, index, &it->tensor);
    }
    DLManaged *it = PyCapsule_GetPointer(capsule, "dltensor");
    if (it == NULL)
        return tensor_wrong(call, index, PyExc_BufferError,
                            "is exported by __dlpack__ as no capsule of a tensor");
    if (PyCapsule_SetName(capsule, "used_dltensor") != 0) return false;
    tensor->managed = it;
    call->holds = true;
    return take(call, index, &it->tensor);
}

/* Is it on a GPU, as `__dlpack_device__` says? */
static bool is_on_gpu(Call *call, int index, bool *on_gpu) {
    PyObject *object = call->objects[index];
    PyObject *device = PyObject_CallMethodObjArgs(object, call->state->dlpack_device, NULL);
    if (device == NULL) return false;
    int type, id;
    bool fine = PyTuple_Check(device) && PyArg_ParseTuple(device, "ii", &type, &id);
    if (!fine)
        tensor_wrong(call, index, PyExc_BufferError,
                     "has no device: __dlpack_device__ returned %R, not two integers", device);
    Py_DECREF(device);
    if (fine) *on_gpu = type == DL_CUDA || type == DL_CUDA_MANAGED;
    return fine;
}

/* The stream on which the kernel will run, as `__dlpack__` takes it: 1 is the legacy default
 * stream; None for host memory, where there are no streams */
static PyObject *stream_number(Call *call, int index) {
    PyObject *object = call->objects[index];
    bool on_gpu;
    if (!is_on_gpu(call, index, &on_gpu)) return NULL;
    if (!on_gpu) return Py_NewRef(Py_None);
    void *stream;
    if (!find_stream(call, object, &stream)) return NULL;
    return PyLong_FromVoidPtr(stream != NULL ? stream : (void *)1);
}

static PyObject *call_dlpack(PyObject *method, PyObject *stream, bool versioned) {
    PyObject *none = PyTuple_New(0);
    PyObject *named = versioned ? Py_BuildValue("{s:O,s:(ii)}", "stream", stream, "max_version",
                                                DLPACK_MAJOR, DLPACK_MINOR)
                                : Py_BuildValue("{s:O}", "stream", stream);
    PyObject *capsule = none != NULL && named != NULL ? PyObject_Call(method, none, named) : NULL;
    Py_XDECREF(none);
    Py_XDECREF(named);
    return capsule;
}

/* The exception of a producer, with the parameter that it is about */
static bool not_exported(const Call *call, int index) {
    PyObject *type, *error, *trace;
    if (!PyErr_ExceptionMatches(PyExc_BufferError)) return false;
    PyErr_Fetch(&type, &error, &trace);
    tensor_wrong(call, index, PyExc_BufferError, "is not exported by __dlpack__: %S",
                 error != NULL ? error : Py_None);
    Py_XDECREF(type);
    Py_XDECREF(error);
    Py_XDECREF(trace);
    return false;
}

static bool read_by_dlpack(Call *call, int index) {
    PyObject *object = call->objects[index];
    PyObject *stream = stream_number(call, index);
    PyObject *method = stream != NULL ? PyObject_GetAttr(object, call->state->dlpack) : NULL;
    PyObject *capsule = method != NULL ? call_dlpack(method, stream, true) : NULL;
    /* producers before version 1.0 do not know max_version */
    if (capsule == NULL && method != NULL && PyErr_ExceptionMatches(PyExc_TypeError)) {
        PyErr_Clear();
        capsule = call_dlpack(method, stream, false);
    }
    bool fine = capsule != NULL ? read_capsule(call, index, capsule) : not_exported(call, index);
    Py_XDECREF(capsule);
    Py_XDECREF(method);
    Py_XDECREF(stream);
    return fine;
}

/* ---- buffers --------------------------------------------------------------------------------- */

static bool take_buffer(Call *call, int index, const Py_buffer *view) {
    Tensor *tensor = &call->tensors[index];
    PipecArgument *argument = &call->arguments[index];
    tensor->data = view->buf;
    tensor->rank = view->ndim;
    tensor->device = -1;
    tensor->read_only = view->readonly != 0;
    if (!type_of_format(view->format, view->itemsize, &tensor->type))
        return tensor_wrong(call, index, PyExc_TypeError,
                            "has elements of the format \"%s\", which no type of Pipe has "
                            "(numbers in the order of this machine)",
                            view->format);
    if (view->ndim > PIPEC_MAX_RANK) return true; /* is refused for its rank */
    for (int axis = 0; axis < view->ndim; axis++) {
        argument->extents[axis] = view->shape[axis];
        /* an odd stride is refused below, as a last axis that is not contiguous */
        argument->strides[axis] =
            view->strides[axis] % view->itemsize == 0 ? view->strides[axis] / view->itemsize : -1;
    }
    return true;
}

static bool read_buffer(Call *call, int index, PyObject *object) {
    Py_buffer *view = PyMem_Malloc(sizeof *view);
    if (view == NULL) return PyErr_NoMemory() != NULL;
    if (PyObject_GetBuffer(object, view, PyBUF_STRIDED_RO | PyBUF_FORMAT) != 0) {
        PyMem_Free(view);
        return false;
    }
    call->tensors[index].buffer = view;
    call->holds = true;
    return take_buffer(call, index, view);
}

/* An array of ml_dtypes, whose types the protocol lacks, is read as its bits. pipec._arrays.as_bits
 * returns them and the type's name in Pipe; None: it is no such array */
static bool read_by_buffer(Call *call, int index) {
    PyObject *object = call->objects[index];
    if (read_buffer(call, index, object)) return true;
    if (call->tensors[index].buffer != NULL) return false;
    PyErr_Clear();
    PyObject *found = PyObject_CallFunctionObjArgs(call->state->as_bits, object, NULL);
    if (found == NULL) return false;
    if (found == Py_None) {
        Py_DECREF(found);
        return read_by_dlpack(call, index);
    }
    PyObject *array;
    const char *name;
    bool fine = PyArg_ParseTuple(found, "Os", &array, &name) && read_buffer(call, index, array) &&
                type_of(name, &call->tensors[index].type);
    Py_DECREF(found); /* the buffer keeps the array */
    return fine;
}

/* JAX: the arrays of a GPU have the type of those of the host, but are no buffers */
static bool read_by_device(Call *call, int index) {
    bool on_gpu;
    return is_on_gpu(call, index, &on_gpu) &&
           (on_gpu ? read_by_dlpack(call, index) : read_by_buffer(call, index));
}

/* ---- checks ---------------------------------------------------------------------------------- */

static bool wrong_type(const Call *call, int index, const Adapter *adapter) {
    const Tensor *tensor = &call->tensors[index];
    const char *type = call->unit->parameters[index].fact.type;
    char given[64], wanted[64];
    type_print(tensor->type, given, sizeof given);
    type_print(call->unit->parameters[index].type, wanted, sizeof wanted);
    if (adapter->is_negative != NULL)
        return tensor_wrong(call, index, PyExc_TypeError,
                            "must have elements of %s (%s), not %s: convert it, x.to(torch.%s)",
                            type, wanted, given, wanted);
    if (adapter->how == BY_BUFFER && call->unit->parameters[index].type.code >= DL_BFLOAT)
        return tensor_wrong(call, index, PyExc_TypeError,
                            "must have elements of %s, not %s: pass an array of ml_dtypes.%s, or "
                            "the bits as uint%d",
                            type, given, wanted, call->unit->parameters[index].type.bits);
    return tensor_wrong(call, index, PyExc_TypeError,
                        "must have elements of %s, not %s: convert it, x.astype(\"%s\")", type,
                        given, wanted);
}

static bool wrong_rank(const Call *call, int index) {
    const PipecParameter *fact = &call->unit->parameters[index].fact;
    const Tensor *tensor = &call->tensors[index];
    char wanted[256] = "";
    size_t used = 0;
    for (int axis = 0; axis < fact->rank && used < sizeof wanted; axis++)
        used += (size_t)snprintf(wanted + used, sizeof wanted - used, axis > 0 ? ", %s" : "%s",
                                 fact->extents[axis]);
    return tensor_wrong(call, index, PyExc_ValueError,
                        "must have %d %s, [%s], but the tensor has %d", fact->rank,
                        fact->rank == 1 ? "axis" : "axes", wanted, tensor->rank);
}

static bool has_elements(const PipecArgument *argument, int rank) {
    for (int axis = 0; axis < rank; axis++)
        if (argument->extents[axis] == 0) return false;
    return true;
}

/* What to pass instead; the result of a copy would be lost if the kernel writes to it. */
static const char *contiguous_form(const Call *call, int index) {
    if (call->unit->parameters[index].fact.mode != PIPEC_IN) return "an array in C order";
    return call->tensors[index].buffer != NULL ? "numpy.ascontiguousarray(x)" : "x.contiguous()";
}

/* C order without gaps? Then *elements is their number. */
static bool is_dense(const PipecArgument *argument, int rank, int64_t *elements) {
    int64_t dense = 1;
    for (int axis = rank - 1; axis >= 0; axis--) {
        int64_t extent = argument->extents[axis];
        if (extent != 1 && argument->strides[axis] != dense) return false;
        dense *= extent;
    }
    *elements = dense;
    return true;
}

/* The last axis without gaps; other strides may be larger than the rows, not negative */
static bool check_strides(Call *call, int index) {
    PipecArgument *argument = &call->arguments[index];
    const Parameter *parameter = &call->unit->parameters[index];
    int rank = call->tensors[index].rank;
    int64_t elements, step, last = 0; /* element, from the first one */
    argument->strided = false;
    if (is_dense(argument, rank, &elements)) {
        call->tensors[index].bytes = (uint64_t)elements * parameter->fact.element_bytes;
        return true;
    }
    if (!has_elements(argument, rank)) return true;
    argument->strided = true;
    for (int axis = rank - 1; axis >= 0; axis--) {
        int64_t extent = argument->extents[axis], stride = argument->strides[axis];
        if (extent > 1 && axis == rank - 1 && stride != 1)
            return tensor_wrong(call, index, PyExc_ValueError,
                                "must be contiguous along its last axis, whose stride is %lld "
                                "elements: pass %s",
                                (long long)stride, contiguous_form(call, index));
        if (extent > 1 && (stride < 0 || (stride == 0 && parameter->fact.mode != PIPEC_IN)))
            return tensor_wrong(call, index, PyExc_ValueError,
                                "has a stride of %lld elements along axis %d: pass a copy",
                                (long long)stride, axis);
        if (extent == 1) continue;
        if (__builtin_mul_overflow(extent - 1, stride, &step) ||
            __builtin_add_overflow(last, step, &last) || last >= INT64_MAX / 8)
            return tensor_wrong(call, index, PyExc_ValueError,
                                "has a stride of %lld elements along axis %d, which is beyond all "
                                "memory",
                                (long long)stride, axis);
    }
    call->tensors[index].bytes = (uint64_t)(last + 1) * parameter->fact.element_bytes;
    return true;
}

static bool check(Call *call, int index, const Adapter *adapter) {
    const Parameter *parameter = &call->unit->parameters[index];
    const Tensor *tensor = &call->tensors[index];
    bool bits = false, written = parameter->fact.mode != PIPEC_IN;
    if (!type_matches(tensor->type, parameter->type, &bits))
        return wrong_type(call, index, adapter);
    call->bits |= bits;
    if (tensor->rank != parameter->fact.rank) return wrong_rank(call, index);
    if (!check_strides(call, index)) return false;
    if (written && adapter->immutable && call->created[index] == NULL)
        return tensor_wrong(call, index, PyExc_ValueError,
                            "is written, but arrays of JAX do not change: %s",
                            parameter->fact.mode == PIPEC_OUT
                                ? "do not give it, and use the array that the call returns"
                                : "a kernel with an `out` tensor returns a new array");
    if (written && tensor->read_only)
        return tensor_wrong(call, index, PyExc_ValueError,
                            "is written, but the array is read-only: pass a copy");
    call->arguments[index].pointer = (uintptr_t)tensor->data;
    if (tensor->data == NULL && has_elements(&call->arguments[index], tensor->rank))
        return tensor_wrong(call, index, PyExc_ValueError,
                            "has no memory: its storage was freed or resized");
    return true;
}

/* ---- all of a call --------------------------------------------------------------------------- */

static const char *place_text(int device, char *out, size_t bytes) {
    if (device < 0) return "on the host";
    snprintf(out, bytes, "on GPU %d", device);
    return out;
}

static bool same_device(Call *call, int index) {
    char here[32], there[32];
    int device = call->tensors[index].device;
    if (call->first < 0) {
        call->first = index;
        call->device = device;
        return true;
    }
    if (device == call->device) return true;
    return tensor_wrong(call, index, PyExc_ValueError,
                        "is %s, but `%s` is %s: all tensors of a call are on one device",
                        place_text(device, here, sizeof here),
                        call->unit->parameters[call->first].fact.name,
                        place_text(call->device, there, sizeof there));
}

/* How the tensor is read; a copy in `room`, because another thread may need its place */
static const Adapter *adapter_for(Call *call, int index, Adapter *room) {
    const Adapter *adapter = adapter_of(call, index);
    if (adapter == NULL || adapter == &call->adapter) return adapter;
    Adapter *copy = call->first < 0 ? &call->adapter : room;
    *copy = *adapter;
    return copy;
}

static bool read_unchecked(Call *call, int index, const Adapter *adapter) {
    return adapter->how == BY_EXCHANGE ? read_by_exchange(call, index, adapter)
           : adapter->how == BY_BUFFER ? read_by_buffer(call, index)
           : adapter->how == BY_DEVICE ? read_by_device(call, index)
                                       : read_by_dlpack(call, index);
}

bool tensor_read(Call *call, int index) {
    Adapter other;
    const Adapter *adapter = adapter_for(call, index, &other);
    return adapter != NULL && read_unchecked(call, index, adapter) && check(call, index, adapter) &&
           same_device(call, index);
}

/* ---- tensors that decide statics ------------------------------------------------------------- */

/* unnamed: a tensor with elements that Pipe has no name for; -1: there is none */
static bool not_taken(const Call *call, PipecStatus status, const PipecDiagnostics *said,
                      int unnamed) {
    const PipecDiagnostic *first =
        pipec_diagnostics_count(said) > 0 ? pipec_diagnostics_get(said, 0) : NULL;
    char type[64];
    if (first == NULL || strcmp(first->code, "P0624") != 0) {
        error_raise(call->state, status, said);
        return false;
    }
    const char *taken = first->note_count > 0 ? first->notes[0] : "convert it";
    if (unnamed < 0) {
        PyErr_Format(PyExc_TypeError, "%s: %s: %s", call->unit->name, first->message, taken);
        return false;
    }
    type_print(call->tensors[unnamed].type, type, sizeof type);
    return tensor_wrong(call, unnamed, PyExc_TypeError, "cannot have elements of %s: %s", type,
                        taken);
}

/* The unit for the types and extents of the tensors that are given */
static bool find_unit(Call *call) {
    Unit *unit = call->unit;
    PipecDiagnostics *said = NULL;
    PipecProgram *found;
    PipecStatus status;
    bool known[PARAMETERS_MOST], bits = false;
    int unnamed = -1;
    for (int i = 0; i < unit->count; i++) {
        const Parameter *parameter = &unit->parameters[i];
        known[i] = call->given[i] && parameter->fact.is_tensor &&
                   call->tensors[i].rank == parameter->fact.rank;
        if (!known[i]) continue;
        call->arguments[i].type = type_matches(call->tensors[i].type, parameter->type, &bits)
                                      ? parameter->fact.type
                                      : type_name(call->tensors[i].type);
        if (call->arguments[i].type != NULL) continue;
        call->arguments[i].type = "";
        if (unnamed < 0) unnamed = i;
    }
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(unit->lock, WAIT_LOCK);
    status = pipec_program_for(unit->program, call->arguments, sizeof *call->arguments,
                               (size_t)unit->count, known, &found, &said);
    PyThread_release_lock(unit->lock);
    Py_END_ALLOW_THREADS;
    if (status == PIPEC_FINE && found != unit->program) unit = unit_other(unit, found);
    bool fine = status == PIPEC_FINE ? unit != NULL : not_taken(call, status, said, unnamed);
    pipec_diagnostics_free(said);
    if (!fine) return false;
    call->unit = unit;
    for (int i = 0; i < unit->count; i++) /* the launch decides alike */
        if (known[i]) call->arguments[i].type = unit->parameters[i].fact.type;
    return true;
}

/* Reads all tensors before the unit is known that they are checked for */
static bool decide(Call *call) {
    Adapter *adapters = PyMem_Calloc((size_t)call->unit->count + 1, sizeof *adapters);
    bool fine = adapters != NULL || PyErr_NoMemory() != NULL;
    const Unit *base = call->unit;
    for (int i = 0; i < base->count && fine; i++) {
        if (call->objects[i] == NULL || !base->parameters[i].fact.is_tensor) continue;
        const Adapter *adapter = adapter_for(call, i, &adapters[i]);
        fine = adapter != NULL && read_unchecked(call, i, adapter);
        if (fine && adapter != &adapters[i]) adapters[i] = *adapter;
        if (fine && call->first < 0) call->first = i;
    }
    fine = fine && find_unit(call);
    call->first = -1;
    for (int i = 0; i < base->count && fine; i++)
        if (call->objects[i] != NULL && base->parameters[i].fact.is_tensor)
            fine = check(call, i, &adapters[i]) && same_device(call, i);
    PyMem_Free(adapters);
    return fine;
}

/* Producers may run Python when they get a tensor back: an exception of the call waits meanwhile */
void tensors_release(Call *call) {
    PyObject *type = NULL, *error = NULL, *trace = NULL;
    if (!call->holds) return;
    PyErr_Fetch(&type, &error, &trace);
    for (int i = 0; i < call->unit->count; i++) tensor_release(&call->tensors[i]);
    PyErr_Restore(type, error, trace);
}

bool tensors_read(Call *call) {
    call->first = -1;
    call->device = -1;
    call->bits = call->holds = call->stream_known = false;
    memset(call->tensors, 0, (size_t)call->unit->count * sizeof *call->tensors);
    if (call->unit->decides) return decide(call) && (call->device >= 0 || overlaps_check(call));
    for (int i = 0; i < call->unit->count; i++)
        if (call->objects[i] != NULL && call->unit->parameters[i].fact.is_tensor &&
            !tensor_read(call, i))
            return false;
    return call->device >= 0 || overlaps_check(call); /* a launch checks it itself */
}
