/* Whole-tile copies by the copy engine: tensor (TMA) and bulk, loads and stores. One lane of the
 * instance issues them. */
#include "codegen/gen.h"

#include <assert.h>

static void mark_tile(Gen *gen, const Row *row, const char *verb) {
    const Tile *tile = row->tile;
    const char *to = access_name(gen->arena, gen->prog, gen->role->role, &tile->target),
               *pipe = NULL;
    const char *what =
        tile->value->kind == X_READ
            ? arena_printf(gen->arena, "%s `%s` to `%s`", verb,
                           access_name(gen->arena, gen->prog, gen->role->role, tile->value->read),
                           to)
            : arena_printf(gen->arena, "computes `%s`", to);
    if (tile->target.space == SPACE_STAGE)
        pipe =
            gen->prog->pipes.items[gen->role->role->handles.items[tile->target.object].pipe].name;
    ptx_mark(gen->ptx, row->span, gen->role->number, pipe, what);
}

/* The position of the first element: all indexes are zero. */
static Point origin(void) {
    Point point = {.outer = NULL};
    for (int i = 0; i < PROG_MAX_INDEXES; i++) point.indexes[i] = lin_const(0);
    return point;
}

static Operand full_barrier_of(Gen *gen, const Access *stage) {
    const Handle *handle = &gen->role->role->handles.items[stage->object];
    return stage_barrier(gen, &gen->prog->pipes.items[handle->pipe], true,
                         gen->role->handles[stage->object]);
}

static Operand moved(Operand address, int64_t by) {
    address.value += by;
    return address;
}

/* Offset in the tile of this block's part of a multicast copy: `unit` for each part before it */
static Lin into_part(Gen *gen, const Multicast *multicast, int64_t unit) {
    if (multicast->parts <= 1) return lin_const(0);
    Lin part = lin_reg(gen->cluster.part[multicast->axes], 1, multicast->parts - 1);
    return lin_scale(gen, part, unit);
}

/* The coordinates of a box of the copy that begins at `start`; returns how many bytes further than
 * the first box it lies in shared memory. */
static int64_t place_box(Gen *gen, const BoxCopy *copy, const Lin *start, int64_t box,
                         Reg *coordinates) {
    const Map *map = &gen->plan->maps.items[copy->map];
    int64_t offset = 0;
    for (int d = 0; d < copy->rank; d++) {
        int64_t count = copy->tile[d] / map->box[d], number = box % count;
        box /= count;
        offset += number * copy->step[d];
        Lin at = lin_add(gen, start[d], lin_const(number * map->box[d]));
        coordinates[d] = lin_in_reg(gen, at);
    }
    return offset;
}

/* One instruction per box; box (b..) starts at start + b * box and is b * step bytes further in
 * shared memory. */
static void gen_boxes(Gen *gen, const Tile *tile, const Access *inside, bool load) {
    const BoxCopy *copy = &tile->box;
    Point point = origin();
    const Multicast *multicast = &tile->multicast;
    /* separate statements fix the order of emission */
    Lin part = into_part(gen, multicast, multicast->bytes);
    Lin first = lin_add(gen, shared_linear(gen, &point, inside), part);
    Operand shared = ptx_at(first.reg, first.is.add);
    Operand barrier = load ? full_barrier_of(gen, inside) : (Operand){.kind = OPERAND_TEXT};
    Lin start[MAX_RANK];
    int64_t boxes = plan_boxes(gen->plan, copy);
    for (int d = 0; d < copy->rank; d++) {
        start[d] = lin_of(eval(gen, &point, copy->start[d]));
        if (multicast->parts > 1 && d == multicast->axis)
            start[d] = lin_add(gen, start[d], into_part(gen, multicast, multicast->elements));
    }
    const char *op =
        load ? arena_printf(gen->arena,
                            "cp.async.bulk.tensor.%dd.shared::cluster.global.tile.mbarrier::"
                            "complete_tx::bytes%s",
                            copy->rank, multicast->axes != 0 ? ".multicast::cluster" : "")
             : arena_printf(gen->arena,
                            "cp.async.bulk.tensor.%dd.global.shared::cta.tile.bulk_group",
                            copy->rank);
    for (int64_t box = 0; box < boxes; box++) {
        Reg coordinates[MAX_RANK];
        int64_t offset = place_box(gen, copy, start, box, coordinates);
        Operand global = ptx_tensor(gen->maps[copy->map], coordinates, copy->rank);
        if (load && multicast->axes != 0)
            INS(gen->ptx, op, moved(shared, offset), global, barrier,
                ptx_reg(gen->cluster.mask[multicast->axes]));
        else if (load)
            INS(gen->ptx, op, moved(shared, offset), global, barrier);
        else
            INS(gen->ptx, op, global, moved(shared, offset));
    }
}

static void prefetch_boxes(Gen *gen, const BoxCopy *copy) {
    Point point = origin();
    Lin start[MAX_RANK];
    int64_t boxes = plan_boxes(gen->plan, copy);
    for (int d = 0; d < copy->rank; d++) start[d] = lin_of(eval(gen, &point, copy->start[d]));
    for (int64_t box = 0; box < boxes; box++) {
        Reg coordinates[MAX_RANK];
        (void)place_box(gen, copy, start, box, coordinates);
        INS(gen->ptx,
            arena_printf(gen->arena, "cp.async.bulk.prefetch.tensor.%dd.L2.global.tile",
                         copy->rank),
            ptx_tensor(gen->maps[copy->map], coordinates, copy->rank));
    }
}

/* PTX ISA 9.7.9.25.4.3 and 9.7.9.25.5.5 */
void gen_prefetch(Gen *gen, const Row *row) {
    const Tile *tile = row->tile;
    Point point = origin();
    int skip = -1;
    mark_tile(gen, row, "prefetches");
    if (gen->role->leader.class != REG_NONE) {
        skip = ptx_new_label(gen->ptx);
        INS_UNLESS(gen->ptx, gen->role->leader, "bra", ptx_label(skip));
    }
    if (tile->class == TILE_TENSOR_LOAD)
        prefetch_boxes(gen, &tile->box);
    else
        INS(gen->ptx, "cp.async.bulk.prefetch.L2.global",
            global_address(gen, &point, tile->value->read), ptx_int(tile->bulk.bytes));
    if (skip >= 0) ptx_place_label(gen->ptx, skip);
}

/* The index along which a tile is copied to or from a tensor of one dimension */
static int index_along(const Access *outside) {
    int index = 0;
    while (index + 1 < PROG_MAX_INDEXES && outside->affine[0].coef[index] == 0) index++;
    return index;
}

/* The elements after the last whole 16 bytes of a tensor, if this tile contains them: at most
 * granule - 1, by ordinary stores. */
static void gen_tail(Gen *gen, const Tile *tile, const Access *inside) {
    const BoxCopy *copy = &tile->box;
    const Param *param = &gen->prog->params.items[tile->target.object];
    int64_t granule = copy->granule, bytes = element_rows[param->type].bytes;
    Point point = origin();
    int index = index_along(&tile->target);
    Value end = eval_scalar(gen, param->extents[0]), start = eval(gen, &point, copy->start[0]);
    int skip = ptx_new_label(gen->ptx);
    Reg whole = PURE(gen->ptx, REG_32, "and.b32", value_operand(end), ptx_int(-granule));
    /* offset in the tile */
    Reg at = PURE(gen->ptx, REG_32, "sub.s32", ptx_reg(whole), value_operand(start));
    Reg near = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(at), ptx_int(granule - 1));
    Reg far = PURE(gen->ptx, REG_PRED, "setp.ge.u32", ptx_reg(near),
                   ptx_int(copy->tile[0] + granule - 1));
    INS_IF(gen->ptx, far, "bra", ptx_label(skip));
    Reg wide = PURE(gen->ptx, REG_64, "mul.wide.s32", ptx_reg(whole), ptx_int(bytes));
    Reg to = PURE(gen->ptx, REG_64, "add.s64", ptx_reg(wide),
                  ptx_reg(gen->pointers[tile->target.object]));
    for (int64_t e = 0; e + 1 < granule; e++) {
        Reg global = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(whole), ptx_int(e));
        Reg local = PURE(gen->ptx, REG_32, "add.s32", ptx_reg(at), ptx_int(e));
        Reg inside_tensor =
            PURE(gen->ptx, REG_PRED, "setp.lt.s32", ptx_reg(global), value_operand(end));
        Reg inside_tile =
            PURE(gen->ptx, REG_PRED, "setp.lt.u32", ptx_reg(local), ptx_int(copy->tile[0]));
        Reg both =
            PURE(gen->ptx, REG_PRED, "and.pred", ptx_reg(inside_tensor), ptx_reg(inside_tile));
        Reg element = ptx_new_reg(gen->ptx, memory_class(param->type));
        const char *suffix = memory_suffix(param->type);
        point.indexes[index] = lin_add(gen, lin_reg(at, 1, -1), lin_const(e));
        INS_IF(gen->ptx, both, arena_printf(gen->arena, "ld.shared.%s", suffix), ptx_reg(element),
               shared_address(gen, &point, inside));
        INS_IF(gen->ptx, both, arena_printf(gen->arena, "st.global.%s", suffix),
               ptx_at(to, e * bytes), ptx_reg(element));
    }
    /* orders ordinary reads before the async proxy overwrites the stage */
    INS0(gen->ptx, "fence.proxy.async.shared::cta");
    ptx_place_label(gen->ptx, skip);
}

static void gen_bulk(Gen *gen, const Tile *tile, const Access *inside, const Access *outside,
                     bool load) {
    Point point = origin();
    Operand shared = shared_address(gen, &point, inside);
    Operand global = global_address(gen, &point, outside);
    Operand bytes = ptx_int(tile->bulk.bytes);
    const Multicast *multicast = &tile->multicast;
    if (multicast->parts > 1) {
        Reg part = gen->cluster.part[multicast->axes];
        shared.reg = PURE(gen->ptx, REG_32, "mad.lo.s32", ptx_reg(part), ptx_int(multicast->bytes),
                          ptx_reg(shared.reg));
        Reg wide = PURE(gen->ptx, REG_64, "mul.wide.u32", ptx_reg(part), ptx_int(multicast->bytes));
        global.reg = PURE(gen->ptx, REG_64, "add.s64", ptx_reg(wide), ptx_reg(global.reg));
    }
    if (load && multicast->axes != 0)
        INS(gen->ptx,
            "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster",
            shared, global, bytes, full_barrier_of(gen, inside),
            ptx_reg(gen->cluster.mask[multicast->axes]));
    else if (load)
        INS(gen->ptx, "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes", shared,
            global, bytes, full_barrier_of(gen, inside));
    else
        INS(gen->ptx, "cp.async.bulk.global.shared::cta.bulk_group", global, shared, bytes);
}

static void gen_engine_copy(Gen *gen, const Row *row) {
    const Tile *tile = row->tile;
    order_before(gen, row);
    bool load = tile_is_load(tile);
    bool tensor = tile_has_boxes(tile);
    const Access *inside = load ? &tile->target : tile->value->read;
    const Access *outside = load ? tile->value->read : &tile->target;
    int skip = -1;
    if (gen->role->leader.class != REG_NONE) {
        skip = ptx_new_label(gen->ptx);
        INS_UNLESS(gen->ptx, gen->role->leader, "bra", ptx_label(skip));
    }
    if (tile->multicast.parts == 1) { /* no parts: the first block loads all of it */
        if (skip < 0) skip = ptx_new_label(gen->ptx);
        Reg other = PURE(gen->ptx, REG_PRED, "setp.ne.u32",
                         ptx_reg(gen->cluster.part[tile->multicast.axes]), ptx_int(0));
        INS_IF(gen->ptx, other, "bra", ptx_label(skip));
    }
    if (tensor)
        gen_boxes(gen, tile, inside, load);
    else
        gen_bulk(gen, tile, inside, outside, load);
    if (tile->class == TILE_TENSOR_STORE && tile->box.granule > 1) gen_tail(gen, tile, inside);
    /* the next write of the tile begins with the instance's barrier */
    if (!load && inside->space == SPACE_SHARED) {
        INS0(gen->ptx, "cp.async.bulk.commit_group");
        INS(gen->ptx, "cp.async.bulk.wait_group.read", ptx_int(0));
    }
    if (skip >= 0) ptx_place_label(gen->ptx, skip);
}

void gen_tile(Gen *gen, const Row *row) {
    const Tile *tile = row->tile;
    if (tile_is_copy(tile)) wait_before(gen, row_number(gen, row));
    switch (tile->class) {
    case TILE_TENSOR_LOAD:
    case TILE_BULK_LOAD:
    case TILE_TENSOR_STORE:
    case TILE_BULK_STORE:
        mark_tile(gen, row, "copies");
        gen_engine_copy(gen, row);
        return;
    case TILE_LANES:
        mark_tile(gen, row, "copies by lanes");
        gen_lanes(gen, row);
        return;
    case TILE_MAP:
        mark_tile(gen, row, "moves");
        gen_map(gen, row);
        return;
    case TILE_MMA:
        mark_tile(gen, row, "multiplies");
        gen_mma(gen, row);
        return;
    case TILE_REDUCTION:
        mark_tile(gen, row, "reduces");
        gen_map(gen, row);
        return;
    case TILE_SCAN:
        mark_tile(gen, row, "scans");
        gen_map(gen, row);
        return;
    case TILE_REFUSED: /* by the checker */
    case TILE_UNCLASSIFIED: /* codegen is not called after errors */ assert(false);
    }
}
