/* True for a pipe of a role if a matrix instruction reads each stage on every path from its
 * acquire to its release.
 *
 * Then one lane may release for the whole warpgroup: its instruction is complete, so all warps
 * have issued it, and none of them still waits for the stage (PTX ISA 9.7.15.1). On a path
 * without one, a late warp could find the barrier one phase too far, and wait for ever: then
 * every warp must arrive. An unknown path counts as one without. */
#include "flow/multiplied.h"

#include "flow/solve.h"

#include <string.h>

typedef struct Multiplied {
    int pipe;
    bool always;
} Multiplied;

/* A state is a bit per handle: on every path, a matrix instruction has read the stage since its
 * acquire. */

static size_t words(const Flow *flow) { return flow->code->role->handles.count / 64 + 1; }

static void *start(Flow *flow) { return NEW_ARRAY(flow->arena, uint64_t, words(flow)); }

static void *copy(Flow *flow, const void *state) {
    void *made = start(flow);
    memcpy(made, state, words(flow) * sizeof(uint64_t));
    return made;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    uint64_t *read = to;
    const uint64_t *other = from;
    bool changed = false;
    (void)at, (void)source;
    for (size_t i = 0; i < words(flow); i++) {
        changed |= (read[i] & ~other[i]) != 0;
        read[i] &= other[i];
    }
    return changed;
}

static bool is_read(const uint64_t *read, int handle) {
    return read[handle / 64] >> (handle % 64) & 1;
}

static void set_read(Flow *flow, uint64_t *read, int handle, bool is) {
    if (!valid_index(handle, flow->code->role->handles.count)) return;
    uint64_t bit = (uint64_t)1 << (handle % 64);
    read[handle / 64] = is ? read[handle / 64] | bit : read[handle / 64] & ~bit;
}

static void release(Flow *flow, const uint64_t *read, int handle) {
    Multiplied *m = flow->data;
    const Role *role = flow->code->role;
    if (!flow->last || !valid_index(handle, role->handles.count) ||
        role->handles.items[handle].pipe != m->pipe)
        return;
    if (role->handles.items[handle].end == END_CONSUME && !is_read(read, handle)) m->always = false;
}

static void multiply(Flow *flow, const Tile *tile, uint64_t *read) {
    if (!tile || tile->class != TILE_MMA) return;
    const Access *operands[] = {tile->mma.a.tile, tile->mma.b.tile};
    for (size_t i = 0; i < COUNT_OF(operands); i++)
        if (operands[i]->space == SPACE_STAGE) set_read(flow, read, operands[i]->object, true);
}

static void tile_row(Flow *flow, int at, void *read) {
    multiply(flow, code_row(flow->code, at)->tile, read);
}

static void acquire_row(Flow *flow, int at, void *read) {
    set_read(flow, read, code_row(flow->code, at)->handle, false);
}

static void move_row(Flow *flow, int at, void *read) {
    const Row *row = code_row(flow->code, at);
    if (valid_index(row->other, flow->code->role->handles.count))
        set_read(flow, read, row->handle, is_read(read, row->other));
}

static void give_row(Flow *flow, int at, void *read) {
    release(flow, read, code_row(flow->code, at)->handle);
}

static const Rule rule = {.name = "multiplied",
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .on = {.access = {[ACCESS_WRITES] = tile_row},
                                 .stage = {[STAGE_TAKE] = acquire_row,
                                           [STAGE_MOVE] = move_row,
                                           [STAGE_GIVE] = give_row,
                                           [STAGE_GIVE_LATE] = give_row}}};

bool flow_always_multiplied(Arena *arena, FlowCode *code, int pipe) {
    Multiplied m = {.pipe = pipe, .always = true};
    solve(arena, code, &rule, &m);
    return m.always;
}
