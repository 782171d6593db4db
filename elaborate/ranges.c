/* What follows a statement: `where c`, and ranges of indexes, `for i in a .. b`, which follow a
 * claim too. An index counts from 0, so its value is the sum of the lower bound and the index.
 * Bounds are constants; in `ensures` they may be formulas of extents and scalars. */
#include "elaborate/private.h"

static const AstIndexRange *range_of(const Elab *e, const char *name) {
    if (!e->ranges.list || e->ranges.frame != e->frame) return NULL;
    for (size_t i = 0; i < e->ranges.list->count; i++)
        if (e->ranges.list->items[i].name.text == name) return &e->ranges.list->items[i];
    return NULL;
}

bool elab_has_range(const Elab *e, const char *name) { return range_of(e, name) != NULL; }

static void report_twice(Elab *e, const AstIndexRange *first, const AstIndexRange *second) {
    Diag *diag =
        elab_error(e, P0137, second->name.span, "index `%s` has two ranges", second->name.text);
    LABEL(e, diag, first->span, "first given here");
}

RangesOf elab_ranges_begin(Elab *e, const AstIndexRanges *list) {
    RangesOf before = e->ranges;
    e->ranges = (RangesOf){list, NEW_ARRAY(e->arena, bool, list->count + 1), e->frame};
    for (size_t i = 0; i < list->count; i++) {
        const AstIndexRange *range = &list->items[i];
        const Name *old = range->name.text ? elab_scope_find(e->scope, range->name.text) : NULL;
        bool word = range->name.text && elab_is_word(e, range->name.text);
        const AstIndexRange *first = range->name.text ? range_of(e, range->name.text) : range;
        e->ranges.used[i] = old || word || first != range; /* then reported here */
        if (first != range) report_twice(e, first, range);
        if (!old && !word) continue;
        Diag *diag =
            elab_error(e, P0101, range->name.span, "`%s` is already declared", range->name.text);
        if (old) LABEL(e, diag, old->span, "first declared here");
        HELP(e, diag, "choose another name for the index");
    }
    return before;
}

void elab_ranges_end(Elab *e, RangesOf before) {
    for (size_t i = 0; i < e->ranges.list->count; i++) {
        const AstIndexRange *range = &e->ranges.list->items[i];
        if (e->ranges.used[i] || e->target_faulty) continue;
        Diag *diag = elab_error(e, P0118, range->name.span, "`%s` is not an index of the target",
                                range->name.text);
        NOTE(e, diag,
             "an index must appear in a subscript of the target, or be declared by a reduction");
    }
    e->ranges = before;
}

static Val bound(Elab *e, const AstExpr *ast) {
    static const char words[] = "the range of an index";
    bool bare = e->bare_subscript;
    e->bare_subscript = false;
    Place place = e->place == PLACE_CLAIM ? PLACE_GRID : PLACE_CONST;
    Val v = elab_operand(e, elab_expr_at(e, ast, place, words));
    e->bare_subscript = bare;
    if (elab_is_poison(v)) return v;
    if (!elab_is_integer(v.x->type)) {
        elab_error(e, P0104, ast->span, "%s must be an integer, but this is %s", words,
                   elab_type_name(v.x->type));
        return elab_poison(e, ast->span);
    }
    if (elab_is_const(v.x)) return (Val){elab_cast_to(e, v, E_I32, ast->span), FLEX_ANY};
    if (place == PLACE_GRID) return v;
    elab_error(e, P0110, ast->span, "%s is not a constant", words);
    return elab_poison(e, ast->span);
}

static void set_extent(Elab *e, Index *index, Val extent, const AstIndexRange *range) {
    index->extent = 1; /* after an error */
    if (elab_is_poison(extent)) return;
    extent.x = elab_settled(e, extent);
    if (!elab_is_const(extent.x)) {
        index->extent = -1, index->dynamic = extent.x;
        return;
    }
    int64_t count = extent.x->constant.integer;
    if (count >= 1 && count <= INT32_MAX)
        index->extent = count;
    else
        elab_error(e, P0111, range->span, "the range of index `%s` has %lld elements", index->name,
                   (long long)count);
}

void elab_apply_range(Elab *e, Index *index, Name *name) {
    const AstIndexRange *range = range_of(e, index->name);
    if (!range) return;
    e->ranges.used[range - e->ranges.list->items] = true;
    Val from = bound(e, range->from), to = bound(e, range->to);
    bool poisoned = elab_is_poison(from) || elab_is_poison(to);
    bool zero = !poisoned && elab_is_const(from.x) && from.x->constant.integer == 0;
    index->range = range->span;
    name->value = (Val){NULL, FLEX_NONE};
    Val extent = poisoned ? elab_poison(e, range->span)
                 : zero   ? to
                          : elab_make_binary(e, OP_SUB, to, from, range->span, range->span);
    set_extent(e, index, extent, range);
    if (!poisoned && !zero) name->value = from;
}

Val elab_index_value(Elab *e, const Name *name, Span span) {
    Val index = {elab_make_index(e, name->index, span), FLEX_INT};
    if (!name->value.x) return index;
    return elab_make_binary(e, OP_ADD, name->value, index, span, span);
}

/* ---- conditions ------------------------------------------------------------------------------ */

static void find_reduction(Expr *x, void *found) {
    if (x->kind == X_REDUCE) *(bool *)found = true;
}

/* Copies into stages, and contractions, are of whole tiles. */
static bool takes_where(Elab *e, const AstStmt *ast, const Access *target, Expr *value) {
    Span span = ast->assign.where_span;
    bool reduces = false;
    expr_visit(e->arena, value, find_reduction, &reduces);
    bool copies = target->space == SPACE_STAGE && value->kind == X_READ &&
                  value->read->space == SPACE_GLOBAL && ast->assign.op == AST_SET;
    if (!reduces && !copies && !ast->assign.multicast_required) return true;
    Diag *diag = elab_error(e, P0231, span, "`where` on a %s",
                            reduces ? "contraction" : "copy from a tensor into a stage");
    if (reduces)
        HELP(e, diag,
             "contract all elements, and select where the result is used: `c ? acc[i, j] "
             ": 0`");
    else
        HELP(e, diag,
             "copy all elements: those outside of the tensor are zeros; or select: `.. = c "
             "? .. : 0`");
    return false;
}

/* The value of an element of a tile after the statement: the old one where `c` is false */
static Expr *kept_or_new(Elab *e, const AstStmt *ast, const Access *target, Expr *value, Val c) {
    static const BinaryOp ops[] = {[AST_SET] = OP_ADD,
                                   [AST_SET_ADD] = OP_ADD,
                                   [AST_SET_SUB] = OP_SUB,
                                   [AST_SET_MUL] = OP_MUL,
                                   [AST_SET_DIV] = OP_DIV};
    Access *old = NEW(e->nodes, Access);
    *old = *target;
    old->span = ast->assign.where_span;
    access_allocate(e->nodes, e->arena, old);
    for (int d = 0; d < target->rank; d++) old->subs[d] = target->subs[d];
    Val kept = {elab_make_read(e, old, ast->assign.where_span), FLEX_NONE},
        new = {value, FLEX_NONE};
    if (ast->assign.op != AST_SET)
        new = elab_make_binary(e, ops[ast->assign.op], kept, new, ast->span, ast->assign.op_span);
    return elab_settled(e, elab_make_select(e, c, new, kept, ast->span));
}

void elab_where(Elab *e, const AstStmt *ast, const Access *target, Tile *tile) {
    if (!ast->assign.where) return;
    IndexSpace *space = e->space;
    e->space = NULL; /* of no reduction */
    Val c = elab_condition(e, elab_expr(e, ast->assign.where));
    e->space = space;
    if (!target || elab_is_poison(c) || tile->value->kind == X_POISON) return;
    if (!takes_where(e, ast, target, tile->value)) return;
    if (elab_is_const(c.x) && c.x->constant.integer) return;
    if (target->space == SPACE_GLOBAL) {
        tile->where = elab_settled(e, c);
        return;
    }
    tile->value = kept_or_new(e, ast, target, tile->value, c);
    tile->op = ASSIGN_SET;
}
