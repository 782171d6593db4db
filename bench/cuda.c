/* Opens libcuda and makes the first device's primary context current: the one that libpipec launches in. */
#include "bench/cuda.h"

#include <dlfcn.h>

const char *cuda_open(Cuda *cuda) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) return "libcuda.so.1 does not load";
#define CALL(name, symbol, parameters)                   \
    *(void **)&cuda->name = dlsym(library, symbol);      \
    if (cuda->name == NULL) return "the driver has no " symbol;
    CUDA_CALLS(CALL)
#undef CALL
    int device;
    void *context;
    if (cuda->cuInit(0) != 0) return "cuInit fails";
    if (cuda->cuDeviceGet(&device, 0) != 0) return "there is no device";
    if (cuda->cuDevicePrimaryCtxRetain(&context, device) != 0 || cuda->cuCtxSetCurrent(context) != 0) return "no context";
    return NULL;
}
