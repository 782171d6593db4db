/* parser: tokens to a tree. Public header of the floor.
 *
 * Reports all syntax errors of the text in one run, one message per error. Returns the tree of
 * the parts that could be read, also after errors (diags->errors counts them); never NULL. */
#ifndef PIPEC_PARSER_H
#define PIPEC_PARSER_H

#include "parser/ast.h"

/* Parses the text; names are interned in `names` */
Ast *parser_parse(Arena *arena, Names *names, const Source *source, Diags *diags);
/* The names in a text without errors, in order. Few programs need them, and they take much memory:
 * the tree does not have them. */
void parser_words(Arena *arena, Names *names, const Source *source, Occurrences *out);
/* --emit=tokens */
void tokens_print(Arena *arena, Names *names, const Source *source, Diags *diags, Str *out);

#endif
