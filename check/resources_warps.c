/* Warps and registers of a block. Roles of four warps or more begin at a warpgroup, in declared order; smaller ones fill
 * the first warpgroup with room whose stated registers agree with theirs, so that setmaxnreg, which a whole warpgroup
 * executes (PTX ISA 9.7.20.5), never meets two wishes. */
#include "check/resources.h"

#define REGISTERS_LEAST 24 /* what setmaxnreg takes: multiples of 8 from 24 to 256 */
#define REGISTERS_MOST 256

static int role_warps(const Role *role) { return role->instances * role->warps; }

static void take(Groups *groups, Role *role, int group, int at) {
    int left = role_warps(role);
    role->first_warp = group * WARPGROUP_WARPS + at;
    for (; left > 0 && group < MAX_GROUPS; group++, at = 0) {
        int here = left < WARPGROUP_WARPS - at ? left : WARPGROUP_WARPS - at;
        groups->used[group] = at + here;
        if (role->regs) groups->regs[group] = role->regs;
        left -= here;
        if (group >= groups->count) groups->count = group + 1;
    }
}

static bool is_large(const Role *role) { return role->warpgroups || role_warps(role) >= WARPGROUP_WARPS; }

/* One value for its warpgroup: two that are stated must be equal */
static bool agrees(const Groups *groups, int group, const Role *role) {
    return !groups->regs[group] || !role->regs || groups->regs[group] == role->regs;
}

static void place(Prog *prog, Groups *groups) {
    for (size_t i = 0; i < prog->roles.count; i++)
        if (is_large(&prog->roles.items[i])) take(groups, &prog->roles.items[i], groups->count, 0);
    for (size_t i = 0; i < prog->roles.count; i++) {
        Role *role = &prog->roles.items[i];
        int group = 0;
        if (is_large(role)) continue;
        while (group < groups->count &&
               (groups->used[group] + role_warps(role) > WARPGROUP_WARPS || !agrees(groups, group, role)))
            group++;
        take(groups, role, group, group < groups->count ? groups->used[group] : 0);
    }
}

static bool states_registers(const Prog *prog) {
    for (size_t i = 0; i < prog->roles.count; i++)
        if (prog->roles.items[i].regs) return true;
    return false;
}

static void refuse_threads(Resources *res, int threads) {
    const Prog *prog = res->prog;
    int count = 0;
    Diag *diag = diag_at(res->diags, P0501, prog->span, "the roles take %d threads, and a block of %s has %d", threads,
                         prog->target->name, prog->target->threads_limit);
    diag_primary(res->diags, diag, "with warpgroup roles at multiples of four warps: %d warps", threads / WARP_LANES);
    for (size_t i = 0; i < prog->roles.count && count < DIAG_MAX_LABELS - 1; i++, count++)
        diag_label(res->diags, diag, prog->roles.items[i].span, "%d threads", role_warps(&prog->roles.items[i]) * WARP_LANES);
    diag_help(res->diags, diag, "give the roles %d warps together, or fewer", prog->target->threads_limit / WARP_LANES);
}

void resources_warps(Resources *res) {
    Prog *prog = res->prog;
    Groups *groups = &res->groups;
    int total = 0;
    prog->warps = 0;
    for (size_t i = 0; i < prog->roles.count; i++) {
        if (role_warps(&prog->roles.items[i]) < 1) return;
        total += role_warps(&prog->roles.items[i]);
        if (prog->target && total * WARP_LANES > prog->target->threads_limit) {
            for (size_t k = i + 1; k < prog->roles.count; k++) total += role_warps(&prog->roles.items[k]);
            refuse_threads(res, total * WARP_LANES);
            return;
        }
    }
    place(prog, groups);
    for (int g = 0; g < groups->count; g++)
        if (groups->used[g]) prog->warps = g * WARPGROUP_WARPS + groups->used[g];
    /* setmaxnreg needs whole warpgroups: the last one is filled up with idle warps */
    if (states_registers(prog)) prog->warps = groups->count * WARPGROUP_WARPS;
    if (prog->target && prog->warps * WARP_LANES > prog->target->threads_limit) refuse_threads(res, prog->warps * WARP_LANES);
}

/* ---- registers ---------------------------------------------------------------------------------------------------- */

static bool budgets_are_possible(Resources *res) {
    bool possible = true;
    for (size_t i = 0; i < res->prog->roles.count; i++) {
        const Role *role = &res->prog->roles.items[i];
        if (!role->regs || (role->regs % 8 == 0 && role->regs >= REGISTERS_LEAST && role->regs <= REGISTERS_MOST)) continue;
        int near = (role->regs + 4) / 8 * 8;
        near = near < REGISTERS_LEAST ? REGISTERS_LEAST : near > REGISTERS_MOST ? REGISTERS_MOST : near;
        Diag *diag = diag_at(res->diags, P0502, role->span, "`regs %d` of role `%s` is not a value that can be set", role->regs,
                             role->name);
        diag_note(res->diags, diag, "registers are handed out in multiples of 8, from %d to %d a thread", REGISTERS_LEAST,
                  REGISTERS_MOST);
        diag_help(res->diags, diag, "write `regs %d`", near);
        possible = false;
    }
    return possible;
}

static const char *roles_of(Resources *res, int group) {
    Str text = str_new(res->arena);
    for (size_t i = 0; i < res->prog->roles.count; i++) {
        const Role *role = &res->prog->roles.items[i];
        int first = role->first_warp / WARPGROUP_WARPS, last = (role->first_warp + role_warps(role) - 1) / WARPGROUP_WARPS;
        if (group >= first && group <= last) str_printf(&text, "%s`%s`", text.length ? ", " : "", role->name);
    }
    return text.length ? text.text : "idle";
}

static int group_value(const Resources *res, int group) {
    return res->groups.regs[group] ? res->groups.regs[group] : res->prog->launch_registers;
}

static void refuse_pool(Resources *res, const Role *greedy, int asked) {
    Prog *prog = res->prog;
    int count = res->groups.count, launch = prog->launch_registers, shares = 0, others = 0;
    Diag *diag = diag_at(res->diags, P0503, greedy->span, "the register budgets take %d registers, and the block has %d", asked,
                         launch * count * WARPGROUP_LANES);
    diag_primary(res->diags, diag, "`regs %d` is the largest", greedy->regs);
    diag_note(res->diags, diag, "a block of %d threads is launched with %d registers a thread: %d in all",
              count * WARPGROUP_LANES, launch, launch * count * WARPGROUP_LANES);
    for (int g = 0; g < count; g++) {
        int value = group_value(res, g);
        diag_note(res->diags, diag, "warps %d to %d (%s): %d x %d = %d%s", g * WARPGROUP_WARPS,
                  g * WARPGROUP_WARPS + WARPGROUP_WARPS - 1, roles_of(res, g), value, WARPGROUP_LANES, value * WARPGROUP_LANES,
                  res->groups.regs[g] ? "" : ", as launched");
        shares += value == greedy->regs;
        if (value != greedy->regs) others += value;
    }
    int fits = (launch * count - others) / shares / 8 * 8;
    if (fits >= REGISTERS_LEAST)
        diag_help(res->diags, diag, "`regs %d` fits there, or let another warpgroup state fewer", fits);
    else diag_help(res->diags, diag, "let the other warpgroups state fewer registers");
}

void resources_registers(Resources *res) {
    Prog *prog = res->prog;
    const Role *greedy = NULL;
    int count = res->groups.count, asked = 0;
    prog->launch_registers = 0;
    if (!prog->target || !count || !states_registers(prog) || !budgets_are_possible(res)) return;
    prog->launch_registers = prog->target->registers_pool / (count * WARPGROUP_LANES) / 8 * 8;
    if (prog->launch_registers > prog->target->registers_max) prog->launch_registers = prog->target->registers_max / 8 * 8;
    for (size_t i = 0; i < prog->roles.count; i++) {
        Role *role = &prog->roles.items[i];
        role->registers = res->groups.regs[role->first_warp / WARPGROUP_WARPS];
        if (!greedy || role->regs > greedy->regs) greedy = role;
    }
    for (int g = 0; g < count; g++) asked += group_value(res, g) * WARPGROUP_LANES;
    if (asked > prog->launch_registers * count * WARPGROUP_LANES) refuse_pool(res, greedy, asked);
}
