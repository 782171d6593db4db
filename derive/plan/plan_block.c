/* The plan of the whole block: the map of shared memory, branches of warps to their roles, and
 * the number of blocks of an SM. */
#include "derive/edit.h"
#include "derive/plan.h"
#include "derive/resources/resources.h"

#include <inttypes.h>

/* ---- shared memory --------------------------------------------------------------------------- */

const char *plan_layout(Arena *arena, const Prog *prog, const Layout *layout, Element type,
                        int64_t inner) {
    const char *panels = "", *rows = "row-major";
    int64_t padding = layout->padding * element_rows[type].bytes;
    if (layout->swizzle)
        rows = arena_printf(arena, "swizzled over %d bytes", 16 << layout->swizzle);
    else if (padding > 0)
        rows = arena_printf(arena,
                            "rows padded by %" PRId64 " byte%s (a warp's access would take %" PRId64
                            " rounds of the banks)",
                            padding, padding == 1 ? "" : "s", layout->rounds);
    if (layout->panel < inner)
        panels = arena_printf(arena, ", panels of %" PRId64 " elements", layout->panel);
    if (layout->panel < inner && !layout->swizzle)
        panels =
            arena_printf(arena, "%s (a box is at most %d wide)", panels, prog->target->box_limit);
    if (layout->gap > 0)
        panels = arena_printf(arena, "%s, %" PRId64 " unused bytes after each", panels,
                              layout->gap * element_rows[type].bytes);
    return arena_printf(arena, "%s%s, aligned to %u", rows, panels, layout->alignment);
}

typedef struct Mapper {
    Arena *arena;
    const Prog *prog;
    Plan *plan;
} Mapper;

static void add_range(Mapper *m, Range range) { vec_push(m->arena, &m->plan->memory, range); }

static void map_field(Mapper *m, const Pipe *pipe, size_t index) {
    const Field *field = &pipe->fields.items[index];
    const PipePlan *plan = plan_pipe(m->prog, pipe);
    add_range(m, (Range){.kind = RANGE_FIELD,
                         .pipe = pipe->name,
                         .name = field->name,
                         .note = plan_layout(m->arena, m->prog, &plan->fields[index].layout,
                                             field->type, field->extents[field->rank - 1]),
                         .offset = plan->offset + plan->fields[index].offset,
                         .bytes = plan->fields[index].bytes * (uint32_t)field->count,
                         .count = (uint32_t)pipe->stages,
                         .stride = plan->stride});
}

static void map_numbers(Mapper *m, const Pipe *pipe) {
    const PipePlan *plan = plan_pipe(m->prog, pipe);
    add_range(m, (Range){.kind = RANGE_FIELD,
                         .pipe = pipe->name,
                         .name = "number",
                         .note = "the number of a tile",
                         .offset = plan->offset,
                         .bytes = plan->stride,
                         .count = (uint32_t)pipe->stages,
                         .stride = plan->stride});
}

static void map_pipe(Mapper *m, const Pipe *pipe) {
    static const RangeKind kinds[] = {[END_PRODUCE] = RANGE_FULL, [END_CONSUME] = RANGE_EMPTY};
    const PipePlan *plan = plan_pipe(m->prog, pipe);
    for (End end = END_PRODUCE; end <= END_CONSUME; end++)
        add_range(m, (Range){.kind = kinds[end],
                             .pipe = pipe->name,
                             .note = plan->reasons[end],
                             .offset = plan->barriers[end],
                             .bytes = 8,
                             .count = (uint32_t)pipe->stages,
                             .stride = 8,
                             .arrivals = plan->arrivals[end]});
    for (size_t f = 0; f < pipe->fields.count; f++) map_field(m, pipe, f);
    if (pipe - m->prog->pipes.items == m->prog->draws.tiles) map_numbers(m, pipe);
}

static void map_tiles(Mapper *m, const Role *role) {
    for (size_t t = 0; t < role->tiles.count; t++) {
        const RoleTile *tile = &role->tiles.items[t];
        const TilePlan *plan = &plan_role(m->prog, role)->tiles[t];
        if (tile->in_registers) continue;
        add_range(m, (Range){.kind = RANGE_TILE,
                             .name = tile->name,
                             .note = arena_printf(m->arena, "tile of role %s, one an instance",
                                                  role->name),
                             .offset = plan->offset,
                             .bytes = plan->stride,
                             .count = (uint32_t)role->instances,
                             .stride = plan->stride});
    }
}

/* ---- warpgroups ------------------------------------------------------------------------------ */

static bool in_group(const RolePlan *plan, const Role *role, int group) {
    int last = plan->first_warp + role_warps(role) - 1;
    return plan->first_warp / WARPGROUP_WARPS <= group && last / WARPGROUP_WARPS >= group;
}

static bool fills_groups(const RolePlan *plan, const Role *role) {
    return plan->first_warp % WARPGROUP_WARPS == 0 && role_warps(role) % WARPGROUP_WARPS == 0;
}

/* 0: a thread keeps the registers of the launch. */
static int changed_registers(const Plan *plan, int registers) {
    return registers == plan->launch_registers ? 0 : registers;
}

/* setmaxnreg is executed by all warps of a warpgroup, idle ones too, where its control flow
 * diverges from the others' for good: ptxas ignores one before a join. */
static void find_groups(Mapper *m) {
    const Prog *prog = m->prog;
    Plan *plan = m->plan;
    int count = (plan->warps + WARPGROUP_WARPS - 1) / WARPGROUP_WARPS;
    for (int g = 0; g < count && plan->launch_registers != 0; g++) {
        SharedGroup group = {.first_warp = g * WARPGROUP_WARPS};
        bool whole = false;
        for (size_t r = 0; r < prog->roles.count; r++) {
            const Role *role = &prog->roles.items[r];
            if (!in_group(&plan->roles[r], role, g)) continue;
            whole |= fills_groups(&plan->roles[r], role);
            group.registers = changed_registers(plan, plan->roles[r].registers);
            vec_push(m->arena, &group.roles, (int)r);
        }
        if (!whole) vec_push(m->arena, &plan->groups, group);
    }
}

static void find_entries(Mapper *m) {
    const Plan *plan = m->plan;
    bool handed_out = plan->launch_registers != 0;
    for (size_t r = 0; r < m->prog->roles.count; r++) {
        RolePlan *role = edit_role(m->prog, &m->prog->roles.items[r]);
        role->direct = !handed_out || fills_groups(role, &m->prog->roles.items[r]);
        if (handed_out && role->direct)
            role->entered_with = changed_registers(plan, role->registers);
    }
}

/* ---- all ------------------------------------------------------------------------------------- */

void plan_block(Arena *arena, const Prog *prog) {
    Plan *plan = edit_plan(prog);
    Mapper mapper = {arena, prog, plan};
    for (size_t p = 0; p < prog->pipes.count; p++) map_pipe(&mapper, &prog->pipes.items[p]);
    for (size_t r = 0; r < prog->roles.count; r++) map_tiles(&mapper, &prog->roles.items[r]);
    plan->arguments = resources_arguments(arena, prog);
    find_groups(&mapper);
    find_entries(&mapper);
    plan_occupancy(arena, prog, plan);
}

/* ---- tensor maps ----------------------------------------------------------------------------- */

int64_t plan_boxes(const Plan *plan, const BoxCopy *copy) {
    const Map *map = &plan->maps.items[copy->map];
    int64_t boxes = 1;
    for (int d = 0; d < copy->rank; d++) boxes *= copy->tile[d] / map->box[d];
    return boxes;
}
