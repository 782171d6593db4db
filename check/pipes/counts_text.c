/* The number of acquires of an end of a pipe as text: loops, conditions and names as in the
 * program. */
#include "check/pipes/counts.h"

typedef enum Binding {
    BINDS_CHOICE,
    BINDS_SUM,
    BINDS_PRODUCT,
    BINDS_ALL
} Binding; /* the loosest operator of a text */

typedef struct Text {
    const char *text; /* NULL: has no text */
    Binding binding;
    bool number; /* it is the constant `value` */
    int64_t value;
} Text;

typedef struct Words {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    const FlowCode *slice;
} Words;

typedef struct Rows { /* of the slice: from `at` to `end`, exclusive */
    int at, end;
} Rows;

static Text constant(const Words *w, int64_t value) {
    return (Text){arena_printf(w->arena, "%lld", (long long)value), BINDS_ALL, true, value};
}

static Text text_of(const Words *w, const Expr *expr) {
    Str text = str_new(w->arena);
    Text out = {.binding = BINDS_ALL};
    out.number = expr_constant(expr, &out.value);
    expr_print(expr, w->prog, w->role, NULL, &text);
    out.text = text.text;
    if (expr->kind == X_SELECT) out.binding = BINDS_CHOICE;
    if (expr->kind == X_BINARY)
        out.binding =
            expr->binary.op == OP_ADD || expr->binary.op == OP_SUB ? BINDS_SUM : BINDS_PRODUCT;
    return out;
}

static const char *within(const Words *w, Text text, Binding binding) {
    return text.binding < binding ? arena_printf(w->arena, "(%s)", text.text) : text.text;
}

static Text sum(const Words *w, Text a, Text b) {
    if (!a.text || !b.text) return (Text){0};
    if (a.number && b.number) return constant(w, a.value + b.value);
    if (a.number && a.value == 0) return b;
    if (b.number && b.value == 0) return a;
    return (Text){
        arena_printf(w->arena, "%s + %s", within(w, a, BINDS_SUM), within(w, b, BINDS_SUM)),
        BINDS_SUM, false, 0};
}

static Text product(const Words *w, Text a, Text b) {
    if (!a.text || !b.text) return (Text){0};
    if (a.number && b.number) return constant(w, a.value * b.value);
    if ((a.number && a.value == 1) || (b.number && b.value == 0)) return b;
    if ((b.number && b.value == 1) || (a.number && a.value == 0)) return a;
    return (Text){
        arena_printf(w->arena, "%s * %s", within(w, a, BINDS_PRODUCT), within(w, b, BINDS_ALL)),
        BINDS_PRODUCT, false, 0};
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool at_most(const Words *w, Expr *a, Expr *b) {
    return algebra_at_most(w->arena, w->prog, w->role, a, b);
}

/* The ends of pieces are min and max with the range's own: returns the one that is proved to
 * decide */
static Expr *plain(const Words *w, Expr *expr) {
    if (expr->kind != X_CALL || expr->call.count != 2 ||
        (expr->call.which != IN_min && expr->call.which != IN_max))
        return expr;
    Expr *a = plain(w, expr->call.args[0]), *b = plain(w, expr->call.args[1]);
    if (at_most(w, a, b)) return expr->call.which == IN_min ? a : b;
    if (at_most(w, b, a)) return expr->call.which == IN_min ? b : a;
    return expr;
}

static Text trips(const Words *w, const Region *loop) {
    int64_t zero;
    Expr *lo = loop->lo, *hi = loop->hi;
    if (!lo || !hi || lo->kind == X_POISON || hi->kind == X_POISON) return (Text){0};
    lo = plain(w, lo);
    hi = plain(w, hi);
    bool from_zero = expr_constant(lo, &zero) && zero == 0;
    Text plainly = text_of(w, from_zero ? hi : expr_binary(w->arena, OP_SUB, hi, lo, loop->head));
    return at_most(w, lo, hi)
               ? plainly
               : (Text){arena_printf(w->arena, "max(%s, 0)", plainly.text), BINDS_ALL, false, 0};
}

typedef struct Mention {
    const Words *words;
    int local, depth;
    bool *seen; /* by local: its value has been searched */
    bool found;
} Mention;

static void find_mention(Expr *expr, void *data) {
    Mention *mention = data;
    const Role *role = mention->words->role;
    if (expr->kind != X_LOCAL || !valid_index(expr->index, role->locals.count)) return;
    const Local *local = &role->locals.items[expr->index];
    mention->found |= expr->index == mention->local;
    if (local->kind != LOCAL_LET || !local->value || mention->depth > 16) return;
    if (mention->seen[expr->index]) return;
    mention->seen[expr->index] = true;
    mention->depth++;
    expr_visit(mention->words->arena, local->value, find_mention, mention);
    mention->depth--;
}

static void find_mentions(Expr *expr, void *data) {
    expr_visit(((Mention *)data)->words->arena, expr, find_mention, data);
}

/* True if it differs between iterations */
static bool depends(const Words *w, Rows rows, int local) {
    Mention mention = {
        .words = w, .local = local, .seen = NEW_ARRAY(w->arena, bool, w->role->locals.count + 1)};
    for (int at = rows.at; at < rows.end && !mention.found; at++) {
        const Row *row = &w->slice->rows.items[at];
        if (row_decides(row->kind)) row_exprs(w->slice, row, find_mentions, &mention);
    }
    return mention.found;
}

static const Region *region_of(const Words *w, int at) {
    return &w->slice->regions.items[w->slice->rows.items[at].region];
}

static Rows body_of(const Region *region) {
    return (Rows){region->begin + 1, region->next >= 0        ? region->next
                                     : region->otherwise >= 0 ? region->otherwise
                                                              : region->end};
}

/* The region if the rows are a single IF, without an ELSE; otherwise NULL */
static const Region *only_if(const Words *w, Rows rows) {
    const Region *region = rows.at < rows.end ? region_of(w, rows.at) : NULL;
    bool alone =
        region && w->slice->rows.items[rows.at].kind == ROW_IF && region->end + 1 == rows.end;
    return alone && region->otherwise + 1 == region->end ? region : NULL;
}

static Text list(const Words *w, Rows rows, Text *tile);

/* ` from 1`, `[1 .. 3]`; empty for the whole range */
static const char *piece_text(const Words *w, const Region *piece) {
    if (!piece) return "";
    const char *from = text_of(w, piece->from).text;
    if (!piece->to) return arena_printf(w->arena, " from %s", from);
    return arena_printf(w->arena, "[%s .. %s]", from, text_of(w, piece->to).text);
}

static Text loop(const Words *w, const Region *region) {
    const Region *branch, *piece = code_piece(w->slice, region);
    Rows inner = body_of(piece ? piece : region);
    const char *where = region->where ? within(w, text_of(w, region->where), BINDS_SUM) : NULL;
    /* a condition in each iteration is printed as a `where` */
    if (region->var >= 0 && depends(w, inner, region->var))
        for (; (branch = only_if(w, inner)) != NULL; inner = body_of(branch)) {
            const char *more = text_of(w, branch->condition).text;
            where = where ? arena_printf(w->arena, "%s && %s", where, more) : more;
        }
    Text body = list(w, inner, NULL);
    if (region->var < 0 || !body.text) return (Text){0};
    if (!where && !depends(w, body_of(region), region->var))
        return product(w, trips(w, region), body);
    const Domain *domain =
        region->domain >= 0 && region->whole ? &w->prog->domains.items[region->domain] : NULL;
    const char *name = w->role->locals.items[region->var].name;
    const char *range = domain ? domain->name
                               : arena_printf(w->arena, "%s .. %s", text_of(w, region->lo).text,
                                              text_of(w, region->hi).text);
    where = where ? arena_printf(w->arena, " where %s", where) : "";
    const char *each =
        arena_printf(w->arena, "(%s for each %s in %s%s%s)", within(w, body, BINDS_SUM),
                     name ? name : "one", range, piece_text(w, piece), where);
    return (Text){each, BINDS_ALL, false, 0};
}

static Text branch(const Words *w, const Region *region) {
    Text then = list(w, body_of(region), NULL),
         otherwise = list(w, (Rows){region->otherwise + 1, region->end}, NULL);
    if (!then.text || !otherwise.text || region->condition->kind == X_POISON) return (Text){0};
    if (then.number && otherwise.number && then.value == otherwise.value) return then;
    return (Text){arena_printf(w->arena, "%s ? %s : %s", text_of(w, region->condition).text,
                               within(w, then, BINDS_SUM), within(w, otherwise, BINDS_SUM)),
                  BINDS_CHOICE, false, 0};
}

/* `tile`: gets the counts of loops over the grid; NULL: there must be none */
static Text list(const Words *w, Rows rows, Text *tile) {
    Text all = constant(w, 0);
    for (int at = rows.at; at < rows.end && all.text; at++) {
        RowKind kind = w->slice->rows.items[at].kind;
        const Region *region = region_of(w, at);
        if (kind == ROW_LEAVE || kind == ROW_BLOCK) return (Text){0};
        if (kind == ROW_ACQUIRE) all = sum(w, all, constant(w, 1));
        if (kind == ROW_IF) all = sum(w, all, branch(w, region));
        if (kind == ROW_LOOP && region->kind == REGION_FOR) all = sum(w, all, loop(w, region));
        if (kind == ROW_LOOP && region->kind == REGION_GRID) {
            if (!tile) return (Text){0};
            *tile = sum(w, *tile, list(w, body_of(region), NULL));
        }
        if (row_decides(kind)) at = region->end;
    }
    return all;
}

const char *counts_text(Arena *arena, const Prog *prog, const EndCode *end) {
    Words words = {arena, prog, end->role, end->slice};
    Rows rows = {1, end->slice->regions.items[0].end};
    Text tile = constant(&words, 0), outside = list(&words, rows, &tile);
    if (!outside.text || !tile.text) return NULL;
    bool none = tile.number && tile.value == 0;
    if (none) return outside.text;
    const char *each = arena_printf(arena, "%s per grid tile", tile.text);
    return outside.number && outside.value == 0
               ? each
               : arena_printf(arena, "%s, and %s", outside.text, each);
}
