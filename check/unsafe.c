/* What `unsafe` does to pipes whose arrivals are declared. Comes in with the uses of pipes settled, and goes out with the declared counts in
 * their place: where all that is done by hand is to arrive, each path of each warp is followed, lane by lane, and every stage has to get
 * what is declared. What does more is named as not proved. */
#include "check/passes.h"
#include "derive/resources.h"
#include "prog/eval.h"

#define TRIPS_MOST 64              /* that a loop is followed turn by turn */
#define MANY       (INT64_C(1) << 40)

typedef struct Lanes { /* an integer in each lane of the warp */
    bool known[WARP_LANES];
    int64_t at[WARP_LANES];
} Lanes;

typedef struct Count { /* arrivals of this warp for the stage that a handle holds */
    int64_t least, most;
    bool touched;      /* since the last of them */
    Span touched_at, arrived_at;
} Count;

typedef struct State { /* one path */
    bool live;
    Count *counts;     /* by handle */
    Lanes *locals;
} State;

typedef struct Around Around;
struct Around { /* something that a leave may target */
    Around *outer;
    const Stmt *stmt;
    uint32_t mask;     /* lanes that came to it */
    State breaks, continues;
};

typedef struct Site { /* a release, and what comes to its stage of one instance in turn, or of all of a role */
    const Stmt *stmt;
    int pipe, rank;
    Span span;
    bool seen;          /* by the warp now followed, and how often it arrives */
    int64_t now_least, now_most;
    int64_t least, most;
    int idle;           /* a warp that never does; -1: none */
    const char *shares; /* "2 of warp 0, 1 of warp 1" */
} Site;

typedef struct Walk {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    Role *role;
    int number, rank, warp;
    uint32_t all;       /* lanes that run it */
    bool quiet;
    Around *around;
    VEC(Site) sites;    /* of this role */
    bool *said;         /* by pipe: something is wrong with it */
} Walk;

static void follow(Walk *walk, Stmt *stmt, State *state, uint32_t mask);

/* ---- values by lane ------------------------------------------------------------------------------------------------- */

typedef struct Lane { /* one lane at a place */
    const Walk *walk;
    const State *state;
    int lane;
} Lane;

static bool leaf_at(const void *data, const Expr *expr, int64_t *out) {
    const Lane *at = data;
    if (expr->kind == X_RANK) return *out = at->walk->rank, true;
    if (expr->kind != X_LOCAL) return false;
    const Lanes *local = &at->state->locals[expr->index];
    return *out = local->at[at->lane], local->known[at->lane];
}

static Lanes value_of(const Walk *walk, const State *state, const Expr *expr) {
    Lanes lanes = {0};
    for (int lane = 0; lane < WARP_LANES && expr; lane++) {
        Lane at = {walk, state, lane};
        lanes.known[lane] = eval_expr(&(EvalEnv){.leaf = leaf_at, .data = &at}, expr, &lanes.at[lane]);
    }
    return lanes;
}

static void set(State *state, int local, const Lanes *value, uint32_t mask) {
    for (int lane = 0; lane < WARP_LANES; lane++) {
        if (!(mask >> lane & 1)) continue;
        state->locals[local].known[lane] = value->known[lane];
        state->locals[local].at[lane] = value->at[lane];
    }
}

/* ---- states --------------------------------------------------------------------------------------------------------- */

static State new_state(Walk *walk) {
    return (State){true, NEW_ARRAY(walk->arena, Count, walk->role->handles.count + 1),
                   NEW_ARRAY(walk->arena, Lanes, walk->role->locals.count + 1)};
}

static State copy(Walk *walk, const State *from) {
    State to = new_state(walk);
    to.live = from->live;
    for (size_t i = 0; from->counts && i < walk->role->handles.count; i++) to.counts[i] = from->counts[i];
    for (size_t i = 0; from->counts && i < walk->role->locals.count; i++) to.locals[i] = from->locals[i];
    return to;
}

static void meet_lanes(Lanes *to, const Lanes *from) {
    for (int lane = 0; lane < WARP_LANES; lane++) to->known[lane] &= from->known[lane] && to->at[lane] == from->at[lane];
}

static void meet(Walk *walk, State *to, const State *from) {
    if (!from->live) return;
    if (!to->live) {
        *to = copy(walk, from);
        return;
    }
    for (size_t i = 0; i < walk->role->handles.count; i++) {
        Count *a = &to->counts[i];
        const Count *b = &from->counts[i];
        if (b->touched && !a->touched) a->touched_at = b->touched_at, a->arrived_at = b->arrived_at;
        a->touched |= b->touched;
        if (b->least < a->least) a->least = b->least;
        if (b->most > a->most) a->most = b->most;
    }
    for (size_t i = 0; i < walk->role->locals.count; i++) meet_lanes(&to->locals[i], &from->locals[i]);
}

/* ---- stages --------------------------------------------------------------------------------------------------------- */

static const Handle *handle_of(const Walk *walk, int handle) {
    if (!valid_index(handle, walk->role->handles.count)) return NULL;
    const Handle *row = &walk->role->handles.items[handle];
    return valid_index(row->pipe, walk->prog->pipes.count) ? row : NULL;
}

/* The bytes of copies are announced by an arrival of their own. */
static void acquire(Walk *walk, int handle, State *state) {
    const Handle *what = handle_of(walk, handle);
    if (!what) return;
    bool tx = what->end == END_PRODUCE && walk->role->pipes[what->pipe].tx_arrives && walk->warp == 0;
    state->counts[handle] = (Count){.least = tx, .most = tx};
}

/* What the derived signal of a release is, of this warp */
static int64_t derived(const Walk *walk, const Handle *what) {
    const PipeUse *use = &walk->role->pipes[what->pipe];
    if (what->end == END_CONSUME) return use->instance_arrives ? walk->warp == 0 : 1;
    return (use->lanes_arrive ? WARP_LANES : 0) + (use->warps_arrive ? 1 : 0);
}

static Site *site_of(Walk *walk, const Stmt *stmt, int pipe, Span span) {
    int rank = walk->role->pipes[pipe].in_turn ? walk->rank : 0;
    for (size_t i = 0; i < walk->sites.count; i++)
        if (walk->sites.items[i].stmt == stmt && walk->sites.items[i].pipe == pipe && walk->sites.items[i].rank == rank)
            return &walk->sites.items[i];
    vec_push(walk->arena, &walk->sites, ((Site){.stmt = stmt, .pipe = pipe, .rank = rank, .span = span, .idle = -1, .shares = ""}));
    return &walk->sites.items[walk->sites.count - 1];
}

static void refuse_late_touch(Walk *walk, const Handle *what, const Count *count, Span span) {
    Diag *diag = diag_at(walk->diags, P0423, count->touched_at, "stage `%s` is touched behind its last arrival", what->name);
    diag_primary(walk->diags, diag, "%s may have the stage by now", what->end == END_PRODUCE ? "a consumer" : "the producer");
    diag_label(walk->diags, diag, count->arrived_at, "the last arrival");
    diag_label(walk->diags, diag, span, "released without a signal");
    diag_help(walk->diags, diag, "arrive behind what reads and writes the stage");
    walk->said[what->pipe] = true;
}

static void finish(Walk *walk, const Stmt *stmt, int handle, bool silent, Span span, State *state) {
    const Handle *what = handle_of(walk, handle);
    if (!what || walk->quiet) return;
    Count count = state->counts[handle];
    const Pipe *pipe = &walk->prog->pipes.items[what->pipe];
    if (!pipe->declared[what->end] || walk->said[what->pipe] || pipe->unproved) return;
    if (silent && count.touched) {
        refuse_late_touch(walk, what, &count, span);
        return;
    }
    int64_t more = silent ? 0 : derived(walk, what);
    Site *site = site_of(walk, stmt, what->pipe, span);
    count.least += more, count.most += more;
    if (!site->seen || count.least < site->now_least) site->now_least = count.least;
    if (!site->seen || count.most > site->now_most) site->now_most = count.most;
    site->seen = true;
}

typedef struct Touch {
    Walk *walk;
    State *state;
} Touch;

static void touch(Access *access, bool written, void *data) {
    const Touch *all = data;
    (void)written;
    if (access->space != SPACE_STAGE || !handle_of(all->walk, access->object)) return;
    Count *count = &all->state->counts[access->object];
    if (count->most == 0 || count->touched || !count->arrived_at.hi) return;
    count->touched = true;
    count->touched_at = access->span;
}

/* Copies into a stage hold its phase open by their bytes. */
static void tile(Walk *walk, Stmt *stmt, State *state) {
    TileClass class = stmt->tile ? stmt->tile->class : TILE_UNCLASSIFIED;
    if (class == TILE_UNCLASSIFIED || class == TILE_TENSOR_LOAD || class == TILE_BULK_LOAD) return;
    walk_accesses(walk->arena, stmt, touch, &(Touch){walk, state});
}

static void unsafe(Walk *walk, const Stmt *stmt, State *state, uint32_t mask) {
    const Unsafe *what = stmt->unsafe;
    Lanes value = {0};
    if (what->kind == UNSAFE_VALUE) {
        for (int lane = 0; lane < WARP_LANES; lane++) {
            value.known[lane] = what->value == VALUE_LANE || what->value == VALUE_WARP;
            value.at[lane] = what->value == VALUE_LANE ? lane : walk->warp;
        }
        set(state, what->local, &value, mask);
    }
    for (size_t i = 0; i < what->operands.count; i++)
        if (what->operands.items[i].local >= 0) set(state, what->operands.items[i].local, &value, mask);
    if (what->kind != UNSAFE_ARRIVE || !what->own || !handle_of(walk, what->handle)) return;
    Count *count = &state->counts[what->handle];
    count->least += __builtin_popcount(mask);
    count->most += __builtin_popcount(mask);
    count->touched = false;
    count->arrived_at = stmt->span;
}

/* ---- compound statements -------------------------------------------------------------------------------------------- */

static void list(Walk *walk, Stmt *stmt, State *state, uint32_t mask) {
    Around around = {.outer = walk->around, .stmt = stmt, .mask = mask};
    walk->around = &around;
    for (size_t i = 0; i < stmt->block.body.count && state->live; i++) follow(walk, stmt->block.body.items[i], state, mask);
    walk->around = around.outer;
    meet(walk, state, &around.breaks);
}

static void branch(Walk *walk, Stmt *stmt, State *state, uint32_t mask) {
    Lanes truth = value_of(walk, state, stmt->branch.condition);
    uint32_t yes = 0, no = 0;
    for (int lane = 0; lane < WARP_LANES; lane++) {
        if (!(mask >> lane & 1) || !truth.known[lane]) continue;
        *(truth.at[lane] ? &yes : &no) |= UINT32_C(1) << lane;
    }
    if ((yes | no) == mask) {
        if (yes && stmt->branch.then) follow(walk, stmt->branch.then, state, yes);
        if (no && stmt->branch.otherwise && state->live) follow(walk, stmt->branch.otherwise, state, no);
        return;
    }
    State other = copy(walk, state);
    if (stmt->branch.then) follow(walk, stmt->branch.then, state, mask);
    if (stmt->branch.otherwise) follow(walk, stmt->branch.otherwise, &other, mask);
    meet(walk, state, &other);
}

static void iteration(Walk *walk, const Stmt *loop, Stmt *body, State *state, State *after, uint32_t mask) {
    Around around = {.outer = walk->around, .stmt = loop, .mask = mask};
    walk->around = &around;
    if (body) follow(walk, body, state, mask);
    walk->around = around.outer;
    meet(walk, state, &around.continues);
    meet(walk, after, &around.breaks);
}

static void forget(Stmt *stmt, void *data) {
    static const Lanes unknown;
    State *state = data;
    if (stmt->kind == S_SCALAR && stmt->scalar.local >= 0) state->locals[stmt->scalar.local] = unknown;
    if (stmt->kind == S_FOR && stmt->loop.var >= 0) state->locals[stmt->loop.var] = unknown;
}

static void find_arrivals(Stmt *stmt, void *data) {
    *(bool *)data |= stmt->kind == S_UNSAFE && stmt->unsafe->kind == UNSAFE_ARRIVE;
}

/* Turn by turn, where the bounds are known and the same in all lanes */
static bool turns(Walk *walk, Stmt *stmt, State *state, uint32_t mask) {
    Lanes lo = value_of(walk, state, stmt->loop.lo), hi = value_of(walk, state, stmt->loop.hi);
    int first = mask ? __builtin_ctz(mask) : 0;
    bool arrives = false;
    for (int lane = 0; lane < WARP_LANES; lane++)
        if (mask >> lane & 1 &&
            (!lo.known[lane] || !hi.known[lane] || lo.at[lane] != lo.at[first] || hi.at[lane] != hi.at[first]))
            return false;
    stmt_visit(stmt->loop.body, find_arrivals, &arrives);
    if (!arrives || stmt->loop.where || hi.at[first] - lo.at[first] > TRIPS_MOST) return false;
    State after = {.live = false};
    for (int64_t i = lo.at[first]; i < hi.at[first] && state->live; i++) {
        Lanes value;
        for (int lane = 0; lane < WARP_LANES; lane++) value.known[lane] = true, value.at[lane] = i;
        set(state, stmt->loop.var, &value, mask);
        iteration(walk, stmt, stmt->loop.body, state, &after, mask);
    }
    meet(walk, state, &after);
    return true;
}

/* Any number of turns: what a stage that is held around them gets in one is got any number of times. */
static void loop(Walk *walk, Stmt *stmt, Stmt *body, State *state, uint32_t mask) {
    bool quiet = walk->quiet;
    stmt_visit(stmt, forget, state);
    State once = copy(walk, state), after = {.live = false};
    walk->quiet = true;
    iteration(walk, stmt, body, &once, &after, mask);
    walk->quiet = quiet;
    stmt_visit(stmt, forget, &once);
    for (size_t i = 0; once.live && i < walk->role->handles.count; i++)
        if (once.counts[i].most > state->counts[i].most) once.counts[i].most = MANY;
    meet(walk, state, &once);
    State end = copy(walk, state);
    iteration(walk, stmt, body, &end, state, mask);
}

/* Where only some of the lanes leave, the path both leaves and goes on: the counts of the two, joined
 * where they meet, enclose what the lanes of both do. */
static void leave(Walk *walk, const Stmt *stmt, State *state, uint32_t mask) {
    for (size_t i = 0; i < stmt->leave.releases.count; i++)
        finish(walk, stmt, stmt->leave.releases.items[i], false, stmt->span, state);
    Around *around = walk->around;
    while (around && around->stmt != stmt->leave.target) around = around->outer;
    if (around) meet(walk, stmt->leave.kind == LEAVE_CONTINUE ? &around->continues : &around->breaks, state);
    state->live = mask != (around ? around->mask : walk->all);
}

static void follow(Walk *walk, Stmt *stmt, State *state, uint32_t mask) {
    switch (stmt->kind) {
    case S_BLOCK: list(walk, stmt, state, mask); break;
    case S_SCALAR: {
        Lanes value = value_of(walk, state, stmt->scalar.value);
        set(state, stmt->scalar.local, &value, mask);
        break;
    }
    case S_TILE: tile(walk, stmt, state); break;
    case S_GRID: loop(walk, stmt, stmt->grid.body, state, mask); break;
    case S_FOR:
        if (!turns(walk, stmt, state, mask)) loop(walk, stmt, stmt->loop.body, state, mask);
        break;
    case S_IF: branch(walk, stmt, state, mask); break;
    case S_LEAVE: leave(walk, stmt, state, mask); break;
    case S_ACQUIRE: acquire(walk, stmt->acquire.handle, state); break;
    case S_RELEASE: finish(walk, stmt, stmt->release.handle, stmt->release.silent, stmt->span, state); break;
    case S_MOVE: state->counts[stmt->move.to] = state->counts[stmt->move.from]; break;
    case S_STAGE:
        acquire(walk, stmt->stage.handle, state);
        if (stmt->stage.body) follow(walk, stmt->stage.body, state, mask);
        if (state->live) finish(walk, stmt, stmt->stage.handle, false, stmt->head, state);
        break;
    case S_UNSAFE: unsafe(walk, stmt, state, mask); break;
    case S_TRY: break;
    }
}

/* ---- verdicts ------------------------------------------------------------------------------------------------------- */

static void take_share(Walk *walk, Site *site) {
    const PipeUse *use = &walk->role->pipes[site->pipe];
    bool one = use->instance_arrives || walk->role->one_lane; /* a matrix instruction is of all warps: one may speak for them */
    if (!site->seen) return;
    site->least += site->now_least;
    site->most += site->now_most >= MANY ? MANY : site->now_most;
    if (site->now_least == 0 && !(one && walk->warp > 0) && site->idle < 0) site->idle = walk->warp;
    site->seen = false;
}

static void walk_role(Walk *walk) {
    for (walk->rank = 0; walk->rank < walk->role->instances; walk->rank++) {
        for (walk->warp = 0; walk->warp < walk->role->warps; walk->warp++) {
            State state = new_state(walk);
            walk->all = walk->role->one_lane ? 1 : UINT32_MAX;
            follow(walk, walk->role->body, &state, walk->all);
            for (size_t i = 0; i < walk->sites.count; i++) take_share(walk, &walk->sites.items[i]);
        }
    }
}

static const char *barrier_word(End end) { return end == END_PRODUCE ? "full" : "empty"; }

static void refuse_count(Walk *walk, const Pipe *pipe, End end, const Site *site, int64_t total) {
    Diag *diag = diag_at(walk->diags, P0421, pipe->declared_at[end], "a phase of the %s barrier of `%s` gets %lld arrival%s, and %lld %s declared",
                         barrier_word(end), pipe->name, (long long)total, total == 1 ? "" : "s", (long long)pipe->declared[end],
                         pipe->declared[end] == 1 ? "is" : "are");
    diag_primary(walk->diags, diag, "%s", total < pipe->declared[end] ? "its phases would never end" : "the next phase would begin with what is left over");
    diag_label(walk->diags, diag, site->span, "%lld of `%s` by this release", (long long)site->most, walk->role->name);
    diag_help(walk->diags, diag, "declare `arrivals %s %lld`, or arrive %s; without a guard such as `if lane == 0` each of the 32 threads of a "
              "warp arrives", barrier_word(end), (long long)total, total < pipe->declared[end] ? "more often" : "less often");
}

static Diag *not_proved(Arena *arena, Diags *diags, const Pipe *pipe, Span span, const char *why) {
    (void)arena;
    Diag *diag = diag_at(diags, P0490, span, "pipe `%s` is not proved", pipe->name);
    diag_primary(diags, diag, "%s", why);
    return diag;
}

/* Of one consumer among several: what all its releases agree on; -1 where they do not. */
static int64_t agreed(const Walk *walk, int pipe) {
    int64_t count = -1;
    for (size_t i = 0; i < walk->sites.count; i++) {
        const Site *site = &walk->sites.items[i];
        if (site->pipe != pipe) continue;
        if (site->least != site->most || (count >= 0 && count != site->most)) return -1;
        count = site->most;
    }
    return count;
}

typedef struct Total {    /* of one end of a pipe */
    int64_t count;        /* of the roles so far */
    bool varied;          /* some of them do not say how many */
    int roles;
    Site worst;           /* the last site, for the message */
    Walk *walk;           /* whose it is */
    int idle;
    Span idle_at;
    const Role *idle_role;
    Span varied_at;
} Total;

static void add_role(Walk *walk, int pipe, Total *total) {
    int64_t count = agreed(walk, pipe);
    for (size_t i = 0; i < walk->sites.count; i++) {
        const Site *site = &walk->sites.items[i];
        if (site->pipe != pipe) continue;
        if (site->idle >= 0 && total->idle < 0) total->idle = site->idle, total->idle_at = site->span, total->idle_role = walk->role;
        if (!total->varied_at.hi || site->least != site->most) total->varied_at = site->span;
        total->worst = *site, total->walk = walk;
    }
    if (count < 0) total->varied = true;
    else total->count += count;
    total->roles++;
}

/* Releases of one role that say different things: each is wrong where it alone is. */
static bool wrong_site(Walk *walk, const Pipe *pipe, End end, int index, int64_t blocks) {
    for (size_t i = 0; i < walk->sites.count; i++) {
        const Site *site = &walk->sites.items[i];
        if (site->pipe != index || (site->least * blocks <= pipe->declared[end] && pipe->declared[end] <= site->most * blocks)) continue;
        refuse_count(walk, pipe, end, site, (site->most < MANY ? site->most : site->least) * blocks);
        return true;
    }
    return false;
}

static void judge(Walk *walks, Pipe *pipe, int index, End end) {
    Prog *prog = walks->prog;
    Total total = {.idle = -1};
    int64_t blocks = end == END_CONSUME ? __builtin_popcount(cluster_reach(prog, pipe)) : 1;
    size_t roles = end == END_PRODUCE ? 1 : pipe->consumers.count;
    for (size_t r = 0; r < roles; r++) {
        int role = end == END_PRODUCE ? pipe->producer : pipe->consumers.items[r];
        if (!valid_index(role, prog->roles.count)) return;
        if (roles == 1 && wrong_site(&walks[role], pipe, end, index, blocks)) return;
        add_role(&walks[role], index, &total);
    }
    if (!total.walk) return;
    if (total.varied) {
        not_proved(walks->arena, walks->diags, pipe, total.varied_at, "how often it is arrived at differs between paths, or is not known");
    } else if (total.count * blocks != pipe->declared[end]) {
        refuse_count(total.walk, pipe, end, &total.worst, total.count * blocks);
    } else if (total.idle >= 0) {
        Diag *diag = not_proved(walks->arena, walks->diags, pipe, total.idle_at,
                                arena_printf(walks->arena, "warp %d of `%s` never arrives for this stage: the others may be a whole round ahead of it",
                                             total.idle, total.idle_role->name));
        diag_help(walks->diags, diag, "let every warp arrive: `if lane == 0 { arrive .. }`");
    }
}

/* ---- what is not followed ------------------------------------------------------------------------------------------- */

typedef struct Places {
    const Prog *prog;
    const Role *role;
    Diags *diags;
    int pipe;        /* -1: of inline PTX */
    Diag *diag;
    int more;
} Places;

static const char *does(const Unsafe *what) {
    switch (what->kind) {
    case UNSAFE_VALUE:
        if (what->value == VALUE_ADDRESS) return "takes the address of a stage";
        if (what->value == VALUE_BARRIER) return "takes the address of a barrier";
        return what->handle < 0 ? "asks for the cursor" : NULL;
    case UNSAFE_ARRIVE:
        if (what->at) return "arrives at another block";
        if (what->amount) return "arrives, and expects bytes";
        return what->own ? NULL : "arrives at a barrier of its choice";
    case UNSAFE_WAIT: return "waits by hand";
    case UNSAFE_EXPECT: return "expects bytes";
    case UNSAFE_STEP: return "steps over a stage";
    case UNSAFE_PTX: return NULL;
    }
    return NULL;
}

static void find_place(Stmt *stmt, void *data) {
    Places *places = data;
    bool unwaited = (stmt->kind == S_ACQUIRE && stmt->acquire.unwaited) || (stmt->kind == S_STAGE && stmt->stage.unwaited);
    int handle = stmt->kind == S_ACQUIRE ? stmt->acquire.handle : stmt->kind == S_STAGE ? stmt->stage.handle : -1;
    const char *text = NULL;
    if (unwaited && handle >= 0 && places->role->handles.items[handle].pipe == places->pipe) text = "does not wait";
    if (stmt->kind == S_UNSAFE && places->pipe >= 0 && stmt->unsafe->pipe == places->pipe) text = does(stmt->unsafe);
    if (stmt->kind == S_UNSAFE && places->pipe < 0 && stmt->unsafe->kind == UNSAFE_PTX) text = "what this does is not followed";
    if (!text) return;
    if (!places->diag) {
        places->diag = places->pipe < 0 ? diag_at(places->diags, P0490, stmt->head, "inline PTX is not proved")
                                        : diag_at(places->diags, P0490, stmt->head, "pipe `%s` is not proved",
                                                  places->prog->pipes.items[places->pipe].name);
        diag_primary(places->diags, places->diag, "%s", text);
    } else if (places->diag->label_count < DIAG_MAX_LABELS) {
        diag_label(places->diags, places->diag, stmt->head, "%s", text);
    } else {
        places->more++;
    }
}

static void name_places(Prog *prog, Diags *diags, int pipe) {
    Places places = {.prog = prog, .diags = diags, .pipe = pipe};
    for (size_t r = 0; r < prog->roles.count; r++) {
        places.role = &prog->roles.items[r];
        stmt_visit(prog->roles.items[r].body, find_place, &places);
    }
    if (!places.diag) return;
    if (places.more) diag_note(diags, places.diag, "and at %d more places", places.more);
    diag_note(diags, places.diag, "of `unsafe`, `arrive s`, `release s without signal` and `s.index` are followed; what else is done, no proof covers");
}

static void settle(Walk *walks, int index, Pipe *pipe) {
    static const char *const words[] = {[END_PRODUCE] = "declared: `arrivals full`", [END_CONSUME] = "declared: `arrivals empty`"};
    for (End end = END_PRODUCE; end <= END_CONSUME; end++) {
        if (!pipe->declared[end]) continue;
        if (!pipe->unproved && !walks->said[index]) judge(walks, pipe, index, end);
        uint32_t *count = end == END_PRODUCE ? &pipe->full_count : &pipe->empty_count;
        *count = (uint32_t)pipe->declared[end];
        *(end == END_PRODUCE ? &pipe->full_reason : &pipe->empty_reason) = words[end];
    }
}

void unsafe_check(Arena *arena, Prog *prog, Diags *diags) {
    bool declared = false, unproved = false, wrong = diags->errors > 0;
    for (size_t p = 0; p < prog->pipes.count; p++) {
        declared |= prog->pipes.items[p].declared[END_PRODUCE] || prog->pipes.items[p].declared[END_CONSUME];
        unproved |= prog->pipes.items[p].unproved;
    }
    if (wrong) return; /* what is missing is not known */
    if (!unproved) name_places(prog, diags, -1);
    if (!declared) return;
    Walk *walks = NEW_ARRAY(arena, Walk, prog->roles.count + 1);
    bool *said = NEW_ARRAY(arena, bool, prog->pipes.count + 1);
    for (size_t r = 0; r < prog->roles.count; r++) {
        walks[r] = (Walk){.arena = arena, .prog = prog, .diags = diags, .role = &prog->roles.items[r], .number = (int)r, .said = said};
        if (walks[r].role->body) walk_role(&walks[r]);
    }
    for (size_t p = 0; p < prog->pipes.count; p++) {
        settle(walks, (int)p, &prog->pipes.items[p]);
        if (prog->pipes.items[p].unproved) name_places(prog, diags, (int)p);
    }
}

/* ---- releases without signal ---------------------------------------------------------------------------------------- */

typedef struct About { /* one stage, in a statement and those inside it */
    Arena *arena;
    int handle;
    bool arrives, touches;
} About;

static void touches(Access *access, bool written, void *data) {
    About *about = data;
    (void)written;
    about->touches |= access->space == SPACE_STAGE && access->object == about->handle;
}

static void about_stmt(Stmt *stmt, void *data) {
    About *about = data;
    const Unsafe *what = stmt->kind == S_UNSAFE ? stmt->unsafe : NULL;
    about->arrives |= what && what->kind == UNSAFE_ARRIVE && what->own && what->handle == about->handle;
    about->touches |= what && !(what->kind == UNSAFE_ARRIVE && what->own) && what->handle == about->handle;
    about->touches |= stmt->kind == S_ACQUIRE && stmt->acquire.handle == about->handle;
    about->touches |= stmt->kind == S_MOVE && (stmt->move.from == about->handle || stmt->move.to == about->handle);
    walk_accesses(about->arena, stmt, touches, about);
}

/* The other end may go on from the last arrival on: there is where the stage is given up. */
static void move_up(Stmts *list, size_t at, Arena *arena) {
    Stmt *release = list->items[at];
    About about = {.arena = arena, .handle = release->release.handle};
    size_t to = at;
    while (to > 0) {
        stmt_visit(list->items[to - 1], about_stmt, &about);
        if (about.arrives || about.touches) break;
        to--;
    }
    if (!about.arrives) return;
    for (size_t i = at; i > to; i--) list->items[i] = list->items[i - 1];
    list->items[to] = release;
}

static void move_all_up(Stmt *stmt, void *data) {
    if (stmt->kind != S_BLOCK) return;
    for (size_t i = 0; i < stmt->block.body.count; i++) {
        const Stmt *inner = stmt->block.body.items[i];
        if (inner->kind == S_RELEASE && inner->release.silent) move_up(&stmt->block.body, i, data);
    }
}

void unsafe_order(Arena *arena, Prog *prog) {
    for (size_t r = 0; r < prog->roles.count; r++) stmt_visit(prog->roles.items[r].body, move_all_up, arena);
}

void unsafe_leave_out(Prog *prog) {
    for (size_t p = 0; p < prog->pipes.count; p++) prog->pipes.items[p].faulty |= prog->pipes.items[p].unproved;
}
