/* Bounds the amount of generated code: unrolled loops repeat their bodies, and threads their
 * statements for each of their elements. The copies count as work of the check, and all code counts
 * as its memory, so that no build takes more than a check allows. */
#include "check/passes.h"
#include "prog/eval.h"

#define STEPS_AN_OPERATION 40  /* steps of the meter per node of an expression in codegen */
#define BYTES_AN_OPERATION 250 /* memory of codegen for it */
#define LOOPED_OVER        64  /* most elements that a thread computes without a loop */

typedef struct Copies {
    Arena *arena;
    Diags *diags;
    const FlowCode *code;
    int64_t *values; /* by local: values of the variables of enclosing unrolled loops */
    bool *refused; /* by local: a bound of its loop has no value in some copy, which was reported */
    uint64_t *a_copy;    /* by row: operations in its code; 0: not computed yet */
    uint64_t operations; /* in the code of all roles so far */
} Copies;

/* Evaluates lets, as codegen does. */
static bool value_in_copy(const void *data, const Expr *expr, int64_t *out) {
    const Copies *c = data;
    if (expr->kind != X_LOCAL) return false;
    const Local *local = &c->code->role->locals.items[expr->index];
    if (local->kind == LOCAL_LET && local->value != NULL) {
        arena_count(c->arena, 1); /* `let`s refer to others */
        return eval_expr(&(EvalEnv){.leaf = value_in_copy, .data = c, .arena = c->arena},
                         local->value, out);
    }
    *out = c->values[expr->index];
    return local->kind == LOCAL_LOOP;
}

static void count_node(Expr *expr, void *count) {
    (void)expr;
    ++*(uint64_t *)count;
}

/* Matrix instructions of a warp multiply at least 16 x 8 by 8 elements. */
static uint64_t products_of(const IndexSpace *space) {
    double products = 1;
    for (int i = 0; i < space->count; i++) products *= (double)space->items[i].extent;
    return 1 + (uint64_t)(products / (16 * 8 * 8));
}

/* Most repetitions of the statement's work in the text of a thread */
static uint64_t repeated(const Copies *c, const Tile *tile) {
    if (tile_has_boxes(tile)) return (uint64_t)plan_boxes(c->code->prog->plan, &tile->box);
    switch (class_rows[tile->class].mover) {
    case MOVER_MATRIX: return products_of(&tile->space);
    case MOVER_THREADS:
        if (tile->spread) return (uint64_t)layout_registers(tile->spread);
        return LOOPED_OVER;
    case MOVER_LANES: return LOOPED_OVER;
    case MOVER_ENGINE:
    case MOVER_NOBODY: break;
    }
    return 1;
}

static uint64_t operations_of(Copies *c, int at) {
    const Row *row = code_row(c->code, at);
    if (c->a_copy[at] > 0) return c->a_copy[at];
    uint64_t nodes = 1, times = 1;
    if (row->value) expr_visit(c->arena, row->value, count_node, &nodes);
    if (row->tile) {
        expr_visit(c->arena, row->tile->value, count_node, &nodes);
        times = repeated(c, row->tile);
    }
    return c->a_copy[at] = nodes * times;
}

static void add_row(Copies *c, int at, bool copied) {
    const Meter *meter = arena_meter(c->arena);
    uint64_t count = operations_of(c, at);
    if (copied) arena_count(c->arena, count * STEPS_AN_OPERATION);
    c->operations += count;
    uint64_t room = meter->bytes_most - (meter->bytes < meter->bytes_most ? meter->bytes : 0);
    if (c->operations > room / BYTES_AN_OPERATION) arena_end(c->arena);
}

static void count_rows(Copies *c, int begin, int end);

/* The value of a bound of constants and of variables of enclosing loops; false: it divides by
 * zero. */
static bool bound_in_copy(Copies *c, const Region *loop, const Expr *bound, int64_t *value) {
    const EvalEnv env = {.leaf = value_in_copy, .data = c, .arena = c->arena};
    if (eval_expr(&env, bound, value)) return true;
    if (c->refused[loop->var]) return false;
    c->refused[loop->var] = true;
    Diag *diag =
        diag_at(c->diags, P0108, bound->span, "division by zero in a copy of an unrolled loop");
    diag_primary(c->diags, diag, "this divides by zero in one of the copies");
    diag_label(c->diags, diag, loop->head,
               "this loop is unrolled: its bounds are constants in each copy");
    return false;
}

static void count_copies(Copies *c, const Region *loop) {
    int64_t lo, hi;
    if (!bound_in_copy(c, loop, loop->lo, &lo) || !bound_in_copy(c, loop, loop->hi, &hi)) return;
    for (int64_t v = lo; v < hi; v++) {
        c->values[loop->var] = v;
        count_rows(c, loop->begin + 1, loop->end);
    }
}

/* The nesting of loops is bounded by the depth of regions. */
static void count_rows(Copies *c, int begin, int end) {
    for (int at = begin; at < end; at++) {
        const Row *row = code_row(c->code, at);
        const Region *region = code_region(c->code, row->region);
        add_row(c, at, true);
        if (row->kind != ROW_LOOP || !region_unrolled(region)) continue;
        count_copies(c, region);
        at = region->end;
    }
}

static void count_role(Copies *c) {
    const FlowCode *code = c->code;
    for (int at = 0; at < (int)code->rows.count; at++) {
        const Row *row = code_row(code, at);
        add_row(c, at, false);
        if (row->kind != ROW_LOOP || !region_unrolled(code_region(code, row->region))) continue;
        count_copies(c, code_region(code, row->region));
        at = code_region(code, row->region)->end;
    }
}

/* A launch formula is a text: it repeats a shared subexpression each time that it occurs. */
static void count_formula(Arena *arena, Expr *expr) {
    arena_count(arena, STEPS_AN_OPERATION);
    ExprParts parts = expr_parts(expr);
    for (int i = 0; i < parts.count; i++) count_formula(arena, parts.items[i]);
}

static void count_formulas(Arena *arena, const Prog *prog) {
    for (size_t i = 0; i < prog->preconditions.count; i++)
        count_formula(arena, prog->preconditions.items[i].condition);
    for (size_t i = 0; i < prog->axes.count; i++) count_formula(arena, prog->axes.items[i].extent);
}

void copies_count(Arena *arena, Prog *prog, Diags *diags) {
    uint64_t operations = 0;
    count_formulas(arena, prog);
    for (size_t r = 0; r < prog->roles.count; r++) {
        const FlowCode *code = prog->roles.items[r].code;
        Copies copies = {.arena = arena,
                         .diags = diags,
                         .code = code,
                         .values = NEW_ARRAY(arena, int64_t, code->role->locals.count + 1),
                         .refused = NEW_ARRAY(arena, bool, code->role->locals.count + 1),
                         .a_copy = NEW_ARRAY(arena, uint64_t, code->rows.count + 1),
                         .operations = operations};
        count_role(&copies);
        operations = copies.operations;
    }
}
