/* Runs roles at given sizes: the machine with an oracle that evaluates conditions and bounds,
 * from sizes, and from given contents of memory. Control that depends on other values is skipped
 * if it contains nothing relevant. */
#include "check/sizes/trace.h"

#include <string.h>

#define RUN_STEPS   16000000 /* steps of the meter for one run */
#define TRACE_STEPS 40000000 /* for all runs */

typedef struct Trips { /* of a loop that is being executed */
    bool known;
    int64_t next, end, done;
} Trips;

typedef struct Known { /* of one process */
    int64_t *locals, axes[PROG_MAX_RANK];
    bool *known;  /* by local */
    Trips *trips; /* by region */
    Env env;
} Known;

/* ---- relevant rows --------------------------------------------------------------------------- */

typedef struct Relevant {
    const Prog *prog;
    const Role *role;
    bool *locals; /* those on which a condition, a bound or a wanted tile depends */
    bool more;    /* one was added */
    int pipe;
    TileWanted *wanted;
    const void *data;
    Arena *arena;
} Relevant;

static bool wanted_handle(const Relevant *r, const Row *row) {
    if (!valid_index(row->handle, r->role->handles.count)) return r->pipe < 0;
    int pipe = r->role->handles.items[row->handle].pipe;
    if (r->pipe >= 0) return row->kind == ROW_ACQUIRE && pipe == r->pipe;
    return valid_index(pipe, r->prog->pipes.count) && !r->prog->pipes.items[pipe].unproved;
}

static bool sets_relevant(const Relevant *r, const FlowCode *code, const Row *row) {
    for (size_t i = 0; i < r->role->locals.count; i++)
        if (r->locals[i] && row_sets(code, row, (int)i)) return true;
    return false;
}

static bool keeps(const FlowCode *code, const Row *row, const void *data) {
    const Relevant *r = data;
    if (row_computes(row->kind)) return sets_relevant(r, code, row);
    if (row->kind == ROW_TILE) return r->wanted && r->wanted(row, r->data);
    const RowEffects *effects = &row_effects[row->kind];
    if (effects->stage == STAGE_GIVE_ALL || row_in_turn(row->kind)) return r->pipe < 0;
    return row_changes_hold(row->kind) && wanted_handle(r, row);
}

static void mark_local(Expr *expr, void *data) {
    Relevant *r = data;
    if (expr->kind != X_LOCAL || !valid_index(expr->index, r->role->locals.count) ||
        r->locals[expr->index])
        return;
    r->locals[expr->index] = r->more = true;
}

static void mark_locals(Expr *expr, void *data) {
    expr_visit(((Relevant *)data)->arena, expr, mark_local, data);
}

static FlowCode *relevant_rows(Arena *arena, const Role *role, Relevant r) {
    r.role = role, r.more = true;
    FlowCode *slice = NULL;
    r.locals = NEW_ARRAY(arena, bool, role->locals.count + 1);
    while (r.more) {
        r.more = false;
        slice = code_slice(arena, role->code, keeps, &r);
        for (size_t at = 0; at < slice->rows.count; at++) {
            const Row *row = &slice->rows.items[at];
            if (!row_ends(row->kind)) row_exprs(slice, row, mark_locals, &r);
        }
    }
    return slice;
}

Traced *trace_new(Arena *arena, const Prog *prog, int pipe, TileWanted *wanted, const void *data) {
    Relevant relevant = {
        .prog = prog, .pipe = pipe, .wanted = wanted, .data = data, .arena = arena};
    Traced *traced = NEW(arena, Traced);
    *traced = (Traced){.arena = arena,
                       .prog = prog,
                       .codes = NEW_ARRAY(arena, FlowCode *, prog->roles.count + 1),
                       .work = arena_budget(arena, TRACE_STEPS)};
    for (size_t r = 0; r < prog->roles.count; r++)
        traced->codes[r] = relevant_rows(arena, &prog->roles.items[r], relevant);
    return traced;
}

/* ---- the oracle ------------------------------------------------------------------------------ */

static Run *run_of(const Machine *m) { return m->oracle.data; }
static Known *known_of(const Machine *m, const Position *place) {
    return &run_of(m)->known[place->process];
}
static const Region *region_of(const Position *place, int region) {
    return &place->member->code->regions.items[region];
}

static void set_local(Known *known, int local, int64_t value) {
    if (local < 0) return;
    known->locals[local] = value;
    known->known[local] = true;
}

static int32_t enter(const Machine *m, const Position *place, int index) {
    const Region *region = region_of(place, index);
    const BlockRun *block = run_of(m)->block;
    Known *known = known_of(m, place);
    Trips *trips = &known->trips[index];
    *trips = (Trips){.known = true, .next = block->first, .end = block->first + block->tiles};
    if (region->kind == REGION_GRID) return 0;
    trips->known = region->var >= 0 && evaluate(&known->env, region->lo, &trips->next) &&
                   evaluate(&known->env, region->hi, &trips->end);
    return 0;
}

static void set_axes(const Machine *m, Known *known, const Region *region, int64_t tile) {
    const BlockRun *block = run_of(m)->block;
    for (size_t i = m->prog->axes.count; i-- > 0; tile /= block->extents[i]) {
        known->axes[i] = tile % block->extents[i];
        set_local(known, region->axes[i], known->axes[i]);
    }
}

static Answer trip(Machine *m, const State *state, const Position *place, int index) {
    const Region *region = region_of(place, index);
    Known *known = known_of(m, place);
    Trips *trips = &known->trips[index];
    (void)state;
    if (!trips->known) return ANSWER_OPEN;
    while (trips->next < trips->end) {
        int64_t value = trips->next++, where = 1;
        if (region->kind == REGION_GRID) {
            set_axes(m, known, region, value);
            return ANSWER_YES;
        }
        if (trips->done++ > TRACE_EVENTS) return ANSWER_OPEN;
        set_local(known, region->var, value);
        if (region->where && !evaluate(&known->env, region->where, &where)) return ANSWER_OPEN;
        if (where) return ANSWER_YES;
        arena_count(m->arena, 1);
    }
    return ANSWER_NO;
}

static Answer holds(Machine *m, const State *state, const Position *place, int index) {
    int64_t truth;
    (void)state;
    if (!evaluate(&known_of(m, place)->env, region_of(place, index)->condition, &truth))
        return ANSWER_OPEN;
    return truth ? ANSWER_YES : ANSWER_NO;
}

static void forget(const Position *place, Known *known, const Row *row) {
    if (!row_may_set(row)) return;
    for (size_t i = 0; i < place->member->role->locals.count; i++)
        if (known->known[i] && row_sets(place->member->code, row, (int)i)) known->known[i] = false;
}

static bool has_effects(RowKind kind) {
    return row_changes_hold(kind) || row_in_turn(kind) ||
           row_effects[kind].control == CONTROL_LEAVE;
}

/* Unknown control is skipped if it contains no operation on pipes; the variables that it sets
 * are then unknown. */
static bool passes(Machine *m, const Position *place, int index) {
    const Region *region = region_of(place, index);
    const Row *rows = place->member->code->rows.items;
    arena_count(m->arena, (uint64_t)(region->end - region->begin));
    for (int at = region->begin; at < region->end; at++)
        if (has_effects(rows[at].kind)) return false;
    for (int at = region->begin; at < region->end; at++)
        forget(place, known_of(m, place), &rows[at]);
    return true;
}

static void other_row(Machine *m, const State *state, const Position *place, const Row *row) {
    Run *run = run_of(m);
    Known *known = known_of(m, place);
    (void)state;
    if (row->kind == ROW_UNSAFE) forget(place, known, row);
    if (row->kind == ROW_SET)
        known->known[row->local] = evaluate(&known->env, row->value, &known->locals[row->local]);
    if (row->kind == ROW_LEAVE && run->leave) run->leave(run, place, row);
    if (row->kind == ROW_TILE && run->tile) run->tile(run, place, row, &known->env);
}

static void event(Machine *m, const State *state, const Position *place, const Event *what) {
    Run *run = run_of(m);
    (void)state;
    if (run->event) run->event(run, place, what);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static void learn(Run *run, int process) {
    const Process *row = &run->machine->processes.items[process];
    const Member *member = &run->machine->members.items[row->member];
    Known *known = &run->known[process];
    Arena *arena = run->machine->arena;
    known->locals = NEW_ARRAY(arena, int64_t, member->role->locals.count + 1);
    known->known = NEW_ARRAY(arena, bool, member->role->locals.count + 1);
    known->trips = NEW_ARRAY(arena, Trips, member->code->regions.count + 1);
    known->env = (Env){.arena = run->machine->arena,
                       .prog = run->traced->prog,
                       .role = member->role,
                       .symbols = run->block->sizes->values};
    known->env.axes = known->axes, known->env.locals = known->locals,
    known->env.known = known->known;
    known->env.reads = run->block->reads;
    known->env.rank = row->instance >= 0 ? &row->instance : NULL;
}

static Run *run_new(Arena *arena, Traced *traced, const BlockRun *block) {
    Run *run = NEW(arena, Run);
    Budget work = budget_of(traced->work, RUN_STEPS);
    Oracle oracle = {.data = run,
                     .enter = enter,
                     .trip = trip,
                     .holds = holds,
                     .passes = passes,
                     .row = other_row,
                     .event = event};
    *run = (Run){.traced = traced,
                 .block = block,
                 .machine = machine_make(arena, traced->prog, oracle, work)};
    return run;
}

static void run_ready(Run *run, Arena *arena, int events_most) {
    Machine *m = run->machine;
    machine_lay_out(m, false);
    m->events_most = events_most;
    run->known = NEW_ARRAY(arena, Known, m->processes.count + 1);
    for (size_t p = 0; p < m->processes.count; p++) learn(run, (int)p);
    run->state = machine_state(m);
}

Outcome trace_run(Run *run) { return machine_run(run->machine, &run->state); }

Run *trace_run_new(Arena *arena, Traced *traced, const BlockRun *block, bool each_instance,
                   int events_most) {
    Run *run = run_new(arena, traced, block);
    for (size_t r = 0; r < traced->prog->roles.count; r++)
        machine_add(run->machine, traced->codes[r],
                    each_instance || role_is_several(&traced->prog->roles.items[r]));
    run_ready(run, arena, events_most);
    return run;
}

TraceOutcome trace_try(Arena *arena, Traced *traced, const BlockRun *block, size_t *steps) {
    Run *run = trace_run_new(arena, traced, block, false, TRACE_EVENTS);
    Outcome outcome = trace_run(run);
    bool halted = false;
    for (size_t p = 0; p < run->machine->processes.count; p++) {
        *steps += (size_t)run->machine->events[p];
        halted |= run->machine->halted[p];
    }
    if (outcome == OUTCOME_ENDED) return TRACE_ENDS;
    return outcome == OUTCOME_STUCK && !halted ? TRACE_STUCK : TRACE_UNKNOWN;
}

/* ---- a single process ------------------------------------------------------------------------ */

static bool run_alone(Run *run, Arena *arena, const Role *role, int instance) {
    machine_add(run->machine, run->traced->codes[role - run->traced->prog->roles.items],
                instance >= 0);
    run_ready(run, arena, TRACE_EVENTS);
    Outcome outcome = machine_run_alone(run->machine, &run->state, instance >= 0 ? instance : 0);
    return outcome == OUTCOME_ENDED;
}

static void add_event(Run *run, const Position *place, const Event *what) {
    (void)place;
    vec_push(run->machine->arena, (Events *)run->data, *what);
}

bool trace_events(Arena *arena, Traced *traced, const BlockRun *block, const Role *role,
                  int instance, Events *events) {
    Run *run = run_new(arena, traced, block);
    run->event = add_event, run->data = events;
    return run_alone(run, arena, role, instance);
}

typedef struct Count {
    int pipe;
    bool produce;
    Acquires *acquires;
} Count;

static void count_event(Run *run, const Position *place, const Event *what) {
    Count *count = run->data;
    (void)place;
    Acquires *acquires = count->acquires;
    if (what->kind != STEP_ACQUIRE || what->pipe != count->pipe || what->produce != count->produce)
        return;
    if (acquires->count++ == acquires->number) acquires->place = what->place;
}

bool trace_acquires(Arena *arena, Traced *traced, const Role *role, int pipe, End end,
                    const BlockRun *block, Acquires *acquires) {
    Run *run = run_new(arena, traced, block);
    Count counted = {.pipe = pipe, .produce = end == END_PRODUCE, .acquires = acquires};
    run->event = count_event, run->data = &counted;
    return run_alone(run, arena, role, ALL_INSTANCES);
}
