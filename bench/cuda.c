/* Opens libcuda and makes the first device's primary context current, the one that libpipec
 * uses. */
#include "bench/cuda.h"
#include "bench/measure.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

const char *cuda_open(Cuda *cuda) {
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (library == NULL) return "libcuda.so.1 does not load";
#define CALL(name, symbol, parameters)                                                             \
    *(void **)&cuda->name = dlsym(library, symbol);                                                \
    if (cuda->name == NULL) return "the driver has no " symbol;
    CUDA_CALLS(CALL)
#undef CALL
    int device;
    void *context;
    if (cuda->cuInit(0) != 0) return "cuInit fails, so this process sees no GPU";
    if (cuda->cuDeviceGet(&device, 0) != 0) return "there is no CUDA device";
    if (cuda->cuDeviceGetName(cuda->device, sizeof cuda->device, device) != 0 ||
        cuda->cuDeviceGetPCIBusId(cuda->bus, sizeof cuda->bus, device) != 0 ||
        cuda->cuDeviceGetAttribute(&cuda->multiprocessors, CUDA_MULTIPROCESSORS, device) != 0 ||
        cuda->cuDeviceGetAttribute(&cuda->l2_bytes, CUDA_L2_BYTES, device) != 0 ||
        cuda->cuDriverGetVersion(&cuda->version) != 0)
        return "the attributes of the device cannot be read";
    if (cuda->cuDevicePrimaryCtxRetain(&context, device) != 0 ||
        cuda->cuCtxSetCurrent(context) != 0)
        return "the primary context cannot be made current";
    return NULL;
}

void cuda_need(Cuda *cuda) {
    const char *lack = cuda_open(cuda);
    if (lack == NULL) return;
    fprintf(stderr, "bench: needs a GPU: %s\n", lack);
    exit(2);
}

const char *cuda_error(const Cuda *cuda, int result) {
    const char *name = NULL;
    if (cuda->cuGetErrorName(result, &name) != 0 || name == NULL) return "an unknown error";
    return name;
}

void cuda_check(const Cuda *cuda, int result, const char *what) {
    if (result == 0) return;
    fflush(stdout);
    fprintf(stderr, "bench: %s: %s (%d)\n", what, cuda_error(cuda, result), result);
    exit(2);
}

void cuda_fill(const Cuda *cuda, DevicePointer to, int64_t elements, const void *noise,
               int64_t from, int bytes) {
    for (int64_t done = 0, count; done < elements; done += count, from = 0) {
        count = MEASURE_NOISE - from < elements - done ? MEASURE_NOISE - from : elements - done;
        cuda_check(cuda,
                   cuda->cuMemcpyHtoD(to + (uint64_t)(done * bytes),
                                      (const char *)noise + from * bytes, (size_t)(count * bytes)),
                   "a copy to the device");
    }
}
