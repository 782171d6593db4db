/* Kernels of nvcc whose threads exchange data in memory: barriers of a block, atomic operations,
 * fences, flags, warps, recursion and structures. See cuda.h for what is tested. */
#include "tests/unit/cuda.h"

#include <math.h>

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

static const Kernel kernels[] = {
    {KERNEL(reduce, P0712, P0751)},
    {KERNEL(lookback, P0751, P0751),
     .says = {{"of `state` is written by `st.relaxed.gpu.b32` (lookback.cu:37, "},
              {"of `state` is read by `ld.relaxed.gpu.b32` (lookback.cu:41, "}}},
    {KERNEL(prefix, P0751, P0751),
     .says = {{"the flag byte 12 of `state` is written by `st.volatile.global.u32` (prefix.cu:11, "
               "PTX line 87), which is no release, without a fence between this write and it"},
              {"the flag byte 12 of `state` is read by `ld.volatile.global.u32` (prefix.cu:20, PTX "
               "line 103), which is no acquire, without a fence between it and this read"}}},
    {KERNEL(scopes, P0751, P0751),
     .says = {{"`.cta` orders threads of one block only, and that is the scope of both accesses"},
              {"the flag byte 0 of `flags` is written by `st.relaxed.gpu.b32` (scopes.cu:",
               "the fence before it is `membar.cta` (scopes.cu:",
               "`.cta` orders threads of one block only\n"}}},
    {KERNEL(readonly, P0754, P0754),
     .says = {{"a load by `.nc` is for data that the launch does not write"}, {NULL}}},
    {KERNEL(stencil, P0751, P0751)},
    {KERNEL(structs, P0751, P0751)},
    {KERNEL(tables, P0712, P0751)},
    {KERNEL(transpose, P0712, P0751)},
    {KERNEL(histogram, P0751, P0712)},
    {KERNEL(softmax, P0751, P0751)},
    {KERNEL(grid, P0751, P0751)},
    {KERNEL(lock, P0751, P0751)},
    {KERNEL(groups, P0712, P0751)},
    {KERNEL(cub, P0751, P0751)},
    {KERNEL(semaphore, P0751, P0751)},
    {KERNEL(divide, P0712, P0751)},
};

int main(int argc, char **argv) { return test_kernels(kernels, COUNT_OF(kernels), argc, argv); }
