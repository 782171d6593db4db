/* Factors that are taken out of maxima and minima. Rounding is monotone: for a factor f > 0 that is
 * not infinite, the maximum of the rounded products f * x is f * (the maximum of x), bit by bit,
 * with one product for each result instead of one for each element.
 *
 * A tile that a statement multiplies by such a factor, `s[i, c] = s[i, c] * f`, perhaps under a
 * mask, holds x instead of f * x until its next assignment, if all that reads it before is a
 * maximum or minimum of it, or a sum with something else, which is then one instruction
 * (prog/rounding.h). Nobody computes the products.
 *
 * Some factors are known only in a launch. For any other f (0, negative ones, infinities, NaN) the
 * elements are multiplied where the program says so, and the factor that is taken out is 1. */
#include "derive/plan.h"
#include "prog/rounding.h"

#include <math.h>

#define MASKS_MOST     4   /* most conditions around a product */
#define REWRITTEN_MOST 64  /* most operations of a value that contain a read of the tile */
#define FOLLOWED_MOST  200 /* most rows between a product and the next assignment of its tile */

typedef struct Rewritten {
    const Expr *from;
    Expr *to;
} Rewritten;

/* A row that reads elements without their factor, and what the plan for it becomes */
typedef struct Reader {
    int at;
    Scaled *scaled;
} Reader;

/* A tile that holds its elements without a factor from row `at` on */
typedef struct Held {
    Arena *arena;
    const FlowCode *code;
    RowsPlan *plan;
    int at, tile;
    Expr *written; /* the factor, as the program writes it */
    Expr *factor;  /* that is taken out */
    bool reduced;  /* some row takes its maximum or minimum */
    VEC(Reader) readers;
    /* of one value */
    VEC(Rewritten) rewritten;
    bool changed, refused; /* the operation; the whole value: its products would not be free */
} Held;

/* ---- factors --------------------------------------------------------------------------------- */

static Expr *expr_new(Arena *arena, ExprKind kind, Element type, const Expr *like) {
    Expr *x = NEW(arena, Expr);
    *x = (Expr){.kind = kind, .type = type, .span = like->span};
    x->uniformity = like->uniformity, x->along = like->along, x->indexes = like->indexes;
    return x;
}

static Expr *number(Arena *arena, double value, const Expr *like) {
    Expr *x = expr_new(arena, X_CONST, E_F32, like);
    x->constant.number = value;
    return x;
}

static Expr *binary(Arena *arena, BinaryOp op, Element type, Expr *left, Expr *right) {
    Expr *x = expr_new(arena, X_BINARY, type, left);
    x->binary.op = op, x->binary.left = left, x->binary.right = right;
    x->binary.accuracy = ACCURACY_FAST;
    return x;
}

static void note_memory(Expr *x, void *data) {
    *(bool *)data |= x->kind == X_READ || x->kind == X_INDEX;
}

static bool is_positive(double factor) { return (float)factor > 0 && isfinite((float)factor); }

/* True if it is the same for all elements, and may be positive and finite */
static bool is_factor(Arena *arena, const Role *role, Expr *x) {
    bool memory = false;
    double known;
    if (x->indexes != 0 || x->type != E_F32) return false;
    expr_visit(arena, x, note_memory, &memory);
    return !memory && (!rounding_known(role, x, &known) || is_positive(known));
}

/* When the factor can be taken out; NULL: always */
static Expr *condition_of(Arena *arena, const Role *role, Expr *factor) {
    double known;
    if (rounding_known(role, factor, &known)) return NULL;
    Expr *positive = binary(arena, OP_GT, E_BOOL, factor, number(arena, 0, factor)),
         *finite = binary(arena, OP_LT, E_BOOL, factor, number(arena, INFINITY, factor));
    return binary(arena, OP_AND, E_BOOL, positive, finite);
}

/* What is taken out */
static Expr *taken(Arena *arena, Expr *factor, Expr *when) {
    if (when == NULL) return factor;
    Expr *x = expr_new(arena, X_SELECT, E_F32, factor);
    x->select.condition = when, x->select.then = factor;
    x->select.otherwise = number(arena, 1, factor);
    return x;
}

/* ---- products -------------------------------------------------------------------------------- */

static bool is_product(const Expr *x) {
    return x->kind == X_BINARY && x->binary.op == OP_MUL && x->type == E_F32 &&
           x->binary.accuracy == ACCURACY_FAST;
}

/* A number that a positive factor does not change */
static bool is_fixed(const Role *role, const Expr *x) {
    double known;
    bool negated = x->kind == X_UNARY && x->unary.op == OP_NEG;
    if (x->type != E_F32 || !rounding_known(role, negated ? x->unary.operand : x, &known))
        return false;
    return known == 0 || isinf(known);
}

/* The value without its factor: of a product, or of products and fixed numbers under conditions.
 * NULL: it is another one */
static Expr *without_factor(Arena *arena, const Role *role, Expr *x, int masks, Expr **factor) {
    if (is_product(x)) {
        bool right = is_factor(arena, role, x->binary.right);
        Expr *found = right ? x->binary.right : x->binary.left;
        if (!right && !is_factor(arena, role, found)) return NULL;
        if (*factor && !expr_same(*factor, found)) return NULL;
        *factor = found;
        return right ? x->binary.left : x->binary.right;
    }
    if (is_fixed(role, x)) return x;
    if (x->kind != X_SELECT || masks == 0) return NULL;
    Expr *then = without_factor(arena, role, x->select.then, masks - 1, factor),
         *otherwise = without_factor(arena, role, x->select.otherwise, masks - 1, factor);
    if (then == NULL || otherwise == NULL) return NULL;
    Expr *chosen = NEW(arena, Expr);
    *chosen = *x;
    chosen->select.then = then, chosen->select.otherwise = otherwise;
    return chosen;
}

/* NULL: it has no factor that can be taken out */
static Scaled *scaled_value(Arena *arena, const Role *role, const Tile *tile) {
    Scaled *scaled = NEW(arena, Scaled);
    scaled->value = plan_value(arena, tile);
    scaled->unscaled = without_factor(arena, role, scaled->value, MASKS_MOST, &scaled->written);
    if (scaled->unscaled == NULL || scaled->written == NULL) return NULL;
    scaled->when = condition_of(arena, role, scaled->written);
    return scaled;
}

static bool takes_extreme(const Row *row) {
    return row->kind == ROW_TILE && row->tile->class == TILE_REDUCTION &&
           row->tile->value->type == E_F32 && row->tile->value->reduce.op != REDUCE_SUM;
}

/* ---- reads of a tile ------------------------------------------------------------------------- */

static bool reads_held(const Held *held, const Expr *x) {
    return x->kind == X_READ && x->read->space == SPACE_REGISTER && x->read->object == held->tile;
}

typedef struct Uses {
    const Held *held;
    bool reads, writes;
} Uses;

static void note_read(Expr *x, void *data) {
    Uses *uses = data;
    uses->reads |= reads_held(uses->held, x);
}

static bool expr_uses(const Held *held, Expr *x) {
    Uses uses = {held, false, false};
    if (x) expr_visit(held->arena, x, note_read, &uses);
    return uses.reads;
}

/* An element of the tile or a fixed number, perhaps under conditions: its maximum is that of the
 * elements with the factor, if the factor multiplies it afterwards */
static bool is_elements(const Held *held, Expr *x, int masks) {
    if (reads_held(held, x) || is_fixed(held->code->role, x)) return true;
    return x->kind == X_SELECT && masks > 0 && !expr_uses(held, x->select.condition) &&
           is_elements(held, x->select.then, masks - 1) &&
           is_elements(held, x->select.otherwise, masks - 1);
}

/* The product of an element and the factor is free as an operand of a sum of which no other
 * product is part. */
static Expr *fused(Held *held, const Expr *sum, Expr *read, const Expr *other, bool left) {
    bool free = sum->binary.accuracy == ACCURACY_FAST && !is_product(other) &&
                !reads_held(held, other) &&
                (sum->binary.op == OP_ADD || (sum->binary.op == OP_SUB && left));
    held->refused |= !free;
    held->changed = true;
    return binary(held->arena, OP_MUL, E_F32, read, held->factor);
}

static Expr *replaced(Held *held, Expr *x) {
    held->refused |= reads_held(held, x);
    for (size_t i = 0; i < held->rewritten.count; i++)
        if (held->rewritten.items[i].from == x) {
            held->changed = true;
            return held->rewritten.items[i].to;
        }
    return x;
}

static void rewrite_binary(Held *held, const Expr *x, Expr *to) {
    Expr *left = x->binary.left, *right = x->binary.right;
    to->binary.left =
        reads_held(held, left) ? fused(held, x, left, right, true) : replaced(held, left);
    to->binary.right =
        reads_held(held, right) ? fused(held, x, right, left, false) : replaced(held, right);
}

static void refuse_changed(Expr *x, void *data) {
    Held *held = data;
    (void)replaced(held, x);
    held->refused |= held->changed;
}

/* Operands come before the operation. */
static void rewrite(Expr *x, void *data) {
    Held *held = data;
    Expr to = *x;
    if (held->refused) return;
    held->changed = false;
    ExprParts parts = expr_parts(&to);
    if (x->kind == X_READ) access_exprs(x->read, refuse_changed, held);
    if (x->kind == X_REDUCE || x->kind == X_SCAN) refuse_changed(parts.items[0], held);
    if (x->kind == X_READ || x->kind == X_REDUCE || x->kind == X_SCAN) return;
    if (x->kind == X_BINARY)
        rewrite_binary(held, x, &to);
    else
        for (int i = 0; i < parts.count; i++) parts.items[i] = replaced(held, parts.items[i]);
    if (!held->changed) return;
    Expr *made = NEW(held->arena, Expr);
    *made = to;
    vec_push(held->arena, &held->rewritten, (Rewritten){x, made});
    held->refused |= held->rewritten.count > REWRITTEN_MOST;
}

/* The value with products in the place of elements; NULL: they would not be free */
static Expr *with_factor(Held *held, const Tile *tile) {
    Expr *value = plan_value(held->arena, tile);
    for (int d = 0; d < tile->target.rank; d++)
        if (expr_uses(held, tile->target.subs[d])) return NULL;
    if (expr_uses(held, tile->where)) return NULL;
    held->rewritten.count = 0;
    held->refused = false;
    expr_visit(held->arena, value, rewrite, held);
    value = replaced(held, value);
    return held->refused ? NULL : value;
}

/* ---- a tile ---------------------------------------------------------------------------------- */

/* False: the row needs the products */
static bool add_reader(Held *held, int at) {
    const Row *row = code_row(held->code, at);
    if (row->kind != ROW_TILE || held->plan->scaled[at]) return false;
    Scaled *scaled = NEW(held->arena, Scaled);
    vec_push(held->arena, &held->readers, (Reader){at, scaled});
    bool reduces = row->tile->class == TILE_REDUCTION;
    if (takes_extreme(row) && is_elements(held, row->tile->value->reduce.body, MASKS_MOST)) {
        held->reduced = true;
        scaled->result_by = held->factor;
        return true;
    }
    scaled->value = reduces || row->tile->class == TILE_MAP ? with_factor(held, row->tile) : NULL;
    return scaled->value != NULL;
}

typedef struct Setting {
    const FlowCode *code;
    const Row *row;
    bool sets;
} Setting;

static void note_set(Expr *x, void *data) {
    Setting *setting = data;
    setting->sets |= x->kind == X_LOCAL && row_sets(setting->code, setting->row, x->index);
}

/* True if after the row the elements may be used elsewhere, or the factor is another one */
static bool ends_early(const Held *held, const Row *row, int region) {
    Setting setting = {held->code, row, false};
    if (row_ends(row->kind)) return row->region == region;
    if (row->kind == ROW_LEAVE)
        return row->target == region || !code_inside(held->code, row->target, region);
    expr_visit(held->arena, held->written, note_set, &setting);
    return setting.sets;
}

static void note_use(Access *access, bool written, void *data) {
    Uses *uses = data;
    if (access->space != SPACE_REGISTER || access->object != uses->held->tile) return;
    uses->reads |= !written;
    uses->writes |= written;
}

/* Follows the rows up to the end of the tile, or its next assignment, which are in the region of
 * its product. False: some row needs the products */
static bool follow(Held *held) {
    const FlowCode *code = held->code;
    int region = code_row(code, held->at)->region;
    int end = held->at + 1 + FOLLOWED_MOST, rows = (int)code->rows.count;
    for (int at = held->at + 1; at < end && at < rows; at++) {
        const Row *row = code_row(code, at);
        Uses uses = {held, false, false};
        if (ends_early(held, row, region)) return false;
        if (row->kind == ROW_CLOSE && row->object == OBJECT_TILE && row->index == held->tile)
            return row->region == region;
        row_accesses(held->arena, code, row, note_use, &uses);
        bool updates = uses.writes && row->tile->op != ASSIGN_SET;
        if ((uses.reads || updates) && !add_reader(held, at)) return false;
        if (uses.writes) return row->region == region && plan_assigns_all(code->role, row->tile);
    }
    return false;
}

static void hold(Arena *arena, const FlowCode *code, RowsPlan *plan, int at) {
    const Tile *tile = code_row(code, at)->tile;
    if (tile->class != TILE_MAP || tile->target.space != SPACE_REGISTER ||
        tile->target.type != E_F32 || tile->where || !plan_assigns_all(code->role, tile))
        return;
    Held held = {.arena = arena, .code = code, .plan = plan, .at = at};
    held.tile = tile->target.object;
    Scaled *scaled = scaled_value(arena, code->role, tile);
    if (scaled == NULL || plan->scaled[at]) return;
    held.written = scaled->written;
    held.factor = taken(arena, scaled->written, scaled->when);
    if (!follow(&held) || !held.reduced) return;
    scaled->kept =
        reads_held(&held, scaled->unscaled) && access_same(scaled->unscaled->read, &tile->target);
    plan->scaled[at] = scaled;
    for (size_t k = 0; k < held.readers.count; k++)
        plan->scaled[held.readers.items[k].at] = held.readers.items[k].scaled;
}

/* A product in the maximum itself */
static void take_out(Arena *arena, const FlowCode *code, RowsPlan *plan, int at) {
    Scaled *scaled = scaled_value(arena, code->role, code_row(code, at)->tile);
    if (scaled == NULL) return;
    scaled->result_by = taken(arena, scaled->written, scaled->when);
    plan->scaled[at] = scaled;
}

void plan_scaled(Arena *arena, const FlowCode *code, RowsPlan *plan) {
    int count = (int)code->rows.count;
    plan->scaled = NEW_ARRAY(arena, Scaled *, code->rows.count);
    for (int at = 0; at < count; at++)
        if (code_row(code, at)->kind == ROW_TILE) hold(arena, code, plan, at);
    for (int at = 0; at < count; at++)
        if (takes_extreme(code_row(code, at)) && !plan->scaled[at]) take_out(arena, code, plan, at);
}
