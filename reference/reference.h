/* reference: what should have come out. The door of the floor: Prog + arrays -> verdict on `ensures`.
 *
 * Everything is evaluated on the host: floats in f64, integers in 64 bits (u32 and narrower results of casts wrap as
 * the device does), lets remembered in bounded memory. All elements where that is cheap, else a sample that holds the
 * corners of tiles, the first and last two indices of each axis and the ragged edge. */
#ifndef PIPEC_REFERENCE_H
#define PIPEC_REFERENCE_H

#include "prog/prog.h"
#include "launch/launch.h"

/* The user's arguments, and behind them those of the file's `example` (marked from_example) that have a meaning for
 * this manifest; formulas become arrays of values, computed with the symbols that all arguments together give. False,
 * with a diagnostic, where such a formula cannot be computed. */
bool reference_arguments(Arena *arena, const Prog *prog, const Manifest *manifest, const Argument *given,
                         size_t given_count, Argument **all, size_t *count, Diags *diags);

/* Only the symbols that these arguments give; no formula is computed. */
bool reference_symbols(Arena *arena, const Prog *prog, const Manifest *manifest, const Argument *given,
                       size_t given_count, int64_t *symbols, Diags *diags);

/* What must be kept from before the launch: copies of the tensors that `old` reads. They are not of the arena. */
typedef struct Before {
    Array *arrays; /* one a parameter; empty where nothing is kept */
    size_t count;
} Before;

bool reference_before(Arena *arena, const Prog *prog, const Launch *launch, Before *before, Diags *diags);
void reference_before_free(Before *before);

#define VERDICT_WORST 8

typedef enum VerdictKind { VERDICT_RIGHT, VERDICT_WRONG, VERDICT_NOT_CHECKED } VerdictKind;

typedef struct Verdict {
    VerdictKind kind;
    const char *why;  /* VERDICT_NOT_CHECKED: the reason */
    int64_t elements; /* that claims speak of */
    int64_t checked;  /* of them */
    int64_t wrong;    /* of those */
    bool sampled;
    uint64_t seed;     /* of the sample */
    double largest;    /* largest error among tolerance claims, as a part of what is allowed */
    int64_t untouched; /* elements of `out` tensors that were never written */
} Verdict;

typedef struct ReferenceOptions {
    uint64_t seed; /* of the sample */
    double budget; /* operations that count as cheap; 0: 2e8 */
} ReferenceOptions;

/* The arrays of the launch hold results now. Mismatches are reported to `diags`, with the worst elements. */
void reference_verdict(Arena *arena, const Prog *prog, const Launch *launch, const Before *before,
                       const ReferenceOptions *options, Verdict *verdict, Diags *diags);

#endif
