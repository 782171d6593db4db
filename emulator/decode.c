/* Decodes a statement to an instruction, once: opcode by the row with the longest spelling,
 * modifiers to small enums, operands to offsets in a bank. A statement without opcode row,
 * modifier row or handler is "not modelled"; operands of the wrong number, kind or width are
 * rejected, as ptxas does. */
#include "machine.h"
#include "text.h"

#include <string.h>

const TypeRow type_rows[T_COUNT] = {
#define TYPE(name, spelling, bytes, kind) [T_##name] = {spelling, bytes, TYPE_##kind},
#include "types.def"
#undef TYPE
};

/* Groups of modifiers */
enum {
    ROUND = 1 << 0,
    COMPARE = 1 << 1,
    REDUCE = 1 << 2,
    ORDER = 1 << 3,
    VECTOR = 1 << 4,
    DIMENSIONS = 1 << 5,
    SHUFFLE = 1 << 6,
    VOTE = 1 << 7,
    TEST = 1 << 8,
    PERMUTE = 1 << 9,
    NUMERIC = 1 << 10,
    WIDE = 1 << 11,
    CARRY = 1 << 12,
    SHIFT = 1 << 13,
    TO = 1 << 14,
    CACHE = 1 << 15,
    SYNC = 1 << 16,
    PHASE = 1 << 17,
    BULK = 1 << 18,
    FENCE = 1 << 19,
    SPACE = 1 << 20,
    SHAPE = 1 << 21
};

typedef struct OpcodeRow {
    const char *spelling, *operands;
    uint32_t groups;
    Run (*pick)(const Inst *inst);
} OpcodeRow;

static const OpcodeRow opcode_rows[OP_COUNT] = {
#define OPCODE(name, spelling, operands, groups, pick)                                             \
    [OP_##name] = {spelling, operands, groups, pick},
#include "opcodes.def"
#undef OPCODE
};
const char *const opcode_spellings[OP_COUNT] = {
#define OPCODE(name, spelling, operands, groups, pick) [OP_##name] = spelling,
#include "opcodes.def"
#undef OPCODE
};

typedef struct ModifierRow {
    const char *spelling;
    uint32_t group;
    size_t field; /* offset in Mods */
    uint8_t value;
    /* nonzero, or a field of SIZE_MAX: this row is a flag */
    uint32_t flag;
} ModifierRow;

static const ModifierRow modifier_rows[] = {
#define MODIFIER(spelling, group, field, value) {spelling, group, offsetof(Mods, field), value, 0},
#define FLAG(spelling, group, flag)             {spelling, group, SIZE_MAX, 0, flag},
#include "modifiers.def"
#undef MODIFIER
#undef FLAG
};

static const struct {
    const char *spelling;
    Space space;
} space_words[] = {
    {"param", SPACE_PARAM},
    {"param::entry", SPACE_PARAM},
    {"global", SPACE_GLOBAL},
    {"shared", SPACE_SHARED},
    {"local", SPACE_LOCAL},
    {"shared::cta", SPACE_SHARED},
    {"shared::cluster", SPACE_SHARED},
    {"const", SPACE_CONST},
};

static const struct {
    const char *spelling;
    uint8_t bytes;
} special_rows[] = {
#define SPECIAL(name, spelling, bytes) {spelling, bytes},
#include "specials.def"
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

static bool same(const char *text, size_t length, const char *word) {
    return strlen(word) == length && !memcmp(text, word, length);
}

Type type_by_name(const char *text, size_t length) {
    for (int t = 1; t < T_COUNT; t++)
        if (same(text, length, type_rows[t].spelling)) return (Type)t;
    return T_NONE;
}

/* ---- opcode and modifiers -------------------------------------------------------------------- */

static Opcode find_opcode(const Token *word) {
    Opcode best = OP_COUNT;
    size_t best_length = 0;
    for (int i = 0; i < OP_COUNT; i++) {
        size_t length = strlen(opcode_rows[i].spelling);
        if (length > best_length && length <= word->length &&
            !memcmp(word->text, opcode_rows[i].spelling, length) &&
            (length == word->length || word->text[length] == '.')) {
            best = (Opcode)i;
            best_length = length;
        }
    }
    return best;
}

static bool add_space(Mods *mods, const char *text, size_t length) {
    for (size_t i = 0; i < COUNT_OF(space_words); i++)
        if (same(text, length, space_words[i].spelling)) {
            if (mods->space_count < 2)
                mods->spaces[mods->space_count++] = (uint8_t)space_words[i].space;
            mods->cluster |= same(text, length, "shared::cluster");
            return true;
        }
    return false;
}

/* `m64n256k16` */
static bool add_shape(Mods *mods, const char *text, size_t length) {
    uint32_t sizes[3] = {0};
    size_t at = 0;
    for (int i = 0; i < 3; i++) {
        if (at == length || text[at++] != "mnk"[i]) return false;
        for (; at < length && text[at] >= '0' && text[at] <= '9' && sizes[i] < 1000; at++)
            sizes[i] = sizes[i] * 10 + (uint32_t)(text[at] - '0');
    }
    mods->rows = (uint16_t)sizes[0];
    mods->columns = (uint16_t)sizes[1];
    mods->depth = (uint16_t)sizes[2];
    return at == length;
}

/* One word after the opcode; false: this instruction does not take it. */
static bool add_modifier(Mods *mods, uint32_t groups, const char *text, size_t length) {
    Type type = type_by_name(text, length);
    if (type != T_NONE) {
        if (mods->type_count == COUNT_OF(mods->types)) return false;
        mods->types[mods->type_count++] = (uint8_t)type;
        return true;
    }
    if (length > 4 && (!memcmp(text, "L1::", 4) || !memcmp(text, "L2::", 4))) {
        mods->cache_policy |= same(text, length, "L2::cache_hint");
        return (groups & CACHE) != 0;
    }
    if ((groups & SPACE) && add_space(mods, text, length)) return true;
    if ((groups & SHAPE) && add_shape(mods, text, length)) return true;
    for (size_t i = 0; i < COUNT_OF(modifier_rows); i++) {
        const ModifierRow *row = &modifier_rows[i];
        if (!(row->group & groups) || !same(text, length, row->spelling)) continue;
        if (row->field == SIZE_MAX)
            mods->flags |= row->flag;
        else
            ((uint8_t *)mods)[row->field] = row->value;
        return true;
    }
    return false;
}

static void read_modifiers(Reader *reader, const Token *word, Opcode opcode, Mods *mods) {
    const char *at = word->text + strlen(opcode_rows[opcode].spelling),
               *end = word->text + word->length;
    while (at < end) {
        const char *start = ++at;
        while (at < end && *at != '.') at++;
        if (!add_modifier(mods, opcode_rows[opcode].groups, start, (size_t)(at - start)))
            text_incomplete(reader, word->line, "the emulator does not model `%.*s` with `.%.*s`",
                            (int)word->length, word->text, (int)(at - start), start);
    }
}

/* ---- registers and constants ----------------------------------------------------------------- */

Operand decode_new_register(Reader *reader, Type type) {
    Program *program = reader->program;
    uint8_t width = type_rows[type].bytes;
    uint32_t bytes = width == 0 ? 4 : width == 8 ? 8 * LANES : 4 * LANES;
    uint32_t at = (program->register_bytes + (width ? 15u : 3u)) & ~(width ? 15u : 3u);
    program->register_bytes = at + bytes;
    return (Operand){
        .bank = BANK_REGISTERS, .width = width, .offset = at, .slot = program->slots++};
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

static const Operand sink = {.bank = BANK_REGISTERS, .width = 8, .sink = true};

/* A special register: one that the warp keeps, or one that a separate instruction reads each
 * time. */
static bool special(Reader *reader, const Token *name, Operand *out) {
    Program *program = reader->program;
    for (size_t i = 0; i < COUNT_OF(special_rows); i++) {
        if (!same(name->text, name->length, special_rows[i].spelling)) continue;
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
    for (size_t i = 0; i < COUNT_OF(clock_rows); i++) {
        if (!same(name->text, name->length, clock_rows[i].spelling)) continue;
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

typedef struct Decoder {
    Reader *reader;
    Inst inst;
    Token word;
    VEC(Operand) ops;
    VEC(uint32_t) uses;
    VEC(uint32_t) defs;
} Decoder;

static NO_RETURN void reject_operand(Decoder *d, const Raw *raw, const char *what) {
    text_reject(d->reader, d->word.line, "`%.*s`: `%.*s` is not %s", (int)d->word.length,
                d->word.text, (int)(raw->token.length < 60 ? raw->token.length : 60),
                raw->token.text, what);
}

static void push(Decoder *d, Operand operand, bool writes) {
    vec_push(d->reader->arena, &d->ops, operand);
    if (operand.bank != BANK_REGISTERS || operand.sink || operand.absent) return;
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
            reject_operand(d, raw, "a constant of this type");
    } else if (type == T_F32 || type == T_F64) {
        reject_operand(d, raw, "a float constant");
    }
    return constant(d->reader, bits, width, CONSTANT_PLAIN);
}

static Operand symbol_address(Decoder *d, const Raw *raw, const Symbol *symbol, uint8_t width) {
    if (symbol->space == SPACE_GLOBAL || symbol->space == SPACE_CONST)
        text_incomplete(d->reader, d->word.line,
                        "the emulator does not model variable `%s` in %s memory", symbol->name,
                        symbol->space == SPACE_GLOBAL ? "global" : "constant");
    ConstantKind kind = symbol->space != SPACE_SHARED ? CONSTANT_PLAIN
                        : symbol->dynamic             ? CONSTANT_DYNAMIC_SHARED
                                                      : CONSTANT_SHARED;
    return constant(d->reader, symbol->address + (uint64_t)raw->add, width, kind);
}

/* A register, special register, symbol or number of `width` bytes; `wider`: registers may be
 * wider than that. */
static Operand value(Decoder *d, const Raw *raw, Type type, uint8_t width, bool wider,
                     bool writes) {
    if (raw->kind == RAW_NUMBER && !writes) return immediate(d, raw, type, width);
    if (raw->kind != RAW_WORD)
        reject_operand(d, raw, writes ? "a register" : "a register or a constant");
    if (text_is(&raw->token, "_")) {
        if (!writes) reject_operand(d, raw, "a value");
        return sink;
    }
    Operand operand;
    if (!writes && special(d->reader, &raw->token, &operand)) {
        if (operand.width != width && !(operand.width > width && wider) &&
            !(operand.width == 4 && width == 2))
            reject_operand(d, raw, "of the width that this instruction takes");
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
    if (symbol->kind != SYMBOL_REGISTER) reject_operand(d, raw, "a register");
    if (raw->add) reject_operand(d, raw, "an address");
    operand = symbol->operand;
    operand.negated = raw->negated;
    bool fits = operand.width == width || (wider && operand.width > width);
    if (!fits || ((operand.width == 0) != (width == 0)) || (raw->negated && width != 0))
        reject_operand(d, raw, "of the width that this instruction takes");
    return operand;
}

/* The address part of [base + add]: 32 or 64 bits */
static Operand address(Decoder *d, const Raw *raw) {
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
            reject_operand(d, raw, "an address");
        /* A variable implies its space: `ld.u32 %r, [buffer]` needs no `.shared` */
        if (symbol->kind == SYMBOL_VARIABLE && d->inst.mods.space_count == 0) {
            d->inst.mods.spaces[0] = (uint8_t)symbol->space;
            d->inst.mods.space_count = 1;
        }
    }
    operand.add = raw->add;
    return operand;
}

static void push_vector(Decoder *d, const Raw *raw, Type type, bool writes) {
    uint8_t width = type_rows[type].bytes;
    uint32_t wanted = d->inst.mods.vector ? d->inst.mods.vector : 1;
    const Raw *items = raw->kind == RAW_VECTOR ? raw->items : raw;
    uint32_t count = raw->kind == RAW_VECTOR ? raw->count : 1;
    if (count != wanted)
        text_reject(d->reader, d->word.line, "`%.*s` needs %u registers, not %u",
                    (int)d->word.length, d->word.text, wanted, count);
    for (uint32_t i = 0; i < count; i++)
        push(d, value(d, &items[i], type, width, true, writes), writes);
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
        Operand operand = value(d, &items[i], T_NONE, 4, false, writes);
        if (tracked)
            vec_push(d->reader->arena, &d->ops, operand);
        else
            push(d, operand, writes);
    }
    d->inst.vector = (uint8_t)count;
}

/* Operand A of wgmma; `vector` is still the number of the accumulator's registers */
static void push_matrix(Decoder *d, const Raw *raw) {
    uint8_t registers = d->inst.vector;
    if (raw->kind == RAW_VECTOR)
        push_fragment(d, raw, false, true);
    else
        push(d, value(d, raw, T_U64, 8, false, false), false);
    d->inst.vector = registers;
}

static void push_predicate(Decoder *d, const Raw *raw, bool writes) {
    push(d, value(d, raw, T_PRED, 0, false, writes), writes);
}

/* A destination and the predicate after `|`; a missing one becomes a sink */
static void push_pair(Decoder *d, const Raw *raw, bool first_is_predicate) {
    uint8_t width = first_is_predicate ? 0 : 4;
    push(d, value(d, raw, first_is_predicate ? T_PRED : T_B32, width, false, true), true);
    if (raw->second)
        push_predicate(d, raw->second, true);
    else
        push(d, sink, true);
}

static void push_map(Decoder *d, const Raw *raw) {
    if (raw->count != d->inst.mods.dimensions)
        text_reject(d->reader, d->word.line, "`%.*s` needs %u coordinates, not %u",
                    (int)d->word.length, d->word.text, d->inst.mods.dimensions, raw->count);
    Raw base = *raw;
    push(d, address(d, &base), false);
    for (uint32_t i = 0; i < raw->count; i++)
        push(d, value(d, &raw->items[i], T_S32, 4, false, false), false);
}

static void push_operand(Decoder *d, char letter, const Raw *raw) {
    const Mods *mods = &d->inst.mods;
    Type type = (Type)mods->types[0], second = (Type)mods->types[1];
    uint8_t width = type_rows[type].bytes;
    uint8_t wide = mods->flags & FLAG_WIDE ? (uint8_t)(2 * width) : width;
    Type wide_type = mods->flags & FLAG_WIDE ? T_NONE : type;
    switch (letter) {
    case 'd': push(d, value(d, raw, type, width, false, true), true); break;
    case 's': push(d, value(d, raw, type, width, false, false), false); break;
    case 'w': push(d, value(d, raw, wide_type, wide, false, true), true); break;
    case 'x': push(d, value(d, raw, wide_type, wide, false, false), false); break;
    case 't': push(d, value(d, raw, second, type_rows[second].bytes, false, true), true); break;
    case 'e': push(d, value(d, raw, second, type_rows[second].bytes, false, false), false); break;
    case 'U': push(d, value(d, raw, T_U32, 4, false, true), true); break;
    case 'u': push(d, value(d, raw, T_U32, 4, false, false), false); break;
    case 'q': push(d, value(d, raw, T_U64, 8, false, false), false); break;
    case 'f': push(d, value(d, raw, T_F32, 4, false, false), false); break;
    case 'z': push(d, value(d, raw, T_U64, 8, false, true), true); break;
    case 'D': push_pair(d, raw, true); break;
    case 'S': push_pair(d, raw, false); break;
    case 'p': push_predicate(d, raw, false); break;
    case 'W': push(d, value(d, raw, type, width, true, true), true); break;
    case 'E': push(d, value(d, raw, second, type_rows[second].bytes, true, false), false); break;
    case 'V': push_vector(d, raw, type, true); break;
    case 'v': push_vector(d, raw, type, false); break;
    case 'm': push(d, address(d, raw), false); break;
    case 'M': push_map(d, raw); break;
    case 'h': push(d, value(d, raw, T_U16, 2, false, false), false); break;
    case 'F': push_fragment(d, raw, true, false); break;
    case 'Y': push_fragment(d, raw, false, false); break;
    case 'R': push_fragment(d, raw, true, true); break;
    case 'Q': push_matrix(d, raw); break;
    case 'y':
        push(d, value(d, raw, T_U64, mods->flags & FLAG_PARITY ? 4 : 8, false, false), false);
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
            push(d, value(d, raw, type, width, false, side == 0), side == 0);
            continue;
        }
        uint8_t part = raw->count == 2 || raw->count == 4 ? (uint8_t)(width / raw->count) : 0;
        if (part == 0 || (side == 1 && operands[0].kind == RAW_VECTOR))
            text_reject(d->reader, d->word.line, "`%.*s` cannot pack or unpack these registers",
                        (int)d->word.length, d->word.text);
        d->inst.vector = (uint8_t)raw->count;
        d->inst.mods.choice = side == 0 ? MOVE_UNPACK : MOVE_PACK;
        for (uint32_t i = 0; i < raw->count; i++)
            push(d, value(d, &raw->items[i], T_NONE, part, false, side == 0), side == 0);
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
            push(d, (Operand){.absent = true}, false);
        } else if (*form == 'b') {
            if (operands[n].kind != RAW_WORD) reject_operand(d, &operands[n], "a label");
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
    Operand operand = value(d, &raw, T_PRED, 0, false, false);
    if (operand.bank != BANK_REGISTERS) reject_operand(d, &raw, "a predicate");
    d->inst.guarded = true;
    d->inst.guard_negated = guard.negated;
    d->inst.guard_offset = operand.offset;
    d->inst.guard_slot = operand.slot;
}

static bool wants_type(const char *operands) { return strpbrk(operands, "dswxtVvWES*") != NULL; }

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
    d.inst.ops = d.ops.items;
    d.inst.op_count = (uint8_t)d.ops.count;
    d.inst.uses = d.uses.items;
    d.inst.use_count = (uint8_t)d.uses.count;
    d.inst.defs = d.defs.items;
    d.inst.def_count = (uint8_t)d.defs.count;
    d.inst.run = row->pick(&d.inst);
    if (!d.inst.run)
        text_incomplete(reader, word.line, "the emulator does not model `%.*s`", (int)word.length,
                        word.text);
    if (opcode == OP_BRA) {
        const Raw *label = &operands[0];
        vec_push(reader->arena, &reader->branches,
                 (Branch){(uint32_t)reader->code.count,
                          names_intern(reader->names, label->token.text, label->token.length),
                          reader->scope, word.line});
    }
    vec_push(reader->arena, &reader->code, d.inst);
}
