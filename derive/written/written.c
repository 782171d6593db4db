/* The rule `written`: elements of produced stages, tiles and variables that have been written on
 * every path, and on some path, before each row of a role, for each of its instances. Loops are
 * followed to the fixed point; a declaration clears the facts; a move keeps the facts about a
 * stage. Needs Code and classes; proves that every payload is complete, its bytes known, and
 * every value written before it is read. */
#include "derive/edit.h"
#include "derive/written.h"

/* ---- states ---------------------------------------------------------------------------------- */

static size_t handles_of(const Written *w) { return w->role->handles.count; }

static void *start(Flow *flow) {
    const Written *w = flow->data;
    State *state = NEW(flow->arena, State);
    *state = (State){.arm = -1};
    state->must = NEW_ARRAY(flow->arena, const Elements *, w->count + 1);
    for (size_t i = 0; i < w->count; i++) state->must[i] = elements_none();
    return state;
}

static void *copy(Flow *flow, const void *from) {
    State *made = NEW(flow->arena, State), *old = (State *)(uintptr_t)from;
    old->shared = true;
    *made = *old;
    return made;
}

/* ---- joins ----------------------------------------------------------------------------------- */

/* The linear rule handles a stage that is held on only one path. */
static void join_holds(Written *w, State *to, const State *from, Span at) {
    const Holdings held = to->holds;
    for (size_t i = 0; i < held.count && held.items != from->holds.items; i++) {
        int handle = held.items[i].handle;
        const Hold *a = held.items[i].hold, *b = written_hold(from, handle);
        bool same = b && a->pipe == b->pipe;
        if (a != b) written_keep(w, to, handle, same ? written_join_hold(w, a, b, at) : NULL);
    }
}

static void join_objects(Written *w, State *to, const State *from) {
    for (size_t i = 0; i < w->count && to->must != from->must; i++) {
        const Elements *a = to->must[i], *b = from->must[i];
        if (a == b || elements_hold(b, a)) continue;
        written_set(w, to, (int)i,
                    written_known(w, elements_common(w->arena, a, b), elements_none()));
    }
}

/* A shared list is immutable: a state that changes after a copy gets another list */
static bool is_same(const State *a, const State *b) {
    return a->must == b->must && a->holds.items == b->holds.items &&
           a->guards.items == b->guards.items && a->slabs.items == b->slabs.items;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    Written *w = flow->data;
    State *state = to, *other = copy(flow, from);
    const State *before = copy(flow, to);
    const Region *region = &flow->code->regions.items[flow->code->rows.items[at].region];
    written_learn(w, state, other, at, source);
    written_join_guards(w, state, other);
    join_objects(w, state, other);
    join_holds(w, state, other, region->head);
    if (state->arm != other->arm || source == region->end) state->arm = -1;
    return !is_same(before, state);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Conditions around it differ between instances: the acquire is refused for that. */
static bool is_apart(const FlowCode *code, int at) {
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Expr *condition = code->regions.items[r].condition;
        if (condition && condition->uniformity != UNIFORM_ROLE) return true;
    }
    return false;
}

static void acquire(Written *w, State *state, const Row *row) {
    if (!valid_index(row->handle, handles_of(w))) return;
    const Handle *handle = &w->role->handles.items[row->handle];
    bool produces = handle->pipe >= 0 && handle->end == END_PRODUCE;
    written_keep(w, state, row->handle, produces ? written_acquire(w, handle->pipe, w->at) : NULL);
    if (written_hold(state, row->handle) && is_apart(w->code, w->at))
        written_change(w, state, row->handle)->poisoned = true;
}

static void release(Written *w, State *state, const Row *row) {
    const Hold *hold =
        valid_index(row->handle, handles_of(w)) ? written_hold(state, row->handle) : NULL;
    Release *at = &w->releases[w->at];
    if (!hold) return;
    written_keep(w, state, row->handle, NULL);
    if (!w->flow->last) return;
    if (!at->holds)
        *at = (Release){w->at, NEW_ARRAY(w->arena, const Hold *, w->role->instances + 1)};
    const Hold **known = &at->holds[w->flow->rank];
    *known = *known ? written_join_hold(w, *known, hold, row->span) : hold;
}

static void move(Written *w, State *state, const Row *row) {
    if (!valid_index(row->handle, handles_of(w)) || !valid_index(row->other, handles_of(w)) ||
        row->handle == row->other)
        return;
    written_keep(w, state, row->handle, written_hold(state, row->other));
    written_keep(w, state, row->other, NULL);
}

/* If a loop has too many iterations to follow, the payload of stages that are held is unknown in
 * it. */
static void enter_loop(Written *w, State *state, const Row *row) {
    if (written_decide_loop(w, w->flow, state, row->region)) return;
    w->cut = true;
    const Holdings held = state->holds;
    for (size_t i = 0; i < held.count; i++) {
        Hold *hold = written_change(w, state, held.items[i].handle);
        hold->open = true, hold->open_at = row->head;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static Written *at_row(Flow *flow, int at) {
    Written *w = flow->data;
    w->flow = flow, w->at = at;
    return w;
}

static void open_row(Flow *flow, int at, void *state) {
    Written *w = at_row(flow, at);
    const Row *row = code_row(w->code, at);
    if (row->object == OBJECT_TILE) written_open(w, state, row->index);
    if (row->object == OBJECT_LOCAL) written_open(w, state, (int)w->role->tiles.count + row->index);
}

static void read_row(Flow *flow, int at, void *state) {
    Written *w = at_row(flow, at);
    written_reads(w, state, code_row(w->code, at));
}

static void tile_row(Flow *flow, int at, void *state) {
    Written *w = at_row(flow, at);
    const Row *row = code_row(w->code, at);
    written_reads(w, state, row);
    written_stage_row(w, state, tiles_site(w->tiles, row->stmt));
    written_writes(w, state, row);
}

static void write_row(Flow *flow, int at, void *state) {
    Written *w = at_row(flow, at);
    written_reads(w, state, code_row(w->code, at));
    written_writes(w, state, code_row(w->code, at));
}

static void acquire_row(Flow *flow, int at, void *state) {
    acquire(at_row(flow, at), state, code_row(flow->code, at));
}

static void give_row(Flow *flow, int at, void *state) {
    release(at_row(flow, at), state, code_row(flow->code, at));
}

static void move_row(Flow *flow, int at, void *state) {
    move(at_row(flow, at), state, code_row(flow->code, at));
}

static void loop_row(Flow *flow, int at, void *state) {
    Written *w = at_row(flow, at);
    const Row *row = code_row(w->code, at);
    ((State *)state)->arm = at;
    if (code_region(w->code, row->region)->kind == REGION_FOR) enter_loop(w, state, row);
}

static void next_row(Flow *flow, int at, void *state) {
    written_forget(at_row(flow, at), state, code_row(flow->code, at)->region);
    ((State *)state)->arm = at;
}

static void if_row(Flow *flow, int at, void *state) {
    (void)flow, (void)at;
    ((State *)state)->arm = -1;
}

static void else_row(Flow *flow, int at, void *state) {
    (void)flow;
    ((State *)state)->arm = at;
}

static bool follows(Flow *flow, int region, const void *state) {
    (void)state;
    return written_follows(flow->data, region);
}

static int trips(Flow *flow, int region) { return written_trips(flow->data, region); }

static const Rule rule = {
    .name = "written",
    .ranks = true,
    .start = start,
    .copy = copy,
    .join = join,
    .on = {.access = {[ACCESS_EVALUATES] = read_row,
                      [ACCESS_FETCHES] = read_row,
                      [ACCESS_WRITES] = tile_row,
                      [ACCESS_SETS] = write_row,
                      [ACCESS_RAW] = write_row},
           .scope = {[SCOPE_OPENS] = open_row},
           .stage = {[STAGE_TAKE] = acquire_row, [STAGE_GIVE] = give_row, [STAGE_MOVE] = move_row},
           .control = {[CONTROL_LOOP] = loop_row,
                       [CONTROL_NEXT] = next_row,
                       [CONTROL_IF] = if_row,
                       [CONTROL_ELSE] = else_row}},
    .follows = follows,
    .trips = trips};

/* ---- roles ----------------------------------------------------------------------------------- */

/* The bytes of a stage are those at the first release: a rule compares them with the others. */
static void find_bytes(const Written *w, uint32_t *bytes) {
    bool *known = NEW_ARRAY(w->arena, bool, w->tiles->prog->pipes.count + 1);
    for (size_t at = 0; at < w->code->rows.count; at++)
        for (int r = 0; r < w->role->instances && w->releases[at].holds; r++) {
            const Hold *hold = w->releases[at].holds[r];
            if (!hold || hold->differs || known[hold->pipe]) continue;
            bytes[hold->pipe] = (uint32_t)hold->bytes, known[hold->pipe] = true;
        }
}

Written *written_follow(Arena *arena, Tiles *tiles, Role *role) {
    Written *w = NEW(arena, Written);
    *w = (Written){.tiles = tiles,
                   .arena = arena,
                   .role = role,
                   .code = role->code,
                   .algebra = role->code->algebra};
    uint32_t *bytes = NEW_ARRAY(tiles->arena, uint32_t, tiles->prog->pipes.count + 1);
    w->waits = NEW_ARRAY(tiles->arena, bool, w->code->rows.count + 1);
    edit_role(tiles->prog, role)->stages = (StageOrder){w->waits, bytes};
    if (!role->body || role->instances < 1) return NULL;
    w->releases = NEW_ARRAY(arena, Release, w->code->rows.count + 1);
    w->recorded = NEW_ARRAY(arena, size_t, w->code->rows.count + 1);
    w->skipped = NEW_ARRAY(arena, bool, w->code->regions.count + 1);
    written_find_objects(w);
    written_find_loops(w);
    solve(arena, w->code, &rule, w);
    find_bytes(w, bytes);
    return w;
}
