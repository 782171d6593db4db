/* reference: selects the elements of a claim to check if there are too many. Takes the shape and
 * the tiles that the roles write: along each axis the first and last two indexes, the corners of
 * tiles and the ragged edge, in all combinations if they fit; then random corners of tiles and
 * random elements. Depends only on the seed. */
#include "reference/code.h"
#include "prog/stmt.h"

#include <stdlib.h>

#define PERIODS     4
#define SPECIAL_MAX 32

typedef struct Line { /* an axis of the claim */
    int64_t extent;
    int64_t periods[PERIODS]; /* extents of tiles, without duplicates */
    int period_count;
    int64_t special[SPECIAL_MAX];
    int special_count;
} Line;

typedef struct Chooser {
    Arena *arena;
    const Function *function;
    Line axes[PROG_MAX_INDEXES];
    uint64_t random;
    int64_t *flat;
    int64_t count, wanted;
} Chooser;

static uint64_t next_random(Chooser *c) { /* splitmix64 */
    uint64_t x = c->random += 0x9E3779B97F4A7C15u;
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9u;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBu;
    return x ^ (x >> 31);
}

static int64_t below(Chooser *c, int64_t bound) {
    return (int64_t)(next_random(c) % (uint64_t)bound);
}

/* ---- periods of tiles ------------------------------------------------------------------------ */

static void add_period(Line *axis, int64_t period) {
    if (period <= 1 || period >= axis->extent) return;
    for (int i = 0; i < axis->period_count; i++)
        if (axis->periods[i] == period) return;
    if (axis->period_count < PERIODS) axis->periods[axis->period_count++] = period;
}

typedef struct Tiles {
    Chooser *chooser;
    const Claim *claim;
} Tiles;

/* A statement that writes the claim's tensor: its tile along an axis has the extent of the index
 * there. */
static void tile_periods(const Tiles *tiles, const Tile *tile) {
    const Access *target = &tile->target;
    if (target->space != SPACE_GLOBAL || target->object != tiles->claim->target.object) return;
    for (int d = 0; d < target->rank; d++) {
        const Expr *sub = tiles->claim->target.subs[d];
        if (sub->kind != X_INDEX || !target->affine[d].is) continue;
        for (int k = 0; k < tile->space.bound; k++)
            if (target->affine[d].coef[k] != 0 && tile->space.items[k].extent > 0)
                add_period(&tiles->chooser->axes[sub->index],
                           tile->space.items[k].extent * llabs(target->affine[d].coef[k]));
    }
}

static void statement_periods(const Tiles *tiles, const Stmt *stmt) {
    if (stmt == NULL) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            statement_periods(tiles, stmt->block.body.items[i]);
        return;
    case S_TILE: tile_periods(tiles, stmt->tile); return;
    case S_GRID: statement_periods(tiles, stmt->grid.body); return;
    case S_FOR: statement_periods(tiles, stmt->loop.body); return;
    case S_IF:
        statement_periods(tiles, stmt->branch.then);
        statement_periods(tiles, stmt->branch.otherwise);
        return;
    case S_STAGE: statement_periods(tiles, stmt->stage.body); return;
    case S_SCALAR:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: return;
    }
}

/* ---- special indexes ------------------------------------------------------------------------- */

static void add_special(Line *axis, int64_t index) {
    if (index < 0 || index >= axis->extent || axis->special_count == SPECIAL_MAX) return;
    for (int i = 0; i < axis->special_count; i++)
        if (axis->special[i] == index) return;
    axis->special[axis->special_count++] = index;
}

static void find_special(Line *axis) {
    const int64_t ends[] = {0, 1, axis->extent - 2, axis->extent - 1};
    for (size_t i = 0; i < COUNT_OF(ends); i++) add_special(axis, ends[i]);
    for (int i = 0; i < axis->period_count; i++) {
        int64_t period = axis->periods[i], last = (axis->extent - 1) / period * period;
        const int64_t corners[] = {period - 1, period, last - 1, last};
        for (size_t k = 0; k < COUNT_OF(corners); k++) add_special(axis, corners[k]);
    }
}

/* ---- elements -------------------------------------------------------------------------------- */

static void add_element(Chooser *c, const int64_t *at) {
    int64_t flat = 0;
    if (c->count == c->wanted) return;
    for (int k = 0; k < c->function->bound; k++) flat = flat * c->function->extents[k] + at[k];
    c->flat[c->count++] = flat;
}

static double combinations(const Chooser *c) {
    double product = 1;
    for (int k = 0; k < c->function->bound; k++) product *= c->axes[k].special_count;
    return product;
}

static void add_combinations(Chooser *c) {
    int choice[PROG_MAX_INDEXES] = {0};
    int64_t at[PROG_MAX_INDEXES] = {0};
    for (;;) {
        for (int k = 0; k < c->function->bound; k++) at[k] = c->axes[k].special[choice[k]];
        add_element(c, at);
        int k = c->function->bound - 1;
        while (k >= 0 && ++choice[k] == c->axes[k].special_count) choice[k--] = 0;
        if (k < 0) return;
    }
}

/* Combines every special index of every axis with random special indexes of the others */
static void add_each_special(Chooser *c) {
    int64_t at[PROG_MAX_INDEXES] = {0};
    for (int k = 0; k < c->function->bound; k++)
        for (int i = 0; i < c->axes[k].special_count; i++) {
            for (int other = 0; other < c->function->bound; other++)
                at[other] = c->axes[other].special[below(c, c->axes[other].special_count)];
            at[k] = c->axes[k].special[i];
            add_element(c, at);
        }
}

static int64_t random_corner(Chooser *c, const Line *axis) {
    if (axis->period_count == 0) return below(c, axis->extent);
    int64_t period = axis->periods[below(c, axis->period_count)];
    int64_t index = below(c, axis->extent / period + 1) * period - below(c, 2);
    return index < 0 ? 0 : index >= axis->extent ? axis->extent - 1 : index;
}

static void add_random(Chooser *c) {
    int64_t at[PROG_MAX_INDEXES] = {0};
    for (int64_t corners = (c->wanted - c->count) / 2; corners > 0; corners--) {
        for (int k = 0; k < c->function->bound; k++) at[k] = random_corner(c, &c->axes[k]);
        add_element(c, at);
    }
    while (c->count < c->wanted) {
        for (int k = 0; k < c->function->bound; k++) at[k] = below(c, c->axes[k].extent);
        add_element(c, at);
    }
}

static int by_index(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static void drop_duplicates(Chooser *c) {
    int64_t kept = 0;
    qsort(c->flat, (size_t)c->count, sizeof *c->flat, by_index);
    for (int64_t i = 0; i < c->count; i++)
        if (kept == 0 || c->flat[i] != c->flat[kept - 1]) c->flat[kept++] = c->flat[i];
    c->count = kept;
}

void elements_choose(Arena *arena, const Prog *prog, const Claim *claim, const Function *function,
                     int64_t wanted, const int64_t *extra, int64_t extra_count, uint64_t seed,
                     Elements *out) {
    /* random selection would take longer than checking all */
    if (wanted > function->count / 2) {
        *out = (Elements){.all = true, .count = function->count};
        return;
    }
    Chooser c = {.arena = arena, .function = function, .random = seed, .wanted = wanted};
    c.flat = NEW_ARRAY(arena, int64_t, wanted + extra_count);
    for (int k = 0; k < function->bound; k++) c.axes[k].extent = function->extents[k];
    Tiles tiles = {&c, claim};
    for (size_t i = 0; i < prog->roles.count; i++)
        statement_periods(&tiles, prog->roles.items[i].body);
    for (int k = 0; k < function->bound; k++) find_special(&c.axes[k]);
    if (combinations(&c) <= (double)wanted / 2)
        add_combinations(&c);
    else
        add_each_special(&c);
    do {
        add_random(&c);
        drop_duplicates(&c);
    } while (c.count < wanted);
    for (int64_t i = 0; i < extra_count; i++) c.flat[c.count++] = extra[i];
    drop_duplicates(&c);
    *out = (Elements){.count = c.count, .flat = c.flat};
}
