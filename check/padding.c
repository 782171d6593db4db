/* Zero fill before a reduction. A tile at a tensor's edge is filled with zeros where the tensor ends; what is computed there
 * is of no element. Zero passes through products and sums; what gives something else for zero leaves rubbish there, which
 * must not be reduced, and `max` and `min` must not see the zeros either. A select on the index keeps both out.
 *
 * Per tile dimension the padding is followed through the statements of a role in order, through loops to a fixed point, and
 * through stages from role to role until nothing changes. */
#include "check/tiles.h"

typedef enum Pad {
    PAD_CLEAN,  /* holds elements only */
    PAD_NOUGHT, /* zero everywhere: a constant */
    PAD_ZERO,   /* zeros in the padding */
    PAD_DIRTY   /* anything in the padding */
} Pad;

typedef struct Fill {
    Pad pad;
    Span from; /* the copy or read that brought it */
} Fill;

typedef struct Fills {
    Fill of[PROG_MAX_INDEXES];
} Fills;

typedef struct TileState {
    Fill dims[PROG_MAX_RANK];
} TileState;

typedef struct Slot {
    const Expr *expr;
    Fills fills;
} Slot;

typedef struct Padding {
    Tiles *tiles;
    Role *role;
    Algebra *algebra;
    TileState **fields; /* by pipe and field */
    TileState *state;   /* of the role's tiles, at this point of the text */
    bool changed;       /* a field's state grew in this round */
    bool report;
    VEC(const Expr *) reported;
    /* of the statement looked at */
    const IndexSpace *space;
    Slot *slots;
    size_t slot_count, slot_capacity;
} Padding;

/* ---- a value ---------------------------------------------------------------------------------------------------------- */

static Slot *slot_of(Padding *p, const Expr *expr) {
    size_t at = ((uintptr_t)expr >> 4) * 0x9E3779B97F4A7C15u >> 24 & (p->slot_capacity - 1);
    while (p->slots[at].expr && p->slots[at].expr != expr) at = (at + 1) & (p->slot_capacity - 1);
    return &p->slots[at];
}

static void remember(Padding *p, const Expr *expr, const Fills *fills) {
    if ((p->slot_count + 1) * 2 > p->slot_capacity) {
        Slot *old = p->slots;
        size_t count = p->slot_capacity;
        p->slot_capacity = count ? count * 2 : 64;
        p->slots = NEW_ARRAY(p->tiles->arena, Slot, p->slot_capacity);
        for (size_t i = 0; i < count; i++)
            if (old[i].expr) *slot_of(p, old[i].expr) = old[i];
    }
    Slot *slot = slot_of(p, expr);
    p->slot_count += !slot->expr;
    *slot = (Slot){expr, *fills};
}

static Fill known(Padding *p, const Expr *expr, int index) {
    if (!expr || !p->slot_capacity) return (Fill){0};
    const Slot *slot = slot_of(p, expr);
    return slot->expr ? slot->fills.of[index] : (Fill){0};
}

static Fill worse(Fill a, Fill b) { return b.pad > a.pad ? b : a; }
static Fill dirty(Fill a) { return (Fill){PAD_DIRTY, a.from}; }
static bool padded(Fill a) { return a.pad == PAD_ZERO || a.pad == PAD_DIRTY; }

static Fill sum_of(Fill a, Fill b) {
    if (a.pad == PAD_NOUGHT) return b;
    if (b.pad == PAD_NOUGHT || a.pad == b.pad) return a;
    return dirty(padded(a) ? a : b); /* an element, or the same value everywhere, added to zeros */
}

static Fill product_of(Fill a, Fill b) {
    if (a.pad == PAD_NOUGHT || b.pad == PAD_NOUGHT) return (Fill){PAD_NOUGHT, {0, 0}};
    if (a.pad == PAD_DIRTY || b.pad == PAD_DIRTY) return a.pad == PAD_DIRTY ? a : b;
    return worse(a, b);
}

/* Of a function that is not zero for zeros */
static Fill through(Fill a) { return padded(a) ? dirty(a) : (Fill){0}; }

static Fill pair(Fill a, Fill b) { /* min, max, choices: zero only where both are */
    if (a.pad == b.pad) return a;
    if (a.pad == PAD_NOUGHT && b.pad == PAD_ZERO) return b;
    if (b.pad == PAD_NOUGHT && a.pad == PAD_ZERO) return a;
    return padded(a) || padded(b) ? dirty(padded(a) ? a : b) : (Fill){0};
}

static bool inside_along(Padding *p, const Access *read, int d) {
    Algebra *algebra = p->algebra;
    const Poly *sub = algebra_poly(algebra, p->role, read->subs[d]);
    const Poly *past = algebra_poly(algebra, NULL, access_extent(p->tiles, p->role, read, d));
    algebra->space = p->space;
    bool inside =
        poly_at_least_zero(algebra, sub) &&
        poly_at_least_zero(algebra, poly_sum(algebra, poly_sum(algebra, past, sub, -1), poly_constant(algebra, 1), -1));
    algebra->space = NULL;
    return inside;
}

static TileState *state_of(Padding *p, const Access *access) {
    if (access->space == SPACE_STAGE) return &p->fields[p->role->handles.items[access->object].pipe][access->field];
    return access->space == SPACE_SHARED || access->space == SPACE_REGISTER ? &p->state[access->object] : NULL;
}

static Fill read_fill(Padding *p, const Access *read, int index) {
    Fill fill = {0};
    const TileState *state = state_of(p, read);
    for (int d = 0; d < read->rank; d++) {
        const Expr *sub = read->subs[d];
        if (!(sub->indexes >> index & 1)) continue;
        Fill inner = known(p, sub, index); /* a gather by a padded table */
        if (padded(inner)) fill = worse(fill, dirty(inner));
        if (state)
            fill = worse(fill, state->dims[d]);
        else if (!inside_along(p, read, d))
            fill = worse(fill, (Fill){PAD_ZERO, read->span});
    }
    return fill;
}

/* Does the condition compare something with this index in it? Then the author has told the padding apart. */
static bool guards(const Expr *condition, int index) {
    if (condition->kind != X_BINARY) return false;
    BinaryOp op = condition->binary.op;
    if (op == OP_AND) return guards(condition->binary.left, index) || guards(condition->binary.right, index);
    if (op != OP_LT && op != OP_LE && op != OP_GT && op != OP_GE) return false;
    return ((condition->binary.left->indexes | condition->binary.right->indexes) >> index & 1) != 0;
}

static Fill call_fill(Padding *p, const Expr *expr, int index) {
    Fill a = known(p, expr->call.args[0], index), b = {0};
    if (expr->call.count > 1) b = known(p, expr->call.args[1], index);
    switch (expr->call.which) {
    case IN_abs:
    case IN_sqrt:
    case IN_sin:
    case IN_tanh:
    case IN_floor:
    case IN_ceil: return a;
    case IN_min:
    case IN_max: return pair(a, b);
    case IN_fma: return sum_of(product_of(a, b), known(p, expr->call.args[2], index));
    case IN_rsqrt:
    case IN_rcp:
    case IN_exp:
    case IN_exp2:
    case IN_log:
    case IN_log2:
    case IN_cos: return through(a);
    case IN_ceil_div: return pair(through(a), through(b));
    case IN_COUNT: break;
    }
    return (Fill){0};
}

static Fill binary_fill(Padding *p, const Expr *expr, int index) {
    Fill a = known(p, expr->binary.left, index), b = known(p, expr->binary.right, index);
    switch (expr->binary.op) {
    case OP_ADD:
    case OP_SUB: return sum_of(a, b);
    case OP_MUL: return product_of(a, b);
    case OP_DIV:
    case OP_MOD: return padded(b) ? dirty(b) : a;
    case OP_EQ:
    case OP_NE:
    case OP_LT:
    case OP_LE:
    case OP_GT:
    case OP_GE:
    case OP_AND:
    case OP_OR: return through(worse(a, b));
    }
    return (Fill){0};
}

static bool is_nought(const Expr *expr) {
    return expr->type == E_F32 ? expr->constant.number == 0 : expr->constant.integer == 0;
}

static Fill fill_of(Padding *p, const Expr *expr, int index) {
    switch (expr->kind) {
    case X_CONST: return (Fill){is_nought(expr) ? PAD_NOUGHT : PAD_CLEAN, {0, 0}};
    case X_READ: return read_fill(p, expr->read, index);
    case X_UNARY:
        return expr->unary.op == OP_NEG ? known(p, expr->unary.operand, index)
                                        : through(known(p, expr->unary.operand, index));
    case X_BINARY: return binary_fill(p, expr, index);
    case X_SELECT:
        if (guards(expr->select.condition, index)) return (Fill){0};
        return pair(known(p, expr->select.then, index), known(p, expr->select.otherwise, index));
    case X_CAST: return known(p, expr->cast, index);
    case X_CALL: return call_fill(p, expr, index);
    case X_REDUCE:
        if (index >= expr->reduce.first && index < expr->reduce.first + expr->reduce.count) return (Fill){0};
        return known(p, expr->reduce.body, index);
    case X_POISON:
    case X_SYMBOL:
    case X_PARAM:
    case X_AXIS:
    case X_LOCAL:
    case X_RANK:
    case X_INDEX: break;
    }
    return (Fill){0};
}

/* ---- reductions ------------------------------------------------------------------------------------------------------- */

static void report(Padding *p, const Expr *expr, int index, Fill fill) {
    static const char *const names[] = {[REDUCE_SUM] = "sum", [REDUCE_MAX] = "max", [REDUCE_MIN] = "min"};
    static const char *const neutral[] = {[REDUCE_SUM] = "0", [REDUCE_MAX] = "-inf", [REDUCE_MIN] = "inf"};
    Diags *diags = p->tiles->diags;
    const char *name = p->space->items[index].name, *op = names[expr->reduce.op];
    for (size_t i = 0; i < p->reported.count; i++)
        if (p->reported.items[i] == expr) return;
    vec_push(p->tiles->arena, &p->reported, expr);
    Diag *diag = diag_at(diags, P0219, expr->span, "`%s[%s]` takes padding for elements", op, name);
    diag_primary(diags, diag,
                 fill.pad == PAD_ZERO ? "zeros beyond the edge of a tensor are reduced"
                                      : "what was computed from zeros beyond the edge of a tensor is reduced");
    diag_label(diags, diag, fill.from, "may reach beyond the edge along `%s`, and is filled with zeros", name);
    diag_help(diags, diag, "select it away: `.. + %s < extent ? .. : %s`", name, neutral[expr->reduce.op]);
}

static void check_reduction(Padding *p, const Expr *expr) {
    for (int i = expr->reduce.first; i < expr->reduce.first + expr->reduce.count; i++) {
        Fill fill = known(p, expr->reduce.body, i);
        bool refused = expr->reduce.op == REDUCE_SUM ? fill.pad == PAD_DIRTY : padded(fill);
        if (refused) report(p, expr, i, fill);
    }
}

static void visit_node(Expr *expr, void *data) {
    Padding *p = data;
    Fills fills = {0};
    for (int i = 0; i < p->space->count; i++) fills.of[i] = fill_of(p, expr, i);
    remember(p, expr, &fills);
    if (expr->kind == X_REDUCE && p->report) check_reduction(p, expr);
}

static void look_at(Padding *p, const IndexSpace *space, Expr *value) {
    p->space = space;
    p->slots = NULL;
    p->slot_count = p->slot_capacity = 0;
    expr_visit(p->tiles->arena, value, visit_node, p);
}

/* ---- statements ------------------------------------------------------------------------------------------------------- */

static bool covers(const Access *target) {
    for (int d = 0; d < target->rank; d++)
        if (target->subs[d]->kind != X_INDEX) return false;
    return target->space == SPACE_REGISTER || target->space == SPACE_SHARED;
}

static void walk_tile(Padding *p, Stmt *stmt) {
    const Site *site = tiles_site(p->tiles, stmt);
    if (!site || site->poisoned) return;
    const Tile *tile = site->tile;
    const Access *target = &tile->target;
    look_at(p, &tile->space, tile->value);
    TileState *state = state_of(p, target);
    if (!state) return;
    for (int d = 0; d < target->rank; d++) {
        Fill fill = {0};
        for (int i = 0; i < tile->space.bound; i++) {
            if (!(target->subs[d]->indexes >> i & 1)) continue;
            Fill here = known(p, tile->value, i);
            if (padded(here)) fill = worse(fill, here);
        }
        if (!covers(target) || tile->op != ASSIGN_SET) fill = worse(fill, state->dims[d]);
        if (target->space == SPACE_STAGE && fill.pad != state->dims[d].pad) p->changed = true;
        state->dims[d] = fill;
    }
}

static TileState *copy_state(Padding *p) {
    TileState *copy = NEW_ARRAY(p->tiles->arena, TileState, p->role->tiles.count + 1);
    for (size_t t = 0; t < p->role->tiles.count; t++) copy[t] = p->state[t];
    return copy;
}

/* True where `to` grew */
static bool join(Padding *p, TileState *to, const TileState *from) {
    bool grew = false;
    for (size_t t = 0; t < p->role->tiles.count; t++)
        for (int d = 0; d < PROG_MAX_RANK; d++)
            if (from[t].dims[d].pad > to[t].dims[d].pad) to[t].dims[d] = from[t].dims[d], grew = true;
    return grew;
}

static void walk(Padding *p, Stmt *stmt);

static void walk_loop(Padding *p, Stmt *body) {
    TileState *before = copy_state(p);
    do {
        for (size_t t = 0; t < p->role->tiles.count; t++) p->state[t] = before[t];
        walk(p, body);
    } while (join(p, before, p->state));
    join(p, p->state, before);
}

static void walk_if(Padding *p, Stmt *stmt) {
    TileState *before = copy_state(p), *after;
    walk(p, stmt->branch.then);
    after = copy_state(p);
    for (size_t t = 0; t < p->role->tiles.count; t++) p->state[t] = before[t];
    walk(p, stmt->branch.otherwise);
    join(p, p->state, after);
}

static void walk(Padding *p, Stmt *stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++) walk(p, stmt->block.body.items[i]);
        break;
    case S_TILE: walk_tile(p, stmt); break;
    case S_SCALAR:
        if (stmt->scalar.space && !tiles_reads(p->tiles, p->role, stmt->scalar.value, &(Accesses){0}))
            look_at(p, stmt->scalar.space, stmt->scalar.value);
        break;
    case S_GRID: walk_loop(p, stmt->grid.body); break;
    case S_FOR: walk_loop(p, stmt->loop.body); break;
    case S_IF: walk_if(p, stmt); break;
    case S_STAGE: walk(p, stmt->stage.body); break;
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
}

/* ---- all ---------------------------------------------------------------------------------------------------------- */

static void note_reduction(Stmt *stmt, void *data) {
    bool *found = data;
    if (stmt->kind == S_SCALAR && stmt->scalar.space) *found = true;
    if (stmt->kind == S_TILE && stmt->tile->space.count > stmt->tile->space.bound) *found = true;
}

static void round_of_roles(Padding *p) {
    Prog *prog = p->tiles->prog;
    for (size_t r = 0; r < prog->roles.count; r++) {
        p->role = &prog->roles.items[r];
        p->algebra = p->tiles->algebras[r];
        p->state = NEW_ARRAY(p->tiles->arena, TileState, p->role->tiles.count + 1);
        walk(p, p->role->body);
    }
}

void tiles_padding(Tiles *tiles) {
    Prog *prog = tiles->prog;
    Padding p = {.tiles = tiles};
    bool reductions = false;
    for (size_t r = 0; r < prog->roles.count; r++) stmt_visit(prog->roles.items[r].body, note_reduction, &reductions);
    if (!reductions) return;
    p.fields = NEW_ARRAY(tiles->arena, TileState *, prog->pipes.count + 1);
    for (size_t i = 0; i < prog->pipes.count; i++)
        p.fields[i] = NEW_ARRAY(tiles->arena, TileState, prog->pipes.items[i].fields.count + 1);
    do {
        p.changed = false;
        round_of_roles(&p);
    } while (p.changed);
    p.report = true;
    round_of_roles(&p);
}
