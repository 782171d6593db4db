/* The wounds, private: positions for a wound, and the wounds of the other files. */
#ifndef TESTS_ADVERSARY_WOUNDS_H
#define TESTS_ADVERSARY_WOUNDS_H

#include "tests/adversary/adversary.h"

/* A part of an expression of a statement */
typedef struct Part {
    Stmt *stmt;
    const Expr **slot, *expr;
    const Expr *element; /* that it, or what it is a part of, is a subscript of; NULL: none */
    int role;
    bool decides; /* a subscript, a bound, a condition */
    bool target;  /* a part of the target */
} Part;

typedef bool (*PartTest)(const Program *program, const Part *part);
typedef bool (*SiteTest)(const Program *program, const Site *site, const Stmt *stmt);

/* Draws a part that fits. False: there is none. */
bool part_draw(Program *program, PartTest fits, Part *out);
bool site_draw(Program *program, SiteTest fits, Site *out);
void part_put(Program *program, const Part *part, const Expr *to);
const Expr *data_of(Program *program, const Expr *sub); /* an element of the data, or p */
const Expr *condition_any(Program *program); /* of sizes and the tile, without a counter */

bool uses_stage(const Stmt *stmt, int handle); /* true if the statement reads or writes it */

/* numbers.c */
bool wound_number(Program *program);     /* changes a deciding number */
bool wound_wrap(Program *program);       /* computes it by factors that leave 32 bits */
bool wound_equivalent(Program *program); /* an equivalent form as long as nothing wraps */
bool wound_words(Program *program);      /* none: an equivalent form */
bool wound_datum(Program *program);      /* an equivalent form with data, if nothing wraps */
bool wound_sign(Program *program);       /* exchanges an operation on u32 and i32 */
bool wound_bits(Program *program);       /* computes a number by its bits */
bool wound_clamp(Program *program);      /* removes a clamp */
bool wound_divisor(Program *program);    /* a divisor may be 0 */
bool wound_guard(Program *program);      /* an element is divided by what may be 0 */
bool wound_requires(Program *program);   /* removes a `requires` */
bool wound_comparison(Program *program); /* makes a comparison off by one */
bool wound_choice(Program *program);     /* changes the operands of a select */

/* holding.c */
bool wound_linear(Program *program);           /* removes or moves a release, move or acquire */
bool wound_moved(Program *program);            /* uses a stage after its move */
bool wound_overwritten(Program *program);      /* assigns to a variable that holds a stage */
bool wound_rotation(Program *program);         /* a loop changes which variables hold its stages */
bool wound_explicit_release(Program *program); /* releases the stage of a block */
bool wound_arms(Program *program);             /* none: releases under each of two conditions */
bool wound_leave(Program *program);            /* leaves a loop early */
bool wound_unfilled(Program *program);         /* leaves a stage before it is filled */
bool wound_unreached(Program *program);        /* leaves a loop unconditionally */
bool wound_stage(Program *program);            /* makes a hand-over conditional, in one role */
bool wound_ring(Program *program);             /* removes stages of a ring */
bool wound_end(Program *program);              /* removes all uses of a pipe by a role */
bool wound_hint(Program *program);             /* requests a hint earlier */

/* misuse.c */
bool wound_rank(Program *program);        /* an instance uses the share of all */
bool wound_bytes(Program *program);       /* computes what was copied, in one place */
bool wound_handle(Program *program);      /* uses another stage of the pipe */
bool wound_produced(Program *program);    /* reads a stage that is being filled */
bool wound_target(Program *program);      /* one statement writes elements twice */
bool wound_again(Program *program);       /* writes a copied stage again */
bool wound_tile_number(Program *program); /* another tile of an array, or none */
bool wound_reader(Program *program);      /* reads what another tile writes */
bool wound_spy(Program *program);         /* reads what another role writes */
bool wound_arrival(Program *program);     /* too few or other lanes arrive */
bool wound_early(Program *program);       /* lanes arrive before the last use */
bool wound_asked(Program *program);       /* requests a hint, perhaps in turn */
bool wound_events(Program *program);      /* exchanges two hand-overs in one role */
bool wound_uniform(Program *program);     /* a hand-over depends on the instance */
bool wound_turn(Program *program);        /* makes a turn conditional, or leaves it */
bool wound_no_turn(Program *program);     /* acquires stages outside the turn */

/* suffixes.c */
bool wound_where(Program *program); /* stores only some elements */
bool wound_range(Program *program); /* gives an index a range */

#endif
