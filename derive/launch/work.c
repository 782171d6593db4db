/* What each role does, as a tree of its loops and conditions with amounts for one execution, from
 * which a launcher predicts the time of a launch. Bounds and conditions are expressions over
 * extents, scalars, axes of the grid and variables of the enclosing loops; one that data decide has
 * none. A loop that leaves early counts as if it did not.
 *
 * Nothing is proved by these numbers, and no code depends on them. */
#include "derive/edit.h"
#include "derive/resources/resources.h"
#include "derive/tiles.h"
#include "flow/values.h"

#define NODES_MOST 200 /* of an expression; a larger one counts as decided by data */
#define NEAR_ISSUE 15  /* instructions for a piece that passes through registers into a stage */
#define FAR_WAITS  6   /* threads wait for what they load as long as for so many full stages */

typedef struct Worker {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    FlowCode *code;
    const RowsPlan *rows;
    int at;      /* the row */
    int *items;  /* by region: its item so far; -1: none */
    int parent;  /* of the row */
    int64_t ops; /* of the value that is being visited */
    const Tile *tile;
} Worker;

static int64_t saturated(int64_t a, int64_t b) {
    int64_t product;
    return __builtin_mul_overflow(a, b, &product) ? INT64_MAX / 2 : product;
}

Expr *plan_launched(Arena *arena, FlowCode *code, int at, Expr *expr) {
    int nodes = NODES_MOST;
    if (expr == NULL) return NULL;
    return expression_counted(arena, code->algebra, values_poly(arena, code, at, expr), expr->span,
                              &nodes);
}

static Expr *launched(Worker *w, int at, Expr *expr) {
    return plan_launched(w->arena, w->code, at, expr);
}

static Work *add(Worker *w, WorkKind kind, int64_t amount, Span span) {
    Work work = {.kind = kind,
                 .role = (int)(w->role - w->prog->roles.items),
                 .parent = w->parent,
                 .local = -1,
                 .param = -1,
                 .pipe = -1,
                 .amount = amount,
                 .own = amount,
                 .pieces = 1,
                 .span = span};
    vec_push(w->arena, &edit_plan(w->prog)->work, work);
    return &edit_plan(w->prog)->work.items[edit_plan(w->prog)->work.count - 1];
}

/* ---- statements ------------------------------------------------------------------------------ */

/* Elements of the indexes in `which`; the extents that only a launch knows go to *times. */
static int64_t elements_of(Worker *w, uint32_t which, Expr **times) {
    const IndexSpace *space = &w->tile->space;
    int64_t elements = 1;
    for (int i = 0; i < space->count; i++) {
        const Index *index = &space->items[i];
        if (!(which >> i & 1)) continue;
        if (index->extent >= 0) {
            elements = saturated(elements, index->extent);
            continue;
        }
        Expr *extent = launched(w, w->at, index->dynamic);
        if (extent != NULL)
            *times = *times ? expr_binary(w->arena, OP_MUL, *times, extent, extent->span) : extent;
    }
    return elements;
}

static uint32_t all_indexes(const Tile *tile) {
    return tile->space.count >= 32 ? UINT32_MAX : (1u << tile->space.count) - 1;
}

/* Indexes on which the elements of an access depend */
static uint32_t indexes_of(const Access *access) {
    uint32_t which = access->element ? access->element->indexes : 0;
    for (int d = 0; d < access->rank; d++) which |= access->subs[d]->indexes;
    return which;
}

/* Elements that threads access in memory; NULL: in registers */
static Work *add_access(Worker *w, const Access *access, bool store) {
    Expr *times = NULL;
    int64_t elements = elements_of(w, indexes_of(access), &times);
    int64_t bytes = saturated(elements, element_rows[access->type].bytes);
    bool global = access->space == SPACE_GLOBAL;
    if (access->space == SPACE_REGISTER || access->space == SPACE_LET) return NULL;
    Work *work = add(w,
                     !global ? WORK_SHARED
                     : store ? WORK_STORE
                             : WORK_LOAD,
                     bytes, access->span);
    work->times = times;
    if (global) work->param = access->object;
    return work;
}

/* The rates of the model were measured with at least two instructions for a call. */
static int ops_of(const Expr *call) {
    int counted = intrinsic_rows[call->call.which].instructions[call->call.accuracy];
    return counted < 2 ? 2 : counted;
}

static void visit_value(Expr *expr, void *data) {
    Worker *w = data;
    switch (expr->kind) {
    case X_READ: (void)add_access(w, expr->read, false); return;
    case X_UNARY:
    case X_BINARY:
    case X_SELECT: w->ops += 1; return;
    case X_CAST: w->ops += expr->type != expr->cast->type; return;
    case X_CALL: w->ops += ops_of(expr); return;
    case X_REDUCE:
    case X_SCAN: w->ops += 1; return;
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_RANK:
    case X_LOCAL:
    case X_INDEX: return;
    }
}

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

static int bits(uint32_t word) { return __builtin_popcount(word); }

/* Elementwise statements and what their threads combine: arithmetic by element, accesses by
 * vector, shuffles by result */
static void add_elements(Worker *w, const Row *row) {
    const Moves *moves = w->rows->moves[w->at];
    Expr *times = NULL;
    int64_t vector = moves != NULL && moves->vector > 0 ? moves->vector : 1;
    w->ops = row->tile->op == ASSIGN_SET ? 0 : 1;
    expr_visit(w->arena, row->tile->value, visit_value, w);
    if (row->tile->where) expr_visit(w->arena, row->tile->where, visit_value, w);
    Work *stored = add_access(w, &row->tile->target, true);
    if (moves != NULL && moves->target == MOVE_WIDE && moves->packed.rows == NULL)
        stored->pieces = vector;
    int64_t elements = elements_of(w, all_indexes(row->tile), &times);
    int64_t warps = ceil_div(elements, WARP_LANES),
            moved = ceil_div(elements, saturated(WARP_LANES, vector));
    int64_t issued = saturated(warps, w->ops) + saturated(2, moved);
    if (tile_combines(row->tile)) {
        Expr *unused = NULL;
        uint32_t bound = (1u << row->tile->space.bound) - 1;
        int64_t results = elements_of(w, bound & all_indexes(row->tile), &unused);
        issued += saturated(2 * bits(row->tile->exchange.lanes), results);
    }
    add(w, WORK_ISSUE, issued, row->span)->times = times;
}

/* Copies by lanes: `elements` at once */
static void add_lanes(Worker *w, const Row *row) {
    Expr *times = NULL;
    const Tile *tile = row->tile;
    int64_t elements = elements_of(w, all_indexes(tile), &times);
    (void)add_access(w, tile->value->read, false);
    (void)add_access(w, &tile->target, true);
    int64_t pieces = ceil_div(elements, (int64_t)WARP_LANES * tile->piece.elements);
    int64_t each = tile->piece.asynchronous ? 3 : NEAR_ISSUE;
    add(w, WORK_ISSUE, saturated(each, pieces), row->span)->times = times;
    if (!tile->piece.asynchronous && tile->target.space == SPACE_STAGE)
        add(w, WORK_WAIT, FAR_WAITS, row->span)->pipe =
            w->role->handles.items[tile->target.object].pipe;
}

static int64_t stored_bytes(const Tile *tile) {
    int64_t bytes = element_rows[tile->target.type].bytes;
    if (!tile_has_boxes(tile)) return tile->bulk.bytes;
    for (int d = 0; d < tile->box.rank; d++) bytes = saturated(bytes, tile->box.tile[d]);
    return bytes;
}

static void add_copy(Worker *w, const Row *row) {
    const Tile *tile = row->tile;
    bool in = tile_is_load(tile), boxes = tile_has_boxes(tile);
    Work *work = add(w, in ? WORK_COPY_IN : WORK_COPY_OUT,
                     in ? copy_arrives(tile) : stored_bytes(tile), row->span);
    if (in)
        work->own =
            tile->multicast.parts == 1 ? copy_bytes(tile) / w->prog->cluster : copy_bytes(tile);
    if (in) work->pipe = w->role->handles.items[tile->target.object].pipe;
    work->param = in ? tile->value->read->object : tile->target.object;
    work->pieces = boxes ? plan_boxes(w->prog->plan, &tile->box) : 1;
}

/* A 64 x n instruction multiplies 32 bytes of each row in n / 2 cycles; both operands pass through
 * shared memory, 128 bytes a cycle. */
static int64_t matrix_cycles(const ContractionPlan *plan, const Mma *mma) {
    int64_t memory = mma->n / 4 + (plan != NULL && plan->a.in_memory ? 16 : 0);
    int64_t cycles = mma->n / 2 > memory ? mma->n / 2 : memory;
    return saturated(cycles, (int64_t)mma->slabs * mma->steps);
}

static void add_contraction(Worker *w, const Row *row) {
    const Mma *mma = &row->tile->mma;
    Work *work = add(w, WORK_MATRIX, matrix_cycles(w->rows->contractions[w->at], mma), row->span);
    work->pieces = (int64_t)mma->slabs * mma->steps;
}

static void add_tile(Worker *w, const Row *row) {
    w->tile = row->tile;
    switch (class_rows[row->tile->class].mover) {
    case MOVER_ENGINE: add_copy(w, row); return;
    case MOVER_LANES: add_lanes(w, row); return;
    case MOVER_MATRIX: add_contraction(w, row); return;
    case MOVER_THREADS: add_elements(w, row); return;
    case MOVER_NOBODY: return;
    }
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void open_region(Worker *w, const Row *row) {
    const Region *region = &w->code->regions.items[row->region];
    int number = row->region;
    w->parent = region->parent < 0 ? -1 : w->items[region->parent];
    w->items[number] = w->parent;
    if (region->kind == REGION_GRID) {
        int executing = w->role->in_turn ? 1 : w->role->instances;
        add(w, WORK_GRID, executing, region->head);
    } else if (region->kind == REGION_FOR) {
        Work *work = add(w, WORK_LOOP, 1, region->head);
        work->local = region->var;
        work->lo = launched(w, region->begin, region->lo);
        work->hi = launched(w, region->begin, region->hi);
        work->bound = region->where != NULL;
    } else if (region->kind == REGION_IF) {
        add(w, WORK_IF, 1, region->head)->lo = launched(w, region->begin, region->condition);
    } else {
        return;
    }
    w->items[number] = (int)edit_plan(w->prog)->work.count - 1;
}

static void turn_to_else(Worker *w, const Row *row) {
    const Region *region = &w->code->regions.items[row->region];
    int then = w->items[row->region];
    w->parent = region->parent < 0 ? -1 : w->items[region->parent];
    add(w, WORK_ELSE, 1, region->head)->of = then;
    w->items[row->region] = (int)edit_plan(w->prog)->work.count - 1;
}

/* From here to the target: what follows in each region may not be executed. */
static void leave(Worker *w, const Row *row) {
    for (int region = row->region; region >= 0; region = w->code->regions.items[region].parent) {
        if (w->items[region] >= 0) edit_plan(w->prog)->work.items[w->items[region]].bound = true;
        if (region == row->target) return;
    }
}

static void add_row(Worker *w, const Row *row) {
    w->parent = w->items[row->region];
    if (row_begins(row->kind))
        open_region(w, row);
    else if (row->kind == ROW_ELSE)
        turn_to_else(w, row);
    else if (row->kind == ROW_TILE)
        add_tile(w, row);
    else if (row->kind == ROW_LEAVE)
        leave(w, row);
    else if (row->kind == ROW_UNSAFE)
        add(w, WORK_UNSAFE, 1, row->span);
    else if (row->kind == ROW_ACQUIRE)
        add(w, WORK_WAIT, 1, row->span)->pipe = w->role->handles.items[row->handle].pipe;
}

static void add_role(Arena *arena, const Prog *prog, const Role *role) {
    FlowCode *code = role->code;
    Worker w = {.arena = arena,
                .prog = prog,
                .role = role,
                .code = code,
                .rows = plan_role(prog, role)->rows};
    if (code == NULL || w.rows == NULL) return;
    w.items = NEW_ARRAY(arena, int, code->regions.count + 1);
    for (size_t i = 0; i < code->regions.count; i++) w.items[i] = -1;
    for (w.at = 0; w.at < (int)code->rows.count; w.at++) add_row(&w, code_row(code, w.at));
}

void plan_work(Arena *arena, const Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++) add_role(arena, prog, &prog->roles.items[r]);
}
