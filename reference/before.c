/* reference: data from before the launch: copies of the tensors that `old` reads, and the values
 * of the file's `example`. */
#include "reference/code.h"

#include <string.h>

/* ---- old ------------------------------------------------------------------------------------- */

static void note_old(Expr *expr, void *data) {
    bool *wanted = data;
    if (expr->kind == X_READ && expr->read->space == SPACE_GLOBAL && expr->read->old)
        wanted[expr->read->object] = true;
}

bool reference_before(Arena *arena, const Prog *prog, const Launch *launch, Before *before,
                      Diags *diags) {
    bool *wanted = NEW_ARRAY(arena, bool, prog->params.count + 1);
    for (size_t i = 0; i < prog->claims.count; i++)
        expr_visit(arena, prog->claims.items[i].value, note_old, wanted);
    for (size_t i = 0; i < prog->lets.count; i++)
        expr_visit(arena, prog->lets.items[i].value, note_old, wanted);
    *before = (Before){NEW_ARRAY(arena, Array, prog->params.count + 1), prog->params.count};
    for (size_t i = 0; i < prog->params.count; i++) {
        if (!wanted[i] || array_copy(&before->arrays[i], &launch->arrays[i])) continue;
        diag_plain(diags, P0610,
                   "not enough host memory for a copy of `%s`, whose values before the launch "
                   "`ensures` reads",
                   prog->params.items[i].name);
        reference_before_free(before);
        return false;
    }
    return true;
}

void reference_before_free(Before *before) {
    for (size_t i = 0; i < before->count; i++) array_free(&before->arrays[i]);
    before->count = 0;
}

/* ---- example --------------------------------------------------------------------------------- */

typedef VEC(Argument) Arguments;

static bool known_to(const Manifest *manifest, const char *name) {
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent &&
            strcmp(manifest->symbols.items[i].name, name) == 0)
            return true;
    for (size_t i = 0; i < manifest->parameters.count; i++)
        if (strcmp(manifest->parameters.items[i].name, name) == 0) return true;
    return false; /* an extent that a static fixes */
}

static bool given_by_user(const Argument *given, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(given[i].name, name) == 0) return true;
    return false;
}

static Argument from_number(const Example *example) {
    Argument argument = {.name = example->name,
                         .kind = ARGUMENT_NUMBER,
                         .value = {.number = example->number,
                                   .integer = example->integer,
                                   .is_integer = example->is_integer,
                                   .is_above = example->is_above},
                         .from_example = true};
    if (example->param < 0) return argument;
    argument.kind = ARGUMENT_FILL;
    argument.fill = (Fill){.kind = FILL_VALUE, .value = argument.value};
    return argument;
}

static Argument from_fill(const Example *example) {
    static const char *const names[] = {[FILL_NORMAL] = "normal",
                                        [FILL_UNIFORM] = "uniform",
                                        [FILL_IOTA] = "iota",
                                        [FILL_ZEROS] = "zeros"};
    Argument argument = {.name = example->name, .kind = ARGUMENT_FILL, .from_example = true};
    for (size_t i = 0; i < COUNT_OF(names); i++)
        if (strcmp(names[i], example->fill) == 0) argument.fill.kind = (FillKind)i;
    return argument;
}

/* Evaluates a formula for all indexes of its tensor */
static bool from_formula(Arena *arena, const Prog *prog, const Example *example,
                         const int64_t *symbols, Argument *out, Diags *diags) {
    Machine *machine = machine_new(arena, prog, symbols, NULL, NULL, NULL);
    Function *function = function_compile(machine, &example->space, example->value, NULL);
    if (function->count < 0 || function->count > (int64_t)(SIZE_MAX / sizeof(double) / 8)) {
        diag_at(diags, P0609, example->span, "the size of `%s` does not fit 64 bits",
                example->name);
        return false;
    }
    double *values = NEW_ARRAY(arena, double, function->count + 1);
    bool number = is_number(function->type), natural = function->type == E_U64;
    int64_t *integers = number ? NULL : NEW_ARRAY(arena, int64_t, function->count + 1);
    for (int64_t first = 0; first < function->count; first += LANES) {
        int lanes = function->count - first < LANES ? (int)(function->count - first) : LANES;
        function_place(function, first, lanes);
        function_run(machine, function, lanes);
        const Value *result = register_of(function, function->result);
        for (int i = 0; i < lanes; i++)
            values[first + i] = number    ? result[i].number
                                : natural ? (double)(uint64_t)result[i].integer
                                          : (double)result[i].integer;
        for (int i = 0; i < lanes && !number; i++) integers[first + i] = result[i].integer;
    }
    *out = (Argument){
        .name = example->name,
        .kind = ARGUMENT_FILL,
        .from_example = true,
        .fill = {
            .kind = FILL_ARRAY, .values = values, .integers = integers, .count = function->count}};
    return true;
}

/* The user's arguments, followed by those of `example` except formulas. */
static Arguments plain_arguments(Arena *arena, const Prog *prog, const Manifest *manifest,
                                 const Argument *given, size_t given_count) {
    Arguments arguments = {0};
    for (size_t i = 0; i < given_count; i++) vec_push(arena, &arguments, given[i]);
    for (size_t i = 0; i < prog->examples.count; i++) {
        const Example *example = &prog->examples.items[i];
        if (!known_to(manifest, example->name)) continue;
        if (example->kind == EXAMPLE_NUMBER) vec_push(arena, &arguments, from_number(example));
        if (example->kind == EXAMPLE_FILL) vec_push(arena, &arguments, from_fill(example));
    }
    return arguments;
}

static bool is_formula(const Manifest *manifest, const Example *example, const Argument *given,
                       size_t given_count) {
    return example->kind == EXAMPLE_FORMULA && known_to(manifest, example->name) &&
           !given_by_user(given, given_count, example->name);
}

bool reference_symbols(Arena *arena, const Prog *prog, const Manifest *manifest,
                       const Argument *given, size_t given_count, int64_t *symbols, Diags *diags) {
    Arguments arguments = plain_arguments(arena, prog, manifest, given, given_count);
    return launch_symbols(arena, manifest, arguments.items, arguments.count, symbols, diags);
}

bool reference_arguments(Arena *arena, const Prog *prog, const Manifest *manifest,
                         const Argument *given, size_t given_count, Argument **all, size_t *count,
                         Diags *diags) {
    Arguments arguments = plain_arguments(arena, prog, manifest, given, given_count);
    int64_t *symbols = NULL;
    for (size_t i = 0; i < prog->examples.count; i++) {
        const Example *example = &prog->examples.items[i];
        Argument argument;
        if (!is_formula(manifest, example, given, given_count)) continue;
        if (symbols == NULL) {
            symbols = NEW_ARRAY(arena, int64_t, manifest->symbols.count + 1);
            if (!reference_symbols(arena, prog, manifest, given, given_count, symbols, diags))
                return false;
        }
        if (!from_formula(arena, prog, example, symbols, &argument, diags)) return false;
        vec_push(arena, &arguments, argument);
    }
    *all = arguments.items;
    *count = arguments.count;
    return true;
}
