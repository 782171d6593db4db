/* What the walks over paths share: sets of elements as bits, and what is known at one place of one instance: its rank, and the
 * variables of loops that are followed turn by turn. */
#include "derive/tiles.h"
#include "prog/eval.h"
#include "prog/stmt.h"

typedef struct Walk { /* places at + sum of steps[i] * i, each i below its extent */
    int count;
    int64_t steps[PROG_MAX_INDEXES], extents[PROG_MAX_INDEXES];
} Walk;

static void walk_places(const Walk *walk, int index, int64_t at, Bits bits) {
    if (index == walk->count) {
        bits_set(bits, at, 1);
    } else if (index == walk->count - 1 && walk->steps[index] == 1) {
        bits_set(bits, at, walk->extents[index]);
    } else {
        for (int64_t i = 0; i < walk->extents[index]; i++)
            walk_places(walk, index + 1, at + i * walk->steps[index], bits);
    }
}

/* ---- what is known here ------------------------------------------------------------------------------------------- */

const Poly *here_poly(const Here *here, Expr *expr) {
    const Poly *poly = algebra_poly(here->algebra, here->role, expr);
    for (int i = 0; i < here->bound && poly; i++)
        poly = poly_replace(here->algebra, poly, here->bound_atoms[i],
                            poly_constant(here->algebra, here->bound_values[i]));
    return poly;
}

bool here_value(const Here *here, Expr *expr, int64_t *out) { return poly_is_constant(here_poly(here, expr), out); }

/* Does one subscript stay in [0, extent) for all indexes? A subscript that was refused may not. */
static bool stays_inside(const IndexSpace *space, const Affine *sub, int64_t base, int64_t extent) {
    int64_t lo = base, hi = base, reach;
    for (int i = 0; space && i < space->count; i++) {
        if (__builtin_mul_overflow(sub->coef[i], space->items[i].extent - 1, &reach)) return false;
        if (__builtin_add_overflow(reach < 0 ? lo : hi, reach, reach < 0 ? &lo : &hi)) return false;
    }
    return lo >= 0 && hi < extent;
}

bool here_elements(const Here *here, const IndexSpace *space, const Access *access, const int64_t *extents,
                   int64_t start, Bits bits) {
    Walk walk = {0};
    int64_t pitch = 1, steps[PROG_MAX_INDEXES] = {0}, value;
    for (int d = access->rank - 1; d >= 0; d--) {
        if (!access->affine[d].is || !here_value(here, access->affine[d].base, &value)) return false;
        if (!stays_inside(space, &access->affine[d], value, extents[d])) return false;
        start += value * pitch;
        for (int i = 0; space && i < space->count; i++) steps[i] += access->affine[d].coef[i] * pitch;
        pitch *= extents[d];
    }
    for (int i = 0; space && i < space->count; i++) {
        if (steps[i] == 0) continue;
        if (space->items[i].extent < 1) return false;
        walk.steps[walk.count] = steps[i], walk.extents[walk.count++] = space->items[i].extent;
    }
    walk_places(&walk, 0, start, bits);
    return true;
}

const Poly *here_condition(const Here *here, Expr *condition, bool *truth) {
    *truth = true;
    while (condition && condition->kind == X_UNARY && condition->unary.op == OP_NOT) condition = condition->unary.operand, *truth = !*truth;
    if (condition && condition->kind == X_BINARY && condition->binary.left->type != E_F32) { /* of floats !(x < y) is not y <= x */
        BinaryOp op = condition->binary.op;
        Expr *left = condition->binary.left, *right = condition->binary.right;
        bool turned = op == OP_GT || op == OP_LE, negated = op == OP_LE || op == OP_GE || op == OP_NE;
        if (negated) *truth = !*truth;
        if (turned || negated)
            condition = expr_binary(here->arena, op == OP_NE ? OP_EQ : OP_LT, turned ? right : left, turned ? left : right, condition->span);
    }
    return condition ? here_poly(here, condition) : NULL;
}

typedef struct Within {
    const Here *here;
    const Poly *poly;
    bool stays;
} Within;

static void find_change(Stmt *stmt, void *data) {
    Within *within = data;
    Algebra *algebra = within->here->algebra;
    const Role *role = within->here->role;
    int local = stmt->kind == S_SCALAR ? stmt->scalar.local : stmt->kind == S_FOR ? stmt->loop.var : -1;
    if (local >= 0 && poly_mentions(algebra, within->poly, algebra_atom_local(algebra, role, local))) within->stays = false;
    for (size_t a = 0; stmt->kind == S_GRID && a < algebra->prog->axes.count; a++)
        if (poly_mentions(algebra, within->poly, algebra_atom_axis(algebra, (int)a))) within->stays = false;
}

bool here_follows(const Algebra *algebra, const Poly *poly) {
    for (int t = 0; t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++)
            if (algebra->atoms.items[poly->terms[t].atoms[k]].foreign) return false;
    return true;
}

bool here_stays(const Here *here, const Poly *poly, Stmt *within) {
    Within search = {here, poly, poly != NULL && here_follows(here->algebra, poly)};
    if (search.stays) stmt_visit(within, find_change, &search);
    return search.stays;
}

static int assumed_truth(const Here *here, Expr *condition) {
    bool truth;
    const Poly *poly = here->assumed.count ? here_condition(here, condition, &truth) : NULL;
    for (size_t i = 0; poly && i < here->assumed.count; i++)
        if (poly_equal(here->assumed.items[i].condition, poly)) return here->assumed.items[i].truth == truth;
    return -1;
}

static int plain_truth(const Here *here, Expr *condition);

/* Conditions such as `rank == 0`, and what is assumed: 1, 0, or -1 where it is not known */
int here_truth(const Here *here, Expr *condition) {
    int truth = condition ? plain_truth(here, condition) : -1;
    return truth < 0 && condition ? assumed_truth(here, condition) : truth;
}

static int plain_truth(const Here *here, Expr *condition) {
    int64_t a, b;
    if (condition->kind == X_UNARY && condition->unary.op == OP_NOT) {
        int inner = here_truth(here, condition->unary.operand);
        return inner < 0 ? -1 : !inner;
    }
    if (condition->kind != X_BINARY) return here_value(here, condition, &a) ? a != 0 : -1;
    BinaryOp op = condition->binary.op;
    if (op == OP_AND || op == OP_OR) {
        int left = here_truth(here, condition->binary.left), right = here_truth(here, condition->binary.right);
        if (left == (op == OP_OR) || right == (op == OP_OR)) return op == OP_OR;
        return left < 0 || right < 0 ? -1 : op != OP_OR; /* neither side decides alone */
    }
    if (condition->binary.left->type == E_F32) return -1;
    if (!here_value(here, condition->binary.left, &a) || !here_value(here, condition->binary.right, &b)) return -1;
    return eval_binary(op, condition->binary.left->type, a, b, &a) ? a != 0 : -1;
}

void here_bind(Here *here, int atom, int64_t value) {
    if (here->bound == here->bound_capacity) {
        size_t old = (size_t)here->bound_capacity, wanted = old + 8;
        here->bound_atoms = arena_grow(here->arena, here->bound_atoms, old * sizeof(int), wanted * sizeof(int));
        here->bound_values =
            arena_grow(here->arena, here->bound_values, old * sizeof(int64_t), wanted * sizeof(int64_t));
        here->bound_capacity = (int)wanted;
    }
    here->bound_atoms[here->bound] = atom;
    here->bound_values[here->bound++] = value;
}

/* ---- what was said ------------------------------------------------------------------------------------------------ */

/* Was an error found before in this piece of text? Then statements may be missing, and what they would have written is not. */
bool tiles_reported(const Tiles *tiles, size_t before, Span span) {
    for (size_t i = 0; i < before; i++) {
        const Diag *diag = tiles->diags->items.items[i];
        if (code_rows[diag->code].severity == SEVERITY_ERROR && diag->has_place && diag->labels[0].span.lo >= span.lo &&
            diag->labels[0].span.hi <= span.hi)
            return true;
    }
    return false;
}
