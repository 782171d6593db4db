/* launch: the extents of tensors that a caller is about to allocate. Takes the tensors and scalars
 * that are given, and named extents; solves the formulas of the given tensors' extents for the
 * symbols, one unknown symbol at a time. Needs no memory but the caller's, unless it reports. */
#include "launch/private.h"

#include <string.h>

typedef struct Inference {
    const Manifest *manifest;
    const DeviceArgument *arguments;
    const bool *given;
    bool *known; /* of each symbol */
    int64_t *symbols;
    Diags *diags; /* NULL: nothing is reported */
} Inference;

static bool is_known(const Inference *it, const Formula *formula) {
    for (int i = 0; i < formula->count; i++)
        if (formula->steps[i].op == F_SYMBOL && !it->known[formula->steps[i].value]) return false;
    return true;
}

/* The only unknown symbol, if it occurs once, in a formula that is linear in it; otherwise -1 */
static int64_t linear_unknown(const Formula *formula, const bool *known) {
    int64_t unknown = -1;
    for (int i = 0; i < formula->count; i++) {
        const FormulaStep *step = &formula->steps[i];
        bool linear = step->op == F_CONST || step->op == F_SYMBOL || step->op == F_NEG ||
                      step->op == F_ADD || step->op == F_SUB || step->op == F_MUL;
        if (!linear) return -1;
        if (step->op != F_SYMBOL || known[step->value]) continue;
        if (unknown >= 0) return -1;
        unknown = step->value;
    }
    return unknown;
}

static bool value_with(const Formula *formula, int64_t *symbols, int64_t unknown, int64_t value,
                       int64_t *result) {
    symbols[unknown] = value;
    return formula_eval(formula, symbols, result) == FORMULA_FINE;
}

int64_t formula_solve(const Formula *formula, int64_t extent, const bool *known, int64_t *symbols) {
    int64_t unknown = linear_unknown(formula, known), at_0, at_1, slope, rest;
    if (unknown < 0) return -1;
    int64_t before = symbols[unknown];
    bool fine = value_with(formula, symbols, unknown, 0, &at_0) &&
                value_with(formula, symbols, unknown, 1, &at_1) &&
                !__builtin_sub_overflow(at_1, at_0, &slope) && slope != 0 &&
                !__builtin_sub_overflow(extent, at_0, &rest) && (slope != -1 || rest != INT64_MIN);
    symbols[unknown] = fine ? rest / slope : before;
    return fine ? unknown : -1;
}

static bool solve(const Inference *it, const Formula *formula, int64_t extent) {
    int64_t symbol = formula_solve(formula, extent, it->known, it->symbols);
    if (symbol >= 0) it->known[symbol] = true;
    return symbol >= 0;
}

static bool solve_any(const Inference *it) {
    bool any = false;
    for (size_t i = 0; i < it->manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &it->manifest->parameters.items[i];
        if (parameter->kind != PARAMETER_TENSOR || !it->given[i]) continue;
        for (int axis = 0; axis < parameter->rank; axis++)
            any = solve(it, &parameter->extents[axis], it->arguments[i].extents[axis]) || any;
    }
    return any;
}

/* ---- what is given --------------------------------------------------------------------------- */

static void take_scalars(const Inference *it) {
    for (size_t i = 0; i < it->manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &it->manifest->parameters.items[i];
        int symbol = parameter->symbol;
        if (parameter->kind != PARAMETER_SCALAR || symbol < 0) continue;
        it->known[symbol] = it->given[i];
        it->symbols[symbol] = scalar_symbol(parameter->type, &it->arguments[i].scalar);
    }
}

static void report_no_extent(const Inference *it, const char *name) {
    const Manifest *manifest = it->manifest;
    VEC(const char *) names = {0};
    if (it->diags == NULL) return;
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent)
            vec_push(it->diags->arena, &names, manifest->symbols.items[i].name);
    Diag *diag =
        diag_plain(it->diags, P0601, "kernel `%s` has no extent `%s`", manifest->kernel, name);
    const char *near = closest_name(name, names.items, names.count);
    if (near != NULL) diag_help(it->diags, diag, "did you mean `%s`?", near);
}

static bool take_named(const Inference *it, const char *name, int64_t value) {
    int symbol = manifest_symbol(it->manifest, name);
    if (symbol < 0 || !it->manifest->symbols.items[symbol].is_extent) {
        report_no_extent(it, name);
        return false;
    }
    it->known[symbol] = true;
    it->symbols[symbol] = value;
    if (extent_fits(value)) return true;
    if (it->diags != NULL)
        diag_plain(it->diags, P0605, "extent `%s` is %lld; extents must be 0 to %lld", name,
                   (long long)value, (long long)EXTENT_MOST);
    return false;
}

/* A solution below 0, or one that is too large, has its formula's value nevertheless. */
static bool solutions_fit(const Inference *it) {
    bool fine = true;
    for (size_t s = 0; s < it->manifest->symbols.count; s++) {
        const ManifestSymbol *symbol = &it->manifest->symbols.items[s];
        if (symbol->times == 0 || !it->known[s] || !it->given[symbol->parameter] ||
            extent_fits(it->symbols[s]))
            continue;
        fine = false;
        if (it->diags != NULL)
            report_unsolved(it->manifest, (size_t)symbol->parameter, symbol->axis,
                            it->arguments[symbol->parameter].extents[symbol->axis], "", it->diags);
    }
    return fine;
}

static bool given_fit(const Inference *it) {
    bool fine = solutions_fit(it);
    for (size_t i = 0; i < it->manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &it->manifest->parameters.items[i];
        if (parameter->kind != PARAMETER_TENSOR || !it->given[i]) continue;
        for (int axis = 0; axis < parameter->rank; axis++)
            if (is_known(it, &parameter->extents[axis]))
                fine = compare_axis(it->manifest, it->arguments, i, axis, it->symbols, it->diags) &&
                       fine;
    }
    return fine;
}

/* ---- what is wanted -------------------------------------------------------------------------- */

static void report_unknown(const Inference *it, const ManifestParameter *parameter, int axis) {
    const Formula *formula = &parameter->extents[axis];
    for (int i = 0; i < formula->count; i++) {
        if (formula->steps[i].op != F_SYMBOL || it->known[formula->steps[i].value]) continue;
        const ManifestSymbol *symbol = &it->manifest->symbols.items[formula->steps[i].value];
        Diag *diag =
            diag_plain(it->diags, P0603, "no value for %s `%s` of `%s`",
                       symbol->is_extent ? "extent" : "scalar", symbol->name, it->manifest->kernel);
        diag_note(it->diags, diag, "axis %d of `%s` needs it", axis, parameter->name);
        diag_help(it->diags, diag, "give `%s`, or a tensor that has it as an extent", symbol->name);
        return;
    }
}

static void report_extent(const Inference *it, const ManifestParameter *parameter, int axis) {
    Str text = str_new(it->diags->arena);
    formula_print(&parameter->extents[axis], it->manifest, &text);
    diag_plain(it->diags, P0605, "axis %d of `%s`, `%s`, is not between 0 and %lld", axis,
               parameter->name, text.text, (long long)EXTENT_MOST);
}

static bool fill(const Inference *it, const ManifestParameter *parameter, int64_t *extents) {
    for (int axis = 0; axis < parameter->rank; axis++) {
        const Formula *formula = &parameter->extents[axis];
        bool known = is_known(it, formula);
        if (known && formula_eval(formula, it->symbols, &extents[axis]) == FORMULA_FINE &&
            extent_fits(extents[axis]))
            continue;
        if (it->diags != NULL) (known ? report_extent : report_unknown)(it, parameter, axis);
        return false;
    }
    return true;
}

bool launch_infer(const Manifest *manifest, DeviceArgument *arguments, const bool *given,
                  const Argument *named, size_t count, int64_t *symbols, bool *known,
                  Diags *diags) {
    Inference it = {manifest, arguments, given, known, symbols, diags};
    bool fine = true;
    memset(known, 0, manifest->symbols.count * sizeof *known);
    take_scalars(&it);
    for (size_t i = 0; i < count; i++)
        fine = take_named(&it, named[i].name, named[i].value.integer) && fine;
    while (fine && solve_any(&it)) continue;
    fine = fine && given_fit(&it);
    for (size_t i = 0; fine && i < manifest->parameters.count; i++)
        if (manifest->parameters.items[i].kind == PARAMETER_TENSOR && !given[i])
            fine = fill(&it, &manifest->parameters.items[i], arguments[i].extents);
    return fine;
}
