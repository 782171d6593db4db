/* Intervals: between which numbers the integer variables lie that loops change, before each row.
 * What is halved in each iteration never rises, what is doubled six times stays below 64 times its
 * first value: invariants that formulas over the number of the iteration do not show. */
#ifndef PIPEC_FLOW_INTERVALS_H
#define PIPEC_FLOW_INTERVALS_H

#include "flow/code.h"

/* Found once a role. Assumes, in the role's algebra, what is known of its variables before the row:
 * facts of the path, undone with it. Needs the values of the role. */
void intervals_assume(Arena *arena, FlowCode *code, int at);

#endif
