/* Facts that hold everywhere in a program: from its preconditions and extents, and divisors of
 * formulas. Takes a program; each fact is true for all launches. */
#include "algebra/private.h"

Algebra *algebra_new(Arena *arena, const Prog *prog, const Role *role) {
    Algebra *algebra = NEW(arena, Algebra);
    algebra->arena = arena;
    algebra->prog = prog;
    algebra->role = role;
    algebra->most_terms = POLY_MAX_TERMS;
    algebra->proof_work = INT64_MAX;
    algebra_work_anew(algebra);
    return algebra;
}

Algebra *algebra_of_counts(Arena *arena, const Prog *prog) {
    Algebra *algebra = algebra_new(arena, prog, NULL);
    algebra->most_terms = POLY_MORE_TERMS;
    algebra->proof_work = PROOF_WORK;
    algebra_work_anew(algebra);
    return algebra;
}

/* ---- preconditions and extents --------------------------------------------------------------- */

static void state(Algebra *algebra, const Poly *poly) {
    int64_t common = poly ? poly_content(poly) : 1;
    if (common > 1) poly = poly_divided(algebra, poly, common, true); /* equivalent for integers */
    if (poly) vec_push(algebra->arena, &algebra->stated, poly);
}

/* states a comparison, which is 0 or 1 */
static void state_truth(Algebra *algebra, const char *compares, const Poly *a, const Poly *b,
                        bool truth) {
    const Poly *poly = form_opaque(algebra, compares, E_BOOL, (const Poly *[]){a, b}, 2);
    state(algebra, truth ? poly_offset(algebra, poly, -1) : poly_minus(algebra, poly));
}

/* What a comparison of floats says about the other ones: none of its operands is NaN. */
static void learn_floats(Algebra *algebra, BinaryOp op, const Poly *left, const Poly *right) {
    bool turned = op == OP_GT || op == OP_GE, equal = op == OP_EQ, differs = op == OP_NE;
    const Poly *a = turned ? right : left, *b = turned ? left : right;
    bool less = op == OP_LT || op == OP_GT;
    if (equal || differs || less) state_truth(algebra, "eq", a, b, equal);
    if (differs) return;
    state_truth(algebra, "le", a, b, true);
    state_truth(algebra, "lt", b, a, false);
    if (equal || less) state_truth(algebra, "lt", a, b, less);
    if (equal || less) state_truth(algebra, "le", b, a, equal);
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
    if (op == OP_OR || left->type == E_BOOL) return;
    if (left->type == E_F32) {
        learn_floats(algebra, op, algebra_poly(algebra, NULL, left),
                     algebra_poly(algebra, NULL, right));
        return;
    }
    if (op == OP_EQ && expr_constant(right, &zero) && zero == 0 && left->kind == X_BINARY &&
        left->binary.op == OP_MOD && expr_constant(left->binary.right, &by)) {
        const Poly *poly = algebra_launched(algebra, left->binary.left);
        if (poly && by > 1)
            vec_push(algebra->arena, &algebra->stated_divides, ((Divides){poly, by}));
        return;
    }
    const Poly *a = algebra_launched(algebra, left), *b = algebra_launched(algebra, right);
    const Poly *distance = op == OP_NE ? poly_sum(algebra, a, b, -1) : NULL;
    if (distance) vec_push(algebra->arena, &algebra->stated_nonzero, distance);
    if (op == OP_LE || op == OP_EQ) state(algebra, poly_sum(algebra, b, a, -1));
    if (op == OP_GE || op == OP_EQ) state(algebra, poly_sum(algebra, a, b, -1));
    if (op == OP_LT) state(algebra, poly_offset(algebra, poly_sum(algebra, b, a, -1), -1));
    if (op == OP_GT) state(algebra, poly_offset(algebra, poly_sum(algebra, a, b, -1), -1));
}

/* A launch refuses tensors with other extents, or too large ones. */
static void learn_extents(Algebra *algebra, const Param *param) {
    for (int axis = 0; param->is_tensor && axis < param->rank; axis++) {
        Expr *extent = param->extents[axis];
        if (!extent || extent->kind == X_SYMBOL || extent->kind == X_CONST ||
            extent->kind == X_POISON)
            continue;
        const Poly *poly = algebra_launched(algebra, extent);
        state(algebra, poly);
        state(algebra, poly_sum(algebra, poly_constant(algebra, EXTENT_MOST), poly, -1));
    }
}

void algebra_learn(Algebra *algebra) {
    const Prog *prog = algebra->prog;
    while (algebra->params_seen < prog->params.count)
        learn_extents(algebra, &prog->params.items[algebra->params_seen++]);
    while (algebra->preconditions_seen < prog->preconditions.count) {
        const Precondition *row = &prog->preconditions.items[algebra->preconditions_seen++];
        if (row->pitch_of == 0 || algebra->dense) learn(algebra, row->condition);
    }
}

bool algebra_required(Algebra *algebra, Expr *condition) {
    const Prog *prog = algebra->prog;
    for (size_t i = 0; i < prog->preconditions.count; i++) {
        const Precondition *row = &prog->preconditions.items[i];
        if (row->pitch_of == 0 && algebra_same(algebra, row->condition, condition)) return true;
    }
    return false;
}

/* ---- divisors -------------------------------------------------------------------------------- */

const Divides *divides_at(const Algebra *algebra, size_t i) {
    size_t stated = algebra->stated_divides.count;
    if (i < stated) return &algebra->stated_divides.items[i];
    return i - stated < algebra->divides.count ? &algebra->divides.items[i - stated] : NULL;
}

/* n divides c * m, so n / common_divisor(c, n) divides m */
static int64_t known_divisor(const Algebra *algebra, const Term *term) {
    int64_t best = 1;
    const Divides *known;
    for (size_t i = 0; (known = divides_at(algebra, i)); i++) {
        const Poly *poly = known->poly;
        if (poly->count != 1 || poly->terms[0].count != term->count) continue;
        bool same = true;
        for (int k = 0; k < term->count; k++) same &= poly->terms[0].atoms[k] == term->atoms[k];
        int64_t by = known->by / common_divisor(poly->terms[0].coef, known->by);
        int64_t both;
        if (same && !__builtin_mul_overflow(best / common_divisor(best, by), by, &both))
            best = both;
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
        int64_t both = common_divisor(divisor_of(algebra, atom.args[0], depth - 1),
                                      divisor_of(algebra, atom.args[1], depth - 1));
        return both > known ? both : known;
    }
    /* truncation removes a multiple of 2^width */
    if (atom.kind == ATOM_WRAP && element_rows[atom.type].bytes < 8) {
        int64_t left = common_divisor(divisor_of(algebra, atom.args[0], depth - 1),
                                      INT64_C(1) << (8 * element_rows[atom.type].bytes));
        return left > known ? left : known;
    }
    return known;
}

static int64_t term_divisor(Algebra *algebra, const Term *term, int depth) {
    int64_t product = term->coef, whole, out;
    for (int k = 0; k < term->count; k++)
        if (__builtin_mul_overflow(product, atom_divisor(algebra, term->atoms[k], depth), &product))
            return term->coef;
    if (term->count > 1 &&
        !__builtin_mul_overflow(term->coef, known_divisor(algebra, term), &whole) &&
        !__builtin_mul_overflow(product / common_divisor(product, whole), whole, &out))
        return out;
    return product;
}

static int64_t divisor_of(Algebra *algebra, const Poly *poly, int depth) {
    if (!poly) return 1;
    int64_t common = 0;
    for (int i = 0; i < poly->count; i++)
        common = common_divisor(common, term_divisor(algebra, &poly->terms[i], depth));
    if (depth <= 0 || poly->count == 0) return common;
    const Divides *known; /* a known divisor of the whole sum */
    for (size_t i = 0; (known = divides_at(algebra, i)); i++) {
        if (known->poly->count < 2) continue;
        const Term *lead = &known->poly->terms[known->poly->count - 1];
        const Poly *rest = NULL;
        int64_t times = 0;
        for (int k = 0; k < poly->count; k++) {
            bool same =
                poly->terms[k].count == lead->count && poly->terms[k].coef % lead->coef == 0;
            for (int a = 0; same && a < lead->count; a++)
                same = poly->terms[k].atoms[a] == lead->atoms[a];
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
