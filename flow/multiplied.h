/* Whether matrix instructions read every stage that a role takes from a pipe. */
#ifndef PIPEC_FLOW_MULTIPLIED_H
#define PIPEC_FLOW_MULTIPLIED_H

#include "flow/code.h"

/* Each stage of the pipe, on every path from its acquire to its release. False where that is not known. */
bool flow_always_multiplied(Arena *arena, FlowCode *code, int pipe);

#endif
