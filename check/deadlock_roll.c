/* Loops that are written in several pieces with the same rows: rolled up into one, so that roles which do the same are seen
 * to do the same.
 *   a first iteration before the others:  if lo < hi { rows of lo; for k in lo + 1 .. hi { rows of k } }
 *   ranges that follow each other:        for k in lo .. min(mid, hi) { rows of k } for k in mid .. hi { rows of k }
 * Both are `for k in lo .. hi { rows of k }` where the rows (of the pipes of the part) are equal one by one, with equal
 * bounds and conditions. Goes out with a slice without the earlier rows; the loop that is left begins with their first. */
#include "check/deadlock_search.h"

#define ROLL_STEPS 2000000 /* of the meter, for one role */

typedef struct Pair {
    int own, other;
} Pair;

typedef struct Begin { /* a loop that stands for more than it did */
    int loop;          /* a region of the whole Code */
    Expr *lo;
} Begin;

typedef struct Rows { /* of the slice: from `at` to `end`, which is not among them */
    int at, end;
} Rows;

typedef struct Roller { /* compares the rows of an earlier piece with those of a later one */
    Part *part;
    const Side *side;
    FlowCode *code; /* of the role */
    const FlowCode *slice;
    Algebra *algebra;
    bool *opened; /* IFs of the whole Code around nothing but a loop that is passed over where they do not hold */
    VEC(Begin) begins;
    VEC(Pair) handles, locals, regions;
    int first_of; /* the loop variable of the later one that is `first`, -1: none */
    const Poly *first;
    Budget work;
} Roller;

static void compare_anew(Roller *r) {
    r->handles.count = r->locals.count = r->regions.count = 0;
    r->first_of = -1;
}

static const Region *region_at(const Roller *r, int at) {
    return &r->slice->regions.items[r->slice->rows.items[at].region];
}

/* ---- formulas ------------------------------------------------------------------------------------------------------ */

static const Poly *poly_at(const Roller *r, int at, Expr *expr) { /* NULL: not known, or not the same at all times */
    if (!expr) return NULL;
    const Poly *poly = values_poly(r->part->arena, r->code, r->slice->whole_rows.items[at], expr);
    return poly && !poly_changes(r->algebra, poly) ? poly : NULL;
}

static bool same_poly(const Roller *r, int own_at, Expr *own, int other_at, Expr *other) {
    const Poly *a = poly_at(r, own_at, own), *b = poly_at(r, other_at, other);
    for (size_t i = 0; i < r->locals.count && a; i++)
        a = poly_replace(
            r->algebra, a, algebra_atom_local(r->algebra, r->side->role, r->locals.items[i].own),
            poly_atom(r->algebra, algebra_atom_local(r->algebra, r->side->role, r->locals.items[i].other)));
    if (b && r->first_of >= 0)
        b = poly_replace(r->algebra, b, algebra_atom_local(r->algebra, r->side->role, r->first_of), r->first);
    return a && b && poly_equal(a, b);
}

/* ---- comparing ----------------------------------------------------------------------------------------------------- */

static bool same_handle(Roller *r, int own, int other) {
    const Role *role = r->side->role;
    if (own == other && own < 0) return true;
    if (!valid_index(own, role->handles.count) || !valid_index(other, role->handles.count)) return false;
    for (size_t i = 0; i < r->handles.count; i++)
        if (r->handles.items[i].own == own || r->handles.items[i].other == other)
            return r->handles.items[i].own == own && r->handles.items[i].other == other;
    vec_push(r->part->arena, &r->handles, (Pair){own, other});
    const Handle *a = &role->handles.items[own], *b = &role->handles.items[other];
    return a->pipe == b->pipe && a->end == b->end;
}

static bool same_region(const Roller *r, int own, int other) {
    for (size_t i = 0; i < r->regions.count; i++)
        if (r->regions.items[i].own == own) return r->regions.items[i].other == other;
    return false; /* it is around what is compared */
}

static bool same_where(const Roller *r, const Region *own, const Region *other) {
    if (!own->where || !other->where) return !own->where && !other->where;
    return own->domain == other->domain && same_poly(r, own->begin, own->where, other->begin, other->where);
}

static bool same_loop(Roller *r, int own_at, int other_at) {
    const Region *own = region_at(r, own_at), *other = region_at(r, other_at);
    if (own->kind != REGION_FOR || other->kind != REGION_FOR) return false;
    if (!same_poly(r, own_at, own->lo, other_at, other->lo) || !same_poly(r, own_at, own->hi, other_at, other->hi))
        return false;
    if (own->var >= 0 && other->var >= 0) vec_push(r->part->arena, &r->locals, (Pair){own->var, other->var});
    return same_where(r, own, other);
}

static bool begins_region(RowKind kind) { return kind == ROW_LOOP || kind == ROW_IF || kind == ROW_BLOCK; }

static bool same_begin(Roller *r, int own_at, int other_at) {
    const Row *own = &r->slice->rows.items[own_at], *other = &r->slice->rows.items[other_at];
    vec_push(r->part->arena, &r->regions, (Pair){own->region, other->region});
    if (own->kind == ROW_LOOP) return same_loop(r, own_at, other_at);
    if (own->kind != ROW_IF) return true;
    return same_poly(r, own_at, region_at(r, own_at)->condition, other_at, region_at(r, other_at)->condition);
}

/* What a late set keeps at once, or after its lag */
static bool same_late(const Roller *r, int own, int other) {
    const Late *a = &r->slice->lates.items[own], *b = &r->slice->lates.items[other];
    if (a->lag <= 0 && b->lag <= 0) return true;
    return own == other ? false : a->lag == b->lag && same_region(r, a->loop, b->loop);
}

static RowKind kind_of(const Roller *r, const Row *row) {
    return row->kind == ROW_KEEP && r->slice->lates.items[row->late].lag <= 0 ? ROW_RELEASE : row->kind;
}

static bool same_row(Roller *r, int own_at, int other_at) {
    const Row *own = &r->slice->rows.items[own_at], *other = &r->slice->rows.items[other_at];
    RowKind kind = kind_of(r, own);
    if (kind != kind_of(r, other)) return false;
    if (begins_region(kind)) return same_begin(r, own_at, other_at);
    if (kind == ROW_NEXT || kind == ROW_ELSE || kind == ROW_END) return same_region(r, own->region, other->region);
    if (kind == ROW_LEAVE) return own->again == other->again && same_region(r, own->target, other->target);
    if (kind == ROW_FLUSH) return same_late(r, own->late, other->late);
    if (kind == ROW_TAKE || kind == ROW_PASS || kind == ROW_EXIT) return false;
    if (kind == ROW_KEEP && !same_late(r, own->late, other->late)) return false;
    return same_handle(r, own->handle, other->handle) && (kind != ROW_MOVE || same_handle(r, own->other, other->other));
}

static bool same_rows(Roller *r, Rows own, Rows other) {
    if (own.end - own.at != other.end - other.at) return false;
    for (; own.at < own.end; own.at++, other.at++) {
        arena_count(r->part->arena, 1);
        if (budget_is_used(r->work) || !same_row(r, own.at, other.at)) return false;
    }
    return true;
}

static int mentions(const Roller *r, Rows rows, int handle) {
    int count = 0;
    for (int at = rows.at; at < rows.end; at++) {
        const Row *row = &r->slice->rows.items[at];
        if (begins_region(row->kind) || row->kind == ROW_LEAVE || row->kind == ROW_FLUSH) continue;
        count += (row->handle == handle) + (row->kind == ROW_MOVE && row->other == handle);
    }
    return count;
}

/* A stage variable that is another one in the later piece is used in neither but its own: nothing is carried in or out */
static bool handles_apart(const Roller *r, Rows earlier, Rows later) {
    Rows all = {0, (int)r->slice->rows.count};
    for (size_t i = 0; i < r->handles.count; i++) {
        Pair pair = r->handles.items[i];
        if (pair.own == pair.other || pair.own < 0) continue;
        if (mentions(r, later, pair.own) || mentions(r, earlier, pair.other)) return false;
        if (mentions(r, all, pair.own) != mentions(r, earlier, pair.own)) return false;
        if (mentions(r, all, pair.other) != mentions(r, later, pair.other)) return false;
    }
    return true;
}

/* ---- rolling up ---------------------------------------------------------------------------------------------------- */

static void roll_up(Roller *r, Rows earlier, int loop, Expr *lo) {
    for (int at = earlier.at; at < earlier.end; at++) r->side->without[r->slice->whole_rows.items[at]] = true;
    vec_push(r->part->arena, &r->begins, (Begin){r->slice->whole_regions.items[loop], lo});
}

/* The two sides of `lo < hi` */
static bool is_below(const Expr *condition, Expr **lo, Expr **hi) {
    if (!condition || condition->kind != X_BINARY) return false;
    BinaryOp op = condition->binary.op;
    if (op != OP_LT && op != OP_GT) return false;
    *lo = op == OP_LT ? condition->binary.left : condition->binary.right;
    *hi = op == OP_LT ? condition->binary.right : condition->binary.left;
    return true;
}

/* if lo < hi { rows; for k in lo + 1 .. hi { rows } } */
static bool roll_peeled(Roller *r, const Region *branch) {
    int64_t one;
    Expr *lo, *hi;
    int last = branch->otherwise - 1;
    if (branch->otherwise + 1 != branch->end || !is_below(branch->condition, &lo, &hi)) return false;
    const Region *loop = region_at(r, last);
    if (r->slice->rows.items[last].kind != ROW_END || loop->kind != REGION_FOR || loop->where) return false;
    if (loop->parent != (int)(branch - r->slice->regions.items)) return false;
    Rows rows = {branch->begin + 1, loop->begin}, body = {loop->begin + 1, loop->next};
    compare_anew(r);
    if (rows.at == rows.end || !same_poly(r, branch->begin, hi, loop->begin, loop->hi)) return false;
    r->first = poly_at(r, branch->begin, lo);
    const Poly *second = poly_at(r, loop->begin, loop->lo);
    if (!r->first || !second || !poly_is_constant(poly_sum(r->algebra, second, r->first, -1), &one) || one != 1)
        return false;
    r->first_of = loop->var;
    if (!poly_equal(r->first, poly_at(r, loop->begin, lo)) || !same_rows(r, rows, body)) return false;
    Rows whole = {loop->begin, loop->end + 1};
    if (!handles_apart(r, rows, whole)) return false;
    roll_up(r, rows, r->slice->rows.items[last].region, lo);
    r->opened[r->slice->whole_regions.items[branch - r->slice->regions.items]] = true;
    return true;
}

static bool all_among(const Polys *some, const Polys *all, const Poly *also) {
    for (size_t i = 0; i < some->count; i++) {
        bool found = also && poly_equal(some->items[i], also);
        for (size_t k = 0; k < all->count && !found; k++) found = poly_equal(some->items[i], all->items[k]);
        if (!found) return false;
    }
    return true;
}

/* lo .. min(mid, hi) and mid .. hi, lo <= mid */
static bool is_range_of_two(Roller *r, const Region *before, const Region *after) {
    const Poly *lo = poly_at(r, before->begin, before->lo), *mid = poly_at(r, after->begin, after->lo);
    const Poly *ends = poly_at(r, before->begin, before->hi), *hi = poly_at(r, after->begin, after->hi);
    Polys before_ends = {0}, after_ends = {0}, joint = {0};
    const Poly *first = poly_sum(r->algebra, mid, lo, -1);
    if (!ends || !hi || !algebra_proves(r->algebra, CLAIM_NOT_NEGATIVE, first)) return false;
    part_operands(r->part, r->algebra, ATOM_MIN, ends, &before_ends);
    part_operands(r->part, r->algebra, ATOM_MIN, hi, &after_ends);
    vec_push(r->part->arena, &joint, mid);
    return all_among(&before_ends, &after_ends, mid) && all_among(&after_ends, &before_ends, NULL) &&
           all_among(&joint, &before_ends, NULL);
}

static bool roll_pieces(Roller *r, const Region *after) {
    int before_end = after->begin - 1;
    if (after->kind != REGION_FOR || r->slice->rows.items[before_end].kind != ROW_END) return false;
    const Region *before = region_at(r, before_end);
    if (before->kind != REGION_FOR || before->parent != after->parent) return false;
    compare_anew(r);
    if (!is_range_of_two(r, before, after)) return false;
    if (!poly_equal(poly_at(r, before->begin, before->lo), poly_at(r, after->begin, before->lo))) return false;
    if (before->var >= 0 && after->var >= 0) vec_push(r->part->arena, &r->locals, (Pair){before->var, after->var});
    if (!same_where(r, before, after)) return false;
    Rows own = {before->begin + 1, before->next}, other = {after->begin + 1, after->next};
    if (!same_rows(r, own, other)) return false;
    Rows earlier = {before->begin, before->end + 1}, later = {after->begin, after->end + 1};
    if (!handles_apart(r, earlier, later)) return false;
    roll_up(r, earlier, (int)(after - r->slice->regions.items), before->lo);
    return true;
}

/* Inner regions come before those around them */
static bool roll_once(Roller *r) {
    for (size_t i = r->slice->regions.count; i-- > 1;) {
        const Region *region = &r->slice->regions.items[i];
        if (region->kind == REGION_IF && roll_peeled(r, region)) return true;
        if (region->begin > 0 && roll_pieces(r, region)) return true;
    }
    return false;
}

/* The slice without the rows that are rolled up, its loops with their first values */
static FlowCode *rolled_slice(const Roller *r) {
    FlowCode *slice = part_slice(r->part, r->side, r->opened);
    for (size_t i = 0; i < slice->regions.count; i++)
        for (size_t k = 0; k < r->begins.count; k++)
            if (r->begins.items[k].loop == slice->whole_regions.items[i])
                slice->regions.items[i].lo = r->begins.items[k].lo;
    return slice;
}

FlowCode *part_roll(Part *part, const Side *side, FlowCode *slice) {
    Roller r = {.part = part, .side = side, .code = side->role->code, .slice = slice};
    r.work = arena_budget(part->arena, ROLL_STEPS);
    FlowCode *rolled = NULL;
    r.algebra = r.code->algebra;
    r.opened = NEW_ARRAY(part->arena, bool, r.code->regions.count + 1);
    while (roll_once(&r)) r.slice = rolled = rolled_slice(&r);
    return rolled;
}
