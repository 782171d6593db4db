/* What a role does with one pipe: its acquires, and the loops, branches and leaves that decide how often. Two roles with
 * the same shape acquire equally often, whatever their bounds and conditions are worth. */
#include "check/algebra.h"
#include "check/balance.h"

#define COPY_LIMIT 4000   /* nodes of one bound: shared ones are copied at each use */
#define LEAVES_BLOCK (-2) /* Shape.levels: a function that acquires is left; not compared */

/* ---- building ----------------------------------------------------------------------------------------------------- */

typedef struct Build {
    Balance *balance;
    const Role *role;
    int pipe;
    End end;
    VEC(const Stmt *) loops; /* around, outermost first */
} Build;

static bool is_acquire(const Build *b, int handle) {
    const Role *role = b->role;
    return valid_index(handle, role->handles.count) && role->handles.items[handle].pipe == b->pipe &&
           role->handles.items[handle].end == b->end;
}

static bool has_acquire(const Shapes *shapes) {
    for (size_t i = 0; i < shapes->count; i++)
        if (shapes->items[i]->kind == SHAPE_ACQUIRE || has_acquire(&shapes->items[i]->body) || has_acquire(&shapes->items[i]->otherwise))
            return true;
    return false;
}

/* A leave matters to those outside of a compound whose levels it passes. */
static bool leaves_out(const Shapes *shapes, int depth) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        int inner = depth + (shape->kind == SHAPE_FOR || shape->kind == SHAPE_GRID);
        if (shape->kind == SHAPE_LEAVE && (shape->levels < 0 || shape->levels >= depth)) return true;
        if (leaves_out(&shape->body, inner) || leaves_out(&shape->otherwise, inner)) return true;
    }
    return false;
}

static bool leaves_block(const Shapes *shapes, const Stmt *block) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        if (shape->kind == SHAPE_LEAVE && shape->stmt->leave.target == block) return true;
        if (leaves_block(&shape->body, block) || leaves_block(&shape->otherwise, block)) return true;
    }
    return false;
}

static void build(Build *b, Stmt *stmt, Shapes *out);

static Shape *add(Build *b, Shapes *out, ShapeKind kind, Stmt *stmt) {
    Shape *shape = NEW(b->balance->arena, Shape);
    shape->kind = kind;
    shape->stmt = stmt;
    vec_push(b->balance->arena, out, shape);
    return shape;
}

typedef struct Seek {
    const Build *build;
    bool found;
} Seek;

static void seek_acquire(Stmt *stmt, void *data) {
    Seek *seek = data;
    if (stmt->kind == S_ACQUIRE) seek->found |= is_acquire(seek->build, stmt->acquire.handle);
    if (stmt->kind == S_STAGE) seek->found |= is_acquire(seek->build, stmt->stage.handle);
}

static void add_leave(Build *b, Stmt *stmt, Shapes *out) {
    int levels = -1;
    if (stmt->leave.target && stmt->leave.target->kind == S_BLOCK) { /* `return` of an inlined function */
        Seek seek = {b, false};
        stmt_visit(stmt->leave.target, seek_acquire, &seek);
        if (seek.found) add(b, out, SHAPE_LEAVE, stmt)->levels = LEAVES_BLOCK;
        return;
    }
    for (size_t i = b->loops.count; i-- > 0 && stmt->leave.target;)
        if (b->loops.items[i] == stmt->leave.target) {
            levels = (int)(b->loops.count - 1 - i);
            break;
        }
    add(b, out, SHAPE_LEAVE, stmt)->levels = levels;
}

/* A `continue` behind which nothing of an iteration matters is the end of the iteration; so is a `return` at the end of its function or
 * role. */
static void drop_last_leave(Shapes *shapes, const Stmt *target) {
    while (shapes->count) {
        Shape *last = shapes->items[shapes->count - 1];
        bool drops = last->kind == SHAPE_LEAVE && last->stmt->leave.target == target;
        if (target && target->kind != S_BLOCK) drops = drops && last->stmt->leave.kind == LEAVE_CONTINUE;
        if (last->kind == SHAPE_IF) {
            drop_last_leave(&last->body, target);
            drop_last_leave(&last->otherwise, target);
            drops = !last->body.count && !last->otherwise.count;
        }
        if (!drops) return;
        shapes->count--;
    }
}

static void add_loop(Build *b, Stmt *stmt, Stmt *body, Shapes *out) {
    Shape *shape = add(b, out, stmt->kind == S_GRID ? SHAPE_GRID : SHAPE_FOR, stmt);
    vec_push(b->balance->arena, &b->loops, stmt);
    build(b, body, &shape->body);
    b->loops.count--;
    drop_last_leave(&shape->body, stmt);
    if (!has_acquire(&shape->body) && !leaves_out(&shape->body, 1)) out->count--;
}

static void add_branch(Build *b, Stmt *stmt, Shapes *out) {
    Shape *shape = add(b, out, SHAPE_IF, stmt);
    build(b, stmt->branch.then, &shape->body);
    build(b, stmt->branch.otherwise, &shape->otherwise);
    if (!shape->body.count && !shape->otherwise.count) out->count--;
}

/* That of an inlined function, left early, is a shape of its own. */
static void add_block(Build *b, Stmt *stmt, Shapes *out) {
    Shapes body = {0};
    for (size_t i = 0; i < stmt->block.body.count; i++) build(b, stmt->block.body.items[i], &body);
    drop_last_leave(&body, stmt);
    if (leaves_block(&body, stmt)) {
        add(b, out, SHAPE_BLOCK, stmt)->body = body;
        return;
    }
    for (size_t i = 0; i < body.count; i++) vec_push(b->balance->arena, out, body.items[i]);
}

static void build(Build *b, Stmt *stmt, Shapes *out) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK: add_block(b, stmt, out); break;
    case S_GRID: add_loop(b, stmt, stmt->grid.body, out); break;
    case S_FOR: add_loop(b, stmt, stmt->loop.body, out); break;
    case S_IF: add_branch(b, stmt, out); break;
    case S_LEAVE: add_leave(b, stmt, out); break;
    case S_ACQUIRE:
        if (is_acquire(b, stmt->acquire.handle)) add(b, out, SHAPE_ACQUIRE, stmt);
        break;
    case S_STAGE:
        if (is_acquire(b, stmt->stage.handle)) add(b, out, SHAPE_ACQUIRE, stmt);
        build(b, stmt->stage.body, out);
        break;
    case S_SCALAR: case S_TILE: case S_TRY: case S_RELEASE: case S_MOVE: case S_UNSAFE: break;
    }
}

Shapes shapes_of(Balance *balance, const Role *role, int pipe, End end) {
    Build b = {.balance = balance, .role = role, .pipe = pipe, .end = end};
    Shapes shapes = {0};
    build(&b, role->body, &shapes);
    drop_last_leave(&shapes, NULL);
    return shapes;
}

static void count_leaves(const Shapes *shapes, const Shape **where, int *count) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        if (shape->kind == SHAPE_LEAVE && (*count)++ == 0) *where = shape;
        count_leaves(&shape->body, where, count);
        count_leaves(&shape->otherwise, where, count);
    }
}

int shapes_leaves(const Shapes *shapes, const Shape **where) {
    int count = 0;
    count_leaves(shapes, where, &count);
    return count;
}

Span shapes_first(const Shapes *shapes) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        if (shape->kind == SHAPE_ACQUIRE) return shape->stmt->head;
        if (has_acquire(&shape->body)) return shapes_first(&shape->body);
        if (has_acquire(&shape->otherwise)) return shapes_first(&shape->otherwise);
    }
    return (Span){0, 0};
}

/* ---- comparing ---------------------------------------------------------------------------------------------------- */

int balance_symbol(Balance *balance, const char *name, bool counts) {
    Symbol symbol = {.name = name, .is_extent = counts, .param = -1};
    vec_push(balance->arena, &balance->prog->symbols, symbol);
    return (int)balance->prog->symbols.count - 1;
}

/* Loop variables of the two roles that run alike stand for the same number: both are replaced by one symbol. */
typedef struct Same {
    Balance *balance;
    const Role *roles[2];
    int *symbols[2];   /* by local of each role, -1: itself */
    int left;          /* nodes that may still be copied */
    const Shape **apart;
} Same;

static Expr *copy(Same *same, int side, Expr *expr);

static Expr *copy_read(Same *same, int side, Expr *expr) {
    Expr *out = NEW(same->balance->arena, Expr);
    *out = *expr;
    out->read = NEW(same->balance->arena, Access);
    *out->read = *expr->read;
    for (int i = 0; i < expr->read->rank; i++) out->read->subs[i] = copy(same, side, expr->read->subs[i]);
    return out;
}

/* May it be another value the next time it is asked? A `let` of such a value is not: it keeps the one that it got. */
static bool changes(Same *same, int side, Expr *expr) {
    Algebra *algebra = algebra_new(same->balance->arena, same->balance->prog, NULL);
    return poly_changes(algebra, algebra_poly(algebra, same->roles[side], expr));
}

static Expr *copy_local(Same *same, int side, Expr *expr) {
    const Role *role = same->roles[side];
    if (!valid_index(expr->index, role->locals.count)) return expr;
    const Local *local = &role->locals.items[expr->index];
    if (same->symbols[side][expr->index] >= 0) {
        Expr *out = NEW(same->balance->arena, Expr);
        *out = *expr;
        out->kind = X_SYMBOL;
        out->index = same->symbols[side][expr->index];
        return out;
    }
    return local->kind == LOCAL_LET && local->value && !changes(same, side, local->value) ? copy(same, side, local->value) : expr;
}

static Expr *copy(Same *same, int side, Expr *expr) {
    if (!expr || --same->left < 0) return expr;
    if (expr->kind == X_LOCAL) return copy_local(same, side, expr);
    if (expr->kind == X_READ) return copy_read(same, side, expr);
    Expr *out = NEW(same->balance->arena, Expr);
    *out = *expr;
    switch (expr->kind) {
    case X_UNARY: out->unary.operand = copy(same, side, expr->unary.operand); break;
    case X_BINARY:
        out->binary.left = copy(same, side, expr->binary.left);
        out->binary.right = copy(same, side, expr->binary.right);
        break;
    case X_SELECT:
        out->select.condition = copy(same, side, expr->select.condition);
        out->select.then = copy(same, side, expr->select.then);
        out->select.otherwise = copy(same, side, expr->select.otherwise);
        break;
    case X_CAST: out->cast = copy(same, side, expr->cast); break;
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++) out->call.args[i] = copy(same, side, expr->call.args[i]);
        break;
    case X_POISON: case X_CONST: case X_SYMBOL: case X_PARAM: case X_AXIS: case X_LOCAL: case X_RANK: case X_INDEX:
    case X_READ: case X_REDUCE: return expr;
    }
    return out;
}

static bool same_expr(Same *same, Expr *a, Expr *b) {
    same->left = COPY_LIMIT;
    if (!a || !b) return a == b;
    Expr *x = copy(same, 0, a), *y = copy(same, 1, b);
    if (same->roles[0] == same->roles[1] && (changes(same, 0, x) || changes(same, 1, y))) return false; /* one before, one behind the change */
    return same->left >= 0 && algebra_equal(same->balance->arena, same->balance->prog, same->roles[0], x, same->roles[1], y);
}

static bool same_list(Same *same, const Shapes *a, const Shapes *b);

static bool same_for(Same *same, const Shape *a, const Shape *b) {
    const Stmt *x = a->stmt, *y = b->stmt;
    bool whole = x->loop.domain >= 0 && x->loop.domain == y->loop.domain && x->loop.whole && y->loop.whole;
    bool where = !x->loop.where && !y->loop.where;
    where |= x->loop.where && y->loop.where && x->loop.domain >= 0 && x->loop.domain == y->loop.domain;
    if (!where || (!whole && (!same_expr(same, x->loop.lo, y->loop.lo) || !same_expr(same, x->loop.hi, y->loop.hi)))) return false;
    int symbol = balance_symbol(same->balance, "", false);
    if (x->loop.var >= 0) same->symbols[0][x->loop.var] = symbol;
    if (y->loop.var >= 0) same->symbols[1][y->loop.var] = symbol;
    return same_list(same, &a->body, &b->body);
}

static bool same_branch(Same *same, const Shape *a, const Shape *b) {
    const Stmt *x = a->stmt, *y = b->stmt;
    bool domain = x->branch.nonempty >= 0 && x->branch.nonempty == y->branch.nonempty;
    if (!domain && !same_expr(same, x->branch.condition, y->branch.condition)) return false;
    return same_list(same, &a->body, &b->body) && same_list(same, &a->otherwise, &b->otherwise);
}

static bool differs_from(Same *same, const Shape *a, const Shape *b) {
    if (!same->apart[0] && !same->apart[1]) same->apart[0] = a, same->apart[1] = b;
    return false;
}

static bool same_list(Same *same, const Shapes *a, const Shapes *b) {
    for (size_t i = 0; i < a->count || i < b->count; i++) {
        const Shape *x = i < a->count ? a->items[i] : NULL, *y = i < b->count ? b->items[i] : NULL;
        if (!x || !y || x->kind != y->kind) return differs_from(same, x, y);
        switch (x->kind) {
        case SHAPE_ACQUIRE: break;
        case SHAPE_LEAVE:
            if (x->levels != y->levels || x->levels == LEAVES_BLOCK || x->stmt->leave.kind != y->stmt->leave.kind) return differs_from(same, x, y);
            break;
        case SHAPE_BLOCK: /* one that is left: never the same */
        case SHAPE_GRID:
            if (!same_list(same, &x->body, &y->body)) return differs_from(same, x, y);
            break;
        case SHAPE_FOR:
            if (!same_for(same, x, y)) return differs_from(same, x, y);
            break;
        case SHAPE_IF:
            if (!same_branch(same, x, y)) return differs_from(same, x, y);
            break;
        }
    }
    return true;
}

bool shapes_same(Balance *balance, const Role *const *roles, const Shapes *shapes, const Shape **apart) {
    Same same = {.balance = balance, .roles = {roles[0], roles[1]}, .apart = apart};
    apart[0] = apart[1] = NULL;
    size_t symbols = balance->prog->symbols.count;
    for (int side = 0; side < 2; side++) {
        size_t count = same.roles[side]->locals.count;
        same.symbols[side] = NEW_ARRAY(balance->arena, int, count + 1);
        for (size_t i = 0; i < count; i++) same.symbols[side][i] = -1;
    }
    bool equal = same_list(&same, &shapes[0], &shapes[1]);
    balance->prog->symbols.count = symbols;
    return equal;
}
