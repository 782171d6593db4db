/* lexer: bytes to words. The door of the floor.
 *
 * lexer_open readies a text; the generated pipe_lex (declared in pipe.tab.h, with the numbers of the words) then gives word
 * after word. What is wrong inside a word is reported here, and the parser hears of it only through a substitute: BAD in
 * the place of a literal, the error token else. */
#ifndef PIPEC_LEXER_H
#define PIPEC_LEXER_H

#include "util/util.h"

#define NESTING_MAX 400 /* brackets in brackets; keeps every recursive pass behind the parser safe */
#define REPORTS_MAX 100 /* errors of words and trees in one text */

typedef struct Bracket {
    Span span;
    char shape; /* ( [ or { */
} Bracket;

typedef struct Lexer {
    Arena *arena;
    Names *names;
    const Source *source;
    Diags *diags;
    uint32_t at;           /* where the next word is looked for */
    Span word;             /* the word that was read last */
    uint32_t previous_end; /* where the word before it ended */
    uint32_t complained;   /* end of the last text that a report about a word covered */
    uint32_t boundary;     /* where the last word before `word` lies that begins or ends a statement or an item */
    bool at_boundary;      /* `word` is such a word */
    uint32_t text_behind;  /* end of the last word behind which a text in quotes may stand: `ptx`, or such a text; 0: none */
    Bracket open[NESTING_MAX];
    int depth; /* of `open` */
    int reports;
    bool stopped; /* nothing more is read or reported: END from here on */
    VEC(Span) comments;
} Lexer;

/* The scanner to hand to pipe_lex; it lives as long as the arena. Reports NUL bytes and invalid UTF-8 of the whole text. */
void *lexer_open(Lexer *lexer, Arena *arena, Names *names, const Source *source, Diags *diags);

/* As diag_at, counted: after REPORTS_MAX of them the text is given up. Never NULL; what is over the limit goes nowhere. */
Diag *lexer_report(Lexer *lexer, Code code, Span span, const char *format, ...) PRINTF_LIKE(4, 5);
#ifdef FROM_HERE
#define lexer_report(lexer, ...) (FROM_HERE((lexer)->diags), lexer_report(lexer, __VA_ARGS__))
#endif

#endif
