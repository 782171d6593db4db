/* check: Ast -> checked Prog, or diagnostics. Public header of the floor. */
#ifndef PIPEC_CHECK_H
#define PIPEC_CHECK_H

#include "elaborate/elaborate.h"

/* Names of the kernels of a file, in order of the text; of a kernel with variants "gemm:swapped",
 * one for each variant. */
size_t check_kernels(const Ast *ast, const char *const **names);
/* True if `name`, one of these, is `wanted`, or a variant of the kernel `wanted`, or the variant
 * `wanted` (":swapped") of some kernel */
bool check_is_named(const char *name, const char *wanted);

/* Reports functions that no kernel calls, which are therefore unchecked. Called when all kernels
 * have been checked without errors. */
void check_uncalled(const Ast *ast, Diags *diags);

/* Checks one kernel with these statics; items of the file outside kernels are checked with each
 * kernel. NULL after errors. Names that are no statics of the kernel are ignored: lib/ uses
 * check_is_static to find extents and scalars. */
Prog *check_kernel(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                   const StaticValue *statics, size_t count, Diags *diags);
/* Results of passes for combinations of the statics of a kernel, reused by later combinations */
typedef struct Known Known;
Known *known_new(Arena *arena);
/* The same, but the program is returned even if a pass refuses it: its constants are valid then.
 * NULL: elaboration failed. *clean: nothing was refused. known: may be NULL. */
Prog *check_kernel_whole(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                         const Settings *given, Known *known, Diags *diags, bool *clean);
/* Adds the accesses of one combination to those of others */
void outside_merge(Arena *arena, OutsideAccesses *into, const OutsideAccesses *from);
/* Refuses accesses of which no element can be inside of its tensor, notes such copies into stages,
 * and reports those that a limit leaves undecided; `all`: of all combinations of the statics.
 * Returns the number of errors. */
size_t outside_report(const Prog *prog, const OutsideAccesses *all, Diags *diags);
/* true if it went through this pass of passes.def */
bool check_passed(const Prog *prog, const char *pass);
/* The same, but a kernel whose only errors are verdicts about counts and deadlock (P0450 to
 * P0479) is returned, so that a test can run it and compare. */
Prog *check_kernel_on_trial(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                            Diags *diags);
/* Only the kernel's constants, statics with their choices; runs no pass. NULL: these could not
 * be evaluated. */
const Prog *check_constants(Arena *arena, Names *names, const Ast *ast, const Source *source,
                            const char *kernel, const Settings *given);
/* The targets that the kernel, or the variant, names, as they are written; empty: it is unknown */
const AstNames *check_targets(const Ast *ast, const char *kernel);
/* Those of the kernel of a variant, "gemm:wide"; empty: there is none */
const AstNames *check_head_targets(const Ast *ast, const char *unit);
/* Reports that the meter ended the check of the kernel, which is therefore not proved. */
void check_ended(const Ast *ast, const char *kernel, Diags *diags);
/* A static of the kernel that a tensor of a call decides: alone the extent of an axis, or the type
 * of its elements (axis -1) */
typedef struct BoundStatic {
    const char *name;
    int param, axis;
} BoundStatic;
typedef VEC(BoundStatic) BoundStatics;
/* Adds those of a unit; rows that are there are not added again */
void check_bound_statics(Arena *arena, const Ast *ast, const char *kernel, BoundStatics *out);
/* The first name of an extent of the kernel that is no constant; NULL: there is none */
const char *check_extent_name(const Ast *ast, const char *kernel);
/* Whether the variants of a kernel take all sizes that it allows (cover.c). cover_new: of the
 * kernel of a unit, "gemm:wide", for a target; NULL: it has no variants. cover_add: a combination
 * that can be built, for any target. cover_unknown: why nothing can be said */
typedef struct Cover Cover;
Cover *cover_new(Arena *arena, const Ast *ast, const char *unit, const Target *target);
void cover_add(Cover *cover, const Prog *prog);
void cover_unknown(Cover *cover, const char *why);
void cover_report(Cover *cover, Diags *diags);
void cover_ended(const Cover *cover, Diags *diags); /* the meter ended its proof */
/* true if NAME is a static of the kernel or its file */
bool check_is_static(const Ast *ast, const char *kernel, const char *name);

#endif
