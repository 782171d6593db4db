/* lib: `pipec check` of a kernel. Checks the kernel with the defaults of the file, then with every
 * other combination of values from the sets of its statics, beginning with the combinations that
 * differ from the defaults in the fewest statics. Only their diagnostics are kept.
 *
 * Elaboration records which statics a combination reads. Another value of a static that is not read
 * gives the same program, so only the statics that are read are varied: this reaches every program
 * and checks each once. A pass that reads only Code runs once for all programs with the same Code
 * (check/known.h). A combination that only exceeds the machine is counted, because it cannot be
 * built. */
#include "lib/private.h"

#include <inttypes.h>
#include <string.h>

#define COMBINATIONS_MOST 4096
/* After an error, which is to be mended first: so many, of so many bytes of text together */
#define REFUSED_MOST  1024
#define REFUSED_BYTES (12u << 20)

/* a static whose set has more than one value */
typedef struct Dimension {
    const char *name;
    Span span;
    int64_t own;              /* default in the file */
    const Constant *constant; /* in the program with the defaults */
    VEC(int64_t) values;
} Dimension;

typedef struct Checked {
    int64_t *values; /* one for each dimension */
    bool *read;      /* all true if elaboration failed */
} Checked;

/* a diagnostic of combinations other than the defaults */
typedef struct Reported {
    Diag *diag;
    const char *with; /* the first combination that reports it: "CAUSAL = 1" */
    size_t others;
} Reported;

/* combinations that cannot be built, by the code of their error */
typedef struct Unfit {
    Code code;
    size_t count;
    const char *with;
} Unfit;

typedef struct Combinations {
    PipecProgram *program;
    Arena *arena; /* freed with this table; diagnostics use the arena of the program */
    const char *kernel;
    const Target *target;
    VEC(Dimension) dimensions;
    int64_t *values;      /* of the current combination */
    VEC(Checked) checked; /* in order of the checks; also the queue of combinations to vary */
    VEC(Reported) printed;
    VEC(Unfit) unfit;
    size_t most, unfit_count;
    Known *known;
    Cover *cover;   /* NULL: it does not matter */
    uint64_t begin; /* steps of the meter before the first combination */
    bool stopped;
    OutsideAccesses outside; /* of all combinations that can be built */
    const Dimension *moved;  /* a static whose set depends on other statics; NULL: none */
    const char *moved_with;  /* values of statics with which its set differs */
} Combinations;

/* ---- one combination ------------------------------------------------------------------------- */

/* true for errors of a program that cannot be built with these statics: it exceeds the memory of
 * the machine, no matrix instruction has the shape, or its `requires` excludes the values. */
static bool is_of_fit(Code code) {
    return code == P0145 || (code >= P0220 && code <= P0224) || (code >= P0500 && code <= P0508);
}

/* true if all errors are of that kind; sets *why to the code of the first */
static bool only_unfit(const Diags *diags, Code *why) {
    bool any = false;
    for (size_t i = 0; i < diags->items.count; i++) {
        Code code = diags->items.items[i]->code;
        if (code_rows[code].severity != SEVERITY_ERROR) continue; /* for example a denied note */
        if (!is_of_fit(code)) return false;
        if (!any) *why = code;
        any = true;
    }
    return any;
}

static StaticValue *statics_of(Combinations *all, Arena *arena, size_t *count) {
    const PipecProgram *program = all->program;
    StaticValue *statics =
        NEW_ARRAY(arena, StaticValue, program->static_count + all->dimensions.count);
    *count = 0;
    for (size_t i = 0; i < program->static_count; i++) statics[(*count)++] = program->statics[i];
    for (size_t i = 0; i < all->dimensions.count; i++)
        statics[(*count)++] =
            (StaticValue){all->dimensions.items[i].name, (double)all->values[i], all->values[i],
                          true, all->dimensions.items[i].constant->is_type};
    return statics;
}

/* "CAUSAL = 1, T = 64": the values that differ from the defaults */
static const char *with_text(const Combinations *all, Arena *arena) {
    Str text = str_new(arena);
    for (size_t i = 0; i < all->dimensions.count; i++) {
        const Dimension *dimension = &all->dimensions.items[i];
        int64_t value = all->values[i];
        if (value == dimension->own) continue;
        str_printf(&text, "%s%s = %s", text.length > 0 ? ", " : "", dimension->name,
                   constant_choice_text(arena, dimension->constant, value));
    }
    return text.text;
}

/* ---- diagnostics of combinations ------------------------------------------------------------- */

/* true if the texts are equal except for numbers */
static bool same_words(const char *a, const char *b) {
    for (;;) {
        while (*a >= '0' && *a <= '9') a++;
        while (*b >= '0' && *b <= '9') b++;
        if (*a != *b) return false;
        if (*a == 0) return true;
        a++, b++;
    }
}

static Diag *find_same(const Diags *diags, const Diag *like) {
    for (size_t i = 0; i < diags->items.count; i++) {
        Diag *diag = diags->items.items[i];
        if (diag->code != like->code || diag->has_place != like->has_place) continue;
        if (diag->has_place && (diag->labels[0].span.lo != like->labels[0].span.lo ||
                                diag->labels[0].span.hi != like->labels[0].span.hi))
            continue;
        if (same_words(diag->message, like->message)) return diag;
    }
    return NULL;
}

static const char *copy_text(Arena *arena, const char *text) {
    return arena_copy(arena, text, strlen(text));
}

static Diag *copy_diag(Arena *arena, const Diag *diag) {
    Diag *copy = NEW(arena, Diag);
    copy->code = diag->code, copy->severity = diag->severity, copy->has_place = diag->has_place;
    copy->message = copy_text(arena, diag->message);
    copy->label_count = diag->label_count;
    for (int i = 0; i < diag->label_count; i++)
        copy->labels[i] = (Label){diag->labels[i].span, copy_text(arena, diag->labels[i].text)};
    for (size_t i = 0; i < diag->notes.count; i++)
        vec_push(arena, &copy->notes, copy_text(arena, diag->notes.items[i]));
    for (size_t i = 0; i < diag->helps.count; i++)
        vec_push(arena, &copy->helps, copy_text(arena, diag->helps.items[i]));
    return copy;
}

static void report(Combinations *all, const Diag *diag) {
    Diags *diags = all->program->diags;
    Diag *there = find_same(diags, diag);
    for (size_t i = 0; there != NULL && i < all->printed.count; i++)
        if (all->printed.items[i].diag == there) all->printed.items[i].others++;
    if (there != NULL) return; /* reported by an earlier combination */
    Diag *copy = copy_diag(all->program->arena, diag);
    vec_push(diags->arena, &diags->items, copy);
    if (copy->severity == SEVERITY_ERROR) diags->errors++;
    vec_push(all->arena, &all->printed, (Reported){copy, with_text(all, all->arena), 0});
}

static void count_unfit(Combinations *all, Code why) {
    all->unfit_count++;
    for (size_t i = 0; i < all->unfit.count; i++)
        if (all->unfit.items[i].code == why) {
            all->unfit.items[i].count++;
            return;
        }
    vec_push(all->arena, &all->unfit, (Unfit){why, 1, with_text(all, all->arena)});
}

static void take_over(Combinations *all, const Diags *diags) {
    Diags *into = all->program->diags;
    Code why = P0500;
    if (only_unfit(diags, &why)) {
        count_unfit(all, why);
        return;
    }
    for (size_t i = 0; i < diags->items.count; i++)
        if (!is_of_fit(diags->items.items[i]->code)) report(all, diags->items.items[i]);
    for (size_t i = 0; i < all->program->levels.allows.count; i++)
        into->used[i] = into->used[i] || diags->used[i];
}

/* ---- equal programs -------------------------------------------------------------------------- */

/* Dimensions are in the order of the constants: the search begins at *next, after the last one. */
static const Constant *constant_named(Arena *arena, const Prog *prog, const char *name,
                                      size_t *next) {
    for (size_t i = 0; i < prog->constants.count; i++) {
        size_t at = (*next + i) % prog->constants.count;
        arena_count(arena, 1);
        if (strcmp(prog->constants.items[at].name, name) != 0) continue;
        *next = at + 1;
        return &prog->constants.items[at];
    }
    return NULL;
}

/* *seen: counts dimensions that were compared */
static bool is_same(const Combinations *all, const Checked *checked, size_t *seen) {
    size_t i = 0;
    while (i < all->dimensions.count && (!checked->read[i] || checked->values[i] == all->values[i]))
        i++;
    *seen += i + 1;
    return i == all->dimensions.count;
}

static bool is_checked(const Combinations *all) {
    bool found = false;
    size_t seen = 0;
    for (size_t i = 0; i < all->checked.count && !found; i++)
        found = is_same(all, &all->checked.items[i], &seen);
    arena_count(all->arena, 1 + seen / 16);
    return found;
}

static bool same_set(const Dimension *dimension, const Constant *constant) {
    const Constant *own = dimension->constant;
    size_t bytes = own->choices.count * sizeof *own->choices.items;
    if (constant->choices.count == own->choices.count &&
        memcmp(constant->choices.items, own->choices.items, bytes) == 0)
        return true;
    for (size_t i = 0; i < constant->choices.count; i++) {
        bool found = false;
        for (size_t k = 0; k < dimension->values.count; k++)
            found = found || dimension->values.items[k] == constant->choices.items[i];
        if (!found) return false;
    }
    return true;
}

/* Records the current combination with the statics that its elaboration reads. */
static void remember(Combinations *all, const Prog *prog) {
    size_t count = all->dimensions.count, next = 0;
    Checked checked = {NEW_ARRAY(all->arena, int64_t, count), NEW_ARRAY(all->arena, bool, count)};
    for (size_t i = 0; i < count; i++) {
        const Dimension *dimension = &all->dimensions.items[i];
        const Constant *constant =
            prog != NULL ? constant_named(all->arena, prog, dimension->name, &next) : NULL;
        checked.values[i] = all->values[i];
        checked.read[i] = constant == NULL || constant->read;
        if (constant == NULL || all->moved != NULL || same_set(dimension, constant)) continue;
        all->moved = dimension;
        all->moved_with = with_text(all, all->arena);
    }
    vec_push(all->arena, &all->checked, checked);
}

static void check_combination(Combinations *all) {
    PipecProgram *program = all->program;
    Arena *scratch = arena_scratch(all->arena);
    Settings given = {.target = all->target};
    given.statics = statics_of(all, scratch, &given.count);
    Diags *diags = diags_new(scratch, program->source);
    diags_set_levels(diags, &program->levels);
    diags->shares = program->diags;
    bool fine;
    const Prog *prog = check_kernel_whole(scratch, program->names, program->ast, all->kernel,
                                          &given, all->known, diags, &fine);
    remember(all, prog);
    if (fine) outside_merge(all->arena, &all->outside, &prog->outside);
    if (fine && all->cover != NULL) cover_add(all->cover, prog);
    take_over(all, diags);
    arena_free(scratch);
}

/* ---- all combinations ------------------------------------------------------------------------ */

bool static_is_given(const PipecProgram *program, const char *name) {
    for (size_t i = 0; i < program->static_count; i++)
        if (strcmp(program->statics[i].name, name) == 0) return true;
    return false;
}

static void open_dimensions(Combinations *all, const Prog *prog) {
    for (size_t i = 0; i < prog->constants.count; i++) {
        const Constant *constant = &prog->constants.items[i];
        Dimension dimension = {
            .name = constant->name, .span = constant->span, .constant = constant};
        if (constant->choices.count == 0 || static_is_given(all->program, constant->name)) continue;
        dimension.own = constant->value->constant.integer;
        vec_push(all->arena, &dimension.values, dimension.own);
        for (size_t c = 0; c < constant->choices.count; c++) {
            bool twice = false;
            for (size_t k = 0; k < dimension.values.count; k++)
                twice = twice || constant->choices.items[c] == dimension.values.items[k];
            if (!twice) vec_push(all->arena, &dimension.values, constant->choices.items[c]);
        }
        if (dimension.values.count > 1) vec_push(all->arena, &all->dimensions, dimension);
    }
    all->values = NEW_ARRAY(all->arena, int64_t, all->dimensions.count);
    for (size_t i = 0; i < all->dimensions.count; i++)
        all->values[i] = all->dimensions.items[i].own;
}

/* Stops before the meter ends a check, because then no combination would be reported. */
static bool is_enough(const Combinations *all) {
    const Meter *meter = arena_meter(all->arena);
    uint64_t work = (meter->steps_most - all->begin) / 5 * 4;
    size_t refused = REFUSED_BYTES / (all->program->source->length + 1), most = all->most;
    if (refused > REFUSED_MOST) refused = REFUSED_MOST;
    if (all->program->diags->errors > 0 && most > refused) most = refused;
    return all->checked.count >= most || meter->steps - all->begin > work;
}

/* Checks combinations that differ from number `from` in one more static, which it reads. */
static void vary(Combinations *all, size_t from) {
    const bool *read = all->checked.items[from].read;
    const int64_t *values = all->checked.items[from].values;
    memcpy(all->values, values, all->dimensions.count * sizeof *values);
    for (size_t i = 0; i < all->dimensions.count; i++) {
        const Dimension *dimension = &all->dimensions.items[i];
        if (!read[i] || values[i] != dimension->own) continue;
        for (size_t v = 1; v < dimension->values.count && !all->stopped; v++) {
            all->values[i] = dimension->values.items[v];
            if (is_checked(all)) continue;
            all->stopped = is_enough(all);
            if (!all->stopped) check_combination(all);
        }
        all->values[i] = dimension->own;
    }
}

static bool is_read(const Combinations *all, size_t dimension) {
    for (size_t i = 0; i < all->checked.count; i++)
        if (all->checked.items[i].read[dimension]) return true;
    return false;
}

/* The first static that is read: place of the diagnostics about combinations */
static const Dimension *first_read(const Combinations *all) {
    for (size_t i = 0; i < all->dimensions.count; i++)
        if (is_read(all, i)) return &all->dimensions.items[i];
    return &all->dimensions.items[0];
}

/* Number of combinations of the statics that are read */
static const char *product_text(const Combinations *all) {
    uint64_t product = 1;
    for (size_t i = 0; i < all->dimensions.count; i++) {
        uint64_t values = is_read(all, i) ? all->dimensions.items[i].values.count : 1;
        if (__builtin_mul_overflow(product, values, &product)) return "more than 2^64";
    }
    return arena_printf(all->arena, "%" PRIu64, product);
}

static void note_values(Combinations *all) {
    Diags *diags = all->program->diags;
    for (size_t i = 0; i < all->printed.count; i++) {
        const Reported *printed = &all->printed.items[i];
        if (printed->others == 0)
            diag_note(diags, printed->diag, "with %s", printed->with);
        else
            diag_note(diags, printed->diag,
                      "with %s, and in %zu other combination%s of the statics", printed->with,
                      printed->others, printed->others == 1 ? "" : "s");
    }
}

static void report_unfit(Combinations *all) {
    Diags *diags = all->program->diags;
    if (all->unfit_count == 0) return;
    Diag *diag = diag_at(diags, P0162, first_read(all)->span,
                         "%zu of %zu combinations of the statics of `%s` cannot be built",
                         all->unfit_count, all->checked.count, all->kernel);
    for (size_t i = 0; i < all->unfit.count; i++) {
        const Unfit *unfit = &all->unfit.items[i];
        diag_note(diags, diag, "%zu of them: %s (%s), the first with %s", unfit->count,
                  code_rows[unfit->code].title, code_rows[unfit->code].name, unfit->with);
    }
}

static void report_stopped(Combinations *all) {
    Diags *diags = all->program->diags;
    if (all->stopped) {
        Diag *diag = diag_at(diags, P0163, first_read(all)->span,
                             "only %zu of %s combinations of the statics of `%s` are checked",
                             all->checked.count, product_text(all), all->kernel);
        diag_note(
            diags, diag,
            "the defaults are checked, and the combinations that differ from them in the fewest "
            "statics");
        diag_help(
            diags, diag,
            "remove values from the sets, or fix some statics: `pipec check FILE %s=%s`",
            first_read(all)->name,
            constant_choice_text(all->arena, first_read(all)->constant, first_read(all)->own));
    }
    if (all->moved != NULL) {
        Diag *diag = diag_at(diags, P0163, all->moved->span,
                             "the set of `%s` depends on other statics", all->moved->name);
        diag_note(
            diags, diag,
            "with %s the set has other values; combinations with these values are not checked",
            all->moved_with);
        diag_help(diags, diag, "write constants in the set");
    }
}

/* True if a value was given to a static that has a set: others are not checked. */
static bool some_given(const Combinations *all, const Prog *prog) {
    for (size_t i = 0; i < prog->constants.count; i++)
        if (prog->constants.items[i].choices.count > 1 &&
            static_is_given(all->program, prog->constants.items[i].name))
            return true;
    return false;
}

/* Accesses that are outside of their tensors in every combination. False: there are some. */
static bool report_outside(const Combinations *all, const Prog *prog) {
    if (all->stopped || all->moved != NULL || all->dimensions.count == 0 || some_given(all, prog))
        return true;
    return outside_report(prog, &all->outside, all->program->diags) == 0;
}

static void check_others(Combinations *all, const Prog *constants) {
    open_dimensions(all, constants);
    remember(all, constants);
    outside_merge(all->arena, &all->outside, &constants->outside);
    for (size_t i = 0; i < all->checked.count && !all->stopped; i++) vary(all, i);
    if (all->cover != NULL && (all->stopped || all->moved != NULL))
        cover_unknown(all->cover, "not every combination of the statics is checked");
    note_values(all);
    report_unfit(all);
    report_stopped(all);
}

const Prog *combinations_check(Arena *arena, PipecProgram *program, const char *kernel,
                               const Target *target, size_t most, Cover *cover,
                               const Prog **whole) {
    bool fine;
    Arena *own = arena_scratch(arena);
    Known *known = known_new(own);
    Settings given = {target, program->statics, program->static_count};
    const Prog *prog = check_kernel_whole(arena, program->names, program->ast, kernel, &given,
                                          known, program->diags, &fine);
    *whole = prog;
    Combinations all = {.program = program,
                        .arena = own,
                        .kernel = kernel,
                        .target = target,
                        .known = known,
                        .cover = cover,
                        .begin = arena_meter(arena)->steps,
                        .most = most > 0 ? most : COMBINATIONS_MOST};
    if (fine && cover != NULL) cover_add(cover, prog);
    if (prog != NULL) {
        check_others(&all, prog);
        fine = report_outside(&all, prog) && fine;
    }
    arena_free(all.arena);
    return fine ? prog : NULL;
}
