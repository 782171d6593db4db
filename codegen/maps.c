/* Elementwise statements and per-lane copies: an index space distributed over the threads of the
 * instance.
 *
 * The space is flattened, last index innermost. A thread takes vectors of V consecutive
 * elements, number chunk * threads + thread. For statements with register tiles their layout
 * defines a thread's elements, and a chunk is a vector of adjacent registers. Chunks are
 * evaluated in batches: all loads and values first, then all stores, so that loads overlap.
 * Batches are unrolled, or a loop if there are many; a last, partial chunk is guarded. */
#include "codegen/chunks.h"

/* Many batches: a loop whose register replaces the thread's offset. */
static void loop_batches(Walk *walk, Lin flat, int64_t batches, int chunks) {
    Gen *gen = walk->gen;
    int64_t step = (int64_t)chunks * walk->threads * walk->vector;
    Reg offset = ptx_new_reg(gen->ptx, REG_32);
    INS(gen->ptx, "mov.b32", ptx_reg(offset), ptx_reg(lin_in_reg(gen, flat)));
    Reg limit =
        PURE(gen->ptx, REG_32, "add.s32", ptx_reg(lin_in_reg(gen, flat)), ptx_int(batches * step));
    int label = ptx_new_label(gen->ptx);
    ptx_place_label(gen->ptx, label);
    chunk_batch(walk, lin_reg(offset, walk->vector, walk->moves->total - 1), 0, chunks);
    INS(gen->ptx, "add.s32", ptx_reg(offset), ptx_reg(offset), ptx_int(step));
    ptx_forget(gen->ptx);
    Reg more = ptx_new_reg(gen->ptx, REG_PRED);
    INS(gen->ptx, "setp.lt.u32", ptx_reg(more), ptx_reg(offset), ptx_reg(limit));
    INS_IF(gen->ptx, more, "bra.uni", ptx_label(label));
    ptx_forget(gen->ptx);
}

static void gen_batches(Walk *walk, Lin flat, int64_t first, int64_t end) {
    int batch = walk->moves->batch;
    for (; first < end; first += batch) {
        chunk_batch(walk, flat, first, (int)(end - first < batch ? end - first : batch));
        ptx_forget(walk->gen->ptx); /* recomputes coordinates, to save registers */
    }
}

/* For threads for which `beyond` is false */
static void gen_unless(Walk *walk, Reg beyond, Lin flat, int64_t first, int64_t end) {
    Gen *gen = walk->gen;
    int skip = ptx_new_label(gen->ptx);
    INS_IF(gen->ptx, beyond, "bra", ptx_label(skip));
    gen_batches(walk, flat, first, end);
    ptx_place_label(gen->ptx, skip);
    walk->statement.known = NULL; /* computed in some threads only */
}

/* A position at `total` or after it */
static Reg is_beyond(Gen *gen, Lin position, int64_t total) {
    return PURE(gen->ptx, REG_PRED, "setp.ge.u32", ptx_reg(lin_in_reg(gen, position)),
                ptx_int(total));
}

static void walk_flat(Walk *walk) {
    Gen *gen = walk->gen;
    const Moves *moves = walk->moves;
    Reg thread = gen->role->thread;
    int64_t chunk = (int64_t)walk->threads * walk->vector, done = moves->looped * moves->batch;
    Lin flat = lin_reg(walk->vector == 1 ? thread
                                         : PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(thread),
                                                ptx_int(walk->vector)),
                       walk->vector, (int64_t)(walk->threads - 1) * walk->vector);
    if (moves->looped > 0) {
        loop_batches(walk, flat, moves->looped, moves->batch);
        walk->statement.known = NULL; /* computed in the loop, so possibly not before */
    }
    gen_batches(walk, flat, done, moves->rounds);
    Lin last = flat;
    last.is.add += moves->rounds * chunk;
    if (moves->total % chunk != 0)
        gen_unless(walk, is_beyond(gen, last, moves->total), flat, moves->rounds,
                   moves->rounds + 1);
}

/* Vectors that end within the extents of some spreads, by bits: only some threads have them */
static void gen_ends(Walk *walk, uint32_t ends, int64_t first, int64_t end) {
    Gen *gen = walk->gen;
    Reg beyond = PTX_NONE;
    for (int s = 0; s < walk->layout->count; s++) {
        const Spread *spread = &walk->layout->spreads[s];
        Lin last = walk->parts[s];
        if (!(ends >> s & 1)) continue;
        last.is.add += spread->extent / spread->granule * spread->granule;
        beyond = ptx_either(gen->ptx, beyond, is_beyond(gen, last, spread->extent));
    }
    gen_unless(walk, beyond, lin_const(0), first, end);
}

static void gen_vectors(Walk *walk, int64_t first, int64_t end) {
    const uint32_t *ends = walk->moves->ends;
    for (int64_t next; first < end; first = next) {
        for (next = first + 1; next < end && (!ends || ends[next] == ends[first]);) next++;
        if (ends && ends[first] != 0)
            gen_ends(walk, ends[first], first, next);
        else
            gen_batches(walk, lin_const(0), first, next);
    }
}

/* A loop whose register is added to the threads' part of the spread `looping` */
static void loop_rounds(Walk *walk) {
    Gen *gen = walk->gen;
    const Moves *moves = walk->moves;
    Lin *part = &walk->parts[moves->looping], first = *part;
    int64_t step = moves->unrolled * walk->layout->spreads[moves->looping].granule;
    Reg offset = ptx_new_reg(gen->ptx, REG_32), more = ptx_new_reg(gen->ptx, REG_PRED);
    int label = ptx_new_label(gen->ptx);
    INS(gen->ptx, "mov.b32", ptx_reg(offset), ptx_int(0));
    ptx_place_label(gen->ptx, label);
    *part = lin_add(gen, first, lin_reg(offset, step, (moves->looped - 1) * step));
    gen_vectors(walk, 0, moves->unrolled * (moves->vectors / moves->rounds));
    INS(gen->ptx, "add.s32", ptx_reg(offset), ptx_reg(offset), ptx_int(step));
    INS(gen->ptx, "setp.lt.u32", ptx_reg(more), ptx_reg(offset), ptx_int(moves->looped * step));
    INS_IF(gen->ptx, more, "bra.uni", ptx_label(label));
    ptx_forget(gen->ptx);
    walk->statement.known = NULL; /* computed in the loop, so possibly not before */
    *part = first;
}

static void open_parts(Walk *walk) {
    for (int s = 0; s < walk->layout->count; s++)
        walk->parts[s] = registers_thread(walk->gen, &walk->layout->spreads[s]);
}

/* All registers of the statement's layout; if it writes memory, only one of the threads with
 * replicas does. */
static void walk_registers(Walk *walk) {
    Gen *gen = walk->gen;
    const Moves *moves = walk->moves;
    int skip = -1;
    Reg repeats =
        walk->tile->target.space == SPACE_REGISTER ? PTX_NONE : registers_repeat(gen, walk->layout);
    if (repeats.class != REG_NONE) {
        skip = ptx_new_label(gen->ptx);
        INS_IF(gen->ptx, repeats, "bra", ptx_label(skip));
    }
    open_parts(walk);
    if (moves->looped > 0) loop_rounds(walk);
    gen_vectors(walk, moves->looped * moves->unrolled * (moves->vectors / moves->rounds),
                moves->vectors);
    if (repeats.class != REG_NONE) ptx_place_label(gen->ptx, skip);
}

/* A space whose extents are known at launch: outer indexes in sequence, the last over the
 * threads. */
static void walk_dynamic(Walk *walk, int depth, Point *point) {
    Gen *gen = walk->gen;
    const IndexSpace *space = &walk->tile->space;
    if (depth == space->bound) {
        Chunk chunk = {.vector = *point};
        chunk.elements = &chunk.vector;
        chunk.values = NEW(gen->arena, Value);
        chunk_evaluate(walk, &chunk);
        chunk_store(walk, &chunk);
        return;
    }
    bool last = depth + 1 == space->bound;
    const Index *index = &space->items[depth];
    Value extent =
        index->extent >= 0 ? value_integer(E_I32, index->extent) : eval_scalar(gen, index->dynamic);
    Reg at = ptx_new_reg(gen->ptx, REG_32), beyond = ptx_new_reg(gen->ptx, REG_PRED);
    int head = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    INS(gen->ptx, "mov.b32", ptx_reg(at), last ? ptx_reg(gen->role->thread) : ptx_int(0));
    ptx_place_label(gen->ptx, head);
    INS(gen->ptx, "setp.ge.s32", ptx_reg(beyond), ptx_reg(at), value_operand(extent));
    INS_IF(gen->ptx, beyond, "bra", ptx_label(end));
    Point inner = *point;
    inner.known = NULL;
    inner.indexes[depth] = lin_reg(at, 1, -1);
    walk_dynamic(walk, depth + 1, &inner);
    INS(gen->ptx, "add.s32", ptx_reg(at), ptx_reg(at), ptx_int(last ? walk->threads : 1));
    INS(gen->ptx, "bra", ptx_label(head));
    ptx_place_label(gen->ptx, end);
}

static Walk open_walk(Gen *gen, const Row *row) {
    const Moves *moves = gen->role->rows->moves[row_number(gen, row)];
    return (Walk){.gen = gen,
                  .tile = row->tile,
                  .moves = moves,
                  .value = moves->value,
                  .vector = moves->vector,
                  .inner = moves->inner,
                  .threads = gen->role->role->warps * 32,
                  .layout = row->tile->spread};
}

/* An assignment without indexes is one element, written by one thread. */
static void walk_single(Walk *walk) {
    Gen *gen = walk->gen;
    int skip = ptx_new_label(gen->ptx);
    Reg others = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(gen->role->thread), ptx_int(0));
    INS_IF(gen->ptx, others, "bra", ptx_label(skip));
    Chunk chunk;
    chunk_open(walk, &chunk, lin_const(0), 0);
    chunk.words = NULL;
    chunk_evaluate(walk, &chunk);
    chunk_store(walk, &chunk);
    ptx_place_label(gen->ptx, skip);
}

/* A statement on registers that are in flight: evaluates the planned reads before the wait. */
static void read_ahead(Walk *walk, const Ahead *ahead) {
    Gen *gen = walk->gen;
    int64_t chunks = walk->moves->vectors;
    open_parts(walk);
    Chunk *chunk = NEW_ARRAY(gen->arena, Chunk, chunks);
    Point **points = NEW_ARRAY(gen->arena, Point *, chunks * walk->vector);
    for (int64_t c = 0; c < chunks; c++) {
        chunk_open(walk, &chunk[c], lin_const(0), c);
        for (int e = 0; e < walk->vector; e++) points[c * walk->vector + e] = &chunk[c].elements[e];
    }
    walk->early = ahead_read(gen, ahead, points, (size_t)(chunks * walk->vector));
}

static void gen_walk(Walk *walk) {
    Point point = {.outer = NULL};
    switch (walk->moves->walk) {
    case WALK_ONE: walk_single(walk); return;
    case WALK_FLAT: walk_flat(walk); return;
    case WALK_LAUNCH: walk_dynamic(walk, 0, &point); return;
    case WALK_REGISTERS: walk_registers(walk); return;
    }
}

/* Two copies, if the statement may move rows of any length by vectors */
static void gen_crooked(Walk *walk) {
    Gen *gen = walk->gen;
    if (walk->moves->packed.rows == NULL) {
        gen_walk(walk);
        return;
    }
    Walk packed = *walk;
    int other = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    INS_UNLESS(gen->ptx, packed_holds(&packed), "bra.uni", ptx_label(other));
    packed_copy(&packed);
    INS(gen->ptx, "bra.uni", ptx_label(end));
    ptx_place_label(gen->ptx, other);
    ptx_forget(gen->ptx);
    gen_walk(walk);
    ptx_place_label(gen->ptx, end);
    ptx_forget(gen->ptx);
}

/* Two copies, if only a launch decides whether vectors of tensors are aligned */
static void gen_walks(Walk *walk) {
    Gen *gen = walk->gen;
    const Wide *wide = &walk->moves->wide;
    Walk single = *walk;
    Reg holds = vectors_hold(gen, wide);
    walk->wide = wide->any;
    if (holds.class == REG_NONE) {
        if (wide->any)
            gen_walk(walk);
        else
            gen_crooked(walk);
        return;
    }
    int other = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    INS_UNLESS(gen->ptx, holds, "bra.uni", ptx_label(other));
    gen_walk(walk);
    INS(gen->ptx, "bra.uni", ptx_label(end));
    ptx_place_label(gen->ptx, other);
    ptx_forget(gen->ptx);
    gen_crooked(&single);
    ptx_place_label(gen->ptx, end);
    ptx_forget(gen->ptx);
}

/* Two copies, if the factor that is taken out is known only in a launch */
static void gen_scaled(Walk *walk, const Scaled *scaled) {
    Gen *gen = walk->gen;
    Walk plain = *walk;
    int other = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    if (scaled->when)
        INS_UNLESS(gen->ptx, value_in_reg(gen, eval_scalar(gen, scaled->when)), "bra.uni",
                   ptx_label(other));
    walk->value = scaled->unscaled;
    if (!scaled->kept) gen_walks(walk);
    if (scaled->when == NULL) return;
    INS(gen->ptx, "bra.uni", ptx_label(end));
    ptx_place_label(gen->ptx, other);
    ptx_forget(gen->ptx);
    plain.statement.known = NULL;
    gen_walks(&plain);
    ptx_place_label(gen->ptx, end);
    ptx_forget(gen->ptx);
}

void gen_map(Gen *gen, const Row *row) {
    Walk walk = open_walk(gen, row);
    int at = row_number(gen, row);
    const Ahead *ahead = ahead_of(gen, at);
    if (ahead != NULL) read_ahead(&walk, ahead);
    wait_before(gen, at);
    if (zero_assigned(gen, row)) return;
    zero_settle(gen, row);
    if (ahead != NULL && ahead->release >= 0) {
        if (at + 1 < ahead->release) wait_before(gen, at + 1);
        pipe_release(gen, code_row(gen->role->code, ahead->release));
    }
    order_before(gen, row);
    if (tile_combines(row->tile)) reduction_begin(gen, row->tile);
    const Scaled *scaled = walk.moves->scaled;
    if (scaled && scaled->unscaled)
        gen_scaled(&walk, scaled);
    else
        gen_walks(&walk);
    if (scaled && scaled->result_by) reduction_scale(gen, row->tile, scaled->result_by);
    int release = gen->role->rows->releases[at];
    if (release >= 0) pipe_release(gen, code_row(gen->role->code, release));
    if (row->tile->class == TILE_REDUCTION) reduction_end(gen, row->tile);
    if (row->tile->class == TILE_SCAN) scan_end(gen, row->tile);
    order_after(gen, row);
}

void gen_lanes(Gen *gen, const Row *row) {
    Walk walk = open_walk(gen, row);
    order_before(gen, row);
    gen_walk(&walk);
}
