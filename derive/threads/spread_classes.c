/* Axes of register tiles that are subscripted by one index must be in the same threads: they form a
 * class, and a class has one spread. Two different spreads for one class, or one class twice in a
 * tile, would need an exchange between threads, which is refused with both places. */
#include "derive/threads/spread.h"

/* ---- classes --------------------------------------------------------------------------------- */

size_t spread_first(const Registers *r, size_t node) {
    while (r->nodes[node].same != node) node = r->nodes[node].same;
    return node;
}

size_t spread_component(const Registers *r, size_t node) {
    node = spread_first(r, node);
    while (r->nodes[node].together != node) node = r->nodes[node].together;
    return node;
}

size_t spread_axis_node(const Access *access, int d) {
    return (size_t)access->object * PROG_MAX_RANK + (size_t)d;
}

const char *spread_words(SpreadKind kind) {
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
    Node *node = &r->nodes[spread_first(r, spread_axis_node(access, d))];
    if (!node->marked) {
        node->marked = true, node->kind = kind, node->where = access->subs[d]->span;
        return true;
    }
    if (node->kind == kind) return true;
    Diag *diag = refuse(r, site, access, d, spread_words(kind));
    diag_label(r->tiles->diags, diag, node->where, "%s", spread_words(node->kind));
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
            size_t first = spread_first(r, group->first + (size_t)i);
            if (node->used) seen |= first == a ? 1 : first == b ? 2 : 0;
        }
        if (seen == 3) return group;
    }
    return NULL;
}

static bool join(Registers *r, Site *site, const Access *access, int d, size_t index) {
    Diags *diags = r->tiles->diags;
    size_t a = spread_first(r, spread_axis_node(access, d)), b = spread_first(r, index);
    Node *to = &r->nodes[a < b ? a : b], *from = &r->nodes[a < b ? b : a];
    if (a == b) return true;
    if (to->marked && from->marked && to->kind != from->kind) {
        const Node *other = &r->nodes[b];
        Diag *diag = refuse(r, site, access, d, spread_words(r->nodes[a].kind));
        diag_label(diags, diag, r->nodes[a].where, "%s: here", spread_words(r->nodes[a].kind));
        diag_label(diags, diag, other->where, "%s: here", spread_words(other->kind));
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
    to->unit = common_divisor(to->unit, from->unit);
    to->used |= from->used, to->reduced |= from->reduced;
    return true;
}

/* ---- facts from statements ------------------------------------------------------------------- */

bool spread_is_map(const Registers *r, const Site *site) {
    TileClass class = site->tile->class;
    bool map = class == TILE_UNCLASSIFIED || tile_combines(site->tile);
    return site->role == r->role && !site->poisoned && map;
}

Access *spread_access(const Site *site, size_t k) {
    Access *access = k == 0 ? &site->tile->target : site->reads.items[k - 1];
    return access->space == SPACE_REGISTER ? access : NULL;
}

bool spread_names_registers(const Site *site) {
    bool any = false;
    for (size_t k = 0; k <= site->reads.count; k++) any |= spread_access(site, k) != NULL;
    return any;
}

int spread_lone_index(const Access *access, int d) {
    const Affine *affine = &access->affine[d];
    int found = -1;
    for (int i = 0; i < PROG_MAX_INDEXES && affine->is; i++)
        if (affine->coef[i] != 0) {
            if (affine->coef[i] != 1 || found >= 0) return -1;
            found = i;
        }
    return found;
}

int64_t spread_base_unit(const Site *site, const Access *access, int d) {
    return poly_divisor(site->algebra,
                        algebra_poly(site->algebra, site->role, access->affine[d].base));
}

static void mark_constants(Registers *r, Site *site) {
    for (size_t k = 0; k <= site->reads.count && !site->poisoned; k++) {
        const Access *access = spread_access(site, k);
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
        int index = spread_lone_index(access, d);
        if (access->subs[d]->indexes == 0) continue;
        if (index < 0) {
            Diag *diag = refuse(r, site, access, d,
                                "a register tile must be subscripted by one index, or by a "
                                "constant plus one index");
            way_out(r, diag, access);
            return;
        }
        Node *node = &r->nodes[first + (size_t)index];
        int64_t unit = spread_base_unit(site, access, d);
        if (!node->used)
            node->used = true, node->extent = node->unit = site->tile->space.items[index].extent;
        if (!join(r, site, access, d, first + (size_t)index)) return;
        Node *class = &r->nodes[spread_first(r, first + (size_t)index)];
        if (unit != 0) class->parts = true, class->unit = common_divisor(class->unit, unit);
    }
}

static void open_combined(Registers *r, const Site *site, size_t first, int index) {
    Node *node = &r->nodes[first + (size_t)index];
    node->used = node->reduced = true;
    node->extent = node->unit = site->tile->space.items[index].extent;
}

/* The indexes of a reduction are spread over the threads whether or not they subscript a register
 * tile. */
static void open_reduction(Registers *r, const Site *site, size_t first) {
    const IndexSpace *space = &site->tile->space;
    for (int i = space->bound; i < space->count; i++) open_combined(r, site, first, i);
    if (site->tile->class == TILE_SCAN)
        open_combined(r, site, first, site->tile->value->scan.along);
}

void spread_open(Registers *r, size_t indexes) {
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

void spread_statements(Registers *r) {
    size_t next = r->role->tiles.count * PROG_MAX_RANK;
    for (size_t i = 0; i < r->tiles->sites.count; i++) {
        Site *site = r->tiles->sites.items[i];
        if (site->role != r->role || site->tile->class != TILE_MMA) continue;
        mark_matrix(r, site, &site->tile->target);
        if (site->tile->mma.a.tile->space == SPACE_REGISTER)
            mark_matrix(r, site, site->tile->mma.a.tile);
    }
    for (size_t i = 0; i < r->tiles->sites.count; i++)
        if (spread_is_map(r, r->tiles->sites.items[i])) mark_constants(r, r->tiles->sites.items[i]);
    for (size_t i = 0; i < r->tiles->sites.count; i++) {
        Site *site = r->tiles->sites.items[i];
        if (!spread_is_map(r, site) || !spread_names_registers(site)) continue;
        bool reduces = tile_combines(site->tile);
        const IndexSpace *space = &site->tile->space;
        Group group = {next, reduces ? space->count : space->bound, NULL, site};
        vec_push(r->arena, &r->groups, group);
        if (reduces) open_reduction(r, site, group.first);
        for (size_t k = 0; k <= site->reads.count && !site->poisoned; k++)
            if (spread_access(site, k)) join_access(r, site, spread_access(site, k), group.first);
        next += (size_t)site->tile->space.count;
    }
}
