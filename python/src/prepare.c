/* python: variants are loaded before the calls that need them. */
#include "python/src/private.h"

typedef struct Preparing {
    PipecRunOptions *shapes;
    size_t count;
    PyObject *progress; /* NULL: none */
    PyThreadState *state;
    bool raised;
} Preparing;

/* In the thread that called, which has given up the GIL; also sees signals */
static bool report(void *data, size_t done, size_t of) {
    Preparing *it = data;
    PyEval_RestoreThread(it->state);
    PyObject *result = Py_None;
    if (it->progress != NULL)
        result = PyObject_CallFunction(it->progress, "nn", (Py_ssize_t)done, (Py_ssize_t)of);
    it->raised = it->raised || result == NULL || PyErr_CheckSignals() != 0;
    if (it->progress != NULL) Py_XDECREF(result);
    it->state = PyEval_SaveThread();
    return !it->raised;
}

/* A tuple of tuples of texts */
static bool read_shapes(PyObject *tuple, Preparing *it) {
    it->count = (size_t)PyTuple_Size(tuple);
    it->shapes = PyMem_Calloc(it->count + 1, sizeof *it->shapes);
    if (it->shapes == NULL) return PyErr_NoMemory() != NULL;
    for (size_t i = 0; i < it->count; i++) {
        PipecRunOptions *shape = &it->shapes[i];
        const char **texts = NULL;
        shape->size = sizeof *shape;
        bool fine = read_texts(PyTuple_GetItem(tuple, (Py_ssize_t)i), &texts, &shape->value_count);
        shape->values = texts;
        if (!fine) return false;
    }
    return true;
}

static PyObject *prepare(Kernel *kernel, PipecKernel *loaded, Preparing *it, int threads) {
    PipecPrepareOptions options = {.size = sizeof options,
                                   .shapes = it->shapes,
                                   .shape_size = sizeof *it->shapes,
                                   .shape_count = it->count,
                                   .threads = threads,
                                   .progress = report,
                                   .progress_data = it};
    PipecDiagnostics *said = NULL;
    PyObject *text = NULL;
    it->state = PyEval_SaveThread();
    PipecStatus status = pipec_kernel_prepare(loaded, &options, &said);
    PyEval_RestoreThread(it->state);
    if (!it->raised && status != PIPEC_FINE)
        error_raise(kernel->state, status, said);
    else if (!it->raised)
        text =
            said != NULL ? PyUnicode_FromString(pipec_diagnostics_text(said)) : Py_NewRef(Py_None);
    pipec_diagnostics_free(said);
    return text;
}

/* _prepare(device, shapes as tuples of texts, threads, progress(done, of) or None) -> a warning, or
 * None */
PyObject *kernel_prepare(PyObject *self, PyObject *args) {
    Kernel *kernel = (Kernel *)self;
    Preparing it = {0};
    PyObject *shapes, *text = NULL;
    int device, threads;
    if (!PyArg_ParseTuple(args, "iOiO", &device, &shapes, &threads, &it.progress)) return NULL;
    if (it.progress == Py_None) it.progress = NULL;
    PipecKernel *loaded = kernel_on(kernel, device);
    if (loaded != NULL && read_shapes(shapes, &it)) text = prepare(kernel, loaded, &it, threads);
    for (size_t i = 0; it.shapes != NULL && i < it.count; i++)
        PyMem_Free((void *)(uintptr_t)it.shapes[i].values);
    PyMem_Free(it.shapes);
    return text;
}
