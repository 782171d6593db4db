/* python: the plans of an operation, by the keys of its arguments. A call that has one runs it
 * here, unless something must see the operation itself, such as autograd. */
#include "python/src/private.h"

typedef struct Plans {
    PyObject_HEAD State *state;
    PyObject *name;
    PyObject *known; /* key -> Plan, or None: it must not be repeated */
    PyObject
        *conditions;    /* ((function, arguments as a tuple, result), ..) of a call that repeats */
    PyObject *last_key; /* of the plan that ran last, and this plan; NULL: none */
    Plan *last;
} Plans;

/* plans(name, known, conditions): `known` is a dict, which others may share */
PyObject *plans_new(PyObject *module, PyObject *args) {
    State *state = PyModule_GetState(module);
    PyObject *name, *known, *conditions;
    if (!PyArg_ParseTuple(args, "UO!O!", &name, &PyDict_Type, &known, &PyTuple_Type, &conditions))
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(state->plans, Py_tp_alloc);
    Plans *plans = (Plans *)(void *)make(state->plans, 0);
    if (plans == NULL) return NULL;
    plans->state = state;
    plans->name = Py_NewRef(name);
    plans->known = Py_NewRef(known);
    plans->conditions = Py_NewRef(conditions);
    return (PyObject *)plans;
}

static void plans_free(PyObject *self) {
    Plans *plans = (Plans *)(void *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    Py_XDECREF(plans->name);
    Py_XDECREF(plans->known);
    Py_XDECREF(plans->conditions);
    Py_XDECREF(plans->last_key);
    Py_XDECREF((PyObject *)plans->last);
    release(self);
    Py_DECREF(type);
}

/* ---- calls ----------------------------------------------------------------------------------- */

static Found condition_holds(PyObject *condition) {
    PyObject *function, *arguments, *wanted;
    if (!PyArg_ParseTuple(condition, "OO!O", &function, &PyTuple_Type, &arguments, &wanted))
        return FOUND_ERROR;
    PyObject *is = PyObject_Call(function, arguments, NULL);
    int equal = is != NULL ? PyObject_RichCompareBool(is, wanted, Py_EQ) : -1;
    Py_XDECREF(is);
    return equal < 0 ? FOUND_ERROR : equal ? FOUND : NOT_FOUND;
}

static Found conditions_hold(const Plans *plans) {
    Found found = FOUND;
    for (Py_ssize_t i = 0; found == FOUND && i < PyTuple_Size(plans->conditions); i++)
        found = condition_holds(PyTuple_GetItem(plans->conditions, i));
    return found;
}

/* Whether a call of these arguments may be repeated, as far as they say it */
static Found read_facts(Facts *facts, PyObject *const *arguments, Py_ssize_t count) {
    Found found = FOUND;
    for (Py_ssize_t i = 0; found == FOUND && i < count; i++) found = facts_add(facts, arguments[i]);
    return found == FOUND && facts->device < 0 ? NOT_FOUND : found;
}

static bool is_last(const Plans *plans, const Facts *facts) {
    return plans->last_key != NULL && (size_t)PyBytes_Size(plans->last_key) == facts->used &&
           memcmp(PyBytes_AsString(plans->last_key), facts->key, facts->used) == 0;
}

/* A plan, with a reference; or None, or the key if nothing is known of it. The last one must still
 * be known, since `known` is emptied when it is full. */
static PyObject *find(Plans *plans, const Facts *facts) {
    if (is_last(plans, facts) &&
        PyDict_GetItem(plans->known, plans->last_key) == (PyObject *)plans->last)
        return Py_NewRef((PyObject *)plans->last);
    PyObject *key = PyBytes_FromStringAndSize(facts->key, (Py_ssize_t)facts->used);
    PyObject *plan = key != NULL ? PyDict_GetItemWithError(plans->known, key) : NULL;
    if (plan == NULL) return PyErr_Occurred() == NULL ? key : (Py_XDECREF(key), NULL);
    Py_INCREF(plan);
    if (Py_IS_TYPE(plan, plans->state->plan)) {
        PyObject *old_key = plans->last_key;
        Plan *old = plans->last;
        plans->last_key = Py_NewRef(key);
        plans->last = (Plan *)(void *)Py_NewRef(plan);
        Py_XDECREF(old_key);
        Py_XDECREF((PyObject *)old);
    }
    Py_DECREF(key);
    return plan;
}

static PyObject *run_or_find(Plans *plans, Facts *facts, PyObject *const *arguments,
                             PyObject *scalars) {
    bool records = false; /* autograd does */
    if (facts->needs_gradient && !gradient_mode(facts->state, &records)) return NULL;
    if (records) return Py_NewRef(Py_True);
    PyObject *found = find(plans, facts);
    if (found == NULL || !Py_IS_TYPE(found, plans->state->plan)) return found;
    PyObject *results = plan_run((Plan *)(void *)found, facts, arguments, scalars);
    Py_DECREF(found);
    return results;
}

static PyObject *repeat(Plans *plans, PyObject *const *arguments, Py_ssize_t count,
                        PyObject *scalars) {
    Facts facts;
    if (!facts_open(&facts, plans->state, plans->name, (size_t)count, PLAN_NEW_MOST)) return NULL;
    Found found = read_facts(&facts, arguments, count);
    if (found == FOUND) found = conditions_hold(plans);
    PyObject *result = found == FOUND       ? run_or_find(plans, &facts, arguments, scalars)
                       : found == NOT_FOUND ? Py_NewRef(Py_None)
                                            : NULL;
    facts_close(&facts);
    return result;
}

/* run(argument, ..): the results as a tuple; or what the caller does itself: None, the operation;
 * or a key, the operation, and it makes its plan known by this key */
static PyObject *plans_run(PyObject *self, PyObject *const *arguments, Py_ssize_t count) {
    return repeat((Plans *)(void *)self, arguments, count, NULL);
}

/* run_with(scalars, tensors): the same, for a tuple of numbers that are no part of the key, and a
 * list of arguments */
static PyObject *plans_run_with(PyObject *self, PyObject *args) {
    PyObject *scalars, *list;
    if (!PyArg_ParseTuple(args, "O!O!", &PyTuple_Type, &scalars, &PyList_Type, &list)) return NULL;
    Py_ssize_t count = PyList_Size(list);
    PyObject **arguments = PyMem_Malloc(((size_t)count + 1) * sizeof *arguments);
    if (arguments == NULL) return PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count; i++) arguments[i] = Py_NewRef(PyList_GetItem(list, i));
    PyObject *result = repeat((Plans *)(void *)self, arguments, count, scalars);
    for (Py_ssize_t i = 0; i < count; i++) Py_DECREF(arguments[i]);
    PyMem_Free(arguments);
    return result;
}

static PyMethodDef methods[] = {
    {"run", (PyCFunction)(void (*)(void))plans_run, METH_FASTCALL, NULL},
    {"run_with", plans_run_with, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL}};

static PyType_Slot slots[] = {
    {Py_tp_dealloc, (void *)plans_free}, {Py_tp_methods, methods}, {0, NULL}};

PyType_Spec plans_spec = {.name = "pipec._pipec.Plans",
                          .basicsize = sizeof(Plans),
                          .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                          .slots = slots};
