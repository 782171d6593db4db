/* Sizes at which roles deadlock: small ones first, then ones at which loops have as many
 * iterations as constants that conditions compare with, with invented contents of memory if
 * conditions depend on it. Sizes that are found are then reduced. Used after a proof has failed,
 * so it may be slow. */
#include "check/sizes/trace.h"

#define SMALL_MOST   1000  /* number of sizes tried one after the other */
#define SMALL_STEPS  24000 /* and their total steps */
#define WIDE_STEPS   4000000
#define UNKNOWN_COST 512 /* cost of a size at which a role depends on data */
#define TARGETS_MOST 24
#define READINGS     12 /* number of invented contents of memory */

typedef struct Seek {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Sizes *sizes;
    VEC(int64_t) targets; /* wanted numbers of iterations */
    size_t left;          /* remaining */
    int64_t most;         /* most tiles of a block */
    bool reads;           /* some bound or condition reads memory */
    Reads reading;        /* of the present run, if seed is not 0 */
    BlockRun block;       /* and its tiles of the grid */
    Traced *traced;
} Seek;

/* ---- relevant control ------------------------------------------------------------------------ */

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

static void look_at(Seek *seek, const FlowCode *code) {
    sizes_code(seek->sizes, code);
    for (size_t r = 0; r < code->regions.count; r++) {
        const Region *region = &code->regions.items[r];
        look(seek, region->condition);
        look(seek, region->lo);
        look(seek, region->hi);
        look(seek, region->where);
    }
}

static void look_at_lets(Seek *seek, const Role *role) {
    for (size_t i = 0; i < role->locals.count; i++) {
        const Local *local = &role->locals.items[i];
        if (local->kind == LOCAL_LET && local->value && local->type != E_F32)
            look(seek, local->value);
    }
}

/* ---- runs ------------------------------------------------------------------------------------ */

static TraceOutcome try_tiles(Seek *seek, int64_t first, int64_t tiles) {
    Arena *scratch = arena_scratch(seek->arena);
    size_t steps = 1;
    seek->reading.count = 0;
    seek->block.first = first, seek->block.tiles = tiles;
    seek->block.sizes = seek->sizes;
    seek->block.reads = seek->reading.seed ? &seek->reading : NULL;
    TraceOutcome outcome = trace_try(scratch, seek->traced, &seek->block, &steps);
    arena_free(scratch);
    if (outcome == TRACE_UNKNOWN && steps < UNKNOWN_COST) steps = UNKNOWN_COST;
    seek->left -= steps < seek->left ? steps : seek->left;
    return outcome;
}

/* A block that takes the first tiles, and one that takes the last */
static bool stuck(Seek *seek, bool all) {
    int64_t tiles;
    if (!sizes_tiles(seek->sizes, seek->block.extents, &tiles)) return false;
    bool several = seek->prog->persistent && tiles > 1;
    int64_t taken = !several ? tiles > 0 : tiles < seek->most || all ? tiles : seek->most;
    if (try_tiles(seek, 0, taken) == TRACE_STUCK) return true;
    if (tiles <= taken) return false;
    return try_tiles(seek, tiles - 1, 1) == TRACE_STUCK;
}

/* Halves each size as long as some role still waits */
static void shrink(Seek *seek) {
    Sizes *sizes = seek->sizes;
    for (size_t i = 0; i < sizes->free.count; i++) {
        int64_t *value = &sizes->values[sizes->free.items[i]], low = -1, high = *value;
        while (high - low > 1) {
            *value = low + (high - low) / 2;
            if (sizes_allowed(sizes) && stuck(seek, true))
                high = *value;
            else
                low = *value;
        }
        *value = high;
    }
}

static bool refuse(Seek *seek, bool smaller) {
    size_t steps = 0;
    seek->left = WIDE_STEPS;
    if (smaller) shrink(seek);
    stuck(seek, smaller);
    seek->reading.count = 0;
    if (trace_try(seek->arena, seek->traced, &seek->block, &steps) != TRACE_STUCK) return false;
    trace_refuse(seek->arena, seek->prog, seek->traced, seek->diags, &seek->block);
    return true;
}

static bool try_small(Seek *seek) {
    seek->sizes = sizes_new(seek->arena, seek->prog, true);
    for (size_t i = 0; i < seek->prog->axes.count; i++)
        sizes_formula(seek->sizes, seek->prog->axes.items[i].extent);
    for (size_t r = 0; r < seek->prog->roles.count; r++)
        look_at(seek, seek->prog->roles.items[r].code);
    seek->left = SMALL_STEPS;
    for (int tried = 0; tried < SMALL_MOST && seek->left && sizes_next(seek->sizes); tried++)
        if (stuck(seek, false)) return true;
    return false;
}

static bool try_wide(Seek *seek) {
    seek->left = WIDE_STEPS;
    for (size_t t = 0; t < seek->targets.count; t++)
        for (int i = -1; i < (int)seek->sizes->free.count && seek->left; i++) {
            if (!sizes_wide(seek->sizes, i < 0 ? -1 : seek->sizes->free.items[i],
                            seek->targets.items[t]))
                continue;
            if (stuck(seek, true)) return true;
        }
    return false;
}

bool trace_check(Arena *arena, Prog *prog, Diags *diags) {
    Seek seek = {.arena = arena, .prog = prog, .diags = diags, .most = sizes_rounds(prog)};
    static const int64_t rounds[] = {4, 5, 6, 8, 9, 12, 17, 33};
    if (!prog->pipes.count) return false;
    seek.traced = trace_new(arena, prog, ALL_PIPES, NULL, NULL);
    if (try_small(&seek)) return refuse(&seek, false);
    for (size_t r = 0; r < prog->roles.count; r++) look_at_lets(&seek, &prog->roles.items[r]);
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
