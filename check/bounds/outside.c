/* Accesses outside of their tensors, which read zeros and store nothing. Needs lowered roles.
 *
 * An access of which no element can be inside, whatever the extents, is a mistake: it is recorded
 * here, and refused (outside_report) if no copy of it, by inlining or unrolling, and no
 * combination of statics can be inside. A subscript that is read from memory and not proved inside
 * is a note. Code that no launch reaches is neither. If a formula is too large to tell, the verdict
 * is incomplete, unless another copy may be inside. */
#include "check/passes.h"
#include "derive/tiles.h"
#include "flow/again.h"
#include "flow/values.h"

#include <stdlib.h>
#include <string.h>

#define OUTSIDE_STEPS 20000000

/* A condition under which an expression is evaluated */
typedef struct Guard {
    Expr *condition;
    bool truth;
} Guard;
typedef VEC(Guard) Guards;

typedef struct Outside {
    Arena *arena, *keep; /* keep: of the program */
    Prog *prog;
    Diags *diags;
    FlowCode *code;
    Algebra *algebra;
    int at;        /* the row */
    bool entered;  /* its facts are assumed: only if it has an access to judge */
    bool limited;  /* a limit was reached: some of its facts are missing */
    PathMark mark; /* before they were */
    Bindings before;
    const bool *data; /* by local: its value is read from memory */
    Budget budget;
    Guards guards;
    VEC(Span) noted; /* subscripts with a note */
} Outside;

/* ---- values that are read from memory -------------------------------------------------------- */

/* A condition that is read from memory only chooses. */
static bool is_data(Outside *o, Expr *expr) {
    arena_count(o->arena, 1);
    if (budget_is_used(o->budget)) return false;
    if (expr->kind == X_READ) return true;
    if (expr->kind == X_LOCAL) return o->data[expr->index];
    ExprParts parts = expr_parts(expr);
    for (int i = expr->kind == X_SELECT; i < parts.count; i++)
        if (is_data(o, parts.items[i])) return true;
    return false;
}

/* By local: some row sets it to a value that is read from memory. Variables of loops are not: a
 * loop over a segment reads zeros after its end on purpose. */
static void find_locals(Outside *o) {
    bool *data = NEW_ARRAY(o->arena, bool, o->code->role->locals.count + 1), changed = true;
    o->data = data;
    while (changed) {
        changed = false;
        for (size_t at = 0; at < o->code->rows.count; at++) {
            const Row *row = &o->code->rows.items[at];
            if (row->kind != ROW_SET || data[row->local]) continue;
            changed |= data[row->local] = is_data(o, row->value);
        }
    }
}

/* ---- one access ------------------------------------------------------------------------------ */

typedef struct Position {
    const Poly *sub;      /* distance from the first element */
    const Poly *after;    /* from the place after the last one */
    const Poly *computed; /* in 32 bits; inside only if `sub` is (algebra_subscript) */
} Position;

/* At least 0 if the formula is negative */
static const Poly *negative(Algebra *algebra, const Poly *poly) {
    return poly_sum(algebra, poly_constant(algebra, -1), poly, -1);
}

static Position position_of(Outside *o, const Access *access, int axis) {
    Expr *extent = o->prog->params.items[access->object].extents[axis];
    const Poly *sub = algebra_subscript(o->algebra, o->code->role, access, axis);
    return (Position){.sub = sub,
                      .after = poly_sum(o->algebra, sub, algebra_launched(o->algebra, extent), -1),
                      .computed = algebra_poly(o->algebra, o->code->role, access->subs[axis])};
}

static bool proves(Outside *o, const Poly *poly) {
    return algebra_proves(o->algebra, CLAIM_NOT_NEGATIVE, poly);
}

/* Whether a limit, rather than what the program says, leaves unknown where the access is */
static bool is_limited(const Outside *o, const Position *at, uint64_t limits) {
    return o->limited || o->algebra->limits > limits || algebra_is_cut(o->algebra, at->sub) ||
           poly_is_cut(o->algebra, at->after);
}

/* Facts that contradict each other prove everything: no launch comes here. */
static bool is_dead(Outside *o, const Poly *poly) {
    return algebra_impossible(o->algebra) ||
           (proves(o, poly) && proves(o, negative(o->algebra, poly)));
}

static PathMark assume_guards(Outside *o) {
    PathMark mark = algebra_mark(o->algebra);
    for (size_t i = 0; i < o->guards.count; i++)
        algebra_assume(o->algebra, o->code->role, o->guards.items[i].condition,
                       o->guards.items[i].truth);
    return mark;
}

/* -1: each element is before the tensor; 1: after it; 0: some may be inside, or nothing is known.
 * Most subscripts are not negative by their ranges, which costs less than a proof. */
static int side_of(Outside *o, const Position *at, bool *dead) {
    int side = 0;
    if (!algebra_never_negative(o->algebra, at->sub) && proves(o, negative(o->algebra, at->sub)))
        side = -1;
    else if (proves(o, at->after))
        side = 1;
    if (!side) return 0;
    PathMark mark = assume_guards(o);
    *dead = is_dead(o, side < 0 ? at->sub : negative(o->algebra, at->after));
    algebra_undo(o->algebra, mark);
    return side;
}

/* The subscript, or the access if the subscript is the result of a function */
static Span place_of(const Access *access, int axis) {
    Span sub = access->subs[axis]->span;
    return sub.lo >= access->span.lo && sub.hi <= access->span.hi ? sub : access->span;
}

static void record(Outside *o, const Access *access, int axis, int side, bool limited,
                   bool written) {
    const Tile *tile = code_row(o->code, o->at)->tile;
    vec_push(o->keep, &o->prog->outside.list,
             ((OutsideAccess){.span = access->span,
                              .sub = place_of(access, axis),
                              .param = access->object,
                              .axis = axis,
                              .before = side < 0,
                              .written = written,
                              .copied = tile && tile->target.space == SPACE_STAGE && tile->value &&
                                        tile->value->kind == X_READ && tile->value->read == access,
                              .outside = side != 0,
                              .possible = side == 0 && !limited,
                              .limited = limited}));
}

typedef struct Sides {
    bool low, high; /* proved: at least 0; below the extent */
} Sides;

static Sides proved_sides(Outside *o, const Poly *sub, const Poly *last) {
    return (Sides){.low = proves(o, sub), .high = proves(o, poly_sum(o->algebra, last, sub, -1))};
}

/* Under the facts so far, with the values of `again` (NULL: none) */
static Sides known_sides(Outside *o, const Position *at, const Poly *last, const Again *again) {
    const Poly *sub = again ? again_poly(again, at->sub) : at->sub,
               *computed = again ? again_poly(again, at->computed) : at->computed;
    Sides sides = proved_sides(o, sub, last);
    if ((sides.low && sides.high) || poly_equal(sub, computed)) return sides;
    Sides other = proved_sides(o, computed, last);
    return other.low && other.high ? other : sides;
}

/* If the tensor has no elements, none is inside: so it has some. */
static Sides sides_of(Outside *o, const Position *at) {
    PathMark mark = assume_guards(o);
    const Poly *last = poly_sum(o->algebra, negative(o->algebra, at->after), at->sub, 1);
    algebra_assume_poly(o->algebra, last);
    Sides sides = known_sides(o, at, last, NULL);
    if (!sides.low || !sides.high) {
        Again again = again_find(o->arena, o->code, o->at);
        again_assume(&again, o->mark);
        Sides later = known_sides(o, at, last, &again);
        sides.low |= later.low, sides.high |= later.high;
    }
    algebra_undo(o->algebra, mark);
    return sides;
}

static void note_data(Outside *o, const Access *access, int axis, Sides sides, bool written) {
    const Param *param = &o->prog->params.items[access->object];
    Span at = place_of(access, axis);
    for (size_t i = 0; i < o->noted.count; i++)
        if (o->noted.items[i].lo == at.lo && o->noted.items[i].hi == at.hi) return;
    vec_push(o->keep, &o->noted, at);
    const char *sub = tiles_text(o->prog->tiles, at);
    Str extent = str_new(o->arena);
    expr_print(param->extents[axis], o->prog, NULL, NULL, &extent);
    bool select = access->subs[axis]->kind == X_SELECT;
    const char *term = select ? arena_printf(o->arena, "(%s)", sub) : sub;
    const char *unknown =
        sides.low    ? arena_printf(o->arena, "%s < %s", term, extent.text)
        : sides.high ? arena_printf(o->arena, "%s >= 0", term)
                     : arena_printf(o->arena, "%s >= 0 && %s < %s", term, term, extent.text);
    Diag *diag =
        diag_at(o->diags, P0242, at, "`%s` is read from memory, and not known to be inside of `%s`",
                sub, param->name);
    diag_note(o->diags, diag,
              written ? "elements outside of a tensor are not stored"
                      : "elements outside of a tensor are read as 0");
    diag_help(o->diags, diag, "test it if it can be outside: `%s`", unknown);
}

static void judge_axis(Outside *o, const Access *access, int axis, bool written) {
    Expr *sub = access->subs[axis];
    bool dead = false;
    if (sub->kind == X_INDEX || sub->kind == X_POISON) {
        record(o, access, axis, 0, false, written);
        return;
    }
    uint64_t limits = o->algebra->limits;
    Position at = position_of(o, access, axis);
    int side = side_of(o, &at, &dead);
    if (!dead) record(o, access, axis, side, !side && is_limited(o, &at, limits), written);
    if (side || !is_data(o, sub)) return;
    Sides sides = sides_of(o, &at);
    if (!sides.low || !sides.high) note_data(o, access, axis, sides, written);
}

/* Uses the formulas and the facts of the row. */
static void enter_row(Outside *o) {
    if (o->entered) return;
    o->entered = true;
    o->mark = algebra_mark(o->algebra);
    o->before = o->algebra->bindings;
    uint64_t limits = o->algebra->limits;
    (void)values_assume(o->arena, o->code, o->at);
    (void)values_at(o->arena, o->code, o->at);
    o->limited = o->algebra->limits > limits;
}

static void judge(Outside *o, const Access *access, bool written) {
    if (access->space != SPACE_GLOBAL || !valid_index(access->object, o->prog->params.count))
        return;
    enter_row(o);
    for (int d = 0; d < access->rank; d++) judge_axis(o, access, d, written);
}

/* ---- all accesses of a row ------------------------------------------------------------------- */

static void walk(Outside *o, Expr *expr);
static void walk_root(Expr *expr, void *data) { walk(data, expr); }

static void walk_under(Outside *o, Expr *condition, bool truth, Expr *expr) {
    vec_push(o->arena, &o->guards, ((Guard){condition, truth}));
    walk(o, expr);
    o->guards.count--;
}

static void walk(Outside *o, Expr *expr) {
    arena_count(o->arena, 1);
    if (!expr || budget_is_used(o->budget)) return;
    if (expr->kind == X_READ) {
        access_exprs(expr->read, walk_root, o);
        judge(o, expr->read, false);
    } else if (expr->kind == X_SELECT) {
        walk(o, expr->select.condition);
        walk_under(o, expr->select.condition, true, expr->select.then);
        walk_under(o, expr->select.condition, false, expr->select.otherwise);
    } else if (expr->kind == X_BINARY && (expr->binary.op == OP_AND || expr->binary.op == OP_OR)) {
        walk(o, expr->binary.left);
        walk_under(o, expr->binary.left, expr->binary.op == OP_AND, expr->binary.right);
    } else {
        ExprParts parts = expr_parts(expr);
        for (int i = 0; i < parts.count; i++) walk(o, parts.items[i]);
    }
}

static void visit_row(Outside *o, int at) {
    const Row *row = code_row(o->code, at);
    const Tile *tile = row->kind == ROW_TILE ? row->tile : NULL;
    o->at = at, o->entered = false;
    o->algebra->space = tile ? &tile->space : NULL;
    if (tile && tile->where) { /* evaluated for all elements */
        enter_row(o);
        walk(o, tile->where);
        uint64_t limits = o->algebra->limits;
        algebra_assume(o->algebra, o->code->role, tile->where, true);
        o->limited |= o->algebra->limits > limits;
    }
    if (tile) {
        judge(o, &tile->target, true);
        access_exprs(&tile->target, walk_root, o);
        walk(o, tile->value);
    } else {
        row_exprs(o->code, row, walk_root, o);
    }
    o->algebra->space = NULL;
    if (!o->entered) return;
    (void)algebra_hold(o->algebra, o->before);
    algebra_undo(o->algebra, o->mark);
}

/* ---- copies of one access -------------------------------------------------------------------- */

static int compare(const void *a, const void *b) {
    const OutsideAccess *x = a, *y = b;
    if (x->span.lo != y->span.lo) return x->span.lo < y->span.lo ? -1 : 1;
    if (x->span.hi != y->span.hi) return x->span.hi < y->span.hi ? -1 : 1;
    return x->axis - y->axis;
}

/* Accesses mostly come in order of the text. */
static bool is_sorted(const OutsideAccess *items, size_t count) {
    for (size_t i = 1; i < count; i++)
        if (compare(&items[i - 1], &items[i]) > 0) return false;
    return true;
}

/* One row for each place of the text */
static void unite(OutsideAccesses *all) {
    OutsideAccess *items = all->list.items;
    size_t kept = 0;
    if (all->list.count == 0) return;
    if (!is_sorted(items, all->list.count)) qsort(items, all->list.count, sizeof *items, compare);
    for (size_t i = 1; i < all->list.count; i++) {
        OutsideAccess *last = &items[kept], *next = &items[i];
        if (compare(last, next) != 0) {
            items[++kept] = *next;
            continue;
        }
        last->outside = last->outside || next->outside;
        last->possible = last->possible || next->possible;
        last->limited = last->limited || next->limited;
    }
    all->list.count = kept + 1;
}

void outside_merge(Arena *arena, OutsideAccesses *into, const OutsideAccesses *from) {
    for (size_t i = 0; i < from->list.count; i++) vec_push(arena, &into->list, from->list.items[i]);
    into->cut = into->cut || from->cut;
    unite(into);
}

/* The part of a message that is the same for an error and a note */
static void say_where(const Prog *prog, const OutsideAccess *access, Diags *diags, Diag *diag) {
    const Param *param = &prog->params.items[access->param];
    if (access->before) {
        diag_primary(diags, diag, "always negative");
        diag_note(diags, diag, "subscripts begin at 0; negative ones do not count from the end");
    } else {
        Str extent = str_new(diags->arena);
        expr_print(param->extents[access->axis], prog, NULL, NULL, &extent);
        diag_primary(diags, diag, "always at least the extent, `%s`", extent.text);
    }
    diag_label(diags, diag, param->span, "declared here");
}

/* `-1` may be meant as the last subscript */
static void add_last(const Prog *prog, const OutsideAccess *access, const char *sub, Diags *diags,
                     Diag *diag) {
    if (sub[0] != '-' || strspn(sub + 1, "0123456789") != strlen(sub + 1)) return;
    Str extent = str_new(diags->arena);
    expr_print(prog->params.items[access->param].extents[access->axis], prog, NULL, NULL, &extent);
    diag_help(diags, diag, "or write the extent, to count from the end: `%s - %s`", extent.text,
              sub + 1);
}

static void refuse(const Prog *prog, const OutsideAccess *access, Diags *diags) {
    const char *sub = tiles_text(prog->tiles, access->sub),
               *name = prog->params.items[access->param].name;
    if (access->copied) {
        Diag *diag =
            diag_at(diags, P0243, access->sub,
                    "`%s` is never inside of `%s`: the copy fills the stage with zeros", sub, name);
        say_where(prog, access, diags, diag);
        diag_help(diags, diag,
                  "if zeros are meant, say so: `// allow P0243: zeros precede the first tile`");
        return;
    }
    Diag *diag = diag_at(diags, P0232, access->sub, "`%s` is never inside of `%s`", sub, name);
    say_where(prog, access, diags, diag);
    if (access->written) {
        diag_note(diags, diag, "elements outside of a tensor are not stored");
        diag_help(diags, diag, "remove the statement, or correct the subscript");
    } else {
        diag_note(diags, diag, "elements outside of a tensor are read as 0");
        bool real = element_rows[prog->params.items[access->param].type].kind == ELEMENT_FLOAT;
        diag_help(diags, diag, "write `%s` if zeros are meant, or correct the subscript",
                  real ? "0.0" : "0");
        add_last(prog, access, sub, diags, diag);
    }
}

size_t outside_report(const Prog *prog, const OutsideAccesses *all, Diags *diags) {
    size_t count = 0;
    for (size_t i = 0; i < all->list.count && !all->cut; i++) {
        const OutsideAccess *access = &all->list.items[i];
        if (access->possible || (access->limited && access->copied)) continue;
        if (access->limited)
            incomplete_access(diags, access->sub, tiles_text(prog->tiles, access->sub),
                              prog->params.items[access->param].name);
        else
            refuse(prog, access, diags);
        count += !access->copied;
    }
    return count;
}

void outside_find(Arena *arena, Prog *prog, Diags *diags) {
    Outside o = {.keep = arena, .prog = prog, .diags = diags};
    o.budget = arena_budget(arena, OUTSIDE_STEPS);
    for (size_t r = 0; r < prog->roles.count; r++) {
        o.arena = arena_scratch(arena);
        o.code = prog->roles.items[r].code;
        o.algebra = o.code->algebra;
        o.guards = (Guards){0};
        find_locals(&o);
        for (size_t at = 0; at < o.code->rows.count; at++) visit_row(&o, (int)at);
        arena_free(o.arena);
        if (!prog->outside.cut && budget_is_used(o.budget)) {
            incomplete_report(diags, o.code->role, "that accesses can be inside of their tensors");
            prog->outside.cut = true;
        }
    }
    unite(&prog->outside);
}
