/* Symbols of PTX text: scopes, registers, ranges of registers, variables.
 *
 * In: declarations. Out: symbols, with storage in the Program for registers and for variables in
 * shared and local memory. */
#include "emulator/text/text.h"

#include <string.h>

/* Bounds on the cost of register ranges and files, far above what ptxas accepts. */
enum { MAX_DEPTH = 200, MAX_REGISTER_BYTES = 2 << 20 };

/* ---- symbols --------------------------------------------------------------------------------- */

static uint32_t bucket_of(const char *name) {
    return (uint32_t)((uintptr_t)name >> 4) * 2654435761u >> 20;
}

Symbol *text_add_symbol(Reader *reader, TextScope *scope, const char *name, SymbolKind kind,
                        uint32_t depth) {
    Symbol *symbol = NEW(reader->arena, Symbol);
    Symbol **bucket = &reader->buckets[bucket_of(name)];
    *symbol = (Symbol){.kind = kind,
                       .name = name,
                       .depth = depth,
                       .shadowed = *bucket,
                       .in_scope = scope->symbols};
    scope->symbols = symbol;
    *bucket = symbol;
    return symbol;
}

static Symbol *find_symbol(Reader *reader, const char *name, bool range) {
    Symbol *best = NULL;
    for (Symbol *s = reader->buckets[bucket_of(name)]; s; s = s->shadowed)
        if (s->name == name && (s->kind == SYMBOL_RANGE) == range &&
            (!best || s->depth > best->depth))
            best = s;
    return best;
}

/* `%r7` may be declared by itself or as part of the range `%r<16>`; the innermost declaration
 * applies. Registers of a range get storage on first use, so that `.reg .b32 %r<100000>` costs
 * nothing. */
Symbol *text_lookup(Reader *reader, const char *text, uint32_t length) {
    const char *name = names_intern(reader->names, text, length);
    Symbol *exact = find_symbol(reader, name, false);
    uint32_t digits = 0;
    while (digits < length && digits < 9 && text[length - 1 - digits] >= '0' &&
           text[length - 1 - digits] <= '9')
        digits++;
    Symbol *range = NULL;
    uint64_t number = 0;
    /* `%r10` is 10 of `%r`, or 0 of `%r1` */
    for (uint32_t n = digits; n > 0; n--) {
        if (n > 1 && text[length - n] == '0') continue;
        Symbol *found = find_symbol(reader, names_intern(reader->names, text, length - n), true);
        number = 0;
        for (uint32_t i = length - n; i < length; i++)
            number = number * 10 + (uint64_t)(text[i] - '0');
        if (found && number < found->range) {
            range = found;
            break;
        }
    }
    if (!range || (exact && exact->depth >= range->depth)) return exact;
    TextScope *scope = reader->scope;
    for (uint32_t depth = reader->depth; depth > range->depth; depth--) scope = scope->parent;
    Symbol *symbol = text_add_symbol(reader, scope, name, SYMBOL_REGISTER, range->depth);
    symbol->type = range->type;
    symbol->operand = decode_new_register(reader, range->type);
    if (reader->program->register_bytes > MAX_REGISTER_BYTES)
        text_incomplete(reader, reader->token.line,
                        "a thread of this kernel has more registers than the emulator supports");
    return symbol;
}

void text_open_scope(Reader *reader) {
    TextScope *scope = NEW(reader->arena, TextScope);
    scope->parent = reader->scope;
    reader->scope = scope;
    if (++reader->depth > MAX_DEPTH)
        text_reject(reader, reader->token.line, "scopes are nested more than %d deep", MAX_DEPTH);
}
void text_close_scope(Reader *reader) {
    for (Symbol *s = reader->scope->symbols; s; s = s->in_scope) {
        Symbol **link = &reader->buckets[bucket_of(s->name)];
        while (*link != s) link = &(*link)->shadowed;
        *link = s->shadowed;
    }
    reader->scope = reader->scope->parent;
    reader->depth--;
}

const char *text_new_name(Reader *reader, const Token *token) {
    const char *name = names_intern(reader->names, token->text, token->length);
    const Symbol *known = find_symbol(reader, name, false);
    if (known && known->depth == reader->depth)
        text_reject(reader, token->line, "`%s` is declared twice in one scope", name);
    return name;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static Type take_type(Reader *reader) {
    Token token = text_word(reader, "a type");
    Type type = token.length > 1 && *token.text == '.'
                    ? type_by_name(token.text + 1, token.length - 1)
                    : T_NONE;
    bool is_partial = type == T_B1 || type == T_U4 || type == T_S4;
    if (type == T_NONE || is_partial)
        text_reject(reader, token.line, "expected a type, found `%.*s`", (int)token.length,
                    token.text);
    return type;
}

static Type take_register_type(Reader *reader) {
    if (text_is(&reader->token, ".v2") || text_is(&reader->token, ".v4"))
        text_incomplete(reader, reader->token.line, "the emulator does not model vector registers");
    Type type = take_type(reader);
    if (type == T_B128)
        text_incomplete(reader, reader->token.line,
                        "the emulator does not model 128-bit registers");
    return type;
}

static Symbol *new_register(Reader *reader, const Token *token, Type type) {
    Symbol *symbol = text_add_symbol(reader, reader->scope, text_new_name(reader, token),
                                     SYMBOL_REGISTER, reader->depth);
    symbol->type = type;
    symbol->operand = decode_new_register(reader, type);
    if (reader->program->register_bytes > MAX_REGISTER_BYTES)
        text_incomplete(reader, token->line,
                        "a thread of this kernel has more registers than the emulator supports");
    return symbol;
}

Symbol *read_register(Reader *reader) {
    Type type = take_register_type(reader);
    Token token = text_word(reader, "the name of a register");
    return new_register(reader, &token, type);
}

void read_registers(Reader *reader) {
    Type type = take_register_type(reader);
    do {
        Token token = text_word(reader, "the name of a register");
        if (!text_take(reader, '<')) {
            new_register(reader, &token, type);
            continue;
        }
        const char *name = names_intern(reader->names, token.text, token.length);
        uint64_t count = text_integer(reader);
        text_expect(reader, '>');
        Symbol *range = text_add_symbol(reader, reader->scope, name, SYMBOL_RANGE, reader->depth);
        range->type = type;
        range->range = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
    } while (text_take(reader, ','));
    text_expect(reader, ';');
}

static void read_dimensions(Reader *reader, Variable *variable) {
    while (text_take(reader, '[')) {
        if (variable->dimensions++ == MAX_DIMENSIONS)
            text_reject(reader, variable->name.line, "variable `%.*s` has too many dimensions",
                        (int)variable->name.length, variable->name.text);
        if (text_take(reader, ']')) {
            variable->unsized = true;
            continue;
        }
        uint64_t count = text_integer(reader);
        text_expect(reader, ']');
        variable->extents[variable->dimensions - 1] = count;
        if (count > MAX_VARIABLE_BYTES || variable->bytes * count > MAX_VARIABLE_BYTES)
            text_reject(reader, variable->name.line, "variable `%.*s` is too large to emulate",
                        (int)variable->name.length, variable->name.text);
        variable->bytes *= count;
    }
}

static uint32_t take_alignment(Reader *reader) {
    uint64_t alignment = text_integer(reader);
    if (alignment == 0 || alignment > 65536 || (alignment & (alignment - 1)))
        text_reject(reader, reader->token.line, "an alignment must be a power of two");
    return (uint32_t)alignment;
}

/* `(.managed)`, `(.unified(1, 2))` */
static void skip_attribute(Reader *reader) {
    uint32_t depth = 0;
    do {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "this attribute is not closed");
        if (text_at(reader, '(')) depth++;
        if (text_at(reader, ')')) depth--;
        scan_next(reader);
    } while (depth > 0);
}

Variable read_variable(Reader *reader) {
    Variable variable = {.vector = 1};
    for (;;) {
        if (text_directive(reader, ".align"))
            variable.alignment = take_alignment(reader);
        else if (text_is(&reader->token, ".v2") || text_is(&reader->token, ".v4"))
            variable.vector = reader->token.text[2] == '2' ? 2 : 4, scan_next(reader);
        else if (text_directive(reader, ".attribute"))
            skip_attribute(reader);
        else
            break;
    }
    variable.type = take_type(reader);
    /* `.param .u64 .ptr .global .align 16 name` */
    if (text_directive(reader, ".ptr")) {
        while (reader->token.kind == TOKEN_WORD && *reader->token.text == '.')
            if (text_directive(reader, ".align"))
                take_alignment(reader);
            else
                scan_next(reader);
    }
    variable.name = text_word(reader, "a name");
    variable.bytes = (uint64_t)type_rows[variable.type].bytes * variable.vector;
    if (variable.alignment < variable.bytes)
        variable.alignment = variable.alignment ? variable.alignment : (uint32_t)variable.bytes;
    read_dimensions(reader, &variable);
    return variable;
}

Symbol *declare_variable(Reader *reader, const Variable *variable, Space space) {
    Symbol *symbol = text_add_symbol(reader, reader->scope, text_new_name(reader, &variable->name),
                                     SYMBOL_VARIABLE, reader->depth);
    symbol->type = variable->type;
    symbol->space = space;
    return symbol;
}

uint64_t place_variable(uint32_t *used, const Variable *variable) {
    uint64_t at =
        ((uint64_t)*used + variable->alignment - 1) & ~(uint64_t)(variable->alignment - 1);
    *used = (uint32_t)(at + variable->bytes);
    return at;
}

void read_storage(Reader *reader, Space space, bool is_extern) {
    Program *program = reader->program;
    Variable variable = read_variable(reader);
    Symbol *symbol = declare_variable(reader, &variable, space);
    if (space == SPACE_SHARED && (is_extern || variable.unsized)) {
        symbol->dynamic = true;
        if (program->shared_alignment < variable.alignment)
            program->shared_alignment = variable.alignment;
    } else if (space == SPACE_SHARED) {
        symbol->address = place_variable(&program->shared_bytes, &variable) + SHARED_BASE;
    } else {
        symbol->address = place_variable(&program->local_bytes, &variable);
        reader->has_variables = true;
    }
    if (space == SPACE_SHARED)
        vec_push(reader->arena, &program->shared,
                 (SharedVariable){symbol->name, symbol->address,
                                  symbol->dynamic ? 0 : variable.bytes, symbol->dynamic});
    if (program->shared_bytes > MAX_VARIABLE_BYTES || program->local_bytes > MAX_LOCAL_BYTES)
        text_reject(reader, variable.name.line,
                    "the variables of this kernel are too large to emulate");
    text_expect(reader, ';');
}
