/* Reads before a wait: parts of a statement that need not wait for matrix instructions.
 *
 * Values that depend on fewer indexes than the statement - a scale for each row, or block - are
 * few per thread. They are loaded, and combined with each other, while the matrix unit runs.
 * Values that would need more registers are read after the wait. */
#include "derive/tiles.h"

#define VALUES_MOST 32 /* most values per thread for a statement */

typedef struct Finder {
    Arena *arena;
    const Tile *tile;
    uint32_t all; /* indexes of the statement */
    Ahead *ahead;
    int64_t values;           /* per thread, so far */
    VEC(const Expr *) reads;  /* that are evaluated before the wait */
    VEC(const Expr *) others; /* all reads of the statement */
} Finder;

static void note_read(Expr *expr, void *data) {
    Finder *f = data;
    if (expr->kind == X_READ) vec_push(f->arena, &f->reads, expr);
}

static void note_other(Expr *expr, void *data) {
    Finder *f = data;
    if (expr->kind == X_READ) vec_push(f->arena, &f->others, expr);
}

typedef struct Kinds {
    bool reads, registers;
} Kinds;

static void note_kind(Expr *expr, void *data) {
    Kinds *kinds = data;
    if (expr->kind != X_READ) return;
    kinds->reads = true;
    if (expr->read->space == SPACE_REGISTER) kinds->registers = true;
}

/* Number of combinations of these indexes in the elements of one thread: for each spread with
 * one of the indexes, the number of its register digits' values. */
static int64_t places_of(const RegisterLayout *layout, uint32_t indexes) {
    int64_t places = 1;
    for (int s = 0; s < layout->count; s++) {
        const Spread *spread = &layout->spreads[s];
        bool part = false;
        for (int m = 0; m < spread->members; m++) part |= indexes >> spread->axes[m] & 1;
        for (int d = 0; d < spread->count && part; d++)
            if (!spread->digits[d].in_thread &&
                __builtin_mul_overflow(places, spread->digits[d].extent, &places))
                return INT64_MAX;
    }
    return places;
}

static bool is_listed(const Ahead *ahead, const Expr *expr) {
    for (size_t i = 0; i < ahead->reads.count; i++)
        if (ahead->reads.items[i].expr == expr) return true;
    return false;
}

/* Adds the expression; false: there is no room */
static bool take(Finder *f, const Expr *expr) {
    if ((expr->indexes & f->all) == f->all) return false;
    if (is_listed(f->ahead, expr)) return true;
    int64_t places = places_of(f->tile->spread, expr->indexes);
    if (places > VALUES_MOST - f->values) return false;
    f->values += places;
    int *first = plan_first(f->arena, f->tile->spread, expr->indexes, 1);
    vec_push(f->arena, &f->ahead->reads, (AheadRead){expr, first});
    expr_visit(f->arena, (Expr *)(uintptr_t)expr, note_read, f);
    return true;
}

static void consider(Finder *f, Expr *expr) {
    Kinds kinds = {false, false};
    expr_visit(f->arena, (Expr *)(uintptr_t)expr, note_kind, &kinds);
    if (!kinds.reads || (!kinds.registers && take(f, expr))) return;
    if (expr->kind == X_REDUCE || expr->kind == X_SCAN) return;
    ExprParts parts = expr_parts(expr);
    for (int i = 0; i < parts.count; i++) consider(f, parts.items[i]);
}

/* ---- the release after the statement --------------------------------------------------------- */

static bool closes_tile(const Row *row) {
    return row->kind == ROW_CLOSE && row->object == OBJECT_TILE;
}

/* The release of a stage, or its move to a late set, directly after the statement at `at`; -1:
 * none */
static int release_after(const FlowCode *code, const RowsPlan *plan, int at) {
    if (plan->passes[at]) return -1;
    do at++;
    while (closes_tile(code_row(code, at)));
    const Row *row = code_row(code, at);
    return row_releases(row->kind) && !row->leaving ? at : -1;
}

static bool has(const Expr *const *items, size_t count, const Expr *expr) {
    for (size_t i = 0; i < count; i++)
        if (items[i] == expr) return true;
    return false;
}

/* A stage that only the reads before the wait still need is released at the wait. */
static bool needs_no_more(const Finder *f, const Role *role, int handle) {
    if (role->handles.items[handle].end != END_CONSUME) return false;
    for (size_t i = 0; i < f->others.count; i++) {
        const Access *read = f->others.items[i]->read;
        if (read->space == SPACE_STAGE && read->object == handle &&
            !has(f->reads.items, f->reads.count, f->others.items[i]))
            return false;
    }
    return true;
}

/* Reads before a wait know all elements of a thread at once. */
static bool is_unrolled(const RegisterLayout *layout) {
    bool unrolled = true;
    for (int s = 0; s < layout->count; s++) {
        const Spread *spread = &layout->spreads[s];
        unrolled &= spread->digits[spread->count - 1].place != TILES_LOOPED;
    }
    return unrolled;
}

/* ---- plan ------------------------------------------------------------------------------------ */

static bool leaves_in_flight(const Waits *waits) {
    for (size_t i = 0; i < waits->count; i++)
        if (waits->items[i].in_flight) return true;
    return false;
}

static Ahead *ahead_of(Arena *arena, const FlowCode *code, const RowsPlan *plan, int at) {
    const Tile *tile = code_row(code, at)->tile;
    const Access *target = &tile->target;
    Ahead *ahead = NEW(arena, Ahead);
    Finder f = {.arena = arena,
                .tile = tile,
                .ahead = ahead,
                .all = (uint32_t)((1ull << tile->space.bound) - 1)};
    const Scaled *scaled = plan->scaled[at];
    Expr *value = scaled && scaled->value ? scaled->value : tile->value;
    consider(&f, value);
    expr_visit(arena, value, note_other, &f);
    for (int axis = 0; axis < target->rank; axis++)
        expr_visit(arena, target->subs[axis], note_other, &f);
    ahead->release = release_after(code, plan, at);
    if (ahead->release >= 0 &&
        !needs_no_more(&f, code->role, code_row(code, ahead->release)->handle))
        ahead->release = -1;
    return ahead;
}

void plan_ahead(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    plan->ahead = NEW_ARRAY(arena, Ahead *, code->rows.count);
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = code_row(code, (int)at);
        if (row->kind != ROW_TILE || row->tile->class != TILE_MAP || row->tile->spread == NULL ||
            row->tile->where != NULL || !is_unrolled(row->tile->spread))
            continue;
        if (leaves_in_flight(&plan->waits[at]))
            plan->ahead[at] = ahead_of(arena, code, plan, (int)at);
    }
}
