/* The linear rule: each acquired stage is released exactly once on every path. Needs Code and
 * classes; proves every path, derives lags, or reports errors with both places. Each error is
 * reported once: the stage is then poison. An iteration starts with the state that entered its
 * loop, and must end in the same one. */
#include "check/paths/linear.h"

#include "derive/waits/lags.h"

#include <assert.h>

/* ---- events of rows -------------------------------------------------------------------------- */

static bool known(const Linear *linear, int handle) {
    return valid_index(handle, linear->role->handles.count) && linear->slot[handle] >= 0;
}

static void acquire(Flow *flow, int at, void *path) {
    Linear *linear = flow->data;
    const Row *row = &linear->code->rows.items[at];
    if (!linear_event(linear, path, row->handle, EVENT_ACQUIRE, at, row->span)) return;
    *linear_change(linear, path, row->handle) =
        (Hold){.state = row->block ? STATE_BLOCK : STATE_HELD,
               .handle = row->handle,
               .since = at,
               .acquired = at};
}

/* A move from or to something unknown leaves both unknown. */
static void forget(Linear *linear, Path *path, int handle) {
    if (!known(linear, handle) || !linear_hold(linear, path, handle)) return;
    linear_fault(linear, handle);
    linear_change(linear, path, handle)->state = STATE_POISON;
}

static void move(Flow *flow, int at, void *path) {
    Linear *linear = flow->data;
    const Row *row = &linear->code->rows.items[at];
    if (!known(linear, row->handle) || !known(linear, row->other)) {
        forget(linear, path, row->handle);
        forget(linear, path, row->other);
        return;
    }
    Hold taken = {.state = STATE_POISON};
    const Hold *from = linear_hold(linear, path, row->other);
    if (from) taken = *from;
    bool fine = linear_event(linear, path, row->other, EVENT_MOVE_OUT, at, row->span);
    if (fine) linear_change(linear, path, row->other)->moved_to = row->handle;
    if (!linear_event(linear, path, row->handle, EVENT_MOVE_IN, at, row->span)) return;
    taken.state = fine ? STATE_HELD : STATE_POISON;
    taken.handle = row->handle, taken.since = at;
    *linear_change(linear, path, row->handle) = taken;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void open(Flow *flow, int at, void *path) {
    Linear *linear = flow->data;
    const Row *row = code_row(linear->code, at);
    int handle = row->index;
    if (row->object == OBJECT_HANDLE && known(linear, handle))
        *path_push(linear, path) =
            (Hold){.state = STATE_FREE, .handle = handle, .since = at, .acquired = at};
}

/* A leave that drops several stages is one error. */
static void drop(Linear *linear, Path *path, int at) {
    const Row *row = &linear->code->rows.items[at];
    const Hold *hold = linear_hold(linear, path, row->handle);
    bool again = linear->last && linear->leave == row->stmt;
    if (again && linear->dropped_last != row->handle)
        diag_label(linear->diags, linear->dropped, linear_span(linear, hold->acquired),
                   "also `%s`, acquired here", linear->role->handles.items[row->handle].name);
    if (again || linear->differs[row->region]) {
        linear_fault(linear, row->handle);
        linear_change(linear, path, row->handle)->state = STATE_POISON;
    } else {
        linear_event(linear, path, row->handle, EVENT_LEAVE, at, row->span);
        if (linear->last) linear->leave = row->stmt, linear->dropped = linear->refused;
    }
    linear->dropped_last = row->handle;
}

/* A LEAVE out of a scope. `given` is used by the message about paths that do not leave. */
static void leave_scope(Linear *linear, Path *path, const Hold *hold, int at) {
    if (hold->state == STATE_HELD)
        drop(linear, path, at);
    else if (hold->state == STATE_RELEASED || hold->state == STATE_MOVED)
        linear->given[hold->handle] = hold->since;
}

static void close(Flow *flow, int at, void *state) {
    Linear *linear = flow->data;
    Path *path = state;
    const Row *row = &linear->code->rows.items[at];
    if (!known(linear, row->handle)) return;
    const Hold *hold = linear_hold(linear, path, row->handle);
    assert(hold); /* scopes end in reverse order, also for a leave */
    if (row->leaving)
        leave_scope(linear, path, hold, at);
    else if (hold->state == STATE_HELD)
        linear_event(linear, path, row->handle, EVENT_SCOPE_END, at, row->span);
    path->count--;
}

/* ---- the rule -------------------------------------------------------------------------------- */

typedef struct Finding {
    Arena *arena;
    Uses *uses;
} Finding;

static void find_use(Access *access, bool written, void *data) {
    Finding *found = data;
    (void)written;
    if (access->space == SPACE_STAGE)
        vec_push(found->arena, found->uses, ((Use){access->object, access->span}));
}

/* Uses of stages by accesses. Of every row, before its other handlers */
static void use(Flow *flow, int at, void *path) {
    Linear *linear = flow->data;
    linear->last = flow->last;
    const Uses *uses = &linear->uses[at];
    for (size_t i = 0; i < uses->count; i++)
        linear_event(linear, path, uses->items[i].handle, EVENT_USE, at, uses->items[i].span);
}

/* A block's own release follows at its end. */
static void give(Flow *flow, int at, void *path) {
    const Row *row = code_row(flow->code, at);
    if (!row->block) linear_event(flow->data, path, row->handle, EVENT_RELEASE, at, row->span);
}

static void use_handle(Flow *flow, int at, void *path) {
    const Row *row = code_row(flow->code, at);
    linear_event(flow->data, path, row->handle, EVENT_USE, at, row->span);
}

static void leave(Flow *flow, int at, void *path) {
    Linear *linear = flow->data;
    (void)path;
    linear->drops[at] |= flow->last && linear->leave == code_row(flow->code, at)->stmt;
}

static void *start(Flow *flow) { return path_new(flow->data); }
static void *copy(Flow *flow, const void *state) { return path_copy(flow->data, state); }

/* The end of an iteration does not change the state at its start: the two are compared. */
static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    const Row *row = &flow->code->rows.items[at];
    bool back = row->kind == ROW_LOOP && source > at &&
                source <= flow->code->regions.items[row->region].next;
    return !back && path_join(flow->data, to, from);
}

static void meets(Flow *flow, int at, void *const *states, const int *sources, size_t count) {
    Linear *linear = flow->data;
    Path **paths = NEW_ARRAY(flow->arena, Path *, count);
    for (size_t i = 0; i < count; i++) paths[i] = states[i];
    linear_meets(linear, at, paths, sources, count);
}

static const Rule rule = {.name = "linear",
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .on = {.every = use,
                                 .access = {[ACCESS_RAW] = use_handle},
                                 .scope = {[SCOPE_OPENS] = open, [SCOPE_CLOSES] = close},
                                 .stage = {[STAGE_TAKE] = acquire,
                                           [STAGE_GIVE] = give,
                                           [STAGE_MOVE] = move,
                                           [STAGE_LEND] = use_handle},
                                 .control = {[CONTROL_LEAVE] = leave}},
                          .meets = meets};

/* ---- roles ----------------------------------------------------------------------------------- */

static void find_slots(Linear *linear) {
    int depth = 0;
    for (size_t i = 0; i < linear->role->handles.count; i++)
        linear->slot[i] = linear->given[i] = -1;
    for (size_t at = 0; at < linear->code->rows.count; at++) {
        const Row *row = &linear->code->rows.items[at];
        if (row->object != OBJECT_HANDLE || (row->kind != ROW_OPEN && row->kind != ROW_CLOSE) ||
            row->leaving)
            continue;
        const Handle *what = &linear->role->handles.items[row->index];
        if (what->forgotten || !valid_index(what->pipe, linear->prog->pipes.count)) continue;
        int *slot = &linear->slot[row->index];
        assert(row->kind == ROW_CLOSE || *slot < 0 || *slot == depth); /* a handle has one scope */
        if (row->kind == ROW_OPEN)
            *slot = depth++;
        else
            depth--;
    }
}

static void find_uses(Linear *linear) {
    Finding found = {.arena = linear->arena};
    linear->uses = NEW_ARRAY(linear->arena, Uses, linear->code->rows.count + 1);
    for (size_t at = 0; at < linear->code->rows.count; at++) {
        found.uses = &linear->uses[at];
        row_accesses(linear->arena, linear->code, &linear->code->rows.items[at], find_use, &found);
    }
}

static bool varies(const Expr *expr) {
    return expr && expr->kind != X_POISON && expr->uniformity != UNIFORM_ROLE;
}

static void find_control(Linear *linear) {
    for (size_t r = 0; r < linear->code->regions.count; r++) {
        const Region *region = &linear->code->regions.items[r];
        bool own = varies(region->condition) || varies(region->lo) || varies(region->hi) ||
                   varies(region->where);
        linear->differs[r] = own || (region->parent >= 0 && linear->differs[region->parent]);
    }
}

/* True if the role holds a stage without a block that releases it, or tries to */
static bool holds_explicitly(const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        bool changes =
            row->kind == ROW_ACQUIRE || row->kind == ROW_RELEASE || row->kind == ROW_DROP;
        if (row->kind == ROW_MOVE || (changes && !row->block)) return true;
    }
    return false;
}

static void follow_stages(Linear *linear) {
    find_uses(linear);
    find_control(linear);
    solve(linear->arena, linear->code, &rule, linear);
}

static void follow_role(Arena *arena, Prog *prog, FlowCode *code, Diags *diags) {
    size_t handles = code->role->handles.count + 1, rows = code->rows.count + 1;
    Linear linear = {
        .arena = arena, .prog = prog, .code = code, .role = code->role, .diags = diags};
    linear.slot = NEW_ARRAY(arena, int, handles);
    linear.given = NEW_ARRAY(arena, int, handles);
    linear.differs = NEW_ARRAY(arena, bool, code->regions.count + 1);
    linear.reached = NEW_ARRAY(arena, bool, rows);
    linear.drops = NEW_ARRAY(arena, bool, rows);
    find_slots(&linear);
    if (holds_explicitly(code)) follow_stages(&linear);
    linear_reached(&linear);
}

static void hold_role(Arena *arena, Prog *prog, FlowCode *code, Diags *diags) {
    code->held = flow_held(arena, code);
    overfull_refuse(prog, code, diags);
}

void linear_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        FlowCode *code = prog->roles.items[r].code;
        follow_role(arena, prog, code, diags);
        lags_written(prog, code, diags);
        hold_role(arena, prog, code, diags);
    }
    for (size_t r = 0; r < prog->roles.count; r++) {
        FlowCode *code = prog->roles.items[r].code;
        if (lags_derive(arena, prog, code)) code->held = flow_held(arena, code);
    }
}
