/* Launches of any PTX (tests/emulator/programs): three dimensions, structures by value with a
 * tensor map inside, maps in memory, several launches on the same memory, and those that do not fit
 * their kernel. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

typedef struct Trial {
    Scratch scratch;
    EmulatorKernel kernel;
    EmulatorLaunch launches[3];
    EmulatorRegion regions[3];
    EmulatorWork work;
    RunResult result;
} Trial;

static bool read_kernel(Trial *trial, const char *file) {
    trial->scratch = scratch_new();
    FILE *in = fopen(file, "rb");
    if (!EXPECT(in != NULL)) return false;
    char *text = arena_alloc(trial->scratch.arena, 1 << 16);
    size_t length = fread(text, 1, (1 << 16) - 1, in);
    fclose(in);
    trial->work =
        (EmulatorWork){.regions = trial->regions, .launches = trial->launches, .launch_count = 1};
    RunStatus status = emulator_read(trial->scratch.arena, text, length, NULL, &trial->kernel,
                                     trial->scratch.diags);
    for (size_t i = 0; i < COUNT_OF(trial->launches); i++)
        trial->launches[i] =
            (EmulatorLaunch){.kernel = &trial->kernel,
                             .grid = {1, 1, 1},
                             .block = {32, 1, 1},
                             .parameters = NEW_ARRAY(trial->scratch.arena, unsigned char,
                                                     trial->kernel.parameter_bytes)};
    return EXPECT(status == RUN_DONE) && EXPECT_CLEAN(&trial->scratch);
}

static unsigned char *add_region(Trial *trial, const char *name, size_t bytes) {
    unsigned char *data = NEW_ARRAY(trial->scratch.arena, unsigned char, bytes);
    trial->regions[trial->work.region_count++] =
        (EmulatorRegion){.data = data, .bytes = bytes, .name = name};
    emulator_place(trial->regions, trial->work.region_count);
    return data;
}

static void pass(Trial *trial, int launch, size_t parameter, size_t offset, const void *value,
                 size_t bytes) {
    memcpy((unsigned char *)trial->launches[launch].parameters +
               trial->kernel.parameters[parameter].offset + offset,
           value, bytes);
}

static RunStatus run(Trial *trial, uint64_t seed) {
    EmulatorOptions options = {.seed = seed};
    return emulator_run_work(trial->scratch.arena, &trial->work, &options, &trial->result,
                             trial->scratch.diags);
}

/* ---- extents --------------------------------------------------------------------------------- */

static void set_extents(EmulatorLaunch *launch, const uint32_t grid[3], const uint32_t block[3],
                        const uint32_t cluster[3]) {
    memcpy(launch->grid, grid, sizeof launch->grid);
    memcpy(launch->block, block, sizeof launch->block);
    memcpy(launch->cluster, cluster, sizeof launch->cluster);
}

/* The sixteen words of a thread: see extents.ptx */
static void check_thread(const uint32_t *words, const EmulatorLaunch *launch, uint32_t number) {
    const uint32_t *grid = launch->grid, *block = launch->block, *cluster = launch->cluster;
    uint32_t threads = block[0] * block[1] * block[2], thread = number % threads,
             index = number / threads, rank = 0, size = 1, at[3];
    for (int i = 0; i < 3; i++) {
        at[i] = index % grid[i];
        index /= grid[i];
        EXPECT(words[i] == at[i] / cluster[i]);
        EXPECT(words[3 + i] == at[i] % cluster[i]);
        EXPECT(words[8 + i] == grid[i] / cluster[i]);
        rank += at[i] % cluster[i] * size;
        size *= cluster[i];
    }
    EXPECT(words[6] == rank && words[7] == size);
    EXPECT(words[11] == thread % 32 && words[12] == thread / 32);
    EXPECT(words[13] == grid[2] && words[14] == cluster[1] && words[15] == number);
}

static void test_extents(const uint32_t grid[3], const uint32_t block[3],
                         const uint32_t cluster[3]) {
    Trial trial = {0};
    if (!read_kernel(&trial, "tests/emulator/programs/extents.ptx")) return;
    set_extents(&trial.launches[0], grid, block, cluster);
    uint32_t threads = grid[0] * grid[1] * grid[2] * block[0] * block[1] * block[2];
    unsigned char *words = add_region(&trial, "out", threads * 64);
    pass(&trial, 0, 0, 0, &trial.regions[0].base, 8);
    EXPECT(run(&trial, 3) == RUN_DONE);
    EXPECT_CLEAN(&trial.scratch);
    EXPECT(trial.result.blocks == grid[0] * grid[1] * grid[2]);
    for (uint32_t i = 0; i < threads; i++)
        check_thread((const uint32_t *)(const void *)(words + i * 64), &trial.launches[0], i);
    scratch_free(&trial.scratch);
}

static void refused(const uint32_t grid[3], const uint32_t block[3], const uint32_t cluster[3],
                    uint32_t shared, const char *why) {
    Trial trial = {0};
    if (!read_kernel(&trial, "tests/emulator/programs/extents.ptx")) return;
    set_extents(&trial.launches[0], grid, block, cluster);
    trial.launches[0].shared_bytes = shared;
    EXPECT(run(&trial, 0) == RUN_REJECTED);
    EXPECT_ERROR(&trial.scratch, P0702, why);
    scratch_free(&trial.scratch);
}

static void test_refused(void) {
    static const uint32_t one[3] = {1, 1, 1}, none[3] = {0, 0, 0};
    refused((uint32_t[]){1, 0, 1}, one, none, 0, "the grid has 0 along y");
    refused((uint32_t[]){1, 1, 65536}, one, none, 0, "the grid has 65536 along z");
    refused(one, none, none, 0, "the block has 0 along x");
    refused(one, (uint32_t[]){1, 1, 65}, none, 0, "the block has 65 along z");
    refused(one, (uint32_t[]){32, 33, 1}, none, 0, "blocks of 32 x 33 x 1 threads");
    refused(one, (uint32_t[]){65536, 65536, 1}, none, 0, "blocks of 65536 x 65536 x 1 threads");
    refused((uint32_t[]){4, 3, 1}, one, (uint32_t[]){2, 2, 1}, 0,
            "the grid of 4 x 3 x 1 blocks is not a multiple of clusters of 2 x 2 x 1");
    refused((uint32_t[]){8, 8, 1}, one, (uint32_t[]){8, 4, 1}, 0, "clusters of 8 x 4 x 1 blocks");
    refused(one, one, none, 232449, "more shared memory");
    refused(one, one, none, UINT32_MAX, "more shared memory");
}

/* ---- structures and maps --------------------------------------------------------------------- */

static EmulatorMap map_of(const Trial *trial, int region) {
    return (EmulatorMap){.type = 7,
                         .rank = 2,
                         .address = trial->regions[region].base,
                         .extents = {32, 8},
                         .strides = {0, 128},
                         .box = {32, 8}};
}

/* The map of the target: where the second parameter points to */
static bool prepare_copy(Trial *trial, float add) {
    unsigned char map[EMULATOR_MAP_BYTES];
    if (!read_kernel(trial, "tests/emulator/programs/structure.ptx")) return false;
    for (int i = 0; i < 2; i++) {
        float *data = (float *)(void *)add_region(trial, i ? "to" : "from", 1024);
        for (int k = 0; k < 256 && i == 0; k++) data[k] = (float)k;
    }
    unsigned char *maps = add_region(trial, "maps", 192);
    for (int i = 0; i < 2; i++) {
        EmulatorMap fields = map_of(trial, i);
        EXPECT(emulator_encode_map(&fields, "map", map, trial->scratch.diags) == RUN_DONE);
        if (i == 0) pass(trial, 0, 0, 64, map, sizeof map);
    }
    memcpy(maps + 64, map, sizeof map);
    uint64_t at = trial->regions[2].base + 64;
    pass(trial, 0, 0, 252, &add, sizeof add);
    pass(trial, 0, 1, 0, &at, 8);
    trial->launches[0].shared_bytes = 2048;
    return true;
}

static void test_structure(void) {
    for (uint64_t seed = 0; seed < 3; seed++) {
        Trial trial = {0};
        if (!prepare_copy(&trial, 0.5f)) return;
        const float *to = (const float *)(const void *)trial.regions[1].data;
        EXPECT(run(&trial, seed) == RUN_DONE);
        EXPECT_CLEAN(&trial.scratch);
        for (int i = 0; i < 256; i++) EXPECT(to[i] == (i ? (float)i : 0.5f));
        scratch_free(&trial.scratch);
    }
}

static void test_wrong_map(uint64_t move, unsigned char change, Code code, const char *why) {
    Trial trial = {0};
    if (!prepare_copy(&trial, 0)) return;
    uint64_t at = trial.regions[2].base + 64 + move;
    pass(&trial, 0, 1, 0, &at, 8);
    trial.regions[2].data[64] ^= change;
    EXPECT(run(&trial, 0) == RUN_FINDING);
    EXPECT_ERROR(&trial.scratch, code, why);
    scratch_free(&trial.scratch);
}

static void test_encoding(void) {
    Trial trial = {0};
    unsigned char out[EMULATOR_MAP_BYTES];
    if (!read_kernel(&trial, "tests/emulator/programs/structure.ptx")) return;
    EmulatorMap map = {.type = 13, .rank = 1, .extents = {4}, .box = {4}};
    EXPECT(emulator_encode_map(&map, "m", out, trial.scratch.diags) == RUN_REJECTED);
    EXPECT_ERROR(&trial.scratch, P0703, "elements of this type");
    map.type = 7, map.rank = 6;
    EXPECT(emulator_encode_map(&map, "m", out, trial.scratch.diags) == RUN_REJECTED);
    EXPECT_ERROR(&trial.scratch, P0703, "its rank");
    scratch_free(&trial.scratch);
}

/* ---- several launches ------------------------------------------------------------------------ */

static void test_sequence(void) {
    Trial trial = {0};
    if (!prepare_copy(&trial, 1)) return;
    EmulatorMap fields = map_of(&trial, 1);
    unsigned char map[EMULATOR_MAP_BYTES];
    EXPECT(emulator_encode_map(&fields, "to", map, trial.scratch.diags) == RUN_DONE);
    for (int i = 1; i < 3; i++) { /* the others add to the result of the first, in place */
        float add = 10;
        uint64_t at = trial.regions[2].base + 64;
        pass(&trial, i, 0, 64, map, sizeof map);
        pass(&trial, i, 0, 252, &add, sizeof add);
        pass(&trial, i, 1, 0, &at, 8);
        trial.launches[i].shared_bytes = 2048;
    }
    trial.work.launch_count = 3;
    EXPECT(run(&trial, 0) == RUN_DONE);
    EXPECT_CLEAN(&trial.scratch);
    EXPECT(trial.result.blocks == 3);
    EXPECT(*(const float *)(const void *)trial.regions[1].data == 21);
    scratch_free(&trial.scratch);
}

int main(void) {
    static const uint32_t one[3] = {1, 1, 1};
    test_extents((uint32_t[]){3, 1, 1}, (uint32_t[]){64, 1, 1}, one);
    test_extents((uint32_t[]){4, 2, 3}, (uint32_t[]){8, 4, 2}, one);
    test_extents((uint32_t[]){4, 2, 3}, (uint32_t[]){5, 3, 7}, (uint32_t[]){2, 1, 3});
    test_extents((uint32_t[]){2, 4, 2}, (uint32_t[]){32, 2, 1}, (uint32_t[]){2, 2, 2});
    test_refused();
    test_structure();
    test_wrong_map(0, 1, P0716, "is not the address of a tensor map");
    test_wrong_map(16, 0, P0711, "a multiple of 64");
    test_wrong_map(64, 0, P0710, "has no memory there");
    test_encoding();
    test_sequence();
    return expect_failures();
}
