/* How often a role acquires an end of a pipe: as a polynomial, in which two roles are compared. Conditions are numbers 0 and 1, loops are sums, and what
 * leaves early takes from what follows. A range from lo to hi has max(lo, hi) - lo iterations: pieces of a range add up to the whole. */
#include "check/algebra.h"
#include "check/balance.h"

/* Counts are multiples of it, so that sums of sums (n (n - 1) / 2) stay whole */
#define SCALE 720
#define LEAVES_MOST 16

typedef struct Leaving {
    const Stmt *target;    /* NULL: the role */
    LeaveKind kind;
    const Poly *truth;     /* is it left so? */
} Leaving;

typedef struct Walked {    /* a list of shapes */
    const Poly *count;     /* NULL: not a formula */
    const Poly *on;        /* does it come to its end? */
    Leaving leaves[LEAVES_MOST];
    int leave_count;
} Walked;

typedef struct Counting {
    Balance *balance;
    Algebra *algebra;
    const Role *role;
    const Emptiness *known;
    const Poly *tile;      /* in one iteration of the grid */
    bool *varies;          /* by local: assigned in a loop around */
} Counting;

static const Walked failed = {0};

static Walked nothing(const Counting *c) {
    return (Walked){.count = poly_constant(c->algebra, 0), .on = poly_constant(c->algebra, 1)};
}

static void take(const Counting *c, Walked *to, Leaving leaving) {
    int64_t zero;
    if (!leaving.truth) *to = failed;
    if (!to->count || (poly_is_constant(leaving.truth, &zero) && zero == 0)) return;
    for (int i = 0; i < to->leave_count; i++)
        if (to->leaves[i].target == leaving.target && to->leaves[i].kind == leaving.kind) {
            to->leaves[i].truth = poly_sum(c->algebra, to->leaves[i].truth, leaving.truth, 1);
            return;
        }
    if (to->leave_count == LEAVES_MOST) *to = failed;
    else to->leaves[to->leave_count++] = leaving;
}

/* Does it change while it is counted, or is it a value of one role's iteration that no formula speaks of? */
static bool is_loose(const Counting *c, const Poly *poly) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom *atom = &c->algebra->atoms.items[poly->terms[i].atoms[k]];
            if (atom->changes || (atom->kind == ATOM_LOCAL && c->varies[atom->index])) return true;
            for (int a = 0; a < 3; a++)
                if (atom->args[a] && is_loose(c, atom->args[a])) return true;
        }
    return false;
}

static const Poly *formula(Counting *c, Expr *expr) {
    if (!expr || expr->kind == X_POISON) return NULL;
    const Poly *poly = poly_normal(c->algebra, algebra_poly(c->algebra, c->role, expr));
    return poly && !is_loose(c, poly) ? poly : NULL;
}

static Walked walk(Counting *c, const Shapes *shapes, bool top);

static const Poly *chosen(const Counting *c, const Poly *truth, const Poly *then, const Poly *otherwise) {
    return poly_sum(c->algebra, otherwise, poly_product(c->algebra, truth, poly_sum(c->algebra, then, otherwise, -1)), 1);
}

static Walked branch(Counting *c, const Shape *shape) {
    int domain = shape->stmt->branch.nonempty;
    Emptiness known = valid_index(domain, c->balance->prog->domains.count) ? c->known[domain] : MAYBE_EMPTY;
    if (known != MAYBE_EMPTY) return walk(c, known == NONEMPTY ? &shape->body : &shape->otherwise, false);
    Walked then = walk(c, &shape->body, false), otherwise = walk(c, &shape->otherwise, false), both = nothing(c);
    if (!then.count || !otherwise.count) return failed;
    if (then.leave_count == 0 && otherwise.leave_count == 0 && poly_equal(then.count, otherwise.count)) return then;
    const Poly *truth = formula(c, shape->stmt->branch.condition);
    if (!truth) return failed;
    both.count = chosen(c, truth, then.count, otherwise.count);
    both.on = chosen(c, truth, then.on, otherwise.on);
    for (int i = 0; i < then.leave_count; i++)
        take(c, &both, (Leaving){then.leaves[i].target, then.leaves[i].kind, poly_product(c->algebra, truth, then.leaves[i].truth)});
    const Poly *not_so = poly_sum(c->algebra, poly_constant(c->algebra, 1), truth, -1);
    for (int i = 0; i < otherwise.leave_count; i++)
        take(c, &both, (Leaving){otherwise.leaves[i].target, otherwise.leaves[i].kind, poly_product(c->algebra, not_so, otherwise.leaves[i].truth)});
    return both;
}

static void mark_assigned(Stmt *stmt, void *data) {
    bool *varies = data;
    if (stmt->kind == S_SCALAR) varies[stmt->scalar.local] = true;
    if (stmt->kind == S_FOR && stmt->loop.var >= 0) varies[stmt->loop.var] = true;
}

static Walked loop_body(Counting *c, const Shape *shape) {
    const Stmt *loop = shape->stmt;
    bool *outside = c->varies;
    c->varies = NEW_ARRAY(c->balance->arena, bool, c->role->locals.count + 1);
    for (size_t i = 0; i < c->role->locals.count; i++) c->varies[i] = outside[i];
    stmt_visit(loop->loop.body, mark_assigned, c->varies);
    c->varies[loop->loop.var] = false;
    Walked body = walk(c, &shape->body, false);
    if (loop->loop.where && body.count) {
        const Poly *truth = formula(c, loop->loop.where);
        Walked some = {.count = poly_product(c->algebra, truth, body.count), .on = body.on};
        for (int i = 0; i < body.leave_count; i++)
            take(c, &some, (Leaving){body.leaves[i].target, body.leaves[i].kind, poly_product(c->algebra, truth, body.leaves[i].truth)});
        body = some;
    }
    c->varies = outside;
    return body;
}

/* The whole of it, at SCALE: sums of truths are whole by themselves */
static const Poly *over(Counting *c, int atom, const Poly *lo, const Poly *hi, const Poly *each) {
    c->algebra->steps = 500;
    return poly_sum_over(c->algebra, atom, lo, hi, poly_normal(c->algebra, each));
}

static Walked loop(Counting *c, const Shape *shape) {
    const Stmt *stmt = shape->stmt;
    Algebra *algebra = c->algebra;
    Walked all = nothing(c);
    if (stmt->loop.domain >= 0 && c->known[stmt->loop.domain] == EMPTY) return all;
    if (stmt->loop.var < 0) return failed;
    const Poly *lo = formula(c, stmt->loop.lo), *hi = formula(c, stmt->loop.hi), *ends = poly_constant(algebra, 0);
    if (!lo || !hi) return failed;
    hi = poly_larger(algebra, lo, hi);
    int atom = algebra_atom_local(algebra, c->role, stmt->loop.var);
    size_t known = algebra->known.count; /* holds in the body alone */
    algebra_know(algebra, poly_sum(algebra, poly_atom(algebra, atom), lo, -1));
    algebra_know(algebra, poly_offset(algebra, poly_sum(algebra, hi, poly_atom(algebra, atom), -1), -1));
    Walked body = loop_body(c, shape);
    algebra->known.count = known;
    if (!hi || !body.count) return failed;
    for (int i = 0; i < body.leave_count; i++) {
        if (body.leaves[i].target == stmt && body.leaves[i].kind == LEAVE_CONTINUE) continue;
        ends = poly_sum(algebra, ends, poly_normal(algebra, body.leaves[i].truth), 1);
    }
    if (ends && ends->count) hi = poly_first(algebra, atom, lo, hi, ends);
    if (!ends || !hi) return failed;
    for (int i = 0; i < body.leave_count; i++) {
        if (body.leaves[i].target == stmt) continue;
        const Poly *truth = over(c, atom, lo, hi, body.leaves[i].truth);
        take(c, &all, (Leaving){body.leaves[i].target, body.leaves[i].kind, truth});
        all.on = poly_sum(algebra, all.on, truth, -1);
    }
    all.count = over(c, atom, lo, hi, body.count);
    return all.count && all.on ? all : failed;
}

/* Counted for one tile; who stops at one tile says nothing of the others */
static bool grid(Counting *c, const Shape *shape, const Walked *before) {
    Walked body = walk(c, &shape->body, false);
    for (int i = 0; i < body.leave_count; i++)
        if (body.leaves[i].target != shape->stmt || body.leaves[i].kind != LEAVE_CONTINUE) return false;
    c->tile = poly_sum(c->algebra, c->tile, poly_product(c->algebra, before->on, body.count), 1);
    return c->tile != NULL;
}

static Walked shape_of(Counting *c, const Shape *shape) {
    Walked one = nothing(c), left = one;
    switch (shape->kind) {
    case SHAPE_ACQUIRE: one.count = poly_constant(c->algebra, SCALE); break;
    case SHAPE_GRID: return failed; /* within others */
    case SHAPE_FOR: return loop(c, shape);
    case SHAPE_IF: return branch(c, shape);
    case SHAPE_LEAVE:
        one.on = poly_constant(c->algebra, 0);
        take(c, &one, (Leaving){shape->stmt->leave.target, shape->stmt->leave.kind, poly_constant(c->algebra, 1)});
        break;
    case SHAPE_BLOCK:
        left = walk(c, &shape->body, false);
        one = (Walked){.count = left.count, .on = left.on};
        for (int i = 0; i < left.leave_count; i++) {
            if (left.leaves[i].target == shape->stmt) one.on = poly_sum(c->algebra, one.on, left.leaves[i].truth, 1);
            else take(c, &one, left.leaves[i]);
        }
        break;
    }
    return one;
}

static Walked walk(Counting *c, const Shapes *shapes, bool top) {
    Algebra *algebra = c->algebra;
    Walked all = nothing(c);
    for (size_t i = 0; i < shapes->count; i++) {
        if (shapes->items[i]->kind == SHAPE_GRID && top) {
            if (!grid(c, shapes->items[i], &all)) return failed;
            continue;
        }
        Walked one = shape_of(c, shapes->items[i]);
        if (!one.count) return failed;
        all.count = poly_sum(algebra, all.count, poly_product(algebra, all.on, one.count), 1);
        for (int k = 0; k < one.leave_count; k++)
            take(c, &all, (Leaving){one.leaves[k].target, one.leaves[k].kind, poly_product(algebra, all.on, one.leaves[k].truth)});
        all.on = poly_product(algebra, all.on, one.on);
        if (!all.count || !all.on) return failed;
    }
    return all;
}

typedef struct Total {
    const Poly *outside, *tile; /* of the grid; NULL: not a formula */
} Total;

static Total total(Balance *balance, Algebra *algebra, const Role *role, const Shapes *shapes, const Emptiness *known) {
    Counting c = {.balance = balance, .algebra = algebra, .role = role, .known = known, .tile = poly_constant(algebra, 0)};
    c.varies = NEW_ARRAY(balance->arena, bool, role->locals.count + 1);
    algebra->most_terms = POLY_MORE_TERMS;
    algebra->work = PROOF_WORK;
    algebra_know_facts(algebra, NULL);
    Walked all = walk(&c, shapes, true);
    return (Total){all.count, all.count ? c.tile : NULL};
}

/* ---- what is known ------------------------------------------------------------------------------------------------ */

Expr *domain_nonempty(Balance *balance, int domain) {
    const Domain *row = &balance->prog->domains.items[domain];
    if (!row->lo || !row->hi || row->where || row->lo->kind == X_POISON || row->hi->kind == X_POISON) return NULL;
    return expr_binary(balance->arena, OP_LT, row->lo, row->hi, row->span);
}

Expr *positive(Balance *balance, Expr *expr) {
    int64_t by;
    while (expr->kind == X_CALL && expr->call.which == IN_ceil_div && algebra_constant(expr->call.args[1], &by) && by > 0)
        expr = expr->call.args[0];
    return expr_binary(balance->arena, OP_GE, expr, expr_integer(balance->arena, expr->type, 1, expr->span), expr->span);
}

static void suppose(Balance *balance, Expr *condition) {
    if (condition && condition->kind != X_CONST) vec_push(balance->arena, &balance->prog->preconditions, (Precondition){.condition = condition});
}

static bool equal(Algebra *algebra, const Poly *a, const Poly *b) {
    algebra->work = PROOF_WORK;
    return a && b && poly_proves_zero(algebra, poly_sum(algebra, a, b, -1));
}

/* What is known of ranges is a fact while the formulas are compared; in an iteration of the grid no axis is empty. */
bool counts_equal(Balance *balance, const Role *a_role, const Shapes *a, const Role *b_role, const Shapes *b, const Emptiness *known) {
    Prog *prog = balance->prog;
    size_t facts = prog->preconditions.count;
    Algebra *algebra = algebra_new(balance->arena, prog, NULL);
    for (size_t d = 0; d < prog->domains.count; d++) {
        Expr *nonempty = known[d] == MAYBE_EMPTY ? NULL : domain_nonempty(balance, (int)d);
        if (nonempty && known[d] == EMPTY) nonempty = expr_binary(balance->arena, OP_LE, prog->domains.items[d].hi, prog->domains.items[d].lo, nonempty->span);
        suppose(balance, nonempty);
    }
    Total x = total(balance, algebra, a_role, a, known), y = total(balance, algebra, b_role, b, known);
    bool same = equal(algebra, x.outside, y.outside);
    for (size_t i = 0; i < prog->axes.count && same; i++)
        if (prog->axes.items[i].extent && prog->axes.items[i].extent->kind != X_POISON) suppose(balance, positive(balance, prog->axes.items[i].extent));
    same = same && equal(algebra, x.tile, y.tile);
    prog->preconditions.count = facts;
    return same;
}

bool counts_nothing(Balance *balance, const Role *role, const Shapes *shapes, const Emptiness *known) {
    Algebra *algebra = algebra_new(balance->arena, balance->prog, NULL);
    const Poly *zero = poly_constant(algebra, 0);
    Total counted = total(balance, algebra, role, shapes, known);
    return equal(algebra, counted.outside, zero) && equal(algebra, counted.tile, zero);
}

bool only_symbols(const Expr *expr) {
    switch (expr->kind) {
    case X_CONST: case X_SYMBOL: return true;
    case X_UNARY: return only_symbols(expr->unary.operand);
    case X_BINARY: return only_symbols(expr->binary.left) && only_symbols(expr->binary.right);
    case X_CAST: return expr->type != E_F32 && only_symbols(expr->cast);
    case X_SELECT:
        return only_symbols(expr->select.condition) && only_symbols(expr->select.then) && only_symbols(expr->select.otherwise);
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++)
            if (!only_symbols(expr->call.args[i])) return false;
        return true;
    case X_POISON: case X_PARAM: case X_AXIS: case X_LOCAL: case X_RANK: case X_INDEX: case X_READ: case X_REDUCE: break;
    }
    return false;
}
