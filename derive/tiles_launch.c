/* What tile statements require of a launch: preconditions, and the alignment of tensors. */
#include "derive/tiles.h"

void tiles_precondition(Tiles *tiles, Expr *condition, const char *text, const char *reason,
                        const char *help, Span span) {
    Prog *prog = tiles->prog;
    for (size_t i = 0; i < prog->preconditions.count; i++)
        if (algebra_same(tiles->formulas, prog->preconditions.items[i].condition, condition))
            return;
    vec_push(tiles->arena, &prog->preconditions,
             (Precondition){condition, text, reason, help, span, false, false});
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
    tiles_precondition(
        tiles,
        expr_binary(arena, OP_LE, product, expr_integer(arena, E_I64, EXTENT_MOST, span), span),
        text.text, "the index of a grid tile has 32 bits",
        "launch the kernel in parts, or choose larger tiles", span);
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
