/* Constructors of expressions: integer constants, folded binary operations, and the properties
 * that a node derives from its operands. */
#include "prog/eval.h"
#include "prog/prog.h"

#include <assert.h>
#include <string.h>

bool expr_constant(const Expr *expr, int64_t *out) {
    if (!expr) return false;
    if (expr->kind == X_CAST && (expr->type == E_I32 || expr->type == E_I64)) {
        if (!expr_constant(expr->cast, out)) return false;
        return expr->type == E_I64 || (*out >= INT32_MIN && *out <= INT32_MAX);
    }
    if (expr->kind != X_CONST || expr->type == E_F32) return false;
    *out = expr->constant.integer;
    return true;
}

Expr *expr_integer(Arena *arena, Element type, int64_t value, Span span) {
    Expr *expr = NEW(arena, Expr);
    expr->kind = X_CONST;
    expr->type = type;
    expr->span = span;
    expr->constant.integer = value;
    expr->constant.number = (double)value;
    return expr;
}

static bool gives_truth(BinaryOp op) {
    return op != OP_ADD && op != OP_SUB && op != OP_MUL && op != OP_DIV && op != OP_MOD;
}

/* Gives both operands one type: if one has 64 bits, the other is widened. */
static Expr *widened(Arena *arena, Expr *expr, Element type) {
    int64_t value;
    if (expr->type == type || type == E_BOOL || expr->type == E_BOOL) return expr;
    if (expr_constant(expr, &value)) return expr_integer(arena, type, value, expr->span);
    Expr *cast = NEW(arena, Expr);
    *cast = (Expr){.kind = X_CAST,
                   .type = type,
                   .uniformity = expr->uniformity,
                   .indexes = expr->indexes,
                   .span = expr->span};
    cast->cast = expr;
    return cast;
}

Expr *expr_binary(Arena *arena, BinaryOp op, Expr *left, Expr *right, Span span) {
    int64_t a = 0, b = 0, value;
    bool is_a = expr_constant(left, &a), is_b = expr_constant(right, &b);
    if (left->kind == X_POISON || right->kind == X_POISON)
        return left->kind == X_POISON ? left : right;
    Element type = element_rows[left->type].bytes >= element_rows[right->type].bytes ? left->type
                                                                                     : right->type;
    /* a constant takes the other operand's type */
    if (is_a && !is_b && element_rows[right->type].bytes >= 4) type = right->type;
    if (is_b && !is_a && element_rows[left->type].bytes >= 4) type = left->type;
    if (is_a && is_b && eval_exact(op, a, b, &value) && (gives_truth(op) || eval_fits(type, value)))
        return expr_integer(arena, gives_truth(op) ? E_BOOL : type, value, span);
    if (!gives_truth(op)) {
        if (is_b && ((b == 0 && (op == OP_ADD || op == OP_SUB)) ||
                     (b == 1 && (op == OP_MUL || op == OP_DIV))))
            return left;
        if (is_a && ((a == 0 && op == OP_ADD) || (a == 1 && op == OP_MUL))) return right;
        if (op == OP_MUL && ((is_a && a == 0) || (is_b && b == 0)))
            return expr_integer(arena, type, 0, span);
    }
    Expr *expr = NEW(arena, Expr);
    expr->kind = X_BINARY;
    expr->type = gives_truth(op) ? E_BOOL : type;
    expr->uniformity = left->uniformity > right->uniformity ? left->uniformity : right->uniformity;
    expr->indexes = left->indexes | right->indexes;
    expr->span = span;
    expr->binary.op = op;
    expr->binary.left = widened(arena, left, type);
    expr->binary.right = widened(arena, right, type);
    return expr;
}

/* Most statements have one or two indexes. */
void index_space_add(Arena *arena, IndexSpace *space, const char *name, Span span) {
    enum { FEW = 2 };
    assert(space->count < PROG_MAX_INDEXES);
    if (space->count == 0) space->items = NEW_ARRAY(arena, Index, FEW);
    if (space->count == FEW)
        space->items = arena_grow(arena, space->items, FEW * sizeof *space->items,
                                  PROG_MAX_INDEXES * sizeof *space->items);
    space->items[space->count++] = (Index){.name = name, .span = span, .extent = -1};
}

void access_allocate(Arena *arena, Arena *facts, Access *access) {
    access->subs = NEW_ARRAY(arena, Expr *, access->rank);
    access->affine = NEW_ARRAY(facts, Affine, access->rank);
}

/* ---- equality -------------------------------------------------------------------------------- */

#define SAME_MOST 1000 /* most nodes that are compared */

static bool same(const Expr *a, const Expr *b, int *left);

static bool same_access(const Access *a, const Access *b, int *left) {
    bool alike = a->space == b->space && a->object == b->object && a->field == b->field &&
                 a->rank == b->rank && a->old == b->old && !a->element == !b->element;
    if (alike && a->element) alike = same(a->element, b->element, left);
    for (int d = 0; d < a->rank && alike; d++) alike = same(a->subs[d], b->subs[d], left);
    return alike;
}

static bool same_call(const Expr *a, const Expr *b, int *left) {
    bool alike = a->call.which == b->call.which && a->call.accuracy == b->call.accuracy &&
                 a->call.count == b->call.count;
    for (int i = 0; i < a->call.count && alike; i++)
        alike = same(a->call.args[i], b->call.args[i], left);
    return alike;
}

static bool same(const Expr *a, const Expr *b, int *left) {
    if (--*left < 0 || a->kind != b->kind || a->type != b->type) return false;
    switch (a->kind) {
    case X_CONST:
        return a->constant.integer == b->constant.integer &&
               memcmp(&a->constant.number, &b->constant.number, sizeof a->constant.number) == 0;
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_INDEX: return a->index == b->index;
    case X_RANK: return true;
    case X_READ: return same_access(a->read, b->read, left);
    case X_UNARY:
        return a->unary.op == b->unary.op && same(a->unary.operand, b->unary.operand, left);
    case X_BINARY:
        return a->binary.op == b->binary.op && a->binary.accuracy == b->binary.accuracy &&
               same(a->binary.left, b->binary.left, left) &&
               same(a->binary.right, b->binary.right, left);
    case X_SELECT:
        return same(a->select.condition, b->select.condition, left) &&
               same(a->select.then, b->select.then, left) &&
               same(a->select.otherwise, b->select.otherwise, left);
    case X_CAST: return same(a->cast, b->cast, left);
    case X_CALL: return same_call(a, b, left);
    case X_POISON:
    case X_REDUCE:
    case X_SCAN: break;
    }
    return false;
}

bool expr_same(const Expr *a, const Expr *b) { return same(a, b, &(int){SAME_MOST}); }

bool expr_same_counted(Arena *arena, const Expr *a, const Expr *b) {
    int left = SAME_MOST;
    bool alike = same(a, b, &left);
    arena_count(arena, (uint64_t)(SAME_MOST - left));
    return alike;
}

bool access_same(const Access *a, const Access *b) { return same_access(a, b, &(int){SAME_MOST}); }

bool expr_depends(const Expr *expr, int index) {
    return index >= 0 && (expr->indexes >> index & 1u) != 0;
}

BinaryOp comparison_negated(BinaryOp op) {
    static const BinaryOp rows[] = {[OP_EQ] = OP_NE, [OP_NE] = OP_EQ, [OP_LT] = OP_GE,
                                    [OP_GE] = OP_LT, [OP_GT] = OP_LE, [OP_LE] = OP_GT};
    assert(op >= OP_EQ && op <= OP_GE);
    return rows[op];
}

BinaryOp comparison_turned(BinaryOp op) {
    static const BinaryOp rows[] = {[OP_EQ] = OP_EQ, [OP_NE] = OP_NE, [OP_LT] = OP_GT,
                                    [OP_GE] = OP_LE, [OP_GT] = OP_LT, [OP_LE] = OP_GE};
    assert(op >= OP_EQ && op <= OP_GE);
    return rows[op];
}

/* ---- properties derived from operands -------------------------------------------------------- */

static Uniformity wider(Uniformity a, Uniformity b) { return a > b ? a : b; }

static void join(Expr *x, const Expr *part) {
    if (!part) return;
    x->uniformity = wider(x->uniformity, part->uniformity);
    x->along |= part->along;
    x->indexes |= part->indexes;
}

static Uniformity of_instance(const Role *role) {
    return role && role->instances > 1 ? UNIFORM_INSTANCE : UNIFORM_ROLE;
}

static void derive_read(const Role *role, Expr *x) {
    const Access *read = x->read;
    join(x, read->element);
    for (int i = 0; i < read->rank; i++) join(x, read->subs[i]);
    bool own = read->space == SPACE_SHARED || read->space == SPACE_REGISTER;
    /* a stage of a role in turn belongs to one instance */
    if (own || (read->space == SPACE_STAGE && role && role->in_turn))
        x->uniformity = wider(x->uniformity, of_instance(role));
    if (read->space != SPACE_GLOBAL) x->along = UINT16_MAX; /* each block has its own */
}

void expr_derive(const Role *role, Expr *x) {
    if (x->kind == X_LOCAL) return;
    x->uniformity = UNIFORM_ROLE;
    x->along = 0;
    x->indexes = 0;
    ExprParts parts = expr_parts(x);
    for (int i = 0; i < parts.count; i++) join(x, parts.items[i]);
    switch (x->kind) {
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_LOCAL:
    case X_AXIS:
    case X_UNARY:
    case X_BINARY:
    case X_SELECT:
    case X_CAST:
    case X_CALL: break;
    case X_RANK: x->uniformity = of_instance(role); break;
    case X_INDEX:
        x->uniformity = UNIFORM_LANE;
        x->indexes = (uint32_t)1 << x->index;
        break;
    case X_READ: derive_read(role, x); break;
    case X_REDUCE:
        x->indexes &= ~((((uint32_t)1 << x->reduce.count) - 1) << x->reduce.first);
        x->uniformity = x->indexes ? UNIFORM_LANE : of_instance(role);
        break;
    case X_SCAN:
        x->indexes |= (uint32_t)1 << x->scan.along;
        x->uniformity = UNIFORM_LANE;
        break;
    }
}

/* ---- operands and reads of an operation ------------------------------------------------------ */

static void visit_if(Expr *expr, void (*visit)(Expr *, void *), void *data) {
    if (expr) visit(expr, data);
}

void access_exprs(const Access *access, void (*visit)(Expr *, void *), void *data) {
    visit_if(access->element, visit, data);
    for (int i = 0; i < access->rank; i++) visit_if(access->subs[i], visit, data);
}

void unsafe_exprs(const Unsafe *unsafe, void (*visit)(Expr *, void *), void *data) {
    visit_if(unsafe->stage, visit, data);
    visit_if(unsafe->at, visit, data);
    visit_if(unsafe->amount, visit, data);
    if (unsafe->tile) visit_if(unsafe->tile->element, visit, data);
    for (size_t i = 0; i < unsafe->operands.count; i++)
        visit_if(unsafe->operands.items[i].value, visit, data);
}

typedef struct Reads {
    void (*visit)(Access *, bool, void *);
    void *data;
} Reads;

static void visit_read(Expr *expr, void *data) {
    const Reads *reads = data;
    if (expr->kind == X_READ && expr->read) reads->visit(expr->read, false, reads->data);
}

void expr_reads(Arena *arena, Expr *expr, void (*visit)(Access *, bool written, void *),
                void *data) {
    Reads reads = {visit, data};
    expr_visit(arena, expr, visit_read, &reads);
}

bool expr_is_launch_constant(Expr *expr) {
    bool operation = expr->kind == X_UNARY || expr->kind == X_BINARY || expr->kind == X_SELECT ||
                     expr->kind == X_CALL || (expr->kind == X_CAST && expr->type != E_F32);
    if (!operation) return expr->kind == X_CONST || expr->kind == X_SYMBOL;
    if (expr->kind == X_CALL && intrinsic_of_bits(expr->call.which)) return false;
    ExprParts parts = expr_parts(expr);
    for (int i = 0; i < parts.count; i++)
        if (!expr_is_launch_constant(parts.items[i])) return false;
    return true;
}
