/* launch: checks a launch. Evaluates the symbols' preconditions, the number of tiles and the
 * sizes. Allocates only for errors, because every launch of an embedding program passes through. */
#include "launch/private.h"

#include <math.h>

/* "with `K` = 3, `N` = 8": the symbols that the formula uses, each once. Strides: a formula with
 * them speaks of those that follow from the extents. */
static void note_symbols(const Manifest *manifest, const Formula *formula, const int64_t *symbols,
                         Diags *diags, Diag *diag) {
    Str text = str_new(diags->arena);
    for (size_t s = 0; s < manifest->symbols.count; s++) {
        bool named = false;
        if (manifest->symbols.items[s].is_stride) continue;
        for (int i = 0; i < formula->count; i++)
            named = named ||
                    (formula->steps[i].op == F_SYMBOL && formula->steps[i].value == (int64_t)s);
        if (!named) continue;
        str_printf(&text, "%s`%s` = ", text.length > 0 ? ", " : "",
                   manifest->symbols.items[s].name);
        if (manifest->symbols.items[s].is_float)
            str_printf(&text, "%.9g", formula_ordered(symbols[s]));
        else
            str_printf(&text, "%lld", (long long)symbols[s]);
    }
    if (text.length > 0) diag_note(diags, diag, "here %s", text.text);
}

static const char *fault_text(FormulaFault fault) {
    switch (fault) {
    case FORMULA_FINE: break;
    case FORMULA_OVERFLOW: return "does not fit 64 bits";
    case FORMULA_ZERO_DIVISOR: return "divides by zero";
    }
    return "is fine";
}

static bool names_nan(const Manifest *manifest, const Formula *formula, const int64_t *symbols) {
    for (int i = 0; i < formula->count; i++) {
        int64_t symbol = formula->steps[i].op == F_SYMBOL ? formula->steps[i].value : -1;
        if (symbol >= 0 && symbol < (int64_t)manifest->symbols.count &&
            symbols[symbol] == ORDER_NAN && manifest->symbols.items[symbol].is_float)
            return true;
    }
    return false;
}

static bool precondition(const Manifest *manifest, const ManifestPrecondition *wanted,
                         const int64_t *symbols, Diags *diags) {
    int64_t value = 0;
    FormulaFault fault = FORMULA_FINE;
    bool nan = names_nan(manifest, &wanted->condition, symbols);
    if (!nan) fault = formula_eval(&wanted->condition, symbols, &value);
    if (fault == FORMULA_FINE && value != 0) return true;
    if (diags == NULL) return false;
    Diag *diag =
        manifest_diag(manifest, diags, P0608, wanted->span, "`%s` must hold for a launch of `%s`",
                      wanted->text, manifest->kernel);
    if (fault != FORMULA_FINE)
        diag_note(diags, diag, "it has no value: an operation in it %s", fault_text(fault));
    note_symbols(manifest, &wanted->condition, symbols, diags, diag);
    if (nan) diag_note(diags, diag, "NaN meets no condition, whatever it compares");
    if (wanted->reason != NULL) diag_note(diags, diag, "%s", wanted->reason);
    if (wanted->help != NULL) diag_help(diags, diag, "%s", wanted->help);
    return false;
}

/* Formulas are of 64 bits with a sign. */
static bool has_sign_bit(const ManifestParameter *parameter, const int64_t *symbols) {
    return parameter->type == E_U64 && parameter->compared && symbols[parameter->symbol] < 0;
}

static bool scalars_fit(const Manifest *manifest, const int64_t *symbols, Diags *diags) {
    bool fine = true;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        if (!has_sign_bit(parameter, symbols)) continue;
        fine = false;
        if (diags == NULL) continue;
        Diag *diag = manifest_diag(manifest, diags, P0606, parameter->span,
                                   "%llu is too large for `%s`, which the launch computes with",
                                   (unsigned long long)symbols[parameter->symbol], parameter->name);
        diag_note(diags, diag,
                  "in `requires`, extents and the grid, u64 ends at 9223372036854775807");
    }
    return fine;
}

bool launch_check(const Manifest *manifest, const int64_t *symbols, int64_t *tiles, Diags *diags) {
    bool fine = scalars_fit(manifest, symbols, diags);
    if (!fine) return false;
    for (size_t i = 0; i < manifest->preconditions.count; i++)
        fine = precondition(manifest, &manifest->preconditions.items[i], symbols, diags) && fine;
    if (!fine) return false;
    FormulaFault fault = formula_eval(&manifest->tiles, symbols, tiles);
    if (fault == FORMULA_FINE && *tiles <= EXTENT_MOST) {
        *tiles = *tiles < 0 ? 0 : *tiles;
        return true;
    }
    if (diags == NULL) return false;
    Str text = str_new(diags->arena);
    formula_print(&manifest->tiles, manifest, &text);
    Diag *diag =
        diag_plain(diags, P0609, "the number of grid tiles of `%s`, `%s`, %s", manifest->kernel,
                   text.text, fault != FORMULA_FINE ? fault_text(fault) : "exceeds 2146435072");
    note_symbols(manifest, &manifest->tiles, symbols, diags, diag);
    return false;
}

/* ---- extents that come with device pointers -------------------------------------------------- */

/* The symbol if the formula consists of one symbol, otherwise -1 */
static int64_t single_symbol(const Formula *formula) {
    return formula->count == 1 && formula->steps[0].op == F_SYMBOL ? formula->steps[0].value : -1;
}

int64_t solved_symbol(const Manifest *manifest, size_t parameter, int axis) {
    for (size_t s = 0; s < manifest->symbols.count; s++) {
        const ManifestSymbol *symbol = &manifest->symbols.items[s];
        if (symbol->times != 0 && symbol->parameter == (int)parameter && symbol->axis == axis)
            return (int64_t)s;
    }
    return -1;
}

bool solve_extent(const ManifestSymbol *symbol, int64_t extent, int64_t *value) {
    *value = (extent - symbol->plus) / symbol->times;
    return (extent - symbol->plus) % symbol->times == 0 && extent_fits(*value);
}

void report_unsolved(const Manifest *manifest, size_t parameter, int axis, int64_t extent,
                     const char *where, Diags *diags) {
    const ManifestParameter *row = &manifest->parameters.items[parameter];
    const char *name = manifest->symbols.items[solved_symbol(manifest, parameter, axis)].name;
    Str text = str_new(diags->arena);
    formula_print(&row->extents[axis], manifest, &text);
    Diag *diag = manifest_diag(manifest, diags, P0604, row->span,
                               "axis %d of `%s`%s has %lld elements, but its extent is `%s`", axis,
                               row->name, where, (long long)extent, text.text);
    diag_note(diags, diag, "no `%s` from 0 on gives it", name);
}

typedef struct Axis {
    size_t parameter;
    int axis;
} Axis;

/* The first axis whose extent is this symbol; at the latest the axis that is being compared. */
static Axis first_axis(const Manifest *manifest, int64_t symbol) {
    for (size_t i = 0; i < manifest->parameters.count; i++)
        for (int axis = 0; axis < manifest->parameters.items[i].rank; axis++)
            if (single_symbol(&manifest->parameters.items[i].extents[axis]) == symbol)
                return (Axis){i, axis};
    return (Axis){0, 0};
}

static bool bind_axis(const Manifest *manifest, const DeviceArgument *arguments, Axis at,
                      int64_t *symbols, Diags *diags) {
    const ManifestParameter *parameter = &manifest->parameters.items[at.parameter];
    int64_t extent = arguments[at.parameter].extents[at.axis],
            symbol = single_symbol(&parameter->extents[at.axis]);
    if (!extent_fits(extent)) {
        diag_plain(diags, P0605, "axis %d of `%s` has %lld elements; extents must be 0 to %lld",
                   at.axis, parameter->name, (long long)extent, (long long)EXTENT_MOST);
        return false;
    }
    if (symbol < 0 && (symbol = solved_symbol(manifest, at.parameter, at.axis)) >= 0) {
        if (solve_extent(&manifest->symbols.items[symbol], extent, &symbols[symbol])) return true;
        if (diags != NULL) report_unsolved(manifest, at.parameter, at.axis, extent, "", diags);
        return false;
    }
    if (symbol < 0) return true; /* compared when all symbols are known */
    Axis first = first_axis(manifest, symbol);
    if (first.parameter == at.parameter && first.axis == at.axis)
        symbols[symbol] = extent;
    else if (symbols[symbol] != extent) {
        diag_plain(diags, P0604,
                   "extents `%s` disagree: axis %d of `%s` is %lld, axis %d of `%s` is %lld",
                   manifest->symbols.items[symbol].name, first.axis,
                   manifest->parameters.items[first.parameter].name, (long long)symbols[symbol],
                   at.axis, parameter->name, (long long)extent);
        return false;
    }
    return true;
}

bool compare_axis(const Manifest *manifest, const DeviceArgument *arguments, size_t index, int axis,
                  const int64_t *symbols, Diags *diags) {
    const ManifestParameter *parameter = &manifest->parameters.items[index];
    const Formula *formula = &parameter->extents[axis];
    int64_t wanted, extent = arguments[index].extents[axis];
    FormulaFault fault = formula_eval(formula, symbols, &wanted);
    if (fault == FORMULA_FINE && wanted == extent) return true;
    if (diags == NULL) return false;
    Str text = str_new(diags->arena);
    formula_print(formula, manifest, &text);
    Diag *diag = manifest_diag(manifest, diags, P0604, parameter->span,
                               "axis %d of `%s` has %lld elements, but its extent is `%s`", axis,
                               parameter->name, (long long)extent, text.text);
    note_symbols(manifest, formula, symbols, diags, diag);
    return false;
}

static void report_type(const Manifest *manifest, const ManifestParameter *parameter, Element type,
                        Diags *diags) {
    manifest_diag(manifest, diags, P0624, parameter->span, "`%s` has elements of %s, not of %s",
                  parameter->name, element_rows[parameter->type].spelling,
                  type < E_COUNT ? element_rows[type].spelling : "an unknown type");
}

bool launch_types(const Manifest *manifest, const DeviceArgument *arguments, Diags *diags) {
    bool fine = true;
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        int typed = arguments[i].typed;
        if (typed == 0 || parameter->kind != PARAMETER_TENSOR || typed == parameter->type + 1)
            continue;
        fine = false;
        if (diags != NULL) report_type(manifest, parameter, (Element)(typed - 1), diags);
    }
    return fine;
}

bool bind_symbols(const Manifest *manifest, const DeviceArgument *arguments, int64_t *symbols,
                  Diags *diags) {
    bool fine = launch_types(manifest, arguments, diags);
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        if (parameter->kind == PARAMETER_SCALAR && parameter->symbol >= 0)
            symbols[parameter->symbol] = scalar_symbol(parameter->type, &arguments[i].scalar);
        for (int axis = 0; parameter->kind == PARAMETER_TENSOR && axis < parameter->rank; axis++)
            fine = bind_axis(manifest, arguments, (Axis){i, axis}, symbols, diags) && fine;
    }
    for (size_t i = 0; fine && i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        for (int axis = 0; parameter->kind == PARAMETER_TENSOR && axis < parameter->rank; axis++)
            if (single_symbol(&parameter->extents[axis]) < 0) /* else bind_axis compared it */
                fine = compare_axis(manifest, arguments, i, axis, symbols, diags) && fine;
    }
    return fine;
}

bool launch_bind(const Manifest *manifest, const DeviceArgument *arguments, int64_t *symbols,
                 int64_t *tiles, Diags *diags) {
    if (!bind_symbols(manifest, arguments, symbols, diags)) return false;
    strides_set(manifest, arguments, symbols);
    return launch_check(manifest, symbols, tiles, diags) &&
           launch_strides(manifest, arguments, symbols, diags);
}

/* ---- scalars as they are passed -------------------------------------------------------------- */

const char *scalar_passed(Element type) { return type == E_BOOL ? "s32" : element_rows[type].ptx; }

int64_t scalar_symbol(Element type, const Scalar *scalar) {
    unsigned char stored[8];
    if (!is_float(type)) return scalar->integer;
    element_store(type, stored, scalar->number);
    return formula_order(element_load(type, stored));
}

Scalar scalar_of_symbol(Element type, int64_t symbol) {
    if (!is_float(type)) return (Scalar){.number = (double)symbol, .integer = symbol};
    return (Scalar){.number = symbol == ORDER_NAN ? NAN : formula_ordered(symbol)};
}

size_t scalar_pack(Element type, const Scalar *scalar, unsigned char out[8]) {
    if (is_float(type)) {
        /* an f16 is rounded to f16, then widened */
        element_store(type, out, scalar->number);
        element_store(E_F32, out, element_load(type, out));
        return 4;
    }
    bool wide = element_rows[element_rows[type].widens].bytes == 8;
    element_store_integer(wide ? E_I64 : E_I32, out, scalar->integer);
    return wide ? 8 : 4;
}
