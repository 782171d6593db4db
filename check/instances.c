/* Cooperating instances write global memory without waiting for one another: what they write must be disjoint. Two writes
 * are apart where, along one axis, the places of one rank lie beyond all of the other's, or fall between them. */
#include "check/written.h"

static int64_t gcd_of(int64_t a, int64_t b) {
    if (a < 0) a = -a;
    if (b < 0) b = -b;
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* How far the indexes carry a subscript up and down from its base, and the step that all of them are multiples of */
static bool reach(const Affine *affine, const IndexSpace *space, int64_t *down, int64_t *up, int64_t *step) {
    for (int i = 0; i < space->count; i++) {
        int64_t span;
        if (affine->coef[i] == 0) continue;
        if (space->items[i].extent < 1 || __builtin_mul_overflow(affine->coef[i], space->items[i].extent - 1, &span))
            return false;
        *step = gcd_of(*step, affine->coef[i]);
        if (__builtin_add_overflow(span < 0 ? *down : *up, span, span < 0 ? down : up)) return false;
    }
    return true;
}

static const Poly *base_of(const GlobalWrite *write, int d) {
    Algebra *algebra = write->site->algebra;
    const Poly *base = algebra_poly(algebra, write->site->role, write->site->tile->target.affine[d].base);
    return poly_replace(algebra, base, algebra_atom_rank(algebra, write->site->role),
                        poly_constant(algebra, write->rank));
}

static bool apart(const GlobalWrite *a, const GlobalWrite *b) {
    const Access *one = &a->site->tile->target, *two = &b->site->tile->target;
    for (int d = 0; d < one->rank; d++) {
        int64_t distance, down = 0, up = 0, down_b = 0, up_b = 0, step = 0;
        if (!one->affine[d].is || !two->affine[d].is) continue;
        if (!poly_is_constant(poly_sum(a->site->algebra, base_of(b, d), base_of(a, d), -1), &distance)) continue;
        if (!reach(&one->affine[d], &a->site->tile->space, &down, &up, &step)) continue;
        if (!reach(&two->affine[d], &b->site->tile->space, &down_b, &up_b, &step)) continue;
        if (distance + down_b > up || distance + up_b < down) return true;
        if (step > 1 && distance % step != 0) return true;
    }
    return false;
}

void tiles_disjoint(Tiles *tiles, const Role *role, const GlobalWrites *writes) {
    for (size_t i = 0; i < writes->count; i++)
        for (size_t k = 0; k < writes->count; k++) {
            const GlobalWrite *a = &writes->items[i], *b = &writes->items[k];
            if (a->rank >= b->rank || a->site->poisoned || b->site->poisoned) continue;
            if (a->site->tile->target.object != b->site->tile->target.object || apart(a, b)) continue;
            Diag *diag = diag_at(tiles->diags, P0215, a->site->tile->target.span,
                                 "instances of `%s` may write the same elements of %s", role->name,
                                 tiles_object(tiles, role, &a->site->tile->target));
            diag_primary(tiles->diags, diag, "by the instance of rank %d", a->rank);
            if (a->site != b->site)
                diag_label(tiles->diags, diag, b->site->tile->target.span, "and here by rank %d", b->rank);
            diag_label(tiles->diags, diag, role->span, "%d instances run this role together", role->instances);
            diag_help(tiles->diags, diag, "give each instance its own part: `rank*.. + i`");
            a->site->poisoned = b->site->poisoned = true;
        }
}
