/* uniform: threads and blocks over which each value of a role varies. */
#ifndef PIPEC_FLOW_UNIFORM_H
#define PIPEC_FLOW_UNIFORM_H

#include "flow/code.h"

/* Sets `uniformity` and `along` in expressions and variables of the role, and `along` in its
 * tile statements and in the pipes that it acquires. Needs the role's Code. Called once per
 * role, before any use. */
void flow_uniform(Arena *arena, Prog *prog, Role *role);

#endif
