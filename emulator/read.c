/* PTX text to a Program: directives, declarations, scopes, labels, operands as written.
 *
 * In: the text of a module and the name of the wanted entry. Out: its Program. Reads PTX of
 * other compilers too: nested scopes with their own registers and labels, register ranges, debug
 * directives. Calls, global and constant variables are parsed and reported as not modelled. All
 * other parts of a module are skipped. */
#include "text.h"

#include <string.h>

/* Bounds on the cost of register ranges and files, far above what ptxas accepts. */
enum {
    MAX_DEPTH = 200,
    MAX_OPERANDS = 16,
    MAX_VECTOR = 256,
    MAX_REGISTER_BYTES = 2 << 20,
    MAX_VARIABLE_BYTES = 64 << 20
};

static void report(Reader *reader, Code code, uint32_t line, const char *format, va_list args) {
    *reader->fault = (ReadFault){code, line, arena_vprintf(reader->arena, format, args)};
}

void text_reject(Reader *reader, uint32_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(reader, P0700, line, format, args);
    va_end(args);
    reader->status = READ_REJECTED;
    longjmp(reader->stop, 1);
}

void text_incomplete(Reader *reader, uint32_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    report(reader, P0701, line, format, args);
    va_end(args);
    reader->status = READ_INCOMPLETE;
    longjmp(reader->stop, 1);
}

/* ---- words ----------------------------------------------------------------------------------- */

bool text_is(const Token *token, const char *word) {
    return token->kind == TOKEN_WORD && token->length == strlen(word) &&
           !memcmp(token->text, word, token->length);
}
static bool at_mark(const Reader *reader, char mark) {
    return reader->token.kind == TOKEN_MARK && reader->token.mark == mark;
}
static bool take_mark(Reader *reader, char mark) {
    if (!at_mark(reader, mark)) return false;
    scan_next(reader);
    return true;
}
static void expect_mark(Reader *reader, char mark) {
    if (!take_mark(reader, mark))
        text_reject(reader, reader->token.line, "expected `%c` before `%.*s`", mark,
                    (int)(reader->token.length < 40 ? reader->token.length : 40),
                    reader->token.text);
}
static Token take_word(Reader *reader, const char *what) {
    Token token = reader->token;
    if (token.kind != TOKEN_WORD) text_reject(reader, token.line, "expected %s", what);
    scan_next(reader);
    return token;
}
static uint64_t take_integer(Reader *reader) {
    Token token = reader->token;
    if (token.kind != TOKEN_INTEGER) text_reject(reader, token.line, "expected a number");
    scan_next(reader);
    return token.value;
}
static bool take_directive(Reader *reader, const char *word) {
    if (!text_is(&reader->token, word)) return false;
    scan_next(reader);
    return true;
}

static void skip_braces(Reader *reader) {
    uint32_t opened = reader->token.line, depth = 0;
    do {
        if (reader->token.kind == TOKEN_END) text_reject(reader, opened, "this `{` is not closed");
        if (at_mark(reader, '{')) depth++;
        if (at_mark(reader, '}')) depth--;
        scan_next(reader);
    } while (depth > 0);
}
static void skip_to_semicolon(Reader *reader) {
    while (!at_mark(reader, ';')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "expected `;` before the end of the text");
        scan_next(reader);
    }
    scan_next(reader);
}

/* ---- symbols --------------------------------------------------------------------------------- */

static uint32_t bucket_of(const char *name) {
    return (uint32_t)((uintptr_t)name >> 4) * 2654435761u >> 20;
}

static Symbol *add_symbol(Reader *reader, TextScope *scope, const char *name, SymbolKind kind,
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
    Symbol *symbol = add_symbol(reader, scope, name, SYMBOL_REGISTER, range->depth);
    symbol->type = range->type;
    symbol->operand = decode_new_register(reader, range->type);
    if (reader->program->register_bytes > MAX_REGISTER_BYTES)
        text_incomplete(reader, reader->token.line,
                        "a thread of this kernel has more registers than the emulator supports");
    return symbol;
}

static void open_scope(Reader *reader) {
    TextScope *scope = NEW(reader->arena, TextScope);
    scope->parent = reader->scope;
    reader->scope = scope;
    if (++reader->depth > MAX_DEPTH)
        text_reject(reader, reader->token.line, "scopes are nested more than %d deep", MAX_DEPTH);
}
static void close_scope(Reader *reader) {
    for (Symbol *s = reader->scope->symbols; s; s = s->in_scope) {
        Symbol **link = &reader->buckets[bucket_of(s->name)];
        while (*link != s) link = &(*link)->shadowed;
        *link = s->shadowed;
    }
    reader->scope = reader->scope->parent;
    reader->depth--;
}

static const char *new_name(Reader *reader, const Token *token) {
    const char *name = names_intern(reader->names, token->text, token->length);
    const Symbol *known = find_symbol(reader, name, false);
    if (known && known->depth == reader->depth)
        text_reject(reader, token->line, "`%s` is declared twice in one scope", name);
    return name;
}

/* ---- declarations ---------------------------------------------------------------------------- */

static Type take_type(Reader *reader) {
    Token token = take_word(reader, "a type");
    Type type = token.length > 1 && *token.text == '.'
                    ? type_by_name(token.text + 1, token.length - 1)
                    : T_NONE;
    if (type == T_NONE)
        text_reject(reader, token.line, "expected a type, found `%.*s`", (int)token.length,
                    token.text);
    return type;
}

static void read_registers(Reader *reader) {
    if (text_is(&reader->token, ".v2") || text_is(&reader->token, ".v4"))
        text_incomplete(reader, reader->token.line, "the emulator does not model vector registers");
    Type type = take_type(reader);
    if (type == T_B128)
        text_incomplete(reader, reader->token.line,
                        "the emulator does not model 128-bit registers");
    do {
        Token token = take_word(reader, "the name of a register");
        if (take_mark(reader, '<')) {
            const char *name = names_intern(reader->names, token.text, token.length);
            uint64_t count = take_integer(reader);
            expect_mark(reader, '>');
            Symbol *range = add_symbol(reader, reader->scope, name, SYMBOL_RANGE, reader->depth);
            range->type = type;
            range->range = count > UINT32_MAX ? UINT32_MAX : (uint32_t)count;
        } else {
            const char *name = new_name(reader, &token);
            Symbol *symbol =
                add_symbol(reader, reader->scope, name, SYMBOL_REGISTER, reader->depth);
            symbol->type = type;
            symbol->operand = decode_new_register(reader, type);
            if (reader->program && reader->program->register_bytes > MAX_REGISTER_BYTES)
                text_incomplete(
                    reader, token.line,
                    "a thread of this kernel has more registers than the emulator supports");
        }
    } while (take_mark(reader, ','));
    expect_mark(reader, ';');
}

/* type name [n][m] after `.shared`, `.local`, `.param`: bytes and alignment of the variable */
typedef struct Variable {
    Token name;
    Type type;
    uint64_t bytes;
    uint32_t alignment;
    bool unsized; /* name[] */
} Variable;

static void read_dimensions(Reader *reader, Variable *variable) {
    while (take_mark(reader, '[')) {
        if (take_mark(reader, ']')) {
            variable->unsized = true;
            continue;
        }
        uint64_t count = take_integer(reader);
        expect_mark(reader, ']');
        if (count > MAX_VARIABLE_BYTES || variable->bytes * count > MAX_VARIABLE_BYTES)
            text_reject(reader, variable->name.line, "variable `%.*s` is too large to emulate",
                        (int)variable->name.length, variable->name.text);
        variable->bytes *= count;
    }
}

static uint32_t take_alignment(Reader *reader) {
    uint64_t alignment = take_integer(reader);
    if (alignment == 0 || alignment > 65536 || (alignment & (alignment - 1)))
        text_reject(reader, reader->token.line, "an alignment must be a power of two");
    return (uint32_t)alignment;
}

static Variable read_variable(Reader *reader) {
    Variable variable = {0};
    uint32_t vector = 1;
    for (;;) {
        if (take_directive(reader, ".align"))
            variable.alignment = take_alignment(reader);
        else if (text_is(&reader->token, ".v2") || text_is(&reader->token, ".v4"))
            vector = reader->token.text[2] == '2' ? 2 : 4, scan_next(reader);
        else
            break;
    }
    variable.type = take_type(reader);
    /* `.param .u64 .ptr .global .align 16 name` */
    if (take_directive(reader, ".ptr")) {
        while (reader->token.kind == TOKEN_WORD && *reader->token.text == '.')
            if (take_directive(reader, ".align"))
                take_alignment(reader);
            else
                scan_next(reader);
    }
    variable.name = take_word(reader, "a name");
    variable.bytes = (uint64_t)type_rows[variable.type].bytes * vector;
    if (variable.alignment < variable.bytes)
        variable.alignment = variable.alignment ? variable.alignment : (uint32_t)variable.bytes;
    read_dimensions(reader, &variable);
    return variable;
}

static Symbol *declare_variable(Reader *reader, const Variable *variable, Space space) {
    Symbol *symbol = add_symbol(reader, reader->scope, new_name(reader, &variable->name),
                                SYMBOL_VARIABLE, reader->depth);
    symbol->type = variable->type;
    symbol->space = space;
    return symbol;
}

static uint64_t place(uint32_t *used, const Variable *variable) {
    uint64_t at =
        ((uint64_t)*used + variable->alignment - 1) & ~(uint64_t)(variable->alignment - 1);
    *used = (uint32_t)(at + variable->bytes);
    return at;
}

static void read_storage(Reader *reader, Space space, bool is_extern) {
    Program *program = reader->program;
    Variable variable = read_variable(reader);
    Symbol *symbol = declare_variable(reader, &variable, space);
    if (space == SPACE_SHARED && (is_extern || variable.unsized)) {
        symbol->dynamic = true;
        if (program->shared_alignment < variable.alignment)
            program->shared_alignment = variable.alignment;
    } else if (space == SPACE_SHARED) {
        symbol->address = place(&program->shared_bytes, &variable) + SHARED_BASE;
    } else {
        symbol->address = place(&program->local_bytes, &variable);
    }
    if (program->shared_bytes > MAX_VARIABLE_BYTES ||
        program->local_bytes > MAX_VARIABLE_BYTES / LANES)
        text_reject(reader, variable.name.line,
                    "the variables of this kernel are too large to emulate");
    expect_mark(reader, ';');
}

/* ---- operands -------------------------------------------------------------------------------- */

static Raw read_operand(Reader *reader, uint32_t depth);

/* `+ 4`, `+-4`, `- 4` after a base */
static int64_t read_offset(Reader *reader) {
    int64_t sum = 0;
    while (at_mark(reader, '+') || at_mark(reader, '-')) {
        bool minus = at_mark(reader, '-');
        scan_next(reader);
        if (take_mark(reader, '-')) minus = !minus;
        int64_t value = (int64_t)take_integer(reader);
        sum = (int64_t)((uint64_t)sum + (minus ? 0 - (uint64_t)value : (uint64_t)value));
    }
    return sum;
}

static void read_list(Reader *reader, Raw *into, char close, uint32_t depth) {
    Raw items[MAX_VECTOR];
    uint32_t count = 0;
    do {
        if (count == MAX_VECTOR)
            text_incomplete(reader, reader->token.line,
                            "the emulator does not model vectors of more than %d registers",
                            MAX_VECTOR);
        items[count++] = read_operand(reader, depth + 1);
    } while (take_mark(reader, ','));
    expect_mark(reader, close);
    into->count = count;
    into->items = NEW_ARRAY(reader->arena, Raw, count);
    memcpy(into->items, items, count * sizeof *items);
}

static Raw read_memory(Reader *reader, uint32_t depth) {
    Raw raw = {.kind = RAW_MEMORY, .token = reader->token};
    if (raw.token.kind != TOKEN_WORD && raw.token.kind != TOKEN_INTEGER)
        text_reject(reader, raw.token.line, "expected an address");
    scan_next(reader);
    raw.add = read_offset(reader);
    if (take_mark(reader, ',')) {
        if (take_mark(reader, '{'))
            read_list(reader, &raw, '}', depth);
        else
            text_incomplete(reader, raw.token.line,
                            "the emulator does not model addresses of this form");
    }
    expect_mark(reader, ']');
    return raw;
}

static Raw read_number(Reader *reader) {
    bool minus = false;
    uint32_t signs = 0;
    while (at_mark(reader, '-') || at_mark(reader, '+') || at_mark(reader, '~')) {
        if (at_mark(reader, '~') || ++signs > 1)
            text_incomplete(reader, reader->token.line,
                            "the emulator does not model constant expressions");
        minus = at_mark(reader, '-');
        scan_next(reader);
    }
    Raw raw = {.kind = RAW_NUMBER, .minus = minus, .token = reader->token};
    if (raw.token.kind != TOKEN_INTEGER && raw.token.kind != TOKEN_F32 &&
        raw.token.kind != TOKEN_F64)
        text_reject(reader, raw.token.line, "expected an operand");
    scan_next(reader);
    if (raw.token.kind == TOKEN_INTEGER) {
        if (minus) raw.token.value = 0 - raw.token.value;
        raw.minus = false;
        raw.token.value += (uint64_t)read_offset(reader);
    }
    return raw;
}

static Raw read_operand(Reader *reader, uint32_t depth) {
    if (depth > 4) text_reject(reader, reader->token.line, "operands are nested too deeply");
    if (take_mark(reader, '[')) return read_memory(reader, depth);
    if (take_mark(reader, '{')) {
        Raw raw = {.kind = RAW_VECTOR, .token = reader->token};
        read_list(reader, &raw, '}', depth);
        return raw;
    }
    if (at_mark(reader, '('))
        text_incomplete(reader, reader->token.line,
                        "the emulator does not model constant expressions and calls");
    bool negated = take_mark(reader, '!');
    if (reader->token.kind != TOKEN_WORD) return read_number(reader);
    Raw raw = {.kind = RAW_WORD, .negated = negated, .token = reader->token};
    scan_next(reader);
    raw.add = read_offset(reader);
    if (take_mark(reader, '|')) {
        raw.second = NEW(reader->arena, Raw);
        *raw.second = (Raw){.kind = RAW_WORD,
                            .negated = take_mark(reader, '!'),
                            .token = take_word(reader, "a predicate after `|`")};
    }
    return raw;
}

/* ---- statements ------------------------------------------------------------------------------ */

static void read_instruction(Reader *reader) {
    Guard guard = {0};
    if (take_mark(reader, '@')) {
        guard.present = true;
        guard.negated = take_mark(reader, '!');
        guard.name = take_word(reader, "a predicate after `@`");
    }
    Token word = take_word(reader, "an instruction");
    Raw operands[MAX_OPERANDS];
    uint32_t count = 0;
    if (word.length >= 4 && !memcmp(word.text, "call", 4))
        text_incomplete(reader, word.line, "the emulator does not model calls");
    if (!at_mark(reader, ';')) do {
            if (count == MAX_OPERANDS) text_reject(reader, word.line, "too many operands");
            operands[count++] = read_operand(reader, 0);
        } while (take_mark(reader, ','));
    expect_mark(reader, ';');
    decode_statement(reader, guard, word, operands, count);
}

static void add_label(Reader *reader, const Token *token) {
    const char *name = names_intern(reader->names, token->text, token->length);
    for (TextLabel *label = reader->scope->labels; label; label = label->next)
        if (label->name == name)
            text_reject(reader, token->line, "label `%s` is declared twice in one scope", name);
    TextLabel *label = NEW(reader->arena, TextLabel);
    *label = (TextLabel){name, (uint32_t)reader->code.count, reader->scope->labels};
    reader->scope->labels = label;
}

static void read_statement(Reader *reader) {
    Token *token = &reader->token;
    if (take_mark(reader, ';')) return;
    if (text_is(token, ".loc") || text_is(token, ".file")) {
        scan_skip_line(reader);
    } else if (text_is(token, ".pragma")) {
        skip_to_semicolon(reader);
    } else if (take_directive(reader, ".reg")) {
        read_registers(reader);
    } else if (take_directive(reader, ".shared") || take_directive(reader, ".shared::cta")) {
        read_storage(reader, SPACE_SHARED, false);
    } else if (take_directive(reader, ".local")) {
        read_storage(reader, SPACE_LOCAL, false);
    } else if (token->kind == TOKEN_WORD && *token->text == '.') {
        text_incomplete(reader, token->line, "the emulator does not model `%.*s` inside a kernel",
                        (int)token->length, token->text);
    } else if (token->kind == TOKEN_WORD) {
        /* A label or an instruction: the character after the word decides */
        const char *after = reader->at;
        while (after < reader->end && (*after == ' ' || *after == '\t')) after++;
        if (after < reader->end && *after == ':') {
            add_label(reader, token);
            scan_next(reader);
            expect_mark(reader, ':');
        } else {
            read_instruction(reader);
        }
    } else if (at_mark(reader, '@')) {
        read_instruction(reader);
    } else {
        text_reject(reader, token->line, "expected an instruction before `%.*s`",
                    (int)(token->length < 40 ? token->length : 40), token->text);
    }
}

static void read_body(Reader *reader) {
    uint32_t outer = reader->depth, opened = reader->token.line;
    expect_mark(reader, '{');
    open_scope(reader);
    while (reader->depth > outer) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, opened, "the body of this kernel has no closing `}`");
        if (take_mark(reader, '{'))
            open_scope(reader);
        else if (take_mark(reader, '}'))
            close_scope(reader);
        else
            read_statement(reader);
    }
}

static void resolve_branches(Reader *reader) {
    for (size_t i = 0; i < reader->branches.count; i++) {
        const Branch *branch = &reader->branches.items[i];
        TextLabel *found = NULL;
        for (TextScope *scope = branch->scope; scope && !found; scope = scope->parent)
            for (TextLabel *label = scope->labels; label && !found; label = label->next)
                if (label->name == branch->name) found = label;
        if (!found)
            text_reject(reader, branch->line, "label `%s` is not declared in this scope",
                        branch->name);
        reader->code.items[branch->inst].target = found->target;
    }
}

/* ---- entries and modules --------------------------------------------------------------------- */

static void read_parameters(Reader *reader) {
    Program *program = reader->program;
    if (!take_mark(reader, '(') || take_mark(reader, ')')) return;
    do {
        if (!take_directive(reader, ".param"))
            text_reject(reader, reader->token.line, "expected `.param`");
        Variable variable = read_variable(reader);
        Symbol *symbol = declare_variable(reader, &variable, SPACE_PARAM);
        uint64_t at = place(&program->parameter_bytes, &variable);
        if (program->parameter_bytes > 32764)
            text_reject(reader, variable.name.line,
                        "the parameters of this kernel take more than 32764 bytes");
        symbol->address = PARAMETER_BASE + at;
        vec_push(reader->arena, &program->parameters,
                 (Parameter){symbol->name, variable.type, (uint32_t)at, (uint32_t)variable.bytes,
                             variable.alignment});
    } while (take_mark(reader, ','));
    expect_mark(reader, ')');
}

static uint32_t take_product(Reader *reader) {
    uint64_t product = 1;
    do {
        uint64_t value = take_integer(reader);
        product = value > 65536 || product > 65536 ? 65537 : product * value;
    } while (take_mark(reader, ','));
    return product > 65536 ? 65536 : (uint32_t)product;
}

static void read_cluster(Reader *reader) {
    uint32_t *extents = reader->program->cluster;
    extents[0] = extents[1] = extents[2] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t extent = take_integer(reader);
        if (extent == 0 || extent > MAX_CLUSTER)
            text_reject(reader, reader->token.line, "an extent of a cluster must be 1 to %d",
                        MAX_CLUSTER);
        extents[i] = (uint32_t)extent;
        if (!take_mark(reader, ',')) return;
    }
}

static void read_performance(Reader *reader) {
    Program *program = reader->program;
    while (!at_mark(reader, '{')) {
        Token token = take_word(reader, "`{`");
        if (text_is(&token, ".reqntid"))
            program->required_threads = take_product(reader);
        else if (text_is(&token, ".maxntid"))
            program->most_threads = take_product(reader);
        else if (text_is(&token, ".maxnreg"))
            program->most_registers = (uint32_t)take_integer(reader);
        else if (text_is(&token, ".minnctapersm"))
            program->least_blocks = (uint32_t)take_integer(reader);
        else if (text_is(&token, ".pragma"))
            skip_to_semicolon(reader);
        else if (text_is(&token, ".reqnctapercluster"))
            read_cluster(reader);
        else if (text_is(&token, ".maxclusterrank"))
            take_product(reader);
        else if (text_is(&token, ".explicitcluster"))
            program->explicit_cluster = true;
        else
            text_incomplete(reader, token.line, "the emulator does not model `%.*s`",
                            (int)token.length, token.text);
    }
}

static void finish_constants(Reader *reader) {
    Program *program = reader->program;
    uint64_t mask = program->shared_alignment - 1u;
    uint64_t start = (SHARED_BASE + program->shared_bytes + mask) & ~mask;
    for (uint32_t b = 0; b < CONSTANT_BUCKETS; b++)
        for (Constant *c = reader->constants[b]; c; c = c->next) {
            if (c->kind == CONSTANT_PLAIN) continue;
            vec_push(reader->arena, &program->shared_addresses,
                     ((SharedAddress){c->offset, c->width}));
            for (uint32_t lane = 0; c->kind == CONSTANT_DYNAMIC_SHARED && lane < LANES; lane++) {
                uint64_t value = c->bits + start;
                memcpy(reader->constant_bytes.items + c->offset + lane * c->width, &value,
                       c->width);
            }
        }
    program->constants = reader->constant_bytes.items;
    program->constant_bytes = (uint32_t)reader->constant_bytes.count;
}

static void read_entry(Reader *reader, const Program *module, const Token *name) {
    Program *program = reader->program = NEW(reader->arena, Program);
    *program = *module;
    program->entry = names_intern(reader->names, name->text, name->length);
    memset(&reader->code, 0, sizeof reader->code);
    memset(&reader->branches, 0, sizeof reader->branches);
    memset(&reader->constant_bytes, 0, sizeof reader->constant_bytes);
    memset(reader->constants, 0, sizeof reader->constants);
    decode_new_register(reader, T_B64); /* slot 0: the target of sinks */
    open_scope(reader);
    read_parameters(reader);
    read_performance(reader);
    read_body(reader);
    Token exit = {.kind = TOKEN_WORD, .text = "exit", .length = 4, .line = reader->token.line};
    decode_statement(reader, (Guard){0}, exit, NULL, 0);
    close_scope(reader);
    resolve_branches(reader);
    finish_constants(reader);
    program->code = reader->code.items;
    program->count = (uint32_t)reader->code.count;
    for (uint32_t i = 0; i < program->count; i++)
        program->multiplies |= program->code[i].opcode == OP_WGMMA;
    flow_rank(reader->arena, program);
}

/* A module-scope variable: shared memory is declared; other variables are rejected when a kernel
 * names them. */
static void read_module_variable(Reader *reader, bool is_extern) {
    if (take_directive(reader, ".shared")) {
        read_storage(reader, SPACE_SHARED, is_extern);
        return;
    }
    Space space = text_is(&reader->token, ".const") ? SPACE_CONST : SPACE_GLOBAL;
    scan_next(reader);
    Variable variable = read_variable(reader);
    declare_variable(reader, &variable, space);
    skip_to_semicolon(reader);
}

static void skip_function(Reader *reader) {
    while (!at_mark(reader, '{') && !at_mark(reader, ';')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "this function has no closing `}`");
        scan_next(reader);
    }
    if (at_mark(reader, '{'))
        skip_braces(reader);
    else
        scan_next(reader);
}

static Program *read_module(Reader *reader, const char *wanted, bool every) {
    Program *module = reader->program, *found = NULL;
    bool versioned = false;
    while (reader->token.kind != TOKEN_END) {
        Token token = reader->token;
        bool is_extern = false;
        while (take_directive(reader, ".visible") || take_directive(reader, ".weak") ||
               take_directive(reader, ".common"))
            token = reader->token;
        if (take_directive(reader, ".extern")) is_extern = true, token = reader->token;
        if (take_directive(reader, ".version")) {
            versioned = true;
            scan_next(reader);
        } else if (text_is(&token, ".target") || text_is(&token, ".address_size") ||
                   text_is(&token, ".file") || text_is(&token, ".loc")) {
            scan_skip_line(reader);
        } else if (text_is(&token, ".pragma") || text_is(&token, ".alias")) {
            skip_to_semicolon(reader);
        } else if (text_is(&token, ".section")) {
            while (!at_mark(reader, '{') && reader->token.kind != TOKEN_END) scan_next(reader);
            skip_braces(reader);
        } else if (text_is(&token, ".shared") || text_is(&token, ".global") ||
                   text_is(&token, ".const")) {
            read_module_variable(reader, is_extern);
        } else if (take_directive(reader, ".func")) {
            skip_function(reader);
        } else if (take_directive(reader, ".entry")) {
            Token name = take_word(reader, "the name of a kernel");
            bool is_it = !wanted ||
                         (strlen(wanted) == name.length && !memcmp(wanted, name.text, name.length));
            if (every || (is_it && !found)) {
                read_entry(reader, module, &name);
                found = reader->program;
                reader->program = module;
            } else {
                skip_function(reader);
            }
        } else {
            text_reject(reader, token.line, "`%.*s` is not allowed here",
                        (int)(token.length < 40 ? token.length : 40), token.text);
        }
        if (!versioned) text_reject(reader, token.line, "a PTX module begins with `.version`");
    }
    return found;
}

ReadStatus program_read(Arena *arena, const char *ptx, size_t length, const char *entry, bool every,
                        Program **out, ReadFault *fault) {
    Reader *reader = NEW(arena, Reader);
    reader->arena = arena;
    reader->fault = fault;
    reader->names = names_new(arena);
    reader->text = reader->at = ptx;
    reader->end = ptx + length;
    reader->line = 1;
    reader->program = NEW(arena, Program);
    reader->program->text = ptx;
    reader->program->length = length;
    reader->program->shared_alignment = 16;
    reader->scope = NEW(arena, TextScope);
    *out = NULL;
    if (length > UINT32_MAX / 2) {
        *fault = (ReadFault){
            P0700, 0,
            arena_printf(arena, "the PTX has %zu bytes, more than the emulator reads", length)};
        return READ_REJECTED;
    }
    if (setjmp(reader->stop)) return reader->status;
    scan_next(reader);
    *out = read_module(reader, entry, every);
    if (*out) return READ_FINE;
    *fault = (ReadFault){P0702, 0, "the PTX has no kernel"};
    if (entry) fault->why = arena_printf(arena, "%s `%s`", fault->why, entry);
    return READ_REJECTED;
}
