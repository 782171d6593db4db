/* deadlock, check private: deadlocks between roles, for any counts of loops. */
#ifndef PIPEC_DEADLOCK_H
#define PIPEC_DEADLOCK_H

#include "flow/code.h"
#include "prog/prog.h"

typedef struct Unmatched { /* a loop or condition around a wait without a match in another role */
    Span place;
    bool loops;
} Unmatched;

typedef struct Undecided { /* contents of the message if there is neither a proof nor sizes */
    const char *why;
    VEC(const Row *) waits;
    VEC(const Role *) roles;
    VEC(Unmatched) unmatched;
    Span span;
} Undecided;

/* Needs equal counts; proves for all counts that roles do not deadlock, or refuses, or reports
 * that it is undecided */
void deadlock_check(Arena *arena, Prog *prog, Diags *diags);
/* The proof only, without messages; false: sets `undecided`, which begins empty */
bool deadlock_proves(Arena *arena, Prog *prog, Budget work, Undecided *undecided);

#endif
