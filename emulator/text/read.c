/* PTX text to a Program: directives, declarations, scopes, labels, operands as written.
 *
 * In: the text of a module and the name of the wanted entry. Out: its Program. Reads PTX of
 * other compilers too: nested scopes with their own registers and labels, register ranges, debug
 * directives. The module is read first, then the entry: what it declares is known wherever it
 * stands. */
#include "emulator/text/text.h"

#include <string.h>

#include <string.h>

enum { MAX_OPERANDS = 16 };

/* ---- statements ------------------------------------------------------------------------------ */

static void read_instruction(Reader *reader) {
    Guard guard = {0};
    if (text_take(reader, '@')) {
        guard.present = true;
        guard.negated = text_take(reader, '!');
        guard.name = text_word(reader, "a predicate after `@`");
    }
    Token word = text_word(reader, "an instruction");
    Raw operands[MAX_OPERANDS];
    uint32_t count = 0;
    if (text_is(&word, "call") || text_is(&word, "call.uni")) {
        read_call(reader, guard, word);
        return;
    }
    if (!text_at(reader, ';')) do {
            if (count == MAX_OPERANDS) text_reject(reader, word.line, "too many operands");
            operands[count++] = read_operand(reader);
        } while (text_take(reader, ','));
    text_expect(reader, ';');
    reader->statement_ended = true;
    decode_statement(reader, guard, word, operands, count);
}

/* An instruction that is not modelled is noted, and reading goes on after it. */
static void try_instruction(Reader *reader) {
    reader->statement_ended = false;
    if (setjmp(reader->resume) == 0) {
        reader->resumes = true;
        read_instruction(reader);
    } else if (!reader->statement_ended) {
        text_skip_statement(reader);
    }
    reader->resumes = false;
}

static void add_label(Reader *reader, const Token *token) {
    const char *name = names_intern(reader->names, token->text, token->length);
    for (TextLabel *label = reader->scope->labels; label; label = label->next)
        if (label->name == name)
            text_reject(reader, token->line, "label `%s` is declared twice in one scope", name);
    TextLabel *label = NEW(reader->arena, TextLabel);
    *label = (TextLabel){
        .name = name, .target = (uint32_t)reader->code.count, .next = reader->scope->labels};
    reader->scope->labels = label;
}

/* `list: .branchtargets a, b;` the list belongs to the label before it */
static void read_targets(Reader *reader) {
    TextLabel *label = reader->scope->labels;
    if (!label || label->names.count > 0)
        text_reject(reader, reader->token.line, "`.branchtargets` needs a label");
    do {
        Token name = text_word(reader, "a label");
        vec_push(reader->arena, &label->names, names_intern(reader->names, name.text, name.length));
    } while (text_take(reader, ','));
    text_expect(reader, ';');
}

static void read_statement(Reader *reader) {
    Token *token = &reader->token;
    if (text_take(reader, ';')) return;
    if (text_is(token, ".loc") || text_is(token, ".file")) {
        scan_skip_line(reader);
    } else if (text_is(token, ".pragma") || text_is(token, ".callprototype") ||
               text_is(token, ".calltargets")) {
        text_skip_statement(reader);
    } else if (text_directive(reader, ".branchtargets")) {
        read_targets(reader);
    } else if (text_directive(reader, ".param")) {
        read_call_parameter(reader);
    } else if (text_directive(reader, ".reg")) {
        read_registers(reader);
    } else if (text_directive(reader, ".shared") || text_directive(reader, ".shared::cta")) {
        read_storage(reader, SPACE_SHARED, false);
    } else if (text_directive(reader, ".local")) {
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
            text_expect(reader, ':');
        } else {
            try_instruction(reader);
        }
    } else if (text_at(reader, '@')) {
        try_instruction(reader);
    } else {
        text_reject(reader, token->line, "expected an instruction before `%.*s`",
                    (int)(token->length < 40 ? token->length : 40), token->text);
    }
}

void read_body(Reader *reader) {
    uint32_t outer = reader->depth, opened = reader->token.line;
    text_expect(reader, '{');
    text_open_scope(reader);
    while (reader->depth > outer) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, opened, "the body of this kernel has no closing `}`");
        if (text_take(reader, '{'))
            text_open_scope(reader);
        else if (text_take(reader, '}'))
            text_close_scope(reader);
        else
            read_statement(reader);
    }
}

static const TextLabel *find_label(Reader *reader, const Branch *branch, const char *name) {
    for (TextScope *scope = branch->scope; scope; scope = scope->parent)
        for (TextLabel *label = scope->labels; label; label = label->next)
            if (label->name == name) return label;
    text_reject(reader, branch->line, "label `%s` is not declared in this scope", name);
}

static void resolve_branches(Reader *reader) {
    Program *program = reader->program;
    for (size_t i = 0; i < reader->branches.count; i++) {
        const Branch *branch = &reader->branches.items[i];
        const TextLabel *found = find_label(reader, branch, branch->name);
        Inst *inst = &reader->code.items[branch->inst];
        inst->target = found->target;
        if (inst->opcode == OP_BRA) continue;
        inst->target = (uint32_t)program->branch_targets.count;
        vec_push(reader->arena, &program->branch_targets, (uint32_t)found->names.count);
        for (size_t k = 0; k < found->names.count; k++)
            vec_push(reader->arena, &program->branch_targets,
                     find_label(reader, branch, found->names.items[k])->target);
    }
}

/* ---- entries and modules --------------------------------------------------------------------- */

static void read_parameters(Reader *reader) {
    Program *program = reader->program;
    if (!text_take(reader, '(') || text_take(reader, ')')) return;
    do {
        if (!text_directive(reader, ".param"))
            text_reject(reader, reader->token.line, "expected `.param`");
        Variable variable = read_variable(reader);
        Symbol *symbol = declare_variable(reader, &variable, SPACE_PARAM);
        uint64_t at = place_variable(&program->parameter_bytes, &variable);
        if (program->parameter_bytes > 32764)
            text_reject(reader, variable.name.line,
                        "the parameters of this kernel take more than 32764 bytes");
        symbol->address = PARAMETER_BASE + at;
        vec_push(reader->arena, &program->parameters,
                 (Parameter){symbol->name, variable.type, (uint32_t)at, (uint32_t)variable.bytes,
                             variable.alignment});
    } while (text_take(reader, ','));
    text_expect(reader, ')');
}

static uint32_t take_product(Reader *reader) {
    uint64_t product = 1;
    do {
        uint64_t value = text_integer(reader);
        product = value > 65536 || product > 65536 ? 65537 : product * value;
    } while (text_take(reader, ','));
    return product > 65536 ? 65536 : (uint32_t)product;
}

/* Up to three extents; those that are missing are 1. */
static void read_extents(Reader *reader, uint32_t *extents, uint64_t most, const char *what) {
    extents[0] = extents[1] = extents[2] = 1;
    for (int i = 0; i < 3; i++) {
        uint64_t extent = text_integer(reader);
        if (extent == 0 || extent > most)
            text_reject(reader, reader->token.line, "an extent of a %s must be 1 to %u", what,
                        (unsigned)most);
        extents[i] = (uint32_t)extent;
        if (!text_take(reader, ',')) return;
    }
}

static void read_performance(Reader *reader) {
    Program *program = reader->program;
    while (!text_at(reader, '{')) {
        Token token = text_word(reader, "`{`");
        needs_check(reader, &token, false);
        if (text_is(&token, ".reqntid"))
            read_extents(reader, program->required_block, 1024, "block");
        else if (text_is(&token, ".maxntid"))
            program->most_threads = take_product(reader);
        else if (text_is(&token, ".maxnreg"))
            program->most_registers = (uint32_t)text_integer(reader);
        else if (text_is(&token, ".minnctapersm"))
            program->least_blocks = (uint32_t)text_integer(reader);
        else if (text_is(&token, ".pragma"))
            text_skip_statement(reader);
        else if (text_is(&token, ".reqnctapercluster"))
            read_extents(reader, program->cluster, MAX_CLUSTER, "cluster");
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

/* `declared`: without its body */
static void read_entry(Reader *reader, const Program *module, const Token *name, bool declared) {
    Program *program = reader->program = NEW(reader->arena, Program);
    *program = *module;
    program->entry = names_intern(reader->names, name->text, name->length);
    memset(&reader->code, 0, sizeof reader->code);
    memset(&reader->branches, 0, sizeof reader->branches);
    memset(&reader->callees, 0, sizeof reader->callees);
    memset(&reader->calls, 0, sizeof reader->calls);
    memset(&program->registers, 0, sizeof program->registers);
    reader->function = 0;
    memset(&reader->constant_bytes, 0, sizeof reader->constant_bytes);
    memset(reader->constants, 0, sizeof reader->constants);
    decode_new_register(reader, T_B64); /* slot 0: the target of sinks */
    text_open_scope(reader);
    read_parameters(reader);
    read_performance(reader);
    if (declared) {
        text_close_scope(reader);
        return;
    }
    read_body(reader);
    Token exit = {.kind = TOKEN_WORD, .text = "exit", .length = 4, .line = reader->token.line};
    decode_statement(reader, (Guard){0}, exit, NULL, 0);
    text_close_scope(reader);
    read_functions(reader);
    resolve_branches(reader);
    finish_constants(reader);
    program->code = reader->code.items;
    program->count = (uint32_t)reader->code.count;
    for (uint32_t i = 0; i < program->count; i++)
        program->multiplies |= program->code[i].opcode == OP_WGMMA;
    flow_rank(reader->arena, program);
    flow_answers(reader->arena, program);
}

/* ---- modules --------------------------------------------------------------------------------- */

/* An entry of the module: its name and the place in the text after that */
typedef struct Entry {
    Token name;
    TextPlace place;
} Entry;
typedef VEC(Entry) Entries;

static void skip_entry(Reader *reader) {
    while (!text_at(reader, '{') && !text_at(reader, ';')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "this function has no closing `}`");
        scan_next(reader);
    }
    if (text_at(reader, '{'))
        text_skip_braces(reader);
    else
        scan_next(reader);
}

static void note_entry(Reader *reader, Entries *entries) {
    Entry entry = {.name = text_word(reader, "the name of a kernel")};
    entry.place = text_place(reader);
    vec_push(reader->arena, entries, entry);
    skip_entry(reader);
}

/* A declaration after its linking directives */
static void read_declaration(Reader *reader, bool is_extern, Entries *entries) {
    Token token = reader->token;
    if (text_directive(reader, ".shared"))
        read_storage(reader, SPACE_SHARED, is_extern);
    else if (text_directive(reader, ".global"))
        read_module_variable(reader, SPACE_GLOBAL, is_extern);
    else if (text_directive(reader, ".const"))
        read_module_variable(reader, SPACE_CONST, is_extern);
    else if (text_directive(reader, ".func"))
        read_function_place(reader);
    else if (text_directive(reader, ".entry"))
        note_entry(reader, entries);
    else
        text_reject(reader, token.line, "`%.*s` is not allowed here",
                    (int)(token.length < 40 ? token.length : 40), token.text);
}

/* Declares what is in the module, and notes where its entries are. */
static void read_module(Reader *reader, Entries *entries) {
    bool versioned = false;
    while (reader->token.kind != TOKEN_END) {
        bool is_extern = false;
        while (text_directive(reader, ".visible") || text_directive(reader, ".weak") ||
               text_directive(reader, ".common"))
            continue;
        if (text_directive(reader, ".extern")) is_extern = true;
        Token token = reader->token;
        if (text_directive(reader, ".version")) {
            versioned = true;
            needs_version(reader, &reader->token);
            scan_next(reader);
        } else if (text_directive(reader, ".target")) {
            needs_target(reader, &reader->token);
            scan_skip_line(reader);
        } else if (text_is(&token, ".address_size") || text_is(&token, ".file") ||
                   text_is(&token, ".loc")) {
            scan_skip_line(reader);
        } else if (text_is(&token, ".pragma") || text_is(&token, ".alias")) {
            text_skip_statement(reader);
        } else if (text_is(&token, ".section")) {
            while (!text_at(reader, '{') && reader->token.kind != TOKEN_END) scan_next(reader);
            text_skip_braces(reader);
        } else {
            read_declaration(reader, is_extern, entries);
        }
        if (!versioned) text_reject(reader, token.line, "a PTX module begins with `.version`");
    }
    finish_variables(reader);
}

/* Reads the wanted entries; the last one read is returned. */
static Program *read_entries(Reader *reader, const Entries *entries, const char *wanted,
                             bool every) {
    Program *module = reader->program, *found = NULL;
    for (size_t i = 0; i < entries->count; i++) {
        const Entry *entry = &entries->items[i];
        bool is_it = !wanted || text_same(entry->name.text, entry->name.length, wanted);
        if (!every && !(is_it && !found)) continue;
        text_go_to(reader, entry->place);
        read_entry(reader, module, &entry->name, false);
        found = reader->program;
        reader->program = module;
    }
    text_stop_if_missing(reader);
    return found;
}

static Reader *new_reader(Arena *arena, const char *ptx, size_t length, ReadFault *fault) {
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
    return reader;
}

static bool is_too_long(Arena *arena, size_t length, ReadFault *fault) {
    if (length <= UINT32_MAX / 2) return false;
    *fault = (ReadFault){
        .code = P0700,
        .why = arena_printf(arena, "the PTX has %zu bytes, more than the emulator reads", length)};
    return true;
}

ReadStatus program_read(Arena *arena, const char *ptx, size_t length, const char *entry, bool every,
                        Program **out, ReadFault *fault) {
    *out = NULL;
    if (is_too_long(arena, length, fault)) return READ_REJECTED;
    Reader *reader = new_reader(arena, ptx, length, fault);
    if (setjmp(reader->stop)) return reader->status;
    scan_next(reader);
    Entries entries = {0};
    read_module(reader, &entries);
    *out = read_entries(reader, &entries, entry, every);
    if (*out) return READ_FINE;
    *fault = (ReadFault){.code = P0702, .why = "the PTX has no kernel"};
    if (entry) fault->why = arena_printf(arena, "%s `%s`", fault->why, entry);
    return READ_REJECTED;
}

ReadStatus program_list(Arena *arena, const char *ptx, size_t length, Programs *out,
                        ReadFault *fault) {
    if (is_too_long(arena, length, fault)) return READ_REJECTED;
    Reader *reader = new_reader(arena, ptx, length, fault);
    const Program *module = reader->program;
    if (setjmp(reader->stop)) return reader->status;
    scan_next(reader);
    Entries entries = {0};
    read_module(reader, &entries);
    for (size_t i = 0; i < entries.count; i++) {
        text_go_to(reader, entries.items[i].place);
        read_entry(reader, module, &entries.items[i].name, true);
        vec_push(arena, out, reader->program);
    }
    return READ_FINE;
}
