/* Polynomials as text, for --emit=values and for tests: terms in their order, atoms by the names
 * of their objects. */
#include "algebra/algebra.h"

#define DEPTH_MOST 8 /* most nested atoms */

static void print(const Algebra *algebra, const Poly *poly, int depth, Str *out);

static void print_args(const Algebra *algebra, const char *name, const Atom *atom, int depth,
                       Str *out) {
    str_printf(out, "%s(", name);
    for (int i = 0; i < 3 && atom->args[i]; i++) {
        if (i > 0) str_add(out, ", ");
        print(algebra, atom->args[i], depth - 1, out);
    }
    str_char(out, ')');
}

/* Keys of opaque atoms end with an address, which differs between runs. */
static void print_opaque(const Algebra *algebra, const Atom *atom, int depth, Str *out) {
    size_t length = 0;
    while (atom->key[length] && atom->key[length] != '(' && atom->key[length] != '@') length++;
    char *name = arena_copy(algebra->arena, atom->key, length);
    bool row = atom->key[length] == '@' && atom->role && !atom->args[0];
    if (atom->args[0])
        print_args(algebra, name, atom, depth, out);
    else
        str_add(out, length ? name : "memory");
    if (!row) return;
    int at = 0;
    for (const char *digit = atom->key + length + 1; *digit >= '0' && *digit <= '9'; digit++)
        at = at * 10 + (*digit - '0');
    str_printf(out, "@%d", at);
}

static void print_atom(const Algebra *algebra, int id, int depth, Str *out) {
    const Atom *atom = &algebra->atoms.items[id];
    const Prog *prog = algebra->prog;
    if (depth <= 0) {
        str_add(out, "..");
        return;
    }
    switch (atom->kind) {
    case ATOM_SYMBOL: str_add(out, prog->symbols.items[atom->index].name); break;
    case ATOM_AXIS: str_add(out, prog->axes.items[atom->index].name); break;
    case ATOM_LOCAL: str_add(out, atom->role->locals.items[atom->index].name); break;
    case ATOM_RANK: str_add(out, "rank"); break;
    case ATOM_INDEX: str_printf(out, "index%d", atom->index); break;
    case ATOM_DIV: print_args(algebra, "div", atom, depth, out); break;
    case ATOM_MOD: print_args(algebra, "mod", atom, depth, out); break;
    case ATOM_CEIL: print_args(algebra, "ceil", atom, depth, out); break;
    case ATOM_MIN: print_args(algebra, "min", atom, depth, out); break;
    case ATOM_MAX: print_args(algebra, "max", atom, depth, out); break;
    case ATOM_SELECT: print_args(algebra, "select", atom, depth, out); break;
    case ATOM_TRUTH: print_args(algebra, "truth", atom, depth, out); break;
    case ATOM_WRAP: print_args(algebra, element_rows[atom->type].spelling, atom, depth, out); break;
    case ATOM_FLOOR: print_args(algebra, "floor", atom, depth, out); break;
    case ATOM_WHOLE: str_printf(out, "whole%d", atom->index); break;
    case ATOM_REST: str_printf(out, "rest%d", atom->index); break;
    case ATOM_BOUND: str_printf(out, "bound%d", atom->index); break;
    case ATOM_SUM: print_args(algebra, "sum", atom, depth, out); break;
    case ATOM_FIRST: print_args(algebra, "first", atom, depth, out); break;
    case ATOM_OPAQUE: print_opaque(algebra, atom, depth, out); break;
    }
}

static void print_term(const Algebra *algebra, const Term *term, bool first, int depth, Str *out) {
    int64_t coef = term->coef;
    if (!first)
        str_add(out, coef < 0 ? " - " : " + ");
    else if (coef < 0 && coef != INT64_MIN)
        str_char(out, '-');
    if (coef < 0 && coef != INT64_MIN) coef = -coef;
    if (coef != 1 || term->count == 0) str_printf(out, "%lld", (long long)coef);
    for (int k = 0; k < term->count; k++) {
        if (k > 0 || coef != 1) str_char(out, '*');
        print_atom(algebra, term->atoms[k], depth, out);
    }
}

static void print(const Algebra *algebra, const Poly *poly, int depth, Str *out) {
    if (!poly || poly->count == 0) str_add(out, poly ? "0" : "?");
    for (int t = 0; poly && t < poly->count; t++)
        print_term(algebra, &poly->terms[t], t == 0, depth, out);
}

void poly_print(const Algebra *algebra, const Poly *poly, Str *out) {
    print(algebra, poly, DEPTH_MOST, out);
}
