/* Values that are read from memory again; see again.h.
 *
 * The algebra knows a read of memory that may change as an atom of its place in the text, and a
 * variable with such a value as a version. So `c[k] >= 0 && c[k] < N ? X[c[k]] : 0` has three
 * atoms, and nothing is known of a clamp in a `let`. Here the first read of an element stands for
 * the others. Rows that matter are conditions of IFs and values of variables that come before the
 * row on all its paths, in the same iteration, and the row itself. */
#include "flow/again.h"
#include "flow/values.h"

/* A row looks at so many earlier ones, and at so many reads: without the others less is known. */
#define ROWS_MOST  1000
#define READS_MOST 100

/* The first read of an element */
typedef struct Seen {
    int at;
    Expr *expr;
} Seen;

/* A variable that is the truth of a condition */
typedef struct Answer {
    int at; /* the row that sets it */
    const Poly *value;
} Answer;

/* ---- what may write in between --------------------------------------------------------------- */

static bool writes(const Row *row, const Access *read) {
    if (row->kind == ROW_UNSAFE || row->kind == ROW_STEP) return true;
    if (row->kind == ROW_TILE)
        return row->tile->target.space == read->space && row->tile->target.object == read->object;
    bool opened = row->kind == ROW_OPEN;
    if (read->space != SPACE_STAGE)
        return opened && row->object == OBJECT_TILE && row->index == read->object;
    if (row->kind == ROW_MOVE && row->other == read->object) return true;
    return row->kind == ROW_LEND ||
           (opened && row->object == OBJECT_HANDLE && row->index == read->object) ||
           (row_gains(row->kind) && row->handle == read->object);
}

/* The last row that may be executed between `from` and `to`, the later one: the end of the
 * outermost loop around `to` that is not around `from` */
static int last_between(const FlowCode *code, int from, int to) {
    int last = to;
    for (int r = code_row(code, to)->region; r >= 0; r = code_region(code, r)->parent) {
        const Region *region = code_region(code, r);
        if (region_loops(region) && region->begin > from) last = region->end;
    }
    return last;
}

/* Other roles may write a tensor at any time: only one statement reads it once. */
static bool stays(const Again *again, const Seen *from, const Seen *to) {
    const Access *read = to->expr->read;
    if (from->at == to->at) return true;
    if (read->space == SPACE_GLOBAL) return false;
    int last = last_between(again->code, from->at, to->at);
    for (int at = from->at; at < last; at++) {
        arena_count(again->arena, 1);
        if (writes(code_row(again->code, at), read)) return false;
    }
    return true;
}

/* ---- equal reads ----------------------------------------------------------------------------- */

const Poly *again_poly(const Again *again, const Poly *poly) {
    for (size_t i = 0; poly && i < again->same.count; i++) {
        const Same *same = &again->same.items[i];
        if (poly_mentions(again->code->algebra, poly, same->atom))
            poly = poly_replace(again->code->algebra, poly, same->atom, same->value);
    }
    return poly;
}

static const Poly *poly_at(const Again *again, int at, Expr *expr) {
    return again_poly(again, values_poly(again->arena, again->code, at, expr));
}

/* `atom` is one atom. */
static void add_same(Again *again, const Poly *atom, const Poly *value) {
    if (!atom || !value || atom->count != 1 || atom->terms[0].count != 1 ||
        atom->terms[0].coef != 1 ||
        poly_mentions(again->code->algebra, value, atom->terms[0].atoms[0]))
        return;
    vec_push(again->arena, &again->same, ((Same){atom->terms[0].atoms[0], value}));
}

static bool same_value(const Again *again, const Seen *a, Expr *left, const Seen *b, Expr *right) {
    if (!left || !right) return left == right;
    const Poly *one = poly_at(again, a->at, left);
    return one && poly_equal(one, poly_at(again, b->at, right));
}

static bool same_element(const Again *again, const Seen *a, const Seen *b) {
    const Access *one = a->expr->read, *other = b->expr->read;
    if (one->space != other->space || one->object != other->object || one->field != other->field ||
        one->rank != other->rank || !same_value(again, a, one->element, b, other->element))
        return false;
    for (int d = 0; d < one->rank; d++)
        if (!same_value(again, a, one->subs[d], b, other->subs[d])) return false;
    return true;
}

static bool is_float(const Expr *expr) { return element_rows[expr->type].kind == ELEMENT_FLOAT; }

static void see(Expr *expr, void *data) {
    Again *again = data;
    if (expr->kind != X_READ || is_float(expr)) return;
    Seen now = {again->at, expr};
    const Poly *value = values_poly(again->arena, again->code, now.at, expr);
    if (!poly_changes(again->code->algebra, value)) return;
    for (size_t i = 0; i < again->seen.count; i++) {
        const Seen *first = &again->seen.items[i];
        arena_count(again->arena, 1);
        if (first->expr == expr) return;
        if (!same_element(again, first, &now) || !stays(again, first, &now)) continue;
        add_same(again, value, poly_at(again, first->at, first->expr));
        return;
    }
    if (again->seen.count < READS_MOST) vec_push(again->arena, &again->seen, now);
}

static void see_all(Expr *expr, void *data) {
    Again *again = data;
    expr_visit(again->arena, expr, see, again);
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* On each path the row comes before, in one iteration. */
static bool comes_before(const FlowCode *code, int before, int at) {
    const Row *row = code_row(code, before);
    int region = row->kind == ROW_IF ? code_region(code, row->region)->parent : row->region;
    for (int r = code_row(code, at)->region; r >= 0; r = code_region(code, r)->parent) {
        const Region *around = code_region(code, r);
        if (r != region) continue;
        return around->kind != REGION_IF || before > around->otherwise || at < around->otherwise;
    }
    return false;
}

/* A variable that a value from memory was assigned to is a version at the next row. */
static void see_set(Again *again, int at) {
    FlowCode *code = again->code;
    const Row *row = code_row(code, at);
    if (row->local < 0 || !row->value || is_float(row->value)) return;
    const Poly *value = values_poly(again->arena, code, at, row->value);
    if (!poly_changes(code->algebra, value)) return;
    Bindings before = values_at(again->arena, code, at + 1);
    const Poly *const *locals = code->algebra->bindings.locals;
    const Poly *now = locals ? locals[row->local] : NULL;
    (void)algebra_hold(code->algebra, before);
    if (!now || poly_changes(code->algebra, now)) return;
    if (row->value->type == E_BOOL) vec_push(again->arena, &again->answers, ((Answer){at, now}));
    add_same(again, now, again_poly(again, value));
}

Again again_find(Arena *arena, FlowCode *code, int at) {
    Again again = {.arena = arena, .code = code};
    for (again.at = at > ROWS_MOST ? at - ROWS_MOST : 0; again.at < at; again.at++) {
        RowKind kind = code_row(code, again.at)->kind;
        arena_count(arena, 1);
        if ((kind != ROW_SET && kind != ROW_IF) || !comes_before(code, again.at, at)) continue;
        row_exprs(code, code_row(code, again.at), see_all, &again);
        if (kind == ROW_SET) see_set(&again, again.at);
    }
    row_exprs(code, code_row(code, at), see_all, &again);
    return again;
}

/* ---- facts ----------------------------------------------------------------------------------- */

static const Poly *const *replaced(const Again *again, const Poly *const *facts, size_t count) {
    const Poly **made = NEW_ARRAY(again->code->algebra->arena, const Poly *, count + 1);
    for (size_t i = 0; i < count; i++) {
        made[i] = again_poly(again, facts[i]);
        if (!made[i]) made[i] = facts[i];
    }
    return made;
}

static bool is_fact(const Algebra *algebra, size_t first, const Poly *fact) {
    for (size_t i = first; i < algebra->facts.count; i++)
        if (poly_equal(algebra->facts.items[i], fact)) return true;
    return false;
}

/* The conditions, the last one first: it may be of earlier ones. */
static void assume_answers(const Again *again, PathMark since) {
    FlowCode *code = again->code;
    Algebra *algebra = code->algebra;
    for (size_t i = again->answers.count; i-- > 0;) {
        const Answer *answer = &again->answers.items[i];
        bool truth = is_fact(algebra, since.facts, poly_offset(algebra, answer->value, -1));
        if (!truth && !is_fact(algebra, since.facts, poly_minus(algebra, answer->value))) continue;
        Bindings before = values_at(again->arena, code, answer->at);
        algebra_assume(algebra, code->role, code_row(code, answer->at)->value, truth);
        (void)algebra_hold(algebra, before);
    }
}

void again_assume(const Again *again, PathMark since) {
    Algebra *algebra = again->code->algebra;
    if (!again->same.count) return;
    assume_answers(again, since);
    for (size_t i = since.facts, end = algebra->facts.count; i < end; i++) {
        const Poly *fact = algebra->facts.items[i], *made = again_poly(again, fact);
        if (made != fact) algebra_assume_poly(algebra, made);
    }
    for (size_t i = since.choices, end = algebra->choices.count; i < end; i++) {
        Choice choice = algebra->choices.items[i];
        for (int side = 0; side < 2; side++)
            choice.facts[side] = replaced(again, choice.facts[side], choice.counts[side]);
        vec_push(algebra->arena, &algebra->choices, choice);
    }
    algebra->path++;
}
