/* The report of a kernel: what was derived, each fact with its reason. */
#include "derive/report/report.h"
#include "derive/resources/resources.h"

#include <inttypes.h>

/* ---- pipes ----------------------------------------------------------------------------------- */

static const PipeUse *use_of_pipe(const Report *report, int role, const Pipe *pipe) {
    return &report->prog->roles.items[role].pipes[pipe - report->prog->pipes.items];
}

static void report_barriers(Report *report, const Pipe *pipe, bool full) {
    const PipePlan *plan = plan_pipe(report->prog, pipe);
    End end = full ? END_PRODUCE : END_CONSUME;
    uint32_t at = plan->barriers[end], count = plan->arrivals[end];
    const char *reason = plan->reasons[end];
    str_printf(&report->text, "  %-5s  %d barriers at %u, arrivals %u: %s\n",
               full ? "full" : "empty", pipe->stages, at, count, reason);
    fact_open(report, full ? "full" : "empty", '{');
    fact_integer(report, "offset", at);
    fact_integer(report, "arrivals", count);
    fact_text(report, "reason", reason);
    fact_close(report, '}');
}

static void report_field(Report *report, const Pipe *pipe, size_t index) {
    const Field *field = &pipe->fields.items[index];
    const PipePlan *plan = plan_pipe(report->prog, pipe);
    uint32_t at = plan->offset + plan->fields[index].offset,
             bytes = plan->fields[index].bytes * (uint32_t)field->count;
    const char *layout = plan_layout(report->arena, report->prog, &plan->fields[index].layout,
                                     field->type, field->extents[field->rank - 1]);
    str_printf(&report->text, "  field  %s: ", field->name);
    fact_open(report, NULL, '{');
    fact_text(report, "name", field->name);
    report_shape(report, field->type, field->rank, field->extents);
    if (field->is_array) str_printf(&report->text, " x %d", field->count);
    str_printf(&report->text, " at %u + stage * %u, %u bytes, %s\n", at, plan->stride, bytes,
               layout);
    fact_integer(report, "count", field->count);
    fact_integer(report, "offset", at);
    fact_integer(report, "stride", plan->stride);
    fact_integer(report, "bytes", bytes);
    fact_text(report, "layout", layout);
    fact_close(report, '}');
}

static void note(Report *report, const char *text) {
    str_printf(&report->text, "  %s\n", text);
    fact_text(report, NULL, text);
}

static void report_fences(Report *report, const Pipe *pipe) {
    const RolePlan *roles = report->prog->plan->roles;
    size_t index = (size_t)(pipe - report->prog->pipes.items);
    const char *producer = report->prog->roles.items[pipe->producer].name;
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        const char *consumer = report->prog->roles.items[pipe->consumers.items[i]].name;
        const PipeUse *read = use_of_pipe(report, pipe->consumers.items[i], pipe);
        if (agents_completing(read->agents, COMPLETES_GROUP))
            note(report, arena_printf(report->arena,
                                      "%s reads it by bulk stores: released after wait_group.read",
                                      consumer));
        if (roles[pipe->consumers.items[i]].fenced[END_CONSUME][index])
            note(report, arena_printf(report->arena,
                                      "%s reads it by ordinary loads, the copy engine overwrites "
                                      "it: fence.proxy.async before the release",
                                      consumer));
    }
    if (roles[pipe->producer].fenced[END_PRODUCE][index])
        note(report, arena_printf(report->arena,
                                  "%s writes it by ordinary stores, the copy engine or the matrix "
                                  "unit reads it: fence.proxy.async before it is full",
                                  producer));
}

static void report_arrivals(Report *report, const Pipe *pipe) {
    const PipeUse *use = use_of_pipe(report, pipe->producer, pipe);
    bool bytes = use->arrives[END_PRODUCE] & ARRIVES_BYTES;
    uint32_t count =
        report->prog->plan->roles[pipe->producer].stages.bytes[pipe - report->prog->pipes.items];
    fact_integer(report, "bytes_by_copy_engine", bytes ? count : 0);
    if (bytes)
        str_printf(&report->text,
                   "  bytes  %u per stage by the copy engine (expect_tx); partial tiles are whole "
                   "boxes filled with zeros\n",
                   count);
    fact_open(report, "notes", '[');
    if (use->arrives[END_PRODUCE] & ARRIVES_LANES)
        note(report, "lanes  each lane arrives when its cp.async are done (noinc)");
    if (use->waits_copies)
        note(report, "lanes  cp.async are waited for and fenced: a consumer reads the stage "
                     "through the async proxy");
    if (pipe - report->prog->pipes.items == report->prog->draws.tiles)
        note(report, "4 bytes per stage: the number of a tile");
    else if (pipe->fields.count == 0)
        note(report, "no fields: a token");
}

static void report_pipe(Report *report, const Pipe *pipe) {
    const Prog *prog = report->prog;
    const char *producer = prog->roles.items[pipe->producer].name;
    str_printf(&report->text, "\npipe %s[%d]  %s ->", pipe->name, pipe->stages, producer);
    fact_open(report, NULL, '{');
    fact_text(report, "name", pipe->name);
    fact_integer(report, "stages", pipe->stages);
    fact_text(report, "producer", producer);
    fact_open(report, "consumers", '[');
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        const char *consumer = prog->roles.items[pipe->consumers.items[i]].name;
        str_printf(&report->text, "%s %s", i > 0 ? "," : "", consumer);
        fact_text(report, NULL, consumer);
    }
    fact_close(report, ']');
    str_char(&report->text, '\n');
    report_barriers(report, pipe, true);
    report_barriers(report, pipe, false);
    report_arrivals(report, pipe);
    fact_close(report, ']');
    fact_open(report, "fields", '[');
    for (size_t f = 0; f < pipe->fields.count; f++) report_field(report, pipe, f);
    fact_close(report, ']');
    fact_open(report, "order", '[');
    report_fences(report, pipe);
    fact_close(report, ']');
    fact_close(report, '}');
}

/* ---- tensor maps, shared memory, preconditions ----------------------------------------------- */

static void report_map(Report *report, size_t number) {
    const Map *map = &report->prog->plan->maps.items[number];
    const char *tensor = report->prog->params.items[map->param].name;
    if (number == 0) str_add(&report->text, "\ntensor maps (innermost first)\n");
    str_printf(&report->text, "  %zu of `%s`: extents", number, tensor);
    fact_open(report, NULL, '{');
    fact_text(report, "tensor", tensor);
    fact_open(report, "extents", '[');
    for (int d = 0; d < map->rank; d++) {
        Str extent = str_new(report->arena);
        expr_print(map->extents[d], report->prog, NULL, NULL, &extent);
        str_printf(&report->text, " %s", extent.text);
        fact_text(report, NULL, extent.text);
    }
    fact_close(report, ']');
    fact_open(report, "box", '[');
    str_add(&report->text, ", box");
    for (int d = 0; d < map->rank; d++) {
        str_printf(&report->text, " %" PRId64, map->box[d]);
        fact_integer(report, NULL, map->box[d]);
    }
    fact_close(report, ']');
    str_add(&report->text, map->stored   ? ", stored\n"
                           : map->narrow ? ", loaded, L2 fetches no more than that\n"
                                         : ", loaded\n");
    fact_bool(report, "stored", map->stored);
    fact_bool(report, "narrow", map->narrow);
    fact_close(report, '}');
}

static void report_range(Report *report, const Range *range) {
    static const char *const kinds[] = {[RANGE_FULL] = "full barriers",
                                        [RANGE_EMPTY] = "empty barriers",
                                        [RANGE_FIELD] = "field",
                                        [RANGE_TILE] = "tile"};
    const char *pipe = range->pipe ? range->pipe : "", *field = range->name ? range->name : "",
               *name = arena_printf(report->arena, "%s%s%s", pipe,
                                    range->pipe && range->name ? "." : "", field);
    str_printf(&report->text, "  %6u  %6u bytes x %u  %s %s\n", range->offset, range->bytes,
               range->count, kinds[range->kind], name);
    fact_open(report, NULL, '{');
    fact_text(report, "what", kinds[range->kind]);
    fact_text(report, "name", name);
    fact_integer(report, "offset", range->offset);
    fact_integer(report, "bytes", range->bytes);
    fact_integer(report, "count", range->count);
    fact_close(report, '}');
}

static void report_precondition(Report *report, size_t number) {
    const Precondition *pre = &report->prog->preconditions.items[number];
    const char *reason = pre->reason != NULL ? pre->reason : "required";
    str_printf(&report->text, "%s  %s  (%s)\n", number == 0 ? "\nlaunch preconditions\n" : "",
               pre->text, reason);
    fact_open(report, NULL, '{');
    fact_text(report, "condition", pre->text);
    fact_text(report, "reason", reason);
    fact_close(report, '}');
}

static void report_sum(Report *report, size_t number) {
    const SumPlan *sum = &report->prog->plan->sums.items[number];
    const char *why = sum->why != NULL ? sum->why : "for any number of rows";
    str_printf(&report->text, "%s  %s  (%s)\n", number == 0 ? "\norder of sums\n" : "", sum->text,
               why);
    fact_open(report, NULL, '{');
    fact_text(report, "sum", sum->text);
    fact_bool(report, "invariant", sum->why == NULL);
    fact_text(report, "why", why);
    fact_close(report, '}');
}

/* ---- blocks of an SM ------------------------------------------------------------------------- */

static void report_occupancy(Report *report) {
    const Plan *plan = report->prog->plan;
    Str *text = &report->text;
    int64_t least = plan->blocks, most = plan->most_blocks;
    int64_t bytes = plan->in_flight + plan->loaded;
    str_printf(text, "%" PRId64, least);
    if (most > least) str_printf(text, " to %" PRId64, most);
    str_printf(text,
               " block%s of %d threads per SM, limited by %s; at most %d registers per thread\n",
               most == 1 ? "" : "s", plan->warps * WARP_LANES, plan->limited, plan->most_registers);
    str_printf(text,
               "%" PRId64 " bytes in flight per SM at %" PRId64 " block%s: in each %" PRId64
               " in stages that copies fill, %" PRId64 " in loads of threads\n",
               least * bytes, least, least == 1 ? "" : "s", plan->in_flight, plan->loaded);
    fact_integer(report, "blocks_an_sm", least);
    fact_integer(report, "most_blocks_an_sm", most);
    fact_text(report, "limited_by", plan->limited);
    fact_integer(report, "registers_a_thread", plan->most_registers);
    fact_integer(report, "bytes_in_flight_an_sm", least * bytes);
    fact_integer(report, "bytes_of_stages", plan->in_flight);
    fact_integer(report, "bytes_of_loads", plan->loaded);
}

/* ---- the kernel ------------------------------------------------------------------------------ */

static void report_cluster(Report *report) {
    const Prog *prog = report->prog;
    fact_integer(report, "blocks_a_cluster", prog->cluster);
    if (prog->cluster <= 1) return;
    str_printf(&report->text, "clusters of %d blocks:", prog->cluster);
    for (size_t a = 0, printed = 0; a < prog->axes.count; a++)
        if (prog->axes.items[a].cluster > 1)
            str_printf(&report->text, "%s %d along `%s`", printed++ > 0 ? "," : "",
                       prog->axes.items[a].cluster, prog->axes.items[a].name);
    str_add(&report->text,
            !cluster_shares_memory(prog)
                ? "; no copy is multicast, blocks do not access each other's memory\n"
            : cluster_drains(prog)
                ? "; a cluster barrier at the start, since blocks access each other's memory; a "
                  "block leaves when all have released the stages that it filled\n"
                : "; cluster barriers at both ends of the kernel, since blocks access each other's "
                  "memory\n");
}

/* Number of tiles of the grid, as a formula */
static const char *grid_text(const Report *report) {
    const Prog *prog = report->prog;
    Str text = str_new(report->arena);
    Expr *tiles = NULL;
    for (size_t a = 0; a < prog->axes.count; a++) {
        Expr *extent = prog->axes.items[a].padded;
        tiles = tiles ? expr_binary(report->arena, OP_MUL, tiles, extent, prog->span) : extent;
    }
    expr_print(tiles, prog, NULL, NULL, &text);
    return text.text;
}

/* Tiles of a dynamic grid */
static void report_draws(Report *report) {
    const Prog *prog = report->prog;
    const Draws *draws = &prog->draws;
    fact_bool(report, "dynamic", draws->role >= 0);
    if (draws->role < 0) return;
    const Role *first = &prog->roles.items[prog->pipes.items[draws->begun].producer];
    str_printf(&report->text,
               "tiles: role `grid` draws the number of a tile from a counter when `%s` begins a "
               "tile, two ahead of it; all roles that loop over the grid take it from the pipe "
               "`grid.tiles`; a launch leaves the counter 0, and needs one of its own if it may "
               "overlap others\n",
               first->name);
    fact_text(report, "drawn_for", first->name);
}

static void report_head(Report *report) {
    const Prog *prog = report->prog;
    int threads = prog->plan->warps * WARP_LANES;
    const char *tiles = grid_text(report);
    str_printf(
        &report->text,
        "kernel %s for %s: %d threads per block, %u bytes of shared memory (of %u), grid %s%s\n",
        prog->name, prog->target->name, threads, prog->plan->shared_bytes,
        prog->target->shared_limit, tiles,
        prog->draws.role >= 0 ? ", dynamic: as many blocks as are resident, which draw tiles"
        : prog->persistent    ? ", persistent: as many blocks as are resident"
                              : ", one block per coordinate");
    fact_text(report, "kernel", prog->name);
    fact_text(report, "target", prog->target->name);
    fact_integer(report, "threads", threads);
    fact_integer(report, "shared_bytes", prog->plan->shared_bytes);
    fact_integer(report, "shared_limit", prog->target->shared_limit);
    fact_text(report, "grid", tiles);
    fact_bool(report, "persistent", prog->persistent);
    report_draws(report);
    report_occupancy(report);
    report_cluster(report);
    if (prog->pipes.count == 0) return;
    str_printf(
        &report->text,
        "barriers are initialised by one thread, then fence.mbarrier_init and %s: visible to the "
        "copy engine and all threads\nphases begin at parity 0 for a consumer and 1 for a "
        "producer: every stage starts empty, and no thread arrives before the roles begin\n",
        cluster_shares_memory(prog) ? "barrier.cluster" : "bar.sync");
}

static void report_kernel(Report *report) {
    const Prog *prog = report->prog;
    fact_open(report, NULL, '{');
    report_head(report);
    fact_open(report, "pipes", '[');
    for (size_t i = 0; i < report->prog->pipes.count; i++)
        report_pipe(report, &report->prog->pipes.items[i]);
    fact_close(report, ']');
    fact_open(report, "roles", '[');
    for (size_t i = 0; i < report->prog->roles.count; i++)
        report_role(report, &report->prog->roles.items[i]);
    fact_close(report, ']');
    fact_open(report, "maps", '[');
    for (size_t i = 0; i < prog->plan->maps.count; i++) report_map(report, i);
    fact_close(report, ']');
    str_add(&report->text, "\nshared memory\n");
    fact_open(report, "shared", '[');
    for (size_t i = 0; i < prog->plan->memory.count; i++)
        report_range(report, &prog->plan->memory.items[i]);
    fact_close(report, ']');
    fact_open(report, "preconditions", '[');
    for (size_t i = 0; i < prog->preconditions.count; i++) report_precondition(report, i);
    fact_close(report, ']');
    fact_open(report, "sums", '[');
    for (size_t i = 0; i < prog->plan->sums.count; i++) report_sum(report, i);
    fact_close(report, ']');
    fact_close(report, '}');
}

void report_print(const Prog *prog, Str *text, Str *json) {
    Report report = {.arena = text->arena,
                     .prog = prog,
                     .text = str_new(text->arena),
                     .json = str_new(text->arena)};
    report_kernel(&report);
    str_char(&report.json, '\n');
    *text = report.text;
    *json = report.json;
}
