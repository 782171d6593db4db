/* Integer formulas -> canonical polynomials over atoms. Two formulas that differ in spelling only (K * 2 + K and 3 * K,
 * `let`s, exact divisions) come out the same. What is no polynomial (ceil, min, a load from memory) becomes an atom that is
 * compared by the canonical forms of its own operands. Promises: equal forms are equal values; the converse does not hold. */
#include "algebra/algebra.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#define PRODUCTS_MOST 16384 /* terms, before those that are alike are added up */

/* ---- polynomials -------------------------------------------------------------------------------------------------- */

static Poly *new_poly(Algebra *algebra, int terms) {
    return arena_alloc(algebra->arena, sizeof(Poly) + (size_t)(terms > 0 ? terms : 1) * sizeof(Term));
}

static int compare_terms(const Term *a, const Term *b) {
    if (a->count != b->count) return a->count < b->count ? -1 : 1;
    for (int i = 0; i < a->count; i++)
        if (a->atoms[i] != b->atoms[i]) return a->atoms[i] < b->atoms[i] ? -1 : 1;
    return 0;
}

const Poly *poly_constant(Algebra *algebra, int64_t value) {
    Poly *poly = new_poly(algebra, 1);
    if (value != 0) poly->terms[poly->count++].coef = value;
    return poly;
}

const Poly *poly_atom(Algebra *algebra, int atom) {
    Poly *poly = new_poly(algebra, 1);
    poly->count = 1;
    poly->terms[0] = (Term){.coef = 1, .count = 1, .atoms = {atom}};
    return poly;
}

bool poly_is_constant(const Poly *poly, int64_t *out) {
    if (!poly || poly->count > 1 || (poly->count == 1 && poly->terms[0].count > 0)) return false;
    *out = poly->count == 1 ? poly->terms[0].coef : 0;
    return true;
}

bool poly_equal(const Poly *a, const Poly *b) {
    if (!a || !b || a->count != b->count) return false;
    for (int i = 0; i < a->count; i++)
        if (a->terms[i].coef != b->terms[i].coef || compare_terms(&a->terms[i], &b->terms[i]) != 0) return false;
    return true;
}

const Poly *poly_sum(Algebra *algebra, const Poly *a, const Poly *b, int64_t scale) {
    if (!a || !b) return NULL;
    Poly *sum = new_poly(algebra, a->count + b->count);
    int i = 0, j = 0;
    while (i < a->count || j < b->count) {
        int order = i == a->count ? 1 : j == b->count ? -1 : compare_terms(&a->terms[i], &b->terms[j]);
        Term term = order <= 0 ? a->terms[i] : b->terms[j];
        int64_t other = 0;
        if (order >= 0 && __builtin_mul_overflow(b->terms[j].coef, scale, &other)) return NULL;
        if (__builtin_add_overflow(order <= 0 ? term.coef : 0, other, &term.coef)) return NULL;
        i += order <= 0;
        j += order >= 0;
        if (term.coef != 0) sum->terms[sum->count++] = term;
    }
    algebra->work -= sum->count;
    return sum->count > algebra->most_terms || algebra->work < 0 ? NULL : sum;
}

/* 0 or 1: its square is itself */
static bool is_truth(const Algebra *algebra, int id) { return algebra->atoms.items[id].type == E_BOOL; }

/* Two questions about the same sum, with another constant: a yes to the one is a yes to the other. The stronger one; -1: they are not */
static int stronger(const Algebra *algebra, int a, int b) {
    if (algebra->atoms.items[a].kind != ATOM_TRUTH || algebra->atoms.items[b].kind != ATOM_TRUTH) return -1;
    const Poly *p = algebra->atoms.items[a].args[0], *q = algebra->atoms.items[b].args[0];
    int i = p->terms[0].count == 0, j = q->terms[0].count == 0;
    if (p->count - i != q->count - j) return -1;
    for (; i < p->count; i++, j++)
        if (p->terms[i].coef != q->terms[j].coef || compare_terms(&p->terms[i], &q->terms[j]) != 0) return -1;
    int64_t x = p->terms[0].count == 0 ? p->terms[0].coef : 0, y = q->terms[0].count == 0 ? q->terms[0].coef : 0;
    return x <= y ? a : b;
}

static bool multiply_terms(const Algebra *algebra, const Term *a, const Term *b, Term *out) {
    if (__builtin_mul_overflow(a->coef, b->coef, &out->coef)) return false;
    int i = 0, j = 0;
    out->count = 0;
    while (i < a->count || j < b->count) {
        int atom = j == b->count || (i < a->count && a->atoms[i] <= b->atoms[j]) ? a->atoms[i++] : b->atoms[j++];
        if (out->count > 0 && out->atoms[out->count - 1] == atom && is_truth(algebra, atom)) continue;
        int other = out->count - 1, both = -1;
        for (; other >= 0 && (both = stronger(algebra, out->atoms[other], atom)) < 0;) other--;
        if (both == atom) { /* it takes the other's place, and the order by ids is kept */
            memmove(&out->atoms[other], &out->atoms[other + 1], (size_t)(out->count - other - 1) * sizeof *out->atoms);
            out->count--;
        }
        if (both >= 0 && both != atom) continue;
        if (out->count == POLY_MAX_DEGREE) return false;
        out->atoms[out->count++] = atom;
    }
    return true;
}

static int by_order(const void *a, const void *b) { return compare_terms(a, b); }

/* Terms in any order, some alike: sorted, added up, in place */
static const Poly *gathered(Algebra *algebra, Poly *poly) {
    int count = 0;
    bool sorted = true;
    for (int i = 1; i < poly->count && sorted; i++) sorted = compare_terms(&poly->terms[i - 1], &poly->terms[i]) < 0;
    if (!sorted) qsort(poly->terms, (size_t)poly->count, sizeof *poly->terms, by_order);
    for (int i = 0; i < poly->count;) {
        Term term = poly->terms[i++];
        for (; i < poly->count && compare_terms(&term, &poly->terms[i]) == 0; i++)
            if (__builtin_add_overflow(term.coef, poly->terms[i].coef, &term.coef)) return NULL;
        if (term.coef != 0) poly->terms[count++] = term;
    }
    poly->count = count;
    return count > algebra->most_terms ? NULL : poly;
}

const Poly *poly_product(Algebra *algebra, const Poly *a, const Poly *b) {
    int64_t value;
    if (!a || !b) return NULL;
    if (poly_is_constant(a, &value) && value == 1) return b;
    if (poly_is_constant(b, &value) && value == 1) return a;
    algebra->work -= a->count * b->count;
    if (a->count * b->count > PRODUCTS_MOST || algebra->work < 0) return NULL;
    Poly *product = new_poly(algebra, a->count * b->count);
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++)
            if (!multiply_terms(algebra, &a->terms[i], &b->terms[j], &product->terms[product->count++])) return NULL;
    return gathered(algebra, product);
}

const Poly *poly_offset(Algebra *algebra, const Poly *poly, int64_t value) {
    return poly_sum(algebra, poly, poly_constant(algebra, value), 1);
}

const Poly *poly_minus(Algebra *algebra, const Poly *poly) {
    return poly_sum(algebra, poly_constant(algebra, 0), poly, -1);
}

/* a / by where it is exact for all values: every term of `a` is a multiple of the one term of `by` */
static const Poly *divide_exactly(Algebra *algebra, const Poly *a, const Poly *by) {
    if (!a || !by || by->count != 1) return NULL;
    const Poly *quotient = poly_constant(algebra, 0);
    for (int i = 0; i < a->count && quotient; i++) {
        const Term *term = &a->terms[i], *divisor = &by->terms[0];
        if (divisor->coef == -1 || term->coef % divisor->coef != 0) return NULL;
        Poly *one = new_poly(algebra, 1);
        int used = 0;
        one->count = 1;
        one->terms[0].coef = term->coef / divisor->coef;
        for (int k = 0; k < term->count; k++) {
            if (used < divisor->count && term->atoms[k] == divisor->atoms[used])
                used++;
            else
                one->terms[0].atoms[one->terms[0].count++] = term->atoms[k];
        }
        if (used != divisor->count) return NULL;
        quotient = poly_sum(algebra, quotient, one, 1);
    }
    return quotient;
}

/* ---- atoms -------------------------------------------------------------------------------------------------------- */

static void add_poly_key(Str *key, const Poly *poly) {
    str_char(key, '(');
    for (int i = 0; i < poly->count; i++) {
        str_printf(key, "%+lld", (long long)poly->terms[i].coef);
        for (int k = 0; k < poly->terms[i].count; k++) str_printf(key, ".%d", poly->terms[i].atoms[k]);
    }
    str_char(key, ')');
}

bool poly_changes(const Algebra *algebra, const Poly *poly) {
    if (!poly) return true;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (algebra->atoms.items[poly->terms[i].atoms[k]].changes) return true;
    return false;
}

static bool atom_mentions(const Algebra *algebra, int id, int atom) {
    for (int a = 0; a < 3; a++)
        if (algebra->atoms.items[id].args[a] && poly_mentions(algebra, algebra->atoms.items[id].args[a], atom)) return true;
    return false;
}

bool poly_mentions(const Algebra *algebra, const Poly *poly, int atom) {
    if (!poly) return true;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (poly->terms[i].atoms[k] == atom || atom_mentions(algebra, poly->terms[i].atoms[k], atom)) return true;
    return false;
}

static size_t bucket_of(const Algebra *algebra, const char *key) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    for (const char *at = key; *at; at++) hash = (hash ^ (unsigned char)*at) * UINT64_C(0x100000001B3);
    size_t slot = (size_t)hash & (algebra->bucket_count - 1);
    while (algebra->buckets[slot] && strcmp(algebra->atoms.items[algebra->buckets[slot] - 1].key, key) != 0)
        slot = (slot + 1) & (algebra->bucket_count - 1);
    return slot;
}

static int intern(Algebra *algebra, Atom atom) {
    if ((algebra->atoms.count + 1) * 2 > algebra->bucket_count) {
        algebra->bucket_count = algebra->bucket_count ? algebra->bucket_count * 2 : 32;
        algebra->buckets = NEW_ARRAY(algebra->arena, int, algebra->bucket_count);
        for (size_t i = 0; i < algebra->atoms.count; i++)
            algebra->buckets[bucket_of(algebra, algebra->atoms.items[i].key)] = (int)i + 1;
    }
    size_t slot = bucket_of(algebra, atom.key);
    if (!algebra->buckets[slot]) {
        vec_push(algebra->arena, &algebra->atoms, atom);
        algebra->buckets[slot] = (int)algebra->atoms.count;
    }
    return algebra->buckets[slot] - 1;
}

/* Keys are written by hand, from their end: printf takes longer than all the rest. */
static char *write_number(char *at, uint64_t value, unsigned base) {
    do *--at = "0123456789abcdef"[value % base];
    while (value /= base);
    return at;
}

static char *write_signed(char *at, int value) {
    at = write_number(at, value < 0 ? -(uint64_t)value : (uint64_t)value, 10);
    if (value < 0) *--at = '-';
    return at;
}

/* "%c%x.%x" */
static const char *simple_key(Arena *arena, char tag, uint64_t index, uint64_t role) {
    char text[40], *end = text + sizeof text - 1, *at = write_number(end, role, 16);
    *--at = '.';
    at = write_number(at, index, 16);
    *--at = tag;
    return arena_copy(arena, at, (size_t)(end - at));
}

/* "%s%d@%d;%x" */
static const char *version_key(Arena *arena, const char *tag, int local, int row, uint64_t role) {
    char text[80], *end = text + sizeof text - 1, *at = write_number(end, role, 16);
    size_t length = strlen(tag);
    assert(length < 16);
    *--at = ';';
    at = write_signed(at, row);
    *--at = '@';
    at = write_signed(at, local);
    at -= length;
    memcpy(at, tag, length);
    return arena_copy(arena, at, (size_t)(end - at));
}

/* Levels order the atoms so that bounds lead downwards: symbols, formulas of them, axes, ranks, loops from the outer to the
 * inner one, indexes. An operation lies just above its operands. */
static int simple_atom(Algebra *algebra, AtomKind kind, int index, const Role *role, Element type) {
    Atom atom = {.kind = kind, .index = index, .role = role, .type = type};
    char tag = 'S';
    switch (kind) {
    case ATOM_SYMBOL: break;
    case ATOM_AXIS: tag = 'A', atom.level = 1000; break;
    case ATOM_RANK: tag = 'K', atom.level = 1500; break;
    case ATOM_LOCAL:
        tag = 'L';
        atom.level = 2000 + 20 * index;
        atom.changes = role->locals.items[index].kind == LOCAL_VAR;
        break;
    case ATOM_INDEX: tag = 'I', atom.level = 1 << 28; break;
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
    case ATOM_FIRST:
    case ATOM_OPAQUE: break;
    }
    atom.key = simple_key(algebra->arena, tag, (uint64_t)index, (uintptr_t)role);
    return intern(algebra, atom);
}

int algebra_atom_rank(Algebra *algebra, const Role *role) { return simple_atom(algebra, ATOM_RANK, 0, role, E_I32); }
int algebra_atom_axis(Algebra *algebra, int axis) { return simple_atom(algebra, ATOM_AXIS, axis, NULL, E_I32); }
int algebra_atom_index(Algebra *algebra, int index) { return simple_atom(algebra, ATOM_INDEX, index, NULL, E_I32); }

int algebra_atom_local(Algebra *algebra, const Role *role, int local) {
    const Local *what = &role->locals.items[local];
    if (what->kind == LOCAL_AXIS) return simple_atom(algebra, ATOM_AXIS, what->axis, NULL, what->type);
    return simple_atom(algebra, ATOM_LOCAL, local, role, what->type);
}

/* An operation of up to three operands; `tag` names the operation in the key. NULL where an operand is not known. */
const Poly *algebra_operation(Algebra *algebra, AtomKind kind, const char *tag, Element type, const Poly *const *args,
                              int count) {
    Str key = str_new(algebra->arena);
    Atom atom = {.kind = kind, .type = type};
    str_add(&key, tag);
    for (int i = 0; i < count; i++) {
        if (!args[i]) return NULL;
        atom.args[i] = args[i];
        atom.changes |= poly_changes(algebra, args[i]);
        add_poly_key(&key, args[i]);
        for (int t = 0; t < args[i]->count; t++)
            for (int k = 0; k < args[i]->terms[t].count; k++) {
                int level = algebra->atoms.items[args[i]->terms[t].atoms[k]].level;
                if (level + 1 > atom.level) atom.level = level + 1;
            }
    }
    atom.key = key.text;
    return poly_atom(algebra, intern(algebra, atom));
}

int algebra_part(Algebra *algebra, int64_t limit) {
    Atom atom = {.kind = limit ? ATOM_REST : ATOM_WHOLE, .index = ++algebra->parts, .type = E_I64, .level = 1};
    if (limit) atom.args[0] = poly_constant(algebra, limit);
    atom.key = arena_printf(algebra->arena, "part%d", atom.index);
    return intern(algebra, atom);
}

int poly_bounds(const Algebra *algebra, const Poly *poly) {
    int most = 0;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            const Atom *atom = &algebra->atoms.items[poly->terms[i].atoms[k]];
            if (atom->kind == ATOM_BOUND && atom->index > most) most = atom->index;
            for (int a = 0; a < 3; a++) {
                int inner = atom->args[a] ? poly_bounds(algebra, atom->args[a]) : 0;
                if (inner > most) most = inner;
            }
        }
    return most;
}

int algebra_bound(Algebra *algebra, const Poly *body) {
    Atom atom = {.kind = ATOM_BOUND, .index = 1 + poly_bounds(algebra, body), .type = E_I64, .level = 1};
    atom.key = arena_printf(algebra->arena, "bound%d", atom.index);
    return intern(algebra, atom);
}

/* Not to be taken apart: equal only to itself */
static const Poly *by_place(Algebra *algebra, const Expr *expr, bool changes) {
    Atom atom = {.kind = ATOM_OPAQUE, .type = expr->type, .level = (1 << 28) + 1, .changes = changes};
    atom.key = arena_printf(algebra->arena, "@%p", (const void *)expr);
    return poly_atom(algebra, intern(algebra, atom));
}

/* ---- the operations that have laws -------------------------------------------------------------------------------- */

/* ceil((c * a + r) / c) = a + ceil(r / c) for every sign, so the exact part is taken out */
static const Poly *ceil_poly(Algebra *algebra, const Poly *a, const Poly *b, Element type) {
    const Poly *exact = divide_exactly(algebra, a, b);
    int64_t by;
    if (exact) return exact;
    if (!a || !b) return NULL;
    const Poly *whole = poly_constant(algebra, 0);
    if (poly_is_constant(b, &by) && by > 0) {
        Poly *rest = new_poly(algebra, a->count);
        for (int i = 0; i < a->count; i++) {
            Poly *one = new_poly(algebra, 1);
            Term term = a->terms[i];
            int64_t remainder = term.count > 0 && term.coef % by != 0 ? term.coef : ((term.coef % by) + by) % by;
            one->count = 1;
            one->terms[0] = term;
            one->terms[0].coef = (term.coef - remainder) / by;
            if (one->terms[0].coef != 0) whole = poly_sum(algebra, whole, one, 1);
            term.coef = remainder;
            if (remainder != 0) rest->terms[rest->count++] = term;
        }
        int64_t left;
        if (poly_is_constant(rest, &left)) return poly_sum(algebra, whole, poly_constant(algebra, left > 0), 1);
        a = rest;
    }
    return poly_sum(algebra, whole, algebra_operation(algebra, ATOM_CEIL, "ceil", type, (const Poly *[]){a, b}, 2), 1);
}

static const Poly *div_poly(Algebra *algebra, const Poly *a, const Poly *b, Element type) {
    const Poly *exact = divide_exactly(algebra, a, b);
    int64_t left, right;
    if (exact) return exact;
    if (poly_is_constant(a, &left) && poly_is_constant(b, &right) && right != 0 && right != -1)
        return poly_constant(algebra, left / right);
    return algebra_operation(algebra, ATOM_DIV, "div", type, (const Poly *[]){a, b}, 2);
}

static const Poly *mod_poly(Algebra *algebra, const Poly *a, const Poly *b, Element type) {
    int64_t left, right;
    if (divide_exactly(algebra, a, b)) return poly_constant(algebra, 0);
    if (poly_is_constant(a, &left) && poly_is_constant(b, &right) && right != 0 && right != -1)
        return poly_constant(algebra, left % right);
    return algebra_operation(algebra, ATOM_MOD, "mod", type, (const Poly *[]){a, b}, 2);
}

static const Poly *extreme_poly(Algebra *algebra, bool is_max, const Poly *a, const Poly *b, Element type) {
    int64_t distance;
    if (poly_is_constant(poly_sum(algebra, a, b, -1), &distance)) return (distance > 0) == is_max ? a : b;
    Str left = str_new(algebra->arena), right = str_new(algebra->arena);
    if (!a || !b) return NULL;
    add_poly_key(&left, a);
    add_poly_key(&right, b);
    bool swap = strcmp(left.text, right.text) > 0; /* min and max commute */
    return algebra_operation(algebra, is_max ? ATOM_MAX : ATOM_MIN, is_max ? "max" : "min", type,
                     (const Poly *[]){swap ? b : a, swap ? a : b}, 2);
}

const Poly *poly_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b) {
    return extreme_poly(algebra, is_max, a, b, E_I64);
}

/* ---- expressions -------------------------------------------------------------------------------------------------- */

static bool is_signed(Element type) { return type == E_I32 || type == E_I64; }
static bool is_integer(Element type) { return is_signed(type) || type == E_U32 || type == E_U64; }

/* A comparison of integers is a question whether a difference is >= 0, and conditions are numbers 0 and 1: however a condition is
 * written, it is the same polynomial. NULL: compares floats, or grew too large. */
static const Poly *truth_poly(Algebra *algebra, const Expr *expr, const Poly *left, const Poly *right) {
    Element type = expr->binary.left->type;
    if (!is_integer(type) && type != E_BOOL) return NULL;
    const Poly *less = poly_sum(algebra, left, right, -1), *more = poly_sum(algebra, right, left, -1);
    const Poly *one = poly_constant(algebra, 1), *equal;
    switch (expr->binary.op) {
    case OP_LT: return poly_truth(algebra, poly_offset(algebra, more, -1));
    case OP_LE: return poly_truth(algebra, more);
    case OP_GT: return poly_truth(algebra, poly_offset(algebra, less, -1));
    case OP_GE: return poly_truth(algebra, less);
    case OP_EQ:
    case OP_NE:
        equal = poly_sum(algebra, poly_truth(algebra, less), poly_truth(algebra, poly_offset(algebra, less, -1)), -1);
        return expr->binary.op == OP_EQ ? equal : poly_sum(algebra, one, equal, -1);
    case OP_AND: return poly_product(algebra, left, right);
    case OP_OR: return poly_sum(algebra, poly_sum(algebra, left, right, 1), poly_product(algebra, left, right), -1);
    case OP_ADD:
    case OP_SUB:
    case OP_MUL:
    case OP_DIV:
    case OP_MOD: break;
    }
    return NULL;
}

static const Poly *binary_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    BinaryOp op = expr->binary.op;
    const Poly *left = algebra_poly(algebra, role, expr->binary.left);
    const Poly *right = algebra_poly(algebra, role, expr->binary.right);
    const Poly *const both[2] = {left, right}, *const swapped[2] = {right, left};
    if (is_integer(expr->type)) {
        if (op == OP_ADD) return poly_sum(algebra, left, right, 1);
        if (op == OP_SUB && is_signed(expr->type)) return poly_sum(algebra, left, right, -1);
        if (op == OP_MUL) return poly_product(algebra, left, right);
        if (op == OP_DIV) return div_poly(algebra, left, right, expr->type);
        if (op == OP_MOD) return mod_poly(algebra, left, right, expr->type);
    }
    const Poly *truth = truth_poly(algebra, expr, left, right);
    if (truth) return truth;
    /* of the comparisons one spelling each: a > b is b < a */
    if (op == OP_GT) return algebra_operation(algebra, ATOM_OPAQUE, "b9", expr->type, swapped, 2);
    if (op == OP_GE) return algebra_operation(algebra, ATOM_OPAQUE, "b8", expr->type, swapped, 2);
    const char *tag = op == OP_LT   ? "b9"
                      : op == OP_LE ? "b8"
                                    : arena_printf(algebra->arena, "op%d.%d", (int)op, (int)expr->binary.accuracy);
    return algebra_operation(algebra, ATOM_OPAQUE, tag, expr->type, both, 2);
}

static const Poly *call_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    const Poly *args[3] = {NULL, NULL, NULL};
    for (int i = 0; i < expr->call.count; i++) args[i] = algebra_poly(algebra, role, expr->call.args[i]);
    if (is_integer(expr->type)) {
        if (expr->call.which == IN_ceil_div) return ceil_poly(algebra, args[0], args[1], expr->type);
        if (expr->call.which == IN_min) return extreme_poly(algebra, false, args[0], args[1], expr->type);
        if (expr->call.which == IN_max) return extreme_poly(algebra, true, args[0], args[1], expr->type);
    }
    return algebra_operation(algebra, ATOM_OPAQUE,
                     arena_printf(algebra->arena, "call%d.%d", (int)expr->call.which, (int)expr->call.accuracy),
                     expr->type, args, expr->call.count);
}

static const Poly *local_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    if (!role || expr->index < 0) return by_place(algebra, expr, true);
    const Local *local = &role->locals.items[expr->index];
    const Bindings *bindings = &algebra->bindings;
    if (role == algebra->role && bindings->locals && bindings->locals[expr->index]) {
        algebra->held = true;
        return bindings->locals[expr->index];
    }
    if (local->kind == LOCAL_LET && local->value) {
        const Poly *value = algebra_poly(algebra, role, local->value);
        if (!poly_changes(algebra, value)) return value; /* else it may have changed since */
    }
    const Poly *poly = poly_atom(algebra, algebra_atom_local(algebra, role, expr->index));
    algebra->held |= local->kind == LOCAL_VAR || local->kind == LOCAL_LET;
    return poly;
}

/* A load from a tensor that nobody writes is a function of its subscripts; any other memory may change. */
static const Poly *read_poly(Algebra *algebra, const Role *role, const Expr *expr) {
    const Access *read = expr->read;
    if (read->space != SPACE_GLOBAL || read->object < 0 || read->rank > 3 ||
        algebra->prog->params.items[read->object].mode != PARAM_IN)
        return by_place(algebra, expr, true);
    const Poly *subs[3];
    for (int i = 0; i < read->rank; i++) subs[i] = algebra_poly(algebra, role, read->subs[i]);
    return algebra_operation(algebra, ATOM_OPAQUE, arena_printf(algebra->arena, "read%d", read->object), expr->type, subs,
                     read->rank);
}

static const Poly *form(Algebra *algebra, const Role *role, Expr *expr) {
    const Poly *args[3] = {NULL, NULL, NULL};
    switch (expr->kind) {
    case X_CONST:
        if (is_integer(expr->type) || expr->type == E_BOOL) return poly_constant(algebra, expr->constant.integer);
        return algebra_operation(algebra, ATOM_OPAQUE, arena_printf(algebra->arena, "#%a", expr->constant.number), expr->type,
                         args, 0);
    case X_SYMBOL: return poly_atom(algebra, simple_atom(algebra, ATOM_SYMBOL, expr->index, NULL, expr->type));
    case X_PARAM:
        return algebra_operation(algebra, ATOM_OPAQUE, arena_printf(algebra->arena, "param%d", expr->index), expr->type, args,
                         0);
    case X_AXIS: return poly_atom(algebra, simple_atom(algebra, ATOM_AXIS, expr->index, NULL, expr->type));
    case X_LOCAL: return local_poly(algebra, role, expr);
    case X_RANK:
        if (!role) return by_place(algebra, expr, false);
        if (role->instances == 1) return poly_constant(algebra, 0);
        return poly_atom(algebra, algebra_atom_rank(algebra, role));
    case X_INDEX: return poly_atom(algebra, algebra_atom_index(algebra, expr->index));
    case X_READ: return read_poly(algebra, role, expr);
    case X_UNARY:
        args[0] = algebra_poly(algebra, role, expr->unary.operand);
        if (expr->unary.op == OP_NEG && is_signed(expr->type))
            return poly_minus(algebra, args[0]);
        if (expr->unary.op == OP_NOT) return poly_sum(algebra, poly_constant(algebra, 1), args[0], -1);
        return algebra_operation(algebra, ATOM_OPAQUE, expr->unary.op == OP_NEG ? "neg" : "not", expr->type, args, 1);
    case X_BINARY: return binary_poly(algebra, role, expr);
    case X_SELECT:
        args[0] = algebra_poly(algebra, role, expr->select.condition);
        args[1] = algebra_poly(algebra, role, expr->select.then);
        args[2] = algebra_poly(algebra, role, expr->select.otherwise);
        return algebra_operation(algebra, ATOM_SELECT, "select", expr->type, args, 3);
    case X_CAST:
        args[0] = algebra_poly(algebra, role, expr->cast);
        if (expr->type == expr->cast->type || (is_integer(expr->type) && expr->cast->type == E_BOOL)) return args[0];
        if (is_integer(expr->cast->type) && (expr->type == E_I64 || (expr->type == E_U64 && expr->cast->type == E_U32)))
            return args[0];
        return algebra_operation(algebra, ATOM_OPAQUE,
                         arena_printf(algebra->arena, "cast%d.%d", (int)expr->type, (int)expr->cast->type), expr->type,
                         args, 1);
    case X_CALL: return call_poly(algebra, role, expr);
    case X_REDUCE:
    case X_POISON: return by_place(algebra, expr, true);
    }
    return NULL;
}

static size_t memo_slot(const Algebra *algebra, const Expr *expr, int version) {
    size_t slot = ((uintptr_t)expr >> 4) * 0x9E3779B97F4A7C15u >> 20;
    slot = (slot + (size_t)version * 40503u) & (algebra->memo_capacity - 1);
    while (algebra->memo[slot].expr && (algebra->memo[slot].expr != expr || algebra->memo[slot].version != version))
        slot = (slot + 1) & (algebra->memo_capacity - 1);
    return slot;
}

static void remember(Algebra *algebra, const Expr *expr, int version, const Poly *poly) {
    if (algebra->memo_count * 2 >= algebra->memo_capacity) {
        struct Memo *old = algebra->memo;
        size_t count = algebra->memo_capacity;
        algebra->memo_capacity = count ? count * 2 : 32;
        algebra->memo = NEW_ARRAY(algebra->arena, struct Memo, algebra->memo_capacity);
        for (size_t i = 0; i < count; i++)
            if (old[i].expr) algebra->memo[memo_slot(algebra, old[i].expr, old[i].version)] = old[i];
    }
    algebra->memo[memo_slot(algebra, expr, version)] = (struct Memo){expr, version, poly};
    algebra->memo_count++;
}

#define EVERYWHERE (-1) /* version of formulas that no variable is in */

const Poly *algebra_poly(Algebra *algebra, const Role *role, Expr *expr) {
    int version = algebra->bindings.version;
    if (!expr) return NULL;
    for (int v = version; algebra->memo_capacity; v = EVERYWHERE) {
        const struct Memo *found = &algebra->memo[memo_slot(algebra, expr, v)];
        algebra->held |= found->expr && v != EVERYWHERE;
        if (found->expr) return found->poly;
        if (v == EVERYWHERE) break;
    }
    bool held = algebra->held;
    algebra->held = false;
    const Poly *poly = form(algebra, role, expr);
    if (!poly) poly = by_place(algebra, expr, true); /* too large to take apart */
    remember(algebra, expr, algebra->held ? version : EVERYWHERE, poly);
    algebra->held |= held;
    return poly;
}

Bindings algebra_hold(Algebra *algebra, Bindings bindings) {
    Bindings before = algebra->bindings;
    algebra->bindings = bindings;
    return before;
}

static const Poly *import_atom(Algebra *algebra, const Algebra *from, int id) {
    const Atom *old = &from->atoms.items[id];
    const Poly *args[3] = {NULL, NULL, NULL};
    int count = 0;
    for (; count < 3 && old->args[count]; count++)
        if (!(args[count] = algebra_import(algebra, from, old->args[count]))) return NULL;
    if (count > 0) return algebra_operation(algebra, old->kind, arena_copy(algebra->arena, old->key, strcspn(old->key, "(")), old->type, args, count);
    Atom atom = *old; /* its key names what it stands for, in every algebra */
    if (atom.kind == ATOM_WHOLE || atom.kind == ATOM_REST || atom.kind == ATOM_BOUND) return NULL;
    return poly_atom(algebra, intern(algebra, atom));
}

const Poly *algebra_import(Algebra *algebra, const Algebra *from, const Poly *poly) {
    const Poly *sum = poly_constant(algebra, 0);
    if (algebra == from || !poly) return poly;
    for (int t = 0; t < poly->count && sum; t++) {
        const Poly *product = poly_constant(algebra, poly->terms[t].coef);
        for (int k = 0; k < poly->terms[t].count; k++) product = poly_product(algebra, product, import_atom(algebra, from, poly->terms[t].atoms[k]));
        sum = poly_sum(algebra, sum, product, 1);
    }
    return sum;
}

size_t poly_size(const Algebra *algebra, const Poly *poly) {
    size_t size = 0;
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++) size += strlen(algebra->atoms.items[poly->terms[t].atoms[k]].key);
    return size;
}

const Poly *algebra_version(Algebra *algebra, const Role *role, int local, int row, const char *tag, Element type) {
    Atom atom = {.kind = ATOM_OPAQUE, .index = row, .role = role, .type = type, .level = (1 << 28) + 1};
    atom.key = version_key(algebra->arena, tag, local, row, (uintptr_t)role);
    return poly_atom(algebra, intern(algebra, atom));
}

/* ---- taking apart ------------------------------------------------------------------------------------------------- */

static const Poly *replace_in_atom(Algebra *algebra, int id, int atom, const Poly *by) {
    if (id == atom) return by;
    Atom old = algebra->atoms.items[id];
    const Poly *args[3] = {NULL, NULL, NULL};
    bool mentions = false;
    int count = 0;
    for (; count < 3 && old.args[count]; count++) mentions |= poly_mentions(algebra, old.args[count], atom);
    if (!mentions) return poly_atom(algebra, id);
    for (int i = 0; i < count; i++) args[i] = poly_replace(algebra, old.args[i], atom, by);
    switch (old.kind) {
    case ATOM_DIV: return div_poly(algebra, args[0], args[1], old.type);
    case ATOM_MOD: return mod_poly(algebra, args[0], args[1], old.type);
    case ATOM_CEIL: return ceil_poly(algebra, args[0], args[1], old.type);
    case ATOM_MIN:
    case ATOM_MAX: return extreme_poly(algebra, old.kind == ATOM_MAX, args[0], args[1], old.type);
    case ATOM_TRUTH: return poly_truth(algebra, args[0]);
    case ATOM_FLOOR: return poly_floor(algebra, args[0], args[1]);
    case ATOM_SUM: return poly_sums(algebra, args[0], args[1]);
    case ATOM_SELECT:
    case ATOM_FIRST:
    case ATOM_OPAQUE: {
        size_t tag = strcspn(old.key, "(");
        return algebra_operation(algebra, old.kind, arena_copy(algebra->arena, old.key, tag), old.type, args, count);
    }
    case ATOM_SYMBOL:
    case ATOM_AXIS:
    case ATOM_LOCAL:
    case ATOM_RANK:
    case ATOM_WHOLE:
    case ATOM_REST:
    case ATOM_BOUND:
    case ATOM_INDEX: break;
    }
    return NULL;
}

const Poly *poly_replace(Algebra *algebra, const Poly *poly, int atom, const Poly *by) {
    if (!poly || !by) return NULL;
    Poly *same = new_poly(algebra, poly->count); /* terms that stay as they are */
    const Poly *result = poly_constant(algebra, 0);
    for (int i = 0; i < poly->count && result; i++) {
        const Term *term = &poly->terms[i];
        bool mentions = false;
        for (int k = 0; k < term->count && !mentions; k++) mentions = term->atoms[k] == atom || atom_mentions(algebra, term->atoms[k], atom);
        if (!mentions) {
            same->terms[same->count++] = *term;
            continue;
        }
        const Poly *product = poly_constant(algebra, term->coef);
        for (int k = 0; k < term->count; k++)
            product = poly_product(algebra, product, replace_in_atom(algebra, term->atoms[k], atom, by));
        result = poly_sum(algebra, result, product, 1);
    }
    if (same->count == poly->count) return poly;
    return poly_sum(algebra, same, result, 1);
}

bool poly_split(Algebra *algebra, const Poly *poly, int atom, const Poly **factor, const Poly **rest) {
    if (!poly) return false;
    Poly *with = new_poly(algebra, poly->count), *without = new_poly(algebra, poly->count);
    for (int i = 0; i < poly->count; i++) {
        Term term = poly->terms[i];
        int at = -1;
        for (int k = 0; k < term.count; k++)
            if (term.atoms[k] == atom) at = k;
        if (at < 0) {
            without->terms[without->count++] = term;
            continue;
        }
        memmove(&term.atoms[at], &term.atoms[at + 1], (size_t)(term.count - at - 1) * sizeof *term.atoms);
        term.count--;
        with->terms[with->count++] = term;
    }
    *rest = without;
    *factor = poly_constant(algebra, 0);
    for (int i = 0; i < with->count && *factor; i++) { /* terms without the atom need not be in order any more */
        Poly *one = new_poly(algebra, 1);
        one->count = 1;
        one->terms[0] = with->terms[i];
        *factor = poly_sum(algebra, *factor, one, 1);
    }
    return *factor && !poly_mentions(algebra, *factor, atom) && !poly_mentions(algebra, *rest, atom);
}
