/* reference: evaluates `ensures` on the host. Public header of the floor: Prog + arrays ->
 * verdict.
 *
 * Floats are computed in f64, integers in 64 bits (u32 and results of narrowing casts wrap as on
 * the device), lets are cached in bounded memory. Checks all elements if that is cheap,
 * otherwise a sample that contains the corners of tiles, the first and last two indexes of each
 * axis and the ragged edge. */
#ifndef PIPEC_REFERENCE_H
#define PIPEC_REFERENCE_H

#include "prog/prog.h"
#include "launch/launch.h"

/* The user's arguments, followed by those of the file's `example` (marked from_example) that
 * apply to this manifest; formulas become arrays of values, computed with the symbols that all
 * arguments together define. False, with a diagnostic, if such a formula cannot be computed. */
bool reference_arguments(Arena *arena, const Prog *prog, const Manifest *manifest,
                         const Argument *given, size_t given_count, Argument **all, size_t *count,
                         Diags *diags);

/* Only the symbols that these arguments define; computes no formula. */
bool reference_symbols(Arena *arena, const Prog *prog, const Manifest *manifest,
                       const Argument *given, size_t given_count, int64_t *symbols, Diags *diags);

/* Copies of the tensors that `old` reads, from before the launch. Not in the arena. */
typedef struct Before {
    Array *arrays; /* one per parameter; empty if no copy is needed */
    size_t count;
} Before;

/* Copies the arrays of the launch that `old` reads. Called before the launch. False: no memory,
 * with a diagnostic. */
bool reference_before(Arena *arena, const Prog *prog, const Launch *launch, Before *before,
                      Diags *diags);
/* Frees the copies */
void reference_before_free(Before *before);

#define VERDICT_WORST 8

typedef enum VerdictKind { VERDICT_RIGHT, VERDICT_WRONG, VERDICT_NOT_CHECKED } VerdictKind;

typedef struct Verdict {
    VerdictKind kind;
    const char *why; /* VERDICT_NOT_CHECKED: the reason */
    /* there is a claim of which no element was checked, or the caller ended the comparison */
    bool undecided;
    int64_t elements; /* elements of the claims */
    int64_t checked;  /* of them, checked */
    int64_t wrong;    /* of those, wrong */
    bool sampled;
    uint64_t seed; /* of the sample */
    /* largest error among claims with a tolerance, divided by the error that is
     * allowed there */
    double largest;
    int64_t untouched; /* elements of `out` tensors that were never written */
} Verdict;

typedef struct ReferenceOptions {
    uint64_t seed; /* of the sample */
    /* most operations for checking all elements; 0: 2e8 */
    double budget;
    double share; /* of the budget, and of the least sample; 0: all */
    /* NULL, or called every few milliseconds with the part that is done, 0 to 1; false ends the
     * comparison, whose verdict then is `undecided` */
    bool (*progress)(void *data, double part);
    void *progress_data;
} ReferenceOptions;

/* Compares the arrays of the launch, which now hold results, with the claims. Reports
 * mismatches, with the worst elements, to `diags`. */
void reference_verdict(Arena *arena, const Prog *prog, const Launch *launch, const Before *before,
                       const ReferenceOptions *options, Verdict *verdict, Diags *diags);

#endif
