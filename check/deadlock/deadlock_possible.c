/* Excludes impossible decisions. Takes a state that needs a decision; numbers are formulas, and
 * the earlier decisions, the conditions around the process and the counters of its loops are
 * facts about one iteration. An outcome that the prover finds to contradict these facts is not
 * searched. */
#include "check/deadlock/deadlock_search.h"

#include <string.h>

#define LIMITS_MOST 128

typedef struct Limit { /* for a number, or for the counter of a track */
    int32_t what;      /* a number; or -1 - track */
    int32_t low, high; /* low < value <= high */
} Limit;

typedef struct Asking { /* the process that needs the decision */
    const Search *search;
    const State *state;
    Position place;
    const Side *side;
    bool in_grid;
    int count;
    Limit limits[LIMITS_MOST]; /* those for the decision itself are last */
} Asking;

typedef struct Possible { /* cached answers */
    const Limit *limits;
    int count;
    bool possible;
    struct Possible *next;
} Possible;

#define BUCKETS 256

struct PossibleTable {
    Possible *buckets[BUCKETS];
};

/* ---- facts ----------------------------------------------------------------------------------- */

static bool is_formula(const Asking *a, int what) {
    if (what >= (int)a->search->part->numbers.count) return false;
    const Number *number = &a->search->part->numbers.items[what];
    return !number->changes && !number->grid && number->in_grid == a->in_grid;
}

static void add(Asking *a, int32_t what, int32_t low, int32_t high) {
    if (a->count < LIMITS_MOST && (low != ALWAYS || high != NEVER))
        a->limits[a->count++] = (Limit){what, low, high};
}

/* True if the process is in an iteration of the loop, not at its end or start */
static bool is_within(const Asking *a, const Loop *loop) {
    return *a->place.step > 2 * loop->region->begin + 1;
}

/* True if the process is in an iteration of the track with these counters of enclosing loops */
static bool is_around(const Asking *a, int track, const int32_t *path) {
    int depth = search_depth(a->search, track);
    if (track < 0) return true;
    if (memcmp(a->place.trips, path, (size_t)depth * sizeof *path) != 0) return false;
    for (int r = position_loop(&a->place); r >= 0; r = a->side->loops[r].outer)
        if (a->side->loops[r].track == track) return is_within(a, &a->side->loops[r]);
    return false;
}

static void add_decisions(Asking *a) {
    const Decided *decided = decided_of(a->state);
    for (int i = 0; i < decided->count; i++) {
        const Decision *decision = &decided->items[i];
        if (!is_formula(a, decision->what)) continue;
        if (is_around(a, search_track(a->search, decision->what), decision->path))
            add(a, decision->what, decision->low, decision->high);
    }
}

static void add_question(Asking *a, const Position *place, const Question *tested, bool greater) {
    if (tested->counted || tested->above <= ALWAYS || tested->above >= NEVER) return;
    if (!is_formula(a, tested->number)) return;
    if (!is_around(a, a->search->part->numbers.items[tested->number].track, place->trips)) return;
    int32_t above = (int32_t)tested->above;
    add(a, tested->number, greater ? above : ALWAYS, greater ? NEVER : above);
}

/* Adds the answers that the truth of a condition around the process implies for its questions */
static void add_condition(Asking *a, const Position *place, const Side *side, int question,
                          bool holds) {
    int wrong = holds ? QUESTION_NO : QUESTION_YES;
    while (question >= 0) {
        const Question *tested = &side->questions.items[question];
        bool greater = tested->no == wrong;
        if (!greater && tested->yes != wrong) return;
        add_question(a, place, tested, greater);
        question = greater ? tested->yes : tested->no;
    }
}

static void add_conditions(Asking *a, int process) {
    const Machine *m = a->search->machine;
    Position place = machine_position(m, a->state, process);
    const Side *side = &a->search->part->sides.items[m->processes.items[process].member];
    const FlowCode *slice = side->slice;
    int at = *place.step / 2;
    if (position_ended(&place)) return;
    for (int r = position_row(&place)->region; r >= 0; r = slice->regions.items[r].parent) {
        const Region *region = &slice->regions.items[r];
        if (region->kind == REGION_IF && at > region->begin)
            add_condition(a, &place, side, side->conditions[r], at <= region->otherwise);
    }
}

static void add_counters(Asking *a) {
    for (int r = position_loop(&a->place); r >= 0; r = a->side->loops[r].outer) {
        const Loop *loop = &a->side->loops[r];
        int32_t counter = a->place.trips[loop->depth - 1];
        int32_t exact_iterations =
            loop->group < 0 ? NEVER : a->search->part->groups.items[loop->group].exact;
        bool exact = counter < exact_iterations;
        if (is_within(a, loop))
            add(a, -1 - loop->track, (exact ? counter : exact_iterations) - 1,
                exact ? counter : NEVER);
    }
}

/* ---- the proof ------------------------------------------------------------------------------- */

static void assume_above(Algebra *algebra, const Poly *poly, int64_t low) {
    algebra_assume_poly(algebra, poly_offset(algebra, poly, -low - 1));
}

static void assume_between(Algebra *algebra, const Poly *poly, const Limit *limit) {
    if (limit->low != ALWAYS) assume_above(algebra, poly, limit->low);
    if (limit->high != NEVER)
        algebra_assume_poly(algebra, poly_offset(algebra, poly_minus(algebra, poly), limit->high));
}

/* The live iterations of a range with a `where` are at most its iterations. */
static void assume_number(Algebra *algebra, const Number *number, const Limit *limit) {
    if (number->where < 0)
        assume_between(algebra, number->poly, limit);
    else if (limit->low >= 0)
        assume_above(algebra, number->poly, limit->low);
}

/* The value of a loop variable, from its counter and the ends of the loop */
static void assume_track(Algebra *algebra, const Track *track, const Limit *limit) {
    const Region *region = track->region;
    if (region->kind != REGION_FOR || region->var < 0 || region->where || track->changes) return;
    const Poly *value = poly_atom(algebra, algebra_atom_local(algebra, track->role, region->var));
    algebra_assume_range(algebra, value, track->lo, track->hi);
    assume_between(algebra, poly_sum(algebra, value, track->base, -1), limit);
}

static bool proves_impossible(const Asking *a) {
    const Part *part = a->search->part;
    Algebra *algebra = part->algebra[a->in_grid];
    PathMark mark = algebra_mark(algebra);
    for (int i = 0; i < a->count; i++) {
        const Limit *limit = &a->limits[i];
        if (limit->what < 0)
            assume_track(algebra, &part->tracks.items[-1 - limit->what], limit);
        else
            assume_number(algebra, &part->numbers.items[limit->what], limit);
    }
    bool impossible = algebra_impossible(algebra);
    algebra_undo(algebra, mark);
    return impossible;
}

static Possible *find(Search *s, const Asking *a) {
    uint64_t hash = UINT64_C(0xCBF29CE484222325);
    size_t bytes = (size_t)a->count * sizeof *a->limits;
    for (int i = 0; i < a->count; i++) {
        const Limit *limit = &a->limits[i];
        uint64_t word = (uint64_t)(uint32_t)limit->low << 32 | (uint32_t)limit->high;
        hash = (hash ^ word ^ (uint64_t)limit->what << 16) * UINT64_C(0x9E3779B97F4A7C15);
        hash ^= hash >> 29;
    }
    if (!s->possible) s->possible = NEW(s->arena, struct PossibleTable);
    Possible **slot = &s->possible->buckets[hash % BUCKETS];
    for (; *slot; slot = &(*slot)->next)
        if ((*slot)->count == a->count && memcmp((*slot)->limits, a->limits, bytes) == 0)
            return *slot;
    *slot = NEW(s->arena, Possible);
    Limit *limits = NEW_ARRAY(s->arena, Limit, a->count);
    memcpy(limits, a->limits, bytes);
    **slot = (Possible){.limits = limits, .count = a->count, .possible = !proves_impossible(a)};
    return *slot;
}

bool search_possible(Search *s, const State *state, int process, const Decision *open,
                     bool greater) {
    Asking a = {.search = s, .state = state, .place = machine_position(s->machine, state, process)};
    a.side = &s->part->sides.items[s->machine->processes.items[process].member];
    if (!s->part->proves || open->what >= (int)s->part->numbers.count) return true;
    a.in_grid = s->part->numbers.items[open->what].in_grid;
    if (!is_formula(&a, open->what)) return true;
    add_decisions(&a);
    for (int p = 0; p < (int)s->machine->processes.count; p++) add_conditions(&a, p);
    add_counters(&a);
    if (a.count >= LIMITS_MOST - 1) return true;
    add(&a, open->what, greater ? open->low : ALWAYS, greater ? NEVER : open->low);
    return find(s, &a)->possible;
}
