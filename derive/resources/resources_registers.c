/* Registers of a block's threads. All are launched with the same number; setmaxnreg, which whole
 * warpgroups execute, moves registers from warpgroups that issue copies to those that compute.
 * Budgets are stated, or derived if accumulators of matrix instructions need them. */
#include "derive/edit.h"
#include "derive/resources/resources.h"

/* limits of setmaxnreg: multiples of 8 from 24 to 256 */
#define REGISTERS_LEAST 24
#define REGISTERS_MOST  256

/* Derived budgets */
#define ACCUMULATING_MOST       240
#define OTHER_THAN_SUMS         26 /* registers other than one instruction's sums, measured */
#define OTHER_THAN_ACCUMULATORS 32 /* addresses, descriptors, loop and stage counters */
/* one lane that issues copies; with fewer, ptxas may ignore setmaxnreg (C7507) */
#define ISSUING 40
#define COPYING 40 /* all lanes, with little computation */
/* the least other registers of a role with tiles; 11 were measured for a tile that is filled and
 * stored */
#define OTHER_THAN_TILES 8
/* far above what a thread can have; sums of a few do not overflow */
#define TILE_REGISTERS_MOST (INT32_MAX / 4)

/* ---- stated ---------------------------------------------------------------------------------- */

static bool budgets_are_possible(Resources *res) {
    bool possible = true;
    for (size_t i = 0; i < res->prog->roles.count; i++) {
        const Role *role = &res->prog->roles.items[i];
        if (!role->regs ||
            (role->regs % 8 == 0 && role->regs >= REGISTERS_LEAST && role->regs <= REGISTERS_MOST))
            continue;
        int near = role->regs < REGISTERS_LEAST  ? REGISTERS_LEAST
                   : role->regs > REGISTERS_MOST ? REGISTERS_MOST
                                                 : (role->regs + 4) / 8 * 8;
        Diag *diag =
            diag_at(res->diags, P0502, role->span,
                    "`regs %d` of role `%s` is not a valid register count", role->regs, role->name);
        diag_note(res->diags, diag, "setmaxnreg takes a multiple of 8, from %d to %d per thread",
                  REGISTERS_LEAST, REGISTERS_MOST);
        diag_help(res->diags, diag, "write `regs %d`", near);
        possible = false;
    }
    return possible;
}

static bool in_group(const Resources *res, const Role *role, int group) {
    int first = plan_role(res->prog, role)->first_warp;
    return first / WARPGROUP_WARPS <= group &&
           group <= (first + role_warps(role) - 1) / WARPGROUP_WARPS;
}

static const char *roles_of(Resources *res, int group) {
    Str text = str_new(res->arena);
    for (size_t i = 0; i < res->prog->roles.count; i++) {
        const Role *role = &res->prog->roles.items[i];
        if (in_group(res, role, group))
            str_printf(&text, "%s`%s`", text.length ? ", " : "", role->name);
    }
    return text.length ? text.text : "idle";
}

static int group_value(const Resources *res, int group) {
    return res->groups.regs[group] ? res->groups.regs[group] : res->plan->launch_registers;
}

static void refuse_pool(Resources *res, const Role *greedy, int requested) {
    int count = res->groups.count, launch = res->plan->launch_registers, shares = 0, others = 0;
    Diag *diag = diag_at(res->diags, P0503, greedy->span,
                         "the register budgets take %d registers, but a "
                         "block has %d",
                         requested, launch * count * WARPGROUP_LANES);
    diag_primary(res->diags, diag, "`regs %d` is the largest", greedy->regs);
    diag_note(res->diags, diag,
              "a block of %d threads is launched with %d registers per thread: "
              "%d in all",
              count * WARPGROUP_LANES, launch, launch * count * WARPGROUP_LANES);
    for (int g = 0; g < count; g++) {
        int value = group_value(res, g);
        diag_note(res->diags, diag, "warps %d to %d (%s): %d x %d = %d%s", g * WARPGROUP_WARPS,
                  g * WARPGROUP_WARPS + WARPGROUP_WARPS - 1, roles_of(res, g), value,
                  WARPGROUP_LANES, value * WARPGROUP_LANES,
                  res->groups.regs[g] ? "" : ", as launched");
        shares += value == greedy->regs;
        if (value != greedy->regs) others += value;
    }
    int fits = (launch * count - others) / shares / 8 * 8;
    if (fits >= REGISTERS_LEAST)
        diag_help(res->diags, diag,
                  "write `regs %d` here, or a smaller `regs` for another "
                  "warpgroup",
                  fits);
    else
        diag_help(res->diags, diag, "write a smaller `regs` for the other warpgroups");
}

/* ---- register tiles -------------------------------------------------------------------------- */

/* How many adjacent elements of a thread share a register */
static int packed_of(const RoleTile *tile, const RegisterLayout *held) {
    int axis, bytes = element_rows[tile->type].bytes;
    bool narrow = bytes == 2 || (bytes == 1 && element_rows[tile->type].kind == ELEMENT_FLOAT);
    return narrow && layout_vector(held, &axis) % (4 / bytes) == 0 ? 4 / bytes : 1;
}

static void count_tile(const RoleTile *tile, TilePlan *plan) {
    int64_t held = layout_registers(&plan->held),
            words = (element_rows[element_rows[tile->type].widens].bytes + 3) / 4;
    plan->packed = packed_of(tile, &plan->held);
    plan->registers = held > TILE_REGISTERS_MOST ? TILE_REGISTERS_MOST
                      : plan->packed > 1         ? held / plan->packed
                                                 : held * words;
}

/* True if the role holds this register tile at the declaration of another one, by scope */
static bool holds_tile(const Role *role, size_t tile, size_t where) {
    const RoleTile *held = &role->tiles.items[tile];
    return held->in_registers && tile <= where && (int)where < held->until;
}

void resources_tiles(const Prog *prog, const Role *role) {
    RolePlan *plan = edit_role(prog, role);
    int64_t most = 0;
    for (size_t at = 0; at < role->tiles.count; at++) {
        int64_t registers = 0;
        const RoleTile *tile = &role->tiles.items[at];
        if (tile->in_registers) count_tile(tile, edit_tile(prog, role, (int)at));
        plan->accumulates |= tile->in_registers && layout_accumulates(&plan->tiles[at].held);
        for (size_t i = 0; i <= at; i++)
            if (holds_tile(role, i, at)) registers += plan->tiles[i].registers;
        if (registers > most) most = registers, plan->fullest = at;
    }
    plan->tile_registers = most > INT32_MAX / 2 ? INT32_MAX / 2 : (int)most;
}

/* ---- accumulators ---------------------------------------------------------------------------- */

int accumulator_registers(const Prog *prog, const Role *role) {
    const RolePlan *plan = plan_role(prog, role);
    return plan->accumulates ? plan->tile_registers : 0;
}

bool hands_out_registers(const Prog *prog) {
    for (size_t i = 0; i < prog->roles.count; i++)
        if (prog->roles.items[i].regs || accumulator_registers(prog, &prog->roles.items[i]) > 0)
            return true;
    return false;
}

/* The work of the roles of a warpgroup; a greater one needs more registers */
typedef enum GroupWork {
    WORK_STATED,
    WORK_ISSUES,
    WORK_COPIES,
    WORK_COMPUTES,
    WORK_ACCUMULATES
} GroupWork;

static GroupWork work_of(const Resources *res, int group) {
    GroupWork work = WORK_ISSUES;
    if (res->groups.regs[group]) return WORK_STATED;
    for (size_t i = 0; i < res->prog->roles.count; i++) {
        const Role *role = &res->prog->roles.items[i];
        GroupWork role_work = role_warps(role) >= WARPGROUP_WARPS ? WORK_COMPUTES : WORK_COPIES;
        if (!in_group(res, role, group)) continue;
        if (role->one_lane) role_work = WORK_ISSUES;
        if (accumulator_registers(res->prog, role) > 0) role_work = WORK_ACCUMULATES;
        if (role_work > work) work = role_work;
    }
    return work;
}

/* Registers of each group whose work is `from` or more, if the others get little */
static int share(const Resources *res, const GroupWork *work, GroupWork from) {
    int left = res->plan->launch_registers * res->groups.count, open = 0;
    for (int g = 0; g < res->groups.count; g++) {
        if (work[g] >= from)
            open++;
        else
            left -= work[g] == WORK_STATED   ? res->groups.regs[g]
                    : work[g] == WORK_ISSUES ? ISSUING
                                             : COPYING;
    }
    int each = open ? left / open / 8 * 8 : 0;
    return each > ACCUMULATING_MOST ? ACCUMULATING_MOST
           : each < REGISTERS_LEAST ? REGISTERS_LEAST
                                    : each;
}

/* Sets groups without a stated budget, if some of them accumulate: computing groups share the
 * registers that the others leave; if that is too little for the accumulating ones, only these
 * share them. */
static void derive(Resources *res) {
    Groups *groups = &res->groups;
    GroupWork work[MAX_GROUPS] = {WORK_STATED}, most = WORK_STATED, from = WORK_COMPUTES;
    int need = 0;
    if (groups->count == 1) return; /* no other group */
    for (int g = 0; g < groups->count; g++) {
        work[g] = work_of(res, g);
        if (work[g] > most) most = work[g];
    }
    if (most != WORK_ACCUMULATES) return;
    for (size_t i = 0; i < res->prog->roles.count; i++) {
        const Role *role = &res->prog->roles.items[i];
        int wanted = accumulator_registers(res->prog, role) + OTHER_THAN_ACCUMULATORS;
        if (!role->regs && wanted > need) need = wanted;
    }
    if (share(res, work, from) < need) from = WORK_ACCUMULATES;
    int each = share(res, work, from);
    for (int g = 0; g < groups->count; g++)
        if (work[g] != WORK_STATED)
            groups->regs[g] = work[g] >= from ? each : work[g] == WORK_ISSUES ? ISSUING : COPYING;
}

/* "`dk` and `dv`": the tiles that are live where the role needs most, with so many columns; their
 * registers */
static const char *tiles_with(const Resources *res, const Role *role, int64_t columns,
                              int64_t *registers) {
    const RolePlan *plan = plan_role(res->prog, role);
    Str text = str_new(res->arena);
    const char *last = NULL;
    *registers = 0;
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        if (!holds_tile(role, i, plan->fullest) || tile->rank != 2 || tile->extents[1] != columns)
            continue;
        *registers += plan->tiles[i].registers;
        if (last) str_printf(&text, "%s`%s`", text.length ? ", " : "", last);
        last = tile->name;
    }
    if (last) str_printf(&text, "%s`%s`", text.length ? " and " : "", last);
    return text.text;
}

/* How few columns of which tiles save what is missing */
static void help_columns(Resources *res, Diag *diag, const Role *role, int64_t missing, bool rows) {
    Str text = str_new(res->arena);
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        int64_t registers, columns = tile->rank == 2 ? tile->extents[1] : 0;
        bool first = holds_tile(role, i, plan_role(res->prog, role)->fullest);
        for (size_t j = 0; j < i; j++)
            first = first &&
                    (role->tiles.items[j].rank != 2 || role->tiles.items[j].extents[1] != columns);
        if (!first || columns == 0) continue;
        const char *names = tiles_with(res, role, columns, &registers);
        int64_t fits =
            registers > missing ? columns * (registers - missing) / registers / 8 * 8 : 0;
        if (fits == 0) continue;
        str_printf(&text, text.length ? ", or %lld of %s" : "use %lld columns of %s",
                   (long long)fits, names);
    }
    if (rows)
        str_printf(&text, "%ssplit the rows among more warpgroups", text.length ? ", or " : "");
    if (text.length) diag_help(res->diags, diag, "%s", text.text);
}

static void refuse_accumulators(Resources *res, const Role *role, int taken, int available) {
    Diags *diags = res->diags;
    const RoleTile *largest = NULL;
    int64_t most = 0;
    int room = available - OTHER_THAN_ACCUMULATORS, together = 0;
    const RolePlan *plan = plan_role(res->prog, role);
    Diag *diag = diag_at(
        diags, P0505, role->span,
        "`%s` needs %d registers per thread (%d for accumulators, %d for other values), but has %d",
        role->name, taken + OTHER_THAN_ACCUMULATORS, taken, OTHER_THAN_ACCUMULATORS, available);
    diag_primary(diags, diag, role->regs ? "`regs %d`" : "%d registers per thread at most",
                 available);
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        if (!holds_tile(role, i, plan->fullest)) continue;
        int64_t registers = plan->tiles[i].registers;
        together++;
        if (registers > most) most = registers, largest = tile;
        diag_note(diags, diag, "`%s`: %lld registers per thread", tile->name, (long long)registers);
    }
    if (!largest) return;
    diag_label(diags, diag, largest->span, "the largest");
    if (together > 1)
        diag_note(diags, diag,
                  "all of them are live at once; registers of a tile are free again after the "
                  "block that declares it");
    int needs = (taken + OTHER_THAN_ACCUMULATORS + 7) / 8 * 8;
    if (role->regs && needs <= ACCUMULATING_MOST) diag_help(diags, diag, "write `regs %d`", needs);
    help_columns(res, diag, role, taken - room, largest->rank == 2 && largest->extents[0] > 64);
}

/* One instruction must compile with the registers of the launch, whatever is moved later (ptxas
 * C7602): its sums, 64 x n over the warpgroup, and its other operands. */
static void check_instructions(Resources *res, const Role *role) {
    Diags *diags = res->diags;
    int launch = res->plan->launch_registers, room = launch - OTHER_THAN_SUMS;
    for (size_t i = 0; i < role->tiles.count; i++) {
        const RoleTile *tile = &role->tiles.items[i];
        int64_t columns = tile->rank == 2 ? tile->extents[1] : 0;
        const TilePlan *plan = plan_tile(res->prog, role, (int)i);
        if (!tile->in_registers || !layout_accumulates(&plan->held) ||
            element_rows[tile->type].bytes != 4)
            continue;
        /* wider than the sums of one instruction */
        if (columns > 256 || columns / 2 <= room) continue;
        Diag *diag = diag_at(diags, P0505, tile->span,
                             "a matrix instruction of %lld columns needs %lld registers per "
                             "thread, but a thread has %d",
                             (long long)columns, (long long)columns / 2 + OTHER_THAN_SUMS, launch);
        diag_note(diags, diag, "a block of %d threads is launched with %d registers per thread",
                  res->groups.count * WARPGROUP_LANES, launch);
        diag_help(diags, diag, "use %d columns, or fewer warpgroups", room * 2 / 8 * 8);
    }
}

static void check_accumulators(Resources *res) {
    Prog *prog = res->prog;
    for (size_t i = 0; i < prog->roles.count; i++) {
        const Role *role = &prog->roles.items[i];
        int taken = accumulator_registers(res->prog, role);
        int stated = plan_role(prog, role)->registers;
        int available = stated ? stated : res->plan->launch_registers;
        if (taken > 0 && taken + OTHER_THAN_ACCUMULATORS > available)
            refuse_accumulators(res, role, taken, available);
        else
            check_instructions(res, role);
    }
}

/* The stated budget of a role is less than one of its tiles needs: the assembler would keep
 * elements in local memory (P0812). */
static bool refuse_stated(Resources *res, const Role *role, size_t index) {
    const RoleTile *tile = &role->tiles.items[index];
    int64_t registers = plan_tile(res->prog, role, (int)index)->registers,
            needs = registers + OTHER_THAN_TILES;
    if (!role->regs || needs <= role->regs) return false;
    Diag *diag = diag_at(
        res->diags, P0505, role->span,
        "`%s` needs %lld registers per thread (%lld for `%s`, %d for other values), but has %d",
        role->name, (long long)needs, (long long)registers, tile->name, OTHER_THAN_TILES,
        role->regs);
    diag_primary(res->diags, diag, "`regs %d`", role->regs);
    diag_label(res->diags, diag, tile->span, "%lld registers per thread", (long long)registers);
    diag_help(res->diags, diag,
              "write `regs %lld` or more, spread the tile over more warps, or process it in parts",
              (long long)(needs + 7) / 8 * 8);
    return true;
}

/* Refuses tiles that no thread can hold, whatever else the role does. */
static bool tiles_fit(Resources *res) {
    Prog *prog = res->prog;
    Diags *diags = res->diags;
    bool fit = true;
    for (size_t i = 0; i < prog->roles.count; i++)
        for (size_t t = 0; t < prog->roles.items[i].tiles.count; t++) {
            const Role *role = &prog->roles.items[i];
            const RoleTile *tile = &role->tiles.items[t];
            const TilePlan *plan = plan_tile(prog, role, (int)t);
            if (!tile->in_registers || plan->unspread || accumulator_registers(res->prog, role) > 0)
                continue; /* accumulators are checked elsewhere */
            if (plan->registers <= prog->target->registers_max) {
                if (!refuse_stated(res, role, t)) continue;
                fit = false;
                break; /* reports once per role */
            }
            Str words = str_new(res->arena);
            layout_print(&plan->held, role->warps * 32, &words);
            Diag *diag =
                diag_at(diags, P0505, tile->span,
                        "`%s` takes %lld registers per thread, but a thread has %d", tile->name,
                        (long long)plan->registers, prog->target->registers_max);
            diag_primary(diags, diag, "%s", words.text);
            diag_label(diags, diag, role->span, "each instance has %d warp%s", role->warps,
                       role->warps == 1 ? "" : "s");
            diag_help(diags, diag, "%s",
                      tile->reduced
                          ? "spread it over more warps, or reduce parts of the tile, one after the "
                            "other"
                          : "spread it over more warps, process it in parts, or declare it "
                            "`shared`");
            fit = false;
        }
    return fit;
}

/* ---- all ------------------------------------------------------------------------------------- */

void resources_registers(Resources *res) {
    const Prog *prog = res->prog;
    Plan *plan = res->plan;
    const Role *greedy = NULL;
    int count = res->groups.count, requested = 0;
    if (!prog->target || !tiles_fit(res) || !count || !hands_out_registers(prog) ||
        !budgets_are_possible(res))
        return;
    int share = prog->target->registers_pool / (count * WARPGROUP_LANES) / 8 * 8;
    int most = prog->target->registers_max;
    plan->launch_registers = (share > most ? most : share) / 8 * 8;
    derive(res);
    for (size_t i = 0; i < prog->roles.count; i++) {
        const Role *role = &prog->roles.items[i];
        RolePlan *own = edit_role(prog, role);
        own->registers = res->groups.regs[own->first_warp / WARPGROUP_WARPS];
        if (role->regs && (!greedy || role->regs > greedy->regs)) greedy = role;
    }
    for (int g = 0; g < count; g++) {
        requested += group_value(res, g) * WARPGROUP_LANES;
        if (group_value(res, g) != plan->launch_registers)
            plan->entry_registers = share > most ? most : share;
    }
    if (greedy && requested > plan->launch_registers * count * WARPGROUP_LANES)
        refuse_pool(res, greedy, requested);
    else
        check_accumulators(res);
}
