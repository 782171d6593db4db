/* Uniformity of data and control, over the instances and lanes of a role and over the blocks of
 * a cluster. A rule of the solver; a state has the variation of each variable.
 *
 * A variable varies as the assigned values do, and as the control of its assignments does. The
 * control of a row varies as the conditions and bounds of enclosing regions do. If a LEAVE in a
 * region takes some of the diverged threads further out, the other threads are alone up to the
 * END of the region in which all have rejoined. An expression varies as it does in any row that
 * evaluates it. */
#include "flow/uniform.h"

#include "flow/solve.h"

#include <string.h>

/* A variation: a set, so joins are unions. Variation between lanes implies variation between
 * instances. */
typedef uint8_t Vary;

#define INSTANCES 1u
#define LANES     2u
#define AMONG     3u
#define AXES      2 /* first bit for blocks along axes of the cluster */
_Static_assert(AXES + PROG_MAX_RANK <= 8, "a Vary has a bit for each axis");

typedef struct Uniform {
    Arena *arena;
    Prog *prog;
    Role *role;
    FlowCode *code;
    int *meetings; /* by region: code_meetings */
    int *chain;    /* scratch: a region, its parent, .. */
} Uniform;

/* A state: by local; by region around the row: variation of entering it, and of leaving it; by
 * pipe: variation of the number of acquires */
typedef struct State {
    Vary *locals, *regions, *pipes;
    size_t size;
    Vary all[];
} State;

static Vary vary(const Uniform *u, Uniformity among, uint32_t along) {
    static const Vary sets[] = {
        [UNIFORM_ROLE] = 0, [UNIFORM_INSTANCE] = INSTANCES, [UNIFORM_LANE] = INSTANCES | LANES};
    return (Vary)(sets[among] | (along & cluster_axes(u->prog)) << AXES);
}

static void widen(Vary vary, Uniformity *among, uint32_t *along) {
    Uniformity own = vary & LANES       ? UNIFORM_LANE
                     : vary & INSTANCES ? UNIFORM_INSTANCE
                                        : UNIFORM_ROLE;
    if (own > *among) *among = own;
    *along |= (uint32_t)vary >> AXES;
}

/* ---- states ---------------------------------------------------------------------------------- */

static State *state_new(Flow *flow) {
    const Uniform *u = flow->data;
    size_t locals = u->role->locals.count, regions = u->code->regions.count;
    size_t size = locals + regions + u->prog->pipes.count;
    State *state = flow_spare(flow);
    if (!state) state = arena_alloc(flow->arena, sizeof(State) + size);
    state->locals = state->all;
    state->regions = state->locals + locals;
    state->pipes = state->regions + regions;
    state->size = size;
    return state;
}

static void *start(Flow *flow) {
    State *state = state_new(flow);
    memset(state->all, 0, state->size);
    return state;
}

static void *copy(Flow *flow, const void *from) {
    State *state = state_new(flow);
    memcpy(state->all, ((const State *)from)->all, state->size);
    return state;
}

static bool join(Flow *flow, void *to, const void *from, int at, int source) {
    State *state = to;
    const State *other = from;
    Vary grown = 0;
    (void)at, (void)source;
    arena_count(flow->arena, state->size / 16);
    for (size_t i = 0; i < state->size; i++) {
        grown |= (Vary)(other->all[i] & ~state->all[i]);
        state->all[i] |= other->all[i];
    }
    return grown != 0;
}

/* ---- data ------------------------------------------------------------------------------------ */

typedef struct Evaluated {
    const Uniform *uniform;
    const State *state;
    Vary vary;
} Evaluated;

static void derive_node(Expr *x, void *data) {
    const Evaluated *e = data;
    if (x->kind == X_LOCAL) {
        uint32_t along = x->along;
        widen(e->state->locals[x->index], &x->uniformity, &along);
        x->along = (uint16_t)along;
    }
    expr_derive(e->uniform->role, x);
}

static void derive(Expr *x, void *data) {
    Evaluated *e = data;
    expr_visit(e->uniform->arena, x, derive_node, e);
    e->vary |= vary(e->uniform, x->uniformity, x->along);
}

static Vary of(const Uniform *u, const State *state, Expr *x) {
    Evaluated e = {u, state, 0};
    if (x) derive(x, &e);
    return e.vary;
}

static void put(const Uniform *u, State *state, int local, Vary value) {
    if (!valid_index(local, u->role->locals.count)) return;
    Local *row = &u->role->locals.items[local];
    state->locals[local] = value;
    widen(value, &row->uniformity, &row->along);
}

/* ---- control --------------------------------------------------------------------------------- */

static Vary control(const Uniform *u, const State *state, int region) {
    Vary all = 0;
    int depth = 0;
    for (; region >= 0; region = u->code->regions.items[region].parent, depth++)
        all |= state->regions[region];
    arena_count(u->arena, (uint64_t)depth / 8);
    return all;
}

/* Publishes the control of the region and of those around it, up to `home` */
static void publish(const Uniform *u, const State *state, int region, int home) {
    Region *regions = u->code->regions.items;
    Vary all = control(u, state, regions[home].parent);
    int count = 0;
    for (; region > home; region = regions[region].parent) u->chain[count++] = region;
    u->chain[count++] = home;
    arena_count(u->arena, (uint64_t)count / 8);
    while (count-- > 0) {
        Region *row = &regions[u->chain[count]];
        all |= state->regions[u->chain[count]];
        widen(all, &row->control, &row->along);
    }
}

/* Adds the divergence `own` in the region. */
static void part(const Uniform *u, State *state, int region, Vary own) {
    int home = u->code->rows.items[u->meetings[region]].region;
    if (!own) return;
    state->regions[home] |= own;
    publish(u, state, region, home);
}

static void enter(const Uniform *u, State *state, int region, Vary own) {
    publish(u, state, region, region);
    part(u, state, region, own);
}

/* The number of iterations affects the control of the body: in each iteration the variable is
 * the same in blocks if it began so. A `where` reads only the variable and the axes, which do
 * not change. */
static void enter_loop(const Uniform *u, State *state, int region) {
    const Region *row = &u->code->regions.items[region];
    Vary lo = of(u, state, row->lo);
    enter(u, state, region, lo | of(u, state, row->hi));
    if (row->kind == REGION_FOR)
        put(u, state, row->var, (control(u, state, region) & AMONG) | (lo & ~AMONG));
    for (size_t a = 0; row->kind == REGION_GRID && a < u->prog->axes.count; a++)
        put(u, state, row->axes[a], vary(u, UNIFORM_ROLE, (uint32_t)1 << a));
    part(u, state, region, of(u, state, row->where));
}

/* Threads that are still in the loop take part in the next iteration. */
static void end_iteration(const Uniform *u, State *state, int region) {
    int var = u->code->regions.items[region].var;
    if (u->code->regions.items[region].kind != REGION_FOR || var < 0) return;
    put(u, state, var, state->locals[var] | (control(u, state, region) & AMONG));
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* An instance of a role in turn keeps values from its iterations of the grid to its next ones,
 * which the other instances do not have. */
static void set(const Uniform *u, State *state, const Row *row) {
    Vary value = of(u, state, row->value) | control(u, state, row->region);
    bool known = valid_index(row->local, u->role->locals.count);
    bool carried = known && u->role->in_turn && !u->role->locals.items[row->local].in_grid;
    if (carried && code_in_grid(u->code, row->region)) value |= INSTANCES;
    put(u, state, row->local, value);
}

/* A value of `unsafe`, which only its own statement reads. In a role in turn each instance has
 * its own stages. */
static Uniformity own_value(const Uniform *u, const Unsafe *what) {
    Uniformity own = u->role->instances > 1 ? UNIFORM_INSTANCE : UNIFORM_ROLE;
    switch (what->value) {
    case VALUE_INDEX:
    case VALUE_PHASE:
    case VALUE_BARRIER: return u->role->in_turn ? own : UNIFORM_ROLE;
    case VALUE_ADDRESS:
        if (what->pipe >= 0) return u->role->in_turn ? own : UNIFORM_ROLE;
        return what->tile->space == SPACE_GLOBAL ? UNIFORM_ROLE : own;
    case VALUE_LANE:
    case VALUE_WARP: break;
    }
    return UNIFORM_LANE;
}

/* Outputs of inline PTX may differ between all threads. */
static void unsafe(const Uniform *u, State *state, const Row *row) {
    const Unsafe *what = row->unsafe;
    Vary taken = what->pipe >= 0 ? state->pipes[what->pipe] : 0;
    if (row->local >= 0) put(u, state, row->local, taken | vary(u, own_value(u, what), 0));
    for (size_t i = 0; i < what->operands.count; i++)
        put(u, state, what->operands.items[i].local, vary(u, UNIFORM_LANE, UINT32_MAX));
}

/* The number of acquires of a pipe matters if blocks differ. */
static void acquire(const Uniform *u, State *state, const Row *row) {
    if (!valid_index(row->handle, u->role->handles.count)) return;
    int pipe = u->role->handles.items[row->handle].pipe;
    if (pipe < 0) return;
    state->pipes[pipe] |= control(u, state, row->region) & ~AMONG;
    u->prog->pipes.items[pipe].along |= (uint32_t)state->pipes[pipe] >> AXES;
}

static void set_row(Flow *flow, int at, void *state) {
    set(flow->data, state, code_row(flow->code, at));
}

static void evaluate_row(Flow *flow, int at, void *state) {
    const Uniform *u = flow->data;
    Evaluated evaluated = {u, state, 0};
    row_exprs(u->code, code_row(u->code, at), derive, &evaluated);
}

static void tile_row(Flow *flow, int at, void *state) {
    const Uniform *u = flow->data;
    const Row *row = code_row(u->code, at);
    evaluate_row(flow, at, state);
    row->tile->along |= (uint32_t)control(u, state, row->region) >> AXES;
}

static void unsafe_row(Flow *flow, int at, void *state) {
    evaluate_row(flow, at, state);
    unsafe(flow->data, state, code_row(flow->code, at));
}

static void acquire_row(Flow *flow, int at, void *state) {
    acquire(flow->data, state, code_row(flow->code, at));
}

static void loop_row(Flow *flow, int at, void *state) {
    enter_loop(flow->data, state, code_row(flow->code, at)->region);
}

static void next_row(Flow *flow, int at, void *state) {
    end_iteration(flow->data, state, code_row(flow->code, at)->region);
}

static void if_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    enter(flow->data, state, row->region, of(flow->data, state, row->value));
}

static void block_row(Flow *flow, int at, void *state) {
    enter(flow->data, state, code_row(flow->code, at)->region, 0);
}

/* All threads have rejoined. */
static void end_row(Flow *flow, int at, void *state) {
    ((State *)state)->regions[code_row(flow->code, at)->region] = 0;
}

/* Results are stored during the rounds, which only widen them. */
static bool reports(const Flow *flow) {
    (void)flow;
    return false;
}

static const Rule rule = {.name = "uniform",
                          .together = true,
                          .reuses = true,
                          .start = start,
                          .copy = copy,
                          .join = join,
                          .on = {.access = {[ACCESS_SETS] = set_row,
                                            [ACCESS_WRITES] = tile_row,
                                            [ACCESS_FETCHES] = evaluate_row,
                                            [ACCESS_RAW] = unsafe_row},
                                 .stage = {[STAGE_TAKE] = acquire_row},
                                 .control = {[CONTROL_LOOP] = loop_row,
                                             [CONTROL_NEXT] = next_row,
                                             [CONTROL_IF] = if_row,
                                             [CONTROL_BLOCK] = block_row,
                                             [CONTROL_END] = end_row}},
                          .reports = reports};

/* In a role of one instance, without `unsafe` and without a cluster, nothing varies outside of
 * tile statements. */
static bool may_vary(const Prog *prog, const Role *role) {
    bool unsafe = false;
    for (size_t at = 0; at < role->code->rows.count; at++)
        unsafe |= role->code->rows.items[at].kind == ROW_UNSAFE;
    return role->instances > 1 || prog->cluster > 1 || unsafe;
}

void flow_uniform(Arena *arena, Prog *prog, Role *role) {
    FlowCode *code = role->code;
    Uniform u = {.arena = arena, .prog = prog, .role = role, .code = code};
    if (!may_vary(prog, role)) return;
    u.meetings = code_meetings(arena, code, true);
    u.chain = NEW_ARRAY(arena, int, code->regions.count + 1);
    solve(arena, code, &rule, &u);
}
