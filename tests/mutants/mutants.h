/* Mutants: all small changes of a program's kernels. A mutation is a place and its new text. */
#ifndef TESTS_MUTANTS_H
#define TESTS_MUTANTS_H

#include "util/util.h"

typedef struct Mutation {
    const char *how;  /* the name of the operation: "one more", "statement deleted" */
    uint32_t lo, hi;  /* bytes of the text */
    const char *with; /* the new text */
} Mutation;

typedef VEC(Mutation) Mutations;

/* For all kernels of the text, in order. Claims, examples, requirements, statics' sets and
 * functions stay unchanged, because they are the specification. */
void mutations_of(Arena *arena, const char *text, Mutations *out);

const char *mutated(Arena *arena, const char *text, const Mutation *mutation);
/* The line of the place, with the place between « and », and the new text: "for k in «kt» {  ->
 * kt from 1" */
const char *mutation_line(Arena *arena, const char *text, const Mutation *mutation);

#endif
