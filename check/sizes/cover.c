/* cover: do the variants of a kernel take all sizes that its `requires` allows? The sizes that a
 * combination takes are those that its preconditions allow, stated and derived, for tensors without
 * gaps. Formulas of all combinations are copied into one program, whose symbols have the names of
 * extents and scalars. Silence is a proof; an example is evaluated; otherwise a note says that
 * neither is known. */
#include "check/check.h"
#include "check/sizes/sizes.h"

#include <string.h>

#define NODES_MOST  2000   /* of one condition */
#define CASES_MOST  400    /* of a proof */
#define SIZES_MOST  100000 /* that are tried */
#define VALUES_MOST 200    /* of one symbol */

typedef VEC(int) Numbers; /* of conditions, ascending */

typedef struct Condition {
    Expr *holds;
    const char *text;
    bool fixes; /* a static is the extent: other values are compiled when they are first used */
} Condition;

/* Sizes that a combination takes */
typedef struct Part {
    Numbers needs;
    const char *variant;
} Part;

struct Cover {
    Arena *arena;
    const AstItem *kernel; /* with its variants */
    const Target *target;
    Prog shared; /* symbols and parameters of all combinations */
    VEC(Condition) conditions;
    VEC(Part) parts;
    VEC(Numbers) allowed; /* by the conditions outside of variants, which may depend on statics */
    const char *unknown;  /* why nothing can be said; NULL: it can */
};

Cover *cover_new(Arena *arena, const Ast *ast, const char *unit, const Target *target) {
    Cover *cover = NEW(arena, Cover);
    cover->arena = arena;
    cover->target = target;
    for (size_t i = 0; i < ast->items.count; i++) {
        const AstItem *item = ast->items.items[i];
        if (item->kind == AST_ITEM_KERNEL && item->kernel.name.text &&
            check_is_named(unit, item->kernel.name.text) && ast_has_variants(item))
            cover->kernel = item;
    }
    return cover->kernel ? cover : NULL;
}

void cover_unknown(Cover *cover, const char *why) { cover->unknown = why; }

/* ---- formulas of all combinations ------------------------------------------------------------ */

static int symbol_of(Cover *cover, const Symbol *symbol) {
    Prog *shared = &cover->shared;
    for (size_t i = 0; i < shared->symbols.count; i++)
        if (strcmp(shared->symbols.items[i].name, symbol->name) == 0) return (int)i;
    vec_push(cover->arena, &shared->symbols, *symbol);
    return (int)shared->symbols.count - 1;
}

/* NULL: it is no formula of a launch, or too long */
static Expr *copied(Cover *cover, const Prog *from, const Expr *expr, int *nodes) {
    Expr *copy = NEW(cover->arena, Expr);
    if (--*nodes < 0) return NULL;
    *copy = *expr;
    if (expr->kind == X_SYMBOL) copy->index = symbol_of(cover, &from->symbols.items[expr->index]);
    if (expr->kind == X_SYMBOL || expr->kind == X_CONST || expr->kind == X_PARAM) return copy;
    ExprParts parts = expr_parts(copy);
    for (int i = 0; i < parts.count; i++)
        if (!(parts.items[i] = copied(cover, from, parts.items[i], nodes))) return NULL;
    return parts.count > 0 ? copy : NULL;
}

static int condition_of(Cover *cover, Expr *holds, const char *text, bool fixes) {
    for (size_t i = 0; i < cover->conditions.count; i++)
        if (expr_same_counted(cover->arena, cover->conditions.items[i].holds, holds)) return (int)i;
    vec_push(cover->arena, &cover->conditions,
             ((Condition){holds, arena_copy(cover->arena, text, strlen(text)), fixes}));
    return (int)cover->conditions.count - 1;
}

static void add_number(Arena *arena, Numbers *numbers, int number) {
    size_t at = 0;
    while (at < numbers->count && numbers->items[at] < number) at++;
    if (at < numbers->count && numbers->items[at] == number) return;
    vec_push(arena, numbers, number);
    for (size_t i = numbers->count - 1; i > at; i--) {
        int before = numbers->items[i - 1];
        numbers->items[i - 1] = numbers->items[i];
        numbers->items[i] = before;
    }
}

/* True if b has all of a */
static bool among(const Numbers *a, const Numbers *b) {
    size_t at = 0;
    for (size_t i = 0; i < b->count && at < a->count; i++) at += b->items[i] == a->items[at];
    return at == a->count;
}

/* ---- one combination ------------------------------------------------------------------------- */

/* The extent that a static is: "D == 1024" */
static void fix(Cover *cover, const Prog *prog, const AstExpr *dim, int param, const Expr *extent,
                Numbers *needs) {
    for (size_t i = 0; i < prog->constants.count; i++) {
        const Constant *constant = &prog->constants.items[i];
        if (!constant->is_static || strcmp(constant->name, dim->name) != 0) continue;
        Symbol symbol = {.name = dim->name, .span = dim->span, .is_extent = true, .param = param};
        Expr *self = NEW(cover->arena, Expr);
        *self = (Expr){.kind = X_SYMBOL, .type = E_I32, .span = dim->span};
        self->index = symbol_of(cover, &symbol);
        Expr *value = expr_integer(cover->arena, E_I32, extent->constant.integer, dim->span);
        Expr *holds = expr_binary(cover->arena, OP_EQ, self, value, dim->span);
        const char *text = arena_printf(cover->arena, "%s == %lld", dim->name,
                                        (long long)extent->constant.integer);
        add_number(cover->arena, needs, condition_of(cover, holds, text, true));
    }
}

/* Extents by names are symbols, formulas are known to the prover from the first combination */
static void add_params(Cover *cover, const Prog *prog, Numbers *needs) {
    const AstParams *params = &cover->kernel->kernel.params;
    bool first = cover->shared.params.count == 0;
    for (size_t p = 0; p < prog->params.count; p++) {
        Param param = prog->params.items[p];
        for (int d = 0; param.is_tensor && d < param.rank; d++) {
            const AstExpr *dim = params->items[p].type->dims.items[d];
            Expr *extent = param.extents[d];
            int nodes = NODES_MOST;
            if (extent->kind == X_CONST && dim->kind == AST_NAME && dim->name)
                fix(cover, prog, dim, (int)p, extent, needs);
            param.extents[d] = copied(cover, prog, extent, &nodes);
            if (!param.extents[d])
                param.extents[d] = expr_integer(cover->arena, E_I32, 1, dim->span);
            bool plain = extent->kind == X_SYMBOL || extent->kind == X_CONST;
            if (!first && !plain &&
                !expr_same(param.extents[d], cover->shared.params.items[p].extents[d]))
                cover->unknown = "an extent depends on statics";
        }
        param.stated = (Stated){0}; /* also by the variant */
        if (first) vec_push(cover->arena, &cover->shared.params, param);
    }
}

static bool is_within(Span inner, Span outer) {
    return inner.lo >= outer.lo && inner.hi <= outer.hi;
}

/* A part that needs no more than another one takes the sizes of both. */
static void add_part(Cover *cover, Part part) {
    for (size_t i = 0; i < cover->parts.count; i++)
        if (strcmp(cover->parts.items[i].variant, part.variant) == 0 &&
            among(&cover->parts.items[i].needs, &part.needs))
            return;
    vec_push(cover->arena, &cover->parts, part);
}

static void add_allowed(Cover *cover, Numbers allowed) {
    for (size_t i = 0; i < cover->allowed.count; i++)
        if (among(&cover->allowed.items[i], &allowed)) return;
    vec_push(cover->arena, &cover->allowed, allowed);
}

/* Only tensors that exceed 32 bits break it: a number of its own, or of tiles */
static bool is_of_width(const Precondition *one) {
    const Expr *holds = one->condition;
    int64_t most;
    return one->of_width || (holds->kind == X_BINARY && holds->binary.op == OP_LE &&
                             expr_constant(holds->binary.right, &most) && most == EXTENT_MOST);
}

void cover_add(Cover *cover, const Prog *prog) {
    Numbers needs = {0}, allowed = {0};
    /* a variant for another target takes no sizes of a launch on this one */
    if (prog->target != cover->target) return;
    add_params(cover, prog, &needs);
    for (size_t i = 0; i < prog->preconditions.count; i++) {
        const Precondition *one = &prog->preconditions.items[i];
        int nodes = NODES_MOST;
        if (is_of_width(one)) continue;
        Expr *holds = copied(cover, prog, one->condition, &nodes);
        if (!holds) cover->unknown = "a condition is too long";
        if (!holds) return;
        int number = condition_of(cover, holds, one->text, false);
        add_number(cover->arena, &needs, number);
        if (one->of_text && !is_within(one->span, prog->unit))
            add_number(cover->arena, &allowed, number);
    }
    add_part(cover, (Part){needs, prog->variant});
    add_allowed(cover, allowed);
}

/* ---- an example ------------------------------------------------------------------------------ */

typedef enum Truth { IS_FALSE, IS_TRUE, IS_UNKNOWN } Truth;

static Truth truth_at(const Cover *cover, const Sizes *sizes, int number) {
    Env env = {
        .arena = cover->arena, .prog = &cover->shared, .symbols = sizes->values, .exact = true};
    int64_t value;
    if (!evaluate(&env, cover->conditions.items[number].holds, &value)) return IS_UNKNOWN;
    return value ? IS_TRUE : IS_FALSE;
}

/* The first condition of the part that does not hold, but for extents that statics are; -1: none */
static int failing(const Cover *cover, const Sizes *sizes, const Part *part) {
    for (size_t i = 0; i < part->needs.count; i++) {
        int number = part->needs.items[i];
        if (!cover->conditions.items[number].fixes && truth_at(cover, sizes, number) == IS_FALSE)
            return number;
    }
    return -1;
}

static bool is_example(const Cover *cover, const Sizes *sizes, const Numbers *allowed) {
    for (size_t i = 0; i < allowed->count; i++)
        if (truth_at(cover, sizes, allowed->items[i]) != IS_TRUE) return false;
    for (size_t i = 0; i < cover->parts.count; i++)
        if (failing(cover, sizes, &cover->parts.items[i]) < 0) return false;
    return true;
}

/* NULL: none was found */
static Sizes *find_example(Cover *cover, const Numbers *allowed) {
    Sizes *sizes = sizes_new(cover->arena, &cover->shared, false);
    sizes->most = VALUES_MOST;
    for (size_t i = 0; i < cover->conditions.count; i++)
        sizes_formula(sizes, cover->conditions.items[i].holds);
    for (int tried = 0; tried < SIZES_MOST && sizes_next(sizes); tried++)
        if (is_example(cover, sizes, allowed)) return sizes;
    return NULL;
}

/* ---- a proof --------------------------------------------------------------------------------- */

/* Cases of comparisons: each is true, false or open. A condition is what its comparisons say. */
typedef struct Proof {
    Cover *cover;
    const Numbers *allowed;
    Algebra *algebra;
    VEC(Expr *) leaves;
    Truth *known; /* by leaf: assumed in the present case, or decided by what is */
    int cases;    /* that may still be tried */
} Proof;

static Truth opposite(Truth truth, bool negated) {
    if (truth == IS_UNKNOWN || !negated) return truth;
    return truth == IS_TRUE ? IS_FALSE : IS_TRUE;
}

static void find_float(Expr *expr, void *found) {
    if (expr->kind == X_PARAM || expr->type == E_F32) *(bool *)found = true;
}

/* NaN meets neither a condition with a float nor its opposite: such a condition is one leaf */
static bool has_float(const Cover *cover, Expr *expr) {
    bool found = false;
    expr_visit(cover->arena, expr, find_float, &found);
    return found;
}

static int leaf_of(Proof *proof, Expr *expr) {
    for (size_t i = 0; i < proof->leaves.count; i++)
        if (expr_same_counted(proof->cover->arena, proof->leaves.items[i], expr)) return (int)i;
    vec_push(proof->cover->arena, &proof->leaves, expr);
    return (int)proof->leaves.count - 1;
}

/* The number of the comparison, of one of each pair of opposites */
static int comparison_of(Proof *proof, Expr *expr, bool *negated) {
    BinaryOp op = expr->binary.op;
    *negated = op == OP_NE || op == OP_GT || op == OP_GE;
    if (!*negated) return leaf_of(proof, expr);
    Expr *other = NEW(proof->cover->arena, Expr);
    *other = *expr;
    other->binary.op = comparison_negated(op);
    return leaf_of(proof, other);
}

static Truth truth_of(Proof *proof, Expr *expr, int *open);

static Truth truth_of_two(Proof *proof, Expr *expr, int *open) {
    Truth decides = expr->binary.op == OP_AND ? IS_FALSE : IS_TRUE;
    Truth a = truth_of(proof, expr->binary.left, open),
          b = truth_of(proof, expr->binary.right, open);
    if (a == decides || b == decides) return decides;
    return a == IS_UNKNOWN || b == IS_UNKNOWN ? IS_UNKNOWN : opposite(decides, true);
}

/* Of a condition in the present case; *open, if it is -1: a leaf that is not decided */
static Truth truth_of(Proof *proof, Expr *expr, int *open) {
    bool negated = false, whole = !has_float(proof->cover, expr);
    if (expr->kind == X_CONST) return expr->constant.integer ? IS_TRUE : IS_FALSE;
    if (whole && expr->kind == X_UNARY)
        return opposite(truth_of(proof, expr->unary.operand, open), true);
    if (whole && expr->kind == X_BINARY && (expr->binary.op == OP_AND || expr->binary.op == OP_OR))
        return truth_of_two(proof, expr, open);
    bool compares = whole && expr->kind == X_BINARY && expr->binary.left->type != E_BOOL;
    int leaf = compares ? comparison_of(proof, expr, &negated) : leaf_of(proof, expr);
    if (proof->known[leaf] == IS_UNKNOWN && *open < 0) *open = leaf;
    return opposite(proof->known[leaf], negated);
}

/* `a % n == 0`, where n is known to divide a */
static bool is_divided(Algebra *algebra, const Expr *leaf) {
    int64_t by, zero;
    const Expr *left = leaf->kind == X_BINARY ? leaf->binary.left : NULL;
    if (!left || leaf->binary.op != OP_EQ || !expr_constant(leaf->binary.right, &zero) ||
        zero != 0 || left->kind != X_BINARY || left->binary.op != OP_MOD ||
        !expr_constant(left->binary.right, &by) || by <= 0)
        return false;
    const Poly *poly = algebra_launched(algebra, left->binary.left);
    return poly && poly_divisor(algebra, poly) % by == 0;
}

static Truth decide(Proof *proof, Expr *leaf) {
    Algebra *algebra = proof->algebra;
    if (is_divided(algebra, leaf)) return IS_TRUE;
    algebra_work_anew(algebra);
    switch (algebra_decides(algebra, NULL, leaf)) {
    case CERTAINLY: return IS_TRUE;
    case CERTAINLY_NOT: return IS_FALSE;
    case NOT_CERTAIN: break;
    }
    return IS_UNKNOWN;
}

/* True if a part is taken in the present case, or the kernel does not allow it. Otherwise *open is
 * a leaf of the part that lacks fewest conditions; -1: every part is refused. */
static bool is_settled(Proof *proof, int *open) {
    const Cover *cover = proof->cover;
    size_t fewest = SIZE_MAX;
    int any = -1;
    *open = -1;
    for (size_t i = 0; i < proof->allowed->count; i++)
        if (truth_of(proof, cover->conditions.items[proof->allowed->items[i]].holds, &any) ==
            IS_FALSE)
            return true;
    for (size_t i = 0; i < cover->parts.count; i++) {
        const Numbers *needs = &cover->parts.items[i].needs;
        size_t lacks = 0;
        int first = -1;
        bool refused = false;
        for (size_t k = 0; k < needs->count && !refused; k++) {
            Truth truth = truth_of(proof, cover->conditions.items[needs->items[k]].holds, &first);
            refused = truth == IS_FALSE;
            lacks += truth == IS_UNKNOWN;
        }
        if (!refused && lacks == 0) return true;
        if (!refused && lacks < fewest) fewest = lacks, *open = first;
    }
    return false;
}

static bool is_covered(Proof *proof);

static bool is_covered_if(Proof *proof, int leaf, bool truth) {
    size_t bytes = proof->leaves.count * sizeof *proof->known;
    Truth *before = NEW_ARRAY(proof->cover->arena, Truth, proof->leaves.count);
    PathMark mark = algebra_mark(proof->algebra);
    memcpy(before, proof->known, bytes);
    algebra_assume(proof->algebra, NULL, proof->leaves.items[leaf], truth);
    proof->known[leaf] = truth ? IS_TRUE : IS_FALSE;
    bool covered = algebra_impossible(proof->algebra) || is_covered(proof);
    memcpy(proof->known, before, bytes);
    algebra_undo(proof->algebra, mark);
    return covered;
}

static bool is_covered(Proof *proof) {
    int open;
    if (--proof->cases < 0) return false;
    if (is_settled(proof, &open)) return true;
    for (size_t i = 0; i < proof->leaves.count; i++)
        if (proof->known[i] == IS_UNKNOWN) proof->known[i] = decide(proof, proof->leaves.items[i]);
    if (is_settled(proof, &open)) return true;
    return open >= 0 && is_covered_if(proof, open, true) && is_covered_if(proof, open, false);
}

static void count_leaf(Expr *expr, void *count) { *(size_t *)count += expr->type == E_BOOL; }

static bool is_proved(Cover *cover, const Numbers *allowed) {
    size_t most = 1;
    int open = -1;
    for (size_t i = 0; i < cover->conditions.count; i++)
        expr_visit(cover->arena, cover->conditions.items[i].holds, count_leaf, &most);
    Proof proof = {.cover = cover,
                   .allowed = allowed,
                   .algebra = algebra_of_counts(cover->arena, &cover->shared),
                   .known = NEW_ARRAY(cover->arena, Truth, most),
                   .cases = CASES_MOST};
    for (size_t i = 0; i < most; i++) proof.known[i] = IS_UNKNOWN;
    for (size_t i = 0; i < cover->conditions.count; i++)
        (void)truth_of(&proof, cover->conditions.items[i].holds, &open); /* numbers all leaves */
    proof.algebra->launched = true; /* conditions are those of a launch */
    return is_covered(&proof);
}

/* ---- the report ------------------------------------------------------------------------------ */

static const char *name_of(const Cover *cover) { return cover->kernel->kernel.name.text; }

static void report_example(const Cover *cover, const Sizes *sizes, Diags *diags) {
    Str text = str_new(cover->arena);
    int common = -1;
    bool all = true;
    sizes_print(sizes, &text);
    Diag *diag = diag_at(diags, P0167, cover->kernel->head, "no variant of kernel `%s` takes %s",
                         name_of(cover), text.length > 0 ? text.text : "a launch");
    const char *last = "";
    for (size_t i = 0; i < cover->parts.count; i++) {
        const Part *part = &cover->parts.items[i];
        int number = failing(cover, sizes, part);
        all = all && (common < 0 || common == number);
        common = number;
        if (strcmp(last, part->variant) == 0) continue;
        last = part->variant;
        diag_note(diags, diag, "`%s` needs `%s`", part->variant,
                  cover->conditions.items[number].text);
    }
    if (all && common >= 0) {
        Str condition = str_new(cover->arena);
        expr_print(cover->conditions.items[common].holds, &cover->shared, NULL, NULL, &condition);
        diag_help(diags, diag,
                  "state it for the kernel: `requires %s;`, or add a variant for such sizes",
                  condition.text);
    } else {
        diag_help(diags, diag,
                  "add a variant for such sizes, or exclude them by a `requires` of the kernel");
    }
}

static void report_unknown(const Cover *cover, Diags *diags, const char *why) {
    Diag *diag = diag_at(diags, P0168, cover->kernel->head,
                         "it is not known whether the variants of kernel `%s` take all sizes",
                         name_of(cover));
    diag_note(diags, diag, "%s", why);
}

static bool fixes_extents(const Cover *cover) {
    for (size_t i = 0; i < cover->conditions.count; i++)
        if (cover->conditions.items[i].fixes) return true;
    return false;
}

/* False: something was reported */
static bool report_allowed(Cover *cover, const Numbers *allowed, Diags *diags) {
    cover->shared.preconditions.count = 0;
    for (size_t i = 0; i < allowed->count; i++)
        vec_push(cover->arena, &cover->shared.preconditions,
                 ((Precondition){.condition = cover->conditions.items[allowed->items[i]].holds}));
    if (is_proved(cover, allowed)) return true;
    const Sizes *example = find_example(cover, allowed);
    if (example) return report_example(cover, example, diags), false;
    report_unknown(cover, diags,
                   fixes_extents(cover)
                       ? "extents that are statics have the values of their sets here; a launch "
                         "with another one is checked when its kernel is first compiled"
                       : "no sizes were found that none takes, and no proof that there are none");
    return false;
}

void cover_report(Cover *cover, Diags *diags) {
    if (cover->unknown) {
        report_unknown(cover, diags, cover->unknown);
        return;
    }
    for (size_t i = 0; i < cover->allowed.count; i++)
        if (!report_allowed(cover, &cover->allowed.items[i], diags)) return;
}

void cover_ended(const Cover *cover, Diags *diags) {
    report_unknown(cover, diags, "its proof exceeds the allowed work");
}
