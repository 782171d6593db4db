/* The driver entry points that the benchmarks use, opened by dlopen; nothing else of CUDA is needed. */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t DevicePointer;

#define CUDA_CALLS(CALL)                                                        \
    CALL(cuInit, "cuInit", (unsigned))                                          \
    CALL(cuDeviceGet, "cuDeviceGet", (int *, int))                              \
    CALL(cuDeviceGetName, "cuDeviceGetName", (char *, int, int))                \
    CALL(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))  \
    CALL(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                          \
    CALL(cuMemAlloc, "cuMemAlloc_v2", (DevicePointer *, size_t))                \
    CALL(cuMemFree, "cuMemFree_v2", (DevicePointer))                            \
    CALL(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (DevicePointer, const void *, size_t)) \
    CALL(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *, DevicePointer, size_t))      \
    CALL(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2", (DevicePointer, DevicePointer, size_t, void *)) \
    CALL(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                 \
    CALL(cuStreamSynchronize, "cuStreamSynchronize", (void *))                  \
    CALL(cuEventCreate, "cuEventCreate", (void **, unsigned))                   \
    CALL(cuEventRecord, "cuEventRecord", (void *, void *))                      \
    CALL(cuEventSynchronize, "cuEventSynchronize", (void *))                    \
    CALL(cuEventElapsedTime, "cuEventElapsedTime", (float *, void *, void *))

typedef struct Cuda {
#define CALL(name, symbol, parameters) int(*name) parameters;
    CUDA_CALLS(CALL)
#undef CALL
} Cuda;

const char *cuda_open(Cuda *cuda); /* NULL, or why there is no driver */

#endif
