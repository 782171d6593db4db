/* How the threads of an instance combine their parts of a reduction, from the layout of its
 * statement; and the shared memory in which warps pass their parts on. */
#include "derive/tiles.h"

/* True if the spread is of indexes of the reduction; a spread never mixes them with others. */
static bool is_reduced(const Spread *spread, const IndexSpace *space) {
    return spread->axes[0] >= space->bound;
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

Exchange exchange_of(const IndexSpace *space, const RegisterLayout *layout) {
    Exchange out = {0};
    for (int s = 0; s < layout->count; s++) {
        const Spread *spread = &layout->spreads[s];
        for (int d = 0; is_reduced(spread, space) && d < spread->count; d++)
            if (spread->digits[d].in_thread) add_digit(&out, &spread->digits[d]);
    }
    out.lane_count = 1 << __builtin_popcount(out.lanes);
    out.warp_count = 1;
    for (int d = 0; d < out.digits; d++) out.warp_count *= out.warps[d].extent;
    return out;
}

static int64_t exchange_words(const Prog *prog, const Role *role, const Tile *tile) {
    const TilePlan *result = plan_tile(prog, role, tile->target.object);
    int64_t words = element_rows[tile->target.type].bytes / 4;
    if (tile->exchange.digits == 0) return 0;
    return layout_registers(&result->held) * words * role->warps * 32 / tile->exchange.lane_count;
}

/* Two halves, in turn: a warp that is ahead writes one while others still read the other. */
void exchange_memory(Tiles *tiles, Role *role) {
    int64_t most = 0;
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Site *site = tiles->sites.items[i];
        if (site->role != role || site->poisoned || site->tile->class != TILE_REDUCTION) continue;
        int64_t words = exchange_words(tiles->prog, role, site->tile);
        if (words > most) most = words;
    }
    if (most == 0) return;
    role->partials = (int)role->tiles.count;
    plan_add_tile(tiles->arena, tiles->prog, role,
                  (RoleTile){.name = "(partial results of warps)",
                             .span = role->span,
                             .type = E_U32,
                             .rank = 1,
                             .extents = {2 * most},
                             .until = role->partials + 1});
}
