/* Matrix instructions of a warpgroup (wgmma, PTX ISA 9.7.15): descriptors from layouts, fence, issue.
 * Commits and waits stand where the plan has them. */
#include "codegen/gen.h"

/* ---- descriptors -------------------------------------------------------------------------------------------------- */

/* Where a matrix lies, as its descriptor says it (PTX ISA 9.7.15.5.1.2.2, "Matrix descriptor format"): start address, leading and stride byte
 * offsets in units of 16 bytes, swizzle mode. With the swizzles used here:
 *   K-major: 8 rows of one span each make an atom; stride: 8 spans to the next 8 rows; the leading offset is ignored.
 *   MN-major: 8 contraction steps of one span along m or n make an atom; stride: to the next 8 steps; leading: to the next span. */
typedef struct Descriptor {
    Reg base;            /* .b64, of the first instruction's matrix */
    int64_t step;        /* bytes from one instruction to the next along the contraction, within a panel */
    int64_t panel_steps; /* instructions to a panel; then `panel` bytes further */
    int64_t panel;
    int64_t slab; /* bytes from one 64-row slab to the next */
} Descriptor;

static Descriptor describe(Gen *gen, const MmaOperand *operand, int k) {
    TileShape shape = access_shape(gen, operand->tile);
    int64_t bytes = element_rows[shape.type].bytes, span = shape.layout.panel * bytes,
            rows = 1; /* an operand's panel is one span wide */
    for (int axis = 0; axis + 1 < shape.rank; axis++) rows *= shape.extents[axis];
    Point point = {.outer = NULL};
    for (int i = 0; i < PROG_MAX_INDEXES; i++) point.indexes[i] = lin_const(0);
    Reg address = lin_in_reg(gen, shared_linear(gen, &point, operand->tile));
    Descriptor out = {.panel = rows * span};
    int64_t leading = 1, stride = 8 * span >> 4;
    if (operand->mn_major) {
        leading = rows * span >> 4;
        out.step = k * span;
        out.panel_steps = INT64_MAX;
        out.slab = 64 * bytes / span * out.panel;
    } else {
        out.step = k * bytes;
        out.panel_steps = span / out.step;
        out.slab = 64 * span;
    }
    static const int64_t modes[] = {[SWIZZLE_NONE] = 0, [SWIZZLE_128] = 1, [SWIZZLE_64] = 2, [SWIZZLE_32] = 3};
    /* 18 bits of the address (matrix-descriptor-encode): in a cluster those above name the block, and would reach into the leading offset */
    Reg start = PURE(gen->ptx, REG_32, "bfe.u32", ptx_reg(address), ptx_int(4), ptx_int(14));
    Reg low = PURE(gen->ptx, REG_32, "or.b32", ptx_reg(start), ptx_int(leading << 16));
    Reg high = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(stride | modes[shape.layout.swizzle] << 30));
    out.base = PURE(gen->ptx, REG_64, "mov.b64", ptx_vector((Reg[]){low, high}, 2));
    return out;
}

static Reg matrix_at(Gen *gen, const Descriptor *descriptor, int step, int slab) {
    int64_t panels = descriptor->panel_steps == INT64_MAX ? 0 : step / descriptor->panel_steps;
    int64_t steps = descriptor->panel_steps == INT64_MAX ? step : step % descriptor->panel_steps;
    int64_t bytes = panels * descriptor->panel + steps * descriptor->step + slab * descriptor->slab;
    if (bytes == 0) return descriptor->base;
    return PURE(gen->ptx, REG_64, "add.s64", ptx_reg(descriptor->base), ptx_int(bytes >> 4));
}

/* The first operand from registers: of each 8 columns a thread's row and the row 8 below, two columns to a register, as its tile is held (PTX ISA
 * 9.7.15.5.1.1.1, figure "WGMMA .m64nNk16 register fragment layout for matrix A"). */
static Operand fragment_at(const Gen *gen, const Mma *mma, int step, int slab) {
    return ptx_vector(&gen->role->tiles[mma->a.tile->object][4 * (slab * mma->steps + step)], 4);
}

/* ---- issue -------------------------------------------------------------------------------------------------------- */

const char *mma_instruction(Arena *arena, const Mma *mma) {
    const MmaRow *row = &mma_rows[mma->kind];
    return arena_printf(arena, "wgmma.mma_async.sync.aligned.m64n%dk%d.%s", mma->n, row->k,
                        row->name);
}

void gen_mma(Gen *gen, const Row *row_of_code) {
    RoleState *state = gen->role;
    const Tile *tile = row_of_code->tile;
    const Mma *mma = &tile->mma;
    const MmaRow *row = &mma_rows[mma->kind];
    int held = mma->n / 2; /* accumulator registers of a slab: 64 * n over 128 threads */
    bool in_registers = mma->a.tile->space == SPACE_REGISTER;
    Descriptor a = in_registers ? (Descriptor){.base = PTX_NONE} : describe(gen, &mma->a, row->k),
               b = describe(gen, &mma->b, row->k);
    const Reg *registers = state->tiles[tile->target.object];
    const char *op = mma_instruction(gen->arena, mma);
    bool integer = row->sum == E_I32;
    /* scale-d is a predicate: an immediate would be a fresh definition of the accumulator to ptxas, which then waits between slabs */
    Reg zero = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(0));
    Reg keep = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(zero), ptx_reg(zero));
    Reg filled = state->filled[tile->target.object], first = filled.class != REG_NONE ? filled : keep;
    if (tile->op == ASSIGN_SET) first = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(zero), ptx_reg(zero));
    int at = row_number(gen, row_of_code);
    wait_before(gen, at);
    INS0(gen->ptx, "wgmma.fence.sync.aligned");
    for (int step = 0; step < mma->steps; step++) {
        for (int slab = 0; slab < mma->slabs; slab++) {
            Operand operands[8] = {
                ptx_vector(&registers[slab * held], held),
                in_registers ? fragment_at(gen, mma, step, slab) : ptx_reg(matrix_at(gen, &a, step, slab)),
                ptx_reg(matrix_at(gen, &b, step, 0)), ptx_reg(step == 0 ? first : keep)};
            int count = 4;
            if (!integer) {
                operands[count++] = ptx_int(1); /* neither operand is negated */
                operands[count++] = ptx_int(1);
            }
            if (row->either_major) {
                if (!in_registers) operands[count++] = ptx_int(mma->a.mn_major ? 1 : 0);
                operands[count++] = ptx_int(mma->b.mn_major ? 1 : 0);
            }
            ptx_ins(gen->ptx, PTX_NONE, false, op, operands, count);
        }
    }
    zero_filled(gen, tile->target.object);
    if (state->plan->commits[at]) INS0(gen->ptx, "wgmma.commit_group.sync.aligned");
    ptx_forget(gen->ptx); /* accumulators have changed */
}
