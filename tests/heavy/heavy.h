/* Texts of up to 100 kB that are heavy to check: files of the tests, joined, repeated, nested and
 * with longer formulas, most of them still valid. */
#ifndef TESTS_HEAVY_H
#define TESTS_HEAVY_H

#include "tests/generate/generate.h"
#include "util/util.h"

#define LENGTH_MOST 100000 /* bytes of a text, exclusive */

typedef enum TokenKind { TOKEN_WORD, TOKEN_NUMBER, TOKEN_STRING, TOKEN_SIGN } TokenKind;

typedef struct Token {
    TokenKind kind;
    const char *text; /* not terminated */
    size_t length;
} Token;
typedef VEC(Token) Tokens;

/* The words of a text, without its comments */
Tokens tokens_of(Arena *arena, const char *text, size_t length);
Token token_of(Arena *arena, const char *text); /* copies a word */
bool token_is(const Token *token, const char *text);
/* A line for each statement */
Str tokens_text(Arena *arena, const Tokens *tokens);

typedef VEC(const char *) Texts;

typedef struct Corpus { /* files of the tests: that are accepted, and others */
    Texts right, wrong;
} Corpus;

/* A text of less than LENGTH_MOST bytes */
Str draw_heavy(Arena *arena, const Corpus *corpus, uint64_t seed);

#endif
