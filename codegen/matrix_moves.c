/* Accumulators to and from 16-bit tiles of shared memory by matrices of 8 x 8 elements (stmatrix, ldmatrix: PTX ISA 9.7.14.5, 9.7.14.6): a tile and
 * the indexes along its rows and columns in; the instructions, with an address per lane, out.
 *
 * A thread's pair of accumulator registers, narrowed to one word, is its part of one such matrix, so nothing is shuffled. Matrices are taken in the
 * order of a thread's pairs: rows 0 .. 7 and 8 .. 15 of the warp's sixteen, then the same of the next 8 columns. A lane gives the address of one row of
 * 8 elements; a swizzle keeps its 16 bytes together. */
#include "codegen/gen.h"

/* The address that this lane gives for up to four matrices, of which the first begins at (row, column) of the warpgroup's accumulator. A row of memory is one
 * of the matrix, or transposed a column. */
static Operand matrix_address(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place) {
    Reg thread = gen->role->thread;
    Reg half = PURE(gen->ptx, REG_32, "shr.u32", ptx_reg(thread), ptx_int(1));
    Reg warp = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(half), ptx_int(48)); /* 16 rows a warp */
    Reg later =
        PURE(gen->ptx, REG_32, "and.b32", ptx_reg(half), ptx_int(8)); /* lanes 16 .. 31 are of the next 8 columns */
    Point point = {.outer = statement, .own = ~0u};
    Lin row, column;
    if (!place->transposed) {
        Reg inner = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(thread), ptx_int(15));
        row = lin_reg(PURE(gen->ptx, REG_32, "add.s32", ptx_reg(warp), ptx_reg(inner)), 1, 63);
        column = lin_reg(later, 8, 8);
    } else {
        Reg inner = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(thread), ptx_int(7));
        Reg below = PURE(gen->ptx, REG_32, "and.b32", ptx_reg(thread),
                         ptx_int(8)); /* of eight lanes the next are 8 rows below */
        row = lin_reg(PURE(gen->ptx, REG_32, "add.s32", ptx_reg(warp), ptx_reg(below)), 8, 56);
        column = lin_reg(PURE(gen->ptx, REG_32, "add.s32", ptx_reg(later), ptx_reg(inner)), 1, 15);
    }
    row.add = place->at_row;
    column.add = place->at_column;
    point.indexes[place->row] = row;
    point.indexes[place->column] = column;
    return shared_address(gen, &point, access);
}

static const char *matrix_op(Gen *gen, const char *name, bool transposed, int count) {
    return arena_printf(gen->arena, "%s.sync.aligned.m8n8.x%d%s.shared.b16", name, count,
                        transposed ? ".trans" : "");
}

void matrix_store(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place, const Reg *words,
                  int count) {
    INS(gen->ptx, matrix_op(gen, "stmatrix", place->transposed, count), matrix_address(gen, statement, access, place),
        ptx_vector(words, count));
}

void matrix_load(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place, Reg *words, int count) {
    for (int i = 0; i < count; i++) words[i] = ptx_new_reg(gen->ptx, REG_32);
    Operand address = matrix_address(gen, statement, access, place);
    INS(gen->ptx, matrix_op(gen, "ldmatrix", place->transposed, count), ptx_vector(words, count), address);
}
