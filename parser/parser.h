/* parser: tokens to a tree. Public header of the floor.
 *
 * Reports all syntax errors of the text in one run, one message per error. Returns the tree of
 * the parts that could be read, also after errors (diags->errors counts them); never NULL. */
#ifndef PIPEC_PARSER_H
#define PIPEC_PARSER_H

#include "parser/ast.h"

/* Parses the text; names are interned in `names` */
Ast *parser_parse(Arena *arena, Names *names, const Source *source, Diags *diags);
/* As parser_parse; `words` takes the names in the text, in order, in the memory that it names: the
 * tree does not have them. NULL: they are not collected. */
Ast *parser_parse_words(Arena *arena, Names *names, const Source *source, Occurrences *words,
                        Diags *diags);
/* --emit=tokens */
void tokens_print(Arena *arena, Names *names, const Source *source, Diags *diags, Str *out);

#endif
