/* The plan before the first derived fact: empty, with a part for each pipe, role and tile. */
#include "derive/edit.h"
#include "derive/plan.h"

#include <string.h>

void plan_open(Arena *arena, Prog *prog) {
    Plan *plan = NEW(arena, Plan);
    size_t pipes = prog->pipes.count;
    PipePlan *ends = NEW_ARRAY(arena, PipePlan, pipes + 1);
    for (size_t p = 0; p < pipes; p++)
        ends[p].fields = NEW_ARRAY(arena, FieldPlan, prog->pipes.items[p].fields.count + 1);
    RolePlan *roles = NEW_ARRAY(arena, RolePlan, prog->roles.count + 1);
    for (size_t r = 0; r < prog->roles.count; r++) {
        RolePlan *role = &roles[r];
        role->tiles = NEW_ARRAY(arena, TilePlan, prog->roles.items[r].tiles.count + 1);
        for (End end = END_PRODUCE; end <= END_CONSUME; end++)
            role->fenced[end] = NEW_ARRAY(arena, bool, pipes + 1);
    }
    plan->pipes = ends, plan->roles = roles;
    prog->plan = plan;
}

void plan_add_tile(Arena *arena, Prog *prog, Role *role, RoleTile tile) {
    RolePlan *plan = edit_role(prog, role);
    size_t count = role->tiles.count;
    TilePlan *tiles = NEW_ARRAY(arena, TilePlan, count + 2);
    memcpy(tiles, plan->tiles, count * sizeof *tiles);
    plan->tiles = tiles;
    vec_push(arena, &role->tiles, tile);
}
