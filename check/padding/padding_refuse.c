/* Refusals of padding: reductions, and loops that reduce, of values that belong to no element. */
#include "check/padding/padding.h"

#include <math.h>

/* ---- refusals -------------------------------------------------------------------------------- */

typedef struct Search { /* for a condition of a select that depends on the axis */
    Padding *p;
    PadAxis axis;
    Expr *found;
} Search;

static void find_mask(Expr *expr, void *data) {
    Search *search = data;
    if (expr->kind != X_SELECT || search->found) return;
    if (padding_mentions(search->p, expr->select.condition, search->axis))
        search->found = expr->select.condition;
}

static bool was_reported(Padding *p, Span span) {
    for (size_t i = 0; i < p->reported.count; i++)
        if (p->reported.items[i].lo == span.lo && p->reported.items[i].hi == span.hi) return true;
    vec_push(p->arena, &p->reported, span);
    return false;
}

/* What is refused: by set of edges, those with values that must not be there */
typedef struct Refused {
    const Fill *fill;
    unsigned sets;
    bool controls; /* padding decides whether it is executed; its own values are no reason */
    bool empty;    /* of a reduction that has an element, it would change nothing */
} Refused;

/* Some of these sets has only edges of known position. */
static bool is_known(const Refused *refused) {
    for (unsigned s = 1; s < 1u << refused->fill->count; s++) {
        bool known = refused->sets >> s & 1;
        for (int i = 0; i < refused->fill->count; i++)
            known &= !(s >> i & 1) || refused->fill->edges[i].sub;
        if (known) return true;
    }
    return false;
}

static bool only_zeros(const Refused *refused) {
    for (unsigned s = 0; s < 1u << refused->fill->count; s++)
        if (refused->sets >> s & 1 && !(refused->fill->at[s].padding.marks & MARK_READ))
            return false;
    return true;
}

/* The edge is crossed in some of these sets. */
static bool crosses(const Refused *refused, int edge) {
    for (unsigned s = 0; s < 1u << refused->fill->count; s++)
        if (refused->sets >> s & 1 && s >> edge & 1) return true;
    return false;
}

/* The same alone */
static bool suffices(const Refused *refused, int edge) { return refused->sets >> (1u << edge) & 1; }

/* The first edge of known position, if possible one that is crossed alone; else any edge */
static const Edge *asked(const Refused *refused) {
    const Fill *fill = refused->fill;
    for (int known = 1; known >= 0; known--)
        for (int alone = 1; alone >= 0; alone--)
            for (int i = 0; i < fill->count; i++)
                if ((alone ? suffices : crosses)(refused, i) && (fill->edges[i].sub || !known))
                    return &fill->edges[i];
    return NULL;
}

static bool is_masked(const Edge *edge) { return edge->above && edge->below; }

/* The reads that are followed; there may be others. */
static bool all_masked(const Refused *refused) {
    for (int i = 0; i < refused->fill->count; i++)
        if (crosses(refused, i) && !is_masked(&refused->fill->edges[i])) return false;
    return true;
}

/* Reads that are masked are to blame only if all are. */
static bool is_blamed(const Refused *refused, int edge) {
    return crosses(refused, edge) &&
           (!is_masked(&refused->fill->edges[edge]) || all_masked(refused));
}

/* The first such edge of its read */
static bool is_shown(const Refused *refused, int edge) {
    const Edge *edges = refused->fill->edges;
    for (int k = 0; k < edge; k++)
        if (is_blamed(refused, k) && edges[k].from.lo == edges[edge].from.lo) return false;
    return is_blamed(refused, edge);
}

static int count_reads(const Refused *refused) {
    int count = 0;
    for (int i = 0; i < refused->fill->count; i++) count += is_shown(refused, i);
    return count;
}

static bool consumes(const Role *role) {
    for (size_t h = 0; h < role->handles.count; h++)
        if (role->handles.items[h].end == END_CONSUME) return true;
    return false;
}

/* The condition shows that the position is inside of the tensor: a mask of some operand. */
static bool shows_inside(Padding *p, Expr *condition, Edge edge) {
    Algebra *algebra = p->code->algebra;
    PathMark mark = algebra_mark(algebra);
    algebra_assume(algebra, p->code->role, condition, true);
    bool inside = padding_prove_inside(p, &edge);
    algebra_undo(algebra, mark);
    return inside;
}

/* of what neither adds nor compares */
static const char value_before[] = "the value before";

/* A read in a condition that is the same number at all positions outside: what a mask selects */
typedef struct OwnRead {
    Padding *p;
    PadAxis axis;
    Expr *read; /* NULL: none */
    double number;
} OwnRead;

static void find_own(Expr *expr, void *data) {
    OwnRead *own = data;
    Value all = pad_none;
    if (own->read || expr->kind != X_READ) return;
    const Fill *fill = padding_of(own->p, expr, own->axis);
    if (fill->more) return;
    for (unsigned s = 0; s < 1u << fill->count; s++)
        if (pad_exists(fill->at[s].padding)) all = pad_join(all, fill->at[s].padding);
    if (!(all.marks & MARK_OWN) || all.lo != all.hi || all.nan) return;
    own->read = expr, own->number = all.lo;
}

/* What masks select decides the condition in one way. */
static bool is_excluded(Padding *p, PadAxis axis, Expr *condition) {
    const Fill *fill = padding_of(p, condition, axis);
    for (unsigned s = 0; s < 1u << fill->count; s++)
        if (pad_exists(fill->at[s].padding) && !pad_is_own_decision(&fill->at[s].padding))
            return false;
    return fill->padded;
}

/* Notes what masks select if it decides the condition: this helps where positions are no longer
 * known. */
static void note_decided(Padding *p, PadAxis axis, const Refused *refused, Expr *condition) {
    OwnRead own = {p, axis, NULL, 0};
    const Edge *edge = asked(refused);
    if (p->own_read || !condition || axis.fixed || !edge || !all_masked(refused) || edge->sub ||
        is_excluded(p, axis, condition))
        return;
    expr_visit(p->arena, condition, find_own, &own);
    if (own.read) p->own_read = padding_written_text(p, own.read->span);
    if (!p->own_read) return;
    bool is_float = element_rows[own.read->type].kind == ELEMENT_FLOAT;
    p->own_number = arena_printf(p->arena, is_float ? "%.9g" : "%.0f", own.number);
}

/* What masks select decides; the position is no longer known. */
static bool advise_selected(Padding *p, Diag *diag, PadAxis axis, const char *neutral,
                            const Refused *refused, Expr *condition) {
    Diags *diags = p->tiles->diags;
    bool excluded = condition && axis.region < 0 && is_excluded(p, axis, condition);
    if (excluded)
        diag_help(diags, diag,
                  "where its read is masked, the condition selects this arm: only `%s` has no "
                  "effect there",
                  neutral);
    else if (p->own_read && all_masked(refused))
        diag_help(diags, diag,
                  "where its read is masked, `%s` is %s: exclude that first, `%s != %s && ..`",
                  p->own_read, p->own_number, p->own_read, p->own_number);
    return excluded || (p->own_read && all_masked(refused));
}

static void advise_whole(Padding *p, Diag *diag, bool loop, const char *neutral, const Mask *mask) {
    Diags *diags = p->tiles->diags;
    if (!loop)
        diag_help(diags, diag, "mask all of it: `%s ? .. : %s`", mask->condition, neutral);
    else if (p->target)
        diag_help(diags, diag, "mask the whole statement, not an operand: `.. where %s`",
                  mask->condition);
    else
        diag_help(diags, diag, "mask the whole statement, not an operand: `if %s { .. }`",
                  mask->condition);
}

/* A tile that a loop changes in no sum or maximum keeps its value where the statement is not
 * executed. */
static void advise_mask(Padding *p, Diag *diag, PadAxis axis, const char *neutral, const Edge *edge,
                        const Mask *mask) {
    Diags *diags = p->tiles->diags;
    if (axis.region < 0 || !p->target || neutral != value_before)
        diag_help(diags, diag, "mask it: `%s ? .. : %s`", mask->condition, neutral);
    else if (is_masked(edge))
        diag_help(diags, diag,
                  "its read is masked, but what the mask selects is combined too: write it only "
                  "inside, `.. where %s`",
                  mask->condition);
    else
        diag_help(diags, diag, "write it only inside: `.. where %s`", mask->condition);
}

static void advise(Padding *p, Diag *diag, bool unknown, PadAxis axis, const char *name,
                   const char *neutral, const Refused *refused, Expr *masked) {
    Diags *diags = p->tiles->diags;
    const Edge *edge = asked(refused);
    if (axis.fixed && all_masked(refused)) {
        diag_help(diags, diag,
                  "rows at positions given by constants are followed together: the masked ones "
                  "need a field or tile of their own each");
        return;
    }
    if (axis.fixed || !edge) {
        diag_help(diags, diag,
                  "compare the position in the tensor with 0 and with its extent before %s",
                  refused->fill->more ? "each read of what is used here, also in other statements"
                                      : "the read");
        return;
    }
    Mask mask = padding_mask(p, edge, name);
    if (!edge->sub && advise_selected(p, diag, axis, neutral, refused, masked)) return;
    if (!mask.here && mask.position && is_masked(edge) && count_reads(refused) == 1) {
        diag_help(diags, diag,
                  "its read is masked, but what the mask selects is combined too: write it "
                  "only inside, `.. where %s`",
                  mask.condition);
        return;
    }
    if (unknown && !edge->sub && consumes(p->code->role)) {
        diag_help(diags, diag,
                  "loop over the same `range` in both roles, and compare the position in the "
                  "tensor with its extent");
        return;
    }
    if (mask.position && edge->sub && !edge->above && poly_wraps(p->code->algebra, edge->sub))
        diag_note(diags, diag, "`%s` may leave 32 bits and wrap, to below 0", mask.position);
    if (!mask.here && count_reads(refused) > 1)
        diag_help(
            diags, diag,
            "which of these reads the value is from is not followed: use the elements of each "
            "in a statement of its own, and mask them there by their position");
    else if (!mask.here && mask.position)
        diag_help(diags, diag,
                  "mask it where it is computed from an element: only there its position is known, "
                  "`%s`",
                  mask.condition);
    else if (refused->controls)
        diag_help(diags, diag, "execute it only under this condition: `if %s { .. }`",
                  mask.condition);
    else if (masked && shows_inside(p, masked, *edge))
        advise_whole(p, diag, axis.region >= 0, neutral, &mask);
    else if (masked && mask.position)
        diag_help(diags, diag, "add to the mask: `%s`", mask.condition);
    else
        advise_mask(p, diag, axis, neutral, edge, &mask);
}

static void show_edges(Padding *p, Diag *diag, const char *name, const Refused *refused) {
    const Fill *fill = refused->fill;
    Diags *diags = p->tiles->diags;
    for (int i = 0, shown = 0; i < fill->count && shown < 2; i++) {
        if (!is_shown(refused, i)) continue;
        shown++;
        diag_label(diags, diag, fill->edges[i].from,
                   "may extend outside of the tensor%s; those "
                   "elements are zero",
                   name ? arena_printf(p->arena, " along `%s`", name) : "");
    }
}

/* `what` uses padding: "`sum[x]`", "the loop over `c`" */
static void refuse(Padding *p, Expr *value, Span span, PadAxis axis, const char *what,
                   const char *neutral, const Refused *refused) {
    Diags *diags = p->tiles->diags;
    Search mask = {p, axis, NULL};
    const char *name = axis.fixed        ? NULL
                       : axis.index >= 0 ? p->space->items[axis.index].name
                                         : p->code->role->locals.items[axis.local].name;
    p->refused[p->code->role - p->tiles->prog->roles.items]++;
    if (!refused->controls && p->proofs) expr_visit(p->arena, value, find_mask, &mask);
    note_decided(p, axis, refused, mask.found);
    if (!p->report || was_reported(p, span)) return;
    bool unknown = axis.fixed || ((mask.found || axis.kept) && !is_known(refused));
    Diag *diag = unknown
                     ? diag_at(diags, P0236, span, "cannot show that %s includes no padding", what)
                     : diag_at(diags, P0219, span, "%s includes padding", what);
    p->combined |= !unknown;
    diag_primary(diags, diag,
                 only_zeros(refused) ? "includes zeros that were read outside of the "
                                       "tensor"
                                     : "includes values that were computed from zeros "
                                       "outside of the tensor");
    show_edges(p, diag, name, refused);
    if (mask.found && mask.found->span.hi)
        diag_label(diags, diag, mask.found->span,
                   "this condition may also hold outside of the "
                   "tensor");
    advise(p, diag, unknown, axis, name, neutral, refused, mask.found);
    if (refused->empty)
        diag_note(diags, diag,
                  "it is of no effect if there is an element, which `requires` can state");
}

/* The operation that combines values: zeros are neutral for a sum, -inf for a maximum; zeros too
 * if no value is negative */
typedef enum Joining { JOIN_SUM, JOIN_MAX, JOIN_MIN, JOIN_OTHER } Joining;

/* The value that the operation ignores */
static const char *neutral(Padding *p, Joining joining, Element type) {
    static const char *const floats[] = {
        [JOIN_SUM] = "0", [JOIN_MAX] = "-inf", [JOIN_MIN] = "inf", [JOIN_OTHER] = value_before};
    ElementKind kind = element_rows[type].kind;
    bool extreme = joining == JOIN_MAX || joining == JOIN_MIN;
    if (!extreme || (kind != ELEMENT_SIGNED && kind != ELEMENT_UNSIGNED)) return floats[joining];
    Value all = pad_of_type(type);
    return arena_printf(p->arena, "%.0f", joining == JOIN_MAX ? all.lo : all.hi);
}

/* The reduction has an element, as its first position. After a loop over parts, and in another
 * role, positions may no longer be known: then what was known where they were read counts. */
static bool starts_with_element(Padding *p, const Fill *fill, unsigned set, PadAxis axis) {
    Algebra *algebra = p->code->algebra;
    for (int i = 0; i < fill->count; i++) {
        Edge edge = fill->edges[i];
        const Poly *factor;
        if (!(set >> i & 1)) continue;
        if (!edge.sub && !edge.starts) return false;
        if (!edge.sub) continue;
        (void)poly_split(algebra, edge.sub, axis.atom, &factor, &edge.sub);
        if (!padding_prove_inside(p, &edge)) return false;
    }
    return true;
}

/* The value is that of a maximum, or a minimum, of no elements. */
static bool is_of_nothing(const Value *value, Joining joining, Element type) {
    ElementKind kind = element_rows[type].kind;
    Value all = pad_of_type(type);
    if (kind != ELEMENT_SIGNED && kind != ELEMENT_UNSIGNED) return false;
    return (joining == JOIN_MAX && pad_is(*value, all.lo)) ||
           (joining == JOIN_MIN && pad_is(*value, all.hi));
}

/* The sets of edges with values computed from padding that change the result of the reduction */
static Refused taken(Padding *p, const Fill *fill, Joining joining, PadAxis axis, Element type) {
    static const uint16_t harmless[] = {
        [JOIN_SUM] = MARK_SUM, [JOIN_MAX] = MARK_MAX, [JOIN_MIN] = MARK_MIN, [JOIN_OTHER] = 0};
    double least = INFINITY, most = -INFINITY;
    Refused out = {.fill = fill, .empty = true};
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        if (!pad_exists(fill->at[s].element)) continue;
        least = fmin(least, fill->at[s].element.lo), most = fmax(most, fill->at[s].element.hi);
    }
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        const Value *value = &fill->at[s].padding;
        bool positive = joining == JOIN_MAX && least >= 0 && value->lo >= 0;
        uint16_t marks = harmless[joining] | (positive ? MARK_SUM : 0);
        bool beyond = joining == JOIN_MAX
                          ? isfinite(least) && value->hi <= least
                          : joining == JOIN_MIN && isfinite(most) && value->lo >= most;
        bool ignored = !value->nan && (beyond || value->marks & marks),
             own = value->marks & (MARK_CHOSEN | MARK_OWN | harmless[joining]) ||
                   is_of_nothing(value, joining, type);
        if (!pad_exists(*value)) continue;
        if (ignored && (own || starts_with_element(p, fill, s, axis))) continue;
        if (!padding_is_possible(p, fill, s)) continue;
        out.sets |= 1u << s;
        out.empty &= ignored;
    }
    return out;
}

/* Elements along an index of the statement, which the expression combines */
static void check_combined(Padding *p, const Expr *expr, ReduceOp op, Expr *body, int index) {
    static const struct {
        const char *name;
        Joining joining;
    } rows[] = {[REDUCE_SUM] = {"sum", JOIN_SUM},
                [REDUCE_MAX] = {"max", JOIN_MAX},
                [REDUCE_MIN] = {"min", JOIN_MIN}};
    Joining joining = rows[op].joining;
    PadAxis axis = {.index = index,
                    .atom = algebra_atom_index(p->code->algebra, index),
                    .local = -1,
                    .region = -1};
    const Fill *fill = padding_of(p, body, axis);
    Refused refused = taken(p, fill, joining, axis, body->type);
    if (!refused.sets) return;
    const char *what =
        arena_printf(p->arena, "`%s[%s]`", rows[op].name, p->space->items[index].name);
    refuse(p, body, expr->span, axis, what, neutral(p, joining, body->type), &refused);
}

void padding_visit_reduction(Expr *expr, void *data) {
    if (expr->kind == X_SCAN)
        check_combined(data, expr, expr->scan.op, expr->scan.body, expr->scan.along);
    if (expr->kind != X_REDUCE) return;
    for (int i = expr->reduce.first; i < expr->reduce.first + expr->reduce.count; i++)
        check_combined(data, expr, expr->reduce.op, expr->reduce.body, i);
}

/* ---- loops that reduce ----------------------------------------------------------------------- */

/* The operation with which the value combines its old value and other values; OTHER if it is
 * none of these. */
static Joining joining_of(Padding *p, Expr *expr) {
    if (expr->kind == X_READ || expr->kind == X_LOCAL) return JOIN_SUM;
    if (expr->kind == X_CAST) return joining_of(p, expr->cast);
    if (expr->kind == X_UNARY && expr->unary.op == OP_NEG)
        return joining_of(p, expr->unary.operand);
    bool max = expr->kind == X_CALL && expr->call.which == IN_max,
         min = expr->kind == X_CALL && expr->call.which == IN_min;
    bool sum = expr->kind == X_BINARY && (expr->binary.op == OP_ADD || expr->binary.op == OP_SUB);
    if (!sum && !max && !min) return JOIN_OTHER;
    Expr *left = sum ? expr->binary.left : expr->call.args[0],
         *right = sum ? expr->binary.right : expr->call.args[1];
    Joining joining = sum ? JOIN_SUM : max ? JOIN_MAX : JOIN_MIN;
    Expr *self = padding_reads_self(p, left) ? left : padding_reads_self(p, right) ? right : NULL;
    if (!self || (self == left && padding_reads_self(p, right))) return JOIN_OTHER;
    bool alone = self->kind == X_READ || self->kind == X_LOCAL;
    return alone || joining_of(p, self) == joining ? joining : JOIN_OTHER;
}

static bool target_mentions(Padding *p, PadAxis axis) {
    for (int d = 0; p->target && d < p->target->rank; d++)
        if (padding_mentions(p, p->target->subs[d], axis)) return true;
    return false;
}

/* How the statement combines values with the old value of its target */
static Joining joining_of_statement(Padding *p, Expr *value, AssignOp op) {
    bool self = padding_reads_self(p, value), adds = op == ASSIGN_ADD || op == ASSIGN_SUB;
    if (op == ASSIGN_SET) return self ? joining_of(p, value) : JOIN_OTHER;
    return adds && (!self || joining_of(p, value) == JOIN_SUM) ? JOIN_SUM : JOIN_OTHER;
}

static const char *loop_name(Padding *p, int local) {
    return arena_printf(p->arena, "the loop over `%s`", p->code->role->locals.items[local].name);
}

/* An iteration beyond the edges changes the object, depending on its previous value or another one
 * of an earlier iteration. */
static unsigned changes(Padding *p, const Fill *fill, int object, bool kept) {
    bool scalar = object >= (int)p->code->role->tiles.count;
    unsigned sets = 0;
    for (unsigned s = 0; s < 1u << fill->count; s++) {
        const Value *value = &fill->at[s].padding;
        if (!pad_exists(*value) || value->marks & MARK_CHOSEN) continue;
        bool carried = value->marks & (kept ? MARK_CARRIED : MARK_CARRIED | MARK_SCALED);
        bool other = value->marks & MARK_HOLDS && scalar && value->self != object + 1;
        if ((carried || other) && padding_is_possible(p, fill, s)) sets |= 1u << s;
    }
    return sets;
}

bool padding_of_iteration(const FlowCode *code, const Region *region, const Poly *poly) {
    Algebra *algebra = code->algebra;
    arena_count(algebra->arena, 1);
    if (poly_changes(algebra, poly) ||
        poly_has_version(algebra, poly, code->role, region->begin, region->next))
        return true;
    if (region->kind == REGION_FOR)
        return region->var >= 0 &&
               poly_mentions(algebra, poly, algebra_atom_local(algebra, code->role, region->var));
    for (size_t axis = 0; axis < code->prog->axes.count; axis++)
        if (poly_mentions(algebra, poly, algebra_atom_axis(algebra, (int)axis))) return true;
    return region->kind == REGION_GRID && poly_mentions(algebra, poly, values_tile_number(algebra));
}

/* True if each iteration of the region writes the object anew */
static bool is_written_anew(const Padding *p, const Region *region) {
    const Access *target = p->target;
    if (target && target->space == SPACE_GLOBAL) return false;
    int local = target ? -1 : code_row(p->code, p->at)->local;
    if (local >= 0 && p->code->role->locals.items[local].kind == LOCAL_LET) return true;
    size_t object = target ? (size_t)target->object : p->code->role->tiles.count + (size_t)local;
    if (target && target->space == SPACE_STAGE) object += padding_objects(p->code);
    return p->opened[object] >= region->begin && p->opened[object] <= region->end;
}

/* The sets without an edge that stands still in the loop: a position that crosses such an edge is
 * padding in all iterations. */
static unsigned moving_sets(const FlowCode *code, const Region *loop, const Fill *fill) {
    unsigned moving = ~0u;
    for (int i = 0; i < fill->count; i++) {
        const Poly *sub = fill->edges[i].sub;
        bool moves = !sub || padding_of_iteration(code, loop, sub);
        for (unsigned s = 0; s < 1u << fill->count && !moves; s++)
            if (s >> i & 1) moving &= ~(1u << s);
    }
    return moving;
}

static void refuse_loop(Padding *p, const Assigned *assigned, PadAxis axis, const char *what,
                        const Refused *refused) {
    Expr *value = assigned->value;
    padding_tell_apart(p);
    refuse(p, value, value->span, axis, what,
           neutral(p, joining_of_statement(p, value, assigned->op), value->type), refused);
}

/* The value alone changes nothing: padding decides whether it is assigned. */
static bool is_controlled(Padding *p, const Assigned *assigned, PadAxis axis, bool kept) {
    if (!p->report) return false;
    p->loop = axis.region;
    const Fill *fill = padding_updated(p, assigned->value, assigned->op, axis);
    p->loop = -1;
    return !changes(p, padding_first(p, fill, assigned->object), assigned->object, kept);
}

/* Positions of the target that some iterations of the loop combine with elements, and others with
 * padding */
static void check_positions(Padding *p, const Assigned *assigned, int region) {
    const Region *loop = &p->code->regions.items[region];
    if (!p->target || target_mentions(p, padding_loop_axis(p->code, region))) return;
    for (int i = 0; i < p->space->bound; i++) {
        PadAxis axis = {.index = i,
                        .atom = algebra_atom_index(p->code->algebra, i),
                        .local = -1,
                        .region = region,
                        .kept = true};
        if (!target_mentions(p, axis)) continue;
        const Fill *fill = padding_in_loop(p, assigned, axis);
        Refused refused = {.fill = fill, .sets = changes(p, fill, assigned->object, true)};
        refused.sets &= moving_sets(p->code, loop, fill);
        if (refused.sets) refused.controls = is_controlled(p, assigned, axis, true);
        if (refused.sets) refuse_loop(p, assigned, axis, loop_name(p, loop->var), &refused);
    }
}

/* Iterations that padding may have left out have an effect: then the end of the loop is refused. */
static void check_left(Padding *p, const Assigned *assigned, PadAxis axis, const Fill *fill) {
    const Fill *left = padding_left(p, axis, fill);
    if (left == fill || !changes(p, left, assigned->object, false)) return;
    p->refused[p->code->role - p->tiles->prog->roles.items]++;
    padding_keep_end(p, axis.region);
}

void padding_check_loop(Padding *p, const Assigned *assigned, PadAxis axis, const Fill *fill) {
    if (is_written_anew(p, code_region(p->code, axis.region))) return;
    Refused refused = {.fill = fill, .sets = changes(p, fill, assigned->object, false)};
    if (refused.sets) refused.controls = is_controlled(p, assigned, axis, false);
    if (refused.sets && !target_mentions(p, axis))
        refuse_loop(p, assigned, axis, axis.fixed ? "the loop" : loop_name(p, axis.local),
                    &refused);
    else if (!axis.fixed)
        check_left(p, assigned, axis, fill);
    if (!axis.fixed) check_positions(p, assigned, axis.region);
}

/* ---- exits ----------------------------------------------------------------------------------- */

/* The condition that decides about the LEAVE */
static Expr *deciding(const FlowCode *code, int region) {
    for (; region >= 0; region = code->regions.items[region].parent)
        if (code->regions.items[region].kind == REGION_IF)
            return code->regions.items[region].condition;
    return NULL;
}

static void refuse_end(Padding *p, const Row *row, Expr *condition, PadAxis axis,
                       const Fill *fill) {
    Refused refused = {.fill = fill, .sets = UINT32_MAX, .controls = true};
    padding_tell_apart(p);
    if (p->proofs && !p->orders) padding_note_leave(p, axis.region, fill);
    if (padding_may_end(p, row, axis, fill)) return;
    refuse(p, condition, condition->span, axis,
           arena_printf(p->arena, "the end of %s", loop_name(p, axis.local)),
           neutral(p, JOIN_OTHER, E_BOOL), &refused);
}

void padding_check_leave(Padding *p, const Row *row) {
    static const IndexSpace none = {0};
    const FlowCode *code = p->code;
    Expr *condition = deciding(code, row->region);
    p->space = &none;
    p->code->algebra->space = p->space;
    for (int r = row->region; r >= 0 && condition; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        bool left = r != row->target || !row->again;
        if (left && region->kind == REGION_FOR && region->var >= 0) {
            PadAxis axis = padding_loop_axis(code, r);
            const Fill *fill = padding_controlled(p, axis, fill_of(&p->fills, pad_number(1)));
            if (fill->padded) refuse_end(p, row, condition, axis, fill);
        }
        if (r == row->target) break;
    }
}

/* ---- named elements -------------------------------------------------------------------------- */

/* Not inside of the tensor, for any extents */
static bool is_beyond(Padding *p, const Edge *edge) {
    Algebra *algebra = p->code->algebra;
    return edge->sub && edge->past &&
           algebra_proves(algebra, CLAIM_NOT_NEGATIVE,
                          poly_sum(algebra, edge->sub, edge->past, -1));
}

static void advise_named(Padding *p, Diag *diag, const char *name, const Refused *refused) {
    Diags *diags = p->tiles->diags;
    const Edge *edge = asked(refused);
    if (!edge) {
        diag_help(diags, diag,
                  "compare the position in the tensor with 0 and with its extent where the program "
                  "names the element");
        return;
    }
    Mask mask = padding_mask(p, edge, name ? name : "i");
    if (is_beyond(p, edge))
        diag_help(diags, diag, "`%s` is never inside of the tensor: correct it, or write `0`",
                  mask.position);
    else if (mask.here)
        diag_help(diags, diag, "select a value of the program there: `%s ? .. : 0`",
                  mask.condition);
    else
        diag_help(diags, diag,
                  "select a value of the program where it is computed from an element, or where "
                  "the element is named: only there its position is known, `%s ? .. : 0`",
                  mask.condition);
}

static const char *axis_name(const Padding *p, PadAxis axis) {
    return axis.index >= 0   ? p->space->items[axis.index].name
           : axis.local >= 0 ? p->code->role->locals.items[axis.local].name
                             : NULL;
}

void padding_refuse_place(Padding *p, Expr *sub, PadAxis axis, const Fill *fill, unsigned sets) {
    Diags *diags = p->tiles->diags;
    Refused refused = {.fill = fill, .sets = sets};
    const char *tensor = p->code->prog->params.items[p->target->object].name,
               *name = axis_name(p, axis);
    p->refused[p->code->role - p->tiles->prog->roles.items]++;
    if (!p->report || p->combined || was_reported(p, sub->span)) return;
    Diag *diag = is_known(&refused)
                     ? diag_at(diags, P0244, sub->span,
                               "padding decides which element of `%s` is written", tensor)
                     : diag_at(diags, P0236, sub->span,
                               "cannot show that padding decides about no element of `%s`", tensor);
    diag_primary(diags, diag, "zero where it is read outside, which names an element, too");
    show_edges(p, diag, name, &refused);
    const Edge *edge = asked(&refused);
    Mask mask = {0};
    if (edge) mask = padding_mask(p, edge, name ? name : "i");
    if (edge && mask.here)
        diag_help(diags, diag, "write only what is inside: `.. where %s`", mask.condition);
    else
        diag_help(diags, diag,
                  "write only where its position in the tensor is inside: `.. where %s`",
                  edge ? mask.condition : "0 <= position && position < extent");
}

void padding_refuse_named(Padding *p, Expr *expr, PadAxis axis, const Fill *fill, unsigned sets) {
    Diags *diags = p->tiles->diags;
    Refused refused = {.fill = fill, .sets = sets};
    const char *tensor = p->code->prog->params.items[p->target->object].name,
               *name = axis_name(p, axis);
    p->refused[p->code->role - p->tiles->prog->roles.items]++;
    if (!p->report || p->combined || was_reported(p, expr->span)) return;
    Diag *diag =
        is_known(&refused)
            ? diag_at(diags, P0244, expr->span,
                      "an element of `%s` is computed from "
                      "padding",
                      tensor)
            : diag_at(diags, P0236, expr->span,
                      "cannot show that no element of `%s` is computed from padding", tensor);
    diag_primary(diags, diag, "uses an element that may be outside, and is not zero there");
    show_edges(p, diag, name, &refused);
    advise_named(p, diag, name, &refused);
}
