/* Is each stage of a pipe that a role takes read by a matrix instruction on every path from its acquire to its release?
 *
 * Then one lane may tell for the whole warpgroup that the stage is empty: its instruction is done, so all warps have issued it, and none
 * of them still waits for the stage (PTX ISA 9.7.15.1). On a path without one, a warp that lags behind would find the barrier a phase
 * further than the one that it waits for, and never go on: there every warp has to arrive. What is not known counts as such a path. */
#include "check/resources.h"

#include <string.h>

typedef struct State {
    bool live;
    uint64_t *read; /* by handle, a bit each: on every path here since it took its stage */
} State;

typedef struct Frame Frame;
struct Frame { /* something that a leave may target */
    Frame *outer;
    const Stmt *stmt;
    State breaks, continues;
};

typedef struct Walk {
    Arena *arena;
    const Role *role;
    int pipe;
    size_t words;
    Frame *frame;
    bool always;
} Walk;

static void walk(Walk *w, const Stmt *stmt, State *state);

/* ---- states ----------------------------------------------------------------------------------------------------------- */

static State copy_state(Walk *w, const State *from) {
    State state = {from->live, NEW_ARRAY(w->arena, uint64_t, w->words)};
    if (from->read) memcpy(state.read, from->read, w->words * sizeof *state.read);
    return state;
}

static bool is_read(const State *state, int handle) { return state->read[handle / 64] >> (handle % 64) & 1; }

static void set_read(Walk *w, State *state, int handle, bool read) {
    if (!valid_index(handle, w->role->handles.count)) return;
    uint64_t bit = (uint64_t)1 << (handle % 64);
    state->read[handle / 64] = read ? state->read[handle / 64] | bit : state->read[handle / 64] & ~bit;
}

/* True: `to` has lost something */
static bool join(Walk *w, State *to, const State *from) {
    bool lost = false;
    if (!from->live) return false;
    if (!to->live) {
        *to = copy_state(w, from);
        return true;
    }
    for (size_t i = 0; i < w->words; i++) {
        lost |= (to->read[i] & ~from->read[i]) != 0;
        to->read[i] &= from->read[i];
    }
    return lost;
}

/* ---- statements ------------------------------------------------------------------------------------------------------- */

static void released(Walk *w, const State *state, int handle) {
    if (!valid_index(handle, w->role->handles.count) || w->role->handles.items[handle].pipe != w->pipe) return;
    if (w->role->handles.items[handle].end == END_CONSUME && !is_read(state, handle)) w->always = false;
}

static void multiply(Walk *w, const Tile *tile, State *state) {
    if (!tile || tile->class != TILE_MMA) return;
    const Access *operands[] = {tile->mma.a.tile, tile->mma.b.tile};
    for (size_t i = 0; i < COUNT_OF(operands); i++)
        if (operands[i]->space == SPACE_STAGE) set_read(w, state, operands[i]->object, true);
}

static void walk_block(Walk *w, const Stmt *stmt, State *state) {
    Frame frame = {.outer = w->frame, .stmt = stmt};
    w->frame = &frame;
    for (size_t i = 0; i < stmt->block.body.count && state->live; i++) walk(w, stmt->block.body.items[i], state);
    w->frame = frame.outer;
    join(w, state, &frame.breaks);
}

static bool certainly_runs(const Stmt *stmt) {
    int64_t lo, hi;
    return stmt->kind == S_FOR && !stmt->loop.where && algebra_constant(stmt->loop.lo, &lo) &&
           algebra_constant(stmt->loop.hi, &hi) && lo < hi;
}

/* Iterations are followed until a further one finds what the one before found: each loses something, or is the last. */
static void walk_loop(Walk *w, const Stmt *stmt, State *state) {
    State end = {0}, left = {0};
    for (bool again = true; again;) {
        Frame frame = {.outer = w->frame, .stmt = stmt};
        w->frame = &frame;
        end = copy_state(w, state);
        walk(w, stmt->kind == S_GRID ? stmt->grid.body : stmt->loop.body, &end);
        w->frame = frame.outer;
        join(w, &end, &frame.continues);
        left = frame.breaks;
        again = join(w, state, &end);
    }
    if (certainly_runs(stmt)) *state = end;
    join(w, state, &left);
}

static void walk_if(Walk *w, const Stmt *stmt, State *state) {
    State other = copy_state(w, state);
    walk(w, stmt->branch.then, state);
    walk(w, stmt->branch.otherwise, &other);
    join(w, state, &other);
}

static void walk_leave(Walk *w, const Stmt *stmt, State *state) {
    for (size_t i = 0; i < stmt->leave.releases.count; i++) released(w, state, stmt->leave.releases.items[i]);
    for (Frame *frame = w->frame; frame && stmt->leave.target; frame = frame->outer) {
        if (frame->stmt != stmt->leave.target) continue;
        join(w, stmt->leave.kind == LEAVE_CONTINUE ? &frame->continues : &frame->breaks, state);
        break;
    }
    state->live = false;
}

static void walk(Walk *w, const Stmt *stmt, State *state) {
    if (!stmt || !state->live) return;
    switch (stmt->kind) {
    case S_BLOCK: walk_block(w, stmt, state); break;
    case S_TILE: multiply(w, stmt->tile, state); break;
    case S_GRID:
    case S_FOR: walk_loop(w, stmt, state); break;
    case S_IF: walk_if(w, stmt, state); break;
    case S_LEAVE: walk_leave(w, stmt, state); break;
    case S_ACQUIRE: set_read(w, state, stmt->acquire.handle, false); break;
    case S_RELEASE: released(w, state, stmt->release.handle); break;
    case S_MOVE:
        if (valid_index(stmt->move.from, w->role->handles.count))
            set_read(w, state, stmt->move.to, is_read(state, stmt->move.from));
        break;
    case S_STAGE:
        set_read(w, state, stmt->stage.handle, false);
        walk(w, stmt->stage.body, state);
        if (state->live) released(w, state, stmt->stage.handle);
        break;
    case S_SCALAR:
    case S_UNSAFE:
    case S_TRY: break;
    }
}

bool always_multiplied(Arena *arena, const Role *role, int pipe) {
    Walk w = {.arena = arena, .role = role, .pipe = pipe, .words = role->handles.count / 64 + 1, .always = true};
    State state = copy_state(&w, &(State){.live = true});
    walk(&w, role->body, &state);
    return w.always;
}
