/* Programs over rows of 32 integers: loaders, computing roles, an output for each. */
#include "tests/adversary/draw.h"

static void draw_inputs(Scope *scope) {
    Program *program = scope->program;
    scope->rows = tensor_new(program, "X", TENSOR_IN, FILL_ROWS, 2);
    program->tensors[scope->rows].extents[0].symbol = SYM_R;
    program->tensors[scope->rows].extents[1].number = WIDE;
    scope->data = tensor_new(program, "D", TENSOR_IN, FILL_DATA, 1);
    program->tensors[scope->data].extents[0].symbol = SYM_G;
    scope->trips = tensor_new(program, "E", TENSOR_IN, FILL_DATA, 1);
    program->tensors[scope->trips].extents[0].symbol = SYM_K;
}

static void draw_requires(Program *program) {
    if (!often(program, 35)) return;
    program->requires[program->require_count++] = (Require){SYM_Q, DO_GE, 0};
    program->requires[program->require_count++] = (Require){SYM_Q, DO_LE, 1000};
}

static void draw_fields(Program *program, Pipe *pipe) {
    pipe->field_count = often(program, 30) ? 2 : 1;
    int copies = program->theme == THEME_ROTATION ? 20 : program->theme == THEME_CLUSTERS ? 85 : 60;
    bool loads = pipe->producer == 0 && often(program, copies),
         arrays = program->theme == THEME_ARRAYS;
    for (int f = 0; f < pipe->field_count; f++) {
        Field *field = &pipe->fields[f];
        *field = (Field){.copied = loads, .rank = often(program, arrays ? 90 : 40) ? 2 : 1};
        field->extents[0] = field->rank == 2 ? 2 + (int)pick(program, 2) : WIDE;
        field->tiles = field->rank == 2 && often(program, arrays ? 90 : 20);
        field->extents[1] = WIDE;
    }
}

static void add_pipe(Program *program, int producer, int consumer, int other) {
    Pipe *pipe = &program->pipes[program->pipe_count++];
    *pipe = (Pipe){
        .depth = 1 + (int)pick(program, 4), .producer = producer, .consumers = {consumer, other}};
    pipe->consumer_count = other >= 0 ? 2 : 1;
    draw_fields(program, pipe);
}

bool program_exchanges(const Program *program, int pipe) {
    const Pipe *row = &program->pipes[pipe];
    for (int c = 0; c < row->consumer_count; c++)
        if (row->consumers[c] == row->producer) return true;
    return false;
}

/* Role 1 consumes its own stages, and sometimes role 2 too. */
static void draw_exchange(Program *program) {
    bool other = program->role_count == 3 && often(program, 30);
    add_pipe(program, 1, 1, other ? 2 : -1);
}

static void draw_pipes(Program *program) {
    program->role_count = often(program, 45) ? 3 : 2;
    bool three = program->role_count == 3, fork = three && often(program, 30);
    add_pipe(program, 0, 1, fork ? 2 : -1);
    if (three && !fork) add_pipe(program, often(program, 60), 2, -1);
    if (often(program, program->theme == THEME_STAGES ? 80 : 30))
        add_pipe(program, 0, 1 + (int)pick(program, (uint32_t)program->role_count - 1), -1);
    if (often(program, program->theme == THEME_EXCHANGE ? 100 : 5)) draw_exchange(program);
    for (int r = 0; r < program->role_count; r++) {
        Role *role = &program->roles[r];
        bool produces = false, exchanges = false;
        for (int i = 0; i < program->pipe_count; i++) {
            if (program->pipes[i].producer != r) continue;
            exchanges |= program_exchanges(program, i);
            produces |= !program_exchanges(program, i);
        }
        role->warps = 1 + often(program, 15);
        role->instances = 1;
        bool turns = r == 1 && program->theme == THEME_TURNS;
        if (r == 0 || (!turns && !often(program, exchanges ? 50 : 20))) continue;
        role->warpgroups = true;
        role->warps = 4;
        role->instances = turns || often(program, 75) ? 2 : 1;
        role->in_turn = role->instances == 2 && !exchanges && often(program, turns ? 60 : 50);
        if (produces && !role->in_turn) role->instances = 1;
    }
}

/* One consumer may arrive explicitly. */
static void draw_arrivals(Program *program) {
    for (int i = 0; i < program->pipe_count; i++) {
        Pipe *pipe = &program->pipes[i];
        const Role *role = &program->roles[pipe->consumers[0]];
        bool likely = program->theme == THEME_TURNS || program->theme == THEME_STAGES;
        if (pipe->consumer_count > 1 || !often(program, likely ? 40 : 12)) continue;
        int lanes = often(program, 80) ? 1 : 32;
        pipe->arrivals =
            lanes * (role->warpgroups ? 4 : role->warps) * (role->in_turn ? 1 : role->instances);
    }
}

/* ---- one role -------------------------------------------------------------------------------- */

static size_t count_events(const Stmts *script) {
    size_t count = 0;
    for (size_t i = 0; i < script->count; i++) {
        const Stmt *stmt = script->items[i];
        count += stmt->kind == S_EVENT || stmt->kind == S_ROTATE;
        count += count_events(&stmt->body) + count_events(&stmt->otherwise);
    }
    return count;
}

static void expand(Scope *scope, const Stmts *script, Stmts *out) {
    Program *program = scope->program;
    for (size_t i = 0; i < script->count; i++) {
        const Stmt *stmt = script->items[i];
        size_t first = out->count;
        if (stmt->kind == S_EVENT || stmt->kind == S_ROTATE) {
            if (stmt->kind == S_EVENT)
                event_expand(scope, stmt, out);
            else
                rotation_expand(scope, stmt, out);
            for (size_t k = first; k < out->count; k++) out->items[k]->group = stmt->group;
        } else if (stmt->kind == S_LEAVE) {
            stmts_add(program, out, stmt_copy(program, stmt));
        } else {
            Stmt *copy = stmt_copy(program, stmt);
            copy->body = copy->otherwise = (Stmts){0};
            Scope inner = *scope;
            inner.alone = false;
            if (stmt->kind == S_FOR) {
                inner.tripled[inner.loop_count] =
                    stmt->hi->kind == X_SYMBOL && stmt->hi->of == SYM_K;
                inner.loops[inner.loop_count++] = stmt->local;
                inner.alone = count_events(&stmt->body) == 1;
            }
            expand(&inner, &stmt->body, &copy->body);
            expand(&inner, &stmt->otherwise, &copy->otherwise);
            stmts_add(program, out, copy);
        }
    }
}

static const Stmt *only_part(const Stmt *stmt) {
    return stmt->kind == S_UNSAFE && stmt->body.count > 0 ? stmt->body.items[0] : stmt;
}

/* Cooperating instances put a part of the body into a turn: from after an acquire to its release
 * or to the statement that contains the release. */
static void draw_turn(Program *program, Stmts *body) {
    size_t first = 0, last = 0;
    while (first < body->count && body->items[first]->kind != S_ACQUIRE) first++;
    if (first == body->count) return;
    int handle = body->items[first++]->local;
    for (last = first; last < body->count; last++) {
        const Stmt *part = only_part(body->items[last]);
        if (part->kind == S_ACQUIRE || part->kind == S_FOR || part->kind == S_STAGE) return;
        if (part->local == handle && (part->kind == S_RELEASE || part->kind == S_DROP)) break;
    }
    Stmt *turn = stmt_new(program, S_TURN);
    for (size_t i = first; i < last; i++)
        stmts_add(program, &turn->body, stmts_remove(body, first));
    if (turn->body.count > 0) stmts_insert(program, body, first, turn);
}

static void draw_role(Scope *outer, const Stmts *script, int number_of_role) {
    Program *program = outer->program;
    Role *role = &program->roles[number_of_role];
    Stmts projected = script_project(program, script, number_of_role), body = {0}, before = {0};
    if (count_events(&projected) == 0) return;
    Scope scope = *outer;
    scope.role = number_of_role;
    scope.width = role->instances > 1 && !role->in_turn ? WIDE / role->instances : WIDE;
    scope.before = &before;
    scope.sums = -1;
    if (number_of_role > 0) {
        scope.sums = tile_new(program, LOCAL_TILE, 1, scope.width, 0);
        scope.writes = true;
        Stmt *declare = stmt_new(program, S_DECLARE);
        declare->local = scope.sums;
        declare->value = number(program, 0);
        stmts_add(program, &before, declare);
    }
    expand(&scope, &projected, &body);
    if (scope.sums >= 0)
        output_draw(&scope,
                    element(program, X_TILE, scope.sums, 0, index_of(program, 0), NULL, NULL),
                    &body);
    Stmt *grid = stmt_new(program, S_GRID);
    grid->local = program->axes[0].local;
    for (size_t i = 0; i < before.count; i++) stmts_add(program, &grid->body, before.items[i]);
    Stmts *into = &grid->body;
    if (role->in_turn) {
        Stmt *turn = stmt_new(program, S_TURN);
        size_t count = body.count;
        bool writes = count > 0 && body.items[count - 1]->kind == S_TILE &&
                      body.items[count - 1]->target->kind == X_TENSOR;
        Stmt *last = writes ? stmts_remove(&body, count - 1) : NULL;
        turn->body = body;
        stmts_add(program, into, turn);
        if (last != NULL) stmts_add(program, into, last);
    } else {
        if (role->instances > 1 && often(program, 60)) draw_turn(program, &body);
        for (size_t i = 0; i < body.count; i++) stmts_add(program, into, body.items[i]);
    }
    stmts_add(program, &role->body, grid);
}

/* Blocks that run together along an axis */
static int cluster_draw(Program *program, int likely) {
    if (!often(program, likely) || cluster_size(program) > 2) return 1;
    return often(program, 60) ? 2 : 2 + (int)pick(program, 3);
}

/* The number of tiles is known, unknown, or has a known limit. */
static void draw_axes(Program *program) {
    bool clusters = program->theme == THEME_CLUSTERS, grids = program->theme == THEME_GRIDS;
    const Expr *first = often(program, 10) ? number(program, 5) : symbol(program, SYM_G);
    int more = !often(program, grids ? 100 : clusters ? 40 : 4) ? 0 : often(program, 75) ? 1 : 2;
    int likely = clusters ? 100 : grids ? 50 : 4;
    axis_add(program, first, cluster_draw(program, likely));
    for (; more > 0; more--) {
        const Expr *extent = number(program, 2 + pick(program, 2));
        if (often(program, 20)) extent = symbol(program, SYM_K);
        if (often(program, 30))
            extent = binary(program, DO_MIN, symbol(program, SYM_K), number(program, 3));
        axis_add(program, extent, cluster_draw(program, grids || clusters ? 50 : 4));
    }
}

void draw_vectors(Program *program) {
    Scope scope = {.program = program, .sums = -1, .width = WIDE};
    program->persistent = often(program, 80);
    draw_axes(program);
    draw_inputs(&scope);
    draw_requires(program);
    draw_pipes(program);
    draw_arrivals(program);
    Stmts script = {0};
    script_draw(&scope, 0, &script);
    for (int p = 0; p < program->pipe_count; p++) { /* each pipe has a use */
        if (program->pipes[p].used) continue;
        Stmt *event = stmt_new(program, S_EVENT);
        event->pipe = p;
        program->pipes[p].used = true;
        stmts_add(program, &script, event);
    }
    for (int r = 0; r < program->role_count; r++) draw_role(&scope, &script, r);
}
