/* Formulas of a producer from the view of a consumer: its loop variables become formulas of the
 * consumer's, and versions of its variables those that filled the stage. */
#include "flow/versions.h"

/* The value of the producer's variable; NULL: unknown */
static const Poly *matched(const Matches *is, int local) {
    for (size_t i = 0; is && i < is->count && local >= 0; i++)
        if (is->items[i].from == local) return is->items[i].to;
    return NULL;
}

/* True if the row that sets a version ran in the same iteration for both matches: all variables of
 * the loops around it are equal. other: NULL: the present iteration of the same role */
static bool is_same_iteration(const Versions *v, int at, const Matches *other) {
    const Row *row = &v->producer->rows.items[at];
    int r = row->region;
    if (row->kind == ROW_END) r = v->producer->regions.items[r].parent; /* after a loop */
    for (; r >= 0; r = v->producer->regions.items[r].parent) {
        const Region *region = &v->producer->regions.items[r];
        if (region->kind != REGION_FOR) continue;
        const Poly *is = matched(v->is, region->var), *to = NULL;
        if (is && other) to = matched(other, region->var);
        if (is && !other)
            to = poly_atom(v->algebra,
                           algebra_atom_local(v->algebra, v->producer->role, region->var));
        if (!is || !to || !poly_equal(is, to)) return false;
    }
    return true;
}

/* The row by which the version is named: the first one that acquires a stage that was filled with
 * the same value of it */
static int naming_row(const Versions *v, int version, int row) {
    int at = v->algebra->atoms.items[version].index;
    for (size_t i = 0; v->fillings && i < v->fillings->earlier.count; i++) {
        const Fillings *earlier = v->fillings->earlier.items[i];
        if (is_same_iteration(v, at, &earlier->items.items[0].loops)) return earlier->acquire;
    }
    return row;
}

static bool is_of_producer(const Atom *atom, const void *data) {
    const Versions *v = data;
    if (atom_is_filled(atom) || atom->role != v->producer->role) return false;
    return !v->same || !is_same_iteration(v, atom->index, NULL);
}

static bool is_filled(const Atom *atom, const void *data) {
    (void)data;
    return atom_is_filled(atom);
}

const Poly *versions_filled(const Versions *v, const Poly *poly, const Role *consumer, int row) {
    /* a version that came through another stage: they could be one in the other without end */
    if (!poly || poly_find_version(v->algebra, poly, is_filled, NULL) >= 0) return NULL;
    for (int id; poly && (id = poly_find_version(v->algebra, poly, is_of_producer, v)) >= 0;)
        poly = row < 0
                   ? NULL
                   : poly_replace(v->algebra, poly, id,
                                  algebra_filled(v->algebra, id, consumer, naming_row(v, id, row)));
    return poly;
}

const Poly *versions_matched(Algebra *algebra, const Role *role, const Matches *is,
                             const Poly *poly) {
    for (size_t i = 0; i < is->count && poly; i++)
        poly = poly_replace(algebra, poly, algebra_atom_local(algebra, role, is->items[i].from),
                            is->items[i].to);
    return poly;
}

/* True if the formula is the same in all iterations for one tile of the grid */
static bool is_of_tile(const FlowCode *code, const Poly *poly) {
    Versions versions = {code, NULL, code->algebra, true, NULL};
    if (poly_changes(code->algebra, poly) ||
        poly_find_version(code->algebra, poly, is_of_producer, &versions) >= 0)
        return false;
    for (size_t v = 0; v < code->role->locals.count; v++)
        if (code->role->locals.items[v].kind != LOCAL_AXIS &&
            poly_mentions(code->algebra, poly,
                          algebra_atom_local(code->algebra, code->role, (int)v)))
            return false;
    return true;
}

const Poly *match_formula(const Fillings *fillings, const Filling *way, FlowCode *producer,
                          FlowCode *consumer, const Poly *poly) {
    Algebra *algebra = consumer->algebra;
    static const Matches none;
    if (!poly || poly_changes(producer->algebra, poly)) return NULL;
    if (!way && !(fillings && fillings->same_tile && is_of_tile(producer, poly))) return NULL;
    Versions versions = {producer, way ? &way->loops : NULL, algebra, producer == consumer,
                         way ? fillings : NULL};
    poly = versions_filled(&versions, algebra_import(algebra, producer->algebra, poly),
                           consumer->role, fillings->acquire);
    return versions_matched(algebra, producer->role, way ? &way->loops : &none, poly);
}
