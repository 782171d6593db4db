/* lags: number of iterations by which `consume` blocks delay their release. */
#ifndef PIPEC_DERIVE_LAGS_H
#define PIPEC_DERIVE_LAGS_H

#include "flow/code.h"
#include "flow/held.h"

/* Refuses written lags in places without a loop. */
void lags_written(const Prog *prog, FlowCode *code, Diags *diags);

/* Needs classes, and the stages that all roles hold with the written lags; sets the late sets of
 * a role. True: some lag was derived */
bool lags_derive(Arena *arena, const Prog *prog, FlowCode *code);

#endif
