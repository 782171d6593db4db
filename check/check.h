/* check: is it right, and what does it mean. The door of the floor: Ast -> Prog, or diagnostics. */
#ifndef PIPEC_CHECK_H
#define PIPEC_CHECK_H

#include "elaborate/elaborate.h"

/* Names of the kernels of a file, in order. */
size_t check_kernels(const Ast *ast, const char *const **names);

/* Says which functions no kernel calls: nothing is known of what they do. When all kernels have been checked, without errors. */
void check_uncalled(const Ast *ast, Diags *diags);

/* Checks one kernel with these statics; items of the file outside kernels are checked with each. NULL after errors.
 * A name that none of its statics bears is another kernel's: lib/ sorts out by check_is_static what are extents or scalars. */
Prog *check_kernel(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                   const StaticValue *statics, size_t count, Diags *diags);
/* The same, but the program is given out also where a pass refuses it: its constants are right then.
 * NULL: not even these are known. *clean: nothing is refused. */
Prog *check_kernel_whole(Arena *arena, Names *names, const Ast *ast, const char *kernel,
                         const StaticValue *statics, size_t count, Diags *diags, bool *clean);
bool check_passed(const Prog *prog, const char *pass); /* went it through this pass of passes.def? */
/* The same, but a kernel that nothing else than verdicts on balance and deadlock (P0450 to P0479) refuses is given out, so that it can be
 * run and the verdicts be compared with what happens. */
Prog *check_kernel_on_trial(Arena *arena, Names *names, const Ast *ast, const char *kernel, Diags *diags);
/* Its constants alone, statics with their choices: no pass is run. NULL: not even these are known. */
const Prog *check_constants(Arena *arena, Names *names, const Ast *ast, const Source *source, const char *kernel,
                            const StaticValue *statics, size_t count);
/* Says that the meter ended the check of the kernel, which therefore is not proved. */
void check_ended(const Ast *ast, const char *kernel, Diags *diags);
bool check_is_static(const Ast *ast, const char *kernel, const char *name); /* is NAME a static of the kernel or its file? */

#endif
