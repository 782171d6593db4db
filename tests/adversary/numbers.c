/* Wounds of deciding numbers: arithmetic that wraps, bounds, conditions, masks. */
#include "tests/adversary/wounds.h"

static const Expr *n(Program *program, int64_t value) { return number(program, value); }

static bool is_deciding_number(const Program *program, const Part *part) {
    (void)program;
    return part->decides && part->expr->kind == X_NUMBER;
}
/* Constant expressions are excluded: they are folded at compile time with as many bits as they
 * need */
static bool is_counter(const Program *program, const Part *part) {
    (void)program;
    return part->decides && part->expr->kind == X_LOCAL;
}
static bool is_clamp(const Program *program, const Part *part) {
    (void)program;
    Op op = part->expr->op;
    return part->decides && part->expr->kind == X_BINARY &&
           (op == DO_MIN || op == DO_MAX || op == DO_MOD || op == DO_DIV || op == DO_CEIL);
}
static bool is_comparison(const Program *program, const Part *part) {
    (void)program;
    return part->expr->kind == X_BINARY && part->expr->op >= DO_EQ && part->expr->op <= DO_GE;
}
static bool is_choice(const Program *program, const Part *part) {
    (void)program;
    return part->expr->kind == X_SELECT;
}
static bool is_bounded(const Program *program, const Part *part) {
    (void)program;
    return is_clamp(program, part) && part->expr->op != DO_MAX && part->expr->a->kind != X_NUMBER;
}

bool wound_number(Program *program) {
    Part part;
    if (!part_draw(program, is_deciding_number, &part)) return false;
    int64_t value = part.expr->number;
    part_put(program, &part,
             n(program, often(program, 50) ? value + 1
                        : value > 0        ? value - 1
                                           : value + 2));
    return true;
}

/* (e * LARGE + more) % n, max(e, 0) * f, (e * f) / f */
bool wound_wrap(Program *program) {
    static const int64_t large[] = {40503, 65537, 65536, 1103515245, 2000000011, 46341, 12345679};
    Part part;
    int64_t factor = large[pick(program, COUNT_OF(large))];
    if (often(program, 60) && part_draw(program, is_bounded, &part)) {
        const Expr *inner = part.expr->a;
        Expr *outer = expr_new(program, X_BINARY, 0);
        *outer = *part.expr;
        outer->a = binary(program, DO_MUL, inner, n(program, factor));
        if (often(program, 50)) outer->a = binary(program, DO_ADD, outer->a, n(program, 12345));
        part_put(program, &part, outer);
        return true;
    }
    if (!part_draw(program, is_counter, &part)) return false;
    const Expr *scaled = binary(program, DO_MUL, part.expr, n(program, factor));
    part_put(program, &part,
             binary(program, often(program, 50) ? DO_DIV : DO_MOD, scaled, n(program, factor)));
    return true;
}

static bool is_divided(const Program *program, const Part *part) {
    (void)program;
    Op op = part->expr->op;
    bool divides = op == DO_DIV || op == DO_MOD || op == DO_UNSIGNED_DIV || op == DO_UNSIGNED_MOD;
    return part->decides && part->expr->kind == X_BINARY && divides &&
           part->expr->b->kind == X_NUMBER && part->expr->a->kind != X_NUMBER;
}

/* The divisor may be 0, or is at least 1 */
bool wound_divisor(Program *program) {
    Part part;
    if (!part_draw(program, is_divided, &part)) return false;
    const Expr *axis = any_axis(program), *by = symbol(program, SYM_Q);
    if (often(program, 40)) by = axis;
    if (often(program, 40)) by = data_of(program, axis);
    by = binary(program, DO_MAX, by, n(program, often(program, 70) ? 0 : 1));
    Expr *outer = expr_new(program, X_BINARY, 0);
    *outer = *part.expr;
    outer->b = binary(program, DO_MIN, by, part.expr->b);
    part_put(program, &part, outer);
    return true;
}

static bool is_quotient(const Expr *expr) {
    return expr->kind == X_BINARY && expr->op == DO_DIV && expr->b->kind != X_NUMBER &&
           (expr->a->kind == X_FIELD || expr->a->kind == X_TILE);
}

static bool is_guarded(const Program *program, const Part *part) {
    (void)program;
    const Expr *e = part->expr;
    if (part->decides || part->target) return false;
    if (e->kind == X_SELECT) return e->c->op == DO_NE && is_quotient(e->a);
    return is_quotient(e) && e->b->op == DO_MAX;
}

bool wound_guard(Program *program) {
    Part part;
    if (!part_draw(program, is_guarded, &part)) return false;
    const Expr *e = part.expr;
    part_put(program, &part, e->kind == X_SELECT ? e->a : binary(program, DO_DIV, e->a, e->b->a));
    return true;
}

/* A bound or condition, which can be rewritten for one role as long as nothing wraps */
static bool is_bound_or_condition(const Program *program, const Part *part) {
    (void)program;
    bool whole = part->expr == part->stmt->hi || part->expr == part->stmt->condition;
    return part->decides && whole && part->expr->kind != X_NUMBER;
}

static bool is_bound(const Program *program, const Part *part) {
    return part->expr == part->stmt->hi && is_bound_or_condition(program, part);
}

bool wound_equivalent(Program *program) {
    Part part;
    bool found = often(program, 60) && part_draw(program, is_bound, &part);
    if (!found && !part_draw(program, is_bound_or_condition, &part)) return false;
    static const int64_t factors[] = {2, 3, 40503, 65536, 1 << 30};
    int64_t factor = factors[pick(program, COUNT_OF(factors))];
    const Expr *scalar = symbol(program, often(program, 60) ? SYM_Q : SYM_P), *scaled;
    if (part.expr == part.stmt->hi && often(program, 30)) {
        part_put(program, &part, binary(program, DO_SCALED, part.expr, n(program, factor)));
        return true;
    }
    if (part.expr == part.stmt->hi) {
        scaled = binary(program, DO_DIV, binary(program, DO_MUL, part.expr, n(program, factor)),
                        n(program, factor));
        part_put(program, &part, scaled);
        return true;
    }
    switch (pick(program, 3)) {
    case 0:
        scaled = binary(program, DO_GT, binary(program, DO_ADD, scalar, n(program, 1)), scalar);
        break;
    case 1:
        scaled = binary(program, DO_GE,
                        binary(program, DO_MUL, binary(program, DO_MAX, scalar, n(program, 0)),
                               n(program, factor)),
                        n(program, 0));
        break;
    default:
        scaled = binary(program, DO_GE, binary(program, DO_MUL, scalar, scalar), n(program, 0));
        break;
    }
    part_put(program, &part, binary(program, DO_AND, part.expr, scaled));
    return true;
}

/* An equivalent number or condition */
static const Expr *reworded(Program *program, const Expr *e) {
    switch (e->op) {
    case DO_MIN: return choose(program, binary(program, DO_LE, e->a, e->b), e->a, e->b);
    case DO_MAX: return choose(program, binary(program, DO_GT, e->b, e->a), e->b, e->a);
    case DO_MOD: {
        const Expr *whole = binary(program, DO_MUL, binary(program, DO_DIV, e->a, e->b), e->b);
        return binary(program, DO_SUB, e->a, whole);
    }
    case DO_CEIL: {
        const Expr *over =
            binary(program, DO_GT, binary(program, DO_MOD, e->a, e->b), n(program, 0));
        return binary(program, DO_ADD, binary(program, DO_DIV, e->a, e->b),
                      choose(program, over, n(program, 1), n(program, 0)));
    }
    case DO_EQ:
        return binary(program, DO_AND, binary(program, DO_LE, e->a, e->b),
                      binary(program, DO_GE, e->a, e->b));
    case DO_NE:
        return binary(program, DO_OR, binary(program, DO_LT, e->a, e->b),
                      binary(program, DO_GT, e->a, e->b));
    case DO_LT: return binary(program, DO_GT, e->b, e->a);
    case DO_GE: return binary(program, DO_LE, e->b, e->a);
    case DO_LE: return binary(program, DO_GE, e->b, e->a);
    case DO_GT: return binary(program, DO_LT, e->b, e->a);
    case DO_ADD:
    case DO_SUB:
    case DO_MUL:
    case DO_DIV:
    case DO_AND:
    case DO_OR:
    case DO_ABS:
    case DO_NOT:
    case DO_NEGATE:
    case DO_FMA:
    case DO_EXACT_DIV:
    case DO_EXACT_MUL:
    case DO_RCP:
    case DO_EXP:
    case DO_SQRT:
    case DO_TO_REAL:
    case DO_TO_INT:
    case DO_HALF:
    case DO_E4M3:
    case DO_SINE:
    case DO_POWER:
    case DO_UNSIGNED_DIV:
    case DO_UNSIGNED_MOD:
    case DO_UNSIGNED_LT:
    case DO_SCALED:
    case DO_BYTE:
    case DO_BIT_AND:
    case DO_BIT_OR:
    case DO_BIT_XOR:
    case DO_SHIFT_LEFT:
    case DO_SHIFT_RIGHT:
    case DO_UNSIGNED_SHIFT:
    case DO_POPC:
    case DO_CLZ:
    case DO_HIGH_PRODUCT:
    case OPS: break;
    }
    return e;
}

static bool is_worded(const Program *program, const Part *part) {
    (void)program;
    return part->decides && part->expr->kind == X_BINARY && !part->target &&
           part->expr->op >= DO_MOD && part->expr->op < DO_AND;
}

bool wound_words(Program *program) {
    Part part;
    if (!part_draw(program, is_worded, &part)) return false;
    part_put(program, &part, reworded(program, part.expr));
    return true;
}

static bool is_datum(const Program *program, const Part *part) {
    return part->decides && !part->target && part->expr->kind == X_TENSOR &&
           program->tensors[part->expr->of].contents == FILL_DATA;
}

static bool is_datum_of_bound(const Program *program, const Part *part) {
    return part->slot == &part->stmt->hi && is_datum(program, part);
}

bool wound_datum(Program *program) {
    static const int64_t factors[] = {2, 3, 65536};
    Part part;
    bool found = often(program, 80) && part_draw(program, is_datum_of_bound, &part);
    if (!found && (often(program, 60) || !part_draw(program, is_datum, &part))) return false;
    const Expr *factor = n(program, factors[pick(program, COUNT_OF(factors))]);
    const Expr *scaled = binary(program, DO_MUL, part.expr, factor);
    part_put(program, &part, binary(program, DO_DIV, scaled, factor));
    return true;
}

/* The u32 operation for an i32 one, and vice versa; OPS: none */
static Op of_other_sign(Op op) {
    static const Op pairs[][2] = {
        {DO_DIV, DO_UNSIGNED_DIV}, {DO_MOD, DO_UNSIGNED_MOD}, {DO_LT, DO_UNSIGNED_LT}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        for (int k = 0; k < 2; k++)
            if (pairs[i][k] == op) return pairs[i][1 - k];
    return OPS;
}

static bool is_of_sign(const Program *program, const Part *part) {
    (void)program;
    return part->decides && !part->target && part->expr->kind == X_BINARY &&
           of_other_sign(part->expr->op) != OPS && part->expr->b->kind == X_NUMBER;
}

bool wound_sign(Program *program) {
    Part part;
    if (!part_draw(program, is_of_sign, &part)) return false;
    const Expr *e = part.expr;
    part_put(program, &part, binary(program, of_other_sign(e->op), e->a, e->b));
    return true;
}

/* Not of constants alone, which are computed in 64 bits */
static bool has_bits(const Program *program, const Part *part) {
    const Expr *e = part->expr;
    bool plain = e->kind == X_LOCAL || e->kind == X_SYMBOL || e->kind == X_TENSOR;
    if (e->kind == X_BINARY && e->op <= DO_CEIL) plain = e->a->kind == X_LOCAL;
    return part->decides && !part->target && plain && expr_type(program, e) == TYPE_INT;
}

/* The power of two at or below; 0: none */
static int power_below(int64_t value) {
    int power = 0;
    while (value >> power > 1) power++;
    return power;
}

/* x % n as x & n - 1, x / n as x >> k: the same for powers of two, if x is not negative */
static const Expr *divided_by_bits(Program *program, const Expr *e) {
    int64_t by = e->b->number;
    if (e->op == DO_MOD) return binary(program, DO_BIT_AND, e->a, n(program, by - 1));
    if (e->op == DO_UNSIGNED_MOD) return binary(program, DO_BIT_AND, e->a, n(program, by - 1));
    Op op = e->op == DO_DIV ? DO_SHIFT_RIGHT : DO_UNSIGNED_SHIFT;
    return binary(program, op, e->a, n(program, power_below(by)));
}

/* A number by its bits: the first forms are equal to it, or as long as nothing wraps */
static const Expr *by_bits(Program *program, const Expr *e) {
    const Expr *mask = n(program, often(program, 50) ? 7 : pick(program, 100)),
               *other = often(program, 50) ? mask : any_axis(program);
    const Expr *part = binary(program, DO_BIT_AND, e, other),
               *more = binary(program, DO_BIT_OR, e, other);
    int64_t by = pick(program, 32);
    switch (pick(program, 9)) {
    case 0: return binary(program, DO_BIT_XOR, binary(program, DO_BIT_XOR, e, other), other);
    case 1: return binary(program, DO_SUB, binary(program, DO_ADD, part, more), other);
    case 2:
        return binary(
            program, DO_BIT_OR, part,
            binary(program, DO_BIT_AND, e, binary(program, DO_BIT_XOR, other, n(program, -1))));
    case 3:
        return binary(program, DO_SHIFT_RIGHT, binary(program, DO_SHIFT_LEFT, e, n(program, by)),
                      n(program, by));
    case 4:
        return binary(program, DO_HIGH_PRODUCT, binary(program, DO_SHIFT_LEFT, e, n(program, 2)),
                      n(program, 1 << 30));
    case 5: return part;
    case 6: return more;
    case 7:
        return binary(program, often(program, 50) ? DO_SHIFT_RIGHT : DO_UNSIGNED_SHIFT, e,
                      often(program, 50) ? any_axis(program) : n(program, by));
    default: return unary(program, often(program, 50) ? DO_POPC : DO_CLZ, e);
    }
}

bool wound_bits(Program *program) {
    Part part;
    bool found = often(program, 50) && part_draw(program, is_divided, &part) &&
                 part.expr->b->number > 0 && !part.target;
    if (found) {
        part_put(program, &part, divided_by_bits(program, part.expr));
        return true;
    }
    if (!part_draw(program, has_bits, &part)) return false;
    part_put(program, &part, by_bits(program, part.expr));
    return true;
}

bool wound_clamp(Program *program) {
    Part part;
    if (!part_draw(program, is_clamp, &part)) return false;
    part_put(program, &part, part.expr->a);
    return true;
}

bool wound_requires(Program *program) {
    if (program->require_count == 0) return false;
    program->require_count--;
    return true;
}

bool wound_comparison(Program *program) {
    Part part;
    if (!part_draw(program, is_comparison, &part)) return false;
    static const Op other[OPS] = {[DO_EQ] = DO_LE, [DO_NE] = DO_LT, [DO_LT] = DO_LE,
                                  [DO_LE] = DO_LT, [DO_GT] = DO_GE, [DO_GE] = DO_GT};
    part_put(program, &part, binary(program, other[part.expr->op], part.expr->a, part.expr->b));
    return true;
}

static bool compares_numbers(const Program *program, const Expr *expr) {
    return expr->kind == X_BINARY && expr->op >= DO_EQ && expr->op <= DO_GE &&
           expr_type(program, expr->a) != TYPE_BOOL;
}

bool wound_choice(Program *program) {
    Part part;
    if (!part_draw(program, is_choice, &part)) return false;
    const Expr *then = part.expr->a;
    uint32_t kind = pick(program, 4);
    /* a range comes from an element; bools are neither less nor greater */
    if (kind == 0 && !expr_mentions(then, X_FIELD, -1) && !expr_mentions(then, X_TILE, -1))
        kind = 2;
    if (kind == 3 && !compares_numbers(program, part.expr->c)) kind = 2;
    switch (kind) {
    case 0: part_put(program, &part, then); break;
    case 1: part_put(program, &part, choose(program, part.expr->c, then, n(program, 1))); break;
    case 2: part_put(program, &part, choose(program, part.expr->c, part.expr->b, then)); break;
    default: {
        const Expr *c = part.expr->c;
        const Expr *weaker = binary(program, c->op == DO_GT ? DO_GE : DO_LE, c->a, c->b);
        part_put(program, &part, choose(program, weaker, then, part.expr->b));
        break;
    }
    }
    return true;
}
