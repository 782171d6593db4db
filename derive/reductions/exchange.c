/* How the threads of an instance combine their parts of a reduction, from the layout of its
 * statement; and the shared memory in which warps pass their parts on. */
#include "derive/tiles.h"

#include <string.h>

#define PART_WORDS   4    /* of the widest access: parts of a reduction begin at multiples */
#define SHARED_WORDS 2048 /* most of a shared exchange, unless one reduction needs more */

/* True if the spread is of indexes of the reduction; a spread never mixes them with others. */
static bool is_reduced(const Spread *spread, const IndexSpace *space) {
    return spread->axes[0] >= space->bound;
}

static bool is_between_warps(const Digit *digit) {
    return digit->in_thread && digit->place * digit->extent > 32;
}

static void add_digit(Exchange *out, const Digit *digit) {
    int64_t lanes = digit->place >= 32                   ? 1
                    : digit->place * digit->extent <= 32 ? digit->extent
                                                         : 32 / digit->place;
    for (int64_t at = 1; at < lanes; at *= 2) out->lanes |= (uint32_t)(at * digit->place);
    if (digit->extent == lanes) return;
    int place = digit->place >= 32 ? digit->place / 32 : 1;
    out->warps[out->digits].place = place;
    out->warps[out->digits++].extent = (int)(digit->extent / lanes);
}

/* Elements of a thread in groups of adjacent ones that a warp holds: their totals are passed on. */
static int64_t parts_of_scan(const Spread *spread, const RegisterLayout *layout) {
    int64_t parts = layout_registers(layout);
    for (int d = 0; d < spread->count && !is_between_warps(&spread->digits[d]); d++)
        if (!spread->digits[d].in_thread) parts /= spread->digits[d].extent;
    return parts;
}

Exchange exchange_of(const Tile *tile, const RegisterLayout *layout, const RegisterLayout *held) {
    const Expr *value = tile->value;
    Exchange out = {.parts = layout_registers(held)};
    for (int s = 0; s < layout->count; s++) {
        const Spread *spread = &layout->spreads[s];
        bool scanned = tile->class == TILE_SCAN && spread->axes[0] == value->scan.along;
        if (!scanned && !is_reduced(spread, &tile->space)) continue;
        for (int d = 0; d < spread->count; d++)
            if (spread->digits[d].in_thread) add_digit(&out, &spread->digits[d]);
        if (scanned) out.parts = parts_of_scan(spread, layout);
    }
    out.lane_count = 1 << __builtin_popcount(out.lanes);
    out.warp_count = 1;
    for (int d = 0; d < out.digits; d++) out.warp_count *= out.warps[d].extent;
    return out;
}

/* ---- reductions that share an exchange ------------------------------------------------------- */

/* The reductions of one exchange so far */
typedef struct Shared {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    Tile *last;           /* NULL: none */
    int64_t words, limit; /* so far, and at most */
    int64_t most;         /* words of an exchange of the role */
    bool *results;        /* by tile: a result of these */
    bool *named;          /* by tile, of one row */
} Shared;

static int64_t exchange_words(const Shared *shared, const Tile *tile) {
    int64_t words = element_rows[tile->target.type].bytes / 4;
    words *= tile->exchange.parts * shared->role->warps * 32 / tile->exchange.lane_count;
    return (words + PART_WORDS - 1) / PART_WORDS * PART_WORDS;
}

static bool between_warps(const Row *row) {
    return row->kind == ROW_TILE && tile_combines(row->tile) && row->tile->exchange.digits > 0;
}

static void clear(const Shared *shared, bool *tiles) {
    memset(tiles, 0, shared->role->tiles.count * sizeof *tiles);
}

/* True if the row may come before the exchange: it is executed at once, and needs no result. */
static bool may_precede(Shared *shared, const Row *row) {
    bool needs = false;
    if (row->kind == ROW_OPEN) return true;
    if (row->kind == ROW_CLOSE) return row->object != OBJECT_TILE || !shared->results[row->index];
    if (row->kind == ROW_TILE && !tile_by_threads(row->tile)) return false;
    if (row->kind != ROW_TILE && row->kind != ROW_SET) return false;
    clear(shared, shared->named);
    plan_names(shared->arena, row, shared->named);
    for (size_t t = 0; t < shared->role->tiles.count; t++)
        needs |= shared->named[t] && shared->results[t];
    return !needs;
}

static void finish(Shared *shared) {
    shared->last = NULL, shared->words = 0;
    clear(shared, shared->results);
}

static void add_reduction(Shared *shared, Tile *tile) {
    tile->exchange.before = shared->last;
    tile->exchange.at = shared->words;
    if (shared->last) shared->last->exchange.later = true;
    shared->last = tile;
    shared->words += exchange_words(shared, tile);
    if (shared->words > shared->most) shared->most = shared->words;
    shared->results[tile->target.object] = true;
}

/* Variables whose parts are combined after the same loop share an exchange there. */
static void add_completed(Shared *shared, int number) {
    const FlowCode *code = shared->role->code;
    const Region *loop = code_region(code, number);
    if (!region_loops(loop)) return;
    for (int at = loop->begin; at <= loop->end; at++) {
        const Row *row = code_row(code, at);
        if (!between_warps(row) || row->tile->exchange.loop != number) continue;
        if (shared->words + exchange_words(shared, row->tile) > shared->limit) finish(shared);
        add_reduction(shared, row->tile);
    }
    finish(shared);
}

/* Most words of one reduction of the role */
static int64_t most_words(const Shared *shared) {
    const FlowCode *code = shared->role->code;
    int64_t most = 0;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        int64_t words = between_warps(row) ? exchange_words(shared, row->tile) : 0;
        if (words > most) most = words;
    }
    return most;
}

static void share_exchanges(Shared *shared) {
    const FlowCode *code = shared->role->code;
    int64_t single = most_words(shared);
    shared->limit = single > SHARED_WORDS ? single : SHARED_WORDS;
    for (size_t at = 0; at < code->rows.count && single > 0; at++) {
        const Row *row = &code->rows.items[at];
        bool here = between_warps(row) && row->tile->exchange.loop == 0,
             alone = here && row->tile->class == TILE_SCAN,
             full = shared->words + (here ? exchange_words(shared, row->tile) : 0) > shared->limit;
        if (shared->last && (alone || full || !may_precede(shared, row))) finish(shared);
        if (here) add_reduction(shared, row->tile);
        if (alone) finish(shared);
        if (row->kind == ROW_END) add_completed(shared, row->region);
    }
}

/* Two halves, in turn: a warp that is ahead writes one while others still read the other. */
void exchange_memory(Tiles *tiles, Role *role) {
    Arena *scratch = arena_scratch(tiles->arena);
    Shared shared = {.arena = scratch,
                     .prog = tiles->prog,
                     .role = role,
                     .results = NEW_ARRAY(scratch, bool, role->tiles.count + 1),
                     .named = NEW_ARRAY(scratch, bool, role->tiles.count + 1)};
    share_exchanges(&shared);
    arena_free(scratch);
    if (shared.most == 0) return;
    role->partials = (int)role->tiles.count;
    plan_add_tile(tiles->arena, tiles->prog, role,
                  (RoleTile){.name = "(partial results of warps)",
                             .span = role->span,
                             .type = E_U32,
                             .rank = 1,
                             .extents = {2 * shared.most},
                             .until = role->partials + 1});
}
