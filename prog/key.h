/* key: a program as a list of words; two programs are equal if and only if their keys are equal.
 * A shared object is written once, and later references to it are its number, so that equal keys
 * also mean equal sharing. Fields that passes set are left out: a key is made before they run. */
#ifndef PIPEC_PROG_KEY_H
#define PIPEC_PROG_KEY_H

#include "prog/prog.h"

typedef struct Key {
    Arena *arena;
    VEC(uint32_t) words;
    const void **slots; /* hash table of the objects in the key, by address */
    uint32_t *numbers;  /* numbers of the objects in `slots` */
    size_t capacity;    /* of both tables: a power of two */
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
/* Appends the number of the object. True: the caller appends no fields, because the object is NULL
 * or already in the key. */
bool key_has(Key *key, const void *object);

/* Append the object with everything it refers to; NULL is allowed. */
void key_expr(Key *key, const Expr *expr);
void key_access(Key *key, const Access *access);
void key_space(Key *key, const IndexSpace *space);
void key_tile(Key *key, const Tile *tile);
void key_unsafe(Key *key, const Unsafe *unsafe);

/* Appends the kernel and its roles, without statements, which are rows (flow/key.c). */
void key_prog(Key *key, const Prog *prog);

#endif
