/* Contractions: statements that are matrix instructions.
 *
 * `acc[i, j] += sum[x] a * b`, a over i and x, b over j and x, in shared memory, a also in
 * registers, runs on a warpgroup's matrix unit (PTX ISA 9.7.15). A contraction without an
 * instruction is refused with the nearest shape that has one; other reductions stay
 * unclassified. */
#include "derive/edit.h"
#include "derive/tiles.h"

#define COLUMNS_MOST 256

typedef struct Contraction {
    Tiles *tiles;
    Site *site;
    const Expr *sum;
    const Expr *sides[2]; /* as written, casts included: of a, of b */
    MmaOperand operands[2];
} Contraction;

enum { INDEX_ROW, INDEX_COLUMN, INDEX_INNER }; /* in the statement's space */

/* ---- the form -------------------------------------------------------------------------------- */

static const Expr *without_casts(const Expr *expr) {
    while (expr->kind == X_CAST && (expr->type == E_F32 || expr->type == E_I32)) expr = expr->cast;
    return expr;
}

static uint32_t indexes_of(const Access *access) {
    uint32_t indexes = access->element ? access->element->indexes : 0;
    for (int d = 0; d < access->rank; d++) indexes |= access->subs[d]->indexes;
    return indexes;
}

/* True for a sum of products of two tiles, into a register tile */
static bool is_contraction(Contraction *c) {
    static const uint32_t row = 1u << INDEX_ROW | 1u << INDEX_INNER,
                          column = 1u << INDEX_COLUMN | 1u << INDEX_INNER;
    const Tile *tile = c->site->tile;
    if (tile->target.space != SPACE_REGISTER || tile->target.rank != 2) return false;
    if (tile->space.bound != 2 || tile->space.count != 3) return false;
    if (tile->op != ASSIGN_SET && tile->op != ASSIGN_ADD) return false;
    c->sum = tile->value;
    while (c->sum->kind == X_CAST) c->sum = c->sum->cast;
    if (c->sum->kind != X_REDUCE || c->sum->reduce.op != REDUCE_SUM) return false;
    const Expr *product = without_casts(c->sum->reduce.body);
    if (product->kind != X_BINARY || product->binary.op != OP_MUL) return false;
    const Expr *left = without_casts(product->binary.left),
               *right = without_casts(product->binary.right);
    if (left->kind != X_READ || right->kind != X_READ) return false;
    if (!is_tile_space(left->read->space) || !is_tile_space(right->read->space)) return false;
    bool swapped = indexes_of(left->read) == column && indexes_of(right->read) == row;
    if (!swapped && (indexes_of(left->read) != row || indexes_of(right->read) != column))
        return false;
    c->sides[0] = swapped ? right : left, c->sides[1] = swapped ? left : right;
    c->operands[0].tile = c->sides[0]->read, c->operands[1].tile = c->sides[1]->read;
    return true;
}

/* ---- role and types -------------------------------------------------------------------------- */

static bool by_warpgroups(Contraction *c) {
    const Role *role = c->site->role;
    Diags *diags = c->tiles->diags;
    Prog *prog = c->tiles->prog;
    if (!prog->target->has[CAP_WGMMA]) {
        target_lacks(c->tiles->arena, diags, prog, CAP_WGMMA, c->site->row->span);
        return false;
    }
    if (role->warpgroups) return true;
    Diag *diag =
        diag_at(diags, P0220, c->site->row->span, "a contraction into registers needs a warpgroup");
    diag_label(diags, diag, role->span, "this role has %d warp%s", role->warps,
               role->warps == 1 ? "" : "s");
    int groups = (role->warps + 3) / 4;
    diag_help(diags, diag, "declare `role %s: %d warpgroup%s", role->name, groups,
              groups == 1 ? "`, which is four warps"
                          : "s`, four warps each; `rank` tells them apart");
    return false;
}

static const char *spelling(Element type) { return element_rows[type].spelling; }

static const char *all_types(Contraction *c) {
    Str text = str_new(c->tiles->arena);
    for (int i = 0; i < MMA_COUNT; i++)
        str_printf(&text, "%s%s",
                   i == 0               ? ""
                   : i + 1 == MMA_COUNT ? " and "
                                        : ", ",
                   spelling(mma_rows[i].operands));
    return text.text;
}

static bool find_kind(Contraction *c, MmaKind *kind) {
    Diags *diags = c->tiles->diags;
    const Access *a = c->operands[0].tile, *b = c->operands[1].tile;
    Diag *diag;
    for (int i = 0; i < MMA_COUNT && a->type == b->type; i++)
        if (mma_rows[i].operands == a->type) {
            *kind = (MmaKind)i;
            return true;
        }
    if (a->type != b->type) {
        diag = diag_at(diags, P0221, b->span, "no matrix instruction multiplies %s by %s",
                       spelling(a->type), spelling(b->type));
        diag_label(diags, diag, a->span, "%s", spelling(a->type));
        diag_primary(diags, diag, "%s", spelling(b->type));
    } else {
        diag = diag_at(diags, P0221, a->span, "no matrix instruction multiplies %s",
                       spelling(a->type));
        diag_label(diags, diag, tiles_declared(c->tiles, c->site->role, a), "declared here");
    }
    diag_note(diags, diag, "both operands must have the same type, one of %s", all_types(c));
    if (a->space == SPACE_REGISTER && (b->type == E_BF16 || b->type == E_F16))
        diag_help(diags, diag, "cast it first, and multiply `t`: `let t[i, x] = %s(%s[i, x]);`",
                  spelling(b->type), c->site->role->tiles.items[a->object].name);
    else if (a->type == E_F32 || b->type == E_F32)
        diag_help(diags, diag,
                  "declare the field tf32: f32 elements are copied into it, and multiplied with 10 "
                  "mantissa bits");
    else if (a->type != b->type)
        diag_help(
            diags, diag, "cast one operand into a tile of the other type first: `t[..] = %s(%s);`",
            spelling(element_rows[a->type].bytes > element_rows[b->type].bytes ? a->type : b->type),
            tiles_text(c->tiles, element_rows[a->type].bytes > element_rows[b->type].bytes
                                     ? b->span
                                     : a->span));
    return false;
}

static bool sums_in(Contraction *c, const MmaRow *row) {
    Diags *diags = c->tiles->diags;
    const RoleTile *tile = &c->site->role->tiles.items[c->site->tile->target.object];
    if (c->sum->type != row->sum) {
        Diag *diag =
            diag_at(diags, P0221, c->sum->span, "the sum of %s products must be %s, not %s",
                    spelling(row->operands), spelling(row->sum), spelling(c->sum->type));
        diag_help(diags, diag, "remove the casts from the product");
        return false;
    }
    if (tile->type == row->sum && c->site->tile->value == c->sum) return true;
    Diag *diag = diag_at(diags, P0221, c->site->tile->target.span,
                         "a matrix instruction sums %s products in %s", spelling(row->operands),
                         spelling(row->sum));
    diag_label(diags, diag, tile->span, "declared %s", spelling(tile->type));
    diag_help(diags, diag, "declare it %s, and cast it where it is read", spelling(row->sum));
    return false;
}

/* ---- extents --------------------------------------------------------------------------------- */

/* "the nearest are 248 and 256"; 0: none on that side */
static const char *nearest(Contraction *c, int64_t below, int64_t above) {
    if (below > 0 && above > 0)
        return arena_printf(c->tiles->arena, "use an extent of %lld or %lld", (long long)below,
                            (long long)above);
    return arena_printf(c->tiles->arena, "use an extent of %lld",
                        (long long)(below > 0 ? below : above));
}

static Diag *refuse_extent(Contraction *c, int index, const char *what) {
    const Index *row = &c->site->tile->space.items[index];
    Diag *diag = diag_at(c->tiles->diags, P0222, row->span,
                         "%lld %s do not fit matrix instructions", (long long)row->extent, what);
    diag_primary(c->tiles->diags, diag, "the extent of `%s` is %lld", row->name,
                 (long long)row->extent);
    return diag;
}

static bool multiple_extent(Contraction *c, int index, int64_t of, const char *what,
                            const char *note) {
    int64_t extent = c->site->tile->space.items[index].extent;
    if (extent > 0 && extent % of == 0) return true;
    Diag *diag = refuse_extent(c, index, what);
    diag_note(c->tiles->diags, diag, "%s", note);
    diag_help(c->tiles->diags, diag, "%s", nearest(c, extent / of * of, (extent / of + 1) * of));
    return false;
}

static bool has_columns(const MmaRow *row, int64_t n) {
    return n > 0 && n <= COLUMNS_MOST && n % (n <= 32 ? row->n_step : row->n_step_large) == 0;
}

static bool columns(Contraction *c, const MmaRow *row) {
    Diags *diags = c->tiles->diags;
    int64_t n = c->site->tile->space.items[INDEX_COLUMN].extent;
    if (has_columns(row, n)) return true;
    int64_t below = n < COLUMNS_MOST ? n : COLUMNS_MOST, above = n;
    while (below > 0 && !has_columns(row, below)) below--;
    while (above <= COLUMNS_MOST && !has_columns(row, above)) above++;
    Diag *diag = refuse_extent(c, INDEX_COLUMN, "columns");
    if (row->n_step == row->n_step_large)
        diag_note(diags, diag, "m64nNk%d needs N as a multiple of %d, from %d to %d", row->k,
                  row->n_step, row->n_step, COLUMNS_MOST);
    else
        diag_note(diags, diag, "m64nNk%d needs N as a multiple of %d up to 32, and of %d up to %d",
                  row->k, row->n_step, row->n_step_large, COLUMNS_MOST);
    diag_help(diags, diag, "%s%s", nearest(c, below, above <= COLUMNS_MOST ? above : 0),
              n > COLUMNS_MOST ? "; or use several register tiles" : "");
    return false;
}

static bool extents(Contraction *c, const MmaRow *row) {
    Arena *arena = c->tiles->arena;
    return multiple_extent(
               c, INDEX_ROW, TILES_SLAB_ROWS, "rows",
               "a matrix instruction has 64 rows; a warpgroup issues one per 64 rows") &&
           columns(c, row) &&
           multiple_extent(c, INDEX_INNER, row->k, "products per sum",
                           arena_printf(arena, "a matrix instruction sums %d products of %s",
                                        row->k, spelling(row->operands)));
}

/* ---- operands -------------------------------------------------------------------------------- */

static Diag *refuse_place(Contraction *c, Code code, const Access *tile, Span span,
                          const char *text) {
    Diag *diag = diag_at(c->tiles->diags, code, span, "%s", text);
    diag_label(c->tiles->diags, diag, tiles_declared(c->tiles, c->site->role, tile),
               "declared here");
    return diag;
}

/* The axes subscripted by the two indexes */
static bool operand_axes(Contraction *c, MmaOperand *operand, int free) {
    const Access *tile = operand->tile;
    operand->free = operand->inner = -1;
    for (int d = 0; d < tile->rank; d++) {
        const Affine *affine = &tile->affine[d];
        uint32_t indexes = tile->subs[d]->indexes;
        if (!indexes) continue;
        int *axis = indexes == 1u << free ? &operand->free : &operand->inner;
        bool alone = indexes == 1u << free || indexes == 1u << INDEX_INNER;
        if (alone && affine->is && affine->coef[free] + affine->coef[INDEX_INNER] == 1 &&
            *axis < 0) {
            *axis = d;
            continue;
        }
        Diag *diag = refuse_place(
            c, P0223, tile, tile->subs[d]->span,
            arena_printf(c->tiles->arena, "`%s` does not advance through %s element by element",
                         tiles_text(c->tiles, tile->subs[d]->span),
                         tiles_object(c->tiles, c->site->role, tile)));
        diag_help(
            c->tiles->diags, diag,
            "subscript each axis of a matrix operand by a base plus one index: `rank*64 + i`");
        return false;
    }
    operand->mn_major = operand->free == tile->rank - 1;
    return true;
}

static bool operand_order(Contraction *c, const MmaOperand *operand, const MmaRow *row) {
    const Access *tile = operand->tile;
    Diags *diags = c->tiles->diags;
    const char *object = tiles_object(c->tiles, c->site->role, tile);
    if (operand->free < 0 || operand->inner < 0 ||
        operand->free + operand->inner != 2 * tile->rank - 3) {
        Diag *diag = refuse_place(c, P0223, tile, tile->span,
                                  arena_printf(c->tiles->arena,
                                               "a matrix operand must be the last two axes of its "
                                               "tile, but this is not the case for %s",
                                               object));
        diag_help(diags, diag, "declare the tile with the other axes first");
        return false;
    }
    if (!operand->mn_major || row->either_major) return true;
    Diag *diag =
        refuse_place(c, P0223, tile, tile->subs[tile->rank - 1]->span,
                     arena_printf(c->tiles->arena, "%s operands must have the summed index last",
                                  spelling(row->operands)));
    diag_note(diags, diag, "only 16-bit operands may have it in either position");
    diag_help(diags, diag,
              "store the tensor with the summed axis last, and swap the subscripts of `%s`",
              tiles_text(c->tiles, tile->span));
    return false;
}

static int64_t base_divisor(Contraction *c, const Access *tile, int d) {
    return poly_divisor(c->site->algebra,
                        algebra_poly(c->site->algebra, c->site->role, tile->affine[d].base));
}

static bool aligned_base(Contraction *c, const Access *tile, int d, int64_t multiple) {
    if (base_divisor(c, tile, d) % multiple == 0) return true;
    Diag *diag = refuse_place(
        c, P0223, tile, tile->subs[d]->span,
        arena_printf(c->tiles->arena, "cannot show that `%s` begins at a multiple of %lld",
                     tiles_text(c->tiles, tile->subs[d]->span), (long long)multiple));
    diag_note(c->tiles->diags, diag,
              "a matrix operand must start where the swizzled layout of the tile repeats");
    diag_help(c->tiles->diags, diag, "choose parts that begin at multiples of %lld",
              (long long)multiple);
    return false;
}

int64_t tiles_operand_span(const Tiles *tiles, const Site *site, const MmaOperand *operand,
                           int64_t part) {
    const Access *tile = operand->tile;
    int last = tile->rank - 1;
    int64_t bytes = element_rows[tile->type].bytes,
            row = tile_extent(tiles->prog, site->role, tile, last) * bytes;
    const Poly *base = algebra_poly(site->algebra, site->role, tile->affine[last].base);
    for (int64_t span = TILES_SPAN_MOST; span >= TILES_SPAN_LEAST; span /= 2) {
        if (row % span != 0) continue;
        if (!operand->mn_major ||
            (part * bytes % span == 0 && poly_divisor(site->algebra, base) * bytes % span == 0))
            return span;
    }
    return 0;
}

static bool operand_layout(Contraction *c, const MmaOperand *operand, int64_t part) {
    const Access *tile = operand->tile;
    const Prog *prog = c->tiles->prog;
    Arena *arena = c->tiles->arena;
    Diags *diags = c->tiles->diags;
    int last = tile->rank - 1;
    int64_t bytes = element_rows[tile->type].bytes,
            row = tile_extent(prog, c->site->role, tile, last);
    int64_t rows = tile_extent(prog, c->site->role, tile, last - 1),
            unit = TILES_SPAN_LEAST / bytes;
    const char *object = tiles_object(c->tiles, c->site->role, tile);
    if (rows % TILES_SPAN_ROWS != 0) {
        Diag *diag = refuse_place(
            c, P0224, tile, tile->span,
            arena_printf(arena, "%s has %lld rows, but a matrix operand needs a multiple of %d",
                         object, (long long)rows, TILES_SPAN_ROWS));
        diag_help(diags, diag, "%s",
                  nearest(c, rows / TILES_SPAN_ROWS * TILES_SPAN_ROWS,
                          (rows / TILES_SPAN_ROWS + 1) * TILES_SPAN_ROWS));
        return false;
    }
    if (row % unit != 0) {
        Diag *diag = refuse_place(
            c, P0224, tile, tile->span,
            arena_printf(arena,
                         "rows of %s have %lld bytes, but a matrix operand needs a multiple of %d",
                         object, (long long)(row * bytes), TILES_SPAN_LEAST));
        diag_note(diags, diag, "matrix operands are swizzled over 32, 64 or 128 bytes");
        diag_help(diags, diag, "in elements of %s per row, %s", spelling(tile->type),
                  nearest(c, row / unit * unit, (row / unit + 1) * unit));
        return false;
    }
    if (!operand->mn_major) return true;
    if (part % unit == 0) return aligned_base(c, tile, last, unit);
    Diag *diag = refuse_place(c, P0224, tile, tile->subs[last]->span,
                              arena_printf(arena,
                                           "the extent of `%s` is %lld, but an operand that is "
                                           "contiguous along it is read in parts of %lld elements",
                                           c->site->tile->space.items[INDEX_COLUMN].name,
                                           (long long)part, (long long)unit));
    diag_help(diags, diag, "%s; or load the tile with the summed axis last",
              nearest(c, part / unit * unit, (part / unit + 1) * unit));
    return false;
}

/* ---- operands in registers ------------------------------------------------------------------- */

static void help_through_shared(Contraction *c, Diag *diag, const Access *tile) {
    const RoleTile *declared = &c->site->role->tiles.items[tile->object];
    Str extents = str_new(c->tiles->arena);
    for (int d = 0; d < declared->rank; d++)
        str_printf(&extents, "%s%lld", d ? ", " : "", (long long)declared->extents[d]);
    diag_help(c->tiles->diags, diag,
              "pass it through a `shared` tile: `shared t: %s[%s]; t[i, j] = %s[i, j];`",
              spelling(declared->type), extents.text, declared->name);
}

/* An accumulator's threads hold the pairs of columns that they need as first operand of a 16-bit
 * type (PTX ISA 9.7.15.5.1, figures of the A and D fragments); for narrower and wider types
 * other threads need them. */
static bool operand_in_registers(Contraction *c, MmaOperand *operand, const MmaRow *row) {
    const Access *tile = operand->tile;
    bool in_order = tile->rank == 2 && tile->subs[0]->kind == X_INDEX &&
                    tile->subs[0]->index == INDEX_ROW && tile->subs[1]->kind == X_INDEX &&
                    tile->subs[1]->index == INDEX_INNER;
    operand->free = 0, operand->inner = 1;
    if (in_order && row->either_major) return true;
    const char *text =
        in_order ? arena_printf(c->tiles->arena,
                                "`%s` cannot be a matrix operand of type %s: threads would need "
                                "elements that others hold",
                                c->site->role->tiles.items[tile->object].name, spelling(tile->type))
                 : arena_printf(c->tiles->arena, "a matrix operand in registers must be "
                                                 "subscripted by its row and the summed index");
    Diag *diag = refuse_place(c, P0226, tile, tile->span, text);
    if (in_order)
        diag_note(c->tiles->diags, diag, "only bf16 and f16 accumulators can be operands");
    help_through_shared(c, diag, tile);
    return false;
}

static bool second_in_memory(Contraction *c) {
    const Access *tile = c->operands[1].tile;
    if (tile->space != SPACE_REGISTER) return true;
    Diag *diag =
        refuse_place(c, P0225, tile, tile->span,
                     "the second operand of a matrix instruction must be in shared memory");
    diag_primary(c->tiles->diags, diag, "`%s` is in registers",
                 c->site->role->tiles.items[tile->object].name);
    diag_note(c->tiles->diags, diag,
              "the second operand is the one with the columns of the sum; only the first may be in "
              "registers");
    help_through_shared(c, diag, tile);
    return false;
}

/* ---- the statement --------------------------------------------------------------------------- */

static bool operand(Contraction *c, MmaOperand *operand, int free, const MmaRow *row) {
    const Access *tile = operand->tile;
    if (tile->space == SPACE_REGISTER) return operand_in_registers(c, operand, row);
    if (!operand_axes(c, operand, free) || !operand_order(c, operand, row)) return false;
    if (!aligned_base(c, tile, operand->inner, row->k)) return false;
    if (!operand->mn_major && !aligned_base(c, tile, operand->free, TILES_SPAN_ROWS)) return false;
    return operand_layout(
        c, operand, free == INDEX_ROW ? TILES_SLAB_ROWS : c->site->tile->space.items[free].extent);
}

void tiles_mma(Tiles *tiles, Site *site) {
    Contraction c = {.tiles = tiles, .site = site};
    Tile *tile = site->tile;
    MmaKind kind = MMA_COUNT;
    if (!is_contraction(&c)) return;
    tile->mma = (Mma){.a = c.operands[0], .b = c.operands[1]};
    if (!by_warpgroups(&c) || !second_in_memory(&c) || !find_kind(&c, &kind) ||
        !sums_in(&c, &mma_rows[kind]) || !extents(&c, &mma_rows[kind]) ||
        !operand(&c, &tile->mma.a, INDEX_ROW, &mma_rows[kind]) ||
        !operand(&c, &tile->mma.b, INDEX_COLUMN, &mma_rows[kind])) {
        site->poisoned = true;
        if (tile->target.space == SPACE_REGISTER)
            edit_tile(tiles->prog, site->role, tile->target.object)->unspread = true;
        return;
    }
    tile->mma.kind = kind;
    tile->mma.slabs = (int)(tile->space.items[INDEX_ROW].extent / TILES_SLAB_ROWS);
    tile->mma.n = (int)tile->space.items[INDEX_COLUMN].extent;
    tile->mma.steps = (int)(tile->space.items[INDEX_INNER].extent / mma_rows[kind].k);
    tile->class = TILE_MMA;
}
