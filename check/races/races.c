/* Races: two unordered accesses to an element of a tensor, one of them a write: by tiles of the
 * grid, roles, instances of a role, and copies without a wait.
 *
 * A refusal has an example: sizes are tried from the smallest up, the blocks of adjacent tiles
 * are run at them, and two accesses of one element must be ordered. Races that sizes do not show
 * must be proved impossible (races_proof.c), otherwise the verdict is incomplete. If proofs
 * cover everything, no sizes are tried. A tensor accessed by a single statement, each execution
 * with its own elements, is skipped. */
#include "check/passes.h"
#include "check/races/races.h"

#include <stdlib.h>

#define SIZES_MOST  100
#define NEXT_MOST   3       /* most tiles along an axis that are compared with the first one */
#define RACES_STEPS 5000000 /* steps of the meter for the runs */
#define TILES_MOST  (NEXT_MOST * PROG_MAX_RANK + 1)

typedef struct Races {
    Arena *arena;
    const Prog *prog;
    Diags *diags;
    Algebra *algebra; /* of all roles */
    Places places;
    const Sizes *sizes;
    Traced *traced;
    /* by two places: if sizes show that both access an element, they are ordered; NULL: not
     * tried */
    bool *ordered;
    bool cut; /* some block was not run to its end, or not compared */
    Budget work;
} Races;

/* ---- relevant tensors ------------------------------------------------------------------------ */

/* True if no executions of the place alone race */
static bool is_safe_alone(const Races *r, const Place *place) {
    return place_walks(place) && place_disjoint(r->prog, r->algebra, place, false);
}

/* Keeps only places of tensors that may race. */
static void sift(Races *r) {
    size_t kept = 0;
    bool *relevant = NEW_ARRAY(r->arena, bool, r->prog->params.count + 1);
    for (size_t p = 0; p < r->prog->params.count; p++) {
        const Place *only = NULL;
        int count = 0, writes = 0;
        arena_count(r->arena, r->places.count / 4);
        for (size_t i = 0; i < r->places.count; i++) {
            if (r->places.items[i].access->object != (int)p) continue;
            only = &r->places.items[i], count++, writes += only->write;
        }
        relevant[p] = writes && (count > 1 || !is_safe_alone(r, only));
    }
    for (size_t i = 0; i < r->places.count; i++)
        if (relevant[r->places.items[i].access->object])
            r->places.items[kept++] = r->places.items[i];
    r->places.count = kept;
}

/* ---- messages -------------------------------------------------------------------------------- */

typedef struct Pair {
    const Block *block, *other; /* blocks of the two accesses; equal if they are in one block */
    const Touch *a, *b;
    int64_t at[PROG_MAX_RANK];
} Pair;

static const char *name_of(const Races *r, const Pair *pair) {
    return r->prog->params.items[pair->a->place->access->object].name;
}

static const char *element_text(Races *r, const Pair *pair) {
    Str text = str_new(r->arena);
    str_printf(&text, "%s[", name_of(r, pair));
    for (int d = 0; d < pair->a->place->access->rank; d++)
        str_printf(&text, "%s%lld", d ? ", " : "", (long long)pair->at[d]);
    str_char(&text, ']');
    return text.text;
}

/* "N = 65: " */
static const char *sizes_text(Races *r) {
    Str text = str_new(r->arena);
    str_add(&text, "");
    sizes_print(r->sizes, &text);
    if (text.length) str_add(&text, ": ");
    return text.text;
}

static const char *verb_of(const Touch *touch) { return touch->place->write ? "written" : "read"; }

/* "t = 1", for the axes that differ from the other block's */
static const char *tile_text(Races *r, const Block *block, const Block *other) {
    Str text = str_new(r->arena);
    for (size_t a = 0; a < r->prog->axes.count; a++)
        if (block->axes[a] != other->axes[a])
            str_printf(&text, "%s%s = %lld", text.length ? ", " : "", r->prog->axes.items[a].name,
                       (long long)block->axes[a]);
    return text.text;
}

static int differing_axis(const Races *r, const Pair *pair) {
    for (size_t a = 0; a < r->prog->axes.count; a++)
        if (pair->block->axes[a] != pair->other->axes[a]) return (int)a;
    return -1;
}

static Diag *open_diag(Races *r, const Pair *pair, Code code, const char *what) {
    bool both = pair->a->place->write && pair->b->place->write;
    Span span = pair->b->place->access->span;
    return diag_at(r->diags, code, span, "%s %s the same elements of `%s`", what,
                   both ? "write" : "write and read", name_of(r, pair));
}

static bool mentions_axis(Races *r, const Place *place, int axis) {
    return place_mentions(r->algebra, place, algebra_atom_axis(r->algebra, axis));
}

static void report_tiles(Races *r, const Pair *pair) {
    int a = differing_axis(r, pair);
    const char *axis = r->prog->axes.items[a].name;
    bool same = pair->a->place == pair->b->place, stays = !mentions_axis(r, pair->b->place, a);
    bool both = pair->a->place->write && pair->b->place->write;
    Diag *diag = open_diag(r, pair, both ? P0229 : P0235, "tiles of the grid");
    if (same) {
        diag_primary(r->diags, diag,
                     stays ? "the same elements for every value of `%s`"
                           : "overlaps another tile along `%s`",
                     axis);
    } else {
        diag_primary(r->diags, diag, "%s by the tile at %s", verb_of(pair->b),
                     tile_text(r, pair->other, pair->block));
        diag_label(r->diags, diag, pair->a->place->access->span, "%s by the tile at %s",
                   verb_of(pair->a), tile_text(r, pair->block, pair->other));
    }
    diag_label(r->diags, diag, r->prog->axes.items[a].span,
               "tiles along `%s` run concurrently, in any order", axis);
    diag_note(r->diags, diag, "%s%s and %s both %s `%s`", sizes_text(r),
              tile_text(r, pair->block, pair->other), tile_text(r, pair->other, pair->block),
              both ? "write" : "touch", element_text(r, pair));
    if (!both)
        diag_help(r->diags, diag,
                  "read only elements that this tile writes, or read from another tensor");
    else if (!same)
        diag_help(r->diags, diag,
                  "let each tile write its own elements, or put the write under a condition that "
                  "holds for one tile only");
    else if (stays)
        diag_help(r->diags, diag, "use `%s` in the subscripts, or remove the axis from the grid",
                  axis);
    else
        diag_help(r->diags, diag, "write as many elements along `%s` as the base advances per tile",
                  axis);
}

/* The reason why the two are unordered although one is issued first; NULL: none */
static const char *reason_of(const Touch *a, const Touch *b) {
    if (a->place->transfer == TRANSFER_STORED)
        return "nothing waits until the copy engine has written";
    if (!a->place->write || b->place->transfer == TRANSFER_PLAIN ||
        b->place->transfer == TRANSFER_LANES)
        return NULL;
    return "writes of threads are not yet visible to the copy engine";
}

static void report_roles(Races *r, const Pair *pair) {
    const Role *one = pair->a->place->role, *two = pair->b->place->role;
    bool both = pair->a->place->write && pair->b->place->write, instances = one == two;
    Diag *diag =
        open_diag(r, pair,
                  instances && both ? P0215
                  : both            ? P0229
                                    : P0235,
                  instances ? arena_printf(r->arena, "instances of `%s`", one->name)
                            : arena_printf(r->arena, "roles `%s` and `%s`", one->name, two->name));
    if (instances) {
        diag_primary(r->diags, diag, "%s by the instance of rank %d", verb_of(pair->b),
                     pair->b->instance);
        diag_label(r->diags, diag, pair->a->place->access->span, "%s by the instance of rank %d",
                   verb_of(pair->a), pair->a->instance);
    } else {
        diag_primary(r->diags, diag, "%s by `%s`", verb_of(pair->b), two->name);
        diag_label(r->diags, diag, pair->a->place->access->span, "%s by `%s`", verb_of(pair->a),
                   one->name);
    }
    const char *reason = pair->a->process < pair->b->process ? reason_of(pair->a, pair->b)
                                                             : reason_of(pair->b, pair->a);
    if (!reason)
        reason =
            reason_of(pair->a, pair->b) ? reason_of(pair->a, pair->b) : reason_of(pair->b, pair->a);
    diag_note(r->diags, diag, "%sboth %s `%s`, and %s", sizes_text(r), both ? "write" : "touch",
              element_text(r, pair), reason ? reason : "neither waits for the other in between");
    diag_help(r->diags, diag,
              "let each %s %s, or pass a stage or a token from one to the other in between",
              instances ? "instance" : "role",
              both ? "write its own part of the tensor" : "access only its own part of the tensor");
}

static void report_alone(Races *r, const Pair *pair) {
    Diag *diag = diag_at(r->diags, P0235, pair->b->place->access->span,
                         "elements of `%s` are written while a copy may still be reading them",
                         name_of(r, pair));
    diag_label(r->diags, diag, pair->a->place->access->span,
               "read by this copy, which completes only when the stage is full");
    diag_note(r->diags, diag, "%sfor example `%s`", sizes_text(r), element_text(r, pair));
    diag_help(r->diags, diag, "move the write to the block that consumes the stage");
}

/* ---- verdicts -------------------------------------------------------------------------------- */

/* True if the place is taken to write different values in the two tiles: they do, or each element
 * has its position in the tile, and they are not proved to be equal. */
static bool values_differ(Races *r, const Pair *pair) {
    const Place *place = pair->a->place;
    uint32_t axes = 0;
    bool placed = false;
    if (place->tile->op != ASSIGN_SET) return true;
    for (size_t a = 0; a < r->prog->axes.count; a++) {
        if (pair->block->axes[a] == pair->other->axes[a]) continue;
        int atom = algebra_atom_axis(r->algebra, (int)a);
        const Poly *factor, *rest;
        bool even = true, moves = false;
        for (int d = 0; d < place->access->rank && even; d++) {
            int64_t step;
            const Poly *base = algebra_poly(r->algebra, place->role, place->access->affine[d].base);
            if (!base) even = false;
            if (!base || !poly_mentions(r->algebra, base, atom)) continue;
            moves = true;
            even = poly_split(r->algebra, base, atom, &factor, &rest) &&
                   poly_is_constant(factor, &step);
        }
        placed |= even && moves;
        axes |= (uint32_t)1 << a;
    }
    int differs = race_value_differs(r->arena, r->prog, r->algebra, place, axes);
    return differs == 1 || (placed && differs != 0);
}

static bool races_across(Races *r, const Pair *pair) {
    const Place *a = pair->a->place, *b = pair->b->place;
    if (!a->write || !b->write || a->role != b->role) return true;
    if (a == b) return values_differ(r, pair);
    /* one of them may write the value that the other skips */
    return !a->conditional && !b->conditional;
}

/* Accesses of one instance are ordered; but a copy may still be reading. */
static bool races_within(const Pair *pair) {
    const Touch *a = pair->a, *b = pair->b;
    if (race_before(pair->block, a, b)) return false;
    if (a->process != b->process) return !race_before(pair->block, b, a);
    return a->place->transfer == TRANSFER_LANES || a->place->transfer == TRANSFER_LOADED;
}

static bool *order_of(const Races *r, const Place *a, const Place *b) {
    return &r->ordered[(size_t)(a - r->places.items) * r->places.count +
                       (size_t)(b - r->places.items)];
}

static void note_order(const Races *r, const Pair *pair) {
    if (pair->a->process == pair->b->process) return;
    *order_of(r, pair->a->place, pair->b->place) = *order_of(r, pair->b->place, pair->a->place) =
        true;
}

static void compare(Races *r, const Block *block, const Block *other) {
    for (size_t i = 0; i < block->touches.count; i++)
        for (size_t k = block == other ? i + 1 : 0; k < other->touches.count; k++) {
            Pair pair = {.block = block,
                         .other = other,
                         .a = &block->touches.items[i],
                         .b = &other->touches.items[k]};
            arena_count(r->arena, 1);
            if (!pair.a->place->write && !pair.b->place->write) continue;
            if (pair.a->place->notes->reported || pair.b->place->notes->reported ||
                !race_meet(pair.a, pair.b, pair.at))
                continue;
            bool alone = block == other && pair.a->process == pair.b->process;
            /* reads, then writes */
            if (alone && pair.a->place->tile == pair.b->place->tile &&
                pair.a->place != pair.b->place)
                continue;
            if (block == other && !races_within(&pair)) note_order(r, &pair);
            if (block == other ? !races_within(&pair) : !races_across(r, &pair)) continue;
            /* the error is at the later one */
            if (!alone && pair.b->place->access->span.lo < pair.a->place->access->span.lo)
                pair = (Pair){.block = other, .other = block, .a = pair.b, .b = pair.a, .at = {0}},
                (void)race_meet(pair.a, pair.b, pair.at);
            if (block != other)
                report_tiles(r, &pair);
            else if (!alone)
                report_roles(r, &pair);
            else
                report_alone(r, &pair);
            pair.a->place->notes->reported = pair.b->place->notes->reported = true;
        }
}

/* ---- races that sizes do not show ------------------------------------------------------------ */

typedef struct Data { /* which variables of a role depend on contents of memory? */
    Races *races;
    const FlowCode *code;
    bool *locals;
    bool found, changed;
} Data;

static void find_data(Expr *expr, void *data) {
    Data *d = data;
    d->found |= expr->kind == X_READ;
    if (expr->kind == X_LOCAL && valid_index(expr->index, d->code->role->locals.count))
        d->found |= d->locals[expr->index];
}

static void find_in(Expr *expr, void *data) {
    expr_visit(((Data *)data)->races->arena, expr, find_data, data);
}

/* True if memory decides about the control around the row */
static bool control_by_data(Data *d, int at) {
    d->found = false;
    for (int region = d->code->rows.items[at].region; region >= 0;
         region = d->code->regions.items[region].parent)
        row_exprs(d->code, &d->code->rows.items[d->code->regions.items[region].begin], find_in, d);
    return d->found;
}

static void follow_data(Data *d) {
    d->changed = false;
    for (size_t at = 0; at < d->code->rows.count; at++) {
        const Row *row = &d->code->rows.items[at];
        if (!row_computes(row->kind)) continue;
        bool control = control_by_data(d, (int)at);
        row_exprs(d->code, row, find_in, d);
        if (!d->found && !control && row->kind != ROW_UNSAFE) continue;
        for (size_t i = 0; i < d->code->role->locals.count; i++) {
            if (d->locals[i] || !row_sets(d->code, row, (int)i)) continue;
            d->locals[i] = d->changed = true;
        }
    }
}

static bool subscripts_by_data(Data *d, const Place *place) {
    d->found = false;
    for (int i = 0; i < place->access->rank; i++) find_in(place->access->subs[i], d);
    return d->found;
}

/* The terms of a subscript: one is read from memory, one is a position */
typedef struct Terms {
    bool data, position;
} Terms;

static Terms terms_of(Data *d, Expr *expr) {
    const Role *role = d->code->role;
    const Local *local = expr->kind == X_LOCAL && valid_index(expr->index, role->locals.count)
                             ? &role->locals.items[expr->index]
                             : NULL;
    if (local && local->kind == LOCAL_LET && local->value) return terms_of(d, local->value);
    if (expr->kind == X_BINARY && (expr->binary.op == OP_ADD || expr->binary.op == OP_SUB)) {
        Terms a = terms_of(d, expr->binary.left), b = terms_of(d, expr->binary.right);
        return (Terms){a.data || b.data, a.position || b.position};
    }
    Terms terms = {expr->kind == X_READ, expr->kind != X_READ && expr->indexes != 0};
    if (expr->kind == X_BINARY) { /* a multiple of a position */
        terms.position |= terms_of(d, expr->binary.left).position;
        terms.position |= terms_of(d, expr->binary.right).position;
    }
    if (!local || local->kind != LOCAL_LOOP || !local->lo) return terms;
    d->found = false;
    find_in(local->lo, d);
    return (Terms){d->found, true};
}

/* Of `First[b] + i`, or the variable of a loop from First[b] on: 1 + the axis */
static int part_of(Data *d, const Place *place) {
    for (int i = 0; i < place->access->rank; i++) {
        Terms terms = terms_of(d, place->access->subs[i]);
        if (terms.data && terms.position) return 1 + i;
    }
    return 0;
}

static void find_unseen(Races *r) {
    Data data = {.races = r};
    for (size_t i = 0; i < r->places.count; i++) {
        Place *place = &r->places.items[i];
        if (data.code != place->role->code) {
            data.code = place->role->code;
            data.locals = NEW_ARRAY(r->arena, bool, place->role->locals.count + 1);
            do follow_data(&data);
            while (data.changed);
        }
        place->notes->data = subscripts_by_data(&data, place);
        place->notes->part = part_of(&data, place);
        place->notes->unseen = place->notes->data || control_by_data(&data, place->row) ||
                               place->guarded || !place_walks(place);
    }
}

/* True if tiles that access a common element are proved to have equal coordinates along the axis */
static bool is_determined(const Races *r, size_t axis, uint32_t determined) {
    int64_t extent;
    bool one = expr_constant(r->prog->axes.items[axis].padded, &extent) && extent <= 1;
    return one || determined >> axis & 1;
}

/* True if they have equal coordinates, or write equal values along the axes that differ */
static bool tiles_disjoint(Races *r, const Place *a, const Place *b, uint32_t determined) {
    uint32_t axes = 0;
    for (size_t x = 0; x < r->prog->axes.count; x++)
        if (!is_determined(r, x, determined)) axes |= (uint32_t)1 << x;
    if (axes == 0) return true;
    if (a != b || a->tile->op != ASSIGN_SET ||
        race_value_differs(r->arena, r->prog, r->algebra, a, axes) != 0)
        return false;
    a->tile->rewritten = true;
    return true;
}

/* The part that is not proved to be disjoint or ordered; NULL: all is */
static const char *not_disjoint(Races *r, const RaceProof *proof, const Place *a, const Place *b) {
    bool followed = r->ordered && !r->cut && !a->notes->unseen && !b->notes->unseen;
    bool seen = followed && *order_of(r, a, b), same = a == b;
    if (proof->never) return NULL;
    if (!tiles_disjoint(r, a, b, proof->axes)) return "tiles of the grid";
    if (proof->within) return NULL;
    if (a->role != b->role)
        return seen ? NULL
                    : arena_printf(r->arena, "roles `%s` and `%s`", a->role->name, b->role->name);
    if (!proof->instances && !seen)
        return arena_printf(r->arena, "instances of `%s`", a->role->name);
    if (same && !proof->threads && !place_walks(a) && a->tile->class == TILE_MAP)
        return arena_printf(r->arena, "threads of `%s`", a->role->name);
    return NULL;
}

static bool is_copied(const Place *place) {
    return place->transfer == TRANSFER_LANES || place->transfer == TRANSFER_LOADED;
}

/* True if no sizes can show a race of the two. Proofs do not cover an instance's own accesses
 * during its copies. */
static bool is_settled(Races *r, Place *a, Place *b) {
    if (a == b && is_safe_alone(r, a)) return true;
    RaceProof proof = race_proof(r->arena, r->prog, a, b);
    if (proof.never) return true;
    for (size_t x = 0; x < r->prog->axes.count; x++)
        if (!is_determined(r, x, proof.axes)) return false;
    if (proof.within) return true;
    return !not_disjoint(r, &proof, a, b) && !a->role->in_turn && !is_copied(a) && !is_copied(b);
}

#define ACCEPTED                                                                                   \
    "accept that: `--accept P0237` of `check`, `build`, `run`, `choose` and `tune`, "              \
    "`accept=[\"P0237\"]` of `pipec.load` and `pipec.compile`"

static void note_data(const Races *r, Diag *diag) {
    diag_note(r->diags, diag,
              "the subscript is read from memory; if it names no element twice, the kernel is "
              "right: `build` and `run` continue, and end with exit code 4");
}

static void help_scatter(const Races *r, Diag *diag, const char *tensor) {
    note_data(r, diag);
    diag_help(r->diags, diag, "if it names none twice, " ACCEPTED);
    diag_help(r->diags, diag,
              "or gather instead of scatter: `%s[r, d] = X[From[r], d]` with the inverse table; "
              "then each tile writes its own elements",
              tensor);
}

static void help_parts(const Races *r, Diag *diag, const Place *place) {
    const Param *tensor = &r->prog->params.items[place->access->object];
    Str extent = str_new(r->arena), subs = str_new(r->arena);
    expr_print(tensor->extents[place->notes->part - 1], r->prog, NULL, NULL, &extent);
    for (int d = 0; d < place->access->rank; d++)
        str_printf(&subs, "%s%s", d ? ", " : "", d == place->notes->part - 1 ? "t*R + r" : "..");
    note_data(r, diag);
    diag_help(r->diags, diag, "if each part ends before the next one begins, " ACCEPTED);
    diag_help(r->diags, diag,
              "or divide `%s` among the tiles, `grid (t: ceil(%s, R))` and `%s[%s]`, with a table "
              "that names the part of each row; then each tile writes its own elements",
              tensor->name, extent.text, tensor->name, subs.text);
}

static void help_formulas(const Races *r, Diag *diag, bool ordered) {
    if (ordered)
        diag_note(r->diags, diag,
                  "one waits for the other in the iterations that were followed, but not all were: "
                  "there are too many, or they depend on contents of memory or on large numbers");
    diag_help(r->diags, diag,
              "write each subscript as an index plus a multiple of a grid axis, or add an axis to "
              "the tensor that separates the parts");
    diag_help(r->diags, diag, "or, if you know that the elements are different, " ACCEPTED);
}

static void report_unknown(Races *r, const Place *a, const Place *b, const char *who) {
    const char *name = r->prog->params.items[a->access->object].name;
    bool both = a->write && b->write;
    Diag *diag = diag_at(r->diags, P0237, b->access->span,
                         "cannot show that %s %s different elements of `%s`", who,
                         both ? "write" : "write and read", name);
    diag_primary(r->diags, diag, b->write ? "written here" : "read here");
    if (a != b)
        diag_label(r->diags, diag, a->access->span,
                   a->write ? "also written here" : "also read here");
    if (a->notes->part || b->notes->part)
        help_parts(r, diag, b->notes->part ? b : a);
    else if (a->notes->data || b->notes->data)
        help_scatter(r, diag, name);
    else
        help_formulas(r, diag, r->cut && *order_of(r, a, b));
}

/* The first pair that is not settled; their count: none */
static size_t first_open(Races *r, const RacePairs *pairs) {
    for (size_t i = 0; i < pairs->count; i++) {
        const RacePair *pair = &pairs->items[i];
        if (!is_settled(r, &r->places.items[pair->first], &r->places.items[pair->second])) return i;
    }
    return pairs->count;
}

/* From pair number `first` on */
static void compare_proofs(Races *r, const RacePairs *pairs, size_t first) {
    bool *reported = NEW_ARRAY(r->arena, bool, r->prog->params.count + 1);
    for (size_t i = first; i < pairs->count; i++) {
        Place *a = &r->places.items[pairs->items[i].first];
        Place *b = &r->places.items[pairs->items[i].second];
        if (a->notes->reported || b->notes->reported || reported[a->access->object]) continue;
        if (a == b && is_safe_alone(r, a)) continue;
        RaceProof proof = race_proof(r->arena, r->prog, a, b);
        const char *who = not_disjoint(r, &proof, a, b);
        if (who) report_unknown(r, a, b, who), reported[a->access->object] = true;
    }
}

/* The first tile, and its neighbours along each axis */
static int neighbours(const Races *r, const int64_t *extents, int64_t *tiles) {
    int64_t stride = 1;
    int count = 1;
    tiles[0] = 0;
    for (size_t a = r->prog->axes.count; a-- > 0; stride *= extents[a])
        for (int64_t n = 1; n < extents[a] && n <= NEXT_MOST; n++) tiles[count++] = n * stride;
    return count;
}

static void try_sizes(Races *r, const Sizes *sizes) {
    int64_t extents[PROG_MAX_RANK], total, tiles[TILES_MOST];
    Block *blocks[TILES_MOST];
    if (!sizes_tiles(sizes, extents, &total) || total < 1) return;
    int count = neighbours(r, extents, tiles);
    Arena *scratch = arena_scratch(r->arena);
    for (int i = 0; i < count; i++) {
        blocks[i] = race_block(scratch, r->traced, &r->places, sizes, extents, tiles[i]);
        r->cut |= blocks[i]->cut;
    }
    for (int i = 0; i < count; i++)
        for (int k = i; k < count; k++) {
            if (budget_is_used(r->work))
                r->cut = true;
            else
                compare(r, blocks[i], blocks[k]);
        }
    arena_free(scratch);
}

/* Sizes for which the formulas that decide about the places have different values */
static Sizes *sizes_of(const Races *r) {
    const Prog *prog = r->prog;
    Sizes *sizes = sizes_new(r->arena, prog, false);
    for (size_t i = 0; i < prog->axes.count; i++) sizes_formula(sizes, prog->axes.items[i].extent);
    for (size_t i = 0; i < r->places.count; i++) {
        const Access *access = r->places.items[i].access;
        for (int d = 0; d < access->rank; d++)
            sizes_formula(sizes, prog->params.items[access->object].extents[d]);
    }
    for (size_t i = 0; i < prog->roles.count; i++) sizes_code(sizes, prog->roles.items[i].code);
    return sizes;
}

static void follow_sizes(Races *r) {
    Sizes *sizes = sizes_of(r);
    r->sizes = sizes;
    r->ordered = NEW_ARRAY(r->arena, bool, r->places.count * r->places.count + 1);
    r->traced = race_traced(r->arena, r->prog, &r->places);
    r->work = arena_budget(r->arena, RACES_STEPS);
    for (int tried = 0; tried < SIZES_MOST && !budget_is_used(r->work) && sizes_next(sizes);
         tried++)
        try_sizes(r, sizes);
    r->cut |= budget_is_used(r->work) || race_needs_larger(r->arena, r->traced, &r->places);
}

static int by_statement(const void *a, const void *b) {
    const Place *one = a, *two = b;
    if (one->role != two->role) return one->role < two->role ? -1 : 1;
    return (one->row > two->row) - (one->row < two->row);
}

/* The order given by explicitly signalled stages is unknown. */
static bool signalled_explicitly(const Prog *prog) {
    for (size_t p = 0; p < prog->pipes.count; p++)
        if (prog->pipes.items[p].unproved) return true;
    return false;
}

void races_check(Arena *arena, Prog *prog, Diags *diags) {
    if (signalled_explicitly(prog)) return;
    Races r = {
        .arena = arena, .prog = prog, .diags = diags, .algebra = algebra_new(arena, prog, NULL)};
    places_find(arena, prog, &r.places);
    sift(&r);
    if (!r.places.count) return;
    RaceNotes *notes = NEW_ARRAY(arena, RaceNotes, r.places.count);
    for (size_t i = 0; i < r.places.count; i++) r.places.items[i].notes = &notes[i];
    qsort(r.places.items, r.places.count, sizeof *r.places.items, by_statement);
    find_unseen(&r);
    const RacePairs pairs = race_pairs(arena, prog, &r.places);
    size_t open = first_open(&r, &pairs);
    if (open == pairs.count) return;
    follow_sizes(&r);
    compare_proofs(&r, &pairs, open);
}
