/* python: the module `_pipec`. */
#include "python/src/private.h"

static PyObject *module_explain(PyObject *module, PyObject *code) {
    (void)module;
    const char *text = PyUnicode_AsUTF8AndSize(code, NULL);
    const char *page = text != NULL ? pipec_explain(text) : NULL;
    if (text == NULL) return NULL;
    return page != NULL ? PyUnicode_FromString(page) : Py_NewRef(Py_None);
}

/* The kernels that are shipped: name -> text */
static PyObject *module_shipped(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    PyObject *all = PyDict_New();
    const char *name, *text;
    for (size_t i = 0; all != NULL && (name = pipec_shipped(i, &text)) != NULL; i++) {
        PyObject *value = PyUnicode_FromString(text);
        if (value == NULL || PyDict_SetItemString(all, name, value) != 0) Py_CLEAR(all);
        Py_XDECREF(value);
    }
    return all;
}

/* The files that they include, as (name, text) */
static PyObject *module_shipped_files(PyObject *module, PyObject *unused) {
    (void)module, (void)unused;
    size_t count = 0;
    PipecFile file;
    while (pipec_shipped_file(count, &file)) count++;
    PyObject *all = PyTuple_New((Py_ssize_t)count);
    for (size_t i = 0; all != NULL && i < count; i++) {
        (void)pipec_shipped_file(i, &file);
        PyObject *pair = Py_BuildValue("(ss#)", file.name, file.text, (Py_ssize_t)file.length);
        if (pair == NULL || PyTuple_SetItem(all, (Py_ssize_t)i, pair) != 0) Py_CLEAR(all);
    }
    return all;
}

static PyMethodDef methods[] = {{"compile", kernel_compile, METH_VARARGS, NULL},
                                {"load_bundle", kernel_load_bundle, METH_VARARGS, NULL},
                                {"load_image", kernel_load_image, METH_VARARGS, NULL},
                                {"explain", module_explain, METH_O, NULL},
                                {"shipped", module_shipped, METH_NOARGS, NULL},
                                {"shipped_files", module_shipped_files, METH_NOARGS, NULL},
                                {"tune", tune, METH_VARARGS, NULL},
                                {"plan", plan_new, METH_VARARGS, NULL},
                                {"plans", plans_new, METH_VARARGS, NULL},
                                {"wait", module_wait, METH_O, NULL},
                                {"rates", module_rates, METH_O, NULL},
                                {"forked", forked, METH_NOARGS, NULL},
                                {NULL, NULL, 0, NULL}};

/* The Python half of the package */
static bool find_helpers(State *state) {
    PyObject *errors = PyImport_ImportModule("pipec._errors");
    PyObject *arrays = errors != NULL ? PyImport_ImportModule("pipec._arrays") : NULL;
    if (arrays != NULL) {
        state->make_error = PyObject_GetAttrString(errors, "make");
        state->describe = PyObject_GetAttrString(arrays, "describe");
        state->as_bits = PyObject_GetAttrString(arrays, "as_bits");
        state->refuse_scalar = PyObject_GetAttrString(arrays, "refuse_scalar");
        state->empty = PyObject_GetAttrString(arrays, "empty");
        state->current_stream = PyObject_GetAttrString(arrays, "current_stream");
    }
    Py_XDECREF(errors);
    Py_XDECREF(arrays);
    return PyErr_Occurred() == NULL;
}

static int module_exec(PyObject *module) {
    State *state = PyModule_GetState(module);
    if (!find_helpers(state)) return -1;
    state->dlpack = PyUnicode_InternFromString("__dlpack__");
    state->dlpack_device = PyUnicode_InternFromString("__dlpack_device__");
    state->kernel = (PyTypeObject *)PyType_FromModuleAndSpec(module, &kernel_spec, NULL);
    state->plan = (PyTypeObject *)PyType_FromModuleAndSpec(module, &plan_spec, NULL);
    state->plans = (PyTypeObject *)PyType_FromModuleAndSpec(module, &plans_spec, NULL);
    if (state->kernel == NULL || state->plan == NULL || state->plans == NULL) return -1;
    if (PyModule_AddStringConstant(module, "version", pipec_version()) != 0 ||
        PyModule_AddIntConstant(module, "plan_new_most", PLAN_NEW_MOST) != 0)
        return -1;
    return PyModule_AddObjectRef(module, "Kernel", (PyObject *)state->kernel);
}

static int module_traverse(PyObject *module, visitproc visit, void *arg) {
    State *state = PyModule_GetState(module);
    Py_VISIT(state->kernel);
    Py_VISIT(state->plan);
    Py_VISIT(state->plans);
    Py_VISIT(state->make_error);
    Py_VISIT(state->describe);
    Py_VISIT(state->as_bits);
    Py_VISIT(state->refuse_scalar);
    Py_VISIT(state->empty);
    Py_VISIT(state->current_stream);
    Py_VISIT(state->grad_enabled);
    for (int i = 0; i < ADAPTERS; i++) {
        Py_VISIT(state->adapters[i].type);
        Py_VISIT(state->adapters[i].is_negative);
        Py_VISIT(state->adapters[i].requires_grad);
    }
    return 0;
}

static int module_clear(PyObject *module) {
    State *state = PyModule_GetState(module);
    Py_CLEAR(state->kernel);
    Py_CLEAR(state->plan);
    Py_CLEAR(state->plans);
    Py_CLEAR(state->make_error);
    Py_CLEAR(state->describe);
    Py_CLEAR(state->as_bits);
    Py_CLEAR(state->refuse_scalar);
    Py_CLEAR(state->empty);
    Py_CLEAR(state->current_stream);
    Py_CLEAR(state->grad_enabled);
    Py_CLEAR(state->dlpack);
    Py_CLEAR(state->dlpack_device);
    for (int i = 0; i < ADAPTERS; i++) {
        Py_CLEAR(state->adapters[i].type);
        Py_CLEAR(state->adapters[i].is_negative);
        Py_CLEAR(state->adapters[i].requires_grad);
    }
    return 0;
}

static void module_free(void *module) { module_clear(module); }

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)module_exec}, {0, NULL}};

static struct PyModuleDef definition = {.m_base = PyModuleDef_HEAD_INIT,
                                        .m_name = "_pipec",
                                        .m_size = sizeof(State),
                                        .m_methods = methods,
                                        .m_slots = slots,
                                        .m_traverse = module_traverse,
                                        .m_clear = module_clear,
                                        .m_free = module_free};

PyMODINIT_FUNC PyInit__pipec(void);
PyMODINIT_FUNC PyInit__pipec(void) { return PyModuleDef_Init(&definition); }
