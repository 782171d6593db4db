/* How often a role acquires an end of a pipe, in words for people: its loops, conditions and names as the program has them. */
#include "check/algebra.h"
#include "check/balance.h"

typedef enum Binding { BINDS_CHOICE, BINDS_SUM, BINDS_PRODUCT, BINDS_ALL } Binding; /* the loosest operator of a text */

typedef struct Text {
    const char *text;  /* NULL: cannot be said */
    Binding binding;
    bool number;       /* it is `value` */
    int64_t value;
} Text;

typedef struct Words {
    Balance *balance;
    const Role *role;
} Words;

static Text constant(const Words *w, int64_t value) {
    return (Text){arena_printf(w->balance->arena, "%lld", (long long)value), BINDS_ALL, true, value};
}

static Text text_of(const Words *w, const Expr *expr) {
    Str text = str_new(w->balance->arena);
    Text out = {.binding = BINDS_ALL};
    out.number = algebra_constant(expr, &out.value);
    expr_print(expr, w->balance->prog, w->role, NULL, &text);
    out.text = text.text;
    if (expr->kind == X_SELECT) out.binding = BINDS_CHOICE;
    if (expr->kind == X_BINARY) out.binding = expr->binary.op == OP_ADD || expr->binary.op == OP_SUB ? BINDS_SUM : BINDS_PRODUCT;
    return out;
}

static const char *within(const Words *w, Text text, Binding binding) {
    return text.binding < binding ? arena_printf(w->balance->arena, "(%s)", text.text) : text.text;
}

static Text sum(const Words *w, Text a, Text b) {
    if (!a.text || !b.text) return (Text){0};
    if (a.number && b.number) return constant(w, a.value + b.value);
    if (a.number && a.value == 0) return b;
    if (b.number && b.value == 0) return a;
    return (Text){arena_printf(w->balance->arena, "%s + %s", within(w, a, BINDS_SUM), within(w, b, BINDS_SUM)), BINDS_SUM, false, 0};
}

static Text product(const Words *w, Text a, Text b) {
    if (!a.text || !b.text) return (Text){0};
    if (a.number && b.number) return constant(w, a.value * b.value);
    if ((a.number && a.value == 1) || (b.number && b.value == 0)) return b;
    if ((b.number && b.value == 1) || (a.number && a.value == 0)) return a;
    return (Text){arena_printf(w->balance->arena, "%s * %s", within(w, a, BINDS_PRODUCT), within(w, b, BINDS_ALL)), BINDS_PRODUCT, false, 0};
}

/* ---- loops -------------------------------------------------------------------------------------------------------- */

static bool at_most(const Words *w, Expr *a, Expr *b) { return algebra_at_most(w->balance->arena, w->balance->prog, w->role, a, b); }

/* The ends of pieces are min and max of the range's own: the one that certainly decides */
static Expr *plain(const Words *w, Expr *expr) {
    if (expr->kind != X_CALL || expr->call.count != 2 || (expr->call.which != IN_min && expr->call.which != IN_max)) return expr;
    Expr *a = plain(w, expr->call.args[0]), *b = plain(w, expr->call.args[1]);
    if (at_most(w, a, b)) return expr->call.which == IN_min ? a : b;
    if (at_most(w, b, a)) return expr->call.which == IN_min ? b : a;
    return expr;
}

static Text trips(const Words *w, const Stmt *loop) {
    int64_t zero;
    Expr *lo = loop->loop.lo, *hi = loop->loop.hi;
    if (!lo || !hi || lo->kind == X_POISON || hi->kind == X_POISON) return (Text){0};
    lo = plain(w, lo);
    hi = plain(w, hi);
    bool from_zero = algebra_constant(lo, &zero) && zero == 0;
    Text plainly = text_of(w, from_zero ? hi : expr_binary(w->balance->arena, OP_SUB, hi, lo, loop->head));
    return at_most(w, lo, hi) ? plainly : (Text){arena_printf(w->balance->arena, "max(%s, 0)", plainly.text), BINDS_ALL, false, 0};
}

typedef struct Mention {
    const Words *words;
    int local, depth;
    bool found;
} Mention;

static void find_mention(Expr *expr, void *data) {
    Mention *mention = data;
    const Role *role = mention->words->role;
    if (expr->kind != X_LOCAL || !valid_index(expr->index, role->locals.count)) return;
    const Local *local = &role->locals.items[expr->index];
    mention->found |= expr->index == mention->local;
    if (local->kind != LOCAL_LET || !local->value || mention->depth > 16) return;
    mention->depth++;
    expr_visit(mention->words->balance->arena, local->value, find_mention, mention);
    mention->depth--;
}

/* Is it another number in each iteration? */
static bool depends(const Words *w, const Shapes *shapes, int local) {
    Mention mention = {.words = w, .local = local};
    for (size_t i = 0; i < shapes->count; i++) {
        const Shape *shape = shapes->items[i];
        Stmt *stmt = shape->stmt;
        Expr *exprs[3] = {NULL, NULL, NULL};
        if (shape->kind == SHAPE_IF) exprs[0] = stmt->branch.condition;
        if (shape->kind == SHAPE_FOR) exprs[0] = stmt->loop.lo, exprs[1] = stmt->loop.hi, exprs[2] = stmt->loop.where;
        for (int e = 0; e < 3; e++)
            if (exprs[e]) expr_visit(w->balance->arena, exprs[e], find_mention, &mention);
        if (mention.found || depends(w, &shape->body, local) || depends(w, &shape->otherwise, local)) return true;
    }
    return false;
}

static Text list(const Words *w, const Shapes *shapes, Text *tile);

static Text loop(const Words *w, const Shape *shape) {
    const Stmt *stmt = shape->stmt;
    Arena *arena = w->balance->arena;
    const Shapes *inner = &shape->body;
    const char *where = stmt->loop.where ? within(w, text_of(w, stmt->loop.where), BINDS_SUM) : NULL;
    if (stmt->loop.var >= 0 && depends(w, inner, stmt->loop.var)) /* what is asked of each iteration reads as a `where` */
        for (; inner->count == 1 && inner->items[0]->kind == SHAPE_IF && !inner->items[0]->otherwise.count; inner = &inner->items[0]->body) {
            const char *more = text_of(w, inner->items[0]->stmt->branch.condition).text;
            where = where ? arena_printf(arena, "%s && %s", where, more) : more;
        }
    Text body = list(w, inner, NULL);
    if (stmt->loop.var < 0 || !body.text) return (Text){0};
    if (!where && !depends(w, &shape->body, stmt->loop.var)) return product(w, trips(w, stmt), body);
    const Domain *domain = stmt->loop.domain >= 0 && stmt->loop.whole ? &w->balance->prog->domains.items[stmt->loop.domain] : NULL;
    const char *name = w->role->locals.items[stmt->loop.var].name;
    const char *range = domain ? domain->name : arena_printf(arena, "%s .. %s", text_of(w, stmt->loop.lo).text, text_of(w, stmt->loop.hi).text);
    where = where ? arena_printf(arena, " where %s", where) : "";
    return (Text){arena_printf(arena, "(%s for each %s in %s%s)", within(w, body, BINDS_SUM), name ? name : "one", range, where), BINDS_ALL, false, 0};
}

static Text branch(const Words *w, const Shape *shape) {
    Text then = list(w, &shape->body, NULL), otherwise = list(w, &shape->otherwise, NULL);
    const Stmt *stmt = shape->stmt;
    if (!then.text || !otherwise.text || stmt->branch.condition->kind == X_POISON) return (Text){0};
    if (then.number && otherwise.number && then.value == otherwise.value) return then;
    return (Text){arena_printf(w->balance->arena, "%s ? %s : %s", text_of(w, stmt->branch.condition).text, within(w, then, BINDS_SUM), within(w, otherwise, BINDS_SUM)),
                  BINDS_CHOICE, false, 0};
}

/* `tile`: takes what is counted in loops over the grid; NULL: there may be none */
static Text list(const Words *w, const Shapes *shapes, Text *tile) {
    Text all = constant(w, 0);
    for (size_t i = 0; i < shapes->count && all.text; i++) {
        const Shape *shape = shapes->items[i];
        switch (shape->kind) {
        case SHAPE_ACQUIRE: all = sum(w, all, constant(w, 1)); break;
        case SHAPE_GRID:
            if (tile) *tile = sum(w, *tile, list(w, &shape->body, NULL));
            else all = (Text){0};
            break;
        case SHAPE_FOR: all = sum(w, all, loop(w, shape)); break;
        case SHAPE_IF: all = sum(w, all, branch(w, shape)); break;
        case SHAPE_LEAVE:
        case SHAPE_BLOCK: return (Text){0};
        }
    }
    return all;
}

const char *shapes_text(Balance *balance, const Role *role, const Shapes *shapes) {
    Words words = {balance, role};
    Text tile = constant(&words, 0), outside = list(&words, shapes, &tile);
    if (!outside.text || !tile.text) return NULL;
    bool none = tile.number && tile.value == 0;
    if (none) return outside.text;
    const char *each = arena_printf(balance->arena, "%s for each tile of the grid", tile.text);
    return outside.number && outside.value == 0 ? each : arena_printf(balance->arena, "%s, and %s", outside.text, each);
}
