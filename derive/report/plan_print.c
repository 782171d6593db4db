/* --emit=plan: derived facts of the block, of each role, and of its rows (plan_print_rows.c). */
#include "derive/plan.h"

#include <inttypes.h>

/* ---- the block ------------------------------------------------------------------------------- */

static void print_range(const Range *range, Str *out) {
    static const char *const kinds[] = {[RANGE_FULL] = "full barriers",
                                        [RANGE_EMPTY] = "empty barriers",
                                        [RANGE_FIELD] = "field",
                                        [RANGE_TILE] = "tile"};
    str_printf(out, "  at %u, %u x %u bytes", range->offset, range->count, range->bytes);
    if (range->count > 1) str_printf(out, ", %u apart", range->stride);
    str_printf(out, ": %s %s%s%s", kinds[range->kind], range->pipe ? range->pipe : "",
               range->pipe && range->name ? "." : "", range->name ? range->name : "");
    if (range->arrivals > 0) str_printf(out, ", %u arrivals", range->arrivals);
    str_printf(out, ", %s\n", range->note);
}

static void print_group(const Prog *prog, const SharedGroup *group, Str *out) {
    str_printf(out, "  warpgroup from warp %d:", group->first_warp);
    for (size_t i = 0; i < group->roles.count; i++)
        str_printf(out, "%s %s", i > 0 ? "," : "", prog->roles.items[group->roles.items[i]].name);
    if (group->registers > 0) str_printf(out, ", setmaxnreg %d", group->registers);
    str_char(out, '\n');
}

static void print_map(const Prog *prog, size_t number, Str *out) {
    const Map *map = &prog->plan->maps.items[number];
    str_printf(out, "  map %zu of %s: %s, boxes of", number, prog->params.items[map->param].name,
               map->stored ? "stored" : "loaded");
    for (int d = 0; d < map->rank; d++)
        str_printf(out, "%s %" PRId64, d > 0 ? " x" : "", map->box[d]);
    if (map->swizzle) str_printf(out, ", swizzled over %d bytes", 16 << map->swizzle);
    for (int d = 0; d < map->rank; d++) {
        str_add(out, d > 0 ? ", stride " : ", extent ");
        if (d > 0)
            str_printf(out, "%s.stride%d extent ", prog->params.items[map->param].name,
                       map->rank - 1 - d);
        expr_print(map->extents[d], prog, NULL, NULL, out);
    }
    str_char(out, '\n');
}

static void print_arguments(const PassedList *arguments, Str *out) {
    static const char *const kinds[] = {
        [PASSED_MAP] = "map",       [PASSED_POINTER] = "pointer", [PASSED_STRIDE] = "stride",
        [PASSED_EXTENT] = "extent", [PASSED_SCALAR] = "scalar",   [PASSED_COUNTER] = "counter"};
    str_add(out, "  launched with");
    for (size_t i = 0; i < arguments->count; i++)
        str_printf(out, "%s %s %d", i > 0 ? "," : "", kinds[arguments->items[i].kind],
                   arguments->items[i].index);
    str_char(out, '\n');
}

static void print_kernel(const Prog *prog, const Plan *plan, Str *out) {
    str_printf(out, "block: %d warps, %u bytes of shared memory", plan->warps, plan->shared_bytes);
    if (plan->launch_registers)
        str_printf(out, ", launched with %d registers a thread", plan->launch_registers);
    str_printf(out,
               "\n  %" PRId64
               " on an SM, limited by %s; %d registers a thread, at most %d; %" PRId64
               " bytes in flight each, %" PRId64 " loaded by threads\n",
               plan->blocks, plan->limited, plan->predicted, plan->most_registers, plan->in_flight,
               plan->loaded);
    print_arguments(&plan->arguments, out);
    for (size_t i = 0; i < plan->memory.count; i++) print_range(&plan->memory.items[i], out);
    for (size_t i = 0; i < plan->groups.count; i++) print_group(prog, &plan->groups.items[i], out);
    for (size_t i = 0; i < plan->maps.count; i++) print_map(prog, i, out);
}

/* ---- a role ---------------------------------------------------------------------------------- */

static void print_tile(const Prog *prog, const Role *role, int index, Str *out) {
    const RoleTile *tile = &role->tiles.items[index];
    const TilePlan *plan = plan_tile(prog, role, index);
    str_printf(out, "  tile %s: ", tile->name);
    if (tile->in_registers) {
        layout_print(&plan->held, role->warps * 32, out);
        str_printf(out, ", %" PRId64 " register%s%s", plan->registers,
                   plan->registers == 1 ? "" : "s",
                   plan->packed == 2   ? " of two elements"
                   : plan->packed == 4 ? " of four elements"
                                       : "");
    } else {
        str_add(out, plan_layout(out->arena, prog, &plan->layout, tile->type,
                                 tile->extents[tile->rank - 1]));
    }
    str_char(out, '\n');
}

static void print_use(const Pipe *pipe, int index, const PipeUse *use, const RolePlan *plan,
                      Str *out) {
    const struct {
        bool is;
        const char *text;
    } facts[] = {
        {use->arrives[END_PRODUCE] & ARRIVES_LANES, "each lane arrives"},
        {use->arrives[END_PRODUCE] & ARRIVES_WARPS, "a lane of each warp arrives"},
        {use->arrives[END_CONSUME] & ARRIVES_INSTANCE, "a lane of the instance arrives"},
        {plan->fenced[END_PRODUCE][index], "a fence between proxies before a stage is full"},
        {plan->fenced[END_CONSUME][index], "a fence between proxies before a stage is empty"},
    };
    str_printf(out, "  pipe %s:", pipe->name);
    const char *between = " ";
    Agents copies = agents_completing(use->agents, COMPLETES_BYTES);
    if (copies) str_printf(out, " %u bytes copied in", plan->stages.bytes[index]), between = ", ";
    if (use->in_turn) str_printf(out, "%sa stage is one instance's", between), between = ", ";
    Agents named = use->agents & ~copies;
    for (int a = 0; a < AGENT_COUNT; a++) {
        if (!(named >> a & 1)) continue;
        str_printf(out, "%s%s", between, agent_rows[a].text), between = ", ";
        if (a == AGENT_LANES_IN && use->waits_copies) str_add(out, ", waited for");
    }
    for (size_t i = 0; i < COUNT_OF(facts); i++)
        if (facts[i].is) str_printf(out, "%s%s", between, facts[i].text), between = ", ";
    str_char(out, '\n');
}

static void print_threads(const Role *role, const RolePlan *plan, Str *out) {
    str_printf(out, "role %s: %d warps from warp %d", role->name, role_warps(role),
               plan->first_warp);
    if (role->instances > 1) str_printf(out, " in %d instances", role->instances);
    if (role->one_lane) str_add(out, ", in one lane");
    if (plan->tile_registers > 0) str_printf(out, ", %d registers for tiles", plan->tile_registers);
    if (plan->entered_with > 0) str_printf(out, ", setmaxnreg %d", plan->entered_with);
    if (!plan->direct) str_add(out, ", reached from its warpgroup");
    if (plan->barrier > 0) str_printf(out, ", named barriers from %d", plan->barrier);
    if (role->turns > 0) str_printf(out, ", turns at barriers from %d", plan->tokens);
    str_char(out, '\n');
}

static void print_lates(const FlowCode *code, Str *out) {
    for (size_t i = 0; i < code->lates.count; i++) {
        const Late *late = &code->lates.items[i];
        if (late->lag > 0)
            str_printf(out, "  stage %s: released %d iteration%s late\n",
                       code->role->handles.items[late->handle].name, late->lag,
                       late->lag == 1 ? "" : "s");
    }
}

static void print_regions(const FlowCode *code, const RowsPlan *plan, Str *out) {
    for (size_t r = 0; r < code->regions.count; r++) {
        if (!plan->diverged[r]) continue;
        str_printf(out, "  region %zu: lanes of a warp go through it apart, and meet after it", r);
        for (size_t i = 0; i < plan->due[r].count; i++)
            str_printf(out, "; the warp is done with the stage of `%s` before",
                       code->role->handles.items[plan->due[r].items[i]].name);
        str_char(out, '\n');
    }
}

/* Rows of the slice of a role in turn; loops of equal acquires are one step */
static void print_skipped(const FlowCode *code, const Skipped *skipped, Str *out) {
    const FlowCode *slice = skipped->code;
    for (size_t at = 0; slice && at < slice->rows.count; at++)
        if (slice->rows.items[at].kind == ROW_ACQUIRE)
            str_printf(out, "  row %d: steps the cursor in iterations of other instances too\n",
                       slice->whole_rows.items[at]);
    for (size_t r = 0; slice && r < slice->regions.count; r++)
        for (size_t p = 0; skipped->rows->steps[r] && p < code->prog->pipes.count; p++)
            if (skipped->rows->steps[r][p] > 0)
                str_printf(out,
                           "  region %d: there, the cursor of `%s` steps by %" PRId64
                           " times its iterations\n",
                           slice->whole_regions.items[r], code->prog->pipes.items[p].name,
                           skipped->rows->steps[r][p]);
}

static void print_role(const FlowCode *code, const RolePlan *plan, Str *out) {
    const Role *role = code->role;
    print_threads(role, plan, out);
    for (size_t t = 0; t < role->tiles.count; t++) print_tile(code->prog, role, (int)t, out);
    for (size_t p = 0; p < code->prog->pipes.count; p++)
        if (role->pipes[p].uses)
            print_use(&code->prog->pipes.items[p], (int)p, &role->pipes[p], plan, out);
    print_lates(code, out);
    print_regions(code, plan->rows, out);
    for (size_t at = 0; at < code->rows.count; at++) plan_print_row(code, plan->rows, (int)at, out);
    print_skipped(code, &plan->skipped, out);
    if (plan->drains)
        str_add(out, "  the role ends when copies out of shared memory are complete\n");
}

void plan_print(const Prog *prog, Arena *arena, Str *out) {
    (void)arena;
    if (prog->plan == NULL || !prog->plan->complete) return;
    print_kernel(prog, prog->plan, out);
    for (size_t r = 0; r < prog->roles.count; r++)
        print_role(prog->roles.items[r].code, &prog->plan->roles[r], out);
}
