/* Loops in pieces: a loop that one role divides is divided in the others. Each change makes a
 * new slice of copied rows: the rows of a divided loop are copied twice. */
#include "check/pipes/pieces.h"

#include "flow/values.h"

#include <stdlib.h>

#define ROWS_MOST  3000 /* of all slices */
#define TO_THE_END INT64_MAX

typedef struct Range { /* of a loop */
    bool known;        /* by formulas that do not change */
    const Poly *lo;
    Polys ends;       /* its end is their minimum */
    int64_t from, to; /* live iterations, if it has a `where` */
    uint64_t pipes;   /* acquired in it, by number modulo 64 */
} Range;

typedef struct Cutter {
    Arena *arena;
    Algebra *algebra;
    FlowCode **slices;
    Range **ranges; /* by slice and region */
    size_t count;
} Cutter;

typedef struct Piece { /* a loop that continues where an earlier one ends */
    size_t slice;
    const Region *region;
    const Range *range;
    uint64_t pipes; /* of both */
} Piece;

/* ---- formulas -------------------------------------------------------------------------------- */

void poly_operands(Arena *arena, const Algebra *algebra, AtomKind kind, const Poly *poly,
                   Polys *out) {
    bool alone = poly && poly->count == 1 && poly->terms[0].count == 1 && poly->terms[0].coef == 1;
    const Atom *atom = alone ? &algebra->atoms.items[poly->terms[0].atoms[0]] : NULL;
    if (!atom || atom->kind != kind) {
        vec_push(arena, out, poly);
        return;
    }
    const Poly *left = atom->args[0], *right = atom->args[1];
    poly_operands(arena, algebra, kind, left, out);
    poly_operands(arena, algebra, kind, right, out);
}

static bool among(const Polys *polys, const Poly *poly) {
    for (size_t i = 0; i < polys->count; i++)
        if (poly_equal(polys->items[i], poly)) return true;
    return false;
}

bool range_is_once(Arena *arena, Algebra *algebra, const Poly *lo, const Poly *hi) {
    Polys ends = {0};
    if (!lo || !hi) return false;
    poly_operands(arena, algebra, ATOM_MIN, hi, &ends);
    for (size_t i = 0; i < ends.count; i++) {
        int64_t most;
        if (poly_is_constant(poly_sum(algebra, ends.items[i], lo, -1), &most) && most <= 1)
            return true;
    }
    return false;
}

/* For a row of the slice; NULL: unknown */
static const Poly *poly_at(Arena *arena, const FlowCode *slice, int at, Expr *expr,
                           Algebra *algebra) {
    if (!expr || expr->kind == X_POISON) return NULL;
    return values_import(arena, slice->role->code, slice->whole_rows.items[at], expr, algebra);
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool is_number(const Cutter *c, const FlowCode *slice, const Region *piece, Expr *end,
                      int64_t *out) {
    return poly_is_constant(poly_at(c->arena, slice, piece->begin, end, c->algebra), out);
}

static uint64_t pipes_of(const FlowCode *slice, const Region *region) {
    uint64_t pipes = 0;
    for (int at = region->begin; at < region->end; at++) {
        const Row *row = &slice->rows.items[at];
        if (row->kind != ROW_ACQUIRE || !valid_index(row->handle, slice->role->handles.count))
            continue;
        pipes |= UINT64_C(1) << slice->role->handles.items[row->handle].pipe % 64;
    }
    return pipes;
}

static Range range_of(const Cutter *c, const FlowCode *slice, const Region *region) {
    Range range = {.to = TO_THE_END}, unknown = {0};
    if (region->kind != REGION_FOR || region->left) return unknown;
    range.known = true;
    range.pipes = pipes_of(slice, region);
    const Region *piece = region->where ? code_piece(slice, region) : NULL;
    if (piece && !is_number(c, slice, piece, piece->from, &range.from)) return unknown;
    if (piece && piece->to && !is_number(c, slice, piece, piece->to, &range.to)) return unknown;
    if (region->where) return region->domain >= 0 ? range : unknown;
    range.lo = poly_at(c->arena, slice, region->begin, region->lo, c->algebra);
    const Poly *hi = poly_at(c->arena, slice, region->begin, region->hi, c->algebra);
    if (!range.lo || !hi) return unknown;
    if (poly_changes(c->algebra, range.lo) || poly_changes(c->algebra, hi)) return unknown;
    poly_operands(c->arena, c->algebra, ATOM_MIN, hi, &range.ends);
    return range;
}

static void put_slice(Cutter *c, size_t i, FlowCode *slice) {
    c->slices[i] = slice;
    c->ranges[i] = NEW_ARRAY(c->arena, Range, slice->regions.count + 1);
    for (size_t r = 1; r < slice->regions.count; r++)
        c->ranges[i][r] = range_of(c, slice, &slice->regions.items[r]);
}

/* True if both are in one list of rows, one after the other */
static bool follows(const FlowCode *slice, const Region *a, const Region *b) {
    if (a->parent != b->parent || a->parent < 0 || a->end > b->begin) return false;
    const Region *parent = &slice->regions.items[a->parent];
    return parent->kind != REGION_IF ||
           (a->begin > parent->otherwise) == (b->begin > parent->otherwise);
}

static bool goes_on(const Region *a, const Range *before, const Region *b, const Range *after) {
    if (!a->where != !b->where) return false;
    if (a->where) return a->domain == b->domain && before->to == after->from;
    return among(&before->ends, after->lo);
}

/* True if the region is the second of two pieces */
static bool is_piece(const Cutter *c, size_t i, size_t region, Piece *out) {
    const FlowCode *slice = c->slices[i];
    const Range *range = &c->ranges[i][region];
    const Region *after = &slice->regions.items[region];
    for (size_t r = 1; range->known && r < region; r++) {
        const Region *before = &slice->regions.items[r];
        const Range *other = &c->ranges[i][r];
        if (!other->known || !follows(slice, before, after)) continue;
        if (!goes_on(before, other, after, range)) continue;
        *out = (Piece){i, after, range, range->pipes | other->pipes};
        return true;
    }
    return false;
}

/* Number of iterations after which the loop must be divided for the piece; 0: it must not */
static int64_t cut_after(const Cutter *c, size_t i, size_t region, const Piece *piece) {
    const Region *loop = &c->slices[i]->regions.items[region];
    const Range *range = &c->ranges[i][region];
    int64_t first, past;
    if (!range->known || !(range->pipes & piece->pipes)) return 0;
    if (loop->depth != piece->region->depth || !loop->where != !piece->region->where) return 0;
    if (loop->where) {
        bool inside = piece->range->from > range->from && piece->range->from < range->to;
        return inside && loop->domain == piece->region->domain ? piece->range->from : 0;
    }
    const Poly *mid = piece->range->lo;
    if (!poly_is_constant(poly_sum(c->algebra, mid, range->lo, -1), &first) || first <= 0) return 0;
    bool same = false;
    for (size_t e = 0; e < range->ends.count; e++) {
        const Poly *rest = poly_sum(c->algebra, range->ends.items[e], mid, -1);
        same |= among(&piece->range->ends, range->ends.items[e]);
        if (poly_is_constant(rest, &past) && past <= 0) return 0; /* it ends before */
    }
    return same ? first : 0;
}

/* ---- copies ---------------------------------------------------------------------------------- */

typedef struct Copy {
    Arena *arena;
    const FlowCode *from;
    FlowCode *to;
    int *regions; /* by region: its copy, the last one if there are several */
} Copy;

static Copy copy_begin(Arena *arena, const FlowCode *from) {
    Copy copy = {arena, from, NEW(arena, FlowCode), NEW_ARRAY(arena, int, from->regions.count + 1)};
    *copy.to = (FlowCode){.prog = from->prog, .role = from->role, .algebra = from->algebra};
    return copy;
}

static Region *region_copy(const Copy *copy, int region) {
    return &copy->to->regions.items[copy->regions[region]];
}

/* Appends a row with its region's fields; its columns refer to copies already */
static void push_row(Copy *copy, Row row, int whole) {
    int at = (int)copy->to->rows.count;
    Region *region = &copy->to->regions.items[row.region];
    if (row.kind == ROW_NEXT) region->next = at;
    if (row.kind == ROW_ELSE) region->otherwise = at;
    if (row.kind == ROW_END) region->end = at;
    vec_push(copy->arena, &copy->to->rows, row);
    vec_push(copy->arena, &copy->to->whole_rows, whole);
}

/* Begins a copy of a region in a region of the new slice; returns its index */
static int push_region(Copy *copy, Region region, int parent, int whole) {
    int number = (int)copy->to->regions.count;
    const Region *around = parent < 0 ? NULL : &copy->to->regions.items[parent];
    bool loops = region_loops(&region);
    region.parent = parent;
    region.loop = loops ? number : around ? around->loop : -1;
    region.depth = (around ? around->depth : 0) + loops;
    region.begin = (int)copy->to->rows.count;
    vec_push(copy->arena, &copy->to->regions, region);
    vec_push(copy->arena, &copy->to->whole_regions, whole);
    return number;
}

/* The rows from `at` to `end`, exclusive */
static void copy_rows(Copy *copy, int at, int end) {
    for (; at < end; at++) {
        Row row = copy->from->rows.items[at];
        const Region *region = &copy->from->regions.items[row.region];
        if (row_begins(row.kind)) {
            int parent = region->parent < 0 ? -1 : copy->regions[region->parent];
            int whole = copy->from->whole_regions.items[row.region];
            copy->regions[row.region] = push_region(copy, *region, parent, whole);
        }
        row.region = copy->regions[row.region];
        if (row.kind == ROW_LEAVE) row.target = copy->regions[row.target];
        push_row(copy, row, copy->from->whole_rows.items[at]);
    }
}

static FlowCode *copy_end(Copy *copy) {
    for (size_t i = 0; i < copy->from->lates.count; i++) {
        Late late = copy->from->lates.items[i];
        if (late.loop >= 0) late.loop = copy->regions[late.loop];
        vec_push(copy->arena, &copy->to->lates, late);
    }
#if defined(__SANITIZE_ADDRESS__)
    if (!code_valid(copy->arena, copy->to, NULL)) abort();
#endif
    return copy->to;
}

/* ---- division -------------------------------------------------------------------------------- */

/* lo + count, if that fits; NULL: it may wrap */
static Expr *after(const Cutter *c, const FlowCode *slice, int at, Expr *lo, int64_t count) {
    Arena *kept = slice->algebra->arena; /* formulas are cached by their expressions */
    Expr *sum =
        expr_binary(kept, OP_ADD, lo, expr_integer(kept, lo->type, count, lo->span), lo->span);
    const Poly *value = poly_at(c->arena, slice, at, sum, c->algebra);
    const Poly *first = poly_at(c->arena, slice, at, lo, c->algebra);
    return value && poly_equal(value, poly_offset(c->algebra, first, count)) ? sum : NULL;
}

static Expr *least(Arena *arena, Expr *a, Expr *b) {
    Expr *expr = NEW(arena, Expr);
    *expr = (Expr){.kind = X_CALL, .type = b->type, .span = b->span};
    expr->call.which = IN_min;
    expr->call.args[0] = a, expr->call.args[1] = b;
    expr->call.count = 2;
    return expr;
}

/* Puts the loop's body into a new IF, a piece; leaves keep their targets. */
static int push_piece(Copy *copy, int index) {
    const Region *loop = &copy->from->regions.items[index];
    int around = copy->regions[index], whole = copy->from->whole_rows.items[loop->begin];
    Row row = copy->from->rows.items[loop->begin];
    Region piece = {.kind = REGION_IF, .next = -1, .otherwise = -1, .var = -1, .domain = -1};
    piece.nonempty = piece.search = -1;
    piece.span = loop->span, piece.head = loop->head;
    piece.condition = expr_integer(copy->from->algebra->arena, E_BOOL, 1, loop->head);
    int number = push_region(copy, piece, around, copy->from->whole_regions.items[index]);
    row.region = number;
    row.kind = ROW_IF;
    push_row(copy, row, whole);
    size_t first = copy->to->rows.count;
    copy->regions[index] = number;
    copy_rows(copy, loop->begin + 1, loop->next);
    copy->regions[index] = around;
    for (size_t at = first; at < copy->to->rows.count; at++)
        if (copy->to->rows.items[at].kind == ROW_LEAVE && copy->to->rows.items[at].target == number)
            copy->to->rows.items[at].target = around;
    row.kind = ROW_ELSE;
    push_row(copy, row, whole);
    row.kind = ROW_END;
    push_row(copy, row, whole);
    return number;
}

/* Iterations of a loop with a `where`, by number */
static void copy_live(Copy *copy, int index, int64_t from, int64_t to) {
    const Region *loop = &copy->from->regions.items[index];
    const Region *inner = code_piece(copy->from, loop);
    Arena *kept = copy->from->algebra->arena; /* formulas are cached by their expressions */
    copy_rows(copy, loop->begin, loop->begin + 1);
    if (inner) copy_rows(copy, loop->begin + 1, loop->next);
    int number = inner ? copy->regions[inner - copy->from->regions.items] : push_piece(copy, index);
    Region *piece = &copy->to->regions.items[number];
    if (from >= 0 || !piece->from)
        piece->from = expr_integer(kept, E_I32, from > 0 ? from : 0, loop->head);
    if (to >= 0) piece->to = expr_integer(kept, E_I32, to, loop->head);
    copy_rows(copy, loop->next, loop->end + 1);
}

/* lo .. min(mid, hi), or mid .. hi */
static void copy_range(Copy *copy, int index, Expr *mid, bool before) {
    const Region *loop = &copy->from->regions.items[index];
    copy_rows(copy, loop->begin, loop->end + 1);
    Region *piece = region_copy(copy, index);
    piece->whole = false;
    if (before)
        piece->hi = least(copy->from->algebra->arena, mid, piece->hi);
    else
        piece->lo = mid;
}

/* The slice with the loop divided after so many iterations; NULL: impossible */
static FlowCode *cut(const Cutter *c, FlowCode *slice, int index, int64_t first) {
    const Region *loop = &slice->regions.items[index];
    Expr *mid = loop->where ? NULL : after(c, slice, loop->begin, loop->lo, first);
    if (!loop->where && !mid) return NULL;
    Copy copy = copy_begin(c->arena, slice);
    copy_rows(&copy, 0, loop->begin);
    for (int half = 0; half < 2; half++)
        if (loop->where)
            copy_live(&copy, index, half ? first : -1, half ? -1 : first);
        else
            copy_range(&copy, index, mid, half == 0);
    copy_rows(&copy, loop->end + 1, (int)slice->rows.count);
    return copy_end(&copy);
}

/* ---- first iterations ------------------------------------------------------------------------ */

/* The two sides of `lo < hi` */
static bool is_below(const Expr *condition, Expr **lo, Expr **hi) {
    if (!condition || condition->kind != X_BINARY) return false;
    BinaryOp op = condition->binary.op;
    if (op != OP_LT && op != OP_GT) return false;
    *lo = op == OP_LT ? condition->binary.left : condition->binary.right;
    *hi = op == OP_LT ? condition->binary.right : condition->binary.left;
    return true;
}

/* if lo < hi { rows; for k in lo + 1 .. hi { .. } }: returns the loop; NULL: another form */
static const Region *rest_of(const Cutter *c, size_t i, const Region *branch, Expr **lo,
                             Expr **hi) {
    const FlowCode *slice = c->slices[i];
    Piece piece;
    if (branch->kind != REGION_IF || branch->otherwise + 1 != branch->end) return NULL;
    if (!is_below(branch->condition, lo, hi)) return NULL;
    const Row *last = &slice->rows.items[branch->otherwise - 1];
    const Region *loop = &slice->regions.items[last->region];
    const Range *range = &c->ranges[i][last->region];
    if (last->kind != ROW_END || !range->known || loop->where) return NULL;
    if (loop->parent != (int)(branch - slice->regions.items)) return NULL;
    if (loop->begin == branch->begin + 1) return NULL;
    if (is_piece(c, i, (size_t)last->region, &piece)) return NULL; /* the IF encloses both */
    const Poly *end = poly_at(c->arena, slice, loop->begin, loop->hi, c->algebra);
    const Poly *begin = poly_at(c->arena, slice, branch->begin, *lo, c->algebra);
    if (!poly_equal(end, poly_at(c->arena, slice, branch->begin, *hi, c->algebra))) return NULL;
    return poly_equal(range->lo, poly_offset(c->algebra, begin, 1)) ? loop : NULL;
}

/* for .. in lo .. min(second, hi) { rows } for k in second .. hi { .. } */
static FlowCode *spread(const Cutter *c, const FlowCode *slice, const Region *branch,
                        const Region *loop, Expr *lo, Expr *hi, Expr *second) {
    Copy copy = copy_begin(c->arena, slice);
    int index = (int)(branch - slice->regions.items),
        whole = slice->whole_rows.items[branch->begin];
    Region first = *loop;
    first.var = -1;
    first.whole = first.left = false;
    first.lo = lo;
    first.hi = least(slice->algebra->arena, second, hi);
    copy_rows(&copy, 0, branch->begin);
    int around = copy.regions[branch->parent];
    int number = copy.regions[index] =
        push_region(&copy, first, around, slice->whole_regions.items[index]);
    Row row = slice->rows.items[branch->begin];
    row.region = number;
    row.kind = ROW_LOOP;
    push_row(&copy, row, whole);
    copy_rows(&copy, branch->begin + 1, loop->begin);
    row.kind = ROW_NEXT;
    push_row(&copy, row, whole);
    row.kind = ROW_END;
    push_row(&copy, row, whole);
    copy.regions[index] = around;
    copy_rows(&copy, loop->begin, loop->end + 1);
    copy_rows(&copy, branch->end + 1, (int)slice->rows.count);
    return copy_end(&copy);
}

static bool spread_once(Cutter *c, size_t i) {
    const FlowCode *slice = c->slices[i];
    for (size_t r = 1; r < slice->regions.count; r++) {
        Expr *lo, *hi;
        const Region *branch = &slice->regions.items[r], *loop = rest_of(c, i, branch, &lo, &hi);
        Expr *second = loop ? after(c, slice, branch->begin, lo, 1) : NULL;
        if (!second) continue;
        put_slice(c, i, spread(c, slice, branch, loop, lo, hi, second));
        return true;
    }
    return false;
}

/* ---- slices ---------------------------------------------------------------------------------- */

/* Divides a loop of another slice where the piece begins */
static bool cut_like(Cutter *c, const Piece *piece) {
    for (size_t i = 0; i < c->count; i++) {
        FlowCode *slice = c->slices[i];
        for (size_t r = 1; r < slice->regions.count && i != piece->slice; r++) {
            int64_t first = cut_after(c, i, r, piece);
            FlowCode *made = first > 0 ? cut(c, slice, (int)r, first) : NULL;
            if (!made) continue;
            put_slice(c, i, made);
            return true;
        }
    }
    return false;
}

static bool cut_once(Cutter *c) {
    for (size_t i = 0; i < c->count; i++)
        for (size_t r = 1; r < c->slices[i]->regions.count; r++) {
            Piece piece;
            if (is_piece(c, i, r, &piece) && cut_like(c, &piece)) return true;
        }
    return false;
}

static bool has_room(const Cutter *c) {
    size_t rows = 0;
    for (size_t i = 0; i < c->count; i++) rows += c->slices[i]->rows.count;
    arena_count(c->arena, rows);
    return rows < ROWS_MOST;
}

bool pieces_cut(Arena *arena, Algebra *algebra, FlowCode **slices, size_t count) {
    Cutter c = {arena, algebra, slices, NEW_ARRAY(arena, Range *, count + 1), count};
    bool changed = false;
    if (!has_room(&c)) return false;
    for (size_t i = 0; i < count; i++) put_slice(&c, i, slices[i]);
    for (size_t i = 0; i < count; i++)
        while (has_room(&c) && spread_once(&c, i)) changed = true;
    while (has_room(&c) && cut_once(&c)) changed = true;
    return changed;
}

/* True if another piece begins where this one ends */
static bool is_followed(Arena *arena, const FlowCode *slice, const Region *piece) {
    int64_t to, from;
    Algebra *algebra = slice->algebra;
    if (!poly_is_constant(poly_at(arena, slice, piece->begin, piece->to, algebra), &to))
        return false;
    for (size_t r = 1; r < slice->regions.count; r++) {
        const Region *other = &slice->regions.items[r];
        if (other == piece || !other->from) continue;
        const Poly *begin = poly_at(arena, slice, other->begin, other->from, algebra);
        if (poly_is_constant(begin, &from) && from == to) return true;
    }
    return false;
}

void pieces_open(Arena *arena, FlowCode *slice) {
    Algebra *algebra = slice->algebra;
    for (size_t r = 1; r < slice->regions.count; r++) {
        const Region *loop = &slice->regions.items[r];
        const Region *piece = loop->where ? code_piece(slice, loop) : NULL;
        if (!piece || !piece->to || is_followed(arena, slice, piece)) continue;
        const Poly *lo = poly_at(arena, slice, loop->begin, loop->lo, algebra);
        const Poly *hi = poly_at(arena, slice, loop->begin, loop->hi, algebra);
        const Poly *to = poly_at(arena, slice, piece->begin, piece->to, algebra);
        const Poly *all = poly_sum(algebra, hi, lo, -1);
        if (to && all &&
            algebra_proves(algebra, CLAIM_NOT_NEGATIVE, poly_sum(algebra, to, all, -1)))
            slice->regions.items[piece - slice->regions.items].to = NULL;
    }
}
