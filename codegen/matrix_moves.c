/* Accumulators to and from 16-bit tiles of shared memory by matrices of 8 x 8 elements
 * (stmatrix, ldmatrix: PTX ISA 9.7.14.5, 9.7.14.6). Takes a tile and the indexes along its rows
 * and columns; emits the instructions, with an address per lane.
 *
 * A thread's pair of accumulator registers, narrowed to one word, is its part of one such
 * matrix, so no shuffle is needed. Matrices follow the order of a thread's pairs: rows 0 .. 7
 * and 8 .. 15 of the warp's sixteen, then the same of the next 8 columns. A lane gives the
 * address of one row of 8 elements, whose 16 bytes a swizzle keeps together. */
#include "codegen/gen.h"

/* The address of this lane for up to four matrices, the first of which begins at (row, column)
 * of the warpgroup's accumulator. A row in memory is a row of the matrix, or if transposed a
 * column. */
static Operand matrix_address(Gen *gen, Point *statement, const Access *access,
                              const MatrixPlace *place) {
    Reg thread = gen->role->thread;
    Reg half = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(thread), ptx_int(1));
    Reg warp = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(half), ptx_int(48)); /* 16 rows per warp */
    /* lanes 16 .. 31 address the next 8 columns */
    Reg later = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(half), ptx_int(8));
    Point point = {.outer = statement, .own = ~0u};
    Lin row, column;
    if (!place->transposed) {
        Reg inner = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(thread), ptx_int(15));
        row = lin_reg(PURE(gen->ptx, REG_32, "add.s32", ptx_reg(warp), ptx_reg(inner)), 1, 63);
        column = lin_reg(later, 8, 8);
    } else {
        Reg inner = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(thread), ptx_int(7));
        /* every second group of eight lanes addresses the next 8 rows */
        Reg below = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(thread), ptx_int(8));
        row = lin_reg(PURE(gen->ptx, REG_32, "add.s32", ptx_reg(warp), ptx_reg(below)), 8, 56);
        column = lin_reg(PURE(gen->ptx, REG_32, "add.s32", ptx_reg(later), ptx_reg(inner)), 1, 15);
    }
    row.is.add = place->at_row;
    column.is.add = place->at_column;
    point.indexes[place->row] = row;
    point.indexes[place->column] = column;
    return shared_address(gen, &point, access);
}

static const char *matrix_op(Gen *gen, const char *name, bool transposed, int count) {
    return arena_printf(gen->arena, "%s.sync.aligned.m8n8.x%d%s.shared.b16", name, count,
                        transposed ? ".trans" : "");
}

void matrix_store(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place,
                  const Reg *words, int count) {
    INS(gen->ptx, matrix_op(gen, "stmatrix", place->transposed, count),
        matrix_address(gen, statement, access, place), ptx_vector(words, count));
}

void matrix_load(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place,
                 Reg *words, int count) {
    for (int i = 0; i < count; i++) words[i] = ptx_new_reg(gen->ptx, REG_32);
    Operand address = matrix_address(gen, statement, access, place);
    INS(gen->ptx, matrix_op(gen, "ldmatrix", place->transposed, count), ptx_vector(words, count),
        address);
}
