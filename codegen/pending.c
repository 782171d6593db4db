/* What matrix instructions have in flight: the statements of a role in, commits and waits out, each as deep as dependence allows.
 *
 * Groups retire in commit order (PTX ISA 9.7.15.7), so all that must be known of a register tile, a `shared` tile or a stage is how many groups were
 * certainly committed behind the youngest one that uses it: a wait for it may leave so many in flight. At a join that is the least of what the paths say.
 * A loop's head is where its own end joins what comes before it: the body is followed, without a word of output, until nothing changes.
 * Registers in flight are neither read nor written; where ordinary code of a loop or a branch touches them, they are at rest where it begins, ends or
 * is left: ptxas follows a group through straight code only, and serialises all of them where it loses one (C7514, C7515). */
#include "codegen/gen.h"

#define IDLE        INT8_MAX /* not used by a group that may be in flight */
#define GROUPS_MOST 7        /* that a wait leaves in flight */

/* How matrix instructions in flight use a register tile; only the same use may follow without a wait: PTX ISA 9.7.15.6.4 */
enum { USE_OPERAND = MMA_COUNT, USE_SEVERAL }; /* else the MmaKind that accumulates in it */

typedef struct Flight {
    int8_t younger; /* groups committed behind the youngest that uses it, or IDLE */
    bool open;      /* used by what was issued since the last commit */
    bool worked;    /* since its issue ordinary arithmetic was emitted, and no acquire behind that */
    uint8_t use;
} Flight;

struct Pending {
    bool live;          /* control comes here */
    const Tile *issued; /* the last contraction since the last commit; NULL: none */
    Flight *flights;    /* of tiles, handles, late stages */
    bool *held;         /* handles: a consumed stage that is certainly held */
    int most;           /* groups that may be in flight */
    bool waited;        /* a wait stands behind the last commit */
};

struct Flights {
    int tiles, handles, count;
    bool *accumulates; /* tiles */
    int *late;         /* by late set: where the stages that it holds stand in `flights`, oldest first */
    Pending now;
    Pending *returned; /* what LEAVE rows of the role left */
    bool silent;       /* followed for a loop's head: nothing is emitted */
};

static bool in_flight(const Flight *flight) { return flight->open || flight->younger != IDLE; }

/* ---- a role --------------------------------------------------------------------------------------------------------- */

/* Notes what contractions accumulate in; are there any? */
static bool find_contractions(const FlowCode *code, bool *accumulates) {
    bool any = false;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_TILE || row->tile->class != TILE_MMA) continue;
        accumulates[row->tile->target.object] = any = true;
    }
    return any;
}

void mma_open(Gen *gen) {
    const FlowCode *code = gen->role->code;
    const Role *role = gen->role->role;
    Flights *flights = NEW(gen->arena, Flights);
    flights->tiles = (int)role->tiles.count;
    flights->handles = (int)role->handles.count;
    flights->count = flights->tiles + flights->handles;
    flights->accumulates = NEW_ARRAY(gen->arena, bool, flights->tiles + 1);
    if (!find_contractions(code, flights->accumulates)) return;
    flights->late = NEW_ARRAY(gen->arena, int, code->lates.count + 1);
    for (size_t i = 0; i < code->lates.count; i++) {
        flights->late[i] = flights->count;
        flights->count += code->lates.items[i].lag;
    }
    flights->now.live = true;
    flights->now.flights = NEW_ARRAY(gen->arena, Flight, flights->count);
    flights->now.held = NEW_ARRAY(gen->arena, bool, flights->handles + 1);
    for (int i = 0; i < flights->count; i++) flights->now.flights[i].younger = IDLE;
    gen->role->flights = flights;
}

/* ---- joins ---------------------------------------------------------------------------------------------------------- */

static Pending copy(Gen *gen, const Pending *from) {
    const Flights *flights = gen->role->flights;
    Pending to = *from;
    to.flights = NEW_ARRAY(gen->arena, Flight, flights->count);
    to.held = NEW_ARRAY(gen->arena, bool, flights->handles + 1);
    for (int i = 0; i < flights->count; i++) to.flights[i] = from->flights[i];
    for (int i = 0; i < flights->handles; i++) to.held[i] = from->held[i];
    return to;
}

/* What is guaranteed on both paths; true where that is less than `into` was. Both are settled. */
static bool join(Gen *gen, Pending *into, const Pending *other) {
    const Flights *flights = gen->role->flights;
    bool less = false;
    if (!other->live) return false;
    if (!into->live) {
        *into = copy(gen, other);
        return true;
    }
    for (int i = 0; i < flights->count; i++) {
        Flight *a = &into->flights[i];
        const Flight *b = &other->flights[i];
        Flight was = *a;
        if (!in_flight(b)) continue;
        if (!in_flight(a))
            *a = *b;
        else {
            a->younger = b->younger < a->younger ? b->younger : a->younger;
            a->worked |= b->worked;
            if (a->use != b->use) a->use = USE_SEVERAL;
        }
        less |= a->younger != was.younger || a->worked != was.worked || a->use != was.use;
    }
    for (int i = 0; i < flights->handles; i++) {
        less |= into->held[i] && !other->held[i];
        into->held[i] &= other->held[i];
    }
    less |= other->most > into->most || (into->waited && !other->waited);
    if (other->most > into->most) into->most = other->most;
    into->waited &= other->waited;
    return less;
}

void mma_branch(Gen *gen, Pending **to) {
    Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live) return;
    mma_settle(gen);
    if (*to == NULL) *to = NEW(gen->arena, Pending);
    join(gen, *to, &flights->now);
}

void mma_goto(Gen *gen, Pending **to) {
    mma_branch(gen, to);
    if (gen->role->flights != NULL) gen->role->flights->now.live = false;
}

void mma_meet(Gen *gen, const Pending *from) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen);
    if (from != NULL) join(gen, &flights->now, from);
}

void mma_leave(Gen *gen, const Row *leave) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    Exits *exits = &gen->role->exits[leave->target];
    if (leave->target != 0) mma_rest(gen, leave->target);
    mma_goto(gen, leave->target == 0 ? &flights->returned : leave->again ? &exits->next : &exits->left);
}

/* ---- groups and waits ----------------------------------------------------------------------------------------------- */

void mma_settle(Gen *gen) {
    Flights *flights = gen->role->flights;
    if (flights == NULL || flights->now.issued == NULL) return;
    if (!flights->silent) INS0(gen->ptx, "wgmma.commit_group.sync.aligned");
    flights->now.issued = NULL;
    flights->now.waited = false;
    if (flights->now.most < GROUPS_MOST) flights->now.most++;
    for (int i = 0; i < flights->count; i++) {
        Flight *flight = &flights->now.flights[i];
        if (flight->open)
            flight->younger = 0;
        else if (flight->younger < GROUPS_MOST)
            flight->younger++;
        flight->open = false;
    }
}

/* The most groups that may stay in flight when all of `places` is to be done; IDLE: none of it is in flight. */
static int deepest(const Flights *flights, const bool *places) {
    int depth = IDLE;
    for (int i = 0; i < flights->count; i++)
        if (places[i] && flights->now.flights[i].younger < depth) depth = flights->now.flights[i].younger;
    return depth;
}

/* ptxas moves a wait above arithmetic that does not depend on it; a spin on a barrier it does not move it across. */
static void pin(Gen *gen) {
    const Flights *flights = gen->role->flights;
    for (int h = 0; h < flights->handles; h++)
        if (flights->now.held[h]) {
            pipe_pin(gen, h);
            return;
        }
}

/* ptxas lets an accumulator at rest be touched beside others in flight only where a wait stands behind their issue, and else waits for all (C7517): one
 * that leaves all of them in flight. */
static bool must_say(const Flights *flights, const bool *places) {
    if (flights->now.most == 0 || flights->now.waited) return false;
    for (int i = 0; i < flights->tiles; i++)
        if (places[i] && flights->accumulates[i]) return true;
    return false;
}

/* Emits the wait. Followed silently, a statement may find in flight what is at rest when it is emitted, because what it stands in is known better then:
 * only what it waits for is certainly at rest behind it, either way. */
static void wait_depth(Gen *gen, const bool *places, int depth) {
    Flights *flights = gen->role->flights;
    bool worked = false;
    if (depth > flights->now.most) depth = flights->now.most;
    flights->now.most = depth;
    flights->now.waited = true;
    for (int i = 0; i < flights->count; i++) worked |= places[i] && flights->now.flights[i].worked;
    if (!flights->silent) {
        if (worked) pin(gen);
        INS(gen->ptx, "wgmma.wait_group.sync.aligned", ptx_int(depth));
        ptx_forget(gen->ptx);
    }
    for (int i = 0; i < flights->count; i++) {
        Flight *flight = &flights->now.flights[i];
        if (flights->silent ? places[i] : flight->younger >= depth) *flight = (Flight){.younger = IDLE};
    }
}

static void wait_for(Gen *gen, const bool *places) {
    mma_settle(gen);
    int depth = deepest(gen->role->flights, places);
    if (depth != IDLE) wait_depth(gen, places, depth);
}

static void wait_for_one(Gen *gen, int place) {
    bool *places = NEW_ARRAY(gen->arena, bool, gen->role->flights->count);
    places[place] = true;
    wait_for(gen, places);
}

/* ---- statements ------------------------------------------------------------------------------------------------------- */

static int place_of(const Flights *flights, const Access *access) {
    return access->space == SPACE_STAGE ? flights->tiles + access->object : access->object;
}

static bool same_place(const Access *a, const Access *b) { return a->space == b->space && a->object == b->object; }

/* What one accumulator gathers from the same tiles is one group. */
static bool continues(const Tile *last, const Tile *next) {
    return same_place(&last->target, &next->target) && same_place(last->mma.a.tile, next->mma.a.tile) &&
           same_place(last->mma.b.tile, next->mma.b.tile);
}

static void take_register(Gen *gen, const Access *access, int use) {
    Flights *flights = gen->role->flights;
    Flight *flight = &flights->now.flights[access->object];
    if (in_flight(flight) && flight->use != use) wait_for_one(gen, access->object);
}

static void use_place(Flights *flights, const Access *access, int use) {
    Flight *flight = &flights->now.flights[place_of(flights, access)];
    flight->open = true;
    flight->worked = false;
    flight->use = (uint8_t)use;
}

void mma_issue(Gen *gen, const Tile *tile) {
    Flights *flights = gen->role->flights;
    const Mma *mma = &tile->mma;
    take_register(gen, &tile->target, (int)mma->kind);
    if (mma->a.tile->space == SPACE_REGISTER) take_register(gen, mma->a.tile, USE_OPERAND);
    if (flights->now.issued != NULL && !continues(flights->now.issued, tile)) mma_settle(gen);
    flights->now.issued = tile;
    use_place(flights, &tile->target, (int)mma->kind);
    use_place(flights, mma->a.tile, USE_OPERAND);
    use_place(flights, mma->b.tile, USE_OPERAND);
}

static void touch_read(Expr *expr, void *data) {
    bool *places = data;
    if (expr->kind == X_READ && expr->read->space == SPACE_REGISTER) places[expr->read->object] = true;
}

static void name_operands(Gen *gen, const Unsafe *what, bool *places) {
    Expr *const parts[] = {what->stage, what->at, what->amount, what->tile == NULL ? NULL : what->tile->element};
    for (size_t i = 0; i < COUNT_OF(parts); i++)
        if (parts[i] != NULL) expr_visit(gen->arena, parts[i], touch_read, places);
    for (size_t i = 0; i < what->operands.count; i++)
        if (what->operands.items[i].value != NULL) expr_visit(gen->arena, what->operands.items[i].value, touch_read, places);
}

/* What an ordinary statement may not find in flight: register tiles that it names, a `shared` tile that it writes */
void mma_names(Gen *gen, const Row *row, bool *places) {
    if (row->kind == ROW_SET) expr_visit(gen->arena, row->value, touch_read, places);
    if (row->kind == ROW_UNSAFE || row->kind == ROW_STEP) name_operands(gen, row->unsafe, places);
    if (row->kind != ROW_TILE || row->tile->class == TILE_MMA) return;
    const Access *target = &row->tile->target;
    if (target->space == SPACE_REGISTER || target->space == SPACE_SHARED) places[target->object] = true;
    expr_visit(gen->arena, row->tile->value, touch_read, places);
    for (int axis = 0; axis < target->rank; axis++) expr_visit(gen->arena, target->subs[axis], touch_read, places);
}

void mma_touch(Gen *gen, const Row *row) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen);
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    mma_names(gen, row, places);
    if (deepest(flights, places) != IDLE || must_say(flights, places))
        wait_depth(gen, places, deepest(flights, places));
    if (row->kind != ROW_TILE || row->tile->class != TILE_MAP) return;
    for (int i = 0; i < flights->count; i++) flights->now.flights[i].worked = in_flight(&flights->now.flights[i]);
}

bool mma_waits(Gen *gen, const Row *row) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return false;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    mma_settle(gen);
    mma_names(gen, row, places);
    return deepest(flights, places) != IDLE;
}

void mma_acquire(Gen *gen, int handle) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen); /* no spin between a fence and its commit: ptxas would wait for each instruction (C7520) */
    flights->now.held[handle] = gen->role->role->handles.items[handle].end == END_CONSUME;
    flights->now.flights[flights->tiles + handle] = (Flight){.younger = IDLE};
    for (int i = 0; i < flights->count; i++) flights->now.flights[i].worked = false;
}

void mma_move(Gen *gen, int to, int from) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    Flight *handles = &flights->now.flights[flights->tiles];
    handles[to] = handles[from];
    handles[from] = (Flight){.younger = IDLE};
    flights->now.held[to] = flights->now.held[from];
    flights->now.held[from] = false;
}

void mma_release(Gen *gen, int handle, int late) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen);
    Flight *stage = &flights->now.flights[flights->tiles + handle];
    wait_for_one(gen, late < 0 ? flights->tiles + handle : flights->late[late]);
    if (late >= 0) {
        Flight *held = &flights->now.flights[flights->late[late]];
        int count = gen->role->code->lates.items[late].lag;
        for (int i = 0; i + 1 < count; i++) held[i] = held[i + 1];
        held[count - 1] = *stage;
    }
    *stage = (Flight){.younger = IDLE};
    flights->now.held[handle] = false;
}

void mma_arrive(Gen *gen, int handle) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen);
    wait_for_one(gen, flights->tiles + handle);
}

void mma_late(Gen *gen, int from, int to) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    for (int at = from; at < to; at++) {
        int late = gen->role->code->rows.items[at].late;
        for (int k = 0; k < gen->role->code->lates.items[late].lag; k++) places[flights->late[late] + k] = true;
    }
    wait_for(gen, places);
}

void mma_end(Gen *gen) {
    if (gen->role->flights != NULL) mma_meet(gen, gen->role->flights->returned);
}

void mma_finish(Gen *gen) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    for (int i = 0; i < flights->count; i++) places[i] = true;
    wait_for(gen, places);
}

/* ---- regions ------------------------------------------------------------------------------ */

static const Region *region_at(const Gen *gen, int region) { return &gen->role->code->regions.items[region]; }

/* A loop that jumps back to its head */
static bool jumps_back(const Region *region) { return region_loops(region) && !region->unroll; }

void mma_rest_in_loop(Gen *gen, int region) {
    while (region > 0 && !jumps_back(region_at(gen, region))) region = region_at(gen, region)->parent;
    mma_rest(gen, region);
}

void mma_rest(Gen *gen, int region) {
    Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    for (int at = region_at(gen, region)->begin; at < region_at(gen, region)->end; at++)
        mma_names(gen, &gen->role->code->rows.items[at], places);
    for (int i = 0; i < flights->tiles; i++) places[i] &= gen->role->role->tiles.items[i].in_registers;
    wait_for(gen, places);
}

void mma_scope(Gen *gen, int from, int to) {
    const Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    for (int at = from; at < to; at++) {
        const Row *row = &gen->role->code->rows.items[at];
        if (row->object == OBJECT_TILE) places[row->index] = gen->role->role->tiles.items[row->index].in_registers;
    }
    wait_for(gen, places);
}

static void follow_rows(Gen *gen, int from, int to);

/* From the loop's head through its body to its head again. An unrolled loop has no head: all trips are followed as one of any number. */
static void follow_trip(Gen *gen, int loop) {
    const Region *region = region_at(gen, loop);
    Exits *exits = &gen->role->exits[loop];
    exits->left = exits->next = NULL;
    mma_branch(gen, &exits->left);
    if (region->where != NULL) mma_branch(gen, &exits->next);
    follow_rows(gen, region->begin + 1, region->next);
    mma_meet(gen, exits->next);
    if (jumps_back(region)) mma_rest(gen, loop);
}

static void find_head(Gen *gen, int loop) {
    Flights *flights = gen->role->flights;
    Pending head = copy(gen, &flights->now);
    Exits saved = gen->role->exits[loop];
    bool silent = flights->silent, less;
    flights->silent = true;
    do {
        flights->now = copy(gen, &head);
        follow_trip(gen, loop);
        less = join(gen, &head, &flights->now);
    } while (less);
    flights->silent = silent;
    flights->now = head;
    gen->role->exits[loop] = saved;
}

void mma_head(Gen *gen, int loop) {
    Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live) return;
    mma_settle(gen);
    mma_rest(gen, loop);
    find_head(gen, loop);
}

void mma_again(Gen *gen, int loop) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_rest(gen, loop);
    flights->now.live = false; /* control jumps back */
}

/* ---- following rows without emitting them ----------------------------------------------------- */

static void follow_loop(Gen *gen, int loop) {
    Flights *flights = gen->role->flights;
    Exits saved = gen->role->exits[loop];
    mma_settle(gen);
    if (jumps_back(region_at(gen, loop))) mma_rest(gen, loop);
    find_head(gen, loop);
    follow_trip(gen, loop);
    flights->now.live = false;
    mma_meet(gen, gen->role->exits[loop].left);
    gen->role->exits[loop] = saved;
}

static void follow_block(Gen *gen, int block) {
    Exits saved = gen->role->exits[block];
    gen->role->exits[block].left = NULL;
    follow_rows(gen, region_at(gen, block)->begin + 1, region_at(gen, block)->end);
    mma_meet(gen, gen->role->exits[block].left);
    gen->role->exits[block] = saved;
}

static void follow_if(Gen *gen, int branch) {
    const Region *region = region_at(gen, branch);
    Pending *otherwise = NULL, *end = NULL; /* a constant condition makes no branch: no rest can be counted on here */
    mma_branch(gen, &otherwise);
    follow_rows(gen, region->begin + 1, region->otherwise);
    mma_goto(gen, &end);
    mma_meet(gen, otherwise);
    follow_rows(gen, region->otherwise + 1, region->end);
    mma_meet(gen, end);
}

/* Returns the last row that was followed: that of a region is its END. */
static int follow_region(Gen *gen, int region) {
    switch (region_at(gen, region)->kind) {
    case REGION_GRID:
    case REGION_FOR: follow_loop(gen, region); break;
    case REGION_IF: follow_if(gen, region); break;
    case REGION_ROLE:
    case REGION_BLOCK:
    case REGION_TURN: follow_block(gen, region); break;
    }
    return region_at(gen, region)->end;
}

static int after_run(const Gen *gen, int at) {
    const FlowCode *code = gen->role->code;
    RowKind kind = code->rows.items[at].kind;
    do at++;
    while (code->rows.items[at].kind == kind);
    return at;
}

static void follow_unsafe(Gen *gen, const Row *row) {
    mma_touch(gen, row);
    if (unsafe_signals(row->unsafe) && row->unsafe->end == END_CONSUME) mma_arrive(gen, row->unsafe->handle);
}

static void follow_release(Gen *gen, const Row *row) {
    bool late = row->kind == ROW_KEEP && gen->role->code->lates.items[row->late].lag > 0;
    if (gen->role->role->handles.items[row->handle].end == END_CONSUME)
        mma_release(gen, row->handle, late ? row->late : -1);
}

static int follow(Gen *gen, int at) {
    const Row *row = &gen->role->code->rows.items[at];
    switch (row->kind) {
    case ROW_LOOP:
    case ROW_IF:
    case ROW_BLOCK: return follow_region(gen, row->region);
    case ROW_LEAVE: mma_leave(gen, row); break;
    case ROW_TILE:
        if (row->tile->class == TILE_MMA)
            mma_issue(gen, row->tile);
        else
            mma_touch(gen, row);
        break;
    case ROW_SET: mma_touch(gen, row); break;
    case ROW_UNSAFE:
    case ROW_STEP: follow_unsafe(gen, row); break;
    case ROW_ACQUIRE: mma_acquire(gen, row->handle); break;
    case ROW_RELEASE:
    case ROW_DROP:
    case ROW_KEEP: follow_release(gen, row); break;
    case ROW_MOVE: mma_move(gen, row->handle, row->other); break;
    case ROW_FLUSH:
        mma_late(gen, at, after_run(gen, at));
        return after_run(gen, at) - 1;
    case ROW_CLOSE:
        mma_scope(gen, at, after_run(gen, at));
        return after_run(gen, at) - 1;
    case ROW_NEXT:
    case ROW_ELSE:
    case ROW_END:
    case ROW_EXIT:
    case ROW_OPEN:
    case ROW_ASK:
    case ROW_LEND:
    case ROW_TAKE:
    case ROW_PASS:
    case ROW_COUNT: break;
    }
    return at;
}

static void follow_rows(Gen *gen, int from, int to) {
    for (int at = from; at < to && gen->role->flights->now.live; at++) at = follow(gen, at);
}
