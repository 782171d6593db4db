/* Roles without a loop over the grid that write tensors: each block executes such a role once, and
 * so writes the same elements as all others. Needs lowered roles; a warning, since the result is
 * right if all blocks write the same values. */
#include "check/passes.h"

/* True if the grid has one block, whatever the extents */
static bool is_one_block(const Prog *prog) {
    for (size_t a = 0; a < prog->axes.count; a++) {
        int64_t blocks;
        if (!expr_constant(prog->axes.items[a].padded, &blocks) || blocks != 1) return false;
    }
    return true;
}

static bool loops_over_grid(const FlowCode *code) {
    for (size_t r = 0; r < code->regions.count; r++)
        if (code->regions.items[r].kind == REGION_GRID) return true;
    return false;
}

static const Access *first_write(const FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (row->kind == ROW_TILE && row->tile && row->tile->target.space == SPACE_GLOBAL)
            return &row->tile->target;
    }
    return NULL;
}

/* "for (m, n) in grid" */
static const char *loop_text(Arena *arena, const Prog *prog) {
    Str text = str_new(arena);
    size_t count = prog->axes.count;
    str_add(&text, count == 1 ? "for " : "for (");
    for (size_t a = 0; a < count; a++)
        str_printf(&text, "%s%s", a ? ", " : "", prog->axes.items[a].name);
    str_add(&text, count == 1 ? " in grid" : ") in grid");
    return text.text;
}

static bool some_loops_over_grid(const Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++)
        if (loops_over_grid(prog->roles.items[r].code)) return true;
    return false;
}

void grid_loop_check(Arena *arena, Prog *prog, Diags *diags) {
    if (is_one_block(prog)) return;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        const Access *written = first_write(role->code);
        if (!written || loops_over_grid(role->code)) continue;
        const char *name = prog->params.items[written->object].name;
        Diag *diag =
            diag_at(diags, P0411, written->span, "every block writes this part of `%s`", name);
        diag_label(diags, diag, role->span, "role `%s` has no loop over the grid", role->name);
        diag_help(diags, diag, "let each tile write its part: `%s { .. }`", loop_text(arena, prog));
        if (some_loops_over_grid(prog)) continue;
        diag_help(diags, diag, "for a kernel of one block: `grid (%s: 1);`",
                  prog->axes.items[0].name);
    }
}
