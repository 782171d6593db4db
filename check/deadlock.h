/* deadlock: private to check/: do roles wait for each other for ever, for some counts of the
 * loops? */
#ifndef PIPEC_DEADLOCK_H
#define PIPEC_DEADLOCK_H

#include "prog/prog.h"

/* needs equal counts; proves that no roles wait for each other for ever, whatever the counts, or
 * refuses, or says that it is not known */
void deadlock_check(Arena *arena, Prog *prog, Diags *diags);
bool deadlock_proves(Arena *arena, Prog *prog, Budget work); /* without a word */

#endif
