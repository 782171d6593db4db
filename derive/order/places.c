/* Accesses of statements to tensors that the kernel writes. */
#include "derive/order.h"

typedef struct Finder {
    Arena *arena;
    const Prog *prog;
    Places *places;
} Finder;

static void add_place(const Finder *f, Place place, const Access *access, bool write,
                      Transfer transfer) {
    if (access->space != SPACE_GLOBAL || !valid_index(access->object, f->prog->params.count))
        return;
    ParamMode mode = f->prog->params.items[access->object].mode;
    if (mode == PARAM_IN || (!write && mode != PARAM_INOUT)) return;
    place.access = access, place.write = write, place.transfer = transfer;
    vec_push(f->arena, f->places, place);
}

typedef struct Gather {
    const Finder *finder;
    Place around;
    const Access *copied; /* by the statement's copy; NULL: none */
    Transfer transfer;
} Gather;

static void add_read(Expr *expr, void *data) {
    const Gather *reads = data;
    if (expr->kind != X_READ || !expr->read) return;
    add_place(reads->finder, reads->around, expr->read, false,
              expr->read == reads->copied ? reads->transfer : TRANSFER_PLAIN);
}

/* The condition itself is evaluated for all elements. */
static void add_reads(Expr *expr, void *data) {
    Gather reads = *(const Gather *)data;
    const Expr *where = reads.around.tile->where;
    reads.around.guarded = where && expr != where;
    expr_visit(reads.finder->arena, expr, add_read, &reads);
}

/* The loops over ranges around the row, outermost first; sets `conditional` */
static void find_regions(const FlowCode *code, int region, Place *place) {
    const Region *around = &code->regions.items[region];
    if (around->parent >= 0) find_regions(code, around->parent, place);
    place->conditional |= around->kind == REGION_IF || around->where;
    if (around->kind != REGION_FOR) return;
    if (place->loop_count < PLACE_LOOPS) place->loops[place->loop_count] = around;
    place->loop_count++;
}

static void add_tile(const Finder *f, const Role *role, int at, const Site *site) {
    const Row *row = &role->code->rows.items[at];
    Tile *tile = row->tile;
    bool stored = tile_is_store(tile), loaded = tile_is_load(tile), lanes = tile_is_lanes(tile);
    Place place = {.role = role, .row = at, .tile = tile, .site = site};
    find_regions(role->code, row->region, &place);
    Gather reads = {f, place, loaded || lanes ? tile->value->read : NULL,
                    loaded ? TRANSFER_LOADED : TRANSFER_LANES};
    place.guarded = tile->where != NULL;
    add_place(f, place, &tile->target, true, stored ? TRANSFER_STORED : TRANSFER_PLAIN);
    row_exprs(role->code, row, add_reads, &reads);
}

void places_find(Arena *arena, const Prog *prog, Places *places) {
    const Finder finder = {arena, prog, places};
    for (size_t i = 0; i < prog->tiles->sites.count; i++) {
        const Site *site = prog->tiles->sites.items[i];
        if (!site->poisoned && site->tile->class != TILE_UNCLASSIFIED)
            add_tile(&finder, site->role, (int)(site->row - site->role->code->rows.items), site);
    }
}
