/* python: what Python shows of a kernel: its parameters, statics, preconditions and claims. */
#include "python/src/private.h"

/* Adds a new object to a list. */
static bool push(PyObject *list, PyObject *item) {
    bool fine = item != NULL && PyList_Append(list, item) == 0;
    Py_XDECREF(item);
    return fine;
}

static PyObject *number(const PipecValue *value) {
    return value->is_float ? PyFloat_FromDouble(value->number)
                           : PyLong_FromLongLong(value->integer);
}

static bool parameters(const Unit *unit, PyObject *list) {
    static const char *const modes[] = {
        [PIPEC_IN] = "in", [PIPEC_OUT] = "out", [PIPEC_INOUT] = "inout"};
    for (int i = 0; i < unit->count; i++) {
        const PipecParameter *fact = &unit->parameters[i].fact;
        PyObject *extents = PyList_New(0);
        for (int axis = 0; extents != NULL && axis < fact->rank; axis++)
            if (!push(extents, PyUnicode_FromString(fact->extents[axis]))) Py_CLEAR(extents);
        if (extents == NULL) return false;
        if (!push(list, Py_BuildValue("(ssOsNi)", fact->name, fact->type,
                                      fact->is_tensor ? Py_True : Py_False, modes[fact->mode],
                                      extents, (int)fact->alignment)))
            return false;
    }
    return true;
}

static bool statics(const Unit *unit, PyObject *list) {
    PipecStatic fact = {.size = sizeof fact};
    for (size_t i = 0; pipec_program_static(unit->program, i, &fact); i++) {
        PyObject *choices = PyList_New(0);
        for (size_t k = 0; choices != NULL && k < fact.choice_count; k++)
            if (!push(choices, fact.is_type ? PyUnicode_FromString(fact.choice_texts[k])
                                            : PyLong_FromLongLong(fact.choices[k])))
                Py_CLEAR(choices);
        if (choices == NULL) return false;
        PyObject *value = fact.is_type ? PyUnicode_FromString(fact.text) : number(&fact.value);
        if (!push(list, Py_BuildValue("(sNN)", fact.name, value, choices))) return false;
    }
    return true;
}

static bool preconditions(const Unit *unit, PyObject *list) {
    const char *text, *reason;
    for (size_t i = 0; (text = pipec_program_precondition(unit->program, i, &reason)) != NULL; i++)
        if (!push(list, Py_BuildValue("(sz)", text, reason))) return false;
    return true;
}

static bool claims(const Unit *unit, PyObject *list) {
    const char *text;
    for (size_t i = 0; (text = pipec_program_ensures(unit->program, i)) != NULL; i++)
        if (!push(list, PyUnicode_FromString(text))) return false;
    return true;
}

/* (static, parameter, axis, or -1: the type) */
static bool decided(const Unit *unit, PyObject *list) {
    const char *name;
    size_t parameter;
    int axis;
    for (size_t i = 0; (name = pipec_program_decided(unit->program, i, &parameter, &axis)) != NULL;
         i++)
        if (!push(list, Py_BuildValue("(sni)", name, (Py_ssize_t)parameter, axis))) return false;
    return true;
}

/* The files that are included, as (name, text) */
static bool files(const Unit *unit, PyObject *list) {
    PipecFile file;
    for (size_t i = 1; pipec_program_file(unit->program, i, &file); i++)
        if (!push(list, Py_BuildValue("(ss#)", file.name, file.text, (Py_ssize_t)file.length)))
            return false;
    return true;
}

static bool set(PyObject *dict, const char *name, PyObject *value) {
    bool fine = value != NULL && PyDict_SetItemString(dict, name, value) == 0;
    Py_XDECREF(value);
    return fine;
}

static bool fill(const Unit *unit, PyObject *dict, const char *name,
                 bool (*facts)(const Unit *, PyObject *)) {
    PyObject *list = PyList_New(0);
    if (list == NULL || facts(unit, list)) return set(dict, name, list);
    Py_DECREF(list);
    return false;
}

PyObject *kernel_facts(const Unit *unit) {
    PyObject *dict = PyDict_New();
    if (dict != NULL && set(dict, "name", PyUnicode_FromString(unit->name)) &&
        set(dict, "head", PyUnicode_FromString(pipec_program_head(unit->program))) &&
        set(dict, "diagnostics", error_items(pipec_program_diagnostics(unit->program))) &&
        set(dict, "warnings",
            PyUnicode_FromString(
                pipec_diagnostics_text(pipec_program_diagnostics(unit->program)))) &&
        fill(unit, dict, "parameters", parameters) && fill(unit, dict, "statics", statics) &&
        fill(unit, dict, "decided", decided) && fill(unit, dict, "preconditions", preconditions) &&
        fill(unit, dict, "ensures", claims) && fill(unit, dict, "files", files))
        return dict;
    Py_XDECREF(dict);
    return NULL;
}
