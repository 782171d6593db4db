/* Loops that are followed iteration by iteration, because their variables select elements or
 * decide conditions; and the number of first iterations of other loops that are distinguished. */
#include "derive/written.h"

/* most rows of a loop that is followed, over all its iterations */
#define ROWS_MOST  20000
#define TRIPS_MOST 5 /* most first iterations that are distinguished */

typedef struct LoopFacts {
    bool matters; /* following it may give more facts */
    bool follows; /* as decided at its last entry */
    /* on some path, some object that it writes was not completely written before */
    bool pays;
    int trips;       /* number of distinguished first iterations, if it pays */
    VEC(int) writes; /* outer objects that it writes */
} LoopFacts;

typedef struct Looking {
    Written *w;
    int var; /* of the loop, -1: none */
    int trips;
    bool found;  /* the variable is in the expression */
    bool asks;   /* there is an IF */
    bool writes; /* to something that is followed */
    bool stage;  /* to an outer stage */
    bool varies; /* a subscript of a tile contains a variable */
    int moves;
    /* by kind and object: number of the last visited loop that opens it itself, from 1 */
    int *inner[3];
    int number; /* of the present loop */
} Looking;

static void find_local(Expr *expr, void *data) { *(bool *)data |= expr->kind == X_LOCAL; }

static bool mentions_local(Arena *arena, Expr *expr) {
    bool found = false;
    if (expr) expr_visit(arena, expr, find_local, &found);
    return found;
}

static void look_at_access(Access *access, bool written, void *data) {
    Looking *looking = data;
    (void)written;
    if (access->space == SPACE_GLOBAL) return;
    looking->varies |= mentions_local(looking->w->arena, access->element);
    for (int d = 0; d < access->rank; d++)
        looking->varies |= mentions_local(looking->w->arena, access->subs[d]);
}

static void find_var(Expr *expr, void *data) {
    Looking *looking = data;
    looking->found |= expr->kind == X_LOCAL && expr->index == looking->var;
}

static bool mentions_var(Looking *looking, Expr *expr) {
    looking->found = false;
    expr_visit(looking->w->arena, expr, find_var, looking);
    return looking->found;
}

/* `k < 2` and `k % 2` distinguish the first two iterations. */
static void look_at_constants(Expr *expr, void *data) {
    Looking *looking = data;
    int64_t value;
    if (expr->kind != X_BINARY) return;
    BinaryOp op = expr->binary.op;
    if (op != OP_MOD && (op < OP_EQ || op > OP_GE)) return;
    Expr *sides[] = {expr->binary.left, expr->binary.right};
    for (int i = 0; i < 2; i++) {
        if (!expr_constant(sides[i], &value) || !mentions_var(looking, sides[1 - i])) continue;
        bool next = op != OP_MOD && op != OP_LT && op != OP_GE;
        if (value > 0 && value + next <= TRIPS_MOST && value + next > looking->trips)
            looking->trips = (int)value + next;
    }
}

static void look_at_expr(Expr *expr, void *data) {
    expr_visit(((Looking *)data)->w->arena, expr, look_at_constants, data);
}

/* Marks the objects that the loop opens, and the stages that it acquires, by its number. */
static void mark_inner(Looking *looking, const Region *loop, int number) {
    for (int at = loop->begin + 1; at < loop->next; at++) {
        const Row *row = &looking->w->code->rows.items[at];
        if (row->kind == ROW_OPEN) looking->inner[row->object][row->index] = number;
        if (row->kind == ROW_ACQUIRE && row->handle >= 0)
            looking->inner[OBJECT_HANDLE][row->handle] = number;
    }
    looking->number = number;
}

static void look_at_write(Looking *looking, LoopFacts *facts, ObjectKind kind, int index) {
    Written *w = looking->w;
    looking->writes = true;
    if (index < 0 || looking->inner[kind][index] == looking->number) return;
    if (kind == OBJECT_HANDLE)
        looking->stage = true;
    else
        vec_push(w->arena, &facts->writes,
                 kind == OBJECT_TILE ? index : (int)w->role->tiles.count + index);
}

static void look_at_row(Looking *looking, LoopFacts *facts, const Row *row) {
    Written *w = looking->w;
    Space space = row->kind == ROW_TILE ? row->tile->target.space : SPACE_GLOBAL;
    if (space == SPACE_STAGE)
        look_at_write(looking, facts, OBJECT_HANDLE, row->tile->target.object);
    else if (space != SPACE_GLOBAL)
        look_at_write(looking, facts, OBJECT_TILE, row->tile->target.object);
    if (row_computes(row->kind)) look_at_write(looking, facts, OBJECT_LOCAL, row->local);
    for (size_t i = 0; row->unsafe && i < row->unsafe->operands.count; i++)
        look_at_write(looking, facts, OBJECT_LOCAL, row->unsafe->operands.items[i].local);
    looking->asks |= row->kind == ROW_IF;
    looking->moves += row->kind == ROW_MOVE;
    bool accesses = row->kind == ROW_TILE || row->kind == ROW_SET;
    if (accesses && !looking->varies) row_accesses(w->arena, w->code, row, look_at_access, looking);
    if (looking->var >= 0) row_exprs(w->code, row, look_at_expr, looking);
}

/* A loop that writes nothing that is followed changes nothing. */
static void look(Looking looking, int region) {
    Written *w = looking.w;
    const Region *loop = &w->code->regions.items[region];
    LoopFacts *facts = &w->loops[region];
    looking.var = loop->var;
    mark_inner(&looking, loop, region + 1);
    for (int at = loop->begin + 1; at < loop->next; at++)
        look_at_row(&looking, facts, &w->code->rows.items[at]);
    bool tells = looking.writes && (looking.asks || looking.varies);
    facts->matters = tells || looking.stage || looking.moves;
    facts->pays = looking.stage || looking.moves;
    if (tells || looking.moves) facts->trips = looking.trips > 1 ? looking.trips : 1;
    /* after so many iterations all variables have moved on */
    if (looking.moves && looking.moves >= facts->trips)
        facts->trips = looking.moves < TRIPS_MOST ? looking.moves + 1 : TRIPS_MOST;
}

void written_find_loops(Written *w) {
    const Role *role = w->role;
    Looking looking = {.w = w};
    w->loops = NEW_ARRAY(w->arena, LoopFacts, w->code->regions.count + 1);
    looking.inner[OBJECT_TILE] = NEW_ARRAY(w->arena, int, role->tiles.count + 1);
    looking.inner[OBJECT_LOCAL] = NEW_ARRAY(w->arena, int, role->locals.count + 1);
    looking.inner[OBJECT_HANDLE] = NEW_ARRAY(w->arena, int, role->handles.count + 1);
    for (size_t r = 0; r < w->code->regions.count; r++)
        if (region_loops(&w->code->regions.items[r])) look(looking, (int)r);
}

int written_trips(const Written *w, int region) {
    return w->loops[region].pays ? w->loops[region].trips : 0;
}

/* Iterations of a constant loop; for bounds that depend on enclosing loop variables, the number
 * of the enclosing loop's */
static int64_t trips_of(const Flow *flow, int region, int64_t around) {
    const Region *row = &flow->code->regions.items[region];
    int64_t lo, hi;
    if (row->kind != REGION_FOR || !context_value(&flow->context, row->lo, &lo) ||
        !context_value(&flow->context, row->hi, &hi))
        return around;
    return hi - lo > MAX_TRIPS ? 1 : hi > lo ? hi - lo : 0;
}

/* Number of executions of rows of the region in all iterations of the loop, which are `own` */
static int64_t times(const Flow *flow, int r, int loop, int64_t own) {
    int64_t count = 1;
    for (; r > loop && count < ROWS_MOST; r = flow->code->regions.items[r].parent)
        if (region_loops(&flow->code->regions.items[r])) count *= trips_of(flow, r, own);
    return count * own;
}

/* Decides, before a loop is entered, whether it is followed iteration by iteration. False: it
 * has too many iterations */
bool written_decide_loop(Written *w, const Flow *flow, const State *state, int region) {
    const FlowCode *code = w->code;
    const Region *loop = &code->regions.items[region];
    LoopFacts *facts = &w->loops[region];
    int64_t rows = 0, writes = 0, own = trips_of(flow, region, 1), count = own;
    int last = region; /* that of the row before */
    for (int at = loop->begin + 1; at < loop->next && rows <= ROWS_MOST; at++) {
        const Row *row = &code->rows.items[at];
        arena_count(w->arena, 1);
        if (row->kind != ROW_TILE && row->kind != ROW_SET && row->kind != ROW_IF) continue;
        if (row->region != last) count = times(flow, last = row->region, region, own);
        rows += count;
        if (row->kind == ROW_TILE && row->tile->target.space == SPACE_STAGE) writes += count;
    }
    for (size_t i = 0; i < facts->writes.count && !facts->pays; i++) {
        int object = facts->writes.items[i];
        int64_t elements = w->objects[object].elements;
        facts->pays =
            elements && !elements_hold(state->must[object], elements_span(w->arena, 0, elements));
    }
    bool fits = rows <= ROWS_MOST && writes <= WRITES_MOST, constant = flow_runs(flow, region) >= 0;
    facts->follows = facts->matters && facts->pays && fits;
    return facts->follows || !facts->matters || !facts->pays || !constant;
}

bool written_follows(const Written *w, int region) { return w->loops[region].follows; }
