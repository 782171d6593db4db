/* Operands of matrix instructions in shared memory: from a tile's layout to the descriptors of a
 * contraction. */
#include "derive/tiles.h"

static int64_t rows_of(const Prog *prog, const Role *role, const Access *tile) {
    int64_t rows = 1;
    for (int axis = 0; axis + 1 < tile->rank; axis++) rows *= tile_extent(prog, role, tile, axis);
    return rows;
}

/* A panel of an operand is as wide as one span of the swizzle (PTX ISA 9.7.15.5.1.2.2, "Matrix
 * descriptor format"):
 *   K-major: 8 rows of one span each form an atom. Stride: 8 spans, to the next 8 rows; the leading
 *   offset is ignored.
 *   MN-major: 8 contraction steps of one span along m or n form an atom. Stride: to the next 8
 *   steps; leading: to the next span. */
static Matrix matrix_of(const FlowCode *code, const MmaOperand *operand, int k) {
    const Layout *layout = access_layout(code->prog, code->role, operand->tile);
    int64_t bytes = element_rows[operand->tile->type].bytes, span = layout->panel * bytes;
    int64_t panel = rows_of(code->prog, code->role, operand->tile) * span;
    if (operand->mn_major)
        return (Matrix){.in_memory = true,
                        .swizzle = layout->swizzle,
                        .leading = panel,
                        .stride = 8 * span,
                        .step = k * span,
                        .slab = TILES_SLAB_ROWS * bytes / span * panel};
    return (Matrix){.in_memory = true,
                    .swizzle = layout->swizzle,
                    .leading = 16,
                    .stride = 8 * span,
                    .step = k * bytes,
                    .panel_steps = span / (k * bytes),
                    .panel = panel,
                    .slab = TILES_SLAB_ROWS * span};
}

static ContractionPlan *contraction_of(Arena *arena, const FlowCode *code, const Mma *mma) {
    ContractionPlan *contraction = NEW(arena, ContractionPlan);
    int k = mma_rows[mma->kind].k;
    if (mma->a.tile->space != SPACE_REGISTER) contraction->a = matrix_of(code, &mma->a, k);
    contraction->b = matrix_of(code, &mma->b, k);
    contraction->sums = mma->n * TILES_SLAB_ROWS / 128;
    return contraction;
}

void plan_contractions(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->contractions = NEW_ARRAY(arena, ContractionPlan *, code->rows.count);
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (plan_contracts(row))
            plan->contractions[at] = contraction_of(arena, code, &row->tile->mma);
    }
}

int64_t plan_matrix_at(const Matrix *matrix, int step, int slab) {
    int64_t panels = matrix->panel_steps > 0 ? step / matrix->panel_steps : 0;
    int64_t steps = matrix->panel_steps > 0 ? step % matrix->panel_steps : step;
    return panels * matrix->panel + steps * matrix->step + slab * matrix->slab;
}
