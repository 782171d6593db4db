/* Arrivals of an instance at the stages that it holds.
 *
 * A state describes all threads of the instance on one path: for each handle the number of
 * arrivals at its stage, as an interval. A condition that is the same in all threads takes all
 * of them into one arm: at the join either arm happened, and the interval encloses both. A
 * condition that differs between lanes takes some threads into each arm: at the join both
 * happened, and the counts of the arms are added. Values are computed per thread, so `lane == 0`
 * is known; threads whose path is unknown count as possible. A loop of unknown length adds any
 * multiple of one iteration's count. */
#include "flow/arrivals.h"
#include "flow/solve.h"
#include "prog/eval.h"

#include <string.h>

#define WARPS_MOST 32
#define WARP_LANES 32

typedef struct Threads { /* of the instance, one bit each */
    uint32_t warps[WARPS_MOST];
} Threads;

typedef struct Value { /* of a variable, per thread; immutable */
    Threads known;
    int64_t at[]; /* by thread */
} Value;

typedef struct Count { /* arrivals at the stage of a handle */
    int64_t least, most;
    bool attained;
    uint32_t sure, came; /* warps that certainly, and possibly, have arrived */
    uint32_t touched;    /* warps that accessed the stage since their last arrival */
    Span touched_at, arrived_at;
    const Arrive *arrives;
} Count;

/* an IF whose condition differs between threads, and the counts before it */
typedef struct Parting {
    int region;
    const Count *counts;
    const struct Parting *outer;
} Parting;

typedef struct State {
    Threads sure, may;    /* threads on this path */
    Count *counts;        /* by handle */
    const Value **values; /* by local; NULL: unknown */
    const Parting *parting;
} State;

typedef struct Rules {
    const Prog *prog;
    const Role *role;
    int warps;
    Arrivals *out;
} Rules;

/* ---- threads --------------------------------------------------------------------------------- */

static bool any(const Threads *threads) {
    uint32_t all = 0;
    for (int w = 0; w < WARPS_MOST; w++) all |= threads->warps[w];
    return all != 0;
}

static int64_t count_of(const Threads *threads) {
    int64_t count = 0;
    for (int w = 0; w < WARPS_MOST; w++) count += __builtin_popcount(threads->warps[w]);
    return count;
}

static uint32_t warps_of(const Threads *threads) {
    uint32_t warps = 0;
    for (int w = 0; w < WARPS_MOST; w++) warps |= (uint32_t)(threads->warps[w] != 0) << w;
    return warps;
}

static bool has(const Threads *threads, int thread) {
    return threads->warps[thread / WARP_LANES] >> (thread % WARP_LANES) & 1;
}

static void add(Threads *threads, int thread) {
    threads->warps[thread / WARP_LANES] |= UINT32_C(1) << (thread % WARP_LANES);
}

/* Joins two paths of which all threads took one */
static bool either(State *to, const State *from) {
    State before = *to;
    for (int w = 0; w < WARPS_MOST; w++)
        to->sure.warps[w] &= from->sure.warps[w], to->may.warps[w] |= from->may.warps[w];
    return memcmp(&before.sure, &to->sure, sizeof before.sure) ||
           memcmp(&before.may, &to->may, sizeof before.may);
}

/* Joins threads that diverged */
static bool both(State *to, const State *from) {
    State before = *to;
    for (int w = 0; w < WARPS_MOST; w++)
        to->sure.warps[w] |= from->sure.warps[w], to->may.warps[w] |= from->may.warps[w];
    return memcmp(&before.sure, &to->sure, sizeof before.sure) ||
           memcmp(&before.may, &to->may, sizeof before.may);
}

/* ---- values per thread ----------------------------------------------------------------------- */

typedef struct At { /* one thread at a place */
    const Flow *flow;
    const State *state;
    int thread;
} At;

static bool leaf_at(const void *data, const Expr *expr, int64_t *out) {
    const At *at = data;
    if (expr->kind == X_RANK) return *out = at->flow->rank, true;
    if (expr->kind != X_LOCAL) return false;
    const Value *value = at->state->values[expr->index];
    if (!value) return context_value(&at->flow->context, (Expr *)expr, out);
    return *out = value->at[at->thread], has(&value->known, at->thread);
}

static Value *new_value(Flow *flow, int threads) {
    return arena_alloc(flow->arena, sizeof(Value) + (size_t)threads * sizeof(int64_t));
}

static const Value *value_of(Flow *flow, const State *state, const Expr *expr) {
    const Rules *rules = flow->data;
    int threads = rules->warps * WARP_LANES;
    if (!expr) return NULL;
    Value *made = new_value(flow, threads);
    for (int i = 0; i < threads; i++) {
        At at = {flow, state, i};
        bool known = eval_expr(&(EvalEnv){.leaf = leaf_at, .data = &at, .arena = flow->arena}, expr,
                               &made->at[i]);
        if (known) add(&made->known, i);
        if (!known && expr->uniformity != UNIFORM_LANE) return NULL;
    }
    return any(&made->known) ? made : NULL;
}

/* Sets the value for threads on the path; threads that are possibly on it have either value. */
static void set(Flow *flow, State *state, int local, const Value *value) {
    const Rules *rules = flow->data;
    const Value *old = state->values[local];
    int threads = rules->warps * WARP_LANES;
    Value *made = new_value(flow, threads);
    for (int i = 0; i < threads; i++) {
        const Value *from = has(&state->may, i) ? value : old;
        if (!from || !has(&from->known, i) || has(&state->may, i) != has(&state->sure, i)) continue;
        add(&made->known, i);
        made->at[i] = from->at[i];
    }
    state->values[local] = any(&made->known) ? made : NULL;
}

/* Joins values; `diverged`: the paths have different threads, which keep their values. */
static const Value *meet_values(Flow *flow, const State *to, const State *from, int local,
                                bool diverged) {
    const Rules *rules = flow->data;
    const Value *a = to->values[local], *b = from->values[local];
    int threads = rules->warps * WARP_LANES;
    if (a == b || (!diverged && (!a || !b))) return a == b ? a : NULL;
    Value *made = new_value(flow, threads);
    for (int i = 0; i < threads; i++) {
        bool in_a = a && has(&a->known, i), in_b = b && has(&b->known, i);
        bool only_a = diverged && !has(&from->may, i), only_b = diverged && !has(&to->may, i);
        bool known = only_a ? in_a : only_b ? in_b : in_a && in_b && a->at[i] == b->at[i];
        if (!known) continue;
        add(&made->known, i);
        made->at[i] = only_a ? a->at[i] : b->at[i];
    }
    return any(&made->known) ? made : NULL;
}

/* ---- counts ---------------------------------------------------------------------------------- */

static int64_t sum(int64_t a, int64_t b) { return a + b < ARRIVALS_MANY ? a + b : ARRIVALS_MANY; }

static const Arrive *with_row(Flow *flow, const Arrive *list, int row) {
    for (const Arrive *at = list; at; at = at->next) {
        arena_count(flow->arena, 1);
        if (at->row == row) return list;
    }
    Arrive *made = NEW(flow->arena, Arrive);
    *made = (Arrive){row, list};
    return made;
}

static const Arrive *with_rows(Flow *flow, const Arrive *to, const Arrive *from) {
    const Arrive *shared = to; /* states that were copied have the same rows to its end */
    for (; from && from != shared; from = from->next) to = with_row(flow, to, from->row);
    return to;
}

/* Keeps the earlier labels. */
static void meet_marks(Flow *flow, Count *to, const Count *from) {
    if (from->touched && !to->touched)
        to->touched_at = from->touched_at, to->arrived_at = from->arrived_at;
    if (!to->arrived_at.hi) to->arrived_at = from->arrived_at;
    to->came |= from->came, to->touched |= from->touched;
    to->arrives = with_rows(flow, to->arrives, from->arrives);
}

/* Joins counts of which one happened. */
static bool meet_counts(Flow *flow, Count *to, const Count *from, bool unknown_trips, bool widens) {
    Count before = *to;
    bool differ = from->least != to->least || from->most != to->most;
    if (from->least < to->least) to->least = from->least;
    if (from->most > to->most) to->most = widens ? ARRIVALS_MANY : from->most;
    to->attained &= from->attained && !(differ && unknown_trips);
    to->sure &= from->sure;
    meet_marks(flow, to, from);
    return to->least != before.least || to->most != before.most ||
           to->attained != before.attained || to->sure != before.sure || to->came != before.came ||
           to->touched != before.touched;
}

/* Adds counts that both happened; `base` was counted before the threads diverged. */
static void add_counts(Flow *flow, Count *to, const Count *from, const Count *base) {
    to->least = sum(to->least, from->least - base->least);
    to->most = from->most >= ARRIVALS_MANY ? ARRIVALS_MANY : sum(to->most, from->most - base->most);
    to->attained &= from->attained;
    to->sure |= from->sure;
    uint32_t touched =
        (to->touched & from->touched) | ((to->touched | from->touched) & ~base->touched);
    meet_marks(flow, to, from);
    to->touched = touched;
}

/* ---- divergence ------------------------------------------------------------------------------ */

static void *start(Flow *flow) {
    const Rules *rules = flow->data;
    State *state = NEW(flow->arena, State);
    state->counts = NEW_ARRAY(flow->arena, Count, rules->role->handles.count + 1);
    state->values = NEW_ARRAY(flow->arena, const Value *, rules->role->locals.count + 1);
    for (size_t i = 0; i < rules->role->handles.count; i++) state->counts[i].attained = true;
    for (int w = 0; w < rules->warps; w++)
        state->may.warps[w] = rules->role->one_lane ? 1 : UINT32_MAX;
    state->sure = state->may;
    return state;
}

static Count *copy_counts(Flow *flow, const Count *counts) {
    size_t handles = flow->code->role->handles.count;
    Count *made = NEW_ARRAY(flow->arena, Count, handles + 1);
    memcpy(made, counts, handles * sizeof *made);
    return made;
}

static void *copy(Flow *flow, const void *from) {
    const State *state = from;
    State *made = NEW(flow->arena, State);
    *made = *state;
    made->counts = copy_counts(flow, state->counts);
    made->values = NEW_ARRAY(flow->arena, const Value *, flow->code->role->locals.count + 1);
    memcpy(made->values, state->values, flow->code->role->locals.count * sizeof *made->values);
    return made;
}

/* The outermost IF in the region at which the path's threads diverged from others */
static const Parting *parted_in(const Flow *flow, const State *state, int region) {
    const Parting *found = NULL;
    for (const Parting *at = state->parting; at && code_inside(flow->code, at->region, region);
         at = at->outer)
        found = at;
    return found;
}

static void leave_partings(const Flow *flow, State *state, int region) {
    const Parting *outermost = parted_in(flow, state, region);
    if (outermost) state->parting = outermost->outer;
}

/* Joins threads that diverged in the region that ends here. Threads that diverged first did
 * nothing of the other threads' later work. */
static bool join_parted(Flow *flow, State *to, const State *from, int region) {
    const Parting *a = parted_in(flow, to, region), *b = parted_in(flow, from, region);
    if (!a && !b) return false;
    const Parting *first = !b || (a && a->region < b->region) ? a : b;
    for (size_t i = 0; i < flow->code->role->handles.count; i++)
        add_counts(flow, &to->counts[i], &from->counts[i], &first->counts[i]);
    for (size_t i = 0; i < flow->code->role->locals.count; i++)
        to->values[i] = meet_values(flow, to, from, (int)i, true);
    (void)both(to, from);
    leave_partings(flow, to, region);
    return true;
}

static bool join(Flow *flow, void *into, const void *other, int at, int source) {
    State *to = into;
    const State *from = other;
    const Row *row = &flow->code->rows.items[at];
    const Region *region = &flow->code->regions.items[row->region];
    if (!any(&from->may)) return false;
    if (!any(&to->may)) {
        *to = *(State *)copy(flow, from);
        return true;
    }
    if (join_parted(flow, to, from, row->region)) return true;
    bool skipped = region_loops(region) && (row->kind == ROW_LOOP || source == region->begin),
         changed = false;
    for (size_t i = 0; i < flow->code->role->handles.count; i++)
        changed |=
            meet_counts(flow, &to->counts[i], &from->counts[i], skipped, row->kind == ROW_LOOP);
    for (size_t i = 0; i < flow->code->role->locals.count; i++) {
        const Value *value = meet_values(flow, to, from, (int)i, false), *old = to->values[i];
        changed |= value != old &&
                   (!value || memcmp(&value->known, &old->known, sizeof value->known) != 0);
        to->values[i] = value;
    }
    return either(to, from) || changed;
}

/* ---- rows ------------------------------------------------------------------------------------ */

static const Handle *handle_of(const Rules *rules, int handle) {
    if (!valid_index(handle, rules->role->handles.count)) return NULL;
    const Handle *row = &rules->role->handles.items[handle];
    return valid_index(row->pipe, rules->prog->pipes.count) ? row : NULL;
}

/* The first warp makes a separate arrival for the bytes of copies. */
static void acquire(const Rules *rules, const Row *row, State *state) {
    const Handle *what = handle_of(rules, row->handle);
    if (!what) return;
    bool tx = what->end == END_PRODUCE &&
              rules->role->pipes[what->pipe].arrives[END_PRODUCE] & ARRIVES_BYTES;
    state->counts[row->handle] = (Count){.least = tx, .most = tx, .attained = true, .sure = tx};
}

static void arrive(Flow *flow, int at, State *state) {
    const Row *row = &flow->code->rows.items[at];
    Count *count = &state->counts[row->unsafe->handle];
    int64_t certain = count_of(&state->sure), most = count_of(&state->may);
    if (!most) return;
    count->least = sum(count->least, certain);
    count->most = sum(count->most, most);
    count->attained &= certain == most;
    count->sure |= warps_of(&state->sure);
    count->came |= warps_of(&state->may);
    count->touched &= ~warps_of(&state->sure);
    count->arrived_at = row->span;
    count->arrives = with_row(flow, count->arrives, at);
}

static void unsafe(Flow *flow, int at, State *state) {
    const Rules *rules = flow->data;
    const Unsafe *what = flow->code->rows.items[at].unsafe;
    int threads = rules->warps * WARP_LANES;
    Value *made = NULL;
    if (what->kind == UNSAFE_VALUE && (what->value == VALUE_LANE || what->value == VALUE_WARP)) {
        made = new_value(flow, threads);
        for (int i = 0; i < threads; i++)
            add(&made->known, i),
                made->at[i] = what->value == VALUE_LANE ? i % WARP_LANES : i / WARP_LANES;
    }
    if (what->kind == UNSAFE_VALUE) set(flow, state, what->local, made);
    for (size_t i = 0; i < what->operands.count; i++)
        if (what->operands.items[i].local >= 0)
            set(flow, state, what->operands.items[i].local, NULL);
    if (what->kind == UNSAFE_ARRIVE && what->own && handle_of(rules, what->handle))
        arrive(flow, at, state);
}

typedef struct Touch {
    const Rules *rules;
    State *state;
} Touch;

static void touch(Access *access, bool written, void *data) {
    const Touch *all = data;
    (void)written;
    if (access->space != SPACE_STAGE || !handle_of(all->rules, access->object)) return;
    Count *count = &all->state->counts[access->object];
    uint32_t warps = warps_of(&all->state->may) & count->came;
    if (!warps || count->touched) return;
    count->touched = warps;
    count->touched_at = access->span;
}

/* Copies into a stage keep its phase open until their bytes arrive. */
static void touches(Flow *flow, const Row *row, State *state) {
    bool tile = row->kind == ROW_TILE;
    if (tile && (row->tile->class == TILE_UNCLASSIFIED || tile_is_load(row->tile))) return;
    row_accesses(flow->arena, flow->code, row, touch, &(Touch){flow->data, state});
}

/* ---- release of a stage ---------------------------------------------------------------------- */

static Site *site_of(Flow *flow, int at, int pipe) {
    const Rules *rules = flow->data;
    Arrivals *out = rules->out;
    int instance = rules->role->pipes[pipe].in_turn ? flow->rank : -1;
    for (size_t i = 0; i < out->sites.count; i++) {
        const Site *site = &out->sites.items[i];
        if (site->row == at && site->pipe == pipe && site->instance == instance)
            return &out->sites.items[i];
    }
    Site made = {.row = at, .pipe = pipe, .instance = instance};
    made.shares = NEW_ARRAY(flow->arena, Share, rules->role->instances + 1);
    vec_push(flow->arena, &out->sites, made);
    return &out->sites.items[out->sites.count - 1];
}

/* Adds the derived signal of a release */
static void signal(const Rules *rules, const Handle *what, Count *count) {
    const PipeUse *use = &rules->role->pipes[what->pipe];
    int64_t a_warp = (use->arrives[END_PRODUCE] & ARRIVES_LANES ? WARP_LANES : 0) +
                     (use->arrives[END_PRODUCE] & ARRIVES_WARPS ? 1 : 0);
    bool one = what->end == END_CONSUME && use->arrives[END_CONSUME] == ARRIVES_INSTANCE;
    if (what->end == END_CONSUME) a_warp = 1;
    int64_t all = one ? 1 : a_warp * rules->warps;
    count->least = sum(count->least, all), count->most = sum(count->most, all);
    if (all) count->sure |= one ? 1 : (uint32_t)((UINT64_C(1) << rules->warps) - 1);
}

static void give_up(Flow *flow, int at, const State *state) {
    const Rules *rules = flow->data;
    const Row *row = &flow->code->rows.items[at];
    const Handle *what = handle_of(rules, row->handle);
    if (!what || !flow->last || !any(&state->may)) return;
    const Pipe *pipe = &rules->prog->pipes.items[what->pipe];
    if (!pipe->declared[what->end] || pipe->unproved) return;
    Site *site = site_of(flow, at, what->pipe);
    Share *share = &site->shares[flow->rank];
    Count count = state->counts[row->handle];
    if (row_effects[row->kind].signals == SIGNALS_ARRIVES)
        signal(rules, what, &count);
    else if (count.touched && !site->late)
        site->late = true, site->touched_at = count.touched_at, site->arrived_at = count.arrived_at;
    bool first = !share->comes;
    if (first)
        *share = (Share){.attained = true,
                         .warps = UINT32_MAX,
                         .least = count.least,
                         .most = count.most,
                         .comes = true};
    if (count.least < share->least) share->least = count.least;
    if (count.most > share->most) share->most = count.most;
    share->attained &= count.attained;
    share->warps &= count.sure;
    site->arrives = with_rows(flow, site->arrives, count.arrives);
}

/* ---- the rule -------------------------------------------------------------------------------- */

static bool parts_threads(const Region *region) {
    return region->condition && region->condition->uniformity == UNIFORM_LANE;
}

static void enters(Flow *flow, int region, bool truth, void *data) {
    State *state = data;
    const Expr *condition = flow->code->regions.items[region].condition;
    const Value *value = value_of(flow, state, condition);
    for (int i = 0; i < ((const Rules *)flow->data)->warps * WARP_LANES; i++) {
        uint32_t *sure = &state->sure.warps[i / WARP_LANES],
                 *may = &state->may.warps[i / WARP_LANES];
        uint32_t bit = UINT32_C(1) << (i % WARP_LANES);
        bool known = value && has(&value->known, i);
        if (known && (value->at[i] != 0) != truth) *may &= ~bit, *sure &= ~bit;
        if (!known && condition->uniformity == UNIFORM_LANE) *sure &= ~bit;
    }
}

static void part(Flow *flow, int region, State *state) {
    Parting *made = NEW(flow->arena, Parting);
    *made = (Parting){region, copy_counts(flow, state->counts), state->parting};
    state->parting = made;
}

static void touch_row(Flow *flow, int at, void *state) {
    touches(flow, code_row(flow->code, at), state);
}

static void set_row(Flow *flow, int at, void *state) {
    const Row *row = code_row(flow->code, at);
    set(flow, state, row->local, value_of(flow, state, row->value));
}

static void unsafe_row(Flow *flow, int at, void *state) { unsafe(flow, at, state); }

static void acquire_row(Flow *flow, int at, void *state) {
    acquire(flow->data, code_row(flow->code, at), state);
}

static void move_row(Flow *flow, int at, void *data) {
    const Row *row = code_row(flow->code, at);
    State *state = data;
    if (handle_of(flow->data, row->handle) && handle_of(flow->data, row->other))
        state->counts[row->handle] = state->counts[row->other];
}

static void give_row(Flow *flow, int at, void *state) { give_up(flow, at, state); }

static void if_row(Flow *flow, int at, void *state) {
    int region = code_row(flow->code, at)->region;
    if (parts_threads(code_region(flow->code, region))) part(flow, region, state);
}

static void end_row(Flow *flow, int at, void *state) {
    leave_partings(flow, state, code_row(flow->code, at)->region);
}

/* Loops with arrivals are followed iteration by iteration. */
static bool follows(Flow *flow, int region, const void *state) {
    const Region *row = &flow->code->regions.items[region];
    (void)state;
    for (int at = row->begin; at < row->end; at++) {
        const Row *inner = &flow->code->rows.items[at];
        if (inner->kind == ROW_UNSAFE && inner->unsafe->kind == UNSAFE_ARRIVE) return true;
    }
    return false;
}

static const Rule rule = {
    .name = "arrivals",
    .ranks = true,
    .start = start,
    .copy = copy,
    .join = join,
    .on = {.every = touch_row,
           .access = {[ACCESS_SETS] = set_row, [ACCESS_RAW] = unsafe_row},
           .stage = {[STAGE_TAKE] = acquire_row,
                     [STAGE_MOVE] = move_row,
                     [STAGE_GIVE] = give_row,
                     [STAGE_GIVE_LATE] = give_row},
           .control = {[CONTROL_IF] = if_row, [CONTROL_NEXT] = end_row, [CONTROL_END] = end_row}},
    .enters = enters,
    .follows = follows};

/* True if the role releases stages with declared arrivals */
static bool has_declared(const FlowCode *code) {
    for (size_t i = 0; i < code->role->handles.count; i++) {
        const Handle *what = &code->role->handles.items[i];
        if (!valid_index(what->pipe, code->prog->pipes.count)) continue;
        const Pipe *pipe = &code->prog->pipes.items[what->pipe];
        if (pipe->declared[what->end] && !pipe->unproved) return true;
    }
    return false;
}

const Arrivals *flow_arrivals(Arena *arena, FlowCode *code) {
    Arrivals *out = NEW(arena, Arrivals);
    Rules rules = {.prog = code->prog, .role = code->role, .warps = code->role->warps, .out = out};
    out->complete = !has_declared(code) || rules.warps <= WARPS_MOST;
    if (has_declared(code) && out->complete) solve(arena, code, &rule, &rules);
    return out;
}
