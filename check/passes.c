/* Runs the passes of passes.def over an elaborated program. */
#include "check/passes.h"
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
    for (size_t r = 0; r < prog->roles.count; r++) (void)flow_values(arena, prog->roles.items[r].code);
}

static void make_plans(Arena *arena, Prog *prog, Diags *diags) {
    (void)diags;
    plan_make(arena, prog);
}

static void classify(Arena *arena, Prog *prog, Diags *diags) { prog->tiles = tiles_check(arena, prog, diags); }

#define OF_TILES(name, function)                                                                                       \
    static void name(Arena *arena, Prog *prog, Diags *diags) {                                                         \
        (void)diags;                                                                                                   \
        function(arena, prog->tiles);                                                                                  \
    }

OF_TILES(check_written, tiles_written)
OF_TILES(check_padding, tiles_padding)

static void leave_out(Arena *arena, Prog *prog, Diags *diags) {
    (void)arena, (void)diags;
    unsafe_leave_out(prog);
}

/* ---- the table ------------------------------------------------------------------------------- */

typedef enum When { ALWAYS, SOUND } When;

typedef struct PassRow {
    const char *name;
    void (*run)(Arena *arena, Prog *prog, Diags *diags);
    unsigned needs, leaves;
    When when;
} PassRow;

static const PassRow rows[] = {
#define PASS(name, function, needs, leaves, when) {#name, function, needs, leaves, when},
#include "check/passes.def"
};

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

/* A pass that sets no fact keeps no memory. */
static void run_pass(const PassRow *row, Arena *arena, Prog *prog, Diags *diags) {
    Spent begin = times_begin(arena);
    Arena *own = row->leaves ? arena : arena_scratch(arena);
    row->run(own, prog, diags);
    if (own != arena) arena_free(own);
    times_end(arena, row->name, begin);
}

void passes_run(Arena *arena, Prog *prog, Diags *diags, size_t errors) {
    unsigned facts = 0;
    bool sound = diags->errors == errors;
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const PassRow *row = &rows[i];
        if (row->when == SOUND && !sound) continue;
        assert((facts & row->needs) == row->needs);
        run_pass(row, arena, prog, diags);
        validate(arena, prog);
        facts |= row->leaves;
        if (row->when == ALWAYS) sound = diags->errors == errors;
        prog->passes = (int)i + 1;
    }
}

bool check_passed(const Prog *prog, const char *pass) {
    for (int i = 0; i < prog->passes; i++)
        if (strcmp(rows[i].name, pass) == 0) return true;
    return false;
}
