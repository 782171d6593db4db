/* check, private: the passes of check/, in order. Each also runs after errors of earlier ones
 * (all errors of a file in one run) and reports nothing about poison: X_POISON expressions,
 * handles and roles with index -1, tiles left TILE_UNCLASSIFIED. Only passes.c calls them. */
#ifndef PIPEC_PASSES_H
#define PIPEC_PASSES_H

#include "check/check.h"
#include "derive/derive.h"
#include "derive/plan.h"
#include "flow/code.h"

/* Facts that passes set for later ones (passes.def) */
enum {
    FACT_CODE = 1,        /* each role as rows */
    FACT_UNIFORM = 2,     /* variation of each value and of each region's control */
    FACT_TURNS = 4,       /* places of turns */
    FACT_CLASSES = 8,     /* of copies and statements, layouts, use of pipes by roles */
    FACT_VALUES = 16,     /* of variables, at each row */
    FACT_ARRIVALS = 8192, /* number of explicit arrivals, for --emit */
    /* every stage is released once; number of stages that an end holds; lags */
    FACT_HELD = 32,
    FACT_ENDS = 64,      /* roles that acquire each end */
    FACT_CONTROL = 128,  /* all threads execute the rows that need all */
    FACT_EXCLUDED = 256, /* pipes excluded from counts and deadlocks */
    /* both ends of each pipe acquire equally often, and roles do not deadlock */
    FACT_COUNTS = 512,
    FACT_WIDTHS = 2048,   /* preconditions that keep formulas of sizes within their types */
    FACT_PLAN = 4096,     /* facts for codegen */
    FACT_STAGES = 16384,  /* StageOrder of each role */
    FACT_OUTSIDE = 32768, /* accesses outside of their tensors */
    FACT_ORDER = 65536,   /* RolePlan.order */
    FACT_RESOURCES = 1024 /* warps, barriers, memory, registers, kinds of arrivals */
};

/* Runs all passes, except those whose result `known` (or NULL) has; `errors`: number of errors
 * before elaboration */
void passes_run(Arena *arena, Prog *prog, Known *known, Diags *diags, size_t errors);

/* Needs uniformity; checks the places of `turn` blocks */
void turns_check(Arena *arena, Prog *prog, Diags *diags);
/* Needs Code: each role takes every tile of a dynamic grid exactly once */
void dynamic_check(Arena *arena, Prog *prog, Diags *diags);
/* Needs pipe uses; proves the order in which the instances of a role in turn acquire */
void turns_order(Arena *arena, Prog *prog, Diags *diags);

/* Needs classes: payload written on every path, bytes of a stage, disjoint writes of instances;
 * tiles and variables written before they are read; zero fill before a reduction */
void tiles_written(Arena *arena, Tiles *tiles);
void tiles_padding(Arena *arena, Tiles *tiles);

/* Needs Code and pipe uses; proves every path of stages, sets held stages and derived lags */
void linear_check(Arena *arena, Prog *prog, Diags *diags);
/* more stages are held than the ring has */
void overfull_refuse(Prog *prog, const FlowCode *code, Diags *diags);

/* Need Code: no acquire is between a `try` and the acquire that uses it; roles that may acquire
 * each end */
void hints_check(Arena *arena, Prog *prog, Diags *diags);
void roles_check(Arena *arena, Prog *prog, Diags *diags);
/* Needs elaborate; proves that control around pipe operations is the same in all threads of a
 * role */
void uniform_check(Arena *arena, Prog *prog, Diags *diags);

/* Needs proved stages; proves equal counts of acquires at both ends of every pipe, or reports
 * differences */
void counts_check(Arena *arena, Prog *prog, Diags *diags);

/* Needs a program without errors so far; proves that no two unordered accesses, one of them a
 * write, reach one element of a tensor, or refuses at sizes that show it */
void races_check(Arena *arena, Prog *prog, Diags *diags);

/* Needs a program without errors so far, with proved counts; proves that values written in a
 * tile of the grid depend only on that tile */
void carried_check(Arena *arena, Prog *prog, Diags *diags);

/* Excludes pipes with explicit signals from counts and from the search for deadlocks */
void unsafe_leave_out(Prog *prog);
/* Needs resources; proves declared arrivals, or reports them as not proved; they replace derived
 * ones */
void unsafe_check(Arena *arena, Prog *prog, Diags *diags);

/* Reports that a limit on work ended an analysis of a role, which therefore has not proved
 * `what` */
void incomplete_report(Diags *diags, const Role *role, const char *what);
/* The same for an access of a tensor that is perhaps never inside of it */
void incomplete_access(Diags *diags, Span at, const char *sub, const char *param);
/* The same for a whole kernel */
void incomplete_kernel(Diags *diags, const char *kernel, Span head);

/* Need a program without errors so far: forms of statements, and targets, for which code
 * generation is not implemented; bounds the amount of generated code */
void forms_check(Arena *arena, Prog *prog, Diags *diags);
void copies_count(Arena *arena, Prog *prog, Diags *diags);
void target_check(Arena *arena, Prog *prog, Diags *diags);

/* Needs classes and values; finds accesses outside of their tensors, and notes subscripts from
 * memory that are not proved inside */
void outside_find(Arena *arena, Prog *prog, Diags *diags);

/* Warns of roles that write tensors without a loop over the grid */
/* Notes tiles of the grid that write nothing */
void empty_check(Arena *arena, Prog *prog, Diags *diags);
void grid_loop_check(Arena *arena, Prog *prog, Diags *diags);

bool words_failed(const Diags *diags); /* there were syntax errors: statements may be missing */
const char *word_of(End end);          /* "consume" */

#endif
