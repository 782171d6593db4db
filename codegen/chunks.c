/* Vectors of elements of a thread: reads for a whole vector, values, stores; per-lane copies */
#include "codegen/chunks.h"
#include "prog/rounding.h"

#include <string.h>

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

void chunk_open(Walk *walk, Chunk *chunk, Lin flat, int64_t number) {
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

static bool holds_several(const Walk *walk, const Access *access) {
    return walk->gen->role->plan->tiles[access->object].packed > 1;
}

/* The register of a vector's first element, followed by those of the others; two or
 * four elements share a register if the tile is packed. */
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
    bool vector = expr_depends(expr, walk->inner);
    int count = vector ? walk->vector : 1;
    if (vector && holds_several(walk, read))
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
    if (holds_several(walk, target)) {
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
            Reg words[VECTOR_MOST];
            Value values[VECTOR_MOST];
            vector_load(gen, &chunk->vector, read, vector_bytes(walk, read), words);
            widen_words(gen, read->type, words, walk->vector, values);
            for (int e = 0; e < walk->vector; e++)
                point_know(gen, &chunk->elements[e], expr, values[e]);
        }
    }
}

/* Elements of register tiles, for a condition that is evaluated before the other reads: it would
 * read the first element's register for all. */
static void load_held(Walk *walk, Chunk *chunk) {
    for (size_t i = 0; i < walk->moves->reads.count; i++) {
        const Expr *expr = walk->moves->reads.items[i].expr;
        Value known;
        if (expr->read->space == SPACE_REGISTER && !point_knows(&chunk->elements[0], expr, &known))
            load_registers(walk, chunk, expr);
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
    load_reads(walk, chunk);
    Expr *a, *b;
    if (walk->tile->class == TILE_REDUCTION && rounding_adds_products(walk->tile->value, &a, &b) &&
        walk->tile->value->reduce.body == walk->value) {
        chunk->factors = NEW_ARRAY(gen->arena, Value, walk->vector);
        for (int e = 0; e < walk->vector; e++) {
            chunk->values[e] = eval(gen, &chunk->elements[e], a);
            chunk->factors[e] = eval(gen, &chunk->elements[e], b);
        }
        return;
    }
    for (int e = 0; e < walk->vector; e++)
        chunk->values[e] = eval(gen, &chunk->elements[e], walk->value);
}

/* Which elements of the vector are stored */
static void evaluate_where(Walk *walk, Chunk *chunk) {
    Gen *gen = walk->gen;
    Expr *where = walk->tile->where;
    bool each = expr_depends(where, walk->inner);
    chunk->stored = NEW_ARRAY(gen->arena, Reg, walk->vector);
    for (int e = 0; e < walk->vector; e++)
        chunk->stored[e] = each || e == 0 ? value_in_reg(gen, eval(gen, &chunk->elements[e], where))
                                          : chunk->stored[0];
}

/* Elements that are not stored may be written by other threads meanwhile: they are not read. */
static void mask_reads(Walk *walk, Chunk *chunk) {
    const Expr *where = walk->tile->where;
    for (int e = 0; e < walk->vector; e++) chunk->elements[e].mask = chunk->stored[e];
    if (!expr_depends(where, walk->inner)) chunk->vector.mask = chunk->stored[0];
    if (where->indexes == 0) walk->statement.mask = chunk->stored[0];
}

void chunk_evaluate(Walk *walk, Chunk *chunk) {
    bool masks = walk->moves->masks;
    chunk->stored = NULL;
    walk->statement.mask = PTX_NONE;
    for (int e = 0; e < walk->vector && walk->early != NULL; e++)
        ahead_know(walk->early, &chunk->elements[e], chunk->number * walk->vector + e);
    if (masks) {
        load_held(walk, chunk);
        evaluate_where(walk, chunk);
        mask_reads(walk, chunk);
    }
    evaluate_values(walk, chunk);
    if (walk->tile->where && !masks) evaluate_where(walk, chunk);
}

static void store_element(Walk *walk, Chunk *chunk, int e) {
    Gen *gen = walk->gen;
    const Access *target = &walk->tile->target;
    Point *point = &chunk->elements[e];
    Reg stored =
        walk->moves->bits ? chunk->values[e].reg : narrow_one(gen, target->type, chunk->values[e]);
    bool global = target->space == SPACE_GLOBAL;
    Reg inside = global ? global_inside(gen, point, target) : PTX_NONE;
    if (chunk->stored != NULL) inside = ptx_both(gen->ptx, inside, chunk->stored[e]);
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
    for (int d = 0; d < target->rank; d++) along |= expr_depends(target->subs[d], walk->inner);
    for (int e = 0; e < walk->vector; e++) {
        Reg to = slots[along ? e : 0];
        if (chunk->factors != NULL)
            INS(walk->gen->ptx, "fma.rn.f32", ptx_reg(to), value_operand(chunk->values[e]),
                value_operand(chunk->factors[e]), ptx_reg(to));
        else
            reduction_add(walk->gen, walk->tile, to, chunk->values[e]);
    }
}

void chunk_store(Walk *walk, Chunk *chunk) {
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
    if (walk->vector > 1) {
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

/* ---- several vectors ------------------------------------------------------------------------- */

void chunk_batch(Walk *walk, Lin flat, int64_t first, int chunks) {
    Gen *gen = walk->gen;
    Chunk *batch = NEW_ARRAY(gen->arena, Chunk, chunks);
    bool copies = walk->tile->class == TILE_LANES && walk->tile->piece.asynchronous;
    for (int c = 0; c < chunks; c++) {
        Lin position = flat;
        position.is.add += (first + c) * walk->threads * walk->vector;
        chunk_open(walk, &batch[c], position, first + c);
        if (copies) copy_piece(walk, &batch[c]);
    }
    if (copies) return;
    load_matrices(walk, batch, chunks);
    for (int c = 0; c < chunks; c++) {
        for (int b = 0; b < c && walk->layout != NULL; b++) share_reads(walk, &batch[c], &batch[b]);
        chunk_evaluate(walk, &batch[c]);
    }
    if (by_matrices(walk->moves->target))
        store_matrices(walk, batch, chunks);
    else
        for (int c = 0; c < chunks; c++) chunk_store(walk, &batch[c]);
    if (walk->tile->target.space == SPACE_REGISTER) ptx_forget(gen->ptx);
}
