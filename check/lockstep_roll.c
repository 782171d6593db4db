/* Loops that are written in several pieces with the same steps: rolled up into one, so that roles which do the same are seen to do the same.
 *   a first iteration before the others:  if lo < hi { steps of lo; for k in lo + 1 .. hi { steps of k } }
 *   ranges that follow each other:        for k in lo .. min(mid, hi) { steps of k } for k in mid .. hi { steps of k }
 * are both `for k in lo .. hi { steps of k }` where the steps (of the pipes of the part) are equal one by one, with equal bounds and conditions. */
#include "check/lockstep.h"

#define WORK_MOST 100000 /* steps that are compared, for one role */

typedef enum RollKind { ROLL_ACQUIRE, ROLL_RELEASE, ROLL_MOVE, ROLL_LEAVE, ROLL_BLOCK, ROLL_LOOP, ROLL_BRANCH } RollKind;

typedef struct RollStep {
    RollKind kind;
    Stmt *stmt;
    int slot, other, lag;
} RollStep;

typedef VEC(RollStep) RollSteps;

typedef struct Pair {
    int own, other;
} Pair;

typedef struct Roller {   /* compares the steps of an earlier piece with those of a later one */
    Clocks *clocks;
    Algebra *algebra;
    int member, around;
    VEC(Pair) slots;      /* stage variables */
    VEC(Pair) locals;     /* loop variables */
    struct { Stmt *own, *other; } targets[64]; /* what can be left */
    int target_count;
    int first_of;         /* the loop variable of the later one that is `first`, -1: none */
    const Poly *first;
} Roller;

static const Member *member_of(const Roller *r) { return &r->clocks->members.items[r->member]; }

static int slot_of(const Roller *r, int handle) {
    const Member *member = member_of(r);
    return valid_index(handle, member->role->handles.count) ? member->slot_of[handle] : -1;
}

/* ---- the steps of a statement ------------------------------------------------------------------------------------------- */

static bool steps_of(Roller *r, Stmt *stmt, bool in_loop, RollSteps *out);

static bool has_steps(Roller *r, Stmt *stmt, bool in_loop, bool *has) {
    RollSteps inner = {0};
    if (!steps_of(r, stmt, in_loop, &inner)) return false;
    *has |= inner.count > 0;
    return true;
}

static void find_leave(Stmt *stmt, void *data) { *(bool *)data |= stmt->kind == S_LEAVE; }

static bool steps_of_stage(Roller *r, Stmt *stmt, bool in_loop, RollSteps *out) {
    int at = slot_of(r, stmt->stage.handle);
    bool leaves = false;
    if (at < 0) return steps_of(r, stmt->stage.body, in_loop, out);
    stmt_visit(stmt->stage.body, find_leave, &leaves);
    if (leaves || (stmt->stage.lag > 0 && !in_loop)) return false; /* what is left or kept is another loop's concern */
    vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_ACQUIRE, .stmt = stmt, .slot = at});
    if (!steps_of(r, stmt->stage.body, in_loop, out)) return false;
    vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_RELEASE, .stmt = stmt, .slot = at, .lag = stmt->stage.lag});
    return true;
}

static bool steps_of_list(Roller *r, Stmt *stmt, bool in_loop, RollSteps *out) {
    if (stmt->block.turn && member_of(r)->processes > 1) return false;
    if (stmt->block.left) {
        vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_BLOCK, .stmt = stmt});
        return true;
    }
    Stmts rolled = lockstep_roll(r->clocks, r->member, r->around, &stmt->block.body);
    for (size_t i = 0; i < rolled.count; i++)
        if (!steps_of(r, rolled.items[i], in_loop, out)) return false;
    return true;
}

/* False where some of it cannot be compared */
static bool steps_of(Roller *r, Stmt *stmt, bool in_loop, RollSteps *out) {
    int at;
    bool has = false;
    if (!stmt) return true;
    if (++r->clocks->rolling > WORK_MOST) return false;
    switch (stmt->kind) {
    case S_BLOCK: return steps_of_list(r, stmt, in_loop, out);
    case S_GRID: return false;
    case S_FOR:
        if (!has_steps(r, stmt->loop.body, true, &has)) return false;
        if (has) vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_LOOP, .stmt = stmt});
        return true;
    case S_IF:
        if (!has_steps(r, stmt->branch.then, in_loop, &has) || !has_steps(r, stmt->branch.otherwise, in_loop, &has)) return false;
        if (has) vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_BRANCH, .stmt = stmt});
        return true;
    case S_LEAVE: vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_LEAVE, .stmt = stmt}); return true;
    case S_ACQUIRE:
        if ((at = slot_of(r, stmt->acquire.handle)) >= 0) vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_ACQUIRE, .stmt = stmt, .slot = at});
        return true;
    case S_RELEASE:
        if ((at = slot_of(r, stmt->release.handle)) >= 0) vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_RELEASE, .stmt = stmt, .slot = at});
        return true;
    case S_MOVE:
        if ((at = slot_of(r, stmt->move.to)) >= 0)
            vec_push(r->clocks->arena, out, (RollStep){.kind = ROLL_MOVE, .stmt = stmt, .slot = at, .other = slot_of(r, stmt->move.from)});
        return true;
    case S_STAGE: return steps_of_stage(r, stmt, in_loop, out);
    case S_SCALAR: case S_TILE: case S_TRY: case S_UNSAFE: return true;
    }
    return false;
}

/* ---- formulas ------------------------------------------------------------------------------------------------------------- */

static const Poly *poly_of(const Roller *r, Expr *expr) { return algebra_poly(r->algebra, member_of(r)->role, expr); }

static const Poly *fixed_poly(const Roller *r, Expr *expr) { /* NULL: not known, or not the same at all times */
    const Poly *poly = expr ? poly_of(r, expr) : NULL;
    return poly && !poly_changes(r->algebra, poly) ? poly : NULL;
}

static bool same_poly(const Roller *r, Expr *own, Expr *other) {
    const Role *role = member_of(r)->role;
    const Poly *a = fixed_poly(r, own), *b = fixed_poly(r, other);
    for (size_t i = 0; i < r->locals.count && a; i++)
        a = poly_replace(r->algebra, a, algebra_atom_local(r->algebra, role, r->locals.items[i].own),
                         poly_atom(r->algebra, algebra_atom_local(r->algebra, role, r->locals.items[i].other)));
    if (b && r->first_of >= 0) b = poly_replace(r->algebra, b, algebra_atom_local(r->algebra, role, r->first_of), r->first);
    return a && b && poly_equal(a, b);
}

static Expr *let_value(const Roller *r, Expr *expr) {
    while (expr->kind == X_LOCAL && expr->type == E_BOOL) {
        const Local *local = &member_of(r)->role->locals.items[expr->index];
        if (local->kind != LOCAL_LET || !local->value) break;
        expr = local->value;
    }
    return expr;
}

static bool same_condition(const Roller *r, Expr *own, Expr *other) {
    if (!own || !other) return false;
    own = let_value(r, own);
    other = let_value(r, other);
    if (own->kind == X_UNARY && other->kind == X_UNARY && own->unary.op == OP_NOT && other->unary.op == OP_NOT)
        return same_condition(r, own->unary.operand, other->unary.operand);
    if (own->kind == X_BINARY && other->kind == X_BINARY && own->binary.op == other->binary.op) {
        if (own->binary.op == OP_AND || own->binary.op == OP_OR)
            return same_condition(r, own->binary.left, other->binary.left) && same_condition(r, own->binary.right, other->binary.right);
        if (own->type == E_BOOL && own->binary.left->type == other->binary.left->type && same_poly(r, own->binary.left, other->binary.left) &&
            same_poly(r, own->binary.right, other->binary.right))
            return true;
    }
    return same_poly(r, own, other);
}

/* ---- comparing -------------------------------------------------------------------------------------------------------------- */

static bool same_slot(Roller *r, int own, int other) {
    const Member *member = member_of(r);
    if (own < 0 || other < 0) return own == other;
    for (size_t i = 0; i < r->slots.count; i++)
        if (r->slots.items[i].own == own || r->slots.items[i].other == other) return r->slots.items[i].own == own && r->slots.items[i].other == other;
    vec_push(r->clocks->arena, &r->slots, (Pair){own, other});
    return member->slots.items[own].end == member->slots.items[other].end;
}

static bool same_target(const Roller *r, const Stmt *own, const Stmt *other) {
    for (int i = 0; i < r->target_count; i++)
        if (r->targets[i].own == own) return r->targets[i].other == other;
    return false; /* it leaves more than is compared */
}

static bool same_steps(Roller *r, Stmt *own, Stmt *other, bool in_loop);

static bool same_inside(Roller *r, Stmt *own, Stmt *other, Stmt *own_body, Stmt *other_body, bool in_loop) {
    if (r->target_count == (int)(sizeof r->targets / sizeof *r->targets)) return false;
    r->targets[r->target_count].own = own;
    r->targets[r->target_count++].other = other;
    return same_steps(r, own_body, other_body, in_loop);
}

static Stmt plain_block(const Stmt *block) {
    Stmt plain = *block;
    plain.block.left = false;
    return plain;
}

static bool same_loop(Roller *r, Stmt *own, Stmt *other) {
    if (!same_poly(r, own->loop.lo, other->loop.lo) || !same_poly(r, own->loop.hi, other->loop.hi)) return false;
    if (own->loop.var >= 0 && other->loop.var >= 0) vec_push(r->clocks->arena, &r->locals, (Pair){own->loop.var, other->loop.var});
    if ((own->loop.where || other->loop.where) && !same_condition(r, own->loop.where, other->loop.where)) return false;
    return same_inside(r, own, other, own->loop.body, other->loop.body, true);
}

static bool same_step(Roller *r, const RollStep *a, const RollStep *b, bool in_loop) {
    if (a->kind != b->kind) return false;
    switch (a->kind) {
    case ROLL_ACQUIRE: return same_slot(r, a->slot, b->slot);
    case ROLL_RELEASE: return same_slot(r, a->slot, b->slot) && a->lag == b->lag;
    case ROLL_MOVE: return same_slot(r, a->slot, b->slot) && same_slot(r, a->other, b->other);
    case ROLL_LEAVE: return a->stmt->leave.kind == b->stmt->leave.kind && same_target(r, a->stmt->leave.target, b->stmt->leave.target);
    case ROLL_BLOCK: {
        Stmt own = plain_block(a->stmt), other = plain_block(b->stmt);
        return same_inside(r, a->stmt, b->stmt, &own, &other, in_loop);
    }
    case ROLL_LOOP: return same_loop(r, a->stmt, b->stmt);
    case ROLL_BRANCH:
        return same_condition(r, a->stmt->branch.condition, b->stmt->branch.condition) && same_steps(r, a->stmt->branch.then, b->stmt->branch.then, in_loop) &&
               same_steps(r, a->stmt->branch.otherwise, b->stmt->branch.otherwise, in_loop);
    }
    return false;
}

static bool same_all(Roller *r, const RollSteps *a, const RollSteps *b, bool in_loop) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++)
        if (!same_step(r, &a->items[i], &b->items[i], in_loop)) return false;
    return true;
}

static bool same_steps(Roller *r, Stmt *own, Stmt *other, bool in_loop) {
    RollSteps a = {0}, b = {0};
    return steps_of(r, own, in_loop, &a) && steps_of(r, other, in_loop, &b) && same_all(r, &a, &b, in_loop);
}

typedef struct Mentions {
    const Roller *roller;
    int slot, count;
} Mentions;

static void count_mentions(Stmt *stmt, void *data) {
    Mentions *m = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_RELEASE ? stmt->release.handle
                 : stmt->kind == S_STAGE ? stmt->stage.handle : stmt->kind == S_MOVE ? stmt->move.to : -1;
    if (handle >= 0) m->count += slot_of(m->roller, handle) == m->slot;
    if (stmt->kind == S_MOVE) m->count += slot_of(m->roller, stmt->move.from) == m->slot;
}

static int mentions(const Roller *r, Stmt *stmt, int slot) {
    Mentions m = {r, slot, 0};
    stmt_visit(stmt, count_mentions, &m);
    return m.count;
}

/* A stage variable that is another one in the later piece is used in neither but its own: nothing is carried in or out */
static bool slots_apart(const Roller *r, Stmt *whole, Stmt *later) {
    for (size_t i = 0; i < r->slots.count; i++) {
        Pair pair = r->slots.items[i];
        if (pair.own == pair.other) continue;
        int own = mentions(r, whole, pair.own), other = mentions(r, later, pair.other);
        if (mentions(r, later, pair.own) || mentions(r, whole, pair.other) != other) return false;
        if (mentions(r, member_of(r)->role->body, pair.own) != own || mentions(r, member_of(r)->role->body, pair.other) != other) return false;
    }
    return true;
}

/* ---- rolling up ---------------------------------------------------------------------------------------------------------------- */

static Stmt *rolled(const Roller *r, const Stmt *last, Expr *lo, Stmt *whole) {
    Stmt *loop = NEW(r->clocks->arena, Stmt);
    *loop = *last;
    loop->loop.lo = lo;
    loop->loop.whole = false;
    vec_push(r->clocks->arena, &r->clocks->rolled, (Rolled){loop, whole});
    return loop;
}

/* if lo < hi { steps; for k in lo + 1 .. hi { steps } } */
static Stmt *roll_peeled(Roller *r, Stmt *branch) {
    Expr *condition = branch->branch.condition;
    RollSteps steps = {0}, body = {0};
    int64_t one;
    if (branch->branch.otherwise || !condition || condition->kind != X_BINARY || (condition->binary.op != OP_LT && condition->binary.op != OP_GT)) return NULL;
    Expr *lo = condition->binary.op == OP_LT ? condition->binary.left : condition->binary.right;
    Expr *hi = condition->binary.op == OP_LT ? condition->binary.right : condition->binary.left;
    if (!steps_of(r, branch->branch.then, false, &steps) || steps.count < 2) return NULL;
    const RollStep last = steps.items[--steps.count];
    if (last.kind != ROLL_LOOP || last.stmt->loop.where || !same_poly(r, hi, last.stmt->loop.hi)) return NULL;
    r->first = fixed_poly(r, lo);
    const Poly *second = fixed_poly(r, last.stmt->loop.lo);
    if (!r->first || !second || !poly_is_constant(poly_sum(r->algebra, second, r->first, -1), &one) || one != 1) return NULL;
    r->first_of = last.stmt->loop.var;
    if (!steps_of(r, last.stmt->loop.body, false, &body) || !same_all(r, &steps, &body, false) || !slots_apart(r, branch, last.stmt)) return NULL;
    return rolled(r, last.stmt, lo, branch);
}

static bool all_among(const Polys *some, const Polys *all, const Poly *also) {
    for (size_t i = 0; i < some->count; i++) {
        bool found = also && poly_equal(some->items[i], also);
        for (size_t k = 0; k < all->count && !found; k++) found = poly_equal(some->items[i], all->items[k]);
        if (!found) return false;
    }
    return true;
}

/* for k in lo .. min(mid, hi) { steps } for k in mid .. hi { steps }, lo <= mid */
static Stmt *roll_pieces(Roller *r, Stmt *before, Stmt *after) {
    if (before->kind != S_FOR || after->kind != S_FOR || before->loop.where || after->loop.where) return NULL;
    const Poly *lo = fixed_poly(r, before->loop.lo), *mid = fixed_poly(r, after->loop.lo);
    const Poly *ends = fixed_poly(r, before->loop.hi), *hi = fixed_poly(r, after->loop.hi);
    Polys before_ends = {0}, after_ends = {0}, joint = {0};
    if (!lo || !mid || !ends || !hi || !poly_at_least_zero(r->algebra, poly_sum(r->algebra, mid, lo, -1))) return NULL;
    clocks_operands(r->clocks, r->algebra, ATOM_MIN, ends, &before_ends);
    clocks_operands(r->clocks, r->algebra, ATOM_MIN, hi, &after_ends);
    vec_push(r->clocks->arena, &joint, mid);
    if (!all_among(&before_ends, &after_ends, mid) || !all_among(&after_ends, &before_ends, NULL) || !all_among(&joint, &before_ends, NULL)) return NULL;
    if (before->loop.var >= 0 && after->loop.var >= 0) vec_push(r->clocks->arena, &r->locals, (Pair){before->loop.var, after->loop.var});
    if (!same_steps(r, before->loop.body, after->loop.body, false)) return NULL;
    Stmt *whole = NEW(r->clocks->arena, Stmt);
    *whole = (Stmt){.kind = S_BLOCK, .span = after->span};
    vec_push(r->clocks->arena, &whole->block.body, lockstep_rolled_from(r->clocks, before));
    vec_push(r->clocks->arena, &whole->block.body, after);
    return slots_apart(r, whole, after) ? rolled(r, after, before->loop.lo, whole) : NULL;
}

Stmt *lockstep_rolled_from(const Clocks *clocks, Stmt *loop) {
    for (size_t i = 0; i < clocks->rolled.count; i++)
        if (clocks->rolled.items[i].loop == loop) return clocks->rolled.items[i].whole;
    return loop;
}

Stmts lockstep_roll(Clocks *clocks, int member, int around, const Stmts *list) {
    Stmts out = {0};
    int last = -1;        /* of `out`: the last with steps */
    if (!clocks->rolls) return *list;
    for (size_t i = 0; i < list->count; i++) {
        Stmt *stmt = list->items[i], *loop;
        Roller r = {.clocks = clocks, .algebra = clocks_algebra(clocks, member, around), .member = member, .around = around, .first_of = -1};
        const Roller fresh = r;
        bool has = false, known = has_steps(&r, stmt, false, &has);
        if (known && !has) {
            vec_push(clocks->arena, &out, stmt);
            continue;
        }
        if (known && stmt->kind == S_IF && (loop = roll_peeled(&r, stmt)) != NULL) stmt = loop;
        r = fresh;
        if (known && last >= 0 && (loop = roll_pieces(&r, out.items[last], stmt)) != NULL) {
            out.items[last] = loop;
            continue;
        }
        last = (int)out.count;
        vec_push(clocks->arena, &out, stmt);
    }
    return out;
}
