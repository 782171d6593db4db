/* Ranges of the indexes of a statement, the affine form of its subscripts, and the proof that
 * subscripts are inside their tiles. An index ranges over the extent of the dimension that it
 * subscripts without arithmetic: of tiles, and of tensors if the statement has no tile or is in
 * `ensures`. Disagreements are reported with both places. */
#include "derive/tiles.h"
#include "flow/again.h"
#include "flow/values.h"

/* ---- ranges ---------------------------------------------------------------------------------- */

typedef struct Ranges {
    Tiles *tiles;
    const Role *role;
    IndexSpace *space;
    /* in_ensures: only tensors occur; of_let: a `let` has no extents of its own */
    bool in_ensures, of_let;
    const Access *target;                  /* of a claim; NULL: another statement */
    Span where[PROG_MAX_INDEXES];          /* the subscript that gave the extent */
    const Access *whose[PROG_MAX_INDEXES]; /* the access that it belongs to */
    bool failed[PROG_MAX_INDEXES];
    /* reported: if two indexes are swapped, the others would follow */
    bool reported;
    /* a tensor that is subscripted without arithmetic but gives no range */
    Span bare_global[PROG_MAX_INDEXES];
} Ranges;

static bool known(const Index *index) { return index->extent >= 0 || index->dynamic; }

static const char *extent_text(Ranges *r, Expr *extent) {
    int64_t value;
    Str text = str_new(r->tiles->arena);
    if (expr_constant(extent, &value))
        str_printf(&text, "%lld", (long long)value);
    else
        expr_print(extent, r->tiles->prog, NULL, NULL, &text);
    return text.text;
}

static Expr *index_extent(Ranges *r, const Index *index) {
    return index->extent >= 0 ? expr_integer(r->tiles->arena, E_I32, index->extent, index->span)
                              : index->dynamic;
}

static bool same_extent(Ranges *r, Expr *a, Expr *b) {
    Algebra *algebra = r->tiles->formulas;
    const Poly *difference =
        poly_sum(algebra, algebra_launched(algebra, a), algebra_launched(algebra, b), -1);
    return algebra_proves(algebra, CLAIM_ZERO, difference);
}

/* The target of a claim decides: what it claims of each of its elements may read a part of a larger
 * tensor. */
static bool part_of(Ranges *r, int index, Expr *whole) {
    Algebra *algebra = r->tiles->formulas;
    if (r->target == NULL || r->whose[index] != r->target) return false;
    const Poly *more =
        poly_sum(algebra, algebra_launched(algebra, whole),
                 algebra_launched(algebra, index_extent(r, &r->space->items[index])), -1);
    return algebra_proves(algebra, CLAIM_NOT_NEGATIVE, more);
}

static void define(Ranges *r, const Access *access, int d) {
    Tiles *tiles = r->tiles;
    int i = access->subs[d]->index;
    if (i < 0 || i >= r->space->count || r->failed[i]) return;
    Index *index = &r->space->items[i];
    if (index_ranged(index) && access->space == SPACE_GLOBAL) return; /* its range decides */
    Expr *extent = access_extent(tiles, r->role, access, d);
    if (!extent) return;
    if (!known(index)) {
        if (!expr_constant(extent, &index->extent)) index->extent = -1, index->dynamic = extent;
        r->where[i] = access->subs[d]->span;
        r->whose[i] = access;
        return;
    }
    Expr *before = index_extent(r, index);
    if (same_extent(r, before, extent) || part_of(r, i, extent)) return;
    r->failed[i] = true;
    if (r->reported) return;
    r->reported = true;
    const char *text = extent_text(r, extent), *other_text = extent_text(r, before);
    Diag *diag = diag_at(tiles->diags, P0200, access->subs[d]->span,
                         "index `%s` has extent %s and extent %s in one statement", index->name,
                         other_text, text);
    diag_primary(tiles->diags, diag, "extent %s in %s", text, tiles_object(tiles, r->role, access));
    if (r->whose[i])
        diag_label(tiles->diags, diag, r->where[i], "extent %s in %s", other_text,
                   tiles_object(tiles, r->role, r->whose[i]));
    else
        diag_label(tiles->diags, diag, index->range, "extent %s given here", other_text);
    if (r->in_ensures) {
        diag_note(
            tiles->diags, diag,
            "a subscript that consists of the index alone determines its extent; elements outside "
            "of a tensor are 0");
        diag_help(tiles->diags, diag,
                  "give both the same extent, or give the index a range after the claim: `.. for "
                  "%s in 0 .. n`",
                  index->name);
    } else {
        diag_help(tiles->diags, diag,
                  "give both the same extent, or select a part with a base, as in `rank*64 + %s`",
                  index->name);
    }
}

static void define_all(Ranges *r, const Access *access, bool globals) {
    if (!globals && access->space == SPACE_GLOBAL) {
        for (int d = 0; d < access->rank; d++)
            if (access->subs[d]->kind == X_INDEX && access->subs[d]->index >= 0 &&
                access->subs[d]->index < PROG_MAX_INDEXES)
                r->bare_global[access->subs[d]->index] = access->subs[d]->span;
        return;
    }
    for (int d = 0; d < access->rank; d++)
        if (access->subs[d]->kind == X_INDEX) define(r, access, d);
}

static void help_in_ensures(Ranges *r, Diag *diag, int i) {
    const char *name = r->space->items[i].name;
    if (i >= r->space->bound)
        diag_help(r->tiles->diags, diag,
                  "use `%s` alone as the subscript of a tensor, and select the part: `sum[%s] (lo "
                  "<= %s && %s < hi ? X[%s] : 0)`",
                  name, name, name, name, name);
    else if (r->of_let)
        diag_help(
            r->tiles->diags, diag,
            "write the formula instead of the `let`, or use `%s` alone as a subscript of a tensor",
            name);
}

static void report_unknown(Ranges *r, int i) {
    Tiles *tiles = r->tiles;
    const Index *index = &r->space->items[i];
    Diag *diag = diag_at(tiles->diags, P0201, index->span, "the extent of index `%s` is unknown",
                         index->name);
    diag_primary(tiles->diags, diag, "not alone in any subscript of a %s",
                 r->in_ensures ? "tensor" : "tile");
    if (r->in_ensures) {
        help_in_ensures(r, diag, i);
        return;
    }
    if (r->bare_global[i].hi > r->bare_global[i].lo)
        diag_note(tiles->diags, diag, "%s",
                  i >= r->space->bound
                      ? "a tensor does not determine the extent of a reduction in a role, which is "
                        "constant: reduce parts in a loop"
                      : "a subscript of a tensor determines the extent only if the statement has "
                        "no tile");
    diag_help(tiles->diags, diag,
              "use `%s` alone as a subscript of a tile; other subscripts may then be `base + %s`; "
              "or give it a range after the statement: `.. for %s in 0 .. n;`",
              index->name, index->name, index->name);
}

bool tiles_ranges(Tiles *tiles, const Role *role, IndexSpace *space, Access *target,
                  const Accesses *reads, bool in_ensures) {
    Ranges r = {.tiles = tiles,
                .role = role,
                .space = space,
                .in_ensures = in_ensures,
                .of_let = in_ensures && !target,
                .target = in_ensures ? target : NULL};
    bool any_tile = target && is_tile_space(target->space), fine = true;
    for (int i = 0; i < space->count; i++)
        if (!index_ranged(&space->items[i]))
            space->items[i].extent = -1, space->items[i].dynamic = NULL;
    for (size_t i = 0; i < reads->count; i++) any_tile |= is_tile_space(reads->items[i]->space);
    bool globals = in_ensures || !any_tile;
    if (target) define_all(&r, target, globals);
    for (size_t i = 0; i < reads->count; i++) define_all(&r, reads->items[i], globals);
    for (int i = 0; i < space->count; i++) {
        fine &= !r.failed[i];
        if (known(&space->items[i])) continue;
        fine = false;
        if (!r.failed[i]) report_unknown(&r, i);
    }
    return fine;
}

/* ---- affine forms ---------------------------------------------------------------------------- */

static bool add_scaled(Affine *to, const Affine *from, int64_t scale) {
    for (int i = 0; i < PROG_MAX_INDEXES; i++) {
        int64_t product;
        if (__builtin_mul_overflow(from->coef[i], scale, &product) ||
            __builtin_add_overflow(to->coef[i], product, &to->coef[i]))
            return false;
    }
    return true;
}

static Affine affine_of(Tiles *tiles, const Role *role, Algebra *algebra, Expr *expr) {
    Affine out = {.is = true}, right;
    int64_t value;
    if (expr->kind == X_INDEX) {
        if (expr->index < 0 || expr->index >= PROG_MAX_INDEXES) return (Affine){.is = false};
        out.base = expr_integer(tiles->arena, expr->type, 0, expr->span);
        out.coef[expr->index] = 1;
        return out;
    }
    if (expr->indexes == 0) {
        out.base = expr;
        return out;
    }
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG) {
        Affine inner = affine_of(tiles, role, algebra, expr->unary.operand);
        if (!inner.is || !add_scaled(&out, &inner, -1)) return (Affine){.is = false};
        out.base =
            expr_binary(tiles->arena, OP_SUB, expr_integer(tiles->arena, expr->type, 0, expr->span),
                        inner.base, expr->span);
        return out;
    }
    if (expr->kind == X_CAST && expr->type == E_I64 && expr->cast->type == E_I32)
        return affine_of(tiles, role, algebra, expr->cast);
    if (expr->kind != X_BINARY) return (Affine){.is = false};
    BinaryOp op = expr->binary.op;
    Expr *a = expr->binary.left, *b = expr->binary.right;
    if (op == OP_MUL) {
        if (a->indexes == 0) a = expr->binary.right, b = expr->binary.left;
        if (b->indexes != 0 || !poly_is_constant(algebra_poly(algebra, role, b), &value))
            return (Affine){.is = false};
        Affine inner = affine_of(tiles, role, algebra, a);
        if (!inner.is || !add_scaled(&out, &inner, value)) return (Affine){.is = false};
        out.base = expr_binary(tiles->arena, OP_MUL, inner.base, b, expr->span);
        return out;
    }
    if (op != OP_ADD && op != OP_SUB) return (Affine){.is = false};
    out = affine_of(tiles, role, algebra, a);
    right = affine_of(tiles, role, algebra, b);
    if (!out.is || !right.is || !add_scaled(&out, &right, op == OP_ADD ? 1 : -1))
        return (Affine){.is = false};
    out.base = expr_binary(tiles->arena, op, out.base, right.base, expr->span);
    return out;
}

/* An index beyond 32 bits is outside of every extent, and so is its truncation: above, up to as
 * much again; below, as far as extents keep away from 2^31. */
static bool stays_outside(const Affine *affine, const IndexSpace *space) {
    int64_t up = 0, down = 0, span;
    if (affine->base->type != E_I32 && affine->base->type != E_I64) return false;
    for (int i = 0; i < space->count; i++) {
        int64_t last = space->items[i].extent >= 0 ? space->items[i].extent - 1 : EXTENT_MOST;
        int64_t *to = affine->coef[i] < 0 ? &down : &up;
        if (last < 0 || affine->coef[i] == 0) continue;
        if (__builtin_mul_overflow(affine->coef[i], last, &span) ||
            __builtin_add_overflow(*to, span, to))
            return false;
    }
    return up <= INT32_MAX && -down <= INT32_MAX - EXTENT_MOST;
}

/* ---- quotients ------------------------------------------------------------------------------- */

typedef struct Quotients {
    Tiles *tiles;
    const Site *site;
    bool changed;
} Quotients;

/* `(n*128 + j) / 128` with j below 128 is n for all j: an index that does not change the
 * quotient is removed from it, so that the quotient, and reads that it subscripts, are evaluated
 * once for all values of the index. */
static void visit_quotient(Expr *expr, void *data) {
    Quotients *q = data;
    const Site *site = q->site;
    int64_t by, most = 0;
    if (expr->kind != X_BINARY || expr->binary.op != OP_DIV || expr->type == E_F32 ||
        !expr->indexes)
        return;
    if (!expr_constant(expr->binary.right, &by) || by <= 0) return;
    Affine affine = affine_of(q->tiles, site->role, site->algebra, expr->binary.left);
    if (!affine.is || affine.base->type != expr->binary.left->type) return;
    for (int i = 0; i < site->tile->space.count; i++) {
        const Index *index = &site->tile->space.items[i];
        int64_t span;
        if (affine.coef[i] == 0) continue;
        if (affine.coef[i] < 0 || index->extent < 0) return;
        if (__builtin_mul_overflow(affine.coef[i], index->extent - 1, &span) ||
            __builtin_add_overflow(most, span, &most))
            return;
    }
    const Poly *base = algebra_poly(site->algebra, site->role, affine.base);
    if (most >= by || poly_divisor(site->algebra, base) % by != 0) return;
    if (!algebra_proves(site->algebra, CLAIM_NOT_NEGATIVE, base)) return;
    expr->binary.left = affine.base;
    q->changed = true;
}

static void visit_derive(Expr *expr, void *data) {
    const Quotients *q = data;
    expr_derive(q->site->role, expr);
}

void tiles_quotients(Tiles *tiles, const Site *site) {
    Quotients q = {tiles, site, false};
    expr_visit(tiles->arena, site->tile->value, visit_quotient, &q);
    if (q.changed) expr_visit(tiles->arena, site->tile->value, visit_derive, &q);
}

/* ---- rotations ------------------------------------------------------------------------------- */

static bool is_elsewhere(const Access *access, int d, int index) {
    for (int k = 0; k < access->rank; k++)
        if (k != d && expr_depends(access->subs[k], index)) return true;
    return false;
}

/* The sum without inner remainders and truncations, which keep its remainder by the number, as in
 * ((j + q) % n + n) % n */
static const Poly *same_remainder(Algebra *algebra, const Poly *sum, int64_t by, bool wraps) {
    for (int t = 0; sum && t < sum->count; t++) {
        if (sum->terms[t].count != 1) continue;
        const Atom atom = algebra->atoms.items[sum->terms[t].atoms[0]];
        int64_t inner;
        bool keeps = atom.kind == ATOM_MOD && poly_is_constant(atom.args[1], &inner) &&
                     inner != INT64_MIN && inner % by == 0;
        if (atom.kind == ATOM_WRAP)
            keeps = wraps && (element_rows[atom.type].bytes == 8 ||
                              by <= INT64_C(1) << 8 * element_rows[atom.type].bytes);
        if (!keeps) continue;
        sum = poly_replace(algebra, sum, sum->terms[t].atoms[0], atom.args[0]);
        t = -1;
    }
    return sum;
}

/* 1 + the index that (c*i + ..) % n rotates, or 0: with at most n / gcd(c, n) values, they have
 * different remainders. A sum that wraps keeps its remainder for powers of two only. */
static int rotation_of(const SubPlace *place, const Access *access, int d) {
    const Expr *sub = access->subs[d];
    Algebra *algebra = place->algebra;
    int64_t by, coef;
    if (sub->kind != X_BINARY || sub->binary.op != OP_MOD ||
        !expr_constant(sub->binary.right, &by) || by <= 0)
        return 0;
    bool wraps = (by & (by - 1)) == 0;
    algebra->space = place->space;
    const Poly *sum = wraps ? algebra_residue(algebra, place->role, sub->binary.left)
                            : algebra_poly(algebra, place->role, sub->binary.left);
    const Poly *factor, *rest;
    int found = 0;
    sum = same_remainder(algebra, sum, by, wraps);
    for (int i = 0; sum && i < place->space->bound && !found; i++) {
        int64_t extent = place->space->items[i].extent;
        if (extent <= 0 || is_elsewhere(access, d, i) ||
            !poly_split(algebra, sum, algebra_atom_index(algebra, i), &factor, &rest) ||
            !poly_is_constant(factor, &coef) || coef == 0 || coef == INT64_MIN)
            continue;
        if (extent <= by / common_divisor(coef < 0 ? -coef : coef, by)) found = 1 + i;
    }
    if (!wraps && poly_wraps(algebra, sum)) found = 0;
    algebra->space = NULL;
    return found;
}

#define MULTIPLE_NODES 1000 /* most operands that are looked at, shared ones each time */

/* A constant that divides the value for all values of its variables; 0 for a constant 0 */
static int64_t multiple_in(const Expr *expr, int *left) {
    if (--*left < 0) return 1;
    if (expr->kind == X_CONST && expr->constant.integer == INT64_MIN) return 1;
    if (expr->kind == X_CONST)
        return expr->constant.integer < 0 ? -expr->constant.integer : expr->constant.integer;
    if (expr->kind != X_BINARY) return 1;
    int64_t a = multiple_in(expr->binary.left, left), b = multiple_in(expr->binary.right, left);
    if (expr->binary.op == OP_MUL) return a > 1 << 20 || b > 1 << 20 ? 1 : a * b;
    if (expr->binary.op == OP_DIV && expr->binary.right->kind == X_CONST && b > 0 && a % b == 0)
        return a / b;
    if (expr->binary.op != OP_ADD && expr->binary.op != OP_SUB) return 1;
    return common_divisor(a, b);
}

static int64_t multiple_of(const Expr *expr) { return multiple_in(expr, &(int){MULTIPLE_NODES}); }

/* ---- inside of the tile ---------------------------------------------------------------------- */

static bool atom_interval(Algebra *algebra, const IndexSpace *space, int id, int64_t *lo,
                          int64_t *hi) {
    const Atom *atom = &algebra->atoms.items[id];
    int64_t past;
    if (atom->kind == ATOM_INDEX && space && atom->index < space->count &&
        space->items[atom->index].extent > 0) {
        *lo = 0, *hi = space->items[atom->index].extent - 1;
        return true;
    }
    if (atom->kind == ATOM_RANK) {
        *lo = 0, *hi = atom->role->instances - 1;
        return true;
    }
    const Local *local = atom_limited(atom);
    if (!local || atom->role != algebra->role) return false;
    if (!expr_constant(local->lo, lo) || !expr_constant(local->hi, &past)) return false;
    *hi = past - 1;
    return *lo <= *hi;
}

bool poly_interval(Algebra *algebra, const IndexSpace *space, const Poly *poly, int64_t *lo,
                   int64_t *hi) {
    if (!poly) return false;
    *lo = *hi = 0;
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        int64_t least = 1, most = 1, a, b;
        if (term->count > 1 ||
            (term->count == 1 && !atom_interval(algebra, space, term->atoms[0], &least, &most)))
            return false;
        if (__builtin_mul_overflow(term->coef, least, &a) ||
            __builtin_mul_overflow(term->coef, most, &b))
            return false;
        if (__builtin_add_overflow(*lo, a < b ? a : b, lo) ||
            __builtin_add_overflow(*hi, a < b ? b : a, hi))
            return false;
    }
    return true;
}

static void report_outside(Tiles *tiles, const Role *role, const Access *access, Expr *sub,
                           int64_t lo, int64_t hi, int64_t extent) {
    const char *object = tiles_object(tiles, role, access), *text = tiles_text(tiles, sub->span);
    int64_t reached = hi >= extent ? hi : lo;
    Diag *diag = diag_at(tiles->diags, P0202, sub->span,
                         "subscript `%s` of %s reaches %lld, outside of the tile", text, object,
                         (long long)reached);
    diag_primary(tiles->diags, diag, "the extent is %lld", (long long)extent);
    diag_label(tiles->diags, diag, tiles_declared(tiles, role, access), "declared here");
    if (hi >= extent && lo >= 0 && hi - lo < extent)
        diag_help(tiles->diags, diag, "give it an extent of %lld", (long long)hi + 1);
    else
        diag_help(tiles->diags, diag,
                  "use subscripts from 0 to %lld; only tensors may be subscripted outside of their "
                  "extent",
                  (long long)extent - 1);
}

static void report_unproved(Tiles *tiles, const Role *role, const Access *access, Expr *sub,
                            bool low, const char *extent) {
    const char *object = tiles_object(tiles, role, access), *text = tiles_text(tiles, sub->span);
    Diag *diag = diag_at(tiles->diags, P0203, sub->span, "subscript `%s` may be outside of %s",
                         text, object);
    if (low)
        diag_primary(tiles->diags, diag, "not known to be less than %s", extent);
    else
        diag_primary(tiles->diags, diag, "may be negative");
    diag_label(tiles->diags, diag, tiles_declared(tiles, role, access), "declared here");
    if (access->space == SPACE_GLOBAL)
        diag_help(
            tiles->diags, diag,
            "a claim is about elements of the tensor: give its index a range inside, or state "
            "with `requires` that it is");
    else if (access->space == SPACE_LET)
        diag_help(tiles->diags, diag,
                  "subscript it by an index, or read the tensor instead: elements outside of a "
                  "tensor are 0");
    else
        diag_help(tiles->diags, diag,
                  "clamp it: `min(max(%s, 0), %s - 1)`; or use the variable of a loop with "
                  "constant bounds",
                  text, extent);
}

typedef struct Sides {
    bool low, high; /* proved: at least 0; below the extent */
} Sides;

static Sides sides(Algebra *algebra, const Poly *position, const Poly *past) {
    Sides out = {.low = algebra_proves(algebra, CLAIM_NOT_NEGATIVE, position)};
    const Poly *room = poly_offset(algebra, poly_sum(algebra, past, position, -1), -1);
    out.high = out.low && algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room);
    return out;
}

/* Uses the values of variables at the row, and the conditions of its path */
static Sides sides_on_path(Tiles *tiles, const SubPlace *place, Expr *sub, const Poly *past) {
    FlowCode *code = place->role->code;
    PathMark mark = values_assume(tiles->arena, code, place->at);
    Sides out = sides(place->algebra, values_poly(tiles->arena, code, place->at, sub), past);
    algebra_undo(place->algebra, mark);
    return out;
}

/* Uses also what is known of values that the role has read from memory before */
static Sides sides_again(Tiles *tiles, const SubPlace *place, Expr *sub, const Poly *past) {
    FlowCode *code = place->role->code;
    PathMark mark = values_assume(tiles->arena, code, place->at);
    const Again again = again_find(tiles->arena, code, place->at);
    again_assume(&again, mark);
    const Poly *position = values_poly(tiles->arena, code, place->at, sub);
    Sides out = sides(place->algebra, again_poly(&again, position), past);
    algebra_undo(place->algebra, mark);
    return out;
}

static bool check_inside(Tiles *tiles, const SubPlace *place, const Access *access, Expr *sub,
                         Expr *extent) {
    Algebra *algebra = place->algebra;
    algebra->space = place->space;
    const Poly *position = algebra_poly(algebra, place->role, sub),
               *past = algebra_launched(algebra, extent);
    int64_t lo, hi, size;
    bool constant = expr_constant(extent, &size);
    if (constant && poly_interval(algebra, place->space, position, &lo, &hi)) {
        algebra->space = NULL;
        if (lo >= 0 && hi < size) return true;
        report_outside(tiles, place->role, access, sub, lo, hi, size);
        return false;
    }
    Sides proved = sides(algebra, position, past);
    if (!proved.high && place->at >= 0) proved = sides_on_path(tiles, place, sub, past);
    if (!proved.high && place->at >= 0) proved = sides_again(tiles, place, sub, past);
    algebra->space = NULL;
    if (proved.low && proved.high) return true;
    Str text = str_new(tiles->arena);
    if (constant)
        str_printf(&text, "%lld", (long long)size);
    else
        expr_print(extent, tiles->prog, NULL, NULL, &text);
    report_unproved(tiles, place->role, access, sub, proved.low, text.text);
    return false;
}

/* True if the subscript is proved to be at least 0; mostly by its range alone */
static bool starts_inside(Tiles *tiles, const SubPlace *place, Expr *base) {
    Algebra *algebra = place->algebra;
    return algebra_never_negative(algebra, algebra_poly(algebra, place->role, base)) ||
           sides_on_path(tiles, place, base, poly_constant(algebra, 0)).low;
}

bool tiles_starts_inside(Tiles *tiles, const SubPlace *place, const Access *access) {
    for (int d = 0; d < access->rank; d++)
        if (access->affine[d].is && access->affine[d].base &&
            !starts_inside(tiles, place, access->affine[d].base))
            return false;
    return true;
}

bool tiles_claimed(Tiles *tiles, const SubPlace *place, const Access *target) {
    bool fine = true;
    for (int d = 0; d < target->rank; d++)
        for (int i = 0; i < place->space->count && fine; i++)
            if (expr_depends(target->subs[d], i) && index_ranged(&place->space->items[i]))
                fine = check_inside(tiles, place, target, target->subs[d],
                                    access_extent(tiles, NULL, target, d));
    return fine;
}

bool tiles_subscripts(Tiles *tiles, const SubPlace *place, Access *access) {
    const Role *role = place->role;
    bool fine = true;
    for (int d = 0; d < access->rank; d++) {
        Expr *sub = access->subs[d];
        access->affine[d] = affine_of(tiles, role, place->algebra, sub);
        access->affine[d].is =
            access->affine[d].is && stays_outside(&access->affine[d], place->space);
        if (access->affine[d].is) access->affine[d].multiple = multiple_of(access->affine[d].base);
        /* without arithmetic: the extents agree */
        if (!is_tile_space(access->space) || sub->kind == X_INDEX) continue;
        Expr *extent = access_extent(tiles, role, access, d);
        if (extent) fine &= check_inside(tiles, place, access, sub, extent);
    }
    for (int d = 0; d < access->rank; d++)
        if (!access->affine[d].is) access->affine[d].rotated = rotation_of(place, access, d);
    const Field *field = access_field(tiles->prog, role, access);
    if (field && access->element && fine)
        fine = check_inside(tiles, place, access, access->element,
                            expr_integer(tiles->arena, E_I32, field->count, access->span));
    return fine;
}
