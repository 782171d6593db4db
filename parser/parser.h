/* parser: tokens to a tree. Public header of the floor.
 *
 * A source may have several files: the tree has the items of all, in their order. Includes are
 * resolved before (parser_includes): here they are only read.
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
/* The paths in the includes of a text, between their quotes, in its order. Reports nothing: the
 * parse does. */
typedef VEC(Span) Includes;
Includes parser_includes(Arena *arena, const char *text, size_t length);
/* --emit=tokens */
void tokens_print(Arena *arena, Names *names, const Source *source, Diags *diags, Str *out);

#endif
