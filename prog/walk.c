/* Walking the statements of a role and what one statement reads and writes. */
#include "prog/walk.h"

static void walk_subscripts(const Access *access, void (*visit)(Expr *, void *), void *data) {
    if (access->element) visit(access->element, data);
    for (int i = 0; i < access->rank; i++)
        if (access->subs[i]) visit(access->subs[i], data);
}

void walk_exprs(Stmt *stmt, void (*visit)(Expr *, void *), void *data) {
    switch (stmt->kind) {
    case S_SCALAR:
        if (stmt->scalar.value) visit(stmt->scalar.value, data);
        break;
    case S_TILE:
        if (!stmt->tile) break;
        walk_subscripts(&stmt->tile->target, visit, data);
        if (stmt->tile->value) visit(stmt->tile->value, data);
        break;
    case S_FOR:
        if (stmt->loop.lo) visit(stmt->loop.lo, data);
        if (stmt->loop.hi) visit(stmt->loop.hi, data);
        if (stmt->loop.where) visit(stmt->loop.where, data);
        break;
    case S_IF:
        if (stmt->branch.condition) visit(stmt->branch.condition, data);
        break;
    case S_UNSAFE:
        if (stmt->unsafe->stage) visit(stmt->unsafe->stage, data);
        if (stmt->unsafe->at) visit(stmt->unsafe->at, data);
        if (stmt->unsafe->amount) visit(stmt->unsafe->amount, data);
        if (stmt->unsafe->tile && stmt->unsafe->tile->element) visit(stmt->unsafe->tile->element, data);
        for (size_t i = 0; i < stmt->unsafe->operands.count; i++)
            if (stmt->unsafe->operands.items[i].value) visit(stmt->unsafe->operands.items[i].value, data);
        break;
    case S_BLOCK: case S_GRID: case S_LEAVE: case S_TRY: case S_ACQUIRE: case S_RELEASE: case S_MOVE: case S_STAGE: break;
    }
}

typedef struct Reads {
    Arena *arena;
    void (*visit)(Access *, bool, void *);
    void *data;
} Reads;

static void visit_read(Expr *expr, void *data) {
    const Reads *reads = data;
    if (expr->kind == X_READ && expr->read) reads->visit(expr->read, false, reads->data);
}

static void visit_root(Expr *expr, void *data) {
    const Reads *reads = data;
    expr_visit(reads->arena, expr, visit_read, data);
}

void walk_accesses(Arena *arena, Stmt *stmt, void (*visit)(Access *, bool written, void *), void *data) {
    Reads reads = {arena, visit, data};
    if (stmt->kind == S_TILE && stmt->tile) visit(&stmt->tile->target, true, data);
    walk_exprs(stmt, visit_root, &reads);
}
