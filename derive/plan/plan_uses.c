/* What a row does, and the elements of a thread at which a value is the same, as far as several
 * parts of the plan ask. */
#include "derive/plan.h"

bool plan_unsafe_signals(const Unsafe *what) {
    bool barrier =
        what->kind == UNSAFE_ARRIVE || (what->kind == UNSAFE_VALUE && what->value == VALUE_BARRIER);
    return barrier && what->handle >= 0 && what->full == (what->end == END_PRODUCE);
}

static void note_read(Expr *expr, void *data) {
    bool *tiles = data;
    if (expr->kind == X_READ && expr->read->space == SPACE_REGISTER)
        tiles[expr->read->object] = true;
}

static void names_in(Arena *arena, Expr *expr, bool *tiles) {
    if (expr) expr_visit(arena, expr, note_read, tiles);
}

static void names_of_unsafe(Arena *arena, const Unsafe *what, bool *tiles) {
    names_in(arena, what->stage, tiles);
    names_in(arena, what->at, tiles);
    names_in(arena, what->amount, tiles);
    if (what->tile) names_in(arena, what->tile->element, tiles);
    for (size_t i = 0; i < what->operands.count; i++)
        names_in(arena, what->operands.items[i].value, tiles);
}

void plan_names(Arena *arena, const Row *row, bool *tiles) {
    if (row->kind == ROW_SET) names_in(arena, row->value, tiles);
    if (row->kind == ROW_UNSAFE || row->kind == ROW_STEP)
        names_of_unsafe(arena, row->unsafe, tiles);
    if (row->kind != ROW_TILE || row->tile->class == TILE_MMA) return;
    const Access *target = &row->tile->target;
    if (target->space == SPACE_REGISTER || target->space == SPACE_SHARED)
        tiles[target->object] = true;
    names_in(arena, row->tile->value, tiles);
    if (row->tile->where) names_in(arena, row->tile->where, tiles);
    for (int axis = 0; axis < target->rank; axis++) names_in(arena, target->subs[axis], tiles);
}

bool plan_assigns_all(const Role *role, const Tile *tile) {
    const Access *target = &tile->target;
    const RoleTile *whole = &role->tiles.items[target->object];
    uint32_t seen = 0;
    for (int axis = 0; axis < target->rank; axis++) {
        const Expr *sub = target->subs[axis];
        if (sub->kind != X_INDEX || seen >> sub->index & 1 ||
            tile->space.items[sub->index].extent != whole->extents[axis])
            return false;
        seen |= (uint32_t)1 << sub->index;
    }
    return true;
}

static bool has_index(const Spread *spread, uint32_t indexes) {
    for (int m = 0; m < spread->members; m++)
        if (indexes >> spread->axes[m] & 1) return true;
    return false;
}

int *plan_first(Arena *arena, const RegisterLayout *layout, uint32_t indexes, int step) {
    int64_t count = layout_registers(layout) / step;
    int *first = NEW_ARRAY(arena, int, count + 1);
    for (int64_t i = 0; i < count; i++) {
        int64_t coordinates[PROG_MAX_INDEXES];
        layout_coordinates(layout, i * step, coordinates);
        for (int s = 0; s < layout->count; s++)
            if (!has_index(&layout->spreads[s], indexes)) coordinates[s] = 0;
        first[i] = (int)(layout_number(layout, coordinates) / step);
    }
    return first;
}

/* `t[i] += e` reads its own target. */
Expr *plan_value(Arena *arena, const Tile *tile) {
    static const BinaryOp ops[] = {[ASSIGN_SET] = OP_ADD,
                                   [ASSIGN_ADD] = OP_ADD,
                                   [ASSIGN_SUB] = OP_SUB,
                                   [ASSIGN_MUL] = OP_MUL,
                                   [ASSIGN_DIV] = OP_DIV};
    if (tile->class == TILE_REDUCTION) return tile->value->reduce.body;
    if (tile->class == TILE_SCAN) return tile->value->scan.body;
    if (tile->op == ASSIGN_SET) return tile->value;
    Expr *read = NEW(arena, Expr), *sum = NEW(arena, Expr);
    Access *access = NEW(arena, Access);
    *access = tile->target;
    *read = (Expr){.kind = X_READ,
                   .type = element_rows[tile->target.type].widens,
                   .indexes = (uint32_t)((1ull << tile->space.bound) - 1),
                   .span = tile->target.span};
    read->uniformity = UNIFORM_LANE;
    read->read = access;
    *sum = *read;
    sum->kind = X_BINARY;
    sum->binary.op = ops[tile->op];
    sum->binary.left = read;
    sum->binary.right = tile->value;
    sum->binary.accuracy = ACCURACY_FAST;
    return sum;
}

bool plan_is_written(const Prog *prog, const Expr *expr) {
    return expr->kind == X_READ && expr->read && expr->read->space == SPACE_GLOBAL &&
           prog->params.items[expr->read->object].mode == PARAM_INOUT;
}

int64_t plan_elements(const Tile *tile) {
    int64_t total = 1;
    for (int i = 0; i < tile->space.bound; i++) total *= tile->space.items[i].extent;
    return total;
}
