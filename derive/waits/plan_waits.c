/* Matrix instructions in flight: places of commits and of waits, each with the greatest depth
 * that dependences allow.
 *
 * Groups retire in commit order (PTX ISA 9.7.15.7), so the state of a register tile, a `shared`
 * tile or a stage is the number of groups committed after the youngest one that uses it: a wait
 * may leave that many in flight. At a join it is the minimum over the paths. Registers in flight
 * are neither read nor written. If ordinary rows of a loop or a branch access them, they are at
 * rest where it begins; if those of a loop do, they are also at rest at its end, where it is left,
 * and at the end of an arm in it that issued their group. ptxas tracks a group across other
 * branches, but otherwise serialises all of them (C7514, C7515). */
#include "derive/plan.h"
#include "flow/solve.h"

#include <string.h>

#define IDLE        INT8_MAX /* not used by a group that may be in flight */
#define GROUPS_MOST 7        /* most groups that a wait leaves in flight */

/* Use of a register tile by matrix instructions in flight; only the same use may follow without
 * a wait: PTX ISA 9.7.15.6.4 */
enum { USE_OPERAND = MMA_COUNT, USE_SEVERAL }; /* otherwise the MmaKind that accumulates in it */

typedef struct Flight {
    int8_t younger; /* groups committed after the youngest that uses it, or IDLE */
    bool open;      /* used by instructions since the last commit */
    bool worked;    /* ordinary arithmetic was emitted since its issue, and no acquire after that */
    uint8_t use;
} Flight;

typedef struct State {
    int most;         /* groups that may be in flight */
    bool waited;      /* there is a wait after the last commit */
    bool crossed;     /* a loop with contractions has ended since the last wait */
    bool *held;       /* by handle: a consumed stage that is held on all paths */
    Flight flights[]; /* for tiles, handles, late stages */
} State;

typedef struct Matrices {
    Arena *arena;
    const FlowCode *code;
    RowsPlan *plan;
    int tiles, handles, count; /* count: number of flights */
    int *late;                 /* by late set: indexes of the stages that it holds, oldest first */
    bool *accumulates;         /* by tile */
    bool **named;              /* by region: register tiles that its ordinary rows access */
    bool **issued[2];          /* by arm and IF: register tiles that contractions in it use */
    bool *contracts;           /* by region: a loop that is not unrolled, with contractions in it */
} Matrices;

/* ---- states ---------------------------------------------------------------------------------- */

static State *new_state(const Matrices *m) {
    State *state = arena_alloc(m->arena, sizeof *state + (size_t)m->count * sizeof(Flight));
    *state = (State){.held = NEW_ARRAY(m->arena, bool, m->handles + 1)};
    for (int i = 0; i < m->count; i++) state->flights[i] = (Flight){.younger = IDLE};
    return state;
}

static void *start(Flow *flow) { return new_state(flow->data); }

static void *copy(Flow *flow, const void *data) {
    const Matrices *m = flow->data;
    const State *from = data;
    State *to = new_state(m);
    to->most = from->most, to->waited = from->waited, to->crossed = from->crossed;
    memcpy(to->held, from->held, (size_t)m->handles * sizeof *to->held);
    memcpy(to->flights, from->flights, (size_t)m->count * sizeof *to->flights);
    return to;
}

static bool flies(const Flight *flight) { return flight->open || flight->younger != IDLE; }

static bool join_flight(Flight *to, const Flight *from) {
    Flight was = *to;
    if (!flies(from)) return false;
    if (!flies(to)) {
        *to = *from;
        return true;
    }
    if (from->younger < to->younger) to->younger = from->younger;
    to->worked |= from->worked;
    if (to->use != from->use) to->use = USE_SEVERAL;
    return to->younger != was.younger || to->worked != was.worked || to->use != was.use;
}

/* Keeps the facts that hold on both paths */
static bool join(Flow *flow, void *into, const void *other, int at, int source) {
    const Matrices *m = flow->data;
    State *to = into;
    const State *from = other;
    bool less = from->most > to->most || (to->waited && !from->waited);
    less |= from->crossed && !to->crossed;
    (void)at, (void)source;
    for (int i = 0; i < m->count; i++) less |= join_flight(&to->flights[i], &from->flights[i]);
    for (int i = 0; i < m->handles; i++) {
        less |= to->held[i] && !from->held[i];
        to->held[i] &= from->held[i];
    }
    if (from->most > to->most) to->most = from->most;
    to->waited &= from->waited;
    to->crossed |= from->crossed;
    return less;
}

/* ---- the plan -------------------------------------------------------------------------------- */

static int64_t bound_value(const Flow *flow, int local) {
    int atom = algebra_atom_local(flow->context.algebra, flow->code->role, local);
    int64_t value;
    for (int i = 0; i < flow->context.bound_count; i++)
        if (flow->context.bound[i].atom == atom &&
            poly_is_constant(flow->context.bound[i].value, &value))
            return value;
    return PLAN_ANY;
}

static void plan(Flow *flow, Waits *waits, int at, Wait wait) {
    const Matrices *m = flow->data;
    VEC(int64_t) copy = {0};
    for (int r = code_row(m->code, at)->region; r >= 0; r = code_region(m->code, r)->parent)
        if (region_unrolled(code_region(m->code, r)))
            vec_push(m->arena, &copy, bound_value(flow, code_region(m->code, r)->var));
    wait.copy = copy.items;
    vec_push(m->arena, &waits[at], wait);
}

const Wait *plan_wait(const FlowCode *code, const Waits *waits, int at, const int64_t *values) {
    for (size_t i = 0; i < waits[at].count; i++) {
        const Wait *wait = &waits[at].items[i];
        bool matches = true;
        int loops = 0;
        for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
            if (!region_unrolled(&code->regions.items[r])) continue;
            int64_t value = wait->copy[loops++];
            matches &= value == PLAN_ANY || value == values[code->regions.items[r].var];
        }
        if (matches) return wait;
    }
    return NULL;
}

/* ---- groups and waits ------------------------------------------------------------------------ */

static void commit(const Matrices *m, State *state) {
    state->waited = false;
    if (state->most < GROUPS_MOST) state->most++;
    for (int i = 0; i < m->count; i++) {
        Flight *flight = &state->flights[i];
        if (flight->open)
            flight->younger = 0;
        else if (flight->younger < GROUPS_MOST)
            flight->younger++;
        flight->open = false;
    }
}

/* Among `places`, the one that allows the fewest groups in flight; -1: none is in flight */
static int youngest(const Matrices *m, const State *state, const bool *places) {
    int found = -1, depth = IDLE;
    for (int i = 0; i < m->count; i++)
        if (places[i] && state->flights[i].younger < depth)
            found = i, depth = state->flights[i].younger;
    return found;
}

/* The most groups that may stay in flight when all of `places` must be complete; IDLE: none of
 * them is in flight. */
static int deepest(const Matrices *m, const State *state, const bool *places) {
    int place = youngest(m, state, places);
    return place < 0 ? IDLE : state->flights[place].younger;
}

/* Sets the reason of a wait: a register tile, or the handle of a stage, also in a late set. */
static void name_place(const Matrices *m, int place, Wait *wait) {
    wait->tile = place < m->tiles ? place : -1;
    wait->handle = place >= m->tiles && place < m->tiles + m->handles ? place - m->tiles : -1;
    for (size_t i = 0; i < m->code->lates.count; i++) {
        const Late *late = &m->code->lates.items[i];
        if (place >= m->late[i] && place < m->late[i] + late->lag) wait->handle = late->handle;
    }
}

/* ptxas moves a wait above arithmetic that does not depend on it, but not across a spin on a
 * barrier. */
static int pin_of(const Matrices *m, const State *state, const bool *places) {
    bool worked = false;
    for (int i = 0; i < m->count; i++) worked |= places[i] && state->flights[i].worked;
    for (int h = 0; worked && h < m->handles; h++)
        if (state->held[h]) return h;
    return -1;
}

/* Before the last round the state may be weaker than in the last one, so an object may be in
 * flight that is at rest when the row is emitted. In both cases only the objects that the row
 * waits for are at rest after it. */
static void wait_depth(Flow *flow, State *state, Waits *waits, int at, const bool *places,
                       int depth) {
    const Matrices *m = flow->data;
    Wait wait = {.depth = depth < state->most ? depth : state->most, .in_flight = depth != IDLE};
    wait.pin = pin_of(m, state, places);
    name_place(m, youngest(m, state, places), &wait);
    state->most = wait.depth;
    state->waited = true;
    state->crossed = false;
    if (flow->last) plan(flow, waits, at, wait);
    for (int i = 0; i < m->count; i++) {
        Flight *flight = &state->flights[i];
        if (flow->last ? flight->younger >= wait.depth : places[i])
            *flight = (Flight){.younger = IDLE};
    }
}

static void wait_for(Flow *flow, State *state, int at, const bool *places) {
    const Matrices *m = flow->data;
    int depth = deepest(m, state, places);
    if (depth != IDLE) wait_depth(flow, state, m->plan->waits, at, places, depth);
}

static bool *no_places(const Matrices *m) { return NEW_ARRAY(m->arena, bool, m->count + 1); }

/* ---- contractions ---------------------------------------------------------------------------- */

static int place_of(const Matrices *m, const Access *access) {
    return access->space == SPACE_STAGE ? m->tiles + access->object : access->object;
}

static void take_register(const State *state, const Access *access, int use, bool *places) {
    const Flight *flight = &state->flights[access->object];
    if (access->space == SPACE_REGISTER && flies(flight) && flight->use != use)
        places[access->object] = true;
}

static void use_place(const Matrices *m, State *state, const Access *access, int use) {
    state->flights[place_of(m, access)] =
        (Flight){state->flights[place_of(m, access)].younger, true, false, (uint8_t)use};
}

static void issue(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    const Tile *tile = code_row(m->code, at)->tile;
    const Mma *mma = &tile->mma;
    bool *places = no_places(m);
    take_register(state, &tile->target, (int)mma->kind, places);
    take_register(state, mma->a.tile, USE_OPERAND, places);
    wait_for(flow, state, at, places);
    use_place(m, state, &tile->target, (int)mma->kind);
    use_place(m, state, mma->a.tile, USE_OPERAND);
    use_place(m, state, mma->b.tile, USE_OPERAND);
    if (m->plan->commits[at]) commit(m, state);
}

static bool same_place(const Access *a, const Access *b) {
    return a->space == b->space && a->object == b->object;
}

/* Contractions of one accumulator over the same tiles are one group. */
static bool continues(const Tile *last, const Tile *next) {
    return same_place(&last->target, &next->target) &&
           same_place(last->mma.a.tile, next->mma.a.tile) &&
           same_place(last->mma.b.tile, next->mma.b.tile);
}

/* Rows that do not end a group */
static bool keeps_open(const Row *row) {
    return row->kind == ROW_OPEN || row->kind == ROW_LEND || row->kind == ROW_ASK ||
           (row->kind == ROW_CLOSE && row->object != OBJECT_TILE);
}

/* True if there is a contraction. Marks the last one of each group. */
static bool find_groups(Matrices *m) {
    bool any = false;
    m->plan->commits = NEW_ARRAY(m->arena, bool, m->code->rows.count);
    for (size_t at = 0; at < m->code->rows.count; at++) {
        const Row *row = code_row(m->code, (int)at), *next = row + 1;
        if (!plan_contracts(row)) continue;
        while (keeps_open(next)) next++;
        m->plan->commits[at] = !plan_contracts(next) || !continues(row->tile, next->tile);
        m->accumulates[row->tile->target.object] = any = true;
    }
    return any;
}

/* ---- ordinary rows --------------------------------------------------------------------------- */

/* ptxas allows accesses to an accumulator at rest while others are in flight only if a wait
 * follows their issue, and otherwise waits for all (C7517): so a wait that leaves all of them in
 * flight is emitted. Objects for which the end of a loop's body has waited count as in flight
 * after the loop too (C7515). */
static bool must_say(const Matrices *m, const State *state, const bool *places) {
    if (!state->crossed && (state->most == 0 || state->waited)) return false;
    for (int i = 0; i < m->tiles; i++)
        if (places[i] && m->accumulates[i]) return true;
    return false;
}

static bool stands_apart(const Matrices *m, int region) {
    for (; region >= 0; region = code_region(m->code, region)->parent)
        if (m->plan->diverged[region]) return true;
    return false;
}

/* An arrival may follow: the warp's accesses to the stage are complete. */
static void add_signalled(const Matrices *m, const Row *row, bool *places) {
    const Unsafe *what = row->unsafe;
    if (what && plan_unsafe_signals(what) && what->end == END_CONSUME)
        places[m->tiles + what->handle] = true;
}

static void touch(Flow *flow, int at, void *data) {
    const Matrices *m = flow->data;
    State *state = data;
    const Row *row = code_row(m->code, at);
    bool *places = no_places(m);
    plan_names(m->arena, row, places);
    bool say = must_say(m, state, places);
    if (!stands_apart(m, row->region)) add_signalled(m, row, places);
    int depth = deepest(m, state, places);
    if (depth != IDLE || say) wait_depth(flow, state, m->plan->waits, at, places, depth);
    if (row->kind != ROW_TILE) return;
    if (!tile_by_threads(row->tile)) return;
    for (int i = 0; i < m->count; i++) state->flights[i].worked = flies(&state->flights[i]);
}

/* ---- stages ---------------------------------------------------------------------------------- */

static bool consumes(const Matrices *m, int handle) {
    return m->code->role->handles.items[handle].end == END_CONSUME;
}

static void acquire(const Matrices *m, State *state, int handle) {
    state->held[handle] = consumes(m, handle);
    state->flights[m->tiles + handle] = (Flight){.younger = IDLE};
    for (int i = 0; i < m->count; i++) state->flights[i].worked = false;
}

static void move(const Matrices *m, State *state, int to, int from) {
    Flight *handles = &state->flights[m->tiles];
    handles[to] = handles[from];
    handles[from] = (Flight){.younger = IDLE};
    state->held[to] = state->held[from];
    state->held[from] = false;
}

static void release(Flow *flow, int at, void *data) {
    const Matrices *m = flow->data;
    State *state = data;
    const Row *row = code_row(m->code, at);
    if (!consumes(m, row->handle)) return;
    int lag = row->kind == ROW_KEEP ? m->code->lates.items[row->late].lag : 0;
    Flight *stage = &state->flights[m->tiles + row->handle];
    bool *places = no_places(m);
    places[lag > 0 ? m->late[row->late] : m->tiles + row->handle] = true;
    wait_for(flow, state, at, places);
    Flight *held = lag > 0 ? &state->flights[m->late[row->late]] : NULL;
    for (int i = 0; i + 1 < lag; i++) held[i] = held[i + 1];
    if (lag > 0) held[lag - 1] = *stage;
    *stage = (Flight){.younger = IDLE};
    state->held[row->handle] = false;
}

/* Adjacent rows of one kind wait once, at the first of them. */
static bool begins_run(const Matrices *m, int at) {
    return code_row(m->code, at - 1)->kind != code_row(m->code, at)->kind;
}

static void flush(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    if (!begins_run(m, at)) return;
    bool *places = no_places(m);
    for (int i = at; code_row(m->code, i)->kind == ROW_FLUSH; i++) {
        int late = code_row(m->code, i)->late;
        for (int k = 0; k < m->code->lates.items[late].lag; k++) places[m->late[late] + k] = true;
    }
    wait_for(flow, state, at, places);
}

/* The registers of a tile may be reused after its scope. */
static void close(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    if (!begins_run(m, at)) return;
    bool *places = no_places(m);
    for (int i = at; code_row(m->code, i)->kind == ROW_CLOSE; i++) {
        const Row *row = code_row(m->code, i);
        if (row->object == OBJECT_TILE)
            places[row->index] = m->code->role->tiles.items[row->index].in_registers;
    }
    wait_for(flow, state, at, places);
}

/* ---- regions --------------------------------------------------------------------------------- */

static void add_named(const Matrices *m, int region, bool *places) {
    for (int i = 0; i < m->tiles; i++) places[i] |= m->named[region][i];
}

static bool jumps_back(const Region *region) {
    return region_loops(region) && !region_unrolled(region);
}

static int loop_around(const Matrices *m, int region) { /* that is not unrolled; 0: none */
    while (region > 0 && !jumps_back(code_region(m->code, region)))
        region = code_region(m->code, region)->parent;
    return region;
}

/* Lanes diverge from here: no wait for a whole warp is possible before they rejoin. */
static void add_diverged(const Matrices *m, int region, bool *places) {
    if (!m->plan->diverged[region]) return;
    const Region *all = code_region(m->code, region);
    for (int at = all->begin; at < all->end; at++) add_signalled(m, code_row(m->code, at), places);
    add_named(m, region, places);
    add_named(m, loop_around(m, region), places);
}

static void enter(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    int region = code_row(m->code, at)->region;
    bool *places = no_places(m), rests = code_region(m->code, region)->kind == REGION_IF;
    add_diverged(m, region, places);
    if (rests || jumps_back(code_region(m->code, region))) add_named(m, region, places);
    wait_for(flow, state, at, places);
}

static void rest(Flow *flow, State *state, int at, int region) {
    const Matrices *m = flow->data;
    bool *places = no_places(m);
    add_named(m, region, places);
    wait_for(flow, state, at, places);
}

/* Registers that must be at rest where an arm of an IF ends */
static bool *places_of_arm(const Matrices *m, int region, int arm) {
    bool *places = no_places(m);
    add_named(m, loop_around(m, region), places);
    for (int i = 0; i < m->tiles; i++) places[i] &= m->issued[arm][region][i];
    return places;
}

static void first(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    wait_for(flow, state, at, places_of_arm(m, code_row(m->code, at)->region, 0));
}

/* The second arm of an IF ends; the first one does at its ELSE. */
static void second(Flow *flow, int region, void *state) {
    const Matrices *m = flow->data;
    const bool *places = places_of_arm(m, region, 1);
    int depth = deepest(m, state, places);
    if (depth != IDLE)
        wait_depth(flow, state, m->plan->joins, code_region(m->code, region)->end, places, depth);
}

static void finish(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    bool *places = no_places(m);
    memset(places, true, (size_t)m->count * sizeof *places);
    wait_for(flow, state, at, places);
}

/* ---- the rule -------------------------------------------------------------------------------- */

static void tile_row(Flow *flow, int at, void *state) {
    if (plan_contracts(code_row(flow->code, at)))
        issue(flow, at, state);
    else
        touch(flow, at, state);
}

static void acquire_row(Flow *flow, int at, void *state) {
    acquire(flow->data, state, code_row(flow->code, at)->handle);
}

static void move_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    move(flow->data, state, row->handle, row->other);
}

static void next_row(Flow *flow, int at, void *state) {
    int region = code_row(flow->code, at)->region;
    if (jumps_back(code_region(flow->code, region))) rest(flow, state, at, region);
}

static void leave_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    if (row->target != 0) rest(flow, state, at, row->target);
}

static void end_row(Flow *flow, int at, void *state) {
    const Matrices *m = flow->data;
    ((State *)state)->crossed |= m->contracts[code_row(m->code, at)->region];
}

static bool follows(Flow *flow, int region, const void *state) {
    (void)state;
    return region_unrolled(&flow->code->regions.items[region]);
}

static const Rule rule = {
    .name = "waits",
    .together = true,
    .start = start,
    .copy = copy,
    .join = join,
    .on = {.access = {[ACCESS_SETS] = touch, [ACCESS_WRITES] = tile_row, [ACCESS_RAW] = touch},
           .scope = {[SCOPE_CLOSES] = close},
           .stage = {[STAGE_TAKE] = acquire_row,
                     [STAGE_GIVE] = release,
                     [STAGE_GIVE_LATE] = release,
                     [STAGE_GIVE_ALL] = flush,
                     [STAGE_MOVE] = move_row,
                     [STAGE_STEP] = touch},
           .control = {[CONTROL_LOOP] = enter,
                       [CONTROL_IF] = enter,
                       [CONTROL_BLOCK] = enter,
                       [CONTROL_NEXT] = next_row,
                       [CONTROL_ELSE] = first,
                       [CONTROL_LEAVE] = leave_row,
                       [CONTROL_EXIT] = finish,
                       [CONTROL_END] = end_row}},
    .second = second,
    .follows = follows};

/* The register tiles that contractions in rows between `begin` and `end` use */
static bool *issued_in(const Matrices *m, int begin, int end) {
    bool *tiles = NEW_ARRAY(m->arena, bool, m->tiles + 1);
    for (int at = begin; at < end; at++) {
        const Row *row = code_row(m->code, at);
        if (!plan_contracts(row)) continue;
        const Access *first = row->tile->mma.a.tile;
        tiles[row->tile->target.object] = true;
        if (first->space == SPACE_REGISTER) tiles[first->object] = true;
    }
    return tiles;
}

static void name_regions(Matrices *m) {
    for (int arm = 0; arm < 2; arm++)
        m->issued[arm] = NEW_ARRAY(m->arena, bool *, m->code->regions.count);
    m->named = NEW_ARRAY(m->arena, bool *, m->code->regions.count);
    m->contracts = NEW_ARRAY(m->arena, bool, m->code->regions.count);
    for (size_t r = 0; r < m->code->regions.count; r++) {
        const Region *region = code_region(m->code, (int)r);
        bool *tiles = m->named[r] = NEW_ARRAY(m->arena, bool, m->tiles + 1);
        for (int at = region->begin; at < region->end; at++) {
            plan_names(m->arena, code_row(m->code, at), tiles);
            m->contracts[r] |= jumps_back(region) && plan_contracts(code_row(m->code, at));
        }
        for (int t = 0; t < m->tiles; t++) tiles[t] &= m->code->role->tiles.items[t].in_registers;
        if (region->kind != REGION_IF) continue;
        m->issued[0][r] = issued_in(m, region->begin, region->otherwise);
        m->issued[1][r] = issued_in(m, region->otherwise, region->end);
    }
}

void plan_waits(Arena *arena, FlowCode *code, RowsPlan *plan) {
    Matrices m = {.arena = arena, .code = code, .plan = plan};
    m.tiles = (int)code->role->tiles.count, m.handles = (int)code->role->handles.count;
    m.count = m.tiles + m.handles;
    m.accumulates = NEW_ARRAY(arena, bool, m.tiles + 1);
    plan->waits = NEW_ARRAY(arena, Waits, code->rows.count);
    plan->joins = NEW_ARRAY(arena, Waits, code->rows.count);
    if (!find_groups(&m)) return;
    m.late = NEW_ARRAY(arena, int, code->lates.count + 1);
    for (size_t i = 0; i < code->lates.count; i++) {
        m.late[i] = m.count;
        m.count += code->lates.items[i].lag;
    }
    name_regions(&m);
    solve(arena, code, &rule, &m);
}
