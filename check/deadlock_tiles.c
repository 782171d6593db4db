/* Pipes that hand out the tiles of a dynamic grid, and deadlocks.
 *
 * Theorem. Let each role that takes numbers of tiles execute its loop over the grid exactly once
 * (dynamic.c), let all acquires of other pipes be in these loops, and let both ends of each of
 * these pipes acquire equally often in each tile (counts.c). If the roles do not deadlock over
 * these pipes, then they do not deadlock over all pipes.
 *
 * Proof. Suppose that they do. Let k be the least number of numbers that a role has taken. A number
 * is released directly after it is taken, and its tile begun directly after that.
 *
 *   - No role waits for number k. The role that draws would wait before it publishes some number
 *     n <= k: either for the release of a number before n, or for tile n - 1 to be begun. But all
 *     roles have taken the numbers below k. To begin a tile needs the token of the one before,
 *     which is released before a number is published.
 *   - So a role X that has taken k numbers waits in tile k - 1 at another pipe, or for a turn. For
 *     a stage number c of a pipe, it waits for a role Y at the other end: for Y to fill it, or to
 *     release an earlier one. As both ends acquire equally often in each tile, c belongs to tile
 *     k - 1 of Y too, and Y cannot have passed c while X waits at it. A turn is passed on in the
 *     same tile or in an earlier one. So Y has not ended tile k - 1, and as k is the least number,
 *     it waits in this tile, at another pipe or for a turn.
 *   - So X, Y and the roles that follow wait for each other over these pipes alone. They would wait
 *     at the same places without the numbers, which contradicts the condition.
 *
 * If an acquire is outside of the loops, the pipes are edges of the search like all others. */
#include "check/deadlock_search.h"

static bool is_handed(const Prog *prog, int pipe) {
    return pipe == prog->draws.tiles || pipe == prog->draws.begun;
}

static bool in_grid_loop(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent)
        if (code->regions.items[region].kind == REGION_GRID) return true;
    return false;
}

bool tiles_add_no_deadlock(const Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        for (size_t at = 0; at < role->code->rows.count; at++) {
            const Row *row = &role->code->rows.items[at];
            if (row->kind != ROW_ACQUIRE || is_handed(prog, role->handles.items[row->handle].pipe))
                continue;
            if (!in_grid_loop(role->code, row->region)) return false;
        }
    }
    return prog->draws.role >= 0;
}
