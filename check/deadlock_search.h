/* deadlock search: private to check/deadlock*.c: do roles wait for each other for ever, for some counts of the loops?
 *   deadlock.c           which pipes close a ring of roles, part by part; what is said
 *   deadlock_part.c      the slices of the roles of a part, with their loops and conditions
 *   deadlock_numbers.c   numbers that decide, equal ones of different roles found; conditions as questions about them
 *   deadlock_loops.c     which loops of different roles are one and the same
 *   deadlock_split.c     sizes by their remainders
 *   deadlock_order.c     who comes to what before whom
 *   deadlock_oracle.c    answers of the machine: what is decided, and who goes first
 *   deadlock_possible.c  decisions that contradict each other
 *   deadlock_normal.c    the normal form of a state
 *   deadlock_states.c    all states, each once
 *
 * Steps of one process are never undone by another's (flow/machine.h), so one order of them stands for all: the roles are
 * kept together, always the one that is furthest behind goes on. What is not known are the decisions: does this loop go on,
 * does this condition hold. A decision is taken by the first who needs it, both ways, and kept for those who follow. States
 * are compared as seen from the one furthest behind, so that a loop comes back to where it was: then it is right however
 * often it is gone round. */
#ifndef PIPEC_DEADLOCK_SEARCH_H
#define PIPEC_DEADLOCK_SEARCH_H

#include "algebra/algebra.h"
#include "check/counts.h"
#include "check/deadlock.h"
#include "check/pieces.h"
#include "flow/machine.h"
#include "flow/values.h"

#define DEPTH_MOST 8 /* loops in each other */
#define EXACT      2  /* iterations that are told apart from all later ones, */
#define EXACT_MORE 5
#define EXACT_MOST 16 /* or as many as conditions of the program tell apart */
#define NEVER      INT32_MAX
#define ALWAYS     INT32_MIN

/* ---- what a part is made of -------------------------------------------------------------------------------------- */

typedef struct Bound { /* a loop goes on while its counter is less than times * number + plus */
    int number, view;  /* -1: less than plus */
    int64_t times, plus;
} Bound;

#define BOUNDS_MOST 4

typedef struct Loop {     /* of a side, by region of its slice */
    const Region *region; /* NULL: that region is no loop */
    int outer, depth;     /* the region of the loop around it, -1: none; depth 1: the outermost */
    int track, group;     /* group: -1 where all bounds are constant */
    int arm;              /* what it stands in: loops of the same are gone through one after the other */
    int after;            /* the loop whose counter it goes on with: the next piece of a range; -1: none */
    bool left;            /* some break leaves it */
    int64_t first;        /* else its counter begins with this */
    int bound_count;
    Bound bounds[BOUNDS_MOST];
    bool constant;  /* one of them is constant */
    int64_t times;  /* of those that are not */
    uint64_t pipes; /* of the part, acquired or released in it */
    bool joined;    /* its track was one over other pipes */
    bool piece;     /* of a range with a `where`: from number `first` of its live iterations up to one that is known */
} Loop;

enum { QUESTION_YES = -1, QUESTION_NO = -2 };

typedef struct Question { /* is the number greater than `above`? */
    int number;
    int64_t above;
    int counted; /* 0, or 1 + the loop whose counter is compared: is that less than times * number + above? */
    int yes, no; /* the question that follows, or what the condition comes to */
    int region;  /* the IF that asks */
} Question;

typedef struct Side { /* a role, as far as a part concerns it */
    const Role *role;
    FlowCode *slice;
    bool *taken;     /* by handle: that end of its pipe belongs to the part */
    bool *without;   /* by row of the whole Code: left out of slices */
    int *released;   /* by row of the whole Code: the handle that a RELEASE lets go instead of its own, -1: its own */
    Loop *loops;     /* by region */
    int *conditions; /* by region of an IF: the first question, or what is known */
    VEC(Question) questions;
    int latest[DEPTH_MOST]; /* by depth less 1: 1 + the last loop so far, 0: none yet */
    int *ranks;   /* by row: of what comes next in its list, for all sides alike */
    int *carried; /* by row: the loop whose counter is carried there to the next piece of its range, -1: none */
} Side;

typedef struct Under { /* an IF around a loop */
    const Poly *condition;
    bool holds; /* in its first arm */
} Under;

typedef struct
    Track { /* loops of several sides that go round equally often with equal values, each once in an iteration of
                          `outer` */
    int outer, depth;
    const Region *region; /* of the first side */
    const Role *role;
    const Poly *lo, *hi; /* in terms of the first sides' loop variables */
    const Poly *base;    /* the loop variable is this and the counter */
    bool changes;        /* nobody else's loop is known to be the same */
    bool once;           /* there is one iteration at most: of lo */
    uint64_t pipes;      /* of the part, acquired or released in it */
    Loop shape;          /* bounds, group, times and first counter of its loops */
    int *loop;           /* by side, -1: none */
    VEC(Under) under;    /* conditions around the loop of the first side, in an iteration of `outer` */
} Track;

typedef struct Number { /* how often, or whether: the same for all who ask in the same iteration of `track` */
    const Poly *poly;
    int track; /* -1: the same all the time */
    int where; /* a range whose iterations are left out, -1: none */
    bool changes, grid;
    bool in_grid;      /* asked for in a loop over the grid */
    int counter;       /* the track whose loop variable it is, -1: of none */
    int32_t from;      /* less this */
    int32_t modulo;    /* 0, or: it is the rest of the loop variable, divided by this */
    int32_t low, high; /* known at first: greater than low, not greater than high */
    int *last;         /* by side: the last step that asks, -1: none does */
} Number;

typedef struct View { /* what coupled loops have found out of their number beyond `exact` */
    int number, group;
} View;

typedef struct Group { /* coupled loops: their counters run together, and are counted from the one furthest behind */
    int outer;         /* the track around them */
    uint64_t pipes;
    int views;
    int *last;      /* by side: of its loops, -1: none; several are in different arms, or pieces of a range */
    int32_t exact;  /* iterations that are told apart from all later ones */
    int64_t period; /* rests of the counters that somebody asks for */
    bool scaled;    /* some bound has its number several times */
    bool fixed;     /* they are counted from the start */
} Group;

typedef struct Apart { /* a loop that goes together with none over other pipes */
    int side, region;
} Apart;

typedef struct Split {       /* a size is by * quotient + rest */
    int symbol;              /* which */
    int64_t by, rest;        /* by 0: none is */
    const Poly *quotient[2]; /* in each of the part's algebras */
} Split;

typedef struct Part { /* roles that pipes connect in a ring, and these pipes */
    Arena *arena;
    const Prog *prog;
    VEC(int) roles;
    VEC(int) pipes;
    bool **
        consumes; /* by pipe and role: the edge between producer and consumer belongs to this part; NULL: the pipe does not */
    Algebra *algebra[2]; /* outside of the grid, and in it: where no axis is empty */
    VEC(Track) tracks;
    VEC(Number) numbers;
    VEC(View) views;
    VEC(Group) groups;
    VEC(Side) sides;
    VEC(Apart) apart;
    Split split;
    bool ordered;       /* roles come to what they share in one order */
    bool proves;        /* conditions that the path to them decides are not asked */
    int32_t exact;      /* iterations of loops that are told apart from all later ones, at least */
    bool drops;         /* rows are left out that the path to them never reaches */
    bool cuts;          /* loops are cut where one of the roles has them in pieces */
    Budget work;         /* that the search of its states may take */
    const char *beyond; /* why this cannot be decided here, NULL: it can */
    Span beyond_at;
} Part;

/* deadlock_part.c */
/* The sides of its roles; false: part->beyond says why; NULL: there is nothing to cut or leave out */
bool part_compile(Part *part);
int part_pipe(const Part *part, int pipe); /* its number in the part, -1: not in it */

void part_order(Part *part); /* deadlock_order.c: gives sides their ranks; part->ordered */

/* deadlock_split.c */
bool part_split_find(const Part *part, Split *split); /* of the numbers of a part that is compiled */
void part_split_begin(Part *part);                    /* makes the quotient */
const Poly *part_split(Part *part, Algebra *algebra, const Poly *poly);

/* deadlock_numbers.c. around: a region of the slice, the loop around the place, -1: none */
const Loop *loop_of(const Part *part, int side, int loop);
bool in_grid(const Part *part, int side, int around);
Algebra *part_algebra(const Part *part, int side, int around);
/* The loop variables around stand for those of the tracks. at: a row of the slice */
const Poly *part_formula(Part *part, int side, int around, int at, Expr *expr);
const Poly *part_whole_formula(Part *part, int side, int around, int whole, Expr *expr); /* whole: of the whole Code */
int part_depends(const Part *part, int side, int around, const Poly *poly); /* the innermost track, -1: none */
const Poly *part_primitive(Part *part, const Poly *poly, int64_t *times, int64_t *plus); /* poly = times * it + plus */
bool part_equal(Algebra *algebra, const Poly *a, const Poly *b); /* certainly? */
int number_new(Part *part, Algebra *algebra, Number number);
int number_find(const Part *part, bool inside, const Poly *poly, int track, int where);
int number_of(Part *part, int side, int around, const Poly *poly);
/* How many live iterations a loop with a `where` has: the same wherever it is the same range. whole: its first row, of the
 * whole Code; range: hi - lo, NULL: not known */
int number_live(Part *part, int side, int around, const Region *loop, int whole, const Poly *range);
int part_condition(Part *part, int side, const Region *branch); /* the first question, or what is known */

/* deadlock_loops.c: gives the loop its track, bounds and group. pipes: that are acquired in it; elsewhere: by the role
 * outside of it. False: part->apart has one more, with which all loops are to be seen again */
bool part_loop(Part *part, int side, int region, Loop *loop, uint64_t pipes, uint64_t elsewhere);

/* ---- states -------------------------------------------------------------------------------------------------------- */

typedef struct Decision { /* of a number or, after them, of a view, in one iteration */
    int32_t what;
    int32_t path[DEPTH_MOST];
    int32_t low, high; /* greater than low, not greater than high */
} Decision;

#define DECISIONS_MOST 48

typedef struct Decided { /* the oracle's own of a state */
    int count;
    Decision *items;
} Decided;

typedef struct Search { /* the oracle's data */
    Arena *arena;
    const Part *part;
    Machine *machine;
    int round;     /* iterations of the grid after which turns are as before */
    Decision open; /* the decision that is needed: is it greater than `low`? */
    struct PossibleTable *possible; /* deadlock_possible.c: what was asked before */
} Search;

Search *search_new(Arena *arena, const Part *part);
State search_state(const Search *s); /* the first one, or room for one */
void search_copy(const Search *s, State *to, const State *from);
void search_decide(Search *s, State *state, const Decision *open, bool greater);
void search_normalise(Search *s, State *state); /* deadlock_normal.c */
/* May the decision that a process needs come out so? Asked only where conditions are proved */
bool search_possible(Search *s, const State *state, int process, const Decision *open, bool greater);
static inline Decided *decided_of(const State *state) { return state->decided; }
int search_depth(const Search *s, int track);
/* What is decided of it in the iteration to which the counters of the path lead; NULL: nothing */
Decision *search_find(const Search *s, const State *state, int what, const int32_t *path);
int search_track(const Search *s, int what); /* a decision is one of an iteration of this track */
/* Seen from the loops of a group, of which a process goes through one in an iteration of what is around: -1: it may still
 * come to one, 0: it is in one, 1: it is after them */
int search_standing(const Search *s, const Position *place, int group);
int64_t floor_div(int64_t a, int64_t b);

typedef enum Verdict { VERDICT_CLEAN, VERDICT_STUCK, VERDICT_BEYOND } Verdict;

Verdict search_states(Search *s, State *stuck); /* deadlock_states.c */

#endif
