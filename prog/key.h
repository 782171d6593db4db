/* key: all that a program says, as a list of words: two programs are the same to every reader of
 * a Prog exactly where their keys are equal. Objects that are shared are written once; where they
 * stand again their number is, so that equal keys mean equal sharing too. What passes fill in is
 * not in it: a key is made before they run. */
#ifndef PIPEC_PROG_KEY_H
#define PIPEC_PROG_KEY_H

#include "prog/prog.h"

typedef struct Key {
    Arena *arena;
    VEC(uint32_t) words;
    const void **slots; /* objects that are in it, by their addresses */
    uint32_t *numbers;  /* of the objects in `slots` */
    size_t capacity;    /* of both: a power of two */
    uint32_t objects;
} Key;

void key_word(Key *key, uint32_t word);
void key_wide(Key *key, int64_t value); /* two words */
void key_ints(Key *key, size_t count, const int *ints);
#define KEY_INTS(key, ...)                                                                         \
    key_ints(key, COUNT_OF(((const int[]){__VA_ARGS__})), (const int[]){__VA_ARGS__})
void key_number(Key *key, double value);
void key_span(Key *key, Span span);
void key_text(Key *key, const char *text); /* NULL is not "" */
/* Writes which object it is. True: nothing more is to be written of it, since it is in the key
 * already, or NULL. */
bool key_has(Key *key, const void *object);

/* Each with all below it; NULL is allowed */
void key_expr(Key *key, const Expr *expr);
void key_access(Key *key, const Access *access);
void key_space(Key *key, const IndexSpace *space);
void key_tile(Key *key, const Tile *tile);
void key_unsafe(Key *key, const Unsafe *unsafe);

/* The kernel and its roles, without their statements; these are rows (flow/key.c) */
void key_prog(Key *key, const Prog *prog);

#endif
