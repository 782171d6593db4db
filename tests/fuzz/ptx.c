/* Fuzzes the PTX reader and the emulator: any bytes are read or refused, and a program that is
 * read runs for a while. The length of the text selects the schedule. */
#include "emulator/emulator.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { EXTENT = 1024 };

static const FormulaStep extent_steps[] = {{F_CONST, EXTENT}};
/* Arguments that fit the parameters, guessed from the text: 128 bytes are a tensor map. */
static void pass_arguments(Arena *arena, Manifest *manifest, const char *text) {
    const char *entry = strstr(text, ".entry"), *open = entry ? strchr(entry, '(') : NULL,
               *close = open ? strchr(open, ')') : NULL;
    int count = 0;
    for (const char *at = open;
         at && close && (at = strstr(at, ".param ")) && at < close && count < 16;
         at += 7, count++) {
        const char *type = at + 7;
        ManifestArgument argument = {ARGUMENT_POINTER, count % 2};
        if (!strncmp(type, ".align", 6))
            argument = (ManifestArgument){ARGUMENT_TENSOR_MAP, count % 2};
        else if (strncmp(type + 2, "64", 2) != 0)
            argument = (ManifestArgument){ARGUMENT_EXTENT, 0};
        vec_push(arena, &manifest->arguments, argument);
    }
}

static Manifest manifest_for(Arena *arena, const char *text) {
    Manifest manifest = {.shared_bytes = 16384};
    for (int i = 0; i < 2; i++) {
        ManifestParameter parameter = {.name = i ? "Y" : "X",
                                       .mode = i ? MODE_INOUT : MODE_IN,
                                       .type = E_F32,
                                       .rank = 1,
                                       .symbol = -1};
        vec_push(arena, &manifest.parameters, parameter);
        ManifestMap map = {
            .parameter = i, .type = E_F32, .rank = 1, .extents = {{extent_steps, 1}}, .box = {256}};
        vec_push(arena, &manifest.maps, map);
    }
    pass_arguments(arena, &manifest, text);
    vec_push(arena, &manifest.roles, (ManifestRole){.name = "role", .warps = 2, .instances = 1});
    vec_push(
        arena, &manifest.shared,
        (ManifestShared){
            .kind = SHARED_FULL, .pipe = "pipe", .stages = 2, .bytes = 8, .stride = 8, .count = 1});
    return manifest;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    Arena *arena = arena_new();
    if (!arena) return 0;
    int64_t extent = EXTENT;
    Array arrays[2];
    bool fine =
        array_new(&arrays[0], E_F32, 1, &extent) && array_new(&arrays[1], E_F32, 1, &extent);
    if (!fine) return 0;
    memset(arrays[0].data, 0, arrays[0].bytes);
    memset(arrays[1].data, 0, arrays[1].bytes);
    const char *text = arena_copy(arena, (const char *)data, size);
    Manifest manifest = manifest_for(arena, text);
    Launch launch = {.manifest = &manifest,
                     .ptx = text,
                     .ptx_length = size,
                     .symbols = &extent,
                     .arrays = arrays,
                     .tiles = 2};
    EmulatorOptions options = {.seed = size % 4, .limit = 20000};
    RunResult result;
    Diags *diags = diags_new(arena, NULL);
    RunStatus status = emulator_run(arena, &launch, &options, &result, diags);
    if ((status == RUN_DONE) != (diags->items.count == 0)) __builtin_trap();
    Str out = str_new(arena);
    diags_render(diags, false, &out);
    array_free(&arrays[0]);
    array_free(&arrays[1]);
    arena_free(arena);
    return 0;
}
