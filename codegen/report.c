/* --report: what was derived, each fact with its reason. */
#include "codegen/gen.h"

#include <inttypes.h>

static void report_shape(Element type, int rank, const int64_t *extents, Str *out) {
    str_printf(out, "%s[", element_rows[type].spelling);
    for (int axis = 0; axis < rank; axis++) str_printf(out, "%s%" PRId64, axis > 0 ? ", " : "", extents[axis]);
    str_char(out, ']');
}

static void report_tile(const Prog *prog, const Role *role, const RoleTile *tile, Str *out) {
    str_printf(out, "  %s %s: ", tile->in_registers ? "registers" : "shared", tile->name);
    report_shape(tile->type, tile->rank, tile->extents, out);
    if (tile->in_registers) {
        str_add(out, ", ");
        layout_print(&tile->held, role->warps * 32, out);
        str_printf(out, ", %" PRId64 " register%s\n", tile_registers(tile), tile_registers(tile) == 1 ? "" : "s");
        return;
    }
    str_printf(out, " at %u + instance * %u, %s\n", tile->offset, tile->stride,
               layout_text(out->arena, prog, &tile->layout, tile->type, tile->extents[tile->rank - 1]));
}

static void report_pipe(const Prog *prog, const Pipe *pipe, Str *out) {
    str_printf(out, "\npipe %s[%d]  %s ->", pipe->name, pipe->stages, prog->roles.items[pipe->producer].name);
    for (size_t i = 0; i < pipe->consumers.count; i++)
        str_printf(out, "%s %s", i > 0 ? "," : "", prog->roles.items[pipe->consumers.items[i]].name);
    str_printf(out, "\n  full   %d barriers at %u, arrivals %u: %s\n", pipe->stages, pipe->full, pipe->full_count,
               pipe->full_reason);
    str_printf(out, "  empty  %d barriers at %u, arrivals %u: %s\n", pipe->stages, pipe->empty, pipe->empty_count,
               pipe->empty_reason);
    const PipeUse *use = &prog->roles.items[pipe->producer].pipes[pipe - prog->pipes.items];
    if (use->tx_arrives)
        str_printf(
            out,
            "  bytes  %u a stage land by the copy engine (expect_tx), partial tiles are whole boxes with zero fill\n",
            use->tx_bytes);
    if (use->lanes_arrive) str_add(out, "  lanes  each lane arrives when its cp.async are done (noinc)\n");
    if (use->waits_copies)
        str_add(out,
                "  lanes  cp.async are waited for and fenced: a consumer reads the stage through the async proxy\n");
    if (pipe->fields.count == 0) str_add(out, "  no payload: a token\n");
    for (size_t f = 0; f < pipe->fields.count; f++) {
        const Field *field = &pipe->fields.items[f];
        str_printf(out, "  field  %s: ", field->name);
        report_shape(field->type, field->rank, field->extents, out);
        if (field->is_array) str_printf(out, " x %d", field->count);
        str_printf(out, " at %u + stage * %u, %u bytes", pipe->offset + field->offset, pipe->stride,
                   field->bytes * (uint32_t)field->count);
        str_printf(out, ", %s\n",
                   layout_text(out->arena, prog, &field->layout, field->type, field->extents[field->rank - 1]));
    }
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        const Role *role = &prog->roles.items[pipe->consumers.items[i]];
        const PipeUse *read = &role->pipes[pipe - prog->pipes.items];
        if (read->bulk_out)
            str_printf(out, "  %s reads it by bulk stores: released after wait_group.read\n", role->name);
        if (read->generic_out && use->tensor_in)
            str_printf(out,
                       "  %s reads it by ordinary loads, the copy engine overwrites it: fence.proxy.async before the "
                       "release\n",
                       role->name);
        if (read->bulk_out && use->generic_in)
            str_printf(
                out,
                "  %s writes it by ordinary stores, the copy engine reads it: fence.proxy.async before it is full\n",
                prog->roles.items[pipe->producer].name);
    }
}

static void report_move(const Prog *prog, const Role *role, const Tile *tile, const Access *access, bool load,
                        Str *out) {
    RoleState state = {.role = role};
    Gen gen = {.arena = out->arena, .prog = prog, .role = &state};
    MatrixMove move = map_moves_matrices(&gen, tile, access);
    if (move == MATRIX_NONE) return;
    str_add(out, "  `");
    access_print(access, prog, role, &tile->space, out);
    str_printf(out, "` is %s by %s%s: accumulators, 16 bits an element, %s contiguous\n", load ? "read" : "written",
               load ? "ldmatrix" : "stmatrix", move == MATRIX_TRANSPOSED ? ".trans" : "",
               move == MATRIX_TRANSPOSED ? "columns" : "rows");
}

typedef struct Moves {
    const Prog *prog;
    const Role *role;
    const Tile *tile;
    Str *out;
} Moves;

static void report_read(Expr *expr, void *data) {
    const Moves *moves = data;
    if (expr->kind == X_READ) report_move(moves->prog, moves->role, moves->tile, expr->read, true, moves->out);
}

static void report_moves(const Prog *prog, const Role *role, const Tile *tile, Str *out) {
    Moves moves = {prog, role, tile, out};
    if (tile->class != TILE_MAP) return;
    expr_visit(out->arena, tile->value, report_read, &moves);
    report_move(prog, role, tile, &tile->target, false, out);
}

/* Who loads what of a copy that blocks share */
static void report_multicast(const Prog *prog, const Role *role, const Tile *tile, Str *out) {
    const Multicast *multicast = &tile->multicast;
    if (multicast->axes == 0) return;
    str_add(out, "  `");
    access_print(tile->value->read, prog, role, &tile->space, out);
    str_add(out, "` is multicast along");
    for (size_t a = 0, said = 0; a < prog->axes.count; a++)
        if (multicast->axes >> a & 1) str_printf(out, "%s `%s`", said++ > 0 ? " and" : "", prog->axes.items[a].name);
    if (multicast->parts > 1)
        str_printf(out, ": each of %d blocks loads %" PRId64 " bytes for all of them\n", multicast->parts,
                   copy_bytes(tile));
    else
        str_printf(
            out, ": the first of %d blocks loads it for all, since it has no equal parts that the copy engine moves\n",
            cluster_count(prog, multicast->axes));
}

static void report_late(const Role *role, const Late *late, Str *out) {
    if (late->lag == 0) return;
    str_printf(out, "  `%s` is released %d iteration%s late, so that what reads it asynchronously overlaps the next\n",
               role->handles.items[late->handle].name, late->lag, late->lag == 1 ? "" : "s");
}

/* What is derived for a role's statements, in their order */
static void report_rows(const Prog *prog, const Role *role, Str *out) {
    const FlowCode *code = role->code;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_ACQUIRE && row->late >= 0) report_late(role, &code->lates.items[row->late], out);
        if (row->kind != ROW_TILE) continue;
        report_moves(prog, role, row->tile, out);
        report_multicast(prog, role, row->tile, out);
    }
}

static bool stores_in_bulk(const Prog *prog, const Role *role) {
    for (size_t i = 0; i < prog->pipes.count; i++)
        if (role->pipes[i].bulk_out) return true;
    return false;
}

static void report_turns(const Prog *prog, const Role *role, Str *out) {
    if (role->in_turn) {
        str_printf(out, "  instance k takes iterations k, k + %d, .. of the grid", role->instances);
        bool any = false;
        for (size_t i = 0; i < prog->pipes.count; i++) {
            if (!role->pipes[i].in_turn) continue;
            str_printf(out, "%s`%s`", any ? ", " : ": each stage is one instance's, of ", prog->pipes.items[i].name);
            any = true;
        }
        str_char(out, '\n');
    }
    for (int turn = 0; turn < role->turns; turn++) {
        int first = role->tokens + turn * role->instances;
        str_printf(out, "  turn %d: named barriers %d to %d, instance k waits at %d + k and arrives for the next\n",
                   turn + 1, first, first + role->instances - 1, first);
    }
}

static void report_role(const Prog *prog, const Role *role, Str *out) {
    int last = role->first_warp + role->warps * role->instances - 1;
    str_printf(out, "\nrole %s  %d instance%s of %d warp%s, warp%s %d", role->name, role->instances,
               role->instances == 1 ? "" : "s", role->warps, role->warps == 1 ? "" : "s",
               last == role->first_warp ? "" : "s", role->first_warp);
    if (last > role->first_warp) str_printf(out, " to %d", last);
    str_char(out, '\n');
    if (role->one_lane) str_add(out, "  runs in one elected lane: it only issues copies\n");
    if (role->registers > 0) str_printf(out, "  setmaxnreg %d\n", role->registers);
    if (role->barrier > 0)
        str_printf(out, "  named barrier%s from %d: writes and reads of what its threads share are ordered\n",
                   role->instances == 1 ? "" : "s", role->barrier);
    report_turns(prog, role, out);
    for (size_t i = 0; i < role->tiles.count; i++) report_tile(prog, role, &role->tiles.items[i], out);
    size_t where;
    int held = role_tile_registers(role, &where);
    if (held > 0) str_printf(out, "  register tiles hold %d registers of a thread at most\n", held);
    report_rows(prog, role, out);
    if (stores_in_bulk(prog, role))
        str_add(out, "  wait_group 0 before exit: its bulk stores read shared memory until then\n");
}

static void report_maps(const Prog *prog, const Manifest *manifest, Str *out) {
    for (size_t i = 0; i < manifest->maps.count; i++) {
        const ManifestMap *map = &manifest->maps.items[i];
        str_printf(out, "%s  %zu of `%s`: extents", i == 0 ? "\ntensor maps (innermost first)\n" : "", i,
                   prog->params.items[map->parameter].name);
        for (int d = 0; d < map->rank; d++) {
            str_char(out, ' ');
            formula_print(&map->extents[d], manifest, out);
        }
        str_add(out, ", box");
        for (int d = 0; d < map->rank; d++) str_printf(out, " %u", map->box[d]);
        str_add(out, map->stored ? ", stored\n" : ", loaded\n");
    }
}

void codegen_report(const Prog *prog, const Manifest *manifest, Str *out) {
    str_printf(out, "kernel %s for %s: %d threads a block, %u bytes of shared memory (of %u), grid ", manifest->kernel,
               manifest->target, manifest->threads, manifest->shared_bytes, prog->target->shared_limit);
    formula_print(&manifest->tiles, manifest, out);
    str_add(out,
            manifest->persistent ? ", persistent: as many blocks as are resident\n" : ", one block a coordinate\n");
    bool talks = cluster_talks(prog);
    if (prog->cluster > 1) {
        str_printf(out, "clusters of %d blocks:", prog->cluster);
        for (size_t a = 0, said = 0; a < prog->axes.count; a++)
            if (prog->axes.items[a].cluster > 1)
                str_printf(out, "%s %d along `%s`", said++ > 0 ? "," : "", prog->axes.items[a].cluster,
                           prog->axes.items[a].name);
        str_add(out, talks ? "; the barrier of the cluster stands at both ends of the kernel, as blocks touch each "
                             "other's memory\n"
                           : "; no copy is multicast, blocks do not touch each other's memory\n");
    }
    if (prog->pipes.count > 0)
        str_printf(out,
                   "barriers are initialised by one thread, then fence.mbarrier_init and %s: the copy engine and all "
                   "threads see them\n"
                   "phases begin at parity 0 for a consumer and 1 for a producer: every stage starts empty, and nobody "
                   "arrives beforehand\n",
                   talks ? "barrier.cluster" : "bar.sync");
    for (size_t i = 0; i < prog->pipes.count; i++) report_pipe(prog, &prog->pipes.items[i], out);
    for (size_t i = 0; i < prog->roles.count; i++) report_role(prog, &prog->roles.items[i], out);
    report_maps(prog, manifest, out);
    str_add(out, "\nshared memory\n");
    for (size_t i = 0; i < manifest->shared.count; i++) {
        const ManifestShared *range = &manifest->shared.items[i];
        static const char *const kinds[] = {[SHARED_FULL] = "full barriers",
                                            [SHARED_EMPTY] = "empty barriers",
                                            [SHARED_FIELD] = "field",
                                            [SHARED_TILE] = "tile",
                                            [SHARED_SCRATCH] = "scratch"};
        str_printf(out, "  %6u  %6u bytes x %u  %s %s%s%s\n", range->offset, range->bytes, range->stages,
                   kinds[range->kind], range->pipe != NULL ? range->pipe : "",
                   range->pipe != NULL && range->field != NULL ? "." : "", range->field != NULL ? range->field : "");
    }
    for (size_t i = 0; i < manifest->preconditions.count; i++) {
        const ManifestPrecondition *pre = &manifest->preconditions.items[i];
        str_printf(out, "%s  %s  (%s)\n", i == 0 ? "\nlaunch preconditions\n" : "", pre->text,
                   pre->reason != NULL ? pre->reason : "required");
    }
}
