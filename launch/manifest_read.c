/* launch: reads a manifest that manifest_json wrote: text -> Manifest, or one error that names the
 * field. Every index, number and name that a launcher relies on is checked; unknown fields are
 * ignored. The places refer to a source text of blanks that has their lines and columns, since the
 * text itself is not in the manifest. */
#include "launch/private.h"

#include "util/json.h"

#include <stdlib.h>
#include <string.h>

typedef struct Reader {
    Arena *arena;
    Manifest *manifest;
    /* the list that is being read, and the index in it; NULL: fields of the top or of `launch` */
    const char *list;
    size_t index;
    const char *why; /* the first fault; NULL: none */
    int64_t format;
    bool in_condition; /* of format 2: the formula may compare floats */
    Manifest named;    /* its symbols: all that formulas of the work may name so far */
} Reader;

/* ---- fields ---------------------------------------------------------------------------------- */

static void fault(Reader *reader, const char *name, const char *format, ...) PRINTF_LIKE(3, 4);
static void fault(Reader *reader, const char *name, const char *format, ...) {
    va_list args;
    if (reader->why != NULL) return;
    const char *at = reader->list != NULL
                         ? arena_printf(reader->arena, "%s[%zu].", reader->list, reader->index)
                         : "";
    va_start(args, format);
    reader->why = arena_printf(reader->arena, "`%s%s` %s", at, name,
                               arena_vprintf(reader->arena, format, args));
    va_end(args);
}

/* NULL after a fault: the field is missing */
static const JsonValue *field(Reader *reader, const JsonValue *row, const char *name) {
    const JsonValue *value = json_field(row, name);
    if (value == NULL) fault(reader, name, "is missing");
    return value;
}

static const JsonValue *list_field(Reader *reader, const JsonValue *row, const char *name) {
    const JsonValue *value = field(reader, row, name);
    if (value != NULL && value->kind != JSON_LIST) fault(reader, name, "is not a list");
    return reader->why == NULL ? value : NULL;
}

static int64_t number_of(Reader *reader, const JsonValue *value, const char *name, int64_t least,
                         int64_t most) {
    if (value != NULL && value->kind == JSON_NUMBER && value->is_integer &&
        value->integer >= least && value->integer <= most)
        return value->integer;
    fault(reader, name, "is not a whole number from %lld to %lld", (long long)least,
          (long long)most);
    return least;
}

static int64_t number(Reader *reader, const JsonValue *row, const char *name, int64_t least,
                      int64_t most) {
    return number_of(reader, field(reader, row, name), name, least, most);
}

static uint32_t whole(Reader *reader, const JsonValue *row, const char *name) {
    return (uint32_t)number(reader, row, name, 0, UINT32_MAX);
}

/* A number that follows from others: it must be that one. */
static void fixed(Reader *reader, const JsonValue *row, const char *name, int64_t value) {
    number(reader, row, name, value, value);
}

static const char *text_or_null(Reader *reader, const JsonValue *row, const char *name) {
    const JsonValue *value = field(reader, row, name);
    if (value != NULL && value->kind != JSON_TEXT && value->kind != JSON_NULL)
        fault(reader, name, "is not a text");
    return value != NULL ? value->text : NULL;
}

/* "" after a fault */
static const char *text(Reader *reader, const JsonValue *row, const char *name) {
    const char *value = text_or_null(reader, row, name);
    if (value == NULL) fault(reader, name, "is not a text");
    return value != NULL ? value : "";
}

static void fixed_text(Reader *reader, const JsonValue *row, const char *name, const char *value) {
    if (strcmp(text(reader, row, name), value) != 0) fault(reader, name, "is not `%s`", value);
}

static bool truth(Reader *reader, const JsonValue *row, const char *name) {
    const JsonValue *value = field(reader, row, name);
    if (value != NULL && value->kind != JSON_BOOL) fault(reader, name, "is not true or false");
    return value != NULL && value->truth;
}

/* Index of the text in `names`; 0 after a fault */
static int one_of(Reader *reader, const JsonValue *row, const char *name, const char *const *names,
                  size_t count) {
    const char *word = text(reader, row, name);
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], word) == 0) return (int)i;
    fault(reader, name, "cannot be `%s`", word);
    return 0;
}

static Element type(Reader *reader, const JsonValue *row) {
    Element element = E_F32;
    const char *spelling = text(reader, row, "type");
    if (!element_by_name(spelling, &element))
        fault(reader, "type", "is not an element type: `%s`", spelling);
    return element;
}

/* ---- formulas and names ---------------------------------------------------------------------- */

static Formula formula_of(Reader *reader, const JsonValue *value, const char *name) {
    Formula formula = {NULL, 0};
    if (value == NULL || value->kind != JSON_TEXT)
        fault(reader, name, "is not a formula");
    else if (!formula_read(reader->arena, reader->manifest, value->text, &formula))
        fault(reader, name, "is not a formula over the symbols: `%s`", value->text);
    else if (!reader->in_condition && formula_has_floats(&formula, reader->manifest))
        fault(reader, name, "compares floats, which only preconditions of format %d can: `%s`",
              MANIFEST_FORMAT_FLOAT, value->text);
    return reader->why == NULL ? formula : (Formula){NULL, 0};
}

static Formula formula(Reader *reader, const JsonValue *row, const char *name) {
    return formula_of(reader, field(reader, row, name), name);
}

/* Reads `least` to `most` formulas; returns their number. */
static int formulas(Reader *reader, const JsonValue *row, const char *name, Formula *out, int least,
                    int most) {
    const JsonValue *list = list_field(reader, row, name);
    int count = 0;
    for (const JsonValue *at = list != NULL ? list->first : NULL; at != NULL; at = at->next) {
        if (count < most) out[count] = formula_of(reader, at, name);
        if (++count > most) break;
    }
    if (count < least || count > most) fault(reader, name, "has the wrong number of formulas");
    return count < least ? least : count > most ? most : count;
}

/* Index of a parameter of the kind; 0 after a fault */
static int parameter(Reader *reader, const JsonValue *row, ParameterKind kind) {
    const char *name = text(reader, row, "parameter");
    for (size_t i = 0; i < reader->manifest->parameters.count; i++)
        if (reader->manifest->parameters.items[i].kind == kind &&
            strcmp(reader->manifest->parameters.items[i].name, name) == 0)
            return (int)i;
    fault(reader, "parameter", "is no %s: `%s`", kind == PARAMETER_TENSOR ? "tensor" : "scalar",
          name);
    return 0;
}

/* Index of a symbol, which is an extent, a stride or neither; -1 after a fault */
static int symbol(Reader *reader, const char *name, bool is_extent, bool is_stride) {
    int index = manifest_symbol(reader->manifest, name);
    const ManifestSymbol *row = index >= 0 ? &reader->manifest->symbols.items[index] : NULL;
    if (row != NULL && row->is_extent == is_extent && row->is_stride == is_stride) return index;
    fault(reader, "symbol", "is no symbol of this kind: `%s`", name);
    return -1;
}

/* Index of the role, -1: null */
static int role(Reader *reader, const JsonValue *row) {
    const char *name = text_or_null(reader, row, "role");
    if (name == NULL) return -1;
    for (size_t i = 0; i < reader->manifest->roles.count; i++)
        if (strcmp(reader->manifest->roles.items[i].name, name) == 0) return (int)i;
    fault(reader, "role", "is no role: `%s`", name);
    return -1;
}

/* ---- places ---------------------------------------------------------------------------------- */

typedef struct Place {
    uint32_t file, line, column, end_line, end_column;
} Place;

/* False: it is null, or a fault */
static bool place_fields(Reader *reader, const JsonValue *row, Place *out) {
    const JsonValue *place = field(reader, row, "place");
    if (place == NULL || place->kind == JSON_NULL) return false;
    const Source *source = reader->manifest->source;
    if (source == NULL) {
        fault(reader, "place", "is in no source");
        return false;
    }
    out->file = json_field(place, "file") == NULL
                    ? 0
                    : (uint32_t)number(reader, place, "file", 1, (int64_t)source->file_count - 1);
    out->line = (uint32_t)number(reader, place, "line", 1, SOURCE_MAX_BYTES);
    out->column = (uint32_t)number(reader, place, "column", 1, SOURCE_MAX_BYTES);
    out->end_line = (uint32_t)number(reader, place, "end_line", out->line, SOURCE_MAX_BYTES);
    out->end_column = (uint32_t)number(reader, place, "end_column", 1, SOURCE_MAX_BYTES);
    return reader->why == NULL;
}

static uint32_t offset_of(const Source *source, uint32_t file, uint32_t line, uint32_t column) {
    return source->line_starts[source->files[file].rows + line - 1] + column - 1;
}

static Span span(Reader *reader, const JsonValue *row) {
    Place place;
    const Source *source = reader->manifest->source;
    /* a place that is null is outside of the source */
    if (!place_fields(reader, row, &place)) return (Span){1, 0};
    Span span = {offset_of(source, place.file, place.line, place.column),
                 offset_of(source, place.file, place.end_line, place.end_column)};
    if (span.lo > span.hi) fault(reader, "place", "ends before it begins");
    return span;
}

/* Calls use(data, row) for the top and for the rows of all of its lists. */
static void each_row(const JsonValue *root, void (*use)(void *data, const JsonValue *row),
                     void *data) {
    use(data, root);
    for (const JsonValue *list = root->first; list != NULL; list = list->next)
        for (const JsonValue *row = list->first; row != NULL; row = row->next) use(data, row);
}

typedef struct Lines {
    Reader *reader;
    uint32_t file; /* whose lines these are */
    uint32_t count;
    uint32_t *widths; /* NULL: they are being counted */
} Lines;

static void widen(Lines *lines, uint32_t line, uint32_t column) {
    if (line > lines->count) lines->count = line;
    if (lines->widths != NULL && lines->widths[line - 1] < column - 1)
        lines->widths[line - 1] = column - 1;
}

static void measure(void *data, const JsonValue *row) {
    Lines *lines = data;
    Place place;
    if (json_field(row, "place") == NULL || !place_fields(lines->reader, row, &place)) return;
    if (place.file != lines->file) return;
    widen(lines, place.line, place.column);
    widen(lines, place.end_line, place.end_column);
}

/* A text of blanks in which each place of the file exists; NULL: a fault */
static char *blanks_of(Reader *reader, const JsonValue *root, uint32_t file, size_t *length) {
    Lines lines = {.reader = reader, .file = file, .count = 1};
    each_row(root, measure, &lines);
    lines.widths = NEW_ARRAY(reader->arena, uint32_t, lines.count);
    each_row(root, measure, &lines);
    uint64_t bytes = lines.count - 1;
    for (uint32_t i = 0; i < lines.count; i++) bytes += lines.widths[i];
    if (bytes > SOURCE_MAX_BYTES) fault(reader, "place", "is beyond the end of any source");
    if (reader->why != NULL) return NULL;
    char *blanks = arena_alloc(reader->arena, bytes + 1), *at = blanks;
    memset(blanks, ' ', bytes);
    for (uint32_t i = 0; i + 1 < lines.count; i++) {
        at += lines.widths[i];
        *at++ = '\n';
    }
    *length = bytes;
    return blanks;
}

#define FILES_MOST 1000

/* The files, with such texts */
static void set_source(Reader *reader, const JsonValue *root, const char *name) {
    const JsonValue *list = json_field(root, "included");
    VEC(SourceText) files = {0};
    vec_push(reader->arena, &files, (SourceText){.name = name, .path = "", .text = ""});
    if (list != NULL && list->kind != JSON_LIST) fault(reader, "included", "is not a list");
    for (const JsonValue *at = reader->why == NULL && list != NULL ? list->first : NULL; at != NULL;
         at = at->next) {
        if (at->kind != JSON_TEXT || files.count == FILES_MOST) {
            fault(reader, "included", "is not a list of names");
            return;
        }
        vec_push(reader->arena, &files,
                 (SourceText){.name = at->text, .path = at->text, .text = ""});
    }
    if (reader->why != NULL) return;
    uint64_t bytes = 0;
    reader->manifest->source = source_join(reader->arena, files.items, files.count);
    for (size_t i = 0; i < files.count; i++) {
        files.items[i].text = blanks_of(reader, root, (uint32_t)i, &files.items[i].length);
        if (files.items[i].text == NULL) return;
        bytes += files.items[i].length + 1;
        if (bytes > (uint64_t)SOURCE_MAX_BYTES + 1)
            fault(reader, "place", "is beyond the end of any source");
    }
    if (reader->why != NULL) return;
    reader->manifest->source = source_join(reader->arena, files.items, files.count);
}

/* ---- rows ------------------------------------------------------------------------------------ */

static void read_symbol(Reader *reader, const JsonValue *row) {
    static const char *const kinds[] = {"scalar", "extent", "stride", "float"};
    int kind = one_of(reader, row, "kind", kinds,
                      reader->format >= MANIFEST_FORMAT_FLOAT ? COUNT_OF(kinds) : 3);
    ManifestSymbol symbol = {.name = text(reader, row, "name"),
                             .is_extent = kind == 1,
                             .is_stride = kind == 2,
                             .is_float = kind == 3,
                             .is_row = json_field(row, "row") != NULL && truth(reader, row, "row")};
    if (symbol.is_extent && json_field(row, "times") != NULL) {
        symbol.times = (int)number(reader, row, "times", -INT32_MAX, INT32_MAX);
        symbol.plus = (int)number(reader, row, "plus", -INT32_MAX, INT32_MAX);
        if (symbol.times == 0) fault(reader, "times", "is 0");
    }
    vec_push(reader->arena, &reader->manifest->symbols, symbol);
}

/* The first symbol of a stride from index `symbol` on */
static size_t next_stride(const Manifest *manifest, size_t symbol) {
    while (symbol < manifest->symbols.count && !manifest->symbols.items[symbol].is_stride) symbol++;
    return symbol;
}

/* Symbols of strides are in the order of the tensors, and have their names. */
static void bind_strides(Reader *reader) {
    const Manifest *manifest = reader->manifest;
    size_t symbol = next_stride(manifest, 0);
    for (size_t i = 0; i < manifest->parameters.count; i++)
        for (int axis = 0; axis + 1 < manifest->parameters.items[i].rank; axis++) {
            const char *name = arena_printf(reader->arena, "%s.stride%d",
                                            manifest->parameters.items[i].name, axis);
            if (symbol == manifest->symbols.count) return;
            ManifestSymbol *row = &manifest->symbols.items[symbol];
            if (strcmp(row->name, name) != 0) continue;
            row->parameter = (int)i;
            row->axis = axis;
            symbol = next_stride(manifest, symbol + 1);
        }
    if (symbol < manifest->symbols.count)
        fault(reader, "symbols", "has `%s`, which is no stride of a tensor, or not in order",
              manifest->symbols.items[symbol].name);
}

/* Which axis a solved extent is that of; the parameters come after the symbols. */
static void bind_solved(Reader *reader, const JsonValue *root) {
    const JsonValue *row = json_field(root, "symbols")->first;
    for (size_t i = 0; row != NULL && reader->why == NULL; i++, row = row->next) {
        ManifestSymbol *symbol = &reader->manifest->symbols.items[i];
        if (symbol->times == 0) continue;
        symbol->parameter = parameter(reader, row, PARAMETER_TENSOR);
        if (reader->why != NULL) return;
        int rank = reader->manifest->parameters.items[symbol->parameter].rank;
        symbol->axis = (int)number(reader, row, "axis", 0, rank - 1);
    }
}

static void read_tensor(Reader *reader, const JsonValue *row, ManifestParameter *out) {
    out->mode =
        (ParameterMode)one_of(reader, row, "mode", manifest_mode_names, MANIFEST_MODE_COUNT);
    fixed(reader, row, "element_bytes", element_rows[out->type].bytes);
    out->rank = formulas(reader, row, "extents", out->extents, 1, MAX_RANK);
    out->alignment = (uint32_t)number(reader, row, "alignment", 1, 1 << 20);
    if ((out->alignment & (out->alignment - 1)) != 0)
        fault(reader, "alignment", "is not a power of two");
    if (out->type == E_BOOL) fault(reader, "type", "is not that of a tensor");
    out->stride_alignment = (uint32_t)number(reader, row, "stride_alignment", 1, 1 << 20);
    const JsonValue *joined = list_field(reader, row, "joined");
    for (const JsonValue *at = joined != NULL ? joined->first : NULL; at != NULL; at = at->next)
        out->joined |= 1u << number_of(reader, at, "joined", 0, out->rank - 1);
}

static void read_parameter(Reader *reader, const JsonValue *row) {
    static const char *const kinds[] = {
        [PARAMETER_TENSOR] = "tensor", [PARAMETER_SCALAR] = "scalar"};
    ManifestParameter out = {.name = text(reader, row, "name"),
                             .type = type(reader, row),
                             .kind = (ParameterKind)one_of(reader, row, "kind", kinds, 2),
                             .symbol = -1,
                             .span = span(reader, row)};
    if (out.kind == PARAMETER_TENSOR) {
        read_tensor(reader, row, &out);
    } else {
        const char *name = text_or_null(reader, row, "symbol");
        bool is_float = element_rows[out.type].kind == ELEMENT_FLOAT;
        if (name != NULL) out.symbol = symbol(reader, name, false, false);
        if (out.symbol >= 0 && reader->manifest->symbols.items[out.symbol].is_float != is_float)
            fault(reader, "symbol", "has another type than the parameter");
    }
    vec_push(reader->arena, &reader->manifest->parameters, out);
}

static void read_map(Reader *reader, const JsonValue *row) {
    ManifestMap out = {.parameter = parameter(reader, row, PARAMETER_TENSOR),
                       .type = type(reader, row),
                       .rank = (int)number(reader, row, "rank", 1, MAX_RANK)};
    const JsonValue *box = list_field(reader, row, "box");
    int axis = 0;
    fixed(reader, row, "data_type", element_rows[out.type].map);
    if (element_rows[out.type].map < 0) fault(reader, "type", "has no tensor maps");
    formulas(reader, row, "extents", out.extents, out.rank, out.rank);
    formulas(reader, row, "strides", out.strides + 1, out.rank - 1, out.rank - 1);
    for (const JsonValue *at = box != NULL ? box->first : NULL; at != NULL; at = at->next, axis++)
        if (axis < out.rank) out.box[axis] = (uint32_t)number_of(reader, at, "box", 1, 256);
    if (axis != out.rank) fault(reader, "box", "has the wrong number of axes");
    out.swizzle = (Swizzle)number(reader, row, "swizzle", SWIZZLE_NONE, SWIZZLE_128);
    out.promotion = (Promotion)number(reader, row, "promotion", PROMOTION_NONE, PROMOTION_256);
    if (out.promotion != PROMOTION_NONE && out.promotion != PROMOTION_256)
        fault(reader, "promotion", "is neither 0 nor 3");
    out.stored = truth(reader, row, "stored");
    vec_push(reader->arena, &reader->manifest->maps, out);
}

static int argument_index(Reader *reader, const JsonValue *row, ArgumentKind kind) {
    const Manifest *manifest = reader->manifest;
    switch (kind) {
    case ARGUMENT_TENSOR_MAP:
        return (int)number(reader, row, "map", 0, (int64_t)manifest->maps.count - 1);
    case ARGUMENT_POINTER: return parameter(reader, row, PARAMETER_TENSOR);
    case ARGUMENT_STRIDE: return symbol(reader, text(reader, row, "symbol"), false, true);
    case ARGUMENT_EXTENT: return symbol(reader, text(reader, row, "symbol"), true, false);
    case ARGUMENT_SCALAR: return parameter(reader, row, PARAMETER_SCALAR);
    case ARGUMENT_COUNTER:
        fixed(reader, row, "bytes", COUNTER_BYTES);
        fixed(reader, row, "alignment", COUNTER_BYTES);
        fixed(reader, row, "initially", 0);
        if (!manifest->dynamic) fault(reader, "kind", "is `counter`, but the grid is not dynamic");
        return 0;
    case ARGUMENT_WATCHDOG:
        if (!manifest->watchdog) fault(reader, "kind", "is `watchdog`, but there is none");
        return 0;
    }
    return 0;
}

static void read_argument(Reader *reader, const JsonValue *row) {
    ManifestArgument out = {.kind =
                                (ArgumentKind)one_of(reader, row, "kind", manifest_argument_names,
                                                     MANIFEST_ARGUMENT_COUNT)};
    out.index = argument_index(reader, row, out.kind);
    if (reader->why != NULL) return;
    fixed_text(reader, row, "passed", manifest_passed(reader->manifest, &out));
    vec_push(reader->arena, &reader->manifest->arguments, out);
}

static void read_precondition(Reader *reader, const JsonValue *row) {
    reader->in_condition = reader->format >= MANIFEST_FORMAT_FLOAT;
    ManifestPrecondition out = {.condition = formula(reader, row, "condition"),
                                .text = text(reader, row, "text"),
                                .reason = text(reader, row, "reason"),
                                .help = text_or_null(reader, row, "help"),
                                .span = span(reader, row)};
    reader->in_condition = false;
    vec_push(reader->arena, &reader->manifest->preconditions, out);
}

static void read_constant(Reader *reader, const JsonValue *row) {
    ManifestConstant out = {.name = text(reader, row, "name"),
                            .value = text(reader, row, "value"),
                            .is_static = truth(reader, row, "static")};
    vec_push(reader->arena, &reader->manifest->constants, out);
}

static void read_shared(Reader *reader, const JsonValue *row) {
    ManifestShared out = {.kind = (SharedKind)one_of(reader, row, "kind", manifest_shared_names,
                                                     MANIFEST_SHARED_COUNT),
                          .pipe = text_or_null(reader, row, "pipe"),
                          .field = text_or_null(reader, row, "field"),
                          .reason = text_or_null(reader, row, "reason"),
                          .offset = whole(reader, row, "offset"),
                          .bytes = whole(reader, row, "bytes"),
                          .stages = whole(reader, row, "stages"),
                          .stride = whole(reader, row, "stride"),
                          .count = whole(reader, row, "count")};
    vec_push(reader->arena, &reader->manifest->shared, out);
}

static void read_role(Reader *reader, const JsonValue *row) {
    ManifestRole out = {.name = text(reader, row, "name"),
                        .first_warp = (int)number(reader, row, "first_warp", 0, MAX_WARPS),
                        .warps = (int)number(reader, row, "warps", 0, MAX_WARPS),
                        .instances = (int)number(reader, row, "instances", 0, MAX_WARPS),
                        .registers = (int)number(reader, row, "registers", 0, 256),
                        .held = (int)number(reader, row, "tile_registers", 0, INT32_MAX),
                        .span = span(reader, row)};
    vec_push(reader->arena, &reader->manifest->roles, out);
}

static void read_mark(Reader *reader, const JsonValue *row) {
    ManifestMark out = {.line = (uint32_t)number(reader, row, "line", 1, UINT32_MAX),
                        .role = role(reader, row),
                        .pipe = text_or_null(reader, row, "pipe"),
                        .what = text_or_null(reader, row, "what"),
                        .span = span(reader, row)};
    size_t count = reader->manifest->marks.count;
    if (count > 0 && reader->manifest->marks.items[count - 1].line > out.line)
        fault(reader, "line", "is before that of the mark before it");
    vec_push(reader->arena, &reader->manifest->marks, out);
}

static void read_inline(Reader *reader, const JsonValue *row) {
    ManifestInline out = {.first = (uint32_t)number(reader, row, "first", 1, UINT32_MAX),
                          .span = span(reader, row)};
    out.last = (uint32_t)number(reader, row, "last", out.first, UINT32_MAX);
    vec_push(reader->arena, &reader->manifest->inline_ptx, out);
}

static void read_wait(Reader *reader, const JsonValue *row) {
    static const char *const ends[] = {"empty", "full"};
    ManifestWait out = {.role = role(reader, row),
                        .pipe = text_or_null(reader, row, "pipe"),
                        .full = one_of(reader, row, "for", ends, 2) == 1,
                        .span = span(reader, row)};
    fixed(reader, row, "site", (int64_t)reader->manifest->waits.count + 1);
    vec_push(reader->arena, &reader->manifest->waits, out);
}

/* ---- work ------------------------------------------------------------------------------------ */

static void read_axis(Reader *reader, const JsonValue *row) {
    ManifestAxis out = {text(reader, row, "name"), formula(reader, row, "extent")};
    vec_push(reader->arena, &reader->manifest->axes, out);
}

/* In a formula of the work, over the axes and the variables so far too */
static Formula work_formula(Reader *reader, const JsonValue *row, const char *name) {
    Manifest *manifest = reader->manifest;
    const JsonValue *value = field(reader, row, name);
    if (value != NULL && value->kind == JSON_NULL) return (Formula){NULL, 0};
    reader->manifest = &reader->named;
    Formula out = formula_of(reader, value, name);
    reader->manifest = manifest;
    return out;
}

static int tensor_or_none(Reader *reader, const JsonValue *row) {
    return text_or_null(reader, row, "parameter") ? parameter(reader, row, PARAMETER_TENSOR) : -1;
}

static void read_work(Reader *reader, const JsonValue *row) {
    Manifest *manifest = reader->manifest;
    int64_t count = (int64_t)manifest->work.count;
    if (count == 0) reader->named = manifest_of_work(reader->arena, manifest);
    ManifestWork out = {.kind = (WorkKind)one_of(reader, row, "kind", work_names, WORK_KINDS),
                        .role = role(reader, row),
                        .parent = (int)number(reader, row, "parent", -1, count - 1),
                        .of = (int)number(reader, row, "of", 0, count > 0 ? count - 1 : 0),
                        .variable = -1,
                        .lo = work_formula(reader, row, "lo"),
                        .hi = work_formula(reader, row, "hi"),
                        .times = work_formula(reader, row, "times"),
                        .parameter = tensor_or_none(reader, row),
                        .pipe = text_or_null(reader, row, "pipe"),
                        .amount = number(reader, row, "amount", 0, INT64_MAX),
                        .own = number(reader, row, "own", 0, INT64_MAX),
                        .pieces = number(reader, row, "pieces", 0, INT64_MAX),
                        .bound = truth(reader, row, "bound"),
                        .span = span(reader, row)};
    const char *variable = text_or_null(reader, row, "variable");
    if (variable != NULL) {
        out.variable = (int)reader->named.symbols.count;
        vec_push(reader->arena, &manifest->variables, variable);
        vec_push(reader->arena, &reader->named.symbols, (ManifestSymbol){.name = variable});
    }
    if (out.role < 0) fault(reader, "role", "is missing");
    if (out.kind == WORK_ELSE && out.of < count && manifest->work.items[out.of].kind != WORK_IF)
        fault(reader, "of", "is not an `if`");
    if (out.kind == WORK_ELSE && count == 0) fault(reader, "of", "is no earlier item");
    vec_push(reader->arena, &manifest->work, out);
}

static void read_sum(Reader *reader, const JsonValue *row) {
    ManifestSum out = {text(reader, row, "text"), text_or_null(reader, row, "why"),
                       truth(reader, row, "threads"), span(reader, row)};
    vec_push(reader->arena, &reader->manifest->sums, out);
}

/* ---- sections -------------------------------------------------------------------------------- */

static void read_launch(Reader *reader, const JsonValue *root) {
    Manifest *manifest = reader->manifest;
    const JsonValue *row = field(reader, root, "launch"), *cluster;
    int axis = 0;
    manifest->tiles = formula(reader, row, "tiles");
    manifest->persistent = truth(reader, row, "persistent");
    manifest->dynamic = truth(reader, row, "dynamic");
    manifest->ordered = json_field(row, "ordered") != NULL && truth(reader, row, "ordered");
    manifest->threads = (int)number(reader, row, "threads", 1, 32 * MAX_WARPS);
    manifest->shared_bytes = (uint32_t)number(reader, row, "shared_bytes", 0, INT32_MAX);
    manifest->registers = (int)number(reader, row, "registers", 0, 255);
    manifest->watchdog = truth(reader, row, "watchdog");
    cluster = list_field(reader, row, "cluster");
    for (const JsonValue *at = cluster != NULL ? cluster->first : NULL; at != NULL; at = at->next)
        if (axis++ < 3)
            manifest->cluster[axis - 1] =
                (int)number_of(reader, at, "cluster", 1, axis == 1 ? 16 : 1);
    if (axis != 3) fault(reader, "cluster", "does not have three axes");
    if (manifest->dynamic && !manifest->persistent)
        fault(reader, "persistent", "is false, but `dynamic` is true");
}

/* In this order, because later rows refer to earlier ones */
static const struct {
    const char *list;
    void (*read)(Reader *reader, const JsonValue *row);
} sections[] = {{"symbols", read_symbol},     {"parameters", read_parameter},
                {"maps", read_map},           {"preconditions", read_precondition},
                {"constants", read_constant}, {"shared", read_shared},
                {"roles", read_role},         {"marks", read_mark},
                {"inline", read_inline},      {"waits", read_wait},
                {"axes", read_axis},          {"work", read_work},
                {"sums", read_sum},           {"launch", NULL},
                {"arguments", read_argument}};

static void read_section(Reader *reader, const JsonValue *root, size_t section) {
    bool optional = sections[section].read == read_axis || sections[section].read == read_work ||
                    sections[section].read == read_sum;
    if (optional && json_field(root, sections[section].list) == NULL)
        return; /* of an earlier version */
    const JsonValue *list = list_field(reader, root, sections[section].list);
    reader->list = sections[section].list;
    reader->index = 0;
    for (const JsonValue *row = list != NULL ? list->first : NULL; row != NULL; row = row->next) {
        if (reader->why != NULL) break;
        sections[section].read(reader, row);
        reader->index++;
    }
    reader->list = NULL;
}

/* "8.0" */
static void read_version(Reader *reader, const JsonValue *root) {
    Manifest *manifest = reader->manifest;
    const char *version = text(reader, root, "ptx");
    if (strspn(version, "0123456789.") != strlen(version) ||
        sscanf(version, "%3d.%3d", &manifest->ptx_major, &manifest->ptx_minor) != 2 ||
        strcmp(version,
               arena_printf(reader->arena, "%d.%d", manifest->ptx_major, manifest->ptx_minor)) != 0)
        fault(reader, "ptx", "is not a version of PTX: `%s`", version);
}

static void read_hash(Reader *reader, const JsonValue *root) {
    const char *hash = text(reader, root, "ptx_hash");
    if (strlen(hash) != 16 || strspn(hash, "0123456789abcdef") != 16)
        fault(reader, "ptx_hash", "is not a hash of 16 digits: `%s`", hash);
    else
        reader->manifest->ptx_hash = strtoull(hash, NULL, 16);
}

static void read_top(Reader *reader, const JsonValue *root) {
    Manifest *manifest = reader->manifest;
    manifest->kernel = text(reader, root, "kernel");
    manifest->target = text(reader, root, "target");
    if (manifest->kernel[0] == 0) fault(reader, "kernel", "is empty");
    read_version(reader, root);
    read_hash(reader, root);
    const char *source = text_or_null(reader, root, "source");
    if (source != NULL) set_source(reader, root, source);
    manifest->head = span(reader, root);
    for (size_t i = 0; i < COUNT_OF(sections) && reader->why == NULL; i++) {
        if (sections[i].read == NULL)
            read_launch(reader, root);
        else
            read_section(reader, root, i);
        if (sections[i].read != read_parameter || reader->why != NULL) continue;
        bind_strides(reader);
        bind_solved(reader, root);
    }
    size_t watchdogs = 0, counters = 0, count = manifest->arguments.count;
    for (size_t i = 0; i < count; i++) {
        counters += manifest->arguments.items[i].kind == ARGUMENT_COUNTER;
        watchdogs += manifest->arguments.items[i].kind == ARGUMENT_WATCHDOG;
    }
    if (counters != manifest->dynamic || watchdogs != manifest->watchdog ||
        (watchdogs > 0 && manifest->arguments.items[count - 1].kind != ARGUMENT_WATCHDOG))
        fault(reader, "arguments", "does not agree with `launch`");
}

Manifest *manifest_read(Arena *arena, const char *text, size_t length, Diags *diags) {
    Reader reader = {.arena = arena, .manifest = NEW(arena, Manifest)};
    const JsonValue *root = json_read(arena, text, length, &reader.why);
    const JsonValue *format = json_field(root, "format");
    if (root != NULL && format == NULL)
        fault(&reader, "format", "is missing: this is not a manifest of pipec");
    else if (root != NULL && (!format->is_integer || format->integer < MANIFEST_FORMAT ||
                              format->integer > MANIFEST_FORMAT_ORDERED))
        fault(&reader, "format", "is %.17g; this version of pipec reads formats %d to %d",
              format->number, MANIFEST_FORMAT, MANIFEST_FORMAT_ORDERED);
    if (reader.why == NULL) reader.format = format->integer;
    if (reader.why == NULL) read_top(&reader, root);
    if (reader.why == NULL) {
        reader.manifest->is_read = true;
        manifest_find_compared(reader.manifest);
        work_find_facts(reader.manifest);
        return reader.manifest;
    }
    diag_plain(diags, P0920, "cannot read the manifest: %s", reader.why);
    return NULL;
}
