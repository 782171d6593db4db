/* elaborate: Ast -> Prog with names resolved, statics bound, functions inlined and expressions
 * typed, or diagnostics. Public header of the floor. */
#ifndef PIPEC_ELABORATE_H
#define PIPEC_ELABORATE_H

#include "parser/ast.h"
#include "prog/prog.h"

/* NAME=VALUE for a static, from the command line or a launcher */
typedef struct StaticValue {
    const char *name;
    double number;
    int64_t integer; /* of a type: the Element */
    bool is_integer, is_type;
} StaticValue;

/* Checks that names of functions and kernels are distinct, also from built-in names, and what
 * stands in variants and beside them. Called once per file. */
void elaborate_names(Arena *arena, Names *names, const Ast *ast, Diags *diags);
/* Warns of names that are declared and occur nowhere else; words: all names in the text
 * (parser_parse_words) */
void elaborate_unused(Arena *arena, const Ast *ast, const Occurrences *words, Diags *diags);

/* What a caller gives for the compilation of a kernel */
typedef struct Settings {
    const Target *target; /* NULL: the first one that the kernel names */
    const StaticValue *statics;
    size_t count;
} Settings;

/* Needs a tree; resolves names, binds statics, inlines functions, types expressions */
Prog *elaborate(Arena *arena, Names *names, const Ast *ast, const AstItem *kernel,
                const Settings *given, Diags *diags);

#endif
