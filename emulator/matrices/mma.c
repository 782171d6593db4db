/* mma.sync and movmatrix: matrices in the registers of a warp (PTX ISA 9.7.14.5).
 *
 * Lane l belongs to group g = l / 4 and is number t = l % 4 in it. With E elements in a register
 * (of 32 bits, or one f64), element e of register r of A is in row g, or g + 8 if the shape has 16
 * rows and r is odd, and in column k = t * E + e, plus 4 * E for each register before it in its
 * row; of B in column g and row k, likewise; element i of C and D in row g + 8 * (i / 2) and column
 * 2 * t + i % 2. m8n8k4 of f16 is four products of eight lanes each, with fragments of their own.
 *
 * Results are those of an H200, bit for bit: integers are exact, floats are added as
 * mma_sum.c describes, f64 is a chain of fma in the order of k. */
#include "emulator/machine.h"
#include "emulator/matrices/mma.h"
#include "emulator/text/text.h"

#include <math.h>

typedef enum Kind {
    KIND_HALF,
    KIND_BRAIN,
    KIND_TF32,
    KIND_FP8,
    KIND_BYTE,
    KIND_NIBBLE,
    KIND_BIT,
    KIND_DOUBLE,
    KIND_COUNT
} Kind;

/* The shapes, all with 8 columns */
static const struct {
    Kind kind;
    uint16_t rows, depth;
} shapes[] = {
    {KIND_HALF, 8, 4},    {KIND_HALF, 16, 8},    {KIND_HALF, 16, 16},   {KIND_BRAIN, 16, 8},
    {KIND_BRAIN, 16, 16}, {KIND_TF32, 16, 4},    {KIND_TF32, 16, 8},    {KIND_FP8, 16, 16},
    {KIND_FP8, 16, 32},   {KIND_BYTE, 8, 16},    {KIND_BYTE, 16, 16},   {KIND_BYTE, 16, 32},
    {KIND_NIBBLE, 8, 32}, {KIND_NIBBLE, 16, 32}, {KIND_NIBBLE, 16, 64}, {KIND_BIT, 8, 128},
    {KIND_BIT, 16, 128},  {KIND_BIT, 16, 256},   {KIND_DOUBLE, 8, 4},   {KIND_DOUBLE, 16, 4},
    {KIND_DOUBLE, 16, 8}, {KIND_DOUBLE, 16, 16},
};

/* Types of the operands of each kind (T_NONE: only one), its accumulators, and bits of an element
 */
static const struct {
    Type operands[2], sums[2];
    uint8_t bits;
} kinds[KIND_COUNT] = {
    [KIND_HALF] = {{T_F16}, {T_F16, T_F32}, 16}, [KIND_BRAIN] = {{T_BF16}, {T_F32}, 16},
    [KIND_TF32] = {{T_TF32}, {T_F32}, 32},       [KIND_FP8] = {{T_E4M3, T_E5M2}, {T_F16, T_F32}, 8},
    [KIND_BYTE] = {{T_S8, T_U8}, {T_S32}, 8},    [KIND_NIBBLE] = {{T_S4, T_U4}, {T_S32}, 4},
    [KIND_BIT] = {{T_B1}, {T_S32}, 1},           [KIND_DOUBLE] = {{T_F64}, {T_F64}, 64},
};

static bool is_one_of(const Type types[2], uint32_t type) {
    return type != T_NONE && (types[0] == type || types[1] == type);
}

/* KIND_COUNT: there is no such instruction */
static Kind kind_of(const Mods *mods) {
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        Kind kind = shapes[i].kind;
        if (mods->rows == shapes[i].rows && mods->depth == shapes[i].depth &&
            mods->columns == MMA_COLUMNS && is_one_of(kinds[kind].operands, mods->types[1]) &&
            is_one_of(kinds[kind].operands, mods->types[2]) &&
            is_one_of(kinds[kind].sums, mods->types[0]) &&
            is_one_of(kinds[kind].sums, mods->types[3]))
            return kind;
    }
    return KIND_COUNT;
}

/* m8n8k4 of f16 */
static bool is_quad(const Mods *mods) { return mods->types[1] == T_F16 && mods->rows == 8; }

static uint32_t sum_registers(const Mods *mods, uint32_t type) {
    uint32_t elements = is_quad(mods) ? 8 : mods->rows * MMA_COLUMNS / LANES;
    return type == T_F16 ? elements / 2 : elements;
}

uint32_t mma_registers(const Mods *mods, char side) {
    Kind kind = kind_of(mods);
    if (kind == KIND_COUNT) return 0;
    uint32_t in_register = kind == KIND_DOUBLE ? 64 : 32;
    if (side == 'D') return sum_registers(mods, mods->types[0]);
    if (side == 'C') return sum_registers(mods, mods->types[3]);
    if (is_quad(mods)) return 2;
    uint32_t elements = (side == 'A' ? mods->rows : MMA_COLUMNS) * mods->depth / LANES;
    return elements * kinds[kind].bits / in_register;
}

/* ---- fragments ------------------------------------------------------------------------------- */

typedef struct Cell {
    uint32_t row, column, product; /* product: of m8n8k4 of f16, 0 .. 3; otherwise 0 */
} Cell;

/* A's element e of register r is at (row, k), B's at (k, column); `each` elements in a register */
static Cell cell_of_operand(const Mods *mods, bool is_a, uint32_t lane, uint32_t r, uint32_t e,
                            uint32_t each) {
    if (is_quad(mods)) {
        uint32_t along = lane % 4, at = 2 * r + e, half = lane / 16 * 4;
        bool is_row_major = mods->layouts[is_a ? 0 : 1] == LAYOUT_ROW;
        /* the elements of a lane are along K for A by rows and B by columns */
        uint32_t line = is_row_major == is_a ? along + half : at + half,
                 k = is_row_major == is_a ? at : along;
        return (Cell){is_a ? line : k, is_a ? k : line, lane / 4 % 4};
    }
    bool tall = is_a && mods->rows == 16;
    uint32_t line = lane / 4 + (tall ? r % 2 * 8 : 0), before = tall ? r / 2 : r,
             k = lane % 4 * each + e + 4 * each * before;
    return (Cell){is_a ? line : k, is_a ? k : line, 0};
}

/* Element i of C or D of a lane; `type`: an f16 accumulator of m8n8k4 has another layout */
static Cell cell_of_sum(const Mods *mods, uint32_t type, uint32_t lane, uint32_t i) {
    if (!is_quad(mods)) return (Cell){lane / 4 + i / 2 * 8, lane % 4 * 2 + i % 2, 0};
    if (type == T_F16) return (Cell){lane % 4 + lane / 16 * 4, i, lane / 4 % 4};
    return (Cell){(lane & 1) + (i & 2) + lane / 16 * 4, (i & 4) + (lane & 2) + (i & 1),
                  lane / 4 % 4};
}

/* ---- matrices of f32 and integers ------------------------------------------------------------ */

typedef struct Tile {
    float a[4][MMA_MOST_ROWS][MMA_MOST_DEPTH], b[4][MMA_MOST_DEPTH][MMA_COLUMNS]; /* [product] */
    int32_t a_exponent[4][MMA_MOST_ROWS][MMA_MOST_DEPTH],
        b_exponent[4][MMA_MOST_DEPTH][MMA_COLUMNS];
    double d[4][MMA_MOST_ROWS][MMA_COLUMNS];
    bool has_special; /* infinities or NaNs */
} Tile;

static float element_of(Type type, uint32_t word, uint32_t e, uint32_t bits) {
    uint32_t value = word >> e * bits;
    if (type == T_S4) return (float)((int32_t)(value << 28) >> 28);
    if (type == T_U4) return (float)(value & 15);
    return element_to_float(type, (const unsigned char *)&value);
}

static void gather(const Warp *warp, const Inst *inst, bool is_a, const Operand *ops, Tile *tile) {
    const Mods *mods = &inst->mods;
    Type type = (Type)mods->types[is_a ? 1 : 2];
    uint32_t bits = kinds[kind_of(mods)].bits, each = 32 / bits,
             count = mma_registers(mods, is_a ? 'A' : 'B');
    /* fp8 is multiplied as f16 */
    int32_t least = type == T_BF16 || type == T_TF32 ? -126 : -14;
    for (uint32_t r = 0; r < count; r++)
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (uint32_t e = 0; e < each; e++) {
                Cell at = cell_of_operand(mods, is_a, lane, r, e, each);
                float value = element_of(type, in32(warp, &ops[r])[lane], e, bits);
                int32_t exponent = mma_exponent((double)value, least);
                if (is_a) {
                    tile->a[at.product][at.row][at.column] = value;
                    tile->a_exponent[at.product][at.row][at.column] = exponent;
                } else {
                    tile->b[at.product][at.row][at.column] = value;
                    tile->b_exponent[at.product][at.row][at.column] = exponent;
                }
                tile->has_special |= !isfinite(value);
            }
}

static void gather_sums(const Warp *warp, const Inst *inst, const Operand *ops, Tile *tile) {
    const Mods *mods = &inst->mods;
    Type type = (Type)mods->types[3];
    uint32_t each = type == T_F16 ? 2 : 1, count = mma_registers(mods, 'C');
    for (uint32_t lane = 0; lane < LANES; lane++)
        for (uint32_t i = 0; i < count * each; i++) {
            Cell at = cell_of_sum(mods, type, lane, i);
            uint32_t word = in32(warp, &ops[i / each])[lane] >> i % each * 16;
            double *to = &tile->d[at.product][at.row][at.column];
            if (type == T_S32)
                *to = (double)(int32_t)word;
            else
                *to = (double)element_to_float(type, (const unsigned char *)&word);
            tile->has_special |= !isfinite(*to);
        }
}

/* ---- sums ------------------------------------------------------------------------------------ */

/* Integers: exact */
static void add_integers(const Inst *inst, Tile *tile) {
    for (uint32_t row = 0; row < inst->mods.rows; row++) {
        float sum[MMA_COLUMNS] = {0};
        for (uint32_t k = 0; k < inst->mods.depth; k++)
            for (uint32_t i = 0; i < MMA_COLUMNS; i++)
                sum[i] += tile->a[0][row][k] * tile->b[0][k][i];
        for (uint32_t i = 0; i < MMA_COLUMNS; i++) tile->d[0][row][i] += (double)sum[i];
    }
}

static void add_floats(const Inst *inst, Tile *tile) {
    const Mods *mods = &inst->mods;
    bool is_fp8 = kinds[kind_of(mods)].bits == 8;
    for (uint32_t p = 0; p < (is_quad(mods) ? 4 : 1); p++)
        for (uint32_t r = 0; r < mods->rows; r++) {
            MmaRow row = {.a = tile->a[p][r],
                          .b = tile->b[p][0],
                          .a_exponent = tile->a_exponent[p][r],
                          .b_exponent = tile->b_exponent[p][0],
                          .depth = mods->depth,
                          .to_half = mods->types[0] == T_F16,
                          .has_special = tile->has_special};
            if (is_quad(mods))
                mma_add_chain(&row, tile->d[p][r]);
            else if (is_fp8)
                mma_add_pairs(&row, tile->d[p][r]);
            else
                mma_add_fused(&row, tile->d[p][r]);
        }
}

static uint32_t sum_bits(const Inst *inst, double value) {
    float single = (float)value;
    uint32_t bits;
    if (inst->mods.types[0] == T_F16) return value != value ? 0x7fff : half_from_double(value);
    if (inst->mods.types[0] == T_S32) {
        bool saturates = (inst->mods.flags & FLAG_SATFINITE) != 0;
        if (saturates)
            value = value > INT32_MAX ? INT32_MAX : value < INT32_MIN ? INT32_MIN : value;
        return (uint32_t)(int64_t)value;
    }
    memcpy(&bits, &single, sizeof bits);
    return value != value ? 0x7fffffffu : bits;
}

static void scatter(Warp *warp, const Inst *inst, const Tile *tile) {
    const Mods *mods = &inst->mods;
    Type type = (Type)mods->types[0];
    uint32_t each = type == T_F16 ? 2 : 1, count = mma_registers(mods, 'D');
    for (uint32_t r = 0; r < count; r++) {
        uint32_t out[LANES] = {0};
        for (uint32_t lane = 0; lane < LANES; lane++)
            for (uint32_t e = 0; e < each; e++) {
                Cell at = cell_of_sum(mods, type, lane, r * each + e);
                out[lane] |= sum_bits(inst, tile->d[at.product][at.row][at.column]) << 16 * e;
            }
        if (!inst->ops[r].sink) put32(warp, &inst->ops[r], out, ALL_LANES);
    }
}

/* Operands in the order of the text: D, A, B, C */
static const Operand *operand_of(const Inst *inst, char side) {
    uint32_t at = 0;
    for (const char *before = "DABC"; *before != side; before++)
        at += mma_registers(&inst->mods, *before);
    return &inst->ops[at];
}

static Step run_numbers(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, ALL_LANES);
    if (step != STEP_NEXT) return step;
    Tile tile;
    tile.has_special = false;
    gather(warp, inst, true, operand_of(inst, 'A'), &tile);
    gather(warp, inst, false, operand_of(inst, 'B'), &tile);
    gather_sums(warp, inst, operand_of(inst, 'C'), &tile);
    if (inst->mods.types[0] == T_S32)
        add_integers(inst, &tile);
    else
        add_floats(inst, &tile);
    scatter(warp, inst, &tile);
    return STEP_NEXT;
}

/* ---- bits ------------------------------------------------------------------------------------ */

/* d = c + popc(a op b), over the bits of a row of A and a column of B: 32 in a register */
static Step run_bits(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, ALL_LANES);
    if (step != STEP_NEXT) return step;
    const Mods *mods = &inst->mods;
    uint32_t a[MMA_MOST_ROWS][8] = {{0}}, b[8][MMA_COLUMNS] = {{0}}, words = mods->depth / 32;
    const Operand *from[2] = {operand_of(inst, 'A'), operand_of(inst, 'B')};
    for (uint32_t side = 0; side < 2; side++)
        for (uint32_t r = 0; r < mma_registers(mods, side ? 'B' : 'A'); r++)
            for (uint32_t lane = 0; lane < LANES; lane++) {
                Cell at = cell_of_operand(mods, side == 0, lane, r, 0, 32);
                uint32_t word = in32(warp, &from[side][r])[lane];
                if (side == 0)
                    a[at.row][at.column / 32] = word;
                else
                    b[at.row / 32][at.column] = word;
            }
    const Operand *c = operand_of(inst, 'C');
    for (uint32_t r = 0; r < mma_registers(mods, 'D'); r++) {
        uint32_t out[LANES];
        for (uint32_t lane = 0; lane < LANES; lane++) {
            Cell at = cell_of_sum(mods, T_S32, lane, r);
            out[lane] = in32(warp, &c[r])[lane];
            for (uint32_t k = 0; k < words; k++) {
                uint32_t x = a[at.row][k], y = b[k][at.column];
                out[lane] +=
                    (uint32_t)__builtin_popcount(mods->reduce == REDUCE_AND ? x & y : x ^ y);
            }
        }
        if (!inst->ops[r].sink) put32(warp, &inst->ops[r], out, ALL_LANES);
    }
    return STEP_NEXT;
}

/* ---- f64 ------------------------------------------------------------------------------------- */

static double double_at(const Warp *warp, const Operand *op, uint32_t lane) {
    double value;
    memcpy(&value, &in64(warp, op)[lane], sizeof value);
    return value;
}

static Step run_doubles(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, ALL_LANES);
    if (step != STEP_NEXT) return step;
    const Mods *mods = &inst->mods;
    double a[MMA_MOST_ROWS][16], b[16][MMA_COLUMNS];
    const Operand *from_a = operand_of(inst, 'A'), *from_b = operand_of(inst, 'B'),
                  *c = operand_of(inst, 'C');
    for (uint32_t lane = 0; lane < LANES; lane++) {
        for (uint32_t r = 0; r < mma_registers(mods, 'A'); r++) {
            Cell at = cell_of_operand(mods, true, lane, r, 0, 1);
            a[at.row][at.column] = double_at(warp, &from_a[r], lane);
        }
        for (uint32_t r = 0; r < mma_registers(mods, 'B'); r++) {
            Cell at = cell_of_operand(mods, false, lane, r, 0, 1);
            b[at.row][at.column] = double_at(warp, &from_b[r], lane);
        }
    }
    for (uint32_t r = 0; r < mma_registers(mods, 'D'); r++) {
        uint64_t out[LANES];
        for (uint32_t lane = 0; lane < LANES; lane++) {
            Cell at = cell_of_sum(mods, T_F64, lane, r);
            double sum = double_at(warp, &c[r], lane);
            for (uint32_t k = 0; k < mods->depth; k++)
                sum = fma(a[at.row][k], b[k][at.column], sum);
            memcpy(&out[lane], &sum, sizeof sum);
        }
        if (!inst->ops[r].sink) put64(warp, &inst->ops[r], out, ALL_LANES);
    }
    return STEP_NEXT;
}

/* ---- movmatrix ------------------------------------------------------------------------------- */

/* Transposes an 8 x 8 matrix of 16 bits: lane l holds elements 2 (l % 4) and the next of row l / 4.
 */
static Step run_transpose(Block *block, Warp *warp, const Inst *inst, uint32_t mask) {
    Step step = schedule_lanes(block, warp, mask, ALL_LANES);
    if (step != STEP_NEXT) return step;
    const uint32_t *from = in32(warp, &inst->ops[1]);
    uint32_t out[LANES];
    for (uint32_t lane = 0; lane < LANES; lane++) {
        uint32_t row = lane / 4, low = lane % 4 * 2, shift = row % 2 * 16;
        out[lane] = (from[low * 4 + row / 2] >> shift & 0xffff) |
                    (from[(low + 1) * 4 + row / 2] >> shift & 0xffff) << 16;
    }
    put32(warp, &inst->ops[0], out, mask);
    return STEP_NEXT;
}

/* ---- selection of the handler ---------------------------------------------------------------- */

Run pick_mma(const Inst *inst) {
    const Mods *mods = &inst->mods;
    if (inst->opcode == OP_MOVMATRIX)
        return mods->eight && mods->transposed && inst_type(inst) == T_B16 &&
                       (mods->flags & FLAG_ALIGNED)
                   ? run_transpose
                   : NULL;
    Kind kind = kind_of(mods);
    bool saturates = (mods->flags & FLAG_SATFINITE) != 0, counts = mods->choice == CHOICE_POPC;
    bool integers = kind == KIND_BYTE || kind == KIND_NIBBLE;
    if (kind == KIND_COUNT || !(mods->flags & FLAG_ALIGNED) || (saturates && !integers) ||
        counts != (kind == KIND_BIT))
        return NULL;
    bool by_columns = mods->layouts[0] == LAYOUT_ROW && mods->layouts[1] == LAYOUT_COLUMN;
    if (!mods->layouts[1] || (!is_quad(mods) && !by_columns)) return NULL;
    bool mixed = mods->types[0] != mods->types[3];
    if (mixed && !(is_quad(mods) && mods->types[0] == T_F32)) return NULL;
    if (kind == KIND_BIT)
        return mods->reduce == REDUCE_AND || mods->reduce == REDUCE_XOR ? run_bits : NULL;
    return kind == KIND_DOUBLE ? run_doubles : run_numbers;
}
