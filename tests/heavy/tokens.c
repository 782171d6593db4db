/* Texts to words and back. */
#include "tests/heavy/heavy.h"

#include <ctype.h>
#include <string.h>

static bool is_word(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Of a number: "0 .. 4" and "0..4" have two */
static size_t number_length(const char *at, const char *end) {
    const char *from = at;
    while (at < end && is_word(*at)) at++;
    if (at < end && *at == '.' && (at + 1 == end || at[1] != '.'))
        for (at++; at < end && is_word(*at);) at++;
    if (at < end && (at[-1] == 'e' || at[-1] == 'E') && (*at == '-' || *at == '+'))
        for (at++; at < end && is_word(*at);) at++;
    return (size_t)(at - from);
}

static size_t sign_length(const char *at, const char *end) {
    static const char *const pairs[] = {"==", "!=", "<=", ">=", "&&", "||",
                                        "->", "..", "+=", "-=", "*=", "/="};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (end - at > 1 && memcmp(at, pairs[i], 2) == 0) return 2;
    return 1;
}

static size_t until(const char *at, const char *end, const char *last) {
    size_t length = strlen(last);
    for (const char *now = at + 1; (size_t)(end - now) >= length; now++)
        if (memcmp(now, last, length) == 0) return (size_t)(now - at) + length;
    return (size_t)(end - at);
}

Tokens tokens_of(Arena *arena, const char *text, size_t length) {
    Tokens out = {0};
    const char *at = text, *end = text + length;
    while (at < end) {
        Token token = {.kind = TOKEN_SIGN, .text = at};
        bool comment = end - at > 1 && at[0] == '/' && (at[1] == '/' || at[1] == '*');
        if (comment || isspace((unsigned char)*at)) {
            at += !comment ? 1 : until(at, end, at[1] == '/' ? "\n" : "*/");
            continue;
        }
        if (isdigit((unsigned char)*at)) {
            token.kind = TOKEN_NUMBER, token.length = number_length(at, end);
        } else if (is_word(*at)) {
            token.kind = TOKEN_WORD;
            while (at + token.length < end && is_word(at[token.length])) token.length++;
        } else if (*at == '"') {
            token.kind = TOKEN_STRING, token.length = until(at, end, "\"");
        } else {
            token.length = sign_length(at, end);
        }
        vec_push(arena, &out, token);
        at += token.length;
    }
    return out;
}

Token token_of(Arena *arena, const char *text) {
    size_t length = strlen(text);
    TokenKind kind = isdigit((unsigned char)text[0]) ? TOKEN_NUMBER
                     : is_word(text[0])              ? TOKEN_WORD
                                                     : TOKEN_SIGN;
    return (Token){kind, arena_copy(arena, text, length), length};
}

bool token_is(const Token *token, const char *text) {
    return token->length == strlen(text) && memcmp(token->text, text, token->length) == 0;
}

Str tokens_text(Arena *arena, const Tokens *tokens) {
    Str out = str_new(arena);
    str_add(&out, "");
    for (size_t i = 0; i < tokens->count; i++) {
        const Token *token = &tokens->items[i];
        char last = token->text[token->length - 1];
        str_add_bytes(&out, token->text, token->length);
        str_char(&out, last == ';' || last == '{' || last == '}' ? '\n' : ' ');
    }
    return out;
}
