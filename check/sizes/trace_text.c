/* The message about a deadlock at given sizes: P0460. */
#include "check/deadlock/deadlock.h"
#include "check/sizes/trace.h"

#define WAITS_MOST   64       /* most waits that are followed for a message */
#define PAST_MOST    64       /* most releases that are recorded for it */
#define PAST_SHOWN   4        /* and shown */
#define DEEPER_MOST  8        /* most additional stages of a ring that are tried as help */
#define DEEPER_STEPS 10000000 /* steps of the meter for that */

typedef struct Steps { /* of a process: all its events, and the number executed so far */
    const Role *role;
    int instance;
    Events events;
    size_t at;
    Position place; /* its position at the end of the run */
    int leave;      /* the row of the LEAVE after its last event, -1: none */
} Steps;

typedef struct Past { /* a release in the run */
    int process;
    Event event;
} Past;

typedef struct Stuck {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    VEC(Steps) processes;
    Past past[PAST_MOST]; /* ring buffer of the last ones */
    size_t past_count;
} Stuck;

/* ---- awaited events -------------------------------------------------------------------------- */

static const Event *waits_at(const Stuck *stuck, int process) {
    const Steps *steps = &stuck->processes.items[process];
    return steps->at < steps->events.count ? &steps->events.items[steps->at] : NULL;
}

static bool same_event(const Event *a, const Event *b) {
    return a->kind == b->kind && a->pipe == b->pipe && a->produce == b->produce &&
           a->number == b->number;
}

typedef struct Awaited { /* the event that another process waits for */
    int process;         /* the process that still has to do it, -1: none */
    const Event *event;  /* NULL: it never happens */
} Awaited;

static Awaited find_awaited(const Stuck *stuck, const Role *role, Event wanted) {
    for (size_t p = 0; p < stuck->processes.count; p++) {
        const Steps *steps = &stuck->processes.items[p];
        if (steps->role != role) continue;
        for (size_t i = steps->at; i < steps->events.count; i++)
            if (same_event(&steps->events.items[i], &wanted))
                return (Awaited){(int)p, &steps->events.items[i]};
    }
    return (Awaited){-1, NULL};
}

static Awaited awaited(const Stuck *stuck, int process) {
    const Event *wait = waits_at(stuck, process);
    const Role *roles = stuck->prog->roles.items;
    if (wait->kind == STEP_TAKE)
        return find_awaited(
            stuck, stuck->processes.items[process].role,
            (Event){.kind = STEP_PASS, .pipe = wait->pipe, .number = wait->number - 1});
    const Pipe *pipe = &stuck->prog->pipes.items[wait->pipe];
    Event wanted = {.kind = STEP_RELEASE,
                    .produce = !wait->produce,
                    .pipe = wait->pipe,
                    .number = wait->number};
    if (!wait->produce) {
        Awaited will = find_awaited(stuck, &roles[pipe->producer], wanted);
        /* ended, or skips it */
        for (int p = 0; will.process < 0 && (size_t)p < stuck->processes.count; p++)
            if (stuck->processes.items[p].role == &roles[pipe->producer]) will.process = p;
        return will;
    }
    wanted.number -= pipe->stages;
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        Awaited will = find_awaited(stuck, &roles[pipe->consumers.items[i]], wanted);
        if (will.process >= 0) return will;
    }
    return (Awaited){-1, NULL};
}

/* ---- text ------------------------------------------------------------------------------------ */

static const char *name_of(const Stuck *stuck, int process) {
    if (process < 0) return "another role";
    const Steps *steps = &stuck->processes.items[process];
    if (steps->instance < 0) return arena_printf(stuck->arena, "`%s`", steps->role->name);
    return arena_printf(stuck->arena, "instance %d of `%s`", steps->instance, steps->role->name);
}

static const char *wait_text(const Stuck *stuck, int process) {
    const Event *wait = waits_at(stuck, process);
    const char *who = name_of(stuck, process),
               *whom = name_of(stuck, awaited(stuck, process).process);
    if (wait->kind == STEP_TAKE)
        return arena_printf(stuck->arena, "%s waits for its turn, after %s", who, whom);
    const Pipe *pipe = &stuck->prog->pipes.items[wait->pipe];
    int stage = (wait->produce ? wait->number - pipe->stages : wait->number) + 1;
    const char *verb = wait->produce ? "release" : "produce";
    return arena_printf(stuck->arena, "%s waits for %s to %s stage %d of `%s`", who, whom, verb,
                        stage, pipe->name);
}

static bool is_among(const int *processes, int count, int process) {
    for (int i = 0; i < count; i++)
        if (processes[i] == process) return true;
    return false;
}

/* The last releases of the waiting processes */
static void note_releases(const Stuck *stuck, Diag *diag, const int *waiting, int count) {
    const Past *shown[PAST_SHOWN];
    int found = 0;
    Str text = str_new(stuck->arena);
    for (size_t back = 1; back <= stuck->past_count && back <= PAST_MOST && found < PAST_SHOWN;
         back++) {
        const Past *past = &stuck->past[(stuck->past_count - back) % PAST_MOST];
        if (is_among(waiting, count, past->process)) shown[found++] = past;
    }
    while (found-- > 0) {
        const Event *event = &shown[found]->event;
        str_printf(
            &text, "%s%s %s stage %d of `%s` (%s)", text.length ? ", " : "",
            name_of(stuck, shown[found]->process), event->produce ? "produced" : "released",
            event->number + 1, stuck->prog->pipes.items[event->pipe].name,
            source_where(stuck->arena, stuck->prog->source, event->place.lo, stuck->prog->span.lo));
    }
    if (text.length) diag_note(stuck->diags, diag, "before that, %s", text.text);
}

/* The cycle: role -> pipe -> role */
static void note_cycle(const Stuck *stuck, Diag *diag, const int *waiting, int count) {
    Str text = str_new(stuck->arena);
    if (count < 2) return;
    for (int i = 0; i < count; i++) {
        const Event *wait = waits_at(stuck, waiting[i]);
        str_printf(&text, "%s -> ", name_of(stuck, waiting[i]));
        if (wait->kind == STEP_TAKE)
            str_add(&text, "its turn -> ");
        else
            str_printf(&text, "`%s` -> ", stuck->prog->pipes.items[wait->pipe].name);
    }
    diag_note(stuck->diags, diag, "cycle: %s%s", text.text, name_of(stuck, waiting[0]));
}

/* Number of stages that suffices at all counts; 0: no larger number does */
static int enough_stages(const Stuck *stuck, Pipe *pipe, Budget work) {
    int stages = pipe->stages;
    bool right = false;
    for (int more = 1; more <= DEEPER_MOST && !right; more++) {
        pipe->stages = stages + more;
        right = deadlock_proves(stuck->arena, stuck->prog, work, &(Undecided){0});
    }
    int enough = pipe->stages;
    pipe->stages = stages;
    return right ? enough : 0;
}

/* Help for a ring whose empty stages are awaited: a sufficient number of stages */
static bool suggest_stages(const Stuck *stuck, Diag *diag, const int *waiting, int count) {
    Budget work = arena_budget(stuck->arena, DEEPER_STEPS);
    for (int i = 0; i < count; i++) {
        const Event *wait = waits_at(stuck, waiting[i]);
        if (wait->kind != STEP_ACQUIRE || !wait->produce) continue;
        Pipe *pipe = &stuck->prog->pipes.items[wait->pipe];
        int enough = enough_stages(stuck, pipe, work);
        if (!enough) continue;
        diag_help(stuck->diags, diag,
                  "give the ring %d stages: `pipe %s[%d]`; or let a role release before it waits, "
                  "or acquire in the other order",
                  enough, pipe->name, enough);
        return true;
    }
    return false;
}

/* ---- the message ----------------------------------------------------------------------------- */

/* The processes that wait for each other: follows the waits from the first waiting one */
static int find_cycle(const Stuck *stuck, int *ring) {
    int next = -1, seen[WAITS_MOST] = {0}, count = 0, begin = 0;
    for (size_t p = 0; p < stuck->processes.count && next < 0; p++)
        if (waits_at(stuck, (int)p)) next = (int)p;
    for (bool again = false; next >= 0 && waits_at(stuck, next) && count < WAITS_MOST && !again;) {
        seen[count++] = next;
        next = awaited(stuck, next).process;
        for (int i = 0; i < count; i++)
            if (seen[i] == next) begin = i, again = true;
    }
    for (int i = begin; i < count; i++) ring[i - begin] = seen[i];
    return count - begin;
}

/* At most one label per place, as many as fit */
static void label(const Stuck *stuck, Diag *diag, Span place, const char *text) {
    bool taken = diag->label_count == DIAG_MAX_LABELS;
    for (int i = 0; i < diag->label_count; i++) taken |= diag->labels[i].span.lo == place.lo;
    if (!taken) diag_label(stuck->diags, diag, place, "%s", text);
}

/* Labels the place of an awaited event */
static void label_awaited(const Stuck *stuck, Diag *diag, Awaited awaited) {
    const Event *event = awaited.event;
    if (!event || event->kind != STEP_RELEASE) return;
    label(stuck, diag, event->place,
          arena_printf(stuck->arena, "%s would %s stage %d of `%s` here, after its wait",
                       name_of(stuck, awaited.process), event->produce ? "produce" : "release",
                       event->number + 1, stuck->prog->pipes.items[event->pipe].name));
}

/* The event of the process of ring[i] that the next one waits for; NULL: unknown */
static const Event *served_by(const Stuck *stuck, const int *ring, int count, int i) {
    return awaited(stuck, ring[(i + count - 1) % count]).event;
}

/* Labels the exit before its wait that skips the later event */
static bool label_exit(const Stuck *stuck, Diag *diag, int process, const Event *later) {
    const Steps *steps = &stuck->processes.items[process];
    if (steps->leave < 0) return false;
    const FlowCode *code = steps->place.member->code;
    const Row *leave = &code->rows.items[steps->leave];
    if (later->row < steps->leave || later->row > code->regions.items[leave->target].end)
        return false;
    label(stuck, diag, leave->head,
          arena_printf(stuck->arena, "%s leaves here before its wait", name_of(stuck, process)));
    return true;
}

/* Labels the loop whose iteration, or the condition whose arm, the process waits in: the
 * innermost one that puts the wait before the later event */
static void label_reason(const Stuck *stuck, Diag *diag, int process, const Event *later) {
    const Steps *steps = &stuck->processes.items[process];
    const FlowCode *code = steps->place.member->code;
    int wait = *steps->place.step / 2, at = code->rows.items[wait].region;
    if (!later || label_exit(stuck, diag, process, later)) return;
    for (; at >= 0; at = code->regions.items[at].parent) {
        const Region *region = &code->regions.items[at];
        bool after = later->row > wait && later->row < region->end;
        if (region->kind == REGION_IF) {
            label(stuck, diag, region->head,
                  arena_printf(stuck->arena, "%s waits where this %s", name_of(stuck, process),
                               wait < region->otherwise ? "holds" : "does not hold"));
            return;
        }
        if (!region_loops(region) || after) continue;
        label(stuck, diag, region->head,
              arena_printf(stuck->arena, "%s waits in iteration %d of this loop",
                           name_of(stuck, process),
                           (int)steps->place.trips[region->depth - 1] + 1));
        return;
    }
}

/* "`a`, `b` and `c`" */
static const char *cycle_names(const Stuck *stuck, const int *ring, int count) {
    Str text = str_new(stuck->arena);
    for (int i = 0; i < count; i++)
        str_printf(&text, "%s%s",
                   i == 0           ? ""
                   : i + 1 == count ? " and "
                                    : ", ",
                   name_of(stuck, ring[i]));
    return text.text;
}

static Diag *open_diag(const Stuck *stuck, const int *ring, int count) {
    const Role *role = stuck->processes.items[ring[0]].role;
    Span place = waits_at(stuck, ring[0])->place;
    bool alone = true;
    for (int i = 0; i < count; i++) alone &= stuck->processes.items[ring[i]].role == role;
    if (alone && count > 1)
        return diag_at(stuck->diags, P0460, place,
                       "deadlock: instances of `%s` wait for each other", role->name);
    if (count > 1)
        return diag_at(stuck->diags, P0460, place, "deadlock: %s wait for each other",
                       cycle_names(stuck, ring, count));
    return diag_at(stuck->diags, P0460, place, "role `%s` waits forever", role->name);
}

static void refuse(const Stuck *stuck, const BlockRun *block) {
    int ring[WAITS_MOST] = {0}, count = find_cycle(stuck, ring);
    Diag *diag = open_diag(stuck, ring, count);
    diag_primary(stuck->diags, diag, "%s", wait_text(stuck, ring[0]));
    for (int i = 1; i < count; i++)
        label(stuck, diag, waits_at(stuck, ring[i])->place, wait_text(stuck, ring[i]));
    for (int i = 0; i < count; i++)
        label_reason(stuck, diag, ring[i], served_by(stuck, ring, count, i));
    for (int i = 0; i < count; i++) label_awaited(stuck, diag, awaited(stuck, ring[i]));
    Str where = str_new(stuck->arena);
    sizes_print(block->sizes, &where);
    str_printf(&where, "%s%lld tile%s per block", where.length ? ", " : "", (long long)block->tiles,
               block->tiles == 1 ? "" : "s");
    if (block->reads) reads_print(block->reads, stuck->prog, &where);
    diag_note(stuck->diags, diag, "with %s", where.text);
    note_releases(stuck, diag, ring, count);
    note_cycle(stuck, diag, ring, count);
    if (!suggest_stages(stuck, diag, ring, count))
        diag_help(stuck->diags, diag,
                  "let one role release before it waits, acquire in the other order, or give a "
                  "ring more stages");
}

static void note_leave(Run *run, const Position *place, const Row *row) {
    Stuck *stuck = run->data;
    stuck->processes.items[place->process].leave = (int)(row - place->member->code->rows.items);
}

static void note_past(Run *run, const Position *place, const Event *event) {
    Stuck *stuck = run->data;
    stuck->processes.items[place->process].leave = -1;
    bool implied = place->member->code->rows.items[event->row].every;
    if (event->kind == STEP_RELEASE && !implied)
        stuck->past[stuck->past_count++ % PAST_MOST] = (Past){place->process, *event};
}

void trace_refuse(Arena *arena, Prog *prog, Traced *traced, Diags *diags, const BlockRun *block) {
    Stuck stuck = {.arena = arena, .prog = prog, .diags = diags};
    Run *run = trace_run_new(arena, traced, block, false, TRACE_EVENTS);
    run->event = note_past, run->leave = note_leave, run->data = &stuck;
    if (block->reads) block->reads->count = 0;
    for (size_t p = 0; p < run->machine->processes.count; p++) {
        const Process *process = &run->machine->processes.items[p];
        Steps steps = {.role = run->machine->members.items[process->member].role,
                       .instance = process->instance,
                       .leave = -1};
        (void)trace_events(arena, traced, block, steps.role, steps.instance, &steps.events);
        vec_push(arena, &stuck.processes, steps);
    }
    (void)trace_run(run);
    for (size_t p = 0; p < stuck.processes.count; p++) {
        stuck.processes.items[p].at = (size_t)run->machine->events[p];
        stuck.processes.items[p].place = machine_position(run->machine, &run->state, (int)p);
    }
    refuse(&stuck, block);
}
