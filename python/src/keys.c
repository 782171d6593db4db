/* python: the arguments of an operation as bytes, its key. Two calls with equal keys have equal
 * numbers and texts, and tensors of the same types, device, extents, strides and alignments. The
 * addresses of the tensors are read with them, but are no part of the key. */
#include "python/src/private.h"

#define TENSOR_BYTES (16 + 16 * PIPEC_MAX_RANK)

/* ---- bytes ----------------------------------------------------------------------------------- */

/* Room for so many more bytes; NULL: an exception */
static char *grow(Facts *facts, size_t bytes) {
    if (facts->used + bytes > facts->bytes) {
        bool is_own = facts->key != facts->key_room;
        size_t room = 2 * facts->bytes + bytes;
        char *key = PyMem_Realloc(is_own ? facts->key : NULL, room);
        if (key == NULL) return (void)PyErr_NoMemory(), NULL;
        if (!is_own) memcpy(key, facts->key_room, facts->used);
        facts->key = key;
        facts->bytes = room;
    }
    return facts->key + facts->used;
}

/* A letter for the kind, and what follows it */
static Found put(Facts *facts, char kind, const void *bytes, size_t count) {
    char *at = grow(facts, 1 + count);
    if (at == NULL) return FOUND_ERROR;
    *at = kind;
    if (count > 0) memcpy(at + 1, bytes, count);
    facts->used += 1 + count;
    return FOUND;
}

static Found put_text(Facts *facts, PyObject *text) {
    Py_ssize_t length;
    const char *bytes = PyUnicode_AsUTF8AndSize(text, &length);
    if (bytes == NULL || put(facts, 's', &length, sizeof length) != FOUND) return FOUND_ERROR;
    return put(facts, ':', bytes, (size_t)length);
}

/* ---- tensors --------------------------------------------------------------------------------- */

static bool has_elements(const DLTensor *seen) {
    for (int axis = 0; axis < seen->rank; axis++)
        if (seen->extents[axis] == 0) return false;
    return true;
}

static Found put_tensor(Facts *facts, const DLTensor *seen) {
    if (seen->device.type != DL_CUDA || seen->device.id < 0) return NOT_FOUND;
    if (facts->device >= 0 && facts->device != seen->device.id) return NOT_FOUND;
    if (seen->rank < 0 || seen->rank > PIPEC_MAX_RANK || (seen->rank > 0 && seen->strides == NULL))
        return NOT_FOUND;
    if (seen->data == NULL && has_elements(seen)) return NOT_FOUND; /* its memory was freed */
    uint64_t place = (uintptr_t)seen->data + seen->offset;
    uint8_t small[2] = {(uint8_t)(place % 16), (uint8_t)seen->rank};
    size_t axes = (size_t)seen->rank * sizeof(int64_t);
    char *at = grow(facts, TENSOR_BYTES), *begin = at;
    if (at == NULL) return FOUND_ERROR;
    *at++ = 't';
    memcpy(at, &seen->type, sizeof seen->type), at += sizeof seen->type;
    memcpy(at, &seen->device.id, sizeof seen->device.id), at += sizeof seen->device.id;
    memcpy(at, small, sizeof small), at += sizeof small;
    if (axes > 0) {
        memcpy(at, seen->extents, axes), at += axes;
        memcpy(at, seen->strides, axes), at += axes;
    }
    facts->used += (size_t)(at - begin);
    facts->device = seen->device.id;
    facts->places[facts->count - 1] = place;
    return FOUND;
}

/* Of a type that is read by C functions, which PyTorch's are, without the negative bit */
static Found add_tensor(Facts *facts, PyObject *object) {
    const Adapter *found = adapter_find(facts->state, object, "a plan", "argument");
    if (found == NULL) { /* no tensor, or of a subclass: others say what is wrong */
        PyErr_Clear();
        return NOT_FOUND;
    }
    Adapter adapter = *found; /* another thread may need its place */
    DLTensor seen;
    if (adapter.how != BY_EXCHANGE || adapter.exchange->tensor_of == NULL || adapter.immutable ||
        (facts->exchange != NULL && facts->exchange != adapter.exchange))
        return NOT_FOUND;
    if (adapter.is_negative != NULL) {
        bool negative, needed;
        if (!tensor_is_negative(&adapter, object, &negative) ||
            !tensor_needs_gradient(&adapter, object, &needed))
            return FOUND_ERROR;
        if (negative) return NOT_FOUND;
        facts->needs_gradient |= needed;
    }
    if (adapter.exchange->tensor_of(object, &seen) != 0) {
        PyErr_Clear();
        return NOT_FOUND;
    }
    facts->exchange = adapter.exchange;
    return put_tensor(facts, &seen);
}

/* ---- arguments ------------------------------------------------------------------------------- */

Found facts_add(Facts *facts, PyObject *argument) {
    facts->places[facts->count++] = 0;
    if (argument == Py_None) return put(facts, 'n', NULL, 0);
    if (PyUnicode_CheckExact(argument)) return put_text(facts, argument);
    if (PyBool_Check(argument)) return put(facts, argument == Py_True ? '1' : '0', NULL, 0);
    if (PyFloat_CheckExact(argument)) {
        double number = PyFloat_AsDouble(argument);
        return put(facts, 'f', &number, sizeof number);
    }
    if (!PyLong_CheckExact(argument)) return add_tensor(facts, argument);
    int overflow;
    long long integer = PyLong_AsLongLongAndOverflow(argument, &overflow);
    if (overflow == 0) return put(facts, 'i', &integer, sizeof integer);
    unsigned long long above = PyLong_AsUnsignedLongLong(argument);
    if (PyErr_Occurred() == NULL) return put(facts, 'u', &above, sizeof above);
    PyErr_Clear();
    return NOT_FOUND;
}

bool facts_open(Facts *facts, State *state, PyObject *name, size_t count, size_t more) {
    facts->state = state;
    facts->key = facts->key_room;
    facts->used = facts->count = 0;
    facts->bytes = sizeof facts->key_room;
    facts->places = facts->places_room;
    facts->device = -1;
    facts->exchange = NULL;
    facts->needs_gradient = false;
    if (count + more > FACTS_PLACES)
        facts->places = PyMem_Malloc((count + more) * sizeof *facts->places);
    if (facts->places == NULL) return PyErr_NoMemory() != NULL;
    return put_text(facts, name) == FOUND;
}

void facts_close(Facts *facts) {
    if (facts->key != facts->key_room) PyMem_Free(facts->key);
    if (facts->places != facts->places_room) PyMem_Free(facts->places);
}
