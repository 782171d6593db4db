/* The solver; see solve.h. Paths are represented by cases: a list of states, each with the
 * assumptions of its paths. */
#include "flow/solve.h"
#include "flow/questions.h"
#include "flow/values.h"

#include <assert.h>
#include <string.h>

#define CASES_MOST    16 /* most cases at one place */
#define HANDLERS_MOST 5  /* of a row: one for each field of Handlers */

typedef struct Case {
    Assumptions assumed;
    void *state;
    int source; /* the row that it comes from, at a join */
} Case;

typedef VEC(Case) Cases;

typedef struct Frame { /* a region on the current path */
    Cases ends, agains;
} Frame;

typedef struct Answered { /* a proof, for the cases with these assumptions in this epoch */
    int epoch, answer;
    Assumptions assumed;
} Answered;

typedef struct Head { /* of a region */
    /* loops: the state at the head, kept from one round of the enclosing loops to the next */
    Cases cases;
    int epoch;                         /* of `cases` */
    Expr *runs;                        /* loops: the question if there is an iteration */
    VEC(Answered) decided, impossible; /* proofs about its question, and about its iterations */
} Head;

typedef struct Solver {
    Frame *frames; /* by region */
    Head *heads;   /* by region */
    /* identifies a context: the rank, and variables of loops that are followed iteration by
     * iteration */
    int epoch;
    int epochs; /* number of epochs so far */
    /* unused states, of a rule that reuses them */
    VEC(void *) spare;
} Solver;

static void run(Flow *flow, int at, int end, Cases *cases);

/* ---- cases ----------------------------------------------------------------------------------- */

static bool same_assumption(const Assumed *a, const Assumed *b) {
    if (a->kind != b->kind || a->number != b->number || a->truth != b->truth || a->trip != b->trip)
        return false;
    return a->kind != ASSUMED_CONDITION || poly_equal(a->condition, b->condition);
}

static bool same_assumptions(const Assumptions *a, const Assumptions *b) {
    if (a->count != b->count) return false;
    for (size_t i = 0; i < a->count; i++) {
        bool found = false;
        for (size_t k = 0; k < b->count; k++) found |= same_assumption(&a->items[i], &b->items[k]);
        if (!found) return false;
    }
    return true;
}

void *flow_spare(Flow *flow) {
    Solver *solver = flow->solver;
    return solver->spare.count > 0 ? solver->spare.items[--solver->spare.count] : NULL;
}

static void discard(Flow *flow, const Case *dead) {
    if (flow->rule->reuses) vec_push(flow->arena, &flow->solver->spare, dead->state);
}

/* Frees the cases from number `left` on. */
static void discard_cases(Flow *flow, Cases *cases, size_t left) {
    for (size_t i = left; i < cases->count; i++) discard(flow, &cases->items[i]);
    cases->count = left;
}

static Case copy_case(Flow *flow, const Case *from) {
    Case made = {.state = flow->rule->copy(flow, from->state), .source = from->source};
    size_t count = from->assumed.count;
    if (!count) return made;
    made.assumed = (Assumptions){NEW_ARRAY(flow->arena, Assumed, count), count, count};
    memcpy(made.assumed.items, from->assumed.items, count * sizeof *made.assumed.items);
    return made;
}

/* Most lists have one case, so memory is allocated for the exact number. */
static Cases room_for(Flow *flow, size_t count) {
    return (Cases){.items = NEW_ARRAY(flow->arena, Case, count), .capacity = count};
}

static Cases copy_cases(Flow *flow, const Cases *from) {
    Cases made = room_for(flow, from->count);
    for (size_t i = 0; i < from->count; i++)
        made.items[made.count++] = copy_case(flow, &from->items[i]);
    return made;
}

static void assume(Flow *flow, Case *on, Assumed what) {
    for (size_t i = 0; i < on->assumed.count; i++)
        if (same_assumption(&on->assumed.items[i], &what)) return;
    vec_push(flow->arena, &on->assumed, what);
}

static void bind_trips(Flow *flow, const Case *on) {
    for (size_t i = 0; i < on->assumed.count; i++) {
        const Assumed *what = &on->assumed.items[i];
        if (what->kind != ASSUMED_TRIP || !what->truth) continue;
        const Region *region = &flow->code->regions.items[what->number];
        int atom = algebra_atom_local(flow->context.algebra, flow->code->role, region->var);
        const Poly *lo = values_poly(flow->arena, flow->code, region->begin, region->lo);
        if (lo)
            context_bind(&flow->context, atom, poly_offset(flow->context.algebra, lo, what->trip));
    }
}

/* Makes the context that of this case. */
static inline void enter_case(Flow *flow, const Case *on, int bound) {
    flow->context.assumed = &on->assumed;
    flow->context.bound_count = bound;
    if (flow->rule->trips && on->assumed.count) bind_trips(flow, on);
}

static void leave_case(Flow *flow, int bound) {
    flow->context.assumed = NULL;
    flow->context.bound_count = bound;
}

/* Uses the formulas of this row. */
static Bindings enter_row(Flow *flow, int at) {
    if (flow->rule->together) return flow->context.algebra->bindings;
    return values_at(flow->arena, flow->code, at);
}

/* Those of the row, in their order; returns how many */
static int find_handlers(const Rule *rule, RowKind kind, Handler *found[HANDLERS_MOST]) {
    const RowEffects *row = &row_effects[kind];
    Handler *all[HANDLERS_MOST] = {rule->on.every, rule->on.access[row->access],
                                   rule->on.scope[row->scope], rule->on.stage[row->stage],
                                   rule->on.control[row->control]};
    int count = 0;
    for (int i = 0; i < HANDLERS_MOST; i++)
        if (all[i]) found[count++] = all[i];
    return count;
}

static void step(Flow *flow, int at, const Cases *cases) {
    int bound = flow->context.bound_count;
    Handler *handlers[HANDLERS_MOST];
    if (!cases->count) return;
    int count = find_handlers(flow->rule, flow->code->rows.items[at].kind, handlers);
    if (!count) return;
    Bindings before = enter_row(flow, at);
    for (size_t i = 0; i < cases->count; i++) {
        arena_count(flow->arena, 4);
        enter_case(flow, &cases->items[i], bound);
        for (int h = 0; h < count; h++) handlers[h](flow, at, cases->items[i].state);
        leave_case(flow, bound);
    }
    (void)algebra_hold(flow->context.algebra, before);
}

/* ---- joins ----------------------------------------------------------------------------------- */

typedef struct Meeting { /* paths that are joined, with the rows that they come from */
    VEC(void *) states;
    VEC(int) sources;
} Meeting;

static void come(Flow *flow, Meeting *meeting, const Case *on, int source) {
    vec_push(flow->arena, &meeting->states, on->state);
    vec_push(flow->arena, &meeting->sources, source);
}

/* Calls the rule's `meets` for the cases from number `first` on with equal assumptions. At the
 * end of an iteration the state at its start comes first. */
static void meet(Flow *flow, int at, const Cases *cases, size_t first, const Cases *heads) {
    const Region *region = &flow->code->regions.items[flow->code->rows.items[at].region];
    const Assumptions *assumed = &cases->items[first].assumed;
    Meeting meeting = {0};
    for (size_t i = 0; heads && i < heads->count; i++)
        if (same_assumptions(&heads->items[i].assumed, assumed))
            come(flow, &meeting, &heads->items[i], region->begin);
    /* assumptions from before the loop hold in all of it: a condition is wanted until the end of
     * each loop that tests it */
    assert(!heads || meeting.states.count);
    for (size_t i = first; i < cases->count; i++)
        if (i == first || same_assumptions(&cases->items[i].assumed, assumed))
            come(flow, &meeting, &cases->items[i], cases->items[i].source);
    if (heads || meeting.states.count > 1)
        flow->rule->meets(flow, at, meeting.states.items, meeting.sources.items,
                          meeting.states.count);
}

static bool is_first(const Cases *cases, size_t i) {
    for (size_t k = 0; k < i; k++)
        if (same_assumptions(&cases->items[k].assumed, &cases->items[i].assumed)) return false;
    return true;
}

/* Joins the cases with equal assumptions. `heads`: the cases at the start of the iteration that
 * ends at this row; otherwise NULL */
static void merge(Flow *flow, Cases *cases, int at, const Cases *heads) {
    size_t kept = 0;
    for (size_t i = 0; flow->last && flow->rule->meets && i < cases->count; i++)
        if (is_first(cases, i)) meet(flow, at, cases, i, heads);
    for (size_t i = 0; i < cases->count; i++) {
        size_t k = 0;
        while (k < kept && !same_assumptions(&cases->items[k].assumed, &cases->items[i].assumed))
            k++;
        if (k < kept) {
            flow->rule->join(flow, cases->items[k].state, cases->items[i].state, at,
                             cases->items[i].source);
            discard(flow, &cases->items[i]);
        } else {
            cases->items[kept++] = cases->items[i];
        }
    }
    cases->count = kept;
}

typedef bool Keeps(const Flow *flow, const Assumed *what, int at);

static bool keeps_all(const Flow *flow, const Assumptions *assumed, int at, Keeps *keeps) {
    for (size_t i = 0; i < assumed->count; i++)
        if (!keeps(flow, &assumed->items[i], at)) return false;
    return true;
}

static void forget(Flow *flow, Cases *cases, int at, Keeps *keeps) {
    for (size_t i = 0; i < cases->count; i++) {
        Assumptions kept = {0};
        const Assumptions *old = &cases->items[i].assumed;
        if (keeps_all(flow, old, at, keeps)) continue;
        for (size_t k = 0; k < old->count; k++)
            if (keeps(flow, &old->items[k], at)) vec_push(flow->arena, &kept, old->items[k]);
        cases->items[i].assumed = kept;
    }
}

/* Joins the cases with equal assumptions: before threads diverge, and where diverged threads
 * rejoin, before other cases join them. */
static void reunite(Flow *flow, Cases *cases, int at) {
    if (flow->rule->enters && cases->count > 1) merge(flow, cases, at, NULL);
}

/* Drops assumptions, and joins the cases that then have equal assumptions. */
static void drop(Flow *flow, Cases *cases, int at, Keeps *keeps) {
    if (!cases->count) return;
    reunite(flow, cases, at);
    forget(flow, cases, at, keeps);
    if (cases->count > 1) merge(flow, cases, at, NULL);
}

/* True if a row after this one tests it again */
static bool keeps_wanted(const Flow *flow, const Assumed *what, int at) {
    (void)flow;
    return what->until > at;
}

/* True if it was assumed before the iteration that ends at this row */
static bool keeps_outer(const Flow *flow, const Assumed *what, int at) {
    int begin = flow->code->regions.items[flow->code->rows.items[at].region].begin;
    return what->made <= begin;
}

static void add(Flow *flow, Cases *to, const Cases *from) {
    if (!to->items && from->count) *to = room_for(flow, from->count);
    for (size_t i = 0; i < from->count; i++) vec_push(flow->arena, to, from->items[i]);
}

/* The last leaves come first: a rule that joins them one after the other ends with the first
 * one. */
static void add_leaves(Flow *flow, Cases *to, const Cases *from) {
    for (size_t i = from->count; i-- > 0;) vec_push(flow->arena, to, from->items[i]);
}

static void came_from(Cases *cases, int at) {
    for (size_t i = 0; i < cases->count; i++) cases->items[i].source = at;
}

/* Joins `from` to the head of a loop: true if it changes. */
static bool join_head(Flow *flow, Cases *head, const Cases *from, int at) {
    bool changed = false;
    for (size_t i = 0; i < from->count; i++) {
        size_t k = 0;
        while (k < head->count &&
               !same_assumptions(&head->items[k].assumed, &from->items[i].assumed))
            k++;
        if (k < head->count) {
            changed |= flow->rule->join(flow, head->items[k].state, from->items[i].state, at,
                                        from->items[i].source);
        } else {
            vec_push(flow->arena, head, copy_case(flow, &from->items[i]));
            changed = true;
        }
    }
    return changed;
}

/* ---- decisions ------------------------------------------------------------------------------- */

static void assume_case(const Flow *flow, const Assumed *what) {
    FlowCode *code = flow->code;
    Algebra *algebra = code->algebra;
    if (what->kind == ASSUMED_CONDITION) {
        Bindings before = values_at(flow->arena, code, what->made);
        algebra_assume(algebra, code->role, what->expr, what->as);
        (void)algebra_hold(algebra, before);
    } else if (what->kind == ASSUMED_TRIP && !what->truth) {
        const Region *region = &code->regions.items[what->number];
        const Poly *var = poly_atom(algebra, algebra_atom_local(algebra, code->role, region->var));
        const Poly *lo = values_poly(flow->arena, code, region->begin, region->lo);
        algebra_assume_poly(algebra,
                            poly_offset(algebra, poly_sum(algebra, var, lo, -1), -what->trip));
    }
}

/* Assumes all facts of the case's paths to row `at` */
static PathMark assume_all(const Flow *flow, int at) {
    Algebra *algebra = flow->code->algebra;
    const Assumptions *assumed = flow->context.assumed;
    PathMark mark = values_assume(flow->arena, flow->code, at);
    for (int i = 0; i < flow->context.bound_count; i++) {
        const Poly *value = flow->context.bound[i].value;
        algebra_assume_range(algebra, poly_atom(algebra, flow->context.bound[i].atom), value,
                             poly_offset(algebra, value, 1));
    }
    for (size_t i = 0; assumed && i < assumed->count; i++) assume_case(flow, &assumed->items[i]);
    return mark;
}

static Expr *question_of(const Flow *flow, int region) {
    const Region *row = &flow->code->regions.items[region];
    if (!region_loops(row)) return row->condition;
    if (row->kind != REGION_FOR || row->where || !row->lo || !row->hi) return NULL;
    Expr **made = &flow->solver->heads[region].runs;
    if (!*made) *made = expr_binary(flow->code->algebra->arena, OP_LT, row->lo, row->hi, row->head);
    return *made;
}

int flow_decides(const Flow *flow, int at, int arm, int region) {
    Algebra *algebra = flow->code->algebra;
    Expr *question = question_of(flow, region);
    if (flow->rule->together || !question) return -1;
    /* true in some lanes and false in others */
    if (question->uniformity == UNIFORM_LANE) return -1;
    PathMark mark = assume_all(flow, at);
    if (arm >= 0) values_assume_if(flow->arena, flow->code, flow->code->rows.items[at].region, arm);
    Bindings before = values_at(flow->arena, flow->code, flow->code->regions.items[region].begin);
    int truth = algebra_decides(algebra, flow->code->role, question);
    (void)algebra_hold(algebra, before);
    algebra_undo(algebra, mark);
    return truth;
}

static const Answered *answered(const Flow *flow, const Answered *items, size_t count,
                                const Assumptions *assumed) {
    for (size_t i = 0; i < count; i++)
        if (items[i].epoch == flow->solver->epoch && same_assumptions(&items[i].assumed, assumed))
            return &items[i];
    return NULL;
}

/* The answer from the path alone: cached for all rules */
static int decide_plainly(const Flow *flow, int region) {
    Question *question = &flow->code->questions->items[region];
    Flow plain = *flow;
    plain.context.assumed = NULL, plain.context.bound_count = 0;
    if (!question->decided)
        question->answer =
            flow_decides(&plain, flow->code->regions.items[region].begin, -1, region);
    question->decided = true;
    return question->answer;
}

/* The answer from the path to the region, the case, and the known values */
static int decide(const Flow *flow, int region) {
    static const Assumptions nothing = {0};
    const Assumptions *assumed = flow->context.assumed ? flow->context.assumed : &nothing;
    Head *memo = &flow->solver->heads[region];
    if (flow->rule->together ||
        (!flow->rule->trips && region_loops(&flow->code->regions.items[region])))
        return -1;
    int truth = decide_plainly(flow, region);
    if (truth >= 0 || (!assumed->count && !flow->context.bound_count)) return truth;
    const Answered *known = answered(flow, memo->decided.items, memo->decided.count, assumed);
    if (known) return known->answer;
    truth = flow_decides(flow, flow->code->regions.items[region].begin, -1, region);
    vec_push(flow->arena, &memo->decided, (Answered){flow->solver->epoch, truth, *assumed});
    return truth;
}

/* ---- regions --------------------------------------------------------------------------------- */

static void meet_at_end(Flow *flow, int region, Cases *cases) {
    int at = flow->code->regions.items[region].end;
    Frame *frame = &flow->solver->frames[region];
    add_leaves(flow, cases, &frame->ends);
    frame->ends.count = 0;
    drop(flow, cases, at, keeps_wanted);
    step(flow, at, cases);
}

static void follow_block(Flow *flow, int region, Cases *cases) {
    const Region *row = &flow->code->regions.items[region];
    step(flow, row->begin, cases);
    run(flow, row->begin + 1, row->end, cases);
    came_from(cases, row->end);
    meet_at_end(flow, region, cases);
}

/* Divides the cases by the answer to the region's question; cases with a known answer take one
 * way. */
static void part(Flow *flow, int region, Cases *cases, Cases *yes, Cases *no) {
    const Region *row = &flow->code->regions.items[region];
    static const Question unasked = {0};
    const Question *asked = flow->rule->together ? &unasked : &flow->code->questions->items[region];
    int bound = flow->context.bound_count;
    bool room = cases->count * 2 <= CASES_MOST, asks = asked->asks && !flow->rule->together;
    *yes = room_for(flow, cases->count), *no = room_for(flow, cases->count);
    Bindings before = enter_row(flow, row->begin);
    for (size_t i = 0; i < cases->count; i++) {
        Case *on = &cases->items[i];
        enter_case(flow, on, bound);
        int truth = row->kind == REGION_IF ? context_truth(&flow->context, row->condition)
                                           : flow_runs(flow, region);
        if (truth < 0 && asks && asked->kind == ASSUMED_NONEMPTY)
            truth = context_nonempty(&flow->context, asked->number);
        if (truth < 0) truth = decide(flow, region);
        leave_case(flow, bound);
        on->source = row->begin;
        if (truth >= 0) {
            vec_push(flow->arena, truth ? yes : no, *on);
            continue;
        }
        Case other = copy_case(flow, on);
        Assumed what = {.kind = asked->kind,
                        .condition = asked->condition,
                        .number = asked->number,
                        .truth = asked->truth,
                        .expr = row->condition,
                        .as = true,
                        .made = row->begin,
                        .until = room ? asked->until : row->begin};
        if (asks) assume(flow, on, what);
        what.truth = !asked->truth, what.as = false;
        if (asks) assume(flow, &other, what);
        vec_push(flow->arena, yes, *on);
        vec_push(flow->arena, no, other);
    }
    (void)algebra_hold(flow->context.algebra, before);
}

static void enter_arm(Flow *flow, int region, bool truth, Cases *cases) {
    for (size_t i = 0; flow->rule->enters && i < cases->count; i++)
        flow->rule->enters(flow, region, truth, cases->items[i].state);
}

static void follow_if(Flow *flow, int region, Cases *cases) {
    const Region *row = &flow->code->regions.items[region];
    Cases yes = {0}, no = {0};
    reunite(flow, cases, row->begin);
    step(flow, row->begin, cases);
    part(flow, region, cases, &yes, &no);
    enter_arm(flow, region, true, &yes);
    enter_arm(flow, region, false, &no);
    run(flow, row->begin + 1, row->otherwise, &yes);
    came_from(&yes, row->otherwise);
    step(flow, row->otherwise, &yes);
    run(flow, row->otherwise + 1, row->end, &no);
    int bound = flow->context.bound_count;
    for (size_t i = 0; flow->rule->second && i < no.count; i++) {
        enter_case(flow, &no.items[i], bound);
        flow->rule->second(flow, region, no.items[i].state);
        leave_case(flow, bound);
    }
    came_from(&no, row->end);
    add(flow, &yes, &no);
    *cases = yes;
    meet_at_end(flow, region, cases);
}

/* True if each block has a tile of the grid. A persistent block may get none; without tiles, one
 * block runs without a tile. */
static bool has_tiles(const Flow *flow) {
    const Prog *prog = flow->code->prog;
    Questions *asked = flow->code->questions;
    if (!asked || asked->tiles_asked) return asked && asked->has_tiles;
    asked->tiles_asked = true, asked->has_tiles = !prog->persistent;
    for (size_t a = 0; a < prog->axes.count && asked->has_tiles; a++) {
        Expr *extent = prog->axes.items[a].extent;
        Arena *arena = flow->code->algebra->arena; /* caches formulas by their expression */
        Expr *none = expr_integer(arena, extent->type, 0, extent->span);
        Expr *some = expr_binary(arena, OP_GT, extent, none, extent->span);
        asked->has_tiles = algebra_decides(flow->code->algebra, NULL, some) == CERTAINLY;
    }
    return asked->has_tiles;
}

/* True if the role does anything after the loop over the grid */
static bool goes_on(const FlowCode *code, const Region *grid) {
    for (size_t at = (size_t)grid->end + 1; at < code->rows.count; at++) {
        RowKind kind = code->rows.items[at].kind;
        if (kind != ROW_END && kind != ROW_CLOSE && kind != ROW_FLUSH && kind != ROW_EXIT)
            return true;
    }
    return false;
}

int flow_runs(const Flow *flow, int region) {
    const Region *row = &flow->code->regions.items[region];
    int64_t lo, hi;
    if (row->kind == REGION_GRID)
        return !flow->code->prog->persistent && (!goes_on(flow->code, row) || has_tiles(flow)) ? 1
                                                                                               : -1;
    if (row->kind != REGION_FOR || !row->lo || !row->hi) return -1;
    if (!context_value(&flow->context, row->lo, &lo) ||
        !context_value(&flow->context, row->hi, &hi))
        return -1;
    if (lo >= hi) return 0;
    return row->where ? -1 : 1;
}

/* Follows one iteration; `cases` become the states at its end */
static void iterate(Flow *flow, int region, Cases *cases) {
    const Region *row = &flow->code->regions.items[region];
    Frame *frame = &flow->solver->frames[region];
    Cases agains = frame->agains, heads = {0};
    if (flow->last && flow->rule->meets) heads = copy_cases(flow, cases);
    frame->agains = (Cases){0};
    run(flow, row->begin + 1, row->next, cases);
    came_from(cases, row->next);
    add_leaves(flow, cases, &frame->agains);
    frame->agains = agains;
    forget(flow, &heads, row->next, keeps_outer);
    reunite(flow, cases, row->next);
    forget(flow, cases, row->next, keeps_outer);
    merge(flow, cases, row->next, &heads);
    came_from(cases, row->next);
    step(flow, row->next, cases);
}

/* ---- loops ----------------------------------------------------------------------------------- */

static bool constant_trips(Flow *flow, int region, const Cases *cases, int64_t *lo, int64_t *hi) {
    const Region *row = &flow->code->regions.items[region];
    if (row->kind != REGION_FOR || row->where || row->var < 0 || !flow->rule->follows ||
        !cases->count)
        return false;
    Bindings before = enter_row(flow, row->begin);
    bool known =
        context_value(&flow->context, row->lo, lo) && context_value(&flow->context, row->hi, hi);
    (void)algebra_hold(flow->context.algebra, before);
    if (!known) return false;
    if (*hi <= *lo || *hi - *lo > MAX_TRIPS) return false;
    return flow->rule->follows(flow, region, cases->items[0].state);
}

static void follow_trips(Flow *flow, int region, Cases *cases, int64_t lo, int64_t hi) {
    const Region *row = &flow->code->regions.items[region];
    Algebra *algebra = flow->context.algebra;
    int atom = algebra_atom_local(algebra, flow->code->role, row->var),
        bound = flow->context.bound_count;
    int epoch = flow->solver->epoch;
    for (int64_t i = lo; i < hi && cases->count; i++) {
        context_bind(&flow->context, atom, poly_constant(algebra, i));
        flow->solver->epoch = ++flow->solver->epochs;
        iterate(flow, region, cases);
        flow->context.bound_count = bound;
    }
    flow->solver->epoch = epoch;
}

static int trips_distinguished(Flow *flow, int region, const Cases *cases) {
    const Region *row = &flow->code->regions.items[region];
    if (!flow->rule->trips || row->kind != REGION_FOR || row->where || row->var < 0 || !row->lo ||
        !cases->count)
        return 0;
    return flow->rule->trips(flow, region);
}

/* Begins the first iteration: number 0, if the first `distinguished` ones are distinguished. */
static void mark_first(Flow *flow, int region, Cases *cases, int distinguished) {
    const Region *row = &flow->code->regions.items[region];
    for (size_t i = 0; distinguished > 0 && i < cases->count; i++)
        assume(flow, &cases->items[i],
               (Assumed){.kind = ASSUMED_TRIP,
                         .number = region,
                         .truth = true,
                         .made = row->begin,
                         .until = row->next});
}

/* True if the case's assumptions contradict the facts in the loop's body: then there is no such
 * iteration. */
static bool is_impossible(Flow *flow, int region, const Case *on) {
    int bound = flow->context.bound_count;
    Head *memo = &flow->solver->heads[region];
    const Answered *known =
        answered(flow, memo->impossible.items, memo->impossible.count, &on->assumed);
    if (known) return known->answer;
    enter_case(flow, on, bound);
    PathMark mark = assume_all(flow, flow->code->regions.items[region].begin + 1);
    bool impossible = algebra_impossible(flow->code->algebra);
    algebra_undo(flow->code->algebra, mark);
    leave_case(flow, bound);
    vec_push(flow->arena, &memo->impossible,
             (Answered){flow->solver->epoch, impossible, on->assumed});
    return impossible;
}

/* Begins the iterations after those that have ended. */
static void mark_next(Flow *flow, int region, Cases *cases, int distinguished) {
    size_t kept = 0;
    for (size_t i = 0; distinguished > 0 && i < cases->count; i++) {
        Assumptions next = {0};
        bool later = false;
        for (size_t k = 0; k < cases->items[i].assumed.count; k++) {
            Assumed what = cases->items[i].assumed.items[k];
            bool counts = what.kind == ASSUMED_TRIP && what.number == region && what.truth;
            if (counts) what.truth = ++what.trip < distinguished, later = true;
            vec_push(flow->arena, &next, what);
        }
        cases->items[i].assumed = next;
        if (!later || !is_impossible(flow, region, &cases->items[i]))
            cases->items[kept++] = cases->items[i];
    }
    if (distinguished > 0) cases->count = kept;
}

/* Iterates until the states at the head do not change. Takes over the states in `entry`. Stores
 * the states at the end of an iteration in `ends`. */
static void fixed_point(Flow *flow, int region, Cases *entry, Cases *ends, int distinguished) {
    const Region *row = &flow->code->regions.items[region];
    Head *head = &flow->solver->heads[region];
    Frame *frame = &flow->solver->frames[region];
    bool last = flow->last, changed = true;
    size_t left = frame->ends.count;
    if (head->epoch != flow->solver->epoch || !head->cases.count) {
        head->cases = *entry, head->epoch = flow->solver->epoch;
    } else {
        changed = join_head(flow, &head->cases, entry, row->begin);
        discard_cases(flow, entry, 0);
    }
    flow->last = false;
    for (bool again = changed || !last; again;) {
        discard_cases(flow, &frame->ends, left);
        discard_cases(flow, ends, 0);
        *ends = copy_cases(flow, &head->cases);
        iterate(flow, region, ends);
        Cases next = {0};
        add(flow, &next, ends);
        mark_next(flow, region, &next, distinguished);
        again = join_head(flow, &head->cases, &next, row->begin);
    }
    flow->last = last;
    if (!last) return;
    discard_cases(flow, &frame->ends, left);
    discard_cases(flow, ends, 0);
    *ends = copy_cases(flow, &head->cases);
    iterate(flow, region, ends);
}

static bool keeps_entry(const Flow *flow, const Assumed *what, int at) {
    return !(what->kind == ASSUMED_TRIP &&
             what->made == flow->code->regions.items[flow->code->rows.items[at].region].begin);
}

static void follow_loop(Flow *flow, int region, Cases *cases) {
    const Region *row = &flow->code->regions.items[region];
    int64_t lo, hi;
    Cases runs = {0}, skips = {0}, ends = {0};
    came_from(cases, row->begin);
    step(flow, row->begin, cases);
    if (constant_trips(flow, region, cases, &lo, &hi)) {
        follow_trips(flow, region, cases, lo, hi);
        meet_at_end(flow, region, cases);
        return;
    }
    bool distinguished = !flow->rule->together && flow->code->questions->items[region].asks;
    if (distinguished)
        part(flow, region, cases, &runs, &skips);
    else
        runs = *cases;
    /* at the end of an iteration, assumptions that no later row tests are dropped too */
    drop(flow, &runs, row->begin, keeps_wanted);
    drop(flow, &skips, row->begin, keeps_wanted);
    int bound = flow->context.bound_count;
    bool certain = distinguished; /* also for a range with `where`: live iterations count */
    if (!distinguished && runs.count) {
        Bindings before = enter_row(flow, row->begin);
        enter_case(flow, &runs.items[0], bound);
        certain = flow_runs(flow, region) == 1 || decide(flow, region) == 1;
        leave_case(flow, bound);
        (void)algebra_hold(flow->context.algebra, before);
    }
    Cases entry = certain ? (Cases){0} : copy_cases(flow, &runs);
    int marked = trips_distinguished(flow, region, &runs);
    mark_first(flow, region, &runs, marked);
    if (runs.count) fixed_point(flow, region, &runs, &ends, marked);
    drop(flow, &ends, row->next, keeps_entry);
    *cases = skips;
    add(flow, cases, &ends);
    add(flow, cases, &entry);
    meet_at_end(flow, region, cases);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void leave(Flow *flow, int at, Cases *cases) {
    const Row *row = &flow->code->rows.items[at];
    Frame *frame = &flow->solver->frames[row->target];
    came_from(cases, at);
    add(flow, row->again ? &frame->agains : &frame->ends, cases);
    cases->count = 0, cases->capacity = 0, cases->items = NULL;
}

static void follow_region(Flow *flow, int region, Cases *cases) {
    switch (flow->code->regions.items[region].kind) {
    case REGION_ROLE:
    case REGION_BLOCK:
    case REGION_TURN: follow_block(flow, region, cases); break;
    case REGION_GRID:
    case REGION_FOR: follow_loop(flow, region, cases); break;
    case REGION_IF: follow_if(flow, region, cases); break;
    }
}

/* Follows the rows from `at` to `end`, exclusive. Without cases nothing reaches them. */
static void run(Flow *flow, int at, int end, Cases *cases) {
    while (at < end && cases->count) {
        const Row *row = &flow->code->rows.items[at];
        if (row_begins(row->kind)) {
            follow_region(flow, row->region, cases);
            at = flow->code->regions.items[row->region].end + 1;
            continue;
        }
        step(flow, at, cases);
        if (row->kind == ROW_LEAVE) leave(flow, at, cases);
        at++;
    }
}

static Solver *solver_new(Arena *arena, const FlowCode *code) {
    size_t count = code->regions.count + 1;
    Solver *solver = NEW(arena, Solver);
    solver->frames = NEW_ARRAY(arena, Frame, count);
    solver->heads = NEW_ARRAY(arena, Head, count);
    return solver;
}

/* Follows the whole role once: without reports until all heads are stable, then with them. */
static void round_of(Flow *flow, bool last) {
    Cases cases = room_for(flow, 1);
    flow->last = last;
    vec_push(flow->arena, &cases, (Case){.state = flow->rule->start(flow)});
    run(flow, 0, (int)flow->code->rows.count, &cases);
}

void solve(Arena *arena, FlowCode *code, const Rule *rule, void *data) {
    Algebra *algebra = code->algebra;
    if (!rule->together && !code->questions) code->questions = questions_find(algebra->arena, code);
    int instances = rule->ranks && code->role->instances > 1 ? code->role->instances : 1;
    Flow flow = {.arena = arena, .code = code, .rule = rule, .data = data};
    flow.context = (Context){.arena = arena, .algebra = algebra, .role = code->role};
    for (flow.rank = 0; flow.rank < instances; flow.rank++) {
        flow.solver = solver_new(arena, code);
        flow.solver->epoch = ++flow.solver->epochs;
        flow.context.bound_count = 0;
        if (instances > 1)
            context_bind(&flow.context, algebra_atom_rank(algebra, code->role),
                         poly_constant(algebra, flow.rank));
        round_of(&flow, false);
        if (!rule->reports || rule->reports(&flow)) round_of(&flow, true);
    }
}
