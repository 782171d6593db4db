/* Each pipe is acquired equally often by its producer and by every consumer, for all sizes.
 * Needs the linear rule; proves equal counts, perhaps under a launch precondition, or reports
 * the difference. An undecided count is refused as such. */
#include "check/pipes/counts.h"

#include "check/deadlock/deadlock.h"
#include "check/passes.h"

typedef struct Counts {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    /* Loops and conditions whose difference was reported: they may contain acquires of several
     * pipes */
    VEC(const Stmt *) reported;
} Counts;

typedef struct Pair { /* both ends of a pipe: producer, one consumer */
    int pipe;
    EndCode ends[2];
    int first_difference[2]; /* the first rows that differ, -1: none */
} Pair;

/* ---- messages -------------------------------------------------------------------------------- */

static const char *name_of(const Pair *pair, int side) { return pair->ends[side].role->name; }

static const Row *apart_row(const Pair *pair, int side) {
    const FlowCode *slice = pair->ends[side].slice;
    const Row *row =
        pair->first_difference[side] < 0 ? NULL : &slice->rows.items[pair->first_difference[side]];
    return row && row->kind != ROW_ACQUIRE ? row : NULL;
}

static void note_difference(const Counts *c, Diag *diag, const Difference *difference) {
    diag_note(c->diags, diag,
              "%s%s%s%lld produced, %lld consumed; one of the two roles waits forever",
              difference->where.length ? "at " : "",
              difference->where.length ? difference->where.text : "",
              difference->where.length ? ": " : "", (long long)difference->acquired[0],
              (long long)difference->acquired[1]);
}

static void refuse_leave(const Counts *c, const Pair *pair) {
    const Row *leave = NULL;
    const Pipe *pipe = &c->prog->pipes.items[pair->pipe];
    int side = end_leaves(&pair->ends[1], &leave) ? 1 : 0;
    Difference difference = {.where = str_new(c->arena)};
    if (side == 0) end_leaves(&pair->ends[0], &leave);
    bool returns = pair->ends[side].slice->regions.items[leave->target].kind == REGION_BLOCK;
    const char *what = returns ? "function" : "loop";
    Diag *diag = diag_at(c->diags, P0452, leave->span,
                         "a %s with operations on pipe `%s` is left early", what, pipe->name);
    diag_primary(c->diags, diag, "`%s` leaves the %s here", name_of(pair, side), what);
    diag_label(c->diags, diag, end_first(&pair->ends[1 - side]),
               "`%s` continues, and would wait forever here", name_of(pair, 1 - side));
    if (counts_difference(c->arena, c->prog, pair->pipe, pair->ends, &difference))
        note_difference(c, diag, &difference);
    diag_help(c->diags, diag,
              returns ? "let `%s` leave out the same stage under the same condition, or move the "
                        "condition inside the block of the stage"
                      : "let `%s` leave its loop at the same place under the same condition, or "
                        "move the condition inside the block of the stage",
              name_of(pair, 1 - side));
}

/* By sizes that were found, or by two constants */
static bool differ(const Counts *c, const Pair *pair, Difference *difference) {
    difference->where = str_new(c->arena);
    if (counts_difference(c->arena, c->prog, pair->pipe, pair->ends, difference)) return true;
    if (!counts_constant(c->arena, c->prog, pair->ends, difference->acquired)) return false;
    str_add(&difference->where, "each grid tile");
    return true;
}

/* The surplus acquire, in the role that has it; otherwise the first acquire */
static Span place_of(const Pair *pair, int side, const Difference *difference) {
    bool more = difference->acquired[side] > difference->acquired[1 - side];
    return more && difference->surplus.hi ? difference->surplus : end_first(&pair->ends[side]);
}

static void label_count(const Counts *c, const Pair *pair, int side, Diag *diag, Span place) {
    const char *text = counts_text(c->arena, c->prog, &pair->ends[side]);
    if (!text) text = "a number of stages that depends on its loops and conditions";
    text = arena_printf(c->arena, "`%s` %s %s", name_of(pair, side), side ? "consumes" : "produces",
                        text);
    if (side == 1)
        diag_primary(c->diags, diag, "%s", text);
    else
        diag_label(c->diags, diag, place, "%s", text);
}

/* Labels the loop, condition or exit of each role that the other one lacks */
static void label_apart(const Counts *c, const Pair *pair, Diag *diag, bool differ) {
    for (int i = 1; i >= 0; i--) {
        const Row *row = apart_row(pair, i);
        if (row)
            diag_label(c->diags, diag, row->head,
                       differ ? "determines the count of `%s`" : "`%s` loops or branches here",
                       name_of(pair, i));
    }
}

static bool is_apart_by(const Pair *pair, int side, RowKind kind) {
    const Row *row = apart_row(pair, side);
    return row && row->kind == kind;
}

static bool is_apart_by_grid(const Pair *pair, int side) {
    return is_apart_by(pair, side, ROW_LOOP) &&
           pair->ends[side].slice->regions.items[apart_row(pair, side)->region].kind == REGION_GRID;
}

/* A condition of the text, or nothing; not the `where` of a range */
static bool is_apart_by_condition(const Pair *pair, int side) {
    const Row *row = apart_row(pair, side);
    if (!row || row->kind != ROW_IF) return !row;
    const Region *regions = pair->ends[side].slice->regions.items;
    int parent = regions[row->region].parent;
    return parent < 0 || regions[parent].head.lo != row->head.lo;
}

/* What to write instead, by what the two roles have apart */
static const char *help_apart(const Counts *c, const Pair *pair) {
    if (is_apart_by(pair, 0, ROW_LEAVE) || is_apart_by(pair, 1, ROW_LEAVE))
        return "leave the loops of both roles under the same condition";
    if (is_apart_by_grid(pair, 0) != is_apart_by_grid(pair, 1))
        return "let both roles do it in the loop over the grid, or both outside of it";
    if (is_apart_by(pair, 0, ROW_LOOP) && is_apart_by(pair, 1, ROW_LOOP))
        return "loop over the same `range` in both roles";
    if (is_apart_by_condition(pair, 0) && is_apart_by_condition(pair, 1) &&
        (apart_row(pair, 0) || apart_row(pair, 1)))
        return "acquire the stages at both ends under the same conditions";
    if (pair->ends[0].role == pair->ends[1].role)
        return arena_printf(c->arena, "let `%s` consume one stage for each that it produces",
                            name_of(pair, 0));
    return arena_printf(c->arena, "let `%s` consume one stage for each that `%s` produces",
                        name_of(pair, 1), name_of(pair, 0));
}

static void refuse_counts(const Counts *c, const Pair *pair) {
    const Pipe *pipe = &c->prog->pipes.items[pair->pipe];
    Difference difference = {0};
    bool differs = differ(c, pair, &difference);
    Diag *diag =
        diag_at(c->diags, differs ? P0450 : P0451, place_of(pair, 1, &difference),
                differs ? "pipe `%s` is not consumed as often as it is produced"
                        : "cannot show that pipe `%s` is consumed as often as it is produced",
                pipe->name);
    for (int i = 1; i >= 0; i--) label_count(c, pair, i, diag, place_of(pair, i, &difference));
    if (differs) note_difference(c, diag, &difference);
    label_apart(c, pair, diag, differs);
    bool wraps = !differs && counts_equal_unless_wraps(c->arena, c->prog, pair->ends);
    if (wraps)
        diag_note(c->diags, diag,
                  "they are equal unless a sum or difference wraps: these values may need more "
                  "than its 32 bits, as -2147483648 and 1 do");
    diag_help(c->diags, diag, "%s",
              differs ? help_apart(c, pair)
              : wraps ? "limit each of the values in both roles, as in `min(max(value, 0), "
                        "1000000)`, or loop from and to the same values"
                      : "use the same `range` for the loops of both roles, or the same "
                        "comparisons of the same values as conditions");
}

/* ---- nonempty ranges ------------------------------------------------------------------------- */

/* Ranges of loops are assumed to be nonempty, unless the program tests that itself. */
static void suppose_nonempty(const EndCode *end, Emptiness *known, size_t count) {
    for (size_t r = 0; r < end->slice->regions.count; r++) {
        const Region *region = &end->slice->regions.items[r];
        if (region->kind == REGION_FOR && valid_index(region->domain, count))
            known[region->domain] = NONEMPTY;
    }
}

static void leave_out_asked(const EndCode *end, Emptiness *known, size_t count) {
    for (size_t r = 0; r < end->slice->regions.count; r++) {
        const Region *region = &end->slice->regions.items[r];
        bool asks = region->kind == REGION_IF && region->otherwise + 1 < region->end;
        if (asks && valid_index(region->nonempty, count)) known[region->nonempty] = MAYBE_EMPTY;
    }
}

/* The end that acquires even if the range is empty: 0 the producer's, 1 the consumer's */
static int acquires_anyway(const Counts *c, const Pair *pair, int domain) {
    Emptiness *known = NEW_ARRAY(c->arena, Emptiness, c->prog->domains.count + 1);
    known[domain] = EMPTY;
    return counts_nothing(c->arena, c->prog, &pair->ends[0], known) ? 1 : 0;
}

static void require_nonempty(const Counts *c, const Pair *pair, const Domain *domain,
                             Expr *condition) {
    Prog *prog = c->prog;
    Str text = str_new(c->arena);
    int64_t lo;
    Algebra *algebra = algebra_new(c->arena, prog, NULL);
    if (expr_constant(domain->lo, &lo) && lo == 0) condition = positive(c->arena, domain->hi);
    if (algebra_required(algebra, condition)) return;
    expr_print(condition, prog, NULL, NULL, &text);
    const char *reason = arena_printf(c->arena,
                                      "pipe `%s` is acquired once before or after a part of `%s`, "
                                      "which therefore must not be empty",
                                      prog->pipes.items[pair->pipe].name, domain->name);
    const char *help = arena_printf(
        c->arena, "or write `if %s nonempty { .. }` around it in every role", domain->name);
    vec_push(c->arena, &prog->preconditions,
             (Precondition){condition, text.text, reason, help, domain->span, false, false, 0});
}

static void oblige(const Counts *c, const Pair *pair, int index) {
    const Domain *domain = &c->prog->domains.items[index];
    Expr *condition = domain_nonempty(c->arena, c->prog, index);
    if (condition && expr_is_launch_constant(condition)) {
        require_nonempty(c, pair, domain, condition);
        return;
    }
    int side = acquires_anyway(c, pair, index);
    Diag *diag = diag_at(c->diags, P0453, end_first(&pair->ends[side]),
                         "pipe `%s` is acquired even where range `%s` is empty",
                         c->prog->pipes.items[pair->pipe].name, domain->name);
    diag_primary(c->diags, diag, "`%s` acquires a stage even then", name_of(pair, side));
    diag_label(c->diags, diag, end_first(&pair->ends[1 - side]), "`%s` acquires none then",
               name_of(pair, 1 - side));
    diag_label(c->diags, diag, domain->span, "may be empty for some grid tiles");
    diag_help(c->diags, diag, "write `if %s nonempty { .. }` around the acquire, in every role",
              domain->name);
}

static bool proved_nonempty(const Counts *c, const Pair *pair) {
    size_t count = c->prog->domains.count;
    Emptiness *known = NEW_ARRAY(c->arena, Emptiness, count + 1);
    for (int i = 0; i < 2; i++) suppose_nonempty(&pair->ends[i], known, count);
    for (int i = 0; i < 2; i++) leave_out_asked(&pair->ends[i], known, count);
    for (size_t d = 0; d < count; d++)
        if (known[d] == NONEMPTY && !domain_nonempty(c->arena, c->prog, (int)d))
            known[d] = MAYBE_EMPTY;
    if (!counts_equal(c->arena, c->prog, pair->ends, known)) return false;
    for (size_t d = 0; d < count; d++) { /* only the necessary ones */
        if (known[d] != NONEMPTY) continue;
        known[d] = MAYBE_EMPTY;
        if (!counts_equal(c->arena, c->prog, pair->ends, known)) known[d] = NONEMPTY;
    }
    for (size_t d = 0; d < count; d++)
        if (known[d] == NONEMPTY) oblige(c, pair, (int)d);
    return true;
}

/* ---- pipes ----------------------------------------------------------------------------------- */

/* One condition, or loop, that affects several pipes is one error */
static bool was_reported(const Counts *c, const Pair *pair) {
    for (int i = 0; i < 2; i++) {
        int at = pair->first_difference[i];
        for (size_t k = 0; k < c->reported.count && at >= 0; k++)
            if (c->reported.items[k] == pair->ends[i].slice->rows.items[at].stmt) return true;
    }
    return false;
}

static void check_pair(Counts *c, Pair *pair) {
    Emptiness *known = NEW_ARRAY(c->arena, Emptiness, c->prog->domains.count + 1);
    const Row *leave;
    if (!end_first(&pair->ends[0]).hi || !end_first(&pair->ends[1]).hi)
        return; /* reported by `roles` */
    if (counts_same(c->arena, c->prog, pair->ends, pair->first_difference)) return;
    if (counts_same_in_pieces(c->arena, c->prog, pair->ends)) return;
    if (counts_equal(c->arena, c->prog, pair->ends, known)) return;
    if (proved_nonempty(c, pair) || was_reported(c, pair)) return;
    for (int i = 0; i < 2; i++) {
        const Row *row = apart_row(pair, i);
        if (row) vec_push(c->arena, &c->reported, row->stmt);
    }
    if (end_leaves(&pair->ends[0], &leave) != end_leaves(&pair->ends[1], &leave))
        refuse_leave(c, pair);
    else
        refuse_counts(c, pair);
}

static void find_poison(Expr *expr, void *data) { *(bool *)data |= expr->kind == X_POISON; }

typedef struct Search {
    Arena *arena;
    bool poison;
} Search;

static void search_poison(Expr *expr, void *data) {
    Search *search = data;
    expr_visit(search->arena, expr, find_poison, &search->poison);
}

/* An acquire names no pipe, or a bound is poison: no verdict for this role */
static bool is_unknown(Arena *arena, const Prog *prog, const Role *role) {
    Search search = {arena, role->forgotten};
    for (size_t at = 0; at < role->code->rows.count; at++) {
        const Row *row = &role->code->rows.items[at];
        if (row_decides(row->kind)) row_exprs(role->code, row, search_poison, &search);
        if (row->kind != ROW_ACQUIRE) continue;
        if (!valid_index(row->handle, role->handles.count)) return true;
        const Handle *handle = &role->handles.items[row->handle];
        if (!valid_index(handle->pipe, prog->pipes.count) || handle->forgotten) return true;
    }
    return search.poison;
}

static void check_pipe(Counts *c, int index, const bool *unknown) {
    const Pipe *pipe = &c->prog->pipes.items[index];
    const Role *roles = c->prog->roles.items;
    size_t count = c->prog->roles.count, before = c->diags->errors;
    if (pipe->faulty || !valid_index(pipe->producer, count) || unknown[pipe->producer]) return;
    EndCode producer = end_code(c->arena, &roles[pipe->producer], index, END_PRODUCE);
    for (size_t i = 0; i < pipe->consumers.count; i++) {
        int consumer = pipe->consumers.items[i];
        if (!valid_index(consumer, count) || unknown[consumer]) continue;
        Pair pair = {
            index, {producer, end_code(c->arena, &roles[consumer], index, END_CONSUME)}, {-1, -1}};
        check_pair(c, &pair);
        if (c->diags->errors != before) return; /* the producer may be the wrong one */
    }
}

void counts_check(Arena *arena, Prog *prog, Diags *diags) {
    Counts counts = {.arena = arena, .prog = prog, .diags = diags};
    bool *unknown = NEW_ARRAY(arena, bool, prog->roles.count + 1);
    if (words_failed(diags)) return;
    for (size_t r = 0; r < prog->roles.count; r++)
        unknown[r] = is_unknown(arena, prog, &prog->roles.items[r]);
    for (size_t p = 0; p < prog->pipes.count; p++) check_pipe(&counts, (int)p, unknown);
    if (diags->errors == 0) deadlock_check(arena, prog, diags);
}
