/* lib, private: the targets of a kernel (targets.c), and the programs for them (targets_on.c). */
#ifndef PIPEC_LIB_TARGETS_H
#define PIPEC_LIB_TARGETS_H

#include "lib/private.h"
#include "runtime/runtime.h"

/* Adds the targets of these names that there are, each once */
void targets_add_names(Arena *arena, const AstNames *names, Targets *to);
/* Those that the kernel, or the variant, names */
void targets_add(Arena *arena, const Ast *ast, const char *kernel, Targets *to);
bool targets_has(const Targets *targets, const Target *target);
/* The target with which the program compiles this kernel or variant: its own, if the kernel names
 * it, or no variant of the caller's target does; NULL: the first that the kernel names */
const char *targets_for(const PipecProgram *program, const char *kernel);
/* False: the kernel does not name the target that the caller gave, and another one of the same
 * name does */
bool targets_wanted(const PipecProgram *program, const char *kernel);
/* The program was compiled for a target that the caller has not given: a launch may take another
 * one that the kernel names. False: memory ran out */
bool targets_reopen(PipecProgram *program);
/* True if it matters which one was taken: what is kept for the text is kept for it */
bool targets_matter(const PipecProgram *program);

/* Moves the diagnostics of the check for each target into one list: those of all targets once, and
 * others with the targets that they are of. `parts` have the levels of `into`. */
void targets_merge(Diags *into, Diags *const *parts, const Targets *targets, const Levels *levels);

/* The program for another target; it belongs to `program`, and is compiled when it is first asked
 * for. NULL: memory ran out. Several threads may call it. */
PipecProgram *targets_program(PipecProgram *program, const Target *target);
/* That for the best target of a device (-1: the first one that can run some): `program` itself, if
 * its target is the only one. NULL: no target fits, and *why is a sentence, or memory ran out */
PipecProgram *targets_on(PipecProgram *program, int device, Arena *words, RuntimeLack *lack,
                         const char **why);
/* runtime_open for the program, whose other targets do not fit either */
Runtime *targets_open(Arena *arena, const PipecProgram *program, int device, RuntimeLack *lack,
                      const char **why);

#endif
