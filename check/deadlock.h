/* deadlock, check private: deadlocks between roles, for any counts of loops. */
#ifndef PIPEC_DEADLOCK_H
#define PIPEC_DEADLOCK_H

#include "prog/prog.h"

/* Needs equal counts; proves for all counts that roles do not deadlock, or refuses, or reports
 * that it is undecided */
void deadlock_check(Arena *arena, Prog *prog, Diags *diags);
bool deadlock_proves(Arena *arena, Prog *prog, Budget work); /* the proof only, without messages */

#endif
