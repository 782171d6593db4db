/* Wounds of stages, instances, turns, and tensors that two roles use. */
#include "tests/adversary/wounds.h"

static const Expr *n(Program *program, int64_t value) { return number(program, value); }

/* ---- shares of instances --------------------------------------------------------------------- */

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

/* ---- turns and arrivals ---------------------------------------------------------------------- */

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

/* Selects lanes by a number that the checker does not know, or too few lanes */
static const Expr *other_lanes(Program *program) {
    const Expr *lane = expr_new(program, X_LANE, 0), *axis = any_axis(program);
    switch (pick(program, 4)) {
    case 0: return binary(program, DO_EQ, lane, symbol(program, SYM_Q));
    case 1: return binary(program, DO_LT, lane, data_of(program, axis));
    case 2:
        return binary(program, DO_AND, binary(program, DO_LT, lane, n(program, 1)),
                      binary(program, DO_GE, data_of(program, axis), n(program, 0)));
    default: return binary(program, DO_LT, lane, n(program, 1 + pick(program, 31)));
    }
}

bool wound_arrival(Program *program) {
    Site site;
    if (!site_draw(program, is_arrival, &site)) return false;
    Stmt *block = site.list->items[site.at], *arrive = block->body.items[0];
    program->textual = true;
    if (often(program, 65)) {
        arrive->condition = other_lanes(program);
        return true;
    }
    Stmt *guard = if_new(program, condition_any(program));
    stmts_add(program, &guard->body, arrive);
    block->body.items[0] = guard;
    return true;
}

bool wound_early(Program *program) {
    Site site;
    if (!site_draw(program, is_arrival, &site)) return false;
    Stmt *block = site.list->items[site.at];
    size_t at = site.at;
    while (at > 0 && !uses_stage(site.list->items[at - 1], block->body.items[0]->local)) at--;
    if (at == 0) return false;
    Stmt *early = stmt_new(program, S_UNSAFE);
    stmts_add(program, &early->body, stmts_remove(&block->body, 0));
    stmts_insert(program, site.list, at - 1, early);
    program->textual = true;
    return true;
}

static bool is_acquire(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return (stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE) && stmt->hint < 0;
}
static bool is_turn_of_stages(const Program *program, const Site *site, const Stmt *stmt) {
    return stmt->kind == S_TURN && program->roles[site->role].in_turn;
}

/* What fills the pipe becomes values of threads, which release stages in order; copies do not. */
static void fill_in_order(Program *program, int pipe) {
    Sites sites = program_sites(program);
    for (size_t i = 0; i < sites.count; i++) {
        Stmt *stmt = sites.items[i].list->items[sites.items[i].at];
        const Expr *target = stmt->target;
        if (stmt->kind == S_TILE && target->kind == X_FIELD && stmt->value->kind == X_TENSOR &&
            program->locals[target->of].pipe == pipe)
            stmt->value = binary(program, DO_ADD, stmt->value, n(program, 1));
    }
}

/* Often in a ring whose depth is no multiple of the number of instances: then only the order of the
 * other end's releases tells them the lap of a stage. */
bool wound_no_turn(Program *program) {
    Site site;
    if (!site_draw(program, is_turn_of_stages, &site)) return false;
    Stmt *turn = stmts_remove(site.list, site.at);
    for (size_t i = 0; i < turn->body.count; i++) {
        Stmt *stmt = turn->body.items[i];
        stmts_insert(program, site.list, site.at + i, stmt);
        if (!is_acquire(program, &site, stmt) || often(program, 20)) continue;
        int pipe = program->locals[stmt->local].pipe;
        program->pipes[pipe].depth |= 1;
        if (often(program, 70)) fill_in_order(program, pipe);
    }
    program->textual = true;
    return true;
}

/* ---- stages ---------------------------------------------------------------------------------- */

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
    program->textual = true; /* the number of bytes is known at compile time */
    return true;
}

static bool is_copied(const Program *program, const Site *site, const Stmt *stmt) {
    Part part = {.stmt = (Stmt *)stmt, .expr = stmt->value};
    (void)site;
    return stmt->kind == S_TILE && is_copy(program, &part);
}

/* Writes again: by the same copy, by a copy from another place, or by threads */
bool wound_again(Program *program) {
    Site site;
    if (!site_draw(program, is_copied, &site)) return false;
    Stmt *again = stmt_copy(program, site.list->items[site.at]);
    if (often(program, 50)) again->value = n(program, pick(program, 9));
    stmts_insert(program, site.list, site.at + pick(program, 2), again);
    return true;
}

static bool is_acquire_in_turn(const Program *program, const Site *site, const Stmt *stmt) {
    return program->roles[site->role].in_turn && is_acquire(program, site, stmt);
}

/* No wound, except if instances take turns */
bool wound_asked(Program *program) {
    Site site;
    bool found = often(program, 80) && site_draw(program, is_acquire_in_turn, &site);
    if (!found && (often(program, 60) || !site_draw(program, is_acquire, &site))) return false;
    Stmt *acquire = site.list->items[site.at], *hint = stmt_new(program, S_HINT);
    hint->local = local_new(program, LOCAL_HINT);
    program->locals[hint->local].is_let = true;
    hint->fresh = true;
    hint->pipe = acquire->pipe;
    hint->produce = acquire->produce;
    acquire->hint = hint->local;
    stmts_insert(program, site.list, site.at, hint);
    program->textual |= program->roles[site.role].in_turn;
    return true;
}

static bool is_element(const Program *program, const Part *part) {
    (void)program;
    return part->expr->kind == X_FIELD;
}

/* Uses a handle that is held elsewhere, was released or moved */
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

/* Reads a stage of which only the previous content is written, or nothing, or whose copy is in
 * flight */
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

/* The first pipe from which the statement acquires; -1: none */
static int pipe_of(const Stmt *stmt) {
    int pipe = stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE ? stmt->pipe : -1;
    for (size_t i = 0; i < stmt->body.count && pipe < 0; i++) pipe = pipe_of(stmt->body.items[i]);
    return pipe;
}

static int pipe_of_group(const Stmts *list, size_t at) {
    int pipe = -1;
    for (size_t i = at; i < end_of_group(list, at) && pipe < 0; i++) pipe = pipe_of(list->items[i]);
    return pipe;
}

/* Two adjacent hand-overs of different pipes, one of them a loop */
static bool begins_exchange(const Program *program, const Site *site, const Stmt *stmt) {
    if (!begins_group(program, site, stmt)) return false;
    size_t next = end_of_group(site->list, site->at);
    if (next >= site->list->count || site->list->items[next]->group == 0) return false;
    int first = pipe_of_group(site->list, site->at), second = pipe_of_group(site->list, next);
    bool loops = stmt->kind == S_FOR || site->list->items[next]->kind == S_FOR;
    return first >= 0 && second >= 0 && first != second && loops;
}

static void shorten_rings(Program *program, const Stmt *stmt) {
    bool acquires = stmt->kind == S_STAGE || stmt->kind == S_ACQUIRE;
    if (acquires && program->pipes[stmt->pipe].depth < 4) /* 4: several stages are held at once */
        program->pipes[stmt->pipe].depth = 1;
    for (size_t i = 0; i < stmt->body.count; i++) shorten_rings(program, stmt->body.items[i]);
}

/* Exchanges the statements of two adjacent events of the script; in a short ring that may
 * deadlock. */
bool wound_events(Program *program) {
    Site site;
    bool found = often(program, 90) && site_draw(program, begins_exchange, &site);
    if (!found && !site_draw(program, begins_group, &site)) return false;
    size_t middle = end_of_group(site.list, site.at);
    if (middle >= site.list->count || site.list->items[middle]->group == 0) return false;
    size_t end = end_of_group(site.list, middle);
    for (size_t i = middle; i < end; i++)
        stmts_insert(program, site.list, site.at + (i - middle), stmts_remove(site.list, i));
    for (size_t i = site.at; i < end && often(program, 70); i++)
        shorten_rings(program, site.list->items[i]);
    if (often(program, 40)) wound_words(program);
    return true;
}

/* ---- elements with two writers, or a writer and another reader ------------------------------- */

/* True if the index subscripts a tile without arithmetic, so that it has a range */
static bool stands_bare(const Expr *expr, int index) {
    if (expr == NULL) return false;
    bool found = stands_bare(expr->a, index) || stands_bare(expr->b, index);
    for (int s = 0; s < expr->rank && expr->kind != X_TENSOR; s++)
        found |= expr->subs[s]->kind == X_INDEX && expr->subs[s]->of == index;
    return found;
}

/* True for a subscript of a stage or `shared` tile: subscripts of a register tile are known at
 * compile time. */
static bool is_sub_of_tile(const Program *program, const Part *part) {
    if (!part->target || part->expr->kind != X_INDEX) return false;
    const Expr *target = part->stmt->target;
    bool in_memory = target->kind == X_FIELD ||
                     (target->kind == X_TILE && program->locals[target->of].kind == LOCAL_SHARED);
    return in_memory && stands_bare(part->stmt->value, part->expr->of);
}

bool wound_target(Program *program) {
    Part part;
    if (!part_draw(program, is_sub_of_tile, &part)) return false;
    const Expr *i = part.expr;
    switch (pick(program, 3)) {
    case 0: part_put(program, &part, binary(program, DO_DIV, i, n(program, 2))); break;
    case 1: part_put(program, &part, binary(program, DO_MOD, i, n(program, 8))); break;
    default: part_put(program, &part, binary(program, DO_MIN, i, n(program, 9))); break;
    }
    return true;
}

static bool is_tile_number(const Program *program, const Part *part) {
    const Expr *of = part->element;
    return of != NULL && is_of_tiles(program, of) && part->expr == of->subs[0];
}

/* Another tile of an array, or one outside of it: written twice, or never, or read instead */
bool wound_tile_number(Program *program) {
    Part part;
    if (!part_draw(program, is_tile_number, &part)) return false;
    const Pipe *pipe = &program->pipes[program->locals[part.element->of].pipe];
    int count = pipe->fields[part.element->field].extents[0];
    const Expr *e = part.expr, *axis = any_axis(program), *to = e;
    switch (pick(program, 7)) {
    case 0: to = n(program, pick(program, (uint32_t)count)); break;
    case 1: to = n(program, count); break;
    case 2: to = binary(program, DO_ADD, e, n(program, 1)); break;
    case 3: to = binary(program, DO_SUB, e, n(program, 1)); break;
    case 4: to = data_of(program, axis); break;
    case 5: to = binary(program, DO_MOD, data_of(program, axis), n(program, count)); break;
    default: to = binary(program, DO_MIN, e, n(program, count - 2)); break;
    }
    part_put(program, &part, to);
    return true;
}

static bool is_output(const Program *program, const Site *site, const Stmt *stmt) {
    (void)site;
    return stmt->kind == S_TILE && stmt->target->kind == X_TENSOR &&
           expr_mentions(stmt->value, X_TILE, -1) && !program->matrix;
}

/* Makes an output `inout`, and reads it at the written element or at another one */
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

/* Another role reads what one writes, unordered, or ordered by stages. */
bool wound_spy(Program *program) {
    Site from, to;
    if (!site_draw(program, is_output, &from) || !site_draw(program, is_output, &to)) return false;
    Stmt *written = from.list->items[from.at], *reader = to.list->items[to.at];
    if (from.role == to.role || from.loops > 0 ||
        program->roles[from.role].instances != program->roles[to.role].instances)
        return false;
    program->tensors[written->target->of].mode = TENSOR_INOUT;
    reader->value = binary(program, DO_ADD, reader->value, written->target);
    return true;
}
