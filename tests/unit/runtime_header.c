/* The declarations of runtime/driver.h compared with the real cuda.h, if it is found: types of
 * functions, names of symbols, values. */
#include "runtime/driver.h"

#include "launch/manifest.h"
#include "tests/unit/expect.h"

#if defined(__has_include)
#if __has_include(<cuda.h>)
#include <cuda.h>
#define HAVE_CUDA_H
#elif __has_include("/usr/local/cuda/include/cuda.h")
#include "/usr/local/cuda/include/cuda.h"
#define HAVE_CUDA_H
#endif
#endif

#ifdef HAVE_CUDA_H

#define TEXT(x)     #x
#define EXPANDED(x) TEXT(x)

/* The functions' types must be compatible, otherwise this does not compile. cuda.h's macros
 * append the versions to names. */
#define DRIVER(field, function, symbol, ...)                                                       \
    _Static_assert(                                                                                \
        __builtin_types_compatible_p(__typeof__(((Driver *)0)->field), __typeof__(&function)),     \
        symbol);
#include "runtime/driver.def"
#undef DRIVER

/* CUDA 12.8 added a second version with the same type; drivers of 12.0 have only the first. */
static bool is_older_version(const char *ours, const char *theirs) {
    return strcmp(ours, "cuEventElapsedTime") == 0 && strcmp(theirs, "cuEventElapsedTime_v2") == 0;
}

static void symbols(void) {
#define DRIVER(field, function, symbol, ...)                                                       \
    if (!EXPECT(strcmp(EXPANDED(function), symbol) == 0 ||                                         \
                is_older_version(symbol, EXPANDED(function))))                                     \
        fprintf(stderr, "cuda.h has %s\n", EXPANDED(function));
#include "runtime/driver.def"
#undef DRIVER
}

#define SAME(name) EXPECT((int)DRIVER_##name == (int)CUDA_##name)

static void error_values(void) {
    SAME(SUCCESS);
    SAME(ERROR_INVALID_VALUE);
    SAME(ERROR_OUT_OF_MEMORY);
    SAME(ERROR_STUB_LIBRARY);
    SAME(ERROR_CALL_REQUIRES_NEWER_DRIVER);
    SAME(ERROR_NO_DEVICE);
    SAME(ERROR_INVALID_DEVICE);
    SAME(ERROR_INVALID_IMAGE);
    SAME(ERROR_NO_BINARY_FOR_GPU);
    SAME(ERROR_INVALID_PTX);
    SAME(ERROR_JIT_COMPILER_NOT_FOUND);
    SAME(ERROR_UNSUPPORTED_PTX_VERSION);
    SAME(ERROR_JIT_COMPILATION_DISABLED);
    SAME(ERROR_INVALID_SOURCE);
    SAME(ERROR_NOT_FOUND);
    SAME(ERROR_NOT_READY);
    SAME(ERROR_ILLEGAL_ADDRESS);
    SAME(ERROR_LAUNCH_OUT_OF_RESOURCES);
    SAME(ERROR_LAUNCH_TIMEOUT);
    SAME(ERROR_ASSERT);
    SAME(ERROR_HARDWARE_STACK_ERROR);
    SAME(ERROR_ILLEGAL_INSTRUCTION);
    SAME(ERROR_MISALIGNED_ADDRESS);
    SAME(ERROR_INVALID_ADDRESS_SPACE);
    SAME(ERROR_INVALID_PC);
    SAME(ERROR_LAUNCH_FAILED);
    SAME(ERROR_SYSTEM_DRIVER_MISMATCH);
    SAME(ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE);
#if CUDA_VERSION >= 12080
    SAME(ERROR_TENSOR_MEMORY_LEAK);
#endif
}

#undef SAME
#define SAME(name) EXPECT((int)(name) == (int)(CU_##name))

static void other_values(void) {
    SAME(DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
    SAME(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
    SAME(DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
    SAME(DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
    SAME(FUNC_ATTRIBUTE_NUM_REGS);
    SAME(FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
    SAME(JIT_INFO_LOG_BUFFER);
    SAME(JIT_INFO_LOG_BUFFER_SIZE_BYTES);
    SAME(JIT_ERROR_LOG_BUFFER);
    SAME(JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
    SAME(JIT_LOG_VERBOSE);
    SAME(JIT_GENERATE_LINE_INFO);
    SAME(MEMHOSTALLOC_PORTABLE);
    SAME(MEMHOSTALLOC_DEVICEMAP);
    SAME(STREAM_NON_BLOCKING);
    SAME(STREAM_CAPTURE_STATUS_NONE);
    SAME(STREAM_CAPTURE_MODE_RELAXED);
    SAME(EVENT_DEFAULT);
    SAME(TENSOR_MAP_INTERLEAVE_NONE);
    SAME(TENSOR_MAP_FLOAT_OOB_FILL_NONE);
    EXPECT(sizeof(CUtensorMap) == TENSOR_MAP_BYTES && _Alignof(CUtensorMap) <= TENSOR_MAP_BYTES);
}

#undef SAME
#define SAME(ours, theirs)                                                                         \
    EXPECT(offsetof(DriverLaunchConfig, ours) == offsetof(CUlaunchConfig, theirs) &&               \
           sizeof(((DriverLaunchConfig *)0)->ours) == sizeof(((CUlaunchConfig *)0)->theirs))

static void launch_config(void) {
    SAME(grid_x, gridDimX);
    SAME(grid_y, gridDimY);
    SAME(grid_z, gridDimZ);
    SAME(block_x, blockDimX);
    SAME(block_y, blockDimY);
    SAME(block_z, blockDimZ);
    SAME(shared_bytes, sharedMemBytes);
    SAME(stream, hStream);
    SAME(attributes, attrs);
    SAME(attribute_count, numAttrs);
    EXPECT(sizeof(DriverLaunchConfig) == sizeof(CUlaunchConfig));
    EXPECT(sizeof(DriverLaunchAttribute) == sizeof(CUlaunchAttribute));
    EXPECT(offsetof(DriverLaunchAttribute, id) == offsetof(CUlaunchAttribute, id));
    EXPECT(offsetof(DriverLaunchAttribute, value) == offsetof(CUlaunchAttribute, value));
    EXPECT((int)LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION == (int)CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
    EXPECT((int)LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION ==
           (int)CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
}

/* The map column of util/elements.def, and the swizzles and promotions of launch/manifest.h */
static void tensor_map_values(void) {
    static const int types[E_COUNT] = {[E_F32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                       [E_TF32] = CU_TENSOR_MAP_DATA_TYPE_FLOAT32,
                                       [E_F16] = CU_TENSOR_MAP_DATA_TYPE_FLOAT16,
                                       [E_BF16] = CU_TENSOR_MAP_DATA_TYPE_BFLOAT16,
                                       [E_E4M3] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                       [E_E5M2] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                       [E_I8] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                       [E_U8] = CU_TENSOR_MAP_DATA_TYPE_UINT8,
                                       [E_I32] = CU_TENSOR_MAP_DATA_TYPE_INT32,
                                       [E_U32] = CU_TENSOR_MAP_DATA_TYPE_UINT32,
                                       [E_I64] = CU_TENSOR_MAP_DATA_TYPE_INT64,
                                       [E_U64] = CU_TENSOR_MAP_DATA_TYPE_UINT64,
                                       [E_BOOL] = -1};
    for (int type = 0; type < E_COUNT; type++) EXPECT(element_rows[type].map == types[type]);
    EXPECT((int)SWIZZLE_NONE == (int)CU_TENSOR_MAP_SWIZZLE_NONE &&
           (int)SWIZZLE_32 == (int)CU_TENSOR_MAP_SWIZZLE_32B);
    EXPECT((int)SWIZZLE_64 == (int)CU_TENSOR_MAP_SWIZZLE_64B &&
           (int)SWIZZLE_128 == (int)CU_TENSOR_MAP_SWIZZLE_128B);
    EXPECT((int)PROMOTION_NONE == (int)CU_TENSOR_MAP_L2_PROMOTION_NONE &&
           (int)PROMOTION_128 == (int)CU_TENSOR_MAP_L2_PROMOTION_L2_128B &&
           (int)PROMOTION_256 == (int)CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
}

int main(void) {
    symbols();
    error_values();
    other_values();
    launch_config();
    tensor_map_values();
    return expect_failures();
}

#else

int main(void) {
    fprintf(stderr, "SKIPPED: tests/unit/runtime_header.c found no cuda.h to compare with\n");
    return expect_failures();
}

#endif
