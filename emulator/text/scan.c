/* PTX text to tokens.
 *
 * In: untrusted bytes. Out: one token at a time in reader->token. Words include the dots and
 * double colons of opcodes and special registers (`ld.shared::cta.b32`, `%tid.x`). Skips
 * comments of both kinds. */
#include <stdlib.h>
#include <string.h>

#include "emulator/text/text.h"

static bool is_digit(char c) { return c >= '0' && c <= '9'; }
static bool is_hex(char c) {
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
static bool starts_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$' || c == '%' ||
           c == '.';
}
static bool in_word(char c) { return starts_word(c) || is_digit(c); }
static char peek(const Reader *reader, size_t ahead) {
    return (size_t)(reader->end - reader->at) > ahead ? reader->at[ahead] : '\0';
}

static void skip_blanks(Reader *reader) {
    while (reader->at < reader->end) {
        char c = *reader->at;
        if (c == '\n') {
            reader->line++;
            reader->at++;
        } else if (c == ' ' || c == '\t' || c == '\r' || c == '\f' || c == '\v') {
            reader->at++;
        } else if (c == '/' && peek(reader, 1) == '/') {
            while (reader->at < reader->end && *reader->at != '\n') reader->at++;
        } else if (c == '/' && peek(reader, 1) == '*') {
            uint32_t opened = reader->line;
            reader->at += 2;
            while (reader->at < reader->end && !(*reader->at == '*' && peek(reader, 1) == '/')) {
                if (*reader->at == '\n') reader->line++;
                reader->at++;
            }
            if (reader->at >= reader->end)
                text_reject(reader, opened, "this comment is not closed");
            reader->at += 2;
        } else {
            return;
        }
    }
}

static unsigned hex_value(char c) {
    return (unsigned)(is_digit(c) ? c - '0' : (c | 32) - 'a' + 10);
}

static uint64_t scan_digits(Reader *reader, unsigned base) {
    uint64_t value = 0;
    const char *start = reader->at;
    for (char c = peek(reader, 0); is_hex(c) && hex_value(c) < base; c = peek(reader, 0)) {
        if (value > (UINT64_MAX - hex_value(c)) / base)
            text_reject(reader, reader->line, "this number does not fit 64 bits");
        value = value * base + hex_value(c);
        reader->at++;
    }
    if (reader->at == start) text_reject(reader, reader->line, "number without digits");
    if (peek(reader, 0) == 'U') reader->at++;
    return value;
}

/* `0fXXXXXXXX` and `0dXXXXXXXXXXXXXXXX`: the bits of a float */
static void scan_float_bits(Reader *reader, Token *token, int digits) {
    reader->at += 2;
    for (int i = 0; i < digits; i++) {
        if (!is_hex(peek(reader, 0)))
            text_reject(reader, reader->line,
                        "a float constant of this form has %d hexadecimal digits", digits);
        token->value = token->value << 4 | hex_value(*reader->at++);
    }
    token->kind = digits == 8 ? TOKEN_F32 : TOKEN_F64;
}

/* Decimal floats: the C library's conversion is exact, but needs NUL-terminated text */
static void scan_decimal(Reader *reader, Token *token) {
    char copy[64];
    size_t length = 0;
    for (char c = peek(reader, 0); length + 1 < sizeof copy; c = peek(reader, 0)) {
        bool sign = (c == '+' || c == '-') && length > 0 && (copy[length - 1] | 32) == 'e';
        if (!is_digit(c) && c != '.' && (c | 32) != 'e' && !sign) break;
        copy[length++] = c;
        reader->at++;
    }
    copy[length] = '\0';
    char *stop;
    double value = strtod(copy, &stop);
    if (stop != copy + length) text_reject(reader, reader->line, "`%s` is not a number", copy);
    memcpy(&token->value, &value, sizeof value);
    token->kind = TOKEN_F64;
}

static void scan_number(Reader *reader, Token *token) {
    char second = (char)(peek(reader, 1) | 32);
    token->kind = TOKEN_INTEGER;
    if (peek(reader, 0) == '0' && (second == 'f' || second == 'd')) {
        scan_float_bits(reader, token, second == 'f' ? 8 : 16);
    } else if (peek(reader, 0) == '0' && (second == 'x' || second == 'b')) {
        reader->at += 2;
        token->value = scan_digits(reader, second == 'x' ? 16 : 2);
    } else {
        size_t n = 0;
        while (is_digit(peek(reader, n))) n++;
        if (peek(reader, n) == '.' || (peek(reader, n) | 32) == 'e')
            scan_decimal(reader, token);
        else
            token->value = scan_digits(reader, peek(reader, 0) == '0' && n > 1 ? 8 : 10);
    }
    if (in_word(peek(reader, 0)) && peek(reader, 0) != '.')
        text_reject(reader, reader->line, "a number and a word without a space between them");
}

static void scan_word(Reader *reader) {
    for (;;) {
        if (in_word(peek(reader, 0)))
            reader->at++;
        else if (peek(reader, 0) == ':' && peek(reader, 1) == ':' && in_word(peek(reader, 2)))
            reader->at += 2;
        else
            return;
    }
}

void scan_next(Reader *reader) {
    skip_blanks(reader);
    Token *token = &reader->token;
    *token = (Token){.kind = TOKEN_END, .line = reader->line, .text = reader->at};
    if (reader->at >= reader->end) return;
    char c = *reader->at;
    if (is_digit(c)) {
        scan_number(reader, token);
    } else if (starts_word(c)) {
        scan_word(reader);
        token->kind = TOKEN_WORD;
    } else if (c == '"') {
        reader->at++;
        while (reader->at < reader->end && *reader->at != '"' && *reader->at != '\n') reader->at++;
        if (peek(reader, 0) != '"') text_reject(reader, reader->line, "this string is not closed");
        reader->at++;
        token->kind = TOKEN_STRING;
    } else if (c > ' ' && c < 127) {
        reader->at++;
        token->kind = TOKEN_MARK;
        token->mark = c;
    } else {
        text_reject(reader, reader->line, "unexpected byte 0x%02x in PTX", (unsigned char)c);
    }
    token->length = (uint32_t)(reader->at - token->text);
}

/* Skips a `.loc` or `.file` directive, which ends at the end of its line */
void scan_skip_line(Reader *reader) {
    reader->at = reader->token.text;
    reader->line = reader->token.line;
    while (reader->at < reader->end && *reader->at != '\n') reader->at++;
    scan_next(reader);
}

/* ---- faults and words ------------------------------------------------------------------------ */

void text_reject(Reader *reader, uint32_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    *reader->fault =
        (ReadFault){.code = P0700, .line = line, .why = arena_vprintf(reader->arena, format, args)};
    va_end(args);
    reader->status = READ_REJECTED;
    longjmp(reader->stop, 1);
}

/* The same text on several lines is one row. */
static void note_missing(Reader *reader, uint32_t line, const char *why) {
    for (size_t i = 0; i < reader->missing.count; i++) {
        Missing *known = &reader->missing.items[i];
        if (strcmp(known->why, why) != 0) continue;
        if (known->count < MAX_MISSING_LINES) known->lines[known->count] = line;
        known->count++;
        return;
    }
    reader->missing_kinds++;
    if (reader->missing.count < MAX_MISSING)
        vec_push(reader->arena, &reader->missing, ((Missing){why, 1, {line}}));
}

void text_incomplete(Reader *reader, uint32_t line, const char *format, ...) {
    va_list args;
    va_start(args, format);
    note_missing(reader, line, arena_vprintf(reader->arena, format, args));
    va_end(args);
    if (reader->resumes) longjmp(reader->resume, 1);
    text_stop_if_missing(reader);
    longjmp(reader->stop, 1); /* not reached: there is a row */
}

/* "PTX lines 12, 14, 20 and 3 more: the emulator does not model `x`" */
static const char *missing_text(Reader *reader, const Missing *missing, bool with_first) {
    uint32_t shown = missing->count < MAX_MISSING_LINES ? missing->count : MAX_MISSING_LINES;
    Str out = str_new(reader->arena);
    if (!with_first && missing->count == 1) return missing->why;
    for (uint32_t i = with_first ? 0 : 1; i < shown; i++)
        str_printf(&out, "%s%u", out.length ? ", " : "", missing->lines[i]);
    if (missing->count > shown) str_printf(&out, " and %u more", missing->count - shown);
    bool several = missing->count > (with_first ? 1u : 2u);
    if (with_first)
        return arena_printf(reader->arena, "PTX line%s %s: %s", several ? "s" : "", out.text,
                            missing->why);
    return arena_printf(reader->arena, "%s (and on line%s %s)", missing->why, several ? "s" : "",
                        out.text);
}

void text_stop_if_missing(Reader *reader) {
    size_t count = reader->missing.count;
    if (count == 0) return;
    const char **more = NEW_ARRAY(reader->arena, const char *, count);
    for (size_t i = 1; i < count; i++)
        more[i - 1] = missing_text(reader, &reader->missing.items[i], true);
    size_t more_count = count - 1;
    if (reader->missing_kinds > count)
        more[more_count++] =
            arena_printf(reader->arena, "%u other statements are not modelled either",
                         reader->missing_kinds - (uint32_t)count);
    const Missing *first = &reader->missing.items[0];
    *reader->fault =
        (ReadFault){P0701, first->lines[0], missing_text(reader, first, false), more, more_count};
    reader->status = READ_INCOMPLETE;
    longjmp(reader->stop, 1);
}

bool text_is(const Token *token, const char *word) {
    return token->kind == TOKEN_WORD && token->length == strlen(word) &&
           !memcmp(token->text, word, token->length);
}
bool text_at(const Reader *reader, char mark) {
    return reader->token.kind == TOKEN_MARK && reader->token.mark == mark;
}
bool text_take(Reader *reader, char mark) {
    if (!text_at(reader, mark)) return false;
    scan_next(reader);
    return true;
}
void text_expect(Reader *reader, char mark) {
    if (!text_take(reader, mark))
        text_reject(reader, reader->token.line, "expected `%c` before `%.*s`", mark,
                    (int)(reader->token.length < 40 ? reader->token.length : 40),
                    reader->token.text);
}
Token text_word(Reader *reader, const char *what) {
    Token token = reader->token;
    if (token.kind != TOKEN_WORD) text_reject(reader, token.line, "expected %s", what);
    scan_next(reader);
    return token;
}
uint64_t text_integer(Reader *reader) {
    Token token = reader->token;
    if (token.kind != TOKEN_INTEGER) text_reject(reader, token.line, "expected a number");
    scan_next(reader);
    return token.value;
}
bool text_directive(Reader *reader, const char *word) {
    if (!text_is(&reader->token, word)) return false;
    scan_next(reader);
    return true;
}

void text_skip_braces(Reader *reader) {
    uint32_t opened = reader->token.line, depth = 0;
    do {
        if (reader->token.kind == TOKEN_END) text_reject(reader, opened, "this `{` is not closed");
        if (text_at(reader, '{')) depth++;
        if (text_at(reader, '}')) depth--;
        scan_next(reader);
    } while (depth > 0);
}
void text_skip_statement(Reader *reader) {
    while (!text_at(reader, ';')) {
        if (reader->token.kind == TOKEN_END)
            text_reject(reader, reader->token.line, "expected `;` before the end of the text");
        scan_next(reader);
    }
    scan_next(reader);
}

TextPlace text_place(const Reader *reader) {
    return (TextPlace){reader->token.text, reader->token.line};
}
void text_go_to(Reader *reader, TextPlace place) {
    reader->at = place.at;
    reader->line = place.line;
    scan_next(reader);
}
