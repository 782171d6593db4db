/* The map of a block's shared memory: pipes and `shared` tiles by descending alignment, then the
 * barriers. Each stage starts at a multiple of its strictest field's alignment, so that stage i
 * of any field is at base + i * stride. */
#include "derive/edit.h"
#include "derive/resources/resources.h"

#define BARRIER_BYTES   8
#define LEAST_ALIGNMENT 16

/* Byte counts are exact up to BYTES_MOST, where they saturate. More than 32 bits is refused, so
 * that the plan can hold 32 bits. */
#define BYTES_MOST (UINT64_C(1) << 60)

static uint64_t at_most(uint64_t bytes) { return bytes > BYTES_MOST ? BYTES_MOST : bytes; }

static uint64_t times(uint64_t a, uint64_t b) {
    uint64_t product;
    return __builtin_mul_overflow(a, b, &product) ? BYTES_MOST : at_most(product);
}

/* operands at most BYTES_MOST */
static uint64_t plus(uint64_t a, uint64_t b) { return at_most(a + b); }

static uint64_t up_to(uint64_t bytes, uint32_t alignment) {
    return at_most((bytes + alignment - 1) / alignment * alignment);
}

static uint32_t cut(uint64_t bytes) { return bytes > UINT32_MAX ? UINT32_MAX : (uint32_t)bytes; }

static uint32_t alignment_of(const Layout *layout) {
    return layout->alignment > LEAST_ALIGNMENT ? layout->alignment : LEAST_ALIGNMENT;
}

/* Panels hold all rows, and the last one is whole even if the tile does not fill it. */
static uint64_t tile_bytes(const Layout *layout, Element type, int rank, const int64_t *extents) {
    uint64_t rows = 1, last = rank > 0 ? (uint64_t)extents[rank - 1] : 1;
    uint64_t panel = layout->panel > 0 ? (uint64_t)layout->panel : last;
    for (int i = 0; i + 1 < rank; i++) rows = times(rows, (uint64_t)extents[i]);
    uint64_t panels = panel > 0 ? (last + panel - 1) / panel : 0;
    last = plus(at_most(panels * panel), (uint64_t)layout->padding);
    uint64_t elements = plus(times(rows, last), times(panels, (uint64_t)layout->gap));
    return times(elements, (uint64_t)element_rows[type].bytes);
}

#define NUMBER_BYTES 4 /* of the number of a tile */

/* The greatest alignment of a field below this one; 0: none */
static uint32_t next_alignment(const Pipe *pipe, const PipePlan *plan, uint32_t below) {
    uint32_t most = 0;
    for (size_t i = 0; i < pipe->fields.count; i++) {
        uint32_t wants = alignment_of(&plan->fields[i].layout);
        if (wants < below && wants > most) most = wants;
    }
    return most;
}

/* Returns the bytes of a stage. */
static uint64_t lay_out_stage(Resources *res, const Pipe *pipe, uint32_t *alignment) {
    PipePlan *plan = edit_pipe(res->prog, pipe);
    uint64_t offset = 0;
    *alignment = 1;
    if (pipe - res->prog->pipes.items == res->prog->draws.tiles)
        return *alignment = plan->stride = NUMBER_BYTES;
    for (uint32_t wants = next_alignment(pipe, plan, UINT32_MAX); wants > 0;
         wants = next_alignment(pipe, plan, wants))
        for (size_t i = 0; i < pipe->fields.count; i++) {
            const Field *field = &pipe->fields.items[i];
            FieldPlan *next = &plan->fields[i];
            if (alignment_of(&next->layout) != wants) continue;
            uint64_t bytes = tile_bytes(&next->layout, field->type, field->rank, field->extents);
            if (field->is_array) bytes = up_to(bytes, wants);
            offset = up_to(offset, wants);
            next->bytes = cut(bytes);
            next->offset = cut(offset);
            offset = plus(offset, times(bytes, field->count > 0 ? (uint64_t)field->count : 1));
            if (wants > *alignment) *alignment = wants;
        }
    offset = up_to(offset, *alignment);
    plan->stride = cut(offset);
    return offset;
}

/* A user of shared memory: a pipe, or a shared tile of a role */
typedef struct Piece {
    const Pipe *pipe;
    const Role *role;
    const RoleTile *tile;
    TilePlan *plan; /* of the tile */
    uint32_t alignment;
    uint64_t each, bytes; /* each: one stage or instance; bytes: all */
    bool placed;
} Piece;

typedef VEC(Piece) Pieces;

static void collect(Resources *res, Pieces *pieces) {
    const Prog *prog = res->prog;
    for (size_t i = 0; i < prog->pipes.count; i++) {
        Piece piece = {.pipe = &prog->pipes.items[i]};
        piece.each = lay_out_stage(res, piece.pipe, &piece.alignment);
        piece.bytes = times(piece.each, piece.pipe->stages > 0 ? (uint64_t)piece.pipe->stages : 0);
        vec_push(res->arena, pieces, piece);
    }
    for (size_t r = 0; r < prog->roles.count; r++)
        for (size_t i = 0; i < prog->roles.items[r].tiles.count; i++) {
            const Role *role = &prog->roles.items[r];
            const RoleTile *tile = &role->tiles.items[i];
            if (tile->in_registers) continue;
            TilePlan *plan = edit_tile(prog, role, (int)i);
            Piece piece = {
                .role = role, .tile = tile, .plan = plan, .alignment = alignment_of(&plan->layout)};
            piece.each = up_to(tile_bytes(&plan->layout, tile->type, tile->rank, tile->extents),
                               piece.alignment);
            piece.bytes = times(piece.each, (uint64_t)role->instances);
            plan->stride = cut(piece.each);
            vec_push(res->arena, pieces, piece);
        }
}

/* Bytes, including its barriers */
static uint64_t weight(const Piece *piece) {
    if (!piece->pipe) return piece->bytes;
    return plus(piece->bytes, times((uint64_t)(piece->pipe->stages > 0 ? piece->pipe->stages : 0),
                                    2 * BARRIER_BYTES));
}

static uint64_t place(Resources *res, Pieces *pieces) {
    uint64_t offset = 0;
    for (size_t round = 0; round < pieces->count; round++) {
        Piece *next = NULL;
        for (size_t i = 0; i < pieces->count; i++)
            if (!pieces->items[i].placed && (!next || pieces->items[i].alignment > next->alignment))
                next = &pieces->items[i];
        next->placed = true;
        offset = up_to(offset, next->alignment);
        if (next->pipe)
            edit_pipe(res->prog, next->pipe)->offset = cut(offset);
        else
            next->plan->offset = cut(offset);
        offset = plus(offset, next->bytes);
    }
    offset = up_to(offset, BARRIER_BYTES);
    for (size_t i = 0; i < res->prog->pipes.count; i++) {
        const Pipe *pipe = &res->prog->pipes.items[i];
        uint64_t bytes = times((uint64_t)(pipe->stages > 0 ? pipe->stages : 0), BARRIER_BYTES);
        uint32_t *barriers = edit_pipe(res->prog, pipe)->barriers;
        barriers[END_PRODUCE] = cut(offset);
        barriers[END_CONSUME] = cut(plus(offset, bytes));
        offset = plus(offset, 2 * bytes);
    }
    return offset;
}

static const char *piece_name(Resources *res, const Piece *piece) {
    if (piece->pipe) return arena_printf(res->arena, "pipe `%s`", piece->pipe->name);
    return arena_printf(res->arena, "`shared %s` of `%s`", piece->tile->name, piece->role->name);
}

static const char *bytes_text(Resources *res, uint64_t bytes) {
    return bytes < BYTES_MOST ? arena_printf(res->arena, "%llu", (unsigned long long)bytes)
                              : "2^60 or more";
}

static const char *piece_sum(Resources *res, const Piece *piece) {
    int count = piece->pipe ? piece->pipe->stages : piece->role->instances;
    return arena_printf(res->arena, "%d %s%s x %s", count, piece->pipe ? "stage" : "instance",
                        count == 1 ? "" : "s", bytes_text(res, piece->each));
}

static void add_table(Resources *res, Diag *diag, const Pieces *pieces, uint64_t barriers) {
    int widest = (int)sizeof "barriers" - 1;
    for (size_t i = 0; i < pieces->count; i++) {
        Str name = str_new(res->arena);
        str_add(&name, piece_name(res, &pieces->items[i]));
        if ((int)name.length > widest && name.length < 48) widest = (int)name.length;
    }
    for (size_t i = 0; i < pieces->count; i++)
        if (pieces->items[i].bytes)
            diag_note(res->diags, diag, "%-*s %8s = %s", widest, piece_name(res, &pieces->items[i]),
                      bytes_text(res, pieces->items[i].bytes), piece_sum(res, &pieces->items[i]));
    if (barriers)
        diag_note(res->diags, diag, "%-*s %8llu = %llu stages x %d", widest, "barriers",
                  (unsigned long long)barriers, (unsigned long long)barriers / (2 * BARRIER_BYTES),
                  2 * BARRIER_BYTES);
}

/* Help: fewer stages of one pipe, if that suffices */
static void add_fix(Resources *res, Diag *diag, const Pieces *pieces, uint64_t total) {
    const Piece *best = NULL;
    uint64_t most = 0, limit = res->prog->target->shared_limit;
    for (size_t i = 0; i < pieces->count; i++) {
        const Pipe *pipe = pieces->items[i].pipe;
        if (!pipe || pipe->stages < 2 || total >= BYTES_MOST) continue;
        uint64_t each = pieces->items[i].each + 2 * BARRIER_BYTES, over = total - limit,
                 drop = (over + each - 1) / each;
        if (drop >= (uint64_t)pipe->stages || (uint64_t)pipe->stages - drop <= most) continue;
        most = (uint64_t)pipe->stages - drop;
        best = &pieces->items[i];
    }
    if (best)
        diag_help(res->diags, diag, "write `pipe %s[%llu]`", best->pipe->name,
                  (unsigned long long)most);
    else
        diag_help(res->diags, diag, "make the tiles smaller%s",
                  res->prog->pipes.count ? ": removing stages from one pipe is not enough" : "");
}

/* Padding trades memory for time: if memory does not suffice, it is removed, and true returned. */
static bool without_padding(const Prog *prog) {
    bool any = false;
    for (size_t p = 0; p < prog->pipes.count; p++)
        for (size_t f = 0; f < prog->pipes.items[p].fields.count; f++) {
            Layout *layout = &prog->plan->pipes[p].fields[f].layout;
            any |= layout->padding > 0;
            layout->padding = 0;
        }
    for (size_t r = 0; r < prog->roles.count; r++)
        for (size_t t = 0; t < prog->roles.items[r].tiles.count; t++) {
            Layout *layout = &edit_tile(prog, &prog->roles.items[r], (int)t)->layout;
            any |= layout->padding > 0;
            layout->padding = 0;
        }
    return any;
}

void resources_memory(Resources *res) {
    Prog *prog = res->prog;
    Pieces pieces = {0};
    collect(res, &pieces);
    uint64_t total = place(res, &pieces), barriers = 0, sum = 0;
    if (prog->target && total > prog->target->shared_limit && without_padding(prog)) {
        pieces = (Pieces){0};
        collect(res, &pieces);
        total = place(res, &pieces);
    }
    res->plan->shared_bytes = cut(total);
    if (!prog->target || total <= prog->target->shared_limit) return;
    const Piece *largest = NULL;
    for (size_t i = 0; i < pieces.count; i++) {
        if (!largest || weight(&pieces.items[i]) > weight(largest)) largest = &pieces.items[i];
        sum = plus(sum, pieces.items[i].bytes);
    }
    for (size_t i = 0; i < prog->pipes.count; i++)
        barriers +=
            times((uint64_t)(prog->pipes.items[i].stages > 0 ? prog->pipes.items[i].stages : 0),
                  2 * BARRIER_BYTES);
    Span place_of = largest && weight(largest)
                        ? (largest->pipe ? largest->pipe->span : largest->tile->span)
                        : prog->span;
    Diag *diag =
        diag_at(res->diags, P0500, place_of,
                "kernel `%s` needs %s bytes of shared memory, but a block of %s has %u", prog->name,
                bytes_text(res, total), prog->target->name, prog->target->shared_limit);
    diag_primary(res->diags, diag, "the largest part");
    add_table(res, diag, &pieces, barriers);
    if (total > sum + barriers)
        diag_note(res->diags, diag, "and %llu bytes of padding for alignment",
                  (unsigned long long)(total - sum - barriers));
    add_fix(res, diag, &pieces, total);
}
