/* Launches with the caller's pointers: maps are encoded once, the stream is passed on,
 * misaligned pointers are refused, and the caller's context is unchanged. */
#include "tests/unit/standin.h"

#include <math.h>

typedef struct Bench {
    Scratch scratch;
    Standin *standin;
    Manifest *manifest;
    Runtime *runtime;
    RuntimeKernel *kernel;
} Bench;

typedef struct Arguments {
    DeviceArgument items[6];
} Arguments;

/* A: bf16[M, 8] and Z: i32[M] have M = 3. */
static Arguments arguments_of(uint64_t x, uint64_t y, uint64_t a, int64_t n) {
    return (Arguments){{{.pointer = x, .extents = {n}},
                        {.pointer = y, .extents = {n}},
                        {.pointer = a, .extents = {3, 8}},
                        {.pointer = 0x40000000, .extents = {3}},
                        {.scalar = {2.5, 0}},
                        {.scalar = {7, 7}}}};
}

static RunStatus launch_how(Bench *bench, const Arguments *arguments, const RuntimeLaunch *how) {
    RunStatus status = runtime_launch(bench->kernel, arguments->items, how, bench->scratch.diags);
    EXPECT(bench->standin->pushed == 0);
    return status;
}

static RunStatus launch(Bench *bench, uint64_t x, int64_t n, void *stream) {
    Arguments arguments = arguments_of(x, 0x20000000, 0x30000000, n);
    return launch_how(bench, &arguments, &(RuntimeLaunch){.stream = stream});
}

static void cached(Bench *bench) {
    int stream;
    EXPECT(launch(bench, 0x10000, 5000, &stream) == RUN_DONE);
    EXPECT(bench->standin->stream == &stream && bench->standin->encoded == 1 &&
           bench->standin->grid == 2);
    for (int i = 0; i < 100; i++) EXPECT(launch(bench, 0x10000, 5000, NULL) == RUN_DONE);
    EXPECT(bench->standin->encoded == 1 && bench->standin->launches == 101 &&
           bench->standin->stream == NULL);
    EXPECT(launch(bench, 0x11000, 5000, NULL) == RUN_DONE && bench->standin->encoded == 2);
    EXPECT(launch(bench, 0x10000, 4000, NULL) == RUN_DONE && bench->standin->encoded == 3);
    EXPECT(launch(bench, 0x10000, 5000, NULL) == RUN_DONE && bench->standin->encoded == 3);
    EXPECT(launch(bench, 0x10000, 100 * 4096, NULL) == RUN_DONE && bench->standin->grid == 4);
    /* More sets than are cached: the most recently used one is kept */
    for (uint64_t i = 0; i < 100; i++) {
        EXPECT(launch(bench, 0x100000 + i * 256, 5000, NULL) == RUN_DONE);
        EXPECT(launch(bench, 0x10000, 5000, NULL) == RUN_DONE);
    }
    EXPECT(bench->standin->encoded == 104);
    /* Many sets in turn are all kept at last */
    int encoded = 0;
    for (int round = 0; round < 10; round++) {
        encoded = bench->standin->encoded;
        for (uint64_t i = 0; i < 400; i++)
            EXPECT(launch(bench, 0x10000000 + i * 4096, 5000, NULL) == RUN_DONE);
    }
    EXPECT(bench->standin->encoded == encoded);
    EXPECT_CLEAN(&bench->scratch);
}

static uint64_t passed_map, passed_y;
static float passed_a;

static void look(void **parameters, unsigned blocks) {
    (void)blocks;
    memcpy(&passed_map, parameters[0], 8), memcpy(&passed_y, parameters[1], 8),
        memcpy(&passed_a, parameters[4], 4);
}

static void passed(Bench *bench) {
    bench->standin->kernel = look;
    EXPECT(launch(bench, 0x12300, 5000, NULL) == RUN_DONE);
    EXPECT(passed_map == 0x12300 && passed_y == 0x20000000 && passed_a == 2.5f);
    EXPECT(launch(bench, 0x45600, 5000, NULL) == RUN_DONE && passed_map == 0x45600);
    bench->standin->kernel = NULL;
}

static void refused(Bench *bench) {
    int encoded = bench->standin->encoded, launches = bench->standin->launches;
    EXPECT(launch(bench, 0x10008, 5000, NULL) == RUN_UNAVAILABLE);
    EXPECT_ERROR(&bench->scratch, P0620,
                 "`X` is at 0x10008, but its base must be a multiple of 16 bytes");
    EXPECT(launch(bench, 0, 5000, NULL) == RUN_UNAVAILABLE);
    EXPECT_ERROR(&bench->scratch, P0620, "`X` has elements, but its device pointer is null");
    EXPECT(bench->standin->encoded == encoded && bench->standin->launches == launches);
}

/* An empty tensor may have no address. In both cases its map refers to zeros that belong to the
 * kernel, or, for stores, to other bytes of the kernel. */
static void empty(Bench *bench) {
    static const uint64_t addresses[] = {0, 0x50000};
    static const char zeros[EMPTY_BYTES];
    uint64_t places[2] = {0};
    int alive = bench->standin->allocations;
    EXPECT(alive == 1);
    for (size_t i = 0; i < 4; i++) {
        Arguments arguments = arguments_of(addresses[i / 2], 0, 0x30000000 + i * 256, 0);
        bench->manifest->maps.items[0].stored = i % 2 == 1;
        /* Evicts the sets that were encoded for the other use, by more different launches than are
         * kept */
        for (uint64_t n = 0; n < 20000; n++)
            EXPECT(launch(bench, 0x100000 + n * 256, 5000, NULL) == RUN_DONE);
        EXPECT(launch_how(bench, &arguments, &(RuntimeLaunch){.stream = NULL}) == RUN_DONE);
        EXPECT(bench->standin->grid == 1 && bench->standin->map.extents[0] == 1 &&
               bench->standin->map.rank == 1);
        if (i < 2) places[i] = bench->standin->map.address;
        EXPECT(bench->standin->map.address == places[i % 2] && places[i % 2] != 0);
        /* as a store through the map does */
        if (i % 2 == 1) memset((void *)(uintptr_t)places[1], 0x55, EMPTY_BYTES);
        EXPECT(memcmp((const void *)(uintptr_t)places[0], zeros, EMPTY_BYTES) == 0);
    }
    bench->manifest->maps.items[0].stored = false;
    EXPECT(bench->standin->allocations == alive);
    EXPECT_CLEAN(&bench->scratch);
}

/* Two dimensions: strides must be multiples of 16 bytes, except those of empty tensors. */
static void empty_matrix(Bench *bench) {
    static const FormulaStep n[] = {{F_SYMBOL, SAMPLE_N}}, m[] = {{F_SYMBOL, SAMPLE_M}};
    ManifestMap *map = &bench->manifest->maps.items[0], old = *map;
    *map = (ManifestMap){.parameter = SAMPLE_X,
                         .type = E_BF16,
                         .rank = 3,
                         .extents = {{n, 1}, {m, 1}, {m, 1}},
                         .strides = {{NULL, 0}, {n, 1}, {m, 1}},
                         .box = {8, 2, 2}};
    EXPECT(launch(bench, 0, 0, NULL) == RUN_DONE);
    const StandinMap *got = &bench->standin->map;
    EXPECT(got->rank == 3 && got->strides[0] == 16 && got->strides[1] == 16);
    for (int axis = 0; axis < 3; axis++) EXPECT(got->extents[axis] == 1);
    *map = old;
    EXPECT_CLEAN(&bench->scratch);
}

static bool open_all(Bench *bench, const char *words) {
    RuntimeLack lack;
    const char *why;
    standin_says(words);
    bench->runtime =
        runtime_open(bench->scratch.arena, -1, bench->manifest->target, 8, 0, &lack, &why);
    if (!EXPECT(bench->runtime != NULL)) return false;
    bench->kernel = runtime_load(bench->scratch.arena, bench->runtime, bench->manifest, "ptx", 3,
                                 bench->scratch.diags);
    return bench->kernel != NULL;
}

static void close_all(Bench *bench) {
    runtime_unload(bench->kernel);
    runtime_close(bench->runtime);
    EXPECT(standin_is_clean(bench->standin));
}

/* Without maps nothing is allocated; if the allocation fails, nothing remains. */
static void places(Bench *bench) {
    static const char *const calls[] = {"cuMemAlloc_v2", "cuMemcpyHtoDAsync_v2",
                                        "cuStreamSynchronize"};
    for (size_t i = 0; i < COUNT_OF(calls); i++) {
        EXPECT(!open_all(bench, arena_printf(bench->scratch.arena, "fail=%s", calls[i])));
        EXPECT_ERROR(&bench->scratch, P0806,
                     arena_copy(bench->scratch.arena, calls[i], strcspn(calls[i], "_")));
        close_all(bench);
    }
    EXPECT(!open_all(bench, "memory=100"));
    EXPECT_ERROR(&bench->scratch, P0803, "no memory left");
    close_all(bench);
    size_t maps = bench->manifest->maps.count;
    bench->manifest->maps.count = 0;
    EXPECT(open_all(bench, "fail=cuMemAlloc_v2"));
    EXPECT_CLEAN(&bench->scratch);
    close_all(bench);
    bench->manifest->maps.count = maps;
}

/* A set whose encoding failed is not reused. */
static void half_encoded(Bench *bench) {
    if (!EXPECT(open_all(bench, "map"))) return;
    for (int i = 0; i < 2; i++) {
        EXPECT(launch(bench, 0x10000, 5000, NULL) == RUN_REJECTED);
        EXPECT_ERROR(&bench->scratch, P0807, "`X`");
    }
    close_all(bench);
}

/* Clusters of three blocks: the device has four multiprocessors. */
static void clusters(Bench *bench) {
    bench->manifest->cluster[0] = 3;
    if (!EXPECT(open_all(bench, ""))) return;
    Arguments arguments = arguments_of(0x10000, 0x20000000, 0x30000000, 300 * 4096);
    RuntimeLaunch how = {.multiprocessors = 2}; /* a block each: too few for a cluster */
    EXPECT(launch_how(bench, &arguments, &how) == RUN_UNAVAILABLE);
    EXPECT_ERROR(&bench->scratch, P0918, "a cluster has 3 blocks, and 1 fit a multiprocessor");
    how.multiprocessors = 3;
    EXPECT(launch_how(bench, &arguments, &how) == RUN_DONE && bench->standin->grid == 3);
    for (int64_t n = 0; n < 300 * 4096; n += 3 * 4096)
        EXPECT(launch(bench, 0x10000, n, NULL) == RUN_DONE && bench->standin->grid == 3);
    EXPECT_CLEAN(&bench->scratch);
    close_all(bench);
    EXPECT(!open_all(bench, "apart"));
    EXPECT_ERROR(&bench->scratch, P0808, "a cluster of 3 blocks");
    close_all(bench);
    EXPECT(!open_all(bench, "fail=cuOccupancyMaxActiveClusters"));
    EXPECT_ERROR(&bench->scratch, P0806, "cuOccupancyMaxActiveClusters");
    close_all(bench);
    bench->manifest->cluster[0] = 1;
}

static uint64_t passed_counter;

static void look_at_counter(void **parameters, unsigned blocks) {
    (void)blocks;
    memcpy(&passed_counter, parameters[6], 8);
}

static uint64_t counter_on(Bench *bench, void *stream) {
    passed_counter = 0;
    EXPECT(launch(bench, 0x10000, 5000, stream) == RUN_DONE);
    uint32_t value;
    memcpy(&value, (const void *)(uintptr_t)passed_counter, sizeof value);
    EXPECT(value == 0);
    return passed_counter;
}

/* Each of many streams keeps its counter; counters that could not be added are freed. */
static void many_streams(Bench *bench) {
    enum { STREAMS = 1500 };
    static char streams[STREAMS];
    uint64_t seen[STREAMS];
    if (EXPECT(open_all(bench, ""))) {
        bench->standin->kernel = look_at_counter;
        for (int i = 0; i < STREAMS; i++) {
            seen[i] = counter_on(bench, &streams[i]);
            for (int k = 0; k < i; k++) EXPECT(seen[k] != seen[i]);
        }
        for (int i = 0; i < STREAMS; i++) EXPECT(counter_on(bench, &streams[i]) == seen[i]);
        EXPECT_CLEAN(&bench->scratch);
        bench->standin->kernel = NULL;
    }
    close_all(bench);
    if (EXPECT(open_all(bench, ""))) {
        int allocated = bench->standin->allocations;
        bench->standin->stays_relaxed = true;
        EXPECT(launch(bench, 0x10000, 5000, NULL) != RUN_DONE);
        EXPECT_ERROR(&bench->scratch, P0806, "the counter of tiles");
        EXPECT(bench->standin->allocations == allocated);
        bench->standin->stays_relaxed = false;
    }
    close_all(bench);
}

/* Launches of one stream share a counter, others and captured ones do not. */
static void counters(Bench *bench) {
    enum { MANY = 2000 };
    int one, two;
    uint64_t seen[MANY];
    bench->manifest->dynamic = true;
    bench->manifest->watchdog = false;
    bench->manifest->arguments.items[6] = (ManifestArgument){ARGUMENT_COUNTER, 0};
    if (!EXPECT(open_all(bench, ""))) return;
    bench->standin->kernel = look_at_counter;
    uint64_t first = counter_on(bench, &one), second = counter_on(bench, &two);
    EXPECT(first != 0 && second != first && first % COUNTER_BYTES == second % COUNTER_BYTES);
    EXPECT(counter_on(bench, &one) == first && counter_on(bench, &two) == second);
    EXPECT(counter_on(bench, NULL) != first && counter_on(bench, NULL) == passed_counter);
    bench->standin->captures = 1;
    for (int i = 0; i < MANY; i++) {
        seen[i] = counter_on(bench, &one);
        EXPECT(seen[i] != first && seen[i] != second);
        for (int k = 0; k < i; k++) EXPECT(seen[k] != seen[i]);
    }
    bench->standin->captures = 0;
    EXPECT(counter_on(bench, &one) == first && bench->standin->capture_mode == 0);
    EXPECT_CLEAN(&bench->scratch);
    bench->standin->kernel = NULL;
    runtime_unload(bench->kernel);
    runtime_close(bench->runtime);
    /* counters that graphs may use stay, 512 in an allocation, and the bytes of empty tensors */
    EXPECT(bench->standin->allocations == (3 + MANY + 511) / 512 + 1);
    EXPECT(bench->standin->modules == 1);
    bench->standin->allocations = bench->standin->modules = 0;
    if (EXPECT(open_all(bench, "fail=cuStreamGetId"))) {
        EXPECT(launch(bench, 0x10000, 5000, NULL) != RUN_DONE);
        EXPECT_ERROR(&bench->scratch, P0806, "the counter of tiles");
    }
    close_all(bench);
    many_streams(bench);
    bench->manifest->arguments.items[6] = (ManifestArgument){ARGUMENT_WATCHDOG, 0};
    bench->manifest->dynamic = false;
    bench->manifest->watchdog = true;
}

/* A scalar that a precondition compares is compared at each launch, others are only passed on. */
static void compared(Bench *bench, bool named) {
    static const FormulaStep positive[] = {{F_FLOAT, 0}, {F_SYMBOL, 3}, {F_LT, 0}};
    Arguments arguments = arguments_of(0x10000, 0x20000000, 0x30000000, 5000);
    DeviceArgument *scalar = &arguments.items[SAMPLE_a];
    if (named)
        vec_push(bench->scratch.arena, &bench->manifest->preconditions,
                 ((ManifestPrecondition){.condition = {positive, 3}, .text = "a > 0"}));
    manifest_find_compared(bench->manifest);
    if (!EXPECT(open_all(bench, ""))) return;
    EXPECT(launch_how(bench, &arguments, &(RuntimeLaunch){0}) == RUN_DONE);
    int encoded = bench->standin->encoded;
    scalar->scalar.number = 3;
    EXPECT(launch_how(bench, &arguments, &(RuntimeLaunch){0}) == RUN_DONE);
    EXPECT((bench->standin->encoded > encoded) == named);
    static const double wrong[] = {0, -1, (double)NAN, 1e-50};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        scalar->scalar.number = wrong[i];
        RunStatus status = launch_how(bench, &arguments, &(RuntimeLaunch){0});
        EXPECT(status == (named ? RUN_UNAVAILABLE : RUN_DONE));
        if (named) EXPECT_ERROR(&bench->scratch, P0608, "`a > 0` must hold");
    }
    EXPECT_CLEAN(&bench->scratch);
    close_all(bench);
}

/* A kernel that does not wait for the one before is never started early. */
static void ordered(Bench *bench) {
    Arguments arguments = arguments_of(0x10000, 0x20000000, 0x30000000, 5000);
    RuntimeLaunch how = {.programmatic = true};
    for (int is_ordered = 0; is_ordered < 2; is_ordered++) {
        bench->manifest->ordered = is_ordered;
        EXPECT(launch_how(bench, &arguments, &how) == RUN_DONE);
        EXPECT(bench->standin->programmatic == !is_ordered);
    }
    bench->manifest->ordered = false;
    EXPECT_CLEAN(&bench->scratch);
}

/* A newer device with less shared memory: not a bug, unlike on the target's own device */
static void newer(Bench *bench) {
    bench->manifest->target = "sm_80";
    bench->manifest->shared_bytes = 166912;
    EXPECT(!open_all(bench, "capability=8.9,shared=101376"));
    EXPECT_ERROR(&bench->scratch, P0808, "166912 bytes of shared memory, does not fit");
    close_all(bench);
    EXPECT(open_all(bench, "capability=9.0"));
    close_all(bench);
}

int main(void) {
    Bench bench = {.scratch = scratch_new(), .standin = standin_open()};
    bench.manifest = sample_manifest(bench.scratch.arena);
    bench.manifest->preconditions.count = 0; /* tensors without elements are launched too */
    if (EXPECT(open_all(&bench, ""))) {
        cached(&bench);
        passed(&bench);
        refused(&bench);
        empty(&bench);
        empty_matrix(&bench);
    }
    close_all(&bench);
    places(&bench);
    half_encoded(&bench);
    clusters(&bench);
    counters(&bench);
    vec_push(bench.scratch.arena, &bench.manifest->symbols,
             ((ManifestSymbol){.name = "a", .is_float = true}));
    bench.manifest->parameters.items[SAMPLE_a].symbol = 3;
    compared(&bench, false);
    compared(&bench, true);
    if (EXPECT(open_all(&bench, ""))) ordered(&bench);
    close_all(&bench);
    newer(&bench);
    EXPECT(!open_all(&bench, "jit"));
    EXPECT_ERROR(&bench.scratch, P0801, "rejects");
    close_all(&bench);
    runtime_unload(NULL);
    scratch_free(&bench.scratch);
    return expect_failures();
}
