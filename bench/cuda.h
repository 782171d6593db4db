/* The driver functions that the benchmarks use, opened by dlopen; no CUDA toolkit is needed. */
#ifndef BENCH_CUDA_H
#define BENCH_CUDA_H

#include <stddef.h>
#include <stdint.h>

typedef uint64_t DevicePointer;

/* Values of CUdevice_attribute and CUresult (cuda.h) */
enum { CUDA_MULTIPROCESSORS = 16, CUDA_L2_BYTES = 38, CUDA_NOT_READY = 600 };

#define CUDA_CALLS(CALL)                                                                           \
    CALL(cuInit, "cuInit", (unsigned))                                                             \
    CALL(cuDriverGetVersion, "cuDriverGetVersion", (int *))                                        \
    CALL(cuGetErrorName, "cuGetErrorName", (int, const char **))                                   \
    CALL(cuDeviceGet, "cuDeviceGet", (int *, int))                                                 \
    CALL(cuDeviceGetName, "cuDeviceGetName", (char *, int, int))                                   \
    CALL(cuDeviceGetAttribute, "cuDeviceGetAttribute", (int *, int, int))                          \
    CALL(cuDeviceGetPCIBusId, "cuDeviceGetPCIBusId", (char *, int, int))                           \
    CALL(cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain", (void **, int))                     \
    CALL(cuCtxSetCurrent, "cuCtxSetCurrent", (void *))                                             \
    CALL(cuMemAlloc, "cuMemAlloc_v2", (DevicePointer *, size_t))                                   \
    CALL(cuMemFree, "cuMemFree_v2", (DevicePointer))                                               \
    CALL(cuMemsetD8Async, "cuMemsetD8Async", (DevicePointer, unsigned char, size_t, void *))       \
    CALL(cuMemcpyHtoD, "cuMemcpyHtoD_v2", (DevicePointer, const void *, size_t))                   \
    CALL(cuMemcpyDtoH, "cuMemcpyDtoH_v2", (void *, DevicePointer, size_t))                         \
    CALL(cuMemcpyDtoDAsync, "cuMemcpyDtoDAsync_v2",                                                \
         (DevicePointer, DevicePointer, size_t, void *))                                           \
    CALL(cuStreamCreate, "cuStreamCreate", (void **, unsigned))                                    \
    CALL(cuStreamSynchronize, "cuStreamSynchronize", (void *))                                     \
    CALL(cuEventCreate, "cuEventCreate", (void **, unsigned))                                      \
    CALL(cuEventRecord, "cuEventRecord", (void *, void *))                                         \
    CALL(cuEventQuery, "cuEventQuery", (void *))                                                   \
    CALL(cuEventSynchronize, "cuEventSynchronize", (void *))                                       \
    CALL(cuEventElapsedTime, "cuEventElapsedTime", (float *, void *, void *))                      \
    CALL(cuModuleLoadDataEx, "cuModuleLoadDataEx",                                                 \
         (void **, const void *, unsigned, unsigned *, void **))                                   \
    CALL(cuModuleGetFunction, "cuModuleGetFunction", (void **, void *, const char *))              \
    CALL(cuLaunchKernel, "cuLaunchKernel",                                                         \
         (void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *,    \
          void **, void **))                                                                       \
    CALL(cuStreamBeginCapture, "cuStreamBeginCapture_v2", (void *, int))                           \
    CALL(cuStreamEndCapture, "cuStreamEndCapture", (void *, void **))                              \
    CALL(cuGraphInstantiate, "cuGraphInstantiateWithFlags", (void **, void *, unsigned long long)) \
    CALL(cuGraphLaunch, "cuGraphLaunch", (void *, void *))                                         \
    CALL(cuGraphExecDestroy, "cuGraphExecDestroy", (void *))                                       \
    CALL(cuGraphDestroy, "cuGraphDestroy", (void *))

typedef struct Cuda {
#define CALL(name, symbol, parameters) int(*name) parameters;
    CUDA_CALLS(CALL)
#undef CALL
    char device[128]; /* its name */
    char bus[32];     /* its PCI bus id, for NVML */
    int multiprocessors, l2_bytes;
    int version; /* CUDA version of the driver: 13000 */
} Cuda;

const char *cuda_open(Cuda *cuda); /* NULL, or the reason why there is no driver or device */
void cuda_need(Cuda *cuda);        /* the same, but prints the reason and exits with 2 */

/* If `result` is an error, prints the failed call and exits with 2. */
void cuda_check(const Cuda *cuda, int result, const char *what);
const char *cuda_error(const Cuda *cuda, int result); /* CUDA_ERROR_.. */
/* Writes elements of `bytes` bytes each: MEASURE_NOISE values, again and again, from number `from`
 * on. */
void cuda_fill(const Cuda *cuda, DevicePointer to, int64_t elements, const void *noise,
               int64_t from, int bytes);

#endif
