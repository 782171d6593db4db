/* Instances that take turns.
 *
 * `role r: n warpgroups in turn`: each instance goes round the grid as the others do and executes the body in its own iterations. In
 * the others it skips: of the body only what moves cursors is generated, so that they stand where those of the instance that took it do.
 *
 * `turn { }`: a token goes round the instances, by named barriers (PTX ISA 9.7.13.1), one for each instance that waits: it is there when
 * all its threads have come to it and all of the instance before have arrived. At first the last instance arrives for the first; who
 * would be next at the end takes the token away. */
#include "codegen/gen.h"

/* ---- tokens ------------------------------------------------------------------------------------------------------- */

/* Barrier ids never come from registers: ptxas would reserve all sixteen. So each instance has an instruction of its own. Instance k
 * comes to barrier first + (k + shift) % instances. */
void instances_barrier(Gen *gen, const char *op, int first, int shift, int threads) {
    const RoleState *state = gen->role;
    int instances = state->role->instances;
    if (instances == 1) {
        INS(gen->ptx, op, ptx_int(first), ptx_int(threads));
        return;
    }
    for (int k = 0; k < instances; k++) {
        int id = first + (k + shift) % instances;
        Reg mine = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->rank), ptx_int(k));
        INS_IF(gen->ptx, mine, op, ptx_int(id), ptx_int(threads));
    }
}

static int token_of(const Role *role, int turn) { return role->tokens + (turn - 1) * role->instances; }
static int token_threads(const Role *role) {
    return 2 * role->warps * 32;
} /* of who passes it on and of who takes it */

/* A barrier's instruction is of a whole warp: its lanes, which may have waited or worked apart, come together first. */
static void token_barrier(Gen *gen, const char *op, int turn, int shift) {
    const Role *role = gen->role->role;
    INS(gen->ptx, "bar.warp.sync", ptx_int(0xffffffff));
    instances_barrier(gen, op, token_of(role, turn), shift, token_threads(role));
}

void turn_open(Gen *gen, const Stmt *stmt) {
    const Role *role = gen->role->role;
    ptx_mark(gen->ptx, stmt->head, gen->role->number, NULL, "waits for its turn");
    mma_settle(gen);
    ptx_comment(gen->ptx, "%s: takes its turn", role->name);
    token_barrier(gen, "bar.sync", stmt->block.turn, 0);
    gen->role->turn_ending = stmt->block.turn;
}

void turn_pass(Gen *gen) {
    RoleState *state = gen->role;
    if (state->turn_ending == 0) return;
    mma_settle(gen);
    ptx_comment(gen->ptx, "%s: the next one's turn", state->role->name);
    token_barrier(gen, "bar.arrive", state->turn_ending, 1);
    state->turn_ending = 0;
}

int turn_hold(Gen *gen) {
    int turn = gen->role->turn_ending;
    gen->role->turn_ending = 0;
    return turn;
}

/* The last statement that issues anything: behind it only stages are given back. */
static size_t last_issue(const Stmts *list) {
    size_t last = list->count;
    while (last > 0 && (list->items[last - 1]->kind == S_RELEASE || list->items[last - 1]->kind == S_MOVE)) last--;
    return last;
}

/* Passes the turn on by itself, before what it ends in. A block that may be left has no one end. */
static bool ends_in_waits(const Stmt *stmt) {
    return stmt->kind == S_FOR || stmt->kind == S_STAGE || stmt->kind == S_IF ||
           (stmt->kind == S_BLOCK && !stmt->block.left);
}

void turn_list(Gen *gen, const Stmts *list) {
    int turn = turn_hold(gen);
    size_t last = last_issue(list);
    for (size_t i = 0; i < list->count; i++) {
        const Stmt *stmt = list->items[i];
        bool ends = turn != 0 && i + 1 == last, inside = ends_in_waits(stmt);
        if (turn != 0 && last == 0 && i == 0) gen->role->turn_ending = turn, turn_pass(gen);
        if (ends && inside) gen->role->turn_ending = turn;
        gen_stmt(gen, stmt);
        if (!ends) continue;
        if (!inside) gen->role->turn_ending = turn;
        turn_pass(gen);
    }
    if (list->count == 0) gen->role->turn_ending = turn;
}

void turns_begin(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    if (role->in_turn) {
        state->until = ptx_new_reg(gen->ptx, REG_32);
        INS(gen->ptx, "mov.b32", ptx_reg(state->until), ptx_reg(state->rank));
    }
    if (role->turns == 0) return;
    ptx_comment(gen->ptx, "%s: the first turn is that of instance 0", role->name);
    Reg last = PURE(gen->ptx, REG_PRED, "setp.eq.u32", ptx_reg(state->rank), ptx_int(role->instances - 1));
    for (int turn = 1; turn <= role->turns; turn++)
        INS_IF(gen->ptx, last, "bar.arrive", ptx_int(token_of(role, turn)), ptx_int(token_threads(role)));
}

/* The instance whose turn would be next takes what was passed to it: a barrier is left as it was found. */
void turns_end(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    if (role->turns == 0) return;
    int end = ptx_new_label(gen->ptx);
    Reg other =
        PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(role->in_turn ? state->until : state->rank), ptx_int(0));
    ptx_comment(gen->ptx, "%s: nobody takes the last turn", role->name);
    INS_IF(gen->ptx, other, "bra.uni", ptx_label(end));
    for (int turn = 1; turn <= role->turns; turn++) token_barrier(gen, "bar.sync", turn, 0);
    ptx_place_label(gen->ptx, end);
}

/* ---- what a skipped iteration does ------------------------------------------------------------------------------------ */

typedef struct SkipFrame SkipFrame;
struct SkipFrame {
    const Stmt *stmt;
    int leave_label, continue_label;
    SkipFrame *outer;
};

typedef struct Skip {
    Gen *gen;
    bool *needed; /* by local: a bound or condition of what is followed reads it */
    bool changed;
    SkipFrame *frame;
} Skip;

/* Steps a cursor, sets what decides about it, or (`leaving`) leaves something that does */
static bool moves(const Skip *skip, const Stmt *stmt, bool leaving) {
    if (stmt == NULL) return false;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            if (moves(skip, stmt->block.body.items[i], leaving)) return true;
        return false;
    case S_SCALAR: return skip->needed[stmt->scalar.local];
    case S_GRID: return moves(skip, stmt->grid.body, leaving);
    case S_FOR: return moves(skip, stmt->loop.body, leaving);
    case S_IF: return moves(skip, stmt->branch.then, leaving) || moves(skip, stmt->branch.otherwise, leaving);
    case S_ACQUIRE:
    case S_STAGE: return true;
    case S_LEAVE: return leaving && moves(skip, stmt->leave.target, false);
    case S_TRY:
    case S_TILE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return false;
    }
    return false;
}

static void need_local(Expr *expr, void *data) {
    Skip *skip = data;
    if (expr->kind != X_LOCAL || skip->needed[expr->index]) return;
    skip->needed[expr->index] = skip->changed = true;
}

static void need(Skip *skip, Expr *expr) {
    if (expr != NULL) expr_visit(skip->gen->arena, expr, need_local, skip);
}

static void find_needed(Skip *skip, const Stmt *stmt) {
    if (!moves(skip, stmt, true)) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) find_needed(skip, stmt->block.body.items[i]);
        return;
    case S_SCALAR: need(skip, stmt->scalar.value); return;
    case S_GRID: find_needed(skip, stmt->grid.body); return;
    case S_FOR:
        need(skip, stmt->loop.lo);
        need(skip, stmt->loop.hi);
        need(skip, stmt->loop.where);
        find_needed(skip, stmt->loop.body);
        return;
    case S_IF:
        need(skip, stmt->branch.condition);
        find_needed(skip, stmt->branch.then);
        find_needed(skip, stmt->branch.otherwise);
        return;
    case S_STAGE: find_needed(skip, stmt->stage.body); return;
    case S_ACQUIRE:
    case S_LEAVE:
    case S_TRY:
    case S_TILE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return;
    }
}

/* Adds what the statement acquires of a pipe; false where that is not a constant. */
static bool constant_acquires(const Skip *skip, const Stmt *stmt, int pipe, int64_t *count) {
    const Role *role = skip->gen->role->role;
    if (!moves(skip, stmt, true)) return true;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            if (!constant_acquires(skip, stmt->block.body.items[i], pipe, count)) return false;
        return true;
    case S_ACQUIRE: *count += role->handles.items[stmt->acquire.handle].pipe == pipe; return true;
    case S_STAGE:
        *count += role->handles.items[stmt->stage.handle].pipe == pipe;
        return constant_acquires(skip, stmt->stage.body, pipe, count);
    case S_SCALAR:
    case S_GRID:
    case S_FOR:
    case S_IF:
    case S_LEAVE: return false;
    case S_TRY:
    case S_TILE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
    return true;
}

static void skip_stmt(Skip *skip, const Stmt *stmt);

static SkipFrame open_skip(Skip *skip, const Stmt *stmt) {
    return (SkipFrame){stmt, ptx_new_label(skip->gen->ptx), ptx_new_label(skip->gen->ptx), skip->frame};
}

static Reg trips_of(Gen *gen, const Stmt *loop) {
    Value lo = eval_scalar(gen, loop->loop.lo), hi = eval_scalar(gen, loop->loop.hi);
    Reg first = value_in_reg(gen, hi);
    if (lo.reg.class != REG_NONE || lo.integer != 0)
        first = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(first), value_operand(lo));
    return PURE(gen->ptx, REG_32, "max.s32", ptx_reg(first), ptx_int(0));
}

/* A loop whose turns all acquire the same number of stages is a multiplication. */
static bool skip_at_once(Skip *skip, const Stmt *loop) {
    Gen *gen = skip->gen;
    size_t pipes = gen->prog->pipes.count;
    int64_t *counts = NEW_ARRAY(gen->arena, int64_t, pipes + 1);
    if (loop->loop.where != NULL) return false;
    for (size_t p = 0; p < pipes; p++)
        if (!constant_acquires(skip, loop->loop.body, (int)p, &counts[p])) return false;
    Reg trips = trips_of(gen, loop);
    for (size_t p = 0; p < pipes; p++) {
        if (counts[p] == 0) continue;
        Reg stages = counts[p] == 1 ? trips : PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(trips), ptx_int(counts[p]));
        pipe_skip(gen, (int)p, stages);
    }
    return true;
}

static void skip_for(Skip *skip, const Stmt *stmt) {
    Gen *gen = skip->gen;
    if (skip_at_once(skip, stmt)) return;
    SkipFrame frame = open_skip(skip, stmt);
    Reg var = gen->role->locals[stmt->loop.var].reg, done = ptx_new_reg(gen->ptx, REG_PRED),
        end = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.b32", ptx_reg(end), value_operand(eval_scalar(gen, stmt->loop.hi)));
    INS(gen->ptx, "mov.b32", ptx_reg(var), value_operand(eval_scalar(gen, stmt->loop.lo)));
    int head = ptx_new_label(gen->ptx);
    skip->frame = &frame;
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(done), ptx_reg(var), ptx_reg(end));
    INS_IF(gen->ptx, done, "bra", ptx_label(frame.leave_label));
    if (stmt->loop.where != NULL)
        INS_UNLESS(gen->ptx, eval_condition(gen, &(Point){.outer = NULL}, stmt->loop.where), "bra",
                   ptx_label(frame.continue_label));
    skip_stmt(skip, stmt->loop.body);
    ptx_place_label(gen->ptx, frame.continue_label);
    INS(gen->ptx, "add.s32", ptx_reg(var), ptx_reg(var), ptx_int(1));
    INS(gen->ptx, "bra", ptx_label(head));
    ptx_place_label(gen->ptx, frame.leave_label);
    skip->frame = frame.outer;
}

static void skip_if(Skip *skip, const Stmt *stmt) {
    Gen *gen = skip->gen;
    Value condition = eval_scalar(gen, stmt->branch.condition);
    if (condition.reg.class == REG_NONE) {
        skip_stmt(skip, condition.integer != 0 ? stmt->branch.then : stmt->branch.otherwise);
        return;
    }
    int otherwise = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    INS_UNLESS(gen->ptx, condition.reg, "bra", ptx_label(otherwise));
    skip_stmt(skip, stmt->branch.then);
    INS(gen->ptx, "bra", ptx_label(end));
    ptx_place_label(gen->ptx, otherwise);
    skip_stmt(skip, stmt->branch.otherwise);
    ptx_place_label(gen->ptx, end);
}

static void skip_leave(Skip *skip, const Stmt *stmt) {
    const SkipFrame *frame = skip->frame;
    while (frame->stmt != stmt->leave.target)
        frame = frame->outer; /* turns: nothing leads out of the loop over the grid */
    INS(skip->gen->ptx, "bra",
        ptx_label(stmt->leave.kind == LEAVE_CONTINUE ? frame->continue_label : frame->leave_label));
    ptx_forget(skip->gen->ptx);
}

static void skip_block(Skip *skip, const Stmt *stmt) {
    SkipFrame frame = open_skip(skip, stmt);
    skip->frame = &frame;
    for (size_t i = 0; i < stmt->block.body.count; i++) skip_stmt(skip, stmt->block.body.items[i]);
    ptx_place_label(skip->gen->ptx, frame.leave_label);
    skip->frame = frame.outer;
}

static void skip_stmt(Skip *skip, const Stmt *stmt) {
    if (!moves(skip, stmt, true)) return;
    const Role *role = skip->gen->role->role;
    switch (stmt->kind) {
    case S_BLOCK: skip_block(skip, stmt); return;
    case S_SCALAR: gen_stmt(skip->gen, stmt); return;
    case S_FOR: skip_for(skip, stmt); return;
    case S_IF: skip_if(skip, stmt); return;
    case S_LEAVE: skip_leave(skip, stmt); return;
    case S_ACQUIRE: pipe_skip(skip->gen, role->handles.items[stmt->acquire.handle].pipe, PTX_NONE); return;
    case S_STAGE:
        pipe_skip(skip->gen, role->handles.items[stmt->stage.handle].pipe, PTX_NONE);
        skip_stmt(skip, stmt->stage.body);
        return;
    case S_GRID: /* in a loop over the grid there is no other */
    case S_TRY:
    case S_TILE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return;
    }
}

/* ---- the loop over the grid --------------------------------------------------------------------------------------------- */

int turn_iteration(Gen *gen) {
    RoleState *state = gen->role;
    if (!state->role->in_turn) return -1;
    int skip = ptx_new_label(gen->ptx);
    Reg other = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "setp.ne.u32", ptx_reg(other), ptx_reg(state->until), ptx_int(0));
    INS_IF(gen->ptx, other, "bra.uni", ptx_label(skip));
    return skip;
}

void turn_skipped(Gen *gen, const Stmt *grid, int label) {
    RoleState *state = gen->role;
    Skip skip = {.gen = gen, .needed = NEW_ARRAY(gen->arena, bool, state->role->locals.count + 1)};
    if (label < 0) return;
    do {
        skip.changed = false;
        find_needed(&skip, grid->grid.body);
    } while (skip.changed);
    SkipFrame frame = open_skip(&skip, grid);
    INS(gen->ptx, "mov.b32", ptx_reg(state->until), ptx_int(state->role->instances));
    INS(gen->ptx, "bra.uni", ptx_label(frame.continue_label));
    ptx_place_label(gen->ptx, label);
    ptx_comment(gen->ptx, "%s: another instance's iteration", state->role->name);
    skip.frame = &frame;
    skip_stmt(&skip, grid->grid.body);
    ptx_place_label(gen->ptx, frame.continue_label);
    INS(gen->ptx, "sub.s32", ptx_reg(state->until), ptx_reg(state->until), ptx_int(1));
    ptx_forget(gen->ptx);
}
