/* The solver: runs a rule over the Code of a role until nothing changes, then once more in order, to report.
 *
 * A rule is a state, a join and a step. Code is structured, so the solver follows it region by region: a loop is gone through until the
 * state at its head stays as it is; these states are kept from one round of the loop around it to the next. Every LEAVE is carried to the END or
 * NEXT that it goes to. No bound on rounds: the fixed point, or the end of the work that the arena's meter allows.
 *
 * Cases. A path that tested a condition which a later row tests again, unchanged, is followed apart from the paths on which it was decided
 * otherwise, up to that row. So what is written under a condition is there under the same condition, in every rule. */
#ifndef PIPEC_FLOW_SOLVE_H
#define PIPEC_FLOW_SOLVE_H

#include "flow/code.h"
#include "flow/context.h"

typedef struct Flow Flow;

#define ROW_BIT(kind) (1u << ROW_##kind)
_Static_assert(ROW_COUNT <= 32, "a bit for each kind of row");

typedef struct Rule {
    const char *name;
    bool ranks;       /* solved for each instance of a role, with its rank known */
    bool together;    /* no paths are followed apart; rows are stepped over without values of variables: the rule finds them */
    bool reuses;      /* states share nothing with each other: copies may be made over old ones (flow_spare) */
    unsigned rows;    /* the kinds of rows that it steps over, ROW_BIT of each; 0: all */
    /* A state is memory of the rule's own; the solver copies it where paths part and joins it where they meet. */
    void *(*start)(Flow *flow);
    void *(*copy)(Flow *flow, const void *state);
    /* Two paths meet at row `at`; `from` comes from row `source`; at a LOOP: from its own row
     * where it enters, from a later one where it comes back. Leaves in `to` what holds on both. True: `to` has changed;
     * nobody asks for that but at a LOOP. */
    bool (*join)(Flow *flow, void *to, const void *from, int at, int source);
    /* What the row does to the state; monotone. LOOP: its bounds are evaluated, once on entry; NEXT: at the end of each iteration; END: after the
     * paths have met; ELSE: at the end of the first arm. In the last round (flow->last) it reports. */
    void (*step)(Flow *flow, int at, void *state);
    /* Has the last round anything to report? NULL: yes. Without it, rows have been stepped over with their final
     * states, and with earlier ones. */
    bool (*reports)(const Flow *flow);
    /* The state goes into the first arm of the IF, where its condition is true, or into the second. A rule that is told may keep threads
     * apart that a condition parts. NULL: not told */
    void (*enters)(Flow *flow, int region, bool truth, void *state);
    /* The second arm of the IF ends (the first one does at its ELSE). NULL: not told */
    void (*second)(Flow *flow, int region, void *state);
    /* Are the trips of this loop, which are constant, to be followed one by one? NULL: of no loop */
    bool (*follows)(Flow *flow, int region, const void *state);
    /* How many first iterations of this loop, which has a variable, are told from each other and from later ones? NULL: none */
    int (*trips)(Flow *flow, int region);
    /* Last round, before the join: the paths that are joined into one at this row, with the rows that they come from; paths that stay apart
     * are told of where they are joined. NEXT: the states that the iteration began with come first, with their LOOP as source, and
     * this is asked for one path too. What is changed in a state holds from here on. NULL: not asked */
    void (*meets)(Flow *flow, int at, void *const *states, const int *sources, size_t count);
} Rule;

struct Flow {
    Arena *arena;
    FlowCode *code;
    const Rule *rule;
    void *data;        /* the rule's own */
    Context context;   /* of the case that is being followed */
    int rank;          /* of the instance; 0 where the rule does not tell them apart */
    bool last;         /* the last round: report */
    struct Solver *solver;
};

/* Runs the rule over the role, for each rank that it asks for, to the fixed point; or the meter ends it, and with it the whole check. */
void solve(Arena *arena, FlowCode *code, const Rule *rule, void *data);

/* For copies of a rule that reuses states: one that nothing needs any more, as it was left; NULL: there is none */
void *flow_spare(Flow *flow);

/* Does the loop have an iteration, on the paths of the case? 1, 0, or -1: not known */
int flow_runs(const Flow *flow, int region);

/* The same, or whether the condition of the IF holds, by all that is known of the paths of the case that lead to row `at`: a proof, so ask
 * it rarely. `arm`: -1, or at the IF of row `at` they take the arm where its condition is 1 or 0. Variables have the values that they had at the
 * region's first row. */
int flow_decides(const Flow *flow, int at, int arm, int region);

#endif
