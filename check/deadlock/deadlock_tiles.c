/* Pipes that hand out the tiles of a dynamic grid, and deadlocks.
 *
 * Theorem. Let each role execute its loop over the grid exactly once (dynamic.c), and its sections
 * be: what is before the loop, each tile, and what is after it. Let both ends of each other pipe
 * acquire equally often in each section, and let producers pass on each stage in the section in
 * which they acquire it. If the roles do not deadlock over these pipes, then they do not deadlock
 * over all pipes.
 *
 * Proof. Suppose that they do. A role takes a number at the beginning of each section but the
 * first, releases it directly, and then begins the tile. Let k be the least number of numbers that
 * a role has taken.
 *
 *   - No role waits for number k. The role that draws would wait before it publishes some number
 *     n <= k: either for the release of a number before n, or for tile n - 1 to be begun. But all
 *     roles have taken the numbers below k. To begin a tile needs the token of the one before,
 *     which is released before a number is published.
 *   - So a role X that has taken k numbers waits in its section k at another pipe, or for a turn.
 *     For a stage number c of a pipe, it waits for a role Y at the other end: for Y to fill it, or
 *     to release an earlier one. As both ends acquire equally often in each section, c belongs to
 *     section k of Y too. If Y is the producer, it has not passed on c, which it does in section
 *     k; if Y is a consumer, it has not acquired c. A turn is passed on in the same section or in
 *     an earlier one. So Y has not ended section k, and as k is the least number, it waits in this
 *     section, at another pipe or for a turn.
 *   - So X, Y and the roles that follow wait for each other over these pipes alone. They would wait
 *     at the same places without the numbers, which contradicts the condition.
 *
 * counts.c has proved equal counts in each tile. The sections before and after the loops are
 * counted here, if no loop, condition or leave decides about their acquires. A producer that holds
 * a stage from section to section needs numbers in advance, which may be drawn too late. In all
 * cases that are not proved, the pipes are edges of the search like all others. */
#include "check/deadlock/deadlock_search.h"

typedef struct Sections { /* of a role, by pipe and end: acquires before its loop, and after it */
    int *before[2], *after[2];
} Sections;

static int grid_of(const FlowCode *code) {
    for (size_t r = 0; r < code->regions.count; r++)
        if (code->regions.items[r].kind == REGION_GRID) return (int)r;
    return -1;
}

static bool is_decided(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent) {
        const Region *around = &code->regions.items[region];
        if (around->kind == REGION_IF || region_loops(around)) return true;
    }
    return false;
}

/* False: they are not constant, or the role acquires without a loop over the grid */
static bool count_sections(const Role *role, int pipes, Sections *sections) {
    const FlowCode *code = role->code;
    int grid = grid_of(code);
    const Region *loop = grid < 0 ? NULL : &code->regions.items[grid];
    for (int at = 0; at < (int)code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        bool inside = loop && code_inside(code, row->region, grid);
        if (row->kind == ROW_LEAVE && !(inside && code_inside(code, row->target, grid)))
            return false;
        if (row->kind != ROW_ACQUIRE || inside || row->every) continue;
        const Handle *handle = &role->handles.items[row->handle];
        if (!loop || is_decided(code, row->region) || handle->pipe >= pipes) return false;
        (at < loop->begin ? sections->before : sections->after)[handle->end][handle->pipe]++;
    }
    return true;
}

/* -1: before the loop, 0: in it, 1: after it */
static int section_of(const Region *loop, int at) { return (at > loop->end) - (at < loop->begin); }

static bool uses_handle(const Row *row, int handle) {
    if (row->kind == ROW_MOVE && row->other == handle) return true;
    return row_changes_hold(row->kind) && row->handle == handle;
}

/* True if the stages of the handle are passed on in the section in which it is declared. `lag` is
 * of consumers. */
static bool stays_in_section(const FlowCode *code, int grid, int handle) {
    const Region *loop = &code->regions.items[grid];
    int section = 0;
    for (int at = 0; at < (int)code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_OPEN && row->object == OBJECT_HANDLE && row->index == handle)
            section = section_of(loop, at);
        if (uses_handle(row, handle) && section_of(loop, at) != section) return false;
    }
    return true;
}

static bool passes_in_section(const Role *role, int pipes) {
    int grid = grid_of(role->code);
    for (size_t h = 0; h < role->handles.count && grid >= 0; h++) {
        const Handle *handle = &role->handles.items[h];
        if (handle->end == END_PRODUCE && handle->pipe < pipes &&
            !stays_in_section(role->code, grid, (int)h))
            return false;
    }
    return true;
}

static bool sections_equal(const Prog *prog, const Sections *sections, int pipe) {
    const Pipe *row = &prog->pipes.items[pipe];
    const Sections *producer = &sections[row->producer];
    for (size_t c = 0; c < row->consumers.count; c++) {
        const Sections *consumer = &sections[row->consumers.items[c]];
        if (producer->before[END_PRODUCE][pipe] != consumer->before[END_CONSUME][pipe] ||
            producer->after[END_PRODUCE][pipe] != consumer->after[END_CONSUME][pipe])
            return false;
    }
    return true;
}

bool tiles_add_no_deadlock(Arena *arena, const Prog *prog) {
    int roles = prog->draws.role, pipes = prog->draws.tiles; /* of the program */
    if (roles < 0) return false;
    Sections *sections = NEW_ARRAY(arena, Sections, roles);
    for (int r = 0; r < roles; r++) {
        for (int end = 0; end < 2; end++) {
            sections[r].before[end] = NEW_ARRAY(arena, int, pipes + 1);
            sections[r].after[end] = NEW_ARRAY(arena, int, pipes + 1);
        }
        const Role *role = &prog->roles.items[r];
        if (!count_sections(role, pipes, &sections[r]) || !passes_in_section(role, pipes))
            return false;
    }
    for (int p = 0; p < pipes; p++)
        if (!sections_equal(prog, sections, p)) return false;
    return true;
}
