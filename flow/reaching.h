/* reaching: the assignments whose value a variable may have at a row. */
#ifndef PIPEC_FLOW_REACHING_H
#define PIPEC_FLOW_REACHING_H

#include "flow/code.h"

/* By row: it sets the local, and on some path no other row does so between it and row `at`. */
bool *flow_reaching(Arena *arena, FlowCode *code, int local, int at);

#endif
