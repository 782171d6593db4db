/* Elementwise statements of threads: the instructions that move elements, the number of elements
 * at once, and the number in flight. */
#include "derive/order.h"

#define BATCH_VALUES 16 /* elements that a thread has in flight */
#define BATCH_WORDS  16 /* .. of a copy of rows that are no whole vectors */
/* values that they are computed from: more would exceed the registers */
#define BATCH_READS      32
#define UNROLLED_BATCHES 2 /* more are emitted as a loop */
/* of an iteration of a loop over rounds, if it has several rounds; more if tensors are read, whose
 * latency is longer */
#define LOOPED_ELEMENTS 32
#define LOOPED_TENSOR   64

typedef struct Mover {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    const Tile *tile;
    Moves *moves;
} Mover;

/* ---- reads under `where` --------------------------------------------------------------------- */

/* What is computed from such reads depends on the indexes of the condition too. */
static void add_indexes(Expr *expr, void *data) {
    const Mover *m = data;
    expr->indexes |= m->tile->where->indexes;
}

static void mask_reads(Mover *m) {
    if (m->moves->masks) expr_visit(m->arena, (Expr *)(uintptr_t)m->moves->value, add_indexes, m);
}

/* `o.y[i] = bf16(e)`: the store rounds, so the cast is redundant; a register for one element
 * takes any value, and a store of e5m2 keeps infinities, which its cast does not. */
static const Expr *without_cast(const Mover *m, const Expr *value) {
    const Access *target = &m->tile->target;
    Element type = target->type;
    if (type != E_BF16 && type != E_F16 && type != E_E4M3) return value;
    bool alone =
        target->space == SPACE_REGISTER && plan_tile(m->prog, m->role, target->object)->packed == 1;
    if (!alone && value->kind == X_CAST && value->type == type &&
        element_rows[value->cast->type].widens == E_F32)
        return value->cast;
    return value;
}

/* ---- one access ------------------------------------------------------------------------------ */

/* An accumulator's 8 x 8 elements and a tile of 16-bit elements: rows of the one are rows, or
 * columns, of the other. */
static MoveKind matrix_move(const Mover *m, const Access *access) {
    if (m->moves->rows < 0) return MOVE_EACH;
    if (access->space != SPACE_STAGE && access->space != SPACE_SHARED) return MOVE_EACH;
    if (element_rows[access->type].bytes != 2) return MOVE_EACH;
    if (access_adjacent(m->prog, m->role, access, m->moves->columns, 8)) return MOVE_MATRICES;
    if (access_adjacent(m->prog, m->role, access, m->moves->rows, 8)) return MOVE_TRANSPOSED;
    return MOVE_EACH;
}

static MoveKind move_of(const Mover *m, const Access *access) {
    const Moves *moves = m->moves;
    if (access->space == SPACE_REGISTER) return MOVE_REGISTERS;
    MoveKind matrices = matrix_move(m, access);
    if (matrices != MOVE_EACH) return matrices;
    bool vector =
        moves->vector > 1 && access_adjacent(m->prog, m->role, access, moves->inner, moves->vector);
    return vector ? MOVE_VECTOR : MOVE_EACH;
}

/* Vectors in global memory, except beside accumulators, whose vectors are two elements */
static void widen_globals(Mover *m) {
    Moves *moves = m->moves;
    if (moves->vector <= 1 || moves->rows >= 0 || m->tile->class == TILE_LANES) return;
    if (m->tile->spread != NULL && !layout_is_blocked(m->tile->spread)) return;
    for (size_t i = 0; i < moves->reads.count; i++) {
        MovedRead *read = &moves->reads.items[i];
        const Access *access = read->expr->read;
        if (moves->masks && plan_is_written(m->prog, read->expr) &&
            expr_depends(m->tile->where, moves->inner))
            continue;
        if (wide_fits(m->prog, access, moves->inner, moves->vector) &&
            wide_require(m->arena, m->prog, m->tile, access, moves->vector, &moves->wide))
            read->kind = MOVE_WIDE;
    }
    const Access *target = &m->tile->target;
    bool alike = !m->tile->where || !expr_depends(m->tile->where, moves->inner);
    if (alike && wide_fits(m->prog, target, moves->inner, moves->vector) &&
        wide_require(m->arena, m->prog, m->tile, target, moves->vector, &moves->wide))
        moves->target = MOVE_WIDE;
}

static MoveKind move_of_read(const Mover *m, const Expr *read) {
    MoveKind kind = move_of(m, read->read);
    return kind == MOVE_REGISTERS || expr_depends(read, m->moves->inner) ? kind : MOVE_EACH;
}

/* ---- vectors --------------------------------------------------------------------------------- */

static int64_t threads_of(const Mover *m) { return (int64_t)m->role->warps * 32; }

/* Registers per element, in values; an address in global memory and its guard count as several. */
static int values_of_element(const Mover *m) {
    int values = m->tile->target.space == SPACE_GLOBAL ? 1 : 0;
    for (size_t i = 0; i < m->moves->reads.count; i++)
        values += m->moves->reads.items[i].expr->read->space == SPACE_GLOBAL ? 3 : 1;
    return values;
}

/* Vectors that a thread has in flight: whole matrix instructions, if there are any */
static int batch_of(const Mover *m) {
    int words = (m->moves->vector * element_rows[m->tile->target.type].bytes + 3) / 4;
    if (m->moves->crooked && m->moves->bits) return words < BATCH_WORDS ? BATCH_WORDS / words : 1;
    int each = values_of_element(m), values = BATCH_VALUES, vector = m->moves->vector;
    if (each * BATCH_VALUES > BATCH_READS) values = BATCH_READS / each;
    int batch = values > vector ? values / vector : 1;
    if (m->moves->rows >= 0) batch = batch < 4 ? 4 : batch / 4 * 4;
    return batch;
}

/* ---- the statement --------------------------------------------------------------------------- */

static bool *quads_of(const Mover *m) {
    const RegisterLayout *layout = m->tile->spread;
    const Moves *moves = m->moves;
    bool *quads = NEW_ARRAY(m->arena, bool, moves->vectors + 1);
    int row;
    layout_spread(layout, moves->rows, &row);
    for (int64_t v = 0; v + 3 < moves->vectors; v++) {
        int64_t first[PROG_MAX_INDEXES], third[PROG_MAX_INDEXES];
        layout_coordinates(layout, v * moves->vector, first);
        layout_coordinates(layout, (v + 2) * moves->vector, third);
        quads[v] = first[row] == third[row];
    }
    return quads;
}

static bool ends_within(const Spread *spread) { return spread->extent % spread->granule != 0; }

/* Sets the rounds that are a loop */
static void plan_loop(Moves *moves, const RegisterLayout *layout) {
    int64_t whole = 1, elements = LOOPED_ELEMENTS;
    for (size_t i = 0; i < moves->reads.count; i++)
        if (moves->reads.items[i].expr->read->space == SPACE_GLOBAL) elements = LOOPED_TENSOR;
    moves->rounds = 1;
    for (int s = 0; s < layout->count; s++) {
        const Spread *spread = &layout->spreads[s];
        const Digit *rounds = &spread->digits[spread->count - 1];
        if (rounds->place != TILES_LOOPED) continue;
        moves->looping = s, moves->rounds = rounds->extent;
        whole = ends_within(spread) ? rounds->extent - 1 : rounds->extent;
    }
    moves->unrolled = elements / (moves->vectors / moves->rounds * moves->vector);
    if (moves->unrolled == 0) moves->unrolled = 1;
    moves->looped = whole / moves->unrolled;
    if (moves->looped < 2) moves->looped = 0;
}

static uint32_t *ends_of(const Mover *m, const RegisterLayout *layout) {
    uint32_t *ends = NEW_ARRAY(m->arena, uint32_t, m->moves->vectors + 1);
    for (int64_t v = 0; v < m->moves->vectors; v++) {
        int64_t at[PROG_MAX_INDEXES];
        layout_coordinates(layout, v * m->moves->vector, at);
        for (int s = 0; s < layout->count; s++) {
            const Spread *spread = &layout->spreads[s];
            bool last = at[s] / spread->granule == spread->extent / spread->granule;
            if (ends_within(spread) && last) ends[v] |= 1u << s;
        }
    }
    return ends;
}

static void walk_registers(const Mover *m) {
    const RegisterLayout *layout = m->tile->spread;
    Moves *moves = m->moves;
    (void)layout_vector(layout, &moves->inner);
    moves->vectors = layout_registers(layout) / moves->vector;
    for (int s = 0; s < layout->count; s++)
        if (ends_within(&layout->spreads[s]) && !moves->ends) moves->ends = ends_of(m, layout);
    if (!layout_accumulates(layout) || layout->count != 2) return;
    for (int s = 0; s < layout->count; s++) {
        if (layout->spreads[s].kind == SPREAD_ROWS) moves->rows = layout->spreads[s].axes[0];
        if (layout->spreads[s].kind == SPREAD_COLUMNS) moves->columns = layout->spreads[s].axes[0];
    }
    moves->quads = quads_of(m);
}

static void note_read(Expr *expr, void *data) {
    const Mover *m = data;
    if (expr->kind == X_READ)
        vec_push(m->arena, &m->moves->reads, (MovedRead){expr, MOVE_EACH, NULL});
}

static void note_reads(Mover *m) {
    const Access *target = &m->tile->target;
    expr_visit(m->arena, (Expr *)(uintptr_t)m->moves->value, note_read, m);
    if (m->tile->where) expr_visit(m->arena, m->tile->where, note_read, m);
    for (int axis = 0; axis < target->rank; axis++)
        expr_visit(m->arena, target->subs[axis], note_read, m);
}

/* Sets the elements of each round of the instance's threads, and the number of rounds */
static void plan_rounds(const Mover *m) {
    Moves *moves = m->moves;
    int64_t total = plan_elements(m->tile), round = threads_of(m) * moves->vector;
    moves->total = total;
    moves->rounds = total / round;
    moves->looped =
        moves->rounds / moves->batch > UNROLLED_BATCHES ? moves->rounds / moves->batch : 0;
}

/* True if a thread need not widen what it copies: from memory to memory, or to registers that hold
 * several as memory does */
static bool copies_bits(const Mover *m) {
    const Tile *tile = m->tile;
    const Expr *value = m->moves->value;
    if (tile->op != ASSIGN_SET || value->kind != X_READ) return false;
    if (!element_same_bits(value->read->type, tile->target.type)) return false;
    if (tile->spread == NULL) return true;
    uint32_t all = (uint32_t)((1ull << tile->space.bound) - 1);
    return tile->class == TILE_MAP && tile->where == NULL && layout_is_blocked(tile->spread) &&
           value->read->space != SPACE_REGISTER && value->indexes == all &&
           tile->target.space == SPACE_REGISTER &&
           plan_tile(m->prog, m->role, tile->target.object)->packed > 1;
}

static Moves *moves_of(Arena *arena, const FlowCode *code, const Tile *tile, const Scaled *scaled) {
    Moves *moves = NEW(arena, Moves);
    Mover m = {arena, code->prog, code->role, tile, moves};
    const Distribution distribution = distribution_of(arena, code->prog, code->role, tile);
    *moves = (Moves){.walk = distribution.walk,
                     .vector = distribution.vector,
                     .crooked = distribution.crooked,
                     .masks = distribution.masks,
                     .inner = tile->space.bound - 1,
                     .looping = -1,
                     .rows = -1,
                     .columns = -1};
    if (tile->spread != NULL) walk_registers(&m);
    const Expr *value = scaled ? scaled->value : NULL;
    moves->scaled = scaled;
    moves->value = without_cast(&m, value ? value : plan_value(arena, tile));
    moves->bits = copies_bits(&m);
    mask_reads(&m);
    note_reads(&m);
    if (tile->spread != NULL) plan_loop(moves, tile->spread);
    for (size_t i = 0; i < moves->reads.count; i++) {
        MovedRead *read = &moves->reads.items[i];
        read->kind = move_of_read(&m, read->expr);
        if (tile->spread != NULL)
            read->first = plan_first(arena, tile->spread, read->expr->indexes, moves->vector);
    }
    moves->target = move_of(&m, &tile->target);
    widen_globals(&m);
    moves->batch = batch_of(&m);
    if (moves->walk == WALK_FLAT) {
        plan_rounds(&m);
        moves->packed = wide_packed(code->prog, code->role, tile, moves);
    }
    return moves;
}

void plan_moves(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->moves = NEW_ARRAY(arena, Moves *, code->rows.count);
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (row->kind != ROW_TILE) continue;
        if (row->tile->class == TILE_MAP || row->tile->class == TILE_LANES ||
            tile_combines(row->tile))
            plan->moves[at] = moves_of(arena, code, row->tile, plan->scaled[at]);
    }
}

MoveKind plan_move(const Moves *moves, const Expr *read) {
    for (size_t i = 0; i < moves->reads.count; i++)
        if (moves->reads.items[i].expr == read) return moves->reads.items[i].kind;
    return MOVE_EACH;
}
