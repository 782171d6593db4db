/* Distribution of register tiles over threads: from the statements that use them to
 * TilePlan.held and Tile.spread. A tile or statement has the spreads of its classes. */
#include "derive/edit.h"
#include "derive/threads/spread.h"

#define UNROLLED_MOST 64 /* elements of a thread; more are a loop, if their registers allow it */

/* ---- layouts --------------------------------------------------------------------------------- */

static int member_of(const Registers *r, const Group *group, size_t class) {
    int found = -1;
    for (int i = 0; i < group->count; i++)
        if (r->nodes[group->first + (size_t)i].used &&
            spread_first(r, group->first + (size_t)i) == class)
            found = i;
    return found;
}

static int64_t group_extent(const Group *group, int i) {
    return group->tile ? group->tile->extents[i] : group->site->tile->space.items[i].extent;
}

static void add_spread(const Registers *r, const Group *group, int axis, RegisterLayout *out) {
    Spread pattern = *r->nodes[spread_first(r, group->first + (size_t)axis)].spread;
    int64_t extent = group_extent(group, axis);
    if (layout_spread(out, axis, NULL)) return; /* flattened, with an earlier axis */
    if (pattern.members > 1) {
        extent = 1;
        for (int m = 0; m < pattern.members; m++) {
            pattern.axes[m] = member_of(r, group, (size_t)pattern.axes[m]);
            extent *= group_extent(group, pattern.axes[m]);
        }
    }
    out->spreads[out->count++] = spread_whole(&pattern, axis, extent);
}

/* Number of threads, a divisor of `room`, that takes the fewest rounds, and of these the least */
static int64_t threads_for(int64_t units, int64_t room) {
    int64_t best = 1;
    for (int64_t threads = 2; threads <= room; threads++)
        if (room % threads == 0 && (units + threads - 1) / threads < (units + best - 1) / best)
            best = threads;
    return best;
}

/* Indexes that subscript no register tile use threads that would otherwise hold replicas */
static void add_free(const Registers *r, const Group *group, int axis, RegisterLayout *out) {
    Digit rooms[2 * PROG_MAX_INDEXES + 1] = {spread_in_thread(1, 1, 0)};
    int vector_axis;
    int64_t extent = group_extent(group, axis);
    layout_replicas(out, r->threads, rooms);
    int64_t vector = 1, others = r->threads / rooms[0].extent;
    if (layout_vector(out, &vector_axis) == 1)
        vector =
            spread_vector(r, group->first + (size_t)axis, extent, extent_product(extent, others));
    int64_t threads = threads_for(extent / vector, rooms[0].extent);
    Spread pattern = spread_blocked(threads * vector, vector, &rooms[0]);
    out->spreads[out->count++] = spread_whole(&pattern, axis, extent);
}

static void layout_of(const Registers *r, const Group *group, RegisterLayout *out) {
    out->spreads = NEW_ARRAY(r->tiles->arena, Spread, group->count);
    for (int i = 0; i < group->count; i++)
        if (r->nodes[group->first + (size_t)i].used) add_spread(r, group, i, out);
    for (int i = group->count - 1; i >= 0; i--)
        if (!r->nodes[group->first + (size_t)i].used) add_free(r, group, i, out);
}

static bool subscripts_registers(const Site *site, int index) {
    bool any = false;
    for (size_t k = 0; k <= site->reads.count; k++) {
        const Access *access = spread_access(site, k);
        for (int d = 0; access && d < access->rank; d++)
            any |= expr_depends(access->subs[d], index);
    }
    return any;
}

/* Registers have constant numbers, so indexes of register tiles are unrolled; of the others, the
 * one with the most rounds becomes a loop if the statement has many elements. */
static void loop_over_memory(const Site *site, RegisterLayout *layout) {
    Digit *most = NULL;
    if (layout_registers(layout) <= UNROLLED_MOST || !layout_is_blocked(layout)) return;
    for (int s = 0; s < layout->count; s++) {
        Spread *spread = &layout->spreads[s];
        Digit *rounds = &spread->digits[spread->count - 1];
        if (spread->members > 1 || subscripts_registers(site, spread->axes[0])) continue;
        if (rounds->extent > (most ? most->extent : 1)) most = rounds;
    }
    if (most) most->place = TILES_LOOPED;
}

/* Reports rows of two accumulators along two indexes: a thread's position along one is its
 * position along the other. */
static void check_apart(Registers *r, Site *site, const Group *group) {
    Diags *diags = r->tiles->diags;
    const IndexSpace *space = &site->tile->space;
    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < i && !site->poisoned; k++) {
            const Node *a = &r->nodes[spread_first(r, group->first + (size_t)k)];
            const Node *b = &r->nodes[spread_first(r, group->first + (size_t)i)];
            if (!a->used || !b->used || a->spread->kind != b->spread->kind) continue;
            if (a->spread->kind != SPREAD_ROWS && a->spread->kind != SPREAD_COLUMNS) continue;
            const char *words = spread_words(a->spread->kind);
            Diag *diag =
                diag_at(diags, P0205, site->tile->target.span,
                        "this statement needs elements along `%s` and `%s` that other threads hold",
                        space->items[k].name, space->items[i].name);
            diag_primary(diags, diag, "both are %s, but a thread holds one position along them",
                         words);
            diag_help(diags, diag, "pass one of the register tiles through a `shared` tile");
            site->poisoned = true;
        }
}

/* ---- parts ----------------------------------------------------------------------------------- */

static void refuse_part(Registers *r, Site *site, const Access *access, int d, const char *what,
                        int64_t size, int64_t granule) {
    Diags *diags = r->tiles->diags;
    const RoleTile *tile = &r->role->tiles.items[access->object];
    int64_t below = size / granule * granule;
    Diag *diag = diag_at(diags, P0227, access->subs[d]->span,
                         "this part of `%s` includes elements that other threads hold", tile->name);
    diag_primary(diags, diag, "%s", what);
    diag_label(diags, diag, tile->span,
               "along axis %d, the thread layout repeats every %lld elements", d,
               (long long)granule);
    if (size == 0)
        diag_help(diags, diag, "choose parts that begin at multiples of %lld", (long long)granule);
    else if (below > 0)
        diag_help(diags, diag, "use %lld or %lld", (long long)below, (long long)(below + granule));
    else
        diag_help(diags, diag, "use %lld", (long long)granule);
    site->poisoned = true;
}

/* Checks parts of an axis with an accumulator's spread: whole granules; parts of spread_blocked
 * axes are whole by construction. */
static void check_parts(Registers *r, Site *site, const Access *access) {
    const RegisterLayout *held = &plan_tile(r->tiles->prog, r->role, access->object)->held;
    Arena *arena = r->tiles->arena;
    for (int d = 0; d < access->rank && !site->poisoned; d++) {
        const Spread *spread = layout_spread(held, d, NULL);
        int index = spread_lone_index(access, d);
        if (index < 0 || spread->members > 1 ||
            !r->nodes[spread_first(r, spread_axis_node(access, d))].parts)
            continue;
        int64_t granule = spread->granule, runs = site->tile->space.items[index].extent,
                has = spread->extent;
        if (has % granule != 0)
            refuse_part(r, site, access, d,
                        arena_printf(arena, "the axis has %lld elements", (long long)has), has,
                        granule);
        else if (runs % granule != 0)
            refuse_part(r, site, access, d,
                        arena_printf(arena, "`%s` has extent %lld",
                                     site->tile->space.items[index].name, (long long)runs),
                        runs, granule);
        else if (spread_base_unit(site, access, d) % granule != 0)
            refuse_part(r, site, access, d, "may begin elsewhere", 0, granule);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

/* Layouts of tiles come before those of statements. */
static void set_exchange(const Registers *r, Tile *tile, const RegisterLayout *layout) {
    const TilePlan *result = plan_tile(r->tiles->prog, r->role, tile->target.object);
    tile->exchange = exchange_of(tile, layout, &result->held);
}

static void role_registers(Registers *r) {
    size_t indexes = 0;
    for (size_t i = 0; i < r->tiles->sites.count; i++) {
        const Site *site = r->tiles->sites.items[i];
        if (spread_is_map(r, site) && spread_names_registers(site))
            indexes += (size_t)site->tile->space.count;
    }
    spread_open(r, indexes);
    if (r->groups.count == 0) return;
    spread_statements(r);
    spread_memory(r);
    spread_components(r);
    spread_settle(r);
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        int tile = (int)group->first / PROG_MAX_RANK;
        RegisterLayout *out = group->tile ? &edit_tile(r->tiles->prog, r->role, tile)->held
                                          : NEW(r->tiles->arena, RegisterLayout);
        if (group->site) check_apart(r, group->site, group);
        if (group->site && group->site->poisoned) continue;
        layout_of(r, group, out);
        if (group->site) loop_over_memory(group->site, out);
        if (group->site) group->site->tile->spread = out;
        if (group->site && tile_combines(group->site->tile))
            set_exchange(r, group->site->tile, out);
    }
    for (size_t g = 0; g < r->groups.count; g++) {
        Site *site = r->groups.items[g].site;
        for (size_t k = 0; site && k <= site->reads.count && !site->poisoned; k++)
            if (spread_access(site, k)) check_parts(r, site, spread_access(site, k));
    }
}

void tiles_registers(Tiles *tiles) {
    for (size_t i = 0; i < tiles->prog->roles.count; i++) {
        Role *role = &tiles->prog->roles.items[i];
        Arena *scratch = arena_scratch(tiles->arena);
        Registers registers = {
            .arena = scratch, .tiles = tiles, .role = role, .threads = role->warps * 32};
        role_registers(&registers);
        partials_find(tiles, role);
        exchange_memory(tiles, role);
        arena_free(scratch);
    }
}
