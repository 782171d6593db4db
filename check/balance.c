/* Each pipe is acquired equally often by its producer and by every consumer, for all sizes. Comes in with the linear rule
 * checked; goes out with equal counts proved, perhaps under a launch precondition, or with what differs and where. What
 * cannot be decided is refused and says so. */
#include "check/balance.h"
#include "check/stages.h"

#define CELL_VALUES 8 /* of a cell of memory that are tried */
#define CELLS_MOST 2  /* that are tried at all of them */

typedef struct Pair {  /* both ends of a pipe */
    int pipe;
    int roles[2];      /* producer, a consumer; may be the same */
    const Role *role[2];
    Shapes shapes[2];
    const Shape *apart[2]; /* the first that are not the same */
} Pair;

/* ---- what is said ------------------------------------------------------------------------------------------------- */

typedef struct Block {   /* what one block runs, and what it acquires at both ends */
    int64_t first, tiles, extents[PROG_MAX_RANK], acquired[2];
} Block;

static bool unequal(Balance *balance, const Pair *pair, const Sizes *sizes, Block *block) {
    for (int i = 0; i < 2; i++)
        if (!net_acquires(balance->arena, balance->prog, pair->role[i], pair->pipe, i ? END_CONSUME : END_PRODUCE, sizes, block->extents, block->first,
                          block->tiles, &block->acquired[i]))
            return false;
    return block->acquired[0] != block->acquired[1];
}

/* The first tile, in the order of its coordinates, in which one end acquires more often than the other; else several of them, or none */
static bool differ_at(Balance *balance, const Pair *pair, const Sizes *sizes, Block *block) {
    int64_t tiles;
    if (!sizes_tiles(sizes, block->extents, &tiles)) return false;
    block->tiles = 1;
    for (block->first = 0; block->first < tiles && block->first < 4; ++block->first)
        if (unequal(balance, pair, sizes, block)) return true;
    block->first = 0;
    for (block->tiles = 0; block->tiles <= tiles && block->tiles <= 2 && balance->prog->persistent; block->tiles += 2)
        if (unequal(balance, pair, sizes, block)) return true;
    return false;
}

static void add_formulas(Stmt *stmt, void *data) {
    Sizes *sizes = data;
    if (stmt->kind == S_FOR) {
        sizes_formula(sizes, stmt->loop.lo);
        sizes_formula(sizes, stmt->loop.hi);
    }
    if (stmt->kind == S_IF) sizes_formula(sizes, stmt->branch.condition);
}

/* ---- what is in memory: the cells that the roles ask for, the first of them at several values ---- */

typedef struct Contents {
    Arena *arena;
    int64_t values[CELL_VALUES];
    int count;
} Contents;

static void find_constants(Expr *expr, void *data) {
    Contents *contents = data;
    if (expr->kind != X_CONST || expr->type == E_F32 || expr->type == E_BOOL || contents->count + 2 > CELL_VALUES) return;
    for (int64_t value = expr->constant.integer; value <= expr->constant.integer + 1; value++) {
        bool there = false;
        for (int i = 0; i < contents->count; i++) there |= contents->values[i] == value;
        if (!there) contents->values[contents->count++] = value;
    }
}

/* Values around the constants that conditions have, behind the smallest ones */
static void add_constants(Expr *expr, void *data) { expr_visit(((Contents *)data)->arena, expr, find_constants, data); }

static void add_contents(Stmt *stmt, void *data) {
    if (stmt->kind == S_FOR || stmt->kind == S_IF) walk_exprs(stmt, add_constants, data);
}

/* Cells beyond the first few stay 0. False: there is no further way to fill them */
static bool refill(Memory *memory, const Contents *contents, int number) {
    memory->cells.count = memory->cells.count < CELLS_MOST ? memory->cells.count : CELLS_MOST;
    for (size_t c = 0; c < memory->cells.count; c++, number /= contents->count) memory->cells.items[c].value = contents->values[number % contents->count];
    return number == 0;
}

static bool differ_in(Balance *balance, const Pair *pair, Sizes *sizes, const Contents *contents, Block *block) {
    sizes->memory->cells.count = 0;
    for (int number = 0; refill(sizes->memory, contents, number); number++) {
        if (differ_at(balance, pair, sizes, block)) return true;
        if (sizes->memory->cells.count == 0) return false;
    }
    return false;
}

/* Sizes at which the counts differ, the smallest that are found */
static bool find_difference(Balance *balance, const Pair *pair, Str *where, int64_t *values) {
    Sizes *sizes = sizes_new(balance->arena, balance->prog, false);
    Contents contents = {.arena = balance->arena, .values = {0, 1, 2, 3}, .count = 4};
    Memory memory = {.arena = balance->arena};
    size_t axes = balance->prog->axes.count;
    sizes->memory = &memory;
    for (int i = 0; i < 2; i++) {
        stmt_visit(pair->role[i]->body, add_formulas, sizes);
        stmt_visit(pair->role[i]->body, add_contents, &contents);
    }
    for (size_t i = 0; i < axes; i++) sizes_formula(sizes, balance->prog->axes.items[i].extent);
    for (int tried = 0; tried < 1000 && sizes_next(sizes); tried++) {
        Block block;
        if (!differ_in(balance, pair, sizes, &contents, &block)) continue;
        for (int i = 0; i < 2; i++) values[i] = block.acquired[i];
        sizes_print(sizes, where);
        if (block.tiles != 1) str_printf(where, "%s%lld tiles in a block", where->length ? ", " : "", (long long)block.tiles);
        for (size_t i = 0; i < axes && block.first > 0; i++) {
            int64_t inner = 1;
            for (size_t k = i + 1; k < axes; k++) inner *= block.extents[k];
            str_printf(where, "%s%s = %lld", where->length ? ", " : "", balance->prog->axes.items[i].name, (long long)(block.first / inner % block.extents[i]));
        }
        return true;
    }
    return false;
}

static void note_difference(Balance *balance, Diag *diag, const Str *where, const int64_t *values) {
    diag_note(balance->diags, diag, "%s%s%lld produced, %lld consumed: one of the two waits for ever", where->length ? where->text : "",
              where->length ? ": " : "", (long long)values[0], (long long)values[1]);
}

static void refuse_leave(Balance *balance, const Pair *pair) {
    const Shape *leave;
    const Pipe *pipe = &balance->prog->pipes.items[pair->pipe];
    int side = shapes_leaves(&pair->shapes[1], &leave) ? 1 : 0;
    Str where = str_new(balance->arena);
    int64_t values[2];
    if (side == 0) shapes_leaves(&pair->shapes[0], &leave);
    Diag *diag = diag_at(balance->diags, P0452, leave->stmt->span, "a loop with operations on pipe `%s` is left early", pipe->name);
    diag_primary(balance->diags, diag, "`%s` stops here", pair->role[side]->name);
    diag_label(balance->diags, diag, shapes_first(&pair->shapes[1 - side]), "`%s` goes on, and waits", pair->role[1 - side]->name);
    if (find_difference(balance, pair, &where, values)) note_difference(balance, diag, &where, values);
    diag_help(balance->diags, diag, "let `%s` leave the same loop at the same place under the same condition, or put the "
              "condition inside of the stage's block", pair->role[1 - side]->name);
}

static void refuse_counts(Balance *balance, const Pair *pair) {
    const Pipe *pipe = &balance->prog->pipes.items[pair->pipe];
    Str where = str_new(balance->arena);
    int64_t values[2];
    bool differ = find_difference(balance, pair, &where, values);
    Diag *diag = diag_at(balance->diags, differ ? P0450 : P0451, shapes_first(&pair->shapes[1]),
                         differ ? "pipe `%s` is not consumed as often as it is produced"
                                : "cannot show that pipe `%s` is consumed as often as it is produced", pipe->name);
    const char *verbs[2] = {"produces", "consumes"};
    for (int i = 1; i >= 0; i--) {
        const char *text = shapes_text(balance, pair->role[i], &pair->shapes[i]);
        if (!text) text = "as often as its loops and conditions have it";
        text = arena_printf(balance->arena, "`%s` %s %s", pair->role[i]->name, verbs[i], text);
        if (i == 1) diag_primary(balance->diags, diag, "%s", text);
        else diag_label(balance->diags, diag, shapes_first(&pair->shapes[i]), "%s", text);
    }
    if (differ) note_difference(balance, diag, &where, values);
    for (int i = 1; i >= 0 && !differ; i--) {
        const Shape *shape = pair->apart[i];
        if (shape && shape->kind != SHAPE_ACQUIRE)
            diag_label(balance->diags, diag, shape->stmt->head, "as `%s` says it", pair->role[i]->name);
    }
    diag_help(balance->diags, diag, differ ? "loop over the same `range` in both roles: the same name is the same count"
                                           : "say it in both roles in the same words: a `range` of the kernel to loop over, the same "
                                             "comparisons of the same values as conditions");
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

/* The end that acquires even where the range is empty: 0 the producer's, 1 the consumer's */
static int acquires_anyway(Balance *balance, const Pair *pair, int domain) {
    Emptiness *known = NEW_ARRAY(balance->arena, Emptiness, balance->prog->domains.count + 1);
    known[domain] = EMPTY;
    return counts_nothing(balance, pair->role[0], &pair->shapes[0], known) ? 1 : 0;
}

static void oblige(Balance *balance, const Pair *pair, int domain) {
    Prog *prog = balance->prog;
    const Domain *row = &prog->domains.items[domain];
    const Pipe *pipe = &prog->pipes.items[pair->pipe];
    Expr *condition = domain_nonempty(balance, domain);
    if (condition && only_symbols(condition)) {
        Str text = str_new(balance->arena);
        int64_t lo;
        if (algebra_constant(row->lo, &lo) && lo == 0) condition = positive(balance, row->hi);
        for (size_t i = 0; i < prog->preconditions.count; i++)
            if (algebra_same(balance->arena, prog, prog->preconditions.items[i].condition, condition)) return;
        expr_print(condition, prog, NULL, NULL, &text);
        const char *reason = arena_printf(balance->arena, "pipe `%s` is acquired once before or behind a piece of `%s`, which must not be empty",
                                          pipe->name, row->name);
        const char *help = arena_printf(balance->arena, "or write `if %s nonempty { .. }` around it in every role", row->name);
        vec_push(balance->arena, &prog->preconditions, (Precondition){condition, text.text, reason, help, row->span});
        return;
    }
    int side = acquires_anyway(balance, pair, domain);
    Diag *diag = diag_at(balance->diags, P0453, shapes_first(&pair->shapes[side]),
                         "pipe `%s` is acquired as if `%s` were never empty", pipe->name, row->name);
    diag_primary(balance->diags, diag, "`%s` acquires it at least once", pair->role[side]->name);
    diag_label(balance->diags, diag, shapes_first(&pair->shapes[1 - side]), "`%s` does not where the range is empty",
               pair->role[1 - side]->name);
    diag_label(balance->diags, diag, row->span, "may be empty for some tiles");
    diag_help(balance->diags, diag, "write `if %s nonempty { .. }` around what needs it, in every role", row->name);
}

/* A range of which the program itself says what happens when it is empty is not one that must not be */
static void asked_domains(const Shapes *shapes, Emptiness *known, size_t count) {
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        if (shape->kind == SHAPE_IF && shape->otherwise.count && valid_index(shape->stmt->branch.nonempty, count))
            known[shape->stmt->branch.nonempty] = MAYBE_EMPTY;
        asked_domains(&shape->body, known, count);
        asked_domains(&shape->otherwise, known, count);
    }
}

static bool proved_nonempty(Balance *balance, const Pair *pair) {
    size_t count = balance->prog->domains.count;
    Emptiness *known = NEW_ARRAY(balance->arena, Emptiness, count + 1);
    for (int i = 0; i < 2; i++) used_domains(&pair->shapes[i], known, count);
    for (int i = 0; i < 2; i++) asked_domains(&pair->shapes[i], known, count);
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

/* One condition, or loop, that makes several pipes differ is one mistake */
static bool said_of(Balance *balance, const Pair *pair) {
    for (int i = 0; i < 2; i++)
        for (size_t k = 0; k < balance->said.count && pair->apart[i]; k++)
            if (balance->said.items[k] == pair->apart[i]->stmt) return true;
    return false;
}

static void check_pair(Balance *balance, Pair *pair) {
    Emptiness *known = NEW_ARRAY(balance->arena, Emptiness, balance->prog->domains.count + 1);
    const Shape *leave;
    if (!shapes_first(&pair->shapes[0]).hi || !shapes_first(&pair->shapes[1]).hi) return; /* `roles` has said so */
    if (shapes_same(balance, pair->role, pair->shapes, pair->apart)) return;
    if (counts_equal(balance, pair->role[0], &pair->shapes[0], pair->role[1], &pair->shapes[1], known)) return;
    if (proved_nonempty(balance, pair) || said_of(balance, pair)) return;
    for (int i = 0; i < 2; i++)
        if (pair->apart[i] && pair->apart[i]->kind != SHAPE_ACQUIRE) vec_push(balance->arena, &balance->said, pair->apart[i]->stmt);
    if (shapes_leaves(&pair->shapes[0], &leave) != shapes_leaves(&pair->shapes[1], &leave)) refuse_leave(balance, pair);
    else refuse_counts(balance, pair);
}

typedef struct Unknown {
    const Prog *prog;
    const Role *role;
    bool is;  /* an acquire names no pipe, or a bound is poison: nothing is said of this role */
} Unknown;

static void find_poison(Expr *expr, void *data) {
    Unknown *unknown = data;
    unknown->is |= expr->kind == X_POISON;
}

static void look(Stmt *stmt, void *data) {
    Unknown *unknown = data;
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    if (stmt->kind == S_FOR || stmt->kind == S_IF) walk_exprs(stmt, find_poison, unknown);
    if (stmt->kind == S_ACQUIRE || stmt->kind == S_STAGE)
        unknown->is |= !valid_index(handle, unknown->role->handles.count) ||
                       !valid_index(unknown->role->handles.items[handle].pipe, unknown->prog->pipes.count) ||
                       unknown->role->handles.items[handle].forgotten;
}

void balance_check(Arena *arena, Prog *prog, Diags *diags) {
    Balance balance = {.arena = arena, .prog = prog, .diags = diags};
    size_t roles = prog->roles.count;
    bool *unknown = NEW_ARRAY(arena, bool, roles + 1);
    if (words_failed(diags)) return;
    for (size_t r = 0; r < roles; r++) {
        Unknown found = {prog, &prog->roles.items[r], false};
        stmt_visit(prog->roles.items[r].body, look, &found);
        unknown[r] = found.is || prog->roles.items[r].forgotten;
    }
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        if (pipe->faulty || !valid_index(pipe->producer, roles) || unknown[pipe->producer]) continue;
        for (size_t c = 0; c < pipe->consumers.count; c++) {
            int consumer = pipe->consumers.items[c];
            if (!valid_index(consumer, roles) || unknown[consumer]) continue;
            Pair pair = {.pipe = (int)p, .roles = {pipe->producer, consumer},
                         .role = {&prog->roles.items[pipe->producer], &prog->roles.items[consumer]}};
            for (int i = 0; i < 2; i++) pair.shapes[i] = shapes_of(&balance, pair.role[i], (int)p, i ? END_CONSUME : END_PRODUCE);
            size_t before = diags->errors;
            check_pair(&balance, &pair);
            if (diags->errors != before) break; /* the producer may be the one that is wrong: once is enough */
        }
    }
    if (diags->errors == 0) lockstep_check(arena, prog, diags);
}
