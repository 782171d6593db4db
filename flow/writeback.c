/* What codegen still reads from `Stmt`, filled in from Code: the lag of each stage block, and the
 * blocks that each leave releases. Goes when the emission reads Code. */
#include "flow/code.h"
#include "prog/stmt.h"

static bool releases_on_the_way_out(const Row *row) {
    return row->leaving && row->block && (row->kind == ROW_RELEASE || row->kind == ROW_KEEP);
}

void code_write_back(Arena *arena, FlowCode *code) {
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_ACQUIRE && row->block)
            row->stmt->stage.lag = row->late < 0 ? 0 : code->lates.items[row->late].lag;
        if (row->kind == ROW_LEAVE) row->stmt->leave.releases.count = 0;
    }
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (releases_on_the_way_out(row)) vec_push(arena, &row->stmt->leave.releases, row->handle);
    }
}
