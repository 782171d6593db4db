/* Opens devices: no driver, no device, an older and a newer one, an old driver. */
#include "tests/unit/standin.h"

static Scratch scratch;
static const Standin *standin;

static void refused(int ordinal, int ptx_minor, const char *words, RuntimeLack wanted,
                    const char *text) {
    RuntimeLack lack = RUNTIME_FINE;
    const char *why = NULL;
    standin_says(words);
    Runtime *runtime = runtime_open(scratch.arena, ordinal, "sm_90a", 8, ptx_minor, &lack, &why);
    if (!EXPECT(runtime == NULL && lack == wanted && why != NULL && strstr(why, text) != NULL))
        fprintf(stderr, "%s: lack %d, \"%s\"\n", words, (int)lack, why != NULL ? why : "");
    runtime_close(runtime);
    EXPECT(standin_is_clean(standin));
}

static void opens(int ordinal, int ptx_minor, const char *target, const char *words,
                  const char *name) {
    RuntimeLack lack = RUNTIME_FAILED;
    const char *why = NULL;
    standin_says(words);
    Runtime *runtime = runtime_open(scratch.arena, ordinal, target, 8, ptx_minor, &lack, &why);
    if (EXPECT(runtime != NULL && lack == RUNTIME_FINE))
        EXPECT(strcmp(runtime_device_name(runtime), name) == 0);
    EXPECT(standin->pushed == 0); /* the caller's context is unchanged */
    runtime_close(runtime);
    EXPECT(standin_is_clean(standin));
}

static void devices(void) {
    refused(-1, 0, "init=100", RUNTIME_NO_DEVICE,
            "CUDA_ERROR_NO_DEVICE (no CUDA-capable device is detected)");
    refused(-1, 0, "init=34", RUNTIME_NO_DRIVER, "stub library");
    refused(-1, 0, "init=803", RUNTIME_OLD_DRIVER, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH");
    refused(-1, 0, "init=998", RUNTIME_FAILED, "an unknown error");
    refused(-1, 0, "devices=0", RUNTIME_NO_DEVICE, "finds no GPU");
    refused(-1, 0, "capability=8.0", RUNTIME_WRONG_DEVICE,
            "no device can run sm_90a, which needs compute capability exactly 9.0: device 0 is "
            "Stand-in (8.0)");
    refused(-1, 0, "capability=12.0,devices=2", RUNTIME_WRONG_DEVICE,
            "device 0 is Stand-in (12.0), device 1 is Stand-in 1 (12.0)");
    refused(1, 0, "capability=10.0,devices=2", RUNTIME_WRONG_DEVICE, "device 1 cannot run sm_90a");
    refused(7, 0, "devices=2", RUNTIME_WRONG_DEVICE,
            "device 7 does not exist: device 0 is Stand-in (9.0), device 1");
    opens(-1, 0, "sm_90a", "", "Stand-in");
    opens(1, 0, "sm_90a", "devices=2", "Stand-in 1");
    opens(-1, 0, "sm_80", "capability=12.0", "Stand-in");
    opens(-1, 0, "sm_100f", "capability=10.3", "Stand-in");
}

/* PTX without a suffix is for all later devices; with one, for one capability. A cubin is for the
 * devices of its generation. */
static void targets(void) {
    static const struct {
        const char *target, *capability;
        bool runs, takes_cubin;
    } rows[] = {
        {"sm_80", "8.0", true, true},      {"sm_80", "8.6", true, true},
        {"sm_80", "9.0", true, false},     {"sm_80", "12.0", true, false},
        {"sm_80", "7.5", false, false},    {"sm_89", "8.9", true, true},
        {"sm_89", "8.6", false, false},    {"sm_89", "10.0", true, false},
        {"sm_90", "9.0", true, true},      {"sm_90", "8.9", false, false},
        {"sm_90", "10.3", true, false},    {"sm_90a", "9.0", true, true},
        {"sm_90a", "10.0", false, false},  {"sm_100a", "10.0", true, true},
        {"sm_100a", "10.3", false, false}, {"sm_100a", "9.0", false, false},
        {"sm_103a", "10.3", true, true},   {"sm_103a", "10.0", false, false},
        {"sm_120a", "12.0", true, true},   {"sm_120a", "12.1", false, false},
        {"sm_120a", "10.0", false, false},
    };
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        RuntimeLack lack = RUNTIME_FINE;
        const char *why = NULL;
        DeviceFacts facts;
        standin_says(arena_printf(scratch.arena, "capability=%s", rows[i].capability));
        Runtime *runtime = runtime_open(scratch.arena, -1, rows[i].target, 8, 0, &lack, &why);
        bool right = (runtime != NULL) == rows[i].runs;
        right &= runtime_find(scratch.arena, -1, rows[i].target, 8, 0, &facts) == rows[i].runs;
        if (runtime != NULL)
            right &= runtime_takes_cubin(runtime, rows[i].target) == rows[i].takes_cubin;
        else
            right &= lack == RUNTIME_WRONG_DEVICE;
        if (!EXPECT(right)) fprintf(stderr, "%s on %s\n", rows[i].target, rows[i].capability);
        runtime_close(runtime);
    }
}

static void versions(void) {
    refused(-1, 0, "driver=11080", RUNTIME_OLD_DRIVER,
            "too old for PTX 8.0: this needs CUDA 12.0, but the driver has 11.8");
    refused(-1, 3, "driver=12020", RUNTIME_OLD_DRIVER,
            "this needs CUDA 12.3, but the driver has 12.2");
    refused(-1, 6, "driver=12060", RUNTIME_OLD_DRIVER,
            "this needs CUDA 12.7, but the driver has 12.6");
    opens(-1, 5, "sm_90a", "driver=12060", "Stand-in");
    opens(-1, 0, "sm_90a", "driver=12000", "Stand-in");
    /* treated as the newest known version */
    opens(-1, 99, "sm_90a", "driver=13000", "Stand-in");
}

static void failures(void) {
    refused(-1, 0, "fail=cuDevicePrimaryCtxRetain", RUNTIME_FAILED, "cuDevicePrimaryCtxRetain");
    refused(-1, 0, "fail=cuDeviceGetCount", RUNTIME_FAILED, "cuDeviceGetCount");
    refused(-1, 0, "fail=cuDeviceGetAttribute", RUNTIME_FAILED, "the query of a device");
    refused(-1, 0, "fail=cuDriverGetVersion", RUNTIME_FAILED, "cuDriverGetVersion");
}

/* A library that does not exist, and one that is not a driver */
static void libraries(void) {
    const char *was =
        arena_copy(scratch.arena, getenv("PIPEC_LIBCUDA"), strlen(getenv("PIPEC_LIBCUDA")));
    setenv("PIPEC_LIBCUDA", "/nowhere/libcuda.so.1", 1);
    refused(-1, 0, "", RUNTIME_NO_DRIVER, "library of the NVIDIA driver: /nowhere/libcuda.so.1");
    setenv("PIPEC_LIBCUDA", "libm.so.6", 1);
    refused(-1, 0, "", RUNTIME_OLD_DRIVER, "it has no cuGetErrorName");
    setenv("PIPEC_LIBCUDA", was, 1);
}

int main(void) {
    scratch = scratch_new();
    standin = standin_open();
    devices();
    targets();
    versions();
    failures();
    libraries();
    scratch_free(&scratch);
    return expect_failures();
}
