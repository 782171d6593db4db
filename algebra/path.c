/* Facts of a path: consequences of a condition, the range of a loop or a `where` for the values
 * at one place. Takes conditions as expressions, with their truth; returns polynomials that are
 * >= 0, and choices, of which one of two sets holds. The caller removes them at the end of the
 * path, or when a variable in them is assigned. */
#include "algebra/private.h"

#define NESTED_MOST 64 /* most nested conditions */

typedef struct Reading {
    Algebra *algebra;
    const Role *role;
    Facts facts;
    VEC(Choice) choices;
    DividesList divides;
} Reading;

static void add(Reading *reading, const Poly *fact) {
    if (fact) vec_push(reading->algebra->arena, &reading->facts, fact);
}

static void read(Reading *reading, Expr *condition, bool truth, int depth);

static Reading side(const Reading *reading, Expr *condition, bool truth, int depth) {
    Reading part = {.algebra = reading->algebra, .role = reading->role};
    read(&part, condition, truth, depth);
    return part;
}

static void choose(Reading *reading, const Reading *a, const Reading *b) {
    Choice choice = {{a->facts.items, b->facts.items}, {a->facts.count, b->facts.count}};
    vec_push(reading->algebra->arena, &reading->choices, choice);
}

static void read_difference(Reading *reading, const Poly *less) {
    Algebra *algebra = reading->algebra;
    const Poly *more = poly_minus(algebra, less);
    Reading below = {.algebra = algebra}, above = {.algebra = algebra};
    if (!less || !more) return;
    add(&below, poly_offset(algebra, less, -1));
    add(&above, poly_offset(algebra, more, -1));
    choose(reading, &below, &above);
}

/* a % n == 0, for a constant n */
static void read_multiple(Reading *reading, const Expr *left, const Expr *right) {
    int64_t by, zero;
    if (!expr_constant(right, &zero) || zero != 0 || left->kind != X_BINARY ||
        left->binary.op != OP_MOD || !expr_constant(left->binary.right, &by) || by < 2)
        return;
    const Poly *poly = algebra_poly(reading->algebra, reading->role, left->binary.left);
    if (poly) vec_push(reading->algebra->arena, &reading->divides, ((Divides){poly, by}));
}

static void read_comparison(Reading *reading, const Expr *condition, bool truth) {
    Algebra *algebra = reading->algebra;
    BinaryOp op = condition->binary.op;
    const Poly *a = algebra_poly(algebra, reading->role, condition->binary.left);
    const Poly *b = algebra_poly(algebra, reading->role, condition->binary.right);
    const Poly *more = poly_sum(algebra, b, a, -1), *less = poly_sum(algebra, a, b, -1);
    if (!more || !less) return;
    if ((op == OP_EQ || op == OP_NE) && (op == OP_EQ) != truth) {
        read_difference(reading, less);
    } else if (op == OP_EQ || op == OP_NE) {
        add(reading, more);
        add(reading, less);
        read_multiple(reading, condition->binary.left, condition->binary.right);
    } else if (op == OP_LT || op == OP_LE) { /* a < b, or not a < b: a >= b */
        add(reading, truth ? poly_offset(algebra, more, -(op == OP_LT))
                           : poly_offset(algebra, less, -(op == OP_LE)));
    } else {
        add(reading, truth ? poly_offset(algebra, less, -(op == OP_GT))
                           : poly_offset(algebra, more, -(op == OP_GE)));
    }
}

static bool read_binary(Reading *reading, Expr *condition, bool truth, int depth) {
    BinaryOp op = condition->binary.op;
    Expr *left = condition->binary.left, *right = condition->binary.right;
    bool joins = op == OP_AND || op == OP_OR;
    if (joins && (op == OP_AND) == truth) {
        read(reading, left, truth, depth);
        read(reading, right, truth, depth);
    } else if (joins) {
        Reading a = side(reading, left, truth, depth), b = side(reading, right, truth, depth);
        choose(reading, &a, &b);
    } else if (type_is_integer(left->type)) {
        read_comparison(reading, condition, truth);
    }
    return joins || type_is_integer(left->type);
}

/* c ? a : b of truths */
static void read_select(Reading *reading, Expr *condition, bool truth, int depth) {
    Reading then = side(reading, condition->select.condition, true, depth),
            otherwise = side(reading, condition->select.condition, false, depth);
    read(&then, condition->select.then, truth, depth);
    read(&otherwise, condition->select.otherwise, truth, depth);
    choose(reading, &then, &otherwise);
}

/* The value of a `let`, if it cannot have changed since */
static Expr *let_value(const Reading *reading, const Expr *expr) {
    if (expr->kind != X_LOCAL || !reading->role || expr->index < 0) return NULL;
    const Local *local = &reading->role->locals.items[expr->index];
    if (local->kind != LOCAL_LET || !local->value) return NULL;
    return poly_changes(reading->algebra,
                        algebra_poly(reading->algebra, reading->role, local->value))
               ? NULL
               : local->value;
}

static void read(Reading *reading, Expr *condition, bool truth, int depth) {
    Algebra *algebra = reading->algebra;
    if (!condition || condition->type != E_BOOL || depth <= 0) return;
    Expr *value = let_value(reading, condition);
    if (value) {
        read(reading, value, truth, depth - 1);
    } else if (condition->kind == X_UNARY && condition->unary.op == OP_NOT) {
        read(reading, condition->unary.operand, !truth, depth - 1);
    } else if (condition->kind == X_SELECT) {
        read_select(reading, condition, truth, depth - 1);
    } else if (condition->kind != X_BINARY || !read_binary(reading, condition, truth, depth - 1)) {
        const Poly *poly = algebra_poly(algebra, reading->role, condition); /* 0 or 1 */
        add(reading, truth ? poly_offset(algebra, poly, -1) : poly_minus(algebra, poly));
    }
}

/* ---- the stack ------------------------------------------------------------------------------- */

PathMark algebra_mark(Algebra *algebra) {
    algebra_learn(algebra);
    return (PathMark){algebra->facts.count, algebra->choices.count, algebra->divides.count};
}

void algebra_undo(Algebra *algebra, PathMark mark) {
    algebra->facts.count = mark.facts;
    algebra->choices.count = mark.choices;
    algebra->divides.count = mark.divides;
    algebra->path++;
}

static bool touches(const Algebra *algebra, const Poly *fact, const Poly *poly) {
    for (int i = 0; fact && i < fact->count; i++)
        for (int k = 0; k < fact->terms[i].count; k++)
            if (poly_mentions(algebra, poly, fact->terms[i].atoms[k])) return true;
    return !fact;
}

static bool is_cut_about(const Algebra *algebra, const Poly *const *facts, size_t count,
                         const Poly *poly) {
    for (size_t i = 0; i < count; i++)
        if (poly_is_cut(algebra, facts[i]) && touches(algebra, facts[i], poly)) return true;
    return false;
}

bool algebra_is_cut(const Algebra *algebra, const Poly *poly) {
    if (poly_is_cut(algebra, poly) ||
        is_cut_about(algebra, algebra->facts.items, algebra->facts.count, poly))
        return true;
    for (size_t i = 0; i < algebra->choices.count; i++)
        for (int side = 0; side < 2; side++)
            if (is_cut_about(algebra, algebra->choices.items[i].facts[side],
                             algebra->choices.items[i].counts[side], poly))
                return true;
    return false;
}

void algebra_assume_poly(Algebra *algebra, const Poly *poly) {
    algebra_learn(algebra);
    if (poly) vec_push(algebra->arena, &algebra->facts, poly);
    algebra->path++;
}

void algebra_assume(Algebra *algebra, const Role *role, Expr *condition, bool truth) {
    Reading reading = {.algebra = algebra, .role = role};
    algebra_learn(algebra);
    read(&reading, condition, truth, NESTED_MOST);
    for (size_t i = 0; i < reading.facts.count; i++)
        algebra_assume_poly(algebra, reading.facts.items[i]);
    for (size_t i = 0; i < reading.choices.count; i++)
        vec_push(algebra->arena, &algebra->choices, reading.choices.items[i]);
    for (size_t i = 0; i < reading.divides.count; i++)
        vec_push(algebra->arena, &algebra->divides, reading.divides.items[i]);
    algebra->path++;
}

void algebra_assume_range(Algebra *algebra, const Poly *value, const Poly *lo, const Poly *hi) {
    algebra_assume_poly(algebra, poly_sum(algebra, value, lo, -1));
    algebra_assume_poly(algebra, poly_offset(algebra, poly_sum(algebra, hi, value, -1), -1));
}

Certainty algebra_decides(Algebra *algebra, const Role *role, Expr *condition) {
    PathMark mark = algebra_mark(algebra);
    if (!condition || condition->type != E_BOOL) return NOT_CERTAIN;
    algebra_assume(algebra, role, condition, false);
    bool never_false = algebra_impossible(algebra);
    algebra_undo(algebra, mark);
    if (never_false) return CERTAINLY;
    algebra_assume(algebra, role, condition, true);
    bool never_true = algebra_impossible(algebra);
    algebra_undo(algebra, mark);
    return never_true ? CERTAINLY_NOT : NOT_CERTAIN;
}
