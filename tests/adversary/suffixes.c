/* What follows a statement: `where c`, and the range of an index. */
#include "tests/adversary/wounds.h"

static const Expr *n(Program *program, int64_t value) { return number(program, value); }

/* Copies into stages take no condition. */
static bool takes_where(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_TILE && stmt->condition == NULL && !stmt->by_lanes &&
           !(stmt->target->kind == X_FIELD && stmt->value->kind == X_TENSOR);
}

/* A condition on the element, the tile, the instance or sizes */
static const Expr *element_condition(Program *program, const Stmt *stmt) {
    const Expr *axis = any_axis(program), *index = axis;
    const Expr *last = stmt->target->subs[stmt->target->rank - 1];
    if (expr_mentions(stmt->target, X_INDEX, 0)) index = index_of(program, 0);
    switch (pick(program, 8)) {
    case 0: return binary(program, DO_LT, index, n(program, pick(program, WIDE + 8)));
    case 1: return binary(program, DO_GE, index, n(program, pick(program, WIDE)));
    case 2: return binary(program, DO_LT, last, symbol(program, SYM_Q));
    case 3:
        return binary(program, DO_EQ, binary(program, DO_MOD, index, n(program, 2)),
                      binary(program, DO_MOD, axis, n(program, 2)));
    case 4: return binary(program, DO_EQ, expr_new(program, X_RANK, 0), n(program, 0));
    case 5: return binary(program, DO_LE, last, n(program, pick(program, 3 * WIDE)));
    case 6:
        if (!expr_mentions(stmt->value, X_REDUCE, -1))
            return binary(program, DO_GT, stmt->value, n(program, 0));
        return binary(program, DO_NE, index, n(program, pick(program, WIDE)));
    default: return condition_any(program);
    }
}

/* True where the condition is false; sometimes where it is true. Elements of tiles that one
 * statement leaves out are written by the next one, `where !c`. */
static const Expr *other_condition(Program *program, const Stmt *stmt, const Expr *condition) {
    bool opposite = often(program, 80);
    if (opposite && stmt->target->kind != X_TENSOR) return unary(program, DO_NOT, condition);
    return binary(program, DO_EQ, choose(program, condition, n(program, 1), n(program, 0)),
                  n(program, opposite ? 0 : 1));
}

bool wound_where(Program *program) {
    Site site;
    if (!site_draw(program, takes_where, &site)) return false;
    Stmt *stmt = site.list->items[site.at];
    if (stmt->target->rank == 0) return false;
    const Expr *condition = element_condition(program, stmt);
    if (often(program, 50)) { /* the other elements are stored by another statement */
        Stmt *other = stmt_copy(program, stmt);
        other->condition = other_condition(program, stmt, condition);
        stmts_insert(program, site.list, site.at + 1, other);
    }
    stmt->condition = condition;
    return true;
}

static bool has_index(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_TILE && expr_mentions(stmt->target, X_INDEX, 0);
}

/* The range that the index has anyway; or another one, which must be refused */
bool wound_range(Program *program) {
    Site site;
    if (!site_draw(program, has_index, &site)) return false;
    Stmt *stmt = site.list->items[site.at];
    int extents[MAX_INDEXES] = {0};
    find_extents(program, stmt->target, extents);
    find_extents(program, stmt->value, extents);
    if (extents[0] == 0) return false;
    stmt->ranged = extents[0] + (often(program, 85) ? 0 : 1);
    program->textual |= stmt->ranged != extents[0];
    return true;
}
