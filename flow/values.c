/* Values of variables at each row; see values.h. A rule of the solver: a state is a polynomial
 * for each local that is followed. */
#include "flow/values.h"
#include "flow/solve.h"
#include "flow/intervals.h"

#include <string.h>

/* largest text of a formula that is kept; a larger one becomes a version */
#define SIZE_MOST 2000

typedef struct State {
    int version;         /* identifies the values; 0: changed since it was set */
    const Poly **locals; /* NULL: not followed, or without a value yet */
    bool shared;         /* a row refers to it: copied before a change */
} State;

typedef struct Phi { /* a local at the head of a loop that changes it */
    int local, region, atom;
    const Poly *first, *next; /* NULL: not a single polynomial */
    /* in terms of values outside of the loop; NULL: not computed yet */
    const Poly *resolved;
    const Poly *after; /* the atom for its value after the loop */
    bool busy;
} Phi;

typedef VEC(int) Ints;

struct Values {
    size_t count;
    bool *followed; /* by local */
    int versions;
    Bindings *rows; /* by row; as the rule left them, with the atoms of phis */
    bool *done;     /* by row: the phis have been replaced */
    /* of the row processed last: adjacent rows have similar bindings */
    Bindings last_left, last_made;
    bool *falls; /* by row: paths reach this ELSE or END of an IF */
    VEC(Phi) phis;
    Ints *changed; /* by region of a loop: the locals that it changes */
    /* by region: the IFs directly in it with an arm that never reaches the END */
    Ints *leaving;
};

/* ---- followed variables ---------------------------------------------------------------------- */

static bool is_followed(FlowCode *code, int local) {
    const Local *what = &code->role->locals.items[local];
    if (what->kind == LOCAL_VAR) return true;
    if (what->kind != LOCAL_LET) return false;
    return !what->value ||
           poly_changes(code->algebra, algebra_residue(code->algebra, code->role, what->value));
}

static void note_changed(Arena *arena, Values *values, const FlowCode *code, int at, int local) {
    int loop = code->regions.items[code->rows.items[at].region].loop;
    for (; loop >= 0; loop = code->regions.items[loop].parent < 0
                                 ? -1
                                 : code->regions.items[code->regions.items[loop].parent].loop) {
        bool known = false;
        for (size_t i = 0; i < values->changed[loop].count; i++)
            known |= values->changed[loop].items[i] == local;
        if (known) return;
        vec_push(arena, &values->changed[loop], local);
    }
}

static void find_changed(Arena *arena, Values *values, const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (!row_computes(row->kind) && row->kind != ROW_OPEN) continue;
        if (row->kind == ROW_OPEN && row->object == OBJECT_LOCAL && values->followed[row->index])
            note_changed(arena, values, code, (int)at, row->index);
        if (row->kind == ROW_SET && row->local >= 0 && values->followed[row->local])
            note_changed(arena, values, code, (int)at, row->local);
        for (size_t i = 0; row->kind == ROW_UNSAFE && i < values->count; i++)
            if (values->followed[i] && row_sets(code, row, (int)i))
                note_changed(arena, values, code, (int)at, (int)i);
    }
}

/* ---- states ---------------------------------------------------------------------------------- */

static void *start(Flow *flow) {
    const Values *values = flow->data;
    State *state = NEW(flow->arena, State);
    state->locals = NEW_ARRAY(flow->arena, const Poly *, values->count + 1);
    return state;
}

static void *copy(Flow *flow, const void *from) {
    const State *state = from;
    State *made = NEW(flow->arena, State);
    *made = *state;
    made->shared = true;
    ((State *)(uintptr_t)state)->shared = true;
    (void)flow;
    return made;
}

static void set(Flow *flow, State *state, int local, const Poly *poly) {
    const Values *values = flow->data;
    if (!values->followed[local]) return;
    if (state->shared) {
        const Poly **made = NEW_ARRAY(flow->arena, const Poly *, values->count + 1);
        memcpy(made, state->locals, values->count * sizeof *made);
        state->locals = made, state->shared = false;
    }
    state->locals[local] = poly;
    state->version = 0;
}

static Bindings hold(Flow *flow, State *state) {
    Values *values = flow->data;
    if (!state->version) state->version = ++values->versions;
    state->shared = true;
    return (Bindings){state->version, state->locals};
}

static Phi *phi_of(Flow *flow, int local, int region) {
    Values *values = flow->data;
    for (size_t i = 0; i < values->phis.count; i++)
        if (values->phis.items[i].local == local && values->phis.items[i].region == region)
            return &values->phis.items[i];
    const Element type = flow->code->role->locals.items[local].type;
    const Region *row = &flow->code->regions.items[region];
    Phi phi = {.local = local, .region = region};
    const Poly *atom =
        algebra_version(flow->code->algebra, flow->code->role, local, row->begin, "phi", type);
    phi.atom = atom->terms[0].atoms[0];
    phi.after =
        algebra_version(flow->code->algebra, flow->code->role, local, row->end, "after", type);
    vec_push(flow->arena, &values->phis, phi);
    return &values->phis.items[values->phis.count - 1];
}

static const Poly *version_of(const FlowCode *code, int local, int at, const char *tag) {
    return algebra_version(code->algebra, code->role, local, at, tag,
                           code->role->locals.items[local].type);
}

static const Poly *version(Flow *flow, int local, int at) {
    return version_of(flow->code, local, at, "v");
}

/* Of a value whose formula is too large */
static const Poly *version_cut(const FlowCode *code, int local, int at) {
    return poly_cut(code->algebra, version_of(code, local, at, "cut"));
}

static bool is_long(Algebra *algebra, const Poly *poly) {
    bool is = poly_size(algebra, poly) > SIZE_MOST;
    algebra->limits += is;
    return is;
}

/* Also counts that a formula is too large to know */
static bool is_changing(Algebra *algebra, const Poly *poly) {
    bool changes = poly_changes(algebra, poly);
    algebra->limits += changes && poly_is_cut(algebra, poly);
    return changes;
}

/* ---- joins ----------------------------------------------------------------------------------- */

/* 1 if the condition of the IF equals `truth`, otherwise 0; NULL: unknown */
static const Poly *truth_of(Flow *flow, int region, bool truth) {
    const Values *values = flow->data;
    Algebra *algebra = flow->code->algebra;
    Expr *condition = flow->code->regions.items[region].condition;
    Bindings before = algebra_hold(algebra, values->rows[flow->code->regions.items[region].begin]);
    const Poly *poly = condition ? algebra_poly(algebra, flow->code->role, condition) : NULL;
    (void)algebra_hold(algebra, before);
    if (!poly || is_changing(algebra, poly)) return NULL;
    return truth ? poly : poly_sum(algebra, poly_constant(algebra, 1), poly, -1);
}

/* 1 on the path that ends with the LEAVE, otherwise 0, in the iteration or function that it
 * leaves: the product of the IFs around it */
static const Poly *leaves(Flow *flow, int leave) {
    const Row *row = &flow->code->rows.items[leave];
    const Poly *product = poly_constant(flow->code->algebra, 1);
    for (int r = row->region; r != row->target && product;
         r = flow->code->regions.items[r].parent) {
        const Region *region = &flow->code->regions.items[r];
        if (region->kind != REGION_IF) return NULL;
        const Poly *truth = truth_of(flow, r, leave < region->otherwise);
        product = truth ? poly_product(flow->code->algebra, product, truth) : NULL;
    }
    return product;
}

/* Joins `to` and `from`. At the END of an IF they come from its arms; at a NEXT, and at the END
 * of a function, `from` comes from a LEAVE that precedes all those that `to` comes from. */
static const Poly *choose(Flow *flow, int at, int source, int local, const Poly *to,
                          const Poly *from) {
    const Region *region = &flow->code->regions.items[flow->code->rows.items[at].region];
    const Row *last = &flow->code->rows.items[source];
    const Poly *condition = NULL;
    if (region->kind == REGION_IF && source == region->end) {
        condition = truth_of(flow, flow->code->rows.items[at].region, false);
    } else if (last->kind == ROW_LEAVE && (at == region->next || region->kind == REGION_BLOCK)) {
        condition = leaves(flow, source);
    }
    Element type = flow->code->role->locals.items[local].type;
    Algebra *algebra = flow->code->algebra;
    uint64_t limits = algebra->limits;
    int64_t by; /* as a sum it is the same modulo 2^w */
    const Poly *made =
        condition && from && to && poly_is_constant(poly_sum(algebra, from, to, -1), &by)
            ? poly_sum(algebra, to, condition, by)
            : poly_select(algebra, condition, algebra_value(algebra, from, type),
                          algebra_value(algebra, to, type), type);
    if (made && !is_long(algebra, made)) return made;
    return algebra->limits > limits ? version_cut(flow->code, local, at) : version(flow, local, at);
}

static void join_head(Flow *flow, const State *from, int region) {
    const Values *values = flow->data;
    for (size_t i = 0; i < values->changed[region].count; i++) {
        int local = values->changed[region].items[i];
        phi_of(flow, local, region)->next = from->locals[local];
    }
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    const Values *values = flow->data;
    State *state = to;
    const State *other = from;
    const Row *row = &flow->code->rows.items[at];
    /* its head has phis; values of an iteration come from a later row */
    if (row->kind == ROW_LOOP) {
        if (source > at) join_head(flow, other, row->region);
        return false;
    }
    for (size_t i = 0; i < values->count && state->locals != other->locals; i++) {
        const Poly *a = state->locals[i], *b = other->locals[i];
        if (a == b || (a && b && poly_equal(a, b))) continue;
        const Poly *both = choose(flow, at, source, (int)i, a, b);
        if (a && poly_equal(a, both)) continue;
        set(flow, state, (int)i, both);
    }
    return false;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const Region *region_of(const Flow *flow, const Row *row) {
    return &flow->code->regions.items[row->region];
}

static void enter_loop(Flow *flow, int region, State *state) {
    const Values *values = flow->data;
    for (size_t i = 0; i < values->changed[region].count; i++) {
        int local = values->changed[region].items[i];
        Phi *phi = phi_of(flow, local, region);
        phi->first = state->locals[local];
        set(flow, state, local, poly_atom(flow->code->algebra, phi->atom));
    }
}

static void end_loop(Flow *flow, int region, State *state) {
    const Values *values = flow->data;
    for (size_t i = 0; i < values->changed[region].count; i++) {
        int local = values->changed[region].items[i];
        set(flow, state, local, phi_of(flow, local, region)->after);
    }
}

/* The reduction whose result the row reads, if nothing but reductions is between them; else NULL */
static const Tile *reduction_before(const FlowCode *code, int at) {
    const Expr *value = code->rows.items[at].value;
    if (!value || value->kind != X_READ || value->read->space != SPACE_REGISTER) return NULL;
    for (int i = at - 1; i >= 0; i--) {
        const Row *row = &code->rows.items[i];
        if (row->kind != ROW_TILE || row->tile->class != TILE_REDUCTION) return NULL;
        if (row->tile->target.object == value->read->object) return row->tile;
    }
    return NULL;
}

static bool is_integer(Element type) {
    ElementKind kind = element_rows[type].kind;
    return kind == ELEMENT_SIGNED || kind == ELEMENT_UNSIGNED;
}

/* Index `i` of reductions over this extent: an atom that all roles share, and that no statement
 * replaces by its own index */
static const Poly *term_number(Algebra *algebra, int i, int64_t extent) {
    const char *tag = arena_printf(algebra->arena, "term.%lld", (long long)extent);
    const Poly *number = algebra_version(algebra, NULL, -1, i, tag, E_I32);
    algebra_bounded(algebra, number, 0, extent - 1);
    return number;
}

/* A reduction of integers is a function of its terms: the order of the threads does not matter.
 * NULL: it is none, or of what may change */
static const Poly *reduction_poly(Flow *flow, const Tile *tile) {
    Algebra *algebra = flow->code->algebra;
    const Expr *value = tile->value;
    const IndexSpace *space = &tile->space, *before = algebra->space;
    if (value->kind != X_REDUCE || !is_integer(value->type) || value->indexes) return NULL;
    for (int i = 0; i < space->count; i++)
        if (space->items[i].extent < 1) return NULL;
    algebra->space = space;
    const Poly *body = algebra_poly(algebra, flow->code->role, value->reduce.body);
    algebra->space = before;
    Str tag = str_new(flow->arena);
    str_printf(&tag, "reduce%d", (int)value->reduce.op);
    for (int i = 0; i < space->count && body; i++) {
        int64_t extent = space->items[i].extent;
        str_printf(&tag, ".%lld", (long long)extent);
        body = poly_replace(algebra, body, algebra_atom_index(algebra, i),
                            term_number(algebra, i, extent));
    }
    if (!body || poly_changes(algebra, body)) return NULL;
    return algebra_operation(algebra, ATOM_OPAQUE, tag.text, value->type, &body, 1);
}

static void assign(Flow *flow, int at, State *state) {
    const Row *row = &flow->code->rows.items[at];
    Algebra *algebra = flow->code->algebra;
    const Values *values = flow->data;
    if (row->local < 0 || !values->followed[row->local]) return;
    const Tile *reduction = row->kind == ROW_SET ? reduction_before(flow->code, at) : NULL;
    const Poly *poly = reduction ? reduction_poly(flow, reduction)
                       : row->kind == ROW_SET
                           ? algebra_residue(algebra, flow->code->role, row->value)
                           : NULL;
    bool fixed = poly && !poly_changes(algebra, poly), cut = poly && poly_is_cut(algebra, poly);
    set(flow, state, row->local,
        fixed ? poly
        : cut ? version_cut(flow->code, row->local, at)
              : version(flow, row->local, at));
}

static void hold_row(Flow *flow, int at, void *state) {
    ((Values *)flow->data)->rows[at] = hold(flow, state);
}

static void set_row(Flow *flow, int at, void *state) {
    const Values *values = flow->data;
    Bindings before = algebra_hold(flow->code->algebra, values->rows[at]);
    assign(flow, at, state);
    (void)algebra_hold(flow->code->algebra, before);
}

static void unsafe_row(Flow *flow, int at, void *state) {
    const Values *values = flow->data;
    const Row *row = code_row(flow->code, at);
    for (size_t i = 0; i < values->count; i++)
        if (row_sets(flow->code, row, (int)i)) set(flow, state, (int)i, version(flow, (int)i, at));
}

static void open_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    if (row->object == OBJECT_LOCAL) set(flow, state, row->index, version(flow, row->index, at));
}

static void loop_row(Flow *flow, int at, void *state) {
    const Values *values = flow->data;
    Bindings before = algebra_hold(flow->code->algebra, values->rows[at]);
    enter_loop(flow, code_row(flow->code, at)->region, state);
    (void)algebra_hold(flow->code->algebra, before);
}

static void else_row(Flow *flow, int at, void *state) {
    const Values *values = flow->data;
    (void)state;
    values->falls[at] = true;
}

static void end_row(Flow *flow, int at, void *state) {
    const Values *values = flow->data;
    const Row *row = code_row(flow->code, at);
    const Region *region = region_of(flow, row);
    if (region->kind == REGION_IF && !values->falls[region->otherwise]) values->falls[at] = true;
    if (!region_loops(region)) return;
    Bindings before = algebra_hold(flow->code->algebra, values->rows[at]);
    end_loop(flow, row->region, state);
    (void)algebra_hold(flow->code->algebra, before);
}

static void meets(Flow *flow, int at, void *const *states, const int *sources, size_t count) {
    const Values *values = flow->data;
    (void)at, (void)states;
    for (size_t i = 0; i < count; i++) values->falls[sources[i]] = true;
}

static const Rule rule = {
    .name = "values",
    .together = true,
    .start = start,
    .copy = copy,
    .join = join,
    .on = {.every = hold_row,
           .access = {[ACCESS_SETS] = set_row, [ACCESS_RAW] = unsafe_row},
           .scope = {[SCOPE_OPENS] = open_row},
           .control =
               {[CONTROL_LOOP] = loop_row, [CONTROL_ELSE] = else_row, [CONTROL_END] = end_row}},
    .meets = meets};

/* IFs with an arm that always leaves: after them the condition is decided. */
static void find_leaving(Arena *arena, Values *values, const FlowCode *code) {
    values->leaving = NEW_ARRAY(arena, Ints, code->regions.count + 1);
    for (size_t r = 0; r < code->regions.count; r++) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_IF || !values->rows[region->begin].version) continue;
        if (values->falls[region->otherwise] != values->falls[region->end])
            vec_push(arena, &values->leaving[region->parent], (int)r);
    }
}

const Values *flow_values(Arena *arena, FlowCode *code) {
    if (code->values) return code->values->count ? code->values : NULL;
    arena = code->algebra->arena; /* cached for all callers */
    Values *values = code->values = NEW(arena, Values);
    size_t count = code->role->locals.count;
    values->count = count;
    values->followed = NEW_ARRAY(arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) values->followed[i] = is_followed(code, (int)i);
    values->rows = NEW_ARRAY(arena, Bindings, code->rows.count + 1);
    values->done = NEW_ARRAY(arena, bool, code->rows.count + 1);
    values->falls = NEW_ARRAY(arena, bool, code->rows.count + 1);
    values->changed = NEW_ARRAY(arena, Ints, code->regions.count + 1);
    find_changed(arena, values, code);
    solve(arena, code, &rule, values);
    find_leaving(arena, values, code);
    return values->count ? values : NULL;
}

/* ---- values of phis -------------------------------------------------------------------------- */

static const Poly *resolve(Arena *arena, FlowCode *code, const Poly *poly);

int values_tile_number(Algebra *algebra) {
    const Poly *number = algebra_version(algebra, NULL, -1, -1, "tile", E_I32);
    algebra_bounded(algebra, number, 0, EXTENT_MOST);
    return number->terms[0].atoms[0];
}

/* Positions of the loop before this one; NULL: unknown */
static const Poly *passed(const FlowCode *code, const Region *region) {
    Algebra *algebra = code->algebra;
    if (region->kind == REGION_GRID)
        return code->role->in_turn ? NULL : poly_atom(algebra, values_tile_number(algebra));
    if (region->var < 0) return NULL;
    Bindings before = algebra_hold(algebra, code->values->rows[region->begin]);
    const Poly *lo = algebra_poly(algebra, code->role, region->lo);
    (void)algebra_hold(algebra, before);
    if (!lo || is_changing(algebra, lo)) return NULL;
    return poly_sum(
        algebra, poly_atom(algebra, algebra_atom_local(algebra, code->role, region->var)), lo, -1);
}

/* Number of iterations of the loop before this one */
static const Poly *trips(const FlowCode *code, const Region *region) {
    return region->where ? NULL : passed(code, region);
}

/* True if the formula refers to another variable that changes together with this one; only one
 * recurrence can be represented. */
static bool mentions_others(const FlowCode *code, const Phi *phi, const Poly *next) {
    for (size_t i = 0; i < code->values->phis.count; i++) {
        const Phi *other = &code->values->phis.items[i];
        bool same_depth =
            code->regions.items[other->region].depth == code->regions.items[phi->region].depth;
        if (other != phi && same_depth && poly_mentions(code->algebra, next, other->atom))
            return true;
    }
    return false;
}

/* The value after one position of a loop, in terms of `self`, the value before it, and of the
 * number of positions before: roles may count from different numbers. Positions that `where`
 * excludes leave the value. */
static const Poly *one_position(FlowCode *code, const Phi *phi, const Poly *next, const Poly *self,
                                const Poly *count) {
    Algebra *algebra = code->algebra;
    const Region *region = &code->regions.items[phi->region];
    Element type = code->role->locals.items[phi->local].type;
    next = poly_replace(algebra, next, phi->atom, self);
    if (region->kind == REGION_GRID) return next;
    if (region->where) {
        Bindings before = algebra_hold(algebra, code->values->rows[region->begin]);
        const Poly *where = algebra_poly(algebra, code->role, region->where);
        (void)algebra_hold(algebra, before);
        if (!where || is_changing(algebra, where)) return NULL;
        next = poly_select(algebra, where, next, self, type);
    }
    int var = algebra_atom_local(algebra, code->role, region->var);
    const Poly *number = algebra_version(algebra, NULL, region->depth, -1, "position", E_I32);
    algebra_bounded(algebra, number, 0, EXTENT_MOST);
    const Poly *lo = poly_sum(algebra, poly_atom(algebra, var), count, -1);
    return poly_replace(algebra, next, var, poly_sum(algebra, lo, number, 1));
}

/* The value at the head of an iteration, from the first value and the value after an iteration,
 * in which `self` is the value itself. NULL: unknown */
static const Poly *recurrence(FlowCode *code, const Phi *phi, const Poly *first, const Poly *next) {
    Algebra *algebra = code->algebra;
    const Region *region = &code->regions.items[phi->region];
    Element type = code->role->locals.items[phi->local].type;
    const Poly *self = algebra_version(algebra, NULL, region->depth, -1, "self", type);
    const Poly *count = passed(code, region);
    if (!count || mentions_others(code, phi, next)) return NULL;
    const Poly *body = one_position(code, phi, next, self, count);
    const Poly *const parts[] = {first, body, count};
    const Poly *made = body ? algebra_operation(algebra, ATOM_OPAQUE, "phi", type, parts, 3) : NULL;
    return made && !is_long(algebra, made) ? made : NULL;
}

static const Poly *resolve_phi(Arena *arena, FlowCode *code, Phi *phi) {
    Algebra *algebra = code->algebra;
    const Region *region = &code->regions.items[phi->region];
    const Element type = code->role->locals.items[phi->local].type;
    const Poly *own = poly_atom(algebra, phi->atom);
    if (phi->resolved) return phi->resolved;
    if (phi->busy || !phi->first || !phi->next ||
        (region->kind == REGION_GRID && code->role->in_turn))
        return own;
    phi->busy = true;
    const Poly *first = resolve(arena, code, phi->first), *next = resolve(arena, code, phi->next);
    uint64_t limits = algebra->limits;
    const Poly *step = poly_sum(algebra, algebra_whole(algebra, next, type), own, -1),
               *count = trips(code, region);
    int64_t constant;
    phi->busy = false;
    if (step && count && poly_is_constant(step, &constant))
        phi->resolved = poly_sum(algebra, first, poly_product(algebra, step, count), 1);
    else if (next && first)
        phi->resolved = recurrence(code, phi, first, next);
    phi->resolved = algebra_value(algebra, phi->resolved, type);
    if (!phi->resolved)
        phi->resolved =
            algebra->limits > limits ? version_cut(code, phi->local, region->begin) : own;
    return phi->resolved;
}

/* first + step * positions, or a recurrence without other variables of loops: with them, formulas
 * of nested loops would grow without end */
static bool ends_known(FlowCode *code, const Phi *own, const Poly *now, int var) {
    const Poly *factor, *rest;
    int64_t step;
    if (poly_split(code->algebra, now, var, &factor, &rest)) return poly_is_constant(factor, &step);
    for (size_t i = 0; i < code->values->phis.count; i++) {
        const Phi *phi = &code->values->phis.items[i];
        bool outer = phi->local == own->local && phi->region != own->region;
        if (!outer && (poly_mentions(code->algebra, now, phi->atom) ||
                       poly_mentions(code->algebra, now, phi->after->terms[0].atoms[0])))
            return false;
    }
    return true;
}

/* Each position leads from the value before it to that of the next one, so after the last one it is
 * that of the position after it. */
static const Poly *after_loop(Arena *arena, FlowCode *code, Phi *phi) {
    Algebra *algebra = code->algebra;
    const Region *region = &code->regions.items[phi->region];
    const Element type = code->role->locals.items[phi->local].type;
    const Poly *now = algebra_whole(algebra, resolve_phi(arena, code, phi), type);
    if (region->kind != REGION_FOR || region->left || !phi->first || region->var < 0)
        return phi->after;
    int var = algebra_atom_local(algebra, code->role, region->var);
    uint64_t limits = algebra->limits;
    Bindings before = algebra_hold(algebra, code->values->rows[region->begin]);
    const Poly *lo = algebra_poly(algebra, code->role, region->lo),
               *hi = algebra_poly(algebra, code->role, region->hi), *made = NULL;
    (void)algebra_hold(algebra, before);
    if (lo && hi && !is_changing(algebra, hi) && ends_known(code, phi, now, var))
        made = algebra_value(
            algebra, poly_replace(algebra, now, var, poly_extreme(algebra, true, lo, hi)), type);
    if (made) return made;
    return algebra->limits > limits ? version_cut(code, phi->local, region->end) : phi->after;
}

static const Poly *resolve_once(Arena *arena, FlowCode *code, const Poly *poly) {
    Algebra *algebra = code->algebra;
    arena_count(arena, code->values->phis.count);
    for (size_t i = 0; poly && i < code->values->phis.count; i++) {
        Phi *phi = &code->values->phis.items[i];
        if (phi->busy) continue;
        if (poly_mentions(algebra, poly, phi->atom))
            poly = poly_replace(algebra, poly, phi->atom, resolve_phi(arena, code, phi));
        int after = phi->after->terms[0].atoms[0];
        if (poly && poly_mentions(algebra, poly, after))
            poly = poly_replace(algebra, poly, after, after_loop(arena, code, phi));
    }
    return poly;
}

/* The value of an inner loop's phi may contain the phis of enclosing loops, which are resolved
 * next. */
static const Poly *resolve(Arena *arena, FlowCode *code, const Poly *poly) {
    for (size_t round = 0; round < code->values->phis.count; round++) {
        const Poly *before = poly;
        poly = resolve_once(arena, code, poly);
        if (!poly || poly_equal(poly, before)) break;
    }
    return poly;
}

/* ---- queries of rules ------------------------------------------------------------------------ */

static void resolve_row(Arena *arena, FlowCode *code, int at) {
    Values *values = code->values;
    if (values->done[at]) return;
    values->done[at] = true;
    Bindings left = values->rows[at], last = values->last_left;
    if (!values->phis.count || !left.locals) return;
    /* In the order of their loops: inner phis refer to outer ones */
    for (size_t i = 0; i < values->phis.count; i++)
        resolve_phi(arena, code, &values->phis.items[i]);
    if (left.version != last.version) {
        const Poly **made = NEW_ARRAY(code->algebra->arena, const Poly *, values->count + 1);
        for (size_t i = 0; i < values->count; i++)
            made[i] = last.locals && last.locals[i] == left.locals[i]
                          ? values->last_made.locals[i]
                          : resolve(arena, code, left.locals[i]);
        values->last_made = (Bindings){++values->versions, made};
        values->last_left = left;
    }
    values->rows[at] = values->last_made;
}

Bindings values_at(Arena *arena, FlowCode *code, int at) {
    if (!flow_values(arena, code)) return algebra_hold(code->algebra, (Bindings){0});
    Bindings before = algebra_hold(code->algebra, (Bindings){0});
    resolve_row(arena, code, at);
    (void)algebra_hold(code->algebra, code->values->rows[at]);
    return before;
}

const Poly *values_poly(Arena *arena, FlowCode *code, int at, Expr *expr) {
    Bindings before = values_at(arena, code, at);
    const Poly *poly = algebra_poly(code->algebra, code->role, expr);
    (void)algebra_hold(code->algebra, before);
    return poly;
}

const Poly *values_subscript(Arena *arena, FlowCode *code, int at, const Access *access, int d) {
    Bindings before = values_at(arena, code, at);
    const Poly *poly = algebra_subscript(code->algebra, code->role, access, d);
    (void)algebra_hold(code->algebra, before);
    return poly;
}

const Poly *values_import(Arena *arena, FlowCode *code, int at, Expr *expr, Algebra *to) {
    return algebra_import(to, code->algebra, values_poly(arena, code, at, expr));
}

/* ---- facts of the path ----------------------------------------------------------------------- */

void values_assume_if(Arena *arena, FlowCode *code, int region, bool truth) {
    const Region *row = &code->regions.items[region];
    Bindings before = values_at(arena, code, row->begin);
    algebra_assume(code->algebra, code->role, row->condition, truth);
    (void)algebra_hold(code->algebra, before);
}

static void assume_loop(Arena *arena, FlowCode *code, int region) {
    const Region *row = &code->regions.items[region];
    Algebra *algebra = code->algebra;
    if (row->kind != REGION_FOR || row->var < 0) return;
    Bindings before = values_at(arena, code, row->begin);
    const Poly *var = poly_atom(algebra, algebra_atom_local(algebra, code->role, row->var));
    const Poly *lo = algebra_poly(algebra, code->role, row->lo),
               *hi = algebra_poly(algebra, code->role, row->hi);
    if (lo && hi && !is_changing(algebra, lo) && !is_changing(algebra, hi))
        algebra_assume_range(algebra, var, lo, hi);
    if (row->where) algebra_assume(algebra, code->role, row->where, true);
    (void)algebra_hold(algebra, before);
}

int values_left(const FlowCode *code, int region, int at, size_t *next, bool *truth) {
    const Ints *leaving = &code->values->leaving[region];
    const Region *around = &code->regions.items[region];
    bool otherwise = around->kind == REGION_IF && at > around->otherwise;
    while (*next < leaving->count) {
        int left = leaving->items[(*next)++];
        const Region *row = &code->regions.items[left];
        if (row->end >= at) break;
        if (otherwise && row->begin < around->otherwise) continue;
        *truth = code->values->falls[row->otherwise];
        return left;
    }
    return -1;
}

static void assume_left(Arena *arena, FlowCode *code, int region, int at) {
    bool truth;
    size_t next = 0;
    for (int left; (left = values_left(code, region, at, &next, &truth)) >= 0;)
        values_assume_if(arena, code, left, truth);
}

PathMark values_assume(Arena *arena, FlowCode *code, int at) {
    PathMark mark = algebra_mark(code->algebra);
    if (!flow_values(arena, code)) return mark;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        bool within = at > region->begin && at < region->end;
        if (within && region->kind == REGION_IF && at != region->otherwise)
            values_assume_if(arena, code, r, at < region->otherwise);
        if (within) assume_loop(arena, code, r);
        if (within) assume_left(arena, code, r, at);
    }
    intervals_assume(arena, code, at);
    return mark;
}
