/* Opcodes and modifiers of a statement.
 *
 * In: its first word. Out: the row with the longest spelling that begins the word, and the words
 * after it as small enums. A word without a row is "not modelled". */
#include "emulator/machine.h"
#include "emulator/text/text.h"

#include <string.h>

const TypeRow type_rows[T_COUNT] = {
#define TYPE(name, spelling, bytes, kind) [T_##name] = {spelling, bytes, TYPE_##kind},
#include "emulator/text/types.def"
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
    SHAPE = 1 << 21,
    LAYOUT = 1 << 22
};

const OpcodeRow opcode_rows[OP_COUNT] = {
#define OPCODE(name, spelling, operands, groups, pick)                                             \
    [OP_##name] = {spelling, operands, groups, pick},
#include "emulator/text/opcodes.def"
#undef OPCODE
};
const char *const opcode_spellings[OP_COUNT] = {
#define OPCODE(name, spelling, operands, groups, pick) [OP_##name] = spelling,
#include "emulator/text/opcodes.def"
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
#include "emulator/text/modifiers.def"
#undef MODIFIER
#undef FLAG
};

static const struct {
    const char *spelling;
    Space space;
} space_words[] = {
    {"param", SPACE_PARAM},        {"param::entry", SPACE_PARAM},     {"param::func", SPACE_PARAM},
    {"global", SPACE_GLOBAL},      {"shared", SPACE_SHARED},          {"local", SPACE_LOCAL},
    {"shared::cta", SPACE_SHARED}, {"shared::cluster", SPACE_SHARED}, {"const", SPACE_CONST},
};

bool text_same(const char *text, size_t length, const char *word) {
    return strlen(word) == length && !memcmp(text, word, length);
}

Type type_by_name(const char *text, size_t length) {
    for (int t = 1; t < T_COUNT; t++)
        if (text_same(text, length, type_rows[t].spelling)) return (Type)t;
    return T_NONE;
}
/* ---- opcode and modifiers -------------------------------------------------------------------- */

Opcode find_opcode(const Token *word) {
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
        if (text_same(text, length, space_words[i].spelling)) {
            if (mods->space_count < 2)
                mods->spaces[mods->space_count++] = (uint8_t)space_words[i].space;
            mods->cluster |= text_same(text, length, "shared::cluster");
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

/* `row` or `col`: of A first, then of B */
static bool add_layout(Mods *mods, const char *text, size_t length) {
    bool is_row = text_same(text, length, "row");
    uint32_t at = mods->layouts[0] ? 1 : 0;
    if ((!is_row && !text_same(text, length, "col")) || mods->layouts[at]) return false;
    mods->layouts[at] = is_row ? LAYOUT_ROW : LAYOUT_COLUMN;
    return true;
}

/* One word after the opcode; false: this instruction does not take it. */
static bool add_modifier(Mods *mods, uint32_t groups, const char *text, size_t length) {
    Type type = type_by_name(text, length);
    if (type != T_NONE) {
        bool is_partial = type == T_B1 || type == T_U4 || type == T_S4;
        if (mods->type_count == COUNT_OF(mods->types) || (is_partial && !(groups & LAYOUT)))
            return false;
        mods->types[mods->type_count++] = (uint8_t)type;
        return true;
    }
    if (length > 4 && (!memcmp(text, "L1::", 4) || !memcmp(text, "L2::", 4))) {
        mods->cache_policy |= text_same(text, length, "L2::cache_hint");
        return (groups & CACHE) != 0;
    }
    if ((groups & SPACE) && add_space(mods, text, length)) return true;
    if ((groups & LAYOUT) && add_layout(mods, text, length)) return true;
    if ((groups & SHAPE) && add_shape(mods, text, length)) return true;
    for (size_t i = 0; i < COUNT_OF(modifier_rows); i++) {
        const ModifierRow *row = &modifier_rows[i];
        if (!(row->group & groups) || !text_same(text, length, row->spelling)) continue;
        if (row->field == SIZE_MAX)
            mods->flags |= row->flag;
        else
            ((uint8_t *)mods)[row->field] = row->value;
        return true;
    }
    return false;
}

void read_modifiers(Reader *reader, const Token *word, Opcode opcode, Mods *mods) {
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
