/* What has been written into a produced stage on the path being followed: a bit for each tile of the payload, and the bytes
 * that copies bring. Whether a statement covers its tile is the question of `tiles`. */
#include "check/stages.h"

#define UNITS 64

/* Units of the payload: the tiles of its fields, or the fields where there are more tiles than bits */
static int unit_count(const Pipe *pipe) {
    int64_t units = 0;
    for (size_t i = 0; i < pipe->fields.count; i++) units += pipe->fields.items[i].count > 0 ? pipe->fields.items[i].count : 1;
    return units <= UNITS ? (int)units : 0;
}

static int unit_of(const Pipe *pipe, int field, int64_t tile) {
    int unit = 0;
    if (!unit_count(pipe)) return field < UNITS ? field : UNITS - 1;
    for (int i = 0; i < field; i++) unit += pipe->fields.items[i].count > 0 ? pipe->fields.items[i].count : 1;
    return unit + (int)tile;
}

static uint64_t units_of(const Pipe *pipe, int field, int64_t lo, int64_t hi) {
    uint64_t units = 0;
    int64_t count = pipe->fields.items[field].count > 0 ? pipe->fields.items[field].count : 1;
    for (int64_t tile = lo < 0 ? 0 : lo; tile < hi && tile < count; tile++)
        units |= (uint64_t)1 << unit_of(pipe, field, tile);
    return units;
}

static bool constant_bounds(const Stmt *loop, int64_t *lo, int64_t *hi) {
    return loop->kind == S_FOR && !loop->loop.where && algebra_constant(loop->loop.lo, lo) && algebra_constant(loop->loop.hi, hi);
}

bool constant_trips(const Stmt *loop, int64_t *trips) {
    int64_t lo, hi;
    if (!constant_bounds(loop, &lo, &hi)) return false;
    *trips = hi > lo ? hi - lo : 0;
    return true;
}

void payload_write(Linear *linear, Stmt *stmt) {
    const Tile *tile = stmt->tile;
    if (!tile || tile->target.space != SPACE_STAGE) return;
    if (!hold_of(linear, tile->target.object) || linear->role->handles.items[tile->target.object].end != END_PRODUCE) return;
    const Pipe *pipe = &linear->prog->pipes.items[linear->role->handles.items[tile->target.object].pipe];
    int field = tile->target.field;
    Expr *which = tile->target.element;
    int64_t element = 0;
    if (!valid_index(field, pipe->fields.count)) return;
    Hold *hold = hold_change(linear, tile->target.object);
    hold->bytes += copy_lands(tile);
    if (!which || algebra_constant(which, &element)) {
        hold->written |= units_of(pipe, field, element, element + 1);
    } else if (which->kind == X_LOCAL && linear->role->locals.items[which->index].kind == LOCAL_LOOP) {
        if (hold->loop_var != which->index) hold->by_loop = 0;
        hold->loop_var = which->index;
        hold->by_loop |= (uint64_t)1 << (field < UNITS ? field : UNITS - 1);
    } else { /* not followed here: `tiles` decides */
        hold->written |= units_of(pipe, field, 0, INT64_MAX);
    }
}

void payload_join(Hold *into, const Hold *other) {
    into->written &= other->written;
    if (into->loop_var != other->loop_var) into->by_loop = 0;
    into->by_loop &= other->by_loop;
    if (other->bytes > into->bytes) into->bytes = other->bytes;
}

void payload_loop(Linear *linear, size_t slot, const Path *end, const Frame *frame, Hold *result) {
    const Handle *what = &linear->role->handles.items[linear->scope.items[slot]];
    const Stmt *loop = frame->target;
    int64_t trips, lo, hi;
    Hold iteration = {.state = STATE_FREE};
    if (what->end != END_PRODUCE || !constant_trips(loop, &trips) || trips == 0) return;
    if (end->live) iteration = *path_hold(end, slot);
    for (size_t i = 0; i < frame->exits.count; i++) {
        if (frame->exits.items[i].leave->leave.kind == LEAVE_BREAK) return; /* what was there before is all that is sure */
        if (iteration.state == STATE_FREE) iteration = *path_hold(&frame->exits.items[i].path, slot);
        else payload_join(&iteration, path_hold(&frame->exits.items[i].path, slot));
    }
    if (iteration.state == STATE_FREE) return;
    result->bytes += trips * (iteration.bytes - result->bytes);
    result->written |= iteration.written;
    if (iteration.loop_var == loop->loop.var && constant_bounds(loop, &lo, &hi)) {
        const Pipe *pipe = &linear->prog->pipes.items[what->pipe];
        for (size_t field = 0; field < pipe->fields.count && field < UNITS; field++)
            if (iteration.by_loop >> field & 1) result->written |= units_of(pipe, (int)field, lo, hi);
    } else {
        result->loop_var = iteration.loop_var;
        result->by_loop = iteration.by_loop;
    }
}

bool payload_complete(Linear *linear, int handle, const Hold *hold, int *missing_field) {
    const Handle *what = &linear->role->handles.items[handle];
    const Pipe *pipe = &linear->prog->pipes.items[what->pipe];
    if (what->end != END_PRODUCE) return true;
    for (size_t field = 0; field < pipe->fields.count; field++) {
        uint64_t units = units_of(pipe, (int)field, 0, INT64_MAX);
        if ((hold->written & units) == units || pipe->fields.items[field].by_hand[END_PRODUCE]) continue;
        *missing_field = (int)field;
        return false;
    }
    return true;
}

void payload_release(Linear *linear, int handle) {
    const Handle *what = &linear->role->handles.items[handle];
    const Hold *hold = hold_of(linear, handle);
    if (!hold || what->end != END_PRODUCE || !linear->role->pipes) return;
    PipeUse *use = &linear->role->pipes[what->pipe];
    if (hold->bytes > use->tx_bytes) use->tx_bytes = hold->bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)hold->bytes;
}
