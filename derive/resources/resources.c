/* Resources of a block. Needs classes and the uses of pipes; plans warps, lanes, named
 * barriers, arrivals and the map of shared memory, or refuses with a table of their users. */
#include "derive/edit.h"
#include "derive/resources/resources.h"
#include "flow/multiplied.h"

/* ---- one lane -------------------------------------------------------------------------------- */

typedef struct LaneScan {
    Resources *res;
    bool needs_lanes; /* some statement is executed by all lanes */
    const Role *role;
    bool waits; /* some statement waits for the instance's threads */
} LaneScan;

static void scan_generic(Access *access, bool written, void *data) {
    LaneScan *scan = data;
    (void)written;
    if (access->space != SPACE_GLOBAL) scan->needs_lanes = true;
}

static void scan_row(LaneScan *scan, const Row *row, const RowOrder *order) {
    const Unsafe *what = row->unsafe;
    if (what) scan->needs_lanes |= what->kind != UNSAFE_VALUE || what->value != VALUE_INDEX;
    if (row->kind != ROW_TILE)
        row_accesses(scan->res->arena, scan->role->code, row, scan_generic, scan);
    else if (!row->tile || class_rows[row->tile->class].mover != MOVER_ENGINE)
        scan->needs_lanes = true;
    if (row->kind == ROW_TILE && row->tile) scan->waits |= order->threads;
}

static void settle_lanes(Resources *res, Role *role, int *next_barrier) {
    RolePlan *plan = edit_role(res->prog, role);
    LaneScan scan = {.res = res, .role = role};
    for (size_t at = 0; at < role->code->rows.count; at++)
        scan_row(&scan, &role->code->rows.items[at], &plan->order[at]);
    /* threads of an instance read data written by others of it, or overwrite data read by others */
    bool exchanges = scan.waits;
    role->one_lane = role->instances == 1 && role->warps == 1 && !scan.needs_lanes;
    for (size_t i = 0; i < role->tiles.count; i++) exchanges |= !role->tiles.items[i].in_registers;
    if (role->warps > 1 && exchanges) {
        plan->barrier = *next_barrier;
        *next_barrier += role->instances;
    }
    plan->tokens = *next_barrier;
    *next_barrier += role->turns * role->instances;
}

static int barriers_end(const Resources *res, const Role *role) {
    const RolePlan *plan = plan_role(res->prog, role);
    if (role->turns) return plan->tokens + role->turns * role->instances;
    return plan->barrier ? plan->barrier + role->instances : 0;
}

static void settle_barriers(Resources *res) {
    Prog *prog = res->prog;
    int next = 1; /* 0 belongs to the whole block */
    for (size_t i = 0; i < prog->roles.count; i++) settle_lanes(res, &prog->roles.items[i], &next);
    if (!prog->target || next <= prog->target->named_barriers) return;
    const Role *last = NULL;
    for (size_t i = 0; i < prog->roles.count; i++)
        if (barriers_end(res, &prog->roles.items[i]) > prog->target->named_barriers)
            last = last ? last : &prog->roles.items[i];
    Diag *diag = diag_at(res->diags, P0504, last ? last->span : prog->span,
                         "the roles need %d named barriers, but a block of %s has %d", next - 1,
                         prog->target->name, prog->target->named_barriers - 1);
    diag_primary(res->diags, diag, "none is left for this role");
    diag_note(res->diags, diag,
              "each instance of several warps that shares tiles takes one, and each instance takes "
              "one per `turn`");
    diag_help(res->diags, diag, "use roles of one warp, or fewer instances");
}

/* ---- arrivals -------------------------------------------------------------------------------- */

static void add_piece(Str *text, const char *piece) {
    if (text->length) str_add(text, " + ");
    str_add(text, piece);
}

static const char *warps_piece(Resources *res, const Role *role, int pipe) {
    int warps = role_takers(role, pipe) * role->warps;
    if (role->one_lane) return arena_printf(res->arena, "1 lane of `%s`", role->name);
    return arena_printf(res->arena, "%d warp%s of `%s`", warps, warps == 1 ? "" : "s", role->name);
}

/* Every phase of a barrier needs at least one arrival of each warp that waits for it: otherwise
 * that warp could be lapped. */
static void settle_full(Resources *res, int index, const Pipe *pipe) {
    PipePlan *plan = edit_pipe(res->prog, pipe);
    uint32_t *arrivals = &plan->arrivals[END_PRODUCE];
    Role *role = &res->prog->roles.items[pipe->producer];
    PipeUse *use = edit_use(role, index);
    unsigned *by = &use->arrives[END_PRODUCE];
    int takes = role_takers(role, index), warps = takes * role->warps;
    Str text = str_new(res->arena);
    *by = agents_arrive(agents_at(use->agents, END_PRODUCE));
    if (use->waits_copies) *by = (*by & ~ARRIVES_LANES) | ARRIVES_WARPS;
    if (*by == ARRIVES_NOTHING || (!(*by & ARRIVES_LANES) && warps > 1)) *by |= ARRIVES_WARPS;
    if (*by & ARRIVES_BYTES) {
        *arrivals += (uint32_t)takes;
        add_piece(&text, arena_printf(res->arena, "%d (tensor copies of `%s`, %u bytes%s)", takes,
                                      role->name, plan_role(res->prog, role)->stages.bytes[index],
                                      takes > 1 ? " each" : ""));
    }
    if (*by & ARRIVES_LANES) {
        *arrivals += (uint32_t)(warps * WARP_LANES);
        add_piece(&text, arena_printf(res->arena, "%d lanes of `%s` (cp.async)", warps * WARP_LANES,
                                      role->name));
    }
    if (*by & ARRIVES_WARPS) {
        *arrivals += (uint32_t)warps;
        add_piece(&text, warps_piece(res, role, index));
    }
    plan->reasons[END_PRODUCE] = text.text;
}

/* A matrix instruction is executed by all warps of a warpgroup (PTX ISA 9.7.15.1): when it is
 * complete in one warp, all have issued it. This does not hold for a stage that is released
 * without one. */
static void settle_empty(Resources *res, const Role *role, int index, Str *text) {
    uint32_t *arrivals =
        &edit_pipe(res->prog, &res->prog->pipes.items[index])->arrivals[END_CONSUME];
    PipeUse *use = edit_use(role, index);
    int takes = role_takers(role, index);
    bool once = agents_arrive(agents_at(use->agents, END_CONSUME)) == ARRIVES_INSTANCE &&
                flow_always_multiplied(res->arena, role->code, index);
    use->arrives[END_CONSUME] = once ? ARRIVES_INSTANCE : ARRIVES_WARPS;
    if (!once) {
        *arrivals += (uint32_t)(takes * role->warps);
        add_piece(text, warps_piece(res, role, index));
        return;
    }
    *arrivals += (uint32_t)takes;
    add_piece(text, arena_printf(res->arena, "%d warpgroup%s of `%s` (matrix instructions)", takes,
                                 takes == 1 ? "" : "s", role->name));
}

/* Ordinary accesses to a stage are visible to the async proxy only after a fence. */
static bool are_apart(Agents before, Agents after) {
    return agents_through(before, PROXY_GENERIC) && agents_through(after, PROXY_ASYNC);
}

static void settle_fences(const Resources *res, int index, const Pipe *pipe) {
    const Role *roles = res->prog->roles.items;
    Agents filled = agents_at(roles[pipe->producer].pipes[index].agents, END_PRODUCE);
    Agents read = 0; /* by consumers */
    /* without copy engine there is no async proxy, and an author's PTX does not use it */
    if (res->prog->target && !res->prog->target->has[CAP_COPY_ENGINE]) return;
    for (size_t c = 0; c < pipe->consumers.count; c++) {
        int consumer = pipe->consumers.items[c];
        Agents used = agents_at(roles[consumer].pipes[index].agents, END_CONSUME);
        read |= used;
        res->plan->roles[consumer].fenced[END_CONSUME][index] = are_apart(used, filled);
    }
    res->plan->roles[pipe->producer].fenced[END_PRODUCE][index] = are_apart(filled, read);
}

static bool has_uses(const Prog *prog, int role) {
    return valid_index(role, prog->roles.count) && prog->roles.items[role].pipes;
}

/* True if both ends are known */
static bool has_ends(const Prog *prog, const Pipe *pipe) {
    bool known = has_uses(prog, pipe->producer);
    for (size_t c = 0; c < pipe->consumers.count; c++)
        known = known && has_uses(prog, pipe->consumers.items[c]);
    return known;
}

/* Stages of blocks that a block copies into: each is overwritten only after all of them have
 * released it */
static void settle_empties(Resources *res, int index, const Pipe *pipe) {
    Prog *prog = res->prog;
    PipePlan *plan = edit_pipe(prog, pipe);
    Str text = str_new(res->arena);
    for (size_t c = 0; c < pipe->consumers.count; c++) {
        int consumer = pipe->consumers.items[c];
        if (has_uses(prog, consumer)) settle_empty(res, &prog->roles.items[consumer], index, &text);
    }
    plan->reasons[END_CONSUME] = text.text;
    int blocks = __builtin_popcount(cluster_reach(prog, pipe));
    if (blocks == 1) return;
    plan->arrivals[END_CONSUME] *= (uint32_t)blocks;
    plan->reasons[END_CONSUME] =
        arena_printf(res->arena, "(%s) x %d blocks that its copies reach", text.text, blocks);
}

/* Declared numbers replace the derived ones: a rule of check/ compares them with the arrivals. */
static void settle_declared(PipePlan *plan, const Pipe *pipe) {
    static const char *const words[] = {
        [END_PRODUCE] = "declared: `arrivals full`", [END_CONSUME] = "declared: `arrivals empty`"};
    for (End end = END_PRODUCE; end <= END_CONSUME; end++) {
        if (pipe->declared[end] <= 0) continue;
        plan->arrivals[end] = (uint32_t)pipe->declared[end];
        plan->reasons[end] = words[end];
    }
}

static void settle_arrivals(Resources *res) {
    Prog *prog = res->prog;
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        if (has_uses(prog, pipe->producer)) settle_full(res, (int)p, pipe);
        if (has_ends(prog, pipe)) settle_fences(res, (int)p, pipe);
        settle_empties(res, (int)p, pipe);
        settle_declared(edit_pipe(prog, pipe), pipe);
    }
}

void resources_check(Arena *arena, Prog *prog, Diags *diags) {
    Resources res = {.arena = arena, .prog = prog, .plan = edit_plan(prog), .diags = diags};
    for (size_t r = 0; r < prog->roles.count; r++) resources_tiles(prog, &prog->roles.items[r]);
    resources_warps(&res);
    settle_barriers(&res);
    settle_arrivals(&res);
    resources_registers(&res);
    resources_memory(&res);
    resources_launch(&res);
}
