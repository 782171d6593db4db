/* A dynamic grid with any number of blocks, also more than it has tiles: every tile is executed
 * once, and the emulator finds the counter at 0 after each launch (P0743). */
#include "emulator/emulator.h"
#include "lib/private.h"

#include "tests/unit/expect.h"

static const char text[] =
    "kernel marks(inout Y: i32[N]) for sm_90a {\n"
    "    ensures Y[i] == old Y[i] + i;\n"
    "    grid dynamic (t: ceil(N, 32));\n"
    "    pipe rows[2] load -> work { y: i32[32]; }\n"
    "    role load: 1 warp { for t in grid { produce <rows> as s { s.y[i] = Y[t*32 + i]; } } }\n"
    "    role work: 1 warp {\n"
    "        for t in grid { consume <rows> as s { Y[t*32 + i] = s.y[i] + t*32 + i; } }\n"
    "    }\n"
    "}\n";

/* Runs one schedule with so many blocks; counts the elements that are wrong */
static int64_t wrong(Arena *arena, PipecProgram *program, int64_t tiles, int64_t blocks,
                     uint64_t seed) {
    Diags *diags = diags_new(arena, program->source);
    Argument arguments[1];
    LaunchOptions options = {.seed = 1};
    EmulatorOptions how = {.seed = seed, .limit = 10000000};
    RunResult result = {0};
    const char *size = arena_printf(arena, "N=%lld", (long long)(32 * tiles));
    EXPECT(argument_parse(arena, size, &arguments[0], diags));
    Launch *launch = launch_prepare(arena, program->manifest, program->ptx.text,
                                    strlen(program->ptx.text), arguments, 1, &options, diags);
    if (!EXPECT(launch != NULL)) return 1;
    int32_t *y = (int32_t *)(void *)launch->arrays[0].data;
    memset(y, 0, (size_t)tiles * 32 * sizeof *y);
    launch->tiles = blocks; /* a block for each, because the grid is not persistent below */
    EXPECT(emulator_run(arena, launch, &how, &result, diags) == RUN_DONE);
    EXPECT(result.blocks == blocks && diags->errors == 0);
    int64_t count = 0;
    for (int64_t i = 0; i < 32 * tiles; i++) count += y[i] != (int32_t)i;
    launch_free(launch);
    return count;
}

int main(void) {
    static const int64_t tiles[] = {0, 1, 2, 3, 5, 6, 17, 40}, blocks[] = {1, 2, 3, 7, 12};
    Arena *arena = arena_new();
    PipecProgram *program = pipec_compile(text, sizeof text - 1, NULL);
    if (EXPECT(program != NULL && program->ptx.text != NULL)) {
        program->manifest->persistent = false;
        for (size_t t = 0; t < COUNT_OF(tiles); t++)
            for (size_t b = 0; b < COUNT_OF(blocks); b++)
                for (uint64_t seed = 0; seed < 4; seed++)
                    EXPECT(wrong(arena, program, tiles[t], blocks[b], seed) == 0);
    }
    pipec_program_free(program);
    arena_free(arena);
    return expect_failures();
}
