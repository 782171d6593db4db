/* python: waits for a GPU, and asks for its clocks, with the few functions of the driver that this
 * needs. */
#include "python/src/private.h"

#include <dlfcn.h>
#include <stdlib.h>

typedef struct Driver {
    int (*device_get)(int *device, int ordinal);
    int (*retain)(void **context, int device);
    int (*release)(int device);
    int (*push)(void *context);
    int (*pop)(void **context);
    int (*wait)(void);
    int (*attribute)(int *value, int attribute, int device);
} Driver;

static bool find(void *library, const char *name, void *function) {
    void *found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

/* The driver is open already, by the library */
static bool open_driver(Driver *driver) {
    const char *name = getenv("PIPEC_LIBCUDA");
    void *library = dlopen(name != NULL ? name : "libcuda.so.1", RTLD_NOW);
    return library != NULL && find(library, "cuDeviceGet", &driver->device_get) &&
           find(library, "cuDevicePrimaryCtxRetain", &driver->retain) &&
           find(library, "cuDevicePrimaryCtxRelease_v2", &driver->release) &&
           find(library, "cuCtxPushCurrent_v2", &driver->push) &&
           find(library, "cuCtxPopCurrent_v2", &driver->pop) &&
           find(library, "cuCtxSynchronize", &driver->wait) &&
           find(library, "cuDeviceGetAttribute", &driver->attribute);
}

int device_wait(int ordinal) {
    Driver driver;
    int device, error;
    void *context;
    if (!open_driver(&driver)) return -1;
    if ((error = driver.device_get(&device, ordinal)) != 0) return error;
    if ((error = driver.retain(&context, device)) != 0) return error;
    if ((error = driver.push(context)) == 0) {
        error = driver.wait();
        driver.pop(&context);
    }
    driver.release(device);
    return error;
}

static PyObject *failed(int error) {
    return PyErr_Format(PyExc_RuntimeError, "the driver failed with error %d", error);
}

/* wait(device) */
PyObject *module_wait(PyObject *module, PyObject *argument) {
    long ordinal = PyLong_AsLong(argument);
    int error;
    (void)module;
    if (PyErr_Occurred() != NULL) return NULL;
    Py_BEGIN_ALLOW_THREADS;
    error = device_wait((int)ordinal);
    Py_END_ALLOW_THREADS;
    return error == 0 ? Py_NewRef(Py_None) : failed(error);
}

/* rates(device) -> (multiprocessors, their highest clock and that of the memory in kHz, bits of the
 * memory's bus) */
PyObject *module_rates(PyObject *module, PyObject *argument) {
    static const int attributes[] = {16, 13, 36, 37}; /* CU_DEVICE_ATTRIBUTE_.. */
    int device, error, values[4] = {0};
    long ordinal = PyLong_AsLong(argument);
    Driver driver;
    (void)module;
    if (PyErr_Occurred() != NULL) return NULL;
    if (!open_driver(&driver)) return failed(-1);
    if ((error = driver.device_get(&device, (int)ordinal)) != 0) return failed(error);
    for (int i = 0; i < 4; i++)
        if ((error = driver.attribute(&values[i], attributes[i], device)) != 0)
            return failed(error);
    return Py_BuildValue("(iiii)", values[0], values[1], values[2], values[3]);
}
