/* Elements of tiles that a program names: neighbours, the last one, the one at an extent. Zeros
 * that were read outside of a tensor may be named, and what the program selected in their place.
 * Other padding must not reach an element of a tensor that is inside of it: not as its value, nor
 * as a condition or subscript. */
#include "check/padding/padding.h"
#include "flow/values.h"

bool padding_is_named(const FlowCode *code, const Access *access, int d) {
    Expr *sub = access->subs[d];
    if (access->space == SPACE_GLOBAL || sub->kind == X_INDEX || sub->kind == X_POISON)
        return false;
    const Poly *poly = algebra_poly(code->algebra, code->role, sub);
    bool atom = poly && poly->count == 1 && poly->terms[0].coef == 1 && poly->terms[0].count == 1;
    return !atom || code->algebra->atoms.items[poly->terms[0].atoms[0]].kind != ATOM_INDEX;
}

/* ---- values that were named ------------------------------------------------------------------ */

static Value map_named(Value value, bool padding, const void *data) {
    (void)data;
    if (padding && !(value.marks & MARK_STATED)) value.marks |= MARK_NAMED;
    return value;
}

static Value map_stated(Value value, bool padding, const void *data) {
    (void)data;
    if (padding) value.marks = (uint16_t)((value.marks | MARK_STATED) & ~MARK_NAMED);
    return value;
}

/* Written at one position, as a variable is: padding_add_single follows it. */
const Fill *padding_as_variable(Padding *p, const Fill *fill) {
    return fill_map(&p->fills, fill, map_stated, NULL);
}

const Fill *padding_named(Padding *p, const Fill *fill) {
    return fill->padded ? fill_map(&p->fills, fill, map_named, NULL) : fill;
}

static unsigned named_sets(const Fill *fill) {
    unsigned sets = 0;
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        const Value *value = &fill->at[s].padding;
        if (pad_exists(*value) && value->marks & MARK_NAMED) sets |= 1u << s;
    }
    return sets;
}

void padding_add_single(Padding *p, const Assigned *assigned, TileFill *next) {
    if (!p->names) return;
    if (assigned->covers) next->dims[ALONE] = NULL;
    const Fill *fill = padding_updated(p, assigned->value, assigned->op, padding_single);
    fill = padding_controlled(p, padding_single, fill);
    if (!named_sets(fill)) return;
    next->dims[ALONE] = padding_widened(p, next->dims[ALONE], padding_by_place(p, fill, -1));
}

/* Any number where the condition is named padding */
static const Fill *decided_by(Padding *p, const Fill *condition, const Fill *element) {
    unsigned sets = named_sets(condition);
    Draft out;
    fill_draft(condition, &out);
    for (unsigned s = 0; s < 1u << out.count; s++) {
        out.at[s] = (Cell){element->at[0].element, pad_none};
        if (!(sets >> s & 1)) continue;
        out.at[s].padding = pad_any();
        out.at[s].padding.marks = MARK_NAMED;
    }
    return padding_by_place(p, fill_made(&p->fills, &out), -1);
}

void padding_choose(Padding *p, const Region *asked) {
    static const IndexSpace none = {0};
    if (!p->names || !asked->condition) return;
    p->space = &none, p->target = NULL;
    const Fill *fill = padding_of(p, asked->condition, padding_single);
    if (!named_sets(fill)) return;
    for (size_t i = 0; i < p->objects.count; i++) {
        int object = p->objects.items[i];
        bool written = false;
        for (size_t w = 0; w < p->writes[object].count && !written; w++) {
            int at = p->writes[object].items[w];
            written = at > asked->begin && at < asked->end;
        }
        if (!written) continue;
        TileFill next = *p->state[i].fill;
        const Fill *chosen = decided_by(p, fill, padding_written(p, next.element));
        next.dims[ALONE] = padding_widened(p, next.dims[ALONE], chosen);
        padding_put(p, object, &next, false);
    }
}

/* ---- statements that write tensors ----------------------------------------------------------- */

/* The element is inside of its tensor, and stored. */
static void assume_stored(Padding *p, const Tile *tile) {
    Algebra *algebra = p->code->algebra;
    const Access *target = &tile->target;
    for (int d = 0; d < target->rank; d++) {
        const Poly *sub = algebra_poly(algebra, p->code->role, target->subs[d]);
        const Poly *past =
            algebra_launched(algebra, access_extent(p->tiles, p->code->role, target, d));
        if (sub && past) algebra_assume_range(algebra, sub, poly_constant(algebra, 0), past);
    }
    if (tile->where) algebra_assume(algebra, p->code->role, tile->where, true);
}

/* True, and refused, if a value of the expression along the axis was named */
static bool check_fill(Padding *p, Expr *expr, PadAxis axis, const Fill *fill) {
    unsigned sets = named_sets(fill), possible = 0;
    for (unsigned s = 0; s < 1u << fill->count; s++)
        if (sets >> s & 1 && padding_is_possible(p, fill, s)) possible |= 1u << s;
    if (possible) padding_refuse_named(p, expr, axis, fill, possible);
    return possible;
}

/* A position that memory gives is 0 where it was read outside: it names an element. What the
 * program selects there instead does not. */
static bool check_subscript(Padding *p, Expr *sub, PadAxis axis) {
    const Fill *fill = padding_of(p, sub, axis);
    unsigned possible = 0;
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        const Value *value = &fill->at[s].padding;
        if (pad_exists(*value) && !(value->marks & MARK_OWN) && padding_is_possible(p, fill, s))
            possible |= 1u << s;
    }
    if (possible) padding_refuse_place(p, sub, axis, fill, possible);
    return possible;
}

/* Whether the statement is executed, and which elements it stores: without what these conditions
 * state of themselves */
static bool check_conditions(Padding *p, const Tile *tile, PadAxis axis) {
    const FlowCode *code = p->code;
    size_t decided = p->decided.count;
    bool refused = false;
    p->decided.count = 0;
    if (tile->where) refused = check_fill(p, tile->where, axis, padding_of(p, tile->where, axis));
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        Expr *condition = code->regions.items[r].condition;
        if (code->regions.items[r].kind != REGION_IF || !condition || axis.index >= 0) continue;
        refused |= check_fill(p, condition, axis, padding_of(p, condition, axis));
    }
    p->decided.count = decided;
    return refused;
}

static void check_along(Padding *p, const Tile *tile, PadAxis axis) {
    if (check_conditions(p, tile, axis)) return;
    for (int d = 0; d < tile->target.rank; d++) {
        Expr *sub = tile->target.subs[d];
        if (sub->kind != X_INDEX && check_subscript(p, sub, axis)) return;
    }
    const Fill *value = padding_updated(p, tile->value, tile->op, axis);
    check_fill(p, tile->value, axis, padding_controlled(p, axis, value));
}

typedef struct Found {
    const Role *role;
    bool read;
} Found;

static void find_read(Expr *expr, void *data) {
    Found *found = data;
    if (expr->kind == X_READ) found->read = true;
    if (expr->kind != X_LOCAL) return;
    LocalKind kind = found->role->locals.items[expr->index].kind;
    found->read |= kind == LOCAL_LET || kind == LOCAL_VAR;
}

bool padding_scatters(Arena *arena, const Role *role, const Tile *tile) {
    Found found = {role, false};
    if (tile->target.space != SPACE_GLOBAL) return false;
    for (int d = 0; d < tile->target.rank; d++)
        expr_visit(arena, tile->target.subs[d], find_read, &found);
    return found.read;
}

void padding_check_named(Padding *p, const Tile *tile) {
    const FlowCode *code = p->code;
    Algebra *algebra = code->algebra;
    if (!p->names && !padding_scatters(p->arena, code->role, tile)) return;
    PathMark mark = algebra_mark(algebra);
    if (p->proofs) assume_stored(p, tile);
    size_t decided = p->decided.count;
    if (tile->where) vec_push(p->arena, &p->decided, (struct Decided){tile->where, true});
    for (int i = 0; i < tile->space.bound; i++)
        check_along(
            p, tile,
            (PadAxis){
                .index = i, .atom = algebra_atom_index(algebra, i), .local = -1, .region = -1});
    for (int r = code->rows.items[p->at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind == REGION_FOR && region->var >= 0)
            check_along(p, tile, padding_loop_axis(code, r));
    }
    check_along(p, tile, padding_single);
    p->decided.count = decided;
    algebra_undo(algebra, mark);
}
