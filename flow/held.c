/* The rule `window`: the stages that a role holds, and their ages in acquires of their end.
 * Needs Code and the lags of its late sets; returns facts. A stage that is held on some path
 * counts as held. */
#include "flow/held.h"

#include "flow/solve.h"

#include <string.h>

#define TRIPS_MOST 8 /* most iterations of a loop that is followed */
/* greater ages that a loop causes count as the length of the ring */
#define AGE_EXACT 16

/* A state: the stages that are held on some path, those of handles by handle, then those of late
 * sets, by set, the youngest first. An age is the greatest over the paths; in a late set that of
 * the i-th youngest stage. */
typedef struct State {
    int count, capacity;
    Holding *items;
} State;

static void *start(Flow *flow) { return NEW(flow->arena, State); }

static void *copy(Flow *flow, const void *state) {
    const State *from = state;
    State *made = NEW(flow->arena, State);
    *made =
        (State){from->count, from->count, NEW_ARRAY(flow->arena, Holding, (size_t)from->count + 1)};
    if (from->count) memcpy(made->items, from->items, (size_t)from->count * sizeof *made->items);
    return made;
}

static void insert(Flow *flow, State *state, int at, Holding what) {
    if (state->count == state->capacity) {
        size_t old = (size_t)state->capacity, wanted = old * 2 + 4;
        state->items =
            arena_grow(flow->arena, state->items, old * sizeof what, wanted * sizeof what);
        state->capacity = (int)wanted;
    }
    memmove(&state->items[at + 1], &state->items[at], (size_t)(state->count - at) * sizeof what);
    state->items[at] = what;
    state->count++;
}

static void take_out(State *state, int at) {
    state->count--;
    memmove(&state->items[at], &state->items[at + 1],
            (size_t)(state->count - at) * sizeof *state->items);
}

/* By late set, none first; without a set by handle */
static int order(const Holding *a, const Holding *b) {
    if (a->late != b->late) return a->late < b->late ? -1 : 1;
    return a->late >= 0 ? 0 : a->handle - b->handle;
}

static int cap(const Flow *flow, int handle, int age) {
    const FlowCode *code = flow->code;
    int stages = code->prog->pipes.items[code->role->handles.items[handle].pipe].stages;
    return age < stages ? age : stages;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    State *state = to;
    const State *other = from;
    bool changed = false, loop = flow->code->rows.items[at].kind == ROW_LOOP;
    int i = 0;
    (void)source;
    for (int k = 0; k < other->count; k++) {
        const Holding *what = &other->items[k];
        while (i < state->count && order(&state->items[i], what) < 0) i++;
        if (i == state->count || order(&state->items[i], what) > 0) {
            insert(flow, state, i++, *what);
            changed = true;
            continue;
        }
        Holding *into = &state->items[i++];
        if (what->acquired < into->acquired) into->acquired = what->acquired;
        if (what->age <= into->age) continue;
        into->age = cap(flow, into->handle, loop && what->age > AGE_EXACT ? INT32_MAX : what->age);
        changed = true;
    }
    return changed;
}

/* ---- steps ----------------------------------------------------------------------------------- */

static bool known(const Flow *flow, int handle) {
    const Role *role = flow->code->role;
    return valid_index(handle, role->handles.count) && !role->handles.items[handle].forgotten &&
           valid_index(role->handles.items[handle].pipe, flow->code->prog->pipes.count);
}

static bool same_end(const Flow *flow, int handle, int pipe, End end) {
    const Handle *what = &flow->code->role->handles.items[handle];
    return what->pipe == pipe && what->end == end;
}

static int find(const State *state, int handle) {
    for (int i = 0; i < state->count && state->items[i].late < 0; i++)
        if (state->items[i].handle == handle) return i;
    return -1;
}

static void release_stage(State *state, int handle) {
    int at = find(state, handle);
    if (at >= 0) take_out(state, at);
}

static void hold(Flow *flow, State *state, Holding what) {
    int at = 0;
    release_stage(state, what.handle); /* it was overwritten; the linear rule reports that */
    while (at < state->count && order(&state->items[at], &what) < 0) at++;
    insert(flow, state, at, what);
}

static bool overfull_at(const Flow *flow, const Held *held, int pipe) {
    for (size_t i = 0; i < held->overfulls.count; i++) {
        int handle = flow->code->rows.items[held->overfulls.items[i].row].handle;
        if (flow->code->role->handles.items[handle].pipe == pipe) return true;
    }
    return false;
}

static void note_overfull(Flow *flow, int at, const State *state, int pipe, End end) {
    Held *held = flow->data;
    Overfull overfull = {.row = at};
    if (overfull_at(flow, held, pipe)) return;
    for (int i = 0; i < state->count; i++)
        if (same_end(flow, state->items[i].handle, pipe, end))
            vec_push(flow->arena, &overfull.holdings, state->items[i]);
    vec_push(flow->arena, &held->overfulls, overfull);
}

/* Advances the end's cursor: each held stage becomes one acquire older. */
static int pass(Flow *flow, State *state, int pipe, End end) {
    HeldEnd *facts = &((Held *)flow->data)->ends[2 * pipe + (int)end];
    int count = 0;
    for (int i = 0; i < state->count; i++) {
        Holding *what = &state->items[i];
        if (!same_end(flow, what->handle, pipe, end)) continue;
        if (what->age > facts->window) facts->window = what->age;
        what->age = cap(flow, what->handle, what->age + 1);
        count++;
    }
    return count;
}

static void acquire(Flow *flow, int at, State *state) {
    const Row *row = &flow->code->rows.items[at];
    const Handle *what = &flow->code->role->handles.items[row->handle];
    Held *held = flow->data;
    HeldEnd *facts = &held->ends[2 * what->pipe + (int)what->end];
    release_stage(state, row->handle);
    int count = pass(flow, state, what->pipe, what->end) + 1;
    /* More than the first one too many are not followed: the program is refused. */
    if (count <= flow->code->prog->pipes.items[what->pipe].stages + 1)
        hold(flow, state, (Holding){.handle = row->handle, .late = -1, .age = 1, .acquired = at});
    if (count > facts->most) facts->most = count;
    if (count > held->at[at]) held->at[at] = count;
    if (flow->last && count > flow->code->prog->pipes.items[what->pipe].stages)
        note_overfull(flow, at, state, what->pipe, what->end);
}

static void move(Flow *flow, const Row *row, State *state) {
    int at = find(state, row->other);
    if (at < 0) return;
    Holding taken = state->items[at];
    take_out(state, at);
    taken.handle = row->handle;
    hold(flow, state, taken);
}

/* The late set takes the stage, and releases its oldest one if it has more than its lag. */
static void keep(Flow *flow, const Row *row, State *state) {
    int at = find(state, row->handle), lag = flow->code->lates.items[row->late].lag, count = 0;
    if (at < 0) return;
    Holding kept = state->items[at];
    take_out(state, at);
    if (lag <= 0) return;
    kept.late = row->late;
    for (at = 0; at < state->count && order(&state->items[at], &kept) < 0;) at++;
    insert(flow, state, at, kept);
    for (; at < state->count && state->items[at].late == row->late; at++) count++;
    if (count > lag) take_out(state, at - 1);
}

static void flush(const Row *row, State *state) {
    for (int i = state->count; i-- > 0;)
        if (state->items[i].late == row->late) take_out(state, i);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void acquire_row(Flow *flow, int at, void *state) {
    if (known(flow, code_row(flow->code, at)->handle)) acquire(flow, at, state);
}

/* A stage that is given up, or whose variable ends */
static void give_row(Flow *flow, int at, void *state) {
    int handle = code_row(flow->code, at)->handle;
    if (known(flow, handle)) release_stage(state, handle);
}

static void keep_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    if (known(flow, row->handle)) keep(flow, row, state);
}

static void flush_row(Flow *flow, int at, void *state) { flush(code_row(flow->code, at), state); }

static void move_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    if (known(flow, row->handle) && known(flow, row->other)) move(flow, row, state);
}

/* True if the loop acquires stages of an end of which some are held. The analysis does not
 * follow how a late set of the loop fills: it counts as full. */
static bool acquires(const Flow *flow, int region, const State *state) {
    const FlowCode *code = flow->code;
    bool any = false;
    for (int at = code->regions.items[region].begin; at < code->regions.items[region].next; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_ACQUIRE || !known(flow, row->handle)) continue;
        const Handle *what = &code->role->handles.items[row->handle];
        if (row->late >= 0 && code->lates.items[row->late].loop == region &&
            code->lates.items[row->late].lag > 0)
            return false;
        for (int i = 0; i < state->count; i++)
            any |= same_end(flow, state->items[i].handle, what->pipe, what->end);
    }
    return any;
}

/* True for a short loop that acquires while a stage of the same end is held, whose age it
 * increases */
static bool follows(Flow *flow, int region, const void *state) {
    const Region *loop = &flow->code->regions.items[region];
    int64_t lo, hi;
    if (((const State *)state)->count == 0) return false;
    if (!context_value(&flow->context, loop->lo, &lo) ||
        !context_value(&flow->context, loop->hi, &hi))
        return false;
    return hi - lo <= TRIPS_MOST && acquires(flow, region, state);
}

/* The last round only notes crowds. */
static bool reports(const Flow *flow) {
    const Held *held = flow->data;
    const Prog *prog = flow->code->prog;
    for (size_t p = 0; p < prog->pipes.count; p++)
        for (int end = 0; end < 2; end++)
            if (held->ends[2 * p + (size_t)end].most > prog->pipes.items[p].stages) return true;
    return false;
}

static const Rule rule = {.name = "window",
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .on = {.scope = {[SCOPE_CLOSES] = give_row},
                                 .stage = {[STAGE_TAKE] = acquire_row,
                                           [STAGE_GIVE] = give_row,
                                           [STAGE_GIVE_LATE] = keep_row,
                                           [STAGE_GIVE_ALL] = flush_row,
                                           [STAGE_MOVE] = move_row}},
                          .reports = reports,
                          .follows = follows};

const Held *flow_held(Arena *arena, FlowCode *code) {
    Held *held = NEW(arena, Held);
    held->ends = NEW_ARRAY(arena, HeldEnd, 2 * code->prog->pipes.count + 1);
    held->at = NEW_ARRAY(arena, int, code->rows.count + 1);
    solve(arena, code, &rule, held);
    return held;
}
