/* What one block touches at given sizes. Each instance of each role is a process; its steps come from net.c. One greedy run of all
 * of them decides what comes before what: a process carries a clock, how many steps of every process certainly lie behind it, which a
 * release hands to those who acquire the stage, and the end of a turn to the next one. Copies into a stage are processes of their own,
 * one a pipe, that have come as far as the last stage that somebody has acquired full. */
#include "check/races.h"

#include <stdlib.h>

#define STEPS_MOST 1000 /* of a process */
#define MEET_MOST 4096 /* elements of two walks with steps that are compared */

typedef struct Process {
    Trace trace;
    const int **clocks; /* by steps done; NULL from where it was never reached */
} Process;

typedef struct Follow {
    Arena *arena;
    const Prog *prog;
    Places *places;
    Block *block;
    int number; /* of the process that is unrolled */
    Process *processes;
    int count, width; /* processes; and copies of the pipes behind them */
    struct Ring {
        int *filled, *drained; /* by number: of so many processes */
        int **full, **empty;   /* by number: clocks that they have handed over */
    } *rings;
    int ***passed;   /* by role and turn: the clock of the last one who had it */
    int **turned;    /* by role and turn: how often it was passed on */
} Follow;

/* ---- elements --------------------------------------------------------------------------------------------------------- */

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

/* The walk of all digits as one with a single step; false where it is none */
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

/* What lies outside of the tensor is not touched. */
static bool clip(Side *side, int64_t extent) {
    if (side->lo < 0) {
        int64_t outside = (-side->lo + side->step - 1) / side->step;
        side->lo += outside * side->step, side->count -= outside;
    }
    if (side->count > 0 && side->lo < extent && (extent - 1 - side->lo) / side->step + 1 < side->count)
        side->count = (extent - 1 - side->lo) / side->step + 1;
    return side->count > 0 && side->lo < extent;
}

static bool index_extent(const Env *env, const Index *index, int64_t *extent) {
    *extent = index->extent;
    return (index->extent >= 0 || evaluate(env, index->dynamic, extent)) && *extent > 0 && *extent < INT32_MAX;
}

/* False: it touches nothing, or no walk with one step along each axis for itself */
static bool sides_of(const Prog *prog, const Env *env, const IndexSpace *space, const Access *access, Side *sides) {
    bool used[PROG_MAX_INDEXES] = {false};
    for (int d = 0; d < access->rank; d++) {
        Digits digits = {0};
        int64_t extent;
        Side *side = &sides[d];
        if (!access->affine[d].is || !evaluate(env, access->affine[d].base, &side->lo)) return false;
        for (int i = 0; i < space->count; i++) {
            int64_t coef = access->affine[d].coef[i], count;
            if (coef == 0) continue;
            if (used[i] || !index_extent(env, &space->items[i], &count) || coef < -INT32_MAX || coef > INT32_MAX) return false;
            used[i] = true;
            if (coef < 0) side->lo += coef * (count - 1);
            if (count > 1) add_digit(&digits, coef < 0 ? -coef : coef, count);
        }
        if (!join_digits(&digits, side) || !evaluate(env, prog->params.items[access->object].extents[d], &extent)) return false;
        if (!clip(side, extent)) return false;
    }
    return true;
}

static bool sides_meet(const Side *a, const Side *b, int64_t *at) {
    if (a->count == 1 || (b->count > 1 && a->count < b->count)) {
        const Side *swap = a;
        a = b, b = swap;
    }
    if (a->step == 1 && (b->step == 1 || b->count == 1)) {
        *at = a->lo > b->lo ? a->lo : b->lo;
        return *at < a->lo + a->count && *at < b->lo + b->count;
    }
    for (int64_t i = 0; i < b->count && i < MEET_MOST; i++) {
        *at = b->lo + i * b->step;
        if (*at >= a->lo && (*at - a->lo) % a->step == 0 && (*at - a->lo) / a->step < a->count) return true;
    }
    return false;
}

bool race_meet(const Touch *a, const Touch *b, int64_t *at) {
    const Access *one = a->place->access, *two = b->place->access;
    if (one->object != two->object) return false;
    for (int d = 0; d < one->rank; d++)
        if (!sides_meet(&a->sides[d], &b->sides[d], &at[d])) return false;
    return true;
}

/* ---- what a process does ---------------------------------------------------------------------------------------------- */

static int by_statement(const void *a, const void *b) {
    const Place *one = a, *two = b;
    return one->stmt < two->stmt ? -1 : one->stmt > two->stmt;
}

static void see(Trace *trace, const Stmt *stmt, const Env *env, const int *held) {
    Follow *f = trace->data;
    Place wanted = {.stmt = stmt};
    Place *place = bsearch(&wanted, f->places->items, f->places->count, sizeof *place, by_statement);
    if (!place) return;
    while (place > f->places->items && place[-1].stmt == stmt) place--;
    for (; place < f->places->items + f->places->count && place->stmt == stmt; place++) {
        Touch touch = {.place = place, .process = f->number, .instance = trace->instance, .time = (int)trace->steps.count};
        f->block->work += 4;
        if (!sides_of(f->prog, env, &stmt->tile->space, place->access, touch.sides)) continue;
        if (place->manner == MANNER_LANES || place->manner == MANNER_LOADED) {
            int handle = stmt->tile->target.object;
            touch.pipe = place->role->handles.items[handle].pipe;
            touch.number = held[handle];
        }
        vec_push(f->arena, &f->block->touches, touch);
    }
}

/* ---- the run ---------------------------------------------------------------------------------------------------------- */

static void join_clock(const Follow *f, int *clock, const int *other) {
    for (int i = 0; other && i < f->width; i++)
        if (other[i] > clock[i]) clock[i] = other[i];
}

static int takers(const Prog *prog, int role, int pipe) { return role_takes(&prog->roles.items[role], pipe); }

static int takers_of_all(const Prog *prog, int pipe) {
    int count = 0;
    for (size_t c = 0; c < prog->pipes.items[pipe].consumers.count; c++)
        count += takers(prog, prog->pipes.items[pipe].consumers.items[c], pipe);
    return count;
}

static bool can_go(const Follow *f, const Trace *trace, const Step *step) {
    const Pipe *pipes = f->prog->pipes.items;
    if (step->kind == STEP_TAKE) return f->turned[trace->role - f->prog->roles.items][step->pipe] == step->number;
    if (step->kind != STEP_ACQUIRE) return true;
    if (!step->produce) return f->rings[step->pipe].filled[step->number] == takers(f->prog, pipes[step->pipe].producer, step->pipe);
    int before = step->number - pipes[step->pipe].stages;
    return before < 0 || f->rings[step->pipe].drained[before] == takers_of_all(f->prog, step->pipe);
}

static void hand_over(const Follow *f, int **to, const int *clock) {
    if (!*to) *to = NEW_ARRAY(f->arena, int, f->width);
    join_clock(f, *to, clock);
}

static void go(const Follow *f, const Trace *trace, const Step *step, int *clock) {
    struct Ring *ring = &f->rings[step->pipe];
    size_t role = (size_t)(trace->role - f->prog->roles.items);
    int before;
    switch (step->kind) {
    case STEP_ACQUIRE:
        before = step->number - f->prog->pipes.items[step->pipe].stages;
        if (step->produce && before >= 0) join_clock(f, clock, ring->empty[before]);
        if (step->produce) break;
        join_clock(f, clock, ring->full[step->number]);
        if (clock[f->count + step->pipe] <= step->number) clock[f->count + step->pipe] = step->number + 1;
        break;
    case STEP_RELEASE:
        ++(step->produce ? ring->filled : ring->drained)[step->number];
        hand_over(f, step->produce ? &ring->full[step->number] : &ring->empty[step->number], clock);
        break;
    case STEP_TAKE: join_clock(f, clock, f->passed[role][step->pipe]); break;
    case STEP_PASS:
        f->turned[role][step->pipe]++;
        hand_over(f, &f->passed[role][step->pipe], clock);
        break;
    }
}

static void run(const Follow *f) {
    for (bool moved = true; moved;) {
        moved = false;
        for (int p = 0; p < f->count; p++) {
            Process *process = &f->processes[p];
            Trace *trace = &process->trace;
            for (; trace->at < trace->steps.count && can_go(f, trace, &trace->steps.items[trace->at]); moved = true) {
                int *clock = NEW_ARRAY(f->arena, int, f->width);
                join_clock(f, clock, process->clocks[trace->at]);
                clock[p] = (int)++trace->at;
                go(f, trace, &trace->steps.items[trace->at - 1], clock);
                process->clocks[trace->at] = clock;
                f->block->work++;
            }
        }
    }
}

static void open_rings(Follow *f) {
    size_t pipes = f->prog->pipes.count, roles = f->prog->roles.count;
    int numbers = 1; /* of stages */
    for (int p = 0; p < f->count; p++)
        for (size_t i = 0; i < f->processes[p].trace.steps.count; i++)
            if (f->processes[p].trace.steps.items[i].number >= numbers) numbers = f->processes[p].trace.steps.items[i].number + 1;
    f->rings = arena_alloc(f->arena, (pipes + 1) * sizeof *f->rings);
    for (size_t p = 0; p < pipes; p++)
        f->rings[p] = (struct Ring){NEW_ARRAY(f->arena, int, numbers), NEW_ARRAY(f->arena, int, numbers),
                                    NEW_ARRAY(f->arena, int *, numbers), NEW_ARRAY(f->arena, int *, numbers)};
    f->passed = NEW_ARRAY(f->arena, int **, roles + 1), f->turned = NEW_ARRAY(f->arena, int *, roles + 1);
    for (size_t r = 0; r < roles; r++) {
        f->passed[r] = NEW_ARRAY(f->arena, int *, f->prog->roles.items[r].turns + 1);
        f->turned[r] = NEW_ARRAY(f->arena, int, f->prog->roles.items[r].turns + 1);
    }
}

static void keep_reached(Follow *f) {
    Block *block = f->block;
    size_t kept = 0;
    for (size_t i = 0; i < block->touches.count; i++) {
        Touch touch = block->touches.items[i];
        touch.clock = f->processes[touch.process].clocks[touch.time];
        if (touch.clock) block->touches.items[kept++] = touch;
    }
    block->touches.count = kept;
}

Block *race_block(Arena *arena, const Prog *prog, Places *places, const Sizes *sizes, const int64_t *extents, int64_t tile) {
    Follow f = {.arena = arena, .prog = prog, .places = places, .block = NEW(arena, Block)};
    for (size_t r = 0; r < prog->roles.count; r++) f.count += prog->roles.items[r].instances;
    f.width = f.count + (int)prog->pipes.count;
    f.block->processes = f.count;
    f.processes = NEW_ARRAY(arena, Process, f.count + 1);
    for (size_t a = prog->axes.count, rest = (size_t)tile; a-- > 0; rest /= (size_t)extents[a])
        f.block->axes[a] = (int64_t)(rest % (size_t)extents[a]);
    for (size_t r = 0; r < prog->roles.count; r++)
        for (int k = 0; k < prog->roles.items[r].instances; k++, f.number++) {
            Trace *trace = &f.processes[f.number].trace;
            *trace = (Trace){.role = &prog->roles.items[r], .instance = k, .most = STEPS_MOST, .seen = see, .data = &f};
            (void)net_trace(arena, prog, sizes, extents, tile, 1, trace); /* as far as it can be followed */
            f.processes[f.number].clocks = NEW_ARRAY(arena, const int *, trace->steps.count + 1);
            f.processes[f.number].clocks[0] = NEW_ARRAY(arena, int, f.width);
            f.block->work += (int64_t)trace->steps.count + 8;
        }
    open_rings(&f);
    run(&f);
    keep_reached(&f);
    return f.block;
}

bool race_before(const Block *block, const Touch *a, const Touch *b) {
    if (a->place->manner == MANNER_STORED) return false;
    if (a->place->manner != MANNER_PLAIN) return b->clock[block->processes + a->pipe] > a->number;
    if (a->place->write && (b->place->manner == MANNER_LOADED || b->place->manner == MANNER_STORED)) return false;
    return a->process == b->process || b->clock[a->process] > a->time;
}
