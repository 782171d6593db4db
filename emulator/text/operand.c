/* Operands of PTX instructions, as written.
 *
 * In: tokens. Out: one Raw for each operand; the decoder (decode.c) gives them types and widths. */
#include "emulator/text/text.h"

#include <string.h>

enum { MAX_VECTOR = 256, MAX_NESTING = 4 };

static Raw read_nested(Reader *reader, uint32_t depth);

int64_t read_offset(Reader *reader) {
    int64_t sum = 0;
    while (text_at(reader, '+') || text_at(reader, '-')) {
        bool minus = text_at(reader, '-');
        scan_next(reader);
        if (text_take(reader, '-')) minus = !minus;
        int64_t value = (int64_t)text_integer(reader);
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
        items[count++] = read_nested(reader, depth + 1);
    } while (text_take(reader, ','));
    text_expect(reader, close);
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
    if (text_take(reader, ',')) {
        if (text_take(reader, '{'))
            read_list(reader, &raw, '}', depth);
        else
            text_incomplete(reader, raw.token.line,
                            "the emulator does not model addresses of this form");
    }
    text_expect(reader, ']');
    return raw;
}

static Raw read_number(Reader *reader) {
    bool minus = false;
    uint32_t signs = 0;
    while (text_at(reader, '-') || text_at(reader, '+') || text_at(reader, '~')) {
        if (text_at(reader, '~') || ++signs > 1)
            text_incomplete(reader, reader->token.line,
                            "the emulator does not model constant expressions");
        minus = text_at(reader, '-');
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

static Raw read_nested(Reader *reader, uint32_t depth) {
    if (depth > MAX_NESTING)
        text_reject(reader, reader->token.line, "operands are nested too deeply");
    if (text_take(reader, '[')) return read_memory(reader, depth);
    if (text_take(reader, '{')) {
        Raw raw = {.kind = RAW_VECTOR, .token = reader->token};
        read_list(reader, &raw, '}', depth);
        return raw;
    }
    if (text_at(reader, '('))
        text_incomplete(reader, reader->token.line,
                        "the emulator does not model constant expressions and calls");
    bool negated = text_take(reader, '!');
    if (reader->token.kind != TOKEN_WORD) return read_number(reader);
    Raw raw = {.kind = RAW_WORD, .negated = negated, .token = reader->token};
    scan_next(reader);
    raw.add = read_offset(reader);
    if (text_take(reader, '|')) {
        raw.second = NEW(reader->arena, Raw);
        *raw.second = (Raw){.kind = RAW_WORD,
                            .negated = text_take(reader, '!'),
                            .token = text_word(reader, "a predicate after `|`")};
    }
    return raw;
}

Raw read_operand(Reader *reader) { return read_nested(reader, 0); }
