/* The passes of check/, in order; private to the floor. Each runs also after errors of the ones before (all errors of a file
 * in one run) and is silent on poison: X_POISON expressions, handles and roles whose index is -1, tiles left
 * TILE_UNCLASSIFIED. passes.c is the only caller. */
#ifndef PIPEC_PASSES_H
#define PIPEC_PASSES_H

#include "check/check.h"
#include "derive/derive.h"
#include "derive/plan.h"
#include "flow/code.h"

/* What passes leave to those after them (passes.def) */
enum {
    FACT_CODE = 1,        /* each role as rows */
    FACT_UNIFORM = 2,     /* over what each value and each region's control varies */
    FACT_TURNS = 4,       /* where turns stand; the pipes whose stages are one instance's */
    FACT_CLASSES = 8,     /* of copies and statements, layouts, how roles use pipes */
    FACT_VALUES = 16,     /* of variables, at each row */
    FACT_ARRIVALS = 8192, /* how often stages are arrived at by hand, for --emit */
    FACT_HELD = 32,       /* every stage is released once; how many an end holds; lags */
    FACT_ENDS = 64,       /* who acquires which end */
    FACT_CONTROL = 128,   /* all threads take part in what is for all */
    FACT_BY_HAND = 256,   /* the pipes that are left out of counts and deadlocks */
    FACT_COUNTS = 512,    /* both ends of each pipe acquire equally often, and no role waits forever */
    FACT_WIDTHS = 2048,   /* preconditions that keep formulas of sizes within their types */
    FACT_PLAN = 4096,     /* what is emitted beside the rows */
    FACT_RESOURCES = 1024 /* warps, barriers, memory, registers, how releases arrive */
};

/* Runs them all; `errors`: those of before elaboration */
void passes_run(Arena *arena, Prog *prog, Diags *diags, size_t errors);

/* needs elaborated; leaves `turn` blocks numbered, each in its place, and the pipes known whose stages are one instance's */
void turns_check(Arena *arena, Prog *prog, Diags *diags);
/* needs pipe uses; leaves the order proved in which the instances of a role in turn acquire */
void turns_order(Arena *arena, Prog *prog, Diags *diags);

/* need classes: payload written on every path, bytes of a stage, disjointness of what instances write; tiles and variables written before they
 * are read; zero fill before a reduction */
void tiles_written(Arena *arena, Tiles *tiles);
void tiles_padding(Arena *arena, Tiles *tiles);

/* needs lowered and pipe uses; leaves every stage path proved, what is held known, lags derived and written back */
void linear_check(Arena *arena, Prog *prog, Diags *diags);
void crowds_refuse(Prog *prog, const FlowCode *code, Diags *diags); /* more stages are held than the ring has */

/* need lowered: no acquire comes between a `try` and the one that it is for; who may acquire which end */
void hints_check(Arena *arena, Prog *prog, Diags *diags);
void roles_check(Arena *arena, Prog *prog, Diags *diags);
/* needs elaborated; leaves control around pipe operations the same in all threads of a role */
void uniform_check(Arena *arena, Prog *prog, Diags *diags);

/* needs proved stages; leaves equal counts of acquires at both ends of every pipe, or says which differ */
void counts_check(Arena *arena, Prog *prog, Diags *diags);

/* needs a program without errors so far; leaves nobody to write, or to write and read, an element of a tensor beside another, as far as sizes
 * that are tried show it */
void races_check(Arena *arena, Prog *prog, Diags *diags);

/* needs a program without errors so far, with proved counts; leaves what is written in a tile of the grid to depend on that tile alone */
void carried_check(Arena *arena, Prog *prog, Diags *diags);

/* leaves pipes that are signalled by hand out of counts and of the search for deadlocks */
void unsafe_leave_out(Prog *prog);
/* needs resources; leaves declared arrivals proved, or named as not proved, and in the place of derived ones */
void unsafe_check(Arena *arena, Prog *prog, Diags *diags);

/* Said where a limit on work ended an analysis of a role, which therefore has not proved `what` */
void incomplete_report(Diags *diags, const Role *role, const char *what);
/* ... and of a whole kernel */
void incomplete_kernel(Diags *diags, const char *kernel, Span head);

/* need a program without errors so far: forms of statements, and targets, that are not generated yet; how much is generated is work too */
void forms_check(Arena *arena, Prog *prog, Diags *diags);
void copies_count(Arena *arena, Prog *prog, Diags *diags);
void target_check(Arena *arena, Prog *prog, Diags *diags);

bool words_failed(const Diags *diags); /* the text was not understood: statements may be missing */
const char *word_of(End end);          /* "consume" */

#endif
