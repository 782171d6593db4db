/* deadlock search, check private: searches for deadlocks between roles, for
 * any counts of loops.
 *   deadlock_check.c     the verdict and its message
 *   deadlock.c           the parts of roles and pipes, each proved by itself
 *   deadlock_tiles.c     the pipes of a dynamic grid
 *   deadlock_part.c      the slices of the roles of a part, with their loops and conditions
 *   deadlock_numbers.c   numbers that decide, matched between roles; conditions as questions
 *   deadlock_loops.c     matches loops of different roles
 *   deadlock_split.c     sizes by their remainders
 *   deadlock_order.c     a common order of the roles' loops and acquires
 *   deadlock_oracle.c    answers for the machine: decisions, and which process runs first
 *   deadlock_possible.c  decisions that contradict each other
 *   deadlock_normal.c    the normal form of a state
 *   deadlock_states.c    breadth-first search of the states
 *
 * A step of one process never disables a step of another (flow/machine.h), so one order of the
 * steps represents all: the slowest process always runs next, which keeps the roles together.
 * The unknowns are decisions: whether a loop continues, and whether a condition holds. The first
 * process that needs a decision takes it, with both outcomes, and it is kept for those that
 * follow. States are compared relative to the slowest process, so that a loop returns to an
 * earlier state: then it is deadlock-free for any number of iterations. */
#ifndef PIPEC_DEADLOCK_SEARCH_H
#define PIPEC_DEADLOCK_SEARCH_H

#include "algebra/algebra.h"
#include "check/pipes/counts.h"
#include "check/deadlock/deadlock.h"
#include "check/pipes/pieces.h"
#include "flow/machine.h"
#include "flow/values.h"

#define DEPTH_MOST 8 /* nested loops */
#define EXACT      2 /* number of first iterations that are distinguished, */
#define EXACT_MORE 5
#define EXACT_MOST 16 /* at most, if conditions of the program distinguish more */
#define NEVER      INT32_MAX
#define ALWAYS     INT32_MIN

/* ---- parts ----------------------------------------------------------------------------------- */

typedef struct Bound { /* a loop continues while its counter < times * number + plus */
    int number, view;  /* -1: < plus */
    int64_t times, plus;
} Bound;

#define BOUNDS_MOST 4

typedef struct Loop {     /* of a side, by region of its slice */
    const Region *region; /* NULL: that region is no loop */
    /* region of the enclosing loop, -1: none; depth 1: the outermost */
    int outer, depth;
    int track, group; /* group: -1 if all bounds are constant */
    /* the list that contains it: loops of one list run one after the other */
    int arm;
    /* the loop whose counter it continues: the next piece of a range; -1: none */
    int after;
    bool left;     /* has an early exit */
    int64_t first; /* otherwise the initial value of its counter */
    int bound_count;
    Bound bounds[BOUNDS_MOST];
    bool constant;  /* one of the bounds is constant */
    int64_t times;  /* factor of the others */
    uint64_t pipes; /* of the part, acquired or released in it */
    bool joined;    /* its track was matched over other pipes */
    /* of a range with a `where`: from number `first` of its live iterations to a known one */
    bool piece;
} Loop;

enum { QUESTION_YES = -1, QUESTION_NO = -2 };

typedef struct Question { /* is the number greater than `above`? */
    int number;
    int64_t above;
    /* 0, or 1 + the loop whose counter is compared: counter < times * number + above */
    int counted;
    int yes, no; /* the next question, or the value of the condition */
    int region;  /* the IF of the condition */
} Question;

typedef struct Side { /* a role, restricted to a part */
    const Role *role;
    FlowCode *slice;
    bool *taken;   /* by handle: that end of its pipe belongs to the part */
    bool *without; /* by row of the whole Code: removed from slices */
    /* by row of the whole Code: the handle that a RELEASE releases instead of its own, -1: its
     * own */
    int *released;
    Loop *loops;     /* by region */
    int *conditions; /* by region of an IF: the first question, or a constant */
    VEC(Question) questions;
    int latest[DEPTH_MOST]; /* by depth - 1: 1 + the last loop so far, 0: none yet */
    int *ranks; /* by row: rank of the next item in its list, the same order for all sides */
    /* by row: the loop whose counter is kept there for the next piece of its range, -1: none */
    int *carried;
} Side;

typedef struct Under { /* an IF around a loop */
    const Poly *condition;
    bool holds; /* in its first arm */
} Under;

typedef struct
    /* loops of several sides with equal iterations and values, each once per iteration of
     * `outer` */
    Track {
    int outer, depth;
    const Region *region; /* of the first side */
    const Role *role;
    const Poly *lo, *hi; /* in terms of the first sides' loop variables */
    const Poly *base;    /* loop variable = base + counter */
    bool changes;        /* no other role's loop is known to be equal */
    bool once;           /* at most one iteration: that of lo */
    uint64_t pipes;      /* of the part, acquired or released in it */
    Loop shape;          /* bounds, group, times and first counter of its loops */
    int *loop;           /* by side, -1: none */
    /* conditions around the loop of the first side, in an iteration of `outer` */
    VEC(Under) under;
} Track;

/* a count or truth, the same for all sides in the same iteration of `track` */
typedef struct Number {
    const Poly *poly;
    int track; /* -1: constant */
    int where; /* a range with skipped iterations, -1: none */
    bool changes, grid;
    bool in_grid;      /* used in a loop over the grid */
    int counter;       /* the track of which it is the loop variable, -1: none */
    int32_t from;      /* minus this */
    int32_t modulo;    /* 0, or: it is the loop variable modulo this */
    int32_t low, high; /* initial knowledge: low < value <= high */
    int *last;         /* by side: the last step that needs it, -1: none */
} Number;

/* facts about the number of a group of loops beyond `exact` */
typedef struct View {
    int number, group;
} View;

/* loops whose counters advance together, counted relative to the slowest process */
typedef struct Group {
    int outer; /* the enclosing track */
    uint64_t pipes;
    int views;
    /* by side: one of its loops, -1: none; several are in different arms, or pieces of a range */
    int *last;
    int32_t exact;  /* number of first iterations that are distinguished */
    int64_t period; /* least common multiple of the remainders that are used */
    bool scaled;    /* some bound has a multiple of its number */
    bool fixed;     /* counters are absolute */
} Group;

typedef struct Excluded { /* a loop that is not matched with loops over other pipes */
    int side, region;
} Excluded;

typedef struct Split {       /* a size is by * quotient + rest */
    int symbol;              /* the size */
    int64_t by, rest;        /* by 0: no split */
    const Poly *quotient[2]; /* in each of the part's algebras */
} Split;

typedef struct Part { /* roles connected by pipes to a biconnected component */
    Arena *arena;
    const Prog *prog;
    VEC(int) roles;
    VEC(int) pipes;
    /* by pipe and role: the edge between producer and consumer belongs to this part; NULL: none of
     * the pipe does */
    bool **consumes;
    Algebra *algebra[2]; /* outside of the grid, and inside, where no axis is empty */
    VEC(Track) tracks;
    VEC(Number) numbers;
    VEC(View) views;
    VEC(Group) groups;
    VEC(Side) sides;
    VEC(Excluded) excluded;
    Split split;
    bool ordered;       /* the roles have a common order */
    bool proves;        /* skips conditions that their path decides */
    int32_t exact;      /* least number of first iterations that are distinguished */
    bool drops;         /* removes rows that are proved dead */
    bool cuts;          /* cuts loops if one of the roles has them in pieces */
    Budget work;        /* for the search of its states */
    const char *beyond; /* reason why it is undecidable, NULL: none */
    Span beyond_at;
} Part;

/* The index of a pipe in the part; -1: not in it */
static inline int part_pipe(const Part *part, int pipe) {
    for (size_t i = 0; i < part->pipes.count; i++)
        if (part->pipes.items[i] == pipe) return (int)i;
    return -1;
}

/* loop: a region of the slice; NULL: -1 */
static inline const Loop *loop_of(const Part *part, int side, int loop) {
    return loop < 0 ? NULL : &part->sides.items[side].loops[loop];
}

/* around: the innermost enclosing loop, -1: none */
static inline bool in_grid(const Part *part, int side, int around) {
    for (const Loop *loop = loop_of(part, side, around); loop;
         loop = loop_of(part, side, loop->outer))
        if (loop->region->kind == REGION_GRID) return true;
    return false;
}

/* deadlock_tiles.c: true if the roles do not deadlock over the pipes of a dynamic grid unless they
 * do over the others. Needs equal counts. */
bool tiles_add_no_deadlock(Arena *arena, const Prog *prog);

/* deadlock_part.c */
/* Compiles the sides of its roles; false: part->beyond is the reason; NULL: there is nothing to
 * cut or remove */
bool part_compile(Part *part);

void part_order(Part *part); /* deadlock_order.c: sets the ranks of the sides; part->ordered */

/* deadlock_split.c */
bool part_split_find(const Part *part, Split *split); /* from the numbers of a compiled part */
void part_split_begin(Part *part);                    /* makes the quotient */
const Poly *part_split(Part *part, Algebra *algebra, const Poly *poly);

/* deadlock_numbers.c. around: a region of the slice, the innermost enclosing loop, -1: none */
Algebra *part_algebra(const Part *part, int side, int around);
/* Replaces enclosing loop variables by those of the tracks. at: a row of the slice */
const Poly *part_formula(Part *part, int side, int around, int at, Expr *expr);
/* whole: of the whole Code */
const Poly *part_whole_formula(Part *part, int side, int around, int whole, Expr *expr);
/* the innermost track, -1: none */
int part_depends(const Part *part, int side, int around, const Poly *poly);
/* poly = times * result + plus */
const Poly *part_primitive(Part *part, const Poly *poly, int64_t *times, int64_t *plus);
bool part_equal(Algebra *algebra, const Poly *a, const Poly *b); /* proved equal */
int number_new(Part *part, Algebra *algebra, Number number);
int number_find(const Part *part, bool inside, const Poly *poly, int track, int where);
int number_of(Part *part, int side, int around, const Poly *poly);
/* The number of live iterations of a loop with a `where`: equal for equal ranges. whole: its
 * first row, of the whole Code; range: hi - lo, NULL: unknown */
int number_live(Part *part, int side, int around, const Region *loop, int whole, const Poly *range);
/* the first question, or a constant */
int part_condition(Part *part, int side, const Region *branch);

/* deadlock_loops.c: sets the loop's track, bounds and group. pipes: acquired in it; elsewhere:
 * acquired by the role outside of it. False: part->excluded has a new entry, and all loops must be
 * matched again */
bool part_loop(Part *part, int side, int region, Loop *loop, uint64_t pipes, uint64_t elsewhere);

/* ---- states ---------------------------------------------------------------------------------- */

typedef struct Decision { /* for a number or, after them, a view, in one iteration */
    int32_t what;
    int32_t path[DEPTH_MOST];
    int32_t low, high; /* low < value <= high */
} Decision;

#define DECISIONS_MOST 48

typedef struct Decided { /* the oracle's part of a state */
    int count;
    Decision *items;
} Decided;

typedef struct Search { /* the oracle's data */
    Arena *arena;
    const Part *part;
    Machine *machine;
    int round;                      /* number of iterations of the grid after which turns repeat */
    Decision open;                  /* the needed decision: is it greater than `low`? */
    struct PossibleTable *possible; /* deadlock_possible.c: cached answers */
} Search;

Search *search_new(Arena *arena, const Part *part);
State search_state(const Search *s); /* the initial one, or memory for one */
void search_copy(const Search *s, State *to, const State *from);
void search_decide(Search *s, State *state, const Decision *open, bool greater);
void search_normalise(Search *s, State *state); /* deadlock_normal.c */
/* True if the decision may have this outcome. Called only if conditions are proved */
bool search_possible(Search *s, const State *state, int process, const Decision *open,
                     bool greater);
static inline Decided *decided_of(const State *state) { return state->decided; }
int search_depth(const Search *s, int track);
/* The decision in the iteration given by the counters of the path; NULL: none */
Decision *search_find(const Search *s, const State *state, int what, const int32_t *path);
int search_track(const Search *s, int what); /* the track whose iterations have such decisions */
/* Position relative to the loops of a group, one of which a process runs in an iteration of the
 * enclosing loop: -1: before, 0: in it, 1: after */
int search_standing(const Search *s, const Position *place, int group);
int64_t floor_div(int64_t a, int64_t b);

typedef enum Verdict { VERDICT_CLEAN, VERDICT_STUCK, VERDICT_BEYOND } Verdict;

Verdict search_states(Search *s, State *stuck); /* deadlock_states.c */

#endif
