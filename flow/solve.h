/* The solver: runs a rule over the Code of a role to the fixed point, then once more to report.
 *
 * A rule is a state, a join and a step. Code is structured, so the solver follows it region by
 * region: it repeats a loop until the state at its head does not change; these states are kept
 * from one round of the enclosing loop to the next. Every LEAVE is carried to the END or NEXT
 * that is its target. The number of rounds is not limited: only by the fixed point, or the work
 * that the arena's meter allows.
 *
 * Cases: a path that has tested a condition which a later row tests again, unchanged, is
 * distinguished up to that row from the paths with the other answer. So an element written under
 * a condition counts as written under the same condition, in every rule. */
#ifndef PIPEC_FLOW_SOLVE_H
#define PIPEC_FLOW_SOLVE_H

#include "flow/code.h"
#include "flow/context.h"

typedef struct Flow Flow;

/* What a row does to the state; monotone. Reports in the last round (flow->last). */
typedef void Handler(Flow *flow, int at, void *state);

/* By effect. A row's handlers are called in this order; rows without one are stepped over, unless
 * `every` is given, which comes first. */
typedef struct Handlers {
    Handler *every;
    Handler *access[ACCESS_COUNT];
    Handler *scope[SCOPE_COUNT];
    Handler *stage[STAGE_COUNT];
    /* LOOP: its bounds are evaluated, once on entry; NEXT: at the end of each iteration; END: after
     * the join; ELSE: at the end of the first arm */
    Handler *control[CONTROL_COUNT];
} Handlers;

typedef struct Rule {
    const char *name;
    bool ranks; /* solved for each instance of a role, with its rank */
    /* paths are not distinguished; rows are stepped over without values of variables: the rule
     * computes them */
    bool together;
    /* states share no memory: copies may reuse old ones (flow_spare) */
    bool reuses;
    /* A state is memory of the rule; the solver copies it at branches and joins it where paths
     * meet. */
    void *(*start)(Flow *flow);
    void *(*copy)(Flow *flow, const void *state);
    /* Joins two paths at row `at`; `from` comes from row `source`; at a LOOP: from its own row
     * on entry, from a later one on iteration. Keeps in `to` the facts that hold on both.
     * Returns true if `to` has changed, which is only used at a LOOP. */
    bool (*join)(Flow *flow, void *to, const void *from, int at, int source);
    Handlers on;
    /* True if the last round has something to report. NULL: always. If false, the rule has
     * stepped over all rows with their final states, and with earlier ones. */
    bool (*reports)(const Flow *flow);
    /* The state enters the first arm of the IF, where its condition is true, or the second. Lets
     * a rule keep diverged threads apart. NULL: not called */
    void (*enters)(Flow *flow, int region, bool truth, void *state);
    /* End of the second arm of the IF (the first one ends at its ELSE). NULL: not called */
    void (*second)(Flow *flow, int region, void *state);
    /* True if this loop, of a constant number of iterations, is to be followed one by one. NULL:
     * no loop */
    bool (*follows)(Flow *flow, int region, const void *state);
    /* Number of first iterations of this loop, which has a variable, that are distinguished from
     * later ones. NULL: none */
    int (*trips)(Flow *flow, int region);
    /* Last round, before a join: the paths that are joined at this row, with the rows that they
     * come from; called for distinguished paths at their later join. NEXT: the states at the
     * start of the iteration come first, with their LOOP as source, and it is called for a
     * single path too. Changes of a state are kept. NULL: not called */
    void (*meets)(Flow *flow, int at, void *const *states, const int *sources, size_t count);
} Rule;

struct Flow {
    Arena *arena;
    FlowCode *code;
    const Rule *rule;
    void *data;      /* of the rule */
    Context context; /* of the current case */
    int rank;        /* of the instance; 0 if the rule does not distinguish them */
    bool last;       /* the last round: report */
    struct Solver *solver;
};

/* Runs the rule over the role, for each rank that it needs, to the fixed point; or the meter
 * ends it, and with it the whole check. */
void solve(Arena *arena, FlowCode *code, const Rule *rule, void *data);

/* For copies of a rule that reuses states: an unused one with its old content; NULL: none */
void *flow_spare(Flow *flow);

/* True if the loop has an iteration, on the paths of the case: 1, 0, or -1: unknown */
int flow_runs(const Flow *flow, int region);

/* The same, or the truth of the IF's condition, from all facts of the case's paths to row `at`.
 * Uses the prover, so call it rarely. `arm`: -1, or at the IF of row `at` the paths take the arm
 * where its condition is 1 or 0. Variables have the values of the region's first row. */
int flow_decides(const Flow *flow, int at, int arm, int region);

#endif
