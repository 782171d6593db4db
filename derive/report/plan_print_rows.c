/* --emit=plan: facts derived for each row of a role. */
#include "derive/plan.h"

#include <inttypes.h>

static void print_copy(const FlowCode *code, int at, const Wait *wait, Str *out) {
    int loops = 0;
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (!region_unrolled(region)) continue;
        int64_t value = wait->copy[loops++];
        if (value == PLAN_ANY) continue;
        str_printf(out, ", where `%s` is %" PRId64, code->role->locals.items[region->var].name,
                   value);
    }
}

static void print_waits(const FlowCode *code, int at, const Waits *waits, const char *where,
                        Str *out) {
    for (size_t i = 0; i < waits->count; i++) {
        const Wait *wait = &waits->items[i];
        str_printf(out,
                   "  row %d, %s: matrix instructions but those of the last %d groups are done", at,
                   where, wait->depth);
        if (wait->tile >= 0 || wait->handle >= 0)
            str_printf(out, ", which use `%s`",
                       wait->tile >= 0 ? code->role->tiles.items[wait->tile].name
                                       : code->role->handles.items[wait->handle].name);
        if (wait->pin >= 0)
            str_printf(out, ", after a spin at the barrier of `%s`",
                       code->role->handles.items[wait->pin].name);
        print_copy(code, at, wait, out);
        str_char(out, '\n');
    }
}

/* Number of elements of a thread at which it is evaluated */
static int64_t evaluations(const int *first, int64_t elements) {
    int64_t count = 0;
    for (int64_t e = 0; e < elements; e++) count += first[e] == e;
    return count;
}

static void print_ahead(const FlowCode *code, int at, const Ahead *ahead, Str *out) {
    if (ahead == NULL) return;
    const Tile *tile = code_row(code, at)->tile;
    int64_t elements = layout_registers(tile->spread);
    for (size_t i = 0; i < ahead->reads.count; i++) {
        const AheadRead *read = &ahead->reads.items[i];
        int64_t count = evaluations(read->first, elements);
        str_printf(out, "  row %d: reads before its wait ", at);
        expr_print(read->expr, code->prog, code->role, &tile->space, out);
        str_printf(out, ", %" PRId64 " value%s per thread\n", count, count == 1 ? "" : "s");
    }
    if (ahead->release >= 0)
        str_printf(out, "  row %d: is carried out at the wait of row %d\n", ahead->release, at);
}

static void print_boxes(const FlowCode *code, const Tile *tile, Str *out) {
    const BoxCopy *box = &tile->box;
    str_printf(out, " by map %d, %" PRId64 " boxes", box->map, plan_boxes(code->prog->plan, box));
    for (int d = 0; d < box->rank; d++) {
        str_add(out, ", from ");
        expr_print(box->start[d], code->prog, code->role, &tile->space, out);
        str_printf(out, " on %" PRId64, box->tile[d]);
        if (box->step[d] != 0) str_printf(out, " (a box is %" PRId64 " bytes)", box->step[d]);
    }
}

static void print_multicast(const Prog *prog, const Multicast *multicast, Str *out) {
    if (multicast->axes == 0) return;
    str_add(out, ", multicast along");
    for (size_t a = 0; a < prog->axes.count; a++)
        if (multicast->axes >> a & 1) str_printf(out, " `%s`", prog->axes.items[a].name);
    if (multicast->parts > 1)
        str_printf(out, " in %d parts of axis %d, %" PRId64 " elements and %" PRId64 " bytes apart",
                   multicast->parts, multicast->axis, multicast->elements, multicast->bytes);
    else
        str_add(out, " by the first block");
}

/* For a statement that the copy engine or lanes execute */
static void print_copy_of(const FlowCode *code, int at, const Tile *tile, Str *out) {
    if (!tile_is_copy(tile)) return;
    str_printf(out, "  row %d: %s%s", at, tile->prefetch ? "prefetch of a " : "",
               class_rows[tile->class].text);
    if (tile_has_boxes(tile))
        print_boxes(code, tile, out);
    else if (tile->class == TILE_LANES)
        str_add(out, tile->piece.asynchronous ? ", cp.async" : ", through registers");
    else
        str_printf(out, " of %u bytes", tile->bulk.bytes);
    print_multicast(code->prog, &tile->multicast, out);
    const RowOrder *order = &plan_role(code->prog, code->role)->order[at];
    if (order->fence) str_add(out, ", after a fence between proxies");
    if (order->threads) str_add(out, ", after a barrier of the instance");
    if (order->stores) str_add(out, ", after the stores before it");
    str_char(out, '\n');
}

static const char *const move_names[] = {[MOVE_EACH] = "one by one",
                                         [MOVE_VECTOR] = "as vectors",
                                         [MOVE_WIDE] = "as vectors where aligned",
                                         [MOVE_REGISTERS] = "in registers",
                                         [MOVE_MATRICES] = "as matrices",
                                         [MOVE_TRANSPOSED] = "as matrices, transposed"};

static void print_access(const FlowCode *code, int at, const Access *access, MoveKind kind,
                         Str *out) {
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
    if (moves->walk == WALK_FLAT)
        str_printf(out, ", %" PRId64 " elements in %" PRId64 " whole rounds", moves->total,
                   moves->rounds);
    if (moves->looped > 0) str_printf(out, ", a loop of %" PRId64, moves->looped);
    if (moves->walk == WALK_REGISTERS && moves->looped > 0)
        str_printf(out, " x %" PRId64 " of %" PRId64 " rounds", moves->unrolled, moves->rounds);
    int64_t some = 0;
    for (int64_t v = 0; v < moves->vectors && moves->ends; v++) some += moves->ends[v] != 0;
    if (some > 0)
        str_printf(out, ", %" PRId64 " of %" PRId64 " vectors in some threads only", some,
                   moves->vectors);
    if (moves->bits) str_add(out, ", bits are copied");
    const Tile *tile = code_row(code, at)->tile;
    print_access(code, at, &tile->target, moves->target, out);
    for (size_t i = 0; i < moves->reads.count; i++) {
        const MovedRead *read = &moves->reads.items[i];
        print_access(code, at, read->expr->read, read->kind, out);
        int64_t count = read->first ? evaluations(read->first, moves->vectors) : moves->vectors;
        if (count < moves->vectors)
            str_printf(out, " (%" PRId64 " read%s for %" PRId64 " vectors)", count,
                       count == 1 ? "" : "s", moves->vectors);
    }
    const RowOrder *order = &plan_role(code->prog, code->role)->order[at];
    if (order->threads) str_add(out, ", after a barrier of the instance");
    if (order->publishes) str_add(out, ", a fence and the barrier after it");
    str_char(out, '\n');
}

static void print_part(const FlowCode *code, int at, const char *before, const Expr *part,
                       Str *out) {
    if (part == NULL) return;
    str_add(out, before);
    expr_print(part, code->prog, code->role, &code_row(code, at)->tile->space, out);
}

static void print_scaled(const FlowCode *code, int at, const Scaled *scaled, Str *out) {
    if (scaled == NULL) return;
    str_printf(out, "  row %d: factors out of maxima", at);
    print_part(code, at, ", computes ", scaled->unscaled, out);
    if (scaled->kept) str_add(out, " (which its registers hold)");
    print_part(code, at, " where ", scaled->when, out);
    if (scaled->when || scaled->unscaled == NULL)
        print_part(code, at, scaled->unscaled ? ", otherwise " : ", computes ", scaled->value, out);
    print_part(code, at, ", the result times ", scaled->result_by, out);
    str_char(out, '\n');
}

static void print_exchange(int at, const Tile *tile, Str *out) {
    const Exchange *exchange = &tile->exchange;
    if (!tile_combines(tile)) return;
    str_printf(out, "  row %d, after: parts of %d lanes and %d warps are combined", at,
               exchange->lane_count, exchange->warp_count);
    if (exchange->loop > 0) str_printf(out, " in region %d's variable, after it", exchange->loop);
    str_printf(out, "%s\n", exchange->later ? ", of warps after a later row" : "");
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
    str_printf(out, ", slab %" PRId64, matrix->slab);
}

static void print_contraction(const FlowCode *code, int at, const ContractionPlan *contraction,
                              Str *out) {
    if (contraction == NULL) return;
    const Mma *mma = &code_row(code, at)->tile->mma;
    const MmaRow *row = &mma_rows[mma->kind];
    str_printf(out, "  row %d: m64n%dk%d.%s, %d slabs of %d registers, %d steps", at, mma->n,
               row->k, row->name, mma->slabs, contraction->sums, mma->steps);
    print_matrix(&contraction->a, "first operand", out);
    print_matrix(&contraction->b, "second operand", out);
    str_char(out, '\n');
}

void plan_print_row(const FlowCode *code, const RowsPlan *plan, int at, Str *out) {
    const Row *row = code_row(code, at);
    print_waits(code, at, &plan->waits[at], "before", out);
    if (row->tile) print_copy_of(code, at, row->tile, out);
    print_ahead(code, at, plan->ahead[at], out);
    print_contraction(code, at, plan->contractions[at], out);
    print_moves(code, at, plan->moves[at], out);
    print_scaled(code, at, plan->scaled[at], out);
    if (plan->releases[at] >= 0)
        str_printf(out, "  row %d, after its reads: row %d\n", at, plan->releases[at]);
    if (row->tile) print_exchange(at, row->tile, out);
    print_waits(code, at, &plan->joins[at], "end of the second arm", out);
    if (plan->signals[at] >= 0)
        str_printf(out, "  row %d: the warp is done with the stage of `%s` before it arrives\n", at,
                   code->role->handles.items[plan->signals[at]].name);
    if (plan->commits && plan->commits[at])
        str_printf(out, "  row %d, after: commits its group\n", at);
    if (plan->clears[at])
        str_printf(out, "  row %d: emits no zeros, the first contraction clears the tile\n", at);
    for (size_t t = 0; t < code->role->tiles.count; t++)
        if (plan->zeros[t] && plan->zeros[t][at])
            str_printf(out, "  row %d: first writes the zeros of `%s`, unless a contraction did\n",
                       at, code->role->tiles.items[t].name);
    if (plan->passes[at])
        str_printf(out, "  row %d, after: passes turn %d on\n", at, plan->passes[at]);
}
