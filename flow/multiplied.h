/* multiplied: pipes of a role whose stages are all read by matrix instructions. */
#ifndef PIPEC_FLOW_MULTIPLIED_H
#define PIPEC_FLOW_MULTIPLIED_H

#include "flow/code.h"

/* True if that holds for each stage of the pipe, on every path from its acquire to its release.
 * False if unknown. */
bool flow_always_multiplied(Arena *arena, FlowCode *code, int pipe);

#endif
