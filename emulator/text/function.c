/* Functions of a module and their calls (PTX ISA 5.1.6, 9.7.12).
 *
 * In: `.func` directives and call statements. Out: the code of each function that the entry calls,
 * directly or not, behind the code of the entry. Parameters in `.param` space lie in local memory.
 * The registers of a function have fixed places, so those of a function that can call itself are
 * saved by its calls (call.c). */
#include "emulator/findings/demangle.h"
#include "emulator/machine.h"
#include "emulator/text/text.h"

#include <string.h>

enum { MAX_FUNCTIONS = 1000, MAX_RESULT_BYTES = 1024, MAX_PASSED = 100 };

/* ---- the module ------------------------------------------------------------------------------ */

static void skip_parentheses(Reader *reader) {
    while (!text_take(reader, ')')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "this `(` is not closed");
        scan_next(reader);
    }
}

static Symbol *symbol_of(Reader *reader, const Token *name) {
    Symbol *known = text_lookup(reader, name->text, name->length);
    if (known && known->kind == SYMBOL_FUNCTION) return known;
    Symbol *symbol = text_add_symbol(reader, reader->scope, text_new_name(reader, name),
                                     SYMBOL_FUNCTION, reader->depth);
    symbol->function = NEW(reader->arena, Function);
    symbol->function->name = symbol->name;
    symbol->address = FUNCTIONS_BASE + 16 * (uint64_t)++reader->function_count;
    return symbol;
}

void read_function_place(Reader *reader) {
    TextPlace place = text_place(reader);
    if (text_take(reader, '(')) skip_parentheses(reader);
    Token name = text_word(reader, "the name of a function");
    Function *function = symbol_of(reader, &name)->function;
    while (!text_at(reader, '{') && !text_at(reader, ';')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, name.line, "this function has no closing `}`");
        scan_next(reader);
    }
    if (text_take(reader, ';')) return;
    if (function->is_defined)
        text_reject(reader, name.line, "function `%s` is defined twice", function->name);
    function->is_defined = true;
    function->place = place;
    text_skip_braces(reader);
}

/* ---- bodies ---------------------------------------------------------------------------------- */

/* A parameter of a function, or a variable for one at a call */
static Symbol *declare_parameter(Reader *reader) {
    Variable variable = read_variable(reader);
    Symbol *symbol = declare_variable(reader, &variable, SPACE_LOCAL);
    symbol->is_parameter = true;
    symbol->bytes = variable.bytes;
    symbol->address = place_variable(&reader->program->local_bytes, &variable);
    if (reader->program->local_bytes > MAX_LOCAL_BYTES)
        text_reject(reader, variable.name.line,
                    "the variables of this kernel are too large to emulate");
    return symbol;
}

void read_call_parameter(Reader *reader) {
    do declare_parameter(reader);
    while (text_take(reader, ','));
    text_expect(reader, ';');
}

static Operand local_operand(const Symbol *symbol) {
    return (Operand){
        .is_local = true, .offset = (uint32_t)symbol->address, .add = (int64_t)symbol->bytes};
}

static void read_formals(Reader *reader, Formals *formals) {
    formals->count = 0;
    if (!text_take(reader, '(') || text_take(reader, ')')) return;
    do {
        if (formals->count == MAX_PASSED)
            text_reject(reader, reader->token.line, "a function has too many parameters");
        if (text_directive(reader, ".param")) {
            vec_push(reader->arena, formals, local_operand(declare_parameter(reader)));
        } else {
            if (!text_directive(reader, ".reg"))
                text_reject(reader, reader->token.line, "expected `.param` or `.reg`");
            vec_push(reader->arena, formals, read_register(reader)->operand);
        }
    } while (text_take(reader, ','));
    text_expect(reader, ')');
}

static void read_function(Reader *reader, Function *function) {
    Program *program = reader->program;
    ProgramFunction row = {.name = function->name,
                           .first = (uint32_t)reader->code.count,
                           .first_slot = program->slots,
                           .first_local = program->local_bytes};
    reader->function = (uint32_t)program->functions.count;
    text_go_to(reader, function->place);
    text_open_scope(reader);
    read_formals(reader, &function->results);
    text_word(reader, "the name of a function");
    read_formals(reader, &function->inputs);
    while (!text_at(reader, '{')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "expected `{`");
        scan_next(reader);
    }
    reader->has_variables = false;
    read_body(reader);
    Token ret = {.kind = TOKEN_WORD, .text = "ret", .length = 3, .line = reader->token.line};
    decode_statement(reader, (Guard){0}, ret, NULL, 0);
    text_close_scope(reader);
    row.end = (uint32_t)reader->code.count;
    row.end_slot = program->slots;
    row.end_local = program->local_bytes;
    row.has_variables = reader->has_variables;
    vec_push(reader->arena, &program->functions, row);
}

/* ---- calls ----------------------------------------------------------------------------------- */

/* `(a, b)`; 0: there is no list */
static uint32_t read_passed(Reader *reader, Raw *passed) {
    uint32_t count = 0;
    if (!text_take(reader, '(') || text_take(reader, ')')) return 0;
    do {
        if (count == MAX_PASSED)
            text_reject(reader, reader->token.line, "a call passes too many values");
        passed[count++] = read_operand(reader);
    } while (text_take(reader, ','));
    text_expect(reader, ')');
    return count;
}

static Function *find_callee(Reader *reader, const Token *name) {
    const Symbol *symbol = text_lookup(reader, name->text, name->length);
    if (!symbol)
        text_reject(reader, name->line, "`%.*s` is not declared", (int)name->length, name->text);
    if (symbol->kind == SYMBOL_REGISTER)
        text_incomplete(reader, name->line, "the emulator does not model calls of an address");
    if (symbol->kind != SYMBOL_FUNCTION)
        text_reject(reader, name->line, "`%s` is not a function", symbol->name);
    uint32_t results, inputs;
    if (!symbol->function->is_defined && !call_external(symbol->name, &results, &inputs))
        text_incomplete(reader, name->line,
                        "function `%s` is declared, but not defined in this module",
                        demangle_or_keep(reader->arena, symbol->name));
    return symbol->function;
}

void read_call(Reader *reader, Guard guard, Token word) {
    Raw results[MAX_PASSED], inputs[MAX_PASSED];
    uint32_t result_count = 0, input_count = 0;
    if (text_at(reader, '(')) {
        result_count = read_passed(reader, results);
        text_expect(reader, ',');
    }
    Token name = text_word(reader, "the name of a function");
    if (text_take(reader, ',')) input_count = read_passed(reader, inputs);
    Function *callee = find_callee(reader, &name);
    text_expect(reader, ';');
    reader->statement_ended = true;
    if (callee->is_defined && callee->program != reader->program) {
        if (reader->callees.count == MAX_FUNCTIONS)
            text_incomplete(reader, word.line, "this kernel calls more than %d functions",
                            MAX_FUNCTIONS);
        callee->program = reader->program;
        callee->number = (uint32_t)reader->callees.count;
        vec_push(reader->arena, &reader->callees, callee);
    }
    vec_push(reader->arena, &reader->calls,
             ((Call){(uint32_t)reader->code.count, reader->function, word.line, callee}));
    decode_call(reader, guard, word, callee->name, results, result_count, inputs, input_count);
}

/* True if a value of one can be passed as the other */
static bool same_size(const Operand *a, const Operand *b) {
    return a->sink || b->sink ||
           (a->is_local == b->is_local && a->add == b->add &&
            (a->is_local || a->width == b->width));
}

/* Gives a call the places of its callee's parameters. Its operands are pairs, from and to: first
 * the results, then the inputs. */
static void resolve_call(Reader *reader, const Call *call) {
    const Function *callee = call->callee;
    Inst *inst = &reader->code.items[call->inst];
    Operand *ops = (Operand *)(uintptr_t)inst->ops;
    uint32_t results = inst->vector, inputs = inst->op_count / 2u - results;
    if (results != callee->results.count || inputs != callee->inputs.count)
        text_reject(reader, call->line, "this call does not have the parameters of `%s`",
                    callee->name);
    if (results > 1)
        text_incomplete(reader, call->line, "the emulator does not model several results");
    for (uint32_t i = 0; i < results + inputs; i++) {
        bool is_result = i < results;
        Operand *formal = &ops[2 * i + (is_result ? 0 : 1)], *other = &ops[2 * i + is_result];
        *formal = is_result ? callee->results.items[i] : callee->inputs.items[i - results];
        if (!same_size(formal, other))
            text_reject(reader, call->line, "parameter %u of this call does not fit `%s`",
                        1 + i - (is_result ? 0 : results), callee->name);
        if (is_result && formal->is_local && formal->add > MAX_RESULT_BYTES)
            text_incomplete(reader, call->line,
                            "the emulator does not model results of more than %d bytes",
                            MAX_RESULT_BYTES);
    }
    inst->target = reader->program->functions.items[callee->number + 1].first;
}

/* True if a chain of calls leads from the function back to it. Calls are in the order of their
 * callers. */
static bool leads_back(Reader *reader, uint32_t from, const uint32_t *first_call, bool *reached,
                       uint32_t *stack) {
    uint32_t depth = 0;
    memset(reached, 0, reader->callees.count + 1);
    stack[depth++] = from;
    while (depth > 0) {
        uint32_t caller = stack[--depth];
        for (uint32_t i = first_call[caller]; i < first_call[caller + 1]; i++) {
            const Function *callee = reader->calls.items[i].callee;
            if (!callee->is_defined) continue;
            if (callee->number + 1 == from) return true;
            if (!reached[callee->number + 1]) stack[depth++] = callee->number + 1;
            reached[callee->number + 1] = true;
        }
    }
    return false;
}

static void mark_recursive(Reader *reader) {
    uint32_t count = (uint32_t)reader->program->functions.count, caller = 0;
    uint32_t *first_call = NEW_ARRAY(reader->arena, uint32_t, count + 1),
             *stack = NEW_ARRAY(reader->arena, uint32_t, count + 1);
    bool *reached = NEW_ARRAY(reader->arena, bool, count + 1);
    for (uint32_t i = 0; i < reader->calls.count; i++)
        while (caller < reader->calls.items[i].caller) first_call[++caller] = i;
    while (caller < count) first_call[++caller] = (uint32_t)reader->calls.count;
    for (uint32_t f = 1; f < count; f++)
        reader->program->functions.items[f].is_recursive =
            leads_back(reader, f, first_call, reached, stack);
}

void read_functions(Reader *reader) {
    ProgramFunction entry = {.name = reader->program->entry, .end = (uint32_t)reader->code.count};
    vec_push(reader->arena, &reader->program->functions, entry);
    for (size_t i = 0; i < reader->callees.count; i++)
        read_function(reader, reader->callees.items[i]);
    mark_recursive(reader);
    for (size_t i = 0; i < reader->calls.count; i++) {
        const Call *call = &reader->calls.items[i];
        if (!call->callee->is_defined) continue;
        const ProgramFunction *callee = &reader->program->functions.items[call->callee->number + 1];
        resolve_call(reader, call);
        if (callee->is_recursive && callee->has_variables)
            text_incomplete(reader, call->line,
                            "the emulator does not model functions that call themselves and have "
                            "variables in local memory: `%s`",
                            demangle_or_keep(reader->arena, callee->name));
        reader->code.items[call->inst].mods.choice = callee->is_recursive ? CALL_SAVES : CALL_PLAIN;
    }
}
