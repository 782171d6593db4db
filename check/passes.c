/* Runs the passes of passes.def over an elaborated program. */
#include "check/known.h"
#include "derive/order.h"
#include "flow/uniform.h"
#include "flow/values.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* ---- passes of other floors ------------------------------------------------------------------ */

static void lower_roles(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    for (size_t r = 0; r < prog->roles.count; r++)
        prog->roles.items[r].code = code_lower(arena, prog, &prog->roles.items[r]);
}

static void derive_uniformity(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    for (size_t r = 0; r < prog->roles.count; r++) flow_uniform(arena, prog, &prog->roles.items[r]);
}

static void require_widths(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    widths_require(arena, prog);
}

static void find_values(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    for (size_t r = 0; r < prog->roles.count; r++)
        (void)flow_values(arena, prog->roles.items[r].code);
}

static void make_plans(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    plan_make(arena, prog);
}

static void find_order(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    order_find(arena, prog);
}

static void classify(Arena *arena, Prog *prog, Diags *diags) {
    plan_open(arena, prog);
    prog->tiles = tiles_check(arena, prog, diags);
}

#define OF_TILES(name, function)                                                                   \
    static void name(Arena *arena, Prog *prog, Diags *diags) {                                     \
        (void)diags;                                                                               \
        function(arena, prog->tiles);                                                              \
    }

OF_TILES(check_written, tiles_written)
OF_TILES(check_padding, tiles_padding)

static void explicit_arrivals(Arena *arena, Prog *prog, Diags *diags) {
    (void)arena, (void)diags;
    unsafe_leave_out(prog);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum Reads { CODE, DEPTHS } Reads;
typedef enum When { ALWAYS, SOUND } When;

typedef struct PassRow {
    const char *name;
    void (*run)(Arena *arena, Prog *prog, Diags *diags);
    unsigned needs, leaves;
    Reads reads;
    When when;
} PassRow;

static const PassRow rows[] = {
#define PASS(name, function, needs, leaves, reads, when)                                           \
    {#name, function, needs, leaves, reads, when},
#include "check/passes.def"
};

_Static_assert(COUNT_OF(rows) <= 64, "a bit each, in KnownCode");

/* facts that consist of numbers, which can be stored for another program */
#define FACTS_KEPT FACT_STAGES

typedef struct Passes {
    Arena *arena;
    Prog *prog;
    Diags *diags;
    int *depths; /* of the program's pipes */
    int grouped;
    size_t constants;
    size_t made;      /* number of diagnostics before the passes */
    Known *known;     /* NULL: there are no other combinations */
    KnownCode *entry; /* entry of this Code; NULL: none */
} Passes;

/* Sanitised builds check the validity of Code after each pass. */
static void validate(Arena *arena, const Prog *prog) {
#if defined(__SANITIZE_ADDRESS__)
    for (size_t r = 0; r < prog->roles.count; r++) {
        Str why = str_new(arena);
        if (!code_valid(arena, prog->roles.items[r].code, &why)) abort();
    }
#else
    (void)arena, (void)prog;
#endif
}

/* ---- state outside of Code ------------------------------------------------------------------- */

/* Depths of pipes, and values that no pass with CODE reads: constants. They
 * are hidden from passes that read only Code. */
static void hide(const Passes *passes) {
    Prog *prog = passes->prog;
    for (size_t i = 0; i < prog->pipes.count; i++) prog->pipes.items[i].stages = 0;
    prog->grouped = 0, prog->constants.count = 0;
}

static void show(const Passes *passes) {
    Prog *prog = passes->prog;
    for (size_t i = 0; i < prog->pipes.count; i++) prog->pipes.items[i].stages = passes->depths[i];
    prog->grouped = passes->grouped, prog->constants.count = passes->constants;
}

/* ---- one pass -------------------------------------------------------------------------------- */

static bool only_reports(const PassRow *row) { return (row->leaves & ~FACTS_KEPT) == 0; }

/* The memory of a pass that sets no fact is freed after it. */
static void run_pass(const Passes *passes, const PassRow *row) {
    Spent begin = times_begin(passes->arena);
    Arena *own = only_reports(row) ? arena_scratch(passes->arena) : passes->arena;
    if (row->reads == CODE) hide(passes);
    row->run(own, passes->prog, passes->diags);
    show(passes);
    if (own != passes->arena) arena_free(own);
    times_end(passes->arena, row->name, begin);
}

/* Sanitised builds run a skipped pass too and compare: it must report nothing and must leave the
 * program unchanged, with the stored FACT_STAGES. */
static void try_again(const Passes *passes, const PassRow *row) {
#if defined(__SANITIZE_ADDRESS__)
    Str before = str_new(passes->arena), after = str_new(passes->arena);
    size_t made = passes->diags->made;
    prog_print(passes->prog, passes->arena, &before);
    run_pass(passes, row);
    prog_print(passes->prog, passes->arena, &after);
    bool same = strcmp(before.text, after.text) == 0;
    if (row->leaves & FACT_STAGES) same = same && known_has_stages(passes->entry, passes->prog);
    if (passes->diags->made != made || !same) abort();
#else
    (void)passes, (void)row;
#endif
}

static void leave_out(const Passes *passes, const PassRow *row) {
    if (row->leaves & FACT_STAGES) order_give(passes->prog, passes->entry->stages);
    try_again(passes, row);
}

static void note_clean(const Passes *passes, size_t pass) {
    if (passes->diags->made != passes->made) return;
    if (rows[pass].leaves & FACT_STAGES)
        known_keep_stages(passes->known, passes->entry, passes->prog);
    passes->entry->clean |= UINT64_C(1) << pass;
}

static void take_pass(const Passes *passes, size_t pass) {
    const PassRow *row = &rows[pass];
    bool reusable = passes->entry && row->reads == CODE && only_reports(row);
    if (reusable && passes->entry->clean >> pass & 1) {
        leave_out(passes, row);
        return;
    }
    run_pass(passes, row);
    validate(passes->arena, passes->prog);
    if (reusable) note_clean(passes, pass);
}

/* ---- all passes ------------------------------------------------------------------------------ */

/* true if a static of the kernel has a set of values; otherwise no other program has this Code */
static bool varies(const Prog *prog) {
    for (size_t i = 0; i < prog->constants.count; i++)
        if (prog->constants.items[i].choices.count > 1) return true;
    return false;
}

static void find_known(Passes *passes) {
    if (!passes->known || !varies(passes->prog)) return;
    Spent begin = times_begin(passes->arena);
    Key key = {.arena = arena_scratch(passes->arena)};
    hide(passes);
    code_key(&key, passes->prog);
    show(passes);
    passes->entry = known_find(passes->known, &key);
    arena_free(key.arena);
    times_end(passes->arena, "same code", begin);
}

static Passes passes_of(Arena *arena, Prog *prog, Known *known, Diags *diags) {
    Passes passes = {.arena = arena,
                     .prog = prog,
                     .diags = diags,
                     .depths = NEW_ARRAY(arena, int, prog->pipes.count),
                     .grouped = prog->grouped,
                     .constants = prog->constants.count,
                     .made = diags->made,
                     .known = known};
    for (size_t i = 0; i < prog->pipes.count; i++) passes.depths[i] = prog->pipes.items[i].stages;
    return passes;
}

void passes_run(Arena *arena, Prog *prog, Known *known, Diags *diags, size_t errors) {
    Passes passes = passes_of(arena, prog, known, diags);
    unsigned facts = 0, of_depths = 0;
    bool sound = diags->errors == errors;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const PassRow *row = &rows[i];
        if (diags->errors - errors >= ERRORS_MOST) {
            diag_plain(diags, P0020, "the check of `%s` stops after %d errors", prog->name,
                       ERRORS_MOST);
            break;
        }
        if (row->reads == DEPTHS) of_depths |= row->leaves & ~facts;
        assert(row->reads == DEPTHS || (row->needs & of_depths) == 0);
        if (row->when == SOUND && !sound) continue;
        assert((facts & row->needs) == row->needs);
        take_pass(&passes, i);
        facts |= row->leaves;
        if (row->leaves & FACT_CODE) find_known(&passes);
        if (row->when == ALWAYS) sound = diags->errors == errors;
        prog->passes = (int)i + 1;
    }
}

bool check_passed(const Prog *prog, const char *pass) {
    for (int i = 0; i < prog->passes; i++)
        if (strcmp(rows[i].name, pass) == 0) return true;
    return false;
}
