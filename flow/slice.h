/* slice: a part of a Code: the rows that affect one property, and the regions and LEAVEs that
 * decide about them. It is valid and behaves as the whole Code, except for removed rows. A LEAVE
 * without effect is removed too. */
#ifndef PIPEC_FLOW_SLICE_H
#define PIPEC_FLOW_SLICE_H

#include "flow/code.h"

typedef bool Keeps(const FlowCode *code, const Row *row, const void *data);

/* `keeps` selects among all rows except those that frame regions, LEAVE and EXIT. Needs lags. */
FlowCode *code_slice(Arena *arena, const FlowCode *code, Keeps *keeps, const void *data);

#endif
