/* python: processes that are forked. Threads of the parent do not exist in the child, what they
 * held stays held, and a CUDA context cannot be used: the child learns that it is one, and each
 * unit is renewed before its first use. */
#include "python/src/private.h"

/* In the child. The package passes it to os.register_at_fork, which also counts for os.fork in a
 * handler of a signal, and for multiprocessing. */
PyObject *forked(PyObject *module, PyObject *unused) {
    (void)unused;
    State *state = PyModule_GetState(module);
    state->forks++;
    state->lost_driver = state->uses_driver;
    return Py_NewRef(Py_None);
}

bool driver_use(State *state, const char *name) {
    if (state->lost_driver) {
        PyErr_Format(PyExc_RuntimeError,
                     "%s: this process was forked from one that has used a GPU, so it cannot use "
                     "one: start it by multiprocessing.get_context(\"spawn\"), or first use the "
                     "GPU after the fork",
                     name);
        return false;
    }
    state->uses_driver = true;
    return true;
}
