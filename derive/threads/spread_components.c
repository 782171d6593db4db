/* Classes that occur together in tiles and statements share the threads of the role. Contractions
 * and constant subscripts determine some; others that occur together with accumulators follow
 * them; components with reductions keep a row in few warps; the rest is blocked. */
#include "derive/threads/spread.h"

static void settle(Registers *r, Node *class, Spread pattern) {
    Spread *spread = NEW(r->arena, Spread);
    *spread = pattern;
    class->spread = spread;
}

/* ---- components ------------------------------------------------------------------------------ */

void spread_components(Registers *r) {
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        size_t before = SIZE_MAX;
        for (int i = 0; i < group->count; i++) {
            size_t node = group->first + (size_t)i;
            const Node *class = &r->nodes[spread_first(r, node)];
            if (!r->nodes[node].used || (class->marked && class->kind == SPREAD_EVERY)) continue;
            size_t component = spread_component(r, node);
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
    arena_count(r->arena, r->groups.count);
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        bool found = false, other = false;
        for (int i = 0; i < group->count; i++) {
            size_t node = group->first + (size_t)i, first = spread_first(r, node);
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
    settle(r, node, spread_pattern(kind));
}

static bool open_in(const Registers *r, size_t node, size_t component) {
    return r->nodes[node].used && !r->nodes[spread_first(r, node)].spread &&
           spread_component(r, node) == component;
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
    arena_count(r->arena, r->groups.count + r->count);
    for (size_t g = 0; g < r->groups.count; g++) {
        int own_width = width_of(r, &r->groups.items[g], component);
        if (own_width > width) width = own_width, widest = &r->groups.items[g];
    }
    for (size_t n = 0; widest && n < r->count; n++) {
        bool within = false;
        for (int i = 0; i < widest->count; i++)
            within |= spread_first(r, widest->first + (size_t)i) == n;
        if (!within && spread_first(r, n) == n && open_in(r, n, component)) order[count++] = n;
    }
    for (int i = 0; widest && i < widest->count; i++)
        if (open_in(r, widest->first + (size_t)i, component))
            order[count++] = spread_first(r, widest->first + (size_t)i);
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

/* Elements along the innermost of the classes at once */
static int64_t vector_of(const Registers *r, const size_t *order, int count) {
    size_t inner = order[count - 1];
    int64_t total = 1;
    for (int i = 0; i < count; i++) total = extent_product(total, r->nodes[order[i]].extent);
    return spread_vector(r, inner, r->nodes[inner].unit, total);
}

/* One vector after another of the flattened axes; the last round may be partial. */
static void flatten(Registers *r, const size_t *order, int count, int64_t vector) {
    Spread out = spread_pattern(SPREAD_BLOCKED);
    if (vector > 1) out.digits[out.count++] = spread_in_register(0, vector, 1);
    out.digits[out.count++] = spread_in_thread(1, r->threads, vector);
    out.granule = vector * r->threads;
    out.members = count;
    for (int i = 0; i < count; i++)
        out.axes[i] = (int)order[i]; /* the class; replaced later by an axis or index of it */
    for (int i = 0; i < count; i++) settle(r, &r->nodes[order[i]], out);
}

/* ---- components with reductions -------------------------------------------------------------- */

/* Some of the lanes of a warp, or of the warps of the role: `place` is the distance to the next */
typedef struct Part {
    int64_t place, extent;
} Part;

/* What a class of such a component gets: elements of a vector, lanes, warps */
typedef struct Share {
    Node *class;
    int64_t vector;
    Part lanes, warps;
    bool inner; /* has vectors: of the classes of a tile or statement, only one */
} Share;

typedef struct Shares {
    Share *items;
    int count;
    bool *together; /* by pair: some tile or statement has both classes */
} Shares;

static int64_t share_size(const Share *share) {
    return share->vector * share->lanes.extent * share->warps.extent;
}

static bool are_together(const Shares *shares, int a, int b) {
    return shares->together[a * shares->count + b];
}

static void note_together(const Registers *r, const size_t *order, Shares *shares) {
    int *number = NEW_ARRAY(r->arena, int, r->count + 1); /* by class, from 1 */
    shares->together = NEW_ARRAY(r->arena, bool, shares->count * shares->count);
    for (int i = 0; i < shares->count; i++) number[order[i]] = i + 1;
    for (size_t g = 0; g < r->groups.count; g++) {
        const Group *group = &r->groups.items[g];
        int found[PROG_MAX_INDEXES], count = 0;
        for (int i = 0; i < group->count; i++) {
            size_t node = group->first + (size_t)i;
            int share = r->nodes[node].used ? number[spread_first(r, node)] : 0;
            if (share > 0) found[count++] = share - 1;
        }
        for (int i = 0; i < count; i++)
            for (int k = 0; k < count; k++)
                if (i != k) shares->together[found[i] * shares->count + found[k]] = true;
    }
}

/* The largest part that classes together with this one leave: the lowest places, or the highest.
 * Classes that are never together may have the same threads. */
static Part room_of(const Shares *shares, int i, bool warps, int64_t all) {
    int64_t first = 0, end = 1; /* of the parts of the others */
    for (int k = 0; k < shares->count; k++) {
        const Part *part = warps ? &shares->items[k].warps : &shares->items[k].lanes;
        if (!are_together(shares, i, k) || part->extent == 1) continue;
        int64_t own = part->place * part->extent;
        first = common_divisor(first, part->place);
        end = end / common_divisor(end, own) * own;
    }
    return first > all / end ? (Part){1, first} : (Part){end, all / end};
}

static int64_t rounds_of(int64_t units, int64_t part) { return (units + part - 1) / part; }

static int64_t power_within(int64_t most, int64_t needed) {
    int64_t power = 1;
    while (power * 2 <= most && power < needed) power *= 2;
    return power;
}

/* As many of `room` as divide the units of a class, or of which three quarters have work */
static int64_t busy_part(int64_t units, int64_t room) {
    for (int64_t part = room; part > 1; part--)
        if (room % part == 0 && units * 4 >= rounds_of(units, part) * part * 3) return part;
    return 1;
}

/* Those that no class has would do the same work as others: classes that are not reduced take them,
 * even if some have no work in the last round. */
static void share_rest(Shares *shares, bool warps, int64_t all) {
    for (int i = 0; i < shares->count; i++) {
        Share *share = &shares->items[i];
        Part *part = warps ? &share->warps : &share->lanes, room = room_of(shares, i, warps, all);
        int64_t size = share->vector * (warps ? share->lanes.extent : 1),
                units = rounds_of(share->class->unit, size), most = part->extent;
        if (share->class->reduced || share->class->parts) continue;
        for (int64_t more = most + 1; more <= room.extent; more++)
            if (room.extent % more == 0 && rounds_of(units, more) < rounds_of(units, most))
                most = more;
        if (most > part->extent) *part = (Part){room.place, most};
    }
}

/* Lanes: the innermost classes first, so that a warp accesses adjacent elements, and reduces among
 * its lanes. */
static void share_lanes(Shares *shares) {
    for (int i = shares->count - 1; i >= 0; i--) {
        Share *share = &shares->items[i];
        Part room = room_of(shares, i, false, 32);
        int64_t vectors = share->class->unit / share->vector;
        share->lanes.place = room.place;
        share->lanes.extent = share->class->parts ? common_divisor(vectors, room.extent)
                              : share->inner      ? power_within(room.extent, vectors)
                                                  : busy_part(vectors, room.extent);
    }
    share_rest(shares, false, 32);
}

/* Warps: classes that are not reduced first, so that as few as possible exchange */
static void share_warps(Shares *shares, int64_t warps) {
    for (int pass = 0; pass < 2; pass++)
        for (int i = 0; i < shares->count; i++) {
            Share *share = &shares->items[i];
            if (share->class->reduced != (pass == 1)) continue;
            Part room = room_of(shares, i, true, warps);
            int64_t rounds = rounds_of(share->class->unit, share->vector * share->lanes.extent);
            bool full = share->inner && rounds > room.extent;
            share->warps.place = room.place;
            share->warps.extent = share->class->parts ? common_divisor(rounds, room.extent)
                                  : full              ? room.extent
                                                      : busy_part(rounds, room.extent);
        }
    share_rest(shares, true, warps);
}

static Spread shared_spread(const Share *share) {
    Spread out = spread_pattern(SPREAD_BLOCKED);
    int64_t stride = share->vector;
    const Part *lanes = &share->lanes, *warps = &share->warps;
    if (share->vector > 1) out.digits[out.count++] = spread_in_register(0, share->vector, 1);
    if (lanes->extent > 1)
        out.digits[out.count++] = spread_in_thread((int)lanes->place, lanes->extent, stride);
    stride *= lanes->extent;
    if (warps->extent > 1)
        out.digits[out.count++] = spread_in_thread((int)(32 * warps->place), warps->extent, stride);
    out.granule = share_size(share);
    return out;
}

/* The classes along which memory is adjacent become the innermost ones, whichever are reduced. */
static void order_by_memory(const Registers *r, size_t *order, int count) {
    size_t *inner = NEW_ARRAY(r->arena, size_t, count);
    int outer_count = 0, inner_count = 0;
    for (int i = 0; i < count; i++)
        if (r->along[order[i]].any)
            inner[inner_count++] = order[i];
        else
            order[outer_count++] = order[i];
    for (int i = 0; i < inner_count; i++) order[outer_count + i] = inner[i];
}

/* Elements of the classes that occur together with this one, and its own. If only others are
 * reduced, as many as give each lane of a warp one along this class: lanes left over would reduce
 * among each other. */
static int64_t total_of(const Registers *r, const Shares *shares, int i) {
    const Node *class = shares->items[i].class;
    int64_t total = class->extent;
    bool reduced = false;
    for (int k = 0; k < shares->count; k++) {
        if (!are_together(shares, i, k)) continue;
        total = extent_product(total, shares->items[k].class->extent);
        reduced |= shares->items[k].class->reduced;
    }
    return reduced && !class->reduced ? extent_product(class->unit, r->threads / 32) : total;
}

/* Chooses the classes with vectors, from the innermost one. */
static void share_vectors(const Registers *r, const size_t *order, Shares *shares) {
    for (int i = shares->count - 1; i >= 0; i--) {
        Share *share = &shares->items[i];
        share->inner = true;
        for (int k = i + 1; k < shares->count; k++)
            share->inner &= !shares->items[k].inner || !are_together(shares, i, k);
        if (share->inner)
            share->vector = spread_vector(r, order[i], share->class->unit, total_of(r, shares, i));
    }
}

/* One mechanism for a row of a warp, rows of a part of a warp, and a row over several warps */
static void settle_reducing(Registers *r, size_t *order, int count) {
    order_by_memory(r, order, count);
    Shares shares = {.items = NEW_ARRAY(r->arena, Share, count), .count = count};
    for (int i = 0; i < count; i++)
        shares.items[i] =
            (Share){.class = &r->nodes[order[i]], .vector = 1, .lanes = {1, 1}, .warps = {1, 1}};
    note_together(r, order, &shares);
    share_vectors(r, order, &shares);
    share_lanes(&shares);
    share_warps(&shares, r->threads / 32);
    for (int i = 0; i < count; i++)
        settle(r, shares.items[i].class, shared_spread(&shares.items[i]));
}

static bool reduces(const Registers *r, const size_t *order, int count) {
    bool any = false;
    for (int i = 0; i < count; i++) any |= r->nodes[order[i]].reduced;
    return any;
}

static void settle_component(Registers *r, size_t component) {
    size_t *order = NEW_ARRAY(r->arena, size_t, r->count + 1);
    int count = order_of(r, component, order);
    Digit room = spread_in_thread(1, r->threads, 0);
    if (count == 0) return;
    if (reduces(r, order, count)) {
        settle_reducing(r, order, count);
        return;
    }
    int64_t vector = vector_of(r, order, count);
    if (count <= PROG_MAX_RANK && is_flat(r, component, order, count)) {
        flatten(r, order, count, vector);
        return;
    }
    for (int i = count - 1; i >= 0; i--) /* the widest one's innermost axis first */
        settle(r, &r->nodes[order[i]],
               spread_blocked(r->nodes[order[i]].unit, i == count - 1 ? vector : 1, &room));
}

void spread_settle(Registers *r) {
    bool *accumulates = NEW_ARRAY(r->arena, bool, r->count + 1);
    for (size_t n = 0; n < r->count; n++) {
        Node *node = &r->nodes[n];
        if (!node->used || spread_first(r, n) != n || !node->marked) continue;
        settle(r, node, spread_pattern(node->kind));
        if (node->kind != SPREAD_EVERY) accumulates[spread_component(r, n)] = true;
    }
    for (size_t n = 0; n < r->count; n++) {
        if (!r->nodes[n].used || spread_first(r, n) != n || r->nodes[n].spread) continue;
        if (accumulates[spread_component(r, n)])
            with_accumulators(r, n);
        else
            settle_component(r, spread_component(r, n));
    }
}
