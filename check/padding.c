/* The rule of padding over Code: contents of each dimension of each tile and stage beyond the
 * edges of tensors, through all roles to the fixed point. Reductions, and loops that reduce, of
 * values that belong to no element are refused then (padding_refuse.c). */
#include "check/padding.h"

#include <string.h>

#define NODES_MOST 100000 /* most nodes of expressions that one statement is followed through */

/* ---- states: a TileFill for each tile of the role, and then for each followed scalar --------- */

static size_t tiles_of(const Flow *flow) { return flow->code->role->tiles.count; }

static size_t fills_of(const Flow *flow) {
    return tiles_of(flow) + ((const Padding *)flow->data)->scalars->count;
}

static void *start(Flow *flow) { return NEW_ARRAY(flow->arena, TileFill, fills_of(flow) + 1); }

static void *copy(Flow *flow, const void *state) {
    void *made = flow_spare(flow);
    if (!made) made = start(flow);
    memcpy(made, state, fills_of(flow) * sizeof(TileFill));
    return made;
}

/* At the end of an arm of an IF, its tiles are refined by the condition. */
static void refine(Flow *flow, int region, bool truth, TileFill *tiles) {
    Padding *p = flow->data;
    if (!p->proofs) return;
    PathMark mark = values_assume(flow->arena, flow->code, flow->code->regions.items[region].begin);
    values_assume_if(flow->arena, flow->code, region, truth);
    for (size_t t = 0; t < tiles_of(flow); t++)
        for (int d = 0; d < flow->code->role->tiles.items[t].rank; d++)
            padding_refine(p, &tiles[t].dims[d], flow->code->role->tiles.items[t].extents[d]);
    algebra_undo(flow->code->algebra, mark);
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    TileFill *tiles = to;
    const TileFill *others = from;
    bool changed = false;
    (void)at, (void)source;
    for (size_t t = 0; t < tiles_of(flow); t++)
        for (int d = 0; d < flow->code->role->tiles.items[t].rank; d++) {
            const Fill before = tiles[t].dims[d];
            fill_add(&tiles[t].dims[d], &others[t].dims[d]);
            changed |= !fill_same(&before, &tiles[t].dims[d]);
        }
    for (size_t t = 0; t < fills_of(flow); t++)
        changed |= padding_join_loops(&tiles[t], &others[t]);
    return changed;
}

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

/* Edges of the value at one position: moved so that they hold there; `sub` is that position */
static Fill at_place(Padding *p, Fill fill, Expr *sub) {
    Algebra *algebra = p->code->algebra;
    const Poly *position = algebra_poly(algebra, p->code->role, sub),
               *place = poly_atom(algebra, padding_place(p));
    int64_t constant;
    bool known = poly_is_constant(position, &constant);
    for (int i = 0; i < fill.count; i++) {
        Edge *edge = &fill.edges[i];
        edge->direct = false;
        if (edge->sub && known)
            edge->sub = poly_offset(algebra, poly_sum(algebra, edge->sub, place, 1), -constant);
        else
            edge->sub = NULL;
    }
    return fill;
}

/* Sources in terms of the position in the tile: the index, or loop variable, is the position
 * minus the rest of the subscript. */
static Fill by_place(Padding *p, Fill fill, int atom, Expr *sub) {
    Algebra *algebra = p->code->algebra;
    const Poly *factor, *rest, *whole = algebra_poly(algebra, p->code->role, sub), *place = NULL;
    int64_t coef;
    if (poly_split(algebra, whole, atom, &factor, &rest) && poly_is_constant(factor, &coef) &&
        coef == 1)
        place = poly_sum(algebra, poly_atom(algebra, padding_place(p)), rest, -1);
    for (int i = 0; i < fill.count; i++) {
        Edge *edge = &fill.edges[i];
        edge->direct = false;
        if (edge->sub && place)
            edge->sub = poly_replace(algebra, edge->sub, atom, place);
        else
            edge->sub = NULL;
        if (edge->sub && mentions_indexes(p, edge->sub)) edge->sub = NULL;
    }
    return fill;
}

static void add_along(Padding *p, const Tile *tile, int d, PadAxis axis, Fill *fill) {
    Fill along = padding_of(p, tile->value, axis);
    along = by_place(p, along, axis.atom, tile->target.subs[d]);
    fill_add(fill, &along);
}

/* A dimension with one position: other positions may be elements where this one is padding. */
static void add_single(Padding *p, const Tile *tile, int d, Fill *fill) {
    Fill single = padding_of(p, tile->value, padding_single);
    if (!fill_padded(&single)) return;
    single = at_place(p, single, tile->target.subs[d]);
    fill_add(fill, &single);
}

static Fill target_dim(Padding *p, const Tile *tile, int d) {
    const FlowCode *code = p->code;
    Expr *sub = tile->target.subs[d];
    bool single = sub->indexes == 0;
    Fill fill = {0};
    for (int i = 0; i < tile->space.bound; i++)
        if (sub->indexes >> i & 1)
            add_along(
                p, tile, d,
                (PadAxis){.index = i, .atom = algebra_atom_index(code->algebra, i), .local = -1},
                &fill);
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        PadAxis axis = region->kind == REGION_FOR && region->var >= 0
                           ? padding_loop_axis(code, region->var)
                           : (PadAxis){.local = -1};
        if (axis.local < 0 || !padding_mentions(p, sub, axis)) continue;
        add_along(p, tile, d, axis, &fill);
        single = false;
    }
    if (single) add_single(p, tile, d, &fill);
    if (!fill.pads) fill.pads = PAD_ELEMENT;
    return fill;
}

/* Sums and products of signed integers may wrap. */
static bool may_be_below_zero(Padding *p, const Tile *tile, const TileFill *old) {
    bool value = !padding_at_least_zero(p, tile->value),
         wraps = element_rows[tile->target.type].kind == ELEMENT_SIGNED && tile->op != ASSIGN_SET;
    if (tile->op == ASSIGN_SUB || wraps) return true;
    return value || (old->below_zero && (tile->op != ASSIGN_SET || !covers(&tile->target)));
}

/* Repeats the roles that have read the stages of the pipe before. */
static void grow(Padding *p, int pipe) {
    const Prog *prog = p->tiles->prog;
    for (size_t r = 0; r < prog->roles.count; r++)
        p->again[r] |= p->reads[r * prog->pipes.count + (size_t)pipe];
}

static void write_tile_loops(Padding *p, const Tile *tile, const TileFill *old, TileFill *next) {
    p->target = &tile->target;
    bool own = tile->op != ASSIGN_SET || padding_reads_self(p, tile->value);
    p->target = NULL;
    padding_write_loops(p, (Assigned){tile->value, tile->op, own, covers(&tile->target)}, old,
                        next);
}

static void write_tile(Padding *p, const Tile *tile, TileFill *state) {
    const Access *target = &tile->target;
    bool stage = target->space == SPACE_STAGE, grown = false;
    TileFill next = *state;
    for (int d = 0; d < target->rank; d++) {
        Fill value = target_dim(p, tile, d);
        Fill fill = padding_updated(p, &state->dims[d], &value, tile->op, tile->value);
        if (!covers(target)) fill_add(&fill, &state->dims[d]);
        next.dims[d] = fill;
        grown |= !fill_same(&next.dims[d], &state->dims[d]);
    }
    if (!stage) write_tile_loops(p, tile, state, &next);
    next.below_zero = may_be_below_zero(p, tile, state);
    grown |= next.below_zero != state->below_zero;
    *state = next;
    if (stage && grown) grow(p, p->code->role->handles.items[target->object].pipe);
}

static void tile_row(Padding *p, const Row *row) {
    const Site *site = tiles_site(p->tiles, row->stmt);
    if (!site || site->poisoned || !row->tile->value) return;
    p->space = &row->tile->space;
    p->target = &row->tile->target;
    p->code->algebra->space = p->space;
    if (tile_reduces(row->tile)) expr_visit(p->arena, row->tile->value, padding_visit_reduction, p);
    padding_check_loops(p, row->tile->value, row->tile->op);
    p->target = NULL; /* from now on the old value is the content of the tile */
    bool updates = row->tile->op != ASSIGN_SET;
    if (updates) (void)padding_read(p, &row->tile->target);
    TileFill *state = padding_tile(p, &row->tile->target);
    if (state) write_tile(p, row->tile, state);
}

static void set_row(Padding *p, const Row *row) {
    static const IndexSpace none = {0};
    if (!row->value || tiles_reads(p->tiles, p->code->role, row->value, &(Accesses){0})) return;
    p->space = &none;
    p->code->algebra->space = p->space;
    p->target_local = row->local;
    padding_check_loops(p, row->value, ASSIGN_SET);
    bool own = padding_reads_self(p, row->value);
    p->target_local = -1; /* from now on the old value is the content of the variable */
    TileFill *state = padding_scalar(p, row->local);
    if (!state) return;
    TileFill next = *state;
    padding_write_loops(p, (Assigned){row->value, ASSIGN_SET, own, true}, state, &next);
    *state = next;
}

static void forget_edges(const FlowCode *code, const Region *region, Fill *fill) {
    for (int i = 0; i < fill->count; i++)
        if (fill->edges[i].sub && padding_of_iteration(code, region, fill->edges[i].sub))
            fill->edges[i].sub = NULL;
}

/* Removes facts about this iteration before the next one. */
static void forget(const Flow *flow, TileFill *tiles, const Region *region) {
    const FlowCode *code = flow->code;
    for (size_t t = 0; t < fills_of(flow); t++) {
        for (int d = 0; d < PROG_MAX_RANK; d++) forget_edges(code, region, &tiles[t].dims[d]);
        for (int i = 0; i < LOOPS_MOST; i++) forget_edges(code, region, &tiles[t].loops[i].fill);
    }
}

/* An `unsafe` block may write any value to an object whose address it has. */
static void write_unknown(TileFill *tile) {
    for (int d = 0; d < PROG_MAX_RANK; d++) tile->dims[d].pads |= PAD_ELEMENT;
    tile->below_zero = true;
}

static void unsafe_row(const Flow *flow, TileFill *tiles) {
    for (size_t t = 0; t < tiles_of(flow); t++)
        if (flow->code->role->tiles.items[t].address_taken) write_unknown(&tiles[t]);
}

static void open_object(Padding *p, const Row *row) {
    TileFill *opened = row->object == OBJECT_TILE    ? &p->state[row->index]
                       : row->object == OBJECT_LOCAL ? padding_scalar(p, row->index)
                                                     : NULL;
    if (opened) *opened = (TileFill){.assigned = ALL_LOOPS};
}

static void second(Flow *flow, int region, void *state) { refine(flow, region, false, state); }

static void step(Flow *flow, int at, void *state) {
    Padding *p = flow->data;
    const Row *row = &flow->code->rows.items[at];
    p->state = state;
    if (row->kind == ROW_OPEN) open_object(p, row);
    if (row->kind == ROW_LOOP) /* an iteration begins */
        for (size_t t = 0; t < fills_of(flow); t++)
            padding_iterate(&p->state[t], &flow->code->regions.items[row->region]);
    if (row->kind == ROW_NEXT) forget(flow, state, &flow->code->regions.items[row->region]);
    if (row->kind == ROW_UNSAFE) unsafe_row(flow, state);
    if (row->kind == ROW_ELSE) refine(flow, row->region, true, state);
    if (row->kind != ROW_TILE && row->kind != ROW_SET) return;
    bool report = p->report;
    p->at = at, p->state = state, p->target = NULL, p->target_local = -1, p->work = NODES_MOST;
    p->report = report && flow->last;
    PathMark mark = {0};
    if (p->proofs) mark = values_assume(flow->arena, flow->code, at);
    const IndexSpace *space = flow->code->algebra->space;
    if (row->kind == ROW_TILE)
        tile_row(p, row);
    else
        set_row(p, row);
    flow->code->algebra->space = space;
    if (p->proofs) algebra_undo(flow->code->algebra, mark);
    p->report = report;
}

static bool reports(const Flow *flow) { return ((const Padding *)flow->data)->report; }

static const Rule rule = {.name = "padding",
                          .rows = ROW_BIT(OPEN) | ROW_BIT(LOOP) | ROW_BIT(NEXT) | ROW_BIT(UNSAFE) |
                                  ROW_BIT(ELSE) | ROW_BIT(TILE) | ROW_BIT(SET),
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .step = step,
                          .second = second,
                          .reports = reports,
                          .reuses = true};

/* ---- roles ----------------------------------------------------------------------------------- */

static void follow_role(Padding *p, size_t role) {
    p->again[role] = false;
    p->refused[role] = 0;
    p->code = p->tiles->prog->roles.items[role].code;
    p->scalars = &p->scalars_of[role];
    solve(p->arena, p->code, &rule, p);
}

static void open_fields(Padding *p, size_t pipe) {
    const Pipe *row = &p->tiles->prog->pipes.items[pipe];
    const Role *role = row->producer < 0 ? NULL : &p->tiles->prog->roles.items[row->producer];
    for (size_t at = 0; role && at < role->code->rows.count; at++)
        p->moves[pipe] |= role->code->rows.items[at].kind == ROW_MOVE;
    int writers = padding_writers(p, (int)pipe);
    p->fields[pipe] = NEW_ARRAY(p->arena, TileFill, (size_t)writers * row->fields.count + 1);
    for (int h = 0; h < writers; h++)
        for (size_t f = 0; f < row->fields.count; f++)
            if (row->fields.items[f].address_taken[END_PRODUCE])
                write_unknown(padding_field(p, (int)pipe, h, (int)f));
}

/* Iterates until the contents of stages are stable; true if something is refused then */
static bool settle(Padding *p) {
    const Prog *prog = p->tiles->prog;
    bool any = true, refused = false;
    for (size_t i = 0; i < prog->pipes.count; i++) open_fields(p, i);
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
    Padding p = {.tiles = tiles, .arena = arena};
    p.fields = NEW_ARRAY(p.arena, TileFill *, pipes + 1);
    p.moves = NEW_ARRAY(p.arena, bool, pipes + 1);
    p.reads = NEW_ARRAY(p.arena, bool, roles *pipes + 1);
    p.again = NEW_ARRAY(p.arena, bool, roles + 1);
    p.follows = NEW_ARRAY(p.arena, bool, roles + 1);
    p.refused = NEW_ARRAY(p.arena, int, roles + 1);
    p.scalars_of = NEW_ARRAY(p.arena, Scalars, roles + 1);
    for (size_t r = 0; r < roles; r++)
        p.scalars_of[r] = padding_scalars(arena, tiles->prog->roles.items[r].code);
    return p;
}

void tiles_padding(Arena *arena, Tiles *tiles) {
    Padding p = padding_new(arena, tiles);
    if (!padding_roles(arena, tiles->prog, p.follows) || !settle(&p)) return;
    p.proofs = true;
    if (!settle(&p)) return;
    p.report = true;
    for (size_t r = 0; r < tiles->prog->roles.count; r++)
        if (p.follows[r]) follow_role(&p, r);
}
