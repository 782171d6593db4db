/* Which loops of different roles are one and the same, and which conditions. A bound or a condition is a number of which it is asked whether
 * it is greater than something: 2 * K + 1 trips are K seen twice and one more, `a < b` asks b - a. Numbers are equal where their
 * polynomials are, loop variables of loops that run alike taken for the same. What is not found equal is only less known: then all is tried. */
#include "check/lockstep.h"

#define PERIOD_MOST 2048
#define LEAST_MOST 8     /* how often something certainly is at least */
#define FIXED_MOST 64    /* trips that are all told apart */

static const Loop *loop_of(const Clocks *clocks, int member, int loop) {
    return loop < 0 ? NULL : &clocks->members.items[member].loops.items[loop];
}

static int track_of(const Clocks *clocks, int member, int loop) { return loop < 0 ? -1 : loop_of(clocks, member, loop)->track; }

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

static bool in_grid(const Clocks *clocks, int member, int around) {
    for (const Loop *loop = loop_of(clocks, member, around); loop; loop = loop_of(clocks, member, loop->outer))
        if (loop->stmt->kind == S_GRID) return true;
    return false;
}

Algebra *clocks_algebra(const Clocks *clocks, int member, int around) { return clocks->algebra[in_grid(clocks, member, around)]; }

/* ---- formulas in terms of tracks -------------------------------------------------------------------------------------- */

static bool mentions_track(const Clocks *clocks, Algebra *algebra, const Poly *poly, const Track *track) {
    if (track->stmt->kind == S_FOR)
        return track->stmt->loop.var >= 0 && poly_mentions(algebra, poly, algebra_atom_local(algebra, track->role, track->stmt->loop.var));
    for (size_t i = 0; i < clocks->prog->axes.count; i++)
        if (track->stmt->grid.vars[i] >= 0 &&
            poly_mentions(algebra, poly, algebra_atom_local(algebra, track->role, track->stmt->grid.vars[i])))
            return true;
    return false;
}

/* The loop variables around stand for those of the tracks */
static const Poly *formula(Clocks *clocks, int member, int around, Expr *expr) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    const Role *role = clocks->members.items[member].role;
    const Poly *poly = algebra_poly(algebra, role, expr);
    for (const Loop *loop = loop_of(clocks, member, around); loop && poly; loop = loop_of(clocks, member, loop->outer)) {
        const Track *track = &clocks->tracks.items[loop->track];
        if (loop->stmt->kind != S_FOR || loop->stmt->loop.var < 0 || track->role == role) continue;
        int own = algebra_atom_local(algebra, role, loop->stmt->loop.var);
        int shared = algebra_atom_local(algebra, track->role, track->stmt->loop.var);
        if (own != shared) poly = poly_replace(algebra, poly, own, poly_atom(algebra, shared));
    }
    return poly;
}

/* The innermost track of which it depends, -1: of none */
static int depends_on(const Clocks *clocks, int member, int around, const Poly *poly) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    for (const Loop *loop = loop_of(clocks, member, around); loop; loop = loop_of(clocks, member, loop->outer))
        if (mentions_track(clocks, algebra, poly, &clocks->tracks.items[loop->track])) return loop->track;
    return -1;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------------- */

static int64_t common_divisor(int64_t a, int64_t b) {
    a = a < 0 ? -a : a;
    b = b < 0 ? -b : b;
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* poly = times * rest + plus; times > 0 */
static const Poly *primitive(Clocks *clocks, const Poly *poly, int64_t *times, int64_t *plus) {
    int64_t common = 0;
    *plus = poly->count && poly->terms[0].count == 0 ? poly->terms[0].coef : 0;
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count) common = common_divisor(common, poly->terms[i].coef);
    if (!common || common < 0) return NULL;
    Poly *rest = arena_alloc(clocks->arena, sizeof(Poly) + (size_t)poly->count * sizeof(Term));
    for (int i = 0; i < poly->count; i++) {
        if (!poly->terms[i].count) continue;
        rest->terms[rest->count] = poly->terms[i];
        rest->terms[rest->count++].coef /= common;
    }
    *times = common;
    return rest;
}

static const Atom *only_atom(const Algebra *algebra, const Poly *poly) {
    if (!poly || poly->count != 1 || poly->terms[0].count != 1 || poly->terms[0].coef != 1) return NULL;
    return &algebra->atoms.items[poly->terms[0].atoms[0]];
}

static void learn_bounds(Algebra *algebra, Number *number) {
    const Atom *atom = only_atom(algebra, number->poly);
    int64_t by;
    number->low = number->grid || number->where >= 0 || (atom && atom->type == E_BOOL) ? -1 : ALWAYS;
    number->high = NEVER;
    if (number->grid || number->where >= 0 || number->changes) return;
    if (atom && atom->type == E_BOOL) number->high = 1;
    else if (atom && atom->kind == ATOM_MOD && poly_is_constant(atom->args[1], &by) && by > 0 && by < NEVER) number->high = (int32_t)by - 1;
    for (int i = 0; atom && atom->kind == ATOM_MIN && i < 2; i++)
        if (poly_is_constant(atom->args[i], &by) && by > -NEVER / 2 && by < number->high) number->high = (int32_t)by;
    if (atom && atom->type == E_BOOL) return;
    for (int least = 0; least < LEAST_MOST; least++) { /* is it at least this? */
        if (!poly_at_least_zero(algebra, poly_sum(algebra, number->poly, poly_constant(algebra, least), -1))) break;
        number->low = least - 1;
    }
}

/* Counters are forgotten in whole periods; false where they would be too long */
static bool add_period(Clocks *clocks, const Track *track, int64_t by) {
    if (track->shape.group < 0) return true;
    Group *group = &clocks->groups.items[track->shape.group];
    int64_t period = group->period / common_divisor(group->period, by) * by;
    if (period > PERIOD_MOST) return false;
    group->period = period;
    return true;
}

/* A loop variable, or its rest: then it is known without asking */
static void find_counter(Clocks *clocks, Algebra *algebra, Number *number) {
    int64_t from, by = 0;
    number->counter = -1;
    if (number->track < 0 || number->grid || number->where >= 0) return;
    const Track *track = &clocks->tracks.items[number->track];
    if (track->stmt->kind != S_FOR || track->stmt->loop.var < 0 || track->stmt->loop.where || track->changes) return;
    const Poly *poly = number->poly;
    const Atom *atom = only_atom(algebra, poly);
    if (atom && atom->kind == ATOM_MOD && poly_is_constant(atom->args[1], &by) && by > 0) poly = atom->args[0];
    const Poly *variable = poly_atom(algebra, algebra_atom_local(algebra, track->role, track->stmt->loop.var));
    const Poly *rest = poly_sum(algebra, poly_sum(algebra, poly, variable, -1), track->base, 1);
    if (!poly_is_constant(rest, &from) || from > NEVER / 2 || from < -NEVER / 2) return;
    if (by && (from + track->shape.first < 0 || !add_period(clocks, track, by))) return;
    number->counter = number->track;
    number->from = (int32_t)from;
    number->modulo = (int32_t)by;
}

static int number_new(Clocks *clocks, Algebra *algebra, Number number) {
    number.last = NEW_ARRAY(clocks->arena, int, clocks->members.count);
    for (size_t i = 0; i < clocks->members.count; i++) number.last[i] = -1;
    learn_bounds(algebra, &number);
    find_counter(clocks, algebra, &number);
    vec_push(clocks->arena, &clocks->numbers, number);
    return (int)clocks->numbers.count - 1;
}

static int number_find(const Clocks *clocks, bool inside, const Poly *poly, int track, int where) {
    for (size_t i = 0; i < clocks->numbers.count; i++) {
        const Number *number = &clocks->numbers.items[i];
        if (number->changes || number->grid || number->in_grid != inside || number->track != track || number->where != where) continue;
        if (poly_equal(number->poly, poly)) return (int)i;
    }
    return -1;
}

static int number_of(Clocks *clocks, int member, int around, const Poly *poly) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    bool changes = poly_changes(algebra, poly), inside = in_grid(clocks, member, around);
    int track = changes ? track_of(clocks, member, around) : depends_on(clocks, member, around, poly);
    int found = changes ? -1 : number_find(clocks, inside, poly, track, -1);
    if (found >= 0) return found;
    return number_new(clocks, algebra, (Number){.poly = poly, .track = track, .where = -1, .changes = changes, .in_grid = inside});
}

/* ---- conditions ------------------------------------------------------------------------------------------------------- */

static bool is_whole(const Expr *expr) {
    return expr->type == E_I32 || expr->type == E_I64 || expr->type == E_U32 || expr->type == E_U64;
}

static void use_number(Act *ask, int number, int64_t above, bool negated) {
    ask->number = number;
    ask->above = above;
    ask->negated = negated;
}

static int64_t coefficient(const Poly *poly, int atom) {
    for (int i = 0; i < poly->count; i++)
        if (poly->terms[i].count == 1 && poly->terms[i].atoms[0] == atom) return poly->terms[i].coef;
    return 0;
}

/* poly > 0 where it compares the counter of a loop around with one of its bounds: k + 1 < K */
static bool counted_poly(Clocks *clocks, int member, int around, const Poly *poly, Act *ask) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    for (int index = around; index >= 0; index = loop_of(clocks, member, index)->outer) {
        const Loop *loop = loop_of(clocks, member, index);
        const Track *track = &clocks->tracks.items[loop->track];
        if (loop->group < 0 || loop->stmt->kind != S_FOR || loop->stmt->loop.var < 0 || loop->stmt->loop.where || track->changes) continue;
        int atom = algebra_atom_local(algebra, track->role, track->stmt->loop.var);
        int64_t sign = coefficient(poly, atom), times, plus;
        if (sign != 1 && sign != -1) continue;
        const Poly *rest = poly_sum(algebra, poly, poly_atom(algebra, atom), -sign);
        if (poly_mentions(algebra, rest, atom)) continue;
        if (sign == 1) rest = poly_sum(algebra, poly_constant(algebra, 1), rest, -1); /* k + r > 0 is not 1 - r > k */
        const Poly *most = poly_sum(algebra, rest, track->base, -1), *unit = most ? primitive(clocks, most, &times, &plus) : NULL;
        if (!unit || plus > NEVER / 2 || plus < -NEVER / 2) continue;
        for (int b = 0; b < loop->bound_count; b++) {
            const Bound *bound = &loop->bounds[b];
            if (bound->number < 0 || times != bound->times || !poly_equal(unit, clocks->numbers.items[bound->number].poly)) continue;
            use_number(ask, bound->number, plus, sign == 1);
            ask->counted = 1 + index;
            return true;
        }
    }
    return false;
}

bool clocks_positive(Clocks *clocks, int member, int around, const Poly *poly, Act *ask, bool *holds) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    int64_t times, plus, value;
    if (poly_is_constant(poly, &value)) {
        *holds = value > 0;
        return false;
    }
    if (poly && counted_poly(clocks, member, around, poly, ask)) return true;
    const Poly *rest = poly ? primitive(clocks, poly, &times, &plus) : NULL;
    if (!rest || plus > NEVER / 2 || plus < -NEVER / 2) { /* a truth of its own */
        int own = number_new(clocks, algebra, (Number){.poly = poly, .track = track_of(clocks, member, around), .where = -1, .changes = true});
        use_number(ask, own, 0, false);
        return true;
    }
    /* a number and its opposite are the same question: of the two the one whose first term is positive, or that which is there */
    const Poly *opposite = poly_product(algebra, rest, poly_constant(algebra, -1));
    bool negative = false;
    if (opposite && !poly_changes(algebra, rest)) {
        int track = depends_on(clocks, member, around, rest);
        bool inside = in_grid(clocks, member, around), usual = rest->terms[0].coef > 0;
        bool own = number_find(clocks, inside, rest, track, -1) >= 0, other = number_find(clocks, inside, opposite, track, -1) >= 0;
        negative = usual ? other && !own : other || !own;
    }
    if (negative) use_number(ask, number_of(clocks, member, around, opposite), -floor_div(-plus, times) - 1, true);
    else use_number(ask, number_of(clocks, member, around, rest), floor_div(-plus, times), false);
    return true;
}

bool clocks_halves(Clocks *clocks, int member, int around, const Poly *poly, const Poly *halves[2], bool *both) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    for (int i = 0; i < poly->count; i++) {
        const Term *term = &poly->terms[i];
        if (term->count != 1 || (term->coef != 1 && term->coef != -1)) continue;
        const Atom *atom = &algebra->atoms.items[term->atoms[0]];
        if (atom->kind != ATOM_MIN && atom->kind != ATOM_MAX) continue;
        *both = (atom->kind == ATOM_MIN) == (term->coef == 1);
        const Poly *const args[2] = {atom->args[0], atom->args[1]};
        int64_t coef = term->coef;
        const Poly *rest = poly_sum(algebra, poly, poly_atom(algebra, term->atoms[0]), -coef);
        for (int k = 0; k < 2; k++) halves[k] = poly_sum(algebra, rest, args[k], coef);
        return halves[0] && halves[1];
    }
    return false;
}

const Poly *clocks_difference(Clocks *clocks, int member, int around, const Expr *condition) {
    if (condition->kind != X_BINARY || !is_whole(condition->binary.left)) return NULL;
    Algebra *algebra = clocks_algebra(clocks, member, around);
    const Poly *left = formula(clocks, member, around, condition->binary.left), *right = formula(clocks, member, around, condition->binary.right);
    switch (condition->binary.op) {
    case OP_GT: case OP_EQ: case OP_NE: return poly_sum(algebra, left, right, -1);
    case OP_GE: return poly_sum(algebra, poly_sum(algebra, left, right, -1), poly_constant(algebra, 1), 1);
    case OP_LT: return poly_sum(algebra, right, left, -1);
    case OP_LE: return poly_sum(algebra, poly_sum(algebra, right, left, -1), poly_constant(algebra, 1), 1);
    case OP_ADD: case OP_SUB: case OP_MUL: case OP_DIV: case OP_MOD: case OP_AND: case OP_OR: break;
    }
    return NULL;
}

const Poly *clocks_plus_one(Clocks *clocks, int member, int around, const Poly *poly) {
    Algebra *algebra = clocks_algebra(clocks, member, around);
    return poly_sum(algebra, poly, poly_constant(algebra, 1), 1);
}

bool clocks_truth(Clocks *clocks, int member, int around, Expr *condition, Act *ask, bool *holds) {
    const Poly *poly = formula(clocks, member, around, condition);
    int64_t value;
    if (poly_is_constant(poly, &value)) {
        *holds = value != 0;
        return false;
    }
    use_number(ask, number_of(clocks, member, around, poly), 0, false);
    return true;
}

/* ---- loops ------------------------------------------------------------------------------------------------------------ */

static bool same_loop(const Track *track, const Track *wanted) {
    const Stmt *a = track->stmt, *b = wanted->stmt;
    if (track->outer != wanted->outer || a->kind != b->kind) return false;
    if (a->kind == S_GRID) return true;
    if (track->changes || wanted->changes) return false;
    bool domain = a->loop.domain >= 0 && a->loop.domain == b->loop.domain;
    if ((a->loop.where || b->loop.where) && !(a->loop.where && b->loop.where && domain)) return false;
    return poly_equal(track->lo, wanted->lo) && poly_equal(track->hi, wanted->hi);
}

void clocks_operands(Clocks *clocks, const Algebra *algebra, AtomKind kind, const Poly *poly, Polys *out) {
    const Atom *atom = only_atom(algebra, poly);
    if (!atom || atom->kind != kind) {
        vec_push(clocks->arena, out, poly);
        return;
    }
    const Poly *left = atom->args[0], *right = atom->args[1];
    clocks_operands(clocks, algebra, kind, left, out);
    clocks_operands(clocks, algebra, kind, right, out);
}

static bool among(const Polys *polys, const Poly *poly) {
    for (size_t i = 0; i < polys->count; i++)
        if (poly_equal(polys->items[i], poly)) return true;
    return false;
}

/* Does the loop go on where the one before it in the same list ended? Its counter is then where that one's bounds were reached: at the first
 * of them, where this one begins, or at another one, which holds for this one too. */
static int continued(Clocks *clocks, int member, const Loop *loop, const Track *wanted, const Polys *ends) {
    const Member *row = &clocks->members.items[member];
    Algebra *algebra = clocks_algebra(clocks, member, loop->outer);
    Polys begins = {0}, before_ends = {0}, before_begins = {0};
    int before = row->latest[loop->depth - 1] - 1;
    if (before < 0) return -1;
    const Loop *last = &row->loops.items[before];
    const Track *track = &clocks->tracks.items[last->track];
    if (last->outer != loop->outer || last->arm != loop->arm || last->left || last->group < 0 || last->stmt->kind != S_FOR || last->stmt->loop.where || track->changes) return -1;
    int64_t zero;
    if (!poly_is_constant(track->base, &zero) || zero != 0) return -1;
    clocks_operands(clocks, algebra, ATOM_MAX, wanted->lo, &begins);
    clocks_operands(clocks, algebra, ATOM_MIN, track->hi, &before_ends);
    clocks_operands(clocks, algebra, ATOM_MAX, track->lo, &before_begins);
    const Poly *joint = NULL;
    for (size_t i = 0; i < begins.count && !joint; i++)
        if (among(&before_ends, begins.items[i])) joint = begins.items[i];
    if (!joint) return -1;
    for (size_t i = 0; i < before_ends.count; i++)
        if (before_ends.items[i] != joint && !poly_equal(before_ends.items[i], joint) && !among(ends, before_ends.items[i])) return -1;
    for (size_t i = 0; i < before_begins.count; i++)
        if (!among(&begins, before_begins.items[i]) && !poly_at_least_zero(algebra, poly_sum(algebra, joint, before_begins.items[i], -1))) return -1;
    for (size_t i = 0; i < begins.count; i++)
        if (!poly_equal(begins.items[i], joint) && !among(&before_begins, begins.items[i])) return -1;
    return before;
}

static bool member_in(const Clocks *clocks, int member, int group) { return clocks->groups.items[group].first[member] >= 0; }

/* The first one that has loops over the same pipes and number, and none of this member; -1: there is none */
static int group_of(const Clocks *clocks, int member, const Track *track) {
    if (track->shape.after >= 0) return clocks->members.items[member].loops.items[track->shape.after].group;
    for (size_t i = 0; i < clocks->views.count; i++) {
        const Group *group = &clocks->groups.items[clocks->views.items[i].group];
        if (group->outer != track->outer || !(group->pipes & track->pipes) || member_in(clocks, member, clocks->views.items[i].group)) continue;
        for (int b = 0; b < track->shape.bound_count; b++)
            if (track->shape.bounds[b].number == clocks->views.items[i].number) return clocks->views.items[i].group;
    }
    return -1;
}

static int view_of(Clocks *clocks, int number, int group) {
    for (size_t i = 0; i < clocks->views.count; i++)
        if (clocks->views.items[i].number == number && clocks->views.items[i].group == group) return (int)i;
    vec_push(clocks->arena, &clocks->views, (View){number, group});
    clocks->groups.items[group].views++;
    return (int)clocks->views.count - 1;
}

static void add_bound(Clocks *clocks, int member, Loop *loop, bool changes, const Poly *most) {
    Algebra *algebra = clocks_algebra(clocks, member, loop->outer);
    Bound *bound = &loop->bounds[loop->bound_count++];
    *bound = (Bound){.number = -1, .view = -1, .times = 1};
    if (poly_is_constant(most, &bound->plus)) {
        loop->constant = true;
        return;
    }
    const Poly *rest = most && !changes ? primitive(clocks, most, &bound->times, &bound->plus) : NULL;
    if (rest && bound->plus < NEVER / 2 && bound->plus > -NEVER / 2 && bound->times < NEVER) {
        bound->number = number_of(clocks, member, loop->outer, rest);
        return;
    }
    bound->times = 1; /* a number of its own */
    bound->plus = 0;
    bound->number = number_new(clocks, algebra, (Number){.poly = most ? most : poly_constant(algebra, 0), .track = track_of(clocks, member, loop->outer),
                                                         .where = -1, .changes = true, .in_grid = in_grid(clocks, member, loop->outer)});
}

/* As many as a range leaves: the same wherever it is the same range */
static void add_where(Clocks *clocks, int member, Loop *loop, const Track *track) {
    Algebra *algebra = clocks_algebra(clocks, member, loop->outer);
    const Poly *poly = poly_sum(algebra, track->hi, track->lo, -1);
    bool inside = in_grid(clocks, member, loop->outer), changes = track->changes || !poly || loop->stmt->loop.domain < 0;
    int at = depends_on(clocks, member, loop->outer, formula(clocks, member, loop->outer, loop->stmt->loop.where));
    int range = depends_on(clocks, member, loop->outer, poly);
    if (range >= 0 && (at < 0 || clocks->tracks.items[range].depth > clocks->tracks.items[at].depth)) at = range;
    if (changes) at = track->outer;
    int found = changes ? -1 : number_find(clocks, inside, poly, at, loop->stmt->loop.domain);
    if (found < 0) found = number_new(clocks, algebra, (Number){.poly = poly ? poly : poly_constant(algebra, 0), .track = at, .where = loop->stmt->loop.domain, .changes = changes, .in_grid = inside});
    loop->bounds[loop->bound_count++] = (Bound){.number = found, .view = -1, .times = 1};
}

static void add_grid(Clocks *clocks, Loop *loop) {
    Bound bound = {.number = -1, .view = -1, .times = 1, .plus = 1};
    if (clocks->prog->persistent) {
        bound.plus = 0;
        for (size_t i = 0; i < clocks->numbers.count; i++)
            if (clocks->numbers.items[i].grid) bound.number = (int)i;
        if (bound.number < 0) bound.number = number_new(clocks, clocks->algebra[0], (Number){.track = -1, .where = -1, .grid = true});
    } else loop->constant = true;
    loop->bounds[loop->bound_count++] = bound;
}

/* Bounds of the counter: which is the loop variable itself where the first value is known, else how often the loop has gone round */
static void add_bounds(Clocks *clocks, int member, Loop *loop, Track *track) {
    Algebra *algebra = clocks_algebra(clocks, member, loop->outer);
    Polys ends = {0};
    const Stmt *stmt = loop->stmt;
    track->base = poly_constant(algebra, 0);
    loop->after = -1;
    if (stmt->kind == S_GRID) {
        add_grid(clocks, loop);
        return;
    }
    if (stmt->loop.where) {
        add_where(clocks, member, loop, track);
        return;
    }
    clocks_operands(clocks, algebra, ATOM_MIN, track->hi, &ends);
    if (!track->changes) loop->after = continued(clocks, member, loop, track, &ends);
    if (loop->after < 0 && (!poly_is_constant(track->lo, &loop->first) || loop->first > NEVER / 2 || loop->first < -NEVER / 2)) {
        track->base = track->lo;
        loop->first = 0;
    }
    if (ends.count > BOUNDS_MOST) ends.count = 0, vec_push(clocks->arena, &ends, track->hi);
    for (size_t i = 0; i < ends.count; i++)
        add_bound(clocks, member, loop, track->changes, poly_sum(algebra, ends.items[i], track->base, -1));
}

static void settle(Clocks *clocks, Track *track, int group) {
    Loop *shape = &track->shape;
    shape->group = -1;
    shape->times = 1;
    for (int b = 0; b < shape->bound_count; b++)
        if (shape->bounds[b].number >= 0) shape->group = 0, shape->times = shape->bounds[b].times;
    if (shape->group < 0) return;
    if (group < 0) {
        size_t members = clocks->members.count;
        Group fresh = {.outer = track->outer, .period = 1, .first = NEW_ARRAY(clocks->arena, int, members), .last = NEW_ARRAY(clocks->arena, int, members)};
        for (size_t i = 0; i < members; i++) fresh.first[i] = fresh.last[i] = -1;
        vec_push(clocks->arena, &clocks->groups, fresh);
        group = (int)clocks->groups.count - 1;
    }
    shape->group = group;
    for (int b = 0; b < shape->bound_count; b++) {
        Bound *bound = &shape->bounds[b];
        if (bound->number < 0) continue;
        bound->view = view_of(clocks, bound->number, shape->group);
        Group *row = &clocks->groups.items[group];
        row->scaled |= bound->times != 1;
        row->fixed |= clocks->numbers.items[bound->number].high <= FIXED_MOST || (row->scaled && row->views > 1);
    }
}

/* One over the same pipes; else one over others, with which no other loop of this role could go together rather */
static int track_find(const Clocks *clocks, int member, const Track *wanted, int group, uint64_t elsewhere) {
    int found = -1;
    for (size_t i = 0; i < clocks->tracks.count; i++) {
        const Track *track = &clocks->tracks.items[i];
        if (track->loop[member] >= 0 || !same_loop(track, wanted) || (track->shape.after >= 0) != (wanted->shape.after >= 0)) continue;
        if (track->shape.group >= 0 && (group >= 0 ? group != track->shape.group : member_in(clocks, member, track->shape.group))) continue;
        if (track->pipes & wanted->pipes) return (int)i;
        if (found < 0 && (wanted->stmt->kind == S_GRID || !(track->pipes & elsewhere))) found = (int)i;
    }
    return found;
}

void clocks_loop(Clocks *clocks, int member, Loop *loop, uint64_t pipes, uint64_t elsewhere) {
    const Stmt *stmt = loop->stmt;
    Track wanted = {.outer = track_of(clocks, member, loop->outer), .depth = loop->depth, .stmt = stmt, .pipes = pipes,
                    .role = clocks->members.items[member].role};
    if (stmt->kind == S_FOR) {
        wanted.lo = formula(clocks, member, loop->outer, stmt->loop.lo);
        wanted.hi = formula(clocks, member, loop->outer, stmt->loop.hi);
        wanted.changes = poly_changes(clocks_algebra(clocks, member, loop->outer), wanted.lo) || poly_changes(clocks_algebra(clocks, member, loop->outer), wanted.hi);
    }
    wanted.shape = *loop;
    add_bounds(clocks, member, &wanted.shape, &wanted);
    int group = group_of(clocks, member, &wanted), at = track_find(clocks, member, &wanted, group, elsewhere), after = wanted.shape.after;
    if (at < 0) {
        wanted.loop = NEW_ARRAY(clocks->arena, int, clocks->members.count);
        for (size_t i = 0; i < clocks->members.count; i++) wanted.loop[i] = -1;
        settle(clocks, &wanted, group);
        vec_push(clocks->arena, &clocks->tracks, wanted);
        at = (int)clocks->tracks.count - 1;
    }
    Track *track = &clocks->tracks.items[at];
    Loop own = *loop;
    *loop = track->shape;
    loop->stmt = own.stmt;
    loop->outer = own.outer;
    loop->depth = own.depth;
    loop->arm = own.arm;
    loop->left = own.left;
    loop->after = after;
    loop->track = at;
    int index = (int)clocks->members.items[member].loops.count; /* that it will have */
    track->loop[member] = index;
    clocks->members.items[member].latest[loop->depth - 1] = index + 1;
    track->pipes |= pipes;
    if (loop->group < 0) return;
    Group *with = &clocks->groups.items[loop->group];
    with->pipes |= pipes;
    with->last[member] = index;
    if (with->first[member] < 0) with->first[member] = index;
}
