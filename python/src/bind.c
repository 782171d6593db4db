/* python: the arguments of a call, by position and by name, become tensors and scalars of the
 * kernel's parameters, and extents. */
#include "python/src/private.h"

/* ---- scalars --------------------------------------------------------------------------------- */

static bool is_u64(const Parameter *parameter) {
    return parameter->type.code == DL_UINT && parameter->type.bits == 64;
}

/* `natural`: the bits of a u64 */
static bool read_integer(PyObject *object, bool natural, int64_t *out) {
    PyObject *integer = PyNumber_Index(object);
    if (integer == NULL) return false;
    *out = natural ? (int64_t)PyLong_AsUnsignedLongLong(integer) : PyLong_AsLongLong(integer);
    Py_DECREF(integer);
    return PyErr_Occurred() == NULL;
}

static bool in_range(const Parameter *parameter, int64_t value) {
    int bits = parameter->type.bits;
    bool is_signed = parameter->type.code == DL_INT;
    if (bits == 64) return true;
    int64_t most = (INT64_C(1) << (is_signed ? bits - 1 : bits)) - 1;
    return value <= most && value >= (is_signed ? -most - 1 : 0);
}

/* Without the value, whose text may have thousands of digits */
static bool out_of_range(const Call *call, int index) {
    const Parameter *parameter = &call->unit->parameters[index];
    return tensor_wrong(call, index, PyExc_OverflowError, "is out of the range of %s",
                        parameter->fact.type);
}

/* Raised by pipec._arrays, which knows the values of other libraries */
static bool no_scalar(const Call *call, int index, PyObject *object) {
    const Parameter *parameter = &call->unit->parameters[index];
    PyErr_Clear();
    PyObject *never = PyObject_CallFunction(call->state->refuse_scalar, "Osss", object,
                                            call->unit->name, parameter->fact.name,
                                            parameter->is_float ? "a number" : "an integer");
    Py_XDECREF(never);
    return false;
}

static bool bind_scalar(Call *call, int index, PyObject *object) {
    const Parameter *parameter = &call->unit->parameters[index];
    PipecArgument *argument = &call->arguments[index];
    if (parameter->is_float) {
        argument->number = PyFloat_AsDouble(object);
        if (argument->number != -1 || PyErr_Occurred() == NULL) return true;
    } else if (read_integer(object, is_u64(parameter), &argument->integer)) {
        argument->number =
            is_u64(parameter) ? (double)(uint64_t)argument->integer : (double)argument->integer;
        return in_range(parameter, argument->integer) || out_of_range(call, index);
    }
    if (PyErr_ExceptionMatches(PyExc_OverflowError)) return out_of_range(call, index);
    if (!PyErr_ExceptionMatches(PyExc_TypeError)) return false;
    return no_scalar(call, index, object);
}

/* ---- names ----------------------------------------------------------------------------------- */

static int find(const Unit *unit, PyObject *name) {
    for (int i = 0; i < unit->count; i++)
        if (unit->parameters[i].name == name) return i;
    for (int i = 0; i < unit->count; i++)
        if (PyUnicode_Compare(unit->parameters[i].name, name) == 0) return i;
    return -1;
}

static bool is_extent(const Unit *unit, const char *name) {
    PipecValue extents[EXTENTS_ALL];
    size_t count = pipec_program_extents(unit->program, NULL, 0, 0, extents, EXTENTS_ALL);
    for (size_t i = 0; i < count; i++)
        if (strcmp(extents[i].name, name) == 0) return true;
    return false;
}

static const char *all_names(const Unit *unit, char *out, size_t bytes) {
    size_t used = 0;
    out[0] = 0;
    for (int i = 0; i < unit->count && used < bytes; i++)
        used += (size_t)snprintf(out + used, bytes - used, i > 0 ? ", %s" : "%s",
                                 unit->parameters[i].fact.name);
    return out;
}

static bool unknown_name(const Unit *unit, const char *name) {
    PipecStatic fact = {.size = sizeof fact};
    char names[512];
    for (size_t i = 0; pipec_program_static(unit->program, i, &fact); i++)
        if (strcmp(fact.name, name) == 0) {
            PyErr_Format(PyExc_TypeError,
                         "%s: `%s` is a static, which is compiled in: write "
                         "%s.using(%s=..)(..)",
                         unit->name, name, unit->name, name);
            return false;
        }
    PyErr_Format(PyExc_TypeError, "%s: there is no parameter `%s`; the parameters are %s",
                 unit->name, name, all_names(unit, names, sizeof names));
    return false;
}

static bool bind_extent(Call *call, PyObject *name, PyObject *object) {
    const char *text = PyUnicode_AsUTF8AndSize(name, NULL);
    if (text == NULL) return false;
    if (!is_extent(call->unit, text)) return unknown_name(call->unit, text);
    if (call->extent_count == EXTENTS_MOST) {
        PyErr_Format(PyExc_TypeError, "%s: more than %d extents by name", call->unit->name,
                     EXTENTS_MOST);
        return false;
    }
    int64_t value;
    if (!read_integer(object, false, &value)) {
        bool huge = PyErr_ExceptionMatches(PyExc_OverflowError);
        PyErr_Format(huge ? PyExc_OverflowError : PyExc_TypeError,
                     huge ? "%s: the extent `%s` is out of range"
                          : "%s: the extent `%s` must be an integer",
                     call->unit->name, text);
        return false;
    }
    call->extents[call->extent_count++] = (PipecValue){.name = text, .integer = value};
    return true;
}

/* ---- arguments ------------------------------------------------------------------------------- */

static bool bind(Call *call, int index, PyObject *object) {
    const Parameter *parameter = &call->unit->parameters[index];
    /* None: as if it were not given */
    if (object == Py_None && parameter->fact.is_tensor && parameter->fact.mode == PIPEC_OUT)
        return true;
    call->objects[index] = object;
    call->given[index] = true;
    return parameter->fact.is_tensor || bind_scalar(call, index, object);
}

static bool too_many(const Unit *unit, size_t count) {
    char names[512] = "";
    size_t used = 0;
    for (int i = 0; i < unit->position_count && used < sizeof names; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, i > 0 ? ", %s" : "%s",
                                 unit->parameters[unit->positions[i]].fact.name);
    PyErr_Format(PyExc_TypeError,
                 "%s takes %d arguments by position (%s), but %zu are given; outputs are given by "
                 "name, like C=out",
                 unit->name, unit->position_count, names, count);
    return false;
}

static bool missing(const Call *call) {
    const Unit *unit = call->unit;
    for (int i = 0; i < unit->position_count; i++) {
        int index = unit->positions[i];
        if (call->objects[index] != NULL) continue;
        const PipecParameter *fact = &unit->parameters[index].fact;
        PyErr_Format(PyExc_TypeError, "%s: the argument `%s` is missing (%s: %s)", unit->name,
                     fact->name, fact->is_tensor ? "a tensor" : "a scalar", fact->type);
        return false;
    }
    return true;
}

bool bind_arguments(Call *call, PyObject *const *args, size_t count, PyObject *names) {
    const Unit *unit = call->unit;
    Py_ssize_t named = names != NULL ? PyTuple_Size(names) : 0;
    size_t parameters = (size_t)unit->count;
    memset(call->given, 0, parameters * sizeof *call->given);
    memset(call->objects, 0, parameters * sizeof *call->objects);
    memset(call->arguments, 0, parameters * sizeof *call->arguments);
    call->extent_count = 0;
    if (count > (size_t)unit->position_count) return too_many(unit, count);
    for (size_t i = 0; i < count; i++)
        if (!bind(call, unit->positions[i], args[i])) return false;
    for (Py_ssize_t i = 0; i < named; i++) {
        PyObject *name = PyTuple_GetItem(names, i);
        int index = find(unit, name);
        if (index < 0 && !bind_extent(call, name, args[count + (size_t)i])) return false;
        if (index < 0) continue;
        if (call->objects[index] != NULL) {
            PyErr_Format(PyExc_TypeError, "%s: `%U` is given twice", unit->name, name);
            return false;
        }
        if (!bind(call, index, args[count + (size_t)i])) return false;
    }
    return missing(call);
}
