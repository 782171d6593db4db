/* launch: what measured launches took, compared with what the model predicts for them, as
 * regression trees over facts of a launch. The model sums up what it knows of the hardware; the
 * trees, which were fitted to times of kernels/linear.pipe, know what happens together. All trees
 * have the same form, so that a walk has no branch that is hard to predict: a candidate takes about
 * 1 us. */
#include "launch/launch.h"

#include <math.h>

#define DEPTH  5
#define LEAVES (1 << DEPTH)
#define UNIT   1e-4 /* of a leaf, in the logarithm of the time */

typedef struct Tree {
    uint8_t fact[LEAVES - 1]; /* of the node; its children are 2 * node + 1, 2 * node + 2 */
    float most[LEAVES - 1];   /* left: the fact is at most this */
    int16_t leaf[LEAVES];
} Tree;

typedef struct Range { /* of a fact in what was measured */
    float least, most;
} Range;

static const Range ranges[] = {
#define RANGE(...) {__VA_ARGS__},
#define TREE(...)
#include "launch/trees.def"
#undef RANGE
#undef TREE
};
_Static_assert(COUNT_OF(ranges) == MODEL_FACTS,
               "trees.def is of other facts: python3 bench/fit.py");

static const Tree trees[] = {
#define RANGE(...)
#define TREE(...) {__VA_ARGS__},
#include "launch/trees.def"
#undef RANGE
#undef TREE
};

static int leaf_of(const Tree *tree, const float *facts) {
    int node = 0;
    for (int d = 0; d < DEPTH; d++)
        node = 2 * node + 1 + (facts[tree->fact[node]] > tree->most[node]);
    return tree->leaf[node - (LEAVES - 1)];
}

double model_correction(const Prediction *prediction) {
    const float *facts = prediction->facts;
    if (prediction->seconds <= 0 || prediction->terms[MODEL_MATRIX] <= 0) return 1;
    for (int f = 0; f < MODEL_FACTS; f++)
        if (!(facts[f] >= ranges[f].least && facts[f] <= ranges[f].most)) return 1;
    int sum = 0;
    for (size_t t = 0; t < COUNT_OF(trees); t++) sum += leaf_of(&trees[t], facts);
    return exp(sum * UNIT);
}
