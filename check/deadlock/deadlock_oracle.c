/* The oracle of the search: answers the machine from earlier decisions; a question without a
 * decision is open. The slowest process runs first. */
#include "check/deadlock/deadlock_search.h"

#include <string.h>

static Search *search_of(const Machine *m) { return m->oracle.data; }

static int side_of(const Machine *m, const Position *place) {
    return (int)(place->member - m->members.items);
}

static const Side *own_side(const Machine *m, const Position *place) {
    return &search_of(m)->part->sides.items[side_of(m, place)];
}

/* ---- decisions ------------------------------------------------------------------------------- */

int search_depth(const Search *s, int track) {
    return track < 0 ? 0 : s->part->tracks.items[track].depth;
}

static const Group *group_of_view(const Search *s, int view) {
    return &s->part->groups.items[s->part->views.items[view].group];
}

int search_track(const Search *s, int what) {
    int numbers = (int)s->part->numbers.count;
    return what < numbers ? s->part->numbers.items[what].track
                          : group_of_view(s, what - numbers)->outer;
}

static Decision *find(const State *state, int what, const int32_t *path, int depth) {
    Decided *decided = decided_of(state);
    for (int i = 0; i < decided->count; i++) {
        Decision *decision = &decided->items[i];
        if (decision->what == what &&
            memcmp(decision->path, path, (size_t)depth * sizeof *path) == 0)
            return decision;
    }
    return NULL;
}

Decision *search_find(const Search *s, const State *state, int what, const int32_t *path) {
    return find(state, what, path, search_depth(s, search_track(s, what)));
}

static Answer open_question(Search *s, int what, const int32_t *path, int depth, int64_t above) {
    s->open = (Decision){.what = what, .low = (int32_t)above};
    memcpy(s->open.path, path, (size_t)depth * sizeof *path);
    return ANSWER_OPEN;
}

static bool is_decided(int32_t low, int32_t high, int64_t above, Answer *answer) {
    if (above <= low) return *answer = ANSWER_YES, true;
    if (above >= high) return *answer = ANSWER_NO, true;
    return false;
}

/* True if the counter of an enclosing loop decides it */
static bool counter_decides(const Search *s, const Position *place, const Number *row, int depth,
                            int64_t above, Answer *answer) {
    if (row->counter < 0) return false;
    const Track *track = &s->part->tracks.items[row->counter];
    int64_t trips = place->trips[depth - 1], value = trips + row->from;
    if (row->modulo) return *answer = value % row->modulo > above ? ANSWER_YES : ANSWER_NO, true;
    int group = track->shape.group;
    int32_t exact = group < 0 ? NEVER : s->part->groups.items[group].exact;
    if (trips < exact) return *answer = value > above ? ANSWER_YES : ANSWER_NO, true;
    if ((int64_t)exact + row->from > above) return *answer = ANSWER_YES, true;
    return false;
}

/* Is the number greater than `above`? view: -1, or the group whose loop queries: then the counters,
 * and `above`, may be relative */
static Answer compare(Search *s, const State *state, const Position *place, int number, int view,
                      int64_t above) {
    const Number *row = &s->part->numbers.items[number];
    int depth = search_depth(s, row->track);
    const Decision *known = find(state, number, place->trips, depth);
    int32_t exact_iterations = view < 0 ? EXACT : group_of_view(s, view)->exact;
    bool exact = view < 0 || above < exact_iterations || group_of_view(s, view)->fixed;
    int32_t low = known ? known->low : row->low, high = known ? known->high : row->high;
    Answer answer;
    if (is_decided(exact ? low : ALWAYS, high, above, &answer)) return answer;
    if (counter_decides(s, place, row, depth, above, &answer)) return answer;
    if (exact) return open_question(s, number, place->trips, depth, above);
    depth = search_depth(s, group_of_view(s, view)->outer);
    int what = (int)s->part->numbers.count + view;
    known = find(state, what, place->trips, depth);
    low = known ? known->low : exact_iterations - 1, high = known ? known->high : NEVER;
    if (is_decided(low, high, above, &answer)) return answer;
    return open_question(s, what, place->trips, depth, above);
}

void search_decide(Search *s, State *state, const Decision *open, bool greater) {
    Decided *decided = decided_of(state);
    bool view = open->what >= (int)s->part->numbers.count;
    Decision *decision = search_find(s, state, open->what, open->path);
    if (!decision) {
        if (decided->count == DECISIONS_MOST) {
            s->machine->beyond = "too many conditions are undecided at the same time";
            return;
        }
        decision = &decided->items[decided->count++];
        *decision = *open;
        const Number *number = view ? NULL : &s->part->numbers.items[open->what];
        int index = open->what - (int)s->part->numbers.count;
        decision->low = view ? group_of_view(s, index)->exact - 1 : number->low;
        decision->high = view ? NEVER : number->high;
    }
    if (greater)
        decision->low = open->low;
    else
        decision->high = open->low;
}

/* ---- answers --------------------------------------------------------------------------------- */

/* Is a loop's counter less than times * number + plus? */
static Answer below(Search *s, const State *state, const Position *place, const Loop *loop,
                    const Bound *bound, int64_t plus) {
    int64_t counter = place->trips[loop->depth - 1];
    if (bound->number < 0) return counter < plus ? ANSWER_YES : ANSWER_NO;
    return compare(s, state, place, bound->number, bound->view,
                   floor_div(counter - plus, bound->times));
}

static int32_t enter(const Machine *m, const Position *place, int region) {
    const Loop *loop = &own_side(m, place)->loops[region];
    return loop->after < 0 ? (int32_t)loop->first : place->trips[loop->depth - 1];
}

static Answer trip(Machine *m, const State *state, const Position *place, int region) {
    const Loop *loop = &own_side(m, place)->loops[region];
    Answer answer = ANSWER_YES;
    for (int b = 0; b < loop->bound_count && answer == ANSWER_YES; b++)
        answer = below(search_of(m), state, place, loop, &loop->bounds[b], loop->bounds[b].plus);
    return answer;
}

static Answer ask(Search *s, const State *state, const Position *place, const Side *side,
                  const Question *question) {
    if (!question->counted) return compare(s, state, place, question->number, -1, question->above);
    const Loop *loop = &side->loops[question->counted - 1];
    for (int b = 0; b < loop->bound_count; b++)
        if (loop->bounds[b].number == question->number)
            return below(s, state, place, loop, &loop->bounds[b], question->above);
    return ANSWER_NO;
}

static Answer holds(Machine *m, const State *state, const Position *place, int region) {
    const Side *side = own_side(m, place);
    int next = side->conditions[region];
    while (next >= 0) {
        const Question *question = &side->questions.items[next];
        Answer answer = ask(search_of(m), state, place, side, question);
        if (answer == ANSWER_OPEN) return ANSWER_OPEN;
        next = answer == ANSWER_YES ? question->yes : question->no;
    }
    return next == QUESTION_YES ? ANSWER_YES : ANSWER_NO;
}

/* ---- order of processes ---------------------------------------------------------------------- */

static const Loop *loop_at(const Machine *m, const Position *place, int depth) {
    const Side *side = own_side(m, place);
    int loop = position_loop(place);
    while (loop >= 0 && side->loops[loop].depth > depth) loop = side->loops[loop].outer;
    return loop >= 0 && side->loops[loop].depth == depth ? &side->loops[loop] : NULL;
}

static int64_t first_step(const Loop *loop) { return loop ? 2 * loop->region->begin : 0; }

static int64_t last_step(const Position *place, const Loop *loop) {
    return 2 * (loop ? (int64_t)loop->region->next : (int64_t)place->member->code->rows.count);
}

static int64_t compare_steps(const Position *a, const Position *b, const Loop *a_loop,
                             const Loop *b_loop) {
    int64_t a_first = first_step(a_loop), a_last = last_step(a, a_loop);
    int64_t b_first = first_step(b_loop), b_last = last_step(b, b_loop);
    return (*a->step - a_first) * (b_last - b_first + 1) -
           (*b->step - b_first) * (a_last - a_first + 1);
}

/* True if the process may still reach the loop in this iteration of the common enclosing loop */
static bool is_ahead(const Position *place, const Region *loop) {
    const FlowCode *slice = place->member->code;
    int at = *place->step / 2;
    if (*place->step > 2 * loop->begin) return false;
    for (int r = loop->parent; r >= 0; r = slice->regions.items[r].parent) {
        const Region *region = &slice->regions.items[r];
        if (region->kind == REGION_IF && at > region->begin && at < region->otherwise &&
            loop->begin > region->otherwise)
            return false;
    }
    return true;
}

int search_standing(const Search *s, const Position *place, int group) {
    const Side *side = own_side(s->machine, place);
    bool ahead = false;
    for (size_t r = 0; r < side->slice->regions.count; r++) {
        const Region *region = side->loops[r].region;
        if (!region || side->loops[r].group != group) continue;
        if (*place->step > 2 * region->begin && *place->step <= 2 * region->next) return 0;
        ahead |= is_ahead(place, region);
    }
    return ahead ? -1 : 1;
}

/* The rank of the next or present item of the process, in an iteration of the loop around `loop` */
static int rank_of(const Machine *m, const Position *place, const Loop *loop) {
    if (!loop && *place->step % 2) return 0; /* tests if there is another iteration */
    return own_side(m, place)->ranks[loop ? loop->region->begin : *place->step / 2];
}

/* Matching loops are compared by their counters, otherwise by the rank of the next row,
 * otherwise by the row in the enclosing list. A process that has just decided lets others run
 * first. */
static bool before(const Machine *m, const State *state, const Position *a, const Position *b) {
    const Loop *a_outer = NULL, *b_outer = NULL;
    (void)state;
    for (int depth = 1; depth <= DEPTH_MOST; depth++) {
        const Loop *x = loop_at(m, a, depth), *y = loop_at(m, b, depth);
        bool same = x && y && (x->track == y->track || (x->group >= 0 && x->group == y->group));
        if (!same) {
            int own = rank_of(m, a, x), other = rank_of(m, b, y);
            if (!search_of(m)->part->ordered && (x || y)) /* no loop runs ahead of the others */
                own = x ? a->trips[depth - 1] : -1, other = y ? b->trips[depth - 1] : -1;
            if (own != other) return own < other;
            break;
        }
        int64_t differ =
            floor_div(a->trips[depth - 1], x->times) - floor_div(b->trips[depth - 1], y->times);
        if (differ) return differ < 0;
        a_outer = x, b_outer = y;
        if (x->track != y->track) break;
    }
    if (m->decider == a->process || m->decider == b->process) return m->decider == b->process;
    return compare_steps(a, b, a_outer, b_outer) < 0;
}

/* ---- construction ---------------------------------------------------------------------------- */

static int common_multiple(int a, int b) {
    int other = a, rest = b;
    while (rest) {
        int next = other % rest;
        other = rest;
        rest = next;
    }
    return a / other * b;
}

Search *search_new(Arena *arena, const Part *part) {
    Search *s = NEW(arena, Search);
    Oracle oracle = {.data = s, .enter = enter, .trip = trip, .holds = holds, .before = before};
    *s = (Search){.arena = arena, .part = part, .round = 1};
    s->machine = machine_make(arena, part->prog, oracle, part->work);
    for (size_t i = 0; i < part->sides.count; i++) {
        const Side *side = &part->sides.items[i];
        machine_add(s->machine, side->slice, role_is_several(side->role));
        s->round = common_multiple(s->round, s->machine->members.items[i].processes);
    }
    machine_lay_out(s->machine, true);
    return s;
}

State search_state(const Search *s) {
    State state = machine_state(s->machine);
    Decided *decided = NEW(s->arena, Decided);
    decided->items = NEW_ARRAY(s->arena, Decision, DECISIONS_MOST);
    state.decided = decided;
    return state;
}

void search_copy(const Search *s, State *to, const State *from) {
    Decided *own = decided_of(to);
    const Decided *other = decided_of(from);
    machine_copy(s->machine, to, from);
    memcpy(own->items, other->items, (size_t)other->count * sizeof *own->items);
    own->count = other->count;
}
