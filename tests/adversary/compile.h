/* Compiles a text to a launchable program; separate from the other files, because the compiler's
 * trees use the same names. */
#ifndef TESTS_ADVERSARY_COMPILE_H
#define TESTS_ADVERSARY_COMPILE_H

#include "launch/launch.h"

typedef struct Compiled {
    bool refused, undecided, greedy; /* greedy: memory ran out */
    size_t bytes;
    Diags *diags;
    Str ptx;
    Manifest *manifest;
    const Source *source;
} Compiled;

/* Compiles kernel `k` of the text. False: refused. */
bool compile_text(Arena *arena, const char *text, Compiled *out);

#endif
