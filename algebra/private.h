/* What the files of the floor share. */
#ifndef PIPEC_ALGEBRA_PRIVATE_H
#define PIPEC_ALGEBRA_PRIVATE_H

#include "algebra/algebra.h"

Poly *poly_new(Algebra *algebra, int terms);                                      /* poly.c */
const Poly *poly_divide_exactly(Algebra *algebra, const Poly *a, const Poly *by); /* NULL: it is not exact for all values */
int64_t common_divisor(int64_t a, int64_t b);                                     /* the greatest, 0 of two zeros */

int atom_simple(Algebra *algebra, AtomKind kind, int index, const Role *role, Element type); /* atom.c */
const Poly *atom_by_place(Algebra *algebra, const Expr *expr, bool changes);                 /* equal only to itself */
void poly_add_key(Str *key, const Poly *poly);

/* Operations that have laws (form.c); `type` is that of the atom, where one is left */
const Poly *form_ceil(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_div(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_mod(Algebra *algebra, const Poly *a, const Poly *b, Element type);
const Poly *form_extreme(Algebra *algebra, bool is_max, const Poly *a, const Poly *b, Element type);

#endif
