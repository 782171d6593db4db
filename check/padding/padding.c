/* The rule of padding over Code: contents of each dimension of each tile and stage beyond the
 * edges of tensors, through all roles to the fixed point. Reductions, and loops that reduce, of
 * values that belong to no element are refused then (padding_refuse.c). */
#include "check/padding/padding.h"

#include <string.h>

#define NODES_MOST 100000 /* most nodes of expressions that one statement is followed through */

/* ---- rows ------------------------------------------------------------------------------------ */

static bool covers(const Access *target) {
    for (int d = 0; d < target->rank; d++)
        if (target->subs[d]->kind != X_INDEX) return false;
    return target->space == SPACE_REGISTER || target->space == SPACE_SHARED;
}

static bool mentions_indexes(Padding *p, const Poly *poly) {
    for (int i = 0; i < p->space->count; i++)
        if (poly_mentions(p->code->algebra, poly, algebra_atom_index(p->code->algebra, i)))
            return true;
    return false;
}

/* The subscript is `atom + rest`: the atom is the position minus the rest. `rest - atom`: reversed
 */
static const Poly *with_place(Padding *p, const Poly *edge, int atom, Expr *sub, int d) {
    Algebra *algebra = p->code->algebra;
    const Poly *factor, *rest, *whole = algebra_poly(algebra, p->code->role, sub);
    int64_t coef;
    if (!poly_split(algebra, whole, atom, &factor, &rest) || !poly_is_constant(factor, &coef) ||
        (coef != 1 && coef != -1))
        return edge;
    const Poly *place = poly_atom(algebra, padding_place(p, d));
    place = coef > 0 ? poly_sum(algebra, place, rest, -1) : poly_sum(algebra, rest, place, -1);
    return poly_replace(algebra, edge, atom, place);
}

const Fill *padding_by_place(Padding *p, const Fill *fill, int along) {
    const Access *target = p->target;
    Algebra *algebra = p->code->algebra;
    Draft out;
    if (fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int i = 0; i < out.count; i++) {
        Edge *edge = &out.edges[i];
        for (int d = 0; target && d < target->rank && edge->sub; d++) {
            for (int k = 0; k < p->space->bound && edge->sub; k++)
                if (target->subs[d]->indexes >> k & 1)
                    edge->sub = with_place(p, edge->sub, algebra_atom_index(algebra, k),
                                           target->subs[d], d);
            if (along >= 0 && edge->sub)
                edge->sub = with_place(p, edge->sub, along, target->subs[d], d);
        }
        if (target) edge->direct = false;
        if (edge->sub && (mentions_indexes(p, edge->sub) ||
                          (along >= 0 && poly_mentions(algebra, edge->sub, along))))
            edge->sub = NULL;
    }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

/* `t[k] = max(t[k], ..)`, `t[k] += ..`: where no element is added, the first value stays, which is
 * one of the program. */
static bool keeps_first(Padding *p, const Tile *tile) {
    const Expr *value = tile->value;
    if (tile->op == ASSIGN_ADD || tile->op == ASSIGN_SUB) return true;
    bool extreme =
        value->kind == X_CALL && (value->call.which == IN_max || value->call.which == IN_min);
    return extreme && padding_reads_self(p, tile->value);
}

static const Fill *with_start(Padding *p, const Fill *fill) {
    Draft out;
    if (fill->count == 0) return fill;
    fill_draft(fill, &out);
    for (int i = 0; i < out.count; i++) out.edges[i].starts = true;
    return fill_made(&p->fills, &out);
}

static const Fill *along_axis(Padding *p, const Tile *tile, PadAxis axis, bool named,
                              const Fill *fill) {
    const Fill *along = padding_possible(p, padding_updated(p, tile->value, tile->op, axis));
    if (named) along = padding_named(p, along);
    if (keeps_first(p, tile)) along = with_start(p, along);
    return fill_join(&p->fills, fill, padding_by_place(p, along, axis.atom));
}

/* A dimension with one position: other positions may be elements where this one is padding. */
static const Fill *at_single(Padding *p, const Tile *tile, int d) {
    Algebra *algebra = p->code->algebra;
    const Fill *single =
        padding_as_variable(p, padding_updated(p, tile->value, tile->op, padding_single));
    const Poly *position = algebra_poly(algebra, p->code->role, tile->target.subs[d]),
               *place = poly_atom(algebra, padding_place(p, d));
    int64_t constant;
    Draft out;
    if (!single->padded) return single;
    bool known = poly_is_constant(position, &constant);
    fill_draft(single, &out);
    for (int i = 0; i < out.count; i++) {
        const Poly **sub = &out.edges[i].sub;
        out.edges[i].direct = false;
        if (*sub && (!known || mentions_indexes(p, *sub))) *sub = NULL;
        if (*sub) *sub = poly_offset(algebra, poly_sum(algebra, *sub, place, 1), -constant);
    }
    draft_merge_unknown(&out);
    return fill_made(&p->fills, &out);
}

static const Fill *target_dim(Padding *p, const Tile *tile, int d, const Fill *element) {
    const FlowCode *code = p->code;
    Expr *sub = tile->target.subs[d];
    bool named = padding_is_named(code, &tile->target, d);
    const Fill *fill = p->unwritten;
    for (int i = 0; i < tile->space.bound; i++)
        if (sub->indexes >> i & 1)
            fill = along_axis(p, tile,
                              (PadAxis){.index = i,
                                        .atom = algebra_atom_index(code->algebra, i),
                                        .local = -1,
                                        .region = -1},
                              named, fill);
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0) continue;
        PadAxis axis = padding_loop_axis(code, r);
        if (!padding_mentions(p, sub, axis)) continue;
        fill = along_axis(p, tile, axis, named && sub->kind != X_LOCAL, fill);
    }
    return fill_written(fill) ? fill : padding_written(p, element);
}

/* The subscript is the same for all elements that the statement writes. */
static bool is_single(Padding *p, const Access *target, int d) {
    const FlowCode *code = p->code;
    bool single = target->subs[d]->indexes == 0;
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind == REGION_FOR && region->var >= 0)
            single &= !padding_mentions(p, target->subs[d], padding_loop_axis(code, r));
    }
    return single;
}

static void write_dim(Padding *p, const Tile *tile, int d, TileFill *next) {
    const Fill *fill = target_dim(p, tile, d, next->element);
    bool whole = covers(&tile->target);
    if (fill_written(fill)) next->dims[d] = whole ? fill : padding_widened(p, next->dims[d], fill);
    if (whole) next->dims[SINGLES + d] = NULL;
    if (!is_single(p, &tile->target, d)) return;
    const Fill *single = at_single(p, tile, d);
    if (single->padded)
        next->dims[SINGLES + d] = padding_widened(p, next->dims[SINGLES + d], single);
}

/* All values that the expression may have, if one is known */
static const Fill *plain(Padding *p, const Fill *fill) {
    Value element = fill->at[0].element;
    element.marks = 0, element.self = 0;
    return pad_exists(element) ? fill_of(&p->fills, element) : NULL;
}

static void write_tile(Padding *p, const Tile *tile) {
    const Access *target = &tile->target;
    int object = padding_tile_object(target);
    const TileFill *field = padding_produced(p, target);
    bool whole = covers(target);
    Assigned assigned = {tile->value, tile->op, whole, object < 0 ? OBJECT_MEMORY : object};
    if (object < 0 && !field) {
        padding_in_loops(p, assigned, NULL);
        if (target->space == SPACE_GLOBAL) padding_check_named(p, tile);
        return;
    }
    TileFill next = field ? *field : *padding_object(p, object);
    const Fill *element = plain(p, padding_updated(p, tile->value, tile->op, padding_no_axis));
    next.element = whole ? element : padding_widened(p, next.element, element);
    for (int d = 0; d < target->rank; d++) write_dim(p, tile, d, &next);
    padding_in_loops(p, assigned, field ? NULL : &next);
    padding_add_single(p, &assigned, &next);
    if (field)
        padding_produce(p, target, &next);
    else
        padding_put(p, object, &next, whole);
}

static void tile_row(Padding *p, const Row *row) {
    const Site *site = tiles_site(p->tiles, row->stmt);
    if (!site || site->poisoned || !row->tile->value) return;
    p->space = &row->tile->space;
    p->target = &row->tile->target;
    p->code->algebra->space = p->space;
    if (tile_reduces(row->tile)) expr_visit(p->arena, row->tile->value, padding_visit_reduction, p);
    write_tile(p, row->tile);
}

/* An `unsafe` block may write any value to an object whose address it has. */
static void write_unknown(Padding *p, int object) {
    TileFill any = padding_any(p);
    padding_put(p, object, &any, true);
}

static void set_row(Padding *p, const Row *row) {
    static const IndexSpace none = {0};
    int object = padding_scalar_object(p->code, row->local);
    if (object < 0) return;
    if (!row->value || tiles_reads(p->tiles, p->code->role, row->value, &(Accesses){0})) {
        write_unknown(p, object);
        return;
    }
    p->space = &none;
    p->code->algebra->space = p->space;
    TileFill next = *padding_object(p, object);
    next.element = plain(p, padding_of(p, row->value, padding_no_axis));
    Assigned assigned = {row->value, ASSIGN_SET, true, object};
    padding_in_loops(p, assigned, &next);
    padding_add_single(p, &assigned, &next);
    padding_put(p, object, &next, true);
}

static void unsafe_row(Padding *p, const Row *row) {
    int object = padding_scalar_object(p->code, row->local);
    const Role *role = p->code->role;
    for (size_t t = 0; t < role->tiles.count; t++)
        if (role->tiles.items[t].address_taken) write_unknown(p, (int)t);
    if (object >= 0) write_unknown(p, object);
}

static void second(Flow *flow, int region, void *state) {
    Padding *p = flow->data;
    padding_refine(flow, region, false, state);
    const IndexSpace *space = flow->code->algebra->space;
    p->state = state, p->at = flow->code->regions.items[region].end, p->work = NODES_MOST;
    padding_choose(p, code_region(flow->code, region));
    flow->code->algebra->space = space;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static Padding *at_row(Flow *flow, void *state) {
    Padding *p = flow->data;
    p->state = state;
    return p;
}

static void forget(Padding *p, int region, bool again) {
    if (region_loops(code_region(p->code, region)))
        padding_forget(p, code_region(p->code, region), again);
}

static void open_row(Flow *flow, int at, void *state) {
    Padding *p = at_row(flow, state);
    const Row *row = code_row(p->code, at);
    if (row->object == OBJECT_TILE) padding_open(p, row->index);
    if (row->object == OBJECT_LOCAL) padding_open(p, padding_scalar_object(p->code, row->index));
}

static void raw_row(Flow *flow, int at, void *state) {
    unsafe_row(at_row(flow, state), code_row(flow->code, at));
}

static void loop_row(Flow *flow, int at, void *state) {
    padding_iterate(at_row(flow, state), code_row(flow->code, at)->region);
}

static void next_row(Flow *flow, int at, void *state) {
    int region = code_row(flow->code, at)->region;
    padding_iterate(at_row(flow, state), region);
    forget(flow->data, region, true);
}

static void end_row(Flow *flow, int at, void *state) {
    forget(at_row(flow, state), code_row(flow->code, at)->region, false);
}

static void else_row(Flow *flow, int at, void *state) {
    padding_refine(flow, code_row(flow->code, at)->region, true, state);
}

/* A row with values that may be those of padding: `decide` is called with what the path knows,
 * unless its result is known already. */
static void decide_row(Flow *flow, int at, void *state, void (*decide)(Padding *, const Row *)) {
    Padding *p = at_row(flow, state);
    bool report = p->report;
    p->assumed = flow->context.assumed;
    padding_begin(p, at);
    if (!(report && flow->last) && padding_recall(p, at)) return;
    p->at = at, p->target = NULL, p->loop = -1, p->work = NODES_MOST;
    p->report = report && flow->last;
    PathMark mark = {0};
    if (p->proofs) mark = values_assume(flow->arena, flow->code, at);
    const IndexSpace *space = flow->code->algebra->space;
    padding_decide_path(p);
    decide(p, code_row(p->code, at));
    p->decided.count = 0;
    flow->code->algebra->space = space;
    if (p->proofs) algebra_undo(flow->code->algebra, mark);
    p->report = report;
    padding_remember(p, at);
}

static void write_row(Flow *flow, int at, void *state) { decide_row(flow, at, state, tile_row); }
static void assign_row(Flow *flow, int at, void *state) { decide_row(flow, at, state, set_row); }
static void leave_row(Flow *flow, int at, void *state) {
    decide_row(flow, at, state, padding_check_leave);
}

static int trips(Flow *flow, int region) { return padding_trips(flow->data, region); }

static bool reports(const Flow *flow) { return ((const Padding *)flow->data)->report; }

static const Rule rule = {
    .name = "padding",
    .start = padding_start,
    .copy = padding_copy,
    .join = padding_join,
    .on = {.access =
               {[ACCESS_SETS] = assign_row, [ACCESS_WRITES] = write_row, [ACCESS_RAW] = raw_row},
           .scope = {[SCOPE_OPENS] = open_row},
           .control = {[CONTROL_LOOP] = loop_row,
                       [CONTROL_NEXT] = next_row,
                       [CONTROL_ELSE] = else_row,
                       [CONTROL_LEAVE] = leave_row,
                       [CONTROL_END] = end_row}},
    .second = second,
    .trips = trips,
    .reports = reports,
    .reuses = true};

/* ---- roles ----------------------------------------------------------------------------------- */

static void find_constant(Access *access, bool written, void *data) {
    int64_t position;
    for (int d = 0; !written && d < access->rank; d++)
        *(bool *)data |= expr_constant(access->subs[d], &position);
}

static bool reads_constants(const Padding *p) {
    bool found = false;
    for (size_t at = 0; at < p->code->rows.count && !found; at++)
        row_accesses(p->arena, p->code, code_row(p->code, (int)at), find_constant, &found);
    return found;
}

static void follow_role(Padding *p, size_t role) {
    p->again[role] = false;
    p->refused[role] = 0;
    p->own_read = NULL;
    p->code = p->tiles->prog->roles.items[role].code;
    memset(p->places, 0, sizeof p->places);
    padding_list_objects(p);
    p->opened = padding_opened(p->arena, p->code);
    p->constants = reads_constants(p);
    solve(p->arena, p->code, &rule, p);
}

/* Iterates until the contents of stages are stable; true if something is refused then */
static bool settle(Padding *p) {
    const Prog *prog = p->tiles->prog;
    bool any = true, refused = false;
    for (size_t i = 0; i < prog->pipes.count; i++) padding_open_fields(p, (int)i);
    memcpy(p->again, p->follows, prog->roles.count * sizeof *p->again);
    while (any) {
        any = false;
        for (size_t r = 0; r < prog->roles.count; r++)
            if (p->again[r]) follow_role(p, r), any = true;
    }
    for (size_t r = 0; r < prog->roles.count; r++) refused |= p->refused[r] > 0;
    return refused;
}

static Padding padding_new(Arena *arena, Tiles *tiles) {
    size_t roles = tiles->prog->roles.count, pipes = tiles->prog->pipes.count;
    Padding p = {.tiles = tiles, .arena = arena, .fills = {.arena = arena}};
    p.unwritten = fill_of(&p.fills, pad_none);
    p.fields = NEW_ARRAY(p.arena, TileFill *, pipes + 1);
    p.reads = NEW_ARRAY(p.arena, bool, roles *pipes + 1);
    p.moves = NEW_ARRAY(p.arena, bool, pipes + 1);
    p.versions = NEW_ARRAY(p.arena, uint32_t, pipes + 1);
    p.again = NEW_ARRAY(p.arena, bool, roles + 1);
    p.follows = NEW_ARRAY(p.arena, bool, roles + 1);
    p.refused = NEW_ARRAY(p.arena, int, roles + 1);
    p.apart = NEW_ARRAY(p.arena, bool *, roles + 1);
    p.leaves = NEW_ARRAY(p.arena, const Fill **, roles + 1);
    p.ends = NEW_ARRAY(p.arena, bool *, roles + 1);
    for (size_t r = 0; r < roles; r++) {
        size_t regions = tiles->prog->roles.items[r].code->regions.count;
        p.apart[r] = NEW_ARRAY(p.arena, bool, regions + 1);
        p.leaves[r] = NEW_ARRAY(p.arena, const Fill *, regions + 1);
        p.ends[r] = NEW_ARRAY(p.arena, bool, regions + 1);
    }
    return p;
}

void tiles_padding(Arena *arena, Tiles *tiles) {
    Padding p = padding_new(arena, tiles);
    if (!padding_roles(arena, tiles->prog, p.follows, &p.names) || !settle(&p)) return;
    p.proofs = true;
    if (!settle(&p)) return;
    p.orders = p.any_apart;
    if (p.orders && !settle(&p)) return;
    p.report = true;
    for (size_t r = 0; r < tiles->prog->roles.count; r++)
        if (p.follows[r]) follow_role(&p, r);
}
