/* Arguments to a Launch: extents from numbers and shapes, refusals and their messages; nothing
 * stays allocated. */
#include "launch/launch.h"

#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

typedef struct Bench {
    Scratch scratch;
    Manifest *manifest;
    LaunchOptions options;
    char folder[64];
} Bench;

/* Words separated by blanks; those that begin with `--` are fills, those with `~` come from an
 * example. */
static Launch *prepare(Bench *bench, const char *words) {
    Arena *arena = bench->scratch.arena;
    VEC(Argument) arguments = {0};
    char *list = arena_copy(arena, words, strlen(words));
    for (char *state = NULL, *word = strtok_r(list, " ", &state); word != NULL;
         word = strtok_r(NULL, " ", &state)) {
        Argument argument;
        bool example = word[0] == '~';
        word += example;
        bool fine = strncmp(word, "--", 2) == 0
                        ? argument_parse_fill(arena, word + 2, &argument, bench->scratch.diags)
                        : argument_parse(arena, word, &argument, bench->scratch.diags);
        if (!EXPECT(fine)) return NULL;
        argument.from_example = example;
        vec_push(arena, &arguments, argument);
    }
    return launch_prepare(arena, bench->manifest, "", 0, arguments.items, arguments.count,
                          &bench->options, bench->scratch.diags);
}

static const char *file(Bench *bench, const char *name, Element type, int rank,
                        const int64_t *extents) {
    Array array;
    const char *path = arena_printf(bench->scratch.arena, "%s/%s", bench->folder, name);
    if (!EXPECT(array_new(&array, type, rank, extents))) return path;
    memset(array.data, 0, array.bytes);
    for (int64_t i = 0; i < array.count && type == E_F32; i++)
        element_store(type, array.data + 4 * i, (double)i);
    EXPECT(npy_write(bench->scratch.arena, path, &array, bench->scratch.diags));
    array_free(&array);
    return path;
}

static void refused(Bench *bench, const char *words, Code code, const char *text) {
    EXPECT(prepare(bench, words) == NULL);
    EXPECT_ERROR(&bench->scratch, code, text);
}

/* ---- accepted -------------------------------------------------------------------------------- */

static void defaults(Bench *bench) {
    Launch *launch = prepare(bench, "N=5000 M=3 a=0.1 n=7");
    if (!EXPECT(launch != NULL)) return;
    EXPECT_CLEAN(&bench->scratch);
    EXPECT(launch->symbols[SAMPLE_N] == 5000 && launch->symbols[SAMPLE_M] == 3 &&
           launch->symbols[SAMPLE_n] == 7);
    EXPECT(launch->tiles == 2 && launch->watchdog_ns == 123);
    EXPECT(launch->scalars[SAMPLE_a].number == (double)0.1f &&
           launch->scalars[SAMPLE_n_parameter].integer == 7);
    EXPECT(launch->arrays[SAMPLE_X].count == 5000 && launch->arrays[SAMPLE_A].rank == 2 &&
           launch->arrays[SAMPLE_A].extents[1] == 8);
    EXPECT(launch->arrays[SAMPLE_X].type == E_F32 && launch->arrays[SAMPLE_a].block == NULL);
    EXPECT(memcmp(launch->arrays[SAMPLE_X].data, launch->arrays[SAMPLE_Y].data, 64) != 0);
    for (size_t i = 0; i < 3 * 4; i++) EXPECT(launch->arrays[SAMPLE_Z].data[i] == 0xA5);
    EXPECT(launch_guards(launch, bench->scratch.diags));
    launch_free(launch);
    launch_free(NULL);
}

static void guards(Bench *bench) {
    Launch *launch = prepare(bench, "N=5 M=3 a=0.1 n=7");
    if (!EXPECT(launch != NULL)) return;
    launch->arrays[SAMPLE_Y].data[-3] = 1;
    EXPECT(!launch_guards(launch, bench->scratch.diags));
    EXPECT_ERROR(&bench->scratch, P0619, "byte 3 before the first element of `Y`");
    launch->arrays[SAMPLE_Y].data[-3] = GUARD_BYTE;
    launch->arrays[SAMPLE_Z].data[12 + 4095] = 1;
    EXPECT(!launch_guards(launch, bench->scratch.diags));
    EXPECT_ERROR(&bench->scratch, P0619, "byte 4096 after the last element of `Z`");
    launch_free(launch);
}

static void shapes(Bench *bench) {
    const char *x = file(bench, "x.npy", E_F32, 1, (const int64_t[]){9}),
               *a = file(bench, "a.npy", E_BF16, 2, (const int64_t[]){4, 8});
    Arena *arena = bench->scratch.arena;
    Launch *launch = prepare(bench, arena_printf(arena, "X=%s A=%s a=1 n=0", x, a));
    if (EXPECT(launch != NULL)) {
        EXPECT(launch->symbols[SAMPLE_N] == 9 && launch->symbols[SAMPLE_M] == 4);
        EXPECT(element_load(E_F32, launch->arrays[SAMPLE_X].data + 8 * 4) == 8);
        launch_free(launch);
    }
    /* The user's data has precedence over the example's extent, and the user's number over the
     * example's */
    launch = prepare(bench, arena_printf(arena, "~N=5000 ~M=7 ~a=1 ~n=3 X=%s n=4", x));
    if (EXPECT(launch != NULL)) {
        EXPECT(launch->symbols[SAMPLE_N] == 9 && launch->symbols[SAMPLE_M] == 7 &&
               launch->symbols[SAMPLE_n] == 4);
        launch_free(launch);
    }
    launch = prepare(bench, arena_printf(arena, "N=9 X=%s M=0 a=1 n=3 ~--X=iota --Y=iota", x));
    if (EXPECT(launch != NULL)) {
        EXPECT(launch->arrays[SAMPLE_A].count == 0 &&
               element_load(E_F32, launch->arrays[SAMPLE_Y].data + 4) == 1);
        launch_free(launch);
    }
    EXPECT_CLEAN(&bench->scratch);
    refused(bench, arena_printf(arena, "X=%s M=2 N=8 a=1 n=1", x), P0604,
            "extents `N` disagree: 8 by `N=8`, 9 by axis 0 of `X` in");
    refused(bench,
            arena_printf(arena, "X=%s M=2 Y=%s a=1 n=1", x,
                         file(bench, "y.npy", E_F32, 1, (const int64_t[]){8})),
            P0604, "9 by axis 0 of `X` in");
    refused(bench,
            arena_printf(arena, "A=%s N=2 a=1 n=1",
                         file(bench, "w.npy", E_BF16, 2, (const int64_t[]){4, 9})),
            P0604, "axis 1 of `A` is `8`, but 9 in");
    refused(bench, arena_printf(arena, "X=%s M=2 a=1 n=1", a), P0615, "but `X` is f32 (`<f4`)");
    refused(bench,
            arena_printf(arena, "A=%s N=2 a=1 n=1",
                         file(bench, "v.npy", E_BF16, 1, (const int64_t[]){4})),
            P0617, "has 1 axis, but `A` has 2");
    refused(bench, "X=data.txt M=2 a=1 n=1", P0611, "data.txt");
}

/* ---- refused --------------------------------------------------------------------------------- */

static void names(Bench *bench) {
    refused(bench, "NN=5 N=5 M=3 a=1 n=1", P0601, "did you mean `N`?");
    refused(bench, "alpha=5 N=5 M=3 a=1 n=1", P0601,
            "it has `N`, `M`, `X`, `Y`, `A`, `Z`, `a`, `n`");
    refused(bench, "N=5 N=6 M=3 a=1 n=1", P0602, "`N` is given twice");
    refused(bench, "N=5 M=3 a=1 a=1 n=1", P0602, "`a` is given twice");
    refused(bench, "N=5 M=3 a=1 n=1 --X=iota --X=zeros", P0602, "`X` is given twice");
    refused(bench, "N=5 M=3 n=1", P0603, "no value for scalar `a` of `axpy`");
    refused(bench, "N=5", P0603, "no value for extent `M`, scalar `a`, scalar `n` of `axpy`");
    refused(bench, "N=5", P0603, "`pipec run axpy.pipe axpy M=1024 a=1 n=1`");
    refused(bench, "X=3 N=5 M=3 a=1 n=1", P0607, "`--fill X=3`");
    refused(bench, "N=five M=3 a=1 n=1", P0607, "`N` is an extent, but `five` is not a number");
    refused(bench, "N=5 M=3 a=b.npy n=1", P0607,
            "`a` is a scalar of type f32, but `b.npy` is not a number");
    refused(bench, "N=5 M=3 a=1 --a=iota n=1", P0602, "`a` is given twice");
    refused(bench, "N=5 M=3 --a=iota n=1", P0607, "fills are only for tensors");
    refused(bench, "N=5 M=3 a=1 n=1 --Z=zeros", P0607, "`--save Z=FILE.npy`");
}

static void values(Bench *bench) {
    refused(bench, "N=-1 M=3 a=1 n=1", P0605, "cannot be -1");
    refused(bench, "N=2147483648 M=3 a=1 n=1", P0605, "2147483648");
    refused(bench, "N=2.5 M=3 a=1 n=1", P0605, "2.5");
    refused(bench, "N=1e30 M=3 a=1 n=1", P0605, "1e30");
    refused(bench, "N=5 M=3 a=1 n=300", P0606, "300 does not fit `n`: u8 is 0 to 255");
    refused(bench, "N=5 M=3 a=1 n=-1", P0606, "-1 does not fit");
    refused(bench, "N=5 M=3 a=1 n=2.5", P0606, "2.5 does not fit `n`: u8 holds integers");
    refused(bench, "N=5 M=3 a=1e39 n=1", P0606,
            "1e39 does not fit `a`: the largest f32 is 3.40282347e+38");
    refused(bench, "N=5 M=3 a=1e-46 n=1", P0606, "1e-46 does not fit `a`: it rounds to 0 in f32");
    refused(bench, "N=5 M=3 a=1 n=1 --X=-1e-60", P0606,
            "-1e-60 does not fit `X`: it rounds to 0 in f32");
    refused(bench, "N=5 M=3 a=1 n=1 --X=1e39", P0606, "1e39 does not fit `X`");
    bench->manifest->parameters.items[SAMPLE_X].type = E_I8;
    refused(bench, "N=5 M=3 a=1 n=1 --X=128", P0606, "128 does not fit `X`: i8 is -128 to 127");
    refused(bench, "N=5 M=3 a=1 n=1 --X=0.5", P0606, "0.5 does not fit `X`: i8 holds integers");
    bench->manifest->parameters.items[SAMPLE_X].type = E_E4M3;
    refused(bench, "N=5 M=3 a=1 n=1 --X=449", P0606, "the largest e4m3 is 448");
    refused(bench, "N=5 M=3 a=1 n=1 --X=inf", P0606, "inf does not fit");
    bench->manifest->parameters.items[SAMPLE_X].type = E_F32;
    Launch *launch = prepare(bench, "N=5 M=3 a=inf n=255 --X=nan");
    EXPECT(launch != NULL && isinf(launch->scalars[SAMPLE_a].number));
    launch_free(launch);
    EXPECT_CLEAN(&bench->scratch);
}

static void preconditions(Bench *bench) {
    refused(bench, "N=1 M=3 a=1 n=1", P0608, "`N >= 2` must hold for a launch of `axpy`");
    refused(bench, "N=1 M=3 a=1 n=1", P0608, "here `N` = 1");
    refused(bench, "N=1 M=3 a=1 n=1", P0608, "give more elements");
    refused(bench, "N=1 M=3 a=1 n=1", P0608, "axpy.pipe:2:5");
    static const FormulaStep divides[] = {{F_CONST, 8}, {F_SYMBOL, SAMPLE_M}, {F_DIV, 0}};
    const Formula old = bench->manifest->preconditions.items[0].condition;
    bench->manifest->preconditions.items[0].condition = (Formula){divides, 3};
    refused(bench, "N=1 M=0 a=1 n=1", P0608, "divides by zero");
    bench->manifest->preconditions.items[0].condition = old;
    static const FormulaStep many[] = {{F_SYMBOL, SAMPLE_N}, {F_CONST, INT32_MAX}, {F_MUL, 0}};
    const Formula tiles = bench->manifest->tiles;
    bench->manifest->tiles = (Formula){many, 3};
    refused(bench, "N=5 M=1 a=1 n=1", P0609, "`N * 2147483647`, exceeds 2146435072");
    bench->manifest->tiles = tiles;
}

static void memory(Bench *bench) {
    bench->options.memory_limit = 100000;
    refused(bench, "N=100000 M=3 a=1 n=1", P0610,
            "take 813.3 KiB of host memory, but 97.7 KiB are allowed");
    refused(bench, "N=100000 M=3 a=1 n=1", P0610, "`X` 390.6 KiB, `Y` 390.6 KiB");
    bench->options.memory_limit = 0;
    bench->manifest->parameters.items[SAMPLE_A].rank = 5;
    static const FormulaStep n[] = {{F_SYMBOL, SAMPLE_N}};
    for (int axis = 1; axis < 5; axis++)
        bench->manifest->parameters.items[SAMPLE_A].extents[axis] = (Formula){n, 1};
    refused(bench, "N=2146435072 M=3 a=1 n=1", P0609, "the size of `A` does not fit 64 bits");
    /* More than any machine has, but a valid number: refused before anything is touched */
    refused(bench, "N=30000 M=1 a=1 n=1", P0610, "are free");
    bench->manifest->parameters.items[SAMPLE_A].rank = 2;
    static const FormulaStep eight[] = {{F_CONST, 8}};
    bench->manifest->parameters.items[SAMPLE_A].extents[1] = (Formula){eight, 1};
}

/* ---- the two other entry points -------------------------------------------------------------- */

static void symbols_only(Bench *bench) {
    const Argument arguments[] = {{.name = "N",
                                   .kind = ARGUMENT_NUMBER,
                                   .value = {.number = 9, .integer = 9, .is_integer = true}},
                                  {.name = "M",
                                   .kind = ARGUMENT_NUMBER,
                                   .value = {.number = 2, .integer = 2, .is_integer = true}},
                                  {.name = "a",
                                   .kind = ARGUMENT_NUMBER,
                                   .value = {.number = 2, .integer = 2, .is_integer = true}},
                                  {.name = "n",
                                   .kind = ARGUMENT_NUMBER,
                                   .value = {.number = 5, .integer = 5, .is_integer = true}}};
    int64_t symbols[3] = {0};
    EXPECT(launch_symbols(bench->scratch.arena, bench->manifest, arguments, 4, symbols,
                          bench->scratch.diags));
    EXPECT(symbols[0] == 9 && symbols[1] == 2 && symbols[2] == 5);
    EXPECT_CLEAN(&bench->scratch);
    EXPECT(!launch_symbols(bench->scratch.arena, bench->manifest, arguments, 3, symbols,
                           bench->scratch.diags));
    EXPECT_ERROR(&bench->scratch, P0603, "`n`");
}

static void example_array(Bench *bench) {
    const double values[] = {1, 2, 3, 300};
    Argument arguments[] = {{.name = "N",
                             .kind = ARGUMENT_NUMBER,
                             .value = {.number = 4, .integer = 4, .is_integer = true}},
                            {.name = "M",
                             .kind = ARGUMENT_NUMBER,
                             .value = {.number = 2, .integer = 2, .is_integer = true}},
                            {.name = "a",
                             .kind = ARGUMENT_NUMBER,
                             .value = {.number = 2, .integer = 2, .is_integer = true}},
                            {.name = "n",
                             .kind = ARGUMENT_NUMBER,
                             .value = {.number = 5, .integer = 5, .is_integer = true}},
                            {.name = "X",
                             .kind = ARGUMENT_FILL,
                             .fill = {.kind = FILL_ARRAY, .values = values, .count = 4}}};
    Launch *launch = launch_prepare(bench->scratch.arena, bench->manifest, "", 0, arguments, 5,
                                    &bench->options, bench->scratch.diags);
    if (EXPECT(launch != NULL)) {
        EXPECT(element_load(E_F32, launch->arrays[SAMPLE_X].data + 12) == 300);
        launch_free(launch);
    }
    arguments[4].fill.count = 3;
    EXPECT(launch_prepare(bench->scratch.arena, bench->manifest, "", 0, arguments, 5,
                          &bench->options, bench->scratch.diags) == NULL);
    EXPECT_ERROR(&bench->scratch, P0604, "3 values are given for the 4 elements of `X`");
}

static void bound(Bench *bench) {
    DeviceArgument arguments[6] = {{.extents = {5000}},
                                   {.extents = {5000}},
                                   {.extents = {3, 8}},
                                   {.extents = {3}},
                                   [SAMPLE_n_parameter] = {.scalar = {7, 7}}};
    int64_t symbols[3], tiles;
    Scratch *scratch = &bench->scratch;
    EXPECT(launch_bind(bench->manifest, arguments, symbols, &tiles, scratch->diags));
    EXPECT(symbols[0] == 5000 && symbols[1] == 3 && symbols[2] == 7 && tiles == 2);
    EXPECT_CLEAN(scratch);
    arguments[1].extents[0] = 4999;
    EXPECT(!launch_bind(bench->manifest, arguments, symbols, &tiles, scratch->diags));
    EXPECT_ERROR(scratch, P0604,
                 "extents `N` disagree: axis 0 of `X` is 5000, axis 0 of `Y` is 4999");
    arguments[1].extents[0] = 5000, arguments[2].extents[1] = 7;
    EXPECT(!launch_bind(bench->manifest, arguments, symbols, &tiles, scratch->diags));
    EXPECT_ERROR(scratch, P0604, "axis 1 of `A` has 7 elements, but its extent is `8`");
    arguments[2].extents[1] = 8, arguments[0].extents[0] = arguments[1].extents[0] = 1;
    EXPECT(!launch_bind(bench->manifest, arguments, symbols, &tiles, scratch->diags));
    EXPECT_ERROR(scratch, P0608, "at axpy.pipe:2:5");
    arguments[0].extents[0] = -1;
    EXPECT(!launch_bind(bench->manifest, arguments, symbols, &tiles, scratch->diags));
    scratch->diags = diags_new(scratch->arena, NULL);
}

static void packed(void) {
    unsigned char out[8];
    float single;
    Scalar third = {1.0 / 3, 0}, minus = {-1, -1}, large = {0, INT64_MAX};
    EXPECT(scalar_pack(E_F32, &third, out) == 4 && (memcpy(&single, out, 4), single == 1.0f / 3));
    EXPECT(scalar_pack(E_F16, &third, out) == 4 &&
           (memcpy(&single, out, 4), single == 0x1.554p-2f));
    EXPECT(scalar_pack(E_I8, &minus, out) == 4 && memcmp(out, "\xFF\xFF\xFF\xFF", 4) == 0);
    EXPECT(scalar_pack(E_I64, &large, out) == 8 && out[7] == 0x7F);
    static const char *const names[E_COUNT] = {
        [E_F32] = "f32",  [E_TF32] = "f32", [E_F16] = "f32", [E_BF16] = "f32", [E_E4M3] = "f32",
        [E_E5M2] = "f32", [E_I8] = "s32",   [E_U8] = "s32",  [E_I32] = "s32",  [E_U32] = "u32",
        [E_I64] = "s64",  [E_U64] = "u64",  [E_BOOL] = "s32"};
    for (int type = 0; type < E_COUNT; type++)
        EXPECT(strcmp(scalar_passed((Element)type), names[type]) == 0);
}

int main(void) {
    Bench bench = {.scratch = scratch_new(),
                   .options = {.seed = 1, .watchdog_ns = 123},
                   .folder = "/tmp/pipec-launch-XXXXXX"};
    if (!EXPECT(mkdtemp(bench.folder) != NULL)) return 1;
    bench.manifest = sample_manifest(bench.scratch.arena);
    bench.scratch.diags = diags_new(bench.scratch.arena, bench.manifest->source);
    defaults(&bench);
    guards(&bench);
    shapes(&bench);
    names(&bench);
    values(&bench);
    preconditions(&bench);
    memory(&bench);
    symbols_only(&bench);
    example_array(&bench);
    bench.scratch.diags = diags_new(bench.scratch.arena, NULL);
    bound(&bench);
    packed();
    EXPECT(system(arena_printf(bench.scratch.arena, "rm -r %s", bench.folder)) == 0);
    scratch_free(&bench.scratch);
    return expect_failures();
}
