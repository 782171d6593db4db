/* Draws one hand-over in one role, and stage variables that rotate. */
#include "tests/adversary/draw.h"

static const Expr *n(Scope *scope, int64_t value) { return number(scope->program, value); }

static int handle_new(Scope *scope, int pipe, bool is_let) {
    int handle = local_new(scope->program, LOCAL_HANDLE);
    scope->program->locals[handle].pipe = pipe;
    scope->program->locals[handle].is_let = is_let;
    return handle;
}

/* ---- producer -------------------------------------------------------------------------------- */

static const Expr *row_of_input(Scope *scope) {
    Program *program = scope->program;
    const Expr *axis = any_axis(program);
    const Expr *counter =
        scope->loop_count > 0 ? local_of(program, scope->loops[scope->loop_count - 1]) : axis;
    uint32_t dice = pick(program, 5);
    if (program->theme == THEME_CLUSTERS && often(program, 50)) { /* the same for all blocks */
        if (scope->loop_count == 0) return symbol(program, often(program, 50) ? SYM_Q : SYM_G);
        dice = 1;
    }
    switch (dice) {
    case 0: return axis;
    case 1: return counter;
    case 2: return binary(program, DO_ADD, axis, counter);
    case 3: return binary(program, DO_SUB, counter, n(scope, 1));
    default: return element(program, X_TENSOR, scope->data, 0, axis, NULL, NULL);
    }
}

/* The value written by an instance; its index covers the share of the instance */
static const Expr *value_of_share(Scope *scope) {
    Program *program = scope->program;
    const Expr *value = any_value(scope);
    if (scope->width == WIDE) return value;
    const Expr *i = index_of(program, 0);
    return binary(program, DO_ADD, value, element(program, X_TILE, scope->sums, 0, i, NULL, NULL));
}

/* Writes one row of a field (row: NULL if it has one), or all of it; the instance's share of
 * that */
static Stmt *fill_row(Scope *scope, int handle, int pipe, int field, const Expr *row) {
    Program *program = scope->program;
    const Field *shape = &program->pipes[pipe].fields[field];
    const Expr *i = index_of(program, 0), *lane = lane_of(scope), *value;
    const Expr *target = row != NULL ? element(program, X_FIELD, handle, field, row, lane, NULL)
                                     : element(program, X_FIELD, handle, field, lane, NULL, NULL);
    if (shape->copied)
        value = element(program, X_TENSOR, scope->rows, 0,
                        row != NULL ? binary(program, DO_ADD, row_of_input(scope), row)
                                    : row_of_input(scope),
                        i, NULL);
    else
        value = value_of_share(scope);
    return assign(program, target, '=', value);
}

static Stmt *fill_whole(Scope *scope, int handle, int pipe, int field) {
    Program *program = scope->program;
    const Field *shape = &program->pipes[pipe].fields[field];
    if (shape->rank == 1) return fill_row(scope, handle, pipe, field, NULL);
    const Expr *i = index_of(program, 0), *j = index_of(program, 1);
    const Expr *value = shape->copied
                            ? element(program, X_TENSOR, scope->rows, 0,
                                      binary(program, DO_ADD, row_of_input(scope), j), i, NULL)
                            : binary(program, DO_ADD, value_of_share(scope), j);
    return assign(program, element(program, X_FIELD, handle, field, j, lane_of(scope), NULL), '=',
                  value);
}

/* Writes both halves of a row, computed in registers */
static void fill_halves(Scope *scope, int handle, int field, Stmts *out) {
    Program *program = scope->program;
    int half = tile_new(program, LOCAL_TILE, 1, WIDE / 2, 0);
    Stmt *declare = stmt_new(program, S_DECLARE);
    declare->local = half;
    stmts_add(program, out, declare);
    const Expr *i = index_of(program, 0), *y = element(program, X_TILE, half, 0, i, NULL, NULL);
    /* a bare index would run over the whole tile */
    const Expr *sooner = binary(program, DO_ADD, n(scope, 0), i);
    const Expr *later = binary(program, DO_ADD, n(scope, WIDE / 2), i);
    stmts_add(program, out,
              assign(program, y, '=', binary(program, DO_ADD, i, n(scope, pick(program, 9)))));
    stmts_add(
        program, out,
        assign(program, element(program, X_FIELD, handle, field, sooner, NULL, NULL), '=', y));
    if (often(program, 40)) stmts_add(program, out, assign(program, y, '+', n(scope, 3)));
    stmts_add(program, out,
              assign(program, element(program, X_FIELD, handle, field, later, NULL, NULL), '=', y));
}

static void fill_rows(Scope *scope, int handle, int pipe, int field, Stmts *out) {
    Program *program = scope->program;
    const Field *shape = &program->pipes[pipe].fields[field];
    if (often(program, 35)) {
        int loop = local_new(program, LOCAL_LOOP);
        Stmt *stmt = for_new(program, loop, n(scope, shape->extents[0]));
        stmts_add(program, &stmt->body,
                  fill_row(scope, handle, pipe, field, local_of(program, loop)));
        stmts_add(program, out, stmt);
        return;
    }
    int first = (int)pick(program, 2);
    for (int r = 0; r < shape->extents[0]; r++)
        stmts_add(program, out,
                  fill_row(scope, handle, pipe, field, n(scope, (r + first) % shape->extents[0])));
}

/* In one statement; the tiles of an array one by one */
static void fill_all(Scope *scope, int handle, int pipe, int field, Stmts *out) {
    if (scope->program->pipes[pipe].fields[field].tiles)
        fill_rows(scope, handle, pipe, field, out);
    else
        stmts_add(scope->program, out, fill_whole(scope, handle, pipe, field));
}

static void fill_field(Scope *scope, int handle, int pipe, int field, Stmts *out);

/* Writes under a condition and otherwise: in two arms, in two statements, or everything and then
 * a part again */
static void fill_arms(Scope *scope, int handle, int pipe, int field, Stmts *out) {
    Program *program = scope->program;
    const Field *shape = &program->pipes[pipe].fields[field];
    Stmt *first = if_new(program, condition_draw(scope));
    uint32_t dice = pick(program, 4);
    bool compares = first->condition->op >= DO_EQ && first->condition->op <= DO_GE;
    if (dice == 0 && !shape->copied) {
        fill_all(scope, handle, pipe, field, out);
        fill_all(scope, handle, pipe, field, &first->body);
    } else if (dice == 1 && compares) {
        fill_field(scope, handle, pipe, field, &first->body);
        Stmt *second = if_new(program, binary(program, DO_EQ, n(scope, 0), n(scope, 0)));
        Expr *not = expr_new(program, X_BINARY, 0);
        static const Op opposite[OPS] = {[DO_EQ] = DO_NE, [DO_NE] = DO_EQ, [DO_LT] = DO_GE,
                                         [DO_LE] = DO_GT, [DO_GT] = DO_LE, [DO_GE] = DO_LT};
        *not = *first->condition;
        not ->op = opposite[not ->op];
        second->condition = not ;
        stmts_add(program, out, first);
        fill_field(scope, handle, pipe, field, &second->body);
        stmts_add(program, out, second);
        return;
    } else {
        fill_field(scope, handle, pipe, field, &first->body);
        fill_field(scope, handle, pipe, field, &first->otherwise);
    }
    stmts_add(program, out, first);
}

static void fill_field(Scope *scope, int handle, int pipe, int field, Stmts *out) {
    Program *program = scope->program;
    const Field *shape = &program->pipes[pipe].fields[field];
    if (scope->loop_count < 5 && often(program, 18)) {
        fill_arms(scope, handle, pipe, field, out);
    } else if (shape->tiles || (shape->rank == 2 && often(program, 60))) {
        fill_rows(scope, handle, pipe, field, out);
    } else if (shape->rank == 1 && !shape->copied && scope->width == WIDE && often(program, 20)) {
        fill_halves(scope, handle, field, out);
    } else {
        fill_all(scope, handle, pipe, field, out);
    }
}

static void touch(Scope *scope, const Stmt *event, int handle, bool produce, Stmts *out) {
    Program *program = scope->program;
    if (!produce) {
        for (uint32_t uses = 1 + pick(program, 3); uses > 0; uses--)
            use_draw(scope, handle, event->pipe, out);
        return;
    }
    for (int f = 0; f < program->pipes[event->pipe].field_count; f++)
        fill_field(scope, handle, event->pipe, f, out);
}

/* ---- one hand-over --------------------------------------------------------------------------- */

static Stmt *acquire_new(Scope *scope, int pipe, bool produce, int handle, bool fresh) {
    Stmt *stmt = stmt_new(scope->program, S_ACQUIRE);
    stmt->pipe = pipe;
    stmt->produce = produce;
    stmt->local = handle;
    stmt->fresh = fresh;
    return stmt;
}

static int hint_draw(Scope *scope, int pipe, bool produce, Stmts *out) {
    Program *program = scope->program;
    if (program->roles[scope->role].in_turn ||
        !often(program, program->theme == THEME_STAGES ? 30 : 12))
        return -1;
    Stmt *hint = stmt_new(program, S_HINT);
    hint->local = local_new(program, LOCAL_HINT);
    program->locals[hint->local].is_let = true;
    hint->fresh = true;
    hint->pipe = pipe;
    hint->produce = produce;
    stmts_add(program, out, hint);
    return hint->local;
}

/* Explicit arrivals: by each of the first lanes of each warp */
static void release_explicitly(Scope *scope, int pipe, int handle, Stmts *out) {
    Program *program = scope->program;
    const Role *role = &program->roles[scope->role];
    int warps = role->warpgroups ? 4 : role->warps, instances = role->in_turn ? 1 : role->instances,
        lanes = program->pipes[pipe].arrivals / warps / instances;
    Stmt *arrive = stmt_of_handle(scope->program, S_ARRIVE, handle, -1);
    arrive->condition =
        lanes == 1 && often(program, 60)
            ? binary(program, DO_EQ, expr_new(program, X_LANE, 0), n(scope, pick(program, 4)))
            : binary(program, DO_LT, expr_new(program, X_LANE, 0), n(scope, lanes));
    Stmt *first = stmt_new(program, S_UNSAFE),
         *second = often(program, 60) ? first : stmt_new(program, S_UNSAFE);
    stmts_add(program, &first->body, arrive);
    stmts_add(program, &second->body, stmt_of_handle(scope->program, S_DROP, handle, -1));
    stmts_add(program, out, first);
    if (second != first) stmts_add(program, out, second);
}

static void hand_over(Scope *scope, const Stmt *event, bool produce, Stmts *out) {
    Program *program = scope->program;
    const Pipe *pipe = &program->pipes[event->pipe];
    bool explicit_arrivals = !produce && pipe->arrivals > 0;
    int handle = handle_new(scope, event->pipe, true),
        hint = hint_draw(scope, event->pipe, produce, out);
    if (explicit_arrivals || often(program, program->theme == THEME_STAGES ? 60 : 35)) {
        Stmt *acquire = acquire_new(scope, event->pipe, produce, handle, true);
        acquire->hint = hint;
        stmts_add(program, out, acquire);
        touch(scope, event, handle, produce, out);
        if (explicit_arrivals)
            release_explicitly(scope, event->pipe, handle, out);
        else
            stmts_add(program, out, stmt_of_handle(scope->program, S_RELEASE, handle, -1));
        return;
    }
    Stmt *block = acquire_new(scope, event->pipe, produce, handle, false);
    block->kind = S_STAGE;
    block->hint = hint;
    if (scope->alone && !produce && pipe->depth > 2 && often(program, 12)) block->lag = 1;
    touch(scope, event, handle, produce, &block->body);
    stmts_add(program, out, block);
}

/* True if the role consumes the stages that it produces */
static bool exchanges(const Scope *scope, int pipe) {
    return program_exchanges(scope->program, pipe) &&
           scope->program->pipes[pipe].producer == scope->role;
}

void event_expand(Scope *scope, const Stmt *event, Stmts *out) {
    bool produces = scope->program->pipes[event->pipe].producer == scope->role;
    hand_over(scope, event, produces, out);
    if (exchanges(scope, event->pipe)) hand_over(scope, event, false, out);
}

/* ---- rotation -------------------------------------------------------------------------------- */

typedef struct Rotation {
    Scope *scope;
    const Stmt *event;
    int handles[4], count;    /* 0 is the oldest */
    int place[MAX_FIELDS][3]; /* by field and row: position in the rotation that writes it */
    bool produce;
} Rotation;

/* Writes the parts that belong to this position into the stage of a handle. */
static void fill_place(Rotation *r, int place, int handle, Stmts *out) {
    Program *program = r->scope->program;
    const Pipe *pipe = &program->pipes[r->event->pipe];
    for (int f = 0; f < pipe->field_count; f++)
        for (int row = 0; row < (pipe->fields[f].rank == 2 ? pipe->fields[f].extents[0] : 1);
             row++) {
            if (r->place[f][row] != place) continue;
            const Expr *sub = pipe->fields[f].rank == 2 ? number(program, row) : NULL;
            stmts_add(program, out, fill_row(r->scope, handle, r->event->pipe, f, sub));
        }
}

static void open_loop(Scope *scope, const Stmt *event) {
    scope->tripled[scope->loop_count] = event->hi->kind == X_SYMBOL && event->hi->of == SYM_K;
    scope->loops[scope->loop_count++] = event->local;
}

static Stmt *loop_of(Rotation *r) {
    Stmt *loop = for_new(r->scope->program, r->event->local, r->event->hi);
    loop->range = r->event->range;
    return loop;
}

/* Acquires a stage and moves each one to the next position */
static void shift(Rotation *r, Stmts *out) {
    Program *program = r->scope->program;
    stmts_add(program, out, stmt_of_handle(r->scope->program, S_RELEASE, r->handles[0], -1));
    for (int d = 0; d + 1 < r->count; d++)
        stmts_add(program, out,
                  stmt_of_handle(r->scope->program, S_MOVE, r->handles[d], r->handles[d + 1]));
}

/* Each stage is written in parts while it moves from position to position, and released at the
 * last one. Computed parts may be written again before and after the loop. */
static void rotate_producer(Rotation *r, Stmts *out) {
    Program *program = r->scope->program;
    int last = r->count - 1;
    bool copied = program->pipes[r->event->pipe].fields[0].copied,
         both = often(program, program->theme == THEME_ROTATION ? 80 : 40),
         early = !copied && (both || often(program, 20)),
         again = !copied && (both || often(program, 20));
    for (int f = 0; f < MAX_FIELDS; f++)
        for (int row = 0; row < 3; row++) r->place[f][row] = (int)pick(program, (uint32_t)r->count);
    for (int d = 0; d < r->count; d++) {
        stmts_add(program, out, acquire_new(r->scope, r->event->pipe, true, r->handles[d], true));
        for (int place = early ? 0 : d + 1; place <= last; place++)
            fill_place(r, place, r->handles[d], out);
    }
    Stmt *loop = loop_of(r);
    Scope inner = *r->scope;
    open_loop(&inner, r->event);
    Rotation within = *r;
    within.scope = &inner;
    for (int d = 0; d < r->count; d++) fill_place(&within, d, r->handles[d], &loop->body);
    shift(r, &loop->body);
    stmts_add(program, &loop->body,
              acquire_new(r->scope, r->event->pipe, true, r->handles[last], false));
    stmts_add(program, out, loop);
    for (int d = 0; d < r->count; d++) {
        for (int place = 0; place <= (again ? last : d); place++)
            fill_place(r, place, r->handles[d], out);
        stmts_add(program, out, stmt_of_handle(r->scope->program, S_RELEASE, r->handles[d], -1));
    }
}

static void rotate_consumer(Rotation *r, Stmts *out) {
    Program *program = r->scope->program;
    int last = r->count - 1, pipe = r->event->pipe;
    for (int d = 0; d < r->count; d++)
        stmts_add(program, out, acquire_new(r->scope, pipe, false, r->handles[d], true));
    Stmt *loop = loop_of(r);
    Scope inner = *r->scope;
    open_loop(&inner, r->event);
    int next = handle_new(r->scope, pipe, true);
    stmts_add(program, &loop->body, acquire_new(r->scope, pipe, false, next, true));
    use_draw(&inner, next, pipe, &loop->body);
    use_draw(&inner, r->handles[pick(program, (uint32_t)r->count)], pipe, &loop->body);
    shift(r, &loop->body);
    stmts_add(program, &loop->body,
              stmt_of_handle(r->scope->program, S_MOVE, r->handles[last], next));
    stmts_add(program, out, loop);
    for (int d = 0; d < r->count; d++) {
        if (often(program, 60)) use_draw(r->scope, r->handles[d], pipe, out);
        stmts_add(program, out, stmt_of_handle(r->scope->program, S_RELEASE, r->handles[d], -1));
    }
}

/* The same stages one by one: some before the loop, one per iteration */
static void rotate_plainly(Rotation *r, Stmts *out) {
    for (int d = 0; d < r->count; d++) event_expand(r->scope, r->event, out);
    Stmt *loop = loop_of(r);
    Scope inner = *r->scope;
    open_loop(&inner, r->event);
    event_expand(&inner, r->event, &loop->body);
    stmts_add(r->scope->program, out, loop);
}

/* A role is `window` stages ahead of its own use. */
static void rotate_exchange(Rotation *r, Stmts *out) {
    for (int d = 0; d < r->count; d++) hand_over(r->scope, r->event, true, out);
    Stmt *loop = loop_of(r);
    Scope inner = *r->scope;
    open_loop(&inner, r->event);
    bool first = often(r->scope->program, 60);
    if (first) hand_over(&inner, r->event, true, &loop->body);
    hand_over(&inner, r->event, false, &loop->body);
    if (!first) hand_over(&inner, r->event, true, &loop->body);
    stmts_add(r->scope->program, out, loop);
    for (int d = 0; d < r->count; d++) hand_over(r->scope, r->event, false, out);
}

void rotation_expand(Scope *scope, const Stmt *event, Stmts *out) {
    Program *program = scope->program;
    const Pipe *pipe = &program->pipes[event->pipe];
    Rotation r = {.scope = scope,
                  .event = event,
                  .count = event->window,
                  .produce = pipe->producer == scope->role};
    if (exchanges(scope, event->pipe)) {
        rotate_exchange(&r, out);
        return;
    }
    bool plain = often(program, program->theme == THEME_ROTATION && r.produce ? 5 : 30);
    if (plain || (pipe->arrivals > 0 && !r.produce)) {
        rotate_plainly(&r, out);
        return;
    }
    for (int d = 0; d < r.count; d++) r.handles[d] = handle_new(scope, event->pipe, false);
    if (r.produce)
        rotate_producer(&r, out);
    else
        rotate_consumer(&r, out);
}
