/* Reductions in roles. Each becomes a statement of its own, whose target is a register tile that
 * the compiler declares: `y[r] = s.x[r] / sum[k] s.x[k]` is `t[0] = sum[k] s.x[k]`, then
 * `y[r] = s.x[r] / t[0]`. All later passes meet reductions in this form only, except those that
 * pass `forms` refuses. A reduction whose index is compared with one of the result is a scan:
 * `sum[j] (j <= k ? x[j] : 0)` becomes the value `sum[<= j] x[j]` of `t[j]`. */
#include "elaborate/private.h"

/* One reduction, or the search for what is wrong with those of a statement */
typedef struct Hoist {
    Elab *e;
    const IndexSpace *space; /* of the statement that contains it */
    const Access *target;    /* of that statement; NULL: a scalar */
    Expr *value;             /* of that statement */
    const Expr *refused;     /* a reduction that has to stay */
    int unknown;             /* an index without an extent; -1: none */
} Hoist;

static uint32_t own_indexes(const Expr *reduction) {
    return (((uint32_t)1 << reduction->reduce.count) - 1) << reduction->reduce.first;
}

/* ---- extents --------------------------------------------------------------------------------- */

typedef struct Search {
    const Elab *e;
    int index;
    int64_t extent; /* -1: not found yet */
} Search;

static int64_t extent_of(const Elab *e, const Access *access, int d) {
    if (access->space == SPACE_STAGE) {
        int pipe = e->role->handles.items[access->object].pipe;
        if (pipe < 0 || access->field < 0) return -1;
        return e->prog->pipes.items[pipe].fields.items[access->field].extents[d];
    }
    bool tile = access->space == SPACE_SHARED || access->space == SPACE_REGISTER;
    return tile && access->object >= 0 ? e->role->tiles.items[access->object].extents[d] : -1;
}

static void search_access(Search *search, const Access *access) {
    for (int d = 0; d < access->rank; d++) {
        const Expr *sub = access->subs[d];
        if (search->extent < 0 && sub->kind == X_INDEX && sub->index == search->index)
            search->extent = extent_of(search->e, access, d);
    }
}

static void search_read(Expr *x, void *data) {
    if (x->kind == X_READ) search_access(data, x->read);
}

/* The extent of the tile dimension of which an index of the statement is the bare subscript */
static int64_t index_extent(const Hoist *h, int index) {
    Search search = {h->e, index, -1};
    if (index_ranged(&h->space->items[index])) return h->space->items[index].extent;
    if (h->target) search_access(&search, h->target);
    expr_visit(h->e->arena, h->value, search_read, &search);
    return search.extent;
}

/* ---- scans ----------------------------------------------------------------------------------- */

/* The extent of a free index of a reduction: that of a scan's own index, if no subscript of a tile
 * gives it one. */
static int64_t free_extent(const Hoist *h, const Expr *reduction, int index) {
    ScanForm form;
    int64_t extent = index_extent(h, index);
    bool along = extent < 0 && expr_scan_form(reduction, &form) && form.along == index;
    return along ? index_extent(h, form.own) : extent;
}

/* True if it is a scan: both indexes have the same range */
static bool scan_of(const Hoist *h, const Expr *reduction, ScanForm *form) {
    if (!expr_scan_form(reduction, form)) return false;
    int64_t own = index_extent(h, form->own);
    return own >= 0 && own == free_extent(h, reduction, form->along);
}

/* ---- which reductions ------------------------------------------------------------------------ */

typedef struct Cover {
    uint32_t all;
    bool found;
} Cover;

static void note_cover(Expr *x, void *data) {
    Cover *cover = data;
    if (x->kind == X_READ && (x->indexes & cover->all) == cover->all) cover->found = true;
}

/* True if some operand has an element for each step: the work is that of reading it. Otherwise
 * it is a product of operands of different indexes: matrix instructions, or refused. */
static bool is_one_pass(const Hoist *h, Expr *reduction) {
    Cover cover = {.all = reduction->reduce.body->indexes | own_indexes(reduction)};
    if (reduction->indexes == 0) return true;
    expr_visit(h->e->arena, reduction->reduce.body, note_cover, &cover);
    return cover.found;
}

static void judge(Expr *x, void *data) {
    Hoist *h = data;
    ScanForm form;
    int free = 0;
    if (x->kind != X_REDUCE) return;
    for (int i = 0; i < h->space->count; i++) {
        if (!(x->indexes >> i & 1)) continue;
        free++;
        if (free_extent(h, x, i) < 0 && h->unknown < 0) h->unknown = i;
    }
    if (free > PROG_MAX_RANK || (!scan_of(h, x, &form) && !is_one_pass(h, x))) h->refused = x;
}

/* ---- the statement --------------------------------------------------------------------------- */

/* The numbers of a statement's indexes in the space of the new one */
typedef struct Numbers {
    int of[PROG_MAX_INDEXES];
} Numbers;

static Expr *renumber(Elab *e, Expr *x, void *data) {
    const Numbers *numbers = data;
    return x->kind == X_INDEX ? elab_make_index(e, numbers->of[x->index], x->span) : NULL;
}

/* The indexes that the result depends on, then those of the reduction */
static Numbers take_indexes(const Hoist *h, const Expr *x, IndexSpace *out) {
    Numbers numbers = {{0}};
    uint32_t own = own_indexes(x);
    for (int pass = 0; pass < 2; pass++) {
        uint32_t wanted = pass == 0 ? x->indexes : own;
        for (int i = 0; i < h->space->count; i++) {
            if (!(wanted >> i & 1)) continue;
            numbers.of[i] = out->count;
            index_space_add(h->e->nodes, out, h->space->items[i].name, h->space->items[i].span);
            out->items[numbers.of[i]] = h->space->items[i];
        }
        if (pass == 0) out->bound = out->count;
    }
    return numbers;
}

/* The element of the new tile at indexes of a statement, whose numbers are in order */
static Access element_of(Elab *e, int tile, const int *indexes, int count, Span span) {
    const RoleTile *row = &e->role->tiles.items[tile];
    Access access = {.space = SPACE_REGISTER,
                     .object = tile,
                     .type = row->type,
                     .rank = row->rank,
                     .span = span};
    access_allocate(e->nodes, e->arena, &access);
    for (int d = 0; d < row->rank; d++)
        access.subs[d] =
            d < count ? elab_make_index(e, indexes[d], span) : elab_make_integer(e, E_I32, 0, span);
    return access;
}

static int declare_result(const Hoist *h, const Expr *x) {
    int64_t extents[PROG_MAX_RANK] = {1};
    int rank = 0;
    for (int i = 0; i < h->space->count; i++)
        if (x->indexes >> i & 1) extents[rank++] = free_extent(h, x, i);
    int tile = elab_add_tile(h->e, elab_text_of(h->e, x->span), x->span, true, x->type,
                             rank > 0 ? rank : 1, extents);
    h->e->role->tiles.items[tile].reduced = true;
    return tile;
}

/* ---- its place ------------------------------------------------------------------------------- */

/* What the value of a statement depends on */
typedef struct Reads {
    Arena *arena;
    VEC(const Access *) objects;
    VEC(int) locals;
    bool reduces;
} Reads;

static void note_reads(Expr *x, void *data) {
    Reads *reads = data;
    if (x->kind == X_READ) vec_push(reads->arena, &reads->objects, x->read);
    if (x->kind == X_LOCAL) vec_push(reads->arena, &reads->locals, x->index);
    reads->reduces |= x->kind == X_REDUCE || x->kind == X_SCAN;
}

static Reads reads_of(const Elab *e, Expr *x) {
    Reads reads = {.arena = e->arena};
    expr_visit(e->arena, x, note_reads, &reads);
    return reads;
}

static bool is_result(const Elab *e, const Stmt *s) {
    if (s->kind != S_TILE || s->tile->target.space != SPACE_REGISTER) return false;
    int tile = s->tile->target.object;
    return tile >= 0 && e->role->tiles.items[tile].reduced;
}

/* True if a reduction that reads this may be computed before the statement instead of after it */
static bool may_overtake(const Elab *e, const Reads *reads, const Stmt *s) {
    if (s->kind == S_SCALAR) {
        for (size_t i = 0; i < reads->locals.count; i++)
            if (reads->locals.items[i] == s->scalar.local) return false;
        return true;
    }
    if (s->kind != S_TILE || reads_of(e, s->tile->value).reduces) return false;
    const Access *target = &s->tile->target;
    if (target->space != SPACE_REGISTER && target->space != SPACE_GLOBAL) return false;
    for (size_t i = 0; i < reads->objects.count; i++) {
        const Access *read = reads->objects.items[i];
        if (read->space == target->space && read->object == target->object) return false;
    }
    return true;
}

/* Emits a reduction, directly after the one before it if only statements are between them on which
 * it does not depend: warps can then exchange the parts of both at once. */
static void emit_reduction(Elab *e, Tile *tile, Span span) {
    Reads reads = reads_of(e, tile->value);
    Stmt **items;
    size_t at = e->out->count, count = at;
    while (at > 0 && !is_result(e, e->out->items[at - 1]) &&
           may_overtake(e, &reads, e->out->items[at - 1]))
        at--;
    elab_emit_tile(e, tile, span);
    items = e->out->items;
    if (at == 0 || !is_result(e, items[at - 1])) return;
    Stmt *emitted = items[count];
    for (size_t i = count; i > at; i--) items[i] = items[i - 1];
    items[at] = emitted;
}

static Expr *reduction_value(Elab *e, const Expr *x, Numbers *numbers, int count) {
    Expr *value = elab_node(e, X_REDUCE, x->type, x->span);
    value->reduce = x->reduce;
    value->reduce.first = count;
    value->reduce.body = elab_substitute(e, x->reduce.body, renumber, numbers);
    expr_derive(e->role, value);
    return value;
}

/* One index in place of two, with the name of the reduction's own: of the element, and of the
 * result to which it is the last one */
static Expr *scan_value(Elab *e, const Hoist *h, const Expr *x, const ScanForm *form,
                        Numbers *numbers, IndexSpace *space) {
    int along = numbers->of[form->along];
    const Index *own = &h->space->items[form->own];
    Index *index = &space->items[along];
    space->count = space->bound;
    numbers->of[form->own] = along;
    if (index_ranged(own)) *index = *own;
    index->name = own->name;
    index->span = own->span;
    Expr *value = elab_node(e, X_SCAN, x->type, x->span);
    value->scan.op = x->reduce.op;
    value->scan.relation = form->relation;
    value->scan.along = along;
    value->scan.body = elab_substitute(e, form->body, renumber, numbers);
    expr_derive(e->role, value);
    return value;
}

/* Replaces the reduction by a read of its result. */
static void hoist(Expr *x, void *data) {
    Hoist *h = data;
    Elab *e = h->e;
    ScanForm form;
    int old[PROG_MAX_INDEXES], new[PROG_MAX_INDEXES], count = 0;
    if (x->kind != X_REDUCE) return;
    Tile *tile = NEW(e->nodes, Tile);
    Numbers numbers = take_indexes(h, x, &tile->space);
    for (int i = 0; i < h->space->count; i++)
        if (x->indexes >> i & 1) old[count] = i, new[count] = count, count++;
    int result = declare_result(h, x);
    tile->target = element_of(e, result, new, count, x->span);
    tile->value = scan_of(h, x, &form) ? scan_value(e, h, x, &form, &numbers, &tile->space)
                                       : reduction_value(e, x, &numbers, count);
    emit_reduction(e, tile, x->span);
    Access *read = NEW(e->nodes, Access);
    *read = element_of(e, result, old, count, x->span);
    x->kind = X_READ, x->read = read;
    expr_derive(e->role, x);
}

static void report_unknown(const Hoist *h) {
    const Index *index = &h->space->items[h->unknown];
    Diag *diag =
        elab_error(h->e, P0201, index->span, "the extent of index `%s` is unknown", index->name);
    PRIMARY(h->e, diag, "not alone in any subscript of a tile");
    HELP(h->e, diag,
         "use `%s` alone as a subscript of a tile; other subscripts may then be `base + %s`; or "
         "give it a range after the statement: `.. for %s in 0 .. n;`",
         index->name, index->name, index->name);
}

bool elab_extents(Elab *e, const IndexSpace *space, Expr *value, int64_t *extents) {
    Hoist h = {.e = e, .space = space, .value = value, .unknown = -1};
    for (int i = 0; i < space->bound; i++) {
        extents[i] = index_extent(&h, i);
        if (extents[i] < 0 && h.unknown < 0) h.unknown = i;
    }
    if (h.unknown >= 0) report_unknown(&h);
    return h.unknown < 0;
}

bool elab_hoist(Elab *e, IndexSpace *space, const Access *target, Expr *value) {
    Hoist h = {.e = e, .space = space, .target = target, .value = value, .unknown = -1};
    if (space->count == space->bound) return true;
    expr_visit(e->arena, value, judge, &h);
    if (h.unknown >= 0 && !target) report_unknown(&h);
    if (h.refused || h.unknown >= 0) return false;
    expr_visit(e->arena, value, hoist, &h);
    space->count = space->bound;
    return true;
}
