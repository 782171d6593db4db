/* Random well-formed kernels: the text of a program from a seed, whose `ensures` is right by
 * construction, and sizes to launch it with. The content of a field is known as an expression
 * over the tensors at the coordinates i, j, k, l of the whole index space; an output's claim is
 * the expression that its role computes, in these coordinates. */
#ifndef TESTS_GENERATE_H
#define TESTS_GENERATE_H

#include "util/util.h"

typedef struct Random {
    uint64_t state;
} Random;

uint32_t draw(Random *random, uint32_t below); /* 0 .. below - 1 */
bool chance(Random *random, int percent);

#define SIZES 3

typedef struct Generated {
    const char *text;
    const char *sizes[SIZES]; /* "A=16 B=33 a=2": arguments of a launch */
} Generated;

Generated generate(Arena *arena, uint64_t seed);
Generated generate_reductions(Arena *arena, uint64_t seed);

/* True if ptxas accepts the text for the target, without a warning and with at most `spills` bytes
 * of spills. *output: its output. */
bool assembles(Arena *arena, const char *target, const char *ptx, uint64_t spills,
               const char **output);

/* --draw: prints a program for same-test: a line with its name and length, then the text */
void drawn_print(const char *kind, uint64_t seed, const char *text);

/* Opens the GPU for --gpu; NULL: there is none, which is printed and counted in *failed. */
struct Runtime *open_gpu(Arena *arena, int *failed);

#endif
