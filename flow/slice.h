/* slice: a Code that is part of another: the rows that matter for one question, and the regions
 * and LEAVEs that decide about them. It is well formed and does what the whole does, rows left
 * out apart. A LEAVE that goes where its path would go anyway is left out too. */
#ifndef PIPEC_FLOW_SLICE_H
#define PIPEC_FLOW_SLICE_H

#include "flow/code.h"

typedef bool Keeps(const FlowCode *code, const Row *row, const void *data);

/* Keeps decides about all rows but those that frame regions, LEAVE and EXIT. Needs lags. */
FlowCode *code_slice(Arena *arena, const FlowCode *code, Keeps *keeps, const void *data);

#endif
