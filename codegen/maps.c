/* Elementwise statements and per-lane copies: an index space distributed over the threads of the
 * instance.
 *
 * The space is flattened, last index innermost. A thread takes vectors of V consecutive
 * elements, number chunk * threads + thread. For statements with register tiles their layout
 * defines a thread's elements, and a chunk is a vector of adjacent registers. Chunks are
 * evaluated in batches: all loads and values first, then all stores, so that loads overlap.
 * Batches are unrolled, or a loop if there are many; a last, partial chunk is guarded. */
#include "codegen/gen.h"

#include <string.h>

#define VECTOR_MOST 16

typedef struct Walk {
    Gen *gen;
    const Tile *tile;
    const Moves *moves; /* planned */
    int vector, inner;  /* of the plan */
    int threads;
    const RegisterLayout *layout; /* of the statement, if it has register tiles; otherwise NULL */
    Lin parts[PROG_MAX_INDEXES];  /* the thread's part of each of its spreads */
    Point statement;              /* values that depend on no index */
    const Early *early;           /* of a statement that had to wait; otherwise NULL */
    bool wide;                    /* this copy of the statement accesses tensors by vectors */
} Walk;

/* A vector of elements: the point of the vector, and one for each of its elements. */
typedef struct Chunk {
    Point vector;
    Point *elements;
    /* with a layout: the registers' part of each spread's coordinate */
    int64_t at[PROG_MAX_INDEXES];
    int64_t number;            /* of the vector among those of its thread */
    Reg (*words)[VECTOR_MOST]; /* raw copies: the loaded words */
    Value *values;
    Reg *stored; /* predicates: elements that are stored; NULL: all */
} Chunk;

static bool depends_on(const Expr *expr, int index) {
    return index >= 0 && (expr->indexes >> index & 1u) != 0;
}

/* ---- one vector ------------------------------------------------------------------------------ */

/* Indexes from a flat position, the last one innermost; `axes` NULL: all of the space */
static void decode(Walk *walk, Lin flat, const int *axes, int count, Lin *indexes) {
    Lin rest = flat;
    for (int i = count - 1; i >= 0; i--) {
        int axis = axes == NULL ? i : axes[i];
        if (i == 0)
            indexes[axis] = rest;
        else
            lin_divide(walk->gen, rest, walk->tile->space.items[axis].extent, &rest,
                       &indexes[axis]);
    }
}

static void place_registers(Walk *walk, Chunk *chunk, int64_t number) {
    layout_coordinates(walk->layout, number * walk->vector, chunk->at);
    for (int s = 0; s < walk->layout->count; s++) {
        const Spread *spread = &walk->layout->spreads[s];
        Lin position = walk->parts[s];
        position.is.add += chunk->at[s];
        decode(walk, position, spread->axes, spread->members, chunk->vector.indexes);
    }
}

static void open_chunk(Walk *walk, Chunk *chunk, Lin flat, int64_t number) {
    Gen *gen = walk->gen;
    chunk->vector = (Point){.outer = &walk->statement, .own = ~0u};
    chunk->number = number;
    if (walk->layout != NULL)
        place_registers(walk, chunk, number);
    else
        decode(walk, flat, NULL, walk->tile->space.bound, chunk->vector.indexes);
    chunk->elements = NEW_ARRAY(gen->arena, Point, walk->vector);
    chunk->values = NEW_ARRAY(gen->arena, Value, walk->vector);
    for (int e = 0; e < walk->vector; e++) {
        Point *element = &chunk->elements[e];
        *element = chunk->vector;
        element->outer = &chunk->vector;
        element->own = walk->inner < 0 ? 0 : 1u << walk->inner;
        if (walk->inner >= 0) element->indexes[walk->inner].is.add += e;
    }
}

/* True if an access by the plan moves whole vectors in this copy of the statement */
static bool is_vector(const Walk *walk, MoveKind kind) {
    return kind == MOVE_VECTOR || (kind == MOVE_WIDE && walk->wide);
}

static int vector_bytes(const Walk *walk, const Access *access) {
    return walk->vector * element_rows[access->type].bytes;
}

static bool holds_pairs(const Walk *walk, const Access *access) {
    return walk->gen->role->plan->tiles[access->object].pairs;
}

/* The register of a vector's first element, followed by those of the others; two elements share
 * a register if the tile holds pairs. */
static const Reg *register_slots(const Walk *walk, const Access *access, const Chunk *chunk) {
    return registers_slot(walk->gen, access, walk->layout, chunk->at);
}

/* Makes registers known at the point of the read: of each element, of the vector, or of the
 * whole statement (eval). */
static void load_registers(Walk *walk, Chunk *chunk, const Expr *expr) {
    Gen *gen = walk->gen;
    const Access *read = expr->read;
    const Reg *slots = register_slots(walk, read, chunk);
    Value values[VECTOR_MOST];
    bool vector = depends_on(expr, walk->inner);
    int count = vector ? walk->vector : 1;
    if (vector && holds_pairs(walk, read))
        widen_words(gen, read->type, slots, count, values);
    else
        for (int e = 0; e < count; e++)
            values[e] = value_reg(element_rows[read->type].widens, slots[e]);
    if (!vector) {
        point_know(gen, expr->indexes == 0 ? &walk->statement : &chunk->vector, expr, values[0]);
        return;
    }
    for (int e = 0; e < count; e++) point_know(gen, &chunk->elements[e], expr, values[e]);
}

/* The words of the vector in the type of the target; their number */
static int words_of(const Walk *walk, const Chunk *chunk, Reg *words) {
    Element type = walk->tile->target.type;
    Reg stored[VECTOR_MOST];
    if (chunk->words != NULL) {
        memcpy(words, *chunk->words, sizeof *chunk->words);
        return vector_bytes(walk, &walk->tile->target) / 4;
    }
    if (!walk->moves->bits)
        return narrow_words(walk->gen, type, chunk->values, walk->vector, words);
    for (int e = 0; e < walk->vector; e++) stored[e] = chunk->values[e].reg;
    return pack_words(walk->gen, type, stored, walk->vector, words);
}

static void store_registers(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    const Access *target = &walk->tile->target;
    const Reg *slots = register_slots(walk, target, chunk);
    if (holds_pairs(walk, target)) {
        Reg words[VECTOR_MOST];
        int count = words_of(walk, chunk, words);
        for (int w = 0; w < count; w++)
            INS(gen->ptx, "mov.b32", ptx_reg(slots[w]), ptx_reg(words[w]));
        return;
    }
    for (int e = 0; e < walk->vector; e++) {
        Value value = chunk->values[e];
        const char *move = slots[e].class == REG_PRED ? "mov.pred"
                           : slots[e].class == REG_64 ? "mov.b64"
                                                      : "mov.b32";
        INS(gen->ptx, move, ptx_reg(slots[e]),
            slots[e].class == REG_PRED ? ptx_reg(value_in_reg(gen, value)) : value_operand(value));
    }
}

/* ---- matrices -------------------------------------------------------------------------------- */

static bool by_matrices(MoveKind kind) { return kind == MOVE_MATRICES || kind == MOVE_TRANSPOSED; }

/* Places the matrices that begin at the first of `left` chunks, and returns how many chunks one
 * instruction moves. */
static int place_matrices(const Walk *walk, MoveKind kind, const Chunk *chunk, int left,
                          MatrixPlace *place) {
    int row, column, rows = walk->moves->rows, columns = walk->moves->columns;
    layout_spread(walk->layout, rows, &row);
    layout_spread(walk->layout, columns, &column);
    const int64_t *at = chunk->at;
    *place = (MatrixPlace){kind == MOVE_TRANSPOSED, rows, columns, at[row], at[column]};
    return left >= 4 && walk->moves->quads[chunk->number] ? 4 : 2;
}

static void load_matrices(Walk *walk, Chunk *batch, int chunks) {
    Gen *gen = walk->gen;
    for (size_t i = 0; i < walk->moves->reads.count; i++) {
        const Expr *expr = walk->moves->reads.items[i].expr;
        MoveKind kind = walk->moves->reads.items[i].kind;
        if (!by_matrices(kind)) continue;
        for (int c = 0, step; c < chunks; c += step) {
            MatrixPlace place;
            Reg words[4];
            Value values[2];
            step = place_matrices(walk, kind, &batch[c], chunks - c, &place);
            matrix_load(gen, &walk->statement, expr->read, &place, words, step);
            for (int m = 0; m < step; m++) {
                widen_words(gen, expr->read->type, &words[m], 2, values);
                for (int e = 0; e < 2; e++)
                    point_know(gen, &batch[c + m].elements[e], expr, values[e]);
            }
        }
    }
}

static void store_matrices(Walk *walk, Chunk *batch, int chunks) {
    Gen *gen = walk->gen;
    const Access *target = &walk->tile->target;
    for (int c = 0, step; c < chunks; c += step) {
        MatrixPlace place;
        Reg words[4];
        step = place_matrices(walk, walk->moves->target, &batch[c], chunks - c, &place);
        for (int m = 0; m < step; m++)
            narrow_words(gen, target->type, batch[c + m].values, 2, &words[m]);
        matrix_store(gen, &walk->statement, target, &place, words, step);
    }
}

/* Reuses reads of an earlier chunk, if the plan says that they read the same elements. */
static void share_reads(Walk *walk, Chunk *chunk, const Chunk *earlier) {
    for (size_t i = 0; i < walk->moves->reads.count; i++) {
        const MovedRead *read = &walk->moves->reads.items[i];
        if (read->first[chunk->number] != read->first[earlier->number]) continue;
        point_share(walk->gen, &chunk->vector, &earlier->vector, read->expr);
        for (int e = 0; e < walk->vector; e++)
            point_share(walk->gen, &chunk->elements[e], &earlier->elements[e], read->expr);
    }
}

/* Reads for a whole vector come first: wide loads, and the registers of register tiles. */
static void load_reads(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    for (size_t i = 0; i < walk->moves->reads.count; i++) {
        const Expr *expr = walk->moves->reads.items[i].expr;
        const Access *read = expr->read;
        Value known;
        if (point_knows(&chunk->elements[0], expr, &known)) continue;
        if (read->space == SPACE_REGISTER) {
            load_registers(walk, chunk, expr);
        } else if (is_vector(walk, walk->moves->reads.items[i].kind)) {
            Reg words[16];
            Value values[16];
            vector_load(gen, &chunk->vector, read, vector_bytes(walk, read), words);
            widen_words(gen, read->type, words, walk->vector, values);
            for (int e = 0; e < walk->vector; e++)
                point_know(gen, &chunk->elements[e], expr, values[e]);
        }
    }
}

/* A bit copy of adjacent elements needs no widening. */
static bool raw_words(const Walk *walk) {
    const Moves *moves = walk->moves;
    return moves->bits && is_vector(walk, plan_move(moves, moves->value)) &&
           (is_vector(walk, moves->target) || moves->target == MOVE_REGISTERS);
}

static void evaluate_values(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    if (raw_words(walk)) {
        chunk->words = arena_alloc(gen->arena, sizeof *chunk->words);
        const Access *read = walk->moves->value->read;
        vector_load(gen, &chunk->vector, read, vector_bytes(walk, read), *chunk->words);
        return;
    }
    if (walk->moves->bits) {
        const Access *read = walk->moves->value->read;
        for (int e = 0; e < walk->vector; e++)
            chunk->values[e].reg = read_bits(gen, &chunk->elements[e], read);
        return;
    }
    for (int e = 0; e < walk->vector && walk->early != NULL; e++)
        ahead_know(walk->early, &chunk->elements[e], chunk->number * walk->vector + e);
    load_reads(walk, chunk);
    for (int e = 0; e < walk->vector; e++)
        chunk->values[e] = eval(gen, &chunk->elements[e], walk->moves->value);
}

static void evaluate_chunk(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    evaluate_values(walk, chunk);
    chunk->stored = NULL;
    if (walk->tile->where == NULL) return;
    Expr *where = walk->tile->where;
    bool each = depends_on(where, walk->inner);
    chunk->stored = NEW_ARRAY(gen->arena, Reg, walk->vector);
    for (int e = 0; e < walk->vector; e++)
        chunk->stored[e] = each || e == 0 ? value_in_reg(gen, eval(gen, &chunk->elements[e], where))
                                          : chunk->stored[0];
}

static void store_element(Walk *walk, Chunk *chunk, int e) {
    Gen *gen = walk->gen;
    const Access *target = &walk->tile->target;
    Point *point = &chunk->elements[e];
    Reg stored =
        walk->moves->bits ? chunk->values[e].reg : narrow_one(gen, target->type, chunk->values[e]);
    bool global = target->space == SPACE_GLOBAL;
    Reg inside = global ? global_inside(gen, point, target) : PTX_NONE;
    if (chunk->stored != NULL)
        inside = inside.class == REG_NONE ? chunk->stored[e]
                                          : PURE(gen->ptx, REG_PRED, "and.pred", ptx_reg(inside),
                                                 ptx_reg(chunk->stored[e]));
    Operand address =
        global ? global_address(gen, point, target) : shared_address(gen, point, target);
    const char *op = arena_printf(gen->arena, "st.%s.%s", global ? "global" : "shared",
                                  memory_suffix(target->type));
    ptx_ins(gen->ptx, inside, false, op, (Operand[]){address, ptx_reg(stored)}, 2);
}

static void reduce_chunk(Walk *walk, Chunk *chunk) {
    const Access *target = &walk->tile->target;
    const Reg *slots = register_slots(walk, target, chunk);
    bool along = false; /* the vector's elements go to different results */
    for (int d = 0; d < target->rank; d++) along |= depends_on(target->subs[d], walk->inner);
    for (int e = 0; e < walk->vector; e++)
        reduction_add(walk->gen, walk->tile, slots[along ? e : 0], chunk->values[e]);
}

static void store_chunk(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    const Access *target = &walk->tile->target;
    Reg stored_at_all = chunk->stored ? chunk->stored[0] : PTX_NONE;
    if (walk->tile->class == TILE_REDUCTION) {
        reduce_chunk(walk, chunk);
    } else if (target->space == SPACE_REGISTER) {
        store_registers(walk, chunk);
    } else if (is_vector(walk, walk->moves->target)) {
        Reg words[VECTOR_MOST];
        int count = words_of(walk, chunk, words);
        vector_store(gen, &chunk->vector, target, words, count, stored_at_all);
    } else {
        for (int e = 0; e < walk->vector; e++) store_element(walk, chunk, e);
    }
}

/* ---- per-lane copies: cp.async, or ld and st for small elements ------------------------------ */

/* Bytes of the piece that are inside the tensor: the last axis may end within it, the others are
 * inside or outside. */
static Reg piece_bytes(Walk *walk, Chunk *chunk, const Access *read) {
    Gen *gen = walk->gen;
    int bytes = element_rows[read->type].bytes, last = read->rank - 1;
    const Param *param = &gen->prog->params.items[read->object];
    Reg inside = global_inside(gen, &chunk->vector, read);
    if (inside.class == REG_NONE) return PTX_NONE;
    Reg size = PURE(gen->ptx, REG_32, "mov.b32", ptx_int(walk->vector * bytes));
    if (!read->inside[last] && walk->vector > 1) {
        Reg where = lin_in_reg(gen, access_coordinate(gen, &chunk->vector, read, last));
        Value extent = eval_scalar(gen, param->extents[last]);
        Reg left = PURE(gen->ptx, REG_32, "sub.s32", value_operand(extent), ptx_reg(where));
        left = PURE(gen->ptx, REG_32, "min.s32", ptx_reg(left), ptx_int(walk->vector));
        size = PURE(gen->ptx, REG_32, "mul.lo.s32", ptx_reg(left), ptx_int(bytes));
    }
    return PURE(gen->ptx, REG_32, "selp.b32", ptx_reg(size), ptx_int(0), ptx_reg(inside));
}

static void copy_piece(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    const Access *read = walk->tile->value->read;
    int bytes = walk->vector * element_rows[read->type].bytes;
    Reg size = piece_bytes(walk, chunk, read);
    Operand from = global_address(gen, &chunk->vector, read);
    Operand to = shared_address(gen, &chunk->vector, &walk->tile->target);
    const char *op = bytes == 16 ? "cp.async.cg.shared.global" : "cp.async.ca.shared.global";
    if (size.class == REG_NONE) {
        INS(gen->ptx, op, to, from, ptx_int(bytes));
        return;
    }
    /* An address must be inside the tensor even if nothing is read from it */
    Reg address = PURE(gen->ptx, REG_64, "add.s64", ptx_reg(from.reg), ptx_int(from.value));
    Reg any = PURE(gen->ptx, REG_PRED, "setp.ne.u32", ptx_reg(size), ptx_int(0));
    address = PURE(gen->ptx, REG_64, "selp.b64", ptx_reg(address),
                   ptx_reg(gen->pointers[read->object]), ptx_reg(any));
    INS(gen->ptx, op, to, ptx_at(address, 0), ptx_int(bytes), ptx_reg(size));
}

/* ---- traversal ------------------------------------------------------------------------------- */

static void gen_batch(Walk *walk, Lin flat, int64_t first, int chunks) {
    Gen *gen = walk->gen;
    Chunk *batch = NEW_ARRAY(gen->arena, Chunk, chunks);
    bool copies = walk->tile->class == TILE_LANES && walk->tile->piece.asynchronous;
    for (int c = 0; c < chunks; c++) {
        Lin position = flat;
        position.is.add += (first + c) * walk->threads * walk->vector;
        open_chunk(walk, &batch[c], position, first + c);
        if (copies) copy_piece(walk, &batch[c]);
    }
    if (copies) return;
    load_matrices(walk, batch, chunks);
    for (int c = 0; c < chunks; c++) {
        for (int b = 0; b < c && walk->layout != NULL; b++) share_reads(walk, &batch[c], &batch[b]);
        evaluate_chunk(walk, &batch[c]);
    }
    if (by_matrices(walk->moves->target))
        store_matrices(walk, batch, chunks);
    else
        for (int c = 0; c < chunks; c++) store_chunk(walk, &batch[c]);
    if (walk->tile->target.space == SPACE_REGISTER) ptx_forget(gen->ptx);
}

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
    gen_batch(walk, lin_reg(offset, walk->vector, walk->moves->total - 1), 0, chunks);
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
        gen_batch(walk, flat, first, (int)(end - first < batch ? end - first : batch));
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
        Reg one = is_beyond(gen, last, spread->extent);
        beyond = beyond.class == REG_NONE
                     ? one
                     : PURE(gen->ptx, REG_PRED, "or.pred", ptx_reg(beyond), ptx_reg(one));
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
        evaluate_chunk(walk, &chunk);
        store_chunk(walk, &chunk);
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
    open_chunk(walk, &chunk, lin_const(0), 0);
    chunk.words = NULL;
    evaluate_chunk(walk, &chunk);
    store_chunk(walk, &chunk);
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
        open_chunk(walk, &chunk[c], lin_const(0), c);
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

/* Two copies, if only a launch decides whether vectors of tensors are aligned */
static void gen_walks(Walk *walk) {
    Gen *gen = walk->gen;
    const Wide *wide = &walk->moves->wide;
    Walk single = *walk;
    Reg holds = vectors_hold(gen, wide);
    walk->wide = wide->any;
    if (holds.class == REG_NONE) {
        gen_walk(walk);
        return;
    }
    int other = ptx_new_label(gen->ptx), end = ptx_new_label(gen->ptx);
    INS_UNLESS(gen->ptx, holds, "bra.uni", ptx_label(other));
    gen_walk(walk);
    INS(gen->ptx, "bra.uni", ptx_label(end));
    ptx_place_label(gen->ptx, other);
    ptx_forget(gen->ptx);
    gen_walk(&single);
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
    wait_for_stores(gen, row->tile);
    if (walk.moves->joins) instance_barrier(gen);
    if (row->tile->class == TILE_REDUCTION) reduction_begin(gen, row->tile);
    gen_walks(&walk);
    int release = gen->role->rows->releases[at];
    if (release >= 0) pipe_release(gen, code_row(gen->role->code, release));
    if (row->tile->class == TILE_REDUCTION) reduction_end(gen, row->tile);
    if (!walk.moves->publishes) return;
    INS0(gen->ptx, "fence.proxy.async.shared::cta");
    instance_barrier(gen);
}

void gen_lanes(Gen *gen, const Row *row) {
    Walk walk = open_walk(gen, row);
    wait_for_stores(gen, row->tile);
    if (walk.moves->joins) instance_barrier(gen);
    gen_walk(&walk);
}
