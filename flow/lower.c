/* Lowers the statements of a role to Code. The only place of the floor that interprets `Stmt`. */
#include "flow/code.h"

#include "algebra/algebra.h"
#include "prog/stmt.h"

typedef struct Scope { /* actions of a leave on its way out, innermost last */
    const Stmt *stmt;
    int region;    /* its target, -1: none */
    int late;      /* a stage block: its late set, -1: releases at once */
    int lates[2];  /* a loop: the first of its late sets, and the one after its last */
    size_t opened; /* number of objects that were open before it */
} Scope;

typedef struct Opened {
    ObjectKind object;
    int index;
} Opened;

typedef struct Lower {
    Arena *arena;
    FlowCode *code;
    int region;
    VEC(Scope) scopes;
    VEC(Opened) open;
    bool *opened; /* by handle: it is in `open` */
    bool leaving;
    VEC(const Stmt *) late_blocks; /* indexed as code->lates: the stage block */
    int *late;                     /* by handle: 1 + the number of its block's late set; 0: none */
    int blocks;                    /* number of enclosing stage blocks */
    int outside;                   /* number of these outside the innermost loop */
} Lower;

static void lower(Lower *l, Stmt *stmt);

/* ---- rows and regions ------------------------------------------------------------------------ */

static Row *row(Lower *l, RowKind kind, Stmt *stmt, Span span) {
    Row made = {.kind = kind,
                .region = l->region,
                .span = span,
                .head = stmt ? stmt->head : span,
                .stmt = stmt};
    made.handle = made.other = made.hint = made.late = made.lag = made.index = made.local =
        made.target = -1;
    made.leaving = l->leaving;
    vec_push_alone(l->arena, &l->code->rows, made);
    return &l->code->rows.items[l->code->rows.count - 1];
}

static Region *region_of(Lower *l, int index) { return &l->code->regions.items[index]; }

/* The last character of a statement: its closing brace */
static Span closing(const Stmt *stmt) {
    if (stmt->kind == S_BLOCK && stmt->block.close.hi) return stmt->block.close;
    return (Span){stmt->span.hi > stmt->span.lo ? stmt->span.hi - 1 : stmt->span.lo, stmt->span.hi};
}

static int begin(Lower *l, RegionKind kind, RowKind first, Stmt *stmt) {
    Region made = {.kind = kind,
                   .parent = l->region,
                   .next = -1,
                   .otherwise = -1,
                   .var = -1,
                   .domain = -1,
                   .nonempty = -1,
                   .search = -1};
    int index = (int)l->code->regions.count;
    if (stmt) made.span = stmt->span, made.head = stmt->head;
    bool loops = kind == REGION_GRID || kind == REGION_FOR;
    made.loop = loops ? index : l->region < 0 ? -1 : region_of(l, l->region)->loop;
    made.depth = (l->region < 0 ? 0 : region_of(l, l->region)->depth) + loops;
    made.begin = (int)l->code->rows.count;
    vec_push_alone(l->arena, &l->code->regions, made);
    l->region = index;
    row(l, first, stmt, stmt ? stmt->span : (Span){0});
    return index;
}

static void end(Lower *l, int index, Stmt *stmt) {
    region_of(l, index)->end = (int)l->code->rows.count;
    row(l, ROW_END, stmt, stmt ? closing(stmt) : (Span){0});
    l->region = region_of(l, index)->parent;
}

/* ---- scopes ---------------------------------------------------------------------------------- */

static void open(Lower *l, ObjectKind object, int index, Stmt *stmt, Span span) {
    Row *made = row(l, ROW_OPEN, stmt, span);
    made->object = object, made->index = index;
    vec_push(l->arena, &l->open, (Opened){object, index});
    if (object == OBJECT_HANDLE) l->opened[index] = true;
}

static bool has_head(const Stmt *stmt) { return stmt->kind == S_STAGE || stmt->kind == S_GRID; }

static void open_handle(Lower *l, int handle, Stmt *stmt) {
    if (!valid_index(handle, l->code->role->handles.count) || l->opened[handle]) return;
    open(l, OBJECT_HANDLE, handle, stmt, has_head(stmt) ? stmt->head : stmt->span);
}

/* Closes scopes down to `depth`; a leave closes them only on its path */
static void close(Lower *l, size_t depth, Stmt *stmt, Span at, bool leave) {
    for (size_t i = l->open.count; i-- > depth;) {
        const Opened *what = &l->open.items[i];
        if (what->object != OBJECT_LOCAL) {
            Row *made = row(l, ROW_CLOSE, stmt, at);
            made->object = what->object, made->index = what->index;
            if (what->object == OBJECT_HANDLE) made->handle = what->index;
        }
        if (!leave && what->object == OBJECT_HANDLE) l->opened[what->index] = false;
    }
    if (!leave) l->open.count = depth;
}

/* ---- stages ---------------------------------------------------------------------------------- */

static Row *acquire(Lower *l, Stmt *stmt, int handle, int hint, bool unwaited) {
    open_handle(l, handle, stmt);
    Row *made = row(l, ROW_ACQUIRE, stmt, has_head(stmt) ? stmt->head : stmt->span);
    made->handle = handle, made->hint = hint, made->unwaited = unwaited;
    return made;
}

static void let_go(Lower *l, const Stmt *block, int late, Stmt *stmt, Span at) {
    Row *made = row(l, late >= 0 ? ROW_KEEP : ROW_RELEASE, stmt, at);
    made->handle = block->stage.handle, made->late = late, made->block = true;
}

/* True if no condition is between the region and its loop */
static bool is_unconditional(Lower *l, int region) {
    while (!region_loops(region_of(l, region)))
        if (region_of(l, region)->kind == REGION_IF)
            return false;
        else
            region = region_of(l, region)->parent;
    return true;
}

/* Every `consume` block in a loop may lag: the sets of a loop are created before its first row,
 * because a LEAVE also flushes those of later blocks. */
static void late_sets(Lower *l, const Stmt *stmt, int loop);

static void late_set(Lower *l, const Stmt *stmt, int loop) {
    int handle = stmt->stage.handle;
    late_sets(l, stmt->stage.body, loop);
    if (!valid_index(handle, l->code->role->handles.count)) return;
    if (l->code->role->handles.items[handle].end != END_CONSUME) return;
    Late made = {.handle = handle,
                 .loop = loop,
                 .head = stmt->head,
                 .lag = stmt->stage.lag > 0 ? stmt->stage.lag : 0};
    vec_push(l->arena, &l->code->lates, made);
    vec_push(l->arena, &l->late_blocks, stmt);
    l->late[handle] = (int)l->late_blocks.count;
}

static void late_sets(Lower *l, const Stmt *stmt, int loop) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            late_sets(l, stmt->block.body.items[i], loop);
        break;
    case S_IF:
        late_sets(l, stmt->branch.then, loop);
        late_sets(l, stmt->branch.otherwise, loop);
        break;
    case S_STAGE: late_set(l, stmt, loop); break;
    case S_GRID:
    case S_FOR: /* has its own sets */
    case S_SCALAR:
    case S_TILE:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
}

static int late_of(const Lower *l, const Stmt *block) { /* -1: it releases at once */
    int handle = block->stage.handle;
    if (!valid_index(handle, l->code->role->handles.count)) return -1;
    int late = l->late[handle] - 1;
    return late >= 0 && l->late_blocks.items[late] == block ? late : -1;
}

static void stage_block(Lower *l, Stmt *stmt) {
    size_t depth = l->open.count;
    int late = late_of(l, stmt);
    Row *made = acquire(l, stmt, stmt->stage.handle, stmt->stage.hint, stmt->stage.unwaited);
    made->block = true, made->late = late, made->lag = stmt->stage.lag;
    if (late >= 0) {
        l->code->lates.items[late].acquire = (int)l->code->rows.count - 1;
        l->code->lates.items[late].direct =
            l->blocks == l->outside && is_unconditional(l, l->region);
    }
    vec_push(l->arena, &l->scopes, (Scope){stmt, -1, late, {0}, depth});
    l->blocks++;
    lower(l, stmt->stage.body);
    l->blocks--;
    l->scopes.count--;
    let_go(l, stmt, late, stmt, closing(stmt));
    close(l, depth, stmt, closing(stmt), false);
}

static void flush(Lower *l, const int lates[2], Stmt *stmt, Span at) {
    for (int i = lates[0]; i < lates[1]; i++) row(l, ROW_FLUSH, stmt, at)->late = i;
}

/* ---- leaves ---------------------------------------------------------------------------------- */

static void leave(Lower *l, Stmt *stmt) {
    size_t depth = l->open.count;
    bool again = stmt->leave.kind == LEAVE_CONTINUE;
    int target = 0;
    l->leaving = true;
    for (size_t i = l->scopes.count; i-- > 0;) {
        const Scope *scope = &l->scopes.items[i];
        bool is_target = stmt->leave.target && scope->stmt == stmt->leave.target;
        if (is_target) target = scope->region;
        if (is_target && again) break;
        if (scope->stmt->kind == S_STAGE) let_go(l, scope->stmt, scope->late, stmt, stmt->span);
        bool turn = scope->stmt->kind == S_BLOCK && scope->stmt->block.turn;
        if (turn) row(l, ROW_PASS, stmt, stmt->span)->turn = scope->stmt->block.turn;
        if (scope->region >= 0 && !is_target && region_loops(region_of(l, scope->region)))
            flush(l, scope->lates, stmt, stmt->span);
        if (is_target) break;
    }
    for (size_t i = l->scopes.count; i-- > 0;) {
        if (!stmt->leave.target)
            depth = 0;
        else if (l->scopes.items[i].stmt == stmt->leave.target)
            depth = l->scopes.items[i].opened;
    }
    close(l, depth, stmt, stmt->span, true);
    Row *made = row(l, ROW_LEAVE, stmt, stmt->span);
    made->target = target, made->again = again && target > 0;
    if (!made->again) region_of(l, target)->left = true;
    l->leaving = false;
}

/* ---- compound statements --------------------------------------------------------------------- */

static void open_scope(Lower *l, Stmt *stmt) {
    for (size_t i = 0; i < stmt->block.locals.count; i++)
        open(l, OBJECT_LOCAL, stmt->block.locals.items[i], stmt, stmt->span);
    for (size_t i = 0; i < stmt->block.tiles.count; i++)
        open(l, OBJECT_TILE, stmt->block.tiles.items[i], stmt, stmt->span);
}

/* A block is a region if a `return` leaves it, or if it is a turn; otherwise its rows belong to
 * the enclosing region. */
static void block(Lower *l, Stmt *stmt) {
    size_t depth = l->open.count;
    bool turn = stmt->block.turn > 0;
    int region = -1;
    if (turn || stmt->block.left) {
        region = begin(l, turn ? REGION_TURN : REGION_BLOCK, ROW_BLOCK, stmt);
        region_of(l, region)->turn = stmt->block.turn;
    }
    for (size_t i = 0; i < stmt->block.loans.count; i++)
        row(l, ROW_LEND, stmt, stmt->block.loans.items[i].span)->handle =
            stmt->block.loans.items[i].handle;
    if (turn) row(l, ROW_TAKE, stmt, stmt->head)->turn = stmt->block.turn;
    open_scope(l, stmt);
    vec_push(l->arena, &l->scopes, (Scope){stmt, region, -1, {0}, depth});
    for (size_t i = 0; i < stmt->block.body.count; i++) {
        size_t first = l->code->rows.count;
        lower(l, stmt->block.body.items[i]);
        if (first == l->code->rows.count) continue;
        l->code->rows.items[first].statement = stmt->block.body.items[i]->head;
        l->code->rows.items[first].after_block =
            i > 0 && stmt->block.body.items[i - 1]->kind == S_BLOCK;
    }
    l->scopes.count--;
    close(l, depth, stmt, closing(stmt), false);
    if (turn) row(l, ROW_PASS, stmt, closing(stmt))->turn = stmt->block.turn;
    if (region >= 0) end(l, region, stmt);
}

/* A stage of the pipes of a dynamic grid: acquired and released at once */
static void hand(Lower *l, Stmt *stmt, int handle) {
    size_t depth = l->open.count;
    if (handle < 0) return;
    acquire(l, stmt, handle, -1, false)->every = true;
    Row *made = row(l, ROW_RELEASE, stmt, stmt->head);
    made->handle = handle, made->every = true;
    close(l, depth, stmt, stmt->head, false);
}

/* The head of an iteration over a dynamic grid: takes the number of the tile, or draws one. The
 * first number is published before the loop, and then the next one when a tile is begun. */
static void take_tile(Lower *l, Stmt *stmt, int index) {
    bool draws = stmt->grid.body == NULL;
    hand(l, stmt, draws ? stmt->grid.begun : stmt->grid.tile);
    region_of(l, index)->taken = (int)l->code->rows.count;
    hand(l, stmt, draws ? stmt->grid.tile : stmt->grid.begun);
    region_of(l, index)->body = (int)l->code->rows.count;
}

static void loop(Lower *l, Stmt *stmt) {
    bool grid = stmt->kind == S_GRID, drawn = grid && stmt->grid.tile >= 0,
         draws = drawn && stmt->grid.body == NULL;
    if (draws) hand(l, stmt, stmt->grid.tile);
    int index = begin(l, grid ? REGION_GRID : REGION_FOR, ROW_LOOP, stmt);
    Region *made = region_of(l, index);
    if (grid) {
        made->axes = stmt->grid.vars;
    } else {
        made->var = stmt->loop.var, made->lo = stmt->loop.lo, made->hi = stmt->loop.hi,
        made->where = stmt->loop.where;
        made->domain = stmt->loop.domain, made->whole = stmt->loop.whole,
        made->unroll = stmt->loop.unroll;
    }
    int lates[2] = {(int)l->code->lates.count, 0};
    late_sets(l, grid ? stmt->grid.body : stmt->loop.body, index);
    lates[1] = (int)l->code->lates.count;
    vec_push(l->arena, &l->scopes, (Scope){stmt, index, -1, {lates[0], lates[1]}, l->open.count});
    int outside = l->outside;
    l->outside = l->blocks;
    if (drawn) take_tile(l, stmt, index);
    lower(l, grid ? stmt->grid.body : stmt->loop.body);
    l->outside = outside;
    l->scopes.count--;
    region_of(l, index)->next = (int)l->code->rows.count;
    row(l, ROW_NEXT, stmt, closing(stmt));
    end(l, index, stmt);
    if (drawn && !draws) hand(l, stmt, stmt->grid.tile);
    flush(l, lates, stmt, stmt->head);
}

/* The region of a loop that is already lowered; -1: none */
static int loop_before(const Lower *l, const Stmt *loop) {
    for (size_t at = l->code->rows.count; loop && at-- > 0;)
        if (l->code->rows.items[at].stmt == loop && l->code->rows.items[at].kind == ROW_LOOP)
            return l->code->rows.items[at].region;
    return -1;
}

static void branch(Lower *l, Stmt *stmt) {
    int index = begin(l, REGION_IF, ROW_IF, stmt);
    region_of(l, index)->condition = stmt->branch.condition;
    region_of(l, index)->nonempty = stmt->branch.nonempty;
    region_of(l, index)->search = loop_before(l, stmt->branch.search);
    region_of(l, index)->from = stmt->branch.from, region_of(l, index)->to = stmt->branch.to;
    l->code->rows.items[l->code->rows.count - 1].value = stmt->branch.condition;
    lower(l, stmt->branch.then);
    region_of(l, index)->otherwise = (int)l->code->rows.count;
    row(l, ROW_ELSE, stmt, stmt->branch.then ? closing(stmt->branch.then) : stmt->span);
    lower(l, stmt->branch.otherwise);
    end(l, index, stmt);
}

static void unsafe(Lower *l, Stmt *stmt) {
    Row *made = row(l, stmt->unsafe->kind == UNSAFE_STEP ? ROW_STEP : ROW_UNSAFE, stmt, stmt->span);
    made->unsafe = stmt->unsafe;
    made->handle = stmt->unsafe->handle;
    if (stmt->unsafe->kind == UNSAFE_VALUE) made->local = stmt->unsafe->local;
}

static void scalar(Lower *l, Stmt *stmt) {
    Row *made = row(l, ROW_SET, stmt, stmt->span);
    made->local = stmt->scalar.local, made->value = stmt->scalar.value;
}

static void move(Lower *l, Stmt *stmt) {
    open_handle(l, stmt->move.to, stmt);
    Row *made = row(l, ROW_MOVE, stmt, stmt->span);
    made->handle = stmt->move.to, made->other = stmt->move.from;
}

static void lower(Lower *l, Stmt *stmt) {
    if (!stmt) return;
    switch (stmt->kind) {
    case S_BLOCK: block(l, stmt); break;
    case S_SCALAR: scalar(l, stmt); break;
    case S_TILE:
        row(l, stmt->tile && stmt->tile->prefetch ? ROW_PREFETCH : ROW_TILE, stmt, stmt->span)
            ->tile = stmt->tile;
        break;
    case S_GRID:
    case S_FOR: loop(l, stmt); break;
    case S_IF: branch(l, stmt); break;
    case S_LEAVE: leave(l, stmt); break;
    case S_TRY: row(l, ROW_ASK, stmt, stmt->span)->hint = stmt->ask.hint; break;
    case S_ACQUIRE:
        acquire(l, stmt, stmt->acquire.handle, stmt->acquire.hint, stmt->acquire.unwaited);
        break;
    case S_RELEASE:
        row(l, stmt->release.silent ? ROW_DROP : ROW_RELEASE, stmt, stmt->span)->handle =
            stmt->release.handle;
        break;
    case S_MOVE: move(l, stmt); break;
    case S_STAGE: stage_block(l, stmt); break;
    case S_UNSAFE: unsafe(l, stmt); break;
    }
}

FlowCode *code_lower(Arena *arena, const Prog *prog, const Role *role) {
    FlowCode *code = NEW(arena, FlowCode);
    *code = (FlowCode){.prog = prog, .role = role, .algebra = algebra_new(arena, prog, role)};
    Lower l = {.arena = arena, .code = code, .region = -1};
    l.opened = NEW_ARRAY(arena, bool, role->handles.count + 1);
    l.late = NEW_ARRAY(arena, int, role->handles.count + 1);
    int whole = begin(&l, REGION_ROLE, ROW_BLOCK, role->body);
    lower(&l, role->body);
    end(&l, whole, role->body);
    l.region = 0;
    row(&l, ROW_EXIT, NULL, role->span);
    return code;
}
