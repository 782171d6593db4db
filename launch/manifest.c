/* launch: the manifest as JSON, for launchers in other languages. A Manifest goes in, text comes
 * out; docs/manifest.md describes every field. The order of fields is fixed and nothing depends
 * on the machine, so that the text is a test surface. */
#include "launch/private.h"

#include <inttypes.h>

typedef struct Writer {
    const Manifest *manifest;
    Str *out;
    int depth;
    bool first;  /* the open bracket is empty */
    bool floats; /* format 2: symbols of floating-point parameters */
} Writer;

/* ---- brackets, commas, lines ----------------------------------------------------------------- */

static void line(Writer *writer) {
    str_char(writer->out, '\n');
    for (int i = 0; i < writer->depth; i++) str_add(writer->out, "  ");
}

/* Prints the separator before a list's item or an object's field. Fields of a `flat` object stay
 * on one line. */
static void next(Writer *writer, bool flat) {
    if (!writer->first) str_add(writer->out, flat ? ", " : ",");
    writer->first = false;
    if (!flat) line(writer);
}

static void key(Writer *writer, const char *name) {
    next(writer, true);
    str_printf(writer->out, "\"%s\": ", name);
}

static void open_row(Writer *writer) {
    next(writer, false);
    str_char(writer->out, '{');
    writer->first = true;
}

static void close_row(Writer *writer) {
    str_char(writer->out, '}');
    writer->first = false;
}

static void open_list(Writer *writer, const char *name) {
    next(writer, false);
    str_printf(writer->out, "\"%s\": [", name);
    writer->first = true;
    writer->depth++;
}

static void close_list(Writer *writer) {
    bool empty = writer->first;
    writer->depth--;
    if (!empty) line(writer);
    str_char(writer->out, ']');
    writer->first = false;
}

/* ---- fields ---------------------------------------------------------------------------------- */

static void text(Writer *writer, const char *name, const char *value) {
    key(writer, name);
    str_json(writer->out, value);
}

static void number(Writer *writer, const char *name, int64_t value) {
    key(writer, name);
    str_printf(writer->out, "%lld", (long long)value);
}

static void truth(Writer *writer, const char *name, bool value) {
    key(writer, name);
    str_add(writer->out, value ? "true" : "false");
}

static void add_formula(Writer *writer, const Formula *formula) {
    Str infix = str_new(writer->out->arena);
    formula_print(formula, writer->manifest, &infix);
    str_json(writer->out, infix.text);
}

static void formula_field(Writer *writer, const char *name, const Formula *formula) {
    key(writer, name);
    add_formula(writer, formula);
}

static void formulas(Writer *writer, const char *name, const Formula *list, int count) {
    key(writer, name);
    str_char(writer->out, '[');
    for (int i = 0; i < count; i++) {
        str_add(writer->out, i > 0 ? ", " : "");
        add_formula(writer, &list[i]);
    }
    str_char(writer->out, ']');
}

static void place(Writer *writer, Span span) {
    key(writer, "place");
    const Source *source = writer->manifest->source;
    if (source == NULL || span.hi > source->length || span.lo > span.hi) {
        str_add(writer->out, "null");
        return;
    }
    uint32_t first_line, first_column, end_line, end_column;
    uint32_t file = (uint32_t)(source_file(source, span.lo) - source->files);
    source_place(source, span.lo, &first_line, &first_column);
    source_place(source, span.hi, &end_line, &end_column);
    str_char(writer->out, '{');
    if (file > 0) str_printf(writer->out, "\"file\": %u, ", file);
    str_printf(writer->out, "\"line\": %u, \"column\": %u, \"end_line\": %u, \"end_column\": %u}",
               first_line, first_column, end_line, end_column);
}

/* ---- sections -------------------------------------------------------------------------------- */

const char *const manifest_mode_names[MANIFEST_MODE_COUNT] = {
    [MODE_IN] = "in", [MODE_OUT] = "out", [MODE_INOUT] = "inout"};
const char *const manifest_shared_names[MANIFEST_SHARED_COUNT] = {[SHARED_FULL] = "full",
                                                                  [SHARED_EMPTY] = "empty",
                                                                  [SHARED_FIELD] = "field",
                                                                  [SHARED_TILE] = "tile",
                                                                  [SHARED_SCRATCH] = "scratch"};
const char *const manifest_argument_names[MANIFEST_ARGUMENT_COUNT] = {
    [ARGUMENT_TENSOR_MAP] = "tensor_map", [ARGUMENT_POINTER] = "pointer",
    [ARGUMENT_STRIDE] = "stride",         [ARGUMENT_EXTENT] = "extent",
    [ARGUMENT_SCALAR] = "scalar",         [ARGUMENT_COUNTER] = "counter",
    [ARGUMENT_WATCHDOG] = "watchdog"};

bool stride_is_wide(const Manifest *manifest, const ManifestSymbol *stride) {
    return stride->axis + 2 < manifest->parameters.items[stride->parameter].rank;
}

const char *manifest_passed(const Manifest *manifest, const ManifestArgument *argument) {
    switch (argument->kind) {
    case ARGUMENT_TENSOR_MAP: return "b8[128]";
    case ARGUMENT_STRIDE:
        return stride_is_wide(manifest, &manifest->symbols.items[argument->index]) ? "u64" : "u32";
    case ARGUMENT_EXTENT: return "u32";
    case ARGUMENT_SCALAR: return scalar_passed(manifest->parameters.items[argument->index].type);
    case ARGUMENT_POINTER:
    case ARGUMENT_COUNTER:
    case ARGUMENT_WATCHDOG: break;
    }
    return "u64";
}

/* True if a condition compares floating-point parameters */
static bool has_float_conditions(const Manifest *manifest) {
    for (size_t i = 0; i < manifest->preconditions.count; i++)
        if (formula_has_floats(&manifest->preconditions.items[i].condition, manifest)) return true;
    return false;
}

static bool has_solved(const Manifest *manifest) {
    for (size_t i = 0; i < manifest->symbols.count; i++)
        if (manifest->symbols.items[i].times != 0) return true;
    return false;
}

static void symbols(Writer *writer) {
    open_list(writer, "symbols");
    for (size_t i = 0; i < writer->manifest->symbols.count; i++) {
        const ManifestSymbol *symbol = &writer->manifest->symbols.items[i];
        if (symbol->is_float && !writer->floats) continue;
        open_row(writer);
        text(writer, "name", symbol->name);
        text(writer, "kind",
             symbol->is_extent   ? "extent"
             : symbol->is_stride ? "stride"
             : symbol->is_float  ? "float"
                                 : "scalar");
        if (symbol->is_stride || symbol->times != 0) {
            text(writer, "parameter", writer->manifest->parameters.items[symbol->parameter].name);
            number(writer, "axis", symbol->axis);
        }
        if (symbol->times != 0) {
            number(writer, "times", symbol->times);
            number(writer, "plus", symbol->plus);
        }
        if (symbol->is_row) truth(writer, "row", true);
        close_row(writer);
    }
    close_list(writer);
}

static void joined_axes(Writer *writer, const ManifestParameter *parameter) {
    bool first = true;
    key(writer, "joined");
    str_char(writer->out, '[');
    for (int axis = 0; axis + 1 < parameter->rank; axis++) {
        if (!(parameter->joined >> axis & 1)) continue;
        str_printf(writer->out, "%s%d", first ? "" : ", ", axis);
        first = false;
    }
    str_char(writer->out, ']');
}

/* NULL: it has none in this format */
static const char *symbol_name(const Writer *writer, int symbol) {
    const ManifestSymbol *row = symbol < 0 ? NULL : &writer->manifest->symbols.items[symbol];
    return row == NULL || (row->is_float && !writer->floats) ? NULL : row->name;
}

static void parameters(Writer *writer) {
    open_list(writer, "parameters");
    for (size_t i = 0; i < writer->manifest->parameters.count; i++) {
        const ManifestParameter *parameter = &writer->manifest->parameters.items[i];
        open_row(writer);
        text(writer, "name", parameter->name);
        text(writer, "type", element_rows[parameter->type].spelling);
        if (parameter->kind == PARAMETER_TENSOR) {
            text(writer, "kind", "tensor");
            text(writer, "mode", manifest_mode_names[parameter->mode]);
            number(writer, "element_bytes", element_rows[parameter->type].bytes);
            formulas(writer, "extents", parameter->extents, parameter->rank);
            number(writer, "alignment", parameter->alignment);
            number(writer, "stride_alignment",
                   parameter->stride_alignment > 0 ? parameter->stride_alignment : 1);
            joined_axes(writer, parameter);
        } else {
            text(writer, "kind", "scalar");
            text(writer, "symbol", symbol_name(writer, parameter->symbol));
        }
        place(writer, parameter->span);
        close_row(writer);
    }
    close_list(writer);
}

static void argument(Writer *writer, const ManifestArgument *given) {
    const Manifest *manifest = writer->manifest;
    open_row(writer);
    text(writer, "kind", manifest_argument_names[given->kind]);
    switch (given->kind) {
    case ARGUMENT_TENSOR_MAP: number(writer, "map", given->index); break;
    case ARGUMENT_POINTER:
    case ARGUMENT_SCALAR:
        text(writer, "parameter", manifest->parameters.items[given->index].name);
        break;
    case ARGUMENT_STRIDE:
    case ARGUMENT_EXTENT: text(writer, "symbol", manifest->symbols.items[given->index].name); break;
    case ARGUMENT_COUNTER:
    case ARGUMENT_WATCHDOG: break;
    }
    text(writer, "passed", manifest_passed(manifest, given));
    if (given->kind == ARGUMENT_COUNTER) {
        number(writer, "bytes", COUNTER_BYTES);
        number(writer, "alignment", COUNTER_BYTES);
        number(writer, "initially", 0);
        text(writer, "shared_by", "launches that are in stream order");
    }
    close_row(writer);
}

static void arguments(Writer *writer) {
    open_list(writer, "arguments");
    for (size_t i = 0; i < writer->manifest->arguments.count; i++)
        argument(writer, &writer->manifest->arguments.items[i]);
    close_list(writer);
}

static void maps(Writer *writer) {
    open_list(writer, "maps");
    for (size_t i = 0; i < writer->manifest->maps.count; i++) {
        const ManifestMap *map = &writer->manifest->maps.items[i];
        open_row(writer);
        text(writer, "parameter", writer->manifest->parameters.items[map->parameter].name);
        text(writer, "type", element_rows[map->type].spelling);
        number(writer, "data_type", element_rows[map->type].map);
        number(writer, "rank", map->rank);
        formulas(writer, "extents", map->extents, map->rank);
        formulas(writer, "strides", map->strides + 1, map->rank - 1);
        key(writer, "box");
        for (int axis = 0; axis < map->rank; axis++)
            str_printf(writer->out, "%s%u", axis > 0 ? ", " : "[", map->box[axis]);
        str_char(writer->out, ']');
        number(writer, "swizzle", (int)map->swizzle);
        number(writer, "promotion", (int)map->promotion);
        truth(writer, "stored", map->stored);
        close_row(writer);
    }
    close_list(writer);
}

static void preconditions(Writer *writer) {
    open_list(writer, "preconditions");
    for (size_t i = 0; i < writer->manifest->preconditions.count; i++) {
        const ManifestPrecondition *precondition = &writer->manifest->preconditions.items[i];
        open_row(writer);
        formula_field(writer, "condition", &precondition->condition);
        text(writer, "text", precondition->text);
        text(writer, "reason", precondition->reason);
        text(writer, "help", precondition->help);
        place(writer, precondition->span);
        close_row(writer);
    }
    close_list(writer);
}

static void constants(Writer *writer) {
    open_list(writer, "constants");
    for (size_t i = 0; i < writer->manifest->constants.count; i++) {
        const ManifestConstant *constant = &writer->manifest->constants.items[i];
        open_row(writer);
        text(writer, "name", constant->name);
        text(writer, "value", constant->value);
        truth(writer, "static", constant->is_static);
        close_row(writer);
    }
    close_list(writer);
}

static void launch(Writer *writer) {
    const Manifest *manifest = writer->manifest;
    next(writer, false);
    str_add(writer->out, "\"launch\": {");
    writer->first = true;
    formula_field(writer, "tiles", &manifest->tiles);
    truth(writer, "persistent", manifest->persistent);
    truth(writer, "dynamic", manifest->dynamic);
    if (manifest->ordered) truth(writer, "ordered", true);
    number(writer, "threads", manifest->threads);
    number(writer, "shared_bytes", manifest->shared_bytes);
    key(writer, "cluster");
    str_printf(writer->out, "[%d, %d, %d]", manifest->cluster[0], manifest->cluster[1],
               manifest->cluster[2]);
    number(writer, "registers", manifest->registers);
    truth(writer, "watchdog", manifest->watchdog);
    close_row(writer);
}

static void shared(Writer *writer) {
    open_list(writer, "shared");
    for (size_t i = 0; i < writer->manifest->shared.count; i++) {
        const ManifestShared *range = &writer->manifest->shared.items[i];
        open_row(writer);
        text(writer, "kind", manifest_shared_names[range->kind]);
        text(writer, "pipe", range->pipe);
        text(writer, "field", range->field);
        number(writer, "offset", range->offset);
        number(writer, "bytes", range->bytes);
        number(writer, "stages", range->stages);
        number(writer, "stride", range->stride);
        number(writer, "count", range->count);
        text(writer, "reason", range->reason);
        close_row(writer);
    }
    close_list(writer);
}

static void roles(Writer *writer) {
    open_list(writer, "roles");
    for (size_t i = 0; i < writer->manifest->roles.count; i++) {
        const ManifestRole *role = &writer->manifest->roles.items[i];
        open_row(writer);
        text(writer, "name", role->name);
        number(writer, "first_warp", role->first_warp);
        number(writer, "warps", role->warps);
        number(writer, "instances", role->instances);
        number(writer, "registers", role->registers);
        number(writer, "tile_registers", role->held);
        place(writer, role->span);
        close_row(writer);
    }
    close_list(writer);
}

static void role_of(Writer *writer, int role) {
    text(writer, "role", role < 0 ? NULL : writer->manifest->roles.items[role].name);
}

static void marks(Writer *writer) {
    open_list(writer, "marks");
    for (size_t i = 0; i < writer->manifest->marks.count; i++) {
        const ManifestMark *mark = &writer->manifest->marks.items[i];
        open_row(writer);
        number(writer, "line", mark->line);
        role_of(writer, mark->role);
        text(writer, "pipe", mark->pipe);
        text(writer, "what", mark->what);
        place(writer, mark->span);
        close_row(writer);
    }
    close_list(writer);
}

static void inline_ptx(Writer *writer) {
    open_list(writer, "inline");
    for (size_t i = 0; i < writer->manifest->inline_ptx.count; i++) {
        const ManifestInline *lines = &writer->manifest->inline_ptx.items[i];
        open_row(writer);
        number(writer, "first", lines->first);
        number(writer, "last", lines->last);
        place(writer, lines->span);
        close_row(writer);
    }
    close_list(writer);
}

static void waits(Writer *writer) {
    open_list(writer, "waits");
    for (size_t i = 0; i < writer->manifest->waits.count; i++) {
        const ManifestWait *wait = &writer->manifest->waits.items[i];
        open_row(writer);
        number(writer, "site", (int64_t)i + 1);
        role_of(writer, wait->role);
        text(writer, "pipe", wait->pipe);
        text(writer, "for", wait->full ? "full" : "empty");
        place(writer, wait->span);
        close_row(writer);
    }
    close_list(writer);
}

Manifest manifest_of_work(Arena *arena, const Manifest *manifest) {
    Manifest all = {0};
    for (size_t i = 0; i < manifest->symbols.count; i++)
        vec_push(arena, &all.symbols, manifest->symbols.items[i]);
    for (size_t i = 0; i < manifest->axes.count; i++)
        vec_push(arena, &all.symbols, (ManifestSymbol){.name = manifest->axes.items[i].name});
    for (size_t i = 0; i < manifest->variables.count; i++)
        vec_push(arena, &all.symbols, (ManifestSymbol){.name = manifest->variables.items[i]});
    return all;
}

static void formula_or_null(Writer *writer, const char *name, const Formula *formula) {
    if (formula->count > 0)
        formula_field(writer, name, formula);
    else
        text(writer, name, NULL);
}

static void work_row(Writer *writer, const ManifestWork *work) {
    const Manifest *manifest = writer->manifest;
    open_row(writer);
    text(writer, "kind", work_names[work->kind]);
    role_of(writer, work->role);
    number(writer, "parent", work->parent);
    number(writer, "of", work->of);
    text(writer, "variable",
         work->variable < 0 ? NULL : manifest->symbols.items[work->variable].name);
    formula_or_null(writer, "lo", &work->lo);
    formula_or_null(writer, "hi", &work->hi);
    formula_or_null(writer, "times", &work->times);
    text(writer, "parameter",
         work->parameter < 0 ? NULL : manifest->parameters.items[work->parameter].name);
    text(writer, "pipe", work->pipe);
    number(writer, "amount", work->amount);
    number(writer, "own", work->own);
    number(writer, "pieces", work->pieces);
    truth(writer, "bound", work->bound);
    place(writer, work->span);
    close_row(writer);
}

/* Nothing for a kernel without work: earlier versions wrote none. */
static void work(Writer *writer) {
    const Manifest *manifest = writer->manifest;
    if (manifest->work.count == 0) return;
    open_list(writer, "axes");
    for (size_t i = 0; i < manifest->axes.count; i++) {
        open_row(writer);
        text(writer, "name", manifest->axes.items[i].name);
        formula_field(writer, "extent", &manifest->axes.items[i].extent);
        close_row(writer);
    }
    close_list(writer);
    Manifest named = *manifest;
    named.symbols = manifest_of_work(writer->out->arena, manifest).symbols;
    writer->manifest = &named;
    open_list(writer, "work");
    for (size_t i = 0; i < manifest->work.count; i++) work_row(writer, &manifest->work.items[i]);
    close_list(writer);
    writer->manifest = manifest;
}

static void sums(Writer *writer) {
    if (writer->manifest->sums.count == 0) return;
    open_list(writer, "sums");
    for (size_t i = 0; i < writer->manifest->sums.count; i++) {
        const ManifestSum *sum = &writer->manifest->sums.items[i];
        open_row(writer);
        text(writer, "text", sum->text);
        text(writer, "why", sum->why);
        truth(writer, "threads", sum->threads);
        place(writer, sum->span);
        close_row(writer);
    }
    close_list(writer);
}

/* Only if there are any, so that other manifests have no list of them */
static void included(Writer *writer) {
    const Source *source = writer->manifest->source;
    next(writer, false);
    str_add(writer->out, "\"included\": [");
    for (uint32_t i = 1; i < source->file_count; i++) {
        str_add(writer->out, i > 1 ? ", " : "");
        str_json(writer->out, source->files[i].name);
    }
    str_char(writer->out, ']');
}

void manifest_json(const Manifest *manifest, Str *out) {
    Writer writer = {manifest, out, 1, true, has_float_conditions(manifest)};
    str_char(out, '{');
    next(&writer, false);
    str_printf(out, "\"format\": %d",
               manifest->ordered      ? MANIFEST_FORMAT_ORDERED
               : has_solved(manifest) ? MANIFEST_FORMAT_SOLVED
               : writer.floats        ? MANIFEST_FORMAT_FLOAT
                                      : MANIFEST_FORMAT);
    next(&writer, false);
    str_add(out, "\"kernel\": ");
    str_json(out, manifest->kernel);
    next(&writer, false);
    str_add(out, "\"target\": ");
    str_json(out, manifest->target);
    next(&writer, false);
    str_printf(out, "\"ptx\": \"%d.%d\"", manifest->ptx_major, manifest->ptx_minor);
    next(&writer, false);
    str_printf(out, "\"ptx_hash\": \"%016" PRIx64 "\"", manifest->ptx_hash);
    next(&writer, false);
    str_add(out, "\"source\": ");
    str_json(out, manifest->source != NULL ? manifest->source->name : NULL);
    if (manifest->source != NULL && manifest->source->file_count > 1) included(&writer);
    place(&writer, manifest->head);
    symbols(&writer);
    parameters(&writer);
    arguments(&writer);
    maps(&writer);
    preconditions(&writer);
    constants(&writer);
    launch(&writer);
    shared(&writer);
    roles(&writer);
    marks(&writer);
    inline_ptx(&writer);
    waits(&writer);
    work(&writer);
    sums(&writer);
    str_add(out, "\n}\n");
}
