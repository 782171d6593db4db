/* python: a plan is what an operation did with tensors of some facts (keys.c): it made new tensors,
 * launched kernels, and returned some tensors. A plan does the same with other tensors of the same
 * facts. What a launch has checked of types, extents and strides still holds; only addresses are
 * new, and those scalars that are not part of the key. */
#include "python/src/private.h"

/* ---- launches -------------------------------------------------------------------------------- */

#define RECORDED "pipec launch"

/* What a call has launched, in a capsule */
typedef struct Recorded {
    Kernel *kernel;
    const Unit *unit; /* that its tensors have decided; lives as long as the kernel */
    size_t count;
    PipecArgument arguments[];
} Recorded;

static void recorded_free(PyObject *capsule) {
    Recorded *recorded = PyCapsule_GetPointer(capsule, RECORDED);
    Py_DECREF(recorded->kernel);
    PyMem_Free(recorded);
}

PyObject *launch_recorded(const Call *call) {
    size_t count = (size_t)call->unit->count;
    Recorded *recorded = PyMem_Malloc(sizeof *recorded + count * sizeof *recorded->arguments);
    if (recorded == NULL) return PyErr_NoMemory();
    recorded->kernel = (Kernel *)Py_NewRef((PyObject *)call->kernel);
    recorded->unit = call->unit;
    recorded->count = count;
    memcpy(recorded->arguments, call->arguments, count * sizeof *recorded->arguments);
    PyObject *capsule = PyCapsule_New(recorded, RECORDED, recorded_free);
    if (capsule != NULL) return capsule;
    Py_DECREF(recorded->kernel);
    PyMem_Free(recorded);
    return NULL;
}

/* ---- plans ----------------------------------------------------------------------------------- */

/* Where an argument of a launch comes from */
typedef struct Source {
    size_t parameter;
    size_t at;       /* the position of a tensor, or of a scalar */
    uint64_t offset; /* of a tensor, in bytes */
} Source;

typedef struct Step {
    Recorded *recorded; /* its arguments are written while the GIL is held */
    Source *tensors, *scalars;
    size_t tensor_count, scalar_count;
} Step;

/* A new tensor: by a function that takes the current device, and by one that names the device.
 * All belong to `kept` of the plan */
typedef struct New {
    PyObject *make, *arguments, *otherwise, *others, *named;
} New;

typedef struct Result {
    size_t at;
    PyObject *view; /* the arguments of as_strided; NULL: the tensor itself */
} Result;

struct Plan {
    PyObject_HEAD PyObject *kept; /* all objects that the plan was made of */
    size_t arguments;             /* their number, before the new tensors */
    New news[PLAN_NEW_MOST];
    size_t new_count;
    Step *steps;
    Result *results;
    size_t step_count, result_count;
};

static void *allocate(size_t count, size_t bytes) {
    void *made = PyMem_Calloc(count > 0 ? count : 1, bytes);
    if (made == NULL) PyErr_NoMemory();
    return made;
}

/* ---- making a plan --------------------------------------------------------------------------- */

static bool read_new(Plan *plan, PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0) return false;
    if (count > PLAN_NEW_MOST)
        return PyErr_Format(PyExc_ValueError, "more than %d new tensors", PLAN_NEW_MOST) != NULL;
    for (; plan->new_count < (size_t)count; plan->new_count++) {
        New *it = &plan->news[plan->new_count];
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, (Py_ssize_t)plan->new_count), "OO!OO!O!",
                              &it->make, &PyTuple_Type, &it->arguments, &it->otherwise,
                              &PyTuple_Type, &it->others, &PyDict_Type, &it->named))
            return false;
    }
    return true;
}

static bool find_parameter(const Unit *unit, PyObject *name, size_t *parameter) {
    for (int i = 0; i < unit->count; i++)
        if (PyUnicode_Compare(unit->parameters[i].name, name) == 0) {
            *parameter = (size_t)i;
            return true;
        }
    PyErr_Format(PyExc_ValueError, "%s has no parameter %S", unit->name, name);
    return false;
}

/* (parameter, position[, offset in bytes]) */
static Source *read_sources(const Plan *plan, const Unit *unit, PyObject *tuple, bool are_tensors) {
    Py_ssize_t count = PyTuple_Size(tuple);
    Source *sources = count >= 0 ? allocate((size_t)count, sizeof *sources) : NULL;
    for (Py_ssize_t i = 0; sources != NULL && i < count; i++) {
        PyObject *name;
        Py_ssize_t at;
        long long offset = 0;
        bool fine = PyArg_ParseTuple(PyTuple_GetItem(tuple, i), "Un|L", &name, &at, &offset) &&
                    find_parameter(unit, name, &sources[i].parameter);
        if (fine && (unit->parameters[sources[i].parameter].fact.is_tensor != are_tensors ||
                     at < 0 || (are_tensors && (size_t)at >= plan->arguments + plan->new_count))) {
            PyErr_Format(PyExc_ValueError, "%U is not number %zd", name, at);
            fine = false;
        }
        sources[i].at = (size_t)at;
        sources[i].offset = (uint64_t)offset;
        if (fine) continue;
        PyMem_Free(sources);
        return NULL;
    }
    return sources;
}

/* (what was launched, tensors, scalars) */
static bool read_steps(Plan *plan, PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0 || (plan->steps = allocate((size_t)count, sizeof *plan->steps)) == NULL)
        return false;
    for (; plan->step_count < (size_t)count; plan->step_count++) {
        Step *step = &plan->steps[plan->step_count];
        PyObject *capsule, *tensors, *scalars;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, (Py_ssize_t)plan->step_count), "OO!O!",
                              &capsule, &PyTuple_Type, &tensors, &PyTuple_Type, &scalars))
            return false;
        step->recorded = PyCapsule_GetPointer(capsule, RECORDED);
        if (step->recorded == NULL) return false;
        step->tensor_count = (size_t)PyTuple_Size(tensors);
        step->scalar_count = (size_t)PyTuple_Size(scalars);
        step->tensors = read_sources(plan, step->recorded->unit, tensors, true);
        step->scalars = read_sources(plan, step->recorded->unit, scalars, false);
        if (step->tensors == NULL || step->scalars == NULL) {
            plan->step_count++; /* what was read of it is freed */
            return false;
        }
    }
    return true;
}

/* (position, the arguments of as_strided or None) */
static bool read_results(Plan *plan, PyObject *tuple) {
    Py_ssize_t count = PyTuple_Size(tuple);
    if (count < 0 || (plan->results = allocate((size_t)count, sizeof *plan->results)) == NULL)
        return false;
    for (; plan->result_count < (size_t)count; plan->result_count++) {
        Result *result = &plan->results[plan->result_count];
        Py_ssize_t at;
        if (!PyArg_ParseTuple(PyTuple_GetItem(tuple, (Py_ssize_t)plan->result_count), "nO", &at,
                              &result->view))
            return false;
        if (at < 0 || (size_t)at >= plan->arguments + plan->new_count)
            return PyErr_Format(PyExc_ValueError, "there is no tensor %zd", at) != NULL;
        result->at = (size_t)at;
        if (result->view == Py_None) result->view = NULL;
    }
    return true;
}

/* plan(number of arguments, new tensors, launches, results), all but the first as tuples of tuples:
 * (function, arguments, function, arguments, named arguments); (what Kernel._record returned,
 * ((parameter, position, offset), ..), ((parameter, scalar), ..)); (position, view or None).
 * Positions are those of the arguments, then of the new tensors. */
PyObject *plan_new(PyObject *module, PyObject *args) {
    const State *state = PyModule_GetState(module);
    PyObject *news, *steps, *results;
    Py_ssize_t arguments;
    if (!PyArg_ParseTuple(args, "nO!O!O!", &arguments, &PyTuple_Type, &news, &PyTuple_Type, &steps,
                          &PyTuple_Type, &results))
        return NULL;
    allocfunc make = (allocfunc)PyType_GetSlot(state->plan, Py_tp_alloc);
    Plan *plan = (Plan *)(void *)make(state->plan, 0);
    if (plan == NULL) return NULL;
    plan->kept = Py_NewRef(args);
    plan->arguments = (size_t)arguments;
    if (read_new(plan, news) && read_steps(plan, steps) && read_results(plan, results))
        return (PyObject *)plan;
    Py_DECREF(plan);
    return NULL;
}

static void plan_free(PyObject *self) {
    Plan *plan = (Plan *)(void *)self;
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    for (size_t i = 0; i < plan->step_count; i++) {
        PyMem_Free(plan->steps[i].tensors);
        PyMem_Free(plan->steps[i].scalars);
    }
    PyMem_Free(plan->steps);
    PyMem_Free(plan->results);
    Py_XDECREF(plan->kept);
    release(self);
    Py_DECREF(type);
}

static PyType_Slot slots[] = {{Py_tp_dealloc, (void *)plan_free}, {0, NULL}};

PyType_Spec plan_spec = {.name = "pipec._pipec.Plan",
                         .basicsize = sizeof(Plan),
                         .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                         .slots = slots};

/* ---- running it ------------------------------------------------------------------------------ */

/* The tensor is new, and its address known; false: an exception, or another device */
static bool read_made(Facts *facts, PyObject *made, size_t at, bool *is_here) {
    DLTensor seen;
    if (made == NULL || facts->exchange->tensor_of(made, &seen) != 0) return false;
    facts->places[at] = (uintptr_t)seen.data + seen.offset;
    *is_here = seen.device.id == facts->device;
    return true;
}

static bool make_new(const New *it, Facts *facts, size_t at, PyObject **out) {
    bool is_here;
    *out = PyObject_Call(it->make, it->arguments, NULL);
    if (!read_made(facts, *out, at, &is_here)) return false;
    if (is_here) return true;
    Py_DECREF(*out);
    *out = PyObject_Call(it->otherwise, it->others, it->named);
    if (!read_made(facts, *out, at, &is_here)) return false;
    if (!is_here) PyErr_SetString(PyExc_RuntimeError, "a new tensor is on another device");
    return is_here;
}

/* Python runs before a step's arguments are written, not between that and its launch */
static bool run_step(const Step *step, const Facts *facts, const double *scalars, void *stream) {
    Recorded *recorded = step->recorded;
    Kernel *kernel = recorded->kernel;
    if (kernel_on(kernel, facts->device) == NULL) return false;
    for (size_t i = 0; i < step->tensor_count; i++) {
        const Source *source = &step->tensors[i];
        recorded->arguments[source->parameter].pointer = facts->places[source->at] + source->offset;
    }
    for (size_t i = 0; i < step->scalar_count; i++)
        recorded->arguments[step->scalars[i].parameter].number = scalars[step->scalars[i].at];
    return launch_on(kernel, facts->device, kernel->on_stream ? kernel->stream : stream,
                     recorded->arguments, recorded->count);
}

#define SCALARS_MOST 16

/* The numbers of a tuple; NULL: there are none */
static bool read_scalars(const Plan *plan, PyObject *tuple, double *numbers) {
    Py_ssize_t count = tuple != NULL ? PyTuple_Size(tuple) : 0;
    if (count < 0) return false;
    for (Py_ssize_t i = 0; i < count && i < SCALARS_MOST; i++) {
        numbers[i] = PyFloat_AsDouble(PyTuple_GetItem(tuple, i));
        if (numbers[i] == -1 && PyErr_Occurred() != NULL) return false;
    }
    for (size_t i = 0; i < plan->step_count; i++)
        for (size_t k = 0; k < plan->steps[i].scalar_count; k++)
            if (plan->steps[i].scalars[k].at >= (size_t)count ||
                plan->steps[i].scalars[k].at >= SCALARS_MOST)
                return PyErr_Format(PyExc_ValueError, "there is no scalar %zu",
                                    plan->steps[i].scalars[k].at) != NULL;
    return true;
}

static PyObject *result_of(const Plan *plan, const Result *result, PyObject *const *arguments,
                           PyObject *const *made) {
    PyObject *tensor =
        result->at < plan->arguments ? arguments[result->at] : made[result->at - plan->arguments];
    if (result->view == NULL) return Py_NewRef(tensor);
    PyObject *method = PyObject_GetAttrString(tensor, "as_strided");
    PyObject *view = method != NULL ? PyObject_Call(method, result->view, NULL) : NULL;
    Py_XDECREF(method);
    return view;
}

static PyObject *results_of(const Plan *plan, PyObject *const *arguments, PyObject *const *made) {
    PyObject *tuple = PyTuple_New((Py_ssize_t)plan->result_count);
    for (size_t i = 0; tuple != NULL && i < plan->result_count; i++) {
        PyObject *result = result_of(plan, &plan->results[i], arguments, made);
        if (result == NULL || PyTuple_SetItem(tuple, (Py_ssize_t)i, result) != 0) Py_CLEAR(tuple);
    }
    return tuple;
}

PyObject *plan_run(Plan *plan, Facts *facts, PyObject *const *arguments, PyObject *scalars) {
    PyObject *made[PLAN_NEW_MOST] = {NULL}, *results = NULL;
    double numbers[SCALARS_MOST];
    void *stream = NULL;
    if (facts->count != plan->arguments)
        return PyErr_Format(PyExc_ValueError, "a plan of %zu arguments, not %zu", plan->arguments,
                            facts->count);
    bool fine = read_scalars(plan, scalars, numbers);
    for (size_t i = 0; fine && i < plan->new_count; i++)
        fine = make_new(&plan->news[i], facts, plan->arguments + i, &made[i]);
    fine = fine && facts->exchange->current_stream(DL_CUDA, facts->device, &stream) == 0;
    for (size_t i = 0; fine && i < plan->step_count; i++)
        fine = run_step(&plan->steps[i], facts, numbers, stream);
    if (fine) results = results_of(plan, arguments, made);
    for (size_t i = 0; i < plan->new_count; i++) Py_XDECREF(made[i]);
    return results;
}
