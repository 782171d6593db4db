/* Decodes a statement to an instruction, once: its operands by the letters of the opcode's row,
 * then the handler. A statement without handler is "not modelled"; operands of the wrong number,
 * kind or width are rejected, as ptxas does. */
#include "emulator/machine.h"
#include "emulator/text/text.h"

#include <string.h>

static void push_vector(Decoder *d, const Raw *raw, Type type, bool writes) {
    uint8_t width = type_rows[type].bytes;
    uint32_t wanted = d->inst.mods.vector ? d->inst.mods.vector : 1;
    const Raw *items = raw->kind == RAW_VECTOR ? raw->items : raw;
    uint32_t count = raw->kind == RAW_VECTOR ? raw->count : 1;
    if (count != wanted)
        text_reject(d->reader, d->word.line, "`%.*s` needs %u registers, not %u",
                    (int)d->word.length, d->word.text, wanted, count);
    for (uint32_t i = 0; i < count; i++)
        decode_push(d, decode_value(d, &items[i], type, width, true, writes), writes);
    d->inst.vector = (uint8_t)count;
}

/* A vector of 32-bit registers; `tracked`: the instruction itself checks which registers are
 * written and in flight. */
static void push_fragment(Decoder *d, const Raw *raw, bool writes, bool tracked) {
    const Raw *items = raw->kind == RAW_VECTOR ? raw->items : raw;
    uint32_t count = raw->kind == RAW_VECTOR ? raw->count : 1;
    if (count > 128)
        text_reject(d->reader, d->word.line, "`%.*s` does not take %u registers",
                    (int)d->word.length, d->word.text, count);
    for (uint32_t i = 0; i < count; i++) {
        Operand operand = decode_value(d, &items[i], T_NONE, 4, false, writes);
        if (tracked)
            vec_push(d->reader->arena, &d->ops, operand);
        else
            decode_push(d, operand, writes);
    }
    d->inst.vector = (uint8_t)count;
}

/* Fragment `side` of mma.sync: as many registers as its shape and types have */
static void push_mma(Decoder *d, const Raw *raw, char side) {
    const Raw *items = raw->kind == RAW_VECTOR ? raw->items : raw;
    uint32_t count = raw->kind == RAW_VECTOR ? raw->count : 1,
             wanted = mma_registers(&d->inst.mods, side);
    if (wanted && count != wanted)
        text_reject(d->reader, d->word.line, "`%.*s` needs %u registers for %c, not %u",
                    (int)d->word.length, d->word.text, wanted, side, count);
    uint8_t width = d->inst.mods.types[1] == T_F64 ? 8 : 4;
    for (uint32_t i = 0; i < count && wanted; i++)
        decode_push(d, decode_value(d, &items[i], T_NONE, width, false, side == 'D'), side == 'D');
}

/* Operand A of wgmma; `vector` is still the number of the accumulator's registers */
static void push_matrix(Decoder *d, const Raw *raw) {
    uint8_t registers = d->inst.vector;
    if (raw->kind == RAW_VECTOR)
        push_fragment(d, raw, false, true);
    else
        decode_push(d, decode_value(d, raw, T_U64, 8, false, false), false);
    d->inst.vector = registers;
}

static void push_predicate(Decoder *d, const Raw *raw, bool writes) {
    decode_push(d, decode_value(d, raw, T_PRED, 0, false, writes), writes);
}

/* A destination and the predicate after `|`; a missing one becomes a sink */
static void push_pair(Decoder *d, const Raw *raw, bool first_is_predicate) {
    uint8_t width = first_is_predicate ? 0 : 4;
    decode_push(d, decode_value(d, raw, first_is_predicate ? T_PRED : T_B32, width, false, true),
                true);
    if (raw->second)
        push_predicate(d, raw->second, true);
    else
        decode_push(d, decode_sink, true);
}

static void push_map(Decoder *d, const Raw *raw) {
    if (raw->count != d->inst.mods.dimensions)
        text_reject(d->reader, d->word.line, "`%.*s` needs %u coordinates, not %u",
                    (int)d->word.length, d->word.text, d->inst.mods.dimensions, raw->count);
    Raw base = *raw;
    decode_push(d, decode_address(d, &base), false);
    for (uint32_t i = 0; i < raw->count; i++)
        decode_push(d, decode_value(d, &raw->items[i], T_S32, 4, false, false), false);
}

static void push_operand(Decoder *d, char letter, const Raw *raw) {
    const Mods *mods = &d->inst.mods;
    Type type = (Type)mods->types[0], second = (Type)mods->types[1];
    uint8_t width = type_rows[type].bytes;
    uint8_t wide = mods->flags & FLAG_WIDE ? (uint8_t)(2 * width) : width;
    Type wide_type = mods->flags & FLAG_WIDE ? T_NONE : type;
    switch (letter) {
    case 'd': decode_push(d, decode_value(d, raw, type, width, false, true), true); break;
    case 's': decode_push(d, decode_value(d, raw, type, width, false, false), false); break;
    case 'w': decode_push(d, decode_value(d, raw, wide_type, wide, false, true), true); break;
    case 'x': decode_push(d, decode_value(d, raw, wide_type, wide, false, false), false); break;
    case 't':
        decode_push(d, decode_value(d, raw, second, type_rows[second].bytes, false, true), true);
        break;
    case 'e':
        decode_push(d, decode_value(d, raw, second, type_rows[second].bytes, false, false), false);
        break;
    case 'U': decode_push(d, decode_value(d, raw, T_U32, 4, false, true), true); break;
    case 'u': decode_push(d, decode_value(d, raw, T_U32, 4, false, false), false); break;
    case 'q': decode_push(d, decode_value(d, raw, T_U64, 8, false, false), false); break;
    case 'f': decode_push(d, decode_value(d, raw, T_F32, 4, false, false), false); break;
    case 'z': decode_push(d, decode_value(d, raw, T_U64, 8, false, true), true); break;
    case 'D': push_pair(d, raw, true); break;
    case 'S': push_pair(d, raw, false); break;
    case 'p': push_predicate(d, raw, false); break;
    case 'W': decode_push(d, decode_value(d, raw, type, width, true, true), true); break;
    case 'E':
        decode_push(d, decode_value(d, raw, second, type_rows[second].bytes, true, false), false);
        break;
    case 'V': push_vector(d, raw, type, true); break;
    case 'v': push_vector(d, raw, type, false); break;
    case 'm': decode_push(d, decode_address(d, raw), false); break;
    case 'M': push_map(d, raw); break;
    case 'h': decode_push(d, decode_value(d, raw, T_U16, 2, false, false), false); break;
    case 'F': push_fragment(d, raw, true, false); break;
    case 'Y': push_fragment(d, raw, false, false); break;
    case 'R': push_fragment(d, raw, true, true); break;
    case 'Q': push_matrix(d, raw); break;
    case 'G': push_mma(d, raw, 'D'); break;
    case 'A':
    case 'B':
    case 'C': push_mma(d, raw, letter); break;
    case 'y':
        decode_push(d, decode_value(d, raw, T_U64, mods->flags & FLAG_PARITY ? 4 : 8, false, false),
                    false);
        break;
    default: break;
    }
}

/* `n`: the source size of cp.async, or the predicate that disables the source */
static void push_size(Decoder *d, const Raw *raw) {
    const Symbol *symbol =
        raw->kind == RAW_WORD ? text_lookup(d->reader, raw->token.text, raw->token.length) : NULL;
    if (symbol && symbol->kind == SYMBOL_REGISTER && symbol->operand.width == 0)
        push_predicate(d, raw, false);
    else
        push_operand(d, 'u', raw);
}

/* mov: {a, b} = c, c = {a, b} or plain. The vector's registers are the first operands for
 * unpacking, the last for packing. */
static void push_move(Decoder *d, const Raw *operands, uint32_t count) {
    Type type = inst_type(&d->inst);
    uint8_t width = type_rows[type].bytes;
    if (count != 2) text_reject(d->reader, d->word.line, "`mov` takes two operands");
    for (uint32_t side = 0; side < 2; side++) {
        const Raw *raw = &operands[side];
        if (raw->kind != RAW_VECTOR) {
            decode_push(d, decode_value(d, raw, type, width, false, side == 0), side == 0);
            continue;
        }
        uint8_t part = raw->count == 2 || raw->count == 4 ? (uint8_t)(width / raw->count) : 0;
        if (part == 0 || (side == 1 && operands[0].kind == RAW_VECTOR))
            text_reject(d->reader, d->word.line, "`%.*s` cannot pack or unpack these registers",
                        (int)d->word.length, d->word.text);
        d->inst.vector = (uint8_t)raw->count;
        d->inst.mods.choice = side == 0 ? MOVE_UNPACK : MOVE_PACK;
        for (uint32_t i = 0; i < raw->count; i++)
            decode_push(d, decode_value(d, &raw->items[i], T_NONE, part, false, side == 0),
                        side == 0);
    }
}

static bool is_memory(const Raw *raw) { return raw->kind == RAW_MEMORY; }

static bool fits(char letter, const Raw *raw) {
    if (letter == 'm') return is_memory(raw) && raw->count == 0;
    if (letter == 'M') return is_memory(raw) && raw->count > 0;
    return !is_memory(raw);
}

/* True if this form (up to `/`) takes these operands. Stores the end of the form in *end. */
static bool form_fits(const char *form, const Raw *operands, uint32_t count, const char **end) {
    uint32_t n = 0;
    bool optional = false, right = true;
    for (; *form && *form != '/'; form++) {
        if (*form == '?') {
            optional = true;
        } else if (n < count) {
            right &= fits(*form, &operands[n]);
            n++;
        } else {
            right &= optional;
        }
    }
    *end = form;
    return right && n == count;
}

static void push_operands(Decoder *d, const char *forms, const Raw *operands, uint32_t count) {
    const char *form = forms, *end = NULL;
    if (*form == '*') {
        push_move(d, operands, count);
        return;
    }
    while (!form_fits(form, operands, count, &end)) {
        if (*end == '\0')
            text_reject(d->reader, d->word.line, "`%.*s` does not take these operands",
                        (int)d->word.length, d->word.text);
        form = end + 1;
    }
    uint32_t n = 0;
    for (; *form && *form != '/'; form++) {
        if (*form == '?') continue;
        bool policy_next = d->inst.mods.cache_policy && n + 1 == count && *form != 'q' &&
                           strchr(form, 'q') && n > 1;
        bool no_mask = *form == 'h' && !d->inst.mods.multicast;
        if (n >= count || no_mask || (policy_next && *form == 'n')) {
            decode_push(d, (Operand){.absent = true}, false);
        } else if (*form == 'b') {
            if (operands[n].kind != RAW_WORD) decode_reject(d, &operands[n], "a label");
            n++;
        } else if (*form == 'n') {
            push_size(d, &operands[n++]);
        } else {
            push_operand(d, *form, &operands[n++]);
        }
    }
}

/* ---- statements ------------------------------------------------------------------------------ */

static void decode_guard(Decoder *d, Guard guard) {
    if (!guard.present) return;
    Raw raw = {.kind = RAW_WORD, .token = guard.name};
    Operand operand = decode_value(d, &raw, T_PRED, 0, false, false);
    if (operand.bank != BANK_REGISTERS) decode_reject(d, &raw, "a predicate");
    d->inst.guarded = true;
    d->inst.guard_negated = guard.negated;
    d->inst.guard_offset = operand.offset;
    d->inst.guard_slot = operand.slot;
}

/* A value that a call passes: `from` an input or `to` a result */
static Operand passed_value(Decoder *d, const Raw *raw, bool writes) {
    Reader *reader = d->reader;
    if (raw->kind == RAW_NUMBER && raw->token.kind == TOKEN_INTEGER && !writes)
        return decode_value(d, raw, T_U64, 8, false, false);
    if (raw->kind != RAW_WORD)
        text_incomplete(reader, d->word.line,
                        "the emulator does not model calls with this operand");
    if (text_is(&raw->token, "_") && writes) return decode_sink;
    const Symbol *symbol = text_lookup(reader, raw->token.text, raw->token.length);
    if (!symbol)
        text_reject(reader, d->word.line, "`%.*s` is not declared",
                    (int)(raw->token.length < 60 ? raw->token.length : 60), raw->token.text);
    if (symbol->kind == SYMBOL_REGISTER && !raw->add && !raw->negated) return symbol->operand;
    if (symbol->is_parameter && !raw->add)
        return (Operand){
            .is_local = true, .offset = (uint32_t)symbol->address, .add = (int64_t)symbol->bytes};
    decode_reject(d, raw, "a value that can be passed");
}

static void finish(Decoder *d) {
    d->inst.ops = d->ops.items;
    d->inst.op_count = (uint8_t)d->ops.count;
    d->inst.uses = d->uses.items;
    d->inst.use_count = (uint8_t)d->uses.count;
    d->inst.defs = d->defs.items;
    d->inst.def_count = (uint8_t)d->defs.count;
}

void decode_call(Reader *reader, Guard guard, Token word, const char *callee, const Raw *results,
                 uint32_t result_count, const Raw *inputs, uint32_t input_count) {
    const Operand absent = {.absent = true};
    Decoder d = {.reader = reader, .word = word};
    d.inst.opcode = OP_CALL;
    d.inst.line = word.line;
    d.inst.vector = (uint8_t)result_count;
    decode_guard(&d, guard);
    for (uint32_t i = 0; i < result_count; i++) {
        decode_push(&d, absent, false);
        decode_push(&d, passed_value(&d, &results[i], true), true);
    }
    for (uint32_t i = 0; i < input_count; i++) {
        decode_push(&d, passed_value(&d, &inputs[i], false), false);
        decode_push(&d, absent, true);
    }
    finish(&d);
    uint32_t wanted_results, wanted_inputs;
    Run external = call_external(callee, &wanted_results, &wanted_inputs);
    d.inst.run = external ? external : pick_call(&d.inst);
    bool is_right = result_count == wanted_results && input_count == wanted_inputs &&
                    (!result_count || !d.ops.items[1].is_local || d.ops.items[1].add == 4);
    if (external && !is_right)
        text_reject(reader, word.line, "this call does not have the parameters of `%s`", callee);
    vec_push(reader->arena, &reader->code, d.inst);
}

static bool wants_type(const char *operands) { return strpbrk(operands, "dswxtVvWESG*") != NULL; }

void decode_statement(Reader *reader, Guard guard, Token word, Raw *operands, uint32_t count) {
    Decoder d = {.reader = reader, .word = word};
    Opcode opcode = *word.text == '%' ? OP_COUNT : find_opcode(&word);
    if (opcode == OP_COUNT)
        text_incomplete(reader, word.line, "the emulator does not model `%.*s`", (int)word.length,
                        word.text);
    const OpcodeRow *row = &opcode_rows[opcode];
    d.inst.opcode = (uint8_t)opcode;
    d.inst.line = word.line;
    d.inst.vector = 1;
    read_modifiers(reader, &word, opcode, &d.inst.mods);
    Mods *mods = &d.inst.mods;
    if (wants_type(row->operands) && mods->type_count == 0 && opcode != OP_ELECT)
        text_reject(reader, word.line, "`%.*s` lacks a type", (int)word.length, word.text);
    for (uint8_t i = 0; i < mods->type_count; i++)
        if (mods->types[i] == T_B128)
            text_incomplete(reader, word.line, "`%.*s`: the emulator does not model 128-bit values",
                            (int)word.length, word.text);
    if (strpbrk(row->operands, "etE") && mods->type_count < 2)
        text_reject(reader, word.line, "`%.*s` lacks a type", (int)word.length, word.text);
    if ((mods->flags & FLAG_WIDE) && type_rows[mods->types[0]].bytes > 4)
        text_reject(reader, word.line, "`%.*s`: the emulator does not model 128-bit products",
                    (int)word.length, word.text);
    decode_guard(&d, guard);
    push_operands(&d, row->operands, operands, count);
    finish(&d);
    d.inst.run = row->pick(&d.inst);
    if (!d.inst.run)
        text_incomplete(reader, word.line, "the emulator does not model `%.*s`", (int)word.length,
                        word.text);
    bool arrives = opcode == OP_MB_ARRIVE || opcode == OP_MB_DROP;
    needs_check(reader, &word, arrives && !d.ops.items[d.ops.count - 1].absent);
    if (opcode == OP_BRA || opcode == OP_BRX) {
        const Raw *label = &operands[count - 1];
        vec_push(reader->arena, &reader->branches,
                 (Branch){(uint32_t)reader->code.count,
                          names_intern(reader->names, label->token.text, label->token.length),
                          reader->scope, word.line});
    }
    vec_push(reader->arena, &reader->code, d.inst);
}
