/* wgmma, the computation. Reads the operands from shared memory through their descriptors, or
 * from registers, into tiles of floats, and adds their product to the accumulator (PTX ISA
 * 9.7.15.5).
 *
 * Products of all types are exact in f32 (except overflow and underflow at the limits of bf16
 * and tf32), and are added to the accumulator one by one in the order of k, in f32. Integers use
 * the same code: a sum of 32 products of 8 bits is exact in f32. An f16 accumulator is rounded
 * once per instruction. */
#include "emulator/findings/names.h"
#include "emulator/order/order.h"

enum { ROWS = 64, MAX_COLUMNS = 256, MAX_DEPTH = 32, PANEL = 8, CHUNK = 16 };

typedef struct Tiles {
    float d[ROWS * MAX_COLUMNS];      /* [row][column] */
    float a[ROWS * MAX_DEPTH];        /* [row][k] */
    float b[MAX_COLUMNS * MAX_DEPTH]; /* [column / PANEL][k][column % PANEL] */
} Tiles;

/* ---- operands in shared memory --------------------------------------------------------------- */

/* A matrix descriptor: addresses of the 16-byte chunks of a matrix (PTX ISA 9.7.15.5.1.2) */
typedef struct Layout {
    uint32_t start, leading, stride; /* bytes */
    uint32_t span;                   /* bytes of a swizzled row: 16 (no swizzle), 32, 64 or 128 */
    uint32_t base;                   /* base offset of the swizzle pattern, in rows of 128 bytes */
    bool across;                     /* chunks are contiguous along M or N, not along K */
} Layout;

static Layout layout_of(uint64_t descriptor, bool across) {
    static const uint32_t spans[4] = {16, 128, 64, 32};
    return (Layout){.start = (uint32_t)(descriptor & 0x3fff) << 4,
                    .leading = (uint32_t)(descriptor >> 16 & 0x3fff) << 4,
                    .stride = (uint32_t)(descriptor >> 32 & 0x3fff) << 4,
                    .base = (uint32_t)(descriptor >> 49 & 7),
                    .span = spans[descriptor >> 62],
                    .across = across};
}

/* K-major: `line` is a row of A or a column of B, `chunk` counts along K. Otherwise `line` is a
 * k, and `chunk` counts along M or N. Eight lines of `span` bytes are one pattern; without
 * swizzle, a core matrix of eight chunks. */
static uint32_t chunk_address(const Layout *layout, uint32_t line, uint32_t chunk) {
    uint32_t wide = layout->span / CHUNK, address = layout->start + line % 8 * layout->span;
    if (!layout->across)
        address +=
            line / 8 * layout->stride + chunk % wide * CHUNK + chunk / wide * layout->leading;
    else if (wide == 1)
        address += line / 8 * layout->leading + chunk * layout->stride;
    else
        address +=
            line / 8 * layout->stride + chunk % wide * CHUNK + chunk / wide * layout->leading;
    /* The swizzle XORs the chunk number with bits of the address, relative to the start of the
     * pattern */
    return address ^ ((((address >> 7) - layout->base) & (wide - 1)) << 4);
}

static float byte_to_float(Type type, uint8_t bits) {
    if (type == T_S8) return (float)(int8_t)bits;
    if (type == T_U8) return (float)bits;
    if (type == T_E5M2) return half_to_float((uint16_t)(bits << 8));
    uint32_t exponent = bits >> 3 & 15, fraction = bits & 7,
             out = (exponent + 120) << 23 | fraction << 20;
    float value = (float)fraction * 0x1p-9f;
    if ((bits & 0x7f) == 0x7f) out = 0x7fffffff;
    if (exponent != 0) memcpy(&value, &out, sizeof value);
    return bits & 0x80 ? -value : value;
}

static uint32_t element_bytes(Type type) { return type == T_TF32 ? 4 : type_rows[type].bytes; }

float element_to_float(Type type, const unsigned char *from) {
    uint16_t half;
    uint32_t word;
    float value;
    if (element_bytes(type) == 1) return byte_to_float(type, *from);
    if (type == T_TF32 || type == T_F32) {
        memcpy(&word, from, 4);
        if (type == T_TF32) word &= 0xffffe000u; /* the hardware ignores the lower bits */
        memcpy(&value, &word, 4);
        return value;
    }
    memcpy(&half, from, 2);
    return type == T_BF16 ? bfloat_to_float(half) : half_to_float(half);
}

/* Position of element (row, k) in a tile. For B, rows are columns. */
static uint32_t place_a(uint32_t depth, uint32_t row, uint32_t k) { return row * depth + k; }
static uint32_t place_b(uint32_t depth, uint32_t row, uint32_t k) {
    return row / PANEL * PANEL * depth + k * PANEL + row % PANEL;
}

typedef struct Side {
    Type type;
    Layout layout;
    uint32_t rows, depth;
    float sign;
    uint32_t (*place)(uint32_t depth, uint32_t row, uint32_t k);
} Side;

static bool read_chunks(Block *block, const Async *op, const Side *source, float *tile) {
    uint32_t bytes = element_bytes(source->type), count = CHUNK / bytes;
    uint32_t lines = source->layout.across ? source->depth : source->rows,
             length = source->layout.across ? source->rows : source->depth;
    uint64_t series = access_series(block);
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t chunk = 0; chunk < length / count; chunk++) {
            Access access = {.agent = op->agent,
                             .kind = ACCESS_READ,
                             .proxy = PROXY_ASYNC,
                             .space = SPACE_SHARED,
                             .address = chunk_address(&source->layout, line, chunk),
                             .bytes = CHUNK,
                             .op = op,
                             .series = series};
            const unsigned char *from = memory_access(block, &access);
            if (!from) return false;
            for (uint32_t i = 0; i < count; i++) {
                uint32_t along = chunk * count + i;
                uint32_t at = source->layout.across ? source->place(source->depth, along, line)
                                                    : source->place(source->depth, line, along);
                tile[at] = source->sign * element_to_float(source->type, from + i * bytes);
            }
        }
    return true;
}

/* ---- operands in registers ------------------------------------------------------------------- */

/* Fragment layouts of PTX ISA 9.7.15.5.1.1: row and column of element `e` of the accumulator of
 * a lane */
static uint32_t d_row(uint32_t lane, uint32_t e) { return lane / 4 + (e / 2 % 2) * 8; }
static uint32_t d_column(uint32_t lane, uint32_t e) { return e / 4 * 8 + lane % 4 * 2 + e % 2; }

/* Four registers per lane; each holds `each` elements that are consecutive along K. */
static void read_fragment(const Block *block, uint32_t first_warp, const Inst *inst, float sign,
                          float *tile) {
    Type type = (Type)inst->mods.types[1];
    uint32_t bytes = element_bytes(type), each = 4 / bytes, depth = inst->mods.depth;
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t r = 0; r < 4; r++) {
            const uint32_t *words =
                in32(&block->warps[first_warp + w], &inst->ops[wgmma_a(inst) + r]);
            for (uint32_t lane = 0; lane < LANES; lane++) {
                uint32_t row = w * 16 + lane / 4 + r % 2 * 8, k = (lane % 4 + r / 2 * 4) * each;
                unsigned char word[4];
                memcpy(word, &words[lane], 4);
                for (uint32_t i = 0; i < each; i++)
                    tile[place_a(depth, row, k + i)] =
                        sign * element_to_float(type, word + i * bytes);
            }
        }
}

/* ---- accumulators ---------------------------------------------------------------------------- */

static float float_of(uint32_t bits) {
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}
static uint32_t bits_of(float value) {
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return value != value ? 0x7fffffffu : bits;
}

static uint32_t *accumulator(const Block *block, uint32_t warp, const Inst *inst, uint32_t r) {
    return (uint32_t *)(void *)(block->warps[warp].banks[BANK_REGISTERS] + inst->ops[r].offset);
}

static void load_accumulator(const Block *block, uint32_t first_warp, const Inst *inst, float *d) {
    uint32_t n = inst->mods.columns, per_register = inst->mods.types[0] == T_F16 ? 2 : 1;
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t r = 0; r < inst->vector; r++) {
            const uint32_t *words = accumulator(block, first_warp + w, inst, r);
            for (uint32_t lane = 0; lane < LANES; lane++) {
                uint32_t e = r * per_register;
                float *to = d + (w * 16 + d_row(lane, e)) * n + d_column(lane, e);
                to[0] = per_register == 1 ? float_of(words[lane])
                                          : half_to_float((uint16_t)words[lane]);
                if (per_register == 2) to[1] = half_to_float((uint16_t)(words[lane] >> 16));
            }
        }
}

static uint16_t half_of(float value) {
    return value != value ? 0x7fff : half_from_double((double)value);
}

static void store_accumulator(const Block *block, uint32_t first_warp, const Inst *inst,
                              const float *d) {
    uint32_t n = inst->mods.columns, per_register = inst->mods.types[0] == T_F16 ? 2 : 1;
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t r = 0; r < inst->vector; r++) {
            uint32_t *words = accumulator(block, first_warp + w, inst, r);
            for (uint32_t lane = 0; lane < LANES; lane++) {
                uint32_t e = r * per_register;
                const float *from = d + (w * 16 + d_row(lane, e)) * n + d_column(lane, e);
                words[lane] = per_register == 1
                                  ? bits_of(from[0])
                                  : half_of(from[0]) | (uint32_t)half_of(from[1]) << 16;
            }
        }
}

/* Sums wrap, or saturate with .satfinite; the sum of one instruction is exact before that. */
static void add_integers(const Block *block, uint32_t first_warp, const Matrix *matrix,
                         const float *sums) {
    const Inst *inst = matrix->inst;
    bool saturates = (inst->mods.flags & FLAG_SATFINITE) != 0;
    for (uint32_t w = 0; w < 4; w++)
        for (uint32_t r = 0; r < inst->vector; r++) {
            uint32_t *words = accumulator(block, first_warp + w, inst, r);
            for (uint32_t lane = 0; lane < LANES; lane++) {
                int64_t old = matrix->accumulates ? (int32_t)words[lane] : 0;
                int64_t sum =
                    old +
                    (int64_t)
                        sums[(w * 16 + d_row(lane, r)) * inst->mods.columns + d_column(lane, r)];
                if (saturates)
                    sum = sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum;
                words[lane] = (uint32_t)sum;
            }
        }
}

/* ---- the product ----------------------------------------------------------------------------- */

/* Inner loops of constant length, so that compilers vectorise them */
static void multiply(Tiles *tiles, uint32_t columns, uint32_t depth) {
    for (uint32_t panel = 0; panel < columns; panel += PANEL) {
        const float *b = tiles->b + panel * depth;
        for (uint32_t row = 0; row < ROWS; row++) {
            const float *a = tiles->a + row * depth;
            float *d = tiles->d + row * columns + panel, sum[PANEL];
            memcpy(sum, d, sizeof sum);
            for (uint32_t k = 0; k < depth; k++)
                for (uint32_t i = 0; i < PANEL; i++) sum[i] += a[k] * b[k * PANEL + i];
            memcpy(d, sum, sizeof sum);
        }
    }
}

static uint32_t immediate(const Block *block, const Inst *inst, uint32_t at, uint32_t missing) {
    const Operand *op = &inst->ops[wgmma_scale(inst) + 1 + at];
    return op->absent ? missing : in32(&block->warps[0], op)[0];
}

/* Operand A or B as described by its descriptor and the immediates */
static Side side_of(const Block *block, const Matrix *matrix, bool is_a) {
    const Inst *inst = matrix->inst;
    bool by_descriptor = inst->ops[wgmma_a(inst)].width == 8,
         half = type_rows[inst->mods.types[1]].bytes == 2;
    uint32_t transposed = is_a ? (by_descriptor ? immediate(block, inst, 2, 0) : 0)
                               : immediate(block, inst, by_descriptor ? 3 : 2, 0);
    return (Side){.type = (Type)inst->mods.types[is_a ? 1 : 2],
                  .layout = layout_of(is_a ? matrix->a : matrix->b, half && transposed),
                  .rows = is_a ? ROWS : inst->mods.columns,
                  .depth = inst->mods.depth,
                  .sign = (int32_t)immediate(block, inst, is_a ? 0 : 1, 1) < 0 ? -1.0f : 1.0f,
                  .place = is_a ? place_a : place_b};
}

static bool read_operands(Block *block, const Async *op, const Matrix *matrix, Tiles *tiles) {
    Side a = side_of(block, matrix, true), b = side_of(block, matrix, false);
    if (matrix->inst->ops[wgmma_a(matrix->inst)].width != 8)
        read_fragment(block, op->agent.warp->index, matrix->inst, a.sign, tiles->a);
    else if (!read_chunks(block, op, &a, tiles->a))
        return false;
    return read_chunks(block, op, &b, tiles->b);
}

/* ---- writes to operands in flight ------------------------------------------------------------ */

/* Number of chunks of an operand between two addresses; *first, *end: the address range that
 * they cover */
static uint32_t chunks_within(const Side *side, uint32_t low, uint32_t high, uint32_t *first,
                              uint32_t *end) {
    uint32_t per_chunk = CHUNK / element_bytes(side->type), count = 0;
    uint32_t lines = side->layout.across ? side->depth : side->rows,
             chunks = (side->layout.across ? side->rows : side->depth) / per_chunk;
    for (uint32_t line = 0; line < lines; line++)
        for (uint32_t chunk = 0; chunk < chunks; chunk++) {
            uint32_t address = chunk_address(&side->layout, line, chunk);
            if (address >= high || address + CHUNK <= low) continue;
            if (count == 0 || address < *first) *first = address;
            if (count++ == 0 || address + CHUNK > *end) *end = address + CHUNK;
        }
    return count;
}

void matrices_span(Block *block, Matrix *matrix) {
    bool by_descriptor = matrix->inst->ops[wgmma_a(matrix->inst)].width == 8;
    for (uint32_t i = by_descriptor ? 0 : 1; i < 2; i++) {
        Side side = side_of(block, matrix, i == 0);
        chunks_within(&side, 0, UINT32_MAX, &matrix->low[i], &matrix->high[i]);
    }
}

static bool reads(const Block *block, const Matrix *matrix, uint32_t low, uint32_t high) {
    for (uint32_t i = 0; i < 2; i++) {
        if (matrix->low[i] >= high || matrix->high[i] <= low) continue;
        Side side = side_of(block, matrix, i == 0);
        uint32_t first = 0, end = 0;
        if (chunks_within(&side, low, high, &first, &end)) return true;
    }
    return false;
}

bool matrices_check_write(Block *home, const Access *access, uint32_t address) {
    for (uint32_t w = 0; w < (home->warp_count + 3) / 4; w++)
        for (const MatrixGroup *group = home->warpgroups[w].first; group; group = group->next)
            for (size_t i = 0; i < group->items.count; i++) {
                const Matrix *matrix = &group->items.items[i];
                if (!reads(home, matrix, address, address + (uint32_t)access->bytes)) continue;
                const char *name = name_shared(home->machine, address);
                Actor user = {.pc = (uint32_t)(matrix->inst - home->program->code)};
                return finding(
                    home, P0773, access->agent,
                    "writes %llu bytes at shared address %u%s%s%s, which the wgmma of %s "
                    "in warps %u .. %u reads: its group has not been waited for",
                    (unsigned long long)access->bytes, address, name ? " (" : "", name ? name : "",
                    name ? ")" : "", name_place(home->machine, &user), 4 * w, 4 * w + 3);
            }
    return true;
}

/* ---- a group --------------------------------------------------------------------------------- */

static bool same_accumulator(const Inst *x, const Inst *y) {
    if (!x || x->vector != y->vector || x->mods.columns != y->mods.columns ||
        x->mods.types[0] != y->mods.types[0])
        return false;
    for (uint32_t i = 0; i < x->vector; i++)
        if (x->ops[i].offset != y->ops[i].offset) return false;
    return true;
}

/* One wgmma. `held`: the instruction whose accumulator is in the tile, in f32, and not yet
 * written to its registers. */
static bool run_matrix(Block *block, const Async *op, const Matrix *matrix, Tiles *tiles,
                       const Inst **held) {
    const Inst *inst = matrix->inst;
    uint32_t first_warp = op->agent.warp->index, cells = ROWS * inst->mods.columns;
    if (*held && !same_accumulator(*held, inst)) {
        store_accumulator(block, first_warp, *held, tiles->d);
        *held = NULL;
    }
    if (!read_operands(block, op, matrix, tiles)) return false;
    bool integers = inst->mods.types[0] == T_S32;
    if (integers || !matrix->accumulates)
        memset(tiles->d, 0, cells * sizeof *tiles->d);
    else if (!*held)
        load_accumulator(block, first_warp, inst, tiles->d);
    multiply(tiles, inst->mods.columns, inst->mods.depth);
    if (integers)
        add_integers(block, first_warp, matrix, tiles->d);
    else if (inst->mods.types[0] == T_F16)
        store_accumulator(block, first_warp, inst, tiles->d);
    else
        *held = inst;
    return true;
}

bool matrices_run(Block *block, Async *op) {
    MatrixGroup *group = op->matrices;
    Warpgroup *warpgroup = &block->warpgroups[op->agent.warp->index / 4];
    const Inst *held = NULL;
    if (!block->tiles) block->tiles = NEW(block->machine->arena, Tiles);
    for (size_t i = 0; i < group->items.count; i++) {
        op->agent.pc = (uint32_t)(group->items.items[i].inst - block->program->code);
        order_matrix_run(op, &group->items.items[i]);
        if (!run_matrix(block, op, &group->items.items[i], block->tiles, &held)) return false;
    }
    if (held) store_accumulator(block, op->agent.warp->index, held, block->tiles->d);
    warpgroup->done = group->number + 1;
    return true;
}
