/* Mutants: a program's text goes in, all small wounds of its kernels come out. A wound is one place and what stands there instead. */
#ifndef TESTS_MUTANTS_H
#define TESTS_MUTANTS_H

#include "util/util.h"

typedef struct Mutation {
    const char *how;  /* the name of the operation: "one more", "statement deleted" */
    uint32_t lo, hi;  /* bytes of the text */
    const char *with; /* what stands there instead */
} Mutation;

typedef VEC(Mutation) Mutations;

/* Of all kernels of the text, in order. Claims, examples, requirements, statics' sets and functions stay as they are: they say what is
 * meant. */
void mutations_of(Arena *arena, const char *text, Mutations *out);

const char *mutated(Arena *arena, const char *text, const Mutation *mutation);
/* The line of the place as it was, the place itself between « and », and what stands there: "for k in «kt» {  ->  kt from 1" */
const char *mutation_line(Arena *arena, const char *text, const Mutation *mutation);

#endif
