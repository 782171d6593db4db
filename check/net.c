/* Do the roles wait for each other? At given sizes each role is a list of acquires and releases. Each end of a pipe
 * belongs to one role, so that no step of one role is ever undone by another's: one greedy run stands for all
 * interleavings. It is made for few and small sizes; what waits for ever there is refused with them. */
#include "check/balance.h"

#define STEPS_MOST 4096     /* of one role at one size */
#define TOTAL_MOST 24000    /* over all sizes: this is a cheap check */
#define SIZES_MOST 1000
#define UNKNOWN_COST 512    /* of a size at which a role depends on data */
#define TILES_RUN 3         /* tiles that a persistent block runs one after the other */

typedef struct Step {
    bool acquire;
    bool produce;           /* which end of the pipe */
    int pipe, number;       /* the how-manieth stage of this end, from 0 */
    Span place;
} Step;

typedef struct Pending {    /* a stage that a lagging block has not released yet */
    const Stmt *block;
    int pipe, number;
} Pending;

typedef VEC(Pending) Pendings;

typedef struct Trace {      /* one role at one size */
    VEC(Step) steps;
    size_t at;              /* of the run: the next step */
} Trace;

typedef enum Flow { FLOW_ON, FLOW_LEAVES, FLOW_UNKNOWN } Flow;

typedef struct Unroll {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    Trace *trace;
    int *counts;            /* by pipe and end: stages acquired */
    int *held;              /* by handle: the number it holds */
    int64_t *locals, axes[PROG_MAX_RANK];
    bool *known;
    Env env;
    const int64_t *extents;
    int64_t first, tiles;   /* of the grid that this block runs */
    const Stmt *leaving;    /* FLOW_LEAVES: the leave */
    Pendings *pending;      /* of the innermost loop */
} Unroll;

/* ---- what a role does at these sizes ------------------------------------------------------------------------------- */

static Flow unroll(Unroll *u, Stmt *stmt);

static bool add_step(Unroll *u, bool acquire, bool produce, int pipe, int number, Span place) {
    Step step = {acquire, produce, pipe, number, place};
    if (u->trace->steps.count == STEPS_MOST) return false;
    vec_push(u->arena, &u->trace->steps, step);
    return true;
}

static Flow acquire(Unroll *u, int handle, Span place) {
    if (!valid_index(handle, u->role->handles.count)) return FLOW_UNKNOWN;
    const Handle *what = &u->role->handles.items[handle];
    if (!valid_index(what->pipe, u->prog->pipes.count)) return FLOW_UNKNOWN;
    bool produce = what->end == END_PRODUCE;
    u->held[handle] = u->counts[2 * what->pipe + produce]++;
    return add_step(u, true, produce, what->pipe, u->held[handle], place) ? FLOW_ON : FLOW_UNKNOWN;
}

static Flow release(Unroll *u, int handle, Span place) {
    if (!valid_index(handle, u->role->handles.count)) return FLOW_UNKNOWN;
    const Handle *what = &u->role->handles.items[handle];
    return add_step(u, false, what->end == END_PRODUCE, what->pipe, u->held[handle], place) ? FLOW_ON : FLOW_UNKNOWN;
}

static Flow stage(Unroll *u, Stmt *stmt) {
    Flow flow = acquire(u, stmt->stage.handle, stmt->head);
    if (flow != FLOW_ON) return flow;
    flow = unroll(u, stmt->stage.body);
    if (flow == FLOW_UNKNOWN) return flow;
    if (stmt->stage.lag <= 0 || !u->pending) return release(u, stmt->stage.handle, stmt->head) == FLOW_ON ? flow : FLOW_UNKNOWN;
    int pipe = u->role->handles.items[stmt->stage.handle].pipe, late = 0;
    vec_push(u->arena, u->pending, (Pending){stmt, pipe, u->held[stmt->stage.handle]});
    for (size_t i = 0; i < u->pending->count; i++) late += u->pending->items[i].block == stmt;
    for (size_t i = 0; i < u->pending->count && late > stmt->stage.lag; i++) {
        if (u->pending->items[i].block != stmt) continue;
        if (!add_step(u, false, false, pipe, u->pending->items[i].number, stmt->head)) return FLOW_UNKNOWN;
        for (size_t k = i + 1; k < u->pending->count; k++) u->pending->items[k - 1] = u->pending->items[k];
        u->pending->count--;
        break;
    }
    return flow;
}

typedef struct Effects {
    Unroll *unroll;
    bool pipes;
} Effects;

static void find_effects(Stmt *stmt, void *data) {
    Effects *effects = data;
    effects->pipes |= stmt->kind == S_ACQUIRE || stmt->kind == S_RELEASE || stmt->kind == S_STAGE || stmt->kind == S_MOVE ||
                      stmt->kind == S_LEAVE;
    if (stmt->kind == S_SCALAR) effects->unroll->known[stmt->scalar.local] = false;
    if (stmt->kind == S_FOR && stmt->loop.var >= 0) effects->unroll->known[stmt->loop.var] = false;
}

/* Control that depends on data: passed over where it holds no pipe operation */
static Flow skip(Unroll *u, Stmt *stmt) {
    Effects effects = {u, false};
    walk_stmts(stmt, find_effects, &effects);
    return effects.pipes ? FLOW_UNKNOWN : FLOW_ON;
}

/* One iteration; *over: the loop ends with it */
static Flow iteration(Unroll *u, const Stmt *loop, Stmt *body, bool *over) {
    Flow flow = unroll(u, body);
    *over = flow != FLOW_ON;
    if (flow != FLOW_LEAVES || u->leaving->leave.target != loop) return flow;
    *over = u->leaving->leave.kind == LEAVE_BREAK;
    return FLOW_ON;
}

static Flow flush(Unroll *u, const Pendings *pending, Flow flow) {
    for (size_t i = 0; i < pending->count; i++)
        if (!add_step(u, false, false, pending->items[i].pipe, pending->items[i].number, pending->items[i].block->head))
            return FLOW_UNKNOWN;
    return flow;
}

static Flow loop(Unroll *u, Stmt *stmt) {
    Pendings pending = {0}, *outer = u->pending;
    int64_t lo, hi, where;
    Flow flow = FLOW_ON;
    bool over = false;
    if (!evaluate(&u->env, stmt->loop.lo, &lo) || !evaluate(&u->env, stmt->loop.hi, &hi) || stmt->loop.var < 0) return skip(u, stmt);
    u->pending = &pending;
    for (int64_t i = lo; i < hi && !over; i++) {
        if (i - lo > STEPS_MOST) return skip(u, stmt);
        u->locals[stmt->loop.var] = i;
        u->known[stmt->loop.var] = true;
        if (stmt->loop.where && !evaluate(&u->env, stmt->loop.where, &where)) return skip(u, stmt);
        if (!stmt->loop.where || where) flow = iteration(u, stmt, stmt->loop.body, &over);
    }
    u->pending = outer;
    return flow == FLOW_UNKNOWN ? flow : flush(u, &pending, flow);
}

static Flow grid(Unroll *u, Stmt *stmt) {
    Pendings pending = {0}, *outer = u->pending;
    Flow flow = FLOW_ON;
    bool over = false;
    u->pending = &pending;
    for (int64_t t = u->first; t < u->first + u->tiles && !over; t++) {
        int64_t rest = t;
        for (size_t i = u->prog->axes.count; i-- > 0;) {
            u->axes[i] = rest % u->extents[i];
            rest /= u->extents[i];
            if (stmt->grid.vars[i] < 0) continue;
            u->locals[stmt->grid.vars[i]] = u->axes[i];
            u->known[stmt->grid.vars[i]] = true;
        }
        flow = iteration(u, stmt, stmt->grid.body, &over);
    }
    u->pending = outer;
    return flow == FLOW_UNKNOWN ? flow : flush(u, &pending, flow);
}

static Flow block(Unroll *u, Stmt *stmt) {
    for (size_t i = 0; i < stmt->block.body.count; i++) {
        Flow flow = unroll(u, stmt->block.body.items[i]);
        if (flow == FLOW_LEAVES && u->leaving->leave.target == stmt) return FLOW_ON;
        if (flow != FLOW_ON) return flow;
    }
    return FLOW_ON;
}

static Flow unroll(Unroll *u, Stmt *stmt) {
    int64_t truth;
    if (!stmt) return FLOW_ON;
    switch (stmt->kind) {
    case S_BLOCK: return block(u, stmt);
    case S_SCALAR:
        u->known[stmt->scalar.local] = evaluate(&u->env, stmt->scalar.value, &u->locals[stmt->scalar.local]);
        break;
    case S_TILE: break;
    case S_GRID: return grid(u, stmt);
    case S_FOR: return loop(u, stmt);
    case S_IF:
        if (!evaluate(&u->env, stmt->branch.condition, &truth)) return skip(u, stmt);
        return unroll(u, truth ? stmt->branch.then : stmt->branch.otherwise);
    case S_LEAVE: u->leaving = stmt; return FLOW_LEAVES;
    case S_ACQUIRE: return acquire(u, stmt->acquire.handle, stmt->head);
    case S_RELEASE: return release(u, stmt->release.handle, stmt->span);
    case S_MOVE: u->held[stmt->move.to] = u->held[stmt->move.from]; break;
    case S_STAGE: return stage(u, stmt);
    }
    return FLOW_ON;
}

static bool unroll_role(Arena *arena, const Prog *prog, const Role *role, const Sizes *sizes, const int64_t *extents, int64_t first,
                        int64_t tiles, Trace *trace) {
    Unroll u = {.arena = arena, .prog = prog, .role = role, .trace = trace, .extents = extents, .first = first, .tiles = tiles};
    u.counts = NEW_ARRAY(arena, int, prog->pipes.count * 2 + 1);
    u.held = NEW_ARRAY(arena, int, role->handles.count + 1);
    u.locals = NEW_ARRAY(arena, int64_t, role->locals.count + 1);
    u.known = NEW_ARRAY(arena, bool, role->locals.count + 1);
    u.env = (Env){.prog = prog, .role = role, .symbols = sizes->values, .axes = u.axes, .locals = u.locals, .known = u.known};
    return unroll(&u, role->body) != FLOW_UNKNOWN;
}

bool net_acquires(Arena *arena, const Prog *prog, const Role *role, int pipe, const Sizes *sizes, const int64_t *extents,
                  int64_t tile, int64_t *count) {
    Trace trace = {.at = 0};
    *count = 0;
    if (!unroll_role(arena, prog, role, sizes, extents, tile, 1, &trace)) return false;
    for (size_t i = 0; i < trace.steps.count; i++) *count += trace.steps.items[i].acquire && trace.steps.items[i].pipe == pipe;
    return true;
}

/* ---- the run -------------------------------------------------------------------------------------------------------- */

typedef struct Ring {
    int *filled;            /* by number: the producer has released it */
    int *drained;           /* by number: how many consumers have */
    int count;
} Ring;

typedef struct Net {
    Arena *arena;
    Prog *prog;
    Trace *traces;          /* by role */
    Ring *rings;            /* by pipe */
} Net;

static bool can_go(const Net *net, const Step *step) {
    const Ring *ring = &net->rings[step->pipe];
    const Pipe *pipe = &net->prog->pipes.items[step->pipe];
    if (!step->acquire) return true;
    if (!step->produce) return step->number < ring->count && ring->filled[step->number];
    int before = step->number - pipe->stages;
    return before < 0 || ring->drained[before] == (int)pipe->consumers.count;
}

/* Everyone goes as far as he can, until nobody can. True: all have come to their end. */
static bool run(Net *net) {
    bool moved = true, ended = true;
    while (moved) {
        moved = false;
        for (size_t r = 0; r < net->prog->roles.count; r++) {
            Trace *trace = &net->traces[r];
            for (; trace->at < trace->steps.count && can_go(net, &trace->steps.items[trace->at]); trace->at++, moved = true) {
                const Step *step = &trace->steps.items[trace->at];
                Ring *ring = &net->rings[step->pipe];
                if (step->acquire || step->number >= ring->count) continue;
                if (step->produce) ring->filled[step->number] = 1;
                else ring->drained[step->number]++;
            }
        }
    }
    for (size_t r = 0; r < net->prog->roles.count; r++) ended &= net->traces[r].at == net->traces[r].steps.count;
    return ended;
}

/* ---- who waits for whom ----------------------------------------------------------------------------------------------- */

static const Step *waits_at(const Net *net, int role) {
    const Trace *trace = &net->traces[role];
    return trace->at < trace->steps.count ? &trace->steps.items[trace->at] : NULL;
}

static bool will_release(const Net *net, int role, int pipe, bool produce, int number) {
    const Trace *trace = &net->traces[role];
    for (size_t i = trace->at; i < trace->steps.count; i++) {
        const Step *step = &trace->steps.items[i];
        if (!step->acquire && step->pipe == pipe && step->produce == produce && step->number == number) return true;
    }
    return false;
}

/* The role that has to release what `role` waits for, -1: nobody will */
static int awaited(const Net *net, int role) {
    const Step *step = waits_at(net, role);
    const Pipe *pipe = &net->prog->pipes.items[step->pipe];
    if (!step->produce) return pipe->producer;
    for (size_t i = 0; i < pipe->consumers.count; i++)
        if (will_release(net, pipe->consumers.items[i], step->pipe, false, step->number - pipe->stages)) return pipe->consumers.items[i];
    return -1;
}

static void refuse(Net *net, Diags *diags, const Sizes *sizes, int64_t tiles) {
    int next = -1, seen[64], count = 0, begin = 0;
    for (size_t r = 0; r < net->prog->roles.count && next < 0; r++)
        if (waits_at(net, (int)r)) next = (int)r;
    for (bool again = false; next >= 0 && waits_at(net, next) && count < 64 && !again;) {
        seen[count++] = next;
        next = awaited(net, next);
        for (int i = 0; i < count; i++)
            if (seen[i] == next) begin = i, again = true;
    }
    const Step *first = waits_at(net, seen[begin]);
    const Prog *prog = net->prog;
    Diag *diag = diag_at(diags, P0460, first->place, count - begin > 1 ? "roles wait for each other for ever" : "role `%s` waits for ever",
                         prog->roles.items[seen[begin]].name);
    for (int i = begin; i < count; i++) {
        const Step *step = waits_at(net, seen[i]);
        const Pipe *pipe = &prog->pipes.items[step->pipe];
        int other = awaited(net, seen[i]);
        const char *text = arena_printf(net->arena, "`%s` waits for `%s` to %s stage %d of `%s`", prog->roles.items[seen[i]].name,
                                        other >= 0 ? prog->roles.items[other].name : "somebody", step->produce ? "release" : "produce",
                                        (step->produce ? step->number - pipe->stages : step->number) + 1, pipe->name);
        if (i == begin) diag_primary(diags, diag, "%s", text);
        else if (diag->label_count < DIAG_MAX_LABELS) diag_label(diags, diag, step->place, "%s", text);
    }
    Str where = str_new(net->arena);
    sizes_print(sizes, &where);
    str_printf(&where, "%s%lld tile%s in a block", where.length ? ", " : "", (long long)tiles, tiles == 1 ? "" : "s");
    diag_note(diags, diag, "with %s", where.text);
    diag_help(diags, diag, "let one of them release before it waits, acquire in the other order, or give a ring more stages");
}

/* ---- sizes ------------------------------------------------------------------------------------------------------------ */

static void add_formulas(Stmt *stmt, void *data) {
    Sizes *sizes = data;
    if (stmt->kind == S_FOR) {
        sizes_formula(sizes, stmt->loop.lo);
        sizes_formula(sizes, stmt->loop.hi);
    }
    if (stmt->kind == S_IF) sizes_formula(sizes, stmt->branch.condition);
}

/* -1: not known or too long; 0: refused; else the steps taken */
static int try_tiles(Arena *arena, Prog *prog, Diags *diags, const Sizes *sizes, const int64_t *extents, int64_t first, int64_t tiles) {
    Net net = {.arena = arena, .prog = prog, .traces = NEW_ARRAY(arena, Trace, prog->roles.count + 1),
               .rings = NEW_ARRAY(arena, Ring, prog->pipes.count + 1)};
    size_t steps = 1;
    for (size_t r = 0; r < prog->roles.count; r++) {
        if (!unroll_role(arena, prog, &prog->roles.items[r], sizes, extents, first, tiles, &net.traces[r])) return -1;
        steps += net.traces[r].steps.count;
    }
    for (size_t p = 0; p < prog->pipes.count; p++) {
        net.rings[p].count = (int)steps;
        net.rings[p].filled = NEW_ARRAY(arena, int, steps);
        net.rings[p].drained = NEW_ARRAY(arena, int, steps);
    }
    if (run(&net)) return (int)steps;
    refuse(&net, diags, sizes, tiles);
    return 0;
}

static bool same_trips(const Prog *prog, const Sizes *sizes, const int64_t *extents, int64_t tiles, uint64_t *hash) {
    uint64_t mix = (uint64_t)tiles * 1099511628211u;
    Env env = {.prog = prog, .symbols = sizes->values, .axes = NULL};
    (void)extents;
    for (size_t d = 0; d < prog->domains.count; d++) {
        int64_t lo = 0, hi = 0;
        if (!evaluate(&env, prog->domains.items[d].lo, &lo) || !evaluate(&env, prog->domains.items[d].hi, &hi)) hi = sizes->sum, lo = 0;
        mix = (mix ^ (uint64_t)(hi > lo ? hi - lo : 0)) * 1099511628211u;
    }
    bool same = mix == *hash;
    *hash = mix;
    return same;
}

void net_check(Arena *arena, Prog *prog, Diags *diags) {
    int total = 0;
    uint64_t before = 0;
    if (!prog->pipes.count) return;
    Sizes *sizes = sizes_new(arena, prog, true);
    for (size_t i = 0; i < prog->axes.count; i++) sizes_formula(sizes, prog->axes.items[i].extent);
    for (size_t r = 0; r < prog->roles.count; r++) walk_stmts(prog->roles.items[r].body, add_formulas, sizes);
    for (int tried = 0; tried < SIZES_MOST && total < TOTAL_MOST && sizes_next(sizes); tried++) {
        int64_t extents[PROG_MAX_RANK], tiles;
        if (!sizes_tiles(sizes, extents, &tiles) || same_trips(prog, sizes, extents, tiles, &before)) continue;
        int64_t at_once = prog->persistent && tiles > 1 ? (tiles < TILES_RUN ? tiles : TILES_RUN) : tiles > 0;
        int steps = try_tiles(arena, prog, diags, sizes, extents, 0, at_once);
        if (steps == 0) return;
        total += steps > 0 ? steps : UNKNOWN_COST;
        if (tiles <= at_once) continue;
        steps = try_tiles(arena, prog, diags, sizes, extents, tiles - 1, 1);
        if (steps == 0) return;
        total += steps > 0 ? steps : UNKNOWN_COST;
    }
}
