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

/* A `consume` block that releases late, the stages it still holds: as many places as its lag, oldest first */
typedef struct Late {
    const Stmt *stage, *loop;
    int first; /* place in flights */
} Late;

struct Flights {
    int tiles, handles, count;
    bool *accumulates; /* tiles */
    VEC(Late) late;
    Pending now;
    Pending *returned; /* what `return` left */
    bool silent;       /* followed for a loop's head: nothing is emitted */
};

static bool in_flight(const Flight *flight) { return flight->open || flight->younger != IDLE; }

/* ---- a role --------------------------------------------------------------------------------------------------------- */

static bool find_late(Gen *gen, Flights *flights, const Stmt *stmt, const Stmt *loop);

static bool find_in_list(Gen *gen, Flights *flights, const Stmts *list, const Stmt *loop) {
    bool any = false;
    for (size_t i = 0; i < list->count; i++) any |= find_late(gen, flights, list->items[i], loop);
    return any;
}

/* Notes the blocks that release late; are there matrix instructions at all? */
static bool find_late(Gen *gen, Flights *flights, const Stmt *stmt, const Stmt *loop) {
    if (stmt == NULL) return false;
    switch (stmt->kind) {
    case S_BLOCK: return find_in_list(gen, flights, &stmt->block.body, loop);
    case S_TILE:
        if (stmt->tile->class != TILE_MMA) return false;
        flights->accumulates[stmt->tile->target.object] = true;
        return true;
    case S_GRID: return find_late(gen, flights, stmt->grid.body, stmt);
    case S_FOR: return find_late(gen, flights, stmt->loop.body, stmt);
    case S_IF: {
        bool then = find_late(gen, flights, stmt->branch.then, loop);
        return find_late(gen, flights, stmt->branch.otherwise, loop) || then;
    }
    case S_STAGE:
        if (stmt->stage.lag > 0) {
            vec_push(gen->arena, &flights->late, (Late){stmt, loop, flights->count});
            flights->count += stmt->stage.lag;
        }
        return find_late(gen, flights, stmt->stage.body, loop);
    case S_SCALAR:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return false;
    }
    return false;
}

void mma_open(Gen *gen) {
    const Role *role = gen->role->role;
    Flights *flights = NEW(gen->arena, Flights);
    flights->tiles = (int)role->tiles.count;
    flights->handles = (int)role->handles.count;
    flights->count = flights->tiles + flights->handles;
    flights->accumulates = NEW_ARRAY(gen->arena, bool, flights->tiles + 1);
    if (!find_late(gen, flights, role->body, NULL)) return;
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

void mma_leave(Gen *gen, Frame *frame, LeaveKind kind) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    if (frame != NULL) mma_rest(gen, frame->stmt);
    for (const Frame *left = gen->role->frame; left != frame; left = left->outer) mma_scope(gen, left->stmt);
    mma_goto(gen, frame == NULL ? &flights->returned : kind == LEAVE_CONTINUE ? &frame->next : &frame->left);
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
void mma_names(Gen *gen, const Stmt *stmt, bool *places) {
    if (stmt->kind == S_SCALAR) expr_visit(gen->arena, stmt->scalar.value, touch_read, places);
    if (stmt->kind == S_UNSAFE) name_operands(gen, stmt->unsafe, places);
    if (stmt->kind != S_TILE || stmt->tile->class == TILE_MMA) return;
    const Access *target = &stmt->tile->target;
    if (target->space == SPACE_REGISTER || target->space == SPACE_SHARED) places[target->object] = true;
    expr_visit(gen->arena, stmt->tile->value, touch_read, places);
    for (int axis = 0; axis < target->rank; axis++) expr_visit(gen->arena, target->subs[axis], touch_read, places);
}

void mma_touch(Gen *gen, const Stmt *stmt) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen);
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    mma_names(gen, stmt, places);
    if (deepest(flights, places) != IDLE || must_say(flights, places))
        wait_depth(gen, places, deepest(flights, places));
    if (stmt->kind != S_TILE || stmt->tile->class != TILE_MAP) return;
    for (int i = 0; i < flights->count; i++) flights->now.flights[i].worked = in_flight(&flights->now.flights[i]);
}

bool mma_waits(Gen *gen, const Stmt *stmt) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return false;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    mma_settle(gen);
    mma_names(gen, stmt, places);
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

static const Late *late_of(const Flights *flights, int handle) {
    for (size_t i = 0; i < flights->late.count; i++)
        if (flights->late.items[i].stage->stage.handle == handle) return &flights->late.items[i];
    return NULL;
}

void mma_release(Gen *gen, int handle) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_settle(gen);
    const Late *late = late_of(flights, handle);
    Flight *stage = &flights->now.flights[flights->tiles + handle];
    wait_for_one(gen, late == NULL ? flights->tiles + handle : late->first);
    if (late != NULL) {
        Flight *places = &flights->now.flights[late->first];
        int count = late->stage->stage.lag;
        for (int i = 0; i + 1 < count; i++) places[i] = places[i + 1];
        places[count - 1] = *stage;
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

void mma_late(Gen *gen, const Stmt *loop) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    for (size_t i = 0; i < flights->late.count; i++) {
        const Late *late = &flights->late.items[i];
        for (int k = 0; k < late->stage->stage.lag && late->loop == loop; k++) places[late->first + k] = true;
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

/* ---- loops ------------------------------------------------------------------------------------------------------------ */

typedef struct Named {
    Gen *gen;
    bool *places;
} Named;

static void name_one(Stmt *stmt, void *data) {
    const Named *named = data;
    mma_names(named->gen, stmt, named->places);
}

void mma_rest_in_loop(Gen *gen) {
    const Frame *frame = gen->role->frame;
    while (frame != NULL && frame->stmt->kind != S_GRID && (frame->stmt->kind != S_FOR || frame->stmt->loop.unroll))
        frame = frame->outer;
    mma_rest(gen, frame == NULL ? gen->role->role->body : frame->stmt);
}

void mma_rest(Gen *gen, const Stmt *stmt) {
    Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    stmt_visit((Stmt *)(uintptr_t)stmt, name_one, &(Named){gen, places});
    for (int i = 0; i < flights->tiles; i++) places[i] &= gen->role->role->tiles.items[i].in_registers;
    wait_for(gen, places);
}

void mma_scope(Gen *gen, const Stmt *stmt) {
    const Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live || stmt->kind != S_BLOCK || stmt->block.tiles.count == 0) return;
    bool *places = NEW_ARRAY(gen->arena, bool, flights->count);
    for (size_t i = 0; i < stmt->block.tiles.count; i++) {
        int tile = stmt->block.tiles.items[i];
        places[tile] = gen->role->role->tiles.items[tile].in_registers;
    }
    wait_for(gen, places);
}

static void follow(Gen *gen, const Stmt *stmt);

/* From the loop's head through its body to its head again. An unrolled loop has no head: all trips are followed as one of any number. */
static void follow_trip(Gen *gen, const Stmt *loop, Frame *frame) {
    frame->left = frame->next = NULL;
    frame->stmt = loop;
    frame->outer = gen->role->frame;
    gen->role->frame = frame;
    mma_branch(gen, &frame->left);
    if (loop->kind == S_FOR && loop->loop.where != NULL) mma_branch(gen, &frame->next);
    follow(gen, loop->kind == S_GRID ? loop->grid.body : loop->loop.body);
    mma_meet(gen, frame->next);
    if (!(loop->kind == S_FOR && loop->loop.unroll)) mma_rest(gen, loop);
    gen->role->frame = frame->outer;
}

static void find_head(Gen *gen, const Stmt *loop) {
    Flights *flights = gen->role->flights;
    Pending head = copy(gen, &flights->now);
    bool silent = flights->silent, less;
    flights->silent = true;
    do {
        Frame frame = {0};
        flights->now = copy(gen, &head);
        follow_trip(gen, loop, &frame);
        less = join(gen, &head, &flights->now);
    } while (less);
    flights->silent = silent;
    flights->now = head;
}

void mma_head(Gen *gen, const Stmt *loop) {
    Flights *flights = gen->role->flights;
    if (flights == NULL || !flights->now.live) return;
    mma_settle(gen);
    mma_rest(gen, loop);
    find_head(gen, loop);
}

void mma_again(Gen *gen, const Stmt *loop) {
    Flights *flights = gen->role->flights;
    if (flights == NULL) return;
    mma_rest(gen, loop);
    flights->now.live = false; /* control jumps back */
}

/* ---- following statements without emitting them ------------------------------------------------------------------------- */

static void follow_loop(Gen *gen, const Stmt *loop) {
    Flights *flights = gen->role->flights;
    Frame frame = {0};
    mma_settle(gen);
    if (!flights->now.live) return;
    if (!(loop->kind == S_FOR && loop->loop.unroll)) mma_rest(gen, loop);
    find_head(gen, loop);
    follow_trip(gen, loop, &frame);
    flights->now.live = false;
    mma_meet(gen, frame.left);
    mma_late(gen, loop);
}

static void follow_block(Gen *gen, const Stmt *stmt) {
    Frame frame = {.stmt = stmt, .outer = gen->role->frame};
    gen->role->frame = &frame;
    for (size_t i = 0; i < stmt->block.body.count; i++) follow(gen, stmt->block.body.items[i]);
    mma_meet(gen, frame.left);
    mma_scope(gen, stmt);
    gen->role->frame = frame.outer;
}

static void follow_if(Gen *gen, const Stmt *stmt) {
    Pending *otherwise = NULL, *end = NULL; /* a constant condition makes no branch: no rest can be counted on here */
    mma_branch(gen, &otherwise);
    follow(gen, stmt->branch.then);
    mma_goto(gen, &end);
    mma_meet(gen, otherwise);
    follow(gen, stmt->branch.otherwise);
    mma_meet(gen, end);
}

static void follow_leave(Gen *gen, const Stmt *stmt) {
    for (size_t i = 0; i < stmt->leave.releases.count; i++)
        if (gen->role->role->handles.items[stmt->leave.releases.items[i]].end == END_CONSUME)
            mma_release(gen, stmt->leave.releases.items[i]);
    Frame *frame = gen->role->frame;
    for (; frame != NULL && frame->stmt != stmt->leave.target; frame = frame->outer) mma_late(gen, frame->stmt);
    mma_leave(gen, frame, stmt->leave.kind);
}

static void follow(Gen *gen, const Stmt *stmt) {
    if (stmt == NULL || !gen->role->flights->now.live) return;
    switch (stmt->kind) {
    case S_BLOCK: follow_block(gen, stmt); return;
    case S_SCALAR: mma_touch(gen, stmt); return;
    case S_TILE:
        if (stmt->tile->class == TILE_MMA)
            mma_issue(gen, stmt->tile);
        else
            mma_touch(gen, stmt);
        return;
    case S_GRID:
    case S_FOR: follow_loop(gen, stmt); return;
    case S_IF: follow_if(gen, stmt); return;
    case S_LEAVE: follow_leave(gen, stmt); return;
    case S_TRY: return;
    case S_ACQUIRE: mma_acquire(gen, stmt->acquire.handle); return;
    case S_RELEASE:
        if (gen->role->role->handles.items[stmt->release.handle].end == END_CONSUME)
            mma_release(gen, stmt->release.handle);
        return;
    case S_MOVE: mma_move(gen, stmt->move.to, stmt->move.from); return;
    case S_UNSAFE:
        mma_touch(gen, stmt);
        if (unsafe_signals(stmt->unsafe) && stmt->unsafe->end == END_CONSUME) mma_arrive(gen, stmt->unsafe->handle);
        return;
    case S_STAGE:
        mma_acquire(gen, stmt->stage.handle);
        follow(gen, stmt->stage.body);
        if (gen->role->role->handles.items[stmt->stage.handle].end == END_CONSUME) mma_release(gen, stmt->stage.handle);
        return;
    }
}
