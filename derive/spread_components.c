/* Classes that occur together in tiles and statements share the threads of the role. Contractions
 * and constant subscripts determine some; others that occur together with accumulators follow
 * them; components with reductions keep a row in few warps; the rest is blocked. */
#include "derive/spread.h"

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

/* One vector after another of the flattened axes; the last round may be partial. */
static void flatten(Registers *r, const size_t *order, int count) {
    const Node *inner = &r->nodes[order[count - 1]];
    Spread out = spread_pattern(SPREAD_BLOCKED);
    int64_t vector = VECTOR_MOST;
    while (inner->extent % vector != 0) vector /= 2;
    if (vector > 1) out.digits[out.count++] = spread_in_register(0, vector, 1);
    out.digits[out.count++] = spread_in_thread(1, r->threads, vector);
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
            int index = access->rank > 0 ? spread_lone_index(access, access->rank - 1) : -1;
            if (access->space == SPACE_REGISTER || index < 0 || index >= group->count) continue;
            int bytes = (int)element_rows[access->type].bytes;
            if (spread_first(r, group->first + (size_t)index) == class && bytes > widest)
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
        share->lanes = spread_divisor(vectors, left);
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
            share->warps = spread_divisor(rounds, left);
            if (whole && rounds > left && share->warps < left) share->warps = left;
            share->partial |= whole && share->class->extent % share_size(share) != 0;
            share->warp_place = place;
            place *= share->warps, left /= share->warps;
        }
}

static Spread shared_spread(const Share *share) {
    Spread out = spread_pattern(SPREAD_BLOCKED);
    int64_t stride = share->vector;
    if (share->vector > 1) out.digits[out.count++] = spread_in_register(0, share->vector, 1);
    if (share->lanes > 1)
        out.digits[out.count++] = spread_in_thread((int)share->lane_place, share->lanes, stride);
    stride *= share->lanes;
    if (share->warps > 1)
        out.digits[out.count++] = spread_in_thread((int)share->warp_place, share->warps, stride);
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
    Digit room = spread_in_thread(1, r->threads, 0);
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
        settle(r, &r->nodes[order[i]],
               spread_blocked(r->nodes[order[i]].unit, i == count - 1, &room));
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
