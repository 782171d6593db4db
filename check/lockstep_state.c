/* One state of the processes of a part: where each stands, what the rings hold, what has been decided. Who can go on goes on, the one
 * furthest behind first, until a decision is needed that nobody has taken. A state is then brought to a normal form: what nobody will ask
 * again is forgotten, and iterations, stages and turns are counted from the one furthest behind. */
#include "check/lockstep.h"

#include <string.h>

#define ALL_INSTANCES (-1)
#define STEPS_MOST 1500000 /* of one part */

/* Words of a process, from its `at`: the step; iterations, by depth of the loop; cursors; how many stages it holds, and of each of
 * these, by slot: slot, number; executions of its turns; how many stages lagging blocks keep, and of each of these: loop, slot, number, step. */
enum { WORD_STEP, WORD_LOOPS };
enum { HELD_SLOT, HELD_NUMBER, HELD_WORDS };
enum { KEPT_LOOP, KEPT_SLOT, KEPT_NUMBER, KEPT_BLOCK, KEPT_WORDS };

typedef struct Place {    /* of one process in one state */
    const Member *member;
    int32_t *step, *loops, *cursors, *held_count, *held, *turned, *kept_count, *kept;
    int instance;
} Place;

static const Member *member_of(const Machine *m, int process) {
    return &m->clocks->members.items[m->processes.items[process].member];
}

static Place place_of(const Machine *m, const State *state, int process) {
    const Member *member = member_of(m, process);
    int32_t *words = state->words + m->processes.items[process].at;
    Place place = {.member = member, .instance = m->processes.items[process].instance, .step = words + WORD_STEP, .loops = words + WORD_LOOPS};
    place.cursors = place.loops + DEPTH_MOST;
    place.held_count = place.cursors + member->cursors;
    place.held = place.held_count + 1;
    place.turned = place.held + HELD_WORDS * member->held;
    place.kept_count = place.turned + member->role->turns;
    place.kept = place.kept_count + 1;
    return place;
}

static int words_of(const Member *member) {
    return WORD_LOOPS + DEPTH_MOST + member->cursors + 1 + HELD_WORDS * member->held + member->role->turns + 1 + KEPT_WORDS * member->kept;
}

static const Act *step_of(const Place *place) { return &place->member->code.items[*place->step]; }

/* The innermost loop in which a process is, -1: in none */
static int inside(const Place *place) {
    const Act *step = step_of(place);
    return step->kind == ACT_ENTER ? place->member->loops.items[step->loop].outer : step->loop;
}

/* ---- building --------------------------------------------------------------------------------------------------------- */

static int processes_taking(const Member *member, int pipe) { return member->processes > 1 ? role_takes(member->role, pipe) : 1; }

static void add_rings(Machine *m) {
    const Part *part = m->clocks->part;
    const Prog *prog = m->clocks->prog;
    m->rings = NEW_ARRAY(m->arena, Ring, part->pipes.count + 1);
    for (size_t p = 0; p < part->pipes.count; p++) {
        int pipe = part->pipes.items[p];
        Ring *ring = &m->rings[p];
        ring->stages = prog->pipes.items[pipe].stages;
        ring->window = 2 * ring->stages + 8;
        ring->base = m->words++;
        ring->at = m->bytes;
        m->bytes += 2 * ring->window;
        for (size_t i = 0; i < m->clocks->members.count; i++) {
            const Member *member = &m->clocks->members.items[i];
            if (part_takes(part, prog, member->role, pipe, END_PRODUCE)) ring->producers += processes_taking(member, pipe);
            if (part_takes(part, prog, member->role, pipe, END_CONSUME)) ring->consumers += processes_taking(member, pipe);
        }
    }
}

Machine *lockstep_new(Arena *arena, const Clocks *clocks) {
    Machine *m = NEW(arena, Machine);
    m->arena = arena;
    m->clocks = clocks;
    m->round = 1;
    m->decider = -1;
    m->passed = NEW_ARRAY(arena, int, clocks->members.count + 1);
    for (size_t i = 0; i < clocks->members.count; i++) {
        const Member *member = &clocks->members.items[i];
        for (int k = 0; k < member->processes; k++) {
            Process process = {.member = (int)i, .instance = member->processes > 1 ? k : ALL_INSTANCES, .at = m->words};
            vec_push(arena, &m->processes, process);
            m->words += words_of(member);
        }
        m->passed[i] = m->words;
        m->words += member->role->turns;
        int other = m->round, rest = member->processes;
        while (rest) {
            int next = other % rest;
            other = rest;
            rest = next;
        }
        m->round = m->round / other * member->processes;
    }
    add_rings(m);
    return m;
}

State lockstep_state(const Machine *m) {
    return (State){.words = NEW_ARRAY(m->arena, int32_t, m->words + 1), .bytes = NEW_ARRAY(m->arena, uint8_t, m->bytes + 1),
                   .facts = NEW_ARRAY(m->arena, Fact, FACTS_MOST)};
}

void lockstep_copy(const Machine *m, State *to, const State *from) {
    memcpy(to->words, from->words, (size_t)m->words * sizeof *to->words);
    memcpy(to->bytes, from->bytes, (size_t)m->bytes);
    memcpy(to->facts, from->facts, (size_t)from->fact_count * sizeof *to->facts);
    to->fact_count = from->fact_count;
}

/* ---- what is decided -------------------------------------------------------------------------------------------------- */

static int depth_of(const Machine *m, int track) { return track < 0 ? 0 : m->clocks->tracks.items[track].depth; }

static Fact *fact_find(const State *state, int what, const int32_t *path, int depth) {
    for (int i = 0; i < state->fact_count; i++) {
        Fact *fact = &state->facts[i];
        if (fact->what == what && memcmp(fact->path, path, (size_t)depth * sizeof *path) == 0) return fact;
    }
    return NULL;
}

typedef enum Answer { ANSWER_NO, ANSWER_YES, ANSWER_OPEN } Answer;

static Answer open_question(Machine *m, int what, const int32_t *path, int depth, int64_t above) {
    m->open = (Fact){.what = what, .low = (int32_t)above};
    memcpy(m->open.path, path, (size_t)depth * sizeof *path);
    return ANSWER_OPEN;
}

static bool decided(int32_t low, int32_t high, int64_t above, Answer *answer) {
    if (above <= low) return *answer = ANSWER_YES, true;
    if (above >= high) return *answer = ANSWER_NO, true;
    return false;
}

/* Is the number greater? view: -1, or of the loop that asks: then the counters, and `above`, may be less than they were from the start */
static Answer asked(Machine *m, const State *state, const Place *place, int number, int view, int64_t above) {
    const Number *row = &m->clocks->numbers.items[number];
    int depth = depth_of(m, row->track);
    const Fact *fact = fact_find(state, number, place->loops, depth);
    bool exact = view < 0 || above < EXACT || m->clocks->groups.items[m->clocks->views.items[view].group].fixed;
    Answer answer;
    if (decided(exact ? (fact ? fact->low : row->low) : ALWAYS, fact ? fact->high : row->high, above, &answer)) return answer;
    if (row->counter >= 0) {
        const Track *track = &m->clocks->tracks.items[row->counter];
        int64_t value = (int64_t)place->loops[depth - 1] + row->from;
        if (row->modulo) return value % row->modulo > above ? ANSWER_YES : ANSWER_NO;
        if (place->loops[depth - 1] < EXACT || track->shape.group < 0) return value > above ? ANSWER_YES : ANSWER_NO;
        if ((int64_t)EXACT + row->from > above) return ANSWER_YES;
    }
    if (exact) return open_question(m, number, place->loops, depth, above);
    depth = depth_of(m, m->clocks->groups.items[m->clocks->views.items[view].group].outer);
    int what = (int)m->clocks->numbers.count + view;
    fact = fact_find(state, what, place->loops, depth);
    if (decided(fact ? fact->low : EXACT - 1, fact ? fact->high : NEVER, above, &answer)) return answer;
    return open_question(m, what, place->loops, depth, above);
}

/* Where a fact is: in an iteration of this track */
static int track_of(const Machine *m, int what) {
    int numbers = (int)m->clocks->numbers.count;
    return what < numbers ? m->clocks->numbers.items[what].track : m->clocks->groups.items[m->clocks->views.items[what - numbers].group].outer;
}

void lockstep_decide(Machine *m, State *state, const Fact *open, bool greater) {
    bool view = open->what >= (int)m->clocks->numbers.count;
    int depth = depth_of(m, track_of(m, open->what));
    Fact *fact = fact_find(state, open->what, open->path, depth);
    if (!fact) {
        if (state->fact_count == FACTS_MOST) {
            m->beyond = "too many conditions are open at the same time";
            return;
        }
        fact = &state->facts[state->fact_count++];
        *fact = *open;
        fact->low = view ? EXACT - 1 : m->clocks->numbers.items[open->what].low;
        fact->high = view ? NEVER : m->clocks->numbers.items[open->what].high;
    }
    if (greater) fact->low = open->low;
    else fact->high = open->low;
}

/* ---- steps ------------------------------------------------------------------------------------------------------------ */

static int ring_of(const Place *place, int slot) { return place->member->slots.items[slot].end / 2; }
static bool produces(const Place *place, int slot) { return place->member->slots.items[slot].end % 2; }

static bool skips(const Place *place) {
    const Member *member = place->member;
    if (place->instance < 0 || !member->role->in_turn || member->grid < 0) return false;
    const Loop *grid = &member->loops.items[member->grid];
    if (*place->step <= grid->begin || *place->step > grid->end) return false;
    return place->loops[grid->depth - 1] % member->role->instances != place->instance;
}

static bool may_acquire(const Machine *m, const State *state, const Place *place, int slot) {
    const Ring *ring = &m->rings[ring_of(place, slot)];
    const uint8_t *filled = state->bytes + ring->at, *drained = filled + ring->window;
    int number = place->cursors[place->member->slots.items[slot].cursor] - (produces(place, slot) ? ring->stages : 0);
    int at = number - state->words[ring->base];
    if (number < 0 || at < 0) return true;
    if (at >= ring->window) return false;
    return produces(place, slot) ? drained[at] == ring->consumers : filled[at] == ring->producers;
}

static int turn_number(const Place *place, int turn) {
    return place->member->role->in_turn ? place->turned[turn] : place->turned[turn] * place->member->role->instances + place->instance;
}

static bool enabled(const Machine *m, const State *state, int process) {
    Place place = place_of(m, state, process);
    const Act *step = step_of(&place);
    if (step->kind == ACT_END) return false;
    if ((step->kind != ACT_ACQUIRE && step->kind != ACT_TAKE) || skips(&place)) return true;
    if (step->kind == ACT_ACQUIRE) return may_acquire(m, state, &place, step->handle);
    return state->words[m->passed[m->processes.items[process].member] + step->turn] == turn_number(&place, step->turn);
}

static void hand_over(Machine *m, State *state, const Place *place, int slot, int number) {
    const Ring *ring = &m->rings[ring_of(place, slot)];
    uint8_t *filled = state->bytes + ring->at, *drained = filled + ring->window;
    int32_t *base = &state->words[ring->base];
    int at = number - *base;
    if (at < 0 || at >= ring->window) {
        m->beyond = "stages are released too far apart";
        return;
    }
    if (produces(place, slot)) filled[at]++;
    else drained[at]++;
    while (drained[0] == ring->consumers) {
        memmove(filled, filled + 1, (size_t)ring->window - 1);
        memmove(drained, drained + 1, (size_t)ring->window - 1);
        filled[ring->window - 1] = drained[ring->window - 1] = 0;
        ++*base;
    }
}

/* The first stage held that is not of a slot before this one */
static int held_at(const Place *place, int slot) {
    int at = 0;
    while (at < *place->held_count && place->held[HELD_WORDS * at + HELD_SLOT] < slot) at++;
    return at;
}

static void drop_held(const Place *place, int at) {
    int count = --*place->held_count;
    int32_t *held = place->held + HELD_WORDS * at;
    memmove(held, held + HELD_WORDS, (size_t)(HELD_WORDS * (count - at)) * sizeof *held);
    memset(place->held + HELD_WORDS * count, 0, HELD_WORDS * sizeof *held);
}

/* The number that it held, -1: nothing */
static int take_held(const Place *place, int slot) {
    int at = held_at(place, slot);
    if (at == *place->held_count || place->held[HELD_WORDS * at + HELD_SLOT] != slot) return -1;
    int number = place->held[HELD_WORDS * at + HELD_NUMBER];
    drop_held(place, at);
    return number;
}

static void put_held(Machine *m, const Place *place, int slot, int number) {
    take_held(place, slot);
    if (number < 0) return;
    if (*place->held_count == place->member->held) {
        m->beyond = "more stages are held than the rings have";
        return;
    }
    int at = held_at(place, slot), count = (*place->held_count)++;
    int32_t *held = place->held + HELD_WORDS * at;
    memmove(held + HELD_WORDS, held, (size_t)(HELD_WORDS * (count - at)) * sizeof *held);
    held[HELD_SLOT] = slot;
    held[HELD_NUMBER] = number;
}

static void drop_kept(const Place *place, int which) {
    int count = --*place->kept_count;
    memmove(place->kept + KEPT_WORDS * which, place->kept + KEPT_WORDS * (which + 1), (size_t)(KEPT_WORDS * (count - which)) * sizeof *place->kept);
    memset(place->kept + KEPT_WORDS * count, 0, KEPT_WORDS * sizeof *place->kept);
}

static void release_kept(Machine *m, State *state, const Place *place, int which) {
    const int32_t *kept = place->kept + KEPT_WORDS * which;
    hand_over(m, state, place, kept[KEPT_SLOT], kept[KEPT_NUMBER]);
    drop_kept(place, which);
}

static void keep(Machine *m, State *state, const Place *place, const Act *step) {
    int32_t block = step->handle, number = take_held(place, step->handle), late = 0; /* each block has a stage variable of its own */
    if (number < 0) return;
    if (*place->kept_count == place->member->kept) {
        m->beyond = "more stages are held than the rings have";
        return;
    }
    int32_t *kept = place->kept + KEPT_WORDS * (*place->kept_count)++;
    kept[KEPT_LOOP] = step->other;
    kept[KEPT_SLOT] = step->handle;
    kept[KEPT_NUMBER] = number;
    kept[KEPT_BLOCK] = block;
    for (int i = 0; i < *place->kept_count; i++) late += place->kept[KEPT_WORDS * i + KEPT_BLOCK] == block;
    for (int i = 0; i < *place->kept_count && late > step->lag; i++)
        if (place->kept[KEPT_WORDS * i + KEPT_BLOCK] == block) {
            release_kept(m, state, place, i);
            return;
        }
}

static void flush(Machine *m, State *state, const Place *place, int loop) {
    for (int i = 0; i < *place->kept_count;) {
        if (place->kept[KEPT_WORDS * i + KEPT_LOOP] == loop) release_kept(m, state, place, i);
        else i++;
    }
}

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

/* Is a loop's counter less than times * number + plus? */
static Answer below(Machine *m, const State *state, const Place *place, const Loop *loop, const Bound *bound, int64_t plus) {
    int64_t counter = place->loops[loop->depth - 1];
    if (bound->number < 0) return counter < plus ? ANSWER_YES : ANSWER_NO;
    return asked(m, state, place, bound->number, bound->view, floor_div(counter - plus, bound->times));
}

static Answer has_trip(Machine *m, const State *state, const Place *place, const Loop *loop) {
    Answer answer = ANSWER_YES;
    for (int b = 0; b < loop->bound_count && answer == ANSWER_YES; b++)
        answer = below(m, state, place, loop, &loop->bounds[b], loop->bounds[b].plus);
    return answer;
}

static Answer holds(Machine *m, const State *state, const Place *place, const Act *step) {
    if (!step->counted) return asked(m, state, place, step->number, -1, step->above);
    const Loop *loop = &place->member->loops.items[step->counted - 1];
    for (int b = 0; b < loop->bound_count; b++)
        if (loop->bounds[b].number == step->number) return below(m, state, place, loop, &loop->bounds[b], step->above);
    return ANSWER_NO;
}

/* One step of an enabled process; false: a decision is needed first */
static bool go(Machine *m, State *state, int process) {
    Place place = place_of(m, state, process);
    const Act *step = step_of(&place);
    bool skipping = skips(&place);
    int next = *place.step + 1;
    Answer answer;
    m->steps++;
    switch (step->kind) {
    case ACT_ACQUIRE: {
        int32_t *cursor = &place.cursors[place.member->slots.items[step->handle].cursor];
        put_held(m, &place, step->handle, skipping ? -1 : *cursor);
        ++*cursor;
        break;
    }
    case ACT_RELEASE: {
        int number = take_held(&place, step->handle);
        if (!skipping && number >= 0) hand_over(m, state, &place, step->handle, number);
        break;
    }
    case ACT_MOVE:
        if (step->other >= 0) put_held(m, &place, step->handle, take_held(&place, step->other));
        break;
    case ACT_KEEP: keep(m, state, &place, step); break;
    case ACT_FLUSH: flush(m, state, &place, step->other); break;
    case ACT_TAKE: break;
    case ACT_PASS:
        place.turned[step->turn]++;
        if (!skipping) state->words[m->passed[m->processes.items[process].member] + step->turn]++;
        break;
    case ACT_ENTER: {
        const Loop *loop = &place.member->loops.items[step->loop];
        if (loop->after < 0) place.loops[loop->depth - 1] = (int32_t)loop->first;
        break;
    }
    case ACT_TEST:
        answer = has_trip(m, state, &place, &place.member->loops.items[step->loop]);
        if (answer == ANSWER_OPEN) return false;
        if (answer == ANSWER_NO) next = step->to;
        break;
    case ACT_AGAIN:
        place.loops[place.member->loops.items[step->loop].depth - 1]++;
        next = step->to;
        break;
    case ACT_ASK:
        answer = holds(m, state, &place, step);
        if (answer == ANSWER_OPEN) return false;
        if ((answer == ANSWER_YES) == step->negated) next = step->to;
        break;
    case ACT_GOTO: next = step->to; break;
    case ACT_END: break;
    }
    *place.step = next;
    return true;
}

/* ---- who is furthest behind ------------------------------------------------------------------------------------------- */

static int loop_at(const Place *place, int depth) {
    int loop = inside(place);
    while (loop >= 0 && place->member->loops.items[loop].depth > depth) loop = place->member->loops.items[loop].outer;
    return loop >= 0 && place->member->loops.items[loop].depth == depth ? loop : -1;
}

static int64_t compare_steps(const Place *a, const Place *b, int a_loop, int b_loop) {
    int64_t a_begin = a_loop < 0 ? 0 : a->member->loops.items[a_loop].begin, a_end = a_loop < 0 ? (int64_t)a->member->code.count : a->member->loops.items[a_loop].end;
    int64_t b_begin = b_loop < 0 ? 0 : b->member->loops.items[b_loop].begin, b_end = b_loop < 0 ? (int64_t)b->member->code.count : b->member->loops.items[b_loop].end;
    return (*a->step - a_begin) * (b_end - b_begin + 1) - (*b->step - b_begin) * (a_end - a_begin + 1);
}

/* Has a process, in what it shares with another one, yet to come to the loop in which that is (-1), or is it behind it (1)? 0 too where it
 * has no such loop. */
static int against(const Machine *m, const Place *place, int member, const Loop *loop) {
    int own = m->clocks->tracks.items[loop->track].loop[member];
    if (own < 0 && loop->group >= 0) own = m->clocks->groups.items[loop->group].first[member];
    if (own < 0) return 0;
    const Loop *row = &place->member->loops.items[own];
    return *place->step <= row->begin ? -1 : *place->step > row->end ? 1 : 0;
}

/* Is `a` behind `b`? Loops that are the same are compared by their counters, else where in the steps around they stand */
static bool behind(const Machine *m, const State *state, int a_process, int b_process) {
    Place a = place_of(m, state, a_process), b = place_of(m, state, b_process);
    int a_outer = -1, b_outer = -1;
    for (int depth = 1; depth <= DEPTH_MOST; depth++) {
        int a_loop = loop_at(&a, depth), b_loop = loop_at(&b, depth);
        const Loop *x = a_loop < 0 ? NULL : &a.member->loops.items[a_loop], *y = b_loop < 0 ? NULL : &b.member->loops.items[b_loop];
        bool same = x && y && (x->track == y->track || (x->group >= 0 && x->group == y->group));
        if (!same) {
            int later = y ? against(m, &a, m->processes.items[a_process].member, y) : 0;
            if (!later && x) later = -against(m, &b, m->processes.items[b_process].member, x);
            if (later) return later < 0;
            break;
        }
        int64_t differ = floor_div(a.loops[depth - 1], x->times) - floor_div(b.loops[depth - 1], y->times);
        if (differ) return differ < 0;
        a_outer = a_loop;
        b_outer = b_loop;
        if (x->track != y->track) break;
    }
    if (m->decider == a_process || m->decider == b_process) return m->decider == b_process; /* who has just decided lets others go first */
    return compare_steps(&a, &b, a_outer, b_outer) < 0;
}

const Act *lockstep_waits(const Machine *m, const State *state, int process) {
    Place place = place_of(m, state, process);
    const Act *step = step_of(&place);
    return step->kind == ACT_END ? NULL : step;
}

Outcome lockstep_run(Machine *m, State *state) {
    for (;;) {
        int next = -1;
        bool ended = true;
        for (int p = 0; p < (int)m->processes.count; p++) {
            ended &= lockstep_waits(m, state, p) == NULL;
            if (enabled(m, state, p) && (next < 0 || behind(m, state, p, next))) next = p;
        }
        if (next < 0) return ended ? OUTCOME_ENDED : OUTCOME_STUCK;
        for (bool again = true; again && enabled(m, state, next);) {
            const Act *step = lockstep_waits(m, state, next);
            again = step->kind != ACT_AGAIN && step->kind != ACT_PASS;
            if (!go(m, state, next)) {
                m->decider = next;
                return OUTCOME_OPEN;
            }
            if (m->steps > STEPS_MOST) m->beyond = "there are too many cases";
            if (m->beyond) return OUTCOME_BEYOND;
        }
    }
}

/* ---- normal form ------------------------------------------------------------------------------------------------------ */

static int chain_of(const Machine *m, int track, int *chain) {
    int depth = depth_of(m, track);
    for (int i = depth; i-- > 0; track = m->clocks->tracks.items[track].outer) chain[i] = track;
    return depth;
}

/* Where a process stands, seen from one iteration of a track: -1 before it, 0 in it, 1 behind it */
static int standing(const Machine *m, const State *state, int process, int track, const int32_t *path) {
    int chain[DEPTH_MOST], depth = chain_of(m, track, chain), member = m->processes.items[process].member;
    Place place = place_of(m, state, process);
    for (int i = 0; i < depth; i++) {
        int loop = m->clocks->tracks.items[chain[i]].loop[member];
        if (loop < 0) return 1;
        const Loop *row = &place.member->loops.items[loop];
        if (*place.step <= row->begin) return -1;
        if (*place.step > row->end) return 1;
        if (place.loops[i] != path[i]) return place.loops[i] < path[i] ? -1 : 1;
    }
    return 0;
}

static int last_asking(const Machine *m, int what, int member) {
    int numbers = (int)m->clocks->numbers.count;
    if (what < numbers) return m->clocks->numbers.items[what].last[member];
    int last = m->clocks->groups.items[m->clocks->views.items[what - numbers].group].last[member];
    return last < 0 ? -1 : m->clocks->members.items[member].loops.items[last].end;
}

static bool will_ask(const Machine *m, const State *state, const Fact *fact, int process) {
    int last = last_asking(m, fact->what, m->processes.items[process].member);
    if (last < 0) return false;
    int at = standing(m, state, process, track_of(m, fact->what), fact->path);
    return at < 0 || (at == 0 && *place_of(m, state, process).step <= last);
}

static void forget(const Machine *m, State *state) {
    int kept = 0;
    for (int i = 0; i < state->fact_count; i++) {
        bool live = false;
        for (int p = 0; p < (int)m->processes.count && !live; p++) live = will_ask(m, state, &state->facts[i], p);
        if (live) state->facts[kept++] = state->facts[i];
    }
    state->fact_count = kept;
}

/* The loop of a group in which a process is, or whose counter it carries to the next piece; -1: none */
static int round_of(const Place *place, int group) {
    int carried = place->member->carried[*place->step], loop = inside(place);
    if (carried >= 0 && place->member->loops.items[carried].group == group) return carried;
    while (loop >= 0 && place->member->loops.items[loop].group != group) loop = place->member->loops.items[loop].outer;
    return loop;
}

static void clear_unused(const Machine *m, State *state) {
    for (int p = 0; p < (int)m->processes.count; p++) {
        Place place = place_of(m, state, p);
        int carried = place.member->carried[*place.step], loop = carried >= 0 ? carried : inside(&place);
        int depth = loop < 0 ? 0 : place.member->loops.items[loop].depth;
        memset(place.loops + depth, 0, (size_t)(DEPTH_MOST - depth) * sizeof *place.loops);
        if (step_of(&place)->kind == ACT_END) memset(place.cursors, 0, (size_t)place.member->cursors * sizeof *place.cursors);
    }
}

/* Iterations that all who go round a group's loops, in one iteration of what is around, have behind them: as many as may be forgotten */
static int64_t common_rounds(const Machine *m, const State *state, int group, const int32_t *path) {
    int64_t least = NEVER;
    for (int p = 0; p < (int)m->processes.count; p++) {
        Place place = place_of(m, state, p);
        int last = m->clocks->groups.items[group].last[m->processes.items[p].member], at = round_of(&place, group);
        if (last < 0) continue;
        int where = standing(m, state, p, m->clocks->groups.items[group].outer, path);
        if (where > 0 || (where == 0 && *place.step > place.member->loops.items[last].end)) continue;
        if (where < 0 || at < 0 || place.member->loops.items[at].constant) return 0;
        const Loop *row = &place.member->loops.items[at];
        int64_t counter = place.loops[row->depth - 1], rounds = floor_div(counter - EXACT, row->times);
        for (int b = 0; b < row->bound_count; b++) {
            int64_t above = floor_div(counter - row->bounds[b].plus, row->bounds[b].times) - EXACT;
            if (above < rounds) rounds = above;
        }
        if (rounds < least) least = rounds;
    }
    return least == NEVER || least < 0 ? 0 : least;
}

/* The depth at which a fact's path goes through a loop of the group, -1: it does not */
static int passes(const Machine *m, const Fact *fact, int group, const int32_t *path, int64_t *times) {
    int chain[DEPTH_MOST], outer = depth_of(m, m->clocks->groups.items[group].outer), depth = chain_of(m, track_of(m, fact->what), chain);
    if (depth <= outer || m->clocks->tracks.items[chain[outer]].shape.group != group) return -1;
    if (memcmp(fact->path, path, (size_t)outer * sizeof *path) != 0) return -1;
    *times = m->clocks->tracks.items[chain[outer]].shape.times;
    return outer;
}

static void forget_rounds(const Machine *m, State *state, int group, const int32_t *path, int64_t rounds) {
    int outer_track = m->clocks->groups.items[group].outer, outer = depth_of(m, outer_track), numbers = (int)m->clocks->numbers.count;
    for (int i = 0; i < state->fact_count; i++) {
        Fact *fact = &state->facts[i];
        int64_t times;
        int at = passes(m, fact, group, path, &times);
        if (at >= 0) fact->path[at] -= (int32_t)(times * rounds);
        if (fact->what < numbers || m->clocks->views.items[fact->what - numbers].group != group) continue;
        if (memcmp(fact->path, path, (size_t)outer * sizeof *path) != 0) continue;
        fact->low -= (int32_t)rounds;
        if (fact->low < EXACT - 1) fact->low = EXACT - 1;
        if (fact->high != NEVER) fact->high -= (int32_t)rounds;
        if (fact->high < EXACT) fact->high = EXACT;
    }
    for (int p = 0; p < (int)m->processes.count; p++) {
        Place place = place_of(m, state, p);
        int at = round_of(&place, group);
        if (at < 0 || standing(m, state, p, outer_track, path) != 0) continue;
        const Loop *loop = &place.member->loops.items[at];
        place.loops[loop->depth - 1] -= (int32_t)(loop->times * rounds);
    }
}

/* The next group in whose loops somebody is, or whose counter somebody carries; -1: there is none */
static int next_group(const Machine *m, const State *state, int before) {
    int next = -1;
    for (int p = 0; p < (int)m->processes.count; p++) {
        Place place = place_of(m, state, p);
        int carried = place.member->carried[*place.step];
        for (int loop = carried >= 0 ? carried : inside(&place); loop >= 0; loop = place.member->loops.items[loop].outer) {
            int group = place.member->loops.items[loop].group;
            if (group > before && (next < 0 || group < next)) next = group;
        }
    }
    return next;
}

static void count_from_here(const Machine *m, State *state) {
    for (int g = next_group(m, state, -1); g >= 0; g = next_group(m, state, g)) {
        const Group *group = &m->clocks->groups.items[g];
        for (int p = 0; p < (int)m->processes.count && !group->fixed; p++) {
            Place place = place_of(m, state, p);
            int32_t path[DEPTH_MOST];
            if (round_of(&place, g) < 0) continue;
            memcpy(path, place.loops, sizeof path);
            int64_t rounds = common_rounds(m, state, g, path);
            rounds -= rounds % (group->outer < 0 ? group->period * m->round : group->period);
            if (rounds > 0) forget_rounds(m, state, g, path, rounds);
        }
    }
}

static void count_stages(const Machine *m, State *state) {
    for (int p = 0; p < (int)m->processes.count; p++) {
        Place place = place_of(m, state, p);
        bool ended = step_of(&place)->kind == ACT_END;
        for (int c = 0; c < place.member->cursors && !ended; c++)
            place.cursors[c] -= state->words[m->rings[place.member->cursor_ends.items[c] / 2].base];
        for (int i = 0; i < *place.held_count && !ended;) {
            int32_t *held = place.held + HELD_WORDS * i;
            held[HELD_NUMBER] -= state->words[m->rings[ring_of(&place, held[HELD_SLOT])].base];
            if (held[HELD_NUMBER] < 0) drop_held(&place, i); /* all others are done with it */
            else i++;
        }
        for (int i = 0; i < *place.kept_count; i++) {
            int32_t *kept = place.kept + KEPT_WORDS * i;
            kept[KEPT_NUMBER] -= state->words[m->rings[ring_of(&place, kept[KEPT_SLOT])].base];
        }
    }
    for (size_t r = 0; r < m->clocks->part->pipes.count; r++) state->words[m->rings[r].base] = 0;
}

static void count_turns(const Machine *m, State *state) {
    for (size_t i = 0; i < m->clocks->members.count; i++) {
        const Member *member = &m->clocks->members.items[i];
        for (int t = 0; t < member->role->turns && member->processes > 1; t++) {
            int32_t least = NEVER;
            for (int p = 0; p < (int)m->processes.count; p++) {
                Place place = place_of(m, state, p);
                if (m->processes.items[p].member == (int)i && place.turned[t] < least) least = place.turned[t];
            }
            for (int p = 0; p < (int)m->processes.count; p++)
                if (m->processes.items[p].member == (int)i) place_of(m, state, p).turned[t] -= least;
            state->words[m->passed[i] + t] -= member->role->in_turn ? least : least * member->role->instances;
        }
    }
}

static int compare_facts(const Fact *a, const Fact *b) {
    if (a->what != b->what) return a->what < b->what ? -1 : 1;
    for (int i = 0; i < DEPTH_MOST; i++)
        if (a->path[i] != b->path[i]) return a->path[i] < b->path[i] ? -1 : 1;
    return 0;
}

void lockstep_normalise(Machine *m, State *state) {
    clear_unused(m, state);
    forget(m, state);
    count_from_here(m, state);
    count_stages(m, state);
    count_turns(m, state);
    for (int i = 1; i < state->fact_count; i++)
        for (int k = i; k > 0 && compare_facts(&state->facts[k], &state->facts[k - 1]) < 0; k--) {
            Fact swap = state->facts[k];
            state->facts[k] = state->facts[k - 1];
            state->facts[k - 1] = swap;
        }
}
