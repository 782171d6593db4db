/* Fuzzes the PTX reader and the emulator: any bytes are read or refused, and a program that is
 * read runs for a while. The length of the text selects the schedule and the extents. */
#include "emulator/emulator.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { BYTES = 4096, MOST_SHARED = 16384 };

typedef struct Trial {
    Arena *arena;
    Diags *diags;
    EmulatorKernel kernel;
    EmulatorLaunch launch;
    EmulatorRegion regions[2];
    Manifest names;
} Trial;

static void name_parts(Arena *arena, Manifest *names) {
    vec_push(arena, &names->roles, (ManifestRole){.name = "role", .warps = 2, .instances = 1});
    vec_push(
        arena, &names->shared,
        (ManifestShared){
            .kind = SHARED_FULL, .pipe = "pipe", .stages = 2, .bytes = 8, .stride = 8, .count = 1});
}

static void add_regions(Trial *trial) {
    static const char *const names[] = {"X", "Y"};
    for (int i = 0; i < 2; i++)
        trial->regions[i] = (EmulatorRegion){.data = NEW_ARRAY(trial->arena, unsigned char, BYTES),
                                             .bytes = BYTES,
                                             .read_only = i == 0,
                                             .name = names[i]};
    emulator_place(trial->regions, 2);
}

/* Parameters are numbers, addresses, or structures whose first 128 bytes at each multiple of 64
 * are a tensor map. */
static void fill_parameters(Trial *trial) {
    unsigned char *bytes =
        NEW_ARRAY(trial->arena, unsigned char, trial->kernel.parameter_bytes + 1);
    for (size_t i = 0; i < trial->kernel.parameter_count; i++) {
        const EmulatorParameter *parameter = &trial->kernel.parameters[i];
        const EmulatorRegion *region = &trial->regions[i % 2];
        unsigned char *to = bytes + parameter->offset;
        uint32_t number = BYTES / 4;
        EmulatorMap map = {.type = 7,
                           .rank = 1 + (uint32_t)(i / 2 % 2),
                           .address = region->base,
                           .extents = {32, 32},
                           .strides = {0, 128},
                           .box = {32, 8}};
        for (uint32_t at = 0; parameter->bytes >= 128 && at + 128 <= parameter->bytes; at += 64)
            (void)emulator_encode_map(&map, "map", to + at, trial->diags);
        if (parameter->bytes == 8) memcpy(to, &region->base, 8);
        if (parameter->bytes == 4) memcpy(to, &number, 4);
    }
    trial->launch.parameters = bytes;
}

/* Threads as the text requires them, otherwise by its length */
static void set_extents(Trial *trial, size_t size) {
    static const uint32_t blocks[][3] = {{64, 1, 1}, {8, 4, 1}, {16, 2, 3}, {128, 1, 1}};
    EmulatorLaunch *launch = &trial->launch;
    const uint32_t *required = trial->kernel.required_block, *cluster = trial->kernel.cluster;
    memcpy(launch->block, required[0] ? required : blocks[size / 4 % 4], sizeof launch->block);
    for (int i = 0; i < 3; i++)
        launch->grid[i] =
            (cluster[i] ? cluster[i] : 1) * (i < 2 ? 1 + (uint32_t)(size >> i) % 2 : 1);
    launch->kernel = &trial->kernel;
    launch->shared_bytes = MOST_SHARED;
}

static RunStatus run(Trial *trial, const char *text, size_t size) {
    RunStatus status = emulator_read(trial->arena, text, size, NULL, &trial->kernel, trial->diags);
    if (status != RUN_DONE) return status;
    add_regions(trial);
    fill_parameters(trial);
    set_extents(trial, size);
    name_parts(trial->arena, &trial->names);
    EmulatorOptions options = {.seed = size % 4, .limit = 20000};
    EmulatorWork work = {.regions = trial->regions,
                         .region_count = 2,
                         .launches = &trial->launch,
                         .launch_count = 1,
                         .names = &trial->names};
    RunResult result;
    return emulator_run_work(trial->arena, &work, &options, &result, trial->diags);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Trial trial = {.arena = arena_new()};
    if (!trial.arena) return 0;
    trial.diags = diags_new(trial.arena, NULL);
    RunStatus status = run(&trial, arena_copy(trial.arena, (const char *)data, size), size);
    if ((status == RUN_DONE) != (trial.diags->errors == 0)) __builtin_trap();
    Str out = str_new(trial.arena);
    diags_render(trial.diags, false, &out);
    arena_free(trial.arena);
    return 0;
}
