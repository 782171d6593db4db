/* Matrix instructions of a warpgroup (wgmma, PTX ISA 9.7.15): descriptors, fence, issue. The
 * plan holds positions of operands, commits and waits. */
#include "codegen/gen.h"

/* ---- descriptors ----------------------------------------------------------------------------- */

/* The descriptor of an operand's first matrix (PTX ISA 9.7.15.5.1.2.2, "Matrix descriptor format"):
 * start address, leading and stride byte offsets in units of 16 bytes, swizzle mode */
static Reg describe(Gen *gen, const MmaOperand *operand, const Matrix *matrix) {
    static const int64_t modes[] = {
        [SWIZZLE_NONE] = 0, [SWIZZLE_128] = 1, [SWIZZLE_64] = 2, [SWIZZLE_32] = 3};
    if (!matrix->in_memory) return PTX_NONE;
    Point point = {.outer = NULL};
    for (int i = 0; i < PROG_MAX_INDEXES; i++) point.indexes[i] = lin_const(0);
    Reg address = lin_in_reg(gen, shared_linear(gen, &point, operand->tile));
    /* 18 bits of the address: in a cluster the upper bits hold the block's rank, and would
     * change the leading offset */
    Reg start = PURE(gen->ptx, REG_32, "bfe.u32", ptx_reg(address), ptx_int(4), ptx_int(14));
    Reg low = PURE(gen->ptx, REG_32, "or.b32", ptx_reg(start), ptx_int(matrix->leading >> 4 << 16));
    Reg high = PURE(gen->ptx, REG_32, "mov.b32",
                    ptx_int(matrix->stride >> 4 | modes[matrix->swizzle] << 30));
    return PURE(gen->ptx, REG_64, "mov.b64", ptx_vector((Reg[]){low, high}, 2));
}

static Reg matrix_at(Gen *gen, Reg first, const Matrix *matrix, int step, int slab) {
    int64_t bytes = plan_matrix_at(matrix, step, slab);
    if (bytes == 0) return first;
    return PURE(gen->ptx, REG_64, "add.s64", ptx_reg(first), ptx_int(bytes >> 4));
}

/* The first operand from registers: of each 8 columns the thread's row and the row 8 below, two
 * columns per register, which is the layout of its tile (PTX ISA 9.7.15.5.1.1.1, figure "WGMMA
 * .m64nNk16 register fragment layout for matrix A"). */
static Operand fragment_at(const Gen *gen, const Mma *mma, int step, int slab) {
    return ptx_vector(&gen->role->tiles[mma->a.tile->object][4 * (slab * mma->steps + step)], 4);
}

/* ---- issue ----------------------------------------------------------------------------------- */

void gen_mma(Gen *gen, const Row *row_of_code) {
    RoleState *state = gen->role;
    const Tile *tile = row_of_code->tile;
    const Mma *mma = &tile->mma;
    const MmaRow *row = &mma_rows[mma->kind];
    int at = row_number(gen, row_of_code);
    const ContractionPlan *contraction = state->rows->contractions[at];
    int sums = contraction->sums;
    bool in_registers = !contraction->a.in_memory;
    Reg a = describe(gen, &mma->a, &contraction->a), b = describe(gen, &mma->b, &contraction->b);
    const Reg *registers = state->tiles[tile->target.object];
    const char *op = mma_instruction(gen->arena, mma);
    bool integer = row->sum == E_I32;
    /* scale-d must be a predicate: ptxas takes an immediate as a new definition of the
     * accumulator, and then waits between slabs */
    Reg zero = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(0));
    Reg keep = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(zero), ptx_reg(zero));
    Reg filled = state->filled[tile->target.object],
        first = filled.class != REG_NONE ? filled : keep;
    if (tile->op == ASSIGN_SET)
        first = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(zero), ptx_reg(zero));
    wait_before(gen, at);
    INS0(gen->ptx, "wgmma.fence.sync.aligned");
    for (int step = 0; step < mma->steps; step++) {
        for (int slab = 0; slab < mma->slabs; slab++) {
            Operand operands[8] = {ptx_vector(&registers[slab * sums], sums),
                                   in_registers
                                       ? fragment_at(gen, mma, step, slab)
                                       : ptx_reg(matrix_at(gen, a, &contraction->a, step, slab)),
                                   ptx_reg(matrix_at(gen, b, &contraction->b, step, 0)),
                                   ptx_reg(step == 0 ? first : keep)};
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
    if (state->rows->commits[at]) INS0(gen->ptx, "wgmma.commit_group.sync.aligned");
    ptx_forget(gen->ptx); /* accumulators have changed */
}
