/* What the files of the floor share. */
#ifndef PIPEC_ALGEBRA_PRIVATE_H
#define PIPEC_ALGEBRA_PRIVATE_H

#include "algebra/algebra.h"

Poly *poly_new(Algebra *algebra, int terms);                                             /* poly.c */
const Poly *poly_divide_exactly(Algebra *algebra, const Poly *a, const Poly *by);        /* NULL: it is not exact for all values */
int64_t common_divisor(int64_t a, int64_t b);                                            /* the greatest, 0 of two zeros */
int64_t floor_of(int64_t a, int64_t b);                                                  /* a / b for b > 0, rounded down */
int64_t poly_content(const Poly *poly);                                                  /* what divides all coefficients but the constant; 0: there are none */
const Poly *poly_divided(Algebra *algebra, const Poly *poly, int64_t by, bool whole);

int atom_simple(Algebra *algebra, AtomKind kind, int index, const Role *role, Element type); /* atom.c */
const Poly *atom_by_place(Algebra *algebra, const Expr *expr, Element type, bool changes);  /* equal only to itself */
void poly_add_key(Str *key, const Poly *poly);

/* Operations that have laws (form.c); `type` is that of the atom, where one is left */
const Poly *form_ceil(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_div(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_mod(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b, Element type);

/* ---- ranges (range.c) -------------------------------------------------------------------------------------------- */

__extension__ typedef __int128 Wide;
#define WIDE_MOST ((Wide)1 << 120) /* stands for all that is greater */

/* least <= value <= most */
struct Range {
    Wide least, most;
};

bool type_is_integer(Element type); /* a BOOL is none */
Range range_of_type(Element type);  /* all, of floats */
Range range_of_atom(Algebra *algebra, int id);
Range range_of_poly(Algebra *algebra, const Poly *poly);
bool range_within(Range inner, Range outer);
typedef VEC(int) Ids;
/* With what fits its type, by all that is known here, in place of ATOM_WRAPs; `tried` are those that do not, and grows. */
const Poly *poly_settled(Algebra *algebra, const Poly *poly, Ids *tried);
bool proves_least(Algebra *algebra, const Poly *poly); /* as prove_at_least_zero, which settles before (prove.c) */

/* A limit as a constant formula; NULL: it has none that 64 bits hold */
const Poly *range_limit(Algebra *algebra, Range range, bool lower);

/* Formulas share much: atoms that a walk has been at, the last ones. */
typedef struct Visited {
    int ids[64]; /* 1 + id */
} Visited;

static inline bool visit_again(const Algebra *algebra, Visited *visited, int id) {
    int *slot = &visited->ids[id % 64];
    bool again = *slot == id + 1;
    *slot = id + 1;
    arena_count(algebra->arena, 1);
    return again;
}

#endif
