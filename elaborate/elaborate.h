/* elaborate: what does the text mean. The door of the floor: Ast -> Prog with names resolved, statics bound, functions inlined and
 * expressions typed, or diagnostics. */
#ifndef PIPEC_ELABORATE_H
#define PIPEC_ELABORATE_H

#include "parser/ast.h"
#include "prog/prog.h"

/* NAME=VALUE for statics, from the command line or a launcher */
typedef struct StaticValue {
    const char *name;
    double number;
    int64_t integer;
    bool is_integer;
} StaticValue;

/* Are the names of functions and kernels apart, from each other and from what is built in? Once a file. */
void elaborate_names(Arena *arena, Names *names, const Ast *ast, Diags *diags);

/* needs a tree; leaves names resolved, statics bound, functions inlined, expressions typed */
Prog *elaborate(Arena *arena, Names *names, const Ast *ast, const AstItem *kernel, const StaticValue *statics, size_t count,
                Diags *diags);

#endif
