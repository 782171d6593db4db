/* mma.sync on random matrices: emulator_mma.def has the checksums of an H200. A launch has 8 blocks
 * of one warp; block t draws its numbers in manner t % 4: small, normal, of all magnitudes, or any
 * bits. All rows are also assembled if ptxas is found. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <stdlib.h>

enum { TRIALS = 8, LANES = 32, STRIDE = 8, MOST_REGISTERS = 32 };

typedef struct Row {
    const char *text;
    int counts[4]; /* registers of D, A, B, C */
    uint64_t sum;
} Row;

static const Row rows[] = {
#define MMA(text, d, a, b, c, sum) {text, {d, a, b, c}, sum},
#include "tests/unit/emulator_mma.def"
#undef MMA
};

/* ---- random numbers -------------------------------------------------------------------------- */

/* A float format; `low` is the type's place among the words of Row.text */
typedef struct Format {
    const char *name;
    int exponent_bits, fraction_bits, bias, each; /* each: elements in a register */
} Format;
static const Format formats[] = {
    {"f16", 5, 10, 15, 2}, {"bf16", 8, 7, 127, 2}, {"tf32", 8, 7, 127, 1},
    {"e4m3", 4, 3, 7, 4},  {"e5m2", 5, 2, 15, 4},  {"f32", 8, 7, 127, 1},
};

static uint32_t hash(uint32_t x) {
    x = (x ^ x >> 16) * 0x7feb352du;
    x = (x ^ x >> 15) * 0x846ca68bu;
    return x ^ x >> 16;
}

static uint32_t element(const Format *format, uint32_t random, int manner) {
    int fraction_bits = format->fraction_bits, most = (1 << format->exponent_bits) - 2,
        span = manner == 1   ? 7
               : manner == 2 ? (format->exponent_bits < 5 ? 13 : 25)
                             : 0;
    uint32_t sign = random & 1, fraction = random >> 1 & ((1u << fraction_bits) - 1),
             magnitude = random >> 24;
    if (manner == 3) return random >> 4 & ((1u << (1 + format->exponent_bits + fraction_bits)) - 1);
    int exponent = format->bias - span / 2 + (span ? (int)(magnitude % (uint32_t)(span + 1)) : 0);
    if (manner == 0) {
        fraction &= ~((1u << (fraction_bits > 2 ? fraction_bits - 2 : 0)) - 1);
        exponent = format->bias + (int)(magnitude & 1);
    }
    exponent = exponent < 0 ? 0 : exponent > most ? most : exponent;
    return sign << (format->exponent_bits + fraction_bits) | (uint32_t)exponent << fraction_bits |
           fraction;
}

static uint32_t float_word(const Format *format, int manner, uint32_t key) {
    uint32_t first = hash(key), second = hash(key ^ 0x9e3779b9u), word = 0;
    if (format->each == 2)
        return element(format, first, manner) | element(format, second, manner) << 16;
    if (format->each == 1) {
        uint32_t upper = element(format, first, manner) << 16;
        return manner == 0 ? upper : upper | (second & 0xffff);
    }
    for (uint32_t i = 0; i < 4; i++) word |= element(format, hash(key + 77 * i), manner) << (8 * i);
    return word;
}

static uint32_t sum_word(int manner, uint32_t key) {
    uint32_t random = hash(key);
    switch (manner) {
    case 0: return (uint32_t)((int32_t)(random % 2000) - 1000);
    case 1: return 0x7fffffffu - (random & 0x3ff);
    case 2: return 0x80000000u + (random & 0x3ff);
    default: return random;
    }
}

static uint64_t double_bits(int manner, uint32_t key) {
    uint32_t first = hash(key), second = hash(key ^ 0x9e3779b9u);
    double value = (double)((int32_t)(first % 64) - 32);
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if (manner == 0) return bits;
    if (manner == 3) return (uint64_t)first << 32 | second;
    uint32_t exponent = 1023 - (manner == 1 ? 4 : 30) + first % (manner == 1 ? 8 : 60);
    return (uint64_t)((second & 1) << 31 | exponent << 20 | first >> 12) << 32 | second;
}

static uint64_t draw(const char *type, bool is_sum, int manner, uint32_t key) {
    if (!strcmp(type, "f64")) return double_bits(manner, key);
    if (!strcmp(type, "s32") && is_sum) return sum_word(manner, key);
    for (size_t i = 0; i < COUNT_OF(formats); i++)
        if (!strcmp(type, formats[i].name)) return float_word(&formats[i], manner, key);
    return hash(key);
}

/* ---- kernels --------------------------------------------------------------------------------- */

/* The types of D, A, B, C: the last four words that are types */
static void find_types(const char *text, char types[4][8]) {
    static const char *const known[] = {"f16", "bf16", "tf32", "e4m3", "e5m2", "f32", "s8",
                                        "u8",  "s4",   "u4",   "b1",   "f64",  "s32"};
    int count = 0;
    for (const char *at = text; at; at = strchr(at, '.') ? strchr(at, '.') + 1 : NULL) {
        size_t length = strcspn(at, ".");
        for (size_t i = 0; i < COUNT_OF(known) && count < 4; i++)
            if (strlen(known[i]) == length && !memcmp(at, known[i], length))
                strcpy(types[count++], known[i]);
    }
    EXPECT(count == 4);
}

static void emit(Str *ptx, const Row *row, size_t index, char types[4][8]) {
    static const char letters[] = "dabc";
    str_printf(ptx,
               ".visible .entry form%zu(.param .u64 in, .param .u64 out)\n.reqntid 32\n{\n"
               "  .reg .b64 %%i, %%o, %%x; .reg .b32 %%t, %%l;\n"
               "  ld.param.u64 %%i, [in]; ld.param.u64 %%o, [out];\n"
               "  mov.u32 %%t, %%ctaid.x; mov.u32 %%l, %%tid.x; mad.lo.u32 %%l, %%t, 32, %%l;\n"
               "  mul.wide.u32 %%x, %%l, %d; add.u64 %%i, %%i, %%x;\n"
               "  mul.wide.u32 %%x, %%l, %d; add.u64 %%o, %%o, %%x;\n",
               index, 8 * MOST_REGISTERS, 8 * STRIDE);
    int at = 0;
    for (int side = 0; side < 4; side++) {
        bool wide = !strcmp(types[side], "f64");
        str_printf(ptx, "  .reg .%s %%%c<8>;\n",
                   wide                          ? "f64"
                   : side % 3                    ? "b32"
                   : !strcmp(types[side], "f32") ? "f32"
                                                 : "b32",
                   letters[side]);
        for (int r = 0; side > 0 && r < row->counts[side]; r++)
            str_printf(ptx, "  ld.global.b%d %%%c%d, [%%i+%d];\n", wide ? 64 : 32, letters[side], r,
                       8 * at++);
    }
    str_printf(ptx, "  mma.sync.aligned.%s ", row->text);
    for (int side = 0; side < 4; side++)
        for (int r = 0; r < row->counts[side]; r++)
            str_printf(ptx, "%s%%%c%d%s",
                       r      ? ", "
                       : side ? ", {"
                              : "{",
                       letters[side], r, r + 1 == row->counts[side] ? "}" : "");
    bool wide = !strcmp(types[0], "f64");
    str_add(ptx, ";\n");
    for (int r = 0; r < row->counts[0]; r++)
        str_printf(ptx, "  st.global.b%d [%%o+%d], %%d%d;\n", wide ? 64 : 32, 8 * r, r);
    str_add(ptx, "  ret;\n}\n");
}

/* The order of the words of D: 8 of 32 bits for each lane; NaN of f64 has no fixed bits. */
static uint64_t checksum(const uint64_t *out, bool wide, int count) {
    uint64_t sum = UINT64_C(0xcbf29ce484222325);
    for (int i = 0; i < TRIALS * LANES; i++)
        for (int word = 0; word < STRIDE; word++) {
            int r = wide ? word / 2 : word;
            uint64_t value = r < count ? out[i * STRIDE + r] : 0;
            bool is_nan = wide && (value & INT64_MAX) > UINT64_C(0x7ff0000000000000);
            if (is_nan) value = UINT64_C(0x7ff8000000000000);
            sum =
                (sum ^ (uint32_t)(value >> (wide ? 32 * (word % 2) : 0))) * UINT64_C(0x100000001b3);
        }
    return sum;
}

static void add_array(Arena *arena, Manifest *manifest, const char *name, ParameterMode mode) {
    vec_push(arena, &manifest->arguments,
             (ManifestArgument){ARGUMENT_POINTER, (int)manifest->parameters.count});
    vec_push(arena, &manifest->parameters,
             (ManifestParameter){.name = name,
                                 .kind = PARAMETER_TENSOR,
                                 .mode = mode,
                                 .type = E_U64,
                                 .rank = 1,
                                 .symbol = -1});
}

static void fill(uint64_t *in, const Row *row, size_t index, char types[4][8]) {
    for (uint32_t t = 0; t < TRIALS; t++)
        for (uint32_t lane = 0; lane < LANES; lane++) {
            uint32_t at = 0, key = ((uint32_t)index << 20) + (t << 14) + lane;
            for (uint32_t side = 1; side < 4; side++)
                for (uint32_t r = 0; r < (uint32_t)row->counts[side]; r++)
                    in[(t * LANES + lane) * MOST_REGISTERS + at++] =
                        draw(types[side], side == 3, t % 4, key + 0x400 * (side - 1) + 32 * r);
        }
}

static void test(const char *ptx, size_t length, size_t index, char types[4][8]) {
    Scratch scratch = scratch_new();
    Manifest manifest = {.kernel = arena_printf(scratch.arena, "form%zu", index), .threads = LANES};
    add_array(scratch.arena, &manifest, "in", MODE_IN);
    add_array(scratch.arena, &manifest, "out", MODE_OUT);
    Array arrays[2];
    int64_t extents[2] = {TRIALS * LANES * MOST_REGISTERS, TRIALS * LANES * STRIDE};
    for (int i = 0; i < 2; i++) EXPECT(array_new(&arrays[i], E_U64, 1, &extents[i]));
    memset(arrays[0].data, 0, arrays[0].bytes);
    fill((uint64_t *)(void *)arrays[0].data, &rows[index], index, types);
    Launch launch = {
        .manifest = &manifest, .ptx = ptx, .ptx_length = length, .arrays = arrays, .tiles = TRIALS};
    EmulatorOptions options = {0};
    RunResult result;
    EXPECT(emulator_run(scratch.arena, &launch, &options, &result, scratch.diags) == RUN_DONE);
    EXPECT_CLEAN(&scratch);
    uint64_t sum = checksum((const uint64_t *)(const void *)arrays[1].data,
                            !strcmp(types[0], "f64"), rows[index].counts[0]);
    if (sum != rows[index].sum) {
        fprintf(stderr, "mma.sync.aligned.%s differs from the GPU\n", rows[index].text);
        failed_expectations++;
    }
    for (int i = 0; i < 2; i++) array_free(&arrays[i]);
    scratch_free(&scratch);
}

int main(void) {
    Scratch scratch = scratch_new();
    static const char head[] = ".version 8.7\n.target sm_90a\n.address_size 64\n";
    Str all = str_new(scratch.arena);
    str_add(&all, head);
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        char types[4][8] = {{0}};
        find_types(rows[i].text, types);
        Str ptx = str_new(scratch.arena);
        str_add(&ptx, head);
        emit(&ptx, &rows[i], i, types);
        str_add(&all, ptx.text + strlen(head));
        test(ptx.text, ptx.length, i, types);
    }
    if (system("command -v ptxas >/dev/null 2>&1") == 0) {
        FILE *pipe = popen("ptxas -w -arch=sm_90a -o /dev/null -", "w");
        if (EXPECT(pipe != NULL)) {
            fwrite(all.text, 1, all.length, pipe);
            EXPECT(pclose(pipe) == 0);
        }
    }
    scratch_free(&scratch);
    return expect_failures();
}
