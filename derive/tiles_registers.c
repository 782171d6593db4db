/* Distribution of register tiles over threads: from the statements that use them to
 * TilePlan.held and Tile.spread.
 *
 * Axes of tiles that are subscripted by one index must be in the same threads: they form a
 * class, and a class has one spread. Contractions and constant subscripts determine some
 * classes; other classes that occur together with accumulators follow them; the rest is blocked.
 * Two different spreads for one class, or one class twice in a tile, would need an exchange
 * between threads, which is refused with both places. */
#include "derive/tiles.h"

#define VECTOR_MOST  4  /* elements of a blocked vector */
#define VECTOR_BYTES 16 /* of the widest load or store */
#define WIDE_MOST    8  /* elements of a vector beside a reduction */

/* A class of axes and indexes (union-find); its facts are those of its first node */
typedef struct Node {
    size_t same; /* link to the first node of the class */
    /* link to the first class of those that occur together in tiles and statements */
    size_t together;
    bool used;    /* an axis, or an index that subscripts a register tile */
    bool reduced; /* an index of some reduction */
    bool marked;  /* determined as `kind`, at `where` */
    bool joined;  /* has several nodes */
    SpreadKind kind;
    Span where;
    int64_t unit;   /* divides all extents, and all bases of subscripts */
    int64_t extent; /* of the first; with `parts`, others are parts of it */
    bool parts;
    /* the pattern, to which each axis adds its own last digit; NULL: not settled yet */
    const Spread *spread;
} Node;

/* Nodes that need distinct threads: the axes of a tile, or the indexes of a statement */
typedef struct Group {
    size_t first;
    int count;
    const RoleTile *tile; /* NULL: a statement, `site` */
    Site *site;
} Group;

typedef struct Registers {
    Arena *arena; /* scratch */
    Tiles *tiles;
    Role *role;
    int threads;
    size_t count;
    Node *nodes;
    VEC(Group) groups; /* of tiles, then of statements so far */
} Registers;

/* ---- classes --------------------------------------------------------------------------------- */

static size_t first_of(const Registers *r, size_t node) {
    while (r->nodes[node].same != node) node = r->nodes[node].same;
    return node;
}

static size_t component_of(const Registers *r, size_t node) {
    node = first_of(r, node);
    while (r->nodes[node].together != node) node = r->nodes[node].together;
    return node;
}

static size_t axis_node(const Access *access, int d) {
    return (size_t)access->object * PROG_MAX_RANK + (size_t)d;
}

static int64_t divisor_of(int64_t a, int64_t b) {
    while (b != 0) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a < 0 ? -a : a;
}

static const char *kind_words(SpreadKind kind) {
    switch (kind) {
    case SPREAD_ROWS: return "rows of an accumulator";
    case SPREAD_COLUMNS: return "columns of an accumulator";
    case SPREAD_EVERY: return "subscripted by a constant: every thread holds all elements";
    case SPREAD_BLOCKED: break;
    }
    return "spread over the threads";
}

static Diag *refuse(Registers *r, Site *site, const Access *access, int d, const char *what) {
    const RoleTile *tile = &r->role->tiles.items[access->object];
    Diags *diags = r->tiles->diags;
    Diag *diag =
        diag_at(diags, P0205, access->subs[d]->span,
                "this statement needs elements of `%s` that other threads hold", tile->name);
    diag_primary(diags, diag, "%s", what);
    site->poisoned = true;
    return diag;
}

static void way_out(Registers *r, Diag *diag, const Access *access) {
    const RoleTile *tile = &r->role->tiles.items[access->object];
    Str subs = str_new(r->tiles->arena);
    for (int d = 0; d < tile->rank; d++) str_printf(&subs, "%s%c", d ? ", " : "", "ijklm"[d]);
    diag_help(
        r->tiles->diags, diag,
        "pass it through a `shared` tile: `shared t: ..; t[%s] = %s[%s];`, then read `t` instead",
        subs.text, tile->name, subs.text);
}

static bool mark(Registers *r, Site *site, const Access *access, int d, SpreadKind kind) {
    Node *node = &r->nodes[first_of(r, axis_node(access, d))];
    if (!node->marked) {
        node->marked = true, node->kind = kind, node->where = access->subs[d]->span;
        return true;
    }
    if (node->kind == kind) return true;
    Diag *diag = refuse(r, site, access, d, kind_words(kind));
    diag_label(r->tiles->diags, diag, node->where, "%s", kind_words(node->kind));
    way_out(r, diag, access);
    return false;
}

/* A tile or statement with both classes, which therefore cannot be joined. An index that is not
 * joined yet occurs only in the last statement. */
static const Group *group_of_both(const Registers *r, size_t a, size_t b, size_t index) {
    for (size_t g = b == index && !r->nodes[b].joined ? r->groups.count - 1 : 0;
         g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        int seen = 0;
        for (int i = 0; i < group->count; i++) {
            const Node *node = &r->nodes[group->first + (size_t)i];
            size_t first = first_of(r, group->first + (size_t)i);
            if (node->used) seen |= first == a ? 1 : first == b ? 2 : 0;
        }
        if (seen == 3) return group;
    }
    return NULL;
}

static bool join(Registers *r, Site *site, const Access *access, int d, size_t index) {
    Diags *diags = r->tiles->diags;
    size_t a = first_of(r, axis_node(access, d)), b = first_of(r, index);
    Node *to = &r->nodes[a < b ? a : b], *from = &r->nodes[a < b ? b : a];
    if (a == b) return true;
    if (to->marked && from->marked && to->kind != from->kind) {
        const Node *other = &r->nodes[b];
        Diag *diag = refuse(r, site, access, d, kind_words(r->nodes[a].kind));
        diag_label(diags, diag, r->nodes[a].where, "%s: here", kind_words(r->nodes[a].kind));
        diag_label(diags, diag, other->where, "%s: here", kind_words(other->kind));
        diag_note(diags, diag, "`%s` would have both layouts",
                  tiles_text(r->tiles, access->subs[d]->span));
        way_out(r, diag, access);
        return false;
    }
    bool every =
        (to->marked && to->kind == SPREAD_EVERY) || (from->marked && from->kind == SPREAD_EVERY);
    const Group *group = every ? NULL : group_of_both(r, a, b, index);
    if (group) {
        Diag *diag = refuse(r, site, access, d,
                            "another axis with this index is already spread over these threads");
        if (group->tile)
            diag_label(diags, diag, group->tile->span,
                       "`%s` has both axes, but a thread holds one position along each",
                       group->tile->name);
        else
            diag_label(diags, diag, group->site->row->span,
                       "a thread holds one position along each of these indexes");
        way_out(r, diag, access);
        return false;
    }
    if (!to->marked && from->marked)
        to->marked = true, to->kind = from->kind, to->where = from->where;
    from->same = (size_t)(to - r->nodes);
    from->joined = to->joined = true;
    if (to->extent != from->extent) to->parts = true;
    to->parts |= from->parts;
    to->unit = divisor_of(to->unit, from->unit);
    to->used |= from->used, to->reduced |= from->reduced;
    return true;
}

/* ---- facts from statements ------------------------------------------------------------------- */

static bool is_map(const Registers *r, const Site *site) {
    TileClass class = site->tile->class;
    bool map = class == TILE_UNCLASSIFIED || class == TILE_REDUCTION;
    return site->role == r->role && !site->poisoned && map;
}

static Access *register_access(const Site *site, size_t k) { /* the target, then the reads */
    Access *access = k == 0 ? &site->tile->target : site->reads.items[k - 1];
    return access->space == SPACE_REGISTER ? access : NULL;
}

static bool names_registers(const Site *site) {
    bool any = false;
    for (size_t k = 0; k <= site->reads.count; k++) any |= register_access(site, k) != NULL;
    return any;
}

static int lone_index(const Access *access, int d) {
    const Affine *affine = &access->affine[d];
    int found = -1;
    for (int i = 0; i < PROG_MAX_INDEXES && affine->is; i++)
        if (affine->coef[i] != 0) {
            if (affine->coef[i] != 1 || found >= 0) return -1;
            found = i;
        }
    return found;
}

static int64_t base_unit(const Site *site, const Access *access, int d) {
    return poly_divisor(site->algebra,
                        algebra_poly(site->algebra, site->role, access->affine[d].base));
}

static void mark_constants(Registers *r, Site *site) {
    for (size_t k = 0; k <= site->reads.count && !site->poisoned; k++) {
        const Access *access = register_access(site, k);
        for (int d = 0; access && d < access->rank && !site->poisoned; d++)
            if (access->subs[d]->indexes == 0) mark(r, site, access, d, SPREAD_EVERY);
    }
}

/* The first operand's fragments of a 16-bit type are those of an accumulator (PTX ISA
 * 9.7.15.5.1). */
static void mark_matrix(Registers *r, Site *site, const Access *access) {
    if (mark(r, site, access, 0, SPREAD_ROWS)) mark(r, site, access, 1, SPREAD_COLUMNS);
}

static void join_access(Registers *r, Site *site, const Access *access, size_t first) {
    for (int d = 0; d < access->rank && !site->poisoned; d++) {
        int index = lone_index(access, d);
        if (access->subs[d]->indexes == 0) continue;
        if (index < 0) {
            Diag *diag = refuse(r, site, access, d,
                                "a register tile must be subscripted by one index, or by a "
                                "constant plus one index");
            way_out(r, diag, access);
            return;
        }
        Node *node = &r->nodes[first + (size_t)index];
        int64_t unit = base_unit(site, access, d);
        if (!node->used)
            node->used = true, node->extent = node->unit = site->tile->space.items[index].extent;
        if (!join(r, site, access, d, first + (size_t)index)) return;
        Node *class = &r->nodes[first_of(r, first + (size_t)index)];
        if (unit != 0) class->parts = true, class->unit = divisor_of(class->unit, unit);
    }
}

/* The indexes of a reduction are spread over the threads whether or not they subscript a register
 * tile. */
static void open_reduction(Registers *r, const Site *site, size_t first) {
    const IndexSpace *space = &site->tile->space;
    for (int i = space->bound; i < space->count; i++) {
        Node *node = &r->nodes[first + (size_t)i];
        node->used = node->reduced = true;
        node->extent = node->unit = space->items[i].extent;
    }
}

/* indexes: of all statements over register tiles */
static void collect(Registers *r, size_t indexes) {
    Role *role = r->role;
    r->count = role->tiles.count * PROG_MAX_RANK + indexes;
    r->nodes = NEW_ARRAY(r->arena, Node, r->count + 1);
    for (size_t n = 0; n < r->count; n++) r->nodes[n].same = r->nodes[n].together = n;
    for (size_t t = 0; t < role->tiles.count; t++) {
        const RoleTile *tile = &role->tiles.items[t];
        if (!tile->in_registers) continue;
        Group group = {t * PROG_MAX_RANK, tile->rank, tile, NULL};
        for (int d = 0; d < tile->rank; d++) {
            Node *node = &r->nodes[group.first + (size_t)d];
            node->used = true, node->extent = node->unit = tile->extents[d];
        }
        vec_push(r->arena, &r->groups, group);
    }
}

static void read_statements(Registers *r) {
    size_t next = r->role->tiles.count * PROG_MAX_RANK;
    for (size_t i = 0; i < r->tiles->sites.count; i++) {
        Site *site = r->tiles->sites.items[i];
        if (site->role != r->role || site->tile->class != TILE_MMA) continue;
        mark_matrix(r, site, &site->tile->target);
        if (site->tile->mma.a.tile->space == SPACE_REGISTER)
            mark_matrix(r, site, site->tile->mma.a.tile);
    }
    for (size_t i = 0; i < r->tiles->sites.count; i++)
        if (is_map(r, r->tiles->sites.items[i])) mark_constants(r, r->tiles->sites.items[i]);
    for (size_t i = 0; i < r->tiles->sites.count; i++) {
        Site *site = r->tiles->sites.items[i];
        if (!is_map(r, site) || !names_registers(site)) continue;
        bool reduces = site->tile->class == TILE_REDUCTION;
        const IndexSpace *space = &site->tile->space;
        Group group = {next, reduces ? space->count : space->bound, NULL, site};
        vec_push(r->arena, &r->groups, group);
        if (reduces) open_reduction(r, site, group.first);
        for (size_t k = 0; k <= site->reads.count && !site->poisoned; k++)
            if (register_access(site, k))
                join_access(r, site, register_access(site, k), group.first);
        next += (size_t)site->tile->space.count;
    }
}

/* ---- patterns -------------------------------------------------------------------------------- */

static Digit in_thread(int place, int64_t extent, int64_t stride) {
    return (Digit){true, place, extent, stride};
}
static Digit in_register(int place, int64_t extent, int64_t stride) {
    return (Digit){false, place, extent, stride};
}

/* All digits except the last one */
static Spread pattern_of(SpreadKind kind) {
    Spread out = {.kind = kind, .granule = 1};
    switch (kind) {
    case SPREAD_ROWS:
        out.digits[out.count++] = in_thread(4, 8, 1);
        out.digits[out.count++] = in_register(1, 2, 8);
        out.digits[out.count++] = in_thread(32, 4, 16);
        out.granule = TILES_SLAB_ROWS;
        break;
    case SPREAD_COLUMNS:
        out.digits[out.count++] = in_register(0, 2, 1);
        out.digits[out.count++] = in_thread(1, 4, 2);
        out.granule = 8;
        break;
    case SPREAD_EVERY:
    case SPREAD_BLOCKED: break;
    }
    return out;
}

/* The pattern for a whole axis, with its number of granules */
static Spread spread_over(const Spread *pattern, int axis, int64_t extent) {
    static const int places[] = {
        [SPREAD_ROWS] = 3, [SPREAD_COLUMNS] = 2, [SPREAD_EVERY] = 4, [SPREAD_BLOCKED] = 2};
    Spread out = *pattern;
    int place = extent % out.granule != 0 ? 5 : places[out.kind]; /* a partial round comes last */
    if (out.members <= 1) out.members = 1, out.axes[0] = axis;
    out.extent = extent;
    out.digits[out.count++] =
        in_register(place, (extent + out.granule - 1) / out.granule, out.granule);
    return out;
}

/* Vectors along the innermost axis, then as many threads of `room` as divide the remaining
 * extent */
static Spread blocked(int64_t unit, bool vectors, Digit *room) {
    Spread out = pattern_of(SPREAD_BLOCKED);
    int64_t vector = vectors ? VECTOR_MOST : 1;
    while (unit % vector != 0) vector /= 2;
    int64_t along = divisor_of(unit / vector, room->extent);
    if (vector > 1) out.digits[out.count++] = in_register(0, vector, 1);
    if (along > 1) out.digits[out.count++] = in_thread(room->place, along, vector);
    out.granule = vector * along;
    room->place *= (int)along, room->extent /= along;
    return out;
}

static void settle(Registers *r, Node *class, Spread pattern) {
    Spread *spread = NEW(r->arena, Spread);
    *spread = pattern;
    class->spread = spread;
}

/* ---- components ------------------------------------------------------------------------------ */

/* Classes that occur together in a tile or statement share the threads */
static void find_components(Registers *r) {
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        size_t before = SIZE_MAX;
        for (int i = 0; i < group->count; i++) {
            size_t node = group->first + (size_t)i;
            const Node *class = &r->nodes[first_of(r, node)];
            if (!r->nodes[node].used || (class->marked && class->kind == SPREAD_EVERY)) continue;
            size_t component = component_of(r, node);
            if (before != SIZE_MAX && before != component) {
                r->nodes[component > before ? component : before].together =
                    component > before ? before : component;
                component = component > before ? before : component;
            }
            before = component;
        }
    }
}

static bool meets(const Registers *r, size_t class, SpreadKind kind) {
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        bool found = false, other = false;
        for (int i = 0; i < group->count; i++) {
            size_t node = group->first + (size_t)i, first = first_of(r, node);
            if (!r->nodes[node].used) continue;
            found |= first == class;
            other |= r->nodes[first].spread && r->nodes[first].spread->kind == kind;
        }
        if (found && other) return true;
    }
    return false;
}

/* Classes that occur with accumulators: one that occurs only with rows is distributed as
 * columns, and vice versa; the rest is in every thread. */
static void with_accumulators(Registers *r, size_t class) {
    Node *node = &r->nodes[class];
    bool rows = meets(r, class, SPREAD_ROWS), columns = meets(r, class, SPREAD_COLUMNS);
    SpreadKind kind = rows && !columns && node->unit % 8 == 0                 ? SPREAD_COLUMNS
                      : columns && !rows && node->unit % TILES_SLAB_ROWS == 0 ? SPREAD_ROWS
                                                                              : SPREAD_EVERY;
    settle(r, node, pattern_of(kind));
}

static bool open_in(const Registers *r, size_t node, size_t component) {
    return r->nodes[node].used && !r->nodes[first_of(r, node)].spread &&
           component_of(r, node) == component;
}

static int width_of(const Registers *r, const Group *group, size_t component) {
    int width = 0;
    for (int i = 0; i < group->count; i++) width += open_in(r, group->first + (size_t)i, component);
    return width;
}

/* Classes of the component in the order of its widest tile or statement, others before them;
 * returns their number */
static int order_of(const Registers *r, size_t component, size_t *order) {
    const Group *widest = NULL;
    int count = 0, width = 0;
    for (size_t g = 0; g < r->groups.count; g++) {
        int own_width = width_of(r, &r->groups.items[g], component);
        if (own_width > width) width = own_width, widest = &r->groups.items[g];
    }
    for (size_t n = 0; widest && n < r->count; n++) {
        bool within = false;
        for (int i = 0; i < widest->count; i++)
            within |= first_of(r, widest->first + (size_t)i) == n;
        if (!within && first_of(r, n) == n && open_in(r, n, component)) order[count++] = n;
    }
    for (int i = 0; widest && i < widest->count; i++)
        if (open_in(r, widest->first + (size_t)i, component))
            order[count++] = first_of(r, widest->first + (size_t)i);
    return count;
}

/* True if all tiles and statements of the component have all of its classes, whole: then it can
 * be flattened */
static bool is_flat(const Registers *r, size_t component, const size_t *order, int count) {
    for (int i = 0; i < count; i++)
        if (r->nodes[order[i]].parts) return false;
    for (size_t g = 0; g < r->groups.count; g++) {
        int width = width_of(r, &r->groups.items[g], component);
        if (width != 0 && width != count) return false;
    }
    return true;
}

/* One vector after another of the flattened axes; the last round may be partial. */
static void flatten(Registers *r, const size_t *order, int count) {
    const Node *inner = &r->nodes[order[count - 1]];
    Spread out = pattern_of(SPREAD_BLOCKED);
    int64_t vector = VECTOR_MOST;
    while (inner->extent % vector != 0) vector /= 2;
    if (vector > 1) out.digits[out.count++] = in_register(0, vector, 1);
    out.digits[out.count++] = in_thread(1, r->threads, vector);
    out.granule = vector * r->threads;
    out.members = count;
    for (int i = 0; i < count; i++)
        out.axes[i] = (int)order[i]; /* the class; replaced later by an axis or index of it */
    for (int i = 0; i < count; i++) settle(r, &r->nodes[order[i]], out);
}

/* ---- components with reductions -------------------------------------------------------------- */

/* What a class of such a component gets: elements of a vector, lanes, warps */
typedef struct Share {
    Node *class;
    int64_t vector, lanes, warps, lane_place, warp_place;
    bool partial; /* its last round may be partial */
} Share;

static int64_t share_size(const Share *share) {
    return share->vector * share->lanes * share->warps;
}

/* Bytes of the widest element in memory whose last subscript is this class; 0: none */
static int widest_along(const Registers *r, size_t class) {
    int widest = 0;
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        for (size_t k = 0; group->site && k <= group->site->reads.count; k++) {
            const Access *access =
                k == 0 ? &group->site->tile->target : group->site->reads.items[k - 1];
            int index = access->rank > 0 ? lone_index(access, access->rank - 1) : -1;
            if (access->space == SPACE_REGISTER || index < 0 || index >= group->count) continue;
            int bytes = (int)element_rows[access->type].bytes;
            if (first_of(r, group->first + (size_t)index) == class && bytes > widest)
                widest = bytes;
        }
    }
    return widest;
}

static int64_t power_within(int64_t most, int64_t needed) {
    int64_t power = 1;
    while (power * 2 <= most && power < needed) power *= 2;
    return power;
}

/* Lanes: the innermost class first, so that a warp accesses adjacent elements, and reduces among
 * its lanes. It alone may end within a round. */
static void share_lanes(Share *shares, int count) {
    int64_t left = 32, place = 1;
    for (int i = count - 1; i >= 0; i--) {
        Share *share = &shares[i];
        int64_t vectors = share->class->unit / share->vector;
        bool whole = i == count - 1 && !share->class->parts;
        share->lanes = divisor_of(vectors, left);
        if (whole && share->lanes < power_within(left, vectors))
            share->lanes = power_within(left, vectors), share->partial = true;
        share->lane_place = place;
        place *= share->lanes, left /= share->lanes;
    }
}

/* Warps: classes that are not reduced first, so that as few as possible exchange */
static void share_warps(Share *shares, int count, int64_t left) {
    int64_t place = 32;
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < count; i++) {
            Share *share = &shares[i];
            if (share->class->reduced != (pass == 1)) continue;
            int64_t round = share->vector * share->lanes;
            int64_t rounds = (share->class->unit + round - 1) / round;
            bool whole = i == count - 1 && !share->class->parts;
            share->warps = divisor_of(rounds, left);
            if (whole && rounds > left && share->warps < left) share->warps = left;
            share->partial |= whole && share->class->extent % share_size(share) != 0;
            share->warp_place = place;
            place *= share->warps, left /= share->warps;
        }
}

static Spread shared_spread(const Share *share) {
    Spread out = pattern_of(SPREAD_BLOCKED);
    int64_t stride = share->vector;
    if (share->vector > 1) out.digits[out.count++] = in_register(0, share->vector, 1);
    if (share->lanes > 1)
        out.digits[out.count++] = in_thread((int)share->lane_place, share->lanes, stride);
    stride *= share->lanes;
    if (share->warps > 1)
        out.digits[out.count++] = in_thread((int)share->warp_place, share->warps, stride);
    out.granule = share_size(share);
    return out;
}

static bool reduces(const Registers *r, const size_t *order, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any |= r->nodes[order[i]].reduced;
    return any;
}

/* The class along which memory is adjacent becomes the innermost one, whichever is reduced. */
static void order_by_memory(const Registers *r, size_t *order, int count) {
    int inner = count - 1;
    while (inner > 0 && widest_along(r, order[inner]) == 0) inner--;
    if (widest_along(r, order[inner]) == 0) return;
    size_t class = order[inner];
    for (int i = inner; i + 1 < count; i++) order[i] = order[i + 1];
    order[count - 1] = class;
}

/* One mechanism for a row of a warp, rows of a part of a warp, and a row over several warps */
static void settle_reducing(Registers *r, size_t *order, int count) {
    order_by_memory(r, order, count);
    Share *shares = NEW_ARRAY(r->arena, Share, count);
    int widest = widest_along(r, order[count - 1]);
    for (int i = 0; i < count; i++)
        shares[i] = (Share){.class = &r->nodes[order[i]], .vector = 1, .lanes = 1, .warps = 1};
    Share *inner = &shares[count - 1];
    inner->vector = widest > 0 ? VECTOR_BYTES / widest : VECTOR_MOST;
    if (inner->vector > WIDE_MOST) inner->vector = WIDE_MOST;
    while (inner->class->unit % inner->vector != 0) inner->vector /= 2;
    share_lanes(shares, count);
    share_warps(shares, count, r->threads / 32);
    for (int i = 0; i < count; i++) settle(r, shares[i].class, shared_spread(&shares[i]));
}

static void settle_component(Registers *r, size_t component) {
    size_t *order = NEW_ARRAY(r->arena, size_t, r->count + 1);
    int count = order_of(r, component, order);
    Digit room = in_thread(1, r->threads, 0);
    if (count == 0) return;
    if (reduces(r, order, count)) {
        settle_reducing(r, order, count);
        return;
    }
    if (count <= PROG_MAX_RANK && is_flat(r, component, order, count)) {
        flatten(r, order, count);
        return;
    }
    for (int i = count - 1; i >= 0; i--) /* the widest one's innermost axis first */
        settle(r, &r->nodes[order[i]], blocked(r->nodes[order[i]].unit, i == count - 1, &room));
}

static void settle_classes(Registers *r) {
    bool *accumulates = NEW_ARRAY(r->arena, bool, r->count + 1);
    for (size_t n = 0; n < r->count; n++) {
        Node *node = &r->nodes[n];
        if (!node->used || first_of(r, n) != n || !node->marked) continue;
        settle(r, node, pattern_of(node->kind));
        if (node->kind != SPREAD_EVERY) accumulates[component_of(r, n)] = true;
    }
    for (size_t n = 0; n < r->count; n++) {
        if (!r->nodes[n].used || first_of(r, n) != n || r->nodes[n].spread) continue;
        if (accumulates[component_of(r, n)])
            with_accumulators(r, n);
        else
            settle_component(r, component_of(r, n));
    }
}

/* ---- layouts --------------------------------------------------------------------------------- */

static int member_of(const Registers *r, const Group *group, size_t class) {
    int found = -1;
    for (int i = 0; i < group->count; i++)
        if (r->nodes[group->first + (size_t)i].used &&
            first_of(r, group->first + (size_t)i) == class)
            found = i;
    return found;
}

static int64_t group_extent(const Group *group, int i) {
    return group->tile ? group->tile->extents[i] : group->site->tile->space.items[i].extent;
}

static void add_spread(const Registers *r, const Group *group, int axis, RegisterLayout *out) {
    Spread pattern = *r->nodes[first_of(r, group->first + (size_t)axis)].spread;
    int64_t extent = group_extent(group, axis);
    if (layout_spread(out, axis, NULL)) return; /* flattened, with an earlier axis */
    if (pattern.members > 1) {
        extent = 1;
        for (int m = 0; m < pattern.members; m++) {
            pattern.axes[m] = member_of(r, group, (size_t)pattern.axes[m]);
            extent *= group_extent(group, pattern.axes[m]);
        }
    }
    out->spreads[out->count++] = spread_over(&pattern, axis, extent);
}

/* Indexes that subscript no register tile use threads that would otherwise hold replicas */
static void add_free(const Registers *r, const Group *group, int axis, RegisterLayout *out) {
    Digit rooms[2 * PROG_MAX_INDEXES + 1] = {in_thread(1, 1, 0)};
    int vector_axis;
    int64_t extent = group_extent(group, axis);
    layout_replicas(out, r->threads, rooms);
    Spread pattern = blocked(extent, layout_vector(out, &vector_axis) == 1, &rooms[0]);
    out->spreads[out->count++] = spread_over(&pattern, axis, extent);
}

static void layout_of(const Registers *r, const Group *group, RegisterLayout *out) {
    out->spreads = NEW_ARRAY(r->tiles->arena, Spread, group->count);
    for (int i = 0; i < group->count; i++)
        if (r->nodes[group->first + (size_t)i].used) add_spread(r, group, i, out);
    for (int i = group->count - 1; i >= 0; i--)
        if (!r->nodes[group->first + (size_t)i].used) add_free(r, group, i, out);
}

/* Reports rows of two accumulators along two indexes: a thread's position along one is its
 * position along the other. */
static void check_apart(Registers *r, Site *site, const Group *group) {
    Diags *diags = r->tiles->diags;
    const IndexSpace *space = &site->tile->space;
    for (int i = 0; i < group->count; i++)
        for (int k = 0; k < i && !site->poisoned; k++) {
            const Node *a = &r->nodes[first_of(r, group->first + (size_t)k)];
            const Node *b = &r->nodes[first_of(r, group->first + (size_t)i)];
            if (!a->used || !b->used || a->spread->kind != b->spread->kind) continue;
            if (a->spread->kind != SPREAD_ROWS && a->spread->kind != SPREAD_COLUMNS) continue;
            const char *words = kind_words(a->spread->kind);
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

/* Checks parts of an axis with an accumulator's spread: whole granules; parts of blocked axes
 * are whole by construction. */
static void check_parts(Registers *r, Site *site, const Access *access) {
    const RegisterLayout *held = &plan_tile(r->tiles->prog, r->role, access->object)->held;
    Arena *arena = r->tiles->arena;
    for (int d = 0; d < access->rank && !site->poisoned; d++) {
        const Spread *spread = layout_spread(held, d, NULL);
        int index = lone_index(access, d);
        if (index < 0 || spread->members > 1 || !r->nodes[first_of(r, axis_node(access, d))].parts)
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
        else if (base_unit(site, access, d) % granule != 0)
            refuse_part(r, site, access, d, "may begin elsewhere", 0, granule);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

static void role_registers(Registers *r) {
    size_t indexes = 0;
    for (size_t i = 0; i < r->tiles->sites.count; i++) {
        const Site *site = r->tiles->sites.items[i];
        if (is_map(r, site) && names_registers(site)) indexes += (size_t)site->tile->space.count;
    }
    collect(r, indexes);
    if (r->groups.count == 0) return;
    read_statements(r);
    find_components(r);
    settle_classes(r);
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        int tile = (int)group->first / PROG_MAX_RANK;
        RegisterLayout *out = group->tile ? &plan_tile(r->tiles->prog, r->role, tile)->held
                                          : NEW(r->tiles->arena, RegisterLayout);
        if (group->site) check_apart(r, group->site, group);
        if (group->site && group->site->poisoned) continue;
        layout_of(r, group, out);
        if (group->site) group->site->tile->spread = out;
        if (group->site && group->site->tile->class == TILE_REDUCTION)
            group->site->tile->exchange = exchange_of(&group->site->tile->space, out);
    }
    for (size_t g = 0; g < r->groups.count; g++) {
        Site *site = r->groups.items[g].site;
        for (size_t k = 0; site && k <= site->reads.count && !site->poisoned; k++)
            if (register_access(site, k)) check_parts(r, site, register_access(site, k));
    }
}

void tiles_registers(Tiles *tiles) {
    for (size_t i = 0; i < tiles->prog->roles.count; i++) {
        Role *role = &tiles->prog->roles.items[i];
        Arena *scratch = arena_scratch(tiles->arena);
        Registers registers = {
            .arena = scratch, .tiles = tiles, .role = role, .threads = role->warps * 32};
        role_registers(&registers);
        exchange_memory(tiles, role);
        arena_free(scratch);
    }
}
