/* `var acc: f32[64, 256] = 0`: accumulators that their first matrix instruction clears, by its predicate scale-d, instead of 128 moves.
 *
 * Beside such a tile goes a predicate, `filled`: false while the registers stand for zeros that nobody has written. The assignment of zero makes it false, a
 * contraction passes it as scale-d and makes it true, and any other statement writes the zeros first where it is still false (a loop of no iterations).
 * That branch may not lie where matrix instructions are in flight around it (ptxas would wait for all of them: C7515), so this is for a
 * role's only accumulators, without conditions around their contractions, and where ordinary statements touch them outside of their contractions' loops; others are cleared at once. */
#include "codegen/gen.h"

#include <math.h>

/* The loops around a statement, innermost first */
typedef struct Inside {
    const Stmt *loop;
    const struct Inside *outer;
} Inside;

typedef VEC(const Stmt *) Loops;

typedef struct Search {
    Gen *gen;
    int tile;
    Loops loops;    /* the innermost loop around each contraction */
    int conditions; /* around the statement */
    bool assigned;  /* zero is assigned somewhere */
    bool spoiled;   /* another statement touches the tile inside one of these loops */
    bool judging;   /* the second pass: `loops` is whole */
} Search;

static bool is_zero(const Expr *value) {
    while (value->kind == X_CAST) value = value->cast;
    if (value->kind != X_CONST) return false;
    if (element_rows[value->type].kind == ELEMENT_FLOAT)
        return value->constant.number == 0 && !signbit(value->constant.number);
    return value->constant.integer == 0;
}

/* Zero to all elements of a register tile */
static bool clears(const Role *role, const Tile *tile) {
    const Access *target = &tile->target;
    if (tile->class != TILE_MAP || tile->op != ASSIGN_SET || target->space != SPACE_REGISTER || !is_zero(tile->value))
        return false;
    const RoleTile *whole = &role->tiles.items[target->object];
    for (int axis = 0; axis < target->rank; axis++) {
        const Expr *sub = target->subs[axis];
        if (sub->kind != X_INDEX || tile->space.items[sub->index].extent != whole->extents[axis]) return false;
    }
    return true;
}

static bool names(Gen *gen, const Stmt *stmt, int number) {
    bool *tiles = NEW_ARRAY(gen->arena, bool, gen->role->role->tiles.count);
    mma_names(gen, stmt, tiles);
    return tiles[number];
}

static void search_tile(Search *search, const Stmt *stmt, const Inside *inside) {
    const Tile *tile = stmt->kind == S_TILE ? stmt->tile : NULL;
    if (tile != NULL && tile->class == TILE_MMA) {
        if (tile->target.object != search->tile || search->conditions > 0)
            search->spoiled = true;
        else if (!search->judging)
            vec_push(search->gen->arena, &search->loops, inside != NULL ? inside->loop : NULL);
        return;
    }
    if (!names(search->gen, stmt, search->tile)) return;
    if (tile != NULL && clears(search->gen->role->role, tile)) {
        search->assigned = true;
        return;
    }
    for (size_t i = 0; search->judging && i < search->loops.count; i++) {
        bool around = search->loops.items[i] == NULL;
        for (const Inside *at = inside; at != NULL; at = at->outer) around |= at->loop == search->loops.items[i];
        search->spoiled |= around;
    }
}

static void search_stmt(Search *search, const Stmt *stmt, const Inside *inside) {
    if (stmt == NULL) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) search_stmt(search, stmt->block.body.items[i], inside);
        return;
    case S_SCALAR:
    case S_TILE: search_tile(search, stmt, inside); return;
    case S_GRID: search_stmt(search, stmt->grid.body, &(Inside){stmt, inside}); return;
    case S_FOR: search_stmt(search, stmt->loop.body, &(Inside){stmt, inside}); return;
    case S_IF:
        search->conditions++;
        search_stmt(search, stmt->branch.then, inside);
        search_stmt(search, stmt->branch.otherwise, inside);
        search->conditions--;
        return;
    case S_STAGE: search_stmt(search, stmt->stage.body, inside); return;
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return;
    }
}

static void set_filled(Gen *gen, Reg filled, bool value) {
    Reg zero = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(0));
    INS(gen->ptx, value ? "setp.eq.u32" : "setp.ne.u32", ptx_reg(filled), ptx_reg(zero), ptx_reg(zero));
}

void zero_open(Gen *gen) {
    RoleState *state = gen->role;
    const Role *role = state->role;
    state->filled = NEW_ARRAY(gen->arena, Reg, role->tiles.count + 1);
    for (size_t i = 0; i < role->tiles.count; i++) {
        state->filled[i] = PTX_NONE;
        Search search = {.gen = gen, .tile = (int)i};
        if (!role->tiles.items[i].in_registers) continue;
        search_stmt(&search, role->body, NULL);
        search.judging = true;
        search_stmt(&search, role->body, NULL);
        if (search.loops.count == 0 || !search.assigned || search.spoiled) continue;
        state->filled[i] = ptx_new_reg(gen->ptx, REG_PRED);
        set_filled(gen, state->filled[i], true);
    }
}

bool zero_assigned(Gen *gen, const Tile *tile) {
    if (!clears(gen->role->role, tile)) return false;
    Reg filled = gen->role->filled[tile->target.object];
    if (filled.class == REG_NONE) return false;
    set_filled(gen, filled, false);
    return true;
}

void zero_filled(Gen *gen, int tile) {
    if (gen->role->filled[tile].class != REG_NONE) set_filled(gen, gen->role->filled[tile], true);
}

void zero_settle(Gen *gen, const Stmt *stmt) {
    const Role *role = gen->role->role;
    for (size_t i = 0; i < role->tiles.count; i++) {
        Reg filled = gen->role->filled[i];
        if (filled.class == REG_NONE || !names(gen, stmt, (int)i)) continue;
        int held = ptx_new_label(gen->ptx), count = (int)layout_registers(&role->tiles.items[i].held);
        INS_IF(gen->ptx, filled, "bra.uni", ptx_label(held));
        for (int r = 0; r < count; r++) INS(gen->ptx, "mov.b32", ptx_reg(gen->role->tiles[i][r]), ptx_int(0));
        ptx_place_label(gen->ptx, held);
        set_filled(gen, filled, true);
        ptx_forget(gen->ptx);
    }
}
