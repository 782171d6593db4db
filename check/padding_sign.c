/* Expressions that are never negative: then zeros beyond an edge do not change a maximum. */
#include "check/padding.h"

const TileFill *padding_read(Padding *p, const Access *access) {
    const Prog *prog = p->tiles->prog;
    TileFill *tile = padding_tile(p, access);
    if (!tile || access->space != SPACE_STAGE) return tile;
    size_t role = (size_t)(p->code->role - prog->roles.items);
    int pipe = p->code->role->handles.items[access->object].pipe;
    p->reads[role * prog->pipes.count + (size_t)pipe] = true;
    return tile;
}

/* Edges are formulas in the algebra of the producer. Other roles that write into the pipe are
 * refused by `ends` and have no part in its contents. */
static bool is_producer(const Padding *p, int pipe) {
    const Prog *prog = p->tiles->prog;
    return prog->pipes.items[pipe].producer == (int)(p->code->role - prog->roles.items);
}

TileFill *padding_tile(Padding *p, const Access *access) {
    if (access->space == SPACE_SHARED || access->space == SPACE_REGISTER)
        return &p->state[access->object];
    if (access->space != SPACE_STAGE) return NULL;
    const Handle *handle = &p->code->role->handles.items[access->object];
    if (handle->pipe < 0 || (handle->end == END_PRODUCE && !is_producer(p, handle->pipe)))
        return NULL;
    if (handle->end == END_PRODUCE)
        return padding_field(p, handle->pipe, access->object, access->field);
    /* of a consumer: any stage, without edges */
    TileFill *all = NEW(p->arena, TileFill);
    for (int h = 0; h < padding_writers(p, handle->pipe); h++) {
        const TileFill *one = padding_field(p, handle->pipe, h, access->field);
        for (int d = 0; d < PROG_MAX_RANK; d++) fill_add(&all->dims[d], &one->dims[d]);
        all->below_zero |= one->below_zero;
    }
    return all;
}

/* Contents are followed by the handle of the producer, or for all together if one moves. */
int padding_writers(const Padding *p, int pipe) {
    int role = p->tiles->prog->pipes.items[pipe].producer;
    if (role < 0 || p->moves[pipe]) return 1;
    return (int)p->tiles->prog->roles.items[role].handles.count;
}

TileFill *padding_field(const Padding *p, int pipe, int handle, int field) {
    size_t fields = p->tiles->prog->pipes.items[pipe].fields.count;
    if (padding_writers(p, pipe) == 1) handle = 0;
    return &p->fields[pipe][(size_t)handle * fields + (size_t)field];
}

static bool is_float(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

bool padding_same(Padding *p, const Expr *a, const Expr *b) {
    if (a == b) return true;
    if (a->kind != b->kind) return false;
    if (a->kind == X_CAST && a->type == b->type) return padding_same(p, a->cast, b->cast);
    if (a->kind == X_LOCAL || a->kind == X_PARAM || a->kind == X_SYMBOL)
        return a->index == b->index;
    if (a->kind != X_READ || !a->read || !b->read) return false;
    const Access *x = a->read, *y = b->read;
    if (!same_object(x, y) || x->field != y->field || x->rank != y->rank) return false;
    for (int d = 0; d < x->rank; d++)
        if (!poly_equal(algebra_poly(p->code->algebra, p->code->role, x->subs[d]),
                        algebra_poly(p->code->algebra, p->code->role, y->subs[d])))
            return false;
    return true;
}

static bool binary_at_least_zero(Padding *p, const Expr *expr) {
    const Expr *left = expr->binary.left, *right = expr->binary.right;
    if (expr->binary.op == OP_SUB) return false;
    if (expr->binary.op == OP_MUL && padding_same(p, left, right)) return true;
    return padding_at_least_zero(p, left) && padding_at_least_zero(p, right);
}

static bool call_at_least_zero(Padding *p, const Expr *expr) {
    Expr *const *args = expr->call.args;
    switch (expr->call.which) {
    case IN_abs:
    case IN_exp:
    case IN_exp2:
    case IN_sqrt:
    case IN_rsqrt: return true;
    case IN_max: return padding_at_least_zero(p, args[0]) || padding_at_least_zero(p, args[1]);
    case IN_min: return padding_at_least_zero(p, args[0]) && padding_at_least_zero(p, args[1]);
    case IN_rcp:
    case IN_tanh:
    case IN_floor:
    case IN_ceil: return padding_at_least_zero(p, args[0]);
    case IN_fma:
    case IN_log:
    case IN_log2:
    case IN_sin:
    case IN_cos:
    case IN_ceil_div:
    case IN_COUNT: break;
    }
    return false;
}

/* The maximum of no elements is -inf. */
static bool scan_at_least_zero(Padding *p, const Expr *expr) {
    bool own = expr->scan.relation == OP_LE || expr->scan.relation == OP_GE;
    return is_float(expr->type) && (own || expr->scan.op != REDUCE_MAX) &&
           padding_at_least_zero(p, expr->scan.body);
}

bool padding_at_least_zero(Padding *p, const Expr *expr) {
    if (element_rows[expr->type].kind == ELEMENT_UNSIGNED) return true;
    switch (expr->kind) {
    case X_CONST:
        return is_float(expr->type) ? expr->constant.number >= 0 : expr->constant.integer >= 0;
    case X_READ: {
        const TileFill *tile = expr->read ? padding_read(p, expr->read) : NULL;
        return tile && !tile->below_zero;
    }
    case X_BINARY: return is_float(expr->type) && binary_at_least_zero(p, expr);
    case X_SELECT:
        return padding_at_least_zero(p, expr->select.then) &&
               padding_at_least_zero(p, expr->select.otherwise);
    case X_CAST: return is_float(expr->type) && padding_at_least_zero(p, expr->cast);
    case X_CALL: return is_float(expr->type) && call_at_least_zero(p, expr);
    case X_REDUCE: return is_float(expr->type) && padding_at_least_zero(p, expr->reduce.body);
    case X_SCAN: return scan_at_least_zero(p, expr);
    case X_POISON:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_UNARY: break;
    }
    return false;
}
