/* Earlier releases: a stage is released as soon as its last element is in registers, even if
 * statements on registers follow before the release in the program.
 *
 * The release moves over scalars and over statements on registers and shared memory of the role,
 * which no other role reads or writes. It does not move over an access to a tensor, since another
 * role may rely on the release as the end of that access, nor over operations of other pipes, whose
 * order with it the program gives. */
#include "derive/plan.h"

typedef struct Accessed {
    int handle;
    bool stage, tensor; /* the handle's stage, or a tensor */
} Accessed;

static void note_access(Access *access, bool written, void *data) {
    Accessed *accessed = data;
    (void)written;
    accessed->stage |= access->space == SPACE_STAGE && access->object == accessed->handle;
    accessed->tensor |= access->space == SPACE_GLOBAL;
}

static Accessed accessed_by(Arena *arena, const FlowCode *code, const Row *row, int handle) {
    Accessed accessed = {.handle = handle};
    row_accesses(arena, code, row, note_access, &accessed);
    return accessed;
}

static bool by_threads(const Row *row) {
    return row->kind == ROW_TILE && tile_by_threads(row->tile);
}

static bool is_private(const Row *row) {
    const RowEffects *effects = &row_effects[row->kind];
    bool scope = effects->scope != SCOPE_NONE && row->object != OBJECT_HANDLE;
    return scope || effects->access == ACCESS_SETS || by_threads(row);
}

/* True if nothing is planned at the row that the release must follow or precede */
static bool is_plain(const RowsPlan *plan, int at) {
    return plan->waits[at].count == 0 && plan->joins[at].count == 0 && plan->passes[at] == 0 &&
           plan->ahead[at] == NULL;
}

/* Releases of stages that threads of this role alone read, without delay */
static bool may_move(const FlowCode *code, const Row *row) {
    if (!row_releases(row->kind) || row->leaving) return false;
    const Handle *handle = &code->role->handles.items[row->handle];
    const PipeUse *use = &code->role->pipes[handle->pipe];
    if (handle->end != END_CONSUME ||
        agents_through(agents_at(use->agents, END_CONSUME), PROXY_ASYNC))
        return false;
    return row->kind == ROW_RELEASE || code->lates.items[row->late].lag == 0;
}

/* The statement after whose reads the release at `at` can be executed; -1: it stays */
static int reader_of(Arena *arena, const FlowCode *code, const RowsPlan *plan, int at) {
    const Row *release = code_row(code, at);
    bool works = false; /* some row does anything between */
    for (int k = at; k-- > 0;) {
        const Row *row = code_row(code, k);
        if (row->region != release->region || !is_private(row) || !is_plain(plan, k)) return -1;
        Accessed accessed = accessed_by(arena, code, row, release->handle);
        if (accessed.stage) {
            bool exchanges =
                row->tile != NULL && tile_combines(row->tile) && row->tile->exchange.loop == 0;
            return by_threads(row) && (works || exchanges) ? k : -1;
        }
        if (accessed.tensor) return -1;
        works |= row->kind == ROW_SET || row->kind == ROW_TILE;
    }
    return -1;
}

void plan_releases(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->releases = NEW_ARRAY(arena, int, code->rows.count);
    plan->released = NEW_ARRAY(arena, bool, code->rows.count);
    for (size_t at = 0; at < code->rows.count; at++) plan->releases[at] = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        if (!may_move(code, code_row(code, (int)at)) || !is_plain(plan, (int)at)) continue;
        int reader = reader_of(arena, code, plan, (int)at);
        if (reader < 0) continue;
        plan->releases[reader] = (int)at;
        plan->released[at] = true;
    }
}
