/* python: the type of compiled kernels. pipec.Kernel is its subclass. */
#include "python/src/private.h"

#include <structmember.h>

/* Part of the limited API since Python 3.12; the same bit in 3.11 */
#ifndef Py_TPFLAGS_HAVE_VECTORCALL
#define Py_TPFLAGS_HAVE_VECTORCALL (1UL << 11)
#endif

/* ---- the type -------------------------------------------------------------------------------- */

static PyObject *kernel_vectorcall(PyObject *self, PyObject *const *args, size_t count,
                                   PyObject *names) {
    /* the highest bit says that the caller lends the place before the arguments */
    return call_kernel(self, args, count & (SIZE_MAX >> 1), names);
}

/* Of Python 3.11, where subclasses do not inherit the call above */
static PyObject *kernel_call(PyObject *self, PyObject *tuple, PyObject *dict) {
    PyObject *args[2 * PARAMETERS_MOST + EXTENTS_MOST], *name, *value, *names = NULL;
    Py_ssize_t count = PyTuple_Size(tuple), named = dict != NULL ? PyDict_Size(dict) : 0, at = 0;
    if (count + named > (Py_ssize_t)(sizeof args / sizeof *args))
        return PyErr_Format(PyExc_TypeError, "%s: %zd arguments are too many",
                            ((Kernel *)self)->unit->name, count + named);
    for (Py_ssize_t i = 0; i < count; i++) args[i] = PyTuple_GetItem(tuple, i);
    if (named > 0 && (names = PyTuple_New(named)) == NULL) return NULL;
    for (Py_ssize_t i = 0; named > 0 && PyDict_Next(dict, &at, &name, &value); i++) {
        PyTuple_SetItem(names, i, Py_NewRef(name));
        args[count + i] = value;
    }
    PyObject *result = call_kernel(self, args, (size_t)count, names);
    Py_XDECREF(names);
    return result;
}

PyObject *kernel_new(PyObject *module, PyTypeObject *type, Unit *unit) {
    allocfunc allocate = (allocfunc)PyType_GetSlot(type, Py_tp_alloc);
    Kernel *kernel = (Kernel *)(void *)allocate(type, 0);
    if (kernel == NULL) return NULL;
    kernel->call = kernel_vectorcall;
    kernel->module = Py_NewRef(module);
    kernel->state = PyModule_GetState(module);
    kernel->unit = unit;
    return (PyObject *)kernel;
}

/* The same kernel with the arguments of on() and emulated() */
static PyObject *kernel_launched(PyObject *self, PyObject *args) {
    const Kernel *from = (const Kernel *)self;
    PyObject *stream, *programmatic, *progress;
    int multiprocessors;
    double seconds;
    if (!PyArg_ParseTuple(args, "OiOdO", &stream, &multiprocessors, &programmatic, &seconds,
                          &progress))
        return NULL;
    int early = programmatic == Py_None ? 0 : PyObject_IsTrue(programmatic);
    if (early < 0) return NULL;
    void *pointer = stream != Py_None ? PyLong_AsVoidPtr(stream) : NULL;
    if (PyErr_Occurred() != NULL) return NULL;
    Kernel *kernel = (Kernel *)kernel_new(from->module, Py_TYPE(self), from->unit);
    if (kernel == NULL) return NULL;
    from->unit->users++;
    kernel->on_stream = stream != Py_None;
    kernel->stream = pointer;
    kernel->multiprocessors = multiprocessors;
    kernel->programmatic = early != 0;
    kernel->ordered = early == 0 && programmatic != Py_None;
    kernel->seconds = seconds;
    kernel->progress = Py_NewRef(progress);
    return (PyObject *)kernel;
}

static int kernel_traverse(PyObject *self, visitproc visit, void *arg) {
    Py_VISIT(Py_TYPE(self));
    Py_VISIT(((Kernel *)self)->module);
    Py_VISIT(((Kernel *)self)->progress);
    return 0;
}

static void kernel_free(PyObject *self) {
    PyTypeObject *type = Py_TYPE(self);
    freefunc release = (freefunc)PyType_GetSlot(type, Py_tp_free);
    PyObject_GC_UnTrack(self);
    unit_drop(((Kernel *)self)->unit);
    Py_XDECREF(((Kernel *)self)->module);
    Py_XDECREF(((Kernel *)self)->progress);
    release(self);
    Py_DECREF(type);
}

/* info(device): loads the kernel; what the library says of it */
static PyObject *kernel_info(PyObject *self, PyObject *args) {
    PipecKernelInfo info = {.size = sizeof info};
    int device;
    if (!PyArg_ParseTuple(args, "i", &device)) return NULL;
    PipecKernel *loaded = kernel_on((Kernel *)self, device);
    if (loaded == NULL) return NULL;
    pipec_kernel_info(loaded, &info);
    return Py_BuildValue(
        "{s:s,s:s,s:i,s:i,s:i,s:i,s:d,s:s,s:n,s:n,s:n}", "device", info.device, "target",
        info.target, "ordinal", info.ordinal, "multiprocessors", info.multiprocessors,
        "blocks_per_multiprocessor", info.blocks_per_multiprocessor, "registers", info.registers,
        "load_seconds", info.load_seconds, "loaded_by", info.loaded_by, "variants_loaded",
        (Py_ssize_t)info.variants_loaded, "variants_captured", (Py_ssize_t)info.variants_captured,
        "variants_most", (Py_ssize_t)info.variants_most);
}

static PyObject *locked_text(PyObject *self, const char *(*text_of)(PipecProgram *)) {
    Unit *unit = ((const Kernel *)self)->unit;
    const char *text;
    if (!unit_renew(unit)) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    PyThread_acquire_lock(unit->lock, WAIT_LOCK);
    text = text_of(unit->program);
    PyThread_release_lock(unit->lock);
    Py_END_ALLOW_THREADS;
    if (text != NULL) return PyUnicode_FromString(text);
    return PyErr_Format(PyExc_ValueError, "%s has no report: it was loaded without its source",
                        unit->name);
}

static PyObject *kernel_report(PyObject *self, PyObject *unused) {
    (void)unused;
    return locked_text(self, pipec_program_report);
}

static PyObject *kernel_manifest(PyObject *self, PyObject *unused) {
    (void)unused;
    return locked_text(self, pipec_program_manifest);
}

static PyObject *kernel_ptx(PyObject *self, PyObject *unused) {
    (void)unused;
    const Unit *unit = ((const Kernel *)self)->unit;
    const char *text = pipec_program_ptx(unit->program, NULL);
    if (text != NULL) return PyUnicode_FromString(text);
    return PyErr_Format(PyExc_ValueError, "%s has no PTX: it was loaded as a cubin", unit->name);
}

static PyObject *kernel_describe(PyObject *self, PyObject *unused) {
    (void)unused;
    return kernel_facts(((const Kernel *)self)->unit);
}

static PyMethodDef methods[] = {
    {"_choose", kernel_choose, METH_VARARGS, NULL},
    {"_describe", kernel_describe, METH_NOARGS, NULL},
    {"_info", kernel_info, METH_VARARGS, NULL},
    {"_launched", kernel_launched, METH_VARARGS, NULL},
    {"_manifest", kernel_manifest, METH_NOARGS, NULL},
    {"_prepare", kernel_prepare, METH_VARARGS, NULL},
    {"_ptx", kernel_ptx, METH_NOARGS, NULL},
    {"_record", (PyCFunction)(void (*)(void))call_record, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_report", kernel_report, METH_NOARGS, NULL},
    {"_run", kernel_run, METH_VARARGS, NULL},
    {"_tuned", kernel_tuned, METH_VARARGS, NULL},
    {"_values", (PyCFunction)(void (*)(void))call_values, METH_FASTCALL | METH_KEYWORDS, NULL},
    {"_verify", (PyCFunction)(void (*)(void))call_verify, METH_FASTCALL | METH_KEYWORDS, NULL},
    {NULL, NULL, 0, NULL}};

static PyMemberDef members[] = {
    {"__vectorcalloffset__", T_PYSSIZET, offsetof(Kernel, call), READONLY, NULL},
    {NULL, 0, 0, 0, NULL}};

static PyType_Slot slots[] = {{Py_tp_call, (void *)kernel_call},
                              {Py_tp_dealloc, (void *)kernel_free},
                              {Py_tp_traverse, (void *)kernel_traverse},
                              {Py_tp_methods, methods},
                              {Py_tp_members, members},
                              {0, NULL}};

PyType_Spec kernel_spec = {.name = "pipec._pipec.Kernel",
                           .basicsize = sizeof(Kernel),
                           .flags = Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC |
                                    Py_TPFLAGS_HAVE_VECTORCALL | Py_TPFLAGS_DISALLOW_INSTANTIATION,
                           .slots = slots};
