/* The machine; see machine.h. */
#include "flow/machine.h"

#include <string.h>

#define ROW_STEPS 4 /* cost of a row in steps of the meter */

/* Words of a process, from its `at`: the step; iterations by depth; cursors; number of held
 * stages, and these by handle; executions of its turns; number of stages in late sets, and these
 * by age. */
enum { WORD_STEP, WORD_TRIPS };

/* ---- construction ---------------------------------------------------------------------------- */

bool role_is_several(const Role *role) {
    return role->instances > 1 && (role->in_turn || role->turns);
}

Machine *machine_make(Arena *arena, const Prog *prog, Oracle oracle, Budget work) {
    Machine *m = NEW(arena, Machine);
    *m = (Machine){.arena = arena, .prog = prog, .oracle = oracle, .work = work, .decider = -1};
    m->ring_of = NEW_ARRAY(arena, int, prog->pipes.count + 1);
    for (size_t p = 0; p < prog->pipes.count; p++) m->ring_of[p] = -1;
    return m;
}

static Ring *add_ring(Machine *m, int pipe) {
    if (m->ring_of[pipe] < 0) {
        m->ring_of[pipe] = (int)m->rings.count;
        vec_push(m->arena, &m->rings,
                 (Ring){.pipe = pipe, .stages = m->prog->pipes.items[pipe].stages});
    }
    return &m->rings.items[m->ring_of[pipe]];
}

static void add_cursor(Machine *m, Member *member, int handle) {
    const Handle *what = &member->role->handles.items[handle];
    bool produce = what->end == END_PRODUCE;
    Ring *ring = add_ring(m, what->pipe);
    int end = 2 * m->ring_of[what->pipe] + produce, cursor = 0;
    while (cursor < (int)member->ends.count && member->ends.items[cursor] != end) cursor++;
    member->cursor[handle] = cursor;
    if (cursor < (int)member->ends.count) return;
    int takers =
        member->processes > 1 && member->role->pipes ? role_takers(member->role, what->pipe) : 1;
    if (produce)
        ring->producers += takers;
    else
        ring->consumers += takers;
    vec_push(m->arena, &member->ends, end);
}

static void find_heads(Machine *m, Member *member) {
    const Role *role = member->role;
    const FlowCode *code = member->code;
    member->acquires = NEW_ARRAY(m->arena, const Row *, role->handles.count + 1);
    member->takes = NEW_ARRAY(m->arena, const Row *, role->turns + 1);
    for (size_t at = code->rows.count; at-- > 0;) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_ACQUIRE && valid_index(row->handle, role->handles.count))
            member->acquires[row->handle] = row;
        if (row->kind == ROW_TAKE) member->takes[row->turn] = row;
    }
}

/* Handles that a row acquires, in the order of the text; then those that other handles move
 * stages to */
static void add_cursors(Machine *m, Member *member) {
    const FlowCode *code = member->code;
    member->cursor = NEW_ARRAY(m->arena, int, code->role->handles.count + 1);
    for (size_t h = 0; h < code->role->handles.count; h++) member->cursor[h] = -1;
    for (size_t at = 0; at < code->rows.count; at++) {
        const Row *row = &code->rows.items[at];
        if (!row_gains(row->kind)) continue;
        if (!valid_index(row->handle, code->role->handles.count) ||
            member->cursor[row->handle] >= 0)
            continue;
        if (!valid_index(code->role->handles.items[row->handle].pipe, m->prog->pipes.count))
            continue;
        add_cursor(m, member, row->handle);
    }
}

void machine_add(Machine *m, const FlowCode *code, bool several) {
    Member member = {.code = code,
                     .role = code->role,
                     .processes = several ? code->role->instances : 1,
                     .grid = -1};
    member.first = (int)m->processes.count;
    add_cursors(m, &member);
    find_heads(m, &member);
    for (size_t r = 0; r < code->regions.count; r++) {
        if (code->regions.items[r].depth > member.depth)
            member.depth = code->regions.items[r].depth;
        if (code->regions.items[r].kind == REGION_GRID) member.grid = (int)r;
    }
    for (int k = 0; k < member.processes; k++)
        vec_push(m->arena, &m->processes,
                 (Process){(int)m->members.count, several ? k : ALL_INSTANCES, 0});
    vec_push(m->arena, &m->members, member);
}

static void count_held(const Machine *m, Member *member, bool compact) {
    int rings = 0;
    for (size_t c = 0; c < member->ends.count; c++)
        rings += m->rings.items[member->ends.items[c] / 2].stages;
    for (size_t h = 0; h < member->role->handles.count; h++) member->held += member->cursor[h] >= 0;
    if (compact && rings < member->held) member->held = rings;
    for (size_t i = 0; i < member->code->lates.count; i++) {
        const Late *late = &member->code->lates.items[i];
        bool is_kept = valid_index(late->handle, member->role->handles.count) &&
                       member->cursor[late->handle] >= 0;
        if (is_kept && late->lag > 0) member->kept += late->lag + 1;
    }
}

static int words_of(const Member *member) {
    return WORD_TRIPS + member->depth + (int)member->ends.count + 1 + HELD_WORDS * member->held +
           member->role->turns + 1 + KEPT_WORDS * member->kept;
}

void machine_lay_out(Machine *m, bool compact) {
    for (size_t i = 0; i < m->members.count; i++) {
        Member *member = &m->members.items[i];
        count_held(m, member, compact);
        for (int k = 0; k < member->processes; k++) {
            m->processes.items[member->first + k].at = m->words;
            m->words += words_of(member);
        }
        member->passed = m->words;
        m->words += member->role->turns;
    }
    for (size_t r = 0; r < m->rings.count; r++) {
        Ring *ring = &m->rings.items[r];
        ring->window = 2 * ring->stages + 8;
        ring->base = m->words++;
        ring->at = m->bytes;
        m->bytes += 2 * ring->window;
    }
    m->halted = NEW_ARRAY(m->arena, bool, m->processes.count + 1);
    m->events = NEW_ARRAY(m->arena, int, m->processes.count + 1);
}

State machine_state(const Machine *m) {
    return (State){.words = NEW_ARRAY(m->arena, int32_t, m->words + 1),
                   .bytes = NEW_ARRAY(m->arena, uint8_t, m->bytes + 1)};
}

void machine_copy(const Machine *m, State *to, const State *from) {
    memcpy(to->words, from->words, (size_t)m->words * sizeof *to->words);
    memcpy(to->bytes, from->bytes, (size_t)m->bytes);
}

/* ---- positions ------------------------------------------------------------------------------- */

Position machine_position(const Machine *m, const State *state, int process) {
    const Process *row = &m->processes.items[process];
    const Member *member = &m->members.items[row->member];
    int32_t *words = state->words + row->at;
    Position place = {.member = member, .process = process, .instance = row->instance};
    place.step = words + WORD_STEP;
    place.trips = words + WORD_TRIPS;
    place.cursors = place.trips + member->depth;
    place.held_count = place.cursors + member->ends.count;
    place.held = place.held_count + 1;
    place.turned = place.held + HELD_WORDS * member->held;
    place.kept_count = place.turned + member->role->turns;
    place.kept = place.kept_count + 1;
    return place;
}

const Row *position_row(const Position *place) {
    return &place->member->code->rows.items[*place->step / 2];
}

bool position_ended(const Position *place) { return position_row(place)->kind == ROW_EXIT; }

static bool is_testing(const Position *place) { return *place->step % 2; }

int position_loop(const Position *place) {
    const FlowCode *code = place->member->code;
    const Row *row = position_row(place);
    if (row->kind != ROW_LOOP || is_testing(place)) return code->regions.items[row->region].loop;
    int parent = code->regions.items[row->region].parent;
    return parent < 0 ? -1 : code->regions.items[parent].loop;
}

const Ring *ring_of_handle(const Machine *m, const Position *place, int handle) {
    return &m->rings.items[place->member->ends.items[place->member->cursor[handle]] / 2];
}

static bool produces(const Position *place, int handle) {
    return place->member->role->handles.items[handle].end == END_PRODUCE;
}

int turn_number(const Position *place, int turn) {
    const Role *role = place->member->role;
    return role->in_turn ? place->turned[turn]
                         : place->turned[turn] * role->instances + place->instance;
}

/* True in another instance's iteration: then only cursors advance. Every instance takes the
 * numbers of all tiles. */
static bool skips(const Position *place) {
    const Member *member = place->member;
    if (place->instance < 0 || !member->role->in_turn || member->grid < 0) return false;
    const Region *grid = &member->code->regions.items[member->grid];
    int row = *place->step / 2;
    if (row <= grid->begin || row >= grid->end) return false;
    if (member->code->rows.items[row].every) return false;
    return place->trips[grid->depth - 1] % member->role->instances != place->instance;
}

/* True if its pipe is in the machine */
static bool taken_part(const Position *place, const Row *row) {
    return valid_index(row->handle, place->member->role->handles.count) &&
           place->member->cursor[row->handle] >= 0;
}

/* ---- held stages ----------------------------------------------------------------------------- */

/* The first held stage of this variable or a later one */
static int held_at(const Position *place, int handle) {
    int at = 0;
    while (at < *place->held_count && place->held[HELD_WORDS * at + HELD_HANDLE] < handle) at++;
    return at;
}

void held_drop(const Position *place, int at) {
    int count = --*place->held_count;
    int32_t *held = place->held + HELD_WORDS * at;
    memmove(held, held + HELD_WORDS, (size_t)(HELD_WORDS * (count - at)) * sizeof *held);
    memset(place->held + HELD_WORDS * count, 0, HELD_WORDS * sizeof *held);
}

int held_number(const Position *place, int handle) {
    int at = held_at(place, handle);
    bool there = at < *place->held_count && place->held[HELD_WORDS * at + HELD_HANDLE] == handle;
    return there ? place->held[HELD_WORDS * at + HELD_NUMBER] : -1;
}

static int take_held(const Position *place, int handle) {
    int number = held_number(place, handle);
    if (number >= 0) held_drop(place, held_at(place, handle));
    return number;
}

static void put_held(Machine *m, const Position *place, int handle, int number) {
    take_held(place, handle);
    if (number < 0) return;
    if (*place->held_count == place->member->held) {
        m->beyond = "more stages are held than the rings have";
        return;
    }
    int at = held_at(place, handle), count = (*place->held_count)++;
    int32_t *held = place->held + HELD_WORDS * at;
    memmove(held + HELD_WORDS, held, (size_t)(HELD_WORDS * (count - at)) * sizeof *held);
    held[HELD_HANDLE] = handle;
    held[HELD_NUMBER] = number;
}

/* ---- rings ----------------------------------------------------------------------------------- */

static void tell(Machine *m, const State *state, const Position *place, Event event) {
    m->events[place->process]++;
    event.row = *place->step / 2;
    if (m->oracle.event) m->oracle.event(m, state, place, &event);
}

static bool may_acquire(const Machine *m, const State *state, const Position *place, int handle) {
    const Ring *ring = ring_of_handle(m, place, handle);
    const uint8_t *filled = state->bytes + ring->at, *drained = filled + ring->window;
    bool produce = produces(place, handle);
    int number = place->cursors[place->member->cursor[handle]] - (produce ? ring->stages : 0);
    int at = number - state->words[ring->base];
    if (number < 0 || at < 0) return true;
    if (at >= ring->window) return false;
    int others =
        produce ? ring->consumers : ring->producers; /* 0: no role releases stages to this end */
    return others > 0 && (produce ? drained[at] : filled[at]) == others;
}

static void hand_over(Machine *m, State *state, const Ring *ring, bool produce, int number) {
    uint8_t *filled = state->bytes + ring->at, *drained = filled + ring->window;
    int32_t *base = &state->words[ring->base];
    int at = number - *base;
    if (at < 0 || at >= ring->window) {
        m->beyond = "stages are released too far apart";
        return;
    }
    if (produce)
        filled[at]++;
    else
        drained[at]++;
    while (ring->consumers > 0 && drained[0] == ring->consumers) {
        memmove(filled, filled + 1, (size_t)ring->window - 1);
        memmove(drained, drained + 1, (size_t)ring->window - 1);
        filled[ring->window - 1] = drained[ring->window - 1] = 0;
        ++*base;
    }
}

static void release_number(Machine *m, State *state, const Position *place, int handle, int number,
                           Span span) {
    const Ring *ring = ring_of_handle(m, place, handle);
    bool produce = produces(place, handle);
    if (!m->alone) hand_over(m, state, ring, produce, number);
    tell(m, state, place, (Event){STEP_RELEASE, produce, ring->pipe, number, span, 0});
}

static void acquire(Machine *m, State *state, const Position *place, const Row *row,
                    bool skipping) {
    int32_t *cursor = &place->cursors[place->member->cursor[row->handle]];
    int number = (*cursor)++;
    put_held(m, place, row->handle, skipping ? -1 : number);
    if (skipping) return;
    const Ring *ring = ring_of_handle(m, place, row->handle);
    tell(m, state, place,
         (Event){STEP_ACQUIRE, produces(place, row->handle), ring->pipe, number, row->head, 0});
}

static void release(Machine *m, State *state, const Position *place, const Row *row,
                    bool skipping) {
    int number = take_held(place, row->handle);
    if (skipping || number < 0) return;
    const Row *acquire = row->block ? place->member->acquires[row->handle] : NULL;
    release_number(m, state, place, row->handle, number, acquire ? acquire->head : row->span);
}

/* ---- late sets ------------------------------------------------------------------------------- */

static void kept_drop(const Position *place, int at) {
    int count = --*place->kept_count;
    int32_t *kept = place->kept + KEPT_WORDS * at;
    memmove(kept, kept + KEPT_WORDS, (size_t)(KEPT_WORDS * (count - at)) * sizeof *kept);
    memset(place->kept + KEPT_WORDS * count, 0, KEPT_WORDS * sizeof *kept);
}

static void release_kept(Machine *m, State *state, const Position *place, int at) {
    const int32_t *kept = place->kept + KEPT_WORDS * at;
    const Late *late = &place->member->code->lates.items[kept[KEPT_LATE]];
    release_number(m, state, place, late->handle, kept[KEPT_NUMBER], late->head);
    kept_drop(place, at);
}

static void keep(Machine *m, State *state, const Position *place, const Row *row, bool skipping) {
    const Late *late = &place->member->code->lates.items[row->late];
    if (late->lag <= 0 || skipping) {
        release(m, state, place, row, skipping);
        return;
    }
    int number = take_held(place, row->handle), oldest = -1, count = 1;
    if (number < 0) return;
    for (int i = *place->kept_count; i-- > 0;)
        if (place->kept[KEPT_WORDS * i + KEPT_LATE] == row->late) oldest = i, count++;
    int32_t *kept = place->kept + KEPT_WORDS * (*place->kept_count)++;
    kept[KEPT_LATE] = row->late;
    kept[KEPT_NUMBER] = number;
    if (count > late->lag) release_kept(m, state, place, oldest);
}

static void flush(Machine *m, State *state, const Position *place, int late) {
    for (int i = 0; i < *place->kept_count;) {
        if (place->kept[KEPT_WORDS * i + KEPT_LATE] == late)
            release_kept(m, state, place, i);
        else
            i++;
    }
}

/* ---- turns ----------------------------------------------------------------------------------- */

static int *passed_of(const State *state, const Position *place, int turn) {
    return &state->words[place->member->passed + turn];
}

static void take(Machine *m, State *state, const Position *place, const Row *row, bool skipping) {
    int turn = row->turn - 1;
    if (skipping || place->instance < 0) return;
    tell(m, state, place, (Event){STEP_TAKE, false, turn, turn_number(place, turn), row->head, 0});
}

static void pass(Machine *m, State *state, const Position *place, const Row *row, bool skipping) {
    int turn = row->turn - 1, number = turn_number(place, turn);
    if (place->instance < 0) return;
    place->turned[turn]++;
    if (skipping) return;
    if (!m->alone) ++*passed_of(state, place, turn);
    const Row *take = place->member->takes[row->turn];
    Span span = take ? take->head : row->span;
    tell(m, state, place, (Event){STEP_PASS, false, turn, number, span, 0});
}

/* ---- steps ----------------------------------------------------------------------------------- */

/* The next row with an effect */
static int settled(const FlowCode *code, int at) {
    for (;; at++) {
        const Row *row = &code->rows.items[at];
        if (row->kind == ROW_ELSE)
            at = code->regions.items[row->region].end;
        else if (row->kind != ROW_END && row->kind != ROW_BLOCK)
            return at;
    }
}

static void go_to(const Position *place, int row) {
    *place->step = 2 * settled(place->member->code, row);
}

/* False: it is open if there is another iteration */
static bool test(Machine *m, const State *state, const Position *place, const Region *region) {
    int index = (int)(region - place->member->code->regions.items);
    Answer answer = m->oracle.trip(m, state, place, index);
    if (answer == ANSWER_OPEN && !(m->oracle.passes && m->oracle.passes(m, place, index)))
        return false;
    go_to(place, answer == ANSWER_YES ? region->begin + 1 : region->end + 1);
    return true;
}

static bool branch(Machine *m, const State *state, const Position *place, const Region *region) {
    int index = (int)(region - place->member->code->regions.items);
    Answer answer = m->oracle.holds(m, state, place, index);
    if (answer == ANSWER_OPEN && !(m->oracle.passes && m->oracle.passes(m, place, index)))
        return false;
    go_to(place, answer == ANSWER_YES  ? region->begin + 1
                 : answer == ANSWER_NO ? region->otherwise + 1
                                       : region->end + 1);
    return true;
}

static void enter(const Machine *m, const Position *place, const Region *region) {
    int index = (int)(region - place->member->code->regions.items);
    place->trips[region->depth - 1] = m->oracle.enter ? m->oracle.enter(m, place, index) : 0;
    ++*place->step;
}

static void again(const Position *place, const Region *region) {
    place->trips[region->depth - 1]++;
    *place->step = 2 * region->begin + 1;
}

static void leave(const Position *place, const Row *row) {
    const Region *target = &place->member->code->regions.items[row->target];
    go_to(place, row->again ? target->next : target->end + 1);
}

static void move(Machine *m, State *state, const Position *place, const Row *row, bool skipping) {
    (void)state, (void)skipping;
    put_held(m, place, row->handle, take_held(place, row->other));
}

/* What changes which stage a handle holds */
static void change_hold(Machine *m, State *state, const Position *place, const Row *row,
                        bool skipping) {
    static void (*const by[STAGE_COUNT])(Machine *, State *, const Position *, const Row *,
                                         bool) = {[STAGE_TAKE] = acquire,
                                                  [STAGE_GIVE] = release,
                                                  [STAGE_GIVE_LATE] = keep,
                                                  [STAGE_MOVE] = move};
    if (taken_part(place, row)) by[row_effects[row->kind].stage](m, state, place, row, skipping);
}

/* Executes rows that are followed by the next row */
static void act(Machine *m, State *state, const Position *place, const Row *row) {
    const RowEffects *effects = &row_effects[row->kind];
    bool skipping = skips(place);
    if (row_changes_hold(row->kind))
        change_hold(m, state, place, row, skipping);
    else if (effects->stage == STAGE_GIVE_ALL)
        flush(m, state, place, row->late);
    else if (row_in_turn(row->kind))
        (effects->signals == SIGNALS_WAITS ? take : pass)(m, state, place, row, skipping);
    else if (m->oracle.row && effects->control == CONTROL_ON && effects->access != ACCESS_FETCHES &&
             !(skipping && effects->access == ACCESS_WRITES))
        m->oracle.row(m, state, place, row);
    go_to(place, *place->step / 2 + 1);
}

/* Executes one step of a process that does not wait; false: the next step is open */
static bool go(Machine *m, State *state, const Position *place) {
    const Row *row = position_row(place);
    const Region *region = &place->member->code->regions.items[row->region];
    arena_count(m->arena, ROW_STEPS);
    if (row->kind == ROW_LOOP && is_testing(place)) return test(m, state, place, region);
    if (row->kind == ROW_IF) return branch(m, state, place, region);
    if (row->kind == ROW_LOOP)
        enter(m, place, region);
    else if (row->kind == ROW_NEXT)
        again(place, region);
    else if (row->kind == ROW_LEAVE) {
        if (m->oracle.row) m->oracle.row(m, state, place, row);
        leave(place, row);
    } else if (row->kind == ROW_BLOCK)
        go_to(place, *place->step / 2); /* the role's first row */
    else
        act(m, state, place, row);
    return true;
}

static bool is_enabled(const Machine *m, const State *state, const Position *place) {
    const Row *row = position_row(place);
    if (row->kind == ROW_EXIT || m->halted[place->process]) return false;
    if (row->kind != ROW_ACQUIRE && row->kind != ROW_TAKE) return true;
    if (skips(place) || (row->kind == ROW_TAKE && place->instance < 0)) return true;
    if (row->kind == ROW_ACQUIRE)
        return !taken_part(place, row) || may_acquire(m, state, place, row->handle);
    return *passed_of(state, place, row->turn - 1) == turn_number(place, row->turn - 1);
}

/* ---- runs ------------------------------------------------------------------------------------ */

/* Executes one step; returns the outcome if the run ends with it, otherwise OUTCOME_ENDED */
static Outcome one_step(Machine *m, State *state, const Position *place) {
    if (!go(m, state, place)) {
        m->decider = place->process;
        if (!m->halts) return OUTCOME_OPEN;
        m->halted[place->process] = true;
    }
    if (m->events_most && m->events[place->process] >= m->events_most)
        m->halted[place->process] = true;
    if (budget_is_used(m->work) && !m->beyond) m->beyond = "there are too many cases";
    return m->beyond ? OUTCOME_BEYOND : OUTCOME_ENDED;
}

/* The process to run next among those that can; -1: none */
static int next_process(const Machine *m, const State *state) {
    int next = -1;
    Position first = {0};
    for (int p = 0; p < (int)m->processes.count; p++) {
        Position place = machine_position(m, state, p);
        if (!is_enabled(m, state, &place)) continue;
        if (next >= 0 && !m->oracle.before(m, state, &place, &first)) continue;
        next = p, first = place;
    }
    return next;
}

static bool all_ended(const Machine *m, const State *state) {
    for (int p = 0; p < (int)m->processes.count; p++) {
        Position place = machine_position(m, state, p);
        if (!position_ended(&place)) return false;
    }
    return true;
}

static Outcome run_ordered(Machine *m, State *state) {
    for (int next; (next = next_process(m, state)) >= 0;) {
        Position place = machine_position(m, state, next);
        for (bool on = true; on && is_enabled(m, state, &place);) {
            RowKind kind = position_row(&place)->kind;
            Outcome outcome = one_step(m, state, &place);
            if (outcome != OUTCOME_ENDED) return outcome;
            on = kind != ROW_NEXT && kind != ROW_PASS;
        }
    }
    return all_ended(m, state) ? OUTCOME_ENDED : OUTCOME_STUCK;
}

/* Runs each process as far as possible, one after the other, until none can continue. */
Outcome machine_run(Machine *m, State *state) {
    if (m->oracle.before) return run_ordered(m, state);
    for (bool moved = true; moved;) {
        moved = false;
        for (int p = 0; p < (int)m->processes.count; p++) {
            Position place = machine_position(m, state, p);
            for (; is_enabled(m, state, &place); moved = true) {
                Outcome outcome = one_step(m, state, &place);
                if (outcome != OUTCOME_ENDED) return outcome;
            }
        }
    }
    return all_ended(m, state) ? OUTCOME_ENDED : OUTCOME_STUCK;
}

Outcome machine_run_alone(Machine *m, State *state, int process) {
    Position place = machine_position(m, state, process);
    m->alone = true;
    Outcome outcome = OUTCOME_ENDED;
    while (outcome == OUTCOME_ENDED && !position_ended(&place) && !m->halted[process])
        outcome = one_step(m, state, &place);
    m->alone = false;
    return m->halted[process] ? OUTCOME_OPEN : outcome;
}
