/* `where c` after a statement. A tensor keeps the elements for which c is false, since they may
 * belong to other tiles: nothing is stored there. An element of a tile keeps its value, which it
 * must have. */
#include "elaborate/private.h"

static void find_reduction(Expr *x, void *found) {
    if (x->kind == X_REDUCE) *(bool *)found = true;
}

/* Copies into stages, and contractions, are of whole tiles. */
static bool takes_where(Elab *e, const AstStmt *ast, const Access *target, Expr *value) {
    Span span = ast->assign.with->where_span;
    bool reduces = false;
    expr_visit(e->arena, value, find_reduction, &reduces);
    bool copies = target->space == SPACE_STAGE && value->kind == X_READ &&
                  value->read->space == SPACE_GLOBAL && ast->assign.op == AST_SET;
    if (!reduces && !copies && !ast->assign.with->multicast_required) return true;
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
    Access *old = NEW(e->nodes, Access);
    *old = *target;
    old->kept = true;
    old->span = ast->assign.with->where_span;
    access_allocate(e->nodes, e->arena, old);
    for (int d = 0; d < target->rank; d++) old->subs[d] = target->subs[d];
    Val kept = {elab_make_read(e, old, ast->assign.with->where_span), FLEX_NONE},
        new = {value, FLEX_NONE};
    if (ast->assign.op != AST_SET)
        new = elab_make_binary(e, elab_compound_op(ast->assign.op), kept, new, ast->span,
                               ast_assign_op(ast));
    return elab_settled(e, elab_make_select(e, c, new, kept, ast->span));
}

/* ---- the opposite condition ------------------------------------------------------------------ */

/* Floats are neither less nor not less than NaN. */
static bool are_opposite(const Expr *a, const Expr *b) {
    if (a->kind == X_UNARY && a->unary.op == OP_NOT && expr_same(a->unary.operand, b)) return true;
    if (b->kind == X_UNARY && b->unary.op == OP_NOT && expr_same(b->unary.operand, a)) return true;
    if (a->kind != X_BINARY || b->kind != X_BINARY || a->binary.op > OP_GE ||
        a->binary.op < OP_EQ || b->binary.op > OP_GE || b->binary.op < OP_EQ)
        return false;
    BinaryOp op = comparison_negated(a->binary.op);
    bool equality = a->binary.op == OP_EQ || a->binary.op == OP_NE;
    if (!equality && !elab_is_integer(a->binary.left->type)) return false;
    const Expr *left = a->binary.left, *right = a->binary.right;
    return (b->binary.op == op && expr_same(left, b->binary.left) &&
            expr_same(right, b->binary.right)) ||
           (b->binary.op == comparison_turned(op) && expr_same(left, b->binary.right) &&
            expr_same(right, b->binary.left));
}

typedef struct Reading {
    const Access *target;
    bool found;
} Reading;

static void find_target(Expr *x, void *data) {
    Reading *reading = data;
    reading->found |= x->kind == X_READ && x->read->space == reading->target->space &&
                      x->read->object == reading->target->object;
}

static bool same_extents(const IndexSpace *a, const IndexSpace *b) {
    bool same = a->count == b->count && a->bound == b->bound;
    for (int i = 0; i < a->count && same; i++)
        same = index_ranged(&a->items[i]) == index_ranged(&b->items[i]) &&
               a->items[i].extent == b->items[i].extent;
    return same;
}

/* The statement directly before this one, if it writes the elements of the target for which `c`
 * is false, and no others; NULL: none. A condition that reads the target may have changed. */
static Tile *opposite_before(Elab *e, const Access *target, const Tile *tile, Expr *c) {
    const Stmt *before = e->out->count > 0 ? e->out->items[e->out->count - 1] : NULL;
    if (!before || before->kind != S_TILE || tile->op != ASSIGN_SET) return NULL;
    Tile *other = before->tile;
    Expr *value = other->value;
    Reading reading = {.target = target};
    if (other->op != ASSIGN_SET || !value || value->kind != X_SELECT ||
        value->select.otherwise->kind != X_READ || !value->select.otherwise->read->kept ||
        other->by_lanes || tile->by_lanes)
        return NULL;
    if (!access_same(&other->target, target) || !same_extents(&other->space, &tile->space) ||
        !are_opposite(value->select.condition, c))
        return NULL;
    expr_visit(e->arena, c, find_target, &reading);
    return reading.found ? NULL : other;
}

/* `y[i] = a where c; y[i] = b where !c;` is `y[i] = c ? a : b;`, which writes all elements. */
static bool complete_before(Elab *e, const Access *target, const Tile *tile, Expr *c) {
    Tile *other = opposite_before(e, target, tile, c);
    if (!other) return false;
    other->value->select.otherwise = tile->value;
    expr_derive(e->role, other->value);
    return true;
}

bool elab_where(Elab *e, const AstStmt *ast, const Access *target, Tile *tile) {
    if (!ast->assign.with->where) return true;
    IndexSpace *space = e->space;
    e->space = NULL; /* of no reduction */
    Val c = elab_condition(e, elab_expr(e, ast->assign.with->where));
    e->space = space;
    if (!target || elab_is_poison(c) || tile->value->kind == X_POISON) return true;
    if (!takes_where(e, ast, target, tile->value)) return true;
    if (elab_is_const(c.x) && c.x->constant.integer) return true;
    if (target->space == SPACE_GLOBAL) {
        tile->where = elab_settled(e, c);
        return true;
    }
    if (complete_before(e, target, tile, elab_settled(e, c))) return false;
    tile->value = kept_or_new(e, ast, target, tile->value, c);
    tile->op = ASSIGN_SET;
    return true;
}
