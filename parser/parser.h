/* parser: words to a tree. The door of the floor.
 *
 * Reports all syntax errors of the text in one run, one message per mistake. Returns the tree of what could be read, also
 * after errors (diags->errors says whether there were any); never NULL. */
#ifndef PIPEC_PARSER_H
#define PIPEC_PARSER_H

#include "parser/ast.h"

Ast *parser_parse(Arena *arena, Names *names, const Source *source, Diags *diags);
void tokens_print(Arena *arena, Names *names, const Source *source, Diags *diags, Str *out); /* --emit=tokens */

#endif
