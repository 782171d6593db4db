/* The iterations of a producer that filled the stage of a consumer; see match.h.
 *
 * The acquires of each end are a tree of loops and conditions. Two lists of such nodes are
 * aligned
 *   in step: node by node, where both have the same loops and conditions;
 *   by number: each list is divided into units of one iteration of its deepest loops, or of one
 *     acquire. A unit has a number, a formula of the units before it and of the variable of its
 *     loop. Units with the same number have the same stages if all units have equally many.
 * Loops with constant bounds are unrolled where it does not succeed otherwise. */
#include "flow/match.h"

#include "flow/slice.h"
#include "flow/values.h"
#include "flow/versions.h"

#define TRIPS_MOST 8    /* of an unrolled loop */
#define NODES_MOST 64   /* of a list that is unrolled */
#define STEPS_MOST 1000 /* pairs of units for one stage */

typedef struct Node Node;
typedef VEC(const Node *) Nodes;

struct Node {
    enum { NODE_ACQUIRE, NODE_LOOP, NODE_IF, NODE_UNROLLED } kind;
    int row, region;       /* of the slice; row: its first one */
    Nodes body, otherwise; /* otherwise: of an IF */
    int depth;             /* number of nested loops in it, with itself */
    int64_t is;            /* UNROLLED: the value of the loop's variable for `body` */
};

typedef enum SideOf { PRODUCER, CONSUMER, SIDES } SideOf;

typedef struct Side {
    FlowCode *whole, *slice;
    Matches is; /* values of its variables, in the algebra of the comparison */
} Side;

/* Units in a list: a group of nodes, or as many groups as a loop has iterations */
typedef struct Unit {
    const Poly *before;   /* number of units before it, or before its loop */
    const Node *loop;     /* NULL: one group */
    const Poly *lo, *hi;  /* of the loop */
    int64_t each, number; /* units in an iteration, and number of this one in it */
    Nodes group;
    Facts facts; /* the conditions around it */
} Unit;

typedef VEC(Unit) Units;

typedef struct Matching {
    Arena *arena;
    Algebra *algebra;
    Side sides[SIDES];
    int own; /* the acquire of the query, a row of the consumer's slice */
    int steps;
    Facts facts; /* of the present units of the producer */
    Fillings *out;
} Matching;

/* ---- trees ----------------------------------------------------------------------------------- */

typedef struct Wanted {
    int pipe;
    End end;
} Wanted;

static bool keeps(const FlowCode *code, const Row *row, const void *data) {
    const Wanted *wanted = data;
    if (row->kind == ROW_STEP)
        return row->unsafe->pipe == wanted->pipe && row->unsafe->end == wanted->end;
    if (row->kind != ROW_ACQUIRE || !valid_index(row->handle, code->role->handles.count))
        return false;
    const Handle *handle = &code->role->handles.items[row->handle];
    return handle->pipe == wanted->pipe && handle->end == wanted->end;
}

static bool make_list(Arena *arena, const FlowCode *slice, int at, int end, Nodes *out);

static int depth_of(const Nodes *list) {
    int depth = 0;
    for (size_t i = 0; i < list->count; i++)
        if (list->items[i]->depth > depth) depth = list->items[i]->depth;
    return depth;
}

static bool make_node(Arena *arena, const FlowCode *slice, int at, Node *node) {
    const Row *row = &slice->rows.items[at];
    const Region *region = &slice->regions.items[row->region];
    *node = (Node){.row = at, .region = row->region};
    if (row->kind == ROW_ACQUIRE) return true;
    int end = row->kind == ROW_IF ? region->otherwise : region->next;
    node->kind = row->kind == ROW_IF ? NODE_IF : NODE_LOOP;
    if (!row_decides(row->kind)) return false;
    if (!make_list(arena, slice, at + 1, end, &node->body)) return false;
    if (row->kind == ROW_IF &&
        !make_list(arena, slice, region->otherwise + 1, region->end, &node->otherwise))
        return false;
    int one = depth_of(&node->body), two = depth_of(&node->otherwise);
    node->depth = (one > two ? one : two) + (row->kind == ROW_LOOP);
    return true;
}

/* The rows from `at` to `end`, exclusive; false: some are left early, or are not acquires */
static bool make_list(Arena *arena, const FlowCode *slice, int at, int end, Nodes *out) {
    for (; at < end; at++) {
        Node *node = NEW(arena, Node);
        if (!make_node(arena, slice, at, node)) return false;
        vec_push(arena, out, node);
        if (node->kind != NODE_ACQUIRE) at = slice->regions.items[node->region].end;
    }
    return true;
}

static bool holds_row(const Nodes *list, int row) {
    for (size_t i = 0; i < list->count; i++) {
        const Node *node = list->items[i];
        if (node->kind == NODE_ACQUIRE
                ? node->row == row
                : holds_row(&node->body, row) || holds_row(&node->otherwise, row))
            return true;
    }
    return false;
}

/* ---- formulas -------------------------------------------------------------------------------- */

static const Region *region_of(const Matching *m, SideOf side, const Node *node) {
    return &m->sides[side].slice->regions.items[node->region];
}

/* For the present iteration, in normal form; NULL: unknown, or it changes */
static const Poly *formula(const Matching *m, SideOf of, const Node *node, Expr *expr) {
    const Side *side = &m->sides[of];
    if (!expr || expr->kind == X_POISON) return NULL;
    int at = side->slice->whole_rows.items[node->row];
    const Poly *poly = values_import(m->arena, side->whole, at, expr, m->algebra);
    const Side *consumer = &m->sides[CONSUMER];
    Versions versions = {side->whole, &side->is, m->algebra, side->whole == consumer->whole, NULL};
    if (of == PRODUCER)
        poly = versions_filled(&versions, poly, consumer->whole->role,
                               consumer->slice->whole_rows.items[m->own]);
    poly = versions_matched(m->algebra, side->whole->role, &side->is, poly);
    if (!poly || poly_changes(m->algebra, poly)) return NULL;
    return poly_normal(m->algebra, poly);
}

static bool is_zero(const Matching *m, const Poly *poly) {
    int64_t value;
    if (poly_is_constant(poly, &value)) return value == 0;
    return algebra_proves(m->algebra, CLAIM_ZERO, poly);
}

static bool same_formula(const Matching *m, const Node *const *nodes, Expr *a, Expr *b) {
    if (!a || !b) return !a && !b;
    const Poly *one = formula(m, PRODUCER, nodes[PRODUCER], a),
               *two = formula(m, CONSUMER, nodes[CONSUMER], b);
    return one && two && is_zero(m, poly_sum(m->algebra, one, two, -1));
}

static void bind(Matching *m, SideOf of, int local, const Poly *to) {
    vec_push(m->arena, &m->sides[of].is, ((Matched){local, to}));
}

static const Poly *variable(const Matching *m, SideOf of, int local) {
    const Side *side = &m->sides[of];
    for (size_t i = side->is.count; i-- > 0;)
        if (side->is.items[i].from == local) return side->is.items[i].to;
    return poly_atom(m->algebra, algebra_atom_local(m->algebra, side->whole->role, local));
}

/* ---- results --------------------------------------------------------------------------------- */

typedef struct Mark {
    size_t is[SIDES], facts;
    PathMark path;
} Mark;

static Mark mark(const Matching *m) {
    return (Mark){{m->sides[PRODUCER].is.count, m->sides[CONSUMER].is.count},
                  m->facts.count,
                  algebra_mark(m->algebra)};
}

static void undo(Matching *m, Mark to) {
    for (int i = 0; i < SIDES; i++) m->sides[i].is.count = to.is[i];
    m->facts.count = to.facts;
    algebra_undo(m->algebra, to.path);
}

/* A fact about the present iterations; `tells`: it is one of the way that is followed */
static void assume(Matching *m, const Poly *fact, bool tells) {
    if (!fact) return;
    algebra_assume_poly(m->algebra, fact);
    if (tells) vec_push(m->arena, &m->facts, fact);
}

static void assume_zero(Matching *m, const Poly *poly, bool tells) {
    assume(m, poly, tells);
    assume(m, poly_minus(m->algebra, poly), tells);
}

static void assume_range(Matching *m, const Poly *value, const Poly *lo, const Poly *hi,
                         bool tells) {
    assume(m, poly_sum(m->algebra, value, lo, -1), tells);
    assume(m, poly_offset(m->algebra, poly_sum(m->algebra, hi, value, -1), -1), tells);
}

static const Poly *exported(const Matching *m, const Poly *poly) {
    return algebra_import(m->sides[CONSUMER].whole->algebra, m->algebra, poly);
}

static void push_local(Matching *m, Filling *to, int local) {
    const Poly *poly = exported(m, variable(m, PRODUCER, local));
    vec_push(m->sides[CONSUMER].whole->algebra->arena, &to->loops, ((Matched){local, poly}));
}

/* Adds the way in which the present iteration of the producer fills the present one's stage. */
static void record(Matching *m, const Node *from) {
    Arena *kept = m->sides[CONSUMER].whole->algebra->arena;
    const FlowCode *slice = m->sides[PRODUCER].slice;
    Filling filling = {.row = slice->whole_rows.items[from->row],
                       .handle = slice->rows.items[from->row].handle};
    VEC(int) inner = {0};
    for (int r = slice->rows.items[from->row].region; r >= 0; r = slice->regions.items[r].parent)
        if (slice->regions.items[r].kind == REGION_FOR && slice->regions.items[r].var >= 0)
            vec_push(m->arena, &inner, slice->regions.items[r].var);
    for (size_t i = inner.count; i-- > 0;) push_local(m, &filling, inner.items[i]);
    for (size_t i = 0; i < m->facts.count; i++) {
        const Poly *fact = exported(m, m->facts.items[i]);
        if (fact) vec_push(kept, &filling.facts, fact);
    }
    for (size_t i = 0; i < filling.loops.count; i++)
        if (!filling.loops.items[i].to) m->out->known = false;
    vec_push(kept, &m->out->items, filling);
}

/* ---- in step --------------------------------------------------------------------------------- */

static bool align(Matching *m, const Nodes *from, const Nodes *to, bool proves);

static bool same_range(const Matching *m, const Node *const *nodes) {
    const Region *a = region_of(m, PRODUCER, nodes[PRODUCER]),
                 *b = region_of(m, CONSUMER, nodes[CONSUMER]);
    if (a->kind != b->kind) return false;
    if (a->kind == REGION_GRID) return true;
    if (!a->where != !b->where || (a->where && (a->domain < 0 || a->domain != b->domain)))
        return false;
    return (a->var >= 0 || b->var < 0) && (b->var >= 0 || a->var < 0) &&
           same_formula(m, nodes, a->lo, b->lo) && same_formula(m, nodes, a->hi, b->hi);
}

static bool same_condition(const Matching *m, const Node *const *nodes) {
    const Region *a = region_of(m, PRODUCER, nodes[PRODUCER]),
                 *b = region_of(m, CONSUMER, nodes[CONSUMER]);
    if (a->nonempty >= 0 && a->nonempty == b->nonempty) return true;
    if (a->from || b->from)
        return same_formula(m, nodes, a->from, b->from) && same_formula(m, nodes, a->to, b->to);
    return same_formula(m, nodes, a->condition, b->condition);
}

/* The variables of loops over the same range */
static void bind_pair(Matching *m, const Node *const *nodes) {
    const Region *a = region_of(m, PRODUCER, nodes[PRODUCER]),
                 *b = region_of(m, CONSUMER, nodes[CONSUMER]);
    if (a->kind == REGION_GRID || a->var < 0) return;
    const Poly *value = variable(m, CONSUMER, b->var);
    bind(m, PRODUCER, a->var, value);
    assume_range(m, value, formula(m, CONSUMER, nodes[CONSUMER], b->lo),
                 formula(m, CONSUMER, nodes[CONSUMER], b->hi), true);
}

static bool align_pair(Matching *m, const Node *a, const Node *b) {
    const Node *nodes[SIDES] = {a, b};
    if (a->kind != b->kind || a->kind == NODE_UNROLLED) return false;
    if (a->kind == NODE_ACQUIRE) {
        if (b->row == m->own) record(m, a);
        return true;
    }
    Mark before = mark(m);
    bool same = a->kind == NODE_IF ? same_condition(m, nodes) : same_range(m, nodes);
    if (same && a->kind == NODE_LOOP) bind_pair(m, nodes);
    same = same && align(m, &a->body, &b->body, true) &&
           (a->kind != NODE_IF || align(m, &a->otherwise, &b->otherwise, true));
    undo(m, before);
    return same;
}

static bool align_in_step(Matching *m, const Nodes *from, const Nodes *to) {
    if (from->count != to->count) return false;
    for (size_t i = 0; i < from->count; i++)
        if (!align_pair(m, from->items[i], to->items[i])) return false;
    return true;
}

/* ---- units ----------------------------------------------------------------------------------- */

typedef struct Measure { /* how a list is divided */
    Matching *m;
    SideOf side;
    int depth;   /* of the loops whose iterations are units; 0: there are none */
    size_t size; /* number of nodes in a unit */
    Facts facts; /* conditions around the present list */
    Units *out;
} Measure;

static const Poly *measure(Measure *u, const Nodes *list, const Poly *before);

static void push_unit(Measure *u, Unit unit, const Nodes *list, size_t first) {
    for (size_t i = first; i < first + u->size; i++)
        vec_push(u->m->arena, &unit.group, list->items[i]);
    for (size_t i = 0; i < u->facts.count; i++)
        vec_push(u->m->arena, &unit.facts, u->facts.items[i]);
    vec_push(u->m->arena, u->out, unit);
}

static const Poly *measure_loop(Measure *u, const Node *node, const Poly *before) {
    const Region *region = region_of(u->m, u->side, node);
    Algebra *algebra = u->m->algebra;
    size_t count = node->body.count;
    if (region->kind != REGION_FOR || region->var < 0 || region->where || count % u->size != 0)
        return NULL;
    Unit unit = {.before = before, .loop = node, .each = (int64_t)(count / u->size)};
    unit.lo = formula(u->m, u->side, node, region->lo);
    unit.hi = formula(u->m, u->side, node, region->hi);
    if (!unit.lo || !unit.hi) return NULL;
    for (size_t i = 0; i < count; i += u->size, unit.number++) push_unit(u, unit, &node->body, i);
    const Poly *trips = poly_sum(algebra, poly_larger(algebra, unit.lo, unit.hi), unit.lo, -1);
    return poly_sum(algebra, before, trips, unit.each);
}

static const Poly *measure_arm(Measure *u, const Nodes *list, const Poly *before,
                               const Poly *fact) {
    size_t facts = u->facts.count;
    vec_push(u->m->arena, &u->facts, fact);
    const Poly *end = measure(u, list, before);
    u->facts.count = facts;
    return end;
}

static const Poly *measure_if(Measure *u, const Node *node, const Poly *before) {
    const Region *region = region_of(u->m, u->side, node);
    Algebra *algebra = u->m->algebra;
    if (region->from || region->search >= 0) return NULL;
    const Poly *truth = formula(u->m, u->side, node, region->condition);
    if (!truth) return NULL;
    const Poly *then = measure_arm(u, &node->body, before, poly_offset(algebra, truth, -1));
    const Poly *otherwise = measure_arm(u, &node->otherwise, before, poly_minus(algebra, truth));
    return poly_sum(algebra, otherwise,
                    poly_product(algebra, truth, poly_sum(algebra, then, otherwise, -1)), 1);
}

/* True for a loop whose iterations are units, and for a condition with such loops */
static bool is_divided(const Measure *u, const Node *node) {
    return node->kind == NODE_IF || (u->depth > 0 && node->depth == u->depth);
}

/* Appends the units of a list that begins after so many units; returns the number after it, NULL:
 * it is not known, or the list has no such units. */
static const Poly *measure(Measure *u, const Nodes *list, const Poly *before) {
    for (size_t i = 0; i < list->count && before;) {
        const Node *node = list->items[i];
        if (is_divided(u, node)) {
            before =
                node->kind == NODE_IF ? measure_if(u, node, before) : measure_loop(u, node, before);
            i++;
            continue;
        }
        for (size_t k = i; k < i + u->size; k++)
            if (k >= list->count || is_divided(u, list->items[k])) return NULL;
        push_unit(u, (Unit){.before = before}, list, i);
        before = poly_offset(u->m->algebra, before, 1);
        i += u->size;
    }
    return before;
}

/* The smallest number of nodes in the body of a loop of this depth */
static size_t least_body(const Nodes *list, int depth) {
    size_t least = SIZE_MAX;
    for (size_t i = 0; i < list->count; i++) {
        const Node *node = list->items[i];
        size_t size = SIZE_MAX;
        if (node->kind == NODE_LOOP && node->depth == depth) size = node->body.count;
        if (node->kind == NODE_IF) {
            size_t one = least_body(&node->body, depth), two = least_body(&node->otherwise, depth);
            size = one < two ? one : two;
        }
        if (size < least) least = size;
    }
    return least;
}

/* ---- by number ------------------------------------------------------------------------------- */

/* The variable of the producer's loop for the unit with number `at`, or the number of the unit
 * minus `at` if it has no loop. NULL: not this unit; `failed`: unknown */
static const Poly *solve_for(const Matching *m, const Unit *unit, const Poly *at, bool *failed) {
    Algebra *algebra = m->algebra;
    const Poly *more = poly_sum(algebra, at, unit->before, -1);
    int64_t by = unit->each, constant = 0;
    if (unit->loop) more = poly_offset(algebra, more, -unit->number);
    *failed = !more;
    if (!more || !unit->loop) return more;
    bool whole = true;
    for (int t = 0; t < more->count; t++)
        if (more->terms[t].count == 0)
            constant = more->terms[t].coef;
        else
            whole &= more->terms[t].coef % by == 0;
    if (whole && constant % by != 0) return NULL; /* another unit of the iteration */
    const Poly *trips = by == 1 ? more : poly_floor(algebra, more, poly_constant(algebra, by));
    const Poly *value = poly_sum(algebra, unit->lo, trips, 1);
    *failed = !value;
    return value;
}

/* A simpler formula of the same value, if there is one: the consumer's variable, and a constant */
static const Poly *simpler(const Matching *m, const Poly *value, const Poly *variable) {
    int64_t constant;
    const Poly *more = variable ? poly_sum(m->algebra, value, variable, -1) : NULL;
    if (!more || poly_is_constant(more, &constant) || !is_zero(m, more)) return value;
    return variable;
}

static bool never_below(const Matching *m, const Poly *value, const Poly *than) {
    return algebra_proves(m->algebra, CLAIM_NOT_NEGATIVE, poly_sum(m->algebra, value, than, -1));
}

/* True if this unit of the producer cannot have the number; `value` as solve_for gives it */
static bool is_other(const Matching *m, const Unit *unit, const Poly *value) {
    if (!unit->loop) return algebra_prove(m->algebra, CLAIM_ZERO, value) == CERTAINLY_NOT;
    return never_below(m, value, unit->hi) ||
           never_below(m, poly_offset(m->algebra, unit->lo, -1), value);
}

/* Follows a pair of units, unless their numbers differ; false: failed. `alone`: the producer has
 * no other unit */
static bool align_units(Matching *m, const Unit *from, const Poly *at, const Unit *to, bool alone) {
    bool failed = false;
    const Poly *value = solve_for(m, from, at, &failed);
    if (!value) return !failed;
    if (m->steps-- <= 0) return false;
    if (!alone && is_other(m, from, value)) return true;
    if (from->loop) {
        assume_range(m, value, from->lo, from->hi, false);
        if (to->loop)
            value = simpler(m, value, variable(m, CONSUMER, region_of(m, CONSUMER, to->loop)->var));
        bind(m, PRODUCER, region_of(m, PRODUCER, from->loop)->var, value);
        assume_range(m, value, from->lo, from->hi, true);
    } else {
        assume_zero(m, value, true);
    }
    for (size_t i = 0; i < from->facts.count; i++) assume(m, from->facts.items[i], true);
    return align(m, &from->group, &to->group, true);
}

/* Finds the units of the producer for a unit of the consumer. */
static bool align_unit(Matching *m, const Units *from, const Unit *to) {
    const Poly *at = to->before;
    Mark before = mark(m);
    if (to->loop) {
        const Region *region = region_of(m, CONSUMER, to->loop);
        const Poly *var = variable(m, CONSUMER, region->var);
        at = poly_sum(m->algebra, at, poly_sum(m->algebra, var, to->lo, -1), to->each);
        at = poly_offset(m->algebra, at, to->number);
        assume_range(m, var, to->lo, to->hi, false);
    }
    for (size_t i = 0; i < to->facts.count; i++) assume(m, to->facts.items[i], false);
    bool same = at != NULL;
    for (size_t i = 0; i < from->count && same; i++) {
        Mark each = mark(m);
        same = align_units(m, &from->items[i], at, to, from->count == 1);
        undo(m, each);
    }
    undo(m, before);
    return same;
}

/* True if each of the units is one stage */
static bool are_acquires(const Units *units) {
    for (size_t i = 0; i < units->count; i++) {
        const Nodes *group = &units->items[i].group;
        while (group->count == 1 && group->items[0]->kind == NODE_UNROLLED)
            group = &group->items[0]->body;
        if (group->count != 1 || group->items[0]->kind != NODE_ACQUIRE) return false;
    }
    return true;
}

static bool align_by_number(Matching *m, const Nodes *from, const Nodes *to, bool proves) {
    int one = depth_of(from), two = depth_of(to);
    Units units[SIDES] = {{0}, {0}};
    const Poly *zero = poly_constant(m->algebra, 0);
    Measure u = {.m = m, .side = PRODUCER, .depth = one > two ? one : two, .out = &units[PRODUCER]};
    u.size = 1;
    if (u.depth > 1) {
        size_t a = least_body(from, u.depth), b = least_body(to, u.depth);
        u.size = a < b ? a : b;
    }
    if (u.size == 0) return false;
    const Poly *ends[SIDES] = {measure(&u, from, zero), NULL};
    u.side = CONSUMER, u.out = &units[CONSUMER];
    ends[CONSUMER] = measure(&u, to, zero);
    if (!ends[PRODUCER] || !ends[CONSUMER]) return false;
    if (proves && !is_zero(m, poly_sum(m->algebra, ends[PRODUCER], ends[CONSUMER], -1)))
        return false;
    bool alike = are_acquires(&units[PRODUCER]) && are_acquires(&units[CONSUMER]);
    for (size_t i = 0; i < units[CONSUMER].count; i++) {
        const Unit *unit = &units[CONSUMER].items[i];
        if (alike && !holds_row(&unit->group, m->own)) continue;
        if (!align_unit(m, &units[PRODUCER], unit)) return false;
    }
    return true;
}

/* ---- unrolled loops -------------------------------------------------------------------------- */

static bool unroll(const Matching *m, SideOf side, const Nodes *list, Nodes *out);

/* The number of iterations; -1: unknown, or too many */
static int64_t trips_of(const Matching *m, SideOf side, const Node *node, int64_t *first) {
    const Region *region = region_of(m, side, node);
    int64_t past;
    if (node->kind != NODE_LOOP || region->kind != REGION_FOR || region->where || region->var < 0 ||
        !expr_constant(region->lo, first) || !expr_constant(region->hi, &past))
        return -1;
    if (past <= *first) return 0;
    return past - *first > TRIPS_MOST ? -1 : past - *first;
}

/* A copy with unrolled loops in it */
static Node *unrolled(const Matching *m, SideOf side, const Node *node, bool *any) {
    Node *copy = NEW(m->arena, Node);
    *copy = *node;
    copy->body = copy->otherwise = (Nodes){0};
    *any |= unroll(m, side, &node->body, &copy->body);
    *any |= unroll(m, side, &node->otherwise, &copy->otherwise);
    int one = depth_of(&copy->body), two = depth_of(&copy->otherwise);
    copy->depth = (one > two ? one : two) + (node->kind == NODE_LOOP);
    return copy;
}

/* Appends the list with unrolled loops; true if there are any. */
static bool unroll(const Matching *m, SideOf side, const Nodes *list, Nodes *out) {
    bool any = false;
    for (size_t i = 0; i < list->count; i++) {
        int64_t first, trips = trips_of(m, side, list->items[i], &first);
        Node *node = unrolled(m, side, list->items[i], &any);
        if (trips < 0 || node->depth > 1 || out->count + (size_t)trips > NODES_MOST) {
            vec_push(m->arena, out, node);
            continue;
        }
        any = true;
        for (int64_t v = first; v < first + trips; v++)
            for (size_t k = 0; k < node->body.count; k++) {
                Node *once = NEW(m->arena, Node);
                *once = (Node){NODE_UNROLLED, node->row, node->region, {0}, {0}, 0, v};
                vec_push(m->arena, &once->body, node->body.items[k]);
                vec_push(m->arena, out, once);
            }
    }
    return any;
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* The nodes of one unrolled iteration, with the value of its variable */
static const Nodes *opened(Matching *m, SideOf side, const Nodes *list) {
    while (list->count == 1 && list->items[0]->kind == NODE_UNROLLED) {
        const Node *node = list->items[0];
        int local = region_of(m, side, node)->var;
        const Poly *is = poly_constant(m->algebra, node->is);
        if (side == CONSUMER)
            assume_zero(m, poly_sum(m->algebra, variable(m, side, local), is, -1), true);
        bind(m, side, local, is);
        list = &node->body;
    }
    return list;
}

static bool align_unrolled(Matching *m, const Nodes *from, const Nodes *to, bool proves) {
    Nodes one = {0}, two = {0};
    bool any = unroll(m, PRODUCER, from, &one);
    any |= unroll(m, CONSUMER, to, &two);
    return any && align_by_number(m, &one, &two, proves);
}

/* Matches the stages of both lists, in their order. `proves`: that they have equally many is not
 * known */
static bool align(Matching *m, const Nodes *from, const Nodes *to, bool proves) {
    size_t items = m->out->items.count;
    Mark before = mark(m);
    from = opened(m, PRODUCER, from), to = opened(m, CONSUMER, to);
    Mark opened_at = mark(m);
    bool same = align_in_step(m, from, to);
    for (int way = 0; way < 2 && !same; way++) {
        m->out->items.count = items;
        undo(m, opened_at);
        same =
            way == 0 ? align_by_number(m, from, to, proves) : align_unrolled(m, from, to, proves);
    }
    undo(m, before);
    return same;
}

/* Descends to the tile of the grid: for it, both ends acquire equally often. */
static bool align_tile(Matching *m, const Nodes *from, const Nodes *to) {
    const Node *a = from->count == 1 ? from->items[0] : NULL,
               *b = to->count == 1 ? to->items[0] : NULL;
    bool tile = a && b && a->kind == NODE_LOOP && b->kind == NODE_LOOP &&
                region_of(m, PRODUCER, a)->kind == REGION_GRID &&
                region_of(m, CONSUMER, b)->kind == REGION_GRID;
    return tile ? align(m, &a->body, &b->body, false) : align(m, from, to, true);
}

/* ---- stages ---------------------------------------------------------------------------------- */

/* The only row that acquires the handle, which is not moved; -1: none */
static int acquire_of(const FlowCode *code, int handle) {
    int found = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_MOVE && (row->handle == handle || row->other == handle)) return -1;
        if (row->kind != ROW_ACQUIRE || row->handle != handle) continue;
        if (found >= 0) return -1;
        found = (int)at;
    }
    return found;
}

/* True if all its acquires are in one loop over the grid, which no loop encloses */
static bool is_in_tile(const FlowCode *slice) {
    int grid = -1;
    for (size_t at = 0; at < slice->rows.count; at++) {
        const Row *row = &slice->rows.items[at];
        int outer = -1;
        if (row->kind == ROW_STEP) return false;
        if (row->kind != ROW_ACQUIRE) continue;
        for (int r = row->region; r >= 0; r = slice->regions.items[r].parent)
            if (region_loops(&slice->regions.items[r])) outer = r;
        if (outer < 0 || slice->regions.items[outer].kind != REGION_GRID) return false;
        if (grid >= 0 && outer != grid) return false;
        grid = outer;
    }
    return grid >= 0;
}

static int row_in(const FlowCode *slice, int whole) {
    for (size_t at = 0; at < slice->rows.count; at++)
        if (slice->whole_rows.items[at] == whole) return (int)at;
    return -1;
}

static void find(Arena *arena, FlowCode *producer, FlowCode *consumer, int handle, Fillings *out) {
    int pipe = consumer->role->handles.items[handle].pipe, own = acquire_of(consumer, handle);
    out->acquire = -1;
    if (pipe < 0 || own < 0) return;
    Matching m = {.arena = arena, .steps = STEPS_MOST, .out = out};
    m.algebra = algebra_of_counts(arena, consumer->prog);
    m.sides[PRODUCER].whole = producer, m.sides[CONSUMER].whole = consumer;
    Nodes lists[SIDES] = {{0}, {0}};
    bool known = true;
    for (int i = 0; i < SIDES; i++) {
        Wanted wanted = {pipe, i == PRODUCER ? END_PRODUCE : END_CONSUME};
        FlowCode *slice = m.sides[i].slice = code_slice(arena, m.sides[i].whole, keeps, &wanted);
        known &= make_list(arena, slice, 1, slice->regions.items[0].end, &lists[i]);
    }
    m.own = row_in(m.sides[CONSUMER].slice, own);
    out->acquire = own;
    out->same_tile = is_in_tile(m.sides[PRODUCER].slice) && is_in_tile(m.sides[CONSUMER].slice);
    out->known = true;
    known = known && align_tile(&m, &lists[PRODUCER], &lists[CONSUMER]);
    out->known &= known && out->items.count > 0;
    if (!out->known) out->items.count = 0;
}

/* True if the two stages are acquired in the same iteration, the first one before the second, and
 * it lasts as long as the second is held. */
static bool is_earlier(const FlowCode *code, int first, int second) {
    const Row *one = code_row(code, first), *two = code_row(code, second);
    int loop = code_region(code, two->region)->loop;
    if (first >= second || !code_inside(code, two->region, one->region) ||
        code_region(code, one->region)->loop != loop)
        return false;
    for (int at = second; at >= 0; at--) {
        const Row *row = code_row(code, at);
        if (row->kind == ROW_OPEN && row->object == OBJECT_HANDLE && row->index == two->handle)
            return code_region(code, row->region)->loop == loop;
    }
    return false;
}

/* Lists stages that were filled in one way each. */
static void find_earlier(Arena *arena, FlowCode *producer, FlowCode *consumer, Fillings *out) {
    const Prog *prog = consumer->prog;
    for (int at = 0; out->same_tile && at < out->acquire; at++) {
        const Row *row = code_row(consumer, at);
        if (row->kind != ROW_ACQUIRE || !is_earlier(consumer, at, out->acquire)) continue;
        const Handle *handle = &consumer->role->handles.items[row->handle];
        int from = handle->pipe < 0 ? -1 : prog->pipes.items[handle->pipe].producer;
        if (handle->end != END_CONSUME || from < 0 || &prog->roles.items[from] != producer->role)
            continue;
        const Fillings *other = match_stage(arena, producer, consumer, row->handle);
        if (other->known && other->same_tile && other->acquire == at && other->items.count == 1)
            vec_push(consumer->algebra->arena, &out->earlier, other);
    }
}

const Fillings *match_stage(Arena *arena, FlowCode *producer, FlowCode *consumer, int handle) {
    Arena *kept = consumer->algebra->arena;
    if (!consumer->fillings)
        consumer->fillings = NEW_ARRAY(kept, Fillings *, consumer->role->handles.count + 1);
    Fillings **made = &consumer->fillings[handle];
    if (!*made) {
        *made = NEW(kept, Fillings);
        find(arena, producer, consumer, handle, *made);
        find_earlier(arena, producer, consumer, *made);
    }
    return *made;
}
