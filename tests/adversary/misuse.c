/* Wounds of stages, instances, turns and tensors that two use. */
#include "tests/adversary/wounds.h"

static const Expr *n(Program *program, int64_t value) { return number(program, value); }

/* ---- shares of instances ---- */

static bool is_rank(const Program *program, const Part *part) {
    (void)program;
    return part->target && part->expr->kind == X_RANK;
}

bool wound_rank(Program *program) {
    Part part;
    if (!part_draw(program, is_rank, &part)) return false;
    part_put(program, &part, n(program, often(program, 70) ? 0 : 1));
    return true;
}

static bool is_hand_over(const Program *program, const Site *site, const Stmt *stmt) {
    bool several = program->roles[site->role].instances > 1;
    return several && (stmt->kind == S_STAGE || stmt->kind == S_FOR);
}

bool wound_uniform(Program *program) {
    Site site;
    if (!site_draw(program, is_hand_over, &site)) return false;
    Stmt *guard =
        if_new(program, binary(program, DO_EQ, expr_new(program, X_RANK, 0), n(program, 0)));
    stmts_add(program, &guard->body, site.list->items[site.at]);
    site.list->items[site.at] = guard;
    program->textual = true;
    return true;
}

/* ---- turns and arrivals ---- */

static bool is_turn(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_TURN;
}

bool wound_turn(Program *program) {
    Site site;
    if (!site_draw(program, is_turn, &site)) return false;
    Stmt *turn = site.list->items[site.at], *guard = if_new(program, condition_any(program));
    program->textual = true;
    if (often(program, 60)) {
        stmts_add(program, &guard->body, turn);
        site.list->items[site.at] = guard;
        return true;
    }
    Stmt *leave = stmt_new(program, S_LEAVE);
    leave->leave = often(program, 70) ? LEAVE_CONTINUE : LEAVE_BREAK;
    stmts_add(program, &guard->body, leave);
    bool inside = often(program, 60);
    Stmts *list = inside ? &turn->body : site.list;
    stmts_insert(program, list, inside ? pick(program, (uint32_t)list->count + 1) : site.at, guard);
    return true;
}

static bool is_arrival(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_UNSAFE && stmt->body.count > 0 && stmt->body.items[0]->kind == S_ARRIVE;
}

bool wound_arrival(Program *program) {
    Site site;
    if (!site_draw(program, is_arrival, &site)) return false;
    Stmt *block = site.list->items[site.at], *arrive = block->body.items[0];
    uint32_t dice = pick(program, 3);
    if (dice == 0) {
        const Expr *lane = expr_new(program, X_LANE, 0);
        arrive->condition = binary(program, DO_LT, lane, n(program, 1 + pick(program, 31)));
    } else if (dice == 1) {
        Stmt *guard = if_new(program, condition_any(program));
        stmts_add(program, &guard->body, arrive);
        block->body.items[0] = guard;
    } else { /* before the last uses */
        if (site.at == 0) return false;
        Stmt *early = stmt_new(program, S_UNSAFE);
        stmts_add(program, &early->body, stmts_remove(&block->body, 0));
        stmts_insert(program, site.list, site.at - 1, early);
    }
    program->textual = true;
    return true;
}

/* ---- stages ---- */

static bool is_copy(const Program *program, const Part *part) {
    const Expr *target = part->stmt->target;
    if (part->expr != part->stmt->value || target == NULL || target->kind != X_FIELD) return false;
    return part->expr->kind == X_TENSOR && !is_tiny(program, target);
}

bool wound_bytes(Program *program) {
    Part part;
    if (!part_draw(program, is_copy, &part)) return false;
    if (often(program, 40))
        part.stmt->by_lanes = true;
    else
        part_put(program, &part, binary(program, DO_ADD, part.expr, n(program, 1)));
    return true;
}

static bool is_element(const Program *program, const Part *part) {
    (void)program;
    return part->expr->kind == X_FIELD;
}

/* Of a handle that is held elsewhere, was released or moved */
bool wound_handle(Program *program) {
    Part part;
    int others[MAX_LOCALS], count = 0;
    if (!part_draw(program, is_element, &part)) return false;
    Sites sites = program_sites(program);
    for (size_t i = 0; i < sites.count; i++) {
        const Stmt *stmt = sites.items[i].list->items[sites.items[i].at];
        bool acquires = stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE;
        bool same = acquires && sites.items[i].role == part.role && stmt->local != part.expr->of;
        if (same && stmt->pipe == program->locals[part.expr->of].pipe && count < MAX_LOCALS)
            others[count++] = stmt->local;
    }
    if (count == 0) return false;
    Expr *other = expr_new(program, X_FIELD, 0);
    *other = *part.expr;
    other->of = others[pick(program, (uint32_t)count)];
    part_put(program, &part, other);
    program->textual = true;
    return true;
}

static bool is_computed(const Program *program, const Part *part) {
    const Expr *target = part->stmt->target;
    bool fills = target != NULL && target->kind == X_FIELD && part->expr == part->stmt->value;
    return fills && part->expr->kind != X_TENSOR && !is_tiny(program, target);
}

/* What was written of the stage before, or was not yet, or is on its way */
bool wound_produced(Program *program) {
    Part part;
    if (!part_draw(program, is_computed, &part)) return false;
    const Expr *target = part.stmt->target, *i = index_of(program, 0);
    const Pipe *pipe = &program->pipes[program->locals[target->of].pipe];
    int field = (int)pick(program, (uint32_t)pipe->field_count);
    const Field *shape = &pipe->fields[field];
    const Expr *row = shape->rank == 2 ? n(program, pick(program, (uint32_t)shape->extents[0])) : i;
    const Expr *read = element(program, X_FIELD, target->of, field, row, row == i ? NULL : i, NULL);
    part_put(program, &part, binary(program, DO_ADD, part.expr, read));
    program->textual = true;
    return true;
}

static bool begins_group(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program;
    return stmt->group > 0 &&
           (site->at == 0 || site->list->items[site->at - 1]->group != stmt->group);
}

static size_t end_of_group(const Stmts *list, size_t at) {
    int group = list->items[at]->group;
    while (at < list->count && list->items[at]->group == group) at++;
    return at;
}

/* What was made for one statement of the script comes after what was made for the next one. */
bool wound_events(Program *program) {
    Site site;
    if (!site_draw(program, begins_group, &site)) return false;
    size_t middle = end_of_group(site.list, site.at);
    if (middle >= site.list->count || site.list->items[middle]->group == 0) return false;
    size_t end = end_of_group(site.list, middle);
    for (size_t i = middle; i < end; i++)
        stmts_insert(program, site.list, site.at + (i - middle), stmts_remove(site.list, i));
    return true;
}

/* ---- elements that two write, or one writes and another reads ---- */

static bool is_sub_of_tile(const Program *program, const Part *part) {
    const Expr *target = part->stmt->target;
    if (!part->target || part->expr->kind != X_INDEX || target->kind == X_TENSOR) return false;
    return target->kind == X_FIELD || program->locals[target->of].kind == LOCAL_SHARED;
}

bool wound_target(Program *program) {
    Part part;
    if (!part_draw(program, is_sub_of_tile, &part)) return false;
    const Expr *i = part.expr;
    switch (pick(program, 3)) {
    case 0: part_put(program, &part, binary(program, DO_DIV, i, n(program, 2))); break;
    case 1: part_put(program, &part, binary(program, DO_MOD, i, n(program, 8))); break;
    default: part_put(program, &part, binary(program, DO_SUB, n(program, WIDE - 2), i)); break;
    }
    return true;
}

static bool is_output(const Program *program, const Site *site, const Stmt *stmt) {
    (void)site;
    return stmt->kind == S_TILE && stmt->target->kind == X_TENSOR &&
           expr_mentions(stmt->value, X_TILE, -1) && !program->matrix;
}

/* An output becomes `inout`, and is read where it is written, or beside that */
bool wound_reader(Program *program) {
    Site site;
    if (!site_draw(program, is_output, &site)) return false;
    Stmt *stmt = site.list->items[site.at];
    Expr *read = expr_new(program, X_TENSOR, 0);
    *read = *stmt->target;
    program->tensors[read->of].mode = TENSOR_INOUT;
    bool one = read->rank == 1;
    if (often(program, 75))
        read->subs[0] = binary(program, often(program, 50) ? DO_SUB : DO_ADD, read->subs[0],
                               n(program, one ? WIDE : 1));
    stmt->value = binary(program, DO_ADD, stmt->value, read);
    return true;
}
