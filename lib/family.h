/* lib, private: the candidates of a kernel, and the choice among them for a launch. */
#ifndef PIPEC_LIB_FAMILY_H
#define PIPEC_LIB_FAMILY_H

#include "lib/cache.h"
#include "lib/private.h"

/* A static with a set of numbers and no value given. An element type is not open: with another
 * one it would be another problem. */
typedef struct OpenStatic {
    const char *name;
    VEC(int64_t) values; /* each once, in the order of the set */
} OpenStatic;
typedef struct OpenStatics {
    OpenStatic *items;
    size_t count, capacity;
} OpenStatics;

#define COMBINATIONS_TRIED 1024

/* The open statics of a kernel, from its constants */
OpenStatics statics_open(Arena *arena, const Prog *constants, const PipecProgram *program);
/* Product of the sizes of their sets, at most COMBINATIONS_TRIED + 1 */
size_t statics_combinations(const OpenStatics *open);
/* "NAME=VALUE" of each in combination `place`, in the order of the sets; the last varies first */
const char **statics_words(Arena *arena, const OpenStatics *open, size_t place);
const char *statics_text(Arena *arena, const char *const *words, size_t count); /* "BM=128 T=4" */

/* A variant with values for its open statics */
typedef struct Candidate {
    const char *kernel; /* "gemm", or "gemm:wide" */
    const char *values; /* of its open statics; empty: it has none */
    const char **words; /* those of all statics that have been given or are open */
    size_t word_count;
    const Manifest
        *manifest;   /* what a choice reads of it (launch/pack.h); NULL: it cannot be built */
    const char *why; /* then its first error */
} Candidate;

/* All candidates for the statics that were given to a program: those of its kernel, or of all
 * variants if they were left open. The program's own one is the first. */
struct Family {
    Arena *arena;
    const PipecProgram *program;
    Candidate *items;
    size_t count, symbols; /* symbols: most of a manifest */
    Choice key;            /* of choices of tuning, as far as it depends on the text */
    bool is_kept;          /* an earlier process has compiled them */
};

/* The family of the program, made at the first call: read from the cache, otherwise each candidate
 * is compiled once, and what a choice reads of its manifest is kept. It is freed with the program.
 * Several threads may call it. NULL: memory ran out. */
const Family *family_of(PipecProgram *program);
/* True if there is something to choose: a static, or a variant */
bool family_is_open(const PipecProgram *program);
/* The candidate as a program, to be freed by the caller; NULL: memory ran out */
PipecProgram *family_program(const Family *family, const Candidate *candidate);

/* Fills it with the candidates that an earlier process kept. False: there are none, or those of
 * another text or build, or they are damaged */
bool family_recall(Family *family);
/* Keeps its candidates. If that fails they are compiled again. */
void family_keep(const Family *family);

typedef struct Wish {
    const DeviceArgument *arguments; /* one per parameter */
    const MachineRow *machine;       /* that times are predicted for; NULL: none is */
    const Choices *kept;             /* of tuning, for this text; NULL: none */
    const char *device;              /* whose choices are used; NULL: none */
    /* a part of the device, which only persistent grids can run on; 0: all */
    int multiprocessors;
} Wish;

typedef struct Chosen {
    const Candidate *candidate; /* NULL: none can run */
    const Choice *kept;         /* of tuning; NULL: the model chose, or the order of the text */
    const Choice *stale;        /* one for this launch that names no candidate; NULL: none */
    Prediction predicted;       /* seconds 0: not known */
} Chosen;

/* Chooses the fastest that can run: as measured by tuning, otherwise as predicted, otherwise the
 * first. `words`: an arena for the call; why: one sentence per candidate that cannot run, NULL
 * allowed. Several threads may choose at once. */
Chosen family_choose(const Family *family, const Wish *wish, Arena *words, const char **why);

#endif
