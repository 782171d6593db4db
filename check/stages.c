/* The linear rule: each stage that is acquired is released exactly once on every path. Comes in elaborated and classified;
 * goes out with every path proved, lags derived, and each leave knowing which blocks it releases, or with errors that show
 * both places. A mistake is reported once: the stage is poison from there on. */
#include "check/stages.h"

static void follow(Linear *linear, Stmt *stmt);

/* ---- scopes ------------------------------------------------------------------------------------------------------- */

static void open_scope(Linear *linear, int handle, Span span) {
    linear->slot[handle] = (int)linear->path.count;
    vec_push(linear->arena, &linear->scope, handle);
    *path_push(linear, &linear->path) = (Hold){.state = STATE_FREE, .since = span, .acquired = span};
}

static void close_scopes(Linear *linear, size_t depth, Span end) {
    while (linear->scope.count > depth) {
        int handle = linear->scope.items[linear->scope.count - 1];
        if (linear->path.live) stage_event(linear, handle, EVENT_SCOPE_END, end);
        linear->slot[handle] = -1;
        linear->scope.count--;
    }
    if (linear->path.count > depth) linear->path.count = depth;
}

/* ---- acquire, release, move --------------------------------------------------------------------------------------- */

/* More stages held than the ring has: the acquire waits for itself. */
static int count_held(Linear *linear, int handle, Span span) {
    const Handle *what = &linear->role->handles.items[handle];
    const Pipe *pipe = &linear->prog->pipes.items[what->pipe];
    int held = what->end == END_CONSUME ? linear->late[what->pipe] : 0;
    for (size_t i = 0; i < linear->path.count; i++) {
        const Handle *other = &linear->role->handles.items[linear->scope.items[i]];
        if (other->pipe == what->pipe && other->end == what->end && is_held(path_hold(&linear->path, i))) held++;
    }
    if (what->end == END_PRODUCE && held > linear->producer_most[what->pipe]) linear->producer_most[what->pipe] = held;
    if (held <= pipe->stages || linear->crowded[what->pipe]) return held;
    linear->crowded[what->pipe] = true;
    stage_fault(linear, handle);
    Diag *diag = diag_at(linear->diags, P0310, span, "%d stages of pipe `%s` are held at once, and its ring has %d", held,
                         pipe->name, pipe->stages);
    diag_primary(linear->diags, diag, "waits for ever: what it needs is held by `%s` itself", linear->role->name);
    for (size_t i = 0; i < linear->path.count; i++) {
        const Handle *other = &linear->role->handles.items[linear->scope.items[i]];
        if (other->pipe == what->pipe && other->end == what->end && is_held(path_hold(&linear->path, i)) &&
            linear->scope.items[i] != handle && diag->label_count < DIAG_MAX_LABELS - 1)
            diag_label(linear->diags, diag, path_hold(&linear->path, i)->acquired, "`%s` is held from here", other->name);
    }
    for (size_t i = 0; i < linear->lagging.count && what->end == END_CONSUME; i++) {
        const Stmt *block = linear->lagging.items[i];
        if (linear->role->handles.items[block->stage.handle].pipe == what->pipe && block->head.lo != span.lo)
            diag_label(linear->diags, diag, block->head, "`lag` keeps %d from here", block->stage.lag);
    }
    if (what->end == END_CONSUME && linear->late[what->pipe])
        diag_note(linear->diags, diag, "`lag` keeps %d of them", linear->late[what->pipe]);
    diag_help(linear->diags, diag, "release one before, or give the ring %d stages: `pipe %s[%d]`", held, pipe->name, held);
    return held;
}

static int acquire(Linear *linear, int handle, Span span, StageState state) {
    if (!hold_of(linear, handle)) open_scope(linear, handle, span);
    if (!stage_event(linear, handle, EVENT_ACQUIRE, span)) return 0;
    *hold_change(linear, handle) = (Hold){.state = state, .since = span, .acquired = span};
    return count_held(linear, handle, span);
}

static void release(Linear *linear, int handle, Span span) {
    stage_event(linear, handle, EVENT_RELEASE, span);
}

static void move(Linear *linear, int to, int from, Span span) {
    Hold taken = {.state = STATE_POISON};
    if (hold_of(linear, from)) taken = *hold_of(linear, from);
    bool fine = stage_event(linear, from, EVENT_MOVE_OUT, span);
    if (fine) hold_change(linear, from)->moved_to = to;
    if (!hold_of(linear, to)) open_scope(linear, to, span);
    if (!stage_event(linear, to, EVENT_MOVE_IN, span)) return;
    Hold *hold = hold_change(linear, to);
    *hold = taken;
    hold->state = fine ? STATE_HELD : STATE_POISON;
    hold->since = span;
}

static bool known(const Linear *linear, int handle) {
    return valid_index(handle, linear->role->handles.count) &&
           valid_index(linear->role->handles.items[handle].pipe, linear->prog->pipes.count) &&
           !linear->role->handles.items[handle].forgotten;
}

/* What a move from or to something unknown leaves behind is unknown. */
static void forget(Linear *linear, int handle) {
    if (!known(linear, handle)) return;
    if (!hold_of(linear, handle)) open_scope(linear, handle, linear->role->handles.items[handle].span);
    stage_fault(linear, handle);
    hold_change(linear, handle)->state = STATE_POISON;
}

/* ---- compound statements ------------------------------------------------------------------------------------------ */

/* What is not reached was meant to be, or what leaves was not: nothing is said about the counts of the role's pipes. */
static void fault_unreached(Stmt *stmt, void *data) {
    Linear *linear = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    if (known(linear, handle)) stage_fault(linear, handle);
}

static void refuse_unreached(Linear *linear, const Stmt *stmt) {
    Diag *diag = diag_at(linear->diags, P0311, stmt->head, "this statement is never reached");
    diag_label(linear->diags, diag, linear->left, "every path leaves here or before");
    diag_help(linear->diags, diag, "remove it, or what leaves before it");
}

static void block(Linear *linear, Stmt *stmt) {
    size_t depth = linear->scope.count;
    bool direct = linear->direct;
    Frame frame = {.outer = linear->frame, .target = stmt, .depth = depth};
    linear->frame = &frame;
    for (size_t i = 0; i < stmt->block.loans.count; i++)
        stage_event(linear, stmt->block.loans.items[i].handle, EVENT_USE, stmt->block.loans.items[i].span);
    for (size_t i = 0; i < stmt->block.body.count; i++) {
        Stmt *next = stmt->block.body.items[i];
        if (!linear->path.live) {
            /* a block of its own may be the arm that a constant chose */
            if (!linear->path.expected && stmt->block.body.items[i - 1]->kind != S_BLOCK) {
                refuse_unreached(linear, next);
                stmt_visit(linear->role->body, fault_unreached, linear);
            }
            linear->path.expected = true;
            break;
        }
        linear->direct = direct;
        follow(linear, next);
    }
    linear->frame = frame.outer;
    close_scopes(linear, depth, closing_of(stmt));
    for (size_t i = 0; i < frame.exits.count; i++)
        linear->path = path_join(linear, &linear->path, &frame.exits.items[i].path, stmt);
}

static bool varies(const Expr *expr) { return expr && expr->kind != X_POISON && expr->uniformity != UNIFORM_ROLE; }

static void branch(Linear *linear, Stmt *stmt) {
    Stmt *then = stmt->branch.then, *otherwise = stmt->branch.otherwise;
    Path before = path_copy(linear, &linear->path, linear->path.count);
    bool differs = linear->differs;
    linear->differs |= varies(stmt->branch.condition);
    linear->direct = false;
    if (then) follow(linear, then);
    Path first = linear->path;
    linear->path = before;
    linear->direct = false;
    if (otherwise) follow(linear, otherwise);
    linear->path = path_join(linear, &first, &linear->path, stmt);
    linear->differs = differs;
}

/* Stages that written lags of blocks in this loop keep from one iteration to the next */
static void count_late(Linear *linear, const Stmt *body, int sign) {
    if (!body || body->kind != S_BLOCK) return;
    for (size_t i = 0; i < body->block.body.count; i++) {
        const Stmt *stmt = body->block.body.items[i];
        if (stmt->kind != S_STAGE || stmt->stage.lag <= 0 || !known(linear, stmt->stage.handle)) continue;
        linear->late[linear->role->handles.items[stmt->stage.handle].pipe] += sign * stmt->stage.lag;
        if (sign > 0) vec_push(linear->arena, &linear->lagging, stmt);
        else linear->lagging.count--;
    }
}

/* The next variable that some way out of the loop may have changed */
static size_t next_changed(const Path *after, const Path *end, const Frame *frame, size_t slot) {
    size_t next = end->live ? path_differs(after, end, slot, after->count) : after->count;
    for (size_t x = 0; x < frame->exits.count; x++) {
        size_t other = path_differs(after, &frame->exits.items[x].path, slot, after->count);
        if (other < next) next = other;
    }
    return next;
}

static void after_loop(Linear *linear, Path *entry, const Path *end, const Frame *frame) {
    Path after = path_copy(linear, entry, entry->count);
    for (size_t i = next_changed(&after, end, frame, 0); i < after.count; i = next_changed(&after, end, frame, i + 1)) {
        bool poison = end->live && path_hold(end, i)->state == STATE_POISON;
        for (size_t x = 0; x < frame->exits.count; x++)
            poison |= path_hold(&frame->exits.items[x].path, i)->state == STATE_POISON;
        Hold *hold = path_change(linear, &after, i);
        if (poison) hold->state = STATE_POISON;
    }
    linear->path = after;
}

static void loop(Linear *linear, Stmt *stmt, Stmt *body) {
    Path entry = path_copy(linear, &linear->path, linear->path.count);
    Frame frame = {.outer = linear->frame, .target = stmt, .depth = linear->scope.count};
    Stmt *outer = linear->loop;
    bool differs = linear->differs;
    if (stmt->kind == S_FOR) linear->differs |= varies(stmt->loop.lo) || varies(stmt->loop.hi) || varies(stmt->loop.where);
    linear->frame = &frame;
    linear->loop = stmt;
    linear->direct = true;
    count_late(linear, body, 1);
    if (body) follow(linear, body);
    count_late(linear, body, -1);
    linear->frame = frame.outer;
    linear->loop = outer;
    Path end = linear->path;
    if (end.live) path_restored(linear, &entry, &end, stmt, NULL);
    for (size_t i = 0; i < frame.exits.count; i++)
        path_restored(linear, &entry, &frame.exits.items[i].path, stmt, frame.exits.items[i].leave);
    after_loop(linear, &entry, &end, &frame);
    linear->differs = differs;
}

static void stage_block(Linear *linear, Stmt *stmt) {
    int handle = stmt->stage.handle;
    size_t depth = linear->scope.count;
    bool direct = linear->direct;
    linear->direct = false;
    if (!known(linear, handle)) {
        if (stmt->stage.body) follow(linear, stmt->stage.body);
        return;
    }
    lag_written(linear, stmt, direct);
    int held = acquire(linear, handle, stmt->head, STATE_BLOCK);
    if (linear->role->handles.items[handle].end == END_CONSUME) {
        BlockUse use = {.stmt = stmt, .role = linear->role_index, .loop = direct ? linear->loop : NULL, .held = held};
        vec_push(linear->arena, &linear->blocks, use);
    }
    if (stmt->stage.body) follow(linear, stmt->stage.body);
    close_scopes(linear, depth, closing_of(stmt));
}

static void leave(Linear *linear, Stmt *stmt) {
    size_t depth = 0;
    Frame *frame = linear->frame;
    while (frame && stmt->leave.target && frame->target != stmt->leave.target) frame = frame->outer;
    if (stmt->leave.target && frame) depth = frame->depth;
    Diag *dropped = NULL;
    stmt->leave.releases.count = 0;
    for (size_t i = linear->path.count; i-- > depth;) {
        int handle = linear->scope.items[i];
        const Hold *hold = path_hold(&linear->path, i);
        if (hold->state == STATE_BLOCK) {
            vec_push(linear->arena, &stmt->leave.releases, handle);
        } else if (hold->state == STATE_HELD && (dropped || linear->differs)) { /* one leave, one message */
            if (dropped) diag_label(linear->diags, dropped, hold->acquired, "so is `%s`, which was acquired here", linear->role->handles.items[handle].name);
            stage_fault(linear, handle);
            path_change(linear, &linear->path, i)->state = STATE_POISON;
        } else {
            bool held = hold->state == STATE_HELD;
            if (hold->state == STATE_RELEASED || hold->state == STATE_MOVED) linear->given[handle] = hold->since;
            stage_event(linear, handle, EVENT_LEAVE, stmt->span);
            if (held) dropped = linear->refused;
        }
    }
    if (frame && stmt->leave.target) {
        Exit left = {.path = path_copy(linear, &linear->path, depth), .leave = stmt};
        vec_push(linear->arena, &frame->exits, left);
    }
    linear->path.live = false;
    linear->path.expected = dropped != NULL; /* what releases it stands behind */
    linear->left = stmt->span;
}

/* ---- statements --------------------------------------------------------------------------------------------------- */

static void use(Access *access, bool written, void *data) {
    (void)written;
    if (access->space == SPACE_STAGE) stage_event(data, access->object, EVENT_USE, access->span);
}

static void follow(Linear *linear, Stmt *stmt) {
    walk_accesses(linear->arena, stmt, use, linear);
    switch (stmt->kind) {
    case S_BLOCK: block(linear, stmt); break;
    case S_SCALAR: case S_TRY: break;
    case S_TILE: break;
    case S_GRID: loop(linear, stmt, stmt->grid.body); break;
    case S_FOR: loop(linear, stmt, stmt->loop.body); break;
    case S_IF: branch(linear, stmt); break;
    case S_LEAVE: leave(linear, stmt); break;
    case S_ACQUIRE:
        if (known(linear, stmt->acquire.handle)) acquire(linear, stmt->acquire.handle, stmt->span, STATE_HELD);
        break;
    case S_RELEASE:
        if (known(linear, stmt->release.handle)) release(linear, stmt->release.handle, stmt->span);
        break;
    case S_UNSAFE:
        if (known(linear, stmt->unsafe->handle)) stage_event(linear, stmt->unsafe->handle, EVENT_USE, stmt->span);
        break;
    case S_MOVE:
        if (known(linear, stmt->move.from) && known(linear, stmt->move.to))
            move(linear, stmt->move.to, stmt->move.from, stmt->span);
        else
            forget(linear, stmt->move.to), forget(linear, stmt->move.from);
        break;
    case S_STAGE: stage_block(linear, stmt); break;
    }
}

static void follow_role(Linear *linear, int index) {
    Role *role = &linear->prog->roles.items[index];
    size_t pipes = linear->prog->pipes.count;
    linear->role_index = index;
    linear->role = role;
    linear->scope.count = 0;
    linear->slot = NEW_ARRAY(linear->arena, int, role->handles.count + 1);
    for (size_t i = 0; i < role->handles.count; i++) linear->slot[i] = -1;
    linear->given = NEW_ARRAY(linear->arena, Span, role->handles.count + 1);
    linear->path = path_new(linear);
    linear->frame = NULL;
    linear->loop = NULL;
    linear->direct = linear->differs = false;
    linear->left = (Span){0, 0};
    linear->late = NEW_ARRAY(linear->arena, int, pipes + 1);
    linear->crowded = NEW_ARRAY(linear->arena, bool, pipes + 1);
    follow(linear, role->body);
}

void stages_check(Arena *arena, Prog *prog, Diags *diags) {
    Linear linear = {.arena = arena, .prog = prog, .diags = diags};
    linear.producer_most = NEW_ARRAY(arena, int, prog->pipes.count + 1);
    for (size_t i = 0; i < prog->roles.count; i++)
        if (prog->roles.items[i].body) follow_role(&linear, (int)i);
    lags_derive(&linear);
    hints_check(arena, prog, diags);
    roles_check(arena, prog, diags);
    uniform_check(arena, prog, diags);
}
