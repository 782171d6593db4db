/* runtime: loads the driver's library and fills a table of its functions. */
#include "runtime/driver.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

bool driver_open(Driver *driver, const char **missing) {
    memset(driver, 0, sizeof *driver);
    *missing = NULL;
    const char *file = getenv("PIPEC_LIBCUDA");
    driver->library =
        dlopen(file != NULL && file[0] != 0 ? file : "libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (driver->library == NULL) return false;
        /* POSIX lets a void pointer hold a function's address; ISO C has no cast for it, so it
         * is copied */
#define DRIVER(field, function, symbol, ...)                                                       \
    if (*missing == NULL) {                                                                        \
        void *address = dlsym(driver->library, symbol);                                            \
        if (address == NULL) *missing = symbol;                                                    \
        memcpy(&driver->field, &address, sizeof address);                                          \
    }
#include "runtime/driver.def"
#undef DRIVER
    if (*missing == NULL) return true;
    driver_close(driver);
    return false;
}

void driver_close(Driver *driver) {
    if (driver->library != NULL) dlclose(driver->library);
    driver->library = NULL;
}

const char *driver_error_name(const Driver *driver, DriverError error) {
    const char *name = NULL;
    return driver->error_name(error, &name) == DRIVER_SUCCESS && name != NULL ? name
                                                                              : "an unknown error";
}

const char *driver_error_text(const Driver *driver, DriverError error) {
    const char *text = NULL;
    return driver->error_text(error, &text) == DRIVER_SUCCESS && text != NULL
               ? text
               : "the driver gives no description";
}
