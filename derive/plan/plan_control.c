/* Control of a role: places where turns are passed on, regions in which the lanes of a warp
 * diverge, accumulators that their first contraction clears. */
#include "derive/plan.h"

#include <math.h>

/* ---- lanes ----------------------------------------------------------------------------------- */

static bool of_lanes(const Expr *expr) { return expr && expr->uniformity == UNIFORM_LANE; }

static bool control_of_lanes(const Region *region) {
    return of_lanes(region->condition) || of_lanes(region->lo) || of_lanes(region->hi) ||
           of_lanes(region->where);
}

static bool any_around(const FlowCode *code, const bool *regions, int region) {
    for (; region > 0; region = code_region(code, region)->parent)
        if (regions[region]) return true;
    return false;
}

/* The outermost regions in which lanes of a warp diverge, and at whose END they rejoin */
static bool *diverged_regions(Arena *arena, const FlowCode *code) {
    int *meetings = code_meetings(arena, code, false);
    bool *diverged = NEW_ARRAY(arena, bool, code->regions.count);
    for (size_t r = 1; r < code->regions.count; r++)
        if (control_of_lanes(code_region(code, (int)r)))
            diverged[code_row(code, meetings[r])->region] = true;
    for (size_t r = code->regions.count; r-- > 1;)
        diverged[r] = diverged[r] && !any_around(code, diverged, code_region(code, (int)r)->parent);
    return diverged;
}

static bool lists(const Handles *handles, int handle) {
    for (size_t i = 0; i < handles->count; i++)
        if (handles->items[i] == handle) return true;
    return false;
}

/* In a region with diverged lanes, an arrival waits for no other lane. */
static void find_signals(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->signals = NEW_ARRAY(arena, int, code->rows.count);
    plan->due = NEW_ARRAY(arena, Handles, code->regions.count);
    for (size_t at = 0; at < code->rows.count; at++) {
        const Unsafe *what = code_row(code, (int)at)->unsafe;
        plan->signals[at] = what && plan_unsafe_signals(what) ? what->handle : -1;
        if (plan->signals[at] < 0) continue;
        for (int r = code_row(code, (int)at)->region; r > 0; r = code_region(code, r)->parent)
            if (plan->diverged[r] && !lists(&plan->due[r], what->handle))
                vec_push(arena, &plan->due[r], what->handle);
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

typedef struct Turns {
    const FlowCode *code;
    int *passes;
    int turn;
} Turns;

/* Passes the turn on after the last row between `first` and `end`, both exclusive, that issues
 * anything, or after `first`. Each arm of a condition passes it on as early as possible; if
 * lanes diverge there, it is passed on after both arms, because a barrier needs whole warps. */
static void place_pass(const Turns *turns, int first, int end) {
    const FlowCode *code = turns->code;
    int at = end - 1;
    while (at > first && row_issues_nothing(code_row(code, at)->kind)) at--;
    const Region *branch = code_region(code, code_row(code, at)->region);
    bool arms = at > first && code_row(code, at)->kind == ROW_END && branch->kind == REGION_IF;
    if (!arms || control_of_lanes(branch)) {
        turns->passes[at] = turns->turn;
        return;
    }
    place_pass(turns, branch->begin, branch->otherwise);
    place_pass(turns, branch->otherwise, branch->end);
}

static int *turn_passes(Arena *arena, const FlowCode *code) {
    Turns turns = {code, NEW_ARRAY(arena, int, code->rows.count), 0};
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (row->kind != ROW_TAKE) continue;
        turns.turn = row->turn;
        place_pass(&turns, (int)at, code_region(code, row->region)->end);
    }
    return turns.passes;
}

/* ---- zeros ----------------------------------------------------------------------------------- */
/* `var acc: f32[64, 256] = 0`: the first matrix instruction of such an accumulator clears it by
 * its predicate scale-d, instead of 128 moves. Another row that needs the zeros before that
 * writes them (a loop without iterations). This branch must not be where other matrix
 * instructions are in flight (ptxas would wait for all of them: C7515). So this is only for a
 * role's only accumulator, without conditions around its contractions, and if ordinary rows
 * access it outside of the loops of its contractions; other accumulators are cleared at once. */

static bool names(Arena *arena, const FlowCode *code, int at, int tile) {
    bool *tiles = NEW_ARRAY(arena, bool, code->role->tiles.count);
    plan_names(arena, code_row(code, at), tiles);
    return tiles[tile];
}

static bool is_zero(const Expr *value) {
    while (value->kind == X_CAST) value = value->cast;
    if (value->kind != X_CONST) return false;
    if (element_rows[value->type].kind == ELEMENT_FLOAT)
        return value->constant.number == 0 && !signbit(value->constant.number);
    return value->constant.integer == 0;
}

/* True if the row assigns zero to all elements of a register tile */
static bool assigns_zero(const Role *role, const Row *row) {
    if (row->kind != ROW_TILE) return false;
    const Tile *tile = row->tile;
    const Access *target = &tile->target;
    return tile->class == TILE_MAP && tile->op == ASSIGN_SET && target->space == SPACE_REGISTER &&
           is_zero(tile->value) && plan_assigns_all(role, tile);
}

static bool under_condition(const FlowCode *code, int region) {
    for (; region >= 0; region = code_region(code, region)->parent)
        if (code_region(code, region)->kind == REGION_IF) return true;
    return false;
}

/* True if the row is in the innermost loop around some contraction */
static bool in_contraction_loop(const FlowCode *code, const Row *row) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *other = code_row(code, (int)at);
        if (!plan_contracts(other)) continue;
        int loop = code_region(code, other->region)->loop;
        if (loop < 0 || code_inside(code, row->region, loop)) return true;
    }
    return false;
}

static bool clears_at_first_use(Arena *arena, const FlowCode *code, int tile) {
    bool assigned = false, contracted = false;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (plan_contracts(row)) {
            contracted = true;
            if (row->tile->target.object != tile || under_condition(code, row->region))
                return false;
        } else if (names(arena, code, (int)at, tile)) {
            bool zero = assigns_zero(code->role, row);
            if (!zero && in_contraction_loop(code, row)) return false;
            assigned |= zero;
        }
    }
    return contracted && assigned;
}

static bool contracts(const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++)
        if (plan_contracts(code_row(code, (int)at))) return true;
    return false;
}

static void find_zeros(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->zeros = NEW_ARRAY(arena, bool *, code->role->tiles.count + 1);
    plan->clears = NEW_ARRAY(arena, bool, code->rows.count);
    if (!contracts(code)) return;
    for (size_t t = 0; t < code->role->tiles.count; t++) {
        if (!code->role->tiles.items[t].in_registers) continue;
        if (!clears_at_first_use(arena, code, (int)t)) continue;
        bool *rows = plan->zeros[t] = NEW_ARRAY(arena, bool, code->rows.count);
        for (size_t at = 0; at < code->rows.count; at++) {
            if (!names(arena, code, (int)at, (int)t)) continue;
            plan->clears[at] = assigns_zero(code->role, code_row(code, (int)at));
            rows[at] = !plan->clears[at];
        }
    }
}

/* ---- control --------------------------------------------------------------------------------- */

void plan_control(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->diverged = diverged_regions(arena, code);
    find_signals(arena, code, plan);
    plan->passes = turn_passes(arena, code);
    find_zeros(arena, code, plan);
}
