/* Completes the plan when all facts that it is built from are known. */
#include "derive/edit.h"
#include "derive/plan.h"

static bool copies_out(const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (row->kind == ROW_TILE && tile_is_store(row->tile)) return true;
    }
    return false;
}

void plan_make(Arena *arena, Prog *prog) {
    Plan *plan = edit_plan(prog);
    for (size_t r = 0; r < prog->roles.count; r++) {
        FlowCode *code = prog->roles.items[r].code;
        RolePlan *role = edit_role(prog, code->role);
        role->drains = copies_out(code);
        role->rows = plan_rows(arena, code);
        if (code->role->in_turn) role->skipped = plan_skipped(arena, code);
    }
    plan_least(arena, prog);
    plan_block(arena, prog);
    plan->complete = true;
}
