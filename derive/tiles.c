/* Needs elaborate; sets index extents, affine subscripts, classes, boxes, maps, layouts, uses,
 * preconditions.
 *
 * Visits every tile statement of every role once, then `ensures`, then all copies together,
 * because their layouts must agree. */
#include "derive/tiles.h"
#include "flow/code.h"

#include <string.h>

/* ---- names and shapes ------------------------------------------------------------------------ */

const char *tiles_text(Tiles *tiles, Span span) {
    const Source *source = tiles->prog->source;
    Str text = str_new(tiles->arena);
    str_add(&text, "");
    if (!source || span.hi > source->length || span.lo > span.hi) return text.text;
    uint32_t length = span.hi - span.lo;
    for (uint32_t i = 0; i < length; i++)
        if (source->text[span.lo + i] == '\n') length = i;
    bool cut = length > 48 || length < span.hi - span.lo;
    str_add_bytes(&text, source->text + span.lo, length > 48 ? 48 : length);
    if (cut) str_add(&text, "..");
    return text.text;
}

const char *tiles_object(Tiles *tiles, const Role *role, const Access *access) {
    const Field *field;
    switch (access->space) {
    case SPACE_GLOBAL:
        return arena_printf(tiles->arena, "`%s`", tiles->prog->params.items[access->object].name);
    case SPACE_STAGE:
        field = access_field(tiles->prog, role, access);
        return arena_printf(tiles->arena, "`%s.%s`", role->handles.items[access->object].name,
                            field->name);
    case SPACE_SHARED:
    case SPACE_REGISTER:
        return arena_printf(tiles->arena, "`%s`", role->tiles.items[access->object].name);
    case SPACE_LET:
        return arena_printf(tiles->arena, "`%s`", tiles->prog->lets.items[access->object].name);
    }
    return "";
}

Span tiles_declared(Tiles *tiles, const Role *role, const Access *access) {
    switch (access->space) {
    case SPACE_GLOBAL: return tiles->prog->params.items[access->object].span;
    case SPACE_STAGE: return access_field(tiles->prog, role, access)->span;
    case SPACE_SHARED:
    case SPACE_REGISTER: return role->tiles.items[access->object].span;
    case SPACE_LET: return tiles->prog->lets.items[access->object].span;
    }
    return access->span;
}

bool is_tile_space(Space space) { return space != SPACE_GLOBAL; }

const Field *access_field(const Prog *prog, const Role *role, const Access *access) {
    if (access->space != SPACE_STAGE) return NULL;
    return &prog->pipes.items[role->handles.items[access->object].pipe].fields.items[access->field];
}

int64_t tile_extent(const Prog *prog, const Role *role, const Access *access, int d) {
    const Field *field = access_field(prog, role, access);
    return field ? field->extents[d] : role->tiles.items[access->object].extents[d];
}

Expr *access_extent(Tiles *tiles, const Role *role, const Access *access, int d) {
    if (access->space == SPACE_GLOBAL) return tiles->prog->params.items[access->object].extents[d];
    if (access->space != SPACE_LET)
        return expr_integer(tiles->arena, E_I32, tile_extent(tiles->prog, role, access, d),
                            access->span);
    const IndexSpace *space = &tiles->prog->lets.items[access->object].space;
    if (d >= space->count) return NULL;
    if (space->items[d].extent >= 0)
        return expr_integer(tiles->arena, E_I32, space->items[d].extent, access->span);
    return space->items[d].dynamic;
}

Layout *access_layout(Prog *prog, const Role *role, const Access *access) {
    if (access->space == SPACE_STAGE)
        return &prog->pipes.items[role->handles.items[access->object].pipe]
                    .fields.items[access->field]
                    .layout;
    return access->space == SPACE_SHARED ? &role->tiles.items[access->object].layout : NULL;
}

bool same_object(const Access *a, const Access *b) {
    return a->space == b->space && a->object == b->object &&
           (a->space != SPACE_STAGE || a->field == b->field) && a->old == b->old;
}

Site *tiles_site(Tiles *tiles, const Stmt *stmt) {
    for (size_t n = 0; n < tiles->sites.count; n++) {
        size_t i = (tiles->cursor + n) % tiles->sites.count;
        if (tiles->sites.items[i]->row->stmt != stmt) continue;
        tiles->cursor = i;
        return tiles->sites.items[i];
    }
    return NULL;
}

/* ---- reads ----------------------------------------------------------------------------------- */

typedef struct Gather {
    Tiles *tiles;
    const Role *role;
    Accesses *reads;
    bool poisoned;
} Gather;

static bool is_poisoned(const Prog *prog, const Role *role, const Access *access) {
    if (access->object < 0 || access->rank > PROG_MAX_RANK) return true;
    switch (access->space) {
    case SPACE_GLOBAL: return (size_t)access->object >= prog->params.count;
    case SPACE_STAGE: {
        if (!role || (size_t)access->object >= role->handles.count || access->field < 0)
            return true;
        int pipe = role->handles.items[access->object].pipe;
        return pipe < 0 || (size_t)access->field >= prog->pipes.items[pipe].fields.count;
    }
    case SPACE_SHARED:
    case SPACE_REGISTER: return !role || (size_t)access->object >= role->tiles.count;
    case SPACE_LET: return (size_t)access->object >= prog->lets.count;
    }
    return true;
}

static void gather_node(Expr *expr, void *data) {
    Gather *gather = data;
    if (expr->kind == X_POISON) gather->poisoned = true;
    if (expr->kind != X_READ) return;
    if (is_poisoned(gather->tiles->prog, gather->role, expr->read))
        gather->poisoned = true;
    else
        vec_push(gather->tiles->arena, gather->reads, expr->read);
}

bool tiles_reads(Tiles *tiles, const Role *role, Expr *expr, Accesses *reads) {
    Gather state = {tiles, role, reads, false};
    if (!expr) return true;
    expr_visit(tiles->arena, expr, gather_node, &state);
    return state.poisoned;
}

static bool gather_target(Tiles *tiles, const Role *role, const Access *target, Accesses *reads) {
    bool poisoned = is_poisoned(tiles->prog, role, target);
    for (int d = 0; d < target->rank && !poisoned; d++)
        poisoned |= tiles_reads(tiles, role, target->subs[d], reads);
    if (target->element) poisoned |= tiles_reads(tiles, role, target->element, reads);
    return poisoned;
}

/* ---- statements ------------------------------------------------------------------------------ */

typedef struct Walker {
    Tiles *tiles;
    Role *role;
    Algebra *algebra;
    IndexSpace *space; /* of the reductions of a scalar statement, otherwise NULL */
    int at;            /* row */
} Walker;

static int row_number(const Role *role, const Row *row) {
    return (int)(row - role->code->rows.items);
}

static void add_site(Walker *walker, const Row *row) {
    Tiles *tiles = walker->tiles;
    Tile *tile = row->tile;
    Site *site = NEW(tiles->arena, Site);
    *site = (Site){.row = row, .tile = tile, .role = walker->role, .algebra = walker->algebra};
    if (row->kind == ROW_PREFETCH)
        vec_push(tiles->arena, &tiles->prefetches, site);
    else
        vec_push(tiles->arena, &tiles->sites, site);
    site->poisoned = gather_target(tiles, site->role, &tile->target, &site->reads);
    site->poisoned |= tiles_reads(tiles, site->role, tile->value, &site->reads);
    if (site->poisoned) return;
    if (!tiles_ranges(tiles, site->role, &tile->space, &tile->target, &site->reads, false)) {
        site->poisoned = true;
        return;
    }
    tiles_quotients(tiles, site);
    const Place place = {site->role, site->algebra, &tile->space, row_number(site->role, row)};
    bool fine = tiles_subscripts(tiles, &place, &tile->target);
    for (size_t i = 0; i < site->reads.count; i++)
        fine &= tiles_subscripts(tiles, &place, site->reads.items[i]);
    site->poisoned = !fine;
}

static bool has_index(const Access *access) {
    for (int d = 0; d < access->rank; d++)
        if (access->subs[d]->indexes) return true;
    return false;
}

/* Reads outside of tile statements: one element, the same for all threads that evaluate it, or
 * many elements of a reduction */
static void check_scalar_read(Walker *walker, const IndexSpace *space, Access *read) {
    Tiles *tiles = walker->tiles;
    Role *role = walker->role;
    if (!tiles_subscripts(tiles, &(Place){role, walker->algebra, space, walker->at}, read)) return;
    if (read->space == SPACE_REGISTER && !has_index(read)) {
        Diag *diag = diag_at(tiles->diags, P0205, read->span,
                             "one element of `%s` is read by all threads, but one thread holds it",
                             role->tiles.items[read->object].name);
        diag_label(tiles->diags, diag, role->tiles.items[read->object].span,
                   "a `var` tile is in registers, spread over the threads");
        diag_help(tiles->diags, diag, "declare it `shared`, which every thread can read");
    }
    if (read->space == SPACE_STAGE && role->handles.items[read->object].end == END_PRODUCE) {
        const Handle *handle = &role->handles.items[read->object];
        Diag *diag = diag_at(tiles->diags, P0209, read->span,
                             "`%s` is a produced stage and cannot be read", handle->name);
        diag_label(tiles->diags, diag, handle->span, "produced here");
        diag_help(tiles->diags, diag, "keep the value in a variable as well");
    }
    if (read->space != SPACE_GLOBAL || tiles->prog->params.items[read->object].mode == PARAM_IN)
        return;
    const Param *param = &tiles->prog->params.items[read->object];
    bool out = param->mode == PARAM_OUT;
    Diag *diag =
        out ? diag_at(tiles->diags, P0206, read->span, "`%s` is an `out` tensor and cannot be read",
                      param->name)
            : diag_at(tiles->diags, P0207, read->span,
                      "`%s` is read at elements that this grid tile does not write", param->name);
    diag_label(tiles->diags, diag, param->span,
               out ? "declared `out` here" : "declared `inout` here");
    diag_help(tiles->diags, diag,
              out ? "declare it `inout`, or keep the value in a tile"
                  : "read it into a tile, at the same subscripts as the write");
}

static void visit_root(Expr *expr, void *data) {
    static const IndexSpace none = {0};
    Walker *walker = data;
    Accesses reads = {0};
    if (tiles_reads(walker->tiles, walker->role, expr, &reads)) return;
    if (walker->space &&
        !tiles_ranges(walker->tiles, walker->role, walker->space, NULL, &reads, false))
        return;
    for (size_t i = 0; i < reads.count; i++)
        check_scalar_read(walker, walker->space ? walker->space : &none, reads.items[i]);
}

static void visit_row(Walker *walker, const Row *row) {
    walker->space = row->space;
    walker->at = row_number(walker->role, row);
    if (row->tile)
        add_site(walker, row);
    else if (row->kind != ROW_TILE)
        row_exprs(walker->role->code, row, visit_root, walker);
}

/* ---- `ensures` and `example` ----------------------------------------------------------------- */

static void check_formula(Tiles *tiles, IndexSpace *space, Access *target, Expr *value) {
    Accesses reads = {0};
    if (target && gather_target(tiles, NULL, target, &reads)) return;
    if (tiles_reads(tiles, NULL, value, &reads) ||
        !tiles_ranges(tiles, NULL, space, target, &reads, true))
        return;
    const Place place = {NULL, tiles->formulas, space, -1};
    if (target) tiles_subscripts(tiles, &place, target);
    for (size_t i = 0; i < reads.count; i++) tiles_subscripts(tiles, &place, reads.items[i]);
}

static void check_example(Tiles *tiles, Example *example) {
    static const IndexSpace none = {0};
    if (example->kind != EXAMPLE_FORMULA || example->param < 0) return;
    const Param *param = &tiles->prog->params.items[example->param];
    Accesses reads = {0};
    for (int d = 0; d < example->space.count && d < param->rank; d++) {
        Index *index = &example->space.items[d];
        index->extent = -1;
        if (!expr_constant(param->extents[d], &index->extent)) index->dynamic = param->extents[d];
    }
    if (tiles_reads(tiles, NULL, example->value, &reads)) return;
    for (size_t i = 0; i < reads.count; i++)
        tiles_subscripts(tiles, &(Place){NULL, tiles->formulas, &none, -1}, reads.items[i]);
}

static void check_ensures(Tiles *tiles) {
    Prog *prog = tiles->prog;
    tiles->formulas->launched = true; /* the host computes with unbounded integers */
    for (size_t i = 0; i < prog->lets.count; i++)
        check_formula(tiles, &prog->lets.items[i].space, NULL, prog->lets.items[i].value);
    for (size_t i = 0; i < prog->claims.count; i++)
        check_formula(tiles, &prog->claims.items[i].space, &prog->claims.items[i].target,
                      prog->claims.items[i].value);
    for (size_t i = 0; i < prog->examples.count; i++)
        check_example(tiles, &prog->examples.items[i]);
    tiles->formulas->launched = false;
}

/* ---- uses of pipes and tensors --------------------------------------------------------------- */

static PipeUse *use_of(const Site *site, const Access *access) {
    return &site->role->pipes[site->role->handles.items[access->object].pipe];
}

static void note_read(Prog *prog, Role *role, const Access *read) {
    if (read->space == SPACE_GLOBAL) prog->params.items[read->object].by_pointer = true;
    if (read->space == SPACE_STAGE)
        role->pipes[role->handles.items[read->object].pipe].generic_out = true;
}

/* The matrix unit reads the operand */
static void note_operand(const Site *site, const MmaOperand *operand) {
    if (operand->tile->space == SPACE_STAGE) use_of(site, operand->tile)->mma_out = true;
}

static bool is_operand(const Tile *tile, const Access *access) {
    return tile->class == TILE_MMA && (access == tile->mma.a.tile || access == tile->mma.b.tile);
}

static void note_site(Prog *prog, Site *site) {
    Tile *tile = site->tile;
    Access *target = &tile->target;
    bool copy = tile->class != TILE_MAP && tile->class != TILE_MMA && tile->class != TILE_REDUCTION;
    if (tile->class == TILE_UNCLASSIFIED) return;
    const Access *copied = copy ? tile->value->read : NULL; /* read by the copy itself */
    for (size_t i = 0; i < site->reads.count; i++)
        if (site->reads.items[i] != copied && !is_operand(tile, site->reads.items[i]))
            note_read(prog, site->role, site->reads.items[i]);
    if (target->space == SPACE_GLOBAL && tile->class != TILE_TENSOR_STORE)
        prog->params.items[target->object].by_pointer = true;
    switch (tile->class) {
    case TILE_TENSOR_LOAD: use_of(site, target)->tensor_in = true; break;
    case TILE_BULK_LOAD:
        use_of(site, target)->tensor_in = true;
        prog->params.items[copied->object].by_pointer = true;
        break;
    case TILE_LANES:
        if (tile->piece.asynchronous)
            use_of(site, target)->lanes_in = true;
        else
            use_of(site, target)->generic_in = true;
        prog->params.items[copied->object].by_pointer = true;
        break;
    case TILE_TENSOR_STORE:
    case TILE_BULK_STORE:
        if (copied->space == SPACE_STAGE) use_of(site, copied)->bulk_out = true;
        break;
    case TILE_MMA:
        note_operand(site, &tile->mma.a);
        note_operand(site, &tile->mma.b);
        break;
    case TILE_MAP:
    case TILE_REDUCTION:
        if (target->space == SPACE_STAGE) use_of(site, target)->generic_in = true;
        if (target->space == SPACE_STAGE && tile->op != ASSIGN_SET)
            use_of(site, target)->generic_out = true;
        break;
    case TILE_UNCLASSIFIED: break;
    }
}

typedef struct UseWalk {
    Prog *prog;
    Role *role;
} UseWalk;

static void use_read(Access *access, bool written, void *data) {
    UseWalk *walk = data;
    if (!written && !is_poisoned(walk->prog, walk->role, access))
        note_read(walk->prog, walk->role, access);
}

/* Needs classes */
static void find_uses(Tiles *tiles) {
    Prog *prog = tiles->prog;
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        UseWalk uses = {prog, role};
        for (size_t at = 0; at < role->code->rows.count; at++) {
            const Row *row = &role->code->rows.items[at];
            if (row->kind != ROW_TILE) row_accesses(tiles->arena, role->code, row, use_read, &uses);
        }
        for (size_t h = 0; h < role->handles.count; h++)
            if (role->handles.items[h].pipe >= 0)
                role->pipes[role->handles.items[h].pipe].uses = true;
    }
    for (size_t i = 0; i < tiles->sites.count; i++) note_site(prog, tiles->sites.items[i]);
    for (size_t p = 0; p < prog->pipes.count; p++) {
        const Pipe *pipe = &prog->pipes.items[p];
        bool asynchronous = false;
        if (pipe->producer < 0) continue;
        for (size_t c = 0; c < pipe->consumers.count; c++)
            if (pipe->consumers.items[c] >= 0) {
                const PipeUse *out = &prog->roles.items[pipe->consumers.items[c]].pipes[p];
                asynchronous |= out->bulk_out || out->mma_out;
            }
        PipeUse *use = &prog->roles.items[pipe->producer].pipes[p];
        use->waits_copies = use->lanes_in && asynchronous;
    }
}

/* ---- preconditions of formulas --------------------------------------------------------------- */

void tiles_precondition(Tiles *tiles, Expr *condition, const char *text, const char *reason,
                        const char *help, Span span) {
    Prog *prog = tiles->prog;
    for (size_t i = 0; i < prog->preconditions.count; i++)
        if (algebra_same(tiles->formulas, prog->preconditions.items[i].condition, condition))
            return;
    vec_push(tiles->arena, &prog->preconditions,
             (Precondition){condition, text, reason, help, span, false});
}

static void require_grid(Tiles *tiles) {
    const Prog *prog = tiles->prog;
    Arena *arena = tiles->arena;
    Expr *product = NULL;
    Str text = str_new(arena);
    for (size_t i = 0; i < prog->axes.count; i++) {
        const Axis *axis = &prog->axes.items[i];
        if (!axis->padded || axis->padded->kind == X_POISON) return;
        Expr *wide = expr_binary(arena, OP_MUL, expr_integer(arena, E_I64, 1, axis->span),
                                 axis->padded, axis->span);
        product = product ? expr_binary(arena, OP_MUL, product, wide, axis->span) : wide;
        if (i > 0) str_add(&text, " * ");
        expr_print(axis->padded, prog, NULL, NULL, &text);
    }
    if (!product) return;
    Algebra *algebra = tiles->formulas;
    const Poly *room = poly_sum(algebra, poly_constant(algebra, EXTENT_MOST),
                                algebra_launched(algebra, product), -1);
    if (algebra_proves(algebra, CLAIM_NOT_NEGATIVE, room)) return;
    Span span = prog->axes.items[0].span;
    str_printf(&text, " <= %lld", (long long)EXTENT_MOST);
    tiles_precondition(
        tiles,
        expr_binary(arena, OP_LE, product, expr_integer(arena, E_I64, EXTENT_MOST, span), span),
        text.text, "the index of a grid tile has 32 bits",
        "launch the kernel in parts, or choose larger tiles", span);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void alignments(Prog *prog) {
    for (size_t i = 0; i < prog->params.count; i++) {
        Param *param = &prog->params.items[i];
        if (param->is_tensor && param->type != E_COUNT &&
            param->alignment < (uint32_t)element_rows[param->type].bytes)
            param->alignment = (uint32_t)element_rows[param->type].bytes;
    }
}

Tiles *tiles_check(Arena *arena, Prog *prog, Diags *diags) {
    Tiles *tiles = NEW(arena, Tiles);
    tiles->arena = arena;
    tiles->prog = prog;
    tiles->diags = diags;
    tiles->formulas = algebra_new(arena, prog, NULL);
    tiles->algebras = NEW_ARRAY(arena, Algebra *, prog->roles.count + 1);
    alignments(prog);
    require_grid(tiles);
    for (size_t r = 0; r < prog->roles.count; r++) {
        Role *role = &prog->roles.items[r];
        tiles->algebras[r] = role->code->algebra;
        Walker walker = {tiles, role, tiles->algebras[r], NULL, 0};
        if (!role->pipes) role->pipes = NEW_ARRAY(arena, PipeUse, prog->pipes.count + 1);
        for (size_t at = 0; at < role->code->rows.count; at++)
            visit_row(&walker, &role->code->rows.items[at]);
    }
    for (size_t i = 0; i < tiles->sites.count; i++) tiles_rules(tiles, tiles->sites.items[i]);
    check_ensures(tiles);
    tiles_registers(tiles);
    tiles_copies(tiles);
    tiles_prefetches(tiles);
    tiles_banks(tiles);
    find_uses(tiles);
    return tiles;
}
