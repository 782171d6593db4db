/* Statements that include padding, for programs that intend it: a reduction that has another result
 * without it, and a variable that an iteration beyond the edge of a tensor changes. The checker
 * refuses them (P0219, P0236), whatever becomes of their results. */
#include "tests/adversary/machine.h"

/* True if the variable is not only added to: `y = y * 31 + e`, `v = max(v, e)` */
static bool updates_itself(const Stmt *stmt) {
    if (stmt->kind == S_SET)
        return stmt->op == '=' && expr_mentions(stmt->value, X_LOCAL, stmt->local);
    if (stmt->kind != S_TILE || stmt->target->kind != X_TILE) return false;
    return stmt->op == '*' ||
           (stmt->op == '=' && expr_mentions(stmt->value, X_TILE, stmt->target->of));
}

static void find_scaled(Machine *m, const Stmts *stmts) {
    for (size_t i = 0; i < stmts->count; i++) {
        const Stmt *stmt = stmts->items[i];
        if (updates_itself(stmt))
            m->scaled[stmt->kind == S_SET ? stmt->local : stmt->target->of] = true;
        find_scaled(m, &stmt->body);
        find_scaled(m, &stmt->otherwise);
    }
}

void padded_begin(Machine *m) {
    m->updated = -1;
    for (int r = 0; r < m->program->role_count; r++) find_scaled(m, &m->program->roles[r].body);
}

void padded_note(Machine *m) {
    const Program *program = m->program;
    bool intends = !program->matrix && !program->edges && !program->tails;
    if (intends && m->seen != NULL && m->stmt != NULL) m->seen[m->stmt->number].padded = true;
}

/* Zeros that are added change nothing, unless the iteration also changes the variable otherwise. */
void padded_update(Machine *m, Process *p, const Stmt *stmt, Value value) {
    int local = stmt->kind == S_SET ? stmt->local : stmt->target->of;
    bool own = stmt->kind == S_SET || stmt->target->kind == X_TILE;
    if (!value.pad || !own) return;
    if (updates_itself(stmt)) { /* padding of earlier iterations does not count again */
        m->updated = local;
        value = evaluate_expr(m, p, stmt->value);
        m->updated = -1;
        if (value.pad) padded_note(m);
    } else if (stmt->op != '=' && (m->scaled[local] || value.v != 0)) {
        padded_note(m);
    }
}
