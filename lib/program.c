/* lib: one compilation. Text goes in; PTX, a manifest, printed forms and diagnostics come out.
 * The pipeline: parse, choose the kernel, bind statics, check, generate. */
#include "lib/fixed.h"
#include "lib/include.h"
#include "lib/targets.h"
#include "lib/tune.h"

#include "derive/plan.h"
#include "parser/parser.h"

#include <string.h>

/* Limits of the work of check and generation, see set_limits: steps for one kernel, and for each
 * byte of the text of several; memory for a short text, for a long one, and beside a large tree. */
#define STEPS_MOST   UINT64_C(130000000)
#define STEPS_A_BYTE 100
#define BYTES_SHORT  (UINT64_C(140) << 20)
#define BYTES_LONG   (UINT64_C(88) << 20)
#define BYTES_BESIDE (UINT64_C(24) << 20)
#define TREE_A_BYTE  60
#define SHORT        100000 /* bytes of the longest short text */
#define BYTES_LESS   128    /* for each further byte of the text, down to BYTES_LONG */

typedef VEC(StaticValue) Statics;

typedef struct Compile {
    PipecProgram *program;
    const char *path;     /* NULL: the text was given */
    const Source *source; /* that was given instead; NULL: none */
    const char *text;
    size_t length;
    const PipecOptions *given;   /* the caller's */
    const PipecOptions *options; /* with the members that are known */
    bool unsized;                /* `given` cannot be read */
    Words words;                 /* of statics */
    Occurrences names;           /* in the text; only of a check, for warnings */
    Statics statics, decided;    /* by the caller; those that tensors decide else */
    VEC(const char *) others;    /* names that are no static */
    const char *prefer;          /* the variant to begin with, if they are open; NULL: any */
    /* of the kernel whose variants are checked, one for each target of its head; none: it has no
     * variants, or not all are checked */
    VEC(Cover *) covers;
    Targets cover_targets;
    size_t cover_begin;   /* number of diagnostics before its first variant */
    const Target *target; /* that is compiled or checked now; NULL: there is none of this name */
    /* meter value at which the work for the whole text ends */
    uint64_t steps_most;
    bool ended; /* the meter ended some part */
} Compile;

/* ---- exit code from errors ------------------------------------------------------------------- */

/* Errors outside the text: the file, the command's arguments */
static PipecStatus status_of_code(Code code) {
    static const Code usage[] = {P0041, P0044, P0151, P0157, P0600, P0602, P0606,
                                 P0900, P0901, P0902, P0903, P0904, P0916, P0917,
                                 P0920, P0923, P0931, P0932, P0936, P0938};
    for (size_t i = 0; i < COUNT_OF(usage); i++)
        if (usage[i] == code) return PIPEC_UNUSABLE;
    return PIPEC_REFUSED;
}

void program_finish(PipecProgram *program) {
    if (program->manifest != NULL || program->checked) /* only what can be used is accepted */
        memcpy(program->levels.accepted, program->accepts, sizeof program->accepts);
    program->published = diagnostics_publish(program->diags);
    for (size_t i = 0; i < program->diags->items.count; i++) {
        const Diag *diag = program->diags->items.items[i];
        if (diag->severity == SEVERITY_ERROR)
            program->status = pipec_worse(program->status, status_of_code(diag->code));
        if (diag->severity == SEVERITY_INCOMPLETE)
            program->status = pipec_worse(program->status, PIPEC_INCOMPLETE);
    }
}

/* ---- kernels --------------------------------------------------------------------------------- */

static size_t kernel_length(const char *name) { return strcspn(name, ":"); }

static bool same_kernel(const char *a, const char *b) {
    return kernel_length(a) == kernel_length(b) && memcmp(a, b, kernel_length(a)) == 0;
}

static bool is_wanted(const PipecProgram *program, const char *name) {
    return (program->wanted == NULL || check_is_named(name, program->wanted)) &&
           targets_wanted(program, name);
}

/* The first name of an extent of the kernel; N: it has none */
static const char *first_extent(const PipecProgram *program, const char *kernel) {
    const char *name = check_extent_name(program->ast, kernel);
    return name != NULL ? name : "N";
}

static void report_unnamed(Compile *compile, bool variants, size_t count, const char *first) {
    PipecProgram *program = compile->program;
    const char *what = variants ? "variant" : "kernel";
    Str names = str_new(program->arena);
    for (size_t i = 0; i < program->kernel_count; i++)
        if (is_wanted(program, program->kernels[i]))
            str_printf(&names, "%s`%s`", names.length > 0 ? ", " : "", program->kernels[i]);
    Diag *diag =
        diag_plain(program->diags, P0902, "`%s` contains %zu %ss, but the command names none",
                   program->source->name, count, what);
    diag_note(program->diags, diag, "%ss: %s", what, names.text);
    if (!variants) {
        diag_help(program->diags, diag, "write the kernel after the file: `%s %s`",
                  program->source->name, first);
        diag_help(program->diags, diag, "in Python, `kernel=\"%s\"`", first);
        return;
    }
    diag_help(program->diags, diag, "name one: `%s%s`", program->source->name, strchr(first, ':'));
    diag_help(program->diags, diag,
              "or give the sizes, and the fastest for them is built: `pipec build %s %s=4096 ..`",
              program->source->name, first_extent(program, first));
}

/* A check of functions and constants for other files */
static bool is_to_include(const PipecProgram *program, const PipecOptions *options) {
    return options->check_only && program->wanted == NULL && program->ast->items.count > 0;
}

/* The variants of one kernel stay open, if data can choose one of them later. */
static void choose_kernel(Compile *compile) {
    PipecProgram *program = compile->program;
    const char *first = NULL;
    size_t count = 0, kernels = 0;
    const PipecOptions *options = compile->options;
    program->wanted =
        options->variant == NULL
            ? options->kernel
            : arena_printf(program->arena, "%s:%s", options->kernel != NULL ? options->kernel : "",
                           options->variant);
    for (size_t i = 0; i < program->kernel_count; i++) {
        const char *name = program->kernels[i];
        if (!is_wanted(program, name)) continue;
        kernels += i == 0 || !same_kernel(name, program->kernels[i - 1]);
        if (count++ == 0) first = name;
    }
    bool variants = count > 1 && kernels == 1;
    if (program->kernel_count == 0 && is_to_include(program, options))
        diag_plain(
            program->diags, P0046,
            "`%s` has no kernel: its functions are checked where they are called, in the files "
            "that include it",
            program->source->name);
    else if (program->kernel_count == 0)
        diag_plain(program->diags, P0903, "`%s` contains no kernel", program->source->name);
    else if (count == 0)
        program->kernel = program->wanted; /* unknown */
    else if (count == 1)
        program->kernel = first;
    else if (!compile->options->check_only &&
             !(variants && (options->launch_values || options->any_variant)))
        report_unnamed(compile, variants, variants ? count : kernels, first);
    else if (!compile->options->check_only)
        program->open_kernel = arena_copy(program->arena, first, kernel_length(first));
}

/* The first variant that has all statics that were given, or the preferred one */
static void choose_variant(Compile *compile) {
    PipecProgram *program = compile->program;
    for (size_t i = 0; i < program->kernel_count && program->open_kernel != NULL; i++) {
        bool all = check_is_named(program->kernels[i], program->open_kernel) &&
                   targets_wanted(program, program->kernels[i]) &&
                   (compile->prefer == NULL || strcmp(program->kernels[i], compile->prefer) == 0);
        for (size_t s = 0; s < compile->statics.count && all; s++)
            all =
                check_is_static(program->ast, program->kernels[i], compile->statics.items[s].name);
        if (!all) continue;
        program->kernel = program->kernels[i];
        return;
    }
    if (program->open_kernel == NULL || program->diags->errors > 0) return;
    Diag *diag =
        diag_plain(program->diags, P0904, "no variant of kernel `%s` has all statics given",
                   program->open_kernel);
    diag_help(program->diags, diag, "give only statics of one variant");
}

/* ---- statics --------------------------------------------------------------------------------- */

static bool is_static(const PipecProgram *program, const char *name) {
    if (program->ast == NULL) return false;
    if (program->kernel != NULL) return check_is_static(program->ast, program->kernel, name);
    for (size_t i = 0; i < program->kernel_count; i++)
        if (is_wanted(program, program->kernels[i]) &&
            check_is_static(program->ast, program->kernels[i], name))
            return true;
    return false;
}

static const char *name_of_value(Arena *arena, const char *value) {
    const char *equals = strchr(value, '=');
    return equals == NULL ? value : arena_copy(arena, value, (size_t)(equals - value));
}

/* False: it is there */
static bool add_static(const Compile *compile, Statics *to, const StaticValue *value) {
    for (size_t i = 0; i < to->count; i++)
        if (strcmp(to->items[i].name, value->name) == 0) return false;
    vec_push(compile->program->arena, to, *value);
    return true;
}

static void bind_static(Compile *compile, const char *value) {
    PipecProgram *program = compile->program;
    Argument argument;
    const char *name = name_of_value(program->arena, value);
    if (!is_static(program, name)) {
        if (!compile->options->launch_values) vec_push(program->arena, &compile->others, value);
        return;
    }
    if (!argument_parse(program->arena, value, &argument, program->diags)) return;
    Element type;
    bool is_type = argument.kind == ARGUMENT_FILL && element_by_name(argument.fill.file, &type);
    if (argument.kind != ARGUMENT_NUMBER && !is_type) {
        diag_plain(program->diags, P0904, "`%s` is a static, but `%s` is no number or element type",
                   name, argument.fill.file);
        return;
    }
    StaticValue bound = {name, argument.value.number, argument.value.integer,
                         argument.value.is_integer, is_type};
    if (is_type) bound.integer = type;
    bool fine = static_is_bound(program, name) ? add_static(compile, &compile->decided, &bound)
                                               : add_static(compile, &compile->statics, &bound);
    if (!fine) diag_plain(program->diags, P0602, "`%s` is given twice", name);
}

/* What the caller chooses, then what tensors would decide */
static void take_statics(Compile *compile) {
    PipecProgram *program = compile->program;
    program->given_count = compile->statics.count;
    for (size_t i = 0; i < compile->decided.count; i++)
        vec_push(program->arena, &compile->statics, compile->decided.items[i]);
    program->statics = compile->statics.items;
    program->static_count = compile->statics.count;
}

static void find_bound(PipecProgram *program) {
    for (size_t i = 0; i < program->kernel_count; i++)
        if (program->open_kernel != NULL ? check_is_named(program->kernels[i], program->open_kernel)
                                         : program->kernels[i] == program->kernel)
            check_bound_statics(program->arena, program->ast, program->kernels[i], &program->bound);
}

static bool is_of_launch(const Prog *prog, const char *name) {
    for (size_t i = 0; i < prog->symbols.count; i++)
        if (strcmp(prog->symbols.items[i].name, name) == 0) return true;
    for (size_t i = 0; i < prog->params.count; i++)
        if (strcmp(prog->params.items[i].name, name) == 0) return true;
    return false;
}

/* Reports a value whose name is no static. Called after the check, when the other names are
 * known. */
static void refuse_other(PipecProgram *program, const char *value) {
    const char *name = name_of_value(program->arena, value), *names[64];
    size_t count = 0;
    Diag *diag = strchr(value, '=') == NULL
                     ? diag_plain(program->diags, P0904, "`%s` is not NAME=VALUE", value)
                 : program->kernel != NULL
                     ? diag_plain(program->diags, P0904, "kernel `%s` has no static `%s`",
                                  program->kernel, name)
                     : diag_plain(program->diags, P0904, "`%s` has no static `%s`",
                                  program->source->name, name);
    if (program->prog == NULL) return;
    for (size_t i = 0; i < program->prog->constants.count && count < COUNT_OF(names); i++)
        if (program->prog->constants.items[i].is_static)
            names[count++] = program->prog->constants.items[i].name;
    const char *near = closest_name(name, names, count);
    bool constant = false;
    for (size_t i = 0; i < program->prog->constants.count; i++)
        constant = constant || strcmp(program->prog->constants.items[i].name, name) == 0;
    if (constant)
        diag_help(program->diags, diag, "declare `%s` as `static` instead of `const` to set it",
                  name);
    else if (is_of_launch(program->prog, name))
        diag_note(program->diags, diag,
                  "`%s` is set at launch; only statics are set at compile time", name);
    else if (near != NULL)
        diag_help(program->diags, diag, "did you mean `%s`?", near);
}

/* ---- levels of warnings and notes ------------------------------------------------------------ */

static void set_all(bool *levels, Severity severity) {
    for (size_t code = 0; code < CODE_COUNT; code++)
        if (code_rows[code].severity == severity) levels[code] = true;
}

static bool deny_all(Levels *levels, const char *word) {
    static const struct {
        const char *word;
        Severity severity;
    } kinds[] = {{"incomplete", SEVERITY_INCOMPLETE},
                 {"warnings", SEVERITY_WARNING},
                 {"notes", SEVERITY_NOTE}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        if (strcmp(word, kinds[i].word) != 0) continue;
        set_all(levels->denied, kinds[i].severity);
        return true;
    }
    return false;
}

/* what: "denied"; words: what can be */
static void report_no_code(Diags *diags, const char *word, const char *what, const char *words) {
    const char *near = code_near(word);
    Diag *diag = diag_plain(diags, P0916, "`%s` is not a code and cannot be %s", word, what);
    if (near != NULL)
        diag_help(diags, diag, "did you mean `%s`?", near);
    else
        diag_help(diags, diag, "write %s", words);
}

void levels_deny(Levels *levels, const char *word, Diags *diags) {
    Code code;
    if (deny_all(levels, word)) return;
    if (!code_by_name(word, &code)) {
        report_no_code(diags, word, "denied",
                       "the code of a warning or note, such as P0810, or `incomplete`, `warnings` "
                       "or `notes`");
    } else if (code_rows[code].severity == SEVERITY_ERROR) {
        Diag *diag = diag_plain(diags, P0916, "`%s` is already an error", code_rows[code].name);
        diag_note(diags, diag, "only incomplete verdicts, warnings and notes can be denied");
    } else {
        levels->denied[code] = true;
    }
}

static void accept(bool *accepts, const char *word, Diags *diags) {
    static const char *const kinds[] = {[SEVERITY_ERROR] = "an error",
                                        [SEVERITY_WARNING] = "a warning",
                                        [SEVERITY_NOTE] = "a note"};
    Code code;
    if (strcmp(word, "incomplete") == 0) {
        set_all(accepts, SEVERITY_INCOMPLETE);
    } else if (!code_by_name(word, &code)) {
        report_no_code(diags, word, "accepted",
                       "the code of an incomplete verdict, such as P0237, or `incomplete`");
    } else if (code_rows[code].severity != SEVERITY_INCOMPLETE) {
        Diag *diag = diag_plain(diags, P0916, "`%s` is %s and cannot be accepted",
                                code_rows[code].name, kinds[code_rows[code].severity]);
        diag_note(diags, diag, "only incomplete verdicts can be accepted");
    } else {
        accepts[code] = true;
    }
}

static const char **copy_words(Arena *arena, const char *const *words, size_t count) {
    const char **out = NEW_ARRAY(arena, const char *, count + 1);
    for (size_t i = 0; i < count; i++) out[i] = arena_copy(arena, words[i], strlen(words[i]));
    return out;
}

void program_levels(PipecProgram *program, const PipecOptions *options) {
    program->denied = copy_words(program->arena, options->denied, options->denied_count);
    program->denied_count = options->denied_count;
    program->accepted = copy_words(program->arena, options->accepted, options->accepted_count);
    program->accepted_count = options->accepted_count;
    for (size_t i = 0; i < program->denied_count; i++)
        levels_deny(&program->levels, program->denied[i], program->diags);
    for (size_t i = 0; i < program->accepted_count; i++)
        accept(program->accepts, program->accepted[i], program->diags);
}

/* True if the diagnostics cover all kernels with their own values: only then is an unused
 * `allow` certain. */
static bool checked_whole(const Compile *compile) {
    const PipecProgram *program = compile->program;
    return compile->options->check_only && program->kernel_count > 0 && program->wanted == NULL &&
           compile->words.count == 0 && program->diags->errors == 0 && !compile->ended;
}

static uint64_t lesser(uint64_t a, uint64_t b) { return a < b ? a : b; }

/* ---- the pipeline ---------------------------------------------------------------------------- */

static bool known_kernel(const PipecProgram *program) {
    for (size_t i = 0; i < program->kernel_count; i++)
        if (is_wanted(program, program->kernels[i])) return true;
    return false;
}

/* That of the target; NULL: there is none */
static Cover *cover_of(const Compile *compile) {
    for (size_t i = 0; i < compile->covers.count; i++)
        if (compile->cover_targets.items[i] == compile->target) return compile->covers.items[i];
    return NULL;
}

/* Checks a kernel with all combinations, or only with the values for building */
static const Prog *check_one(Compile *compile, Arena *arena, const char *kernel,
                             const Prog **whole) {
    PipecProgram *program = compile->program;
    bool clean;
    if (compile->options->check_only)
        return combinations_check(arena, program, kernel, compile->target,
                                  compile->options->combinations, cover_of(compile), whole);
    Settings given = {compile->target, compile->statics.items, compile->statics.count};
    *whole = check_kernel_whole(arena, program->names, program->ast, kernel, &given, NULL,
                                program->diags, &clean);
    return clean ? *whole : NULL;
}

typedef struct Metered { /* work that the meter may end */
    Compile *compile;
    Arena *arena;
    const char *kernel;
    const Prog *prog, *whole; /* whole: also after errors */
} Metered;

static void check_metered(void *data) {
    Metered *it = data;
    it->prog = check_one(it->compile, it->arena, it->kernel, &it->whole);
}

/* NULL: it was refused, or its check exceeds the allowed work */
static const Prog *check_kernel_of(Compile *compile, Arena *arena, const char *kernel) {
    PipecProgram *program = compile->program;
    Metered it = {.compile = compile, .arena = arena, .kernel = kernel};
    bool ends = arena_metered(arena, check_metered, &it);
    if (arena == program->arena) program->whole = it.whole;
    if (ends) return it.prog;
    compile->ended = true;
    check_ended(program->ast, kernel, program->diags);
    return NULL;
}

/* ---- the sizes that variants take ------------------------------------------------------------ */

#define COVER_STEPS UINT64_C(20000000)

/* The targets that the sizes of the kernel are asked for: that of the caller, or of its head */
static void targets_of_head(Compile *compile, const char *unit) {
    const PipecProgram *program = compile->program;
    if (program->target != NULL)
        vec_push(program->arena, &compile->cover_targets, program->target);
    else
        targets_add_names(program->arena, check_head_targets(program->ast, unit),
                          &compile->cover_targets);
}

/* Before the variant `index` of the text: begins a kernel. The choice among variants and statics
 * is that of the text only if the caller leaves both open. */
static void cover_begin(Compile *compile, size_t index) {
    PipecProgram *program = compile->program;
    bool first = index == 0 || !same_kernel(program->kernels[index], program->kernels[index - 1]);
    if (!first || !compile->options->check_only || compile->words.count > 0 ||
        strchr(program->kernels[index], ':') == NULL ||
        (program->wanted != NULL && strchr(program->wanted, ':') != NULL))
        return;
    targets_of_head(compile, program->kernels[index]);
    for (size_t i = 0; i < compile->cover_targets.count; i++)
        vec_push(program->arena, &compile->covers,
                 cover_new(arena_scratch(program->arena), program->ast, program->kernels[index],
                           compile->cover_targets.items[i]));
    compile->cover_begin = program->diags->items.count;
}

typedef struct Covering {
    Cover *cover;
    Diags *diags;
} Covering;

static void cover_metered(void *data) {
    const Covering *it = data;
    cover_report(it->cover, it->diags);
}

/* The diagnostics of one of several targets, which targets_merge adds to those of the program */
static Diags *diags_part(const PipecProgram *program) {
    Diags *part = diags_new(program->arena, program->source);
    diags_set_levels(part, &program->levels);
    part->shares = program->diags;
    return part;
}

/* After the variant `index`: ends its kernel. What is wrong, or not proved, comes first. */
static void cover_end(Compile *compile, size_t index) {
    PipecProgram *program = compile->program;
    Diags *diags = program->diags;
    bool last = index + 1 == program->kernel_count ||
                !same_kernel(program->kernels[index], program->kernels[index + 1]);
    size_t count = compile->covers.count;
    if (!last || count == 0) return;
    bool fine = !compile->ended;
    for (size_t i = compile->cover_begin; i < diags->items.count; i++)
        fine = fine && diags->items.items[i]->severity != SEVERITY_ERROR &&
               diags->items.items[i]->severity != SEVERITY_INCOMPLETE;
    Meter *meter = arena_meter(program->arena);
    uint64_t most = meter->steps_most;
    Diags **parts = NEW_ARRAY(program->arena, Diags *, count);
    for (size_t i = 0; i < count && fine; i++) {
        Covering it = {compile->covers.items[i],
                       parts[i] = count > 1 ? diags_part(program) : diags};
        meter->steps_most = lesser(compile->steps_most, meter->steps + COVER_STEPS / count);
        if (!arena_metered(program->arena, cover_metered, &it)) cover_ended(it.cover, it.diags);
    }
    if (fine && count > 1) targets_merge(diags, parts, &compile->cover_targets, &program->levels);
    meter->steps_most = most;
    compile->covers.count = compile->cover_targets.count = 0;
}

/* ---- targets --------------------------------------------------------------------------------- */

/* Those that a check of the kernel takes; none: it names none that is known */
static Targets targets_of(const PipecProgram *program, const char *kernel) {
    Targets all = {0};
    if (program->target != NULL)
        vec_push(program->arena, &all, program->target);
    else
        targets_add(program->arena, program->ast, kernel, &all);
    return all;
}

/* Checks the kernel for each of its targets, each with a share of the work that is left, in a
 * scratch arena but for the first, whose program is the result. */
static const Prog *check_targets_of(Compile *compile, Arena *arena, const char *kernel) {
    PipecProgram *program = compile->program;
    Meter *meter = arena_meter(program->arena);
    Targets targets = targets_of(program, kernel);
    size_t count = compile->options->check_only ? targets.count : 1;
    compile->target = targets.count > 0 ? targets.items[0] : NULL;
    if (count < 2) return check_kernel_of(compile, arena, kernel);
    Diags *all = program->diags, **parts = NEW_ARRAY(program->arena, Diags *, count);
    const Prog *first = NULL, *whole = NULL;
    uint64_t most = meter->steps_most;
    for (size_t t = 0; t < count; t++) {
        Arena *own = t == 0 ? arena : arena_scratch(program->arena);
        program->diags = parts[t] = diags_part(program);
        parts[t]->shares = all;
        compile->target = targets.items[t];
        meter->steps_most = meter->steps + (most - meter->steps) / (count - t);
        const Prog *prog = check_kernel_of(compile, own, kernel);
        if (t == 0) first = prog, whole = program->whole;
        if (t > 0) arena_free(own);
        program->diags = all;
    }
    program->whole = whole;
    targets_merge(all, parts, &targets, &program->levels);
    return all->errors == 0 ? first : NULL;
}

/* Those of which a launch takes one: of the kernel, or of all variants that launches choose among,
 * of the one that is compiled first */
static void open_targets(PipecProgram *program) {
    Targets all = {0};
    if (program->target != NULL || program->kernel == NULL) return;
    targets_add(program->arena, program->ast, program->kernel, &all);
    for (size_t i = 0; i < program->kernel_count && program->open_kernel != NULL; i++)
        if (check_is_named(program->kernels[i], program->open_kernel) &&
            choice_has_statics(program, program->kernels[i]))
            targets_add(program->arena, program->ast, program->kernels[i], &all);
    if (all.count > 1) program->targets = all;
}

static void take_target(PipecProgram *program, const char *name) {
    program->target = name != NULL ? target_by_name(name) : NULL;
    if (name == NULL || program->target != NULL) return;
    const char *names[32];
    for (size_t i = 0; i < target_count && i < COUNT_OF(names); i++) names[i] = target_rows[i].name;
    Diag *diag = diag_plain(program->diags, P0938, "there is no target `%s`", name);
    const char *near = closest_name(name, names, target_count);
    diag_note(program->diags, diag, "known targets: %s", targets_known(program->arena));
    if (near != NULL) diag_help(program->diags, diag, "did you mean `%s`?", near);
}

/* ---- all kernels ----------------------------------------------------------------------------- */

static size_t bytes_of(const PipecProgram *program, size_t kernel) {
    Span text = program->ast->kernels.items[kernel]->span;
    return text.hi - text.lo + 1;
}

/* Checks all kernels. Half of the work is shared; the other half is divided by the length of the
 * kernels' text, so that no kernel can use up the share of a later one. Keeps only the
 * diagnostics of each. */
static void check_each(Compile *compile) {
    PipecProgram *program = compile->program;
    Meter *meter = arena_meter(program->arena);
    size_t later = 0;
    for (size_t i = 0; i < program->kernel_count; i++)
        if (is_wanted(program, program->kernels[i])) later += bytes_of(program, i);
    uint64_t a_byte = (compile->steps_most - meter->steps) / 2 / (later + 1);
    size_t before = program->diags->errors;
    for (size_t i = 0; i < program->kernel_count; i++) {
        if (program->diags->errors - before >= ERRORS_MOST) {
            diag_plain(program->diags, P0020, "the check of the file stops after %d errors",
                       ERRORS_MOST);
            break;
        }
        if (!is_wanted(program, program->kernels[i])) continue;
        later -= bytes_of(program, i);
        meter->steps_most = lesser(compile->steps_most - a_byte * later, meter->steps + STEPS_MOST);
        Arena *scratch = arena_scratch(program->arena);
        cover_begin(compile, i);
        (void)check_targets_of(compile, scratch, program->kernels[i]);
        cover_end(compile, i);
        arena_free(scratch);
    }
}

static void check(Compile *compile) {
    PipecProgram *program = compile->program;
    size_t before = program->diags->errors;
    elaborate_names(program->arena, program->names, program->ast, program->diags);
    bool separate = program->diags->errors == before;
    if (program->kernel != NULL) {
        if (program->kernel_count == 1) cover_begin(compile, 0);
        const Prog *prog = check_targets_of(compile, program->arena, program->kernel);
        if (program->kernel_count == 1) cover_end(compile, 0);
        if (separate) program->prog = prog;
        return;
    }
    check_each(compile);
}

/* The check counts the work of generation (check/bounds/copies.c), so no meter can end it. */
static void generate(Compile *compile) {
    PipecProgram *program = compile->program;
    Meter *meter = arena_meter(program->arena);
    meter->steps_most = meter->bytes_most = UINT64_MAX;
    CodegenOptions options = {.watchdog = compile->options->watchdog};
    Manifest *manifest = NEW(program->arena, Manifest);
    Spent begin = times_begin(program->arena);
    codegen_emit(program->arena, program->prog, &options, &program->ptx, manifest);
    times_end(program->arena, "generate", begin);
    manifest->source = program->source;
    program->manifest = manifest;
    program_describe(program);
    siblings_begin(program);
}

/* Of the whole, with the tree. A short text can have difficult formulas; what a long one has is
 * many statements, most of them wrong alike, and these must be cheap. */
static uint64_t most_bytes(size_t length) {
    uint64_t less = length > SHORT ? lesser(BYTES_LESS * (length - SHORT), BYTES_SHORT) : 0;
    return BYTES_SHORT - lesser(less, BYTES_SHORT - BYTES_LONG);
}

/* The check of a kernel takes less than 2 s. A text of less than 100 kB takes less than 200 MB, a
 * long one less than 100 MB, or 24 MB beside its tree. The time for many kernels is in proportion
 * to the length of the text. */
static void set_limits(Compile *compile) {
    Meter *meter = arena_meter(compile->program->arena);
    uint64_t usual = STEPS_MOST + STEPS_A_BYTE * compile->length;
    compile->steps_most =
        meter->steps + (compile->options->work > 0 ? compile->options->work : usual);
    meter->steps_most = lesser(compile->steps_most, meter->steps + STEPS_MOST);
    uint64_t names = compile->names.list.capacity * sizeof(Occurrence);
    uint64_t beside = meter->bytes - names + BYTES_BESIDE, whole = most_bytes(compile->length);
    meter->bytes_most = beside > whole ? beside : whole;
}

static const char *name_of(const Compile *compile) {
    if (compile->options->name != NULL) return compile->options->name;
    if (compile->path == NULL) return "<text>";
    return strcmp(compile->path, "-") == 0 ? "<stdin>" : compile->path;
}

static bool get_text(Compile *compile) {
    PipecProgram *program = compile->program;
    const char *name = compile->source != NULL ? compile->source->name : name_of(compile);
    program->source =
        source_new(program->arena, arena_copy(program->arena, name, strlen(name)), "", 0);
    program->diags = diags_new(program->arena, program->source);
    if (compile->unsized)
        size_report(program->diags, "PipecOptions", sizeof *compile->options, compile->given);
    if (compile->source != NULL) {
        program->diags->source = program->source = source_copy(program->arena, compile->source);
        compile->length = program->source->length;
        return true;
    }
    if (compile->path != NULL)
        compile->text =
            source_text(program->arena, compile->path, &compile->length, program->diags);
    if (compile->text == NULL) return false;
    if (compile->length > SOURCE_MAX_BYTES) {
        diag_plain(program->diags, P0901, "the text is larger than the limit of %u MiB",
                   SOURCE_MAX_BYTES >> 20);
        return false;
    }
    const char *text = compile->path != NULL
                           ? compile->text
                           : arena_copy(program->arena, compile->text, compile->length);
    SourceOrigin from =
        include_origin(program->arena, compile->options, compile->path, program->source->name);
    program->source = include_all(program->arena, program->source->name, text, compile->length,
                                  &from, program->diags);
    program->diags->source = program->source;
    compile->length = program->source->length;
    return program->diags->errors == 0;
}

static void parse_metered(void *data) {
    Compile *compile = data;
    PipecProgram *program = compile->program;
    Occurrences *names = compile->options->check_only ? &compile->names : NULL;
    program->ast =
        parser_parse_words(program->arena, program->names, program->source, names, program->diags);
}

/* The tree has some 10 bytes for each byte of the text; many variants of a long kernel could have
 * any number. False: it is too large. */
static bool parse(Compile *compile) {
    PipecProgram *program = compile->program;
    Meter *meter = arena_meter(program->arena);
    Spent begin = times_begin(program->arena);
    meter->bytes_most = meter->bytes + BYTES_LONG + TREE_A_BYTE * compile->length;
    meter->steps_most = meter->steps + STEPS_MOST;
    bool ends = arena_metered(program->arena, parse_metered, compile);
    meter->bytes_most = meter->steps_most = UINT64_MAX;
    times_end(program->arena, "parse", begin);
    if (ends) return true;
    Diag *diag =
        diag_plain(program->diags, P0490, "the variants in `%s` are too many to be checked",
                   program->source->name);
    diag_help(program->diags, diag, "divide them among several kernels or files");
    return false;
}

static void run_pipeline(Compile *compile) {
    PipecProgram *program = compile->program;
    const PipecOptions *options = compile->options;
    bool readable = get_text(compile);
    program_levels(program, options);
    take_target(program, options->target);
    if (!readable || program->diags->errors > 0) return;
    program->names = names_new(program->arena);
    compile->names.arena = arena_scratch(program->arena);
    if (!parse(compile)) return;
    allows_read(&program->levels, program->ast->comments.items, program->ast->comments.count,
                program->diags);
    /* errors in a broken tree would be reported twice */
    if (program->diags->errors > 0) return;
    program->kernel_count = check_kernels(program->ast, &program->kernels);
    choose_kernel(compile);
    if (!options->check_only) find_bound(program);
    for (size_t i = 0; i < compile->words.count; i++) bind_static(compile, compile->words.items[i]);
    choose_variant(compile);
    take_statics(compile);
    if (!options->check_only) open_targets(program);
    if (program->diags->errors > 0) return;
    set_limits(compile);
    check(compile);
    if (checked_whole(compile)) {
        check_uncalled(program->ast, program->diags);
        elaborate_unused(program->arena, program->ast, &compile->names, program->diags);
    }
    arena_free(compile->names.arena);
    if (checked_whole(compile)) allows_unused(program->diags);
    for (size_t i = 0; known_kernel(program) && i < compile->others.count; i++)
        refuse_other(program, compile->others.items[i]);
    program->checked = options->check_only && program->kernel_count > 0 && !compile->ended &&
                       program->diags->errors == 0;
    bool generates = program->prog != NULL && !options->check_only;
    if (program->diags->errors == 0 && generates && options->choices != NULL)
        fixed_read(program, options->choices, program->diags);
    if (program->diags->errors == 0 && generates) generate(compile);
}

static void print_times(PipecProgram *program) {
    Str text = str_new(program->arena);
    times_print(program->arena, &text);
    program->times = text.text;
}

static void compile_all(void *data) {
    Compile *compile = data;
    Arena *arena = compile->program->arena;
    /* copied, because the program outlives the caller's strings */
    PipecOptions *options = NEW(arena, PipecOptions);
    compile->unsized = !size_read(options, sizeof *options, compile->given);
    compile->words = value_words(arena, options->values, options->value_count, options->numbers,
                                 options->number_count);
    if (options->kernel != NULL)
        options->kernel = arena_copy(arena, options->kernel, strlen(options->kernel));
    if (options->variant != NULL)
        options->variant = arena_copy(arena, options->variant, strlen(options->variant));
    compile->options = options;
    compile->program->untuned = options->untuned;
    compile->program->invariant = options->invariant;
    compile->program->loaded_most = options->loaded_most;
    compile->program->patience = options->patience;
    compile->program->watchdog = options->watchdog;
    compile->program->ptx = str_new(arena);
    if (options->times) times_start(arena);
    run_pipeline(compile);
    program_finish(compile->program);
    if (options->times) print_times(compile->program);
}

typedef struct New {
    Arena *arena;
    PipecProgram *program;
} New;

static void new_program(void *data) {
    New *it = data;
    it->program = NEW(it->arena, PipecProgram);
    it->program->arena = it->arena;
    pthread_mutex_init(&it->program->lock, NULL); /* cannot fail: no attributes */
}

PipecProgram *program_new(void) {
    New start = {.arena = arena_new()};
    if (start.arena == NULL) return NULL;
    if (attempt(start.arena, new_program, &start)) return start.program;
    arena_free(start.arena);
    return NULL;
}

static PipecProgram *compile_text(Compile compile) {
    compile.program = program_new();
    if (compile.program == NULL) return NULL;
    if (attempt(compile.program->arena, compile_all, &compile)) return compile.program;
    pipec_program_free(compile.program);
    return NULL;
}

const char *program_fault(Arena *arena, const PipecProgram *program) {
    for (size_t i = 0; i < program->diags->items.count; i++) {
        const Diag *diag = program->diags->items.items[i];
        if (diag->severity == SEVERITY_ERROR || diag->severity == SEVERITY_INCOMPLETE)
            return arena_printf(arena, "%s (%s)", diag->message, code_rows[diag->code].name);
    }
    return NULL;
}

typedef struct Faults {
    const PipecProgram *from;
    PipecProgram *to;
} Faults;

static void add_fault(void *data) {
    const Faults *it = data;
    Arena *arena = it->to->arena;
    const char *fault = program_fault(arena, it->from);
    const char *before = it->to->faults;
    it->to->faults = arena_printf(arena, "%s%s`%s`: %s", before != NULL ? before : "",
                                  before != NULL ? "; " : "", it->from->kernel,
                                  fault != NULL ? fault : "it is not taken");
}

/* The program with this variant instead; NULL: it is none of the same kernel that has the statics,
 * or memory ran out */
static PipecProgram *with_variant(const PipecProgram *program, const PipecOptions *given,
                                  const char *kernel) {
    PipecOptions options;
    (void)size_read(&options, sizeof options, given);
    if (kernel == program->kernel || !check_is_named(kernel, program->open_kernel) ||
        !targets_wanted(program, kernel) || !choice_has_statics(program, kernel))
        return NULL;
    return compile_text((Compile){.source = program->source, .given = &options, .prefer = kernel});
}

/* Values of statics may exclude a variant, but not the call: then the next one is tried. If there
 * is none, the errors of the first remain, and the faults of the others. */
static PipecProgram *compile_variants(Compile compile) {
    PipecProgram *first = compile_text(compile);
    bool tries = first != NULL && first->open_kernel != NULL && first->kernel != NULL &&
                 first->static_count > 0 && first->status != PIPEC_FINE;
    for (size_t i = 0; tries && i < first->kernel_count; i++) {
        PipecProgram *other = with_variant(first, compile.given, first->kernels[i]);
        if (other == NULL) continue;
        if (other->status == PIPEC_FINE) {
            pipec_program_free(first);
            return other;
        }
        Faults faults = {other, first};
        (void)attempt(first->arena, add_fault, &faults);
        pipec_program_free(other);
    }
    return first;
}

PipecProgram *program_compile(const char *text, size_t length, const PipecOptions *options) {
    return compile_variants((Compile){.text = text, .length = length, .given = options});
}

PipecProgram *program_compile_file(const char *path, const PipecOptions *options) {
    return compile_variants((Compile){.path = path, .given = options});
}

PipecProgram *program_compile_source(const Source *source, const PipecOptions *options) {
    return compile_variants((Compile){.source = source, .given = options});
}

static void others_free(const PipecProgram *program) {
    for (PipecProgram *next, *at = program->others; at != NULL; at = next) {
        next = at->next_other;
        pipec_program_free(at);
    }
}

static void siblings_free(const PipecProgram *program) {
    if (program->siblings == NULL) return;
    for (const Sibling *next, *at = program->siblings->first; at != NULL; at = next) {
        next = at->next;
        pipec_program_free(at->program);
    }
    arena_free(program->siblings->arena);
    pthread_mutex_destroy(&program->siblings->lock);
}

PIPEC_API void pipec_program_free(PipecProgram *program) {
    if (program == NULL) return;
    others_free(program);
    siblings_free(program);
    arena_free(program->family_arena);
    pthread_mutex_destroy(&program->lock);
    arena_free(program->arena);
}

/* ---- results --------------------------------------------------------------------------------- */

PIPEC_API PipecStatus pipec_program_status(const PipecProgram *program) { return program->status; }

PIPEC_API const PipecDiagnostics *pipec_program_diagnostics(const PipecProgram *program) {
    return program->published;
}

PIPEC_API bool pipec_program_file(const PipecProgram *program, size_t index, PipecFile *out) {
    if (program->ast == NULL || index >= program->source->file_count) return false;
    const SourceFile *file = &program->source->files[index];
    *out = (PipecFile){index == 0 ? file->name : file->path, program->source->text + file->lo,
                       file->hi - file->lo};
    return true;
}

PIPEC_API const char *pipec_program_kernel(const PipecProgram *program, size_t index) {
    return index < program->kernel_count ? program->kernels[index] : NULL;
}

PIPEC_API const char *pipec_program_compiled(const PipecProgram *program) {
    return program->kernel;
}

PIPEC_API bool pipec_program_is_static(const PipecProgram *program, const char *value) {
    const char *equals = strchr(value, '=');
    char name[256];
    if (equals == NULL || (size_t)(equals - value) >= sizeof name) return false;
    memcpy(name, value, (size_t)(equals - value));
    name[equals - value] = 0;
    return is_static(program, name);
}

PIPEC_API const char *pipec_program_times(const PipecProgram *program) { return program->times; }

PIPEC_API const char *pipec_program_ptx(const PipecProgram *program, size_t *length) {
    if (program->manifest == NULL || program->cubin != NULL) return NULL;
    if (length != NULL) *length = program->ptx.length;
    return program->ptx.text;
}

PIPEC_API const char *pipec_program_manifest(PipecProgram *program) {
    return pipec_program_emit(program, "manifest");
}

static void print_report(void *data) {
    PipecProgram *program = data;
    Str text = str_new(program->arena), json = str_new(program->arena);
    report_print(program->prog, &text, &json);
    program->report = text.text;
}

PIPEC_API const char *pipec_program_report(PipecProgram *program) {
    if (program->manifest == NULL || program->prog == NULL) return NULL;
    if (program->report == NULL) attempt(program->arena, print_report, program);
    return program->report;
}
