/* Uniformity of locals: a local varies as what is assigned to it varies, and as the conditions and loops vary under which it
 * is assigned; a loop varies as the conditions under which it is left. What is assigned late in a loop is read early in the next
 * iteration, so this is repeated until nothing changes. Roles of one instance have nothing that varies outside of tiles. In a role in
 * turn an instance carries from its iterations of the grid to its next ones what the others do not see. */
#include "check/elaborate.h"

typedef struct Pass {
    Arena *arena;
    Role *role;
    bool changed;
    bool in_grid;            /* inside of the loop over the grid */
    VEC(Stmt *) targets;     /* what is left early, */
    VEC(Uniformity) leaving; /* and how that varies */
} Pass;

static Uniformity wider(Uniformity a, Uniformity b) { return a > b ? a : b; }

static void derive_node(Expr *x, void *role) { elab_derive(role, x); }

static Uniformity of(Pass *pass, Expr *x) {
    if (!x) return UNIFORM_ROLE;
    expr_visit(pass->arena, x, derive_node, pass->role);
    return x->uniformity;
}

static void widen(Pass *pass, int local, Uniformity to) {
    Local *row = &pass->role->locals.items[local];
    if (to <= row->uniformity) return;
    row->uniformity = to;
    pass->changed = true;
}

static Uniformity leaving(const Pass *pass, const Stmt *target) {
    for (size_t i = 0; i < pass->targets.count; i++)
        if (pass->targets.items[i] == target) return pass->leaving.items[i];
    return UNIFORM_ROLE;
}

static void leaves(Pass *pass, Stmt *target, Uniformity how) {
    if (how == UNIFORM_ROLE) return;
    for (size_t i = 0; i < pass->targets.count; i++) {
        if (pass->targets.items[i] != target) continue;
        if (how > pass->leaving.items[i]) pass->leaving.items[i] = how, pass->changed = true;
        return;
    }
    vec_push(pass->arena, &pass->targets, target);
    vec_push(pass->arena, &pass->leaving, how);
    pass->changed = true;
}

static void walk(Pass *pass, Stmt *s, Uniformity under) {
    if (!s) return;
    under = wider(under, leaving(pass, s));
    switch (s->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < s->block.body.count; i++) walk(pass, s->block.body.items[i], under);
        break;
    case S_SCALAR:
        widen(pass, s->scalar.local, wider(under, of(pass, s->scalar.value)));
        if (pass->role->in_turn && pass->in_grid && !pass->role->locals.items[s->scalar.local].in_grid)
            widen(pass, s->scalar.local, UNIFORM_INSTANCE);
        break;
    case S_TILE:
        of(pass, s->tile->value);
        if (s->tile->target.element) of(pass, s->tile->target.element);
        for (int i = 0; i < s->tile->target.rank; i++) of(pass, s->tile->target.subs[i]);
        break;
    case S_GRID:
        pass->in_grid = true;
        walk(pass, s->grid.body, under);
        pass->in_grid = false;
        break;
    case S_FOR: {
        Uniformity how = wider(under, wider(of(pass, s->loop.lo), of(pass, s->loop.hi)));
        widen(pass, s->loop.var, how);
        walk(pass, s->loop.body, wider(how, of(pass, s->loop.where)));
        break;
    }
    case S_IF: {
        Uniformity how = wider(under, of(pass, s->branch.condition));
        walk(pass, s->branch.then, how);
        walk(pass, s->branch.otherwise, how);
        break;
    }
    case S_LEAVE: leaves(pass, s->leave.target ? s->leave.target : pass->role->body, under); break;
    case S_STAGE: walk(pass, s->stage.body, under); break;
    case S_ACQUIRE:
    case S_RELEASE:
    case S_MOVE: break;
    }
}

void elab_derive_uniformity(Arena *arena, Role *role) {
    if (role->instances <= 1 || !role->body) return;
    Pass pass = {.arena = arena, .role = role};
    do {
        pass.changed = false;
        walk(&pass, role->body, UNIFORM_ROLE);
    } while (pass.changed);
}
