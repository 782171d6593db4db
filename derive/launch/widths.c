/* Widths: launch preconditions under which a kernel's numbers fit their types. Needs the lowered
 * program; adds a precondition for each formula of only extents and scalars that is observed
 * (compared, divided, a limit of a loop, a subscript) and is not proved to fit, by ranges and by
 * the conditions around it. For unsigned numbers, whose overflow is defined, only those that the
 * launch computes too: axes of the grid and extents of tensors. */
#include "derive/tiles.h"

#include "algebra/algebra.h"
#include "flow/code.h"
#include "prog/eval.h"

#include <string.h>

#define ROUNDS_MOST 8 /* inner formulas come first */
#define NESTED_MOST 256

typedef struct Widths {
    Arena *arena;
    Prog *prog;
    const Role *role; /* NULL: formulas of the kernel */
    Algebra *algebra;
    bool at_launch; /* the launch computes it too, with unbounded integers */
    int nodes;      /* most further nodes of one expression to visit or make */
    size_t added;
    const Row *row;
    const IndexSpace *space; /* of the row; NULL: not made yet */
} Widths;

/* ---- observed formulas ----------------------------------------------------------------------- */

static bool example_value(const void *data, const Expr *expr, int64_t *out) {
    const Prog *prog = data;
    for (size_t i = 0; expr->kind == X_SYMBOL && i < prog->examples.count; i++) {
        const Example *example = &prog->examples.items[i];
        if (example->kind != EXAMPLE_NUMBER || !example->is_integer ||
            strcmp(example->name, prog->symbols.items[expr->index].name) != 0)
            continue;
        *out = example->integer;
        return true;
    }
    return false;
}

/* The program's own example must run: if it exceeds the type, that is intended. */
static bool example_exceeds(Arena *arena, const Prog *prog, const Expr *condition) {
    int64_t truth;
    return eval_expr(&(EvalEnv){.leaf = example_value, .data = prog, .exact = true, .arena = arena},
                     condition, &truth) &&
           !truth;
}

static void require(Widths *w, const Expr *observed, const Poly *poly, int64_t limit, BinaryOp op) {
    Prog *prog = w->prog;
    Expr *sum = expression_of(w->arena, w->algebra, poly, observed->span, &w->nodes);
    if (!sum || sum->kind == X_CONST) return;
    Expr *bound = expression_integer(w->arena, limit, observed->span);
    Expr *condition = expr_binary(w->arena, op, sum, bound, observed->span);
    if (!w->at_launch && example_exceeds(w->arena, prog, condition)) return;
    if (algebra_required(w->algebra, condition)) return;
    Str text = str_new(w->arena), value = str_new(w->arena);
    expr_print(condition, prog, NULL, NULL, &text);
    expr_print(sum, prog, NULL, NULL, &value);
    const char *reason = arena_printf(w->arena, "the kernel computes `%s` in %d bits", value.text,
                                      8 * element_rows[observed->type].bytes);
    vec_push(w->arena, &prog->preconditions,
             ((Precondition){condition, text.text, reason,
                             "launch the kernel with smaller values, or compute in `i64`",
                             observed->span, true, false, 0}));
    w->added++;
}

/* True if the whole formula is of one type: a cast from another type truncates on purpose. A
 * launch has only one type. */
static bool speaks_of_symbols(const Widths *w, const Poly *poly, Element type) {
    const Algebra *algebra = w->algebra;
    for (int i = 0; i < poly->count; i++)
        for (int k = 0; k < poly->terms[i].count; k++)
            if (!algebra->atoms.items[poly->terms[i].atoms[k]].of_symbols) return false;
    for (size_t id = 0; id < algebra->atoms.count; id++) {
        bool other =
            algebra->atoms.items[id].kind == ATOM_SYMBOL && algebra->atoms.items[id].type != type;
        if (other && !w->at_launch && poly_mentions(algebra, poly, (int)id)) return false;
    }
    return true;
}

static const Poly *without_indexes(Widths *w, const Poly *poly, uint32_t indexes) {
    for (int i = 0; i < PROG_MAX_INDEXES && poly; i++) {
        if (!(indexes >> i & 1)) continue;
        int id = algebra_atom_index(w->algebra, i);
        if (poly_mentions(w->algebra, poly, id))
            poly = poly_replace(w->algebra, poly, id, poly_constant(w->algebra, 0));
    }
    return poly;
}

typedef struct Limits {
    const Poly *least, *most;
} Limits;

/* Limits of a counter: an axis, a rank, a loop variable, an index. False: it is none, or unknown */
static bool limits_of(Widths *w, int id, Limits *out) {
    Algebra *algebra = w->algebra;
    const Atom copy = algebra->atoms.items[id], *atom = &copy;
    const Local *local = atom_limited(atom);
    *out = (Limits){.least = poly_constant(algebra, 0)};
    if (atom->kind == ATOM_AXIS && valid_index(atom->index, w->prog->axes.count)) {
        out->most = poly_offset(
            algebra, algebra_launched(algebra, w->prog->axes.items[atom->index].padded), -1);
    } else if (atom->kind == ATOM_RANK) {
        out->most = poly_constant(algebra, atom->role->instances - 1);
    } else if (atom->kind == ATOM_INDEX && algebra->space &&
               valid_index(atom->index, (size_t)algebra->space->count)) {
        int64_t extent = algebra->space->items[atom->index].extent;
        if (extent >= 0) out->most = poly_constant(algebra, extent - 1);
    } else if (local) {
        out->least = algebra_poly(algebra, atom->role, local->lo);
        out->most = poly_offset(algebra, algebra_poly(algebra, atom->role, local->hi), -1);
    }
    return out->least && out->most;
}

/* The atom with limits that the others do not depend on; -1: none */
static int innermost(Widths *w, const Poly *poly, Limits *limits) {
    const Algebra *algebra = w->algebra;
    int best = -1;
    for (size_t id = 0; id < algebra->atoms.count; id++) {
        const Atom atom = algebra->atoms.items[id];
        bool counts = atom.kind == ATOM_AXIS || atom.kind == ATOM_RANK || atom.kind == ATOM_LOCAL ||
                      atom.kind == ATOM_INDEX;
        if (!counts || !poly_mentions(algebra, poly, (int)id)) continue;
        if (best < 0 || atom.level > algebra->atoms.items[best].level) best = (int)id;
    }
    return best >= 0 && limits_of(w, best, limits) ? best : -1;
}

/* The polynomial at the limits of its counters, where it is greatest or least; NULL: unknown */
static const Poly *at_limits(Widths *w, const Poly *poly, bool greatest) {
    Algebra *algebra = w->algebra;
    const Poly *factor, *rest;
    Limits limits;
    int id;
    for (int round = 0; poly && round < ROUNDS_MOST && (id = innermost(w, poly, &limits)) >= 0;
         round++) {
        if (!poly_split(algebra, poly, id, &factor, &rest)) return NULL;
        Certainty rises = algebra_prove(algebra, CLAIM_NOT_NEGATIVE, factor);
        bool falls = rises != CERTAINLY;
        if (rises == NOT_CERTAIN &&
            !algebra_proves(algebra, CLAIM_NOT_NEGATIVE, poly_minus(algebra, factor)))
            return NULL;
        bool most = falls != greatest;
        poly = poly_replace(algebra, poly, id, most ? limits.most : limits.least);
    }
    return poly;
}

static void require_limit(Widths *w, const Expr *expr, const Poly *poly, bool greatest,
                          int64_t limit) {
    const Poly *far = at_limits(w, poly, greatest);
    if (!far || !speaks_of_symbols(w, far, expr->type)) return;
    const Poly *room = greatest ? poly_offset(w->algebra, poly_minus(w->algebra, far), limit)
                                : poly_offset(w->algebra, far, -limit);
    if (!algebra_proves(w->algebra, CLAIM_NOT_NEGATIVE, room))
        require(w, expr, far, limit, greatest ? OP_LE : OP_GE);
}

/* True if it contains a formula that may not fit */
static bool computes(const Widths *w, const Expr *expr) {
    if (!expr || (expr->type != E_I32 && (expr->type != E_U32 || !w->at_launch))) return false;
    if (expr->kind == X_LOCAL)
        return w->role && expr->index >= 0 && w->role->locals.items[expr->index].kind == LOCAL_LET;
    return expr->kind == X_BINARY || expr->kind == X_UNARY || expr->kind == X_CAST;
}

static void observe_residue(Widths *w, const Expr *expr, const Poly *residue) {
    bool sign = expr->type == E_I32;
    const Poly *value = algebra_value(w->algebra, residue, expr->type);
    if (!value || value->count != 1 || value->terms[0].count != 1) return;
    const Atom atom = w->algebra->atoms.items[value->terms[0].atoms[0]];
    if (atom.kind != ATOM_WRAP || poly_wraps(w->algebra, atom.args[0])) return;
    int64_t least = sign ? INT32_MIN : 0, most = sign ? INT32_MAX : UINT32_MAX;
    const Poly *above = poly_offset(w->algebra, atom.args[0], -least),
               *below = poly_offset(w->algebra, poly_minus(w->algebra, atom.args[0]), most);
    bool low = algebra_proves(w->algebra, CLAIM_NOT_NEGATIVE, above);
    bool high = algebra_proves(w->algebra, CLAIM_NOT_NEGATIVE, below);
    if (!high) require_limit(w, expr, atom.args[0], true, most);
    if (!low) require_limit(w, expr, atom.args[0], false, least);
}

static void find_extent(Access *access, bool written, void *data) {
    Widths *w = data;
    (void)written;
    if (access->space == SPACE_GLOBAL || access->space == SPACE_LET ||
        tiles_poisoned(w->prog, w->role, access))
        return;
    for (int d = 0; d < access->rank; d++) {
        int i = access->subs[d]->kind == X_INDEX ? access->subs[d]->index : -1;
        if (i >= 0 && i < w->space->count)
            w->space->items[i].extent = tile_extent(w->prog, w->role, access, d);
    }
}

/* The indexes of the row, with the extents of the tiles that they subscript alone */
static const IndexSpace *row_space(Widths *w) {
    if (w->space || !w->row || !w->row->tile) return w->space;
    IndexSpace *space = NEW(w->arena, IndexSpace);
    *space = w->row->tile->space;
    space->items = NEW_ARRAY(w->arena, Index, space->count + 1);
    for (int i = 0; i < space->count; i++) space->items[i] = w->row->tile->space.items[i];
    w->space = space;
    row_accesses(w->arena, w->role->code, w->row, find_extent, w);
    return space;
}

static void observe(Widths *w, Expr *expr) {
    if (!computes(w, expr)) return;
    w->algebra->space = expr->indexes ? row_space(w) : NULL;
    observe_residue(w, expr, algebra_residue(w->algebra, w->role, expr));
    w->algebra->space = NULL;
}

/* An index contributes to a subscript only values outside of every extent if the sum does not
 * fit. */
static void observe_subscript(Widths *w, Expr *sub) {
    if (!computes(w, sub)) return;
    const Poly *residue = algebra_residue(w->algebra, w->role, sub);
    observe_residue(w, sub, without_indexes(w, residue, sub->indexes));
}

static void visit(Widths *w, Expr *expr, int depth);

static void visit_subscripts(Widths *w, const Access *access, int depth) {
    for (int d = 0; d < access->rank; d++) {
        visit(w, access->subs[d], depth);
        observe_subscript(w, access->subs[d]);
    }
    visit(w, access->element, depth);
    observe(w, access->element);
}

static void visit_binary(Widths *w, const Expr *expr, int depth) {
    BinaryOp op = expr->binary.op;
    visit(w, expr->binary.left, depth);
    visit(w, expr->binary.right, depth);
    if (op == OP_ADD || op == OP_SUB || op == OP_MUL || op == OP_AND || op == OP_OR) return;
    observe(w, expr->binary.left);
    observe(w, expr->binary.right);
}

/* It is for the bits that a number has, wrapped or not. */
static bool takes_any_bits(Intrinsic which) { return intrinsic_of_bits(which) && which != IN_shr; }

/* Shared nodes are visited again, up to a number of nodes: formulas that are skipped get no
 * precondition, and no conclusions are drawn from them. */
static void visit(Widths *w, Expr *expr, int depth) {
    if (!expr || depth <= 0 || w->nodes-- <= 0) return;
    ExprParts parts = expr_parts(expr);
    switch (expr->kind) {
    case X_BINARY: visit_binary(w, expr, depth - 1); break;
    case X_CAST:
        visit(w, expr->cast, depth - 1);
        if (element_rows[expr->type].bytes > 4) observe(w, expr->cast);
        break;
    case X_CALL:
        for (int i = 0; i < expr->call.count; i++) {
            visit(w, expr->call.args[i], depth - 1);
            if (!takes_any_bits(expr->call.which)) observe(w, expr->call.args[i]);
        }
        break;
    case X_READ: visit_subscripts(w, expr->read, depth - 1); break;
    case X_UNARY:
    case X_SELECT:
    case X_REDUCE:
    case X_SCAN:
        for (int i = 0; i < parts.count; i++) visit(w, parts.items[i], depth - 1);
        break;
    case X_POISON:
    case X_CONST:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX: break;
    }
}

static void visit_whole(Expr *expr, void *data) {
    Widths *w = data;
    w->nodes = EXPRESSION_NODES;
    visit(w, expr, NESTED_MOST);
}

/* ---- rows, with the conditions around them --------------------------------------------------- */

/* A condition on variables may change before its use, so it is not assumed. */
static void assume(Widths *w, Expr *condition, bool truth) {
    const Poly *poly = condition ? algebra_poly(w->algebra, w->role, condition) : NULL;
    if (poly && !poly_changes(w->algebra, poly))
        algebra_assume(w->algebra, w->role, condition, truth);
}

/* Rows of a region are between its first row and its END: `marks` holds the facts known before
 * each. */
static void visit_row(Widths *w, const FlowCode *code, const Row *row, PathMark *marks) {
    const Region *region = &code->regions.items[row->region];
    PathMark *mark = &marks[row->region];
    bool asks = row_decides(row->kind);
    w->row = row, w->space = NULL;
    row_exprs(code, row, visit_whole, w);
    if (row->tile)
        for (int d = 0; d < row->tile->target.rank; d++)
            observe_subscript(w, row->tile->target.subs[d]);
    if (row->kind == ROW_LOOP) {
        observe(w, region->lo);
        observe(w, region->hi);
    }
    if (asks) *mark = algebra_mark(w->algebra);
    if (row->kind == ROW_ELSE ||
        (row->kind == ROW_END && (region->kind == REGION_IF || region_loops(region))))
        algebra_undo(w->algebra, *mark);
    if (asks) assume(w, row->kind == ROW_IF ? region->condition : region->where, true);
    if (row->kind == ROW_ELSE) assume(w, region->condition, false);
}

static void visit_role(Widths *w, const Role *role) {
    const FlowCode *code = role->code;
    PathMark *marks = NEW_ARRAY(w->arena, PathMark, code->regions.count + 1);
    w->role = role;
    w->algebra = code->algebra;
    for (size_t at = 0; at < code->rows.count; at++)
        visit_row(w, code, &code->rows.items[at], marks);
}

static void kernel_formulas(Widths *w) {
    w->at_launch = true;
    for (size_t i = 0; i < w->prog->axes.count; i++) {
        visit_whole(w->prog->axes.items[i].padded, w);
        observe(w, w->prog->axes.items[i].padded);
    }
    for (size_t i = 0; i < w->prog->params.count; i++)
        for (int axis = 0; axis < w->prog->params.items[i].rank; axis++) {
            visit_whole(w->prog->params.items[i].extents[axis], w);
            observe(w, w->prog->params.items[i].extents[axis]);
        }
    w->at_launch = false;
}

/* Discards results from before a precondition was added, which may be weaker. */
static void begin_anew(Arena *arena, Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        role->code->algebra = algebra_new(arena, prog, role);
    }
}

void widths_require(Arena *arena, Prog *prog) {
    if (divisors_require(arena, prog)) begin_anew(arena, prog);
    for (int round = 0; round < ROUNDS_MOST; round++) {
        Widths w = {.arena = arena, .prog = prog};
        w.algebra = algebra_new(arena, prog, NULL);
        kernel_formulas(&w);
        for (size_t r = 0; r < prog->roles.count; r++) visit_role(&w, &prog->roles.items[r]);
        if (!w.added) return;
        begin_anew(arena, prog);
    }
}
