/* Intervals: bounds of integer variables that loops change, before each row. A value that is
 * halved in each iteration never rises, one that is doubled six times stays below 64 times its
 * first value: such invariants are not visible in formulas of the iteration's number. */
#ifndef PIPEC_FLOW_INTERVALS_H
#define PIPEC_FLOW_INTERVALS_H

#include "flow/code.h"

/* Computed once per role. Assumes, in the role's algebra, the bounds of its variables before the
 * row: facts of the path, undone with it. Needs the values of the role. */
void intervals_assume(Arena *arena, FlowCode *code, int at);

#endif
