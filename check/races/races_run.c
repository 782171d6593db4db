/* Accesses of one block at given sizes. Each instance of each role is a process of the machine.
 * One run gives the order: a process has a vector clock, the number of steps of every process
 * that precede it; a release passes it to those who acquire the stage, and the end of a turn to
 * the next instance. Copies into a stage are separate processes, one per pipe, which have
 * advanced to the last stage that some process has acquired full. */
#include "check/races/races.h"

#include <stdlib.h>

#define EVENTS_MOST 1000 /* most events of a process */

typedef VEC(int *) Clocks; /* by number of the stage */

typedef struct Follow {
    Arena *arena;
    const Prog *prog;
    Places *places;
    Block *block;
    VEC(Touch) touches; /* in the order of the run */
    int count, width;   /* number of processes; including the copies of the pipes */
    const int **clocks; /* by process: present clock */
    struct Handed {
        Clocks full, empty; /* passed on by releases */
    } * rings;
    /* by role and turn: the clock of the last instance that had it */
    int ***passed;
} Follow;

/* ---- elements -------------------------------------------------------------------------------- */

typedef struct Digits {
    int count;
    int64_t step[PROG_MAX_INDEXES], extent[PROG_MAX_INDEXES];
} Digits;

static void add_digit(Digits *digits, int64_t step, int64_t extent) {
    int at = digits->count++;
    for (; at > 0 && digits->step[at - 1] > step; at--)
        digits->step[at] = digits->step[at - 1], digits->extent[at] = digits->extent[at - 1];
    digits->step[at] = step, digits->extent[at] = extent;
}

/* All digits as one with a single step; false: impossible */
static bool join_digits(const Digits *digits, Side *side) {
    side->step = 1, side->count = 1;
    for (int i = 0; i < digits->count; i++) {
        if (i == 0)
            side->step = digits->step[0];
        else if (digits->step[i] != side->step * side->count)
            return false;
        side->count *= digits->extent[i];
    }
    return true;
}

/* Positions outside of the tensor are not accessed. */
static bool clip(Side *side, int64_t extent) {
    if (side->lo < 0) {
        int64_t outside = (-side->lo + side->step - 1) / side->step;
        side->lo += outside * side->step, side->count -= outside;
    }
    if (side->count > 0 && side->lo < extent &&
        (extent - 1 - side->lo) / side->step + 1 < side->count)
        side->count = (extent - 1 - side->lo) / side->step + 1;
    return side->count > 0 && side->lo < extent;
}

static bool index_extent(const Env *env, const Index *index, int64_t *extent) {
    *extent = index->extent;
    return (index->extent >= 0 || evaluate(env, index->dynamic, extent)) && *extent > 0 &&
           *extent < INT32_MAX;
}

/* False: it accesses nothing, or not a single step along each axis separately */
static bool sides_of(const Prog *prog, const Env *env, const IndexSpace *space,
                     const Access *access, Side *sides) {
    bool used[PROG_MAX_INDEXES] = {false};
    for (int d = 0; d < access->rank; d++) {
        Digits digits = {0};
        int64_t extent;
        Side *side = &sides[d];
        if (!access->affine[d].is || !evaluate(env, access->affine[d].base, &side->lo))
            return false;
        for (int i = 0; i < space->count; i++) {
            int64_t coef = access->affine[d].coef[i], count;
            if (coef == 0) continue;
            if (used[i] || !index_extent(env, &space->items[i], &count) || coef < -INT32_MAX ||
                coef > INT32_MAX)
                return false;
            used[i] = true;
            if (coef < 0) side->lo += coef * (count - 1);
            if (count > 1) add_digit(&digits, coef < 0 ? -coef : coef, count);
        }
        if (!join_digits(&digits, side) ||
            !evaluate(env, prog->params.items[access->object].extents[d], &extent))
            return false;
        if (!clip(side, extent)) return false;
    }
    return true;
}

/* The greatest common divisor, and a number `times` with factor * times = divisor modulo the
 * modulus */
static int64_t divisor_and_times(int64_t factor, int64_t modulus, int64_t *times) {
    int64_t last = modulus, rest = factor, before = 0, now = 1;
    while (rest != 0) {
        int64_t whole = last / rest, next = last - whole * rest, more = before - whole * now;
        last = rest, before = now;
        rest = next, now = more;
    }
    *times = before;
    return last;
}

static int64_t last_of(const Side *side) { return side->lo + side->step * (side->count - 1); }

/* The first common position. Positions of `a` that are also on the steps of `b` are the least
 * common multiple of both steps apart. */
static bool sides_meet(const Side *a, const Side *b, int64_t *at) {
    int64_t lo = a->lo > b->lo ? a->lo : b->lo, times;
    int64_t hi = last_of(a) < last_of(b) ? last_of(a) : last_of(b);
    int64_t divisor = divisor_and_times(a->step, b->step, &times), every = b->step / divisor;
    if (lo > hi || (b->lo - a->lo) % divisor != 0) return false;
    int64_t number = (b->lo - a->lo) / divisor % every * (times % every) % every;
    int64_t first = a->lo + a->step * (number < 0 ? number + every : number);
    int64_t multiple = a->step * every;
    *at = first < lo ? first + (lo - first + multiple - 1) / multiple * multiple : first;
    return *at <= hi;
}

bool race_meet(const Touch *a, const Touch *b, int64_t *at) {
    const Access *one = a->place->access, *two = b->place->access;
    if (one->object != two->object) return false;
    for (int d = 0; d < one->rank; d++)
        if (!sides_meet(&a->sides[d], &b->sides[d], &at[d])) return false;
    return true;
}

/* ---- steps of a process ---------------------------------------------------------------------- */

/* The first place of a statement; NULL: none */
static Place *place_of(const Places *places, const Tile *tile) {
    for (size_t i = 0; i < places->count; i++)
        if (places->items[i].tile == tile) return &places->items[i];
    return NULL;
}

static bool is_wanted(const Row *row, const void *places) {
    return row->tile && place_of(places, row->tile);
}

static void see(Run *run, const Position *standing, const Row *row, const Env *env) {
    Follow *f = run->data;
    Place *place = place_of(f->places, row->tile);
    for (; place < f->places->items + f->places->count && place->tile == row->tile; place++) {
        Touch touch = {
            .place = place, .process = standing->process, .instance = standing->instance};
        touch.time = run->machine->events[standing->process],
        touch.clock = f->clocks[standing->process];
        if (place->guarded ||
            !sides_of(f->prog, env, &row->tile->space, place->access, touch.sides))
            continue;
        if (place->transfer == TRANSFER_LANES || place->transfer == TRANSFER_LOADED) {
            int handle = row->tile->target.object;
            touch.pipe = place->role->handles.items[handle].pipe;
            touch.number = held_number(standing, handle);
        }
        vec_push(f->arena, &f->touches, touch);
    }
}

/* ---- clocks ---------------------------------------------------------------------------------- */

static void join_clock(const Follow *f, int *clock, const int *other) {
    for (int i = 0; other && i < f->width; i++)
        if (other[i] > clock[i]) clock[i] = other[i];
}

static int **clock_at(const Follow *f, Clocks *clocks, int number) {
    while ((int)clocks->count <= number) vec_push(f->arena, clocks, NULL);
    return &clocks->items[number];
}

static void hand_over(const Follow *f, int **to, const int *clock) {
    if (!*to) *to = NEW_ARRAY(f->arena, int, f->width);
    join_clock(f, *to, clock);
}

static void acquire(const Follow *f, const Event *event, int *clock) {
    struct Handed *ring = &f->rings[event->pipe];
    int before = event->number - f->prog->pipes.items[event->pipe].stages;
    if (event->produce && before >= 0) join_clock(f, clock, *clock_at(f, &ring->empty, before));
    if (event->produce) return;
    join_clock(f, clock, *clock_at(f, &ring->full, event->number));
    int *copies = &clock[f->count + event->pipe];
    if (*copies <= event->number) *copies = event->number + 1;
}

static void step(Run *run, const Position *standing, const Event *event) {
    Follow *f = run->data;
    int p = standing->process, *clock = NEW_ARRAY(f->arena, int, f->width);
    join_clock(f, clock, f->clocks[p]);
    clock[p] = run->machine->events[p];
    int **passed = f->passed[standing->member->role - f->prog->roles.items];
    switch (event->kind) {
    case STEP_ACQUIRE: acquire(f, event, clock); break;
    case STEP_RELEASE:
        hand_over(
            f,
            clock_at(f, event->produce ? &f->rings[event->pipe].full : &f->rings[event->pipe].empty,
                     event->number),
            clock);
        break;
    case STEP_TAKE: join_clock(f, clock, passed[event->pipe]); break;
    case STEP_PASS: hand_over(f, &passed[event->pipe], clock); break;
    }
    f->clocks[p] = clock;
}

/* Sorts accesses by process, and in each by time */
static void sort_touches(Follow *f) {
    for (int p = 0; p < f->count; p++)
        for (size_t i = 0; i < f->touches.count; i++)
            if (f->touches.items[i].process == p)
                vec_push(f->arena, &f->block->touches, f->touches.items[i]);
}

static void open_clocks(Follow *f) {
    size_t roles = f->prog->roles.count;
    f->width = f->count + (int)f->prog->pipes.count;
    f->clocks = NEW_ARRAY(f->arena, const int *, f->count + 1);
    for (int p = 0; p < f->count; p++) f->clocks[p] = NEW_ARRAY(f->arena, int, f->width);
    f->rings = arena_alloc(f->arena, (f->prog->pipes.count + 1) * sizeof *f->rings);
    f->passed = NEW_ARRAY(f->arena, int **, roles + 1);
    for (size_t r = 0; r < roles; r++)
        f->passed[r] = NEW_ARRAY(f->arena, int *, f->prog->roles.items[r].turns + 1);
}

Traced *race_traced(Arena *arena, const Prog *prog, const Places *places) {
    return trace_new(arena, prog, ALL_PIPES, is_wanted, places);
}

Block *race_block(Arena *arena, Traced *traced, Places *places, const Sizes *sizes,
                  const int64_t *extents, int64_t tile) {
    const Prog *prog = traced->prog;
    BlockRun block = {.sizes = sizes, .first = tile, .tiles = 1};
    Follow f = {.arena = arena, .prog = prog, .places = places, .block = NEW(arena, Block)};
    for (size_t a = prog->axes.count, rest = (size_t)tile; a-- > 0; rest /= (size_t)extents[a]) {
        f.block->axes[a] = (int64_t)(rest % (size_t)extents[a]);
        block.extents[a] = extents[a];
    }
    Run *run = trace_run_new(arena, traced, &block, true, EVENTS_MOST);
    f.block->processes = f.count = (int)run->machine->processes.count;
    open_clocks(&f);
    run->tile = see, run->event = step, run->data = &f;
    run->machine->halts = true; /* a process runs as far as its rows are known */
    Outcome outcome = trace_run(run);
    f.block->cut = outcome == OUTCOME_BEYOND;
    for (int p = 0; p < f.count; p++) f.block->cut |= run->machine->halted[p];
    sort_touches(&f);
    return f.block;
}

bool race_before(const Block *block, const Touch *a, const Touch *b) {
    if (a->place->transfer == TRANSFER_STORED) return false;
    if (a->place->transfer != TRANSFER_PLAIN)
        return b->clock[block->processes + a->pipe] > a->number;
    if (a->place->write &&
        (b->place->transfer == TRANSFER_LOADED || b->place->transfer == TRANSFER_STORED))
        return false;
    return a->process == b->process || b->clock[a->process] > a->time;
}
