/* What is certainly true of polynomials: divisors and bounds, from `requires` and derived preconditions, 0 <= axis < its
 * extent, lo <= loop variable < hi, ranks, index extents, and the laws of ceil, division, min and max. "False" always means
 * "not known". Also the functions of algebra.h that other passes ask. */
#include "algebra/private.h"
#include "prog/stmt.h"

#define PROOF_STEPS 600
#define PROOF_DEPTH 12
#define SLACK_LIMIT (INT64_C(1) << 40)

/* ---- collecting --------------------------------------------------------------------------------------------------- */

static void collect_loops(LoopLimits *loops, Stmt *stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) collect_loops(loops, stmt->block.body.items[i]);
        break;
    case S_GRID: collect_loops(loops, stmt->grid.body); break;
    case S_FOR:
        if (stmt->loop.var >= 0) {
            loops->lo[stmt->loop.var] = stmt->loop.lo;
            loops->hi[stmt->loop.var] = stmt->loop.hi;
        }
        collect_loops(loops, stmt->loop.body);
        break;
    case S_IF:
        collect_loops(loops, stmt->branch.then);
        collect_loops(loops, stmt->branch.otherwise);
        break;
    case S_STAGE: collect_loops(loops, stmt->stage.body); break;
    case S_SCALAR:
    case S_TILE:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
}

static const LoopLimits *loops_of(Algebra *algebra, const Role *role) {
    for (size_t i = 0; i < algebra->loops.count; i++)
        if (algebra->loops.items[i].role == role) return &algebra->loops.items[i];
    LoopLimits loops = {.role = role};
    loops.lo = NEW_ARRAY(algebra->arena, Expr *, role->locals.count + 1);
    loops.hi = NEW_ARRAY(algebra->arena, Expr *, role->locals.count + 1);
    collect_loops(&loops, role->body);
    for (size_t i = 0; i < role->locals.count; i++) {
        const Local *local = &role->locals.items[i];
        if (local->below == 0) continue;
        loops.lo[i] = expr_integer(algebra->arena, local->type, 0, local->span);
        loops.hi[i] = expr_integer(algebra->arena, local->type, local->below, local->span);
    }
    vec_push(algebra->arena, &algebra->loops, loops);
    return &algebra->loops.items[algebra->loops.count - 1];
}

bool algebra_loop(Algebra *algebra, const Role *role, int local, Expr **lo, Expr **hi) {
    const LoopLimits *loops = role ? loops_of(algebra, role) : NULL;
    *lo = loops ? loops->lo[local] : NULL;
    *hi = loops ? loops->hi[local] : NULL;
    return *lo && *hi;
}

Algebra *algebra_new(Arena *arena, const Prog *prog, const Role *role) {
    Algebra *algebra = NEW(arena, Algebra);
    algebra->arena = arena;
    algebra->prog = prog;
    algebra->role = role;
    algebra->most_terms = POLY_MAX_TERMS;
    algebra->work = INT64_MAX;
    return algebra;
}

void algebra_divides(Algebra *algebra, const Poly *poly, int64_t by) {
    if (!poly || by < 2) return;
    vec_reserve(algebra->arena, (void **)&algebra->divides, &algebra->divides_capacity, algebra->divides_count + 1,
                sizeof *algebra->divides);
    algebra->divides[algebra->divides_count++] = (struct Divides){poly, by, false};
}

static void state(Algebra *algebra, const Poly *poly) {
    int64_t common = poly ? poly_content(poly) : 1;
    if (common > 1) poly = poly_divided(algebra, poly, common, true); /* of whole numbers it says as much */
    if (poly) vec_push(algebra->arena, &algebra->stated, poly);
}

static void learn(Algebra *algebra, Expr *condition) {
    int64_t zero, by;
    if (condition->kind != X_BINARY) return;
    Expr *left = condition->binary.left, *right = condition->binary.right;
    BinaryOp op = condition->binary.op;
    if (op == OP_AND) {
        learn(algebra, left);
        learn(algebra, right);
        return;
    }
    if (op == OP_OR || left->type == E_BOOL || left->type == E_F32) return;
    if (op == OP_EQ && expr_constant(right, &zero) && zero == 0 && left->kind == X_BINARY &&
        left->binary.op == OP_MOD && expr_constant(left->binary.right, &by)) {
        size_t before = algebra->divides_count;
        algebra_divides(algebra, algebra_launched(algebra, left->binary.left), by);
        if (algebra->divides_count > before) algebra->divides[before].stated = true;
        return;
    }
    const Poly *a = algebra_launched(algebra, left), *b = algebra_launched(algebra, right);
    if (op == OP_LE || op == OP_EQ) state(algebra, poly_sum(algebra, b, a, -1));
    if (op == OP_GE || op == OP_EQ) state(algebra, poly_sum(algebra, a, b, -1));
    if (op == OP_LT) state(algebra, poly_offset(algebra, poly_sum(algebra, b, a, -1), -1));
    if (op == OP_GT) state(algebra, poly_offset(algebra, poly_sum(algebra, a, b, -1), -1));
}

/* A launch takes no tensor whose extents are others, or too large. */
static void learn_extents(Algebra *algebra, const Param *param) {
    for (int axis = 0; param->is_tensor && axis < param->rank; axis++) {
        Expr *extent = param->extents[axis];
        if (!extent || extent->kind == X_SYMBOL || extent->kind == X_CONST || extent->kind == X_POISON) continue;
        const Poly *poly = algebra_launched(algebra, extent);
        state(algebra, poly);
        state(algebra, poly_sum(algebra, poly_constant(algebra, EXTENT_MOST), poly, -1));
    }
}

void algebra_learn(Algebra *algebra) {
    const Prog *prog = algebra->prog;
    while (algebra->params_seen < prog->params.count) learn_extents(algebra, &prog->params.items[algebra->params_seen++]);
    while (algebra->preconditions_seen < prog->preconditions.count)
        learn(algebra, prog->preconditions.items[algebra->preconditions_seen++].condition);
}

/* ---- divisors ----------------------------------------------------------------------------------------------------- */

/* n divides c * m, so n / common_divisor(c, n) divides m */
static int64_t known_divisor(const Algebra *algebra, const Term *term) {
    int64_t best = 1;
    for (size_t i = 0; i < algebra->divides_count; i++) {
        const Poly *poly = algebra->divides[i].poly;
        if (poly->count != 1 || poly->terms[0].count != term->count) continue;
        bool same = true;
        for (int k = 0; k < term->count; k++) same &= poly->terms[0].atoms[k] == term->atoms[k];
        int64_t by = algebra->divides[i].by / common_divisor(poly->terms[0].coef, algebra->divides[i].by);
        int64_t both;
        if (same && !__builtin_mul_overflow(best / common_divisor(best, by), by, &both)) best = both;
    }
    return best;
}

static int64_t divisor_of(Algebra *algebra, const Poly *poly, int depth);

static int64_t atom_divisor(Algebra *algebra, int id, int depth) {
    Term one = {.coef = 1, .count = 1, .atoms = {id}};
    Atom atom = algebra->atoms.items[id];
    int64_t known = known_divisor(algebra, &one);
    if (depth <= 0) return known;
    if (atom.kind == ATOM_MIN || atom.kind == ATOM_MAX) {
        int64_t both = common_divisor(divisor_of(algebra, atom.args[0], depth - 1), divisor_of(algebra, atom.args[1], depth - 1));
        return both > known ? both : known;
    }
    if (atom.kind == ATOM_WRAP && element_rows[atom.type].bytes < 8) { /* what is cut off is a multiple of 2^width */
        int64_t left = common_divisor(divisor_of(algebra, atom.args[0], depth - 1), INT64_C(1) << (8 * element_rows[atom.type].bytes));
        return left > known ? left : known;
    }
    return known;
}

static int64_t term_divisor(Algebra *algebra, const Term *term, int depth) {
    int64_t product = term->coef, whole, out;
    for (int k = 0; k < term->count; k++)
        if (__builtin_mul_overflow(product, atom_divisor(algebra, term->atoms[k], depth), &product)) return term->coef;
    if (term->count > 1 && !__builtin_mul_overflow(term->coef, known_divisor(algebra, term), &whole) &&
        !__builtin_mul_overflow(product / common_divisor(product, whole), whole, &out))
        return out;
    return product;
}

static int64_t divisor_of(Algebra *algebra, const Poly *poly, int depth) {
    if (!poly) return 1;
    int64_t common = 0;
    for (int i = 0; i < poly->count; i++) common = common_divisor(common, term_divisor(algebra, &poly->terms[i], depth));
    if (depth <= 0 || poly->count == 0) return common;
    for (size_t i = 0; i < algebra->divides_count; i++) { /* a sum that is known to be divisible as a whole */
        const struct Divides *known = &algebra->divides[i];
        if (known->poly->count < 2) continue;
        const Term *lead = &known->poly->terms[known->poly->count - 1];
        const Poly *rest = NULL;
        int64_t times = 0;
        for (int k = 0; k < poly->count; k++) {
            bool same = poly->terms[k].count == lead->count && poly->terms[k].coef % lead->coef == 0;
            for (int a = 0; same && a < lead->count; a++) same = poly->terms[k].atoms[a] == lead->atoms[a];
            if (same) times = poly->terms[k].coef / lead->coef;
        }
        if (times != 0) rest = poly_sum(algebra, poly, known->poly, -times);
        int64_t whole;
        if (rest && !__builtin_mul_overflow(times, known->by, &whole)) {
            int64_t found = common_divisor(whole, divisor_of(algebra, rest, depth - 1));
            if (found > common) common = found;
        }
    }
    return common;
}

int64_t poly_divisor(Algebra *algebra, const Poly *poly) {
    algebra_learn(algebra);
    return poly ? divisor_of(algebra, poly, 3) : 1;
}

/* ---- bounds ------------------------------------------------------------------------------------------------------- */

static void add_bound(Algebra *algebra, AtomBounds *bounds, int64_t scale, const Poly *poly) {
    if (poly) vec_push(algebra->arena, bounds, (AtomBound){scale, poly});
}

static bool prove(Algebra *algebra, const Poly *poly, int depth, int64_t slack);

/* a quotient q of C's a / b for b > 0 and a >= 0: b*q <= a <= b*q + b - 1; a remainder: 0 <= r <= b - 1 and r <= a;
 * ceil for b > 0: a <= b*q <= a + b - 1, and b*q == a where b divides a */
static void bounds_of_division(Algebra *algebra, const Atom *atom, bool lower, AtomBounds *bounds, int depth) {
    const Poly *a = atom->args[0], *b = atom->args[1], *slack;
    int64_t by;
    if (!poly_is_constant(b, &by) || by <= 0) return;
    slack = poly_constant(algebra, by - 1);
    if (atom->kind == ATOM_CEIL) {
        bool exact = divisor_of(algebra, a, 3) % by == 0;
        add_bound(algebra, bounds, by, lower || exact ? a : poly_sum(algebra, a, slack, 1));
        return;
    }
    bool whole = prove(algebra, a, depth - 1, 0);
    if (atom->kind == ATOM_DIV && whole) add_bound(algebra, bounds, by, lower ? poly_sum(algebra, a, slack, -1) : a);
    if (atom->kind == ATOM_DIV && whole && lower) add_bound(algebra, bounds, 1, poly_constant(algebra, 0));
    if (atom->kind == ATOM_MOD && lower)
        add_bound(algebra, bounds, 1, whole ? poly_constant(algebra, 0) : poly_constant(algebra, 1 - by));
    if (atom->kind == ATOM_MOD && !lower) {
        add_bound(algebra, bounds, 1, slack);
        if (whole) add_bound(algebra, bounds, 1, a);
    }
}

static void bounds_of_simple(Algebra *algebra, int id, bool lower, AtomBounds *bounds) {
    const Atom copy = algebra->atoms.items[id], *atom = &copy;
    const Poly *one = poly_constant(algebra, 1), *zero = poly_constant(algebra, 0);
    Expr *lo, *hi;
    switch (atom->kind) {
    case ATOM_SYMBOL: add_bound(algebra, bounds, 1, range_limit(algebra, range_of_atom(algebra, id), lower)); break;
    case ATOM_AXIS:
        if (lower)
            add_bound(algebra, bounds, 1, zero);
        else
            add_bound(
                algebra, bounds, 1,
                poly_sum(algebra, algebra_launched(algebra, algebra->prog->axes.items[atom->index].padded), one, -1));
        break;
    case ATOM_RANK:
        add_bound(algebra, bounds, 1, lower ? zero : poly_constant(algebra, atom->role->instances - 1));
        break;
    case ATOM_INDEX:
        if (!algebra->space || atom->index >= algebra->space->count) break;
        if (lower)
            add_bound(algebra, bounds, 1, zero);
        else if (algebra->space->items[atom->index].extent >= 0)
            add_bound(algebra, bounds, 1, poly_constant(algebra, algebra->space->items[atom->index].extent - 1));
        else if (algebra->space->items[atom->index].dynamic)
            add_bound(
                algebra, bounds, 1,
                poly_sum(algebra, algebra_launched(algebra, algebra->space->items[atom->index].dynamic), one, -1));
        break;
    case ATOM_LOCAL:
        if (atom->role != algebra->role || !algebra_loop(algebra, atom->role, atom->index, &lo, &hi)) break;
        Bindings now = algebra_hold(algebra, (Bindings){0}); /* bounds speak of what was held where the loop began */
        const Poly *bound = lower ? algebra_poly(algebra, atom->role, lo)
                                  : poly_sum(algebra, algebra_poly(algebra, atom->role, hi), one, -1);
        (void)algebra_hold(algebra, now);
        if (bound && !poly_changes(algebra, bound)) add_bound(algebra, bounds, 1, bound);
        break;
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL:
    case ATOM_MIN:
    case ATOM_MAX:
    case ATOM_SELECT:
    case ATOM_TRUTH:
    case ATOM_FLOOR:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST: break;
    case ATOM_WRAP:
    case ATOM_OPAQUE: add_bound(algebra, bounds, 1, range_limit(algebra, range_of_atom(algebra, id), lower)); break;
    }
}

void atom_bounds(Algebra *algebra, int id, bool lower, AtomBounds *bounds) {
    bounds_of_simple(algebra, id, lower, bounds);
}

static void add_fact_bound(Algebra *algebra, const Poly *fact, int id, bool lower, AtomBounds *bounds) {
    const Poly *factor, *rest;
    int64_t coef;
    if (!poly_split(algebra, fact, id, &factor, &rest) || !poly_is_constant(factor, &coef) || coef == 0) return;
    if ((coef > 0) != lower || coef == INT64_MIN) return;
    add_bound(algebra, bounds, coef > 0 ? coef : -coef, lower ? poly_minus(algebra, rest) : rest);
}

static AtomBounds bounds_of(Algebra *algebra, int id, bool lower, int depth) {
    Atom atom = algebra->atoms.items[id];
    AtomBounds bounds = {0};
    int64_t by;
    switch (atom.kind) {
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_RANK:
    case ATOM_INDEX:
    case ATOM_LOCAL: bounds_of_simple(algebra, id, lower, &bounds); break;
    case ATOM_DIV:
    case ATOM_MOD:
    case ATOM_CEIL: bounds_of_division(algebra, &atom, lower, &bounds, depth); break;
    case ATOM_MIN:
    case ATOM_MAX:
        if ((atom.kind == ATOM_MAX) == lower) {
            add_bound(algebra, &bounds, 1, atom.args[0]);
            add_bound(algebra, &bounds, 1, atom.args[1]);
        } /* the other side is a matter of cases, see prove() */
        break;
    case ATOM_TRUTH: add_bound(algebra, &bounds, 1, poly_constant(algebra, lower ? 0 : 1)); break;
    case ATOM_FLOOR: /* by * it <= a <= by * it + by - 1 */
        if (poly_is_constant(atom.args[1], &by))
            add_bound(algebra, &bounds, by, lower ? poly_offset(algebra, atom.args[0], 1 - by) : atom.args[0]);
        break;
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_SUM:
    case ATOM_FIRST: break;
    case ATOM_SELECT:
    case ATOM_WRAP:
    case ATOM_OPAQUE: break;
    }
    if (bounds.count == 0 && atom.kind != ATOM_SYMBOL) add_bound(algebra, &bounds, 1, range_limit(algebra, range_of_atom(algebra, id), lower));
    for (size_t i = 0; i < algebra->stated.count; i++) add_fact_bound(algebra, algebra->stated.items[i], id, lower, &bounds);
    for (size_t i = 0; i < algebra->facts.count; i++) add_fact_bound(algebra, algebra->facts.items[i], id, lower, &bounds);
    return bounds;
}

static int highest_atom(const Algebra *algebra, const Poly *poly, int below) {
    int best = -1;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int id = poly->terms[i].atoms[k];
            int64_t rank = (int64_t)algebra->atoms.items[id].level * 65536 + id;
            int64_t top = best < 0 ? -1 : (int64_t)algebra->atoms.items[best].level * 65536 + best;
            int64_t limit = below < 0 ? INT64_MAX : (int64_t)algebra->atoms.items[below].level * 65536 + below;
            if (rank > top && rank < limit) best = id;
        }
    return best;
}

/* min, max and a choice are one of their operands: what holds for both holds. */
static bool by_cases(Algebra *algebra, const Poly *poly, int id, int depth, int64_t slack) {
    Atom atom = algebra->atoms.items[id];
    if (atom.kind != ATOM_MIN && atom.kind != ATOM_MAX && atom.kind != ATOM_SELECT) return false;
    int first = atom.kind == ATOM_SELECT ? 1 : 0;
    return prove(algebra, poly_replace(algebra, poly, id, atom.args[first]), depth - 1, slack) &&
           prove(algebra, poly_replace(algebra, poly, id, atom.args[first + 1]), depth - 1, slack);
}

/* A precondition says so, or more than that */
static bool is_stated(Algebra *algebra, const Poly *poly) {
    int64_t more;
    for (size_t i = 0; poly && i < algebra->stated.count; i++) {
        const Poly *fact = algebra->stated.items[i];
        if (fact->count < 2 || fact->terms[fact->count - 1].count < 2) continue;
        if (poly_is_constant(poly_sum(algebra, poly, fact, -1), &more) && more >= 0) return true;
    }
    return false;
}

/* Is poly >= -slack? Eliminates the highest atom by one of its bounds and goes on; of atoms on the same level (symbols) each
 * may be first. A bound of scale k multiplies all by k, so that a whole number that is more than -k is at least 0. */
static bool prove(Algebra *algebra, const Poly *poly, int depth, int64_t slack) {
    if (!poly || depth <= 0 || algebra->steps-- <= 0) return false;
    int64_t common = poly_content(poly);
    if (common > 1) {
        poly = poly_offset(algebra, poly, slack), slack = 0;
        poly = poly ? poly_divided(algebra, poly, common, true) : NULL;
    }
    if (!poly) return false;
    if (range_of_poly(algebra, poly).least >= -slack || is_stated(algebra, poly)) return true;
    if (poly->count == 0 || poly->terms[poly->count - 1].count == 0) return false;
    for (int id = highest_atom(algebra, poly, -1), first = id; id >= 0; id = highest_atom(algebra, poly, id)) {
        const Poly *factor, *rest;
        if (algebra->atoms.items[id].level != algebra->atoms.items[first].level &&
            algebra->atoms.items[first].level > 0)
            break;
        if (!poly_split(algebra, poly, id, &factor, &rest)) continue;
        bool positive = prove(algebra, factor, depth - 1, 0);
        if (positive || prove(algebra, poly_sum(algebra, poly_constant(algebra, 0), factor, -1), depth - 1, 0)) {
            AtomBounds bounds = bounds_of(algebra, id, positive, depth);
            for (size_t i = 0; i < bounds.count; i++) {
                const Poly *with = poly_product(algebra, factor, bounds.items[i].poly);
                int64_t scale = bounds.items[i].scale, more;
                if (__builtin_mul_overflow(slack + 1, scale, &more) || more > SLACK_LIMIT) more = 1;
                if (prove(algebra, poly_sum(algebra, with, rest, scale), depth - 1, more - 1)) return true;
            }
        }
        if (by_cases(algebra, poly, id, depth, slack)) return true;
    }
    return false;
}

bool poly_at_least_zero(Algebra *algebra, const Poly *poly) {
    algebra_learn(algebra);
    algebra->steps = PROOF_STEPS;
    return prove(algebra, poly, PROOF_DEPTH, 0);
}

/* ---- what other passes ask ---------------------------------------------------------------------------------------- */

bool algebra_equal(Arena *arena, const Prog *prog, const Role *a_role, Expr *a, const Role *b_role, Expr *b) {
    if (a->kind == X_POISON || b->kind == X_POISON) return true; /* silent on poison */
    Algebra *algebra = algebra_new(arena, prog, NULL);
    algebra->most_terms = POLY_MORE_TERMS;
    algebra->work = PROOF_WORK;
    const Poly *x = algebra_poly(algebra, a_role, a), *y = algebra_poly(algebra, b_role, b);
    return poly_equal(x, y) || poly_proves_zero(algebra, poly_sum(algebra, x, y, -1));
}

bool algebra_same(Arena *arena, const Prog *prog, Expr *a, Expr *b) {
    Algebra *algebra = algebra_new(arena, prog, NULL);
    return a->kind == X_POISON || b->kind == X_POISON || poly_equal(algebra_launched(algebra, a), algebra_launched(algebra, b));
}

int64_t algebra_divisor(Arena *arena, const Prog *prog, const Role *role, Expr *expr) {
    Algebra *algebra = algebra_new(arena, prog, role);
    return poly_divisor(algebra, algebra_poly(algebra, role, expr));
}

bool algebra_at_most(Arena *arena, const Prog *prog, const Role *role, Expr *a, Expr *b) {
    Algebra *algebra = algebra_new(arena, prog, role);
    return poly_at_least_zero(algebra,
                              poly_sum(algebra, algebra_poly(algebra, role, b), algebra_poly(algebra, role, a), -1));
}
