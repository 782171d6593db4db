/* launch: what measured launches took, compared with what the model predicts for them, as
 * regression trees over facts of a launch. The model sums up what it knows of the hardware; the
 * trees, which were fitted to times of kernels/linear.pipe, know what happens together. All trees
 * have the same form, so that a walk has no branch that is hard to predict, and the steps of some
 * walks wait for each other's loads: a candidate takes about 0.6 us. */
#include "launch/launch.h"

#include <math.h>
#include <string.h>

/* The depth of all trees; of a leaf, in the logarithm of the time */
#define FORM(depth, unit)                                                                          \
    enum { DEPTH = (depth), LEAVES = 1 << (depth) };                                               \
    static const double leaf_unit = (unit);
#define RANGE(...)
#define TREE(...)
#include "launch/trees.def"
#undef FORM
#undef RANGE
#undef TREE

typedef struct Tree {
    uint8_t fact[LEAVES - 1]; /* of the node; its children are 2 * node + 1, 2 * node + 2 */
    float most[LEAVES - 1];   /* left: the fact is at most this */
    int16_t leaf[LEAVES];
} Tree;

typedef struct Range { /* of a fact in what was measured */
    float least, most;
} Range;

static const Range ranges[] = {
#define FORM(...)
#define RANGE(...) {__VA_ARGS__},
#define TREE(...)
#include "launch/trees.def"
#undef FORM
#undef RANGE
#undef TREE
};
_Static_assert(COUNT_OF(ranges) == MODEL_FACTS,
               "trees.def is of other facts: python3 bench/fit.py");

static const Tree trees[] = {
#define FORM(...)
#define RANGE(...)
#define TREE(...) {__VA_ARGS__},
#include "launch/trees.def"
#undef FORM
#undef RANGE
#undef TREE
};

/* Facts within the ranges and thresholds are not negative, so that their bits have the order of the
 * numbers. Integers are compared sooner. */
static size_t next_node(const Tree *tree, size_t node, const int32_t *facts) {
    int32_t most;
    memcpy(&most, &tree->most[node], sizeof most);
    return 2 * node + 1 + (facts[tree->fact[node]] > most);
}

#define WALKS 5 /* at the same time */
_Static_assert(COUNT_OF(trees) % WALKS == 0, "no tree is left over");

/* The leaves of WALKS trees: not an array of nodes, so that they stay in registers */
static int leaves_of(const Tree *some, const int32_t *facts) {
    size_t a = 0, b = 0, c = 0, d = 0, e = 0, first = LEAVES - 1;
    for (int depth = 0; depth < DEPTH; depth++) {
        a = next_node(&some[0], a, facts);
        b = next_node(&some[1], b, facts);
        c = next_node(&some[2], c, facts);
        d = next_node(&some[3], d, facts);
        e = next_node(&some[4], e, facts);
    }
    return some[0].leaf[a - first] + some[1].leaf[b - first] + some[2].leaf[c - first] +
           some[3].leaf[d - first] + some[4].leaf[e - first];
}

double model_correction(const Prediction *prediction) {
    const float *facts = prediction->facts;
    if (prediction->seconds <= 0 || prediction->terms[MODEL_MATRIX] <= 0) return 1;
    for (int f = 0; f < MODEL_FACTS; f++)
        if (!(facts[f] >= ranges[f].least && facts[f] <= ranges[f].most)) return 1;
    int32_t order[MODEL_FACTS];
    memcpy(order, facts, sizeof order);
    int sum = 0;
    for (size_t t = 0; t < COUNT_OF(trees); t += WALKS) sum += leaves_of(&trees[t], order);
    return exp(sum * leaf_unit);
}
