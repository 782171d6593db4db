/* The window condition. It needs no search, and does not depend on the order of loops and
 * conditions.
 *
 * Theorem. Let E be a set of edges (a pipe, its producer, one of its consumers) in which each role
 * is one process, such that the roles and edges form a forest: no pipe from a role to itself, no
 * two paths between two roles. Let both ends of each edge acquire equally often in each block, let
 * each stage that is acquired be released once, and let for each edge
 *
 *     window(producer) + window(consumer) < S,
 *
 * where S is the depth of the ring, and the window of an end is, over all its acquires, the largest
 * distance from the acquire back to the oldest stage of that end which is held while the acquire
 * waits (0 where none is held). Then no roles wait for each other in a ring over edges of E,
 * whatever the sizes, loops and conditions.
 *
 * Proof. Suppose that they do: processes r1, r2, .., r1, each of which waits at an acquire for the
 * next. (A process that has ended holds nothing, and has acquired as many stages as the other end
 * asks for, so nothing waits for it.) Each wait is over an edge of E, and a forest has no ring of
 * three or more: two processes wait for each other, over the only edge between them. Let the
 * producer wait at its acquire number n, counted from 0, and the consumer at its acquire number m.
 *
 *   - The producer waits until the consumer has released stage n - S. Stages below
 *     m - window(consumer) are released, so n - S >= m - window(consumer).
 *   - The consumer waits until the producer has released stage m. Stages below
 *     n - window(producer) are released, so m >= n - window(producer).
 *
 * Together window(producer) + window(consumer) >= S, which contradicts the condition.
 *
 * The bound is sharp. Where a ring of two has windows of 1, the producer may wait at acquire 3
 * while it holds stage 2, and the consumer at acquire 2 while it holds stage 1. A ring of depth 1
 * asks for windows of 0: each end releases its stage before it acquires the next.
 *
 * Several consumers. A stage is empty when all consumers have released it, and each consumer is an
 * edge of its own: the producer waits for one that has not released stage n - S, and that one
 * closes the ring.
 *
 * Several instances. Those that cooperate do the same operations in the same order, and a stage is
 * released when all of them have released it. What one of them has found released stays so up to
 * the acquire that waits for it, so where all have stopped they have stopped at the same acquire:
 * they are one process. Instances in turn, and those with a `turn`, are several (role_is_several):
 * edges to such roles are not proved here.
 *
 * Lags. A stage that a late set keeps is held until the set releases it; flow/held.c counts it,
 * with the lags as derived. A release that waits for something asynchronous (a copy, a matrix
 * instruction) waits for no other role.
 *
 * Clusters whose blocks execute the same operations. Suppose that all roles wait forever, and take
 * for each role its position in the block where it has progressed least. A single block, executed
 * from the start, does not pass these positions: the first role to pass its own would acquire a
 * stage released by a role that has not passed its position; that role has then released the stage
 * in all blocks, so in the cluster the block with the least progress could continue. So a single
 * block also waits forever, which the theorem excludes.
 *
 * Clusters whose blocks differ. Then one role L alone shares copies (multicast.c), and it
 * acquires and releases the stages of shared pipes in the same order in all blocks. A cycle through
 * several blocks changes blocks at L alone. As roles and edges are a forest, it goes from L in one
 * block over a shared edge to a consumer, and from there back to L, perhaps of another block. By
 * the two inequalities, the stage for which the consumer waits is one that L releases before the
 * acquire at which the first L waits, so the other L is at an earlier position. This cannot hold
 * for every L of the cycle. */
#include "check/pipes/window.h"

#include "flow/code.h"
#include "flow/held.h"
#include "flow/machine.h"

/* ---- forests --------------------------------------------------------------------------------- */

static int root(const int *parents, int role) {
    while (parents[role] != role) role = parents[role];
    return role;
}

static bool is_forest(Arena *arena, const Prog *prog, const PipeEdge *edges, size_t count) {
    int *parents = NEW_ARRAY(arena, int, prog->roles.count + 1);
    for (size_t r = 0; r < prog->roles.count; r++) parents[r] = (int)r;
    for (size_t e = 0; e < count; e++) {
        int one = root(parents, prog->pipes.items[edges[e].pipe].producer),
            other = root(parents, edges[e].consumer);
        if (one == other) return false;
        parents[one] = other;
    }
    return true;
}

/* ---- edges ----------------------------------------------------------------------------------- */

static bool window_of(const Role *role, int pipe, End end, int *window) {
    const Held *held = role->code ? role->code->held : NULL;
    if (!held || role_is_several(role)) return false;
    *window = held->ends[2 * pipe + (int)end].window;
    return true;
}

bool window_proves(Arena *arena, const Prog *prog, const PipeEdge *edges, size_t count) {
    if (!is_forest(arena, prog, edges, count)) return false;
    for (size_t e = 0; e < count; e++) {
        const Pipe *pipe = &prog->pipes.items[edges[e].pipe];
        const Role *producer = &prog->roles.items[pipe->producer],
                   *consumer = &prog->roles.items[edges[e].consumer];
        int ahead, after;
        if (!window_of(producer, edges[e].pipe, END_PRODUCE, &ahead)) return false;
        if (!window_of(consumer, edges[e].pipe, END_CONSUME, &after)) return false;
        if (ahead + after >= pipe->stages) return false;
    }
    return true;
}
