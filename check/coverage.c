/* Is the whole payload written on every path before a produced stage is released, and do the copies of all paths bring the
 * same number of bytes?
 *
 * Each role is walked once per instance, with its rank and the variables of constant loops known, so that `rank*BM/2 + i` is
 * a place. A stage that is held carries one bit an element: written on every path (`must`), by this instance's threads (`own`), on some
 * path (`may`), by a copy that may still be under way (`flying`); and, since the threads have waited for one another, written or read
 * by them. Joins of paths intersect and unite them. At a release the bits of all instances that take the stage must be full together, and
 * disjoint. What an instance has written itself it may read, and write again: then its threads wait for one another before (Tile.order). */
#include "check/coverage.h"

#include <string.h>

#define CONDITIONS_MOST 4    /* that are looked at with either truth */
#define STATEMENTS_MOST 64   /* behind the first, that one is looked for in */

/* ---- bits ----------------------------------------------------------------------------------------------------------- */

static Bits new_bits(Coverage *c, size_t words) { return NEW_ARRAY(c->tiles->arena, uint64_t, words + 1); }

static Bits copy_bits(Coverage *c, Bits from, size_t words) {
    Bits bits = new_bits(c, words);
    memcpy(bits, from, words * sizeof *bits);
    return bits;
}

int64_t coverage_first_common(Bits a, Bits b, size_t words) {
    for (size_t w = 0; w < words; w++)
        if (a[w] & b[w]) return (int64_t)w * 64 + __builtin_ctzll(a[w] & b[w]);
    return -1;
}

/* ---- holds and states ------------------------------------------------------------------------------------------------- */

int64_t coverage_field_bits(const Field *field) { return field->elements * (field->count > 0 ? field->count : 1); }

int64_t coverage_field_start(const Pipe *pipe, int field) {
    int64_t start = 0;
    for (int f = 0; f < field; f++) start += coverage_field_bits(&pipe->fields.items[f]);
    return start;
}

static Hold *new_hold(Coverage *c, int pipe, Stmt *acquire) {
    const Pipe *row = &c->tiles->prog->pipes.items[pipe];
    int64_t total = 0;
    for (size_t f = 0; f < row->fields.count; f++) {
        int64_t bits = coverage_field_bits(&row->fields.items[f]);
        if (bits <= 0 || bits > MAX_ELEMENTS || row->fields.items[f].elements > MAX_ELEMENTS) return NULL;
        total += bits;
    }
    if (total == 0 || total > MAX_ELEMENTS) return NULL; /* a token, or too large to exist */
    Hold *hold = NEW(c->tiles->arena, Hold);
    *hold = (Hold){.pipe = pipe, .acquire = acquire, .words = (size_t)(total + 63) / 64};
    hold->must = new_bits(c, hold->words), hold->own = new_bits(c, hold->words), hold->may = new_bits(c, hold->words);
    hold->flying = new_bits(c, hold->words), hold->fresh = new_bits(c, hold->words), hold->seen = new_bits(c, hold->words);
    for (size_t f = 0; f < row->fields.count; f++) /* a field whose address is taken is written by hand */
        if (row->fields.items[f].by_hand[END_PRODUCE]) {
            bits_set(hold->must, coverage_field_start(row, (int)f), coverage_field_bits(&row->fields.items[f]));
            bits_set(hold->own, coverage_field_start(row, (int)f), coverage_field_bits(&row->fields.items[f]));
        }
    return hold;
}

static Hold *copy_hold(Coverage *c, const Hold *from) {
    Hold *hold = NEW(c->tiles->arena, Hold);
    *hold = *from;
    hold->must = copy_bits(c, from->must, from->words), hold->own = copy_bits(c, from->own, from->words);
    hold->may = copy_bits(c, from->may, from->words), hold->flying = copy_bits(c, from->flying, from->words);
    hold->fresh = copy_bits(c, from->fresh, from->words), hold->seen = copy_bits(c, from->seen, from->words);
    hold->marks.items = NULL, hold->marks.count = hold->marks.capacity = 0;
    for (size_t i = 0; i < from->marks.count; i++) vec_push(c->tiles->arena, &hold->marks, from->marks.items[i]);
    return hold;
}

static State copy_state(Coverage *c, const State *from) {
    State state = {from->live, NEW_ARRAY(c->tiles->arena, Hold *, c->role->handles.count + 1)};
    for (size_t h = 0; h < c->role->handles.count && from->holds; h++)
        if (from->holds[h]) state.holds[h] = copy_hold(c, from->holds[h]);
    return state;
}

static void join_hold(Coverage *c, Hold *to, const Hold *from, Span at) {
    if (to->acquire != from->acquire && !bits_hold(from->must, to->must, to->words))
        to->acquire = from->acquire; /* the one to name */
    for (size_t w = 0; w < to->words; w++) {
        to->must[w] &= from->must[w], to->own[w] &= from->own[w];
        to->may[w] |= from->may[w], to->flying[w] |= from->flying[w];
        to->fresh[w] |= from->fresh[w], to->seen[w] |= from->seen[w];
    }
    to->poisoned |= from->poisoned;
    if (from->open) to->open = true, to->open_at = from->open_at;
    if (to->bytes != from->bytes && !to->differs) to->differs = true, to->differs_at = at;
    if (from->differs && !to->differs) to->differs = true, to->differs_at = from->differs_at;
    if (from->bytes > to->bytes) to->bytes = from->bytes;
    for (size_t i = 0; i < from->marks.count; i++) {
        bool known = false;
        for (size_t k = 0; k < to->marks.count; k++)
            known |= to->marks.items[k].site == from->marks.items[i].site &&
                     to->marks.items[k].bits == from->marks.items[i].bits;
        if (!known) vec_push(c->tiles->arena, &to->marks, from->marks.items[i]);
    }
}

/* Two paths meet. A stage held on one of them only is the business of `stages`. */
static void join(Coverage *c, State *to, const State *from, Span at) {
    if (!from->live) return;
    if (!to->live) {
        *to = copy_state(c, from);
        return;
    }
    for (size_t h = 0; h < c->role->handles.count; h++) {
        Hold *a = to->holds[h], *b = from->holds[h];
        if (a && b && a->pipe == b->pipe)
            join_hold(c, a, b, at);
        else
            to->holds[h] = NULL;
    }
}

/* ---- writes ----------------------------------------------------------------------------------------------------------- */

/* The elements that an access touches. False: not known which of the field. */
static bool mark_bits(Coverage *c, const Site *site, const Access *access, const Pipe *pipe, Bits bits) {
    const Field *field = &pipe->fields.items[access->field];
    int64_t start = coverage_field_start(pipe, access->field), tile = 0;
    if ((!access->element || here_value(&c->here, access->element, &tile)) && tile >= 0 &&
        tile < field->count &&
        here_elements(&c->here, &site->tile->space, access, field->extents, start + tile * field->elements, bits))
        return true;
    bits_set(bits, start, coverage_field_bits(field));
    return false;
}

static bool is_asynchronous(const Tile *tile) {
    return tile->class == TILE_TENSOR_LOAD || tile->class == TILE_BULK_LOAD ||
           (tile->class == TILE_LANES && tile->piece.asynchronous);
}

/* How many neighbours a thread takes at once is the choice of code generation: 1 where a tensor is read along them; where nothing but the target
 * is in memory, the same always; else it is not known here. */
typedef enum Grain { GRAIN_ONE, GRAIN_TARGET, GRAIN_UNKNOWN } Grain;

static Grain grain_of(const Site *site) {
    const IndexSpace *space = &site->tile->space;
    Grain grain = GRAIN_TARGET;
    for (size_t i = 0; i < site->reads.count; i++) {
        const Access *read = site->reads.items[i];
        bool along = false;
        for (int d = 0; d < read->rank && space->bound > 0; d++) along |= read->subs[d]->indexes >> (space->bound - 1) & 1;
        if (read->space == SPACE_GLOBAL && along) return GRAIN_ONE;
        if (read->space != SPACE_GLOBAL) grain = GRAIN_UNKNOWN;
    }
    return grain;
}

/* Do two statements give each element to the same thread? Then they need no order between threads. */
static bool same_walk(const Site *a, const Site *b) {
    const Tile *one = a->tile, *two = b->tile;
    if (a == b) return true;
    bool same = one->space.bound == two->space.bound && one->target.rank == two->target.rank && one->class == TILE_MAP &&
                two->class == TILE_MAP && layout_same(one->spread, two->spread);
    if (same && !one->spread) same = grain_of(a) != GRAIN_UNKNOWN && grain_of(a) == grain_of(b);
    for (int i = 0; i < one->space.bound && same; i++) same = one->space.items[i].extent == two->space.items[i].extent;
    for (int d = 0; d < one->target.rank && same; d++) {
        same = poly_equal(algebra_poly(a->algebra, a->role, one->target.affine[d].base),
                          algebra_poly(b->algebra, b->role, two->target.affine[d].base));
        for (int i = 0; i < one->space.bound && same; i++)
            same = one->target.affine[d].coef[i] == two->target.affine[d].coef[i];
    }
    return same;
}

Span coverage_place_of(const Stmt *acquire) { return acquire->kind == S_STAGE ? acquire->head : acquire->span; }

/* A copy, and what else is written to the elements that it brings */
static void check_copies(Coverage *c, Hold *hold, Site *site, Bits bits, bool exact) {
    Tiles *tiles = c->tiles;
    bool copies = is_asynchronous(site->tile);
    if (c->again || coverage_first_common(copies ? hold->may : hold->flying, bits, hold->words) < 0) return;
    for (size_t i = 0; i < hold->marks.count; i++) {
        const Mark *before = &hold->marks.items[i];
        if ((!copies && !is_asynchronous(before->site->tile)) || coverage_first_common(before->bits, bits, hold->words) < 0) continue;
        Diag *diag = diag_at(tiles->diags, P0217, site->tile->target.span,
                             exact && !before->vague ? "elements of %s are written a second time, and nothing orders the two"
                                                     : "elements of %s may be written a second time, and nothing orders the two",
                             tiles_object(tiles, c->role, &site->tile->target));
        if (!exact) diag_primary(tiles->diags, diag, "which elements this writes is not known at compile time");
        diag_label(tiles->diags, diag, before->site->tile->target.span, "%s",
                   is_asynchronous(before->site->tile) ? "first by this copy, which may still be under way"
                                                       : "first written here by threads, which the copy does not wait for");
        diag_help(tiles->diags, diag,
                  "write every element once: choose the value with `?:` in one statement, or write disjoint parts");
        hold->poisoned = true;
        return;
    }
}

/* The statement touches what threads have written, or writes what they have read, since they waited for one another: they wait now. */
static void wait_for_threads(Coverage *c, State *state, Site *site) {
    site->tile->order |= ORDER_THREADS;
    for (size_t h = 0; h < c->role->handles.count; h++) {
        if (!state->holds[h]) continue;
        memset(state->holds[h]->fresh, 0, state->holds[h]->words * sizeof(uint64_t));
        memset(state->holds[h]->seen, 0, state->holds[h]->words * sizeof(uint64_t));
    }
}

/* Was what it writes last written by the very threads that write it now? */
static bool same_threads(const Hold *hold, const Site *site, Bits bits) {
    if (coverage_first_common(hold->seen, bits, hold->words) >= 0) return false;
    for (size_t i = 0; i < hold->marks.count; i++) {
        const Mark *before = &hold->marks.items[i];
        if (coverage_first_common(before->bits, bits, hold->words) < 0) continue;
        if (before->vague || !same_walk(before->site, site) || memcmp(before->bits, bits, hold->words * sizeof *bits) != 0) return false;
    }
    return true;
}

static void write_stage(Coverage *c, State *state, Site *site, Hold *hold) {
    Tile *tile = site->tile;
    Bits bits = new_bits(c, hold->words);
    c->written++;
    bool exact = mark_bits(c, site, &tile->target, &c->tiles->prog->pipes.items[hold->pipe], bits);
    check_copies(c, hold, site, bits, exact);
    if (tile->op != ASSIGN_SET && !hold->poisoned && !bits_hold(hold->must, bits, hold->words)) {
        Diag *diag = diag_at(c->tiles->diags, P0209, tile->target.span, "%s has no value yet to compute with",
                             tiles_object(c->tiles, c->role, &tile->target));
        diag_label(c->tiles->diags, diag, coverage_place_of(hold->acquire), "the stage is produced from here on");
        diag_help(c->tiles->diags, diag, "assign it with `=` first");
        hold->poisoned = true;
    }
    bool touched = coverage_first_common(hold->fresh, bits, hold->words) >= 0 || coverage_first_common(hold->seen, bits, hold->words) >= 0;
    if (!is_asynchronous(tile) && touched && !(exact && same_threads(hold, site, bits))) wait_for_threads(c, state, site);
    for (size_t w = 0; w < hold->words; w++) {
        if (exact) hold->must[w] |= bits[w];
        if (exact && !is_asynchronous(tile)) hold->own[w] |= bits[w];
        hold->may[w] |= bits[w];
        if (is_asynchronous(tile)) hold->flying[w] |= bits[w];
        else hold->fresh[w] |= bits[w];
    }
    hold->bytes += copy_lands(tile);
    vec_push(c->tiles->arena, &hold->marks, (Mark){site, bits, !exact});
}

/* Why an element is not there to be read; NULL: it is */
static const char *not_there(const Coverage *c, const Hold *hold, int64_t bit) {
    if (hold->own[bit / 64] >> (bit % 64) & 1) return NULL;
    if (hold->flying[bit / 64] >> (bit % 64) & 1) return "a copy brings it, and is done when the stage is full";
    if (hold->may[bit / 64] >> (bit % 64) & 1) return "not on every path";
    return c->role->instances > 1 ? "this instance has not written it" : "nothing has written it yet";
}

static void refuse_read(Coverage *c, const Access *read, Hold *hold, int64_t bit) {
    Tiles *tiles = c->tiles;
    Diag *diag = diag_at(tiles->diags, P0209, read->span, "%s is read where it has not certainly been written",
                         tiles_object(tiles, c->role, read));
    diag_primary(tiles->diags, diag, "%s", not_there(c, hold, bit));
    diag_label(tiles->diags, diag, coverage_place_of(hold->acquire), "the stage is produced from here on");
    for (size_t i = 0; i < hold->marks.count; i++)
        if (hold->marks.items[i].bits[bit / 64] >> (bit % 64) & 1) {
            diag_label(tiles->diags, diag, hold->marks.items[i].site->tile->target.span, "written here");
            break;
        }
    diag_note(tiles->diags, diag, "an instance reads of a stage that it produces what its own threads have written");
    diag_help(tiles->diags, diag, "compute the value once more, or keep it in a `var` or `shared` tile beside");
    hold->poisoned = true;
}

/* Reads what the instance produces: all of it is its own work. */
static void read_stages(Coverage *c, State *state, Site *site) {
    for (size_t i = 0; i < site->reads.count; i++) {
        const Access *read = site->reads.items[i];
        Hold *hold = read->space == SPACE_STAGE ? state->holds[read->object] : NULL;
        if (!hold || hold->poisoned) continue;
        Bits bits = new_bits(c, hold->words);
        (void)mark_bits(c, site, read, &c->tiles->prog->pipes.items[hold->pipe], bits);
        if (!bits_hold(hold->own, bits, hold->words)) {
            int64_t bit = 0;
            while (!(bits[bit / 64] >> (bit % 64) & 1) || (hold->own[bit / 64] >> (bit % 64) & 1)) bit++;
            refuse_read(c, read, hold, bit);
            continue;
        }
        if (coverage_first_common(hold->fresh, bits, hold->words) >= 0) wait_for_threads(c, state, site);
        for (size_t w = 0; w < hold->words; w++) hold->seen[w] |= bits[w];
    }
}

static void poison_all(Coverage *c, State *state) {
    for (size_t h = 0; h < c->role->handles.count; h++)
        if (state->holds[h]) state->holds[h]->poisoned = true;
}

/* An iteration of a role in turn is one instance's: no other writes what it does. */
static bool written_together(const Coverage *c) {
    for (const Frame *frame = c->frame; frame; frame = frame->outer)
        if (frame->stmt->kind == S_GRID && c->role->in_turn) return false;
    return c->role->instances > 1;
}

static void walk_tile(Coverage *c, Stmt *stmt, State *state) {
    Site *site = tiles_site(c->tiles, stmt);
    if (!site) return;
    const Access *target = &site->tile->target;
    if (!site->poisoned) read_stages(c, state, site);
    if (site->poisoned) {
        poison_all(c, state);
    } else if (target->space == SPACE_STAGE && state->holds[target->object]) {
        write_stage(c, state, site, state->holds[target->object]);
    } else if (target->space == SPACE_GLOBAL && written_together(c)) {
        bool known = false;
        for (size_t i = 0; i < c->writes.count; i++)
            known |= c->writes.items[i].site == site && c->writes.items[i].rank == c->rank;
        if (!known) vec_push(c->tiles->arena, &c->writes, (GlobalWrite){site, c->rank});
    }
}

/* ---- releases --------------------------------------------------------------------------------------------------------- */

static void release(Coverage *c, State *state, Stmt *stmt, int handle, Span span) {
    Hold *hold = handle >= 0 ? state->holds[handle] : NULL;
    Release *at = NULL;
    if (!hold) return;
    state->holds[handle] = NULL;
    if (c->again) return;
    for (size_t i = 0; i < c->releases.count; i++)
        if (c->releases.items[i].stmt == stmt && c->releases.items[i].handle == handle) at = &c->releases.items[i];
    if (!at) {
        vec_push(c->tiles->arena, &c->releases,
                 (Release){stmt, handle, span, NEW_ARRAY(c->tiles->arena, Hold *, c->role->instances + 1)});
        at = &c->releases.items[c->releases.count - 1];
    }
    if (at->holds[c->rank])
        join_hold(c, at->holds[c->rank], hold, span);
    else
        at->holds[c->rank] = copy_hold(c, hold);
}

static Span end_of(const Stmt *stmt) { return (Span){stmt->span.hi > 0 ? stmt->span.hi - 1 : 0, stmt->span.hi}; }

static void acquire(Coverage *c, State *state, Stmt *stmt, int handle) {
    if (handle < 0 || (size_t)handle >= c->role->handles.count) return;
    const Handle *row = &c->role->handles.items[handle];
    state->holds[handle] = row->pipe >= 0 && row->end == END_PRODUCE ? new_hold(c, row->pipe, stmt) : NULL;
    if (state->holds[handle] && c->apart) state->holds[handle]->poisoned = true;
}

/* ---- paths ------------------------------------------------------------------------------------------------------------ */

static void walk(Coverage *c, Stmt *stmt, State *state);

static void walk_leave(Coverage *c, Stmt *stmt, State *state) {
    for (Frame *frame = c->frame; frame; frame = frame->outer) {
        if (frame->stmt->kind == S_STAGE) {
            int handle = frame->stmt->stage.handle;
            if (handle >= 0 && c->role->handles.items[handle].end == END_PRODUCE)
                release(c, state, stmt, handle, stmt->span);
        }
        if (frame->stmt != stmt->leave.target) continue;
        join(c, stmt->leave.kind == LEAVE_CONTINUE ? &frame->continues : &frame->breaks, state, stmt->span);
        break;
    }
    state->live = false;
}

static bool writes_held(Stmt *stmt, const State *state) {
    if (!stmt) return false;
    switch (stmt->kind) {
    case S_BLOCK:
        for (size_t i = 0; i < stmt->block.body.count; i++)
            if (writes_held(stmt->block.body.items[i], state)) return true;
        return false;
    case S_TILE:
        return stmt->tile->target.space == SPACE_STAGE && stmt->tile->target.object >= 0 &&
               state->holds[stmt->tile->target.object];
    case S_GRID: return writes_held(stmt->grid.body, state);
    case S_FOR: return writes_held(stmt->loop.body, state);
    case S_IF: return writes_held(stmt->branch.then, state) || writes_held(stmt->branch.otherwise, state);
    case S_STAGE: return writes_held(stmt->stage.body, state);
    case S_SCALAR:
    case S_LEAVE:
    case S_TRY:
    case S_ACQUIRE:
    case S_RELEASE:
    case S_UNSAFE:
    case S_MOVE: break;
    }
    return false;
}

/* One turn of the loop's body from `state`, which becomes the state at its end */
static void turn(Coverage *c, Frame *frame, Stmt *body, State *state) {
    frame->continues = (State){0};
    walk(c, body, state);
    join(c, state, &frame->continues, frame->stmt->head);
}

static void leave_open(Coverage *c, State *state, Span at) {
    for (size_t h = 0; h < c->role->handles.count; h++)
        if (state->holds[h]) state->holds[h]->open = true, state->holds[h]->open_at = at;
}

static void walk_turns(Coverage *c, Stmt *stmt, State *state, int64_t lo, int64_t hi) {
    Frame frame = {.outer = c->frame, .stmt = stmt};
    int atom = algebra_atom_local(c->algebra, c->role, stmt->loop.var);
    c->frame = &frame;
    for (int64_t i = lo; i < hi && state->live; i++) {
        if (c->written >= MAX_WRITES) { /* not decided, so not accepted: the payload, or the bytes, stay open */
            leave_open(c, state, stmt->head);
            break;
        }
        here_bind(&c->here, atom, i);
        turn(c, &frame, stmt->loop.body, state);
        c->here.bound--;
    }
    c->frame = frame.outer;
    join(c, state, &frame.breaks, stmt->head);
}

static bool loses(Coverage *c, const State *before, const State *after) {
    for (size_t h = 0; h < c->role->handles.count && after->live; h++)
        if (before->holds[h] && after->holds[h] &&
            !bits_hold(after->holds[h]->must, before->holds[h]->must, before->holds[h]->words))
            return true;
    return false;
}

static void walk_loop(Coverage *c, Stmt *stmt, State *state) {
    Frame frame = {.outer = c->frame, .stmt = stmt};
    Stmt *body = stmt->kind == S_GRID ? stmt->grid.body : stmt->loop.body;
    bool runs = false;
    if (stmt->kind == S_FOR) {
        int64_t lo, hi;
        if (!stmt->loop.where && stmt->loop.var >= 0 && here_value(&c->here, stmt->loop.lo, &lo) &&
            here_value(&c->here, stmt->loop.hi, &hi)) {
            runs = lo < hi;
            if (runs && hi - lo <= MAX_TURNS && c->written < MAX_WRITES && writes_held(body, state)) {
                walk_turns(c, stmt, state, lo, hi);
                return;
            }
        }
    }
    State before = copy_state(c, state);
    c->frame = &frame;
    turn(c, &frame, body, state);
    if (loses(c, &before, state)) { /* a stage variable holds less at the next turn: look at that one too */
        join(c, state, &before, stmt->head);
        turn(c, &frame, body, state);
    }
    if (state->live && writes_held(body, state)) { /* what threads do in a later iteration comes behind what they did in this one */
        State later = copy_state(c, state);
        Frame beyond = {.outer = frame.outer, .stmt = stmt};
        bool again = c->again;
        c->again = true;
        c->frame = &beyond;
        turn(c, &beyond, body, &later);
        c->again = again;
    }
    c->frame = frame.outer;
    if (!runs) join(c, state, &before, stmt->head);
    join(c, state, &frame.breaks, stmt->head);
}

static void walk_if(Coverage *c, Stmt *stmt, State *state) {
    int truth = here_truth(&c->here, stmt->branch.condition);
    State other = truth < 0 ? copy_state(c, state) : (State){0};
    bool apart = stmt->branch.condition->uniformity != UNIFORM_ROLE;
    c->apart += apart;
    if (truth != 0) {
        walk(c, stmt->branch.then, state);
    } else {
        walk(c, stmt->branch.otherwise, state);
    }
    if (truth < 0) walk(c, stmt->branch.otherwise, &other);
    c->apart -= apart;
    if (truth >= 0) return;
    join(c, state, &other, stmt->head);
}

static void walk_stage(Coverage *c, Stmt *stmt, State *state) {
    Frame frame = {.outer = c->frame, .stmt = stmt};
    acquire(c, state, stmt, stmt->stage.handle);
    c->frame = &frame;
    walk(c, stmt->stage.body, state);
    c->frame = frame.outer;
    if (state->live) release(c, state, stmt, stmt->stage.handle, end_of(stmt));
}

static void find_stage_write(Stmt *stmt, void *data) { *(bool *)data |= stmt->kind == S_TILE && stmt->tile->target.space == SPACE_STAGE; }

typedef struct Conditions { /* of `if`s that write stages, and are not decided */
    Coverage *c;
    const Poly *wanted; /* NULL: the first one that there is */
    bool found;
} Conditions;

static void find_condition(Stmt *stmt, void *data) {
    Conditions *conditions = data;
    const Here *here = &conditions->c->here;
    bool truth, writes = false;
    if (stmt->kind != S_IF || conditions->found || !stmt->branch.condition) return;
    stmt_visit(stmt, find_stage_write, &writes);
    const Poly *poly = writes && here_truth(here, stmt->branch.condition) < 0 ? here_condition(here, stmt->branch.condition, &truth) : NULL;
    if (!poly || (conditions->wanted && !poly_equal(conditions->wanted, poly))) return;
    conditions->wanted = poly, conditions->found = true;
}

/* The last statement that asks for what this one asks for, while it stays as it is; this one where there is none */
static size_t last_of(Coverage *c, const Stmts *body, size_t first, const Poly **condition) {
    Conditions conditions = {.c = c};
    size_t last = first;
    stmt_visit(body->items[first], find_condition, &conditions);
    *condition = conditions.wanted;
    if (!conditions.found || !here_stays(&c->here, *condition, body->items[first])) return first;
    for (size_t i = first + 1; i < body->count && i < first + STATEMENTS_MOST; i++) {
        conditions.found = false;
        if (!here_stays(&c->here, *condition, body->items[i])) break;
        stmt_visit(body->items[i], find_condition, &conditions);
        if (conditions.found) last = i;
    }
    return last;
}

static void walk_list(Coverage *c, const Stmts *body, size_t from, size_t to, State *state);

/* What a condition decides more than once is looked at with either truth, each by itself. */
static void walk_both(Coverage *c, const Stmts *body, size_t from, size_t to, State *state, const Poly *condition) {
    State other = copy_state(c, state);
    vec_push(c->tiles->arena, &c->here.assumed, (Taken0){condition, true});
    walk_list(c, body, from, to, state);
    c->here.assumed.items[c->here.assumed.count - 1].truth = false;
    walk_list(c, body, from, to, &other);
    c->here.assumed.count--;
    join(c, state, &other, body->items[to - 1]->span);
}

static void walk_list(Coverage *c, const Stmts *body, size_t from, size_t to, State *state) {
    const Poly *condition;
    while (from < to && state->live) {
        const Poly *other;
        size_t last = c->here.assumed.count < CONDITIONS_MOST ? last_of(c, body, from, &condition) : from;
        for (size_t i = from + 1; i <= last; i++) { /* what is decided in between, too */
            size_t end = last_of(c, body, i, &other);
            if (end > last) last = end;
        }
        if (last > from && last < to)
            walk_both(c, body, from, last + 1, state, condition);
        else
            walk(c, body->items[from], state);
        from = last < to ? last + 1 : from + 1;
    }
}

static void walk_block(Coverage *c, Stmt *stmt, State *state) {
    Frame frame = {.outer = c->frame, .stmt = stmt};
    c->frame = &frame;
    walk_list(c, &stmt->block.body, 0, stmt->block.body.count, state);
    c->frame = frame.outer;
    join(c, state, &frame.breaks, stmt->span);
}

static void walk(Coverage *c, Stmt *stmt, State *state) {
    if (!stmt || !state->live) return;
    switch (stmt->kind) {
    case S_BLOCK: walk_block(c, stmt, state); break;
    case S_TILE: walk_tile(c, stmt, state); break;
    case S_GRID:
    case S_FOR: walk_loop(c, stmt, state); break;
    case S_IF: walk_if(c, stmt, state); break;
    case S_LEAVE: walk_leave(c, stmt, state); break;
    case S_ACQUIRE: acquire(c, state, stmt, stmt->acquire.handle); break;
    case S_RELEASE: release(c, state, stmt, stmt->release.handle, stmt->span); break;
    case S_MOVE:
        if (stmt->move.to >= 0 && stmt->move.from >= 0 && stmt->move.to != stmt->move.from) {
            state->holds[stmt->move.to] = state->holds[stmt->move.from];
            state->holds[stmt->move.from] = NULL;
        }
        break;
    case S_STAGE: walk_stage(c, stmt, state); break;
    case S_UNSAFE:
    case S_TRY:
    case S_SCALAR: break;
    }
}

/* ---- all ---------------------------------------------------------------------------------------------------------- */

void tiles_coverage(Tiles *tiles) {
    size_t before = tiles->diags->items.count;
    for (size_t r = 0; r < tiles->prog->roles.count; r++) {
        Role *role = &tiles->prog->roles.items[r];
        Coverage c = {.tiles = tiles, .role = role, .algebra = tiles->algebras[r]};
        if (!role->body || role->instances < 1) continue;
        for (c.rank = 0; c.rank < role->instances; c.rank++) {
            State state = {true, NEW_ARRAY(tiles->arena, Hold *, role->handles.count + 1)};
            c.here = (Here){.arena = tiles->arena, .algebra = c.algebra, .role = role};
            if (role->instances > 1) here_bind(&c.here, algebra_atom_rank(c.algebra, role), c.rank);
            walk(&c, role->body, &state);
        }
        coverage_judge(&c, before);
        tiles_disjoint(tiles, role, &c.writes);
    }
}
