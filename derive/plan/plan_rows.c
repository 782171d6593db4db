/* The facts of the rows and regions of one Code: of a role, or of a slice of it. */
#include "derive/plan.h"

RowsPlan *plan_rows(Arena *arena, FlowCode *code) {
    RowsPlan *plan = NEW(arena, RowsPlan);
    plan_control(arena, code, plan);
    plan_waits(arena, code, plan);
    plan_scaled(arena, code, plan);
    plan_ahead(arena, code, plan);
    plan_releases(arena, code, plan);
    plan_contractions(arena, code, plan);
    plan_moves(arena, code, plan);
    return plan;
}
