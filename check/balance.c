/* Each pipe is acquired equally often by its producer and by every consumer, for all sizes. Comes in with the linear rule
 * checked; goes out with equal counts proved, perhaps under a launch precondition, or with what differs and where. What
 * cannot be decided is refused and says so. */
#include "check/balance.h"
#include "check/stages.h"

typedef struct Pair {  /* both ends of a pipe */
    int pipe;
    int roles[2];      /* producer, a consumer */
    const Role *role[2];
    Shapes shapes[2];
} Pair;

/* ---- what is said ------------------------------------------------------------------------------------------------- */

static const char *count_text(Balance *balance, const Role *role, Count count) {
    Str text = str_new(balance->arena);
    int64_t zero;
    if (!algebra_constant(count.outside, &zero) || zero != 0) expr_print(count.outside, balance->prog, role, NULL, &text);
    if (algebra_constant(count.tile, &zero) && zero == 0) return text.length ? text.text : "0";
    if (text.length) str_add(&text, ", and ");
    expr_print(count.tile, balance->prog, role, NULL, &text);
    str_add(&text, " for each tile of the grid");
    return text.text;
}

static bool total_at(const Balance *balance, const Role *role, Count count, const Sizes *sizes, const int64_t *axes, int64_t *out) {
    Env env = {.prog = balance->prog, .role = role, .symbols = sizes->values, .axes = axes};
    int64_t outside, tile;
    if (!evaluate(&env, count.outside, &outside) || !evaluate(&env, count.tile, &tile)) return false;
    *out = outside + tile;
    return true;
}

/* The first tile, in the order of its coordinates, where the two differ */
static bool differ_at(const Balance *balance, const Pair *pair, const Count *counts, const Sizes *sizes, int64_t *axes, int64_t *values) {
    int64_t extents[PROG_MAX_RANK], tiles;
    size_t rank = balance->prog->axes.count;
    if (!sizes_tiles(sizes, extents, &tiles)) return false;
    for (int64_t t = 0; t < tiles && t < 64; t++) {
        int64_t rest = t;
        for (size_t i = rank; i-- > 0;) {
            axes[i] = rest % extents[i];
            rest /= extents[i];
        }
        if (!total_at(balance, pair->role[0], counts[0], sizes, axes, &values[0])) return false;
        if (!total_at(balance, pair->role[1], counts[1], sizes, axes, &values[1])) return false;
        if (values[0] != values[1]) return true;
    }
    return false;
}

/* Sizes at which the counts differ, the smallest that are found */
static bool find_difference(Balance *balance, const Pair *pair, const Count *counts, Str *where, int64_t *values) {
    Sizes *sizes = sizes_new(balance->arena, balance->prog, false);
    for (int i = 0; i < 2; i++) {
        sizes_formula(sizes, counts[i].outside);
        sizes_formula(sizes, counts[i].tile);
    }
    for (size_t i = 0; i < balance->prog->axes.count; i++) sizes_formula(sizes, balance->prog->axes.items[i].extent);
    for (int tried = 0; tried < 4000 && sizes_next(sizes); tried++) {
        int64_t axes[PROG_MAX_RANK] = {0};
        if (!differ_at(balance, pair, counts, sizes, axes, values)) continue;
        sizes_print(sizes, where);
        for (size_t i = 0; i < balance->prog->axes.count; i++)
            if (axes[i]) str_printf(where, "%s%s = %lld", where->length ? ", " : "", balance->prog->axes.items[i].name, (long long)axes[i]);
        return true;
    }
    return false;
}

static void refuse_leave(Balance *balance, const Pair *pair) {
    const Shape *leave;
    const Pipe *pipe = &balance->prog->pipes.items[pair->pipe];
    int side = shapes_leave(&pair->shapes[1], &leave) ? 1 : 0;
    if (side == 0) shapes_leave(&pair->shapes[0], &leave);
    Diag *diag = diag_at(balance->diags, P0452, leave->stmt->span, "a loop with operations on pipe `%s` is left early", pipe->name);
    diag_primary(balance->diags, diag, "`%s` stops here", pair->role[side]->name);
    diag_label(balance->diags, diag, shapes_first(&pair->shapes[1 - side]), "`%s` goes on, and waits", pair->role[1 - side]->name);
    diag_help(balance->diags, diag, "let `%s` leave the same loop at the same place under the same condition, or put the "
              "condition inside of the stage's block", pair->role[1 - side]->name);
}

static void refuse_counts(Balance *balance, const Pair *pair) {
    const Pipe *pipe = &balance->prog->pipes.items[pair->pipe];
    Emptiness *known = NEW_ARRAY(balance->arena, Emptiness, balance->prog->domains.count + 1);
    size_t symbols = balance->prog->symbols.count;
    int wheres = balance->where_count;
    Count counts[2];
    Str where = str_new(balance->arena);
    int64_t values[2];
    for (int i = 0; i < 2; i++) counts[i] = shapes_count(balance, pair->role[i], &pair->shapes[i], known);
    bool countable = counts[0].outside && counts[1].outside && balance->prog->symbols.count == symbols;
    bool differ = countable && find_difference(balance, pair, counts, &where, values);
    Diag *diag = diag_at(balance->diags, differ ? P0450 : P0451, shapes_first(&pair->shapes[1]),
                         differ ? "pipe `%s` is not consumed as often as it is produced"
                                : "cannot show that pipe `%s` is consumed as often as it is produced", pipe->name);
    const char *verbs[2] = {"produces", "consumes"};
    for (int i = 1; i >= 0; i--) {
        const char *text = "a number of stages that is no formula";
        if (counts[i].outside) text = count_text(balance, pair->role[i], counts[i]);
        text = arena_printf(balance->arena, "`%s` %s %s", pair->role[i]->name, verbs[i], text);
        if (i == 1) diag_primary(balance->diags, diag, "%s", text);
        else diag_label(balance->diags, diag, shapes_first(&pair->shapes[i]), "%s", text);
    }
    if (differ)
        diag_note(balance->diags, diag, "%s%s%lld produced, %lld consumed: one of the two waits for ever",
                  where.length ? where.text : "", where.length ? ": " : "", (long long)values[0], (long long)values[1]);
    diag_help(balance->diags, diag, "loop over the same `range` in both roles: the same name is the same count");
    balance->prog->symbols.count = symbols;
    balance->where_count = wheres;
}

/* ---- ranges that must not be empty -------------------------------------------------------------------------------- */

static void used_domains(const Shapes *shapes, Emptiness *known, size_t count) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        if (shape->kind == SHAPE_FOR && valid_index(shape->stmt->loop.domain, count)) known[shape->stmt->loop.domain] = NONEMPTY;
        used_domains(&shape->body, known, count);
        used_domains(&shape->otherwise, known, count);
    }
}

/* lo < hi said as simply as it can be: ceil(K, 64) > 0 is K > 0 */
static Expr *plain_condition(Balance *balance, int domain) {
    const Domain *row = &balance->prog->domains.items[domain];
    Expr *hi = row->hi;
    int64_t lo, by;
    while (algebra_constant(row->lo, &lo) && lo == 0 && hi->kind == X_CALL && hi->call.which == IN_ceil_div &&
           algebra_constant(hi->call.args[1], &by) && by > 0)
        hi = hi->call.args[0];
    if (hi == row->hi) return domain_nonempty(balance, domain);
    return expr_binary(balance->arena, OP_GE, hi, expr_integer(balance->arena, hi->type, 1, row->span), row->span);
}

static void oblige(Balance *balance, const Pair *pair, int domain) {
    Prog *prog = balance->prog;
    const Domain *row = &prog->domains.items[domain];
    const Pipe *pipe = &prog->pipes.items[pair->pipe];
    Expr *condition = domain_nonempty(balance, domain);
    if (condition && only_symbols(condition)) {
        Str text = str_new(balance->arena);
        condition = plain_condition(balance, domain);
        for (size_t i = 0; i < prog->preconditions.count; i++)
            if (algebra_equal(balance->arena, prog, NULL, prog->preconditions.items[i].condition, NULL, condition)) return;
        expr_print(condition, prog, NULL, NULL, &text);
        const char *reason = arena_printf(balance->arena, "pipe `%s` is acquired once before or behind a piece of `%s`, which must not be empty",
                                          pipe->name, row->name);
        const char *help = arena_printf(balance->arena, "or write `if %s nonempty { .. }` around it in every role", row->name);
        vec_push(balance->arena, &prog->preconditions, (Precondition){condition, text.text, reason, help, row->span});
        return;
    }
    Diag *diag = diag_at(balance->diags, P0453, shapes_first(&pair->shapes[1]),
                         "pipe `%s` is acquired as if `%s` were never empty", pipe->name, row->name);
    diag_primary(balance->diags, diag, "`%s` consumes at least once", pair->role[1]->name);
    diag_label(balance->diags, diag, shapes_first(&pair->shapes[0]), "`%s` produces nothing where the range is empty", pair->role[0]->name);
    diag_label(balance->diags, diag, row->span, "may be empty for some tiles");
    diag_help(balance->diags, diag, "write `if %s nonempty { .. }` around what needs it, in every role", row->name);
}

static bool proved_nonempty(Balance *balance, const Pair *pair) {
    size_t count = balance->prog->domains.count;
    Emptiness *known = NEW_ARRAY(balance->arena, Emptiness, count + 1);
    used_domains(&pair->shapes[0], known, count);
    used_domains(&pair->shapes[1], known, count);
    for (size_t d = 0; d < count; d++)
        if (known[d] == NONEMPTY && !domain_nonempty(balance, (int)d)) known[d] = MAYBE_EMPTY;
    if (!counts_equal(balance, pair->role[0], &pair->shapes[0], pair->role[1], &pair->shapes[1], known)) return false;
    for (size_t d = 0; d < count; d++) { /* only those that are needed */
        if (known[d] != NONEMPTY) continue;
        known[d] = MAYBE_EMPTY;
        if (!counts_equal(balance, pair->role[0], &pair->shapes[0], pair->role[1], &pair->shapes[1], known)) known[d] = NONEMPTY;
    }
    for (size_t d = 0; d < count; d++)
        if (known[d] == NONEMPTY) oblige(balance, pair, (int)d);
    return true;
}

/* ---- all ---------------------------------------------------------------------------------------------------------- */

static void check_pair(Balance *balance, const Pair *pair) {
    Emptiness *known = NEW_ARRAY(balance->arena, Emptiness, balance->prog->domains.count + 1);
    const Shape *leave;
    if (!shapes_first(&pair->shapes[0]).hi || !shapes_first(&pair->shapes[1]).hi) return; /* `roles` has said so */
    if (shapes_same(balance, pair->role[0], &pair->shapes[0], pair->role[1], &pair->shapes[1])) return;
    if (shapes_leave(&pair->shapes[0], &leave) || shapes_leave(&pair->shapes[1], &leave)) {
        refuse_leave(balance, pair);
        return;
    }
    if (counts_equal(balance, pair->role[0], &pair->shapes[0], pair->role[1], &pair->shapes[1], known)) return;
    if (!proved_nonempty(balance, pair)) refuse_counts(balance, pair);
}

typedef struct Ends {
    const Prog *prog;
    const Role *role;
    int index;
    bool *wrong;   /* by pipe: acquired at an end that is not the role's */
    bool unknown;  /* an acquire names no pipe, or a bound is poison: nothing is said of this role */
} Ends;

static void find_poison(Expr *expr, void *data) {
    Ends *ends = data;
    ends->unknown |= expr->kind == X_POISON;
}

static void look(Stmt *stmt, void *data) {
    Ends *ends = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    if (stmt->kind == S_FOR || stmt->kind == S_IF) walk_exprs(stmt, find_poison, ends);
    if (stmt->kind != S_ACQUIRE && stmt->kind != S_STAGE) return;
    if (!valid_index(handle, ends->role->handles.count) || !valid_index(ends->role->handles.items[handle].pipe, ends->prog->pipes.count)) {
        ends->unknown = true;
        return;
    }
    const Pipe *pipe = &ends->prog->pipes.items[ends->role->handles.items[handle].pipe];
    bool mine = pipe->producer == ends->index;
    for (size_t i = 0; ends->role->handles.items[handle].end == END_CONSUME && i < pipe->consumers.count; i++)
        mine = i == 0 ? pipe->consumers.items[0] == ends->index : mine || pipe->consumers.items[i] == ends->index;
    if (!mine) ends->wrong[ends->role->handles.items[handle].pipe] = true;
}

void balance_check(Arena *arena, Prog *prog, Diags *diags) {
    Balance balance = {.arena = arena, .prog = prog, .diags = diags};
    size_t roles = prog->roles.count;
    bool *wrong = NEW_ARRAY(arena, bool, prog->pipes.count + 1), *unknown = NEW_ARRAY(arena, bool, roles + 1);
    if (words_failed(diags)) return;
    for (size_t r = 0; r < roles; r++) {
        Ends ends = {.prog = prog, .role = &prog->roles.items[r], .index = (int)r, .wrong = wrong};
        walk_stmts(prog->roles.items[r].body, look, &ends);
        unknown[r] = ends.unknown;
    }
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        if (wrong[p] || !valid_index(pipe->producer, roles) || unknown[pipe->producer]) continue;
        for (size_t c = 0; c < pipe->consumers.count; c++) {
            int consumer = pipe->consumers.items[c];
            if (!valid_index(consumer, roles) || unknown[consumer] || consumer == pipe->producer) continue;
            Pair pair = {.pipe = (int)p, .roles = {pipe->producer, consumer},
                         .role = {&prog->roles.items[pipe->producer], &prog->roles.items[consumer]}};
            for (int i = 0; i < 2; i++) pair.shapes[i] = shapes_of(&balance, pair.role[i], (int)p);
            size_t before = diags->errors;
            check_pair(&balance, &pair);
            if (diags->errors != before) break; /* the producer may be the one that is wrong: once is enough */
        }
    }
    if (diags->errors == 0) net_check(arena, prog, diags);
}
