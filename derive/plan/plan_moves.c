/* Elementwise statements of threads: the instructions that move elements, the number of elements
 * at once, and the number in flight. */
#include "derive/tiles.h"

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

/* ---- the value ------------------------------------------------------------------------------- */

/* `t[i] += e` reads its own target. */
Expr *plan_value(Arena *arena, const Tile *tile) {
    static const BinaryOp ops[] = {[ASSIGN_SET] = OP_ADD,
                                   [ASSIGN_ADD] = OP_ADD,
                                   [ASSIGN_SUB] = OP_SUB,
                                   [ASSIGN_MUL] = OP_MUL,
                                   [ASSIGN_DIV] = OP_DIV};
    if (tile->class == TILE_REDUCTION) return tile->value->reduce.body;
    if (tile->class == TILE_SCAN) return tile->value->scan.body;
    if (tile->op == ASSIGN_SET) return tile->value;
    Expr *read = NEW(arena, Expr), *sum = NEW(arena, Expr);
    Access *access = NEW(arena, Access);
    *access = tile->target;
    *read = (Expr){.kind = X_READ,
                   .type = element_rows[tile->target.type].widens,
                   .indexes = (uint32_t)((1ull << tile->space.bound) - 1),
                   .span = tile->target.span};
    read->uniformity = UNIFORM_LANE;
    read->read = access;
    *sum = *read;
    sum->kind = X_BINARY;
    sum->binary.op = ops[tile->op];
    sum->binary.left = read;
    sum->binary.right = tile->value;
    sum->binary.accuracy = ACCURACY_FAST;
    return sum;
}

/* ---- reads under `where` --------------------------------------------------------------------- */

static bool is_written(const Mover *m, const Expr *expr) {
    return expr->kind == X_READ && expr->read && expr->read->space == SPACE_GLOBAL &&
           m->prog->params.items[expr->read->object].mode == PARAM_INOUT;
}

static void note_written(Expr *expr, void *data) {
    Mover *m = data;
    m->moves->masks |= is_written(m, expr);
}

/* What is computed from such reads depends on the indexes of the condition too. */
static void add_indexes(Expr *expr, void *data) {
    const Mover *m = data;
    expr->indexes |= m->tile->where->indexes;
}

static void mask_reads(Mover *m) {
    if (!m->tile->where) return;
    expr_visit(m->arena, (Expr *)(uintptr_t)m->moves->value, note_written, m);
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

/* True if `vector` elements along index `inner`, from a multiple of it, are adjacent in memory,
 * and aligned */
static bool are_adjacent(const Mover *m, const Access *access, int inner, int vector) {
    if (access->space != SPACE_STAGE && access->space != SPACE_SHARED) return false;
    if (inner < 0) return false;
    const Layout *layout = access_layout(m->prog, m->role, access);
    int last = access->rank - 1;
    if (layout->panel % vector != 0 || layout->padding % vector != 0) return false;
    for (int axis = 0; axis < access->rank; axis++) {
        const Affine *affine = &access->affine[axis];
        if (!affine->is || affine->coef[inner] != (axis == last ? 1 : 0)) return false;
    }
    const Affine *affine = &access->affine[last];
    for (int i = 0; i < PROG_MAX_INDEXES; i++)
        if (i != inner && affine->coef[i] % vector != 0) return false;
    return affine->multiple % vector == 0 &&
           (int64_t)vector * element_rows[access->type].bytes % 4 == 0;
}

/* An accumulator's 8 x 8 elements and a tile of 16-bit elements: rows of the one are rows, or
 * columns, of the other. */
static MoveKind matrix_move(const Mover *m, const Access *access) {
    if (m->moves->rows < 0) return MOVE_EACH;
    if (access->space != SPACE_STAGE && access->space != SPACE_SHARED) return MOVE_EACH;
    if (element_rows[access->type].bytes != 2) return MOVE_EACH;
    if (are_adjacent(m, access, m->moves->columns, 8)) return MOVE_MATRICES;
    if (are_adjacent(m, access, m->moves->rows, 8)) return MOVE_TRANSPOSED;
    return MOVE_EACH;
}

static MoveKind move_of(const Mover *m, const Access *access) {
    const Moves *moves = m->moves;
    if (access->space == SPACE_REGISTER) return MOVE_REGISTERS;
    MoveKind matrices = matrix_move(m, access);
    if (matrices != MOVE_EACH) return matrices;
    bool vector = moves->vector > 1 && are_adjacent(m, access, moves->inner, moves->vector);
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
        if (moves->masks && is_written(m, read->expr) && expr_depends(m->tile->where, moves->inner))
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

/* Tiles and tensors that are traversed along the innermost index */
typedef struct Along {
    bool global, wide;           /* some tensor; all memory allows vectors */
    VEC(const Access *) vectors; /* those that allow vectors */
    Traffic traffic;             /* of these */
    int64_t crooked;             /* what divides rows that are no whole vectors; 0: none known */
} Along;

static bool allows(const Mover *m, const Access *access, int vector) {
    int inner = m->moves->inner;
    return access->space == SPACE_GLOBAL ? wide_fits(m->prog, access, inner, vector)
                                         : are_adjacent(m, access, inner, vector);
}

static void add_along(const Mover *m, const Access *access, Along *along) {
    bool global = access->space == SPACE_GLOBAL;
    bool fits = allows(m, access, global ? VECTOR_BYTES / element_rows[access->type].bytes : 4);
    along->global |= global;
    along->wide &= fits;
    if (!fits) return;
    int64_t crooked = crooked_rows(m->prog, access);
    if (crooked > 0) along->crooked = common_divisor(along->crooked, crooked);
    vec_push(m->arena, &along->vectors, access);
    traffic_add(&along->traffic, &m->tile->space, access);
}

static bool all_allow(const Mover *m, const Along *along, int vector) {
    bool all = true;
    for (size_t i = 0; i < along->vectors.count; i++)
        all &= allows(m, along->vectors.items[i], vector);
    return all;
}

static int64_t elements_of(const Tile *tile) {
    int64_t total = 1;
    for (int i = 0; i < tile->space.bound; i++) total *= tile->space.items[i].extent;
    return total;
}

static int64_t threads_of(const Mover *m) { return (int64_t)m->role->warps * 32; }

/* If some tensor does not allow vectors, adjacent threads access adjacent elements. */
static int flat_vector(const Mover *m) {
    Moves *moves = m->moves;
    Along along = {.wide = true};
    add_along(m, &m->tile->target, &along);
    for (size_t i = 0; i < moves->reads.count; i++) {
        const Expr *read = moves->reads.items[i].expr;
        if (expr_depends(read, moves->inner)) add_along(m, read->read, &along);
    }
    if ((along.global && !along.wide) || along.vectors.count == 0) return 1;
    int vector = traffic_vector(&along.traffic);
    while (m->tile->space.items[moves->inner].extent % vector != 0) vector /= 2;
    moves->crooked = along.crooked > 0;
    while (moves->crooked && along.crooked % vector != 0) vector /= 2;
    while (vector > 1 && !all_allow(m, &along, vector)) vector /= 2;
    /* all threads take part in traffic to global memory */
    while (along.global && vector > 1 && elements_of(m->tile) < threads_of(m) * vector) vector /= 2;
    return vector;
}

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

static bool is_dynamic(const IndexSpace *space) {
    for (int i = 0; i < space->bound; i++)
        if (space->items[i].extent < 0) return true;
    return false;
}

static WalkKind walk_of(const Tile *tile) {
    if (tile->spread != NULL) return WALK_REGISTERS;
    if (tile->space.bound == 0) return WALK_ONE;
    return is_dynamic(&tile->space) ? WALK_LAUNCH : WALK_FLAT;
}

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
    moves->vector = layout_vector(layout, &moves->inner);
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
    int64_t total = elements_of(m->tile), round = threads_of(m) * moves->vector;
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
    *moves = (Moves){.walk = walk_of(tile),
                     .vector = 1,
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
    if (tile->class == TILE_LANES)
        moves->vector = tile->piece.elements;
    else if (moves->walk == WALK_FLAT)
        moves->vector = flat_vector(&m);
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
    moves->publishes = tile->target.space == SPACE_SHARED;
    moves->joins = moves->publishes || tile_synchronises(code->prog, code->role, tile);
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
