/* Iterations of loops by hand, where refusals depend on their order: the first one, in which no
 * element was combined yet, is told apart from the later ones; and a loop that ends in its padding,
 * after the last element. */
#include "check/padding/padding.h"

/* ---- first iterations ------------------------------------------------------------------------ */

static bool *role_apart(const Padding *p) {
    return p->apart[p->code->role - p->tiles->prog->roles.items];
}

void padding_tell_apart(Padding *p) {
    const FlowCode *code = p->code;
    if (!p->proofs) return;
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0) continue;
        role_apart(p)[r] = true, p->any_apart = true;
    }
}

int padding_trips(const Padding *p, int region) { return p->orders && role_apart(p)[region]; }

/* The present iteration of the loop is its first one. */
static bool is_first(const Padding *p, int region) {
    for (size_t i = 0; p->assumed && i < p->assumed->count; i++) {
        const Assumed *what = &p->assumed->items[i];
        if (what->kind == ASSUMED_TRIP && what->number == region && what->truth) return true;
    }
    return false;
}

uint32_t padding_firsts(const Padding *p, int at) {
    uint32_t firsts = 0;
    if (!p->orders) return 0;
    for (int r = p->code->rows.items[at].region; r >= 0; r = p->code->regions.items[r].parent)
        if (is_first(p, r)) firsts |= UINT32_C(1) << p->code->regions.items[r].depth % 32;
    return firsts;
}

static bool mentions_loops(const Padding *p, const Poly *poly) {
    const Role *role = p->code->role;
    for (size_t v = 0; v < role->locals.count; v++)
        if (role->locals.items[v].kind != LOCAL_AXIS &&
            poly_mentions(p->code->algebra, poly,
                          algebra_atom_local(p->code->algebra, role, (int)v)))
            return true;
    return false;
}

/* The formula grows with the variable of the loop. */
static bool grows(Padding *p, const Poly *poly, int atom, const Poly **factor, const Poly **rest) {
    int64_t coef;
    return poly_split(p->code->algebra, poly, atom, factor, rest) &&
           poly_is_constant(*factor, &coef) && coef > 0;
}

/* In the first iterations the position is the least one: it is an element. */
static bool starts_inside(Padding *p, const Edge *edge) {
    FlowCode *code = p->code;
    Algebra *algebra = code->algebra;
    const Poly *sub = edge->sub, *factor, *rest;
    bool any = false;
    for (int r = code->rows.items[p->at].region; r >= 0 && sub; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind != REGION_FOR || region->var < 0) continue;
        int atom = algebra_atom_local(algebra, code->role, region->var);
        if (!poly_mentions(algebra, sub, atom)) continue;
        if (!is_first(p, r) || !grows(p, sub, atom, &factor, &rest)) return false;
        const Poly *lo = algebra_poly(algebra, code->role, region->lo);
        sub = poly_sum(algebra, rest, poly_product(algebra, factor, lo), 1);
        any = true;
    }
    Edge first = {.sub = sub, .past = edge->past};
    return any && sub && !mentions_loops(p, sub) && padding_prove_inside(p, &first);
}

/* The value of the object before the statement is a constant: no element is in it. */
static bool is_fresh(Padding *p, int object) {
    const Fill *element = object >= 0 ? padding_object(p, object)->element : NULL;
    return element && element->at[0].element.lo == element->at[0].element.hi &&
           !element->at[0].element.nan;
}

const Fill *padding_without_first(Padding *p, const Fill *fill) {
    Draft out;
    bool any = false;
    if (!p->orders || !fill->padded) return fill;
    fill_draft(fill, &out);
    for (int i = 0; i < fill->count; i++) {
        if (!starts_inside(p, &fill->edges[i])) continue;
        draft_exclude(&out, i);
        any = true;
    }
    return any ? fill_made(&p->fills, &out) : fill;
}

const Fill *padding_first(Padding *p, const Fill *fill, int object) {
    return is_fresh(p, object) ? padding_without_first(p, fill) : fill;
}

/* ---- the end of a loop ----------------------------------------------------------------------- */

static const Fill **role_leaves(const Padding *p) {
    return p->leaves[p->code->role - p->tiles->prog->roles.items];
}

static bool *role_ends(const Padding *p) {
    return p->ends[p->code->role - p->tiles->prog->roles.items];
}

void padding_keep_end(Padding *p, int region) {
    bool *end = &role_ends(p)[region];
    p->left += !*end;
    *end = true;
}

void padding_note_leave(Padding *p, int region, const Fill *fill) {
    const Fill **leave = &role_leaves(p)[region], *old = *leave;
    *leave = old ? fill_join(&p->fills, old, fill) : fill;
    p->left += *leave != old;
}

static bool target_mentions(Padding *p, const Row *row, PadAxis axis) {
    for (int d = 0; d < row->tile->target.rank; d++)
        if (padding_mentions(p, row->tile->target.subs[d], axis)) return true;
    return false;
}

static bool computes(RowKind kind) {
    const RowEffects *row = &row_effects[kind];
    return row->stage == STAGE_NONE && row->signals == SIGNALS_NOTHING &&
           row->access != ACCESS_RAW && row->access != ACCESS_FETCHES;
}

/* The loop only computes variables and tiles of the role, the same elements in each iteration:
 * each effect of an iteration is one that padding_check_loop has refused, or keeps its object. */
static bool only_computes(Padding *p, PadAxis axis) {
    const FlowCode *code = p->code;
    const Region *loop = &code->regions.items[axis.region];
    for (int at = loop->begin + 1; at < loop->end; at++) {
        const Row *row = code_row(code, at);
        if (!computes(row->kind)) return false;
        if (row->kind != ROW_TILE) continue;
        const Access *target = &row->tile->target;
        bool tile = target->space == SPACE_REGISTER || target->space == SPACE_SHARED;
        if (!tile || target_mentions(p, row, axis)) return false;
    }
    return true;
}

/* The iterations after one in which padding may have ended the loop: they are executed or not. */
const Fill *padding_left(Padding *p, PadAxis axis, const Fill *fill) {
    const Fill *leaves = p->orders ? role_leaves(p)[axis.region] : NULL;
    Draft out;
    if (!leaves || is_first(p, axis.region)) return fill;
    fill_draft(leaves, &out);
    for (unsigned s = 0; s < 1u << out.count; s++)
        out.at[s] = (Cell){s == 0 ? pad_number(1) : pad_none, s == 0 ? pad_none : pad_bool()};
    return fill_controlled(&p->fills, fill, fill_made(&p->fills, &out), true, E_F32);
}

/* The positions of all later iterations are beyond the edge, too. */
static bool stays_beyond(Padding *p, const Edge *edge, PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    const Poly *factor, *rest;
    Edge copy = *edge;
    if (!edge->sub || !edge->past || poly_changes(algebra, edge->sub) ||
        poly_changes(algebra, edge->past))
        return false;
    if (!grows(p, edge->sub, axis.atom, &factor, &rest) ||
        poly_mentions(algebra, edge->past, axis.atom))
        return false;
    (void)padding_prove_inside(p, &copy);
    return copy.above;
}

bool padding_may_end(Padding *p, const Row *row, PadAxis axis, const Fill *fill) {
    if (!p->orders || row->again || row->target != axis.region || fill->more ||
        role_ends(p)[axis.region])
        return false;
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        bool stays = false;
        if (!pad_exists(fill->at[s].padding)) continue;
        for (int i = 0; i < fill->count && !stays; i++)
            stays = s >> i & 1 && stays_beyond(p, &fill->edges[i], axis);
        if (!stays) return false;
    }
    return only_computes(p, axis);
}
