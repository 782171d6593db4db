/* The iteration of a producer that filled the stage of a consumer; see match.h. */
#include "flow/match.h"

#include "flow/values.h"

typedef VEC(int) Ints;

/* The rows that acquire an end of a pipe */
static Ints acquires(Arena *arena, const FlowCode *code, int pipe, End end) {
    Ints rows = {0};
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_STEP && row->unsafe->pipe == pipe && row->unsafe->end == end)
            vec_push(arena, &rows, -1);
        if (row->kind != ROW_ACQUIRE || !valid_index(row->handle, code->role->handles.count))
            continue;
        const Handle *handle = &code->role->handles.items[row->handle];
        if (handle->pipe == pipe && handle->end == end) vec_push(arena, &rows, (int)at);
    }
    return rows;
}

/* True if some LEAVE goes to the region's END or next iteration, except one after row `at` that
 * goes to the next iteration */
static bool is_left(const FlowCode *code, int region, int at) {
    for (size_t i = 0; i < code->rows.count; i++) {
        const Row *row = &code->rows.items[i];
        if (row->kind == ROW_LEAVE && row->target == region && !(row->again && (int)i > at))
            return true;
    }
    return false;
}

/* The loops around an acquire, outermost first; false if it may not be executed exactly once per
 * iteration. */
static bool loops_around(Arena *arena, const FlowCode *code, int at, Ints *out) {
    Ints inner = {0};
    for (int r = code->rows.items[at].region; r >= 0; r = code->regions.items[r].parent) {
        const Region *region = &code->regions.items[r];
        if (region->kind == REGION_IF || is_left(code, r, at)) return false;
        if (region_loops(region)) vec_push(arena, &inner, r);
    }
    for (size_t i = inner.count; i-- > 0;) vec_push(arena, out, inner.items[i]);
    return true;
}

static bool same_poly(FlowCode *consumer, const Poly *a, const Poly *b) {
    Algebra *algebra = consumer->algebra;
    if (!a || !b || poly_changes(algebra, a) || poly_changes(algebra, b)) return false;
    if (poly_equal(a, b)) return true;
    return algebra_proves(algebra, CLAIM_ZERO, poly_sum(algebra, a, b, -1));
}

typedef struct Matching {
    Arena *arena;
    FlowCode *producer, *consumer;
    Ints from; /* the producer's loops, outermost first */
    /* the consumer's acquires, in the order of the text, and the loops around each */
    Ints rows, *loops;
    int own; /* the acquire of the query */
    Matches now, *out;
    bool found;
} Matching;

static bool match(Matching *m, size_t level, size_t own_level, size_t lo, size_t hi);

/* A formula of the producer, converted to the consumer's algebra and variables */
static const Poly *translated(const Matching *m, Expr *expr) {
    Algebra *algebra = m->consumer->algebra;
    const Poly *poly = algebra_poly(algebra, m->producer->role, expr);
    for (size_t i = 0; i < m->now.count && poly; i++)
        poly = poly_replace(algebra, poly,
                            algebra_atom_local(algebra, m->producer->role, m->now.items[i].from),
                            m->now.items[i].to);
    return poly;
}

static bool match_with(Matching *m, size_t level, size_t own_level, size_t lo, size_t hi,
                       const Poly *value) {
    vec_push(m->arena, &m->now,
             (Matched){m->producer->regions.items[m->from.items[level]].var, value});
    bool same = value && match(m, level + 1, own_level, lo, hi);
    m->now.count--;
    return same;
}

static int loop_at(const Matching *m, size_t row, size_t own_level) {
    return own_level < m->loops[row].count ? m->loops[row].items[own_level] : -1;
}

/* True if the acquires are loops over pieces of the producer's range, or single ones, that
 * follow each other from its lower to its upper bound. */
static bool match_pieces(Matching *m, size_t level, size_t own_level, size_t lo, size_t hi) {
    const Region *range = &m->producer->regions.items[m->from.items[level]];
    Algebra *algebra = m->consumer->algebra;
    const Poly *reached = translated(m, range->lo);
    for (size_t i = lo, end; i < hi; i = end) {
        int loop = loop_at(m, i, own_level);
        const Region *piece = loop < 0 ? NULL : &m->consumer->regions.items[loop];
        for (end = i + 1; piece && end < hi && loop_at(m, end, own_level) == loop;) end++;
        if (!piece) {
            if (range->where || !match_with(m, level, own_level, i, end, reached)) return false;
            reached = poly_offset(algebra, reached, 1);
            continue;
        }
        if (piece->kind != REGION_FOR || piece->var < 0 ||
            (piece->where != NULL) != (range->where != NULL))
            return false;
        if (range->where && (piece->domain != range->domain || range->domain < 0)) return false;
        if (!same_poly(m->consumer, reached,
                       values_poly(m->arena, m->consumer, piece->begin, piece->lo)))
            return false;
        const Poly *value =
            poly_atom(algebra, algebra_atom_local(algebra, m->consumer->role, piece->var));
        if (!match_with(m, level, own_level + 1, i, end, value)) return false;
        reached = values_poly(m->arena, m->consumer, piece->begin, piece->hi);
    }
    return same_poly(m->consumer, reached, translated(m, range->hi));
}

#define TRIPS_MOST 8

/* True if the consumer has unrolled a constant loop of the producer in its text. */
static bool match_trips(Matching *m, size_t level, size_t own_level, size_t lo, size_t hi) {
    const Region *range = &m->producer->regions.items[m->from.items[level]];
    int64_t first, past;
    if (range->where || !poly_is_constant(translated(m, range->lo), &first) ||
        !poly_is_constant(translated(m, range->hi), &past))
        return false;
    if (past <= first || past - first > TRIPS_MOST || (hi - lo) % (size_t)(past - first) != 0)
        return false;
    size_t each = (hi - lo) / (size_t)(past - first);
    for (int64_t v = first; v < past; v++, lo += each)
        if (!match_with(m, level, own_level, lo, lo + each, poly_constant(m->consumer->algebra, v)))
            return false;
    return true;
}

static bool match_grid(Matching *m, size_t level, size_t own_level, size_t lo, size_t hi) {
    int loop = loop_at(m, lo, own_level);
    for (size_t i = lo; i < hi; i++)
        if (loop < 0 || loop_at(m, i, own_level) != loop) return false;
    return m->consumer->regions.items[loop].kind == REGION_GRID &&
           match(m, level + 1, own_level + 1, lo, hi);
}

/* Matches acquires lo .. hi of the consumer with one iteration of the producer's loops before
 * number `level` */
static bool match(Matching *m, size_t level, size_t own_level, size_t lo, size_t hi) {
    if (level == m->from.count) {
        if (hi - lo != 1 || m->loops[lo].count != own_level) return false;
        if (m->rows.items[lo] != m->own) return true;
        m->found = true;
        *m->out = (Matches){0};
        for (size_t i = 0; i < m->now.count; i++) vec_push(m->arena, m->out, m->now.items[i]);
        return true;
    }
    const Region *range = &m->producer->regions.items[m->from.items[level]];
    if (range->kind == REGION_GRID) return match_grid(m, level, own_level, lo, hi);
    return range->var >= 0 &&
           (match_pieces(m, level, own_level, lo, hi) || match_trips(m, level, own_level, lo, hi));
}

static int acquire_of(const FlowCode *code, int handle) {
    int found = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_MOVE && (row->handle == handle || row->other == handle)) return -1;
        if (row->kind != ROW_ACQUIRE || row->handle != handle) continue;
        if (found >= 0) return -1;
        found = (int)at;
    }
    return found;
}

bool match_loops(Arena *arena, FlowCode *producer, FlowCode *consumer, int handle, Matches *out) {
    int pipe = consumer->role->handles.items[handle].pipe;
    Ints from = acquires(arena, producer, pipe, END_PRODUCE);
    Matching m = {.arena = arena, .producer = producer, .consumer = consumer, .out = out};
    m.rows = acquires(arena, consumer, pipe, END_CONSUME);
    m.own = acquire_of(consumer, handle);
    m.loops = NEW_ARRAY(arena, Ints, m.rows.count + 1);
    *out = (Matches){0};
    if (from.count != 1 || from.items[0] < 0 || m.own < 0 ||
        !loops_around(arena, producer, from.items[0], &m.from))
        return false;
    for (size_t i = 0; i < m.rows.count; i++)
        if (m.rows.items[i] < 0 || !loops_around(arena, consumer, m.rows.items[i], &m.loops[i]))
            return false;
    return match(&m, 0, 0, 0, m.rows.count) && m.found;
}

/* The loop over the grid around all acquires of this end; -1: none, or it is executed again */
static int tile_loop(Arena *arena, const FlowCode *code, int pipe, End end) {
    Ints rows = acquires(arena, code, pipe, end);
    int grid = -1;
    for (size_t i = 0; i < rows.count; i++) {
        int outer = -1;
        for (int r = rows.items[i] < 0 ? -1 : code->rows.items[rows.items[i]].region; r >= 0;
             r = code->regions.items[r].parent)
            if (region_loops(&code->regions.items[r])) outer = r;
        if (outer < 0 || code->regions.items[outer].kind != REGION_GRID) return -1;
        if (i > 0 && outer != grid) return -1;
        grid = outer;
    }
    return grid;
}

bool match_tile(Arena *arena, const FlowCode *producer, const FlowCode *consumer, int handle) {
    int pipe = consumer->role->handles.items[handle].pipe;
    return acquire_of(consumer, handle) >= 0 &&
           tile_loop(arena, producer, pipe, END_PRODUCE) >= 0 &&
           tile_loop(arena, consumer, pipe, END_CONSUME) >= 0;
}
