/* Uniformity of locals: a local varies as what is assigned to it varies, and as the conditions and loops vary under which it
 * is assigned; a loop varies as the conditions under which it is left. What is assigned late in a loop is read early in the next
 * iteration, so this is repeated until nothing changes. Roles of one instance, without a cluster and lanes of `unsafe`, have nothing
 * that varies outside of tiles. In a role in turn an instance carries from its iterations of the grid to its next ones what the others do not see. */
#include "elaborate/private.h"
#include "prog/walk.h"

/* Over the threads of the role, and over the blocks of a cluster */
typedef struct Vary {
    Uniformity among;
    uint32_t along;
} Vary;

typedef struct Pass {
    Arena *arena;
    Prog *prog;
    Role *role;
    bool changed;
    bool in_grid;        /* inside of the loop over the grid */
    VEC(Stmt *) targets; /* what is left early, */
    VEC(Vary) leaving;   /* and how that varies */
} Pass;

static Vary wider(Vary a, Vary b) { return (Vary){a.among > b.among ? a.among : b.among, a.along | b.along}; }

static bool exceeds(Vary a, Vary b) { return a.among > b.among || (a.along & ~b.along) != 0; }

static void derive_node(Expr *x, void *role) { expr_derive(role, x); }

static Vary of(Pass *pass, Expr *x) {
    if (!x) return (Vary){UNIFORM_ROLE, 0};
    expr_visit(pass->arena, x, derive_node, pass->role);
    return (Vary){x->uniformity, x->along & cluster_axes(pass->prog)};
}

static void widen(Pass *pass, int local, Vary to) {
    Local *row = &pass->role->locals.items[local];
    Vary now = {row->uniformity, row->along}, next = wider(now, to);
    if (!exceeds(next, now)) return;
    row->uniformity = next.among, row->along = next.along;
    pass->changed = true;
}

static Vary leaving(const Pass *pass, const Stmt *target) {
    for (size_t i = 0; i < pass->targets.count; i++)
        if (pass->targets.items[i] == target) return pass->leaving.items[i];
    return (Vary){UNIFORM_ROLE, 0};
}

static void leaves(Pass *pass, Stmt *target, Vary how) {
    if (!exceeds(how, (Vary){UNIFORM_ROLE, 0})) return;
    for (size_t i = 0; i < pass->targets.count; i++) {
        if (pass->targets.items[i] != target) continue;
        if (exceeds(how, pass->leaving.items[i]))
            pass->leaving.items[i] = wider(pass->leaving.items[i], how), pass->changed = true;
        return;
    }
    vec_push(pass->arena, &pass->targets, target);
    vec_push(pass->arena, &pass->leaving, how);
    pass->changed = true;
}

static void acquires(Pass *pass, int handle, Vary under) {
    int pipe = pass->role->handles.items[handle].pipe;
    if (pipe >= 0) pass->prog->pipes.items[pipe].along |= under.along;
}

static void derive_below(Expr *x, void *pass) { of(pass, x); }

static void walk_unsafe(Pass *pass, Stmt *s, Vary under) {
    const Unsafe *what = s->unsafe;
    walk_exprs(s, derive_below, pass);
    if (what->local >= 0) widen(pass, what->local, under);
    if (what->local >= 0 && what->pipe >= 0) widen(pass, what->local, (Vary){UNIFORM_ROLE, pass->prog->pipes.items[what->pipe].along});
    for (size_t i = 0; i < what->operands.count; i++)
        if (what->operands.items[i].local >= 0) widen(pass, what->operands.items[i].local, (Vary){UNIFORM_LANE, cluster_axes(pass->prog)});
}

static void walk(Pass *pass, Stmt *s, Vary under) {
    if (!s) return;
    under = wider(under, leaving(pass, s));
    switch (s->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < s->block.body.count; i++) walk(pass, s->block.body.items[i], under);
        break;
    case S_SCALAR:
        widen(pass, s->scalar.local, wider(under, of(pass, s->scalar.value)));
        if (pass->role->in_turn && pass->in_grid && !pass->role->locals.items[s->scalar.local].in_grid)
            widen(pass, s->scalar.local, (Vary){UNIFORM_INSTANCE, 0});
        break;
    case S_TILE:
        of(pass, s->tile->value);
        if (s->tile->target.element) of(pass, s->tile->target.element);
        for (int i = 0; i < s->tile->target.rank; i++) of(pass, s->tile->target.subs[i]);
        s->tile->along |= under.along;
        break;
    case S_GRID:
        pass->in_grid = true;
        walk(pass, s->grid.body, under);
        pass->in_grid = false;
        break;
    case S_FOR: {
        Vary lo = of(pass, s->loop.lo), how = wider(under, wider(lo, of(pass, s->loop.hi)));
        /* how often it comes is a matter of the body's control: turn by turn the variable is the same in blocks where it begins so */
        widen(pass, s->loop.var, (Vary){how.among, lo.along});
        walk(pass, s->loop.body, wider(how, of(pass, s->loop.where)));
        break;
    }
    case S_IF: {
        Vary how = wider(under, of(pass, s->branch.condition));
        walk(pass, s->branch.then, how);
        walk(pass, s->branch.otherwise, how);
        break;
    }
    case S_LEAVE: leaves(pass, s->leave.target ? s->leave.target : pass->role->body, under); break;
    case S_STAGE:
        acquires(pass, s->stage.handle, under);
        walk(pass, s->stage.body, under);
        break;
    case S_ACQUIRE: acquires(pass, s->acquire.handle, under); break;
    case S_UNSAFE: walk_unsafe(pass, s, under); break;
    case S_TRY:
    case S_RELEASE:
    case S_MOVE: break;
    }
}

static bool has_lanes(const Role *role) {
    for (size_t i = 0; i < role->locals.count; i++)
        if (role->locals.items[i].uniformity == UNIFORM_LANE) return true;
    return false;
}

void elab_derive_uniformity(Arena *arena, Prog *prog, Role *role) {
    if ((role->instances <= 1 && prog->cluster <= 1 && !has_lanes(role)) || !role->body) return;
    Pass pass = {.arena = arena, .prog = prog, .role = role};
    do {
        pass.changed = false;
        walk(&pass, role->body, (Vary){UNIFORM_ROLE, 0});
    } while (pass.changed);
}
