/* Uniformity of data and control, over the instances and lanes of a role and over the blocks of a cluster.
 *
 * A variable varies as what is assigned to it varies, and as the control varies under which it is assigned. The
 * control of a region varies as its condition or bounds do, as the control around it does, and as the control of the
 * LEAVEs that go to it: where some have left, the others are alone. Each variable has one uniformity for the whole
 * role, so the rows need no order: they are gone through until nothing widens, which at most a few rounds for each
 * variable allow. */
#include "flow/uniform.h"

typedef struct Vary {
    Uniformity among; /* the threads of the role */
    uint32_t along;   /* axes of the grid, between blocks of a cluster */
} Vary;

typedef struct Uniform {
    Arena *arena;
    Prog *prog;
    FlowCode *code;
    Role *role;
    Vary *under; /* by region: the control of its rows */
    Vary *left;  /* by region: of the LEAVEs that go to it */
    bool changed;
} Uniform;

static Vary wider(Vary a, Vary b) { return (Vary){a.among > b.among ? a.among : b.among, a.along | b.along}; }

static bool exceeds(Vary a, Vary b) { return a.among > b.among || (a.along & ~b.along) != 0; }

/* ---- data
 * -------------------------------------------------------------------------------------------------------------- */

static void derive_node(Expr *x, void *role) { expr_derive(role, x); }

static void derive(Expr *x, void *data) {
    Uniform *u = data;
    expr_visit(u->arena, x, derive_node, u->role);
}

static Vary of(Uniform *u, Expr *x) {
    if (!x) return (Vary){UNIFORM_ROLE, 0};
    derive(x, u);
    return (Vary){x->uniformity, x->along & cluster_axes(u->prog)};
}

static void widen(Uniform *u, int local, Vary to) {
    if (!valid_index(local, u->role->locals.count)) return;
    Local *row = &u->role->locals.items[local];
    Vary now = {row->uniformity, row->along}, next = wider(now, to);
    if (!exceeds(next, now)) return;
    row->uniformity = next.among, row->along = next.along;
    u->changed = true;
}

static bool in_grid(const Uniform *u, int region) {
    for (; region >= 0; region = u->code->regions.items[region].parent)
        if (u->code->regions.items[region].kind == REGION_GRID) return true;
    return false;
}

/* An instance of a role in turn carries from its iterations of the grid to its next ones what the others do not see. */
static void set(Uniform *u, const Row *row, Vary under) {
    widen(u, row->local, wider(under, of(u, row->value)));
    if (!u->role->in_turn || !valid_index(row->local, u->role->locals.count)) return;
    if (!u->role->locals.items[row->local].in_grid && in_grid(u, row->region))
        widen(u, row->local, (Vary){UNIFORM_INSTANCE, 0});
}

/* Each thread may have its own of what inline PTX gives. */
static void unsafe(Uniform *u, const Unsafe *what, Vary under) {
    if (what->local >= 0) widen(u, what->local, under);
    if (what->local >= 0 && what->pipe >= 0)
        widen(u, what->local, (Vary){UNIFORM_ROLE, u->prog->pipes.items[what->pipe].along});
    for (size_t i = 0; i < what->operands.count; i++)
        widen(u, what->operands.items[i].local, (Vary){UNIFORM_LANE, cluster_axes(u->prog)});
}

static void acquire(Uniform *u, const Row *row, Vary under) {
    if (!valid_index(row->handle, u->role->handles.count)) return;
    int pipe = u->role->handles.items[row->handle].pipe;
    if (pipe >= 0) u->prog->pipes.items[pipe].along |= under.along;
}

/* ---- control
 * ----------------------------------------------------------------------------------------------------------- */

static Vary outside(const Uniform *u, int region) {
    const Region *row = &u->code->regions.items[region];
    Vary none = {UNIFORM_ROLE, 0};
    return wider(row->parent < 0 ? none : u->under[row->parent], u->left[region]);
}

/* How often the iterations come is a matter of the control of the body: in each of them the variable is the same in
 * blocks where it began so. */
static void enter_loop(Uniform *u, int region) {
    const Region *row = &u->code->regions.items[region];
    Vary lo = of(u, row->lo), how = wider(outside(u, region), wider(lo, of(u, row->hi)));
    if (row->kind == REGION_FOR) widen(u, row->var, (Vary){how.among, lo.along});
    u->under[region] = wider(how, of(u, row->where));
}

static void leave(Uniform *u, const Row *row) {
    Vary how = u->under[row->region];
    if (!exceeds(how, u->left[row->target])) return;
    u->left[row->target] = wider(u->left[row->target], how);
    u->changed = true;
}

static void follow(Uniform *u, const Row *row) {
    Vary under = u->under[row->region];
    switch (row->kind) {
    case ROW_LOOP: enter_loop(u, row->region); break;
    case ROW_IF: u->under[row->region] = wider(outside(u, row->region), of(u, row->value)); break;
    case ROW_BLOCK: u->under[row->region] = outside(u, row->region); break;
    case ROW_SET: set(u, row, under); break;
    case ROW_TILE:
        row_exprs(u->code, row, derive, u);
        row->tile->along |= under.along;
        break;
    case ROW_ACQUIRE: acquire(u, row, under); break;
    case ROW_UNSAFE:
        row_exprs(u->code, row, derive, u);
        unsafe(u, row->unsafe, under);
        break;
    case ROW_LEAVE: leave(u, row); break;
    case ROW_NEXT:
    case ROW_ELSE:
    case ROW_END:
    case ROW_EXIT:
    case ROW_OPEN:
    case ROW_CLOSE:
    case ROW_ASK:
    case ROW_RELEASE:
    case ROW_DROP:
    case ROW_MOVE:
    case ROW_LEND:
    case ROW_KEEP:
    case ROW_FLUSH:
    case ROW_TAKE:
    case ROW_PASS:
    case ROW_STEP:
    case ROW_COUNT: break;
    }
}

static bool has_lanes(const Role *role) {
    for (size_t i = 0; i < role->locals.count; i++)
        if (role->locals.items[i].uniformity == UNIFORM_LANE) return true;
    return false;
}

/* A role of one instance, without lanes of `unsafe` and without a cluster, has nothing that varies outside of tile
 * statements. */
void flow_uniform(Arena *arena, Prog *prog, Role *role) {
    FlowCode *code = role->code;
    Uniform u = {.arena = arena, .prog = prog, .code = code, .role = role};
    if (role->instances <= 1 && prog->cluster <= 1 && !has_lanes(role)) return;
    u.under = NEW_ARRAY(arena, Vary, code->regions.count + 1);
    u.left = NEW_ARRAY(arena, Vary, code->regions.count + 1);
    do {
        u.changed = false;
        for (size_t at = 0; at < code->rows.count; at++) follow(&u, &code->rows.items[at]);
    } while (u.changed);
    for (size_t r = 0; r < code->regions.count; r++)
        code->regions.items[r].control = u.under[r].among, code->regions.items[r].along = u.under[r].along;
}
