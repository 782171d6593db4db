/* --emit=plan: what is emitted beside the rows of each role. */
#include "derive/plan.h"

#include <inttypes.h>

static void print_copy(const FlowCode *code, int at, const Wait *wait, Str *out) {
    int loops = 0;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (!region_unrolled(region)) continue;
        int64_t value = wait->copy[loops++];
        if (value == PLAN_ANY) continue;
        str_printf(out, ", where `%s` is %" PRId64, code->role->locals.items[region->var].name, value);
    }
}

static void print_waits(const FlowCode *code, int at, const Waits *waits, const char *where, Str *out) {
    for (size_t i = 0; i < waits->count; i++) {
        const Wait *wait = &waits->items[i];
        str_printf(out, "  row %d, %s: matrix instructions but those of the last %d groups are done",
                   at, where, wait->depth);
        if (wait->tile >= 0 || wait->handle >= 0)
            str_printf(out, ", which use `%s`",
                       wait->tile >= 0 ? code->role->tiles.items[wait->tile].name
                                       : code->role->handles.items[wait->handle].name);
        if (wait->pin >= 0)
            str_printf(out, ", after a spin at the barrier of `%s`", code->role->handles.items[wait->pin].name);
        print_copy(code, at, wait, out);
        str_char(out, '\n');
    }
}

static void print_ahead(const FlowCode *code, int at, const Ahead *ahead, Str *out) {
    if (ahead == NULL) return;
    const Row *row = code_row(code, at);
    for (size_t i = 0; i < ahead->exprs.count; i++) {
        str_printf(out, "  row %d: reads before its wait ", at);
        expr_print(ahead->exprs.items[i], code->prog, code->role, &row->tile->space, out);
        str_char(out, '\n');
    }
    if (ahead->release >= 0)
        str_printf(out, "  row %d: is carried out at the wait of row %d\n", ahead->release, at);
}

static const char *const move_names[] = {[MOVE_EACH] = "one by one",
                                         [MOVE_VECTOR] = "as vectors",
                                         [MOVE_REGISTERS] = "in registers",
                                         [MOVE_MATRICES] = "as matrices",
                                         [MOVE_TRANSPOSED] = "as matrices, transposed"};

static void print_access(const FlowCode *code, int at, const Access *access, MoveKind kind, Str *out) {
    const Tile *tile = code_row(code, at)->tile;
    str_add(out, ", `");
    access_print(access, code->prog, code->role, &tile->space, out);
    str_printf(out, "` %s", move_names[kind]);
}

static void print_moves(const FlowCode *code, int at, const Moves *moves, Str *out) {
    static const char *const walks[] = {[WALK_ONE] = "one thread",
                                        [WALK_FLAT] = "threads in turn",
                                        [WALK_LAUNCH] = "the last index over the threads",
                                        [WALK_REGISTERS] = "as registers hold it"};
    if (moves == NULL) return;
    str_printf(out, "  row %d: %s", at, walks[moves->walk]);
    if (moves->walk == WALK_FLAT || moves->walk == WALK_REGISTERS)
        str_printf(out, ", %d element%s at once, %d of these in flight", moves->vector,
                   moves->vector == 1 ? "" : "s", moves->batch);
    if (moves->looped > 0) str_printf(out, ", a loop of %" PRId64, moves->looped);
    print_access(code, at, &code_row(code, at)->tile->target, moves->target, out);
    for (size_t i = 0; i < moves->reads.count; i++)
        print_access(code, at, moves->reads.items[i].expr->read, moves->reads.items[i].kind, out);
    if (moves->joins) str_add(out, ", after a barrier of the instance");
    if (moves->publishes) str_add(out, ", a fence and the barrier after it");
    str_char(out, '\n');
}

static void print_matrix(const Matrix *matrix, const char *which, Str *out) {
    if (!matrix->in_memory) {
        str_printf(out, ", %s in registers", which);
        return;
    }
    str_printf(out, ", %s: leading %" PRId64 ", stride %" PRId64 ", step %" PRId64, which,
               matrix->leading, matrix->stride, matrix->step);
    if (matrix->panel_steps > 0)
        str_printf(out, ", after each %" PRId64 " of these %" PRId64, matrix->panel_steps,
                   matrix->panel);
}

static void print_contraction(int at, const Contraction *contraction, Str *out) {
    if (contraction == NULL) return;
    str_printf(out, "  row %d: %d registers a slab", at, contraction->sums);
    print_matrix(&contraction->a, "first operand", out);
    print_matrix(&contraction->b, "second operand", out);
    str_char(out, '\n');
}

static void print_row(const FlowCode *code, const Plan *plan, int at, Str *out) {
    print_waits(code, at, &plan->waits[at], "before", out);
    print_ahead(code, at, plan->ahead[at], out);
    print_contraction(at, plan->contractions[at], out);
    print_moves(code, at, plan->moves[at], out);
    print_waits(code, at, &plan->joins[at], "end of the second arm", out);
    if (plan->signals[at] >= 0)
        str_printf(out, "  row %d: the warp is done with the stage of `%s` before it arrives\n", at,
                   code->role->handles.items[plan->signals[at]].name);
    if (plan->commits && plan->commits[at]) str_printf(out, "  row %d, after: commits its group\n", at);
    if (plan->clears[at])
        str_printf(out, "  row %d: emits no zeros, the first contraction clears the tile\n", at);
    if (plan->passes[at]) str_printf(out, "  row %d, after: passes turn %d on\n", at, plan->passes[at]);
}

static void print_role(const FlowCode *code, const Plan *plan, Str *out) {
    for (size_t r = 0; r < code->regions.count; r++)
        if (plan->apart[r])
            str_printf(out, "  region %zu: lanes of a warp go through it apart, and meet after it\n", r);
    if (plan->drains) str_add(out, "  copies out of shared memory are complete before the role ends\n");
    for (size_t at = 0; at < code->rows.count; at++) print_row(code, plan, (int)at, out);
    const FlowCode *skipped = plan->skipped.code;
    for (size_t at = 0; skipped && at < skipped->rows.count; at++)
        if (skipped->rows.items[at].kind == ROW_ACQUIRE)
            str_printf(out, "  row %d: steps the cursor in iterations of other instances too\n",
                       skipped->whole_rows.items[at]);
}

void plan_print(const Prog *prog, Arena *arena, Str *out) {
    (void)arena;
    for (size_t r = 0; r < prog->roles.count; r++) {
        const FlowCode *code = prog->roles.items[r].code;
        str_printf(out, "role %s\n", prog->roles.items[r].name);
        if (code->plan) print_role(code, code->plan, out);
    }
}
