/* Uses of a stage that a role reads: sums, variables in and around loops, conditions that join,
 * inner loops with early exits, tiles written in parts, computed subscripts. */
#include "tests/adversary/draw.h"

static const Expr *n(Scope *scope, int64_t value) { return number(scope->program, value); }

const Expr *lane_of(Scope *scope) {
    Program *program = scope->program;
    const Expr *i = index_of(program, 0);
    if (scope->width == WIDE) return i;
    return binary(program, DO_ADD,
                  binary(program, DO_MUL, expr_new(program, X_RANK, 0), n(scope, scope->width)), i);
}

static const Expr *counter(Scope *scope) {
    Program *program = scope->program;
    uint32_t which = pick(program, (uint32_t)scope->loop_count + 1);
    return which == 0 ? any_axis(program) : local_of(program, scope->loops[which - 1]);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool requires_scalar(const Program *program, Symbol which) {
    int bounds = 0;
    for (int r = 0; r < program->require_count; r++) bounds += program->requires[r].symbol == which;
    return bounds >= 2;
}

static const Expr *data_element(Scope *scope) {
    Program *program = scope->program;
    return element(program, X_TENSOR, scope->data, 0, any_axis(program), NULL, NULL);
}

/* A number in 0 .. extent - 1, by arithmetic that stays in 32 bits */
const Expr *safe_sub(Scope *scope, int extent) {
    Program *program = scope->program;
    const Expr *top = n(scope, extent - 1),
               *q = symbol(program, often(program, 70) ? SYM_Q : SYM_P);
    if (extent < 8)
        return often(program, 50) ? n(scope, pick(program, (uint32_t)extent))
                                  : binary(program, DO_MOD, counter(scope), n(scope, extent));
    switch (pick(program, 12)) {
    case 9:
        return binary(program, DO_UNSIGNED_MOD, often(program, 50) ? q : data_element(scope),
                      n(scope, extent));
    case 10:
        return binary(program, DO_MIN,
                      binary(program, DO_MAX, binary(program, DO_ABS, q, n(scope, 0)), n(scope, 0)),
                      top);
    case 11:
        return binary(program, DO_UNSIGNED_DIV, often(program, 50) ? q : data_element(scope),
                      n(scope, 134217728 * (WIDE / 16)));
    case 0: return n(scope, pick(program, (uint32_t)extent));
    case 1: return binary(program, DO_MOD, counter(scope), n(scope, extent - pick(program, 5)));
    case 2: {
        const Expr *first = binary(program, DO_MOD, counter(scope), n(scope, extent / 4));
        const Expr *second = binary(program, DO_MOD, counter(scope), n(scope, extent / 4));
        return binary(program, DO_ADD, binary(program, DO_MUL, first, n(scope, 2)), second);
    }
    case 3: return binary(program, DO_MIN, binary(program, DO_MAX, q, n(scope, 0)), top);
    case 4:
        return binary(program, DO_ADD, binary(program, DO_MOD, q, n(scope, extent / 2)),
                      n(scope, extent / 2));
    case 5:
        return binary(program, DO_MIN, binary(program, DO_MAX, data_element(scope), n(scope, 0)),
                      top);
    case 6:
        return binary(program, DO_SUB, top, binary(program, DO_MOD, counter(scope), n(scope, 5)));
    case 7:
        if (requires_scalar(program, SYM_Q)) {
            int64_t factor = 2 + pick(program, 40), more = pick(program, 9);
            const Expr *scaled = binary(program, DO_MUL, symbol(program, SYM_Q), n(scope, factor));
            return binary(program, DO_MOD, binary(program, DO_ADD, scaled, n(scope, more)),
                          n(scope, extent));
        }
        return binary(program, DO_MOD, counter(scope), n(scope, extent));
    default: {
        const Expr *clamped =
            binary(program, DO_MIN, binary(program, DO_MAX, q, n(scope, 0)), n(scope, 10));
        return binary(program, DO_MUL, clamped, n(scope, (extent - 1) / 10));
    }
    }
}

const Expr *small_index(Scope *scope) {
    Program *program = scope->program;
    const Expr *i = index_of(program, 0);
    switch (pick(program, 5)) {
    case 0: return binary(program, DO_SUB, n(scope, WIDE - 1), i);
    case 1: return binary(program, DO_DIV, i, n(scope, 2 + pick(program, 3)));
    case 2: return binary(program, DO_MOD, i, n(scope, 2 + pick(program, 9)));
    case 3: {
        const Expr *scaled = binary(program, DO_MUL, i, n(scope, 3 + 2 * pick(program, 5)));
        return binary(program, DO_MOD, scaled, n(scope, WIDE));
    }
    default: return i;
    }
}

/* The value for a computed element of a stage: from i, counters, and values that were read */
const Expr *any_value(Scope *scope) {
    Program *program = scope->program;
    const Expr *i = index_of(program, 0);
    const Expr *value =
        binary(program, DO_ADD, binary(program, DO_MUL, counter(scope), n(scope, 7)), i);
    if (scope->sums >= 0 && often(program, 70)) {
        const Expr *sums = element(program, X_TILE, scope->sums, 0, i, NULL, NULL);
        return binary(program, DO_ADD, binary(program, DO_MUL, sums, n(scope, 3)), value);
    }
    if (often(program, 20)) return choose(program, condition_draw(scope), value, n(scope, 5));
    return value;
}

/* The number of a tile of an array: a constant, from a counter, a parameter or data */
static const Expr *tile_number(Scope *scope, int count) {
    Program *program = scope->program;
    const Expr *given = often(program, 50) ? symbol(program, SYM_Q) : data_element(scope);
    if (often(program, 60)) return safe_sub(scope, count);
    if (often(program, 50)) return binary(program, DO_UNSIGNED_MOD, given, n(scope, count));
    return binary(program, DO_MIN, binary(program, DO_MAX, given, n(scope, 0)),
                  n(scope, count - 1));
}

/* ---- reading a stage ------------------------------------------------------------------------- */

const Expr *stage_row(Scope *scope, int handle, int pipe, const Expr *sub) {
    Program *program = scope->program;
    int field = (int)pick(program, (uint32_t)program->pipes[pipe].field_count);
    const Field *shape = &program->pipes[pipe].fields[field];
    if (shape->rank == 1) return element(program, X_FIELD, handle, field, sub, NULL, NULL);
    const Expr *row =
        shape->tiles ? tile_number(scope, shape->extents[0]) : safe_sub(scope, shape->extents[0]);
    return element(program, X_FIELD, handle, field, row, sub, NULL);
}

Stmt *add_to_sums(Scope *scope, const Expr *value) {
    Program *program = scope->program;
    const Expr *target = element(program, X_TILE, scope->sums, 0, index_of(program, 0), NULL, NULL);
    if (often(program, 50)) return assign(program, target, '+', value);
    const Expr *old = binary(program, DO_MUL, target, n(scope, 31));
    return assign(program, target, '=', binary(program, DO_ADD, old, value));
}

static void use_sum(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    const Expr *lane = lane_of(scope);
    if (scope->width < WIDE && program_exchanges(program, pipe) && often(program, 60)) {
        const Expr *other = binary(program, DO_SUB, n(scope, 1), expr_new(program, X_RANK, 0));
        lane = binary(program, DO_ADD, binary(program, DO_MUL, other, n(scope, scope->width)),
                      index_of(program, 0)); /* of the other instance */
    }
    stmts_add(program, out, add_to_sums(scope, stage_row(scope, handle, pipe, lane)));
}

static void use_element(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    const Expr *sub =
        often(program, 60) || scope->width < WIDE ? safe_sub(scope, WIDE) : small_index(scope);
    stmts_add(program, out, add_to_sums(scope, stage_row(scope, handle, pipe, sub)));
}

Stmt *declare_scalar(Scope *scope, const Expr *value, int *local) {
    Program *program = scope->program;
    Stmt *stmt = stmt_new(program, S_DECLARE);
    stmt->local = *local = local_new(program, LOCAL_SCALAR);
    stmt->value = value;
    return stmt;
}

Stmt *set_scalar(Scope *scope, int local, char op, const Expr *value) {
    Stmt *stmt = stmt_new(scope->program, S_SET);
    stmt->local = local;
    stmt->op = op;
    stmt->value = value;
    return stmt;
}

/* A variable that both arms set, or one arm if it has a value already */
static void use_joined(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    int local;
    bool begun = often(program, 40);
    stmts_add(program, out,
              declare_scalar(scope, begun ? n(scope, pick(program, 9)) : NULL, &local));
    Stmt *arms = if_new(program, condition_draw(scope));
    stmts_add(program, &arms->body,
              set_scalar(scope, local, '=', stage_row(scope, handle, pipe, safe_sub(scope, WIDE))));
    if (!begun || often(program, 40))
        stmts_add(program, &arms->otherwise,
                  set_scalar(scope, local, '=', n(scope, pick(program, 9))));
    stmts_add(program, out, arms);
    stmts_add(program, out, add_to_sums(scope, local_of(program, local)));
}

/* A variable for a whole iteration of the grid, set at its head */
static void use_outer(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    int local;
    stmts_insert(program, scope->before, 0,
                 declare_scalar(scope, n(scope, pick(program, 5)), &local));
    stmts_add(program, out, add_to_sums(scope, local_of(program, local)));
    stmts_add(program, out,
              set_scalar(scope, local, often(program, 60) ? '+' : '=',
                         stage_row(scope, handle, pipe, safe_sub(scope, WIDE))));
}

/* A loop without hand-overs, perhaps with an early exit, with a variable */
static void use_loop(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    Stmt *loop = for_new(program, local_new(program, LOCAL_LOOP),
                         often(program, 70) ? n(scope, 1 + pick(program, 4)) : bound_draw(scope));
    Scope inner = *scope;
    if (inner.loop_count >= SCOPE_LOOPS) return;
    inner.tripled[inner.loop_count] = false;
    inner.loops[inner.loop_count++] = loop->local;
    inner.alone = false;
    bool variable = often(program, 50);
    int local = -1;
    if (variable) {
        bool begun = often(program, 50);
        stmts_add(program, &loop->body,
                  declare_scalar(&inner, begun ? counter(&inner) : NULL, &local));
        if (!begun)
            stmts_add(program, &loop->body, set_scalar(&inner, local, '=', counter(&inner)));
    }
    if (often(program, 50)) {
        Stmt *condition = if_new(program, condition_draw(&inner)),
             *leave = stmt_new(program, S_LEAVE);
        leave->leave = often(program, 50) ? LEAVE_BREAK : LEAVE_CONTINUE;
        stmts_add(program, &condition->body, leave);
        stmts_add(program, &loop->body, condition);
    }
    if (variable && often(program, 50))
        stmts_add(program, &loop->body, set_scalar(&inner, local, '+', n(scope, 2)));
    const Expr *value = stage_row(&inner, handle, pipe, lane_of(&inner));
    if (variable) value = binary(program, DO_ADD, value, local_of(program, local));
    stmts_add(program, &loop->body, add_to_sums(&inner, value));
    stmts_add(program, out, loop);
}

/* All tiles of an array, in a loop or one after the other */
static void use_tiles(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    int field = (int)pick(program, (uint32_t)program->pipes[pipe].field_count);
    const Field *shape = &program->pipes[pipe].fields[field];
    if (!shape->tiles) {
        use_sum(scope, handle, pipe, out);
        return;
    }
    Stmt *loop = for_new(program, local_new(program, LOCAL_LOOP), n(scope, shape->extents[0]));
    bool loops = often(program, 60);
    for (int e = 0; e < (loops ? 1 : shape->extents[0]); e++) {
        const Expr *number = loops ? local_of(program, loop->local) : n(scope, e);
        if (loops && often(program, 30)) /* from the last to the first */
            number = binary(program, DO_SUB, n(scope, shape->extents[0] - 1), number);
        stmts_add(program, loops ? &loop->body : out,
                  add_to_sums(scope, element(program, X_FIELD, handle, field, number,
                                             lane_of(scope), NULL)));
    }
    if (loops) stmts_add(program, out, loop);
}

/* A tile of two rows, written row by row: in registers, or in shared memory, where the reading
 * thread may differ */
static void use_tile(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    bool shared = often(program, 50);
    const Expr *i = index_of(program, 0);
    int tile = tile_new(program, shared ? LOCAL_SHARED : LOCAL_TILE, 2, 2, scope->width);
    Stmt *declare = stmt_new(program, S_DECLARE);
    declare->local = tile;
    bool begun = !shared && often(program, 30);
    if (begun) declare->value = n(scope, 4);
    stmts_add(program, often(program, 25) ? scope->before : out, declare);
    const Expr *first = element(program, X_TILE, tile, 0, n(scope, 0), i, NULL);
    const Expr *second = element(program, X_TILE, tile, 0, n(scope, 1), i, NULL);
    stmts_add(program, out,
              assign(program, first, '=', stage_row(scope, handle, pipe, lane_of(scope))));
    if (often(program, 40)) {
        Stmt *arms = if_new(program, condition_draw(scope));
        stmts_add(program, &arms->body, assign(program, second, '=', n(scope, pick(program, 9))));
        if (!begun)
            stmts_add(program, &arms->otherwise,
                      assign(program, second, '=', stage_row(scope, handle, pipe, lane_of(scope))));
        stmts_add(program, out, arms);
    } else {
        stmts_add(program, out,
                  assign(program, second, '=', binary(program, DO_ADD, first, n(scope, 1))));
    }
    if (shared && scope->width == WIDE) {
        const Expr *other =
            element(program, X_TILE, tile, 0, safe_sub(scope, 2), small_index(scope), NULL);
        stmts_add(program, out, add_to_sums(scope, other));
        if (often(program, 30)) { /* one element a second time */
            const Expr *one =
                element(program, X_TILE, tile, 0, n(scope, 1), safe_sub(scope, WIDE), NULL);
            stmts_add(program, out, assign(program, one, '=', n(scope, 9)));
        }
    }
    if (often(program, 30)) {
        const Expr *column = element(program, X_TILE, tile, 0, index_of(program, 2), i, NULL);
        stmts_add(program, out, add_to_sums(scope, reduction_over(scope, column)));
    }
    stmts_add(program, out, add_to_sums(scope, binary(program, DO_SUB, first, second)));
}

/* A variable that is set under a condition, and used under the same one; the condition may
 * change only after that. */
static void use_guarded(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    int local, asked;
    stmts_add(program, out, declare_scalar(scope, counter(scope), &asked));
    stmts_add(program, out, declare_scalar(scope, NULL, &local));
    const Expr *condition = often(program, 50)
                                ? condition_draw(scope)
                                : binary(program, often(program, 50) ? DO_LT : DO_NE,
                                         local_of(program, asked), n(scope, pick(program, 3)));
    Stmt *set = if_new(program, condition), *used = if_new(program, condition);
    stmts_add(program, &set->body,
              set_scalar(scope, local, '=', stage_row(scope, handle, pipe, safe_sub(scope, WIDE))));
    stmts_add(program, &used->body, add_to_sums(scope, local_of(program, local)));
    stmts_add(program, out, set);
    if (often(program, 50)) use_sum(scope, handle, pipe, out);
    stmts_add(program, out, used);
    stmts_add(program, out, set_scalar(scope, asked, '+', n(scope, 1)));
    stmts_add(program, out, add_to_sums(scope, local_of(program, asked)));
}

static void use_arms(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    Stmt *arms = if_new(program, condition_draw(scope));
    use_sum(scope, handle, pipe, &arms->body);
    if (often(program, 60)) use_element(scope, handle, pipe, &arms->otherwise);
    stmts_add(program, out, arms);
}

void use_draw(Scope *scope, int handle, int pipe, Stmts *out) {
    Program *program = scope->program;
    if (program->local_count > MAX_LOCALS - 30) return;
    uint32_t dice = pick(program, 15);
    if (program->theme == THEME_VARIABLES && often(program, 60)) dice = 2 + pick(program, 4);
    if (program->theme == THEME_VARIABLES && often(program, 20)) dice = 12;
    if (program->theme == THEME_CARRIED && often(program, 40)) dice = 3;
    if (program->theme == THEME_WRAPS && often(program, 50)) dice = 0;
    if (program->theme == THEME_RACES && often(program, 40)) dice = 7;
    if (program->theme == THEME_REDUCTIONS && often(program, 60)) dice = 13;
    if (program->theme == THEME_ARRAYS && often(program, 50)) dice = 14;
    switch (dice) {
    case 0:
    case 1: use_element(scope, handle, pipe, out); break;
    case 2: use_joined(scope, handle, pipe, out); break;
    case 3: use_outer(scope, handle, pipe, out); break;
    case 4: use_loop(scope, handle, pipe, out); break;
    case 5: use_tile(scope, handle, pipe, out); break;
    case 6: use_arms(scope, handle, pipe, out); break;
    case 14: use_tiles(scope, handle, pipe, out); break;
    case 12: use_guarded(scope, handle, pipe, out); break;
    case 13: use_reduction(scope, handle, pipe, out); break;
    case 7:
        if (scope->writes && scope->width == WIDE) {
            output_draw(scope, stage_row(scope, handle, pipe, lane_of(scope)), out);
            break;
        } /* falls through */
    default: use_sum(scope, handle, pipe, out); break;
    }
}

/* ---- outputs --------------------------------------------------------------------------------- */

static int output_new(Scope *scope, int rank) {
    Program *program = scope->program;
    Mode mode = often(program, 15) ? TENSOR_INOUT : TENSOR_OUT;
    const char *name = arena_printf(program->arena, "Y%d", program->tensor_count);
    return tensor_new(program, name, mode, FILL_ROWS, rank);
}

static void add_extent(Program *program, int tensor, int axis, int which, int extent) {
    program->tensors[tensor].extents[axis].symbol = which;
    program->tensors[tensor].extents[axis].number = extent;
}

/* The output has an element for each tile along the axis */
static void add_axis_of_tiles(Program *program, int tensor, int axis) {
    const Expr *extent = program->axes[axis].extent;
    int most = extent->kind == X_BINARY ? (int)extent->b->number : (int)extent->number;
    if (extent->kind == X_SYMBOL)
        add_extent(program, tensor, axis, extent->of, 0);
    else
        add_extent(program, tensor, axis, -1, most);
}

/* Position of a tile along the first axis of an output: its number, or a permutation of the
 * numbers */
static const Expr *place_of_tile(Scope *scope) {
    Program *program = scope->program;
    const Expr *axis = local_of(program, program->axes[0].local), *tiles = program->axes[0].extent;
    if (often(program, 10))
        return binary(program, DO_SUB, binary(program, DO_SUB, tiles, n(scope, 1)), axis);
    bool five = tiles->kind == X_NUMBER && program->axes[0].cluster == 1; /* not padded */
    if (five && often(program, 50))
        return binary(program, DO_MOD,
                      binary(program, DO_MUL, axis, n(scope, 2 + pick(program, 2))), tiles);
    return axis;
}

/* The number of the tile in the grid; NULL: tiles beyond an edge would have the number of
 * another, or it depends on extents that are not known */
static const Expr *number_of_tile(Program *program) {
    const Expr *at = local_of(program, program->axes[0].local);
    for (int a = 1; a < program->axis_count; a++) {
        if (program->axes[a].extent->kind != X_NUMBER || program->axes[a].cluster > 1) return NULL;
        at = binary(program, DO_ADD, binary(program, DO_MUL, at, program->axes[a].extent),
                    local_of(program, program->axes[a].local));
    }
    return at;
}

/* An output with an element for each tile, for each iteration of the loop (-1: none), and for
 * each lane */
static const Expr *element_of_tiles(Scope *scope, int loop) {
    Program *program = scope->program;
    int axes = program->axis_count, tensor = output_new(scope, axes + (loop >= 0) + 1);
    Expr *target = expr_new(program, X_TENSOR, tensor);
    for (int a = 0; a < axes; a++) {
        add_axis_of_tiles(program, tensor, a);
        target->subs[target->rank++] =
            a == 0 ? place_of_tile(scope) : local_of(program, program->axes[a].local);
    }
    if (loop >= 0) {
        add_extent(program, tensor, target->rank, SYM_K, 0);
        target->subs[target->rank++] = local_of(program, loop);
    }
    add_extent(program, tensor, target->rank, -1, WIDE);
    target->subs[target->rank++] = lane_of(scope);
    return target;
}

/* An output of one axis */
static const Expr *element_of_row(Scope *scope, const Expr *tile) {
    Program *program = scope->program;
    int tensor = output_new(scope, 1);
    add_extent(program, tensor, 0, SYM_N, 0);
    const Expr *base = binary(program, DO_MUL, tile, n(scope, WIDE));
    return element(program, X_TENSOR, tensor, 0, binary(program, DO_ADD, base, lane_of(scope)),
                   NULL, NULL);
}

void output_draw(Scope *scope, const Expr *value, Stmts *out) {
    Program *program = scope->program;
    if (program->tensor_count >= MAX_TENSORS) return;
    const Expr *tile = number_of_tile(program), *target;
    int inner = scope->loop_count - 1;
    if (inner == 0 && scope->tripled[inner] && often(program, 60))
        target = element_of_tiles(scope, scope->loops[inner]);
    else if (tile != NULL && often(program, 40))
        target = element_of_row(scope, tile);
    else
        target = element_of_tiles(scope, -1);
    bool adds = program->tensors[target->of].mode == TENSOR_INOUT;
    stmts_add(program, out, assign(program, target, adds ? '+' : '=', value));
}
