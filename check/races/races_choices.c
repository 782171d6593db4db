/* Places of tensors as formulas over the variables of an execution, with the conditions of its
 * path. Conditions on contents of stages and of tensors that are written are left out: two
 * executions may read different contents. */
#include "check/races/races_proof.h"
#include "flow/values.h"

/* 0 <= value < extent */
static void add_range(Algebra *algebra, Arena *arena, Polys *facts, const Poly *value,
                      const Poly *extent) {
    const Poly *below = poly_offset(algebra, poly_sum(algebra, extent, value, -1), -1);
    vec_push(arena, facts, value);
    if (extent && below) vec_push(arena, facts, below);
}

/* Ranges that the algebra knows for its own atoms; the second place's variables get new atoms
 * without ranges. */
static void add_ranges(Arena *arena, const Prog *prog, Formulas *f) {
    Algebra *algebra = f->code->algebra;
    const IndexSpace *space = &f->place->tile->space;
    for (size_t a = 0; a < prog->axes.count; a++) {
        const Poly *extent = algebra_launched(algebra, prog->axes.items[a].padded);
        add_range(algebra, arena, &f->facts, poly_atom(algebra, algebra_atom_axis(algebra, (int)a)),
                  extent);
    }
    for (int i = 0; i < space->count; i++) {
        const Index *index = &space->items[i];
        const Poly *extent = index->extent >= 0 ? poly_constant(algebra, index->extent)
                                                : algebra_launched(algebra, index->dynamic);
        add_range(algebra, arena, &f->facts, poly_atom(algebra, algebra_atom_index(algebra, i)),
                  extent);
    }
    const Poly *rank = poly_atom(algebra, algebra_atom_rank(algebra, f->code->role));
    if (f->code->role->instances > 1)
        add_range(algebra, arena, &f->facts, rank,
                  poly_constant(algebra, f->code->role->instances));
}

/* True if contents that are written while the kernel runs decide */
static bool passes(const Algebra *algebra, const Poly *const *facts, size_t count) {
    bool changes = false;
    for (size_t i = 0; i < count; i++) changes |= poly_changes(algebra, facts[i]);
    return changes;
}

/* The condition of the elements, with the values of variables at the row */
static void assume_where(Arena *arena, const Formulas *f) {
    Algebra *algebra = f->code->algebra;
    Bindings before = values_at(arena, f->code, f->at);
    algebra->space = &f->place->tile->space;
    algebra_assume(algebra, f->code->role, f->place->tile->where, true);
    algebra->space = NULL;
    (void)algebra_hold(algebra, before);
}

/* The conditions of the path to the place that do not depend on the time of evaluation */
static void find_path(Arena *arena, Formulas *f) {
    Algebra *algebra = f->code->algebra;
    PathMark mark = values_assume(arena, f->code, f->at);
    if (f->place->guarded) assume_where(arena, f);
    for (size_t i = mark.facts; i < algebra->facts.count; i++)
        if (!poly_changes(algebra, algebra->facts.items[i]))
            vec_push(arena, &f->facts, algebra->facts.items[i]);
    for (size_t i = mark.choices; i < algebra->choices.count; i++) {
        const Choice *choice = &algebra->choices.items[i];
        if (passes(algebra, choice->facts[0], choice->counts[0]) ||
            passes(algebra, choice->facts[1], choice->counts[1]))
            continue;
        vec_push(arena, &f->choices, *choice);
    }
    algebra_undo(algebra, mark);
}

static void find_subscripts(Arena *arena, Formulas *f) {
    Algebra *algebra = f->code->algebra;
    const Access *access = f->place->access;
    algebra->space = &f->place->tile->space;
    for (int d = 0; d < access->rank; d++)
        f->subs[d] = values_subscript(arena, f->code, f->at, access, d);
    algebra->space = NULL;
}

/* A select in the sum, -1: none */
static int select_in(const Algebra *algebra, const Poly *poly) {
    for (int t = 0; poly && t < poly->count; t++)
        for (int k = 0; k < poly->terms[t].count; k++)
            if (algebra->atoms.items[poly->terms[t].atoms[k]].kind == ATOM_SELECT)
                return poly->terms[t].atoms[k];
    return -1;
}

/* Adds that the condition, 0 or 1, holds or not. */
static void add_condition(Arena *arena, Formulas *f, const Poly *condition, bool holds) {
    Algebra *algebra = f->code->algebra;
    if (poly_changes(algebra, condition)) return;
    vec_push(arena, &f->facts,
             holds ? poly_offset(algebra, condition, -1) : poly_minus(algebra, condition));
}

/* Splits choice number `way` by a select in subscript d. False: there is none, or no room */
static bool part_way(Arena *arena, RaceChoices *choices, size_t way, int d) {
    Algebra *algebra = choices->ways.items[way].code->algebra;
    int select = select_in(algebra, choices->ways.items[way].subs[d]);
    if (select < 0 || choices->ways.count == WAYS_MOST) return false;
    const Atom atom = algebra->atoms.items[select];
    const Formulas whole = choices->ways.items[way];
    vec_push(arena, &choices->ways, whole);
    Formulas *then = &choices->ways.items[way];
    Formulas *otherwise = &choices->ways.items[choices->ways.count - 1];
    otherwise->facts = (Polys){0};
    for (size_t i = 0; i < then->facts.count; i++)
        vec_push(arena, &otherwise->facts, then->facts.items[i]);
    for (int k = 0; k < then->place->access->rank; k++) {
        otherwise->subs[k] = poly_replace(algebra, then->subs[k], select, atom.args[2]);
        then->subs[k] = poly_replace(algebra, then->subs[k], select, atom.args[1]);
    }
    add_condition(arena, then, atom.args[0], true);
    add_condition(arena, otherwise, atom.args[0], false);
    return true;
}

/* Unknown subscripts are left out; known ones are inside, because positions outside of the
 * tensor are not accessed. */
static void settle_way(Arena *arena, const Prog *prog, Formulas *f) {
    Algebra *algebra = f->code->algebra;
    const Access *access = f->place->access;
    f->digits = NEW_ARRAY(arena, RaceDigits, access->rank + 1);
    for (int d = 0; d < access->rank; d++) {
        if (!f->subs[d] || poly_changes(algebra, f->subs[d])) f->subs[d] = NULL;
        f->reach[d] = race_reach(algebra, &f->place->tile->space, f->subs[d]);
        if (!f->subs[d]) continue;
        Expr *extent = prog->params.items[access->object].extents[d];
        add_range(algebra, arena, &f->facts, f->subs[d], algebra_poly(algebra, NULL, extent));
    }
}

const RaceChoices *race_choices(Arena *arena, const Prog *prog, Place *place) {
    if (place->notes->formulas) return place->notes->formulas;
    FlowCode *code = place->role->code;
    RaceChoices *choices = place->notes->formulas = NEW(arena, RaceChoices);
    Formulas first = {.place = place, .code = code, .at = place->row};
    find_path(arena, &first);
    add_ranges(arena, prog, &first);
    find_subscripts(arena, &first);
    vec_push(arena, &choices->ways, first);
    for (size_t way = 0; way < choices->ways.count; way++)
        for (int d = 0; d < place->access->rank; d++)
            while (part_way(arena, choices, way, d)) continue;
    for (size_t way = 0; way < choices->ways.count; way++)
        settle_way(arena, prog, &choices->ways.items[way]);
    return choices;
}
