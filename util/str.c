/* String builder, and UTF-8. Strings grow in their arena and are always NUL-terminated. */
#include "util/util.h"

#include <stdio.h>
#include <string.h>

Str str_new(Arena *arena) {
    return (Str){.arena = arena, .text = arena_alloc(arena, 1), .capacity = 1};
}

void str_add_bytes(Str *str, const char *bytes, size_t count) {
    if (count > SIZE_MAX / 4) arena_fail(str->arena);
    size_t needed = str->length + count + 1;
    if (needed > str->capacity) {
        size_t larger = str->capacity < 32 ? 64 : str->capacity * 2;
        if (larger < needed) larger = needed;
        str->text = arena_grow(str->arena, str->text, str->capacity, larger);
        str->capacity = larger;
    }
    if (count) memcpy(str->text + str->length, bytes, count);
    str->length += count;
    str->text[str->length] = 0;
}

void str_reserve(Str *str, size_t more) {
    size_t needed = str->length + more + 1;
    if (needed <= str->capacity) return;
    str->text = arena_grow(str->arena, str->text, str->capacity, needed);
    str->capacity = needed;
}

void str_add(Str *str, const char *text) { str_add_bytes(str, text, strlen(text)); }

void str_char(Str *str, char c) { str_add_bytes(str, &c, 1); }

void str_integer(Str *str, int64_t value) {
    char digits[24];
    size_t at = sizeof digits;
    uint64_t left = value < 0 ? -(uint64_t)value : (uint64_t)value;
    do digits[--at] = (char)('0' + left % 10);
    while ((left /= 10) != 0);
    if (value < 0) digits[--at] = '-';
    str_add_bytes(str, digits + at, sizeof digits - at);
}

void str_vprintf(Str *str, const char *format, va_list args) {
    char few[256];
    va_list again;
    va_copy(again, args);
    int length = vsnprintf(few, sizeof few, format, args);
    if (length < 0) arena_fail(str->arena);
    if ((size_t)length < sizeof few)
        str_add_bytes(str, few, (size_t)length);
    else
        str_add_bytes(str, arena_vprintf(str->arena, format, again), (size_t)length);
    va_end(again);
}

void str_printf(Str *str, const char *format, ...) {
    va_list args;
    va_start(args, format);
    str_vprintf(str, format, args);
    va_end(args);
}

/* A word without a byte that is 0 or above 127 is passed as a whole. */
size_t ascii_length(const char *text, size_t left) {
    const uint64_t ones = UINT64_C(0x0101010101010101);
    size_t length = 0;
    for (uint64_t word; left - length >= sizeof word; length += sizeof word) {
        memcpy(&word, text + length, sizeof word);
        if (((word - ones) | word) & ones << 7) break;
    }
    while (length < left && (unsigned char)text[length] - 1u < 0x7F) length++;
    return length;
}

/* Unicode, table 3-7: allowed second bytes for each first byte */
int utf8_length(const char *text, size_t left) {
    const unsigned char *b = (const unsigned char *)text;
    if (left == 0) return 0;
    if (b[0] < 0x80) return 1;
    int length = b[0] >= 0xC2 && b[0] <= 0xDF   ? 2
                 : b[0] >= 0xE0 && b[0] <= 0xEF ? 3
                 : b[0] >= 0xF0 && b[0] <= 0xF4 ? 4
                                                : 0;
    if (length == 0 || left < (size_t)length) return 0;
    unsigned low = b[0] == 0xE0 ? 0xA0 : b[0] == 0xF0 ? 0x90 : 0x80;
    unsigned high = b[0] == 0xED ? 0x9F : b[0] == 0xF4 ? 0x8F : 0xBF;
    if (b[1] < low || b[1] > high) return 0;
    for (int i = 2; i < length; i++)
        if (b[i] < 0x80 || b[i] > 0xBF) return 0;
    return length;
}

static uint32_t utf8_value(const char *text, int length) {
    const unsigned char *b = (const unsigned char *)text;
    if (length == 1) return b[0];
    uint32_t value = b[0] & (0x7Fu >> length);
    for (int i = 1; i < length; i++) value = value << 6 | (b[i] & 0x3Fu);
    return value;
}

/* Invisible characters that reorder or hide the text around them */
static bool is_invisible(uint32_t c) {
    return (c >= 0x80 && c <= 0x9F) || (c >= 0x200B && c <= 0x200F) ||
           (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x206F) || c == 0xFEFF;
}

void str_visible(Str *str, const char *bytes, size_t count) {
    for (size_t i = 0; i < count;) {
        int length = utf8_length(bytes + i, count - i);
        uint32_t c = length ? utf8_value(bytes + i, length) : 0;
        if (length == 0 || c < 0x20 || c == 0x7F)
            str_printf(str, "\\x%02X", (unsigned)(unsigned char)bytes[i]);
        else if (is_invisible(c))
            str_printf(str, "\\u{%04X}", (unsigned)c);
        else
            str_add_bytes(str, bytes + i, (size_t)length);
        i += length ? (size_t)length : 1;
    }
}

void str_json(Str *str, const char *text) {
    if (!text) {
        str_add(str, "null");
        return;
    }
    size_t count = strlen(text);
    str_char(str, '"');
    for (size_t i = 0; i < count;) {
        int length = utf8_length(text + i, count - i);
        unsigned char c = (unsigned char)text[i];
        if (length == 0)
            str_add(str, "\xEF\xBF\xBD");
        else if (c == '"' || c == '\\')
            str_printf(str, "\\%c", c);
        else if (c == '\n')
            str_add(str, "\\n");
        else if (c == '\t')
            str_add(str, "\\t");
        else if (c < 0x20 || c == 0x7F)
            str_printf(str, "\\u%04x", (unsigned)c);
        else
            str_add_bytes(str, text + i, (size_t)length);
        i += length ? (size_t)length : 1;
    }
    str_char(str, '"');
}
