/* uniform: over what does each value of a role vary? */
#ifndef PIPEC_FLOW_UNIFORM_H
#define PIPEC_FLOW_UNIFORM_H

#include "flow/code.h"

/* Leaves `uniformity` and `along` in expressions and variables of the role, and `along` in its tile statements and
 * in the pipes that it acquires. Needs the role's Code. Once a role, before anything asks for these. */
void flow_uniform(Arena *arena, Prog *prog, Role *role);

#endif
