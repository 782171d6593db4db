/* Constructs, copies and replaces expressions, statements and positions of a program. */
#include "tests/adversary/adversary.h"

#include <string.h>

const char *const symbol_names[SYMBOLS] = {"G", "K", "R", "N", "M", "q", "p"};

uint32_t pick(Program *program, uint32_t below) { return draw(&program->random, below); }
bool often(Program *program, int percent) { return chance(&program->random, percent); }

/* ---- expressions ----------------------------------------------------------------------------- */

Expr *expr_new(Program *program, ExprKind kind, int of) {
    Expr *expr = NEW(program->arena, Expr);
    *expr = (Expr){.kind = kind, .of = of};
    return expr;
}

const Expr *number(Program *program, int64_t value) {
    Expr *expr = expr_new(program, X_NUMBER, 0);
    expr->number = value;
    return expr;
}

const Expr *real(Program *program, double value) {
    Expr *expr = expr_new(program, X_REAL, 0);
    expr->real = (double)(float)value;
    return expr;
}

const Expr *truth(Program *program, bool value) {
    Expr *expr = expr_new(program, X_TRUTH, 0);
    expr->number = value;
    return expr;
}

const Expr *param(Program *program, int which) { return expr_new(program, X_PARAM, which); }

const Expr *symbol(Program *program, Symbol which) {
    return expr_new(program, X_SYMBOL, (int)which);
}
const Expr *local_of(Program *program, int local) { return expr_new(program, X_LOCAL, local); }
const Expr *any_axis(Program *program) {
    int axis = program->axis_count > 1 ? (int)pick(program, (uint32_t)program->axis_count) : 0;
    return local_of(program, program->axes[axis].local);
}

int cluster_size(const Program *program) {
    int size = 1;
    for (int a = 0; a < program->axis_count; a++) size *= program->axes[a].cluster;
    return size;
}

/* Counts the loops over the grid in the list; false: one of them is inside of another statement, or
 * a leave goes further than to the next tile. `loops`: loops around the list in the loop over the
 * grid, or -1: it is not in one. */
static bool takes_all_tiles(const Stmts *stmts, int loops, bool top, int *grids) {
    for (size_t i = 0; i < stmts->count; i++) {
        const Stmt *stmt = stmts->items[i];
        if (stmt->kind == S_GRID && (!top || ++*grids > 1)) return false;
        if (stmt->kind == S_LEAVE && stmt->leave == LEAVE_RETURN) return false;
        if (stmt->kind == S_LEAVE && stmt->leave == LEAVE_BREAK && loops == 0) return false;
        if (stmt->kind == S_CALL) continue; /* its leaves end the function */
        int inner = stmt->kind == S_GRID ? 0 : loops + (loops >= 0 && stmt->kind == S_FOR);
        if (!takes_all_tiles(&stmt->body, inner, false, grids) ||
            !takes_all_tiles(&stmt->otherwise, inner, false, grids))
            return false;
    }
    return true;
}

bool is_dynamic(const Program *program) {
    bool likely = (program->seed % 3 == 0) != (program->theme == THEME_HELD),
         all = likely && program->persistent && cluster_size(program) == 1;
    for (int r = 0; r < program->role_count && all; r++) {
        int grids = 0;
        all = takes_all_tiles(&program->roles[r].body, -1, true, &grids);
    }
    return all;
}

const Expr *index_of(Program *program, int which) { return expr_new(program, X_INDEX, which); }

const Expr *binary(Program *program, Op op, const Expr *a, const Expr *b) {
    Expr *expr = expr_new(program, X_BINARY, 0);
    expr->op = op;
    expr->a = a;
    expr->b = b;
    return expr;
}

const Expr *unary(Program *program, Op op, const Expr *a) { return binary(program, op, a, NULL); }

static Type type_of_result(const Program *program, const Expr *expr) {
    switch ((int)expr->op) {
    case DO_EQ:
    case DO_NE:
    case DO_LT:
    case DO_LE:
    case DO_GT:
    case DO_GE:
    case DO_AND:
    case DO_OR:
    case DO_NOT:
    case DO_UNSIGNED_LT: return TYPE_BOOL;
    case DO_TO_REAL:
    case DO_HALF:
    case DO_E4M3: return TYPE_REAL;
    case DO_TO_INT: return TYPE_INT;
    default: break;
    }
    Type type = expr_type(program, expr->a);
    return type == TYPE_HALF ? TYPE_REAL : type;
}

/* Arithmetic widens f16 to f32 */
Type expr_type(const Program *program, const Expr *expr) {
    switch (expr->kind) {
    case X_NUMBER:
    case X_SYMBOL:
    case X_INDEX:
    case X_RANK:
    case X_LANE: return TYPE_INT;
    case X_REAL:
    case X_PARAM: return TYPE_REAL;
    case X_TRUTH: return TYPE_BOOL;
    case X_LOCAL:
    case X_TILE: return program->locals[expr->of].type;
    case X_TENSOR: return program->tensors[expr->of].type;
    case X_FIELD: return program->pipes[program->locals[expr->of].pipe].fields[expr->field].type;
    case X_BINARY: return type_of_result(program, expr);
    case X_SELECT:
    case X_REDUCE: break;
    }
    Type type = expr_type(program, expr->a);
    return type == TYPE_HALF ? TYPE_REAL : type;
}

const Expr *choose(Program *program, const Expr *c, const Expr *a, const Expr *b) {
    Expr *expr = expr_new(program, X_SELECT, 0);
    expr->c = c;
    expr->a = a;
    expr->b = b;
    return expr;
}

const Expr *reduced(Program *program, Op op, int index, const Expr *body) {
    Expr *expr = expr_new(program, X_REDUCE, index);
    expr->op = op;
    expr->a = body;
    return expr;
}

const Expr *element(Program *program, ExprKind kind, int of, int field, const Expr *first,
                    const Expr *second, const Expr *third) {
    Expr *expr = expr_new(program, kind, of);
    const Expr *subs[] = {first, second, third};
    expr->field = field;
    for (size_t s = 0; s < COUNT_OF(subs) && subs[s] != NULL; s++)
        expr->subs[expr->rank++] = subs[s];
    return expr;
}

bool expr_mentions(const Expr *expr, ExprKind kind, int of) {
    if (expr == NULL) return false;
    if (expr->kind == kind && (of < 0 || expr->of == of)) return true;
    bool found = expr_mentions(expr->a, kind, of) || expr_mentions(expr->b, kind, of) ||
                 expr_mentions(expr->c, kind, of);
    for (int s = 0; s < expr->rank && !found; s++) found = expr_mentions(expr->subs[s], kind, of);
    return found;
}

const Expr *expr_replace(Program *program, const Expr *expr, const Expr *from, const Expr *to) {
    if (expr == NULL) return NULL;
    if (expr == from) return to;
    Expr *copy = NEW(program->arena, Expr);
    *copy = *expr;
    copy->a = expr_replace(program, expr->a, from, to);
    copy->b = expr_replace(program, expr->b, from, to);
    copy->c = expr_replace(program, expr->c, from, to);
    for (int s = 0; s < expr->rank; s++)
        copy->subs[s] = expr_replace(program, expr->subs[s], from, to);
    return copy;
}

/* True if the target of an assignment has elements of 8 bits */
bool is_tiny(const Program *program, const Expr *target) {
    const Local *local = &program->locals[target->of];
    if (target->kind == X_TILE) return local->tiny;
    return target->kind == X_FIELD && program->pipes[local->pipe].fields[target->field].tiny;
}

bool is_of_tiles(const Program *program, const Expr *expr) {
    return expr->kind == X_FIELD &&
           program->pipes[program->locals[expr->of].pipe].fields[expr->field].tiles;
}

/* ---- statements ------------------------------------------------------------------------------ */

Stmt *stmt_new(Program *program, StmtKind kind) {
    Stmt *stmt = NEW(program->arena, Stmt);
    *stmt = (Stmt){
        .kind = kind, .range = -1, .lag = -1, .hint = -1, .op = '=', .local = -1, .other = -1};
    return stmt;
}

Stmt *stmt_of_handle(Program *program, StmtKind kind, int handle, int other) {
    Stmt *stmt = stmt_new(program, kind);
    stmt->local = handle;
    stmt->other = other;
    return stmt;
}

Stmt *assign(Program *program, const Expr *target, char op, const Expr *value) {
    Stmt *stmt = stmt_new(program, S_TILE);
    stmt->target = target;
    stmt->op = op;
    stmt->value = value;
    return stmt;
}

Stmt *if_new(Program *program, const Expr *condition) {
    Stmt *stmt = stmt_new(program, S_IF);
    stmt->condition = condition;
    return stmt;
}

Stmt *for_new(Program *program, int local, const Expr *hi) {
    Stmt *stmt = stmt_new(program, S_FOR);
    stmt->local = local;
    stmt->lo = number(program, 0);
    stmt->hi = hi;
    return stmt;
}

void stmts_add(Program *program, Stmts *stmts, Stmt *stmt) {
    vec_push(program->arena, stmts, stmt);
}

void stmts_insert(Program *program, Stmts *stmts, size_t at, Stmt *stmt) {
    vec_push(program->arena, stmts, stmt);
    for (size_t i = stmts->count - 1; i > at; i--) stmts->items[i] = stmts->items[i - 1];
    stmts->items[at] = stmt;
}

Stmt *stmts_remove(Stmts *stmts, size_t at) {
    Stmt *stmt = stmts->items[at];
    for (size_t i = at + 1; i < stmts->count; i++) stmts->items[i - 1] = stmts->items[i];
    stmts->count--;
    return stmt;
}

static Stmts copy_all(Arena *arena, const Stmts *stmts);

static Stmt *copy_one(Arena *arena, const Stmt *stmt) {
    Stmt *copy = NEW(arena, Stmt);
    *copy = *stmt;
    copy->body = copy_all(arena, &stmt->body);
    copy->otherwise = copy_all(arena, &stmt->otherwise);
    return copy;
}

static Stmts copy_all(Arena *arena, const Stmts *stmts) {
    Stmts copy = {0};
    for (size_t i = 0; i < stmts->count; i++)
        vec_push(arena, &copy, copy_one(arena, stmts->items[i]));
    return copy;
}

Stmts stmts_copy(Program *program, const Stmts *stmts) { return copy_all(program->arena, stmts); }
Stmt *stmt_copy(Program *program, const Stmt *stmt) { return copy_one(program->arena, stmt); }

Program *program_copy(Arena *arena, const Program *program) {
    Program *copy = NEW(arena, Program);
    *copy = *program;
    copy->arena = arena;
    for (int i = 0; i < program->role_count; i++)
        copy->roles[i].body = copy_all(arena, &program->roles[i].body);
    return copy;
}

/* ---- names and tensors ----------------------------------------------------------------------- */

int local_new(Program *program, LocalKind kind) {
    int local = program->local_count < MAX_LOCALS - 1 ? program->local_count++ : MAX_LOCALS - 1;
    program->locals[local] = (Local){.kind = kind, .pipe = -1};
    return local;
}

int tile_new(Program *program, LocalKind kind, int rank, int first, int second) {
    int local = local_new(program, kind);
    program->locals[local].rank = rank;
    program->locals[local].extents[0] = first;
    program->locals[local].extents[1] = second;
    return local;
}

void axis_add(Program *program, const Expr *extent, int cluster) {
    static const char *const names[MAX_AXES] = {"t", "u", "v"};
    int local = local_new(program, LOCAL_LOOP);
    program->locals[local].name = names[program->axis_count];
    program->axes[program->axis_count++] = (Axis){local, extent, cluster};
}

int tensor_new(Program *program, const char *name, Mode mode, Contents contents, int rank) {
    int tensor = program->tensor_count++;
    program->tensors[tensor] =
        (Tensor){.name = name, .mode = mode, .contents = contents, .rank = rank};
    for (int d = 0; d < TENSOR_RANK; d++) program->tensors[tensor].extents[d].symbol = -1;
    return tensor;
}

/* ---- positions ------------------------------------------------------------------------------- */

static void add_sites(Program *program, Sites *sites, Stmts *list, Site outer) {
    for (size_t i = 0; i < list->count; i++) {
        Stmt *stmt = list->items[i];
        Site site = outer;
        site.list = list;
        site.at = i;
        vec_push(program->arena, sites, site);
        Site inner = outer;
        if (inner.depth < (int)COUNT_OF(inner.around)) inner.around[inner.depth++] = stmt;
        inner.loops += stmt->kind == S_FOR;
        inner.in_grid |= stmt->kind == S_GRID;
        add_sites(program, sites, &stmt->body, inner);
        add_sites(program, sites, &stmt->otherwise, inner);
    }
}

Sites program_sites(Program *program) {
    Sites sites = {0};
    for (int i = 0; i < program->role_count; i++)
        add_sites(program, &sites, &program->roles[i].body, (Site){.role = i});
    return sites;
}

size_t program_number(Program *program) {
    Sites sites = program_sites(program);
    for (size_t i = 0; i < sites.count; i++)
        sites.items[i].list->items[sites.items[i].at]->number = (int)i;
    return sites.count;
}

const char *const theme_names[THEMES] = {
    "any",     "turns",  "wraps",     "padding",  "rotation", "variables",  "races",
    "carried", "stages", "functions", "exchange", "clusters", "reductions", "arrays",
    "grids",   "edges",  "held",      "floats",   "divisors", "poles",      "hands",
    "masks",   "pieces", "exits",     "pages",    "named"};

/* Floats, tails, pieces, exits, pages, named elements. False: none of them */
static bool draws_others(Program *program, bool any) {
    Theme theme = program->theme;
    if (any && often(program, 12)) theme = (Theme)(THEME_FLOATS + pick(program, 7));
    switch ((int)theme) {
    case THEME_FLOATS: draw_floats(program); return true;
    case THEME_DIVISORS: draw_divisors(program); return true;
    case THEME_POLES:
    case THEME_HANDS:
    case THEME_MASKS: draw_tails(program); return true;
    case THEME_PIECES: draw_pieces(program); return true;
    case THEME_EXITS: draw_exits(program); return true;
    case THEME_PAGES: draw_pages(program); return true;
    case THEME_NAMED: draw_named(program); return true;
    default: return false;
    }
}

Program *program_draw(Arena *arena, uint64_t seed, Theme theme) {
    Program *program = NEW(arena, Program);
    program->arena = arena;
    program->seed = seed;
    program->random = (Random){seed * 2654435761u + 12345};
    program->theme = often(program, 40) ? THEME_ANY : (Theme)(1 + pick(program, THEMES - 1));
    if (theme != THEMES) program->theme = theme;
    bool any = program->theme == THEME_ANY;
    if (program->theme == THEME_PADDING || (any && often(program, 12)))
        draw_matrices(program);
    else if (program->theme == THEME_EDGES || (any && often(program, 4)))
        draw_edges(program);
    else if (program->theme == THEME_HELD || (any && often(program, 4)))
        draw_held(program);
    else if (draws_others(program, any))
        ;
    else
        draw_vectors(program);
    uint32_t dice = pick(program, 100);
    int wounds = dice < 30 ? 0 : dice < 90 ? 1 : 2;
    if (program->reals || program->tails) wounds = 0; /* they are drawn wrong */
    for (int tries = 0; tries < 12 && program->wound_count < wounds; tries++) wound(program);
    if (program->theme == THEME_FUNCTIONS || (any && often(program, 20))) draw_functions(program);
    return program;
}
