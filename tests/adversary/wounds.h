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

/* misuse.c */
bool wound_rank(Program *program);     /* an instance's share is that of all */
bool wound_bytes(Program *program);    /* what was copied is computed, in one place */
bool wound_handle(Program *program);   /* another stage of the pipe is used */
bool wound_produced(Program *program); /* a stage is read where it is filled */
bool wound_target(Program *program);   /* elements of a tile are written twice by one statement */
bool wound_reader(Program *program);   /* what another tile writes is read */
bool wound_arrival(Program *program);  /* too few lanes arrive, or too soon */
bool wound_events(Program *program);   /* two hand-overs change places in one role */
bool wound_uniform(Program *program);  /* a hand-over is under a condition of instances */
bool wound_turn(Program *program);     /* a turn is under a condition, or left */

#endif
