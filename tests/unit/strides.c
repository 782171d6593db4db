/* Strides of tensors at a launch: what a kernel accepts, the symbols that it gets, and the message
 * for what it refuses. */
#include "launch/launch.h"

#include "tests/unit/expect.h"
#include "tests/unit/sample.h"

#define RANK 3

typedef struct Case {
    const char *refused; /* NULL: accepted */
    ParameterMode mode;
    uint32_t alignment, joined;
    bool mapped;
    int64_t extents[RANK], strides[RANK]; /* f32 */
    int64_t wanted[RANK - 1];             /* symbols */
} Case;

static const Case cases[] = {
    {NULL, MODE_OUT, 0, 0, false, {5, 4, 6}, {24, 6, 1}, {24, 6}},
    {NULL, MODE_OUT, 16, 0, true, {5, 4, 6}, {64, 8, 1}, {64, 8}},
    {NULL, MODE_OUT, 0, 0, false, {5, 4, 6}, {7, 35, 1}, {7, 35}}, /* other order of axes */
    {NULL, MODE_IN, 0, 0, false, {5, 4, 6}, {0, 6, 1}, {0, 6}},
    {NULL, MODE_IN, 0, 0, false, {5, 4, 6}, {1, 1, 1}, {1, 1}},
    {NULL, MODE_OUT, 16, 0, true, {1, 4, 6}, {-1, 8, 1}, {4, 8}},
    {NULL, MODE_OUT, 8, 3, true, {5, 1, 6}, {6, 0, 1}, {6, 4}},
    {NULL, MODE_OUT, 16, 0, true, {5, 4, 1}, {16, 4, 9}, {16, 4}},
    {NULL, MODE_OUT, 16, 3, true, {0, 4, 6}, {0, -1, 7}, {4, 4}},
    {"last axis must be adjacent", MODE_IN, 0, 0, false, {5, 4, 6}, {48, 12, 2}, {0, 0}},
    {"axis 1 is negative", MODE_IN, 0, 0, false, {5, 4, 6}, {24, -6, 1}, {0, 0}},
    {"axis 0 is not below 2^40", MODE_IN, 0, 0, false, {5, 4, 6}, {INT64_MAX, 6, 1}, {0, 0}},
    {"axis 0 is not below 2^40", MODE_IN, 0, 0, false, {5, 4, 6}, {1LL << 38, 6, 1}, {0, 0}},
    {"cannot repeat axis 0", MODE_IN, 16, 0, true, {5, 4, 6}, {0, 8, 1}, {0, 0}},
    {"axis 1 is 24 bytes, but must be a multiple of 16",
     MODE_IN,
     16,
     0,
     true,
     {5, 4, 6},
     {24, 6, 1},
     {0, 0}},
    {"axis 1 without gaps", MODE_IN, 0, 2, false, {5, 4, 6}, {64, 8, 1}, {0, 0}},
    {"axis 0 without gaps", MODE_IN, 0, 1, false, {5, 4, 6}, {33, 8, 1}, {0, 0}},
    {NULL, MODE_IN, 0, 1, false, {5, 4, 6}, {32, 8, 1}, {32, 8}},
    {"are at one place", MODE_OUT, 0, 0, false, {5, 4, 6}, {0, 6, 1}, {0, 0}},
    {"are at one place", MODE_INOUT, 0, 0, false, {5, 4, 6}, {24, 5, 1}, {0, 0}},
    {"are at one place", MODE_OUT, 0, 0, false, {5, 4, 6}, {23, 6, 1}, {0, 0}},
    {"more than 2^58", MODE_IN, 0, 0, false, {2146435072, 4, 6}, {1LL << 37, 6, 1}, {0, 0}},
    {"axis 1 is not below 2^32 elements",
     MODE_IN,
     0,
     0,
     false,
     {5, 4, 6},
     {6, 1LL << 32, 1},
     {0, 0}},
    {NULL, MODE_IN, 0, 0, false, {5, 4, 6}, {1LL << 37, UINT32_MAX, 1}, {1LL << 37, UINT32_MAX}},
};

static Formula constant(Arena *arena, int64_t value) {
    FormulaStep *step = NEW(arena, FormulaStep);
    *step = (FormulaStep){F_CONST, value};
    return (Formula){step, 1};
}

static Manifest manifest_of(Arena *arena, const Case *c) {
    Manifest manifest = {.kernel = "k"};
    ManifestParameter parameter = {.name = "A",
                                   .mode = c->mode,
                                   .type = E_F32,
                                   .rank = RANK,
                                   .stride_alignment = c->alignment,
                                   .joined = c->joined};
    for (int axis = 0; axis < RANK; axis++)
        parameter.extents[axis] = constant(arena, c->extents[axis]);
    vec_push(arena, &manifest.symbols, ((ManifestSymbol){.name = "N", .is_extent = true}));
    for (int axis = 0; axis + 1 < RANK; axis++)
        vec_push(arena, &manifest.symbols, ((ManifestSymbol){.is_stride = true, .axis = axis}));
    vec_push(arena, &manifest.parameters, parameter);
    if (c->mapped) vec_push(arena, &manifest.maps, (ManifestMap){.rank = RANK});
    return manifest;
}

static void each(void) {
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Scratch scratch = scratch_new();
        const Case *c = &cases[i];
        Manifest manifest = manifest_of(scratch.arena, c);
        DeviceArgument argument = {.strided = true};
        memcpy(argument.strides, c->strides, sizeof c->strides);
        int64_t symbols[RANK] = {77};
        strides_set(&manifest, &argument, symbols);
        EXPECT(launch_strides(&manifest, &argument, symbols, scratch.diags) ==
               (c->refused == NULL));
        if (c->refused != NULL) {
            EXPECT_ERROR(&scratch, P0621, c->refused);
        } else {
            EXPECT_CLEAN(&scratch);
            EXPECT(symbols[0] == 77);
            for (int s = 0; s + 1 < RANK; s++) EXPECT(symbols[s + 1] == c->wanted[s]);
        }
        scratch_free(&scratch);
    }
}

/* ---- conditions over strides ----------------------------------------------------------------- */

/* X: f32[M, K], which the copy engine loads; a pitch of 0: no gaps */
typedef struct Loaded {
    Code code; /* CODE_COUNT: accepted */
    int64_t m, k, pitch, wanted;
} Loaded;

static const Loaded loads[] = {
    {CODE_COUNT, 5, 28, 0, 28}, {P0608, 5, 29, 0, 0},        {P0608, 5, 29, 29, 0},
    {P0621, 5, 29, 30, 0},      {CODE_COUNT, 5, 29, 32, 32}, {CODE_COUNT, 1, 29, 0, 4},
    {CODE_COUNT, 0, 29, 0, 4},  {CODE_COUNT, 5, 0, 0, 4},    {P0608, 5, 1, 0, 0},
    {CODE_COUNT, 5, 1, 4, 4},
};

static Manifest loaded_manifest(Arena *arena) {
    static const FormulaStep m[] = {{F_SYMBOL, 0}}, k[] = {{F_SYMBOL, 1}}, one[] = {{F_CONST, 1}};
    static const FormulaStep condition[] = {
        {F_SYMBOL, 2}, {F_SYMBOL, 1}, {F_NE, 0},    {F_SYMBOL, 2}, {F_CONST, 4}, {F_MUL, 0},
        {F_CONST, 16}, {F_MOD, 0},    {F_CONST, 0}, {F_EQ, 0},     {F_OR, 0}};
    Manifest manifest = {.kernel = "k", .tiles = {one, 1}};
    vec_push(arena, &manifest.symbols, ((ManifestSymbol){.name = "M", .is_extent = true}));
    vec_push(arena, &manifest.symbols, ((ManifestSymbol){.name = "K", .is_extent = true}));
    vec_push(arena, &manifest.symbols, ((ManifestSymbol){.name = "X.stride0", .is_stride = true}));
    ManifestParameter x = {.name = "X", .type = E_F32, .rank = 2, .stride_alignment = 16};
    x.extents[0] = (Formula){m, 1}, x.extents[1] = (Formula){k, 1};
    vec_push(arena, &manifest.parameters, x);
    vec_push(arena, &manifest.maps, (ManifestMap){.rank = 2});
    vec_push(arena, &manifest.preconditions,
             ((ManifestPrecondition){{condition, 11}, "K * 4 % 16 == 0", NULL, NULL, {0, 0}}));
    return manifest;
}

static void conditions(void) {
    for (size_t i = 0; i < COUNT_OF(loads); i++) {
        Scratch scratch = scratch_new();
        const Loaded *it = &loads[i];
        Manifest manifest = loaded_manifest(scratch.arena);
        DeviceArgument x = {.pointer = 4096,
                            .extents = {it->m, it->k},
                            .strides = {it->pitch, 1},
                            .strided = it->pitch > 0};
        int64_t symbols[3], tiles;
        bool fine = launch_bind(&manifest, &x, symbols, &tiles, scratch.diags);
        if (!EXPECT(fine == (it->code == CODE_COUNT))) fprintf(stderr, "load %zu\n", i);
        if (it->code == P0608) EXPECT_ERROR(&scratch, P0608, "`K * 4 % 16 == 0` must hold");
        if (it->code == P0621)
            EXPECT_ERROR(&scratch, P0621, "pass a copy with gaps after its rows");
        if (fine) EXPECT(symbols[2] == it->wanted);
        scratch_free(&scratch);
    }
}

/* ---- memory that tensors share --------------------------------------------------------------- */

/* Matrices of f32; a pitch of 0: no gaps */
typedef struct Pair {
    bool shared;
    ParameterMode modes[2];
    uint64_t at[2];
    int64_t extents[2][2], pitches[2];
} Pair;

#define OUTPUT                                                                                     \
    { MODE_IN, MODE_OUT }

static const Pair pairs[] = {
    {true, OUTPUT, {4096, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {true, {MODE_INOUT, MODE_IN}, {4096, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {true, {MODE_OUT, MODE_OUT}, {4096, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {false, {MODE_IN, MODE_IN}, {4096, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {true, OUTPUT, {4096, 4096 + 255}, {{8, 8}, {8, 8}}, {0, 0}}, /* one byte */
    {true, OUTPUT, {4096 + 255, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {false, OUTPUT, {4096, 4096 + 256}, {{8, 8}, {8, 8}}, {0, 0}},
    {false, OUTPUT, {4096 + 256, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {false, OUTPUT, {4096, 4096}, {{8, 8}, {0, 8}}, {0, 0}}, /* no elements */
    {false, OUTPUT, {4096, 4096}, {{8, 0}, {8, 8}}, {0, 0}},
    {false, OUTPUT, {0, 0}, {{8, 8}, {8, 8}}, {0, 0}},              /* refused as null */
    {false, OUTPUT, {4096, 4096 + 32}, {{8, 8}, {8, 8}}, {16, 16}}, /* halves */
    {false, OUTPUT, {4096 + 32, 4096}, {{8, 8}, {8, 8}}, {16, 16}},
    {true, OUTPUT, {4096, 4096 + 28}, {{8, 8}, {8, 8}}, {16, 16}},
    {true, OUTPUT, {4096 + 28, 4096}, {{8, 8}, {8, 8}}, {16, 16}},
    {false, OUTPUT, {4096, 4096 + 32}, {{8, 8}, {4, 8}}, {16, 32}}, /* every second row */
    {true, OUTPUT, {4096, 4096 + 32}, {{8, 8}, {8, 8}}, {16, 24}},
    {true, OUTPUT, {4096, 4096 + 32}, {{8, 8}, {1, 12}}, {16, 0}}, /* longer than a gap */
    {false, OUTPUT, {4096, 4096 + 32}, {{8, 8}, {1, 8}}, {16, 0}},
    {false, OUTPUT, {4096, 4096 + 480}, {{8, 8}, {8, 8}}, {16, 0}}, /* ends before it */
    {true, OUTPUT, {4096, 4096 + 476}, {{8, 8}, {8, 8}}, {16, 0}},
    {false, OUTPUT, {UINT64_MAX - 255, 4096}, {{8, 8}, {8, 8}}, {0, 0}},
    {true, OUTPUT, {UINT64_MAX - 255, UINT64_MAX - 8}, {{8, 8}, {8, 8}}, {0, 0}},
    {true, {MODE_OUT, MODE_IN}, {4096 + 64, 4096}, {{1, 8}, {8, 64}}, {0, 0}},
    {true, OUTPUT, {4096, 4096 + 4}, {{8, 1}, {8, 8}}, {0, 64}}, /* a column, gathered */
};

static void share(void) {
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        Scratch scratch = scratch_new();
        const Pair *pair = &pairs[i];
        Manifest manifest = {.kernel = "k"};
        DeviceArgument arguments[2] = {{0}};
        for (int at = 0; at < 2; at++) {
            ManifestParameter row = {
                .name = at > 0 ? "B" : "A", .mode = pair->modes[at], .type = E_F32, .rank = 2};
            for (int axis = 0; axis < 2; axis++)
                row.extents[axis] = constant(scratch.arena, pair->extents[at][axis]);
            vec_push(scratch.arena, &manifest.parameters, row);
            arguments[at] = (DeviceArgument){.pointer = pair->at[at],
                                             .strides = {pair->pitches[at], 1},
                                             .strided = pair->pitches[at] > 0};
        }
        if (!EXPECT(launch_strides(&manifest, arguments, NULL, scratch.diags) == !pair->shared))
            fprintf(stderr, "pair %zu\n", i);
        if (pair->shared)
            EXPECT_ERROR(&scratch, P0622, "is written, but shares memory with");
        else
            EXPECT_CLEAN(&scratch);
        scratch_free(&scratch);
    }
}

/* ---- gaps ------------------------------------------------------------------------------------ */

/* Without strides, and in an image with gaps */
static void gaps(void) {
    Scratch scratch = scratch_new();
    int64_t extents[] = {3, 2, 5}, strides[MAX_RANK] = {6, 18, 1};
    Manifest manifest = {.kernel = "k"};
    Array array;
    if (!EXPECT(array_new(&array, E_F32, 3, extents) && array_stride(&array, strides))) return;
    for (int64_t i = 0; i < array.count; i++) element_store(E_F32, array.data + 4 * i, (double)i);
    vec_push(scratch.arena, &manifest.parameters, (ManifestParameter){.name = "A"});
    Launch launch = {.manifest = &manifest, .arrays = &array};
    launch_scatter(&launch);
    ArrayMemory memory = array_memory(&array);
    EXPECT(memory.bytes == 2 * 24 + 72 + 4 * 4 + 4);
    EXPECT(element_load(E_F32, memory.data + 2 * 24 + 72 + 4 * 4) == 29);
    element_store(E_F32, memory.data + 24, 100);
    launch_gather(&launch);
    EXPECT(element_load(E_F32, array.data + 4 * 10) == 100 &&
           element_load(E_F32, array.data + 4 * 29) == 29);
    EXPECT(launch_guards(&launch, scratch.diags));
    EXPECT_CLEAN(&scratch);
    launch_scatter(&launch);
    memory.data[21] = 1;
    launch_gather(&launch);
    EXPECT(!launch_guards(&launch, scratch.diags));
    EXPECT_ERROR(&scratch, P0619, "between the rows of `A`, to byte 21 after its first element");
    array_free(&array);
    scratch_free(&scratch);
}

int main(void) {
    each();
    conditions();
    share();
    gaps();
    return expect_failures();
}
