/* Refuses forms of statements for which code generation is not implemented.
 * Codegen itself refuses nothing. */
#include "check/passes.h"

typedef struct Forms {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    Diags *diags;
} Forms;

static void find_reduction(Expr *expr, void *found) {
    if (expr->kind == X_REDUCE && !*(const Expr **)found) *(const Expr **)found = expr;
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* The place at which a reduction, whose index a condition compares with something, differs from a
 * scan; sets the reason. NULL: it is not similar to one. */
static const Expr *differs_from_scan(const Expr *reduction, const char **why) {
    const Expr *body = reduction->reduce.body;
    int own = reduction->reduce.first;
    if (reduction->reduce.count != 1 || body->kind != X_SELECT) return NULL;
    const Expr *condition = body->select.condition;
    if (condition->kind != X_BINARY || condition->binary.op < OP_LT || condition->binary.op > OP_GE)
        return NULL;
    int64_t from, other_from;
    bool turned = expr_index(condition->binary.right, &from) == own;
    const Expr *other = turned ? condition->binary.left : condition->binary.right;
    if (!turned && expr_index(condition->binary.left, &from) != own) return NULL;
    if (other->indexes == 0) return NULL;
    *why = "not an index of the result";
    if (expr_index(other, &other_from) < 0) return other;
    *why = "the ranges of both indexes begin at different numbers";
    if (from != other_from) return condition;
    *why = "depends on the index of the result";
    if (body->select.then->indexes & other->indexes) return body->select.then;
    *why = "the ranges of both indexes differ";
    ScanForm form;
    if (expr_scan_form(reduction, &form)) return condition;
    *why = "not the neutral value of the reduction";
    return body->select.otherwise;
}

static void refuse_scan(const Forms *f, const Expr *reduction, const Expr *place, const char *why) {
    Diag *diag = diag_at(f->diags, P0290, reduction->span,
                         "code generation for this form of a scan is not implemented");
    diag_label(f->diags, diag, place->span, "%s", why);
    diag_help(
        f->diags, diag,
        "write `sum[j] (j <= k ? x[j] : 0)`, or `<`, `>=` or `>`: k is an index of the result "
        "over the same range, x[j] does not depend on k, and `max` has -inf and `min` inf "
        "instead of 0 (integers: their least and greatest value)");
}

/* ---- other reductions ------------------------------------------------------------------------ */

/* product: a sum of products, which matrix instructions might compute */
static void refuse_reduction(const Forms *f, Expr *value, Span statement, bool product) {
    const Expr *reduction = NULL;
    expr_visit(f->arena, value, find_reduction, &reduction);
    const char *why;
    const Expr *place = reduction ? differs_from_scan(reduction, &why) : NULL;
    if (place) {
        refuse_scan(f, reduction, place, why);
        return;
    }
    Diag *diag = diag_at(f->diags, P0290, reduction ? reduction->span : statement,
                         "code generation for this reduction is not implemented");
    diag_note(f->diags, diag,
              "no operand has an element for each step: none is subscripted by all indexes of the "
              "reduction and of its result");
    if (product)
        diag_help(f->diags, diag,
                  "write a contraction, `acc[i, j] += sum[x] a[i, x] * b[j, x];`, or reduce in a "
                  "loop: `for x in 0 .. n { .. }`");
    else
        diag_help(f->diags, diag,
                  "reduce in a loop: `for x in 0 .. n { .. }`; a running sum is `sum[j] (j <= k ? "
                  "x[j] : 0)`");
}

static const Expr *without_casts(const Expr *expr) {
    while (expr->kind == X_CAST) expr = expr->cast;
    return expr;
}

static void find_sum_of_products(Expr *expr, void *found) {
    if (expr->kind != X_REDUCE || expr->reduce.op != REDUCE_SUM) return;
    const Expr *body = without_casts(expr->reduce.body);
    if (body->kind == X_BINARY && body->binary.op == OP_MUL) *(const Expr **)found = expr;
}

static const char *name_of(const Forms *f, const Access *access) {
    return access_name(f->arena, f->prog, f->role, access);
}

/* The reason why a factor of the product is no matrix operand; NULL: none */
static const char *no_operand(const Forms *f, const Expr *side) {
    side = without_casts(side);
    if (side->kind != X_READ) return "this operand is not an element of a tile";
    if (side->read->space != SPACE_GLOBAL) return NULL;
    return arena_printf(f->arena, "`%s` is in global memory", name_of(f, side->read));
}

/* A contraction whose target is no register tile: true if that was reported */
static bool refuse_target(const Forms *f, const Row *row, const Expr *sum) {
    const Access *target = &row->tile->target;
    bool shared = target->space == SPACE_SHARED;
    if (sum == NULL || target->rank != 2 || (!shared && target->space != SPACE_STAGE)) return false;
    const char *name = name_of(f, target);
    Diag *diag = diag_at(f->diags, P0290, target->span,
                         "the result of a contraction must be a register tile");
    diag_primary(f->diags, diag, shared ? "`%s` is a `shared` tile" : "`%s` is a field of a stage",
                 name);
    if (shared)
        diag_help(f->diags, diag, "declare it with `var` instead of `shared`");
    else
        diag_help(f->diags, diag,
                  "contract into a `var` tile, then copy it to the stage: `%s[i, j] = acc[i, j];`",
                  name);
    return true;
}

/* Similar to `acc[i, j] = sum[x] a * b`, so it gets its own message: the author expects matrix
 * instructions. */
static void refuse_contraction(const Forms *f, const Row *row, const Expr *sum) {
    const Tile *tile = row->tile;
    const Expr *product = without_casts(sum->reduce.body), *side = product->binary.left;
    const char *why = no_operand(f, side);
    if (why == NULL) side = product->binary.right, why = no_operand(f, side);
    bool other = tile->op != ASSIGN_SET && tile->op != ASSIGN_ADD,
         more = without_casts(tile->value) != sum;
    Diag *diag = diag_at(f->diags, P0290, other || more || why == NULL ? row->span : side->span,
                         "code generation for this form of a contraction is not implemented");
    diag_primary(f->diags, diag, "%s",
                 other         ? "the operator is neither `=` nor `+=`"
                 : more        ? "the value is more than the sum"
                 : why != NULL ? why
                               : "the indexes are not those of a matrix product");
    diag_help(f->diags, diag,
              "write `acc[i, j] = sum[x] a * b;` or `+=`, where a and b are elements of tiles");
}

static void check_tile(const Forms *f, const Row *row) {
    const Tile *tile = row->tile;
    const Expr *sum = NULL;
    if (tile->class != TILE_REFUSED) return;
    expr_visit(f->arena, tile->value, find_sum_of_products, &sum);
    if (refuse_target(f, row, sum)) return;
    if (tile->target.space == SPACE_REGISTER && tile->target.rank == 2 && sum != NULL)
        refuse_contraction(f, row, sum);
    else
        refuse_reduction(f, tile->value, row->span, sum != NULL);
}

void forms_check(Arena *arena, Prog *prog, Diags *diags) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        Forms forms = {.arena = arena, .prog = prog, .role = role, .diags = diags};
        for (size_t at = 0; at < role->code->rows.count; at++) {
            const Row *row = &role->code->rows.items[at];
            if (row->kind == ROW_TILE) check_tile(&forms, row);
        }
    }
}
