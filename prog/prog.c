/* The checked program: tables of intrinsics and matrix instructions, and traversal of its
 * expressions. */
#include "prog/prog.h"
#include "prog/stmt.h"

#include <inttypes.h>

const IntrinsicRow intrinsic_rows[IN_COUNT] = {
#define INTRINSIC(name, word, args, ops, exact_ops, ulp, accuracy, exact_accuracy, what, value)    \
    [IN_##name] = {#name, args, {ops, exact_ops}, accuracy, exact_accuracy, ulp, what, WORD_##word},
#include "prog/intrinsics.def"
#undef INTRINSIC
};

const MmaRow mma_rows[MMA_COUNT] = {
#define MMA(name, opcode, operands, sum, k, step, large, either, bound)                            \
    [MMA_##name] = {opcode, E_##operands, E_##sum, k, step, large, either, bound},
#include "prog/mma.def"
#undef MMA
};

double claim_allows(const Claim *claim, double size) {
    if (claim->within < 0) return 0;
    double relative = claim->within * size;
    return relative < claim->absolute ? claim->absolute : relative;
}

bool pipe_consumed_by(const Pipe *pipe, int role) {
    for (size_t i = 0; i < pipe->consumers.count; i++)
        if (pipe->consumers.items[i] == role) return true;
    return false;
}

int role_takers(const Role *role, int pipe) {
    return role->pipes[pipe].in_turn ? 1 : role->instances;
}

/* ---- visiting -------------------------------------------------------------------------------- */

/* Expressions are DAGs: visited nodes are stored, at first in a short list, because most
 * expressions are small, then in a set. */
#define FEW 16

typedef struct Seen {
    Arena *arena;
    Expr **slots; /* open hash table; NULL: all are in the list */
    size_t capacity, count;
    void (*visit)(Expr *, void *);
    void *data;
    Expr *few[FEW];
} Seen;

static bool put(Expr **slots, size_t capacity, Expr *x) {
    size_t i = (size_t)(((uintptr_t)x >> 4) * 0x9E3779B97F4A7C15u >> 32) & (capacity - 1);
    for (; slots[i]; i = (i + 1) & (capacity - 1))
        if (slots[i] == x) return false;
    slots[i] = x;
    return true;
}

static void enlarge(Seen *seen) {
    size_t capacity = seen->slots ? seen->capacity * 4 : FEW * 8;
    Expr **slots = NEW_ARRAY(seen->arena, Expr *, capacity);
    for (size_t i = 0; i < FEW && !seen->slots; i++) put(slots, capacity, seen->few[i]);
    for (size_t i = 0; i < seen->capacity && seen->slots; i++)
        if (seen->slots[i]) put(slots, capacity, seen->slots[i]);
    seen->slots = slots, seen->capacity = capacity;
}

RARE static bool add_to_set(Seen *seen, Expr *x) {
    if (!seen->slots) enlarge(seen);
    if (!put(seen->slots, seen->capacity, x)) return false;
    if (++seen->count * 2 > seen->capacity) enlarge(seen);
    return true;
}

static inline bool is_new(Seen *seen, Expr *x) {
    if (seen->slots) return add_to_set(seen, x);
    for (size_t i = 0; i < seen->count; i++)
        if (seen->few[i] == x) return false;
    if (seen->count == FEW) return add_to_set(seen, x);
    seen->few[seen->count++] = x;
    return true;
}

static void visit_new(Seen *seen, Expr *x) {
    ExprParts parts = expr_parts(x);
    arena_count(seen->arena, 1 + (uint64_t)parts.count);
    if (x->kind == X_READ) {
        Expr *element = x->read->element;
        if (element && is_new(seen, element)) visit_new(seen, element);
        parts = (ExprParts){x->read->rank, x->read->subs};
    }
    for (int i = 0; i < parts.count; i++) {
        if (!is_new(seen, parts.items[i])) continue;
        if (expr_is_leaf(parts.items[i]))
            seen->visit(parts.items[i], seen->data);
        else
            visit_new(seen, parts.items[i]);
    }
    seen->visit(x, seen->data);
}

void expr_visit(Arena *arena, Expr *expr, void (*visit)(Expr *, void *), void *data) {
    Seen seen;
    if (!expr) return;
    if (expr_is_leaf(expr)) {
        visit(expr, data);
        return;
    }
    seen.arena = arena, seen.slots = NULL, seen.capacity = 0;
    seen.visit = visit, seen.data = data;
    seen.few[0] = expr, seen.count = 1;
    visit_new(&seen, expr);
}

/* ---- copies ---------------------------------------------------------------------------------- */

const char *access_name(Arena *arena, const Prog *prog, const Role *role, const Access *access) {
    if (access->space == SPACE_GLOBAL) return prog->params.items[access->object].name;
    if (access->space != SPACE_STAGE) return role->tiles.items[access->object].name;
    const Handle *handle = &role->handles.items[access->object];
    const char *field = prog->pipes.items[handle->pipe].fields.items[access->field].name;
    return arena_printf(arena, "%s.%s", handle->name, field);
}

const ClassRow class_rows[TILE_CLASSES] = {
#define CLASS(name, text, mover, way, words, fills, reads, meaning)                                \
    [TILE_##name] = {text, MOVER_##mover, WAY_##way, WORDS_##words, AGENT_##fills, AGENT_##reads},
#include "prog/classes.def"
#undef CLASS
};

int64_t copy_bytes(const Tile *tile) {
    if (!tile_is_load(tile)) return 0;
    if (!tile_has_boxes(tile)) return tile->bulk.bytes;
    int64_t bytes = element_rows[tile->target.type].bytes;
    for (int d = 0; d < tile->box.rank; d++) bytes *= tile->box.tile[d];
    return bytes;
}

int64_t copy_arrives(const Tile *tile) {
    return copy_bytes(tile) * (tile->multicast.parts > 1 ? tile->multicast.parts : 1);
}

const char *constant_choice_text(Arena *arena, const Constant *constant, int64_t value) {
    if (constant->is_type) return element_rows[value].spelling;
    if (constant->value->type == E_BOOL) return value != 0 ? "true" : "false";
    return arena_printf(arena, "%" PRId64, value);
}

const char *constant_value_text(Arena *arena, const Constant *constant) {
    const Expr *value = constant->value;
    if (!constant->is_type && element_rows[value->type].kind == ELEMENT_FLOAT)
        return arena_printf(arena, "%.9g", value->constant.number);
    return constant_choice_text(arena, constant, value->constant.integer);
}

void stmt_visit(Stmt *stmt, void (*visit)(Stmt *, void *), void *data) {
    if (!stmt) return;
    visit(stmt, data);
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            stmt_visit(stmt->block.body.items[i], visit, data);
        break;
    case S_GRID: stmt_visit(stmt->grid.body, visit, data); break;
    case S_FOR: stmt_visit(stmt->loop.body, visit, data); break;
    case S_IF:
        stmt_visit(stmt->branch.then, visit, data);
        stmt_visit(stmt->branch.otherwise, visit, data);
        break;
    case S_STAGE: stmt_visit(stmt->stage.body, visit, data); break;
    case S_SCALAR:
    case S_TILE:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
}

const char *mma_instruction(Arena *arena, const Mma *mma) {
    const MmaRow *row = &mma_rows[mma->kind];
    return arena_printf(arena, "wgmma.mma_async.sync.aligned.m64n%dk%d.%s", mma->n, row->k,
                        row->name);
}
