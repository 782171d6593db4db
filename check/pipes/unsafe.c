/* Arrivals of `unsafe` at pipes with declared arrivals. Needs the uses of pipes; replaces the
 * derived counts by the declared ones: every stage must get the declared number, over all
 * arrivals that flow/arrivals.h counts. Other effects are reported as not proved. */
#include "check/passes.h"
#include "flow/arrivals.h"

typedef struct Judge {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    const Arrivals **arrivals; /* by role; NULL: it has no body */
    bool *reported;            /* by pipe: an error was reported */
} Judge;

/* ---- arrivals of one row --------------------------------------------------------------------- */

typedef struct Given { /* over all instances that release a stage at one row */
    const Role *role;
    const Site *site;
    int64_t least, most;
    bool attained;
    int idle; /* a warp that does not arrive on every path; -1: none */
} Given;

static void add_share(Given *given, const Share *share) {
    const PipeUse *use = &given->role->pipes[given->site->pipe];
    /* all warps have issued a matrix instruction: one may arrive */
    bool one = use->arrives[END_CONSUME] == ARRIVES_INSTANCE || given->role->one_lane;
    int64_t most = given->most + share->most;
    given->least += share->least;
    given->most = most < ARRIVALS_MANY ? most : ARRIVALS_MANY;
    given->attained &= share->attained;
    for (int w = 0; w < (one ? 1 : given->role->warps) && given->idle < 0; w++)
        if (!(share->warps >> w & 1)) given->idle = w;
}

static Given given_at(const Role *role, const Site *site) {
    Given given = {.role = role, .site = site, .attained = true, .idle = -1};
    for (int i = 0; i < role->instances; i++)
        if (site->shares[i].comes) add_share(&given, &site->shares[i]);
    return given;
}

/* The beginning of a stage block */
static Span release_of(const Given *given) {
    const Row *row = code_row(given->role->code, given->site->row);
    return row->block && !row->leaving ? row->head : row->span;
}

/* The first row that arrives after row `after`; -1: none */
static int arrive_after(const Given *given, int after) {
    int found = -1;
    for (const Arrive *at = given->site->arrives; at; at = at->next)
        if (at->row > after && (found < 0 || at->row < found)) found = at->row;
    return found;
}

/* The place of the arrivals, if there are any. */
static Span blamed_at(const Given *given) {
    int first = arrive_after(given, -1);
    return first < 0 ? release_of(given) : code_row(given->role->code, first)->span;
}

/* ---- refusals -------------------------------------------------------------------------------- */

static const char *barrier_word(End end) { return end == END_PRODUCE ? "full" : "empty"; }

static void label_all(Judge *j, Diag *diag, const Given *given, int64_t count) {
    const char *name = given->role->name;
    int first = arrive_after(given, -1);
    bool silent = code_row(given->role->code, given->site->row)->kind == ROW_DROP;
    bool alone = first < 0 || (silent && arrive_after(given, first) < 0);
    if (alone)
        diag_label(j->diags, diag, blamed_at(given), "`%s` makes %lld arrival%s here", name,
                   (long long)count, count == 1 ? "" : "s");
    else
        diag_label(j->diags, diag, blamed_at(given), "`%s` makes %lld arrival%s: here", name,
                   (long long)count, count == 1 ? "" : "s");
    for (int at = first;
         !alone && (at = arrive_after(given, at)) >= 0 && diag->label_count < DIAG_MAX_LABELS;)
        diag_label(j->diags, diag, code_row(given->role->code, at)->span, "and here");
    if (!alone && !silent && diag->label_count < DIAG_MAX_LABELS)
        diag_label(j->diags, diag, release_of(given), "and by this release");
}

static void label_path(Judge *j, Diag *diag, const Given *given, int64_t count) {
    diag_label(j->diags, diag, release_of(given),
               "`%s` makes %lld arrival%s on a path to this release", given->role->name,
               (long long)count, count == 1 ? "" : "s");
    if (arrive_after(given, -1) >= 0)
        diag_label(j->diags, diag, blamed_at(given), "other paths arrive here");
}

/* `total`: over all consumers and blocks; `count`: of this row; on a path: not on all */
static void refuse_count(Judge *j, int index, End end, const Given *given, int64_t total,
                         int64_t count, bool path) {
    const Pipe *pipe = &j->prog->pipes.items[index];
    int64_t declared = pipe->declared[end];
    Diag *diag = diag_at(j->diags, P0421, pipe->declared_at[end],
                         "`%s` declares %lld arrival%s per phase of its %s barrier, but gets %lld",
                         pipe->name, (long long)declared, declared == 1 ? "" : "s",
                         barrier_word(end), (long long)total);
    bool fewer = total < declared;
    if (fewer)
        diag_primary(j->diags, diag, "no phase would complete");
    else
        diag_primary(j->diags, diag, "the other %lld would count for the next phase",
                     (long long)(total - declared));
    if (path)
        label_path(j, diag, given, count);
    else
        label_all(j, diag, given, count);
    if (path)
        diag_help(j->diags, diag, "arrive the same number of times on every path");
    else
        diag_help(j->diags, diag,
                  "declare `arrivals %s %lld`, or arrive %s; without a guard such as "
                  "`if lane == 0`, each of the 32 threads of a warp arrives",
                  barrier_word(end), (long long)total, fewer ? "more often" : "less often");
    j->reported[index] = true;
}

static Diag *not_proved(Judge *j, int index, Span span, const char *why) {
    Diag *diag =
        diag_at(j->diags, P0490, span, "the operations on the barriers of pipe `%s` are not proved",
                j->prog->pipes.items[index].name);
    diag_primary(j->diags, diag, "%s", why);
    return diag;
}

static void refuse_late_touch(Judge *j, const Given *given) {
    const Row *row = code_row(given->role->code, given->site->row);
    const Handle *what = &given->role->handles.items[row->handle];
    Diag *diag = diag_at(j->diags, P0423, given->site->touched_at,
                         "stage `%s` is used after its last arrival", what->name);
    diag_primary(j->diags, diag, "%s may already own the stage",
                 what->end == END_PRODUCE ? "a consumer" : "the producer");
    diag_label(j->diags, diag, given->site->arrived_at, "last arrival");
    diag_label(j->diags, diag, row->span, "released without a signal");
    diag_help(j->diags, diag, "move the `arrive` after the last use of the stage");
    j->reported[what->pipe] = true;
}

/* ---- verdicts -------------------------------------------------------------------------------- */

typedef struct Total { /* of one end of a pipe */
    int64_t count;     /* of the roles so far */
    bool varied;       /* the count of some role is not constant */
    /* rows for the message: the last one, and one with an unknown count, or the first */
    Given last, unclear;
    Given idle; /* a row at which a warp never arrives */
} Total;

/* The common count of a role's rows; -1: they differ */
static int64_t agreed(const Judge *j, int role, int pipe) {
    const Arrivals *all = j->arrivals[role];
    int64_t count = -1;
    for (size_t i = 0; all && i < all->sites.count; i++) {
        if (all->sites.items[i].pipe != pipe) continue;
        Given given = given_at(&j->prog->roles.items[role], &all->sites.items[i]);
        if (given.least != given.most || (count >= 0 && count != given.most)) return -1;
        count = given.most;
    }
    return count;
}

static void add_role(const Judge *j, int role, int pipe, Total *total) {
    const Arrivals *all = j->arrivals[role];
    int64_t count = agreed(j, role, pipe);
    for (size_t i = 0; all && i < all->sites.count; i++) {
        if (all->sites.items[i].pipe != pipe) continue;
        Given given = given_at(&j->prog->roles.items[role], &all->sites.items[i]);
        if (given.idle >= 0 && !total->idle.role) total->idle = given;
        if (!total->unclear.role || given.least != given.most) total->unclear = given;
        total->last = given;
    }
    if (count < 0)
        total->varied = true;
    else
        total->count += count;
}

/* Errors independent of other rows and roles. For a single role: each possible count other than
 * the declared one; for one of several: a path on which it never arrives. */
static bool wrong_alone(Judge *j, const Given *given, int index, End end, bool single,
                        int64_t blocks) {
    int64_t declared = j->prog->pipes.items[index].declared[end];
    bool differs = given->least != given->most && given->attained;
    int64_t least = given->least * blocks, most = given->most * blocks;
    bool outside = single && (least > declared || (given->most < ARRIVALS_MANY && most < declared));
    bool never = given->least == 0 && given->attained;
    if (!outside && !(differs && single) && !never) return false;
    int64_t count = given->most < ARRIVALS_MANY ? given->most : given->least;
    if (differs) count = least != declared ? given->least : given->most;
    refuse_count(j, index, end, given, count * blocks, count, differs);
    return true;
}

static bool wrong_row(Judge *j, int role, int index, End end, bool single, int64_t blocks) {
    const Arrivals *all = j->arrivals[role];
    for (size_t i = 0; all && i < all->sites.count; i++) {
        if (all->sites.items[i].pipe != index) continue;
        Given given = given_at(&j->prog->roles.items[role], &all->sites.items[i]);
        if (wrong_alone(j, &given, index, end, single, blocks)) return true;
    }
    return false;
}

static void judge_total(Judge *j, const Total *total, int index, End end, int64_t blocks) {
    if (!total->last.role) return;
    if (total->varied) {
        not_proved(j, index, blamed_at(&total->unclear),
                   "the number of arrivals differs between paths, or is unknown");
    } else if (total->count * blocks != j->prog->pipes.items[index].declared[end]) {
        refuse_count(j, index, end, &total->last, total->count * blocks, total->last.most, false);
    } else if (total->idle.role) {
        const char *why = arena_printf(j->arena,
                                       "warp %d of `%s` never arrives for this stage: other warps "
                                       "may run a whole lap ahead of it",
                                       total->idle.idle, total->idle.role->name);
        Diag *diag = not_proved(j, index, blamed_at(&total->idle), why);
        diag_help(j->diags, diag, "let every warp arrive: `if lane == 0 { arrive .. }`");
    }
}

static void judge(Judge *j, int index, End end) {
    const Pipe *pipe = &j->prog->pipes.items[index];
    Total total = {0};
    int64_t blocks = end == END_CONSUME ? __builtin_popcount(cluster_reach(j->prog, pipe)) : 1;
    size_t roles = end == END_PRODUCE ? 1 : pipe->consumers.count;
    for (size_t r = 0; r < roles; r++) {
        int role = end == END_PRODUCE ? pipe->producer : pipe->consumers.items[r];
        if (!valid_index(role, j->prog->roles.count)) return;
        if (wrong_row(j, role, index, end, roles == 1, blocks)) return;
        add_role(j, role, index, &total);
    }
    judge_total(j, &total, index, end, blocks);
}

/* ---- unproved uses --------------------------------------------------------------------------- */

typedef struct Places {
    const Prog *prog;
    const Role *role;
    Diags *diags;
    int pipe; /* -1: of inline PTX */
    Diag *diag;
    int more;
} Places;

static const char *does(const Unsafe *what) {
    switch (what->kind) {
    case UNSAFE_VALUE:
        if (what->value == VALUE_ADDRESS) return "takes the address of a stage";
        if (what->value == VALUE_BARRIER) return "takes the address of a barrier";
        return what->handle < 0 ? "reads the cursor" : NULL;
    case UNSAFE_ARRIVE:
        if (what->at) return "arrives at another block";
        if (what->amount) return "arrives and expects bytes";
        return what->own ? NULL : "arrives at a barrier that the program chooses";
    case UNSAFE_WAIT: return "waits by hand";
    case UNSAFE_EXPECT: return "expects bytes";
    case UNSAFE_STEP: return "steps over a stage";
    case UNSAFE_PTX: return NULL;
    }
    return NULL;
}

static const char *done_by(const Places *places, const Row *row) {
    const Unsafe *what = row->unsafe;
    if (what && places->pipe < 0)
        return what->kind == UNSAFE_PTX ? "the checker does not follow this" : NULL;
    if (what) return what->pipe == places->pipe ? does(what) : NULL;
    if (row->kind != ROW_ACQUIRE || !row->unwaited || row->handle < 0) return NULL;
    return places->role->handles.items[row->handle].pipe == places->pipe ? "does not wait" : NULL;
}

static void find_place(Places *places, const Row *row) {
    const char *text = done_by(places, row);
    if (!text) return;
    if (!places->diag) {
        places->diag = places->pipe < 0
                           ? diag_at(places->diags, P0490, row->head, "inline PTX is not checked")
                           : diag_at(places->diags, P0490, row->head,
                                     "the operations on the barriers of pipe `%s` are not proved",
                                     places->prog->pipes.items[places->pipe].name);
        diag_primary(places->diags, places->diag, "%s", text);
    } else if (places->diag->label_count < DIAG_MAX_LABELS) {
        diag_label(places->diags, places->diag, row->head, "%s", text);
    } else {
        places->more++;
    }
}

static void name_places(Prog *prog, Diags *diags, int pipe) {
    Places places = {.prog = prog, .diags = diags, .pipe = pipe};
    for (size_t r = 0; r < prog->roles.count; r++) {
        places.role = &prog->roles.items[r];
        const FlowCode *code = places.role->code;
        for (size_t at = 0; at < code->rows.count; at++) find_place(&places, &code->rows.items[at]);
    }
    if (!places.diag) return;
    if (places.more) diag_note(diags, places.diag, "and at %d more places", places.more);
    diag_note(diags, places.diag,
              "the checker follows only `arrive s`, `release s without signal` and `s.index` of "
              "`unsafe`");
}

static void judge_pipe(Judge *j, int index) {
    const Pipe *pipe = &j->prog->pipes.items[index];
    if (pipe->unproved || j->reported[index]) return;
    for (End end = END_PRODUCE; end <= END_CONSUME; end++)
        if (pipe->declared[end]) judge(j, index, end);
}

static void count_role(Judge *j, Role *role, const Arrivals **out) {
    *out = role->code->arrivals = flow_arrivals(j->arena, role->code);
    if (!(*out)->complete)
        incomplete_report(j->diags, role, "every phase gets the declared number of arrivals");
    for (size_t i = 0; i < (*out)->sites.count; i++) {
        Given given = given_at(role, &(*out)->sites.items[i]);
        if (given.site->late && !j->reported[given.site->pipe]) refuse_late_touch(j, &given);
    }
}

void unsafe_check(Arena *arena, Prog *prog, Diags *diags) {
    Judge j = {.arena = arena, .prog = prog, .diags = diags};
    bool declared = false, unproved = false;
    for (size_t p = 0; p < prog->pipes.count; p++) {
        declared |= prog->pipes.items[p].declared[END_PRODUCE] ||
                    prog->pipes.items[p].declared[END_CONSUME];
        unproved |= prog->pipes.items[p].unproved;
    }
    if (diags->errors > 0) return; /* missing arrivals may be due to errors */
    if (!unproved) name_places(prog, diags, -1);
    if (!declared) return;
    j.arrivals = NEW_ARRAY(arena, const Arrivals *, prog->roles.count + 1);
    j.reported = NEW_ARRAY(arena, bool, prog->pipes.count + 1);
    for (size_t r = 0; r < prog->roles.count; r++)
        count_role(&j, &prog->roles.items[r], &j.arrivals[r]);
    for (size_t p = 0; p < prog->pipes.count; p++) {
        judge_pipe(&j, (int)p);
        if (prog->pipes.items[p].unproved) name_places(prog, diags, (int)p);
    }
}

void unsafe_leave_out(Prog *prog) {
    for (size_t p = 0; p < prog->pipes.count; p++)
        prog->pipes.items[p].faulty |= prog->pipes.items[p].unproved;
}
