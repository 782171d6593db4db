/* Values that a block of a persistent grid carries from one tile to a later one. The tiles of a
 * block depend on the number of resident blocks, so a result that depends on earlier tiles is
 * not a function of the arguments.
 *
 * A state has for each element of each tile, variable and stage variable whether it may depend
 * on earlier tiles (stale), and whether it may have been written in the loop over the grid; at
 * the end of a tile of the grid, written elements become stale. A write makes its elements stale
 * or fresh, as its value is. A condition that depends on earlier tiles makes all that is written
 * under it stale, unless its arms do the same with different rings, and up to the join of the
 * paths that left under it. A value written to a tensor or a produced stage must be fresh, and
 * the stage too: the tile that reads it is the one in which it was acquired (P0239). Counters that
 * select rings, phases or halves of a tile are exempt, and so are writes to a stage of an earlier
 * tile that are the same in all tiles. */
#include "check/grid/carried.h"

#include <string.h>

/* most iterations of a loop whose variable subscripts a carried tile */
#define TRIPS_FOLLOWED 64

/* ---- states ---------------------------------------------------------------------------------- */

static size_t slots_of(const Carried *c) { return 2 * c->code->regions.count; }

/* For an END or a NEXT */
static size_t slot_of(const Row *row) { return 2 * (size_t)row->region + (row->kind == ROW_NEXT); }

static void *start(Flow *flow) {
    const Carried *c = flow->data;
    CarriedState *state = NEW(flow->arena, CarriedState);
    state->stale = NEW_ARRAY(flow->arena, uint64_t, c->words + 1);
    state->written = NEW_ARRAY(flow->arena, uint64_t, c->words + 1);
    state->origins = NEW_ARRAY(flow->arena, const Origin *, c->count + 1);
    state->control = NEW_ARRAY(flow->arena, const Origin *, slots_of(c));
    return state;
}

static void *copy(Flow *flow, const void *data) {
    const Carried *c = flow->data;
    const CarriedState *from = data;
    CarriedState *state = flow_spare(flow);
    if (!state) state = start(flow);
    memcpy(state->stale, from->stale, c->words * sizeof *state->stale);
    memcpy(state->written, from->written, c->words * sizeof *state->written);
    memcpy(state->origins, from->origins, c->count * sizeof *state->origins);
    memcpy(state->control, from->control, slots_of(c) * sizeof *state->control);
    memcpy(state->places, from->places, sizeof state->places);
    state->place_count = from->place_count;
    return state;
}

static bool join_places(CarriedState *to, const CarriedState *from) {
    int kept = 0, before = to->place_count;
    for (int i = 0; i < to->place_count; i++) {
        bool held = false;
        for (int k = 0; k < from->place_count; k++)
            held |= place_holds(&from->places[k], &to->places[i]);
        if (held) to->places[kept++] = to->places[i];
    }
    to->place_count = kept;
    return kept != before;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    const Carried *c = flow->data;
    CarriedState *state = to;
    const CarriedState *other = from;
    bool changed = join_places(state, other);
    (void)at, (void)source;
    for (size_t i = 0; i < c->count; i++)
        for (size_t w = c->objects[i].first; w < c->objects[i].first + c->objects[i].words; w++) {
            changed |=
                (other->stale[w] & ~state->stale[w]) || (other->written[w] & ~state->written[w]);
            if (other->stale[w] && !state->origins[i]) state->origins[i] = other->origins[i];
            state->stale[w] |= other->stale[w];
            state->written[w] |= other->written[w];
        }
    for (size_t i = 0; i < slots_of(c); i++) {
        if (state->control[i] || !other->control[i]) continue;
        state->control[i] = other->control[i];
        changed = true;
    }
    return changed;
}

/* ---- writes ---------------------------------------------------------------------------------- */

static void all_bits(const Object *object, uint64_t *bits) {
    carried_add(bits, 0, object->elements);
}

static uint64_t *bits_of(const Carried *c, int object) {
    return NEW_ARRAY(c->arena, uint64_t, c->objects[object].words + 1);
}

static void write_bits(const Carried *c, CarriedState *state, int object, const uint64_t *bits,
                       const Origin *origin, bool certain) {
    const Object *row = &c->objects[object];
    bool stale = false;
    for (size_t w = 0; w < row->words; w++) {
        state->written[row->first + w] |= bits[w];
        if (origin)
            state->stale[row->first + w] |= bits[w];
        else if (certain)
            state->stale[row->first + w] &= ~bits[w];
        stale |= state->stale[row->first + w] != 0;
    }
    if (origin && row->words) state->origins[object] = origin;
    if (!stale) state->origins[object] = NULL;
}

static void write_whole(const Carried *c, CarriedState *state, int object, const Origin *origin,
                        bool certain) {
    if (!c->objects[object].elements) return;
    uint64_t *bits = bits_of(c, object);
    all_bits(&c->objects[object], bits);
    write_bits(c, state, object, bits, origin, certain);
}

/* Fresh, and not written in the loop over the grid */
static void begin_anew(const Carried *c, CarriedState *state, int object) {
    const Object *row = &c->objects[object];
    for (size_t w = row->first; w < row->first + row->words; w++)
        state->stale[w] = state->written[w] = 0;
    state->origins[object] = NULL;
}

/* A write to the tile invalidates remembered places that it may overlap. */
static void keep_places(CarriedState *state, int object, const Place *place, bool fresh) {
    int kept = 0;
    for (int i = 0; i < state->place_count; i++) {
        Place *old = &state->places[i];
        bool keeps = old->object != object ||
                     (place && (places_disjoint(old, place) || (fresh && place_holds(old, place))));
        if (keeps) state->places[kept++] = *old;
    }
    state->place_count = kept;
}

static void write_tile(Carried *c, const Flow *flow, CarriedState *state, const Tile *tile,
                       const Origin *value) {
    int object = carried_tile(c, &tile->target);
    const Origin *where = carried_subscripts(c, flow, state, &tile->space, &tile->target);
    uint64_t *bits = bits_of(c, object);
    Place place;
    bool placed = place_written(c, flow, &tile->space, &tile->target, &place);
    if (!c->objects[object].elements) return;
    if (carried_elements(c, flow, &tile->space, &tile->target, bits))
        write_bits(c, state, object, bits, value, true);
    else
        write_whole(c, state, object, value ? value : where, false);
    keep_places(state, object, placed ? &place : NULL, !value);
    if (placed && !value && state->place_count < PLACES_MOST)
        state->places[state->place_count++] = place;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *const shared_out = "the result would depend on how many blocks the GPU holds "
                                      "at once: that decides which tiles a block executes";

static bool within(Span inner, Span outer) { return outer.lo <= inner.lo && inner.hi <= outer.hi; }

static void refuse_count(Carried *c, const Origin *origin, Span sink) {
    bool turns = origin->object == OF_TURNS;
    Diag *diag = diag_at(c->diags, P0238, origin->read,
                         "%s depends on how many grid tiles this "
                         "block has executed",
                         turns ? "`rank` of instances in turn" : "the index of a stage");
    diag_primary(c->diags, diag, "read here");
    if (!within(origin->read, sink)) diag_label(c->diags, diag, sink, "this write depends on it");
    diag_note(c->diags, diag, "%s", shared_out);
    diag_help(
        c->diags, diag,
        turns ? "compute positions from the grid coordinates; all instances in turn execute the "
                "same code"
              : "use it only for addresses and barriers; compute values from the grid coordinates");
}

/* False: after the loop over the grid */
static bool is_in_grid(const Carried *c, Span place) {
    for (size_t at = 0; at < c->code->rows.count; at++) {
        const Row *row = &c->code->rows.items[at];
        if ((within(place, row->span) || within(place, row->head)) &&
            code_in_grid(c->code, c->code->rows.items[at].region))
            return true;
    }
    return false;
}

static void refuse(Carried *c, const Origin *origin, Span sink) {
    const Object *object = &c->objects[origin->object];
    bool stage = object->of == OF_HANDLE;
    Span read = origin->read.hi ? origin->read : sink;
    bool target = stage && read.lo == sink.lo, after = !stage && !is_in_grid(c, read);
    Diag *diag = diag_at(c->diags, P0238, read, "`%s` carries %s from one grid tile %s",
                         object->name, stage ? "a stage" : "a value",
                         after ? "out of the loop over the grid" : "into a later one");
    diag_primary(c->diags, diag,
                 after    ? "read here, after the loop"
                 : target ? "written here in a later tile"
                          : "read here in a later tile");
    diag_label(c->diags, diag, object->written,
               stage ? "acquired here in an earlier tile" : "written here in an earlier tile");
    if (!within(read, sink)) diag_label(c->diags, diag, sink, "this write depends on it");
    diag_note(c->diags, diag, "%s", shared_out);
    if (stage)
        diag_help(c->diags, diag, "%s",
                  target ? "write all of it in the tile in which it is acquired"
                         : "acquire and release it in the same tile, or acquire it before "
                           "the loop over the grid");
    else if (after)
        diag_help(c->diags, diag, "assign `%s` after the loop before it is read, or read it inside",
                  object->name);
    else
        diag_help(
            c->diags, diag,
            "declare `%s` inside the loop over the grid, or assign it there before it is read; "
            "compute positions from the grid coordinates",
            object->name);
}

static void sink(Carried *c, const Flow *flow, const Origin *origin, Span span) {
    if (!origin) return;
    c->found = true;
    size_t number =
        origin->object < 0 ? c->count - (size_t)(origin->object + 1) : (size_t)origin->object;
    if (!flow->last || c->reported[number]) return;
    c->reported[number] = true;
    if (origin->object < 0)
        refuse_count(c, origin, span);
    else
        refuse(c, origin, span);
}

/* ---- control --------------------------------------------------------------------------------- */

/* The dependence of the row's control on earlier tiles: that of the outermost region */
static const Origin *control_at(const Carried *c, const CarriedState *state, int at) {
    const Origin *origin = NULL;
    for (int r = c->code->rows.items[at].region; r >= 0; r = c->code->regions.items[r].parent)
        for (int i = 0; i < 2; i++)
            if (state->control[2 * r + i]) origin = state->control[2 * r + i];
    return origin;
}

/* Marks the control of the region as dependent on earlier tiles. */
static void depends(const Carried *c, CarriedState *state, int region, const Origin *origin) {
    size_t slot = slot_of(&c->code->rows.items[c->meetings[region]]);
    if (!state->control[slot]) state->control[slot] = origin;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void tile_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    CarriedState *state = data;
    const Row *row = &c->code->rows.items[at];
    const Tile *tile = row->tile;
    const Origin *origin = control_at(c, state, at);
    if (!origin) origin = carried_expr(c, flow, state, &tile->space, tile->value);
    if (!origin && tile->where) origin = carried_expr(c, flow, state, &tile->space, tile->where);
    bool stage = tile->target.space == SPACE_STAGE; /* an earlier tile may have acquired it */
    if (!origin && (stage || tile->op != ASSIGN_SET) &&
        !(stage && carried_writes_same(c->arena, c->code, at)))
        origin = carried_access(c, flow, state, &tile->space, &tile->target);
    if (carried_tile(c, &tile->target) >= 0) {
        write_tile(c, flow, state, tile, origin);
        return;
    }
    if (!origin) origin = carried_subscripts(c, flow, state, &tile->space, &tile->target);
    sink(c, flow, origin, row->span);
}

static void set_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    CarriedState *state = data;
    const Row *row = &c->code->rows.items[at];
    if (!valid_index(row->local, c->role->locals.count)) return;
    const Origin *origin = control_at(c, state, at);
    if (!origin) origin = carried_expr(c, flow, state, NULL, row->value);
    write_whole(c, state, carried_local(c, row->local), origin, true);
}

/* True for stage numbers of rings from which the loop over the grid acquires */
static bool numbers_stages(const Carried *c, const Unsafe *unsafe) {
    if (unsafe->kind != UNSAFE_VALUE || unsafe->pipe < 0) return false;
    if (unsafe->value != VALUE_INDEX && unsafe->value != VALUE_PHASE) return false;
    for (size_t at = 0; at < c->code->rows.count; at++) {
        const Row *row = &c->code->rows.items[at];
        bool acquires =
            row->kind == ROW_ACQUIRE && valid_index(row->handle, c->role->handles.count);
        if (acquires && code_in_grid(c->code, c->code->rows.items[at].region) &&
            c->role->handles.items[row->handle].pipe == unsafe->pipe)
            return true;
    }
    return false;
}

static void unsafe_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    CarriedState *state = data;
    const Row *row = &c->code->rows.items[at];
    const Unsafe *unsafe = row->unsafe;
    const Origin *origin = control_at(c, state, at);
    if (!origin && numbers_stages(c, unsafe)) {
        Origin *made = NEW(c->arena, Origin);
        *made = (Origin){OF_STAGES, row->span};
        origin = made;
    }
    for (size_t i = 0; i < unsafe->operands.count && !origin; i++)
        origin = carried_expr(c, flow, state, NULL, unsafe->operands.items[i].value);
    if (valid_index(row->local, c->role->locals.count))
        write_whole(c, state, carried_local(c, row->local), origin, true);
    for (size_t i = 0; i < unsafe->operands.count; i++)
        if (valid_index(unsafe->operands.items[i].local, c->role->locals.count))
            write_whole(c, state, carried_local(c, unsafe->operands.items[i].local), origin, true);
}

static void acquire_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    const Row *row = code_row(c->code, at);
    CarriedState *state = data;
    if (valid_index(row->handle, c->role->handles.count))
        write_whole(c, state, carried_handle(c, row->handle), NULL, true);
}

static void move_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    const Row *row = code_row(c->code, at);
    CarriedState *state = data;
    if (!valid_index(row->handle, c->role->handles.count) ||
        !valid_index(row->other, c->role->handles.count))
        return;
    int to = carried_handle(c, row->handle), from = carried_handle(c, row->other);
    const Object *a = &c->objects[to], *b = &c->objects[from];
    for (size_t w = 0; w < a->words && w < b->words; w++) {
        state->stale[a->first + w] = state->stale[b->first + w];
        state->written[a->first + w] = state->written[b->first + w];
    }
    state->origins[to] =
        state->origins[from] == &c->crossed[from] ? &c->crossed[to] : state->origins[from];
    begin_anew(c, state, from);
}

static void open_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    const Row *row = code_row(c->code, at);
    CarriedState *state = data;
    if (row->object == OBJECT_LOCAL) begin_anew(c, state, carried_local(c, row->index));
    if (row->object == OBJECT_TILE)
        begin_anew(c, state, row->index), keep_places(state, row->index, NULL, false);
    if (row->object == OBJECT_HANDLE) begin_anew(c, state, carried_handle(c, row->index));
}

/* End of a tile of the grid: its writes become those of an earlier tile. */
static void cross(const Carried *c, CarriedState *state) {
    state->place_count = 0;
    for (size_t i = 0; i < c->count; i++) {
        const Object *object = &c->objects[i];
        for (size_t w = object->first; w < object->first + object->words; w++) {
            state->stale[w] |= state->written[w];
            if (state->written[w]) state->origins[i] = &c->crossed[i];
        }
    }
}

/* All paths that diverged in the region, or in the iteration, have joined. */
static void end_row(Flow *flow, int at, void *data) {
    const Carried *c = flow->data;
    const Row *row = code_row(c->code, at);
    CarriedState *state = data;
    state->control[slot_of(row)] = NULL;
    if (c->code->regions.items[row->region].kind == REGION_GRID) cross(c, state);
}

static void loop_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    CarriedState *state = data;
    int number = c->code->rows.items[at].region;
    const Region *region = &c->code->regions.items[number];
    if (region->kind == REGION_GRID) {
        memset(state->written, 0, c->words * sizeof *state->written);
        return;
    }
    const Origin *origin = carried_expr(c, flow, state, NULL, region->lo);
    const Origin *var = origin ? origin : control_at(c, state, at);
    if (region->var >= 0) write_whole(c, state, carried_local(c, region->var), var, true);
    if (!origin) origin = carried_expr(c, flow, state, NULL, region->hi);
    if (!origin) origin = carried_expr(c, flow, state, NULL, region->where);
    if (origin) depends(c, state, number, origin);
}

static void if_row(Flow *flow, int at, void *data) {
    Carried *c = flow->data;
    CarriedState *state = data;
    int number = c->code->rows.items[at].region;
    if (c->same_arms[number]) return;
    const Origin *origin =
        carried_expr(c, flow, state, NULL, c->code->regions.items[number].condition);
    if (origin) depends(c, state, number, origin);
}

/* A loop whose variable may subscript a tile whose elements are distinguished */
static bool follows(Flow *flow, int region, const void *state) {
    const Carried *c = flow->data;
    const Region *loop = &flow->code->regions.items[region];
    int64_t lo, hi;
    (void)state;
    if (!context_value(&flow->context, loop->lo, &lo) ||
        !context_value(&flow->context, loop->hi, &hi))
        return false;
    if (hi - lo > TRIPS_FOLLOWED) return false;
    for (int at = loop->begin; at < loop->next; at++) {
        const Row *row = &flow->code->rows.items[at];
        int tile = row->kind == ROW_TILE ? carried_tile(c, &row->tile->target) : -1;
        if (tile >= 0 && !c->objects[tile].single) return true;
    }
    return false;
}

/* The first iteration may write elements that later ones read. */
static int trips(Flow *flow, int region) {
    (void)flow, (void)region;
    return 1;
}

static bool reports(const Flow *flow) { return ((const Carried *)flow->data)->found; }

static const Rule rule = {
    .name = "carried",
    .ranks = true,
    .trips = trips,
    .reuses = true,
    .start = start,
    .copy = copy,
    .join = join,
    .on =
        {.access = {[ACCESS_SETS] = set_row, [ACCESS_WRITES] = tile_row, [ACCESS_RAW] = unsafe_row},
         .scope = {[SCOPE_OPENS] = open_row},
         .stage = {[STAGE_TAKE] = acquire_row, [STAGE_MOVE] = move_row},
         .control = {[CONTROL_LOOP] = loop_row,
                     [CONTROL_IF] = if_row,
                     [CONTROL_NEXT] = end_row,
                     [CONTROL_END] = end_row}},
    .reports = reports,
    .follows = follows};

/* ---- objects --------------------------------------------------------------------------------- */

static int object_set(const Carried *c, const Row *row) {
    if (row->kind == ROW_TILE) return carried_tile(c, &row->tile->target);
    if (row_computes(row->kind))
        return valid_index(row->local, c->role->locals.count) ? carried_local(c, row->local) : -1;
    if (!row_gains(row->kind)) return -1;
    return valid_index(row->handle, c->role->handles.count) ? carried_handle(c, row->handle) : -1;
}

/* A `let` begins where it is set. */
static int object_opened(const Carried *c, const Row *row) {
    if (row->kind == ROW_SET && valid_index(row->local, c->role->locals.count))
        return c->role->locals.items[row->local].kind == LOCAL_LET ? carried_local(c, row->local)
                                                                   : -1;
    if (row->kind != ROW_OPEN) return -1;
    if (row->object == OBJECT_LOCAL) return carried_local(c, row->index);
    return row->object == OBJECT_TILE ? row->index : carried_handle(c, row->index);
}

static Object tile_object(const RoleTile *tile, bool outlives) {
    int64_t elements = 1;
    for (int d = 0; d < tile->rank && elements; d++)
        elements = tile->extents[d] > 0 && tile->extents[d] <= MAX_ELEMENTS / elements
                       ? elements * tile->extents[d]
                       : 0;
    Object made = {.of = OF_TILE,
                   .name = tile->name,
                   .span = tile->span,
                   .extents = tile->extents,
                   .elements = elements};
    if (!outlives && elements) made.elements = 1, made.single = true;
    if (tile->address_taken) made.elements = 0;
    return made;
}

/* Finds the objects declared outside the loop over the grid that it writes. True: there are
 * some, or a counter of stages or turns */
static bool find_outliving(Carried *c, bool *outlives) {
    bool *opened = NEW_ARRAY(c->arena, bool, c->count + 1), any = c->role->in_turn;
    for (size_t at = 0; at < c->code->rows.count; at++)
        if (code_in_grid(c->code, c->code->rows.items[at].region) &&
            object_opened(c, &c->code->rows.items[at]) >= 0)
            opened[object_opened(c, &c->code->rows.items[at])] = true;
    for (size_t at = 0; at < c->code->rows.count; at++) {
        const Row *row = &c->code->rows.items[at];
        int object =
            code_in_grid(c->code, c->code->rows.items[at].region) ? object_set(c, row) : -1;
        any |= row->kind == ROW_UNSAFE;
        if (object < 0 || opened[object]) continue;
        outlives[object] = true, any = true;
    }
    return any;
}

static void find_objects(Carried *c, const bool *outlives) {
    size_t number = 0;
    c->objects = NEW_ARRAY(c->arena, Object, c->count + 1);
    c->crossed = NEW_ARRAY(c->arena, Origin, c->count + 1);
    for (size_t i = 0; i < c->role->tiles.count; i++, number++)
        c->objects[number] = tile_object(&c->role->tiles.items[i], outlives[number]);
    for (size_t i = 0; i < c->role->locals.count; i++)
        c->objects[number++] = (Object){.of = OF_LOCAL,
                                        .name = c->role->locals.items[i].name,
                                        .span = c->role->locals.items[i].span,
                                        .elements = 1,
                                        .single = true};
    for (size_t i = 0; i < c->role->handles.count; i++) {
        const Handle *handle = &c->role->handles.items[i];
        bool known = handle->pipe >= 0 && !c->unaligned[handle->pipe];
        c->objects[number++] = (Object){.of = OF_HANDLE,
                                        .name = handle->name,
                                        .span = handle->span,
                                        .elements = known,
                                        .single = true};
    }
    for (size_t i = 0; i < c->count; i++) {
        c->objects[i].first = c->words,
        c->objects[i].words = (size_t)(c->objects[i].elements + 63) / 64;
        c->words += c->objects[i].words;
        c->crossed[i].object = (int)i;
    }
    for (size_t at = 0; at < c->code->rows.count; at++) {
        int object = code_in_grid(c->code, c->code->rows.items[at].region)
                         ? object_set(c, &c->code->rows.items[at])
                         : -1;
        if (object >= 0) c->objects[object].written = c->code->rows.items[at].span;
    }
}

/* ---- role ------------------------------------------------------------------------------------ */

static void check_role(Arena *arena, const Prog *prog, Diags *diags, const Role *role,
                       bool *unaligned) {
    Carried c = {.arena = arena,
                 .prog = prog,
                 .diags = diags,
                 .code = role->code,
                 .role = role,
                 .unaligned = unaligned};
    c.count = role->tiles.count + role->locals.count + role->handles.count;
    c.meetings = code_meetings(arena, role->code, true);
    c.reported = NEW_ARRAY(arena, bool, c.count + 2);
    carried_leaves(&c);
    bool *outlives = NEW_ARRAY(arena, bool, c.count + 1);
    if (!find_outliving(&c, outlives)) return;
    find_objects(&c, outlives);
    c.same_arms = carried_arms(arena, prog, role->code);
    solve(arena, role->code, &rule, &c);
}

/* A grid of one tile carries nothing. */
static bool has_one_tile(const Prog *prog) {
    for (size_t a = 0; a < prog->axes.count; a++) {
        const Expr *extent = prog->axes.items[a].extent;
        if (!extent || extent->kind != X_CONST || extent->constant.integer > 1) return false;
    }
    return true;
}

void carried_check(Arena *arena, Prog *prog, Diags *diags) {
    if (!prog->persistent || has_one_tile(prog)) return;
    bool *unaligned = carried_pipes(arena, prog, diags);
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        if (role->code && role->body && !role->forgotten)
            check_role(arena, prog, diags, role, unaligned);
    }
}
