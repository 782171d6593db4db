/* lib, private: the candidates of a kernel, and the choice among them for a launch. */
#ifndef PIPEC_LIB_FAMILY_H
#define PIPEC_LIB_FAMILY_H

#include "lib/cache.h"
#include "lib/private.h"

#include "launch/common.h"

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
    bool unproved;   /* that is an incomplete verdict */
    bool elsewhere;  /* it is for another target than the first candidate */
    size_t common;   /* in the family: what it computes together with others, for each launch */
    const Manifest *placed; /* for values of that */
} Candidate;

/* All candidates for the statics that were given to a program: those of its kernel, or of all
 * variants if they were left open. The program's own one is the first. */
struct Family {
    Arena *arena;
    const PipecProgram *program;
    Candidate *items;
    size_t count, symbols; /* symbols: most of a manifest */
    Commons commons;
    Choice key;   /* of choices of tuning, as far as it depends on the text */
    bool is_kept; /* an earlier process has compiled them */
    /* the first kernel whose sets have too many combinations, so that only the values of the text
     * are a candidate, and a value to fix: "T=8"; NULL: none */
    const char *beyond, *fixed;
};

/* The family of the program, made at the first call: read from the cache, otherwise each candidate
 * is compiled once, and what a choice reads of its manifest is kept. It is freed with the program.
 * Several threads may call it. NULL: memory ran out. */
const Family *family_of(PipecProgram *program);
/* Sets what depends on all of its candidates */
void family_finish(Family *family);
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
    const Kept *kept;                /* what tuning kept for the text; NULL: it is not used */
    const Kept *fixed;               /* choices of the caller for the text; NULL: none */
    /* a part of the device, which only persistent grids can run on; 0: all */
    int multiprocessors;
    bool invariant; /* only candidates whose sums do not depend on the number of rows */
    /* only the best of all is asked for: the times of those that cannot be it are lower bounds */
    bool only_best;
} Wish;

/* What restricts the choice for one launch */
typedef struct Limits {
    const Choice *fixed; /* the caller's choice for these extents; NULL: none */
    /* why it cannot run, or none that is invariant, so that the launch is refused; NULL: one can */
    const char *why;
} Limits;

/* A candidate for one launch */
typedef struct Chosen {
    const Candidate *candidate; /* NULL: none can run */
    const char *why;            /* it cannot run; NULL: it can */
    const Choice *kept;         /* what tuning measured for these extents; NULL: nothing */
    const Choice *near;         /* nearby, if not for these */
    Prediction predicted;       /* seconds 0: not known */
} Chosen;

/* All candidates for a launch, in their order: `all` has room for each. `words`: an arena for the
 * call. Several threads may call it at once. Those outside of the limits cannot run. */
Limits family_rate(const Family *family, const Wish *wish, Arena *words, Chosen *all);
/* The fastest of them that can run: as measured for these extents, otherwise as measured nearby, if
 * the model agrees, otherwise as predicted, otherwise the first. `kept` of it is what counted. */
Chosen family_best(const Family *family, const Chosen *all);
/* Arguments of a launch with these values of the symbols: contiguous tensors that are aligned and
 * do not meet. False: a formula overflows. */
bool family_arguments(const Manifest *manifest, const int64_t *symbols, DeviceArgument *arguments);

#endif
