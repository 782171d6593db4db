/* lexer: bytes to tokens. Public header of the floor.
 *
 * lexer_open prepares a text; the generated pipe_lex (declared in pipe.tab.h, with the token
 * numbers) then returns one token at a time. Errors inside a token are reported by the lexer;
 * the parser gets a substitute: BAD for a literal, otherwise the error token. */
#ifndef PIPEC_LEXER_H
#define PIPEC_LEXER_H

#include "util/util.h"

/* depth of brackets; bounds the recursion of all later passes */
#define NESTING_MAX 400
/* most errors reported by lexer and parser for one text */
#define REPORTS_MAX 100

typedef struct Bracket {
    Span span;
    char shape; /* ( [ or { */
} Bracket;

typedef struct Lexer {
    Arena *arena;
    Names *names;
    const Source *source;
    const SourceFile *file; /* of the source: what is read */
    Diags *diags;
    uint32_t at;           /* offset of the next token */
    Span word;             /* span of the current token */
    uint32_t previous_end; /* end of the token before it */
    /* end of the last text that a report about a token covered */
    uint32_t complained;
    /* offset of the last token before `word` that begins or ends a statement or an item */
    uint32_t boundary;
    bool at_boundary; /* `word` is such a word */
    /* end of the last token after which a quoted text may follow: `ptx`, `include` outside of
     * brackets, or such a text; 0: none */
    uint32_t quote_allowed_at;
    Bracket open[NESTING_MAX];
    int depth; /* of `open` */
    int reports;
    /* reports nothing more and returns only END */
    bool stopped;
    VEC(Span) comments;
    char *copy;         /* of the text, which flex writes to */
    Occurrences *words; /* takes the names in the text, in order; NULL: they are not collected */
} Lexer;

/* Returns the scanner of one file of the source for pipe_lex; it lives as long as the arena.
 * Reports NUL bytes and invalid UTF-8 of the whole file. */
void *lexer_open(Lexer *lexer, Arena *arena, Names *names, const Source *source,
                 const SourceFile *file, Diags *diags);

/* No token is asked for any more: gives memory back. */
void lexer_close(Lexer *lexer);

/* As diag_at, but counted: after REPORTS_MAX the lexer stops. Never NULL; a report above the
 * limit is discarded. */
Diag *lexer_report(Lexer *lexer, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
#ifdef FROM_HERE
#define lexer_report(lexer, ...) (FROM_HERE((lexer)->diags), lexer_report(lexer, __VA_ARGS__))
#endif

#endif
