/* runtime: declarations of the CUDA driver's functions and types, so that neither building nor
 * running needs a toolkit; the structures' tags are those of cuda.h, which makes the types
 * compatible with the real ones in a test that includes both. */
#ifndef PIPEC_RUNTIME_DRIVER_H
#define PIPEC_RUNTIME_DRIVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef unsigned DriverError;             /* CUresult */
typedef unsigned long long DevicePointer; /* CUdeviceptr */
typedef struct CUctx_st *DriverContext;
typedef struct CUmod_st *DriverModule;
typedef struct CUfunc_st *DriverFunction;
typedef struct CUstream_st *DriverStream;
typedef struct CUgraph_st *DriverGraph;
typedef struct CUgraphExec_st *DriverGraphExec;
typedef struct CUevent_st *DriverEvent;
struct CUtensorMap_st;
struct CUlaunchConfig_st;

#define TENSOR_MAP_BYTES 128 /* size of a CUtensorMap, and its alignment */

/* CUlaunchAttribute; its value is a union of 64 bytes, of which the first ints are used */
typedef struct DriverLaunchAttribute {
    unsigned id, padding;
    int value[16];
} DriverLaunchAttribute;

typedef struct DriverLaunchConfig { /* CUlaunchConfig */
    unsigned grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes;
    DriverStream stream;
    DriverLaunchAttribute *attributes;
    unsigned attribute_count;
} DriverLaunchConfig;

typedef struct Driver {
    void *library;
#define DRIVER(field, function, symbol, ...) DriverError(*field) __VA_ARGS__;
#include "runtime/driver.def"
#undef DRIVER
} Driver;

/* Values of cuda.h's enumerations; names as there, without CUDA_ and CU_ */
enum {
    DRIVER_SUCCESS = 0,
    DRIVER_ERROR_INVALID_VALUE = 1,
    DRIVER_ERROR_OUT_OF_MEMORY = 2,
    DRIVER_ERROR_STUB_LIBRARY = 34,
    DRIVER_ERROR_CALL_REQUIRES_NEWER_DRIVER = 36,
    DRIVER_ERROR_NO_DEVICE = 100,
    DRIVER_ERROR_INVALID_DEVICE = 101,
    DRIVER_ERROR_INVALID_IMAGE = 200,
    DRIVER_ERROR_NO_BINARY_FOR_GPU = 209,
    DRIVER_ERROR_INVALID_PTX = 218,
    DRIVER_ERROR_JIT_COMPILER_NOT_FOUND = 221,
    DRIVER_ERROR_UNSUPPORTED_PTX_VERSION = 222,
    DRIVER_ERROR_JIT_COMPILATION_DISABLED = 223,
    DRIVER_ERROR_INVALID_SOURCE = 300,
    DRIVER_ERROR_NOT_FOUND = 500,
    DRIVER_ERROR_NOT_READY = 600,
    DRIVER_ERROR_ILLEGAL_ADDRESS = 700,
    DRIVER_ERROR_LAUNCH_OUT_OF_RESOURCES = 701,
    DRIVER_ERROR_LAUNCH_TIMEOUT = 702,
    DRIVER_ERROR_ASSERT = 710,
    DRIVER_ERROR_HARDWARE_STACK_ERROR = 714,
    DRIVER_ERROR_ILLEGAL_INSTRUCTION = 715,
    DRIVER_ERROR_MISALIGNED_ADDRESS = 716,
    DRIVER_ERROR_INVALID_ADDRESS_SPACE = 717,
    DRIVER_ERROR_INVALID_PC = 718,
    DRIVER_ERROR_LAUNCH_FAILED = 719,
    DRIVER_ERROR_TENSOR_MEMORY_LEAK = 721,
    DRIVER_ERROR_SYSTEM_DRIVER_MISMATCH = 803,
    DRIVER_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE = 804,
};

enum {
    DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT = 16,
    DEVICE_ATTRIBUTE_L2_CACHE_SIZE = 38,
    DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR = 75,
    DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR = 76,
    DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97,
    FUNC_ATTRIBUTE_NUM_REGS = 4,
    FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES = 8,
    JIT_INFO_LOG_BUFFER = 3,
    JIT_INFO_LOG_BUFFER_SIZE_BYTES = 4,
    JIT_ERROR_LOG_BUFFER = 5,
    JIT_ERROR_LOG_BUFFER_SIZE_BYTES = 6,
    JIT_LOG_VERBOSE = 12,
    JIT_GENERATE_LINE_INFO = 13,
    MEMHOSTALLOC_PORTABLE = 1,
    MEMHOSTALLOC_DEVICEMAP = 2,
    STREAM_NON_BLOCKING = 1,
    STREAM_CAPTURE_STATUS_NONE = 0,
    STREAM_CAPTURE_MODE_RELAXED = 2,
    EVENT_DEFAULT = 0,
    LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION = 4,
    LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION = 6,
    TENSOR_MAP_INTERLEAVE_NONE = 0,
    TENSOR_MAP_FLOAT_OOB_FILL_NONE = 0,
};

/* Opens libcuda.so.1, or the file that the environment variable PIPEC_LIBCUDA names (for tests).
 * On failure *missing is the symbol that the library lacks, or NULL if the library itself does
 * not load; dlerror says why. */
bool driver_open(Driver *driver, const char **missing);
void driver_close(Driver *driver);

/* "CUDA_ERROR_INVALID_PTX" */
const char *driver_error_name(const Driver *driver, DriverError error);
/* "a PTX JIT compilation failed" */
const char *driver_error_text(const Driver *driver, DriverError error);

#endif
