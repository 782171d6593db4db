/* Wounds: changes that make a valid program wrong in most cases. Each is an error that a path
 * rule must find. */
#include "tests/adversary/wounds.h"

typedef bool (*WoundFunction)(Program *program);

typedef VEC(Part) Parts;

static const Expr *n(Program *program, int64_t value) { return number(program, value); }

/* ---- parts of expressions -------------------------------------------------------------------- */

static void add_parts(Program *program, Parts *parts, Part part, const Expr *expr, bool target) {
    if (expr == NULL) return;
    part.expr = expr;
    part.target = target;
    vec_push(program->arena, parts, part);
    bool decides = part.decides;
    add_parts(program, parts, part, expr->a, target);
    add_parts(program, parts, part, expr->b, target);
    part.decides = true;
    add_parts(program, parts, part, expr->c, false);
    part.element = expr;
    for (int s = 0; s < expr->rank; s++) add_parts(program, parts, part, expr->subs[s], target);
    part.decides = decides;
}

static Parts all_parts(Program *program) {
    Parts parts = {0};
    Sites sites = program_sites(program);
    for (size_t i = 0; i < sites.count; i++) {
        Stmt *stmt = sites.items[i].list->items[sites.items[i].at];
        Part part = {.stmt = stmt, .role = sites.items[i].role};
        part.decides = true;
        bool named = stmt->range >= 0;
        part.slot = &stmt->hi;
        if (!named) add_parts(program, &parts, part, stmt->hi, false);
        part.slot = &stmt->condition;
        add_parts(program, &parts, part, stmt->condition, false);
        part.decides = false;
        part.slot = &stmt->value;
        add_parts(program, &parts, part, stmt->value, false);
        part.slot = &stmt->target;
        add_parts(program, &parts, part, stmt->target, true);
    }
    return parts;
}

void part_put(Program *program, const Part *part, const Expr *to) {
    *part->slot = expr_replace(program, *part->slot, part->expr, to);
}

bool part_draw(Program *program, PartTest fits, Part *out) {
    Parts parts = all_parts(program), found = {0};
    for (size_t i = 0; i < parts.count; i++)
        if (fits(program, &parts.items[i])) vec_push(program->arena, &found, parts.items[i]);
    if (found.count == 0) return false;
    *out = found.items[pick(program, (uint32_t)found.count)];
    return true;
}

bool site_draw(Program *program, SiteTest fits, Site *out) {
    Sites sites = program_sites(program), found = {0};
    for (size_t i = 0; i < sites.count; i++) {
        const Site *site = &sites.items[i];
        if (fits(program, site, site->list->items[site->at]))
            vec_push(program->arena, &found, *site);
    }
    if (found.count == 0) return false;
    *out = found.items[pick(program, (uint32_t)found.count)];
    return true;
}

/* ---- writers --------------------------------------------------------------------------------- */

static bool is_output_place(const Program *program, const Part *part) {
    (void)program;
    return part->target && part->stmt->target->kind == X_TENSOR &&
           (part->expr->kind == X_LOCAL || part->expr->kind == X_RANK);
}
static bool is_output_sub(const Program *program, const Part *part) {
    (void)program;
    return part->target && part->stmt->target->kind == X_TENSOR && part->expr != part->stmt->target;
}

static bool wound_place(Program *program) {
    Part part;
    if (!part_draw(program, is_output_place, &part)) return false;
    const Expr *e = part.expr, *axis = any_axis(program), *to = e;
    switch (pick(program, 7)) {
    case 0: to = n(program, 0); break;
    case 1: to = binary(program, DO_DIV, e, n(program, 2)); break;
    case 2: to = binary(program, DO_MOD, e, n(program, 2 + pick(program, 3))); break;
    case 3: to = data_of(program, axis); break;
    case 4: to = binary(program, DO_MUL, e, n(program, 65536)); break;
    case 5: to = binary(program, DO_MIN, e, n(program, 2)); break;
    default: to = symbol(program, SYM_Q); break;
    }
    part_put(program, &part, to);
    return true;
}

static bool wound_overlap(Program *program) {
    Part part;
    if (!part_draw(program, is_output_sub, &part)) return false;
    const Expr *e = part.expr;
    if (often(program, 50))
        part_put(program, &part,
                 binary(program, often(program, 50) ? DO_ADD : DO_SUB, e,
                        n(program, 1 + pick(program, 16))));
    else
        part_put(program, &part, binary(program, DO_DIV, e, n(program, 2)));
    return true;
}

static bool is_write(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_TILE && stmt->target->kind == X_TENSOR;
}
static bool is_grid(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_GRID;
}

/* Another statement, arm or role writes the same elements. */
static bool wound_writer(Program *program) {
    Site from, to;
    if (!site_draw(program, is_write, &from)) return false;
    Stmt *stmt = from.list->items[from.at];
    uint32_t dice = pick(program, 3);
    if (dice == 0) { /* under a condition, and its opposite elsewhere */
        Stmt *arms =
            if_new(program,
                   binary(program, DO_EQ, binary(program, DO_MOD, any_axis(program), n(program, 2)),
                          n(program, 0)));
        Stmt *other = stmt_copy(program, stmt);
        Expr *target = expr_new(program, X_TENSOR, 0);
        *target = *stmt->target;
        int last = often(program, 50) ? 0 : target->rank - 1;
        target->subs[last] =
            binary(program, DO_SUB, target->subs[last], n(program, 1 + pick(program, 9)));
        other->target = target;
        stmts_add(program, &arms->body, stmt);
        stmts_add(program, &arms->otherwise, other);
        from.list->items[from.at] = arms;
        return true;
    }
    if (!site_draw(program, is_grid, &to) || to.role == from.role || from.loops > 0) return false;
    Stmt *copy = assign(program, stmt->target, '=', n(program, 5));
    Stmt *guard = copy;
    if (dice == 1) {
        guard = if_new(program, binary(program, DO_GT, symbol(program, SYM_Q), n(program, 1)));
        stmts_add(program, &guard->body, copy);
    }
    int tile = tile_new(program, LOCAL_TILE, 1, WIDE, 0);
    Stmt *declare = stmt_new(program, S_DECLARE);
    declare->local = tile;
    declare->value = n(program, 5);
    if (expr_mentions(stmt->target, X_INDEX, 0)) /* gives the index its extent */
        copy->value = element(program, X_TILE, tile, 0, index_of(program, 0), NULL, NULL);
    Stmt *grid = to.list->items[to.at];
    stmts_insert(program, &grid->body, 0, declare);
    stmts_add(program, &grid->body, guard);
    return true;
}

static bool writes_output(const Program *program, const Site *site, const Stmt *stmt) {
    return site->in_grid && is_write(program, site, stmt) && stmt->target->rank > 0;
}

/* An output in a loop, or by instances, at places that tiles share: `Y[t + 5*c] = c` */
static bool wound_iterations(Program *program) {
    Site site;
    if (!site_draw(program, writes_output, &site)) return false;
    const Stmt *stmt = site.list->items[site.at];
    bool instances = program->roles[site.role].instances > 1 && often(program, 40);
    Stmt *loop = for_new(program, local_new(program, LOCAL_LOOP), n(program, 2 + pick(program, 3)));
    const Expr *counter = instances ? expr_new(program, X_RANK, 0) : local_of(program, loop->local);
    Expr *target = expr_new(program, X_TENSOR, 0);
    *target = *stmt->target;
    int at = (int)pick(program, (uint32_t)target->rank);
    const Expr *step = binary(program, DO_MUL, counter, n(program, 1 + pick(program, 9)));
    if (often(program, 80)) target->subs[at] = binary(program, DO_ADD, target->subs[at], step);
    const Expr *value =
        often(program, 60) ? binary(program, DO_ADD, stmt->value, counter) : stmt->value;
    Stmt *copy = assign(program, target, stmt->op, value);
    if (often(program, 30)) copy->condition = binary(program, DO_LE, counter, any_axis(program));
    if (!instances) stmts_add(program, &loop->body, copy);
    site.list->items[site.at] = instances ? copy : loop;
    return true;
}

/* Tiles are next to each other: an element may be written by other instructions in another tile. */
static bool writes_flat_output(const Program *program, const Site *site, const Stmt *stmt) {
    return writes_output(program, site, stmt) && stmt->target->rank == 1;
}

/* What other tiles write must not be read meanwhile. */
static bool adds_to_output(const Program *program, const Site *site, const Stmt *stmt) {
    return writes_output(program, site, stmt) && stmt->op != '=';
}

/* The value of an output at this place, if all that differs between tiles is the place */
static const Expr *value_of_place(Program *program, const Expr *target) {
    const Expr *sum = n(program, pick(program, 9));
    for (int i = 0; i < target->rank && often(program, 80); i++)
        sum = binary(program, DO_ADD, sum,
                     binary(program, DO_MUL, target->subs[i], n(program, pick(program, 4))));
    return sum;
}

static const Expr *extent_of(Program *program, int tensor, int axis) {
    const Tensor *row = &program->tensors[tensor];
    int symbol_of = row->extents[axis].symbol;
    return symbol_of >= 0 ? symbol(program, (Symbol)symbol_of)
                          : n(program, row->extents[axis].number);
}

/* Tiles write elements of each other again: `Y[min(t*32, N - 32) + i]`, `Y[t*16 + i]`, in a loop
 * `Y[t*32 + i + 3*c]`; the value is often the same, by another instruction of the statement. */
static bool wound_again_in_tiles(Program *program) {
    Site site;
    SiteTest fits = often(program, 75) ? writes_flat_output : writes_output;
    if (!site_draw(program, often(program, 40) ? adds_to_output : fits, &site)) return false;
    Stmt *stmt = stmt_copy(program, site.list->items[site.at]), *loop = NULL;
    Expr *target = expr_new(program, X_TENSOR, 0);
    *target = *stmt->target;
    int at = (int)pick(program, (uint32_t)target->rank);
    const Expr *sub = target->subs[at], *axis = any_axis(program);
    const Expr *i = expr_mentions(sub, X_INDEX, -1) ? index_of(program, 0) : NULL;
    const Expr *most = extent_of(program, target->of, at), *by = n(program, 1 + pick(program, 32));
    switch (stmt->op != '=' && often(program, 60) ? 0 : pick(program, i ? 5 : 2)) {
    case 0:
        loop = for_new(program, local_new(program, LOCAL_LOOP), n(program, 2 + pick(program, 3)));
        by = binary(program, DO_MUL, local_of(program, loop->local), by);
        target->subs[at] = binary(program, DO_ADD, sub, by);
        if (often(program, stmt->op == '=' ? 20 : 80)) /* tiles stay apart: elements of others */
            stmt->condition = binary(program, DO_LE, local_of(program, loop->local),
                                     often(program, 70) ? n(program, 0) : any_axis(program));
        break;
    case 1: target->subs[at] = binary(program, DO_DIV, sub, n(program, 2)); break;
    case 2: target->subs[at] = binary(program, DO_ADD, binary(program, DO_MUL, axis, by), i); break;
    default:
        most =
            binary(program, DO_MAX, binary(program, DO_SUB, most, n(program, 32)), n(program, 0));
        most = binary(program, DO_MIN, binary(program, DO_MUL, axis, n(program, 32)), most);
        target->subs[at] = binary(program, DO_ADD, most, i);
    }
    int extents[MAX_INDEXES] = {0};
    find_extents(program, stmt->target, extents);
    find_extents(program, stmt->value, extents);
    stmt->target = target;
    bool one = extents[1] == 0 && extents[2] == 0; /* only one index can have a range */
    if (one && often(program, 70)) {
        stmt->value = value_of_place(program, target);
        /* only the tensor has the index now, or had it before */
        if (extents[0] > 0) stmt->ranged = extents[0];
    }
    if (loop) stmts_add(program, &loop->body, stmt);
    site.list->items[site.at] = loop ? loop : stmt;
    return true;
}

/* ---- statements removed, doubled, or moved --------------------------------------------------- */

static bool is_fill(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_TILE && stmt->target->kind == X_FIELD;
}
static bool is_setting(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_SET || (stmt->kind == S_TILE && stmt->target->kind != X_TENSOR);
}
static bool is_begun(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program, (void)site;
    return stmt->kind == S_DECLARE && stmt->value != NULL;
}
static bool is_declared(const Program *program, const Site *site, const Stmt *stmt) {
    return stmt->kind == S_DECLARE && site->in_grid &&
           program->locals[stmt->local].kind != LOCAL_SHARED;
}
static bool is_scalar_in_grid(const Program *program, const Site *site, const Stmt *stmt) {
    return stmt->kind == S_DECLARE && site->in_grid && site->depth == 1 &&
           program->locals[stmt->local].kind == LOCAL_SCALAR;
}
static bool is_plain(const Program *program, const Site *site, const Stmt *stmt) {
    (void)program;
    return site->in_grid && stmt->kind != S_DECLARE && stmt->kind != S_ACQUIRE &&
           stmt->kind != S_HINT;
}

static bool is_fill_in_loop(const Program *program, const Site *site, const Stmt *stmt) {
    return site->loops > 0 && is_fill(program, site, stmt);
}

/* True for a write to a stage that moves from name to name in the same loop */
static bool is_fill_in_rotation(const Program *program, const Site *site, const Stmt *stmt) {
    if (!is_fill_in_loop(program, site, stmt)) return false;
    for (size_t i = 0; i < site->list->count; i++) {
        const Stmt *move = site->list->items[i];
        int handle = stmt->target->of;
        if (move->kind == S_MOVE && (move->local == handle || move->other == handle)) return true;
    }
    return false;
}

static bool wound_fill(Program *program) {
    Site site;
    SiteTest wanted = program->theme == THEME_ROTATION ? is_fill_in_rotation : is_fill_in_loop;
    if (!(often(program, 70) && site_draw(program, wanted, &site)) &&
        !site_draw(program, is_fill, &site))
        return false;
    stmts_remove(site.list, site.at);
    return true;
}

const Expr *data_of(Program *program, const Expr *sub) {
    int data = -1;
    for (int i = 0; i < program->tensor_count; i++)
        if (program->tensors[i].contents == FILL_DATA && program->tensors[i].rank == 1) data = i;
    if (data < 0) return symbol(program, SYM_P);
    return element(program, X_TENSOR, data, 0, sub, NULL, NULL);
}

const Expr *condition_any(Program *program) {
    const Expr *left = often(program, 50) ? any_axis(program) : symbol(program, SYM_Q);
    return binary(program, often(program, 50) ? DO_LT : DO_GE, left,
                  n(program, 1 + pick(program, 3)));
}

/* Makes an assignment conditional */
static bool wound_condition(Program *program) {
    Site site;
    if (!site_draw(program, is_setting, &site)) return false;
    Stmt *guard = if_new(program, condition_any(program));
    const Stmt *around = site.depth > 0 ? site.around[site.depth - 1] : NULL;
    if (around != NULL && around->kind == S_FOR && often(program, 60))
        guard->condition = binary(program, often(program, 70) ? DO_EQ : DO_GT,
                                  local_of(program, around->local), n(program, 0));
    stmts_add(program, &guard->body, site.list->items[site.at]);
    site.list->items[site.at] = guard;
    return true;
}

static bool wound_beginning(Program *program) {
    Site site;
    if (!site_draw(program, is_begun, &site)) return false;
    site.list->items[site.at]->value = NULL;
    return true;
}

static bool wound_setting(Program *program) {
    Site site;
    if (!site_draw(program, is_setting, &site)) return false;
    stmts_remove(site.list, site.at);
    return true;
}

static bool names(const Stmt *stmt, int local) {
    const Expr *parts[] = {stmt->value, stmt->target, stmt->condition, stmt->hi};
    bool found = stmt->local == local;
    for (size_t i = 0; i < COUNT_OF(parts); i++) found |= expr_mentions(parts[i], X_LOCAL, local);
    for (size_t i = 0; i < stmt->body.count; i++) found |= names(stmt->body.items[i], local);
    for (size_t i = 0; i < stmt->otherwise.count; i++)
        found |= names(stmt->otherwise.items[i], local);
    return found;
}

/* The first loop of the list, after `at`, that uses the local; NULL: other statements use it, or
 * none */
static Stmt *loop_of_local(const Stmts *list, size_t at, int local) {
    Stmt *loop = NULL;
    for (size_t i = at + 1; i < list->count; i++) {
        if (!names(list->items[i], local)) continue;
        if (loop != NULL || list->items[i]->kind != S_FOR) return NULL;
        loop = list->items[i];
    }
    return loop;
}

static bool is_scalar_of_loop(const Program *program, const Site *site, const Stmt *stmt) {
    return is_scalar_in_grid(program, site, stmt) &&
           loop_of_local(site->list, site->at, stmt->local) != NULL;
}

/* Moves the declaration into the loop that sets the variable, without its initial value */
static bool wound_inward(Program *program) {
    Site site;
    if (!site_draw(program, is_scalar_of_loop, &site)) return false;
    Stmt *declare = site.list->items[site.at];
    Stmt *loop = loop_of_local(site.list, site.at, declare->local);
    stmts_remove(site.list, site.at);
    if (declare->value != NULL && often(program, 75)) {
        const Expr *first = binary(program, DO_EQ, local_of(program, loop->local), n(program, 0));
        Stmt *begin = stmt_new(program, S_SET), *guard = if_new(program, first);
        begin->local = declare->local;
        begin->value = declare->value;
        stmts_add(program, &guard->body, begin);
        stmts_insert(program, &loop->body, 0, guard);
    }
    declare->value = NULL;
    stmts_insert(program, &loop->body, 0, declare);
    return true;
}

/* Moves the declaration out of the loop over the grid */
static bool wound_outward(Program *program) {
    Site site;
    if (!site_draw(program, is_declared, &site)) return false;
    Stmt *stmt = site.list->items[site.at];
    if (stmt->value != NULL && stmt->value->kind != X_NUMBER) return false;
    stmts_remove(site.list, site.at);
    stmts_insert(program, &program->roles[site.role].body, 0, stmt);
    return true;
}

static bool wound_missing(Program *program) {
    Site site;
    if (!site_draw(program, is_plain, &site)) return false;
    stmts_remove(site.list, site.at);
    program->textual = true;
    return true;
}

static bool wound_order(Program *program) {
    Site site;
    if (!site_draw(program, is_plain, &site) || site.at + 1 >= site.list->count) return false;
    Stmt *stmt = stmts_remove(site.list, site.at);
    stmts_insert(program, site.list, site.at + 1, stmt);
    program->textual = true;
    return true;
}

static bool wound_twice(Program *program) {
    Site site;
    if (!site_draw(program, is_plain, &site)) return false;
    Stmt *stmt = site.list->items[site.at];
    if (stmt->kind == S_GRID || stmt->kind == S_TURN) return false;
    stmts_insert(program, site.list, site.at, stmt_copy(program, stmt));
    program->textual = true;
    return true;
}

/* ---- selection ------------------------------------------------------------------------------- */

static const struct {
    const char *name;
    WoundFunction apply;
    int weight;
    Theme theme; /* emphasised by this theme */
} rows[] = {{"a number", wound_number, 6, THEME_WRAPS},
            {"wrapping arithmetic", wound_wrap, 8, THEME_WRAPS},
            {"a formula that wraps", wound_equivalent, 14, THEME_WRAPS},
            {"data that wraps", wound_datum, 40, THEME_STAGES},
            {"another sign", wound_sign, 8, THEME_WRAPS},
            {"bits", wound_bits, 8, THEME_WRAPS},
            {"other words", wound_words, 6, THEME_WRAPS},
            {"a clamp dropped", wound_clamp, 6, THEME_WRAPS},
            {"a divisor", wound_divisor, 8, THEME_WRAPS},
            {"a guard of a divisor", wound_guard, 24, THEME_PADDING},
            {"a bound of a parameter dropped", wound_requires, 3, THEME_WRAPS},
            {"a comparison", wound_comparison, 6, THEME_PADDING},
            {"a mask", wound_choice, 8, THEME_PADDING},
            {"the place of an output", wound_place, 8, THEME_RACES},
            {"outputs overlap", wound_overlap, 5, THEME_RACES},
            {"another writer", wound_writer, 6, THEME_RACES},
            {"an output of iterations", wound_iterations, 40, THEME_RACES},
            {"an output again in tiles", wound_again_in_tiles, 30, THEME_RACES},
            {"a condition of elements", wound_where, 14, THEME_RACES},
            {"a range", wound_range, 4, THEME_ANY},
            {"a fill dropped", wound_fill, 14, THEME_ROTATION},
            {"a value under a condition", wound_condition, 6, THEME_VARIABLES},
            {"a beginning dropped", wound_beginning, 4, THEME_VARIABLES},
            {"a value dropped", wound_setting, 5, THEME_VARIABLES},
            {"a declaration inward", wound_inward, 30, THEME_VARIABLES},
            {"a declaration outward", wound_outward, 5, THEME_CARRIED},
            {"a release", wound_linear, 24, THEME_STAGES},
            {"a stage moved and used", wound_moved, 7, THEME_ROTATION},
            {"a stage overwritten", wound_overwritten, 6, THEME_ROTATION},
            {"a rotation broken", wound_rotation, 18, THEME_ROTATION},
            {"a release by hand", wound_explicit_release, 3, THEME_STAGES},
            {"a release in arms", wound_arms, 5, THEME_STAGES},
            {"a leave", wound_leave, 8, THEME_PADDING},
            {"a stage left", wound_unfilled, 10, THEME_ROTATION},
            {"a leave under no condition", wound_unreached, 5, THEME_VARIABLES},
            {"a statement dropped", wound_missing, 4, THEME_ANY},
            {"an order exchanged", wound_order, 4, THEME_PADDING},
            {"a statement twice", wound_twice, 3, THEME_ANY},
            {"a stage under a condition", wound_stage, 4, THEME_STAGES},
            {"a ring too short", wound_ring, 20, THEME_STAGES},
            {"an end forgotten", wound_end, 3, THEME_STAGES},
            {"a hint too early", wound_hint, 17, THEME_STAGES},
            {"a hint", wound_asked, 30, THEME_TURNS},
            {"a share forgotten", wound_rank, 34, THEME_TURNS},
            {"a copy computed", wound_bytes, 9, THEME_ROTATION},
            {"a copy again", wound_again, 5, THEME_RACES},
            {"another handle", wound_handle, 5, THEME_STAGES},
            {"a produced stage read", wound_produced, 8, THEME_ROTATION},
            {"an element twice", wound_target, 8, THEME_RACES},
            {"another tile of an array", wound_tile_number, 20, THEME_ARRAYS},
            {"another tile read", wound_reader, 5, THEME_RACES},
            {"another role's output read", wound_spy, 24, THEME_RACES},
            {"an arrival", wound_arrival, 28, THEME_STAGES},
            {"an arrival too early", wound_early, 20, THEME_STAGES},
            {"hand-overs exchanged", wound_events, 112, THEME_STAGES},
            {"a condition of instances", wound_uniform, 12, THEME_TURNS},
            {"a turn", wound_turn, 84, THEME_TURNS},
            {"no turn", wound_no_turn, 30, THEME_TURNS}};

static int weight_of(const Program *program, size_t row) {
    bool themed = program->theme != THEME_ANY && program->theme == rows[row].theme;
    return rows[row].weight * (themed ? 6 : 1);
}

bool wound(Program *program) {
    int total = 0;
    for (size_t i = 0; i < COUNT_OF(rows); i++) total += weight_of(program, i);
    int at = (int)pick(program, (uint32_t)total);
    size_t row = 0;
    while (at >= weight_of(program, row)) at -= weight_of(program, row++);
    if (!rows[row].apply(program)) return false;
    program->wounds[program->wound_count++] = rows[row].name;
    return true;
}
