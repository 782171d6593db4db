/* A whole run on the stand-in driver: parameters, results, and each failure, after which nothing
 * is left allocated. */
#include "tests/unit/standin.h"

typedef struct Bench {
    Scratch scratch;
    Standin *standin;
    Manifest *manifest;
    Launch *launch;
    RunResult result;
} Bench;

static Argument whole(const char *name, int64_t value) {
    return (Argument){.name = name,
                      .kind = ARGUMENT_NUMBER,
                      .value = {.number = (double)value, .integer = value, .is_integer = true}};
}

static void prepare(Bench *bench, int64_t n) {
    const Argument arguments[] = {whole("N", n), whole("M", 3), whole("a", 2), whole("n", 7)};
    const LaunchOptions options = {.seed = 1, .watchdog_ns = 5000000000};
    launch_free(bench->launch);
    bench->launch = launch_prepare(bench->scratch.arena, bench->manifest, "ptx", 3, arguments,
                                   COUNT_OF(arguments), &options, bench->scratch.diags);
    EXPECT(bench->launch != NULL);
}

static RunStatus run(Bench *bench, const char *words, int timed) {
    RuntimeLack lack;
    const char *why;
    standin_says(words);
    Runtime *runtime = runtime_open(bench->scratch.arena, -1, "sm_90a", 8, 0, &lack, &why);
    if (!EXPECT(runtime != NULL)) return RUN_UNAVAILABLE;
    bench->standin->launches = bench->standin->encoded = 0;
    const RuntimeOptions options = {timed};
    RunStatus status = runtime_run(bench->scratch.arena, runtime, bench->launch, &options,
                                   &bench->result, bench->scratch.diags);
    EXPECT(status == bench->result.status && strcmp(bench->result.device, "Stand-in") == 0);
    runtime_close(runtime);
    EXPECT(standin_is_clean(bench->standin));
    return status;
}

/* ---- successful runs ------------------------------------------------------------------------- */

/* Y = a * X + Y; the parameters are those of the sample: map of X, Y, Z, N, a, n, watchdog */
static void axpy(void **parameters, unsigned blocks) {
    uint64_t x, y;
    uint32_t count;
    float a;
    (void)blocks;
    memcpy(&x, parameters[0], 8), memcpy(&y, parameters[1], 8), memcpy(&count, parameters[3], 4),
        memcpy(&a, parameters[4], 4);
    const float *from = (const float *)(uintptr_t)x;
    float *to = (float *)(uintptr_t)y;
    for (uint32_t i = 0; i < count; i++) to[i] += a * from[i];
}

static void check_parameters(void **parameters, unsigned blocks) {
    int32_t n;
    uint64_t watchdog, limit, z;
    (void)blocks;
    memcpy(&n, parameters[5], 4), memcpy(&watchdog, parameters[6], 8), memcpy(&z, parameters[2], 8);
    memcpy(&limit, (const void *)(uintptr_t)watchdog, 8);
    EXPECT(n == 7 && limit == 5000000000 && z % 256 == 0);
    const unsigned char *poison = (const unsigned char *)(uintptr_t)z;
    for (int i = 0; i < 12; i++) EXPECT(poison[i] == 0xA5);
    EXPECT(poison[-1] == GUARD_BYTE && poison[12] == GUARD_BYTE && poison[12 + 4095] == GUARD_BYTE);
}

static void works(Bench *bench, int timed) {
    prepare(bench, 5000);
    Array x, y;
    if (!EXPECT(array_copy(&x, &bench->launch->arrays[SAMPLE_X]) &&
                array_copy(&y, &bench->launch->arrays[SAMPLE_Y])))
        return;
    bench->standin->kernel = axpy;
    EXPECT(run(bench, "", timed) == RUN_DONE);
    EXPECT_CLEAN(&bench->scratch);
    const float *got = (const float *)(const void *)bench->launch->arrays[SAMPLE_Y].data;
    const float *from = (const float *)(const void *)x.data,
                *old = (const float *)(const void *)y.data;
    for (int i = 0; i < 5000; i++) /* of the first launch, independent of the timed ones */
        EXPECT(got[i] == old[i] + 2 * from[i]);
    EXPECT(launch_guards(bench->launch, bench->scratch.diags));
    /* In the stand-in launch i takes i milliseconds */
    EXPECT(bench->standin->launches == 1 + timed && bench->standin->encoded == 1);
    double wanted = timed == 0 ? 1e-3 : timed == 3 ? 3e-3 : 3.5e-3;
    EXPECT(bench->result.timed == (timed == 0 ? 1 : timed) &&
           bench->result.seconds > wanted * 0.999 && bench->result.seconds < wanted * 1.001);
    EXPECT(bench->result.blocks == 2 && bench->result.resident == 4 &&
           bench->result.load_seconds >= 0);
    EXPECT(bench->standin->grid == 2 && bench->standin->block == 160 &&
           bench->standin->shared_bytes == 132096);
    array_free(&x), array_free(&y);
}

static void grids(Bench *bench) {
    prepare(bench, 100 * 4096);
    /* persistent: the resident blocks */
    EXPECT(run(bench, "", 0) == RUN_DONE && bench->standin->grid == 4);
    bench->manifest->persistent = false;
    EXPECT(run(bench, "", 0) == RUN_DONE && bench->standin->grid == 100);
    bench->manifest->persistent = true;
    VEC(ManifestPrecondition) none = {0};
    size_t preconditions = bench->manifest->preconditions.count;
    bench->manifest->preconditions.count = none.count;
    prepare(bench, 0);
    /* no tile: one block, and extents of 1 */
    EXPECT(run(bench, "", 2) == RUN_DONE && bench->standin->grid == 1);
    bench->manifest->preconditions.count = preconditions;
    EXPECT(bench->standin->map.extents[0] == 1 && bench->standin->map.rank == 1);
    EXPECT_CLEAN(&bench->scratch);
}

static void matrices(Bench *bench) {
    static const FormulaStep m[] = {{F_SYMBOL, SAMPLE_M}}, eight[] = {{F_CONST, 8}};
    FormulaStep pitch[] = {{F_CONST, 16}};
    ManifestMap *map = &bench->manifest->maps.items[0], old = *map;
    *map = (ManifestMap){.parameter = SAMPLE_A,
                         .type = E_BF16,
                         .rank = 2,
                         .extents = {{eight, 1}, {m, 1}},
                         .strides = {{NULL, 0}, {pitch, 1}},
                         .box = {8, 2},
                         .swizzle = SWIZZLE_64,
                         .promotion = PROMOTION_256};
    prepare(bench, 10);
    EXPECT(run(bench, "", 0) == RUN_DONE);
    const StandinMap *got = &bench->standin->map;
    EXPECT(got->type == 9 && got->rank == 2 && got->extents[0] == 8 && got->extents[1] == 3 &&
           got->strides[0] == 16);
    EXPECT(got->box[0] == 8 && got->box[1] == 2 && got->element_strides[0] == 1 &&
           got->element_strides[1] == 1);
    EXPECT(got->swizzle == 2 && got->promotion == PROMOTION_128 && got->interleave == 0 &&
           got->fill == 0);
    pitch[0].value = 32;
    prepare(bench, 10);
    EXPECT(run(bench, "", 0) == RUN_DONE && got->promotion == PROMOTION_256);
    *map = old;
    EXPECT_CLEAN(&bench->scratch);
}

static void stray_write(void **parameters, unsigned blocks) {
    uint64_t y;
    (void)blocks;
    memcpy(&y, parameters[1], 8);
    ((unsigned char *)(uintptr_t)y)[-1] = 0;
}

static void guards(Bench *bench) {
    prepare(bench, 10);
    bench->standin->kernel = stray_write;
    EXPECT(run(bench, "", 0) == RUN_DONE);
    EXPECT(!launch_guards(bench->launch, bench->scratch.diags));
    EXPECT_ERROR(&bench->scratch, P0619, "byte 1 before the first element of `Y`");
    bench->standin->kernel = NULL;
}

/* ---- failing runs ---------------------------------------------------------------------------- */

static void fails(Bench *bench, const char *words, RunStatus wanted, Code code, const char *text) {
    prepare(bench, 10);
    RunStatus status = run(bench, words, 1);
    if (!EXPECT(status == wanted)) fprintf(stderr, "%s: status %d\n", words, (int)status);
    if (!EXPECT_ERROR(&bench->scratch, code, text)) fprintf(stderr, "%s\n", words);
}

static void rejections(Bench *bench) {
    fails(bench, "jit", RUN_REJECTED, P0801,
          "the driver rejects the PTX of `axpy`: CUDA_ERROR_INVALID_PTX");
    fails(bench, "jit", RUN_REJECTED, P0801, "line 24; error   : Unknown symbol '%foo'");
    fails(bench, "jit", RUN_REJECTED, P0801, "axpy.pipe:2:5");
    fails(bench, "jit", RUN_REJECTED, P0801, "line 24 of the PTX is of role `load`, pipe `loaded`");
    fails(bench, "jit,line=3", RUN_REJECTED, P0801, "line 3 of the PTX is of the prologue");
    fails(bench, "jit=218", RUN_REJECTED, P0801, "CUDA_ERROR_INVALID_PTX");
    fails(bench, "jit=222", RUN_UNAVAILABLE, P0806, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION");
    fails(bench, "jit=221", RUN_UNAVAILABLE, P0806, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND");
    fails(bench, "large", RUN_REJECTED, P0808, "160 threads and 132096 bytes of shared memory");
    bench->manifest->shared_bytes = 300000;
    fails(bench, "", RUN_REJECTED, P0808, "160 threads and 300000 bytes of shared memory");
    bench->manifest->shared_bytes = 132096;
    fails(bench, "launch=701", RUN_REJECTED, P0808, "does not fit Stand-in");
    fails(bench, "map", RUN_REJECTED, P0807,
          "f32, innermost first: extents 10, strides in bytes, box 256");
    prepare(bench, 10);
    EXPECT(run(bench, "warn", 0) == RUN_DONE);
    EXPECT(bench->scratch.diags->items.count == 3 && bench->scratch.diags->errors == 0);
    Str text = str_new(bench->scratch.arena);
    diags_render(bench->scratch.diags, false, &text);
    EXPECT(strstr(text.text, "warning[P0810]: matrix instructions wait for each other in `axpy`: a "
                             "function is called "
                             "while they are in flight (C7510)\n --> axpy.pipe:1:1") != NULL);
    EXPECT(strstr(text.text, "warning[P0812]: `axpy` keeps values in local memory: a frame of 16 "
                             "bytes per thread, 8 bytes "
                             "of spill stores, 12 of spill loads\n --> axpy.pipe:1:1") != NULL);
    EXPECT(strstr(text.text,
                  "warning[P0802]: ptxas: warning : a warning with a line\n --> axpy.pipe:2:5") !=
           NULL);
    bench->scratch.diags = diags_new(bench->scratch.arena, bench->manifest->source);
}

static void machines(Bench *bench) {
    fails(bench, "memory=1000", RUN_UNAVAILABLE, P0803, "MiB are free on Stand-in");
    fails(bench, "jit=2", RUN_UNAVAILABLE, P0803, "no memory left");
    fails(bench, "launch=2", RUN_UNAVAILABLE, P0803, "no memory left");
    fails(bench, "launch=1", RUN_REJECTED, P0806,
          "cuLaunchKernelEx failed on Stand-in: CUDA_ERROR_INVALID_VALUE");
    static const char *const calls[] = {"cuModuleLoadDataEx",
                                        "cuModuleGetFunction",
                                        "cuFuncSetAttribute",
                                        "cuMemHostAlloc",
                                        "cuMemHostGetDevicePointer_v2",
                                        "cuStreamCreate",
                                        "cuEventCreate",
                                        "cuMemGetInfo_v2",
                                        "cuMemAlloc_v2",
                                        "cuMemcpyHtoDAsync_v2",
                                        "cuMemcpyDtoDAsync_v2",
                                        "cuEventRecord",
                                        "cuLaunchKernelEx",
                                        "cuEventQuery",
                                        "cuEventElapsedTime",
                                        "cuMemcpyDtoHAsync_v2",
                                        "cuStreamSynchronize",
                                        "cuOccupancyMaxActiveBlocksPerMultiprocessor",
                                        "cuCtxPushCurrent_v2"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        const char *words = arena_printf(bench->scratch.arena, "fail=%s", calls[i]);
        bool load = strcmp(calls[i], "cuModuleLoadDataEx") == 0;
        fails(bench, words, load ? RUN_REJECTED : RUN_UNAVAILABLE, load ? P0801 : P0806,
              "an unknown error");
    }
}

static void findings(Bench *bench) {
    fails(bench, "fault=700", RUN_FINDING, P0805,
          "`axpy` faults on Stand-in: CUDA_ERROR_ILLEGAL_ADDRESS");
    fails(bench, "fault=719", RUN_FINDING, P0805, "the CUDA context is lost");
    fails(bench, "hang", RUN_FINDING, P0804, "`axpy` hangs: a wait has lasted 5 s");
    fails(bench, "hang", RUN_FINDING, P0804,
          "block 0, warp 0: role `load`, instance 0, waits for an empty stage of `loaded`: stage "
          "1, parity 1");
    fails(bench, "hang", RUN_FINDING, P0804,
          "block 7, warp 1: role `add`, instance 1, waits for a full stage of `loaded`: stage 2, "
          "parity 0");
    fails(bench, "hang", RUN_FINDING, P0804,
          "role `load` waits for an empty stage of `loaded` here");
    fails(bench, "hang", RUN_FINDING, P0804, "the CUDA context is lost");
}

int main(void) {
    Bench bench = {.scratch = scratch_new(), .standin = standin_open()};
    bench.manifest = sample_manifest(bench.scratch.arena);
    bench.scratch.diags = diags_new(bench.scratch.arena, bench.manifest->source);
    works(&bench, 0);
    works(&bench, 3);
    works(&bench, 4);
    bench.standin->kernel = check_parameters;
    prepare(&bench, 10);
    EXPECT(run(&bench, "", 0) == RUN_DONE);
    bench.standin->kernel = NULL;
    grids(&bench);
    matrices(&bench);
    guards(&bench);
    rejections(&bench);
    machines(&bench);
    findings(&bench);
    launch_free(bench.launch);
    scratch_free(&bench.scratch);
    return expect_failures();
}
