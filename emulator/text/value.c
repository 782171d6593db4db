/* Values of operands: registers, constants, special registers, addresses of variables.
 *
 * In: an operand as written, and the type and width of its place. Out: an Operand; one of another
 * kind or width is rejected, as ptxas does. */
#include "emulator/machine.h"
#include "emulator/text/text.h"

#include <string.h>

static const struct {
    const char *spelling;
    uint8_t bytes;
} special_rows[] = {
#define SPECIAL(name, spelling, bytes) {spelling, bytes},
#include "emulator/text/specials.def"
#undef SPECIAL
};

static const struct {
    const char *spelling;
    Type type;
    ClockKind kind;
} clock_rows[] = {
    {"%clock", T_U32, CLOCK_LOW},
    {"%clock_hi", T_U32, CLOCK_HIGH},
    {"%clock64", T_U64, CLOCK_CYCLES},
    {"%globaltimer", T_U64, CLOCK_NS},
    {"%globaltimer_lo", T_U32, CLOCK_NS_LOW},
    {"%globaltimer_hi", T_U32, CLOCK_NS_HIGH},
};

/* ---- registers and constants ----------------------------------------------------------------- */

Operand decode_new_register(Reader *reader, Type type) {
    Program *program = reader->program;
    uint8_t width = type_rows[type].bytes;
    uint32_t bytes = width == 0 ? 4 : width == 8 ? 8 * LANES : 4 * LANES;
    uint32_t at = (program->register_bytes + (width ? 15u : 3u)) & ~(width ? 15u : 3u);
    program->register_bytes = at + bytes;
    Operand operand = {
        .bank = BANK_REGISTERS, .width = width, .offset = at, .slot = program->slots++};
    vec_push(reader->arena, &program->registers, operand);
    return operand;
}

static Operand constant(Reader *reader, uint64_t bits, uint8_t width, ConstantKind kind) {
    uint8_t lane_bytes = width == 8 ? 8 : 4;
    if (width < 8 && width > 0) bits &= (UINT64_C(1) << (8 * width)) - 1;
    uint32_t bucket =
        (uint32_t)((bits ^ bits >> 32 ^ width) * 2654435761u >> 16) % CONSTANT_BUCKETS;
    Constant *found = reader->constants[bucket];
    while (found && !(found->bits == bits && found->width == lane_bytes && found->kind == kind))
        found = found->next;
    if (!found) {
        uint32_t at = (uint32_t)reader->constant_bytes.count;
        found = NEW(reader->arena, Constant);
        *found = (Constant){bits, at, lane_bytes, kind, reader->constants[bucket]};
        reader->constants[bucket] = found;
        vec_reserve(reader->arena, (void **)&reader->constant_bytes.items,
                    &reader->constant_bytes.capacity, at + LANES * lane_bytes, 1);
        for (uint32_t lane = 0; lane < LANES; lane++)
            memcpy(reader->constant_bytes.items + at + lane * lane_bytes, &bits, lane_bytes);
        reader->constant_bytes.count = at + LANES * lane_bytes;
    }
    return (Operand){.bank = BANK_CONSTANTS, .width = width, .offset = found->offset};
}

/* A predicate constant has 32 bits of ones or zeros: the first lane of a 32-bit constant */
static Operand constant_predicate(Reader *reader, bool value) {
    Operand operand = constant(reader, value ? UINT32_MAX : 0, 4, CONSTANT_PLAIN);
    operand.width = 0;
    return operand;
}

const Operand decode_sink = {.bank = BANK_REGISTERS, .width = 8, .sink = true};

/* `%envreg0` .. `%envreg31`, which the driver defines: all are 0 here */
static bool is_environment(const Token *name) {
    static const char prefix[] = "%envreg";
    size_t length = strlen(prefix), number = 0;
    if (name->length <= length || name->length > length + 2 || memcmp(name->text, prefix, length))
        return false;
    for (size_t i = length; i < name->length; i++) {
        if (name->text[i] < '0' || name->text[i] > '9') return false;
        number = number * 10 + (size_t)(name->text[i] - '0');
    }
    return number < 32;
}

/* A special register: one that the warp keeps, or one that a separate instruction reads each
 * time. */
static bool special(Reader *reader, const Token *name, Operand *out) {
    Program *program = reader->program;
    for (size_t i = 0; i < COUNT_OF(special_rows); i++) {
        if (!text_same(name->text, name->length, special_rows[i].spelling)) continue;
        needs_check(reader, name, false);
        if (!program->specials[i]) {
            Type type = special_rows[i].bytes == 8 ? T_U64 : special_rows[i].bytes ? T_U32 : T_PRED;
            Operand fresh = decode_new_register(reader, type);
            program->specials[i] = fresh.offset;
            program->special_slots[i] = fresh.slot;
        }
        *out = (Operand){.bank = BANK_REGISTERS,
                         .width = special_rows[i].bytes,
                         .offset = program->specials[i],
                         .slot = program->special_slots[i]};
        return true;
    }
    if (is_environment(name)) {
        *out = constant(reader, 0, 4, CONSTANT_PLAIN);
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(clock_rows); i++) {
        if (!text_same(name->text, name->length, clock_rows[i].spelling)) continue;
        *out = decode_new_register(reader, clock_rows[i].type);
        Operand *ops = NEW(reader->arena, Operand);
        uint32_t *defs = NEW(reader->arena, uint32_t);
        *ops = *out;
        *defs = out->slot;
        Inst inst = {.opcode = OP_CLOCK,
                     .ops = ops,
                     .op_count = 1,
                     .defs = defs,
                     .def_count = 1,
                     .vector = 1,
                     .line = name->line};
        inst.mods.types[0] = (uint8_t)clock_rows[i].type;
        inst.mods.choice = (uint8_t)clock_rows[i].kind;
        inst.run = pick_move(&inst);
        vec_push(reader->arena, &reader->code, inst);
        return true;
    }
    return false;
}
/* ---- operands -------------------------------------------------------------------------------- */

NO_RETURN void decode_reject(Decoder *d, const Raw *raw, const char *what) {
    text_reject(d->reader, d->word.line, "`%.*s`: `%.*s` is not %s", (int)d->word.length,
                d->word.text, (int)(raw->token.length < 60 ? raw->token.length : 60),
                raw->token.text, what);
}

void decode_push(Decoder *d, Operand operand, bool writes) {
    vec_push(d->reader->arena, &d->ops, operand);
    if (operand.bank != BANK_REGISTERS || operand.sink || operand.absent || operand.is_local)
        return;
    if (writes)
        vec_push(d->reader->arena, &d->defs, operand.slot);
    else
        vec_push(d->reader->arena, &d->uses, operand.slot);
}

static double number_value(const Raw *raw) {
    double value;
    float single;
    uint32_t bits = (uint32_t)raw->token.value;
    if (raw->token.kind == TOKEN_F64) {
        memcpy(&value, &raw->token.value, sizeof value);
    } else {
        memcpy(&single, &bits, sizeof single);
        value = (double)single;
    }
    return raw->minus ? -value : value;
}

/* An immediate gets the type of its operand position. */
static Operand immediate(Decoder *d, const Raw *raw, Type type, uint8_t width) {
    uint64_t bits = raw->token.value;
    if (width == 0) return constant_predicate(d->reader, bits != 0);
    if (raw->token.kind != TOKEN_INTEGER) {
        bool wants_double = type == T_F64 || (width == 8 && raw->token.kind == TOKEN_F64);
        double value = number_value(raw);
        float single = (float)value;
        uint32_t single_bits;
        memcpy(&single_bits, &single, sizeof single);
        if (wants_double)
            memcpy(&bits, &value, sizeof bits);
        else if (width == 4)
            bits = single_bits;
        else
            decode_reject(d, raw, "a constant of this type");
    } else if (type == T_F32 || type == T_F64) {
        decode_reject(d, raw, "a float constant");
    }
    return constant(d->reader, bits, width, CONSTANT_PLAIN);
}

static Operand symbol_address(Decoder *d, const Raw *raw, const Symbol *symbol, uint8_t width) {
    if (symbol->undefined)
        text_incomplete(d->reader, d->word.line,
                        "variable `%s` is declared, but not defined in this module", symbol->name);
    uint64_t window = symbol->is_parameter ? WINDOW_LOCAL : 0;
    ConstantKind kind = symbol->space != SPACE_SHARED ? CONSTANT_PLAIN
                        : symbol->dynamic             ? CONSTANT_DYNAMIC_SHARED
                                                      : CONSTANT_SHARED;
    return constant(d->reader, window + symbol->address + (uint64_t)raw->add, width, kind);
}

/* A register, special register, symbol or number of `width` bytes; `wider`: registers may be
 * wider than that. */
Operand decode_value(Decoder *d, const Raw *raw, Type type, uint8_t width, bool wider,
                     bool writes) {
    if (raw->kind == RAW_NUMBER && !writes) return immediate(d, raw, type, width);
    if (raw->kind != RAW_WORD)
        decode_reject(d, raw, writes ? "a register" : "a register or a constant");
    if (text_is(&raw->token, "_")) {
        if (!writes) decode_reject(d, raw, "a value");
        return decode_sink;
    }
    Operand operand;
    if (!writes && special(d->reader, &raw->token, &operand)) {
        if (operand.width != width && !(operand.width > width && wider) &&
            !(operand.width == 4 && width == 2))
            decode_reject(d, raw, "of the width that this instruction takes");
        return operand;
    }
    if (!writes && text_is(&raw->token, "WARP_SZ"))
        return constant(d->reader, LANES, width, CONSTANT_PLAIN);
    const Symbol *symbol = text_lookup(d->reader, raw->token.text, raw->token.length);
    if (!symbol)
        text_reject(d->reader, d->word.line, "`%.*s` is not declared",
                    (int)(raw->token.length < 60 ? raw->token.length : 60), raw->token.text);
    if (symbol->kind == SYMBOL_VARIABLE && !writes && width >= 4)
        return symbol_address(d, raw, symbol, width);
    if (symbol->kind == SYMBOL_FUNCTION && !writes && width == 8)
        return constant(d->reader, symbol->address, width, CONSTANT_PLAIN);
    if (symbol->kind != SYMBOL_REGISTER) decode_reject(d, raw, "a register");
    if (raw->add) decode_reject(d, raw, "an address");
    operand = symbol->operand;
    operand.negated = raw->negated;
    bool fits = operand.width == width || (wider && operand.width > width);
    if (!fits || ((operand.width == 0) != (width == 0)) || (raw->negated && width != 0))
        decode_reject(d, raw, "of the width that this instruction takes");
    return operand;
}

/* The address part of [base + add]: 32 or 64 bits */
Operand decode_address(Decoder *d, const Raw *raw) {
    Operand operand;
    if (raw->token.kind == TOKEN_INTEGER) {
        operand = constant(d->reader, raw->token.value, 8, CONSTANT_PLAIN);
    } else {
        const Symbol *symbol = text_lookup(d->reader, raw->token.text, raw->token.length);
        if (!symbol)
            text_reject(d->reader, d->word.line, "`%.*s` is not declared",
                        (int)(raw->token.length < 60 ? raw->token.length : 60), raw->token.text);
        Raw base = *raw;
        base.add = 0;
        if (symbol->kind == SYMBOL_VARIABLE)
            operand = symbol_address(d, &base, symbol, 8);
        else if (symbol->kind == SYMBOL_REGISTER &&
                 (symbol->operand.width == 4 || symbol->operand.width == 8))
            operand = symbol->operand;
        else
            decode_reject(d, raw, "an address");
        if (symbol->is_parameter) operand = constant(d->reader, symbol->address, 8, CONSTANT_PLAIN);
        /* A variable implies its space, and those of calls are in local memory: `ld.u32 %r,
         * [buffer]` needs no `.shared` */
        if (symbol->kind == SYMBOL_VARIABLE &&
            (d->inst.mods.space_count == 0 || symbol->is_parameter)) {
            d->inst.mods.spaces[0] = (uint8_t)symbol->space;
            d->inst.mods.space_count = 1;
        }
    }
    operand.add = raw->add;
    return operand;
}
