/* The number of acquires of an end of a pipe, as a polynomial, in which two roles are compared.
 * Conditions are numbers 0 and 1, loops are sums, and an early exit subtracts the acquires that
 * it skips. A range from lo to hi has max(lo, hi) - lo iterations: pieces of a range add up to
 * the whole. */
#include "check/pipes/counts.h"

#include "flow/values.h"

/* Counts are multiplied by it, so that sums of sums (n (n - 1) / 2) are integers */
#define SCALE       720
#define LEAVES_MOST 16

typedef struct Leaving {
    int target; /* a region of the slice */
    bool again;
    const Poly *truth; /* 1 if control leaves this way */
} Leaving;

typedef struct Walked { /* result for a list of rows */
    const Poly *count;  /* NULL: not a formula */
    const Poly *on;     /* 1 if control reaches its end */
    Leaving leaves[LEAVES_MOST];
    int leave_count;
} Walked;

typedef struct Live { /* number of live iterations of a range with a `where` */
    const Poly *count;
    int name; /* an atom that represents it: an integer >= 0 */
} Live;

typedef VEC(Live) Lives;

typedef struct Counting {
    Arena *arena;
    Lives *lives; /* of both ends */
    const Prog *prog;
    Algebra *algebra;
    const EndCode *end;
    const Emptiness *known;
    const Poly *tile; /* in one iteration of the grid */
    int loop;         /* region of the slice: the innermost enclosing loop, -1: none */
} Counting;

static const Walked failed = {0};

static const Row *row_of(const Counting *c, int at) { return &c->end->slice->rows.items[at]; }
static const Region *region_of(const Counting *c, int r) {
    return &c->end->slice->regions.items[r];
}

static Walked nothing(const Counting *c) {
    return (Walked){.count = poly_constant(c->algebra, 0), .on = poly_constant(c->algebra, 1)};
}

static void take(const Counting *c, Walked *to, Leaving leaving) {
    int64_t zero;
    if (!leaving.truth) *to = failed;
    if (!to->count || (poly_is_constant(leaving.truth, &zero) && zero == 0)) return;
    for (int i = 0; i < to->leave_count; i++)
        if (to->leaves[i].target == leaving.target && to->leaves[i].again == leaving.again) {
            to->leaves[i].truth = poly_sum(c->algebra, to->leaves[i].truth, leaving.truth, 1);
            return;
        }
    if (to->leave_count == LEAVES_MOST)
        *to = failed;
    else
        to->leaves[to->leave_count++] = leaving;
}

/* Adds the leaves of `from`, for `truth` = 1 */
static void take_all(const Counting *c, Walked *to, const Walked *from, const Poly *truth) {
    for (int i = 0; i < from->leave_count; i++) {
        Leaving leaving = from->leaves[i];
        leaving.truth = poly_product(c->algebra, truth, leaving.truth);
        take(c, to, leaving);
    }
}

/* ---- formulas -------------------------------------------------------------------------------- */

/* True for a version of a variable that is set in an enclosing loop: it differs between
 * iterations. */
static bool varies(const Counting *c, const Atom *atom) {
    if (atom->kind != ATOM_OPAQUE || !atom->role || atom->args[0]) return false;
    const FlowCode *whole = c->end->role->code;
    for (int loop = c->loop; loop >= 0;) {
        const Region *region = &whole->regions.items[c->end->slice->whole_regions.items[loop]];
        if (atom->index >= region->begin && atom->index < region->end) return true;
        int parent = region_of(c, loop)->parent;
        loop = parent < 0 ? -1 : region_of(c, parent)->loop;
    }
    return false;
}

/* True if a value changes during the count, or differs between iterations without a formula */
static bool is_loose(const Counting *c, const Poly *poly, Visited *visited) {
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++) {
            int id = poly->terms[i].atoms[k];
            const Atom *atom = &c->algebra->atoms.items[id];
            if (atom->changes || varies(c, atom)) return true;
            if (visit_again(c->algebra, visited, id)) continue;
            for (int a = 0; a < 3 && atom->args[a]; a++)
                if (is_loose(c, atom->args[a], visited)) return true;
        }
    return false;
}

/* whole: a row of the whole Code */
static const Poly *whole_formula(const Counting *c, int whole, Expr *expr) {
    if (!expr || expr->kind == X_POISON) return NULL;
    const Poly *poly = values_import(c->arena, c->end->role->code, whole, expr, c->algebra);
    poly = poly_normal(c->algebra, poly);
    return poly && !is_loose(c, poly, &(Visited){0}) ? poly : NULL;
}

static const Poly *formula(const Counting *c, int at, Expr *expr) {
    return whole_formula(c, c->end->slice->whole_rows.items[at], expr);
}

static const Poly *chosen(const Counting *c, const Poly *truth, const Poly *then,
                          const Poly *otherwise) {
    const Poly *more = poly_sum(c->algebra, then, otherwise, -1);
    return poly_sum(c->algebra, otherwise, poly_product(c->algebra, truth, more), 1);
}

static int loop_atom(const Counting *c, const Region *loop) {
    return algebra_atom_local(c->algebra, c->end->role, loop->var);
}

/* The sum over the iterations, in the same scale; sums of truths are integers */
static const Poly *over(const Counting *c, int atom, const Poly *lo, const Poly *hi,
                        const Poly *each) {
    return poly_sum_over(c->algebra, atom, lo, hi, poly_normal(c->algebra, each));
}

/* The atom for the live iterations of a loop with a `where`; begin: its first row in the whole
 * Code */
static const Poly *live_iterations(const Counting *c, const Region *loop, int begin) {
    if (loop->var < 0) return NULL;
    const Poly *lo = whole_formula(c, begin, loop->lo), *hi = whole_formula(c, begin, loop->hi);
    const Poly *truth = whole_formula(c, begin, loop->where);
    if (!lo || !hi || !truth) return NULL;
    hi = poly_larger(c->algebra, lo, hi);
    const Poly *live = hi ? over(c, loop_atom(c, loop), lo, hi, truth) : NULL;
    int64_t known;
    if (!live || poly_is_constant(live, &known)) return live;
    for (size_t i = 0; i < c->lives->count; i++)
        if (poly_equal(c->lives->items[i].count, live))
            return poly_atom(c->algebra, c->lives->items[i].name);
    vec_push(c->arena, c->lives, ((Live){live, algebra_part(c->algebra, 0)}));
    return poly_atom(c->algebra, c->lives->items[c->lives->count - 1].name);
}

/* ---- branches -------------------------------------------------------------------------------- */

/* For an IF that tests if a range with a `where` has an iteration: from the atom of its live
 * iterations */
static const Poly *truth_of(const Counting *c, const Region *branch) {
    if (branch->search < 0) return formula(c, branch->begin, branch->condition);
    const Region *search = &c->end->role->code->regions.items[branch->search];
    const Poly *live = live_iterations(c, search, search->begin);
    return poly_truth(c->algebra, poly_offset(c->algebra, live, -1));
}

static Walked walk(Counting *c, int at, int end, bool top);

static Walked branch(Counting *c, int index) {
    const Region *region = region_of(c, index);
    Emptiness known = valid_index(region->nonempty, c->prog->domains.count)
                          ? c->known[region->nonempty]
                          : MAYBE_EMPTY;
    if (known == NONEMPTY) return walk(c, region->begin + 1, region->otherwise, false);
    if (known == EMPTY) return walk(c, region->otherwise + 1, region->end, false);
    Walked then = walk(c, region->begin + 1, region->otherwise, false), both = nothing(c);
    Walked otherwise = walk(c, region->otherwise + 1, region->end, false);
    if (!then.count || !otherwise.count) return failed;
    bool stays = then.leave_count == 0 && otherwise.leave_count == 0;
    if (stays && poly_equal(then.count, otherwise.count)) return then;
    const Poly *truth = truth_of(c, region);
    if (!truth) return failed;
    both.count = chosen(c, truth, then.count, otherwise.count);
    both.on = chosen(c, truth, then.on, otherwise.on);
    take_all(c, &both, &then, truth);
    take_all(c, &both, &otherwise, poly_sum(c->algebra, poly_constant(c->algebra, 1), truth, -1));
    return both;
}

static Walked block(Counting *c, int index) {
    const Region *region = region_of(c, index);
    Walked inner = walk(c, region->begin + 1, region->end, false);
    Walked all = {.count = inner.count, .on = inner.on};
    for (int i = 0; i < inner.leave_count; i++) {
        bool is_target = inner.leaves[i].target == index;
        if (is_target)
            all.on = poly_sum(c->algebra, all.on, inner.leaves[i].truth, 1);
        else
            take(c, &all, inner.leaves[i]);
    }
    return all;
}

/* ---- loops ----------------------------------------------------------------------------------- */

/* The rows from `at` to `end`, in an iteration of the loop */
static Walked loop_body(Counting *c, int index, int at, int end) {
    int around = c->loop;
    c->loop = index;
    Walked body = walk(c, at, end, false);
    c->loop = around;
    return body;
}

/* Iterations that are not live count 0 */
static Walked where_live(Counting *c, const Region *loop, const Walked *body) {
    const Poly *truth = formula(c, loop->begin, loop->where);
    Walked some = {.count = poly_product(c->algebra, truth, body->count), .on = body->on};
    take_all(c, &some, body, truth);
    return some;
}

/* The number of live iterations of a loop with a `where`, or of a piece of them. NULL: no
 * formula */
static const Poly *live_piece(const Counting *c, const Region *loop, const Region *piece) {
    Algebra *algebra = c->algebra;
    const Poly *live = live_iterations(c, loop, c->end->slice->whole_rows.items[loop->begin]),
               *to = live;
    if (!piece) return live;
    const Poly *from =
        poly_larger(algebra, formula(c, piece->begin, piece->from), poly_constant(algebra, 0));
    if (piece->to) to = poly_smaller(algebra, formula(c, piece->begin, piece->to), live);
    return poly_sum(algebra, poly_larger(algebra, from, to), from, -1);
}

/* For a loop with a `where` whose live iterations have equal counts; false: they do not */
static bool count_alike(Counting *c, const Region *loop, const Region *piece, const Walked *body,
                        Walked *all) {
    if (body->leave_count || poly_mentions(c->algebra, body->count, loop_atom(c, loop)))
        return false;
    *all = nothing(c);
    all->count = poly_product(c->algebra, live_piece(c, loop, piece), body->count);
    return all->count != NULL;
}

/* Ends with the first iteration that leaves it */
static const Poly *shortened(const Counting *c, int index, int atom, const Poly *lo, const Poly *hi,
                             const Walked *body) {
    const Poly *ends = poly_constant(c->algebra, 0);
    for (int i = 0; i < body->leave_count; i++) {
        if (body->leaves[i].target == index && body->leaves[i].again) continue;
        ends = poly_sum(c->algebra, ends, poly_normal(c->algebra, body->leaves[i].truth), 1);
    }
    return ends && ends->count ? poly_first(c->algebra, atom, lo, hi, ends) : ends ? hi : NULL;
}

static Walked loop(Counting *c, int index) {
    const Region *region = region_of(c, index);
    Algebra *algebra = c->algebra;
    Walked all = nothing(c);
    if (region->domain >= 0 && c->known[region->domain] == EMPTY) return all;
    if (region->var < 0) return failed;
    const Region *piece = code_piece(c->end->slice, region);
    const Poly *lo = formula(c, region->begin, region->lo),
               *hi = formula(c, region->begin, region->hi);
    if (!lo || !hi) return failed;
    hi = poly_larger(algebra, lo, hi);
    int atom = loop_atom(c, region);
    PathMark outside = algebra_mark(algebra);
    algebra_assume_range(algebra, poly_atom(algebra, atom), lo, hi);
    Walked body = piece ? loop_body(c, index, piece->begin + 1, piece->otherwise)
                        : loop_body(c, index, region->begin + 1, region->next);
    algebra_undo(algebra, outside);
    if (!hi || !body.count) return failed;
    if (region->where && count_alike(c, region, piece, &body, &all)) return all;
    if (piece) return failed;
    if (region->where) body = where_live(c, region, &body);
    if (!body.count) return failed;
    hi = shortened(c, index, atom, lo, hi, &body);
    if (!hi) return failed;
    for (int i = 0; i < body.leave_count; i++) {
        Leaving leaving = body.leaves[i];
        if (leaving.target == index) continue;
        leaving.truth = over(c, atom, lo, hi, leaving.truth);
        take(c, &all, leaving);
        all.on = poly_sum(algebra, all.on, leaving.truth, -1);
    }
    all.count = over(c, atom, lo, hi, body.count);
    return all.count && all.on ? all : failed;
}

static bool acquires_after(const Counting *c, int at) {
    for (size_t i = (size_t)at; i < c->end->slice->rows.count; i++)
        if (row_of(c, (int)i)->kind == ROW_ACQUIRE) return true;
    return false;
}

/* Counts one tile. An exit in one tile does not affect the others, or the rows after the loop; a
 * block of one tile has no others. */
static bool grid(Counting *c, int index, const Walked *before) {
    const Region *region = region_of(c, index);
    int around = c->loop;
    c->loop = index;
    Walked body = walk(c, region->begin + 1, region->next, false);
    c->loop = around;
    bool alone = !c->prog->persistent && !acquires_after(c, region->end);
    for (int i = 0; i < body.leave_count && !alone; i++)
        if (body.leaves[i].target != index || !body.leaves[i].again) return false;
    c->tile = poly_sum(c->algebra, c->tile, poly_product(c->algebra, before->on, body.count), 1);
    return c->tile != NULL;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* For a row, and for the region that begins with it */
static Walked part(Counting *c, int at) {
    const Row *row = row_of(c, at);
    Walked one = nothing(c);
    if (row->kind == ROW_ACQUIRE) one.count = poly_constant(c->algebra, SCALE);
    if (row->kind == ROW_IF) return branch(c, row->region);
    if (row->kind == ROW_BLOCK) return block(c, row->region);
    if (row->kind == ROW_LOOP)
        return region_of(c, row->region)->kind == REGION_GRID ? failed : loop(c, row->region);
    if (row->kind != ROW_LEAVE) return one;
    one.on = poly_constant(c->algebra, 0);
    take(c, &one, (Leaving){row->target, row->again, poly_constant(c->algebra, 1)});
    return one;
}

/* The rows from `at` to `end`, exclusive. `top`: outside of all regions */
static Walked walk(Counting *c, int at, int end, bool top) {
    Algebra *algebra = c->algebra;
    Walked all = nothing(c);
    for (; at < end; at++) {
        const Row *row = row_of(c, at);
        bool begins = row_begins(row->kind);
        if (row->kind == ROW_LOOP && top && region_of(c, row->region)->kind == REGION_GRID) {
            if (!grid(c, row->region, &all)) return failed;
        } else {
            Walked one = part(c, at);
            if (!one.count) return failed;
            const Poly *more = poly_product(algebra, all.on, one.count);
            all.count = poly_sum(algebra, all.count, more, 1);
            take_all(c, &all, &one, all.on);
            all.on = poly_product(algebra, all.on, one.on);
            if (!all.count || !all.on) return failed;
        }
        if (begins) at = region_of(c, row->region)->end;
    }
    return all;
}

typedef struct Total {
    const Poly *outside, *tile; /* of the grid; NULL: no formula */
} Total;

static Total total(Arena *arena, const Prog *prog, Algebra *algebra, const EndCode *end,
                   const Emptiness *known, Lives *lives) {
    Counting c = {.arena = arena,
                  .lives = lives,
                  .prog = prog,
                  .algebra = algebra,
                  .end = end,
                  .known = known,
                  .loop = -1};
    c.tile = poly_constant(algebra, 0);
    algebra_work_anew(algebra);
    Walked all = walk(&c, 1, region_of(&c, 0)->end, true);
    return (Total){all.count, all.count ? c.tile : NULL};
}

/* ---- assumptions ----------------------------------------------------------------------------- */

Expr *domain_nonempty(Arena *arena, const Prog *prog, int domain) {
    const Domain *row = &prog->domains.items[domain];
    if (!row->lo || !row->hi || row->where) return NULL;
    if (row->lo->kind == X_POISON || row->hi->kind == X_POISON) return NULL;
    return expr_binary(arena, OP_LT, row->lo, row->hi, row->span);
}

Expr *positive(Arena *arena, Expr *expr) {
    int64_t by;
    while (expr->kind == X_CALL && expr->call.which == IN_ceil_div &&
           expr_constant(expr->call.args[1], &by) && by > 0)
        expr = expr->call.args[0];
    Expr *one = expr_integer(arena, expr->type, 1, expr->span);
    return expr_binary(arena, OP_GE, expr, one, expr->span);
}

static void suppose(Arena *arena, Prog *prog, Expr *condition) {
    if (condition && condition->kind != X_CONST)
        vec_push(arena, &prog->preconditions, (Precondition){.condition = condition});
}

static void suppose_ranges(Arena *arena, Prog *prog, const Emptiness *known) {
    for (size_t d = 0; d < prog->domains.count; d++) {
        Expr *nonempty = known[d] == MAYBE_EMPTY ? NULL : domain_nonempty(arena, prog, (int)d);
        const Domain *row = &prog->domains.items[d];
        if (nonempty && known[d] == EMPTY)
            nonempty = expr_binary(arena, OP_LE, row->hi, row->lo, nonempty->span);
        suppose(arena, prog, nonempty);
    }
}

static bool equal(Algebra *algebra, const Poly *a, const Poly *b) {
    return algebra_proves(algebra, CLAIM_ZERO, poly_sum(algebra, a, b, -1));
}

/* In an iteration of the grid no axis is empty. */
static bool totals_equal(Arena *arena, Prog *prog, Algebra *algebra, const Total *x,
                         const Total *y) {
    size_t facts = prog->preconditions.count;
    bool same = equal(algebra, x->outside, y->outside);
    for (size_t i = 0; i < prog->axes.count && same; i++) {
        Expr *extent = prog->axes.items[i].extent;
        if (extent && extent->kind != X_POISON) suppose(arena, prog, positive(arena, extent));
    }
    same = same && equal(algebra, x->tile, y->tile);
    prog->preconditions.count = facts;
    return same;
}

/* Replaces the atoms of live iterations by their formulas. */
static Total spelled(Algebra *algebra, const Lives *lives, Total total) {
    for (size_t i = 0; i < lives->count; i++) {
        const Live *live = &lives->items[i];
        total.outside =
            total.outside ? poly_replace(algebra, total.outside, live->name, live->count) : NULL;
        total.tile = total.tile ? poly_replace(algebra, total.tile, live->name, live->count) : NULL;
    }
    return total;
}

/* Assumes `known` during the comparison. First compares with atoms for live iterations: the
 * prover makes cases for atoms, but not for sums. */
bool counts_equal(Arena *arena, Prog *prog, const EndCode *ends, const Emptiness *known) {
    size_t facts = prog->preconditions.count;
    Algebra *algebra = algebra_of_counts(arena, prog);
    suppose_ranges(arena, prog, known);
    Lives lives = {0};
    Total x = total(arena, prog, algebra, &ends[0], known, &lives);
    Total y = total(arena, prog, algebra, &ends[1], known, &lives);
    for (size_t i = 0; i < lives.count; i++) {
        algebra_assume_poly(algebra, poly_atom(algebra, lives.items[i].name));
        algebra_assume_poly(algebra, lives.items[i].count);
    }
    bool same = totals_equal(arena, prog, algebra, &x, &y);
    if (!same && lives.count) {
        x = spelled(algebra, &lives, x), y = spelled(algebra, &lives, y);
        same = totals_equal(arena, prog, algebra, &x, &y);
    }
    prog->preconditions.count = facts;
    return same;
}

#define WRAPS_MOST 16

/* Without wraps: each value as if its type were wide enough */
static const Poly *widened(Algebra *algebra, const Poly *poly) {
    for (int i = 0; poly && poly_wraps(algebra, poly); i++) {
        int wrap = -1;
        for (size_t id = 0; id < algebra->atoms.count && wrap < 0; id++)
            if (algebra->atoms.items[id].kind == ATOM_WRAP && poly_mentions(algebra, poly, (int)id))
                wrap = (int)id;
        if (wrap < 0 || i == WRAPS_MOST) return NULL;
        const Poly *is = algebra->atoms.items[wrap].args[0];
        poly = poly_normal(algebra, poly_replace(algebra, poly, wrap, is));
    }
    return poly;
}

bool counts_equal_unless_wraps(Arena *arena, Prog *prog, const EndCode *ends) {
    Emptiness *known = NEW_ARRAY(arena, Emptiness, prog->domains.count + 1);
    Algebra *algebra = algebra_of_counts(arena, prog);
    Lives lives = {0};
    Total totals[2];
    for (int i = 0; i < 2; i++) {
        Total counted = total(arena, prog, algebra, &ends[i], known, &lives);
        counted = spelled(algebra, &lives, counted);
        totals[i] = (Total){widened(algebra, counted.outside), widened(algebra, counted.tile)};
    }
    return totals_equal(arena, prog, algebra, &totals[0], &totals[1]);
}

/* A constant count; false: it depends on sizes */
static bool constant(const Poly *poly, int64_t *value) {
    bool known = poly_is_constant(poly, value) && *value % SCALE == 0;
    if (known) *value /= SCALE;
    return known;
}

bool counts_constant(Arena *arena, const Prog *prog, const EndCode *ends, int64_t *acquired) {
    Emptiness *known = NEW_ARRAY(arena, Emptiness, prog->domains.count + 1);
    Algebra *algebra = algebra_of_counts(arena, prog);
    Lives lives = {0};
    int64_t outside;
    for (int i = 0; i < 2; i++) {
        Total counted = total(arena, prog, algebra, &ends[i], known, &lives);
        if (!constant(counted.outside, &outside) || outside != 0 ||
            !constant(counted.tile, &acquired[i]))
            return false;
    }
    return acquired[0] != acquired[1];
}

bool counts_nothing(Arena *arena, Prog *prog, const EndCode *end, const Emptiness *known) {
    Algebra *algebra = algebra_of_counts(arena, prog);
    const Poly *zero = poly_constant(algebra, 0);
    Lives lives = {0};
    Total counted = total(arena, prog, algebra, end, known, &lives);
    return equal(algebra, counted.outside, zero) && equal(algebra, counted.tile, zero);
}
