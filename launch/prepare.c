/* launch: binds arguments to a manifest. Returns a Launch whose extents agree, whose
 * preconditions hold and whose arrays are allocated and filled; or reports diagnostics and
 * leaves nothing allocated or open. Values from the user have precedence over the file's
 * `example`, and the shape of the user's data over the example's extents. */
#include "launch/private.h"

#include <math.h>
#include <string.h>

/* Value of a symbol, and its origin */
typedef struct Known {
    bool known, from_example;
    int64_t value;
    const char *where; /* "`N=8`", "axis 0 of `a.npy`" */
} Known;

typedef struct Binder {
    Arena *arena;
    const Manifest *manifest;
    Diags *diags;
    const Argument **given; /* of each parameter, NULL: none */
    /* of each parameter, open if its data comes from a file */
    NpyFile *files;
    Known *known;    /* of each symbol */
    Scalar *scalars; /* of each parameter */
    bool fine;
} Binder;

static Diag *wrong(Binder *binder, Code code, const char *format, ...) PRINTF_LIKE(3, 4);
static Diag *wrong(Binder *binder, Code code, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const char *text = arena_vprintf(binder->arena, format, args);
    va_end(args);
    binder->fine = false;
    return diag_plain(binder->diags, code, "%s", text);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void unknown_name(Binder *binder, const Argument *argument) {
    const Manifest *manifest = binder->manifest;
    VEC(const char *) names = {0};
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent)
            vec_push(binder->arena, &names, manifest->symbols.items[i].name);
    for (size_t i = 0; i < manifest->parameters.count; i++)
        vec_push(binder->arena, &names, manifest->parameters.items[i].name);
    Diag *diag = wrong(binder, P0601, "kernel `%s` has no parameter or extent `%s`",
                       manifest->kernel, argument->name);
    const char *near = closest_name(argument->name, names.items, names.count);
    if (near != NULL) {
        diag_help(binder->diags, diag, "did you mean `%s`?", near);
        return;
    }
    Str list = str_new(binder->arena);
    for (size_t i = 0; i < names.count; i++)
        str_printf(&list, "%s`%s`", i > 0 ? ", " : "", names.items[i]);
    diag_note(binder->diags, diag, names.count > 0 ? "it has %s" : "it takes no arguments%s",
              list.text);
}

/* If two arguments have one name, the user's has precedence over the example's; two of the same
 * origin are an error. True: use `argument`. */
static bool has_precedence(Binder *binder, const char *name, bool there, bool there_from_example,
                           const Argument *argument) {
    if (there && there_from_example == argument->from_example)
        wrong(binder, P0602, "`%s` is given twice", name);
    return !there || (there_from_example && !argument->from_example);
}

static const char *numeral_text(Binder *binder, const Numeral *value) {
    if (value->text != NULL) return value->text;
    if (value->is_above)
        return arena_printf(binder->arena, "%llu", (unsigned long long)value->integer);
    if (value->is_integer) return arena_printf(binder->arena, "%lld", (long long)value->integer);
    return arena_printf(binder->arena, "%.9g", value->number);
}

static void number_for_tensor(Binder *binder, const ManifestParameter *parameter,
                              const Argument *argument) {
    Diag *diag =
        wrong(binder, P0607, "`%s` is a tensor and cannot be set to a number", parameter->name);
    diag_help(binder->diags, diag,
              "write `%s=FILE.npy` to load data, or `--fill %s=%s` to set every element",
              parameter->name, parameter->name, numeral_text(binder, &argument->value));
}

static void assign_parameter(Binder *binder, size_t index, const Argument *argument) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    const Argument *old = binder->given[index];
    if (!has_precedence(binder, parameter->name, old != NULL, old != NULL && old->from_example,
                        argument))
        return;
    if (parameter->kind == PARAMETER_SCALAR && argument->kind != ARGUMENT_NUMBER) {
        const char *type = element_rows[parameter->type].spelling;
        if (argument->fill.kind == FILL_FILE)
            wrong(binder, P0607, "`%s` is a scalar of type %s, but `%s` is not a number",
                  parameter->name, type, argument->fill.file);
        else
            wrong(binder, P0607, "`%s` is a scalar of type %s, but fills are only for tensors",
                  parameter->name, type);
        return;
    }
    if (parameter->kind == PARAMETER_TENSOR && argument->kind == ARGUMENT_NUMBER) {
        number_for_tensor(binder, parameter, argument);
        return;
    }
    if (parameter->kind == PARAMETER_TENSOR && parameter->mode == MODE_OUT) {
        Diag *diag =
            wrong(binder, P0607, "`%s` is an `out` tensor and takes no data", parameter->name);
        diag_help(binder->diags, diag, "write `--save %s=FILE.npy` to save its result",
                  parameter->name);
        return;
    }
    binder->given[index] = argument;
}

static void assign_extent(Binder *binder, size_t index, const Argument *argument) {
    const char *name = binder->manifest->symbols.items[index].name;
    Known *known = &binder->known[index];
    if (!has_precedence(binder, name, known->known, known->from_example, argument)) return;
    if (argument->kind != ARGUMENT_NUMBER)
        wrong(binder, P0607, "`%s` is an extent, but `%s` is not a number", name,
              argument->fill.kind == FILL_FILE ? argument->fill.file : "a fill");
    else if (!argument->value.is_integer || !extent_fits(argument->value.integer))
        wrong(binder, P0605, "extent `%s` cannot be %s: extents are integers from 0 to 2146435072",
              name, numeral_text(binder, &argument->value));
    else
        *known = (Known){
            true, argument->from_example, argument->value.integer,
            arena_printf(binder->arena, "`%s=%lld`", name, (long long)argument->value.integer)};
}

static void assign(Binder *binder, const Argument *argument) {
    const Manifest *manifest = binder->manifest;
    for (size_t i = 0; i < manifest->parameters.count; i++)
        if (strcmp(manifest->parameters.items[i].name, argument->name) == 0) {
            assign_parameter(binder, i, argument);
            return;
        }
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].is_extent &&
            strcmp(manifest->symbols.items[i].name, argument->name) == 0) {
            assign_extent(binder, i, argument);
            return;
        }
    unknown_name(binder, argument);
}

/* ---- values ---------------------------------------------------------------------------------- */

static bool value_fits(Binder *binder, const char *name, Element type, const Numeral *value) {
    const char *spelling = element_rows[type].spelling, *text = numeral_text(binder, value);
    double number = value->number;
    if (is_float(type)) {
        bool finite = isfinite(number), has_infinity = type != E_E4M3;
        if (isnan(number) || (!finite && has_infinity) ||
            (finite && fabs(number) <= float_largest(type)))
            return true;
        wrong(binder, P0606, "%s does not fit `%s`: the largest %s is %.9g", text, name, spelling,
              float_largest(type));
        return false;
    }
    int64_t least, most;
    integer_range(type, &least, &most);
    if (value->is_above && type == E_U64) return true;
    if (value->is_integer && value->integer >= least && value->integer <= most) return true;
    if (number != floor(number))
        wrong(binder, P0606, "%s does not fit `%s`: %s holds integers", text, name, spelling);
    else
        wrong(binder, P0606, "%s does not fit `%s`: %s is %lld to %llu", text, name, spelling,
              (long long)least, type == E_U64 ? ~0ull : (unsigned long long)most);
    return false;
}

/* False, with a diagnostic, if a value other than 0 would be rounded to 0. */
static bool stays_above_zero(Binder *binder, const char *name, Element type, const Numeral *value) {
    double number = value->number;
    unsigned char stored[8];
    if (!is_float(type) || number == 0) return true;
    element_store(type, stored, number);
    if (element_load(type, stored) != 0) return true;
    wrong(binder, P0606, "%s does not fit `%s`: it rounds to 0 in %s", numeral_text(binder, value),
          name, element_rows[type].spelling);
    return false;
}

/* The scalar as its type stores it: the reference must use the value that the kernel gets. */
static Scalar scalar_of(Element type, const Argument *argument) {
    if (!is_float(type)) return (Scalar){argument->value.number, argument->value.integer};
    unsigned char stored[8];
    element_store(type, stored, argument->value.number);
    return (Scalar){element_load(type, stored), 0};
}

static void bind_scalar(Binder *binder, size_t index) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    const Argument *argument = binder->given[index];
    if (argument == NULL ||
        !value_fits(binder, parameter->name, parameter->type, &argument->value) ||
        !stays_above_zero(binder, parameter->name, parameter->type, &argument->value))
        return;
    binder->scalars[index] = scalar_of(parameter->type, argument);
    if (parameter->symbol >= 0)
        binder->known[parameter->symbol] = (Known){
            true, argument->from_example, scalar_symbol(parameter->type, &binder->scalars[index]),
            arena_printf(binder->arena, "`%s`", parameter->name)};
}

/* ---- shapes ---------------------------------------------------------------------------------- */

static void bind_axis(Binder *binder, size_t index, int axis) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    const Formula *formula = &parameter->extents[axis];
    int64_t extent = binder->files[index].shape[axis];
    bool alone = formula->count == 1 && formula->steps[0].op == F_SYMBOL;
    int64_t symbol = alone ? formula->steps[0].value : solved_symbol(binder->manifest, index, axis);
    if (symbol < 0) return; /* compared when all symbols are known */
    Known *known = &binder->known[symbol];
    const char *where = arena_printf(binder->arena, "axis %d of `%s` in `%s`", axis,
                                     parameter->name, binder->files[index].name);
    if (!alone && !solve_extent(&binder->manifest->symbols.items[symbol], extent, &extent)) {
        report_unsolved(binder->manifest, index, axis, binder->files[index].shape[axis],
                        arena_printf(binder->arena, " in `%s`", binder->files[index].name),
                        binder->diags);
        binder->fine = false;
        return;
    }
    if (!known->known || known->from_example)
        *known = (Known){true, false, extent, where};
    else if (known->value != extent)
        wrong(binder, P0604, "extents `%s` disagree: %lld by %s, %lld by %s",
              binder->manifest->symbols.items[symbol].name, (long long)known->value, known->where,
              (long long)extent, where);
}

static void bind_file(Binder *binder, size_t index) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    NpyFile *file = &binder->files[index];
    if (!npy_open(binder->arena, binder->given[index]->fill.file, file, binder->diags) ||
        !npy_fits(file, parameter->type, parameter->name, binder->diags)) {
        binder->fine = false;
        return;
    }
    if (file->rank != parameter->rank) {
        wrong(binder, P0617, "`%s` has %d %s, but `%s` has %d", file->name, file->rank,
              file->rank == 1 ? "axis" : "axes", parameter->name, parameter->rank);
        return;
    }
    for (int axis = 0; axis < parameter->rank; axis++) bind_axis(binder, index, axis);
}

/* An extent that no file has alone, by the formula of one that a file has: N of `X: f32[2*N]`,
 * although it is an extent of the output. True: another one is known. */
static bool solve_axis(Binder *binder, size_t index, int axis, bool *given, int64_t *values) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    const NpyFile *file = &binder->files[index];
    int64_t symbol = formula_solve(&parameter->extents[axis], file->shape[axis], given, values);
    if (symbol < 0 || !binder->manifest->symbols.items[symbol].is_extent ||
        !extent_fits(values[symbol]))
        return false;
    given[symbol] = true;
    binder->known[symbol] = (Known){
        true, false, values[symbol],
        arena_printf(binder->arena, "axis %d of `%s` in `%s`", axis, parameter->name, file->name)};
    return true;
}

/* After the extents that stand alone; extents of the example do not count, its scalars do. What has
 * no solution is compared with the extents of the arrays. */
static void solve_files(Binder *binder) {
    const Manifest *manifest = binder->manifest;
    bool *given = NEW_ARRAY(binder->arena, bool, manifest->symbols.count + 1), more = true;
    int64_t *values = NEW_ARRAY(binder->arena, int64_t, manifest->symbols.count + 1);
    for (size_t s = 0; s < manifest->symbols.count; s++) {
        const Known *known = &binder->known[s];
        given[s] = known->known && !(known->from_example && manifest->symbols.items[s].is_extent);
        values[s] = known->value;
    }
    while (more) {
        more = false;
        for (size_t i = 0; i < manifest->parameters.count; i++)
            for (int axis = 0; binder->files[i].stream != NULL && axis < binder->files[i].rank;
                 axis++)
                more = solve_axis(binder, i, axis, given, values) || more;
    }
}

/* Reports all symbols without a value in one message, with a command that sets them */
static void report_missing(Binder *binder) {
    const Manifest *manifest = binder->manifest;
    Str names = str_new(binder->arena), command = str_new(binder->arena);
    int count = 0;
    for (size_t i = 0; i < manifest->symbols.count + manifest->parameters.count; i++) {
        bool symbol = i < manifest->symbols.count;
        size_t index = symbol ? i : i - manifest->symbols.count;
        const ManifestParameter *parameter = symbol ? NULL : &manifest->parameters.items[index];
        if (symbol ? !manifest->symbols.items[i].is_extent || binder->known[i].known
                   : parameter->kind != PARAMETER_SCALAR || binder->given[index] != NULL)
            continue;
        const char *name = symbol ? manifest->symbols.items[i].name : parameter->name;
        str_printf(&names, "%s%s `%s`", count++ > 0 ? ", " : "", symbol ? "extent" : "scalar",
                   name);
        str_printf(&command, " %s=%s", name, symbol ? "1024" : "1");
    }
    if (count == 0) return;
    Diag *diag = wrong(binder, P0603, "no value for %s of `%s`", names.text, manifest->kernel);
    diag_help(binder->diags, diag, "for example `pipec run %s %s%s`",
              manifest->source != NULL ? manifest->source->name : "FILE", manifest->kernel,
              command.text);
    diag_note(binder->diags, diag,
              "shapes of .npy files and `example` in the kernel also set extents");
}

static int64_t *symbol_values(Binder *binder) {
    int64_t *values = NEW_ARRAY(binder->arena, int64_t, binder->manifest->symbols.count + 1);
    for (size_t i = 0; i < binder->manifest->symbols.count; i++) values[i] = binder->known[i].value;
    return values;
}

/* Arguments to symbols and scalars. Files stay open for their data: close_files. */
static void bind(Binder *binder, const Argument *arguments, size_t count) {
    const Manifest *manifest = binder->manifest;
    size_t parameters = manifest->parameters.count;
    binder->fine = true;
    binder->given = NEW_ARRAY(binder->arena, const Argument *, parameters + 1);
    binder->files = NEW_ARRAY(binder->arena, NpyFile, parameters + 1);
    binder->known = NEW_ARRAY(binder->arena, Known, manifest->symbols.count + 1);
    binder->scalars = NEW_ARRAY(binder->arena, Scalar, parameters + 1);
    for (size_t i = 0; i < count; i++) assign(binder, &arguments[i]);
    for (size_t i = 0; i < parameters; i++) {
        if (manifest->parameters.items[i].kind == PARAMETER_SCALAR)
            bind_scalar(binder, i);
        else if (binder->given[i] != NULL && binder->given[i]->fill.kind == FILL_FILE)
            bind_file(binder, i);
    }
    if (binder->fine) solve_files(binder);
    /* After another error, a value may be missing because of it */
    if (binder->fine) report_missing(binder);
}

static void close_files(Binder *binder) {
    for (size_t i = 0; i < binder->manifest->parameters.count; i++) npy_close(&binder->files[i]);
}

bool launch_symbols(Arena *arena, const Manifest *manifest, const Argument *arguments, size_t count,
                    int64_t *symbols, Diags *diags) {
    Binder binder = {.arena = arena, .manifest = manifest, .diags = diags};
    bind(&binder, arguments, count);
    close_files(&binder);
    for (size_t i = 0; binder.fine && i < manifest->symbols.count; i++)
        symbols[i] = binder.known[i].value;
    return binder.fine;
}

/* ---- arrays ---------------------------------------------------------------------------------- */

/* The extents of a tensor as numbers; a file must have the same. */
static bool tensor_extents(Binder *binder, size_t index, const int64_t *symbols, int64_t *extents) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    const NpyFile *file = &binder->files[index];
    for (int axis = 0; axis < parameter->rank; axis++) {
        FormulaFault fault = formula_eval(&parameter->extents[axis], symbols, &extents[axis]);
        Str text = str_new(binder->arena);
        formula_print(&parameter->extents[axis], binder->manifest, &text);
        if (fault != FORMULA_FINE || !extent_fits(extents[axis])) {
            wrong(binder, P0605, "axis %d of `%s`, `%s`, is not between 0 and 2146435072", axis,
                  parameter->name, text.text);
            return false;
        }
        if (file->stream != NULL && file->shape[axis] != extents[axis]) {
            wrong(binder, P0604, "extents disagree: axis %d of `%s` is `%s`, but %lld in `%s`",
                  axis, parameter->name, text.text, (long long)file->shape[axis], file->name);
            return false;
        }
    }
    return true;
}

/* Compares the memory of all arrays with the available memory */
static bool memory_suffices(Binder *binder, const int64_t *symbols, const LaunchOptions *options) {
    const Manifest *manifest = binder->manifest;
    uint64_t total = 0;
    Str list = str_new(binder->arena);
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        int64_t extents[MAX_RANK], count;
        size_t bytes;
        if (parameter->kind != PARAMETER_TENSOR) continue;
        if (!tensor_extents(binder, i, symbols, extents)) return false;
        if (!array_size(parameter->type, parameter->rank, extents, &count, &bytes) ||
            __builtin_add_overflow(total, bytes + 2 * (uint64_t)GUARD_BYTES, &total)) {
            wrong(binder, P0609, "the size of `%s` does not fit 64 bits", parameter->name);
            return false;
        }
        str_printf(&list, "%s`%s` %s", list.length > 0 ? ", " : "", parameter->name,
                   bytes_text(binder->arena, bytes));
    }
    uint64_t limit = options->memory_limit != 0 ? options->memory_limit : memory_available();
    if (total <= limit) return true;
    Diag *diag = wrong(binder, P0610, "the tensors take %s of host memory, but %s %s",
                       bytes_text(binder->arena, total), bytes_text(binder->arena, limit),
                       options->memory_limit != 0 ? "are allowed" : "are free");
    diag_note(binder->diags, diag, "%s", list.text);
    return false;
}

/* Element i of a formula's values */
static Numeral fill_value(const Fill *fill, int64_t i) {
    double number = fill->values[i];
    bool is_above = fill->integers != NULL && fill->integers[i] < 0 && number > 0,
         whole = fill->integers != NULL || (number == floor(number) && fabs(number) < 0x1p63);
    return (Numeral){.number = number,
                     .integer = fill->integers != NULL ? fill->integers[i]
                                : whole                ? (int64_t)number
                                                       : 0,
                     .is_integer = whole && !is_above,
                     .is_above = is_above};
}

static bool fill_fits(Binder *binder, const ManifestParameter *parameter, const Fill *fill,
                      int64_t count) {
    if (fill->kind == FILL_VALUE)
        return value_fits(binder, parameter->name, parameter->type, &fill->value) &&
               stays_above_zero(binder, parameter->name, parameter->type, &fill->value);
    if (fill->kind != FILL_ARRAY) return true;
    if (fill->count != count) {
        wrong(binder, P0604, "%lld values are given for the %lld elements of `%s`",
              (long long)fill->count, (long long)count, parameter->name);
        return false;
    }
    for (int64_t i = 0; i < count; i++) {
        Numeral value = fill_value(fill, i);
        if (!value_fits(binder, parameter->name, parameter->type, &value)) return false;
    }
    return true;
}

static bool make_array(Binder *binder, size_t index, const int64_t *symbols,
                       const LaunchOptions *options, Array *array) {
    const ManifestParameter *parameter = &binder->manifest->parameters.items[index];
    const Argument *given = binder->given[index];
    int64_t extents[MAX_RANK];
    if (!tensor_extents(binder, index, symbols, extents)) return false;
    if (!array_new(array, parameter->type, parameter->rank, extents)) {
        wrong(binder, P0610, "not enough host memory for `%s`", parameter->name);
        return false;
    }
    if (options->least_aligned) array_shift(array, parameter->alignment);
    Fill fill = given != NULL ? given->fill : (Fill){.kind = FILL_NORMAL};
    if (parameter->mode == MODE_OUT) {
        fill_poison(array);
        return true;
    }
    if (fill.kind == FILL_FILE) return npy_data(&binder->files[index], array, binder->diags);
    if (!fill_fits(binder, parameter, &fill, array->count)) return false;
    fill_array(array, &fill, options->seed, index);
    return true;
}

/* The strides of the tensors, given or with gaps as the options say. One whose extents have no
 * value has none: it is refused later. */
static DeviceArgument *place_tensors(Binder *binder, const int64_t *symbols,
                                     const LaunchOptions *options) {
    const Manifest *manifest = binder->manifest;
    DeviceArgument *arguments =
        NEW_ARRAY(binder->arena, DeviceArgument, manifest->parameters.count + 1);
    for (size_t i = 0; i < manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &manifest->parameters.items[i];
        const DeviceArgument *given = options->given != NULL ? &options->given[i] : NULL;
        DeviceArgument *to = &arguments[i];
        bool empty = false, known = true;
        for (int axis = 0; known && axis < parameter->rank; axis++) {
            known = formula_eval(&parameter->extents[axis], symbols, &to->extents[axis]) ==
                        FORMULA_FINE &&
                    extent_fits(to->extents[axis]);
            empty |= to->extents[axis] == 0;
        }
        if (!known || empty || parameter->kind != PARAMETER_TENSOR) continue;
        to->strided = given != NULL && given->strided;
        if (to->strided) memcpy(to->strides, given->strides, sizeof given->strides);
        if (to->strided || !options->strided || parameter->rank < 2) continue;
        strides_with_gaps(parameter, to->extents, options->seed, to->strides);
        to->strided = true;
    }
    return arguments;
}

/* Without gaps the data itself is what the kernel gets. */
static bool is_dense(const Array *array, const int64_t *strides) {
    int64_t dense = 1;
    for (int axis = array->rank - 1; axis >= 0; axis--) {
        if (array->extents[axis] > 1 && strides[axis] != dense) return false;
        dense *= array->extents[axis];
    }
    return true;
}

static bool add_gaps(Binder *binder, size_t index, const DeviceArgument *placed, Array *array) {
    if (!placed->strided || is_dense(array, placed->strides)) return true;
    if (array_stride(array, placed->strides)) return true;
    wrong(binder, P0610, "not enough host memory for `%s` with gaps",
          binder->manifest->parameters.items[index].name);
    return false;
}

static bool make_arrays(Binder *binder, Launch *launch, const LaunchOptions *options,
                        const DeviceArgument *placed) {
    bool fine = true;
    for (size_t i = 0; fine && i < binder->manifest->parameters.count; i++)
        if (binder->manifest->parameters.items[i].kind == PARAMETER_TENSOR)
            fine = make_array(binder, i, launch->symbols, options, &launch->arrays[i]) &&
                   add_gaps(binder, i, &placed[i], &launch->arrays[i]);
    if (!fine) launch_free(launch);
    return fine;
}

Launch *launch_prepare(Arena *arena, const Manifest *manifest, const char *ptx, size_t ptx_length,
                       const Argument *arguments, size_t count, const LaunchOptions *options,
                       Diags *diags) {
    Binder binder = {.arena = arena, .manifest = manifest, .diags = diags};
    bind(&binder, arguments, count);
    int64_t *symbols = symbol_values(&binder);
    Launch *launch = NEW(arena, Launch);
    *launch = (Launch){.manifest = manifest,
                       .ptx = ptx,
                       .ptx_length = ptx_length,
                       .symbols = symbols,
                       .arrays = NEW_ARRAY(arena, Array, manifest->parameters.count + 1),
                       .scalars = binder.scalars,
                       .watchdog_ns = options->watchdog_ns};
    DeviceArgument *placed = place_tensors(&binder, symbols, options);
    strides_set(manifest, placed, symbols);
    bool fine = binder.fine && launch_check(manifest, symbols, &launch->tiles, diags) &&
                memory_suffices(&binder, symbols, options) &&
                launch_strides(manifest, placed, symbols, diags) &&
                make_arrays(&binder, launch, options, placed);
    close_files(&binder);
    return fine ? launch : NULL;
}
