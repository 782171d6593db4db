/* Wounds of held stages: release, move, leave, and acquire in a ring or in turns. */
#include "tests/adversary/wounds.h"

static bool is_linear(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return (stmt->kind == S_ACQUIRE && !stmt->fresh) || stmt->kind == S_RELEASE ||
           stmt->kind == S_MOVE || stmt->kind == S_DROP || stmt->kind == S_ARRIVE;
}
static bool is_release(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_RELEASE;
}
static bool is_move(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_MOVE;
}
static bool is_rotated(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program;
    return site->loops > 0 && (stmt->kind == S_MOVE || (stmt->kind == S_ACQUIRE && !stmt->fresh));
}
static bool is_block(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_STAGE;
}
static bool is_left(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program;
    bool filled = stmt->kind == S_STAGE && stmt->produce && stmt->body.count > 0;
    return filled || (stmt->kind == S_ACQUIRE && site->in_grid);
}
static bool is_in_loop(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)stmt;
    return site->loops > 0;
}
static bool is_hint(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_HINT;
}

/* ---- releases and moves ---------------------------------------------------------------------- */

bool wound_linear(Program *program) {
    Site site;
    if (!site_draw(program, is_linear, &site)) return false;
    program->textual = true;
    uint32_t dice = pick(program, 4);
    Stmt *stmt = site.list->items[site.at];
    if (dice == 0) {
        stmts_remove(site.list, site.at);
    } else if (dice == 1) {
        stmts_insert(program, site.list, site.at, stmt_copy(program, stmt));
    } else if (dice == 2 && site.at > 0) { /* too early */
        stmts_remove(site.list, site.at);
        stmts_insert(program, site.list, pick(program, (uint32_t)site.at), stmt);
    } else {
        Stmt *guard = if_new(program, condition_any(program));
        stmts_add(program, &guard->body, stmt);
        site.list->items[site.at] = guard;
    }
    return true;
}

bool uses_stage(const Stmt *stmt, int handle) {
    return stmt->kind == S_TILE && (expr_mentions(stmt->target, X_FIELD, handle) ||
                                    expr_mentions(stmt->value, X_FIELD, handle));
}

bool wound_moved(Program *program) {
    Site site;
    if (!site_draw(program, is_move, &site)) return false;
    int handle = site.list->items[site.at]->other;
    program->textual = true;
    for (size_t i = site.at; i-- > 0;)
        if (uses_stage(site.list->items[i], handle)) {
            Stmt *use = stmts_remove(site.list, i);
            stmts_insert(program, site.list, site.at, use);
            return true;
        }
    Stmt *release = stmt_new(program, S_RELEASE);
    release->local = handle;
    stmts_insert(program, site.list, site.at + 1, release);
    return true;
}

bool wound_overwritten(Program *program) {
    Site site;
    if (!site_draw(program, is_release, &site)) return false;
    int handle = site.list->items[site.at]->local;
    for (size_t i = site.at + 1; i < site.list->count; i++) {
        const Stmt *stmt = site.list->items[i];
        bool again = stmt->kind == S_MOVE || (stmt->kind == S_ACQUIRE && !stmt->fresh);
        if (!again || stmt->local != handle) continue;
        stmts_remove(site.list, site.at);
        program->textual = true;
        return true;
    }
    return false;
}

bool wound_rotation(Program *program) {
    Site site;
    if (!site_draw(program, is_rotated, &site)) return false;
    stmts_remove(site.list, site.at);
    program->textual = true;
    return true;
}

bool wound_explicit_release(Program *program) {
    Site site;
    if (!site_draw(program, is_block, &site)) return false;
    Stmt *block = site.list->items[site.at], *release = stmt_new(program, S_RELEASE);
    release->local = block->local;
    stmts_add(program, &block->body, release);
    program->textual = true;
    return true;
}

/* No wound: both arms release, or one condition and then its opposite. */
bool wound_arms(Program *program) {
    Site site;
    if (!site_draw(program, is_release, &site)) return false;
    Stmt *release = site.list->items[site.at];
    const Expr *condition = condition_any(program);
    Stmt *arms = if_new(program, condition);
    stmts_add(program, &arms->body, release);
    site.list->items[site.at] = arms;
    if (often(program, 50)) {
        stmts_add(program, &arms->otherwise, stmt_copy(program, release));
        return true;
    }
    Op opposite = condition->op == DO_LT ? DO_GE : DO_LT;
    Stmt *rest = if_new(program, binary(program, opposite, condition->a, condition->b));
    stmts_add(program, &rest->body, stmt_copy(program, release));
    stmts_insert(program, site.list, site.at + 1, rest);
    return true;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static Stmt *leave_if(Program *program, const Expr *condition, Leave how) {
    Stmt *guard = if_new(program, condition), *leave = stmt_new(program, S_LEAVE);
    leave->leave = how;
    stmts_add(program, &guard->body, leave);
    return guard;
}

bool wound_leave(Program *program) {
    Site site;
    if (!site_draw(program, is_in_loop, &site)) return false;
    Leave how = often(program, 60)   ? LEAVE_BREAK
                : often(program, 90) ? LEAVE_CONTINUE
                                     : LEAVE_RETURN;
    stmts_insert(program, site.list, site.at + pick(program, 2),
                 leave_if(program, condition_any(program), how));
    return true;
}

/* Leaves while a stage is being filled, or before its explicit release. */
bool wound_unfilled(Program *program) {
    Site site;
    if (!site_draw(program, is_left, &site)) return false;
    Stmt *stage = site.list->items[site.at];
    Stmt *leave = leave_if(program, condition_any(program),
                           often(program, 80) ? LEAVE_CONTINUE : LEAVE_BREAK);
    if (stage->kind == S_STAGE) {
        uint32_t at = pick(program, (uint32_t)stage->body.count + 1);
        stmts_insert(program, &stage->body, at, leave);
        return true;
    }
    stmts_insert(program, site.list, site.at + 1, leave);
    program->textual = true;
    return true;
}

bool wound_unreached(Program *program) {
    Site site;
    if (!site_draw(program, is_in_loop, &site)) return false;
    Stmt *leave = stmt_new(program, S_LEAVE);
    leave->leave = often(program, 50) ? LEAVE_BREAK : LEAVE_CONTINUE;
    stmts_insert(program, site.list, site.at, leave);
    program->textual = true;
    return true;
}

/* ---- rings, ends and hints ------------------------------------------------------------------- */

/* A hand-over under a condition, in one role only */
bool wound_stage(Program *program) {
    Site site;
    if (!site_draw(program, is_block, &site)) return false;
    Stmt *guard = if_new(program, condition_any(program));
    stmts_add(program, &guard->body, site.list->items[site.at]);
    site.list->items[site.at] = guard;
    return true;
}

bool wound_ring(Program *program) {
    Pipe *pipe = &program->pipes[pick(program, (uint32_t)program->pipe_count)];
    for (int i = 0; i < program->pipe_count && often(program, 70); i++)
        if (program->pipes[i].depth > pipe->depth) pipe = &program->pipes[i];
    if (pipe->depth == 1) return false;
    int most = pipe->depth - 1;
    pipe->depth = 1 + (int)pick(program, (uint32_t)(most > 3 && often(program, 60) ? 3 : most));
    return true;
}

static bool is_of_pipe(const Program *program, const Expr *expr, int pipe) {
    if (expr == NULL) return false;
    if (expr->kind == X_FIELD && program->locals[expr->of].pipe == pipe) return true;
    bool found = is_of_pipe(program, expr->a, pipe) || is_of_pipe(program, expr->b, pipe) ||
                 is_of_pipe(program, expr->c, pipe);
    for (int s = 0; s < expr->rank; s++) found |= is_of_pipe(program, expr->subs[s], pipe);
    return found;
}

/* Removes all statements that acquire, use or release stages of the pipe */
static void drop_pipe(const Program *program, Stmts *list, int pipe) {
    size_t kept = 0;
    for (size_t i = 0; i < list->count; i++) {
        Stmt *stmt = list->items[i];
        bool acquires = stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE || stmt->kind == S_HINT;
        bool holds = stmt->kind == S_RELEASE || stmt->kind == S_DROP || stmt->kind == S_ARRIVE ||
                     stmt->kind == S_MOVE;
        if ((acquires && stmt->pipe == pipe) ||
            (holds && program->locals[stmt->local].pipe == pipe) ||
            is_of_pipe(program, stmt->value, pipe) || is_of_pipe(program, stmt->target, pipe))
            continue;
        drop_pipe(program, &stmt->body, pipe);
        drop_pipe(program, &stmt->otherwise, pipe);
        list->items[kept++] = stmt;
    }
    list->count = kept;
}

bool wound_end(Program *program) {
    int which = (int)pick(program, (uint32_t)program->pipe_count);
    const Pipe *pipe = &program->pipes[which];
    int consumer = (int)pick(program, (uint32_t)pipe->consumer_count);
    int role = often(program, 50) ? pipe->producer : pipe->consumers[consumer];
    drop_pipe(program, &program->roles[role].body, which);
    program->textual = true;
    return true;
}

/* Moves the request for a hint to an earlier place, or makes one request for several acquires */
bool wound_hint(Program *program) {
    Site site;
    if (!site_draw(program, is_hint, &site)) return false;
    Stmt *stmt = stmts_remove(site.list, site.at);
    Stmts *body = &program->roles[site.role].body.items[0]->body;
    stmts_insert(program, body, 0, stmt);
    return true;
}
