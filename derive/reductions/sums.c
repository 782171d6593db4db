/* In which order each sum adds: what --invariant promises of it. A sum of floating-point numbers is
 * invariant if its order depends on nothing but its own extents: then a row of a result has the
 * same bits whatever the number of rows. A sum takes part by part in loops, and the parts in the
 * matrix unit or in a tree of threads, which the layouts fix for all launches. So what can vary is
 * how often the loops between the beginning and the end of the sum run.
 *
 * A row is a place along any axis but the last of a tensor that is written, if it has several. */
#include "derive/edit.h"
#include "derive/tiles.h"
#include "flow/values.h"

typedef struct Finder {
    Arena *arena;
    const Prog *prog;
    const Role *role;
    FlowCode *code;
    int at; /* the row */
    int scope;
    const char *why; /* of the sum; NULL: it is invariant so far */
    Str loops;       /* "for 0 .. ceil(K, 64)" */
} Finder;

/* In the formula of an extent */
static bool names_symbol(const Expr *x, int symbol) {
    if (x->kind == X_SYMBOL) return x->index == symbol;
    if (x->kind == X_UNARY) return names_symbol(x->unary.operand, symbol);
    if (x->kind == X_BINARY)
        return names_symbol(x->binary.left, symbol) || names_symbol(x->binary.right, symbol);
    if (x->kind == X_SELECT)
        return names_symbol(x->select.condition, symbol) || names_symbol(x->select.then, symbol) ||
               names_symbol(x->select.otherwise, symbol);
    for (int i = 0; x->kind == X_CALL && i < x->call.count; i++)
        if (names_symbol(x->call.args[i], symbol)) return true;
    return false;
}

bool sums_is_row(const Prog *prog, int symbol) {
    for (size_t i = 0; i < prog->params.count; i++) {
        const Param *param = &prog->params.items[i];
        if (!param->is_tensor || param->mode == PARAM_IN) continue;
        for (int axis = 0; axis + 1 < param->rank; axis++)
            if (names_symbol(param->extents[axis], symbol)) return true;
    }
    return false;
}

/* ---- what decides how often ------------------------------------------------------------------ */

static void blame(Finder *f, const char *why) {
    if (f->why == NULL) f->why = why;
}

/* True if it is the variable of a loop between the sum and its scope */
static bool is_of_loop(const Finder *f, int local) {
    for (int r = code_row(f->code, f->at)->region; r >= 0 && r != f->scope;
         r = f->code->regions.items[r].parent)
        if (f->code->regions.items[r].kind == REGION_FOR && f->code->regions.items[r].var == local)
            return true;
    return false;
}

static void visit(Expr *expr, void *data) {
    Finder *f = data;
    if (expr->kind == X_SYMBOL && sums_is_row(f->prog, expr->index))
        blame(f, arena_printf(f->arena, "`%s`, an extent of rows, decides how many parts it has",
                              f->prog->symbols.items[expr->index].name));
    else if (expr->kind == X_AXIS || expr->kind == X_RANK ||
             (expr->kind == X_LOCAL && f->role->locals.items[expr->index].kind == LOCAL_AXIS))
        blame(f, "the place of its tile decides how many parts it has");
    else if (expr->kind == X_READ || expr->kind == X_REDUCE ||
             (expr->kind == X_LOCAL && !is_of_loop(f, expr->index)))
        blame(f, "data decide how many parts it has");
}

static Expr *read_bound(Finder *f, int at, Expr *expr) {
    Expr *launched = plan_launched(f->arena, f->code, at, expr);
    if (launched == NULL)
        blame(f, "data decide how many parts it has");
    else
        expr_visit(f->arena, launched, visit, f);
    return launched;
}

static bool is_left(const Finder *f, int region) {
    for (size_t i = 0; i < f->code->rows.count; i++)
        if (f->code->rows.items[i].kind == ROW_LEAVE && f->code->rows.items[i].target == region)
            return true;
    return false;
}

static void read_loop(Finder *f, int number) {
    const Region *region = &f->code->regions.items[number];
    Expr *lo = read_bound(f, region->begin, region->lo),
         *hi = read_bound(f, region->begin, region->hi);
    if (region->where != NULL || is_left(f, number)) blame(f, "data decide how many parts it has");
    if (lo == NULL || hi == NULL) return;
    str_add(&f->loops, ", for ");
    expr_print(lo, f->prog, f->role, NULL, &f->loops);
    str_add(&f->loops, " .. ");
    expr_print(hi, f->prog, f->role, NULL, &f->loops);
}

/* The loops and conditions between the row and the scope of what it adds to */
static void read_regions(Finder *f) {
    for (int r = code_row(f->code, f->at)->region; r >= 0 && r != f->scope;
         r = f->code->regions.items[r].parent) {
        const Region *region = &f->code->regions.items[r];
        if (region->kind == REGION_FOR)
            read_loop(f, r);
        else if (region->kind == REGION_IF)
            (void)read_bound(f, region->begin, region->condition);
        else if (region->kind == REGION_GRID)
            blame(f, "it goes on from tile to tile, so that the number of blocks decides");
    }
}

/* Where the object begins: the region of its scope; 0: that of the role */
static int find_scope(const Finder *f, ObjectKind kind, int object) {
    int scope = 0;
    for (int i = 0; i < f->at; i++) {
        const Row *row = code_row(f->code, i);
        if (row->kind == ROW_OPEN && row->object == kind && row->index == object)
            scope = row->region;
    }
    return scope;
}

/* ---- sums ------------------------------------------------------------------------------------ */

typedef struct Names {
    const Access *target; /* NULL: the local */
    int local;
    bool itself, sum, scan;
} Names;

static void find_names(Expr *expr, void *data) {
    Names *names = data;
    names->sum |= expr->kind == X_REDUCE && expr->reduce.op == REDUCE_SUM;
    names->scan |= expr->kind == X_SCAN;
    if (names->target == NULL)
        names->itself |= expr->kind == X_LOCAL && expr->index == names->local;
    else
        names->itself |= expr->kind == X_READ && expr->read->space == names->target->space &&
                         expr->read->object == names->target->object;
}

static void add_sum(Finder *f, const char *name, const char *how, bool threads) {
    const char *text = arena_printf(f->arena, "`%s` of `%s`: %s%s", name, f->role->name, how,
                                    f->loops.length > 0 ? f->loops.text : "");
    SumPlan sum = {text, f->why, threads, code_row(f->code, f->at)->span};
    vec_push(f->arena, &edit_plan(f->prog)->sums, sum);
}

static void begin(Finder *f, int at) {
    f->at = at;
    f->why = NULL;
    f->loops = str_new(f->arena);
}

static bool is_float_type(Element type) { return element_rows[type].kind == ELEMENT_FLOAT; }

static const char *name_of(const Finder *f, const Access *target) {
    switch (target->space) {
    case SPACE_GLOBAL: return f->prog->params.items[target->object].name;
    case SPACE_STAGE: return f->role->handles.items[target->object].name;
    case SPACE_SHARED:
    case SPACE_REGISTER: return f->role->tiles.items[target->object].name;
    case SPACE_LET: break;
    }
    return "_";
}

static void set_scope(Finder *f, const Access *target) {
    bool tile = target->space == SPACE_SHARED || target->space == SPACE_REGISTER;
    f->scope = tile ? find_scope(f, OBJECT_TILE, target->object) : 0;
}

static void add_contraction(Finder *f, const Tile *tile) {
    set_scope(f, &tile->target);
    if (tile->op != ASSIGN_SET) read_regions(f);
    add_sum(f, name_of(f, &tile->target),
            arena_printf(f->arena, "%s, %d in a row", mma_instruction(f->arena, &tile->mma),
                         tile->mma.steps),
            false);
}

/* A loop over elements of a tensor in memory updates each once; of what a role keeps, each time. */
static void add_statement(Finder *f, const Tile *tile) {
    Names names = {.target = &tile->target, .itself = tile->op != ASSIGN_SET};
    expr_visit(f->arena, tile->value, find_names, &names);
    bool keeps = names.itself && tile->target.space != SPACE_GLOBAL;
    set_scope(f, &tile->target);
    if (keeps) read_regions(f);
    bool loops = keeps && (f->loops.length > 0 || f->why != NULL);
    if (!names.sum && !names.scan && !loops) return;
    add_sum(f, name_of(f, &tile->target),
            names.sum || names.scan ? "by threads, in a tree" : "by a thread, one after another",
            true);
}

static void add_local(Finder *f, const Row *row) {
    Names names = {.local = row->local};
    expr_visit(f->arena, row->value, find_names, &names);
    f->scope = find_scope(f, OBJECT_LOCAL, row->local);
    if (names.itself) read_regions(f);
    bool loops = names.itself && (f->loops.length > 0 || f->why != NULL);
    if (names.sum || loops)
        add_sum(f, f->role->locals.items[row->local].name,
                names.sum ? "by threads, in a tree" : "by a thread, one after another", true);
}

static void add_row(Finder *f, const Row *row) {
    if (row->kind == ROW_TILE && row->tile->value != NULL &&
        is_float_type(row->tile->class == TILE_MMA ? mma_rows[row->tile->mma.kind].sum
                                                   : row->tile->target.type)) {
        if (row->tile->class == TILE_MMA)
            add_contraction(f, row->tile);
        else
            add_statement(f, row->tile);
    } else if (row->kind == ROW_SET && row->value != NULL && row->local >= 0 &&
               is_float_type(f->role->locals.items[row->local].type)) {
        add_local(f, row);
    } else if (row->kind == ROW_UNSAFE) {
        blame(f, "nothing is known of inline PTX");
        add_sum(f, "unsafe", "inline PTX", true);
    }
}

void plan_sums(Arena *arena, const Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        Finder f = {.arena = arena, .prog = prog, .role = role, .code = role->code};
        if (role->code == NULL) continue;
        for (int at = 0; at < (int)role->code->rows.count; at++) {
            begin(&f, at);
            add_row(&f, code_row(role->code, at));
        }
    }
}
