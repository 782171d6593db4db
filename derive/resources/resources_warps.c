/* Warps of a block. Roles of four warps or more begin at a warpgroup, in declared order; smaller
 * ones fill the first warpgroup with room whose stated registers agree with theirs, because
 * setmaxnreg applies to a whole warpgroup (PTX ISA 9.7.20.5). */
#include "derive/edit.h"
#include "derive/resources/resources.h"

static void take(Resources *res, const Role *role, int group, int at) {
    Groups *groups = &res->groups;
    int left = role_warps(role);
    edit_role(res->prog, role)->first_warp = group * WARPGROUP_WARPS + at;
    for (; left > 0 && group < MAX_GROUPS; group++, at = 0) {
        int taken = left < WARPGROUP_WARPS - at ? left : WARPGROUP_WARPS - at;
        groups->used[group] = at + taken;
        if (role->regs) groups->regs[group] = role->regs;
        left -= taken;
        if (group >= groups->count) groups->count = group + 1;
    }
}

static bool is_large(const Role *role) {
    return role->warpgroups || role_warps(role) >= WARPGROUP_WARPS;
}

/* A warpgroup has one budget: two stated ones must be equal */
static bool agrees(const Groups *groups, int group, const Role *role) {
    return !groups->regs[group] || !role->regs || groups->regs[group] == role->regs;
}

static void place(Resources *res) {
    const Prog *prog = res->prog;
    const Groups *groups = &res->groups;
    for (size_t i = 0; i < prog->roles.count; i++)
        if (is_large(&prog->roles.items[i])) take(res, &prog->roles.items[i], groups->count, 0);
    for (size_t i = 0; i < prog->roles.count; i++) {
        const Role *role = &prog->roles.items[i];
        int group = 0;
        if (is_large(role)) continue;
        while (group < groups->count && (groups->used[group] + role_warps(role) > WARPGROUP_WARPS ||
                                         !agrees(groups, group, role)))
            group++;
        take(res, role, group, group < groups->count ? groups->used[group] : 0);
    }
}

static void refuse_threads(Resources *res, int threads) {
    const Prog *prog = res->prog;
    int count = 0;
    Diag *diag = diag_at(res->diags, P0501, prog->span,
                         "the roles take %d threads, but a block of %s has at most %d", threads,
                         prog->target->name, prog->target->threads_limit);
    diag_primary(res->diags, diag, "%d warps, with warpgroups aligned to four warps",
                 threads / WARP_LANES);
    for (size_t i = 0; i < prog->roles.count && count < DIAG_MAX_LABELS - 1; i++, count++)
        diag_label(res->diags, diag, prog->roles.items[i].span, "%d threads",
                   role_warps(&prog->roles.items[i]) * WARP_LANES);
    int own = 0, limit = prog->target->threads_limit / WARP_LANES;
    for (size_t i = 0; i < prog->roles.count; i++) own += role_warps(&prog->roles.items[i]);
    if (own > limit)
        diag_help(res->diags, diag, "give all roles together at most %d warps", limit);
    else
        diag_help(res->diags, diag,
                  "the %d warps fit if none is idle: give each role a multiple of four warps", own);
}

void resources_warps(Resources *res) {
    const Prog *prog = res->prog;
    const Groups *groups = &res->groups;
    Plan *plan = res->plan;
    int total = 0;
    for (size_t i = 0; i < prog->roles.count; i++) {
        if (role_warps(&prog->roles.items[i]) < 1) return;
        total += role_warps(&prog->roles.items[i]);
        if (prog->target && total * WARP_LANES > prog->target->threads_limit) {
            for (size_t k = i + 1; k < prog->roles.count; k++)
                total += role_warps(&prog->roles.items[k]);
            refuse_threads(res, total * WARP_LANES);
            return;
        }
    }
    place(res);
    for (int g = 0; g < groups->count; g++)
        if (groups->used[g]) plan->warps = g * WARPGROUP_WARPS + groups->used[g];
    /* setmaxnreg needs whole warpgroups: the last one is filled up with idle warps */
    if (hands_out_registers(prog)) plan->warps = groups->count * WARPGROUP_WARPS;
    if (prog->target && plan->warps * WARP_LANES > prog->target->threads_limit)
        refuse_threads(res, plan->warps * WARP_LANES);
}
