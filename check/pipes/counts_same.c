/* Compares the control of two roles: the same loops over the same ranges, the same conditions
 * and leaves, in the same order, give equal counts, for all values of bounds and conditions. */
#include "check/pipes/counts.h"
#include "check/pipes/pieces.h"

#include "flow/values.h"

typedef struct Renamed { /* a loop variable of a role, and the number that it represents */
    int side, atom;
    const Poly *is;
} Renamed;

typedef struct Sides {
    Arena *arena;
    Prog *prog;
    const EndCode *ends;
    Algebra *algebra;
    int *partner; /* by region of the first: the corresponding region of the second, -1: none */
    VEC(Renamed) renamed; /* of the enclosing loops */
    size_t *before;       /* by region of the first: their number before it */
    int *first_difference;
} Sides;

/* ---- the slices ------------------------------------------------------------------------------ */

typedef struct Wanted {
    int pipe;
    End end;
} Wanted;

static bool keeps(const FlowCode *code, const Row *row, const void *data) {
    const Wanted *wanted = data;
    if (row->kind != ROW_ACQUIRE || !valid_index(row->handle, code->role->handles.count))
        return false;
    const Handle *handle = &code->role->handles.items[row->handle];
    return handle->pipe == wanted->pipe && handle->end == wanted->end;
}

EndCode end_code(Arena *arena, const Role *role, int pipe, End end) {
    FlowCode *slice = code_slice(arena, role->code, keeps, &(Wanted){pipe, end});
    pieces_open(arena, slice);
    return (EndCode){role, slice};
}

Span end_first(const EndCode *end) {
    for (size_t at = 0; at < end->slice->rows.count; at++)
        if (end->slice->rows.items[at].kind == ROW_ACQUIRE) return end->slice->rows.items[at].head;
    return (Span){0, 0};
}

int end_leaves(const EndCode *end, const Row **first) {
    int count = 0;
    for (size_t at = 0; at < end->slice->rows.count; at++) {
        const Row *row = &end->slice->rows.items[at];
        if (row->kind == ROW_LEAVE && count++ == 0) *first = row;
    }
    return count;
}

const Poly *end_poly(Arena *arena, const EndCode *end, int at, Expr *expr, Algebra *algebra) {
    if (!expr || expr->kind == X_POISON) return NULL;
    return values_import(arena, end->role->code, end->slice->whole_rows.items[at], expr, algebra);
}

/* ---- formulas -------------------------------------------------------------------------------- */

static const Region *region_of(const Sides *s, int side, int region) {
    return &s->ends[side].slice->regions.items[region];
}

/* Loop variables of corresponding loops represent the same number. */
static const Poly *side_poly(const Sides *s, int side, int region, Expr *expr) {
    int at = region_of(s, side, region)->begin;
    const Poly *poly = end_poly(s->arena, &s->ends[side], at, expr, s->algebra);
    for (size_t i = 0; poly && i < s->renamed.count; i++) {
        const Renamed *renamed = &s->renamed.items[i];
        if (renamed->side != side) continue;
        poly = poly_replace(s->algebra, poly, renamed->atom, renamed->is);
    }
    return poly;
}

static bool same_expr(const Sides *s, int a, int b, Expr *x, Expr *y) {
    if (!x || !y) return x == y;
    algebra_work_anew(s->algebra);
    const Poly *one = side_poly(s, 0, a, x), *two = side_poly(s, 1, b, y);
    if (!one || !two) return false;
    bool changes = poly_changes(s->algebra, one) || poly_changes(s->algebra, two);
    /* one before, one after a change */
    if (s->ends[0].role == s->ends[1].role && changes) return false;
    return poly_equal(one, two) ||
           algebra_proves(s->algebra, CLAIM_ZERO, poly_sum(s->algebra, one, two, -1));
}

/* ---- comparison ------------------------------------------------------------------------------ */

static void rename_variable(Sides *s, int side, const Region *loop, const Poly *is) {
    if (loop->var < 0) return;
    int atom = algebra_atom_local(s->algebra, s->ends[side].role, loop->var);
    vec_push(s->arena, &s->renamed, ((Renamed){side, atom, is}));
}

/* For loops over the same range; if there is at most one iteration, its number is lo. */
static void rename_variables(Sides *s, int a, int b) {
    const Region *x = region_of(s, 0, a), *y = region_of(s, 1, b);
    const Poly *lo = side_poly(s, 0, a, x->lo), *hi = side_poly(s, 0, a, x->hi);
    bool fixed = !x->where && lo && !poly_changes(s->algebra, lo);
    if (fixed && range_is_once(s->arena, s->algebra, lo, hi)) {
        rename_variable(s, 0, x, lo);
        rename_variable(s, 1, y, lo);
    } else if (x->var >= 0) {
        int atom = algebra_atom_local(s->algebra, s->ends[0].role, x->var);
        rename_variable(s, 1, y, poly_atom(s->algebra, atom));
    }
}

static bool same_range(Sides *s, int a, int b) {
    const Region *x = region_of(s, 0, a), *y = region_of(s, 1, b);
    if (x->kind == REGION_GRID) return true;
    bool domain = x->domain >= 0 && x->domain == y->domain;
    if ((x->where || y->where) && !(x->where && y->where && domain)) return false;
    bool whole = domain && x->whole && y->whole;
    if (!whole && (!same_expr(s, a, b, x->lo, y->lo) || !same_expr(s, a, b, x->hi, y->hi)))
        return false;
    rename_variables(s, a, b);
    return true;
}

static bool same_condition(const Sides *s, int a, int b) {
    const Region *x = region_of(s, 0, a), *y = region_of(s, 1, b);
    if (x->nonempty >= 0 && x->nonempty == y->nonempty) return true;
    if (x->from || y->from) /* of loops over the same range, compared by their enclosing loops */
        return same_expr(s, a, b, x->from, y->from) && same_expr(s, a, b, x->to, y->to);
    return same_expr(s, a, b, x->condition, y->condition);
}

/* -1 at the end of a list */
static int decides(const Row *row, int at) {
    bool does = row_begins(row->kind) || row->kind == ROW_LEAVE || row->kind == ROW_ACQUIRE;
    return does ? at : -1;
}

static bool differ(const Sides *s, int at) {
    for (int i = 0; i < 2; i++)
        s->first_difference[i] = decides(&s->ends[i].slice->rows.items[at], at);
    return false;
}

static bool same_leave(const Sides *s, const Row *a, const Row *b) {
    return a->again == b->again && s->partner[a->target] == b->target;
}

static const Row *row_of(const Sides *s, int side, int at) {
    return &s->ends[side].slice->rows.items[at];
}

/* Compares the rows from `a` to the end of its list with those from `b` to the end of its own,
 * one by one: regions are equal if their first rows are, and the rows up to their ends. */
bool counts_same(Arena *arena, Prog *prog, const EndCode *ends, int *first_difference) {
    Sides s = {.arena = arena, .prog = prog, .ends = ends, .first_difference = first_difference};
    size_t count = ends[0].slice->rows.count, other = ends[1].slice->rows.count;
    s.algebra = algebra_of_counts(arena, prog);
    s.partner = NEW_ARRAY(arena, int, ends[0].slice->regions.count + 1);
    s.before = NEW_ARRAY(arena, size_t, ends[0].slice->regions.count + 1);
    first_difference[0] = first_difference[1] = -1;
    for (int at = 0; at < (int)count && at < (int)other; at++) {
        const Row *a = row_of(&s, 0, at), *b = row_of(&s, 1, at);
        if (a->kind != b->kind) return differ(&s, at);
        if (row_begins(a->kind)) {
            if (region_of(&s, 0, a->region)->kind != region_of(&s, 1, b->region)->kind)
                return differ(&s, at);
            s.partner[a->region] = b->region;
            s.before[a->region] = s.renamed.count;
        }
        if (a->kind == ROW_END) s.renamed.count = s.before[a->region];
        if (a->kind == ROW_LOOP && !same_range(&s, a->region, b->region)) return differ(&s, at);
        if (a->kind == ROW_IF && !same_condition(&s, a->region, b->region)) return differ(&s, at);
        if (a->kind == ROW_LEAVE && !same_leave(&s, a, b)) return differ(&s, at);
    }
    return count == other;
}

bool counts_same_in_pieces(Arena *arena, Prog *prog, const EndCode *ends) {
    EndCode cut[2] = {ends[0], ends[1]};
    int first_difference[2];
    FlowCode *slices[2] = {ends[0].slice, ends[1].slice};
    if (!pieces_cut(arena, algebra_of_counts(arena, prog), slices, 2)) return false;
    for (int i = 0; i < 2; i++) cut[i].slice = slices[i];
    return counts_same(arena, prog, cut, first_difference);
}
