/* Do the roles wait for each other? At given sizes each process is a list of acquires and releases. A role is one process, or one an
 * instance where these take turns: then the tokens of its turns are steps too. A stage is numbered and a token has one taker, so that no
 * step of one process is ever undone by another's: one greedy run stands for all interleavings. What waits for ever is refused with the sizes. */
#include "check/balance.h"

#define STEPS_MOST 100000   /* of one process at one size */
#define WAITS_MOST 64       /* that are followed for a message */
#define PAST_MOST 64        /* releases that are remembered for it, */
#define PAST_SHOWN 4        /* and told */
#define DEEPER_MOST 8       /* stages more that a ring is given, to see whether it helps */

typedef struct Pending {    /* a stage that a lagging block has not released yet */
    const Stmt *block;
    int pipe, number;
} Pending;

typedef VEC(Pending) Pendings;

typedef enum Flow { FLOW_ON, FLOW_LEAVES, FLOW_UNKNOWN } Flow;

typedef struct Unroll {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    Trace *trace;
    int instance;           /* as in the trace */
    int iteration;          /* of the grid, so far */
    bool skipping;          /* another instance's iteration: cursors step, nothing is done */
    int *turned;            /* by turn: how often it has been executed */
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

static bool add_step(Unroll *u, StepKind kind, bool produce, int pipe, int number, Span place) {
    Step step = {kind, produce, pipe, number, place};
    if (u->skipping) return true;
    if ((kind == STEP_ACQUIRE || kind == STEP_RELEASE) && u->prog->pipes.items[pipe].unproved) return true; /* signals by hand */
    if (u->trace->steps.count == (u->trace->most ? u->trace->most : STEPS_MOST)) return false;
    vec_push(u->arena, &u->trace->steps, step);
    return true;
}

static Flow acquire(Unroll *u, int handle, Span place) {
    if (!valid_index(handle, u->role->handles.count)) return FLOW_UNKNOWN;
    const Handle *what = &u->role->handles.items[handle];
    if (!valid_index(what->pipe, u->prog->pipes.count)) return FLOW_UNKNOWN;
    bool produce = what->end == END_PRODUCE;
    u->held[handle] = u->counts[2 * what->pipe + produce]++;
    return add_step(u, STEP_ACQUIRE, produce, what->pipe, u->held[handle], place) ? FLOW_ON : FLOW_UNKNOWN;
}

static Flow release(Unroll *u, int handle, Span place) {
    if (!valid_index(handle, u->role->handles.count)) return FLOW_UNKNOWN;
    const Handle *what = &u->role->handles.items[handle];
    return add_step(u, STEP_RELEASE, what->end == END_PRODUCE, what->pipe, u->held[handle], place) ? FLOW_ON : FLOW_UNKNOWN;
}

static Flow stage(Unroll *u, Stmt *stmt) {
    Flow flow = acquire(u, stmt->stage.handle, stmt->head);
    if (flow != FLOW_ON) return flow;
    flow = unroll(u, stmt->stage.body);
    if (flow == FLOW_UNKNOWN) return flow;
    if (stmt->stage.lag <= 0 || !u->pending || u->skipping)
        return release(u, stmt->stage.handle, stmt->head) == FLOW_ON ? flow : FLOW_UNKNOWN;
    int pipe = u->role->handles.items[stmt->stage.handle].pipe, late = 0;
    vec_push(u->arena, u->pending, (Pending){stmt, pipe, u->held[stmt->stage.handle]});
    for (size_t i = 0; i < u->pending->count; i++) late += u->pending->items[i].block == stmt;
    for (size_t i = 0; i < u->pending->count && late > stmt->stage.lag; i++) {
        if (u->pending->items[i].block != stmt) continue;
        if (!add_step(u, STEP_RELEASE, false, pipe, u->pending->items[i].number, stmt->head)) return FLOW_UNKNOWN;
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
    stmt_visit(stmt, find_effects, &effects);
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
        if (!add_step(u, STEP_RELEASE, false, pending->items[i].pipe, pending->items[i].number, pending->items[i].block->head))
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
        u->skipping = u->role->in_turn && u->instance >= 0 && u->iteration++ % u->role->instances != u->instance;
        flow = iteration(u, stmt, stmt->grid.body, &over);
        u->skipping = false;
    }
    u->pending = outer;
    return flow == FLOW_UNKNOWN ? flow : flush(u, &pending, flow);
}

/* The how-manieth of all instances' executions is this one? A role in turn has one an iteration. */
static int turn_number(const Unroll *u, int turn) {
    return u->role->in_turn ? u->turned[turn] : u->turned[turn] * u->role->instances + u->instance;
}

static Flow list(Unroll *u, Stmt *stmt) {
    for (size_t i = 0; i < stmt->block.body.count; i++) {
        Flow flow = unroll(u, stmt->block.body.items[i]);
        if (flow == FLOW_LEAVES && u->leaving->leave.target == stmt) return FLOW_ON;
        if (flow != FLOW_ON) return flow;
    }
    return FLOW_ON;
}

static Flow block(Unroll *u, Stmt *stmt) {
    int turn = stmt->block.turn - 1;
    if (turn < 0 || u->instance < 0) return list(u, stmt);
    int number = turn_number(u, turn);
    u->turned[turn]++;
    if (!add_step(u, STEP_TAKE, false, turn, number, stmt->head)) return FLOW_UNKNOWN;
    Flow flow = list(u, stmt);
    if (flow == FLOW_UNKNOWN || !add_step(u, STEP_PASS, false, turn, number, stmt->head)) return FLOW_UNKNOWN;
    return flow;
}

static void forget_locals(Unroll *u, const Unsafe *what) {
    if (what->local >= 0) u->known[what->local] = false;
    for (size_t i = 0; i < what->operands.count; i++)
        if (what->operands.items[i].local >= 0) u->known[what->operands.items[i].local] = false;
}

static Flow unroll(Unroll *u, Stmt *stmt) {
    int64_t truth;
    if (!stmt) return FLOW_ON;
    switch (stmt->kind) {
    case S_BLOCK: return block(u, stmt);
    case S_SCALAR:
        u->known[stmt->scalar.local] = evaluate(&u->env, stmt->scalar.value, &u->locals[stmt->scalar.local]);
        break;
    case S_UNSAFE: forget_locals(u, stmt->unsafe); break;
    case S_TILE:
        if (u->trace->seen && stmt->tile && !u->skipping) u->trace->seen(u->trace, stmt, &u->env, u->held);
        break;
    case S_TRY: break;
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

bool net_trace(Arena *arena, const Prog *prog, const Sizes *sizes, const int64_t *extents, int64_t first, int64_t tiles, Trace *trace) {
    const Role *role = trace->role;
    Unroll u = {.arena = arena, .prog = prog, .role = role, .trace = trace, .extents = extents, .first = first, .tiles = tiles,
                .instance = trace->instance};
    u.turned = NEW_ARRAY(arena, int, role->turns + 1);
    u.counts = NEW_ARRAY(arena, int, prog->pipes.count * 2 + 1);
    u.held = NEW_ARRAY(arena, int, role->handles.count + 1);
    u.locals = NEW_ARRAY(arena, int64_t, role->locals.count + 1);
    u.known = NEW_ARRAY(arena, bool, role->locals.count + 1);
    u.env = (Env){.prog = prog, .role = role, .symbols = sizes->values, .axes = u.axes, .locals = u.locals, .known = u.known,
                  .reads = trace->reads, .rank = trace->instance >= 0 ? &trace->instance : NULL};
    return unroll(&u, role->body) != FLOW_UNKNOWN;
}

bool net_acquires(Arena *arena, const Prog *prog, const Role *role, int pipe, End end, const Sizes *sizes, const int64_t *extents,
                  int64_t tile, int64_t tiles, int64_t *count) {
    Reads reads = {.memory = sizes->memory};
    Trace trace = {.role = role, .instance = ALL_INSTANCES, .reads = sizes->memory ? &reads : NULL};
    *count = 0;
    if (!net_trace(arena, prog, sizes, extents, tile, tiles, &trace)) return false;
    for (size_t i = 0; i < trace.steps.count; i++)
        *count += trace.steps.items[i].kind == STEP_ACQUIRE && trace.steps.items[i].pipe == pipe &&
                  trace.steps.items[i].produce == (end == END_PRODUCE);
    return true;
}

/* ---- the run -------------------------------------------------------------------------------------------------------- */

typedef struct Ring {
    int *filled;            /* by number: how many of those who produce it have released it */
    int *drained;           /* by number: how many of those who consume it have */
    int count;
    int producers, consumers; /* processes that take each stage */
} Ring;

typedef struct Net {
    Arena *arena;
    Prog *prog;
    VEC(Trace) traces;
    Ring *rings;            /* by pipe */
    int **passed;           /* by role and turn: how often it has been passed on */
    Reads *reads;           /* what is taken to be in memory; NULL: nothing is known of it */
    struct Past { int process; size_t step; } past[PAST_MOST]; /* releases, the last ones round and round */
    size_t past_count;
} Net;

static bool has_processes(const Role *role) { return role->instances > 1 && (role->in_turn || role->turns); }

static int processes_taking(const Role *role, int pipe) { return has_processes(role) && role->pipes ? role_takes(role, pipe) : 1; }

static int *passed_of(const Net *net, const Trace *trace, const Step *step) {
    return &net->passed[trace->role - net->prog->roles.items][step->pipe];
}

static bool can_go(const Net *net, const Trace *trace, const Step *step) {
    if (step->kind == STEP_TAKE) return *passed_of(net, trace, step) == step->number;
    if (step->kind != STEP_ACQUIRE) return true;
    const Ring *ring = &net->rings[step->pipe];
    if (!step->produce) return step->number < ring->count && ring->filled[step->number] == ring->producers;
    int before = step->number - net->prog->pipes.items[step->pipe].stages;
    return before < 0 || ring->drained[before] == ring->consumers;
}

static void go(Net *net, const Trace *trace, const Step *step) {
    Ring *ring = &net->rings[step->pipe];
    switch (step->kind) {
    case STEP_RELEASE:
        if (step->number >= ring->count) break;
        if (step->produce) ring->filled[step->number]++;
        else ring->drained[step->number]++;
        break;
    case STEP_PASS: ++*passed_of(net, trace, step); break;
    case STEP_ACQUIRE: case STEP_TAKE: break;
    }
}

/* Everyone goes as far as he can, until nobody can. True: all have come to their end. */
static bool run(Net *net) {
    bool moved = true, ended = true;
    while (moved) {
        moved = false;
        for (size_t t = 0; t < net->traces.count; t++) {
            Trace *trace = &net->traces.items[t];
            for (; trace->at < trace->steps.count && can_go(net, trace, &trace->steps.items[trace->at]); trace->at++, moved = true) {
                go(net, trace, &trace->steps.items[trace->at]);
                if (trace->steps.items[trace->at].kind == STEP_RELEASE)
                    net->past[net->past_count++ % PAST_MOST] = (struct Past){(int)t, trace->at};
            }
        }
    }
    for (size_t t = 0; t < net->traces.count; t++) ended &= net->traces.items[t].at == net->traces.items[t].steps.count;
    return ended;
}

/* ---- who waits for whom ----------------------------------------------------------------------------------------------- */

static const Step *waits_at(const Net *net, int process) {
    const Trace *trace = &net->traces.items[process];
    return trace->at < trace->steps.count ? &trace->steps.items[trace->at] : NULL;
}

/* The process that has still to do what another waits for, -1: nobody will */
static int who_will(const Net *net, const Role *role, Step wanted) {
    for (size_t t = 0; t < net->traces.count; t++) {
        const Trace *trace = &net->traces.items[t];
        if (trace->role != role) continue;
        for (size_t i = trace->at; i < trace->steps.count; i++) {
            const Step *step = &trace->steps.items[i];
            if (step->kind == wanted.kind && step->pipe == wanted.pipe && step->produce == wanted.produce && step->number == wanted.number)
                return (int)t;
        }
    }
    return -1;
}

static int awaited(const Net *net, int process) {
    const Step *step = waits_at(net, process);
    const Role *roles = net->prog->roles.items;
    if (step->kind == STEP_TAKE)
        return who_will(net, net->traces.items[process].role, (Step){.kind = STEP_PASS, .pipe = step->pipe, .number = step->number - 1});
    const Pipe *pipe = &net->prog->pipes.items[step->pipe];
    Step wanted = {.kind = STEP_RELEASE, .produce = !step->produce, .pipe = step->pipe, .number = step->number};
    if (!step->produce) {
        int will = who_will(net, &roles[pipe->producer], wanted);
        for (int t = 0; will < 0 && (size_t)t < net->traces.count; t++) /* ended, or leaves it out */
            if (net->traces.items[t].role == &roles[pipe->producer]) will = t;
        return will;
    }
    wanted.number -= pipe->stages;
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        int will = who_will(net, &roles[pipe->consumers.items[i]], wanted);
        if (will >= 0) return will;
    }
    return -1;
}

static const char *name_of(const Net *net, int process) {
    if (process < 0) return "somebody";
    const Trace *trace = &net->traces.items[process];
    if (trace->instance < 0) return arena_printf(net->arena, "`%s`", trace->role->name);
    return arena_printf(net->arena, "instance %d of `%s`", trace->instance, trace->role->name);
}

static const char *wait_text(const Net *net, int process) {
    const Step *step = waits_at(net, process);
    const char *who = name_of(net, process), *whom = name_of(net, awaited(net, process));
    if (step->kind == STEP_TAKE) return arena_printf(net->arena, "%s waits for its turn, behind %s", who, whom);
    const Pipe *pipe = &net->prog->pipes.items[step->pipe];
    return arena_printf(net->arena, "%s waits for %s to %s stage %d of `%s`", who, whom, step->produce ? "release" : "produce",
                        (step->produce ? step->number - pipe->stages : step->number) + 1, pipe->name);
}

static bool is_among(const int *processes, int count, int process) {
    for (int i = 0; i < count; i++)
        if (processes[i] == process) return true;
    return false;
}

/* What those who wait have handed over last */
static void tell_past(const Net *net, Diags *diags, Diag *diag, const int *waiting, int count) {
    const struct Past *shown[PAST_SHOWN];
    int found = 0;
    Str text = str_new(net->arena);
    for (size_t back = 1; back <= net->past_count && back <= PAST_MOST && found < PAST_SHOWN; back++) {
        const struct Past *past = &net->past[(net->past_count - back) % PAST_MOST];
        if (is_among(waiting, count, past->process)) shown[found++] = past;
    }
    while (found-- > 0) {
        const Step *step = &net->traces.items[shown[found]->process].steps.items[shown[found]->step];
        str_printf(&text, "%s%s %s stage %d of `%s` (line %u)", text.length ? ", " : "", name_of(net, shown[found]->process),
                   step->produce ? "produced" : "released", step->number + 1, net->prog->pipes.items[step->pipe].name,
                   (unsigned)source_line(net->prog->source, step->place.lo));
    }
    if (text.length) diag_note(diags, diag, "before that %s", text.text);
}

/* The ring: role -> pipe -> role */
static void tell_ring(const Net *net, Diags *diags, Diag *diag, const int *waiting, int count) {
    Str text = str_new(net->arena);
    if (count < 2) return;
    for (int i = 0; i < count; i++) {
        const Step *step = waits_at(net, waiting[i]);
        str_printf(&text, "%s -> ", name_of(net, waiting[i]));
        if (step->kind == STEP_TAKE) str_add(&text, "its turn -> ");
        else str_printf(&text, "`%s` -> ", net->prog->pipes.items[step->pipe].name);
    }
    diag_note(diags, diag, "each waits for the next: %s%s", text.text, name_of(net, waiting[0]));
}

/* A ring that is waited for to be emptied, with as many stages as are enough at all counts */
static bool tell_deeper(const Net *net, Diags *diags, Diag *diag, const int *waiting, int count) {
    for (int i = 0; i < count; i++) {
        const Step *step = waits_at(net, waiting[i]);
        if (step->kind != STEP_ACQUIRE || !step->produce) continue;
        Pipe *pipe = &net->prog->pipes.items[step->pipe];
        int stages = pipe->stages;
        bool right = false;
        for (int more = 1; more <= DEEPER_MOST && !right; more++) {
            pipe->stages = stages + more;
            right = lockstep_proves(net->arena, net->prog);
        }
        int enough = pipe->stages;
        pipe->stages = stages;
        if (!right) continue;
        diag_help(diags, diag, "with %d stages nobody waits for ever: `pipe %s[%d]`; or let one of them release before it waits, or acquire in the other order",
                  enough, pipe->name, enough);
        return true;
    }
    return false;
}

static void refuse(Net *net, Diags *diags, const Sizes *sizes, int64_t tiles) {
    int next = -1, seen[WAITS_MOST] = {0}, count = 0, begin = 0;
    for (size_t t = 0; t < net->traces.count && next < 0; t++)
        if (waits_at(net, (int)t)) next = (int)t;
    for (bool again = false; next >= 0 && waits_at(net, next) && count < WAITS_MOST && !again;) {
        seen[count++] = next;
        next = awaited(net, next);
        for (int i = 0; i < count; i++)
            if (seen[i] == next) begin = i, again = true;
    }
    const Step *first = waits_at(net, seen[begin]);
    const Role *role = net->traces.items[seen[begin]].role;
    bool alone = true;
    for (int i = begin; i < count; i++) alone &= net->traces.items[seen[i]].role == role;
    Diag *diag = alone && count - begin > 1
                     ? diag_at(diags, P0460, first->place, "instances of `%s` wait for each other for ever", role->name)
                     : diag_at(diags, P0460, first->place, count - begin > 1 ? "roles wait for each other for ever" : "role `%s` waits for ever",
                               role->name);
    for (int i = begin; i < count; i++) {
        const Step *step = waits_at(net, seen[i]);
        if (i == begin) diag_primary(diags, diag, "%s", wait_text(net, seen[i]));
        else if (diag->label_count < DIAG_MAX_LABELS) diag_label(diags, diag, step->place, "%s", wait_text(net, seen[i]));
    }
    Str where = str_new(net->arena);
    sizes_print(sizes, &where);
    str_printf(&where, "%s%lld tile%s in a block", where.length ? ", " : "", (long long)tiles, tiles == 1 ? "" : "s");
    if (net->reads) reads_print(net->reads, net->prog, &where);
    diag_note(diags, diag, "with %s", where.text);
    tell_past(net, diags, diag, seen + begin, count - begin);
    tell_ring(net, diags, diag, seen + begin, count - begin);
    if (!tell_deeper(net, diags, diag, seen + begin, count - begin))
        diag_help(diags, diag, "let one of them release before it waits, acquire in the other order, or give a ring more stages");
}

/* ---- at given sizes ---------------------------------------------------------------------------------------------------- */

static bool unroll_roles(Net *net, const Sizes *sizes, const int64_t *extents, int64_t first, int64_t tiles, size_t *steps) {
    for (size_t r = 0; r < net->prog->roles.count; r++) {
        const Role *role = &net->prog->roles.items[r];
        net->passed[r] = NEW_ARRAY(net->arena, int, role->turns + 1);
        for (int k = has_processes(role) ? 0 : ALL_INSTANCES; k < (has_processes(role) ? role->instances : 0); k++) {
            Trace trace = {.role = role, .instance = k, .reads = net->reads};
            if (!net_trace(net->arena, net->prog, sizes, extents, first, tiles, &trace)) return false;
            vec_push(net->arena, &net->traces, trace);
            *steps += trace.steps.count;
        }
    }
    return true;
}

NetOutcome net_try(Arena *arena, Prog *prog, Diags *diags, const Sizes *sizes, const int64_t *extents, int64_t first, int64_t tiles, Reads *reads,
                   size_t *steps) {
    Net net = {.arena = arena, .prog = prog, .reads = reads, .rings = NEW_ARRAY(arena, Ring, prog->pipes.count + 1),
               .passed = NEW_ARRAY(arena, int *, prog->roles.count + 1)};
    *steps = 1;
    if (!unroll_roles(&net, sizes, extents, first, tiles, steps)) return NET_UNKNOWN;
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        Ring *ring = &net.rings[p];
        *ring = (Ring){.count = (int)*steps, .filled = NEW_ARRAY(arena, int, *steps), .drained = NEW_ARRAY(arena, int, *steps)};
        ring->producers = processes_taking(&prog->roles.items[pipe->producer], (int)p);
        for (size_t c = 0; c < pipe->consumers.count; c++)
            ring->consumers += processes_taking(&prog->roles.items[pipe->consumers.items[c]], (int)p);
    }
    if (run(&net)) return NET_ENDS;
    if (diags) refuse(&net, diags, sizes, tiles);
    return NET_STUCK;
}
