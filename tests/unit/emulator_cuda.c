/* Kernels that nvcc compiled (tests/cuda/NAME.cu; compile.sh makes the PTX). Each runs right, clean
 * and with races on, on several schedules; each of its two faults, a barrier, fence, wait or order
 * less, is named on the plain schedule by the finding of the table, at the line of the source. Then
 * each barrier, fence and wait for copies is removed from the PTX, one at a time: the plain
 * schedule must have a finding, unless a table says why it is not needed. */
#include "emulator/emulator.h"

#include "tests/unit/expect.h"

#include <math.h>

enum { MOST_REGIONS = 6, SEEDS = 4, MOST_TEXT = 1 << 16 };

typedef struct Trial {
    Scratch scratch;
    EmulatorKernel kernel;
    EmulatorLaunch launch;
    EmulatorRegion regions[MOST_REGIONS];
    size_t region_count, parameter_count;
} Trial;

/* ---- launches -------------------------------------------------------------------------------- */

static void launch(Trial *trial, uint32_t grid, uint32_t block) {
    trial->launch.grid[0] = grid, trial->launch.block[0] = block;
}

static void pass(Trial *trial, const void *value, size_t bytes) {
    if (!EXPECT(trial->parameter_count < trial->kernel.parameter_count)) return;
    const EmulatorParameter *parameter = &trial->kernel.parameters[trial->parameter_count++];
    if (!EXPECT(bytes == parameter->bytes)) return;
    memcpy((unsigned char *)trial->launch.parameters + parameter->offset, value, bytes);
}

static void pass_int(Trial *trial, int value) { pass(trial, &value, sizeof value); }

static void pass_float(Trial *trial, float value) { pass(trial, &value, sizeof value); }

/* Zeros */
static void *region(Trial *trial, const char *name, size_t bytes) {
    EmulatorRegion *it = &trial->regions[trial->region_count++];
    *it = (EmulatorRegion){.data = NEW_ARRAY(trial->scratch.arena, unsigned char, bytes),
                           .bytes = bytes,
                           .name = name};
    emulator_place(trial->regions, trial->region_count);
    return it->data;
}

static void *pass_region(Trial *trial, const char *name, size_t bytes) {
    void *data = region(trial, name, bytes);
    pass(trial, &trial->regions[trial->region_count - 1].base, 8);
    return data;
}

/* Small whole numbers that repeat late: sums of them are exact in f32 */
static int number(size_t i) { return (int)(i * 2654435761u >> 7) % 17 - 8; }

static float *pass_floats(Trial *trial, size_t count) {
    float *data = pass_region(trial, "x", count * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = (float)number(i);
    return data;
}

static int *pass_ints(Trial *trial, size_t count) {
    int *data = pass_region(trial, "x", count * sizeof *data);
    for (size_t i = 0; i < count; i++) data[i] = number(i);
    return data;
}

static const float *floats_of(const Trial *trial, int region) {
    return (const float *)(const void *)trial->regions[region].data;
}

static const int *ints_of(const Trial *trial, int region) {
    return (const int *)(const void *)trial->regions[region].data;
}

/* ---- reduce.cu ------------------------------------------------------------------------------- */

static void start_reduce(Trial *trial) {
    launch(trial, 3, 256);
    pass_floats(trial, 2000);
    pass_region(trial, "sum", 4);
    pass_int(trial, 2000);
}

static bool right_reduce(const Trial *trial) {
    float sum = 0;
    for (int i = 0; i < 2000; i++) sum += floats_of(trial, 0)[i];
    return sum == floats_of(trial, 1)[0];
}

/* ---- lookback.cu ----------------------------------------------------------------------------- */

static void start_lookback(Trial *trial) {
    launch(trial, 6, 128);
    pass_ints(trial, 6 * 128);
    pass_region(trial, "y", 6 * 512);
    pass_region(trial, "sums", 24);
    pass_region(trial, "totals", 24);
    pass_region(trial, "state", 24);
    pass_region(trial, "ticket", 4);
}

static bool right_lookback(const Trial *trial) {
    bool right = true;
    for (int i = 0, sum = 0; i < 6 * 128; i++)
        right = right && ints_of(trial, 1)[i] == (sum += ints_of(trial, 0)[i]);
    return right;
}

/* ---- prefix.cu ------------------------------------------------------------------------------- */

static void start_prefix(Trial *trial) {
    launch(trial, 12, 64);
    pass_ints(trial, 12 * 64);
    pass_region(trial, "y", 12 * 256);
    pass_region(trial, "sums", 48);
    pass_region(trial, "totals", 48);
    pass_region(trial, "state", 48);
}

static bool right_prefix(const Trial *trial) {
    bool right = true;
    for (int i = 0, sum = 0; i < 12 * 64; i++)
        right = right && ints_of(trial, 1)[i] == (sum += ints_of(trial, 0)[i]);
    return right;
}

/* ---- scopes.cu ------------------------------------------------------------------------------- */

static void start_scopes(Trial *trial) {
    launch(trial, 5, 64);
    pass_ints(trial, 5 * 64);
    pass_region(trial, "y", 5 * 256);
    uint64_t chain[2];
    for (int i = 0; i < 2; i++) {
        region(trial, i ? "flags" : "sums", 20);
        chain[i] = trial->regions[trial->region_count - 1].base;
    }
    pass(trial, chain, sizeof chain);
}

static bool right_scopes(const Trial *trial) {
    const int *x = ints_of(trial, 0), *y = ints_of(trial, 1);
    bool right = true;
    for (int i = 0, before = 0, sum = 0; i < 5 * 64; i++) {
        if (i % 64 == 0) before = sum;
        right = right && y[i] == before + x[i];
        sum += x[i];
    }
    return right;
}

/* ---- readonly.cu ----------------------------------------------------------------------------- */

enum { RING = 4 * 64 };

static void start_readonly(Trial *trial) {
    launch(trial, 4, 64);
    pass_ints(trial, RING);
    pass_region(trial, "once", RING * 4);
    pass_region(trial, "twice", RING * 4);
    pass_region(trial, "arrived", 4);
    pass_int(trial, RING);
}

static bool right_readonly(const Trial *trial) {
    int once[RING];
    bool right = true;
    const int *x = ints_of(trial, 0), *twice = ints_of(trial, 2);
    for (int i = 0; i < RING; i++)
        once[i] = x[(i + RING - 1) % RING] + 2 * x[i] + x[(i + 1) % RING];
    for (int i = 0; i < RING; i++)
        right =
            right && twice[i] == once[(i + RING - 1) % RING] + 2 * once[i] + once[(i + 1) % RING];
    return right;
}

/* ---- barrier.cu ------------------------------------------------------------------------------ */

static void start_barrier(Trial *trial) {
    launch(trial, 1, 64);
    pass_ints(trial, 7 * 32);
    pass_region(trial, "y", 7 * 128 + 4);
    pass_int(trial, 7);
}

static bool right_barrier(const Trial *trial) {
    const int *x = ints_of(trial, 0), *y = ints_of(trial, 1);
    bool right = true;
    int sum = 0;
    for (int i = 0; i < 7 * 32; i += 32) sum += x[i];
    for (int i = 0; i < 7 * 32; i++) right = right && y[i] == 2 * x[i / 32 * 32 + 31 - i % 32];
    return right && y[7 * 32] == sum;
}

/* ---- pipeline.cu ----------------------------------------------------------------------------- */

static void start_pipeline(Trial *trial) {
    launch(trial, 1, 64);
    pass_floats(trial, 5 * 256);
    pass_region(trial, "y", 5 * 1024);
    pass_int(trial, 5);
}

static bool right_pipeline(const Trial *trial) {
    const float *x = floats_of(trial, 0), *y = floats_of(trial, 1);
    bool right = true;
    for (int i = 0; i < 5 * 256; i++) {
        int from = i / 256 * 256 + (63 - i % 256 / 4) * 4 + i % 4;
        right = right && y[i] == x[from] + (float)(1 + i % 4);
    }
    return right;
}

/* ---- bulk.cu --------------------------------------------------------------------------------- */

static void start_bulk(Trial *trial) {
    launch(trial, 2, 128);
    pass_floats(trial, 2048);
    pass_region(trial, "y", 8192);
    pass_float(trial, 3);
}

static bool right_bulk(const Trial *trial) {
    bool right = true;
    for (int i = 0; i < 2048; i++)
        right = right && floats_of(trial, 1)[i] == 3 * floats_of(trial, 0)[i];
    return right;
}

/* ---- ring.cu --------------------------------------------------------------------------------- */

enum { TILES = 7 };

static void start_ring(Trial *trial) {
    launch(trial, 1, 160);
    float *x = region(trial, "x", TILES * 1024);
    for (size_t i = 0; i < TILES * 256; i++) x[i] = (float)number(i);
    EmulatorMap fields = {.type = 7,
                          .rank = 2,
                          .address = trial->regions[0].base,
                          .extents = {32, TILES * 8},
                          .strides = {0, 128},
                          .box = {32, 8}};
    unsigned char map[EMULATOR_MAP_BYTES];
    EXPECT(emulator_encode_map(&fields, "map", map, trial->scratch.diags) == RUN_DONE);
    pass(trial, map, sizeof map);
    pass_region(trial, "y", TILES * 1024);
    pass_int(trial, TILES);
}

static bool right_ring(const Trial *trial) {
    const float *x = floats_of(trial, 0), *y = floats_of(trial, 1);
    bool right = true;
    for (int i = 0; i < TILES * 256; i++)
        right = right && y[i] == x[i / 256 * 256 + i % 8 * 32 + i % 256 / 8];
    return right;
}

/* ---- cluster.cu ------------------------------------------------------------------------------ */

static void start_cluster(Trial *trial) {
    launch(trial, 4, 64);
    pass_ints(trial, 700);
    pass_region(trial, "counts", 512);
    pass_int(trial, 700);
}

static bool right_cluster(const Trial *trial) {
    int counts[128] = {0};
    for (int i = 0; i < 700; i++) counts[ints_of(trial, 0)[i] & 127]++;
    return memcmp(counts, ints_of(trial, 1), sizeof counts) == 0;
}

/* ---- wgmma.cu, mma.cu ------------------------------------------------------------------------ */

static uint32_t float_bits(int value) {
    float wide = (float)value;
    uint32_t bits;
    memcpy(&bits, &wide, 4);
    return bits;
}

static uint16_t bf16_of(int value) { return (uint16_t)(float_bits(value) >> 16); }

/* Of a whole number that f16 has */
static uint16_t f16_of(int value) {
    uint32_t bits = float_bits(value);
    if (value == 0) return 0;
    return (uint16_t)(bits >> 16 & 0x8000) | (uint16_t)((bits >> 13 & 0x3ffff) - (112 << 10));
}

/* A has `m` rows and B `n` rows of `depth` numbers, C is A times the transpose of B */
static void pass_matrices(Trial *trial, size_t m, size_t n, size_t depth, bool half) {
    for (int operand = 0; operand < 2; operand++) {
        size_t count = (operand ? n : m) * depth;
        uint16_t *data = pass_region(trial, operand ? "b" : "a", count * 2);
        for (size_t i = 0; i < count; i++) {
            int value = number(i + 100 * (size_t)operand);
            data[i] = half ? f16_of(value) : bf16_of(value);
        }
    }
    pass_region(trial, "c", m * n * 4);
    pass_int(trial, (int)n);
    pass_int(trial, (int)depth);
}

static bool right_matrices(const Trial *trial, size_t m, size_t n, size_t depth) {
    bool right = true;
    for (size_t i = 0; i < m * n; i++) {
        int sum = 0;
        for (size_t k = 0; k < depth; k++)
            sum += number(i / n * depth + k) * number(i % n * depth + k + 100);
        right = right && floats_of(trial, 2)[i] == (float)sum;
    }
    return right;
}

static void start_wgmma(Trial *trial) {
    launch(trial, 2, 128);
    trial->launch.grid[1] = 2;
    pass_matrices(trial, 128, 128, 96, false);
}

static bool right_wgmma(const Trial *trial) { return right_matrices(trial, 128, 128, 96); }

static void start_mma(Trial *trial) {
    launch(trial, 3, 128);
    trial->launch.grid[1] = 2;
    pass_matrices(trial, 64, 96, 80, true);
}

static bool right_mma(const Trial *trial) { return right_matrices(trial, 64, 96, 80); }

/* ---- stencil.cu ------------------------------------------------------------------------------ */

enum { WIDTH = 37, HEIGHT = 19 };

static void start_stencil(Trial *trial) {
    launch(trial, 3, 16);
    trial->launch.grid[1] = 3, trial->launch.block[1] = 8;
    pass_floats(trial, (size_t)WIDTH * HEIGHT);
    pass_region(trial, "y", (size_t)WIDTH * HEIGHT * 4);
    pass_int(trial, WIDTH);
    pass_int(trial, HEIGHT);
}

static void five_points(const float *x, float *y) {
    for (int i = 0; i < WIDTH * HEIGHT; i++) {
        float up = i >= WIDTH ? x[i - WIDTH] : 0, left = i % WIDTH ? x[i - 1] : 0,
              right = (i + 1) % WIDTH ? x[i + 1] : 0,
              down = i < WIDTH * (HEIGHT - 1) ? x[i + WIDTH] : 0;
        y[i] = up + left + right + down - 4 * x[i];
    }
}

static bool right_stencil(const Trial *trial) {
    float once[WIDTH * HEIGHT], twice[WIDTH * HEIGHT];
    five_points(floats_of(trial, 0), once);
    five_points(once, twice);
    return memcmp(twice, floats_of(trial, 1), sizeof twice) == 0;
}

/* ---- structs.cu ------------------------------------------------------------------------------ */

typedef struct Layer {
    uint64_t x, y;
    int16_t rows;
    int8_t kind;
} Layer;

typedef struct Group {
    int8_t unused;
    Layer layers[2];
    double scale;
} Group;

enum { ROW = 100 };

static const Group group = {.layers = {{.rows = 5, .kind = 1}, {.rows = 3, .kind = 2}},
                            .scale = 0.3};

static void start_structs(Trial *trial) {
    launch(trial, 2, 128);
    trial->launch.grid[1] = 2;
    Group it = group;
    for (int i = 0; i < 2; i++) {
        size_t count = (size_t)it.layers[i].rows * ROW;
        float *x = region(trial, "x", count * 4);
        region(trial, "y", count * 4);
        for (size_t k = 0; k < count; k++) x[k] = (float)number(k + (size_t)i);
    }
    for (int i = 0; i < 2; i++) {
        it.layers[i].x = trial->regions[2 * i].base;
        it.layers[i].y = trial->regions[2 * i + 1].base;
    }
    pass(trial, &it, sizeof it);
    pass_int(trial, ROW);
}

static bool right_structs(const Trial *trial) {
    bool right = true;
    for (int i = 0; i < 2; i++)
        for (int row = 0; row < group.layers[i].rows; row++) {
            const float *x = floats_of(trial, 2 * i) + row * ROW,
                        *y = floats_of(trial, 2 * i + 1) + row * ROW;
            float v[ROW], sum = 0;
            for (int k = 0; k < ROW; k++) sum += v[k] = i ? fabsf(x[k]) : x[k] * x[k];
            for (int k = 0; k < ROW; k++)
                right = right && y[k] == (float)(v[k] * group.scale / sum);
        }
    return right;
}

/* ---- tables.cu ------------------------------------------------------------------------------- */

static void start_tables(Trial *trial) {
    launch(trial, 3, 64);
    unsigned char *text = pass_region(trial, "text", 192 * 12);
    for (size_t i = 0; i < 192 * 12; i++) text[i] = (unsigned char)(number(i) * 31);
    pass_region(trial, "digits", 192 * 8);
    pass_region(trial, "result", 4);
}

static uint32_t checksum(const unsigned char *text) {
    uint32_t crc = ~0u;
    for (int i = 0; i < 12 * 8; i++)
        crc = crc >> 1 ^ ((crc ^ text[i / 8] >> i % 8) & 1 ? 0xedb88320 : 0);
    return ~crc;
}

static bool right_tables(const Trial *trial) {
    uint32_t all = 7;
    bool right = true;
    for (int warp = 0; warp < 6; warp++) {
        uint32_t part = 0;
        for (int line = warp * 32; line < warp * 32 + 32; line++) {
            char digits[9];
            uint32_t crc = checksum(trial->regions[0].data + line * 12);
            snprintf(digits, sizeof digits, "%08x", crc);
            right = right && memcmp(digits, trial->regions[1].data + line * 8, 8) == 0;
            part ^= crc;
        }
        all += part;
    }
    return right && (uint32_t)ints_of(trial, 2)[0] == all;
}

/* ---- transpose.cu ---------------------------------------------------------------------------- */

static void start_transpose(Trial *trial) {
    launch(trial, 1, 32);
    trial->launch.grid[1] = 2, trial->launch.block[1] = 8;
    pass_floats(trial, (size_t)70 * 50);
    pass_region(trial, "y", (size_t)70 * 50 * 4);
    pass_int(trial, 70);
    pass_int(trial, 50);
}

static bool right_transpose(const Trial *trial) {
    bool right = true;
    for (int i = 0; i < 70 * 50; i++)
        right = right && floats_of(trial, 1)[i % 70 * 50 + i / 70] == floats_of(trial, 0)[i];
    return right;
}

/* ---- histogram.cu ---------------------------------------------------------------------------- */

static void start_histogram(Trial *trial) {
    launch(trial, 4, 128);
    pass_ints(trial, 2000);
    pass_region(trial, "parts", 1024);
    pass_region(trial, "counts", 256);
    pass_int(trial, 2000);
}

static bool right_histogram(const Trial *trial) {
    int counts[64] = {0};
    for (int i = 0; i < 2000; i++) counts[ints_of(trial, 0)[i] & 63]++;
    return memcmp(counts, ints_of(trial, 2), sizeof counts) == 0;
}

/* ---- softmax.cu ------------------------------------------------------------------------------ */

static void start_softmax(Trial *trial) {
    launch(trial, 2, 128);
    pass_floats(trial, (size_t)19 * ROW);
    pass_region(trial, "y", (size_t)19 * ROW * 4);
    pass_int(trial, 19);
    pass_int(trial, ROW);
}

static bool right_softmax(const Trial *trial) {
    bool right = true;
    for (int row = 0; row < 19; row++) {
        const float *x = floats_of(trial, 0) + row * ROW, *y = floats_of(trial, 1) + row * ROW;
        float most = x[0], sum = 0;
        for (int i = 0; i < ROW; i++) most = fmaxf(most, x[i]);
        for (int i = 0; i < ROW; i++) sum += exp2f(x[i] - most); /* powers of two: exact */
        for (int i = 0; i < ROW; i++)
            right = right && fabsf(y[i] * sum / exp2f(x[i] - most) - 1) < 1e-6f;
    }
    return right;
}

/* ---- grid.cu --------------------------------------------------------------------------------- */

enum { CELLS = 192, STEPS = 5 };

static void start_grid(Trial *trial) {
    launch(trial, CELLS / 64, 64);
    pass_floats(trial, CELLS);
    pass_region(trial, "y", CELLS * 4);
    pass_region(trial, "counter", 4);
    pass_int(trial, CELLS);
    pass_int(trial, STEPS);
    region(trial, "workspace", EMULATOR_WORKSPACE_BYTES);
    trial->launch.workspace = trial->regions[3].base;
}

static bool right_grid(const Trial *trial) {
    float cells[2][CELLS + 2] = {{0}};
    for (int i = 0; i < CELLS; i++) cells[0][i + 1] = (float)number((size_t)i);
    for (int step = 0; step < STEPS; step++)
        for (int i = 1; i <= CELLS; i++)
            cells[(step + 1) % 2][i] =
                cells[step % 2][i - 1] + cells[step % 2][i + 1] - cells[step % 2][i];
    return memcmp(cells[0] + 1, floats_of(trial, 0), CELLS * 4) == 0 &&
           memcmp(cells[1] + 1, floats_of(trial, 1), CELLS * 4) == 0;
}

/* ---- lock.cu --------------------------------------------------------------------------------- */

enum { KEYS = 96, BUCKETS = 8 };

static void start_lock(Trial *trial) {
    launch(trial, KEYS / 32, 32);
    pass_ints(trial, KEYS);
    pass_region(trial, "locks", BUCKETS * 4);
    pass_region(trial, "heads", BUCKETS * 4);
    pass_region(trial, "next", KEYS * 4);
    pass_int(trial, BUCKETS);
}

/* Each key is in the list of its bucket, once */
static bool right_lock(const Trial *trial) {
    bool seen[KEYS] = {false}, right = true;
    int count = 0;
    for (int bucket = 0; bucket < BUCKETS; bucket++)
        for (int i = ints_of(trial, 2)[bucket]; i > 0 && right; i = ints_of(trial, 3)[i - 1]) {
            right = !seen[i - 1] && (ints_of(trial, 0)[i - 1] & (BUCKETS - 1)) == bucket;
            seen[i - 1] = true;
            count++;
        }
    return right && count == KEYS;
}

/* ---- multicast.cu ---------------------------------------------------------------------------- */

static void start_multicast(Trial *trial) {
    launch(trial, 2, 96);
    pass_floats(trial, 7 * 256);
    pass_region(trial, "y", 7 * 1024);
    pass_int(trial, 7);
}

static bool right_multicast(const Trial *trial) {
    bool right = true;
    for (int i = 0; i < 7 * 256; i++)
        right = right && floats_of(trial, 1)[i] == floats_of(trial, 0)[i] + 1;
    return right;
}

/* ---- roles.cu -------------------------------------------------------------------------------- */

static void start_roles(Trial *trial) {
    launch(trial, 1, 96);
    pass_ints(trial, 192);
    pass_region(trial, "y", 768);
    pass_int(trial, 6);
}

static bool right_roles(const Trial *trial) {
    const int *x = ints_of(trial, 0), *y = ints_of(trial, 1);
    bool right = true;
    for (int i = 0; i < 192; i++) right = right && y[i] == x[i] * x[i];
    return right;
}

/* ---- gemm.cu --------------------------------------------------------------------------------- */

enum { ROWS = 128, COLUMNS = 64, DEPTH = 320, BFLOAT16 = 9, FLOAT32 = 7 };

static void pass_map(Trial *trial, uint32_t type, uint64_t width, uint64_t height) {
    uint32_t bytes = emulator_map_element(type);
    region(trial, "matrix", width * height * bytes);
    EmulatorMap fields = {.type = type,
                          .rank = 2,
                          .address = trial->regions[trial->region_count - 1].base,
                          .extents = {width, height},
                          .strides = {0, width * bytes},
                          .box = {64, 64},
                          .swizzle = type == BFLOAT16 ? SWIZZLE_128 : SWIZZLE_NONE};
    unsigned char map[EMULATOR_MAP_BYTES];
    EXPECT(emulator_encode_map(&fields, "map", map, trial->scratch.diags) == RUN_DONE);
    pass(trial, map, sizeof map);
}

static void start_gemm(Trial *trial) {
    launch(trial, COLUMNS / 64, 160);
    trial->launch.grid[1] = ROWS / 64;
    trial->launch.shared_bytes = 66560;
    pass_map(trial, BFLOAT16, DEPTH, ROWS);
    pass_map(trial, BFLOAT16, DEPTH, COLUMNS);
    pass_map(trial, FLOAT32, COLUMNS, ROWS);
    pass_int(trial, DEPTH);
    for (size_t operand = 0; operand < 2; operand++) {
        uint16_t *data = (uint16_t *)(void *)trial->regions[operand].data;
        for (size_t i = 0; i < trial->regions[operand].bytes / 2; i++)
            data[i] = bf16_of(number(i + 100 * operand));
    }
}

static bool right_gemm(const Trial *trial) { return right_matrices(trial, ROWS, COLUMNS, DEPTH); }

/* ---- exchange.cu ----------------------------------------------------------------------------- */

static void start_exchange(Trial *trial) {
    launch(trial, 4, 64);
    pass_ints(trial, 256);
    pass_region(trial, "y", 1024);
}

static bool right_exchange(const Trial *trial) {
    int sums[256], next[256];
    const int *x = ints_of(trial, 0);
    memcpy(sums, x, sizeof sums);
    for (int i = 0; i < 3; i++) {
        for (int k = 0; k < 256; k++) next[k] = x[k] + sums[((k + 192) % 256) ^ 1];
        memcpy(sums, next, sizeof sums);
    }
    return memcmp(sums, ints_of(trial, 1), sizeof sums) == 0;
}

/* ---- groups.cu ------------------------------------------------------------------------------- */

static void start_groups(Trial *trial) {
    launch(trial, 1, 64);
    pass_ints(trial, 5 * 64);
    pass_region(trial, "y", 5 * 256);
    pass_region(trial, "sums", 5 * 32);
    pass_int(trial, 5);
}

static bool right_groups(const Trial *trial) {
    bool right = true;
    for (int i = 0, sum = 0; i < 5 * 64; i++) {
        int v = ints_of(trial, 0)[i / 64 * 64 + 63 - i % 64];
        if (i % 8 == 0) sum = 0;
        right = right && ints_of(trial, 1)[i] == (v & 1 ? sum : -sum);
        sum += v;
        if (i % 8 == 7) right = right && ints_of(trial, 2)[i / 8] == sum;
    }
    return right;
}

/* ---- cub.cu ---------------------------------------------------------------------------------- */

static void start_cub(Trial *trial) {
    launch(trial, 1, 128);
    pass_ints(trial, 3 * 128);
    pass_region(trial, "y", 3 * 512);
    pass_region(trial, "most", 12);
    pass_int(trial, 3);
}

static bool right_cub(const Trial *trial) {
    bool right = true;
    for (int i = 0, sum = 0, most = 0; i < 3 * 128; i++) {
        int v = ints_of(trial, 0)[i];
        if (i % 128 == 0) sum = 0, most = v;
        right = right && ints_of(trial, 1)[i] == sum;
        sum += v;
        most = v > most ? v : most;
        if (i % 128 == 127) right = right && ints_of(trial, 2)[i / 128] == most;
    }
    return right;
}

/* ---- copy.cu --------------------------------------------------------------------------------- */

static void start_copy(Trial *trial) {
    launch(trial, 1, 64);
    pass_ints(trial, 5 * 64);
    pass_region(trial, "y", 5 * 256);
    pass_int(trial, 5);
}

static bool right_copy(const Trial *trial) {
    bool right = true;
    for (int i = 0; i < 5 * 64; i++)
        right = right && ints_of(trial, 1)[i] == ints_of(trial, 0)[i / 64 * 64 + 63 - i % 64];
    return right;
}

/* ---- semaphore.cu ---------------------------------------------------------------------------- */

static void start_semaphore(Trial *trial) {
    launch(trial, 2, 32);
    pass_ints(trial, 20);
    pass_region(trial, "y", 80);
    int64_t *counts = pass_region(trial, "queue", 32);
    counts[1] = 4; /* free places */
    pass_int(trial, 20);
}

static bool right_semaphore(const Trial *trial) {
    bool right = true;
    for (int i = 0; i < 20; i++) right = right && ints_of(trial, 1)[i] == 3 * ints_of(trial, 0)[i];
    return right;
}

/* ---- divide.cu ------------------------------------------------------------------------------- */

enum { PAIRS = 5 * 64 };

__extension__ typedef unsigned __int128 Wide;

/* Numbers of all lengths, with runs of ones and of zeros, and neighbours of powers of two */
static Wide wide(size_t i) {
    uint64_t x = (i + 1) * UINT64_C(0x9e3779b97f4a7c15), y = (x ^ x >> 29) * UINT64_C(0xbf58476d1);
    Wide value = (Wide)x << 64 | y;
    if (x >> 13 & 1) value |= (Wide)UINT32_MAX << (y >> 7) % 96;
    if (x >> 14 & 1) value &= ~((Wide)UINT32_MAX << (y >> 17) % 96);
    if (x >> 15 & 1) value = ((Wide)1 << (y >> 9) % 128) - (x >> 16 & 1);
    value >>= (y >> 30) % 128;
    return value ? value : 3;
}

static Wide wide_of(const Trial *trial, int region, size_t i) {
    Wide value;
    memcpy(&value, trial->regions[region].data + 16 * i, 16);
    return value;
}

static void start_divide(Trial *trial) {
    launch(trial, 1, 64);
    unsigned char *x = pass_region(trial, "x", PAIRS * 32);
    pass_region(trial, "quotients", PAIRS * 16);
    pass_region(trial, "remainders", PAIRS * 16);
    pass_int(trial, PAIRS / 64);
    for (size_t i = 0; i < 2 * PAIRS; i++) {
        Wide value = wide(i);
        if (i % 14 == 1) value = wide(i - 1); /* equal operands */
        memcpy(x + 16 * i, &value, 16);
    }
}

static bool right_divide(const Trial *trial) {
    bool right = true;
    for (size_t i = 0; i < PAIRS; i++) {
        Wide a = wide_of(trial, 0, 2 * i), b = wide_of(trial, 0, 2 * i + 1);
        right = right && wide_of(trial, 1, i) == a / b && wide_of(trial, 2, i) == a % b;
    }
    return right;
}

/* ---- all ------------------------------------------------------------------------------------- */

typedef struct Kernel {
    const char *name;
    void (*start)(Trial *trial);       /* the launch and its data */
    bool (*right)(const Trial *trial); /* the results are */
    Code faults[2];                    /* the first error of each fault */
} Kernel;

static const Kernel kernels[] = {
    {"reduce", start_reduce, right_reduce, {P0712, P0751}},
    {"lookback", start_lookback, right_lookback, {P0751, P0751}},
    {"prefix", start_prefix, right_prefix, {P0751, P0751}},
    {"scopes", start_scopes, right_scopes, {P0751, P0751}},
    {"readonly", start_readonly, right_readonly, {P0754, P0754}},
    {"barrier", start_barrier, right_barrier, {P0712, P0751}},
    {"pipeline", start_pipeline, right_pipeline, {P0712, P0751}},
    {"bulk", start_bulk, right_bulk, {P0752, P0712}},
    {"ring", start_ring, right_ring, {P0712, P0751}},
    {"cluster", start_cluster, right_cluster, {P0751, P0751}},
    {"wgmma", start_wgmma, right_wgmma, {P0752, P0773}},
    {"mma", start_mma, right_mma, {P0712, P0751}},
    {"stencil", start_stencil, right_stencil, {P0751, P0751}},
    {"structs", start_structs, right_structs, {P0751, P0751}},
    {"tables", start_tables, right_tables, {P0712, P0751}},
    {"transpose", start_transpose, right_transpose, {P0712, P0751}},
    {"histogram", start_histogram, right_histogram, {P0751, P0712}},
    {"softmax", start_softmax, right_softmax, {P0751, P0751}},
    {"grid", start_grid, right_grid, {P0751, P0751}},
    {"lock", start_lock, right_lock, {P0751, P0751}},
    {"multicast", start_multicast, right_multicast, {P0742, P0751}},
    {"gemm", start_gemm, right_gemm, {P0751, P0752}},
    {"exchange", start_exchange, right_exchange, {P0712, P0726}},
    {"groups", start_groups, right_groups, {P0712, P0751}},
    {"cub", start_cub, right_cub, {P0751, P0751}},
    {"copy", start_copy, right_copy, {P0712, P0751}},
    {"semaphore", start_semaphore, right_semaphore, {P0751, P0751}},
    {"roles", start_roles, right_roles, {P0736, P0751}},
    {"divide", start_divide, right_divide, {P0712, P0751}},
};

/* Parts of the messages of some faults */
static const struct {
    const char *kernel;
    int fault;
    const char *part;
} says[] = {
    {"lookback", 1, "of `state` is written by `st.relaxed.gpu.b32` (lookback.cu:37, "},
    {"lookback", 2, "of `state` is read by `ld.relaxed.gpu.b32` (lookback.cu:41, "},
    {"prefix", 1,
     "the flag byte 12 of `state` is written by `st.volatile.global.u32` (prefix.cu:11, PTX line "
     "87), which is no release, without a fence between this write and it"},
    {"prefix", 2,
     "the flag byte 12 of `state` is read by `ld.volatile.global.u32` (prefix.cu:20, PTX line "
     "103), which is no acquire, without a fence between it and this read"},
    {"readonly", 1, "a load by `.nc` is for data that the launch does not write"},
    {"scopes", 1,
     "`.cta` orders threads of one block only, and that is the scope of both accesses"},
    {"scopes", 2, "the flag byte 0 of `flags` is written by `st.relaxed.gpu.b32` (scopes.cu:"},
    {"scopes", 2, "the fence before it is `membar.cta` (scopes.cu:"},
    {"scopes", 2, "`.cta` orders threads of one block only\n"},
};

static bool says_all(const char *text, const char *kernel, int fault) {
    for (size_t i = 0; i < COUNT_OF(says); i++)
        if (!strcmp(says[i].kernel, kernel) && says[i].fault == fault &&
            !strstr(text, says[i].part))
            return false;
    return true;
}

/* NUL-terminated */
static char *read_text(Arena *arena, const char *file) {
    FILE *in = fopen(file, "rb");
    char *text = arena_alloc(arena, MOST_TEXT);
    size_t length = in ? fread(text, 1, MOST_TEXT - 1, in) : 0;
    if (in) fclose(in);
    EXPECT(length > 0 && length < MOST_TEXT - 1);
    text[length] = '\0';
    return text;
}

static RunStatus run_text(Trial *trial, const Kernel *kernel, const char *text, uint64_t seed) {
    Arena *arena = trial->scratch.arena;
    RunStatus status =
        emulator_read(arena, text, strlen(text), NULL, &trial->kernel, trial->scratch.diags);
    if (status != RUN_DONE) return status;
    trial->launch = (EmulatorLaunch){
        .kernel = &trial->kernel,
        .grid = {1, 1, 1},
        .block = {32, 1, 1},
        .parameters = NEW_ARRAY(arena, unsigned char, trial->kernel.parameter_bytes)};
    kernel->start(trial);
    EXPECT(trial->parameter_count == trial->kernel.parameter_count);
    EmulatorWork work = {.regions = trial->regions,
                         .region_count = trial->region_count,
                         .launches = &trial->launch,
                         .launch_count = 1};
    EmulatorOptions options = {.seed = seed, .races = RACES_ON};
    RunResult result;
    return emulator_run_work(arena, &work, &options, &result, trial->scratch.diags);
}

static RunStatus run(Trial *trial, const Kernel *kernel, const char *file, uint64_t seed) {
    *trial = (Trial){.scratch = scratch_new()};
    return run_text(trial, kernel, read_text(trial->scratch.arena, file), seed);
}

static void test_right(const Kernel *kernel, uint64_t seed) {
    char file[256];
    Trial trial;
    snprintf(file, sizeof file, "tests/cuda/%s.ptx", kernel->name);
    bool done = EXPECT(run(&trial, kernel, file, seed) == RUN_DONE);
    bool clean = EXPECT_CLEAN(&trial.scratch);
    if (!done || !clean || !EXPECT(kernel->right(&trial)))
        fprintf(stderr, "%s, schedule %d\n", file, (int)seed);
    scratch_free(&trial.scratch);
}

static void test_fault(const Kernel *kernel, int fault) {
    char file[256], source[256];
    Trial trial;
    snprintf(file, sizeof file, "tests/cuda/%s.fault%d.ptx", kernel->name, fault);
    snprintf(source, sizeof source, "%s.cu:", kernel->name);
    bool found = EXPECT(run(&trial, kernel, file, 0) == RUN_FINDING);
    const Diags *diags = trial.scratch.diags;
    const Diag *first = NULL;
    for (size_t i = 0; i < diags->items.count && first == NULL; i++)
        if (diags->items.items[i]->severity == SEVERITY_ERROR) first = diags->items.items[i];
    Str rendered = str_new(trial.scratch.arena);
    diags_render(diags, false, &rendered);
    if (!found || !EXPECT(first != NULL) || !EXPECT(first->code == kernel->faults[fault - 1]) ||
        !EXPECT(strstr(rendered.text, source) != NULL) ||
        !EXPECT(says_all(rendered.text, kernel->name, fault)))
        fprintf(stderr, "%s:\n%s\n", file, rendered.text);
    scratch_free(&trial.scratch);
}

/* ---- removals -------------------------------------------------------------------------------- */

/* The number of these instructions that a kernel does not need */
static const struct {
    const char *kernel, *instruction;
    int count;
} needless[] = {
    {"exchange", "fence.mbarrier_init", 1}, /* the barrier of the cluster also orders the init */
    {"multicast", "bar.warp.sync", 1},      /* the lanes have converged */
    {"wgmma", "bar.sync", 1},               /* wgmma.wait_group is for the whole warpgroup */
};

static bool synchronises(const char *line) {
    static const char *const starts[] = {"bar.",         "barrier.",      "fence.",
                                         "membar.",      "cp.async.wait", "cp.async.bulk.wait",
                                         "wgmma.fence.", "wgmma.wait"};
    for (size_t i = 0; i < COUNT_OF(starts); i++)
        if (!strncmp(line, starts[i], strlen(starts[i]))) return true;
    return false;
}

static int row_of(const Kernel *kernel, const char *line) {
    for (size_t i = 0; i < COUNT_OF(needless); i++)
        if (!strcmp(needless[i].kernel, kernel->name) &&
            !strncmp(line, needless[i].instruction, strlen(needless[i].instruction)))
            return (int)i;
    return -1;
}

/* Runs without this statement. True: there is no finding */
static bool survives(const Kernel *kernel, const char *text, size_t at, size_t length) {
    Trial trial = {.scratch = scratch_new()};
    char *copy = NEW_ARRAY(trial.scratch.arena, char, strlen(text) + 1);
    memcpy(copy, text, strlen(text));
    memset(copy + at, ' ', length);
    RunStatus status = run_text(&trial, kernel, copy, 0);
    EXPECT(status == RUN_DONE || status == RUN_FINDING);
    bool silent = status == RUN_DONE && trial.scratch.diags->items.count == 0;
    scratch_free(&trial.scratch);
    return silent;
}

static void test_removals(const Kernel *kernel) {
    Scratch scratch = scratch_new();
    int left[COUNT_OF(needless)] = {0}, removed = 0;
    char file[256];
    snprintf(file, sizeof file, "tests/cuda/%s.ptx", kernel->name);
    const char *text = read_text(scratch.arena, file);
    for (const char *line = text; line != NULL; line = strchr(line, '\n')) {
        line += strspn(line, "\n\t ");
        size_t length = strcspn(line, "\n");
        if (!synchronises(line)) continue;
        removed++;
        if (!survives(kernel, text, (size_t)(line - text), length)) continue;
        int row = row_of(kernel, line);
        if (EXPECT(row >= 0))
            left[row]++;
        else
            fprintf(stderr, "%s without `%.*s`\n", file, (int)length, line);
    }
    for (size_t i = 0; i < COUNT_OF(needless); i++)
        if (!strcmp(needless[i].kernel, kernel->name)) EXPECT(left[i] == needless[i].count);
    EXPECT(removed > 0 || !strcmp(kernel->name, "semaphore")); /* it has only atomic operations */
    scratch_free(&scratch);
}

int main(int argc, char **argv) {
    for (size_t i = 0; i < COUNT_OF(kernels); i++) {
        if (argc > 1 && strcmp(argv[1], kernels[i].name) != 0) continue;
        for (uint64_t seed = 0; seed < SEEDS; seed++) test_right(&kernels[i], seed);
        for (int fault = 1; fault <= 2; fault++) test_fault(&kernels[i], fault);
        test_removals(&kernels[i]);
    }
    return expect_failures();
}
