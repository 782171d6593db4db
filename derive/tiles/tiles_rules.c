/* Notation: objects that a tile statement may name on either side. A destination is read only at
 * its own subscripts, a consumed stage is not written, and tensors that the kernel writes are
 * read only where it writes them. */
#include "derive/tiles.h"

#include <string.h>

/* ---- directions ------------------------------------------------------------------------------ */

/* The pass `roles` reports an end that the role does not have, once. */
static bool has_end(const Tiles *tiles, const Role *role, const Handle *handle) {
    const Pipe *pipe = &tiles->prog->pipes.items[handle->pipe];
    int number = (int)(role - tiles->prog->roles.items);
    return handle->end == END_PRODUCE ? pipe->producer == number : pipe_consumed_by(pipe, number);
}

static void check_directions(Tiles *tiles, Site *site, bool reduces) {
    const Access *target = &site->tile->target;
    if (target->space == SPACE_STAGE) {
        const Handle *handle = &site->role->handles.items[target->object];
        if (handle->end == END_CONSUME && !has_end(tiles, site->role, handle)) {
            site->poisoned = true;
        } else if (handle->end == END_CONSUME) {
            Diag *diag = diag_at(tiles->diags, P0208, target->span,
                                 "`%s` is a consumed stage and cannot be written", handle->name);
            diag_label(tiles->diags, diag, handle->span, "consumed here");
            diag_help(tiles->diags, diag,
                      "write into a stage of a pipe that `%s` produces, a `shared` tile or a `var`",
                      site->role->name);
            site->poisoned = true;
        }
    }
    for (size_t i = 0; i < site->reads.count; i++) {
        const Access *read = site->reads.items[i];
        if (read->space != SPACE_STAGE ||
            site->role->handles.items[read->object].end != END_PRODUCE)
            continue;
        const Handle *handle = &site->role->handles.items[read->object];
        bool had = has_end(tiles, site->role, handle);
        site->poisoned |= reduces || !had;
        if (!reduces || !had) continue;
        Diag *diag = diag_at(tiles->diags, P0209, read->span,
                             "`%s` is a produced stage and cannot be an operand", handle->name);
        diag_label(tiles->diags, diag, handle->span, "produced here");
        diag_help(
            tiles->diags, diag,
            "keep the operand in a `shared` tile as well, or contract where the stage is consumed");
    }
}

/* ---- the destination on the right ------------------------------------------------------------ */

/* Subscripts without an index are two numbers in each execution of the statement: different
 * slices, or the same one; in either case no element is read that another assignment of the
 * statement writes. Sets *apart only if they certainly differ. */
static void compare_slices(Site *site, Expr *a, Expr *b, bool *different) {
    int64_t distance;
    const Poly *difference = poly_sum(site->algebra, algebra_poly(site->algebra, site->role, a),
                                      algebra_poly(site->algebra, site->role, b), -1);
    *different |= poly_is_constant(difference, &distance) && distance != 0;
}

static bool same_place(Site *site, const Access *a, const Access *b, bool *different) {
    bool same = true;
    *different = false;
    if (a->element && b->element) compare_slices(site, a->element, b->element, different);
    for (int d = 0; d < a->rank && d < b->rank; d++)
        if (!a->subs[d]->indexes && !b->subs[d]->indexes)
            compare_slices(site, a->subs[d], b->subs[d], different);
        else
            same &= poly_equal(algebra_poly(site->algebra, site->role, a->subs[d]),
                               algebra_poly(site->algebra, site->role, b->subs[d]));
    return same;
}

static void check_destination(Tiles *tiles, Site *site) {
    const Access *target = &site->tile->target;
    for (size_t i = 0; i < site->reads.count && !site->poisoned; i++) {
        const Access *read = site->reads.items[i];
        bool different;
        if (!same_object(target, read) || same_place(site, target, read, &different) || different)
            continue;
        Diag *diag = diag_at(tiles->diags, P0204, read->span,
                             "one statement reads and writes %s at different subscripts",
                             tiles_object(tiles, site->role, read));
        diag_primary(tiles->diags, diag, "read here");
        diag_label(tiles->diags, diag, target->span, "written here");
        diag_note(tiles->diags, diag,
                  "a statement reads all elements before it writes any, but its threads do not "
                  "wait for each other in between");
        diag_help(tiles->diags, diag, "write the result to another tile");
        site->poisoned = true;
    }
}

/* ---- every element once ---------------------------------------------------------------------- */

/* True if the indexes of one subscript reach each position once: in a mixed radix each step is
 * longer than all smaller ones together. */
static bool determines_all(const Affine *affine, const IndexSpace *space) {
    int64_t reached = 0;
    bool done[PROG_MAX_INDEXES] = {false}, open = false;
    for (int n = 0; n < space->bound; n++) {
        int next = -1;
        int64_t step = 0, span;
        for (int i = 0; i < space->bound; i++) {
            int64_t size = affine->coef[i] < 0 ? -affine->coef[i] : affine->coef[i];
            if (done[i] || size == 0 || space->items[i].extent == 1) continue;
            if (next < 0 || size < step) next = i, step = size;
        }
        if (next < 0) break;
        if (step <= reached || open) return false;
        done[next] = true;
        if (space->items[next].extent < 0)
            open = true; /* a launch decides its extent */
        else if (__builtin_mul_overflow(step, space->items[next].extent - 1, &span) ||
                 __builtin_add_overflow(reached, span, &reached))
            return false;
    }
    return true;
}

/* True if the position along the dimension determines the index, where those in `known` are
 * determined */
static bool determines(const Site *site, int d, int index, const bool *known) {
    const Access *target = &site->tile->target;
    const Affine *affine = &target->affine[d];
    const IndexSpace *space = &site->tile->space;
    if (affine->is) return affine->coef[index] != 0 && determines_all(affine, space);
    if (target->space == SPACE_GLOBAL)
        return expr_depends(target->subs[d], index); /* a scatter: the table decides */
    for (int i = 0; i < space->bound; i++)
        if (i != index && !known[i] && expr_depends(target->subs[d], i)) return false;
    return affine->rotated == 1 + index;
}

static void check_once(Tiles *tiles, Site *site) {
    const Access *target = &site->tile->target;
    const IndexSpace *space = &site->tile->space;
    bool known[PROG_MAX_INDEXES] = {false};
    for (int i = 0; i < space->bound; i++) known[i] = space->items[i].extent == 1;
    for (int round = 0; round < space->bound; round++)
        for (int i = 0; i < space->bound; i++)
            for (int d = 0; d < target->rank && !known[i]; d++)
                known[i] = determines(site, d, i, known);
    for (int i = 0; i < space->bound && !site->poisoned; i++) {
        if (known[i]) continue;
        Diag *diag = diag_at(tiles->diags, P0218, target->span,
                             "several values of `%s` write the same element of %s",
                             space->items[i].name, tiles_object(tiles, site->role, target));
        diag_primary(tiles->diags, diag, "different indexes reach the same element");
        diag_help(tiles->diags, diag,
                  "give each index its own position in the target: `[i, j]`, `[i*64 + j]`; or add "
                  "up the values with `sum[..]`");
        site->poisoned = true;
    }
}

/* ---- tensors that the kernel writes ---------------------------------------------------------- */

/* The part of one axis that is reached: its base and the digits of a mixed radix. `rank*64 + i`
 * with i below 64 reaches the same as `j` below 128, so that a read of whole tiles matches
 * writes by instance. */
typedef struct Reach {
    const Poly *base;
    int count;
    int64_t coef[PROG_MAX_INDEXES + 1], extent[PROG_MAX_INDEXES + 1];
} Reach;

static void add_digit(Reach *reach, int64_t coef, int64_t extent) {
    int at = reach->count++;
    for (; at > 0 && reach->coef[at - 1] > coef; at--)
        reach->coef[at] = reach->coef[at - 1], reach->extent[at] = reach->extent[at - 1];
    reach->coef[at] = coef, reach->extent[at] = extent;
}

static void join_digits(Reach *reach) {
    int kept = 0;
    for (int i = 0; i < reach->count; i++) {
        if (reach->extent[i] == 1) continue;
        if (kept > 0 && reach->coef[i] == reach->coef[kept - 1] * reach->extent[kept - 1])
            reach->extent[kept - 1] *= reach->extent[i];
        else
            reach->coef[kept] = reach->coef[i], reach->extent[kept++] = reach->extent[i];
    }
    reach->count = kept;
}

/* The loop of the variable; NULL: unknown */
static const Region *loop_of(const FlowCode *code, int local) {
    const Region *loop = NULL;
    for (size_t r = 0; r < code->regions.count; r++)
        if (code->regions.items[r].kind == REGION_FOR && code->regions.items[r].var == local)
            loop = &code->regions.items[r];
    return loop;
}

/* True if the formula has the same value everywhere in a tile of the grid, in every role */
static bool is_common(const Algebra *algebra, const Poly *poly) {
    for (size_t id = 0; id < algebra->atoms.count; id++) {
        const Atom *atom = &algebra->atoms.items[id];
        bool own = atom->kind == ATOM_LOCAL || atom->kind == ATOM_RANK ||
                   atom->kind == ATOM_INDEX || atom->kind == ATOM_OPAQUE || atom->changes;
        if (own && poly_mentions(algebra, poly, (int)id)) return false;
    }
    return true;
}

/* The number of a pair of bounds, from 0; -1: they may differ from place to place */
static int bounds_number(Tiles *tiles, const Role *role, const Region *loop) {
    const Domain *domain = loop->domain >= 0 ? &tiles->prog->domains.items[loop->domain] : NULL;
    if (domain ? domain->where != NULL : loop->where != NULL || loop->from || loop->to) return -1;
    Expr *bounds[] = {domain ? domain->lo : loop->lo, domain ? domain->hi : loop->hi};
    const Poly *values[2];
    for (int i = 0; i < 2; i++) {
        values[i] = bounds[i] ? algebra_poly(tiles->formulas, role, bounds[i]) : NULL;
        if (!values[i] || !is_common(tiles->formulas, values[i])) return -1;
    }
    for (size_t i = 0; i < tiles->bounds.count; i++)
        if (poly_equal(tiles->bounds.items[i].lo, values[0]) &&
            poly_equal(tiles->bounds.items[i].hi, values[1]))
            return (int)i;
    vec_push(tiles->arena, &tiles->bounds, ((LoopBounds){values[0], values[1]}));
    return (int)tiles->bounds.count - 1;
}

/* The same number for loops over the same named range, or from and to the same formulas: their
 * variables reach the same in every role. -1: no loop, or one like no other */
static int loop_number(Tiles *tiles, const Role *role, const Atom *variable) {
    if (variable->kind != ATOM_LOCAL || variable->role != role) return -1;
    const Region *loop = loop_of(role->code, variable->index);
    if (loop == NULL) return -1;
    int number = bounds_number(tiles, role, loop);
    return number < 0 ? loop->domain : (int)tiles->prog->domains.count + number;
}

/* How many loops of the number around that of the variable are in the subscripts too: in `[p, q]`,
 * whose loops have the same bounds, q is another one than p. */
static int loops_around(Tiles *tiles, const Role *role, const Access *access, int local,
                        int number) {
    Algebra *algebra = tiles->formulas;
    const Poly **bases = NEW_ARRAY(tiles->arena, const Poly *, (size_t)access->rank + 1);
    int around = 0;
    for (int d = 0; d < access->rank; d++)
        if (access->affine[d].is) bases[d] = algebra_poly(algebra, role, access->affine[d].base);
    for (size_t id = 0; id < algebra->atoms.count; id++) {
        Atom other = algebra->atoms.items[id];
        bool mentioned = false;
        if (loop_number(tiles, role, &other) != number ||
            loop_of(role->code, other.index) >= loop_of(role->code, local))
            continue;
        for (int d = 0; d < access->rank && !mentioned; d++)
            mentioned = bases[d] != NULL && poly_mentions(algebra, bases[d], (int)id);
        around += mentioned;
    }
    return around;
}

#define NESTED_MOST 16

/* The variables of such loops become atoms of the common table. */
static const Poly *common_loops(Tiles *tiles, const Role *role, const Access *access,
                                const Poly *poly) {
    Algebra *algebra = tiles->formulas;
    for (size_t id = 0; poly && id < algebra->atoms.count; id++) {
        Atom atom = algebra->atoms.items[id];
        int number = loop_number(tiles, role, &atom);
        if (number < 0 || !poly_mentions(algebra, poly, (int)id)) continue;
        int around = loops_around(tiles, role, access, atom.index, number);
        if (around >= NESTED_MOST) continue;
        Expr *stand_in = NEW(tiles->arena, Expr); /* an unused axis number represents the loops */
        *stand_in = (Expr){.kind = X_AXIS, .type = E_I32};
        stand_in->index = (int)tiles->prog->axes.count + number * NESTED_MOST + around;
        poly = poly_replace(algebra, poly, (int)id, algebra_poly(algebra, NULL, stand_in));
    }
    return poly;
}

static bool reach_of(Tiles *tiles, const Role *role, const IndexSpace *space, const Access *access,
                     int d, Reach *out) {
    Algebra *algebra = tiles->formulas;
    const Affine *affine = &access->affine[d];
    const Poly *factor, *rest;
    int64_t step;
    *out = (Reach){0};
    if (!affine->is) return false;
    for (int i = 0; i < space->count; i++)
        if (affine->coef[i] != 0) {
            if (space->items[i].extent < 0 || affine->coef[i] < 0) return false;
            add_digit(out, affine->coef[i], space->items[i].extent);
        }
    out->base = algebra_poly(algebra, role, affine->base);
    if (role->instances > 1) {
        int rank = algebra_atom_rank(algebra, role);
        if (!poly_split(algebra, out->base, rank, &factor, &rest) ||
            !poly_is_constant(factor, &step) || step < 0)
            return false;
        if (step > 0) add_digit(out, step, role->instances);
        out->base = rest;
    }
    out->base = common_loops(tiles, role, access, out->base);
    join_digits(out);
    return out->base != NULL;
}

/* The number of positions, if they have no gaps; 0: unknown */
static int64_t width_of(const Reach *reach) {
    if (reach->count == 0) return 1;
    return reach->count == 1 && reach->coef[0] == 1 ? reach->extent[0] : 0;
}

/* True if each position that `a` reaches is one that `b` reaches: a part, or one element, of
 * what a statement writes without gaps */
static bool inside_reach(Algebra *algebra, const Reach *a, const Reach *b) {
    int64_t first, wide = width_of(b), last = 0, span;
    if (wide == 0 || !poly_is_constant(poly_sum(algebra, a->base, b->base, -1), &first) ||
        first < 0 || first >= wide)
        return false;
    for (int i = 0; i < a->count; i++)
        if (__builtin_mul_overflow(a->coef[i], a->extent[i] - 1, &span) ||
            __builtin_add_overflow(last, span, &last))
            return false;
    return last < wide - first;
}

static bool same_reach(const Reach *a, const Reach *b) {
    bool same = poly_equal(a->base, b->base) && a->count == b->count;
    for (int i = 0; i < a->count && same; i++)
        same = a->coef[i] == b->coef[i] && a->extent[i] == b->extent[i];
    return same;
}

static bool written_there(Tiles *tiles, const Role *role, const IndexSpace *space,
                          const Access *read) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Site *writer = tiles->sites.items[i];
        const Access *target = &writer->tile->target;
        if (target->space != SPACE_GLOBAL || target->object != read->object) continue;
        if (writer->poisoned) return true;
        bool same = true;
        for (int d = 0; d < read->rank && same; d++) {
            Reach a, b;
            same = reach_of(tiles, role, space, read, d, &a) &&
                   reach_of(tiles, writer->role, &writer->tile->space, target, d, &b) &&
                   (same_reach(&a, &b) || inside_reach(tiles->formulas, &a, &b));
        }
        if (same) return true;
    }
    return false;
}

static const Access *first_write(const Tiles *tiles, int param) {
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Access *target = &tiles->sites.items[i]->tile->target;
        if (target->space == SPACE_GLOBAL && target->object == param) return target;
    }
    return NULL;
}

void tiles_refuse_output(Tiles *tiles, const Access *read) {
    const Param *param = &tiles->prog->params.items[read->object];
    Diag *diag = diag_at(tiles->diags, P0206, read->span,
                         "`%s` is an `out` tensor and cannot be read", param->name);
    diag_label(tiles->diags, diag, param->span, "declared `out` here");
    diag_help(tiles->diags, diag, "declare it `inout`, or keep the value in a tile");
}

/* True if a loop of a subscript is like no other, because its bounds may change */
static bool has_own_loop(Tiles *tiles, const Role *role, const Access *read) {
    Algebra *algebra = tiles->formulas;
    for (int d = 0; d < read->rank; d++) {
        if (!read->affine[d].is) continue;
        const Poly *base = algebra_poly(algebra, role, read->affine[d].base);
        for (size_t id = 0; base && id < algebra->atoms.count; id++) {
            Atom atom = algebra->atoms.items[id];
            if (atom.kind == ATOM_LOCAL && atom.role == role &&
                loop_of(role->code, atom.index) != NULL && loop_number(tiles, role, &atom) < 0 &&
                poly_mentions(algebra, base, (int)id))
                return true;
        }
    }
    return false;
}

static void refuse_elsewhere(Tiles *tiles, const Role *role, const Access *read) {
    const Param *param = &tiles->prog->params.items[read->object];
    const Access *write = first_write(tiles, read->object);
    Diag *diag =
        diag_at(tiles->diags, P0207, read->span,
                "`%s` is read at elements that this grid tile does not write", param->name);
    if (write) diag_label(tiles->diags, diag, write->span, "written here");
    diag_label(tiles->diags, diag, param->span, "declared `inout` here");
    diag_note(tiles->diags, diag, "another block may write the element before or after this read");
    diag_help(tiles->diags, diag,
              write ? "read it at the same subscripts as the write, or at some of its elements"
                    : "remove `inout`");
    if (write && has_own_loop(tiles, role, read))
        diag_help(tiles->diags, diag,
                  "if the loops of both have the same bounds, declare these: `range parts = ..;`, "
                  "`for p in parts`");
}

static bool is_local(const Role *role, const char *name) {
    for (size_t i = 0; i < role->locals.count; i++)
        if (strcmp(role->locals.items[i].name, name) == 0) return true;
    return false;
}

/* "sum[j] Y[m, j] for j in 0 .. 1": the same element, read by a statement of threads */
static const char *element_by_threads(Tiles *tiles, const Role *role, const Access *read) {
    static const char *const names[] = {"j", "i", "e", "u", "one"};
    size_t name = 0;
    while (name + 1 < COUNT_OF(names) && is_local(role, names[name])) name++;
    Str text = str_new(tiles->arena);
    str_printf(&text, "sum[%s] %s[", names[name], tiles->prog->params.items[read->object].name);
    for (int d = 0; d + 1 < read->rank; d++)
        str_printf(&text, "%s, ", tiles_text(tiles, read->subs[d]->span));
    const Expr *last = read->subs[read->rank - 1];
    int64_t first;
    if (!expr_constant(last, &first) || first != 0)
        str_printf(&text, last->kind == X_SELECT ? "(%s) + " : "%s + ",
                   tiles_text(tiles, last->span));
    str_printf(&text, "%s] for %s in 0 .. 1", names[name], names[name]);
    return text.text;
}

void tiles_scalar_rule(Tiles *tiles, const ScalarRead *scalar) {
    static const IndexSpace none = {0};
    const Access *read = scalar->access;
    const Param *param = &tiles->prog->params.items[read->object];
    if (read->rank == 0 || !written_there(tiles, scalar->role, &none, read)) {
        refuse_elsewhere(tiles, scalar->role, read);
        return;
    }
    Diag *diag = diag_at(tiles->diags, P0207, read->span,
                         "`%s` is read outside of a tile statement", param->name);
    diag_label(tiles->diags, diag, param->span, "declared `inout` here");
    diag_note(tiles->diags, diag,
              "only tile statements wait for what the threads of the role have written before");
    diag_help(tiles->diags, diag, "read it by a statement of its own: `let x = %s;`",
              element_by_threads(tiles, scalar->role, read));
}

static void check_outputs(Tiles *tiles, Site *site) {
    for (size_t i = 0; i < site->reads.count; i++) {
        const Access *read = site->reads.items[i];
        if (read->space != SPACE_GLOBAL) continue;
        const Param *param = &tiles->prog->params.items[read->object];
        if (param->mode == PARAM_OUT) {
            tiles_refuse_output(tiles, read);
            site->poisoned = true;
        }
        if (param->mode != PARAM_INOUT ||
            written_there(tiles, site->role, &site->tile->space, read))
            continue;
        refuse_elsewhere(tiles, site->role, read);
        site->poisoned = true;
    }
}

/* ---- `by lanes` ------------------------------------------------------------------------------ */

static void check_lanes(Tiles *tiles, Site *site) {
    const Tile *tile = site->tile;
    if (!tile->by_lanes || site->poisoned) return;
    bool reads_tensor = tile->value->kind == X_READ && tile->value->read->space == SPACE_GLOBAL;
    bool store =
        tile->target.space == SPACE_GLOBAL && tile->value->kind == X_READ && tile->op == ASSIGN_SET;
    if (store || (tile->target.space == SPACE_STAGE && reads_tensor && tile->op == ASSIGN_SET)) {
        if (store || element_same_bits(tile->target.type, tile->value->read->type)) return;
    }
    Diag *diag = diag_at(tiles->diags, P0210, tile->lanes_span,
                         "`by lanes` on a statement that is not a copy");
    if (tile->target.space != SPACE_STAGE && tile->target.space != SPACE_GLOBAL)
        diag_label(tiles->diags, diag, tile->target.span, "not a field of a stage");
    else if (!reads_tensor)
        diag_label(tiles->diags, diag, tile->value->span, "not just an element of a tensor");
    else if (tile->op != ASSIGN_SET)
        diag_label(tiles->diags, diag, tile->target.span, "computes with the old value");
    else
        diag_label(tiles->diags, diag, tile->value->span, "`%s`, and the field holds `%s`",
                   element_rows[tile->value->read->type].spelling,
                   element_rows[tile->target.type].spelling);
    diag_help(
        tiles->diags, diag,
        "remove `by lanes`: the threads of the role compute the statement element by element");
    site->poisoned = true;
}

/* ---- all ------------------------------------------------------------------------------------- */

static void note_reduction(Expr *expr, void *found) {
    if (expr->kind == X_REDUCE || expr->kind == X_SCAN) *(bool *)found = true;
}

void tiles_rules(Tiles *tiles, Site *site) {
    bool reduction = false;
    if (site->poisoned) return;
    expr_visit(tiles->arena, site->tile->value, note_reduction, &reduction);
    check_directions(tiles, site, reduction);
    if (!site->poisoned) check_outputs(tiles, site);
    if (!site->poisoned) check_once(tiles, site);
    if (!site->poisoned) check_destination(tiles, site);
    check_lanes(tiles, site);
    if (site->poisoned || !reduction) return;
    const Access *target = &site->tile->target;
    bool own = target->space == SPACE_REGISTER && site->role->tiles.items[target->object].reduced;
    bool scan = site->tile->value->kind == X_SCAN;
    site->tile->class = !own ? TILE_REFUSED : scan ? TILE_SCAN : TILE_REDUCTION;
    if (!own) tiles_mma(tiles, site);
}
