/* Facts that passes set in each role, as text: --emit=uniform, --emit=stages, --emit=arrivals. */
#include "flow/arrivals.h"
#include "flow/held.h"

static const char *const among[] = {
    [UNIFORM_ROLE] = "role", [UNIFORM_INSTANCE] = "instance", [UNIFORM_LANE] = "lane"};

static const char *region_word(const Region *region) {
    if (region->kind == REGION_IF) return "if";
    if (region->kind == REGION_FOR) return "for";
    if (region->kind == REGION_GRID) return "grid";
    return region->kind == REGION_TURN ? "turn" : region->kind == REGION_BLOCK ? "block" : "role";
}

static void print_along(const Prog *prog, uint32_t along, Str *out) {
    along &= cluster_axes(prog);
    for (size_t a = 0; a < prog->axes.count; a++)
        if (along >> a & 1) str_printf(out, ", differs along %s", prog->axes.items[a].name);
    str_char(out, '\n');
}

void code_print_uniform(const Prog *prog, Arena *arena, Str *out) {
    (void)arena;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        str_printf(out, "role %s\n", role->name);
        for (size_t i = 0; i < role->locals.count; i++) {
            str_printf(out, "  %s: one value for each %s", role->locals.items[i].name,
                       among[role->locals.items[i].uniformity]);
            print_along(prog, role->locals.items[i].along, out);
        }
        for (size_t i = 0; i < role->code->regions.count; i++) {
            const Region *region = &role->code->regions.items[i];
            str_printf(out, "  region %zu, %s at row %d: one control for each %s", i,
                       region_word(region), region->begin, among[region->control]);
            print_along(prog, region->along, out);
        }
    }
}

static void print_ends(const Prog *prog, const Role *role, Str *out) {
    for (size_t p = 0; p < prog->pipes.count; p++) {
        for (End end = END_PRODUCE; end <= END_CONSUME; end++) {
            const HeldEnd *row = &role->code->held->ends[2 * p + end];
            if (row->most == 0) continue;
            str_printf(out, "  %s <%s>: holds at most %d, the oldest %d back\n",
                       end == END_PRODUCE ? "produce" : "consume", prog->pipes.items[p].name,
                       row->most, row->window);
        }
    }
}

void code_print_held(const Prog *prog, Arena *arena, Str *out) {
    (void)arena;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        const FlowCode *code = role->code;
        str_printf(out, "role %s\n", role->name);
        print_ends(prog, role, out);
        for (size_t i = 0; i < code->lates.count; i++)
            str_printf(out, "  %s, acquired at row %d: released %d iterations late\n",
                       role->handles.items[code->lates.items[i].handle].name,
                       code->lates.items[i].acquire, code->lates.items[i].lag);
    }
}

static void print_site(const Prog *prog, const Role *role, const Site *site, Str *out) {
    for (int i = 0; i < role->instances; i++) {
        const Share *share = &site->shares[i];
        if (!share->comes) continue;
        str_printf(out, "  %s, given up at row %d by instance %d: %lld",
                   prog->pipes.items[site->pipe].name, site->row, i, (long long)share->least);
        if (share->most >= ARRIVALS_MANY)
            str_add(out, " or more");
        else if (share->most != share->least)
            str_printf(out, " to %lld", (long long)share->most);
        str_add(out, " arrivals\n");
    }
}

void code_print_arrivals(const Prog *prog, Arena *arena, Str *out) {
    (void)arena;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const Role *role = &prog->roles.items[r];
        str_printf(out, "role %s\n", role->name);
        const Arrivals *all = role->code->arrivals;
        for (size_t i = 0; all && i < all->sites.count; i++)
            print_site(prog, role, &all->sites.items[i], out);
    }
}
