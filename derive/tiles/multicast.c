/* Multicast: a load into a stage whose coordinates are the same in several blocks of a cluster
 * is issued once for all of them, each block loading a part. Needs the variation of values along
 * the cluster's axes; sets the blocks that share the copy, or reports what prevents it: all
 * blocks that share a stage's copies must acquire it equally often, and all must execute the
 * copy. */
#include "flow/origin.h"
#include "derive/tiles.h"

/* Axes along which the coordinates of the copy differ, on either side */
static uint32_t coordinates_along(const Site *site) {
    const Access *ends[] = {&site->tile->target, site->tile->value->read};
    uint32_t along = 0;
    for (int e = 0; e < 2; e++) {
        if (ends[e]->element) along |= ends[e]->element->along;
        for (int d = 0; d < ends[e]->rank; d++) along |= ends[e]->subs[d]->along;
    }
    return along;
}

static Pipe *pipe_of(const Tiles *tiles, const Site *site) {
    return &tiles->prog->pipes.items[site->role->handles.items[site->tile->target.object].pipe];
}

/* Blocks that share copies wait for each other. One role acquires its pipes in the same order in
 * all blocks, and if all pipes are acquired equally often, the dependences between roles are the
 * same in all blocks: a cycle over blocks implies one in a single block. This argument fails for
 * the copies of two roles and pipes that vary along axes, if the first role shares along one of
 * these axes: then the second may share along none of them, because a cycle could go through the
 * blocks along one axis and back along another. */
static uint32_t contested_axes(const Tiles *tiles, const Site *site) {
    uint32_t uneven = 0, taken = 0;
    for (size_t p = 0; p < tiles->prog->pipes.count; p++) {
        const Pipe *pipe = &tiles->prog->pipes.items[p];
        bool own = pipe->producer >= 0 && &tiles->prog->roles.items[pipe->producer] == site->role;
        uneven |= pipe->along;
        for (uint32_t axes = 1; axes < (uint32_t)1 << PROG_MAX_RANK && !own; axes++)
            if (pipe->multicast >> axes & 1) taken |= axes;
    }
    return uneven & taken ? uneven : 0;
}

static uint32_t shared_axes(Tiles *tiles, const Site *site) {
    uint32_t along = coordinates_along(site) | site->tile->along | pipe_of(tiles, site)->along;
    return cluster_axes(tiles->prog) & ~(along | contested_axes(tiles, site));
}

static void settle(Tiles *tiles, Site *site, uint32_t axes, bool parted) {
    Multicast *multicast = &site->tile->multicast;
    if (!parted) *multicast = (Multicast){.parts = 1};
    multicast->axes = axes;
    pipe_of(tiles, site)->multicast |= (uint32_t)1 << axes;
}

void multicast_boxes(Tiles *tiles, Site *site, BoxPlan *plan, const Layout *layout) {
    uint32_t axes = shared_axes(tiles, site);
    if (axes == 0) return;
    settle(tiles, site, axes,
           boxes_part(plan, layout, element_rows[site->tile->target.type].bytes,
                      cluster_count(tiles->prog, axes), &site->tile->multicast));
}

void multicast_piece(Tiles *tiles, Site *site) {
    uint32_t axes = shared_axes(tiles, site), *bytes = &site->tile->bulk.bytes;
    int parts = cluster_count(tiles->prog, axes);
    if (axes == 0) return;
    bool parted = *bytes % (16 * (uint32_t)parts) == 0; /* bulk copies move multiples of 16 bytes */
    if (parted) {
        *bytes /= (uint32_t)parts;
        site->tile->multicast =
            (Multicast){.parts = parts,
                        .elements = *bytes / element_rows[site->tile->target.type].bytes,
                        .bytes = *bytes};
    }
    settle(tiles, site, axes, parted);
}

static bool is_whole(const Tile *tile) {
    return tile->multicast.axes != 0 && tile->multicast.parts == 1;
}

/* A copy of the pipe that one block issues for others, but not for all blocks that share copies of
 * the pipe; 0: none. Returns the axes along which it is shared. */
static uint32_t find_partial(const Tiles *tiles, const Pipe *pipe) {
    uint32_t all = 0, found = 0;
    if ((pipe->multicast & (pipe->multicast - 1)) == 0) return 0;
    for (uint32_t axes = 1; axes < (uint32_t)1 << PROG_MAX_RANK; axes++)
        if (pipe->multicast >> axes & 1) all |= axes;
    for (size_t i = 0; i < tiles->sites.count; i++) {
        const Tile *tile = tiles->sites.items[i]->tile;
        if (!is_whole(tile) || pipe_of(tiles, tiles->sites.items[i]) != pipe) continue;
        if (tile->multicast.axes != all) found = tile->multicast.axes;
    }
    return found;
}

static void withdraw(const Tiles *tiles, Pipe *pipe, uint32_t axes) {
    pipe->multicast = 0;
    for (size_t i = 0; i < tiles->sites.count; i++) {
        Multicast *multicast = &tiles->sites.items[i]->tile->multicast;
        if (multicast->axes == 0 || pipe_of(tiles, tiles->sites.items[i]) != pipe) continue;
        if (multicast->parts == 1 && multicast->axes == axes)
            *multicast = (Multicast){0};
        else
            pipe->multicast |= (uint32_t)1 << multicast->axes;
    }
}

/* A block that loads no part of a copy may be one lap later than the block that loads it for
 * both. If copies of a pipe reach different groups of blocks, a third block then arrives at the
 * barrier of the first one lap too early. So a copy without parts is shared by all blocks that
 * share copies of its pipe, or by none. */
void multicast_withdraw(const Tiles *tiles) {
    for (size_t p = 0; p < tiles->prog->pipes.count; p++) {
        Pipe *pipe = &tiles->prog->pipes.items[p];
        for (uint32_t axes; (axes = find_partial(tiles, pipe)) != 0;) withdraw(tiles, pipe, axes);
    }
}

/* ---- obstacles ------------------------------------------------------------------------------- */

/* the innermost bound or condition around a row that differs along an axis */
typedef struct Control {
    const Role *role;
    /* around this row; NULL: around the acquires of `pipe` */
    const Row *tile;
    int pipe;
    uint32_t along;
    Expr *cause;
    /* the bound or condition decides about this LEAVE; NULL: about the row */
    const Row *leave;
} Control;

static bool is_sought(const Control *control, const Row *row) {
    if (control->tile) return row == control->tile;
    if (row->kind != ROW_ACQUIRE || row->handle < 0) return false;
    return control->role->handles.items[row->handle].pipe == control->pipe;
}

static Expr *differing(const Control *control, int region) {
    const FlowCode *code = control->role->code;
    for (; region >= 0; region = code->regions.items[region].parent) {
        const Region *row = &code->regions.items[region];
        Expr *all[] = {row->condition, row->where, row->hi, row->lo};
        for (size_t i = 0; i < COUNT_OF(all); i++)
            if (all[i] && (all[i]->along & control->along)) return all[i];
    }
    return NULL;
}

/* A LEAVE out of an enclosing region that only some blocks take */
static const Row *differing_leave(const Control *control, int region) {
    const FlowCode *code = control->role->code;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind != ROW_LEAVE || !code_inside(code, region, row->target)) continue;
        if (differing(control, row->region)) return row;
    }
    return NULL;
}

static bool find_control(Control *control) {
    const FlowCode *code = control->role->code;
    for (size_t at = 0; at < code->rows.count && !control->cause; at++) {
        const Row *row = &code->rows.items[at];
        if (!is_sought(control, row)) continue;
        control->cause = differing(control, row->region);
        control->leave = control->cause ? NULL : differing_leave(control, row->region);
        if (control->leave) control->cause = differing(control, control->leave->region);
    }
    return control->cause != NULL;
}

static void show_origin(Tiles *tiles, const Role *role, Diag *diag, Expr *cause, uint32_t along) {
    origin_show(tiles->arena, tiles->prog, role, tiles->diags, diag, cause,
                (Differs){.along = along});
}

/* Reports the bound or condition that differs between the blocks, for the statement or for the
 * acquires of its pipe */
static void show_control(Tiles *tiles, const Site *site, Diag *diag, uint32_t along) {
    const Pipe *pipe = pipe_of(tiles, site);
    if (shared_axes(tiles, site) & along) {
        diag_note(tiles->diags, diag,
                  "it has no equal parts that the copy engine moves, and copies into `%s` are "
                  "multicast along different axes: then each block must load a part",
                  pipe->name);
        return;
    }
    if (contested_axes(tiles, site) & along) {
        diag_note(
            tiles->diags, diag,
            "the blocks could deadlock: a copy of another role is already multicast along an axis "
            "along which, as along this one, blocks acquire some pipe a different number of times");
        return;
    }
    Control control = {.role = site->role, .tile = site->row, .along = along};
    bool found = find_control(&control);
    control.tile = NULL;
    control.pipe = (int)(pipe - tiles->prog->pipes.items);
    for (size_t r = 0; r < tiles->prog->roles.count && !found; r++) {
        control.role = &tiles->prog->roles.items[r];
        found = find_control(&control);
    }
    if (!found) {
        diag_note(tiles->diags, diag,
                  "the blocks may leave the loops around it, or around operations on `%s`, at "
                  "different iterations",
                  pipe->name);
        return;
    }
    if (control.leave)
        diag_label(tiles->diags, diag, control.leave->head,
                   "`%s` leaves here in some of the blocks", control.role->name);
    diag_label(tiles->diags, diag, control.cause->span, "differs between the blocks of a cluster");
    show_origin(tiles, control.role, diag, control.cause, along);
}

static const char *axis_names(Tiles *tiles, uint32_t axes) {
    Str text = str_new(tiles->arena);
    for (size_t a = 0; a < tiles->prog->axes.count; a++)
        if (axes >> a & 1)
            str_printf(&text, "%s`%s`", text.length ? " and " : "",
                       tiles->prog->axes.items[a].name);
    return text.text;
}

static void refuse_required(Tiles *tiles, Site *site, bool load) {
    const Tile *tile = site->tile;
    if (tiles->prog->cluster_refused) return;
    Diag *diag = diag_at(tiles->diags, P0240, site->row->span,
                         "`multicast required`, but this statement cannot be multicast");
    site->poisoned = true;
    if (!load) {
        diag_primary(tiles->diags, diag,
                     "only copies from a tensor into a stage by the copy engine can be");
        return;
    }
    uint32_t axes = cluster_axes(tiles->prog), along = coordinates_along(site);
    if (axes == 0) {
        bool alone = tiles->prog->cluster_span.hi > 0;
        diag_primary(tiles->diags, diag,
                     alone ? "a cluster of one block has no other block to send to"
                           : "the kernel has no cluster");
        if (alone)
            diag_label(tiles->diags, diag, tiles->prog->cluster_span, "a cluster of one block");
        diag_help(tiles->diags, diag,
                  "declare the axis along which blocks share data: `cluster (%s: 2);`",
                  tiles->prog->axes.count ? tiles->prog->axes.items[0].name : "m");
    } else if ((axes & ~along) == 0) {
        diag_primary(tiles->diags, diag, "its coordinates differ along %s",
                     axis_names(tiles, axes));
        for (int d = 0; d < tile->value->read->rank; d++)
            if (tile->value->read->subs[d]->along & axes) {
                diag_label(tiles->diags, diag, tile->value->read->subs[d]->span,
                           "differs between the blocks of a cluster");
                show_origin(tiles, site->role, diag, tile->value->read->subs[d], axes);
                break;
            }
    } else {
        bool whole = (shared_axes(tiles, site) & ~along) != 0;
        diag_primary(tiles->diags, diag,
                     whole ? "the blocks along %s cannot each load a part"
                           : "blocks along %s execute it a different number of times",
                     axis_names(tiles, axes & ~along));
        show_control(tiles, site, diag, axes & ~along);
    }
}

void multicast_check(Tiles *tiles, Site *site) {
    const Tile *tile = site->tile;
    bool load = tile_is_load(tile);
    if (site->poisoned || tile->class == TILE_UNCLASSIFIED) return;
    if (tile->multicast_required && tile->multicast.axes == 0) refuse_required(tiles, site, load);
    if (!load || tile->multicast_required) return;
    uint32_t kept = cluster_axes(tiles->prog) & ~(coordinates_along(site) | tile->multicast.axes);
    if (kept == 0) return;
    Diag *diag = diag_at(tiles->diags, P0241, site->row->span,
                         "this copy is not multicast along %s", axis_names(tiles, kept));
    diag_primary(tiles->diags, diag, "every block loads the same data for itself");
    show_control(tiles, site, diag, kept);
}
