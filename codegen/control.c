/* Statements: blocks, loops, branches, leaving, scalars; and the frame of a role. */
#include "codegen/gen.h"

/* ---- frames ------------------------------------------------------------------------------------------------------- */

static void collect_lags(Gen *gen, Frame *frame, const Stmt *stmt);

static void collect_list(Gen *gen, Frame *frame, const Stmts *list) {
    for (size_t i = 0; i < list->count; i++) collect_lags(gen, frame, list->items[i]);
}

/* The late releases whose innermost loop is the frame's. */
static void collect_lags(Gen *gen, Frame *frame, const Stmt *stmt) {
    if (stmt == NULL) return;
    switch (stmt->kind) {
    case S_BLOCK: collect_list(gen, frame, &stmt->block.body); return;
    case S_IF:
        collect_lags(gen, frame, stmt->branch.then);
        collect_lags(gen, frame, stmt->branch.otherwise);
        return;
    case S_STAGE:
        if (stmt->stage.lag > 0) {
            Lag *lag = NEW(gen->arena, Lag);
            *lag = (Lag){stmt, NEW_ARRAY(gen->arena, Reg, stmt->stage.lag), ptx_new_reg(gen->ptx, REG_32), frame->lags};
            for (int i = 0; i < stmt->stage.lag; i++) lag->late[i] = ptx_new_reg(gen->ptx, REG_32);
            frame->lags = lag;
        }
        collect_lags(gen, frame, stmt->stage.body);
        return;
    case S_GRID:
    case S_FOR: /* loops of their own */
    case S_SCALAR:
    case S_TILE:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return;
    }
}

static Frame *push_frame(Gen *gen, const Stmt *stmt) {
    Frame *frame = NEW(gen->arena, Frame);
    *frame =
        (Frame){.stmt = stmt, .leave_label = ptx_new_label(gen->ptx), .continue_label = -1, .outer = gen->role->frame};
    gen->role->frame = frame;
    return frame;
}

static void pop_frame(Gen *gen) { gen->role->frame = gen->role->frame->outer; }

static void open_lags(Gen *gen, Frame *frame, const Stmt *body) {
    collect_lags(gen, frame, body);
    for (Lag *lag = frame->lags; lag != NULL; lag = lag->next) {
        for (int i = 0; i < lag->stage->stage.lag; i++) INS(gen->ptx, "mov.b32", ptx_reg(lag->late[i]), ptx_int(0));
        INS(gen->ptx, "mov.b32", ptx_reg(lag->held), ptx_int(0));
    }
}

static void drain_lags(Gen *gen, const Frame *frame) {
    if (frame->lags != NULL) mma_late(gen, frame->stmt);
    for (Lag *lag = frame->lags; lag != NULL; lag = lag->next) pipe_drain(gen, lag);
}

/* ---- scalars ------------------------------------------------------------------------------------------------------ */

void local_set(Gen *gen, int local, Value value) {
    Value *to = &gen->role->locals[local];
    if (gen->role->role->locals.items[local].kind == LOCAL_LET && value.reg.class == REG_NONE) {
        *to = value; /* wherever it is read, it was set here, in this turn of an unrolled loop */
        return;
    }
    if (to->type == E_BOOL)
        INS(gen->ptx, "mov.pred", ptx_reg(to->reg), ptx_reg(value_in_reg(gen, value)));
    else
        INS(gen->ptx, class_of(to->type) == REG_64 ? "mov.b64" : "mov.b32", ptx_reg(to->reg), value_operand(value));
    ptx_forget(gen->ptx);
}

/* ---- loops -------------------------------------------------------------------------------------------------------- */

/* What follows is skipped in iterations that `where` leaves out. */
static void skip_unless(Gen *gen, Frame *frame, const Expr *where) {
    if (where == NULL) return;
    mma_branch(gen, &frame->next);
    INS_UNLESS(gen->ptx, eval_condition(gen, &(Point){.outer = NULL}, where), "bra", ptx_label(frame->continue_label));
}

/* Behind a loop that jumps back: control comes from its head and from what left it. */
static void place_leave(Gen *gen, const Frame *frame) {
    mma_meet(gen, frame->left);
    ptx_place_label(gen->ptx, frame->leave_label);
}

static void set_axis(Gen *gen, const Stmt *stmt, size_t axis, Operand value) {
    INS(gen->ptx, "mov.b32", ptx_reg(gen->role->locals[stmt->grid.vars[axis]].reg), value);
}

/* A coordinate of clusters becomes one of this block: times the cluster's size along the axis, plus the block's place in it. */
static void set_coordinate(Gen *gen, const Stmt *stmt, size_t axis, Reg here) {
    int size = gen->prog->axes.items[axis].cluster;
    if (size > 1)
        here = PURE(gen->ptx, REG_32, "mad.lo.s32", ptx_reg(here), ptx_int(size), ptx_reg(gen->cluster.along[axis]));
    set_axis(gen, stmt, axis, ptx_reg(here));
}

/* Number `rest` among the coordinates of the axes from `first` on, the first of them fastest. */
static void set_plain_axes(Gen *gen, const Stmt *stmt, const Value *extents, Reg rest, size_t first) {
    size_t count = gen->prog->axes.count;
    for (size_t a = first; a < count; a++) {
        bool last = a + 1 == count;
        Reg here = last ? rest : PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(rest), value_operand(extents[a]));
        if (!last) rest = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(rest), value_operand(extents[a]));
        set_coordinate(gen, stmt, a, here);
    }
}

/* `grouped n`: n coordinates of the first axis (fewer in its last group) with all of the second, then the next n: what is in
 * flight at once shares rows and columns in L2. */
static void set_axes(Gen *gen, const Stmt *stmt, const Value *extents, Reg tile) {
    int grouped = gen->prog->grouped / gen->prog->axes.items[0].cluster;
    if (grouped == 0) {
        set_plain_axes(gen, stmt, extents, tile, 0);
        return;
    }
    Reg plane = PURE(gen->ptx, REG_32, "mul.lo.s32", value_operand(extents[0]), value_operand(extents[1]));
    Reg rest = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(tile), ptx_reg(plane)), in_plane = tile;
    if (gen->prog->axes.count > 2) in_plane = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(tile), ptx_reg(plane));
    Reg whole = PURE(gen->ptx, REG_32, "mul.lo.s32", value_operand(extents[1]), ptx_int(grouped));
    Reg group = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(in_plane), ptx_reg(whole));
    Reg inside = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(in_plane), ptx_reg(whole));
    Reg first = PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(group), ptx_int(grouped));
    Reg left = PURE(gen->ptx, REG_32, "sub.s32", value_operand(extents[0]), ptx_reg(first));
    Reg rows = PURE(gen->ptx, REG_32, "min.s32", ptx_reg(left), ptx_int(grouped));
    Reg row = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(inside), ptx_reg(rows));
    set_coordinate(gen, stmt, 0, PURE(gen->ptx, REG_32, "add.s32", ptx_reg(first), ptx_reg(row)));
    set_coordinate(gen, stmt, 1, PURE(gen->ptx, REG_32, "div.u32", ptx_reg(inside), ptx_reg(rows)));
    set_plain_axes(gen, stmt, extents, rest, 2);
}

static Value clusters_along(Gen *gen, const Axis *axis) {
    Value extent = eval_scalar(gen, axis->extent);
    if (axis->cluster == 1) return extent;
    if (extent.reg.class == REG_NONE) return value_integer(E_I32, (extent.integer + axis->cluster - 1) / axis->cluster);
    Reg up = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(extent.reg), ptx_int(axis->cluster - 1));
    return value_reg(E_I32, PURE(gen->ptx, REG_32, "div.u32", ptx_reg(up), ptx_int(axis->cluster)));
}

/* for (axes) in grid: coordinate number `tile` of this block, the first axis fastest; the same loop runs once where the grid is
 * not persistent, since then there are as many blocks as coordinates (one block where there are none). Clusters are counted where
 * blocks run in them: all blocks of one take the same number of iterations. */
static void gen_grid(Gen *gen, const Stmt *stmt) {
    const Prog *prog = gen->prog;
    ptx_mark(gen->ptx, stmt->head, gen->role->number, NULL, "takes the next grid coordinate");
    Frame *frame = push_frame(gen, stmt);
    open_lags(gen, frame, stmt->grid.body);
    Value extents[PROG_MAX_RANK], total = value_integer(E_I32, 1);
    for (size_t a = 0; a < prog->axes.count; a++) {
        extents[a] = clusters_along(gen, &prog->axes.items[a]);
        total = a == 0 ? extents[a]
                       : value_reg(E_I32, PURE(gen->ptx, REG_32, "mul.lo.s32", value_operand(total),
                                               value_operand(extents[a])));
    }
    Reg tile = ptx_new_reg(gen->ptx, REG_32), step = ptx_new_reg(gen->ptx, REG_32),
        done = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "mov.u32", ptx_reg(tile), ptx_text(prog->cluster > 1 ? "%clusterid.x" : "%ctaid.x"));
    INS(gen->ptx, "mov.u32", ptx_reg(step), ptx_text(prog->cluster > 1 ? "%nclusterid.x" : "%nctaid.x"));
    int head = ptx_new_label(gen->ptx);
    frame->continue_label = ptx_new_label(gen->ptx);
    mma_head(gen, stmt);
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(done), ptx_reg(tile), value_operand(total));
    mma_branch(gen, &frame->left);
    INS_IF(gen->ptx, done, "bra", ptx_label(frame->leave_label));
    set_axes(gen, stmt, extents, tile);
    ptx_forget(gen->ptx);
    int skip = turn_iteration(gen);
    gen_stmt(gen, stmt->grid.body);
    mma_meet(gen, frame->next);
    ptx_place_label(gen->ptx, frame->continue_label);
    mma_again(gen, stmt);
    turn_skipped(gen, stmt, skip);
    INS(gen->ptx, "add.s32", ptx_reg(tile), ptx_reg(tile), ptx_reg(step));
    INS(gen->ptx, "bra", ptx_label(head));
    place_leave(gen, frame);
    drain_lags(gen, frame);
    pop_frame(gen);
}

static void gen_unrolled(Gen *gen, const Stmt *stmt, Frame *frame) {
    Value lo = eval_scalar(gen, stmt->loop.lo), hi = eval_scalar(gen, stmt->loop.hi);
    Value saved = gen->role->locals[stmt->loop.var];
    for (int64_t v = lo.integer; v < hi.integer; v++) {
        gen->role->locals[stmt->loop.var] = value_integer(saved.type, v);
        frame->continue_label = ptx_new_label(gen->ptx);
        frame->next = NULL;
        skip_unless(gen, frame, stmt->loop.where);
        gen_stmt(gen, stmt->loop.body);
        mma_meet(gen, frame->next);
        ptx_place_label(gen->ptx, frame->continue_label);
    }
    gen->role->locals[stmt->loop.var] = saved;
}

static void gen_counted(Gen *gen, const Stmt *stmt, Frame *frame) {
    Reg var = gen->role->locals[stmt->loop.var].reg, done = ptx_new_reg(gen->ptx, REG_PRED),
        end = ptx_new_reg(gen->ptx, REG_32);
    Value lo = eval_scalar(gen, stmt->loop.lo), hi = eval_scalar(gen, stmt->loop.hi);
    INS(gen->ptx, "mov.b32", ptx_reg(end), value_operand(hi));
    INS(gen->ptx, "mov.b32", ptx_reg(var), value_operand(lo));
    int head = ptx_new_label(gen->ptx);
    frame->continue_label = ptx_new_label(gen->ptx);
    mma_head(gen, stmt);
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(done), ptx_reg(var), ptx_reg(end));
    mma_branch(gen, &frame->left);
    INS_IF(gen->ptx, done, "bra", ptx_label(frame->leave_label));
    skip_unless(gen, frame, stmt->loop.where);
    gen_stmt(gen, stmt->loop.body);
    mma_meet(gen, frame->next);
    ptx_place_label(gen->ptx, frame->continue_label);
    mma_again(gen, stmt);
    INS(gen->ptx, "add.s32", ptx_reg(var), ptx_reg(var), ptx_int(1));
    INS(gen->ptx, "bra", ptx_label(head));
}

static void gen_for(Gen *gen, const Stmt *stmt) {
    int turn = turn_hold(gen);
    ptx_mark(gen->ptx, stmt->head, gen->role->number, NULL, "loops");
    Frame *frame = push_frame(gen, stmt);
    open_lags(gen, frame, stmt->loop.body);
    bool apart = apart_open(gen, stmt);
    if (stmt->loop.unroll)
        gen_unrolled(gen, stmt, frame);
    else
        gen_counted(gen, stmt, frame);
    place_leave(gen, frame);
    apart_close(gen, apart);
    gen->role->turn_ending = turn;
    turn_pass(gen);
    drain_lags(gen, frame);
    pop_frame(gen);
}

/* ---- branches ----------------------------------------------------------------------------------------------------- */

static void gen_arm(Gen *gen, const Stmt *arm, int turn) {
    gen->role->turn_ending = turn;
    if (arm != NULL) gen_stmt(gen, arm);
    turn_pass(gen);
}

/* Each arm passes the turn on as soon as it can; where lanes take different arms, it is passed on
 * after both: a barrier is for whole warps. */

static void gen_if(Gen *gen, const Stmt *stmt) {
    int turn = turn_hold(gen);
    ptx_mark(gen->ptx, stmt->head, gen->role->number, NULL, NULL);
    Value condition = eval_scalar(gen, stmt->branch.condition);
    if (condition.reg.class == REG_NONE) {
        const Stmt *taken = condition.integer != 0 ? stmt->branch.then : stmt->branch.otherwise;
        gen_arm(gen, taken, turn);
        return;
    }
    int otherwise = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    Pending *before = NULL, *then = NULL;
    mma_rest(gen, stmt);
    bool apart = apart_open(gen, stmt);
    int in_arms = apart ? 0 : turn;
    mma_branch(gen, &before);
    INS_UNLESS(gen->ptx, condition.reg, "bra", ptx_label(otherwise));
    gen_arm(gen, stmt->branch.then, in_arms);
    mma_rest_in_loop(gen);
    mma_goto(gen, &then);
    if (stmt->branch.otherwise != NULL || in_arms != 0) INS(gen->ptx, "bra", ptx_label(end));
    ptx_place_label(gen->ptx, otherwise);
    mma_meet(gen, before);
    gen_arm(gen, stmt->branch.otherwise, in_arms);
    mma_rest_in_loop(gen);
    mma_meet(gen, then);
    ptx_place_label(gen->ptx, end);
    apart_close(gen, apart);
    if (!apart) return;
    gen->role->turn_ending = turn;
    turn_pass(gen);
}

/* Blocks that are left release their stages; loops that are crossed give back what they still hold late. The target's own late
 * stages are drained behind its leave label. */
static void gen_leave(Gen *gen, const Stmt *stmt) {
    for (size_t i = 0; i < stmt->leave.releases.count; i++)
        pipe_release(gen, stmt->span, stmt->leave.releases.items[i]);
    Frame *frame = gen->role->frame;
    for (; frame != NULL && frame->stmt != stmt->leave.target; frame = frame->outer) drain_lags(gen, frame);
    mma_leave(gen, frame, stmt->leave.kind);
    int label = frame == NULL                        ? gen->role->end_label
                : stmt->leave.kind == LEAVE_CONTINUE ? frame->continue_label
                                                     : frame->leave_label;
    INS(gen->ptx, "bra", ptx_label(label));
    ptx_forget(gen->ptx);
}

/* Statements one after another. Where the next releases a stage, a statement may do so (Due). */
static void gen_list(Gen *gen, const Stmts *list, const Frame *frame, Due *behind) {
    RoleState *state = gen->role;
    for (size_t i = 0; i < list->count; i++) {
        const Stmt *here = list->items[i], *next = i + 1 < list->count ? list->items[i + 1] : NULL;
        bool releases = next != NULL && next->kind == S_RELEASE && !next->release.silent, alone = frame->left == NULL;
        Due own = {.done = false};
        if (releases) own = (Due){next->release.handle, next->span, false};
        if (alone && (here->kind == S_TILE || here->kind == S_BLOCK))
            state->due = releases ? &own : next == NULL ? behind : NULL;
        gen_stmt(gen, here);
        state->due = NULL;
        if (own.done) i++;
    }
}

static void gen_block(Gen *gen, const Stmt *stmt) {
    Due *behind = gen->role->due;
    bool turn = stmt->block.turn != 0 || gen->role->turn_ending != 0;
    Frame *frame = push_frame(gen, stmt);
    gen->role->due = NULL;
    if (stmt->block.turn != 0) turn_open(gen, stmt);
    bool apart = apart_open(gen, stmt);
    if (turn)
        turn_list(gen, &stmt->block.body);
    else
        gen_list(gen, &stmt->block.body, frame, behind);
    if (stmt->block.left) place_leave(gen, frame);
    apart_close(gen, apart);
    mma_scope(gen, stmt);
    if (stmt->block.turn != 0) turn_pass(gen);
    pop_frame(gen);
}

static void gen_stage(Gen *gen, const Stmt *stmt) {
    uint32_t end = stmt->span.hi > stmt->span.lo ? stmt->span.hi - 1 : stmt->span.lo;
    Due due = {stmt->stage.handle, (Span){end, stmt->span.hi}, false};
    pipe_acquire(gen, stmt, stmt->stage.handle);
    if (stmt->stage.body->kind == S_BLOCK) gen->role->due = &due;
    gen_stmt(gen, stmt->stage.body);
    gen->role->due = NULL;
    turn_pass(gen);
    if (!due.done) pipe_release(gen, due.span, due.handle);
}

void gen_stmt(Gen *gen, const Stmt *stmt) {
    switch (stmt->kind) {
    case S_BLOCK: gen_block(gen, stmt); return;
    case S_SCALAR:
        if (stmt->scalar.space != NULL) {
            refuse_reduction(gen, stmt->scalar.value, stmt->span);
            return;
        }
        ptx_mark(gen->ptx, stmt->span, gen->role->number, NULL, NULL);
        mma_touch(gen, stmt);
        zero_settle(gen, stmt);
        local_set(gen, stmt->scalar.local, eval_scalar(gen, stmt->scalar.value));
        return;
    case S_TILE: gen_tile(gen, stmt); return;
    case S_GRID: gen_grid(gen, stmt); return;
    case S_FOR: gen_for(gen, stmt); return;
    case S_IF: gen_if(gen, stmt); return;
    case S_LEAVE: gen_leave(gen, stmt); return;
    case S_TRY: pipe_ask(gen, stmt); return;
    case S_ACQUIRE: pipe_acquire(gen, stmt, stmt->acquire.handle); return;
    case S_RELEASE:
        if (stmt->release.silent)
            pipe_forget(gen, stmt->release.handle);
        else
            pipe_release(gen, stmt->span, stmt->release.handle);
        return;
    case S_MOVE:
        mma_move(gen, stmt->move.to, stmt->move.from);
        INS(gen->ptx, "mov.b32", ptx_reg(gen->role->handles[stmt->move.to]),
            ptx_reg(gen->role->handles[stmt->move.from]));
        ptx_forget(gen->ptx);
        return;
    case S_STAGE: gen_stage(gen, stmt); return;
    case S_UNSAFE: gen_unsafe(gen, stmt); return;
    }
}

/* ---- a role ------------------------------------------------------------------------------------------------------- */

static void open_cursors(Gen *gen, RoleState *state) {
    size_t pipes = gen->prog->pipes.count;
    for (int end = 0; end < 2; end++) {
        state->cursors[end] = NEW_ARRAY(gen->arena, Cursor, pipes);
        for (size_t p = 0; p < pipes; p++) {
            const Pipe *pipe = &gen->prog->pipes.items[p];
            bool has_end = end == END_PRODUCE ? pipe->producer == state->number : pipe_consumed_by(pipe, state->number);
            if (!state->role->pipes[p].uses || !has_end) continue;
            Cursor cursor = {ptx_new_reg(gen->ptx, REG_32), ptx_new_reg(gen->ptx, REG_32)};
            INS(gen->ptx, "mov.b32", ptx_reg(cursor.stage), ptx_int(0));
            INS(gen->ptx, "mov.b32", ptx_reg(cursor.parity), ptx_int(end == END_PRODUCE ? 1 : 0));
            state->cursors[end][p] = cursor;
        }
    }
}

/* Who am I: instance, thread of the instance, the lane that issues bulk work, the lane that arrives for its warp. */
static void open_threads(Gen *gen, RoleState *state) {
    const Role *role = state->role;
    if (role->one_lane) {
        Reg elected = ptx_new_reg(gen->ptx, REG_PRED);
        INS(gen->ptx, "elect.sync", ptx_text(arena_printf(gen->arena, "_|%%p%u", elected.id)), ptx_int(0xffffffff));
        INS_UNLESS(gen->ptx, elected, "bra", ptx_label(state->end_label));
        return;
    }
    Reg thread = ptx_new_reg(gen->ptx, REG_32), lane = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.u32", ptx_reg(thread), ptx_text("%tid.x"));
    INS(gen->ptx, "mov.u32", ptx_reg(lane), ptx_text("%laneid"));
    state->thread = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(thread), ptx_int(role->first_warp * 32));
    if (role->instances > 1) {
        Reg warp = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(gen->warp), ptx_int(role->first_warp));
        state->rank = PURE(gen->ptx, REG_32, "div.u32", ptx_reg(warp), ptx_int(role->warps));
        state->thread = PURE(gen->ptx, REG_32, "rem.u32", ptx_reg(state->thread), ptx_int(role->warps * 32));
    }
    state->leader = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->thread), ptx_int(0));
    state->arriver = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(lane), ptx_int(0));
}

static void open_storage(Gen *gen, RoleState *state) {
    const Role *role = state->role;
    state->handles = NEW_ARRAY(gen->arena, Reg, role->handles.count);
    for (size_t i = 0; i < role->handles.count; i++) state->handles[i] = ptx_new_reg(gen->ptx, REG_32);
    state->hints = NEW_ARRAY(gen->arena, Reg, role->hints.count);
    for (size_t i = 0; i < role->hints.count; i++) state->hints[i] = ptx_new_reg(gen->ptx, REG_PRED);
    state->locals = NEW_ARRAY(gen->arena, Value, role->locals.count);
    for (size_t i = 0; i < role->locals.count; i++) {
        Element type = element_rows[role->locals.items[i].type].widens;
        state->locals[i] = value_reg(type, ptx_new_reg(gen->ptx, class_of(type)));
    }
    state->tiles = NEW_ARRAY(gen->arena, Reg *, role->tiles.count);
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        if (!tile->in_registers) continue;
        int64_t slots = layout_registers(&tile->held) / (tile_pairs(tile) ? 2 : 1);
        state->tiles[i] = NEW_ARRAY(gen->arena, Reg, slots);
        for (int64_t s = 0; s < slots; s++)
            state->tiles[i][s] = ptx_new_reg(gen->ptx, class_of(element_rows[tile->type].widens));
    }
}

void gen_role(Gen *gen, int number) {
    const Role *role = &gen->prog->roles.items[number];
    RoleState state = {.role = role, .number = number};
    gen->role = &state;
    state.end_label = ptx_new_label(gen->ptx);
    state.expired_label = ptx_new_label(gen->ptx);
    state.expired_site = ptx_new_reg(gen->ptx, REG_32);
    state.expired_stage = ptx_new_reg(gen->ptx, REG_32);
    ptx_mark(gen->ptx, role->span, number, NULL, NULL);
    ptx_comment(gen->ptx, "---- role %s: %d x %d warps from warp %d%s", role->name, role->instances, role->warps,
                role->first_warp, role->one_lane ? ", in one elected lane" : "");
    open_threads(gen, &state);
    open_storage(gen, &state);
    registers_open(gen);
    open_cursors(gen, &state);
    zero_open(gen);
    mma_open(gen);
    apart_find(gen);
    turns_begin(gen);
    cluster_open_role(gen);
    gen_stmt(gen, role->body);
    mma_end(gen);
    ptx_place_label(gen->ptx,
                    state.end_label); /* also of the lanes that were not elected: they have nothing to finish */
    mma_finish(gen);
    turns_end(gen);
    pipe_finish(gen);
    cluster_return(gen);
    pipe_expired(gen);
    gen->role = NULL;
}
