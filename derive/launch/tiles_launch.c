/* What tile statements require of a launch: preconditions, and the alignment of tensors. */
#include "derive/tiles.h"

void tiles_precondition(Tiles *tiles, Precondition row) {
    if (row.pitch_of == 0 && algebra_required(tiles->formulas, row.condition)) return;
    vec_push(tiles->arena, &tiles->prog->preconditions, row);
}

void tiles_align_strides(Param *param, uint32_t bytes) {
    if (param->stride_alignment < bytes) param->stride_alignment = bytes;
}

void tiles_join_axes(Param *param, int axis) {
    for (; axis + 1 < param->rank; axis++) param->joined |= 1u << axis;
}

static void require_grid(Tiles *tiles) {
    const Prog *prog = tiles->prog;
    Arena *arena = tiles->arena;
    Expr *product = NULL;
    Str text = str_new(arena);
    for (size_t i = 0; i < prog->axes.count; i++) {
        const Axis *axis = &prog->axes.items[i];
        if (!axis->padded || axis->padded->kind == X_POISON) return;
        Expr *wide = expr_binary(arena, OP_MUL, expr_integer(arena, E_I64, 1, axis->span),
                                 axis->padded, axis->span);
        product = product ? expr_binary(arena, OP_MUL, product, wide, axis->span) : wide;
        if (i > 0) str_add(&text, " * ");
        expr_print(axis->padded, prog, NULL, NULL, &text);
    }
    if (!product) return;
    Algebra *algebra = tiles->formulas;
    const Poly *room = poly_sum(algebra, poly_constant(algebra, EXTENT_MOST),
                                algebra_launched(algebra, product), -1);
    if (algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room)) return;
    Span span = prog->axes.items[0].span;
    str_printf(&text, " <= %lld", (long long)EXTENT_MOST);
    Expr *most = expr_integer(arena, E_I64, EXTENT_MOST, span);
    tiles_precondition(tiles,
                       (Precondition){.condition = expr_binary(arena, OP_LE, product, most, span),
                                      .text = text.text,
                                      .reason = "the index of a grid tile has 32 bits",
                                      .help = "launch the kernel in parts, or choose larger tiles",
                                      .span = span});
}

static void alignments(Prog *prog) {
    for (size_t i = 0; i < prog->params.count; i++) {
        Param *param = &prog->params.items[i];
        if (param->is_tensor && param->type != E_COUNT &&
            param->alignment < (uint32_t)element_rows[param->type].bytes)
            param->alignment = (uint32_t)element_rows[param->type].bytes;
    }
}

void tiles_launch(Tiles *tiles) {
    alignments(tiles->prog);
    require_grid(tiles);
}
