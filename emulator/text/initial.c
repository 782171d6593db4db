/* Variables of the module in global and constant memory, and their initial values (PTX ISA 5.4.4).
 *
 * In: a declaration. Out: a ModuleVariable with its address and initial bytes. Addresses of other
 * variables and of functions are filled in at the end of the module. */
#include "emulator/text/text.h"

#include <string.h>

enum { MAX_VARIABLES = 65536, MAX_IMAGE_BYTES = 256 << 20 };

/* The variable being initialised */
typedef struct Image {
    Reader *reader;
    const Variable *variable;
    uint8_t width; /* bytes of an element */
    VEC(unsigned char) bytes;
    VEC(Relocation) relocations; /* their `at` is still an offset */
    VEC(uint64_t) offsets;
} Image;

static NO_RETURN void reject_values(Image *image) {
    text_reject(image->reader, image->reader->token.line,
                "variable `%.*s` has more initial values than elements",
                (int)image->variable->name.length, image->variable->name.text);
}

static unsigned char *reserve(Image *image, uint64_t offset, uint64_t bytes) {
    const Variable *variable = image->variable;
    if (offset + bytes > (variable->unsized ? MAX_VARIABLE_BYTES : variable->bytes))
        reject_values(image);
    if (offset + bytes > image->bytes.count) {
        vec_reserve(image->reader->arena, (void **)&image->bytes.items, &image->bytes.capacity,
                    offset + bytes, 1);
        image->bytes.count = offset + bytes;
    }
    return image->bytes.items + offset;
}

/* ---- values ---------------------------------------------------------------------------------- */

static uint64_t number_bits(Image *image, const Raw *raw) {
    Type type = image->variable->type;
    uint64_t bits = raw->token.value;
    if (raw->token.kind == TOKEN_INTEGER) return bits;
    uint32_t low = (uint32_t)bits;
    float single;
    double value;
    memcpy(&single, &low, sizeof single);
    memcpy(&value, &bits, sizeof value);
    if (raw->token.kind == TOKEN_F32) value = (double)single;
    if (raw->minus) value = -value;
    if (type_rows[type].bytes == 8) {
        memcpy(&bits, &value, sizeof bits);
        return bits;
    }
    if (type_rows[type].bytes != 4)
        text_reject(image->reader, raw->token.line, "a float does not fit this variable");
    single = (float)value;
    memcpy(&low, &single, sizeof low);
    return low;
}

/* `name`, `name + 8`, `generic(name) + 8`; with a mask `0xff00(name)`: those bits of the address */
static void add_address(Image *image, uint64_t offset, uint64_t mask) {
    Reader *reader = image->reader;
    bool wrapped = text_take(reader, '(');
    Token name = text_word(reader, "the name of a variable");
    uint64_t add = (uint64_t)read_offset(reader);
    if (wrapped) text_expect(reader, ')');
    add += (uint64_t)read_offset(reader);
    const Symbol *symbol = text_lookup(reader, name.text, name.length);
    if (!symbol)
        text_reject(reader, name.line, "`%.*s` is not declared", (int)name.length, name.text);
    vec_push(reader->arena, &image->offsets, offset);
    vec_push(
        reader->arena, &image->relocations,
        ((Relocation){
            .symbol = symbol, .add = add, .mask = mask, .width = image->width, .line = name.line}));
}

static void read_value(Image *image, uint64_t offset) {
    Reader *reader = image->reader;
    unsigned char *to = reserve(image, offset, image->width);
    if (reader->token.kind == TOKEN_WORD) {
        (void)text_directive(reader, "generic");
        add_address(image, offset, UINT64_MAX);
        return;
    }
    Raw raw = read_operand(reader);
    if (raw.kind != RAW_NUMBER) text_reject(reader, raw.token.line, "expected an initial value");
    if (text_at(reader, '(')) {
        add_address(image, offset, raw.token.value);
        return;
    }
    uint64_t bits = number_bits(image, &raw);
    memcpy(to, &bits, image->width);
}

/* ---- lists ----------------------------------------------------------------------------------- */

/* Bytes between two elements of a dimension; a vector is the innermost dimension */
static uint64_t stride_of(const Image *image, uint32_t dimension) {
    const Variable *variable = image->variable;
    uint64_t stride = image->width;
    if (dimension < variable->dimensions) stride *= variable->vector;
    for (uint32_t i = dimension + 1; i < variable->dimensions; i++) stride *= variable->extents[i];
    return stride;
}

/* Elements of a dimension; 0: any number */
static uint64_t extent_of(const Image *image, uint32_t dimension) {
    const Variable *variable = image->variable;
    return dimension < variable->dimensions ? variable->extents[dimension] : variable->vector;
}

/* The value of an element, or the list of a dimension */
static void read_list(Image *image, uint64_t offset, uint32_t dimension) {
    Reader *reader = image->reader;
    if (!text_take(reader, '{')) {
        read_value(image, offset);
        return;
    }
    if (dimension > image->variable->dimensions)
        text_reject(reader, reader->token.line, "initial values are nested too deeply");
    uint64_t stride = stride_of(image, dimension), extent = extent_of(image, dimension), count = 0;
    if (text_take(reader, '}')) return;
    do {
        if (extent && count == extent) reject_values(image);
        read_list(image, offset + stride * count++, dimension + 1);
    } while (text_take(reader, ','));
    text_expect(reader, '}');
}

static const unsigned char *read_image(Reader *reader, Variable *variable) {
    Image image = {
        .reader = reader, .variable = variable, .width = type_rows[variable->type].bytes};
    read_list(&image, 0, 0);
    if (variable->unsized) variable->bytes = image.bytes.count;
    if (variable->bytes > 0) reserve(&image, 0, variable->bytes);
    for (size_t i = 0; i < image.offsets.count; i++) {
        Relocation relocation = image.relocations.items[i];
        relocation.at = image.bytes.items + image.offsets.items[i];
        vec_push(reader->arena, &reader->relocations, relocation);
    }
    return image.bytes.items;
}

/* ---- declarations ---------------------------------------------------------------------------- */

/* A definition after `.extern` completes the symbol of that. */
static Symbol *symbol_of(Reader *reader, const Variable *variable, Space space) {
    Symbol *known = text_lookup(reader, variable->name.text, variable->name.length);
    if (known && known->kind == SYMBOL_VARIABLE && known->space == space &&
        (known->undefined || known->extern_too))
        return known;
    return declare_variable(reader, variable, space);
}

static uint64_t next_address(const Program *program, bool is_constant) {
    uint64_t at = is_constant ? CONSTANTS_BASE : VARIABLES_BASE;
    for (size_t i = program->variables.count; i-- > 0;) {
        const ModuleVariable *last = &program->variables.items[i];
        if (last->is_constant != is_constant) continue;
        at = (last->address + last->bytes + 2 * VARIABLE_GAP - 1) & ~(VARIABLE_GAP - 1);
        break;
    }
    return at;
}

void read_module_variable(Reader *reader, Space space, bool is_extern) {
    Program *program = reader->program;
    Variable variable = read_variable(reader);
    if (type_rows[variable.type].bytes == 0)
        text_reject(reader, variable.name.line, "variable `%.*s` has no type of memory",
                    (int)variable.name.length, variable.name.text);
    Symbol *symbol = symbol_of(reader, &variable, space);
    if (is_extern) {
        symbol->undefined = symbol->address == 0;
        symbol->extern_too = true;
        text_skip_statement(reader);
        return;
    }
    const unsigned char *image = text_take(reader, '=') ? read_image(reader, &variable) : NULL;
    text_expect(reader, ';');
    reader->image_bytes += variable.bytes;
    if (program->variables.count == MAX_VARIABLES || reader->image_bytes > MAX_IMAGE_BYTES)
        text_reject(reader, variable.name.line,
                    "the variables of this module are too large to emulate");
    symbol->undefined = false;
    symbol->address = next_address(program, space == SPACE_CONST);
    vec_push(reader->arena, &program->variables,
             ((ModuleVariable){symbol->name, symbol->address, variable.bytes, space == SPACE_CONST,
                               image}));
}

static void relocate(Reader *reader, const Relocation *relocation) {
    const Symbol *symbol = relocation->symbol;
    bool has_address = symbol->kind == SYMBOL_FUNCTION ||
                       (symbol->kind == SYMBOL_VARIABLE &&
                        (symbol->space == SPACE_GLOBAL || symbol->space == SPACE_CONST));
    if (!has_address || symbol->undefined)
        text_incomplete(reader, relocation->line,
                        "the emulator does not model `%s` as an initial value", symbol->name);
    uint64_t mask = relocation->mask, value = (symbol->address + relocation->add) & mask;
    if (mask) value >>= __builtin_ctzll(mask);
    memcpy(relocation->at, &value, relocation->width);
}

void finish_variables(Reader *reader) {
    for (size_t i = 0; i < reader->relocations.count; i++)
        relocate(reader, &reader->relocations.items[i]);
}
