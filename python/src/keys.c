/* python: keys of calls. Two calls with equal keys have arguments of the same types, and their
 * tensors have the same types, devices, extents, strides and alignment. */
#include "python/src/private.h"

#define KEY_BYTES (16 + 16 * PIPEC_MAX_RANK)

static const DLExchange *exchange_for(const State *state, PyObject *object) {
    for (int i = 0; i < ADAPTERS; i++)
        if (state->adapters[i].type == (PyObject *)Py_TYPE(object))
            return state->adapters[i].how == BY_EXCHANGE ? state->adapters[i].exchange : NULL;
    return NULL;
}

static char *put(char *at, const void *bytes, size_t count) {
    memcpy(at, bytes, count);
    return at + count;
}

/* Its facts as bytes; NULL without an exception: they are read in another way */
static PyObject *tensor_key(const DLExchange *exchange, PyObject *object) {
    DLTensor seen;
    char key[KEY_BYTES], *end = key;
    if (exchange->tensor_of(object, &seen) != 0) {
        PyErr_Clear();
        return NULL;
    }
    if (seen.rank < 0 || seen.rank > PIPEC_MAX_RANK || (seen.rank > 0 && seen.strides == NULL))
        return NULL;
    uint8_t rest = (uint8_t)(((uintptr_t)seen.data + seen.offset) % 16);
    size_t axes = (size_t)seen.rank * sizeof(int64_t);
    end = put(end, &seen.type, sizeof seen.type);
    end = put(end, &seen.device, sizeof seen.device);
    end = put(end, &rest, sizeof rest);
    if (axes > 0) end = put(put(end, seen.extents, axes), seen.strides, axes);
    return PyBytes_FromStringAndSize(key, end - key);
}

static bool is_simple(PyObject *object) {
    return object == Py_None || PyUnicode_CheckExact(object) || PyLong_CheckExact(object) ||
           PyBool_Check(object) || PyFloat_CheckExact(object);
}

/* Of one argument into the items of the key; false: it has none, or an exception */
static bool add(const State *state, PyObject *key, Py_ssize_t index, PyObject *object) {
    const DLExchange *exchange = exchange_for(state, object);
    PyObject *type = (PyObject *)Py_TYPE(object), *value = NULL;
    if (is_simple(object))
        value = Py_NewRef(object);
    else if (exchange != NULL && exchange->tensor_of != NULL)
        value = tensor_key(exchange, object);
    if (value == NULL) return false;
    return PyTuple_SetItem(key, 2 * index, Py_NewRef(type)) == 0 &&
           PyTuple_SetItem(key, 2 * index + 1, value) == 0;
}

/* key(argument, ..): a tuple; None: an argument is of a type that no kernel was called with yet, or
 * that has no C functions. Numbers, texts and None stand for themselves. */
PyObject *call_key(PyObject *module, PyObject *const *arguments, Py_ssize_t count) {
    const State *state = PyModule_GetState(module);
    PyObject *key = PyTuple_New(2 * count);
    for (Py_ssize_t i = 0; key != NULL && i < count; i++)
        if (!add(state, key, i, arguments[i])) Py_CLEAR(key);
    if (key == NULL && PyErr_Occurred() == NULL) return Py_NewRef(Py_None);
    return key;
}
