/* Earlier releases: a stage is released after its last use, even if other rows follow before the
 * release in the program.
 *
 * A release gives a credit and waits for nothing, so an earlier one only lets the other end go on
 * earlier: no deadlock arises, and no stage is held longer. All rows that it moves over are in its
 * region and leave its stage alone, and no matrix instruction in flight reads the stage, so each
 * thread has done its part: a warp arrives for itself, an instance for warps whose instructions
 * are complete. Releases of one pipe keep their order, on which instances in turn rely.
 *
 * What a release orders beside its stage stays ordered. Registers and `shared` tiles belong to one
 * instance, other stages have barriers of their own: only accesses to tensors could rely on it. So
 * it moves over none. It moves over operations of other pipes, which pass on what other roles have
 * done, only if no accesses to a tensor are ordered by pipes (Plan.ordered). That is all that a
 * token, which has no fields, could order. A produced stage stays where the program gives it on. */
#include "derive/plan.h"

typedef struct Mover {
    Arena *arena;
    const FlowCode *code;
    RowsPlan *plan;
    bool *taken; /* by row: a release that is executed at a wait */
} Mover;

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

static Accessed accessed_by(const Mover *m, const Row *row, int handle) {
    Accessed accessed = {.handle = handle};
    row_accesses(m->arena, m->code, row, note_access, &accessed);
    return accessed;
}

static bool by_threads(const Row *row) {
    return row->kind == ROW_TILE && (row->tile->class == TILE_MAP || tile_combines(row->tile));
}

/* True if nothing is planned at the row that the release must follow or precede */
static bool is_plain(const RowsPlan *plan, int at) {
    return plan->waits[at].count == 0 && plan->joins[at].count == 0 && plan->passes[at] == 0 &&
           plan->ahead[at] == NULL;
}

/* Releases of stages without delay that no store or `unsafe` block may still read */
static bool may_move(const Mover *m, int at) {
    const Row *row = code_row(m->code, at);
    if ((row->kind != ROW_RELEASE && row->kind != ROW_KEEP) || row->leaving) return false;
    const Handle *handle = &m->code->role->handles.items[row->handle];
    const PipeUse *use = &m->code->role->pipes[handle->pipe];
    if (handle->end != END_CONSUME || use->bulk_out || use->address_taken) return false;
    bool late = row->kind == ROW_KEEP && m->code->lates.items[row->late].lag > 0;
    return !late && !m->taken[at] && m->plan->waits[at].count == 0;
}

/* A wait in which the stage's barrier keeps its phase */
static bool pins(const Waits *waits, int handle) {
    for (size_t i = 0; i < waits->count; i++)
        if (waits->items[i].pin == handle) return true;
    return false;
}

static int pipe_of(const FlowCode *code, int handle) {
    return code->role->handles.items[handle].pipe;
}

/* Rows that take the number of a tile are executed once more than the iterations. */
static bool takes_number(const FlowCode *code, int at) {
    const Row *row = code_row(code, at);
    return row->every || (row->kind == ROW_CLOSE && code_row(code, at - 1)->every);
}

/* True if the release can be executed before the row instead of after it */
static bool moves_over(const Mover *m, int at, const Row *release) {
    const Row *row = code_row(m->code, at);
    if (row->region != release->region || takes_number(m->code, at) ||
        pins(&m->plan->waits[at], release->handle))
        return false;
    switch (row->kind) {
    case ROW_OPEN:
    case ROW_CLOSE: return true;
    case ROW_SET:
    case ROW_TILE: {
        Accessed accessed = accessed_by(m, row, release->handle);
        return !accessed.stage && !accessed.tensor;
    }
    case ROW_ACQUIRE:
    case ROW_RELEASE:
    case ROW_KEEP:
        return !m->code->prog->plan->ordered &&
               pipe_of(m->code, row->handle) != pipe_of(m->code, release->handle);
    case ROW_LOOP:
    case ROW_NEXT:
    case ROW_IF:
    case ROW_ELSE:
    case ROW_BLOCK:
    case ROW_END:
    case ROW_LEAVE:
    case ROW_EXIT:
    case ROW_PREFETCH:
    case ROW_UNSAFE:
    case ROW_ASK:
    case ROW_DROP:
    case ROW_MOVE:
    case ROW_LEND:
    case ROW_FLUSH:
    case ROW_TAKE:
    case ROW_PASS:
    case ROW_STEP:
    case ROW_COUNT: break;
    }
    return false;
}

static bool takes_time(const Mover *m, int at) {
    RowKind kind = code_row(m->code, at)->kind;
    return kind == ROW_SET || kind == ROW_TILE || kind == ROW_ACQUIRE ||
           m->plan->waits[at].count > 0;
}

/* Rows up to a release at a wait are emitted with the row of the wait. */
static int after_run(const Mover *m, int at) {
    for (int k = at; k-- > 0;) {
        const Ahead *ahead = m->plan->ahead[k];
        if (ahead != NULL) return ahead->release >= at ? ahead->release + 1 : at;
        if (code_row(m->code, k)->kind != ROW_CLOSE) break;
    }
    return at;
}

static void move_release(Mover *m, int at) {
    const Row *release = code_row(m->code, at);
    int to = at;
    bool works = false; /* some row between takes time */
    while (moves_over(m, to - 1, release) && plan_rests(m->plan, to - 1, release->handle))
        works |= takes_time(m, --to);
    const Row *reader = code_row(m->code, to - 1);
    if (reader->region == release->region && by_threads(reader) && is_plain(m->plan, to - 1) &&
        accessed_by(m, reader, release->handle).stage) {
        if (!works && !(tile_combines(reader->tile) && reader->tile->exchange.loop == 0)) return;
        m->plan->releases[to - 1] = at;
    } else {
        to = after_run(m, to);
        if (!works || to >= at) return;
        vec_push(m->arena, &m->plan->before[to], at);
    }
    m->plan->released[at] = true;
}

void plan_releases(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    Mover m = {arena, code, plan, NEW_ARRAY(arena, bool, code->rows.count)};
    plan->releases = NEW_ARRAY(arena, int, code->rows.count);
    plan->before = NEW_ARRAY(arena, RowNumbers, code->rows.count);
    plan->released = NEW_ARRAY(arena, bool, code->rows.count);
    for (size_t at = 0; at < code->rows.count; at++) {
        plan->releases[at] = -1;
        if (plan->ahead[at] != NULL && plan->ahead[at]->release >= 0)
            m.taken[plan->ahead[at]->release] = true;
    }
    for (size_t at = 0; at < code->rows.count; at++)
        if (may_move(&m, (int)at)) move_release(&m, (int)at);
}
