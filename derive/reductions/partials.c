/* Sums over a loop: `l[i] = l[i] * a[i] + sum[c] s[i, c]` needs no exchange in each iteration, if
 * nothing else in the loop names `l`. Each thread adds the sum of its own elements to a part of its
 * own, and the parts are combined once, after the loop. They take the registers in which these
 * threads would hold the whole value.
 *
 * Of the threads that exchange, the first one begins with the value that `l` has before the loop,
 * the others with the neutral value. A factor is the same in all of them, and is never infinite:
 * an infinite one would make NaN of a part that is 0. The functions `max` and `min` drop NaN
 * instead of keeping it, so of floats only sums are kept in parts. */
#include "derive/tiles.h"

#include <math.h>

#define FACTOR_DEPTH 4 /* most definitions between a factor and what bounds it */

typedef VEC(int) Ints;

typedef struct Partials {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    const FlowCode *code;
    Ints *locals, *tiles; /* by variable: the rows that read it, in order; NULL: not found yet */
} Partials;

/* A variable of the role, and its elements in one statement */
typedef struct Variable {
    bool local; /* a scalar; otherwise a register tile */
    int object;
    const Access *element; /* tiles */
} Variable;

/* ---- accesses -------------------------------------------------------------------------------- */

static bool reads_variable(const Expr *x, const Variable *variable) {
    if (variable->local) return x->kind == X_LOCAL && x->index == variable->object;
    return x->kind == X_READ && x->read->space == SPACE_REGISTER &&
           x->read->object == variable->object;
}

typedef struct Count {
    Arena *arena;
    const Variable *variable;
    int reads;
} Count;

static void count_node(Expr *x, void *data) {
    Count *count = data;
    count->reads += reads_variable(x, count->variable);
}

static void count_root(Expr *x, void *data) {
    expr_visit(((Count *)data)->arena, x, count_node, data);
}

static bool expr_names(const Partials *p, Expr *x, const Variable *variable) {
    Count count = {p->arena, variable, 0};
    count_root(x, &count);
    return count.reads > 0;
}

static bool writes_variable(const Partials *p, const Row *row, const Variable *variable) {
    bool scope = row->kind == ROW_OPEN || row->kind == ROW_CLOSE;
    if (scope && row->object == (variable->local ? OBJECT_LOCAL : OBJECT_TILE))
        return row->index == variable->object;
    if (variable->local) return row_sets(p->code, row, variable->object);
    return row->kind == ROW_TILE && row->tile->target.space == SPACE_REGISTER &&
           row->tile->target.object == variable->object;
}

typedef struct Reading {
    const Partials *p;
    int at;
} Reading;

static void add_reader(Expr *x, void *data) {
    const Reading *reading = data;
    const Partials *p = reading->p;
    bool tile = x->kind == X_READ && x->read->space == SPACE_REGISTER;
    if ((!tile && x->kind != X_LOCAL) || (!tile && x->index < 0)) return;
    Ints *rows = tile ? &p->tiles[x->read->object] : &p->locals[x->index];
    if (rows->count == 0 || rows->items[rows->count - 1] != reading->at)
        vec_push(p->arena, rows, reading->at);
}

static void add_readers(Expr *x, void *data) {
    expr_visit(((Reading *)data)->p->arena, x, add_reader, data);
}

static void find_readers(Partials *p) {
    p->locals = NEW_ARRAY(p->arena, Ints, p->role->locals.count + 1);
    p->tiles = NEW_ARRAY(p->arena, Ints, p->role->tiles.count + 1);
    for (size_t at = 0; at < p->code->rows.count; at++)
        row_exprs(p->code, code_row(p->code, (int)at), add_readers, &(Reading){p, (int)at});
}

static bool reads_at(const Partials *p, const Variable *variable, int at) {
    const Ints *rows = &(variable->local ? p->locals : p->tiles)[variable->object];
    size_t low = 0, high = rows->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rows->items[middle] < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low < rows->count && rows->items[low] == at;
}

static bool names_variable(const Partials *p, int at, const Variable *variable) {
    arena_count(p->arena, 1);
    return reads_at(p, variable, at) || writes_variable(p, code_row(p->code, at), variable);
}

/* True if only row `own` of the loop names the variable */
static bool named_only(const Partials *p, const Variable *variable, const Region *loop, int own) {
    for (int at = loop->begin; at <= loop->end; at++)
        if (at != own && names_variable(p, at, variable)) return false;
    return true;
}

/* ---- elements -------------------------------------------------------------------------------- */

/* True if each subscript is an index of its own, which then has the extent of the axis */
static bool is_whole(const Access *access) {
    uint32_t seen = 0;
    for (int d = 0; d < access->rank; d++) {
        const Expr *sub = access->subs[d];
        if (sub->kind != X_INDEX || seen >> sub->index & 1) return false;
        seen |= (uint32_t)1 << sub->index;
    }
    return true;
}

/* True if the expression is the element of the variable that the statement writes */
static bool is_own(const Expr *x, const Variable *variable) {
    if (!reads_variable(x, variable)) return false;
    return variable->local || access_same(x->read, variable->element);
}

/* A scalar, or elements of registers one by one: such statements have no class yet */
static bool is_assignment(const Row *row) {
    if (row->kind == ROW_SET) return true;
    return row->kind == ROW_TILE && row->tile->class == TILE_UNCLASSIFIED && !row->tile->where &&
           row->tile->target.space == SPACE_REGISTER && is_whole(&row->tile->target);
}

/* ---- factors --------------------------------------------------------------------------------- */

/* The row that gave a variable its value at row `at`: before it, in the same region, with nothing
 * between them that writes the variable or `kept` (may be NULL). NULL: not found */
static const Row *definition(const Partials *p, const Variable *variable, const Variable *kept,
                             int at) {
    int region = code_row(p->code, at)->region;
    for (int k = at - 1; k > code_region(p->code, region)->begin; k--) {
        const Row *row = code_row(p->code, k);
        arena_count(p->arena, 1);
        if (row->kind == ROW_ELSE && row->region == region) return NULL;
        if (writes_variable(p, row, variable)) {
            return row->region == region && is_assignment(row) ? row : NULL;
        }
        if (kept && writes_variable(p, row, kept)) return NULL;
    }
    return NULL;
}

/* True if the expression is a variable of type f32: a scalar, or an element of a register tile */
static bool variable_of(const Partials *p, const Expr *x, Variable *out) {
    if (x->kind == X_LOCAL) {
        *out = (Variable){.local = true, .object = x->index};
        return p->role->locals.items[x->index].type == E_F32;
    }
    if (x->kind != X_READ || x->read->space != SPACE_REGISTER || x->read->type != E_F32)
        return false;
    *out = (Variable){.object = x->read->object, .element = x->read};
    return is_whole(x->read);
}

/* The value that an assignment gives to the variable, whose element becomes that of the row; NULL:
 * it has another operator */
static const Expr *assigned(const Row *row, Variable *variable) {
    if (row->kind == ROW_SET) return row->value;
    if (row->tile->op != ASSIGN_SET) return NULL;
    variable->element = &row->tile->target;
    return row->tile->value;
}

/* The elements of both variables are at the same position */
static bool in_step(const Variable *a, const Variable *b) {
    if (a->local || b->local) return a->local && b->local;
    if (a->element->rank != b->element->rank) return false;
    for (int d = 0; d < a->element->rank; d++)
        if (a->element->subs[d]->index != b->element->subs[d]->index) return false;
    return true;
}

/* True if `x - y` is at most 0, or NaN: y was defined as a maximum of x and something else */
static bool is_decrease(const Partials *p, const Expr *x, const Expr *y, int at) {
    Variable low, high, other;
    if (!variable_of(p, x, &low) || !variable_of(p, y, &high)) return false;
    if (!in_step(&low, &high)) return false;
    const Row *row = definition(p, &high, &low, at);
    const Expr *value = row ? assigned(row, &high) : NULL;
    if (value == NULL || value->kind != X_CALL || value->call.which != IN_max) return false;
    for (int i = 0; i < 2; i++)
        if (variable_of(p, value->call.args[i], &other) && other.local == low.local &&
            other.object == low.object && in_step(&other, &high))
            return true;
    return false;
}

/* True if the value is never infinite at row `at` */
static bool is_finite(const Partials *p, const Expr *x, int at, int depth) {
    Variable variable;
    if (x->type != E_F32) return true;
    if (x->kind == X_CONST) return isfinite((float)x->constant.number);
    if (x->kind == X_CALL && (x->call.which == IN_exp || x->call.which == IN_exp2)) {
        const Expr *of = x->call.args[0];
        return of->kind == X_BINARY && of->binary.op == OP_SUB &&
               is_decrease(p, of->binary.left, of->binary.right, at);
    }
    if (depth == 0 || !variable_of(p, x, &variable)) return false;
    const Row *row = definition(p, &variable, NULL, at);
    const Expr *value = row ? assigned(row, &variable) : NULL;
    return value && is_finite(p, value, (int)(row - p->code->rows.items), depth - 1);
}

/* ---- updates --------------------------------------------------------------------------------- */

/* `l[i] = l[i] * a[i] + sum[c] s[i, c];` */
typedef struct Update {
    int at; /* its row */
    Variable variable;
    Variable result; /* of the reduction */
    ReduceOp op;
} Update;

/* The variable, perhaps times factors */
static bool is_scaled(const Partials *p, const Update *update, Expr *x) {
    while (x->kind == X_BINARY && x->binary.op == OP_MUL && update->op == REDUCE_SUM) {
        bool left = expr_names(p, x->binary.left, &update->variable);
        Expr *factor = left ? x->binary.right : x->binary.left;
        if (expr_names(p, factor, &update->variable) || expr_names(p, factor, &update->result) ||
            !is_finite(p, factor, update->at, FACTOR_DEPTH))
            return false;
        x = left ? x->binary.left : x->binary.right;
    }
    return is_own(x, &update->variable);
}

/* The result of the reduction at the element that the statement writes */
static bool is_result(const Update *update, const Expr *x) {
    if (!reads_variable(x, &update->result)) return false;
    if (update->variable.local) return x->indexes == 0;
    return is_whole(x->read) &&
           in_step(&update->variable, &(Variable){.object = x->read->object, .element = x->read});
}

static bool updates(const Partials *p, const Update *update, const Row *row) {
    static const Intrinsic functions[] = {[REDUCE_MAX] = IN_max, [REDUCE_MIN] = IN_min};
    Expr *value = row->kind == ROW_SET ? row->value : row->tile->value, *left, *right;
    if (row->kind == ROW_TILE && row->tile->op == ASSIGN_ADD)
        return update->op == REDUCE_SUM && is_result(update, value);
    if (row->kind == ROW_TILE && row->tile->op != ASSIGN_SET) return false;
    if (update->op == REDUCE_SUM) {
        if (value->kind != X_BINARY || value->binary.op != OP_ADD) return false;
        left = value->binary.left, right = value->binary.right;
    } else {
        if (value->kind != X_CALL || value->call.which != functions[update->op]) return false;
        left = value->call.args[0], right = value->call.args[1];
    }
    return (is_result(update, right) && is_scaled(p, update, left)) ||
           (is_result(update, left) && is_scaled(p, update, right));
}

/* The only row that reads the result of the reduction at `at`, in the same region; -1: there are
 * several. Nothing reads a result before its reduction, or after its scope. */
static int reader_of(const Partials *p, const Variable *result, int at) {
    int found = -1, region = code_row(p->code, at)->region;
    for (int k = at + 1; k < (int)p->code->rows.count; k++) {
        const Row *row = code_row(p->code, k);
        if (!names_variable(p, k, result)) continue;
        if (row->kind == ROW_CLOSE) return found;
        if (found >= 0 || row->region != region) return -1;
        found = k;
    }
    return -1;
}

static bool update_of(const Partials *p, int at, Update *out) {
    const Tile *tile = code_row(p->code, at)->tile;
    *out = (Update){.result.object = tile->target.object, .op = tile->value->reduce.op};
    if (element_rows[tile->value->type].kind == ELEMENT_FLOAT && out->op != REDUCE_SUM)
        return false;
    out->at = reader_of(p, &out->result, at);
    if (out->at < 0) return false;
    const Row *row = code_row(p->code, out->at);
    if (!is_assignment(row)) return false;
    if (row->kind == ROW_SET)
        out->variable = (Variable){.local = true, .object = row->local};
    else
        out->variable =
            (Variable){.object = row->tile->target.object, .element = &row->tile->target};
    return updates(p, out, row);
}

/* ---- where parts are combined ---------------------------------------------------------------- */

static bool same_registers(const Partials *p, const Update *update, const Tile *reduction) {
    const Role *role = p->role;
    Element type = reduction->target.type;
    const RegisterLayout *held = &plan_tile(p->prog, role, reduction->target.object)->held;
    if (update->variable.local)
        return role->locals.items[update->variable.object].type == type &&
               layout_registers(held) == 1;
    const RoleTile *tile = &role->tiles.items[update->variable.object];
    return tile->type == type &&
           layout_same(&plan_tile(p->prog, role, update->variable.object)->held, held);
}

/* True if all iterations end at the end of the loop: nothing leaves it further */
static bool is_closed(const Partials *p, const Region *loop, int number) {
    for (int at = loop->begin; at <= loop->end; at++) {
        const Row *row = code_row(p->code, at);
        if (row->kind == ROW_LEAVE && !code_inside(p->code, row->target, number)) return false;
    }
    return true;
}

/* The outermost loop in which only the update names the variable; 0: none */
static int loop_of(const Partials *p, const Update *update) {
    int found = 0, region = code_row(p->code, update->at)->region;
    for (int r = code_region(p->code, region)->loop; r > 0;) {
        const Region *loop = code_region(p->code, r);
        if (!named_only(p, &update->variable, loop, update->at) || !is_closed(p, loop, r)) break;
        found = r;
        r = loop->parent < 0 ? -1 : code_region(p->code, loop->parent)->loop;
    }
    return found;
}

/* True if all threads that hold an element hold the same value. Tiles do: values that differ
 * between lanes are refused in their statements (P0424). */
static bool is_uniform(const Partials *p, const Variable *variable) {
    return !variable->local || p->role->locals.items[variable->object].uniformity != UNIFORM_LANE;
}

/* True if matrix instructions write it: their results may be in flight */
static bool is_accumulator(const Partials *p, const Variable *variable) {
    for (size_t at = 0; at < p->code->rows.count && !variable->local; at++) {
        const Row *row = code_row(p->code, (int)at);
        if (plan_contracts(row) && names_variable(p, (int)at, variable)) return true;
    }
    return false;
}

void partials_find(Tiles *tiles, Role *role) {
    Arena *scratch = arena_scratch(tiles->arena);
    Partials p = {.arena = scratch, .prog = tiles->prog, .role = role, .code = role->code};
    for (size_t at = 0; at < p.code->rows.count; at++) {
        const Row *row = code_row(p.code, (int)at);
        Update update;
        if (row->kind != ROW_TILE || row->tile->class != TILE_REDUCTION) continue;
        Exchange *exchange = &row->tile->exchange;
        if (exchange->lane_count * exchange->warp_count == 1) continue;
        if (!p.locals) find_readers(&p);
        if (!update_of(&p, (int)at, &update) || !same_registers(&p, &update, row->tile)) continue;
        if (!is_uniform(&p, &update.variable) || is_accumulator(&p, &update.variable)) continue;
        exchange->loop = loop_of(&p, &update);
        exchange->local = update.variable.local;
        exchange->variable = update.variable.object;
    }
    arena_free(scratch);
}
