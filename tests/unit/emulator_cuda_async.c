/* Kernels of nvcc with asynchronous copies, mbarriers, clusters and matrix instructions. See cuda.h
 * for what is tested. */
#include "tests/unit/cuda.h"

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

/* ---- all ------------------------------------------------------------------------------------- */

static const Kernel kernels[] = {
    {KERNEL(barrier, P0712, P0751)},
    {KERNEL(pipeline, P0712, P0751)},
    {KERNEL(bulk, P0752, P0712)},
    {KERNEL(ring, P0712, P0751)},
    {KERNEL(cluster, P0751, P0751)},
    /* wgmma.wait_group is for the whole warpgroup */
    {KERNEL(wgmma, P0752, P0773), .needless = "bar.sync", .needless_count = 1},
    {KERNEL(mma, P0712, P0751)},
    /* the lanes have converged */
    {KERNEL(multicast, P0742, P0751), .needless = "bar.warp.sync", .needless_count = 1},
    {KERNEL(gemm, P0751, P0752)},
    /* the barrier of the cluster also orders the init */
    {KERNEL(exchange, P0712, P0726), .needless = "fence.mbarrier_init", .needless_count = 1},
    {KERNEL(copy, P0712, P0751)},
    {KERNEL(roles, P0736, P0751)},
};

int main(int argc, char **argv) { return test_kernels(kernels, COUNT_OF(kernels), argc, argv); }
