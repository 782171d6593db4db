/* The report of a role: its warps and registers, then the facts derived for its rows, in their
 * order, each with its line. */
#include "derive/report/report.h"
#include "derive/tiles.h"

#include <inttypes.h>

/* ---- lines ----------------------------------------------------------------------------------- */

static const char *where(const Report *report, Span span) {
    return source_where(report->arena, report->prog->source, span.lo, report->prog->span.lo);
}

/* Begins a fact about a line, in a JSON object that stays open. */
static void begin_fact(Report *report, Span span, const char *kind) {
    const Source *source = report->prog->source;
    const SourceFile *file = source_file(source, span.lo);
    str_printf(&report->text, "  %s: ", where(report, span));
    fact_open(report, NULL, '{');
    if (file != source->files) fact_text(report, "file", file->name);
    fact_integer(report, "line", source_line(source, span.lo));
    fact_text(report, "kind", kind);
}

static void end_fact(Report *report) {
    str_char(&report->text, '\n');
    fact_close(report, '}');
}

static const char *text_of(const Report *report, const Role *role, const Tile *tile,
                           const Access *access) {
    Str text = str_new(report->arena);
    access_print(access, report->prog, role, tile ? &tile->space : NULL, &text);
    return text.text;
}

/* ---- copies ---------------------------------------------------------------------------------- */

/* The blocks that share a copy, and their parts */
static void report_multicast(Report *report, const Tile *tile) {
    const Multicast *multicast = &tile->multicast;
    const Prog *prog = report->prog;
    if (multicast->axes == 0) return;
    str_add(&report->text, ", multicast along");
    fact_open(report, "multicast", '[');
    for (size_t a = 0, printed = 0; a < prog->axes.count; a++) {
        if (!(multicast->axes >> a & 1)) continue;
        str_printf(&report->text, "%s `%s`", printed++ > 0 ? " and" : "", prog->axes.items[a].name);
        fact_text(report, NULL, prog->axes.items[a].name);
    }
    fact_close(report, ']');
    if (multicast->parts > 1)
        str_printf(&report->text, ": each of %d blocks loads %" PRId64 " bytes for all of them",
                   multicast->parts, copy_bytes(tile));
    else
        str_printf(&report->text,
                   ": the first of %d blocks loads it for all, since it has no equal parts that "
                   "the copy engine can copy",
                   cluster_count(prog, multicast->axes));
}

static void report_copy(Report *report, const Role *role, const Row *row) {
    const Tile *tile = row->tile;
    bool boxes = tile_has_boxes(tile), load = tile_is_load(tile);
    const char *to = text_of(report, role, tile, &tile->target);
    int64_t count = boxes ? plan_boxes(report->prog->plan, &tile->box) : 1;
    begin_fact(report, row->span, "copy");
    str_printf(&report->text, "`%s` is %s by %s", to, load ? "loaded" : "stored",
               boxes ? "TMA" : "a bulk copy");
    if (count > 1) str_printf(&report->text, ", %" PRId64 " boxes", count);
    fact_text(report, "target", to);
    fact_text(report, "by", boxes ? "tensor map" : "bulk");
    fact_integer(report, "instructions", count);
    report_multicast(report, tile);
    end_fact(report);
}

static void report_prefetch(Report *report, const Role *role, const Row *row) {
    const Tile *tile = row->tile;
    int64_t count =
        tile->class == TILE_TENSOR_LOAD ? plan_boxes(report->prog->plan, &tile->box) : 1;
    const char *what = text_of(report, role, tile, tile->value->read);
    begin_fact(report, row->span, "prefetch");
    str_printf(&report->text, "`%s` is prefetched into L2", what);
    if (count > 1) str_printf(&report->text, ", %" PRId64 " boxes", count);
    fact_text(report, "what", what);
    fact_integer(report, "instructions", count);
    end_fact(report);
}

static void report_lanes(Report *report, const Role *role, const Row *row) {
    const Tile *tile = row->tile;
    const char *to = text_of(report, role, tile, &tile->target);
    int bytes = tile->piece.elements * (int)element_rows[tile->target.type].bytes;
    begin_fact(report, row->span, "copy");
    str_printf(&report->text, "`%s` is loaded by lanes, %d bytes at once, %s", to, bytes,
               tile->piece.asynchronous ? "by cp.async" : "through registers");
    fact_text(report, "target", to);
    fact_text(report, "by", tile->piece.asynchronous ? "cp.async" : "registers");
    fact_integer(report, "bytes_at_once", bytes);
    end_fact(report);
}

/* ---- matrix instructions --------------------------------------------------------------------- */

static void report_contraction(Report *report, const Role *role, const Row *row) {
    const Mma *mma = &row->tile->mma;
    const char *op = mma_instruction(report->arena, mma),
               *target = text_of(report, role, row->tile, &row->tile->target);
    bool registers = mma->a.tile->space == SPACE_REGISTER;
    begin_fact(report, row->span, "contraction");
    str_printf(&report->text, "`%s` by %s, %d times (%d x %d x %d), the first operand in %s",
               target, op, mma->slabs * mma->steps, 64 * mma->slabs, mma->n,
               mma->steps * mma_rows[mma->kind].k, registers ? "registers" : "shared memory");
    fact_text(report, "target", target);
    fact_text(report, "instruction", op);
    fact_integer(report, "instructions", mma->slabs * mma->steps);
    fact_integers(report, "extents",
                  (int64_t[]){64 * mma->slabs, mma->n, mma->steps * mma_rows[mma->kind].k}, 3);
    fact_bool(report, "first_operand_in_registers", registers);
    end_fact(report);
}

/* ---- reductions ------------------------------------------------------------------------------ */

/* How threads combine their parts */
static void report_exchange(Report *report, const Role *role, const Exchange *exchange) {
    int lanes = exchange->lane_count, warps = exchange->warp_count;
    const char *then = exchange->loop > 0 ? "," : ", then";
    if (lanes > 1) str_printf(&report->text, "%s between %d lanes by shuffles", then, lanes);
    if (lanes > 1) then = ", then";
    if (warps > 1 && exchange->later)
        str_printf(&report->text,
                   "%s between %d warps through shared memory, with the barrier of a later "
                   "reduction",
                   then, warps);
    else if (warps > 1)
        str_printf(&report->text,
                   "%s between %d warps through shared memory, with a barrier of `%s`", then, warps,
                   role->name);
    fact_integer(report, "lanes", lanes);
    fact_integer(report, "warps", warps);
    fact_bool(report, "barrier", warps > 1 && !exchange->later);
}

static void report_reduction(Report *report, const Role *role, const Row *row) {
    const Exchange *exchange = &row->tile->exchange;
    const char *what = tiles_text(report->prog->tiles, row->span);
    bool scan = row->tile->class == TILE_SCAN;
    begin_fact(report, row->span, scan ? "scan" : "reduction");
    fact_text(report, "what", what);
    str_printf(&report->text, "`%s` is %s in each thread", what, scan ? "scanned" : "reduced");
    if (exchange->loop > 0) {
        const Row *end = code_row(role->code, code_region(role->code, exchange->loop)->end);
        const char *name = exchange->local ? role->locals.items[exchange->variable].name
                                           : role->tiles.items[exchange->variable].name;
        str_printf(&report->text, "; `%s` is partial in each thread, completed on %s", name,
                   where(report, end->span));
        fact_text(report, "partial", name);
        fact_integer(report, "completed", source_line(report->prog->source, end->span.lo));
    }
    report_exchange(report, role, exchange);
    end_fact(report);
}

static void report_move(Report *report, const Role *role, const Row *row, const Access *access,
                        MoveKind kind, bool load) {
    if (kind != MOVE_MATRICES && kind != MOVE_TRANSPOSED) return;
    bool transposed = kind == MOVE_TRANSPOSED;
    const char *what = text_of(report, role, row->tile, access),
               *op = load ? "ldmatrix" : "stmatrix", *turned = transposed ? ".trans" : "";
    begin_fact(report, row->span, "matrix move");
    str_printf(&report->text,
               "`%s` is %s by %s%s: accumulators, 16 bits per element, %s contiguous", what,
               load ? "read" : "written", op, turned, transposed ? "columns" : "rows");
    fact_text(report, "what", what);
    fact_text(report, "instruction", arena_printf(report->arena, "%s%s", op, turned));
    end_fact(report);
}

/* ---- loads by threads ------------------------------------------------------------------------ */

typedef struct Reader {
    Report *report;
    const Role *role;
    const Row *row;
    const Moves *moves; /* NULL: the row is no tile statement */
} Reader;

/* The innermost loop around a row, except the one over the grid; NULL: none */
static const Region *loop_around(const Role *role, const Row *row) {
    const FlowCode *code = role->code;
    int region = code_region(code, row->region)->loop;
    if (region < 0 || code_region(code, region)->kind != REGION_FOR) return NULL;
    return code_region(code, region);
}

/* A load of a tensor by threads in a loop waits for global memory in each iteration. */
static void report_load(const Reader *reader, const Access *read) {
    Report *report = reader->report;
    const Region *loop = loop_around(reader->role, reader->row);
    if (read->space != SPACE_GLOBAL || loop == NULL) return;
    const char *what = text_of(report, reader->role, reader->row->tile, read),
               *variable = loop->var >= 0 ? reader->role->locals.items[loop->var].name : "";
    begin_fact(report, reader->row->span, "load");
    str_printf(&report->text, "`%s` is loaded from global memory by threads, in the loop over `%s`",
               what, variable);
    fact_text(report, "what", what);
    fact_text(report, "loop", variable);
    end_fact(report);
}

static void report_read(Expr *expr, void *data) {
    const Reader *reader = data;
    if (expr->kind != X_READ) return;
    if (reader->moves != NULL)
        report_move(reader->report, reader->role, reader->row, expr->read,
                    plan_move(reader->moves, expr), true);
    report_load(reader, expr->read);
}

/* A factor that is taken out of a maximum or minimum (plan_scaled.c) */
static void report_factor(Report *report, const Role *role, const Row *row, const Scaled *scaled) {
    if (scaled == NULL || scaled->unscaled == NULL) return;
    Str factor = str_new(report->arena);
    const Access *target = &row->tile->target;
    expr_print(scaled->written, report->prog, role, &row->tile->space, &factor);
    begin_fact(report, row->span, "factor");
    const char *where = scaled->when ? ", where that is positive and finite" : "";
    const char *held = scaled->result_by ? NULL : role->tiles.items[target->object].name;
    if (held)
        str_printf(&report->text,
                   "`%s` holds elements without their factor `%s`%s: it multiplies maxima, and in "
                   "sums it is one instruction with them",
                   held, factor.text, where);
    else
        str_printf(&report->text, "`%s` multiplies the result instead of each element%s",
                   factor.text, where);
    fact_text(report, "factor", factor.text);
    fact_text(report, "held", held);
    fact_bool(report, "decided_at_launch", scaled->when != NULL);
    end_fact(report);
}

static void report_map_row(Report *report, const Role *role, int at) {
    const Row *row = code_row(role->code, at);
    const Moves *moves = plan_role(report->prog, role)->rows->moves[at];
    Reader reader = {report, role, row, moves};
    expr_visit(report->arena, row->tile->value, report_read, &reader);
    if (row->tile->where) expr_visit(report->arena, row->tile->where, report_read, &reader);
    report_factor(report, role, row, moves->scaled);
    report_move(report, role, row, &row->tile->target, moves->target, false);
}

/* ---- waits ----------------------------------------------------------------------------------- */

/* The reason for a wait before a row that accesses objects in flight */
static const char *why_waits(const Row *row) {
    static const char *const by_control[CONTROL_COUNT] = {
        [CONTROL_EXIT] = "is left at the end of the role",
        [CONTROL_LOOP] = "is used in the loop",
        [CONTROL_NEXT] = "is used in the next iteration",
        [CONTROL_LEAVE] = "is used in the enclosing loop",
        [CONTROL_ELSE] = "is used in the enclosing loop",
        [CONTROL_IF] = "is used under the condition",
        [CONTROL_BLOCK] = "is used under the condition"};
    const RowEffects *effects = &row_effects[row->kind];
    StageEffect stage = effects->stage;
    if (stage == STAGE_GIVE || stage == STAGE_GIVE_LATE || stage == STAGE_GIVE_ALL)
        return "is released";
    if (effects->scope == SCOPE_CLOSES) return "ends";
    return by_control[effects->control] ? by_control[effects->control] : "is used";
}

static const char *name_of_wait(const Role *role, const Wait *wait) {
    if (wait->tile >= 0) return role->tiles.items[wait->tile].name;
    return wait->handle >= 0 ? role->handles.items[wait->handle].name : NULL;
}

static void report_depth(Report *report, const char *what, int depth) {
    str_printf(&report->text, "waits for %s%s", depth == 0 ? "all " : "", what);
    if (depth > 0)
        str_printf(&report->text, " except the last %d group%s", depth, depth == 1 ? "" : "s");
    str_add(&report->text, ": ");
}

static void report_wait(Report *report, const Role *role, const Row *row, const Wait *wait) {
    const char *name = name_of_wait(role, wait), *why = why_waits(row);
    begin_fact(report, row->span, "wait");
    report_depth(report, "matrix instructions", wait->depth);
    if (name != NULL)
        str_printf(&report->text, "`%s`, which they use, %s", name, why);
    else
        str_add(&report->text, "shows ptxas that no instruction on the accumulator is in flight");
    fact_text(report, "for", "matrix instructions");
    fact_integer(report, "depth", wait->depth);
    fact_text(report, "of", name);
    fact_text(report, "reason",
              name != NULL ? why : "no instruction on the accumulator is in flight");
    end_fact(report);
}

/* Equal ones of copies of the row in unrolled loops are reported once. */
static void report_waits(Report *report, const Role *role, const Row *row, const Waits *waits) {
    for (size_t i = 0; i < waits->count; i++) {
        const Wait *wait = &waits->items[i];
        bool printed = false;
        for (size_t k = 0; k < i; k++)
            printed |= waits->items[k].depth == wait->depth && waits->items[k].tile == wait->tile &&
                       waits->items[k].handle == wait->handle;
        if (!printed) report_wait(report, role, row, wait);
    }
}

static void report_acquire(Report *report, const Role *role, const Row *row) {
    const Handle *handle = &role->handles.items[row->handle];
    const Pipe *pipe = &report->prog->pipes.items[handle->pipe];
    const char *what = handle->end == END_CONSUME ? "full" : "empty";
    if (row->unwaited) return;
    begin_fact(report, row->head.hi > row->head.lo ? row->head : row->span, "wait");
    str_printf(&report->text, "waits until the next stage of `%s`, one of %d, is %s%s", pipe->name,
               pipe->stages, what, row->hint >= 0 ? ", unless a hint shows it" : "");
    fact_text(report, "for", "a stage");
    fact_text(report, "pipe", pipe->name);
    fact_text(report, "reason", what);
    fact_bool(report, "hinted", row->hint >= 0);
    end_fact(report);
}

static void report_early(Report *report, const Row *row, const char *name) {
    begin_fact(report, row->span, "early release");
    str_printf(&report->text, "`%s` is released when the elements that this reads are in registers",
               name);
    fact_text(report, "of", name);
    end_fact(report);
}

static void report_release(Report *report, const Role *role, const Row *row) {
    const Handle *handle = &role->handles.items[row->handle];
    Agents agents = role->pipes[handle->pipe].agents;
    if (handle->end != END_CONSUME || !agents_completing(agents, COMPLETES_GROUP)) return;
    int lag = row->kind == ROW_KEEP ? role->code->lates.items[row->late].lag : 0;
    begin_fact(report, row->span, "wait");
    report_depth(report, "bulk stores", lag);
    str_printf(&report->text, "they read `%s`, which is released", handle->name);
    fact_text(report, "for", "bulk stores");
    fact_integer(report, "depth", lag);
    fact_text(report, "of", handle->name);
    fact_text(report, "reason", "is released");
    end_fact(report);
}

static void report_late(Report *report, const Role *role, const Row *row) {
    const Late *late = &role->code->lates.items[row->late];
    if (late->lag == 0) return;
    const char *name = role->handles.items[late->handle].name;
    begin_fact(report, late->head, "late release");
    str_printf(&report->text,
               "`%s` is released %d iteration%s late, so that its asynchronous reads overlap the "
               "next iteration",
               name, late->lag, late->lag == 1 ? "" : "s");
    fact_text(report, "of", name);
    fact_integer(report, "iterations", late->lag);
    end_fact(report);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void report_tile_row(Report *report, const Role *role, int at) {
    const Row *row = code_row(role->code, at);
    if (tile_combines(row->tile)) report_reduction(report, role, row);
    switch (class_rows[row->tile->class].mover) {
    case MOVER_ENGINE: report_copy(report, role, row); break;
    case MOVER_LANES: report_lanes(report, role, row); break;
    case MOVER_MATRIX: report_contraction(report, role, row); break;
    case MOVER_THREADS: report_map_row(report, role, at); break;
    case MOVER_NOBODY: break;
    }
}

static void report_row(Report *report, const Role *role, int at) {
    const Row *row = code_row(role->code, at);
    const RowsPlan *plan = plan_role(report->prog, role)->rows;
    report_waits(report, role, row, &plan->waits[at]);
    if (row->every) return; /* report_draws */
    if (row->kind == ROW_ACQUIRE) report_acquire(report, role, row);
    if (row->kind == ROW_ACQUIRE && row->late >= 0) report_late(report, role, row);
    if (row_releases(row->kind)) report_release(report, role, row);
    if (row->kind == ROW_PREFETCH) report_prefetch(report, role, row);
    if (row->kind == ROW_TILE) report_tile_row(report, role, at);
    if (plan->releases[at] >= 0) {
        const Row *release = code_row(role->code, plan->releases[at]);
        report_early(report, row, role->handles.items[release->handle].name);
    }
    if (row->kind == ROW_SET) {
        Reader reader = {report, role, row, NULL};
        expr_visit(report->arena, row->value, report_read, &reader);
    }
    report_waits(report, role, row, &plan->joins[at]);
}

/* ---- the role -------------------------------------------------------------------------------- */

static void report_tile(Report *report, const Role *role, size_t index) {
    const RoleTile *tile = &role->tiles.items[index];
    const TilePlan *plan = &plan_role(report->prog, role)->tiles[index];
    Str layout = str_new(report->arena);
    str_printf(&report->text, "  %s %s: ", tile->in_registers ? "registers" : "shared", tile->name);
    fact_open(report, NULL, '{');
    fact_text(report, "name", tile->name);
    fact_bool(report, "in_registers", tile->in_registers);
    report_shape(report, tile->type, tile->rank, tile->extents);
    if (tile->in_registers) {
        int64_t registers = plan->registers;
        layout_print(&plan->held, role->warps * 32, &layout);
        str_printf(&report->text, ", %s, %" PRId64 " register%s\n", layout.text, registers,
                   registers == 1 ? "" : "s");
        fact_integer(report, "registers", registers);
    } else {
        str_add(&layout, plan_layout(report->arena, report->prog, &plan->layout, tile->type,
                                     tile->extents[tile->rank - 1]));
        str_printf(&report->text, " at %u + instance * %u, %s\n", plan->offset, plan->stride,
                   layout.text);
        fact_integer(report, "offset", plan->offset);
        fact_integer(report, "stride", plan->stride);
    }
    fact_text(report, "layout", layout.text);
    fact_close(report, '}');
}

static void report_turns(Report *report, const Role *role) {
    const Prog *prog = report->prog;
    if (role->in_turn) {
        str_printf(&report->text, "  instance k takes iterations k, k + %d, .. of the grid",
                   role->instances);
        bool any = false;
        for (size_t i = 0; i < prog->pipes.count; i++) {
            if (!role->pipes[i].in_turn) continue;
            str_printf(&report->text, "%s`%s`",
                       any ? ", " : ": each stage belongs to one instance, of ",
                       prog->pipes.items[i].name);
            any = true;
        }
        str_char(&report->text, '\n');
    }
    for (int turn = 0; turn < role->turns; turn++) {
        int first = plan_role(prog, role)->tokens + turn * role->instances;
        str_printf(&report->text,
                   "  turn %d: named barriers %d to %d, instance k waits at %d + k and arrives for "
                   "the next\n",
                   turn + 1, first, first + role->instances - 1, first);
    }
    fact_bool(report, "in_turn", role->in_turn);
    fact_integer(report, "turns", role->turns);
}

static void report_warps(Report *report, const Role *role) {
    const RolePlan *plan = plan_role(report->prog, role);
    int last = plan->first_warp + role->warps * role->instances - 1;
    str_printf(&report->text, "\nrole %s  %d instance%s of %d warp%s, warp%s %d", role->name,
               role->instances, role->instances == 1 ? "" : "s", role->warps,
               role->warps == 1 ? "" : "s", last == plan->first_warp ? "" : "s", plan->first_warp);
    if (last > plan->first_warp) str_printf(&report->text, " to %d", last);
    str_char(&report->text, '\n');
    if (role->one_lane)
        str_add(&report->text, "  runs in one elected lane: it only issues copies\n");
    if (plan->registers > 0) str_printf(&report->text, "  setmaxnreg %d\n", plan->registers);
    if (plan->barrier > 0)
        str_printf(
            &report->text,
            "  named barrier%s from %d: orders writes and reads of data that its threads share\n",
            role->instances == 1 ? "" : "s", plan->barrier);
    fact_text(report, "name", role->name);
    fact_integer(report, "instances", role->instances);
    fact_integer(report, "warps", role->warps);
    fact_integer(report, "first_warp", plan->first_warp);
    fact_bool(report, "one_lane", role->one_lane);
    fact_integer(report, "setmaxnreg", plan->registers);
    fact_integer(report, "named_barrier", plan->barrier);
}

void report_role(Report *report, const Role *role) {
    const RolePlan *plan = plan_role(report->prog, role);
    fact_open(report, NULL, '{');
    report_warps(report, role);
    report_turns(report, role);
    fact_open(report, "tiles", '[');
    for (size_t i = 0; i < role->tiles.count; i++) report_tile(report, role, i);
    fact_close(report, ']');
    if (plan->tile_registers > 0)
        str_printf(&report->text, "  register tiles take at most %d registers per thread\n",
                   plan->tile_registers);
    fact_integer(report, "tile_registers", plan->tile_registers);
    fact_open(report, "rows", '[');
    for (size_t at = 0; at < role->code->rows.count; at++) report_row(report, role, (int)at);
    fact_close(report, ']');
    if (plan->drains)
        str_add(&report->text,
                "  wait_group 0 before exit: its bulk stores read shared memory until then\n");
    fact_close(report, '}');
}
