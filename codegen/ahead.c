/* Reads ahead of a wait: a statement that must wait for matrix instructions, and its points in; those of its reads that do not, made before it.
 *
 * What depends on fewer indexes than the statement runs over - a scale of each row, of a block - is few values a thread. They are loaded, and combined
 * as far as they are combined with one another, while the matrix unit runs. What a thread would have to hold of more stays where it is read. */
#include "codegen/gen.h"

#define VALUES_MOST 32 /* a thread's, of a statement */

typedef struct Early {
    const Expr *expr;
    Point *point; /* where it was evaluated */
    Value value;
} Early;

struct Ahead {
    Gen *gen;
    Point **points;
    size_t count;
    uint32_t all; /* indexes of the statement */
    VEC(Early) early;
    VEC(const Expr *) reads; /* that are among them */
};

typedef struct Kinds {
    bool reads, registers;
} Kinds;

static void note_kind(Expr *expr, void *data) {
    Kinds *kinds = data;
    if (expr->kind != X_READ) return;
    kinds->reads = true;
    if (expr->read->space == SPACE_REGISTER) kinds->registers = true;
}

static Kinds kinds_of(Gen *gen, const Expr *expr) {
    Kinds kinds = {false, false};
    expr_visit(gen->arena, (Expr *)(uintptr_t)expr, note_kind, &kinds);
    return kinds;
}

static bool same_place(const Point *a, const Point *b, uint32_t indexes) {
    for (int i = 0; i < PROG_MAX_INDEXES; i++) {
        const Lin *x = &a->indexes[i], *y = &b->indexes[i];
        if ((indexes >> i & 1) && (x->add != y->add || x->reg.class != y->reg.class || x->reg.id != y->reg.id))
            return false;
    }
    return true;
}

static const Early *find(const Ahead *ahead, const Expr *expr, const Point *point) {
    for (size_t i = 0; i < ahead->early.count; i++) {
        const Early *early = &ahead->early.items[i];
        if (early->expr == expr && same_place(early->point, point, expr->indexes)) return early;
    }
    return NULL;
}

static void note_read(Expr *expr, void *data) {
    Ahead *ahead = data;
    if (expr->kind == X_READ) vec_push(ahead->gen->arena, &ahead->reads, expr);
}

/* Notes the expression at each place where it differs, as long as there is room; false: there is not */
static bool take(Ahead *ahead, const Expr *expr) {
    size_t before = ahead->early.count;
    if ((expr->indexes & ahead->all) == ahead->all) return false;
    for (size_t p = 0; p < ahead->count; p++) {
        if (find(ahead, expr, ahead->points[p])) continue;
        if (ahead->early.count == VALUES_MOST) {
            ahead->early.count = before;
            return false;
        }
        vec_push(ahead->gen->arena, &ahead->early, (Early){.expr = expr, .point = ahead->points[p]});
    }
    expr_visit(ahead->gen->arena, (Expr *)(uintptr_t)expr, note_read, ahead);
    return true;
}

static void consider(Ahead *ahead, const Expr *expr) {
    Kinds kinds = kinds_of(ahead->gen, expr);
    if (!kinds.reads || (!kinds.registers && take(ahead, expr))) return;
    switch (expr->kind) {
    case X_UNARY: consider(ahead, expr->unary.operand); return;
    case X_BINARY:
        consider(ahead, expr->binary.left);
        consider(ahead, expr->binary.right);
        return;
    case X_SELECT:
        consider(ahead, expr->select.condition);
        consider(ahead, expr->select.then);
        consider(ahead, expr->select.otherwise);
        return;
    case X_CAST: consider(ahead, expr->cast); return;
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++) consider(ahead, expr->call.args[i]);
        return;
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX:
    case X_READ:
    case X_REDUCE: return;
    }
}

Ahead *ahead_read(Gen *gen, const Expr *value, int bound, Point **points, size_t count) {
    Ahead *ahead = NEW(gen->arena, Ahead);
    *ahead = (Ahead){.gen = gen, .points = points, .count = count, .all = (uint32_t)((1ull << bound) - 1)};
    consider(ahead, value);
    for (size_t i = 0; i < ahead->early.count; i++) {
        Early *early = &ahead->early.items[i];
        early->value = eval(gen, early->point, early->expr);
    }
    return ahead;
}

void ahead_know(const Ahead *ahead, Point *point) {
    for (size_t i = 0; i < ahead->early.count; i++) {
        const Early *early = &ahead->early.items[i];
        Point *home = point_home(point, early->expr);
        Value known;
        if (same_place(early->point, point, early->expr->indexes) && !point_knows(home, early->expr, &known))
            point_know(ahead->gen, home, early->expr, early->value);
    }
}

bool ahead_has(const Ahead *ahead, const Expr *read) {
    for (size_t i = 0; i < ahead->reads.count; i++)
        if (ahead->reads.items[i] == read) return true;
    return false;
}
