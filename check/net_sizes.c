/* Sizes at which somebody waits for ever: small ones first, then ones at which loops go round as often as the constants that conditions
 * compare with, and what memory may hold where conditions depend on it. What is found is made smaller as long as it stays so. Comes in where
 * a proof has failed: it may take a while. */
#include "check/balance.h"

#define SMALL_MOST 1000     /* sizes that are tried one after the other, */
#define SMALL_STEPS 24000   /* and steps they may take together */
#define WIDE_STEPS 4000000
#define UNKNOWN_COST 512    /* of a size at which a role depends on data */
#define TARGETS_MOST 24
#define READINGS 12         /* ways in which memory is made up */

typedef struct Seek {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Sizes *sizes;
    VEC(int64_t) targets;   /* how often loops shall go round */
    size_t left;            /* steps */
    int64_t most;           /* tiles that a block takes one after the other */
    bool reads;             /* some bound or condition reads memory */
    Reads reading;          /* of the run that is tried, where seed is not 0 */
    int64_t first, tiles;   /* and its tiles of the grid */
} Seek;

/* ---- what may matter -------------------------------------------------------------------------------------------------- */

static void add_target(Seek *seek, int64_t value) {
    if (value < 1 || value > 20000) return;
    for (size_t i = 0; i < seek->targets.count; i++)
        if (seek->targets.items[i] == value) return;
    if (seek->targets.count < TARGETS_MOST) vec_push(seek->arena, &seek->targets, value);
}

static void find_constants(Expr *expr, void *data) {
    Seek *seek = data;
    seek->reads |= expr->kind == X_READ;
    if (expr->kind != X_CONST || expr->type == E_F32 || expr->type == E_BOOL) return;
    int64_t value = expr->constant.integer;
    if (value < 2 || value > 10000) return;
    add_target(seek, value + 1);
    add_target(seek, 2 * value + 1);
}

static void look(Seek *seek, Expr *expr) {
    if (expr) expr_visit(seek->arena, expr, find_constants, seek);
}

static void look_at(Stmt *stmt, void *data) {
    Seek *seek = data;
    if (stmt->kind == S_IF) look(seek, stmt->branch.condition);
    if (stmt->kind == S_IF) sizes_formula(seek->sizes, stmt->branch.condition);
    if (stmt->kind != S_FOR) return;
    look(seek, stmt->loop.lo);
    look(seek, stmt->loop.hi);
    look(seek, stmt->loop.where);
    sizes_formula(seek->sizes, stmt->loop.lo);
    sizes_formula(seek->sizes, stmt->loop.hi);
}

static void look_at_let(Seek *seek, const Role *role) {
    for (size_t i = 0; i < role->locals.count; i++)
        if (role->locals.items[i].kind == LOCAL_LET && role->locals.items[i].value && role->locals.items[i].type != E_F32) look(seek, role->locals.items[i].value);
}

/* ---- runs ------------------------------------------------------------------------------------------------------------- */

static NetOutcome try_tiles(Seek *seek, Diags *diags, const int64_t *extents, int64_t first, int64_t tiles) {
    Arena *scratch = arena_scratch(seek->arena);
    size_t steps;
    seek->reading.count = 0;
    NetOutcome outcome = net_try(scratch, seek->prog, diags, seek->sizes, extents, first, tiles, seek->reading.seed ? &seek->reading : NULL, &steps);
    arena_free(scratch);
    if (outcome == NET_UNKNOWN && steps < UNKNOWN_COST) steps = UNKNOWN_COST;
    seek->left -= steps < seek->left ? steps : seek->left;
    return outcome;
}

/* A block that takes its tiles from the first on, and one that takes the last */
static bool stuck(Seek *seek, bool all) {
    int64_t extents[PROG_MAX_RANK], tiles;
    if (!sizes_tiles(seek->sizes, extents, &tiles)) return false;
    seek->first = 0;
    seek->tiles = seek->prog->persistent && tiles > 1 ? (tiles < seek->most || all ? tiles : seek->most) : tiles > 0;
    if (try_tiles(seek, NULL, extents, 0, seek->tiles) == NET_STUCK) return true;
    if (tiles <= seek->tiles) return false;
    seek->first = tiles - 1;
    seek->tiles = 1;
    return try_tiles(seek, NULL, extents, seek->first, 1) == NET_STUCK;
}

/* Halves each size as long as somebody still waits */
static void shrink(Seek *seek) {
    Sizes *sizes = seek->sizes;
    for (size_t i = 0; i < sizes->free.count; i++) {
        int64_t *value = &sizes->values[sizes->free.items[i]], low = -1, high = *value;
        while (high - low > 1) {
            *value = low + (high - low) / 2;
            if (sizes_allowed(sizes) && stuck(seek, true)) high = *value;
            else low = *value;
        }
        *value = high;
    }
}

static bool refuse(Seek *seek, bool smaller) {
    int64_t extents[PROG_MAX_RANK], tiles;
    seek->left = WIDE_STEPS;
    if (smaller) shrink(seek);
    stuck(seek, smaller);
    sizes_tiles(seek->sizes, extents, &tiles);
    size_t steps;
    seek->reading.count = 0;
    return net_try(seek->arena, seek->prog, seek->diags, seek->sizes, extents, seek->first, seek->tiles, seek->reading.seed ? &seek->reading : NULL,
                   &steps) == NET_STUCK;
}

static bool try_small(Seek *seek) {
    seek->sizes = sizes_new(seek->arena, seek->prog, true);
    for (size_t i = 0; i < seek->prog->axes.count; i++) sizes_formula(seek->sizes, seek->prog->axes.items[i].extent);
    for (size_t r = 0; r < seek->prog->roles.count; r++) stmt_visit(seek->prog->roles.items[r].body, look_at, seek);
    seek->left = SMALL_STEPS;
    for (int tried = 0; tried < SMALL_MOST && seek->left && sizes_next(seek->sizes); tried++)
        if (stuck(seek, false)) return true;
    return false;
}

static bool try_wide(Seek *seek) {
    seek->left = WIDE_STEPS;
    for (size_t t = 0; t < seek->targets.count; t++)
        for (int i = -1; i < (int)seek->sizes->free.count && seek->left; i++) {
            if (!sizes_wide(seek->sizes, i < 0 ? -1 : seek->sizes->free.items[i], seek->targets.items[t])) continue;
            if (stuck(seek, true)) return true;
        }
    return false;
}

bool net_check(Arena *arena, Prog *prog, Diags *diags) {
    Seek seek = {.arena = arena, .prog = prog, .diags = diags, .most = sizes_rounds(prog)};
    static const int64_t rounds[] = {4, 5, 6, 8, 9, 12, 17, 33};
    if (!prog->pipes.count) return false;
    if (try_small(&seek)) return refuse(&seek, false);
    for (size_t r = 0; r < prog->roles.count; r++) look_at_let(&seek, &prog->roles.items[r]);
    for (size_t i = 0; i < COUNT_OF(rounds); i++) add_target(&seek, rounds[i]);
    for (int made = 1; made <= READINGS && seek.reads; made++) {
        seek.reading.seed = (uint64_t)made;
        seek.reading.most = 1 + made % 4;
        if (try_small(&seek)) return refuse(&seek, false);
    }
    for (int made = 0; made <= (seek.reads ? 3 : 0); made++) {
        seek.reading.seed = (uint64_t)made;
        if (try_wide(&seek)) return refuse(&seek, true);
    }
    return false;
}
