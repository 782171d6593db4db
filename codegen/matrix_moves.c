/* Accumulators to and from 16-bit tiles of shared memory by matrices of 8 x 8 elements (stmatrix, ldmatrix: PTX ISA 9.7.14.5, 9.7.14.6): a tile and
 * the indexes along its rows and columns in; the instructions, with an address per lane, out.
 *
 * A thread's pair of accumulator registers, narrowed to one word, is its part of one such matrix, so nothing is shuffled. Matrices are taken in the
 * order of a thread's pairs: rows 0 .. 7 and 8 .. 15 of the warp's sixteen, then the same of the next 8 columns. A lane gives the address of one row of
 * 8 elements; a swizzle keeps its 16 bytes together. */
#include "codegen/gen.h"

MatrixMove matrix_move(const Gen *gen, const Access *access, int row, int column) {
    if (access->space != SPACE_STAGE && access->space != SPACE_SHARED) return MATRIX_NONE;
    if (element_rows[access->type].bytes != 2) return MATRIX_NONE;
    if (access_side_by_side(gen, access, column, 8)) return MATRIX_PLAIN;
    if (access_side_by_side(gen, access, row, 8)) return MATRIX_TRANSPOSED;
    return MATRIX_NONE;
}

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
    if (place->move == MATRIX_PLAIN) {
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

static const char *matrix_op(Gen *gen, const char *name, MatrixMove move, int count) {
    return arena_printf(gen->arena, "%s.sync.aligned.m8n8.x%d%s.shared.b16", name, count,
                        move == MATRIX_TRANSPOSED ? ".trans" : "");
}

void matrix_store(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place, const Reg *words,
                  int count) {
    INS(gen->ptx, matrix_op(gen, "stmatrix", place->move, count), matrix_address(gen, statement, access, place),
        ptx_vector(words, count));
}

void matrix_load(Gen *gen, Point *statement, const Access *access, const MatrixPlace *place, Reg *words, int count) {
    for (int i = 0; i < count; i++) words[i] = ptx_new_reg(gen->ptx, REG_32);
    Operand address = matrix_address(gen, statement, access, place);
    INS(gen->ptx, matrix_op(gen, "ldmatrix", place->move, count), ptx_vector(words, count), address);
}
