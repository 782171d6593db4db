/* Private to the wounds: places that a wound may be at, and the wounds of the other file. */
#ifndef TESTS_ADVERSARY_WOUNDS_H
#define TESTS_ADVERSARY_WOUNDS_H

#include "tests/adversary/adversary.h"

/* A part of an expression of a statement */
typedef struct Part {
    Stmt *stmt;
    const Expr **slot, *expr;
    int role;
    bool decides; /* a subscript, a bound, a condition */
    bool target;  /* a part of what is written */
} Part;

typedef bool (*PartTest)(const Program *program, const Part *part);
typedef bool (*SiteTest)(const Program *program, const Site *site, const Stmt *stmt);

/* One of those that fit. False: there is none. */
bool part_draw(Program *program, PartTest fits, Part *out);
bool site_draw(Program *program, SiteTest fits, Site *out);
void part_put(Program *program, const Part *part, const Expr *to);
const Expr *condition_any(Program *program); /* of sizes and the tile: no counter is needed */

bool uses_stage(const Stmt *stmt, int handle); /* does the statement read or write it? */

/* numbers.c */
bool wound_number(Program *program);     /* a number that decides is another */
bool wound_wrap(Program *program);       /* it is computed by factors that leave 32 bits */
bool wound_equivalent(Program *program); /* the same, as long as nothing wraps */
bool wound_words(Program *program);      /* none: the same number or condition in other words */
bool wound_datum(Program *program);      /* the same of what data says, where nothing wraps */
bool wound_sign(Program *program);       /* an operation is one of u32, or of i32 again */
bool wound_clamp(Program *program);      /* a clamp is missing */
bool wound_requires(Program *program);   /* what a launch asks for is missing */
bool wound_comparison(Program *program); /* a comparison is off by one */
bool wound_choice(Program *program);     /* a select chooses otherwise */

/* holding.c */
bool wound_linear(Program *program);      /* a release, move or acquire is missing, or elsewhere */
bool wound_moved(Program *program);       /* a stage is used after it was moved */
bool wound_overwritten(Program *program); /* a stage is held where its variable takes another */
bool wound_rotation(Program *program);    /* a loop does not leave its stages as it found them */
bool wound_by_hand(Program *program);     /* the stage of a block is released */
bool wound_arms(Program *program);        /* none: a stage is released under each of two conditions */
bool wound_leave(Program *program);       /* a loop is left early */
bool wound_unfilled(Program *program);    /* a stage is left before it is filled */
bool wound_unreached(Program *program);   /* a loop is left under no condition */
bool wound_stage(Program *program);       /* a hand-over is under a condition, in one role */
bool wound_ring(Program *program);        /* a ring has fewer stages */
bool wound_end(Program *program);         /* a role does not use a pipe */
bool wound_hint(Program *program);        /* a hint is asked for earlier */

/* misuse.c */
bool wound_rank(Program *program);     /* an instance's share is that of all */
bool wound_bytes(Program *program);    /* what was copied is computed, in one place */
bool wound_handle(Program *program);   /* another stage of the pipe is used */
bool wound_produced(Program *program); /* a stage is read where it is filled */
bool wound_target(Program *program);   /* elements of a tile are written twice by one statement */
bool wound_again(Program *program);    /* what was copied into a stage is written again */
bool wound_reader(Program *program);   /* what another tile writes is read */
bool wound_spy(Program *program);      /* what another role writes is read */
bool wound_arrival(Program *program);  /* too few lanes arrive, or others */
bool wound_early(Program *program);    /* lanes arrive before a stage was used */
bool wound_asked(Program *program);    /* a hint is asked for, in turn perhaps */
bool wound_events(Program *program);   /* two hand-overs change places in one role */
bool wound_uniform(Program *program);  /* a hand-over is under a condition of instances */
bool wound_turn(Program *program);     /* a turn is under a condition, or left */
bool wound_no_turn(Program *program);  /* stages are acquired without the turn */

#endif
