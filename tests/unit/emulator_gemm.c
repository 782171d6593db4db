/* A complete GEMM as people write them for the GPU (tests/emulator/programs/gemm.ptx: tensor
 * copies with multicast, clusters with remote arrivals, wgmma with delayed waits, stmatrix,
 * setmaxnreg) compared with f64, on several schedules; and its time. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <math.h>
#include <time.h>

#ifdef __SANITIZE_ADDRESS__
#define SANITIZED 1
#else
#define SANITIZED 0
#endif

static const char *read_text(Arena *arena, const char *file, size_t *length) {
    FILE *in = fopen(file, "rb");
    if (!EXPECT(in != NULL)) return NULL;
    char *text = arena_alloc(arena, 1 << 18);
    *length = fread(text, 1, (1 << 18) - 1, in);
    fclose(in);
    return text;
}

static Formula constant_formula(Arena *arena, int64_t value) {
    FormulaStep *step = NEW(arena, FormulaStep);
    *step = (FormulaStep){F_CONST, value};
    return (Formula){step, 1};
}

static void add_tensor(Arena *arena, Manifest *manifest, Array *array, const char *name,
                       ParameterMode mode, int64_t rows, int64_t columns, uint32_t box_rows) {
    int index = (int)manifest->parameters.count;
    ManifestParameter parameter = {.name = name,
                                   .kind = PARAMETER_TENSOR,
                                   .mode = mode,
                                   .type = E_BF16,
                                   .rank = 2,
                                   .symbol = -1,
                                   .alignment = 128};
    ManifestMap map = {.parameter = index,
                       .type = E_BF16,
                       .rank = 2,
                       .box = {64, box_rows},
                       .swizzle = SWIZZLE_128};
    map.extents[0] = constant_formula(arena, columns);
    map.extents[1] = constant_formula(arena, rows);
    map.strides[0] = constant_formula(arena, 2);
    map.strides[1] = constant_formula(arena, 2 * columns);
    vec_push(arena, &manifest->parameters, parameter);
    vec_push(arena, &manifest->maps, map);
    vec_push(arena, &manifest->arguments, (ManifestArgument){ARGUMENT_TENSOR_MAP, index});
    EXPECT(array_new(array, E_BF16, 2, (int64_t[]){rows, columns}));
}

static double *values_of(Arena *arena, const Array *array) {
    double *values = NEW_ARRAY(arena, double, (size_t)array->count);
    for (int64_t i = 0; i < array->count; i++)
        values[i] = element_load(E_BF16, array->data + 2 * i);
    return values;
}

/* Values that encode their position, so that a wrong position gives a wrong value; or random
 * ones. */
static void fill(Array *array, bool random, uint32_t seed) {
    uint64_t state = seed * 2654435761u + 1;
    for (int64_t i = 0; i < array->count; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int64_t row = i / array->extents[1], column = i % array->extents[1];
        double coded = (double)((row * 5 + column * 3 + row / 64 + column / 64 + seed) % 13 - 6);
        double drawn = (double)(state >> 40) / (1 << 23) - 1;
        element_store(E_BF16, array->data + 2 * i, random ? drawn : coded);
    }
}

static void check(Arena *arena, const Array *a, const Array *b, const Array *c, uint64_t seed) {
    const double *x = values_of(arena, a), *y = values_of(arena, b), *got = values_of(arena, c);
    int64_t rows = c->extents[0], columns = c->extents[1], depth = a->extents[1], wrong = 0;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++, got++) {
            double sum = 0, magnitude = 0;
            for (int64_t k = 0; k < depth; k++) {
                double product = x[i * depth + k] * y[j * depth + k];
                sum += product;
                magnitude += fabs(product);
            }
            if (fabs(*got - sum) <= magnitude * (double)depth * 0x1p-24 + fabs(sum) * 0x1p-8)
                continue;
            if (wrong++ == 0)
                fprintf(stderr, "seed %llu: C[%lld, %lld] is %g, expected %g\n",
                        (unsigned long long)seed, (long long)i, (long long)j, *got, sum);
        }
    EXPECT(wrong == 0);
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static void multiply(int64_t m, int64_t n, int64_t k, bool random, uint64_t seeds, int resident) {
    Scratch scratch = scratch_new();
    Manifest manifest = {
        .kernel = "gemm", .threads = 384, .persistent = true, .shared_bytes = 213040};
    Array arrays[3];
    add_tensor(scratch.arena, &manifest, &arrays[0], "A", MODE_IN, m, k, 128);
    add_tensor(scratch.arena, &manifest, &arrays[1], "B", MODE_IN, n, k, 128);
    add_tensor(scratch.arena, &manifest, &arrays[2], "C", MODE_OUT, m, n, 64);
    int64_t symbols[3] = {m, n, k};
    for (int i = 0; i < 3; i++) {
        vec_push(scratch.arena, &manifest.symbols,
                 ((ManifestSymbol){.name = &"M\0N\0K"[2 * i], .is_extent = true}));
        vec_push(scratch.arena, &manifest.arguments, (ManifestArgument){ARGUMENT_EXTENT, i});
    }
    Launch launch = {
        .manifest = &manifest, .arrays = arrays, .symbols = symbols, .tiles = m / 128 * (n / 256)};
    launch.scalars = NEW_ARRAY(scratch.arena, Scalar, 3);
    launch.ptx = read_text(scratch.arena, "tests/emulator/programs/gemm.ptx", &launch.ptx_length);
    fill(&arrays[0], random, 1);
    fill(&arrays[1], random, 2);
    for (uint64_t seed = 0; launch.ptx && seed < seeds; seed++) {
        EmulatorOptions options = {.seed = seed, .resident = resident};
        RunResult result;
        memset(arrays[2].data, 0xff, arrays[2].bytes);
        double start = now();
        RunStatus status = emulator_run(scratch.arena, &launch, &options, &result, scratch.diags);
        if (!SANITIZED) EXPECT(now() - start < 2);
        EXPECT_CLEAN(&scratch);
        if (EXPECT(status == RUN_DONE))
            check(scratch.arena, &arrays[0], &arrays[1], &arrays[2], seed);
    }
    for (int i = 0; i < 3; i++) array_free(&arrays[i]);
    scratch_free(&scratch);
}

int main(void) {
    multiply(256, 256, 64, false, 4, 4);
    multiply(256, 512, 192, false, 3, 2);
    multiply(256, 256, 448, true, 2, 4);
    multiply(512, 512, 256, true, 1, 4);
    return expect_failures();
}
