/* lags: how late `consume` blocks release. */
#ifndef PIPEC_DERIVE_LAGS_H
#define PIPEC_DERIVE_LAGS_H

#include "flow/code.h"
#include "flow/held.h"

/* Refuses lags that are written where none can be; these are none. */
void lags_written(const Prog *prog, FlowCode *code, Diags *diags);

/* needs classes, and what all roles hold with the lags as written; fills the late sets of a role
 * in. True: some lag was derived */
bool lags_derive(Arena *arena, const Prog *prog, FlowCode *code);

#endif
