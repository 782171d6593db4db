/* python: waits for a GPU, with the few functions of the driver that this needs. */
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
           find(library, "cuCtxSynchronize", &driver->wait);
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
