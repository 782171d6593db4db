/* The script: hand-overs of stages in one order for all roles. Each role is the projection of
 * the script on its pipes, so that the ends of each pipe agree by construction. */
#include "tests/adversary/draw.h"

/* ---- conditions ------------------------------------------------------------------------------ */

static const Expr *n(Scope *scope, int64_t value) { return number(scope->program, value); }
static const Expr *at(Scope *scope, ExprKind kind, int tensor, const Expr *sub) {
    return element(scope->program, kind, tensor, 0, sub, NULL, NULL);
}

static const Expr *any_counter(Scope *scope) {
    Program *program = scope->program;
    if (scope->loop_count > 0 && often(program, 70))
        return local_of(program, scope->loops[pick(program, (uint32_t)scope->loop_count)]);
    return any_axis(program);
}

const Expr *condition_draw(Scope *scope) {
    static const Op ops[] = {DO_EQ, DO_NE, DO_LT, DO_LE, DO_GT, DO_GE};
    Program *program = scope->program;
    Op op = ops[pick(program, COUNT_OF(ops))];
    const Expr *axis = any_axis(program);
    switch (pick(program, 9)) {
    case 8:
        return binary(program, DO_UNSIGNED_LT, symbol(program, SYM_Q), n(scope, pick(program, 4)));
    case 0: return binary(program, op, symbol(program, SYM_Q), n(scope, pick(program, 4)));
    case 1:
        return binary(program, op, at(scope, X_TENSOR, scope->data, axis),
                      n(scope, pick(program, 3)));
    case 2:
        if (scope->loop_count > 0)
            return binary(program, op, at(scope, X_TENSOR, scope->trips, any_counter(scope)),
                          n(scope, pick(program, 3)));
        return binary(program, op, axis, n(scope, pick(program, 4)));
    case 3: return binary(program, op, symbol(program, SYM_K), n(scope, pick(program, 4)));
    case 4:
        return binary(program, DO_EQ,
                      binary(program, DO_MOD, any_counter(scope), n(scope, 2 + pick(program, 2))),
                      n(scope, pick(program, 2)));
    case 5: return binary(program, op, any_counter(scope), symbol(program, SYM_P));
    default: return binary(program, op, any_counter(scope), n(scope, pick(program, 4)));
    }
}

static const Expr *bound_of_data(Scope *scope) {
    Program *program = scope->program;
    const Expr *datum = at(scope, X_TENSOR, scope->data, any_axis(program));
    return binary(program, DO_MIN, binary(program, DO_MAX, datum, n(scope, 0)),
                  n(scope, 1 + pick(program, 3)));
}

const Expr *bound_draw(Scope *scope) {
    Program *program = scope->program;
    const Expr *zero = n(scope, 0), *k = symbol(program, SYM_K), *axis = any_axis(program);
    switch (pick(program, 11)) {
    case 10:
        return binary(program, DO_UNSIGNED_MOD, symbol(program, SYM_Q),
                      n(scope, 2 + pick(program, 3)));
    case 0: return binary(program, DO_MIN, k, n(scope, 1 + pick(program, 3)));
    case 1: return binary(program, DO_SUB, k, n(scope, 1 + pick(program, 2)));
    case 2:
        return binary(program, DO_MIN, binary(program, DO_MAX, symbol(program, SYM_Q), zero),
                      n(scope, 1 + pick(program, 4)));
    case 3: return bound_of_data(scope);
    case 4:
        if (often(program, 40)) return bound_of_data(scope);
        return n(scope, 1 + pick(program, 3));
    case 5: return binary(program, DO_CEIL, k, n(scope, 2));
    case 6: return binary(program, DO_MOD, axis, n(scope, 2 + pick(program, 2)));
    default: return k;
    }
}

int range_of(Program *program, const Expr *bound) {
    if (program->range_count >= MAX_NOTES) return -1;
    program->ranges[program->range_count] = bound;
    return program->range_count++;
}

/* ---- the script ------------------------------------------------------------------------------ */

static Stmt *event_draw(Scope *scope) {
    Program *program = scope->program;
    Stmt *event = stmt_new(program, S_EVENT);
    event->pipe = (int)pick(program, (uint32_t)program->pipe_count);
    if (program->theme == THEME_STAGES) event->pipe = program->groups % program->pipe_count;
    event->group = ++program->groups;
    program->pipes[event->pipe].used = true;
    return event;
}

static bool is_counted(const Expr *bound) { return bound->kind == X_SYMBOL && bound->of == SYM_K; }

/* Gives some ranges a `where`. */
static void where_draw(Scope *scope, int range) {
    Program *program = scope->program;
    int local = local_new(program, LOCAL_LOOP);
    const Expr *counter = local_of(program, local), *where;
    program->locals[local].name = arena_printf(program->arena, "r%d", range);
    program->counters[range] = local;
    switch (pick(program, 5)) {
    case 0: where = binary(program, DO_NE, counter, n(scope, pick(program, 3))); break;
    case 1:
        where = binary(program, DO_GT, at(scope, X_TENSOR, scope->trips, counter),
                       n(scope, pick(program, 2)));
        break;
    case 2: where = binary(program, DO_GE, counter, symbol(program, SYM_Q)); break;
    case 3: where = binary(program, DO_LE, counter, any_axis(program)); break;
    default:
        where =
            binary(program, DO_EQ, binary(program, DO_MOD, counter, n(scope, 2 + pick(program, 2))),
                   n(scope, pick(program, 2)));
        break;
    }
    program->wheres[range] = where;
}

static Stmt *loop_draw(Scope *scope) {
    Program *program = scope->program;
    const Expr *bound = bound_draw(scope);
    Stmt *loop = for_new(program, local_new(program, LOCAL_LOOP), bound);
    bool of_data = expr_mentions(bound, X_TENSOR, -1);
    if (often(program, of_data ? 20 : 50)) loop->range = range_of(program, bound);
    if (loop->range >= 0 && often(program, 20)) where_draw(scope, loop->range);
    loop->group = ++program->groups;
    return loop;
}

static void open_loop(Scope *scope, const Stmt *loop) {
    scope->tripled[scope->loop_count] = is_counted(loop->hi);
    scope->loops[scope->loop_count++] = loop->local;
}

static Stmt *rotation_draw(Scope *scope) {
    Program *program = scope->program;
    Stmt *event = event_draw(scope), *loop = loop_draw(scope);
    event->kind = S_ROTATE;
    event->local = loop->local;
    event->range = loop->range;
    event->lo = loop->lo;
    event->hi = loop->hi;
    event->window = program->theme == THEME_ROTATION ? 3 : 1 + (int)pick(program, 3);
    Pipe *pipe = &program->pipes[event->pipe];
    if (pipe->depth < 2 * event->window + 2) pipe->depth = 2 * event->window + 2;
    return event;
}

static Stmt *leave_draw(Scope *scope) {
    Program *program = scope->program;
    Stmt *condition = if_new(program, condition_draw(scope)), *leave = stmt_new(program, S_LEAVE);
    condition->group = ++program->groups;
    leave->leave = often(program, 50) ? LEAVE_BREAK : LEAVE_CONTINUE;
    stmts_add(program, &condition->body, leave);
    return condition;
}

void script_draw(Scope *scope, int depth, Stmts *out) {
    Program *program = scope->program;
    bool few = program->theme != THEME_STAGES && often(program, 40);
    int count = 1 + (int)pick(program, few ? 1 : depth == 0 ? 3 : 2);
    uint32_t rotations = program->theme == THEME_ROTATION ? 45
                         : program->theme == THEME_STAGES ? 30
                                                          : 15;
    for (int i = 0; i < count; i++) {
        uint32_t dice = pick(program, 100);
        if (dice < 35 && depth < 2) {
            Stmt *loop = loop_draw(scope);
            open_loop(scope, loop);
            script_draw(scope, depth + 1, &loop->body);
            if (often(program, 20))
                stmts_insert(program, &loop->body, pick(program, (uint32_t)loop->body.count + 1),
                             leave_draw(scope));
            scope->loop_count--;
            stmts_add(program, out, loop);
        } else if (dice < 47 && depth < 2) {
            Stmt *stmt = if_new(program, condition_draw(scope));
            stmt->group = ++program->groups;
            script_draw(scope, depth + 1, &stmt->body);
            if (often(program, 40)) script_draw(scope, depth + 1, &stmt->otherwise);
            stmts_add(program, out, stmt);
        } else if (dice < 47 + rotations && depth < 2) {
            stmts_add(program, out, rotation_draw(scope));
        } else {
            stmts_add(program, out, event_draw(scope));
        }
    }
}

/* ---- projections ----------------------------------------------------------------------------- */

static bool concerns(const Program *program, int pipe, int role) {
    const Pipe *row = &program->pipes[pipe];
    bool found = row->producer == role;
    for (int c = 0; c < row->consumer_count; c++) found |= row->consumers[c] == role;
    return found;
}

static bool has_events(const Program *program, const Stmts *stmts, int role) {
    for (size_t i = 0; i < stmts->count; i++) {
        const Stmt *stmt = stmts->items[i];
        bool event = stmt->kind == S_EVENT || stmt->kind == S_ROTATE;
        if (event && concerns(program, stmt->pipe, role)) return true;
        if (has_events(program, &stmt->body, role) || has_events(program, &stmt->otherwise, role))
            return true;
    }
    return false;
}

Stmts script_project(Program *program, const Stmts *script, int role) {
    Stmts out = {0};
    for (size_t i = 0; i < script->count; i++) {
        const Stmt *stmt = script->items[i];
        bool leaves =
            stmt->kind == S_IF && stmt->body.count > 0 && stmt->body.items[0]->kind == S_LEAVE;
        bool event = stmt->kind == S_EVENT || stmt->kind == S_ROTATE;
        if (event ? !concerns(program, stmt->pipe, role)
                  : !leaves && !has_events(program, &stmt->body, role) &&
                        !has_events(program, &stmt->otherwise, role))
            continue;
        Stmt *copy = stmt_copy(program, stmt);
        if (!leaves && !event) {
            copy->body = script_project(program, &stmt->body, role);
            copy->otherwise = script_project(program, &stmt->otherwise, role);
        }
        stmts_add(program, &out, copy);
    }
    return out;
}
